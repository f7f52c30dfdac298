"""Which estimate for which categorical sources, and what to say about it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import FloatArray
from consilience.exceptions import UnsupportedError
from consilience.families.base import Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.confusion import closed_form
from consilience.families.confusion.dependence import Dependence, learn_dependence
from consilience.families.confusion.likelihood import (
    LikelihoodModel,
    cofiring_misfit,
    event_pairs,
    expected_counts,
    fit_rounds,
    row_agreement,
    score_products,
    with_errors,
)
from consilience.families.confusion.pair_moments import PairMoments, pair_moments
from consilience.families.confusion.parameters import ConfusionParameters, one_coin_tables
from consilience.families.confusion.plain_vote import (
    alike,
    correlation_of,
    equal_weights,
    fallback,
    fixed_prior,
    parameters_of,
    plain_vote,
    votes_every_class,
    with_silent,
)
from consilience.families.confusion.shrinkage import drawn_together
from consilience.families.findings import (
    SIGNIFICANCE,
    needs_gold,
    no_signal,
    not_converged,
    polished,
    unidentified,
)
from consilience.families.pair_costs import blend
from consilience.families.pair_fits import PairFit
from consilience.solvers.signal import no_signal_probability

if TYPE_CHECKING:
    from consilience.families.confusion.family import ConfusionFamily

__all__ = ["estimate_confusions"]

#: Below this skill of the third best source, weights cannot be trusted and equal ones are kept.
WEAK_SKILL = 0.35
#: Uneven classes make skills look smaller by up to this factor (two classes, one of them 4% of the items).
MAX_STRETCH = 2.5
#: Precision of a labeling function before anything is known.
ANCHOR = 0.8
#: A sample is enough when every accuracy is known this well; otherwise all items are used.
PRECISE = 0.005


def estimate_confusions(family: ConfusionFamily, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
    """Learn the confusions by the method asked for."""
    votes = sums["votes"].astype(np.float64)
    moments = pair_moments(sums, family.n_classes)
    if request.method == "majority":
        return Estimate(plain_vote(votes, moments, request), "majority", "asked for")
    if request.method == "labelled":
        return _labelled(sums, votes, moments, request)
    gold = sums["gold"].astype(np.float64) if "gold" in sums else None
    found = learn_dependence(moments, votes, votes_every_class(votes), request, gold)
    if found.doubt and request.method == "auto":
        return fallback(votes, moments, request, found.doubt, found.notes)
    request = replace(request, dependent=request.dependent | found.dependent)
    estimate = _by_method(sums, votes, moments, request, passes, found)
    return replace(estimate, diagnostics=(*estimate.diagnostics, *found.notes), dependent=request.dependent)


def _by_method(
    sums: Sums, votes: FloatArray, moments: PairMoments, request: Request, passes: Passes | None, found: Dependence
) -> Estimate:
    method = request.method
    if method == "auto":
        return _automatic(sums, votes, moments, request, passes, found)
    if method == "em":
        if passes is None:
            raise UnsupportedError("method='em' needs votes.")
        return _likelihood(sums, votes, moments, request, passes, found, "asked for")
    if method == "quadratic":
        return _quadratic(sums, votes, moments, request)
    solve = {
        "isotropic": closed_form.isotropic_skill,
        "triplets": closed_form.triplet_skill,
        "moments": closed_form.moment_skill,
    }[method]
    return _from_skill(solve(moments, request.dependent), sums, votes, moments, request)


def _automatic(
    sums: Sums, votes: FloatArray, moments: PairMoments, request: Request, passes: Passes | None, found: Dependence
) -> Estimate:
    full = votes_every_class(votes)
    active = votes.sum(axis=1) > 0
    if int(active.sum()) < 3:
        if request.n_gold:
            return _labelled(sums, votes, moments, request)
        return fallback(votes, moments, request, f"{int(active.sum())} source(s) vote, qualities need 3", ())
    if int((votes.sum(axis=0) > 0).sum()) == 1 and not request.n_gold:
        return fallback(votes, moments, request, "all votes are for one and the same class", ())
    judges = full & active
    if judges.all() or judges.sum() >= 3:
        skill = closed_form.triplet_skill(moments, request.dependent)
        left, right = np.nonzero(np.triu(moments.usable(request.dependent) & np.outer(judges, judges)))
        chance = no_signal_probability(moments.covariance[left, right] / moments.standard_error[left, right])
        if chance > SIGNIFICANCE and judges[active].all() and not request.n_gold:
            reason = f"the sources agree no more than chance would have them (p = {chance:.2f})"
            return fallback(votes, moments, request, reason, (no_signal(request, reason),))
        best = np.sort(np.abs(_even(skill.value if found.skill is None else found.skill, votes, moments)[judges]))[::-1]
        if judges[active].all() and active.sum() >= 5 and best[2] < WEAK_SKILL and not request.n_gold:
            reason = f"fewer than three sources carry much signal (third skill {best[2]:.2f} < {WEAK_SKILL})"
            shared = replace(request, dependent=found.harmless(request.dependent))
            return alike(votes, moments, shared, reason)
    if passes is None:
        if judges[active].all():
            closed = closed_form.moment_skill(moments, request.dependent)
            return replace(
                _from_skill(closed, sums, votes, moments, request),
                method="moments",
                reason="only moments are at hand, so pair moments instead of the likelihood",
            )
        reason = "labeling functions that vote only some classes need the votes themselves; call fit(votes)"
        return fallback(votes, moments, request, reason, ())
    kind = "every source votes every class" if judges[active].all() else "some sources vote only some classes"
    return _likelihood(sums, votes, moments, request, passes, found, kind)


def _even(skill: FloatArray, votes: FloatArray, moments: PairMoments) -> FloatArray:
    """Return what the skills would be if classes were equally frequent, up to a limit: vote shares may mislead."""
    stretch = closed_form.skill_under_prior(skill, votes, moments.scale, None)[2]
    return skill * min(stretch, MAX_STRETCH)


def agreement_anchor(agreement_of_rows: FloatArray, k: int) -> float:
    """Return one precision for all events from how often two votes on the same item agree."""
    agreeing, rows = float(agreement_of_rows[0]), float(agreement_of_rows[1])
    assumed = ANCHOR**2 + (1 - ANCHOR) ** 2 / (k - 1)
    agreement = (agreeing + 50.0 * assumed) / (rows + 50.0)
    skill = np.sqrt(max(agreement - 1.0 / k, 0.0) / (1.0 - 1.0 / k))
    return float(np.clip((1.0 + (k - 1) * skill) / k, 0.6, 0.95))


def _likelihood(
    sums: Sums,
    votes: FloatArray,
    moments: PairMoments,
    request: Request,
    passes: Passes,
    found: Dependence,
    reason: str,
) -> Estimate:
    k = votes.shape[1]
    full = votes_every_class(votes)
    # Where two labeling functions fire together their covariance says nothing about skill.
    skill = closed_form.triplet_skill(moments, request.dependent | ~np.outer(full, full))
    if found.skill is not None:  # started elsewhere, the rounds would fall for the copies
        skill = replace(skill, value=found.skill, identified=skill.identified | full)
    loading = np.sqrt(moments.scale) * skill.value
    correlation = correlation_of(moments, loading, votes, full, request.dependent)
    balance = None if isinstance(request.prior, str) else request.prior
    share = passes.n_sampled / max(passes.n_items, 1)
    sampled = share < 1.0
    model = LikelihoodModel(
        full=full,
        votes=votes * share,
        n_items=passes.n_sampled,
        anchor=ANCHOR if full.all() else agreement_anchor(passes.over_sample(row_agreement)["rows"], k),
        correlation=correlation,
        fixed_prior=fixed_prior(request, k) if full.all() else None,
    )
    accuracy = np.where(skill.identified, np.clip(closed_form.accuracy_from_skill(skill.value, k), 0.05, 0.95), 0.7)
    start = model.start(accuracy, np.full(k, 1.0 / k))
    notes: list[Diagnostic] = []
    opened = False
    if (~full).sum() >= 5 and not correlation.any() and "pairs" in sums and request.method != "em":
        opened, soft = _informative_abstention(model, start, passes, fixed_prior(request, k))
        if opened:
            model = soft
            reason += "; labeling functions fire independently given the class, so abstaining counts too"
    parameters, converged = fit_rounds(model, start, passes.over_sample)
    outer = passes.over_sample(lambda chunk: score_products(parameters, chunk))["outer"]
    fitted = with_silent(with_errors(parameters, outer, votes), votes)
    if sampled:
        worst = float(np.max(fitted.cost_standard_error[votes.sum(axis=1) > 0], initial=0.0))
        if (worst > PRECISE or request.method == "em") and passes.complete:
            model = replace(model, votes=votes, n_items=passes.n_items)
            parameters, converged = fit_rounds(model, parameters, passes.over_all)
            fitted = with_silent(with_errors(parameters, outer, votes, scale=1.0 / share), votes)
            used = f"all {passes.n_items:,} items after a start on {passes.n_sampled:,}"
        else:
            used = f"a seeded sample of {passes.n_sampled:,} of {passes.n_items:,} items"
        notes.append(polished(used, "an error rate", worst, PRECISE))
    if not converged:
        notes.append(not_converged())
    if request.method == "auto":
        fitted = drawn_together(fitted, votes, moments, request.dependent, fixed_prior(request, k) is not None)
    if balance is not None and not full.all() and not opened:
        fitted = replace(fitted, shift=np.log(np.maximum(balance, 1e-6)) - np.log(fitted.prior))
    return Estimate(fitted, "em", reason, tuple(notes))


def _informative_abstention(
    model: LikelihoodModel, start: ConfusionParameters, passes: Passes, fixed_prior: FloatArray | None
) -> tuple[bool, LikelihoodModel]:
    """Test whether sources fire independently given the class; only then is abstaining evidence."""
    soft = replace(model, strength=0.1, informative_abstention=True, fixed_prior=fixed_prior)
    parameters, _ = fit_rounds(soft, start, passes.over_sample)
    expected = passes.over_sample(lambda chunk: expected_counts(parameters, chunk))
    pairs = passes.over_sample(lambda chunk: Sums({"pairs": event_pairs(chunk, model.n_classes)}))["pairs"]
    misfit = cofiring_misfit(parameters, expected["counts"], expected["classes"], pairs, passes.n_sampled)
    return misfit < 1.5, soft


def _from_skill(skill: PairFit, sums: Sums, votes: FloatArray, moments: PairMoments, request: Request) -> Estimate:
    k = votes.shape[1]
    value, prior, stretch = skill.value, fixed_prior(request, k), 1.0
    if request.method != "isotropic":
        value, prior, stretch = closed_form.skill_under_prior(skill.value, votes, moments.scale, prior)
    elif prior is None:
        prior = closed_form.prior_from_shares(votes, closed_form.accuracy_from_skill(value, k))
    accuracy = closed_form.accuracy_from_skill(value, k)
    error = skill.standard_error * stretch * (k - 1) / k
    if "gold" in sums:
        accuracy, error = blend(accuracy, error, *_gold_accuracy(sums["gold"].astype(np.float64)))
    table = one_coin_tables(accuracy, k)
    if k == 2:  # two classes: the covariance fixes both rates once the prior is known
        mean = votes[:, 1] / np.maximum(votes.sum(axis=1), 1.0)
        gap = 2 * accuracy - 1
        table[:, 1, 1] = np.clip(mean + prior[0] * gap, 1e-3, 1 - 1e-3)
        table[:, 1, 0] = np.clip(mean - prior[1] * gap, 1e-3, 1 - 1e-3)
        table[:, 0] = 1.0 - table[:, 1]
    notes = unidentified(skill.identified, votes.sum(axis=1) > 0, request)
    if not np.isfinite(error[votes.sum(axis=1) > 0]).any():
        return equal_weights(votes, moments, request, notes)
    parameters = parameters_of(table, accuracy, prior, error, votes, moments, request)
    return Estimate(parameters, request.method, "asked for", notes)


def _quadratic(sums: Sums, votes: FloatArray, moments: PairMoments, request: Request) -> Estimate:
    k = votes.shape[1]
    skill = closed_form.triplet_skill(moments, request.dependent)
    _, prior, stretch = closed_form.skill_under_prior(skill.value, votes, moments.scale, fixed_prior(request, k))
    if "pairs" not in sums:
        raise UnsupportedError(
            f"method='quadratic' keeps a table of {len(votes)} x {k} events squared, too large here. "
            "Use 'moments' or 'em'."
        )
    pairs = sums["pairs"].sum(axis=0).astype(np.float64)
    table, identified = closed_form.quadratic_tables(moments, pairs, votes, prior, request.dependent)
    accuracy = np.einsum("acc,c->a", table, prior)
    error = skill.standard_error * stretch * (k - 1) / k
    if "gold" in sums:
        accuracy, error = blend(accuracy, error, *_gold_accuracy(sums["gold"].astype(np.float64)))
    notes = unidentified(identified, votes.sum(axis=1) > 0, request)
    if not (identified & (votes.sum(axis=1) > 0)).any():
        return equal_weights(votes, moments, request, notes)
    parameters = parameters_of(table, accuracy, prior, error, votes, moments, request)
    return Estimate(parameters, "quadratic", "asked for", notes)


def _labelled(sums: Sums, votes: FloatArray, moments: PairMoments, request: Request) -> Estimate:
    if "gold" not in sums:
        raise needs_gold()
    k = votes.shape[1]
    gold = sums["gold"].astype(np.float64)
    seen = gold.sum(axis=(1, 2))
    right = np.einsum("acc->a", gold)
    accuracy = (right + 7.0) / (seen + 10.0)
    table = gold + 10.0 * one_coin_tables(accuracy, k)
    table /= gold.sum(axis=1)[:, None, :] + 10.0
    prior = fixed_prior(request, k)
    if prior is None:
        prior = (sums["gold_classes"] + 1.0) / (sums["gold_classes"].sum() + k)
    error = np.sqrt(accuracy * (1 - accuracy) / np.maximum(seen, 1.0))
    error = np.where(seen > 0, error, np.inf)
    parameters = parameters_of(table, accuracy, prior, error, votes, moments, request)
    return Estimate(parameters, "labelled", f"{request.n_gold} known labels")


def _gold_accuracy(gold: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return accuracy and standard error from the votes on known items."""
    seen = gold.sum(axis=(1, 2))
    accuracy = (np.einsum("acc->a", gold) + 1.0) / (seen + 2.0)
    error = np.sqrt(accuracy * (1 - accuracy) / np.maximum(seen, 1.0))
    return accuracy, np.where(seen > 0, error, np.inf)
