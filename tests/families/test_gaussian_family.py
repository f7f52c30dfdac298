"""Scores: closed forms against brute force, recovery, gauges, abstentions, tails, dependencies, hard cases."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import ConsilienceWarning, InvalidVotesError
from consilience.families.base import Chunk, Request
from consilience.families.gaussian import GaussianFamily, GaussianParameters
from consilience.families.gaussian_moments import score_moments
from consilience.families.gaussian_posterior import believe
from consilience.families.gaussian_rounds import maximise
from consilience.moments import Moments
from consilience.spaces.scores import Scores

SLOPE = np.array([1.0, 0.6, 1.4, 0.8, 1.2, -0.7])
OFFSET = np.array([0.0, 1.0, -2.0, 0.5, 3.0, 0.0])
NOISE = np.array([0.2, 0.5, 1.0, 1.5, 2.0, 0.4])
KNOWN = Scores(mean=0.0, variance=1.0)


def affine(n=1000, seed=0, missing=0.0, heavy=None):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    noise = rng.normal(size=(n, 6)) if heavy is None else 0.6 * rng.standard_t(heavy, size=(n, 6))
    votes = OFFSET + np.outer(truth, SLOPE) + noise * np.sqrt(NOISE)
    votes[rng.random(votes.shape) < missing] = np.nan
    return votes, truth


def fit(votes, space=KNOWN, gold=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.LabelModel(space, **settings).fit(votes, gold)


def codes(model):
    return {item.code for item in model.diagnostics_}


def error(model, votes, truth):
    found = model.predict(votes)
    voted = ~np.isnan(found)
    return float(np.mean((found - truth)[voted] ** 2))


def oracle(votes, truth):
    seen = ~np.isnan(votes)
    gain = SLOPE / NOISE
    evidence = np.where(seen, votes - OFFSET, 0.0) @ gain
    found = evidence / (1.0 + seen @ (SLOPE * gain))
    return float(np.mean((found - truth)[seen.any(axis=1)] ** 2))


def given(slope, noise, **more):
    m = len(slope)
    dependent = np.abs(noise - np.diag(np.diag(noise))) > 0
    empty = np.zeros(m)
    settings = {"mean": 0.5, "variance": 2.0, **more}
    return GaussianParameters(
        np.linspace(-1, 1, m), slope, noise, settings.pop("mean"), settings.pop("variance"), dependent, empty, empty,
        empty, **settings,
    )  # fmt: skip


def test_moments_equal_those_of_complete_pairs_even_far_from_zero():
    votes, _ = affine(300, missing=0.3)
    votes = votes + 1e7
    moments = score_moments(Moments.of(votes, Scores()).sums)
    for a, b in [(0, 1), (2, 2), (4, 1)]:
        both = ~np.isnan(votes[:, a]) & ~np.isnan(votes[:, b])
        expected = np.cov(votes[both, a], votes[both, b], bias=True)[0, 1]
        assert moments.covariance[a, b] == pytest.approx(expected, rel=1e-4)
        assert moments.squared_difference[a, b] == pytest.approx(
            np.mean((votes[both, a] - votes[both, b]) ** 2), rel=1e-4
        )
        assert moments.count[a, b] == both.sum()


@pytest.mark.parametrize("dependent", [False, True])
def test_the_posterior_is_that_of_the_joint_normal_law(dependent):
    noise = np.diag([0.5, 1.0, 2.0, 0.3])
    if dependent:
        noise[0, 1] = noise[1, 0] = 0.4
        noise[1, 3] = noise[3, 1] = -0.2
    parameters = given(np.array([1.0, 0.5, 2.0, -1.0]), noise)
    rng = np.random.default_rng(0)
    votes = rng.normal(size=(40, 4))
    observed = rng.random((40, 4)) < 0.6
    belief = believe(parameters, votes, observed)
    for row in range(40):
        seen = observed[row]
        slope = parameters.slope[seen]
        gain = 2.0 * slope @ np.linalg.inv(2.0 * np.outer(slope, slope) + noise[np.ix_(seen, seen)])
        away = votes[row, seen] - parameters.offset[seen] - 0.5 * slope
        assert belief.mean[row] == pytest.approx(0.5 + gain @ away)
        assert belief.variance[row] == pytest.approx(2.0 - 2.0 * gain @ slope)


def test_cell_weights_of_heavy_tails_are_a_fixed_point():
    parameters = given(np.array([1.0, 0.5, 2.0]), np.diag([0.5, 1.0, 2.0]), degrees=4.0)
    votes = np.array([[0.1, 0.2, 30.0], [0.0, 1.0, 2.0]])
    belief = believe(parameters, votes, np.ones((2, 3), dtype=bool), rounds=500)
    left = belief.residual - (belief.mean - 0.5)[:, None] * parameters.slope
    misfit = (left**2 + belief.variance[:, None] * parameters.slope**2) / parameters.noise_variance
    assert np.allclose(belief.cell_weight, 5.0 / (4.0 + misfit), atol=1e-4)
    assert belief.cell_weight[0, 2] < 0.1


def test_regauged_parameters_describe_the_same_votes():
    parameters = given(np.array([1.0, 0.5]), np.diag([0.5, 1.0]))
    moved = parameters.regauged(10.0, -3.0)
    votes, observed = np.array([[0.3, 2.0], [1.0, -1.0]]), np.ones((2, 2), dtype=bool)
    before, after = believe(parameters, votes, observed), believe(moved, votes, observed)
    assert np.allclose(after.mean, 10.0 - 3.0 * (before.mean - 0.5))
    assert np.allclose(after.variance, 9.0 * before.variance)


def test_em_by_passes_equals_em_on_the_covariance_when_nobody_abstains():
    votes, _ = affine(400)
    closed = fit(votes, method="em").source_model_.parameters
    chunk = Chunk(votes, np.ones(votes.shape, dtype=bool), np.zeros(len(votes), dtype=np.int64))
    start = replace(closed, slope=np.full(6, 0.5), noise=np.eye(6), offset=np.zeros(6))
    found = maximise(start, votes.var(axis=0), np.ones(6, dtype=bool), lambda function: function(chunk))
    assert found.converged
    # The gauge of the passes has a factor of variance one, as the space has.
    sign = np.sign(found.parameters.slope[0])
    assert np.allclose(sign * found.parameters.slope, closed.slope, atol=2e-3)
    assert np.allclose(found.parameters.noise_variance, closed.noise_variance, rtol=5e-3)
    assert np.allclose(found.parameters.offset, closed.offset, atol=2e-3)


@pytest.mark.parametrize("method", ["triplets", "moments", "em", "auto"])
def test_lines_are_recovered(method):
    # 4000 items: within 5 standard errors of each of 12 numbers, a false alarm in 1e5.
    votes, _ = affine(4000, seed=1)
    found = fit(votes, method=method).source_model_.parameters
    assert (np.abs(found.slope - SLOPE) < 5 * found.slope_error).all()
    assert (np.abs(found.noise_variance - NOISE) < 5 * found.noise_error).all()
    assert (found.slope_error < 0.15).all()
    assert np.allclose(found.offset, OFFSET, atol=0.1)


def test_isotropic_costs_solve_the_pair_equations():
    rng = np.random.default_rng(0)
    votes = rng.normal(size=(5000, 1)) + rng.normal(size=(5000, 4)) * np.sqrt([0.3, 0.5, 1.0, 2.0])
    model = fit(votes, method="isotropic")
    assert np.allclose(model.expected_cost_, [0.3, 0.5, 1.0, 2.0], rtol=0.15)
    assert np.allclose(model.predict(votes), votes @ model.weight_ / model.weight_.sum())


def test_majority_is_the_plain_mean_of_those_who_vote():
    votes = np.array([[1.0, 2.0, 6.0], [4.0, np.nan, 6.0], [np.nan, np.nan, 2.5]])
    assert np.allclose(fit(votes, Scores(), method="majority").predict(votes), [3.0, 5.0, 2.5])


@pytest.mark.parametrize(("missing", "heavy", "limit"), [(0.0, None, 1.05), (0.5, None, 1.06), (0.0, 2.5, None)])
def test_labels_come_close_to_the_oracle(missing, heavy, limit):
    # Mean over 5 data sets of 1000 items; its standard deviation is below 0.01, and medians lie near 1.02.
    ratios = []
    for seed in range(5):
        votes, truth = affine(seed=seed, missing=missing, heavy=heavy)
        model = fit(votes)
        assert ("heavy-tails" in codes(model)) == (heavy is not None)
        ratios.append(error(model, votes, truth) / oracle(votes, truth))
    assert np.mean(ratios) < (limit or 0.85)  # under heavy tails the Gaussian oracle is beaten


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_labels_follow_an_affine_map_of_all_votes(missing):
    votes, _ = affine(missing=missing)
    plain, moved = fit(votes, Scores()), fit(40.0 + 7.0 * votes, Scores())
    assert np.allclose(moved.predict(40.0 + 7.0 * votes), 40.0 + 7.0 * plain.predict(votes), atol=1e-3, equal_nan=True)
    assert np.allclose(moved.expected_cost_, 49.0 * plain.expected_cost_, rtol=1e-3)
    assert np.allclose(moved.confidence(40.0 + 7.0 * votes), plain.confidence(votes), atol=1e-4)


def test_moments_alone_give_the_same_lines():
    votes, _ = affine()
    by_votes = fit(votes).source_model_.parameters
    by_moments = cs.LabelModel(KNOWN)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        by_moments.fit_moments(Moments.of(votes[:400], KNOWN) + Moments.of(votes[400:], KNOWN))
    found = by_moments.source_model_.parameters
    assert np.allclose(found.slope, by_votes.slope, atol=1e-6)
    assert np.allclose(found.slope_error, by_votes.slope_error, rtol=0.3)


def test_known_labels_fix_location_and_scale():
    votes, truth = affine(2000)
    truth = 50.0 + 10.0 * truth
    gold = np.full(len(truth), np.nan)
    gold[:30] = truth[:30]
    model = fit(votes, Scores(), gold)
    best = 100.0 * oracle(votes, (truth - 50.0) / 10.0)
    assert error(model, votes, truth) < 2.0 * best
    assert "scale-not-identified" not in codes(model)
    assert "scale-not-identified" in codes(fit(votes, Scores()))


def test_labelled_learns_from_gold_alone():
    votes, truth = affine(2000)
    gold = np.where(np.arange(2000) < 500, truth, np.nan)
    model = fit(votes, Scores(), gold, method="labelled")
    found = model.source_model_.parameters
    assert np.allclose(found.slope, SLOPE, atol=0.25)
    assert error(model, votes, truth) < 1.1 * oracle(votes, truth)
    with pytest.raises(InvalidVotesError, match="known labels"):
        fit(votes, method="labelled")


def test_a_given_dependency_shares_the_votes_of_two_copies():
    votes, truth = affine()
    votes = np.concatenate([votes, votes[:, 3:4] + 1e-3], axis=1)
    told = fit(votes, dependencies=[(3, 6)])
    assert np.isfinite(told.predict(votes)).all()
    assert told.source_model_.summary.correlation[3, 6] > 0.9
    assert error(told, votes, truth) < 1.1 * oracle(votes[:, :6], truth)


def test_copies_are_found_and_do_not_count_twice():
    votes, truth = affine()
    votes = np.concatenate([votes, votes[:, 3:4]], axis=1)
    model = fit(votes)
    assert "copied-source" in codes(model)
    assert ("source_3", "source_6") in model.source_model_.dependencies
    assert error(model, votes, truth) < 1.1 * oracle(votes[:, :6], truth)


def test_a_reversed_source_is_used_and_named():
    votes, _ = affine()
    [found] = [item for item in fit(votes).diagnostics_ if item.code == "adversarial-source"]
    assert len(found.sources) == 1
    assert fit(votes).weight_[5] > 0.3


def test_a_constant_source_counts_nothing():
    votes, truth = affine()
    votes = np.concatenate([votes, np.full((len(votes), 1), 0.1)], axis=1)
    model = fit(votes)
    assert "constant-source" in codes(model)
    assert model.weight_[6] == 0.0
    assert error(model, votes, truth) < 1.1 * oracle(votes[:, :6], truth)


def test_noise_falls_back_to_the_mean():
    votes = np.random.default_rng(0).normal(size=(300, 4))
    model = fit(votes, Scores())
    assert {"no-signal", "fell-back-to-majority"} <= codes(model)
    assert np.allclose(model.predict(votes), votes.mean(axis=1))


def test_a_source_of_pure_noise_is_found_out():
    votes, truth = affine()
    votes = np.concatenate([votes, np.random.default_rng(5).normal(0, 3, size=(len(votes), 1))], axis=1)
    model = fit(votes)
    assert model.weight_[6] < 0.05
    assert error(model, votes, truth) < 1.1 * oracle(votes[:, :6], truth)


HARD = {
    "one item": np.array([[1.0, 2.0, 3.0]]),
    "one source": np.arange(20.0)[:, None],
    "two sources": np.random.default_rng(0).normal(size=(20, 2)),
    "all constant": np.full((20, 4), 3.0),
    "all the same": np.repeat(np.arange(20.0)[:, None], 4, axis=1),
    "three copies and one": np.random.default_rng(0).normal(size=(50, 2))[:, [0, 0, 0, 1]],
    "huge": 1e60 * np.random.default_rng(0).normal(size=(50, 4)),
    "tiny": 1e-60 * np.random.default_rng(0).normal(size=(50, 4)),
    "few items": np.random.default_rng(0).normal(size=(4, 6)),
    "a silent source": np.where(np.arange(4) == 2, np.nan, np.random.default_rng(0).normal(size=(50, 4))),
    "a silent item": np.where(np.arange(50)[:, None] == 7, np.nan, np.random.default_rng(0).normal(size=(50, 4))),
    "hardly any overlap": np.where(np.arange(60)[:, None] % 6 == np.arange(6), 1.0 + np.arange(60)[:, None], np.nan),
}


@pytest.mark.parametrize("method", ["auto", "majority", "isotropic", "triplets", "moments", "em"])
@pytest.mark.parametrize("case", HARD)
def test_hard_cases_never_give_nan(case, method):
    votes = HARD[case]
    model = fit(votes, Scores(), method=method)
    voted = ~np.isnan(votes).all(axis=1)
    found = model.posterior(votes)
    assert np.isfinite(found.labels[voted]).all()
    assert np.isnan(found.labels[~voted]).all()
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()
    assert np.isfinite(found.details["standard_deviation"]).all()
    assert np.isfinite(model.weight_).all()
    assert np.isfinite(model.expected_cost_).all()
    assert not np.isnan(model.standard_error_).any()


def test_intervals_cover_the_truth():
    # 30 data sets of 300 items, 6 sources: 180 intervals each; below 0.88 with probability under 0.1%.
    inside = np.zeros(2)
    covered = []
    for seed in range(30):
        votes, truth = affine(300, seed=seed)
        model = fit(votes, method="em")
        found = model.source_model_.parameters
        inside[0] += (np.abs(found.slope - SLOPE) < 1.96 * found.slope_error).mean()
        inside[1] += (np.abs(found.noise_variance - NOISE) < 1.96 * found.noise_error).mean()
        posterior = model.posterior(votes)
        covered.append((np.abs(posterior.labels - truth) < 1.96 * posterior.details["standard_deviation"]).mean())
    assert (inside / 30 > 0.88).all()
    assert 0.92 < np.mean(covered) < 0.97


def test_weights_given_from_outside_make_weighted_means():
    request = Request(("a", "b"), "given", np.zeros((2, 2), dtype=bool))
    parameters = GaussianFamily().from_weights(np.array([1.0, 3.0]), request)
    found = GaussianFamily(scale=np.inf).from_weights(np.array([1.0, 3.0]), request)
    assert parameters.shrink == 0.0
    assert believe(found, np.array([[0.0, 4.0]]), np.ones((1, 2), dtype=bool)).mean[0] == pytest.approx(3.0)


def test_sums_of_scores_do_not_depend_on_the_groups_of_items():
    # so that ids need not be hashed to take them; a known label, a range and a gap are in it
    rng = np.random.default_rng(7)
    family = cs.Scores(range=(-2.0, 2.0)).law
    labels, observed = rng.normal(size=(50, 4)), rng.random((50, 4)) < 0.8
    known = np.arange(50) < 5
    one, other = (
        family.statistics(Chunk(labels, observed, groups, labels[:, 0], known))
        for groups in (np.zeros(50, dtype=np.int64), rng.integers(32, size=50))
    )
    assert not family.uses_groups
    assert one.parts.keys() == other.parts.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one.parts)
