"""How the weights of sources of rankings are learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.exceptions import UnsupportedError
from consilience.families.base import GROUPS, Chunk, Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.findings import (
    EQUAL_WEIGHTS,
    SIGNIFICANCE,
    adversaries,
    dependent_pairs,
    fell_back,
    needs_gold,
    no_signal,
    polished,
    rival_groups,
    unidentified,
)
from consilience.families.mallows_moments import PairAgreement, agreement_of, moment_fit
from consilience.families.mallows_posterior import EXACT_ITEMS
from consilience.families.pair_costs import blend
from consilience.families.pair_fits import PairFit, additive_fit, product_fit
from consilience.families.polishing import finish
from consilience.solvers.mallows import DistanceCurve, pair_retention, pair_retention_slope
from consilience.solvers.quadratic import quadratic_triplets
from consilience.solvers.robust import PairMomentFit, sandwich
from consilience.solvers.signal import no_signal_probability

if TYPE_CHECKING:
    from consilience.families.mallows import MallowsFamily, MallowsParameters

__all__ = ["estimate_mallows"]

FLAG = 5.0
MAX_ROUNDS, SAMPLED_ROUNDS = 100, 24
PRECISE = 0.02
#: Up to this share of partial or tied votes, pair moments are as good as the likelihood.
FEW_INCOMPLETE = 0.2
#: Items on which long rankings are polished.
SAMPLED_ITEMS = 3000
#: Width of the weak pull of each weight towards the mean weight.
SPREAD = 1.0

Run = Callable[[Callable[[Chunk], Sums]], Sums]


@dataclass(frozen=True)
class Problem:
    """What all methods look at."""

    family: MallowsFamily
    sums: Sums
    pairs: PairAgreement
    request: Request

    @property
    def usable(self) -> BoolArray:
        """The pairs that may be used as independent."""
        return self.pairs.usable(self.request.dependent)

    @property
    def active(self) -> BoolArray:
        """The sources that order at least one pair of items."""
        return np.array([self.curve(source).total_pairs > 0 for source in range(len(self.pairs.both))])

    def curve(self, source: int) -> DistanceCurve:
        """Return the expected discordances of all votes of a source, by weight."""
        return DistanceCurve.of(self.sums["buckets"][source])

    @property
    def is_partial(self) -> bool:
        """Whether some vote leaves out items of its row."""
        return int(self.sums["partial_votes"]) > 0

    @property
    def share_incomplete(self) -> float:
        """Share of the votes that leave out items or hold ties."""
        votes = max(int(np.diag(self.sums["both"]).sum()), 1)
        return (int(self.sums["partial_votes"]) + int(self.sums["tied_votes"])) / votes

    @property
    def is_tied(self) -> bool:
        """Whether some vote holds ties."""
        return int(self.sums["tied_votes"]) > 0


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
    return Estimate(_parameters(problem, weight, error), method, "asked for", notes)


def _automatic(problem: Problem, passes: Passes | None) -> Estimate:
    request, count = problem.request, int(problem.active.sum())
    if count < 3:
        if "gold_discordant" in problem.sums:
            return _labelled(problem)
        return _fallback(problem, f"{count} source(s) vote, weights need 3", ())
    left, right = np.nonzero(np.triu(problem.usable))
    chance = no_signal_probability(problem.pairs.value[left, right] / problem.pairs.standard_error[left, right])
    if chance > SIGNIFICANCE and not request.n_gold:
        reason = f"the sources agree no more than chance would have them (p = {chance:.2f})"
        return _fallback(problem, reason, (no_signal(request, reason),))
    fit = moment_fit(problem)
    # In closer agreement than independent sources of these weights would be; of tied votes the moments are not exact.
    flagged = (fit.residual_z > (2.0 * FLAG if problem.is_tied else FLAG)) & (count >= 5) & request.learn
    found = adversaries(left, right, -fit.residual_z, request)
    rivals = rival_groups(left[flagged], right[flagged], count, request) if flagged.any() else None
    if rivals is not None and request.n_gold:
        return replace(_labelled(problem), reason=f"{request.n_gold} known labels decide: {rivals}")
    if rivals is not None:
        return _fallback(problem, rivals, (dependent_pairs(left[flagged], right[flagged], request, EQUAL_WEIGHTS),))
    if flagged.any() and problem.share_incomplete <= FEW_INCOMPLETE:
        note = dependent_pairs(left[flagged], right[flagged], request)
        reason = "exact pair moments under a robust loss, as some pairs look dependent"
        return _from_moments(problem, fit, reason, (note, *found))
    if flagged.any():
        note = dependent_pairs(left[flagged], right[flagged], request, "they share one vote")
        found = (note, *found)
        dependent = request.dependent.copy()
        dependent[left[flagged], right[flagged]] = dependent[right[flagged], left[flagged]] = True
        problem = replace(problem, request=replace(request, dependent=dependent))
    if passes is None:
        return _from_moments(problem, fit, "only moments are at hand", found)
    reason = "exact pair moments, then maximum likelihood"
    if problem.is_partial or problem.is_tied:
        kinds = [name for name, found in (("partial", problem.is_partial), ("tied", problem.is_tied)) if found]
        reason = f"maximum likelihood, as some rankings are {' and '.join(kinds)}"
    estimate = _polish(problem, fit.weight, passes, reason)
    return replace(estimate, diagnostics=(*found, *estimate.diagnostics), dependent=problem.request.dependent)


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
        share, error = blend(share, error, *_gold_shares(problem))
    for source in np.flatnonzero(problem.active):
        curve = problem.curve(int(source))
        weight[source] = curve.weight_from_mean(np.clip(share[source], 0.0, 1.0) * curve.total_pairs, limit=high)
        slope[source] = curve.variance(weight[source]) / curve.total_pairs
    finite = np.isfinite(error)
    weight_error = np.where(finite, np.where(finite, error, 0.0) / np.maximum(slope, 1e-9), np.inf)
    return np.clip(weight, low, high), weight_error


def _gold_shares(problem: Problem) -> tuple[FloatArray, FloatArray]:
    total = np.array([DistanceCurve.of(row).total_pairs for row in problem.sums["gold_buckets"]])
    share = (problem.sums["gold_discordant"] + 0.5) / (total + 1.0)
    # Pairs of one ranking are not independent; as many as there are items carry the information.
    items = np.maximum(total / max((problem.family.typical - 1) / 2.0, 1.0), 1.0)
    error = np.sqrt(share * (1 - share) / items)
    return share, np.where(total > 0, error, np.inf)


def _labelled(problem: Problem) -> Estimate:
    if "gold_discordant" not in problem.sums:
        raise needs_gold()
    gold, found = problem.sums["gold_buckets"], problem.sums["gold_discordant"]
    pooled = float(DistanceCurve.of(gold.sum(axis=0)).weight_from_mean(found.sum(), limit=problem.family.bounds[1]))
    start = np.full(len(gold), max(pooled, problem.family.bounds[0]))
    weight = _solve(gold, found, start, float(start[0]), problem.family.bounds)
    curves = [DistanceCurve.of(row) for row in gold]
    spread = np.array([float(curve.variance(value)) for curve, value in zip(curves, weight, strict=True)])
    told = np.array([curve.total_pairs > 0 for curve in curves])
    error = np.where(told, 1.0 / np.sqrt(spread + 1.0 / SPREAD**2), np.inf)
    parameters = _parameters(problem, weight, error)
    return Estimate(parameters, "labelled", f"{problem.request.n_gold} known labels")


def _from_moments(problem: Problem, fit: PairMomentFit, reason: str, notes: tuple[Diagnostic, ...]) -> Estimate:
    left, right = np.nonzero(np.triu(problem.usable))
    error = np.full(len(fit.weight), np.inf)
    if len(left):
        law = sandwich(fit.jacobian, fit.precision, problem.pairs.influence[:, left, right], SPREAD)
        error = np.sqrt(np.maximum(np.diag(law), 0.0))
    return Estimate(_parameters(problem, fit.weight, error), "moments", reason, notes)


def _polish(problem: Problem, start: FloatArray, passes: Passes, reason: str) -> Estimate:
    """Maximise the likelihood by EM, with a weak pull to the mean weight."""
    low, _ = problem.family.bounds
    base = _parameters(problem, np.clip(start, max(low, -4.0) + 0.01, 4.0), np.full(len(start), np.inf))
    notes: list[Diagnostic] = []
    if _is_sampled(problem):  # long rankings: the posterior itself is sampled, so a few thousand items must do
        share = min(1.0, SAMPLED_ITEMS / max(passes.n_sampled, 1))
        kept = int(np.ceil(GROUPS * share))
        fit = _rounds(problem, base, _part_of(passes.over_sample, kept), SAMPLED_ROUNDS, average=True)
        if kept < GROUPS or passes.n_sampled < passes.n_items:
            used = f"about {int(passes.n_sampled * kept / GROUPS):,} of {passes.n_items:,} items"
            worst = float(np.max(fit.standard_error[problem.active], initial=0.0))
            notes.append(polished(used, "a weight", worst, PRECISE))
        return Estimate(_parameters(problem, fit.parameters.weight, fit.standard_error), "em", reason, tuple(notes))

    def go_on(sampled: _Fit) -> _Fit:
        return _rounds(problem, sampled.parameters, passes.over_all, MAX_ROUNDS)

    first = _rounds(problem, base, passes.over_sample, MAX_ROUNDS)
    fit, found = finish(passes, first, go_on, problem.active, PRECISE)
    return Estimate(_parameters(problem, fit.parameters.weight, fit.standard_error), "em", reason, found)


@dataclass(frozen=True)
class _Fit:
    parameters: MallowsParameters
    standard_error: FloatArray
    converged: bool


def _is_sampled(problem: Problem) -> bool:
    """Whether rows are too long for the exact posterior, so that rounds are noisy and are averaged."""
    size = np.flatnonzero(problem.sums["row_sizes"])
    return len(size) > 0 and int(size[-1]) > EXACT_ITEMS


def _part_of(run: Run, kept: int) -> Run:
    """Return passes over the items of the first groups only."""

    def over_part(function: Callable[[Chunk], Sums]) -> Sums:
        def on_part(chunk: Chunk) -> Sums:
            rows = np.flatnonzero(chunk.groups < kept)
            known = None if chunk.known is None else chunk.known[rows]
            is_known = None if chunk.is_known is None else chunk.is_known[rows]
            return function(Chunk(chunk.labels[rows], chunk.observed[rows], chunk.groups[rows], known, is_known))

        return run(on_part)

    return over_part


def _rounds(
    problem: Problem,
    parameters: MallowsParameters,
    run: Run,
    limit: int,
    *,
    average: bool = False,
) -> _Fit:
    family, active = problem.family, problem.active
    sums = Sums.zero()
    history: list[FloatArray] = []
    converged, error = False, np.full(len(active), np.inf)
    for number in range(limit):
        current = parameters
        sums = run(lambda chunk, at=current, seed=number: family.round(at, chunk, seed))  # type: ignore[misc]
        centre = float(current.weight[active].mean())
        solved = _solve(sums["round_buckets"], sums["spent"], current.weight, centre, family.bounds)
        weight = np.where(active, solved, centre)
        parameters = replace(current, weight=weight)
        information = sums["outer"] + np.eye(len(active)) / SPREAD**2
        variance = np.diag(np.linalg.pinv(information, hermitian=True))
        error = np.where(active, np.sqrt(np.maximum(variance, 0.0)), np.inf)
        history.append(weight)
        step = np.abs(weight - current.weight)[active]
        if not average and (step < np.maximum(1e-5, 0.01 * error[active])).all():
            converged = True
            break
    if average:
        parameters = replace(parameters, weight=np.mean(history[len(history) // 2 :], axis=0))
        converged = True
    return _Fit(parameters, error, converged)


def _solve(
    buckets: IntArray, spent: FloatArray, start: FloatArray, centre: float, bounds: tuple[float, float]
) -> FloatArray:
    """Return the weights at which the expected discordances, pulled weakly to the mean weight, are those found.

    Parameters
    ----------
    buckets
        ``(m, r + 1)`` sizes of the votes of each source; `spent` ``(m,)`` are the discordances found.
    """
    pairs = np.stack([DistanceCurve.of(row).pairs for row in buckets])
    weight: FloatArray = np.clip(start, *bounds)
    low, high = np.full(len(weight), bounds[0]), np.full(len(weight), bounds[1])
    for _ in range(60):
        swapped = (1.0 - pair_retention(weight, pairs.shape[1])) / 2.0
        excess = (swapped * pairs).sum(axis=1) - spent - (weight - centre) / SPREAD**2
        low, high = np.where(excess > 0, weight, low), np.where(excess > 0, high, weight)
        slope = (pair_retention_slope(weight, pairs.shape[1]) * pairs).sum(axis=1) / 2.0 + 1.0 / SPREAD**2
        step = weight + excess / slope
        proposal: FloatArray = np.where((step > low) & (step < high), step, 0.5 * (low + high))
        if np.abs(proposal - weight).max() < 1e-10:
            return proposal
        weight = proposal
    return weight


def _parameters(problem: Problem, weight: FloatArray, error: FloatArray) -> MallowsParameters:
    from consilience.families.mallows import MallowsParameters

    active = problem.active
    if active.any():
        weight = np.where(active, weight, weight[active].mean())
    m = len(weight)
    cost, slope = np.zeros(m), np.zeros(m)
    votes = np.maximum(np.diag(problem.sums["both"]), 1)
    for source in range(m):
        curve = problem.curve(source) if active[source] else problem.family.typical_curve
        count = votes[source] if active[source] else 1
        cost[source] = curve.mean(weight[source]) / count
        slope[source] = -curve.variance(weight[source]) / count
    return MallowsParameters(
        weight=weight,
        standard_error=np.where(active, error, np.inf),
        correlation=_correlation(problem, weight),
        expected_cost=cost,
        cost_slope=slope,
    )


def _correlation(problem: Problem, weight: FloatArray) -> FloatArray:
    """Return how far dependent sources repeat each other: 0 if as close as independent ones, 1 for copies."""
    dependent = problem.request.dependent & (problem.pairs.both > 0)
    correlation = np.zeros(dependent.shape)
    left, right = np.nonzero(np.triu(dependent))
    if len(left):
        family = problem.family
        pairs = family.typical * (family.typical - 1) / 2.0
        independent = 1.0 - 2.0 * family.pair_cost(weight[left], weight[right]) / pairs
        excess = (problem.pairs.value[left, right] - independent) / np.maximum(1.0 - independent, 1e-9)
        correlation[left, right] = correlation[right, left] = np.clip(excess, 0.0, 1.0)
    return correlation


def _equal(problem: Problem) -> MallowsParameters:
    m = len(problem.pairs.both)
    return _parameters(problem, np.ones(m), np.full(m, np.inf))


def _fallback(problem: Problem, reason: str, notes: tuple[Diagnostic, ...]) -> Estimate:
    return Estimate(_equal(problem), "majority", reason, (*notes, fell_back(reason)))
