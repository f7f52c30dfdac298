"""Readers of public data sets, which the package does not ship: the user names the folder that holds them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.exceptions import FileFormatError, MissingDataError, UnsupportedError
from consilience.label_types import Rankings
from consilience.votes import Votes

VARIABLE = "CONSILIENCE_DATA"
Folder = str | Path | None
TextArray = npt.NDArray[np.str_]


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


@dataclass(frozen=True)
class _Origin:
    """The folder of a data set, what it is, and where it comes from."""

    name: str
    what: str
    where: str

    def missing(self, path: Path) -> MissingDataError:
        return MissingDataError(
            f"{path} is missing: {self.what}. It is not shipped with the package, as its license is its owner's. "
            f"Get it from {self.where}, and put it there."
        )

    def path(self, folder: Folder, name: str) -> Path:
        path = data_folder(folder) / self.name / name
        if not path.is_file():
            raise self.missing(path)
        return path

    def read(self, folder: Folder, file: str, columns: Sequence[str], rows: int) -> _Table:
        return _read_table(self.path(folder, file), columns, rows)


@dataclass(frozen=True, eq=False)
class _Table:
    """Columns of a file as arrays."""

    columns: dict[str, Batch]
    path: Path

    def __getitem__(self, name: str) -> Batch:
        return self.columns[name]

    def numbers(self, name: str) -> FloatArray:
        try:
            return self.columns[name].astype(np.float64)
        except (TypeError, ValueError):
            raise FileFormatError(
                f"{self.path}: the column {name!r} does not hold numbers. Is it the right file?"
            ) from None

    def matrix(self, names: Sequence[str]) -> FloatArray:
        return np.column_stack([self.numbers(name) for name in names])

    def integers(self, name: str) -> IntArray:
        return self.columns[name].astype(np.int64)

    def text(self, name: str) -> TextArray:
        return self.columns[name].astype(str)


def _read_table(path: Path, columns: Sequence[str], rows: int | None = None) -> _Table:
    """Read a Parquet or CSV file, maybe compressed, and check that it has the columns and as many rows."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        found = parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    except (pa.ArrowException, OSError) as error:
        raise FileFormatError(f"{path} cannot be read as a table: {error}") from None
    missing = [name for name in columns if name not in found.column_names]
    if missing:
        raise FileFormatError(
            f"{path} has no column {missing[0]!r}. Expected are {', '.join(columns)}; it has "
            f"{', '.join(found.column_names[:20])}{', ...' if len(found.column_names) > 20 else ''}."
        )
    if rows is not None:
        _check_size(path, found.num_rows, "rows", rows)
    return _Table({name: found.column(name).to_numpy(zero_copy_only=False) for name in found.column_names}, path)


def _check_size(where: object, found: int, what: str, expected: int) -> None:
    if found != expected:
        raise FileFormatError(f"{where} has {found} {what}, not {expected}. Is it complete? Get it again.")


# --- Board games --------------------------------------------------------------------------------------

