"""Which estimate for sources that vote tags, and what to say about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Chunk, Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.confusion import closed_form
from consilience.families.confusion.dependence import Dependence, learn_dependence
from consilience.families.confusion.pair_moments import PairMoments, pair_moments, pooled_moments
from consilience.families.findings import SIGNIFICANCE, fell_back, needs_gold, no_signal, unidentified
from consilience.families.pair_costs import blend
from consilience.families.pair_fits import PairFit
from consilience.families.polishing import finish
from consilience.families.tags.likelihood import TagFit, clustered_errors, fit_tags, rates_from_counts, tag_scores
from consilience.families.tags.parameters import TagParameters
from consilience.families.tags.qualities import Qualities, skewness_sums, solve_prior
from consilience.families.tags.shrinkage import tags_drawn_together
from consilience.solvers.quadratic import quadratic_triplets
from consilience.solvers.signal import no_signal_probability

__all__ = ["estimate_tags"]

#: Below this skill of the third best source, weights cannot be trusted and equal ones are kept.
WEAK_SKILL = 0.35
#: A sample is enough when every weight is known this well; otherwise all items are used.
PRECISE = 0.03
#: Skills of a source differ from tag to tag by about this much, before anything is known.
BETWEEN_TAGS = 0.2

Solver = Callable[[PairMoments, BoolArray], PairFit]


@dataclass(frozen=True)
class TagData:
    """The statistics of one pass, tag by tag: `votes` is ``(d, m, 2)``."""

    sums: Sums
    votes: FloatArray
    moments: tuple[PairMoments, ...]

    @classmethod
    def of(cls, sums: Sums) -> TagData:
        """Read the sums of one pass."""
        pairs = sums["tag_pairs"]
        d, size = pairs.shape[1], pairs.shape[2]
        votes = np.einsum("tcc->tc", pairs.sum(axis=0)).reshape(d, size // 2, 2).astype(np.float64)
        moments = [pair_moments(Sums({"votes": votes[tag], "pairs": pairs[:, tag]}), 2) for tag in range(d)]
        return cls(sums, votes, tuple(moments))

    @property
    def mean(self) -> FloatArray:
        """``(m, d)`` how often a source says 1; a half where it never votes on the tag."""
        total = self.votes.sum(axis=2)
        mean: FloatArray = np.where(total > 0, self.votes[:, :, 1] / np.maximum(total, 1.0), 0.5).T
        return mean

    @property
    def cast(self) -> FloatArray:
        """``(m, d)`` numbers of votes."""
        return np.asarray(self.votes.sum(axis=2).T)

    @cached_property
    def pooled(self) -> PairMoments:
        """Pair moments of all tags together."""
        return pooled_moments(self.moments, self.cast.T).clustered()

    @property
    def active(self) -> BoolArray:
        """``(m,)`` sources with a vote."""
        return np.asarray(self.cast.sum(axis=1) > 0)


def estimate_tags(sums: Sums, request: Request, passes: Passes | None) -> Estimate:
    """Learn the qualities by the method asked for."""
    data = TagData.of(sums)
    if request.method == "majority":
        return Estimate(_plain_vote(data, request), "majority", "asked for", _unused(data))
    if request.method == "labelled":
        return _labelled(data, request)
    found = _dependence(data, request)
    if found.doubt and request.method == "auto":
        return _fallback(data, request, found.doubt, found.notes)
    request = replace(request, dependent=request.dependent | found.dependent)
    estimate = _by_method(data, request, passes, found)
    return replace(estimate, diagnostics=(*estimate.diagnostics, *found.notes), dependent=request.dependent)


def _dependence(data: TagData, request: Request) -> Dependence:
    """Find sources that copy each other, by what they do on all tags together."""
    gold = data.sums["tag_gold"].sum(axis=0) if "tag_gold" in data.sums else None
    return learn_dependence(data.pooled, data.votes.sum(axis=0), np.ones(len(data.active), dtype=bool), request, gold)


def _by_method(data: TagData, request: Request, passes: Passes | None, learned: Dependence) -> Estimate:
    if request.method == "isotropic":
        return _isotropic(data, request)
    if request.method == "auto":
        return _automatic(data, request, passes, learned)
    if request.method == "em" and passes is not None:
        found = _qualities(data, request, closed_form.triplet_skill, passes)
        return _likelihood(data, request, found, passes, "asked for")
    solver = closed_form.moment_skill if request.method == "moments" else closed_form.triplet_skill
    return _closed_form(data, request, _qualities(data, request, solver, passes), "asked for")


def _automatic(data: TagData, request: Request, passes: Passes | None, learned: Dependence) -> Estimate:
    count = int(data.active.sum())
    if count < 3:
        if request.n_gold:
            return _labelled(data, request)
        return _fallback(data, request, f"{count} source(s) vote, qualities need 3")
    if not (data.votes.sum(axis=(0, 1)) > 0).all() and not request.n_gold:
        return _fallback(data, request, "all votes are the same")
    if not request.n_gold:
        chance = no_signal_probability(_strengths(data, request))
        if chance > SIGNIFICANCE:
            reason = f"the sources agree no more than chance would have them (p = {chance:.2f})"
            return _fallback(data, request, reason, (no_signal(request, reason),))
    solver = closed_form.moment_skill if passes is None else closed_form.triplet_skill
    found = _qualities(data, request, solver, passes)
    best = np.sort(np.abs(found.overall[data.active]))[::-1]
    if count >= 5 and best[2] < WEAK_SKILL and not request.n_gold:
        reason = f"fewer than three sources carry much signal (third skill {best[2]:.2f} < {WEAK_SKILL})"
        return _fallback(data, replace(request, dependent=learned.harmless(request.dependent)), reason)
    if passes is None:
        reason = "only moments are at hand, so pair moments instead of the likelihood"
        return replace(_closed_form(data, request, found, reason), method="moments")
    pooled = "every source says of every tag whether it is present"
    if len(data.votes) > 1:
        pooled += "; what a source does on one tag is pulled to what it does on all"
    return _likelihood(data, request, found, passes, pooled)


def _strengths(data: TagData, request: Request) -> FloatArray:
    """Return the covariances of all independent pairs on all tags, in standard errors."""
    found = []
    for moments in data.moments:
        left, right = np.nonzero(np.triu(moments.usable(request.dependent)))
        found.append(moments.covariance[left, right] / moments.standard_error[left, right])
    return np.concatenate(found)


def _qualities(data: TagData, request: Request, solver: Solver, passes: Passes | None) -> Qualities:
    """Solve every tag on its own: loadings from covariances, the prior from third moments, both rates from both."""
    fits = [solver(moments, request.dependent) for moments in data.moments]
    d = len(fits)
    # The class-summed covariance of two classes is twice that of zeros and ones, and its scale a half.
    loading = np.stack([fit.value for fit in fits], axis=1) / 2.0
    error = np.stack([fit.standard_error for fit in fits], axis=1) / 2.0
    identified = np.stack([fit.identified for fit in fits], axis=1) & (data.cast > 0)
    # Loadings are known up to a common sign: on every tag most of the evidence is taken to point the right way.
    evidence = np.where(identified & np.isfinite(error), loading / np.maximum(error, 1e-6), 0.0)
    loading = loading * np.where(evidence.sum(axis=0) < 0, -1.0, 1.0)
    even = [closed_form.skill_under_prior(2.0 * loading[:, t], data.votes[t], 0.5, None)[1][1] for t in range(d)]
    prior = np.clip(np.array(even), 1e-3, 1 - 1e-3)
    if passes is not None:
        mean = data.mean
        chosen = _witnesses(request.dependent)
        usable = np.where(identified & chosen[:, None], loading, 0.0)
        third = passes.over_sample(lambda chunk: skewness_sums(chunk, mean, usable))
        prior = solve_prior(third, prior)
    return Qualities.of(data.mean, loading, error, identified, prior, data.cast)


def _witnesses(dependent: BoolArray) -> BoolArray:
    """Return sources no two of which depend on each other."""
    chosen = np.zeros(len(dependent), dtype=bool)
    for source in range(len(dependent)):
        chosen[source] = not (dependent[source] & chosen).any()
    return chosen


def _closed_form(data: TagData, request: Request, found: Qualities, reason: str) -> Estimate:
    sensitivity, specificity, known = found.sensitivity, found.specificity, found.identified
    if request.method == "quadratic":
        sensitivity, specificity, known = _roots(data, request, found)
    notes = (*unidentified(np.asarray(known.any(axis=1)), data.active, request), *_unused(data))
    if not known[data.active].any():
        return _equal(data, request, notes)
    error = found.skill_error
    if "tag_gold" in data.sums:
        gold = data.sums["tag_gold"]
        informed = _pseudo_votes(sensitivity, error), _pseudo_votes(specificity, error)
        sensitivity = _updated(sensitivity, informed[0], gold[:, :, 1, 1].T, gold[:, :, :, 1].sum(axis=2).T)
        specificity = _updated(specificity, informed[1], gold[:, :, 0, 0].T, gold[:, :, :, 0].sum(axis=2).T)
    spread = 2.0 * (found.prior * (1.0 - found.prior)) * np.where(np.isfinite(error), error, 0.0)
    parameters = _parameters(data, request, sensitivity, specificity, found, spread)
    return Estimate(parameters, request.method, reason, notes)


def _roots(data: TagData, request: Request, found: Qualities) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Algorithm 3, tag by tag."""
    sensitivity, specificity = found.sensitivity.copy(), found.specificity.copy()
    known = np.zeros_like(found.identified)
    for tag, moments in enumerate(data.moments):
        mean, error = data.mean[:, tag], moments.standard_error / 2.0
        joint = moments.covariance / 2.0 + np.outer(mean, mean)  # as if all sources voted on all items
        rates = quadratic_triplets(joint, mean, float(found.prior[tag]), moments.usable(request.dependent), error)
        known[:, tag] = rates.identified & (data.cast[:, tag] > 0)
        least = found.least[:, tag]
        solved = np.clip(rates.given_one, least, 1 - least), np.clip(1 - rates.given_zero, least, 1 - least)
        sensitivity[:, tag] = np.where(known[:, tag], solved[0], sensitivity[:, tag])
        specificity[:, tag] = np.where(known[:, tag], solved[1], specificity[:, tag])
    return sensitivity, specificity, known


