"""Level 2 of linear votes: lines of the sources from their qualities and from the sums of an E-step, and their gauge.

Votes alone do not tell where y lies and how far it spreads. In order of preference: mean and variance as given; known
labels, which set level and unit; the sources themselves, either alike or by the information that each carries about y,
``slope^2 / noise``. Until then, lines are those of a *factor* of mean zero whose coordinates have variance one on
average.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.estimation.protocol import Hypothesis, Statistics
from consilience.label_types.linear.belief import LinearParameters
from consilience.label_types.linear.moments import LEAST_VARIANCE, LinearMoments

__all__ = ["Told", "in_gauge", "known_from_sums", "lines_of", "plain_lines", "source_say", "updated"]

#: Bounds of the absolute quality, because a line of slope zero has no scale.
LEAST_QUALITY, MOST_QUALITY = 0.02, 0.999
#: Least share of the variance of a source that is noise. Less would be a Heywood case.
NOISE_FLOOR = 0.005
#: Pseudo-votes that hold lines at their start in EM, where the engine's qualities do not.
LEAST_HOLD = 2.0
#: Degrees of freedom of heavy-tailed noise: few enough to ignore large outliers, and close to normal in the middle.
HEAVY = 4.0
#: Noise with a larger kurtosis is heavy-tailed. This is the kurtosis of Student-t with 8 degrees of freedom, where
#: reweighting starts to pay off.
HEAVY_KURTOSIS = 4.5
#: Rounds of the factor analysis that starts method="em". On 40 simulated tables (3 to 12 sources, 60 to 3000 items),
#: the largest distance to the limit was 2.6 / sqrt(n). EM continues from there.
FACTOR_ROUNDS = 30
#: Prior strength of the common shape of noise, in items per coordinate: from "each on its own" to "one for all".
SHAPE_STRENGTHS = (3.0, 30.0, 300.0, 3000.0)
#: Offsets and slopes of sources may scatter in proportion to these powers of the noise variance. Precise sources often
#: have the right level, too, so the last power has better prior odds.
SCATTER_POWERS = {0.0: 1.0, 0.5: 1.0, 1.0: 4.0}
#: With this many known labels or fewer, the scale does not depend on them.
FEW_LABELS = 3
#: The scatter of labels around their line that the votes imply counts as much as this many known labels.
SEEN_SCATTER = 5.0
#: Prior odds that labels follow another line than the sources if all sources have the same slope, or the same level.
#: The odds are even if slopes scatter by the second number around their mean, or levels in units of the spread of y.
#: If the sources are right, five known labels increase the loss by 1.8% with odds of .1, and by .4% with .03. On the
#: films and the judges, there is no difference.
ODDS_ALIKE, DIFFERENT = 0.03, 0.3


@dataclass(frozen=True)
class Told:
    """What the user says about y: ``(d,)`` mean, ``(d, d)`` covariance, and the ends of its scale; None if unknown."""

    mean: FloatArray | None = None
    covariance: FloatArray | None = None
    range: tuple[float, float] | None = None


# --- from qualities to lines --------------------------------------------------------------------------------


def plain_lines(moments: LinearMoments, told: Told) -> LinearParameters:
    """Return sources without offset and with slope one: their labels are the plain means of the votes."""
    m, d = moments.mean.shape
    votes, typical = moments.votes, moments.typical_variance
    pairs = np.triu(moments.count, 1)
    apart = float((pairs * moments.squared_difference).sum() / max(float(pairs.sum()), 1.0)) / (2.0 * d)
    mean = np.average(moments.mean, axis=0, weights=votes) if votes.any() else np.zeros(d)
    shared = float(moments.covariance[pairs > 0].mean()) if (pairs > 0).any() else 0.5 * typical
    variance = max(shared, 0.05 * typical, 1e-12 * float((mean**2).mean()), LEAST_VARIANCE)
    noise = max(apart if apart > 0 else 0.5 * typical, 1e-12 * variance)
    return LinearParameters(
        offset=np.zeros((m, d)),
        slope=np.ones(m),
        noise=np.tile(noise * np.eye(d), (m, 1, 1)),
        correlation=np.zeros((m, m)),
        mean=mean if told.mean is None else told.mean,
        variance=variance * np.eye(d) if told.covariance is None else told.covariance,
        shrink=0.0,
        votes=votes,
    )


def lines_of(hypothesis: Hypothesis, moments: LinearMoments, method: str, *, coarse: bool) -> LinearParameters:
    """Return the lines of sources of given qualities around a factor of mean zero and variance one.

    `coarse` says that the scale has so few steps that tails mean nothing.
    """
    m, d = moments.mean.shape
    active, size = moments.varied, moments.deviation
    # Slopes follow from sources that share no errors, so only the correlation inside groups matters here.
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
        slope, noise, slope_hold = _steady_slopes(quality, sign, spread, correlation, moments)
        noise_hold = np.maximum(quality**2 / (2.0 * d * spread**2), LEAST_HOLD)
    slope = np.where(active, sign * slope, 0.0)
    noise = np.where(active, np.maximum(noise, NOISE_FLOOR * size**2), size**2)
    offset = moments.mean.copy()
    silent = moments.votes == 0
    if silent.any() and active.any():
        offset[silent], slope[silent] = moments.mean[active].mean(axis=0), slope[active].mean()
        noise[silent] = noise[active].mean()
    shape, matrices = np.ones((1, 1)), noise[:, None, None]
    if d > 1:
        shape = positive_part(moments.shared_covariance, 0.02)
        shape = shape * d / np.trace(shape)
        matrices = np.tile(np.eye(d), (m, 1, 1))
        if active.any():
            left = moments.own_covariance[active] - slope[active, None, None] ** 2 * shape
            matrices[active] = draw_together(positive_part(left, 0.1), moments.votes[active])
        matrices *= (noise * d / np.trace(matrices, axis1=1, axis2=2))[:, None, None]
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
    quality: FloatArray, sign: FloatArray, spread: FloatArray, correlation: FloatArray, moments: LinearMoments
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return slopes, noise variances and how firmly the slopes are known.

    Slopes follow from the covariances between sources that share no errors, and are drawn to a common one as far as
    their errors explain why they differ (James and Stein). The noise is known twice: from the correlations, and from
    the variance that the slope leaves over.
    """
    size = moments.deviation
    active = moments.varied
    usable = (moments.count >= 3) & (correlation == 0.0) & np.outer(active, active)
    np.fill_diagonal(usable, False)
    partners = np.maximum(usable.sum(axis=1), 1)
    between = np.where(usable, moments.covariance * np.outer(sign, sign), 0.0)
    # Pairs with many common items and partners with little noise determine a slope better.
    loud = np.where(usable, moments.count * quality / (1.0 - quality**2) / size, 0.0)
    slope = quality * size
    for _ in range(10):
        total = (loud * between).sum(axis=1) / np.maximum(loud @ slope, 1e-300)
        slope = np.where(usable.any(axis=1), np.sqrt(np.maximum(slope * total, 1e-12 * size**2)), slope)
    slope = np.log(np.clip(slope, 0.2 * quality * size, 5.0 * quality * size))
    shared = np.maximum(np.where(usable, moments.count, 0.0).sum(axis=1) / partners, 1.0)
    told = np.where(active, quality**2 / (1.0 - quality**2), 0.0)
    # Heavy tails make covariances less certain than for normal votes, and several coordinates make them more certain.
    unit = np.where(usable, moments.unit, 0.0).sum(axis=1) / partners
    error = (1.0 - quality**2) / (quality**2 * shared) * (1.0 + 1.0 / np.maximum(told.sum() - told, 0.1))
    error = error * np.where(unit > 0, unit, 1.0)
    weight = np.where(active, 1.0 / error, 0.0)
    # A source with a larger spread of votes has either more noise or a wider scale.
    wide = np.log(size) - float(weight @ np.log(size) / weight.sum())
    mean = float(weight @ slope / weight.sum())
    share = float(np.clip((weight * wide) @ (slope - mean) / (1.0 + weight @ wide**2), 0.0, 1.0))
    center = mean + share * wide
    apart = float(weight @ (slope - center) ** 2)
    pull = min(1.0, max(int(active.sum()) - 3, 0.5) / max(apart, 1e-9))
    slope = np.exp(center + (slope - center) * (1.0 - pull))
    left_error = error * (1.0 - pull)
    # Both are averaged in logarithms, so that a variance that the slope uses up has no weight.
    one, two = slope**2 * (1.0 / quality**2 - 1.0), np.maximum(size**2 - slope**2, 0.02 * size**2)
    one_error = (2.0 * spread / quality) ** 2
    two_error = 2.0 * np.diag(moments.unit) * size**4 / np.maximum(moments.votes, 2.0)
    two_error = (two_error + (2.0 * slope**2) ** 2 * left_error) / two**2
    noise = np.exp((np.log(one) / one_error + np.log(two) / two_error) / (1.0 / one_error + 1.0 / two_error))
    hold = 1.0 / np.maximum(slope**2 * left_error, 1e-9 * size**2 / len(size))
    return slope, noise, hold


