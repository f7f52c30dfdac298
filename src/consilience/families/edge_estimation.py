"""How the error rates of sources of dependency trees are learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Chunk, Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.edge_gold import GoldErrors, settle
from consilience.families.edges import LEAST_ERROR, MOST_ERROR, EdgeParameters
from consilience.families.findings import SIGNIFICANCE, dependent_pairs, fell_back, needs_gold, no_signal, unidentified
from consilience.families.pair_fits import PairFit, additive_fit, product_fit
from consilience.families.polishing import finish
from consilience.solvers.pairs import has_odd_cycle
from consilience.solvers.robust import fit_pair_moments, sandwich
from consilience.solvers.signal import no_signal_probability

if TYPE_CHECKING:
    from consilience.families.edges import EdgeFamily

__all__ = ["estimate_edges"]

#: Two sources must meet on this many tokens before their agreement is used.
MIN_TOKENS = 20
#: A pair is taken for copies if it agrees by this many standard errors more than its error
#: rates explain, and differs on less than this share of the tokens on which the worse of the two errs. Independent
#: sources differ on all of these, and those that merely find the same tokens hard, on most.
FLAG, COPIED_SHARE = 5.0, 0.5
#: Odd pairs are forgiven from this many sources on.
ROBUST_SOURCES = 5
MAX_ROUNDS = 500
STILL = 1e-6
PRECISE = 0.02
SHARED_VOTE = "from here on they share one vote"


@dataclass(frozen=True)
class _Problem:
    """Pair agreement by token, ``(m, m)``, with the influence ``(groups, m, m)`` of groups of sentences."""

    family: EdgeFamily
    sums: Sums
    request: Request
    tokens: FloatArray
    agree: FloatArray
    error: FloatArray
    influence: FloatArray

    @classmethod
    def of(cls, family: EdgeFamily, sums: Sums, request: Request) -> _Problem:
        by_group = sums["pair_tokens"].astype(np.float64)
        same = by_group - sums["pair_cost"]
        tokens = by_group.sum(axis=0)
        count = np.maximum(tokens, 1.0)
        agree = same.sum(axis=0) / count
        influence = (same - by_group * agree) / count
        filled = (by_group > 0).sum(axis=0)
        scatter = (influence**2).sum(axis=0) * filled / np.maximum(filled - 1, 1)
        smooth = (same.sum(axis=0) + 1.0) / (count + 2.0)  # few sentences may fall into groups that agree by luck
        error = np.sqrt(np.maximum(scatter, smooth * (1.0 - smooth) / count))
        return cls(family, sums, request, tokens, agree, error, influence)

    @property
    def usable(self) -> BoolArray:
        """Pairs of sources that may be used as independent."""
        usable: BoolArray = (self.tokens >= MIN_TOKENS) & ~self.request.dependent
        np.fill_diagonal(usable, False)
        return usable

    @property
    def active(self) -> BoolArray:
        active: BoolArray = np.diag(self.sums["both"]) > 0
        return active

    def without(self, pairs: BoolArray) -> _Problem:
        """Return the problem with these pairs as dependent, too."""
        return replace(self, request=replace(self.request, dependent=self.request.dependent | pairs))

    def correlation(self, right: FloatArray) -> FloatArray:
        """Return how far dependent sources repeat each other: 0 if as independent ones agree, 1 for copies."""
        alone = np.outer(right, right)
        room = np.maximum(np.minimum.outer(right, right) - alone, 1e-3)
        excess: FloatArray = np.where(self.tokens > 0, np.clip((self.agree - alone) / room, 0.0, 1.0), 0.0)
        return np.where(self.request.dependent, excess, 0.0)


def estimate_edges(family: EdgeFamily, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
    """Learn the error rates by the method asked for."""
    problem = _Problem.of(family, sums, request)
    method = request.method
    if method == "majority":
        return Estimate(_equal(problem), "majority", "asked for")
    if method == "labelled":
        return _labelled(problem)
    if method == "auto":
        return _automatic(problem, passes)
    if not has_odd_cycle(problem.usable).any():
        if "gold_tokens" in sums:
            return replace(_labelled(problem), reason="known trees; no source has two independent partners")
        reason = "no source has two independent partners"
        return replace(_fallback(problem, reason), method=method)
    fit = _FITS[method](problem)
    if method == "em" and passes is not None:
        return _polished(problem, fit, passes, "asked for")
    return _closed(problem, fit, method, "asked for")


def _automatic(problem: _Problem, passes: Passes | None) -> Estimate:
    request, count = problem.request, int(problem.active.sum())
    told = "gold_tokens" in problem.sums
    if count < 3 or not has_odd_cycle(problem.usable).any():
        if told:
            return _labelled(problem)
        need = f"{count} source(s) vote, weights need 3" if count < 3 else "no source has two independent partners"
        return _fallback(problem, need)
    left, right = np.nonzero(np.triu(problem.usable))
    items = problem.sums["both"][left, right]
    chance = items / problem.tokens[left, right]  # one head in n is right by chance, which adds up to one per sentence
    signal = np.maximum(problem.agree[left, right] - chance, 0.0) / problem.error[left, right]
    doubt = no_signal_probability(signal)
    if doubt > SIGNIFICANCE:
        if told:
            return _labelled(problem)
        reason = f"the trees have no more heads in common than random ones (p = {doubt:.2f})"
        return _fallback(problem, reason, (no_signal(request, reason),))
    notes: tuple[Diagnostic, ...] = ()
    copied = _copies(problem)
    if request.learn and copied.any():
        one, two = np.nonzero(np.triu(copied))
        notes = (dependent_pairs(one, two, request, SHARED_VOTE),)
        problem = problem.without(copied)
    fit = _moments(problem)
    if passes is None:
        found = _closed(problem, fit, "moments", "only moments are at hand")
    else:
        found = _polished(problem, fit, passes, "likelihood of the heads, token by token")
    return replace(found, diagnostics=(*notes, *found.diagnostics), dependent=problem.request.dependent)


def _copies(problem: _Problem) -> BoolArray:
    """Return the pairs that agree as only copies do.

    Pairs that are much closer than most are left out, the closest first and as many as leave every source with
    witnesses, and the others say how good the two sources are.
    """
    usable, apart = problem.usable, 1.0 - problem.agree
    nothing = np.zeros_like(usable)
    if not usable.any():
        return nothing
    left, right_end = np.nonzero(np.triu(usable & (apart < 0.5 * np.median(apart[usable]))))
    close, others = nothing, problem
    for place in np.argsort(apart[left, right_end], kind="stable"):
        tried = close.copy()
        tried[left[place], right_end[place]] = tried[right_end[place], left[place]] = True
        if not has_odd_cycle(problem.without(tried).usable)[tried.any(axis=0)].all():
            break
        close, others = tried, problem.without(tried)
    if not close.any():
        return nothing
    right = _right(_moments(others))
    excess = (problem.agree - np.outer(right, right)) / problem.error
    copied: BoolArray = close & (excess > FLAG) & (apart < COPIED_SHARE * (1.0 - np.minimum.outer(right, right)))
    return copied


# --- closed forms -----------------------------------------------------------------------------------


def _moments(problem: _Problem) -> PairFit:
    """Agreement is rank one for sources that never make the same error: P(agree) = (1 - e_a) (1 - e_b).

    All pairs at once, within bounds; from five sources on under a loss that forgives odd pairs. With fewer it could
    forgive whichever pair it likes and fit the others.
    """
    usable = problem.usable
    left, right = np.nonzero(np.triu(usable))
    m, rows = len(usable), np.arange(len(left))
    identified = has_odd_cycle(usable)
    if len(left) == 0:
        return PairFit(np.full(m, 0.3), np.full(m, np.inf), identified, np.zeros((m, m)))

    def jacobian(value: FloatArray) -> FloatArray:
        slopes = np.zeros((len(left), m))
        slopes[rows, left], slopes[rows, right] = value[right], value[left]
        return slopes

    many = int(problem.active.sum()) >= ROBUST_SOURCES
    fit = fit_pair_moments(
        lambda value: value[left] * value[right],
        jacobian,
        problem.agree[left, right],
        problem.error[left, right],
        [np.clip(1.0 - _triplets(problem).value, 0.1, 0.98), np.full(m, 0.8)],
        lower=0.0,
        upper=1.0,
        scale=3.0 if many else 1e3,
        corrected_scatter=m >= 7,
    )
    law = sandwich(fit.jacobian, fit.precision, problem.influence[:, left, right])
    spread = np.where(identified, np.sqrt(np.maximum(np.diag(law), 0.0)), np.inf)
    return PairFit(1.0 - fit.weight, spread, identified, np.zeros((m, m)))


def _triplets(problem: _Problem) -> PairFit:
    fit = product_fit(problem.agree, problem.error, problem.influence, problem.usable, 1.0, 1.0)
    return replace(fit, value=1.0 - np.abs(fit.value))


def _isotropic(problem: _Problem) -> PairFit:
    return additive_fit(1.0 - problem.agree, problem.tokens, problem.influence, problem.usable)


_FITS: dict[str, Callable[[_Problem], PairFit]] = {
    "moments": _moments,
    "triplets": _triplets,
    "isotropic": _isotropic,
    "em": _moments,
}


def _right(fit: PairFit) -> FloatArray:
    """Return the probabilities of right heads; sources that no pair determines borrow the median."""
    error = np.clip(fit.value, LEAST_ERROR, MOST_ERROR)
    known = fit.identified
    return 1.0 - np.where(known, error, np.median(error[known]) if known.any() else 0.3)


def _closed(problem: _Problem, fit: PairFit, method: str, reason: str) -> Estimate:
    return _finished(problem, 1.0 - _right(fit), fit.standard_error, fit.identified, method, reason)


# --- likelihood -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fit:
    """Probabilities of right heads after some rounds; `standard_error` is that of the weights."""

    right: FloatArray
    right_error: FloatArray
    converged: bool

    @property
    def standard_error(self) -> FloatArray:
        return self.right_error / (self.right * (1.0 - self.right))


Run = Callable[[Callable[[Chunk], Sums]], Sums]


def _polished(problem: _Problem, start: PairFit, passes: Passes, reason: str) -> Estimate:
    correlation = problem.correlation(_right(start))
    # Two starts, as a likelihood may have several maxima where sources contradict each other.
    fit = _rounds(problem, [_right(start), np.full(len(start.value), 0.8)], correlation, passes.over_sample)

    def go_on(sampled: _Fit) -> _Fit:
        return _rounds(problem, [sampled.right], correlation, passes.over_all)

    fit, notes = finish(passes, fit, go_on, problem.active & start.identified, PRECISE)
    error = np.where(start.identified, fit.right_error, np.inf)
    return _finished(problem, 1.0 - fit.right, error, start.identified, "em", reason, notes)


def _rounds(problem: _Problem, starts: list[FloatArray], correlation: FloatArray, run: Run) -> _Fit:
    """Iterate to the fixed point from every start; the most likely end wins, the first of equals."""
    update = _Update(problem, correlation, run)
    ends = [update.climb(start) for start in starts]
    right, _, converged = max(ends, key=lambda end: end[1])
    return _Fit(right, update.error(right), converged)


@dataclass(frozen=True)
class _Update:
    """One round of EM as a function of the probabilities of right heads."""

    problem: _Problem
    correlation: FloatArray
    run: Run

    def __call__(self, right: FloatArray) -> FloatArray:
        sums = self.sums(right)
        rights, total = sums["rights"], sums["tokens"].sum(axis=0)
        # A weak pull to 0.8, of the weight of two tokens, keeps sources with few votes apart from the ends.
        new = (rights.sum(axis=0) + 1.6) / (total + 2.0)
        return np.where(total > 0, np.clip(new, 1.0 - MOST_ERROR, 1.0 - LEAST_ERROR), right)

    def climb(self, right: FloatArray) -> tuple[FloatArray, float, bool]:
        """Return the fixed point, its log likelihood, and whether it was reached."""
        for _ in range(MAX_ROUNDS):
            once = self(right)
            still = np.abs(once - right).max() < STILL
            right = once
            if still:
                return right, float(self.sums(right)["log_likelihood"]), True
        return right, float(self.sums(right)["log_likelihood"]), False

    def sums(self, right: FloatArray) -> Sums:
        family = self.problem.family
        weight = family.weight_from_cost(1.0 - right)
        parameters = EdgeParameters(weight, np.zeros(len(right)), self.correlation)
        return self.run(lambda chunk: family.round(parameters, chunk))

    def error(self, right: FloatArray) -> FloatArray:
        """Return sandwich standard errors over groups of sentences.

        At the fixed point a group moves the estimate by its own residual, and then again through what the others
        believe: ``(1 - J)^-1`` with J the derivative of the round.
        """
        m = len(right)
        sums = self.sums(right)
        rights, tokens = sums["rights"], sums["tokens"]
        total = tokens.sum(axis=0)
        direct = (rights - tokens * (rights.sum(axis=0) / np.maximum(total, 1.0))) / np.maximum(total, 1.0)
        slope = np.zeros((m, m))
        base = self(right)
        for source in np.flatnonzero(self.problem.active):
            step = -1e-3 if right[source] > 0.5 else 1e-3
            moved = right.copy()
            moved[source] += step
            slope[:, source] = (self(moved) - base) / step
        influence = direct @ np.linalg.pinv(np.eye(m) - slope).T
        filled = max(int((tokens.sum(axis=1) > 0).sum()), 1)
        variance = (influence**2).sum(axis=0) * filled / max(filled - 1, 1)
        least = right * (1.0 - right) / np.maximum(total, 1.0)
        return np.where(total > 0, np.sqrt(np.maximum(variance, least)), np.inf)


# --- known trees ------------------------------------------------------------------------------------


def _labelled(problem: _Problem) -> Estimate:
    if "gold_tokens" not in problem.sums:
        raise needs_gold()
    gold = GoldErrors.of(problem.sums)
    reason = f"{problem.request.n_gold} known trees"
    return Estimate(_parameters(problem, gold.error, gold.standard_error), "labelled", reason)


def _finished(
    problem: _Problem,
    error: FloatArray,
    standard_error: FloatArray,
    identified: BoolArray,
    method: str,
    reason: str,
    notes: tuple[Diagnostic, ...] = (),
) -> Estimate:
    """Return the estimate, with what known trees say about it."""
    notes = (*notes, *unidentified(identified, problem.active, problem.request))
    if "gold_tokens" in problem.sums:
        settled = settle(error, standard_error, GoldErrors.of(problem.sums))
        error, standard_error = settled.error, settled.standard_error
        reason = f"{reason}; {settled.reason(problem.request.n_gold)}"
        notes = (*notes, *settled.findings(problem.request))
    return Estimate(_parameters(problem, error, standard_error), method, reason, notes)


def _parameters(problem: _Problem, error: FloatArray, standard_error: FloatArray) -> EdgeParameters:
    active = problem.active
    error = np.clip(error, LEAST_ERROR, MOST_ERROR)
    finite = active & np.isfinite(standard_error)
    spread = np.where(finite, np.where(finite, standard_error, 0.0) / (error * (1.0 - error)), np.inf)
    weight = problem.family.weight_from_cost(error)
    if active.any():
        weight = np.where(active, weight, weight[active].mean())
    return EdgeParameters(weight, spread, problem.correlation(1.0 - error))


def _equal(problem: _Problem) -> EdgeParameters:
    m = len(problem.active)
    typical = np.full(m, float(problem.family.expected_cost(np.ones(1))[0]))
    return EdgeParameters(np.ones(m), np.full(m, np.inf), problem.correlation(1.0 - typical))


def _fallback(problem: _Problem, reason: str, notes: tuple[Diagnostic, ...] = ()) -> Estimate:
    return Estimate(_equal(problem), "majority", reason, (*notes, fell_back(reason)))