def _pseudo_votes(rate: FloatArray, error: FloatArray) -> FloatArray:
    """Return how many votes on known items would tell a rate as precisely as it is known."""
    known = np.isfinite(error)
    return np.where(known, rate * (1.0 - rate) / np.maximum(np.where(known, error, 1.0), 1e-3) ** 2, 3.0)


def _updated(rate: FloatArray, pseudo: FloatArray, right: FloatArray, seen: FloatArray) -> FloatArray:
    updated: FloatArray = (rate * pseudo + right) / (pseudo + seen)
    return updated


def _likelihood(data: TagData, request: Request, found: Qualities, passes: Passes, reason: str) -> Estimate:
    start = found.pulled(BETWEEN_TAGS)
    parameters = _parameters(data, request, start.sensitivity, start.specificity, start, np.zeros_like(data.cast))
    fit = _with_errors(fit_tags(parameters, passes.over_sample, passes.n_sampled), data, passes)
    fit, notes = finish(
        passes,
        fit,
        lambda so_far: _with_errors(fit_tags(so_far.parameters, passes.over_all, passes.n_items), data, passes, 1.0),
        data.active,
        PRECISE,
    )
    parameters = _with_silent(fit.parameters, data)
    if request.method == "auto":
        parameters = tags_drawn_together(parameters, data.votes, data.pooled, request.dependent)
    return Estimate(parameters, "em", reason, (*notes, *_unused(data)))


