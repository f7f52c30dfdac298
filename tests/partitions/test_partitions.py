"""The same numbers, however the items are ordered or cut."""

import threading

import numpy as np
import pytest

import consilience as cs
from consilience import label_model
from consilience.estimation import passes
from consilience.exceptions import SourceMismatchError
from consilience.partitions import InMemoryPartitions, Moments, threads

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
        (label_model, "SAMPLE_ROWS", 50),
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
    monkeypatch.setattr(label_model, "SAMPLE_ROWS", 20)
    monkeypatch.setattr(type(cs.Metric(abs).law), "rows", 20)
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