def _is_heavy(moments: LinearMoments, quality: FloatArray, correlation: FloatArray) -> bool:
    """Return whether the noise of some source has heavier tails than normal noise, from fourth moments.

    The mean product of the squares of two independent sources shows how heavy the tails of y are; what the fourth
    moment of a source has beyond these and four of its standard errors is the kurtosis of its noise.
    """
    told, left = quality**2, 1.0 - quality**2
    some = moments.sampled
    pairs = np.where((correlation == 0.0) & np.outer(some.varied, some.varied), some.count, 0.0)
    np.fill_diagonal(pairs, 0.0)
    both = np.outer(told, told)
    if not (pairs * both).any():
        return False
    rest = np.outer(told, left) + np.outer(left, told) + np.outer(left, left)
    truth = max(float((pairs * both * (moments.joint_fourth - rest)).sum() / (pairs * both**2).sum()), 1.0)
    own = np.diag(moments.joint_fourth) - told**2 * truth - 6.0 * told * left
    error = 4.0 * np.sqrt(96.0 / np.maximum(some.votes * moments.mean.shape[1], 1.0))
    # If y itself has heavy tails, small errors of its share look like tails of the noise.
    error = error + told**2 * max(truth - 3.0, 0.0)
    heavy = (own > HEAVY_KURTOSIS * left**2) & (own - 3.0 * left**2 > error)
    return bool((heavy & some.varied & (some.votes >= 30)).any())


