"""How far confusions are drawn together: as far as chance explains why they differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import consilience as cs
from consilience.families.base import Request
from consilience.families.confusion.pair_moments import PairMoments
from consilience.families.confusion.shrinkage import different_skills, upright


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
    family = cs.Classes(2).family
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
