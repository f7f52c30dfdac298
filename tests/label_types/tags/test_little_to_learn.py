"""Tags from which little or nothing can be learned: a defined result and a finding, never NaN, for every method."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
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


def changed(change):
    """Return what makes another table of votes by changing some cells in place."""

    def apply(votes: cs.Votes) -> cs.Votes:
        labels = votes.labels.copy()
        change(labels)
        return cs.Votes.from_array(labels)

    return apply


def copy_one(labels):
    labels[:] = labels[:, 1:2]


def flip_one(labels):
    if labels.ndim == 3:
        labels[:, 2] = 1 - labels[:, 2]
    else:
        labels[:, 2] = np.roll(labels[:, 2], -5)  # of the same length, and about something else


def fix_one(labels):
    for row, cell in enumerate(labels[:, 2]):
        labels[row, 2] = np.zeros_like(cell) if isinstance(cell, np.ndarray) else ["O"] * len(cell)


def masked(mask):
    return lambda votes: cs.Votes.from_array(votes.labels, observed=mask(np.arange(len(votes))[:, None]))


SITUATIONS = {
    "one source": lambda votes: votes.select([votes.sources[0]]),
    "two sources": lambda votes: votes.select(votes.sources[:2]),
    "three sources": lambda votes: votes.select(votes.sources[:3]),
    "one item": lambda votes: votes[:1],
    "two items": lambda votes: votes[:2],
    "all abstain": masked(lambda row: (row < 0) & (np.arange(5) >= 0)),
    "one never votes": masked(lambda row: (row >= 0) & (np.arange(5) != 2)),
    "one vote per item": masked(lambda row: np.arange(5) == row % 5),
    "few votes": masked(lambda row: np.random.default_rng(0).random((len(row), 5)) < 0.1),
    "copies": changed(copy_one),
    "one flipped": changed(flip_one),
    "one constant": changed(fix_one),
}


FINDINGS = {
    "one source": "too-few-sources",
    "two sources": "too-few-sources",
    "one item": "low-overlap",
    "one never votes": "never-votes",
    "one constant": "constant-source",
}


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("kind", SPACES)
def test_every_method_gives_defined_labels_and_the_trouble_is_named(kind, situation):
    space = SPACES[kind]
    votes, truth = regular(space)
    votes = SITUATIONS[situation](votes)
    known = [label if row % 3 == 0 else None for row, label in enumerate(truth)][: len(votes)]
    for method in METHODS:
        gold = known if method == "labelled" else None
        model = cs.LabelModel(space, method=method).fit(votes, gold=gold)
        if method == "auto" and situation in FINDINGS:
            assert FINDINGS[situation] in {finding.code for finding in model.diagnostics_}
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
