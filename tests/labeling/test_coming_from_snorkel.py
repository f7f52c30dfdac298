"""What users of snorkel look for: a matrix with -1, preprocessors, soft labels, error buckets, other names."""

import pickle

import numpy as np
import pytest
from tests.refusals import refused

import consilience as cs
from consilience.exceptions import InvalidVotesError, UnsupportedError
from consilience.labeling import buckets, labeling_function, preprocessor

TEXTS = {"text": ["free money", "see you", "free lunch", "hello"]}


def free(row):
    return 1 if "free" in row.text else -1


def short(row):
    return 0 if len(row.text) < 8 else -1


def test_minus_one_abstains_without_a_space_and_comes_back_as_a_matrix():
    votes = cs.apply([free, short], TEXTS)
    expected = [[1, -1], [-1, 0], [1, -1], [-1, 0]]
    assert votes.to_matrix().tolist() == expected
    assert votes.observed.tolist() == (np.array(expected) != -1).tolist()
    coded = cs.apply([free, short], TEXTS, cs.Classes(2))
    assert coded.to_matrix(abstain=-1).tolist() == expected
    named = cs.Votes.from_matrix([["spam", None]])
    assert named.to_matrix(abstain="none").tolist() == [["spam", "none"]]
    assert cs.Votes.from_matrix([[0.5, None]]).to_matrix().tolist() == [[0.5, -1.0]]
    with refused(InvalidVotesError, "shape (3,)"):
        cs.Votes.from_array([[[0, 1, 2], [2, 1, 0]]]).to_matrix()


def test_preprocessors_come_first_and_remember_rows():
    seen = []

    @preprocessor
    def words(row):
        seen.append(row.text)
        row.words = row.text.split()
        return row

    @labeling_function(pre=[words])
    def two(row):
        return len(row.words)

    @labeling_function(pre=[words, lambda row: row.words])
    def last(row):
        return len(row[-1])

    votes = cs.apply([two, last], TEXTS)
    assert votes.labels.tolist() == [[2, 5], [2, 3], [2, 5], [1, 5]]
    assert seen == TEXTS["text"]
    forgetful = preprocessor(memoize=False)(words.function)
    assert forgetful(cs.labeling.chunks.Record(text="a b")).words == ["a", "b"]
    assert pickle.loads(pickle.dumps(preprocessor(str.upper)))("a") == "A"
    with refused(UnsupportedError, "pre holds 'words'"):
        labeling_function(pre=["words"])(free)
    with refused(UnsupportedError, "'free' takes a batch", "vectorized"):
        labeling_function(pre=[words], vectorized=True)(free)


def test_buckets_hold_the_rows_of_each_known_label_and_vote():
    votes = cs.apply([free, short], TEXTS, cs.Classes(["ham", "spam"]))
    found = buckets(votes, ["spam", "ham", "ham", None], "free")
    assert {key: rows.tolist() for key, rows in found.items()} == {
        ("spam", 1): [0],
        ("ham", None): [1],
        ("ham", 1): [2],
    }
    with refused(InvalidVotesError, "gold has 1 labels for 4 items"):
        buckets(votes, ["spam"], "free")


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_training_set_may_hold_probabilities():
    votes = [[0, 0, 1], [1, 1, 1], [-1, -1, -1], [0, 0, 0]] * 10
    model = cs.LabelModel(cs.Classes(2)).fit(votes)
    data = cs.tables.training_set(model, votes, soft=True)
    assert data.y.shape == (30, 2)
    np.testing.assert_allclose(data.y.sum(axis=1), 1.0)
    scores = cs.LabelModel(cs.Scores(), method="majority").fit([[1.0, 2.0, 3.5]] * 5)
    with refused(UnsupportedError, "Scores has no list of labels", "soft=True"):
        cs.tables.training_set(scores, [[1.0, 2.0, 3.5]], soft=True)


def test_settings_of_snorkel_are_answered_with_those_here():
    with refused(UnsupportedError, "no setting 'cardinality'", "Classes(2)"):
        cs.LabelModel(cardinality=2)
    with refused(UnsupportedError, "'class_balance'", "prior="):
        cs.LabelModel(cs.Classes(2)).fit([[0, 1]], class_balance=[0.5, 0.5])
    with refused(UnsupportedError, "'metod'", "Did you mean 'method'?"):
        cs.LabelModel(cs.Classes(2), metod="em")
