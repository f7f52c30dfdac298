"""What `summarize` counts in a chunk of items; counts of chunks add up to those of all items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_object_array
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import Part
from consilience.tables.encoding import encode
from consilience.votes import Votes

__all__ = ["VoteCounts", "counter"]

_EQUAL = 1e-12

Cost = Callable[[Batch, Batch], FloatArray]


@dataclass(frozen=True, eq=False)
class VoteCounts:
    """Sums over items, one entry per source.

    Parameters
    ----------
    items
        How many there are.
    votes, overlapping
        Items it votes on; and those of them on which another source votes, too.
    compared, conflicts
        The same overlap among the items that are compared pair by pair; those on which another source differs.
    pairs, cost
        Pairs of its votes with another source's among these items, and their total cost.
    distinct
        Its different labels; None where there are more than may be kept.
    plain
        Whether every vote is one label, rather than a row of probabilities.
    known, true_cost, right
        Votes on items of known label, their total cost to it, and how many are right; None without known labels.
    """

    items: int
    votes: IntArray
    overlapping: IntArray
    compared: IntArray
    conflicts: IntArray
    pairs: IntArray
    cost: FloatArray
    distinct: tuple[Batch | None, ...]
    most: int | None
    plain: bool
    known: IntArray | None = None
    true_cost: FloatArray | None = None
    right: IntArray | None = None

    def __add__(self, other: VoteCounts) -> VoteCounts:
        added: dict[str, Any] = {
            name: getattr(self, name) + getattr(other, name)
            for name in ("items", "votes", "overlapping", "compared", "conflicts", "pairs", "cost")
        }
        if self.known is not None and other.known is not None:
            added |= {name: getattr(self, name) + getattr(other, name) for name in ("known", "true_cost", "right")}
        distinct = tuple(
            None if left is None or right is None else _at_most(self.most, _union(left, right))
            for left, right in zip(self.distinct, other.distinct, strict=True)
        )
        return replace(self, **added, distinct=distinct, plain=self.plain and other.plain)


def counter(space: LabelSpace | None, choose: Callable[[Part], Part], most: int | None) -> Callable[[Part], VoteCounts]:
    """Return what counts a chunk.

    Parameters
    ----------
    choose
        Picks the items on which sources are compared pair by pair.
    most
        How many different labels of a source are kept; None for all.
    """

    def count(part: Part) -> VoteCounts:
        votes = part.votes if space is None else encode(part.votes, space)
        part = replace(part, votes=votes)
        observed = votes.observed
        compared, conflicts, pairs, cost = _compare(choose(part).votes, _differs if space is None else space.cost)
        known, true_cost, right = _against_gold(part, space)
        return VoteCounts(
            items=len(votes),
            votes=observed.sum(axis=0).astype(np.int64),
            overlapping=_shared(observed),
            compared=compared,
            conflicts=conflicts,
            pairs=pairs,
            cost=cost,
            distinct=tuple(
                _at_most(most, _distinct(votes.labels[observed[:, source], source]))
                for source in range(votes.n_sources)
            ),
            most=most,
            plain=votes.labels.ndim == 2 or not observed.any(),
            known=known,
            true_cost=true_cost,
            right=right,
        )

    return count


def _shared(observed: BoolArray) -> IntArray:
    shared: IntArray = observed[observed.sum(axis=1) > 1].sum(axis=0).astype(np.int64)
    return shared


def _compare(votes: Votes, cost: Cost) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    labels, observed = votes.labels, votes.observed
    m = votes.n_sources
    disagrees = np.zeros(observed.shape, dtype=bool)
    total, pairs = np.zeros(m), np.zeros(m, dtype=np.int64)
    for a in range(m):
        for b in range(a + 1, m):
            rows = np.flatnonzero(observed[:, a] & observed[:, b])
            if len(rows) == 0:
                continue
            apart = cost(labels[rows, a], labels[rows, b])
            total[[a, b]] += apart.sum()
            pairs[[a, b]] += len(rows)
            wrong = rows[apart > _EQUAL]
            disagrees[wrong, a] = disagrees[wrong, b] = True
    return _shared(observed), disagrees.sum(axis=0).astype(np.int64), pairs, total


def _against_gold(part: Part, space: LabelSpace | None) -> tuple[IntArray | None, FloatArray | None, IntArray | None]:
    votes, truth = part.votes, part.gold
    if truth is None or space is None:
        return None, None, None
    m = votes.n_sources
    known, right, total = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64), np.zeros(m)
    for source in range(m):
        rows = np.flatnonzero(votes.observed[:, source] & truth.observed[:, 0])
        if len(rows):
            cost = space.cost(votes.labels[rows, source], truth.labels[rows, 0])
            known[source], total[source], right[source] = len(rows), cost.sum(), (cost <= _EQUAL).sum()
    return known, total, right


def _distinct(labels: Batch) -> Batch:
    """Return the different labels; objects that are no keys stand as their text."""
    if labels.dtype != object:
        return np.unique(labels) if labels.ndim == 1 else np.unique(labels, axis=0)
    values = labels.tolist()
    try:
        return as_object_array(dict.fromkeys(values))
    except TypeError:
        return as_object_array(dict.fromkeys(map(repr, values)))


def _union(left: Batch, right: Batch) -> Batch:
    if not len(left) or not len(right):
        return left if len(left) else right
    if left.dtype != object and right.dtype != object and left.shape[1:] == right.shape[1:]:
        return _distinct(np.concatenate([left, right]))
    return _distinct(as_object_array([*left.tolist(), *right.tolist()]))


def _at_most(most: int | None, labels: Batch) -> Batch | None:
    return labels if most is None or len(labels) <= most else None


def _differs(left: Batch, right: Batch) -> FloatArray:
    if left.dtype == object:
        return np.array([0.0 if _same(one, two) else 1.0 for one, two in zip(left, right, strict=True)])
    different: FloatArray = (left != right).reshape(len(left), -1).any(axis=1).astype(np.float64)
    return different


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        return np.array_equal(one, two)
    return bool(one == two)
