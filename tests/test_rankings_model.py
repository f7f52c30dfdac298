"""`LabelModel` on rankings of different lengths, of named items, and where nobody votes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import consilience as cs
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


def test_integer_programming_proves_what_the_search_leaves_open():
    rng = np.random.default_rng(3)
    labels = np.argsort(rng.random((20, 7, 18)), axis=2)  # without any signal, so majorities run in cycles
    votes = cs.Votes.from_array(labels, observed=np.ones((20, 7), bool))
    searched = quiet(cs.Rankings(18), votes, method="majority", decode="map").posterior(votes).details
    solved = quiet(cs.Rankings(18, exact="milp"), votes, method="majority", decode="map").posterior(votes).details
    assert not searched["optimal"].all()
    assert solved["optimal"].all()
    assert (solved["gap"] == 0).all()


def test_unknown_solver_is_refused():
    with pytest.raises(cs.exceptions.InvalidLabelError, match="'dp' or 'milp'"):
        cs.Rankings(5, exact="cplex")


def test_item_sets_nobody_ranked_are_named():
    labels = np.array([[[0, 1, 2]] * 3] * 20)
    observed = np.ones((20, 3), bool)
    observed[[4, 9]] = False
    items = np.array([f"query {number}" for number in range(20)], dtype=object)
    votes = cs.Votes.from_array(labels, observed=observed, items=items)
    model = quiet(cs.Rankings(3), votes)
    note = next(item for item in model.diagnostics_ if item.code == "items-without-votes")
    assert "2 of 20 items" in note.message
    assert "(query 4, query 9)" in note.message
