"""Texts as words: split, numbered, and put together again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from consilience.arrays import Batch, IntArray

__all__ = ["WordTable", "exact_words", "plain_words"]

#: A word, with what is attached to it by apostrophes.
_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
_APOSTROPHE = re.compile(r"['\u2019]")
_BLANKS = re.compile(r"\s+")


def plain_words(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text as they are compared, in small letters and without punctuation, and as written.

    A written word holds the punctuation around it, and ends with a blank unless the next one is attached to it.

    Examples
    --------
    >>> plain_words("Don't stop, Ann!")
    (['dont', 'stop', 'ann'], ["Don't ", 'stop, ', 'Ann! '])
    >>> plain_words("a well-known end.Then")
    (['a', 'well', 'known', 'end', 'then'], ['a ', 'well-', 'known ', 'end.', 'Then '])
    """
    found = list(_WORD.finditer(text))
    compared = [_APOSTROPHE.sub("", word.group().lower()) for word in found]
    gaps = [text[one.end() : two.start()] for one, two in pairwise(found)]
    gaps = [text[: found[0].start()], *gaps, text[found[-1].end() :] + " "] if found else []
    around = [_BLANKS.split(gap) for gap in gaps]  # what belongs to the word before, and to the one behind
    written = []
    for place, word in enumerate(found):
        before, behind = around[place], around[place + 1]
        lead = before[-1] if len(before) > 1 or place == 0 else ""
        written.append(f"{lead}{word.group()}{behind[0]}{' ' if len(behind) > 1 else ''}")
    return compared, written


def exact_words(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text as they are, and with a blank behind each."""
    words = text.split()
    return words, [f"{word} " for word in words]


@dataclass(frozen=True, eq=False)
class WordTable:
    """Texts, one after the other, as numbers of words."""

    words: IntArray  # (k,) numbers
    starts: IntArray  # (texts + 1,) first word of each text
    names: Sequence[str]  # the words by number, as they are compared
    spellings: Sequence[Sequence[str]]  # the words of each text as written

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

    def text(self, vote: int) -> IntArray:
        """Return the words of one text."""
        return self.words[self.starts[vote] : self.starts[vote + 1]]

    def part(self, first: int, last: int) -> WordTable:
        """Return some of the texts, their words numbered from 0 on in the order in which they come."""
        numbers: dict[int, int] = {}
        begin, end = self.starts[first], self.starts[last]
        words = [numbers.setdefault(word, len(numbers)) for word in self.words[begin:end].tolist()]
        names = [self.names[number] for number in numbers]
        starts = self.starts[first : last + 1] - begin
        return WordTable(np.array(words, dtype=np.int64), starts, names, self.spellings[first:last])

    def spelled(self, text: IntArray, votes: Sequence[int]) -> str:
        """Return words as a text: every word as the first of these votes has it that uses it."""
        known: dict[int, str] = {}
        for vote in votes:
            for word, written in zip(self.text(vote).tolist(), self.spellings[vote], strict=True):
                known.setdefault(word, written)
        return "".join(known[word] for word in text.tolist()).rstrip()
