"""Moments and draws of the Mallows law, against sums over all orders, and at the ends of their range."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.label_types.rankings.mallows import RetentionCurve, pair_retention, pairs_at_gaps, sample_mallows

THETAS = [-3.0, -0.4, -1e-3, 0.0, 1e-9, 0.02, 0.3, 1.0, 4.0]


def law(theta, size):
    """Return the positions of all votes and their probabilities around the identity."""
    votes = np.array(list(permutations(range(size))))
    first, second = np.triu_indices(size, 1)
    weight = np.exp(-theta * (votes[:, first] > votes[:, second]).sum(axis=1))
    return votes, weight / weight.sum()


@pytest.mark.parametrize("theta", THETAS)
def test_retention_and_quality_equal_enumeration(theta):
    votes, share = law(theta, 5)
    retention = pair_retention(np.array([theta]), 4)[0]
    kept = {(i, j): share @ np.sign(votes[:, j] - votes[:, i]) for i, j in combinations(range(5), 2)}
    for (i, j), value in kept.items():
        assert retention[j - i - 1] == pytest.approx(value, abs=1e-12)
    assert RetentionCurve.of_items(5).quality(theta) == pytest.approx(np.mean(list(kept.values())), abs=1e-12)


@pytest.mark.parametrize("r", [3, 4])
def test_agreement_of_two_sources_equals_enumeration(r):
    one, two = law(0.4, r), law(1.3, r)
    first, second = np.triu_indices(r, 1)
    signs = [np.sign(votes[:, second] - votes[:, first]) for votes, _ in (one, two)]
    expected = one[1] @ (signs[0] @ signs[1].T / len(first)) @ two[1]
    assert RetentionCurve.of_items(r).agreement(np.array([0.4, 1.3]))[0, 1] == pytest.approx(expected)


@given(theta=st.floats(-20, 20), gaps=st.integers(1, 60))
def test_retention_is_odd_and_bounded_and_grows_with_the_gap_and_has_this_slope(theta, gaps):
    plus, minus = pair_retention(np.array([theta, -theta]), gaps)
    assert np.array_equal(plus, -minus)
    assert np.all(np.abs(plus) <= 1.0)
    assert np.all(np.diff(np.abs(plus)) >= -1e-12)
    step = 1e-5
    difference = np.diff(pair_retention(np.array([theta - step, theta + step]), gaps), axis=0)[0] / (2 * step)
    # 1e-10 of relative rounding in each value, 1e-10 * gaps^3 of curvature
    assert np.allclose(pair_retention(np.array([theta]), gaps, slope=True)[0], difference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("gap", [1, 2, 7, 40])
def test_series_and_closed_form_meet(gap):
    below, above = np.nextafter(1.0 / (gap + 1), 0), 1.0 / (gap + 1) * (1 + 1e-14)
    for slope in (False, True):
        left, right = pair_retention(np.array([below, above]), gap, slope=slope)[:, -1]
        assert left == pytest.approx(right, rel=1e-11)


def test_retention_is_precise_near_zero_and_finite_for_large_weights():
    gap = np.arange(1, 50)
    for theta in (1e-300, 1e-12, 1e-8):
        assert np.allclose(pair_retention(np.array([theta]), 49)[0], theta * (2 * gap + 1) / 6, rtol=1e-10)
    for theta in (-700.0, -50.0, 50.0, 700.0):
        assert np.allclose(pair_retention(np.array([theta]), 60), np.sign(theta))
        assert np.allclose(pair_retention(np.array([theta]), 60, slope=True), 0.0)


@pytest.mark.parametrize("buckets", [[1, 1, 3], [2, 2], [1, 2, 1, 1], [4], [1, 1, 1]])
@pytest.mark.parametrize("theta", [-0.6, 0.0, 0.5, 2.0])
def test_bucket_orders_equal_enumeration(buckets, theta):
    # every distinct bucket order of the items counts once; pairs inside a bucket are not compared
    size = sum(buckets)
    orders = np.array(sorted(set(permutations(np.repeat(np.arange(len(buckets)), buckets)))))
    first, second = np.triu_indices(size, 1)
    distance = (orders[:, first] > orders[:, second]).sum(axis=1)
    weight = np.exp(-theta * distance)
    histogram = -np.bincount(buckets, minlength=7)
    histogram[size] += 1
    pairs = pairs_at_gaps(histogram)
    if buckets == [1, 1, 3]:  # the best 2 of 5
        assert pairs.tolist() == [2, 2, 2, 1, 0]
    expected = ((1.0 - pair_retention(theta, len(pairs))) / 2.0) @ pairs
    assert expected == pytest.approx(weight @ distance / weight.sum(), abs=1e-12)


@given(theta=st.floats(-7.5, 7.5), r=st.integers(2, 30), seed=st.integers(0, 1000))
def test_the_weight_of_a_quality_inverts_the_quality(theta, r, seed):
    histogram = np.random.default_rng(seed).integers(20, size=r + 1)
    histogram[-1] += 1
    curve = RetentionCurve.of_pairs(pairs_at_gaps(histogram))
    # qualities near one are rounded to 1e-16
    assert curve.weight(curve.quality(theta)) == pytest.approx(theta, abs=float(1e-9 + 1e-14 / curve.slope(theta)))


def test_weights_are_safe_at_both_ends_and_without_pairs():
    curve = RetentionCurve.of_items(3)
    assert curve.weight(np.array([2.0, 1.0, 0.0, -1.0, -9.0])) == pytest.approx([12, 12, 0, -12, -12], abs=1e-9)
    assert RetentionCurve.of_pairs(np.zeros(4)).quality(np.array([0.0, 1.0])) == pytest.approx([0.0, np.tanh(0.5)])


# --- draws -----------------------------------------------------------------------------------------------


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


def test_votes_rank_the_seen_items_only_and_strong_ones_copy_or_reverse_the_truth():
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
    everything = np.ones((40, 6), dtype=bool)
    assert np.array_equal(sample_mallows(truth[10:], everything, 600.0, rng.random((40, 6))), truth[10:])
    assert np.array_equal(sample_mallows(truth[10:], everything, -600.0, rng.random((40, 6))), 5 - truth[10:])


@pytest.mark.parametrize("uniform", [0.0, 0.5, np.nextafter(1.0, 0.0)])
@pytest.mark.parametrize("weight", [1e-300, 1e-9, 12.0, 700.0, -700.0])
def test_every_uniform_number_gives_a_ranking(weight, uniform):
    truth = np.arange(8)[None, :]
    votes = sample_mallows(truth, np.ones((1, 8), dtype=bool), weight, np.full((1, 8), uniform))
    assert sorted(votes[0]) == list(range(8))
