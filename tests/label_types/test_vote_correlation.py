"""How much votes count beside those of correlated sources: `consilience.label_types.vote_correlation`."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from consilience.label_types.vote_correlation import discount_correlated


@given(st.integers(1, 6), st.integers(1, 4), st.floats(0.0, 0.95))
def test_weights_are_those_of_generalized_least_squares(copies, others, common):
    count = copies + others
    correlation = np.zeros((count, count))
    correlation[:copies, :copies] = common
    np.fill_diagonal(correlation, 0.0)
    expected = np.linalg.inv(correlation + np.eye(count)).sum(axis=1)
    weights = discount_correlated(np.ones((2, count), dtype=bool), correlation)
    np.testing.assert_allclose(weights, [expected, expected], rtol=1e-9)


def test_only_those_who_voted_share():
    correlation = np.full((3, 3), 0.5)
    observed = np.array([[True, True, True], [True, True, False], [True, False, False]])
    expected = np.array([[0.5, 0.5, 0.5], [2 / 3, 2 / 3, 0.0], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(discount_correlated(observed, correlation), expected)
    assert (correlation == 0.5).all()


def test_no_votes_and_no_items():
    assert discount_correlated(np.zeros((0, 3), dtype=bool), np.zeros((3, 3))).shape == (0, 3)
    assert not discount_correlated(np.zeros((2, 3), dtype=bool), np.ones((3, 3))).any()
