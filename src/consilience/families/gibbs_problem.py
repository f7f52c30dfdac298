"""What all methods for finite spaces look at, and the parameters they end in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Request, Sums
from consilience.families.pair_costs import PairCosts, excess_correlation

if TYPE_CHECKING:
    from consilience.families.gibbs import GibbsFamily, GibbsParameters

__all__ = ["MAX_WEIGHT", "SPREAD", "Problem", "parameters_of"]

MAX_WEIGHT = 8.0
#: Width of the weak pull of each weight towards the mean weight.
SPREAD = 1.0


@dataclass(frozen=True)
class Problem:
    """Sums, pair costs and the prior over the labels."""

    family: GibbsFamily
    sums: Sums
    pairs: PairCosts
    request: Request
    prior: FloatArray

    @property
    def usable(self) -> BoolArray:
        """The pairs that may be used as independent."""
        return self.pairs.usable(self.request.dependent)

    @property
    def active(self) -> BoolArray:
        """The sources that vote."""
        active: BoolArray = self.sums["votes"].sum(axis=1) > 0
        return active


def parameters_of(problem: Problem, weight: FloatArray, error: FloatArray) -> GibbsParameters:
    """Return the parameters for these weights; a source that never votes has the mean weight."""
    from consilience.families.gibbs import GibbsParameters

    active = problem.active
    if active.any():
        weight = np.where(active, weight, weight[active].mean())
    family = problem.family
    correlation = excess_correlation(problem.pairs, family.pair_cost, weight, problem.request.dependent)
    return GibbsParameters(
        weight=weight,
        standard_error=np.where(active, error, np.inf),
        prior=problem.prior,
        correlation=correlation,
        normalised=not problem.request.prior_is("gibbs"),
    )
