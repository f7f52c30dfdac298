"""How the errors of sources of vectors are learned."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.exceptions import UnsupportedError
from consilience.families.base import Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.coincidences import coinciding_pairs
from consilience.families.findings import (
    SIGNIFICANCE,
    dependent_pairs,
    fell_back,
    no_signal,
    not_converged,
    repeated_votes,
)
from consilience.families.findings import unidentified as unidentified_note
from consilience.families.left_out import drawn_note
from consilience.families.pair_fits import additive_fit
from consilience.families.part_passes import PartPasses
from consilience.families.vector_errors import with_errors
from consilience.families.vector_evidence import drawn, support_of_sources
from consilience.families.vector_fits import equal_sources, from_matrices, labelled_sources, moment_matrices, truth_law
from consilience.families.vector_gauge import in_gauge, start_offsets
from consilience.families.vector_moments import pair_influence, vector_moments
from consilience.families.vector_problem import Problem
from consilience.families.vector_rounds import RoundsFit, maximise, pull_of
from consilience.families.vector_tables import run_over
from consilience.solvers.covariances import STRUCTURES, free_numbers
from consilience.solvers.pairs import components, has_odd_cycle
from consilience.solvers.readings import largest_group
from consilience.solvers.signal import no_signal_probability

if TYPE_CHECKING:
    from consilience.families.vector import VectorFamily, VectorParameters

__all__ = ["estimate_vectors"]

#: Votes per coordinate that a source needs (in the median) before it may have a full covariance, and all together
#: before they may have a common one.
PER_COORDINATE = 10
#: Covariances beyond this many standard errors above the median of all pairs make a pair dependent, from 5 sources on.
FLAG = 5.0
#: Correlation of the noise of copies, where nothing else is known about the sources.
SHARED = 0.95
SHAPES = {
    "full": "a full covariance",
    "common": "a size of one common covariance",
    "diagonal": "a variance per coordinate",
    "isotropic": "one variance",
}
REMEDY = "their noise is taken as correlated, so that they do not count twice"


def estimate_vectors(family: VectorFamily, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
    """Learn offsets and covariances by the method asked for."""
    if not request.prior_is("auto"):
        raise UnsupportedError("For vectors the prior is mean= and covariance= of the space. Leave prior at 'auto'.")
    problem = Problem(family, sums, vector_moments(sums), request, passes)
    method = request.method
    if method == "majority":
        return Estimate(equal_sources(family, problem.moments, problem.usable), "majority", "asked for")
    if method == "labelled":
        return labelled_sources(family, problem.moments, sums, request, problem.moments.varied)
    count = int(problem.active.sum())
    gold = "gold_both" in sums and request.n_gold >= 3
    if count < 3:
        if method == "auto" and gold:
            return labelled_sources(family, problem.moments, sums, request, problem.moments.varied)
        if not (method == "em" and gold):
            return _fallback(problem, f"{count} source(s) vote and vary, weights need 3", (), method)
    if method == "auto":
        return _automatic(problem)
    if method == "isotropic":
        return _isotropic(problem)
    if method == "em":
        parameters, notes, how = _likelihood(problem, choose=False)
        return _finished(problem, parameters, "em", f"asked for; {how}", notes)
    return _from_moments(problem, method)


def _automatic(problem: Problem) -> Estimate:
    request = problem.request
    left, right = np.nonzero(np.triu(problem.usable))
    own = np.einsum("ade,bed->ab", problem.moments.own, problem.moments.own, optimize=True)
    error = np.sqrt(np.maximum(own, 1e-300) / np.maximum(problem.moments.count, 1.0))  # if nothing is shared
    chance = no_signal_probability((problem.moments.shared_trace / error)[left, right])
    if chance > SIGNIFICANCE:
        if "gold_both" in problem.sums and request.n_gold >= 10:
            return labelled_sources(problem.family, problem.moments, problem.sums, request, problem.moments.varied)
        reason = f"the sources agree no more than chance would have them (p = {chance:.2f})"
        return _fallback(problem, reason, (no_signal(request, reason),), "auto")
    notes: tuple[Diagnostic, ...] = ()
    copied = coinciding_pairs(problem.passes) if request.learn else None
    if copied is not None and (copied := copied & problem.usable).any():
        notes = repeated_votes(copied, request)
        problem = replace(problem, request=replace(request, dependent=request.dependent | copied))
        if not has_odd_cycle(problem.usable)[problem.active].all():
            return _fallback(problem, "without copies fewer than 3 sources are left to compare", notes, "auto")
    flagged = _flagged(problem) if request.learn else np.zeros_like(problem.usable)
    if flagged.any():
        left, right = np.nonzero(np.triu(flagged))
        notes = (*notes, dependent_pairs(left, right, request, REMEDY))
        problem = replace(problem, request=replace(problem.request, dependent=problem.request.dependent | flagged))
    if run_over(problem.moments, problem.sums, problem.passes) is None:
        found = _from_moments(problem, "moments")
        return replace(found, reason="votes are missing and not at hand", diagnostics=(*notes, *found.diagnostics))
    parameters, more, how = _likelihood(problem, choose=True)
    shared = int(np.triu(problem.request.dependent & ~request.dependent).sum())
    if shared:
        how = f"{how}, with correlated noise of {shared} pair(s)"
    return _finished(problem, parameters, "em", how, (*notes, *more), careful=True)


def _again(problem: Problem, part: PartPasses) -> VectorParameters:
    """Return what the likelihood learns from a part of the items."""
    sums = part.over_all(problem.family.statistics)
    smaller = replace(problem, sums=sums, moments=vector_moments(sums), passes=part)
    return _likelihood(smaller, choose=True)[0]


def _likelihood(problem: Problem, *, choose: bool) -> tuple[VectorParameters, tuple[Diagnostic, ...], str]:
    """Maximise the likelihood: offsets where the BIC pays for them, then the structure of the noise."""
    run = run_over(problem.moments, problem.sums, problem.passes)
    if run is None:
        raise UnsupportedError(
            "method='em' goes through the votes again where some are missing, and moments alone do not suffice. "
            "Call fit(votes), or use method='moments'."
        )
    d = problem.family.d
    allowed = _allowed(problem, choose)
    start = problem.start()
    first = allowed[-1]
    fits = {first: maximise(start, problem.plan(first, False), run)}
    offsets = False
    if problem.typical_votes >= 3:
        shifted = start_offsets(problem.moments, problem.sums, fits[first].parameters, problem.active)
        free = maximise(shifted, problem.plan(first, True), run)
        if _offset_gain(problem, free, fits[first]) > 0:
            offsets, fits = True, {first: free}
    if choose:
        for structure in allowed[:-1]:
            begin = start_offsets(problem.moments, problem.sums, start, problem.active) if offsets else start
            fits[structure] = maximise(begin, problem.plan(structure, offsets), run)
    sources = int(problem.active.sum())

    def criterion(structure: str) -> float:
        """Akaike's, in which numbers drawn to the common shape count by the share that is their own."""
        common, own = free_numbers(structure, d)
        pull = pull_of(structure, d) if own > 1 else 0.0
        numbers = common + sources * own * problem.typical_votes / (problem.typical_votes + pull)
        return 2.0 * numbers - 2.0 * fits[structure].log_likelihood

    best = min(fits, key=criterion)
    fit = fits[best]
    notes: list[Diagnostic] = []
    how = f"maximum likelihood, {SHAPES[best]} for each source{' and an offset (BIC)' if offsets else ''}"
    parameters = fit.parameters
    if offsets:
        parameters, note = in_gauge(problem.family, parameters, problem.active, problem.votes, problem.request)
        notes += note
    passes = problem.passes
    by_items = passes is not None and run == passes.over_sample
    if by_items and passes is not None and passes.n_sampled < passes.n_items:
        used = f"a seeded sample of {passes.n_sampled:,} of {passes.n_items:,} items"
        notes.append(Diagnostic("polished-on-sample", "info", (), f"The likelihood was maximised on {used}."))
    if not fit.converged:
        notes.append(not_converged())
    return parameters, tuple(notes), how


