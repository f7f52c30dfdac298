"""Labeling functions: which sources are some, what their votes say, copies, told balances, known labels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import ConsilienceWarning
from consilience.label_types.classes.labeling_functions import (
    common_precision,
    covered_balance,
    precision_is_common,
    vote_only_some_classes,
    within_balance,
)


def fit(votes, k=2, gold=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.LabelModel(cs.Classes(k), random_state=0, **settings).fit(votes, gold=gold)


def functions(seed, n=1500, count=8, right=0.3, wrong=0.08, share=0.5, clumped=0.0):
    """Return votes for one class each, and the truth; `clumped` is the share of items on which nobody fires."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < share).astype(int)
    awake = rng.random(n) >= clumped
    votes = np.full((n, count), -1)
    for a in range(count):
        fires = awake & (rng.random(n) < np.where(truth == a % 2, right, wrong))
        votes[fires, a] = a % 2
    return votes, truth


@pytest.mark.parametrize(
    ("votes", "some"),
    [
        ([[50, 60], [55, 45], [97, 3]], False),  # a strict judge is a judge
        ([[50, 60], [55, 45], [100, 0]], False),  # so is one among others who always votes the same
        ([[100, 0], [0, 40], [97, 3]], True),
        ([[3, 0], [0, 2], [4, 0], [0, 3], [5, 0]], True),
        ([[2, 0], [1, 1], [1, 2], [2, 1]], False),  # too few votes to leave a class out
        ([[40, 40, 1], [40, 40, 0], [50, 30, 0]], False),  # a rare class is left out by accident
        ([[30, 0], [20, 0], [25, 0]], False),  # one class is no choice
    ],
)
def test_functions_are_told_from_judges_by_the_classes_they_vote_for(votes, some):
    assert vote_only_some_classes(np.array(votes, dtype=float)) == some


def test_precision_follows_agreement_and_stays_in_bounds():
    both = np.full((2, 2), 1e6)
    assert common_precision(np.zeros((2, 2)), np.zeros((2, 2)), 2) == pytest.approx(0.8)
    # Two classes, agreement 0.82 = a^2 + (1 - a)^2 at a = 0.9; a million items drown the guess.
    assert common_precision(0.82 * both, both, 2) == pytest.approx(0.9, abs=1e-3)
    assert common_precision(0.0 * both, both, 2) == 0.6
    assert common_precision(both, both, 2) == 0.95


def test_a_told_balance_is_that_of_all_items():
    # 1% of items are of class 1; its function fires on 1 item in 100 and is right four times in five, so that .8 of
    # class 1 but only 1/5 of the other function's share of class 0 is covered.
    table = np.tile([[0.8, 0.2], [0.2, 0.8]], (2, 1, 1))
    fired = np.array([[0.1, 0.0], [0.0, 0.01]])
    covered, left = covered_balance(np.array([0.99, 0.01]), fired, table, 0.1)
    assert covered.sum() == pytest.approx(1.0)
    assert covered[1] > 0.05
    assert left[1] < 0.01
    # Both parts make up the balance.
    assert 0.1 * covered + 0.9 * left == pytest.approx([0.99, 0.01], abs=1e-6)


def test_no_function_is_right_more_often_than_there_are_items_of_its_class():
    table = np.tile([[0.8, 0.2], [0.2, 0.8]], (1, 1, 1))
    capped = within_balance(table, np.array([[0.1, 0.2]]), np.array([0.95, 0.05]))
    assert capped[0, 1] == pytest.approx([0.75, 0.25])
    assert capped[0, 0] == pytest.approx([0.8, 0.2])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_pairs_of_votes_tell_a_common_precision_from_a_common_error_rate(seed):
    # 4,000 items with two votes each, which are right in 7 of 10 cases; classes of shares .6, .3 and .1. The mean log
    # likelihood ratio per pair is .02 or more either way, so that 4,000 pairs go wrong with a probability below 1e-6.
    rng = np.random.default_rng(seed)
    share, right = np.array([0.6, 0.3, 0.1]), np.full((3, 3), 0.15) + 0.55 * np.eye(3)
    truth = rng.choice(3, 4000, p=share)
    by_rate = [[rng.choice(3, p=right[one]) for one in truth] for _ in range(2)]
    votes = share[:, None] * right  # [vote, class]: precision is common, and these are the shares of votes
    given_class = (votes / votes.sum(axis=0)).T
    truth = rng.choice(3, 4000, p=votes.sum(axis=0))
    by_precision = [[rng.choice(3, p=given_class[one]) for one in truth] for _ in range(2)]
    for said, expected in ((by_rate, False), (by_precision, True)):
        pairs = np.zeros((3, 3))
        np.add.at(pairs, tuple(said), 1.0)
        assert precision_is_common(pairs + pairs.T) == expected


