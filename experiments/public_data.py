"""Readers of public data sets in the folder that ``CONSILIENCE_DATA`` or ``folder=`` names.

The data sets are not shipped. If one is missing, the error says what it is and where to get it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

import consilience as cs

VARIABLE = "CONSILIENCE_DATA"
Folder = str | Path | None
TextArray = npt.NDArray[np.str_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: What each data set is, and where it comes from, by the name of its folder.
_ORIGINS = {
    "board_games": (
        "the table of BoardGameGeek with one row per game (games_detailed_info.csv)",
        "kaggle.com/datasets/jvanelteren/boardgamegeek-reviews",
    ),
    "movies": (
        "the paper's table of 3,252 films with ratings of TMDb, IMDb, Rotten Tomatoes and MovieLens",
        "data/movies.csv of github.com/SprocketLab/universalizing-weak-supervision, as movies.parquet",
    ),
    "letor_mq2008": (
        "LETOR 4.0, MQ2008: 15,211 documents for 784 queries with 46 features and relevance",
        "Microsoft Research (LETOR 4.0, MQ2008 supervised ranking, S1 to S5), as mq2008.parquet with named columns",
    ),
    "crowd_affect": (
        "7,000 ratings of emotions in 100 headlines by 38 crowd workers (Snow et al. 2008)",
        "github.com/Praznat/annotationmodeling (data/snow_affect), as affect.parquet",
    ),
    "preflib_dots": (
        "3,183 orders of four pictures by the number of dots on them (Mao, Procaccia and Chen 2013)",
        "github.com/PrefLib/PrefLib-Data (00024 - dots), as votes.csv.gz",
    ),
    "asset_judges": (
        "4,500 ratings of text simplifications by people and by 11 language models",
        "github.com/SprocketLab/CARE (data/score/asset.csv and judge_outputs), as ratings.parquet",
    ),
    "wrench": (
        "votes of labeling functions of the WRENCH benchmark",
        "github.com/JieyuZ2/wrench, one <name>.npz with L_<split>, y_<split> and label_names",
    ),
}


class MissingDataError(cs.exceptions.ConsilienceError, FileNotFoundError):
    """A data set is not where it was looked for."""


def data_folder(folder: Folder = None) -> Path:
    """Return the folder of public data sets: the given one, or the one that CONSILIENCE_DATA names."""
    name = folder if folder is not None else os.environ.get(VARIABLE)
    if not name:
        raise MissingDataError(
            f"{VARIABLE} is not set. Set it to the folder that holds the data sets, one subfolder each, or pass "
            "folder=."
        )
    path = Path(name)
    if not path.is_dir():
        said = f"folder={str(folder)!r}" if folder is not None else f"{VARIABLE}={name!r}"
        raise MissingDataError(f"{said} is not a folder. Name the one that holds the data sets, one subfolder each.")
    return path


def _find(data: str, *candidates: Path) -> Path:
    """Return the first file of a data set that is there, or say where it comes from."""
    for path in candidates:
        if path.is_file():
            return path
    what, where = _ORIGINS[data]
    raise MissingDataError(
        f"{candidates[0]} is missing: {what}. It is not shipped with the package, as its license is its owner's. "
        f"Get it from {where}, and put it there."
    )


@dataclass(frozen=True, eq=False)
class _Table:
    """Columns of a file as arrays."""

    columns: dict[str, npt.NDArray]
    path: Path

    def __getitem__(self, name: str) -> npt.NDArray:
        return self.columns[name]

    def numbers(self, name: str) -> FloatArray:
        try:
            return self.columns[name].astype(np.float64)
        except (TypeError, ValueError):
            raise cs.exceptions.FileFormatError(
                f"{self.path}: the column {name!r} does not hold numbers. Is it the right file?"
            ) from None

    def matrix(self, names: Sequence[str]) -> FloatArray:
        return np.column_stack([self.numbers(name) for name in names])

    def integers(self, name: str) -> IntArray:
        return self[name].astype(np.int64)

    def text(self, name: str) -> TextArray:
        return self[name].astype(str)


def _read(data: str, folder: Folder, file: str, columns: Sequence[str], rows: int) -> _Table:
    """Read a file of a data set that has so many rows; a CSV file of the same name will do."""
    path = data_folder(folder) / data / file
    table = _read_table(_find(data, path, path.with_suffix(".csv")), columns)
    _check_size(table.path, len(next(iter(table.columns.values()))), "rows", rows)
    return table


def _read_table(path: Path, columns: Sequence[str]) -> _Table:
    """Read a Parquet or CSV file, maybe compressed, and check that it has the columns."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        found = parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    except (pa.ArrowException, OSError) as error:
        raise cs.exceptions.FileFormatError(f"{path} cannot be read as a table: {error}") from None
    missing = [name for name in columns if name not in found.column_names]
    if missing:
        raise cs.exceptions.FileFormatError(
            f"{path} has no column {missing[0]!r}. Expected are {', '.join(columns)}; it has "
            f"{', '.join(found.column_names[:20])}{', ...' if len(found.column_names) > 20 else ''}."
        )
    return _Table({name: found.column(name).to_numpy(zero_copy_only=False) for name in found.column_names}, path)


