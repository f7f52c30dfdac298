"""Votes as tables, wide or long, with labels as they were written; frames and files of other tools as votes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.cli.running import run
from tests.refusals import refused

import consilience as cs
from consilience.exceptions import FileFormatError, InvalidVotesError


def applied(space, *columns):
    functions = [cs.labeling.from_column(name) for name in "ab"[: len(columns)]]
    return cs.apply(functions, pd.DataFrame(dict(zip("ab", columns, strict=False))), space)


def test_names_stored_as_codes_come_out_as_names_and_never_as_codes():
    space = cs.Classes(["ham", "spam"])
    votes = applied(space, ["spam", None], ["ham", "ham"])
    assert votes.labels.dtype == np.int8
    assert votes.to_long(space)["label"].to_pylist() == ["spam", "ham", "ham"]
    assert cs.tables.wide_table(votes, space).to_pylist() == [
        {"item": 0, "a": "spam", "b": "ham"},
        {"item": 1, "a": None, "b": "ham"},
    ]
    for table in (votes.to_long, lambda: cs.tables.wide_table(votes)):
        with refused(InvalidVotesError, "stored as codes", "as space"):
            table()
    numbers = applied(cs.Classes(3), [2, 0], [1, 1])
    for given in (None, cs.Classes(3)):
        assert numbers.to_long(given)["label"].to_pylist() == [2, 1, 0, 1]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([[[0, 1], None]], [[0, 1], None]),
        ([[frozenset({"b", "a"}), frozenset()]], [["a", "b"], []]),
        ([[["a", "b"], ["b", "a"]]], [["a", "b"], ["b", "a"]]),
        ([[["a", "b"], [("a", "b"), "c"]]], ["a > b", "a = b > c"]),
        ([[{"stars": 4.5}, None]], [{"stars": 4.5}, None]),
    ],
    ids=["positions", "sets", "orders", "ties", "records"],
)
def test_labels_of_any_type_come_out_as_files_hold_them(cells, expected):
    votes = cs.Votes.from_array(cells, sources=["x", "y"])
    row = cs.tables.wide_table(votes).to_pylist()[0]
    assert [row["x"], row["y"]] == expected
    assert votes.to_long()["label"].to_pylist()[:2] == expected


def test_source_that_is_called_as_the_ids_is_refused():
    votes = cs.Votes.from_matrix([[1, 2]], sources=["item", "b"])
    with refused(InvalidVotesError, "'item'", "differently"):
        cs.tables.wide_table(votes)
    assert cs.tables.wide_table(votes, item="id").column_names == ["id", "item", "b"]


def test_conversion_says_what_it_cannot_do(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("id,a,b\nx,1,2\n")
    with refused(FileFormatError, "to='tall'", "'wide'"):
        cs.tables.convert_votes(path, tmp_path / "out.csv", to="tall")
    with refused(FileFormatError, "already exists"):
        cs.tables.convert_votes(path, path, to="long")
    assert path.read_text() == "id,a,b\nx,1,2\n"


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("source", ["worker", "performer"])
def test_frames_of_crowd_kit_are_read_as_they_are(make, source):
    frame = make({"task": ["t1", "t1", "t2"], source: ["w1", "w2", "w2"], "label": ["cat", "dog", "cat"]})
    votes = cs.read_votes(frame)
    assert votes.sources == ("w1", "w2")
    assert votes.items.tolist() == ["t1", "t2"]
    assert votes.labels[votes.observed].tolist() == ["cat", "dog", "cat"]
    wide = cs.read_votes(make({"id": ["x", "y"], "ann": [1, None], "bob": [0, 1]}))
    assert wide.labels.dtype.kind == "i"
    assert wide.observed.tolist() == [[True, True], [False, True]]


@pytest.mark.parametrize(
    ("name", "reader"),
    [("parses.conllu", "read_conllu"), ("votes.soi", "Rankings.read_preflib")],
)
def test_files_that_are_no_tables_name_their_reader(tmp_path, name, reader):
    path = tmp_path / name
    path.write_text("anything")
    with refused(FileFormatError, name, reader):
        cs.read_votes(path)


def test_convert_cleans_and_merges_where_options_say_so_and_keeps_the_layout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("id,ann,bob\nx,Cat,cat\nx,dog,cat\ny,N/A,dog\n")
    assert run("convert", "v.csv", "same.csv").exit_code == 0
    assert (tmp_path / "same.csv").read_text() == (tmp_path / "v.csv").read_text()
    ran = run("convert", "v.csv", "clean.csv", "--repeats", "first", "--fold")
    assert "Used 3 of 4 cells: 1 'N/A'; 1 duplicate row merged" in ran.stderr
    assert (tmp_path / "clean.csv").read_text() == "item,ann,bob\nx,cat,cat\ny,,dog\n"
    (tmp_path / "mixed.csv").write_text("id,ann,bob\nx,7,8/10\ny,3,N/A\n")
    assert run("convert", "mixed.csv", "long.csv", "--to", "long", "--strict").exit_code == 0
    assert (tmp_path / "long.csv").read_text() == "item,source,label\nx,ann,7\nx,bob,8/10\ny,ann,3\ny,bob,N/A\n"
