"""Rankings from orders, scores, top-k lists, pairwise preferences and PrefLib text."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from consilience import Rankings
from consilience.exceptions import InvalidLabelError, UnsupportedError

positions_from_orders, positions_from_scores = Rankings.positions_from_orders, Rankings.positions_from_scores
positions_from_top_k, positions_from_pairs = Rankings.positions_from_top_k, Rankings.positions_from_pairs
DRINKS = ["milk", "juice", "tea", "water"]


def test_orders_of_numbers_and_names():
    assert positions_from_orders([[2, 0, 1]]).tolist() == [[1, 2, 0]]
    assert positions_from_orders([[2, 0]], items=4).tolist() == [[1, -1, 0, -1]]
    found = positions_from_orders([["tea", "milk"], ("juice",), ["tea", 0]], DRINKS)
    assert found.tolist() == [[1, -1, 0, -1], [-1, 0, -1, -1], [1, -1, 0, -1]]
    for tie in ((1, 2), {1, 2}, frozenset({1, 2})):
        assert positions_from_orders([[0, tie, 3]]).tolist() == [[0, 1, 1, 2]]
    rng = np.random.default_rng(1)
    orders = rng.permuted(np.tile(np.arange(6), (30, 1)), axis=1).reshape(10, 3, 6)
    positions = positions_from_orders(orders)
    assert positions.dtype == np.int16
    assert (np.take_along_axis(positions, orders, axis=2) == np.arange(6)).all()
    one_by_one = positions_from_orders([order.tolist() for order in orders.reshape(30, 6)])
    assert (positions.reshape(30, 6) == one_by_one).all()
    assert positions_from_orders(np.array([[2, 0], [1, 3]]), 4).tolist() == [[1, -1, 0, -1], [-1, 0, -1, 1]]
    assert positions_from_orders(np.array([["tea", "milk"]]), DRINKS).tolist() == [[1, -1, 0, -1]]


def test_orders_per_row_and_source_keep_their_shape_and_none_is_no_order():
    nested = [[[0, 1], [1, 0]], [None, [1, (0, 2)]]]
    cells = np.empty((2, 2), dtype=object)
    for row, column in np.ndindex(2, 2):
        cells[row, column] = nested[row][column]
    expected = [[[0, 1, -1], [1, 0, -1]], [[-1, -1, -1], [1, 0, 1]]]
    assert positions_from_orders(nested).tolist() == expected
    assert positions_from_orders(cells).tolist() == expected


@pytest.mark.parametrize(
    ("orders", "items", "parts"),
    [
        ([[0, 1], [0, 0]], None, ["Row 1: item 0 is listed twice", "ties are tuples"]),
        ([[0, 1], []], None, ["Row 1: the order is empty", "None"]),
        ([[0, 1], [0, ()], [()]], None, ["Row 2: the order is empty"]),
        ([[0, 5]], 3, ["Row 0: item 5 is not one of the items 0 .. 2", "declare more"]),
        ([[0, -1]], None, ["item -1 is not one of the items 0, 1, ..."]),
        ([[0, 1.5]], None, ["item 1.5"]),
        ([["a", "b"]], None, ["item 'a'", "items=[...]"]),
        ([["tea", "coffee"]], DRINKS, ["'coffee' is unknown", "'milk', 'juice', 'tea', 'water'"]),
        (["tea"], DRINKS, ["Row 0: 'tea' is not an order"]),
        ([[[0, 1], [1, 1]]], None, ["Row 0, source 1: item 1 is listed twice"]),
        ([[[0, 1], [1, 0]], [[0, 1]]], None, ["different numbers of orders"]),
        ([[0, 1]], 1, ["items=1"]),
        ([[0, 1]], "abc", ["items='abc'"]),
    ],
)
def test_what_is_no_order_is_refused_with_its_place(orders, items, parts):
    with refused(InvalidLabelError, *parts):
        positions_from_orders(orders, items)


def test_top_k_puts_the_others_last_and_not_out_of_sight():
    lists = [["tea"], ["water", "milk"], [("tea", "milk"), "juice", "water"]]
    assert positions_from_top_k(lists, DRINKS).tolist() == [[1, 1, 0, 1], [1, 2, 2, 0], [0, 1, 0, 2]]
    assert positions_from_top_k(np.array([[2, 0], [1, 3]]), 4).tolist() == [[1, 2, 0, 2], [2, 0, 2, 1]]
    assert positions_from_top_k([[[0], None]], 3).tolist() == [[[0, 1, 1], [-1, -1, -1]]]
    with refused(InvalidLabelError, "Row 1: the order is empty"):
        positions_from_top_k([[0], []], 3)


def test_scores_in_either_direction_and_their_ties():
    assert positions_from_scores([[0.1, 0.9, 0.5]]).tolist() == [[2, 0, 1]]
    assert positions_from_scores([[0.1, 0.9, 0.5]], larger_is_better=False).tolist() == [[0, 2, 1]]
    assert positions_from_scores([[1, 1, 0]]).tolist() == [[0, 0, 1]]
    scores = [[10.0, 9.5, 9.0, 8.5, 0.0]]  # a tie reaches as far as the tolerance from the best of the group
    assert positions_from_scores(scores, tie_tolerance=1.0).tolist() == [[0, 0, 0, 1, 2]]
    assert positions_from_scores(scores, tie_tolerance=0.5).tolist() == [[0, 0, 1, 1, 2]]
    assert positions_from_scores(scores, tie_tolerance=np.inf).tolist() == [[0, 0, 0, 0, 0]]


def test_unseen_items_may_have_any_score():
    scores = [[[np.nan, 1.0, 2.0]], [[3.0, 9.0, np.inf]], [[0.0, -np.inf, -np.inf]]]
    seen = [[[False, True, True]], [[True, True, True]], [[True, True, True]]]
    positions = positions_from_scores(scores, seen=seen)
    assert positions.tolist() == [[[-1, 1, 0]], [[2, 1, 0]], [[0, 1, 1]]]
    assert positions_from_scores([[1.0, 2.0]], seen=[[False, False]]).tolist() == [[-1, -1]]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=1, max_size=8))
def test_positions_count_the_better_groups(rows):
    positions = positions_from_scores(rows)
    assert positions.tolist() == [[len({other for other in row if other > value}) for value in row] for row in rows]
    assert (Rankings(4).as_batch(positions) == positions).all()
    assert (positions_from_scores(positions, larger_is_better=False) == positions).all()


def test_scores_that_are_none_are_refused_with_their_place():
    scores = np.zeros((4, 2, 3))
    scores[2, 1, 0] = np.nan
    with refused(InvalidLabelError, "Row 2, source 1: item 0: the score is NaN", "seen=False"):
        positions_from_scores(scores)
    with refused(InvalidLabelError, "Row 3: item 1: the score is NaN"):
        positions_from_scores([[0, 1]] * 3 + [[0, np.nan]])
    with refused(InvalidLabelError, "not an array of numbers"):
        positions_from_scores([[1, 2], [1, 2, 3]])
    with refused(InvalidLabelError, "shape ()"):
        positions_from_scores(3.0)
    with refused(InvalidLabelError, "seen has shape (2,)"):
        positions_from_scores([[1, 2]], seen=[True, True])
    for tolerance in (-1.0, np.nan):
        with refused(UnsupportedError, "tie_tolerance="):
            positions_from_scores([[1, 2]], tie_tolerance=tolerance)


def test_pairs_settle_an_order_directly_or_through_others():
    chain = [("tea", "milk"), ("milk", "water")]
    assert positions_from_pairs([chain], DRINKS).tolist() == [[1, -1, 0, 2]]
    assert positions_from_pairs([[(0, 1)], None], 3).tolist() == [[0, 1, -1], [-1, -1, -1]]
    assert positions_from_pairs([[(0, 1)]], 4, ties=[[(1, 2), (2, 3)]]).tolist() == [[0, 1, 1, 1]]
    assert positions_from_pairs([None], 3, ties=[[(0, 2)]]).tolist() == [[0, -1, 0]]
    assert positions_from_pairs([[[0, 1], [0, 1]]], 2).tolist() == [[0, 1]]  # said twice


def test_orders_and_pairs_of_rankings_give_the_rankings_back():
    rng = np.random.default_rng(0)
    seen = rng.random((40, 5)) < 0.8
    seen[:, 0] = True
    tied = positions_from_scores(rng.integers(0, 4, (40, 5)), seen=seen)
    groups = [[tuple(np.flatnonzero(row == place)) for place in range(row.max() + 1)] for row in tied]
    assert (positions_from_orders(groups, items=5) == tied).all()
    strict, equal = [], []
    for row in tied:
        pairs = [(i, j) if row[i] <= row[j] else (j, i) for i, j in combinations(np.flatnonzero(row >= 0).tolist(), 2)]
        strict.append([pair for pair in pairs if row[pair[0]] != row[pair[1]]])
        equal.append([pair for pair in pairs if row[pair[0]] == row[pair[1]]])
    rows = [index for index, pairs in enumerate(strict) if pairs]
    found = positions_from_pairs([strict[row] for row in rows], 5, ties=[equal[row] for row in rows])
    assert (found == tied[rows]).all()


def test_pairs_per_row_and_source_keep_their_shape():
    cells = np.empty((1, 2), dtype=object)
    cells[0, 0], cells[0, 1] = [(0, 1)], [(1, 0)]
    assert positions_from_pairs(cells, 2).tolist() == [[[0, 1], [1, 0]]]
    cells[0, 1] = [(0, 1), (1, 0)]
    with refused(InvalidLabelError, "Row 0, source 1: the preferences form a cycle"):
        positions_from_pairs(cells, 2)


@pytest.mark.parametrize(
    ("pairs", "ties", "parts"),
    [
        ([("tea", "milk"), ("milk", "juice"), ("juice", "tea")], None, ["cycle: 'milk' > 'juice' > 'tea' > 'milk'"]),
        ([("water", "tea"), ("tea", "milk"), ("milk", "tea")], None, ["'milk' > 'tea' > 'milk'", "Bradley-Terry"]),
        ([("tea", "tea")], None, ["cycle: 'tea' > 'tea'"]),
        ([("tea", "milk")], [("milk", "tea")], ["cycle", "tied items count as one"]),
        ([("tea", "milk"), ("tea", "juice")], None, ["how 'milk' and 'juice' compare", "a tie", "Bradley-Terry"]),
        ([("tea", "milk"), ("water", "juice")], None, ["how 'tea' and 'water' compare"]),
        ([("tea", "coffee")], None, ["'coffee' is unknown"]),
        ([("tea", "milk", "juice")], None, ["('tea', 'milk', 'juice') is not a pair"]),
        ([("tea", "milk"), 3], None, ["3 is not a pair"]),
        (["ab"], None, ["'ab' is not a pair"]),
        ([], None, ["there is no pair", "None"]),
    ],
)
def test_pairs_that_make_no_ranking_are_refused_with_their_place(pairs, ties, parts):
    good = [("tea", "milk")]
    with refused(InvalidLabelError, "Row 1: ", *parts):
        positions_from_pairs([good, pairs], DRINKS, ties=None if ties is None else [[], ties])
    with refused(InvalidLabelError, "ties for 2 rankings and preferences for 1"):
        positions_from_pairs([good], DRINKS, ties=[[], []])


TOI = """# FILE NAME: 00001.toi
# NUMBER ALTERNATIVES: 4
# ALTERNATIVE NAME 1: black tea
# ALTERNATIVE NAME 2: milk
# ALTERNATIVE NAME 4: juice: orange

