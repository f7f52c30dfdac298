"""Rankings as a label space: reading labels, distance, means, samples, storage, and every refusal."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from consilience import Rankings
from consilience.exceptions import InvalidLabelError
from consilience.tables.encoding import encode
from consilience.votes import Votes

NAMED = Rankings(["milk", "juice", "tea"])


def discordant(left, right) -> int:
    """Count pairs in opposite order, one by one."""
    total = 0
    for i, j in combinations(range(len(left)), 2):
        if min(left[i], left[j], right[i], right[j]) >= 0:
            total += (left[i] - left[j]) * (right[i] - right[j]) < 0
    return total


def bucket_orders(r: int) -> st.SearchStrategy[list[int]]:
    """Dense positions of r items with ties and unseen items, at least one seen."""

    def dense(values: list[int]) -> list[int]:
        places = {value: place for place, value in enumerate(sorted({value for value in values if value >= 0}))}
        return [places.get(value, -1) for value in values]

    return st.lists(st.integers(-1, r), min_size=r, max_size=r).filter(lambda values: max(values) >= 0).map(dense)


def test_positions_come_as_arrays_of_any_number_type_or_as_lists_and_may_skip_places_behind_a_tie():
    for dtype in (np.int8, np.int16, np.int64, np.uint8, np.float32, np.float64, object):
        labels = np.array([[0, 1, 2], [1, 1, 0]], dtype=dtype)
        batch = Rankings(3).as_batch(labels)
        assert batch.dtype == np.int16
        assert not np.shares_memory(batch, labels)
        assert batch.tolist() == [[0, 1, 2], [1, 1, 0]]
    array = np.array([0, 1, 2])
    for cells in ([[0, 1, 2], (2, 1, 0)], [array, [2.0, 1.0, 0.0]], [array, array[::-1]]):
        assert Rankings(3).as_batch(cells).tolist() == [[0, 1, 2], [2, 1, 0]]
    batch = Rankings(5).as_batch([[0, 1, 1, 2, -1], [0, 1, 1, 3, -1], [3, 0, 0, 0, 4], [0, 0, 0, 0, 0]])
    assert batch.tolist() == [[0, 1, 1, 2, -1], [0, 1, 1, 2, -1], [1, 0, 0, 0, 2], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize("r", [2, 8, 200])
def test_any_number_of_items_is_checked(r):
    space, rng = Rankings(r), np.random.default_rng(r)
    rows = space.random(20, rng)
    assert (space.as_batch(rows) == rows).all()
    rows[7] = np.where(rows[7] == r - 1, r, rows[7])
    with pytest.raises(InvalidLabelError, match=f"gap in its positions after {r - 2}") as caught:
        space.as_batch(rows)
    assert caught.value.index == 7


def test_names_come_as_orders_or_dicts_and_come_back_as_the_votes_came():
    labels = [["tea", "milk"], [("tea", "milk"), "juice"], {"juice": 0}, {"milk": 1, "tea": 0, "juice": 1}]
    batch = NAMED.as_batch(labels)
    assert batch.tolist() == [[1, -1, 0], [0, 1, 0], [-1, 0, -1], [1, 1, 0]]
    assert NAMED.as_batch(np.array([["tea", "milk", "juice"]])).tolist() == [[1, 2, 0]]
    orders = [["tea", "milk"], [("milk", "tea"), "juice"], ["juice"], ["tea", ("milk", "juice")]]
    assert NAMED.as_labels(batch).tolist() == NAMED.as_labels(batch, np.dtype(object)).tolist() == orders
    assert NAMED.as_labels(batch, np.dtype(np.int64)).tolist() == batch.tolist()


def test_ragged_rows_are_padded_at_the_end():
    labels = [[1, 0], [0, 1, 2, -1]]
    assert Rankings(None).as_batch(labels).tolist() == [[1, 0, -2, -2], [0, 1, 2, -1]]
    assert Rankings(5, ragged=True).as_batch(labels).tolist() == [[1, 0, -2, -2, -2], [0, 1, 2, -1, -2]]
    table = np.array([[0, 1, -2, -2], [0, 1, 2, -2]])  # or by the user
    assert Rankings(None).as_batch(table).tolist() == table.tolist()
    assert Rankings(3, ragged=True).as_batch(table).tolist() == [[0, 1, -2], [0, 1, 2]]


def test_contains_tells_rankings_from_other_things_and_a_wrong_label_is_named_with_row_and_source():
    space = Rankings(3)
    assert space.contains([0, 1, 2])
    assert space.contains(np.array([0, 0, 1]))
    assert not any(space.contains(value) for value in (-1, 0, None, "abc", [0, 1], [0, 2, 4], {"a": 0}))
    votes = Votes.from_array([[[0, 1, 2], None], [[2, 1, 0], [0, 3, 1]]], sources=["ann", "bob"])
    with refused(InvalidLabelError, "Row 1", "'bob'", "[0, 3, 1]", "gap"):
        encode(votes, space)


@pytest.mark.parametrize(
    ("space", "label", "parts"),
    [
        (Rankings(3, allow_ties=False), [0, 0, 1], ["[0, 0, 1] repeats a position", "allow_ties=True"]),
        (Rankings(3, allow_ties=False), [0, 0, 2], ["repeats a position"]),
        (Rankings(3), [0, 2, 2], ["gap in its positions after 0", "positions_from_scores"]),
        (Rankings(4), [0, 0, 1, 3], ["gap in its positions after 1"]),
        (Rankings(3), [0, -1, 2], ["gap in its positions after 0"]),
        (Rankings(3), [0, 1, 10**9], ["gap in its positions after 1"]),
        (Rankings(3), [1, 2, 3], ["nothing at position 0, its best is 1", "subtract 1"]),
        (Rankings(3), [1, 3, 5], ["nothing at position 0", "without gaps"]),
        (Rankings(3), [-1, 1, -1], ["nothing at position 0"]),
        (Rankings(3), [-1, -1, -1], ["ranks no item", "None if a source abstains"]),
        (Rankings(3), [], ["the ranking is empty", "None if a source abstains"]),
        (Rankings(None), [], ["the ranking is empty"]),
        (Rankings(3), [0, -3, 1], ["a position below -1"]),
        (Rankings(3), [0, 1, -2], ["a position below -1", "ragged=True only"]),
        (Rankings(None), [0, -2, 1], ["-2 before its end", "-1"]),
        (Rankings(3), [0, 1], ["has 2 items; expected 3", "-1", "ragged=True"]),
        (Rankings(3), [0, 1, 2, 3], ["has 4 items; expected 3", "Rankings(4)"]),
        (Rankings(3, ragged=True), [0, 1, 2, 3], ["has 4 items; expected at most 3", "Rankings(4, ragged=True)"]),
        (Rankings(3), [0, float("nan"), 1], ["not a position", "-1 for an item that is not seen"]),
        (Rankings(3), [0, 0.5, 1], ["not a position", "positions_from_scores"]),
        (Rankings(3), [0, 10**30, 1], ["not a position"]),
        (Rankings(3), [0, None, 1], ["holds None"]),
        (Rankings(3), ["a", "b", "c"], ["is an order", "Rankings([...])", "positions_from_orders"]),
        (Rankings(3), {"a": 0}, ["is a dict", "no names"]),
        (Rankings(3), 1, ["label 1 is not a ranking", "the positions of 3 items", "each row and source"]),
        (Rankings(None), None, ["label None is not a ranking", "a list with the position of each item"]),
        (NAMED, "tea", ["label 'tea' is not a ranking", "names, best first"]),
        (NAMED, ["tea", "coffee"], ["'coffee' is unknown", "'milk', 'juice', 'tea'"]),
        (NAMED, ["tea", "tea"], ["'tea' is listed twice"]),
        (NAMED, ["tea", 7], ["item 7 is not one of the items 0 .. 2"]),
        (NAMED, {"coffee": 0}, ["'coffee' is unknown"]),
        (NAMED, {"tea": "first"}, ["'tea' is at 'first'"]),
        (NAMED, {"tea": 0, "milk": 2}, ["gap"]),
    ],
)
def test_what_is_no_ranking_is_refused_with_its_index(space, label, parts):
    good = ["tea", "milk"] if space.names else list(range(space.n_items or 3))
    with refused(InvalidLabelError, *parts):
        space.as_batch([label])
    with pytest.raises(InvalidLabelError) as caught:
        space.as_batch([good, good, label, good])
    assert caught.value.index == 2
    with refused(InvalidLabelError, "shape (2, 2)"):
        space.as_batch(np.zeros((1, 2, 2), dtype=int))


@pytest.mark.parametrize(
    ("items", "options", "parts"),
    [
        (1, {}, ["items=1", "2 to 32767"]),
        (10**6, {}, ["items=1000000"]),
        (True, {}, ["neither how many"]),
        (2.5, {}, ["neither how many"]),
        ("abc", {}, ["neither how many", "a list of names"]),
        ([1, 2], {}, ["cannot be called 1"]),
        (["a", "a"], {}, ["'a' is named twice"]),
        (["a", "b"], {"ragged": True}, ["ragged=True contradicts"]),
    ],
)
def test_a_space_without_sense_is_refused(items, options, parts):
    with refused(InvalidLabelError, *parts):
        Rankings(items, **options)


def test_a_space_prints_as_it_is_written_and_is_restored_from_its_spec():
    spaces = [Rankings(5), NAMED, Rankings(None), Rankings(9, ragged=True), Rankings(4, allow_ties=False, signed=True)]
    for space, n_items in zip(spaces, [5, 3, None, 9, 4], strict=True):
        assert eval(repr(space)) == Rankings(**space.spec()) == space
        assert (space.n_items, space.n_labels) == (n_items, None)
    assert repr(spaces[1]) == "Rankings(['milk', 'juice', 'tea'])"
    assert repr(spaces[4]) == "Rankings(4, allow_ties=False, signed=True)"
    assert len({*spaces}) == 5
    assert float(Rankings(7).law.expected_cost(np.zeros(1))[0]) == pytest.approx(7 * 6 / 4)


def test_distance_of_worked_examples():
    space = Rankings(4)
    left = space.as_batch([[0, 1, 2, 3]] * 5)
    right = space.as_batch([[3, 2, 1, 0], [0, 2, 1, 3], [0, 0, 1, 1], [1, 0, -1, -1], [0, 0, 0, 0]])
    assert space.distance(left, right).tolist() == [6.0, 1.0, 0.0, 1.0, 0.0]
    narrow, wide = Rankings(None).as_batch([[0, 1, 2]]), Rankings(None).as_batch([[2, 1, 0], [0, 1, 2, 3]])[:1]
    assert Rankings(None).distance(narrow, wide).tolist() == [3.0]


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 6).flatmap(lambda r: st.tuples(bucket_orders(r), bucket_orders(r))))
def test_distance_counts_discordant_pairs(pair):
    left, right = pair
    space = Rankings(len(left))
    found = space.distance(space.as_batch([left, right, left]), space.as_batch([right, left, left]))
    assert found.tolist() == [discordant(left, right)] * 2 + [0.0]


def test_kendall_error_of_worked_examples():
    space = Rankings(3)
    assert space.kendall_error([[0, 1, 2]], [[2, 1, 0]]) == 1.0
    assert space.kendall_error([[0, 1, 2]], [[1, 0, 2]]) == pytest.approx(1 / 3)
    assert space.kendall_error([[0, 0, 0]], [[1, 0, 2]]) == 0.5  # nothing is decided
    assert space.kendall_error([[0, 1, -1]], [[1, 0, 2]]) == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert space.kendall_error([[0, 1, 2]], [[1, 0, -1]]) == 1.0  # the gold orders one pair only
    assert NAMED.kendall_error([["tea", "milk", "juice"]], [[1, 2, 0]]) == 0.0
    predicted = np.array([[0, 1, 2], [-1, -1, -1], [0, 1, 2], [0, 1, 2]])  # rows without a label are left out
    gold = [[1, 0, 2], [0, 1, 2], None, [0, 0, 0]]
    assert space.kendall_error(predicted, gold) == pytest.approx(1 / 3)
    assert np.isnan(space.kendall_error(predicted[1:2], gold[1:2]))
    assert np.isnan(space.kendall_error(predicted[3:], gold[3:]))
    with refused(InvalidLabelError, "4 predictions for 3 gold labels"):
        space.kendall_error(predicted, gold[:3])


def test_random_rankings_are_uniform_and_have_three_to_seven_items_where_ragged():
    # 6 orders of 3 items, 6000 draws: chi-square above 25.7 has probability 1e-4
    drawn = Rankings(3).random(6000, np.random.default_rng(0))
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert ((counts - 1000) ** 2 / 1000).sum() < 25.7
    space = Rankings(None)
    one, two = (space.random(50, np.random.default_rng(seed)) for seed in (0, 1))
    assert {len(label) for label in space.as_labels(one)} == {3, 4, 5, 6, 7}
    assert ((one == -2) == (two == -2)).all()
    assert (space.as_batch(space.as_labels(one)) == one).all()


@pytest.mark.parametrize("weight", [0.0, 0.7, -0.7])
def test_costs_and_draws_are_those_of_the_mallows_law(weight):
    space, truth = Rankings(4), np.array([2, 0, 3, 1], dtype=np.int16)
    orders = np.array(list(permutations(range(4))), dtype=np.int16)
    distance = space.distance(orders, np.tile(truth, (24, 1)))
    share = np.exp(-weight * distance) / np.exp(-weight * distance).sum()
    cost = space.law.expected_cost(np.array([weight]))
    assert cost[0] == pytest.approx(share @ distance)
    assert space.law.weight_from_cost(cost)[0] == pytest.approx(weight, abs=1e-9)
    # 20,000 draws of 24 orders: one of them is off by five standard errors once in 70,000 runs
    drawn = space.sample_around(np.tile(truth, (20_000, 1)), weight, np.random.default_rng(5))
    seen = np.array([(drawn == order).all(axis=1).mean() for order in orders])
    assert (np.abs(seen - share) < 5 * np.sqrt(share * (1 - share) / 20_000)).all()


def test_votes_around_a_centre_see_what_it_sees():
    space = Rankings(None)
    center = space.as_batch([[0, 1, -1], [0, 1, 1, 0, 2]])
    drawn = space.sample_around(center, 50.0, np.random.default_rng(0))
    assert drawn[0].tolist() == [0, 1, -1, -2, -2]
    assert sorted(drawn[1].tolist()) == [0, 1, 2, 3, 4]  # ties of the centre are broken
    assert space.distance(center, drawn).tolist() == [0.0, 0.0]
