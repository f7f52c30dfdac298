"""Comparing and adding up votes, and pair probabilities, against the same thing written out."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.label_types.rankings import orders
from consilience.label_types.rankings.kemeny import margins_of
from consilience.label_types.rankings.kernels import order_exactly, pair_posterior_gibbs, sum_orders
from consilience.label_types.rankings.law import bucket_counts, compare_votes, pair_probabilities, pair_sums
from consilience.label_types.rankings.orders import best_orders, pair_posterior


def order_of_pairs(positions):
    """Return +1, -1 or 0 for every pair of items, as (n, m, pairs)."""
    first, second = np.triu_indices(positions.shape[-1], 1)
    one, two = positions[..., first].astype(int), positions[..., second].astype(int)
    return np.where((one >= 0) & (two >= 0), np.sign(two - one), 0)


@given(seed=st.integers(0, 10_000), m=st.integers(1, 5), r=st.integers(1, 20))
def test_votes_are_compared_and_added_up_as_one_by_one(seed, m, r):
    rng = np.random.default_rng(seed)
    votes = rng.integers(-1, r, size=(12, m, r)).astype(np.int16)  # with ties and unseen items
    observed, weights = rng.random((12, m)) < 0.6, rng.normal(size=(12, m))
    order = order_of_pairs(votes)
    sign, common = compare_votes(votes, order[:, 0].astype(float))
    assert np.array_equal(sign, (order * order[:, :1]).sum(axis=2))
    assert np.array_equal(common, np.abs(order * order[:, :1]).sum(axis=2))
    assert np.allclose(margins_of(votes, weights), np.einsum("nap,na->np", order, weights))
    shared = order[:, :, None] * order[:, None]
    both = observed[:, :, None] & observed[:, None]
    sign, common = (np.where(both, part.sum(axis=3), 0) for part in (shared, np.abs(shared)))
    expected = [sign, common, sign * sign, sign * common, common * common]
    found = pair_sums(votes, observed)
    apart = ~np.eye(m, dtype=bool)
    for one, parts in zip(found, expected, strict=True):
        assert np.array_equal(one[apart], parts.sum(axis=0)[apart])


def test_margins_buckets_and_expected_discordances_by_hand():
    tied = np.array([[[0, 0, -1], [0, -1, 1]]], dtype=np.int16)
    assert margins_of(tied, np.array([[1.0, 3.0]])).tolist() == [[0.0, 3.0, 0.0]]
    votes = np.array([[[0, 1, 1, -1], [1, 0, 2, 3]]], dtype=np.int16)
    # one vote over three items, with buckets of one and of two; one over four items, with buckets of one
    assert bucket_counts(votes, 4).tolist() == [[0, -1, -1, 1, 0], [0, -4, 0, 0, 1]]
    before = np.array([[0.9, 0.8, 0.7, 0.6, 0.5, 0.4]])  # of the pairs 01 02 03 12 13 23
    lost = (np.array([2, 6]) - compare_votes(votes, 2 * before - 1)[0][0]) / 2  # of the pairs that each vote orders
    assert lost == pytest.approx([0.1 + 0.2, 0.9 + 0.2 + 0.3 + 0.4 + 0.5 + 0.6])


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
    probability = pair_probabilities(margins, r, sizes, 10)
    for row in range(5):
        assert np.allclose(probability[row], by_enumeration(margins[row], r, sizes[row]), rtol=1e-9, atol=1e-9)


@given(seed=st.integers(0, 10_000), size=st.integers(2, 9))
def test_few_rows_and_many_have_the_same_posterior_and_the_same_orders(seed, size):
    rng = np.random.default_rng(seed)
    margins = rng.normal(size=(35, size * (size - 1) // 2)) * rng.integers(4, size=(35, 1))
    compiled, mass = sum_orders(margins, size)  # more rows than fit side by side
    few = np.concatenate([pair_posterior(margins[:1], size), pair_posterior(margins[1:], size)])
    assert (mass > orders.TRUSTED).all()
    assert np.allclose(few, compiled, rtol=0, atol=1e-12)
    price = np.maximum(rng.integers(-3, 4, size=(35, size, size)) / 3.0, 0.0)  # many ties
    for found, expected in zip(best_orders(price), order_exactly(price), strict=True):
        assert np.allclose(found, expected, rtol=0, atol=1e-12)


def test_many_rows_are_compiled_and_none_is_nothing(monkeypatch):
    margins = np.random.default_rng(0).normal(size=(40, 10)) * np.linspace(0.1, 500.0, 40)[:, None]
    few = pair_posterior(margins, 5)
    monkeypatch.setattr(orders, "FEW_TERMS", 1)
    assert np.allclose(pair_posterior(margins, 5), few, rtol=0, atol=1e-12)
    assert pair_posterior(np.empty((0, 3)), 3).shape == (0, 3)


@pytest.mark.parametrize("strength", [1e3, 1e5, 1e7])
def test_strong_contradictions_do_not_underflow(strength):
    # 0 > 1 > 2 > 0, equally strong: three orders contradict one pair, and each pair keeps its order in two of them
    probability = pair_probabilities(strength * np.array([[1.0, -1.0, 1.0]]), 3, np.array([3]), 10)
    assert probability[0] == pytest.approx([2 / 3, 1 / 3, 2 / 3])


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_gibbs_converges_to_the_posterior_and_repeats_with_its_keys(scale):
    # 4000 averaged sweeps leave an error of about .01 at these scales; .06 is far outside
    margins = scale * np.random.default_rng(1).normal(size=(6, 15))
    runs = []
    for keys in (np.arange(6), np.arange(6), np.arange(6) + 6):
        order = np.tile(np.arange(6), (6, 1))
        runs.append(pair_posterior_gibbs(margins, 6, order, 4100, 100, keys))
        assert (np.sort(order, axis=1) == np.arange(6)).all()
    assert np.abs(runs[0] - pair_posterior(margins, 6)).max() < 0.06
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_gibbs_stays_finite_for_huge_margins():
    order = np.arange(5)[None, ::-1].copy()
    estimate = pair_posterior_gibbs(np.full((1, 10), 1e4), 5, order, 50, 10, np.zeros(1, dtype=np.int64))
    assert np.all(estimate == 1.0)
    assert order.tolist() == [[0, 1, 2, 3, 4]]
