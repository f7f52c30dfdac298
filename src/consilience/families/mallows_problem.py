"""What all methods for rankings look at, and the parameters they end in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Request, Sums
from consilience.families.mallows_moments import PairAgreement
from consilience.solvers.mallows import DistanceCurve, pair_retention

if TYPE_CHECKING:
    from consilience.families.mallows import MallowsFamily, MallowsParameters

__all__ = ["Problem", "expected_agreement", "parameters_of", "quality_of"]

#: Up to this share of partial or tied votes, pair moments are as good as the likelihood.
FEW_INCOMPLETE = 0.2
#: Sources that depend on each other are weighed by pair moments if this share of the pairs of items is ordered by two.
MUCH_IN_COMMON = 0.2


@dataclass(frozen=True)
class Problem:
    """What all methods look at."""

    family: MallowsFamily
    sums: Sums
    pairs: PairAgreement
    request: Request

    @property
    def usable(self) -> BoolArray:
        """The pairs that may be used as independent."""
        return self.pairs.usable(self.request.dependent)

    @property
    def active(self) -> BoolArray:
        """The sources that order at least one pair of items."""
        return np.array([self.curve(source).total_pairs > 0 for source in range(len(self.pairs.both))])

    def curve(self, source: int) -> DistanceCurve:
        """Return the expected discordances of all votes of a source, by weight."""
        return DistanceCurve.of(self.sums["buckets"][source])

    @property
    def is_partial(self) -> bool:
        """Whether some vote leaves out items of its row."""
        return int(self.sums["partial_votes"]) > 0

    @property
    def share_incomplete(self) -> float:
        """Share of the votes that leave out items or hold ties."""
        votes = max(int(np.diag(self.sums["both"]).sum()), 1)
        return (int(self.sums["partial_votes"]) + int(self.sums["tied_votes"])) / votes

    @property
    def many_incomplete(self) -> bool:
        """Whether so many votes leave out items or hold ties that pair moments say too little, and not exactly."""
        return self.share_incomplete > FEW_INCOMPLETE

    @property
    def much_in_common(self) -> bool:
        """Whether, on the rows that two sources share, many of the pairs of items that one orders are ordered by both.

        Then pair moments are precise, whatever is left out.
        """
        rows = np.maximum(self.sums["both"], 1)
        ordered = np.array([self.curve(source).total_pairs for source in range(len(rows))])
        alone = np.sqrt(np.maximum(ordered / np.diag(rows), 1e-12))
        common = (self.pairs.both / rows / np.outer(alone, alone))[np.triu(self.usable)]
        return bool(len(common) and common.mean() >= MUCH_IN_COMMON)

    @property
    def is_tied(self) -> bool:
        """Whether some vote holds ties."""
        return int(self.sums["tied_votes"]) > 0


def parameters_of(problem: Problem, weight: FloatArray, error: FloatArray) -> MallowsParameters:
    """Return the parameters for these weights; a source that never votes has the mean weight."""
    from consilience.families.mallows import MallowsParameters

    active = problem.active
    if active.any():
        weight = np.where(active, weight, weight[active].mean())
    m = len(weight)
    cost, slope = np.zeros(m), np.zeros(m)
    votes = np.maximum(np.diag(problem.sums["both"]), 1)
    for source in range(m):
        curve = problem.curve(source) if active[source] else problem.family.typical_curve
        count = votes[source] if active[source] else 1
        cost[source] = curve.mean(weight[source]) / count
        slope[source] = -curve.variance(weight[source]) / count
    return MallowsParameters(
        weight=weight,
        standard_error=np.where(active, error, np.inf),
        correlation=_correlation(problem, weight),
        expected_cost=cost,
        cost_slope=slope,
    )


def _correlation(problem: Problem, weight: FloatArray) -> FloatArray:
    """Return how far dependent sources repeat each other: 0 if as close as independent ones, 1 for copies."""
    dependent = problem.request.dependent & (problem.pairs.both > 0)
    correlation = np.zeros(dependent.shape)
    if dependent.any():
        quality = quality_of(problem.family, weight)
        alone = np.sqrt(np.maximum(1.0 - quality**2, 1e-9))
        excess = (problem.pairs.value - expected_agreement(problem.family, weight)) / np.outer(alone, alone)
        correlation[dependent] = np.clip(excess, 0.0, 1.0)[dependent]
    return correlation


def quality_of(family: MallowsFamily, weight: FloatArray) -> FloatArray:
    """Return the mean sign of agreement with the truth, ``(m,)``: 1 for a perfect source, 0 for a random one."""
    typical = family.typical
    quality: FloatArray = 1.0 - 4.0 * family.expected_cost(weight) / (typical * (typical - 1))
    return quality


def expected_agreement(family: MallowsFamily, weight: FloatArray) -> FloatArray:
    """Return the mean sign of agreement of independent sources of these weights, ``(m, m)``."""
    # The mean over pairs of items, k places apart in the truth, of the chance that both keep their order.
    gap = np.arange(1, family.typical)
    retention = pair_retention(np.asarray(weight, dtype=float), family.typical - 1)
    share = (family.typical - gap) / (family.typical * (family.typical - 1) / 2.0)
    agreement: FloatArray = (retention * share) @ retention.T
    return agreement
