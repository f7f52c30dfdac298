"""Rank aggregation with given weights: Kemeny, Borda, Copeland.

To estimate how reliable each source is, use ``LabelModel(Rankings(...))``.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray, IntArray, as_floats
from consilience.exceptions import InvalidVotesError, UnsupportedError
from consilience.label_types.rankings.kemeny import (
    KemenyRankings,
    add_up,
    among_seen,
    minimize_disagreement,
    rank_by_score,
)
from consilience.label_types.rankings.labels import UNSEEN, Positions
from consilience.label_types.rankings.space import Rankings
from consilience.tables.encoding import encode
from consilience.votes import Votes

__all__ = ["KemenyRankings", "borda", "copeland", "kemeny"]


def kemeny(
    rankings: Any,
    weights: npt.ArrayLike | None = None,
    *,
    exact: Literal["dp", "milp"] = "dp",
    time_limit: float | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> KemenyRankings:
    """Return the ranking of least weighted Kendall distance to the given ones (weighted Kemeny rule).

    The result is exact for up to 15 items, and for more if the majorities have no cycles among more than 15. Otherwise
    it comes from a local search with a lower bound, or from ``exact="milp"``. Ties between rankings are broken by
    Borda, then at random by `seed`, never by the index of an item.

    Parameters
    ----------
    rankings
        Positions of shape (m, r) for one consensus of m sources, or (n, m, r) for n of them; 0 = first, equal = tied,
        -1 = not seen. Or `Votes`, where a source may abstain, or lists in which rows have different numbers of items.
        `Rankings.positions_from_orders` and similar functions make positions from orders and scores.
    weights
        Shape (m,) or (n, m); 1 for each source by default.
    exact
        "milp" also solves what the local search leaves unproven, by integer programming.
    time_limit
        Seconds for all integer programs together.
    n_threads
        Number of threads; the result does not depend on it.

    Returns
    -------
    KemenyRankings
        With n = 1 for a single consensus: take ``.positions[0]``.

    Examples
    --------
    >>> result = kemeny([[0, 1, 2], [0, 2, 1], [1, 0, 2]])
    >>> result.positions[0], result.cost[0], bool(result.optimal[0])
    (array([0, 1, 2]), np.float64(2.0), True)
    """
    if exact not in ("dp", "milp"):
        raise UnsupportedError(f"exact={exact!r} is unknown. Use 'dp' or 'milp'.")
    votes, counted = _read(rankings, weights)
    margins, sizes, seen = add_up(votes, counted)
    options: Any = {"exact": exact, "time_limit": time_limit, "seed": seed, "n_threads": n_threads}
    found = minimize_disagreement(margins, votes.shape[2], sizes, **options)
    positions = among_seen(found.positions, seen)
    space = Rankings(None)
    cost = np.zeros(len(votes))
    for source in range(votes.shape[1]):
        cost += counted[:, source] * space.distance(votes[:, source], positions)
    return KemenyRankings(positions, cost, cost - found.gap, found.optimal)


def borda(rankings: Any, weights: npt.ArrayLike | None = None, *, seed: int = 0) -> IntArray:
    """Return positions (n, r) by the weighted number of sources that prefer an item minus those that prefer another.

    Cheaper than `kemeny`, and not optimal. Parameters as there; n = 1 for a single consensus.

    Examples
    --------
    >>> borda([[0, 1, 2], [0, 2, 1], [1, 0, 2]])
    array([[0, 1, 2]])
    """
    return _rank_by_score(rankings, weights, "borda", seed)


def copeland(rankings: Any, weights: npt.ArrayLike | None = None, *, seed: int = 0) -> IntArray:
    """Return positions (n, r) by the number of items that an item beats by majority minus those that beat it.

    Cheaper than `kemeny`, and not optimal. Parameters as there; n = 1 for a single consensus.

    Examples
    --------
    >>> copeland([[0, 1, 2], [0, 2, 1], [1, 0, 2]])
    array([[0, 1, 2]])
    """
    return _rank_by_score(rankings, weights, "copeland", seed)


def _rank_by_score(rankings: Any, weights: Any, rule: Literal["borda", "copeland"], seed: int) -> IntArray:
    votes, counted = _read(rankings, weights)
    margins, sizes, seen = add_up(votes, counted)
    return among_seen(rank_by_score(margins, votes.shape[2], sizes, rule=rule, seed=seed), seen)


def _read(rankings: Any, weights: npt.ArrayLike | None) -> tuple[Positions, FloatArray]:
    """Return votes ``(n, m, r)``, and weights ``(n, m)`` that are zero where a source abstains."""
    table = rankings if isinstance(rankings, Votes) else _as_votes(rankings)
    counted: FloatArray = table.observed * (np.ones(()) if weights is None else _as_weights(weights, table))
    votes = encode(table, Rankings(None)).labels
    if votes.ndim != 3:  # no source ranks anything, so there is nothing to encode
        votes = np.full((*table.shape, 0), UNSEEN, dtype=np.int16)
    return votes, counted


def _as_votes(rankings: Any) -> Votes:
    try:
        array = np.asarray(rankings)
    except ValueError:  # rows of different lengths
        array = np.empty(1, dtype=object)
    if array.dtype == object and array.ndim > 0:
        rows = list(rankings)
        flat = all(isinstance(row, (list, tuple, np.ndarray)) and not any(map(np.ndim, row)) for row in rows)
        source = next((index for index, row in enumerate(rows) if len(row) != len(rows[0])), None) if flat else None
        if source is not None:  # in nested lists, sources that rank different items would look like rows
            raise InvalidVotesError(
                f"Source {source} ranks {len(rows[source])} items, source 0 ranks {len(rows[0])}. Give each the same "
                "items, with -1 for those that it did not see."
            )
        return Votes.from_array(rankings)
    if array.dtype.kind not in "iuf" or array.ndim not in (2, 3):
        raise InvalidVotesError(
            f"An array of type {array.dtype} and shape {array.shape} is not an array of rankings. Give positions of "
            "shape (m, r) or (n, m, r); Rankings.positions_from_orders makes them from orders of names or numbers."
        )
    return Votes.from_array(array[None] if array.ndim == 2 else array)


def _as_weights(weights: npt.ArrayLike, votes: Votes) -> FloatArray:
    array = as_floats(weights)
    if array is None:
        raise InvalidVotesError("The weights are not numbers. Give one per source.")
    if array.shape not in ((votes.n_sources,), votes.shape):
        raise InvalidVotesError(
            f"The weights have shape {array.shape}; there are {votes.n_sources} sources and {votes.n_items} row(s). "
            f"Give ({votes.n_sources},) or {votes.shape}."
        )
    wrong = np.argwhere(~(array >= 0) | ~np.isfinite(array))
    if len(wrong):
        *row, source = wrong[0].tolist()
        place = f"Row {row[0]}, source" if row else "Source"
        raise InvalidVotesError(
            f"{place} {votes.sources[source]!r}: the weight is {array[tuple(wrong[0])]}. Weights are finite "
            "and not negative; 0 leaves a ranking out."
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(array.sum()):
            raise InvalidVotesError("The weights add up to more than a number can hold. Divide all by the largest one.")
    return array
