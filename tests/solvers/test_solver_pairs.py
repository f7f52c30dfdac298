"""Which pairs count and which sources they determine: `consilience.solvers.pairs`."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.solvers.pairs import (
    components,
    has_odd_cycle,
    partner_pairs,
    strong_pairs,
    usable_pairs,
)


def mask(count, pairs):
    linked = np.zeros((count, count), dtype=bool)
    for a, b in pairs:
        linked[a, b] = linked[b, a] = True
    return linked


def test_usable_pairs_need_both_directions_and_two_sources():
    independent = np.array([[True, True, False], [True, True, True], [False, False, True]])
    np.testing.assert_array_equal(usable_pairs(independent), mask(3, [(0, 1)]))


def test_usable_pairs_does_not_change_its_input():
    independent = np.ones((2, 2), dtype=bool)
    usable_pairs(independent)
    assert independent.all()


def test_a_pair_is_weak_below_its_standard_error_or_beside_the_largest():
    covariance = np.array([[0.0, 1.0, 1e-14], [1.0, 0.0, 0.1], [1e-14, 0.1, 0.0]])
    linked = mask(3, [(0, 1), (0, 2), (1, 2)])
    np.testing.assert_array_equal(strong_pairs(covariance, linked), mask(3, [(0, 1), (1, 2)]))
    error = np.full((3, 3), 0.2)
    np.testing.assert_array_equal(strong_pairs(covariance, linked, error), mask(3, [(0, 1)]))


def test_no_pair_is_strong_if_all_covariances_are_zero():
    assert not strong_pairs(np.zeros((3, 3)), mask(3, [(0, 1)])).any()


def test_partner_pairs_are_all_triplets_of_a_source():
    linked = mask(5, [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (3, 4)])
    second, third = partner_pairs(0, linked, linked)
    assert list(zip(second, third, strict=True)) == [(1, 2), (2, 3)]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], [False] * 5),
        ([(0, 1), (1, 2), (2, 3)], [False] * 5),
        ([(0, 1), (1, 2), (2, 0)], [True] * 3 + [False] * 2),
        ([(0, 1), (1, 2), (2, 3), (3, 0)], [False] * 5),
        ([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], [True] * 5),
        ([(0, 1), (1, 2), (2, 0), (2, 3)], [True] * 4 + [False]),
    ],
)
def test_odd_cycles_of_small_graphs(pairs, expected):
    assert has_odd_cycle(mask(5, pairs)).tolist() == expected


@given(st.sets(st.sampled_from(list(itertools.combinations(range(6), 2)))))
def test_components_and_odd_cycles_agree_with_linear_algebra(pairs):
    linked = mask(6, pairs)
    degree = np.diag(linked.sum(axis=1))
    label = components(linked)
    # Null vectors of the Laplacian count components; of the signless one, those without odd cycle.
    laplacian_rank = np.linalg.matrix_rank(degree - linked.astype(float))
    signless_rank = np.linalg.matrix_rank(degree + linked.astype(float))
    assert label.max() + 1 == 6 - laplacian_rank
    assert len(set(label[~has_odd_cycle(linked)])) == 6 - signless_rank
    assert all(label[a] == label[b] for a, b in pairs)
