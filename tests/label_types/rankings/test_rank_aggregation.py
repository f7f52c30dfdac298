"""Kemeny, Borda and Copeland for people who only want one ranking out of many."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from consilience.exceptions import InvalidLabelError, InvalidVotesError, UnsupportedError
from consilience.label_types.rankings.space import Rankings
from consilience.rankings import borda, copeland, kemeny
from consilience.votes import Votes

ALL = {r: np.array(list(permutations(range(r)))) for r in range(2, 6)}
#: 0 beats 1, 1 beats 2, 2 beats 0: whatever the order, one majority is contradicted.
CYCLE = [[0, 1, 2], [2, 0, 1], [1, 2, 0]]


def cost_of(positions, rankings, weights) -> float:
    """Add up the weighted distances of one ranking to some rankings."""
    space = Rankings(None)
    distances = space.distance(np.asarray(rankings), np.tile(positions, (len(rankings), 1)))
    return float(weights @ distances)


def test_a_worked_example():
    result = kemeny([[0, 1, 2], [0, 2, 1], [1, 0, 2]])
    assert result.positions.tolist() == [[0, 1, 2]]
    assert result.cost.tolist() == result.lower_bound.tolist() == [2.0]
    assert result.optimal.tolist() == [True]
    assert result.gap.tolist() == [0.0]


def test_weights_decide_which_majority_of_a_cycle_is_given_up():
    equal = kemeny(CYCLE)
    assert (equal.cost[0], equal.optimal[0]) == (4.0, True)
    assert kemeny(CYCLE, [1.0, 1.0, 5.0]).positions[0].tolist() == CYCLE[2]
    assert kemeny(CYCLE, [0.0, 1.0, 0.0]).cost.tolist() == [0.0]


def test_many_problems_come_with_one_set_of_weights_or_one_each():
    rankings = np.array([CYCLE, CYCLE])
    assert kemeny(rankings, [1.0, 1.0, 5.0]).positions.tolist() == [CYCLE[2], CYCLE[2]]
    assert kemeny(rankings, [[5.0, 1.0, 1.0], [1.0, 5.0, 1.0]]).positions.tolist() == CYCLE[:2]


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_kemeny_is_the_best_of_all_orders(r, m, seed):
    rng = np.random.default_rng(seed)
    seen = rng.random((m, r)) < 0.8
    seen[:, 0] = True
    rankings = Rankings.positions_from_scores(rng.integers(0, r, (m, r)), seen=seen)
    weights = np.round(rng.uniform(0.1, 2.0, m), 3)
    result = kemeny(rankings, weights)
    best = min(cost_of(order, rankings, weights) for order in ALL[r])
    assert result.optimal[0]
    assert result.cost[0] == pytest.approx(best)
    assert result.lower_bound[0] == pytest.approx(best)
    assert cost_of(result.positions[0], rankings, weights) == pytest.approx(best)
    assert ((result.positions[0] >= 0) == seen.any(axis=0)).all()


def test_integer_programming_closes_the_gap_of_the_search():
    rng = np.random.default_rng(3)
    rankings = rng.permuted(np.tile(np.arange(18), (5, 1)), axis=1)
    searched, proven = kemeny(rankings), kemeny(rankings, exact="milp")
    assert proven.optimal[0]
    assert proven.gap[0] == 0.0
    assert searched.lower_bound[0] <= proven.cost[0] <= searched.cost[0]


def test_threads_do_not_change_the_result():
    rankings = np.random.default_rng(0).permuted(np.tile(np.arange(6), (40, 3, 1)), axis=2)
    one, two = kemeny(rankings), kemeny(rankings, n_threads=2)
    assert (one.positions == two.positions).all()
    assert (one.cost == two.cost).all()


def test_equal_items_are_decided_by_the_seed_and_not_by_their_index():
    rankings = np.array([[[0, 1], [1, 0]]] * 200)
    first = kemeny(rankings).positions[:, 0]
    assert 0 < first.sum() < 200
    assert (first == kemeny(rankings).positions[:, 0]).all()
    assert (first != kemeny(rankings, seed=1).positions[:, 0]).any()


def test_items_that_nobody_sees_have_no_position():
    rankings = [[0, -1, 1], [0, -1, -1]]
    assert kemeny(rankings).positions.tolist() == [[0, -1, 1]]
    assert borda(rankings).tolist() == [[0, -1, 1]]
    assert copeland(rankings).tolist() == [[0, -1, 1]]


def test_sources_may_abstain_and_rows_may_differ_in_length():
    result = kemeny([[[1, 0], [1, 0]], [[0, 2, 1], None]])
    assert result.positions.tolist() == [[1, 0, -1], [0, 2, 1]]
    votes = Votes.from_array(np.array([CYCLE, CYCLE]), observed=[[True, False, False], [False, False, False]])
    found = kemeny(votes)
    assert found.positions.tolist() == [CYCLE[0], [-1, -1, -1]]
    assert found.cost.tolist() == [0.0, 0.0]


def test_rows_that_nobody_ranks_are_empty():
    votes = Votes.from_array([[None, None]], observed=[[False, False]])
    assert kemeny(votes).positions.shape == (1, 0)


def test_borda_and_copeland_of_a_worked_example():
    # Borda prefers 1 (second at worst); by majority 0 beats both others.
    rankings = np.array([[0, 1, 2]] * 3 + [[2, 0, 1]] * 2)
    assert borda(rankings).tolist() == [[1, 0, 2]]
    assert copeland(rankings).tolist() == [[0, 1, 2]]
    assert kemeny(rankings).positions.tolist() == [[0, 1, 2]]


def test_borda_and_copeland_follow_the_weights():
    assert borda(CYCLE, [1, 1, 5]).tolist() == copeland(CYCLE, [1, 1, 5]).tolist() == [CYCLE[2]]
    assert borda(np.array([CYCLE] * 2), [1, 1, 5]).shape == (2, 3)


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
        (
            [CYCLE, [[0, 1, 2], [0, 1, 2], [-1, -1, -1]]],
            None,
            InvalidLabelError,
            ["Row 1, source 'source_2'", "no item"],
        ),
        ([[0, 1], [0, 1, 2]], None, InvalidVotesError, ["Source 1 ranks 3 items, source 0 ranks 2", "-1"]),
        ([["a", "b"]], None, InvalidVotesError, ["<U1", "positions_from_orders"]),
        ([0, 1, 2], None, InvalidVotesError, ["shape (3,)"]),
    ],
)
def test_bad_input_is_refused_with_its_place(aggregate, rankings, weights, error, parts):
    with refused(error, *parts):
        aggregate(rankings, weights)


def test_an_unknown_solver_is_refused():
    with refused(UnsupportedError, "exact='fast'"):
        kemeny(CYCLE, exact="fast")
