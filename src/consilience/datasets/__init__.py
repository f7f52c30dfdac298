"""Small example tables of votes with their truth.

They are simulated (`tools/make_demo_data.py`, `tools/make_tutorial_data.py`), so that the truth is known.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from consilience.arrays import Batch, as_object_array
from consilience.exceptions import InvalidInputError, did_you_mean
from consilience.label_types import Classes, FiniteMetric, LabelSpace, Metric, Rankings, register_distance
from consilience.label_types.rankings.labels import order_of_text
from consilience.votes import Votes

__all__ = [
    "JAMS",
    "PRODUCT_TREE",
    "TOPICS",
    "Example",
    "load_guests",
    "load_products",
    "load_sentences",
    "load_tickets",
    "path",
    "word_edit_distance",
]

#: The topics of a support ticket.
TOPICS = ("account", "billing", "delivery", "technical")

#: The jams on the breakfast table.
JAMS = ("fig", "kiwi", "lime", "pear", "plum")

#: The edges of the product taxonomy: (general, special).
PRODUCT_TREE = (
    ("goods", "kitchen"),
    ("goods", "garden"),
    ("goods", "toys"),
    ("kitchen", "pans"),
    ("kitchen", "knives"),
    ("kitchen", "kettles"),
    ("garden", "seeds"),
    ("garden", "spades"),
    ("toys", "puzzles"),
    ("toys", "dolls"),
    ("toys", "kites"),
)


@dataclass(frozen=True, eq=False)
class Example:
    """A table of votes whose truth, one label per item, is known.

    Examples
    --------
    >>> example = load_tickets()
    >>> example.space, len(example.truth)
    (Classes(['account', 'billing', 'delivery', 'technical']), 300)
    """

    space: LabelSpace
    votes: Votes
    truth: Batch


def load_tickets() -> Example:
    """Return 300 support tickets with votes of six sources of very different quality on their topic.

    Examples
    --------
    >>> load_tickets().votes
    Votes(300 items, 6 sources, 87% observed)
    """
    return _read("tickets.csv", Classes(TOPICS))


def load_products() -> Example:
    """Return 250 products with votes of seven sources on their place in a taxonomy of 12 nodes.

    Examples
    --------
    >>> load_products().votes
    Votes(250 items, 7 sources, ...)
    """
    return _read("products.csv", FiniteMetric(list(PRODUCT_TREE)))


def load_sentences() -> Example:
    """Return 80 short sentences with the transcripts of five sources; the distance counts wrong words.

    Examples
    --------
    >>> load_sentences().votes
    Votes(80 items, 5 sources, ...)
    """
    return _read("sentences.csv", Metric(word_edit_distance))


def load_guests() -> Example:
    """Return 150 guests with six guesses of how they rank five jams, two of them partial.

    Examples
    --------
    >>> example = load_guests()
    >>> example.votes
    Votes(150 items, 6 sources, 97% observed)
    >>> example.truth[0]
    ['pear', 'lime', 'kiwi', 'fig', 'plum']
    """
    return _read("guests.csv", Rankings(JAMS), order_of_text)


def path(name: str) -> Path:
    """Return the path of a file of the tutorials.

    ==================================================  ==============================================================
    ``messages.csv``                                    1,300 text messages, spam or not
    ``judge_replies.csv``, ``human_ratings.csv``        what six language models reply when asked to score 200 answers
    ``crowd.csv``, ``crowd_experts.csv``                2,400 answers of 30 workers: which animal is on the picture?
    ``battles.csv``                                     1,000 comparisons of the answers of two models
    ``searches.run``, ``relevance.csv``                 the ten best pages for 40 queries, by five search engines
    ``crossing_ann.json``, ``crossing_bob.json``, ...   boxes of four annotators on 60 images, as COCO files
    ``sleep.csv``                                       when a person fell asleep, according to four sources
    ==================================================  ==============================================================

    Examples
    --------
    >>> from consilience.tables import read_votes
    >>> read_votes(path("crowd.csv"))
    Votes(398 items, 30 sources, 20% observed)
    """
    folder = Path(str(files("consilience.datasets") / "files"))
    there = sorted(file.name for file in folder.iterdir())
    if name not in there:
        raise InvalidInputError(
            f"There is no file {name!r}.{did_you_mean(name, there)} The files are {', '.join(there)}."
        )
    return folder / name


def _read(name: str, space: LabelSpace, parse: Callable[[str], Any] = str) -> Example:
    """Read a wide table: item, one column per source (empty = abstains), truth."""
    text = (files("consilience.datasets") / name).read_text(encoding="utf-8")
    (_, *sources, _), *rows = csv.reader(text.splitlines())
    cells = np.empty((len(rows), len(sources)), dtype=object)
    for index, row in enumerate(rows):
        for column, cell in enumerate(row[1:-1]):
            cells[index, column] = parse(cell) if cell else None
    votes = Votes.from_array(cells, sources=sources, items=[row[0] for row in rows])
    return Example(space, votes, as_object_array([parse(row[-1]) for row in rows]))


@lru_cache(maxsize=2**15)  # a fit computes the same distances several times
def word_edit_distance(left: str, right: str) -> int:
    """Return the least number of words to insert, delete or replace to turn one text into the other.

    Registered as ``"word-edit-distance"``, so models that use it can be saved and loaded.

    Examples
    --------
    >>> word_edit_distance("the cat sat", "a cat sat down")
    2
    """
    if left == right:
        return 0
    # A column of the table of edit distances at a time, after Myers (1999): bits say where it rises and falls by one.
    words, target = left.split(), right.split()
    found: dict[str, int] = {}
    for place, word in enumerate(words):
        found[word] = found.get(word, 0) | 1 << place
    distance, every = len(words), (1 << len(words)) - 1
    last, rises, falls = every ^ every >> 1, every, 0
    for word in target:
        same = found.get(word, 0)
        level = ((same & rises) + rises ^ rises) | same
        right_rises, right_falls = falls | ~(level | rises), rises & level
        distance += bool(right_rises & last) - bool(right_falls & last) if words else 1
        right_rises, right_falls = right_rises << 1 | 1, right_falls << 1
        rises, falls = (right_falls | ~(same | falls | right_rises)) & every, right_rises & (same | falls) & every
    return distance


register_distance("word-edit-distance", word_edit_distance)
