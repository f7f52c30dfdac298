"""The demo does the main job: it labels four tables, shows them and writes the files."""

from __future__ import annotations

import csv
import filecmp
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner
from tests.cli.running import run

import make_demo_data
import make_demo_tables
from consilience import datasets
from consilience.cli import demo, main
from consilience.cli.label import fit_votes


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Return what ``consilience demo`` printed, and the folder it wrote to."""
    folder = tmp_path_factory.mktemp("demo") / "labels"
    return CliRunner(env={"COLUMNS": "100"}).invoke(main, ["demo", "--output", str(folder)]), folder


@cache
def solved(story: demo.Story):
    """Return the table of a story, the fitted model, and the scores by name."""
    example = story.load()
    model = fit_votes(example.space, example.votes)
    return example, model, {row["labels by"]: row for row in demo.scores(story, example, model)}


def test_demo_fits_the_terminal_and_shows_sources_diagnostics_and_scores(ran):
    result = ran[0]
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Warning" not in result.output
    assert "\x1b[" not in result.output, "colors in a pipe"
    assert len(result.output.splitlines()) < 150
    for shown in ("expected cost", "true cost", "judge_large", "dependent-pair", "plain vote", "confidence"):
        assert shown in result.output


def test_demo_writes_one_label_per_item_and_the_same_again(ran, tmp_path):
    names = [f"labels-{story.name}.csv" for story in demo.STORIES]
    assert {path.name for path in ran[1].iterdir()} == set(names)
    for story in demo.STORIES:
        example, model, _ = solved(story)
        with (ran[1] / f"labels-{story.name}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["item"] for row in rows] == example.votes.items.tolist()
        read = datasets.read_ranking if story.name == "guests" else str
        assert [read(row["label"]) for row in rows] == model.predict(example.votes).tolist()
        assert all(0.0 <= float(row["confidence"]) <= 1.0 for row in rows)
    # A terminal that knows ASCII only gets the same labels.
    again = CliRunner(charset="ascii", env={"COLUMNS": "80"})
    assert again.invoke(main, ["demo", "--output", str(tmp_path), "--seed", "0"]).exit_code == 0
    assert filecmp.cmpfiles(ran[1], tmp_path, names, shallow=False)[0] == names


def test_bad_arguments_and_an_output_that_is_a_file_exit_with_status_2(tmp_path):
    for arguments in (["demo", "--seed", "-1"], ["demo", "--seed", "x"], ["demos"]):
        assert run(*arguments).exit_code == 2
    path = tmp_path / "taken"
    path.write_text("", encoding="utf-8")
    for output in (path, path / "below"):
        result = run("demo", "--output", output)
        assert result.exit_code == 2
        assert "taken" in result.output
        assert "Traceback" not in result.output


@pytest.mark.parametrize("story", demo.STORIES, ids=lambda story: story.name)
def test_labels_are_at_least_as_good_as_the_plain_vote_and_costs_near_the_true_ones(story):
    example, model, rows = solved(story)
    assert rows["consilience"]["right"] == pytest.approx(np.mean(model.predict(example.votes) == example.truth))
    assert rows["consilience"]["right"] >= rows["plain vote"]["right"]
    assert rows["consilience"]["distance"] <= rows["plain vote"]["distance"]
    # An illustration, not a test of the method: four standard errors of what is printed beside it.
    columns = demo.source_columns(example, model)
    gap = np.abs(np.array(columns["expected cost"]) - columns["true cost"])
    assert (gap < 4 * np.array(columns["std. error"])).all()
    if story.told:  # acting on the warning pays
        assert any(set(story.told[0]) <= set(finding.sources) for finding in model.diagnostics_)
        assert rows["consilience --depends shop_a,shop_b"]["distance"] < rows["consilience"]["distance"] + 0.05


def test_scores_of_rankings_count_what_is_left_open_as_half_wrong():
    # The purchases of a guest who bought two jams of five put one pair of ten in the right order at best: 0.45 is left.
    example = datasets.load_guests()
    column = example.votes.sources.index("purchases")
    short = np.array([len(order) == 2 for order in example.votes.labels[:, column]])
    score = demo.score(example, "purchases", example.votes.labels[:, column], short)
    assert short.sum() > 0
    assert 0.45 <= score["distance"] <= 0.55
    assert score["right"] == 0.0


@pytest.mark.parametrize("generator", [make_demo_data, make_demo_tables])
def test_generators_make_the_committed_tables(tmp_path, generator):
    generator.main(tmp_path)
    names = sorted(path.name for path in generator.FOLDER.iterdir() if path.is_file() and path.suffix != ".py")
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert sum((generator.FOLDER / name).stat().st_size for name in names) < 90_000
    assert filecmp.cmpfiles(generator.FOLDER, tmp_path, names, shallow=False)[0] == names


@pytest.mark.parametrize("story", demo.STORIES, ids=lambda story: story.name)
def test_truth_and_votes_are_labels_of_the_space(story):
    example = story.load()
    assert len(example.truth) == len(example.votes) == len(set(example.votes.items.tolist()))
    example.space.as_batch(example.truth)
    example.space.as_batch(example.votes.labels[example.votes.observed])
    assert example.votes.observed.any(axis=1).all()


def test_rankings_keep_not_seen_and_ranked_below_apart_and_survive_being_spelled():
    example = datasets.load_guests()
    orders = {name: example.votes.labels[:, column] for column, name in enumerate(example.votes.sources)}
    assert all(isinstance(order[3], tuple) and len(order[3]) == 2 for order in orders["waiter"])
    assert {len(order) for order in orders["purchases"]} == {2, 3, 4, 5}
    assert not any(isinstance(group, tuple) for order in orders["purchases"] for group in order)
    for order in (["fig"], ["fig", "plum"], [("fig", "plum"), "kiwi"], ["kiwi", ("fig", "lime", "plum")]):
        assert datasets.read_ranking(datasets.spell_ranking(order)) == order


def test_loading_the_datasets_imports_no_heavy_package_and_python_m_is_the_same_program():
    program = (
        "import sys; from consilience import datasets; datasets.load_tickets(); datasets.load_guests();"
        "print([name for name in ('pandas', 'pyarrow', 'numba', 'scipy', 'rich', 'click') if name in sys.modules])"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert completed.stdout.strip() == "[]", completed.stderr
    command = [sys.executable, "-m", "consilience", "--version"]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout.split()[0]) == (0, "consilience")


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
def test_word_edit_distance_counts_wrong_words(left, right, distance):
    assert datasets.word_edit_distance(left, right) == distance
    assert datasets.word_edit_distance(right, left) == distance
