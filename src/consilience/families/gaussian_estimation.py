"""How the lines of sources of scores are learned. Everything is learned for a factor of variance one first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.exceptions import UnsupportedError
from consilience.families.base import Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.coincidences import coinciding_pairs
from consilience.families.findings import (
    SIGNIFICANCE,
    competing_groups,
    fell_back,
    no_signal,
    repeated_votes,
    unidentified,
)
from consilience.families.gaussian_dependence import (
    Learned,
    copies_note,
    dependent_note,
    exact_copies,
    learned_graph,
    sharing,
)
from consilience.families.gaussian_errors import with_errors
from consilience.families.gaussian_evidence import drawn, support_of_lines
from consilience.families.gaussian_fits import equal_line, labelled_lines, standard_lines
from consilience.families.gaussian_gauge import in_gauge, scatter_of_labels
from consilience.families.gaussian_likelihood import at_floor, likelihood
from consilience.families.gaussian_moments import pair_influence, score_moments
from consilience.families.gaussian_problem import Problem
from consilience.families.left_out import drawn_note
from consilience.families.pair_fits import PairFit, additive_fit, product_fit, robust_product_fit
from consilience.solvers.pairs import has_odd_cycle
from consilience.solvers.signal import no_signal_probability

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianFamily, GaussianParameters

__all__ = ["estimate_gaussian"]

#: Known labels from which on they may decide which of two groups of sources follows the truth, and the odds they need.
DECIDING, CLEAR = 3, 3.0


def estimate_gaussian(family: GaussianFamily, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
    """Learn offsets, slopes and noise by the method asked for."""
    if not request.prior_is("auto"):
        raise UnsupportedError("For scores the prior is mean= and variance= of the space. Leave prior at 'auto'.")
    problem = Problem(family, sums, score_moments(sums), request, passes)
    method = request.method
    if method == "auto":
        return _automatic(problem)
    if method == "majority":
        return Estimate(equal_line(family, problem.moments), "majority", "asked for")
    if method == "labelled":
        return labelled_lines(family, problem.moments, sums, request)
    if int(problem.active.sum()) < 3:
        return _fallback(problem, f"{int(problem.active.sum())} source(s) vote and vary, weights need 3", (), method)
    if method == "isotropic":
        return _isotropic(problem)
    if method == "em":
        standard, notes, how = likelihood(problem, gate=False)
        return _finished(problem, standard, "em", f"asked for; {how}", notes)
    fit = (_triplets if method == "triplets" else _robust)(problem)
    notes = unidentified(fit.identified | ~problem.active, problem.active, request)
    if not (fit.identified & problem.active).any():
        return _fallback(problem, "no source has two independent partners", notes, method)
    standard = standard_lines(problem.moments, fit.value * problem.scale, problem.active, request.dependent)
    errors = np.where(fit.identified, fit.standard_error * problem.scale, np.inf)
    return _finished(problem, standard, method, "asked for", notes, errors)


def _automatic(problem: Problem) -> Estimate:
    request, active = problem.request, problem.active
    count = int(active.sum())
    if count < 3:
        if "gold_both" in problem.sums and request.n_gold >= 3:
            return labelled_lines(problem.family, problem.moments, problem.sums, request)
        return _fallback(problem, f"{count} source(s) vote and vary, weights need 3", ())
    notes: tuple[Diagnostic, ...] = ()
    copies: BoolArray | None = None
    if request.learn:
        problem, copies, notes = _without_copies(problem)
        if copies is not None and not has_odd_cycle(problem.usable)[active].all():
            return _fallback(problem, "without copies fewer than 3 sources are left to compare", notes, copies=copies)
    left, right = np.nonzero(np.triu(problem.usable))
    error = np.sqrt(1.0 / np.maximum(problem.moments.count, 1.0))  # of a correlation that is zero
    chance = no_signal_probability((problem.correlation / error)[left, right])
    if chance > SIGNIFICANCE:
        if "gold_both" in problem.sums and request.n_gold >= 10:
            return labelled_lines(problem.family, problem.moments, problem.sums, request)
        reason = f"the sources agree no more than chance would have them (p = {chance:.2f})"
        return _fallback(problem, reason, (*notes, no_signal(request, reason)), copies=copies)
    if request.learn:
        learned = learned_graph(problem)
        if learned.graph.any():
            return _with_dependence(problem, learned, notes)
    standard, more, how = likelihood(problem, gate=True)
    return _finished(problem, standard, "em", how, (*notes, *more), careful=True)


def _without_copies(problem: Problem) -> tuple[Problem, BoolArray | None, tuple[Diagnostic, ...]]:
    """Return the problem in which sources that repeat each other's votes are dependent, and these, if any."""
    exact = exact_copies(problem)
    found = coinciding_pairs(problem.passes)
    near = np.zeros_like(exact) if found is None else found & problem.usable & ~exact
    notes = (*copies_note(exact, True, problem.request), *repeated_votes(near, problem.request))
    if not notes:
        return problem, None, ()
    return _with_pairs(problem, exact | near), exact | near, notes


