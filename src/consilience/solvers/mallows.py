"""Moments of the Mallows law: how the weight of a source and the number of its mistakes belong together.

Under ``p(vote | truth) ∝ exp(-theta * discordant pairs)`` a pair of items ``k`` places apart in the truth
keeps its order with a probability that depends on ``theta`` and ``k`` only. Everything below follows from
that one function: ``s`` ranked items have ``s - k`` pairs at gap ``k``, so means and variances of the distance
are sums over gaps. The textbook forms cancel catastrophically near ``theta = 0``; here a power series takes over
wherever ``|theta| * (k + 1) < 1`` and ``expm1`` does the rest, so that ten digits survive everywhere.

Ties are covered as well. A bucket order over ``s`` items with buckets of sizes ``b_1, b_2, ...`` has
``log Z = log Z_s - sum_j log Z_{b_j}`` when discordances are counted across buckets (the q-multinomial), so it acts
like one ranking of ``s`` items minus one ranking per bucket: see `bucket_histogram`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray, IntArray

__all__ = [
    "DistanceCurve",
    "bucket_histogram",
    "distance_variance",
    "hypergeometric_retention",
    "log_normaliser",
    "mean_distance",
    "pair_retention",
    "pair_retention_slope",
]

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
#: (x / 2) coth(x / 2) = 1 + sum_n _COTH[n] x^(2 n + 2); ten terms reach full precision for |x| < 1.
_COTH = tuple(value / factorial(2 * index + 2) for index, value in enumerate(_BERNOULLI))
#: Below this value of |theta| (k + 1) the closed form loses digits and the series is used.
_SERIES_BELOW = 1.0


def pair_retention(theta: FloatArray, gaps: int) -> FloatArray:
    """Return how well a source keeps the order of two items that are 1, 2, ... places apart in the truth.

    ``c_k = E[g_ij(vote) g_ij(truth)]`` with ``g = +1`` or ``-1`` for the order of a pair: 1 for a perfect source,
    0 for a random one, negative for one that reverses. In closed form
    ``c_k = (k + 1) coth(theta (k + 1) / 2) - k coth(theta k / 2)``, an odd function of theta.

    Parameters
    ----------
    theta
        ``(m,)`` weights, of either sign.
    gaps
        Largest gap, one less than the number of items.

    Returns
    -------
    array of shape (m, gaps)

    Examples
    --------
    Neighbours follow ``tanh(theta / 2)``; items further apart are harder to confuse.

    >>> pair_retention(np.array([0.0, 1.0]), 3).round(3)
    array([[0.   , 0.   , 0.   ],
           [0.462, 0.688, 0.835]])
    """
    size, gap = _grid(theta, gaps)
    direct = 1.0 - 2.0 * _confusion(size, gap)
    small = size * (gap + 1.0) < _SERIES_BELOW
    result: FloatArray = np.sign(np.asarray(theta, dtype=float))[..., None] * np.where(
        small, _series(size, gap, derivative=False), direct
    )
    return result


def pair_retention_slope(theta: FloatArray, gaps: int) -> FloatArray:
    """Return the derivative of `pair_retention` by theta, as an array of shape (m, gaps).

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


def mean_distance(theta: npt.ArrayLike, size: npt.ArrayLike) -> FloatArray:
    """Return the expected number of discordant pairs in a Mallows vote over `size` items.

    Parameters
    ----------
    theta, size
        Weights and numbers of items; they broadcast against each other.

    Examples
    --------
    >>> mean_distance([0.0, 1.0, 700.0], 4).round(3)
    array([3.   , 1.201, 0.   ])
    """
    theta, pairs = _pairs_at_gap(theta, size)
    result: FloatArray = (pairs * _discordance(theta, pairs.shape[-1])).sum(axis=-1)
    return result


def distance_variance(theta: npt.ArrayLike, size: npt.ArrayLike) -> FloatArray:
    """Return the variance of the number of discordant pairs; minus the slope of `mean_distance`.

    Examples
    --------
    >>> distance_variance(0.0, 3).round(4)  # distances 0, 1, 1, 2, 2, 3
    np.float64(0.9167)
    """
    theta, pairs = _pairs_at_gap(theta, size)
    result: FloatArray = 0.5 * (pairs * pair_retention_slope(theta, pairs.shape[-1])).sum(axis=-1)
    return result


