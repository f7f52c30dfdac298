"""Votes with their truth: small simulated tables that the package ships, and readers of public data that it does not.

The small tables are simulated (`tools/make_demo_data.py`), so that the truth is known and nobody's data is used. Public
data is read from a folder that the user has, named by ``folder=`` or by the environment variable ``CONSILIENCE_DATA``;
where it is missing, the error says what it is and where it comes from.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from consilience.arrays import Batch, as_object_array
from consilience.datasets.board_games import BoardGames, load_board_games
from consilience.datasets.crowds import (
    CrowdBoxes,
    CrowdTranslations,
    load_crowd_affect,
    load_crowd_boxes,
    load_crowd_translations,
    load_preflib_dots,
)
from consilience.datasets.folders import data_folder
from consilience.datasets.judges import JudgeRatings, load_asset_judges
from consilience.datasets.movies import Movies, load_movies
from consilience.datasets.orders import read_ranking, spell_ranking
from consilience.datasets.retrieval import Retrieval, load_letor_mq2008
from consilience.datasets.words import word_edit_distance
from consilience.datasets.wrench import WRENCH, WrenchSet, load_wrench
from consilience.label_types import Classes, FiniteMetric, LabelSpace, Metric, Rankings
from consilience.votes import Votes

__all__ = [
    "JAMS",
    "PRODUCT_TREE",
    "TOPICS",
    "WRENCH",
    "BoardGames",
    "CrowdBoxes",
    "CrowdTranslations",
    "Example",
    "JudgeRatings",
    "Movies",
    "Retrieval",
    "WrenchSet",
    "data_folder",
    "load_asset_judges",
    "load_board_games",
    "load_crowd_affect",
    "load_crowd_boxes",
    "load_crowd_translations",
    "load_guests",
    "load_letor_mq2008",
    "load_movies",
    "load_preflib_dots",
    "load_products",
    "load_sentences",
    "load_tickets",
    "load_wrench",
    "read_ranking",
    "spell_ranking",
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
    """A table of votes whose truth is known.

    Parameters
    ----------
    space
        What a label is.
    votes
        Who said what about which item.
    truth
        ``(n_items,)`` the true label of every item.
    """

    space: LabelSpace
    votes: Votes
    truth: Batch


def load_tickets() -> Example:
    """Return 300 support tickets whose topic was voted on by six sources of very different quality.

    Examples
    --------
    >>> load_tickets().votes
    Votes(300 items, 6 sources, 87% observed)
    """
    return _read("tickets.csv", Classes(TOPICS))


def load_products() -> Example:
    """Return 250 products that seven sources put into a taxonomy of 12 nodes.

    Examples
    --------
    >>> example = load_products()
    >>> example.space.distance(example.space.as_batch(["pans"]), example.space.as_batch(["kites"])).tolist()
    [4.0]
    """
    return _read("products.csv", FiniteMetric(list(PRODUCT_TREE)))


def load_sentences() -> Example:
    """Return 80 short sentences as five transcribers wrote them down; the distance counts wrong words.

    Examples
    --------
    >>> str(load_sentences().truth[0])
    'the train to the coast leaves at nine'
    """
    return _read("sentences.csv", Metric(word_edit_distance))


def load_guests() -> Example:
    """Return 150 guests and six guesses of how they rank five jams; one source saw some jams only, one names three.

    Examples
    --------
    >>> example = load_guests()
    >>> example.votes
    Votes(150 items, 6 sources, 97% observed)
    >>> spell_ranking(example.truth[0])
    'pear > lime > kiwi > fig > plum'
    """
    return _read("guests.csv", Rankings(JAMS), read_ranking)


def _read(name: str, space: LabelSpace, parse: Callable[[str], Any] = str) -> Example:
    """Read a wide table: item, one column per source (empty = abstains), truth."""
    text = (files(__name__) / name).read_text(encoding="utf-8")
    (_, *sources, _), *rows = csv.reader(text.splitlines())
    cells = np.empty((len(rows), len(sources)), dtype=object)
    for index, row in enumerate(rows):
        for column, cell in enumerate(row[1:-1]):
            cells[index, column] = parse(cell) if cell else None
    votes = Votes.from_array(cells, sources=sources, items=[row[0] for row in rows])
    return Example(space, votes, as_object_array([parse(row[-1]) for row in rows]))
