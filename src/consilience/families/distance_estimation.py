"""How the quality of sources is learned from a cost alone, or from coordinates.

``isotropic``: costs between independent sources add up (the paper's Algorithm 4; exact for squared
distances and isotropic noise). ``triplets`` and ``moments``: the covariance of the votes in the hidden
Euclidean space is rank one (Algorithm 2), which also holds where costs are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.exceptions import UnsupportedError
from consilience.families.base import Diagnostic, Estimate, Request, Sums
from consilience.families.distance_parameters import DistanceParameters
from consilience.families.findings import SIGNIFICANCE, fell_back, needs_gold, no_signal, unidentified
from consilience.families.pair_costs import PairCosts, blend, excess_correlation, gold_costs, pair_costs, shrunk_costs
from consilience.families.pair_fits import (
    PairFit,
    additive_fit,
    product_fit,
    robust_product_fit,
    uncorrelated_influence,
)
from consilience.solvers.landmarks import fit_landmarks
from consilience.solvers.signal import no_signal_probability

if TYPE_CHECKING:
    from consilience.families.distance import DistanceFamily

__all__ = ["estimate_distances"]


@dataclass(frozen=True)
class _Problem:
    family: DistanceFamily
    sums: Sums
    pairs: PairCosts
    request: Request

    @property
    def usable(self) -> BoolArray:
        return self.pairs.usable(self.request.dependent)

    @property
    def active(self) -> BoolArray:
        active: BoolArray = np.diag(self.sums["both"]) > 0
        return active


@dataclass(frozen=True)
class _Spread:
    """Covariances ``(m, m)``; per source the variance ``(m,)`` of its votes with the standard error of it, and
    their mean ``(m, d)``.
    """

    covariance: FloatArray
    variance: FloatArray
    variance_error: FloatArray
    mean: FloatArray


def estimate_distances(family: DistanceFamily, sums: Sums, request: Request) -> Estimate:
    """Learn expected costs and weights by the method asked for."""
    problem = _Problem(family, sums, pair_costs(sums), request)
    method = request.method
    if method == "auto":
        return _automatic(problem)
    if method == "majority":
        return Estimate(_equal(problem), "majority", "asked for")
    if method == "labelled":
        return _labelled(problem)
    return _learned(problem, method, "asked for")


def _automatic(problem: _Problem) -> Estimate:
    count = int(problem.active.sum())
    if count < 3:
        if "gold_count" in problem.sums:
            return _labelled(problem)
        return _fallback(problem, f"{count} source(s) vote, qualities need 3", ())
    if "pair_product" not in problem.sums:
        return _learned(problem, "isotropic", "no reference labels were at hand, so pair costs")
    left, right = np.nonzero(np.triu(problem.usable))
    spread = _spread(problem)
    z = spread.covariance[left, right] / np.maximum(problem.pairs.product_error[left, right], 1e-12)
    chance = no_signal_probability(z)
    if chance > SIGNIFICANCE and not problem.request.n_gold:
        reason = f"the sources are no closer to each other than chance would have them (p = {chance:.2f})"
        return _fallback(problem, reason, (no_signal(problem.request, reason),))
    return _learned(problem, "moments", "covariance of the votes in the space behind the distance, robustly")


def _learned(problem: _Problem, method: str, reason: str) -> Estimate:
    if method == "isotropic":
        pairs = problem.pairs
        fit = additive_fit(pairs.cost, pairs.count, pairs.cost_influence, problem.usable)
        cost, error = fit.value, fit.standard_error
    else:
        if "pair_product" not in problem.sums:
            raise UnsupportedError(f"method={method!r} needs reference labels. Use 'isotropic', or fit(votes).")
        by_coordinate = method == "triplets" and "coordinate_product" in problem.sums
        fit, cost, error = _per_coordinate(problem) if by_coordinate else _from_trace(problem, method)
    floor = 1e-3 * problem.family.chance
    cost = np.maximum(cost, floor)
    if "gold_count" in problem.sums:
        _, told, told_error = gold_costs(problem.sums)
        cost, error = blend(cost, error, np.maximum(told, floor), told_error)
    if problem.request.method == "auto":
        cost = shrunk_costs(cost, error, problem.active)
    notes = unidentified(fit.identified, problem.active, problem.request)
    return Estimate(_parameters(problem, cost, error), method, reason, (*notes, *_adversaries(problem, cost, error)))


def _from_trace(problem: _Problem, method: str) -> tuple[PairFit, FloatArray, FloatArray]:
    """Fit one loading per source to the covariances summed over all dimensions."""
    pairs, spread = problem.pairs, _spread(problem)
    limit = float(np.sqrt(max(np.max(spread.variance, initial=0.0), 1e-12)))
    solve = product_fit if method == "triplets" else robust_product_fit
    fit = solve(spread.covariance, pairs.product_error, pairs.product_influence, problem.usable, 1.0, limit)
    truth = _truth_variance(fit.value, spread.variance)
    weight = np.maximum(fit.value, 0.0) + 1e-12
    centre = np.average(spread.mean, axis=0, weights=weight)
    offset = ((spread.mean - centre) ** 2).sum(axis=1)
    cost = spread.variance + truth + offset - 2.0 * fit.value * np.sqrt(truth)
    error = np.sqrt((2.0 * np.sqrt(truth) * fit.standard_error) ** 2 + spread.variance_error**2)
    return _in_cost_units(problem, fit, cost, error)


def _per_coordinate(problem: _Problem) -> tuple[PairFit, FloatArray, FloatArray]:
    """Fit one loading per source and coordinate: the paper's Algorithm 2 as it stands, centred."""
    sums, pairs = problem.sums, problem.pairs
    count = np.maximum(pairs.count, 1.0)
    mean = sums["coordinate"] / count[:, :, None]
    cost, variance_of_cost = np.zeros(len(count)), np.zeros(len(count))
    identified = np.ones(len(count), dtype=bool)
    own_count = np.maximum(np.diag(sums["both"]), 1.0)
    for axis in range(mean.shape[2]):
        product = sums["coordinate_product"][:, :, axis] / count
        covariance = product - mean[:, :, axis] * mean[:, :, axis].T
        square = sums["coordinate_product_square"][:, :, axis] / count
        error = np.sqrt(np.maximum(square - product**2, 1e-12) / count)
        own_mean = np.diag(sums["coordinate"][:, :, axis]) / own_count
        own = np.maximum(np.diag(sums["coordinate_square"][:, :, axis]) / own_count - own_mean**2, 0.0)
        if own.max() <= 1e-12:
            continue
        limit = float(np.sqrt(own.max()))
        fit = product_fit(covariance, error, uncorrelated_influence(error), problem.usable, 1.0, limit)
        truth = _truth_variance(fit.value, own)
        centre = float(np.average(own_mean, weights=np.maximum(fit.value, 0.0) + 1e-12))
        cost += own + truth + (own_mean - centre) ** 2 - 2.0 * fit.value * np.sqrt(truth)
        step = np.where(np.isfinite(fit.standard_error), fit.standard_error, 0.0)
        variance_of_cost += 4.0 * truth * step**2
        identified &= fit.identified
    error = np.where(identified, np.sqrt(variance_of_cost), np.inf)
    shape = PairFit(cost, error, identified, np.zeros_like(count))
    return _in_cost_units(problem, shape, cost, error)


