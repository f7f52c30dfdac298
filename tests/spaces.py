"""One or more label spaces of every kind that consilience exports, and two of a user; all checks take theirs here."""

from dataclasses import dataclass
from itertools import product

import numpy as np

import consilience as cs


def word_gap(left: str, right: str) -> float:
    return float(sum(one != two for one, two in zip(left, right, strict=True)))


def gap(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.abs(left - right)


cs.label_types.register_distance("word-gap", word_gap)
cs.label_types.register_distance("gap", gap)


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

WORDS = ["".join(letters) for letters in product("abc", repeat=3)]

SPACES = {
    "two classes": cs.Classes(2),
    "named classes": cs.Classes(["cat", "dog", "bird", "fish"]),
    "numbered classes": cs.Classes([1, 2, 3]),
    "ordinal": cs.FiniteMetric(np.abs(np.subtract.outer(np.arange(5), np.arange(5)))),
    "taxonomy": cs.FiniteMetric([("thing", "animal"), ("thing", "plant"), ("animal", "cat"), ("animal", "dog")]),
    "words": cs.Metric(word_gap, candidates=WORDS),
    "numbers, scaled to coordinates": cs.Metric(gap, candidates=np.arange(6.0), embed="mds", vectorized=True),
    "rankings": cs.Rankings(4),
    "rankings of named items": cs.Rankings(["milk", "juice", "tea", "water"]),
    "rankings of any length": cs.Rankings(None),
    "preferences": cs.Preferences(),
    "scores": cs.Scores(),
    "scores by quantiles": cs.Scores(gauge="quantile"),
    "scores of known spread": cs.Scores(mean=10.0, variance=4.0),
    "scores in a range": cs.Scores(range=(1, 5), integer=True),
    "records of a score and a class": cs.Product(stars=cs.Scores(), topic=cs.Classes(["food", "travel", "work"])),
    "records of records": cs.Product(
        answer=cs.Product(order=cs.Rankings(4), level=cs.FiniteMetric([(0, 1), (1, 2), (2, 3)])),
        word=cs.Metric(word_gap, candidates=WORDS[::3]),
        weights={"answer": 2.0},
    ),
    "tags": cs.Tags(4),
    "one tag": cs.Tags(1),
    "named tags": cs.Tags(["news", "sport", "weather"]),
    "sequences of named tags": cs.Sequences(["noun", "verb", "other"]),
    "sequences of zeros and ones": cs.Sequences(),
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
    "sphere": cs.Sphere(2),
    "circle": cs.Sphere(1),
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

#: The label types that consilience exports.
EXPORTED = {
    value
    for value in (getattr(cs, name) for name in cs.__all__)
    if isinstance(value, type) and issubclass(value, cs.LabelSpace) and value is not cs.LabelSpace
}
#: The first of each of them.
ONE_OF_EACH: dict[str, cs.LabelSpace] = {}
for one in SPACES.values():
    if type(one) in EXPORTED:
        ONE_OF_EACH.setdefault(type(one).__name__, one)
