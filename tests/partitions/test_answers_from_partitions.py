"""Labels, explanations and summaries of votes in files and on clusters are those of the whole table; ids are unique."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.partitions.clusters import needs_dask, needs_spark
from tests.partitions.tables import SPACES, votes_of, write_folder

import consilience as cs
from consilience.exceptions import InvalidLabelError, InvalidVotesError, NotFittedError, UnsupportedError
from consilience.labeling import summary
from consilience.partitions import (
    DaskPartitions,
    ParquetPartitions,
    SparkPartitions,
    duplicate_ids,
    predict_frame,
    predict_to,
)

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def table_of(name):
    return cs.tables.wide_table(votes_of(name), SPACES[name])


def pieces_of(name, folder):
    parts = ParquetPartitions(write_folder(folder, votes_of(name), name, [70, 150], 40), SPACES[name])
    return parts, cs.read_votes(table_of(name), SPACES[name])


@pytest.mark.parametrize("name", ["classes", "scores", "rankings"])
def test_files_are_looked_at_as_the_whole_table_is(name, tmp_path):
    parts, votes = pieces_of(name, tmp_path)
    model = cs.LabelModel(SPACES[name]).fit(votes)
    for item in ("item 0003", "item 0200"):
        assert str(model.explain(parts, item)) == str(model.explain(votes, item))
    for k in (1, 15):
        for purpose in ("learn", "audit", "both"):
            found, same = (model.suggest(one, k, purpose) for one in (parts, votes))
            assert found.items.tolist() == same.items.tolist()
            np.testing.assert_allclose(found.probability, same.probability)
    whole, pieces = cs.tables.label_table(model, votes), cs.tables.label_table(model, parts)
    assert pieces.schema == whole.schema
    labels = whole.column("label").to_pylist()
    assert pieces.column("label").to_pylist() == (pytest.approx(labels) if name == "scores" else labels)
    for column in ("confidence", "agreement"):
        left, right = (np.array(one.column(column).to_pylist(), float) for one in (whole, pieces))
        assert np.allclose(left, right, rtol=1e-9, equal_nan=True)


def test_only_short_lists_leave_a_chunk_and_items_that_are_not_there_are_named(tmp_path):
    _, votes = pieces_of("classes", tmp_path)
    model = cs.LabelModel(SPACES["classes"]).fit(votes)
    brought = []

    class Noting(ParquetPartitions):
        def reduce(self, function):
            brought.append(super().reduce(function))
            return brought[-1]

    noting = Noting(tmp_path, SPACES["classes"])
    model.suggest(noting, 1, "learn")
    assert len(brought) == 2
    assert len(brought[1].key) == 200  # of 240
    with pytest.raises(InvalidVotesError, match=r"no item 'item 9999' in the votes\..*'item 0000'"):
        model.explain(noting, "item 9999")
    with pytest.raises(UnsupportedError, match=r"k=500 is more than the 2[0-9]{2} items with a vote"):
        model.suggest(noting, 500)


def test_clusters_are_looked_at_as_the_whole_table_is(engine):
    parts = engine(table_of("classes"), SPACES["classes"])
    votes = cs.read_votes(table_of("classes"), SPACES["classes"])
    model = cs.LabelModel(SPACES["classes"]).fit(votes)
    assert str(model.explain(parts, "item 0200")) == str(model.explain(votes, "item 0200"))
    found = model.suggest(parts, 5, "learn").items
    assert len(set(found.tolist())) == 5
    assert set(found.tolist()) <= set(model.suggest(votes, 40, "learn").items.tolist())  # ties, in another order
    with pytest.raises(UnsupportedError, match="predict_to"):
        cs.tables.label_table(model, parts)


def same(left, right):
    assert list(left.columns) == list(right.columns)
    for name, column in left.columns.items():
        expected = [cell if isinstance(cell, str) else pytest.approx(cell, rel=1e-10) for cell in column]
        assert expected == right.columns[name]


@pytest.mark.parametrize("name", list(SPACES))
@pytest.mark.parametrize("max_items", [None, 100])
def test_partitions_give_the_table_of_the_whole(name, max_items, tmp_path):
    votes = votes_of(name)
    order = np.random.default_rng(0).permutation(len(votes))
    whole = cs.read_votes(cs.tables.wide_table(votes, SPACES[name]), SPACES[name])
    expected = cs.summarize(whole, SPACES[name], max_items=max_items)
    files = ParquetPartitions(write_folder(tmp_path, votes[order], name, [70, 71], 60), SPACES[name])
    for parts in (files, cs.partitions.InMemoryPartitions.of(whole, rows=50)):
        same(expected, cs.summarize(parts, SPACES[name], max_items=max_items))


def test_partitions_are_summarized_without_a_space_and_with_their_known_labels(tmp_path):
    votes, space = votes_of("classes"), SPACES["classes"]
    gold = [None] * 130 + ["ham", "egg"] * 30 + [None] * 50
    table = cs.tables.wide_table(votes, space)
    pq.write_table(table.append_column("truth", pa.array(gold)), tmp_path / "votes.parquet", row_group_size=60)
    whole = cs.read_votes(table, space)
    same(cs.summarize(whole), cs.summarize(ParquetPartitions(tmp_path, drop=["truth"])))
    parts = ParquetPartitions(tmp_path, space, gold="truth")
    same(cs.summarize(whole, space, gold=gold), cs.summarize(parts, space))
    with pytest.raises(InvalidVotesError, match="their own known labels"):
        cs.summarize(parts, space, gold=gold)


def test_one_pass_is_enough_a_wrong_cell_is_placed_and_too_many_labels_are_not_counted(tmp_path, monkeypatch):
    parts = ParquetPartitions(write_folder(tmp_path / "classes", votes_of("classes"), "classes", [], 60))
    passes = []
    original = parts.map
    parts.map = lambda function: (passes.append(1), original(function))[1]
    cs.summarize(parts, SPACES["classes"])
    assert len(passes) == 1
    with pytest.raises(InvalidLabelError, match="row group 0"):
        cs.summarize(parts, cs.Classes(["ham", "spam"]))
    monkeypatch.setattr(summary, "MOST_LABELS", 30)
    votes = votes_of("scores")
    parts = ParquetPartitions(write_folder(tmp_path / "scores", votes, "scores", [], 60), SPACES["scores"])
    assert cs.summarize(parts, SPACES["scores"]).columns["labels"] == [None] * 5
    assert cs.summarize(votes, SPACES["scores"]).columns["labels"] == votes.observed.sum(axis=0).tolist()


def on_dask(client, table, space, **options):
    bounds = np.linspace(0, len(table), 4).astype(int)
    frames = [table.slice(start, end - start) for start, end in pairwise(bounds)]
    return DaskPartitions(frames, space, client=client, **options)


def on_spark(session, table, space, **options):
    return SparkPartitions(session.createDataFrame(table.to_pandas()).repartition(3), space, **options)


@pytest.fixture(
    params=[
        pytest.param((on_dask, "client"), marks=needs_dask.marks, id="dask"),
        pytest.param((on_spark, "session"), marks=needs_spark.marks, id="spark"),
    ]
)
def engine(request):
    make, fixture = request.param
    running = request.getfixturevalue(fixture)
    return lambda table, space, **options: make(running, table, space, **options)


def rows(frame):
    """Return the rows of a Dask or Spark frame by item."""
    found = frame.compute() if hasattr(frame, "compute") else frame.toPandas()
    return found.sort_values("item").reset_index(drop=True)


@pytest.mark.parametrize("name", ["classes", "scores", "rankings"])
def test_predictions_stay_on_the_engine_with_the_ids_of_the_items(name, engine):
    table = cs.tables.wide_table(votes_of(name), SPACES[name])
    parts = engine(table, SPACES[name])
    model = cs.LabelModel(SPACES[name]).fit(parts)
    assert parts.remote
    votes = cs.read_votes(table, SPACES[name])
    labels = predict_frame(model, parts, "predict")
    assert type(labels).__module__.startswith(("dask", "pyspark"))
    expected = cs.tables.label_table(model, votes).column("label").to_pylist()
    for found, wanted in ((labels, expected), (predict_frame(model, parts, "predict_baseline"), None)):
        found = rows(found)
        assert found.columns.tolist() == ["item", "label"]
        assert found["item"].tolist() == votes.items.tolist()
        if wanted is not None and isinstance(wanted[0], float):
            assert np.allclose(found["label"].to_numpy(dtype=float), np.array(wanted, float), equal_nan=True, rtol=1e-9)
        elif wanted is not None:
            assert found["label"].tolist() == wanted
    sure = rows(predict_frame(model, parts, "confidence"))["confidence"].to_numpy(dtype=float)
    assert np.allclose(sure, model.confidence(votes), rtol=1e-10)
    if name == "classes":
        chances = np.array([list(row) for row in rows(predict_frame(model, parts, "predict_proba"))["probabilities"]])
        assert np.allclose(chances, model.predict_proba(votes), rtol=1e-10)
        filled = rows(predict_frame(model, parts, "predict", fill="prior"))["label"].tolist()
        assert filled == model.predict(votes, fill="prior").tolist()


def test_what_would_be_collected_is_refused(engine):
    parts = engine(cs.tables.wide_table(votes_of("classes"), SPACES["classes"]), SPACES["classes"])
    model = cs.LabelModel(SPACES["classes"])
    with pytest.raises(NotFittedError):
        model.predict(parts)
    model.fit(parts)
    with pytest.raises(UnsupportedError, match="predict_frame"):
        model.predict(parts)
    with pytest.raises(UnsupportedError, match="stay where they are"):
        model.posterior(parts)
    with pytest.raises(UnsupportedError, match="stay where they are"):
        model.score(parts, [0])


@pytest.mark.parametrize("name", ["classes", "scores"])
def test_a_summary_needs_sums_only(name, engine):
    table = cs.tables.wide_table(votes_of(name), SPACES[name])
    expected = cs.summarize(cs.read_votes(table, SPACES[name]), SPACES[name], max_items=100)
    same(expected, cs.summarize(engine(table, SPACES[name]), SPACES[name], max_items=100))


def test_an_id_in_two_partitions_is_named(engine):
    table = cs.tables.wide_table(votes_of("classes"), SPACES["classes"]).to_pandas()
    table.loc[200, "item"] = "item 0003"
    arrow = cs.tables.wide_table(cs.Votes.from_frame(table, item=None, sources=list(table.columns[1:])))
    arrow = arrow.set_column(0, "item", [table["item"].tolist()])
    with pytest.raises(InvalidVotesError, match=r"Item id 'item 0003' occurs twice.*partition \d"):
        cs.LabelModel(SPACES["classes"]).fit(engine(arrow, SPACES["classes"]))
    assert engine(arrow, SPACES["classes"], check_ids=False).n_skipped == 0


SPACE = cs.Classes(2)


def write(folder, ids, group=30, files=3):
    rng = np.random.default_rng(0)
    folder.mkdir(exist_ok=True)
    for index, part in enumerate(np.array_split(np.arange(len(ids)), files)):
        columns = {name: rng.integers(0, 2, len(part)) for name in ("ann", "bob", "cleo")}
        table = pa.table({"item": [ids[row] for row in part.tolist()], **columns})
        pq.write_table(table, folder / f"{index}.parquet", row_group_size=group)
    return folder


def numbers():
    ids = list(range(300))
    ids[250] = 17
    return ids


@pytest.mark.parametrize("make", [lambda number: number, lambda number: f"item {number}"], ids=["numbers", "text"])
@pytest.mark.parametrize("slices", [1, 3])
def test_a_fit_names_the_id_and_both_places(make, slices, tmp_path, monkeypatch):
    monkeypatch.setattr(duplicate_ids, "KEYS", 300 // slices)
    folder = write(tmp_path / "votes", [make(number) for number in numbers()])
    with pytest.raises(InvalidVotesError) as caught:
        cs.LabelModel(SPACE).fit(ParquetPartitions(folder, SPACE))
    message = str(caught.value)
    for words in (repr(make(17)), "0.parquet', row group 0, row 17", "2.parquet', row group 1, row 20"):
        assert words in message


def test_labels_of_votes_with_an_id_twice_are_not_written(tmp_path):
    folder = write(tmp_path / "votes", numbers())
    trusting = ParquetPartitions(folder, SPACE, check_ids=False)
    model = cs.LabelModel(SPACE).fit(trusting)
    assert predict_to(model, trusting, tmp_path / "labels").n_items == 300
    parts = ParquetPartitions(folder, SPACE)
    with pytest.raises(InvalidVotesError, match="Item id 17 occurs twice"):
        parts.check_ids()
    with pytest.raises(InvalidVotesError, match="Item id 17 occurs twice"):
        predict_to(model, parts, tmp_path / "others")
    twice = list(range(300))
    twice[150] = 151  # in one row group
    parts = ParquetPartitions(write(tmp_path / "more", twice), SPACE)
    with pytest.raises(InvalidVotesError, match=r"1\.parquet', row group 1: Item id 151 occurs twice"):
        cs.LabelModel(SPACE).fit(parts)


def test_ids_that_differ_are_compared_once_and_in_the_pass_that_is_made_anyway(tmp_path, reads):
    parts = ParquetPartitions(write(tmp_path / "votes", list(range(300))), SPACE)
    cs.LabelModel(SPACE, method="triplets").fit(parts)
    parts.check_ids()
    assert len(reads) == len(parts.groups)


def test_ids_that_only_share_a_key_are_no_repeats(tmp_path, monkeypatch):
    keys_of = duplicate_ids.keys_of
    monkeypatch.setattr(duplicate_ids, "keys_of", lambda ids: keys_of(ids) % 7)
    parts = ParquetPartitions(write(tmp_path / "votes", [f"item {number}" for number in range(300)]), SPACE)
    parts.check_ids()


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 40), min_size=1, max_size=30), max_size=5))
def test_runs_of_rising_ids_are_apart_only_if_no_id_occurs_twice(pieces):
    listed = [one for piece in pieces for one in piece]
    if duplicate_ids.are_apart(duplicate_ids.spans_of(np.array(piece, dtype=np.int64)) for piece in pieces):
        assert len(set(listed)) == len(listed)


def test_a_piece_with_the_end_of_one_file_and_the_beginning_of_another_is_apart_from_the_file_between():
    pieces = [np.array([0, 1, 2, 6, 7]), np.array([3, 4, 5]), np.array([9, 8])]
    assert duplicate_ids.are_apart(map(duplicate_ids.spans_of, pieces))
    assert not duplicate_ids.are_apart(map(duplicate_ids.spans_of, [*pieces, np.array([7, 20])]))
    assert not duplicate_ids.are_apart(map(duplicate_ids.spans_of, [*pieces, np.array(["a"])]))
