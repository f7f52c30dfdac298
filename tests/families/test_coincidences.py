"""Sources that repeat votes on a continuous scale: counted by hand, and found where correlations say nothing yet."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs
from consilience.families.base import GROUPS, Chunk, Sums
from consilience.families.coincidences import coincidences, coinciding_pairs

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


class Table:
    """Passes over one table."""

    complete = True

    def __init__(self, labels, observed=None):
        seen = np.ones(labels.shape[:2], dtype=bool) if observed is None else observed
        self.chunk = Chunk(labels, seen, np.arange(len(labels)) % GROUPS)
        self.n_items = self.n_sampled = len(labels)

    def over_sample(self, function) -> Sums:
        return function(self.chunk)

    over_all = over_sample


def test_votes_that_are_the_same_on_one_item_and_cast_on_no_other_are_counted():
    labels = np.array(
        [
            [1.5, 1.5, 1.5],  # three pairs
            [2.5, 2.5, 7.0],  # one, but for 7.0 being cast elsewhere, too
            [7.0, 7.0, 3.5],
            [0.0, -0.0, 4.5],  # zeros of either sign are the same vote
            [5.5, 6.5, 5.5],  # the third source abstains
        ]
    )
    observed = np.ones((5, 3), dtype=bool)
    observed[4, 2] = False
    sums = coincidences(labels, observed)
    assert sums["same"].tolist() == [[0, 3, 1], [3, 0, 1], [1, 1, 0]]
    assert sums["met"].tolist() == [[5, 5, 4], [5, 5, 4], [4, 4, 4]]
    assert sums["squares"][0, 1] == pytest.approx(1.0)
    assert sums["squares"][0, 2] == pytest.approx(4.5**2 + 3.5**2 + 4.5**2)
    assert int(sums["cast"]) == 14
    assert int(sums["rare"]) == 11


def test_vectors_coincide_where_all_coordinates_do():
    labels = np.array([[[1.0, 2.0], [1.0, 2.0], [1.0, 3.0]]])
    assert coincidences(labels, np.ones((1, 3), dtype=bool))["same"].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_two_votes_that_are_the_same_are_no_copies_yet():
    votes = np.random.default_rng(1).normal(size=(6, 4))
    votes[:2, 3] = votes[:2, 1]
    assert not coinciding_pairs(Table(votes)).any()
    votes[2, 3] = votes[2, 1]
    assert np.argwhere(coinciding_pairs(Table(votes))).tolist() == [[1, 3], [3, 1]]


def test_among_many_pairs_as_few_coincidences_are_taken_for_chance():
    # Three of 20 votes the same have a probability of 1e-6 at the rate of 0.001: enough for ten pairs, not for 4,950.
    votes = np.random.default_rng(2).normal(size=(20, 100))
    votes[:3, 3] = votes[:3, 1]
    assert coinciding_pairs(Table(votes[:, :5]))[1, 3]
    assert not coinciding_pairs(Table(votes)).any()


def test_near_copies_are_found_on_a_handful_of_items():
    rng = np.random.default_rng(0)
    votes = rng.normal(size=(8, 5))
    votes[:5, 3] = votes[:5, 1]
    found = coinciding_pairs(Table(votes))
    assert found is not None
    assert np.argwhere(np.triu(found)).tolist() == [[1, 3]]


def test_a_coarse_scale_shows_no_copies():
    rng = np.random.default_rng(0)
    stars = np.clip(np.rint(rng.normal(3, 1, (300, 1)) + rng.normal(0, 0.5, (300, 6))), 1, 5)
    assert coinciding_pairs(Table(stars)) is None


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_precise_sources_that_round_are_not_taken_for_copies(digits):
    # 60 items; two sources of noise 0.02 meet far more often than the others, of noise 1, and still by themselves.
    rng = np.random.default_rng(digits)
    noise = np.array([0.02, 0.02, 1.0, 1.0, 1.0, 1.0])
    for _ in range(20):
        votes = np.round(50 * rng.normal(size=(60, 1)) + noise * rng.normal(size=(60, 6)), digits)
        found = coinciding_pairs(Table(votes))
        assert found is None or not found.any()


def simulated(kind: str, rng: np.random.Generator, n: int = 70, m: int = 12):
    """Return a space, votes of sources that are alike, four of them near copies, and the truth."""
    space = {"scores": cs.Scores(), "vectors": cs.Vectors(3), "sphere": cs.Sphere(2)}[kind]
    weight = space.law.weight_from_cost(np.full(m, 0.6 * float(space.law.expected_cost(np.zeros(1))[0])))
    truth = space.as_labels(space.random(n, rng))
    labels = cs.simulate(space, truth, weight, rng).labels.copy()
    for copy in (1, 2, 3):
        same = rng.random(n) < 0.9
        labels[same, copy] = labels[same, 0]
    return space, cs.Votes.from_array(labels, observed=rng.random((n, m)) < 0.6), truth


@pytest.mark.parametrize("kind", ["scores", "vectors", "sphere"])
def test_near_copies_do_not_take_over_where_items_are_few(kind):
    # 25 items for each pair. Without the coincidences copies seemed excellent: labels cost 30% to 170% more than
    # those of the plain vote on such tables.
    own, plain = [], []
    for seed in range(4):
        space, votes, truth = simulated(kind, np.random.default_rng(seed))
        model = cs.LabelModel(space, random_state=0).fit(votes)
        assert ("source_0", "source_1") in model.source_model_.dependencies
        assert "copied-source" in {item.code for item in model.diagnostics_}
        for labels, losses in ((model.predict(votes), own), (model.predict_baseline(votes), plain)):
            losses.append(float(space.cost(space.as_batch(labels), space.as_batch(truth)).mean()))
    assert np.mean(own) < np.mean(plain)


def test_dependencies_none_does_not_look_for_copies():
    space, votes, _ = simulated("scores", np.random.default_rng(0))
    assert cs.LabelModel(space, dependencies="none").fit(votes).source_model_.dependencies == ()
