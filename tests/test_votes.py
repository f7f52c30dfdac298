"""Votes from matrices, arrays and lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from consilience.exceptions import InvalidVotesError, TransposedVotesError
from consilience.votes import Votes, as_votes

nan = float("nan")
matrices = hnp.arrays(
    np.int8,
    st.tuples(st.integers(1, 8), st.integers(1, 4)),
    elements=st.integers(-1, 3),
)


def small() -> Votes:
    return Votes.from_matrix([[0, 1, -1], [1, 1, 1], [-1, 0, 2]], sources=["ann", "bob", "cleo"], items=["x", "y", "z"])


# --- from_matrix -----------------------------------------------------------------------------


def test_matrix_marks_the_abstain_value_as_not_observed():
    votes = small()
    assert votes.observed.tolist() == [[True, True, False], [True] * 3, [False, True, True]]
    assert votes.shape == (3, 3)
    assert (votes.n_items, votes.n_sources, len(votes)) == (3, 3, 3)
    assert votes.sources == ("ann", "bob", "cleo")
    assert votes.items.tolist() == ["x", "y", "z"]
    assert votes.abstain == -1
    assert votes.names_given


def test_matrix_makes_up_names_and_ids():
    votes = Votes.from_matrix([[0, 1]])
    assert votes.sources == ("source_0", "source_1")
    assert votes.items.tolist() == [0]
    assert not votes.names_given


def test_matrix_does_not_copy_an_array():
    matrix = np.zeros((4, 3), dtype=np.int8)
    votes = Votes.from_matrix(matrix)
    assert votes.labels.dtype == np.int8
    assert np.shares_memory(votes.labels, matrix)


def test_matrix_takes_nan_and_none_as_abstentions_as_well():
    assert Votes.from_matrix(np.array([[0.0, nan, -1.0]])).observed.tolist() == [[True, False, False]]
    votes = Votes.from_matrix([["cat", None, "-"]], abstain="-")
    assert votes.observed.tolist() == [[True, False, False]]


def test_matrix_lists_of_numbers_with_none_stay_integers():
    votes = Votes.from_matrix([[0, None], [2, 1]])
    assert votes.labels.dtype == np.int64
    assert votes.labels[votes.observed].tolist() == [0, 2, 1]


def test_matrix_lists_do_not_turn_numbers_into_text():
    votes = Votes.from_matrix([["cat", -1], ["dog", "cat"]])
    assert votes.observed.tolist() == [[True, False], [True, True]]
    assert votes.labels[0, 0] == "cat"


def test_matrix_without_abstain_value():
    assert Votes.from_matrix([[-1, 0]], abstain=None).observed.all()


def test_matrix_of_unsigned_and_boolean_numbers():
    assert Votes.from_matrix(np.array([[0, 255]], dtype=np.uint8)).observed.all()
    unsigned = Votes.from_matrix(np.array([[0, 255]], dtype=np.uint8), abstain=255)
    assert unsigned.observed.tolist() == [[True, False]]
    assert Votes.from_matrix(np.array([[True, False]])).observed.all()


def test_matrix_of_text_array():
    votes = Votes.from_matrix(np.array([["a", "?"]]), abstain="?")
    assert votes.observed.tolist() == [[True, False]]
    assert Votes.from_matrix(np.array([["None", "NA", "nan"]])).observed.all()


def test_matrix_does_not_change_the_array_it_is_given():
    matrix = np.array([["a", nan], [None, "b"]], dtype=object)
    votes = Votes.from_matrix(matrix)
    assert votes.labels[0, 1] is None
    assert isinstance(matrix[0, 1], float)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([0, 1, 1], r"one-dimensional, shape \(3,\).*reshape\(-1, 1\).*from_long"),
        (np.zeros(3), r"one-dimensional, shape \(3,\)"),
        ([[0, 1], [1]], r"Row 1 has 1 votes, but row 0 has 2.*None where a source abstains"),
        ([[0, 1], None], r"Row 1 is None.*list of None"),
        ([{"item": 1}], r"Row 0 is a dict.*from_long"),
        ([], r"no items.*at least one row"),
        (np.zeros((0, 3)), r"no items.*\(0, 3\)"),
        (np.zeros((3, 0)), r"no sources.*\(3, 0\).*at least one column"),
        ([[], []], r"no sources"),
        (5, r"single int.*\(items, sources\).*toarray"),
        (np.zeros((2, 3, 4)), r"\(2, 3, 4\).*from_array"),
        ([[[0, 1], [1, 0]]], r"\(1, 2, 2\).*from_array"),
    ],
)
def test_matrix_of_the_wrong_shape_says_what_to_do(matrix, message):
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_matrix(matrix)


def test_text_that_looks_like_the_abstain_number_is_refused():
    matrix = np.array([["cat", "dog"], ["cat", -1]])
    with pytest.raises(InvalidVotesError, match=r"row 1, column 1 holds '-1'.*abstain='-1'"):
        Votes.from_matrix(matrix)


def test_abstain_text_for_numbers_is_refused():
    with pytest.raises(InvalidVotesError, match=r"abstain='-1' is not a number.*abstain=-1"):
        Votes.from_matrix(np.array([[0, -1]]), abstain="-1")


def test_swapped_items_and_sources_are_recognised_by_the_names():
    with pytest.raises(TransposedVotesError, match=r"3 columns.*2 source names.*votes\.T"):
        Votes.from_matrix(np.zeros((2, 3)), sources=["ann", "bob"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b", "c", "d"], r"3 columns of votes, but 4 source names.*one name per column"),
        (["a", "b", "a"], r"name 'a' occurs twice, for columns 0 and 2.*name of its own"),
    ],
)
def test_wrong_source_names(names, message):
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_matrix(np.zeros((2, 3)), sources=names)


def test_wrong_item_ids():
    with pytest.raises(InvalidVotesError, match=r"2 items, but the item ids have shape \(3,\)"):
        Votes.from_matrix([[0], [1]], items=[1, 2, 3])
    with pytest.raises(InvalidVotesError, match="Row 1 has no item"):
        Votes.from_matrix([[0], [1]], items=["a", None])


# --- from_array ------------------------------------------------------------------------------


def test_array_takes_a_cell_of_nan_as_abstention():
    array = np.ones((2, 2, 3))
    array[0, 1] = nan
    votes = Votes.from_array(array)
    assert votes.observed.tolist() == [[True, False], [True, True]]
    assert np.shares_memory(votes.labels, array)
    assert votes.abstain is None


def test_array_refuses_half_a_label():
    array = np.ones((2, 2, 3))
    array[1, 0, 2] = nan
    message = r"Row 1, source 'ann': only part.*\[1.0, 1.0, nan\].*observed="
    with pytest.raises(InvalidVotesError, match=message):
        Votes.from_array(array, sources=["ann", "bob"])
    with pytest.raises(InvalidVotesError, match=r"Row 1, source 'source_0'"):
        Votes.from_array(array.tolist())


def test_explicit_mask_wins():
    array = np.ones((2, 2, 3))
    array[1, 0, 2] = nan
    votes = Votes.from_array(array, observed=[[1, 0], [1, 1]])
    assert votes.observed.tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize("observed", [[True, False], [[1, 2], [0, 1]], [["a", "b"], ["c", "d"]]])
def test_explicit_mask_of_the_wrong_kind(observed):
    with pytest.raises(InvalidVotesError, match=r"True or False.*\(2, 2\).*Leave it out"):
        Votes.from_array(np.ones((2, 2, 3)), observed=observed)


def test_integer_array_has_no_abstentions():
    votes = Votes.from_array(np.array([[[0, -1], [1, -1]]]))
    assert votes.observed.all()


def test_nested_lists_of_one_shape_become_numbers():
    votes = Votes.from_array([[[0, 1, 2], None], [[2, 1, 0], [0, 2, 1]]])
    assert votes.labels.shape == (2, 2, 3)
    assert votes.labels.dtype.kind == "i"
    assert votes.observed.tolist() == [[True, False], [True, True]]


def test_ragged_lists_stay_lists():
    votes = Votes.from_array([[[2, 0], None], [[2, 0, 2], [0, 1, 2]]])
    assert votes.labels.shape == (2, 2)
    assert votes.labels[0, 0] == [2, 0]
    assert votes.labels[0, 1] is None
    assert votes.labels[1, 0] == [2, 0, 2]


def test_object_array_keeps_its_cells():
    array = np.empty((1, 2), dtype=object)
    array[0, 0], array[0, 1] = [1, 2], [3, 4]
    votes = Votes.from_array(array)
    assert votes.labels.shape == (1, 2)
    assert votes.labels[0, 1] == [3, 4]


def test_empty_lists_are_labels_not_abstentions():
    votes = Votes.from_array([[[], None], [[], []]])
    assert votes.labels.shape == (2, 2)
    assert votes.observed.tolist() == [[True, False], [True, True]]


def test_object_array_of_numbers_and_none():
    assert Votes.from_array(np.array([[1, None]], dtype=object)).labels.dtype == np.int64
    deep = np.array([[[1, 2], [None, None]]], dtype=object)
    votes = Votes.from_array(deep)
    assert votes.labels.shape == (1, 2, 2)
    assert votes.observed.tolist() == [[True, False]]
    texts = Votes.from_array(np.array([[["a", "b"], ["c", "d"]]], dtype=object))
    assert texts.labels[0, 1] == ["c", "d"]


def test_one_dimensional_object_array_of_rows():
    rows = np.empty(2, dtype=object)
    rows[0], rows[1] = [1, None], [2, 3]
    assert Votes.from_array(rows).observed.tolist() == [[True, False], [True, True]]


def test_labels_of_any_python_type():
    votes = Votes.from_array([[{"stars": 1}, None], [{"stars": 2}, {"stars": 3}]])
    assert votes.labels[1, 1] == {"stars": 3}
    assert not votes.observed[0, 1]


def test_huge_integers_stay_exact():
    assert Votes.from_array([[2**70, None]]).labels[0, 0] == 2**70


def test_dates_that_are_not_there():
    array = np.array([["2024-01-01", "NaT"]], dtype="datetime64[D]")
    assert Votes.from_array(array).observed.tolist() == [[True, False]]


# --- as_votes --------------------------------------------------------------------------------


def test_as_votes_returns_votes_as_they_are():
    votes = small()
    assert as_votes(votes) is votes


@pytest.mark.parametrize(
    ("data", "observed"),
    [
        (np.array([[0, -1]]), [[True, False]]),
        ([[0, -1]], [[True, False]]),
        ([[0, None]], [[True, False]]),
        (np.array([[0.0, nan]]), [[True, False]]),
        (np.array([[0.5, -1.0]]), [[True, True]]),
        ([["spam", None]], [[True, False]]),
        (np.array([[[0, 1], [-1, -1]]]), [[True, True]]),
        ({"ann": [1, 2], "bob": [None, 0]}, [[True, False], [True, True]]),
    ],
)
def test_as_votes_knows_who_abstains(data, observed):
    assert as_votes(data).observed.tolist() == observed


def test_as_votes_names_the_sources():
    votes = as_votes([[0, 1]], sources=["ann", "bob"])
    assert votes.sources == ("ann", "bob")
    assert votes.names_given
    assert not as_votes([[0, 1]]).names_given


@settings(max_examples=50, deadline=None)
@given(matrices)
def test_lists_arrays_and_objects_are_read_alike(matrix):
    votes = Votes.from_matrix(matrix)
    objects = np.where(matrix == -1, None, matrix.astype(object))
    floats = np.where(matrix == -1, np.nan, matrix.astype(float))
    for same in (matrix.tolist(), objects, objects.tolist(), floats):
        assert as_votes(same).equals(votes)


# --- direct construction ---


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observed": np.ones(3, bool)}, r"boolean array of shape \(items, sources\)"),
        ({"observed": np.ones((3, 3), int)}, r"boolean.*not int64"),
        ({"labels": np.ones((3, 2))}, r"labels have shape \(3, 2\), but observed has \(3, 3\)"),
        ({"items": np.arange(2)}, r"3 items, but the item ids have shape \(2,\)"),
        ({"sources": ("a", "b")}, r"3 columns of votes, but 2 source names"),
    ],
)
def test_direct_construction_checks_shapes(change, message):
    votes = small()
    fields = {name: getattr(votes, name) for name in ("labels", "observed", "sources", "items")}
    with pytest.raises(InvalidVotesError, match=message):
        Votes(**(fields | change))
