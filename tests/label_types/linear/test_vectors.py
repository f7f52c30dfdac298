"""Vectors as a label space: the contract, what is a label, known laws, messages."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import ConsilienceWarning, InvalidLabelError, InvalidVotesError
from consilience.label_types.linear.space import Vectors


def fitted(space, votes, gold=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.LabelModel(space, **settings).fit(votes, gold)


def points(n=200, d=2, m=4, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n, d)) * 2.0
    return truth[:, None] + rng.normal(size=(n, m, d)) * np.linspace(0.5, 2.0, m)[:, None], truth


def test_the_cost_is_the_squared_distance_and_the_mean_weighs_votes():
    left, right = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[3.0, 4.0], [1.0, 1.0]])
    assert Vectors(2).distance(left, right).tolist() == [5.0, 0.0]
    assert Vectors(2).cost(left, right).tolist() == [25.0, 0.0]
    votes = np.array([[[0.0, 0.0], [4.0, 8.0], [9.0, np.nan]]])
    assert Vectors(2).weighted_mean(votes, np.array([[1.0, 3.0, 0.0]])).tolist() == [[3.0, 6.0]]


def test_votes_may_come_as_arrays_lists_or_objects():
    votes, _ = points()
    plain = fitted(Vectors(2), votes).predict(votes)
    nested = votes.tolist()
    assert fitted(Vectors(2), nested).predict(nested) == pytest.approx(plain)
    cells = np.empty((200, 4), dtype=object)
    for row in range(200):
        for source in range(4):
            cells[row, source] = tuple(votes[row, source])
    assert fitted(Vectors(2), cells).predict(cells) == pytest.approx(plain)
    whole = np.round(votes).astype(int)
    assert fitted(Vectors(2), whole).predict(whole).dtype == float


def test_none_and_nan_abstain():
    votes, _ = points()
    gaps = votes.copy()
    gaps[3, 1] = np.nan
    gaps[5] = np.nan
    nested = votes.tolist()
    nested[3][1] = None
    nested[5] = [None] * 4
    model, other = fitted(Vectors(2), gaps), fitted(Vectors(2), nested)
    assert model.source_model_.votes.tolist() == other.source_model_.votes.tolist() == [199, 198, 199, 199]
    labels = model.predict(gaps)
    assert np.isnan(labels[5]).all()
    assert np.isfinite(np.delete(labels, 5, axis=0)).all()
    assert model.confidence(gaps)[5] == 0.0
    assert model.confidence(gaps)[3] < model.confidence(gaps)[4]


def test_a_known_law_of_the_truth_is_used():
    votes, truth = points(60)
    known = Vectors(2, mean=[0, 0], covariance=4.0)
    parameters = fitted(known, votes).source_model_.parameters
    assert parameters.variance.tolist() == [[4.0, 0.0], [0.0, 4.0]]
    assert parameters.mean.tolist() == [0.0, 0.0]
    assert Vectors(2, covariance=[4.0, 4.0]) == Vectors(2, covariance=np.eye(2) * 4.0)
    assert hash(known) == hash(Vectors(2, mean=(0.0, 0.0), covariance=4))
    gap = ((fitted(known, votes).predict(votes) - truth) ** 2).mean()
    assert gap < ((votes.mean(axis=1) - truth) ** 2).mean()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, np.inf], r"Row 3, source 'source_1': label \[1.0, inf\] is not .* coordinate 1 is inf"),
        ("high", r"Row 3, source 'source_1': label 'high' is not a vector of 2 finite numbers: it is a str"),
        (7.0, r"Row 3, source 'source_1': label 7.0 is not .* it is a float"),
        ([1.0, 2.0, 3.0], r"Row 3, source 'source_1': label \[1.0, 2.0, 3.0\] is not .* it has 3 coordinates"),
        ([1.0, "x"], r"Row 3, source 'source_1': .* coordinate 1 is 'x'"),
        ([1.0, [2.0]], r"Row 3, source 'source_1': .* coordinate 1 is \[2.0\]"),
        ([1.0, None], r"Row 3, source 'source_1': .* coordinate 1 is nan"),
        ([1.0, 1j], r"Row 3, source 'source_1': .* coordinate 1 is 1j"),
    ],
    ids=str,
)  # fmt: skip
def test_a_vote_that_is_no_vector_is_named_with_its_place(value, message):
    votes = np.empty((6, 3), dtype=object)
    for row in range(6):
        for source in range(3):
            votes[row, source] = [1.5, float(row + source)]
    votes[3, 1] = value
    with pytest.raises(InvalidLabelError, match=message):
        cs.LabelModel(Vectors(2)).fit(cs.Votes.from_array(votes))


def test_infinite_and_partly_missing_numbers_in_an_array_are_named():
    votes, _ = points(6)
    votes[4, 2, 1] = np.inf
    with pytest.raises(InvalidLabelError, match=r"Row 4, source 'source_2': .* coordinate 1 is inf"):
        cs.LabelModel(Vectors(2)).fit(votes)
    votes[4, 2, 1] = np.nan
    with pytest.raises(InvalidVotesError, match=r"Row 4, source 'source_2': only part of the label is there"):
        cs.LabelModel(Vectors(2)).fit(votes)
    masked = cs.Votes.from_array(votes, observed=np.ones((6, 4), dtype=bool))
    with pytest.raises(InvalidLabelError, match=r"Row 4, source 'source_2': .* coordinate 1 is nan"):
        cs.LabelModel(Vectors(2)).fit(masked)


@pytest.mark.parametrize("shape", [(6, 3), (6, 3, 5), (6, 3, 2, 2)])
def test_votes_of_another_shape_are_refused(shape):
    with pytest.raises(InvalidLabelError, match="vector of 2 finite numbers"):
        cs.LabelModel(Vectors(2)).fit(np.ones(shape))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"d": 0}, "d=0 is not a number of coordinates"),
        ({"d": 2.5}, "d=2.5"),
        ({"d": True}, "d=True"),
        ({"d": 2, "mean": [1.0]}, r"mean has the shape \(1,\)"),
        ({"d": 2, "mean": "high"}, "mean='high'"),
        ({"d": 2, "mean": [1.0, np.nan]}, "not finite"),
        ({"d": 2, "covariance": -1.0}, "not positive definite"),
        ({"d": 2, "covariance": [[1.0, 2.0], [2.0, 1.0]]}, "not positive definite"),
        ({"d": 2, "covariance": [[1.0, 0.5], [0.0, 1.0]]}, "not symmetric"),
        ({"d": 2, "covariance": [[1.0], [1.0, 2.0]]}, "covariance"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InvalidLabelError, match=message):
        Vectors(**settings)


def test_a_model_is_saved_and_loaded_with_its_law(tmp_path):
    votes, _ = points()
    space = Vectors(2, mean=[0.0, 0.0], covariance=[[4.0, 0.5], [0.5, 4.0]])
    model = fitted(space, votes, dependencies=[("source_0", "source_1")])
    model.save(tmp_path / "model.npz")
    loaded = cs.LabelModel.load(tmp_path / "model.npz")
    assert loaded.space == space
    assert loaded.predict(votes) == pytest.approx(model.predict(votes))
    assert loaded.posterior(votes).details["covariance"] == pytest.approx(model.posterior(votes).details["covariance"])


def test_other_methods_are_refused():
    votes, _ = points()
    with pytest.raises(cs.exceptions.UnsupportedError, match="not available for this label type"):
        cs.LabelModel(Vectors(2), method="quadratic").fit(votes)
    with pytest.raises(cs.exceptions.PriorError, match="not finite"):
        cs.LabelModel(Vectors(2), prior="uniform").fit(votes)
