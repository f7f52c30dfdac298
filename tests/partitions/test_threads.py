"""Votes in memory are gone over in several threads, where that is safe, and the numbers do not depend on it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import consilience as cs
from consilience import label_model
from consilience.estimation import passes
from consilience.partitions import threads

SPACES = {
    name: (space, type(space.law))
    for name, space in {
        "classes": cs.Classes(3),
        "scores": cs.Scores(mean=0.0, variance=1.0),
        "rankings": cs.Rankings(4),
        "trees": cs.DependencyTrees(),
        "points on a sphere": cs.Sphere(2),
    }.items()
}


def simulated(name):
    rng = np.random.default_rng(4)
    points = rng.normal(size=(240, 3))
    truth = {
        "classes": lambda: rng.integers(3, size=240),
        "scores": lambda: rng.normal(size=240),
        "rankings": lambda: np.argsort(rng.random((240, 4)), axis=1),
        "trees": lambda: [np.arange(4)] * 240,
        "points on a sphere": lambda: points / np.linalg.norm(points, axis=1, keepdims=True),
    }[name]()
    return cs.simulate(SPACES[name][0], truth, np.linspace(0.8, 2.0, 5), rng, coverage=0.8)


@pytest.fixture
def in_small_chunks(monkeypatch):
    """So that a few items are many chunks."""
    monkeypatch.setattr(label_model, "ROWS", 50)
    monkeypatch.setattr(passes, "SAMPLE_ROWS", 40)
    for _, family in SPACES.values():
        monkeypatch.setattr(family, "rows", 30)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def answers(space, votes):
    model = cs.LabelModel(space, random_state=0).fit(votes)
    return model.weight_, model.predict(votes), model.confidence(votes)


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.parametrize("name", SPACES)
def test_the_numbers_do_not_depend_on_the_number_of_threads(name, in_small_chunks, monkeypatch):
    space, family = SPACES[name]
    votes = simulated(name)
    seen = set()
    labelled = family.posterior

    def noted(self, *given):
        seen.add(threading.current_thread())
        return labelled(self, *given)

    monkeypatch.setattr(family, "posterior", noted)
    monkeypatch.setenv("CONSILIENCE_THREADS", "1")
    with threads.one_thread_each():  # linear algebra in several threads would round in another order
        one = answers(space, votes)
        assert seen == {threading.main_thread()}
        monkeypatch.setenv("CONSILIENCE_THREADS", "3")
        several = answers(space, votes)
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
