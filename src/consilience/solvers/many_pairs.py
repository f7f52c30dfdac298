"""Damped Gauss-Newton steps for the pair moments of many sources, each of which depends on two of them.

With a thousand sources there are half a million pairs; the matrix of a step has the size of the sources only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Minimum", "minimise_many"]

MOST_STEPS = 100
#: Stop when a step gains less than so much for each weight, far below what chance would, or hardly moves any.
GAIN, MOVE = 1e-4, 1e-6
#: Damping: where it starts, by how much it falls after a step that helped and rises after one that did not, its end.
DAMPING, EASED, RAISED, TOO_MUCH = 1e-3, 0.2, 8.0, 1e12


@dataclass(frozen=True)
class Minimum:
    """Where the function is least, its value there, and whether (1) or not (0) the steps came to rest."""

    x: FloatArray
    cost: float
    status: int


def minimise_many(
    moment: Callable[[FloatArray], FloatArray],
    jacobian: Callable[[FloatArray], csr_array],
    target: FloatArray,
    error: FloatArray,
    start: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    spread: float,
) -> Minimum:
    """Minimise ``sum_p log(1 + z_p^2) / 2 + |x - mean(x)|^2 / spread^2 / 2``, ``z = (target - moment(x)) / error``.

    Parameters
    ----------
    moment, jacobian : callables
        From weights of shape (m,) to moments of shape (p,), and to their derivatives, sparse and of shape (p, m).
    target, error : arrays of shape (p,)
        An infinite error leaves a pair out.
    start : array of shape (m,)
    bounds : two arrays of shape (m,)
    spread : float

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> a, b = np.triu_indices(5, 1)
    >>> truth = np.array([0.5, 1.0, 1.5, 0.8, 1.2])
    >>> def slopes(x):
    ...     entries = np.stack([x[b], x[a]], axis=1).ravel()
    ...     return csr_array((entries, np.stack([a, b], axis=1).ravel(), 2 * np.arange(11)), shape=(10, 5))
    >>> limits = (np.zeros(5), np.full(5, 8.0))
    >>> target = truth[a] * truth[b]
    >>> minimise_many(lambda x: x[a] * x[b], slopes, target, np.full(10, 0.01), np.ones(5), limits, 9.0).x.round(2)
    array([0.5, 1. , 1.5, 0.8, 1.2])
    """
    low, high = bounds
    value = np.clip(start, low, high)
    z = (target - moment(value)) / error
    cost, damping = _cost(z, value, spread), DAMPING
    for _ in range(MOST_STEPS):
        gradient, curvature = _slope_and_curvature(jacobian(value), z, error, value, spread)
        # Who stands at a bound and would go beyond it stays there.
        free = ~(((value <= low) & (gradient > 0)) | ((value >= high) & (gradient < 0)))
        if not free.any():
            return Minimum(value, cost, 1)
        while True:
            proposal = np.clip(value - _step(gradient, curvature, free, damping), low, high)
            residual = (target - moment(proposal)) / error
            reached = _cost(residual, proposal, spread)
            if reached <= cost or damping > TOO_MUCH:
                break
            damping *= RAISED
        if reached > cost:
            return Minimum(value, cost, 1)
        gained, moved = cost - reached, float(np.abs(proposal - value).max())
        value, z, cost, damping = proposal, residual, reached, damping * EASED
        if gained <= GAIN * len(value) or moved <= MOVE:
            return Minimum(value, cost, 1)
    return Minimum(value, cost, 0)


def _cost(z: FloatArray, value: FloatArray, spread: float) -> float:
    return 0.5 * float(np.log1p(z**2).sum()) + 0.5 * float(((value - value.mean()) ** 2).sum()) / spread**2


def _slope_and_curvature(
    slopes: csr_array, z: FloatArray, error: FloatArray, value: FloatArray, spread: float
) -> tuple[FloatArray, FloatArray]:
    counted = 1.0 / (1.0 + z**2)
    gradient = -(slopes.T @ (counted * z / error)) + (value - value.mean()) / spread**2
    curvature = (slopes.T @ slopes.multiply((counted / error**2)[:, None]).tocsr()).toarray()
    m = len(value)
    return gradient, curvature + (np.eye(m) - 1.0 / m) / spread**2


def _step(gradient: FloatArray, curvature: FloatArray, free: BoolArray, damping: float) -> FloatArray:
    chosen = np.flatnonzero(free)
    inner = curvature[np.ix_(chosen, chosen)]
    inner[np.diag_indices(len(chosen))] += damping * np.maximum(np.diag(inner), 1e-12)
    step = np.zeros(len(gradient))
    step[chosen] = np.linalg.solve(inner, gradient[chosen])
    return step
