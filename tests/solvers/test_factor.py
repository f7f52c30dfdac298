"""One factor behind a covariance: exact cases, likelihood against brute force, degenerate covariances."""

from __future__ import annotations

import numpy as np
import pytest

from consilience.solvers.factor import (
    NOISE_FLOOR,
    equal_slopes,
    factor_information,
    free_slopes,
    gaussian_log_likelihood,
    positive_definite,
    prefers_free_slopes,
)

LOADING = np.array([0.8, 1.1, -0.5, 0.3, 2.0])
NOISE = np.array([0.5, 1.0, 0.2, 2.0, 0.7])


def covariance_of(loading, noise):
    return np.outer(loading, loading) + np.diag(noise)


def sample_covariance(n, seed=0):
    rng = np.random.default_rng(seed)
    votes = rng.normal(size=(n, 1)) * LOADING + rng.normal(size=(n, 5)) * np.sqrt(NOISE)
    votes -= votes.mean(axis=0)
    return votes.T @ votes / n


def test_exact_covariances_give_the_loadings_back():
    fit = free_slopes(covariance_of(LOADING, NOISE), np.ones(5))
    assert np.allclose(fit.loading, LOADING, atol=1e-5)
    assert np.allclose(fit.noise_variance, NOISE, atol=1e-5)
    assert fit.converged
    assert not fit.heywood.any()


def test_three_sources_are_solved_by_hand():
    # u_1 = sqrt(c12 c13 / c23): 0.6 * 0.3 / 0.2 = 0.9
    covariance = np.array([[2.0, 0.6, 0.3], [0.6, 1.0, 0.2], [0.3, 0.2, 1.5]])
    fit = free_slopes(covariance, np.ones(3))
    assert np.allclose(fit.loading**2, [0.9, 0.4, 0.1], atol=1e-5)
    assert np.allclose(fit.noise_variance, [1.1, 0.6, 1.4], atol=1e-5)


def test_no_small_change_raises_the_likelihood():
    covariance = sample_covariance(300)
    fit = free_slopes(covariance, LOADING)
    rng = np.random.default_rng(1)
    for _ in range(50):
        loading = fit.loading + 1e-3 * rng.normal(size=5)
        noise = fit.noise_variance * np.exp(1e-3 * rng.normal(size=5))
        assert gaussian_log_likelihood(covariance, covariance_of(loading, noise)) <= fit.log_likelihood + 1e-10


def test_the_scale_of_each_source_passes_through():
    covariance, stretch = sample_covariance(300), np.array([1e-3, 1.0, 50.0, 2.0, 1e4])
    plain = free_slopes(covariance, LOADING)
    stretched = free_slopes(covariance * np.outer(stretch, stretch), LOADING * stretch)
    assert np.allclose(stretched.loading, plain.loading * stretch, rtol=1e-4)
    assert np.allclose(stretched.noise_variance, plain.noise_variance * stretch**2, rtol=1e-4)


def test_equal_slopes_are_the_constrained_maximum():
    covariance = sample_covariance(300)[:2, :2] + 1.0
    covariance = np.block([[covariance, np.ones((2, 1))], [np.ones((1, 2)), np.full((1, 1), 3.0)]])
    fit = equal_slopes(covariance)
    assert np.ptp(fit.loading) == 0.0
    rng = np.random.default_rng(1)
    for _ in range(50):
        loading = fit.loading + 1e-3 * rng.normal()
        noise = fit.noise_variance * np.exp(1e-3 * rng.normal(size=3))
        assert gaussian_log_likelihood(covariance, covariance_of(loading, noise)) <= fit.log_likelihood + 1e-10


@pytest.mark.parametrize("free", [False, True])
def test_the_criterion_tells_equal_from_free_slopes(free):
    # 20 data sets of 1000 items; under equal slopes a false choice has probability P(chi2_4 > 27.6) < 2e-5.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        slope = np.array([0.5, 1.0, 1.5, 0.7, 1.2]) if free else np.ones(5)
        votes = rng.normal(size=(1000, 1)) * slope + rng.normal(size=(1000, 5)) * np.sqrt(NOISE)
        covariance = np.cov(votes.T)
        assert prefers_free_slopes(free_slopes(covariance, np.ones(5)), equal_slopes(covariance), 1000) == free


def test_dependent_pairs_keep_their_own_covariance():
    noise = np.diag(NOISE)
    noise[0, 1] = noise[1, 0] = 0.6
    dependent = noise - np.diag(NOISE) != 0
    fit = free_slopes(np.outer(LOADING, LOADING) + noise, np.ones(5), dependent)
    assert np.allclose(fit.loading, LOADING, atol=1e-4)
    assert np.allclose(fit.noise, noise, atol=1e-4)


def test_a_heywood_case_stops_at_the_floor():
    covariance = np.array([[1.0, 0.9, 0.9], [0.9, 1.0, 0.5], [0.9, 0.5, 1.0]])  # u_1^2 = 1.62 > 1
    fit = free_slopes(covariance, np.full(3, 0.8))
    assert fit.heywood.tolist() == [True, False, False]
    assert fit.noise_variance[0] == pytest.approx(NOISE_FLOOR)
    assert np.isfinite(fit.loading).all()


def test_the_information_is_the_curvature_of_the_likelihood():
    loading, noise = LOADING[:3], NOISE[:3]
    truth, point, step = covariance_of(loading, noise), np.concatenate([loading, noise]), 1e-4

    def likelihood(at):
        return gaussian_log_likelihood(truth, covariance_of(at[:3], at[3:]))

    numeric = np.empty((6, 6))
    for i, j in np.ndindex(6, 6):
        one, two = step * np.eye(6)[i], step * np.eye(6)[j]
        corners = [likelihood(point + a * one + b * two) * a * b for a in (-1, 1) for b in (-1, 1)]
        numeric[i, j] = -sum(corners) / (4 * step**2)
    assert np.allclose(factor_information(loading, np.diag(noise)), numeric, atol=1e-4)


def test_noise_of_copies_is_made_positive_definite():
    noise = positive_definite(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.ones(3))
    assert np.linalg.eigvalsh(noise)[0] > 5e-4
    assert np.array_equal(np.diag(noise), np.ones(3))
