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

from dataclasses import dataclass
from math import factorial

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray

__all__ = ["RetentionCurve", "pair_retention", "pair_retention_slope", "pairs_at_gaps"]

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
#: (x / 2) coth(x / 2) = 1 + sum_n _COTH[n] x^(2 n + 2); ten terms reach full precision for |x| < 1.
_COTH = tuple(value / factorial(2 * index + 2) for index, value in enumerate(_BERNOULLI))
#: Below this value of |theta| (k + 1) the closed form loses digits and the series is used.
_SERIES_BELOW = 1.0


def pair_retention(theta: npt.ArrayLike, gaps: int) -> FloatArray:
    """Return how well a source keeps the order of two items that are 1, 2, ... places apart in the truth.

    ``c_k = E[g_ij(vote) g_ij(truth)]`` with ``g = +1`` or ``-1`` for the order of a pair: 1 for a perfect source,
    0 for a random one, negative for one that reverses. In closed form
    ``c_k = (k + 1) coth(theta (k + 1) / 2) - k coth(theta k / 2)``, an odd function of theta.

    Parameters
    ----------
    theta
        Weights of any shape and either sign.
    gaps
        Largest gap, one less than the number of items.

    Returns
    -------
    array of shape (*theta.shape, gaps)

    Examples
    --------
    Neighbors follow ``tanh(theta / 2)``; items further apart are harder to confuse.

    >>> pair_retention(np.array([0.0, 1.0]), 3).round(3)
    array([[0.   , 0.   , 0.   ],
           [0.462, 0.688, 0.835]])
    """
    size, gap = _grid(theta, gaps)
    small = size * (gap + 1.0) < _SERIES_BELOW
    safe = np.where(small, 1.0, size)
    confused = gap * _inverse_expm1(safe * gap) - (gap + 1.0) * _inverse_expm1(safe * (gap + 1.0))
    kept = np.where(small, _series(size, gap, derivative=False), 1.0 - 2.0 * confused)
    result: FloatArray = np.sign(np.asarray(theta, dtype=float))[..., None] * kept
    return result


def pair_retention_slope(theta: npt.ArrayLike, gaps: int) -> FloatArray:
    """Return the derivative of `pair_retention` by theta, of the same shape.

    Examples
    --------
    >>> pair_retention_slope(np.array([0.0]), 2).round(4)  # (2 k + 1) / 6
    array([[0.5   , 0.8333]])
    """
    size, gap = _grid(theta, gaps)
    small = size * (gap + 1.0) < _SERIES_BELOW
    safe = np.where(small, 1.0, size)
    direct = 2.0 * (
        gap**2 * _inverse_sinh_square(safe * gap) - (gap + 1.0) ** 2 * _inverse_sinh_square(safe * (gap + 1))
    )
    result: FloatArray = np.where(small, _series(size, gap, derivative=True), direct)
    return result


def pairs_at_gaps(histogram: npt.ArrayLike) -> FloatArray:
    """Return the number of pairs of items at gap 1, 2, ... in all votes together, ``(..., r - 1)``.

    Parameters
    ----------
    histogram
        ``(..., r + 1)`` number of votes over s items; a vote with ties counts as one over all its items, and minus one
        for every bucket of tied ones, as discordances inside a bucket cannot be seen.

    Examples
    --------
    A ranking of three items, then the best 2 of 5: two buckets of one item and one of three.

    >>> pairs_at_gaps([[0, 0, 0, 1, 0, 0], [0, -2, 0, -1, 0, 1]])
    array([[2., 1., 0., 0.],
           [2., 2., 2., 1.]])
    """
    counts = np.asarray(histogram, dtype=float)
    size = np.arange(counts.shape[-1])
    gap = np.arange(1, max(counts.shape[-1] - 1, 1))
    pairs: FloatArray = counts @ np.maximum(size[:, None] - gap, 0).astype(float)
    return pairs