# --- M-step -------------------------------------------------------------------------------------------------


def updated(parameters: LinearParameters, sums: Statistics, start: LinearParameters) -> LinearParameters:
    """Return better lines from the sums of an E-step, held at their start as firmly as that is known."""
    d = len(parameters.mean)
    weight, count, items = np.maximum(sums["weight"], 1e-300), sums["count"], float(sums["items"])
    learned = (count > 0) & (start.slope != 0.0)
    truth, vote = sums["truth"], sums["vote"]
    spread = sums["truth_square"] - _outer(truth, truth) / weight[:, None, None]
    shared = sums["cross"] - _outer(vote, truth) / weight[:, None, None]
    inverse = np.linalg.inv(parameters.noise)
    # The start fixes the ratios of the slopes. Their common scale is part of the gauge.
    firm = np.where(learned, np.minimum(start.slope_hold, 1e12 / np.maximum(start.slope**2, 1e-200)), 0.0)
    common = float(firm @ (parameters.slope * start.slope)) / max(float(firm @ start.slope**2), 1e-300)
    told = np.einsum("ade,aed->a", inverse, spread)
    slope = np.einsum("ade,aed->a", inverse, shared) + firm * common * start.slope
    slope = np.where(learned, slope / np.maximum(told + firm, 1e-300), parameters.slope)
    shift = (vote - slope[:, None] * truth) / weight[:, None]
    mixed = slope[:, None, None] * (sums["cross"] - _outer(shift, truth)) + _outer(shift, vote)
    left = sums["vote_square"] - mixed - np.swapaxes(mixed, 1, 2)
    left = left + weight[:, None, None] * _outer(shift, shift) + slope[:, None, None] ** 2 * sums["truth_square"]
    hold = start.noise_hold[:, None, None]
    noise = (left + hold * start.noise) / (count[:, None, None] + hold)
    if d == 1:  # a difference of large numbers may be negative
        noise = np.maximum(noise, 0.0)
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
        many = max(float(sums["known"][0]), 1.0)
        factor, y = sums["known"][1 : 1 + d] / many, sums["known"][1 + d : 1 + 2 * d] / many
        central = sums["known"][-3:] / many - [(factor**2).mean(), (y**2).mean(), (factor * y).mean()]
        known = np.concatenate([sums["known"][:1], factor, y + parameters.mean, central])
    return replace(
        parameters,
        offset=parameters.offset + np.where(learned[:, None], shift - step[:, None] * parameters.mean, 0.0),
        slope=slope,
        noise=np.where(learned[:, None, None], noise, parameters.noise),
        mean=parameters.mean + moved,
        variance=variance if items > 0 and np.trace(variance) > 0 else parameters.variance,
        known=known,
    )


