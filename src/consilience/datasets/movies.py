"""Films with their ratings on four sites: the paper's data for rankings and regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.datasets.folders import Origin, read_table

__all__ = ["Movies", "load_movies"]

ORIGIN = Origin(
    "movies",
    "the paper's table of 3,252 films with ratings of TMDb, IMDb, Rotten Tomatoes and MovieLens",
    "data/movies.csv of github.com/SprocketLab/universalizing-weak-supervision, as movies.parquet",
)
ROWS = 3252
GOLD = "vote_average"
#: What a rating is multiplied with to be on 0-10.
GOOD = {"imdb_rating": 1.0, "tomato_user_rating": 2.0, "mv_lens_avg_rating": 2.0}
POOR = ("popularity", "revenue", "vote_count")
IDS = ("imdbId", "movieId", "tmdbId")


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


def load_movies(folder: str | Path | None = None, *, duplicates: bool = False) -> Movies:
    """Return the films of ``movies/movies.parquet``.

    Parameters
    ----------
    folder
        The folder of data sets; CONSILIENCE_DATA by default.
    duplicates
        64 films are in the table twice. True keeps both copies, as the paper does.
    """
    table = read_table(ORIGIN.path(folder, "movies.parquet"), [GOLD, *GOOD, *POOR, *IDS], ROWS)
    names = tuple(name for name in table.columns if name not in (GOLD, *GOOD, *IDS))
    films = Movies(
        np.column_stack([table.numbers(name) for name in names]),
        names,
        table.numbers(GOLD),
        {name: scale * table.numbers(name) for name, scale in GOOD.items()},
        {name: table.numbers(name) for name in POOR},
        table["tmdbId"].astype(np.int64),
    )
    if duplicates:
        return films
    _, first = np.unique(films.identifier, return_index=True)
    return films.take(np.sort(first))
