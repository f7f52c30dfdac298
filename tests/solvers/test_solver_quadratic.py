"""Algorithm 3: `consilience.solvers.quadratic`."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from consilience.exceptions import PriorError
from consilience.solvers.quadratic import (
    prior_from_skewness,
    quadratic_roots,
    quadratic_triplets,
    rank_one_rates,
    rates_from_loading,
)

#: Two tags in {-1, +1}^2, worked out by hand. Three sources; P(+1 | truth +1) and P(+1 | truth -1) by tag.
#: Tag 0: p = 1/4; tag 1: p = 1/2.
ONE = np.array([[0.8, 0.6, 0.9], [0.7, 0.9, 0.8]])
ZERO = np.array([[0.4, 0.2, 0.1], [0.1, 0.5, 0.4]])
PRIOR = np.array([0.25, 0.5])
#: E[x] in {-1, +1}. Tag 0: source 0 says +1 with probability .25*.8 + .75*.4 = .5, so E = 0; source 1: .15 + .15 = .3,
#: E = -.4; source 2: .225 + .075 = .3, E = -.4. Tag 1: (.7 + .1)/2 = .4, E = -.2; .7, E = .4; .6, E = .2.
SIGNED_MEAN = np.array([[0.0, -0.4, -0.4], [-0.2, 0.4, 0.2]])
#: E[x_a x_b] = E[x_a] E[x_b] + 4 p (1 - p) delta_a delta_b with delta = (.4, .4, .8), 4 p (1 - p) = .75, and
#: delta = (.6, .4, .4), 4 p (1 - p) = 1. Tag 0: pair 01: 0 + .75*.16 = .12; 02: 0 + .75*.32 = .24;
#: 12: .16 + .75*.32 = .4. Tag 1: 01: -.08 + .24 = .16; 02: -.04 + .24 = .2; 12: .08 + .16 = .24.
SIGNED_PAIRS = np.array([[0.12, 0.24, 0.40], [0.16, 0.20, 0.24]])

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


def zeros_and_ones(tag):
    """Return joint rates and means of {0, 1} from those of {-1, +1}: P(both 1) = (1 + E a + E b + E ab) / 4."""
    mean = (1.0 + SIGNED_MEAN[tag]) / 2.0
    joint = np.diag(mean)
    for (a, b), product in zip([(0, 1), (0, 2), (1, 2)], SIGNED_PAIRS[tag], strict=True):
        joint[a, b] = joint[b, a] = (1.0 + SIGNED_MEAN[tag, a] + SIGNED_MEAN[tag, b] + product) / 4.0
    return joint, mean


@pytest.mark.parametrize("tag", [0, 1])
@pytest.mark.parametrize("solve", [quadratic_triplets, rank_one_rates])
def test_both_forms_solve_a_population_of_two_tags_worked_by_hand(solve, tag):
    joint, mean = zeros_and_ones(tag)
    found = solve(joint, mean, PRIOR[tag], everything(3))
    np.testing.assert_allclose(found.given_one, ONE[tag], atol=1e-9)
    np.testing.assert_allclose(found.given_zero, ZERO[tag], atol=1e-9)
    assert found.identified.all()


def test_the_printed_quadratic_of_the_population_has_the_roots_worked_by_hand():
    # Tag 0, source 0: C = P(both 1) - l l' = 3/16 delta delta' = .03, .06, .06 for pairs 01, 02, 12 and l_0 = .5.
    # p C_12 (alpha - l)^2 = (1 - p) C_01 C_02: .015 (alpha - .5)^2 = .75 * .0018, so alpha = .5 +- .3.
    joint, mean = zeros_and_ones(0)
    np.testing.assert_allclose(joint[0, 1] - mean[0] * mean[1], 0.03)
    np.testing.assert_allclose(joint[0, 2] - mean[0] * mean[2], 0.06)
    np.testing.assert_allclose(joint[1, 2] - mean[1] * mean[2], 0.06)
    roots = quadratic_roots(joint[0, 1], joint[0, 2], joint[1, 2], *mean, prior=0.25)
    np.testing.assert_allclose(roots, [0.2, 0.8])


@given(
    one=st.lists(st.floats(0.55, 0.95), min_size=3, max_size=6),
    zero=st.lists(st.floats(0.05, 0.45), min_size=6, max_size=6),
    prior=priors,
)
def test_the_form_without_roots_agrees_with_the_quadratic_on_exact_moments(one, zero, prior):
    one, zero = np.array(one), np.array(zero[: len(one)])
    exact = moments(one, zero, prior)
    roots = quadratic_triplets(*exact, prior, everything(len(one)))
    factor = rank_one_rates(*exact, prior, everything(len(one)))
    np.testing.assert_allclose(factor.given_one, roots.given_one, atol=1e-6)
    np.testing.assert_allclose(factor.given_zero, roots.given_zero, atol=1e-6)


def test_the_form_without_roots_is_more_precise_on_votes():
    # n = 500, 8 sources, 20 draws; the mean squared errors were 0.0036 and 0.0031, the second smaller in 15 of them.
    rng = np.random.default_rng(3)
    one, zero = np.linspace(0.6, 0.9, 8), np.linspace(0.35, 0.1, 8)
    errors = np.zeros(2)
    for _ in range(20):
        votes = (rng.random((500, 8)) < np.where(rng.random((500, 1)) < 0.3, one, zero)).astype(float)
        exact = votes.T @ votes / 500, votes.mean(axis=0)
        for place, solve in enumerate((quadratic_triplets, rank_one_rates)):
            found = solve(*exact, 0.3, everything(8))
            errors[place] += ((found.given_one - one) ** 2).mean() + ((found.given_zero - zero) ** 2).mean()
    assert errors[1] < errors[0]


def test_rates_follow_from_means_and_loadings():
    # p = 1/5, delta = 1/2: loading sqrt(.16) / 2 = .2; mean .4 = .2 * .8 + .8 * .3.
    given_one, given_zero = rates_from_loading(np.array([0.4]), np.array([0.2]), 0.2)
    np.testing.assert_allclose([given_one[0], given_zero[0]], [0.8, 0.3])


@given(prior=st.floats(0.01, 0.99))
def test_the_skewness_of_the_truth_gives_its_frequency(prior):
    assert prior_from_skewness((1 - 2 * prior) / np.sqrt(prior * (1 - prior))) == pytest.approx(prior)
