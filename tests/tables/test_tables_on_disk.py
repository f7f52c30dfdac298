"""Tables on disk: what is read, what is refused, and that nothing is half written."""

from __future__ import annotations

import errno
import os
import stat

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refused

from consilience.exceptions import FileFormatError
from consilience.tables.files import csv_of_table, read_table, replace_file, table_of_csv, typed_cells, write_table

TABLE = pa.table(
    {
        "item": ["a", "b", "NA"],
        "label": pa.array(["cat", None, "None"]),
        "score": [1.5, None, -3.0],
        "order": [[0, 1], None, [1, 0]],
    }
)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet", "t.arrow", "t.feather"])
def test_table_comes_back_as_it_was_written(tmp_path, name):
    write_table(tmp_path / name, TABLE)
    assert read_table(tmp_path / name).to_pylist() == TABLE.to_pylist()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_folder_of_parquet_files_is_one_table(tmp_path):
    for part in range(3):
        pa.parquet.write_table(pa.table({"x": [part]}), tmp_path / f"part-{part}.parquet")
    assert read_table(tmp_path).column("x").to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_delimiter_is_seen_in_the_first_line(tmp_path, sign):
    path = tmp_path / "t.csv"
    path.write_text(f"item{sign}ann{sign}bob\nx{sign}1{sign}2\n")
    assert read_table(path).to_pylist() == [{"item": "x", "ann": 1, "bob": 2}]


def test_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfitem,ann\nx,1\n")
    assert read_table(path).column_names == ["item", "ann"]


def test_column_is_numbers_only_if_every_cell_is_one():
    assert typed_cells(["1", "2", ""]) == [1, 2, None]
    assert typed_cells(["1", "x"]) == ["1", "x"]
    assert typed_cells(["007", "12"]) == ["007", "12"]
    assert typed_cells(["1e3", "2"]) == [1000.0, 2.0]
    assert typed_cells(["nan", "1"]) == ["nan", "1"]
    assert typed_cells(["", ""]) == [None, None]


@given(
    st.lists(
        st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0\r")), min_size=2, max_size=2),
        max_size=5,
    )
)
def test_text_survives_csv(rows):
    table = pa.table(
        {
            "a": pa.array([f"x{row[0]}" for row in rows], pa.string()),
            "b": pa.array([f"y{row[1]}" for row in rows], pa.string()),
        }
    )
    assert table_of_csv(csv_of_table(table), "t.csv", ",").to_pylist() == table.to_pylist()


def test_missing_file_is_named_with_a_similar_one(tmp_path):
    (tmp_path / "votes.csv").write_text("a\n1\n")
    with refused(FileFormatError, "vote.csv", "Did you mean", "votes.csv"):
        read_table(tmp_path / "vote.csv")


def test_unknown_ending_lists_the_known_ones(tmp_path):
    path = tmp_path / "votes.xlsx"
    path.write_bytes(b"PK")
    with refused(FileFormatError, "'.xlsx'", ".csv", ".parquet"):
        read_table(path)


def test_empty_file_is_refused(tmp_path):
    path = tmp_path / "votes.csv"
    path.touch()
    with refused(FileFormatError, "is empty", "names at the top"):
        read_table(path)


def test_truncated_parquet_is_refused(tmp_path):
    path = tmp_path / "votes.parquet"
    pa.parquet.write_table(TABLE, path)
    path.write_bytes(path.read_bytes()[:-20])
    with refused(FileFormatError, "cannot be read as Parquet", "cut short"):
        read_table(path)


def test_text_called_parquet_is_refused(tmp_path):
    path = tmp_path / "votes.parquet"
    path.write_text("item,ann\n")
    with refused(FileFormatError, "does not start like such a file", ".csv"):
        read_table(path)


def test_parquet_called_csv_is_refused(tmp_path):
    path = tmp_path / "votes.csv"
    pa.parquet.write_table(TABLE, path)
    with refused(FileFormatError, "not text but Parquet", ".parquet"):
        read_table(path)


