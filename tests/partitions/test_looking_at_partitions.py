"""Why an item got its label, which items to label, and the table of labels, from votes in pieces."""

from __future__ import annotations

import numpy as np
import pytest
from tests.partitions.tables import SPACES, votes_of, write_folder
from tests.partitions.test_on_clusters import engine  # noqa: F401  (a fixture)

import consilience as cs
from consilience.exceptions import InvalidVotesError, UnsupportedError
from consilience.partitions import ParquetPartitions

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
        assert model.suggest_items_to_label(parts, k).tolist() == model.suggest_items_to_label(votes, k).tolist()
    whole, pieces = cs.tables.label_table(model, votes), cs.tables.label_table(model, parts)
    assert pieces.schema == whole.schema
    labels = pieces.column("label").to_pylist()
    assert labels == (
        pytest.approx(whole.column("label").to_pylist()) if name == "scores" else whole.column("label").to_pylist()
    )
    for column in ("confidence", "agreement"):
        left, right = (np.array(one.column(column).to_pylist(), float) for one in (whole, pieces))
        assert np.allclose(left, right, rtol=1e-9, equal_nan=True)


def test_items_that_are_not_there_are_named(tmp_path):
    parts, votes = pieces_of("classes", tmp_path)
    model = cs.LabelModel(SPACES["classes"]).fit(votes)
    with pytest.raises(InvalidVotesError, match=r"no item 'item 9999' in the votes\..*'item 0000'"):
        model.explain(parts, "item 9999")
    with pytest.raises(UnsupportedError, match=r"k=500 items are asked for, and 2[0-9]{2} have a vote"):
        model.suggest_items_to_label(parts, 500)


def test_only_short_lists_leave_a_chunk(tmp_path):
    _, votes = pieces_of("classes", tmp_path)
    model = cs.LabelModel(SPACES["classes"]).fit(votes)
    brought = []

    class Noting(ParquetPartitions):
        def reduce(self, function):
            found = super().reduce(function)
            brought.append(found)
            return found

    noting = Noting(tmp_path, SPACES["classes"])
    model.suggest_items_to_label(noting, 1)
    assert len(brought) == 2
    assert len(brought[1].items) == 200  # of 240


def test_clusters_are_looked_at_as_the_whole_table_is(engine):  # noqa: F811
    parts = engine(table_of("classes"), SPACES["classes"])
    votes = cs.read_votes(table_of("classes"), SPACES["classes"])
    model = cs.LabelModel(SPACES["classes"]).fit(votes)
    assert str(model.explain(parts, "item 0200")) == str(model.explain(votes, "item 0200"))
    found = model.suggest_items_to_label(parts, 5)
    assert len(set(found.tolist())) == 5
    assert set(found.tolist()) <= set(model.suggest_items_to_label(votes, 40).tolist())  # ties, in another order
    with pytest.raises(UnsupportedError, match="predict_to"):
        cs.tables.label_table(model, parts)
