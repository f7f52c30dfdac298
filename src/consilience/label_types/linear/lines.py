"""Level 2 of linear votes: lines of the sources from their qualities, and from the sums of an E-step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.estimation.protocol import Hypothesis, Statistics
from consilience.label_types.linear.belief import LinearParameters
from consilience.label_types.linear.gauge import known_moments
from consilience.label_types.linear.moments import LinearMoments

__all__ = ["draw_together", "lines_of", "plain_lines", "positive_part", "updated"]

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
#: Rounds of the factor analysis with which method="em" starts. On 40 simulated tables (3 to 12 sources, 60 to 3000
#: items) the median gap to the limit was below .0001 / sqrt(n) and the largest 2.6 / sqrt(n); EM goes on from there.
FACTOR_ROUNDS = 30
#: Items per coordinate that the common shape of noise is worth, in decades: from "each on its own" to "one for all".
SHAPE_STRENGTHS = (3.0, 30.0, 300.0, 3000.0)


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


def lines_of(hypothesis: Hypothesis, moments: LinearMoments, method: str, *, coarse: bool) -> LinearParameters:
    """Return the lines of sources of given qualities around a factor of mean zero and variance one.

    `coarse` says that the scale has so few steps that tails mean nothing.
    """
    m, d = moments.mean.shape
    active = moments.varied
    size = np.sqrt(np.where(active, moments.variance, moments.typical_variance))
    # Slopes are read off sources that share no errors: only groups count here.
    correlation = np.where(hypothesis.in_group, hypothesis.correlation, 0.0)
    quality = hypothesis.quality
    if method == "em" and active.sum() >= 3:
        quality = _principal_factor(moments.correlation)
    sign = np.where(quality < 0, -1.0, 1.0)
    quality = np.clip(np.abs(quality), LEAST_QUALITY, MOST_QUALITY)
    slope, noise = quality * size, (1.0 - quality**2) * size**2
    slope_hold, noise_hold = LEAST_HOLD / noise, np.full(m, LEAST_HOLD)
    if method not in ("em", "labelled") and active.sum() >= 3:
        spread = np.minimum(hypothesis.spread, 10.0)
        slope, noise, slope_hold = _steady_slopes(quality, spread, size, correlation, moments, sign)
        noise_hold = np.maximum(quality**2 / (2.0 * d * spread**2), LEAST_HOLD)
    slope = np.where(active, sign * slope, 0.0)
    noise = np.where(active, np.maximum(noise, NOISE_FLOOR * size**2), size**2)
    offset = moments.mean.copy()
    silent = moments.votes == 0
    if silent.any() and active.any():
        offset[silent], slope[silent] = moments.mean[active].mean(axis=0), slope[active].mean()
        noise[silent] = noise[active].mean()
    shape, matrices = _shapes(moments, slope, noise, active)
    degrees = float("inf")
    if not coarse and method == "auto" and _is_heavy(moments, quality, correlation):
        degrees, slope_hold, noise_hold = HEAVY, LEAST_HOLD / noise, np.full(m, LEAST_HOLD)
        # The variance of Student-t noise is degrees / (degrees - 2) times the square of its scale.
        matrices = matrices * (HEAVY - 2.0) / HEAVY
    return LinearParameters(
        offset=offset,
        slope=slope,
        noise=matrices,
        correlation=correlation,
        mean=np.zeros(d),
        variance=shape,
        degrees=degrees,
        votes=moments.votes,
        slope_hold=slope_hold,
        noise_hold=noise_hold,
        learns=method != "labelled",
    )


def _principal_factor(correlation: FloatArray) -> FloatArray:
    """Return the correlation of each source with the one factor that explains best how they are correlated."""
    off = correlation * (1.0 - np.eye(len(correlation)))
    loading = np.full(len(off), 0.5)
    for _ in range(FACTOR_ROUNDS):
        values, vectors = np.linalg.eigh(off + np.diag(loading**2))
        loading = np.clip(np.sqrt(max(values[-1], 0.0)) * vectors[:, -1], -MOST_QUALITY, MOST_QUALITY)
    return loading if loading.sum() >= 0 else -loading


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
    active = moments.varied
    usable = (moments.count >= 3) & (correlation == 0.0) & np.outer(active, active)
    np.fill_diagonal(usable, False)
    partners = np.maximum(usable.sum(axis=1), 1)
    between = np.where(usable, moments.covariance * np.outer(sign, sign), 0.0)
    # Pairs with many common items say more about a slope, and so do partners with little noise.
    loud = np.where(usable, moments.count * quality / (1.0 - quality**2) / size, 0.0)
    slope = quality * size
    for _ in range(10):
        total = (loud * between).sum(axis=1) / np.maximum(loud @ slope, 1e-300)
        slope = np.where(usable.any(axis=1), np.sqrt(np.maximum(slope * total, 1e-12 * size**2)), slope)
    slope = np.log(np.clip(slope, 0.2 * quality * size, 5.0 * quality * size))
    shared = np.maximum(np.where(usable, moments.count, 0.0).sum(axis=1) / partners, 1.0)
    told = np.where(active, quality**2 / (1.0 - quality**2), 0.0)
    # Long tails make covariances less certain than those of normal votes, and several coordinates more so.
    unit = np.where(usable, moments.unit, 0.0).sum(axis=1) / partners
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
    two_error = (two_error + (2.0 * slope**2) ** 2 * left_error) / two**2
    noise = np.exp((np.log(one) / one_error + np.log(two) / two_error) / (1.0 / one_error + 1.0 / two_error))
    hold = 1.0 / np.maximum(slope**2 * left_error, 1e-9 * size**2 / len(size))
    return slope, noise, hold


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
        matrices[active] = draw_together(positive_part(left, 0.1), moments.votes[active])
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


# --- M-step -------------------------------------------------------------------------------------------------


def updated(parameters: LinearParameters, sums: Statistics, start: LinearParameters) -> LinearParameters:
    """Return better lines from the sums of an E-step, held at their start as firmly as that is known."""
    d = len(parameters.mean)
    weight, count, items = np.maximum(sums["weight"], 1e-300), sums["count"], float(sums["items"])
    learned = (count > 0) & (start.slope != 0.0)
    truth, vote = sums["truth"], sums["vote"]
    spread = sums["truth_square"] - truth[:, :, None] * truth[:, None, :] / weight[:, None, None]
    shared = sums["cross"] - vote[:, :, None] * truth[:, None, :] / weight[:, None, None]
    inverse = np.linalg.inv(parameters.noise)
    # The start holds the slopes relative to each other; their common scale belongs to the gauge.
    firm = np.where(learned, np.minimum(start.slope_hold, 1e12 / np.maximum(start.slope**2, 1e-200)), 0.0)
    common = float(firm @ (parameters.slope * start.slope)) / max(float(firm @ start.slope**2), 1e-300)
    told = np.einsum("ade,aed->a", inverse, spread)
    slope = np.einsum("ade,aed->a", inverse, shared) + firm * common * start.slope
    slope = np.where(learned, slope / np.maximum(told + firm, 1e-300), parameters.slope)
    shift = (vote - slope[:, None] * truth) / weight[:, None]
    mixed = slope[:, None, None] * (sums["cross"] - shift[:, :, None] * truth[:, None, :])
    mixed = mixed + shift[:, :, None] * vote[:, None, :]
    left = sums["vote_square"] - mixed - np.swapaxes(mixed, 1, 2)
    left = left + weight[:, None, None] * shift[:, :, None] * shift[:, None, :]
    left = left + slope[:, None, None] ** 2 * sums["truth_square"]
    hold = start.noise_hold[:, None, None]
    noise = (left + hold * start.noise) / (count[:, None, None] + hold)
    moved = sums["first"] / max(items, 1.0)
    variance = sums["second"] / max(items, 1.0) - np.outer(moved, moved)
    if d > 1 and learned.any():
        noise[learned] = draw_together(positive_part(noise[learned], 2e-3), count[learned])
        part = d / (items + d)
        variance = positive_part((1.0 - part) * variance + part * np.diag(np.diag(variance)), 2e-3)
    least = NOISE_FLOOR * (start.slope**2 * start.spread**2 + start.noise_variance)
    lacking = np.maximum(least - np.trace(noise, axis1=1, axis2=2) / d, 0.0)
    noise = noise + lacking[:, None, None] * np.eye(d)
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
        variance=variance if items > 0 and np.trace(variance) > 0 else parameters.variance,
        known=known,
    )


# --- covariance matrices ------------------------------------------------------------------------------------


def positive_part(matrices: FloatArray, least: float) -> FloatArray:
    """Return symmetric matrices ``(..., d, d)`` with eigenvalues of at least a share of their mean absolute one.

    Examples
    --------
    >>> positive_part(np.array([[1.0, 0.0], [0.0, -3.0]]), least=0.1)
    array([[1. , 0. ],
           [0. , 0.2]])
    """
    even = 0.5 * (matrices + np.swapaxes(matrices, -1, -2))
    values, vectors = np.linalg.eigh(even)
    floor = least * np.maximum(np.abs(values).mean(axis=-1, keepdims=True), 1e-300)
    if (values >= floor).all():
        return np.asarray(even, dtype=np.float64)
    mended: FloatArray = (vectors * np.maximum(values, floor)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return mended


def draw_together(matrices: FloatArray, count: FloatArray) -> FloatArray:
    """Return covariances drawn to one common shape, each with the size it has, as strongly as they themselves ask for.

    The common shape is the mean of all, each divided by its size in units of that shape: the mode under an inverse
    Wishart law around it. Its strength is that of `SHAPE_STRENGTHS` with the largest evidence. Equivariant to any
    linear map.

    Parameters
    ----------
    matrices : array of shape (m, d, d)
        Positive definite.
    count : array of shape (m,)
        Items behind each of them.

    Examples
    --------
    Two sources of the same shape, seen in ten items each, are taken to have it in common:

    >>> seen = np.array([[[1.0, 0.1], [0.1, 1.0]], [[2.0, -0.2], [-0.2, 2.0]]])
    >>> draw_together(seen, np.array([10.0, 10.0])).round(2).tolist()
    [[[1.0, 0.0], [0.0, 1.0]], [[2.0, -0.0], [-0.0, 2.0]]]
    """
    d = matrices.shape[-1]
    share = count / max(float(count.sum()), 1e-300)
    shape = np.tensordot(share, matrices, axes=1)
    for _ in range(3):
        scale = np.einsum("de,aed->a", np.linalg.inv(shape), matrices) / d
        shape = np.tensordot(share, matrices / scale[:, None, None], axes=1)
    unit = matrices / scale[:, None, None]
    best = max(reversed(SHAPE_STRENGTHS), key=lambda strength: _evidence(unit, shape, count, strength * d)) * d
    part = (best / (count + best))[:, None, None]
    drawn: FloatArray = scale[:, None, None] * ((1.0 - part) * unit + part * shape)
    return drawn


def _evidence(matrices: FloatArray, shape: FloatArray, count: FloatArray, strength: float) -> float:
    """Return the log probability of covariances of so many items under an inverse Wishart law, but for a constant."""
    from scipy.special import multigammaln

    d = len(shape)
    freedom = strength + d + 1.0
    total = strength * shape + count[:, None, None] * matrices
    sizes = freedom * np.linalg.slogdet(strength * shape)[1] - (freedom + count) * np.linalg.slogdet(total)[1]
    return float((multigammaln((freedom + count) / 2.0, d) - multigammaln(freedom / 2.0, d) + sizes / 2.0).sum())
