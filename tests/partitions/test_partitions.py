"""The same numbers, however the items are ordered or cut."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

import consilience as cs
from consilience import label_model
from consilience.estimation import passes
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
@settings(max_examples=10)
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


def test_samples_are_the_same_items_in_any_order():
    votes = table(SPACES[0], n=3000)
    order = np.random.default_rng(0).permutation(3000)
    one = InMemoryPartitions.of(votes).sample(500, seed=3)
    two = InMemoryPartitions.of(votes[order], rows=100).sample(500, seed=3)
    assert set(one.whole.votes.items.tolist()) == set(two.whole.votes.items.tolist())
    # binomial(3000, 1/6): five standard deviations are 102
    assert abs(one.n_items - 500) < 102
    assert set(InMemoryPartitions.of(votes).sample(500, seed=4).whole.votes.items) != set(one.whole.votes.items)


def test_reduce_adds_what_map_returns_and_gold_travels_with_its_items():
    votes = table(SPACES[0])
    parts = InMemoryPartitions.of(votes, rows=64)
    assert sum(parts.map(len)) == len(votes)
    assert parts.reduce(lambda part: part.votes.observed.sum(axis=0)).tolist() == votes.observed.sum(axis=0).tolist()
    gold = cs.Votes.from_matrix(np.arange(400)[:, None] % 3, sources=["gold"])
    part = Part(votes, gold)[np.array([7, 2])]
    assert part.gold is not None
    assert part.gold.labels[:, 0].tolist() == [1, 2]


def test_counts_are_exact_integers_and_moments_add_only_if_they_measure_the_same():
    votes = table(SPACES[0])
    moments = Moments.of(votes, SPACES[0])
    seen = votes.observed.astype(int)
    assert moments.both.dtype.kind == moments.sums["pairs"].dtype.kind == "i"
    assert np.array_equal(moments.both, seen.T @ seen)
    with pytest.raises(SourceMismatchError, match="same sources in the same order"):
        moments + Moments.of(votes.select(["source_1", "source_0"]), SPACES[0])
    space = cs.Metric(lambda left, right: np.abs(left - right), embed="mds", vectorized=True)
    rng = np.random.default_rng(0)
    votes = cs.Votes.from_array(rng.normal(size=(80, 1)) + rng.normal(size=(80, 4)) * 0.3)
    first = Moments.of(votes[:40], space)
    with pytest.raises(cs.exceptions.UnsupportedError, match="different coordinates"):
        first + Moments.of(votes[40:], space)
    assert (first + Moments.of(votes[40:], space, law=first.law)).n_items == 80
    steps = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    for one, other in (
        (cs.Classes(2), cs.Classes(3)),
        (cs.FiniteMetric(steps), cs.FiniteMetric(2.0 * steps)),
        (cs.Rankings(3), cs.Rankings(4)),
        (cs.Classes(2), cs.Scores()),
    ):
        left, right = (
            Moments.of(cs.simulate(space, space.random(20, rng), np.ones(3), rng), space) for space in (one, other)
        )
        with pytest.raises(cs.exceptions.UnsupportedError, match="different label types"):
            left + right


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_prediction_depends_neither_on_the_cut_nor_on_the_number_of_threads(space):
    votes = table(space)
    pieces, several = (InMemoryPartitions.of(votes, rows=37, workers=workers) for workers in (1, 3))
    one, model = cs.LabelModel(space).fit(pieces), cs.LabelModel(space).fit(several)
    assert np.array_equal(one.source_model_.votes, model.source_model_.votes)
    # chunks are added in their order, so that only linear algebra on more threads could round differently
    assert np.allclose(one.weight_, model.weight_, rtol=1e-12, atol=1e-12)
    assert np.array_equal(one.predict(votes), model.predict(several))
    assert np.array_equal(one.predict(votes), one.predict(pieces))
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
    def counts():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        first, second = threads.one_thread_each(), threads.one_thread_each()
        first.__enter__()
        second.__enter__()
        assert set(counts()) == {1}
        first.__exit__(None, None, None)  # blocks of two threads end in any order
        assert set(counts()) == {1}
        second.__exit__(None, None, None)
        assert set(counts()) == {2}


IN_THREADS = {
    "classes": cs.Classes(3),
    "scores": cs.Scores(mean=0.0, variance=1.0),
    "rankings": cs.Rankings(4),
    "trees": cs.DependencyTrees(),
    "points on a sphere": cs.Sphere(2),
}


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize("name", IN_THREADS)
def test_the_numbers_do_not_depend_on_the_number_of_threads(name, monkeypatch):
    space, rng, seen = IN_THREADS[name], np.random.default_rng(4), set()
    truth = [np.arange(4)] * 240 if name == "trees" else space.random(240, rng)
    votes = cs.simulate(space, truth, np.linspace(0.8, 2.0, 5), rng, coverage=0.8)
    family, labelled = type(space.law), type(space.law).posterior

    def noted(self, *given):
        seen.add(threading.current_thread())
        return labelled(self, *given)

    def answers():
        model = cs.LabelModel(space, random_state=0).fit(votes)
        return model.weight_, model.predict(votes), model.confidence(votes)

    for target, name, value in (  # so that a few items are many chunks
        (label_model, "ROWS", 50),
        (passes, "SAMPLE_ROWS", 40),
        (family, "rows", 30),
        (family, "posterior", noted),
    ):
        monkeypatch.setattr(target, name, value)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("CONSILIENCE_THREADS", "1")
    with threads.one_thread_each():  # linear algebra in several threads would round in another order
        one = answers()
        assert seen == {threading.main_thread()}
        monkeypatch.setenv("CONSILIENCE_THREADS", "3")
        several = answers()
    assert len(seen) > 1
    for before, after in zip(one, several, strict=True):
        assert np.array_equal(before, after)


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_functions_of_the_user_are_called_in_one_thread(monkeypatch):
    monkeypatch.setattr(label_model, "ROWS", 20)
    monkeypatch.setenv("CONSILIENCE_THREADS", "3")
    callers = set()

    def distance(left, right):
        callers.add(threading.current_thread())
        return abs(left - right)

    votes = cs.Votes.from_matrix(np.random.default_rng(0).normal(size=(100, 4)))
    cs.LabelModel(cs.Metric(distance), random_state=0).fit(votes).predict(votes)
    assert callers == {threading.main_thread()}
    given = cs.Manifold(
        np.add,
        lambda x, y: y - x,
        lambda x, y: np.abs(x - y)[:, 0],
        lambda n, rng: rng.normal(size=(n, 1)),
    )
    assert not given.law.side_by_side
    assert cs.Sphere(2).law.side_by_side


def test_the_environment_says_how_many_threads_there_are(monkeypatch):
    monkeypatch.delenv("CONSILIENCE_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    processors = threads.count_threads(-1)
    assert threads.usual_threads() == processors
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads.usual_threads() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")  # one number for each level, which OpenMP allows
    assert threads.usual_threads() == processors
    monkeypatch.setenv("CONSILIENCE_THREADS", "7")
    assert threads.usual_threads() == 7
    assert list(threads.map_in_threads(lambda _: threads.usual_threads(), range(3), 2)) == [1, 1, 1]
    monkeypatch.setenv("CONSILIENCE_THREADS", "many")
    with pytest.raises(cs.exceptions.UnsupportedError, match="CONSILIENCE_THREADS='many' is not a number of threads"):
        threads.usual_threads()
    for workers in (0, -2, 1.5, True):
        with pytest.raises(cs.exceptions.UnsupportedError, match="not a number of threads"):
            InMemoryPartitions.of(table(SPACES[0], n=10), workers=workers)
    assert InMemoryPartitions.of(table(SPACES[0], n=10), workers=-1).workers >= 1  # all there are
