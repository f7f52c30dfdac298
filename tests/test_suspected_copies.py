"""Few items, weak sources: what copies, opponents and accidents could do to the labels, and do not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import ConsilienceWarning
from consilience.families.confusion.shrinkage import above_chance
from consilience.solvers.readings import PairReading
from consilience.solvers.weighed_readings import _harm, _within_groups, fear_of_copies


def against_plain(space, share, n, seeds, copies=(), coverage=1.0, fresh=3000):
    """Return mean costs of the default and of the plain vote on fresh items, and the codes found, over some draws.

    Sources cost these shares of chance; the first of `copies` is repeated by the others nine times out of ten.
    """
    costs, found = np.zeros(2), []
    chance = space.law.expected_cost(np.zeros(len(share)))
    for seed in seeds:
        rng = np.random.default_rng(seed)
        truth = space.as_labels(space.random(n + fresh, rng))
        labels = cs.simulate(space, truth, space.law.weight_from_cost(np.asarray(share) * chance), rng).labels.copy()
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


@pytest.mark.parametrize("space", [cs.Tags(3)], ids=["tags"])
def test_two_of_four_that_copy_each_other_are_no_experts_however_many_items_there_are(space):
    (default, plain), found = against_plain(space, np.full(4, 0.5), 3000, range(2), copies=(1, 3))
    assert default < 1.02 * plain
    assert all("possible-copies" in codes for codes in found)


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


def reading_of(quality, copies):
    dependent = np.zeros((len(quality), len(quality)), dtype=bool)
    dependent[np.ix_(copies, copies)] = True
    np.fill_diagonal(dependent, False)
    return PairReading(dependent, np.asarray(quality), 0.0)


def test_copies_harm_only_where_a_plain_vote_would_do_better_than_following_them():
    usable = ~np.eye(7, dtype=bool)
    seem = np.array([0.9, 0.9, 0.9, 0.1, 0.1, 0.1, 0.1])
    # All alike: a plain vote has (.3 * 7) / sqrt(.91 * 13) = .61 of signal to noise, three copies alone .31, so that
    # 27% and 38% of the labels would be wrong; the others still count a little.
    assert 0.25 < _harm(seem, reading_of(np.full(7, 0.3), [0, 1, 2]), usable) < 0.40
    # If the others know nothing, whoever follows the copies loses nothing.
    assert _harm(seem, reading_of(np.r_[np.full(3, 0.3), np.full(4, 0.02)], [0, 1, 2]), usable) < 0.0


def test_pairs_within_a_group_do_not_speak_against_it():
    clear, closer = np.zeros((4, 4), dtype=bool), ~np.eye(4, dtype=bool)
    for one, two in ((0, 1), (1, 2)):
        clear[one, two] = clear[two, one] = True
    linked = _within_groups(clear, closer)
    assert linked[0, 2]  # of one group, though not clear by itself
    assert not linked[3].any()
    assert not _within_groups(clear, clear)[0, 2]  # further apart than independent ones