def _check_size(where: object, found: int, what: str, expected: int) -> None:
    if found != expected:
        raise cs.exceptions.FileFormatError(
            f"{where} has {found} {what}, not {expected}. Is it complete? Get it again."
        )


_GAME_SOURCES = ("owned", "trading", "wanting", "wishing", "numcomments")
#: The features of a board game that the paper uses.
FEATURES = (
    *("yearpublished", "minplayers", "maxplayers", "playingtime", "minplaytime", "maxplaytime", "minage"),
    *_GAME_SOURCES,
    *("numweights", "averageweight"),
)


@dataclass(frozen=True, eq=False)
class BoardGames:
    """Games with the features that the paper uses, the mean rating of the users, and the site's own rank, 1 is best.

    The sources are how many own, trade, want, wish for and comment on it: larger is better. Rating and rank are the
    gold of regression and of rankings; the rank is not in the order of the ratings.
    """

    features: FloatArray
    feature_names: tuple[str, ...]
    rating: FloatArray
    rank: FloatArray
    sources: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(self.rating)


def load_board_games(path: Folder = None) -> BoardGames:
    """Return the games that have a rank, from a table that the user has.

    `path` is the CSV or Parquet file, or a folder of data sets that contains ``bgg/bgg.parquet`` (a table of 2015) or
    ``board_games/games_detailed_info.csv`` (that of the paper). The table needs the columns of the paper: 14 features,
    ``average`` and ``Board Game Rank``, or ``rank`` for short. Games without a rank, or without some value, are left
    out.
    """
    if path is not None and not Path(path).is_dir():
        candidates = [Path(path)]
    else:
        folder = data_folder(path)
        start = folder / "board_games" / "games_detailed_info"
        candidates = [Path(f"{start}{ending}") for ending in (".csv", ".csv.gz", ".parquet")]
        candidates.append(folder / "bgg" / "bgg.parquet")
    found = _find("board_games", *candidates)
    ranked_by = "rank" if found.name == "bgg.parquet" else "Board Game Rank"
    table = _read_table(found, [*FEATURES, "average", ranked_by])
    ranks = table[ranked_by].astype(str)
    rank = np.array([float(value) if value.replace(".", "", 1).isdigit() else np.nan for value in ranks])
    features, rating = table.matrix(FEATURES), table.numbers("average")
    kept = np.isfinite(rank) & np.isfinite(rating) & np.isfinite(features).all(axis=1)
    if kept.sum() < 2:
        raise cs.exceptions.FileFormatError(
            f"{table.path}: {int(kept.sum())} of {len(kept)} games have a rank and all features. Is it the right file?"
        )
    sources = {name: features[kept, FEATURES.index(name)] for name in _GAME_SOURCES}
    return BoardGames(features[kept], FEATURES, rating[kept], rank[kept], sources)


_TMDB_RATING = "vote_average"
#: What a rating is multiplied by to be on 0 to 10.
_GOOD_RATINGS = {"imdb_rating": 1.0, "tomato_user_rating": 2.0, "mv_lens_avg_rating": 2.0}
_POOR_RATINGS = ("popularity", "revenue", "vote_count")
_MOVIE_IDS = ("imdbId", "movieId", "tmdbId")


