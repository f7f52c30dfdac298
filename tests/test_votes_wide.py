"""Votes from wide tables, and back to long ones: pandas, polars, Arrow and plain Python agree."""

from __future__ import annotations

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
from consilience.tables.frames import columns_of, is_frame
from consilience.votes import Votes, as_votes

nan = float("nan")
MAKERS = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda table: pd.DataFrame(table).convert_dtypes(),
    "pandas arrow": lambda table: pd.DataFrame(table).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda table: pl.DataFrame(table, strict=False),
    "arrow": pa.table,
    "dict": dict,
}
every_frame = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
LONG = {
    "item": ["x2", "x2", "x1", "x3"],
    "source": ["bob", "ann", "bob", "cleo"],
    "label": [1, 0, 2, None],
}
WIDE = {"id": ["x", "y", "z"], "ann": [0, None, 1], "bob": [2, 1, None]}


# --- wide ------------------------------------------------------------------------------------


@every_frame
def test_wide_table_by_hand(make):
    votes = Votes.from_frame(make(WIDE), item="id")
    assert votes.sources == ("ann", "bob")
    assert votes.items.tolist() == ["x", "y", "z"]
    assert votes.observed.tolist() == [[1, 1], [0, 1], [1, 0]]
    assert votes.labels.dtype == np.int64
    assert votes.labels[votes.observed].tolist() == [0, 2, 1, 1]
    assert votes.names_given


@every_frame
def test_wide_sources_in_the_order_asked_for(make):
    votes = Votes.from_frame(make(WIDE), sources=["bob", "ann"])
    assert votes.sources == ("bob", "ann")
    assert votes.items.tolist() == [0, 1, 2]
    assert Votes.from_frame(make(WIDE), sources="bob").shape == (3, 1)


@every_frame
def test_wide_columns_of_mixed_kinds_keep_their_values(make):
    votes = Votes.from_frame(make({"a": [1, None, 2], "b": ["x", "None", None]}))
    assert votes.labels.tolist() == [[1, "x"], [None, "None"], [2, None]]
    assert votes.observed.tolist() == [[1, 1], [0, 1], [1, 0]]


@every_frame
def test_wide_numbers_of_mixed_kinds_become_floats(make):
    votes = Votes.from_frame(make({"a": [1, None, 2], "b": [0.5, None, 1.0]}))
    assert votes.labels.dtype == np.float64
    assert votes.labels[votes.observed].tolist() == [1, 0.5, 2, 1.0]


@every_frame
def test_wide_source_that_never_votes_does_not_spoil_the_dtype(make):
    votes = Votes.from_frame(make({"a": [1, 2], "b": [None, None]}))
    assert votes.labels.dtype == np.int64
    assert votes.observed.tolist() == [[1, 0], [1, 0]]
    assert not Votes.from_frame(make({"b": [None, None]})).observed.any()


@pytest.mark.parametrize("make", [MAKERS["polars"], MAKERS["arrow"], MAKERS["pandas"]])
def test_wide_lists_stay_lists(make):
    votes = Votes.from_frame(make({"a": [[1, 2], None], "b": [[3], []]}))
    assert votes.labels.tolist() == [[[1, 2], [3]], [None, []]]
    assert votes.observed.tolist() == [[1, 1], [0, 1]]


@pytest.mark.parametrize("make", [MAKERS["polars"], MAKERS["arrow"]])
def test_wide_structs_become_dicts(make):
    votes = Votes.from_frame(make({"a": [{"x": 1}, None]}))
    assert votes.labels.tolist() == [[{"x": 1}], [None]]


def test_nan_abstains_in_every_frame():
    for make in (pd.DataFrame, pl.DataFrame, pa.table, dict):
        votes = Votes.from_frame(make({"a": np.array([0.5, nan])}))
        assert votes.observed.tolist() == [[True], [False]]


def test_pandas_floats_without_nulls_or_with_fractions_stay_floats():
    assert Votes.from_frame(pd.DataFrame({"a": [1.0, 2.0]})).labels.dtype == np.float64
    assert Votes.from_frame(pd.DataFrame({"a": [1.5, None]})).labels.dtype == np.float64
    assert Votes.from_frame(pd.DataFrame({"a": [np.inf, None]})).labels.dtype == np.float64


def test_wide_keeps_small_integers_small():
    frame = pl.DataFrame({"a": [1, 2], "b": [0, 1]}, schema={"a": pl.Int8, "b": pl.Int8})
    assert Votes.from_frame(frame).labels.dtype == np.int8


