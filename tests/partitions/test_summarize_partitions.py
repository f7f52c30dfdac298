"""The table before any model is the same from partitions as from memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.partitions.tables import SPACES, votes_of, write_folder

import consilience as cs
from consilience.exceptions import InvalidLabelError, InvalidVotesError
from consilience.labeling import summary
from consilience.partitions import ParquetPartitions


def same(left, right):
    assert list(left.columns) == list(right.columns)
    for name, column in left.columns.items():
        assert [cell if isinstance(cell, str) else pytest.approx(cell, rel=1e-10) for cell in column] == right.columns[
            name
        ]


@pytest.mark.parametrize("name", list(SPACES))
@pytest.mark.parametrize("max_items", [None, 100])
def test_partitions_give_the_table_of_the_whole(name, max_items, tmp_path):
    votes = votes_of(name)
    order = np.random.default_rng(0).permutation(len(votes))
    parts = ParquetPartitions(write_folder(tmp_path, votes[order], name, [70, 71], 60), SPACES[name])
    whole = cs.read_votes(cs.tables.wide_table(votes, SPACES[name]), SPACES[name])
    same(cs.summarize(whole, SPACES[name], max_items=max_items), cs.summarize(parts, SPACES[name], max_items=max_items))
    pieces = cs.partitions.InMemoryPartitions.of(whole, rows=50)
    same(
        cs.summarize(whole, SPACES[name], max_items=max_items), cs.summarize(pieces, SPACES[name], max_items=max_items)
    )


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


def test_one_pass_is_enough_and_a_wrong_cell_is_placed(tmp_path):
    parts = ParquetPartitions(write_folder(tmp_path, votes_of("classes"), "classes", [], 60))
    passes = []
    original = parts.map
    parts.map = lambda function: (passes.append(1), original(function))[1]
    cs.summarize(parts, SPACES["classes"])
    assert len(passes) == 1
    with pytest.raises(InvalidLabelError, match="row group 0"):
        cs.summarize(parts, cs.Classes(["ham", "spam"]))


def test_too_many_labels_to_travel_are_not_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(summary, "MOST_LABELS", 30)
    votes = votes_of("scores")
    parts = ParquetPartitions(write_folder(tmp_path, votes, "scores", [], 60), SPACES["scores"])
    assert cs.summarize(parts, SPACES["scores"]).columns["labels"] == [None] * 5
    assert cs.summarize(votes, SPACES["scores"]).columns["labels"] == votes.observed.sum(axis=0).tolist()
