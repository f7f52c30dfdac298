"""How far confusions are drawn together: as far as chance explains why they differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import consilience as cs
from consilience.families.base import Request
from consilience.families.confusion.pair_moments import PairMoments
from consilience.families.confusion.parameters import one_coin_tables
from consilience.families.confusion.shrinkage import different_skills, drawn_together, evened, upright


def moments_of(covariance: np.ndarray, error: float) -> PairMoments:
    m = len(covariance)
    ones = np.ones((m, m))
    return PairMoments(4, 100.0 * ones, 0.5 * ones, covariance, error * ones, 0.75 * np.ones(m), ones[None], ones[None])


def test_pairs_of_equal_sources_show_no_difference_of_skills():
    usable = ~np.eye(5, dtype=bool)
    assert different_skills(moments_of(np.full((5, 5), 0.1), 0.02), usable) == pytest.approx(0.0, abs=1e-9)


def test_one_source_that_agrees_with_nobody_is_a_difference_of_skills_of_known_size():
    # Least squares of covariances on level + two effects: pairs of the last are 0.1 below, which its effect explains
    # but for nothing, so that chi-square is the weighted sum of squares around the mean level.
    covariance = np.full((5, 5), 0.1)
    covariance[4, :4] = covariance[:4, 4] = 0.0
    usable = ~np.eye(5, dtype=bool)
    pairs = covariance[np.triu_indices(5, 1)]
    expected = ((pairs - pairs.mean()) ** 2).sum() / 0.02**2
    assert different_skills(moments_of(covariance, 0.02), usable) == pytest.approx(expected)


def test_differences_within_chance_follow_their_chi_square():
    # 200 draws of 28 independent pairs of 8 equal sources: mean 7 of chi-square with 7 degrees of freedom, standard
    # error sqrt(14 / 200) = 0.26; five of them are off by chance once in two million.
    rng = np.random.default_rng(0)
    usable = ~np.eye(8, dtype=bool)
    found = []
    for _ in range(200):
        noise = np.triu(rng.normal(0.0, 0.02, (8, 8)), 1)
        found.append(different_skills(moments_of(0.1 + noise + noise.T, 0.02), usable))
    assert abs(np.mean(found) - 7.0) < 5 * np.sqrt(14 / 200)


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_many_equal_and_weak_sources_on_few_items_keep_the_plain_vote():
    # Whose likelihood follows some of them by accident, and takes classes for uneven that are not.
    costs = np.zeros(2)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth = rng.integers(4, size=3100)
        right = rng.random((3100, 16)) < 0.42
        labels = np.where(right, truth[:, None], (truth[:, None] + rng.integers(1, 4, (3100, 16))) % 4)
        observed = rng.random((3100, 16)) < rng.uniform(0.2, 1.0, 16)
        model = cs.LabelModel(cs.Classes(4)).fit(cs.Votes.from_array(labels[:100], observed=observed[:100]))
        fresh = cs.Votes.from_array(labels[100:], observed=observed[100:])
        for index, said in enumerate((model.predict(fresh), model.predict_baseline(fresh))):
            costs[index] += np.mean(said != truth[100:]) / 6
    assert costs[0] < 1.02 * costs[1]


def test_mirror_image_of_two_classes_is_turned_upright():
    family = cs.Classes(2).law
    right = family.from_weights(
        np.array([1.0, 2.0, 0.5]), Request(("a", "b", "c"), "auto", np.zeros((3, 3), dtype=bool))
    )
    right = replace(right, prior=np.array([0.9, 0.1]))
    mirrored = replace(right, table=right.table[:, :, ::-1], prior=right.prior[::-1], accuracy=1.0 - right.accuracy)
    votes = np.full((3, 2), 10.0)
    turned = upright(mirrored, votes)
    np.testing.assert_allclose(turned.table, right.table)
    np.testing.assert_allclose(turned.prior, right.prior)
    np.testing.assert_allclose(turned.accuracy, right.accuracy)
    assert upright(right, votes) is right


def test_a_copied_source_is_known_as_well_as_without_its_copies():
    # 600 items; four copies of a source of 65% among five of 80%. Seen as independent, only their sum were known.
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=600)
    right = rng.random((600, 6)) < np.array([0.65, 0.8, 0.8, 0.8, 0.8, 0.8])
    alone = np.where(right, truth[:, None], 1 - truth[:, None])
    copied = np.column_stack([alone[:, 0], alone[:, 0], alone[:, 0], alone])
    errors = []
    for labels, pairs in ((alone, None), (copied, [(a, b) for a in range(4) for b in range(a)])):
        votes = cs.Votes.from_array(labels)
        named = pairs and [(votes.sources[a], votes.sources[b]) for a, b in pairs]
        model = cs.LabelModel(cs.Classes(2), method="em", dependencies=named).fit(votes)
        errors.append(model.source_model_.parameters.cost_standard_error)
    assert errors[1][:4] == pytest.approx(np.full(4, errors[0][0]), rel=0.1)
    assert errors[1][4:] == pytest.approx(errors[0][1:], rel=0.1)


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_sources_that_contradict_each_other_still_vote():
    # One of 90%, one of 10%, three of 55%: pairs agree less than by chance, yet votes must count.
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=400)
    right = rng.random((400, 5)) < np.array([0.9, 0.1, 0.55, 0.55, 0.55])
    labels = np.where(right, truth[:, None], 1 - truth[:, None])
    votes = cs.Votes.from_array(labels)
    model = cs.LabelModel(cs.Classes(2)).fit(votes)
    assert model.source_model_.method == "majority"
    assert np.array_equal(model.predict(votes), labels.sum(axis=1) > 2)


def of_accuracy(accuracy: np.ndarray, prior: np.ndarray):
    """Return parameters of sources that are as often right in every class, known to 0.03."""
    m, k = len(accuracy), len(prior)
    names = tuple(f"s{one}" for one in range(m))
    known = cs.Classes(k).law.from_weights(np.ones(m), Request(names, "auto", np.zeros((m, m), dtype=bool)))
    return replace(
        known,
        table=one_coin_tables(accuracy, k),
        prior=prior,
        accuracy=accuracy,
        cost_standard_error=np.full(m, 0.03),
    )


def test_class_frequencies_that_were_given_stay():
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    found = of_accuracy(np.array([0.9, 0.7, 0.5, 0.6]), prior)
    votes, nobody = np.full((4, 4), 25.0), np.zeros((4, 4), dtype=bool)
    moments = moments_of(np.full((4, 4), 0.1), 0.02)
    assert drawn_together(found, votes, moments, nobody, told=True).prior.tolist() == prior.tolist()
    # Even votes and even confusions support no differences between classes.
    np.testing.assert_allclose(drawn_together(found, votes, moments, nobody).prior, 0.25, atol=1e-9)
    # Uneven votes do: chi-square (60^2 + 3 x 20^2) / 40 = 120 with three degrees of freedom, of which 99% are kept.
    uneven = np.repeat([[25.0, 5.0, 5.0, 5.0]], 4, axis=0)
    assert drawn_together(found, uneven, moments, nobody).prior[0] > 0.39


def test_two_judges_are_left_as_they_are():
    found = of_accuracy(np.array([0.9, 0.4]), np.array([0.4, 0.3, 0.2, 0.1]))
    same = drawn_together(found, np.full((2, 4), 25.0), moments_of(np.full((2, 2), 0.1), 0.02), np.zeros((2, 2), bool))
    assert same.accuracy.tolist() == [0.9, 0.4]
    assert same.prior.tolist() == [0.4, 0.3, 0.2, 0.1]


def test_a_pair_that_met_five_times_and_agreed_by_luck_counts_little():
    # Its own variance, next to nothing, would make its covariance decide: chi-square a hundred thousand.
    even = moments_of(np.full((5, 5), 0.1), 0.02)
    both, error, covariance = even.both.copy(), even.standard_error.copy(), even.covariance.copy()
    both[0, 1] = both[1, 0] = 5.0
    error[0, 1] = error[1, 0] = 1e-4
    covariance[0, 1] = covariance[1, 0] = 0.2
    lucky = replace(even, both=both, standard_error=error, covariance=covariance)
    assert different_skills(lucky, ~np.eye(5, dtype=bool)) < 10.0


def test_pairs_that_depend_on_each_other_support_no_difference_of_skills():
    covariance = np.full((6, 6), 0.1)
    covariance[0, 1] = covariance[1, 0] = 0.6  # a copy
    moments = moments_of(covariance, 0.02)
    found = of_accuracy(np.array([0.9, 0.9, 0.5, 0.5, 0.5, 0.5]), np.full(4, 0.25))
    nobody, copied, votes = np.zeros((6, 6), bool), covariance > 0.5, np.full((6, 4), 25.0)
    assert np.ptp(drawn_together(found, votes, moments, nobody).accuracy) > 0.3
    assert np.ptp(drawn_together(found, votes, moments, copied).accuracy) < 1e-9


def test_even_classes_lean_to_the_shares_of_the_votes():
    assert evened(np.array([0.7, 0.2, 0.1])) == pytest.approx(1 / 3 + 0.01 * (np.array([0.7, 0.2, 0.1]) - 1 / 3))


def test_upright_counts_sources_by_their_votes():
    # Two that hardly vote are worse than chance; the one that votes is not.
    found = replace(of_accuracy(np.array([0.9, 0.2, 0.2]), np.array([0.5, 0.5])), shift=np.array([0.3, -0.1]))
    assert upright(found, np.array([[50.0, 50.0], [1.0, 1.0], [1.0, 1.0]])) is found
    turned = upright(found, np.array([[1.0, 1.0], [50.0, 50.0], [50.0, 50.0]]))
    assert turned.accuracy == pytest.approx([0.1, 0.8, 0.8])
    assert turned.shift.tolist() == [-0.1, 0.3]
