"""Votes in files give the numbers that the same votes give in memory, however the files are cut."""

import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.partitions.tables import SPACES, assert_same_fit, in_memory, poisoned, votes_of, write_folder

import consilience as cs
from consilience.exceptions import FileFormatError, InvalidLabelError, UnknownColumnError, UnsupportedError
from consilience.partitions import ParquetPartitions
from consilience.tables import wide_table

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


@pytest.mark.parametrize("name", ["classes", "scores", "rankings"])
@settings(max_examples=2)
@given(seed=st.integers(0, 1000), cuts=st.lists(st.integers(1, 119), max_size=4), size=st.integers(1, 130))
def test_shuffling_and_cutting_files_change_nothing(name, seed, cuts, size):
    votes = votes_of(name, n=120)
    whole = in_memory(name, votes)
    order = np.random.default_rng(seed).permutation(len(votes))
    with tempfile.TemporaryDirectory() as folder:
        parts = ParquetPartitions(write_folder(Path(folder), votes[order], name, cuts, size), SPACES[name])
        cut = cs.LabelModel(SPACES[name]).fit(parts)
        labels, confidence = cut.predict(parts), cut.confidence(parts)
    assert_same_fit(whole, cut)
    for key, value in whole._moments.sums.items():
        if value.dtype.kind in "iub":
            assert np.array_equal(value, cut._moments.sums[key])
    assert np.allclose(whole.confidence(votes)[order], confidence, rtol=1e-10, atol=1e-10)
    expected = whole.predict(cs.read_votes(wide_table(votes[order], SPACES[name]), SPACES[name]))
    if expected.dtype == object:
        assert expected.tolist() == labels.tolist()
    else:
        assert np.allclose(expected, labels, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", list(SPACES))
def test_a_row_group_without_any_vote_is_counted_and_changes_no_quality(name, tmp_path):
    votes = votes_of(name)
    silent = votes.observed.copy()
    silent[60:120] = False
    votes = cs.Votes(votes.labels, silent, votes.sources, votes.items, spelling=votes.spelling)
    parts = ParquetPartitions(write_folder(tmp_path, votes, name, [], 60), SPACES[name])
    assert len(parts.groups) == 4
    model = cs.LabelModel(SPACES[name]).fit(parts)
    whole = in_memory(name, votes)
    assert np.allclose(whole.weight_, model.weight_, rtol=1e-10, atol=1e-10)
    assert model.source_model_.n_items == 240


def test_known_labels_are_read_from_a_column_that_may_be_empty_in_some_files(tmp_path):
    votes = votes_of("classes")
    rng = np.random.default_rng(1)
    gold = [None] * 100 + rng.choice(["ham", "spam", "egg"], size=40).tolist() + [None] * 100
    table = wide_table(votes, SPACES["classes"]).append_column("truth", pa.array(gold))
    pq.write_table(table, tmp_path / "votes.parquet", row_group_size=30)
    parts = ParquetPartitions(tmp_path / "votes.parquet", SPACES["classes"], gold="truth")
    assert parts.sources == votes.sources
    streamed = cs.LabelModel(SPACES["classes"], method="labelled").fit(parts)
    read = cs.read_votes(table, SPACES["classes"], drop=["truth"])
    whole = cs.LabelModel(SPACES["classes"], method="labelled").fit(read, gold=gold)
    assert streamed._moments.n_gold == 40
    assert np.allclose(whole.weight_, streamed.weight_, rtol=1e-10)


def test_rows_without_ids_are_numbered_through_all_files_and_arrow_files_are_read_batch_by_batch(tmp_path):
    for index in range(2):
        pq.write_table(pa.table({"ann": [0, 1, 1], "bob": [1, 1, 0]}), tmp_path / f"{index}.parquet", row_group_size=2)
    parts = ParquetPartitions(tmp_path)
    numbers = [part.votes.items.tolist() for part in parts.transform(lambda part: part).map(lambda part: part)]
    assert numbers == [[0, 1], [2], [3, 4], [5]]
    assert parts.n_items == 6
    table = wide_table(votes_of("scores"), SPACES["scores"])
    feather.write_feather(table, tmp_path / "votes.arrow", chunksize=100, compression="uncompressed")
    parts = ParquetPartitions(tmp_path / "votes.arrow", SPACES["scores"])
    assert [len(part) for part in parts.map(lambda part: part)] == [100, 100, 40]
    assert_same_fit(in_memory("scores"), cs.LabelModel(SPACES["scores"]).fit(parts))


def test_a_one_pass_method_reads_the_needed_columns_of_every_row_group_once(tmp_path, reads):
    votes = votes_of("codes")
    votes.observed[77] = False  # to name it takes no second pass
    table = wide_table(votes, SPACES["codes"]).append_column("text", pa.array(["long text"] * 240))
    pq.write_table(table, tmp_path / "votes.parquet", row_group_size=60)
    parts = ParquetPartitions(tmp_path, SPACES["codes"], drop=["text"])
    model = cs.LabelModel(SPACES["codes"], method="triplets").fit(parts)
    assert any("item 0077" in finding.message for finding in model.diagnostics_)
    assert [options["row_groups"] for options in reads] == [[0], [1], [2], [3]]
    assert reads[0]["columns"] == ["item", *votes.sources]


def test_memory_is_bounded_by_a_row_group(tmp_path):
    rng = np.random.default_rng(0)
    size, group = 400_000, 20_000
    table = pa.table({f"s{column}": rng.integers(0, 2, size=size, dtype=np.int8) for column in range(8)})
    pq.write_table(table, tmp_path / "votes.parquet", row_group_size=group)
    del table
    for keep in (0, 1):
        parts = ParquetPartitions(tmp_path / "votes.parquet", cs.Classes(2), keep=keep)
        tracemalloc.start()
        parts.reduce(lambda part: part.votes.observed.sum(axis=0))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # 20,000 rows of 8 votes as bytes, with their mask and their ids, are 0.5 MB; all rows are 9.6 MB
        assert peak < 4e6


def test_what_is_kept_between_passes_is_not_read_again_unless_the_file_changes(tmp_path, reads):
    path = tmp_path / "votes.parquet"
    cells = {f"s{column}": np.arange(300, dtype=np.int8) % 2 for column in range(3)}
    pq.write_table(pa.table(cells), path, row_group_size=100)

    def votes_for_one(parts):
        return int(parts.reduce(lambda part: part.votes.labels.sum(dtype=np.int64)))

    for keep, expected in ((1.0, [0, 1, 2]), (0.0, [0, 1, 2, 0, 1, 2]), (0.002, [0, 1, 2, 1, 2])):
        reads.clear()
        parts = ParquetPartitions(path, cs.Classes(2), keep=keep)  # a row group takes 1,400 bytes
        assert [votes_for_one(parts), votes_for_one(parts)] == [450, 450]
        assert [options["row_groups"] for options in reads] == [[group] for group in expected]
    parts = ParquetPartitions(path, cs.Classes(2))
    assert votes_for_one(parts) == 450
    pq.write_table(pa.table({name: np.zeros_like(column) for name, column in cells.items()}), path, row_group_size=100)
    assert votes_for_one(parts) == 0


BRICK, STONE = ("source b", 137, "brick"), ("source d", 200, "stone")


def test_a_wrong_cell_is_named_by_file_row_group_row_and_source(tmp_path):
    path = poisoned(tmp_path, BRICK, STONE)
    with pytest.raises(InvalidLabelError) as caught:
        cs.LabelModel(SPACES["classes"]).fit(ParquetPartitions(path, SPACES["classes"]))
    message = str(caught.value)
    for word in (repr(str(path)), "row group 2", "row 37", "'item 0137'", "'source b'", "brick", "on_error='abstain'"):
        assert word in message
    with pytest.raises(InvalidLabelError, match=r"row group 2: Row 37 .item 'item 0137'., source 'source b'"):
        cs.LabelModel(SPACES["classes"]).fit(ParquetPartitions(path))  # which does not know the space


def test_wrong_cells_can_be_skipped_and_are_counted_and_text_with_a_notation_is_named_too(tmp_path):
    parts = ParquetPartitions(poisoned(tmp_path, BRICK, STONE), SPACES["classes"], on_error="abstain")
    votes = votes_of("classes")
    votes.observed[137, 1] = votes.observed[200, 3] = False
    assert_same_fit(in_memory("classes", votes), cs.LabelModel(SPACES["classes"]).fit(parts))
    assert parts.n_skipped == 2
    table = {"item": list("pqrs"), "ann": ["a > b > c > d"] * 4, "bob": ["a > b > c > d"] * 3 + ["a > what"]}
    pq.write_table(pa.table(table), tmp_path / "orders.parquet", row_group_size=3)
    with pytest.raises(InvalidLabelError, match=r"row group 1, row 0 .item 's'., source 'bob'.*what"):
        cs.LabelModel(SPACES["rankings"]).fit(ParquetPartitions(tmp_path / "orders.parquet", SPACES["rankings"]))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"on_error": "ignore"}, UnsupportedError, "on_error='ignore' is unknown"),
        ({"on_error": "abstain"}, UnsupportedError, "needs the label space"),
        ({"gold": "truth"}, UnsupportedError, "needs the label space"),
        ({"sources": ["ann", "zoe"]}, UnknownColumnError, "no column 'zoe'"),
        ({"space": 3}, UnsupportedError, "not a label type"),
    ],
)
def test_settings_that_cannot_work_are_refused(tmp_path, options, error, words):
    pq.write_table(pa.table({"item": [1], "ann": [0], "bob": [1]}), tmp_path / "votes.parquet")
    with pytest.raises(error, match=words):
        ParquetPartitions(tmp_path, **options)


