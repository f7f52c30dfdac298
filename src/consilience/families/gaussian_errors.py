"""Standard errors of loadings, noise variances and costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import Passes
from consilience.families.gaussian_moments import ScoreMoments
from consilience.families.gaussian_rounds import score_outer, thinned
from consilience.solvers.factor import NOISE_FLOOR, factor_information

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianParameters

__all__ = ["with_errors"]

#: From this many sources on only the diagonal of the information is used.
MANY = 100


def with_errors(
    standard: GaussianParameters,
    moments: ScoreMoments,
    active: BoolArray,
    passes: Passes | None,
    loading_error: FloatArray | None = None,
) -> GaussianParameters:
    """Return the parameters with standard errors; infinite for sources that tell nothing.

    Where nobody abstains the covariance of the estimates is the sandwich of the expected information and the
    items' scores, right whatever the noise; with abstentions or heavy tails it is the inverse of the scores' outer
    product; from moments alone the inverse of the expected information. Rows of one item count together, but for
    moments alone, which do not know of items. What known labels add is left out, so that errors are a little large.

    Parameters
    ----------
    loading_error
        ``(m,)`` standard errors of the loadings where another method than likelihood has found them.
    """
    chosen = np.flatnonzero(active)
    if len(chosen) == 0:
        return standard
    law = _law(standard, moments, chosen, passes)
    size, m = len(chosen), len(active)
    by_slope, by_noise = np.full(m, np.inf), np.full(m, np.inf)
    variance = standard.noise_variance[chosen]
    by_slope[chosen] = np.sqrt(np.maximum(np.diag(law)[:size], 0.0)) * np.sqrt(variance)
    by_noise[chosen] = np.sqrt(np.maximum(np.diag(law)[size:], 0.0)) * variance
    mixed = np.zeros(m)
    mixed[chosen] = np.diag(law[:size, size:]) * variance**1.5
    if loading_error is not None:
        known = active & np.isfinite(loading_error)
        ratio = np.where(known, np.where(known, loading_error, 0.0) / np.where(known, by_slope, 1.0), 1.0)
        by_slope = np.where(active, np.where(known, loading_error, np.inf), by_slope)
        mixed = mixed * ratio
    return replace(
        standard,
        slope_error=by_slope,
        noise_error=by_noise,
        cost_error=_cost_error(standard, by_slope, by_noise, mixed),
    )


def _cost_error(
    standard: GaussianParameters, by_slope: FloatArray, by_noise: FloatArray, mixed: FloatArray
) -> FloatArray:
    """Return the standard errors of ``noise / slope^2`` by the delta method."""
    known = np.isfinite(by_slope) & np.isfinite(by_noise) & (standard.slope != 0.0)
    slope, noise = np.where(known, standard.slope, 1.0), standard.noise_variance
    slope_part = -2.0 * noise / slope**3
    noise_part = 1.0 / slope**2
    variance = (
        (slope_part * np.where(known, by_slope, 0.0)) ** 2
        + (noise_part * np.where(known, by_noise, 0.0)) ** 2
        + 2.0 * slope_part * noise_part * mixed
    )
    return np.where(known, np.sqrt(np.maximum(variance, 0.0)), np.inf)


def _law(
    standard: GaussianParameters,
    moments: ScoreMoments,
    chosen: IntArray,
    passes: Passes | None,
) -> FloatArray:
    """Return the covariance of the estimates of the chosen sources, in the units of `score_outer`."""
    inner = np.ix_(chosen, chosen)
    size = len(chosen)
    items = float(np.diag(moments.count).max())
    unit = np.sqrt(standard.noise_variance[chosen])
    loading, noise = standard.slope[chosen] / unit, standard.noise[inner] / np.outer(unit, unit)
    bound = unit**2 <= 1.02 * NOISE_FLOOR * moments.variance[chosen]
    free = np.concatenate([np.ones(size, dtype=bool), ~bound])
    equal = size > 1 and bool(np.ptp(standard.slope[chosen]) == 0.0)
    change = _equal_change(unit.min() / unit)[:, np.concatenate([np.ones(1, dtype=bool), ~bound])] if equal else None
    kept = np.ix_(free, free)

    def reduced(matrix: FloatArray) -> FloatArray:
        return matrix[kept] if change is None else change.T @ matrix @ change

    law: FloatArray
    gaussian = moments.complete and not np.isfinite(standard.degrees)
    if passes is None:
        law = _inverse(reduced(factor_information(loading, noise)) * _coverage(moments, chosen, items)) / items
    else:
        sums = passes.over_sample(thinned(lambda chunk: score_outer(standard, chunk), passes.n_sampled))
        both = np.concatenate([chosen, chosen + len(standard.slope)])
        scored = max(float(sums["items"]), 1.0)
        by_row, by_item = (reduced(sums[name][np.ix_(both, both)] / scored) for name in ("outer", "clustered"))
        if gaussian and not standard.dependent.any():
            bread = _inverse(reduced(factor_information(loading, noise)))
            law = bread @ by_item @ bread / items
        else:
            law = _one_by_one(by_row, by_item) if size > MANY else _together(by_row, by_item)
            law = law / max(float(passes.n_items if gaussian else passes.n_sampled), 1.0)
    law = law * items / max(items - 2.0 * size, 0.5 * items)  # as the residuals of a regression are too small
    if change is not None:
        return np.asarray(change @ law @ change.T, dtype=np.float64)
    result = np.zeros((2 * size, 2 * size))
    result[kept] = law
    return result


def _together(by_row: FloatArray, by_item: FloatArray) -> FloatArray:
    bread = _inverse(by_row)
    return bread if np.array_equal(by_row, by_item) else np.asarray(bread @ by_item @ bread)


def _one_by_one(by_row: FloatArray, by_item: FloatArray) -> FloatArray:
    """Return the same for very many estimates, from the scores of each alone."""
    own = np.diag(by_row)
    told = own > 1e-15 * own.max(initial=0.0)
    bread = np.where(told, 1.0 / np.where(told, own, 1.0), 0.0)
    return np.diag(bread) if np.array_equal(by_row, by_item) else bread[:, None] * by_item * bread


def _inverse(matrix: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.pinv(matrix, hermitian=True), dtype=np.float64)


def _coverage(moments: ScoreMoments, chosen: IntArray, items: float) -> float:
    return float(np.diag(moments.count)[chosen].mean()) / max(items, 1.0)


def _equal_change(relative: FloatArray) -> FloatArray:
    """Return how loadings and noise variances follow from one loading and the noise variances."""
    size = len(relative)
    change = np.zeros((2 * size, size + 1))
    change[:size, 0] = relative
    change[size:, 1:] = np.eye(size)
    return change
