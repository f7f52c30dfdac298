"""Learned dependencies of classes and tags: copies found and counted once, independent sources left alone."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import ConsilienceWarning
from consilience.families.confusion.closed_form import skill_under_prior

COPIES = set(combinations([f"source_{index}" for index in range(5, 9)], 2))


def quiet(space, votes, gold=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.LabelModel(space, **settings).fit(votes, gold=gold)


def drawn(rng, truth, accuracies, k=2):
    """Return ``(*shape, m)`` votes that are right this often and otherwise any other class."""
    columns = []
    for accuracy in accuracies:
        wrong = (truth + rng.integers(1, k, truth.shape)) % k
        columns.append(np.where(rng.random(truth.shape) < accuracy, truth, wrong))
    return columns


def copied(rng, truth, count=4, share=0.9, accuracy=0.6, k=2):
    original, *others = drawn(rng, truth, [accuracy] * (count + 1), k)
    return [np.where(rng.random(truth.shape) < share, original, other) for other in others]


def with_copies(n=2000, k=2, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    votes = np.stack([*drawn(rng, truth, np.linspace(0.7, 0.88, 5), k), *copied(rng, truth, k=k)], axis=1)
    votes[rng.random(votes.shape) < 0.3] = -1
    return votes, truth


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("method", ["auto", "em", "moments", "triplets", "quadratic", "isotropic"])
def test_copies_of_a_weak_source_are_found_and_do_not_mislead(method, k):
    # Pairs of copies are 20 standard errors off. 0.89 with the copies told, standard error 0.007; 0.62 if misled.
    votes, truth = with_copies(k=k)
    with pytest.warns(ConsilienceWarning, match="dependent-pair"):
        model = cs.LabelModel(cs.Classes(k), method=method).fit(votes)
    assert set(model.source_model_.dependencies) == COPIES
    assert model.score(votes, truth) > 0.86
    told = cs.LabelModel(cs.Classes(k), method=method, dependencies=sorted(COPIES)).fit(votes)
    assert model.score(votes, truth) > told.score(votes, truth) - 0.01


def test_learned_pairs_are_named_with_what_was_done():
    votes, _ = with_copies()
    model = quiet(cs.Classes(2), votes)
    [finding] = [item for item in model.diagnostics_ if item.code == "dependent-pair"]
    assert finding.sources == ("source_5", "source_6", "source_7", "source_8")
    assert "share one vote" in finding.message
    correlation = model.source_model_.correlation
    # Two 90% copies of one original repeat it both with probability .81.
    assert correlation[5:, 5:][np.triu_indices(4, 1)] == pytest.approx(np.full(6, 0.81), abs=0.1)
    assert not correlation[:5].any()


@pytest.mark.parametrize("dependencies", [None, [("source_0", "source_1")]])
def test_none_and_given_pairs_turn_learning_off(dependencies):
    votes, truth = with_copies()
    model = quiet(cs.Classes(2), votes, dependencies=dependencies)
    assert model.source_model_.dependencies == tuple(dependencies or ())
    assert model.score(votes, truth) < 0.75


def test_the_plain_vote_stays_plain():
    votes, _ = with_copies()
    model = cs.LabelModel(cs.Classes(2), method="majority").fit(votes)
    assert model.source_model_.dependencies == ()


@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("k", [2, 5])
def test_independent_sources_are_not_flagged(n, k):
    # A flag needs a pair 4 standard errors off, or chi-square 3 of its own: below 0.01 for 28 pairs, and then
    # a correlation above .25, which at n = 1000 is another 5 standard errors. None in 180 fits of the experiment.
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = rng.integers(k, size=n)
        votes = np.stack(drawn(rng, truth, rng.uniform(0.5, 0.95, 8), k), axis=1)
        assert quiet(cs.Classes(k), votes).source_model_.dependencies == ()


def test_confidence_under_learned_dependence_is_calibrated():
    # 2000 items: the mean confidence differs from the accuracy by 0.007 standard errors; copies taken as independent
    # witnesses would be 0.3 too sure.
    votes, truth = with_copies()
    model = quiet(cs.Classes(2), votes)
    voted = (votes >= 0).any(axis=1)
    gap = model.predict_proba(votes)[voted].max(axis=1).mean() - model.score(votes[voted], truth[voted])
    assert abs(gap) < 0.03


def test_standard_errors_of_copies_cover_their_accuracy():
    # 9 sources in 5 draws: 45 deviations in standard errors; more than 4 would happen less than once in 300 times.
    deviations = []
    for seed in range(5):
        votes, truth = with_copies(seed=seed)
        model = quiet(cs.Classes(2), votes)
        right = np.array([(votes[votes[:, a] >= 0, a] == truth[votes[:, a] >= 0]).mean() for a in range(9)])
        cost = model.source_model_.summary
        deviations += ((1 - cost.expected_cost - right) / cost.cost_standard_error).tolist()
    assert np.abs(deviations).max() < 4.0


# --- groups that compete ---------------------------------------------------------------------------


def competing(n=1500):
    """Return three sources that follow the truth, and three that follow something else just as well."""
    rng = np.random.default_rng(4)
    truth, other = rng.integers(2, size=(2, n))
    votes = np.stack([*drawn(rng, truth, [0.9, 0.88, 0.86]), *drawn(rng, other, [0.9, 0.88, 0.86])], axis=1)
    return votes, truth


def test_competing_groups_are_named_and_left_at_equal_weights():
    votes, _ = competing()
    with pytest.warns(ConsilienceWarning, match="competing-groups"):
        model = cs.LabelModel(cs.Classes(2)).fit(votes)
    [finding] = [item for item in model.diagnostics_ if item.code == "competing-groups"]
    groups = {frozenset(finding.sources[:3]), frozenset(finding.sources[3:])}
    assert groups == {frozenset(f"source_{index}" for index in side) for side in ((0, 1, 2), (3, 4, 5))}
    assert model.source_model_.method == "majority"
    assert np.ptp(model.weight_) == 0.0


@pytest.mark.parametrize("side", [0, 1])
def test_a_few_known_labels_choose_the_side(side):
    # Twelve items: the side that follows something else is right on ten or more with probability 0.02; majority of the
    # three good ones is right on 0.96.
    votes, truth = competing()
    if side:
        votes = votes[:, [3, 4, 5, 0, 1, 2]]
    gold = np.full(len(votes), -1)
    gold[:12] = truth[:12]
    model = quiet(cs.Classes(2), votes, gold=[None if label < 0 else int(label) for label in gold])
    assert model.score(votes, truth) > 0.9


# --- labeling functions ----------------------------------------------------------------------------


def test_near_copies_among_labeling_functions_count_once():
    # Nine functions that vote one class each, and five copies of the first: half of the votes for class 0 are one vote.
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=2000)
    columns = []
    for index in range(9):
        fires = rng.random(2000) < np.where(truth == index % 2, 0.4, 0.15)
        columns.append(np.where(fires, index % 2, -1))
    columns += [np.where(rng.random(2000) < 0.98, columns[0], -1) for _ in range(5)]
    votes = np.stack(columns, axis=1)
    model = quiet(cs.Classes(2), votes)
    expected = set(combinations(["source_0", *(f"source_{index}" for index in range(9, 14))], 2))
    assert set(model.source_model_.dependencies) == expected
    alone = quiet(cs.Classes(2), votes, dependencies=None)
    voted = (votes >= 0).any(axis=1)
    assert model.score(votes[voted], truth[voted]) > alone.score(votes[voted], truth[voted]) + 0.02


# --- tags and sequences ----------------------------------------------------------------------------


def share_right(model, votes, truth):
    return (np.stack(list(model.predict(votes))) == truth).mean()


@pytest.mark.parametrize("space", [cs.Tags(6), cs.Sequences(["O", "B", "I"])], ids=["tags", "sequence"])
def test_copies_of_a_weak_tagger_are_found_and_do_not_mislead(space):
    # 400 items of 6 tags: as many votes as 2400 items of classes. 0.9 if told, 0.63 if misled, standard error 0.01.
    rng = np.random.default_rng(1)
    k = 3 if isinstance(space, cs.Sequences) else 2
    truth = rng.integers(k, size=(400, 6))
    votes = np.stack([*drawn(rng, truth, np.linspace(0.7, 0.88, 5), k), *copied(rng, truth, k=k)], axis=1)
    model = quiet(space, votes)
    assert set(model.source_model_.dependencies) == COPIES
    assert share_right(model, votes, truth) > 0.86
    assert share_right(quiet(space, votes, dependencies=None), votes, truth) < 0.8


# --- very uneven classes ---------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "prior"), [(2, [0.97, 0.03]), (2, [0.4, 0.6]), (4, [0.7, 0.2, 0.07, 0.03])])
def test_skill_and_prior_are_solved_exactly_from_exact_moments(k, prior):
    prior = np.array(prior)
    skill = np.array([0.9, 0.6, 0.3, -0.2])
    shares = 1 / k + skill[:, None] * (prior - 1 / k)
    even = skill * np.sqrt((1 - (prior**2).sum()) / (1 - 1 / k))
    solved, found, _ = skill_under_prior(even, 1e6 * shares, 1 - 1 / k, None)
    assert found == pytest.approx(prior, abs=2e-3)
    assert solved == pytest.approx(skill, abs=0.02)


@pytest.mark.parametrize("method", ["auto", "moments", "triplets", "quadratic"])
def test_one_positive_in_twenty_is_learned_as_well_as_with_the_truth(method):
    # Ten sources of .6 to .9 on 5000 items: 0.98 with all confusions known, standard error 0.002.
    rng = np.random.default_rng(0)
    truth = (rng.random(5000) < 0.05).astype(int)
    accuracy = np.linspace(0.6, 0.9, 10)
    votes = np.stack(drawn(rng, truth, accuracy), axis=1)
    model = quiet(cs.Classes(2), votes, method=method)
    assert model.score(votes, truth) > 0.97
    assert 1 - model.source_model_.summary.expected_cost == pytest.approx(accuracy, abs=0.08)
