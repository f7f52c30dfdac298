"""Claim: texts chosen or written from crowd translations are never worse than the best vote, and mostly better.

Reads ``crowd_translations`` from the folder that CONSILIENCE_DATA names: three parts, ten answers to each sentence.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.progress import track

import consilience as cs

from .tables import QUICK, FloatArray, fit_quietly, markdown_table, read_settings, signed, verdict, write_results

PARTS = ("J1", "T1", "T2")
#: Word error rate to be met on each part.
LIMITS = {"J1": 0.60, "T1": 0.50, "T2": 0.52}
HEADER = [
    "part, loss",
    "best vote",
    "weighted vote",
    "written, alike",
    "default",
    "default - best vote",
    "new",
    "rank",
]


def read_part(part: str) -> tuple[cs.Votes, list[str]]:
    """Return answers and references of one part; a worker's second answer to a sentence is left out."""
    name = os.environ.get("CONSILIENCE_DATA")
    if not name:
        raise SystemExit("CONSILIENCE_DATA is not set. Let it name the folder that contains crowd_translations.")
    folder = Path(name) / "crowd_translations"
    if not folder.is_dir():
        raise SystemExit(f"CONSILIENCE_DATA names {name!r}, which has no folder 'crowd_translations'. Correct it.")
    import pyarrow.parquet as pq

    answers = [row for row in pq.read_table(folder / "answers.parquet").to_pylist() if row["part"] == part]
    gold = {
        row["item"]: row["gold"] for row in pq.read_table(folder / "gold.parquet").to_pylist() if row["part"] == part
    }
    said: dict[tuple[str, str], str] = {}
    for row in answers:
        if row["answer"] and row["answer"].strip():
            said.setdefault((row["item"], row["worker"]), row["answer"])
    votes = cs.Votes.from_long([(item, worker, text) for (item, worker), text in said.items()])
    return votes, [gold[item] for item in votes.items.tolist()]


def word_errors(space: cs.Texts, labels: Sequence[str], gold: Sequence[str]) -> FloatArray:
    """Return word edits by the length of the reference, from the distance that divides by the longer text."""
    import re

    def size(text: str) -> int:
        return len(re.sub(r"[^\w\s]", "", text.lower()).split())

    longest = np.array([max(size(one), size(two)) for one, two in zip(labels, gold, strict=True)])
    reference = np.array([max(size(text), 1) for text in gold])
    return space.distance(space.as_batch(labels), space.as_batch(gold)) * longest / reference


def rank_correlation(left: FloatArray, right: FloatArray) -> float:
    ranks = [np.argsort(np.argsort(values, kind="stable"), kind="stable") for values in (left, right)]
    return float(np.corrcoef(*ranks)[0, 1])


def compare(part: str, distance: str, keep: int | None) -> tuple[list[str], float, float, float]:
    """Return the row of one part and distance, the loss of the default, and its change against the best vote."""
    votes, gold = read_part(part)
    if keep is not None:
        votes, gold = votes[:keep], gold[:keep]
    space, picking = cs.Texts(distance), cs.Texts(distance, write=False)

    def loss(labels: Sequence[str]) -> FloatArray:
        if distance == "words":
            return word_errors(space, labels, gold)
        return space.distance(space.as_batch(labels), space.as_batch(gold))

    model = fit_quietly(cs.LabelModel(space, random_state=0), votes)
    belief = model.posterior(votes)
    best = loss(fit_quietly(cs.LabelModel(picking, method="majority"), votes).predict(votes))
    weighted = loss(fit_quietly(cs.LabelModel(picking, random_state=0), votes).predict(votes))
    alike, own = loss(model.predict_baseline(votes)), loss(list(belief.labels))
    error = float((own - best).std() / np.sqrt(len(own)))
    shown = [
        f"{values.mean():.3f} ± {values.std() / np.sqrt(len(values)):.3f}" for values in (best, weighted, alike, own)
    ]
    change = f"{signed(float((own - best).mean()), 3)} ± {error:.3f}"
    new = f"{belief.details['new_text'].mean():.0%}"
    name = f"{part}, {'word error rate' if distance == 'words' else '1 - GLEU'}"
    row = [name, *shown, change, new, f"{rank_correlation(-belief.confidence, own):.2f}"]
    return row, float(own.mean()), float((own - best).mean()), error


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare on all parts and write ``texts.md``."""
    settings = read_settings("experiments.texts", __doc__, 1, 1, arguments)
    cells = [(part, distance) for distance in ("words", "gleu") for part in PARTS]
    rows, verdicts = [], []
    for part, distance in track(cells[1:2] if settings.quick else cells, description="texts"):
        row, own, change, error = compare(part, distance, 30 if settings.quick else None)
        rows.append(row)
        if distance == "words":
            limit = LIMITS[part]
            verdicts.append(verdict(f"{part}: word error rate at most {limit:.2f}", own <= limit, f"{own:.3f}"))
        claim = f"{row[0]}: worse than the best vote by at most a standard error"
        verdicts.append(verdict(claim, change <= error, f"{signed(change, 3)} ± {error:.3f}"))
    blocks = [
        "Mean ± standard error over sentences. *best vote*: the answer nearest to all others, all alike. *weighted "
        "vote*: the same with the learned weights. *written, alike*: newly written texts, all sources alike. "
        "*default*: newly written texts with weights. *new*: labels that no worker wrote. *rank*: Spearman's "
        "correlation of (negative) confidence and loss.",
        markdown_table(HEADER, rows),
        "## Targets",
        QUICK if settings.quick else "\n".join(verdicts),
    ]
    described = ["crowd_translations, words in small letters without punctuation", "nothing random"]
    write_results(settings.results / "texts.md", "Texts", settings.command, described, blocks)


if __name__ == "__main__":
    main()
