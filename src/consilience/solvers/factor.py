"""One common factor behind the votes: maximum likelihood on a covariance, without a pass over the data.

Votes ``offset + slope * y + noise`` have the covariance ``u u' + Psi`` with the loadings ``u = slope * sd(y)``.
EM for a factor of variance one, from the covariance S alone:

    w = Psi^-1 u / (1 + u' Psi^-1 u)        E = 1 - w' u + w' S w
    u <- S w / E                            Psi <- S - E u u' on the diagonal and the dependent pairs
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consilience.arrays import BoolArray, FloatArray

__all__ = [
    "NOISE_FLOOR",
    "FactorFit",
    "equal_slopes",
    "factor_information",
    "free_slopes",
    "gaussian_log_likelihood",
    "positive_definite",
    "prefers_free_slopes",
]

#: No source explains more than all but this share of its variance; beyond lies a Heywood case.
NOISE_FLOOR = 0.005
#: Correlations of noise keep their eigenvalues above this; exact copies would have one of zero.
LEAST_EIGENVALUE = 1e-3
_TOLERANCE = 1e-8
_ROUNDS = 3000


@dataclass(frozen=True, slots=True)
class FactorFit:
    """One factor of variance one behind m sources.

    Attributes
    ----------
    loading : array of shape (m,)
        Change of the vote when the factor grows by one; the sum of all is not negative.
    noise : array of shape (m, m)
        Covariance of what is left; zero off the diagonal but for dependent pairs.
    log_likelihood : float
        Per item, without the constant.
    heywood : array of shape (m,)
        Sources whose noise variance sits at the floor.
    converged : bool
    """

    loading: FloatArray
    noise: FloatArray
    log_likelihood: float
    heywood: BoolArray
    converged: bool

    @property
    def noise_variance(self) -> FloatArray:
        """The diagonal of `noise`."""
        return np.diag(self.noise).copy()


def free_slopes(
    covariance: FloatArray,
    start: FloatArray,
    dependent: BoolArray | None = None,
    *,
    tolerance: float = _TOLERANCE,
    max_rounds: int = _ROUNDS,
) -> FactorFit:
    """Return the loadings and noise of greatest likelihood, every source with a slope of its own.

    Parameters
    ----------
    covariance : array of shape (m, m)
        Of the votes, with a positive diagonal.
    start : array of shape (m,)
        Loadings to start from.
    dependent : array of shape (m, m), optional
        Pairs whose noise may be correlated. Exact where they form groups in which every two are dependent.
    tolerance : float
        Rounds end when loadings and noise, as shares of what they are, change by less.
    max_rounds : int

    Examples
    --------
    >>> loading, noise = np.array([1.0, 2.0, 0.5]), np.array([0.5, 1.0, 0.3])
    >>> fit = free_slopes(np.outer(loading, loading) + np.diag(noise), np.ones(3))
    >>> fit.loading.round(4), fit.noise_variance.round(4)
    (array([1. , 2. , 0.5]), array([0.5, 1. , 0.3]))
    """
    scale = np.sqrt(np.diag(covariance))
    unit = covariance / np.outer(scale, scale)
    allowed = np.eye(len(unit), dtype=bool) if dependent is None else dependent | np.eye(len(unit), dtype=bool)
    correlated = bool(allowed.sum() > len(unit))
    loading = np.clip(start / scale, -0.97, 0.97)
    noise = np.clip(1.0 - loading**2, 0.05, None)
    full = np.diag(noise)
    converged = False
    for _ in range(max_rounds):
        evidence = np.linalg.solve(full, loading) if correlated else loading / noise
        gain = evidence / (1.0 + loading @ evidence)
        shadow = unit @ gain
        second = 1.0 - gain @ loading + gain @ shadow
        updated = shadow / second
        remaining = np.maximum(1.0 - updated * shadow, NOISE_FLOOR)
        if correlated:
            full = positive_definite(np.where(allowed, unit - second * np.outer(updated, updated), 0.0), remaining)
        change = np.abs(updated - loading).max() + np.abs(remaining / noise - 1.0).max()
        loading, noise = updated, remaining
        if change < tolerance:
            converged = True
            break
    if not correlated:
        full = np.diag(noise)
    return _finished(covariance, loading * scale, full * np.outer(scale, scale), noise <= NOISE_FLOOR, converged)


def equal_slopes(covariance: FloatArray) -> FactorFit:
    """Return the fit of greatest likelihood in which all sources have the same slope.

    Examples
    --------
    >>> fit = equal_slopes(4.0 + np.diag([1.0, 2.0, 3.0]))
    >>> fit.loading.round(4), fit.noise_variance.round(4)
    (array([2., 2., 2.]), array([1., 2., 3.]))
    """
    own = np.diag(covariance).copy()
    m = len(own)
    between = (covariance.sum() - own.sum()) / (m * (m - 1))
    spread = max(between, 0.05 * own.min())
    noise = np.clip(own - spread, 0.05 * own, None)
    converged = False
    for _ in range(_ROUNDS):
        precision = 1.0 / noise
        variance = 1.0 / (1.0 / spread + precision.sum())
        gain = precision * variance
        shadow = covariance @ gain
        second = variance + gain @ shadow
        remaining = np.maximum(own - 2.0 * shadow + second, NOISE_FLOOR * own)
        change = abs(second / spread - 1.0) + np.abs(remaining / noise - 1.0).max()
        spread, noise = second, remaining
        if change < _TOLERANCE:
            converged = True
            break
    return _finished(
        covariance, np.full(m, np.sqrt(spread)), np.diag(noise), noise <= NOISE_FLOOR * own * (1 + 1e-9), converged
    )


def prefers_free_slopes(free: FactorFit, equal: FactorFit, n_items: float) -> bool:
    """Return whether the Bayesian information criterion pays for m - 1 more slopes."""
    gain = 2.0 * n_items * (free.log_likelihood - equal.log_likelihood)
    return bool(gain > (len(free.loading) - 1) * np.log(max(n_items, 2.0)))


def gaussian_log_likelihood(covariance: FloatArray, model: FloatArray) -> float:
    """Return the mean log density of items with this covariance under the model's, without the constant.

    Examples
    --------
    >>> gaussian_log_likelihood(np.eye(2), np.eye(2))
    -1.0
    """
    determinant = float(np.linalg.slogdet(model)[1])
    return -0.5 * (determinant + float(np.trace(np.linalg.solve(model, covariance))))


def factor_information(loading: FloatArray, noise: FloatArray) -> FloatArray:
    """Return the expected information of one item about loadings and noise variances, ``(2 m, 2 m)``.

    ``I_jk = tr(K dSigma_j K dSigma_k) / 2`` with ``K = Sigma^-1``.
    """
    precision = np.linalg.inv(np.outer(loading, loading) + noise)
    direction = precision @ loading
    by_loading = precision * (loading @ direction) + np.outer(direction, direction)
    by_noise = 0.5 * precision**2
    mixed = precision * direction[:, None]  # d loading_a against d noise_b
    return np.block([[by_loading, mixed.T], [mixed, by_noise]])


def positive_definite(noise: FloatArray, diagonal: FloatArray, least: float = LEAST_EIGENVALUE) -> FloatArray:
    """Return a noise covariance with this diagonal whose correlations are weakened as far as is needed.

    Examples
    --------
    >>> positive_definite(np.array([[0.0, 3.0], [3.0, 0.0]]), np.array([1.0, 4.0])).round(2)
    array([[1., 2.],
           [2., 4.]])
    """
    scale = np.sqrt(diagonal)
    between = noise / np.outer(scale, scale)
    np.fill_diagonal(between, 0.0)
    lowest = float(np.linalg.eigvalsh(between)[0]) if between.any() else 0.0
    if lowest < least - 1.0:
        between = between * (1.0 - least) / -lowest
    np.fill_diagonal(between, 1.0)
    result: FloatArray = between * np.outer(scale, scale)
    return result


def _finished(
    covariance: FloatArray, loading: FloatArray, noise: FloatArray, heywood: BoolArray, converged: bool
) -> FactorFit:
    # The sum in units of each source, so that a source on a wide scale does not decide the sign alone.
    relative = loading / np.sqrt(np.diag(covariance))
    oriented = -loading if relative.sum() < 0 else loading
    likelihood = gaussian_log_likelihood(covariance, np.outer(loading, loading) + noise)
    return FactorFit(oriented, noise, likelihood, heywood, converged)
