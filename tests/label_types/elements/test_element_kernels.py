"""The kernels of boxes and spans, against brute force on small sets."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.label_types.elements.kernels import (
    best_total,
    corner_gaps,
    length_costs,
    match_elements,
    overlap,
    place_elements,
    set_costs,
)
from consilience.label_types.elements.law import believe_elements


@pytest.mark.parametrize(
    ("left", "right", "share"),
    [
        ([0, 0, 2, 2], [1, 0, 3, 2], 1 / 3),
        ([0, 0, 2, 2], [2, 0, 4, 2], 0.0),
        ([0, 0, 4, 4], [1, 1, 3, 3], 0.25),
        ([5, 5, 5, 5], [5, 5, 5, 5], 1.0),
        ([5, 5, 5, 5], [0, 0, 9, 9], 0.0),
    ],
)
def test_overlap_is_intersection_over_union(left, right, share):
    assert overlap(np.array([left, right], dtype=float), 0, 1) == pytest.approx(share)


@settings(deadline=None, max_examples=60)
@given(rows=st.integers(1, 4), more=st.integers(0, 2), seed=st.integers(0, 10**6))
def test_assignment_is_as_good_as_the_best_of_all_orders(rows, more, seed):
    rng = np.random.default_rng(seed)
    gain = rng.random((rows, rows + more)) * (rng.random((rows, rows + more)) < 0.6)
    best = max(sum(gain[i, order[i]] for i in range(rows)) for order in permutations(range(rows + more), rows))
    assert best_total(gain) == pytest.approx(best)


def costs(sets, by_length=False, codes=None):
    values = np.array([element for one in sets for element in one], dtype=float).reshape(-1, 2 if by_length else 4)
    ends = np.cumsum([0, *map(len, sets)])
    kinds = np.zeros(len(values), dtype=np.int64) if codes is None else np.array(codes)
    costs = length_costs if by_length else set_costs
    return costs(values, kinds, ends, np.array([[0, 1]]))[0]


def test_cost_of_boxes_is_one_minus_matched_overlap_over_the_mean_number():
    # overlaps 1/3 and 1, three boxes here and two there: 1 - 2 (1/3 + 1) / 5
    left = [[0, 0, 2, 2], [10, 10, 12, 12], [50, 50, 60, 60]]
    right = [[1, 0, 3, 2], [10, 10, 12, 12]]
    assert costs([left, right]) == pytest.approx(1 - 2 * (4 / 3) / 5)
    assert costs([left, right], codes=[0, 0, 0, 0, 1]) == pytest.approx(1 - 2 * (1 / 3) / 5)
    assert costs([[], []]) == 0.0
    assert costs([left, []]) == 1.0


def test_cost_of_spans_counts_characters_once():
    # 0..10 in two pieces that overlap against 5..20: 5 characters in common, 10 and 15 marked
    assert costs([[[0, 6], [4, 10]], [[5, 20]]], by_length=True) == pytest.approx(1 - 2 * 5 / 25)


def test_marks_are_matched_to_the_element_most_sources_support():
    # Sources 0, 1, 2 mark the same box, source 1 another one beside it, source 2 one far away.
    values = np.array([[0, 0, 10, 10], [0, 0, 10, 9], [4, 0, 14, 10], [1, 0, 10, 10], [50, 50, 60, 60]], dtype=float)
    sources = np.array([0, 1, 1, 2, 2])
    group, item = match_elements(values, np.zeros(5, dtype=np.int64), sources, np.array([0, 5]), 0.4)
    assert group[0] == group[1] == group[3]
    assert len({group[0], group[2], group[4]}) == 3
    assert item.tolist() == [0, 0, 0]


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_a_group_has_one_mark_per_source_and_stays_within_its_item(seed):
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 20, (30, 2))
    values = np.hstack([low, low + rng.uniform(2, 10, (30, 2))])
    item_of = np.sort(rng.integers(0, 4, 30))
    sources = np.zeros(30, dtype=np.int64)
    for item in range(4):
        rows = np.flatnonzero(item_of == item)
        sources[rows] = np.sort(rng.integers(0, 5, len(rows)))
    starts = np.searchsorted(item_of, np.arange(5))
    group, items = match_elements(values, rng.integers(0, 2, 30), sources, starts, 0.3)
    assert (group >= 0).all()
    assert (items[group] == item_of).all()
    marks = list(zip(group.tolist(), sources.tolist(), strict=True))
    assert len(set(marks)) == len(marks)


def test_probability_of_an_element_is_that_of_the_two_stories():
    """Two sources saw the item, one marked: real by one mark and one miss, false by whose it is."""
    nodes, log_weight = np.array([-1.0, 1.0]), np.log([0.5, 0.5])
    logit, rate, prior, same = np.array([0.5, -0.2]), np.array([0.3, 0.6]), 0.4, 0.05
    chance = 1 / (1 + np.exp(-(logit[:, None] + nodes)))
    seen = 0.5 * (chance[0] * (1 - chance[1])).sum()
    nobody = 0.5 * ((1 - chance[0]) * (1 - chance[1])).sum()
    real, false = prior * seen / (1 - nobody), (1 - prior) * (0.3 / 0.9) * (1 - same)
    one = np.array([0, 1])  # one group of one mark on one item
    probability, unseen, exposure = believe_elements(
        one, one[:1], one, np.ones((1, 2)), np.array([-1]), logit, rate, prior, same, nodes, log_weight
    )
    assert probability[0] == pytest.approx(real / (real + false))
    assert unseen[0] == pytest.approx(probability[0] * nobody / (1 - nobody))
    assert exposure.sum(axis=1) == pytest.approx(np.full(2, probability[0] + unseen[0]))


@pytest.mark.parametrize("weights", [[1.0, 3.0, 3.0], [3.0, 1.0, 3.0]])
def test_places_do_not_depend_on_who_is_first_of_those_who_agree(weights):
    """Two votes of total weight 4 count from 1 to 3, the third from 5.5 on; the middle, 3.5, is a fifth of the way."""
    values, one = np.array([[1.0, 9.0], [1.0, 9.0], [4.0, 9.0]]), np.zeros(3, dtype=np.int64)
    given = (values, one, np.array([0, 3]), np.arange(3), one[:1], np.ones((1, 3)), np.array(weights), np.ones(3), 0)
    assert place_elements(*given)[0].tolist() == [[pytest.approx(1.6), 9.0]]


def test_places_are_weighted_medians_classes_are_voted_and_gaps_are_shares_of_the_side():
    values = np.array([[0, 0, 10, 10], [1, 0, 10, 10], [4, 0, 10, 10]], dtype=float)
    starts, sources, item = np.array([0, 3]), np.arange(3), np.zeros(1, dtype=np.int64)
    places, kinds, common, judged = place_elements(
        values, np.array([0, 1, 1]), starts, sources, item, np.ones((1, 3)), np.array([1.0, 1.0, 3.0]), np.ones(3), 2
    )
    # The weights 1, 1, 3 lie around .5, 1.5 and 3.5; their middle, 2.5, is halfway between the last two.
    assert places.tolist() == [[2.5, 0, 10, 10]]
    assert kinds.tolist() == [1]
    assert common[2] == pytest.approx(0.8)  # 60 of 75
    assert judged.tolist() == [True]
    sums = corner_gaps(values, starts, np.array([0, 2, 3]), np.array([0.5]), values[:1], 3)
    assert sums[0, 0, 2] == sums[0, 2, 0] == 0.5
    assert sums[1, 2, 3] == pytest.approx(0.5 * 3 / 4 / 10)
