"""The contract of a label space, checked for every space that consilience exports."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

import consilience as cs
from consilience.testing import SPACE_CHECKS, SpaceCheckError, check_space


def word_gap(left: str, right: str) -> float:
    return float(sum(one != two for one, two in zip(left, right, strict=True)))


cs.label_types.register_distance("word-gap", word_gap)


@dataclass(frozen=True)
class Clock(cs.LabelSpace):
    """Hours of the day: a space that writes the two required methods only."""

    def distance(self, left, right):
        gap = np.abs(np.asarray(left) - np.asarray(right)) % 24
        return np.minimum(gap, 24 - gap).astype(float)

    def random(self, n, rng):
        return rng.integers(24, size=n)


@dataclass(frozen=True)
class Plane(cs.LabelSpace):
    """Points of the plane under squared distance, with an exact mean and coordinates."""

    power = 2.0

    def distance(self, left, right):
        return np.linalg.norm(left - right, axis=1)

    def random(self, n, rng):
        return rng.normal(size=(n, 2))

    def embed(self, batch):
        return batch

    def weighted_mean(self, votes, weights):
        return np.einsum("nmd,nm->nd", votes, weights) / weights.sum(axis=1, keepdims=True)


def wrap(angle):
    return (angle + np.pi) % (2 * np.pi) - np.pi


TORUS = cs.Manifold(
    exp=lambda points, tangents: wrap(points + tangents),
    log=lambda points, others: wrap(others - points),
    distance=lambda left, right: np.linalg.norm(wrap(left - right), axis=1),
    random=lambda k, rng: rng.uniform(-np.pi, np.pi, (k, 2)),
    name="torus",
)

WORDS = ["".join(letters) for letters in product("abc", repeat=4)]

SPACES = {
    "two classes": cs.Classes(2),
    "named classes": cs.Classes(["cat", "dog", "bird", "fish"]),
    "numbered classes": cs.Classes([1, 2, 3]),
    "ordinal": cs.FiniteMetric(np.abs(np.subtract.outer(np.arange(5), np.arange(5)))),
    "taxonomy": cs.FiniteMetric([("thing", "animal"), ("thing", "plant"), ("animal", "cat"), ("animal", "dog")]),
    "words": cs.Metric(word_gap, candidates=WORDS),
    "words, scaled to coordinates": cs.Metric(word_gap, candidates=WORDS, embed="mds"),
    "rankings": cs.Rankings(4),
    "rankings of named items": cs.Rankings(["milk", "juice", "tea", "water"]),
    "rankings of any length": cs.Rankings(None),
    "preferences": cs.Preferences(),
    "preferences of named items": cs.Preferences(["milk", "juice", "tea"]),
    "scores": cs.Scores(),
    "scores by quantiles": cs.Scores(gauge="quantile"),
    "scores of known spread": cs.Scores(mean=10.0, variance=4.0),
    "scores in a range": cs.Scores(range=(0, 100)),
    "records of a score and a class": cs.Product(stars=cs.Scores(), topic=cs.Classes(["food", "travel", "work"])),
    "records of records": cs.Product(
        answer=cs.Product(order=cs.Rankings(4), level=cs.FiniteMetric([(0, 1), (1, 2), (2, 3)])),
        word=cs.Metric(word_gap, candidates=WORDS[::9]),
        weights={"answer": 2.0},
    ),
    "one tag": cs.Tags(1),
    "tags": cs.Tags(4),
    "named tags": cs.Tags(["news", "sport", "weather"]),
    "sequences of zeros and ones": cs.Sequences(),
    "sequences of named tags": cs.Sequences(["noun", "verb", "other"]),
    "chains": cs.Sequences(3, chain=True),
    "BIO chains": cs.Sequences(["O", "B-PER", "I-PER"], chain=True),
    "trees": cs.DependencyTrees(),
    "trees with relations": cs.DependencyTrees(["nsubj", "obj", "root"], plausible_heads=4),
    "vectors": cs.Vectors(3),
    "vectors of one number": cs.Vectors(1),
    "vectors of known law": cs.Vectors(2, mean=[5.0, -1.0], covariance=[[4.0, 1.0], [1.0, 2.0]]),
    "hyperbolic plane": cs.Hyperbolic(2),
    "hyperbolic space, ball": cs.Hyperbolic(3, curvature=-0.25, coordinates="ball"),
    "hyperbolic space, riemannian noise": cs.Hyperbolic(3, noise="riemannian"),
    "circle": cs.Sphere(1),
    "sphere": cs.Sphere(2),
    "sphere, riemannian noise": cs.Sphere(2, noise="riemannian"),
    "covariance matrices": cs.SPD(2),
    "covariance matrices, log-Euclidean": cs.SPD(2, metric="log-euclidean"),
    "rotations": cs.SO3(),
    "torus": TORUS,
    "boxes": cs.Boxes(),
    "boxes with classes": cs.Boxes(["car", "person"], size=(640, 480)),
    "spans": cs.Spans(),
    "spans with classes": cs.Spans(["place", "name"], length=900, overlap="forbid"),
    "texts": cs.Texts(),
    "texts by GLEU": cs.Texts("gleu", write=False),
    "own space": Clock(),
    "own space with mean": Plane(),
}


@pytest.mark.parametrize("check", SPACE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SPACES)
def test_space_keeps_its_contract(name, check):
    check(SPACES[name], np.random.default_rng(0))


def test_no_exported_space_is_missing_here():
    exported = {
        value
        for value in vars(cs).values()
        if inspect.isclass(value) and issubclass(value, cs.LabelSpace) and value is not cs.LabelSpace
    }
    assert exported == {type(space) for space in SPACES.values() if type(space).__module__.startswith("consilience")}


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
