"""From expected cost to weight and back, for labels in a finite set (the paper's backward mapping).

A source of weight theta says l when the truth is y with probability proportional to ``exp(-theta cost[y, l])``. Its
expected cost falls as theta grows, so each follows from the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray
from consilience.exceptions import DistanceError

__all__ = ["Conditional", "CostCurve", "conditional", "pair_cost"]

#: Numbers held at once while many weights are evaluated.
_CHUNK = 1 << 21
#: Beyond any weight that matters, and far enough from overflow to be multiplied by.
_LARGEST = 1e300


class Conditional(NamedTuple):
    """The law of a vote for each of k truths.

    `probability` is ``(k, k)``, rows the truth. Log of the normalizing sum, mean and variance of the cost are ``(k,)``.
    """

    probability: FloatArray
    log_normalizer: FloatArray
    mean_cost: FloatArray
    variance: FloatArray


def conditional(cost: FloatArray, theta: float) -> Conditional:
    """Return the law of a vote given the truth, for a source of any weight and ``(k, k)`` costs by truth and vote.

    Examples
    --------
    >>> law = conditional(np.array([[0.0, 1.0], [1.0, 0.0]]), theta=np.log(3.0))
    >>> law.probability.round(12)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    >>> law.mean_cost.round(12), law.variance.round(12)
    (array([0.25, 0.25]), array([0.1875, 0.1875]))
    """
    theta = float(np.clip(theta, -_LARGEST, _LARGEST))
    weights = _boltzmann(cost, np.ones_like(cost), np.array([theta]))[0]
    total = weights.sum(axis=1)
    probability = weights / total[:, None]
    mean = (probability * cost).sum(axis=1)
    variance = (probability * (cost - mean[:, None]) ** 2).sum(axis=1)
    with np.errstate(over="ignore"):
        log_normalizer = np.log(total) - theta * _best(cost, theta)
    return Conditional(probability, log_normalizer, mean, variance)


def pair_cost(cost: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the mean cost between two independent sources of these weights, if all labels are as often the truth."""
    weights, position = np.unique(np.concatenate([left, right]), return_inverse=True)
    laws = np.stack([conditional(cost, float(weight)).probability for weight in weights])
    reach = (laws @ cost).reshape(len(weights), -1)
    table = reach @ laws.reshape(len(weights), -1).T / len(cost)
    first, second = np.split(position, 2)
    return np.asarray(table[first, second])


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Expected cost as a function of weight, exactly, with its inverse.

    Truths whose costs are the same numbers in another order count as one, and equal costs in a row as one: a graph with
    hop distances costs little more than its diameter.

    Parameters
    ----------
    cost, count
        ``(r, u)`` distinct costs of each kind of truth, and how many labels have them; 0 in unused cells.
    own_cost, share
        ``(r,)`` cost of saying the truth, and share of the truths that are of this kind.
    limit
        Weights are kept between minus and plus this.

    Examples
    --------
    >>> curve = CostCurve.of(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> curve.expected_cost([0.0, np.log(3.0)]).round(12), curve.accuracy(np.log(3.0)).round(12)
    (array([0.5 , 0.25]), np.float64(0.75))
    >>> np.exp(curve.weight_from_cost([0.25, 0.5, 0.75])).round(9)
    array([3.        , 1.        , 0.33333333])
    """

    cost: FloatArray
    count: FloatArray
    own_cost: FloatArray
    share: FloatArray
    limit: float

    @classmethod
    def of(cls, cost: FloatArray, *, leave_out_truth: bool = False) -> CostCurve:
        """Return the curve of a ``(k, k)`` table: the cost of saying l (column) when the truth is y (row).

        The largest weight makes the smallest positive cost a one-in-a-billion event.

        Parameters
        ----------
        leave_out_truth
            For a table of labels drawn at random from a larger space, where a truth is in the table only by being
            drawn: votes then fall on the other labels.
        """
        cost = np.asarray(cost, dtype=float)
        if cost.ndim != 2 or cost.shape[0] != cost.shape[1] or not np.isfinite(cost).all():
            raise DistanceError(
                f"The costs between labels have shape {cost.shape}; they must be a square table of finite numbers."
            )
        positive = cost[cost > 0]
        limit = float(np.log(1e9) / positive.min()) if len(positive) else 1.0
        return cls(*_condensed(cost, leave_out_truth), limit=min(limit, _LARGEST))

    def expected_cost(self, theta: npt.ArrayLike) -> FloatArray:
        """Return the expected cost of a source of each weight, in the shape of `theta`."""
        return self._evaluate(theta)[0]

    def slope(self, theta: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the expected cost: minus the mean variance of the cost."""
        return self._evaluate(theta)[1]

    def accuracy(self, theta: npt.ArrayLike) -> FloatArray:
        """Return the probability of saying exactly the truth, in the shape of `theta`."""
        return self._evaluate(theta)[2]

    def weight_from_cost(self, cost: npt.ArrayLike) -> FloatArray:
        """Return the weight that has each expected cost, in the shape of `cost`.

        Costs out of reach give ``limit`` or ``-limit``; NaN, or a space where all labels cost the same, gives 0.
        """
        return self._invert(lambda theta: self._evaluate(theta)[:2], cost)

    def weight_from_accuracy(self, accuracy: npt.ArrayLike) -> FloatArray:
        """Return the weight that has each probability of saying exactly the truth.

        Needs the truth to be the cheapest label. Out of reach and NaN as in `weight_from_cost`.
        """

        def falling(theta: FloatArray) -> tuple[FloatArray, FloatArray]:
            _, _, value, slope = self._evaluate(theta)
            return -value, -slope

        return self._invert(falling, -np.asarray(accuracy, dtype=float))

    def _evaluate(self, theta: npt.ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return expected cost, its slope, accuracy and its slope."""
        weight = np.asarray(theta, dtype=float)
        flat = weight.ravel()
        result = np.empty((4, len(flat)))
        step = max(1, _CHUNK // self.cost.size)
        for first in range(0, len(flat), step):
            part = flat[first : first + step]
            weights = _boltzmann(self.cost, self.count, part)
            total = weights.sum(axis=2)
            mean = (weights * self.cost).sum(axis=2) / total
            spread = (weights * (self.cost - mean[..., None]) ** 2).sum(axis=2) / total
            own = _energy(self.own_cost - _best(self.cost, part), part) / total
            here = result[:, first : first + step]
            here[0] = mean @ self.share
            here[1] = -(spread @ self.share)
            here[2] = own @ self.share
            here[3] = (own * (mean - self.own_cost)) @ self.share
        shaped = result.reshape(4, *weight.shape)
        return shaped[0, ...], shaped[1, ...], shaped[2, ...], shaped[3, ...]

    def _invert(
        self, falling: Callable[[FloatArray], tuple[FloatArray, FloatArray]], target: npt.ArrayLike
    ) -> FloatArray:
        """Return where a falling function meets each target: Newton steps kept inside a bracket."""
        wanted = np.asarray(target, dtype=float)
        flat = wanted.ravel()
        lowest, highest = falling(np.array([self.limit, -self.limit]))[0]
        if not lowest < highest:
            return np.zeros(wanted.shape)
        root = np.where(flat <= lowest, self.limit, np.where(flat >= highest, -self.limit, 0.0))
        active = np.flatnonzero((flat > lowest) & (flat < highest))
        left, right = np.full(len(flat), -self.limit), np.full(len(flat), self.limit)
        width = right - left
        for _ in range(200):
            if not len(active):
                break
            here, goal = root[active], flat[active]
            value, slope = falling(here)
            left[active] = np.where(value > goal, here, left[active])
            right[active] = np.where(value > goal, right[active], here)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = here - (value - goal) / slope
            inside = (newton > left[active]) & (newton < right[active])
            # A step that does not halve the last one is crawling along a flat stretch: bisect.
            useful = inside & (np.abs(newton - here) < width[active] / 2)
            step_to = np.where(useful, newton, (left[active] + right[active]) / 2)
            settled = (value == goal) | (np.abs(newton - here) <= 1e-15 * np.abs(here))
            step_to = np.where(settled, here, step_to)
            width[active] = np.abs(step_to - here)
            root[active] = step_to
            tight = right[active] - left[active] <= 1e-15 * np.abs(step_to)
            active = active[~(settled | tight)]
        return root.reshape(wanted.shape)


def _best(cost: FloatArray, theta: FloatArray | float) -> FloatArray:
    """Return the cost of each truth's likeliest label: the lowest, or the highest if theta < 0."""
    sign = np.asarray(theta)[..., None]
    return np.where(sign < 0, cost.max(axis=-1), cost.min(axis=-1))


def _energy(gap: FloatArray, theta: FloatArray) -> FloatArray:
    """Return exp(-theta gap), at most 1 if theta and gap have the same sign."""
    size = np.clip(theta, -_LARGEST, _LARGEST).reshape(-1, *[1] * (gap.ndim - 1))
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(-size * gap)


def _boltzmann(cost: FloatArray, count: FloatArray, theta: FloatArray) -> FloatArray:
    """Return unnormalised probabilities of shape (t, r, u), 1 for each truth's likeliest label."""
    return count * _energy(cost - _best(cost, theta)[..., None], theta)


def _condensed(cost: FloatArray, leave_out_truth: bool) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return distinct costs, counts, own cost and share, one row per kind of truth."""
    kinds: dict[bytes, tuple[FloatArray, FloatArray, float]] = {}
    often: Counter[bytes] = Counter()
    for truth, row in enumerate(cost):
        votes = np.delete(row, truth) if leave_out_truth else row
        values, counts = np.unique(votes, return_counts=True)
        key = values.tobytes() + counts.tobytes() + row[truth].tobytes()
        kinds[key] = values, counts.astype(float), float(row[truth])
        often[key] += 1
    rows = list(kinds.values())
    width = max(len(values) for values, _, _ in rows)
    # Unused cells repeat a cost of their own row, so that its extremes stay what they are.
    distinct = np.array([np.pad(values, (0, width - len(values)), "edge") for values, _, _ in rows])
    count = np.array([np.pad(counts, (0, width - len(counts))) for _, counts, _ in rows])
    share = np.array([often[key] for key in kinds]) / len(cost)
    return distinct, count, np.array([own for _, _, own in rows]), share
