"""Kemeny, Borda and Copeland: against enumeration, against integer programming, and as users call them."""

from __future__ import annotations

from itertools import pairwise, permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from consilience.exceptions import InvalidLabelError, InvalidVotesError, UnsupportedError
from consilience.label_types.rankings.kemeny import (
    find_blocks,
    linear_ordering,
    minimize_disagreement,
    rank_by_score,
    square_margins,
)
from consilience.label_types.rankings.kernels import cycle_bound, order_exactly, search_order
from consilience.label_types.rankings.space import Rankings
from consilience.rankings import borda, copeland, kemeny
from consilience.votes import Votes

#: 0 beats 1, 1 beats 2, 2 beats 0: whatever the order, one majority is contradicted.
CYCLE = [[0, 1, 2], [2, 0, 1], [1, 2, 0]]


def positions_by_kemeny(margins, r, sizes=None, seed=0):
    return minimize_disagreement(margins, r, sizes, seed=seed).positions


positions_by_borda, positions_by_copeland = (
    lambda margins, r, sizes=None, seed=0, rule=rule: rank_by_score(margins, r, sizes, rule=rule, seed=seed)
    for rule in ("borda", "copeland")
)
RULES = (positions_by_kemeny, positions_by_borda, positions_by_copeland)


def pairs_of(positions, r):
    first, second = np.triu_indices(r, 1)
    return positions[:, first] < positions[:, second]


def least_costs(margins, r, sizes):
    """Return the least cost of every row by trying all orders."""
    second = np.triu_indices(r, 1)[1]
    least = np.zeros(len(margins))
    for size in range(2, r + 1):
        before = pairs_of(np.array(list(permutations(range(size)))), size)
        rows = margins[sizes == size][:, second < size]
        costs = np.maximum(-rows, 0) @ before.T + np.maximum(rows, 0) @ ~before.T
        least[sizes == size] = costs.min(axis=1)
    return least


def cost_of(margins, r, sizes, positions):
    exist = np.triu_indices(r, 1)[1] < sizes[:, None]
    contradicted = pairs_of(positions, r) != (margins > 0)
    return (np.abs(margins) * (contradicted & exist)).sum(axis=1)


def instances(kind, rng, n, r):
    shape = (n, r * (r - 1) // 2)
    if kind == "votes":  # few votes of equal weight: many ties and many equally good orders
        return rng.integers(-2, 3, size=shape).astype(float)
    if kind == "unseen":  # half of the pairs were never compared
        return rng.normal(size=shape) * (rng.random(shape) < 0.5)
    if kind == "rounded":  # sums that are ties but for rounding
        return rng.choice([0.1 + 0.2 - 0.3, 0.3, -0.3, 0.1 + 0.2], size=shape)
    return rng.normal(size=shape) * 10.0 ** rng.integers(-6, 7, size=(n, 1))


# --- kernels ----------------------------------------------------------------------------------------------


def random_matrix(seed, size, zeros):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.normal(size=(size, size)) * (rng.random((size, size)) >= zeros), 1)
    return upper - upper.T


@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 12),
    zeros=st.sampled_from([0.0, 0.3, 0.6, 0.9, 1.0]),
    slope=st.sampled_from([0.0, 3.0]),
)
def test_blocks_are_the_strong_components_in_topological_order(seed, size, zeros, slope):
    shift = np.linspace(slope, -slope, size)  # along a line there are several blocks
    matrix = random_matrix(seed, size, zeros) + shift[:, None] - shift
    orders, blocks = find_blocks(matrix[None])
    cuts = sorted({0, size, *range(size)} - {at for _, start, end in blocks for at in range(start + 1, end)})
    parts = [orders[0, start:end].tolist() for start, end in pairwise(cuts)]
    graph = nx.DiGraph([*zip(*np.nonzero(matrix > 0), strict=True)])
    graph.add_nodes_from(range(size))
    assert sorted(map(sorted, parts)) == sorted(map(sorted, nx.strongly_connected_components(graph)))
    place = np.argsort(orders[0])
    ends = {item: end for part, end in zip(parts, cuts[1:], strict=True) for item in part}
    assert all(place[i] < ends[j] for i, j in zip(*np.nonzero(matrix > 0), strict=True))


