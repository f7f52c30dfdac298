"""Parameters of sources of scores put together: equal lines, lines from loadings, lines from known labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Estimate, Request, Sums
from consilience.families.findings import needs_gold
from consilience.families.gaussian import GaussianFamily, GaussianParameters
from consilience.families.gaussian_moments import ScoreMoments, gold_moments
from consilience.solvers.factor import NOISE_FLOOR, positive_definite

__all__ = ["beside_labels", "equal_line", "labelled_lines", "noise_around", "standard_lines", "without_labels"]

#: Lines learned from known labels are drawn to the mean line as by this many more labels.
PULL = 3.0


def equal_line(
    family: GaussianFamily, moments: ScoreMoments, cost: FloatArray | None = None, active: BoolArray | None = None
) -> GaussianParameters:
    """Return sources without offset and with slope one; their labels are means of the votes, without a prior.

    Parameters
    ----------
    cost
        ``(m,)`` noise variances; by default one for all, from the mean squared difference of pairs.
    active
        ``(m,)`` sources that count, all by default.
    """
    m = len(moments.mean)
    votes = np.diag(moments.count)
    pairs = np.triu(moments.count, 1)
    average = 0.0
    if pairs.sum() > 0:
        average = float((pairs * moments.squared_difference).sum() / pairs.sum()) / 2.0
    pooled = moments.pooled_variance
    if cost is None:
        cost = np.full(m, average if average > 0 else 0.5 * pooled)
    mean = float(np.average(moments.mean, weights=votes)) if votes.sum() > 0 else 0.0
    between = moments.covariance[pairs > 0]
    shared = float(between.mean()) if len(between) else 0.5 * pooled
    variance = max(shared, 0.05 * pooled, 1e-12 * max(mean**2, 1e-12))
    unknown = np.full(m, np.inf)
    return GaussianParameters(
        offset=np.zeros(m),
        slope=np.ones(m) if active is None else np.where(active | (votes == 0), 1.0, 0.0),
        noise=np.diag(np.maximum(cost, 1e-12 * variance)),
        mean=mean if family.mean is None else family.mean,
        variance=variance if family.variance is None else family.variance,
        dependent=np.zeros((m, m), dtype=bool),
        slope_error=unknown,
        noise_error=unknown,
        cost_error=unknown,
        shrink=0.0,
    )


def noise_around(moments: ScoreMoments, loading: FloatArray, active: BoolArray) -> FloatArray:
    """Return the diagonal noise that loadings leave, ``(m, m)``."""
    own = np.where(active, moments.variance, moments.pooled_variance)
    return np.diag(np.maximum(own - np.where(active, loading, 0.0) ** 2, NOISE_FLOOR * own))


def standard_lines(
    moments: ScoreMoments,
    loading: FloatArray,
    active: BoolArray,
    dependent: BoolArray,
    noise: FloatArray | None = None,
) -> GaussianParameters:
    """Return the lines of sources around a factor of mean 0 and variance 1.

    A source that never votes gets the mean line of the others, one that says a constant the slope zero.
    """
    m = len(loading)
    dependent = dependent & np.outer(active, active)
    if noise is None:
        noise = noise_around(moments, loading, active)
        if dependent.any():
            left = np.where(dependent, moments.covariance - np.outer(loading, loading), 0.0)
            noise = positive_definite(left, np.diag(noise).copy())
    silent = np.diag(moments.count) == 0
    offset, slope, variances = moments.mean.copy(), np.where(active, loading, 0.0), np.diag(noise).copy()
    if silent.any() and active.any():
        offset[silent] = moments.mean[active].mean()
        slope[silent] = loading[active].mean()
        variances[silent] = variances[active].mean()
    full = noise.copy()
    np.fill_diagonal(full, variances)
    unknown = np.full(m, np.inf)
    return GaussianParameters(offset, slope, full, 0.0, 1.0, dependent, unknown, unknown, unknown)


def beside_labels(standard: GaussianParameters, mean: float, variance: float) -> GaussianParameters:
    """Return lines with the known labels as one more source, to start from."""
    m = len(standard.slope)
    noise, dependent = np.zeros((m + 1, m + 1)), np.zeros((m + 1, m + 1), dtype=bool)
    noise[:m, :m], dependent[:m, :m] = standard.noise, standard.dependent
    noise[m, m] = 0.5 * variance
    return replace(
        standard,
        offset=np.append(standard.offset, mean),
        slope=np.append(standard.slope, np.sqrt(0.5 * variance)),
        noise=noise,
        dependent=dependent,
    )


def without_labels(extended: GaussianParameters) -> GaussianParameters:
    """Return the lines without that of the known labels, which comes last."""
    return replace(
        extended,
        offset=extended.offset[:-1],
        slope=extended.slope[:-1],
        noise=extended.noise[:-1, :-1],
        dependent=extended.dependent[:-1, :-1],
    )


def labelled_lines(family: GaussianFamily, moments: ScoreMoments, sums: Sums, request: Request) -> Estimate:
    """Learn every line from known labels alone: regressions of votes on the truth, drawn to their mean line."""
    if "gold_both" not in sums:
        raise needs_gold()
    table = gold_moments(sums)
    count = table.count[:-1, -1]
    told, items = count > 0, float(table.count[-1, -1])
    variance = max(float(table.variance[-1]), 1e-12 * max(float(table.mean[-1]) ** 2, 1e-12))
    usual = moments.pooled_variance
    spread = np.full(len(count), variance)
    shared = np.where(told, table.covariance[:-1, -1], 0.0)
    slope_all = float((count * shared).sum() / max(float((count * spread).sum()), 1e-300)) if told.any() else 1.0
    slope = (count * shared + PULL * spread * slope_all) / ((count + PULL) * spread)
    average = float(table.mean[-1])
    level = np.where(told, table.mean[:-1], average)
    offset = level - slope * average
    own = np.where(told, np.diag(table.covariance)[:-1], 0.0)
    left = np.maximum(own - slope * shared, 0.0)
    pooled = float((count * left).sum() / max(float(count.sum()), 1.0)) or NOISE_FLOOR * usual
    # A line through two points leaves no residual.
    noise = (count * left + PULL * pooled) / (np.maximum(count - 2.0, 0.0) + PULL)
    noise = np.maximum(noise, NOISE_FLOOR * np.where(moments.varied, moments.variance, usual))
    constant = ~moments.varied & (np.diag(moments.count) > 0)
    slope = np.where(constant, 0.0, slope)
    slope_error = np.where(told, np.sqrt(noise / (np.maximum(count, 1.0) * variance)), np.inf)
    noise_error = np.where(told, noise * np.sqrt(2.0 / np.maximum(count, 1.0)), np.inf)
    steep = np.maximum(slope**2, 1e-6 * noise / variance)
    cost_error = np.hypot(noise_error / steep, 2.0 * noise * slope_error / np.maximum(np.abs(slope) ** 3, steep**1.5))
    parameters = GaussianParameters(
        offset=offset,
        slope=slope,
        noise=np.diag(noise),
        mean=average if family.mean is None else family.mean,
        variance=variance if family.variance is None else family.variance,
        dependent=np.zeros((len(count), len(count)), dtype=bool),
        slope_error=slope_error,
        noise_error=noise_error,
        cost_error=cost_error,
    )
    return Estimate(parameters, "labelled", f"{int(items)} known labels")
