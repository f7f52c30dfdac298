"""How the scales of sources on a manifold are learned from the distances between their votes.

In spaces of constant curvature the mean squared distance of two sources is known for given scales, and all pairs are
fitted at once. Elsewhere squared distances are taken to add up, first between the votes themselves and then between
the votes as seen from the current label of their item, where space is nearly flat.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.coincidences import coinciding_pairs
from consilience.families.findings import (
    CANNOT_TELL,
    SHARED_VOTE,
    SIGNIFICANCE,
    adversaries,
    competing,
    dependent_pairs,
    fell_back,
    needs_gold,
    no_signal,
    not_converged,
    repeated_votes,
    unidentified,
)
from consilience.families.pair_costs import (
    blend,
    excess_correlation,
    gold_costs,
    pair_costs,
    shrunk_costs,
    supported_reading,
)
from consilience.families.pair_fits import PairFit, additive_fit
from consilience.families.wrapped import WrappedParameters
from consilience.families.wrapped_fits import exact_fit, relative_error, relative_fit
from consilience.families.wrapped_problem import Problem
from consilience.solvers.readings import Readings, Refit, read_dependence
from consilience.solvers.signal import no_signal_probability

if TYPE_CHECKING:
    from consilience.families.wrapped import WrappedNormalFamily

__all__ = ["estimate_wrapped"]

#: Rounds in which votes are seen from the current labels, and the change of the scales that ends them.
ROUNDS, SETTLED = 6, 1e-3
#: Dependent pairs are looked for from this many sources on.
FLAG_SOURCES = 5
#: Errors of sources beyond this share of the curvature radius make squared distances add up no longer.
FLAT = 0.5


def estimate_wrapped(family: WrappedNormalFamily, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
    """Learn one scale per source by the method asked for."""
    problem = Problem(family, sums, pair_costs(sums), request, passes)
    method = request.method
    if method == "auto":
        return _automatic(problem)
    if method == "majority":
        return Estimate(_equal(problem), "majority", "asked for")
    if method == "labelled":
        return _labelled(problem)
    return _learned(problem, method, "asked for")


def _automatic(problem: Problem) -> Estimate:
    count = int(problem.active.sum())
    if count < 3:
        if "gold_count" in problem.sums:
            return _labelled(problem)
        return _fallback(problem, f"{count} source(s) vote, scales need 3", ())
    problem, notes = _without_copies(problem)
    if not problem.usable.any():
        if "gold_count" in problem.sums:
            return _labelled(problem)
        return _fallback(problem, "no two sources that differ vote on five common items", notes)
    chance = _no_signal_chance(problem)
    if chance > SIGNIFICANCE and not problem.request.n_gold:
        reason = f"votes on one item are no closer than votes on different items (p = {chance:.2f})"
        return _fallback(problem, reason, (*notes, no_signal(problem.request, reason)))
    found = _learned(problem, "moments", "")
    return replace(found, diagnostics=(*notes, *found.diagnostics))


def _without_copies(problem: Problem) -> tuple[Problem, tuple[Diagnostic, ...]]:
    """Return the problem in which sources that repeat each other's votes are dependent."""
    request = problem.request
    copied = coinciding_pairs(problem.passes) if request.learn else None
    if copied is None or not (copied := copied & problem.usable).any():
        return problem, ()
    return replace(problem, request=replace(request, dependent=request.dependent | copied)), repeated_votes(
        copied, request
    )


def _no_signal_chance(problem: Problem) -> float:
    """Return how likely such closeness is between sources that vote independently of each other."""
    family, pairs = problem.family, problem.pairs
    if family.mismatch is None or family.mismatch_error is None:
        return 0.0
    left, right = np.nonzero(np.triu(problem.usable & np.isfinite(family.mismatch)))
    if len(left) == 0:
        return 0.0
    error = np.sqrt(family.mismatch_error[left, right] ** 2 + pairs.cost_error[left, right] ** 2)
    return no_signal_probability((family.mismatch - pairs.cost)[left, right] / np.maximum(error, 1e-300))


