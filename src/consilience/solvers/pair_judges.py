"""Bradley-Terry with ties for several judges: signed discrimination, position bias and tie rate each.

A vote of judge a on two items, the first shown and the second, with ``eta = s_a (score_i - score_j) + b_a``::

    P(first) : P(second) : P(tie)  =  exp(eta / 2) : exp(-eta / 2) : nu_a

Scores are standard normal within each group (the whole arena, or one prompt), so the scale sits in s. The logarithm
of the normaliser is bounded by a parabola in eta (Jaakkola and Jordan, extended to Davidson's ties), which makes
every step a weighted ridge regression: scores given judges, judges given scores, one spread shared by all judges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = [
    "BIAS_VARIANCE",
    "JudgeTraits",
    "PairTable",
    "ScoreBelief",
    "curvature",
    "equal_judges",
    "log_normaliser",
    "outcome_moments",
    "spectral_judges",
    "totals",
]

#: Start of the fit by the leading eigenvector: discrimination of the judge that agrees most with the others.
SPECTRAL_SLOPE = 1.5
EIGEN_ROUNDS = 30
#: Variance of the position biases before any vote.
BIAS_VARIANCE = 0.25


@dataclass(frozen=True)
class PairTable:
    """Comparisons, one entry each.

    Parameters
    ----------
    judge, group
        Who compared, and in which group; items are numbered within their group.
    first, second
        The item shown first and the one shown second.
    outcome
        1 if the first one won, -1 if the second did, 0 for a tie.
    shown
        1 where the items were shown in this order, 0 where the order means nothing.
    weight
        How many votes it counts as.
    """

    judge: IntArray
    group: IntArray
    first: IntArray
    second: IntArray
    outcome: FloatArray
    shown: FloatArray
    weight: FloatArray
    n_judges: int
    n_groups: int
    width: int

    def __len__(self) -> int:
        return len(self.judge)

    def where(self, kept: BoolArray | IntArray) -> PairTable:
        """Return some of the comparisons."""
        parts = {
            name: getattr(self, name)[kept]
            for name in ("judge", "group", "first", "second", "outcome", "shown", "weight")
        }
        return replace(self, **parts)

    @property
    def compared(self) -> BoolArray:
        """``(groups, width)``: whether the item was ever compared."""
        count = totals(self.group * self.width + self.first, None, self.n_groups * self.width)
        count += totals(self.group * self.width + self.second, None, self.n_groups * self.width)
        return (count > 0).reshape(self.n_groups, self.width)

    def votes_of_judges(self) -> FloatArray:
        """Return the weight of all votes of each judge."""
        return totals(self.judge, self.weight, self.n_judges)


@dataclass(frozen=True)
class JudgeTraits:
    """What is believed about the judges.

    Parameters
    ----------
    slope, bias, tie
        ``(m,)`` discrimination s, position bias b and tie parameter nu.
    covariance
        ``(m, 2, 2)`` of slope and bias of each judge.
    slope_mean, slope_variance, bias_mean, bias_variance
        Of the law that all judges are drawn from.
    """

    slope: FloatArray
    bias: FloatArray
    tie: FloatArray
    covariance: FloatArray
    slope_mean: float
    slope_variance: float
    bias_mean: float = 0.0
    bias_variance: float = BIAS_VARIANCE

    def scaled(self, factor: float) -> JudgeTraits:
        """Return the same judges where scores are divided by a factor."""
        corner = np.array([[factor**2, factor], [factor, 1.0]])
        return replace(
            self,
            slope=self.slope * factor,
            covariance=self.covariance * corner,
            slope_mean=self.slope_mean * factor,
            slope_variance=self.slope_variance * factor**2,
        )

    def with_fixed(self, start: JudgeTraits, held: BoolArray) -> JudgeTraits:
        """Return the same judges, but for those that are held as they started."""
        if not held.any():
            return self
        corner = np.where(held[:, None, None], 0.0, self.covariance)
        kept = {name: np.where(held, getattr(start, name), getattr(self, name)) for name in ("slope", "bias", "tie")}
        return replace(self, covariance=corner, **kept)


@dataclass(frozen=True)
class ScoreBelief:
    """Normal beliefs about the scores: mean ``(groups, width)`` and covariance ``(groups, width, width)``."""

    mean: FloatArray
    covariance: FloatArray

    def differences(self, pairs: PairTable) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the difference of each comparison."""
        at, one, two = pairs.group, pairs.first, pairs.second
        variance = self.covariance[at, one, one] + self.covariance[at, two, two] - 2.0 * self.covariance[at, one, two]
        return self.mean[at, one] - self.mean[at, two], np.maximum(variance, 0.0)


