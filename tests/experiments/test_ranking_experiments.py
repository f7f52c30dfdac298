"""The experiments and the benchmark on rankings run, measure what they say, and their intervals cover."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import consilience as cs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def root_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture
def rankings() -> ModuleType:
    return importlib.import_module("experiments.rankings")


@pytest.fixture
def paper() -> ModuleType:
    return importlib.import_module("experiments.rankings_paper")


def check_table(path: Path, command: str) -> str:
    text = path.read_text(encoding="utf-8")
    assert f"`{command}` · consilience {cs.__version__}" in text
    assert "nan" not in text
    widths = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    assert widths
    assert "targets are not judged" in text
    return text


@pytest.mark.parametrize("name", ["rankings", "rankings_partial", "rankings_paper", "kemeny_exactness"])
def test_an_experiment_on_rankings_writes_its_table(name: str, tmp_path: Path) -> None:
    importlib.import_module(f"experiments.{name}").main(["--quick", "--results", str(tmp_path)])
    check_table(tmp_path / f"{name}.md", f"python -m experiments.{name} --seeds 1 --quick")


@pytest.mark.data
def test_the_experiment_on_real_rankings_writes_its_table(data_directory: Path, tmp_path: Path) -> None:
    importlib.import_module("experiments.rankings_real").main(["--quick", "--results", str(tmp_path)])
    text = check_table(tmp_path / "rankings_real.md", "python -m experiments.rankings_real --seeds 1 --quick")
    assert str(data_directory) not in text


def test_the_experiment_on_real_rankings_says_which_variable_names_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONSILIENCE_DATA", raising=False)
    with pytest.raises(SystemExit, match="CONSILIENCE_DATA is not set"):
        importlib.import_module("experiments.rankings_real").main(["--quick"])


def test_the_benchmark_of_rankings_writes_its_table(tmp_path: Path) -> None:
    script = str(ROOT / "benchmarks" / "bench_rankings.py")
    subprocess.run([sys.executable, script, "--quick", "--results", str(tmp_path)], check=True, capture_output=True)
    check_table(tmp_path / "rankings.md", "python benchmarks/bench_rankings.py --quick")


def test_the_integer_program_of_the_benchmark_finds_the_cost_that_kemeny_proves() -> None:
    bench = importlib.import_module("benchmarks.bench_rankings")
    votes, weight = bench.instance("hard", 6, 5)
    found = cs.kemeny(votes, weight)
    assert found.optimal.all()
    assert [bench.linear_ordering(row, weight, 10.0) for row in votes] == pytest.approx(found.cost)


def test_pairs_that_a_prediction_leaves_open_are_half_wrong(rankings: ModuleType) -> None:
    truth = np.array([[0, 1, 2], [0, 1, 2], [0, 1, 2]])
    predicted = np.array([[0, 1, 2], [-1, 0, 1], [2, 1, 0]])
    # none of 3 wrong; one right and two open; all wrong
    assert rankings.share_wrong(predicted, truth) == pytest.approx((0 + 1 / 3 + 1) / 3)


def test_the_medoid_is_the_vote_closest_to_the_others(paper: ModuleType) -> None:
    positions = np.array([[[0, 1, 2], [0, 2, 1], [2, 1, 0]]])
    truth = np.array([[0, 2, 1]])
    assert paper.medoid_error(positions, np.array([1.0, 5.0, 1.0]), truth) == 0.0
    assert paper.medoid_error(positions, np.array([5.0, 1.0, 1.0]), truth) == pytest.approx(1 / 3)


def test_masking_keeps_each_item_in_as_many_votes_and_two_items_in_each(paper: ModuleType) -> None:
    rng = np.random.default_rng(0)
    truth = np.argsort(rng.random((200, 10)), axis=1)
    seen = paper.unmasked(truth, 18, 0.7, rng)
    assert (seen.sum(axis=1) == 13).all()  # ceil(0.7 * 18); nobody is left with fewer than two items
    sparse = paper.unmasked(
        truth, 18, 0.05, rng
    )  # each item in one vote: most votes lose all, and get the best two back
    assert (sparse.sum(axis=2) >= 2).all()
    assert (sparse == (truth < 2)[:, None, :]).all(axis=2).mean() > 0.5


def test_unseen_items_come_last(paper: ModuleType) -> None:
    done = paper.unseen_last(np.array([[1, -1, 0, -1]]), np.random.default_rng(0))
    assert done[0, [2, 0]].tolist() == [0, 1]
    assert sorted(done[0, [1, 3]]) == [2, 3]


def test_dealt_votes_are_told_apart_from_the_names_of_the_items() -> None:
    real = importlib.import_module("experiments.rankings_real")
    right = np.tile(np.arange(4), (200, 1))  # workers who always find the gold order
    votes, gold = real.deal([right], np.random.default_rng(0))
    np.testing.assert_array_equal(votes.labels, np.broadcast_to(gold[:, None, :], votes.labels.shape))
    assert len(np.unique(gold, axis=0)) == 24


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 300, 1000])
def test_intervals_of_ranking_weights_cover_at_their_nominal_rate(n: int, rankings: ModuleType) -> None:
    # 120 data sets of 6 correlated intervals, counted as 2 independent ones each: a share below 0.90 or above 0.99 has
    # probability below 0.002 if the true one is 0.95.
    errors, bounds = [], []
    space = cs.Rankings(5)
    for seed in range(120):
        rng = np.random.default_rng(5000 + seed)
        weight = rng.uniform(0.2, 1.2, 6)
        votes = cs.simulate(space, rankings.random_rankings(rng, n, 5), weight, rng)
        model = cs.LabelModel(space).fit(votes)
        errors.append(np.abs(model.weight_ - weight))
        bounds.append(1.96 * model.standard_error_)
    share = (np.array(errors) <= np.array(bounds)).mean()
    assert 0.90 <= share <= 0.99, f"{share:.3f}"
