"""Lines of sources of scores by maximum likelihood: on the covariance where nobody abstains, item by item otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.exceptions import UnsupportedError
from consilience.families.base import Diagnostic, Request
from consilience.families.findings import not_converged
from consilience.families.gaussian_fits import beside_labels, noise_around, standard_lines, without_labels
from consilience.families.gaussian_moments import chunk_with_labels, gold_moments
from consilience.families.gaussian_problem import Problem
from consilience.families.gaussian_rounds import RoundsFit, count_tails, maximise, tail_share, thinned
from consilience.solvers.factor import NOISE_FLOOR, equal_slopes, free_slopes, prefers_free_slopes
from consilience.solvers.labelled_factor import Block, slopes_with_labels
from consilience.solvers.noise_graphs import proper
from consilience.solvers.triplets import recover_signs, triplet_loadings

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianParameters

__all__ = ["at_floor", "likelihood"]

#: Twice the log likelihood that each further slope must gain where votes are missing. The BIC's log n counts items,
#: of which a source sees few. With this, equal slopes pass for different ones (chi-squared of m - 1 degrees above
#: 3 (m - 1)) in 5% of cases with 3 sources, 1% with 6 and 0.4% with 8.
SLOPE_PENALTY = 3.0
#: Known labels from which on they take part in the likelihood: fewer leave their own noise unknown.
MIN_LABELS = 10
#: Correlations below so many standard errors do not decide on which side of the others a source stands.
CLEAR = 2.5
#: Degrees of freedom of heavy-tailed noise: few enough for outliers of any size to lose their say, and close to
#: Gaussian in the middle. Its scale may be far below the variance of the votes, which outliers make up.
HEAVY, STUDENT_FLOOR = 4.0, 0.1


def likelihood(problem: Problem, *, gate: bool) -> tuple[GaussianParameters, tuple[Diagnostic, ...], str]:
    """Maximise the likelihood: on the covariance where nobody abstains, item by item otherwise.

    Known labels take part in it, as one more measurement of what the sources measure.

    Parameters
    ----------
    gate
        Whether equal slopes and heavy tails are considered; else every source has a slope, and noise is Gaussian.
    """
    request = problem.request
    notes: list[Diagnostic] = []
    if problem.moments.complete or not problem.can_run:
        standard, converged, how = _on_covariance(problem, gate)
    else:
        standard, converged, how = _item_by_item(problem, gate)
    if problem.can_run and gate:
        heavy, share = _heavy_tails(problem, standard)
        student, settled = _student(problem, standard) if heavy else (standard, converged)
        # Votes that mostly repeat one value look heavy-tailed too, but their typical noise is then close to none.
        if heavy and not at_floor(problem, student).any():
            standard, converged = student, settled
            notes.append(_tails_note(share, request))
            how = f"Student-t noise with {HEAVY:g} degrees of freedom, as tails are heavy"
        elif heavy:
            notes.append(_repeats_note(share, request))
    by_items = "over the items" in how or np.isfinite(standard.degrees)
    if by_items and problem.passes is not None and problem.passes.n_sampled < problem.passes.n_items:
        used = f"a seeded sample of {problem.passes.n_sampled:,} of {problem.passes.n_items:,} items"
        notes.append(Diagnostic("polished-on-sample", "info", (), f"The likelihood was maximised on {used}."))
    if not converged:
        notes.append(not_converged())
    return standard, tuple(notes), how


def _on_covariance(problem: Problem, gate: bool) -> tuple[GaussianParameters, bool, str]:
    moments, active = problem.moments, problem.active
    chosen = np.flatnonzero(active)
    inner = np.ix_(chosen, chosen)
    dependent = problem.dependent
    covariance = np.where(moments.count >= 2, moments.covariance, 0.0)[inner]
    np.fill_diagonal(covariance, moments.variance[chosen])
    if not moments.complete:
        unit = np.outer(problem.scale[chosen], problem.scale[chosen])
        covariance = proper(covariance / unit) * unit
    free = free_slopes(covariance, _start(problem)[chosen], dependent[inner])
    fit, how = free, "maximum likelihood on the covariance of the votes, a slope for each source"
    equal = False
    if gate and not dependent.any():
        alike = equal_slopes(covariance)
        equal = not prefers_free_slopes(free, alike, float(np.diag(moments.count).max()))
        if equal:
            fit, how = alike, "maximum likelihood on the covariance of the votes, one slope for all (BIC)"
    slope, variances, converged = fit.loading, fit.noise, fit.converged
    blocks = _blocks(problem, chosen)
    if blocks is not None:
        with_labels = slopes_with_labels(*blocks, slope, variances, dependent[inner], equal=equal)
        slope, variances, converged = with_labels.loading, with_labels.noise, with_labels.converged
        how = f"{how}, with {problem.request.n_gold:,} known labels"
    loading = np.zeros(len(active))
    loading[chosen] = slope
    noise = noise_around(moments, loading, active)
    noise[inner] = variances
    return _oriented(standard_lines(moments, loading, active, dependent, noise), problem), converged, how


def _blocks(problem: Problem, chosen: IntArray) -> tuple[Block, Block] | None:
    """Return the sums over items without and with a known label, where there are enough of these and no gaps."""
    sums = problem.sums
    if not problem.moments.complete or problem.request.n_gold < MIN_LABELS:
        return None
    with_label = np.append(chosen, len(problem.active))
    outer, inner = np.ix_(with_label, with_label), np.ix_(chosen, chosen)
    count = float(sums["gold_both"][-1, -1])
    if not (sums["gold_both"][outer] == count).all() or not gold_moments(sums).varied[-1]:
        return None
    labelled = Block(count, np.diag(sums["gold_total"])[with_label], sums["gold_product"][outer])
    everything = float(np.diag(problem.moments.count).max())
    plain = Block(
        everything - count,
        np.diag(sums["total"])[chosen] - labelled.total[:-1],
        sums["product"][inner] - labelled.product[:-1, :-1],
    )
    return plain, labelled


def _item_by_item(problem: Problem, gate: bool) -> tuple[GaussianParameters, bool, str]:
    moments, active, dependent = problem.moments, problem.active, problem.dependent
    start = _start(problem)
    first = standard_lines(moments, start, active, dependent)
    free = _maximised(problem, first)
    how = "maximum likelihood over the items, as some votes are missing, a slope for each source"
    if _with_labels(problem):
        how = f"{how}, with {problem.request.n_gold:,} known labels"
    if gate and not dependent.any():
        level = max(float(start[active].mean()), 0.1 * float(problem.scale[active].mean()))
        begin = standard_lines(moments, np.where(active, level, 0.0), active, dependent)
        equal = _maximised(problem, begin, equal=True)
        gain = 2.0 * (free.log_likelihood - equal.log_likelihood)
        if gain <= SLOPE_PENALTY * (int(active.sum()) - 1):
            return equal.parameters, equal.converged, how.replace("a slope for each source", "one slope for all")
    return _oriented(free.parameters, problem), free.converged, how


def _student(problem: Problem, standard: GaussianParameters) -> tuple[GaussianParameters, bool]:
    heavy = replace(standard, degrees=HEAVY, noise=0.5 * standard.noise)
    fit = _maximised(problem, heavy, floor=STUDENT_FLOOR)
    return _oriented(fit.parameters, problem), fit.converged


def _maximised(problem: Problem, start: GaussianParameters, *, equal: bool = False, floor: float = 1.0) -> RoundsFit:
    """Run EM over the items, with known labels as one more source where there are enough of them."""
    passes = problem.passes
    if passes is None:
        raise UnsupportedError("method='em' needs votes where sources abstain.")
    variance, active = floor * problem.moments.variance, problem.active
    if not _with_labels(problem):
        return maximise(start, variance, active, passes.over_sample, equal=equal)
    known = gold_moments(problem.sums)
    own = float(known.variance[-1])
    begin = beside_labels(start, float(known.mean[-1]), own)
    apart = np.arange(len(active) + 1) == len(active)
    fit = maximise(
        begin,
        np.append(variance, floor * own),
        np.append(active, True),
        lambda function: passes.over_sample(lambda chunk: function(chunk_with_labels(chunk))),
        equal=equal,
        apart=apart,
    )
    return replace(fit, parameters=without_labels(fit.parameters))


def _with_labels(problem: Problem) -> bool:
    """Return whether the sampled items hold enough known labels to learn from."""
    passes, request = problem.passes, problem.request
    if passes is None or request.n_gold < MIN_LABELS or not gold_moments(problem.sums).varied[-1]:
        return False
    return request.n_gold * passes.n_sampled / max(passes.n_items, 1) >= MIN_LABELS


def _heavy_tails(problem: Problem, standard: GaussianParameters) -> tuple[bool, FloatArray]:
    """Return whether some source has more residuals beyond 3 robust deviations than Gaussian noise would."""
    passes = problem.passes
    if passes is None:
        return False, np.zeros(len(problem.active))
    look = thinned(lambda chunk: count_tails(standard, chunk), passes.n_sampled)
    share, count = tail_share(passes.over_sample(look)["tails"])
    # The share of Gaussian residuals beyond 3 deviations, three of its standard errors, and a little that is not worth
    # acting on. With under 30 residuals a single one would decide.
    limit = 0.0027 + 3.0 * np.sqrt(0.0027 / np.maximum(count, 1.0)) + 0.002
    heavy = problem.active & (count >= 30) & (share > limit)
    return bool(heavy.any()), np.where(heavy, share, 0.0)


def _start(problem: Problem) -> FloatArray:
    """Return loadings from the median of all triplets, refined by least squares over all pairs."""
    found = triplet_loadings(
        problem.correlation, problem.usable, problem.correlation_error, combine="least_squares"
    ).value
    if not problem.moments.complete:
        # Sources that share few items are linked by a few noisy correlations, which must not turn them upside down.
        clear = problem.usable & (np.abs(problem.correlation) > CLEAR * problem.correlation_error)
        found = np.abs(found) * recover_signs(np.where(clear, problem.correlation, 0.0), clear, np.abs(found))
    weak = np.where(np.abs(found) < 0.05, np.where(found < 0, -0.05, 0.05), found)
    return np.where(problem.active, np.clip(weak, -0.97, 0.97) * problem.scale, 0.0)


def at_floor(problem: Problem, standard: GaussianParameters) -> BoolArray:
    """Return the sources whose noise is held up by its floor."""
    floor = 1.02 * NOISE_FLOOR * problem.moments.variance * (STUDENT_FLOOR if np.isfinite(standard.degrees) else 1.0)
    return problem.active & (standard.noise_variance <= floor)


def _tails_note(share: FloatArray, request: Request) -> Diagnostic:
    names = request.named(share > 0)
    message = (
        f"{', '.join(names)}: up to {share.max():.1%} of the votes lie beyond 3 robust standard deviations (0.3% if "
        "the noise were Gaussian). Noise is taken as Student-t, so that outliers count little."
    )
    return Diagnostic("heavy-tails", "info", names, message)


def _repeats_note(share: FloatArray, request: Request) -> Diagnostic:
    names = request.named(share > 0)
    message = (
        f"{', '.join(names)}: up to {share.max():.1%} of the votes lie beyond 3 robust standard deviations, as most of "
        "them repeat one value. Noise is taken as Gaussian all the same; intervals are only rough."
    )
    return Diagnostic("heavy-tails", "info", names, message)


def _oriented(parameters: GaussianParameters, problem: Problem) -> GaussianParameters:
    if float((parameters.slope / problem.scale)[problem.active].sum()) >= 0:
        return parameters
    return replace(parameters, slope=-parameters.slope)