def test_ragged_row_is_named_by_line(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("item,ann,bob\nx,1,2\ny,1\n")
    with refused(FileFormatError, "line 3", "2 cells where the first line has 3", "','"):
        read_table(path)


def test_wrong_encoding_is_named_by_line_and_byte(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_bytes("item,ann\nx,caf\u00e9\n".encode("latin-1"))
    with refused(FileFormatError, "line 2", "0xe9", "latin-1"):
        read_table(path)
    assert read_table(path, encoding="latin-1").column("ann").to_pylist() == ["caf\u00e9"]


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("item,ann,ann\nx,1,2\n")
    with refused(FileFormatError, "two columns", "'ann'"):
        read_table(path)


def test_bad_json_line_is_named(tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_text('{"item": 1}\n{"item": \n')
    with refused(FileFormatError, "line 2", "not JSON"):
        read_table(path)
    path.write_text('{"item": 1}\n[1, 2]\n')
    with refused(FileFormatError, "line 2", "not an object"):
        read_table(path)


def test_json_column_of_mixed_types_names_both_rows(tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_text('{"label": 1}\n{"label": 2}\n{"label": "cat"}\n')
    with refused(FileFormatError, "column 'label'", '"cat" in row 2', "1 in row 0"):
        read_table(path)


def test_file_that_is_there_is_kept_unless_forced(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("old")
    with refused(FileFormatError, "is there already", "force"):
        write_table(path, TABLE)
    assert path.read_text() == "old"
    write_table(path, TABLE, force=True)
    assert path.read_text().startswith("item,label")


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, trouble):
    path = tmp_path / "labels.csv"
    path.write_text("old")

    def write(temporary):
        with open(temporary, "w") as file:
            file.write("half")
        raise trouble

    with pytest.raises(FileFormatError if isinstance(trouble, OSError) else KeyboardInterrupt):
        replace_file(path, write, force=True)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["labels.csv"]


def test_folder_that_is_missing_is_named(tmp_path):
    with refused(FileFormatError, "nowhere", "is no folder"):
        write_table(tmp_path / "nowhere" / "labels.csv", TABLE)


def test_file_has_the_usual_permissions(tmp_path):
    write_table(tmp_path / "labels.csv", TABLE)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "labels.csv").stat().st_mode) == 0o666 & ~mask


def test_numbers_are_read_as_they_were_written(tmp_path):
    values = np.random.default_rng(0).normal(size=50)
    write_table(tmp_path / "t.csv", pa.table({"x": values}))
    assert read_table(tmp_path / "t.csv").column("x").to_pylist() == values.tolist()


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (",ann,bob\n0,x,y\n1,y,y\n", {"ann": ["x", "y"], "bob": ["y", "y"]}),  # the row numbers of pandas
        ("Unnamed: 0,ann\n0,x\n1,y\n", {"ann": ["x", "y"]}),  # read and written again
        (",ann,bob\nq1,x,y\nq2,y,y\n", {"item": ["q1", "q2"], "ann": ["x", "y"], "bob": ["y", "y"]}),  # its index
        ("ann,bob,\nx,y,\ny,y,\n", {"ann": ["x", "y"], "bob": ["y", "y"]}),  # commas at the ends of lines
        ("item, ann\n 1, x \n2 ,y\n", {"item": [1, 2], "ann": ["x", "y"]}),  # blanks around cells
    ],
)
def test_csv_of_other_programs_has_no_odd_columns_or_cells(tmp_path, text, columns):
    (tmp_path / "votes.csv").write_text(text)
    assert read_table(tmp_path / "votes.csv").to_pydict() == columns


@pytest.mark.parametrize("text", ["ann,,bob\nx,y,y\n", ",ann\nx,y\nx,y\n", ",item,ann\nq1,1,x\nq2,2,x\n"])
def test_column_without_a_name_that_holds_something_is_refused(tmp_path, text):
    (tmp_path / "votes.csv").write_text(text)
    with pytest.raises(FileFormatError, match=r"column \d has no name and holds"):
        read_table(tmp_path / "votes.csv")