def _learned(problem: Problem, method: str, reason: str) -> Estimate:
    request = problem.request
    fit, how, notes = _fitted(problem, method)
    if request.method == "auto" and request.learn and int(problem.active.sum()) >= FLAG_SOURCES:
        readings = _read_pairs(problem)
        if readings.best.dependent.any():
            rivals = competing(readings, int(problem.active.sum()), request)
            if rivals is not None and "gold_count" not in problem.sums:
                return _fallback(problem, CANNOT_TELL, (rivals,))
            chosen = readings.best
            if "gold_count" in problem.sums:
                _, told, told_error = gold_costs(problem.sums)
                chosen = supported_reading(readings, told, told_error, _unrelated(problem))
            left, right = np.nonzero(np.triu(chosen.dependent))
            problem = replace(problem, request=replace(request, dependent=request.dependent | chosen.dependent))
            fit, how, notes = _fitted(problem, method)
            notes = (dependent_pairs(left, right, request, SHARED_VOTE), *notes)
    notes = (*notes, *unidentified(fit.identified, problem.active, request))
    if not (fit.identified & problem.active).any() and "gold_count" not in problem.sums:
        return _fallback(problem, "no source has two independent partners", notes)
    # Sums of noisy pairs may leave nothing, or less, for a good source.
    floor = 0.01 * problem.typical if method == "isotropic" else problem.floor
    cost, error = np.maximum(fit.value, floor), fit.standard_error
    if "gold_count" in problem.sums:
        _, told, told_error = gold_costs(problem.sums)
        cost, error = blend(cost, error, np.maximum(told, problem.floor), told_error)
    if request.method == "auto":
        cost = np.maximum(shrunk_costs(cost, error, problem.active), problem.floor)
    notes = (*notes, *_adversaries(problem, fit))
    return Estimate(_parameters(problem, cost, error), method, reason or how, notes, problem.request.dependent)


def _fitted(problem: Problem, method: str) -> tuple[PairFit, str, tuple[Diagnostic, ...]]:
    pairs, geometry = problem.pairs, problem.family.geometry
    if method == "isotropic":
        fit = additive_fit(pairs.cost, pairs.count, pairs.cost_influence, problem.usable)
        return fit, "squared distances added up", _too_curved(problem, fit)
    if geometry.law is not None:
        return exact_fit(problem, geometry.law), "squared distances of all pairs fitted exactly", ()
    return _lifted(problem)


def _lifted(problem: Problem) -> tuple[PairFit, str, tuple[Diagnostic, ...]]:
    """Add up squared distances, then squared differences of the votes as seen from the current labels."""
    fit = relative_fit(problem, problem.pairs)
    if not problem.usable.any():
        return fit, "nothing to learn from", ()
    if problem.passes is None:
        note = Diagnostic(
            "curvature",
            "info",
            (),
            "Only moments are at hand, so squared distances were added up as in flat space; call fit(votes) for "
            "scales that take account of curvature.",
        )
        return fit, "squared distances added up", (note,)
    family, passes = problem.family, problem.passes
    cost = np.maximum(fit.value, problem.floor)
    change = np.inf
    for _ in range(ROUNDS):
        parameters = _parameters(problem, cost, np.zeros_like(cost))
        seen = pair_costs(passes.over_sample(lambda chunk, now=parameters: family.round(now, chunk)))  # type: ignore[misc]
        fit = relative_fit(problem, seen)
        following = np.maximum(fit.value, problem.floor)
        change = float(np.abs(np.log(following / cost))[problem.active].max())
        cost = following
        if change < SETTLED:
            break
    notes = (not_converged(),) if change > 0.1 else ()
    return fit, "squared differences of votes as seen from the labels, in rounds", notes


def _read_pairs(problem: Problem) -> Readings:
    """Return which pairs depend on each other, by the squared distances of all of them."""
    request, pairs, geometry = problem.request, problem.pairs, problem.family.geometry
    constant = problem.family.constant_sources(problem.sums)
    copies = problem.copies & ~np.outer(constant, constant) & ~request.dependent
    unrelated = _unrelated(problem)

    def refit(kept: BoolArray) -> Refit:
        dependent = request.dependent | (problem.usable & ~kept)
        part = replace(problem, request=replace(request, dependent=dependent))
        fit = relative_fit(part, pairs) if geometry.law is None else exact_fit(part, geometry.law)
        quality = 1.0 - np.minimum(fit.value / unrelated, 1.0)
        weight = 0.5 / problem.family.scale_of_cost(np.maximum(fit.value, problem.floor)) ** 2
        left, right = np.nonzero(np.triu(problem.usable))
        expected = problem.family.pair_cost(weight[left], weight[right])
        error = relative_error(pairs, problem.usable)[left, right] * fit.inflation
        too_close = np.zeros(kept.shape)
        too_close[left, right] = np.log(expected / pairs.cost[left, right]) / error
        return Refit(quality, too_close + too_close.T)

    found = read_dependence(refit, problem.usable, -pairs.cost)
    # Pairs that never differ need no test.
    return replace(found, best=replace(found.best, dependent=found.best.dependent | copies))