def _spread(problem: _Problem) -> _Spread:
    sums, pairs = problem.sums, problem.pairs
    if "coordinate" in sums:
        count = np.maximum(pairs.count, 1.0)
        mean = sums["coordinate"] / count[:, :, None]
        own = np.maximum(np.diag(sums["both"]).astype(np.float64), 1.0)
        centre = np.einsum("aad->ad", sums["coordinate"]) / own[:, None]
        square = np.einsum("aad->ad", sums["coordinate_square"]) / own[:, None]
        variance = np.maximum((square - centre**2).sum(axis=1), 0.0)
        error = variance * np.sqrt(2.0 / (own * centre.shape[1]))  # as for a normal law
        return _Spread(pairs.product - np.einsum("abd,bad->ab", mean, mean), variance, error, centre)
    costs = problem.family.reference_costs
    own = np.maximum(sums["reach_count"].astype(np.float64), 1.0)
    reach = sums["reach"] / own[:, None]
    centre = fit_landmarks(costs).place(reach)
    # Where the references cannot resolve the mean, its length is taken from the mean reach itself.
    variance = np.maximum(reach.mean(axis=1) - costs.mean() / 2.0 - (centre**2).sum(axis=1), 1e-12)
    level = np.maximum(sums["reach_square"] / own - reach.mean(axis=1) ** 2, 0.0)
    return _Spread(pairs.product - centre @ centre.T, variance, np.sqrt(level / own), centre)