def _with_errors(fit: TagFit, data: TagData, passes: Passes, share: float | None = None) -> TagFit:
    parameters = fit.parameters

    def scores(chunk: Chunk) -> Sums:
        return tag_scores(parameters, chunk)

    found = passes.over_sample(scores)
    used = passes.n_items if share is not None else passes.n_sampled
    error = clustered_errors(
        found["single"],
        found["clustered"],
        1.0 - parameters.cost,
        data.cast.sum(axis=1),
        parameters.correlation > 0,
        scale=used / max(passes.n_sampled, 1),
    )
    return TagFit(replace(parameters, cost_standard_error=error), fit.converged)


def _labelled(data: TagData, request: Request) -> Estimate:
    if "tag_gold" not in data.sums:
        raise needs_gold()
    gold = data.sums["tag_gold"]
    plain = _plain_vote(data, request)
    found = rates_from_counts(gold, data.sums["tag_gold_classes"], replace(plain, shares=False))
    seen = gold.sum(axis=(0, 2, 3))
    accuracy = (np.einsum("tacc->a", gold) + 2.0) / (seen + 3.0)
    error = np.where(seen > 0, np.sqrt(accuracy * (1 - accuracy) / np.maximum(seen, 1.0)), np.inf)
    parameters = replace(found, cost=1.0 - accuracy, cost_standard_error=error)
    return Estimate(parameters, "labelled", f"{request.n_gold} known labels", _unused(data))


