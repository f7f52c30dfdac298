"""From expected cost to weight and back (the paper's backward mapping).

A source of weight theta says l when the truth is y with probability proportional to ``exp(-theta cost[y, l])``. Its
expected cost falls as theta grows, so each follows from the other: exactly for labels in a finite set, and
approximately for a space known only through the costs among some of its labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray

#: Numbers in memory at a time while many weights are evaluated.
_CHUNK = 1 << 21
#: Larger than any relevant weight, and small enough to multiply without overflow.
_LARGEST = 1e300


class Conditional(NamedTuple):
    """The law of a vote for each of k truths."""

    probability: FloatArray  # (k, k), rows the truth
    log_normalizer: FloatArray  # (k,) log of the normalizing sum
    mean_cost: FloatArray  # (k,)


def conditional(cost: FloatArray, theta: float) -> Conditional:
    """Return the law of a vote given the truth, for a source of any weight and ``(k, k)`` costs by truth and vote.

    Examples
    --------
    >>> law = conditional(np.array([[0.0, 1.0], [1.0, 0.0]]), theta=np.log(3.0))
    >>> law.probability.round(12)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    theta = float(np.clip(theta, -_LARGEST, _LARGEST))
    weights, best = (part[0] for part in _boltzmann(cost, np.array([theta])))
    total = weights.sum(axis=1)
    probability = weights / total[:, None]
    with np.errstate(over="ignore"):
        return Conditional(probability, np.log(total) - theta * best, (probability * cost).sum(axis=1))


