"""Scores: known labels in the likelihood, heavy tails beside dependencies, and rows of one item."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import ConsilienceWarning
from consilience.families.base import Chunk
from consilience.families.gaussian import GaussianParameters
from consilience.families.gaussian_fits import beside_labels, without_labels
from consilience.families.gaussian_moments import chunk_with_labels
from consilience.families.gaussian_posterior import believe
from consilience.families.gaussian_rounds import maximise
from consilience.solvers.labelled_factor import Block, slopes_with_labels

SLOPE = np.array([1.0, 0.6, 1.4, 0.8])
NOISE = np.array([0.5, 1.0, 2.0, 1.5])
KNOWN = cs.Scores(mean=0.0, variance=1.0)


def lines(n, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    votes = 1.0 + np.outer(truth, SLOPE) + rng.normal(size=(n, 4)) * np.sqrt(NOISE)
    votes[rng.random(votes.shape) < missing] = np.nan
    return votes, truth


def fit(votes, gold=None, space=KNOWN, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.LabelModel(space, **settings).fit(votes, gold)


def parameters_of(slope, noise, **more):
    m = len(slope)
    dependent = np.abs(noise - np.diag(np.diag(noise))) > 0
    empty = np.zeros(m)
    return GaussianParameters(np.zeros(m), slope, noise, 0.0, 1.0, dependent, empty, empty, empty, **more)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_known_labels_sharpen_the_lines(missing):
    # 10 data sets, half of the items labelled. Over 8 batches of 20 the squared error of the noise variances fell to
    # .47-.67 of what it was, to .24-.65 with missing votes.
    errors = np.zeros(2)
    for seed in range(10):
        votes, truth = lines(300, seed, missing)
        gold = np.where(np.arange(300) % 2, truth, np.nan)
        for place, known in enumerate((None, gold)):
            model = fit(votes, known, method="em")
            errors[place] += ((model.source_model_.parameters.noise_variance - NOISE) ** 2).sum()
    assert "known labels" in model.source_model_.reason
    assert errors[1] < errors[0]


@pytest.mark.parametrize("equal", [False, True])
def test_labels_in_the_likelihood_of_moments_and_of_items_give_the_same_lines(equal):
    votes, truth = lines(400)
    noisy = truth + np.random.default_rng(1).normal(0, 0.5, 400)
    known = np.arange(400) < 150
    both = np.column_stack([votes, noisy])[known]
    rest = votes[~known]
    plain = Block(250.0, rest.sum(axis=0), rest.T @ rest)
    labelled = Block(150.0, both.sum(axis=0), both.T @ both)
    closed = slopes_with_labels(plain, labelled, SLOPE, np.diag(NOISE), equal=equal)
    assert closed.converged
    chunk = Chunk(votes, np.ones(votes.shape, dtype=bool), np.zeros(400, dtype=np.int64), noisy, known)
    start = beside_labels(parameters_of(SLOPE, np.diag(NOISE)), float(noisy[known].mean()), float(noisy[known].var()))
    passed = maximise(
        start,
        np.append(votes.var(axis=0), noisy.var()),
        np.ones(5, dtype=bool),
        lambda function: function(chunk_with_labels(chunk)),
        equal=equal,
        apart=np.arange(5) == 4,
    )
    found = without_labels(passed.parameters)
    assert passed.converged
    np.testing.assert_allclose(found.slope, closed.loading, atol=3e-3)
    np.testing.assert_allclose(found.noise_variance, np.diag(closed.noise), rtol=5e-3)
    if equal:
        assert np.ptp(closed.loading) < 1e-9


def test_labels_on_every_item_give_the_regressions_of_votes_on_them():
    votes, truth = lines(500)
    found = fit(votes, truth, method="em").source_model_.parameters
    slope = np.cov(votes.T, truth)[:4, 4] / truth.var(ddof=1)
    # The noise of the labels is held above a small share of their variance, which costs a few thousandths.
    np.testing.assert_allclose(found.slope, slope * truth.std(), atol=0.02)


def test_few_labels_move_the_location_and_many_the_scale_too():
    votes, truth = lines(3000)
    far = 50.0 + 20.0 * truth
    plain = fit(votes, space=cs.Scores()).predict(votes)
    few, many = np.full(3000, np.nan), np.full(3000, np.nan)
    few[:3], many[:200] = far[:3], far[:200]
    by_few, by_many = (fit(votes, gold, cs.Scores()).predict(votes) for gold in (few, many))
    assert by_few.std() == pytest.approx(plain.std(), rel=1e-3)
    # three labels that are 20 apart tell the level to about 12: it moves most of the way
    assert by_few[:3].mean() - plain[:3].mean() > 0.6 * (far[:3].mean() - plain[:3].mean())
    assert by_many.std() == pytest.approx(20.0 * fit(votes).predict(votes).std(), rel=0.1)


def test_one_wrong_label_does_not_spoil_the_scale_when_tails_are_heavy():
    rng = np.random.default_rng(3)
    truth = rng.normal(size=2000)
    votes = truth[:, None] + 0.3 * rng.standard_t(2.5, size=(2000, 4))
    gold = np.full(2000, np.nan)
    gold[:40] = truth[:40] + 0.05 * rng.normal(size=40)
    gold[5] = 25.0
    model = fit(votes, gold, cs.Scores())
    assert np.isfinite(model.source_model_.parameters.degrees)
    assert np.mean((model.predict(votes) - truth) ** 2) < 0.1


def test_heavy_tails_of_dependent_sources_meet_gaussian_weights_in_the_limit():
    noise = np.diag([0.5, 1.0, 2.0, 0.3])
    noise[0, 1] = noise[1, 0] = 0.4
    rng = np.random.default_rng(0)
    votes, observed = rng.normal(size=(30, 4)), rng.random((30, 4)) < 0.7
    gaussian = believe(parameters_of(SLOPE, noise), votes, observed)
    nearly = believe(parameters_of(SLOPE, noise, degrees=1e9), votes, observed)
    np.testing.assert_allclose(nearly.mean, gaussian.mean, atol=1e-6)
    np.testing.assert_allclose(nearly.variance, gaussian.variance, atol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_heavy_tails_are_learned_beside_a_given_dependency(missing):
    # 1500 items, two sources with noise correlated by .9; the correlation is recovered to .1 (standard error .02).
    rng = np.random.default_rng(0)
    truth = rng.normal(size=1500)
    errors = 0.6 * rng.standard_t(2.5, size=(1500, 5))
    errors[:, 4] = 0.9 * errors[:, 3] + np.sqrt(1 - 0.81) * errors[:, 4]
    votes = truth[:, None] * [1.0, 0.8, 1.2, 1.0, 1.0] + errors
    votes[rng.random(votes.shape) < missing] = np.nan
    model = fit(votes, dependencies=[(3, 4)])
    assert "heavy-tails" in {item.code for item in model.diagnostics_}
    assert model.source_model_.parameters.degrees == 4.0
    assert model.source_model_.summary.correlation[3, 4] == pytest.approx(0.9, abs=0.1)
    found = model.predict(votes)
    voted = ~np.isnan(found)
    gaussian = fit(votes, method="em", dependencies=[(3, 4)]).predict(votes)
    assert np.mean((found - truth)[voted] ** 2) < 0.8 * np.mean((gaussian - truth)[voted] ** 2)


@pytest.mark.parametrize(("missing", "method"), [(0.0, "em"), (0.3, "em"), (0.0, "triplets"), (0.0, "isotropic")])
def test_rows_that_repeat_an_item_do_not_shrink_the_errors(missing, method):
    votes, _ = lines(400, missing=missing)
    once = fit(cs.Votes.from_array(votes, items=np.arange(400)), method=method)
    again = fit(cs.Votes.from_array(np.tile(votes, (5, 1)), items=np.tile(np.arange(400), 5)), method=method)
    unaware = fit(np.tile(votes, (5, 1)), method=method)
    ratio = again.standard_error_ / once.standard_error_
    # EM corrects for few rows (1 - 8/400 here), and the 32 groups of the moments hold different rows.
    assert ratio == pytest.approx(np.ones(4), abs=0.05 if method == "em" else 0.3)
    assert (unaware.standard_error_ < 0.65 * again.standard_error_).all()


def test_errors_cover_when_several_rows_are_about_one_item():
    # 60 data sets of 150 items with 4 rows each: 240 intervals; below .88 with probability under 0.1%.
    inside, unaware = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        truth = np.repeat(rng.normal(size=150), 4)
        shared = np.repeat(rng.normal(size=(150, 4)), 4, axis=0)
        errors = np.sqrt(0.8) * shared + np.sqrt(0.2) * rng.normal(size=(600, 4))
        votes = np.outer(truth, SLOPE) + errors * np.sqrt(NOISE)
        for items, found in ((np.repeat(np.arange(150), 4), inside), (None, unaware)):
            parameters = fit(cs.Votes.from_array(votes, items=items), method="em").source_model_.parameters
            found.append(np.abs(parameters.slope - SLOPE) < 1.96 * parameters.slope_error)
    assert np.mean(inside) > 0.88
    assert np.mean(unaware) < 0.8
