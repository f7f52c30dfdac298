"""Every label type: votes of sources of known quality, and the labels of an oracle that knows these qualities.

A quality q means that a vote costs 1 - q of what a random label costs. If labels can be listed, votes are drawn here
from a table of probabilities, and the oracle is Bayes' rule over hidden copies. Otherwise, the package draws them, and
the oracle is the best of several decoders that know the weights and which votes are copies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import permutations, product
from typing import Any

import numpy as np

import consilience as cs

from .finite_spaces import KnownWeights, random_graph
from .tables import FloatArray, IntArray, fit_quietly

GRID = np.concatenate([[0.0], np.geomspace(1e-4, 100.0, 120)])


@dataclass(frozen=True)
class Panel:
    """Sources of known quality: who copies the first of `group`, or which school each of them belongs to."""

    quality: FloatArray
    coverage: FloatArray
    group: tuple[int, ...] = ()
    copied: float = 0.0
    schools: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.quality[list(self.group)] = self.quality[list(self.group[:1])]  # a copy is as good as its original


#: Draws a school's own version of the truth.
ALONE = Panel(np.array([0.75]), np.ones(1))


@dataclass(frozen=True)
class Sample:
    """Votes as the kind draws them; `first` marks those that repeat no other vote on their item."""

    truth: Any
    said: Any
    observed: Any
    first: Any


@dataclass(frozen=True)
class Kind:
    """A label type: `items` is the most items a fit gets, `fresh` how many it is measured on.

    Kinds differ in `sources` (what votes of given quality are drawn with; copies have what their original has),
    `votes_of` one source around a truth, and the `oracle`, which knows the sources. What confidence `states` is that of
    the "label" or of central "interval"s, or nothing; a label that is wrong in every part costs `unit`.
    """

    space: cs.LabelSpace
    items: int = 3000
    fresh: int = 4000
    states: str | None = "label"
    unit: float | str | None = None

    @cached_property
    def chance(self) -> float:
        """Mean cost of a random label."""
        rng = np.random.default_rng(0)
        left, right = (self.labels(self.truths(self.fresh, rng)) for _ in range(2))
        return float(self.cost(left, right).mean())

    def sample(self, sources: Any, panel: Panel, n: int, rng: np.random.Generator) -> Sample:
        """Draw truth and votes."""
        truth = self.truths(n, rng)
        version = [self.version(truth, rng) for _ in range(max(panel.schools, default=-1) + 1)]
        of = [version[school] for school in panel.schools] or [truth] * len(panel.quality)
        said = np.stack([self.votes_of(sources, one, center, rng) for one, center in enumerate(of)], axis=1)
        observed = rng.random(said.shape[:2]) < panel.coverage
        first = observed.copy()
        taken = observed[:, panel.group[0]].copy() if panel.group else None
        for one in panel.group[1:]:
            same = rng.random(n) < panel.copied
            said[same, one] = said[same, panel.group[0]]
            first[:, one] &= ~(same & taken)
            taken |= same & observed[:, one]
        return Sample(truth, said, observed, first)

    def votes(self, sample: Sample) -> cs.Votes:
        return _votes(self.labels(sample.said), sample.observed)

    def loss(self, labels: Any, sample: Sample) -> FloatArray:
        """Return the cost of the label of every item that somebody voted on."""
        rows = np.flatnonzero(sample.observed.any(axis=1))
        return self.cost(np.asarray(labels)[rows], self.labels(sample.truth)[rows])

    def cost(self, labels: Any, truth: Any) -> FloatArray:
        return self.space.cost(self.space.as_batch(labels), self.space.as_batch(truth))

    def shares(self, labels: Any, sample: Sample) -> list[FloatArray]:
        """Return the share of the cost of chance that each label avoids, and the share of it that is right."""
        cost = self.loss(labels, sample)
        if self.unit != "pairs":
            return [1.0 - cost / whole for whole in (self.chance, self.unit) if whole is not None]
        size = np.array([len(one) for one in self.labels(sample.truth)[sample.observed.any(axis=1)]])
        return [1.0 - cost / (size * (size - 1) / parts) for parts in (4, 2)]

    def truths(self, n: int, rng: np.random.Generator) -> Any:
        return self.space.as_labels(self.space.random(n, rng))

    def labels(self, drawn: Any) -> Any:
        """Return what was drawn as the user writes it."""
        return drawn

    def version(self, truth: Any, rng: np.random.Generator) -> Any:
        """Return a school's own version of the truth."""
        return self.votes_of(self.sources(ALONE, rng), 0, truth, rng)

    def oracle_loss(self, sources: Any, panel: Panel, sample: Sample) -> float:
        return float(self.loss(self.oracle(sources, panel, sample), sample).mean())


