"""What crowds of people say: emotions, translations, boxes and orders, with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray, IntArray
from consilience.datasets.folders import Origin, read_table
from consilience.exceptions import FileFormatError
from consilience.label_types import Rankings

__all__ = [
    "CrowdBoxes",
    "CrowdRatings",
    "CrowdTranslations",
    "load_crowd_affect",
    "load_crowd_boxes",
    "load_crowd_translations",
    "load_preflib_dots",
]

AFFECT = Origin(
    "crowd_affect",
    "7,000 ratings of emotions in 100 headlines by 38 crowd workers (Snow et al. 2008)",
    "github.com/Praznat/annotationmodeling (data/snow_affect), as affect.parquet",
)
TRANSLATIONS = Origin(
    "crowd_translations",
    "4,490 translations of 450 sentences by crowd workers (CrowdWSA2019)",
    "github.com/garfieldpigljy/CrowdWSA2019, as answers.parquet and gold.parquet",
)
BOXES = Origin(
    "crowd_boxes",
    "1,723 sets of boxes that crowd workers drew on 200 images",
    "github.com/Praznat/annotationmodeling (boundingbox_data), as annotations.parquet, boxes.parquet and gold.parquet",
)
DOTS = Origin(
    "preflib_dots",
    "3,183 orders of four pictures by the number of dots on them (Mao, Procaccia and Chen 2013)",
    "github.com/PrefLib/PrefLib-Data (00024 - dots), as votes.csv.gz",
)
DOTS_VOTES = 3183
CORNERS = ("x1", "y1", "x2", "y2")


@dataclass(frozen=True, eq=False)
class CrowdRatings:
    """Ratings, one row each: which headline, which emotion, by whom, and what experts say."""

    emotion: npt.NDArray[np.str_]
    item: IntArray
    worker: npt.NDArray[np.str_]
    response: FloatArray
    gold: FloatArray


@dataclass(frozen=True, eq=False)
class CrowdTranslations:
    """Answers, one row each, and the gold sentence of every (part, item)."""

    part: npt.NDArray[np.str_]
    item: npt.NDArray[np.str_]
    worker: npt.NDArray[np.str_]
    answer: npt.NDArray[np.str_]
    gold: dict[tuple[str, str], str]


@dataclass(frozen=True, eq=False)
class CrowdBoxes:
    """Boxes (left, top, right, bottom in pixels) by image and worker, and those of the expert by image."""

    annotations: dict[tuple[int, int], FloatArray]
    gold: dict[int, FloatArray]


def load_crowd_affect(folder: str | Path | None = None) -> CrowdRatings:
    """Return the ratings of ``crowd_affect/affect.parquet``: 0 to 100, valence -100 to 100."""
    columns = ["emotion", "item", "worker", "response", "gold"]
    table = read_table(AFFECT.path(folder, "affect.parquet"), columns, 7000)
    return CrowdRatings(
        table["emotion"].astype(str),
        table["item"].astype(np.int64),
        table["worker"].astype(str),
        table.numbers("response"),
        table.numbers("gold"),
    )


def load_crowd_translations(folder: str | Path | None = None) -> CrowdTranslations:
    """Return the answers of ``crowd_translations``: three parts (J1, T1, T2) with workers of their own.

    A few workers answered an item twice; both answers are there, in the order of the file.
    """
    answers = read_table(TRANSLATIONS.path(folder, "answers.parquet"), ["part", "item", "worker", "answer"], 4490)
    gold = read_table(TRANSLATIONS.path(folder, "gold.parquet"), ["part", "item", "gold"], 450)
    rows = zip(gold["part"].tolist(), gold["item"].tolist(), gold["gold"].tolist(), strict=True)
    return CrowdTranslations(
        answers["part"].astype(str),
        answers["item"].astype(str),
        answers["worker"].astype(str),
        answers["answer"].astype(str),
        {(str(part), str(item)): str(text) for part, item, text in rows},
    )


def load_crowd_boxes(folder: str | Path | None = None) -> CrowdBoxes:
    """Return the boxes of ``crowd_boxes``: 200 images, 196 workers; an annotation may hold no box."""
    done = read_table(BOXES.path(folder, "annotations.parquet"), ["item", "worker"], 1723)
    drawn = read_table(BOXES.path(folder, "boxes.parquet"), ["item", "worker", *CORNERS], 7533)
    expert = read_table(BOXES.path(folder, "gold.parquet"), ["item", *CORNERS], 1308)
    found: dict[tuple[int, int], list[FloatArray]] = {
        (int(item), int(worker)): [] for item, worker in zip(done["item"], done["worker"], strict=True)
    }
    corners = np.column_stack([drawn.numbers(name) for name in CORNERS])
    for item, worker, box in zip(drawn["item"], drawn["worker"], corners, strict=True):
        found[int(item), int(worker)].append(box)
    gold: dict[int, list[FloatArray]] = {}
    for item, box in zip(expert["item"], np.column_stack([expert.numbers(name) for name in CORNERS]), strict=True):
        gold.setdefault(int(item), []).append(box)
    return CrowdBoxes(
        {key: np.array(boxes).reshape(-1, 4) for key, boxes in found.items()},
        {key: np.array(boxes) for key, boxes in gold.items()},
    )


def load_preflib_dots(folder: str | Path | None = None) -> list[IntArray]:
    """Return the votes at four difficulties, hardest first: ``(n, 4)`` positions each; the true order is 0 1 2 3."""
    table = read_table(DOTS.path(folder, "votes.csv.gz"), ["file", "count", "order"], 96)
    if (total := int(table["count"].sum())) != DOTS_VOTES:
        raise FileFormatError(f"{table.path} holds {total} votes, not {DOTS_VOTES}. Is it complete? Get it again.")
    orders: dict[str, list[list[int]]] = {}
    for file, count, order in zip(table["file"], table["count"], table["order"], strict=True):
        orders.setdefault(str(file), []).extend([[int(item) - 1 for item in str(order).split()]] * int(count))
    return [Rankings.positions_from_orders(rows, 4).astype(np.int64) for rows in orders.values()]
