"""The experiments and benchmarks run, measure what they say, and use public names only."""

import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from experiments import public_data as board_games

import consilience as cs

ROOT = Path(__file__).resolve().parents[2]
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="torch is not installed, so experiments with the paper's network are NOT tested; install consilience[torch]",
)
SCRIPTS = sorted([*ROOT.glob("experiments/*.py"), *ROOT.glob("benchmarks/*.py")])


@pytest.fixture
def tables() -> ModuleType:
    return importlib.import_module("experiments.tables")


#: One of each kind is run in the quick tests, which shows that tables and pictures are written; the others are slow.
TABLES = (
    "classes_synthetic finite_spaces tags vectors manifolds boxes_spans geodesic_regression dependent_classes "
    "dependent_rankings preferences calibration fresh_seeds known_labels audit_coverage scores dependent_scores "
    "rankings rankings_partial rankings_paper kemeny_exactness theory_constants theory_rankings theory_potentials"
)
PICTURES = {"theory_isotropic": 1, "never_worse": 9, "theory_rates": 2, "theory_distortion": 1}
PICTURES |= {"metric_spaces_paper": 1, "regression_synthetic": 1}
REAL = {"rankings_real": 1, "real_data": 1, "texts": 1, "scores_real": 2, "dependence_real": 2, "classes_real": 5}
REAL |= {"trees": 1, "movies_regression": 1, "movies_rankings": 1, "movies_rankings_real": 1, "letor": 1}
REAL |= {"end_models_real": 1, "calibration_real": 1}
TORCH = ("movies_rankings", "movies_rankings_real", "letor")
BENCHMARKS = "scores classes elements frechet labeling latency parquet peers preferences rankings scale threads trees"


def first_is_quick(names: Iterable[str]) -> list[Any]:
    slow = [[pytest.mark.slow, *([needs_torch] if name in TORCH else [])] for name in names]
    return [
        pytest.param(name, marks=marks if at else []) for at, (name, marks) in enumerate(zip(names, slow, strict=True))
    ]


@pytest.mark.parametrize("name", first_is_quick(TABLES.split()))
def test_an_experiment_writes_its_table_with_command_and_version(name, run_experiment):
    run_experiment(name)


@pytest.mark.parametrize("name", first_is_quick(PICTURES))
def test_an_experiment_writes_table_and_picture(name, run_experiment, tmp_path):
    assert f"{name}.png" in run_experiment(name, seeds=PICTURES[name])
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000


@pytest.mark.data
@pytest.mark.parametrize("name", first_is_quick(REAL))
def test_an_experiment_on_real_data_writes_its_table_without_the_folder(name, data_directory, run_experiment):
    text = run_experiment(name, seeds=REAL[name])
    assert name != "classes_real" or "youtube" in text
    assert str(data_directory) not in text


@pytest.mark.parametrize("name", ["classes_real", "rankings_real", "trees", "movies_regression"])
def test_an_experiment_on_real_data_says_which_variable_names_them(name, monkeypatch):
    monkeypatch.delenv("CONSILIENCE_DATA", raising=False)
    with pytest.raises(SystemExit, match="CONSILIENCE_DATA is not set"):
        importlib.import_module(f"experiments.{name}").main(["--quick"])


@pytest.mark.parametrize("name", first_is_quick(BENCHMARKS.split()))
def test_the_benchmark_writes_its_table(name, run_benchmark):
    run_benchmark(name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_benchmark_of_engines_writes_its_table_and_finds_the_same_labels(run_benchmark):
    assert "missed" not in run_benchmark("engines")


def test_experiments_and_benchmarks_use_public_names_only():
    public = {"cs": {*cs.__all__, "__version__"}}
    public |= {f"cs.{name}": {*one.__all__} for name in cs.__all__ if isinstance(one := getattr(cs, name), ModuleType)}
    for script in SCRIPTS:
        tree = ast.parse(script.read_text(encoding="utf-8"))
        assert [name for name in _imported(tree) if name.startswith("consilience.")] == [], script.name
        used = [(ast.unparse(node.value), node.attr) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        assert [name for owner, name in used if name not in public.get(owner, {name})] == [], script.name


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_error_of_a_share_takes_each_panel_as_one_draw():
    share_over_panels = importlib.import_module("experiments.fresh_seeds").share_over_panels
    # shares .9 and .5 of ten each: residuals +2 and -2, so sqrt(8 * 2) / 20
    assert share_over_panels(np.array([9.0, 5.0]), np.array([10.0, 10.0])) == pytest.approx((0.7, 0.2))


def test_measures_are_those_worked_out_by_hand(tables):
    truth, predicted = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    # class 0: precision 1, recall 2/3, F1 4/5; class 1: precision 1/2, recall 1, F1 2/3; class 2 does not occur
    assert tables.macro_f1(truth, predicted, 3) == pytest.approx((4 / 5 + 2 / 3) / 2)
    probabilities = np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.4, 0.6]])
    # at .9 one of two is right, a gap of .8 items; at .6 both are, another .8
    assert tables.calibration_error(np.array([0, 1, 1, 1]), probabilities) == pytest.approx(1.6 / 4)
    # a difference that rounds to zero has no sign
    assert [tables.signed(value, 3) for value in (-0.0004, 0.0, 0.0126, -0.5)] == ["0.000", "0.000", "+0.013", "-0.500"]
    fitted_slope = importlib.import_module("experiments.plots").fitted_slope
    assert fitted_slope([100, 400, 1600], [0.3, 0.15, 0.075]) == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--full"], "no larger size"), (["--seeds", "0"], "At least one"), (["--seeds", "-2"], "At least one")],
)
def test_an_option_that_would_change_nothing_is_refused(tables, arguments, words, capsys):
    with pytest.raises(SystemExit):
        tables.read_settings("experiments.x", None, 5, 1, arguments)
    assert words in capsys.readouterr().err


