"""Language models that judge text simplifications, beside people."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray
from consilience.datasets.folders import Origin, read_table
from consilience.votes import Votes

__all__ = ["JudgeRatings", "load_asset_judges"]

ORIGIN = Origin(
    "asset_judges",
    "4,500 ratings of text simplifications by people and by 11 language models",
    "github.com/SprocketLab/CARE (data/score/asset.csv and judge_outputs), as ratings.parquet",
)
ROWS, JUDGES, PREFIX = 4500, 11, "judge__"


@dataclass(frozen=True, eq=False)
class JudgeRatings:
    """Ratings on 0 to 100, one row per rating of a person.

    Attributes
    ----------
    ratings : array of shape (n, m)
        What the language models say; NaN where they gave no number.
    judges : tuple of str
    truth : array of shape (n,)
        What the person says.
    item : array of shape (n,)
        Example and aspect that a row is about, such as ``"12/0"``.
    """

    ratings: FloatArray
    judges: tuple[str, ...]
    truth: FloatArray
    item: npt.NDArray[np.str_]

    @property
    def votes(self) -> Votes:
        """The ratings of the language models, one row per rating of a person."""
        return Votes.from_array(self.ratings, sources=self.judges, items=self.item)


def load_asset_judges(folder: str | Path | None = None) -> JudgeRatings:
    """Return the ratings of ``asset_judges/ratings.parquet``."""
    keys = ["example_index", "aspect", "human_rating"]
    table = read_table(ORIGIN.path(folder, "ratings.parquet"), keys, ROWS)
    columns = [name for name in table.columns if name.startswith(PREFIX)]
    item = [f"{example}/{aspect}" for example, aspect in zip(table["example_index"], table["aspect"], strict=True)]
    return JudgeRatings(
        np.column_stack([table.numbers(name) for name in columns]),
        tuple(name.removeprefix(PREFIX) for name in columns),
        table.numbers("human_rating"),
        np.array(item),
    )