def test_the_bound_counts_each_disjoint_cycle_once():
    matrix = np.zeros((6, 6))
    for i, j, weight in ((0, 1, 3.0), (1, 2, 2.0), (2, 0, 1.0), (3, 4, 1.0), (4, 5, 1.0), (5, 3, 5.0)):
        matrix[i, j], matrix[j, i] = weight, -weight
    assert cycle_bound(matrix) == 2.0


@given(seed=st.integers(0, 10_000))
def test_the_recursion_finds_the_optimum_and_the_bound_and_the_search_enclose_it(seed):
    size = 3 + seed % 4
    matrix = random_matrix(seed, size, 0.2)
    margins, sizes = matrix[np.triu_indices(size, 1)][None], np.array([size])
    optimum = least_costs(margins, size, sizes)[0]
    order = np.arange(size)[None]
    assert order_exactly(matrix[None], order, np.array([[0, 0, size]]), size) == pytest.approx(optimum)
    assert cost_of(margins, size, sizes, np.argsort(order, axis=1)) == pytest.approx(optimum)
    found, searched = search_order(matrix, np.arange(size), 4, np.uint64(seed))
    assert searched == pytest.approx(cost_of(margins, size, sizes, np.argsort(found)[None])[0])
    assert cycle_bound(matrix.copy()) - 1e-12 <= optimum <= searched + 1e-12


# --- tables of margins ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["weights", "votes", "unseen", "rounded"])
@pytest.mark.parametrize("r", [1, 2, 3, 4, 5, 6, 7])
def test_result_equals_enumeration(r, kind):
    n = 300 if r < 7 else 100
    rng = np.random.default_rng(r)
    margins, sizes = instances(kind, rng, n, r), rng.integers(0, r + 1, size=n)
    result = minimize_disagreement(margins, r, sizes)
    least = least_costs(margins, r, sizes)
    assert np.allclose(result.cost, least, rtol=1e-9)
    assert np.allclose(cost_of(margins, r, sizes, result.positions), least, rtol=1e-9)
    assert result.optimal.all()
    assert np.array_equal(result.lower_bound, result.cost)
    for positions, size in zip(result.positions, sizes, strict=True):
        assert sorted(positions[:size]) == list(range(size))
        assert np.all(positions[size:] == -1)


@pytest.mark.parametrize("kind", ["weights", "votes", "unseen"])
def test_recursion_equals_integer_programming_and_the_search_never_claims_too_much(kind):
    for r, n in ((10, 30), (15, 8)):
        margins = instances(kind, np.random.default_rng(r), n, r)
        recursion = minimize_disagreement(margins, r)
        program = minimize_disagreement(margins, r, max_exact=2, starts=1, exact="milp")
        assert recursion.optimal.all()
        assert program.optimal.all()
        assert np.allclose(recursion.cost, program.cost, rtol=1e-8)
    margins = instances(kind, np.random.default_rng(1), 400, 6)
    least = least_costs(margins, 6, np.full(400, 6))
    result = minimize_disagreement(margins, 6, max_exact=2)
    assert np.all(result.lower_bound <= least * (1 + 1e-9))
    assert np.all(result.cost >= least * (1 - 1e-9))
    assert np.allclose(result.cost[result.optimal], least[result.optimal])
    assert result.optimal.mean() > 0.6
    assert np.isclose(result.cost, least).mean() > 0.98


