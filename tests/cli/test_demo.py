"""The demo does the main job: it labels four tables, shows them and writes the files."""

from __future__ import annotations

import csv
import filecmp
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import make_demo_data
from consilience import datasets
from consilience.cli import demo, main
from consilience.datasets import Example

FOLDER = Path(datasets.__file__).parent
LOADERS = [datasets.load_tickets, datasets.load_products, datasets.load_guests, datasets.load_sentences]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """Return what ``consilience demo`` printed, and the folder it wrote to."""
    folder = tmp_path_factory.mktemp("demo") / "labels"
    result = CliRunner(env={"COLUMNS": "100"}).invoke(main, ["demo", "--output", str(folder)])
    return result, folder


@pytest.fixture(scope="module")
def outcomes() -> dict[str, demo.Outcome]:
    """Return the solved stories by name."""
    return {story.name: demo.solve(story) for story in demo.STORIES}


@pytest.fixture(scope="module", params=[story.name for story in demo.STORIES])
def outcome(request: pytest.FixtureRequest, outcomes: dict[str, demo.Outcome]) -> demo.Outcome:
    """Return one solved story after the other."""
    return outcomes[request.param]


# --- the command ----------------------------------------------------------------------------------


def test_demo_ends_well_and_warns_of_nothing(ran: tuple[Result, Path]) -> None:
    result, _ = ran
    assert result.exit_code == 0, result.output
    assert "Warning" not in result.output
    assert result.stderr == ""


def test_demo_is_short_enough_to_read_and_fits_the_terminal(ran: tuple[Result, Path]) -> None:
    lines = ran[0].output.splitlines()
    assert len(lines) < 150
    assert max(len(line) for line in lines if not line.startswith("Wrote")) <= 100


def test_demo_prints_no_colours_into_a_pipe(ran: tuple[Result, Path]) -> None:
    assert "\x1b[" not in ran[0].output


