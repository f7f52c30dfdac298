"""Moments of the Mallows law against sums over all orders, and at the ends of their range."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.solvers.mallows import (
    DistanceCurve,
    bucket_histogram,
    distance_variance,
    hypergeometric_retention,
    log_normaliser,
    mean_distance,
    pair_retention,
    pair_retention_slope,
)

THETAS = [-3.0, -0.4, -1e-3, 0.0, 1e-9, 0.02, 0.3, 1.0, 4.0]


def all_votes(size):
    """Return the positions of all votes and their distance to the identity."""
    votes = np.array(list(permutations(range(size))))
    first, second = np.triu_indices(size, 1)
    return votes, (votes[:, first] > votes[:, second]).sum(axis=1)


def law(theta, size):
    votes, distance = all_votes(size)
    weight = np.exp(-theta * distance)
    return votes, distance, weight / weight.sum(), np.log(weight.sum())


@pytest.mark.parametrize("theta", THETAS)
def test_retention_equals_enumeration(theta):
    votes, _, share, _ = law(theta, 5)
    retention = pair_retention(np.array([theta]), 4)[0]
    for i, j in combinations(range(5), 2):
        assert retention[j - i - 1] == pytest.approx(share @ np.sign(votes[:, j] - votes[:, i]), abs=1e-12)


@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize("size", [0, 1, 2, 5, 6])
def test_distance_moments_equal_enumeration(theta, size):
    _, distance, share, log_total = law(theta, size)
    mean = share @ distance
    assert mean_distance(theta, size) == pytest.approx(mean, abs=1e-12)
    assert distance_variance(theta, size) == pytest.approx(share @ (distance - mean) ** 2, abs=1e-12)
    assert log_normaliser(theta, size) == pytest.approx(log_total, abs=1e-12)


@given(theta=st.floats(-20, 20), gaps=st.integers(1, 60))
def test_retention_is_odd_and_bounded_and_grows_with_the_gap(theta, gaps):
    plus, minus = pair_retention(np.array([theta, -theta]), gaps)
    assert np.array_equal(plus, -minus)
    assert np.all(np.abs(plus) <= 1.0)
    assert np.all(np.diff(np.abs(plus)) >= -1e-12)


@given(theta=st.floats(-6, 6), gaps=st.integers(1, 30))
def test_slope_is_the_derivative(theta, gaps):
    step = 1e-5
    difference = np.diff(pair_retention(np.array([theta - step, theta + step]), gaps), axis=0)[0] / (2 * step)
    # 1e-10 of relative rounding in each value, 1e-10 * gaps^3 of curvature
    assert np.allclose(pair_retention_slope(np.array([theta]), gaps)[0], difference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("gap", [1, 2, 7, 40])
def test_series_and_closed_form_meet(gap):
    below, above = np.nextafter(1.0 / (gap + 1), 0), 1.0 / (gap + 1) * (1 + 1e-14)
    for function in (pair_retention, pair_retention_slope):
        left, right = function(np.array([below, above]), gap)[:, -1]
        assert left == pytest.approx(right, rel=1e-11)


def test_retention_near_zero_is_linear_to_full_precision():
    gap = np.arange(1, 50)
    for theta in (1e-300, 1e-12, 1e-8):
        assert np.allclose(pair_retention(np.array([theta]), 49)[0], theta * (2 * gap + 1) / 6, rtol=1e-10)


@pytest.mark.parametrize("theta", [-700.0, -50.0, 50.0, 700.0])
def test_large_weights_stay_finite(theta):
    assert np.allclose(pair_retention(np.array([theta]), 60), np.sign(theta))
    assert np.allclose(pair_retention_slope(np.array([theta]), 60), 0.0)
    pairs = 0.0 if theta > 0 else 60 * 59 / 2
    assert mean_distance(theta, 60) == pytest.approx(pairs)
    assert distance_variance(theta, 60) == pytest.approx(0.0, abs=1e-12)
    assert log_normaliser(theta, 60) == pytest.approx(-theta * pairs, abs=1e-12)


def test_tiny_mean_distances_keep_their_digits():
    # at theta = 30 only the four swaps of neighbours matter
    assert mean_distance(30.0, 5) == pytest.approx(4 * np.exp(-30.0), rel=1e-9)


def test_weights_and_sizes_broadcast():
    theta, size = np.array([[0.1], [0.9]]), np.array([2, 3, 7])
    for function in (mean_distance, distance_variance, log_normaliser):
        table = function(theta, size)
        assert table.shape == (2, 3)
        assert table[1, 2] == pytest.approx(float(function(0.9, 7)))


@pytest.mark.parametrize("r", [2, 3, 6])
def test_retention_in_random_subsets_equals_averaging_over_them(r):
    retention = pair_retention(np.array([0.4, -1.1]), r - 1)
    result = hypergeometric_retention(retention, r)
    assert result.shape == (2, r + 1, r - 1)
    assert np.all(result[:, :2] == 0)
    for size in range(2, r + 1):
        for gap in range(1, r):
            subsets = [s for s in combinations(range(r), size) if 0 in s and gap in s]
            inner = [s.index(gap) - s.index(0) for s in subsets]
            expected = retention[:, [k - 1 for k in inner]].mean(axis=1)
            assert np.allclose(result[:, size, gap - 1], expected)


def test_gap_law_is_exact_for_many_items():
    counts = hypergeometric_retention(np.eye(39), 40)  # source j: retention 1 at gap j + 1 only
    for size, gap in ((2, 5), (11, 20), (40, 39)):
        for inner in (1, 3, gap):
            j = inner - 1
            ways = comb(gap - 1, j) * comb(39 - gap, size - 2 - j) if size - 2 - j >= 0 else 0
            expected = float(Fraction(ways, comb(38, size - 2)))
            assert counts[inner - 1, size, gap - 1] == pytest.approx(expected, rel=1e-11, abs=1e-300)


@pytest.mark.parametrize("buckets", [[1, 1, 3], [2, 2], [1, 2, 1, 1], [4], [1, 1, 1]])
@pytest.mark.parametrize("theta", [-0.6, 0.0, 0.5, 2.0])
def test_bucket_orders_equal_enumeration(buckets, theta):
    # every distinct bucket order of the items counts once; pairs inside a bucket are not compared
    size = sum(buckets)
    label = np.repeat(np.arange(len(buckets)), buckets)
    orders = np.array(sorted(set(permutations(label))))
    first, second = np.triu_indices(size, 1)
    distance = (orders[:, first] > orders[:, second]).sum(axis=1)
    weight = np.exp(-theta * distance)
    curve = DistanceCurve.of(bucket_histogram(buckets, 6))
    assert curve.log_normaliser(theta) == pytest.approx(np.log(weight.sum()), abs=1e-12)
    mean = weight @ distance / weight.sum()
    assert curve.mean(theta) == pytest.approx(mean, abs=1e-12)
    assert curve.variance(theta) == pytest.approx(weight @ (distance - mean) ** 2 / weight.sum(), abs=1e-12)


def test_curve_adds_up_votes_of_different_sizes():
    curve = DistanceCurve.of([5, 4, 3, 2, 0, 7])
    theta = np.array([-0.3, 0.0, 1.2])
    assert curve.total_pairs == 3 * 1 + 2 * 3 + 7 * 10
    for method, function in (
        (curve.mean, mean_distance),
        (curve.variance, distance_variance),
        (curve.log_normaliser, log_normaliser),
    ):
        assert np.allclose(method(theta), 3 * function(theta, 2) + 2 * function(theta, 3) + 7 * function(theta, 5))


@given(theta=st.floats(-11.5, 11.5), r=st.integers(2, 30), seed=st.integers(0, 1000))
def test_weight_from_mean_inverts_the_mean(theta, r, seed):
    histogram = np.random.default_rng(seed).integers(20, size=r + 1)
    histogram[-1] += 1
    curve = DistanceCurve.of(histogram)
    found = curve.weight_from_mean(curve.mean(theta))
    # near total reversal the mean itself is rounded to 1e-16 of the pairs
    tolerance = 1e-9 + 1e-14 * curve.total_pairs / curve.variance(theta)
    assert found == pytest.approx(theta, abs=float(tolerance))


def test_weight_from_mean_is_safe_at_both_ends():
    curve = DistanceCurve.of([0, 0, 0, 10])
    totals = np.array([-5.0, 0.0, 15.0, 30.0, 1e9])
    assert curve.weight_from_mean(totals) == pytest.approx([12.0, 12.0, 0.0, -12.0, -12.0], abs=1e-9)
    assert curve.weight_from_mean(0.0, limit=3.0) == pytest.approx(3.0)


def test_votes_without_pairs_have_no_weight():
    assert DistanceCurve.of([3, 8, 0, 0]).weight_from_mean(0.0) == 0.0
    assert DistanceCurve.of(bucket_histogram([4], 4)).weight_from_mean([0.0, 1.0]).tolist() == [0.0, 0.0]
