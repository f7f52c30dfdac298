"""The parameters of sources known through a cost."""

from __future__ import annotations

from dataclasses import dataclass

from consilience.arrays import FloatArray
from consilience.families.base import Parameters

__all__ = ["DistanceParameters"]


@dataclass(frozen=True)
class DistanceParameters(Parameters):
    """Expected costs and weights of sources.

    `chance` is the mean cost between unrelated labels, `doubt` the weight of a source that is only a
    quarter better than that; both scale the confidence.
    """

    expected_cost: FloatArray
    weight: FloatArray
    standard_error: FloatArray
    cost_standard_error: FloatArray
    correlation: FloatArray
    chance: float
    doubt: float
