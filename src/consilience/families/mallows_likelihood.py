"""The likelihood of rankings, maximised by EM; of long rankings, whose posterior is sampled, by averaged rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import FloatArray, IntArray
from consilience.families.base import GROUPS, Chunk, Diagnostic, Passes, Sums
from consilience.families.findings import polished
from consilience.families.mallows_posterior import EXACT_ITEMS
from consilience.families.mallows_problem import Problem, parameters_of
from consilience.families.pair_fits import MANY_SOURCES
from consilience.families.polishing import finish
from consilience.solvers.mallows import DistanceCurve, pair_retention, pair_retention_slope

if TYPE_CHECKING:
    from consilience.families.mallows import MallowsParameters

__all__ = ["SPREAD", "solve_weights", "most_likely"]

MAX_ROUNDS, SAMPLED_ROUNDS = 100, 24
PRECISE = 0.02
#: Items on which long rankings are polished.
SAMPLED_ITEMS = 3000
#: Width of the weak pull of each weight towards the mean weight.
SPREAD = 1.0

Run = Callable[[Callable[[Chunk], Sums]], Sums]


def most_likely(
    problem: Problem, start: FloatArray, passes: Passes
) -> tuple[FloatArray, FloatArray, tuple[Diagnostic, ...]]:
    """Return the weights of largest likelihood, with a weak pull to their mean, and their standard errors."""
    low, _ = problem.family.bounds
    base = parameters_of(problem, np.clip(start, max(low, -4.0) + 0.01, 4.0), np.full(len(start), np.inf))
    notes: list[Diagnostic] = []
    if _is_sampled(problem):  # long rankings: the posterior itself is sampled, so a few thousand items must do
        share = min(1.0, SAMPLED_ITEMS / max(passes.n_sampled, 1))
        kept = int(np.ceil(GROUPS * share))
        fit = _rounds(problem, base, _part_of(passes.over_sample, kept), SAMPLED_ROUNDS, average=True)
        if kept < GROUPS or passes.n_sampled < passes.n_items:
            used = f"about {int(passes.n_sampled * kept / GROUPS):,} of {passes.n_items:,} items"
            worst = float(np.max(fit.standard_error[problem.active], initial=0.0))
            notes.append(polished(used, "a weight", worst, PRECISE))
        return fit.parameters.weight, fit.standard_error, tuple(notes)

    def go_on(sampled: _Fit) -> _Fit:
        return _rounds(problem, sampled.parameters, passes.over_all, MAX_ROUNDS)

    first = _rounds(problem, base, passes.over_sample, MAX_ROUNDS)
    fit, found = finish(passes, first, go_on, problem.active, PRECISE)
    return fit.parameters.weight, fit.standard_error, found


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
        solved = solve_weights(sums["round_buckets"], sums["spent"], current.weight, centre, family.bounds)
        weight = np.where(active, solved, centre)
        parameters = replace(current, weight=weight)
        information = sums["outer"] + np.eye(len(active)) / SPREAD**2
        # Of many sources by the quicker way; the pull alone makes the matrix one that has an inverse.
        many = len(active) >= MANY_SOURCES
        variance = np.diag(np.linalg.inv(information) if many else np.linalg.pinv(information, hermitian=True))
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


def solve_weights(
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
