"""Weights from exact pair moments, fitted so that a few dependent pairs cannot mislead.

A family of scatter laws says what the moment of each pair of sources should be, given their
weights. Copied sources agree far more than that, and a plain least-squares fit believes them. A
Cauchy loss lets such pairs stand out as large residuals instead, which is also how they are
found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.solvers.many_pairs import Minimum, minimise_many

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult
    from scipy.sparse import csr_array

__all__ = ["PairMomentFit", "fit_pair_moments", "sandwich"]

#: More scatter than this, in standard errors, means that the model is only approximate.
_TOLERATED_SCATTER = 1.5
#: From so many sources on, steps are taken with sparse matrices.
MANY = 64


@dataclass(frozen=True, slots=True)
class PairMomentFit:
    """Weights that explain the moments of p pairs of m sources.

    Attributes
    ----------
    weight : array of shape (m,)
    residual_z : array of shape (p,)
        Observed minus fitted moment, in (inflated) standard errors; 0 for pairs without data.
    inflation : float
        Factor by which standard errors were enlarged because the model is only approximate; 1 if
        not.
    cost : float
        Value of the minimised function.
    jacobian : array or sparse array of shape (p, m)
        Derivative of the moments by the weights, at the solution.
    precision : array of shape (p,)
        How much each pair counted in the end; with `jacobian`, what `sandwich` needs.
    converged : bool
    """

    weight: FloatArray
    residual_z: FloatArray
    inflation: float
    cost: float
    jacobian: FloatArray | csr_array
    precision: FloatArray
    converged: bool


def fit_pair_moments(
    moment: Callable[[FloatArray], FloatArray],
    jacobian: Callable[[FloatArray], FloatArray | csr_array],
    observed: FloatArray,
    standard_error: FloatArray,
    starts: Sequence[FloatArray],
    lower: FloatArray | float,
    upper: FloatArray | float,
    prior_spread: float = 1.0,
    scale: float = 3.0,
    *,
    corrected_scatter: bool = False,
) -> PairMomentFit:
    """Return the weights whose pair moments fit the observed ones, whatever a few pairs say.

    Minimises
    ``sum_p log(1 + (z_p / scale)^2) + |weight - mean(weight)|^2 / (scale * prior_spread)^2`` with
    ``z = (observed - moment(weight)) / standard_error``. If the z scatter by more than 1.5,
    standard errors are enlarged to match, and the fit repeated once.

    Parameters
    ----------
    moment : callable
        From weights of shape (m,) to moments of shape (p,).
    jacobian : callable
        From weights of shape (m,) to the derivative of the moments, of shape (p, m). If that is a
        sparse array, steps are taken that suit very many sources.
    observed, standard_error : arrays of shape (p,)
        Pairs where either is not finite do not count. Standard errors far below the others are
        raised.
    starts : sequence of arrays of shape (m,)
        Where to start from, at least one; the best end wins.
    lower, upper : float or arrays of shape (m,)
        Bounds on the weights.
    prior_spread : float
        How far weights are expected to scatter around their mean; it decides only where data do
        not.
    scale : float
        Residuals of more than this many standard errors begin to lose influence.
    corrected_scatter : bool
        Leave the m smallest residuals out when scatter is measured: a robust fit of m weights runs
        through about that many pairs. Fewer false alarms, and with few sources fewer true ones.

    Returns
    -------
    PairMomentFit

    Examples
    --------
    Moments that are products of weights, with one pair (the first) far off:

    >>> a, b = np.triu_indices(5, 1)
    >>> truth = np.array([0.5, 1.0, 1.5, 0.8, 1.2])
    >>> def derivative(weight):
    ...     result, row = np.zeros((10, 5)), np.arange(10)
    ...     result[row, a], result[row, b] = weight[b], weight[a]
    ...     return result
    >>> observed = truth[a] * truth[b] + 2.0 * (np.arange(10) == 0)
    >>> fit = fit_pair_moments(
    ...     lambda weight: weight[a] * weight[b], derivative,
    ...     observed, np.full(10, 0.01), starts=[np.ones(5)], lower=0.0, upper=8.0,
    ... )
    >>> fit.weight.round(1)
    array([0.5, 1. , 1.5, 0.8, 1.2])
    >>> np.flatnonzero(np.abs(fit.residual_z) > 5)
    array([0])
    """
    measured = np.isfinite(observed) & np.isfinite(standard_error)
    target = np.where(measured, observed, 0.0)
    error = _floored(standard_error, measured)
    low, high = (np.broadcast_to(np.asarray(bound, float), starts[0].shape) for bound in (lower, upper))
    margin = np.minimum(0.01, 0.01 * (high - low))

    def solve(start: FloatArray, error: FloatArray) -> OptimizeResult | Minimum:
        inside = np.clip(np.nan_to_num(start), low + margin, high - margin)
        if not isinstance(jacobian(inside), np.ndarray):
            slopes: Any = jacobian
            return minimise_many(moment, slopes, target, scale * error, inside, (low, high), scale * prior_spread)
        return _minimise(moment, jacobian, target, scale * error, inside, (low, high), scale * prior_spread)

    best = min((solve(start, error) for start in starts), key=lambda result: float(result.cost))
    ignored = len(low) if corrected_scatter else 0
    inflation = 1.0
    scatter = _scatter(((target - moment(best.x)) / error)[measured], ignored)
    if scatter > _TOLERATED_SCATTER:
        best = solve(best.x, error * scatter)
        # With standard errors too small the first fit ran through too many pairs, and so
        # understated their scatter.
        again = _scatter(((target - moment(best.x)) / error)[measured], ignored)
        inflation = max(scatter, again)
        error = error * inflation

    residual_z = (target - moment(best.x)) / error
    return PairMomentFit(
        weight=best.x,
        residual_z=residual_z,
        inflation=inflation,
        cost=float(best.cost),
        jacobian=jacobian(best.x),
        precision=1.0 / (error**2 * (1.0 + (residual_z / scale) ** 2)),
        converged=bool(best.status > 0),
    )


def sandwich(
    jacobian: FloatArray | csr_array,
    weight: FloatArray,
    influence: FloatArray,
    prior_spread: float | None = None,
) -> FloatArray:
    """Return the covariance of estimates that were fitted to moments.

    ``A^-1 J'W V W J A^-1`` with ``A = J'WJ``, plus the pull to the mean if there was one, and
    ``V = influence' influence``: valid whether or not ``W`` is the inverse of ``V``.

    Parameters
    ----------
    jacobian : array or sparse array of shape (p, m)
        Derivative of the moments by the parameters.
    weight : array of shape (p,)
        How much each moment counted in the fit.
    influence : array of shape (n, p)
        What each item or group of items contributed to the error of the moments, scaled so that
        the sum of outer products of the rows is the covariance of the moments.
    prior_spread : float, optional
        As in `fit_pair_moments`.

    Returns
    -------
    array of shape (m, m)
        Parameters that the moments do not determine have an infinite variance and no covariance;
        standard errors are the root of the diagonal.

    Examples
    --------
    The mean of two equally uncertain numbers, and a parameter that nothing depends on:

    >>> sandwich(np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones(2), np.diag([0.2, 0.2]))
    array([[0.02, 0.  ],
           [0.  ,  inf]])
    """
    if isinstance(jacobian, np.ndarray):
        weighted: Any = jacobian * weight[:, None]
        information = jacobian.T @ weighted
    else:
        weighted = jacobian.multiply(weight[:, None]).tocsr()
        information = (jacobian.T @ weighted).toarray()
    count = len(information)
    determined = _determined(information)
    if prior_spread is not None:
        information = information + (np.eye(count) - 1.0 / count) / prior_spread**2
    # The rows of `influence` may be many: go through (n, m) rather than form V.
    scores = (influence @ weighted) @ np.linalg.pinv(information, hermitian=True)
    covariance: FloatArray = scores.T @ scores
    covariance[~determined, :] = 0.0
    covariance[:, ~determined] = 0.0
    covariance[~determined, ~determined] = np.inf
    return covariance


def _minimise(
    moment: Callable[[FloatArray], FloatArray],
    jacobian: Callable[[FloatArray], Any],
    target: FloatArray,
    error: FloatArray,
    start: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    spread: float,
) -> OptimizeResult:
    from scipy.optimize import least_squares

    count, pairs = len(start), len(target)
    pull = (np.eye(count) - 1.0 / count) / spread

    def residual(weight: FloatArray) -> FloatArray:
        return np.concatenate([(target - moment(weight)) / error, pull @ weight])

    # Of very many sources a moment depends on few: all rows at once, for every step, would be mostly zeros.
    sparse = count >= MANY

    def derivative(weight: FloatArray) -> Any:
        slope = jacobian(weight)
        if not sparse:
            return np.vstack([-slope / error[:, None], pull])
        from scipy.sparse import csr_array, vstack

        return vstack([csr_array(slope).multiply(-1.0 / error[:, None]), csr_array(pull)], format="csr")

    def loss(squared: FloatArray) -> FloatArray:
        """Cauchy for the pairs, quadratic for the pull: value, first and second derivative."""
        one_more = 1.0 + squared[:pairs]
        prior = squared[pairs:]
        return np.stack(
            [
                np.concatenate([np.log(one_more), prior]),
                np.concatenate([1.0 / one_more, np.ones_like(prior)]),
                np.concatenate([-1.0 / one_more**2, np.zeros_like(prior)]),
            ]
        )

    return least_squares(
        residual,
        start,
        derivative,
        bounds=bounds,
        loss=loss,  # type: ignore[arg-type]  # the stubs want a keyword that scipy never passes
        max_nfev=200,
        tr_solver="lsmr" if sparse else None,
    )


def _floored(standard_error: FloatArray, measured: BoolArray) -> FloatArray:
    """Return standard errors with chance zeros raised, and infinite where there are no data."""
    variance = np.where(measured, standard_error, 0.0) ** 2
    typical = float(np.median(variance[measured])) if measured.any() else 0.0
    floored: FloatArray = np.sqrt(np.maximum(variance, 1e-3 * typical + 1e-12))
    return np.where(measured, floored, np.inf)


def _scatter(residual_z: FloatArray, ignored: int) -> float:
    """Return the standard deviation that the median size of all but the smallest suggests."""
    sizes = np.sort(np.abs(residual_z))
    return 1.4826 * float(np.median(sizes[min(ignored, len(sizes) - 1) :])) if len(sizes) else 0.0


def _determined(information: FloatArray) -> BoolArray:
    """Return which parameters have no part in the null space of the information matrix."""
    size = np.sqrt(np.maximum(np.diag(information), 0.0))
    informed: BoolArray = size > 0
    unit = np.where(informed, size, 1.0)
    values, vectors = np.linalg.eigh(information / np.outer(unit, unit))
    null = vectors[:, values < 1e-10 * max(1.0, values.max(initial=0.0))]
    determined: BoolArray = informed & (np.abs(null).max(axis=1, initial=0.0) < 1e-6)
    return determined