def test_large_acyclic_sets_are_solved_and_proven():
    rng = np.random.default_rng(0)
    truth = np.array([rng.permutation(60) for _ in range(5)])
    first, second = np.triu_indices(60, 1)
    margins = np.sign(truth[:, second] - truth[:, first]) * rng.uniform(0.1, 3.0, size=(5, len(first)))
    result = minimize_disagreement(margins, 60)
    assert np.array_equal(result.positions, truth)
    assert result.optimal.all()
    assert np.all(result.cost == 0)


def test_integer_programming_closes_the_gap_that_the_search_leaves():
    rng = np.random.default_rng(2)
    first, second = np.triu_indices(20, 1)
    margins = rng.normal(size=(4, len(first))) + 0.15 * (second - first)
    searched = minimize_disagreement(margins, 20, max_exact=5)
    proven = minimize_disagreement(margins, 20, max_exact=5, exact="milp")
    assert not searched.optimal.all()
    assert proven.optimal.all()
    assert np.all(searched.lower_bound <= proven.cost + 1e-9)
    assert np.all(proven.cost <= searched.cost + 1e-9)
    assert np.allclose(proven.cost, cost_of(margins, 20, np.full(4, 20), proven.positions))
    stopped = minimize_disagreement(margins, 20, max_exact=5, exact="milp", time_limit=0.0)
    assert np.array_equal(stopped.positions, searched.positions)
    assert np.allclose(stopped.lower_bound, searched.lower_bound)
    matrix = np.array([[0.0, -1.0, 2.0], [1.0, 0.0, -3.0], [-2.0, 3.0, 0.0]])  # 1 > 0 > 2 > 1
    order, bound = linear_ordering(matrix, 4.0, np.inf)
    assert order.tolist() == [0, 2, 1]
    assert bound == pytest.approx(1.0)


def test_renaming_the_items_renames_the_result():
    rng = np.random.default_rng(4)
    r, n = 7, 100
    first, second = np.triu_indices(r, 1)
    margins = rng.normal(size=(n, len(first)))
    names = rng.permutation(r)
    renamed = square_margins(margins, r)[:, names][:, :, names][:, first, second]
    for rule in RULES:
        assert np.array_equal(rule(renamed, r), rule(margins, r)[:, names])


def test_equal_items_are_decided_by_borda_then_by_chance():
    # 0 before 1 and nothing about 2; then only 0 before 2: tied neighbors go by the sum of their margins
    for rule in (positions_by_kemeny, positions_by_borda):
        assert rule(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), 3).tolist() == [[0, 2, 1], [0, 1, 2]]
    for rule in RULES:
        # 4000 rows: each item is first 1000 times, with a standard deviation of 27
        chance = rule(np.zeros((4000, 6)), 4, seed=1)
        assert np.abs((chance == 0).sum(axis=0) - 1000).max() < 140
        assert (rule(np.zeros((4000, 6)), 4, seed=2) == chance).mean() < 0.3


@pytest.mark.parametrize("n", [0, 1, 50])
def test_neither_threads_nor_the_order_of_the_rows_change_the_result(n):
    margins = np.random.default_rng(0).integers(-2, 3, size=(n, 45)).astype(float)
    keys = np.arange(1000, 1000 + n)
    one = minimize_disagreement(margins, 10, max_exact=5, keys=keys)
    three = minimize_disagreement(margins, 10, max_exact=5, keys=keys, n_threads=3)
    backwards = minimize_disagreement(margins[::-1], 10, max_exact=5, keys=keys[::-1])
    for name in ("positions", "cost", "lower_bound", "optimal"):
        assert np.array_equal(getattr(one, name), getattr(three, name))
        assert np.allclose(getattr(one, name), getattr(backwards, name)[::-1])


