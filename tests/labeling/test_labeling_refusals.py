"""Bad labeling functions and bad data: the message names function, row and next step."""

import os
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refused

import consilience as cs
from consilience.exceptions import (
    FileFormatError,
    InvalidLabelError,
    InvalidVotesError,
    LabelingFunctionError,
    UnknownColumnError,
    UnsupportedError,
)

FRAME = pd.DataFrame({"text": ["a", "b", "c"], "size": [1, 2, 3]})


def one(row):
    return 1


def explode(row):
    if row.size == 3:
        raise ZeroDivisionError("size is three")
    return 0


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_error_names_function_row_and_cause_in_every_process(n_jobs):
    with refused(LabelingFunctionError, "'explode'", "row 2", "ZeroDivisionError: size is three", "on_error='abstain'"):
        cs.apply(explode, FRAME, chunk_rows=2, n_jobs=n_jobs)
    with refused(UnknownColumnError, "'<lambda>'", "Did you mean 'text'?"):
        cs.apply(lambda row: row.texts, FRAME, n_jobs=n_jobs)
    batch = cs.labeling_function(name="f", vectorized=True)(lambda batch: 1 / 0)
    with refused(LabelingFunctionError, "'f'", "rows 0 to 1", "ZeroDivisionError"):
        cs.apply(batch, FRAME, chunk_rows=2)
    with pytest.raises(LabelingFunctionError) as caught:
        cs.apply(explode, FRAME)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("frame", [FRAME, pl.DataFrame(FRAME.to_dict("list")), FRAME.to_dict("list")])
def test_a_misspelled_column_gets_the_likely_one_and_is_a_missing_attribute(frame):
    for access in (lambda row: row.txet, lambda row: row["txet"]):
        with refused(UnknownColumnError, "'<lambda>'", "no column 'txet'", "Did you mean 'text'?"):
            cs.apply(access, frame, on_error="abstain")
    assert cs.apply(lambda row: getattr(row, "nothing", 7), frame).labels.ravel().tolist() == [7, 7, 7]


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_label_of_the_wrong_type_is_named_with_function_and_row(vectorized):
    answers = {"a": 0, "b": 1, "c": "eggs"}
    if vectorized:
        function = cs.labeling_function(name="f", vectorized=True)(lambda batch: [answers[t] for t in batch["text"]])
    else:
        function = cs.labeling_function(name="f")(lambda row: answers[row.text])
    with refused(InvalidLabelError, "'f', row 2", "label 'eggs'", "0 .. 1"):
        cs.apply(function, FRAME, cs.Classes(2), chunk_rows=2)


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        ([1, 2], "2 labels for 3 rows"),
        (np.zeros(5), "5 labels"),
        (1, "int, not labels"),
        ("abc", "str"),
        (None, "NoneType"),
    ],
)
def test_a_batch_answered_with_the_wrong_number_of_labels_is_refused(returned, what):
    function = cs.labeling_function(name="f", vectorized=True)(lambda batch: returned)
    with refused(LabelingFunctionError, "'f'", what, "rows 0 to 2", "one label per row"):
        cs.apply(function, FRAME, on_error="abstain")


@pytest.mark.parametrize(
    ("functions", "data", "settings", "error", "parts"),
    [
        ([], FRAME, {}, InvalidVotesError, ["no labeling functions"]),
        ("abs", FRAME, {}, UnsupportedError, ["not a list of labeling functions"]),
        ([abs, 3], FRAME, {}, UnsupportedError, ["functions[1] is 3"]),
        ([lambda row: 1, lambda row: 2], FRAME, {}, InvalidVotesError, ["'<lambda>'", "places 0 and 1", "name="]),
        (one, FRAME, {"on_error": "ignore"}, UnsupportedError, ["on_error='ignore'"]),
        (one, FRAME, {"n_jobs": 0}, UnsupportedError, ["n_jobs=0"]),
        (one, FRAME, {"chunk_rows": 0}, InvalidVotesError, ["chunk_rows=0"]),
        (one, FRAME, {"space": 3}, UnsupportedError, ["space=3"]),
        (one, FRAME, {"item": "idd"}, UnknownColumnError, ["no column 'idd'"]),
        *((one, empty, {}, InvalidVotesError, ["no rows"]) for empty in (FRAME[:0], [], iter([]), {"x": []}, {})),
        (one, 3, {}, InvalidVotesError, ["int, which has no rows"]),
        (one, pl.DataFrame({"x": [1]}).lazy(), {}, InvalidVotesError, [".collect()"]),
        (one, {"x": [1, 2], "y": [1]}, {}, InvalidVotesError, ["different lengths", "'y' 1"]),
        (one, {"id": [1, 1]}, {"item": "id"}, InvalidVotesError, ["Item id 1 occurs twice", "row 0 and row 1"]),
        (one, {"id": ["x", None]}, {"item": "id", "chunk_rows": 1}, InvalidVotesError, ["Row 1 has no item id"]),
    ],
)
def test_bad_functions_settings_and_data_are_refused(functions, data, settings, error, parts):
    with refused(error, *parts):
        cs.apply(functions, data, **settings)


def test_files_that_are_no_tables_are_refused(tmp_path):
    with refused(FileFormatError, "no file or folder"):
        cs.apply(abs, tmp_path / "nothing.parquet")
    with refused(FileFormatError, "no file that ends in", ".parquet"):
        cs.apply(abs, tmp_path)
    (tmp_path / "votes.csv").write_text("a,b\n1,2\n")
    with refused(FileFormatError, "cannot be read in pieces", "whole"):
        cs.apply(abs, tmp_path / "votes.csv")


def test_functions_that_cannot_be_sent_are_refused_where_forking_is_no_choice(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    function = cs.labeling_function(name="f", vectorized=True)(lambda batch: batch["size"])
    with refused(UnsupportedError, "cannot be sent to another process", "n_jobs=1"):
        cs.apply(function, pl.DataFrame({"size": [1, 2]}), n_jobs=2)


def test_a_worker_that_dies_is_reported_and_what_is_no_function_cannot_be_decorated():
    with refused(UnsupportedError, "'name'", "@labeling_function"):
        cs.labeling_function("name")
    with refused(LabelingFunctionError, "worker process ended", "n_jobs=1"):
        cs.apply(lambda row: os._exit(1), FRAME, n_jobs=2)


def test_summaries_refuse_gold_without_a_space():
    with refused(UnsupportedError, "gold= needs space="):
        cs.summarize([[0, 1]], gold=[0])
    with refused(UnsupportedError, "space=2"):
        cs.summarize([[0, 1]], 2)
    with refused(InvalidVotesError, "max_items=0"):
        cs.summarize([[0, 1]], cs.Classes(2), max_items=0)
    with refused(InvalidVotesError, "gold has 1 labels for 2 items"):
        cs.summarize([[0, 1], [0, 0]], cs.Classes(2), gold=[0])