@dataclass(frozen=True, eq=False)
class Movies:
    """Films: what is known about each, TMDb's mean rating, and the columns that serve as sources.

    The features are all columns but ids, TMDb's rating and the three good sources, which are other ratings on 0 to 10.
    The poor ones, which say little about quality, are among them. The gold is TMDb's rating, 0 to 10.
    """

    features: FloatArray
    feature_names: tuple[str, ...]
    rating: FloatArray
    good: Mapping[str, FloatArray]
    poor: Mapping[str, FloatArray]
    #: TMDb's id.
    identifier: IntArray

    def __len__(self) -> int:
        return len(self.rating)

    @property
    def sources(self) -> dict[str, FloatArray]:
        """The good and the poor ones."""
        return {**self.good, **self.poor}

    def without_features(self, *names: str) -> Movies:
        """Return the films without some features, such as those that serve as sources."""
        kept = [index for index, name in enumerate(self.feature_names) if name not in names]
        left = tuple(self.feature_names[index] for index in kept)
        return replace(self, features=self.features[:, kept], feature_names=left)


def load_movies(folder: Folder = None, *, duplicates: bool = False) -> Movies:
    """Return the films of ``movies/movies.parquet``; `duplicates` keeps both copies of 64 films, as the paper does."""
    columns = [_TMDB_RATING, *_GOOD_RATINGS, *_POOR_RATINGS, *_MOVIE_IDS]
    table = _read("movies", folder, "movies.parquet", columns, 3252)
    identifier = table.integers("tmdbId")
    rows = np.arange(len(identifier)) if duplicates else np.sort(np.unique(identifier, return_index=True)[1])
    names = tuple(name for name in table.columns if name not in (_TMDB_RATING, *_GOOD_RATINGS, *_MOVIE_IDS))
    return Movies(
        table.matrix(names)[rows],
        names,
        table.numbers(_TMDB_RATING)[rows],
        {name: scale * table.numbers(name)[rows] for name, scale in _GOOD_RATINGS.items()},
        {name: table.numbers(name)[rows] for name in _POOR_RATINGS},
        identifier[rows],
    )


