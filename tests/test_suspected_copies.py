"""Few items, weak sources: what copies, opponents and accidents could do to the labels, and do not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import ConsilienceWarning
from consilience.families.confusion.shrinkage import above_chance
from consilience.solvers.weighed_readings import fear_of_copies

STEPS = cs.FiniteMetric(np.abs(np.subtract.outer(np.arange(6), np.arange(6))))


def against_plain(space, share, n, seeds, copies=(), coverage=1.0, fresh=3000):
    """Return mean costs of the default and of the plain vote on fresh items, and the codes found, over some draws.

    Sources cost these shares of chance; the first of `copies` is repeated by the others nine times out of ten.
    """
    costs, found = np.zeros(2), []
    chance = space.family.expected_cost(np.zeros(len(share)))
    for seed in seeds:
        rng = np.random.default_rng(seed)
        truth = space.as_labels(space.random(n + fresh, rng))
        labels = cs.simulate(space, truth, space.family.weight_from_cost(np.asarray(share) * chance), rng).labels.copy()
        for copy in copies[1:]:
            same = rng.random(n + fresh) < 0.9
            labels[same, copy] = labels[same, copies[0]]
        observed = rng.random(labels.shape[:2]) < coverage
        observed[:, 0] |= ~observed.any(axis=1)
        votes = cs.Votes.from_array(labels, observed=observed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConsilienceWarning)
            model = cs.LabelModel(space, random_state=0).fit(votes[:n])
        known = space.as_batch(truth[n:])
        for index, predict in enumerate((model.predict, model.predict_baseline)):
            costs[index] += float(space.cost(space.as_batch(predict(votes[n:])), known).mean()) / len(seeds)
        found.append({note.code for note in model.diagnostics_})
    return costs, found


@pytest.mark.parametrize("space", [cs.Classes(2), cs.Classes(4), cs.Tags(3)], ids=["two", "four", "tags"])
def test_copies_among_weak_sources_on_few_items_are_no_experts(space):
    # Four of 12 sources that are all the same; on 150 items hardly a pair of them stands out.
    (default, plain), _ = against_plain(space, np.full(12, 0.7), 150, range(4), copies=(0, 3, 5, 8), coverage=0.8)
    assert default < 1.02 * plain


def test_copies_among_weak_sources_are_no_experts_in_a_finite_space():
    (default, plain), _ = against_plain(STEPS, np.full(8, 0.7), 60, range(3), copies=(0, 2, 5))
    assert default < 1.02 * plain


@pytest.mark.parametrize("space", [cs.Classes(2), cs.Tags(3)], ids=["two", "tags"])
def test_two_of_four_that_copy_each_other_are_no_experts_however_many_items_there_are(space):
    (default, plain), found = against_plain(space, np.full(4, 0.5), 3000, range(2), copies=(1, 3))
    assert default < 1.02 * plain
    assert all("possible-copies" in codes for codes in found)


def test_excellent_sources_are_not_taken_for_copies_where_the_others_agree_on_nothing():
    # Four of 16 know the answer. The noise of the others must not pass for knowledge that contradicts them.
    share = np.r_[np.full(4, 0.2), np.full(12, 0.93)]
    (default, plain), found = against_plain(cs.Classes(2), share, 150, range(100, 106), coverage=0.4)
    assert default < 1.02 * plain
    assert not any("dependent-pair" in codes for codes in found)


def test_equal_taggers_on_few_items_keep_the_plain_vote():
    (default, plain), _ = against_plain(cs.Tags(4), np.full(14, 0.6), 45, range(6), coverage=0.6)
    assert default < 1.02 * plain


def test_a_source_is_used_against_its_votes_only_where_it_is_clearly_worse_than_chance():
    raw, error = np.array([0.45, 0.40, 0.10, 0.80]), np.array([0.05, 0.05, 0.02, 0.05])
    found = above_chance(raw, raw, error, 2)
    # One standard error below chance: a little above it, as skill 0.05 is. Two: the same, as equal ones scatter that
    # far. Twenty: kept but for (4.68 / 400)^2 of the way. Above chance: left alone.
    assert found == pytest.approx([0.525, 0.525, 0.525 + (1 - (4.677 / 400) ** 2) * (0.10 - 0.525), 0.80], abs=1e-4)


def test_copies_are_feared_more_the_fewer_items_two_sources_share():
    usable = ~np.eye(4, dtype=bool)
    fears = [fear_of_copies(np.full((4, 4), float(items)), usable) for items in (10, 100, 200, 10**9)]
    assert fears == pytest.approx([9.0, 9.0, 7.5, 6.0], abs=1e-5)
    assert fear_of_copies(np.zeros((4, 4)), ~usable & usable) == 9.0
