"""Which sources of scores err together: exact copies, near copies and groups, learned from the correlations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import Diagnostic, Request
from consilience.families.gaussian_moments import pair_influence
from consilience.families.gaussian_problem import Problem
from consilience.solvers.factor import positive_definite
from consilience.solvers.noise_graphs import GraphProblem, best_graph, proper, rival_of

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianParameters

__all__ = ["Learned", "copies_note", "dependent_note", "exact_copies", "learned_graph", "sharing"]

#: Graphs are searched from 5 sources on, as 4 fit one edge and the opposite one alike, up to so many.
FEWEST, MOST = 5, 60
#: Items on which both sources of a pair vote, before they can be found to err together, and to be exact copies.
MIN_ITEMS, MIN_COPIED = 12, 30
#: Variances of correlations beyond this many times those of Gaussian votes are acted on.
TOLERATED = 1.5
#: Correlation of the noise of exact copies: as close to one as the noise stays a proper covariance.
COPIED = 0.98


@dataclass(frozen=True)
class Learned:
    """Dependent pairs ``(m, m)`` beyond the given ones; with two groups where the votes do not tell which errs.

    `rival` are the pairs under the opposite explanation.
    """

    graph: BoolArray
    groups: tuple[IntArray, IntArray] | None = None
    rival: BoolArray | None = None


def exact_copies(problem: Problem) -> BoolArray:
    """Return pairs ``(m, m)`` with the same vote on every item they share."""
    moments = problem.moments
    least = 1e-12 * np.minimum.outer(moments.variance, moments.variance)
    same: BoolArray = (moments.squared_difference <= least) & problem.usable & (moments.count >= MIN_COPIED)
    return same


def sharing(parameters: GaussianParameters, copies: BoolArray) -> GaussianParameters:
    """Return parameters under which copies have one vote together."""
    if not copies.any():
        return parameters
    variance = parameters.noise_variance
    between = np.where(copies, COPIED * np.sqrt(np.outer(variance, variance)), 0.0)
    return replace(parameters, noise=positive_definite(between, variance), dependent=copies)


def learned_graph(problem: Problem) -> Learned:
    """Return the pairs that agree beyond what their lines explain, by the BIC over candidate graphs.

    Standard errors are those of Gaussian votes, enlarged by what groups of items show: heavy tails and rows that
    belong to one item make correlations less certain. With independent noise some pair is named in about 1% of fits.
    """
    m = len(problem.active)
    nobody = np.zeros((m, m), dtype=bool)
    usable = problem.usable & (problem.moments.count >= MIN_ITEMS)
    chosen = np.flatnonzero(usable.any(axis=1))
    if not FEWEST <= len(chosen) <= MOST:
        return Learned(nobody)
    inner = np.ix_(chosen, chosen)
    count = problem.moments.count[inner]
    linked = usable[inner]
    if not GraphProblem(count, count, linked, linked, 1.0).allows(np.zeros_like(linked)):
        return Learned(nobody)
    even = problem.moments.complete
    correlation = np.where(linked | problem.dependent[inner], _on_shared_items(problem)[inner], 0.0)
    np.fill_diagonal(correlation, 1.0)
    correlation = correlation if even else proper(correlation)
    error = np.sqrt((1.0 + correlation**2) / np.maximum(count, 1.0))
    items = 1.0 / float(np.mean(1.0 / count[linked]))
    graphs = GraphProblem(correlation, error, linked, problem.dependent[inner], items, even)
    found = best_graph(graphs)
    if not found.graph.any():
        return Learned(nobody)
    inflation = _inflation(problem, usable)[inner]
    if float(inflation[linked].max()) > TOLERATED:
        graphs = replace(graphs, error=error * np.sqrt(inflation), items=items / float(np.median(inflation[linked])))
        found = best_graph(graphs)
    graph = _spread(found.graph, chosen, m)
    rival = rival_of(graphs, found) if found.graph.any() else None
    # One edge more or less is no reason to prefer one side to the other.
    if rival is None or rival[2].criterion - found.criterion > np.log(max(graphs.items, 2.0)):
        return Learned(graph)
    return Learned(graph, (chosen[rival[1]], chosen[rival[0]]), _spread(rival[2].graph, chosen, m))


def _on_shared_items(problem: Problem) -> FloatArray:
    """Return correlations over the items on which both vote, by the variances over the same items."""
    sums = problem.sums
    items = np.maximum(sums["both"], 1)
    spread = np.maximum((sums["square"] / items - (sums["total"] / items) ** 2).astype(np.float64), 1e-300)
    correlation: FloatArray = np.clip(problem.moments.covariance / (np.sqrt(spread) * np.sqrt(spread.T)), -1.0, 1.0)
    return correlation


def _spread(graph: BoolArray, chosen: IntArray, m: int) -> BoolArray:
    whole = np.zeros((m, m), dtype=bool)
    whole[np.ix_(chosen, chosen)] = graph
    return whole


def _inflation(problem: Problem, usable: BoolArray) -> FloatArray:
    """Return by what factor the variances of the correlations exceed those of Gaussian votes, ``(m, m)``."""
    if problem.passes is None:
        return np.ones(usable.shape)
    unit = np.outer(problem.scale, problem.scale)
    error = problem.correlation_error
    influence = pair_influence(problem.moments, error * unit, "covariance", problem.passes) / unit
    ratio = (influence**2).sum(axis=0) / error**2
    own = np.array([np.median(row[use]) if use.any() else 1.0 for row, use in zip(ratio, usable, strict=True)])
    own = np.maximum(own, 1.0)
    enlarged: FloatArray = np.sqrt(np.outer(own, own))
    return enlarged


def dependent_note(graph: BoolArray, request: Request) -> Diagnostic:
    """Some pairs err together."""
    left, right = np.nonzero(np.triu(graph))
    names = [f"{request.sources[a]} and {request.sources[b]}" for a, b in zip(left, right, strict=True)]
    message = (
        f"{'; '.join(names[:5])}{' ...' if len(names) > 5 else ''} agree in a way their lines do not explain; their "
        "noise is taken as correlated, so that they do not count twice. Pass dependencies= to say which pairs are."
    )
    return Diagnostic("dependent-pair", "warning", request.named(np.unique(np.concatenate([left, right]))), message)


def copies_note(copies: BoolArray, shared: bool, request: Request) -> tuple[Diagnostic, ...]:
    """Some pairs never differ; `shared` says whether they count as one."""
    pairs = np.argwhere(np.triu(copies, 1))
    if len(pairs) == 0:
        return ()
    named = [f"{request.sources[a]} and {request.sources[b]}" for a, b in pairs[:8]]
    rest = "They count as one." if shared else "If one copies the other, pass dependencies= with these pairs."
    message = f"{'; '.join(named)}{' ...' if len(pairs) > 8 else ''}: the same vote on every item they share. {rest}"
    return (Diagnostic("copied-source", "warning", request.named(np.unique(pairs)), message),)
