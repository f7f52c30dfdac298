"""Level 2 of linear votes: lines of the sources from their qualities, refined by EM over the items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, few_votes
from consilience.estimation.protocol import Chunk, Hypothesis, Statistics
from consilience.label_types.linear.belief import (
    LEARNING_ROUNDS,
    LinearParameters,
    arguments_of_few,
    believe,
    vote_shares,
)
from consilience.label_types.linear.covariances import drawn_together, inverses, positive_part
from consilience.label_types.linear.gauge import known_from_items, known_moments
from consilience.label_types.linear.moments import LinearMoments

__all__ = ["Prepared", "lines_of", "plain_lines", "round_sums", "updated"]

#: Qualities are kept between these in size, as a line of slope zero would have no scale.
LEAST_QUALITY, MOST_QUALITY = 0.02, 0.999
#: No source explains more than all but this share of its variance; beyond lies a Heywood case.
NOISE_FLOOR = 0.005
#: Votes by which EM holds lines at their start where the qualities of the engine do not bind it.
LEAST_HOLD = 2.0
#: Degrees of freedom of heavy-tailed noise: few enough for outliers of any size to lose their say, and close to normal
#: in the middle.
HEAVY = 4.0
#: Kurtosis from which on noise is heavy-tailed: that of Student-t with 8 degrees of freedom, where weights pay off.
HEAVY_KURTOSIS = 4.5
#: Rounds of the factor analysis behind method="em".
FACTOR_ROUNDS = 500
#: Numbers in one item (sources times coordinates) up to which items without gaps are summed up once for all rounds.
MOST_NUMBERS = 400


# --- from qualities to lines --------------------------------------------------------------------------------


def plain_lines(moments: LinearMoments) -> LinearParameters:
    """Return sources without offset and with slope one: their labels are the plain means of the votes."""
    m, d = moments.mean.shape
    votes, typical = moments.votes, moments.typical_variance
    pairs = np.triu(moments.count, 1)
    apart = float((pairs * moments.squared_difference).sum() / max(float(pairs.sum()), 1.0)) / (2.0 * d)
    mean = np.average(moments.mean, axis=0, weights=votes) if votes.any() else np.zeros(d)
    shared = float(moments.covariance[pairs > 0].mean()) if (pairs > 0).any() else 0.5 * typical
    variance = max(shared, 0.05 * typical, 1e-12 * float((mean**2).mean()), 1e-150)
    noise = max(apart if apart > 0 else 0.5 * typical, 1e-12 * variance)
    return LinearParameters(
        offset=np.zeros((m, d)),
        slope=np.ones(m),
        noise=np.tile(noise * np.eye(d), (m, 1, 1)),
        correlation=np.zeros((m, m)),
        mean=mean,
        variance=variance * np.eye(d),
        shrink=0.0,
        votes=votes,
    )


def lines_of(hypothesis: Hypothesis, moments: LinearMoments, method: str, *, coarse: bool = False) -> LinearParameters:
    """Return the lines of sources of given qualities around a factor of mean zero and variance one.

    Parameters
    ----------
    coarse
        Whether the scale has so few steps that tails mean nothing.
    """
    m, d = moments.mean.shape
    active = moments.varied
    size = np.sqrt(np.where(active, moments.variance, moments.typical_variance))
    # Slopes are read off sources that share no errors: only groups count here.
    correlation = np.where(hypothesis.in_group, hypothesis.correlation, 0.0)
    sign = np.where(hypothesis.quality < 0, -1.0, 1.0)
    quality = np.clip(np.abs(hypothesis.quality), LEAST_QUALITY, MOST_QUALITY)
    slope, noise = quality * size, (1.0 - quality**2) * size**2
    spread = np.minimum(hypothesis.spread, 10.0)
    hold = np.full(m, LEAST_HOLD) / noise
    noise_hold = np.full(m, LEAST_HOLD)
    if method == "em":
        if active.sum() >= 3:
            chosen = np.flatnonzero(active)
            slope[chosen], noise[chosen] = _factor_analysis(moments.covariance[np.ix_(chosen, chosen)], size[chosen])
            sign = np.ones(m)
    elif method != "labelled" and active.sum() >= 3:
        slope, noise, hold = _steady_slopes(quality, spread, size, correlation, moments, sign)
        noise_hold = np.maximum(quality**2 / (2.0 * d * spread**2), LEAST_HOLD)
    slope = np.where(active, sign * slope, 0.0)
    noise = np.where(active, np.maximum(noise, NOISE_FLOOR * size**2), size**2)
    offset = moments.mean.copy()
    silent = moments.votes == 0
    if silent.any() and active.any():
        offset[silent], slope[silent] = moments.mean[active].mean(axis=0), slope[active].mean()
        noise[silent] = noise[active].mean()
    shape, matrices = _shapes(moments, slope, noise, active)
    heavy = not coarse and method == "auto" and _is_heavy(moments, quality, correlation)
    lines = LinearParameters(
        offset=offset,
        slope=slope,
        noise=matrices,
        correlation=correlation,
        mean=np.zeros(d),
        variance=shape,
        votes=moments.votes,
        slope_hold=hold,
        noise_hold=noise_hold,
        learns=method != "labelled",
    )
    if not heavy:
        return lines
    free = np.full(m, LEAST_HOLD)
    # The variance of Student-t noise is degrees / (degrees - 2) times the square of its scale.
    return replace(
        lines, degrees=HEAVY, noise=matrices * (HEAVY - 2.0) / HEAVY, slope_hold=free / noise, noise_hold=free
    )


def _steady_slopes(
    quality: FloatArray,
    spread: FloatArray,
    size: FloatArray,
    correlation: FloatArray,
    moments: LinearMoments,
    sign: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return slopes, noise variances and how firmly the slopes are known.

    Slopes follow from the covariances between sources that share no errors, and are drawn to a common one as far as
    their errors explain why they differ (James and Stein). The noise is known twice: from the correlations, and from
    the variance that the slope leaves over.
    """
    m = len(quality)
    usable = (moments.count >= 3) & (correlation == 0.0) & np.outer(moments.varied, moments.varied)
    np.fill_diagonal(usable, False)
    between = np.where(usable, moments.covariance * np.outer(sign, sign), 0.0)
    # Pairs with many common items say more about a slope, and so do partners with little noise.
    loud = np.where(usable, moments.count * quality / (1.0 - quality**2) / size, 0.0)
    slope = quality * size
    for _ in range(10):
        total = (loud * between).sum(axis=1) / np.maximum(loud @ slope, 1e-300)
        slope = np.where(usable.any(axis=1), np.sqrt(np.maximum(slope * total, 1e-12 * size**2)), slope)
    slope = np.log(np.clip(slope, 0.2 * quality * size, 5.0 * quality * size))
    active = moments.varied
    shared = np.maximum(np.where(usable, moments.count, 0.0).sum(axis=1) / np.maximum(usable.sum(axis=1), 1), 1.0)
    told = np.where(active, quality**2 / (1.0 - quality**2), 0.0)
    # Long tails make covariances less certain than those of normal votes, and several coordinates more so.
    unit = np.where(usable, moments.unit, 0.0).sum(axis=1) / np.maximum(usable.sum(axis=1), 1)
    error = (1.0 - quality**2) / (quality**2 * shared) * (1.0 + 1.0 / np.maximum(told.sum() - told, 0.1))
    error = error * np.where(unit > 0, unit, 1.0)
    weight = np.where(active, 1.0 / error, 0.0)
    # Sources whose votes spread more have either more noise, and the slope of the others, or a wider scale.
    wide = np.log(size) - float(weight @ np.log(size) / weight.sum())
    mean = float(weight @ slope / weight.sum())
    share = float(np.clip((weight * wide) @ (slope - mean) / (1.0 + weight @ wide**2), 0.0, 1.0))
    center = mean + share * wide
    apart = float(weight @ (slope - center) ** 2)
    pull = min(1.0, max(int(active.sum()) - 3, 0.5) / max(apart, 1e-9))
    slope = np.exp(center + (slope - center) * (1.0 - pull))
    left_error = error * (1.0 - pull)
    # Both in logarithms, so that a variance which the slope uses up has no say.
    one, two = slope**2 * (1.0 / quality**2 - 1.0), np.maximum(size**2 - slope**2, 0.02 * size**2)
    one_error = (2.0 * spread / quality) ** 2
    two_error = 2.0 * np.diag(moments.unit) * size**4 / np.maximum(moments.votes, 2.0)
    two_error += (2.0 * slope**2) ** 2 * left_error
    two_error /= two**2
    noise = np.exp((np.log(one) / one_error + np.log(two) / two_error) / (1.0 / one_error + 1.0 / two_error))
    hold = 1.0 / np.maximum(slope**2 * left_error, 1e-9 * size**2 / m)
    return slope, noise, hold


