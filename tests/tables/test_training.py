"""Labels as training data: weighted examples, preference pairs, groups for learning to rank."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from tests.refusals import refused

import consilience as cs
from consilience.exceptions import InvalidLabelError, InvalidVotesError, UnsupportedError

TABLE = np.array([[0, 0, 1], [1, 1, 1], [-1, -1, -1], [0, 0, 0]] * 10)
RANKINGS = [[[0, 1, 2], [0, 2, 1], [1, 0, -1]], [[2, 1, 0], [2, 1, 0], [2, 1, 0]]] * 20


@pytest.fixture(scope="module")
def classes():
    return cs.LabelModel(cs.Classes(2)).fit(TABLE)


@pytest.fixture(scope="module")
def ranked():
    return cs.LabelModel(cs.Rankings(["a", "b", "c"])).fit(RANKINGS)


def test_training_set_leaves_out_items_without_votes(classes):
    data = cs.tables.training_set(classes, cs.Votes.from_matrix(TABLE, items=[f"x{row}" for row in range(40)]))
    assert data.X is None
    assert len(data) == 30
    assert (data.items[:4].tolist(), data.y[:3].tolist()) == (["x0", "x1", "x3", "x4"], [0, 1, 0])
    confidence = classes.confidence(TABLE)
    assert data.sample_weight[:3] == pytest.approx(confidence[[0, 1, 3]])
    data = cs.tables.training_set(classes, TABLE, np.where(TABLE[:, :1] == 1, 1.0, -1.0))
    fitted = LogisticRegression().fit(data.X, data.y, sample_weight=data.sample_weight)
    assert fitted.predict([[1.0], [-1.0]]).tolist() == [1, 0]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x,
        lambda x: x.tolist(),
        sparse.csr_matrix,
        lambda x: pd.DataFrame(x, columns=["n"], index=range(100, 140)),
        lambda x: pl.DataFrame({"n": x[:, 0]}),
        lambda x: pa.table({"n": x[:, 0]}),
    ],
    ids=["array", "list", "sparse", "pandas", "polars", "arrow"],
)
def test_rows_of_the_data_stay_with_their_labels_in_their_own_type(classes, make):
    given = make(np.arange(40)[:, None])
    kept = cs.tables.training_set(classes, TABLE, given).X
    assert type(kept) is type(given)
    dense = kept.toarray() if sparse.issparse(kept) else kept
    numbers = np.array(dense)[:, 0] if isinstance(dense, (list, np.ndarray)) else np.asarray(dense["n"])
    assert numbers[:4].tolist() == [0, 1, 3, 4]


def test_unsure_labels_and_pairs_of_small_margin_are_left_out_on_request(classes, ranked):
    every = cs.tables.training_set(classes, TABLE)
    sure = cs.tables.training_set(classes, TABLE, min_confidence=float(np.median(every.sample_weight)) + 1e-9)
    assert 0 < len(sure) < len(every)
    assert sure.sample_weight.min() > np.median(every.sample_weight)
    pairs = cs.tables.preference_pairs(ranked, RANKINGS)
    kept = cs.tables.preference_pairs(ranked, RANKINGS, min_margin=0.5)
    assert 0 < kept.num_rows < pairs.num_rows
    assert min(kept["margin"].to_pylist()) >= 0.5


def test_pairs_of_a_model_have_margins_from_its_probabilities(ranked):
    rows = cs.tables.preference_pairs(ranked, RANKINGS).to_pylist()
    assert [(row["chosen"], row["rejected"]) for row in rows[:6]] == [
        ("a", "b"), ("a", "c"), ("b", "c"), ("c", "b"), ("c", "a"), ("b", "a"),
    ]  # fmt: skip
    probability = ranked.posterior(RANKINGS).details["pair_probability"]  # of (a, b), (a, c), (b, c)
    assert [row["margin"] for row in rows[:3]] == pytest.approx(2 * probability[0] - 1)
    assert [row["margin"] for row in rows[3:6]] == pytest.approx(1 - 2 * probability[1][[2, 1, 0]])


@pytest.mark.parametrize(
    ("pairs", "expected"), [("all", "ab ac ad bd cd"), ("adjacent", "ab ac bd cd"), ("best", "ab ac ad")]
)
def test_which_pairs_are_written_can_be_chosen(pairs, expected):
    rows = cs.tables.preference_pairs([["a", ("b", "c"), "d"]], pairs=pairs).to_pylist()
    assert " ".join(row["chosen"] + row["rejected"] for row in rows) == expected
    assert rows[0]["margin"] == 1.0


def test_rankings_of_numbers_pair_candidates_and_ties_make_no_pairs():
    rankings = np.array([[0, 1, -1], [-1, -1, -1]])
    table = cs.tables.preference_pairs(rankings, candidates=[["x", "y", "z"]] * 2, items=["p", "q"])
    assert table.to_pylist() == [{"item": "p", "chosen": "x", "rejected": "y", "margin": 1.0}]
    empty = cs.tables.preference_pairs([[("a", "b")]])
    assert (empty.num_rows, empty.column_names) == (0, ["item", "chosen", "rejected", "margin"])


def test_groups_have_sizes_and_relevance_from_the_top_down_to_zero(ranked):
    groups = cs.tables.ranking_groups([[0, 2, 1], [1, 0, -1], [0, 0]])
    assert (groups.relevance.tolist(), groups.sizes.tolist()) == ([2, 0, 1, 0, 1, 0, 0], [3, 2, 2])
    assert (groups.rows.tolist(), groups.items.tolist()) == ([0, 1, 2, 3, 4, 6, 7], [0, 1, 2])
    long = cs.tables.ranking_groups([list(range(50))])
    assert (long.relevance[:3].tolist(), long.relevance[30:].tolist()) == ([30, 29, 28], [0] * 20)
    assert cs.tables.ranking_groups([[0, 1, 2, 3]], levels=2).relevance.tolist() == [1, 0, 0, 0]
    modelled = cs.tables.ranking_groups(ranked, RANKINGS)
    assert modelled.relevance[:6].tolist() == [2, 1, 0, 0, 1, 2]
    assert modelled.sizes.sum() == len(modelled.rows) == 120


def test_what_cannot_be_trained_on_or_ranked_is_refused(classes, ranked):
    with refused(InvalidVotesError, "39 rows", "40 items"):
        cs.tables.training_set(classes, TABLE, np.zeros((39, 2)))
    with refused(UnsupportedError, "Classes, not with rankings"):
        cs.tables.preference_pairs(classes, TABLE)
    with refused(UnsupportedError, "needs the votes"):
        cs.tables.ranking_groups(ranked)
    with refused(UnsupportedError, "pairs='some'", "'adjacent'"):
        cs.tables.preference_pairs([["a", "b"]], pairs="some")
    with refused(UnsupportedError, "levels=1"):
        cs.tables.ranking_groups([[0, 1]], levels=1)
    with refused(InvalidLabelError, "1 rankings and 2 item ids"):
        cs.tables.preference_pairs([["a", "b"]], items=[1, 2])
    with refused(InvalidLabelError, "ranks 3 items", "names 2"):
        cs.tables.preference_pairs(np.array([[0, 1, 2]]), candidates=[["x", "y"]])
    with refused(InvalidLabelError, "1 rankings and 2 lists"):
        cs.tables.preference_pairs(np.array([[0, 1]]), candidates=[["x", "y"]] * 2)