def _truth_variance(loading: FloatArray, variance: FloatArray) -> float:
    """Return the variance of the truth: not identified by the votes, so that of the best sources."""
    reliability = np.clip(loading, 0.0, None) ** 2 / np.maximum(variance, 1e-12)
    if reliability.sum() <= 0:
        return float(max(variance.mean(), 1e-12))
    lowest = float(reliability.max())  # a loading never exceeds sqrt(own variance * variance of the truth)
    # Noise widens the votes of bad sources, so the best ones show best how far the truth itself scatters.
    return float(max(np.average(variance, weights=reliability**4), lowest, 1e-12))


def _in_cost_units(
    problem: _Problem, fit: PairFit, squared: FloatArray, error: FloatArray
) -> tuple[PairFit, FloatArray, FloatArray]:
    """Turn squared distances between coordinates into costs, by how the two relate on the references."""
    family, squared = problem.family, np.maximum(squared, 0.0)
    if "coordinate" not in problem.sums or family.references is None or family.landmarks is not None:
        return fit, squared, error
    placed = family.place(family.references)
    upper = np.triu_indices(len(placed), 1)
    distance = ((placed[:, None] - placed[None]) ** 2).sum(axis=2)[upper]
    cost = family.cost_table(family.references, family.references)[upper]
    kept = (distance > 1e-12) & (cost > 1e-12)
    if kept.sum() < 3 or np.ptp(np.log(distance[kept])) < 1e-6:
        return fit, squared, error
    power, level = np.polyfit(np.log(distance[kept]), np.log(cost[kept]), 1)
    power = float(np.clip(power, 0.1, 2.0))
    base = np.maximum(squared, 1e-9 * float(distance.mean()))
    value = np.exp(level) * base**power
    slope = power * value / base
    return fit, value, np.where(np.isfinite(error), np.where(np.isfinite(error), error, 0.0) * slope, np.inf)


def _labelled(problem: _Problem) -> Estimate:
    if "gold_count" not in problem.sums:
        raise needs_gold()
    count, cost, error = gold_costs(problem.sums)
    average = np.average(cost, weights=count) if count.sum() > 0 else problem.family.chance
    shrunk = (cost * count + average * 2.0) / (count + 2.0)
    floored = np.maximum(shrunk, 1e-3 * problem.family.chance)
    return Estimate(_parameters(problem, floored, error), "labelled", f"{problem.request.n_gold} known labels")


def _parameters(problem: _Problem, cost: FloatArray, error: FloatArray) -> DistanceParameters:
    family, active = problem.family, problem.active
    if active.any():
        cost = np.where(active, cost, cost[active].mean())
    error = np.where(active, error, np.inf)
    weight = family.weight_from_cost(cost)
    slope = np.maximum(np.abs(family.curve.slope(weight)), 1e-12)
    finite = np.isfinite(error)
    weight_error = np.where(finite, np.where(finite, error, 0.0) / slope, np.inf)
    correlation = excess_correlation(problem.pairs, family.pair_cost, weight, problem.request.dependent)
    chance = family.chance
    return DistanceParameters(cost, weight, weight_error, error, correlation, chance, family.doubt(chance))


def _equal(problem: _Problem) -> DistanceParameters:
    m = len(problem.active)
    typical = problem.pairs.cost[problem.usable]
    level = float(np.median(typical)) / 2.0 if len(typical) else 0.5 * problem.family.chance
    level = min(max(level, 1e-3 * problem.family.chance), 0.9 * problem.family.chance)
    return _parameters(problem, np.full(m, level), np.full(m, np.inf))


def _fallback(problem: _Problem, reason: str, notes: tuple[Diagnostic, ...]) -> Estimate:
    return Estimate(_equal(problem), "majority", reason, (*notes, fell_back(reason)))


def _adversaries(problem: _Problem, cost: FloatArray, error: FloatArray) -> tuple[Diagnostic, ...]:
    chance = problem.family.chance
    names = problem.request.named(problem.active & np.isfinite(error) & (cost - 3.0 * error > chance))
    if not names:
        return ()
    message = (
        f"{', '.join(names)}: further from the truth than chance; the weight is zero. Check how the labels are coded."
    )
    return (Diagnostic("adversarial-source", "warning", names, message),)
