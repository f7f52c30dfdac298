"""Where y lies and how far it spreads, which votes alone do not tell.

In order of preference: mean and variance as given; known labels; the sources themselves, each by the information
it carries about y, ``loading^2 / noise``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import FloatArray
from consilience.families.base import Chunk, Diagnostic, Passes, Request, Sums
from consilience.families.gaussian_moments import ScoreMoments, gold_moments
from consilience.families.gaussian_posterior import believe

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianFamily, GaussianParameters

__all__ = ["in_gauge"]


@dataclass(frozen=True)
class _Known:
    """Moments of the believed factor and of y over the items of known label."""

    count: float
    factor: float
    truth: float
    factor_variance: float
    truth_variance: float
    shared: float


def in_gauge(
    family: GaussianFamily,
    moments: ScoreMoments,
    standard: GaussianParameters,
    sums: Sums,
    request: Request,
    passes: Passes | None,
) -> tuple[GaussianParameters, tuple[Diagnostic, ...]]:
    """Return parameters with a factor of mean 0 and variance 1 on the scale of y."""
    weight = _say(standard, sums)
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
            location, scale = _calibrated(known, scale)
    elif not given:
        notes = _not_identified(moments, request)
    if family.mean is not None:
        location = family.mean
    if family.variance is not None:
        scale = float(np.sqrt(family.variance)) * (-1.0 if scale < 0 else 1.0)
    return standard.regauged(location, scale), notes


def _say(standard: GaussianParameters, sums: Sums) -> FloatArray:
    """Return how much each source says about location and scale; adds up to one, or is all zero."""
    information = np.maximum(standard.slope, 0.0) ** 2 / standard.noise_variance
    information = np.where(np.diag(sums["both"]) > 0, information, 0.0)
    if "outside" in sums:
        # Votes outside of the range of y are on another scale; a few may be slips.
        information = np.where(sums["outside"] <= 0.01 * np.diag(sums["both"]), information, 0.0)
    total = float(information.sum())
    return information / total if total > 0 else np.zeros_like(information)


def _calibrated(known: _Known, scale: float) -> tuple[float, float]:
    """Return location and scale of y from known labels: the line of y on the believed factor.

    The regression of y on its posterior mean has the right slope. It is drawn to the scale of the sources as far as
    the labels themselves support that: the slope is normal around that scale with the variance of greatest marginal
    likelihood, ``difference^2 - error^2`` or zero. So labels within one standard error of the scale of the sources
    move the location only, and clear ones are followed. The location is not drawn, as sources are often off in level.
    """
    count, spread = known.count, max(known.factor_variance, 1e-12)
    slope = scale
    if count > 3:
        found = known.shared / spread
        left = max(known.truth_variance - known.shared**2 / spread, 0.0) * count / (count - 2.0)
        apart, error = (found - scale) ** 2, left / (count * spread)
        if apart > error:
            slope = scale + (found - scale) * (1.0 - error / apart)
    if abs(slope) < 0.05 * abs(scale):
        slope = 0.05 * scale
    return known.truth - slope * known.factor, slope


def _known(standard: GaussianParameters, sums: Sums, passes: Passes | None) -> _Known | None:
    if passes is not None and passes.complete:
        centre = float(gold_moments(sums).mean[-1])
        found = passes.over_all(lambda chunk: _gold_pass(standard, chunk, centre))["gold"]
        if found[0] < 1:
            return None
        count, factor, truth, factor_square, truth_square, product = (float(value) for value in found)
        factor, truth = factor / count, truth / count
        spread, wide = max(factor_square / count - factor**2, 0.0), max(truth_square / count - truth**2, 0.0)
        return _Known(count, factor, truth + centre, spread, wide, product / count - factor * truth)
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
    shared = float(gain @ table.covariance[:-1, -1])
    return _Known(count, float(gain @ level), float(table.mean[-1]), variance, float(table.variance[-1]), shared)


def _gold_pass(standard: GaussianParameters, chunk: Chunk, centre: float) -> Sums:
    rows = chunk.gold_rows
    rows = rows[chunk.observed[rows].any(axis=1)]
    if len(rows) == 0 or chunk.known is None:
        return Sums({"gold": np.zeros(6)})
    factor = believe(standard, chunk.labels[rows], chunk.observed[rows]).mean
    truth = chunk.known[rows].astype(np.float64) - centre
    products = [factor @ factor, truth @ truth, factor @ truth]
    return Sums({"gold": np.array([len(rows), factor.sum(), truth.sum(), *products])})


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