def test_borda_and_copeland_by_hand():
    # items 0 to 3: 0 beats 1 and 2 narrowly; 3 beats 0 by far and loses to 1 and 2
    margins = np.array([[1.0, 1.0, -9.0, 1.0, 2.0, 3.0]])
    # sums: 0: -7, 1: -1 + 1 + 2 = 2, 2: -1 - 1 + 3 = 1, 3: 9 - 2 - 3 = 4
    assert positions_by_borda(margins, 4).tolist() == [[3, 1, 2, 0]]
    # wins minus losses: 0: 1, 1: 1, 2: -1, 3: -1; Borda decides between equals
    assert positions_by_copeland(margins, 4).tolist() == [[1, 0, 3, 2]]
    # everyone in the cycle wins once and loses once; item 3 loses to all
    assert positions_by_copeland([[3.0, -1.0, 5.0, 2.0, 5.0, 5.0]], 4).tolist() == [[0, 1, 2, 3]]
    # 0 before 1 by 3, 1 before 2 by 2, and 2 before 0 by 1: the weakest of the three is given up
    result = minimize_disagreement([[3.0, -1.0, 2.0]], 3)
    assert (result.positions.tolist(), result.cost.tolist(), result.optimal.tolist()) == ([[0, 1, 2]], [1.0], [True])


def test_items_that_do_not_exist_get_no_position():
    margins = np.array([[-1.0, 100.0, 100.0]])
    for rule in RULES:
        assert rule(margins, 3, [2]).tolist() == [[1, 0, -1]]
        assert rule(margins, 3, [0]).tolist() == [[-1, -1, -1]]
        for wrong in (np.zeros((2, 4)), np.array([[0.0, np.nan, 0.0]])):
            with pytest.raises(ValueError, match=r"finite and of shape \(n, 3\)"):
                rule(wrong, 3)


# --- as users call it -------------------------------------------------------------------------------------


def distance_to(positions, rankings, weights) -> float:
    """Add up the weighted distances of one ranking to some rankings."""
    distances = Rankings(None).distance(np.asarray(rankings), np.tile(positions, (len(rankings), 1)))
    return float(weights @ distances)


def test_a_worked_example():
    result = kemeny([[0, 1, 2], [0, 2, 1], [1, 0, 2]])
    assert result.positions.tolist() == [[0, 1, 2]]
    assert result.cost.tolist() == result.lower_bound.tolist() == [2.0]
    assert result.optimal.tolist() == [True]
    assert result.gap.tolist() == [0.0]
    # Borda prefers 1 (second at worst); by majority 0 beats both others.
    rankings = np.array([[0, 1, 2]] * 3 + [[2, 0, 1]] * 2)
    assert borda(rankings).tolist() == [[1, 0, 2]]
    assert copeland(rankings).tolist() == [[0, 1, 2]]
    assert kemeny(rankings).positions.tolist() == [[0, 1, 2]]


def test_weights_decide_which_majority_of_a_cycle_is_given_up():
    equal = kemeny(CYCLE)
    assert (equal.cost[0], equal.optimal[0]) == (4.0, True)
    assert kemeny(CYCLE, [1.0, 1.0, 5.0]).positions[0].tolist() == CYCLE[2]
    assert kemeny(CYCLE, [0.0, 1.0, 0.0]).cost.tolist() == [0.0]
    assert borda(CYCLE, [1, 1, 5]).tolist() == copeland(CYCLE, [1, 1, 5]).tolist() == [CYCLE[2]]
    rankings = np.array([CYCLE, CYCLE])  # many problems come with one set of weights or one each
    assert kemeny(rankings, [1.0, 1.0, 5.0]).positions.tolist() == [CYCLE[2], CYCLE[2]]
    assert kemeny(rankings, [[5.0, 1.0, 1.0], [1.0, 5.0, 1.0]]).positions.tolist() == CYCLE[:2]
    assert borda(rankings, [1, 1, 5]).shape == (2, 3)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_kemeny_is_the_best_of_all_orders(r, m, seed):
    rng = np.random.default_rng(seed)
    seen = rng.random((m, r)) < 0.8
    seen[:, 0] = True
    rankings = Rankings.positions_from_scores(rng.integers(0, r, (m, r)), seen=seen)
    weights = np.round(rng.uniform(0.1, 2.0, m), 3)
    result = kemeny(rankings, weights)
    best = min(distance_to(order, rankings, weights) for order in permutations(range(r)))
    assert result.optimal[0]
    assert result.cost[0] == pytest.approx(best)
    assert result.lower_bound[0] == pytest.approx(best)
    assert distance_to(result.positions[0], rankings, weights) == pytest.approx(best)
    assert ((result.positions[0] >= 0) == seen.any(axis=0)).all()


