"""What is known about judges who compare two items at a time, and how good such a judge is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from consilience.arrays import FloatArray, IntArray
from consilience.families.base import Parameters
from consilience.solvers.pair_judges import BIAS_VARIANCE, JudgeTraits

__all__ = ["STEEPEST", "BradleyTerryParameters", "cost_of_judge", "cost_of_pair", "discrimination_of_cost"]

#: Discriminations beyond this are not told apart.
STEEPEST = 60.0
#: Differences of scores over which costs are averaged.
NODES = 400
HALVINGS = 80


@dataclass(frozen=True)
class BradleyTerryParameters(Parameters):
    """Traits of m judges.

    Parameters
    ----------
    discrimination, position_bias, tie
        ``(m,)`` see `consilience.solvers.pair_judges`; a judge who contradicts the others has a negative
        discrimination, and is used.
    discrimination_error, position_bias_error
        Their standard errors.
    covariance
        ``(m, 2, 2)`` of discrimination and bias, as the scores take them into account.
    share
        ``(m,)`` what a vote of each judge counts; below one for copies.
    noise
        ``(m, m)`` correlation of what scores leave unexplained; zero where it is no more than chance.
    run_correlation
        Between answers of one judge to one question.
    effective_judges
        Least and largest number of independent judges that these may be worth.
    comparisons, unparsable, cycles, order_flips
        ``(m,)`` counts of votes and of replies that could not be read; shares of triples that go round in a circle,
        and of pairs shown in both orders of which the answer went with the order.
    per_prompt
        Whether there were many small groups of items rather than one arena.
    equal, position
        Whether all judges have one discrimination, and whether the order shown matters.
    """

    discrimination: FloatArray
    position_bias: FloatArray
    tie: FloatArray
    discrimination_error: FloatArray
    position_bias_error: FloatArray
    covariance: FloatArray
    share: FloatArray
    noise: FloatArray
    comparisons: IntArray
    unparsable: IntArray
    cycles: FloatArray
    order_flips: FloatArray
    slope_mean: float = 1.0
    slope_variance: float = 0.5
    bias_mean: float = 0.0
    bias_variance: float = BIAS_VARIANCE
    run_correlation: float = 0.0
    effective_judges: tuple[float, float] = (0.0, 0.0)
    per_prompt: bool = True
    equal: bool = False
    position: bool = True

    def traits(self, *, exact: bool = False) -> JudgeTraits:
        """Return what the solvers take; `exact` takes discriminations and biases as certain."""
        return JudgeTraits(
            self.discrimination,
            self.position_bias,
            self.tie,
            np.zeros_like(self.covariance) if exact else self.covariance,
            self.slope_mean,
            self.slope_variance,
            self.bias_mean,
            self.bias_variance,
        )

    @property
    def tie_rate(self) -> FloatArray:
        """How often each judge calls two equal items a tie."""
        rate: FloatArray = self.tie / (2.0 + self.tie)
        return rate


def cost_of_judge(discrimination: FloatArray, tie: FloatArray | float = 0.0) -> FloatArray:
    """Return how often a judge puts two items in the wrong order, averaged over items; ties count half.

    Scores are standard normal, so the difference of two is normal of variance 2.

    Examples
    --------
    >>> cost_of_judge(np.array([-60.0, 0.0, 60.0])).round(2).tolist()
    [0.99, 0.5, 0.01]
    """
    eta = np.clip(np.asarray(discrimination, dtype=np.float64), -STEEPEST, STEEPEST)[..., None] * _differences()
    nu = np.asarray(tie, dtype=np.float64)[..., None]
    size = np.exp(-np.abs(eta) / 2.0)
    wrong = np.where(eta > 0, size**2, 1.0)
    cost: FloatArray = ((wrong + nu * size / 2.0) / (1.0 + size**2 + nu * size)).mean(axis=-1)
    return cost


def cost_of_pair(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return how often two independent judges of these discriminations contradict each other."""
    gap = _differences()
    one, two = (1.0 / (1.0 + np.exp(-np.clip(np.asarray(s)[..., None] * gap, -80, 80))) for s in (left, right))
    cost: FloatArray = (one * (1.0 - two) + two * (1.0 - one)).mean(axis=-1)
    return cost


def discrimination_of_cost(cost: FloatArray) -> FloatArray:
    """Return the discrimination of a judge of this cost; the inverse of `cost_of_judge` without ties."""
    wanted = np.atleast_1d(np.asarray(cost, dtype=np.float64))
    low, high = np.full(wanted.shape, -STEEPEST), np.full(wanted.shape, STEEPEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        too_steep = cost_of_judge(middle) < wanted
        low, high = np.where(too_steep, low, middle), np.where(too_steep, middle, high)
    return np.asarray((low + high) / 2.0).reshape(np.shape(cost))


@lru_cache(maxsize=1)
def _differences() -> FloatArray:
    """Return sizes of the difference of two scores, equally probable."""
    from statistics import NormalDist

    law = NormalDist(0.0, np.sqrt(2.0))
    return np.array([law.inv_cdf(0.5 + (node + 0.5) / (2.0 * NODES)) for node in range(NODES)])
