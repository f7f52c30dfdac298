"""Distributions of labels: one return type for all label types that have one."""

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import UnsupportedError
from consilience.prediction.inference import Distribution

RNG = np.random.default_rng(0)
TRUTH = RNG.normal(3.0, 1.0, 400)
VOTES = TRUTH[:, None] + RNG.normal(size=(400, 4)) * [0.3, 0.5, 0.8, 1.0]


def test_intervals_of_scores_hold_the_truth_as_often_as_they_say():
    model = cs.LabelModel(cs.Scores(mean=3.0, variance=1.0)).fit(VOTES)
    found = model.predict_distribution(VOTES)
    np.testing.assert_array_equal(found.mean, model.predict(VOTES))
    for level in (0.5, 0.95):
        lower, upper = found.interval(level)
        # 400 items: five standard errors of the share, a false alarm in a million
        spread = 5 * np.sqrt(level * (1 - level) / 400)
        assert ((lower <= TRUTH) & (upper >= TRUTH)).mean() == pytest.approx(level, abs=spread)


def test_items_without_votes_may_lie_anywhere_and_means_are_those_before_rounding_and_clipping():
    votes = np.vstack([VOTES, np.full((1, 4), np.nan)])
    found = cs.LabelModel(cs.Scores()).fit(VOTES).predict_distribution(votes)
    assert np.isnan(found.mean[-1])
    assert found.standard_deviation[-1] == np.inf
    lower, upper = found.interval()
    assert (lower[-1], upper[-1]) == (-np.inf, np.inf)
    assert np.isfinite(lower[:-1]).all()
    whole = cs.LabelModel(cs.Scores(range=(2, 4), integer=True)).fit(VOTES)
    plain = cs.LabelModel(cs.Scores(range=(2, 4), clip=False)).fit(VOTES)
    assert set(whole.predict(VOTES)) <= {2.0, 3.0, 4.0}
    np.testing.assert_allclose(whole.predict_distribution(VOTES).mean, plain.predict(VOTES))


def test_finite_label_types_have_probabilities_and_others_say_what_to_use():
    votes = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10)
    model = cs.LabelModel(cs.Classes(2)).fit(votes)
    found = model.predict_distribution(votes)
    np.testing.assert_array_equal(found.probabilities, model.predict_proba(votes))
    assert found.mean is None
    with pytest.raises(UnsupportedError, match="probabilities, not intervals"):
        found.interval()
    rankings = np.array([[[0, 1, 2]] * 3] * 20)
    with pytest.raises(UnsupportedError, match=r"posterior\(votes\)"):
        cs.LabelModel(cs.Rankings(3), method="majority").fit(rankings).predict_distribution(rankings)
    for level in (0.0, 1.0, 95):
        with pytest.raises(UnsupportedError, match="not a probability"):
            Distribution(np.zeros(1), np.ones(1)).interval(level)
