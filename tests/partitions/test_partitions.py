"""The same numbers, however the items are ordered or cut."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.exceptions import SourceMismatchError
from consilience.partitions import InMemoryPartitions, Moments, threads
from consilience.partitions.base import Part

SPACES = [
    cs.Classes(3),
    cs.FiniteMetric(np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))),
    cs.Metric(lambda left, right: abs(left - right), candidates=[0.0, 1.0, 2.0, 5.0]),
]


def table(space, n=400, m=5, seed=0):
    rng = np.random.default_rng(seed)
    chance = float(space.law.expected_cost(np.zeros(1))[0])
    weights = space.law.weight_from_cost(chance * np.linspace(0.2, 0.8, m))
    return cs.simulate(space, space.random(n, rng), weights, rng, coverage=0.8)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
@settings(max_examples=15)
@given(rows=st.integers(1, 80), seed=st.integers(0, 100))
def test_cutting_and_shuffling_change_nothing(space, rows, seed):
    votes = table(space, n=60)
    order = np.random.default_rng(seed).permutation(60)
    whole = cs.LabelModel(space, method="triplets", dependencies="none").fit(InMemoryPartitions.of(votes))
    cut = cs.LabelModel(space, method="triplets", dependencies="none").fit(
        InMemoryPartitions.of(votes[order], rows=rows)
    )
    assert np.allclose(whole.weight_, cut.weight_, rtol=1e-7, atol=1e-9)
    assert np.array_equal(whole.source_model_.votes, cut.source_model_.votes)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_prediction_does_not_depend_on_the_cut(space):
    votes = table(space)
    model = cs.LabelModel(space).fit(votes)
    pieces = InMemoryPartitions.of(votes, rows=37)
    assert np.array_equal(model.predict(votes), model.predict(pieces))
    assert np.allclose(model.confidence(votes), model.confidence(pieces))


def test_reduce_adds_what_map_returns():
    votes = table(SPACES[0])
    parts = InMemoryPartitions.of(votes, rows=64)
    assert sum(parts.map(len)) == len(votes)
    assert parts.reduce(lambda part: part.votes.observed.sum(axis=0)).tolist() == votes.observed.sum(axis=0).tolist()


def test_samples_are_the_same_items_in_any_order():
    votes = table(SPACES[0], n=3000)
    order = np.random.default_rng(0).permutation(3000)
    one = InMemoryPartitions.of(votes).sample(500, seed=3)
    two = InMemoryPartitions.of(votes[order], rows=100).sample(500, seed=3)
    assert set(one.whole.votes.items.tolist()) == set(two.whole.votes.items.tolist())
    # binomial(3000, 1/6): five standard deviations are 102
    assert abs(one.n_items - 500) < 102
    assert set(InMemoryPartitions.of(votes).sample(500, seed=4).whole.votes.items) != set(one.whole.votes.items)


def test_gold_travels_with_its_items():
    votes = table(SPACES[0], n=10)
    gold = cs.Votes.from_matrix(np.arange(10)[:, None] % 3, sources=["gold"])
    part = Part(votes, gold)[np.array([7, 2])]
    assert part.gold is not None
    assert part.gold.labels[:, 0].tolist() == [1, 2]


def test_moments_of_different_sources_do_not_add():
    votes = table(SPACES[0])
    one, two = (
        Moments.of(votes, SPACES[0]),
        Moments.of(votes.select(["source_1", "source_0"]), SPACES[0]),
    )
    with pytest.raises(SourceMismatchError, match="same sources in the same order"):
        one + two


def test_moments_in_different_coordinates_do_not_add_but_those_of_one_family_do():
    space = cs.Metric(lambda left, right: abs(left - right), embed="mds")
    rng = np.random.default_rng(0)
    votes = cs.Votes.from_array(rng.normal(size=(80, 1)) + rng.normal(size=(80, 4)) * 0.3)
    first = Moments.of(votes[:40], space)
    with pytest.raises(cs.exceptions.UnsupportedError, match="different coordinates"):
        first + Moments.of(votes[40:], space)
    assert (first + Moments.of(votes[40:], space, law=first.law)).n_items == 80


STEPS = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (cs.Classes(2), cs.Classes(3)),
        (cs.FiniteMetric(STEPS), cs.FiniteMetric(2.0 * STEPS)),
        (cs.Rankings(3), cs.Rankings(4)),
        (cs.Classes(2), cs.Scores()),
    ],
)
def test_moments_of_different_label_types_do_not_add(one, other):
    rng = np.random.default_rng(0)
    moments = [Moments.of(cs.simulate(space, space.random(20, rng), np.ones(3), rng), space) for space in (one, other)]
    with pytest.raises(cs.exceptions.UnsupportedError, match="different label types"):
        moments[0] + moments[1]


def test_counts_are_exact_integers():
    votes = table(SPACES[0])
    moments = Moments.of(votes, SPACES[0])
    seen = votes.observed.astype(int)
    assert moments.both.dtype.kind == "i"
    assert np.array_equal(moments.both, seen.T @ seen)
    assert moments.sums["pairs"].dtype.kind == "i"


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_threads_give_the_numbers_of_one(space):
    votes = table(space)
    one = cs.LabelModel(space).fit(InMemoryPartitions.of(votes, rows=37))
    several = InMemoryPartitions.of(votes, rows=37, workers=3)
    model = cs.LabelModel(space).fit(several)
    assert np.array_equal(one.source_model_.votes, model.source_model_.votes)
    # chunks are added in their order, so that only linear algebra on more threads could round differently
    assert np.allclose(one.weight_, model.weight_, rtol=1e-12, atol=1e-12)
    assert np.array_equal(one.predict(votes), model.predict(several))
    assert np.allclose(one.confidence(votes), model.confidence(several), rtol=1e-12)


def test_threads_run_side_by_side_in_order_and_stop_at_an_error():
    parts = InMemoryPartitions.of(table(SPACES[0], n=60), rows=10, workers=2)
    meeting = threading.Barrier(2, timeout=20)

    def meet(part):
        meeting.wait()  # two chunks at a time, or this never returns
        return part.votes.items[0]

    assert list(parts.map(meet)) == [0, 10, 20, 30, 40, 50]
    seen = []

    def fail(part):
        seen.append(part)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(parts.map(fail))
    assert len(seen) <= 4
    assert next(parts.map(len)) == 10  # the others are let go


def test_inside_threads_linear_algebra_has_one_thread_and_afterwards_as_many_as_before():
    before = [get() for get, _ in threads._libraries()]
    with threads.one_thread_each(), threads.one_thread_each():
        assert {get() for get, _ in threads._libraries()} <= {1}
    assert [get() for get, _ in threads._libraries()] == before


@pytest.mark.parametrize("workers", [0, -2, 1.5, True])
def test_a_number_of_threads_that_is_none_is_refused(workers):
    with pytest.raises(cs.exceptions.UnsupportedError, match="not a number of threads"):
        InMemoryPartitions.of(table(SPACES[0], n=10), workers=workers)


def test_all_processors_can_be_asked_for():
    assert InMemoryPartitions.of(table(SPACES[0], n=10), workers=-1).workers >= 1
