"""What a model of `Preferences` says about the items that were compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.exceptions import UnsupportedError
from consilience.label_model import LabelModel
from consilience.tables.encoding import votes_for
from consilience.tables.vote_tables import as_group

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["standings"]


def standings(model: LabelModel, votes: Any) -> pa.Table:
    """Return the ranking of every row of the votes as a table with one row per item, best first.

    Columns are item, rank, candidate, score, standard_error, rank_low, rank_high and baseline_rank. Scores have a mean
    of about zero and a standard deviation of about one; the true rank lies between `rank_low` and `rank_high` with
    about 95% probability; `baseline_rank` is the one where every judge counts the same.

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
    import pyarrow as pa

    table = votes_for(votes, model.space)
    belief = model.posterior(table)
    if "candidates" not in belief.details:
        raise UnsupportedError(f"{type(model.space).__name__} ranks no candidates. standings is for Preferences.")
    plain = model.predict_baseline(table)
    names = ("item", "rank", "candidate", "score", "standard_error", "rank_low", "rank_high", "baseline_rank")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for row in np.flatnonzero(table.observed.any(axis=1)).tolist():
        places = _places(plain[row])
        own = _places(belief.labels[row])
        for at, name in enumerate(belief.details["candidates"][row]):
            columns["item"].append(table.items[row : row + 1].tolist()[0])
            columns["rank"].append(own[name])
            columns["candidate"].append(name)
            for key in ("score", "standard_error"):
                columns[key].append(float(belief.details[key][row][at]))
            for key in ("rank_low", "rank_high"):
                columns[key].append(int(belief.details[key][row][at]))
            columns["baseline_rank"].append(places[name])
    return pa.table(columns)


def _places(ranking: list[Any]) -> dict[Any, int]:
    """Return the rank of each item, counted from one; tied items share the better rank."""
    places: dict[Any, int] = {}
    rank = 1
    for group in ranking:
        tied = as_group(group)
        places |= dict.fromkeys(tied, rank)
        rank += len(tied)
    return places
