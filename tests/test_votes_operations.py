"""What can be done with votes: indexing, selecting, concatenating, comparing."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from consilience.exceptions import InvalidVotesError, UnknownSourceError
from consilience.votes import Votes

matrices = hnp.arrays(
    np.int8,
    st.tuples(st.integers(1, 8), st.integers(1, 4)),
    elements=st.integers(-1, 3),
)


def small() -> Votes:
    return Votes.from_matrix([[0, 1, -1], [1, 1, 1], [-1, 0, 2]], sources=["ann", "bob", "cleo"], items=["x", "y", "z"])


# --- indexing --------------------------------------------------------------------------------


def test_slices_are_views():
    votes = small()
    part = votes[1:]
    assert part.items.tolist() == ["y", "z"]
    assert np.shares_memory(part.labels, votes.labels)
    assert np.shares_memory(part.observed, votes.observed)
    assert (part.abstain, part.names_given) == (-1, True)


@pytest.mark.parametrize(
    ("key", "items"),
    [
        (1, ["y"]),
        (-1, ["z"]),
        (np.int64(0), ["x"]),
        ([2, 0], ["z", "x"]),
        (np.array([True, False, True]), ["x", "z"]),
        ([], []),
        (slice(None, None, -1), ["z", "y", "x"]),
        (([0, 1], Ellipsis), ["x", "y"]),
        ((slice(1, 3), slice(None)), ["y", "z"]),
        ((0, ...), ["x"]),
    ],
)
def test_items_are_picked_like_rows_of_an_array(key, items):
    part = small()[key]
    assert part.items.tolist() == items
    assert part.shape == (len(items), 3)


def test_positions_outside_are_an_index_error():
    with pytest.raises(IndexError, match="no item 3; there are 3 items"):
        small()[3]
    with pytest.raises(IndexError):
        small()[-4]


@pytest.mark.parametrize("key", ["ann", (0, 1), (0, 1, 2), [0.5], [[0]], ["ann"]])
def test_other_keys_point_to_select(key):
    with pytest.raises(InvalidVotesError, match=r"indexed by item.*votes\.select"):
        small()[key]


def test_votes_are_neither_iterable_nor_an_array():
    with pytest.raises(TypeError):
        iter(small())
    with pytest.raises(TypeError):
        np.asarray(small())


def test_scikit_learn_can_split_votes():
    model_selection = pytest.importorskip("sklearn.model_selection")
    votes = Votes.from_matrix(np.arange(20).reshape(10, 2))
    train, test = model_selection.train_test_split(votes, test_size=0.3, random_state=0)
    assert (len(train), len(test)) == (7, 3)
    assert sorted([*train.items, *test.items]) == list(range(10))


# --- select, coverage, overlap ---------------------------------------------------------------


def test_select_keeps_the_order_asked_for():
    votes = small().select(["cleo", "ann"])
    assert votes.sources == ("cleo", "ann")
    assert votes.observed.tolist() == [[False, True], [True, True], [True, False]]
    assert small().select("bob").labels.tolist() == [[1], [1], [0]]


def test_unknown_source_names_the_close_ones():
    with pytest.raises(UnknownSourceError, match=r"no source 'anne'. Did you mean 'ann'\?"):
        small().select(["anne"])
    with pytest.raises(UnknownSourceError, match=r"'xyz'. Choose from 'ann', 'bob', 'cleo'"):
        small().select(["xyz"])


def test_select_nothing_or_twice():
    with pytest.raises(InvalidVotesError, match="no sources"):
        small().select([])
    with pytest.raises(InvalidVotesError, match="'ann' occurs twice"):
        small().select(["ann", "ann"])


def test_coverage_and_overlap_by_hand():
    votes = small()
    assert votes.coverage() == pytest.approx([2 / 3, 1, 2 / 3])
    expected = np.array([[2, 2, 1], [2, 3, 2], [1, 2, 2]]) / 3
    assert votes.overlap() == pytest.approx(expected)


def test_no_items_have_no_coverage():
    assert small()[:0].coverage().tolist() == [0, 0, 0]
    assert small()[:0].overlap().tolist() == [[0] * 3] * 3


def test_overlap_adds_up_over_blocks(monkeypatch):
    votes = Votes.from_matrix(np.random.default_rng(0).integers(-1, 2, (50, 4)))
    whole = votes.overlap()
    monkeypatch.setattr("consilience.votes._ROWS_AT_ONCE", 7)
    assert votes.overlap() == pytest.approx(whole)


# --- concatenate -----------------------------------------------------------------------------


def test_concatenation_matches_sources_by_name():
    first = Votes.from_matrix([[0, 1]], sources=["ann", "bob"])
    second = Votes.from_matrix([[2, -1], [3, 4]], sources=["cleo", "ann"])
    votes = Votes.concatenate([first, second])
    assert votes.sources == ("ann", "bob", "cleo")
    assert votes.observed.tolist() == [[1, 1, 0], [0, 0, 1], [1, 0, 1]]
    assert votes.labels[votes.observed].tolist() == [0, 1, 2, 4, 3]
    assert votes.items.tolist() == [0, 1, 2]
    assert votes.abstain == -1


def test_concatenation_keeps_text_and_numbers_apart():
    names = {"sources": ["ann"]}
    votes = Votes.concatenate([Votes.from_matrix([[1]], **names), Votes.from_matrix(np.array([["a"]]), **names)])
    assert votes.labels.tolist() == [[1], ["a"]]
    numbers = Votes.concatenate([Votes.from_matrix([[1]], **names), Votes.from_array([[0.5]], **names)])
    assert numbers.labels.dtype == np.float64
    assert numbers.abstain is None
    mixed = [np.array([[-1]], np.int64), np.array([[1]], np.uint64)]
    assert Votes.concatenate([Votes.from_array(part, **names) for part in mixed]).labels.dtype == np.int64


def test_concatenation_of_ragged_parts():
    three, four = np.zeros((1, 2, 3)), np.ones((1, 2, 4))
    votes = Votes.concatenate([Votes.from_array(three), Votes.from_array(four)])
    assert votes.labels.shape == (2, 2)
    assert [len(label) for label in votes.labels[:, 0]] == [3, 4]
    scalar = Votes.from_array(np.zeros((1, 2)))
    with pytest.raises(InvalidVotesError, match=r"different shapes: \(\) and \(3,\).*one label"):
        Votes.concatenate([scalar, Votes.from_array(three)])


def test_concatenation_ignores_the_dtype_of_parts_without_votes():
    silent = Votes.from_array([[None, None]])
    votes = Votes.concatenate([silent, Votes.from_matrix(np.array([[0, 1]], np.int8))])
    assert votes.labels.dtype == np.int8


def test_concatenation_refuses_the_same_item_twice():
    first = Votes.from_matrix([[0], [1]], items=["x", "y"])
    with pytest.raises(InvalidVotesError, match=r"Item id 'y' occurs twice, in rows 1 and 2"):
        Votes.concatenate([first, first[1:]])


def test_concatenation_needs_names_to_match_sources():
    unnamed = Votes.from_matrix([[0, 1]])
    with pytest.raises(InvalidVotesError, match=r"2 unnamed, 3 unnamed.*sources="):
        Votes.concatenate([unnamed, Votes.from_matrix([[0, 1, 1]])])
    with pytest.raises(InvalidVotesError, match=r"2 unnamed, 3 named"):
        Votes.concatenate([unnamed, small()])
    assert not Votes.concatenate([unnamed, unnamed]).names_given


def test_concatenating_nothing():
    with pytest.raises(InvalidVotesError, match="nothing to concatenate"):
        Votes.concatenate([])


# --- equality, text -------------------------------------------------------------


def test_votes_equal_when_what_was_said_is_equal():
    votes = small()
    other = Votes(votes.labels.astype(object), votes.observed, votes.sources, votes.items)
    other.labels[0, 2] = "never looked at"
    assert votes.equals(other)
    other.labels[0, 0] = 7
    assert not votes.equals(other)
    assert not votes.equals(votes[:2])
    assert not votes.equals(votes.select(["ann", "cleo", "bob"]))
    assert votes != small()


def test_ragged_votes_equal():
    votes = Votes.from_array([[[1, 2], [3]]])
    other = Votes.from_array([[[1, 2], [4]]])
    assert votes.equals(Votes.from_array([[[1, 2], [3]]]))
    assert not votes.equals(other)
    arrays = np.empty((1, 2), dtype=object)
    arrays[0, 0], arrays[0, 1] = np.array([1, 2]), np.array([3])
    assert votes.equals(Votes.from_array(arrays))


def test_votes_survive_pickling():
    assert pickle.loads(pickle.dumps(small())).equals(small())


@pytest.mark.parametrize(
    ("votes", "text"),
    [
        (small(), "Votes(3 items, 3 sources, 78% observed)"),
        (small()[0].select("ann"), "Votes(1 item, 1 source, 100% observed)"),
        (small()[:0], "Votes(0 items, 3 sources, 0% observed)"),
        (Votes.from_matrix(np.eye(300) - 1), "Votes(300 items, 300 sources, under 1% observed)"),
        (Votes.from_matrix(-np.eye(300)), "Votes(300 items, 300 sources, over 99% observed)"),
    ],
)
def test_text(votes, text):
    assert repr(votes) == text
    assert votes._repr_html_().startswith(f"<p><code>{text}</code></p><table>")


# --- properties ------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(matrices, st.data())
def test_cutting_and_concatenating_gives_the_votes_back(matrix, data):
    votes = Votes.from_matrix(matrix)
    cut = data.draw(st.integers(0, len(votes)))
    assert Votes.concatenate([votes[:cut], votes[cut:]]).equals(votes)


@settings(max_examples=50, deadline=None)
@given(matrices, st.data())
def test_selecting_back_and_forth_gives_the_votes_back(matrix, data):
    votes = Votes.from_matrix(matrix)
    names = data.draw(st.permutations(votes.sources))
    shuffled = votes.select(names)
    assert shuffled.select(votes.sources).equals(votes)
    assert dict(zip(names, shuffled.coverage(), strict=True)) == dict(zip(votes.sources, votes.coverage(), strict=True))
