"""Kemeny, Borda and Copeland: against enumeration, against integer programming, and as users call them."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from consilience import Rankings
from consilience.exceptions import InvalidLabelError, InvalidVotesError, UnsupportedError
from consilience.label_types.rankings.kernels import cycle_bound, search_order
from consilience.label_types.rankings.orders import best_orders
from consilience.rankings import borda, copeland, kemeny
from consilience.votes import Votes

#: 0 beats 1, 1 beats 2, 2 beats 0: whatever the order, one majority is contradicted.
CYCLE = [[0, 1, 2], [2, 0, 1], [1, 2, 0]]


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


def random_matrix(seed, size, zeros):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.normal(size=(size, size)) * (rng.random((size, size)) >= zeros), 1)
    return upper - upper.T


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
    order, cost = best_orders(np.maximum(matrix, 0.0)[None])
    assert cost == pytest.approx(optimum)
    assert cost_of(margins, size, sizes, np.argsort(order, axis=1)) == pytest.approx(optimum)
    found, searched = search_order(matrix, np.arange(size), 4, np.uint64(seed))
    assert searched == pytest.approx(cost_of(margins, size, sizes, np.argsort(found)[None])[0])
    assert cycle_bound(matrix.copy()) - 1e-12 <= optimum <= searched + 1e-12


def distance_to(positions, rankings, weights) -> float:
    """Add up the weighted distances of one ranking to some rankings."""
    distances = Rankings(None).distance(np.asarray(rankings), np.tile(positions, (len(rankings), 1)))
    return float(weights @ distances)


def test_a_worked_example():
    result = kemeny([[0, 1, 2], [0, 2, 1], [1, 0, 2]])
    assert result.positions.tolist() == [[0, 1, 2]]
    assert result.cost.tolist() == result.lower_bound.tolist() == [2.0]
    assert (result.optimal.tolist(), result.gap.tolist()) == ([True], [0.0])
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


def test_long_rankings_are_proven_and_neither_names_nor_threads_matter():
    rng = np.random.default_rng(0)
    truth = rng.permutation(60)
    agreed = kemeny(np.tile(truth, (5, 1)))
    assert agreed.positions[0].tolist() == truth.tolist()
    assert (agreed.optimal[0], agreed.cost[0]) == (True, 0.0)
    votes = rng.permuted(np.tile(np.arange(7), (40, 5, 1)), axis=2)
    once = kemeny(votes)
    assert np.array_equal(kemeny(votes, n_threads=3).positions, once.positions)
    assert kemeny(votes[:, :, rng.permutation(7)]).cost == pytest.approx(once.cost)


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