@dataclass(frozen=True)
class Drawn(Kind):
    """Votes by `simulate`: `seen` is the share of items shown to a ranker, `alternatives` how many values are wrong."""

    seen: float = 1.0
    alternatives: int = 1

    @cached_property
    def curve(self) -> FloatArray:
        """Mean cost of a vote as a share of chance, for each weight of the grid."""
        rng = np.random.default_rng(1)
        truth = self.truths(400, rng)
        said = cs.simulate(self.space, truth, GRID[1::6], rng).labels
        cost = [self.cost(said[:, one], truth).mean() / self.chance for one in range(said.shape[1])]
        return np.minimum.accumulate(np.interp(GRID, GRID[1::6], cost))

    def sources(self, panel: Panel, rng: np.random.Generator) -> FloatArray:
        return np.exp(np.interp(panel.quality - 1.0, -self.curve[1:], np.log(GRID[1:])))

    def votes_of(self, sources: FloatArray, one: int, truth: Any, rng: np.random.Generator) -> Any:
        if self.seen < 1.0:  # everybody is shown some of the items that are ranked, and three at least
            order = rng.random(truth.shape)
            shown = (order < self.seen) | (order.argsort(axis=1).argsort(axis=1) < 3)
            place = np.where(shown, truth, truth.shape[1]).argsort(axis=1).argsort(axis=1)
            truth = np.where(shown, place, -1)
        return cs.simulate(self.space, truth, [sources[one]], rng).labels[:, 0].copy()

    def version(self, truth: Any, rng: np.random.Generator) -> Any:
        return cs.simulate(self.space, truth, self.sources(ALONE, rng), rng).labels[:, 0].copy()

    def oracle_loss(self, sources: FloatArray, panel: Panel, sample: Sample) -> float:
        rows = np.flatnonzero(sample.first.any(axis=1))
        said, seen, truth = sample.said[rows], sample.first[rows], self.labels(sample.truth)[rows]
        once = _votes(said, seen)
        batch = self.space.as_batch(said.reshape(-1, *said.shape[2:]))
        batch = batch.reshape(*said.shape[:2], *batch.shape[1:])
        found, wrong = [], np.clip(1.0 - panel.quality, 0.01, 0.99)
        for weight in (sources, 1.0 / wrong, np.maximum(np.log((1.0 - wrong) / wrong * self.alternatives), 0.01)):
            model = cs.LabelModel(self.space, method=KnownWeights(weight), dependencies="none", random_state=0)
            told = fit_quietly(model, once[:100])
            found += [told.predict(once), self.space.as_labels(self.space.weighted_mean(batch, weight * seen))]
        found.append(told.predict_baseline(once))
        return min(float(self.cost(labels, truth).mean()) for labels in found)


