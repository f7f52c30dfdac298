"""Which sources err together: candidate graphs of correlated noise around one common factor, compared by the BIC.

Where noise is independent, correlations between sources have rank one off the diagonal. A pair that errs together
stands out, but only from loadings that it has not drawn to itself: near copies become the factor of a plain fit. So
several searches propose a graph, each is fitted by maximum likelihood with noise correlated on its edges, and the
criterion decides; the graph without edges is always among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.solvers.factor import FactorFit, free_slopes
from consilience.solvers.pairs import components, has_odd_cycle
from consilience.solvers.triplets import rank_one, triplet_loadings

__all__ = ["GraphFit", "GraphProblem", "best_graph", "fitted", "proper", "rival_of"]

#: Residuals that chance exceeds in this share of fits, over all pairs together, propose an edge; fewer where pairs rest
#: on different items, as their correlations then have no common likelihood.
FALSE_ALARMS, UNEVEN_ALARMS = 0.01, 0.001
#: Edges whose noise is correlated by less are not worth the numbers.
LEAST_CORRELATION = 0.1
#: Residuals of more standard errors than this lose influence on the robust loadings.
BEND = 1.5
ROUNDS = 100
#: Candidates are compared, not kept: a rough fit will do.
TOLERANCE, FIT_ROUNDS = 1e-5, 600
#: Steps of the search for a sparse and a low-rank part, and the weight of the sparse one.
SPLIT_ROUNDS, SPARSE = 300, 0.4


@dataclass(frozen=True, slots=True)
class GraphProblem:
    """What pairs of m sources show.

    Parameters
    ----------
    correlation
        ``(m, m)``, proper: without negative eigenvalues.
    error
        ``(m, m)`` standard errors of the correlations.
    usable
        ``(m, m)`` pairs that may be used as independent, or found not to be.
    given
        ``(m, m)`` pairs known to be dependent.
    items
        How many independent items the correlations are worth.
    even
        Whether all pairs rest on the same items.
    """

    correlation: FloatArray
    error: FloatArray
    usable: BoolArray
    given: BoolArray
    items: float
    even: bool = True

    @property
    def threshold(self) -> float:
        """Standard errors beyond which a residual proposes an edge."""
        pairs = max(int(np.triu(self.usable).sum()), 1)
        return NormalDist().inv_cdf(1.0 - (FALSE_ALARMS if self.even else UNEVEN_ALARMS) / pairs)

    def allows(self, graph: BoolArray) -> bool:
        """Return whether every source keeps two independent partners and the loadings stay determined."""
        left = self.usable & ~graph
        met = self.usable.any(axis=1)
        return bool((left.sum(axis=1)[met] >= 2).all() and has_odd_cycle(left)[met].all())


@dataclass(frozen=True, slots=True)
class GraphFit:
    """A graph beyond the given pairs, the fit on standardised votes, and the criterion: the lower the better."""

    graph: BoolArray
    fit: FactorFit
    criterion: float


def best_graph(problem: GraphProblem) -> GraphFit:
    """Return the candidate with the lowest Bayesian information criterion.

    Examples
    --------
    The last two of six sources share half of their noise.

    >>> loading = np.full(6, 0.7)
    >>> correlation = np.outer(loading, loading)
    >>> np.fill_diagonal(correlation, 1.0)
    >>> correlation[4, 5] = correlation[5, 4] = 0.75
    >>> others = ~np.eye(6, dtype=bool)
    >>> nothing = np.zeros((6, 6), dtype=bool)
    >>> problem = GraphProblem(correlation, np.full((6, 6), 0.03), others, nothing, 1000.0)
    >>> np.argwhere(np.triu(best_graph(problem).graph)).tolist()
    [[4, 5]]
    """
    empty = fitted(problem, np.zeros_like(problem.usable))
    proposed = [_robust(problem), _greedy(problem)]
    misfit = np.where(problem.given, 0.0, np.abs(_excess(problem, empty.fit.loading))).max()
    if not any(graph.any() for graph in proposed) and misfit < problem.threshold:
        return empty
    if problem.even:
        proposed.append(_split(problem))
    proposed += [_closed(graph, problem) for graph in proposed]
    proposed += _halves(problem)
    fits, seen = [empty], {empty.graph.tobytes()}
    for graph in proposed:
        while graph.tobytes() not in seen and problem.allows(graph):
            seen.add(graph.tobytes())
            found = fitted(problem, graph)
            fits.append(found)
            graph = _pruned(problem, found)
    return min(fits, key=lambda found: found.criterion)


def fitted(problem: GraphProblem, graph: BoolArray) -> GraphFit:
    """Fit a graph by maximum likelihood, on the given pairs and its own."""
    dependent = graph | problem.given
    usable = problem.usable & ~graph
    start = triplet_loadings(problem.correlation, usable, problem.error, combine="least_squares").value
    fit = free_slopes(
        problem.correlation, np.clip(start, -0.97, 0.97), dependent, tolerance=TOLERANCE, max_rounds=FIT_ROUNDS
    )
    penalty = (1.0 if problem.even else 2.0) * float(np.triu(graph).sum()) * np.log(max(problem.items, 2.0))
    return GraphFit(graph, fit, penalty - 2.0 * problem.items * fit.log_likelihood)


def rival_of(problem: GraphProblem, found: GraphFit) -> tuple[IntArray, IntArray, GraphFit] | None:
    """Return the largest group that errs together, the other sources, and the fit in which these are the group.

    Two groups that each agree among themselves leave open which of the two agrees for the wrong reason. None where the
    other explanation leaves the loadings undetermined.
    """
    label = components(found.graph)
    sizes = np.bincount(label)
    largest = int(sizes.argmax())
    met = problem.usable.any(axis=1)
    inside, outside = np.flatnonzero((label == largest) & met), np.flatnonzero((label != largest) & met)
    if sizes[largest] < 2 or len(outside) < 2:
        return None
    graph = np.zeros_like(found.graph)
    graph[np.ix_(outside, outside)] = True
    graph &= problem.usable
    if len(inside) < 2 or not problem.allows(graph):
        return None
    return inside, outside, fitted(problem, graph)


def proper(correlation: FloatArray) -> FloatArray:
    """Return the nearest correlations without a negative eigenvalue.

    Examples
    --------
    >>> proper(np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])).round(2)
    array([[1.  , 0.73, 0.06],
           [0.73, 1.  , 0.73],
           [0.06, 0.73, 1.  ]])
    """
    values, vectors = np.linalg.eigh(correlation)
    mended = (vectors * np.maximum(values, 1e-3)) @ vectors.T
    unit = np.sqrt(np.diag(mended))
    result: FloatArray = mended / np.outer(unit, unit)
    return result


def _loadings(problem: GraphProblem) -> FloatArray:
    """Return loadings that a few dependent pairs cannot mislead: Huber loss from the medians of all triplets."""
    correlation, error = problem.correlation, problem.error
    value = triplet_loadings(correlation, problem.usable, error, combine="median").value
    for _ in range(ROUNDS):
        z = np.abs(correlation - np.outer(value, value)) / error
        weights = np.minimum(1.0, BEND / np.maximum(z, 1e-12)) / error**2
        updated = rank_one(correlation, problem.usable, weights, value, max_rounds=3).value
        moved = np.abs(updated - value).max()
        value = updated
        if moved < 1e-6:
            break
    return np.clip(value, -1.0, 1.0)


def _excess(problem: GraphProblem, value: FloatArray) -> FloatArray:
    """Return by how many standard errors pairs agree more than the loadings explain, ``(m, m)``.

    On the scale of Fisher's z, where the error of a correlation does not depend on its size; so near copies show
    on few items already.
    """
    product = np.outer(value, value)
    sign = np.where(product < 0, -1.0, 1.0)
    items = (1.0 + problem.correlation**2) / problem.error**2  # that a pair is worth
    stable = np.sqrt(np.maximum(items - 3.0, 1.0))
    seen, told = (np.arctanh(np.clip(part, -0.9999, 0.9999)) for part in (problem.correlation, product))
    return np.where(problem.usable, (seen - told) * sign * stable, 0.0)


def _robust(problem: GraphProblem) -> BoolArray:
    """Return the pairs that stand out from the robust loadings, the clearest first, as long as sources allow it."""
    excess = np.triu(_excess(problem, _loadings(problem)))
    graph = np.zeros_like(problem.usable)
    order = np.argsort(-excess, axis=None)
    for place in order[: int((excess > problem.threshold).sum())]:
        graph = _joined(problem, graph, int(place))
    return graph


def _greedy(problem: GraphProblem) -> BoolArray:
    """Return edges found one by one, with loadings fitted to the remaining pairs each time."""
    graph = np.zeros_like(problem.usable)
    for _ in range(2 * len(graph)):
        value = triplet_loadings(
            problem.correlation, problem.usable & ~graph, problem.error, combine="least_squares"
        ).value
        excess = np.where(graph, 0.0, _excess(problem, value))
        place = int(excess.argmax())
        if excess.flat[place] < problem.threshold:
            break
        larger = _joined(problem, graph, place)
        if larger is graph:
            break
        graph = larger
    return graph


def _joined(problem: GraphProblem, graph: BoolArray, place: int) -> BoolArray:
    left, right = np.unravel_index(place, graph.shape)
    larger = graph.copy()
    larger[left, right] = larger[right, left] = True
    return larger if problem.allows(larger) else graph


def _split(problem: GraphProblem) -> BoolArray:
    """Return the support of the sparse part of the precision, the rest being of low rank (Chandrasekaran et al. 2012).

    Alternating directions on ``-log det(S - L) + tr R(S - L) + t (c |S|_1 + tr L)``.
    """
    correlation = problem.correlation
    m = len(correlation)
    strength = 2.0 * np.sqrt(m / problem.items)
    sparse, low, dual = np.eye(m), np.zeros((m, m)), np.zeros((m, m))
    for _ in range(SPLIT_ROUNDS):
        values, vectors = np.linalg.eigh(sparse - low - dual - correlation)
        whole = (vectors * (0.5 * (values + np.sqrt(values**2 + 4.0)))) @ vectors.T
        for _ in range(2):
            target = whole + low + dual
            sparse = np.sign(target) * np.maximum(np.abs(target) - strength * SPARSE, 0.0)
            np.fill_diagonal(sparse, np.diag(target))
            values, vectors = np.linalg.eigh(sparse - whole - dual)
            low = (vectors * np.maximum(values - strength, 0.0)) @ vectors.T
        dual = dual + whole - sparse + low
    graph: BoolArray = (np.abs(sparse) > 1e-3) & problem.usable
    return graph | graph.T


def _halves(problem: GraphProblem) -> list[BoolArray]:
    """Return the two graphs in which one side errs together, the sides as the second eigenvector has them."""
    side = np.linalg.eigh(problem.correlation)[1][:, -2] > 0
    graphs: list[BoolArray] = [np.outer(part, part) & problem.usable for part in (side, ~side)]
    return graphs


def _closed(graph: BoolArray, problem: GraphProblem) -> BoolArray:
    """Return the graph in which every chain of edges is a group of which all err together."""
    label = components(graph)
    closed: BoolArray = (label[:, None] == label[None, :]) & problem.usable
    return closed


def _pruned(problem: GraphProblem, found: GraphFit) -> BoolArray:
    """Return the graph without the edges whose noise is hardly correlated, or the other way round."""
    size = np.sqrt(np.diag(found.fit.noise))
    sign = np.where(np.outer(found.fit.loading, found.fit.loading) < 0, -1.0, 1.0)
    between = sign * found.fit.noise / np.outer(size, size)
    own = np.maximum(1.0 - found.fit.loading**2, 0.05)
    error = problem.error / np.sqrt(np.outer(own, own))
    kept: BoolArray = found.graph & (between > np.maximum(LEAST_CORRELATION, 2.5 * error))
    return kept & kept.T
