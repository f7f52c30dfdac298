"""Categorical sources: moments by hand, recovery of known parameters, labeling functions that must not collapse."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import ConsilienceWarning
from consilience.families.confusion import ConfusionFamily
from consilience.families.confusion.estimation import agreement_anchor
from consilience.families.confusion.pair_moments import pair_moments
from consilience.families.confusion.plain_vote import votes_every_class


def fit(votes, k=2, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.LabelModel(cs.Classes(k), **settings).fit(votes)


def binary_votes(rng, truth, sensitivity, specificity, coverage=1.0):
    right = np.where(truth[:, None] == 1, rng.random((len(truth), len(sensitivity))) < sensitivity, 0)
    wrong = np.where(truth[:, None] == 0, rng.random((len(truth), len(specificity))) >= specificity, 0)
    votes = (right + wrong).astype(np.int64)
    votes[rng.random(votes.shape) >= coverage] = -1
    return votes


def test_pair_moments_by_hand():
    votes = np.array([[0, 0], [0, 1], [1, 1], [1, 1], [1, -1]])
    moments = pair_moments(cs.Moments.of(votes, cs.Classes(2)).sums, 2)
    # on the four common items: a is 0,0,1,1 and b is 0,1,1,1; three of four agree
    assert moments.both[0, 1] == 4
    assert moments.agreement[0, 1] == 0.75
    # Cov(a, b) = 3/4 * ... = E[ab] - E[a]E[b] = 2/4 - 2/4 * 3/4 = 1/8, once per class
    assert moments.covariance[0, 1] == pytest.approx(2 / 8)


def test_influences_of_groups_sum_to_zero_and_to_the_variance():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=4000)
    votes = cs.simulate(cs.Classes(2), truth, [1.0, 2.0, 0.5], rng)
    moments = pair_moments(cs.Moments.of(votes, cs.Classes(2)).sums, 2)
    assert np.allclose(moments.influence.sum(axis=0), 0.0)
    spread = np.sqrt((moments.influence**2).sum(axis=0))
    # 32 groups: the ratio of the two standard errors scatters by 13%; 60% is 5 standard deviations
    assert np.allclose(spread[np.triu_indices(3, 1)], moments.standard_error[np.triu_indices(3, 1)], rtol=0.6)


@pytest.mark.parametrize("k", [2, 5])
def test_pair_cost_is_the_chance_that_two_sources_differ(k):
    family = ConfusionFamily(k)
    left, right = np.array([1.3]), np.array([0.4])
    a, b = (np.exp(w) / (np.exp(w) + k - 1) for w in (1.3, 0.4))
    agree = a * b + (1 - a) * (1 - b) / (k - 1)
    assert family.pair_cost(left, right)[0] == pytest.approx(1 - agree)


@pytest.mark.parametrize("method", ["triplets", "quadratic", "moments", "em"])
def test_accuracies_are_recovered(method):
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=20_000)
    accuracy = np.array([0.9, 0.8, 0.7, 0.6, 0.75])
    votes = binary_votes(rng, truth, accuracy, accuracy, coverage=0.8)
    # the standard error of an accuracy is below .006 here, so .03 is five of them: false alarm below 1e-5
    assert np.abs(1 - fit(votes, method=method).expected_cost_ - accuracy).max() < 0.03


def test_isotropic_is_biased_towards_equal_sources():
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=20_000)
    accuracy = np.array([0.95, 0.6, 0.6, 0.6, 0.6])
    votes = binary_votes(rng, truth, accuracy, accuracy)
    estimate = fit(votes, method="isotropic").expected_cost_
    # the additive identity gives a good source beside near-random ones about (1 - c_b c_c)/4 + ... , far above .05
    assert estimate[0] > 0.15


def test_em_learns_an_uneven_prior_and_both_rates():
    rng = np.random.default_rng(2)
    truth = (rng.random(20_000) < 0.2).astype(int)
    sensitivity, specificity = np.array([0.9, 0.6, 0.8, 0.7, 0.5]), np.array([0.8, 0.95, 0.7, 0.9, 0.9])
    votes = binary_votes(rng, truth, sensitivity, specificity)
    parameters = fit(votes, method="em").source_model_.parameters
    assert parameters.prior[1] == pytest.approx(0.2, abs=0.02)
    assert np.abs(parameters.table[:, 1, 1] - sensitivity).max() < 0.05
    assert np.abs(parameters.table[:, 0, 0] - specificity).max() < 0.03


def test_sources_are_told_apart_by_the_classes_they_vote():
    votes = np.array([[50.0, 60.0], [100.0, 0.0], [0.0, 40.0], [97.0, 3.0]])
    assert votes_every_class(votes).tolist() == [True, False, False, False]


def test_anchor_follows_agreement_and_stays_in_bounds():
    assert agreement_anchor(np.array([0.0, 0.0]), 2) == pytest.approx(0.8)
    # two classes, agreement 0.82 = a^2 + (1-a)^2 at a = 0.9; 10^6 rows drown the 50 pseudo-rows
    assert agreement_anchor(np.array([820_000.0, 1_000_000.0]), 2) == pytest.approx(0.9, abs=1e-3)
    assert agreement_anchor(np.array([0.0, 1e6]), 2) == 0.6
    assert agreement_anchor(np.array([1e6, 1e6]), 2) == 0.95


def unipolar_votes(rng, n=1500, n_functions=8):
    truth = rng.integers(2, size=n)
    votes = np.full((n, n_functions), -1)
    for a in range(n_functions):
        target = a % 2
        fires = rng.random(n) < np.where(truth == target, 0.3, 0.08)
        votes[fires, a] = target
    return votes, truth


def test_labeling_functions_do_not_collapse_to_one_class():
    votes, truth = unipolar_votes(np.random.default_rng(0))
    model = fit(votes)
    covered = (votes >= 0).any(axis=1)
    predicted = model.predict(votes)
    # precision of a lone vote is about 0.79; textbook Dawid-Skene puts everything into one class (0.5)
    assert (predicted[covered] == truth[covered]).mean() > 0.75
    assert 0.3 < predicted[covered].mean() < 0.7


def test_a_single_vote_of_a_labeling_function_is_followed():
    votes, _ = unipolar_votes(np.random.default_rng(0))
    model = fit(votes)
    lone = np.full((2, votes.shape[1]), -1)
    lone[0, 0], lone[1, 1] = 0, 1
    assert model.predict(lone).tolist() == [0, 1]


def test_balance_told_by_the_user_shifts_labeling_functions_afterwards():
    votes, _ = unipolar_votes(np.random.default_rng(0))
    plain, told = fit(votes), fit(votes, prior=[0.9, 0.1])
    assert np.allclose(told.source_model_.parameters.table, plain.source_model_.parameters.table, atol=0.35)
    assert told.predict_proba(votes)[:, 1].mean() < plain.predict_proba(votes)[:, 1].mean()
    empty = np.full((1, votes.shape[1]), -1)
    assert told.predict_proba(empty)[0] == pytest.approx([0.9, 0.1])


def test_tables_may_mix_judges_and_labeling_functions():
    rng = np.random.default_rng(4)
    functions, truth = unipolar_votes(rng)
    judges = binary_votes(rng, truth, np.array([0.85, 0.8, 0.75]), np.array([0.85, 0.8, 0.75]))
    model = fit(np.hstack([judges, functions]))
    parameters = model.source_model_.parameters
    assert parameters.full.tolist() == [True] * 3 + [False] * 8
    together = (model.predict(np.hstack([judges, functions])) == truth).mean()
    assert together >= (fit(judges).predict(judges) == truth).mean()


def test_votes_without_signal_fall_back_to_the_plain_vote():
    votes = np.random.default_rng(0).integers(2, size=(500, 5))
    with pytest.warns(ConsilienceWarning, match="no-signal"):
        model = cs.LabelModel(cs.Classes(2)).fit(votes)
    assert {"no-signal", "fell-back-to-majority"} <= {item.code for item in model.diagnostics_}
    assert len(set(model.weight_.tolist())) == 1


def test_independent_votes_are_called_signal_one_time_in_a_hundred():
    # 100 tables without signal, each flagged with probability .01; more than 6 false signals has probability 1e-4
    rng = np.random.default_rng(5)
    learned = sum(fit(rng.integers(2, size=(300, 5))).source_model_.method != "majority" for _ in range(100))
    assert learned <= 6


def test_plain_vote_returns_shares_and_breaks_ties_towards_the_frequent_class():
    model = fit(np.array([[0, 0, 1], [1, 1, 1], [1, 1, 0], [1, 1, 1]]), method="majority")
    shares = model.predict_proba(np.array([[0, 0, 1], [0, 1, -1]]))
    assert shares[0] == pytest.approx([2 / 3, 1 / 3], abs=1e-6)
    assert shares[1] == pytest.approx([0.5, 0.5], abs=1e-6)
    assert model.predict(np.array([[0, 1, -1]])).tolist() == [1]


def test_many_sources_and_classes_need_no_contingency_table():
    rng = np.random.default_rng(0)
    space = cs.Classes(150)
    truth = rng.integers(150, size=600)
    votes = cs.simulate(space, truth, rng.uniform(4, 8, 20), rng)
    model = fit(votes, k=150)
    assert "pairs" not in cs.Moments.of(votes, space).sums
    majority = fit(votes, k=150, method="majority")
    assert (model.predict(votes) == truth).mean() >= (majority.predict(votes) == truth).mean() - 0.01


def test_large_tables_are_polished_on_a_sample_and_say_so(monkeypatch):
    monkeypatch.setattr("consilience.estimation.passes.SAMPLE_ITEMS", 2000)
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=8000)
    votes = binary_votes(rng, truth, np.full(6, 0.8), np.full(6, 0.75))
    model = fit(votes)
    note = next(item for item in model.diagnostics_ if item.code == "polished-on-sample")
    assert "8,000 items" in note.message
    # the sample's errors exceed the limit of .005, so all items were used in the end
    assert "all 8,000 items" in note.message
    monkeypatch.setattr("consilience.families.confusion.estimation.PRECISE", 0.05)
    sampled = fit(votes)
    assert "seeded sample" in next(i.message for i in sampled.diagnostics_ if i.code == "polished-on-sample")
    assert np.abs(sampled.expected_cost_ - model.expected_cost_).max() < 0.05
