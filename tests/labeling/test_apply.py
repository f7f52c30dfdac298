"""Labeling functions, their names, resources and rows; on every kind of data they give the same votes; refusals."""

import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.refusals import refused

import consilience as cs
from consilience import labeling
from consilience.exceptions import (
    FileFormatError,
    InvalidLabelError,
    InvalidVotesError,
    LabelingFunctionError,
    UnknownColumnError,
    UnsupportedError,
)
from consilience.labeling import buckets, labeling_function, preprocessor

COLUMNS: dict[str, list[Any]] = {
    "id": ["a", "b", "c", "d", "e"],
    "text": ["win free money", "hello bob", "free tickets", "good day", None],
    "number of words": [3, 2, 2, 2, 0],
}
SPACE = cs.Classes(["ham", "spam"])


@cs.labeling_function
def says_free(row):
    return "spam" if row.text is not None and row.text == row.text and "free" in row["text"] else None


@cs.labeling_function(name="short", vectorized=True)
def is_short(batch):
    return np.where(np.asarray(batch["number of words"]) < 3, "ham", None)


FUNCTIONS = [says_free, is_short]
EXPECTED = [["spam", None], [None, "ham"], ["spam", "ham"], [None, "ham"], [None, "ham"]]


def cells(votes: cs.Votes, space: Any = None) -> list[list[Any]]:
    """Return the votes as nested lists, None where there is none."""
    labels = votes.labels if space is None else space.as_labels(votes.labels.ravel()).reshape(votes.shape)
    return [
        [
            label.tolist() if isinstance(label, np.ndarray) else label if seen else None
            for label, seen in zip(*row, strict=True)
        ]
        for row in zip(labels.tolist(), votes.observed.tolist(), strict=True)
    ]


def parquet(folder: Path, parts: int = 1) -> Path:
    table = pa.table(COLUMNS)
    for part in range(parts):
        rows = table.slice(part * 3, 3) if parts > 1 else table
        pq.write_table(rows, folder / f"part-{part}.parquet", row_group_size=2)
    return folder


DATA = {
    "pandas": lambda folder: pd.DataFrame(COLUMNS),
    "polars": lambda folder: pl.DataFrame(COLUMNS),
    "arrow": lambda folder: pa.table(COLUMNS),
    "arrow batch": lambda folder: pa.RecordBatch.from_pydict(COLUMNS),
    "arrow reader": lambda folder: pa.table(COLUMNS).to_reader(max_chunksize=2),
    "dict": lambda folder: COLUMNS,
    "parquet file": lambda folder: str(parquet(folder) / "part-0.parquet"),
    "parquet folder": lambda folder: parquet(folder, parts=2),
}


@pytest.mark.parametrize("chunk_rows", [1, 3, 100])
@pytest.mark.parametrize("kind", DATA)
def test_every_kind_of_table_gives_the_same_votes(kind, chunk_rows, tmp_path):
    votes = cs.apply(FUNCTIONS, DATA[kind](tmp_path), item="id", chunk_rows=chunk_rows)
    assert cells(votes) == EXPECTED
    assert votes.sources == ("says_free", "short")
    assert votes.items.tolist() == COLUMNS["id"]


@pytest.mark.parametrize(
    "kind",
    [
        "pandas",
        pytest.param("polars", marks=pytest.mark.slow),  # starts fresh interpreters
        "arrow reader",
        "parquet folder",
    ],
)
def test_two_processes_give_the_votes_of_one(kind, tmp_path):
    votes = cs.apply(FUNCTIONS, DATA[kind](tmp_path), SPACE, item="id", n_jobs=2, chunk_rows=2)
    assert cells(votes, SPACE) == EXPECTED
    assert votes.items.tolist() == COLUMNS["id"]