def test_unsigned_integers_stay_exact():
    frame = pl.DataFrame({"a": [2**63 + 1, 1]}, schema={"a": pl.UInt64})
    assert Votes.from_frame(frame).labels[0, 0] == 2**63 + 1
    frame = pl.DataFrame({"a": [200, None]}, schema={"a": pl.UInt8})
    assert Votes.from_frame(frame).labels[0, 0] == 200


def test_pandas_categories():
    frame = pd.DataFrame({"a": pd.Categorical(["x", None]), "b": pd.Categorical(["NA", "x"])})
    assert Votes.from_frame(frame).labels.tolist() == [["x", "NA"], [None, "x"]]


def test_numbered_pandas_columns_are_no_names():
    votes = Votes.from_frame(pd.DataFrame([[0, 1], [1, 1]]))
    assert votes.sources == ("0", "1")
    assert not votes.names_given


def test_matrix_from_a_frame_keeps_the_names():
    frame = pd.DataFrame({"ann": [0, -1], "bob": [1, None]})
    votes = Votes.from_matrix(frame, items=["x", "y"])
    assert votes.sources == ("ann", "bob")
    assert votes.observed.tolist() == [[1, 1], [0, 0]]
    assert votes.items.tolist() == ["x", "y"]
    assert votes.abstain == -1


@every_frame
def test_as_votes_reads_a_wide_frame(make):
    table = {"ann": WIDE["ann"], "bob": WIDE["bob"]}
    assert as_votes(make(table)).equals(Votes.from_frame(table))
    assert as_votes(make(WIDE), sources=["bob"]).sources == ("bob",)


def test_wide_unknown_source():
    with pytest.raises(UnknownSourceError, match=r"no source 'anna'. Did you mean 'ann'\?"):
        Votes.from_frame(WIDE, sources=["anna"])


def test_wide_unknown_item_column():
    with pytest.raises(InvalidVotesError, match=r"no column 'item'.*Did you mean item='id'\?"):
        Votes.from_frame(WIDE, item="item")


@every_frame
def test_wide_item_ids_must_differ(make):
    message = r"Item id 'x' occurs twice, in rows 0 and 2.*id of its own"
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_frame(make(WIDE | {"id": ["x", "y", "x"]}), item="id")
    with pytest.raises(InvalidVotesError, match=r"Row 1 has no item"):
        Votes.from_frame(make(WIDE | {"id": ["x", None, "z"]}), item="id")


def test_wide_that_looks_long():
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


def test_what_is_a_frame():
    assert is_frame(pd.DataFrame())
    assert is_frame(pl.DataFrame())
    assert is_frame(pl.LazyFrame())
    assert is_frame(pa.table({}))
    for other in (None, np.zeros(3), [1], {"a": [1]}, pd.Series([1]), pl.Series([1]), 5, "x"):
        assert not is_frame(other)


def test_dict_columns_may_be_arrays_and_series():
    columns = columns_of({"a": np.arange(2, dtype=np.uint8), "b": pd.Series(["x", None])})
    assert columns["a"].values.dtype == np.int64
    assert columns["b"].values.tolist() == ["x", None]
    rows = columns_of({"a": np.ones((2, 3))})["a"].values
    assert rows.shape == (2,)
    assert rows[0].tolist() == [1, 1, 1]


# --- back to a table -------------------------------------------------------------------------


def test_to_long_by_hand():
    votes = Votes.from_matrix([[0, -1], [-1, -1]], sources=["ann", "bob"], items=["x", "y"])
    rows = votes.to_long().to_pylist()
    assert rows == [
        {"item": "x", "source": "ann", "label": 0},
        {"item": "y", "source": "ann", "label": None},
        {"item": "x", "source": "bob", "label": None},
    ]


def test_to_long_of_lists():
    votes = Votes.from_array(np.arange(8).reshape(2, 2, 2))
    assert votes.to_long()["label"].to_pylist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert Votes.from_array([[[1], [2, 3]]]).to_long()["label"].to_pylist() == [[1], [2, 3]]


def test_to_long_of_mixed_labels_says_why_not():
    with pytest.raises(InvalidVotesError, match=r"one Arrow column.*into text"):
        Votes.from_array([[1, "a"]]).to_long()


def test_to_long_of_no_items():
    assert Votes.from_matrix([[0]])[:0].to_long().num_rows == 0


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


def test_votes_of_a_source_that_is_called_like_ids_are_votes():
    assert Votes.from_frame({"id": [0, 1, 1], "ann": [0, 1, 0]}).sources == ("id", "ann")


def test_source_without_a_name_is_refused():
    with pytest.raises(InvalidVotesError, match="Source 1 has no name: None"):
        Votes.from_matrix([[0, 1]], sources=["ann", None])
