"""The arborescence kernels against enumeration of all trees, and against networkx."""

from __future__ import annotations

from functools import cache
from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.kernels.arborescence import consensus_trees, maximum_arborescence, tree_faults


@cache
def every_tree(n: int) -> np.ndarray:
    """All trees of n tokens with one root."""
    heads = np.array(list(product(range(n + 1), repeat=n)), dtype=np.int64)
    starts = np.array([0, n])
    return np.array([row for row in heads if tree_faults(row, starts)[0] == -1])


def total(score: np.ndarray, heads: np.ndarray) -> float:
    return float(score[heads, np.arange(1, len(heads) + 1)].sum())


def is_tree(heads: np.ndarray) -> bool:
    return tree_faults(np.asarray(heads, dtype=np.int64), np.array([0, len(heads)]))[0] == -1


def test_there_are_as_many_trees_with_one_root_as_cayley_counts():
    # n choices of the token under the root, and n^(n - 2) trees on the tokens
    assert [len(every_tree(n)) for n in range(1, 6)] == [n ** (n - 1) for n in range(1, 6)]


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.sampled_from(["real", "few values", "votes"]))
def test_no_tree_has_a_larger_score(n, seed, kind):
    rng = np.random.default_rng(seed)
    score = rng.normal(size=(n + 1, n + 1))
    if kind == "few values":
        score = rng.integers(0, 3, (n + 1, n + 1)).astype(float)
    if kind == "votes":
        score = np.zeros((n + 1, n + 1))
        for weight in rng.uniform(0.1, 2.0, 4):
            score[every_tree(n)[rng.integers(len(every_tree(n)))], np.arange(1, n + 1)] += weight
    heads = maximum_arborescence(score)
    assert is_tree(heads)
    assert total(score, heads) == pytest.approx(max(total(score, tree) for tree in every_tree(n)), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(6, 16), st.integers(0, 2**32 - 1))
def test_the_score_is_that_of_networkx(n, seed):
    rng = np.random.default_rng(seed)
    score = rng.random((n + 1, n + 1))
    heads = maximum_arborescence(score)
    graph = nx.DiGraph()
    for head in range(n + 1):
        for token in range(1, n + 1):
            if head != token:
                # one root: an edge of the root costs more than all others together may gain
                graph.add_edge(head, token, weight=score[head, token] - 100.0 * (head == 0))
    best = nx.maximum_spanning_arborescence(graph)
    assert is_tree(heads)
    assert total(score, heads) == pytest.approx(best.size(weight="weight") + 100.0, abs=1e-9)


def test_an_odd_score_of_the_root_cannot_buy_a_second_root():
    score = np.zeros((4, 4))
    score[0, 1:] = 1e12
    heads = maximum_arborescence(score)
    assert (heads == 0).sum() == 1


def test_equal_scores_are_decided_for_the_nearer_head():
    # all heads of token 2 score alike except that 1 is the root: the neighbours 1 and 3 are nearest, and 1 is left
    score = np.zeros((5, 5))
    score[0, 1] = 5.0
    np.testing.assert_array_equal(maximum_arborescence(score), [0, 1, 2, 3])


def test_a_sentence_of_one_token_has_one_tree():
    assert maximum_arborescence(np.zeros((2, 2))).tolist() == [0]
    heads, probability = consensus_trees(np.array([[0]], np.int16), np.ones((1, 1)), np.array([0, 1]), 2.0, False)
    assert (heads.tolist(), probability.tolist()) == ([0], [1.0])


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_batch_of_ragged_sentences_is_nothing_but_its_sentences(seed, expected):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, 7)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    votes = np.concatenate([every_tree(n)[rng.integers(len(every_tree(n)), size=4)].T for n in sizes]).astype(np.int16)
    weights = rng.uniform(0.0, 2.0, (7, 4)) * (rng.random((7, 4)) < 0.8)
    heads, probability = consensus_trees(votes, weights, starts, 2.0, expected)
    for sentence, n in enumerate(sizes):
        rows = slice(starts[sentence], starts[sentence + 1])
        score = np.zeros((n + 1, n + 1))
        for a in range(4):
            np.add.at(score, (votes[rows, a], np.arange(1, n + 1)), weights[sentence, a])
        if expected:
            score = expected_rights(score, n)
        assert is_tree(heads[rows])
        best = max(total(score, tree) for tree in every_tree(n))
        assert total(score, heads[rows].astype(np.int64)) == pytest.approx(best, abs=1e-9)
    assert ((probability >= 0) & (probability <= 1)).all()


def expected_rights(support: np.ndarray, n: int, plausible: float = 2.0) -> np.ndarray:
    """Probability of each voted head; zero for the others, which no source spoke for."""
    result = np.zeros_like(support)
    for token in range(1, n + 1):
        voted = support[:, token] > 0
        unseen = max(min(plausible + 1, n) - voted.sum(), 0)
        odds = np.exp(support[:, token]) * voted
        result[:, token] = odds / max(odds.sum() + unseen, 1e-300)
    return result


def test_head_probabilities_are_those_worked_out_by_hand():
    # Two tokens would have one wrong head each; three have two. Token 1: votes 0, 0, 2 with weights log 2, log 3, log 2
    # give odds 6 to 2, and one of three plausible heads is left with odds 1: 6 / 9.
    votes = np.array([[0, 0, 2], [1, 1, 0], [1, 1, 1]], dtype=np.int16)
    weights = np.log([[2.0, 3.0, 2.0]])
    heads, probability = consensus_trees(votes, weights, np.array([0, 3]), 2.0, False)
    assert heads.tolist() == [0, 1, 1]
    assert probability == pytest.approx([6 / 9, 6 / 9, 12 / 14])


@pytest.mark.parametrize(
    ("heads", "fault"),
    [
        ([0, 1, 1], [-1, 0, 0]),
        ([0, 4, 1], [0, 1, 2]),
        ([-1, 1, 1], [0, 1, 1]),
        ([0, 1, 3], [0, 2, 3]),
        ([2, 1, 1], [0, 3, 0]),
        ([0, 1, 0], [0, 4, 3]),
        ([0, 1, 4, 3], [0, 5, 3]),
        ([0, 3, 4, 3], [0, 5, 3]),
        ([], [0, 6, 0]),
    ],
)
def test_what_is_no_tree_is_told_with_the_token(heads, fault):
    assert tree_faults(np.array(heads, dtype=np.int64), np.array([0, len(heads)])).tolist() == fault
