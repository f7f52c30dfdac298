"""An id that occurs twice is found across files, row groups and partitions, with both places."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from consilience.exceptions import InvalidVotesError
from consilience.partitions import ParquetPartitions, duplicate_ids, predict_to

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")

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