def test_the_oracle_sums_over_the_vote_that_a_copy_repeats():
    likelihood = importlib.import_module("experiments.label_draws").likelihood
    rng = np.random.default_rng(0)
    table, copied = rng.dirichlet(np.ones(3), (4, 3)), 0.6  # source, truth, vote
    said = rng.integers(3, size=(40, 4))
    observed = rng.random((40, 4)) < 0.6
    found = likelihood(table, said, observed, (0, 1, 2), copied)
    for row in range(40):
        for truth in range(3):
            total = 0.0
            for original in [said[row, 0]] if observed[row, 0] else range(3):
                part = table[0, truth, original]
                for copy in (1, 2):
                    own = copied * (said[row, copy] == original) + (1 - copied) * table[copy, truth, said[row, copy]]
                    part *= own if observed[row, copy] else 1.0
                total += part
            alone = table[3, truth, said[row, 3]] if observed[row, 3] else 1.0
            assert found[row, truth] == pytest.approx(total * alone)


def test_snorkel_is_given_permutations_as_classes_and_its_answers_become_rankings(monkeypatch, tmp_path):
    peer = importlib.import_module("experiments.snorkel_rankings")
    monkeypatch.setenv("CONSILIENCE_SNORKEL", str(tmp_path))
    with pytest.raises(SystemExit, match="has no bin/python"):
        peer.snorkel_python()
    # An environment whose Snorkel repeats the second source, and checks that it is given 24 classes.
    package = tmp_path / "lib" / "snorkel" / "labeling"
    package.mkdir(parents=True)
    (package / "model.py").write_text(
        "class LabelModel:\n"
        "    def __init__(self, cardinality, verbose): assert cardinality == 24\n"
        "    def fit(self, votes, **settings): assert 0 <= votes.min() and votes.max() < 24\n"
        "    def predict(self, votes, tie_break_policy): return votes[:, 1]\n"
    )
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "lib"} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    rng = np.random.default_rng(0)
    votes = rng.permuted(np.tile(np.arange(4), (50, 3, 1)), axis=2)
    assert peer.snorkel_labels(peer.snorkel_python(), votes, 0, 1).tolist() == votes[:, 1].tolist()


@needs_torch
@pytest.mark.slow
def test_board_games_run_on_a_table_of_the_same_shape(run_experiment, tmp_path):
    rng = np.random.default_rng(0)
    table = {name: rng.integers(1, 1000, 120).tolist() for name in board_games.FEATURES}
    table["average"] = rng.uniform(4, 9, 120).tolist()
    table["Board Game Rank"] = [str(place) for place in rng.permutation(120) + 1]
    pq.write_table(pa.table(table), tmp_path / "games.parquet")
    text = run_experiment("board_games", "--table", str(tmp_path / "games.parquet"))
    assert "120 games" in text
    assert str(tmp_path) not in text


def test_missing_data_stops_an_experiment_with_a_reason(monkeypatch, tmp_path):
    games = importlib.import_module("experiments.board_games")
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"Get it from kaggle\.com"):
        games.main(["--quick"])
    with pytest.raises(SystemExit, match="no folder 'letor_mq2008'"):
        importlib.import_module("experiments.letor").main(["--quick"])


@pytest.fixture
def rankings() -> ModuleType:
    return importlib.import_module("experiments.rankings")


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 300, 1000])
def test_intervals_of_ranking_weights_cover_at_their_nominal_rate(n, rankings):
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


@pytest.mark.parametrize("name", ["K=-1, d=5, mild (.1-.8)", "S^2 (.05-.8)"])
def test_votes_on_manifolds_lie_around_true_points_that_differ(name):
    # Squared distances over those of the scale are chi-squared with d degrees: mean d, variance 2 d. Five standard
    # errors of 200 items: a false alarm in two million.
    manifolds = importlib.import_module("experiments.manifolds")
    column = next(one for one in manifolds.columns(quick=False) if one.name == name)
    dimension, scale = column.space.d, np.array([0.1])
    votes, truth = manifolds.simulate_votes(column, scale, np.random.default_rng(0))
    square = column.space.distance(votes.labels[:, 0], truth) ** 2 / scale**2
    assert abs(square.mean() - dimension) < 5.0 * np.sqrt(2.0 * dimension / len(truth))
    assert column.space.distance(truth[1:], truth[:-1]).mean() > 5.0 * scale
