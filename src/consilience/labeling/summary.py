"""What can be said about sources before any model: who votes how often, and who agrees with whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray, IntArray, as_object_array, is_null
from consilience.exceptions import InvalidVotesError, UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.label_types.codes import plain_value
from consilience.partitions.base import InMemoryPartitions, Part, VotePartitions, chooser
from consilience.tables.cells import same_label, spelled_out
from consilience.tables.display import SourceTable
from consilience.tables.encoding import encode, read_gold
from consilience.votes import Votes, as_votes

#: Items on which sources are compared pair by pair.
MAX_ITEMS = 20_000
#: Labels listed under "polarity". For a source with more of them, their number is shown.
LISTED = 4
#: Largest number of different labels counted per source in partitions.
MOST_LABELS = 10_000
#: Costs up to this are rounding.
EQUAL = 1e-12


def buckets(votes: Any, gold: Any, function: str, space: LabelSpace | None = None) -> dict[tuple[Any, Any], IntArray]:
    """Return the rows in which an item of each known label got each vote of one source; None where it abstains.

    `gold` holds one known label per item, None where it is unknown. Votes for a wrong label show what to improve.
    `space` is needed where names are stored as codes, as `apply` does if it is told the space.

    Examples
    --------
    >>> votes = Votes.from_matrix([["spam", "ham"], ["spam", "?"], ["ham", "ham"]], "?", sources=["link", "short"])
    >>> buckets(votes, ["spam", "ham", "ham"], "link")
    {('spam', 'spam'): array([0]), ('ham', 'spam'): array([1]), ('ham', 'ham'): array([2])}
    """
    table = as_votes(votes).select([function])
    known = as_object_array(gold).tolist()
    if len(known) != len(table):
        raise InvalidVotesError(
            f"gold has {len(known)} labels for {len(table)} items. Give one per item, None where it is unknown."
        )
    said = spelled_out(table.labels, table.observed, space, table.spelling)[:, 0].tolist()
    rows: dict[tuple[Any, Any], list[int]] = {}
    for row, (label, vote, seen) in enumerate(zip(known, said, table.observed[:, 0].tolist(), strict=True)):
        if not is_null(label):
            rows.setdefault((plain_value(label), plain_value(vote) if seen else None), []).append(row)
    return {key: np.array(own, dtype=np.int64) for key, own in rows.items()}


def summarize(
    votes: Any, space: LabelSpace | None = None, gold: Any = None, *, max_items: int | None = MAX_ITEMS
) -> SourceTable:
    """Return one row per source, before any model.

    ================  ============================================================================
    votes, coverage   items it votes on, and their share
    overlaps          share of items on which it votes and another source does, too
    conflicts         share of items on which it votes and another source votes otherwise
    cost_to_others    mean cost between its vote and another source's on the same item
    labels            number of different labels it votes for
    polarity          these labels, if the space is finite and they are few
    known, true_cost  votes on items of known label, and their mean cost to it (with `gold`)
    accuracy          share of them that are right, for finite spaces (with `gold`)
    ================  ============================================================================

    Unknown values are None.

    Parameters
    ----------
    votes
        Anything that `LabelModel.fit` accepts. For partitions, only sums are transferred. The numbers are the same, but
        a source with more than 10,000 different labels has no count of them.
    space
        The label type, which defines the cost of an error. Without it, equal labels cost 0 and others 1.
    gold
        Known labels of some items, as for `LabelModel.fit`; needs `space`. Partitions carry their own.
    max_items
        Sources are compared with each other on a sample of about this many items; None for all items. The
        first three columns, and those that need gold, are always exact.

    Examples
    --------
    >>> from consilience import Classes
    >>> summarize([[0, 0, 1], [1, -1, 1], [1, 0, -1]], Classes(2))
    source    votes  coverage  overlaps  conflicts  cost_to_others  labels  polarity
    source_0      3      100%      100%        67%            0.50       2      0, 1
    source_1      2       67%       67%        67%            0.67       1         0
    source_2      2       67%       67%        33%            0.67       1         1
    """
    if space is not None and not isinstance(space, LabelSpace):
        raise UnsupportedError(f"space={space!r} is not a label type. Pass Classes(k), Scores(), ..., or None.")
    if max_items is not None and (isinstance(max_items, bool) or not isinstance(max_items, int) or max_items < 1):
        raise InvalidVotesError(f"max_items={max_items!r} is not a number of items. Use a whole number, or None.")
    most: int | None = None
    if isinstance(votes, VotePartitions):
        if gold is not None:
            raise InvalidVotesError("Partitions carry their own known labels; do not pass gold= as well.")
        partitions, most = votes, MOST_LABELS
    else:
        if space is None and gold is not None:
            raise UnsupportedError("gold= needs space=, which defines what an error costs.")
        table = as_votes(votes) if space is None else as_votes(votes, space)
        truth = None if space is None else read_gold(gold, space, len(table))
        if gold is not None and truth is None:  # no label is known, and the table shows that
            nothing = np.zeros((len(table), 1), dtype=bool)
            truth = replace(table.select(table.sources[:1]), observed=nothing)
        partitions = InMemoryPartitions(Part(table, truth), rows=max(1, len(table)))
    size = partitions.n_items
    counts = partitions.reduce(_counter(space, chooser(size, size if max_items is None else max_items, 0), most))
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


def _means(totals: Any, counts: Any) -> list[float | None]:
    return [float(total / count) if count else None for total, count in zip(totals, counts, strict=True)]


def _polarity(codes: Batch | None, space: LabelSpace) -> str:
    if codes is None or len(codes) > LISTED:
        return f"{MOST_LABELS if codes is None else len(codes)} labels{' or more' * (codes is None)}"
    return ", ".join(map(str, space.as_labels(np.sort(codes).astype(int)).tolist())) if len(codes) else "none"


@dataclass(frozen=True, eq=False)
class _Counts:
    """What is known about some items, and adds up.

    `sums` has the number of items, and per source how many votes it casts, where another source votes too (of all
    items, and of the compared ones), conflicts, pairs of votes and their cost, and what is known of it by gold.
    `distinct` has the different labels of each source, None where there are too many; `plain` says that no vote is a
    row of probabilities.
    """

    sums: dict[str, Any]
    distinct: tuple[Batch | None, ...]
    plain: bool

    def __add__(self, other: _Counts) -> _Counts:
        distinct = tuple(
            None
            if left is None or right is None
            else _distinct(as_object_array([*left.tolist(), *right.tolist()]), MOST_LABELS)
            for left, right in zip(self.distinct, other.distinct, strict=True)
        )
        sums = {name: self.sums.get(name, 0) + other.sums.get(name, 0) for name in self.sums | other.sums}
        return _Counts(sums, distinct, self.plain and other.plain)


def _counter(space: LabelSpace | None, choose: Callable[[Part], Part], most: int | None) -> Callable[[Part], _Counts]:
    """Return what counts a chunk."""

    def count(part: Part) -> _Counts:
        votes = part.votes if space is None else encode(part.votes, space)
        observed, m = votes.observed, votes.n_sources
        chosen = choose(replace(part, votes=votes)).votes
        cost, pairs = np.zeros(m), np.zeros(m, dtype=np.int64)
        disagrees = np.zeros(chosen.observed.shape, dtype=bool)
        for a, b, rows, apart in costs_between(chosen, space):
            cost[[a, b]] += apart.sum()
            pairs[[a, b]] += len(rows)
            disagrees[rows[apart > EQUAL, None], [a, b]] = True
        sums = {"items": len(votes), "votes": observed.sum(axis=0), "cost": cost, "pairs": pairs}
        sums["conflicts"] = disagrees.sum(axis=0)
        for name, seen in (("overlapping", observed), ("compared", chosen.observed)):
            sums[name] = seen[seen.sum(axis=1) > 1].sum(axis=0)
        if space is not None and part.gold is not None:
            known = observed & part.gold.observed
            sums |= {"known": known.sum(axis=0), "true_cost": np.zeros(m), "right": np.zeros(m, dtype=np.int64)}
            for source in np.flatnonzero(known.any(axis=0)):
                rows = np.flatnonzero(known[:, source])
                apart = space.cost(votes.labels[rows, source], part.gold.labels[rows, 0])
                sums["true_cost"][source], sums["right"][source] = apart.sum(), (apart <= EQUAL).sum()
        distinct = tuple(_distinct(votes.labels[observed[:, source], source], most) for source in range(m))
        return _Counts(sums, distinct, plain=votes.labels.ndim == 2 or not observed.any())

    return count


def costs_between(votes: Votes, space: LabelSpace | None) -> Iterator[tuple[int, int, IntArray, FloatArray]]:
    """Yield every two sources that meet, the items on which they do, and the cost between their votes there.

    The votes are encoded; without a space labels are equal or not, at a cost of 0 or 1.
    """
    for a, b in combinations(range(votes.n_sources), 2):
        rows = np.flatnonzero(votes.observed[:, a] & votes.observed[:, b])
        if len(rows):
            left, right = votes.labels[rows, a], votes.labels[rows, b]
            yield a, b, rows, _differs(left, right) if space is None else space.cost(left, right)


def _differs(left: Batch, right: Batch) -> FloatArray:
    if left.dtype == object:
        return 1.0 - np.fromiter(map(same_label, left, right), dtype=np.float64, count=len(left))
    return np.asarray((left != right).reshape(len(left), -1).any(axis=1), dtype=np.float64)


def _distinct(labels: Batch, most: int | None) -> Batch | None:
    """Return the different labels, None if there are more than `most`; unhashable objects as their text."""
    if labels.dtype != object:
        found: Batch = np.unique(labels) if labels.ndim == 1 else np.unique(labels, axis=0)
    else:
        values = labels.tolist()
        try:
            found = as_object_array(dict.fromkeys(values))
        except TypeError:
            found = as_object_array(dict.fromkeys(map(str, values)))
    return found if most is None or len(found) <= most else None
