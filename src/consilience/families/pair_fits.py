"""Fits of pair quantities to one number per source, with standard errors: sums (isotropic) or products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import Chunk, Passes, Sums
from consilience.solvers.isotropic import isotropic_costs
from consilience.solvers.listed import ListedPairs
from consilience.solvers.robust import PairMomentFit, fit_pair_moments, sandwich
from consilience.solvers.triplets import rank_one, triplet_loadings

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "PairFit",
    "additive_fit",
    "composed_fit",
    "product_fit",
    "robust_product_fit",
    "group_influence",
    "pair_slopes",
    "uncorrelated_influence",
]


#: From so many sources on arrays of pairs by sources are sparse, and above the second influences are thinned out.
MANY_SOURCES, VERY_MANY_SOURCES = 64, 256


@dataclass(frozen=True)
class PairFit:
    """One value per source, ``(m,)`` each; `residual` is ``(m, m)``, in standard errors enlarged by `inflation`.

    A source that is not `identified` (fewer than two independent partners) has a borrowed value and an
    infinite standard error. `expected` is the value of every pair, ``(m, m)``, if it were independent.
    """

    value: FloatArray
    standard_error: FloatArray
    identified: BoolArray
    residual: FloatArray
    inflation: float = 1.0
    expected: FloatArray | None = None


def additive_fit(cost: FloatArray, count: FloatArray, influence: FloatArray, usable: BoolArray) -> PairFit:
    """Solve ``cost[a, b] = value[a] + value[b]`` (the paper's Algorithm 4) by least squares over all pairs.

    Parameters
    ----------
    cost, count, usable
        ``(m, m)`` pair costs, the items they rest on, and the pairs that may be used.
    influence
        ``(groups, m, m)`` influence of each group of items on `cost`.
    """
    weights = np.where(usable, count, 0.0)
    solution = isotropic_costs(cost, usable, weights)
    left, right = _pairs(usable)
    m = len(usable)
    if len(left) == 0:
        return _nothing(m, solution.value)
    design = _slopes(np.ones(m), left, right, 1.0)
    covariance = sandwich(design, weights[left, right], influence[:, left, right])
    error = np.where(solution.identified, np.sqrt(np.maximum(np.diag(covariance), 0.0)), np.inf)
    return PairFit(solution.value, error, solution.identified, np.zeros((m, m)))


def product_fit(
    covariance: FloatArray,
    error: FloatArray,
    influence: FloatArray,
    usable: BoolArray,
    scale: float,
    limit: float,
) -> PairFit:
    """Solve ``covariance[a, b] = scale * value[a] * value[b]`` (Algorithm 2): median of all triplets,
    then least squares; signs recovered, values within ``[-limit, limit]``.
    """
    loadings = triplet_loadings(covariance, usable, error, combine="least_squares")
    value = np.clip(loadings.value / np.sqrt(scale), -limit, limit)
    return _with_error(value, loadings.identified, covariance, error, influence, usable, scale)


def composed_fit(
    cost: FloatArray,
    error: FloatArray,
    influence: FloatArray,
    usable: BoolArray,
    chance: float,
    *,
    bounded: bool,
    listed: ListedPairs | None = None,
) -> PairFit:
    """Solve for one cost per source how the costs of two sources compose, under a Cauchy loss.

    Three compositions are tried (in units of `chance`): ``a + b - a b / cap`` where costs have a maximum (exact for
    classes and vectors of bits; the cap is 1 when votes are spread evenly over the space and larger otherwise),
    ``a + b`` (squared distance in a Euclidean space), ``sqrt(a^2 + b^2)`` (distance in it). `bounded` says whether
    the first or the second is expected; it is kept unless another fits clearly better. Where all labels are `listed`,
    what sources that scatter alike around every label would cost each other is expected instead.
    """
    left, right = _pairs(usable)
    m = len(usable)
    if len(left) == 0:
        return _nothing(m, np.full(m, 0.5 * chance))
    additive = additive_fit(cost, usable.astype(float), influence, usable)
    observed, deviation = cost[left, right] / chance, np.maximum(error[left, right] / chance, 1e-12)
    typical = max(float(np.median(observed)), 1e-9)
    starts = [np.clip(additive.value / chance, 0.02 * typical, 0.95), np.full(m, min(typical / 2.0, 0.9))]
    rows = np.arange(len(left))

    def solve(compose: _Law, upper: float) -> PairMomentFit:
        def jacobian(value: FloatArray) -> FloatArray:
            composed = compose(value[left], value[right])
            slopes = np.zeros((len(left), m))
            slopes[rows, left], slopes[rows, right] = composed.by_left, composed.by_right
            return slopes

        return fit_pair_moments(
            lambda value: compose(value[left], value[right]).cost,
            jacobian,
            observed,
            deviation,
            starts,
            lower=1e-9,
            upper=upper,
            prior_spread=2.0 * typical,  # weak beside the typical disagreement, whatever its scale
            corrected_scatter=m >= 7,
        )

    laws = [partial(_bounded, cap=cap) for cap in (1.0, 1.2, 1.5)]
    capped = [(solve(law, law.keywords["cap"]), law) for law in laws]
    fits: list[tuple[PairMomentFit, _Law]] = [min(capped, key=lambda one: one[0].cost)]
    fits += [(solve(_added, 5.0), _added), (solve(_euclidean, 5.0), _euclidean)]
    best, compose = fits[0] if bounded else fits[1]
    if listed is not None:
        exact = partial(_listed, pairs=listed, chance=chance)
        best, compose = solve(exact, listed.largest / chance), exact
    for other, law in fits:
        if other.cost + 2.0 < best.cost:
            best, compose = other, law
    scatter = sandwich(best.jacobian, best.precision, influence[:, left, right] / chance)
    spread = np.where(additive.identified, np.sqrt(np.maximum(np.diag(scatter), 0.0)), np.inf)
    residual = np.zeros((m, m))
    residual[left, right] = residual[right, left] = best.residual_z
    value = np.where(additive.identified, best.weight, np.median(best.weight))
    expected = chance * compose(np.repeat(value, m), np.tile(value, m)).cost.reshape(m, m)
    return PairFit(chance * value, chance * spread, additive.identified, residual, best.inflation, expected)


class _Composed(NamedTuple):
    cost: FloatArray
    by_left: FloatArray
    by_right: FloatArray


_Law = Callable[[FloatArray, FloatArray], _Composed]


def _bounded(left: FloatArray, right: FloatArray, cap: float) -> _Composed:
    return _Composed(left + right - left * right / cap, 1.0 - right / cap, 1.0 - left / cap)


def _added(left: FloatArray, right: FloatArray) -> _Composed:
    return _Composed(left + right, np.ones_like(left), np.ones_like(right))


def _euclidean(left: FloatArray, right: FloatArray) -> _Composed:
    length = np.maximum(np.hypot(left, right), 1e-300)
    return _Composed(length, left / length, right / length)


def _listed(left: FloatArray, right: FloatArray, pairs: ListedPairs, chance: float) -> _Composed:
    one, two = left * chance, right * chance
    return _Composed(pairs.cost(one, two) / chance, pairs.slope(one, two), pairs.slope(two, one))


def robust_product_fit(
    covariance: FloatArray,
    error: FloatArray,
    influence: FloatArray,
    usable: BoolArray,
    scale: float,
    limit: float,
) -> PairFit:
    """Solve the same under a Cauchy loss from several starts, with a weak pull to the mean."""
    left, right = _pairs(usable)
    m = len(usable)
    if len(left) == 0:
        return _nothing(m, np.full(m, 0.5 * limit))
    median = triplet_loadings(covariance, usable, error, combine="median")
    precision = np.where(usable, 1.0 / np.maximum(error, 1e-9) ** 2, 0.0)
    completed = rank_one(covariance, usable, precision, median.value).value
    # In units of the limit, so that the pull to the mean does not depend on the scale of the costs.
    unit = scale * limit**2
    starts = [np.clip(start / np.sqrt(unit), -0.98, 0.98) for start in (median.value, completed)]
    fit = fit_pair_moments(
        lambda value: unit * value[left] * value[right],
        lambda value: _jacobian(value, left, right, unit),
        covariance[left, right],
        error[left, right],
        [*starts, np.full(m, 0.5)],
        lower=-1.0,
        upper=1.0,
        corrected_scatter=m >= 7,  # with fewer sources too few residuals are left to judge the scatter by
    )
    result = _with_error(fit.weight * limit, median.identified, covariance, error, influence, usable, scale)
    residual = np.zeros((m, m))
    residual[left, right] = residual[right, left] = fit.residual_z
    return PairFit(result.value, result.standard_error, result.identified, residual)


def group_influence(
    group_sums: Callable[[Chunk], Sums], error: FloatArray, count: FloatArray, passes: Passes | None
) -> FloatArray:
    """Return the influence of each group of items on the mean of every pair, ``(groups, m, m)``.

    Without votes at hand the errors of the pairs count as uncorrelated.

    Parameters
    ----------
    group_sums
        Sums ``group_count`` and ``group_total`` of one chunk, each ``(GROUPS, m, m)``.
    error, count
        ``(m, m)`` standard errors, and items of each pair in all votes; the pass may see a sample of them.
    """
    if passes is None:
        return uncorrelated_influence(error)
    sums = passes.over_sample(group_sums)
    by_group, total = sums["group_count"], sums["group_total"]
    items = np.maximum(by_group.sum(axis=0), 1.0)
    influence = (total - by_group * (total.sum(axis=0) / items)) / items
    scaled: FloatArray = influence * np.sqrt(items / np.maximum(count, 1.0))
    return scaled


def uncorrelated_influence(error: FloatArray, rows: int = 64) -> FloatArray:
    """Return influences for pairs whose errors count as uncorrelated, ``(rows, m, m)``; less exact for many sources.

    Random signs stand in for one row per pair, of which there may be very many: the outer products
    still sum to the squared errors on the diagonal, and to about zero elsewhere.
    """
    rng = np.random.default_rng(0)
    if len(error) > VERY_MANY_SOURCES:
        # A sign per source, whose products are uncorrelated, too. A quarter of the rows: good to a fifth.
        sign = rng.choice(np.array([-1.0, 1.0], dtype=np.float32), size=(rows // 4, len(error)))
        products: FloatArray = sign[:, :, None] * sign[:, None, :]
        products *= (error / np.sqrt(rows // 4)).astype(np.float32)
        return products
    signs = rng.choice([-1.0, 1.0], size=(rows, *error.shape))
    upper = np.triu(signs, 1)
    influence: FloatArray = (upper + np.swapaxes(upper, 1, 2)) * error / np.sqrt(rows)
    return influence


def _with_error(
    value: FloatArray,
    identified: BoolArray,
    covariance: FloatArray,
    error: FloatArray,
    influence: FloatArray,
    usable: BoolArray,
    scale: float,
) -> PairFit:
    left, right = _pairs(usable)
    if len(left) == 0:
        return _nothing(len(value), value)
    deviation = np.maximum(error[left, right], 1e-9)
    law = sandwich(_slopes(value, left, right, scale), 1.0 / deviation**2, influence[:, left, right])
    spread = np.where(identified, np.sqrt(np.maximum(np.diag(law), 0.0)), np.inf)
    residual = (covariance - scale * np.outer(value, value)) / np.maximum(error, 1e-9)
    return PairFit(value, spread, identified, np.where(usable, residual, 0.0))


def _jacobian(value: FloatArray, left: IntArray, right: IntArray, scale: float) -> FloatArray:
    jacobian = np.zeros((len(left), len(value)))
    rows = np.arange(len(left))
    jacobian[rows, left] = scale * value[right]
    jacobian[rows, right] = scale * value[left]
    return jacobian


def _slopes(value: FloatArray, left: IntArray, right: IntArray, scale: float) -> FloatArray | csr_array:
    return pair_slopes(scale * value[right], scale * value[left], left, right, len(value))


def pair_slopes(
    by_left: FloatArray, by_right: FloatArray, left: IntArray, right: IntArray, m: int
) -> FloatArray | csr_array:
    """Return the derivatives of quantities of pairs by their two sources, ``(pairs, m)``; sparse for many sources."""
    if m < MANY_SOURCES:
        dense = np.zeros((len(left), m))
        rows = np.arange(len(left))
        dense[rows, left], dense[rows, right] = by_left, by_right
        return dense
    from scipy.sparse import csr_array

    starts = np.arange(len(left) + 1) * 2
    columns = np.stack([left, right], axis=1).ravel()
    return csr_array((np.stack([by_left, by_right], axis=1).ravel(), columns, starts), shape=(len(left), m))


def _pairs(usable: BoolArray) -> tuple[IntArray, IntArray]:
    left, right = np.nonzero(np.triu(usable))
    return left, right


def _nothing(m: int, value: FloatArray) -> PairFit:
    return PairFit(value, np.full(m, np.inf), np.zeros(m, dtype=bool), np.zeros((m, m)))