def _allowed(problem: Problem, choose: bool) -> tuple[str, ...]:
    """Return the structures that there are votes enough for, from the simplest on."""
    least = PER_COORDINATE * problem.family.d
    if not problem.moments.full:
        return STRUCTURES[:2]
    if problem.typical_votes >= least or (not choose and problem.typical_votes >= problem.family.d):
        return STRUCTURES
    return STRUCTURES[:3] if float(problem.votes[problem.active].sum()) >= least else STRUCTURES[:2]


def _offset_gain(problem: Problem, free: RoundsFit, none: RoundsFit) -> float:
    """Return by how much an offset for each source betters the Bayesian information criterion."""
    located = problem.request.n_gold > 0 or problem.family.mean is not None
    numbers = (int(problem.active.sum()) - (0 if located else 1)) * problem.family.d
    penalty = numbers * float(np.log(max(problem.typical_votes, 2.0)))
    return 2.0 * (free.log_likelihood - none.log_likelihood) - penalty


def _isotropic(problem: Problem) -> Estimate:
    """Algorithm 4 on squared distances of the votes as they are: no offset, no prior, equal in all directions."""
    moments, usable = problem.moments, problem.usable
    fit = additive_fit(moments.squared_difference, moments.count, _influence(problem, "difference"), usable)
    notes = unidentified_note(fit.identified | ~problem.active, problem.active, problem.request)
    if not (fit.identified & problem.active).any():
        return _fallback(problem, "no source has two independent partners", notes, "isotropic")
    typical = float(np.median(moments.squared_difference[usable]))
    cost = np.where(problem.active, np.maximum(fit.value, 0.02 * typical), typical)
    parameters = equal_sources(problem.family, moments, usable, cost)
    silent = problem.votes == 0
    error = np.where(problem.active & fit.identified, fit.standard_error, np.inf)
    parameters = replace(parameters, used=problem.active | silent, cost_error=error)
    parameters = _coupled(problem, parameters)
    return Estimate(parameters, "isotropic", "asked for", (*notes, *_general(problem)))


