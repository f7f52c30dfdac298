"""Moments of the Mallows law: how the weight of a source and the number of its mistakes belong together.

Under ``p(vote | truth) ~ exp(-theta * discordant pairs)`` a pair of items ``k`` places apart in the truth keeps its
order with a probability that depends on ``theta`` and ``k`` only. Everything below follows from that one function:
``s`` ranked items have ``s - k`` pairs at gap ``k``, so that means over votes are sums over gaps. Two independent
sources agree with mean sign ``sum_k share_k c_k(theta_a) c_k(theta_b)``, whatever the law of the truth. The textbook
forms cancel catastrophically near ``theta = 0``; here a power series takes over wherever ``|theta| * (k + 1) < 1`` and
``expm1`` does the rest, so that ten digits survive everywhere.

Ties are covered as well. A bucket order over ``s`` items with buckets of sizes ``b_1, b_2, ...`` has
``log Z = log Z_s - sum_j log Z_{b_j}`` when discordances are counted across buckets (the q-multinomial), so it acts
like one ranking of ``s`` items minus one ranking per bucket: see `pairs_at_gaps`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.label_types.rankings.labels import UNSEEN, rank_items

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
#: (x / 2) coth(x / 2) = 1 + sum_n _COTH[n] x^(2 n + 2); ten terms reach full precision for |x| < 1.
_COTH = tuple(value / factorial(2 * index + 2) for index, value in enumerate(_BERNOULLI))
#: Below this value of |theta| (k + 1) the closed form loses digits and the series is used.
_SERIES_BELOW = 1.0


def pair_retention(theta: npt.ArrayLike, gaps: int, *, slope: bool = False) -> FloatArray:
    """Return how well a source keeps the order of two items that are 1, 2, ... places apart in the truth.

    ``c_k = E[g_ij(vote) g_ij(truth)]`` with ``g = +1`` or ``-1`` for the order of a pair: 1 for a perfect source,
    0 for a random one, negative for one that reverses. In closed form
    ``c_k = (k + 1) coth(theta (k + 1) / 2) - k coth(theta k / 2)``, an odd function of theta.
    Neighbors follow ``tanh(theta / 2)``; items further apart are harder to confuse.

    Weights may have any shape and either sign; the result is ``(*theta.shape, gaps)``. `slope` asks for the derivative
    by theta.
    """
    signed, gap = np.asarray(theta, dtype=float)[..., None], np.arange(1.0, gaps + 1)
    size, steps = np.abs(signed), (gap, gap + 1.0)
    small = size * steps[1] < _SERIES_BELOW
    # Sum 2 B_2n / (2n)! theta^(2n - 1) ((k + 1)^2n - k^2n), or its derivative, where it converges:
    # theta^(2n - 2) ((k + 1)^2n - k^2n) by a recursion that never divides by theta.
    bounded = np.where(small, size, 0.0)
    near, far = ((bounded * step) ** 2 for step in steps)
    difference, power = 2.0 * gap + 1.0 + 0.0 * bounded, gap**2 + 0.0 * bounded
    series = np.zeros(small.shape)
    for index, coefficient in enumerate(_COTH):
        series += 2.0 * coefficient * (2 * index + 1 if slope else 1) * difference
        difference = difference * far + power * (far - near)
        power = power * near
    safe = np.where(small, 1.0, size)
    if slope:
        near, far = (step**2 * np.exp(-safe * step) / np.expm1(-safe * step) ** 2 for step in steps)
        return np.where(small, series, 2.0 * (near - far))
    near, far = (step * np.exp(-safe * step) / -np.expm1(-safe * step) for step in steps)
    return np.asarray(np.sign(signed) * np.where(small, series * bounded, 1.0 - 2.0 * (near - far)))


def pairs_at_gaps(histogram: npt.ArrayLike) -> FloatArray:
    """Return how many pairs of items are at gap 1, 2, ... ``(..., r - 1)`` in votes over s items ``(..., r + 1)``."""
    counts = np.asarray(histogram, dtype=float)
    size = np.arange(counts.shape[-1])
    gap = np.arange(1, max(counts.shape[-1] - 1, 1))
    return np.asarray(counts @ np.maximum(size[:, None] - gap, 0).astype(float))


@dataclass(frozen=True, eq=False)
class RetentionCurve:
    """Mean sign of agreement with the truth (the quality) against the weight, for votes of given sizes."""

    share: FloatArray  # (gaps,) of the pairs of items at gap 1, 2, ...; adds up to one

    @classmethod
    def of_items(cls, items: int) -> RetentionCurve:
        """Return the curve of complete rankings of this many items."""
        return cls.of_pairs(np.arange(items - 1.0, 0.0, -1.0))

    @classmethod
    def of_pairs(cls, pairs: FloatArray) -> RetentionCurve:
        """Return the curve of votes with these numbers of pairs at each gap; neighbors alone where there are none."""
        total = float(pairs.sum())
        return cls(pairs / total) if total > 0 else cls(np.eye(1, max(len(pairs), 1))[0])

    def quality(self, weight: npt.ArrayLike) -> FloatArray:
        """Return the mean sign of agreement with the truth, for any shape of weights."""
        return np.asarray(pair_retention(weight, len(self.share)) @ self.share)

    def slope(self, weight: npt.ArrayLike) -> FloatArray:
        """Return the derivative of `quality`."""
        return np.asarray(pair_retention(weight, len(self.share), slope=True) @ self.share)

    def agreement(self, weight: FloatArray) -> FloatArray:
        """Return the mean sign of agreement ``(m, m)`` of independent sources of these weights."""
        kept = pair_retention(weight, len(self.share))
        return np.asarray((kept * self.share) @ kept.T)

    def weight(self, quality: npt.ArrayLike, limit: float = 12.0) -> FloatArray:
        """Return the weight of this quality, between ``-limit`` and ``limit``."""
        target = np.asarray(quality, dtype=float)
        start = np.arctanh(np.clip(target, -0.999, 0.999)) / float(self.slope(0.0))
        return find_root(lambda weight: (target - self.quality(weight), self.slope(weight)), start, -limit, limit)


def find_root(
    function: Callable[[FloatArray], tuple[FloatArray, FloatArray]], start: FloatArray, low: float, high: float
) -> FloatArray:
    """Return where a falling function is zero, elementwise, by Newton steps that bisection keeps within bounds.

    The function returns its values and minus its slopes.
    """
    found: FloatArray = np.clip(start, low, high)
    least, most = np.full(found.shape, low), np.full(found.shape, high)
    for _ in range(100):
        value, slope = function(found)
        least, most = np.where(value >= 0, found, least), np.where(value <= 0, found, most)
        proposal = found + np.divide(value, slope, out=np.full(found.shape, np.inf), where=slope > 0)
        inside = (proposal > least) & (proposal < most)
        before, found = found, np.where(inside, proposal, 0.5 * (least + most))
        if np.all(np.abs(found - before) <= 1e-12 * (1.0 + np.abs(before))):
            break
    return found


# --- draws --------------------------------------------------------------------------------------------------


def sample_mallows(truth: npt.NDArray[Any], seen: BoolArray, weight: float, uniforms: FloatArray) -> IntArray:
    """Return one Mallows vote per row over the items a source sees.

    Repeated insertion: the seen items come in their true order, and each is put v places before the end of the list so
    far with probability proportional to ``exp(-weight * v)``, which is the number of discordances it causes.

    Truth, votes and uniform numbers from [0, 1), the only randomness there is, are ``(n, r)``; -1 is an item that does
    not exist or is not seen. A weight of 0 is a random order; negative weights prefer the reversed truth.
    """
    ranked = seen & (truth >= 0)
    place = np.zeros(truth.shape, dtype=np.int64)  # of the seen items, in their true order
    size = abs(weight)
    for count in range(1, truth.shape[1]):
        uniform = uniforms[:, count]
        if size == 0.0:
            back = uniform * (count + 1)
        else:  # the inverse of the truncated geometric distribution function
            back = -np.log1p(uniform * np.expm1(-size * (count + 1))) / size
        back = np.minimum(back, count).astype(np.int64)
        target = back if weight < 0.0 else count - back
        place[:, :count] += place[:, :count] >= target[:, None]
        place[:, count] = target
    if ranked.all():
        return np.take_along_axis(place, truth.astype(np.int64), axis=1)
    rank = rank_items(truth, ranked, 0)
    # Items that nobody sees come last in true order, so that they were inserted among the others: close the gaps.
    votes = np.take_along_axis(place, rank.astype(np.int64), axis=1)
    return rank_items(votes, ranked, UNSEEN).astype(np.int64)