3: 1,2,{3,4}
2: {4, 1}
1: 3
"""


def test_preflib_text_is_read_with_counts_and_names():
    profile = Rankings.read_preflib(TOI)
    assert profile.positions.tolist() == [[0, 1, 2, 2], [0, -1, -1, 0], [-1, -1, 0, -1]]
    assert (profile.counts.tolist(), profile.names) == ([3, 2, 1], ("black tea", "milk", "3", "juice: orange"))
    assert Rankings(profile.names).n_items == 4
    favorites = Rankings.read_preflib(TOI, unlisted="below")
    assert favorites.positions.tolist() == [[0, 1, 2, 2], [0, 1, 1, 0], [1, 1, 0, 1]]
    bare = Rankings.read_preflib("5: 2,1,3\n2: 1,3\n")  # without a header
    assert (bare.positions.tolist(), bare.names) == ([[1, 0, 2], [0, -1, 1]], ("1", "2", "3"))
    with refused(UnsupportedError, "unlisted='last'", "'below'"):
        Rankings.read_preflib("1: 1,2\n", unlisted="last")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["no ranking", "12: 1,3,{2,4}"]),
        ("# only comments\n", ["no ranking"]),
        ("4\n1,tea\n", ["Line 1 is '4'", "before 2022"]),
        ("# x\n3: 1,2\n2: 1,{2,3\n", ["Line 3 is '2: 1,{2,3'"]),
        ("3: 1,,2\n", ["Line 1"]),
        ("3: 1,{}\n", ["Line 1"]),
        ("3: tea,milk\n", ["Line 1 is '3: tea,milk'"]),
        ("3: 1,0\n", ["Line 1 ranks item 0; the items are 1 .. n"]),
        ("# NUMBER ALTERNATIVES: 2\n3: 1,3\n", ["Line 2 ranks item 3; the items are 1 .. 2"]),
        ("3: 1,2,1\n", ["Line 1 ranks an item twice"]),
    ],
)
def test_text_of_another_format_is_refused_with_its_line(text, parts):
    with refused(InvalidLabelError, *parts):
        Rankings.read_preflib(text)
