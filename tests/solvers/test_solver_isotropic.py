"""Algorithm 4: `consilience.solvers.isotropic`."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.solvers.isotropic import isotropic_costs


def everything(count):
    return np.ones((count, count), dtype=bool)


def noisy_pair_cost(rng, costs):
    noise = rng.normal(scale=0.1, size=(len(costs), len(costs)))
    return costs[:, None] + costs + noise + noise.T


def average_over_triplets(pair_cost):
    count = len(pair_cost)
    return np.array(
        [
            np.mean(
                [
                    (pair_cost[a, b] + pair_cost[a, c] - pair_cost[b, c]) / 2
                    for b, c in itertools.combinations(set(range(count)) - {a}, 2)
                ]
            )
            for a in range(count)
        ]
    )


def test_three_sources_worked_by_hand():
    pair_cost = np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    estimate = isotropic_costs(pair_cost, everything(3))
    np.testing.assert_allclose(estimate.value, [1.0, 2.0, 3.0])
    assert estimate.identified.all()


@pytest.mark.parametrize("count", [3, 4, 7])
def test_equals_the_average_over_all_triplets(count):
    rng = np.random.default_rng(count)
    pair_cost = noisy_pair_cost(rng, rng.uniform(0.5, 2.0, count))
    estimate = isotropic_costs(pair_cost, everything(count))
    np.testing.assert_allclose(estimate.value, average_over_triplets(pair_cost), rtol=1e-10)


def test_equals_weighted_least_squares_over_the_usable_pairs():
    rng = np.random.default_rng(0)
    pair_cost = noisy_pair_cost(rng, rng.uniform(0.5, 2.0, 6))
    counts = rng.integers(1, 50, (6, 6)).astype(float)
    counts = counts + counts.T
    independent = everything(6)
    independent[0, 1] = independent[1, 0] = independent[2, 5] = independent[5, 2] = False
    pairs = [(a, b) for a, b in itertools.combinations(range(6), 2) if independent[a, b]]
    design = np.array([[float(c in pair) for c in range(6)] for pair in pairs])
    root = np.sqrt([counts[pair] for pair in pairs])
    target = np.array([pair_cost[pair] for pair in pairs])
    expected = np.linalg.lstsq(design * root[:, None], target * root, rcond=None)[0]
    estimate = isotropic_costs(pair_cost, independent, counts)
    np.testing.assert_allclose(estimate.value, expected, rtol=1e-9)


def test_unusable_pairs_may_hold_anything():
    costs = np.array([1.0, 2.0, 3.0, 4.0])
    pair_cost = costs[:, None] + costs
    pair_cost[0, 1] = pair_cost[1, 0] = np.nan
    np.fill_diagonal(pair_cost, np.nan)
    independent = everything(4)
    independent[0, 1] = independent[1, 0] = False
    np.testing.assert_allclose(isotropic_costs(pair_cost, independent).value, costs)


def test_two_sources_share_their_cost_and_are_not_identified():
    estimate = isotropic_costs(np.full((2, 2), 3.0), everything(2))
    np.testing.assert_allclose(estimate.value, [1.5, 1.5])
    assert not estimate.identified.any()


def test_a_chain_of_pairs_gets_the_solution_of_least_norm():
    independent = np.zeros((3, 3), dtype=bool)
    independent[0, 1] = independent[1, 0] = independent[1, 2] = independent[2, 1] = True
    estimate = isotropic_costs(np.full((3, 3), 3.0), independent)
    np.testing.assert_allclose(estimate.value, [1.0, 2.0, 1.0])
    assert not estimate.identified.any()


def test_a_source_without_pairs_gets_the_median_of_the_others():
    costs = np.array([1.0, 2.0, 9.0, 0.0])
    independent = everything(4)
    independent[3, :] = independent[:, 3] = False
    estimate = isotropic_costs(costs[:, None] + costs, independent)
    np.testing.assert_allclose(estimate.value, [1.0, 2.0, 9.0, 2.0])
    assert estimate.identified.tolist() == [True, True, True, False]


def test_no_pairs_at_all_is_finite():
    estimate = isotropic_costs(np.full((3, 3), np.nan), np.zeros((3, 3), dtype=bool))
    assert np.isfinite(estimate.value).all()
    assert not estimate.identified.any()


@given(
    st.lists(st.floats(0.0, 1e6), min_size=3, max_size=8),
    st.floats(1e-3, 1e3),
)
def test_recovers_exact_sums_at_any_scale(costs, scale):
    costs = scale * np.array(costs)
    value = isotropic_costs(costs[:, None] + costs, everything(len(costs))).value
    np.testing.assert_allclose(value, costs, atol=1e-11 * max(costs.max(), 1e-300))


def test_recovers_noise_variances_from_simulated_scores():
    # n = 20000; standard errors (measured) are at most 0.025 and 0.16 is 6.4 of them: a false
    # alarm over five sources has probability below 1e-8.
    rng = np.random.default_rng(1)
    variances = np.array([0.2, 0.5, 1.0, 1.5, 2.0])
    votes = rng.normal(size=(20_000, 1)) + rng.normal(size=(20_000, 5)) * np.sqrt(variances)
    pair_cost = ((votes[:, :, None] - votes[:, None, :]) ** 2).mean(axis=0)
    value = isotropic_costs(pair_cost, everything(5)).value
    np.testing.assert_allclose(value, variances, atol=0.16)
