"""How misses, false marks and noise of sources of boxes and spans are learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Chunk, Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.element_rounds import visibility_nodes
from consilience.families.elements import VISIBILITY, ElementParameters
from consilience.families.findings import (
    SHARED_VOTE,
    dependent_pairs,
    fell_back,
    needs_gold,
    not_converged,
    unidentified,
)
from consilience.families.pair_costs import pair_costs
from consilience.families.pair_fits import product_fit
from consilience.families.similarity import nothing_in_common
from consilience.solvers.near_copies import find_near_copies

if TYPE_CHECKING:
    from consilience.families.elements import ElementFamily

__all__ = ["estimate_elements"]

#: Rounds at least, so that places and classes come to rest, and at most; a step below which a round changes nothing.
FEWEST_ROUNDS, MOST_ROUNDS, STILL = 7, 100, 2e-3
#: Pseudo-items or -elements that draw a source to the average of all.
FALSE_ITEMS, NOISE_ELEMENTS, QUALITY_ITEMS = 3.0, 8.0, 3.0
#: Noise of corners where no two marks are matched, and the least that a source has, as a share of the usual.
USUAL_NOISE, LEAST_NOISE = 0.1, 0.2
#: Sources that nothing is known about: log-odds of marking a real element, and share of real ones among the seen.
USUAL_LOGIT, USUAL_FALSE_RATE, USUAL_SHARE = 1.0, 0.5, 0.5
WITH_COPIES = "misses, private false marks and places by EM over matched elements, copied votes shared"
ALONE = "misses, private false marks and places by EM over matched elements"


@dataclass(frozen=True)
class _Problem:
    family: ElementFamily
    sums: Sums
    request: Request
    correlation: FloatArray

    @property
    def votes(self) -> FloatArray:
        return np.diag(self.sums["both"]).astype(np.float64)

    @property
    def active(self) -> BoolArray:
        return self.votes > 0

    def start(self) -> ElementParameters:
        """Return sources that nothing is known about."""
        m = len(self.votes)
        usual = self.family.from_weights(np.ones(m), self.request)
        return replace(
            usual,
            logit=np.full(m, USUAL_LOGIT),
            false_rate=np.full(m, USUAL_FALSE_RATE),
            cost=np.full(m, 0.5),
            cost_error=np.full(m, np.inf),
            correlation=self.correlation,
            real_share=USUAL_SHARE,
        )


def estimate_elements(family: ElementFamily, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
    """Learn the parameters by the method asked for."""
    copies = find_near_copies(sums["pair_shares"])
    given = np.where(request.dependent, copies.closeness, 0.0)
    problem = _Problem(family, sums, request, given)
    method = request.method
    if method == "majority":
        return Estimate(_equal(problem, passes), "majority", "asked for")
    if method == "labelled":
        return _labelled(problem, passes)
    if method == "moments":
        return _from_pairs(problem, "asked for")
    if method == "auto":
        reason, notes = _nothing_to_learn(problem)
        if reason and not request.n_gold:
            return Estimate(_equal(problem, passes), "majority", reason, (*notes, fell_back(reason)))
    notes = ()
    dependent = None
    if request.learn and copies.copied.any():
        problem = replace(problem, correlation=np.where(copies.copied, 1.0, given))
        left, right = np.nonzero(np.triu(copies.copied))
        notes = (dependent_pairs(left, right, request, SHARED_VOTE),)
        dependent = request.dependent | copies.copied
    if passes is None:
        return replace(_from_pairs(problem, "only sums of pair costs are at hand", notes), dependent=dependent)
    parameters, still = _iterated(problem, passes.over_sample, lambda chunk: chunk)
    if not still:
        notes = (*notes, not_converged())
    reason = "asked for" if method == "em" else (ALONE if dependent is None else WITH_COPIES)
    if request.n_gold:
        reason = f"{reason}; {request.n_gold} known labels among the items"
    return Estimate(parameters, "em", reason, notes, dependent)


def _nothing_to_learn(problem: _Problem) -> tuple[str, tuple[Diagnostic, ...]]:
    """Return why the votes cannot tell sources apart, or nothing."""
    if problem.active.any() and problem.sums["marks"].sum() == 0:
        return "nobody marks anything", ()
    return nothing_in_common(problem.sums, problem.family.unrelated, problem.request)


def _iterated(
    problem: _Problem,
    over: Callable[[Callable[[Chunk], Sums]], Sums],
    chosen: Callable[[Chunk], Chunk],
    *,
    pooled: bool = False,
) -> tuple[ElementParameters, bool]:
    """Go round until nothing moves; with `pooled` all sources are one and the same."""
    parameters = problem.start()
    for number in range(MOST_ROUNDS):
        sums = over(partial(_round, problem.family, parameters, chosen))
        if "hits" not in sums:
            return parameters, True
        parameters, step = _improved(problem, parameters, sums, pooled)
        if number + 1 >= FEWEST_ROUNDS and step < STILL:
            return parameters, True
    return parameters, False


def _round(
    family: ElementFamily, parameters: ElementParameters, chosen: Callable[[Chunk], Chunk], chunk: Chunk
) -> Sums:
    return family.round(parameters, chosen(chunk))


def _improved(problem: _Problem, known: ElementParameters, sums: Sums, pooled: bool) -> tuple[ElementParameters, float]:
    """Return better parameters, and how far the probabilities of marking moved."""
    votes, m = problem.votes, len(problem.votes)
    share = votes / max(votes.sum(), 1.0)
    visibility, _ = visibility_nodes(VISIBILITY)
    chance = 1.0 / (1.0 + np.exp(-(known.logit[:, None] + visibility)))
    gradient = sums["hits"] - (sums["exposure"] * chance).sum(axis=1)
    curvature = (sums["exposure"] * chance * (1.0 - chance)).sum(axis=1)
    if pooled:
        step = np.full(m, np.clip(gradient.sum() / (curvature.sum() + 1.0), -1.0, 1.0))
    else:
        # Every source is drawn to the average one, as strongly as by one element of the most telling visibility.
        gradient = gradient - (known.logit - share @ known.logit)
        step = np.clip(gradient / (curvature + 1.0), -1.0, 1.0)
    logit = np.clip(known.logit + step, -6.0, 6.0)
    false_level = sums["false"].sum() / max(votes.sum(), 1.0) + 1e-3
    false_rate = (sums["false"] + FALSE_ITEMS * false_level) / (votes + FALSE_ITEMS)
    noise = _noise(sums["gaps"], known.correlation > 0)
    noise_level = float(share @ noise)
    class_level = _ratio(sums["right_class"].sum(), sums["judged"].sum(), 0.9)
    accuracy = (sums["right_class"] + NOISE_ELEMENTS * class_level) / (sums["judged"] + NOISE_ELEMENTS)
    if pooled:
        false_rate, noise, accuracy = (np.full(m, level) for level in (false_level, noise_level, class_level))
    precision, recall = _rates(sums)
    cost, error = _costs(sums, problem.active, pooled)
    better = ElementParameters(
        logit=logit,
        false_rate=false_rate,
        noise=noise,
        class_accuracy=np.clip(accuracy, 0.0, 1.0),
        precision=np.full(m, share @ precision) if pooled else precision,
        recall=np.full(m, share @ recall) if pooled else recall,
        cost=cost,
        cost_error=error,
        correlation=known.correlation,
        real_share=float(np.clip((sums["real"] + 1.0) / (sums["elements"] + 2.0), 0.01, 0.99)),
    )
    rate, before = (1.0 / (1.0 + np.exp(-level)) for level in (logit, known.logit))
    return better, float(4.0 * np.abs(rate - before).max(initial=0.0))


def _noise(gaps: FloatArray, copied: BoolArray) -> FloatArray:
    """Return the mean distance of corners from where they belong: squares add up between two sources.

    Nothing is measured against a consensus, in which the best source would find mostly itself.
    """
    m = len(copied)
    met, total = gaps[0, :m, :m] * ~copied, gaps[1, :m, :m] * ~copied
    square = np.where(met > 0, total / np.maximum(met, 1e-300), 0.0) ** 2
    told = gaps[0, :m, m]  # the truth has no noise of its own
    told_square = np.where(told > 0, gaps[1, :m, m] / np.maximum(told, 1e-300), 0.0) ** 2
    seen = met.sum() + told.sum()
    if seen <= 0.0:
        return np.full(m, USUAL_NOISE)
    level = float((0.5 * met * square).sum() + (told * told_square).sum()) / seen
    matrix = np.diag(met.sum(axis=1) + told + NOISE_ELEMENTS) + met
    right = (met * square).sum(axis=1) + told * told_square + NOISE_ELEMENTS * level
    variance = np.linalg.solve(matrix, right)
    noise: FloatArray = np.sqrt(np.maximum(variance, LEAST_NOISE**2 * level))
    return np.maximum(noise, 1e-6)


def _rates(sums: Sums) -> tuple[FloatArray, FloatArray]:
    """Return precision and recall of every source, drawn to those of all."""
    hits, marks, real = sums["hits"], sums["hits"] + sums["false"], sums["exposure"].sum(axis=1)
    precision, recall = _ratio(hits.sum(), marks.sum(), 0.5), _ratio(hits.sum(), real.sum(), 0.5)
    return (
        np.clip((hits + QUALITY_ITEMS * precision) / (marks + QUALITY_ITEMS), 0.0, 1.0),
        np.clip((hits + QUALITY_ITEMS * recall) / (real + QUALITY_ITEMS), 0.0, 1.0),
    )


def _costs(sums: Sums, active: BoolArray, pooled: bool) -> tuple[FloatArray, FloatArray]:
    """Return one minus the F1 between the votes of each source and the truth, and its standard error."""
    twice, size = sums["twice_common"], sums["both_sizes"]
    total = size.sum(axis=0)
    level = _ratio(twice.sum(), total.sum(), 0.5)
    weight = QUALITY_ITEMS * _ratio(total.sum(), float(active.sum()), 1.0) / 100.0
    right = (twice.sum(axis=0) + weight * level) / np.maximum(total + weight, 1e-300)
    filled = (size > 0).sum(axis=0)
    influence = (twice - right * size) / np.maximum(total, 1e-300)
    error = np.sqrt((influence**2).sum(axis=0) * filled / np.maximum(filled - 1, 1))
    error = np.where(active & (filled > 1), np.maximum(error, 1e-4), np.inf)
    if pooled:
        right, error = np.full(len(total), level), np.full(len(total), np.inf)
    return np.clip(1.0 - np.where(active, right, level), 1e-4, 1.0), error


def _ratio(above: float, below: float, otherwise: float) -> float:
    return float(above / below) if below > 0 else otherwise


def _equal(problem: _Problem, passes: Passes | None) -> ElementParameters:
    """Return sources that are all alike: pooled over the votes where these are at hand."""
    if passes is None or problem.sums["marks"].sum() == 0:
        return problem.start()
    return _iterated(problem, passes.over_sample, lambda chunk: chunk, pooled=True)[0]


def _labelled(problem: _Problem, passes: Passes | None) -> Estimate:
    if passes is None or "gold_count" not in problem.sums:
        raise needs_gold()
    parameters, _ = _iterated(problem, passes.over_sample, _only_known)
    return Estimate(parameters, "labelled", f"{problem.request.n_gold} known labels")


def _only_known(chunk: Chunk) -> Chunk:
    rows = chunk.gold_rows
    return replace(
        chunk,
        labels=chunk.labels[rows],
        observed=chunk.observed[rows],
        groups=chunk.groups[rows],
        known=None if chunk.known is None else chunk.known[rows],
        is_known=None if chunk.is_known is None else chunk.is_known[rows],
        items=None if chunk.items is None else chunk.items[rows],
    )


def _from_pairs(problem: _Problem, reason: str, notes: tuple[Diagnostic, ...] = ()) -> Estimate:
    """Learn one F1 per source from pair costs: the similarity of two sources is the product of theirs to the truth."""
    pairs = pair_costs(problem.sums)
    usable = pairs.usable(problem.request.dependent | (problem.correlation > 0))
    if not usable.any():
        found = "no two independent sources vote on the same items"
        return Estimate(problem.start(), "moments", reason, (*notes, fell_back(found)))
    fit = product_fit(1.0 - pairs.cost, pairs.cost_error, pairs.cost_influence, usable, 1.0, 1.0)
    right = np.clip(fit.value, 0.02, 0.98)
    if problem.active.any():
        right = np.where(problem.active, right, right[problem.active].mean())
    weight = problem.family.weight_from_cost(1.0 - right)
    parameters = replace(
        problem.family.from_weights(weight, problem.request),
        cost_error=np.where(problem.active, fit.standard_error, np.inf),
        correlation=problem.correlation,
    )
    found_out = unidentified(fit.identified, problem.active, problem.request)
    return Estimate(parameters, "moments", reason, (*notes, *found_out))
