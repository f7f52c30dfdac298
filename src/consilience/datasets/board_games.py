"""Board games as BoardGameGeek lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from consilience.arrays import FloatArray
from consilience.datasets.folders import Origin, data_folder, read_table
from consilience.exceptions import FileFormatError

__all__ = ["BoardGames", "load_board_games"]

ORIGIN = Origin(
    "board_games",
    "the table of BoardGameGeek with one row per game (games_detailed_info.csv)",
    "kaggle.com/datasets/jvanelteren/boardgamegeek-reviews",
)
FILES = ("games_detailed_info.csv", "games_detailed_info.csv.gz", "games_detailed_info.parquet")
FEATURES = (
    "yearpublished",
    "minplayers",
    "maxplayers",
    "playingtime",
    "minplaytime",
    "maxplaytime",
    "minage",
    "owned",
    "trading",
    "wanting",
    "wishing",
    "numcomments",
    "numweights",
    "averageweight",
)
HEURISTICS = ("owned", "trading", "wanting", "wishing", "numcomments")
RATING, RANK = "average", "Board Game Rank"


@dataclass(frozen=True, eq=False)
class BoardGames:
    """Games: what is known about each, the columns that serve as sources, and what is to be found out.

    Attributes
    ----------
    features : array of shape (n, 14)
        The columns that the paper uses.
    feature_names : tuple of str
    rating : array of shape (n,)
        Mean rating of the users, the gold of regression.
    rank : array of shape (n,)
        The site's own ranking, 1 is best, the gold of rankings; not in the order of the ratings.
    sources : dict of name to array
        How many own, trade, want, wish and comment on it: larger is better.
    """

    features: FloatArray
    feature_names: tuple[str, ...]
    rating: FloatArray
    rank: FloatArray
    sources: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(self.rating)


def load_board_games(path: str | Path | None = None) -> BoardGames:
    """Return the games that have a rank, from a table that the user has.

    Parameters
    ----------
    path
        The CSV or Parquet file, or a folder of data sets that contains ``board_games/games_detailed_info.csv``;
        CONSILIENCE_DATA by default. Needed columns are those of the paper: 14 features, ``average`` and
        ``Board Game Rank``; games that are "Not Ranked", or lack a value, are left out.
    """
    table = read_table(_file(path), [*FEATURES, RATING, RANK])
    rank = np.array([_number(value) for value in table[RANK].tolist()])
    features = np.column_stack([table.numbers(name) for name in FEATURES])
    rating = table.numbers(RATING)
    kept = np.isfinite(rank) & np.isfinite(rating) & np.isfinite(features).all(axis=1)
    if kept.sum() < 2:
        raise FileFormatError(
            f"{table.path}: {int(kept.sum())} of {len(kept)} games have a rank and all features. Is it the right file?"
        )
    sources = {name: features[kept, FEATURES.index(name)] for name in HEURISTICS}
    return BoardGames(features[kept], FEATURES, rating[kept], rank[kept], sources)


def _file(path: str | Path | None) -> Path:
    if path is not None and not Path(path).is_dir():
        if not Path(path).is_file():
            raise ORIGIN.missing(Path(path))
        return Path(path)
    folder = data_folder(path) / ORIGIN.name
    for name in FILES:
        if (folder / name).is_file():
            return folder / name
    raise ORIGIN.missing(folder / FILES[0])


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return float("nan")
