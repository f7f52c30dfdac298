"""Tables on disk: what is read, what is refused, and that nothing is half written."""

import os
import stat

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refused

from consilience.exceptions import FileFormatError
from consilience.tables.files import read_table, write_table

TABLE = pa.table(
    {
        "item": ["a", "b", "NA"],
        "label": pa.array(["cat", None, "None"]),
        "score": [1 / 3, None, -3.0],
        "order": [[0, 1], None, [1, 0]],
    }
)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet", "t.arrow", "t.feather"])
def test_table_comes_back_as_it_was_written(tmp_path, name):
    write_table(tmp_path / name, TABLE)
    assert read_table(tmp_path / name).to_pylist() == TABLE.to_pylist()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "2", ""], [1, 2, None]),
        (["1", "x"], ["1", "x"]),
        (["007", "12"], ["007", "12"]),
        (["1e3", "2"], [1000.0, 2.0]),
        (["nan", "1"], ["nan", "1"]),
        (["", ""], [None, None]),
        (["true", "False"], [True, False]),
    ],
)
def test_column_is_numbers_only_if_every_cell_is_one(tmp_path, cells, values):
    (tmp_path / "t.csv").write_text("item,a\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate(cells)))
    assert read_table(tmp_path / "t.csv")["a"].to_pylist() == values


@given(
    st.lists(
        st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0\r")), min_size=2, max_size=2),
        max_size=5,
    )
)
def test_text_survives_csv(tmp_path_factory, rows):
    columns = {name: pa.array([f"{name}{row[place]}" for row in rows], pa.string()) for place, name in enumerate("xy")}
    path = tmp_path_factory.getbasetemp() / "text.csv"
    write_table(path, pa.table(columns), force=True)
    assert read_table(path).to_pylist() == pa.table(columns).to_pylist()


def parquet_bytes(table):
    """Return a table as a Parquet file."""
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("votes.xlsx", b"PK", ["as a spreadsheet", "Save it as CSV"]),
        ("votes.pdf", b"PK", ["'.pdf'", ".csv", ".parquet"]),
        ("votes.csv", b"", ["is empty", "column names in the first row"]),
        ("votes.parquet", parquet_bytes(TABLE)[:-20], ["cannot be read as Parquet", "cut short"]),
        ("votes.parquet", b"item,ann\n", ["not a Parquet file", ".csv"]),
        ("votes.csv", parquet_bytes(TABLE), ["not text but Parquet", ".parquet"]),
        ("votes.csv", b"item,ann,bob\nx,1,2\ny,1\n", ["line 3", "2 cells where the first line has 3", "','"]),
        ("votes.csv", b"item,ann\nx,caf\xe9\n", ["line 2", "0xe9", "latin-1"]),
        ("votes.csv", b"item,ann,ann\nx,1,2\n", ["two columns", "'ann'"]),
        ("votes.csv", b"ann,,bob\nx,y,y\n", ["column 2 has no name and holds"]),
        ("votes.csv", b",ann\nx,y\nx,y\n", ["column 1 has no name and holds"]),
        ("votes.csv", b",item,ann\nq1,1,x\nq2,2,x\n", ["column 1 has no name and holds"]),
        ("votes.jsonl", b'{"item": 1}\n{"item": \n', ["line 2", "not JSON"]),
        ("votes.jsonl", b'{"item": 1}\n[1, 2]\n', ["line 2", "not an object"]),
        ("votes.json", b'{"label": 1}', ["not a list of objects", "reader of the tool"]),
    ],
)
def test_file_that_is_no_table_is_refused_with_the_place(tmp_path, name, content, parts):
    (tmp_path / name).write_bytes(content)
    with refused(FileFormatError, *parts):
        read_table(tmp_path / name)


def test_folder_of_parquet_files_is_one_table(tmp_path):
    for part in range(3):
        pa.parquet.write_table(pa.table({"x": [part]}), tmp_path / f"part-{part}.parquet")
    assert read_table(tmp_path).column("x").to_pylist() == [0, 1, 2]


def test_missing_file_is_named_with_a_similar_one_and_an_encoding_can_be_given(tmp_path):
    (tmp_path / "votes.csv").write_bytes("item,ann\nx,caf\u00e9\n".encode("latin-1"))
    with refused(FileFormatError, "vote.csv", "Did you mean", "votes.csv"):
        read_table(tmp_path / "vote.csv")
    assert read_table(tmp_path / "votes.csv", encoding="latin-1").column("ann").to_pylist() == ["caf\u00e9"]


def test_file_is_kept_unless_forced_and_has_the_usual_permissions(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("old")
    with refused(FileFormatError, "already exists", "force"):
        write_table(path, TABLE)
    assert path.read_text() == "old"
    write_table(path, TABLE, force=True)
    assert path.read_text().startswith("item,label")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    with refused(FileFormatError, "no folder", "nowhere"):
        write_table(tmp_path / "nowhere" / "labels.csv", TABLE)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (",ann,bob\n0,x,y\n1,y,y\n", {"ann": ["x", "y"], "bob": ["y", "y"]}),  # the row numbers of pandas
        ("Unnamed: 0,ann\n0,x\n1,y\n", {"ann": ["x", "y"]}),  # read and written again
        (",ann,bob\nq1,x,y\nq2,y,y\n", {"item": ["q1", "q2"], "ann": ["x", "y"], "bob": ["y", "y"]}),  # its index
        ("ann,bob,\nx,y,\ny,y,\n", {"ann": ["x", "y"], "bob": ["y", "y"]}),  # commas at the ends of lines
        ("item, ann\n 1, x \n2 ,y\n", {"item": [1, 2], "ann": ["x", "y"]}),  # blanks around cells
        ("\ufeffitem,ann\nx,1\n", {"item": ["x"], "ann": [1]}),  # a byte order mark
        *((f"item{sign}ann\nx{sign}1\n", {"item": ["x"], "ann": [1]}) for sign in ",;\t|"),
    ],
)
def test_csv_of_other_programs_has_no_odd_columns_or_cells(tmp_path, text, columns):
    (tmp_path / "votes.csv").write_text(text, encoding="utf-8")
    assert read_table(tmp_path / "votes.csv").to_pydict() == columns