def test_a_function_gets_the_elements_of_lists_as_they_are_or_batches_in_the_type_of_the_data():
    numbers = [1, 2, 3]
    for data in (numbers, iter(numbers), np.array(numbers), pd.Series(numbers, index=[7, 8, 9])):
        assert cells(cs.apply(lambda number: 2 * number, data, chunk_rows=2)) == [[2], [4], [6]]
    seen = []

    @cs.labeling_function(vectorized=True)
    def look(batch):
        seen.append(type(batch))
        return np.zeros(len(batch), dtype=int)

    for data in (pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pa.table(COLUMNS), numbers):
        cs.apply(look, data)
    assert seen == [pd.DataFrame, pl.DataFrame, pa.Table, list]


@pytest.mark.parametrize(
    "returned",
    [
        [1, None, 0],
        np.array([1.0, np.nan, 0.0]),
        np.ma.MaskedArray([1, 5, 0], mask=[False, True, False]),
        np.array([1, None, 0], dtype=object),
        pd.Series([1, None, 0], dtype="Int64"),
        pl.Series([1, None, 0]),
        pa.array([1, None, 0]),
        pa.chunked_array([[1, None], [0]]),
        np.array([1, -1, 0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_batch_may_be_answered_by_any_kind_of_array(returned):
    function = labeling.LabelingFunction(lambda batch: returned, "f", vectorized=True)
    votes = cs.apply(function, ["x", "y", "z"], cs.Classes(2))
    assert cells(votes) == [[1], [None], [0]]
    assert votes.labels.dtype == np.int8


def test_a_generator_is_pulled_chunk_by_chunk():
    pulled, ahead = [], []

    def numbers():
        for number in range(10):
            pulled.append(number)
            yield number

    def watch(number):
        ahead.append(len(pulled) - number)
        return 0

    cs.apply(watch, numbers(), chunk_rows=2)
    assert max(ahead) <= 2


def test_minus_one_is_no_vote_for_classes_but_a_score_and_any_value_may_be_named():
    @cs.labeling_function(vectorized=True)
    def minus(batch):
        return np.array([-1, 1])

    assert cs.apply(minus, ["x", "y"], cs.Classes(2)).observed.tolist() == [[False], [True]]
    assert cs.apply(minus, ["x", "y"], cs.Scores()).observed.all()
    assert cs.apply(minus, ["x", "y"]).observed.tolist() == [[False], [True]]
    named = labeling.labeling_function(abstain="?")(lambda text: text)
    assert cs.apply(named, ["?", "cat"]).observed.tolist() == [[False], [True]]
    space = cs.Metric(lambda left, right: abs(len(left) - len(right)))
    assert cells(cs.apply(str.upper, ["a", "bb"], space)) == [["A"], ["BB"]]


def test_rows_of_probabilities_stand_beside_classes():
    functions = [
        labeling.LabelingFunction(lambda batch: np.full((len(batch), 2), 0.5), "soft", vectorized=True),
        labeling.LabelingFunction(lambda text: 1 if text == "y" else None, "hard"),
    ]
    votes = cs.apply(functions, ["x", "y"], cs.Classes(2))
    assert votes.observed.tolist() == [[True, False], [True, True]]
    assert votes.labels[1].tolist() == [[0.5, 0.5], [0.0, 1.0]]
    # A row of .5 is half a step from either class.
    assert cs.summarize(votes, cs.Classes(2)).columns["cost_to_others"] == [0.5, 0.5]


def test_rankings_are_stacked_over_chunks_and_ragged_ones_are_objects():
    def by_length(words):
        return np.argsort(np.argsort([-len(word) for word in words], kind="stable"))

    full = [["aa", "b", "ccc"], ["a", "bb", "ccc"], ["aaa", "bb", "c"]]
    votes = cs.apply(by_length, full, cs.Rankings(3), chunk_rows=2)
    assert (votes.labels.shape, votes.labels[:, 0].tolist()) == ((3, 1, 3), [[1, 2, 0], [2, 1, 0], [0, 1, 2]])
    ragged = cs.apply(by_length, [*full, ["a"]], cs.Rankings(None), chunk_rows=2)
    assert ragged.labels.shape == (4, 1)
    assert [list(label) for label in ragged.labels[:, 0]] == [[1, 2, 0], [2, 1, 0], [0, 1, 2], [0]]


def fails_on_three(number):
    if number == 3:
        raise ValueError("three is too much")
    return number % 2


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_functions_that_fail_abstain_and_are_counted(n_jobs):
    @cs.labeling_function(vectorized=True)
    def no_fours(batch):
        if 4 in batch:
            raise ValueError("four")
        return [0] * len(batch)

    functions = [fails_on_three, lambda number: number, no_fours]
    result = labeling.apply_with_faults(functions, [1, 2, 3, 4, 3, 5], cs.Classes(5), n_jobs=n_jobs, chunk_rows=2)
    assert result.votes.observed.T.tolist() == [
        [True, True, False, True, False, True],
        [True, True, True, True, True, False],
        [True, True, False, False, True, True],  # a batch abstains on its chunk
    ]
    assert result.faults.columns["source"] == ["fails_on_three", "<lambda>", "no_fours"]
    assert (result.faults.columns["rows"], result.faults.columns["first_row"]) == ([2, 1, 2], [2, 5, 2])
    assert result.faults.columns["first_error"][0] == "ValueError: three is too much"
    assert "label 5 is not a class 0 .. 4" in result.faults.columns["first_error"][1]
    assert "three is too much" in repr(result.faults)


def test_one_warning_gives_the_counts_and_nothing_failed_means_an_empty_table():
    with pytest.warns(
        cs.exceptions.ConsilienceWarning, match=r"'fails_on_three' on 2 row\(s\), first on row 0 \(ValueError: three"
    ):
        cs.apply([fails_on_three, abs], [3, 3, 1], on_error="abstain")
    faults = labeling.apply_with_faults(abs, [1, 2]).faults
    assert len(faults) == 0
    assert repr(faults).split() == ["source", "rows", "first_row", "first_error"]


def test_the_decorator_works_with_and_without_parentheses():
    @cs.labeling_function
    def first(row):
        return row

    @cs.labeling_function()
    def second(row):
        return row

    @cs.labeling_function(name="third", resources={"words": {"a"}})
    def other(row, words):
        return row in words

    shout = cs.labeling_function(resources={"shout": str.upper})(lambda text, shout: shout(text))
    assert shout("a") == "A"  # a callable resource is passed as it is
    assert [one.name for one in (first, second, other)] == ["first", "second", "third"]
    assert (first(1), second(2), other("a"), other("b")) == (1, 2, True, False)


def test_a_resource_made_once_is_made_once_per_process():
    made = []

    def make() -> int:
        made.append(os.getpid())
        return os.getpid()

    @cs.labeling_function(resources={"process": labeling.once(make)})
    def who(row, process):
        return process

    alone = cs.apply(who, list(range(50)), chunk_rows=5)
    assert made == [os.getpid()]
    assert set(alone.labels.ravel().tolist()) == {os.getpid()}
    workers = set(cs.apply(who, list(range(50)), chunk_rows=5, n_jobs=2).labels.ravel().tolist())
    assert os.getpid() not in workers
    assert len(workers) <= 2


class SnorkelFunction:
    """What snorkel's class looks like from outside: a name, a call, preprocessors that set attributes."""

    def __init__(self, name, function, pre=()):
        self.name, self._function, self._pre = name, function, list(pre)

    def __call__(self, point):
        for step in self._pre:
            point = step(pickle.loads(pickle.dumps(point)))
        return self._function(point)


def test_functions_of_snorkel_are_taken_as_they_are():
    def lower(point):
        point.lowered = point.text.lower()
        return point

    functions = [
        SnorkelFunction("plain", lambda point: 1 if "FREE" in point["text"] else -1),
        SnorkelFunction("prepared", lambda point: 0 if "hi" in point.lowered else -1, [lower]),
    ]
    votes = cs.apply(functions, pd.DataFrame({"text": ["FREE", "Hi"]}))
    assert (votes.sources, votes.observed.tolist()) == (("plain", "prepared"), [[True, False], [False, True]])
    assert votes.labels[votes.observed].tolist() == [1, 0]


TEXTS = {"text": ["free money", "see you", "free lunch", "hello"]}


def free(row):
    return 1 if "free" in row.text else -1


def short(row):
    return 0 if len(row.text) < 8 else -1


def test_minus_one_abstains_without_a_space_and_comes_back_as_a_matrix():
    votes = cs.apply([free, short], TEXTS)
    expected = [[1, -1], [-1, 0], [1, -1], [-1, 0]]
    assert votes.to_matrix().tolist() == expected
    assert votes.observed.tolist() == (np.array(expected) != -1).tolist()
    coded = cs.apply([free, short], TEXTS, cs.Classes(2))
    assert coded.to_matrix(abstain=-1).tolist() == expected
    named = cs.Votes.from_matrix([["spam", None]])
    assert named.to_matrix(abstain="none").tolist() == [["spam", "none"]]
    assert cs.Votes.from_matrix([[0.5, None]]).to_matrix().tolist() == [[0.5, -1.0]]
    with refused(InvalidVotesError, "shape (3,)"):
        cs.Votes.from_array([[[0, 1, 2], [2, 1, 0]]]).to_matrix()


def test_preprocessors_come_first_and_remember_rows():
    seen = []

    @preprocessor
    def words(row):
        seen.append(row.text)
        row.words = row.text.split()
        return row

    @labeling_function(pre=[words])
    def two(row):
        return len(row.words)

    @labeling_function(pre=[words, lambda row: row.words])
    def last(row):
        return len(row[-1])

    votes = cs.apply([two, last], TEXTS)
    assert votes.labels.tolist() == [[2, 5], [2, 3], [2, 5], [1, 5]]
    assert seen == TEXTS["text"]
    forgetful = preprocessor(memoize=False)(words.function)
    assert forgetful(cs.labeling.chunks.Record(text="a b")).words == ["a", "b"]
    assert pickle.loads(pickle.dumps(preprocessor(str.upper)))("a") == "A"
    with refused(UnsupportedError, "pre holds 'words'"):
        labeling_function(pre=["words"])(free)
    with refused(UnsupportedError, "'free' takes a batch", "vectorized"):
        labeling_function(pre=[words], vectorized=True)(free)


def test_buckets_hold_the_rows_of_each_known_label_and_vote():
    votes = cs.apply([free, short], TEXTS, cs.Classes(["ham", "spam"]))
    found = buckets(votes, ["spam", "ham", "ham", None], "free")
    assert {key: rows.tolist() for key, rows in found.items()} == {
        ("spam", 1): [0],
        ("ham", None): [1],
        ("ham", 1): [2],
    }
    with refused(InvalidVotesError, "gold has 1 labels for 4 items"):
        buckets(votes, ["spam"], "free")


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_training_set_may_hold_probabilities():
    votes = [[0, 0, 1], [1, 1, 1], [-1, -1, -1], [0, 0, 0]] * 10
    model = cs.LabelModel(cs.Classes(2)).fit(votes)
    data = cs.tables.training_set(model, votes, soft=True)
    assert data.y.shape == (30, 2)
    np.testing.assert_allclose(data.y.sum(axis=1), 1.0)
    scores = cs.LabelModel(cs.Scores(), method="majority").fit([[1.0, 2.0, 3.5]] * 5)
    with refused(UnsupportedError, "Scores has no list of labels", "soft=True"):
        cs.tables.training_set(scores, [[1.0, 2.0, 3.5]], soft=True)


def test_settings_of_snorkel_are_answered_with_those_here():
    with refused(UnsupportedError, "no setting 'cardinality'", "Classes(2)"):
        cs.LabelModel(cardinality=2)
    with refused(UnsupportedError, "'class_balance'", "prior="):
        cs.LabelModel(cs.Classes(2)).fit([[0, 1]], class_balance=[0.5, 0.5])
    with refused(UnsupportedError, "'metod'", "Did you mean 'method'?"):
        cs.LabelModel(cs.Classes(2), metod="em")


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
