"""Algorithm 3: `consilience.solvers.quadratic`."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from consilience.exceptions import PriorError
from consilience.solvers.quadratic import quadratic_roots, quadratic_triplets

rates = st.floats(0.01, 0.99)
priors = st.floats(0.05, 0.95)


def everything(count):
    return np.ones((count, count), dtype=bool)


def moments(one, zero, prior):
    joint = prior * np.outer(one, one) + (1 - prior) * np.outer(zero, zero)
    return joint, prior * one + (1 - prior) * zero


def test_roots_worked_by_hand():
    # Prior 1/2, rates 0.9, 0.8, 0.7 against 0.1, 0.2, 0.3: means 1/2, joint 0.37, 0.33, 0.31.
    roots = quadratic_roots(0.37, 0.33, 0.31, 0.5, 0.5, 0.5, prior=0.5)
    np.testing.assert_allclose(roots, [0.1, 0.9])


@given(one=st.tuples(rates, rates, rates), zero=st.tuples(rates, rates, rates), prior=priors)
def test_a_root_is_the_rate_and_all_three_equations_hold(one, zero, prior):
    one, zero = np.array(one), np.array(zero)
    assume(np.abs(one - zero).min() > 0.05)
    joint, mean = moments(one, zero, prior)
    roots = quadratic_roots(joint[0, 1], joint[0, 2], joint[1, 2], *mean, prior)
    assert np.abs(roots - one[0]).min() < 1e-9
    covariance = joint - np.outer(mean, mean)
    for alpha in roots:
        rise = prior * (alpha - mean[0])
        beta = mean[1] + (1 - prior) * covariance[0, 1] / rise
        gamma = mean[2] + (1 - prior) * covariance[0, 2] / rise
        given_one = np.array([alpha, beta, gamma])
        given_zero = (mean - prior * given_one) / (1 - prior)
        rebuilt, _ = moments(given_one, given_zero, prior)
        np.testing.assert_allclose(rebuilt[np.triu_indices(3, 1)], joint[np.triu_indices(3, 1)])


def test_roots_are_vectorised_and_sorted():
    joint, mean = moments(np.array([0.9, 0.8, 0.7]), np.array([0.3, 0.2, 0.1]), 0.4)
    roots = quadratic_roots(np.full(4, joint[0, 1]), np.full(4, joint[0, 2]), joint[1, 2], *mean, 0.4)
    assert roots.shape == (4, 2)
    np.testing.assert_allclose(roots[:, 1], 0.9)
    assert (roots[:, 0] < roots[:, 1]).all()


def test_without_real_or_any_root_the_mean_is_returned():
    np.testing.assert_allclose(quadratic_roots(0.3, 0.2, 0.3, 0.5, 0.5, 0.5, 0.5), [0.5, 0.5])
    np.testing.assert_allclose(quadratic_roots(0.3, 0.3, 0.25, 0.5, 0.5, 0.5, 0.5), [0.5, 0.5])


@given(
    one=st.lists(st.floats(0.55, 0.95), min_size=3, max_size=7),
    zero=st.lists(st.floats(0.05, 0.45), min_size=7, max_size=7),
    prior=priors,
)
def test_recovers_exact_rates(one, zero, prior):
    one, zero = np.array(one), np.array(zero[: len(one)])
    found = quadratic_triplets(*moments(one, zero, prior), prior, everything(len(one)))
    np.testing.assert_allclose(found.given_one, one, rtol=1e-7)
    np.testing.assert_allclose(found.given_zero, zero, rtol=1e-7)
    assert found.identified.all()


def test_a_contradicting_source_is_recognised():
    one, zero = np.array([0.9, 0.8, 0.2, 0.7]), np.array([0.2, 0.1, 0.7, 0.3])
    found = quadratic_triplets(*moments(one, zero, 0.3), 0.3, everything(4))
    np.testing.assert_allclose(found.given_one, one)
    np.testing.assert_allclose(found.given_zero, zero)


def test_impossible_moments_stay_between_zero_and_one_and_keep_the_means():
    joint = np.array([[0.5, 0.5, 0.5], [0.5, 0.5, 0.3], [0.5, 0.3, 0.5]])
    mean = np.full(3, 0.5)
    found = quadratic_triplets(joint, mean, 0.3, everything(3))
    for rate in (found.given_one, found.given_zero):
        assert ((rate >= 0) & (rate <= 1)).all()
    np.testing.assert_allclose(0.3 * found.given_one + 0.7 * found.given_zero, mean)


def test_a_source_that_never_votes_is_marked_and_finite():
    one, zero = np.array([0.9, 0.8, 0.7, 0.6]), np.array([0.1, 0.2, 0.3, 0.4])
    joint, mean = moments(one, zero, 0.5)
    joint[3, :] = joint[:, 3] = mean[3] = np.nan
    independent = everything(4)
    independent[3, :] = independent[:, 3] = False
    found = quadratic_triplets(joint, mean, 0.5, independent)
    assert found.identified.tolist() == [True, True, True, False]
    np.testing.assert_allclose(found.given_one, [0.9, 0.8, 0.7, 0.8])
    np.testing.assert_allclose(found.given_zero, [0.1, 0.2, 0.3, 0.2])


def test_two_sources_are_not_identified_but_fit_their_pair():
    one, zero = np.array([0.8, 0.8]), np.array([0.2, 0.2])
    found = quadratic_triplets(*moments(one, zero, 0.5), 0.5, everything(2))
    np.testing.assert_allclose(found.given_one, one)
    assert not found.identified.any()


def test_sources_that_never_agree_beyond_chance_carry_no_information():
    mean = np.array([0.2, 0.5, 0.6])
    found = quadratic_triplets(np.outer(mean, mean), mean, 0.4, everything(3))
    np.testing.assert_allclose(found.given_one, mean)
    np.testing.assert_allclose(found.given_zero, mean)


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, float("nan")])
def test_a_prior_of_zero_or_one_is_refused(prior):
    with pytest.raises(PriorError, match="strictly between 0 and 1"):
        quadratic_triplets(np.full((3, 3), 0.25), np.full(3, 0.5), prior, everything(3))


def test_recovers_rates_from_simulated_votes():
    # n = 40000; standard errors (measured) are at most 0.006 and 0.04 is 6.6 of them: a false
    # alarm over ten rates has probability below 1e-9.
    rng = np.random.default_rng(2)
    one, zero = np.array([0.9, 0.8, 0.7, 0.85, 0.6]), np.array([0.1, 0.3, 0.2, 0.05, 0.3])
    truth = rng.random((40_000, 1)) < 0.3
    votes = (rng.random((40_000, 5)) < np.where(truth, one, zero)).astype(float)
    found = quadratic_triplets(votes.T @ votes / 40_000, votes.mean(axis=0), 0.3, everything(5))
    np.testing.assert_allclose(found.given_one, one, atol=0.04)
    np.testing.assert_allclose(found.given_zero, zero, atol=0.04)
