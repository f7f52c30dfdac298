"""Robust fits of pair moments and their covariance: `consilience.solvers.robust`."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from consilience.solvers import robust
from consilience.solvers.robust import fit_pair_moments, sandwich

COUNT = 7
A, B = np.triu_indices(COUNT, 1)
PAIRS = len(A)
TRUTH = np.array([0.3, 0.5, 0.8, 1.0, 1.2, 1.5, 1.8])


def products(weight):
    return weight[A] * weight[B]


def derivative(weight):
    result, row = np.zeros((PAIRS, COUNT)), np.arange(PAIRS)
    result[row, A], result[row, B] = weight[B], weight[A]
    return result


def fit(observed, error=0.01, **options):
    options = {"starts": [np.ones(COUNT)], "lower": 0.0, "upper": 8.0} | options
    return fit_pair_moments(products, derivative, observed, np.full(PAIRS, error), **options)


def test_exact_moments_give_the_exact_weights():
    found = fit(products(TRUTH), prior_spread=np.inf)
    np.testing.assert_allclose(found.weight, TRUTH, atol=1e-5)
    np.testing.assert_allclose(found.residual_z, 0.0, atol=1e-2)
    assert found.inflation == 1.0
    assert found.converged
    np.testing.assert_array_equal(found.jacobian, derivative(found.weight))


def test_sparse_steps_end_where_dense_ones_do(monkeypatch):
    observed = products(TRUTH) + np.random.default_rng(0).normal(scale=0.02, size=len(products(TRUTH)))
    dense = fit(observed)
    monkeypatch.setattr(robust, "MANY", 2)
    assert fit(observed).weight == pytest.approx(dense.weight, abs=1e-4)  # errors are about 0.01


def test_the_solution_is_a_minimum_of_the_documented_function():
    observed = products(TRUTH) + np.random.default_rng(0).normal(scale=0.05, size=PAIRS)
    scale, spread, error = 2.0, 0.5, 0.05
    found = fit(observed, error, scale=scale, prior_spread=spread)

    def objective(weight):
        z = (observed - products(weight)) / error
        pull = ((weight - weight.mean()) ** 2).sum() / (scale * spread) ** 2
        return 0.5 * (np.log1p((z / scale) ** 2).sum() + pull)

    assert found.inflation == 1.0
    assert found.cost == pytest.approx(objective(found.weight))
    np.testing.assert_allclose(approx_fprime(found.weight, objective), 0.0, atol=1e-3)


def test_copied_pairs_stand_out_and_do_not_move_the_weights():
    observed = products(TRUTH)
    copied = (B < 3).nonzero()[0]
    observed[copied] += 1.5
    found = fit(observed)
    assert np.flatnonzero(np.abs(found.residual_z) > 5).tolist() == copied.tolist()
    np.testing.assert_allclose(found.weight, TRUTH, atol=0.02)
    assert found.precision[copied].max() < 0.01 * np.median(found.precision)


def test_clean_moments_raise_no_flag():
    # 50 fits of 21 pairs with residuals at most standard normal: |z| > 5 has probability 6e-7
    # each, 6e-4 in all; the seed is fixed.
    rng = np.random.default_rng(1)
    for _ in range(50):
        found = fit(products(TRUTH) + rng.normal(scale=0.01, size=PAIRS))
        assert np.abs(found.residual_z).max() < 5
        assert found.inflation == 1.0


def test_an_approximate_model_inflates_the_standard_errors():
    observed = products(TRUTH) + np.random.default_rng(2).normal(scale=0.05, size=PAIRS)
    found = fit(observed, error=0.01)
    assert 2.0 < found.inflation < 8.0
    z = (observed - products(found.weight)) / (0.01 * found.inflation)
    np.testing.assert_allclose(found.residual_z, z)


def test_corrected_scatter_is_the_true_one():
    # 60 fits with standard errors five times too small. The median inflation is 5.5 with standard
    # error 0.24 (measured): outside 4 to 7 has probability below 1e-8.
    rng = np.random.default_rng(4)
    moments = products(TRUTH) + rng.normal(scale=0.05, size=(60, PAIRS))
    inflations = [fit(row, error=0.01, corrected_scatter=True).inflation for row in moments]
    assert 4.0 < np.median(inflations) < 7.0


def test_the_best_of_several_starts_wins():
    observed = products(TRUTH)
    bad = np.array([7.9, 0.0, 0.0, 0.0, 0.0, 0.0, 7.9])
    alone, both = fit(observed, starts=[bad]), fit(observed, starts=[bad, np.ones(COUNT)])
    assert both.cost <= alone.cost
    np.testing.assert_allclose(both.weight, TRUTH, atol=0.02)


def test_pairs_without_data_do_not_count():
    observed, error = products(TRUTH), np.full(PAIRS, 0.01)
    observed[0], observed[1] = np.nan, 99.0
    error[1] = np.inf
    found = fit_pair_moments(products, derivative, observed, error, [np.ones(COUNT)], 0.0, 8.0)
    np.testing.assert_allclose(found.weight, TRUTH, atol=0.02)
    assert found.residual_z[:2].tolist() == [0.0, 0.0]
    assert found.precision[:2].tolist() == [0.0, 0.0]
    assert np.isfinite(found.residual_z).all()


def test_a_source_without_data_gets_the_mean_weight():
    observed = np.where(A == 0, np.nan, products(TRUTH))
    found = fit(observed)
    assert found.weight[0] == pytest.approx(found.weight[1:].mean(), abs=1e-3)


def test_a_vanishing_standard_error_does_not_rule_the_fit():
    observed, error = products(TRUTH), np.full(PAIRS, 0.01)
    observed[0] += 0.5
    error[0] = 0.0
    found = fit_pair_moments(products, derivative, observed, error, [np.ones(COUNT)], 0.0, 8.0)
    np.testing.assert_allclose(found.weight, TRUTH, atol=0.02)


def test_bounds_hold_and_negative_weights_can_be_allowed():
    signed = TRUTH * np.array([-1, 1, 1, 1, 1, 1, 1])
    start = [np.ones(COUNT)]
    bounded = fit(products(signed), starts=start)
    assert bounded.weight[0] == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(fit(products(signed), starts=start, lower=-8.0).weight, signed, atol=0.02)


def test_no_pairs_at_all_keep_a_common_start():
    found = fit_pair_moments(
        lambda _: np.zeros(0), lambda _: np.zeros((0, 1)), np.zeros(0), np.zeros(0),
        [np.array([0.5])], 0.0, 8.0,
    )  # fmt: skip
    assert found.weight.tolist() == [0.5]
    assert found.residual_z.shape == (0,)


def test_sandwich_is_the_inverse_information_if_weights_are_right():
    rng = np.random.default_rng(0)
    jacobian, weight = rng.normal(size=(10, 3)), rng.uniform(0.5, 2.0, 10)
    covariance = sandwich(jacobian, weight, np.diag(1 / np.sqrt(weight)))
    np.testing.assert_allclose(covariance, np.linalg.inv(jacobian.T @ (jacobian * weight[:, None])))


def test_sandwich_is_the_exact_formula_if_weights_are_wrong():
    rng = np.random.default_rng(1)
    jacobian, weight = rng.normal(size=(8, 3)), rng.uniform(0.5, 2.0, 8)
    influence = rng.normal(size=(40, 8))
    linear = np.linalg.inv(jacobian.T @ np.diag(weight) @ jacobian) @ jacobian.T @ np.diag(weight)
    expected = linear @ influence.T @ influence @ linear.T
    np.testing.assert_allclose(sandwich(jacobian, weight, influence), expected)


def test_sandwich_of_parameters_that_are_not_determined_is_infinite():
    jacobian = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    for spread in (None, 1.0):
        covariance = sandwich(jacobian, np.ones(3), np.eye(3), prior_spread=spread)
        assert np.isinf(covariance.diagonal()).tolist() == [True, True, False, True]
        assert not np.isnan(covariance).any()
    assert sandwich(jacobian, np.ones(3), np.eye(3))[2, 2] == pytest.approx(0.5)


def test_sandwich_with_no_moments():
    assert np.isinf(np.diag(sandwich(np.zeros((0, 2)), np.zeros(0), np.zeros((5, 0))))).all()


def test_a_prior_makes_estimates_less_variable():
    jacobian = derivative(TRUTH)
    influence = 0.3 * np.eye(PAIRS)
    weight = np.full(PAIRS, 1 / 0.09)
    free, pulled = sandwich(jacobian, weight, influence), sandwich(jacobian, weight, influence, 0.2)
    assert np.trace(pulled) < np.trace(free)


def test_intervals_cover_at_their_level():
    # 200 fits of 7 weights at nominal 95%: coverage is 0.946 with standard error 0.006 (measured),
    # so that leaving 0.91 to 0.99 has probability below 1e-7.
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(200):
        found = fit(products(TRUTH) + rng.normal(scale=0.02, size=PAIRS), 0.02, prior_spread=np.inf)
        covariance = sandwich(found.jacobian, found.precision, 0.02 * np.eye(PAIRS))
        covered.append(np.abs(found.weight - TRUTH) < 1.96 * np.sqrt(covariance.diagonal()))
    assert 0.91 < np.mean(covered) < 0.99
