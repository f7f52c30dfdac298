"""Texts as words: split, numbered, and put together again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from consilience.arrays import Batch, IntArray

__all__ = ["WordTable", "plain_words"]

_PUNCTUATION = re.compile(r"[^\w\s]")


def plain_words(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text as they are compared, in small letters and without punctuation, and as written.

    Examples
    --------
    >>> plain_words("Don't stop, Ann!")
    (['dont', 'stop', 'ann'], ["Don't", 'stop,', 'Ann!'])
    """
    written = text.split()
    compared = [_PUNCTUATION.sub("", word.lower()) for word in written]
    kept = [place for place, word in enumerate(compared) if word]
    return [compared[place] for place in kept], [written[place] for place in kept]


def exact_words(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text as they are, twice."""
    words = text.split()
    return words, words


@dataclass(frozen=True, eq=False)
class WordTable:
    """Texts, one after the other, as numbers of words.

    Parameters
    ----------
    words
        ``(k,)`` numbers.
    starts
        ``(texts + 1,)`` first word of each text.
    names
        The words by number, as they are compared.
    spellings
        The words of each text as written.
    """

    words: IntArray
    starts: IntArray
    names: Sequence[str]
    spellings: Sequence[Sequence[str]]

    @classmethod
    def of(cls, texts: Batch, split: Callable[[str], tuple[list[str], list[str]]]) -> WordTable:
        """Split texts into words and number these."""
        numbers: dict[str, int] = {}
        flat: list[int] = []
        starts = [0]
        spellings = []
        for text in texts.tolist():
            compared, written = split(text)
            flat.extend(numbers.setdefault(word, len(numbers)) for word in compared)
            starts.append(len(flat))
            spellings.append(written)
        return cls(np.array(flat, dtype=np.int64), np.array(starts, dtype=np.int64), list(numbers), spellings)

    def spelled(self, text: IntArray, votes: Sequence[int]) -> str:
        """Return words as a text: every word as the first of these votes has it that uses it."""
        known: dict[int, str] = {}
        for vote in votes:
            own = self.words[self.starts[vote] : self.starts[vote + 1]].tolist()
            for word, written in zip(own, self.spellings[vote], strict=True):
                known.setdefault(word, written)
        return " ".join(known[word] for word in text.tolist())