def test_demo_prints_where_the_terminal_knows_ascii_only(tmp_path: Path) -> None:
    result = CliRunner(charset="ascii", env={"COLUMNS": "80"}).invoke(main, ["demo", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.exception


def test_demo_shows_sources_diagnostics_and_scores(ran: tuple[Result, Path]) -> None:
    output = ran[0].output
    for shown in ("expected cost", "true cost", "judge_large", "dependent-pair", "majority vote", "confidence"):
        assert shown in output


def test_demo_writes_one_label_per_item(ran: tuple[Result, Path], outcome: demo.Outcome) -> None:
    with (ran[1] / f"labels-{outcome.story.name}.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["item", "label", "confidence"]
    assert [row[0] for row in rows] == outcome.example.votes.items.tolist()
    assert [row[1] for row in rows] == [demo.spelled(label) for label in outcome.labels]
    assert all(0.0 <= float(row[2]) <= 1.0 for row in rows)


def test_demo_leaves_no_temporary_files(ran: tuple[Result, Path]) -> None:
    expected = {f"labels-{story.name}.csv" for story in demo.STORIES}
    assert {path.name for path in ran[1].iterdir()} == expected


def test_failed_write_leaves_the_old_file(
    tmp_path: Path, outcomes: dict[str, demo.Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "labels-tickets.csv"
    target.write_text("as it was", encoding="utf-8")

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(demo.os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        demo.write_labels(outcomes["tickets"], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert target.read_text(encoding="utf-8") == "as it was"


def test_same_seed_gives_the_same_files(ran: tuple[Result, Path], tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["demo", "--output", str(tmp_path), "--seed", "0"])
    assert result.exit_code == 0
    names = [f"labels-{story.name}.csv" for story in demo.STORIES]
    assert filecmp.cmpfiles(ran[1], tmp_path, names, shallow=False)[0] == names


@pytest.mark.parametrize("arguments", [["demo", "--seed", "-1"], ["demo", "--seed", "x"], ["demos"]])
def test_bad_arguments_exit_with_status_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, arguments).exit_code == 2


def test_output_that_is_a_file_exits_with_status_2_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "taken"
    path.write_text("", encoding="utf-8")
    for output in (path, path / "below"):
        result = CliRunner().invoke(main, ["demo", "--output", str(output)])
        assert result.exit_code == 2
        assert "taken" in result.output
        assert "Traceback" not in result.output


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_names_the_commands(flag: str) -> None:
    result = CliRunner().invoke(main, [flag])
    assert result.exit_code == 0
    assert "demo" in result.output
    assert "--version" in result.output


def test_python_m_consilience_is_the_same_program() -> None:
    command = [sys.executable, "-m", "consilience", "--version"]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout.split()[0]) == (0, "consilience")


# --- what it says -----------------------------------------------------------------------------------


def test_labels_are_at_least_as_good_as_majority_vote(outcome: demo.Outcome) -> None:
    ours, majority = outcome.score("consilience"), outcome.score("majority vote")
    assert ours.right >= majority.right
    assert ours.distance <= majority.distance


def test_scores_are_those_of_the_labels(outcome: demo.Outcome) -> None:
    truth = outcome.example.truth
    assert outcome.score("consilience").right == pytest.approx(np.mean(outcome.labels == truth))
    assert outcome.score("majority vote").right == pytest.approx(np.mean(outcome.majority == truth))


def test_every_source_has_an_estimate_near_its_true_cost(outcome: demo.Outcome) -> None:
    # An illustration, not a test of the method: four standard errors of what is printed beside it.
    error = np.array(outcome.model.sources_.columns["cost_standard_error"])
    assert (np.abs(outcome.model.expected_cost_ - outcome.true_cost) < 4 * error).all()


def test_acting_on_the_warning_pays(outcomes: dict[str, demo.Outcome]) -> None:
    products = outcomes["products"]
    named = [set(finding.sources) for finding in products.model.diagnostics_]
    assert any(set(products.story.told[0]) <= sources for sources in named)
    told = products.score("consilience, dependencies=[('shop_a', 'shop_b')]")
    assert told.distance < products.score("consilience").distance + 0.05


def test_scores_of_rankings_count_what_is_left_open_as_half_wrong(outcomes: dict[str, demo.Outcome]) -> None:
    # The purchases of a guest who bought two jams of five put one pair of ten in the right order at best: 0.45 is left.
    example = outcomes["guests"].example
    column = example.votes.sources.index("purchases")
    short = np.array([len(order) == 2 for order in example.votes.labels[:, column]])
    score = demo.score_of(example, "purchases", example.votes.labels[:, column], short)
    assert short.sum() > 0
    assert 0.45 <= score.distance <= 0.55
    assert score.right == 0.0


def test_rankings_are_written_best_first(ran: tuple[Result, Path], outcomes: dict[str, demo.Outcome]) -> None:
    with (ran[1] / "labels-guests.csv").open(encoding="utf-8", newline="") as file:
        first = next(csv.DictReader(file))
    assert datasets.read_ranking(first["label"]) == outcomes["guests"].labels[0]


def test_rescued_items_are_right_where_the_majority_is_wrong(outcome: demo.Outcome) -> None:
    truth, rows = outcome.example.truth, np.flatnonzero(outcome.rescued)
    assert len(rows) > 0
    assert all(outcome.labels[row] == truth[row] != outcome.majority[row] for row in rows)


# --- the example tables -------------------------------------------------------------------------------


def test_generator_makes_the_committed_tables(tmp_path: Path) -> None:
    make_demo_data.main(tmp_path)
    names = sorted(path.name for path in FOLDER.glob("*.csv"))
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert filecmp.cmpfiles(FOLDER, tmp_path, names, shallow=False)[0] == names


def test_tables_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.csv")) < 90_000


@pytest.mark.parametrize("load", LOADERS, ids=lambda load: load.__name__)
def test_truth_and_votes_are_labels_of_the_space(load: object) -> None:
    example: Example = load()  # type: ignore[operator]
    assert len(example.truth) == len(example.votes) == len(set(example.votes.items.tolist()))
    example.space.as_batch(example.truth)
    example.space.as_batch(example.votes.labels[example.votes.observed])
    assert example.votes.observed.any(axis=1).all()


def test_sources_of_rankings_keep_not_seen_and_ranked_below_apart() -> None:
    example = datasets.load_guests()
    orders = {name: example.votes.labels[:, column] for column, name in enumerate(example.votes.sources)}
    assert all(isinstance(order[3], tuple) and len(order[3]) == 2 for order in orders["waiter"])
    assert {len(order) for order in orders["purchases"]} == {2, 3, 4, 5}
    assert not any(isinstance(group, tuple) for order in orders["purchases"] for group in order)


@pytest.mark.parametrize(
    "order", [["fig"], ["fig", "plum"], [("fig", "plum"), "kiwi"], ["kiwi", ("fig", "lime", "plum")]]
)
def test_rankings_survive_being_spelled(order: list[object]) -> None:
    assert datasets.read_ranking(datasets.spell_ranking(order)) == order


def test_loading_the_datasets_imports_no_heavy_package() -> None:
    program = (
        "import sys; from consilience import datasets; datasets.load_tickets(); datasets.load_guests();"
        "print([name for name in ('pandas', 'pyarrow', 'numba', 'scipy', 'rich', 'click') if name in sys.modules])"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert completed.stdout.strip() == "[]", completed.stderr


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [
        ("", "", 0),
        ("the cat sat", "the cat sat", 0),
        ("", "one two", 2),
        ("a b c", "a c", 1),
        ("a b c", "a x c", 1),
        ("a b", "b a", 2),
        ("the cat sat down", "a cat sat", 2),
    ],
)
def test_word_edit_distance_counts_wrong_words(left: str, right: str, distance: int) -> None:
    assert datasets.word_edit_distance(left, right) == distance
    assert datasets.word_edit_distance(right, left) == distance
