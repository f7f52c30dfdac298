"""How the lines of sources of scores are learned. Everything is learned for a factor of variance one first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.exceptions import UnsupportedError
from consilience.families.base import Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.findings import (
    SIGNIFICANCE,
    fell_back,
    no_signal,
    unidentified,
)
from consilience.families.gaussian_errors import with_errors
from consilience.families.gaussian_fits import equal_line, labelled_lines, standard_lines
from consilience.families.gaussian_gauge import in_gauge
from consilience.families.gaussian_likelihood import at_floor, likelihood
from consilience.families.gaussian_moments import pair_influence, score_moments
from consilience.families.gaussian_problem import Problem
from consilience.families.pair_fits import PairFit, additive_fit, product_fit, robust_product_fit
from consilience.solvers.signal import no_signal_probability

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianFamily, GaussianParameters

__all__ = ["estimate_gaussian"]

#: Residuals beyond `FLAG` standard errors of a robust fit flag a pair as dependent, from 5 up to `MOST` sources: among
#: the 1770 pairs of 60 sources chance does that once in 2000 fits. `SUSPICION` saves time only: the robust fit is made
#: if a residual of the likelihood exceeds it, which chance does in one of 2000 pairs.
FLAG, SUSPICION, MOST = 5.0, 3.5, 60


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
    left, right = np.nonzero(np.triu(problem.usable))
    error = np.sqrt(1.0 / np.maximum(problem.moments.count, 1.0))  # of a correlation that is zero
    chance = no_signal_probability((problem.correlation / error)[left, right])
    if chance > SIGNIFICANCE:
        if "gold_both" in problem.sums and request.n_gold >= 10:
            return labelled_lines(problem.family, problem.moments, problem.sums, request)
        reason = f"the sources agree no more than chance would have them (p = {chance:.2f})"
        return _fallback(problem, reason, (no_signal(request, reason),))
    standard, notes, how = likelihood(problem, gate=True)
    flagged = _flagged(problem, standard) if request.learn else np.zeros_like(problem.usable)
    if flagged.any():
        left, right = np.nonzero(np.triu(flagged))
        notes = (_flag_note(left, right, request), *_copies(problem))
        problem = replace(problem, request=replace(request, dependent=request.dependent | flagged))
        standard, more, how = likelihood(problem, gate=True)
        notes, how = (*notes, *more), f"{how}, with correlated noise of {len(left)} pair(s)"
    return _finished(problem, standard, "em", how, notes)


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
) -> Estimate:
    standard = with_errors(standard, problem.moments, problem.active, problem.passes, loading_error)
    parameters, gauge = in_gauge(
        problem.family, problem.moments, standard, problem.sums, problem.request, problem.passes
    )
    found = (*notes, *gauge, *_heywood(problem, standard), *_reversed(problem, standard), *_copies(problem))
    return Estimate(parameters, method, reason, found, problem.request.dependent)


def _flagged(problem: Problem, standard: GaussianParameters) -> BoolArray:
    """Return pairs that agree more than their lines explain, by a fit that a few such pairs cannot mislead."""
    nobody = np.zeros_like(problem.usable)
    if not 5 <= int(problem.active.sum()) <= MOST or np.isfinite(standard.degrees):
        return nobody
    unit = np.outer(problem.scale, problem.scale)
    residual = (problem.moments.covariance - np.outer(standard.slope, standard.slope)) / unit
    if not ((np.abs(residual) > SUSPICION * problem.correlation_error) & problem.usable).any():
        return nobody
    fit = _robust(problem)
    flagged: BoolArray = (fit.residual * np.sign(np.outer(fit.value, fit.value)) > FLAG) & problem.usable
    partners = (problem.usable & ~flagged).sum(axis=1)
    return flagged if (partners[problem.active] >= 2).all() else nobody


def _flag_note(left: IntArray, right: IntArray, request: Request) -> Diagnostic:
    names = [f"{request.sources[a]} and {request.sources[b]}" for a, b in zip(left, right, strict=True)]
    message = (
        f"{'; '.join(names[:5])}{' ...' if len(names) > 5 else ''} agree in a way their lines do not explain; their "
        "noise is taken as correlated, so that they do not count twice. Pass dependencies= to say which pairs are."
    )
    return Diagnostic("dependent-pair", "warning", request.named(np.unique(np.concatenate([left, right]))), message)


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


def _copies(problem: Problem) -> tuple[Diagnostic, ...]:
    moments = problem.moments
    same = (moments.squared_difference <= 1e-12 * np.minimum.outer(moments.variance, moments.variance)) & problem.usable
    pairs = np.argwhere(np.triu(same & (moments.count >= 30), 1))
    if len(pairs) == 0:
        return ()
    named = [f"{problem.request.sources[a]} and {problem.request.sources[b]}" for a, b in pairs[:8]]
    message = (
        f"{'; '.join(named)}{' ...' if len(pairs) > 8 else ''}: the same vote on every item they share. If one copies "
        "the other, pass dependencies= with these pairs, so that they count as one."
    )
    return (Diagnostic("copied-source", "warning", problem.request.named(np.unique(pairs)), message),)


def _fallback(problem: Problem, reason: str, notes: tuple[Diagnostic, ...], method: str = "majority") -> Estimate:
    parameters = equal_line(problem.family, problem.moments)
    found = (*notes, fell_back(reason), *_copies(problem))
    return Estimate(parameters, method, reason if method == "majority" else f"equal weights, as {reason}", found)
