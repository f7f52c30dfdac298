"""Votes from long and wide tables, and back: pandas, polars, Arrow and plain Python agree."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import consilience as cs
from consilience.exceptions import InvalidVotesError, UnknownSourceError
from consilience.votes import Votes, as_votes

MAKERS = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda table: pd.DataFrame(table).convert_dtypes(),
    "pandas arrow": lambda table: pd.DataFrame(table).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda table: pl.DataFrame(table, strict=False),
    "arrow": pa.table,
    "dict": dict,
}
every_frame = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
LONG = {"item": ["x2", "x2", "x1", "x3"], "source": ["bob", "ann", "bob", "cleo"], "label": [1, 0, 2, None]}
EMPTY = ([], {}, pd.DataFrame(), pl.DataFrame(), pa.table({"item": []}))


@every_frame
def test_long_table_by_hand(make):
    votes = Votes.from_long(make(LONG))
    assert (votes.items.tolist(), votes.sources) == (["x2", "x1", "x3"], ("bob", "ann", "cleo"))
    assert votes.observed.tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert votes.labels[votes.observed].tolist() == [1, 0, 2]
    assert votes.labels.dtype == np.int64
    assert votes.names_given
    renamed = make({"task": LONG["item"], "worker": LONG["source"], "answer": LONG["label"]})
    assert Votes.from_long(renamed, item="task", source="worker", label="answer").equals(votes)
    numbers = Votes.from_long(make({"item": [7, 7, 3], "source": [1, 2, 1], "label": ["a", "b", "a"]}))
    assert numbers.items.tolist() == [7, 3]
    assert numbers.items.dtype == np.int64
    assert numbers.sources == ("1", "2")


@every_frame
def test_long_labels_of_every_kind_keep_it(make):
    votes = Votes.from_long(make(LONG | {"label": ["None", "NA", None, "nan"]}))
    assert votes.labels.dtype == object
    assert votes.labels.tolist() == [["None", "NA", None], [None, None, None], [None, None, "nan"]]
    assert votes.observed.sum() == 3
    votes = Votes.from_long(make(LONG | {"label": [0.5, None, 1.0, 2.0]}))
    assert votes.labels.dtype == np.float64
    assert np.array_equal(votes.observed, ~np.isnan(votes.labels))
    votes = Votes.from_long(make(LONG | {"label": [[0, 1], [1], None, []]}))
    assert votes.labels.shape == (3, 3)
    assert list(votes.labels[0, 0]) == [0, 1]
    assert list(votes.labels[2, 2]) == []
    assert votes.observed.sum() == 3
    votes = Votes.from_long(make(LONG | {"label": [True, False, None, True]}))
    assert votes.labels.dtype == bool
    assert votes.labels[votes.observed].tolist() == [True, False, True]


def test_long_from_records_which_may_lack_a_label_or_hold_anything():
    rows = list(zip(*LONG.values(), strict=True))
    expected = Votes.from_long(LONG)
    assert Votes.from_long(rows).equals(expected)
    assert Votes.from_long([dict(zip(LONG, row, strict=True)) for row in rows]).equals(expected)
    silent = Votes.from_long([{"item": 1, "source": "a", "label": "x"}, {"item": 2, "source": "a"}])
    assert silent.observed.tolist() == [[True], [False]]
    day = datetime.date(2024, 1, 1)
    votes = Votes.from_long([(day, "ann", {"stars": 1}), (day, "bob", {"stars": 2})])
    assert votes.items.tolist() == [day]
    assert votes.labels[0, 1] == {"stars": 2}


def test_long_categories():
    frame = pd.DataFrame(LONG | {"label": pd.Categorical([1, 0, 2, None])})
    frame["source"] = frame["source"].astype("category")
    assert Votes.from_long(frame).equals(Votes.from_long(LONG))
    table = pa.table(LONG)
    column = table["source"].dictionary_encode()
    assert Votes.from_long(table.set_column(1, "source", column)).equals(Votes.from_long(LONG))
    lazy = pl.DataFrame(LONG).with_columns(pl.col("source").cast(pl.Categorical))
    assert Votes.from_long(lazy).equals(Votes.from_long(LONG))


@every_frame
def test_long_duplicates_and_gaps_are_named(make):
    table = {"item": ["x", "y", "x"], "source": ["ann"] * 3, "label": ["cat", "dog", "bird"]}
    message = r"'ann' votes twice on item 'x': 'cat' in row 0 and 'bird' in row 2. Choose.*repeats='separate'"
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_long(make(table))
    for role in ("item", "source"):
        with pytest.raises(InvalidVotesError, match=rf"Row 2 has no {role}.*drop the row"):
            Votes.from_long(make(LONG | {role: ["x", "y", None, "z"]}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["task", "worker", "label"], r"no column 'item'.*'task', 'worker'.*item='task'\?"),
        (["item", "worker", "label"], r"no column 'source'.*source='worker'\?"),
        (["item", "source", "Response"], r"no column 'label'.*label='Response'\?"),
        (["item", "source", "lable"], r"no column 'label'.*label='lable'\?"),
        (["item", "source", "zzz"], r"no column 'label'.*Name it with label="),
    ],
)
def test_long_missing_column_offers_the_likely_one(columns, message):
    frame = pl.DataFrame(dict(zip(columns, [["x"], ["ann"], [1]], strict=True)))
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_long(frame)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([("x", "ann")], r"Row 0 is \('x', 'ann'\).*3 entries: \(item, source, label\)"),
        ([("x", "ann", 1), 5], r"Row 1 is 5"),
        ({"item": [1, 2], "source": ["a"]}, r"different lengths: 'item' 2, 'source' 1"),
        ({"item": "abc"}, r"A column is 'abc', not a list"),
        ([([1], "ann", 1)], r"Row 0: \[1\] cannot be used as item id.*numbers or text"),
        (np.zeros((3, 3)), r"ndarray is not a table.*from_matrix"),
        (pl.LazyFrame(LONG), r"lazy frame.*\.collect\(\)"),
        ([("x", 1, 0), ("x", "1", 0)], r"source name '1' occurs twice"),
        ([(1, 5, 0.5), (2, 5, 1.5), (2, 5, None), (1, 5, 2.5)], r"Source '5' .* item 1: 0.5 in row 0 and 2.5 in row 3"),
        (pd.DataFrame(LONG).set_index("item"), r"'item' is the index.*reset_index"),
        *((empty, "no items: the table has no rows") for empty in EMPTY),
    ],
)
def test_long_from_something_else(bad, message):
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_long(bad)


def test_columns_of_the_same_name_are_refused_by_the_model_too():
    frames = [
        pd.DataFrame([[0, 1, 0]] * 9, columns=["ann", "ann", "bob"]),
        pa.table([[0] * 9, [1] * 9, [0] * 9], names=["ann", "ann", "bob"]),
    ]
    for frame in frames:
        with pytest.raises(InvalidVotesError, match=r"same name: 'ann', 'ann', 'bob'\. Rename"):
            cs.LabelModel(cs.Classes(2)).fit(frame)


nan = float("nan")
WIDE = {"id": ["x", "y", "z"], "ann": [0, None, 1], "bob": [2, 1, None]}


@every_frame
def test_wide_table_by_hand(make):
    votes = Votes.from_frame(make(WIDE), item="id")
    assert (votes.sources, votes.items.tolist()) == (("ann", "bob"), ["x", "y", "z"])
    assert votes.observed.tolist() == [[1, 1], [0, 1], [1, 0]]
    assert votes.labels.dtype == np.int64
    assert votes.labels[votes.observed].tolist() == [0, 2, 1, 1]
    assert votes.names_given
    picked = Votes.from_frame(make(WIDE), sources=["bob", "ann"])
    assert (picked.sources, picked.items.tolist()) == (("bob", "ann"), [0, 1, 2])
    table = {"ann": WIDE["ann"], "bob": WIDE["bob"]}
    assert as_votes(make(table)).equals(Votes.from_frame(table))
    with pytest.raises(InvalidVotesError, match=r"Item id 'x' occurs twice, in row 0 and row 2.*its own id"):
        Votes.from_frame(make(WIDE | {"id": ["x", "y", "x"]}), item="id")
    with pytest.raises(InvalidVotesError, match=r"Row 1 has no item"):
        Votes.from_frame(make(WIDE | {"id": ["x", None, "z"]}), item="id")


@every_frame
def test_wide_columns_of_mixed_kinds_keep_their_values_and_numbers_become_floats(make):
    votes = Votes.from_frame(make({"a": [1, None, 2], "b": ["x", "None", None]}))
    assert votes.labels.tolist() == [[1, "x"], [None, "None"], [2, None]]
    assert votes.observed.tolist() == [[1, 1], [0, 1], [1, 0]]
    numbers = Votes.from_frame(make({"a": [1, None, 2], "b": [0.5, None, 1.0]}))
    assert numbers.labels.dtype == np.float64
    assert numbers.labels[numbers.observed].tolist() == [1, 0.5, 2, 1.0]
    silent = Votes.from_frame(make({"a": [1, 2], "b": [None, None]}))  # does not spoil the kind
    assert silent.labels.dtype == np.int64
    assert silent.observed.tolist() == [[1, 0], [1, 0]]
    assert not Votes.from_frame(make({"b": [None, None]})).observed.any()


def test_wide_lists_structs_and_nan_in_every_frame():
    for name in ("polars", "arrow", "pandas"):
        votes = Votes.from_frame(MAKERS[name]({"a": [[1, 2], None], "b": [[3], []]}))
        assert votes.labels.tolist() == [[[1, 2], [3]], [None, []]]
        assert votes.observed.tolist() == [[1, 1], [0, 1]]
    for name in ("polars", "arrow"):
        assert Votes.from_frame(MAKERS[name]({"a": [{"x": 1}, None]})).labels.tolist() == [[{"x": 1}], [None]]
    for make in (pd.DataFrame, pl.DataFrame, pa.table, dict):
        assert Votes.from_frame(make({"a": np.array([0.5, nan])})).observed.tolist() == [[True], [False]]


@pytest.mark.parametrize(
    ("frame", "dtype", "first"),
    [
        (pd.DataFrame({"a": [1.0, 2.0]}), np.float64, 1.0),
        (pd.DataFrame({"a": [1.5, None]}), np.float64, 1.5),
        (pd.DataFrame({"a": [np.inf, None]}), np.float64, np.inf),
        (pl.DataFrame({"a": [1, 2]}, schema={"a": pl.Int8}), np.int8, 1),
        (pl.DataFrame({"a": [2**63 + 1, 1]}, schema={"a": pl.UInt64}), None, 2**63 + 1),
        (pl.DataFrame({"a": [200, None]}, schema={"a": pl.UInt8}), None, 200),
        (pd.DataFrame({"a": pd.Categorical(["NA", None])}), object, "NA"),
    ],
)
def test_columns_keep_their_kind_and_their_exact_values(frame, dtype, first):
    labels = Votes.from_frame(frame).labels
    assert labels[0, 0] == first
    assert dtype is None or labels.dtype == dtype


def test_frames_of_pandas_keep_the_names_that_somebody_chose():
    numbered = Votes.from_frame(pd.DataFrame([[0, 1], [1, 1]]))
    assert numbered.sources == ("0", "1")
    assert not numbered.names_given
    votes = Votes.from_matrix(pd.DataFrame({"ann": [0, -1], "bob": [1, None]}), items=["x", "y"])
    assert (votes.sources, votes.observed.tolist()) == (("ann", "bob"), [[1, 1], [0, 0]])
    assert (votes.items.tolist(), votes.abstain) == (["x", "y"], -1)


def test_wide_unknown_columns_and_tables_that_look_long_are_refused():
    with pytest.raises(UnknownSourceError, match=r"no source 'anna'. Did you mean 'ann'\?"):
        Votes.from_frame(WIDE, sources=["anna"])
    with pytest.raises(InvalidVotesError, match=r"no column 'item'.*Did you mean item='id'\?"):
        Votes.from_frame(WIDE, item="item")
    with pytest.raises(InvalidVotesError, match=r"one row per vote.*from_long.*sources="):
        as_votes(pd.DataFrame(LONG))


@pytest.mark.parametrize(
    ("frame", "item", "message"),
    [
        (pd.DataFrame({"a": []}), None, "no items.*at least one row"),
        (pd.DataFrame(), None, "no sources.*at least one column"),
        (pl.DataFrame({"id": [1]}), "id", "no sources"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), None, "same name: 'a', 'a'.*Rename"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), None, "same as text: 1, '1'"),
        (pl.LazyFrame(WIDE), None, r"lazy frame.*collect"),
        ([[1, 2]], None, "list is not a table.*from_array"),
    ],
)
def test_wide_from_something_else(frame, item, message):
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_frame(frame, item=item)


def test_to_long_by_hand():
    votes = Votes.from_matrix([[0, -1], [-1, -1]], sources=["ann", "bob"], items=["x", "y"])
    assert votes.to_long().to_pylist() == [
        {"item": "x", "source": "ann", "label": 0},
        {"item": "y", "source": "ann", "label": None},
        {"item": "x", "source": "bob", "label": None},
    ]
    lists = Votes.from_array(np.arange(8).reshape(2, 2, 2))
    assert lists.to_long()["label"].to_pylist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert Votes.from_array([[[1], [2, 3]]]).to_long()["label"].to_pylist() == [[1], [2, 3]]
    assert Votes.from_matrix([[0]])[:0].to_long().num_rows == 0
    assert Votes.from_array([[1, "a"]]).to_long()["label"].to_pylist() == ["1", "a"]
    with pytest.raises(InvalidVotesError, match=r"one Arrow column.*into text"):
        Votes.from_array([[1, {2}]]).to_long()


@settings(max_examples=50, deadline=None)
@given(hnp.arrays(np.int8, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.integers(-1, 3)))
def test_long_wide_and_matrix_agree(matrix):
    names = [f"s{column}" for column in range(matrix.shape[1])]
    votes = Votes.from_matrix(matrix, sources=names)
    wide = {
        name: [None if value == -1 else int(value) for value in matrix[:, column]] for column, name in enumerate(names)
    }
    long = votes.to_long()
    back = Votes.from_long(long).select(names)
    assert back[np.argsort(back.items)].equals(votes)
    assert Votes.from_long(pl.from_arrow(long)).equals(Votes.from_long(long))
    assert Votes.from_long(long.to_pandas()).equals(Votes.from_long(long))
    for make in MAKERS.values():
        assert Votes.from_frame(make(wide)).equals(votes)


@pytest.mark.parametrize("name", ["id", "item", "Unnamed: 0", "Task"])
def test_column_of_ids_is_no_source(name):
    frame = pd.DataFrame({name: [11, 12, 13], "ann": [1.5, 2.0, 3.0], "bob": [1.0, 2.0, 3.5], "cleo": [1.0, 2.5, 3.0]})
    with pytest.raises(InvalidVotesError, match=rf"Column '{name}' looks like ids.*item='{name}'"):
        cs.LabelModel(cs.Scores()).fit(frame)
    assert Votes.from_frame(frame, item=name).sources == ("ann", "bob", "cleo")
    assert Votes.from_frame(frame, sources=[name, "ann"]).sources == (name, "ann")
    assert Votes.from_frame({name: [0, 1, 1], "ann": [0, 1, 0]}).sources == (name, "ann")  # votes by their values
