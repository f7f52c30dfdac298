"""How similar each source of texts is to the truth, learned from how similar sources are to each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Diagnostic, Estimate, Request, Sums
from consilience.families.findings import SHARED_VOTE, dependent_pairs, fell_back, needs_gold, unidentified
from consilience.families.pair_costs import blend, gold_costs, pair_costs
from consilience.families.similarity import nothing_in_common
from consilience.families.texts import LEAST, MOST, TextParameters
from consilience.solvers.near_copies import find_near_copies

if TYPE_CHECKING:
    from consilience.families.texts import TextFamily

__all__ = ["estimate_texts"]

#: Pseudo-items that draw a source to the average one.
PSEUDO_ITEMS = 5.0
MOST_ROUNDS, STILL = 200, 1e-5
REASON = "similarities of pairs as products of one number per source"


@dataclass(frozen=True)
class _Problem:
    family: TextFamily
    sums: Sums
    request: Request
    copied: BoolArray
    correlation: FloatArray

    @property
    def active(self) -> BoolArray:
        active: BoolArray = np.diag(self.sums["both"]) > 0
        return active

    @property
    def level(self) -> float:
        """Mean similarity of two votes on an item."""
        total, items = self.sums["mean_similarity"]
        return float(total / items) if items > 0 else 0.5


def estimate_texts(family: TextFamily, sums: Sums, request: Request) -> Estimate:
    """Learn similarities and weights by the method asked for."""
    copies = find_near_copies(sums["pair_shares"])
    none = np.zeros_like(copies.copied)
    given = np.where(request.dependent, copies.closeness, 0.0)
    problem = _Problem(family, sums, request, none | request.dependent, given)
    if request.method == "majority":
        return Estimate(_equal(problem), "majority", "asked for")
    if request.method == "labelled":
        return _labelled(problem)
    if request.method == "auto":
        reason, notes = nothing_in_common(sums, family.unrelated, request)
        if reason:
            if request.n_gold:
                return _labelled(problem)
            return Estimate(_equal(problem), "majority", reason, (*notes, fell_back(reason)))
    if request.learn and copies.copied.any():
        dependent = request.dependent | copies.copied
        problem = replace(problem, copied=dependent, correlation=np.where(copies.copied, 1.0, given))
        left, right = np.nonzero(np.triu(copies.copied))
        note = dependent_pairs(left, right, request, SHARED_VOTE)
        return replace(_products(problem, f"{REASON}, copied votes shared", (note,)), dependent=dependent)
    return _products(problem, REASON if request.method == "auto" else "asked for")


def _products(problem: _Problem, reason: str, notes: tuple[Diagnostic, ...] = ()) -> Estimate:
    """Fit similarities as products, and weigh the sources by them."""
    sums, level = problem.sums, problem.level
    used = ~problem.copied
    np.fill_diagonal(used, False)
    product = (sums["product"][0] + level * sums["product"][1]) * used
    square = (sums["square"][0] + level * sums["square"][1] + level**2 * sums["square"][2]) * used
    partners = sums["partners"] * used
    factor = _factors(product, square, partners)
    similarity = np.clip(factor * np.sqrt(max(level, 0.01)), LEAST, MOST)
    error = _errors(problem, similarity, used)
    if "gold_count" in sums:
        _, told, told_error = gold_costs(sums)
        similarity, error = blend(similarity, error, np.clip(1.0 - told, LEAST, MOST), told_error)
        reason = f"{reason}; {problem.request.n_gold} known labels"
    identified = (partners > 0).sum(axis=1) >= 2
    found = unidentified(identified, problem.active, problem.request)
    return Estimate(_parameters(problem, similarity, error), "moments", reason, (*notes, *found))


def _factors(product: FloatArray, square: FloatArray, partners: FloatArray) -> FloatArray:
    """Solve ``similarity = item x factor[a] x factor[b]`` by damped alternating least squares; the mean factor is 1."""
    met = partners.sum(axis=1)
    factor = np.ones(len(met))
    if met.sum() <= 0:
        return factor
    for _ in range(MOST_ROUNDS):
        below = square @ factor**2
        usual = below.sum() / met.sum()
        better = (product @ factor + PSEUDO_ITEMS * usual) / np.maximum(below + PSEUDO_ITEMS * usual, 1e-300)
        better = np.clip(better, 0.05, 3.0)
        better = better / np.average(better, weights=met)
        moved = float(np.abs(better - factor).max())
        factor = 0.5 * (factor + better)
        if moved < STILL:
            break
    return factor


def _errors(problem: _Problem, similarity: FloatArray, used: BoolArray) -> FloatArray:
    """Return the standard errors of the similarities: by groups of items, the other sources held fixed."""
    pairs = pair_costs(problem.sums)
    weight = np.where(used, pairs.count, 0.0) * similarity[None, :]
    below = (weight * similarity[None, :]).sum(axis=1)
    influence = (pairs.cost_influence * weight[None]).sum(axis=2) / np.maximum(below, 1e-300)
    error = np.sqrt((influence**2).sum(axis=0))
    known = problem.active & (below > 0) & np.isfinite(error)
    return np.where(known, np.maximum(error, 1e-4), np.inf)


def _parameters(problem: _Problem, similarity: FloatArray, error: FloatArray) -> TextParameters:
    if problem.active.any():
        similarity = np.where(problem.active, similarity, similarity[problem.active].mean())
    # Where texts have little in common, sources that agree may do so for any reason: their weights are drawn together.
    temper = min(1.0, 2.0 * problem.level)
    weight = (similarity / (1.0 - similarity**2)) ** temper
    return TextParameters(similarity, np.where(problem.active, error, np.inf), weight, problem.correlation)


def _equal(problem: _Problem) -> TextParameters:
    m = len(problem.active)
    usual = float(np.clip(np.sqrt(max(problem.level, 0.0)), LEAST, MOST))
    return TextParameters(np.full(m, usual), np.full(m, np.inf), np.ones(m), problem.correlation)


def _labelled(problem: _Problem) -> Estimate:
    if "gold_count" not in problem.sums:
        raise needs_gold()
    count, cost, error = gold_costs(problem.sums)
    average = np.average(cost, weights=count) if count.sum() > 0 else 0.5
    similarity = np.clip(1.0 - (cost * count + 2.0 * average) / (count + 2.0), LEAST, MOST)
    weight = similarity / (1.0 - similarity**2)
    parameters = TextParameters(similarity, error, weight, problem.correlation)
    return Estimate(parameters, "labelled", f"{problem.request.n_gold} known labels")
