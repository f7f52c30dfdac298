"""What can be said about sources before any model: who votes how often, and who agrees with whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_object_array
from consilience.exceptions import InvalidVotesError, UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import InMemoryPartitions, Part, VotePartitions, chooser
from consilience.tables.display import SourceTable
from consilience.tables.encoding import encode, read_gold, votes_for
from consilience.votes import Votes, as_votes

__all__ = ["summarize"]


#: Items on which sources are compared pair by pair.
MAX_ITEMS = 20_000
#: Labels listed under "polarity"; a source that votes more of them is shown by how many.
LISTED = 4
#: Different labels of a source that are told apart where the votes are not in this memory.
MOST_LABELS = 10_000


def summarize(
    votes: Any, space: LabelSpace | None = None, gold: Any = None, *, max_items: int | None = MAX_ITEMS
) -> SourceTable:
    """Return one row per source, before any model.

    ===============  ============================================================================
    votes, coverage  items it votes on, and their share
    overlaps         share of items on which it votes and another source does, too
    conflicts        share of items on which it votes and another source says something else
    cost_to_others   mean cost between its vote and another source's on the same item
    labels           how many different labels it votes
    polarity         which ones, where the space is finite and they are few
    known, true_cost votes on items of known label, and their mean cost to it (with `gold`)
    accuracy         share of them that are right, for finite spaces (with `gold`)
    ===============  ============================================================================

    Where nothing can be said, the cell is None.

    Parameters
    ----------
    votes
        Whatever `LabelModel.fit` takes. Of partitions, sums travel and votes do not; the numbers are the same, but
        a source with more than 10,000 different labels has no count of them.
    space
        What a label is, and what it costs to be wrong. Without it labels are equal or not, at a cost of 0 or 1.
    gold
        Known labels of some items, as for `LabelModel.fit`; needs `space`. Partitions carry their own.
    max_items
        Sources are compared with each other on a sample of about so many items; None for all of them. The
        first three columns, and those that need gold, are always exact.

    Examples
    --------
    >>> from consilience import Classes
    >>> summarize([[0, 0, 1], [1, -1, 1], [1, 0, -1]], Classes(2))
    source    votes  coverage  overlaps  conflicts  cost_to_others  labels  polarity
    source_0      3      100%      100%        67%           0.500       2      0, 1
    source_1      2       67%       67%        67%           0.667       1         0
    source_2      2       67%       67%        33%           0.667       1         1
    """
    if space is not None and not isinstance(space, LabelSpace):
        raise UnsupportedError(f"space={space!r} is not a label space. Pass Classes(k), Scores(), ..., or None.")
    if max_items is not None and (isinstance(max_items, bool) or not isinstance(max_items, int) or max_items < 1):
        raise InvalidVotesError(f"max_items={max_items!r} is not a number of items. Use a whole number, or None.")
    partitions = _partitions(votes, space, gold)
    in_memory = isinstance(partitions, InMemoryPartitions)
    size = partitions.n_items
    choose = chooser(size, size if max_items is None else max_items, 0)
    counts = partitions.reduce(_counter(space, choose, None if in_memory else MOST_LABELS))
    sums, distinct = counts.sums, counts.distinct
    overlaps = sums["overlapping"] / max(1, sums["items"])
    columns: dict[str, list[Any]] = {
        "source": list(partitions.sources),
        "votes": sums["votes"].tolist(),
        "coverage": (sums["votes"] / max(1, sums["items"])).tolist(),
        "overlaps": overlaps.tolist(),
        # The share of overlapping items in conflict comes from the sample, the overlap from all items.
        "conflicts": (sums["conflicts"] / np.maximum(sums["compared"], 1) * overlaps).tolist(),
        "cost_to_others": _means(sums["cost"], sums["pairs"]),
        "labels": [None if labels is None else len(labels) for labels in distinct],
    }
    listed = space is not None and space.n_labels is not None and counts.plain
    if space is not None and listed:
        columns["polarity"] = [_polarity(labels, space) for labels in distinct]
    if "known" in sums:
        columns |= {"known": sums["known"].tolist(), "true_cost": _means(sums["true_cost"], sums["known"])}
        if listed:
            columns["accuracy"] = _means(sums["right"], sums["known"])
    return SourceTable(columns)


def _partitions(votes: Any, space: LabelSpace | None, gold: Any) -> VotePartitions:
    if isinstance(votes, VotePartitions):
        if gold is not None:
            raise InvalidVotesError("Partitions carry their own known labels; do not pass gold= beside them.")
        return votes
    if space is None:
        if gold is not None:
            raise UnsupportedError("gold= needs space=, which says what it costs to be wrong.")
        table = as_votes(votes)
        return InMemoryPartitions.of(table, rows=max(1, len(table)))
    table = votes_for(votes, space)
    truth = None if gold is None else read_gold(gold, space, len(table))
    if gold is not None and truth is None:  # none is known, which the table shall say
        nothing = np.zeros((len(table), 1), dtype=bool)
        truth = replace(table.select(table.sources[:1]), observed=nothing)
    return InMemoryPartitions(Part(table, truth), rows=max(1, len(table)))


def _means(totals: Any, counts: Any) -> list[float | None]:
    return [float(total / count) if count else None for total, count in zip(totals, counts, strict=True)]


def _polarity(codes: Batch | None, space: LabelSpace) -> str:
    if codes is None or len(codes) > LISTED:
        return f"{MOST_LABELS if codes is None else len(codes)} labels{' or more' * (codes is None)}"
    return ", ".join(map(str, space.as_labels(np.sort(codes)).tolist())) if len(codes) else "none"


#: Costs up to this are rounding.
_EQUAL = 1e-12

Cost = Callable[[Batch, Batch], FloatArray]


@dataclass(frozen=True, eq=False)
class _Counts:
    """What is known about some items, and adds up.

    Parameters
    ----------
    sums
        By name: the number of items; and per source how many items it votes on, on how many of them another source
        votes too (of all items, and of the compared ones), conflicts, pairs of votes and their cost; and votes on
        items of known label, their cost to it, and how many are right.
    distinct
        The different labels of each source; None where there are more than `most`.
    plain
        Whether every vote is one label, rather than a row of probabilities.
    """

    sums: dict[str, Any]
    distinct: tuple[Batch | None, ...]
    most: int | None
    plain: bool

    def __add__(self, other: _Counts) -> _Counts:
        distinct = tuple(
            None if left is None or right is None else _at_most(self.most, _union(left, right))
            for left, right in zip(self.distinct, other.distinct, strict=True)
        )
        names = self.sums | other.sums
        sums = {name: self.sums.get(name, 0) + other.sums.get(name, 0) for name in names}
        return _Counts(sums, distinct, self.most, self.plain and other.plain)


def _counter(space: LabelSpace | None, choose: Callable[[Part], Part], most: int | None) -> Callable[[Part], _Counts]:
    """Return what counts a chunk."""

    def count(part: Part) -> _Counts:
        votes = part.votes if space is None else encode(part.votes, space)
        part, observed = replace(part, votes=votes), votes.observed
        sums = {"items": len(votes), "votes": observed.sum(axis=0), "overlapping": _shared(observed)}
        sums |= _compare(choose(part).votes, _differs if space is None else space.cost)
        if space is not None and part.gold is not None:
            sums |= _against_gold(votes, part.gold, space)
        columns = (votes.labels[observed[:, source], source] for source in range(votes.n_sources))
        distinct = tuple(_at_most(most, _distinct(labels)) for labels in columns)
        return _Counts(sums, distinct, most, plain=votes.labels.ndim == 2 or not observed.any())

    return count


def _shared(observed: BoolArray) -> IntArray:
    return np.asarray(observed[observed.sum(axis=1) > 1].sum(axis=0))


def _compare(votes: Votes, cost: Cost) -> dict[str, Any]:
    labels, observed = votes.labels, votes.observed
    disagrees = np.zeros(observed.shape, dtype=bool)
    total, pairs = np.zeros(votes.n_sources), np.zeros(votes.n_sources, dtype=np.int64)
    for a, b in combinations(range(votes.n_sources), 2):
        rows = np.flatnonzero(observed[:, a] & observed[:, b])
        if len(rows):
            apart = cost(labels[rows, a], labels[rows, b])
            total[[a, b]] += apart.sum()
            pairs[[a, b]] += len(rows)
            disagrees[rows[apart > _EQUAL, None], [a, b]] = True
    return {"compared": _shared(observed), "conflicts": disagrees.sum(axis=0), "pairs": pairs, "cost": total}


def _against_gold(votes: Votes, gold: Votes, space: LabelSpace) -> dict[str, Any]:
    known = votes.observed & gold.observed
    total, right = np.zeros(votes.n_sources), np.zeros(votes.n_sources, dtype=np.int64)
    for source in np.flatnonzero(known.any(axis=0)):
        rows = np.flatnonzero(known[:, source])
        cost = space.cost(votes.labels[rows, source], gold.labels[rows, 0])
        total[source], right[source] = cost.sum(), (cost <= _EQUAL).sum()
    return {"known": known.sum(axis=0), "true_cost": total, "right": right}


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
    return np.asarray((left != right).reshape(len(left), -1).any(axis=1), dtype=np.float64)


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        return np.array_equal(one, two)
    return bool(one == two)
