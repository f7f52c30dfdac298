"""Compiled loops, and NumPy for small tables, against the same thing written out."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from consilience.label_types.classes import law
from consilience.label_types.classes.kernels import (
    beliefs,
    beliefs_from_few,
    count_agreements,
    count_few_pairs,
    count_pairs,
    expected_votes,
    pattern_numbers,
    threshold_angles,
    threshold_covariances,
)
from consilience.label_types.vote_correlation import discount_correlated


def table(seed, n, m, k):
    rng = np.random.default_rng(seed)
    observed = rng.random((n, m)) < 0.7
    observed[: min(n, 2)] = False
    codes = rng.integers(k, size=(n, m)).astype(np.int8)
    return codes, observed, rng


@given(seed=st.integers(0, 10_000), n=st.integers(1, 150), m=st.integers(1, 4), k=st.integers(2, 4))
def test_pair_counts_equal_counting_one_by_one(seed, n, m, k):
    codes, observed, _ = table(seed, n, m, k)
    expected = np.zeros((m * k, m * k), dtype=int)
    for i, a, b in product(range(n), range(m), range(m)):
        if observed[i, a] and observed[i, b]:
            expected[a * k + codes[i, a], b * k + codes[i, b]] += 1
    assert np.array_equal(count_pairs(codes, observed, k), expected)
    assert np.array_equal(count_few_pairs(codes, observed, k), expected)
    assert np.array_equal(law.count_small_pairs(codes, observed, k), expected)
    cast, agree, both = count_agreements(codes, observed, k)
    by_class = expected.reshape(m, k, m, k)
    assert np.array_equal(both, by_class.sum(axis=(1, 3)))
    assert np.array_equal(agree, np.einsum("avbv->ab", by_class))
    assert np.array_equal(cast, np.diag(expected).reshape(m, k))


def beliefs_written_out(codes, observed, scores, offset, correlation):
    result = np.empty((len(codes), len(offset)))
    for i in range(len(codes)):
        total = offset.copy()
        for a in range(codes.shape[1]):
            if observed[i, a]:
                load = 1 + sum(correlation[a, b] for b in range(codes.shape[1]) if observed[i, b])
                total = total + scores[a, codes[i, a]] / load
            else:
                total = total + scores[a, -1]
        weight = np.exp(total - total.max())
        result[i] = weight / weight.sum()
    return result


@given(seed=st.integers(0, 10_000), m=st.integers(2, 6), k=st.integers(2, 4), shared=st.booleans())
def test_beliefs_equal_bayes_rule_written_out(seed, m, k, shared):
    codes, observed, rng = table(seed, 20, m, k)
    scores, offset = rng.normal(size=(m, k + 1, k)), rng.normal(size=k)
    correlation = np.zeros((m, m))
    if shared:
        correlation[0, 1] = correlation[1, 0] = 0.6
    expected = beliefs_written_out(codes, observed, scores, offset, correlation)
    codes[~observed] = rng.integers(-128, 127, size=int((~observed).sum()))  # such cells hold anything
    flat = scores.reshape(-1, k)
    shares = discount_correlated(observed, correlation) if shared else np.empty((0, 0))
    assert np.allclose(beliefs(codes, observed, flat, offset, shares), expected)
    assert np.allclose(beliefs_from_few(codes, observed, flat, offset, correlation), expected)
    assert np.allclose(law.small_beliefs(codes, observed, flat, offset, shares), expected)
    found = [expected_votes(codes, observed, expected, few) for few in (False, True)]
    for counts in (*found, law.small_expected_votes(codes, observed, expected)):
        for a, v in product(range(m), range(k)):
            rows = observed[:, a] & (codes[:, a] == v)
            assert np.allclose(counts[a, v], expected[rows].sum(axis=0))


def test_patterns_are_numbered_like_digits():
    codes = np.array([[0, 1], [1, 0], [1, 1]], dtype=np.int8)
    observed = np.array([[True, True], [False, True], [False, False]])
    # digits 0 (abstains), 1 and 2: 1 * 3 + 2, 0 * 3 + 1, 0
    assert pattern_numbers(codes, observed, 2).tolist() == [5, 1, 0]


@pytest.mark.parametrize(("first", "second", "correlation"), [(0.0, 0.0, 0.5), (-1.0, 0.5, 0.7), (1.2, 1.2, -0.4)])
def test_covariance_of_thresholded_scores_equals_the_bivariate_normal(first, second, correlation):
    both = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]]).cdf([first, second])
    expected = both - norm.cdf(first) * norm.cdf(second)
    angle = np.arcsin([correlation])
    found = threshold_covariances(angle, np.array([first]), np.array([second]))
    assert found == pytest.approx([expected], abs=1e-5)
    back, _ = threshold_angles(found, np.array([first]), np.array([second]), 1.5)
    assert back == pytest.approx(angle, abs=1e-4)
    # covariances beyond reach stop at the largest angle
    angle, _ = threshold_angles(np.array([0.9, -0.9]), np.zeros(2), np.zeros(2), 1.5)
    assert angle == pytest.approx([1.5, -1.5], abs=1e-3)