@dataclass(frozen=True)
class Listed(Kind):
    """Types whose labels can be listed: votes follow exp(-weight * cost); a label may have to be `among_votes`."""

    values: Any = None
    prior: tuple[float, ...] | None = None
    among_votes: bool = False

    @cached_property
    def matrix(self) -> FloatArray:
        size = len(self.values)
        left, right = np.divmod(np.arange(size * size), size)
        return np.asarray(self.cost(self.values[left], self.values[right])).reshape(size, size)

    @cached_property
    def curve(self) -> FloatArray:
        return np.array([(self.law(one) * self.matrix).sum() for one in GRID]) / self.matrix.mean(axis=1).sum()

    def law(self, weight: float) -> FloatArray:
        loud = np.exp(-weight * self.matrix)
        return loud / loud.sum(axis=1, keepdims=True)

    def truths(self, n: int, rng: np.random.Generator) -> IntArray:
        return rng.choice(len(self.values), size=n, p=self.prior)

    def labels(self, drawn: IntArray) -> Any:
        return self.values[np.minimum(drawn, len(self.values) - 1)]

    def sources(self, panel: Panel, rng: np.random.Generator) -> FloatArray:
        return np.stack([self.law(one) for one in np.interp(panel.quality - 1.0, -self.curve, GRID)])

    def version(self, truth: IntArray, rng: np.random.Generator) -> IntArray:
        return _drawn_from(Listed.sources(self, ALONE, rng)[0][truth], rng)

    def votes_of(self, sources: FloatArray, one: int, truth: IntArray, rng: np.random.Generator) -> IntArray:
        return _drawn_from(sources[one][truth], rng)

    def oracle(self, sources: FloatArray, panel: Panel, sample: Sample) -> Any:
        seen = sample.observed | (sources.shape[2] > len(self.values))  # where silence has a probability of its own
        belief = likelihood(sources, sample.said, seen, panel.group, panel.copied) * np.array(self.prior or 1.0)
        cost = belief @ self.matrix
        if self.among_votes:
            votes = (sample.said[:, :, None] == np.arange(len(self.values))) & sample.observed[:, :, None]
            cost = cost + 1e9 * ~votes.any(axis=1)
        return self.values[cost.argmin(axis=1)]


@dataclass(frozen=True)
class Uneven(Listed):
    """Classes of uneven balance; every source confuses them in a way of its own."""

    def sources(self, panel: Panel, rng: np.random.Generator) -> FloatArray:
        size = len(self.values)
        wrong = rng.dirichlet(np.ones(size), (len(panel.quality), size))
        share = panel.quality[:, None, None]
        return _as_original(share * np.eye(size) + (1.0 - share) * wrong, panel)


@dataclass(frozen=True)
class Functions(Uneven):
    """Labeling functions: each votes for one class, a few for two, and is silent elsewhere (the last column)."""

    def sample(self, sources: FloatArray, panel: Panel, n: int, rng: np.random.Generator) -> Sample:
        drawn = super().sample(sources, replace(panel, coverage=np.ones(len(panel.quality))), n, rng)
        return replace(drawn, observed=drawn.said < len(self.values))

    def sources(self, panel: Panel, rng: np.random.Generator) -> FloatArray:
        size, m = len(self.values), len(panel.quality)
        table = np.zeros((m, size, size + 1))
        for one in range(m):
            classes = rng.permutation(size)[: 1 + (rng.random() < 0.3)]
            classes[0] = one % size
            for label in set(classes.tolist()):
                table[one, :, label] = rng.uniform(0.15, 0.5) * (1.0 - panel.quality[one]) ** 3
                table[one, label, label] /= (1.0 - panel.quality[one]) ** 3
        table[:, :, size] = 1.0 - table.sum(axis=2)
        return _as_original(table, panel)


@dataclass(frozen=True)
class Normal(Kind):
    """Scores and vectors: normal truth and noise; with `lines`, every judge has a level and a unit of its own."""

    lines: bool = False

    def sources(self, panel: Panel, rng: np.random.Generator) -> FloatArray:
        slope, offset = np.ones_like(panel.quality), np.zeros_like(panel.quality)
        if self.lines:
            slope, offset = np.exp(rng.normal(0.0, 0.3, len(slope))), rng.normal(0.0, 0.5, len(slope))
        return _as_original(np.stack([offset, slope, np.sqrt(2.0 * (1.0 - panel.quality))], axis=1), panel)

    def version(self, truth: FloatArray, rng: np.random.Generator) -> FloatArray:
        return truth + rng.normal(0.0, np.sqrt(2.0 * (1.0 - ALONE.quality)), truth.shape)

    def votes_of(self, sources: FloatArray, one: int, truth: FloatArray, rng: np.random.Generator) -> FloatArray:
        offset, slope, noise = sources[one]
        return offset + slope * (truth + rng.normal(0.0, noise, truth.shape))

    def oracle(self, sources: FloatArray, panel: Panel, sample: Sample) -> FloatArray:
        return normal_mean(sources, sample.said, sample.first)

    def loss(self, labels: FloatArray, sample: Sample) -> FloatArray:
        if not self.lines:
            return super().loss(labels, sample)
        rows = np.flatnonzero(sample.observed.any(axis=1))  # levels and units are nobody's: up to the best line
        slope, offset = np.polyfit(labels[rows], sample.truth[rows], 1)
        return (offset + slope * labels[rows] - sample.truth[rows]) ** 2


