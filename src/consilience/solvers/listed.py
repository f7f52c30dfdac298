"""What the votes of two sources cost each other where all labels are listed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import FloatArray
from consilience.label_types.cost_curve import CostCurve

if TYPE_CHECKING:
    from scipy.interpolate import RectBivariateSpline

__all__ = ["ListedPairs"]

#: Costs between which is interpolated, and the largest one as a multiple of that of guessing.
NODES, WORST = 49, 1.3


@dataclass(frozen=True, eq=False)
class ListedPairs:
    """The mean cost between two independent votes around the same truth, by the costs of the two sources.

    Votes are drawn from all labels with probability proportional to ``exp(-weight * cost)``; every label is as often
    the truth. Where misleading sources can cost more than guessing does, the table goes on a little beyond that.

    Examples
    --------
    For classes two sources disagree in ``a + b - a b / chance`` of the items:

    >>> pairs = ListedPairs.of(1.0 - np.eye(4))
    >>> pairs.cost(np.array([0.0, 0.3]), np.array([0.3, 0.6])).round(6)
    array([0.3 , 0.66])
    >>> pairs.slope(np.array([0.3]), np.array([0.6])).round(4)
    array([0.2])
    """

    level: FloatArray
    table: FloatArray

    @classmethod
    def of(cls, cost: FloatArray) -> ListedPairs:
        """Return the table of an ``(L, L)`` matrix of costs between all labels."""
        chance = float(cost.mean())
        weight = CostCurve.of(cost).weight_from_cost(np.linspace(0.01, WORST, NODES - 1) * chance)
        logits = -weight[:, None, None] * cost
        law = np.exp(logits - logits.max(axis=2, keepdims=True))
        law = np.concatenate([(cost <= 0)[None], law])  # a source that is never wrong comes first
        law = law / law.sum(axis=2, keepdims=True)
        level = (law * cost).sum(axis=2).mean(axis=1)
        apart = np.concatenate([[True], np.diff(np.maximum.accumulate(level)) > 1e-4 * chance])
        law, level = law[apart], level[apart]
        reach = (law @ cost).reshape(len(law), -1)
        table = reach @ law.reshape(len(law), -1).T / len(cost)
        return cls(level, (table + table.T) / 2.0)

    @property
    def largest(self) -> float:
        """The largest cost of a source in the table."""
        return float(self.level[-1])

    def cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the cost between two votes, for the costs of the two sources."""
        return np.asarray(self._surface.ev(left, right))

    def slope(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return its derivative by the cost of the left source."""
        return np.asarray(self._surface.ev(left, right, dx=1))

    @cached_property
    def _surface(self) -> RectBivariateSpline:
        from scipy.interpolate import RectBivariateSpline

        return RectBivariateSpline(self.level, self.level, self.table)
