"""Votes from long tables: pandas, polars, Arrow and plain Python agree."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import consilience as cs
from consilience.exceptions import InvalidVotesError
from consilience.votes import Votes

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


@every_frame
def test_long_table_by_hand(make):
    votes = Votes.from_long(make(LONG))
    assert votes.items.tolist() == ["x2", "x1", "x3"]
    assert votes.sources == ("bob", "ann", "cleo")
    assert votes.observed.tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert votes.labels[votes.observed].tolist() == [1, 0, 2]
    assert votes.labels.dtype == np.int64
    assert votes.names_given


@every_frame
def test_long_text_labels_keep_the_words_none_and_na(make):
    labels = ["None", "NA", None, "nan"]
    votes = Votes.from_long(make(LONG | {"label": labels}))
    assert votes.labels.dtype == object
    assert votes.labels.tolist() == [["None", "NA", None], [None, None, None], [None, None, "nan"]]
    assert votes.observed.sum() == 3


@every_frame
def test_long_float_labels_have_nan_where_nobody_voted(make):
    votes = Votes.from_long(make(LONG | {"label": [0.5, None, 1.0, 2.0]}))
    assert votes.labels.dtype == np.float64
    assert np.array_equal(votes.observed, ~np.isnan(votes.labels))


@every_frame
def test_long_list_labels_stay_lists(make):
    votes = Votes.from_long(make(LONG | {"label": [[0, 1], [1], None, []]}))
    assert votes.labels.shape == (3, 3)
    assert list(votes.labels[0, 0]) == [0, 1]
    assert list(votes.labels[2, 2]) == []
    assert votes.observed.sum() == 3


@every_frame
def test_long_boolean_labels(make):
    votes = Votes.from_long(make(LONG | {"label": [True, False, None, True]}))
    assert votes.labels.dtype == bool
    assert votes.labels[votes.observed].tolist() == [True, False, True]


@every_frame
def test_long_numbers_as_items_and_sources(make):
    table = {"item": [7, 7, 3], "source": [1, 2, 1], "label": ["a", "b", "a"]}
    votes = Votes.from_long(make(table))
    assert votes.items.tolist() == [7, 3]
    assert votes.items.dtype == np.int64
    assert votes.sources == ("1", "2")


@every_frame
def test_long_with_other_column_names(make):
    table = {"task": LONG["item"], "worker": LONG["source"], "answer": LONG["label"]}
    votes = Votes.from_long(make(table), item="task", source="worker", label="answer")
    assert votes.equals(Votes.from_long(make(LONG)))


def test_long_from_records():
    rows = list(zip(*LONG.values(), strict=True))
    expected = Votes.from_long(LONG)
    assert Votes.from_long(rows).equals(expected)
    assert Votes.from_long([dict(zip(LONG, row, strict=True)) for row in rows]).equals(expected)


def test_long_records_without_a_label_abstain():
    votes = Votes.from_long([{"item": 1, "source": "a", "label": "x"}, {"item": 2, "source": "a"}])
    assert votes.observed.tolist() == [[True], [False]]


def test_long_with_dict_labels_and_dates_as_items():
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
def test_long_duplicate_names_everything(make):
    table = {"item": ["x", "y", "x"], "source": ["ann"] * 3, "label": ["cat", "dog", "bird"]}
    message = (
        r"Source 'ann' votes twice on item 'x': 'cat' in row 0 and 'bird' in row 2. "
        r"Aggregate.*different source names"
    )
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_long(make(table))


def test_long_duplicate_with_numbers_and_null():
    rows = [(1, 5, 0.5), (2, 5, 1.5), (2, 5, None), (1, 5, 2.5)]
    with pytest.raises(InvalidVotesError, match=r"Source 5 .* item 2: 1.5 in row 1 and null in row 2"):
        Votes.from_long(rows)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["task", "worker", "label"], r"no column 'item'.*'task', 'worker'.*item='task'\?"),
        (["item", "worker", "label"], r"no column 'source'.*source='worker'\?"),
        (["item", "source", "Response"], r"no column 'label'.*label='Response'\?"),
        (["item", "source", "lable"], r"no column 'label'.*label='lable'\?"),
        (["item", "source", "zzz"], r"no column 'label'.*Say which one it is with label="),
    ],
)
def test_long_missing_column_offers_the_likely_one(columns, message):
    frame = pl.DataFrame(dict(zip(columns, [["x"], ["ann"], [1]], strict=True)))
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_long(frame)


def test_long_item_in_the_pandas_index():
    frame = pd.DataFrame(LONG).set_index("item")
    with pytest.raises(InvalidVotesError, match=r"'item' is the index.*reset_index"):
        Votes.from_long(frame)


@every_frame
@pytest.mark.parametrize("role", ["item", "source"])
def test_long_null_item_or_source_names_the_row(make, role):
    with pytest.raises(InvalidVotesError, match=rf"Row 2 has no {role}.*drop the row"):
        Votes.from_long(make(LONG | {role: ["x", "y", None, "z"]}))


@pytest.mark.parametrize("empty", [[], {}, pd.DataFrame(), pl.DataFrame(), pa.table({"item": []})])
def test_long_without_rows(empty):
    with pytest.raises(InvalidVotesError, match="no items: the table has no rows"):
        Votes.from_long(empty)


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
    ],
)
def test_long_from_something_else(bad, message):
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_long(bad)


def test_long_keeps_first_appearance_order_in_a_large_shuffled_table():
    rng = np.random.default_rng(0)
    matrix = rng.integers(-1, 3, (2000, 7))
    item, source = np.nonzero(matrix >= 0)
    order = rng.permutation(len(item))
    item, source = item[order], source[order]
    frame = pl.DataFrame({"item": item, "source": source, "label": matrix[item, source]})
    votes = Votes.from_long(frame)
    assert votes.items.tolist() == list(dict.fromkeys(item.tolist()))
    assert votes.sources == tuple(map(str, dict.fromkeys(source.tolist())))
    expected = matrix[votes.items][:, [int(name) for name in votes.sources]]
    assert np.array_equal(np.where(votes.observed, votes.labels, -1), expected)


def test_columns_of_the_same_name_are_refused_by_the_model_too():
    frames = [
        pd.DataFrame([[0, 1, 0]] * 9, columns=["ann", "ann", "bob"]),
        pa.table([[0] * 9, [1] * 9, [0] * 9], names=["ann", "ann", "bob"]),
    ]
    for frame in frames:
        with pytest.raises(InvalidVotesError, match=r"same name: 'ann', 'ann', 'bob'\. Rename"):
            cs.LabelModel(cs.Classes(2)).fit(frame)
