"""The one idea of scale: something that maps a function over chunks of votes and adds up the results.

Estimators, EM rounds and prediction are written against `VotePartitions`; where the chunks live
(an array, files, a cluster) is the business of its implementations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from consilience.arrays import as_object_array, hash_priority
from consilience.estimation.protocol import Law
from consilience.exceptions import InvalidVotesError, UnsupportedError
from consilience.partitions.threads import count_threads, map_in_threads, usual_threads
from consilience.progress import working
from consilience.votes import Votes

#: Items per chunk in memory.
ROWS = 1 << 16


class Additive(Protocol):
    """Anything that can be added to its like."""

    def __add__(self, other: Any, /) -> Any: ...


T = TypeVar("T")
A = TypeVar("A", bound=Additive)


@dataclass(frozen=True)
class Part:
    """A chunk of items: their votes, known labels as the votes of one source, and the number of cells skipped.

    Examples
    --------
    >>> from consilience.votes import Votes
    >>> part = Part(Votes.from_matrix([[0, 1], [1, 1]]))
    >>> len(part.votes), part.gold, part.skipped
    (2, None, 0)
    """

    votes: Votes
    gold: Votes | None = None
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.votes)

    def __getitem__(self, key: Any) -> Part:
        return Part(self.votes[key], None if self.gold is None else self.gold[key])


class VotePartitions(ABC):
    """Votes in chunks.

    Examples
    --------
    >>> from consilience.votes import Votes
    >>> votes = InMemoryPartitions.of(Votes.from_matrix([[0, 1]] * 1000), rows=400)
    >>> [len(part.votes) for part in votes.map(lambda part: part)]
    [400, 400, 200]
    """

    #: Whether chunks are elsewhere, so that what is said about every item stays there, too.
    remote: ClassVar[bool] = False

    @property
    @abstractmethod
    def sources(self) -> tuple[str, ...]:
        """Names of the sources, the same in every chunk."""

    @property
    @abstractmethod
    def n_items(self) -> int:
        """Number of items in all chunks."""

    @abstractmethod
    def map(self, function: Callable[[Part], T]) -> Iterator[T]:
        """Apply a function to every chunk, in order."""

    @abstractmethod
    def transform(self, function: Callable[[Part], Part]) -> VotePartitions:
        """Return partitions whose chunks went through `function` once."""

    def reduce(self, function: Callable[[Part], A]) -> A:
        """Apply a function to every chunk and add up what it returns."""
        results = self.map(function)
        try:
            total = next(results)
        except StopIteration:
            raise InvalidVotesError("There are no votes: no chunk holds a single item.") from None
        for result in results:
            total = total + result
        return total

    def sample(self, size: int, seed: int) -> InMemoryPartitions:
        """Return about `size` items in memory, chosen by hashed item id: the same in whatever order or chunks."""
        return InMemoryPartitions.of_parts(list(self.map(chooser(self.n_items, size, seed))))

    def in_memory(self, purpose: str) -> Votes:
        """Return all votes, for a purpose that looks at single items; those on a cluster stay there."""
        if self.remote:
            raise UnsupportedError(
                f"{purpose} single items, and the votes of {type(self).__name__} stay where they are. Pass a sample of "
                "them: votes.sample(50_000, seed=0)."
            )
        return Votes.concatenate(list(self.map(lambda part: part.votes)))

    @property
    def n_skipped(self) -> int:
        """Number of cells that were not labels and were taken for abstentions; takes a pass."""
        return int(self.reduce(lambda part: part.skipped))


def chooser(n_items: int, size: int, seed: int) -> Callable[[Part], Part]:
    """Return what picks about `size` of so many items, chunk by chunk, by hashed item id."""
    share = min(size / max(n_items, 1), 1.0)
    limit = np.uint64(min(int(share * 2**64), 2**64 - 1))

    def choose(part: Part) -> Part:
        return part if share >= 1.0 else part[np.flatnonzero(hash_priority(part.votes.items, seed) < limit)]

    return choose


@dataclass(frozen=True)
class InMemoryPartitions(VotePartitions):
    """Votes in memory, cut into chunks of `rows` items (views, not copies).

    Parameters
    ----------
    workers
        Threads that go over the chunks; -1 for one per processor. The numbers do not depend on it.

    Examples
    --------
    >>> votes = InMemoryPartitions.of(Votes.from_matrix([[0, 1]] * 10), rows=4, workers=2)
    >>> list(votes.map(len))
    [4, 4, 2]
    """

    whole: Part
    rows: int = ROWS
    workers: int = 1

    @classmethod
    def of(cls, votes: Votes, gold: Votes | None = None, rows: int = ROWS, workers: int = 1) -> Self:
        """Return partitions of a table of votes."""
        return cls(Part(votes, gold), rows, count_threads(workers))

    @classmethod
    def suited(cls, votes: Votes, law: Law, gold: Votes | None = None, rows: int | None = None) -> Self:
        """Return partitions as suits a law: chunks of its size, or of `rows`, and threads where it may have them."""
        return cls(Part(votes, gold), rows or law.rows, usual_threads() if law.side_by_side else 1)

    @classmethod
    def of_parts(cls, parts: list[Part]) -> Self:
        """Return partitions of chunks put together."""
        if len(parts) == 1:
            return cls(parts[0])
        known = next((part.gold for part in parts if part.gold is not None), None)
        gold = None if known is None else _stack([part.gold or _unknown(known, part.votes) for part in parts])
        return cls(Part(_stack([part.votes for part in parts]), gold, sum(part.skipped for part in parts)))

    @property
    def sources(self) -> tuple[str, ...]:
        return self.whole.votes.sources

    @property
    def n_items(self) -> int:
        return len(self.whole)

    def map(self, function: Callable[[Part], T]) -> Iterator[T]:
        if self.n_items <= self.rows:
            yield function(self.whole)
            return
        chunks = (self.whole[start : start + self.rows] for start in range(0, self.n_items, self.rows))
        results = map(function, chunks) if self.workers == 1 else map_in_threads(function, chunks, self.workers)
        with working(total=self.n_items) as bar:
            for result in results:
                yield result
                bar.advance(self.rows)

    def transform(self, function: Callable[[Part], Part]) -> InMemoryPartitions:
        return InMemoryPartitions(function(self.whole), self.rows, self.workers)


def _unknown(like: Votes, votes: Votes) -> Votes:
    labels = np.zeros((len(votes), *like.labels.shape[1:]), dtype=like.labels.dtype)
    return replace(like, labels=labels, observed=np.zeros((len(votes), 1), dtype=bool), items=votes.items)


def _stack(tables: list[Votes]) -> Votes:
    """Put chunks of one table below each other; unlike `Votes.concatenate`, ids are kept as they are."""
    labels = [table.labels for table in tables]
    voted = [table.labels for table in tables if table.observed.any()]
    if voted:  # chunks without a vote hold cells of any type
        labels = [
            table.labels if table.observed.any() else np.zeros((len(table), *voted[0].shape[1:]), voted[0].dtype)
            for table in tables
        ]
    if len({part.shape[1:] for part in labels}) > 1:  # padded to different lengths
        labels = [as_object_array(cell for row in part for cell in row).reshape(part.shape[:2]) for part in labels]
    return replace(
        tables[0],
        labels=np.concatenate(labels),
        observed=np.concatenate([table.observed for table in tables]),
        items=np.concatenate([table.items for table in tables]),
    )