def test_files_that_hold_no_table_of_votes_are_named(tmp_path):
    pq.write_table(pa.table({"item": [1], "source": ["ann"], "label": [1]}), tmp_path / "long.parquet")
    with pytest.raises(UnsupportedError, match=r"one row per vote.*to='wide'"):
        ParquetPartitions(tmp_path / "long.parquet")
    folder = tmp_path / "votes"
    folder.mkdir()
    pq.write_table(pa.table({"ann": [0], "bob": [1]}), folder / "1.parquet")
    pq.write_table(pa.table({"ann": [0], "cleo": [1]}), folder / "2.parquet")
    with pytest.raises(FileFormatError, match=r"1\.parquet.*2\.parquet.*'bob', 'cleo'"):
        ParquetPartitions(folder)
    pq.write_table(pa.table({"ann": [0] * 1000, "bob": [1] * 1000}), tmp_path / "half.parquet")
    data = (tmp_path / "half.parquet").read_bytes()
    (tmp_path / "half.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(FileFormatError, match=r"half\.parquet.*cut short"):
        ParquetPartitions(tmp_path / "half.parquet")
    with pytest.raises(FileFormatError, match="no file or folder"):
        ParquetPartitions(tmp_path / "nothing")
    (tmp_path / "votes.csv").write_text("ann,bob\n0,1\n")
    with pytest.raises(FileFormatError, match="read the table whole"):
        ParquetPartitions(tmp_path / "votes.csv")
