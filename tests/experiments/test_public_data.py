"""Readers of public data check what they read, and say where data comes from that is missing."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from experiments import public_data
from experiments.public_data import FEATURES, MissingDataError

from consilience.exceptions import FileFormatError, UnsupportedError

LOADERS = {
    "movies": public_data.load_movies,
    "letor_mq2008": public_data.load_letor_mq2008,
    "asset_judges": public_data.load_asset_judges,
    "crowd_affect": public_data.load_crowd_affect,
    "preflib_dots": public_data.load_preflib_dots,
    "wrench": lambda folder=None: public_data.load_wrench("youtube", folder=folder),
    "board_games": public_data.load_board_games,
}


def game_table(n: int = 40) -> dict[str, list]:
    """Return a table of the shape of BoardGameGeek's, with two games that are not ranked and one without a year."""
    rng = np.random.default_rng(0)
    table: dict[str, list] = {name: rng.integers(1, 100, n).tolist() for name in FEATURES}
    table["average"] = rng.uniform(4, 9, n).round(2).tolist()
    table["Board Game Rank"] = [str(place) for place in rng.permutation(n) + 1]
    table["Board Game Rank"][3] = table["Board Game Rank"][7] = "Not Ranked"
    table["yearpublished"][5] = None
    table["primary"] = [f"game {index}" for index in range(n)]
    return table


@pytest.mark.parametrize("name", list(LOADERS))
def test_missing_data_is_named_with_where_it_comes_from(name, tmp_path, monkeypatch):
    with pytest.raises(MissingDataError, match=rf"{name}.*Get it from ") as caught:
        LOADERS[name](tmp_path)
    assert isinstance(caught.value, FileNotFoundError)
    monkeypatch.delenv("CONSILIENCE_DATA", raising=False)
    with pytest.raises(MissingDataError, match="CONSILIENCE_DATA is not set"):
        LOADERS[name]()
    monkeypatch.setenv("CONSILIENCE_DATA", "/nowhere/at/all")
    with pytest.raises(MissingDataError, match="CONSILIENCE_DATA='/nowhere/at/all' is not a folder"):
        LOADERS[name]()


def test_a_table_with_other_columns_or_rows_is_refused(tmp_path):
    (tmp_path / "crowd_affect").mkdir()
    path = tmp_path / "crowd_affect" / "affect.parquet"
    columns = {"emotion": ["joy"], "item": [1], "worker": ["w"], "response": [1.0]}
    pq.write_table(pa.table(columns), path)
    with pytest.raises(FileFormatError, match="no column 'gold'"):
        public_data.load_crowd_affect(tmp_path)
    pq.write_table(pa.table(columns | {"gold": [2.0]}), path)
    with pytest.raises(FileFormatError, match="has 1 rows, not 7000"):
        public_data.load_crowd_affect(tmp_path)
    path.write_bytes(b"no table")
    with pytest.raises(FileFormatError, match="cannot be read"):
        public_data.load_crowd_affect(tmp_path)


@pytest.mark.parametrize("kind", ["csv", "parquet", "folder"])
def test_board_games_are_read_from_a_table_of_the_user(kind, tmp_path):
    from pyarrow import csv

    table = pa.table(game_table())
    path = tmp_path / ("games.parquet" if kind == "parquet" else "games.csv")
    if kind == "folder":
        (tmp_path / "board_games").mkdir()
        path = tmp_path / "board_games" / "games_detailed_info.csv"
    (pq.write_table if kind == "parquet" else csv.write_csv)(table, path)
    games = public_data.load_board_games(tmp_path if kind == "folder" else path)
    assert len(games) == 37  # 40 without two that have no rank and one that has no year
    assert games.features.shape == (37, 14)
    assert set(games.sources) == {"owned", "trading", "wanting", "wishing", "numcomments"}
    kept = [index for index in range(40) if index not in (3, 5, 7)]
    np.testing.assert_array_equal(games.rank, [float(table["Board Game Rank"][index].as_py()) for index in kept])
    np.testing.assert_array_equal(games.sources["owned"], games.features[:, games.feature_names.index("owned")])


