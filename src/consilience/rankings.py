"""One ranking out of many, without learning anything about the sources: Kemeny, Borda, Copeland.

`kemeny` finds the ranking of least weighted Kendall distance to the given ones and says whether that is proven. To
learn how far each source can be trusted, use ``LabelModel(Rankings(...))``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.exceptions import InvalidVotesError, UnsupportedError
from consilience.label_types.rankings import kemeny as solvers
from consilience.label_types.rankings.kemeny import PairMargins
from consilience.label_types.rankings.space import Rankings
from consilience.tables.encoding import encode
from consilience.votes import Votes

__all__ = ["KemenyRankings", "borda", "copeland", "kemeny"]


@dataclass(frozen=True, eq=False)
class KemenyRankings:
    """Rankings of n rows of up to r items, and how good they are known to be.

    Attributes
    ----------
    positions : array of shape (n, r)
        Position of each item, 0 for the first, without ties; -1 for items that no source ranks in this row.
    cost : array of shape (n,)
        Weighted number of pairs of items in opposite order, summed over the sources.
    lower_bound : array of shape (n,)
        No ranking costs less.
    optimal : array of shape (n,)
        Whether the ranking is proven to be the best.
    """

    positions: IntArray
    cost: FloatArray
    lower_bound: FloatArray
    optimal: BoolArray

    @property
    def gap(self) -> FloatArray:
        """By how much a better ranking could cost less at the most; zero where optimal."""
        return self.cost - self.lower_bound


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

    Exact for up to 15 items, and for more where majorities have no cycles among more than 15; beyond that a local
    search with a lower bound, or ``exact="milp"``. Equally good rankings are decided by Borda, then at random by
    `seed`, never by the index of an item.

    Parameters
    ----------
    rankings
        Positions of shape (m, r) for one consensus of m sources, or (n, m, r) for n of them; 0 = first, equal = tied,
        -1 = not seen. Or `Votes`, where a source may abstain, or lists in which rows have different numbers of items.
        `Rankings.positions_from_orders` and its sisters make positions of orders and scores.
    weights
        Shape (m,), or (n, m); one each without it.
    exact
        "milp" also solves what the local search leaves unproven, by integer programming.
    time_limit
        Seconds for all integer programs together.
    n_threads
        Rows go through as many threads; the result does not depend on it.

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
    problem = _Problem.of(rankings, weights)
    found = problem.margins.kemeny(exact=exact, time_limit=time_limit, seed=seed, n_threads=n_threads)
    cost = problem.cost(found.positions)
    return KemenyRankings(found.positions, cost, cost - (found.cost - found.lower_bound), found.optimal)


def borda(rankings: Any, weights: npt.ArrayLike | None = None, *, seed: int = 0) -> IntArray:
    """Return positions (n, r) by the weighted number of sources that prefer an item minus those that prefer another.

    Cheaper than `kemeny`, and not optimal. Parameters as there; n = 1 for a single consensus.

    Examples
    --------
    >>> borda([[0, 1, 2], [0, 2, 1], [1, 0, 2]])
    array([[0, 1, 2]])
    """
    margins = _Problem.of(rankings, weights).margins
    return margins.of_seen(solvers.borda(margins.margins, margins.width, margins.sizes, seed=seed))


def copeland(rankings: Any, weights: npt.ArrayLike | None = None, *, seed: int = 0) -> IntArray:
    """Return positions (n, r) by the number of items that an item beats by majority minus those that beat it.

    Cheaper than `kemeny`, and not optimal. Parameters as there; n = 1 for a single consensus.

    Examples
    --------
    >>> copeland([[0, 1, 2], [0, 2, 1], [1, 0, 2]])
    array([[0, 1, 2]])
    """
    margins = _Problem.of(rankings, weights).margins
    return margins.of_seen(solvers.copeland(margins.margins, margins.width, margins.sizes, seed=seed))


@dataclass(frozen=True, eq=False)
class _Problem:
    """Votes ``(n, m, r)``, weights ``(n, m)`` that are zero where a source abstains, and their pair margins."""

    votes: npt.NDArray[np.int16]
    weights: FloatArray
    margins: PairMargins

    @classmethod
    def of(cls, rankings: Any, weights: npt.ArrayLike | None) -> _Problem:
        table = rankings if isinstance(rankings, Votes) else _as_votes(rankings)
        counted = _as_weights(weights, table) * table.observed
        votes = encode(table, Rankings(None)).labels
        if votes.ndim != 3:  # nobody ranks anything, so there is nothing to encode either
            votes = np.full((*table.shape, 0), -1, dtype=np.int16)
        return cls(votes, counted, PairMargins.of(votes, counted))

    def cost(self, positions: IntArray) -> FloatArray:
        """Return the summed distance of each row's ranking to its votes."""
        space = Rankings(None)
        spent = [self.weights[:, a] * space.distance(self.votes[:, a], positions) for a in range(self.votes.shape[1])]
        total: FloatArray = np.sum(spent, axis=0)
        return total


def _as_votes(rankings: Any) -> Votes:
    try:
        array = np.asarray(rankings)
    except ValueError:  # rows of different lengths
        array = None
    if array is None or array.dtype == object:
        _check_nesting(rankings)
        return Votes.from_array(rankings)
    if array.dtype.kind not in "iuf" or array.ndim not in (2, 3):
        raise InvalidVotesError(
            f"An array of type {array.dtype} and shape {array.shape} holds no rankings. Give positions of shape (m, r) "
            "or (n, m, r); Rankings.positions_from_orders makes them from orders of names or numbers."
        )
    return Votes.from_array(array[None] if array.ndim == 2 else array)


def _check_nesting(rankings: Any) -> None:
    """Refuse sources that rank different numbers of items: in nested lists they would look like rows."""
    rows = list(rankings)
    if not all(
        isinstance(row, (list, tuple, np.ndarray)) and all(np.ndim(value) == 0 for value in row) for row in rows
    ):
        return
    source = next((index for index, row in enumerate(rows) if len(row) != len(rows[0])), None)
    if source is not None:
        raise InvalidVotesError(
            f"Source {source} ranks {len(rows[source])} items, source 0 ranks {len(rows[0])}. Give each the same "
            "items, with -1 for those that it did not see."
        )


def _as_weights(weights: npt.ArrayLike | None, votes: Votes) -> FloatArray:
    if weights is None:
        return np.ones(votes.shape)
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidVotesError("The weights are not numbers. Give one per source.") from None
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
    return np.broadcast_to(array, votes.shape)