def pair_agreement(cost: FloatArray, weights: FloatArray, measure: FloatArray | None = None) -> FloatArray:
    """Return how much two independent sources of these weights agree, if all labels are as often the truth.

    It is by how much their votes on one item are closer than their votes on different items, over how far apart votes
    of one source on different items are (the root of both sources'). Noise moves votes away from the edges, so that
    those of bad sources scatter less. Another `measure` ``(k, k)`` of votes that follow `cost` may be given.
    """
    measure = cost if measure is None else measure
    laws = np.stack([conditional(cost, float(weight)).probability for weight in weights])
    usual = laws.mean(axis=1)
    unrelated = usual @ measure @ usual.T
    together = (laws @ measure).reshape(len(weights), -1) @ laws.reshape(len(weights), -1).T / len(cost)
    own = np.maximum(np.diag(unrelated), 1e-300)
    return np.asarray((unrelated - together) / np.sqrt(np.outer(own, own)))


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Expected cost as a function of weight, exactly, with its inverse.

    Truths whose costs are the same numbers in another order count as one, and equal costs in a row as one: a graph with
    hop distances costs little more than its diameter.

    Examples
    --------
    >>> curve = CostCurve.of(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> curve.expected_cost([0.0, np.log(3.0)]).round(12)
    array([0.5 , 0.25])
    >>> np.exp(curve.weight_from_cost([0.25, 0.5, 0.75])).round(9)
    array([3.        , 1.        , 0.33333333])
    """

    cost: FloatArray  # (r, u) distinct costs of each kind of truth
    count: FloatArray  # (r, u) how many labels have them; 0 in unused cells
    own_cost: FloatArray  # (r,) cost of saying the truth
    share: FloatArray  # (r,) share of the truths that are of this kind
    limit: float  # weights are kept between minus and plus this

    @classmethod
    def of(cls, cost: FloatArray, *, leave_out_truth: bool = False) -> CostCurve:
        """Return the curve of a ``(k, k)`` table: the cost of saying l (column) when the truth is y (row).

        The largest weight makes the smallest positive cost a one-in-a-billion event. With `leave_out_truth` votes fall
        on the other labels: for labels drawn from a larger space, where a truth is in the table only by being drawn.
        """
        positive = cost[cost > 0]
        limit = min(float(np.log(1e9) / positive.min()) if len(positive) else 1.0, _LARGEST)
        votes = cost[~np.eye(len(cost), dtype=bool)].reshape(len(cost), -1) if leave_out_truth else cost
        kinds, often = np.unique(np.column_stack([np.diag(cost), np.sort(votes)]), axis=0, return_counts=True)
        rows = [np.unique(kind[1:], return_counts=True) for kind in kinds]
        width = max(len(values) for values, _ in rows)
        # Unused cells repeat a cost of their row, so that its extremes do not change.
        distinct = np.array([np.pad(values, (0, width - len(values)), "edge") for values, _ in rows])
        count = np.array([np.pad(counts, (0, width - len(counts))) for _, counts in rows], dtype=float)
        return cls(distinct, count, kinds[:, 0], often / len(cost), limit)

    def expected_cost(self, theta: npt.ArrayLike) -> FloatArray:
        """Return the expected cost of a source of each weight, in the shape of `theta`."""
        return self._evaluate(theta)[0, ...]

    def slope(self, theta: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the expected cost: minus the mean variance of the cost."""
        return self._evaluate(theta)[1, ...]

    def weight_from_cost(self, cost: npt.ArrayLike) -> FloatArray:
        """Return the weight that has each expected cost, in the shape of `cost`.

        Costs out of reach give ``limit`` or ``-limit``; NaN, or a space where all labels cost the same, gives 0.
        """
        return self._invert(lambda theta: self._evaluate(theta)[:2], cost)

    def weight_from_accuracy(self, accuracy: npt.ArrayLike) -> FloatArray:
        """Return the weight that has each probability of saying exactly the truth.

        Needs the truth to be the cheapest label. Out of reach and NaN as in `weight_from_cost`.
        """
        return self._invert(lambda theta: -self._evaluate(theta)[2:], -np.asarray(accuracy, dtype=float))

    def _evaluate(self, theta: npt.ArrayLike) -> FloatArray:
        """Return expected cost, its slope, accuracy and its slope, ``(4, *theta.shape)``."""
        weight = np.asarray(theta, dtype=float)
        flat = weight.ravel()
        result = np.empty((4, len(flat)))
        step = max(1, _CHUNK // self.cost.size)
        for first in range(0, len(flat), step):
            part = flat[first : first + step]
            weights, best = _boltzmann(self.cost, part)
            weights *= self.count
            total = weights.sum(axis=2)
            mean = (weights * self.cost).sum(axis=2) / total
            spread = (weights * (self.cost - mean[..., None]) ** 2).sum(axis=2) / total
            own = _energy(self.own_cost - best, part[:, None]) / total
            each = np.stack([mean, -spread, own, own * (mean - self.own_cost)])
            result[:, first : first + step] = each @ self.share
        return result.reshape(4, *weight.shape)

    def _invert(self, falling: Callable[[FloatArray], FloatArray], target: npt.ArrayLike) -> FloatArray:
        """Return where a falling function, given with its slope, meets each target."""
        wanted = np.asarray(target, dtype=float)
        lowest, highest = falling(np.array([self.limit, -self.limit]))[0]
        if not lowest < highest:
            return np.zeros(wanted.shape)

        def excess(theta: FloatArray) -> tuple[FloatArray, FloatArray]:
            value, slope = falling(theta)
            return value - wanted, -slope

        root = find_root(excess, np.zeros(wanted.shape), -self.limit, self.limit)
        return np.where(wanted <= lowest, self.limit, np.where(wanted >= highest, -self.limit, root))


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
    step: float  # q, the step of the costs; 0 if they are continuous

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
    chance = max(float(others.mean()), 1e-150)  # its square is still finite
    spread = max(float(others.var(axis=1).mean()), 1e-12 * chance**2)
    return SteppedCurve(chance, chance**2 / spread, step or cost_step(others[others > 0]))


def cost_step(positive: FloatArray) -> float:
    """Return the step in which positive costs come, 0 where hardly any comes twice."""
    values = np.unique(positive)
    if len(values) == 0 or len(values) > 0.5 * len(positive):
        return 0.0
    gaps = np.diff(values)
    return float(min(values[0], gaps[gaps > 1e-9 * values[-1]].min(initial=np.inf)))


def find_root(
    function: Callable[[FloatArray], tuple[FloatArray, FloatArray]], start: FloatArray, low: float, high: float
) -> FloatArray:
    """Return where a falling function is zero, elementwise, by Newton steps that bisection keeps within bounds.

    The function returns its values and minus its slopes.
    """
    found: FloatArray = np.clip(start, low, high)
    least, most = np.full(found.shape, low), np.full(found.shape, high)
    width = most - least
    for _ in range(200):
        value, slope = function(found)
        least, most = np.where(value >= 0, found, least), np.where(value <= 0, found, most)
        with np.errstate(all="ignore"):
            newton = found + value / slope
        step = np.abs(newton - found)
        settled = ~(np.abs(value) > 0) | (step <= 1e-12 * np.abs(found)) | (most - least <= 1e-15 * np.abs(found))
        if settled.all():
            break
        # If a step is more than half the last one, the curve is flat here, so bisect.
        useful = (newton > least) & (newton < most) & (step < width / 2)
        moved = np.where(settled, found, np.where(useful, newton, (least + most) / 2))
        found, width = moved, np.abs(moved - found)
    return found


def _boltzmann(cost: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return relative probabilities ``(t, r, u)``, 1 for each truth's likeliest label, and its cost ``(t, r)``."""
    best = np.where(theta[:, None] < 0, cost.max(axis=-1), cost.min(axis=-1))
    return _energy(cost - best[..., None], theta[:, None, None]), best


def _energy(gap: FloatArray, theta: FloatArray) -> FloatArray:
    """Return exp(-theta gap), at most 1 if theta and gap have the same sign."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(-np.clip(theta, -_LARGEST, _LARGEST) * gap)
