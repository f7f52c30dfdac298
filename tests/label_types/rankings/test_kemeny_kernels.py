"""The pieces of exact Kemeny aggregation: splitting into blocks, the recursion, the search and its bound."""

from __future__ import annotations

from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.label_types.rankings.kernels import (
    cheapest_orders,
    condorcet_rows,
    cycle_bound,
    finish_rows,
    preference_ranks,
    search_order,
    solve_blocks,
    strong_components,
    tournament_blocks,
)

NONE = np.empty((0, 6))


def random_matrix(seed, size, zeros):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.normal(size=(size, size)) * (rng.random((size, size)) >= zeros), 1)
    return upper - upper.T


def cost(matrix, order):
    return sum(max(matrix[late, early], 0.0) for p, early in enumerate(order) for late in order[p + 1 :])


def graph_of(matrix):
    return nx.DiGraph([*zip(*np.nonzero(matrix > 0), strict=True)])


@given(seed=st.integers(0, 10_000), size=st.integers(1, 12))
def test_tournament_blocks_are_the_strong_components(seed, size):
    # items shifted along a line, so that there are several blocks
    shift = np.linspace(3, -3, size)
    matrix = random_matrix(seed, size, 0.0) + shift[:, None] - shift
    order, ends = np.empty(size, dtype=np.int64), np.empty(size + 1, dtype=np.int64)
    count = tournament_blocks(matrix, size, order, ends)
    blocks = [set(part.tolist()) for part in np.split(order, ends[: count - 1])]
    graph = graph_of(matrix)
    graph.add_nodes_from(range(size))
    assert sorted(map(sorted, blocks)) == sorted(map(sorted, nx.strongly_connected_components(graph)))
    for position, block in enumerate(blocks):
        for later in blocks[position + 1 :]:
            assert all(matrix[i, j] > 0 for i in block for j in later)


@given(seed=st.integers(0, 10_000), size=st.integers(1, 12), zeros=st.sampled_from([0.3, 0.6, 0.9, 1.0]))
def test_components_with_ties_come_in_topological_order(seed, size, zeros):
    matrix = random_matrix(seed, size, zeros)
    order, ends = np.arange(size), np.empty(size + 1, dtype=np.int64)
    count = strong_components(matrix, order, 0, size, ends, 0)
    blocks = [set(part.tolist()) for part in np.split(order, ends[: count - 1])]
    graph = graph_of(matrix)
    graph.add_nodes_from(range(size))
    assert sorted(map(sorted, blocks)) == sorted(map(sorted, nx.strongly_connected_components(graph)))
    for position, block in enumerate(blocks):
        for later in blocks[position + 1 :]:
            assert not any(matrix[j, i] > 0 for i in block for j in later)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_the_recursion_finds_the_least_cost_of_every_row(size):
    lanes = 5
    matrices = [random_matrix(seed, size, 0.2) for seed in range(lanes)]
    price = np.stack([np.maximum(matrix, 0.0) for matrix in matrices], axis=-1)
    half = 1 << (size - size // 2)
    low, high, best = np.empty((size, half, lanes)), np.empty((size, half, lanes)), np.empty((1 << size, lanes))
    cheapest_orders(price, size, lanes, low, high, best)
    for lane, matrix in enumerate(matrices):
        expected = min(cost(matrix, order) for order in permutations(range(size)))
        assert best[-1, lane] == pytest.approx(expected)


@given(seed=st.integers(0, 10_000))
def test_the_bound_and_the_search_enclose_the_optimum(seed):
    matrix = random_matrix(seed, 6, 0.1)
    found = np.empty(6, dtype=np.int64)
    searched = search_order(matrix, 6, 4, np.uint64(seed), found)
    optimum = min(cost(matrix, order) for order in permutations(range(6)))
    assert sorted(found) == list(range(6))
    assert searched == pytest.approx(cost(matrix, found))
    assert cycle_bound(matrix.copy(), 6) - 1e-12 <= optimum <= searched + 1e-12


def test_the_bound_counts_each_disjoint_cycle_once():
    matrix = np.zeros((6, 6))
    for i, j, weight in ((0, 1, 3.0), (1, 2, 2.0), (2, 0, 1.0), (3, 4, 1.0), (4, 5, 1.0), (5, 3, 5.0)):
        matrix[i, j], matrix[j, i] = weight, -weight
    assert cycle_bound(matrix, 6) == 2.0


def test_preference_is_tie_break_then_borda_then_chance():
    margins = np.array([[1.0, 0.0, 0.0]])  # 0 before 1, and nothing about 2
    sizes, keys = np.array([3]), np.array([0])
    assert preference_ranks(margins, 3, sizes, np.empty((0, 3)), keys, 0).tolist() == [[0, 2, 1]]
    assert preference_ranks(margins, 3, sizes, np.array([[0.0, 9.0, 0.0]]), keys, 0).tolist() == [[1, 0, 2]]


def test_chance_prefers_every_item_equally_often():
    # 6000 rows: each item is first 1000 times, with a standard deviation of 29; 150 is five of them
    ranks = preference_ranks(np.zeros((6000, 15)), 6, np.full(6000, 6), NONE, np.arange(6000), 3)
    assert np.abs((ranks == 0).sum(axis=0) - 1000).max() < 150
    other = preference_ranks(np.zeros((6000, 15)), 6, np.full(6000, 6), NONE, np.arange(6000), 4)
    assert (other == ranks).mean() < 0.2


def test_only_rows_without_choice_are_settled_at_once():
    margins = np.array([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [1.0, -1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 5.0, 5.0]])
    positions, settled = condorcet_rows(margins, 3, np.array([3, 2, 3, 3, 1]))
    assert settled.tolist() == [True, True, False, False, True]
    assert positions[settled].tolist() == [[0, 1, 2], [1, 0, -1], [0, -1, -1]]


def test_tied_neighbors_are_put_into_the_preferred_order():
    margins = np.array([[0.0, 1.0, 0.0]])  # only 0 before 2 is known
    order = np.array([[0, 2, 1]])
    positions, total = finish_rows(margins, 3, np.array([3]), np.array([[1, 0, 2]]), order)
    assert positions.tolist() == [[1, 0, 2]]
    assert total.tolist() == [0.0]


def test_blocks_that_are_too_large_are_reported():
    margins = np.array([[1.0, -1.0, 1.0], [1.0, 1.0, 1.0]])
    sizes, keys = np.array([3, 3]), np.arange(2)
    preference = preference_ranks(margins, 3, sizes, np.empty((0, 3)), keys, 0)
    _, bound, blocks = solve_blocks(margins, 3, sizes, preference, keys, 0, 2, 4)
    assert blocks.tolist() == [[0, 0, 3]]
    assert bound.tolist() == [1.0, 0.0]
