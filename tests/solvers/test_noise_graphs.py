"""Graphs of correlated noise around one factor: found where they are, not found where they are not."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from consilience.solvers.noise_graphs import GraphProblem, best_graph, fitted, proper, rival_of


def problem(correlation: np.ndarray, items: float = 1000.0, even: bool = True) -> GraphProblem:
    m = len(correlation)
    error = np.sqrt((1.0 + correlation**2) / items)
    return GraphProblem(correlation, error, ~np.eye(m, dtype=bool), np.zeros((m, m), dtype=bool), items, even)


def one_factor(loading: np.ndarray, group: tuple[int, ...] = (), shared: float = 0.0) -> np.ndarray:
    """Return the exact correlations of sources with these loadings; those of the group share some of their noise."""
    correlation = np.outer(loading, loading)
    for left, right in combinations(group, 2):
        extra = shared * np.sqrt((1.0 - loading[left] ** 2) * (1.0 - loading[right] ** 2))
        correlation[left, right] += extra
        correlation[right, left] += extra
    np.fill_diagonal(correlation, 1.0)
    return correlation


def pairs_of(graph: np.ndarray) -> list[tuple[int, int]]:
    return [(int(left), int(right)) for left, right in np.argwhere(np.triu(graph))]


@pytest.mark.parametrize("group", [(0, 1), (2, 5, 6), (0, 1, 2, 3)])
@pytest.mark.parametrize("shared", [0.6, 0.999])
def test_a_group_that_errs_together_is_found_from_exact_correlations(group, shared):
    loading = np.array([0.6, 0.5, 0.8, 0.7, 0.4, 0.6, 0.55, 0.75, 0.65])
    found = best_graph(problem(one_factor(loading, group, shared)))
    assert pairs_of(found.graph) == list(combinations(group, 2))
    assert found.fit.loading == pytest.approx(loading, abs=0.01)


def test_exact_copies_leave_a_finite_criterion():
    loading = np.array([0.6, 0.5, 0.8, 0.7, 0.4, 0.6])
    copied = one_factor(np.append(loading, 0.6), (5, 6), 1.0)
    found = best_graph(problem(copied))
    assert pairs_of(found.graph) == [(5, 6)]
    assert np.isfinite(found.criterion)
    assert np.linalg.eigvalsh(found.fit.noise)[0] > 0


def test_each_edge_costs_the_logarithm_of_the_items():
    # Exact one-factor correlations are fitted alike with and without an edge, so that only the penalty differs.
    exact = problem(one_factor(np.full(6, 0.7)))
    edge = np.zeros((6, 6), dtype=bool)
    edge[0, 1] = edge[1, 0] = True
    difference = fitted(exact, edge).criterion - fitted(exact, np.zeros((6, 6), dtype=bool)).criterion
    assert difference == pytest.approx(np.log(1000.0), abs=1e-3)


def test_independent_noise_is_rarely_called_dependent():
    # Chance names a pair in about 1% of fits; more than 5 of 100 then has a probability below 0.001.
    wrong = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        m, n = int(rng.integers(5, 12)), int(rng.integers(60, 1000))
        votes = np.outer(rng.normal(size=n), rng.uniform(0.5, 1.5, m)) + rng.normal(size=(n, m))
        wrong += best_graph(problem(np.corrcoef(votes.T), float(n))).graph.any()
    assert wrong <= 5


def test_two_equal_halves_have_a_rival_of_the_same_criterion():
    # Sources 3 to 5 share as much beside the truth as the truth itself: either half may be the one that errs together.
    covariance = np.ones((6, 6)) + np.eye(6)
    covariance[3:, 3:] += 1.0
    size = np.sqrt(np.diag(covariance))
    exact = problem(covariance / np.outer(size, size))
    found = best_graph(exact)
    rival = rival_of(exact, found)
    assert rival is not None
    assert {tuple(rival[0]), tuple(rival[1])} == {(0, 1, 2), (3, 4, 5)}
    assert rival[2].criterion == pytest.approx(found.criterion, abs=1.0)


def test_a_source_keeps_two_independent_partners():
    allowed = problem(one_factor(np.full(5, 0.7)))
    graph = np.zeros((5, 5), dtype=bool)
    graph[0, 1:4] = graph[1:4, 0] = True
    assert not allowed.allows(graph)
    assert allowed.allows(np.zeros((5, 5), dtype=bool))


def test_proper_correlations_are_left_alone():
    exact = one_factor(np.array([0.6, 0.5, 0.8]))
    assert proper(exact) == pytest.approx(exact)
