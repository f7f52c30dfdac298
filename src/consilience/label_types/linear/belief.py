"""What votes ``offset + slope * y + noise`` say about y: mean and covariance of every item."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray, few_votes
from consilience.estimation.protocol import Parameters
from consilience.label_types.linear.covariances import inverses
from consilience.label_types.vote_correlation import gls_weights

__all__ = ["Belief", "LinearParameters", "arguments_of_few", "believe", "vote_shares"]

#: Rounds of weights of the votes for heavy tails: while learning, and when labels are asked for.
LEARNING_ROUNDS, LABEL_ROUNDS = 12, 60
#: Numbers that the covariances of a block of items may take.
BLOCK = 1 << 22


@dataclass(frozen=True)
class LinearParameters(Parameters):
    """Lines of m sources in d dimensions, and the law of y.

    Parameters
    ----------
    offset, slope
        ``(m, d)`` and ``(m,)``; ``vote = offset + slope * y + noise``. A negative slope is a reversed scale, and used.
    noise
        ``(m, d, d)`` covariance of the noise of each source.
    correlation
        ``(m, m)`` of the noise of two sources, zero on the diagonal.
    mean, variance
        ``(d,)`` and ``(d, d)``, of y before any vote.
    degrees
        Degrees of freedom of the noise: infinite for normal noise, 4 for heavy tails.
    shrink
        How far labels are drawn to `mean` where votes are uncertain; 0 for plain weighted means.
    say
        ``(m,)`` how much each source says about where the scale of y lies; adds up to one, or is all zero.
    votes
        ``(m,)`` votes that each source cast.
    slope_hold, noise_hold
        ``(m,)`` how firmly EM holds slopes and noise where they started: precision of the slope, and votes.
    known
        Moments of known labels beside what the votes say, as `consilience.label_types.linear.gauge` has them; empty
        without any.
    knots
        ``(m, k)`` quantile functions of the sources where the lines are those of normal scores; empty where they are
        those of the votes.
    learns
        Whether EM may change anything.
    """

    offset: FloatArray
    slope: FloatArray
    noise: FloatArray
    correlation: FloatArray
    mean: FloatArray
    variance: FloatArray
    degrees: float = float("inf")
    shrink: float = 1.0
    say: FloatArray = field(default_factory=lambda: np.zeros(0))
    votes: FloatArray = field(default_factory=lambda: np.zeros(0))
    slope_hold: FloatArray = field(default_factory=lambda: np.zeros(0))
    noise_hold: FloatArray = field(default_factory=lambda: np.zeros(0))
    known: FloatArray = field(default_factory=lambda: np.zeros(0))
    knots: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    learns: bool = False

    @property
    def bent(self) -> bool:
        """Whether the lines are those of normal scores."""
        return self.knots.size > 0

    @property
    def noise_variance(self) -> FloatArray:
        """``(m,)`` mean noise variance of a coordinate."""
        mean: FloatArray = np.trace(self.noise, axis1=1, axis2=2) / self.noise.shape[1]
        return mean

    @property
    def spread(self) -> float:
        """Standard deviation of a coordinate of y, in the mean over coordinates."""
        return float(np.sqrt(np.trace(self.variance) / len(self.variance)))

    def regauged(self, mean: FloatArray, scale: float) -> LinearParameters:
        """Return the same law of the votes for ``y' = mean + scale * (y - self.mean)``."""
        slope = self.slope / scale
        return replace(
            self,
            offset=self.offset + self.slope[:, None] * self.mean - slope[:, None] * mean,
            slope=slope,
            mean=np.asarray(mean, dtype=np.float64),
            variance=self.variance * scale**2,
            slope_hold=self.slope_hold * scale**2,
        )

    def standard(self) -> LinearParameters:
        """Return the same law for a factor of mean zero whose coordinates have variance one in the mean."""
        return self.regauged(np.zeros(len(self.mean)), 1.0 / self.spread)


@dataclass(frozen=True)
class Belief:
    """Posterior of every item.

    Parameters
    ----------
    mean
        ``(n, d)``.
    covariance, pattern
        ``(k, d, d)`` and ``(n,)``: the covariance of item i is ``covariance[pattern[i]]``.
    residual
        ``(n, m, d)`` votes minus what the prior mean of y lets expect; zero where there is no vote.
    weight
        ``(n, m)`` one for a vote under normal noise, less for outliers, zero without a vote.
    """

    mean: FloatArray
    covariance: FloatArray
    pattern: IntArray
    residual: FloatArray
    weight: FloatArray


def vote_shares(parameters: LinearParameters, observed: BoolArray) -> FloatArray:
    """Return by how much each vote counts beside those of sources with correlated noise, ``(n, m)``.

    Weights of generalized least squares over the information of each vote: 1 for independent sources, 1/k for k
    copies; zero where there is no vote.
    """
    shares = observed.astype(np.float64)
    group = np.flatnonzero((parameters.correlation != 0.0).any(axis=1) & (parameters.slope != 0.0))
    if len(group) == 0 or len(observed) == 0:
        return shares
    told = parameters.slope[group] / np.sqrt(parameters.noise_variance[group])
    between = parameters.correlation[np.ix_(group, group)] * np.sign(np.outer(told, told))
    weights, _ = gls_weights(observed[:, group], between, np.abs(told))
    shares[:, group] = weights / np.abs(told)
    return shares


