"""Which estimate for sources that tag sequences: positions are classes, and the chain is learned from the votes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Estimate, Passes, Request, Sums
from consilience.families.confusion import ConfusionFamily, ConfusionParameters, closed_form
from consilience.families.confusion.dependence import learn_dependence
from consilience.families.confusion.estimation import estimate_confusions
from consilience.families.confusion.likelihood import LikelihoodModel
from consilience.families.confusion.pair_moments import PairMoments, pair_moments
from consilience.families.findings import SIGNIFICANCE, fell_back, no_signal
from consilience.families.polishing import finish
from consilience.families.tags.likelihood import clustered_errors
from consilience.families.tags.parameters import SequenceParameters
from consilience.families.tags.sequence_likelihood import SequenceFit, chain_law, fit_sequences, sequence_scores
from consilience.families.tags.tokens import TokenPasses
from consilience.solvers.signal import no_signal_probability

__all__ = ["estimate_sequences"]

#: Below this skill of the third best source, weights cannot be trusted and equal ones are kept.
WEAK_SKILL = 0.35
#: A sample is enough when every weight is known this well; otherwise all items are used.
PRECISE = 0.03

Masks = tuple[BoolArray, BoolArray]


def estimate_sequences(
    classes: ConfusionFamily, masks: Masks | None, sums: Sums, request: Request, passes: Passes | None
) -> Estimate:
    """Learn confusions by the method asked for, and the chain where `masks` say what is possible in it."""
    positions = Sums(
        {name.removeprefix("position_"): part for name, part in sums.parts.items() if name.startswith("position_")}
    )
    votes = positions["votes"].astype(np.float64)
    moments = pair_moments(positions, classes.n_classes)
    if request.learn and request.method not in ("majority", "labelled"):
        return _learning(classes, masks, sums, request, passes, moments, positions)
    seen = TokenPasses(passes, int(positions["items"])) if passes is not None else None
    if request.method == "em" and passes is not None:
        return _likelihood(votes, moments, masks, request, passes, seen, "asked for")
    if request.method != "auto":
        found = estimate_confusions(classes, positions, request, seen)
        return _with_chain(found, votes, masks, request, passes)
    reason = _nothing_to_learn(votes, moments, request)
    if reason is not None:
        if request.n_gold and votes.any():
            found = estimate_confusions(classes, positions, replace(request, method="labelled"), seen)
            return _with_chain(found, votes, masks, request, passes)
        found = estimate_confusions(classes, positions, replace(request, method="majority"), seen)
        notes = [fell_back(reason)] + [no_signal(request, reason)] * ("chance" in reason)
        return _with_chain(replace(found, reason=reason, diagnostics=tuple(notes)), votes, masks, request, passes)
    if passes is None:
        found = estimate_confusions(classes, positions, replace(request, method="moments"), None)
        told = "only moments are at hand, so pair moments instead of the likelihood"
        if masks is not None:
            told += "; tags follow each other as their frequencies have it, as the chain needs votes"
        return _with_chain(replace(found, method="moments", reason=told), votes, masks, request, None)
    told = "every source tags every position"
    return _likelihood(votes, moments, masks, request, passes, seen, told)


def _learning(
    classes: ConfusionFamily,
    masks: Masks | None,
    sums: Sums,
    request: Request,
    passes: Passes | None,
    moments: PairMoments,
    positions: Sums,
) -> Estimate:
    """Find sources that copy each other, position by position, and go on as if these pairs had been given."""
    votes = positions["votes"].astype(np.float64)
    gold = positions["gold"].astype(np.float64) if "gold" in positions else None
    found = learn_dependence(moments.clustered(), votes, np.ones(len(votes), dtype=bool), request, gold)
    told = replace(request, dependent=request.dependent | found.dependent, learn=False)
    if found.doubt and request.method == "auto":
        estimate = estimate_sequences(classes, masks, sums, replace(told, method="majority"), passes)
        return replace(estimate, reason=found.doubt, diagnostics=(fell_back(found.doubt), *found.notes))
    estimate = estimate_sequences(classes, masks, sums, told, passes)
    return replace(estimate, diagnostics=(*estimate.diagnostics, *found.notes), dependent=told.dependent)


def _nothing_to_learn(votes: FloatArray, moments: PairMoments, request: Request) -> str | None:
    """Return why qualities cannot be learned without known labels, or None if they can."""
    active = votes.sum(axis=1) > 0
    count = int(active.sum())
    if count < 3:
        return f"{count} source(s) vote, qualities need 3"
    if request.n_gold:
        return None
    if int((votes.sum(axis=0) > 0).sum()) == 1:
        return "all votes are for one and the same tag"
    left, right = np.nonzero(np.triu(moments.usable(request.dependent)))
    chance = no_signal_probability(moments.covariance[left, right] / moments.standard_error[left, right])
    if chance > SIGNIFICANCE:
        return f"the sources agree no more than chance would have them (p = {chance:.2f})"
    skill = closed_form.triplet_skill(moments, request.dependent)
    corrected = closed_form.skill_under_prior(skill.value, votes, moments.scale, None)[0]
    best = np.sort(np.abs(corrected[active]))[::-1]
    if count >= 5 and best[2] < WEAK_SKILL:
        return f"fewer than three sources carry much signal (third skill {best[2]:.2f} < {WEAK_SKILL})"
    return None


def _model(votes: FloatArray, correlation: FloatArray, n_items: int) -> LikelihoodModel:
    full = np.ones(len(votes), dtype=bool)  # a tagger that never gives a tag does so on purpose
    return LikelihoodModel(full, votes, n_items, anchor=0.8, correlation=correlation)


def _likelihood(
    votes: FloatArray,
    moments: PairMoments,
    masks: Masks | None,
    request: Request,
    passes: Passes,
    seen: TokenPasses | None,
    reason: str,
) -> Estimate:
    k = votes.shape[1]
    positions = seen.n_sampled if seen is not None else 0
    skill = closed_form.triplet_skill(moments, request.dependent)
    corrected, prior, _ = closed_form.skill_under_prior(skill.value, votes, moments.scale, None)
    correlation = moments.correlation(np.sqrt(moments.scale) * skill.value, request.dependent)
    model = _model(votes, correlation, positions)
    accuracy = closed_form.accuracy_from_skill(corrected, k)
    accuracy = np.where(skill.identified, np.clip(accuracy, 0.05, 0.95), 0.7)
    start = SequenceParameters.of(model.start(accuracy, prior))
    if masks is not None:
        start = _chained(start, masks)

    def with_errors(fit: SequenceFit, scale: float) -> SequenceFit:
        at = fit.parameters
        found = passes.over_sample(lambda chunk: sequence_scores(at, chunk))
        error = clustered_errors(
            found["single"], found["clustered"], at.accuracy, votes.sum(axis=1), at.correlation > 0, scale
        )
        return SequenceFit(replace(at, cost_standard_error=error), fit.converged)

    fit = with_errors(fit_sequences(model, masks, start, passes.over_sample), 1.0)
    scale = passes.n_items / max(passes.n_sampled, 1)
    fit, notes = finish(
        passes,
        fit,
        lambda so_far: with_errors(fit_sequences(model, masks, so_far.parameters, passes.over_all), scale),
        votes.sum(axis=1) > 0,
        PRECISE,
    )
    if masks is not None:
        reason += "; first tags and steps from tag to tag are learned with the qualities"
    return Estimate(_with_silent(fit.parameters, votes), "em", reason, notes)


def _with_silent(parameters: SequenceParameters, votes: FloatArray) -> SequenceParameters:
    """Give sources that never vote the average accuracy of the others."""
    active = votes.sum(axis=1) > 0
    if active.all() or not active.any():
        return parameters
    return replace(parameters, accuracy=np.where(active, parameters.accuracy, parameters.accuracy[active].mean()))


def _chained(parameters: SequenceParameters, masks: Masks) -> SequenceParameters:
    """Start a chain in which tags follow each other as their frequencies have it."""
    initial, transition = chain_law(
        100.0 * parameters.prior, 100.0 * np.tile(parameters.prior, (len(parameters.prior), 1)), masks
    )
    return replace(parameters, initial=initial, transition=transition)


def _with_chain(
    found: Estimate, votes: FloatArray, masks: Masks | None, request: Request, passes: Passes | None
) -> Estimate:
    """Return an estimate of confusions as one of sequences; the chain is learned with the confusions kept."""
    if not isinstance(found.parameters, ConfusionParameters):
        raise TypeError("classes have other parameters")
    parameters = SequenceParameters.of(found.parameters)
    if masks is None:
        return replace(found, parameters=parameters)
    parameters = _chained(parameters, masks)
    if passes is not None and votes.any():
        model = _model(votes, parameters.correlation, int(votes.sum()))
        parameters = fit_sequences(model, masks, parameters, passes.over_sample, chain_only=True).parameters
    return replace(found, parameters=parameters)
