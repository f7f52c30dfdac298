"""Scales of sources on a manifold, fitted to the mean squared distances of all pairs."""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.pair_costs import PairCosts
from consilience.families.pair_fits import PairFit, additive_fit
from consilience.families.wrapped_problem import Problem
from consilience.solvers.manifolds.two_point import TwoPointLaw
from consilience.solvers.pairs import has_odd_cycle
from consilience.solvers.robust import fit_pair_moments, sandwich

__all__ = ["exact_fit", "relative_error", "relative_fit"]

#: Weight of learning, in log scales, of a source about which votes say nothing.
SPREAD = 2.0


def exact_fit(problem: Problem, law: TwoPointLaw) -> PairFit:
    """Fit the logarithms of the mean squared distances of all pairs, under a loss that forgives odd ones."""
    pairs, usable, radius = problem.pairs, problem.usable, problem.family.geometry.radius
    unit = radius if np.isfinite(radius) else 1.0
    m = len(usable)
    left, right = np.nonzero(np.triu(usable))
    if len(left) == 0:
        return PairFit(np.full(m, problem.typical / 2), np.full(m, np.inf), np.zeros(m, bool), np.zeros((m, m)))
    cost = pairs.cost / unit**2
    observed = np.log(cost[left, right])
    error = relative_error(pairs, usable)[left, right]
    rows = np.arange(len(left))

    def moment(value: FloatArray) -> FloatArray:
        return law.log_pair_cost(value[left], value[right])[0]

    def jacobian(value: FloatArray) -> FloatArray:
        _, by_left, by_right = law.log_pair_cost(value[left], value[right])
        slopes = np.zeros((len(left), m))
        slopes[rows, left], slopes[rows, right] = by_left, by_right
        return slopes

    flat = additive_fit(cost, pairs.count, pairs.cost_influence / unit**2, usable)
    typical = float(np.median(cost[left, right]))
    middle = float(np.log(law.scale_from_cost(np.array([typical / 2.0]))[0]))
    start = np.log(law.scale_from_cost(np.clip(flat.value, 0.02 * typical, 2.0 * typical)))
    highest = max(min(middle + 4.0, float(np.log(law.largest))), middle + 0.1)
    fit = fit_pair_moments(
        moment,
        jacobian,
        observed,
        error,
        [start, np.full(m, middle)],
        lower=middle - 6.0,
        upper=highest,
        prior_spread=SPREAD,
        corrected_scatter=m >= 7,
    )
    covariance = sandwich(fit.jacobian, fit.precision, pairs.cost_influence[:, left, right] / pairs.cost[left, right])
    identified = has_odd_cycle(usable)
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    known = fit.weight[identified] if identified.any() else fit.weight
    scale = unit * np.exp(np.where(identified, fit.weight, np.median(known)))
    family = problem.family
    deviation = np.where(identified, family.cost_slope(scale) * scale * spread, np.inf)
    residual = np.zeros((m, m))
    residual[left, right] = residual[right, left] = fit.residual_z
    return PairFit(family.cost_of_scale(scale), deviation, identified, residual, fit.inflation)


def relative_fit(problem: Problem, pairs: PairCosts) -> PairFit:
    """Solve ``cost[a, b] = value[a] + value[b]`` with each pair counted by the precision of its cost."""
    usable = problem.usable & (pairs.cost > 0)
    known = np.where(usable, pairs.cost, 1.0)
    precision = pairs.count / known**2
    fit = additive_fit(pairs.cost, precision, pairs.cost_influence, usable)
    for _ in range(3):
        value = np.maximum(fit.value, 0.01 * problem.typical)
        precision = pairs.count / np.add.outer(value, value) ** 2
        fit = additive_fit(pairs.cost, precision, pairs.cost_influence, usable)
    model = np.maximum(np.add.outer(fit.value, fit.value), 0.01 * problem.typical)
    error = relative_error(pairs, usable) * model
    residual = np.where(usable, (pairs.cost - model) / error, 0.0)
    return PairFit(fit.value, fit.standard_error, fit.identified, residual)


def relative_error(pairs: PairCosts, usable: BoolArray) -> FloatArray:
    """Return the standard errors of the logarithms of pair costs.

    Those of two votes of any scales are much alike, so that a pair far above the others is one whose cost is too
    small for what its sources do elsewhere; that must not hide it.
    """
    count = np.maximum(pairs.count, 1.0)
    spread = np.where(usable, pairs.cost_error / np.where(usable, pairs.cost, 1.0), 0.0) * np.sqrt(count)
    typical = float(np.median(spread[usable])) if usable.any() else 1.0
    error: FloatArray = np.maximum(np.minimum(spread, 2.0 * typical) / np.sqrt(count), 1e-9)
    return error
