"""What votes ``offset + slope * y + noise`` say about y: mean and covariance of each item, and sums of an E-step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from consilience.arrays import Axes, BoolArray, Correlation, FloatArray, IntArray
from consilience.estimation.protocol import Chunk, Parameters, Statistics
from consilience.label_types.linear.quantiles import quantile_average, standard_labels
from consilience.label_types.linear.small import CELLS
from consilience.label_types.vote_correlation import distinct_rows, gls_weights

__all__ = ["Belief", "LinearParameters", "Prepared", "believe", "condense", "round_sums"]

#: Rounds of reweighting votes for heavy tails, during learning and for labels.
LEARNING_ROUNDS, LABEL_ROUNDS = 12, 60
#: Largest number of values in the covariances of a block of items.
BLOCK = 1 << 22
#: Largest number of values per item (sources times coordinates) for which complete vectors are condensed.
MOST_NUMBERS = 400
#: Sums over the votes of each source in an E-step, and how many axes of coordinates each has.
SOURCE_SUMS = {"count": 0, "weight": 0, "truth": 1, "truth_square": 2, "vote": 1, "vote_square": 2, "cross": 2}


def _nothing() -> FloatArray:
    return np.zeros(0)


@dataclass(frozen=True)
class LinearParameters(Parameters):
    """Lines of m sources in d dimensions, and the distribution of y."""

    offset: Annotated[FloatArray, Axes("m d")]
    slope: Annotated[FloatArray, Axes("m")]  # a negative slope is a reversed scale, and is used
    noise: Annotated[FloatArray, Axes("m d d", covariance=True, definite=True)]
    correlation: Correlation  # of the noise of two sources, zero on the diagonal
    mean: Annotated[FloatArray, Axes("d")]  # prior mean of y
    variance: Annotated[FloatArray, Axes("d d", covariance=True, definite=True)]  # prior covariance of y
    # Degrees of freedom of the noise: infinite if normal, 4 for heavy tails
    degrees: Annotated[float, Axes("", 2.0, infinite=True)] = float("inf")
    # How far labels shrink to the mean if votes are uncertain; 0 for plain weighted means
    shrink: Annotated[float, Axes("", 0.0, 1.0)] = 1.0
    # Weight of each source in setting the scale of y; adds up to 1, or all zero
    say: Annotated[FloatArray, Axes("m", 0.0, 1.0, optional=True)] = field(default_factory=_nothing)
    # Number of votes of each source
    votes: Annotated[FloatArray, Axes("m", 0.0, optional=True)] = field(default_factory=_nothing)
    # Precision with which EM holds a slope at its start
    slope_hold: Annotated[FloatArray, Axes("m", 0.0, infinite=True, optional=True)] = field(default_factory=_nothing)
    # Pseudo-votes with which EM holds the noise at its start
    noise_hold: Annotated[FloatArray, Axes("m", 0.0, infinite=True, optional=True)] = field(default_factory=_nothing)
    # Moments of known labels, see `lines.known_from_sums`
    known: Annotated[FloatArray, Axes("known", optional=True)] = field(default_factory=_nothing)
    # Quantile functions of the sources, if lines are fitted to normal scores
    knots: Annotated[FloatArray, Axes("m knots", optional=True, needs="say")] = field(default_factory=_nothing)
    # Turn labels of normal scores into the scale of known labels: level + unit * label
    level: Annotated[float, Axes("")] = 0.0
    unit: Annotated[float, Axes("", 0.0)] = 1.0
    learns: bool = False  # whether EM may change anything

    @property
    def bent(self) -> bool:
        """Whether the lines are those of normal scores."""
        return self.knots.size > 0

    def label_at(self, factor: FloatArray) -> FloatArray:
        """Return the label at a factor of mean 0 and variance 1, where lines are those of normal scores."""
        return self.level + self.unit * quantile_average(self.say, self.knots, factor)

    @property
    def usual_labels(self) -> FloatArray:
        """Labels that represent a normal factor, where lines are those of normal scores."""
        labels: FloatArray = self.level + self.unit * (self.say @ self.knots)
        return labels

    @property
    def noise_variance(self) -> FloatArray:
        """``(m,)`` mean noise variance of a coordinate."""
        return np.trace(self.noise, axis1=1, axis2=2) / self.noise.shape[1]

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


class Belief(NamedTuple):
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

    These are the weights of generalized least squares over the information of each vote: 1/k for k copies.
    """
    group = np.flatnonzero((parameters.correlation != 0.0).any(axis=1) & (parameters.slope != 0.0))
    if len(group) == 0 or len(observed) == 0:
        return np.ones((1, len(parameters.slope)))
    if observed.all():
        observed = observed[:1]
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
    if labels.size <= CELLS:
        from consilience.label_types.linear.small import believe_scores
    else:
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
    degrees, slope, heavy = parameters.degrees, parameters.slope, bool(np.isfinite(parameters.degrees))
    n, m, d = labels.shape
    residual = labels - (parameters.offset + slope[:, None] * parameters.mean)
    residual = np.where(observed[..., None], residual, 0.0)
    inverse, law = np.linalg.inv(parameters.noise), np.linalg.inv(parameters.variance)
    gain = slope[:, None, None] * inverse
    weight = observed.astype(np.float64)
    shares = weight * _vote_shares(parameters, observed)
    # Under normal noise the covariance depends only on who votes.
    first, pattern = (np.arange(n), np.arange(n)) if heavy else distinct_rows(observed)
    rows = max(BLOCK // (d * d), 256)
    moved, covariance = np.zeros((n, d)), np.zeros((len(first), d, d))
    for step in range(rounds + 1 if heavy else 1):
        if step > 0:
            left = residual - moved[:, None] * slope[:, None]
            misfit = np.einsum("nad,ade,nae->na", left, inverse, left)
            misfit += np.einsum("nde,aed->na", covariance, inverse) * slope**2
            weight = observed * (degrees + d) / (degrees + misfit)
        counted, before, moved = shares * weight, moved, np.zeros((n, d))
        for source in range(m):
            moved += (counted[:, source, None] * residual[:, source]) @ gain[source]
        precision = np.tensordot(counted[first], slope[:, None, None] * gain, axes=1)
        informed = np.trace(precision, axis1=1, axis2=2) > 0
        covariance = np.linalg.inv(np.where(informed[:, None, None], precision + parameters.shrink * law, law))
        covariance = 0.5 * (covariance + np.swapaxes(covariance, 1, 2))
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            if len(covariance) == 1:
                moved[part] = moved[part] @ covariance[0]
            else:
                moved[part] = np.einsum("nd,nde->ne", moved[part], covariance[pattern[part]])
        if step > 0 and np.abs(moved - before).max(initial=0.0) < 1e-6 * parameters.spread:
            break
    return Belief(parameters.mean + moved, covariance, pattern), residual, weight


# --- E-step -------------------------------------------------------------------------------------------------


class Prepared(NamedTuple):
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


def condense(prepared: Prepared) -> Prepared:
    """Return a few items in place of all those without gaps and known label, with the same number, mean and products.

    Under normal noise nothing else of them matters.
    """
    m, d = prepared.labels.shape[1:]
    size = m * d
    full = prepared.observed.all(axis=1) & ~prepared.is_known
    if size > MOST_NUMBERS or full.sum() <= 2 * size or (d == 1 and not full.all()):
        return prepared  # scores with gaps have a compiled loop
    votes = prepared.labels[full].reshape(-1, size)
    mean, added = votes.mean(axis=0), 2 * size
    values, vectors = np.linalg.eigh((votes - mean).T @ (votes - mean))
    away = (vectors * np.sqrt(np.maximum(values, 0.0) * size / len(votes))).T
    few = Prepared(
        np.concatenate([mean + away, mean - away]).reshape(-1, m, d),
        np.ones((added, m), dtype=bool),
        np.zeros((added, d)),
        np.zeros(added, dtype=bool),
        np.full(added, len(votes) / added),
    )
    return Prepared(*(np.concatenate([part[~full], more]) for part, more in zip(prepared, few, strict=True)))


def round_sums(parameters: LinearParameters, prepared: Prepared) -> Statistics:
    """Return the sums of one E-step: moments of votes, of the expected y, and of both; y is measured from its mean."""
    labels, observed, known, is_known, repeats = prepared
    m, d = parameters.offset.shape
    if d == 1 and (repeats == 1.0).all():
        belief, totals = _believe_scores(parameters, labels, observed, LEARNING_ROUNDS, add_up=True)
        moved, found = belief.mean - parameters.mean, list(totals)
    else:
        belief, residual, weight = _believe_vectors(parameters, labels, observed, LEARNING_ROUNDS)
        moved = belief.mean - parameters.mean
        own, vote = (weight * repeats[:, None]).T, np.swapaxes(residual, 0, 1)
        weighted = np.swapaxes(own[:, :, None] * vote, 1, 2)
        often = np.stack([np.bincount(belief.pattern, one, minlength=len(belief.covariance)) for one in own])
        found = [
            repeats @ observed,
            own.sum(axis=1),
            own @ moved,
            (own[:, None] * moved.T) @ moved + np.tensordot(often, belief.covariance, axes=1),
            weighted.sum(axis=2),
            weighted @ vote,
            weighted @ moved,
        ]
    axes = SOURCE_SUMS.items()
    sums = {name: part.reshape(m, *[d] * size) for (name, size), part in zip(axes, found, strict=True)}
    covered = repeats * observed.any(axis=1)
    often = np.bincount(belief.pattern, covered, minlength=len(belief.covariance))
    sums["first"] = covered @ moved
    sums["second"] = (covered[:, None] * moved).T @ moved + np.tensordot(often, belief.covariance, axes=1)
    sums["items"] = covered.sum()
    factor, y = moved[is_known] / parameters.spread, known[is_known] - parameters.mean
    if parameters.bent:
        factor = standard_labels(parameters.say, parameters.knots, factor)
    products = [(factor**2).mean(axis=1).sum(), (y**2).mean(axis=1).sum(), (factor * y).mean(axis=1).sum()]
    sums["known"] = np.concatenate([[float(len(y))], factor.sum(axis=0), y.sum(axis=0), products])
    return Statistics(sums)
