"""Weights against the plain vote, where the truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import consilience as cs
from consilience.estimation.known import as_known_labels_say
from consilience.estimation.passes import VotePasses
from consilience.families.automatic import Steps, follow
from consilience.families.base import Estimate, Request
from consilience.partitions import InMemoryPartitions
from consilience.solvers.readings import PairReading, Readings

SPACE = cs.Classes(2)


def judged(weights: list[float], known: int, *, decided: bool = False, method: str = "auto") -> tuple[Estimate, ...]:
    """Return an estimate by these weights and what the known labels make of it.

    The first source is right on 60 of 100 items, the two others on all of them.
    """
    truth = np.tile([0, 1], 50)
    labels = np.column_stack([np.where(np.arange(100) % 5 < 3, truth, 1 - truth), truth, truth])
    votes, gold = cs.Votes.from_array(labels), cs.Votes.from_array(truth[:, None], sources=["gold"])
    seen = (np.arange(100) < known)[:, None]
    partitions = InMemoryPartitions.of(votes, replace(gold, observed=seen))
    request = Request(votes.sources, method, np.zeros((3, 3), dtype=bool), n_gold=known)
    family = SPACE.law
    learned = Estimate(family.from_weights(np.array(weights), request), "em", "learned", decided=decided)
    plain = family.from_weights(np.ones(3), request)
    return learned, as_known_labels_say(learned, plain, SPACE, family, request, VotePasses(partitions, 100, 0))


def test_weights_that_are_worse_on_known_items_are_given_up():
    # Labels by weights follow the first source: 12 of 30 known items wrong against none, 0.4 with an error of 0.09.
    _, found = judged([5.0, 0.1, 0.1], known=30)
    assert found.method == "majority"
    (note,) = found.diagnostics
    assert note.code == "weights-unsupported"
    assert "On the 30 items" in note.message
    assert "cost 0.4 more" in note.message


@pytest.mark.parametrize(
    ("weights", "settings"),
    [
        ([5.0, 0.1, 0.1], {"known": 9}),  # too few to say so
        ([5.0, 0.1, 0.1], {"known": 30, "method": "em"}),  # asked for
        ([0.5, 1.0, 1.0], {"known": 30}),  # the labels of the plain vote
    ],
)
def test_weights_stay_otherwise(weights, settings):
    learned, found = judged(weights, **settings)
    assert found is learned


def test_an_explanation_that_known_labels_chose_has_to_be_better_than_the_plain_vote():
    _, found = judged([0.5, 1.0, 1.0], known=30, decided=True)
    assert found.method == "majority"


def test_known_labels_tell_which_of_two_camps_of_rankers_is_right():
    # Three good sources, and three that repeat each other about nothing: known labels tell which are which.
    rng = np.random.default_rng(0)
    space = cs.Rankings(5)
    truth = space.as_labels(space.random(400, rng))
    good = cs.simulate(space, truth, np.full(3, 1.0), rng).labels
    other = cs.simulate(space, space.as_labels(space.random(400, rng)), np.full(3, 1.0), rng).labels
    votes = cs.Votes.from_array(np.concatenate([good, other], axis=1))
    known = [label if row < 30 else None for row, label in enumerate(truth)]
    told = cs.LabelModel(space, random_state=0).fit(votes, gold=known)
    plain = space.kendall_error(told.predict_baseline(votes), truth)
    assert space.kendall_error(told.predict(votes), truth) < 0.7 * plain


@pytest.mark.parametrize(("rival", "n_gold", "decided"), [(True, 5, True), (False, 5, False), (True, 0, False)])
def test_known_labels_decide_where_two_explanations_compete(rival, n_gold, decided):
    nobody = np.zeros((3, 3), dtype=bool)
    one = PairReading(~np.eye(3, dtype=bool), np.ones(3), 0.0)
    readings = Readings(one, one if rival else None, nobody[0], nobody[0])
    request = Request(("a", "b", "c"), "auto", nobody, n_gold=n_gold)
    plain = SPACE.law.from_weights(np.ones(3), request)
    learned = Estimate(plain, "moments", "learned")
    steps = Steps(
        equal=lambda: plain,
        labelled=None,
        chance=lambda: 0.0,
        unrelated="",
        read_pairs=lambda: readings,
        dependent=lambda _: learned,
        independent=lambda: learned,
    )
    assert follow(steps, 3, request).decided == decided


def mean_cost(space, model, votes, truth):
    return float(space.cost(space.as_batch(model.predict(votes)), space.as_batch(truth)).mean())


def with_three_copies(space, n, rng):
    """Return votes of a source with two copies and of four others, and the truth."""
    chance = float(space.law.expected_cost(np.zeros(1))[0])
    weights = space.law.weight_from_cost(chance * np.array([0.7, 0.7, 0.7, 0.4, 0.45, 0.5, 0.8]))
    truth = space.as_labels(space.random(n, rng))
    labels = cs.simulate(space, truth, weights, rng).labels.copy()
    labels[:, 1:3] = labels[:, :1]
    return cs.Votes.from_array(labels), truth


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_known_labels_of_hard_items_do_not_make_all_sources_look_bad():
    # Suggested items are those on which sources err most: taken at face value, labels cost 10% more here.
    space, rng = cs.Rankings(4), np.random.default_rng(10_000)
    votes, truth = with_three_copies(space, 300, rng)
    fresh, fresh_truth = with_three_copies(space, 2000, rng)
    alone = cs.LabelModel(space, random_state=0).fit(votes)
    hard = set(alone.suggest_items_to_label(votes, 20).tolist())
    known = [label if row in hard else None for row, label in enumerate(truth)]
    told = cs.LabelModel(space, random_state=0).fit(votes, gold=known)
    assert mean_cost(space, told, fresh, fresh_truth) < 1.04 * mean_cost(space, alone, fresh, fresh_truth)


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_five_known_classes_do_not_undo_that_weights_are_drawn_together():
    # Six draws; without that rule labels cost 4% more with five known ones (standard error 1%).
    space, costs = cs.Classes(3), []
    for seed in range(6):
        rng = np.random.default_rng(20_000 + seed)
        votes, truth = with_three_copies(space, 300, rng)
        fresh, fresh_truth = with_three_copies(space, 2000, rng)
        known = [label if row < 5 else None for row, label in enumerate(truth.tolist())]
        models = [cs.LabelModel(space, random_state=0).fit(votes, gold=gold) for gold in (None, known)]
        costs.append([mean_cost(space, model, fresh, fresh_truth) for model in models])
    alone, told = np.mean(costs, axis=0)
    assert told < 1.02 * alone
