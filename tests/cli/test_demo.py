"""The demo does the main job: it labels four tables, shows them and writes the files."""

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
import make_tutorial_data
from consilience.cli import demo, main
from consilience.cli.label import fit_votes
from consilience.label_types.rankings.labels import order_of_text


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
    found = model.predict(example.votes), model.predict_baseline(example.votes)
    return example, model, {row["labels by"]: row for row in demo.scores(story, example, *found)}


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
        read = order_of_text if story.name == "guests" else str
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


@pytest.mark.parametrize(
    ("generator", "most"), [(make_demo_data, 90_000), (make_demo_tables, 90_000), (make_tutorial_data, 450_000)]
)
def test_generators_make_the_committed_tables(tmp_path, generator, most):
    generator.main(tmp_path)
    names = sorted(path.name for path in generator.FOLDER.iterdir() if path.is_file() and path.suffix != ".py")
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert sum((generator.FOLDER / name).stat().st_size for name in names) < most
    assert filecmp.cmpfiles(generator.FOLDER, tmp_path, names, shallow=False)[0] == names


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
