"""What a model of `Preferences` says about the items that were compared."""

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
from consilience.tables.encoding import encode, votes_for
from consilience.tables.vote_tables import as_group

__all__ = ["leader", "standings"]


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
    table = votes_for(votes, model.space)
    belief = model.posterior(table)
    if "candidates" not in belief.details:
        raise UnsupportedError(f"{type(model.space).__name__} does not rank candidates. standings is for Preferences.")
    plain = model.predict_baseline(table)
    names = ("item", "rank", "candidate", "score", "standard_error", "score_low", "score_high", "rank_low", "rank_high")
    columns: dict[str, list[Any]] = {name: [] for name in (*names, "baseline_rank", "wins", "comparisons")}
    said = encode(table, model.space)
    for row in np.flatnonzero(table.observed.any(axis=1)).tolist():
        places = _places(plain[row])
        own = _places(belief.labels[row])
        wins, compared = _wins(said.labels[row][said.observed[row]])
        for at, name in enumerate(belief.details["candidates"][row]):
            columns["item"].append(table.items[row : row + 1].tolist()[0])
            columns["rank"].append(own[name])
            columns["candidate"].append(name)
            score, error = (float(belief.details[key][row][at]) for key in ("score", "standard_error"))
            columns["score"].append(score)
            columns["standard_error"].append(error)
            columns["score_low"].append(score - NORMAL_95 * error)
            columns["score_high"].append(score + NORMAL_95 * error)
            for key in ("rank_low", "rank_high"):
                columns[key].append(int(belief.details[key][row][at]))
            columns["baseline_rank"].append(places[name])
            columns["wins"].append(wins[name])
            columns["comparisons"].append(compared[name])
    columns["win_rate"] = [won / max(of, 1) for won, of in zip(columns["wins"], columns["comparisons"], strict=True)]
    return pa.table(columns)


def _wins(cells: Iterable[Comparisons]) -> tuple[dict[Any, float], dict[Any, int]]:
    """Return how often each item won, ties as half, and how often it was compared."""
    wins: dict[Any, float] = defaultdict(float)
    compared: dict[Any, int] = defaultdict(int)
    for said in cells:
        for first, second, outcome in zip(said.first, said.second, said.outcome, strict=True):
            if outcome != UNPARSABLE:
                wins[first] += (1 + outcome) / 2
                wins[second] += (1 - outcome) / 2
                compared[first] += 1
                compared[second] += 1
    return wins, compared


def _places(ranking: list[Any]) -> dict[Any, int]:
    """Return the rank of each item, counted from one; tied items share the better rank."""
    places: dict[Any, int] = {}
    rank = 1
    for group in ranking:
        tied = as_group(group)
        places |= dict.fromkeys(tied, rank)
        rank += len(tied)
    return places