def log_normaliser(theta: npt.ArrayLike, size: npt.ArrayLike) -> FloatArray:
    """Return ``log sum_y exp(-theta d(y, y0))`` over the orders y of `size` items.

    Examples
    --------
    >>> np.exp(log_normaliser(0.0, [1, 2, 3, 4])).round(6)
    array([ 1.,  2.,  6., 24.])
    """
    weight, items = np.broadcast_arrays(np.asarray(theta, dtype=float), np.asarray(size))
    largest = max(int(items.max(initial=1)), 1)
    place = np.arange(1.0, largest + 1)
    scale = np.abs(weight)[..., None]
    safe = np.where(scale == 0, 1.0, scale)
    # an item inserted into a list of j - 1 has j places, q^0 to q^(j - 1)
    each = np.where(scale == 0, np.log(place), np.log(np.expm1(-place * safe) / np.expm1(-safe)))
    # for a negative weight: the distance to the reversed truth is the number of pairs - d
    reversal = np.maximum(-weight, 0.0) * (items * (items - 1) / 2)
    total: FloatArray = np.where(place <= items[..., None], each, 0.0).sum(axis=-1) + reversal
    return total


def hypergeometric_retention(retention: FloatArray, r: int) -> FloatArray:
    """Return the retention of pairs when a source ranks a random subset of the items.

    Two items that are k places apart among all `r` are closer together within a subset of size s: their gap there
    is ``j + 1`` with j hypergeometric. The result is ``C[a, s, k] = sum_j Hyp(j; r - 2, k - 1, s - 2) c[a, j + 1]``,
    linear in `retention`, so that slopes go through the same function.

    Parameters
    ----------
    retention
        ``(m, r - 1)`` from `pair_retention` or `pair_retention_slope`.

    Returns
    -------
    array of shape (m, r + 1, r - 1)
        By source, subset size and gap (index 0 is gap 1); 0 for subsets of fewer than two items.
    """
    result: FloatArray = np.tensordot(retention, _gap_law(r), axes=(1, 2))
    return result


def bucket_histogram(bucket_sizes: npt.ArrayLike, r: int) -> IntArray:
    """Return the ``(r + 1,)`` histogram by which a bucket order enters `DistanceCurve.of`.

    One ranking of all its items, minus one ranking per bucket: discordances inside a bucket cannot be seen.

    Examples
    --------
    The top 2 of 5 items: two buckets of one item and one of three.

    >>> bucket_histogram([1, 1, 3], 5)
    array([ 0, -2,  0, -1,  0,  1])
    """
    sizes = np.asarray(bucket_sizes, dtype=np.int64)
    histogram = -np.bincount(sizes, minlength=r + 1)
    histogram[sizes.sum()] += 1
    return histogram.astype(np.int64)


@dataclass(frozen=True, slots=True)
class DistanceCurve:
    """Expected number of discordances of many votes of one source, as a function of its weight.

    The M-step of EM solves ``sum_s histogram[s] E_theta[d; s] = total`` for theta; the left side falls
    monotonically, so there is one answer.

    Attributes
    ----------
    pairs : array of shape (gaps,)
        Number of pairs of items at gap 1, 2, ... in all votes together.
    histogram : array of shape (r + 1,)
        Number of votes over s items; negative entries stand for buckets (`bucket_histogram`).

    Examples
    --------
    >>> curve = DistanceCurve.of(np.array([0, 0, 0, 10, 0, 40]))  # 10 votes on 3 items and 40 on 5
    >>> total = curve.mean(0.7)
    >>> float(curve.weight_from_mean(total).round(6))
    0.7
    """

    pairs: FloatArray
    histogram: FloatArray

    @classmethod
    def of(cls, sizes_histogram: npt.ArrayLike) -> DistanceCurve:
        """Return the curve of votes whose sizes (numbers of ranked items) have this histogram."""
        histogram = np.asarray(sizes_histogram, dtype=float)
        size = np.arange(len(histogram))
        gap = np.arange(1, max(len(histogram) - 1, 1))
        return cls(histogram @ np.maximum(size[:, None] - gap, 0), histogram)

    @property
    def total_pairs(self) -> float:
        """Number of comparable pairs of items in all votes together: the largest possible total."""
        return float(self.pairs.sum())

    def mean(self, theta: npt.ArrayLike) -> FloatArray:
        """Return the expected total number of discordances, for any shape of theta."""
        result: FloatArray = _discordance(np.asarray(theta, dtype=float), len(self.pairs)) @ self.pairs
        return result

    def variance(self, theta: npt.ArrayLike) -> FloatArray:
        """Return the variance of the total, which is minus the slope of `mean`."""
        result: FloatArray = 0.5 * (pair_retention_slope(np.asarray(theta, dtype=float), len(self.pairs)) @ self.pairs)
        return result

    def log_normaliser(self, theta: npt.ArrayLike) -> FloatArray:
        """Return the summed log normaliser of the votes."""
        size = np.arange(len(self.histogram))
        result: FloatArray = log_normaliser(np.asarray(theta, dtype=float)[..., None], size) @ self.histogram
        return result

    def weight_from_mean(self, total: npt.ArrayLike, *, limit: float = 12.0) -> FloatArray:
        """Return the weight at which `total` discordances are expected, between ``-limit`` and ``limit``.

        Totals that no finite weight explains (no discordance at all, or every pair) give the limit; votes without any
        pair of items give 0.
        """
        target = np.asarray(total, dtype=float)
        if self.total_pairs <= 0:
            return np.zeros(target.shape)
        low, high = np.full(target.shape, -limit), np.full(target.shape, limit)
        weight: FloatArray = np.clip(6.0 * (1.0 - 2.0 * target / self.total_pairs) / self._steepness, -limit, limit)
        for _ in range(100):
            excess = self.mean(weight) - target
            low, high = np.where(excess >= 0, weight, low), np.where(excess <= 0, weight, high)
            slope = self.variance(weight)
            step = np.divide(excess, slope, out=np.full(target.shape, np.inf), where=slope > 0)
            proposal = weight + step
            inside = (proposal > low) & (proposal < high)
            new: FloatArray = np.where(inside, proposal, 0.5 * (low + high))
            if np.all(np.abs(new - weight) <= 1e-13 * (1.0 + np.abs(weight))):
                return new
            weight = new
        return weight

    @property
    def _steepness(self) -> float:
        gap = np.arange(1, len(self.pairs) + 1)
        return float((2 * gap + 1) @ self.pairs / self.total_pairs)


