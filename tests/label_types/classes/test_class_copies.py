"""Classes voted by sources that share errors: the likelihood of their votes, and what it tells about who copies."""

from itertools import product

import numpy as np
import pytest

import consilience as cs
from consilience.label_types.classes.copies import joint_likelihood, product_factor, school_likelihood


@pytest.fixture
def tables() -> np.ndarray:
    """P(vote | class) of three sources and two classes, as [source, vote, class]."""
    return np.random.default_rng(0).dirichlet(np.ones(2), (3, 2)).transpose(0, 2, 1)


def all_votes(k: int, m: int) -> np.ndarray:
    return np.array([*product(range(k), repeat=m)])


def test_votes_of_copies_have_the_probability_that_adding_up_hidden_votes_gives(tables):
    often = np.array([0.9, 0.5, 0.2])
    votes = all_votes(2, 3)
    found = np.exp(joint_likelihood(votes, np.ones(votes.shape, dtype=bool), tables, often)[0])
    for row, said in enumerate(votes):
        for c in range(2):
            expected = sum(
                tables[:, w, c].mean()
                * np.prod([often[a] * (said[a] == w) + (1 - often[a]) * tables[a, said[a], c] for a in range(3)])
                for w in range(2)
            )
            assert found[row, c] == pytest.approx(expected)


def test_votes_around_a_version_of_the_truth_have_the_probability_that_adding_up_versions_gives():
    prior, quality = np.array([0.3, 0.7]), 0.6
    version = quality * np.eye(2) + (1 - quality) * prior[:, None]
    around = np.array([[[0.9, 0.2], [0.1, 0.8]], [[0.7, 0.1], [0.3, 0.9]]])
    votes = all_votes(2, 2)
    found = school_likelihood(votes, np.ones(votes.shape, dtype=bool), around @ version, prior, quality)[0]
    for row, said in enumerate(votes):
        expected = sum(version[w] * around[0, said[0], w] * around[1, said[1], w] for w in range(2))
        assert np.exp(found[row]) == pytest.approx(expected)


@pytest.mark.parametrize("k", [2, 5])  # more members than classes, and fewer
def test_votes_of_a_group_have_probabilities_that_add_up_to_one(k):
    rng = np.random.default_rng(1)
    tables = rng.dirichlet(np.ones(k), (3, k)).transpose(0, 2, 1)
    votes = all_votes(k, 3)
    seen = np.ones(votes.shape, dtype=bool)
    copies = joint_likelihood(votes, seen, tables, np.array([0.99, 0.5, 0.0]))[0]
    # Every follower of this version keeps some of its errors.
    school = school_likelihood(votes, seen, 0.5 * tables + 0.5 / k, np.full(k, 1.0 / k), 0.9)[0]
    for found in (copies, school):
        assert np.exp(found).sum(axis=0) == pytest.approx(np.ones(k), rel=1e-6)


def test_a_member_that_abstains_leaves_the_probability_of_the_others(tables):
    often = np.array([0.8, 0.6, 0.4])
    seen = np.array([[True, False, True]])
    found = joint_likelihood(np.array([[0, 0, 1]]), seen, tables, often)[0]
    common = tables.mean(axis=0)

    def chance(a: int, said: int, w: int) -> np.ndarray:
        return often[a] * (said == w) + (1.0 - often[a]) * tables[a, said]

    expected = sum(common[w] * chance(0, 0, w) * chance(2, 1, w) for w in range(2))
    assert np.exp(found[0]) == pytest.approx(expected)


def test_certain_soft_votes_are_votes(tables):
    votes, often = all_votes(2, 3), np.array([0.8, 0.6, 0.4])
    seen = np.ones(votes.shape, dtype=bool)
    hard, soft = (joint_likelihood(labels, seen, tables, often) for labels in (votes, np.eye(2)[votes]))
    assert soft[0] == pytest.approx(hard[0])
    assert soft[1] == pytest.approx(hard[1])


def test_products_are_told_apart():
    factor = np.array([0.9, 0.8, 0.6, 0.3])
    assert product_factor(np.outer(factor, factor)) == pytest.approx(factor, abs=1e-3)


@pytest.mark.parametrize("seed", [7, 8])
def test_sources_that_repeat_half_of_the_votes_of_another_are_told_from_good_ones(seed):
    # The four good sources repeat half of the votes of the first; all ten confuse classes in ways of their own. No
    # error in seeds 0 to 11; from the agreement of pairs alone, three.
    rng = np.random.default_rng(seed)
    quality = np.array([0.85] * 4 + [0.5, 0.2, 0.15, 0.1, 0.1, 0.05])
    tables = quality[:, None, None] * np.eye(4) + (1.0 - quality)[:, None, None] * rng.dirichlet(np.ones(4), (10, 4))
    tables[:4] = tables[0]
    truth = rng.choice(4, 1500, p=[0.15, 0.5, 0.1, 0.25])
    drawn = (rng.random((1500, 10, 1)) > tables[:, truth].transpose(1, 0, 2).cumsum(axis=2)).sum(axis=2).clip(max=3)
    same = rng.random((1500, 4)) < 0.5
    drawn[:, :4] = np.where(same, drawn[:, :1], drawn[:, :4])
    model = cs.LabelModel(cs.Classes(4), random_state=0).fit(drawn)
    pairs = {frozenset(pair) for pair in model.source_model_.dependencies}
    names = model.source_model_.sources
    assert pairs == {frozenset((names[a], names[b])) for a in range(4) for b in range(a)}
