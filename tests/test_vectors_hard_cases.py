"""Vectors of sources that copy, mislead, are constant, unrelated or few; moments alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from consilience.families.vector import VectorFamily
from consilience.spaces.vectors import Vectors
from simulated_vectors import codes, design, error, fit

import consilience as cs
from consilience.exceptions import ConsilienceWarning, UnsupportedError
from consilience.moments import Moments


def copied(n=600, seed=0, spread=0.3):
    votes, truth, *_ = design(n, m=6, d=2, seed=seed)
    rng = np.random.default_rng(seed + 100)
    # Sources 1 and 4 are poor; two more repeat source 1 almost.
    repeats = [votes[:, 1] + spread * rng.normal(size=(n, 2)) for _ in range(2)]
    return np.concatenate([votes, np.stack(repeats, axis=1)], axis=1), truth


def test_given_dependencies_are_used():
    votes, truth = copied()
    pairs = [("source_1", "source_6"), ("source_1", "source_7"), ("source_6", "source_7")]
    told = fit(votes, dependencies=pairs)
    assert told.source_model_.summary.correlation[1, 6] > 0.8
    untold = error(fit(votes, method="em").predict(votes), truth)
    alone = error(fit(votes[:, :6]).predict(votes[:, :6]), truth)
    assert error(told.predict(votes), truth) < 1.05 * alone
    assert untold > 1.2 * alone
    for method in ("isotropic", "triplets", "moments", "em"):
        assert error(fit(votes, method=method, dependencies=pairs).predict(votes), truth) < untold, method


def test_near_copies_are_found_and_do_not_count_twice():
    votes, truth = copied()
    model = fit(votes)
    assert "dependent-pair" in codes(model)
    alone = error(fit(votes[:, :6]).predict(votes[:, :6]), truth)
    assert error(model.predict(votes), truth) < 1.05 * alone


def test_independent_sources_are_not_called_dependent():
    # 12 tables of 15 pairs at five standard errors: a false alarm is practically excluded.
    for seed in range(12):
        votes, *_ = design(300, m=6, d=3, seed=seed)
        assert "dependent-pair" not in codes(fit(votes))


def test_an_exact_copy_is_reported():
    votes, *_ = design(100, m=3, d=2)
    model = fit(np.concatenate([votes, votes[:, :1]], axis=1))
    assert "copied-source" in codes(model)
    assert np.isfinite(model.expected_cost_).all()


def test_a_reversed_source_has_no_weight():
    votes, truth, *_ = design(500, m=5, d=2)
    votes[:, 3] = -votes[:, 3]
    model = fit(votes)
    assert "adversarial-source" in codes(model)
    assert model.weight_[3] == 0.0
    assert error(model.predict(votes), truth) < error(votes.mean(axis=1), truth)


def test_a_constant_source_has_no_weight():
    votes, *_ = design(300, m=4, d=2)
    votes[:, 2] = [1.0, 7.0]
    model = fit(votes)
    assert "constant-source" in codes(model)
    assert model.weight_[2] == 0.0
    changed = votes.copy()
    changed[:, 2] = 50.0
    assert model.predict(changed) == pytest.approx(model.predict(votes))


def test_unrelated_sources_are_weighted_equally():
    votes = np.random.default_rng(0).normal(size=(200, 5, 3))
    model = fit(votes)
    assert {"no-signal", "fell-back-to-majority"} <= codes(model)
    assert model.predict(votes) == pytest.approx(votes.mean(axis=1))


@pytest.mark.parametrize("m", [1, 2])
def test_one_or_two_sources_are_averaged(m):
    votes, *_ = design(50, m=m, d=2)
    model = fit(votes)
    assert {"too-few-sources", "fell-back-to-majority"} <= codes(model)
    assert model.predict(votes) == pytest.approx(votes.mean(axis=1))


METHODS = [name for name in VectorFamily.methods if name != "labelled"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "spoil",
    ["one item", "two items", "one coordinate constant", "a silent source", "sparse", "identical", "huge", "nobody"],
)
def test_hard_votes_give_finite_results(method, spoil):
    votes, *_ = design(60, m=4, d=3)
    if spoil == "one item":
        votes = votes[:1]
    elif spoil == "two items":
        votes = votes[:2]
    elif spoil == "one coordinate constant":
        votes[:, :, 1] = 2.0
    elif spoil == "a silent source":
        votes[:, 3] = np.nan
    elif spoil == "sparse":
        votes[np.random.default_rng(0).random((60, 4)) < 0.8] = np.nan
    elif spoil == "identical":
        votes[:] = votes[:, :1]
    elif spoil == "huge":
        votes = 1e9 + 1e-3 * votes
    elif spoil == "nobody":
        votes[:] = np.nan
    model = fit(votes, method=method)
    voted = ~np.isnan(votes[:, :, 0]).all(axis=1)
    belief = model.posterior(votes)
    assert np.isfinite(model.predict(votes)[voted]).all()
    assert np.isfinite(belief.details["covariance"]).all()
    assert np.isfinite(model.expected_cost_).all()
    assert np.isfinite(model.weight_).all()
    assert ((belief.confidence >= 0) & (belief.confidence <= 1)).all()


def test_weights_are_those_of_scores_in_one_dimension():
    votes, *_ = design(500, m=4, d=1)
    vectors = fit(votes)
    scores = fit_scores(votes[:, :, 0])
    assert vectors.weight_ == pytest.approx(scores.weight_, rel=0.1)


def fit_scores(votes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.LabelModel(cs.Scores()).fit(votes)


def test_moments_alone_suffice_unless_votes_are_missing():
    votes, truth, *_ = design(500, m=4, d=2)
    whole = fit(votes)
    parts = Moments.of(votes[:200], Vectors(2)) + Moments.of(votes[200:], Vectors(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        again = cs.LabelModel(Vectors(2)).fit_moments(parts)
        assert again.predict(votes) == pytest.approx(whole.predict(votes), abs=1e-3)
        ratio = again.source_model_.summary.cost_standard_error / whole.source_model_.summary.cost_standard_error
        assert (np.abs(ratio - 1.0) < 0.3).all()
        votes[::3, 1] = np.nan
        gaps = Moments.of(votes, Vectors(2))
        assert error(cs.LabelModel(Vectors(2)).fit_moments(gaps).predict(votes), truth) < 1.2
        with pytest.raises(UnsupportedError, match="method='moments'"):
            cs.LabelModel(Vectors(2), method="em").fit_moments(gaps)


def test_most_sources_are_not_taken_to_err_together_where_the_others_follow_nobody():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(300, 3))
    votes = truth[:, None] + 0.9 * rng.normal(size=(300, 10, 3))
    for source in range(3):
        votes[:, source] = votes[rng.permutation(300), source]
    model = cs.LabelModel(cs.Vectors(3)).fit(votes)
    assert model.source_model_.dependencies == ()
    assert model.expected_cost_[:3].min() > model.expected_cost_[3:].max()
    # vectors have no slopes, so that sources which follow nobody keep some weight: 0.69 of the error of the plain mean
    assert np.mean((model.predict(votes) - truth) ** 2) < 0.75 * np.mean((model.predict_baseline(votes) - truth) ** 2)
