"""Drawing and comparing rankings against the same thing written out."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.label_types.rankings.kernels import (
    bucket_counts,
    expected_discordance,
    margins_of,
    pair_agreements,
    pair_sums,
    sample_mallows,
)


def random_positions(seed, n, m, r):
    """Rankings with ties and unseen items."""
    rng = np.random.default_rng(seed)
    return rng.integers(-1, r, size=(n, m, r)).astype(np.int16), rng


def order_of_pairs(positions):
    """Return +1, -1 or 0 for every pair of items, as (n, m, pairs)."""
    first, second = np.triu_indices(positions.shape[-1], 1)
    one, two = positions[..., first].astype(int), positions[..., second].astype(int)
    return np.where((one >= 0) & (two >= 0), np.sign(two - one), 0)


@given(seed=st.integers(0, 10_000), n=st.integers(0, 5), m=st.integers(1, 5), r=st.integers(1, 14))
def test_pair_agreements_equal_counting_one_by_one(seed, n, m, r):
    positions, _ = random_positions(seed, n, m, r)
    order = order_of_pairs(positions)
    agreement, both = pair_agreements(positions)
    a, b = np.triu_indices(m, 1)
    assert np.array_equal(agreement, (order[:, a] * order[:, b]).sum(axis=2))
    assert np.array_equal(both, ((order[:, a] != 0) & (order[:, b] != 0)).sum(axis=2))


@given(seed=st.integers(0, 10_000), m=st.integers(1, 5), r=st.integers(1, 9))
def test_margins_equal_the_weighted_sum_of_orders(seed, m, r):
    positions, rng = random_positions(seed, 4, m, r)
    weights = rng.normal(size=(4, m))
    assert np.allclose(margins_of(positions, weights), np.einsum("nap,na->np", order_of_pairs(positions), weights))


def test_a_tie_and_an_unseen_item_add_nothing_to_the_margins():
    positions = np.array([[[0, 0, -1], [0, -1, 1]]], dtype=np.int16)
    assert margins_of(positions, np.array([[1.0, 3.0]])).tolist() == [[0.0, 3.0, 0.0]]


@pytest.mark.parametrize("weight", [0.0, 0.7, -0.7])
def test_votes_follow_the_mallows_law(weight):
    # n = 20000 draws of 24 orders; a deviation of five standard errors has chance 24 * 6e-7
    n = 20_000
    rng = np.random.default_rng(5)
    truth = np.array([2, 0, 3, 1])
    votes = sample_mallows(np.tile(truth, (n, 1)), np.ones((n, 4), dtype=bool), weight, rng.random((n, 4)))
    seen = Counter(map(tuple, votes.tolist()))
    first, second = np.triu_indices(4, 1)
    orders = np.array(list(permutations(range(4))))
    distance = (np.sign(orders[:, first] - orders[:, second]) != np.sign(truth[first] - truth[second])).sum(axis=1)
    share = np.exp(-weight * distance)
    share /= share.sum()
    for order, expected in zip(orders, share, strict=True):
        error = np.sqrt(expected * (1 - expected) / n)
        assert abs(seen[tuple(order.tolist())] / n - expected) < 5 * error


def test_votes_rank_the_seen_items_only():
    rng = np.random.default_rng(0)
    truth = np.argsort(rng.random((50, 6)), axis=1)
    truth[:10, 4:] = -1
    truth[:10, :4] = np.argsort(rng.random((10, 4)), axis=1)
    seen = rng.random((50, 6)) < 0.6
    votes = sample_mallows(truth, seen, 0.5, rng.random((50, 6)))
    for row in range(50):
        ranked = seen[row] & (truth[row] >= 0)
        assert np.all(votes[row, ~ranked] == -1)
        assert sorted(votes[row, ranked]) == list(range(ranked.sum()))


@pytest.mark.parametrize("uniform", [0.0, 0.5, np.nextafter(1.0, 0.0)])
@pytest.mark.parametrize("weight", [1e-300, 1e-9, 12.0, 700.0, -700.0])
def test_every_uniform_number_gives_a_ranking(weight, uniform):
    truth = np.arange(8)[None, :]
    votes = sample_mallows(truth, np.ones((1, 8), dtype=bool), weight, np.full((1, 8), uniform))
    assert sorted(votes[0]) == list(range(8))


def test_strong_sources_copy_or_reverse_the_truth():
    rng = np.random.default_rng(0)
    truth = np.argsort(rng.random((20, 7)), axis=1)
    everything = np.ones((20, 7), dtype=bool)
    assert np.array_equal(sample_mallows(truth, everything, 600.0, rng.random((20, 7))), truth)
    assert np.array_equal(sample_mallows(truth, everything, -600.0, rng.random((20, 7))), 6 - truth)


@given(seed=st.integers(0, 10_000), m=st.integers(2, 5), r=st.integers(2, 13))
def test_sums_from_vote_to_vote_are_those_of_all_pairs(seed, m, r):
    rng = np.random.default_rng(seed)
    votes = rng.integers(-1, r, size=(30, m, r)).astype(np.int16)
    observed = rng.random((30, m)) < 0.6
    votes[~observed] = -1
    sign, common = (part.astype(np.int64) for part in pair_agreements(votes))
    found = pair_sums(votes, observed, np.arange(m)[None], m)
    left, right = np.triu_indices(m, 1)
    expected = [sign, common, sign * sign, sign * common, common * common, observed[:, left] & observed[:, right]]
    for one, parts in zip(found, expected, strict=True):
        assert np.array_equal(one[left, right], parts.sum(axis=0))
        assert np.array_equal(one, one.T)
    assert np.array_equal(np.diag(found[5]), observed.sum(axis=0))


def test_buckets_and_expected_discordances_are_counted_by_hand():
    votes = np.array([[[0, 1, 1, -1], [1, 0, 2, 3]]], dtype=np.int16)
    observed, who = np.ones((1, 2), dtype=bool), np.arange(2)[None]
    # one vote over three items, with buckets of one and of two; one over four items, with buckets of one
    assert bucket_counts(votes, observed, who, 2, 4).tolist() == [[0, -1, -1, 1, 0], [0, -4, 0, 0, 1]]
    before = np.array([[0.9, 0.8, 0.7, 0.6, 0.5, 0.4]])  # of the pairs 01 02 03 12 13 23
    assert expected_discordance(votes, before)[0] == pytest.approx([0.1 + 0.2, 0.9 + 0.2 + 0.3 + 0.4 + 0.5 + 0.6])
