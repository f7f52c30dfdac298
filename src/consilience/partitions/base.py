"""Votes in chunks: map a function over the chunks, and add up the results.

Estimators, EM rounds and prediction are written against `VotePartitions`. Its implementations know where the chunks
are: in an array, in files, on a cluster. `Moments` are sums from which alone a model can be fitted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, IntArray, as_object_array, hash_priority, sampled_rows
from consilience.estimation.protocol import Chunk, Law, Statistics
from consilience.exceptions import InvalidVotesError, SourceMismatchError, UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.partitions.threads import count_threads, map_in_threads, usual_threads
from consilience.progress import working
from consilience.tables.encoding import encode, read_gold
from consilience.votes import Votes, as_votes

#: Items per chunk in memory.
ROWS = 1 << 16
#: Items from which a law adapts to the votes.
SAMPLE = 400


class Additive(Protocol):
    """Anything with a sum."""

    def __add__(self, other: Any, /) -> Any: ...


T = TypeVar("T")
A = TypeVar("A", bound=Additive)


@dataclass(frozen=True)
class Part:
    """A chunk of items: their votes, their known labels as the votes of one source, and the number of skipped cells.

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

    #: Whether chunks are on a cluster, so that results for single items stay there.
    remote: ClassVar[bool] = False
    #: Whether labels are written piece by piece, and not as a whole by the engine.
    in_pieces: ClassVar[bool] = True

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
        """Return partitions whose chunks are the results of `function`."""

    def reduce(self, function: Callable[[Part], A]) -> A:
        """Apply a function to every chunk and add up what it returns."""
        results = self.map(function)
        try:
            total = next(results)
        except StopIteration:
            raise InvalidVotesError("There are no votes: all chunks are empty.") from None
        for result in results:
            total = total + result
        return total

    def sample(self, size: int, seed: int) -> InMemoryPartitions:
        """Return about `size` items in memory, chosen by hashed item id, so that order and chunks do not matter."""
        return InMemoryPartitions.of_parts(list(self.map(chooser(self.n_items, size, seed))))

    def in_memory(self, purpose: str) -> Votes:
        """Return all votes, unless they are on a cluster; the error then names the purpose."""
        if self.remote:
            raise UnsupportedError(
                f"{purpose} single items, but the votes of {type(self).__name__} stay where they are. Pass a sample of "
                "them: votes.sample(50_000, seed=0)."
            )
        return Votes.concatenate(list(self.map(lambda part: part.votes)))

    def pieces(self) -> list[Any]:
        """Return one entry per file of labels, which changes with the votes in it; see `partitions.predict_to`."""
        raise without_pieces(self)

    def piece(self, index: int) -> Iterator[Part]:
        """Yield the parts of one of the `pieces`."""
        raise NotImplementedError

    def write_labels(self, labeler: Any, targets: dict[int, Path]) -> Iterator[tuple[int, dict[str, int]]]:
        """Write the labels of some of the pieces to files, and yield the counts."""
        for index, target in targets.items():
            yield index, labeler.write(self.piece(index), target)

    def write_folder(self, labeler: Any, destination: str | Path, *, force: bool) -> Any:
        """Write all labels to a folder, where the engine does so as a whole."""
        raise NotImplementedError

    def label_frame(self, labeler: Any) -> Any:
        """Return a lazy dataframe of labels, on a cluster."""
        raise NotImplementedError

    @property
    def n_skipped(self) -> int:
        """Number of cells that are not labels and count as abstentions; takes one pass."""
        return int(self.reduce(lambda part: part.skipped))


def without_pieces(votes: Any) -> UnsupportedError:
    """Return the error for what has no pieces whose labels could be files."""
    return UnsupportedError(
        f"{type(votes).__name__} does not work with predict_to. Use partitions of consilience.partitions, or "
        "label_table(model, votes) for votes in memory."
    )


def chooser(n_items: int, size: int, seed: int) -> Callable[[Part], Part]:
    """Return a function that picks about `size` of `n_items` items, chunk by chunk, by hashed item id."""
    share = size / max(n_items, 1)
    return lambda part: part if share >= 1.0 else part[sampled_rows(part.votes.items, share, seed)]


