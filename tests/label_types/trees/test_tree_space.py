"""Dependency trees as a label space: what is accepted, what is refused, distance, mean, relations, storage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from consilience.exceptions import InvalidLabelError, InvalidVotesError

TREES = cs.DependencyTrees()
RELATED = cs.DependencyTrees(["det", "nsubj", "root"])
GOOD = [2, 0, 2]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([2, 0, 4], "token 3 has head 4; with 3 tokens a head is 0 (the root) to 3."),
        ([2, 0, -1], "token 3 has head -1"),
        ([2, 0, 3], "token 3 is its own head."),
        ([0, 0, 2], "tokens 1 and 2 both have head 0; a tree has one root."),
        ([2, 3, 1], "none of the 3 tokens has head 0"),
        ([2, 1, 0], "token 1 lies on a cycle (1 -> 2 -> 1)"),
        ([], "there are no tokens in it."),
        ([2, 0, 1.5], "token 3 has head 1.5, not the number of a token."),
        ([2, "x", 2], "token 2 has head 'x', not the number of a token."),
        ("text", "label 'text' is not a list of heads"),
        (7, "label 7 is not a list of heads"),
        ([(2, "det"), (0, "root"), (2, "det")], "token 1 has head (2, 'det')"),
    ],
)
def test_what_is_no_tree_is_refused_with_row_source_and_token(bad, message):
    votes = cs.Votes.from_array(
        [[GOOD, GOOD], [GOOD, None], [GOOD, bad]], observed=[[1, 1], [1, 0], [1, 1]], sources=["udpipe", "spacy"]
    )
    with pytest.raises(InvalidLabelError) as caught:
        cs.LabelModel(TREES).fit(votes)
    assert str(caught.value).startswith("Row 2, source 'spacy': ")
    assert message in str(caught.value)


def test_trees_of_other_tokens_are_refused_with_row_source_and_token():
    votes = cs.Votes.from_array([[GOOD, GOOD], [GOOD, [2, 0, 2, 3]]], sources=["udpipe", "spacy"])
    with pytest.raises(InvalidLabelError, match="Row 1, source 'spacy': the tree has 4 tokens, that of the first") as e:
        cs.LabelModel(TREES).fit(votes)
    assert "token 4 is only in one of them" in str(e.value)
    with pytest.raises(InvalidVotesError, match="Row 1: the known tree has 2 tokens, the votes have 3"):
        cs.LabelModel(TREES).fit([[GOOD] * 3] * 4, gold=[None, [0, 1], None, None])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"relations": "nsubj"}, "is not a list of names"),
        ({"relations": []}, "at least one name"),
        ({"relations": [1]}, "holds 1"),
        ({"relations": ["a", "a"]}, "named twice"),
        *[({"plausible_heads": count}, "is not a positive number") for count in (0, -1, np.nan, np.inf, "2", True)],
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InvalidLabelError, match=message):
        cs.DependencyTrees(**settings)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([2, 0, 2], r"token 1 is 2; the label is not a list of \(head, relation\) pairs"),
        (
            [(2, "det"), (0, "root"), (2, "obj")],
            "token 3 has relation 'obj', which is not one of 'det', 'nsubj', 'root'",
        ),
        ([(2, 0), (0, 2), (2, 3)], r"token 3 has relation 3; codes are 0 \.\. 2"),
        ([(2, 0), (0, 2), (2, 1.5)], "token 3 has relation 1.5, neither a name nor a code"),
        ([(2, 0), (0, 2), (1, 0, 0)], r"token 3 is \(1, 0, 0\)"),
        ([(2, 0), (0, 2), (3, 0)], "token 3 is its own head"),
        ([{"head": 2, "relation": "det"}], r"token 1 is \{'head': 2, 'relation': 'det'\}"),
    ],
)
def test_bad_relations_are_refused_with_the_token(bad, message):
    with pytest.raises(InvalidLabelError, match=message):
        RELATED.as_batch([bad])


def test_padding_and_relations_without_names_are_refused_with_a_hint():
    with pytest.raises(InvalidLabelError, match="Sentences of different lengths go into an object array"):
        TREES.as_batch(np.array([[2, 0, 2, -1]]))
    with pytest.raises(InvalidLabelError, match=r"name them: DependencyTrees\(relations="):
        TREES.as_batch([np.array([[2, 0], [0, 1]])])


def test_the_distance_is_the_share_of_differing_heads_of_one_sentence():
    left = TREES.as_batch([[2, 0, 2, 3], [0, 1], [0]])
    right = TREES.as_batch([[2, 0, 4, 2], [2, 0], [0]])
    np.testing.assert_allclose(TREES.distance(left, right), [0.5, 1.0, 0.0])
    with pytest.raises(InvalidLabelError, match="trees of 3 and 2 tokens have no distance"):
        TREES.distance(TREES.as_batch([GOOD]), TREES.as_batch([[0, 1]]))


def test_the_mean_is_the_tree_of_most_votes_though_nobody_voted_for_it():
    # heads by majority: 2, 0, 2, 3; no source has all four
    votes = np.empty((1, 3), dtype=object)
    votes[0] = list(TREES.as_batch([[2, 0, 2, 2], [2, 0, 4, 2], [3, 0, 2, 3]]))
    for weights, expected in (
        ([1.0, 0.4, 0.9], [2, 0, 2, 2]),
        ([1.0, 1.0, 2.5], [3, 0, 2, 3]),
        ([0, 0, 0], [2, 0, 2, 2]),
    ):
        np.testing.assert_array_equal(TREES.weighted_mean(votes, np.array([weights]))[0], expected)


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_random_trees_are_trees_of_the_length_asked_for(length, seed):
    trees = TREES.random_trees([length, 1, length], np.random.default_rng(seed))
    assert [len(tree) for tree in trees] == [length, 1, length]
    TREES.as_batch(trees)


def test_relations_are_voted_on_the_chosen_edges():
    votes = [
        [[(2, "det"), (0, "root")], [(2, "det"), (0, "root")], [(2, "nsubj"), (0, "root")]],
        [[(0, "root"), (1, "nsubj")], [(2, "det"), (0, "root")], [(0, "root"), (1, "det")]],
    ] * 20
    model = cs.LabelModel(RELATED, method="majority").fit(votes)
    labels = model.predict(votes)
    assert labels[0].tolist() == [[2, 0], [0, 2]]
    # second sentence: two of three have the root first, and are split over the relation of the other edge
    assert RELATED.named(labels[:2]) == [[(2, "det"), (0, "root")], [(0, "root"), (1, "det")]]
    # against the first source all heads are right, and the relation of one token of four is not
    assert model.score(votes, [row[0] for row in votes]) == pytest.approx(3 / 4)


def test_the_relation_of_an_edge_is_voted_by_those_who_have_it():
    space = cs.DependencyTrees(["a", "b", "c"])
    trees = [[(0, 0), (1, 1), (1, 1)], [(0, 0), (1, 2), (2, 2)], [(0, 0), (3, 1), (1, 0)]]
    votes = np.empty((1, 3), dtype=object)
    votes[0] = list(space.as_batch(trees))
    # token 2 has head 1 by two votes of weight 1 and 2, of which the second decides on the relation; token 3 has head 1
    found = space.weighted_mean(votes, np.array([[1.0, 2.0, 2.5]]))[0]
    assert found.tolist() == [[0, 0], [1, 2], [1, 0]]
    # equal votes for relations go to the smaller code
    votes[0, 2] = votes[0, 0]
    votes[0, 0] = space.as_batch([[(0, 2), (1, 1), (1, 1)]])[0]
    assert space.weighted_mean(votes[:, [0, 2]], np.ones((1, 2)))[0].tolist() == [[0, 0], [1, 1], [1, 1]]


def test_spelled_relations_come_back_from_codes():
    assert RELATED.named([np.array([[2, 1], [0, 2]]), None]) == [[(2, "nsubj"), (0, "root")], None]
    with pytest.raises(InvalidLabelError, match="have no relations"):
        TREES.named([GOOD])


def test_a_rectangular_array_of_votes_comes_back_as_one():
    votes = np.tile(np.array([[[2, 0, 2]] * 3, [[0, 1, 2]] * 3]), (10, 1, 1))
    model = cs.LabelModel(TREES, method="majority").fit(votes)
    assert model.predict(votes).shape == (20, 3)
    observed = np.ones((20, 3), dtype=bool)
    observed[3] = False
    silent = model.predict(cs.Votes.from_array(votes, observed=observed))
    assert silent[3].tolist() == [-1, -1, -1]


def test_attachment_scores_count_tokens_and_refuse_what_cannot_be_compared():
    predicted = [[(2, "det"), (0, "root")], [(0, "root")], None]
    gold = [[(2, "nsubj"), (0, "root")], [(0, "root")], [(0, "root")]]
    assert cs.trees.uas(predicted, gold) == pytest.approx(3 / 4)
    assert cs.trees.las(predicted, gold) == pytest.approx(2 / 4)
    assert cs.trees.uas(predicted, [gold[0], None, None]) == 1.0
    for score, found, known, message in (
        (cs.trees.uas, [GOOD, GOOD], [GOOD], "2 predicted trees and 1 known trees"),
        (cs.trees.uas, [GOOD, [0, 1]], [GOOD] * 2, "Row 1: the predicted tree has 2 tokens, the known one 3"),
        (cs.trees.las, [GOOD], [GOOD], "Row 0: the tree has heads without relations"),
        (cs.trees.uas, [GOOD], [None], "no known tree"),
    ):
        with pytest.raises(InvalidLabelError, match=message):
            score(found, known)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (np.zeros((3, 4)), "shape"),
        (np.zeros((1, 1)), "shape"),
        ([["a"]], "not a table of numbers"),
        ([[0, np.nan], [0, 0]], "score of head 0 for token 1 is nan"),
    ],
)
def test_scores_of_edges_are_checked_where_they_are_read(score, message):
    with pytest.raises(InvalidLabelError, match=message):
        cs.trees.maximum_arborescence(score)
    unread = np.array([[np.nan, 1, 3], [np.nan, np.nan, 9], [np.nan, 9, np.nan]])
    assert cs.trees.maximum_arborescence(unread).tolist() == [2, 0]
