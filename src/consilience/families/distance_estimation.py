"""How the quality of sources is learned from a cost alone, or from coordinates.

The cost between two votes around the same truth is composed of the costs of the two sources: they add up for
squared distances (the paper's isotropic simplification), their squares add up for distances, and where costs have
a maximum the votes of bad sources cannot get further apart than chance. Which of these holds is read off the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.automatic import Steps, follow, plain_vote
from consilience.families.base import Diagnostic, Estimate, Request, Sums
from consilience.families.distance_parameters import DistanceParameters
from consilience.families.findings import (
    CANNOT_TELL,
    SHARED_VOTE,
    competing,
    dependent_pairs,
    needs_gold,
    unidentified,
)
from consilience.families.pair_costs import (
    PairCosts,
    blend,
    excess_correlation,
    gold_costs,
    pair_costs,
    shrunk_costs,
    supported_reading,
)
from consilience.families.pair_fits import PairFit, additive_fit, composed_fit, product_fit, uncorrelated_influence
from consilience.solvers.readings import Readings, Refit, read_dependence
from consilience.solvers.signal import no_signal_probability
from consilience.solvers.weighed_readings import weigh_readings

if TYPE_CHECKING:
    from consilience.families.distance import DistanceFamily

__all__ = ["estimate_distances"]

#: Dependent pairs are looked for from this many sources on: where all labels are known, and elsewhere.
FLAG_SOURCES, FLAG_SOURCES_ROUGHLY = 4, 5
#: So much worse may copies explain the pairs and still be possible: how votes scatter is a guess here.
DOUBT = 6.0
#: Where labels are not known, only pairs with this many common items are looked at. Copies cost each other at most this
#: share of what independent sources do; others count as this far off at most.
FLAG_ITEMS, CLEAR, UNCLEAR = 10, 0.75, 3.0


@dataclass(frozen=True)
class _Problem:
    family: DistanceFamily
    sums: Sums
    pairs: PairCosts
    request: Request

    @property
    def usable(self) -> BoolArray:
        usable = self.pairs.usable(self.request.dependent)
        if self.family.background is not None:
            # Two sources that both say the same thing all the time agree for no good reason.
            typical = self.family.background.chance
            usable &= ~(typical < 0.02 * self.family.chance)
        return usable

    @property
    def is_exact(self) -> bool:
        """Whether it can be worked out what two sources cost each other."""
        return "square_cost" not in self.sums and self.family.listed_pairs is not None

    @property
    def active(self) -> BoolArray:
        active: BoolArray = np.diag(self.sums["both"]) > 0
        return active


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
    enough = count >= (FLAG_SOURCES if problem.is_exact else FLAG_SOURCES_ROUGHLY)
    steps = Steps(
        equal=lambda: _equal(problem),
        labelled=(lambda: _labelled(problem)) if "gold_count" in problem.sums else None,
        chance=lambda: _no_signal_chance(problem),
        unrelated="the sources are no closer to each other than chance would have them",
        read_pairs=(lambda: _read_pairs(problem)) if enough else None,
        dependent=lambda readings: _dependent(problem, readings),
        independent=lambda: _learned(problem, "moments", "pair costs fitted with a robust loss"),
        needed="qualities",
    )
    return follow(steps, count, problem.request)


def _read_pairs(problem: _Problem) -> Readings:
    """Return which pairs depend on each other, by the costs of all of them."""
    usable, is_exact = problem.usable, problem.is_exact

    def refit(kept: BoolArray) -> Refit:
        fit, pairs, chance = _composed(_depending(problem, usable & ~kept))
        expected = pairs.cost if fit.expected is None else fit.expected
        quality = 1.0 - np.minimum(fit.value / chance, 1.0)
        gap = (expected - pairs.cost) / np.maximum(pairs.cost_error, 1e-12 * chance)
        if is_exact:
            return Refit(quality, np.where(usable, gap, 0.0), fit.inflation)
        # How costs compose is known roughly, and few common items show little: only clear cases count.
        gap = gap / fit.inflation
        clear = (pairs.cost < CLEAR * expected) & (pairs.count >= FLAG_ITEMS)
        return Refit(quality, np.where(usable, np.where(clear, gap, np.minimum(gap, UNCLEAR)), 0.0))

    if is_exact:
        return weigh_readings(refit, usable, -problem.pairs.cost, doubt=DOUBT)
    return read_dependence(refit, usable, -problem.pairs.cost)


def _dependent(problem: _Problem, readings: Readings) -> Estimate | None:
    """Learn from sources of which some depend on each other, or say that the votes cannot tell which."""
    request = problem.request
    if not readings.best.dependent.any():
        return None
    rivals = competing(readings, int(problem.active.sum()), request)
    if rivals is not None and not request.n_gold:
        return plain_vote(_equal(problem), CANNOT_TELL, (rivals,))
    chosen, reason = readings.best, "pair costs fitted with a robust loss, copied votes shared"
    if "gold_count" in problem.sums:
        _, told, told_error = gold_costs(problem.sums)
        chosen = supported_reading(readings, told, told_error, problem.family.chance)
    if rivals is not None:
        reason = f"{request.n_gold} known labels decided which of two groups follows the truth, then {reason}"
    left, right = np.nonzero(np.triu(chosen.dependent))
    estimate = _learned(_depending(problem, chosen.dependent), "moments", reason)
    note = dependent_pairs(left, right, request, SHARED_VOTE)
    return replace(estimate, diagnostics=(note, *estimate.diagnostics), dependent=request.dependent | chosen.dependent)


def _depending(problem: _Problem, dependent: BoolArray) -> _Problem:
    return replace(problem, request=replace(problem.request, dependent=problem.request.dependent | dependent))


def _no_signal_chance(problem: _Problem) -> float:
    """Return how likely such closeness is between sources that vote independently of each other."""
    left, right = np.nonzero(np.triu(problem.usable))
    background, pairs = problem.family.background, problem.pairs
    if background is None:
        apart = problem.family.chance - pairs.cost[left, right]
        return no_signal_probability(apart / np.maximum(pairs.cost_error[left, right], 1e-12))
    known = np.isfinite(background.chance[left, right])
    left, right = left[known], right[known]
    error = np.sqrt(background.chance_error[left, right] ** 2 + pairs.cost_error[left, right] ** 2)
    return no_signal_probability((background.chance - pairs.cost)[left, right] / np.maximum(error, 1e-12))


def _learned(problem: _Problem, method: str, reason: str) -> Estimate:
    pairs, family = problem.pairs, problem.family
    if method == "isotropic":
        fit = additive_fit(pairs.cost, pairs.count, pairs.cost_influence, problem.usable)
        cost, error = fit.value, fit.standard_error
    elif method == "triplets" and "coordinate_product" in problem.sums:
        fit, cost, error = _per_coordinate(problem)
    elif method == "triplets":
        half = family.chance / 2.0
        covariance = half - pairs.cost / 2.0
        fit = product_fit(covariance, pairs.cost_error / 2, pairs.cost_influence / 2, problem.usable, half, 1.0)
        cost, error = family.chance * (1.0 - fit.value), family.chance * fit.standard_error
    else:
        fit, _, _ = _composed(problem)
        cost, error = fit.value, fit.standard_error
        if "square_cost" in problem.sums:
            cost, error = _in_cost_units(problem, cost, error)
    floor = _cost_floor(problem)
    cost = np.maximum(cost, floor)
    if "gold_count" in problem.sums:
        _, told, told_error = gold_costs(problem.sums)
        cost, error = blend(cost, error, np.maximum(told, floor), told_error)
    if problem.request.method == "auto":
        cost = shrunk_costs(cost, error, problem.active)
    notes = unidentified(fit.identified, problem.active, problem.request)
    notes = (*notes, *_adversaries(problem, cost, error))
    return Estimate(_parameters(problem, cost, error, fit.expected), method, reason, notes)


def _composed(problem: _Problem) -> tuple[PairFit, PairCosts, float]:
    """Fit how the costs of two sources compose, in the coordinates where there are some."""
    family, bounded = problem.family, False
    if "square_cost" in problem.sums:
        pairs, chance = pair_costs(problem.sums, "square"), family.chance_in_coordinates
    else:
        pairs, chance, bounded = problem.pairs, family.chance, family.looks_bounded
    influence, listed = pairs.cost_influence, family.listed_pairs if problem.is_exact else None
    fit = composed_fit(pairs.cost, pairs.cost_error, influence, problem.usable, chance, bounded=bounded, listed=listed)
    return fit, pairs, chance


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
    return shape, *_in_cost_units(problem, cost, error)


def _truth_variance(loading: FloatArray, variance: FloatArray) -> float:
    """Return the variance of the truth: not identified by the votes, so that of the best sources."""
    varies = variance > 1e-9 * variance.max()  # a silent or constant source shows nothing
    reliability = np.where(varies, np.clip(loading, 0.0, None) ** 2 / np.where(varies, variance, 1.0), 0.0)
    if reliability.sum() <= 0:
        return float(max(variance.mean(), 1e-12))
    # Noise widens the votes of bad sources, so the best ones show best how far the truth itself scatters.
    return float(max(np.average(variance, weights=reliability**4), 1e-12))


def _in_cost_units(problem: _Problem, squared: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn squared distances between coordinates into costs, by how the two relate on the references."""
    family, squared = problem.family, np.maximum(squared, 0.0)
    if family.background is None or family.landmarks is not None:
        return squared, error
    references = family.background.references
    placed = family.place(references)
    upper = np.triu_indices(len(placed), 1)
    distance = ((placed[:, None] - placed[None]) ** 2).sum(axis=2)[upper]
    cost = family.cost_table(references, references)[upper]
    kept = (distance > 1e-12) & (cost > 1e-12)
    if kept.sum() < 3 or np.ptp(np.log(distance[kept])) < 1e-6:
        return squared, error
    power, level = np.polyfit(np.log(distance[kept]), np.log(cost[kept]), 1)
    power = float(np.clip(power, 0.1, 2.0))
    base = np.maximum(squared, 1e-9 * float(distance.mean()))
    value = np.exp(level) * base**power
    slope = power * value / base
    finite = np.isfinite(error)
    return value, np.where(finite, np.where(finite, error, 0.0) * slope, np.inf)