def _isotropic(data: TagData, request: Request) -> Estimate:
    """Disagreements add up (Algorithm 4), on every tag; biased, as two wrong votes on a tag agree."""
    fits = [closed_form.isotropic_skill(moments, request.dependent) for moments in data.moments]
    identified = np.stack([fit.identified for fit in fits], axis=1) & (data.cast > 0)
    notes = (*unidentified(np.asarray(identified.any(axis=1)), data.active, request), *_unused(data))
    if not identified[data.active].any():
        return _equal(data, request, notes)
    cost = np.stack([1.0 - closed_form.accuracy_from_skill(fit.value, 2) for fit in fits], axis=1)
    spread = np.stack([fit.standard_error for fit in fits], axis=1) / 2.0
    weight = np.where(identified, data.cast, 0.0)
    overall = (weight * cost).sum(axis=1) / np.maximum(weight.sum(axis=1), 1.0)
    overall = np.where(identified.any(axis=1), overall, overall[identified.any(axis=1)].mean())
    cost = np.where(identified, cost, overall[:, None])
    if "tag_gold" in data.sums:
        gold = data.sums["tag_gold"]
        seen, right = gold.sum(axis=(2, 3)).T, np.einsum("tacc->at", gold)
        told = 1.0 - (right + 1.0) / (seen + 2.0)
        told_error = np.where(seen > 0, np.sqrt(told * (1 - told) / np.maximum(seen, 1.0)), np.inf)
        cost, spread = blend(cost, spread, told, told_error)
    prior = np.array(
        [closed_form.prior_from_shares(votes, 1.0 - cost[:, tag])[1] for tag, votes in enumerate(data.votes)]
    )
    found = Qualities.of(data.mean, (1.0 - 2.0 * cost) / 2.0, spread, identified, prior, data.cast)
    spread = np.where(np.isfinite(spread), spread, 0.0)
    parameters = _parameters(data, request, 1.0 - cost, 1.0 - cost, found, spread)
    return Estimate(parameters, "isotropic", "asked for", notes)


