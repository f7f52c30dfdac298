"""Standard errors mean what they say: intervals cover, errors shrink with the items, confidence is calibrated.

Votes are simulated from the model itself, with weights away from 0 (intervals are not valid at the bounds).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import consilience as cs

M = 6
PATH = cs.FiniteMetric(np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0))))
WEIGHTS = {
    "two classes": (cs.Classes(2), np.linspace(0.6, 2.2, M)),
    "three classes": (cs.Classes(3), np.linspace(0.8, 2.4, M)),
    "path": (PATH, np.linspace(0.4, 1.4, M)),
}


def fitted(kind: str, method: str, n: int, seed: int, coverage: float = 1.0) -> cs.LabelModel:
    space, weights = WEIGHTS[kind]
    rng = np.random.default_rng(seed)
    votes = cs.simulate(space, space.random(n, rng), weights, rng, coverage=coverage)
    return cs.LabelModel(space, method=method).fit(votes)


@cache
def errors(kind: str, method: str, n: int, repetitions: int, coverage: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors of the weights and their standard errors, each (repetitions, M)."""
    truth = WEIGHTS[kind][1]
    models = [fitted(kind, method, n, 1000 + seed, coverage) for seed in range(repetitions)]
    return (
        np.array([model.weight_ - truth for model in models]),
        np.array([model.standard_error_ for model in models]),
    )


def assert_covers(kind: str, method: str, n: int, repetitions: int, coverage: float = 1.0) -> None:
    """Check the share of nominal 95% intervals that hold the truth.

    The 6 intervals of a data set are correlated; counted as 2 independent ones, a share below 0.88 or above
    0.995 has probability below 0.003 for 60 data sets and below 0.0005 for 100 if the true one is 0.95.
    """
    error, standard_error = errors(kind, method, n, repetitions, coverage)
    share = (np.abs(error) <= 1.96 * standard_error).mean()
    assert 0.88 <= share <= 0.995, f"{share:.3f}"


@pytest.mark.parametrize("n", [300, 1000])
@pytest.mark.parametrize("method", ["em", "moments"])
@pytest.mark.parametrize("kind", ["two classes", "three classes"])
def test_intervals_of_class_weights_cover_at_their_nominal_rate(kind, method, n):
    assert_covers(kind, method, n, repetitions=100)


@pytest.mark.parametrize("method", ["em", "moments"])
def test_intervals_of_class_weights_cover_when_a_third_of_the_votes_is_missing(method):
    assert_covers("three classes", method, 1000, repetitions=100, coverage=0.67)


@pytest.mark.parametrize("n", [300, 1000])
def test_intervals_of_finite_metric_weights_by_moments_cover_at_their_nominal_rate(n):
    assert_covers("path", "moments", n, repetitions=60)


@pytest.mark.parametrize("n", [300, 1000])
def test_intervals_of_finite_metric_weights_by_likelihood_cover_at_their_nominal_rate(n):
    assert_covers("path", "em", n, repetitions=60)


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("two classes", "em"),
        ("two classes", "moments"),
        ("three classes", "em"),
        ("three classes", "moments"),
        ("path", "moments"),
        ("path", "em"),
    ],
)
def test_error_of_weights_falls_with_the_root_of_the_number_of_items(kind, method):
    # 30 data sets of 6 weights: a root mean square has a relative error of about 0.07, so the slope one of 0.042;
    # 0.15 is 3.5 of these, which chance exceeds with probability 0.0005.
    few, _ = errors(kind, method, 300, 30)
    many, _ = errors(kind, method, 3000, 30)
    slope = np.log10(np.sqrt((many**2).mean()) / np.sqrt((few**2).mean()))
    assert slope == pytest.approx(-0.5, abs=0.15)


@pytest.mark.parametrize("method", ["em", "moments"])
def test_standard_errors_of_weights_match_their_scatter(method):
    # 100 data sets: the standard deviation of 100 values is known to 7%, of 6 x 100 correlated ones to at most that;
    # 25% off is 3.5 standard errors (probability 0.0005).
    error, standard_error = errors("three classes", method, 1000, 100)
    assert np.sqrt((standard_error**2).mean()) == pytest.approx(np.sqrt((error**2).mean()), rel=0.25)


def test_more_independent_sources_give_better_labels():
    # 4000 items: an accuracy has a standard error of at most 0.008; the expected steps are 0.07 and 0.05.
    space, rng = cs.Classes(2), np.random.default_rng(5)
    truth = space.random(4000, rng)
    votes = cs.simulate(space, truth, np.full(15, 1.0), rng)
    scores = []
    for count in (3, 7, 15):
        some = votes.select(votes.sources[:count])
        scores.append(cs.LabelModel(space).fit(some).score(some, truth))
    assert scores[0] + 0.03 < scores[1]
    assert scores[1] + 0.02 < scores[2]


@pytest.mark.parametrize("kind", ["two classes", "three classes", "path"])
def test_confidence_is_the_share_of_right_labels(kind):
    # 4000 items in 4 equal groups by confidence: the accuracy of a group has a standard error of at most 0.016,
    # so that 0.06 is 3.8 of them; probability of a false alarm in any of 4 groups below 0.001.
    space, weights = WEIGHTS[kind]
    rng = np.random.default_rng(11)
    truth = space.random(4000, rng)
    votes = cs.simulate(space, truth, weights[:4], rng)
    model = cs.LabelModel(space).fit(votes)
    confidence, right = model.confidence(votes), model.predict(votes) == truth
    for rows in np.array_split(np.argsort(confidence, kind="stable"), 4):
        assert right[rows].mean() == pytest.approx(confidence[rows].mean(), abs=0.06)