def _labelled(problem: _Problem) -> Estimate:
    if "gold_count" not in problem.sums:
        raise needs_gold()
    count, cost, error = gold_costs(problem.sums)
    average = np.average(cost, weights=count) if count.sum() > 0 else problem.family.chance
    shrunk = (cost * count + average * 2.0) / (count + 2.0)
    floored = np.maximum(shrunk, _cost_floor(problem))
    return Estimate(_parameters(problem, floored, error), "labelled", f"{problem.request.n_gold} known labels")


def _cost_floor(problem: _Problem) -> float:
    """Return a cost that no source is taken to be below: a thousandth of what two sources cost each other."""
    typical = problem.pairs.cost[problem.usable]
    level = float(np.median(typical)) if len(typical) else problem.family.chance
    return max(1e-3 * level, 1e-6 * problem.family.chance)


def _parameters(
    problem: _Problem, cost: FloatArray, error: FloatArray, expected: FloatArray | None = None
) -> DistanceParameters:
    family, active = problem.family, problem.active
    if active.any():
        cost = np.where(active, cost, cost[active].mean())
    error = np.where(active, error, np.inf)
    weight = family.weight_from_cost(cost)
    slope = np.maximum(np.abs(family.curve.slope(weight)), 1e-12)
    finite = np.isfinite(error)
    weight_error = np.where(finite, np.where(finite, error, 0.0) / slope, np.inf)
    dependent = problem.request.dependent
    if expected is None or "square_cost" in problem.sums:
        correlation = excess_correlation(problem.pairs, family.pair_cost, weight, dependent)
    else:
        closer = 1.0 - problem.pairs.cost / np.maximum(expected, 1e-300)
        correlation = np.where(dependent & (problem.pairs.count > 0), np.clip(closer, 0.0, 1.0), 0.0)
    chance = family.chance
    return DistanceParameters(cost, weight, weight_error, error, correlation, chance, family.doubt(chance))


def _equal(problem: _Problem) -> DistanceParameters:
    m = len(problem.active)
    typical = problem.pairs.cost[problem.usable]
    level = float(np.median(typical)) / 2.0 if len(typical) else 0.5 * problem.family.chance
    level = min(max(level, _cost_floor(problem)), 0.9 * problem.family.chance)
    return _parameters(problem, np.full(m, level), np.full(m, np.inf))


def _adversaries(problem: _Problem, cost: FloatArray, error: FloatArray) -> tuple[Diagnostic, ...]:
    chance = problem.family.chance
    names = problem.request.named(problem.active & np.isfinite(error) & (cost - 3.0 * error > 1.1 * chance))
    if not names:
        return ()
    message = (
        f"{', '.join(names)}: further from the truth than chance; the weight is zero. Check how the labels are coded."
    )
    return (Diagnostic("adversarial-source", "warning", names, message),)
