"""Tags from which little or nothing can be learned: a defined result and a finding, never NaN, for every method."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import ConsilienceWarning

SPACES = {
    "tags": cs.Tags(3),
    "one tag": cs.Tags(1),
    "sequences": cs.Sequences(),
    "chains": cs.Sequences(["O", "B", "I"], chain=True),
}
METHODS = ["auto", "majority", "isotropic", "triplets", "quadratic", "em", "labelled"]


def regular(space: cs.LabelSpace, n: int = 60, m: int = 5) -> tuple[cs.Votes, np.ndarray]:
    rng = np.random.default_rng(3)
    truth = space.random(n, rng)
    labels = np.stack([space.sample_around(truth, 1.5, rng) for _ in range(m)], axis=1)
    flat = space.as_labels(labels.reshape(n * m, -1))
    return cs.Votes.from_array(flat.reshape(n, m, *flat.shape[1:])), space.as_labels(truth)


def masked(votes: cs.Votes, observed: np.ndarray) -> cs.Votes:
    return cs.Votes.from_array(votes.labels, observed=observed)


def every_vote(votes: cs.Votes, source: int) -> cs.Votes:
    labels = votes.labels.copy()
    labels[:] = labels[:, source : source + 1]
    return cs.Votes.from_array(labels)


def flipped(votes: cs.Votes) -> cs.Votes:
    labels = votes.labels.copy()
    if labels.ndim == 3:
        labels[:, 2] = 1 - labels[:, 2]
    else:
        for row in range(len(labels)):
            labels[row, 2] = labels[(row + 5) % len(labels), 2]  # of the same length, and about something else
    return cs.Votes.from_array(labels)


def constant(votes: cs.Votes) -> cs.Votes:
    labels = votes.labels.copy()
    for row in range(len(labels)):
        cell = labels[row, 2]
        labels[row, 2] = np.zeros_like(cell) if isinstance(cell, np.ndarray) else ["O"] * len(cell)
    return cs.Votes.from_array(labels)


def some(shape: tuple[int, int], share: float) -> np.ndarray:
    return np.random.default_rng(0).random(shape) < share


SITUATIONS = {
    "one source": lambda votes: votes.select([votes.sources[0]]),
    "two sources": lambda votes: votes.select(votes.sources[:2]),
    "three sources": lambda votes: votes.select(votes.sources[:3]),
    "one item": lambda votes: votes[:1],
    "two items": lambda votes: votes[:2],
    "all abstain": lambda votes: masked(votes, np.zeros(votes.shape, dtype=bool)),
    "one never votes": lambda votes: masked(votes, np.repeat([[True, True, False, True, True]], len(votes), axis=0)),
    "one vote per item": lambda votes: masked(votes, np.arange(5) == np.arange(len(votes))[:, None] % 5),
    "few votes": lambda votes: masked(votes, some(votes.shape, 0.1)),
    "copies": lambda votes: every_vote(votes, 1),
    "one flipped": flipped,
    "one constant": constant,
}


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("kind", SPACES)
def test_every_method_gives_defined_labels(kind, situation):
    space = SPACES[kind]
    votes, truth = regular(space)
    votes = SITUATIONS[situation](votes)
    known = [label if row % 3 == 0 else None for row, label in enumerate(truth)][: len(votes)]
    for method in METHODS:
        gold = known if method == "labelled" else None
        model = cs.LabelModel(space, method=method).fit(votes, gold=gold)
        voted = votes.observed.any(axis=1)
        belief = model.posterior(votes)
        assert np.isfinite(model.weight_).all()
        assert ((model.expected_cost_ >= 0) & (model.expected_cost_ <= 1)).all()
        assert not np.isnan(model.standard_error_).any()
        assert ((belief.confidence >= 0) & (belief.confidence <= 1)).all()
        assert (belief.confidence[~voted] == 0).all()
        for row in np.flatnonzero(voted):
            assert np.isfinite(belief.details["tag_probability"][row]).all()
        if voted.any():
            labels = space.as_batch(belief.labels[voted])
            assert (space.distance(labels, labels) == 0).all()


FINDINGS = {
    "one source": "too-few-sources",
    "two sources": "too-few-sources",
    "one item": "low-overlap",
    "one never votes": "never-votes",
    "one constant": "constant-source",
}


@pytest.mark.parametrize("situation", FINDINGS)
@pytest.mark.parametrize("kind", SPACES)
def test_the_trouble_is_named(kind, situation):
    space = SPACES[kind]
    votes = SITUATIONS[situation](regular(space)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        model = cs.LabelModel(space).fit(votes)
    assert FINDINGS[situation] in {finding.code for finding in model.diagnostics_}


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_a_source_that_says_the_opposite_is_reported_and_used():
    # n = 400, accuracy 0.8 and 0.2: the labels cannot be worse than without it. Three tags.
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=(400, 1, 3))
    votes = np.where(rng.random((400, 5, 3)) < 0.8, truth, 1 - truth)
    votes[:, 2] = 1 - votes[:, 2]
    model = cs.LabelModel(cs.Tags(3)).fit(votes)
    assert model.weight_[2] < -0.8
    found = {finding.code: finding.sources for finding in model.diagnostics_}
    assert found["adversarial-source"] == (model.source_model_.sources[2],)
    without = cs.LabelModel(cs.Tags(3)).fit(votes[:, [0, 1, 3, 4]])
    assert model.score(votes, truth[:, 0]) > without.score(votes[:, [0, 1, 3, 4]], truth[:, 0])
