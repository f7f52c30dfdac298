"""What votes ``offset + slope * y + noise`` say about y: mean and covariance of each item, and sums of an E-step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.estimation.protocol import Chunk, Parameters, Statistics
from consilience.label_types.vote_correlation import distinct_rows, gls_weights

__all__ = ["Belief", "LinearParameters", "Prepared", "believe", "round_sums"]

#: Rounds of weights of the votes for heavy tails: while learning, and when labels are asked for.
LEARNING_ROUNDS, LABEL_ROUNDS = 12, 60
#: Numbers that the covariances of a block of items may take.
BLOCK = 1 << 22
#: Numbers in one item (sources times coordinates) up to which vectors without gaps are condensed.
MOST_NUMBERS = 400
#: Sums over the votes of each source in an E-step, and how many axes of coordinates each has.
SOURCE_SUMS = {"count": 0, "weight": 0, "truth": 1, "truth_square": 2, "vote": 1, "vote_square": 2, "cross": 2}


def _nothing() -> FloatArray:
    return np.zeros(0)


@dataclass(frozen=True)
class LinearParameters(Parameters):
    """Lines of m sources in d dimensions, and the distribution of y.

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
        Moments of known labels, as described in `consilience.label_types.linear.gauge`; empty without any.
    knots
        ``(m, k)`` quantile functions of the sources if the lines are those of normal scores; otherwise empty.
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
    say: FloatArray = field(default_factory=_nothing)
    votes: FloatArray = field(default_factory=_nothing)
    slope_hold: FloatArray = field(default_factory=_nothing)
    noise_hold: FloatArray = field(default_factory=_nothing)
    known: FloatArray = field(default_factory=_nothing)
    knots: FloatArray = field(default_factory=_nothing)
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
        """Standard deviation of a coordinate of y, averaged over the coordinates."""
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
        """Return the same law for a factor of mean zero whose coordinates have variance one on average."""
        return self.regauged(np.zeros(len(self.mean)), 1.0 / self.spread)


@dataclass(frozen=True)
class Belief:
    """Posterior of every item: means ``(n, d)``, and the covariance of item i is ``covariance[pattern[i]]``."""

    mean: FloatArray
    covariance: FloatArray
    pattern: IntArray


def believe(
    parameters: LinearParameters, labels: npt.NDArray[Any], observed: BoolArray, rounds: int = LABEL_ROUNDS
) -> Belief:
    """Return the posterior of y from votes ``(n, m, d)``, for any pattern of abstentions.

    A vote adds ``share * slope^2 * noise^-1`` to the precision. Under Student-t noise every vote counts
    ``(nu + d) / (nu + r' noise^-1 r)``, found by alternation.
    """
    if len(parameters.mean) == 1:
        return _believe_scores(parameters, labels, observed, rounds)[0]
    return _believe_vectors(parameters, labels, observed, rounds)[0]


def _vote_shares(parameters: LinearParameters, observed: BoolArray) -> FloatArray:
    """Return how much each vote counts beside those of sources with correlated noise, ``(n, m)``, or ``(1, m)`` if all.

    These are the weights of generalized least squares over the information of each vote: 1 for independent sources,
    1/k for k copies.
    """
    group = np.flatnonzero((parameters.correlation != 0.0).any(axis=1) & (parameters.slope != 0.0))
    if len(group) == 0 or len(observed) == 0:
        return np.ones((1, len(parameters.slope)))
    shares = np.ones(observed.shape)
    told = parameters.slope[group] / np.sqrt(parameters.noise_variance[group])
    between = parameters.correlation[np.ix_(group, group)] * np.sign(np.outer(told, told))
    weights, _ = gls_weights(observed[:, group], between, np.abs(told))
    shares[:, group] = weights / np.abs(told)
    return shares


