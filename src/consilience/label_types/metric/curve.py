"""The backward mapping of a space known only through the costs among some of its labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray
from consilience.label_types.cost_curve import CostCurve

__all__ = ["PooledCurve", "cost_quantum"]


@dataclass(frozen=True, slots=True)
class PooledCurve:
    """Expected cost against weight, from the costs among labels drawn at random.

    A pool that contains near neighbors of every label (few labels, or all of them) gives the curve
    exactly. Any other pool cannot show small costs, and the curve is

        cost(w) = D q / (exp(w q) - 1 + D q / chance)

    with `chance` the mean cost between unrelated labels, q the step in which costs come, and the
    dimension D chosen so that the curve starts with the right slope. It is exact for classes and for
    vectors of bits; for costs without a step (q = 0) it is D / (w + D / chance), where precisions add up
    as for noise in a continuous space.

    Examples
    --------
    >>> bits = (np.arange(256)[:, None] >> np.arange(8)) & 1
    >>> costs = (bits[:, None] != bits[None]).sum(axis=2).astype(float)
    >>> curve = PooledCurve(None, chance=4.0, dimension=8.0, quantum=1.0)
    >>> weights = np.array([0.0, 1.0, 3.0])
    >>> bool(np.allclose(curve.expected_cost(weights), PooledCurve.of(costs, complete=True).expected_cost(weights)))
    True
    >>> curve.weight_from_cost(curve.expected_cost(weights)).round(9)
    array([0., 1., 3.])
    """

    exact: CostCurve | None
    chance: float
    dimension: float
    quantum: float

    @classmethod
    def of(cls, cost: FloatArray, *, complete: bool = False, quantum: float | None = None) -> PooledCurve:
        """Return the curve of an ``(L, L)`` table of costs.

        Parameters
        ----------
        complete
            Whether the table holds all labels there are.
        quantum
            The step in which costs come; found from the table if not given.
        """
        size = len(cost)
        others = cost[~np.eye(size, dtype=bool)].reshape(size, size - 1)
        chance = max(float(others.mean()), 1e-300)
        spread = max(float(others.var(axis=1).mean()), 1e-12 * chance**2)
        resolved = complete or bool(np.mean((others <= 0).any(axis=1)) >= 0.5)
        exact = CostCurve.of(cost, leave_out_truth=not complete) if resolved else None
        step = cost_quantum(others.ravel()) if quantum is None else quantum
        return cls(exact, chance, chance**2 / spread, step)

    def expected_cost(self, weight: npt.ArrayLike) -> FloatArray:
        """Return the expected cost of a source of each weight."""
        if self.exact is not None:
            return self.exact.expected_cost(weight)
        growth, scale = self._growth(weight)
        return self.dimension * scale / np.maximum(growth + self.dimension * scale / self.chance, 1e-300)

    def weight_from_cost(self, cost: npt.ArrayLike) -> FloatArray:
        """Return the weight that has each expected cost; a cost of zero has the weight of a tiny one."""
        if self.exact is not None:
            return self.exact.weight_from_cost(cost)
        value = np.maximum(np.asarray(cost, dtype=np.float64), 1e-9 * self.chance)
        gain = self.dimension * (1.0 / value - 1.0 / self.chance)
        if self.quantum <= 0:
            return gain
        return np.log1p(np.maximum(gain * self.quantum, -0.999)) / self.quantum

    def slope(self, weight: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the expected cost."""
        if self.exact is not None:
            return self.exact.slope(weight)
        growth, scale = self._growth(weight)
        change = growth + 1.0 if self.quantum > 0 else np.ones_like(growth)
        total = np.maximum(growth + self.dimension * scale / self.chance, 1e-150)
        return -self.dimension * scale * scale * change / total**2

    def _growth(self, weight: npt.ArrayLike) -> tuple[FloatArray, float]:
        value = np.asarray(weight, dtype=np.float64)
        if self.quantum <= 0:
            return value, 1.0
        return np.expm1(np.clip(value * self.quantum, -700.0, 300.0)), self.quantum


def cost_quantum(cost: FloatArray) -> float:
    """Return the step in which costs come, 0 where they are continuous.

    Examples
    --------
    >>> cost_quantum(np.array([3.0, 4.0, 4.0, 7.0, 3.0, 4.0])), cost_quantum(np.array([0.31, 0.72, 1.04]))
    (1.0, 0.0)
    """
    positive = cost[cost > 0]
    values = np.unique(positive)
    if len(values) == 0 or len(values) > 0.5 * len(positive):
        return 0.0
    gaps = np.diff(values)
    gaps = gaps[gaps > 1e-9 * values[-1]]
    return float(min(values[0], gaps.min(initial=np.inf)))
