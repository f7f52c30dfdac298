"""`LabelModel` on rankings of different lengths, of named items, and where nobody votes."""

from __future__ import annotations

import warnings

import consilience as cs
import numpy as np
import pytest
from consilience.exceptions import ConsilienceWarning


@pytest.fixture(scope="module")
def ragged():
    space = cs.Rankings(None)
    rng = np.random.default_rng(0)
    truth = space.as_labels(space.random(200, rng))
    return space, cs.simulate(space, truth, [0.5, 1.0, 1.5], rng), truth


def quiet(space, votes, gold=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.LabelModel(space, **settings).fit(votes, gold=gold)


def test_known_rankings_may_be_shorter_than_the_longest_votes(ragged):
    space, votes, truth = ragged
    gold = [label if len(label) < 5 else None for label in truth]
    assert np.isfinite(quiet(space, votes, gold=gold).weight_).all()


def test_chunks_of_different_width_give_the_same_rankings(ragged):
    space, votes, _ = ragged
    model = quiet(space, votes)
    pieces = model.predict(cs.InMemoryPartitions.of(votes, rows=3))
    assert all(np.array_equal(one, two) for one, two in zip(pieces, model.predict(votes), strict=True))


def test_items_nobody_votes_on_are_missing(ragged):
    space, votes, _ = ragged
    model = quiet(space, votes)
    silent = cs.Votes.from_array(np.full((2, 3), None, dtype=object), observed=np.zeros((2, 3), bool))
    assert model.predict(silent).tolist() == [None, None]
    assert model.confidence(silent).tolist() == [0.0, 0.0]


def test_names_come_back_as_names_and_positions_as_positions():
    space = cs.Rankings(["milk", "juice", "tea"])
    names = [[["milk", "tea", "juice"], ["milk", "juice", "tea"], ["milk", "tea", "juice"]]] * 12
    assert quiet(space, names).predict(names)[0] == ["milk", "tea", "juice"]
    positions = np.array([[[0, 2, 1], [0, 1, 2], [0, 2, 1]]] * 12)
    assert quiet(space, positions).predict(positions)[0].tolist() == [0, 2, 1]


def test_posterior_tells_pair_probabilities_and_expected_error(ragged):
    space, votes, truth = ragged
    model = quiet(space, votes)
    belief = model.posterior(votes)
    assert belief.details["expected_error"] == pytest.approx(1 - belief.confidence)
    assert belief.details["optimal"].all()
    # 200 rankings, a share of wrong pairs near .1: the standard error of the mean is about .012
    assert belief.details["expected_error"].mean() == pytest.approx(space.kendall_error(belief.labels, truth), abs=0.05)