def _believe_scores(
    parameters: LinearParameters, labels: npt.NDArray[Any], observed: BoolArray, rounds: int, *, add_up: bool = False
) -> tuple[Belief, FloatArray]:
    """Return the posterior for d = 1, and the `SOURCE_SUMS` if they are wanted."""
    from consilience.label_types.linear.kernels import believe_scores

    variance = float(parameters.variance[0, 0])
    sums = np.zeros((len(SOURCE_SUMS), observed.shape[1] if add_up else 0))
    moved, left = believe_scores(
        labels[:, :, 0],
        observed,
        _vote_shares(parameters, observed),
        parameters.offset[:, 0] + parameters.slope * parameters.mean[0],
        parameters.slope,
        parameters.noise[:, 0, 0].copy(),
        float(parameters.shrink) / variance,
        variance,
        float(parameters.degrees),
        rounds,
        sums,
    )
    return Belief(parameters.mean + moved[:, None], left[:, None, None], np.arange(len(moved))), sums


def _believe_vectors(
    parameters: LinearParameters, labels: npt.NDArray[Any], observed: BoolArray, rounds: int
) -> tuple[Belief, FloatArray, FloatArray]:
    """Return the posterior, the votes minus what the prior mean lets expect, and the weights of the votes."""
    d = len(parameters.mean)
    residual = labels - (parameters.offset + parameters.slope[:, None] * parameters.mean)
    residual = np.where(observed[..., None], residual, 0.0)
    inverse = np.asarray(np.linalg.inv(parameters.noise), dtype=np.float64)
    weight = observed.astype(np.float64)
    shares = weight * _vote_shares(parameters, observed)
    if not np.isfinite(parameters.degrees):
        first, pattern = distinct_rows(observed)
        belief = _combined(parameters, inverse, residual, shares, shares[first], pattern)
        return belief, residual, weight
    each = np.arange(len(observed))
    belief = _combined(parameters, inverse, residual, shares, shares, each)
    for _ in range(rounds):
        left = residual - (belief.mean - parameters.mean)[:, None] * parameters.slope[:, None]
        misfit = np.einsum("nad,ade,nae->na", left, inverse, left)
        misfit += np.einsum("nde,aed->na", belief.covariance, inverse) * parameters.slope**2
        weight = observed * (parameters.degrees + d) / (parameters.degrees + misfit)
        before = belief.mean
        belief = _combined(parameters, inverse, residual, shares * weight, shares * weight, each)
        if np.abs(belief.mean - before).max(initial=0.0) < 1e-6 * parameters.spread:
            break
    return belief, residual, weight


