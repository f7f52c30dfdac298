"""Labeling functions on files and on clusters give the votes that they give in memory."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.partitions.clusters import needs_dask, needs_spark
from tests.partitions.tables import assert_same_fit

import consilience as cs
from consilience.exceptions import FileFormatError, InvalidVotesError, LabelingFunctionError, UnsupportedError
from consilience.partitions import DaskPartitions, ParquetPartitions, SparkPartitions, apply_frame, apply_to

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")

SPACE = cs.Classes(["ham", "spam"])


def functions():
    """Return functions that are sent by value: the workers cannot import this file."""

    def long(row):
        return "spam" if len(row.text) > 12 else "ham"

    def has_digit(row):
        return "spam" if any(map(str.isdigit, row.text)) else None

    @cs.labeling_function(vectorized=True)
    def late(batch):
        return ["ham" if number % 3 else None for number in np.asarray(batch["number"]).tolist()]

    def rare(row):
        return "spam" if row.number == 177 else None

    return [long, has_digit, late, rare]


FUNCTIONS = functions()
rare = FUNCTIONS[3]


def texts():
    rng = np.random.default_rng(0)
    words = ["win", "call 555", "hello", "good morning", "a car", "7"]
    return pa.table(
        {
            "key": [f"k{row:03d}" for row in range(180)],
            "text": [" ".join(rng.choice(words, size=rng.integers(1, 4))) for _ in range(180)],
            "number": np.arange(180),
        }
    )


def expected():
    return cs.apply(FUNCTIONS, texts(), SPACE, item="key")


@pytest.fixture
def data(tmp_path):
    pq.write_table(texts(), tmp_path / "data.parquet", row_group_size=40)
    return tmp_path / "data.parquet"


def same(votes, parts):
    assert_same_fit(cs.LabelModel(SPACE).fit(votes), cs.LabelModel(SPACE).fit(parts))


def test_votes_on_files_go_to_files_that_partitions_read(data, tmp_path):
    written = apply_to(FUNCTIONS, data, tmp_path / "votes", SPACE, item="key")
    assert (written.n_items, written.n_files, written.n_skipped) == (180, 5, 0)
    found = cs.read_votes(tmp_path / "votes", SPACE)
    whole = expected()
    assert found.sources == whole.sources
    assert found.items.tolist() == whole.items.tolist()
    assert cs.tables.wide_table(found, SPACE) == cs.tables.wide_table(whole, SPACE)
    same(whole, ParquetPartitions(tmp_path / "votes", SPACE))


def test_a_stopped_run_is_continued_and_other_functions_are_refused(data, tmp_path):
    calls = []

    def counted(row):
        calls.append(row.number)
        return "ham"

    def failing(row):
        if row.number == 100:
            raise KeyboardInterrupt
        return "ham"

    with pytest.raises(KeyboardInterrupt):
        apply_to([failing], data, tmp_path / "votes")
    assert pq.read_table(tmp_path / "votes").num_rows == 80
    with pytest.raises(FileFormatError, match="functions differ"):
        apply_to([counted], data, tmp_path / "votes", resume=True)
    apply_to([counted], data, tmp_path / "others", SPACE)
    (tmp_path / "others" / "part-000002.parquet").unlink()
    calls.clear()
    assert apply_to([counted], data, tmp_path / "others", SPACE, resume=True).n_resumed == 4
    assert sorted(set(calls)) == [*range(40), *range(80, 120)]  # the first rows show the types


def test_failures_are_placed_or_counted_and_labels_of_another_type_and_silence_are_explained(data, tmp_path):
    def breaks(row):
        return "ham" if row.number != 95 else 1 / 0

    def fickle(row):
        return row.number if row.number < 80 else "many"

    with pytest.raises(LabelingFunctionError, match=r"data\.parquet', row group 2: .*'breaks' failed on row 15"):
        apply_to([breaks], data, tmp_path / "votes")
    assert apply_to([breaks], data, tmp_path / "votes", on_error="abstain", force=True).n_skipped == 1
    pq.write_table(texts().slice(0, 0), tmp_path / "empty.parquet")
    for function, source, error, message in (
        (fickle, data, LabelingFunctionError, r"row group 2: 'fickle' votes labels of another type"),
        (rare, data, UnsupportedError, r"No function votes .*space="),
        (rare, texts(), UnsupportedError, r"consilience\.apply"),
        (rare, tmp_path / "empty.parquet", InvalidVotesError, "no rows"),
    ):
        with pytest.raises(error, match=message):
            apply_to([function], source, tmp_path / "votes", force=True)
    assert apply_to([rare], data, tmp_path / "more", SPACE).n_items == 180


@needs_dask
def test_votes_on_a_dask_frame_are_a_dask_frame(client):
    import dask.dataframe as dd

    frame = dd.from_pandas(texts().to_pandas(), npartitions=3)
    votes = apply_frame(FUNCTIONS, frame, SPACE, item="key")
    assert isinstance(votes, dd.DataFrame)
    assert (votes.npartitions, votes.columns.tolist()) == (3, ["item", "long", "has_digit", "late", "rare"])
    same(expected(), DaskPartitions(votes, SPACE, client=client))
    with pytest.raises(UnsupportedError, match="apply_frame"):
        cs.apply(FUNCTIONS, frame, SPACE)

    def breaks(row):
        return "ham" if row.number != 179 else 1 / 0

    with pytest.raises(LabelingFunctionError, match=r"partition 2: .*'breaks' failed on row 59"):
        apply_frame(breaks, frame, SPACE).compute()


@needs_spark
def test_votes_on_a_spark_frame_are_a_spark_frame(session):
    frame = session.createDataFrame(texts().to_pandas()).repartition(3)
    votes = apply_frame(FUNCTIONS, frame, SPACE, item="key")
    assert type(votes).__module__.startswith("pyspark")
    same(expected(), SparkPartitions(votes, SPACE))
    with pytest.raises(UnsupportedError, match="no order"):
        apply_frame(FUNCTIONS, frame, SPACE)
