"""Scores as a label space: the contract, what is a label, ranges and rounding, messages."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import ConsilienceWarning, InvalidLabelError
from consilience.label_types.linear.space import Scores
from consilience.testing import SPACE_CHECKS

SPACES = [
    Scores(),
    Scores(mean=0.0, variance=1.0),
    Scores(range=(0, 100)),
    Scores(range=(1, 5), integer=True),
    Scores(mean=-3.0, variance=1e-6),
]


@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("check", SPACE_CHECKS, ids=lambda check: check.__name__)
def test_scores_keep_the_contract(space, check):
    check(space, np.random.default_rng(0))


def fitted(space, votes, gold=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.LabelModel(space).fit(votes, gold)


def stars(n=400, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.uniform(1, 5, n)
    return truth[:, None] + rng.normal(0, 1, (n, 4)), truth


def test_the_cost_is_the_squared_difference_and_the_mean_weighs_votes():
    assert Scores().cost(np.array([1.0, -2.0]), np.array([4.0, -2.0])).tolist() == [9.0, 0.0]
    assert Scores().weighted_mean(np.array([[0.0, 4.0, 9.0]]), np.array([[1.0, 3.0, 0.0]])).tolist() == [3.0]


def test_labels_stay_in_the_range_unless_told_otherwise():
    votes, _ = stars()
    inside = fitted(Scores(range=(2, 4)), votes).predict(votes)
    free = fitted(Scores(range=(2, 4), clip=False), votes).predict(votes)
    assert (inside.min(), inside.max()) == (2.0, 4.0)
    assert free.max() > 4.0


def test_labels_are_rounded_on_request():
    votes, _ = stars()
    found = fitted(Scores(range=(1, 5), integer=True), votes).predict(votes)
    assert set(np.unique(found)) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    whole = np.clip(np.round(votes), 1, 5).astype(np.int64)
    votes_of_integers = cs.Votes.from_matrix(whole, abstain=None)
    assert fitted(Scores(range=(1, 5), integer=True), votes_of_integers).predict(votes_of_integers).dtype == np.int64


def test_sources_outside_of_the_range_have_no_say_in_the_scale():
    votes, truth = stars()
    votes = votes[:, [0, 1, 2, 3, 3]]
    votes[:, 4] = 20.0 * truth + np.random.default_rng(1).normal(0, 1, len(truth))  # 0-100 instead of 1-5
    found = fitted(Scores(range=(-2, 8)), votes).predict(votes)
    assert np.mean((found - truth) ** 2) < 0.5


def test_confidence_grows_with_the_number_of_votes():
    votes, _ = stars()
    model = fitted(Scores(), votes)
    fewer = votes.copy()
    fewer[:, 1:] = np.nan
    assert (model.confidence(votes) > model.confidence(fewer)).all()
    assert model.posterior(votes).details["standard_deviation"].shape == (400,)


@pytest.mark.parametrize(("value", "shown"), [(np.inf, "inf"), ("high", "'high'"), (-np.inf, "-inf")])
def test_a_vote_that_is_no_number_is_named_with_its_place(value, shown):
    votes = np.ones((5, 3), dtype=object if isinstance(value, str) else float) * 1.5
    votes[3, 1] = value
    with pytest.raises(InvalidLabelError, match=rf"Row 3, source '?\w+'?: label {shown} is not a finite number"):
        cs.LabelModel(Scores()).fit(cs.Votes.from_array(votes))
    with pytest.raises(InvalidLabelError, match="single numbers"):
        cs.LabelModel(Scores()).fit(np.zeros((5, 3, 2)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"variance": 0.0}, "variance=0.0 is not positive"),
        ({"variance": -1}, "not positive"),
        ({"mean": "high"}, "mean='high' is not a number"),
        ({"mean": np.inf}, "not finite"),
        ({"range": (5, 1)}, "empty"),
        ({"range": 5}, "not a pair"),
        ({"clip": True}, "needs the ends"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InvalidLabelError, match=message):
        Scores(**settings)


def test_minus_one_abstains_on_a_scale_that_begins_at_one():
    votes = np.array([[1, 2, 2], [5, -1, 4], [3, 3, 4], [2, 1, 1]] * 10)
    found = fitted(Scores(range=(1, 5)), votes)
    assert np.diag(found._moments.both).tolist() == [40, 30, 40]
