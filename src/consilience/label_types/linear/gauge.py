"""Where y lies and how far it spreads, which votes alone do not tell.

In order of preference: mean and variance as given; known labels, which set level and unit; the sources themselves,
either alike or by the information that each carries about y, ``slope^2 / noise``. Lines come in for a *factor* of mean
zero whose coordinates have variance one on average.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.label_types.linear.belief import LinearParameters
from consilience.label_types.linear.moments import LinearMoments

__all__ = ["Told", "in_gauge", "known_from_sums", "known_moments", "source_say"]

#: Offsets and slopes of sources may scatter as these powers of the noise variance in units of y. Precise sources are
#: often right in level, too, so the last one has the better odds before anything is seen.
SCATTER_POWERS = {0.0: 1.0, 0.5: 1.0, 1.0: 4.0}
#: This many known labels or fewer say nothing about the scale.
FEW_LABELS = 3
#: How far labels scatter around their line is known from the votes as if so many labels had shown it.
SEEN_SCATTER = 5.0
#: Odds of another line than that of the sources where these have one slope for all; they are even where slopes scatter
#: by the second number around their mean.
ODDS_ALIKE, DIFFERENT = 0.1, 0.3


@dataclass(frozen=True)
class Told:
    """What the user says about y: ``(d,)`` mean, ``(d, d)`` covariance, and the ends of its scale; None if unknown."""

    mean: FloatArray | None = None
    covariance: FloatArray | None = None
    range: tuple[float, float] | None = None


def in_gauge(standard: LinearParameters, told: Told) -> LinearParameters:
    """Return lines of the factor as lines of y."""
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


def known_moments(sums: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the moments of known labels from the sums of an E-step, which measures y from a mean."""
    count, d = max(float(sums[0]), 1.0), len(mean)
    factor, y = sums[1 : 1 + d] / count, sums[1 + d : 1 + 2 * d] / count
    central = sums[-3:] / count - [(factor**2).mean(), (y**2).mean(), (factor * y).mean()]
    return np.concatenate([sums[:1], factor, y + mean, central])


def known_from_sums(standard: LinearParameters, gold: LinearMoments) -> FloatArray:
    """Return the moments of known labels from those of the pairs, as if all sources voted on every one of them."""
    count = gold.count[:-1, -1]
    gain = np.where(count > 0, standard.slope / standard.noise_variance, 0.0)
    gain = gain / (1.0 + gain @ standard.slope)
    level = np.where(count[:, None] > 0, gold.mean[:-1] - standard.offset, 0.0)
    # Where two sources share hardly any known item, the lines say how they vary together.
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
    The odds are equal before, but against another line where all sources have about one slope: then they are likely to
    use the scale of y. How far labels scatter around their line is known before, too, as if five labels had shown it.
    """
    say, votes, known, d = standard.say, np.maximum(standard.votes, 1.0), standard.known, len(location)
    before = float("inf")
    if say.any():
        off = float(say @ ((standard.offset - location) ** 2).mean(axis=1)) / max(1.0 - float(say @ say), 0.1)
        # Where the sources differ in level by more than chance, all may be off together by as much.
        before = max(off - float(say @ (standard.noise_variance / votes)), 0.0) + scale**2 / float(votes.max())
    precise = float(np.where(say > 0, standard.slope**2 / standard.noise_variance, 0.0).sum())
    differ = float(say @ (standard.slope / scale - 1.0) ** 2) / DIFFERENT**2
    odds = min(max(differ, ODDS_ALIKE), 1.0)
    count, factor, truth = float(known[0]), known[1 : 1 + d], known[1 + d : 1 + 2 * d]
    spread, wide, shared = max(float(known[-3]), 1e-12), max(float(known[-2]), 0.0), float(known[-1])
    left = count * max(wide - shared**2 / spread, 0.0) + SEEN_SCATTER * scale**2 / (1.0 + precise)
    scatter = max(left / (max(count - 2.0, 0.0) + SEEN_SCATTER), 1e-300)
    slope = scale
    if count > FEW_LABELS:
        own = scatter / max(precise / (1.0 + precise), 0.1) / d
        slope += _taken(np.array(shared / spread - scale), scatter / (count * spread * d), 0.0, own, odds).item()
    slope = max(slope, 0.05 * scale)
    error = scatter * (1.0 / count + float((factor**2).mean()) / max(count * spread, 1.0))
    shift = truth - slope * factor - location
    return location + _taken(shift, error, before, max(scatter, scale**2), odds), slope


def _taken(shift: FloatArray, error: float, before: float, own: float, odds: float) -> FloatArray:
    """Return what to take of a shift that known labels show with the variance `error`.

    Averaged over two priors by how probable they make the shift: of variance `before`, if the sources are right, and of
    the variance `own`, if labels are on a scale of their own, which is then followed all the way; `odds` are those of
    the second before any label is seen.
    """
    if not np.isfinite(before):
        return shift
    log_density = []
    for spread in (before, max(own, before)):
        total = max(spread + error, 1e-300)
        log_density.append(-0.5 * float((np.log(total) + shift**2 / total).sum()))
    odds = odds * float(np.exp(np.clip(log_density[1] - log_density[0], -700.0, 700.0)))
    moved: FloatArray = shift * (before / max(before + error, 1e-300) + odds) / (1.0 + odds)
    return moved
