"""Passes over votes: how a law reaches the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from consilience.arrays import hash_priority, votes_per_item
from consilience.estimation.protocol import SAMPLE_ITEMS, Chunk, Law, Statistics
from consilience.partitions.base import InMemoryPartitions, Part, VotePartitions, as_chunk

__all__ = ["SAMPLE_ROWS", "VotePasses", "keep_sample", "silent_items"]

#: Items per chunk of that sample and of slow label types, so that several threads have work.
SAMPLE_ROWS = 16_384


def _read(part: Part) -> Chunk:
    return as_chunk(part.votes, part.gold)


@dataclass(frozen=True)
class VotePasses:
    """Passes over encoded votes."""

    partitions: VotePartitions  # all votes, or the sample of them that was kept
    n_items: int  # in total
    seed: int
    complete: bool = True  # whether `partitions` holds all items
    drawn: InMemoryPartitions | None = None  # the sample, where it was gathered in an earlier pass
    silent: tuple[str, ...] | None = None  # the first ids without a vote, likewise
    read: Callable[[Part], Chunk] = _read  # what is read from every part

    def of(self, view: Callable[[Chunk], Chunk]) -> VotePasses:
        """Return the same passes over another view of every chunk, such as one field of records."""
        read = self.read  # the function is sent to workers, `self` is not
        return replace(self, drawn=self.kept, read=lambda part: view(read(part)))

    @cached_property
    def sample(self) -> VotePartitions:
        """The seeded sample of items (all of them when there are few), in memory so that rounds over it are quick."""
        if self.drawn is not None:
            return self.drawn
        if isinstance(self.partitions, InMemoryPartitions) and self.partitions.n_items <= SAMPLE_ITEMS:
            return self.partitions
        drawn = self.partitions.sample(SAMPLE_ITEMS, self.seed)
        if not isinstance(self.partitions, InMemoryPartitions):
            return drawn
        # The chunks do not depend on the number of threads, so that results do not either.
        return replace(drawn, rows=min(self.partitions.rows, SAMPLE_ROWS), workers=self.partitions.workers)

    @property
    def kept(self) -> InMemoryPartitions | None:
        """The sample, if it is in memory and so may be kept for later; None where it would have to be read first."""
        return self.sample if isinstance(self.sample, InMemoryPartitions) else None

    @property
    def n_sampled(self) -> int:
        return self.sample.n_items

    def statistics(self, law: Law) -> Statistics:
        """Return the sums of a law over all items."""
        return self.partitions.reduce(lambda part: law.statistics(_read(part)))

    def over_all(self, function: Callable[[Chunk], Statistics]) -> Statistics:
        read = self.read
        return self.partitions.reduce(lambda part: function(read(part)))

    def over_sample(self, function: Callable[[Chunk], Statistics]) -> Statistics:
        read = self.read
        return self.sample.reduce(lambda part: function(read(part)))

    def prepared_sample(self, prepare: Callable[[Chunk], Any]) -> list[Any]:
        """Return the chunks of the sample, each prepared once for rounds that go over them again and again."""
        read = self.read
        return list(self.sample.map(lambda part: prepare(read(part))))

    def items_without_votes(self, count: int) -> tuple[str, ...]:
        """Return the ids of the first few items that nobody voted on."""
        if self.silent is not None:
            return self.silent[:count]
        found: tuple[str, ...] = ()
        for silent in self.partitions.map(lambda part: silent_items(part, count)):
            found = (*found, *silent)[:count]
            if len(found) == count:
                break
        return found

    def small_sample(self, size: int) -> Chunk:
        """Return a few items in one chunk, in an order that does not depend on theirs."""
        part = self.sample.sample(size, self.seed).whole
        order = np.argsort(hash_priority(part.votes.items, self.seed), kind="stable")
        # The sample only holds items with small hashes, so more of them pass the same threshold.
        return self.read(part[order[: 2 * size]])


def silent_items(part: Part, count: int) -> tuple[str, ...]:
    """Return the ids of the first few items of a chunk that nobody voted on."""
    rows = np.flatnonzero(votes_per_item(part.votes.observed) == 0)[:count]
    return tuple(str(item) for item in part.votes.items[rows].tolist())


def keep_sample(kept: InMemoryPartitions | None, added: VotePartitions, n_before: int, seed: int) -> InMemoryPartitions:
    """Keep a bounded sample of all items seen so far; every one of them has the same chance to be in it."""
    share = SAMPLE_ITEMS / (n_before + added.n_items)

    def thin(part: Part) -> Part:  # a threshold on hashed ids: items that were dropped before would be dropped again
        return part if share >= 1.0 else InMemoryPartitions(part).sample(round(share * len(part)), seed).whole

    def choose(part: Part) -> Part:
        votes = part.votes
        if votes.items.dtype.kind in "iu":  # rows of different calls may share their default ids
            votes = replace(votes, items=votes.items + n_before)
        return thin(replace(part, votes=votes))

    old = [] if kept is None else [thin(kept.whole)]
    return InMemoryPartitions.of_parts([*old, *added.map(choose)])
