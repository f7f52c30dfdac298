"""Bradley-Terry judges: numbers worked out by hand, brute force on tiny cases, and recovery of known traits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.solvers.bradley_terry import fit_judges, scores_given_judges
from consilience.solvers.pair_copies import copied_groups, unexplained
from consilience.solvers.pair_dependence import (
    correlation_of_runs,
    noise_in_arena,
    noise_over_prompts,
    residuals,
    shares,
)
from consilience.solvers.pair_errors import joint_covariance
from consilience.solvers.pair_judges import (
    JudgeTraits,
    PairTable,
    curvature,
    equal_judges,
    log_normaliser,
    outcome_moments,
    spectral_judges,
    totals,
)
from consilience.solvers.pair_polish import draw_scores, normal_draws, polish_judges


def table(judge, first, second, outcome, *, group=None, width=None, n_judges=None):
    judge, first, second = (np.asarray(values, dtype=np.int64) for values in (judge, first, second))
    group = np.zeros(len(judge), dtype=np.int64) if group is None else np.asarray(group)
    return PairTable(
        judge,
        group,
        first,
        second,
        np.asarray(outcome, dtype=float),
        np.ones(len(judge)),
        np.ones(len(judge)),
        int(judge.max()) + 1 if n_judges is None else n_judges,
        int(group.max()) + 1,
        int(max(first.max(), second.max())) + 1 if width is None else width,
    )


def judges(slope, bias=None, tie=None):
    m = len(slope)
    return JudgeTraits(
        np.array(slope, dtype=float),
        np.zeros(m) if bias is None else np.array(bias, dtype=float),
        np.zeros(m) if tie is None else np.array(tie, dtype=float),
        np.zeros((m, 2, 2)),
        1.0,
        1.0,
    )


def drawn_arena(rng, slope, bias, tie, items, per_judge):
    score = rng.normal(size=items)
    m = len(slope)
    judge = np.repeat(np.arange(m), per_judge)
    first = rng.integers(items, size=m * per_judge)
    second = (first + rng.integers(1, items, size=m * per_judge)) % items
    eta = np.array(slope)[judge] * (score[first] - score[second]) + np.array(bias)[judge]
    return score, table(judge, first, second, outcomes(rng, eta, np.array(tie)[judge]), width=items)


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
        log = log + pairs.outcome[at] * eta / 2 - log_normaliser(np.abs(eta), traits.tie[who])
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    return np.array([(weight * one).sum(), (weight * two).sum()])


def test_moments_of_an_outcome_are_those_of_three_probabilities():
    # eta = 0, nu = 1: all three outcomes have a third each, so the variance is 2/3.
    mean, variance = outcome_moments(np.array([0.0, np.log(4.0)]), np.array([1.0, 0.0]))
    assert mean == pytest.approx([0.0, 0.6])  # exp(eta) = 4: first wins in 4 of 5 cases
    assert variance == pytest.approx([2 / 3, 1 - 0.36])


@settings(max_examples=60, deadline=None)
@given(st.floats(-20, 20), st.floats(0.0, 20.0), st.floats(0.0, 4.0))
def test_the_parabola_never_exceeds_the_log_likelihood(eta, reach, tie):
    bound = -curvature(np.array([reach]), tie) / 2 * (eta**2 - reach**2) - log_normaliser(np.array([reach]), tie)
    assert bound[0] <= -log_normaliser(np.array([abs(eta)]), tie)[0] + 1e-6


def test_scores_of_one_win_are_near_the_exact_ones():
    pairs, traits = table([0], [0], [1], [1], n_judges=1), judges([2.0])
    exact = exact_scores(pairs, traits)
    assert exact[0] == pytest.approx(-exact[1], abs=1e-9)
    # The parabola draws a single vote a little to zero.
    assert scores_given_judges(pairs, traits, rounds=40).mean[0] == pytest.approx(exact, abs=0.07)


def test_weighted_draws_give_the_exact_scores_of_a_small_group():
    # Three judges, one of them reversed, one with a bias, and a tie. 64 draws: within 0.03 of the integral.
    pairs = table([0, 0, 1, 2], [0, 1, 0, 1], [1, 0, 1, 0], [1, -1, -1, 0])
    traits = judges([1.5, -1.0, 2.5], [0.5, 0.0, -0.3], [0.4, 0.2, 1.0])
    around = scores_given_judges(pairs, traits)
    drawn = draw_scores(pairs, traits, around, normal_draws(2))
    assert drawn.moments()[0][0] == pytest.approx(exact_scores(pairs, traits), abs=0.03)
    better = drawn.better()[0]
    assert better[0, 1] + better[1, 0] == pytest.approx(1.0)


def test_two_equal_judges_who_contradict_each_other_leave_a_tie():
    pairs = table([0, 1], [0, 0], [1, 1], [1, -1])
    assert scores_given_judges(pairs, judges([1.0, 1.0])).mean[0] == pytest.approx([0.0, 0.0])


def test_the_bound_does_not_fall_from_round_to_round():
    rng = np.random.default_rng(0)
    _, pairs = drawn_arena(rng, [2.0, 1.0, -1.0], [0.5, 0.0, 0.0], [0.5, 0.2, 0.8], 12, 80)
    start = equal_judges(pairs)
    bounds = [fit_judges(pairs, start, rounds=rounds, tolerance=0.0).bound for rounds in (4, 8, 16, 32)]
    assert bounds == sorted(bounds)


def test_traits_of_judges_are_recovered():
    # 3000 votes per judge: standard errors of slope and bias are below 0.1; 0.35 is more than three of them.
    rng = np.random.default_rng(1)
    slope, bias, tie = [2.0, 1.0, -1.5, 0.3], [0.8, -0.4, 0.0, 0.2], [0.2, 1.5, 0.6, 0.9]
    score, pairs = drawn_arena(rng, slope, bias, tie, 40, 3000)
    fits = [fit_judges(pairs, start) for start in (equal_judges(pairs), spectral_judges(pairs))]
    found = max(fits, key=lambda fit: fit.bound)
    scale = score.std()  # the fit has scores of mean square one
    assert found.judges.slope == pytest.approx(np.array(slope) * scale, abs=0.35)
    assert found.judges.bias == pytest.approx(bias, abs=0.35)
    assert found.judges.tie == pytest.approx(tie, abs=0.35)
    assert np.corrcoef(found.scores.mean[0], score)[0, 1] > 0.99


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
    fit = fit_judges(pairs, equal_judges(pairs, ties=False), ties=False, rounds=60)
    polished = polish_judges(pairs, fit.judges, ties=False)
    assert polished.slope[0] > 1.2 * fit.judges.slope[0]
    assert np.abs(polished.slope - slope).mean() < np.abs(fit.judges.slope - slope).mean()
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


def copied_arena(copies, seed=0, per_judge=300, repeated=0.9):
    """Three good judges, and copies of one with a taste of its own who otherwise answer by that taste themselves."""
    rng = np.random.default_rng(seed)
    score, taste = rng.normal(size=30), rng.normal(size=30)
    first = rng.integers(30, size=per_judge)
    second = (first + rng.integers(1, 30, size=per_judge)) % 30
    said = [outcomes(rng, slope * (score[first] - score[second]), 0.0) for slope in (1.2, 1.5, 1.8)]
    eta = 2.0 * (taste[first] - taste[second])
    original = outcomes(rng, eta, 0.0)
    said += [np.where(rng.random(per_judge) < repeated, original, outcomes(rng, eta, 0.0)) for _ in range(copies)]
    m = len(said)
    pairs = table(np.repeat(np.arange(m), per_judge), np.tile(first, m), np.tile(second, m), np.concatenate(said))
    return pairs, np.tile(np.arange(per_judge), m)


def honest_arena(seed, per_judge, slope=2.0, judges=5):
    rng = np.random.default_rng(seed)
    score = rng.normal(size=30)
    first = rng.integers(30, size=per_judge)
    second = (first + rng.integers(1, 30, size=per_judge)) % 30
    said = [outcomes(rng, slope * (score[first] - score[second]), 0.0) for _ in range(judges)]
    pairs = table(
        np.repeat(np.arange(judges), per_judge), np.tile(first, judges), np.tile(second, judges), np.concatenate(said)
    )
    return pairs, np.tile(np.arange(per_judge), judges)


def test_copies_share_one_vote_and_honest_judges_keep_theirs():
    found = noise_in_arena(*copied_arena(3))
    assert (found.noise[:3, :3] == np.eye(3)).all()
    assert found.noise[3:, 3:].min() > 0.3
    share = shares(found.noise, found.groups)
    assert share == pytest.approx([1, 1, 1, 1 / 3, 1 / 3, 1 / 3])


def test_a_group_that_repeats_half_of_the_answers_is_found_though_its_correlations_are_small():
    # The correlation of two members is 1/4 or so, four standard errors: one group in seven is missed.
    groups = [noise_in_arena(*copied_arena(3, seed, repeated=0.5)).groups for seed in range(6)]
    assert sum(group[3:, 3:].sum() == 6 for group in groups) >= 4
    assert not any(group[:3].any() for group in groups)


@pytest.mark.parametrize(("per_judge", "slope"), [(300, 2.0), (80, 1.5), (300, 5.0)])
def test_honest_agreement_is_not_taken_for_copying(per_judge, slope):
    # 20 arenas of five independent judges, few comparisons and steep judges among them. A group is found in one of a
    # hundred; in three of 20 by chance once in a thousand times.
    flagged = [noise_in_arena(*honest_arena(seed, per_judge, slope)).groups.any() for seed in range(20)]
    assert sum(flagged) <= 2


def test_nothing_that_another_taste_could_explain_is_left_of_the_votes():
    pairs, _ = honest_arena(1, 200, slope=1.0, judges=2)
    own = replace(pairs, group=pairs.judge, n_groups=2)
    fit = fit_judges(own, equal_judges(own, ties=False), ties=False, rounds=20)
    gap = fit.scores.differences(own)[0]
    left, variance, room = unexplained(own, fit.judges, gap)
    assert ((variance > 0) & (variance <= 1)).all()
    # 29 differences of scores and a bias explain about 30 of 200 comparisons
    assert room == pytest.approx(1.0 - 30 / 200, abs=0.02)

    def wins(values):
        place = own.judge * own.width
        pulled = totals(place + own.first, values, 60) - totals(place + own.second, values, 60)
        return np.abs(pulled).mean()

    # Weighted as the fit weighs them, the wins of every item would be zero; a shrunken fit leaves many times as much.
    assert wins(left) < 0.25 * wins(residuals(own, fit.judges, gap))


def test_judges_who_met_too_rarely_are_not_accused():
    # ann and bob answer 120 questions on their own; cleo repeats ann's answers to 40 of them and nothing else of hers.
    rng = np.random.default_rng(2)
    score = rng.normal(size=12)
    first = rng.integers(12, size=240)
    second = (first + rng.integers(1, 12, size=240)) % 12
    said = outcomes(rng, 0.5 * (score[first] - score[second]), 0.0)
    again = outcomes(rng, 0.5 * (score[first] - score[second]), 0.0)
    asked = [np.arange(120), np.arange(120), np.r_[np.arange(40), np.arange(120, 240)]]
    answers = [said[asked[0]], again[asked[1]], said[asked[2]]]
    unit = np.concatenate(asked)
    judge = np.repeat(np.arange(3), [len(one) for one in asked])
    pairs = table(judge, first[unit], second[unit], np.concatenate(answers))
    found = noise_in_arena(pairs, unit)
    assert found.shared[0, 2] == 40
    assert not found.groups.any()


def test_what_all_judges_share_is_no_copying_of_some():
    together = np.full((6, 6), 0.2)
    every = np.ones((6, 6), dtype=bool)
    error = np.full((6, 6), 0.05)
    assert not copied_groups(together, error, every).any()
    together[:3, :3] = 0.45
    assert copied_groups(together, error, every).sum() == 6


def test_a_group_needs_enough_shared_comparisons_and_more_than_a_trace():
    together = np.zeros((5, 5))
    together[:2, :2] = 0.5
    error = np.full((5, 5), 0.05)
    every = np.ones((5, 5), dtype=bool)
    assert copied_groups(together, error, every)[0, 1]
    assert not copied_groups(together, error, ~np.eye(5, dtype=bool) & (together == 0)).any()
    assert not copied_groups(together / 6.0, error / 100.0, every).any()


def test_two_groups_are_found_one_after_the_other():
    together = np.zeros((6, 6))
    together[:2, :2] = 0.6
    together[3:, 3:] = 0.3
    found = copied_groups(together, np.full((6, 6), 0.06), np.ones((6, 6), dtype=bool))
    assert found[0, 1]
    assert found[3:, 3:].sum() == 6
    assert found.sum() == 8


def test_copies_are_found_over_prompts_of_two_candidates():
    rng = np.random.default_rng(5)
    prompts = 300
    score = rng.normal(size=(prompts, 2))
    gap = score[:, 0] - score[:, 1]
    said = [outcomes(rng, slope * gap, 0.0) for slope in (1.5, 1.5, 1.0, 2.0)]
    said.append(np.where(rng.random(prompts) < 0.95, said[2], -said[2]))
    m = len(said)
    group = np.tile(np.arange(prompts), m)
    pairs = table(
        np.repeat(np.arange(m), prompts), np.zeros(m * prompts), np.ones(m * prompts), np.concatenate(said), group=group
    )
    fit = fit_judges(pairs, equal_judges(pairs, ties=False), ties=False, rounds=60)
    noise = noise_over_prompts(pairs, fit.judges, group).noise
    flagged = {tuple(pair) for pair in np.argwhere(np.triu(noise, 1) > 0).tolist()}
    assert flagged == {(2, 4)}


def test_runs_that_repeat_the_same_error_are_correlated_and_independent_ones_are_not():
    rng = np.random.default_rng(6)
    lasting, fresh = np.repeat(rng.choice([-1, 1], size=200), 5), rng.choice([-1, 1], size=1000)
    question = np.repeat(np.arange(200), 5)
    for outcome, low, high in ((lasting, 0.99, 1.0), (fresh, 0.0, 0.1)):
        pairs = table(np.zeros(1000), np.zeros(1000), np.ones(1000), outcome)
        assert low <= correlation_of_runs(pairs, judges([1.0]), np.zeros(1000), question) <= high


def test_a_weight_counts_like_as_many_votes():
    pairs = table([0, 0, 0, 1], [0, 0, 0, 1], [1, 1, 1, 2], [1, 1, 1, -1], width=3)
    once = replace(pairs.where(np.array([0, 3])), weight=np.array([3.0, 1.0]))
    traits = judges([1.0, 2.0])
    assert scores_given_judges(once, traits).mean == pytest.approx(scores_given_judges(pairs, traits).mean)
