"""How the lines of sources of scores are learned. Everything is learned for a factor of variance one first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.exceptions import UnsupportedError
from consilience.families.base import Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.findings import (
    SIGNIFICANCE,
    fell_back,
    no_signal,
    not_converged,
    unidentified,
)
from consilience.families.gaussian_errors import with_errors
from consilience.families.gaussian_fits import (
    equal_line,
    labelled_lines,
    noise_around,
    standard_lines,
)
from consilience.families.gaussian_gauge import in_gauge
from consilience.families.gaussian_moments import ScoreMoments, pair_influence, score_moments
from consilience.families.gaussian_rounds import count_tails, maximise, tail_share, thinned
from consilience.families.pair_fits import PairFit, additive_fit, product_fit, robust_product_fit
from consilience.solvers.factor import NOISE_FLOOR, equal_slopes, free_slopes, prefers_free_slopes
from consilience.solvers.signal import no_signal_probability
from consilience.solvers.triplets import triplet_loadings

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianFamily, GaussianParameters

__all__ = ["estimate_gaussian"]

#: A pair needs this many items on which both vote.
MIN_CO_VOTES = 5
#: Residuals beyond `FLAG` standard errors of a robust fit flag a pair as dependent, from 5 up to `MOST` sources; the
#: robust fit is made where those of the likelihood exceed `SUSPICION`.
FLAG, SUSPICION, MOST = 5.0, 3.5, 60
#: Twice the log likelihood that each further slope must gain where votes are missing. The BIC's log n asks for more
#: than sparse votes can show; this lets equal slopes pass for different ones in under 1% of cases.
SLOPE_PENALTY = 3.0
#: Degrees of freedom of heavy-tailed noise, whose scale may be far below the variance of the votes.
HEAVY, STUDENT_FLOOR = 4.0, 0.1


@dataclass(frozen=True)
class Problem:
    """What all methods look at."""

    family: GaussianFamily
    sums: Sums
    moments: ScoreMoments
    request: Request
    passes: Passes | None

    @property
    def active(self) -> BoolArray:
        """Sources whose votes vary."""
        return self.moments.varied

    @property
    def usable(self) -> BoolArray:
        """Pairs that may be used as independent."""
        usable: BoolArray = (self.moments.count >= MIN_CO_VOTES) & ~self.request.dependent
        usable &= np.outer(self.active, self.active)
        np.fill_diagonal(usable, False)
        return usable

    @property
    def scale(self) -> FloatArray:
        """Standard deviation of each source; one for those that do not vary."""
        return np.where(self.active, np.sqrt(self.moments.variance), 1.0)

    @property
    def correlation(self) -> FloatArray:
        """Correlations over the items on which both vote, by the variances of all votes."""
        between = self.moments.covariance / np.outer(self.scale, self.scale)
        return np.clip(between, -1.0, 1.0)

    @property
    def correlation_error(self) -> FloatArray:
        """Their standard errors; those of covariances of Gaussian votes."""
        error: FloatArray = np.sqrt((1.0 + self.correlation**2) / np.maximum(self.moments.count, 1.0))
        return error

    @property
    def can_run(self) -> bool:
        """Whether the likelihood can be taken over the items themselves."""
        return self.passes is not None


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
        standard, notes, how = _likelihood(problem, gate=False)
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
    standard, notes, how = _likelihood(problem, gate=True)
    flagged = _flagged(problem, standard)
    if flagged.any():
        left, right = np.nonzero(np.triu(flagged))
        notes = (_flag_note(left, right, request), *_copies(problem))
        problem = replace(problem, request=replace(request, dependent=request.dependent | flagged))
        standard, more, how = _likelihood(problem, gate=True)
        notes, how = (*notes, *more), f"{how}, with correlated noise of {len(left)} pair(s)"
    return _finished(problem, standard, "em", how, notes)


def _likelihood(problem: Problem, *, gate: bool) -> tuple[GaussianParameters, tuple[Diagnostic, ...], str]:
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
        if heavy and not _at_floor(problem, student).any():
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
    return Estimate(parameters, method, reason, found)


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
    names = problem.request.named(_at_floor(problem, standard))
    if not names:
        return ()
    message = (
        f"{', '.join(names)}: the agreement of the others with it leaves no room for noise of its own (a Heywood "
        "case), so its noise was set to a small share of its variance. Copies, or few items, do this; "
        "pass dependencies= or more votes."
    )
    return (Diagnostic("heywood", "warning", names, message),)


def _at_floor(problem: Problem, standard: GaussianParameters) -> BoolArray:
    floor = 1.02 * NOISE_FLOOR * problem.moments.variance * (STUDENT_FLOOR if np.isfinite(standard.degrees) else 1.0)
    return problem.active & (standard.noise_variance <= floor)


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


def _fallback(problem: Problem, reason: str, notes: tuple[Diagnostic, ...], method: str = "majority") -> Estimate:
    parameters = equal_line(problem.family, problem.moments)
    found = (*notes, fell_back(reason), *_copies(problem))
    return Estimate(parameters, method, reason if method == "majority" else f"equal weights, as {reason}", found)