def believe(
    parameters: LinearParameters,
    labels: npt.NDArray[Any],
    observed: BoolArray,
    rounds: int = LABEL_ROUNDS,
    *,
    only_labels: bool = False,
) -> Belief:
    """Return the posterior of y for any pattern of abstentions.

    A vote adds ``share * slope^2 * noise^-1`` to the precision. Under Student-t noise every vote counts
    ``(nu + d) / (nu + r' noise^-1 r)``, found by alternation.

    Parameters
    ----------
    labels
        ``(n, m, d)``.
    only_labels
        Leave residuals and weights out where the votes are so sparse that going from vote to vote is quicker.
    """
    d = len(parameters.mean)
    if only_labels and d == 1 and not parameters.correlation.any() and few_votes(observed):
        return _of_few(parameters, labels, observed, rounds)
    residual = labels - (parameters.offset + parameters.slope[:, None] * parameters.mean)
    if not observed.all():
        residual = np.where(observed[..., None], residual, 0.0)
    shares = vote_shares(parameters, observed)
    inverse = inverses(parameters.noise)
    if not np.isfinite(parameters.degrees):
        mean, covariance, pattern = _combined(parameters, inverse, residual, shares, alike=True)
        return Belief(parameters.mean + mean, covariance, pattern, residual, observed.astype(np.float64))
    weight = observed.astype(np.float64)
    mean, covariance, pattern = _combined(parameters, inverse, residual, shares, alike=False)
    least = 1e-6 * parameters.spread
    for _ in range(rounds):
        left = residual - mean[:, None] * parameters.slope[:, None]
        misfit = np.einsum("nad,ade,nae->na", left, inverse, left)
        misfit += np.einsum("nde,aed->na", covariance, inverse) * parameters.slope**2
        weight = observed * (parameters.degrees + d) / (parameters.degrees + misfit)
        before = mean
        mean, covariance, pattern = _combined(parameters, inverse, residual, shares * weight, alike=False)
        if np.abs(mean - before).max(initial=0.0) < least:
            break
    return Belief(parameters.mean + mean, covariance, pattern, residual, weight)


def _combined(
    parameters: LinearParameters, inverse: FloatArray, residual: FloatArray, weight: FloatArray, *, alike: bool
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return posterior means beyond the prior one, the different covariances, and which of them each item has.

    Parameters
    ----------
    alike
        Whether few patterns of weights are to be expected.
    """
    n, m, d = residual.shape
    law = inverses(parameters.variance)
    prior = parameters.shrink * law
    gain = parameters.slope[:, None, None] * inverse
    told = parameters.slope[:, None, None] * gain
    if d == 1:
        precision = weight @ told[:, 0, 0]
        evidence = (weight * residual[:, :, 0]) @ gain[:, 0, 0]
        total = np.where(precision > 0, precision + prior[0, 0], law[0, 0])
        return (evidence / total)[:, None], (1.0 / total)[:, None, None], np.arange(n)
    patterns, pattern = _patterns(weight) if alike else (weight, np.arange(n))
    pulled = np.zeros((n, d))
    for source in range(m):
        pulled += (weight[:, source, None] * residual[:, source]) @ gain[source]
    precision = np.tensordot(patterns, told, axes=1)
    informed = np.trace(precision, axis1=1, axis2=2) > 0
    covariance = inverses(np.where(informed[:, None, None], precision + prior, law))
    covariance = 0.5 * (covariance + np.swapaxes(covariance, 1, 2))
    if len(covariance) == 1:
        return pulled @ covariance[0], covariance, pattern
    mean = np.empty_like(pulled)
    rows = max(BLOCK // (d * d), 256)
    for start in range(0, n, rows):
        part = slice(start, start + rows)
        mean[part] = np.einsum("nd,nde->ne", pulled[part], covariance[pattern[part]])
    return mean, covariance, pattern


def _patterns(weight: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the different rows, and which of them each row is."""
    if len(weight) and (weight == weight[:1]).all():
        return weight[:1], np.zeros(len(weight), dtype=np.int64)
    keys = np.ascontiguousarray(weight).view(np.dtype((np.void, weight.itemsize * weight.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return weight[first], which.reshape(-1).astype(np.int64)


def _of_few(parameters: LinearParameters, labels: npt.NDArray[Any], observed: BoolArray, rounds: int) -> Belief:
    from consilience.label_types.linear.kernels import beliefs_of_few

    centered, variance = beliefs_of_few(labels[:, :, 0], observed, *arguments_of_few(parameters, rounds))
    nothing = np.zeros((len(labels), 0))
    mean = parameters.mean + centered[:, None]
    return Belief(mean, variance[:, None, None], np.arange(len(labels)), nothing[..., None], nothing)


def arguments_of_few(parameters: LinearParameters, rounds: int) -> tuple[Any, ...]:
    """Return what the kernels that go from vote to vote need besides the votes, in their order; for scores alone."""
    variance = float(parameters.variance[0, 0])
    return (
        parameters.offset[:, 0] + parameters.slope * parameters.mean[0],
        parameters.slope,
        parameters.noise[:, 0, 0].copy(),
        float(parameters.shrink) / variance,
        variance,
        float(parameters.degrees),
        rounds,
        1e-6 * float(np.sqrt(variance)),
    )