@pytest.mark.parametrize("clumped", [0.0, 0.6])
def test_functions_do_not_collapse_to_one_class_and_a_single_vote_is_followed(clumped):
    votes, truth = functions(0, clumped=clumped)
    model = fit(votes)
    covered = (votes >= 0).any(axis=1)
    predicted = model.predict(votes)
    # The precision of a lone vote is about 0.79; textbook Dawid-Skene puts everything into one class (0.5).
    assert (predicted[covered] == truth[covered]).mean() > 0.75
    assert 0.3 < predicted[covered].mean() < 0.7
    lone = np.full((2, votes.shape[1]), -1)
    lone[0, 0], lone[1, 1] = 0, 1
    assert model.predict(lone).tolist() == [0, 1]
    if clumped:
        assert "labeling-functions" in {item.code for item in model.diagnostics_}


def test_a_told_balance_shifts_functions_without_changing_what_a_vote_says():
    votes, _ = functions(0, clumped=0.6)
    plain, told = fit(votes), fit(votes, prior=[0.9, 0.1])
    parameters = told.source_model_.parameters
    assert np.allclose(parameters.prior, plain.source_model_.parameters.prior, atol=0.1)
    assert told.predict_proba(votes)[:, 1].mean() < plain.predict_proba(votes)[:, 1].mean()
    empty = np.full((1, votes.shape[1]), -1)
    # The rare class is covered more often than the other, so that less of it is left than one in ten.
    assert told.predict_proba(empty)[0, 1] < 0.1


@pytest.mark.parametrize("seed", [0, 1])
def test_learning_that_a_class_is_frequent_does_not_push_ties_away_from_it(seed):
    # 85% negatives, and known labels that say so: fewer items with a vote for either side become positive, not more.
    votes, truth = functions(seed, n=2000, share=0.15, clumped=0.6)
    covered = (votes >= 0).any(axis=1)
    known = set(np.flatnonzero(covered)[:100].tolist())
    told = fit(votes, gold=[int(label) if row in known else None for row, label in enumerate(truth)])
    plain = fit(votes)
    tied = ((votes == 0).sum(axis=1) == (votes == 1).sum(axis=1)) & covered
    assert told.predict_proba(votes)[tied, 1].mean() < plain.predict_proba(votes)[tied, 1].mean()
    covered[list(known)] = False
    assert told.score(votes[covered], truth[covered]) > plain.score(votes[covered], truth[covered]) - 0.01


def test_copies_among_functions_count_once():
    # Nine functions of one class each, and five copies of the first: half of the votes for class 0 are one vote.
    votes, truth = functions(0, n=2000, count=9, right=0.4, wrong=0.15)
    rng = np.random.default_rng(1)
    copies = [np.where(rng.random(2000) < 0.98, votes[:, 0], -1) for _ in range(5)]
    votes = np.column_stack([votes, *copies])
    model = fit(votes)
    assert "dependent-pair" in {item.code for item in model.diagnostics_}
    copied = [0, *range(9, 14)]
    between = model.source_model_.correlation[np.ix_(copied, copied)]
    assert (between[~np.eye(6, dtype=bool)] > 0.8).all()
    voted = (votes >= 0).any(axis=1)
    alone = fit(votes, dependencies="none")
    assert model.score(votes[voted], truth[voted]) > alone.score(votes[voted], truth[voted]) + 0.01