def _unrelated(problem: Problem) -> float:
    """Return the mean squared distance between votes on different items."""
    chance = problem.family.mismatch
    known = np.zeros(0) if chance is None else chance[np.isfinite(chance) & (chance > 0)]
    return float(known.mean()) if len(known) else 4.0 * problem.typical


def _too_curved(problem: Problem, fit: PairFit) -> tuple[Diagnostic, ...]:
    radius = problem.family.geometry.radius
    distance = np.sqrt(np.maximum(problem.pairs.cost, 0.0) / 2.0)
    reach = np.where(problem.usable, distance, 0.0).max(axis=1)
    names = problem.request.named(reach > FLAT * radius)
    if not names:
        return ()
    negative = problem.request.named(problem.active & (fit.value <= 0))
    told = f" The squared error of {', '.join(negative[:5])} came out negative." if negative else ""
    message = (
        f"{', '.join(names[:8])}: typical errors reach {float(reach.max()) / radius:.2g} curvature radii, and beyond "
        f"{FLAT} squared distances do not add up, so that scales are biased.{told} Use method='moments' or 'auto'."
    )
    return (Diagnostic("curvature", "warning", names, message),)


def _adversaries(problem: Problem, fit: PairFit) -> tuple[Diagnostic, ...]:
    """Name the sources that are further from the others than noise of any scale would put them."""
    law = problem.family.geometry.law
    if law is None or law.kind not in ("sphere", "rotations"):
        return ()
    left, right = np.nonzero(np.triu(problem.usable))
    return adversaries(left, right, fit.residual[left, right], problem.request)


def _labelled(problem: Problem) -> Estimate:
    if "gold_count" not in problem.sums:
        raise needs_gold()
    count, cost, error = gold_costs(problem.sums)
    average = np.average(cost, weights=count) if count.sum() > 0 else problem.typical / 2.0
    shrunk = np.maximum((cost * count + average * 2.0) / (count + 2.0), problem.floor)
    return Estimate(_parameters(problem, shrunk, error), "labelled", f"{problem.request.n_gold} known labels")


def _parameters(problem: Problem, cost: FloatArray, error: FloatArray) -> WrappedParameters:
    family, active = problem.family, problem.active
    if active.any():
        cost = np.where(active, cost, np.median(cost[active]))
    scale = family.scale_of_cost(np.maximum(cost, 1e-300))
    finite = np.isfinite(error) & active
    slope = np.maximum(family.cost_slope(scale), 1e-300)
    scale_error = np.where(finite, np.where(finite, error, 0.0) / slope, np.inf)
    # On a sphere a scale far out is not told from unrelated votes; its error is not zero there.
    weight = 0.5 / scale**2
    correlation = excess_correlation(problem.pairs, family.pair_cost, weight, problem.request.dependent)
    return WrappedParameters(scale, scale_error, correlation, _dispersion(problem, cost))


def _dispersion(problem: Problem, cost: FloatArray) -> float:
    """Return how far true labels scatter: half the squared distance between items, less the errors of the votes."""
    mismatch = problem.family.mismatch
    if mismatch is None or not np.isfinite(mismatch).any():
        return 4.0 * float(np.median(cost))
    between = float(mismatch[np.isfinite(mismatch)].mean()) / 2.0
    return max(between - float(cost[problem.active].mean()), 0.05 * between, 1e-300)


def _equal(problem: Problem) -> WrappedParameters:
    m = len(problem.active)
    return _parameters(problem, np.full(m, max(problem.typical / 2.0, 1e-300)), np.full(m, np.inf))


def _fallback(problem: Problem, reason: str, notes: tuple[Diagnostic, ...]) -> Estimate:
    return Estimate(_equal(problem), "majority", reason, (*notes, fell_back(reason)), problem.request.dependent)
