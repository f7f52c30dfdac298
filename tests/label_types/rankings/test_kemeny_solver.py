"""Exact Kemeny aggregation against enumeration and against integer programming."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from consilience.label_types.rankings.kemeny import borda, copeland, linear_ordering, minimize_disagreement
from consilience.label_types.rankings.kernels import cheapest_orders


def pairs_of(positions, r):
    first, second = np.triu_indices(r, 1)
    return positions[:, first] < positions[:, second]


def least_costs(margins, r, sizes):
    """Return the least cost of every row by trying all orders."""
    second = np.triu_indices(r, 1)[1]
    least = np.zeros(len(margins))
    for size in range(2, r + 1):
        exist = second < size
        before = pairs_of(np.array(list(permutations(range(size)))), size)
        rows = margins[sizes == size][:, exist]
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


@pytest.mark.parametrize("kind", ["weights", "votes", "unseen", "rounded"])
@pytest.mark.parametrize("r", [1, 2, 3, 4, 5, 6, 7])
def test_result_equals_enumeration(r, kind):
    n = 500 if r < 7 else 150
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
def test_search_never_claims_too_much(kind):
    rng = np.random.default_rng(1)
    margins = instances(kind, rng, 400, 6)
    sizes = np.full(400, 6)
    least = least_costs(margins, 6, sizes)
    result = minimize_disagreement(margins, 6, max_exact=2)
    assert np.all(result.lower_bound <= least * (1 + 1e-9))
    assert np.all(result.cost >= least * (1 - 1e-9))
    assert np.allclose(result.cost[result.optimal], least[result.optimal])
    assert result.optimal.mean() > 0.6
    assert np.isclose(result.cost, least).mean() > 0.98


@pytest.mark.parametrize(("r", "n"), [(10, 40), (15, 12)])
@pytest.mark.parametrize("kind", ["weights", "votes", "unseen"])
def test_recursion_equals_integer_programming(kind, r, n):
    margins = instances(kind, np.random.default_rng(r), n, r)
    recursion = minimize_disagreement(margins, r)
    program = minimize_disagreement(margins, r, max_exact=2, starts=1, exact="milp")
    assert recursion.optimal.all()
    assert program.optimal.all()
    assert np.allclose(recursion.cost, program.cost, rtol=1e-8)


@pytest.mark.parametrize("slope", [0.0, 0.2, 0.6])
def test_blocks_give_the_same_cost_as_one_recursion_over_all_items(slope):
    # the steeper the line of preference, the more blocks
    r, n = 11, 20
    first, second = np.triu_indices(r, 1)
    margins = np.random.default_rng(0).normal(size=(n, len(first))) + slope * (second - first)
    margins[np.abs(margins) < 0.1] = 0.0
    price = np.zeros((r, r, n))
    price[first, second] = np.maximum(margins, 0.0).T
    price[second, first] = np.maximum(-margins, 0.0).T
    best, low, high = np.empty((1 << r, n)), np.empty((r, 64, n)), np.empty((r, 64, n))
    cheapest_orders(price, r, n, low, high, best)
    assert np.allclose(minimize_disagreement(margins, r).cost, best[-1])


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


def test_a_time_limit_keeps_the_searched_order_and_a_valid_bound():
    margins = np.random.default_rng(0).normal(size=(2, 435))
    searched = minimize_disagreement(margins, 30)
    stopped = minimize_disagreement(margins, 30, exact="milp", time_limit=0.0)
    assert np.array_equal(stopped.positions, searched.positions)
    assert np.allclose(stopped.lower_bound, searched.lower_bound)
    assert not stopped.optimal.any()


def test_integer_program_by_hand():
    matrix = np.array([[0.0, -1.0, 2.0], [1.0, 0.0, -3.0], [-2.0, 3.0, 0.0]])  # 1 > 0 > 2 > 1
    order, bound = linear_ordering(matrix, 4.0, np.inf)
    assert order.tolist() == [0, 2, 1]
    assert bound == pytest.approx(1.0)


def test_renaming_the_items_renames_the_result():
    # ties are many here; only scores that go with the items may decide between them
    rng = np.random.default_rng(4)
    r, n = 7, 100
    first, second = np.triu_indices(r, 1)
    margins, scores = rng.integers(-1, 2, size=(n, len(first))).astype(float), rng.random((n, r))
    names = rng.permutation(r)
    full = np.zeros((n, r, r))
    full[:, first, second] = margins
    full -= full.transpose(0, 2, 1)
    renamed = full[:, names][:, :, names][:, first, second]
    for rule in (lambda *a, **k: minimize_disagreement(*a, **k).positions, borda, copeland):
        plain = rule(margins, r, tie_break=scores)
        assert np.array_equal(rule(renamed, r, tie_break=scores[:, names]), plain[:, names])


def test_without_information_the_order_is_the_tie_break_or_chance():
    scores = np.array([[1.0, 3.0, 2.0, 5.0]])
    for rule in (lambda *a, **k: minimize_disagreement(*a, **k).positions, borda, copeland):
        assert rule(np.zeros((1, 6)), 4, tie_break=scores).tolist() == [[3, 1, 2, 0]]
        # 4000 rows: each item is first 1000 times, with a standard deviation of 27
        chance = rule(np.zeros((4000, 6)), 4, seed=1)
        assert np.abs((chance == 0).sum(axis=0) - 1000).max() < 140


def test_rows_keep_their_result_with_their_key():
    margins = np.random.default_rng(0).integers(-1, 2, size=(50, 45)).astype(float)
    keys = np.arange(1000, 1050)
    together = minimize_disagreement(margins, 10, keys=keys).positions
    backwards = minimize_disagreement(margins[::-1], 10, keys=keys[::-1]).positions
    assert np.array_equal(backwards[::-1], together)


@pytest.mark.parametrize("n", [0, 1, 37])
def test_threads_do_not_change_the_result(n):
    margins = np.random.default_rng(0).integers(-2, 3, size=(n, 28)).astype(float)
    one = minimize_disagreement(margins, 8, max_exact=5)
    three = minimize_disagreement(margins, 8, max_exact=5, n_threads=3)
    for name in ("positions", "cost", "lower_bound", "optimal"):
        assert np.array_equal(getattr(one, name), getattr(three, name))


def test_borda_and_copeland_by_hand():
    # items 0 to 3: 0 beats 1 and 2 narrowly; 3 beats 0 by far and loses to 1 and 2
    margins = np.array([[1.0, 1.0, -9.0, 1.0, 2.0, 3.0]])
    # sums: 0: -7, 1: -1 + 1 + 2 = 2, 2: -1 - 1 + 3 = 1, 3: 9 - 2 - 3 = 4
    assert borda(margins, 4).tolist() == [[3, 1, 2, 0]]
    # wins minus losses: 0: 1, 1: 1, 2: -1, 3: -1; Borda decides between equals
    assert copeland(margins, 4).tolist() == [[1, 0, 3, 2]]


def test_items_that_do_not_exist_get_no_position():
    margins = np.array([[-1.0, 100.0, 100.0]])
    for rule in (lambda *a, **k: minimize_disagreement(*a, **k).positions, borda, copeland):
        assert rule(margins, 3, [2]).tolist() == [[1, 0, -1]]
        assert rule(margins, 3, [0]).tolist() == [[-1, -1, -1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"margins": np.zeros((2, 4))}, r"need shape \(n, 3\)"),
        ({"margins": np.array([[0.0, np.nan, 0.0]])}, "margins of row 0"),
        ({"sizes": [4, 3]}, "values from 0 to 3"),
        ({"sizes": [3]}, r"sizes need shape \(2,\)"),
        ({"tie_break": np.zeros((2, 2))}, r"tie_break needs shape \(2, 3\)"),
        ({"tie_break": np.full((2, 3), np.nan)}, "tie_break of row 0"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        minimize_disagreement(**{"margins": np.zeros((2, 3)), "r": 3, **arguments})
