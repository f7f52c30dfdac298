"""The backward mapping of a space known only through the costs among some of its labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray
from consilience.label_types.cost_curve import CostCurve

__all__ = ["SteppedCurve", "cost_step", "pooled_curve"]


@dataclass(frozen=True, slots=True)
class SteppedCurve:
    """Expected cost against weight where the labels at hand cannot show small costs.

    The curve is ``cost(w) = D / (g(w) + D / chance)`` with ``g(w) = (exp(w q) - 1) / q``. It is exact for classes and
    for vectors of bits. For costs without a step ``g(w) = w``: precisions add up as for noise in a continuous space.

    Examples
    --------
    >>> bits = (np.arange(256)[:, None] >> np.arange(8)) & 1
    >>> costs = (bits[:, None] != bits[None]).sum(axis=2).astype(float)
    >>> curve = SteppedCurve(chance=4.0, dimension=8.0, step=1.0)
    >>> weights = np.array([0.0, 1.0, 3.0])
    >>> bool(np.allclose(curve.expected_cost(weights), CostCurve.of(costs).expected_cost(weights)))
    True
    >>> curve.weight_from_cost(curve.expected_cost(weights)).round(9)
    array([0., 1., 3.])
    """

    chance: float  # mean cost between unrelated labels
    dimension: float  # D, such that the curve starts with the right slope
    step: float  # q, in which costs come; 0 where they are continuous

    def expected_cost(self, weight: npt.ArrayLike) -> FloatArray:
        """Return the expected cost of a source of each weight."""
        growth, _ = self._growth(weight)
        return self.dimension / np.maximum(growth + self.dimension / self.chance, 1e-300)

    def weight_from_cost(self, cost: npt.ArrayLike) -> FloatArray:
        """Return the weight that has each expected cost; a cost of zero has the weight of a tiny one."""
        value = np.maximum(np.asarray(cost, dtype=np.float64), 1e-9 * self.chance)
        growth = self.dimension * (1.0 / value - 1.0 / self.chance)
        return np.log1p(np.maximum(growth * self.step, -0.999)) / self.step if self.step > 0 else growth

    def slope(self, weight: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the expected cost."""
        growth, change = self._growth(weight)
        return -self.dimension * change / np.maximum(growth + self.dimension / self.chance, 1e-150) ** 2

    def _growth(self, weight: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return g and its slope."""
        value = np.asarray(weight, dtype=np.float64)
        if self.step <= 0:
            return value, np.ones_like(value)
        growth = np.expm1(np.clip(value * self.step, -700.0, 300.0))
        return growth / self.step, growth + 1.0


def pooled_curve(cost: FloatArray, *, complete: bool = False, step: float = 0.0) -> CostCurve | SteppedCurve:
    """Return the curve of an ``(L, L)`` table of costs among all labels there are (`complete`), or some of them.

    It is exact where the table is complete, or holds near neighbors of most labels. `step` is that in which costs come,
    found from the table where it is 0.
    """
    others = cost[~np.eye(len(cost), dtype=bool)].reshape(len(cost), -1)
    if complete or np.mean((others <= 0).any(axis=1)) >= 0.5:
        return CostCurve.of(cost, leave_out_truth=not complete)
    chance = max(float(others.mean()), 1e-300)
    spread = max(float(others.var(axis=1).mean()), 1e-12 * chance**2)
    return SteppedCurve(chance, chance**2 / spread, step or cost_step(others[others > 0]))


def cost_step(positive: FloatArray) -> float:
    """Return the step in which positive costs come, 0 where hardly any comes twice."""
    values = np.unique(positive)
    if len(values) == 0 or len(values) > 0.5 * len(positive):
        return 0.0
    gaps = np.diff(values)
    return float(min(values[0], gaps[gaps > 1e-9 * values[-1]].min(initial=np.inf)))