@dataclass(frozen=True)
class InMemoryPartitions(VotePartitions):
    """Votes in memory, cut into chunks of `rows` items (views, not copies).

    Parameters
    ----------
    workers
        Number of threads; -1 for one per processor. Results do not depend on it.

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
        """Return partitions that suit a law: with its chunk size, or `rows`, and with threads if it allows them."""
        return cls(Part(votes, gold), rows or law.rows, usual_threads() if law.side_by_side else 1)

    @classmethod
    def of_parts(cls, parts: list[Part]) -> Self:
        """Return partitions of several chunks joined."""
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

    def pieces(self) -> list[Any]:
        chunks = (self.whole.votes[start : start + self.rows] for start in range(0, self.n_items, self.rows))
        return [[votes.labels, votes.observed, votes.items] for votes in chunks]

    def piece(self, index: int) -> Iterator[Part]:
        yield self.whole[index * self.rows : (index + 1) * self.rows]


def _unknown(like: Votes, votes: Votes) -> Votes:
    labels = np.zeros((len(votes), *like.labels.shape[1:]), dtype=like.labels.dtype)
    return replace(like, labels=labels, observed=np.zeros((len(votes), 1), dtype=bool), items=votes.items)


def _stack(tables: list[Votes]) -> Votes:
    """Join chunks of one table; unlike `Votes.concatenate`, this keeps all ids."""
    labels = [table.labels for table in tables]
    voted = [table.labels for table in tables if table.observed.any()]
    if voted:  # chunks without a vote hold cells of any type
        labels = [
            table.labels if table.observed.any() else np.zeros((len(table), *voted[0].shape[1:]), voted[0].dtype)
            for table in tables
        ]
    return replace(
        tables[0],
        labels=_stack_cells(labels),
        observed=np.concatenate([table.observed for table in tables]),
        items=np.concatenate([table.items for table in tables]),
    )


def _stack_cells(tables: list[Batch]) -> Batch:
    """Join tables of cells; cells of different lengths become objects, also those in the fields of records."""
    if len({table.dtype for table in tables}) > 1 and tables[0].dtype.names is not None:
        parts = {name: _stack_cells([table[name] for table in tables]) for name in tables[0].dtype.names}
        kinds: list[Any] = [(name, part.dtype, part.shape[2:]) for name, part in parts.items()]
        records = np.zeros(next(iter(parts.values())).shape[:2], dtype=kinds)
        for name, part in parts.items():
            records[name] = part
        return records
    if len({table.shape[1:] for table in tables}) > 1:  # padded to different lengths
        tables = [as_object_array(cell for row in table for cell in row).reshape(table.shape[:2]) for table in tables]
    return np.concatenate(tables)


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over items from which sources are learned: those of the parts of a table add up to those of the whole.

    Examples
    --------
    >>> from consilience.label_types import Classes
    >>> votes = Votes.from_matrix([[0, 0, 1], [1, 1, -1], [0, 1, 0]])
    >>> whole = Moments.of(votes, Classes(2))
    >>> parts = Moments.of(votes[:1], Classes(2)) + Moments.of(votes[1:], Classes(2))
    >>> whole.n_items, bool((whole.both == parts.both).all())
    (3, True)
    """

    sources: tuple[str, ...]
    sums: Statistics
    law: Law | None = None
    known_items: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))  # hashed ids

    @classmethod
    def zero(cls) -> Moments:
        """Return the neutral element of addition."""
        return cls((), Statistics())

    @classmethod
    def of(cls, votes: object, space: LabelSpace, gold: object = None, law: Law | None = None) -> Moments:
        """Return the moments of votes. Pass the `law` of other moments to get moments that add to them."""
        table = as_votes(votes, space)
        known = read_gold(gold, space, len(table), table)
        encoded = encode(table, space)
        if law is None or law is space.law:
            law = space.law.adapt_in_parts(as_chunk(encoded[:SAMPLE]), len(encoded), 0)
        sums = Statistics()
        for start in range(0, len(encoded), ROWS):
            rows = slice(start, start + ROWS)
            sums = sums + law.statistics(as_chunk(encoded[rows], None if known is None else known[rows]))
        return cls(table.sources, sums, law, known_items(table, known))

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        if not self.sources or not other.sources:
            return other if not self.sources else self
        if self.sources != other.sources:
            raise SourceMismatchError(
                f"Moments of sources {list(self.sources)} and {list(other.sources)} cannot be added. "
                "Take both from the same sources in the same order (votes.select([...]))."
            )
        if self.law is not None and other.law is not None and not self.law.measures_like(other.law):
            raise UnsupportedError(
                "These moments have different label types or are in different coordinates, so they cannot be added. "
                "Take the second with the law of the first: Moments.of(votes, space, law=first.law)."
            )
        known = np.concatenate([self.known_items, other.known_items])
        return Moments(self.sources, self.sums + other.sums, self.law, known)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.sums["items"]) if "items" in self.sums else 0

    @property
    def both(self) -> IntArray:
        """``(m, m)`` numbers of items on which both sources vote; the diagonal has the votes of each."""
        return self.sums["both"]

    @property
    def n_gold(self) -> int:
        """Number of items whose label is known."""
        return int(self.sums["gold_items"]) if "gold_items" in self.sums else 0


def known_items(votes: Votes, gold: Votes | None) -> npt.NDArray[np.uint64]:
    """Return the hashed ids of the items whose label is known."""
    seen = np.zeros(len(votes), dtype=bool) if gold is None else gold.observed[:, 0]
    return hash_priority(votes.items[seen])


def as_chunk(votes: Votes, gold: Votes | None = None) -> Chunk:
    """Return encoded votes as a law sees them."""
    names = np.array(votes.sources, dtype=str)
    by_name = np.lexsort((names, np.char.str_len(names)))
    if gold is None:
        return Chunk(votes.labels, votes.observed, items=votes.items, by_name=by_name)
    return Chunk(votes.labels, votes.observed, gold.labels[:, 0], gold.observed[:, 0], votes.items, by_name)