def _grid(theta: FloatArray, gaps: int) -> tuple[FloatArray, FloatArray]:
    return np.abs(np.asarray(theta, dtype=float))[..., None], np.arange(1.0, gaps + 1)


def _pairs_at_gap(theta: npt.ArrayLike, size: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    weight, items = np.broadcast_arrays(np.asarray(theta, dtype=float), np.asarray(size))
    gap = np.arange(1, max(int(items.max(initial=1)), 1))
    return weight, np.maximum(items[..., None] - gap, 0).astype(float)


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


def _confusion(size: FloatArray, gap: FloatArray) -> FloatArray:
    """Probability that a pair at this gap is swapped, for theta = size > 0 and not small."""
    safe = np.where(size * (gap + 1.0) < _SERIES_BELOW, 1.0, size)
    return gap * _inverse_expm1(safe * gap) - (gap + 1.0) * _inverse_expm1(safe * (gap + 1.0))


def _discordance(theta: FloatArray, gaps: int) -> FloatArray:
    """Probability that a pair is swapped, with full relative precision where it is tiny."""
    size, gap = _grid(theta, gaps)
    positive: FloatArray = np.where(
        size * (gap + 1.0) < _SERIES_BELOW, 0.5 - 0.5 * _series(size, gap, derivative=False), _confusion(size, gap)
    )
    return np.where(np.asarray(theta, dtype=float)[..., None] < 0, 1.0 - positive, positive)


def _inverse_expm1(x: FloatArray) -> FloatArray:
    """1 / (e^x - 1) for x > 0, without overflow."""
    result: FloatArray = np.exp(-x) / -np.expm1(-x)
    return result


def _inverse_sinh_square(x: FloatArray) -> FloatArray:
    """1 / (4 sinh(x / 2)^2) for x > 0, without overflow."""
    result: FloatArray = np.exp(-x) / np.expm1(-x) ** 2
    return result


@lru_cache(maxsize=16)
def _gap_law(r: int) -> FloatArray:
    """Probability that gap k among r items is gap j + 1 in a random subset of size s, as [s, k, j]."""
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, max(r, 2))))])

    def log_choose(total: IntArray, chosen: IntArray) -> FloatArray:
        possible = (chosen >= 0) & (chosen <= total)
        inside = np.where(possible, chosen, 0)
        value = log_factorial[total] - log_factorial[inside] - log_factorial[total - inside]
        return np.where(possible, value, -np.inf)

    law = np.zeros((r + 1, max(r - 1, 0), max(r - 1, 0)))
    if r < 2:
        return law
    between = np.arange(r - 1)[:, None]  # k - 1 items lie between the two
    inner = np.arange(r - 1)[None, :]
    for size in range(2, r + 1):
        rest = np.array(size - 2)
        law[size] = np.exp(
            log_choose(between, inner) + log_choose(r - 2 - between, rest - inner) - log_choose(np.array(r - 2), rest)
        )
    law.flags.writeable = False
    return law
