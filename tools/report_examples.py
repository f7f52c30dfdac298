"""Small sets of votes, one per label type, simulated or shipped: for pictures and tests of the report."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import consilience as cs
from consilience.datasets import load_guests, load_products, load_sentences, load_tickets

__all__ = ["EXAMPLES", "ReportExample", "fitted"]

NAMES = ("ann", "bob", "cleo", "dan", "eve")
WEIGHTS = (4.0, 2.5, 1.5, 1.0, 0.3)


class ReportExample(NamedTuple):
    """Votes and, for some items, what is right."""

    space: cs.LabelSpace
    votes: cs.Votes
    gold: Any


def fitted(example: ReportExample) -> cs.LabelModel:
    """Return the model of an example."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        return cs.LabelModel(example.space).fit(example.votes)


def _shipped(load: Callable[[], Any]) -> Callable[[], ReportExample]:
    def make() -> ReportExample:
        example = load()
        return ReportExample(example.space, example.votes, example.truth)

    return make


def _simulated(space: cs.LabelSpace, n: int = 150, weights: Any = WEIGHTS, coverage: float = 0.9) -> Any:
    def make() -> ReportExample:
        rng = np.random.default_rng(7)
        truth = space.random(n, rng)
        votes = cs.simulate(space, truth, weights, rng, coverage=coverage, sources=NAMES[: len(weights)])
        return ReportExample(space, votes, space.as_labels(truth))

    return make


def _reviews() -> ReportExample:
    rng = np.random.default_rng(7)
    topics = ("food", "travel", "work")
    space = cs.Product(
        stars=cs.Scores(range=(1, 5)), topic=cs.Classes(topics), order=cs.Rankings(["cheap", "fast", "kind"])
    )
    n = 150
    stars = rng.uniform(1, 5, n)
    topic = rng.integers(3, size=n)
    right = rng.random((n, 4)) < [0.95, 0.8, 0.7, 0.5]
    order = cs.Rankings(3)
    centre = order.random(n, rng)
    orders = np.stack([order.sample_around(centre, weight, rng) for weight in (3.0, 2.0, 1.0, 0.3)], axis=1)
    records = space.records(
        stars=np.round(stars[:, None] + rng.normal(0, [0.3, 0.6, 0.9, 1.5], (n, 4)), 1),
        topic=[[topics[code] for code in row] for row in np.where(right, topic[:, None], rng.integers(3, size=(n, 4)))],
        order=orders,
    )
    votes = cs.Votes.from_array(records, sources=NAMES[:4])
    truth = [{"stars": float(s), "topic": topics[t]} for s, t in zip(stars, topic, strict=True)]
    return ReportExample(space, votes, truth)


def _scores() -> ReportExample:
    rng = np.random.default_rng(7)
    truth = rng.normal(60, 15, 200)
    said = truth[:, None] + rng.normal(size=(200, 6)) * [3, 5, 8, 12, 16, 25]
    return ReportExample(cs.Scores(mean=60, variance=225), cs.Votes.from_array(said, sources=[*NAMES, "frank"]), truth)


def _trees() -> ReportExample:
    rng = np.random.default_rng(7)
    space = cs.DependencyTrees()
    truth = space.random_trees(rng.integers(7, 15, size=120), rng)
    return ReportExample(space, cs.simulate(space, truth, WEIGHTS, rng, coverage=0.9, sources=NAMES), truth)


def _wrapped(angle: Any) -> Any:
    return (angle + np.pi) % (2 * np.pi) - np.pi


def _angles() -> ReportExample:
    rng = np.random.default_rng(7)
    space = cs.Manifold(
        exp=lambda points, tangents: _wrapped(points + tangents),
        log=lambda points, others: _wrapped(others - points),
        distance=lambda left, right: np.abs(_wrapped(left - right))[:, 0],
        random=lambda k, rng: rng.uniform(-np.pi, np.pi, (k, 1)),
        name="angles",
    )
    truth = rng.uniform(-np.pi, np.pi, (150, 1, 1))
    said = _wrapped(truth + rng.normal(size=(150, 4, 1)) * np.array([0.2, 0.4, 0.6, 0.9])[:, None])
    return ReportExample(space, cs.Votes.from_array(said, sources=NAMES[:4]), truth[:, 0])


#: One example per label type.
EXAMPLES: dict[str, Callable[[], ReportExample]] = {
    "classes": _shipped(load_tickets),
    "taxonomy": _shipped(load_products),
    "scores": _scores,
    "vectors": _simulated(cs.Vectors(2)),
    "long_vectors": _simulated(cs.Vectors(8)),
    "rankings": _shipped(load_guests),
    "preferences": _simulated(cs.Preferences(["tea", "milk", "juice", "water"])),
    "tags": _simulated(cs.Tags(["news", "sport", "music", "science", "weather", "law"])),
    "sequences": _simulated(cs.Sequences(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"], chain=True)),
    "boxes": _simulated(cs.Boxes(["car", "person"])),
    "spans": _simulated(cs.Spans()),
    "texts": _simulated(cs.Texts()),
    "trees": _trees,
    "hyperbolic": _simulated(cs.Hyperbolic(2)),
    "sphere": _simulated(cs.Sphere(2), weights=(8.0, 5.0, 3.0, 2.0, 1.0)),
    "matrices": _simulated(cs.SPD(2)),
    "rotations": _simulated(cs.SO3(), weights=(8.0, 5.0, 3.0, 2.0, 1.0)),
    "angles": _angles,
    "records": _reviews,
    "sentences": _shipped(load_sentences),
}