def test_options_reach_the_solver():
    rankings = np.random.default_rng(3).permuted(np.tile(np.arange(18), (5, 1)), axis=1)
    searched, proven = kemeny(rankings), kemeny(rankings, exact="milp", n_threads=2)
    assert proven.optimal[0]
    assert proven.gap[0] == 0.0
    assert searched.lower_bound[0] <= proven.cost[0] <= searched.cost[0]
    equal = np.array([[[0, 1], [1, 0]]] * 200)
    first = kemeny(equal).positions[:, 0]
    assert 0 < first.sum() < 200
    assert (first == kemeny(equal).positions[:, 0]).all()
    assert (first != kemeny(equal, seed=1).positions[:, 0]).any()
    with refused(UnsupportedError, "exact='fast'"):
        kemeny(CYCLE, exact="fast")


def test_what_nobody_ranks_has_no_position():
    rankings = [[0, -1, 1], [0, -1, -1]]
    assert (
        kemeny(rankings).positions.tolist() == borda(rankings).tolist() == copeland(rankings).tolist() == [[0, -1, 1]]
    )
    result = kemeny([[[1, 0], [1, 0]], [[0, 2, 1], None]])
    assert result.positions.tolist() == [[1, 0, -1], [0, 2, 1]]
    votes = Votes.from_array(np.array([CYCLE, CYCLE]), observed=[[True, False, False], [False, False, False]])
    found = kemeny(votes)
    assert found.positions.tolist() == [CYCLE[0], [-1, -1, -1]]
    assert found.cost.tolist() == [0.0, 0.0]
    assert kemeny(Votes.from_array([[None, None]], observed=[[False, False]])).positions.shape == (1, 0)


@pytest.mark.parametrize("aggregate", [kemeny, borda, copeland])
@pytest.mark.parametrize(
    ("rankings", "weights", "error", "parts"),
    [
        (CYCLE, [1, -1, 1], InvalidVotesError, ["Source 'source_1'", "the weight is -1.0", "not negative"]),
        (CYCLE, [1, 1, np.nan], InvalidVotesError, ["Source 'source_2'", "nan"]),
        (CYCLE, [[1, 1, np.inf]], InvalidVotesError, ["Row 0, source 'source_2'", "inf"]),
        (CYCLE, [1, 1], InvalidVotesError, ["shape (2,)", "3 sources", "(3,) or (1, 3)"]),
        (CYCLE, ["a", "b", "c"], InvalidVotesError, ["not numbers"]),
        ([[0, 1, 2], [0, 1, 3]], None, InvalidLabelError, ["Row 0, source 'source_1'", "gap"]),
        ([CYCLE, [[0, 1, 2], [0, 1, 2], [-1] * 3]], None, InvalidLabelError, ["Row 1, source 'source_2'", "no item"]),
        ([[0, 1], [0, 1, 2]], None, InvalidVotesError, ["Source 1 ranks 3 items, source 0 ranks 2", "-1"]),
        ([["a", "b"]], None, InvalidVotesError, ["<U1", "positions_from_orders"]),
        ([0, 1, 2], None, InvalidVotesError, ["shape (3,)"]),
    ],
)
def test_bad_input_is_refused_with_its_place(aggregate, rankings, weights, error, parts):
    with refused(error, *parts):
        aggregate(rankings, weights)