@dataclass(frozen=True, eq=False)
class RetentionCurve:
    """Mean sign of agreement with the truth (the quality) against the weight, for votes of given sizes.

    Parameters
    ----------
    share
        ``(gaps,)`` share of the pairs of items at gap 1, 2, ...; adds up to one.

    Examples
    --------
    >>> curve = RetentionCurve.of_items(5)
    >>> curve.quality(np.array([0.7])).round(3), curve.weight(curve.quality(np.array([0.7]))).round(6)
    (array([0.508]), array([0.7]))
    """

    share: FloatArray

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
        result: FloatArray = pair_retention(weight, len(self.share)) @ self.share
        return result

    def slope(self, weight: npt.ArrayLike) -> FloatArray:
        """Return the derivative of `quality`."""
        result: FloatArray = pair_retention_slope(weight, len(self.share)) @ self.share
        return result

    def agreement(self, weight: FloatArray) -> FloatArray:
        """Return the mean sign of agreement ``(m, m)`` of independent sources of these weights."""
        kept = pair_retention(weight, len(self.share))
        agreement: FloatArray = (kept * self.share) @ kept.T
        return agreement

    def weight(self, quality: npt.ArrayLike, limit: float = 12.0) -> FloatArray:
        """Return the weight of this quality, between ``-limit`` and ``limit``."""
        target = np.asarray(quality, dtype=float)
        low, high = np.full(target.shape, -limit), np.full(target.shape, limit)
        at_zero = float(self.slope(0.0))
        weight: FloatArray = np.clip(np.arctanh(np.clip(target, -0.999, 0.999)) / at_zero, -limit, limit)
        for _ in range(100):
            excess = target - self.quality(weight)
            low, high = np.where(excess >= 0, weight, low), np.where(excess <= 0, weight, high)
            slope = self.slope(weight)
            step = np.divide(excess, slope, out=np.full(target.shape, np.inf), where=slope > 0)
            proposal = weight + step
            inside = (proposal > low) & (proposal < high)
            new: FloatArray = np.where(inside, proposal, 0.5 * (low + high))
            if np.all(np.abs(new - weight) <= 1e-12 * (1.0 + np.abs(weight))):
                return new
            weight = new
        return weight


def _grid(theta: npt.ArrayLike, gaps: int) -> tuple[FloatArray, FloatArray]:
    return np.abs(np.asarray(theta, dtype=float))[..., None], np.arange(1.0, gaps + 1)


def _series(size: FloatArray, gap: FloatArray, *, derivative: bool) -> FloatArray:
    """Sum 2 B_2n / (2n)! theta^(2n - 1) ((k + 1)^2n - k^2n), or its derivative, where it converges."""
    bounded = np.where(size * (gap + 1.0) < _SERIES_BELOW, size, 0.0)
    near, far = (bounded * gap) ** 2, (bounded * (gap + 1.0)) ** 2
    # theta^(2n - 2) ((k + 1)^2n - k^2n) by a recursion that never divides by theta
    difference, power = 2.0 * gap + 1.0 + 0.0 * bounded, gap**2 + 0.0 * bounded
    total = np.zeros(np.broadcast(size, gap).shape)
    for index, coefficient in enumerate(_COTH):
        total += 2.0 * coefficient * (2 * index + 1 if derivative else 1) * difference
        difference = difference * far + power * (far - near)
        power = power * near
    return total if derivative else total * bounded


def _inverse_expm1(x: FloatArray) -> FloatArray:
    """1 / (e^x - 1) for x > 0, without overflow."""
    result: FloatArray = np.exp(-x) / -np.expm1(-x)
    return result


def _inverse_sinh_square(x: FloatArray) -> FloatArray:
    """1 / (4 sinh(x / 2)^2) for x > 0, without overflow."""
    result: FloatArray = np.exp(-x) / np.expm1(-x) ** 2
    return result
