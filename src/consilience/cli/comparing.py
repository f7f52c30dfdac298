"""`compare`: every method of a label type against known labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from consilience.cli.commands import Command
from consilience.cli.fitting import fit
from consilience.cli.labelling import VOTES
from consilience.cli.options import Reading, gold_option, printing_options, reading_options
from consilience.cli.output import Output

if TYPE_CHECKING:
    from consilience.arrays import Batch, BoolArray, FloatArray
    from consilience.cli.loading import Loaded

__all__ = ["compare"]

#: Parts into which known labels are cut where a method learns from them.
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Scored:
    """How far the labels of one method are from the known ones."""

    method: str
    distance: FloatArray
    note: str = ""

    def row(self, finite: bool) -> dict[str, Any]:
        """Return one row of the table."""
        size = len(self.distance)
        row: dict[str, Any] = {"method": self.method, "items": size}
        if finite:
            row["right"] = float((self.distance <= 1e-12).mean()) if size else None
        row["mean_distance"] = float(self.distance.mean()) if size else None
        row["standard_error"] = float(self.distance.std(ddof=1) / np.sqrt(size)) if size > 1 else None
        row["note"] = self.note
        return row


@click.command(
    cls=Command,
    examples=(
        "consilience compare votes.csv --gold gold.csv",
        "consilience compare scores.csv --gold human_rating --space scores",
    ),
)
@VOTES
@reading_options()
@gold_option(required=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same bits.")
@printing_options
def compare(votes: Path, reading: Reading, gold: str, seed: int, output: Output) -> None:
    """Compare all methods on the items of VOTES whose label is known.

    No method sees the known label of an item it is scored on: `labelled` learns from four fifths of them and is scored
    on the last fifth, in turn; all others learn from votes alone. Items nobody voted on are left out.
    """
    from consilience.cli.loading import describe, load

    loaded = load(votes, reading, output, gold)
    rows = []
    for method in loaded.space.law.methods:
        with output.working(f"method {method}"):
            rows.append(_scored(loaded, method, seed).row(finite=not loaded.space.continuous))
    order = sorted(rows, key=lambda row: (row["mean_distance"] is None, row["mean_distance"] or 0.0))
    output.table({name: [row[name] for row in order] for name in order[0]})
    output.document({"known": loaded.n_gold, "space": describe(loaded.space), "methods": order})


def _scored(loaded: Loaded, method: str, seed: int) -> Scored:
    from consilience.exceptions import ConsilienceError

    known = np.array([label is not None for label in (() if loaded.gold is None else loaded.gold)], dtype=bool)
    nothing = np.zeros(0)
    try:
        if method != "labelled":
            model = fit(replace(loaded, gold=None), method, [], seed)
            used = model.source_model_.method
            return Scored(method, _distances(loaded, model, known), "" if used == method else f"uses {used}")
        if known.sum() < 2 * FOLDS:
            return Scored(method, nothing, f"needs {2 * FOLDS} known labels")
        return Scored(method, _out_of_fold(loaded, known, seed), f"learns from known labels, {FOLDS} folds")
    except ConsilienceError as error:
        return Scored(method, nothing, str(error).split(". ", 1)[0])


def _out_of_fold(loaded: Loaded, known: BoolArray, seed: int) -> FloatArray:
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(known))
    parts = []
    for fold in range(FOLDS):
        held_out = np.zeros(len(known), dtype=bool)
        held_out[rows[fold::FOLDS]] = True
        gold: Batch = np.array([], dtype=object) if loaded.gold is None else loaded.gold.copy()
        gold[held_out] = None
        parts.append(_distances(loaded, fit(loaded, "labelled", [], seed, gold), held_out))
    return np.concatenate(parts)


def _distances(loaded: Loaded, model: Any, chosen: BoolArray) -> FloatArray:
    """Return how far labels are from the known ones, on chosen items that somebody voted on."""
    rows = np.flatnonzero(chosen & loaded.votes.observed.any(axis=1))
    if len(rows) == 0 or loaded.gold is None:
        return np.zeros(0)
    space = loaded.space
    labels = model.predict(loaded.votes[rows])
    return space.distance(space.as_batch(labels), space.as_batch(loaded.gold[rows]))