_LETOR_KEYS = ("qid", "docid", "relevance", "fold")
#: The retrieval models that stand in for those of the paper.
_LETOR_SOURCES = (
    *("bm25_whole", "bm25_body", "bm25_title", "lmir_abs_whole", "lmir_dir_whole"),
    *("lmir_jm_whole", "tfidf_whole", "tf_whole", "bm25_anchor", "lmir_jm_title"),
)


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Documents found for queries, one row each, those of a query together, with the features that engines rank by.

    Relevance, the gold, is 0, 1 or 2; all documents of a query are in the same one of five folds. Each of the 46
    features is between 0 and 1 within its query; ten of them, the sources, rank documents by themselves.
    """

    query: IntArray
    relevance: IntArray
    fold: IntArray
    features: FloatArray
    feature_names: tuple[str, ...]
    sources: tuple[str, ...] = _LETOR_SOURCES

    def __len__(self) -> int:
        return len(self.query)

    @property
    def rows(self) -> list[IntArray]:
        """The rows of each query."""
        starts = np.flatnonzero(self.query[1:] != self.query[:-1]) + 1
        return np.split(np.arange(len(self.query)), starts)

    def feature(self, name: str) -> FloatArray:
        """Return one column."""
        return self.features[:, self.feature_names.index(name)]


def load_letor_mq2008(folder: Folder = None) -> Retrieval:
    """Return the documents of ``letor_mq2008/mq2008.parquet``, those of a query together."""
    table = _read("letor_mq2008", folder, "mq2008.parquet", [*_LETOR_KEYS, *_LETOR_SOURCES], 15211)
    names = tuple(name for name in table.columns if name not in _LETOR_KEYS)
    order = np.argsort(table.integers("qid"), kind="stable")
    query, relevance, fold = (table.integers(name)[order] for name in ("qid", "relevance", "fold"))
    return Retrieval(query, relevance, fold, table.matrix(names)[order], names)


@dataclass(frozen=True, eq=False)
class CrowdRatings:
    """Ratings, one row each: which headline, which emotion, by whom, and what experts say."""

    emotion: TextArray
    item: IntArray
    worker: TextArray
    response: FloatArray
    gold: FloatArray


def load_crowd_affect(folder: Folder = None) -> CrowdRatings:
    """Return the ratings of ``crowd_affect/affect.parquet``: 0 to 100, valence -100 to 100."""
    table = _read("crowd_affect", folder, "affect.parquet", ["emotion", "item", "worker", "response", "gold"], 7000)
    emotion, item, worker = table.text("emotion"), table.integers("item"), table.text("worker")
    return CrowdRatings(emotion, item, worker, table.numbers("response"), table.numbers("gold"))


def load_preflib_dots(folder: Folder = None) -> list[IntArray]:
    """Return the votes at four difficulties, hardest first: ``(n, 4)`` positions each; the true order is 0 1 2 3."""
    table = _read("preflib_dots", folder, "votes.csv.gz", ["file", "count", "order"], 96)
    _check_size(table.path, int(table["count"].sum()), "votes", 3183)
    orders: dict[str, list[list[int]]] = {}
    for file, count, order in zip(table["file"], table["count"], table["order"], strict=True):
        orders.setdefault(str(file), []).extend([[int(item) - 1 for item in str(order).split()]] * int(count))
    return [cs.Rankings.positions_from_orders(rows, 4).astype(np.int64) for rows in orders.values()]


_JUDGE_PREFIX = "judge__"


@dataclass(frozen=True, eq=False)
class JudgeRatings:
    """Ratings of text simplifications on 0 to 100, one row per rating of a person, who has the truth.

    Those of the language models are ``(n, m)``, NaN where they gave no number. An item is an example and an aspect,
    such as ``"12/0"``.
    """

    ratings: FloatArray
    judges: tuple[str, ...]
    truth: FloatArray
    item: TextArray

    @property
    def votes(self) -> cs.Votes:
        """The ratings of the language models, one row per rating of a person."""
        return cs.Votes.from_array(self.ratings, sources=self.judges, items=self.item)


def load_asset_judges(folder: Folder = None) -> JudgeRatings:
    """Return the ratings of ``asset_judges/ratings.parquet``."""
    table = _read("asset_judges", folder, "ratings.parquet", ["example_index", "aspect", "human_rating"], 4500)
    columns = [name for name in table.columns if name.startswith(_JUDGE_PREFIX)]
    item = [f"{example}/{aspect}" for example, aspect in zip(table["example_index"], table["aspect"], strict=True)]
    judges = tuple(name.removeprefix(_JUDGE_PREFIX) for name in columns)
    return JudgeRatings(table.matrix(columns), judges, table.numbers("human_rating"), np.array(item))


_SPLITS = ("train", "valid", "test")
#: Items in train, valid and test, by name.
_WRENCH_SIZES = {
    "youtube": (1586, 120, 250),
    "sms": (4571, 500, 500),
    "trec": (4965, 500, 500),
    "semeval": (1749, 178, 600),
    "hausa": (2045, 290, 582),
}
#: The names of the sets.
WRENCH = tuple(_WRENCH_SIZES)


@dataclass(frozen=True, eq=False)
class WrenchSet:
    """Votes of labeling functions, ``(n, m)``, -1 where they abstain, and the true class."""

    matrix: IntArray
    truth: IntArray
    classes: tuple[str, ...]

    @property
    def votes(self) -> cs.Votes:
        """The matrix, with sources lf0, lf1, ..."""
        names = [f"lf{column}" for column in range(self.matrix.shape[1])]
        return cs.Votes.from_matrix(self.matrix, abstain=-1, sources=names)


def load_wrench(name: str, split: str = "train", folder: Folder = None) -> WrenchSet:
    """Return one split ("train", "valid" or "test") of one set of ``wrench/<name>.npz``, see `WRENCH`."""
    for kind, chosen, known in (("set", name, WRENCH), ("split", split, _SPLITS)):
        if chosen not in known:
            raise cs.exceptions.UnsupportedError(
                f"There is no {kind} {chosen!r}. Use one of {', '.join(map(repr, known))}."
            )
    path = _find("wrench", data_folder(folder) / "wrench" / f"{name}.npz")
    with np.load(path, allow_pickle=False) as arrays:
        needed = [f"L_{split}", f"y_{split}", "label_names"]
        missing = [key for key in needed if key not in arrays]
        if missing:
            raise cs.exceptions.FileFormatError(
                f"{path} has no array {missing[0]!r}. Expected are {', '.join(needed)}."
            )
        matrix, truth, classes = (arrays[key] for key in needed)
    for array in (matrix, truth):
        _check_size(f"{path}: {split}", len(array), "rows", _WRENCH_SIZES[name][_SPLITS.index(split)])
    return WrenchSet(matrix.astype(np.int64), truth.astype(np.int64), tuple(map(str, classes)))
