"""The kernels on flat tables of votes, and random trees, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from test_arborescence import every_tree

from consilience.kernels.edge_votes import count_pairs, expected_rights, relation_votes, spread_cells
from consilience.kernels.tree_sampling import draw_trees
from consilience.solvers.tree_law import expected_share_right, strength_for_error


def ragged_votes(seed: int, m: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = np.array([1, 3, 2, 4, 5, 3])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    votes = np.concatenate([every_tree(n)[rng.integers(len(every_tree(n)), size=m)].T for n in sizes]).astype(np.int16)
    for item in range(len(sizes)):
        votes[starts[item] : starts[item + 1], rng.random(m) < 0.3] = -1
    return votes, starts


def test_cells_are_spread_to_their_tokens_and_sources():
    flat = np.array([2, 0, 0, 1, 0])
    votes = spread_cells(flat, np.array([0, 0, 2]), np.array([0, 1, 1]), np.array([0, 2, 2, 3]), 2)
    np.testing.assert_array_equal(votes, [[2, 0], [0, 1], [-1, 0]])


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_counted_by_token_and_group_but_for_single_tokens(seed):
    votes, starts = ragged_votes(seed)
    groups = np.array([0, 1, 0, 1, 2, 2])
    both, differ = count_pairs(votes, starts, groups, 3)
    for group in range(3):
        for a in range(4):
            for b in range(4):
                tokens = [
                    t
                    for item in range(6)
                    for t in range(starts[item], starts[item + 1])
                    if groups[item] == group and starts[item + 1] - starts[item] > 1
                    if votes[t, a] >= 0 and votes[t, b] >= 0
                ]
                assert both[group, a, b] == len(tokens)
                assert differ[group, a, b] == sum(votes[t, a] != votes[t, b] for t in tokens)


@pytest.mark.parametrize("seed", range(5))
def test_expected_rights_are_those_of_bayes_over_all_heads(seed):
    votes, starts = ragged_votes(seed)
    right, groups = np.array([0.9, 0.7, 0.6, 0.3]), np.zeros(6, dtype=np.int64)
    skipped = np.array([False, False, False, True, False, False])
    found, tokens, likelihood = expected_rights(votes, starts, groups, skipped, right, np.ones((6, 4)), 1)
    expected, counted, total = np.zeros(4), np.zeros(4), 0.0
    for item in (1, 2, 4, 5):
        n = starts[item + 1] - starts[item]
        for d, t in enumerate(range(starts[item], starts[item + 1]), start=1):
            voters = np.flatnonzero(votes[t] >= 0)
            if len(voters) == 0:
                continue
            heads = [h for h in range(n + 1) if h != d]
            law = np.array(
                [np.prod([right[a] if votes[t, a] == h else (1 - right[a]) / (n - 1) for a in voters]) for h in heads]
            )
            total += np.log(law.mean())
            law /= law.sum()
            for a in voters:
                expected[a] += law[heads.index(votes[t, a])]
                counted[a] += 1
    np.testing.assert_allclose(found[0], expected)
    np.testing.assert_array_equal(tokens[0], counted)
    assert likelihood == pytest.approx(total)


def test_the_relation_of_an_edge_is_voted_by_those_who_have_it():
    votes = np.array([[0, 0, 0], [1, 1, 3], [1, 2, 2]], dtype=np.int16)
    relations = np.array([[0, 0, 0], [1, 2, 1], [1, 2, 0]], dtype=np.int16)
    weights = np.array([[1.0, 2.0, 3.0]])
    # token 2: of the two with head 1, the second weighs more; token 3 has head 4, which nobody voted for: all vote
    heads = np.array([0, 1, 4], dtype=np.int16)
    assert relation_votes(votes, relations, weights, np.array([0, 3]), heads, 3).tolist() == [0, 2, 0]


def test_equal_votes_for_relations_go_to_the_smaller_code():
    votes = np.zeros((1, 2), dtype=np.int16)
    relations = np.array([[2, 1]], dtype=np.int16)
    chosen = relation_votes(votes, relations, np.ones((1, 2)), np.array([0, 1]), np.zeros(1, np.int16), 3)
    assert chosen.tolist() == [1]


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


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("strength", [-1.0, 0.0, 1.7])
def test_the_share_of_common_heads_is_that_of_enumeration(n, strength):
    trees = every_tree(n)
    for center in trees[:: max(1, len(trees) // 7)]:
        common = (trees == center).sum(axis=1)
        law = np.exp(strength * common)
        expected = (law * common).sum() / law.sum() / n
        assert expected_share_right(center[None], np.array([strength]))[0] == pytest.approx(expected)


@pytest.mark.parametrize("error", [0.01, 0.3, 0.8])
def test_strengths_yield_the_error_rate_asked_for(error):
    rng = np.random.default_rng(0)
    for n in (2, 5, 30):
        starts = n * np.arange(9)
        trees = draw_trees(np.tile(np.arange(n), 8), starts, np.ones(8), rng).reshape(8, n)
        share = expected_share_right(trees, strength_for_error(trees, error))
        np.testing.assert_allclose(1.0 - share, error, rtol=1e-3)