def _coupled(problem: Problem, parameters: VectorParameters) -> VectorParameters:
    """Return parameters whose dependent pairs have correlated noise."""
    with_pairs = from_matrices(
        problem.family, problem.moments, parameters.noise, problem.active, problem.usable, problem.request.dependent
    )
    return replace(parameters, pairs=with_pairs.pairs, coupling=with_pairs.coupling)


def _sharing(problem: Problem, parameters: VectorParameters) -> VectorParameters:
    """Return parameters of equal sources under which dependent ones share a vote, where nothing else is known."""
    group = components(problem.request.dependent & np.outer(problem.active, problem.active))
    pairs = np.argwhere(np.triu(np.equal.outer(group, group), 1))
    return replace(parameters, pairs=pairs, coupling=SHARED * parameters.noise[pairs[:, 0]])


def _from_moments(problem: Problem, method: str) -> Estimate:
    """Matrix triplets without a prior ("triplets"), or own less shared covariance with one ("moments")."""
    moments, usable = problem.moments, problem.usable
    identified = has_odd_cycle(usable)
    notes = unidentified_note(identified | ~problem.active, problem.active, problem.request)
    if not (identified & problem.active).any():
        return _fallback(problem, "no source has two independent partners", notes, method)
    variance = truth_law(problem.family, moments, usable)[1]
    noise = moment_matrices(moments, usable, method, variance)
    parameters = from_matrices(
        problem.family,
        moments,
        noise,
        problem.active,
        usable,
        problem.request.dependent,
        shrink=float(method == "moments"),
    )
    if method == "triplets":
        fit = additive_fit(moments.squared_difference, moments.count, _influence(problem, "difference"), usable)
        error = fit.standard_error
    else:
        influence = _influence(problem, "covariance")
        own = np.diagonal(influence, axis1=1, axis2=2)
        shared = (influence * usable).sum(axis=(1, 2)) / max(int(usable.sum()), 1)
        error = np.sqrt(((own - shared[:, None]) ** 2).sum(axis=0))
    error = np.where(problem.active & identified, error, np.inf)
    return Estimate(replace(parameters, cost_error=error), method, "asked for", (*notes, *_general(problem)))


def _influence(problem: Problem, kind: str) -> FloatArray:
    error = problem.shared_error
    if kind == "difference":
        count = np.maximum(problem.moments.count, 1.0)
        error = problem.moments.squared_difference * np.sqrt(2.0 / (count * problem.family.d))
    return pair_influence(problem.moments, error, kind, problem.passes)


