"""The contract of a label space, checked for every space that consilience exports."""

from dataclasses import dataclass

import numpy as np
import pytest
from spaces import EXPORTED, SPACES, Clock

import consilience as cs
from consilience.testing import SPACE_CHECKS, SpaceCheckError, check_space


@pytest.mark.parametrize("check", SPACE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SPACES)
def test_space_keeps_its_contract(name, check):
    check(SPACES[name], np.random.default_rng(0))


def test_no_exported_space_is_missing_here():
    assert {type(space) for space in SPACES.values() if type(space).__module__.startswith("consilience")} == EXPORTED


@dataclass(frozen=True)
class Crooked(cs.LabelSpace):
    """Breaks symmetry, the zero, and its own mean."""

    def distance(self, left, right):
        return np.where(left < right, 2.0, 1.0)

    def random(self, n, rng):
        return rng.integers(6, size=n)

    def weighted_mean(self, votes, weights):
        return np.full(len(votes), 5)


def test_check_space_names_every_broken_promise_and_passes_a_space_of_two_methods():
    with pytest.raises(SpaceCheckError) as caught:
        check_space(Crooked())
    for check in ("distance_is_symmetric", "distance_is_zero_on_itself", "mean_beats_every_vote"):
        assert check in str(caught.value)
    check_space(Clock())


@dataclass(frozen=True)
class Listed(Crooked):
    """Draws a list, which no check can compute with."""

    def random(self, n, rng):
        return rng.integers(6, size=n).tolist()


def test_check_space_says_that_random_has_to_return_an_array():
    with pytest.raises(SpaceCheckError, match=r"Listed\.random\(2, rng\) returned list, not an array of 2 labels"):
        check_space(Listed())


@dataclass(frozen=True)
class Circle(Clock):
    """Times instead of hours, of which no two are the same."""

    def random(self, n, rng):
        return rng.uniform(0.0, 24.0, size=n)


def test_check_space_says_what_to_do_where_the_default_law_is_too_coarse():
    with pytest.raises(SpaceCheckError, match=r"contract\.\nexpected_cost_matches_samples: .* or override law$"):
        check_space(Circle())


@pytest.mark.parametrize("name", [name for name in SPACES if name.startswith(("records", "boxes", "spans"))])
def test_labels_as_the_space_computes_with_them_are_stored_like_any_others(name):
    space = SPACES[name]
    batch = space.random(5, np.random.default_rng(0))
    back = space.as_batch(space.from_arrow(space.to_arrow(batch)))
    np.testing.assert_allclose(space.distance(batch, back), 0.0, atol=1e-9)


@pytest.mark.parametrize("name", SPACES)
def test_no_labels_at_all_are_a_batch_of_none(name):
    space = SPACES[name]
    none = space.as_batch(space.as_labels(space.random(2, np.random.default_rng(0)))[[]])
    assert space.cost(none, none).shape == (0,)
