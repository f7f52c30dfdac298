"""How the weights of sources of rankings are learned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import FloatArray
from consilience.exceptions import UnsupportedError
from consilience.families.automatic import Steps, evened_costs, follow, plain_vote
from consilience.families.base import Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.findings import (
    CANNOT_TELL,
    OUTWEIGHED,
    adversaries,
    competing,
    dependent_pairs,
    needs_gold,
    unidentified,
)
from consilience.families.mallows_dependence import (
    chosen_reading,
    feared_copies,
    gold_shares,
    read_pairs,
    with_dependence,
    with_gold,
)
from consilience.families.mallows_likelihood import SPREAD, most_likely, solve_weights
from consilience.families.mallows_moments import agreement_of, moment_fit
from consilience.families.mallows_problem import Problem, parameters_of
from consilience.families.pair_costs import blend
from consilience.families.pair_fits import PairFit, additive_fit, product_fit
from consilience.solvers.mallows import DistanceCurve
from consilience.solvers.quadratic import quadratic_triplets
from consilience.solvers.readings import Readings
from consilience.solvers.robust import PairMomentFit, sandwich
from consilience.solvers.signal import no_signal_probability

if TYPE_CHECKING:
    from consilience.families.mallows import MallowsFamily, MallowsParameters

__all__ = ["estimate_mallows"]

#: Dependent pairs are looked for from this many sources on.
FLAG_SOURCES = 4


def estimate_mallows(family: MallowsFamily, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
    """Learn the weights by the method asked for."""
    if not request.prior_is("auto"):
        raise UnsupportedError("Rankings take every truth as equally likely. Leave prior at 'auto'.")
    problem = Problem(family, sums, agreement_of(sums), request)
    method = request.method
    if method == "auto":
        return _automatic(problem, passes)
    if method == "majority":
        return Estimate(_equal(problem), "majority", "asked for")
    if method == "labelled":
        return _labelled(problem)
    if method == "em":
        if passes is None:
            raise UnsupportedError("method='em' needs votes.")
        return _polish(problem, moment_fit(problem).weight, passes, "asked for")
    if method == "moments":
        return _from_moments(problem, moment_fit(problem), "asked for", ())
    fit = {"isotropic": _isotropic, "triplets": _triplets, "quadratic": _quadratic}[method](problem)
    weight, error = _backward(problem, fit.value, fit.standard_error)
    notes = unidentified(fit.identified, problem.active, request)
    return Estimate(parameters_of(problem, weight, error), method, "asked for", notes)


def _automatic(problem: Problem, passes: Passes | None) -> Estimate:
    count = int(problem.active.sum())
    steps = Steps(
        equal=lambda: _equal(problem),
        labelled=(lambda: _labelled(problem)) if "gold_discordant" in problem.sums else None,
        chance=lambda: _no_signal_chance(problem),
        unrelated="the sources agree no more than chance would have them",
        read_pairs=(lambda: read_pairs(problem)) if count >= FLAG_SOURCES else None,
        dependent=lambda readings: _dependent(problem, readings, passes),
        independent=lambda: _independent(problem, passes),
        feared=lambda readings: feared_copies(problem, readings),
    )
    return follow(steps, count, problem.request)


def _no_signal_chance(problem: Problem) -> float:
    left, right = np.nonzero(np.triu(problem.usable))
    return no_signal_probability(problem.pairs.value[left, right] / problem.pairs.standard_error[left, right])


def _independent(problem: Problem, passes: Passes | None) -> Estimate:
    fit = moment_fit(problem)
    left, right = np.nonzero(np.triu(problem.usable))
    found = adversaries(left, right, -fit.residual_z, problem.request)
    if passes is None:
        estimate = _from_moments(problem, fit, "only moments are at hand", found)
    else:
        estimate = _polish(problem, fit.weight, passes, _why_polished(problem), found)
    return estimate if problem.request.n_gold else _evened(problem, estimate)


def _evened(problem: Problem, estimate: Estimate) -> Estimate:
    """Draw the weights together as far as chance explains why they differ."""
    parameters: MallowsParameters = estimate.parameters  # type: ignore[assignment]
    curve, finite = problem.family.typical_curve, np.isfinite(parameters.standard_error)
    error = np.where(finite, parameters.standard_error, 0.0) * curve.variance(parameters.weight)
    cost = curve.mean(parameters.weight)
    even = evened_costs(cost, np.where(finite, error, np.inf), problem.active, estimate, problem.request)
    weight = np.clip(curve.weight_from_mean(even, limit=problem.family.bounds[1]), *problem.family.bounds)
    weight = np.where(even == cost, parameters.weight, weight)
    again = with_dependence(problem, parameters_of(problem, weight, parameters.standard_error))
    return replace(estimate, parameters=again)


def _dependent(problem: Problem, readings: Readings, passes: Passes | None) -> Estimate | None:
    """Learn from sources of which some depend on each other, or say that the votes cannot tell which."""
    request, chosen = problem.request, chosen_reading(problem, readings)
    if not chosen.dependent.any():
        return None
    rivals = competing(readings, int(problem.active.sum()), request)
    if rivals is not None and not request.n_gold:
        return plain_vote(_equal(problem), CANNOT_TELL, (rivals,))
    left, right = np.nonzero(np.triu(chosen.dependent))
    note = dependent_pairs(left, right, request, OUTWEIGHED)
    problem = replace(problem, request=replace(request, dependent=request.dependent | chosen.dependent))
    fit = moment_fit(problem)
    left, right = np.nonzero(np.triu(problem.usable))
    notes = (note, *adversaries(left, right, -fit.residual_z, request))
    # The likelihood takes sources as independent and would trust those that agree, so it is for scarce votes alone.
    scarce = problem.many_incomplete and not problem.much_in_common
    if scarce and passes is not None and rivals is None:
        estimate = _polish(problem, fit.weight, passes, _why_polished(problem), notes)
        return estimate if request.n_gold else _evened(problem, estimate)
    reason = "exact pair moments under a robust loss, as some sources depend on each other"
    if rivals is not None:
        reason = f"{request.n_gold} known labels decided which of two groups follows the truth, then {reason}"
    estimate = _from_moments(problem, fit, reason, notes, rivals is not None)
    return estimate if request.n_gold else _evened(problem, estimate)


def _why_polished(problem: Problem) -> str:
    kinds = [name for name, found in (("partial", problem.is_partial), ("tied", problem.is_tied)) if found]
    if kinds:
        return f"maximum likelihood, as some rankings are {' and '.join(kinds)}"
    return "exact pair moments, then maximum likelihood"


def _isotropic(problem: Problem) -> PairFit:
    """Algorithm 4: discordances add up. Biased, as two sources may err on the same pair of items."""
    pairs = problem.pairs
    return additive_fit((1.0 - pairs.value) / 2.0, pairs.both, pairs.influence / 2.0, problem.usable)


def _triplets(problem: Problem) -> PairFit:
    """Algorithm 2 on the embedding into signs of pairs of items, averaged over the pairs."""
    pairs = problem.pairs
    fit = product_fit(pairs.value, pairs.standard_error, pairs.influence, problem.usable, 1.0, 1.0)
    return replace(fit, value=(1.0 - fit.value) / 2.0, standard_error=fit.standard_error / 2.0)


def _quadratic(problem: Problem) -> PairFit:
    """Algorithm 3 on the same signs; by symmetry every pair of items is as likely one way as the other."""
    joint = (1.0 + problem.pairs.value) / 4.0
    error = 3.0 * problem.pairs.standard_error / 4.0  # a covariance within its noise must not be divided by
    rates = quadratic_triplets(joint, np.full(len(joint), 0.5), 0.5, problem.usable, error)
    precision = _triplets(problem).standard_error  # the same covariances, so the same precision
    return PairFit(1.0 - rates.given_one, precision, rates.identified, np.zeros_like(joint))


def _backward(problem: Problem, share: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weights that make each source contradict this share of the pairs it orders."""
    low, high = problem.family.bounds
    weight, slope = np.zeros(len(share)), np.ones(len(share))
    if "gold_discordant" in problem.sums:
        share, error = blend(share, error, *gold_shares(problem))
    for source in np.flatnonzero(problem.active):
        curve = problem.curve(int(source))
        weight[source] = curve.weight_from_mean(np.clip(share[source], 0.0, 1.0) * curve.total_pairs, limit=high)
        slope[source] = curve.variance(weight[source]) / curve.total_pairs
    finite = np.isfinite(error)
    weight_error = np.where(finite, np.where(finite, error, 0.0) / np.maximum(slope, 1e-9), np.inf)
    return np.clip(weight, low, high), weight_error