def _with_dependence(problem: Problem, learned: Learned, notes: tuple[Diagnostic, ...]) -> Estimate:
    """Learn the lines with correlated noise on the pairs that were found, unless the votes cannot tell which."""
    request = problem.request
    graph = learned.graph
    standard, more, how = likelihood(_with_pairs(problem, graph), gate=True)
    if learned.groups is not None and learned.rival is not None:
        notes = (*notes, competing_groups(*learned.groups, request))
        if "gold_both" not in problem.sums or request.n_gold < DECIDING:
            reason = "two groups of sources compete, and the votes cannot tell which follows the truth"
            return _fallback(problem, reason, notes)
        other = likelihood(_with_pairs(problem, learned.rival), gate=True)
        odds = _odds_of_labels(problem, standard, other[0])
        if max(odds, 1.0 / odds) < CLEAR:
            reason = f"two groups of sources compete, and {request.n_gold} known labels do not tell which is right yet"
            return _fallback(problem, reason, notes)
        if odds < 1.0:
            graph, (standard, more, how) = learned.rival, other
        how = f"{how}, the known labels decide between two groups"
    problem = _with_pairs(problem, graph)
    how = f"{how}, with correlated noise of {int(np.triu(graph).sum())} pair(s)"
    return _finished(problem, standard, "em", how, (*notes, dependent_note(graph, request), *more), careful=True)


def _again(problem: Problem) -> GaussianParameters:
    """Return what the likelihood learns from a part of the items."""
    return likelihood(problem, gate=True)[0]


def _odds_of_labels(problem: Problem, one: GaussianParameters, other: GaussianParameters) -> float:
    """Return how much more probable the known labels are around their line on one factor than on the other."""
    first, second = (scatter_of_labels(fit, problem.sums, problem.passes) for fit in (one, other))
    if not (np.isfinite(first) and np.isfinite(second)):
        return 1.0
    tiny = 1e-12 * max(first, second, 1e-300)
    power = 0.5 * (problem.request.n_gold - 2)
    return float(np.exp(np.clip(power * np.log((second + tiny) / (first + tiny)), -500.0, 500.0)))


def _with_pairs(problem: Problem, graph: BoolArray) -> Problem:
    """Return the problem with more dependent pairs."""
    return replace(problem, request=replace(problem.request, dependent=problem.request.dependent | graph))


def _triplets(problem: Problem) -> PairFit:
    error = problem.correlation_error
    return product_fit(problem.correlation, error, _influence(problem, error), problem.usable, 1.0, 0.9975)


def _robust(problem: Problem) -> PairFit:
    error = problem.correlation_error
    return robust_product_fit(problem.correlation, error, _influence(problem, error), problem.usable, 1.0, 0.9975)


def _influence(problem: Problem, error: FloatArray) -> FloatArray:
    unit = np.outer(problem.scale, problem.scale)
    return pair_influence(problem.moments, error * unit, "covariance", problem.passes) / unit


