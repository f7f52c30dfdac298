"""Compiled loops against the same thing written out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.kernels.classes import (
    accuracy_scores,
    agreement_of_rows,
    count_pairs,
    expectation_round,
    pattern_numbers,
    posterior_rows,
)
from consilience.kernels.dense_classes import dense_posterior, dense_round
from consilience.kernels.sparse_classes import count_agreements, count_few_pairs, score_products_of_few


def table(seed, n, m, k):
    rng = np.random.default_rng(seed)
    return rng.integers(k, size=(n, m)).astype(np.int8), rng.random((n, m)) < 0.7, rng


@given(seed=st.integers(0, 10_000), n=st.integers(1, 150), m=st.integers(1, 4), k=st.integers(2, 4))
def test_pair_counts_equal_counting_one_by_one(seed, n, m, k):
    codes, observed, rng = table(seed, n, m, k)
    groups = rng.integers(3, size=n)
    expected = np.zeros((3, m * k, m * k), dtype=int)
    for i, a, b in product(range(n), range(m), range(m)):
        if observed[i, a] and observed[i, b]:
            expected[groups[i], a * k + codes[i, a], b * k + codes[i, b]] += 1
    assert np.array_equal(count_pairs(codes, observed, groups, 3, k), expected)


def test_row_agreement_by_hand():
    codes = np.array([[0, 0, 1], [1, 1, 1], [0, 1, 0]], dtype=np.int8)
    observed = np.array([[True, True, True], [True, True, False], [True, False, False]])
    # row 0: one of three pairs agrees; row 1: its one pair agrees; row 2 has no pair
    total, rows = agreement_of_rows(codes, observed)
    assert total == pytest.approx(1 / 3 + 1)
    assert rows == 2


def posterior_written_out(codes, observed, scores, offset, correlation):
    n, m = codes.shape
    result = np.empty((n, len(offset)))
    for i in range(n):
        total = offset.copy()
        for a in range(m):
            if observed[i, a]:
                load = 1 + sum(correlation[a, b] for b in range(m) if observed[i, b])
                total = total + scores[a, codes[i, a]] / load
            else:
                total = total + scores[a, -1]
        weight = np.exp(total - total.max())
        result[i] = weight / weight.sum()
    return result


@given(seed=st.integers(0, 10_000), shared=st.booleans())
def test_posterior_equals_bayes_rule_written_out(seed, shared):
    codes, observed, rng = table(seed, 20, 4, 3)
    scores, offset = rng.normal(size=(4, 4, 3)), rng.normal(size=3)
    correlation = np.zeros((4, 4))
    if shared:
        correlation[0, 1] = correlation[1, 0] = 0.6
    expected = posterior_written_out(codes, observed, scores, offset, correlation)
    assert np.allclose(posterior_rows(codes, observed, scores, offset, correlation), expected)


def test_expectation_round_sums_the_posterior():
    codes, observed, rng = table(3, 50, 3, 2)
    scores, offset, none = rng.normal(size=(3, 3, 2)), np.log([0.3, 0.7]), np.zeros((3, 3))
    known = np.full(50, -1)
    known[:5] = [0, 1, 1, 0, 1]
    posterior = posterior_rows(codes, observed, scores, offset, none)
    posterior[:5] = np.eye(2)[known[:5]]
    posterior[~observed.any(axis=1)] = 0
    counts, classes, _ = expectation_round(codes, observed, scores, offset, none, known)
    assert np.allclose(classes, posterior.sum(axis=0))
    for a, v in product(range(3), range(2)):
        rows = observed[:, a] & (codes[:, a] == v)
        assert np.allclose(counts[a, v], posterior[rows].sum(axis=0))


@given(seed=st.integers(0, 10_000), m=st.integers(1, 9), k=st.integers(2, 4))
def test_rounds_over_all_cells_equal_those_from_vote_to_vote(seed, m, k):
    codes, observed, rng = table(seed, 40, m, k)
    observed[:3] = False
    codes[~observed] = rng.integers(-128, 127, size=int((~observed).sum()))  # such cells hold anything
    scores, offset, none = rng.normal(size=(m, k + 1, k)), rng.normal(size=k), np.zeros((m, m))
    known = np.where(rng.random(40) < 0.2, rng.integers(k, size=40), -1)
    flat = scores.reshape(-1, k)
    expected = posterior_rows(codes, observed, scores, offset, none)
    assert np.allclose(dense_posterior(codes, observed, flat, offset), expected, rtol=1e-12)
    counts, classes, likelihood = expectation_round(codes, observed, scores, offset, none, known)
    found = dense_round(codes, observed, flat, offset, known)
    assert np.allclose(found[0].reshape(m, k + 1, k)[:, :k], counts, rtol=1e-12)
    assert np.allclose(found[1], classes, rtol=1e-12)
    assert found[2] == pytest.approx(likelihood, rel=1e-12)


def test_log_likelihood_is_the_log_of_the_summed_joint():
    codes, observed = np.array([[0, 1]], dtype=np.int8), np.array([[True, True]])
    rates = np.array([[[0.8, 0.1], [0.2, 0.9]], [[0.7, 0.4], [0.3, 0.6]]])
    scores = np.zeros((2, 3, 2))
    scores[:, :2] = np.log(rates)
    joint = 0.5 * 0.8 * 0.3 + 0.5 * 0.1 * 0.6
    _, _, value = expectation_round(codes, observed, scores, np.log([0.5, 0.5]), np.zeros((2, 2)), np.array([-1]))
    assert value == pytest.approx(np.log(joint))


@given(seed=st.integers(0, 10_000), m=st.integers(1, 5), k=st.integers(2, 4))
def test_counting_vote_by_vote_gives_the_same_counts(seed, m, k):
    codes, observed, rng = table(seed, 60, m, k)
    groups = rng.integers(3, size=60)
    pairs = count_few_pairs(codes, observed, groups, 3, k)
    assert np.array_equal(pairs, count_pairs(codes, observed, groups, 3, k))
    cast, agree, both = count_agreements(codes, observed, k)
    by_class = pairs.sum(axis=0).reshape(m, k, m, k)
    assert np.array_equal(both, by_class.sum(axis=(1, 3)))
    assert np.array_equal(agree, np.einsum("avbv->ab", by_class))
    assert np.array_equal(cast, np.diag(pairs.sum(axis=0)).reshape(m, k))


@given(seed=st.integers(0, 10_000))
def test_products_of_scores_are_the_same_vote_by_vote_and_by_matrices(seed):
    codes, observed, rng = table(seed, 30, 4, 3)
    posterior, accuracy = rng.dirichlet(np.ones(3), size=30), rng.uniform(0.2, 0.9, 4)
    scores = np.empty((30, 4))
    accuracy_scores(codes, observed, posterior, accuracy, scores)
    right = np.take_along_axis(posterior, codes.astype(int), axis=1)
    assert scores == pytest.approx(np.where(observed, (right - accuracy) / (accuracy * (1 - accuracy)), 0.0))
    assert score_products_of_few(codes, observed, posterior, accuracy) == pytest.approx(scores.T @ scores)


def test_patterns_are_numbered_like_digits():
    codes = np.array([[0, 1], [1, 0], [1, 1]], dtype=np.int8)
    observed = np.array([[True, True], [False, True], [False, False]])
    # digits 0 (abstains), 1 and 2: 1 * 3 + 2, 0 * 3 + 1, 0
    assert pattern_numbers(codes, observed, 2).tolist() == [5, 1, 0]