def _labelled(problem: Problem) -> Estimate:
    if "gold_discordant" not in problem.sums:
        raise needs_gold()
    gold, found = problem.sums["gold_buckets"], problem.sums["gold_discordant"]
    pooled = float(DistanceCurve.of(gold.sum(axis=0)).weight_from_mean(found.sum(), limit=problem.family.bounds[1]))
    start = np.full(len(gold), max(pooled, problem.family.bounds[0]))
    weight = solve_weights(gold, found, start, float(start[0]), problem.family.bounds)
    curves = [DistanceCurve.of(row) for row in gold]
    spread = np.array([float(curve.variance(value)) for curve, value in zip(curves, weight, strict=True)])
    told = np.array([curve.total_pairs > 0 for curve in curves])
    error = np.where(told, 1.0 / np.sqrt(spread + 1.0 / SPREAD**2), np.inf)
    parameters = parameters_of(problem, weight, error)
    return Estimate(parameters, "labelled", f"{problem.request.n_gold} known labels")


def _from_moments(
    problem: Problem, fit: PairMomentFit, reason: str, notes: tuple[Diagnostic, ...], level_told: bool = False
) -> Estimate:
    left, right = np.nonzero(np.triu(problem.usable))
    weight, error = fit.weight, np.full(len(fit.weight), np.inf)
    if len(left):
        law = sandwich(fit.jacobian, fit.precision, problem.pairs.influence[:, left, right], SPREAD)
        error = np.sqrt(np.maximum(np.diag(law), 0.0))
    dependent = problem.request.dependent
    if dependent.any():
        weight, error = with_gold(problem, weight, error, level_told)
    parameters = with_dependence(problem, parameters_of(problem, weight, error))
    return Estimate(parameters, "moments", reason, notes, dependent)


def _polish(
    problem: Problem, start: FloatArray, passes: Passes, reason: str, notes: tuple[Diagnostic, ...] = ()
) -> Estimate:
    weight, error, found = most_likely(problem, start, passes)
    parameters = with_dependence(problem, parameters_of(problem, weight, error))
    return Estimate(parameters, "em", reason, (*notes, *found), problem.request.dependent)


def _equal(problem: Problem) -> MallowsParameters:
    m = len(problem.pairs.both)
    return parameters_of(problem, np.ones(m), np.full(m, np.inf))
