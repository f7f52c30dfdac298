"""The kernels of trees against enumeration of all trees, networkx, and plain Python."""

from functools import cache
from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.label_types.trees.kernels import (
    best_trees,
    draw_trees,
    expected_heads,
    maximum_arborescence,
    tree_faults,
)
from consilience.label_types.trees.law import TokenTable, vote_blocks


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


def test_equal_scores_are_decided_for_the_nearer_head_and_no_score_buys_a_second_root():
    # all heads of token 2 score alike except that 1 is the root: the neighbors 1 and 3 are nearest, and 1 is left
    score = np.zeros((5, 5))
    score[0, 1] = 5.0
    np.testing.assert_array_equal(maximum_arborescence(score), [0, 1, 2, 3])
    score[0, 1:] = 1e12
    assert (maximum_arborescence(score) == 0).sum() == 1
    assert maximum_arborescence(np.zeros((2, 2))).tolist() == [0]


def ragged_votes(seed: int, m: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = np.array([1, 3, 2, 4, 5, 3])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    votes = np.concatenate([every_tree(n)[rng.integers(len(every_tree(n)), size=m)].T for n in sizes]).astype(np.int16)
    for item in range(len(sizes)):
        votes[starts[item] : starts[item + 1], rng.random(m) < 0.3] = -1
    return votes, starts


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_batch_of_ragged_sentences_is_nothing_but_its_sentences(seed):
    votes, starts = ragged_votes(seed)
    weights = np.random.default_rng(seed).uniform(0.1, 2.0, (6, 4))
    heads = best_trees(votes, TokenTable(votes, None, starts).support(weights), starts)
    for sentence, (low, high) in enumerate(pairwise(starts)):
        score = np.zeros((high - low + 1, high - low + 1))
        for a in np.flatnonzero(votes[low] >= 0):
            np.add.at(score, (votes[low:high, a], np.arange(1, high - low + 1)), weights[sentence, a])
        assert is_tree(heads[low:high])
        best = max(total(score, tree) for tree in every_tree(high - low))
        assert total(score, heads[low:high]) == pytest.approx(best, abs=1e-9)


def test_blocks_number_the_heads_of_a_token_in_the_order_of_the_sources():
    votes = np.array([[4, 2, 4, -1], [0, 0, 0, 0], [-1, 3, 1, 3]], dtype=np.int16)
    blocks = vote_blocks(votes, np.array([2, -1, 5], dtype=np.int16))
    np.testing.assert_array_equal(blocks, [[0, 1, 0, -1, 1], [0, 0, 0, 0, -1], [-1, 0, 1, 0, -2]])


def coincidence(sizes: list[int], alpha: float) -> float:
    """Ewens: wrong votes come one by one and repeat an earlier one in proportion to its votes, or are new."""
    probability, seen = 1.0, 0
    for size in sizes:
        for votes in range(size):
            probability *= (votes if votes else alpha) / (alpha + seen)
            seen += 1
    return probability


@pytest.mark.parametrize("seed", range(5))
def test_beliefs_are_those_of_bayes_over_difficulty_and_true_head(seed):
    rng = np.random.default_rng(seed)
    votes = rng.integers(-1, 3, (12, 5)).astype(np.int16)
    blocks = vote_blocks(votes, np.full(12, -1, dtype=np.int16))
    error, prior, alpha = rng.uniform(0.1, 0.6, (3, 5)), np.array([0.2, 0.5, 0.3]), 2.5
    seen = (blocks[:, :5] >= 0).astype(float)
    found_right, found_wrong, belief = expected_heads(
        blocks, np.ones(12), seen, np.log(1.0 - error), np.log(error), np.log(prior), alpha
    )
    right, wrong = np.zeros((3, 5)), np.zeros((3, 5))
    for row, own in zip(blocks[:, :5], belief, strict=True):
        voters = np.flatnonzero(row >= 0)
        found = int(row.max(initial=-1)) + 1
        joint = np.zeros((3, found + 1))
        for truth in range(found + 1):
            sizes = [int((row == j).sum()) for j in range(found) if j != truth]
            hit = np.where(row[voters] == truth, 1.0 - error[:, voters], error[:, voters]).prod(axis=1)
            joint[:, truth] = prior * hit * coincidence(sizes, alpha)
        joint /= joint.sum()
        np.testing.assert_allclose(np.r_[own[:found], own[-1]], joint.sum(axis=0))
        for a in voters:
            right[:, a] += joint[:, row[a]]
            wrong[:, a] += joint.sum(axis=1) - joint[:, row[a]]
    np.testing.assert_allclose(found_right, right)
    np.testing.assert_allclose(found_wrong, wrong)


def test_a_known_head_is_believed_and_shared_votes_count_in_part():
    blocks = np.array([[0, 0, 1, 1], [0, 0, 1, -1]], dtype=np.int16)
    low, high = np.log(np.full((1, 3), 0.2)), np.log(np.full((1, 3), 0.8))

    def belief(row, shares):
        return expected_heads(blocks[[row]], np.ones(1), shares, high, low, np.zeros(1), 2.0)[-1][0]

    assert belief(0, np.ones((1, 3))).tolist() == [0, 1, 0, 0]
    alone, shared = belief(1, np.ones((1, 3))), belief(1, np.array([[0.5, 0.5, 1.0]]))
    assert alone[0] > 0.7
    assert shared[0] == pytest.approx(shared[1])


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


@pytest.mark.parametrize("strength", [0.0, 0.8, -0.5])
def test_drawn_trees_have_the_frequencies_of_their_law(strength):
    # 40,000 draws over 64 trees: the largest of 64 deviations exceeds 4.5 standard errors once in 2,000 runs
    trees, draws = every_tree(4), 40_000
    center = trees[10]
    rng = np.random.default_rng(1)
    starts = 4 * np.arange(draws + 1)
    drawn = draw_trees(np.tile(center, draws), starts, np.full(draws, np.exp(strength)), rng).reshape(draws, 4)
    law = np.exp(strength * (trees == center).sum(axis=1))
    law /= law.sum()
    share = np.array([(drawn == tree).all(axis=1).mean() for tree in trees])
    assert share.sum() == pytest.approx(1.0)
    assert (np.abs(share - law) < 4.5 * np.sqrt(law * (1 - law) / draws)).all()