def _combined(
    parameters: LinearParameters,
    inverse: FloatArray,
    residual: FloatArray,
    weight: FloatArray,
    patterns: FloatArray,
    pattern: IntArray,
) -> Belief:
    """Return the posterior under weights of the votes, whose different rows are given."""
    n, m, d = residual.shape
    law = np.linalg.inv(parameters.variance)
    gain = parameters.slope[:, None, None] * inverse
    pulled = np.zeros((n, d))
    for source in range(m):
        pulled += (weight[:, source, None] * residual[:, source]) @ gain[source]
    precision = np.tensordot(patterns, parameters.slope[:, None, None] * gain, axes=1)
    informed = np.trace(precision, axis1=1, axis2=2) > 0
    covariance = np.linalg.inv(np.where(informed[:, None, None], precision + parameters.shrink * law, law))
    covariance = 0.5 * (covariance + np.swapaxes(covariance, 1, 2))
    mean = np.empty_like(pulled)
    rows = max(BLOCK // (d * d), 256)
    for start in range(0, n, rows):
        part = slice(start, start + rows)
        if len(covariance) == 1:
            mean[part] = pulled[part] @ covariance[0]
        else:
            mean[part] = np.einsum("nd,nde->ne", pulled[part], covariance[pattern[part]])
    return Belief(parameters.mean + mean, covariance, pattern)


# --- E-step -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Prepared:
    """A chunk as the E-step wants it: votes ``(n, m, d)``, known labels ``(n, d)``, and how often each item counts."""

    labels: npt.NDArray[Any]
    observed: BoolArray
    known: FloatArray
    is_known: BoolArray
    repeats: FloatArray

    @classmethod
    def of(cls, labels: npt.NDArray[Any], chunk: Chunk) -> Prepared:
        """Return a chunk whose votes are these."""
        n, _, d = labels.shape
        known, is_known = np.zeros((n, d)), np.zeros(n, dtype=bool)
        if chunk.known is not None and chunk.is_known is not None:
            known, is_known = np.asarray(chunk.known, dtype=np.float64).reshape(n, d), chunk.is_known
        return cls(labels, chunk.observed, known, is_known & chunk.observed.any(axis=1), np.ones(n))

    @cached_property
    def condensed(self) -> Prepared:
        """A few vectors in place of all those without gaps and known label, with the same number, mean and products.

        Under normal noise nothing else of them matters.
        """
        m, d = self.labels.shape[1:]
        size = m * d
        full = self.observed.all(axis=1) & ~self.is_known
        if d == 1 or size > MOST_NUMBERS or full.sum() <= 2 * size:
            return self
        votes = self.labels[full].reshape(-1, size)
        mean, count = votes.mean(axis=0), len(votes)
        values, vectors = np.linalg.eigh((votes - mean).T @ (votes - mean))
        away = (vectors * np.sqrt(np.maximum(values, 0.0) * size / count)).T
        few = np.concatenate([mean + away, mean - away]).reshape(-1, m, d)
        rest, added = ~full, 2 * size
        return Prepared(
            np.concatenate([self.labels[rest], few]),
            np.concatenate([self.observed[rest], np.ones((added, m), dtype=bool)]),
            np.concatenate([self.known[rest], np.zeros((added, d))]),
            np.concatenate([self.is_known[rest], np.zeros(added, dtype=bool)]),
            np.concatenate([self.repeats[rest], np.full(added, count / added)]),
        )


def round_sums(parameters: LinearParameters, prepared: Prepared) -> Statistics:
    """Return the sums of one E-step: moments of votes, of the expected y, and of both; y is measured from its mean."""
    if not np.isfinite(parameters.degrees):
        prepared = prepared.condensed
    m, d = parameters.offset.shape
    if d == 1:
        belief, found = _believe_scores(parameters, prepared.labels, prepared.observed, LEARNING_ROUNDS, add_up=True)
        by_source = dict(zip(SOURCE_SUMS, found, strict=True))
    else:
        belief, by_source = _vector_sums(parameters, prepared)
    sums = {name: part.reshape(m, *[d] * SOURCE_SUMS[name]) for name, part in by_source.items()}
    moved = belief.mean - parameters.mean
    covered = prepared.repeats * prepared.observed.any(axis=1)
    often = np.bincount(belief.pattern, covered, minlength=len(belief.covariance))
    sums["first"] = covered @ moved
    sums["second"] = (covered[:, None] * moved).T @ moved + np.tensordot(often, belief.covariance, axes=1)
    sums["items"] = covered.sum()
    rows = prepared.is_known
    factor, y = moved[rows] / parameters.spread, prepared.known[rows] - parameters.mean
    products = [(factor**2).mean(axis=1).sum(), (y**2).mean(axis=1).sum(), (factor * y).mean(axis=1).sum()]
    sums["known"] = np.concatenate([[float(len(y))], factor.sum(axis=0), y.sum(axis=0), products])
    return Statistics(sums)


def _vector_sums(parameters: LinearParameters, prepared: Prepared) -> tuple[Belief, dict[str, FloatArray]]:
    m, d = parameters.offset.shape
    belief, residual, weight = _believe_vectors(parameters, prepared.labels, prepared.observed, LEARNING_ROUNDS)
    weight = weight * prepared.repeats[:, None]
    moved = belief.mean - parameters.mean
    truth_square, vote_square, cross = np.zeros((3, m, d, d))
    for source in range(m):
        own, vote = weight[:, source], residual[:, source]
        weighted = own[:, None] * vote
        often = np.bincount(belief.pattern, own, minlength=len(belief.covariance))
        truth_square[source] = (own[:, None] * moved).T @ moved + np.tensordot(often, belief.covariance, axes=1)
        vote_square[source] = weighted.T @ vote
        cross[source] = weighted.T @ moved
    return belief, {
        "count": prepared.repeats @ prepared.observed,
        "weight": weight.sum(axis=0),
        "truth": weight.T @ moved,
        "truth_square": truth_square,
        "vote": np.einsum("na,nad->ad", weight, residual),
        "vote_square": vote_square,
        "cross": cross,
    }
