"""Lines of sources of scores by maximum likelihood: on the covariance where nobody abstains, item by item otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.exceptions import UnsupportedError
from consilience.families.base import Diagnostic, Request
from consilience.families.findings import not_converged
from consilience.families.gaussian_fits import noise_around, standard_lines
from consilience.families.gaussian_problem import Problem
from consilience.families.gaussian_rounds import count_tails, maximise, tail_share, thinned
from consilience.solvers.factor import NOISE_FLOOR, equal_slopes, free_slopes, prefers_free_slopes
from consilience.solvers.triplets import triplet_loadings

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianParameters

__all__ = ["at_floor", "likelihood"]

#: Twice the log likelihood that each further slope must gain where votes are missing. The BIC's log n asks for more
#: than sparse votes can show; this lets equal slopes pass for different ones in under 1% of cases.
SLOPE_PENALTY = 3.0
#: Degrees of freedom of heavy-tailed noise, whose scale may be far below the variance of the votes.
HEAVY, STUDENT_FLOOR = 4.0, 0.1


def likelihood(problem: Problem, *, gate: bool) -> tuple[GaussianParameters, tuple[Diagnostic, ...], str]:
    """Maximise the likelihood: on the covariance where nobody abstains, item by item otherwise."""
    moments, active, request = problem.moments, problem.active, problem.request
    chosen = np.flatnonzero(active)
    start = _start(problem)
    dependent = request.dependent & np.outer(active, active)
    inner = np.ix_(chosen, chosen)
    notes: list[Diagnostic] = []
    items = float(np.diag(moments.count).max())
    if moments.complete or dependent.any() or not problem.can_run:
        covariance = np.where(moments.count >= 2, moments.covariance, 0.0)[inner]
        np.fill_diagonal(covariance, moments.variance[chosen])
        if not moments.complete:
            covariance = _proper(covariance)
        free = free_slopes(covariance, start[chosen], dependent[inner])
        fit, how = free, "maximum likelihood on the covariance of the votes, a slope for each source"
        if gate and not dependent.any():
            equal = equal_slopes(covariance)
            if not prefers_free_slopes(free, equal, items):
                fit, how = equal, "maximum likelihood on the covariance of the votes, one slope for all (BIC)"
        loading = np.zeros(len(active))
        loading[chosen] = fit.loading
        noise = noise_around(moments, loading, active)
        noise[inner] = fit.noise
        standard = standard_lines(moments, loading, active, dependent, noise)
        converged = fit.converged
    else:
        standard, converged, how = _item_by_item(problem, start, gate)
    if problem.can_run and not dependent.any() and gate:
        heavy, share = _heavy_tails(problem, standard)
        student, settled = _student(problem, standard) if heavy else (standard, converged)
        # Votes that mostly repeat one value look heavy-tailed too, but their typical noise is then close to none.
        if heavy and not at_floor(problem, student).any():
            standard, converged = student, settled
            notes.append(_tails_note(share, request))
            how = f"Student-t noise with {HEAVY:g} degrees of freedom, as tails are heavy"
    by_items = "over the items" in how or np.isfinite(standard.degrees)
    if by_items and problem.passes is not None and problem.passes.n_sampled < problem.passes.n_items:
        used = f"a seeded sample of {problem.passes.n_sampled:,} of {problem.passes.n_items:,} items"
        notes.append(Diagnostic("polished-on-sample", "info", (), f"The likelihood was maximised on {used}."))
    if not converged:
        notes.append(not_converged())
    return standard, tuple(notes), how


def _item_by_item(problem: Problem, start: FloatArray, gate: bool) -> tuple[GaussianParameters, bool, str]:
    passes, moments, active = problem.passes, problem.moments, problem.active
    if passes is None:
        raise UnsupportedError("method='em' needs votes where sources abstain.")
    first = standard_lines(moments, start, active, np.zeros_like(problem.request.dependent))
    free = maximise(first, moments.variance, active, passes.over_sample)
    how = "maximum likelihood over the items, as some votes are missing, a slope for each source"
    if gate:
        level = max(float(start[active].mean()), 0.1 * float(problem.scale[active].mean()))
        begin = standard_lines(moments, np.where(active, level, 0.0), active, first.dependent)
        equal = maximise(begin, moments.variance, active, passes.over_sample, equal=True)
        gain = 2.0 * (free.log_likelihood - equal.log_likelihood)
        if gain <= SLOPE_PENALTY * (int(active.sum()) - 1):
            return equal.parameters, equal.converged, how.replace("a slope for each source", "one slope for all")
    return _oriented(free.parameters, problem), free.converged, how


def _student(problem: Problem, standard: GaussianParameters) -> tuple[GaussianParameters, bool]:
    passes = problem.passes
    if passes is None:
        return standard, True
    heavy = replace(standard, degrees=HEAVY, noise=0.5 * standard.noise)
    fit = maximise(heavy, STUDENT_FLOOR * problem.moments.variance, problem.active, passes.over_sample)
    return _oriented(fit.parameters, problem), fit.converged


def _heavy_tails(problem: Problem, standard: GaussianParameters) -> tuple[bool, FloatArray]:
    """Return whether some source has more residuals beyond 3 robust deviations than Gaussian noise would."""
    passes = problem.passes
    if passes is None:
        return False, np.zeros(len(problem.active))
    look = thinned(lambda chunk: count_tails(standard, chunk), passes.n_sampled)
    share, count = tail_share(passes.over_sample(look)["tails"])
    limit = 0.0027 + 3.0 * np.sqrt(0.0027 / np.maximum(count, 1.0)) + 0.002
    heavy = problem.active & (count >= 30) & (share > limit)
    return bool(heavy.any()), np.where(heavy, share, 0.0)


def _start(problem: Problem) -> FloatArray:
    """Return loadings from the median of all triplets, refined by least squares over all pairs."""
    found = triplet_loadings(
        problem.correlation, problem.usable, problem.correlation_error, combine="least_squares"
    ).value
    weak = np.where(np.abs(found) < 0.05, np.where(found < 0, -0.05, 0.05), found)
    return np.where(problem.active, np.clip(weak, -0.97, 0.97) * problem.scale, 0.0)


def at_floor(problem: Problem, standard: GaussianParameters) -> BoolArray:
    floor = 1.02 * NOISE_FLOOR * problem.moments.variance * (STUDENT_FLOOR if np.isfinite(standard.degrees) else 1.0)
    return problem.active & (standard.noise_variance <= floor)


def _tails_note(share: FloatArray, request: Request) -> Diagnostic:
    names = request.named(share > 0)
    message = (
        f"{', '.join(names)}: up to {share.max():.1%} of the votes lie beyond 3 robust standard deviations (0.3% if "
        "the noise were Gaussian). Noise is taken as Student-t, so that outliers count little."
    )
    return Diagnostic("heavy-tails", "info", names, message)


def _oriented(parameters: GaussianParameters, problem: Problem) -> GaussianParameters:
    if float((parameters.slope / problem.scale)[problem.active].sum()) >= 0:
        return parameters
    return replace(parameters, slope=-parameters.slope)


def _proper(covariance: FloatArray) -> FloatArray:
    """Return the nearest covariance whose correlations have no negative eigenvalue."""
    scale = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    mended = (vectors * np.maximum(values, 1e-3)) @ vectors.T
    unit = scale / np.sqrt(np.diag(mended))
    result: FloatArray = mended * np.outer(unit, unit)
    return result
