"""The experiments of the paper run in a small size, measure what they say, and say which data is missing."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import consilience as cs
from consilience.datasets import public as board_games

ROOT = Path(__file__).resolve().parents[2]
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="torch is not installed, so experiments with the paper's network are NOT tested; install consilience[torch]",
)


@pytest.fixture(autouse=True)
def root_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def check(path: Path, command: str) -> str:
    text = path.read_text(encoding="utf-8")
    assert f"`{command}` · consilience {cs.__version__}" in text
    assert "nan" not in text
    assert "targets are not judged" in text
    return text


def run(name: str, folder: Path, *arguments: str) -> str:
    importlib.import_module(f"experiments.{name}").main(["--quick", "--results", str(folder), *arguments])
    return check(folder / f"{name}.md", f"python -m experiments.{name} --seeds 1 --quick")


def test_synthetic_regression_writes_its_table(tmp_path: Path) -> None:
    assert "regression_synthetic.png" in run("regression_synthetic", tmp_path)


@pytest.mark.data
@pytest.mark.slow
def test_regression_on_films_writes_its_table(data_directory: Path, tmp_path: Path) -> None:
    assert str(data_directory) not in run("movies_regression", tmp_path)


@needs_torch
@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["movies_rankings", "movies_rankings_real", "letor"])
def test_an_experiment_on_rankings_writes_its_table(name: str, data_directory: Path, tmp_path: Path) -> None:
    assert str(data_directory) not in run(name, tmp_path)


@needs_torch
@pytest.mark.slow
def test_board_games_run_on_a_table_of_the_same_shape(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = {name: rng.integers(1, 1000, 120).tolist() for name in board_games.FEATURES}
    table["average"] = rng.uniform(4, 9, 120).tolist()
    table["Board Game Rank"] = [str(place) for place in rng.permutation(120) + 1]
    pq.write_table(pa.table(table), tmp_path / "games.parquet")
    text = run("board_games", tmp_path, "--table", str(tmp_path / "games.parquet"))
    assert "120 games" in text
    assert str(tmp_path) not in text


def test_missing_data_stops_an_experiment_with_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    games = importlib.import_module("experiments.board_games")
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"Get it from kaggle\.com"):
        games.main(["--quick"])
    with pytest.raises(SystemExit, match="no folder 'letor_mq2008'"):
        importlib.import_module("experiments.letor").main(["--quick"])
    monkeypatch.delenv("CONSILIENCE_DATA")
    with pytest.raises(SystemExit, match="CONSILIENCE_DATA is not set"):
        importlib.import_module("experiments.movies_regression").main(["--quick"])


def test_discounted_gain_is_that_of_the_definition() -> None:
    letor = importlib.import_module("experiments.letor")
    relevance, score = np.array([0, 2, 1]), np.array([3.0, 2.0, 1.0])
    # order 0 2 1 with gains 0 3 1; the best order has gains 3 1 0
    expected = (3 / np.log2(3) + 1 / 2) / (3 + 1 / np.log2(3))
    assert letor.ndcg(score, relevance, 10) == pytest.approx(expected)
    assert letor.ndcg(score, relevance, 1) == 0.0
    # all tied: every place has the mean gain of 4 / 3
    assert letor.ndcg(np.zeros(3), relevance, 1) == pytest.approx(4 / 9)


def test_sets_of_films_keep_train_and_test_apart_and_count_ties_as_said() -> None:
    sets = importlib.import_module("experiments.film_sets")
    score = np.repeat([1.0, 2.0, 3.0, 4.0], 10)
    train, test = sets.draw_sets(np.zeros((40, 2)), score, 30, 20, np.random.default_rng(0))
    assert not set(train.rows.ravel()) & set(test.rows.ravel())
    _, few = sets.draw_sets(np.zeros((40, 2)), score, 30, 200, np.random.default_rng(0), train_share=0.8)
    assert len(set(few.rows.ravel())) == 8  # a fifth of the forty
    assert train.errors(train.strict).counted == 0.0
    one = sets.RankedSets(np.array([[0, 1, 10, 20, 30]]), np.zeros((40, 2)), score)
    # film 0 and film 1 are tied: turning them round is no error unless ties are counted, then 1 of 10 pairs
    found = one.errors(np.array([[4, 3, 2, 1, 0]]))
    assert (found.skipped, found.counted) == (0.0, pytest.approx(0.1))


def test_permutations_and_classes_go_back_and_forth(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    peer = importlib.import_module("experiments.snorkel_peer")
    monkeypatch.setattr(peer, "ROOT", tmp_path)
    monkeypatch.delenv("CONSILIENCE_SNORKEL", raising=False)
    assert peer.snorkel_labels(np.zeros((1, 1, 3), dtype=int), 0) is None
    positions = np.array([[[2, 0, 1]], [[0, 1, 2]], [[1, 2, 0]]])
    classes, orders = peer.as_classes(positions)
    np.testing.assert_array_equal(orders[classes], positions)


def test_a_named_interpreter_of_snorkel_is_taken_and_a_wrong_name_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    peer = importlib.import_module("experiments.snorkel_peer")
    python = tmp_path / "python"
    monkeypatch.setenv("CONSILIENCE_SNORKEL", str(python))
    with pytest.raises(SystemExit, match="CONSILIENCE_SNORKEL names"):
        peer.snorkel_python()
    python.touch()
    assert peer.snorkel_python() == python