def _flagged(problem: Problem) -> BoolArray:
    """Return pairs whose votes share more than those of the typical pair: if noise is independent, all share Var(y)."""
    nobody = np.zeros_like(problem.usable)
    if int(problem.active.sum()) < 5:
        return nobody
    shared, error = problem.moments.shared_trace, problem.shared_error

    def beyond(typical: BoolArray) -> BoolArray:
        middle = float(np.median(shared[typical])) if typical.any() else 0.0
        found: BoolArray = (shared - middle > FLAG * error) & problem.usable
        return found

    flagged = beyond(np.triu(problem.usable))
    group = largest_group(flagged)
    if 2 * len(group) > int(problem.active.sum()):
        # Most sources cannot be the exception: it is the others that follow nobody.
        inside = np.isin(np.arange(len(flagged)), group)
        flagged = beyond(np.triu(problem.usable & np.outer(inside, inside)))
    partners = (problem.usable & ~flagged).sum(axis=1)
    return flagged if (partners[problem.active] >= 2).all() else nobody


def _finished(
    problem: Problem,
    parameters: VectorParameters,
    method: str,
    reason: str,
    notes: tuple[Diagnostic, ...],
    *,
    careful: bool = False,
) -> Estimate:
    """Put standard errors to what was learned; `careful` also asks whether the votes support it."""
    law_known = problem.family.covariance is not None
    parameters = with_errors(parameters, problem.votes, problem.active, problem.passes, law_known)
    learn, dependent = partial(_again, problem), problem.request.dependent
    judged = (parameters, problem.moments, problem.active, dependent, problem.passes if careful else None, learn)
    support = support_of_sources(*judged)
    if support is not None and support.contradicted:
        equal = f"own weights predict a source left out worse than the plain mean does ({support.gain[-1]:+.1%})"
        return _fallback(problem, equal, (*notes, drawn_note(support)), "auto")
    if support is not None and support.share < 1.0:
        parameters = drawn(parameters, support.share, problem.votes)
        notes = (*notes, drawn_note(support))
        reason = f"{reason}, moved {1.0 - support.share:.0%} of the way to equal sources"
    low = problem.active & (np.trace(parameters.noise, axis1=1, axis2=2) <= 1.02 * problem.floor * problem.family.d)
    if low.any():
        names = problem.request.named(low)
        message = (
            f"{', '.join(names)}: the agreement of the others with it leaves no room for noise of its own (a Heywood "
            "case), so its noise was set to a small share of its variance. Copies, or few items, do this; "
            "pass dependencies= or more votes."
        )
        notes = (*notes, Diagnostic("heywood", "warning", names, message))
    return Estimate(parameters, method, reason, (*notes, *_general(problem)), problem.request.dependent)


def _general(problem: Problem) -> tuple[Diagnostic, ...]:
    """Return copies, and sources that move against the others."""
    found = []
    moments, request = problem.moments, problem.request
    size = np.trace(moments.own, axis1=1, axis2=2)
    same = (moments.squared_difference <= 1e-12 * np.minimum.outer(size, size)) & problem.paired
    pairs = np.argwhere(np.triu(same & (moments.count >= 30), 1))
    if len(pairs):
        named = [f"{request.sources[a]} and {request.sources[b]}" for a, b in pairs[:8]]
        message = (
            f"{'; '.join(named)}{' ...' if len(pairs) > 8 else ''}: the same vote on every item they share. If one "
            "copies the other, pass dependencies= with these pairs, so that they count as one."
        )
        found.append(Diagnostic("copied-source", "warning", request.named(np.unique(pairs)), message))
    names = request.named(problem.against)
    if names:
        message = "votes move against those of the others; the weight is zero. Check the signs of the coordinates."
        found.append(Diagnostic("adversarial-source", "warning", names, f"{', '.join(names)}: {message}"))
    return tuple(found)


def _fallback(problem: Problem, reason: str, notes: tuple[Diagnostic, ...], method: str) -> Estimate:
    parameters = equal_sources(problem.family, problem.moments, problem.usable)
    dependent = problem.request.dependent
    if dependent.any():
        parameters = _sharing(problem, parameters)
    found = (*notes, fell_back(reason), *_general(problem))
    if method in ("auto", "majority"):
        return Estimate(parameters, "majority", reason, found, dependent)
    return Estimate(parameters, method, f"equal weights, as {reason}", found, dependent)