def _parameters(
    data: TagData,
    request: Request,
    sensitivity: FloatArray,
    specificity: FloatArray,
    found: Qualities,
    spread: FloatArray,
) -> TagParameters:
    """Put parameters together; `spread` is ``(m, d)``, the standard errors of the costs on single tags."""
    wrong = found.prior * (1.0 - sensitivity) + (1.0 - found.prior) * (1.0 - specificity)
    share = data.cast / np.maximum(data.cast.sum(axis=1, keepdims=True), 1.0)
    told = found.identified.any(axis=1) & data.active
    error = np.where(told, np.sqrt((share**2 * spread**2).sum(axis=1)), np.inf)
    parameters = TagParameters(
        sensitivity=sensitivity,
        specificity=specificity,
        prior=found.prior,
        correlation=_correlation(data, request, found.loading),
        cost=(share * wrong).sum(axis=1),
        cost_standard_error=error,
        strength=np.zeros(2),
    )
    return _with_silent(parameters, data)


def _correlation(data: TagData, request: Request, loading: FloatArray) -> FloatArray:
    """Return how far dependent sources repeat each other given the truth, averaged over the tags."""
    m = len(request.dependent)
    if not request.dependent.any():
        return np.zeros((m, m))
    total, weight = np.zeros((m, m)), np.zeros((m, m))
    for tag, moments in enumerate(data.moments):
        counted = moments.both * np.sqrt(np.outer(moments.variance, moments.variance))
        total += counted * moments.correlation(np.sqrt(2.0) * loading[:, tag], request.dependent)
        weight += counted
    return np.divide(total, weight, out=np.zeros((m, m)), where=weight > 0)


def _with_silent(parameters: TagParameters, data: TagData) -> TagParameters:
    """Give sources that never vote the average cost of the others."""
    if data.active.all() or not data.active.any():
        return parameters
    return replace(parameters, cost=np.where(data.active, parameters.cost, parameters.cost[data.active].mean()))


def _plain_vote(data: TagData, request: Request) -> TagParameters:
    m, d = data.cast.shape
    agreeing = meeting = 0.0
    for moments in data.moments:
        weights = np.where(moments.usable(request.dependent), moments.both, 0.0)
        agreeing, meeting = agreeing + float((moments.agreement * weights).sum()), meeting + float(weights.sum())
    agreement = agreeing / meeting if meeting > 0 else 0.58
    accuracy = float(np.clip(0.5 + 0.5 * np.sqrt(max(2.0 * agreement - 1.0, 0.0)), 0.5, 0.95))
    total = data.votes.sum(axis=1) + 1.0
    return TagParameters(
        sensitivity=np.full((m, d), accuracy),
        specificity=np.full((m, d), accuracy),
        prior=total[:, 1] / total.sum(axis=1),
        correlation=_correlation(data, request, np.full((m, d), (2 * accuracy - 1) / 2.0)),
        cost=np.full(m, 1.0 - accuracy),
        cost_standard_error=np.full(m, np.inf),
        strength=np.zeros(2),
        shares=True,
    )


def _equal(data: TagData, request: Request, notes: tuple[Diagnostic, ...]) -> Estimate:
    reason = "no source has two independent partners"
    found = (*notes, fell_back(reason))
    return Estimate(_plain_vote(data, request), request.method, f"equal weights, as {reason}", found)


def _fallback(data: TagData, request: Request, reason: str, notes: tuple[Diagnostic, ...] = ()) -> Estimate:
    found = (*notes, fell_back(reason), *_unused(data))
    return Estimate(_plain_vote(data, request), "majority", reason, found)


def _unused(data: TagData) -> tuple[Diagnostic, ...]:
    """Report tags that no source ever gives, or that every source always gives."""
    counts = data.votes.sum(axis=1)
    never = np.flatnonzero((counts[:, 1] == 0) & (counts[:, 0] > 0))
    if len(never) == 0 or len(never) == len(counts):
        return ()
    shown = ", ".join(map(str, never[:8])) + (" ..." if len(never) > 8 else "")
    message = (
        f"No source ever gives {len(never)} of the {len(counts)} tags (number {shown}, counted from 0). "
        "If they cannot occur, leave them out of the space."
    )
    return (Diagnostic("unused-labels", "info", (), message),)
