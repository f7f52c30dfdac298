"""Standings of the items that a model of `Preferences` compares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from consilience.exceptions import UnsupportedError
from consilience.label_model import LabelModel
from consilience.label_types.base import NORMAL_95
from consilience.label_types.preferences.comparisons import UNPARSABLE, Comparisons
from consilience.lazy import pyarrow as pa
from consilience.prediction.verdict import listing
from consilience.tables.encoding import encode
from consilience.tables.vote_tables import as_group
from consilience.votes import as_votes

__all__ = ["leader", "standings"]

COLUMNS = (
    "item", "rank", "candidate", "score", "standard_error", "score_low", "score_high", "rank_low", "rank_high",
    "baseline_rank", "wins", "comparisons", "win_rate",
)  # fmt: skip


def leader(table: pa.Table) -> str:
    """Return a sentence about who is first in the standings of one row, and who may be.

    Examples
    --------
    >>> import pyarrow as pa
    >>> leader(pa.table({"candidate": ["m1", "m2", "m3"], "rank_low": [1, 1, 3]}))
    'm1 is ahead, but m2 may be as good.'
    """
    first, *others = [row["candidate"] for row in table.to_pylist() if row["rank_low"] == 1] or ["Nobody"]
    return f"{first} is ahead, but {listing(list(map(str, others)))} may be as good." if others else f"{first} leads."


def standings(model: LabelModel, votes: Any) -> pa.Table:
    """Return the ranking of every row of the votes as a table with one row per item, best first.

    Columns are item, rank, candidate, score, standard_error, score_low, score_high, rank_low, rank_high, baseline_rank,
    wins, comparisons and win_rate. Scores have a mean of about zero and a standard deviation of about one. With about
    95% probability the true score lies between `score_low` and `score_high`, and the true rank between `rank_low` and
    `rank_high`. `baseline_rank` is the rank if every judge has the same weight. A tie is half a win.

    Examples
    --------
    >>> from consilience import Preferences
    >>> from consilience.tables import read_preferences
    >>> shown = {"judge": ["x", "y", "z"] * 20, "a": ["m1"] * 30 + ["m2"] * 30, "b": ["m2"] * 30 + ["m1"] * 30}
    >>> votes = read_preferences({**shown, "winner": ["m1", "m1", "m2"] * 20})
    >>> model = LabelModel(Preferences(), method="majority").fit(votes)
    >>> standings(model, votes).column("candidate").to_pylist()
    ['m1', 'm2']
    """
    table = as_votes(votes, model.space)
    belief = model.posterior(table)
    if "candidates" not in belief.details:
        raise UnsupportedError(f"{type(model.space).__name__} does not rank candidates. standings is for Preferences.")
    plain = model.predict_baseline(table)
    said = encode(table, model.space)
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for row in np.flatnonzero(table.observed.any(axis=1)).tolist():
        item, own, places = table.items[row : row + 1].tolist()[0], _places(belief.labels[row]), _places(plain[row])
        wins, compared = defaultdict[Any, float](float), defaultdict[Any, float](float)
        for (one, two), won in pair_wins(said.labels[row][said.observed[row]]).items():
            wins[one] += won
            compared[one] += won
            compared[two] += won
        for at, name in enumerate(belief.details["candidates"][row]):
            score, error = (float(belief.details[key][row][at]) for key in ("score", "standard_error"))
            ends = [score - NORMAL_95 * error, score + NORMAL_95 * error]
            ranks = [int(belief.details[key][row][at]) for key in ("rank_low", "rank_high")]
            counts = [wins[name], int(compared[name]), wins[name] / max(compared[name], 1)]
            cells = [item, own[name], name, score, error, *ends, *ranks, places[name], *counts]
            for column, cell in zip(columns.values(), cells, strict=True):
                column.append(cell)
    return pa.table(columns)


def pair_wins(cells: Iterable[Comparisons]) -> dict[tuple[Any, Any], float]:
    """Return how often each candidate beat each other one; a tie is half a win for both."""
    wins: dict[tuple[Any, Any], float] = defaultdict(float)
    for said in cells:
        for one, two, outcome in said.entries():
            if outcome != UNPARSABLE:
                wins[one, two] += (1 + outcome) / 2
                wins[two, one] += (1 - outcome) / 2
    return wins


def _places(ranking: list[Any]) -> dict[Any, int]:
    """Return the rank of each item, counted from one; tied items share the better rank."""
    places: dict[Any, int] = {}
    rank = 1
    for group in ranking:
        tied = as_group(group)
        places |= dict.fromkeys(tied, rank)
        rank += len(tied)
    return places