def _factor_analysis(covariance: FloatArray, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return loadings and noise variances of greatest likelihood, by EM on the covariance of the votes."""
    unit = covariance / np.outer(size, size)
    np.fill_diagonal(unit, 1.0)
    loading = np.full(len(size), 0.5)
    noise = 1.0 - loading**2
    for _ in range(FACTOR_ROUNDS):
        gain = loading / noise
        gain = gain / (1.0 + loading @ gain)
        shadow = unit @ gain
        second = max(1.0 - float(gain @ loading) + float(gain @ shadow), 1e-9)
        found = np.clip(shadow / second, -1.0, 1.0)
        remaining = np.maximum(1.0 - found * shadow, NOISE_FLOOR)
        change = float(np.abs(found - loading).max() + np.abs(remaining / noise - 1.0).max())
        loading, noise = found, remaining
        if change < 1e-7:
            break
    loading = loading if loading.sum() >= 0 else -loading
    return loading * size, noise * size**2


def _shapes(
    moments: LinearMoments, slope: FloatArray, noise: FloatArray, active: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the covariance of the factor, of mean variance one, and those of the noise, of given mean variance."""
    m, d = moments.mean.shape
    if d == 1:
        return np.ones((1, 1)), noise[:, None, None]
    shape = positive_part(moments.shared_covariance, 0.02)
    shape = shape * d / np.trace(shape)
    matrices = np.tile(np.eye(d), (m, 1, 1))
    if active.any():
        left = moments.own_covariance[active] - slope[active, None, None] ** 2 * shape
        left = positive_part(left, 0.1)
        matrices[active] = drawn_together(left, moments.votes[active])
    matrices *= (noise * d / np.trace(matrices, axis1=1, axis2=2))[:, None, None]
    return shape, matrices


def _is_heavy(moments: LinearMoments, quality: FloatArray, correlation: FloatArray) -> bool:
    """Return whether the noise of some source has heavier tails than normal noise, from fourth moments.

    The mean product of the squares of two independent sources shows how heavy the tails of y are; what the fourth
    moment of a source has beyond these and four of its standard errors is the kurtosis of its noise.
    """
    told, left = quality**2, 1.0 - quality**2
    pairs = np.where((correlation == 0.0) & np.outer(moments.varied, moments.varied), moments.count, 0.0)
    np.fill_diagonal(pairs, 0.0)
    both = np.outer(told, told)
    if not (pairs * both).any():
        return False
    rest = np.outer(told, left) + np.outer(left, told) + np.outer(left, left)
    truth = max(float((pairs * both * (moments.joint_fourth - rest)).sum() / (pairs * both**2).sum()), 1.0)
    own = np.diag(moments.joint_fourth) - told**2 * truth - 6.0 * told * left
    error = 4.0 * np.sqrt(96.0 / np.maximum(moments.votes * moments.mean.shape[1], 1.0))
    # Where y itself has long tails, small errors of its share pass for tails of the noise.
    error = error + told**2 * max(truth - 3.0, 0.0)
    heavy = (own > HEAVY_KURTOSIS * left**2) & (own - 3.0 * left**2 > error)
    return bool((heavy & moments.varied & (moments.votes >= 30)).any())


# --- EM -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Prepared:
    """A chunk as the E-step wants it.

    Items without gaps and without a known label are summed up once: under normal noise nothing else of them matters.
    """

    labels: npt.NDArray[Any]
    observed: BoolArray
    known: FloatArray | None
    is_known: BoolArray

    @classmethod
    def of(cls, labels: npt.NDArray[Any], chunk: Chunk) -> Prepared:
        """Return a chunk with votes ``(n, m, d)``."""
        known = None if chunk.known is None else np.asarray(chunk.known, dtype=np.float64).reshape(len(chunk), -1)
        is_known = np.zeros(len(chunk), dtype=bool) if chunk.is_known is None else chunk.is_known
        return cls(labels, chunk.observed, known, is_known)

    @cached_property
    def full(self) -> BoolArray:
        """``(n,)`` items that are summed up."""
        n, m, d = self.labels.shape
        full: BoolArray = self.observed.all(axis=1) & ~self.is_known
        return full if m * d <= MOST_NUMBERS and full.sum() > 2 * m * d else np.zeros(n, dtype=bool)

    @cached_property
    def block(self) -> tuple[int, FloatArray, FloatArray]:
        """Number, mean ``(m, d)`` and centered products ``(m d, m d)`` of these items."""
        _, m, d = self.labels.shape
        votes = self.labels if self.full.all() else self.labels[self.full]
        mean = votes.mean(axis=0)
        flat = (votes - mean).reshape(len(votes), m * d)
        return len(votes), mean, flat.T @ flat

    @cached_property
    def rest(self) -> Prepared:
        """The other items."""
        keep = ~self.full
        return Prepared(
            self.labels[keep],
            self.observed[keep],
            None if self.known is None else self.known[keep],
            self.is_known[keep],
        )


def round_sums(parameters: LinearParameters, prepared: Prepared) -> Statistics:
    """Return the sums of one E-step: moments of votes, of the expected y, and of both."""
    if np.isfinite(parameters.degrees) or not prepared.full.any():
        return _sums_of_items(parameters, prepared)
    total = _sums_of_block(parameters, *prepared.block)
    return total if prepared.full.all() else total + _sums_of_items(parameters, prepared.rest)


def _sums_of_block(parameters: LinearParameters, count: int, mean: FloatArray, products: FloatArray) -> Statistics:
    m, d = parameters.offset.shape
    away = mean - parameters.offset - parameters.slope[:, None] * parameters.mean
    flat = away.ravel()
    second = products + count * np.outer(flat, flat)
    shares = vote_shares(parameters, np.ones((1, m), dtype=bool))[0]
    gain = (shares * parameters.slope)[:, None, None] * inverses(parameters.noise)
    told, law = np.tensordot(parameters.slope, gain, axes=1), inverses(parameters.variance)
    covariance = inverses(told + parameters.shrink * law) if np.trace(told) > 0 else parameters.variance
    weights = (covariance @ gain).transpose(1, 0, 2).reshape(d, m * d)
    cross = (second @ weights.T).reshape(m, d, d)
    truth = weights @ second @ weights.T + count * covariance
    first = count * weights @ flat
    own = second.reshape(m, d, m, d)[np.arange(m), :, np.arange(m)]
    return Statistics(
        {
            "weight": np.full(m, float(count)),
            "count": np.full(m, float(count)),
            "truth": np.tile(first, (m, 1)),
            "truth_square": np.tile(truth, (m, 1, 1)),
            "vote": count * away,
            "vote_square": own,
            "cross": cross,
            "first": first,
            "second": truth,
            "items": np.array(float(count)),
            "known": np.zeros(4 + 2 * d),
        }
    )


def _sums_of_items(parameters: LinearParameters, prepared: Prepared) -> Statistics:
    m, d = parameters.offset.shape
    labels, observed = prepared.labels, prepared.observed
    rows = np.flatnonzero(prepared.is_known & observed.any(axis=1))
    if d == 1 and not parameters.correlation.any() and few_votes(observed):
        sums = _sums_of_few(parameters, labels, observed)
        belief = believe(parameters, labels[rows], observed[rows], LEARNING_ROUNDS) if len(rows) else None
    else:
        belief = believe(parameters, labels, observed, LEARNING_ROUNDS)
        covered: BoolArray = np.asarray(observed.any(axis=1))
        moved = np.where(covered[:, None], belief.mean - parameters.mean, 0.0)
        spread = belief.covariance[belief.pattern] * covered[:, None, None]
        truth = (moved[:, :, None] * moved[:, None, :] + spread).reshape(len(labels), d * d)
        weight, weighted = belief.weight, belief.weight[..., None] * belief.residual
        sums = {
            "weight": weight.sum(axis=0),
            "count": observed.sum(axis=0).astype(np.float64),
            "truth": weight.T @ moved,
            "truth_square": (weight.T @ truth).reshape(m, d, d),
            "vote": weighted.sum(axis=0),
            "vote_square": np.einsum("nad,nae->ade", weighted, belief.residual),
            "cross": np.einsum("nad,ne->ade", weighted, moved),
            "first": moved.sum(axis=0),
            "second": truth.sum(axis=0).reshape(d, d),
            "items": np.array(float(covered.sum())),
        }
        belief = replace(belief, mean=belief.mean[rows])
    known = np.zeros(4 + 2 * d)
    if len(rows) and belief is not None and prepared.known is not None:
        known = known_from_items(parameters, belief, prepared.known[rows])
    return Statistics({**sums, "known": known})


def _sums_of_few(
    parameters: LinearParameters, labels: npt.NDArray[Any], observed: BoolArray
) -> dict[str, npt.NDArray[Any]]:
    from consilience.label_types.linear.kernels import round_of_few

    by_source, overall = round_of_few(labels[:, :, 0], observed, *arguments_of_few(parameters, LEARNING_ROUNDS))
    weight, truth, truth_square, vote, vote_square, cross, count = by_source
    return {
        "weight": weight,
        "count": count,
        "truth": truth[:, None],
        "truth_square": truth_square[:, None, None],
        "vote": vote[:, None],
        "vote_square": vote_square[:, None, None],
        "cross": cross[:, None, None],
        "first": overall[:1],
        "second": overall[1:2, None],
        "items": overall[2],
    }


def updated(parameters: LinearParameters, sums: Statistics, start: LinearParameters) -> LinearParameters:
    """Return better lines from the sums of an E-step, held at their start as firmly as that is known."""
    d = len(parameters.mean)
    weight, count = np.maximum(sums["weight"], 1e-300), sums["count"]
    learned = (count > 0) & (start.slope != 0.0)
    truth, vote = sums["truth"], sums["vote"]
    spread = sums["truth_square"] - truth[:, :, None] * truth[:, None, :] / weight[:, None, None]
    shared = sums["cross"] - vote[:, :, None] * truth[:, None, :] / weight[:, None, None]
    inverse = inverses(parameters.noise)
    # The start holds the slopes relative to each other; their common scale belongs to the gauge.
    firm = np.where(learned, np.minimum(start.slope_hold, 1e12 / np.maximum(start.slope**2, 1e-200)), 0.0)
    common = float(firm @ (parameters.slope * start.slope)) / max(float(firm @ start.slope**2), 1e-300)
    told = np.einsum("ade,aed->a", inverse, spread)
    slope = np.einsum("ade,aed->a", inverse, shared) + firm * common * start.slope
    slope = np.where(learned, slope / np.maximum(told + firm, 1e-300), parameters.slope)
    shift = (vote - slope[:, None] * truth) / weight[:, None]
    mixed = sums["cross"] - shift[:, :, None] * truth[:, None, :]
    drift = shift[:, :, None] * vote[:, None, :]
    left = sums["vote_square"] - drift - np.swapaxes(drift, 1, 2)
    left = left + weight[:, None, None] * shift[:, :, None] * shift[:, None, :]
    left = left - slope[:, None, None] * (mixed + np.swapaxes(mixed, 1, 2))
    left = left + slope[:, None, None] ** 2 * sums["truth_square"]
    hold = start.noise_hold[:, None, None]
    noise = (left + hold * start.noise) / (count[:, None, None] + hold)
    size = NOISE_FLOOR * (start.slope**2 * start.spread**2 + start.noise_variance)
    noise = _proper(noise, size, count, learned)
    moved = sums["first"] / max(float(sums["items"]), 1.0)
    second = sums["second"] / max(float(sums["items"]), 1.0) - np.outer(moved, moved)
    if d > 1:
        part = d / (float(sums["items"]) + d)
        second = positive_part((1.0 - part) * second + part * np.diag(np.diag(second)), 2e-3)
    step = np.where(learned, slope - parameters.slope, 0.0)
    known = parameters.known
    if known.size and float(sums["known"][0]) >= 0.99 * known[0]:
        known = known_moments(sums["known"], parameters.mean)
    return replace(
        parameters,
        offset=parameters.offset + np.where(learned[:, None], shift - step[:, None] * parameters.mean, 0.0),
        slope=slope,
        noise=np.where(learned[:, None, None], noise, parameters.noise),
        mean=parameters.mean + moved,
        variance=second if float(sums["items"]) > 0 and np.trace(second) > 0 else parameters.variance,
        known=known,
    )


def _proper(noise: FloatArray, least: FloatArray, count: FloatArray, learned: BoolArray) -> FloatArray:
    """Return covariances above their floor, drawn to a common shape where they have one."""
    d = noise.shape[1]
    if d > 1 and learned.any():
        kept = positive_part(noise[learned], 2e-3)
        noise = noise.copy()
        noise[learned] = drawn_together(kept, count[learned])
    lacking = np.maximum(least - np.trace(noise, axis1=1, axis2=2) / d, 0.0)
    return np.asarray(noise + lacking[:, None, None] * np.eye(d), dtype=np.float64)
