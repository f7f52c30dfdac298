"""The backward mapping of a space known only through a pool of random labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray
from consilience.solvers.backward import CostCurve

__all__ = ["PooledCurve"]


@dataclass(frozen=True, slots=True)
class PooledCurve:
    """Expected cost against weight, from the costs among labels drawn at random.

    A pool cannot resolve costs below the distance to the nearest of its labels. Beyond the weight where
    that is felt, the cost is continued as ``knee_cost * knee / weight``: a source of half the cost has
    twice the weight, as for noise in a continuous space (the paper's inverse of the mean parameter).

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(200, 1))
    >>> curve = PooledCurve.of((points - points.T) ** 2)
    >>> cost = curve.expected_cost([0.5, 5.0, 5000.0])
    >>> curve.weight_from_cost(cost).round(6)
    array([5.e-01, 5.e+00, 5.e+03])
    """

    curve: CostCurve
    knee: float
    knee_cost: float

    @classmethod
    def of(cls, cost: FloatArray, *, complete: bool = False) -> PooledCurve:
        """Return the curve of an ``(L, L)`` table of costs; `complete` if there are no other labels."""
        curve = CostCurve.of(cost, leave_out_truth=not complete)
        scale = max(float(curve.expected_cost(0.0)), 1e-300)
        grid = np.geomspace(1e-2, 1e5, 400) / scale
        grid = grid[grid <= curve.limit]
        if len(grid) == 0:
            grid = np.array([curve.limit])
        mean = curve.expected_cost(grid)
        steepness = -curve.slope(grid) * grid / np.maximum(mean, 1e-300)
        falling = np.flatnonzero((steepness >= 1.0) & (mean > 1e-9 * scale))
        last = int(falling[-1]) if len(falling) else int(steepness.argmax())
        return cls(curve, float(grid[last]), max(float(mean[last]), 1e-12 * scale))

    def expected_cost(self, weight: npt.ArrayLike) -> FloatArray:
        """Return the expected cost of a source of each weight."""
        value = np.asarray(weight, dtype=np.float64)
        inside = self.curve.expected_cost(np.minimum(value, self.knee))
        return np.where(value <= self.knee, inside, self.knee_cost * self.knee / np.maximum(value, self.knee))

    def weight_from_cost(self, cost: npt.ArrayLike) -> FloatArray:
        """Return the weight that has each expected cost; a cost of zero has the weight of a tiny one."""
        value = np.asarray(cost, dtype=np.float64)
        beyond = self.knee * self.knee_cost / np.maximum(value, 1e-9 * self.knee_cost)
        inside = self.curve.weight_from_cost(np.maximum(value, self.knee_cost))
        return np.where(value < self.knee_cost, beyond, np.minimum(inside, self.knee))

    def slope(self, weight: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the expected cost."""
        value = np.asarray(weight, dtype=np.float64)
        inside = self.curve.slope(np.minimum(value, self.knee))
        outside = -self.knee_cost * self.knee / np.maximum(value, self.knee) ** 2
        return np.where(value <= self.knee, inside, outside)
