"""Where y lies and how far it spreads, which votes alone do not tell.

In order of preference: mean and variance as given; known labels; the sources themselves, either alike or by the
information that each carries about y, ``loading^2 / noise``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import FloatArray
from consilience.families.base import Chunk, Diagnostic, Passes, Request, Sums
from consilience.families.gaussian_moments import ScoreMoments, gold_moments
from consilience.families.gaussian_posterior import believe

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianFamily, GaussianParameters

__all__ = ["in_gauge", "say", "scatter_of_labels"]


#: Offsets and slopes of sources may scatter as these powers of the noise variance in units of y. Who is precise is
#: often right in level, too, so the last one has the better odds before anything is seen.
POWERS = {0.0: 1.0, 0.5: 1.0, 1.0: 4.0}
#: So many known labels or fewer say nothing about the scale.
FEW_LABELS = 3
#: How far labels scatter around their line is known from the votes as if so many labels had shown it.
SEEN_SCATTER = 5.0
#: Odds of another line than that of the sources where these have one slope for all; they are even where slopes scatter
#: by this share around their mean.
ODDS_ALIKE, DIFFERENT = 0.1, 0.3
#: Rounds of weights of known labels under heavy tails.
ROUNDS = 20


@dataclass(frozen=True)
class _Known:
    """Moments of the believed factor and of y over the items of known label, and the scatter of y around their line.

    Under heavy tails they are weighted, so that a label far off the line counts little; `certainty` is then what the
    slope is known by, in parts of what Gaussian scatter of the same size would tell.
    """

    count: float
    factor: float
    truth: float
    factor_variance: float
    truth_variance: float
    shared: float
    scatter: float
    certainty: float = 1.0

    @classmethod
    def of(cls, count: float, weighted: FloatArray, centre: float, certainty: float = 1.0) -> _Known:
        """Return the moments from the weighted sums of 1, f, y, f^2, y^2 and f y, with y measured from `centre`."""
        total, factor, truth, factor_square, truth_square, product = (float(value) for value in weighted)
        factor, truth = factor / total, truth / total
        spread = max(factor_square / total - factor**2, 1e-12)
        wide, shared = max(truth_square / total - truth**2, 0.0), product / total - factor * truth
        scatter = total * max(wide - shared**2 / spread, 0.0) / max(count - 2.0, 1.0)
        return cls(count, factor, truth + centre, spread, wide, shared, scatter, certainty)


@dataclass(frozen=True)
class _Guess:
    """Location and scale of y by the sources, how sure the location is, and how far labels should scatter.

    `explained` is the variance of the believed factor, `odds` those of another line than that of the sources.
    """

    location: float
    location_variance: float
    scale: float
    scatter: float
    explained: float
    odds: float


def _guess(standard: GaussianParameters, weight: FloatArray, location: float, scale: float, sums: Sums) -> _Guess:
    """Return what the sources say; where they differ in level by more than chance, their mean is less certain."""
    votes = np.maximum(np.diag(sums["both"]).astype(np.float64), 1.0)
    used = weight > 0
    variance = float("inf")
    if used.any():
        off = float(weight @ (standard.offset - location) ** 2) / max(1.0 - float(weight @ weight), 0.1)
        error = float(weight @ (standard.noise_variance / votes))
        # All may be off together by as much as they are off each other.
        variance = max(off - error, 0.0) + scale**2 / float(votes.max())
    precise = float(np.where(used, standard.slope**2 / standard.noise_variance, 0.0).sum())
    differ = float(weight @ (standard.slope / scale - 1.0) ** 2) / DIFFERENT**2
    explained = max(precise / (1.0 + precise), 0.1)
    return _Guess(location, variance, scale, scale**2 / (1.0 + precise), explained, min(max(differ, ODDS_ALIKE), 1.0))


def in_gauge(
    family: GaussianFamily,
    moments: ScoreMoments,
    standard: GaussianParameters,
    sums: Sums,
    request: Request,
    passes: Passes | None,
) -> tuple[GaussianParameters, tuple[Diagnostic, ...]]:
    """Return parameters with a factor of mean 0 and variance 1 on the scale of y."""
    weight = say(standard, sums)
    location, scale = float(weight @ standard.offset), float(weight @ standard.slope)
    if not scale > 0:
        scale = float(np.sqrt(moments.pooled_variance))
    notes: tuple[Diagnostic, ...] = ()
    given = family.mean is not None and family.variance is not None
    if family.range is not None and not weight.any():
        low, high = family.range
        location, scale = (low + high) / 2.0, (high - low) / np.sqrt(12.0)
    elif not weight.any():
        location = float(np.average(standard.offset, weights=np.diag(moments.count)))
    if not given and "gold_both" in sums:
        known = _known(standard, sums, passes)
        if known is not None:
            location, scale = _calibrated(known, _guess(standard, weight, location, scale, sums))
    elif not given:
        notes = _not_identified(moments, request)
    if family.mean is not None:
        location = family.mean
    if family.variance is not None:
        scale = float(np.sqrt(family.variance)) * (-1.0 if scale < 0 else 1.0)
    return standard.regauged(location, scale), notes


def scatter_of_labels(standard: GaussianParameters, sums: Sums, passes: Passes | None) -> float:
    """Return the variance of known labels around their line on the believed factor."""
    known = _known(standard, sums, passes)
    return float("inf") if known is None else known.scatter


def say(standard: GaussianParameters, sums: Sums) -> FloatArray:
    """Return how much each source says about location and scale; adds up to one, or is all zero.

    Sources count by the information they carry. Without known labels it matters whether precise sources also agree
    better on level and scale, which can be seen: if offsets and slopes scatter like the noise of the votes, in units
    of y, they do; if all scatter alike, sources should count alike. Weights are averaged over these by how probable
    each makes the offsets and slopes that were found.
    """
    chosen = (standard.slope > 0) & (np.diag(sums["both"]) > 0)
    if "outside" in sums:
        # Votes outside of the range of y are on another scale; a few may be slips.
        chosen &= sums["outside"] <= 0.01 * np.diag(sums["both"])
    weight = np.zeros(len(chosen))
    if not chosen.any():
        return weight
    slope, noise = standard.slope[chosen], standard.noise_variance[chosen]
    cost = noise / np.maximum(slope**2, 1e-6 * noise)
    cost = cost / np.exp(np.log(cost).mean())
    options, evidence = [], []
    told = "gold_both" in sums and float(sums["gold_both"][-1, -1]) > FEW_LABELS
    for power, before in [(1.0, 1.0)] if told else POWERS.items():
        inverse = cost**-power
        options.append(inverse / inverse.sum())
        seen = _scatter_evidence(standard.offset[chosen], inverse) + _scatter_evidence(slope, inverse)
        evidence.append(float(np.log(before)) + seen)
    odds = np.exp(np.array(evidence) - max(evidence))
    weight[chosen] = (odds / odds.sum()) @ np.array(options)
    return weight


def _scatter_evidence(value: FloatArray, inverse: FloatArray) -> float:
    """Return the log likelihood of values whose variances are in proportion to one over `inverse`, of product one."""
    m = len(value)
    centre = float(inverse @ value) / float(inverse.sum())
    scatter = float(inverse @ (value - centre) ** 2)
    if m < 3 or scatter <= 1e-12 * m * centre**2:
        return 0.0
    return -0.5 * (m - 1) * float(np.log(scatter)) - 0.5 * float(np.log(inverse.sum()))


def _calibrated(known: _Known, guess: _Guess) -> tuple[float, float]:
    """Return location and scale of y from known labels: the line of y on the believed factor.

    The regression of y on its posterior mean has the right line, but few labels leave it uncertain, where the sources
    may be right. So slope and location are each averaged, by how probable either is given the labels. A slope of their
    own has a prior that is worth one label (the unit-information prior behind the BIC), a location one as wide as y.
    The odds are equal before, but against another line where all sources have about one slope: then they are likely to
    use the scale of y. How far labels scatter around their line is known before, too, as if five labels had shown it.
    """
    freedom = max(known.count - 2.0, 0.0)
    scatter = (freedom * known.scatter + SEEN_SCATTER * guess.scatter) / (freedom + SEEN_SCATTER)
    scatter = max(scatter, 1e-300)
    slope = guess.scale
    if known.count > FEW_LABELS:
        found = known.shared / known.factor_variance
        error = scatter / max(known.certainty * known.count * known.factor_variance, 1e-300)
        slope = guess.scale + _taken(found - guess.scale, error, 0.0, scatter / guess.explained, guess.odds)
    if abs(slope) < 0.05 * abs(guess.scale):
        slope = 0.05 * guess.scale
    found = known.truth - slope * known.factor
    shift = found - guess.location
    error = scatter * (1.0 / known.count + known.factor**2 / max(known.count * known.factor_variance, 1.0))
    wide = max(scatter, guess.scale**2)
    return guess.location + _taken(shift, error, guess.location_variance, wide, guess.odds), slope


def _taken(shift: float, error: float, before: float, own: float, odds: float) -> float:
    """Return what to take of a shift that known labels show with the variance `error`.

    Averaged over two priors by how probable they make the shift: of variance `before`, if the sources are right, and of
    the variance `own`; `odds` are those of the second before any label is seen.
    """
    if not np.isfinite(before):
        return shift
    log_density, kept = [], []
    for spread in (before, max(own, before)):
        total = max(spread + error, 1e-300)
        log_density.append(-0.5 * (np.log(total) + shift**2 / total))
        kept.append(spread / total)
    odds = odds * float(np.exp(np.clip(log_density[1] - log_density[0], -700.0, 700.0)))
    return float(shift * (kept[0] + odds * kept[1]) / (1.0 + odds))


def _known(standard: GaussianParameters, sums: Sums, passes: Passes | None) -> _Known | None:
    if passes is not None and passes.complete:
        return _by_items(standard, float(gold_moments(sums).mean[-1]), passes)
    table = gold_moments(sums)
    count = float(table.count[-1, -1])
    if count < 1:
        return None
    gain = standard.slope / standard.noise_variance
    gain = gain / (1.0 + gain @ standard.slope)
    seen = np.diag(table.count)[:-1] > 0
    gain = np.where(seen, gain, 0.0)
    level = table.mean[:-1] - standard.offset
    variance = max(float(gain @ table.covariance[:-1, :-1] @ gain), 0.0)
    factor, wide, shared = float(gain @ level), float(table.variance[-1]), float(gain @ table.covariance[:-1, -1])
    sums_of = [1.0, factor, 0.0, variance + factor**2, wide, shared]
    return _Known.of(count, count * np.array(sums_of), float(table.mean[-1]))


def _by_items(standard: GaussianParameters, centre: float, passes: Passes) -> _Known | None:
    """Return the moments by passes over the labelled items; several where outliers have to be found."""
    found = passes.over_all(partial(_gold_pass, standard, centre, None))["gold"]
    count, degrees = float(found[0]), standard.degrees
    if count < 1:
        return None
    known = _Known.of(count, found, centre)
    if not np.isfinite(degrees) or count <= FEW_LABELS:
        return known
    certainty = (degrees + 1.0) / (degrees + 3.0)
    for _ in range(ROUNDS):
        line = known
        found = passes.over_all(partial(_gold_pass, standard, centre, line))["gold"]
        known = _Known.of(count, found, centre, certainty)
        if abs(known.shared / known.factor_variance - line.shared / line.factor_variance) ** 2 < 1e-6 * known.scatter:
            break
    return known


def _gold_pass(standard: GaussianParameters, centre: float, line: _Known | None, chunk: Chunk) -> Sums:
    """Return sums over the labelled items, each weighted by how close it lies to a line where one is given."""
    rows = chunk.gold_rows
    rows = rows[chunk.observed[rows].any(axis=1)]
    if len(rows) == 0 or chunk.known is None:
        return Sums({"gold": np.zeros(6)})
    factor = believe(standard, chunk.labels[rows], chunk.observed[rows]).mean
    truth = chunk.known[rows].astype(np.float64) - centre
    weight = np.ones(len(rows))
    if line is not None:
        left = truth + centre - line.truth - line.shared / line.factor_variance * (factor - line.factor)
        degrees = standard.degrees
        weight = (degrees + 1.0) / (degrees + left**2 / max(line.scatter, 1e-12 * line.truth_variance, 1e-300))
    once = np.stack([np.ones(len(rows)), factor, truth, factor**2, truth**2, factor * truth])
    return Sums({"gold": once @ weight})


def _not_identified(moments: ScoreMoments, request: Request) -> tuple[Diagnostic, ...]:
    means = moments.mean[moments.varied]
    if len(means) < 2 or float(np.ptp(means)) <= np.sqrt(moments.pooled_variance):
        return ()
    message = (
        f"The sources disagree on the level of y: their means range from {means.min():.4g} to {means.max():.4g}, by "
        f"more than the typical spread of their votes ({np.sqrt(moments.pooled_variance):.4g}). Which is right cannot "
        "be told from votes; the most informative sources were followed. Pass gold= with 30 known labels, or "
        "mean= and variance= of y."
    )
    return (Diagnostic("scale-not-identified", "warning", (), message),)