def _isotropic(problem: Problem) -> Estimate:
    """Algorithm 4 on squared differences of the votes as they are: slope one, no offset, no prior."""
    moments, usable = problem.moments, problem.usable
    error = moments.squared_difference * np.sqrt(2.0 / np.maximum(moments.count, 1.0))
    influence = pair_influence(moments, error, "difference", problem.passes)
    fit = additive_fit(moments.squared_difference, moments.count, influence, usable)
    notes = unidentified(fit.identified | ~problem.active, problem.active, problem.request)
    if not (fit.identified & problem.active).any():
        return _fallback(problem, "no source has two independent partners", notes, "isotropic")
    typical = float(np.median(moments.squared_difference[usable]))
    cost = np.where(problem.active, np.maximum(fit.value, 0.02 * typical), typical)
    parameters = equal_line(problem.family, moments, cost, problem.active)
    error = np.where(problem.active & fit.identified, fit.standard_error, np.inf)
    parameters = replace(parameters, noise_error=error, cost_error=error)
    return Estimate(parameters, "isotropic", "asked for", notes)


def _finished(
    problem: Problem,
    standard: GaussianParameters,
    method: str,
    reason: str,
    notes: tuple[Diagnostic, ...],
    loading_error: FloatArray | None = None,
    *,
    careful: bool = False,
) -> Estimate:
    """Put standard errors and the gauge to what was learned; `careful` also asks whether the votes support it."""
    standard = with_errors(standard, problem.moments, problem.active, problem.passes, loading_error)
    support = support_of_lines(problem, standard, _again) if careful else None
    if support is not None and support.share < 1.0:
        # The normal law says how far labels are to be drawn to their mean. Where votes contradict it, plain means are
        # what is left of it.
        known = problem.family.mean is not None and problem.family.variance is not None
        doubtful = any(note.code == "heavy-tails" for note in notes) and not known
        if doubtful and support.share == 0.0:
            equal = f"own lines predict a source left out no better than the plain mean does ({support.gain[-1]:+.1%})"
            return _fallback(problem, equal, (*notes, drawn_note(support)))
        shrink = support.share if doubtful else 1.0
        standard = drawn(standard, support.share, np.diag(problem.moments.count), shrink)
        notes = (*notes, drawn_note(support))
        reason = f"{reason}, moved {1.0 - support.share:.0%} of the way to equal lines"
    parameters, gauge = in_gauge(
        problem.family, problem.moments, standard, problem.sums, problem.request, problem.passes
    )
    found = (*notes, *gauge, *_heywood(problem, standard), *_reversed(problem, standard))
    if not any(note.code == "copied-source" for note in notes):
        found = (*found, *copies_note(exact_copies(problem), False, problem.request))
    return Estimate(parameters, method, reason, found, problem.request.dependent)


def _heywood(problem: Problem, standard: GaussianParameters) -> tuple[Diagnostic, ...]:
    names = problem.request.named(at_floor(problem, standard))
    if not names:
        return ()
    message = (
        f"{', '.join(names)}: the agreement of the others with it leaves no room for noise of its own (a Heywood "
        "case), so its noise was set to a small share of its variance. Copies, or few items, do this; "
        "pass dependencies= or more votes."
    )
    return (Diagnostic("heywood", "warning", names, message),)


def _reversed(problem: Problem, standard: GaussianParameters) -> tuple[Diagnostic, ...]:
    clear = standard.slope < -3.0 * np.where(np.isfinite(standard.slope_error), standard.slope_error, np.inf)
    names = problem.request.named(problem.active & clear)
    if not names:
        return ()
    message = (
        f"{', '.join(names)}: votes fall where those of the others rise; they are used upside down. Check whether the "
        "scale is reversed."
    )
    return (Diagnostic("adversarial-source", "warning", names, message),)


def _fallback(
    problem: Problem,
    reason: str,
    notes: tuple[Diagnostic, ...],
    method: str = "majority",
    copies: BoolArray | None = None,
) -> Estimate:
    parameters = equal_line(problem.family, problem.moments)
    if copies is not None:
        parameters = sharing(parameters, copies)
    elif not any(note.code == "copied-source" for note in notes):
        notes = (*notes, *copies_note(exact_copies(problem), False, problem.request))
    reason_of = reason if method == "majority" else f"equal weights, as {reason}"
    return Estimate(parameters, method, reason_of, (*notes, fell_back(reason)), problem.request.dependent)
