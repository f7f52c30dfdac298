"""`--engine` labels files in pieces, as the program does in memory."""

from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.running import refused_by_program, result_of, run

import consilience as cs


@pytest.fixture
def votes(tmp_path, monkeypatch):
    """Return a folder with votes in several row groups, which is the current one."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, size=600)
    table = {"item": [f"x{row}" for row in range(600)]}
    for source in range(5):
        cells = np.where(rng.random(600) < 0.6 + 0.08 * source, truth, rng.integers(0, 3, size=600))
        table[f"s{source}"] = np.array(["ant", "bee", "cat"])[cells].tolist()
    table["truth"] = [None] * 600
    table["truth"][:40] = np.array(["ant", "bee", "cat"])[truth[:40]].tolist()
    pq.write_table(pa.table(table), tmp_path / "votes.parquet", row_group_size=200)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_labels_in_pieces_are_those_of_the_whole_table(votes):
    options = ("--space", "classes:ant,bee,cat", "--gold", "truth")
    found = result_of("label", "votes.parquet", "-o", "labels", "--engine", "local", "--save", "m.npz", *options)
    assert (found["items"], found["files"], found["skipped"], found["engine"]) == (600, 3, 0, "local")
    assert [found["receipt"][name] for name in ("cells", "used", "empty", "ids")] == [3000, 3000, 0, "item"]
    result_of("label", "votes.parquet", "-o", "whole.parquet", *options)
    pieces, whole = pq.read_table("labels"), pq.read_table("whole.parquet")
    assert pieces.column("label").to_pylist() == whole.column("label").to_pylist()
    assert np.allclose(pieces.column("confidence").to_numpy(), whole.column("confidence").to_numpy(), rtol=1e-10)
    again = result_of("predict", "m.npz", "votes.parquet", "-o", "again", "--engine", "local", "--drop", "truth")
    assert again["items"] == 600
    assert pq.read_table("again").equals(pieces)


def test_a_stopped_run_is_continued_and_a_finished_one_is_kept(votes):
    command = ("label", "votes.parquet", "-o", "labels", "--engine", "local", "--drop", "truth")
    assert run(*command).exit_code == 0
    manifest = votes / "labels" / "_manifest.jsonl"
    manifest.write_text("".join(manifest.read_text().splitlines(keepends=True)[:2]))
    (votes / "labels" / "part-000002.parquet").write_bytes(b"half")
    refused_by_program(votes, *command, words=("not empty", "--force"))
    assert run(*command, "--resume").exit_code == 0
    assert pq.read_table("labels").num_rows == 600


def test_wrong_cells_stop_or_abstain(votes):
    table = pq.read_table("votes.parquet").to_pydict()
    table["s2"][333] = "dragonfly"
    pq.write_table(pa.table(table), "votes.parquet", row_group_size=200)
    command = ("label", "votes.parquet", "-o", "labels", "--engine", "local", "--drop", "truth")
    space = ("--space", "classes:ant,bee,cat")
    words = ("votes.parquet", "row group 1", "row 133", "'s2'", "dragonfly")
    refused_by_program(votes, *command, *space, words=words)
    found = result_of(*command, *space, "--on-error", "abstain")
    assert (found["skipped"], found["receipt"]["not_votes"], found["receipt"]["used"]) == (1, {"not a label": 1}, 2999)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--resume",), ("--resume requires --engine (local or dask)",)),
        (("--engine", "local", "--master", "local[2]"), ("--master requires --engine (spark)",)),
        (("--engine", "spark", "--resume"), ("Spark commits its files", "--engine local or dask")),
        (("--engine", "local", "--report", "page.html"), ("needs the votes in memory",)),
        (("--engine", "local", "--layout", "long"), ("one row per item", "convert")),
    ],
)
def test_options_that_do_not_go_together_are_refused(votes, options, words):
    refused_by_program(votes, "label", "votes.parquet", "-o", "labels", "--drop", "truth", *options, words=words)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("engine", "package"), [("dask", "distributed"), ("spark", "pyspark")])
def test_engines_label_like_the_program_itself(votes, engine, package):
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install -e '.[{engine}]' to run this test")
    where = {"dask": (), "spark": ("--master", "local[2]")}[engine]
    options = ("--space", "classes:ant,bee,cat", "--gold", "truth")
    found = result_of("label", "votes.parquet", "-o", "labels", "--engine", engine, *where, *options)
    assert found["items"] == 600
    table = pq.read_table("labels").sort_by("item")
    space = cs.Classes(["ant", "bee", "cat"])
    gold = pq.read_table("votes.parquet").column("truth").to_pylist()
    read = cs.read_votes("votes.parquet", space, drop=["truth"])
    expected = cs.tables.label_table(cs.LabelModel(space, random_state=0).fit(read, gold=gold), read).sort_by("item")
    assert table.column("label").to_pylist() == expected.column("label").to_pylist()


def test_votes_are_inspected_in_pieces_with_the_numbers_of_the_whole_table(votes):
    options = ("votes.parquet", "--space", "classes:ant,bee,cat", "--gold", "truth")
    pieces, whole = result_of("inspect", *options, "--engine", "local"), result_of("inspect", *options)
    assert pieces == whole
    assert pieces["items"] == 600
    refused = run("inspect", *options, "--engine", "local", "--resume")
    assert refused.exit_code == 2  # nothing is written that could be continued
