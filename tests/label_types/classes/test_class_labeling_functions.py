"""Labeling functions: which sources are some, what their votes say, copies, told balances, known labels."""

import numpy as np
import pytest
from simulated import codes, fitted

import consilience as cs


def fit(votes, k=2, gold=None, **settings):
    return fitted(cs.Classes(k), votes, gold, **settings)


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
        assert "labeling-functions" in codes(model)


def test_finding_says_that_only_known_labels_make_functions_count_differently():
    votes, truth = functions(0, clumped=0.6)
    votes[::3, 0] = -1  # so that weights differ
    gold = [int(label) if row < 60 else None for row, label in enumerate(truth)]
    lone = np.full((2, votes.shape[1]), -1)
    lone[0, 0] = lone[1, 2] = 0
    for known, says in ((None, "equally reliable, whatever their weight"), (gold, "only the 60 known labels")):
        model = fit(votes, gold=known)
        assert says in {item.code: item.message for item in model.diagnostics_}["labeling-functions"]
        chance = model.predict_proba(lone)[:, 0]
        assert model.weight_[0] != model.weight_[2]
        assert (chance[0] == pytest.approx(chance[1], abs=1e-12)) == (known is None)


def test_labels_have_the_balance_that_was_told():
    votes, _ = functions(0, clumped=0.6)
    plain, told = fit(votes), fit(votes, prior=[0.9, 0.1])
    covered = (votes >= 0).any(axis=1)
    # The rare class is covered more often than the other.
    share = told.predict_proba(votes)[covered, 1].mean()
    assert 0.1 < share < plain.predict_proba(votes)[covered, 1].mean()
    assert share == pytest.approx(told.source_model_.parameters.told[1], abs=0.005)
    # So less of it is left than one in ten.
    empty = np.full((1, votes.shape[1]), -1)
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


def test_copies_and_functions_of_one_class_do_not_make_votes_look_precise():
    # Poor functions, most of them of one class: they agree always, and a lone vote is right about half of the time.
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=3000)
    votes = np.full((3000, 9), -1)
    for a, label in enumerate([0, 0, 0, 0, 1, 2]):
        fires = rng.random(3000) < np.where(truth == label, 0.3, 0.2)
        votes[fires, a] = label
    votes[:, 6:] = np.where(rng.random((3000, 3)) < 0.97, votes[:, :1], -1)
    model = fit(votes, 3)
    lone = np.full((3, 9), -1)
    lone[[0, 1, 2], [1, 4, 5]] = 0, 1, 2
    assert model.predict_proba(lone).max(axis=1).max() < 0.7


def test_copies_among_functions_count_once():
    # Nine functions of one class each, and five copies of the first: half of the votes for class 0 are one vote.
    votes, truth = functions(0, n=2000, count=9, right=0.4, wrong=0.15)
    rng = np.random.default_rng(1)
    copies = [np.where(rng.random(2000) < 0.98, votes[:, 0], -1) for _ in range(5)]
    votes = np.column_stack([votes, *copies])
    model = fit(votes)
    assert "dependent-pair" in codes(model)
    copied = [0, *range(9, 14)]
    between = model.source_model_.correlation[np.ix_(copied, copied)]
    assert (between[~np.eye(6, dtype=bool)] > 0.8).all()
    voted = (votes >= 0).any(axis=1)
    alone = fit(votes, dependencies="none")
    assert model.score(votes[voted], truth[voted]) > alone.score(votes[voted], truth[voted]) + 0.01