def curvature(reach: FloatArray, tie: FloatArray) -> FloatArray:
    """Return the weight of the parabola that touches the log-likelihood at ``|eta| = reach``.

    ``sinh(c/2) / (c (2 cosh(c/2) + nu))``; at zero it is ``1 / (2 (2 + nu))``.

    Examples
    --------
    >>> curvature(np.array([1e-9, 2.0]), np.array([2.0, 0.0])).round(4).tolist()
    [0.125, 0.1904]
    """
    at = np.clip(reach, 1e-4, 40.0)
    falling = np.exp(-at)
    return np.asarray(0.5 * (1.0 - falling) / (at * (1.0 + falling + tie * np.exp(-at / 2.0))))


def outcome_moments(eta: FloatArray, tie: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the outcome.

    Examples
    --------
    >>> mean, variance = outcome_moments(np.array([0.0]), np.array([2.0]))
    >>> mean.tolist(), variance.tolist()
    ([0.0], [0.5])
    """
    size = np.minimum(np.abs(eta), 80.0)
    falling = np.exp(-size)
    total = 1.0 + falling + tie * np.exp(-size / 2.0)
    mean = np.sign(eta) * (1.0 - falling) / total
    return mean, (1.0 + falling) / total - mean**2


def log_normaliser(reach: FloatArray, tie: FloatArray) -> FloatArray:
    """Return ``log(2 cosh(c/2) + nu)`` for ``c = reach >= 0``."""
    return np.asarray(reach / 2.0 + np.log1p(np.exp(-reach) + tie * np.exp(-reach / 2.0)))


def equal_judges(pairs: PairTable, slope: float = 1.0, *, ties: bool = True) -> JudgeTraits:
    """Return judges of one discrimination without bias; the start of every fit."""
    tied = totals(pairs.judge, pairs.weight * (pairs.outcome == 0), pairs.n_judges)
    share = (tied + 0.5) / (pairs.votes_of_judges() + 1.5)
    tie = np.minimum(2.0 * share / np.maximum(1.0 - share, 0.05), 4.0) if ties else np.zeros(pairs.n_judges)
    return JudgeTraits(
        np.full(pairs.n_judges, slope),
        np.zeros(pairs.n_judges),
        tie,
        np.zeros((pairs.n_judges, 2, 2)),
        max(slope, 0.3),
        0.5 * max(slope, 0.3) ** 2,
    )


def spectral_judges(pairs: PairTable, *, ties: bool = True) -> JudgeTraits:
    """Return judges by how far their net wins agree: the leading factor of the products between judges."""
    size = pairs.n_groups * pairs.width
    place = pairs.judge * size
    first, second = place + pairs.group * pairs.width + pairs.first, place + pairs.group * pairs.width + pairs.second
    cells = pairs.n_judges * size
    net = totals(first, pairs.outcome, cells) - totals(second, pairs.outcome, cells)
    count = totals(first, None, cells) + totals(second, None, cells)
    rates = (net / np.maximum(count, 1.0) * np.sqrt(count / (count + 2.0))).reshape(pairs.n_judges, size)
    seen = (count > 0).astype(np.float64).reshape(pairs.n_judges, size)
    together = rates @ rates.T / np.maximum(seen @ seen.T, 1.0)
    factor = np.zeros(pairs.n_judges)
    for _ in range(EIGEN_ROUNDS):
        values, vectors = np.linalg.eigh(together)
        factor = vectors[:, -1] * np.sqrt(max(float(values[-1]), 1e-9))
        np.fill_diagonal(together, factor**2)
    if factor.sum() < 0:
        factor = -factor
    largest = float(np.abs(factor).max(initial=0.0))
    slope = SPECTRAL_SLOPE * factor / max(largest, 1e-9)
    start = equal_judges(pairs, max(float(slope.mean()), 0.3), ties=ties)
    return replace(start, slope=slope)


def totals(index: IntArray, values: FloatArray | None, size: int) -> FloatArray:
    """Return the sums of values (or counts) by index."""
    return np.bincount(index, values, minlength=size).astype(np.float64, copy=False)