_BOARD_GAMES = _Origin(
    "board_games",
    "the table of BoardGameGeek with one row per game (games_detailed_info.csv)",
    "kaggle.com/datasets/jvanelteren/boardgamegeek-reviews",
)
_GAME_FILES = ("games_detailed_info.csv", "games_detailed_info.csv.gz", "games_detailed_info.parquet")
_GAME_SOURCES = ("owned", "trading", "wanting", "wishing", "numcomments")
#: The features of a board game that the paper uses.
FEATURES = (
    *("yearpublished", "minplayers", "maxplayers", "playingtime", "minplaytime", "maxplaytime", "minage"),
    *_GAME_SOURCES,
    *("numweights", "averageweight"),
)


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
        How many own, trade, want, wish for and comment on it: larger is better.
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

    Parameters
    ----------
    path
        The CSV or Parquet file, or a folder of data sets that contains ``board_games/games_detailed_info.csv``;
        CONSILIENCE_DATA by default. The table needs the columns of the paper: 14 features, ``average`` and
        ``Board Game Rank``. Games that are "Not Ranked", or lack a value, are left out.
    """
    table = _read_table(_game_file(path), [*FEATURES, "average", "Board Game Rank"])
    ranks = table["Board Game Rank"].astype(str)
    rank = np.array([float(value) if value.replace(".", "", 1).isdigit() else np.nan for value in ranks])
    features, rating = table.matrix(FEATURES), table.numbers("average")
    kept = np.isfinite(rank) & np.isfinite(rating) & np.isfinite(features).all(axis=1)
    if kept.sum() < 2:
        raise FileFormatError(
            f"{table.path}: {int(kept.sum())} of {len(kept)} games have a rank and all features. Is it the right file?"
        )
    sources = {name: features[kept, FEATURES.index(name)] for name in _GAME_SOURCES}
    return BoardGames(features[kept], FEATURES, rating[kept], rank[kept], sources)


def _game_file(path: Folder) -> Path:
    if path is not None and not Path(path).is_dir():
        candidates = [Path(path)]
    else:
        candidates = [data_folder(path) / _BOARD_GAMES.name / name for name in _GAME_FILES]
    found = next((candidate for candidate in candidates if candidate.is_file()), None)
    if found is None:
        raise _BOARD_GAMES.missing(candidates[0])
    return found


# --- Movies -------------------------------------------------------------------------------------------

_MOVIES = _Origin(
    "movies",
    "the paper's table of 3,252 films with ratings of TMDb, IMDb, Rotten Tomatoes and MovieLens",
    "data/movies.csv of github.com/SprocketLab/universalizing-weak-supervision, as movies.parquet",
)
_TMDB_RATING = "vote_average"
#: What a rating is multiplied by to be on 0 to 10.
_GOOD_RATINGS = {"imdb_rating": 1.0, "tomato_user_rating": 2.0, "mv_lens_avg_rating": 2.0}
_POOR_RATINGS = ("popularity", "revenue", "vote_count")
_MOVIE_IDS = ("imdbId", "movieId", "tmdbId")


@dataclass(frozen=True, eq=False)
class Movies:
    """Films: what is known about each, what the sources say, and TMDb's mean rating.

    Attributes
    ----------
    features : array of shape (n, k)
        All columns but ids, TMDb's rating and the three other ratings. The poor sources are among them.
    feature_names : tuple of str
    rating : array of shape (n,)
        The gold: TMDb's mean rating, 0 to 10.
    good : dict of name to array
        Three other ratings, on 0 to 10.
    poor : dict of name to array
        Three columns that say little about quality.
    identifier : array of shape (n,)
        TMDb's id.
    """

    features: FloatArray
    feature_names: tuple[str, ...]
    rating: FloatArray
    good: Mapping[str, FloatArray]
    poor: Mapping[str, FloatArray]
    identifier: IntArray

    def __len__(self) -> int:
        return len(self.rating)

    @property
    def sources(self) -> dict[str, FloatArray]:
        """The good and the poor ones."""
        return {**self.good, **self.poor}

    def take(self, rows: IntArray | BoolArray | npt.ArrayLike) -> Movies:
        """Return some of the films."""
        chosen = np.asarray(rows)
        return replace(
            self,
            features=self.features[chosen],
            rating=self.rating[chosen],
            good={name: values[chosen] for name, values in self.good.items()},
            poor={name: values[chosen] for name, values in self.poor.items()},
            identifier=self.identifier[chosen],
        )

    def without_features(self, *names: str) -> Movies:
        """Return the films without some features, such as those that serve as sources."""
        kept = [index for index, name in enumerate(self.feature_names) if name not in names]
        return replace(
            self, features=self.features[:, kept], feature_names=tuple(self.feature_names[index] for index in kept)
        )


def load_movies(folder: Folder = None, *, duplicates: bool = False) -> Movies:
    """Return the films of ``movies/movies.parquet``.

    Parameters
    ----------
    folder
        The folder of data sets; CONSILIENCE_DATA by default.
    duplicates
        64 films are in the table twice. True keeps both copies, as the paper does.
    """
    columns = [_TMDB_RATING, *_GOOD_RATINGS, *_POOR_RATINGS, *_MOVIE_IDS]
    table = _MOVIES.read(folder, "movies.parquet", columns, 3252)
    names = tuple(name for name in table.columns if name not in (_TMDB_RATING, *_GOOD_RATINGS, *_MOVIE_IDS))
    films = Movies(
        table.matrix(names),
        names,
        table.numbers(_TMDB_RATING),
        {name: scale * table.numbers(name) for name, scale in _GOOD_RATINGS.items()},
        {name: table.numbers(name) for name in _POOR_RATINGS},
        table.integers("tmdbId"),
    )
    if duplicates:
        return films
    _, first = np.unique(films.identifier, return_index=True)
    return films.take(np.sort(first))


# --- Retrieval ----------------------------------------------------------------------------------------

_LETOR = _Origin(
    "letor_mq2008",
    "LETOR 4.0, MQ2008: 15,211 documents for 784 queries with 46 features and relevance",
    "Microsoft Research (LETOR 4.0, MQ2008 supervised ranking, S1 to S5), as mq2008.parquet with named columns",
)
_LETOR_KEYS = ("qid", "docid", "relevance", "fold")
#: The retrieval models that stand in for those of the paper.
_LETOR_SOURCES = (
    *("bm25_whole", "bm25_body", "bm25_title", "lmir_abs_whole", "lmir_dir_whole"),
    *("lmir_jm_whole", "tfidf_whole", "tf_whole", "bm25_anchor", "lmir_jm_title"),
)


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Documents found for queries, one row each, with the features that search engines rank by.

    Attributes
    ----------
    query : array of shape (n,)
        Equal where documents were found for the same query; these rows lie together.
    relevance : array of shape (n,)
        The gold: 0, 1 or 2.
    fold : array of shape (n,)
        1 to 5; all documents of a query are in the same one.
    features : array of shape (n, 46)
        Each between 0 and 1 within its query; larger is more relevant for the `sources`.
    feature_names : tuple of str
    sources : tuple of str
        Ten features that rank documents by themselves.
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
    table = _LETOR.read(folder, "mq2008.parquet", [*_LETOR_KEYS, *_LETOR_SOURCES], 15211)
    names = tuple(name for name in table.columns if name not in _LETOR_KEYS)
    order = np.argsort(table.integers("qid"), kind="stable")
    query, relevance, fold = (table.integers(name)[order] for name in ("qid", "relevance", "fold"))
    return Retrieval(query, relevance, fold, table.matrix(names)[order], names)


# --- Crowds -------------------------------------------------------------------------------------------

_AFFECT = _Origin(
    "crowd_affect",
    "7,000 ratings of emotions in 100 headlines by 38 crowd workers (Snow et al. 2008)",
    "github.com/Praznat/annotationmodeling (data/snow_affect), as affect.parquet",
)
_TRANSLATIONS = _Origin(
    "crowd_translations",
    "4,490 translations of 450 sentences by crowd workers (CrowdWSA2019)",
    "github.com/garfieldpigljy/CrowdWSA2019, as answers.parquet and gold.parquet",
)
_BOXES = _Origin(
    "crowd_boxes",
    "1,723 sets of boxes that crowd workers drew on 200 images",
    "github.com/Praznat/annotationmodeling (boundingbox_data), as annotations.parquet, boxes.parquet and gold.parquet",
)
_CORNERS = ("x1", "y1", "x2", "y2")
_DOTS = _Origin(
    "preflib_dots",
    "3,183 orders of four pictures by the number of dots on them (Mao, Procaccia and Chen 2013)",
    "github.com/PrefLib/PrefLib-Data (00024 - dots), as votes.csv.gz",
)


@dataclass(frozen=True, eq=False)
class CrowdRatings:
    """Ratings, one row each: which headline, which emotion, by whom, and what experts say."""

    emotion: TextArray
    item: IntArray
    worker: TextArray
    response: FloatArray
    gold: FloatArray


@dataclass(frozen=True, eq=False)
class CrowdTranslations:
    """Answers, one row each, and the gold sentence of every (part, item)."""

    part: TextArray
    item: TextArray
    worker: TextArray
    answer: TextArray
    gold: dict[tuple[str, str], str]


@dataclass(frozen=True, eq=False)
class CrowdBoxes:
    """Boxes (left, top, right, bottom in pixels) by image and worker, and those of the expert by image."""

    annotations: dict[tuple[int, int], FloatArray]
    gold: dict[int, FloatArray]


def load_crowd_affect(folder: Folder = None) -> CrowdRatings:
    """Return the ratings of ``crowd_affect/affect.parquet``: 0 to 100, valence -100 to 100."""
    table = _AFFECT.read(folder, "affect.parquet", ["emotion", "item", "worker", "response", "gold"], 7000)
    emotion, item, worker = table.text("emotion"), table.integers("item"), table.text("worker")
    return CrowdRatings(emotion, item, worker, table.numbers("response"), table.numbers("gold"))


def load_crowd_translations(folder: Folder = None) -> CrowdTranslations:
    """Return the answers of ``crowd_translations``: three parts (J1, T1, T2) with workers of their own.

    A few workers answered an item twice; both answers are there, in the order of the file.
    """
    columns = ["part", "item", "worker", "answer"]
    answers = _TRANSLATIONS.read(folder, "answers.parquet", columns, 4490)
    gold = _TRANSLATIONS.read(folder, "gold.parquet", ["part", "item", "gold"], 450)
    part, item, text = (gold.text(name).tolist() for name in ("part", "item", "gold"))
    truth = dict(zip(zip(part, item, strict=True), text, strict=True))
    parts, items, workers, sentences = (answers.text(name) for name in columns)
    return CrowdTranslations(parts, items, workers, sentences, truth)


def load_crowd_boxes(folder: Folder = None) -> CrowdBoxes:
    """Return the boxes of ``crowd_boxes``: 200 images, 196 workers; an annotation may hold no box."""
    done = _BOXES.read(folder, "annotations.parquet", ["item", "worker"], 1723)
    drawn = _BOXES.read(folder, "boxes.parquet", ["item", "worker", *_CORNERS], 7533)
    expert = _BOXES.read(folder, "gold.parquet", ["item", *_CORNERS], 1308)
    found: dict[tuple[int, int], list[FloatArray]] = {key: [] for key in _image_and_worker(done)}
    for key, box in zip(_image_and_worker(drawn), drawn.matrix(_CORNERS), strict=True):
        found[key].append(box)
    images, boxes = expert.integers("item"), expert.matrix(_CORNERS)
    return CrowdBoxes(
        {key: np.array(several).reshape(-1, 4) for key, several in found.items()},
        {image: boxes[images == image] for image in dict.fromkeys(images.tolist())},
    )


def _image_and_worker(table: _Table) -> list[tuple[int, int]]:
    return list(zip(table.integers("item").tolist(), table.integers("worker").tolist(), strict=True))


def load_preflib_dots(folder: Folder = None) -> list[IntArray]:
    """Return the votes at four difficulties, hardest first: ``(n, 4)`` positions each; the true order is 0 1 2 3."""
    table = _DOTS.read(folder, "votes.csv.gz", ["file", "count", "order"], 96)
    _check_size(table.path, int(table["count"].sum()), "votes", 3183)
    orders: dict[str, list[list[int]]] = {}
    for file, count, order in zip(table["file"], table["count"], table["order"], strict=True):
        orders.setdefault(str(file), []).extend([[int(item) - 1 for item in str(order).split()]] * int(count))
    return [Rankings.positions_from_orders(rows, 4).astype(np.int64) for rows in orders.values()]


# --- Language models as judges ------------------------------------------------------------------------

_JUDGES = _Origin(
    "asset_judges",
    "4,500 ratings of text simplifications by people and by 11 language models",
    "github.com/SprocketLab/CARE (data/score/asset.csv and judge_outputs), as ratings.parquet",
)
_JUDGE_PREFIX = "judge__"


@dataclass(frozen=True, eq=False)
class JudgeRatings:
    """Ratings of text simplifications on 0 to 100, one row per rating of a person.

    Attributes
    ----------
    ratings : array of shape (n, m)
        What the language models say; NaN where they gave no number.
    judges : tuple of str
    truth : array of shape (n,)
        What the person says.
    item : array of shape (n,)
        Example and aspect that a row is about, such as ``"12/0"``.
    """

    ratings: FloatArray
    judges: tuple[str, ...]
    truth: FloatArray
    item: TextArray

    @property
    def votes(self) -> Votes:
        """The ratings of the language models, one row per rating of a person."""
        return Votes.from_array(self.ratings, sources=self.judges, items=self.item)


def load_asset_judges(folder: Folder = None) -> JudgeRatings:
    """Return the ratings of ``asset_judges/ratings.parquet``."""
    table = _JUDGES.read(folder, "ratings.parquet", ["example_index", "aspect", "human_rating"], 4500)
    columns = [name for name in table.columns if name.startswith(_JUDGE_PREFIX)]
    item = [f"{example}/{aspect}" for example, aspect in zip(table["example_index"], table["aspect"], strict=True)]
    judges = tuple(name.removeprefix(_JUDGE_PREFIX) for name in columns)
    return JudgeRatings(table.matrix(columns), judges, table.numbers("human_rating"), np.array(item))


# --- WRENCH -------------------------------------------------------------------------------------------

_WRENCH = _Origin(
    "wrench",
    "votes of labeling functions of the WRENCH benchmark",
    "github.com/JieyuZ2/wrench, one <name>.npz with L_<split>, y_<split> and label_names",
)
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
    """Votes of labeling functions, -1 where they abstain, and the true class.

    Attributes
    ----------
    matrix : array of shape (n, m)
    truth : array of shape (n,)
    classes : tuple of str
    """

    matrix: IntArray
    truth: IntArray
    classes: tuple[str, ...]

    @property
    def votes(self) -> Votes:
        """The matrix, with sources lf0, lf1, ..."""
        names = [f"lf{column}" for column in range(self.matrix.shape[1])]
        return Votes.from_matrix(self.matrix, abstain=-1, sources=names)


def load_wrench(name: str, split: str = "train", folder: Folder = None) -> WrenchSet:
    """Return one split of one set of ``wrench/<name>.npz``.

    Parameters
    ----------
    name
        "youtube", "sms", "trec", "semeval" or "hausa".
    split
        "train", "valid" or "test".
    """
    for kind, chosen, known in (("set", name, WRENCH), ("split", split, _SPLITS)):
        if chosen not in known:
            raise UnsupportedError(f"There is no {kind} {chosen!r}. Use one of {', '.join(map(repr, known))}.")
    path = _WRENCH.path(folder, f"{name}.npz")
    with np.load(path, allow_pickle=False) as arrays:
        needed = [f"L_{split}", f"y_{split}", "label_names"]
        missing = [key for key in needed if key not in arrays]
        if missing:
            raise FileFormatError(f"{path} has no array {missing[0]!r}. Expected are {', '.join(needed)}.")
        matrix, truth, classes = (arrays[key] for key in needed)
    for array in (matrix, truth):
        _check_size(f"{path}: {split}", len(array), "rows", _WRENCH_SIZES[name][_SPLITS.index(split)])
    return WrenchSet(matrix.astype(np.int64), truth.astype(np.int64), tuple(map(str, classes)))