def _outer(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.einsum("ad,ae->ade", left, right)


# --- the gauge ---------------------------------------------------------------------------------------------


def in_gauge(standard: LinearParameters, told: Told) -> LinearParameters:
    """Return lines of the factor as lines of y; those of normal scores stay, and only their labels are moved."""
    if standard.bent:
        return _bent_in_gauge(standard) if standard.known.size else standard
    say, d = standard.say, len(standard.mean)
    location, scale = say @ standard.offset, float(say @ standard.slope)
    if not say.any():
        votes = standard.votes if standard.votes.any() else np.ones(len(standard.slope))
        location = np.average(standard.offset, axis=0, weights=votes)
        if told.range is not None:
            low, high = told.range
            location, scale = np.full(d, (low + high) / 2.0), (high - low) / np.sqrt(12.0)
    if not scale > 0.0:
        scale = float(np.sqrt(np.median(standard.noise_variance + standard.slope**2)))
    if standard.known.size and (told.mean is None or told.covariance is None):
        location, scale = _calibrated(standard, location, scale)
    if told.mean is not None:
        location = told.mean
    if told.covariance is None:
        return standard.regauged(location, scale)
    scale = float(np.sqrt(np.trace(told.covariance) / d))
    return replace(standard.regauged(location, scale), variance=told.covariance)


def _bent_in_gauge(standard: LinearParameters) -> LinearParameters:
    """Return lines of normal scores whose labels have the level and unit that known labels and sources say."""
    usual, spread = standard.say @ standard.knots, standard.knots.std(axis=1)
    location, scale = np.array([usual.mean()]), float(usual.std())
    if not scale > 0.0:
        return standard
    # The straight lines closest to the bent ones, for a factor with the spread of the votes.
    spread = np.where(spread > 0.0, spread, scale)
    noise = standard.noise * (spread / np.maximum(np.abs(standard.slope), LEAST_QUALITY))[:, None, None] ** 2
    straight = replace(standard, offset=standard.knots.mean(axis=1)[:, None], slope=spread, noise=noise)
    location, slope = _calibrated(straight, location, scale)
    return replace(standard, unit=slope / scale, level=float(location[0]) - slope / scale * float(usual.mean()))


def source_say(standard: LinearParameters, allowed: BoolArray) -> FloatArray:
    """Return how much each source says about location and scale; adds up to one, or is all zero.

    Sources count by the information they carry. It matters whether precise sources also agree better on level and
    scale, which can be seen: if offsets and slopes scatter like the noise of the votes, in units of y, they do; if all
    scatter alike, sources should count alike. Weights are averaged over these by how probable each makes the offsets
    and slopes that were found.
    """
    chosen = (standard.slope > 0) & (standard.votes > 0) & allowed
    weight = np.zeros(len(chosen))
    if not chosen.any():
        return weight
    slope, noise = standard.slope[chosen], standard.noise_variance[chosen]
    cost = noise / np.maximum(slope**2, 1e-6 * noise)
    cost = cost / np.exp(np.log(cost).mean())
    options, evidence = [], []
    for power, before in SCATTER_POWERS.items():
        inverse = cost**-power
        options.append(inverse / inverse.sum())
        seen = _scatter_evidence(slope[:, None], inverse) + _scatter_evidence(standard.offset[chosen], inverse)
        evidence.append(float(np.log(before)) + seen)
    odds = np.exp(np.array(evidence) - max(evidence))
    weight[chosen] = (odds / odds.sum()) @ np.array(options)
    return weight


def _scatter_evidence(value: FloatArray, inverse: FloatArray) -> float:
    """Return the log likelihood of ``(m, d)`` values of variances in proportion to one over `inverse`."""
    m, d = value.shape
    center = inverse @ value / inverse.sum()
    scatter = float(inverse @ ((value - center) ** 2).mean(axis=1))
    if m < 3 or scatter <= 1e-12 * m * float((center**2).mean()):
        return 0.0
    return float(-0.5 * d * ((m - 1) * np.log(scatter) + np.log(inverse.sum())))


# --- known labels ---------------------------------------------------------------------------------------------
#
# Their moments are kept as one array: count, mean of the factor (d), mean of y (d), and the mean over coordinates of
# the variance of the factor, the variance of y, and their covariance.


def known_from_sums(standard: LinearParameters, gold: LinearMoments) -> FloatArray:
    """Return the moments of known labels from those of the pairs, as if all sources voted on every one of them."""
    count = gold.count[:-1, -1]
    gain = np.where(count > 0, standard.slope / standard.noise_variance, 0.0)
    gain = gain / (1.0 + gain @ standard.slope)
    level = np.where(count[:, None] > 0, gold.mean[:-1] - standard.offset, 0.0)
    # If two sources share hardly any known item, their covariance follows from the lines.
    noise = np.sqrt(standard.noise_variance)
    correlation = standard.correlation + np.eye(len(noise))
    expected = np.outer(standard.slope, standard.slope) + correlation * np.outer(noise, noise)
    between = np.where(gold.count[:-1, :-1] > FEW_LABELS, gold.covariance[:-1, :-1], expected)
    shared = np.where(count > 1, gold.covariance[:-1, -1], 0.0)
    moments = [max(float(gain @ between @ gain), 0.0), float(gold.variance[-1]), float(gain @ shared)]
    return np.concatenate([gold.count[-1:, -1], gain @ level, gold.mean[-1], moments])


def _calibrated(standard: LinearParameters, location: FloatArray, scale: float) -> tuple[FloatArray, float]:
    """Return location and scale of y from known labels and from what the sources say: the line of y on the factor.

    The regression of y on its posterior mean has the right line, but few labels leave it uncertain, where the sources
    may be right. So slope and location are each averaged, by how probable either is given the labels. A slope of their
    own has a prior that is worth one label (the unit-information prior behind the BIC), a location one as wide as y.
    The odds are equal before, but against another slope where all sources have about one, and against another location
    where all have about one level: then they are likely to use the scale of y. How far labels scatter around their line
    is known before, too, as if five labels had shown it.
    """
    say, votes, known, d = standard.say, np.maximum(standard.votes, 1.0), standard.known, len(location)
    before = float("inf")
    if say.any():
        off = float(say @ ((standard.offset - location) ** 2).mean(axis=1)) / max(1.0 - float(say @ say), 0.1)
        # If the sources differ in level by more than chance, all of them may be off by as much together.
        chance = standard.noise_variance / votes
        before = max(off - float(say @ chance), 0.0) + float(say**2 @ chance)
    precise = float(np.where(say > 0, standard.slope**2 / standard.noise_variance, 0.0).sum())
    count, factor, truth = float(known[0]), known[1 : 1 + d], known[1 + d : 1 + 2 * d]
    spread, wide, shared = max(float(known[-3]), 1e-12), max(float(known[-2]), 0.0), float(known[-1])

    def scattered(slope: float, lost: float) -> tuple[float, float]:
        """Return the variance of labels around a line, and from how many it is known; `lost` were needed for it."""
        left = count * max(wide - 2.0 * slope * shared + slope**2 * spread, 0.0)
        seen = max(count - lost, 0.0) + SEEN_SCATTER
        return max((left + SEEN_SCATTER * scale**2 / (1.0 + precise)) / seen, 1e-300), seen

    slope = scale
    if count > FEW_LABELS:
        scatter, seen = scattered(shared / spread, 2.0)
        own = scatter / max(precise / (1.0 + precise), 0.1) / d
        odds = _odds(float(say @ (standard.slope / scale - 1.0) ** 2))
        slope += _taken(np.array(shared / spread - scale), scatter / (count * spread * d), 0.0, own, odds, seen).item()
    slope = max(slope, 0.05 * scale)
    scatter, seen = scattered(slope, 1.0)
    odds = _odds(float(say @ ((standard.offset - location) ** 2).mean(axis=1)) / scale**2)
    error = scatter * (1.0 / count + float((factor**2).mean()) / max(count * spread, 1.0))
    shift = truth - slope * factor - location
    return location + _taken(shift, error, before, max(scatter, scale**2), odds, seen), slope


def _odds(scatter: float) -> float:
    """Return the odds that labels are on a scale of their own, from how far the sources scatter on theirs, squared."""
    return min(max(scatter / DIFFERENT**2, ODDS_ALIKE), 1.0)


def _taken(shift: FloatArray, error: float, before: float, own: float, odds: float, seen: float) -> FloatArray:
    """Return what to take of a shift that known labels show with the variance `error`, itself found from `seen` ones.

    Averaged over two priors by how probable they make the shift: of variance `before`, if the sources are right, and of
    the variance `own`, if labels are on a scale of their own, which is then followed all the way where the labels say
    more than this prior; `odds` are those of the second before any label is seen.
    """
    if not np.isfinite(before):
        return shift
    log_density = []
    for spread in (before, max(own, before)):
        total = max(spread + error, 1e-300)
        log_density.append(-0.5 * float((np.log(total) + (seen + 1.0) * np.log1p(shift**2 / (seen * total))).sum()))
    odds = odds * float(np.exp(np.clip(log_density[1] - log_density[0], -700.0, 700.0)))
    return shift * (before / max(before + error, 1e-300) + odds * min(own / max(error, 1e-300), 1.0)) / (1.0 + odds)


# --- covariance matrices ------------------------------------------------------------------------------------


def positive_part(matrices: FloatArray, least: float) -> FloatArray:
    """Return symmetric matrices ``(..., d, d)`` with eigenvalues of at least a share of their mean absolute one.

    >>> positive_part(np.array([[1.0, 0.0], [0.0, -3.0]]), least=0.1)
    array([[1. , 0. ],
           [0. , 0.2]])
    """
    even = 0.5 * (matrices + np.swapaxes(matrices, -1, -2))
    values, vectors = np.linalg.eigh(even)
    floor = least * np.maximum(np.abs(values).mean(axis=-1, keepdims=True), 1e-300)
    if (values >= floor).all():
        return even
    return (vectors * np.maximum(values, floor)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def draw_together(matrices: FloatArray, count: FloatArray) -> FloatArray:
    """Return covariances drawn to one common shape, each with the size it has, as strongly as they themselves ask for.

    The common shape of the ``(m, d, d)`` matrices is the mean of all, each divided by its size in units of that shape:
    the mode under an inverse Wishart law around it, if `count` items are behind each matrix. Its strength is that of
    `SHAPE_STRENGTHS` with the largest evidence. Equivariant to any linear map. Two sources of the same shape, seen in
    ten items each, are taken to have it in common:

    >>> seen = np.array([[[1.0, 0.1], [0.1, 1.0]], [[2.0, -0.2], [-0.2, 2.0]]])
    >>> draw_together(seen, np.array([10.0, 10.0])).round(2).tolist()
    [[[1.0, 0.0], [0.0, 1.0]], [[2.0, -0.0], [-0.0, 2.0]]]
    """
    from scipy.special import multigammaln

    d = matrices.shape[-1]
    share = count / max(float(count.sum()), 1e-300)
    shape = np.tensordot(share, matrices, axes=1)
    for _ in range(3):
        scale = np.einsum("de,aed->a", np.linalg.inv(shape), matrices) / d
        shape = np.tensordot(share, matrices / scale[:, None, None], axes=1)
    unit = matrices / scale[:, None, None]

    def evidence(strength: float) -> float:
        freedom = strength + d + 1.0
        total = strength * shape + count[:, None, None] * unit
        sizes = freedom * np.linalg.slogdet(strength * shape)[1] - (freedom + count) * np.linalg.slogdet(total)[1]
        return float((multigammaln((freedom + count) / 2.0, d) - multigammaln(freedom / 2.0, d) + sizes / 2.0).sum())

    best = max((strength * d for strength in reversed(SHAPE_STRENGTHS)), key=evidence)
    part = (best / (count + best))[:, None, None]
    return scale[:, None, None] * ((1.0 - part) * unit + part * shape)
