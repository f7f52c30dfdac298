"""Moments: additive statistics of votes. A model can be fitted on them alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from consilience.arrays import IntArray, hash_priority
from consilience.estimation.protocol import Chunk, Law, Statistics
from consilience.exceptions import SourceMismatchError, UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.tables.encoding import encode, read_gold, votes_for
from consilience.votes import Votes

#: Items per chunk of `Moments.of`.
ROWS = 1 << 16
#: Items that show a law what it cannot know before any vote.
SAMPLE = 400


@dataclass(frozen=True, eq=False)
class Moments:
    """Statistics that a law takes of votes: those of the parts of a table add up to those of the whole.

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
        return cls((), Statistics.zero())

    @classmethod
    def of(cls, votes: object, space: LabelSpace, gold: object = None, law: Law | None = None) -> Moments:
        """Return the moments of a table of votes, by the law that was adapted to other votes before if it is given."""
        table = votes_for(votes, space)
        known = read_gold(gold, space, len(table), table)
        encoded = encode(table, space)
        own = space.law
        taker = law
        if taker is None or taker is own:
            taker = own.adapt_in_parts(as_chunk(encoded[:SAMPLE]), len(encoded), 0)
        sums = Statistics.zero()
        for start in range(0, len(encoded), ROWS):
            rows = slice(start, start + ROWS)
            sums = sums + taker.statistics(as_chunk(encoded[rows], None if known is None else known[rows]))
        return cls(table.sources, sums, taker, known_items(table, known))

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        if not self.sources or not other.sources:
            return other if not self.sources else self
        if self.sources != other.sources:
            raise SourceMismatchError(
                f"Moments of sources {list(self.sources)} and {list(other.sources)} do not add up. "
                "Take both from the same sources in the same order (votes.select([...]))."
            )
        if self.law is not None and other.law is not None and not self.law.measures_like(other.law):
            raise UnsupportedError(
                "These moments are of different label types or in different coordinates and do not add up. "
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
        """``(m, m)``: on how many items two sources vote; the diagonal counts the votes of each."""
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
