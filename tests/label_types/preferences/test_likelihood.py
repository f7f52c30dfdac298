"""Bradley-Terry judges: numbers worked out by hand, brute force on tiny cases, and recovery of known traits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.label_types.preferences.likelihood import (
    JudgeTraits,
    PairVotes,
    correlation_of_runs,
    curvature,
    draw_scores,
    fit_judges,
    joint_covariance,
    log_normalizer,
    normal_draws,
    outcome_moments,
    polish_judges,
    scores_given_judges,
    starting_judges,
    summarize_draws,
)


def table(judge, first, second, outcome, *, group=None, run=None):
    judge, first, second = (np.asarray(values, dtype=np.int64) for values in (judge, first, second))
    group = np.zeros(len(judge), dtype=np.int64) if group is None else np.asarray(group)
    once, width = np.ones(len(judge)), int(max(first.max(), second.max())) + 1
    codes = (judge, group, first, second, group, -group - 1 if run is None else run)
    names = (tuple(range(width)),) * (int(group.max()) + 1)
    return PairVotes(*codes, np.asarray(outcome, dtype=float), once, once, once, int(judge.max()) + 1, width, names)


def judges(slope, bias=None, tie=None):
    m = len(slope)
    traits = (np.zeros(m) if values is None else np.array(values, dtype=float) for values in (slope, bias, tie))
    return JudgeTraits(*traits, np.zeros((m, 2, 2)), np.ones(m), np.ones(m), factor=1.0)


def drawn_arena(rng, slope, bias, tie, items, per_judge):
    score = rng.normal(size=items)
    m = len(slope)
    judge = np.repeat(np.arange(m), per_judge)
    first = rng.integers(items, size=m * per_judge)
    second = (first + rng.integers(1, items, size=m * per_judge)) % items
    eta = np.array(slope)[judge] * (score[first] - score[second]) + np.array(bias)[judge]
    return score, table(judge, first, second, outcomes(rng, eta, np.array(tie)[judge]))


def outcomes(rng, eta, tie):
    one, two = np.exp(eta / 2), np.exp(-eta / 2)
    drawn = rng.random(len(eta)) * (one + two + tie)
    return np.where(drawn < one, 1, np.where(drawn < one + two, -1, 0))


def exact_scores(pairs, traits):
    """Posterior mean of the two scores of one group, by summing over a grid."""
    grid = np.linspace(-5, 5, 161)
    one, two = np.meshgrid(grid, grid, indexing="ij")
    log = -0.5 * (one**2 + two**2)
    scores = [one, two]
    for at in range(len(pairs)):
        who = pairs.judge[at]
        gap = scores[pairs.first[at]] - scores[pairs.second[at]]
        eta = traits.slope[who] * gap + traits.bias[who]
        log = log + pairs.outcome[at] * eta / 2 - log_normalizer(np.abs(eta), traits.tie[who])
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    return np.array([(weight * one).sum(), (weight * two).sum()])


def test_moments_of_an_outcome_are_those_of_three_probabilities():
    assert curvature(np.array([1e-9, 2.0]), np.array([2.0, 0.0])) == pytest.approx([0.125, np.tanh(1.0) / 4.0])
    # eta = 0, nu = 1: all three outcomes have a third each, so the variance is 2/3.
    mean, variance = outcome_moments(np.array([0.0, np.log(4.0)]), np.array([1.0, 0.0]))
    assert mean == pytest.approx([0.0, 0.6])  # exp(eta) = 4: first wins in 4 of 5 cases
    assert variance == pytest.approx([2 / 3, 1 - 0.36])


@settings(max_examples=60, deadline=None)
@given(st.floats(-20, 20), st.floats(0.0, 20.0), st.floats(0.0, 4.0))
def test_the_parabola_never_exceeds_the_log_likelihood(eta, reach, tie):
    bound = -curvature(np.array([reach]), tie) / 2 * (eta**2 - reach**2) - log_normalizer(np.array([reach]), tie)
    assert bound[0] <= -log_normalizer(np.array([abs(eta)]), tie)[0] + 1e-6


def test_scores_are_near_the_exact_ones():
    equal = table([0, 1], [0, 0], [1, 1], [1, -1])  # two equal judges who contradict each other leave a tie
    assert scores_given_judges(equal, judges([1.0, 1.0])).mean[0] == pytest.approx([0.0, 0.0])
    pairs, traits = table([0], [0], [1], [1]), judges([2.0])
    exact = exact_scores(pairs, traits)
    assert exact[0] == pytest.approx(-exact[1], abs=1e-9)
    # The parabola draws a single vote a little to zero.
    assert scores_given_judges(pairs, traits, rounds=40).mean[0] == pytest.approx(exact, abs=0.07)

    # Three judges, one of them reversed, one with a bias, and a tie. 64 draws: within 0.03 of the integral.
    pairs = table([0, 0, 1, 2], [0, 1, 0, 1], [1, 0, 1, 0], [1, -1, -1, 0])
    traits = judges([1.5, -1.0, 2.5], [0.5, 0.0, -0.3], [0.4, 0.2, 1.0])
    around = scores_given_judges(pairs, traits)
    belief, better = summarize_draws(*draw_scores(pairs, traits, around, normal_draws(2)))
    assert belief.mean[0] == pytest.approx(exact_scores(pairs, traits), abs=0.03)
    assert better[0, 0, 1] + better[0, 1, 0] == pytest.approx(1.0)


def test_traits_of_judges_are_recovered():
    # 3000 votes per judge: standard errors of slope and bias are below 0.1; 0.35 is more than three of them.
    rng = np.random.default_rng(1)
    slope, bias, tie = [2.0, 1.0, -1.5, 0.3], [0.8, -0.4, 0.0, 0.2], [0.2, 1.5, 0.6, 0.9]
    score, pairs = drawn_arena(rng, slope, bias, tie, 40, 3000)
    found, scores = fit_judges(pairs, starting_judges(pairs, np.array([1.0, 1.0, -1.0, 1.0])))
    scale = score.std()  # the fit has scores of mean square one
    assert found.slope == pytest.approx(np.array(slope) * scale, abs=0.35)
    assert found.bias == pytest.approx(bias, abs=0.35)
    assert found.tie == pytest.approx(tie, abs=0.35)
    assert np.corrcoef(scores.mean[0], score)[0, 1] > 0.99


def test_polish_over_prompts_recovers_what_the_bound_underrates():
    # 600 prompts of two candidates and five judges: the parabola underrates the best judge by about half.
    rng = np.random.default_rng(2)
    slope = np.array([4.0, 2.0, 1.0, 0.5, 0.5])
    prompts = 600
    score = rng.normal(size=(prompts, 2))
    judge, group = (part.ravel() for part in np.meshgrid(np.arange(5), np.arange(prompts)))
    flip = rng.random(len(judge)) < 0.5
    first, second = np.where(flip, 1, 0), np.where(flip, 0, 1)
    eta = slope[judge] * (score[group, first] - score[group, second])
    pairs = table(judge, first, second, outcomes(rng, eta, 0.0), group=group)
    fit, _ = fit_judges(pairs, starting_judges(pairs, np.ones(5)))
    polished = polish_judges(pairs, fit)
    assert polished.slope[0] > 1.2 * fit.slope[0]
    assert np.abs(polished.slope - slope).mean() < np.abs(fit.slope - slope).mean()
    # 600 votes per judge: the slopes are within three and a half of their standard errors.
    error = np.sqrt(polished.covariance[:, 0, 0])
    assert (np.abs(polished.slope - slope) < 3.5 * error).all()


def test_joint_covariance_is_the_inverse_of_the_information_built_from_derivatives():
    rng = np.random.default_rng(3)
    _, pairs = drawn_arena(rng, [1.5, 0.7], [0.3, -0.2], [0.5, 0.2], 5, 30)
    traits = judges([1.5, 0.7], [0.3, -0.2], [0.5, 0.2])
    mean = rng.normal(size=5)
    rows = np.arange(len(pairs))
    gap = mean[pairs.first] - mean[pairs.second]
    slope = traits.slope[pairs.judge]
    derivative = np.zeros((len(pairs), 9))
    derivative[rows, pairs.first] += slope
    derivative[rows, pairs.second] -= slope
    derivative[rows, 5 + pairs.judge] = gap
    derivative[rows, 7 + pairs.judge] = 1.0
    variance = outcome_moments(slope * gap + traits.bias[pairs.judge], traits.tie[pairs.judge])[1]
    information = derivative.T @ (derivative * (variance / 4)[:, None])
    information += np.diag([1.0] * 5 + [1.0] * 2 + [4.0] * 2)
    assert joint_covariance(pairs, traits, mean) == pytest.approx(np.linalg.inv(information))


def test_runs_that_repeat_the_same_error_are_correlated_and_independent_ones_are_not():
    rng = np.random.default_rng(6)
    lasting, fresh = np.repeat(rng.choice([-1, 1], size=200), 5), rng.choice([-1, 1], size=1000)
    question = np.repeat(np.arange(200), 5)
    for outcome, low, high in ((lasting, 0.99, 1.0), (fresh, 0.0, 0.1)):
        pairs = table(np.zeros(1000), np.zeros(1000), np.ones(1000), outcome, run=question)
        assert low <= correlation_of_runs(pairs, judges([1.0]), np.zeros(1000)) <= high


def test_a_weight_counts_like_as_many_votes():
    pairs = table([0, 0, 0, 1], [0, 0, 0, 1], [1, 1, 1, 2], [1, 1, 1, -1])
    once = replace(pairs.where(np.array([0, 3])), weight=np.array([3.0, 1.0]))
    traits = judges([1.0, 2.0])
    assert scores_given_judges(once, traits).mean == pytest.approx(scores_given_judges(pairs, traits).mean)
