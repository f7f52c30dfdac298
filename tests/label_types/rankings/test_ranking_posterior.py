"""Pair probabilities against the sum over all orders."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.label_types.rankings.kernels import pair_posterior, pair_posterior_gibbs


def by_enumeration(margins, r, size):
    """Return P(i before j) of one row."""
    probability = np.full(len(margins), 0.5)
    if size < 2:
        return probability
    first, second = np.triu_indices(r, 1)
    exist = second < size
    positions = np.array(list(permutations(range(size))))
    before = positions[:, first[exist]] < positions[:, second[exist]]
    margin = margins[exist]
    score = -((before != (margin > 0)) * np.abs(margin)).sum(axis=1)
    weight = np.exp(score - score.max())
    probability[exist] = weight @ before / weight.sum()
    return probability


@given(seed=st.integers(0, 10_000), r=st.integers(1, 7), scale=st.sampled_from([0.0, 0.3, 3.0, 60.0, 1e3, 1e6]))
def test_posterior_equals_enumeration(seed, r, scale):
    rng = np.random.default_rng(seed)
    margins = scale * rng.normal(size=(5, r * (r - 1) // 2)) * rng.integers(2, size=(5, 1))
    sizes = rng.integers(0, r + 1, size=5)
    probability = pair_posterior(margins, r, sizes)
    for row in range(5):
        assert np.allclose(probability[row], by_enumeration(margins[row], r, sizes[row]), rtol=1e-9, atol=1e-9)


def test_more_rows_than_fit_side_by_side_equal_one_row_at_a_time():
    rng = np.random.default_rng(0)
    margins, sizes = rng.normal(size=(150, 28)), rng.integers(0, 9, size=150)
    together = pair_posterior(margins, 8, sizes)
    for row in range(150):
        alone = pair_posterior(margins[row : row + 1], 8, sizes[row : row + 1])
        assert np.allclose(together[row], alone[0], rtol=0, atol=1e-15)


@pytest.mark.parametrize("strength", [1e3, 1e5, 1e7])
def test_strong_contradictions_do_not_underflow(strength):
    # 0 > 1 > 2 > 0, equally strong: three orders contradict one pair, and each pair keeps its order in two of them
    probability = pair_posterior(strength * np.array([[1.0, -1.0, 1.0]]), 3, np.array([3]))
    assert probability[0] == pytest.approx([2 / 3, 1 / 3, 2 / 3])


def test_a_tie_splits_evenly_and_an_item_that_does_not_exist_is_ignored():
    assert np.all(pair_posterior(np.array([[0.0, 9.0, -4.0]]), 3, np.array([2])) == 0.5)


def test_no_rows_give_no_rows():
    assert pair_posterior(np.empty((0, 3)), 3, np.empty(0, dtype=np.int64)).shape == (0, 3)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_gibbs_converges_to_the_posterior(scale):
    # 4000 averaged sweeps leave an error of about .01 at these scales; .06 is far outside
    rng = np.random.default_rng(1)
    margins, sizes = scale * rng.normal(size=(6, 15)), np.array([6, 6, 6, 4, 1, 0])
    order = np.tile(np.arange(6), (6, 1))
    estimate = pair_posterior_gibbs(margins, 6, sizes, order, 4100, 100, 0, np.arange(len(margins)))
    assert np.abs(estimate - pair_posterior(margins, 6, sizes)).max() < 0.06
    assert all(sorted(row[:size]) == list(range(size)) for row, size in zip(order, sizes, strict=True))


def test_gibbs_stays_finite_for_huge_margins():
    margins = np.full((1, 10), 1e4)
    order = np.arange(5)[None, ::-1].copy()
    estimate = pair_posterior_gibbs(margins, 5, np.array([5]), order, 50, 10, 0, np.zeros(1, dtype=np.int64))
    assert np.all(estimate == 1.0)
    assert order.tolist() == [[0, 1, 2, 3, 4]]


def test_gibbs_repeats_with_the_seed():
    margins = np.random.default_rng(0).normal(size=(3, 10))
    runs = []
    for seed in (7, 7, 8):
        order = np.tile(np.arange(5), (3, 1))
        runs.append(pair_posterior_gibbs(margins, 5, np.full(3, 5), order, 20, 5, seed, np.arange(3)))
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
