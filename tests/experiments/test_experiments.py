"""The experiments and benchmarks run, measure what they say, and use public names only."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import consilience as cs

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted([*ROOT.glob("experiments/*.py"), *ROOT.glob("benchmarks/*.py")])


@pytest.fixture(autouse=True)
def root_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


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
    ],
)
def test_an_experiment_writes_its_table_with_command_and_version(name: str, tmp_path: Path) -> None:
    importlib.import_module(f"experiments.{name}").main(["--quick", "--results", str(tmp_path)])
    _check_table(tmp_path / f"{name}.md", f"python -m experiments.{name} --seeds 1 --quick")


@pytest.mark.parametrize(("name", "seeds"), [("scores", 1), ("dependent_scores", 1)])
def test_an_experiment_on_scores_writes_its_table(name: str, seeds: int, tmp_path: Path) -> None:
    importlib.import_module(f"experiments.{name}").main(["--quick", "--results", str(tmp_path)])
    _check_table(tmp_path / f"{name}.md", f"python -m experiments.{name} --seeds {seeds} --quick")


def test_the_experiment_against_the_plain_vote_writes_table_and_plot(tmp_path: Path) -> None:
    importlib.import_module("experiments.never_worse").main(["--quick", "--results", str(tmp_path)])
    text = (tmp_path / "never_worse.md").read_text(encoding="utf-8")
    assert "`python -m experiments.never_worse --seeds 9 --quick`" in text
    assert "never_worse.png" in text or "consilience[plot]" in text


def test_random_configurations_hold_sources_that_are_alike_and_any_spread_of_quality() -> None:
    draw = importlib.import_module("experiments.never_worse").Configuration.draw
    spread = np.array([np.ptp(draw(seed).quality) for seed in range(252)])
    # narrow spreads are where weights can lose; a draw without them would prove nothing
    assert (spread == 0).mean() > 0.1
    assert ((spread > 0) & (spread < 0.2)).mean() > 0.1


@pytest.mark.data
def test_the_experiment_on_real_data_writes_its_table(data_directory: Path, tmp_path: Path) -> None:
    importlib.import_module("experiments.real_data").main(["--quick", "--results", str(tmp_path)])
    text = _check_table(tmp_path / "real_data.md", "python -m experiments.real_data --seeds 1 --quick")
    assert str(data_directory) not in text


@pytest.mark.data
def test_the_experiment_on_texts_writes_its_table(data_directory: Path, tmp_path: Path) -> None:
    importlib.import_module("experiments.texts").main(["--quick", "--results", str(tmp_path)])
    text = _check_table(tmp_path / "texts.md", "python -m experiments.texts --seeds 1 --quick")
    assert str(data_directory) not in text


@pytest.mark.data
def test_the_experiment_on_real_scores_writes_its_table(data_directory: Path, tmp_path: Path) -> None:
    importlib.import_module("experiments.scores_real").main(["--quick", "--results", str(tmp_path)])
    text = _check_table(tmp_path / "scores_real.md", "python -m experiments.scores_real --seeds 2 --quick")
    assert str(data_directory) not in text


@pytest.mark.data
def test_the_experiment_on_real_dependence_writes_its_table(data_directory: Path, tmp_path: Path) -> None:
    importlib.import_module("experiments.dependence_real").main(["--quick", "--results", str(tmp_path)])
    text = _check_table(tmp_path / "dependence_real.md", "python -m experiments.dependence_real --seeds 2 --quick")
    assert str(data_directory) not in text


@pytest.mark.data
def test_the_experiment_on_real_votes_writes_its_table(data_directory: Path, tmp_path: Path) -> None:
    importlib.import_module("experiments.classes_real").main(["--quick", "--results", str(tmp_path)])
    text = _check_table(tmp_path / "classes_real.md", "python -m experiments.classes_real --seeds 5 --quick")
    assert "youtube" in text
    assert str(data_directory) not in text


def test_the_experiment_on_real_votes_says_which_variable_names_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONSILIENCE_DATA", raising=False)
    with pytest.raises(SystemExit, match="CONSILIENCE_DATA is not set"):
        importlib.import_module("experiments.classes_real").main(["--quick"])


@pytest.mark.parametrize("name", ["classes", "parquet", "peers", "preferences", "scale", "scores", "threads"])
def test_the_benchmark_writes_its_table(name: str, tmp_path: Path) -> None:
    script = str(ROOT / "benchmarks" / f"bench_{name}.py")
    subprocess.run([sys.executable, script, "--quick", "--results", str(tmp_path)], check=True, capture_output=True)
    _check_table(tmp_path / f"{name}.md", f"python benchmarks/bench_{name}.py --quick")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_benchmark_of_engines_writes_its_table_and_finds_the_same_labels(tmp_path: Path) -> None:
    script = str(ROOT / "benchmarks" / "bench_engines.py")
    subprocess.run([sys.executable, script, "--quick", "--results", str(tmp_path)], check=True, capture_output=True)
    text = (tmp_path / "engines.md").read_text(encoding="utf-8")
    assert f"`python benchmarks/bench_engines.py --quick` · consilience {cs.__version__}" in text
    assert "missed" not in text


def test_the_benchmark_of_boxes_and_texts_writes_its_table(tmp_path: Path) -> None:
    importlib.import_module("benchmarks.bench_elements").main(["--quick", "--results", str(tmp_path)])
    _check_table(tmp_path / "elements.md", "python benchmarks/bench_elements.py --quick")


def test_the_benchmark_of_means_writes_its_table(tmp_path: Path) -> None:
    importlib.import_module("benchmarks.bench_frechet").main(["--quick", "--results", str(tmp_path)])
    _check_table(tmp_path / "frechet.md", "python benchmarks/bench_frechet.py --quick")


def _check_table(path: Path, command: str) -> str:
    text = path.read_text(encoding="utf-8")
    assert f"`{command}` · consilience {cs.__version__}" in text
    assert "nan" not in text
    widths = {line.count("|") for line in text.splitlines() if line.startswith("| ---")}
    assert widths
    assert {line.count("|") for line in text.splitlines() if line.startswith("|")} == widths
    return text


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


def test_macro_f1_is_the_mean_over_the_classes_that_occur(tables: ModuleType) -> None:
    truth, predicted = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    # class 0: precision 1, recall 2/3, F1 4/5; class 1: precision 1/2, recall 1, F1 2/3; class 2 does not occur
    assert tables.macro_f1(truth, predicted, 3) == pytest.approx((4 / 5 + 2 / 3) / 2)


def test_calibration_error_compares_confidence_and_accuracy_bin_by_bin(tables: ModuleType) -> None:
    probabilities = np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.4, 0.6]])
    # at .9 one of two is right, a gap of .8 items; at .6 both are, another .8
    assert tables.calibration_error(np.array([0, 1, 1, 1]), probabilities) == pytest.approx(1.6 / 4)


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


def test_a_difference_that_rounds_to_zero_has_no_sign(tables: ModuleType) -> None:
    assert [tables.signed(value, 3) for value in (-0.0004, 0.0, 0.0126, -0.5)] == ["0.000", "0.000", "+0.013", "-0.500"]


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