def test_a_table_without_ranked_games_is_refused(tmp_path):
    table = game_table()
    table["Board Game Rank"] = ["Not Ranked"] * 40
    pq.write_table(pa.table(table), tmp_path / "games.parquet")
    with pytest.raises(FileFormatError, match="0 of 40 games have a rank"):
        public_data.load_board_games(tmp_path / "games.parquet")
    del table["average"]
    pq.write_table(pa.table(table), tmp_path / "games.parquet")
    with pytest.raises(FileFormatError, match="no column 'average'"):
        public_data.load_board_games(tmp_path / "games.parquet")


def test_unknown_sets_and_splits_and_sets_of_another_size_are_refused(tmp_path):
    (tmp_path / "wrench").mkdir()
    np.savez(tmp_path / "wrench" / "youtube.npz", L_train=np.zeros((3, 2)), y_train=np.zeros(3), label_names=["a", "b"])
    for name, split, error, message in (
        ("spouse", "train", UnsupportedError, "'youtube', 'sms'"),
        ("youtube", "dev", UnsupportedError, "'train', 'valid', 'test'"),
        ("youtube", "train", FileFormatError, "train has 3 rows, not 1586"),
        ("youtube", "test", FileFormatError, "no array 'L_test'"),
    ):
        with pytest.raises(error, match=message):
            public_data.load_wrench(name, split, folder=tmp_path)


@pytest.mark.data
def test_films_are_read_once_each_with_their_sources(data_directory):
    films = public_data.load_movies()
    assert (len(films), len(public_data.load_movies(duplicates=True))) == (3188, 3252)
    assert len(np.unique(films.identifier)) == len(films)
    assert list(films.good) == ["imdb_rating", "tomato_user_rating", "mv_lens_avg_rating"]
    assert not set(films.feature_names) & {"vote_average", *films.good, "tmdbId", "movieId", "imdbId"}
    # correlations with the gold that the description of the data gives, of all 3252 rows
    found = [np.corrcoef(values, films.rating)[0, 1] for values in films.sources.values()]
    np.testing.assert_allclose(found, [0.943, 0.824, 0.911, 0.317, 0.236, 0.420], atol=0.01)
    assert films.without_features("popularity").features.shape[1] == films.features.shape[1] - 1


@pytest.mark.data
def test_documents_lie_together_by_query(data_directory):
    found = public_data.load_letor_mq2008()
    assert (len(found), len(found.rows)) == (15211, 784)
    assert all(len(np.unique(found.query[rows])) == len(np.unique(found.fold[rows])) == 1 for rows in found.rows)
    assert np.bincount(found.relevance).tolist() == [12279, 2001, 931]
    assert found.feature("bm25_whole").max() == 1.0


@pytest.mark.data
def test_crowds_and_judges_have_the_sizes_of_their_descriptions(data_directory):
    assert public_data.load_asset_judges().votes.labels.shape == (4500, 11)
    affect = public_data.load_crowd_affect()
    assert (len(np.unique(affect.emotion)), len(np.unique(affect.worker))) == (7, 38)
    dots = public_data.load_preflib_dots()
    right = [float((votes == np.arange(4)).all(axis=1).mean()) for votes in dots]
    np.testing.assert_allclose(right, [0.093, 0.115, 0.161, 0.213], atol=0.0006)


@pytest.mark.data
@pytest.mark.parametrize("name", public_data.WRENCH)
def test_every_split_of_wrench_is_read(name, data_directory):
    for split in ("train", "valid", "test"):
        found = public_data.load_wrench(name, split)
        assert found.matrix.max() < len(found.classes)
        assert found.truth.min() >= 0
        assert found.votes.sources[0] == "lf0"
