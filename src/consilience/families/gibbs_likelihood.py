"""The likelihood of votes on a finite space, maximised by EM, with the prior over the labels where it is learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Chunk, Diagnostic, Estimate, Passes, Sums
from consilience.families.findings import SIGNIFICANCE
from consilience.families.gibbs_problem import MAX_WEIGHT, SPREAD, Problem, parameters_of
from consilience.families.polishing import finish
from consilience.solvers.backward import conditional

if TYPE_CHECKING:
    from consilience.families.gibbs import GibbsParameters

__all__ = ["most_likely"]

#: The prior over labels is learned from this many items per label on.
ITEMS_PER_LABEL = 10
MAX_ROUNDS = 300
PRECISE = 0.02


def most_likely(
    problem: Problem, start: FloatArray, passes: Passes, reason: str, found: tuple[Diagnostic, ...] = ()
) -> Estimate:
    """Maximise the likelihood by EM with a weak pull to the mean weight; learn the prior where it differs."""
    request, size = problem.request, len(problem.family.matrix)
    base = parameters_of(problem, np.clip(start, 0.02, 5.0), np.full(len(start), np.inf))
    fit = _rounds(problem, base, passes.over_sample, learn_prior=False, limit=MAX_ROUNDS)
    learn_prior = False
    if request.prior_is("auto") and passes.n_items >= ITEMS_PER_LABEL * size:
        other = _rounds(problem, fit.parameters, passes.over_sample, learn_prior=True, limit=MAX_ROUNDS)
        gain = 2.0 * (other.log_likelihood - fit.log_likelihood)
        learn_prior = _chi_square_tail(gain, size - 1) < SIGNIFICANCE
        if learn_prior:
            fit = other
            reason += ", prior over the labels learned"

    def go_on(sampled: _Fit) -> _Fit:
        return _rounds(problem, sampled.parameters, passes.over_all, learn_prior=learn_prior, limit=MAX_ROUNDS)

    fit, notes = finish(passes, fit, go_on, problem.active, PRECISE)
    parameters = replace(fit.parameters, standard_error=fit.standard_error)
    return Estimate(parameters, "em", reason, (*found, *notes), request.dependent)


@dataclass(frozen=True)
class _Fit:
    parameters: GibbsParameters
    standard_error: FloatArray
    log_likelihood: float
    converged: bool


def _rounds(
    problem: Problem,
    parameters: GibbsParameters,
    run: Callable[[Callable[[Chunk], Sums]], Sums],
    *,
    learn_prior: bool,
    limit: int,
) -> _Fit:
    family, active = problem.family, problem.active
    grid, means = _grid(family.matrix)
    converged = False
    sums, error = Sums.zero(), np.full(len(active), np.inf)
    for _ in range(limit):
        current = parameters
        sums = run(lambda chunk, at=current: family.round(at, chunk))  # type: ignore[misc]
        prior = current.prior
        if learn_prior:
            prior = (sums["labels"] + 0.5) / (sums["labels"].sum() + 0.5 * len(prior))
        centre = current.weight[active].mean()
        weight = np.where(active, current.weight, centre)
        for source in np.flatnonzero(active):
            slope = means @ sums["mass"][source] - sums["spent"][source] - (grid - centre) / SPREAD**2
            weight[source] = np.clip(np.interp(0.0, -slope, grid), 0.0, MAX_WEIGHT)
        parameters = replace(current, weight=weight, prior=prior)
        error = _score_error(sums["outer"], active)
        # Steps far below the sampling error change no label; a flat likelihood can crawl for hundreds more.
        still = np.abs(weight - current.weight)[active] < np.maximum(1e-4, 0.002 * error[active])
        if still.all() and np.abs(prior - current.prior).max() < 1e-4:
            converged = True
            break
    return _Fit(parameters, error, float(sums["log_likelihood"]), converged)


def _chi_square_tail(value: float, freedom: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(freedom, max(value, 0.0)))


def _grid(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return weights and, for each, the mean cost given every truth, ``(grid, K)``."""
    spaced = np.linspace(-1.0, 1.0, 321)
    grid = MAX_WEIGHT * np.sign(spaced) * spaced**2
    return grid, np.stack([conditional(matrix, value)[2] for value in grid])


def _score_error(outer: FloatArray, active: BoolArray) -> FloatArray:
    information = outer + np.eye(len(outer)) / SPREAD**2
    variance = np.diag(np.linalg.pinv(information, hermitian=True))
    return np.where(active, np.sqrt(np.maximum(variance, 0.0)), np.inf)