@dataclass(frozen=True)
class Records(Kind):
    """A score and a class; drawn as two numbers."""

    def truths(self, n: int, rng: np.random.Generator) -> FloatArray:
        return np.stack([rng.normal(size=n), rng.integers(3, size=n)], axis=1)

    def labels(self, drawn: FloatArray) -> Any:
        made = np.empty(drawn.shape[:-1], dtype=object)
        for place in np.ndindex(made.shape):
            made[place] = {"stars": float(drawn[place][0]), "topic": int(drawn[place][1])}
        return made

    def sources(self, panel: Panel, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        return SCORES.sources(panel, rng), THREE.sources(panel, rng)

    def votes_of(self, sources: Any, one: int, truth: FloatArray, rng: np.random.Generator) -> FloatArray:
        stars = SCORES.votes_of(sources[0], one, truth[:, 0], rng)
        return np.stack([stars, THREE.votes_of(sources[1], one, truth[:, 1].astype(int), rng)], axis=1)

    def oracle(self, sources: Any, panel: Panel, sample: Sample) -> Any:
        stars = normal_mean(sources[0], sample.said[..., 0], sample.first)
        topic = likelihood(sources[1], sample.said[..., 1].astype(int), sample.first, (), 0.0).argmax(axis=1)
        return self.labels(np.stack([stars, topic], axis=1))


def likelihood(table: FloatArray, said: IntArray, observed: Any, group: tuple[int, ...], copied: float) -> FloatArray:
    """Return ``(n, k)`` probabilities of the votes given each label; the first of the group may be out of sight.

    Every other member of the group repeats the first one with probability `copied`, and else votes on its own.
    """
    own = [law[:, votes].T for law, votes in zip(table, said.T, strict=True)]  # (m, n, k)
    own = np.where(observed.T[:, :, None], own, 1.0)
    total = own[[one for one in range(len(table)) if one not in group]].prod(axis=0)
    if not group:
        return total
    copies = list(group[1:])

    def given(original: IntArray) -> FloatArray:
        each = copied * (said.T[copies] == original)[:, :, None] + (1.0 - copied) * own[copies]
        return np.where(observed.T[copies][:, :, None], each, 1.0).prod(axis=0)

    hidden, said_by_one = np.zeros_like(total), np.zeros_like(total)
    for place, one in enumerate(copies):  # the hidden vote is that of a copy, each counted once, or another one
        earlier = [observed[:, other] & (said[:, other] == said[:, one]) for other in copies[:place]]
        new = observed[:, one] & ~np.any(earlier, axis=0)
        chance = new[:, None] * table[group[0]][:, said[:, one]].T
        hidden += chance * given(said[:, one])
        said_by_one += chance
    hidden += (1.0 - said_by_one) * given(np.full(len(said), -1))
    return total * np.where(observed[:, group[0], None], own[group[0]] * given(said[:, group[0]]), hidden)


def normal_mean(sources: FloatArray, said: FloatArray, observed: Any) -> FloatArray:
    """Return the posterior mean of standard normal scores or vectors, given the line and noise of each source."""
    offset, slope, noise = sources.T.reshape(3, 1, -1, *[1] * (said.ndim - 2))
    weight = observed.reshape(*observed.shape, *[1] * (said.ndim - 2)) / noise**2
    return (weight * (said - offset) / slope).sum(axis=1) / (1.0 + weight.sum(axis=1))


def _votes(labels: Any, observed: Any) -> cs.Votes:
    return cs.Votes.from_array(labels, observed=observed, sources=[f"s{one}" for one in range(labels.shape[1])])


def _drawn_from(rows: FloatArray, rng: np.random.Generator) -> IntArray:
    drawn = (rng.random((len(rows), 1)) > np.cumsum(rows, axis=1)).sum(axis=1)
    return np.minimum(drawn, rows.shape[1] - 1)


def _as_original(parameters: FloatArray, panel: Panel) -> FloatArray:
    parameters[list(panel.group)] = parameters[list(panel.group[:1])]
    return parameters


def _wrapped(angle: FloatArray) -> FloatArray:
    return (angle + np.pi) % (2.0 * np.pi) - np.pi


STEPS = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
GRAPH = Listed(random_graph(np.random.default_rng(0), 12, 0.25), values=np.arange(12)).matrix
LINE = partial(cs.Metric, lambda left, right: np.abs(left - right), vectorized=True)
THREE = Listed(cs.Classes(3), values=np.arange(3))
SCORES = Normal(cs.Scores(), states="interval")
SLOW, SLOWEST = {"items": 400, "fresh": 600}, {"items": 300, "fresh": 400}
SEQUENCES = getattr(cs, "Sequences", partial(cs.Tags, sequence=True))  # the name differs between versions
TORUS = cs.Manifold(
    exp=lambda points, tangents: _wrapped(points + tangents),
    log=lambda points, others: _wrapped(others - points),
    distance=lambda left, right: np.linalg.norm(_wrapped(left - right), axis=1),
    random=lambda k, rng: rng.uniform(-np.pi, np.pi, (k, 2)),
    name="torus",
)

KINDS: dict[str, Kind] = {
    "2 classes": Listed(cs.Classes(2), values=np.arange(2)),
    "4 classes": Listed(cs.Classes(4), values=np.arange(4)),
    "uneven classes": Uneven(cs.Classes(4), values=np.arange(4), prior=(0.15, 0.5, 0.1, 0.25)),
    "labeling functions": Functions(cs.Classes(3), values=np.arange(3), prior=(0.2, 0.5, 0.3)),
    "tags": Listed(cs.Tags(4), values=np.array([*product((0, 1), repeat=4)]), unit=1.0),
    "sequences": Drawn(SEQUENCES(["a", "b", "c"]), fresh=1500, unit=1.0, alternatives=2),
    "steps": Listed(cs.FiniteMetric(STEPS), values=np.arange(5)),
    "graph": Listed(cs.FiniteMetric(GRAPH), values=np.arange(12)),
    "rankings": Listed(cs.Rankings(5), values=np.array([*permutations(range(5))]), unit="pairs"),
    "ragged rankings": Drawn(cs.Rankings(None), fresh=2000, unit="pairs"),
    "partial rankings": Drawn(cs.Rankings(6), fresh=2000, unit="pairs", seen=0.6),
    "scores": SCORES,
    "scores on own scales": Normal(cs.Scores(), lines=True, states=None),
    "vectors": Normal(cs.Vectors(3), unit=3.0),
    "hyperbolic": Drawn(cs.Hyperbolic(2)),
    "sphere": Drawn(cs.Sphere(2)),
    "rotations": Drawn(cs.SO3(), **SLOW),
    "covariances": Drawn(cs.SPD(2), **SLOWEST),
    "torus": Drawn(TORUS, **SLOW),
    "metric": Listed(LINE(candidates=np.arange(6.0)), values=np.arange(6.0)),
    "metric without candidates": Listed(LINE(), values=np.arange(6.0), among_votes=True),
    "trees": Drawn(cs.DependencyTrees(), **SLOW, unit=1.0, alternatives=6),
    "boxes": Drawn(cs.Boxes(), **SLOWEST, unit=1.0),
    "spans": Drawn(cs.Spans(), **SLOWEST, unit=1.0),
    "texts": Drawn(cs.Texts(), **SLOWEST, unit=1.0, alternatives=1000),
    "records": Records(cs.Product(stars=cs.Scores(), topic=cs.Classes(3)), fresh=2000),
    "preferences": Drawn(cs.Preferences(list("abcde")), items=150, fresh=300, unit=1.0),
}
