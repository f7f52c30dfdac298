"""What can be said about sources before any model: who votes how often, and who agrees with whom."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from consilience.arrays import Batch
from consilience.exceptions import InvalidVotesError, UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.labeling.counts import VoteCounts, counter
from consilience.partitions.base import InMemoryPartitions, Part, VotePartitions, chooser
from consilience.tables.display import SourceTable
from consilience.tables.encoding import read_gold, read_votes
from consilience.votes import as_votes

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
    counts = partitions.reduce(counter(space, choose, None if in_memory else MOST_LABELS))
    overlaps = counts.overlapping / max(1, counts.items)
    columns: dict[str, list[Any]] = {
        "source": list(partitions.sources),
        "votes": counts.votes.tolist(),
        "coverage": (counts.votes / max(1, counts.items)).tolist(),
        "overlaps": overlaps.tolist(),
        # The share of overlapping items in conflict comes from the sample, the overlap from all items.
        "conflicts": (counts.conflicts / np.maximum(counts.compared, 1) * overlaps).tolist(),
        "cost_to_others": _means(counts.cost, counts.pairs),
        "labels": [None if labels is None else len(labels) for labels in counts.distinct],
    }
    listed = space is not None and space.n_labels is not None and counts.plain
    if space is not None and listed:
        columns["polarity"] = [_polarity(labels, space) for labels in counts.distinct]
    if counts.known is not None:
        columns |= _against_gold(counts, with_accuracy=listed)
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
    table = read_votes(votes, space)
    truth = None if gold is None else read_gold(gold, space, len(table))
    if gold is not None and truth is None:  # none is known, which the table shall say
        nothing = np.zeros((len(table), 1), dtype=bool)
        truth = replace(table.select(table.sources[:1]), observed=nothing)
    return InMemoryPartitions(Part(table, truth), rows=max(1, len(table)))


def _means(totals: Any, counts: Any) -> list[float | None]:
    return [float(total / count) if count else None for total, count in zip(totals, counts, strict=True)]


def _against_gold(counts: VoteCounts, *, with_accuracy: bool) -> dict[str, list[Any]]:
    known: Any = counts.known
    columns: dict[str, list[Any]] = {"known": known.tolist(), "true_cost": _means(counts.true_cost, known)}
    return columns | ({"accuracy": _means(counts.right, known)} if with_accuracy else {})


def _polarity(codes: Batch | None, space: LabelSpace) -> str:
    if codes is None or len(codes) > LISTED:
        return f"{MOST_LABELS if codes is None else len(codes)} labels{' or more' * (codes is None)}"
    return ", ".join(map(str, space.as_labels(np.sort(codes)).tolist())) if len(codes) else "none"
