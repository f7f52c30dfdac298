"""The experiments and benchmarks run, measure what they say, and use public names only."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

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
SCRIPTS = sorted([*ROOT.glob("experiments/*.py"), *ROOT.glob("benchmarks/*.py")])


@pytest.fixture
def tables() -> ModuleType:
    return importlib.import_module("experiments.tables")


@pytest.mark.parametrize(
    "name",
    [
        "finite_spaces",
        "classes_synthetic",
        "tags",
        "vectors",
        "manifolds",
        "boxes_spans",
        "geodesic_regression",
        "dependent_classes",
        "dependent_rankings",
        "preferences",
        "calibration",
        "fresh_seeds",
        "known_labels",
        "scores",
        "dependent_scores",
        "rankings",
        "rankings_partial",
        "rankings_paper",
        "kemeny_exactness",
    ],
)
def test_an_experiment_writes_its_table_with_command_and_version(name: str, run_experiment: Callable[..., str]) -> None:
    run_experiment(name)


@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        ("never_worse", 9),
        ("theory_rates", 2),
        ("theory_isotropic", 1),
        ("theory_distortion", 1),
        ("metric_spaces_paper", 1),
        ("regression_synthetic", 1),
    ],
)
def test_an_experiment_writes_table_and_picture(
    name: str, seeds: int, run_experiment: Callable[..., str], tmp_path: Path
) -> None:
    assert f"{name}.png" in run_experiment(name, seeds=seeds)
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_random_configurations_hold_sources_that_are_alike_and_any_spread_of_quality() -> None:
    draw = importlib.import_module("experiments.never_worse").Configuration.draw
    spread = np.array([np.ptp(draw(seed).quality) for seed in range(252)])
    # narrow spreads are where weights can lose; a draw without them would prove nothing
    assert (spread == 0).mean() > 0.1
    assert ((spread > 0) & (spread < 0.2)).mean() > 0.1


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        ("real_data", 1),
        ("texts", 1),
        ("scores_real", 2),
        ("dependence_real", 2),
        ("classes_real", 5),
        ("rankings_real", 1),
        ("trees", 1),
        pytest.param("movies_regression", 1, marks=pytest.mark.slow),
        *(
            pytest.param(name, 1, marks=[pytest.mark.slow, needs_torch])
            for name in ("movies_rankings", "movies_rankings_real", "letor")
        ),
    ],
)
def test_an_experiment_on_real_data_writes_its_table_without_the_folder(
    name: str, seeds: int, data_directory: Path, run_experiment: Callable[..., str]
) -> None:
    text = run_experiment(name, seeds=seeds)
    assert name != "classes_real" or "youtube" in text
    assert str(data_directory) not in text


@pytest.mark.parametrize("name", ["classes_real", "rankings_real", "trees", "movies_regression"])
def test_an_experiment_on_real_data_says_which_variable_names_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONSILIENCE_DATA", raising=False)
    with pytest.raises(SystemExit, match="CONSILIENCE_DATA is not set"):
        importlib.import_module(f"experiments.{name}").main(["--quick"])


@pytest.mark.parametrize(
    "name",
    [
        "classes",
        "elements",
        "frechet",
        "parquet",
        "peers",
        "preferences",
        "rankings",
        "scale",
        "scores",
        "threads",
        "trees",
    ],
)
def test_the_benchmark_writes_its_table(name: str, run_benchmark: Callable[[str], str]) -> None:
    run_benchmark(name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_benchmark_of_engines_writes_its_table_and_finds_the_same_labels(
    run_benchmark: Callable[[str], str],
) -> None:
    assert "missed" not in run_benchmark("engines")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_experiments_and_benchmarks_use_public_names_only(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    assert [name for name in _imported(tree) if name.startswith("consilience.")] == []
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cs"
    }
    assert used - {*cs.__all__, "__version__"} == set()


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_measures_are_those_worked_out_by_hand(tables: ModuleType) -> None:
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


def test_majority_breaks_ties_at_random_and_nothing_else(tables: ModuleType) -> None:
    matrix = np.array([[0, 0, 1], [0, 1, -1]])
    draws = np.array(list(tables.majority_draws(matrix, 2, 40)))
    assert (draws[:, 0] == 0).all()
    assert set(draws[:, 1]) == {0, 1}
    again = np.array(list(tables.majority_draws(matrix, 2, 40)))
    np.testing.assert_array_equal(draws, again)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--full"], "no larger size"), (["--seeds", "0"], "At least one"), (["--seeds", "-2"], "At least one")],
)
def test_an_option_that_would_change_nothing_is_refused(
    tables: ModuleType, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        tables.read_settings("experiments.x", None, 5, 1, arguments)
    assert words in capsys.readouterr().err


def test_a_larger_size_has_its_own_number_of_seeds(tables: ModuleType) -> None:
    settings = tables.read_settings("experiments.x", None, 5, 1, ["--full"], full_seeds=9)
    assert (settings.seeds, settings.full, settings.command) == (9, True, "python -m experiments.x --seeds 9 --full")
    with pytest.raises(SystemExit):
        tables.read_settings("experiments.x", None, 5, 1, ["--full", "--quick"], full_seeds=9)


def test_simulated_votes_follow_their_settings() -> None:
    simulate_votes = importlib.import_module("experiments.classes_synthetic").simulate_votes
    matrix, truth, k = simulate_votes("imbal", 3, 20_000)
    assert (matrix.shape, k) == ((20_000, 10), 2)
    # n = 200,000 cells and 20,000 items: five standard errors, a false alarm in a million
    assert (matrix < 0).mean() == pytest.approx(0.3, abs=0.006)
    assert truth.mean() == pytest.approx(0.2, abs=0.015)
    copied, _, _ = simulate_votes("corr", 3, 20_000)
    both = (copied[:, 8] >= 0) & (copied[:, 9] >= 0)
    # both keep the original (.81), or one or both are redrawn and agree by chance (.52 as 6 of 10 votes are right)
    expected = 0.81 + 0.19 * 0.52
    assert (copied[both, 8] == copied[both, 9]).mean() == pytest.approx(expected, abs=0.015)


def test_a_block_of_fresh_seeds_is_recorded_and_found_again(tmp_path: Path) -> None:
    fresh_seeds = importlib.import_module("experiments.fresh_seeds")
    path = tmp_path / "blocks.json"
    starts = [fresh_seeds.new_block(path, 5) for _ in range(3)]
    assert min(starts) >= fresh_seeds.FIRST_FRESH
    assert np.diff(np.sort(starts)).min() >= 5
    assert fresh_seeds.find_block(path, None) == (starts[-1], 5)
    assert fresh_seeds.find_block(path, starts[0]) == (starts[0], 5)
    with pytest.raises(SystemExit, match="no such block"):
        fresh_seeds.find_block(path, 7)


def test_a_configuration_that_fails_is_part_of_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh_seeds = importlib.import_module("experiments.fresh_seeds")
    monkeypatch.setattr(fresh_seeds, "measure", lambda kind, job: 1 / 0)
    record = fresh_seeds.run(("scores", "random", "", 3), 9.0)
    assert record["error"].startswith("ZeroDivisionError")
    found = fresh_seeds.summarize([record], {})
    assert (found["worse by >2%"], found[">10%"], found["errors"]) == (1.0, 1.0, 1)


def test_the_oracle_sums_over_the_vote_that_a_copy_repeats() -> None:
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


@needs_torch
@pytest.mark.slow
def test_board_games_run_on_a_table_of_the_same_shape(run_experiment: Callable[..., str], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = {name: rng.integers(1, 1000, 120).tolist() for name in board_games.FEATURES}
    table["average"] = rng.uniform(4, 9, 120).tolist()
    table["Board Game Rank"] = [str(place) for place in rng.permutation(120) + 1]
    pq.write_table(pa.table(table), tmp_path / "games.parquet")
    text = run_experiment("board_games", "--table", str(tmp_path / "games.parquet"))
    assert "120 games" in text
    assert str(tmp_path) not in text


def test_missing_data_stops_an_experiment_with_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    games = importlib.import_module("experiments.board_games")
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"Get it from kaggle\.com"):
        games.main(["--quick"])
    with pytest.raises(SystemExit, match="no folder 'letor_mq2008'"):
        importlib.import_module("experiments.letor").main(["--quick"])


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


def test_the_law_of_distances_is_that_of_simulated_votes() -> None:
    law_of = importlib.import_module("experiments.theory_distortion").Law
    space = cs.FiniteMetric([(0, 1), (1, 2), (2, 3), (1, 4)])
    law, rng = law_of(space.matrix), np.random.default_rng(0)
    truth = rng.integers(5, size=40_000)
    votes = cs.simulate(space, truth, [0.8], rng).labels[:, 0]
    mean, variance = law.moments(0.8)
    # n = 40,000: five standard errors are 0.025, a false alarm in a million
    assert space.distance(votes, truth).mean() == pytest.approx(mean, abs=0.025)
    assert law.weight_of(mean) == pytest.approx(0.8)
    # the mean falls with the weight by the variance
    assert (law.moments(0.8 + 1e-5)[0] - mean) / 1e-5 == pytest.approx(-variance, rel=1e-3)


def test_scaling_makes_no_distance_longer_and_keeps_those_of_a_line() -> None:
    scaled = importlib.import_module("experiments.theory_distortion").scaled
    line = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    np.testing.assert_allclose(scaled(line, 1), line, atol=1e-9)
    star = cs.FiniteMetric([(0, 1), (0, 2), (0, 3)]).matrix
    short = scaled(star, 2)
    assert (short <= star + 1e-12).all()
    assert np.isclose(short, star)[~np.eye(4, dtype=bool)].any()


def test_heterogeneous_weights_are_those_of_the_reference_implementation() -> None:
    settings_of = importlib.import_module("experiments.metric_spaces_paper").settings_of
    means = [round(float(weight.mean()), 3) for weight in settings_of("het")]
    assert means == [0.05, 0.3, 0.7, 1.2, 1.8, 2.5, 3.3, 4.2]
    np.testing.assert_allclose(settings_of("het")[2][:4], [0.2, 1.2, 0.2, 1.2])


@pytest.fixture
def rankings() -> ModuleType:
    return importlib.import_module("experiments.rankings")


@pytest.fixture
def paper() -> ModuleType:
    return importlib.import_module("experiments.rankings_paper")


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


def test_the_medoid_is_the_vote_closest_to_the_others_and_unseen_items_come_last(paper: ModuleType) -> None:
    positions = np.array([[[0, 1, 2], [0, 2, 1], [2, 1, 0]]])
    truth = np.array([[0, 2, 1]])
    assert paper.medoid_error(positions, np.array([1.0, 5.0, 1.0]), truth) == 0.0
    assert paper.medoid_error(positions, np.array([5.0, 1.0, 1.0]), truth) == pytest.approx(1 / 3)
    done = paper.unseen_last(np.array([[1, -1, 0, -1]]), np.random.default_rng(0))
    assert done[0, [2, 0]].tolist() == [0, 1]
    assert sorted(done[0, [1, 3]]) == [2, 3]


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
