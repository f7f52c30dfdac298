"""What can be said about sources before any model: who votes how often, and who agrees with whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, hash_priority
from consilience.encoding import encode, read_gold, read_votes
from consilience.exceptions import InvalidVotesError, UnsupportedError
from consilience.io.display import SourceTable
from consilience.spaces.base import LabelSpace
from consilience.votes import Votes, as_votes

__all__ = ["summarize"]

#: Items on which sources are compared pair by pair.
MAX_ITEMS = 20_000
#: Labels listed under "polarity"; a source that votes more of them is shown by how many.
LISTED = 4
_EQUAL = 1e-12

Cost = Callable[[Batch, Batch], FloatArray]


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
        Whatever `LabelModel.fit` takes.
    space
        What a label is, and what it costs to be wrong. Without it labels are equal or not, at a cost of 0 or 1.
    gold
        Known labels of some items, as for `LabelModel.fit`; needs `space`.
    max_items
        Sources are compared with each other on a sample of at most so many items; None for all of them. The
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
    if space is None:
        if gold is not None:
            raise UnsupportedError("gold= needs space=, which says what it costs to be wrong.")
        table = as_votes(votes)
        cost: Cost = _differs
    else:
        table = encode(read_votes(votes, space), space)
        cost = space.cost
    count = table.observed.sum(axis=0)
    overlaps = _overlaps(table.observed)
    conflicts, others = _compare(_sample(table, max_items), cost)
    columns: dict[str, list[Any]] = {
        "source": list(table.sources),
        "votes": count.tolist(),
        "coverage": table.coverage().tolist(),
        "overlaps": overlaps.tolist(),
        # The share of overlapping items in conflict comes from the sample, the overlap from all items.
        "conflicts": (conflicts * overlaps).tolist(),
        "cost_to_others": others,
        "labels": [_distinct(table.labels[table.observed[:, source], source]) for source in range(table.n_sources)],
    }
    if space is not None and space.n_labels is not None and table.labels.ndim == 2:
        columns["polarity"] = [_polarity(table, source, space) for source in range(table.n_sources)]
    if space is not None and gold is not None:
        columns |= _against_gold(table, space, gold)
    return SourceTable(columns)


def _sample(votes: Votes, max_items: int | None) -> Votes:
    if max_items is None or len(votes) <= max_items:
        return votes
    chosen = np.argpartition(hash_priority(votes.items), max_items)[:max_items]
    return votes[np.sort(chosen)]


def _overlaps(observed: BoolArray) -> FloatArray:
    several = observed.sum(axis=1) > 1
    shared: FloatArray = (observed & several[:, None]).sum(axis=0) / max(1, len(observed))
    return shared


def _compare(votes: Votes, cost: Cost) -> tuple[FloatArray, list[float | None]]:
    """Return, per source, the share of overlapping items in conflict, and the mean cost to other votes."""
    labels, observed = votes.labels, votes.observed
    m = votes.n_sources
    disagrees = np.zeros(observed.shape, dtype=bool)
    total, pairs = np.zeros(m), np.zeros(m)
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
    shared = (observed & (observed.sum(axis=1) > 1)[:, None]).sum(axis=0)
    conflicts = disagrees.sum(axis=0) / np.maximum(shared, 1)
    return conflicts, [float(total[s] / pairs[s]) if pairs[s] else None for s in range(m)]


def _against_gold(votes: Votes, space: LabelSpace, gold: Any) -> dict[str, list[Any]]:
    truth = read_gold(gold, space, len(votes))
    known: list[int] = []
    costs: list[float | None] = []
    right: list[float | None] = []
    for source in range(votes.n_sources):
        seen = votes.observed[:, source] & (False if truth is None else truth.observed[:, 0])
        rows = np.flatnonzero(seen)
        known.append(len(rows))
        if truth is None or len(rows) == 0:
            costs.append(None)
            right.append(None)
            continue
        cost = space.cost(votes.labels[rows, source], truth.labels[rows, 0])
        costs.append(float(cost.mean()))
        right.append(float((cost <= _EQUAL).mean()))
    columns: dict[str, list[Any]] = {"known": known, "true_cost": costs}
    return columns | ({"accuracy": right} if space.n_labels is not None and votes.labels.ndim == 2 else {})


def _distinct(labels: Batch) -> int:
    if labels.dtype != object:
        return len(np.unique(labels) if labels.ndim == 1 else np.unique(labels, axis=0))
    values = labels.tolist()
    try:
        return len(set(values))
    except TypeError:
        return len({repr(value) for value in values})


def _polarity(votes: Votes, source: int, space: LabelSpace) -> str:
    codes = np.unique(votes.labels[votes.observed[:, source], source])
    if len(codes) > LISTED:
        return f"{len(codes)} labels"
    return ", ".join(map(str, space.as_labels(codes).tolist())) or "none"


def _differs(left: Batch, right: Batch) -> FloatArray:
    if left.dtype == object:
        return np.array([0.0 if _same(one, two) else 1.0 for one, two in zip(left, right, strict=True)])
    different: FloatArray = (left != right).reshape(len(left), -1).any(axis=1).astype(np.float64)
    return different


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        return np.array_equal(one, two)
    return bool(one == two)
