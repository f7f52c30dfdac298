"""What laws share that know votes by how far they are apart: pairs of votes, chance costs, medoids, merged weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.estimation.pair_table import PairTable, agreement_sums, agreement_table, row_sums
from consilience.estimation.protocol import Chunk, Law, Mixture, Statistics

#: Number of costs between votes on different items. They determine a chance cost to about a hundredth.
MISMATCHES = 20_000
#: Pairs of votes on different items. They determine the mean similarity of unrelated labels to about .01.
UNRELATED_PAIRS = 800
#: Largest chance similarity. Beyond it, labels hardly differ, and agreement cannot be distinguished from chance.
MOST_UNRELATED = 0.95
#: Votes before a source can be called constant.
MIN_VOTES = 10

CostFunction = Callable[[Batch, Batch], FloatArray]


class PairLaw(Law):
    """Labels that are compared in pairs. Hypotheses are merged, as a label is not an average over them."""

    def merge(self, mixture: Mixture) -> Mixture:
        """Return one set of parameters, each the mean over the hypotheses if they do not have it in common."""
        if len(mixture) == 1:
            return mixture
        total = sum(share for share, _ in mixture)
        first = mixture[0][1]
        own = [
            name
            for name, value in first.as_dict().items()
            if any(getattr(one, name) is not value for _, one in mixture)
        ]
        fields = {name: sum(share / total * getattr(one, name) for share, one in mixture) for name in own}
        return ((1.0, replace(first, **fields)),)


# --- labels of a known similarity: texts, and sets of boxes or spans ------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class SimilarityLaw(PairLaw):
    """Labels that agree by their similarity, one minus the cost over a scale; unrelated ones agree by 0."""

    unrelated: float = 0.0  # mean similarity of labels on different items, taken from the votes
    scale: float = 1.0  # cost that counts as 1
    adapts_to_votes: ClassVar[bool] = True
    rows: ClassVar[int] = 1 << 12

    @abstractmethod
    def pair_costs(self, labels: Batch, pairs: IntArray) -> FloatArray:
        """Return the costs between pairs ``(p, 2)`` of labels, given by their positions."""

    def cost(self, left: Batch, right: Batch) -> FloatArray:
        """Return the costs between two batches, pair by pair."""
        return self.pair_costs(np.concatenate([left, right], dtype=object), np.arange(2 * len(left)).reshape(2, -1).T)

    def content(self, label: Any) -> Any:
        """Return what a label is sorted by."""
        return label

    def similarity(self, cost: FloatArray) -> FloatArray:
        """Return one minus the cost over the scale, at least 0."""
        return 1.0 - np.minimum(cost / self.scale, 1.0)

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> Self:
        """Look at how far votes on different items are apart."""
        if sample is None:
            return self
        rows, columns = np.nonzero(sample.observed)
        if len(np.unique(rows)) < 2:
            return self
        labels = sample.labels[rows, columns]
        # The draw depends on the votes only, not on the order or the names of items and sources.
        order = np.array(sorted(range(len(labels)), key=[*map(self.content, labels.tolist())].__getitem__))
        pairs = order[np.random.default_rng(seed).integers(0, len(rows), (UNRELATED_PAIRS, 2))]
        pairs = pairs[rows[pairs[:, 0]] != rows[pairs[:, 1]]]
        return self.adapt_to_costs(self.pair_costs(labels, pairs))

    def adapt_to_costs(self, apart: FloatArray) -> Self:
        """Return the law fitted to the costs between votes on different items."""
        return replace(self, unrelated=min(float(self.similarity(apart).mean()), MOST_UNRELATED))

    def statistics(self, chunk: Chunk) -> Statistics:
        labels, observed = chunk.labels, chunk.observed
        m, has_gold = observed.shape[1], len(chunk.gold_rows) > 0
        if chunk.known is not None and chunk.is_known is not None and has_gold:  # known labels are one more source
            labels = np.column_stack([labels, chunk.known])
            observed = np.column_stack([observed, chunk.is_known])
        rows, sources = np.nonzero(observed)
        pairs = vote_pairs(np.searchsorted(rows, np.arange(len(observed) + 1)))
        close = self.similarity(self.pair_costs(labels[rows, sources], pairs))
        size = observed.shape[1]
        cell = sources[pairs[:, 0]] * size + sources[pairs[:, 1]]
        parts: dict[str, npt.NDArray[Any]] = chunk.counts()
        parts["agreement_votes"] = chunk.observed.sum(axis=0).astype(np.float64)
        for name, weights in {"agreement": close, "agreement_square": close**2, "agreement_count": None}.items():
            sums = np.bincount(cell, weights, minlength=size**2).reshape(size, size).astype(np.float64)
            sums = sums + sums.T
            parts[name] = sums[:m, :m]
            if has_gold:
                parts[f"gold_{name}"] = sums[m, :m]
        between = (sources[pairs] < m).all(axis=1)
        ends = (rows * size + sources)[pairs[between]].T.ravel()
        similar, others = (
            np.bincount(ends, weights, minlength=observed.size).reshape(observed.shape)[:, :m].astype(np.float64)
            for weights in (np.tile(close[between], 2), None)
        )
        parts["agreement_rows"] = row_sums(similar, others)
        return Statistics(parts)

    def pair_table(self, statistics: Statistics) -> PairTable:
        table = agreement_table(statistics, above_chance(self.unrelated))
        return replace(table, cost=self.chance_cost * (1.0 - table.value))

    @property
    def chance_cost(self) -> float:
        return self.scale * (1.0 - self.unrelated)


def above_chance(chance: float) -> Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Return the function that turns a mean and its error into shares of what is beyond chance."""
    return lambda mean, error: ((mean - chance) / (1.0 - chance), error / (1.0 - chance))


def vote_pairs(item_start: IntArray) -> IntArray:
    """Return all pairs of votes within items ``(p, 2)``, item by item, from the ``(n + 1,)`` first vote of each item.

    Examples
    --------
    >>> vote_pairs(np.array([0, 1, 4])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    votes = np.arange(item_start[-1])
    behind = np.repeat(item_start[1:], np.diff(item_start)) - votes - 1  # later votes on the same item
    left = np.repeat(votes, behind)
    first = np.repeat(np.cumsum(behind) - behind, behind)
    return np.stack([left, left + 1 + np.arange(len(left)) - first], axis=1)


# --- labels whose scatter only the votes show: points of manifolds, and anything with a distance --------------


@dataclass(frozen=True, kw_only=True, eq=False)
class MismatchLaw(PairLaw):
    """Labels that agree as far as votes on one item are closer together than votes on different items."""

    mismatch: FloatArray | None = None  # (m, m) distance between votes of two sources on different items
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "isotropic", "triplets", "labelled")
    adapts_to_votes: ClassVar[bool] = True

    @abstractmethod
    def measure(self, left: Batch, right: Batch) -> FloatArray:
        """Return what agreement is measured by: how far labels are apart, pair by pair."""

    def pair_sums(
        self, chunk: Chunk, between: Callable[[IntArray, int, int], FloatArray]
    ) -> dict[str, npt.NDArray[Any]]:
        """Return counts, and sums of ``between(rows, a, b)`` of two sources and of the measure to known labels."""
        labels, known = chunk.labels, chunk.known
        to_gold = None if known is None else lambda rows, a: self.measure(labels[rows, a], known[rows])
        return chunk.counts() | agreement_sums(between, chunk.observed, to_gold, chunk.gold_rows)

    def constant_sources(self, statistics: Statistics) -> BoolArray:
        if self.mismatch is None:
            return super().constant_sources(statistics)
        own = np.diag(self.mismatch)
        return (np.diag(statistics["both"]) >= MIN_VOTES) & (own <= 1e-9 * max(float(own.max()), 1e-300))

    def finished(self, table: PairTable, statistics: Statistics) -> PairTable:
        """Return the table with costs and a diagonal, and with errors of at least half an item's worth.

        Votes that never differ may differ on the next item.
        """
        diagonal = np.eye(len(table.value), dtype=bool)
        cost = statistics["pair_cost"] / np.maximum(statistics["agreement_count"], 1.0)
        return replace(
            table,
            value=np.where(diagonal, 1.0, table.value),
            error=np.maximum(table.error, 0.5 / (table.both + 1.0)),
            cost=np.where(diagonal, 0.0, cost),
        )


def mismatched_costs(measure: CostFunction, sample: Chunk, rng: np.random.Generator) -> tuple[FloatArray, bool]:
    """Return ``(m, m)`` mean costs between votes of two sources on different items, and whether all are above 0.

    They are close to a sum of one number per source, which many pairs show together; what a pair has beyond that
    counts as far as it exceeds the noise of its own mean.
    """
    m = sample.observed.shape[1]
    left, right = sample.sources[np.array(np.triu_indices(m))]
    each = max(MISMATCHES // max(len(left), 1), 8)
    sums = np.zeros((3, m, m))  # sum of costs, sum of their squares, and count
    distinct = True
    voted = [np.flatnonzero(column) for column in sample.observed.T]
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        if len(voted[a]) and len(voted[b]):
            rounds = -(-each // len(voted[a]))
            one = np.concatenate([rng.permutation(voted[a]) for _ in range(rounds)])[:each]
            two = rng.choice(voted[b], len(one))
            one, two = one[one != two], two[one != two]
            if len(one):
                costs = measure(sample.labels[one, a], sample.labels[two, b])
                distinct = distinct and bool((costs > 1e-12 * costs.mean()).all())
                sums[:, a, b] = sums[:, b, a] = costs.sum(), costs @ costs, len(costs)
    total, square, count = sums
    if not count.any():
        return np.ones((m, m)), False
    some = np.maximum(count, 1.0)
    mean = total / some
    level = np.full(m, total.sum() / count.sum() / 2.0)
    for _ in range(50):  # alternating least squares of mean[a, b] = level[a] + level[b]
        gap = (count * (mean - np.add.outer(level, level))).sum(axis=1)
        level = level + 0.5 * gap / np.maximum(count.sum(axis=1), 1.0)
    additive = np.add.outer(level, level)
    beyond = np.where(count > 0, mean - additive, 0.0)
    noise = np.maximum(square / some - mean**2, 0.0) / some
    kept = max(0.0, 1.0 - float(noise.sum()) / max(float((beyond**2).sum()), 1e-300))
    return np.maximum(additive + kept * beyond, 0.0), distinct


def cost_table(cost: CostFunction, left: Batch, right: Batch) -> FloatArray:
    """Return ``(len(left), len(right))`` costs."""
    rows, columns = np.indices((len(left), len(right))).reshape(2, -1)
    return np.asarray(cost(left[rows], right[columns]).reshape(len(left), len(right)))


def drawn_from(cost: CostFunction, pool: Batch, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
    """Return one label of the pool per center, with probability proportional to ``exp(-weight * cost)``."""
    costs = cost_table(cost, centers, pool)
    return np.asarray(pool[np.argmax(rng.gumbel(size=costs.shape) - weight * costs, axis=1)])


def best_vote(cost: CostFunction, votes: Batch, weights: FloatArray) -> Batch:
    """Return the vote of least weighted cost to all votes; the vote's own weight counts.

    Ties go to the vote of the larger weight, then to the smaller number, or the label whose text comes first.
    """
    n, m = weights.shape
    totals = np.where(weights > 0, 0.0, np.inf)
    for a in range(m):
        for b in range(a + 1, m):
            rows = np.flatnonzero((weights[:, a] > 0) & (weights[:, b] > 0))
            if len(rows):
                between = cost(votes[rows, a], votes[rows, b])
                totals[rows, a] += weights[rows, b] * between
                totals[rows, b] += weights[rows, a] * between
    lowest = totals.min(axis=1, keepdims=True)
    tied = totals <= lowest + 1e-9 * np.maximum(np.abs(lowest), 1e-300)
    heard = np.where(tied, weights, -1.0)
    tied &= heard >= heard.max(axis=1, keepdims=True) * (1.0 - 1e-9)
    if votes.ndim == 2 and votes.dtype.kind in "biuf":
        chosen = np.where(tied, votes, np.inf).argmin(axis=1)
    else:
        chosen = tied.argmax(axis=1)
        for row in np.flatnonzero(tied.sum(axis=1) > 1).tolist():
            chosen[row] = min(np.flatnonzero(tied[row]).tolist(), key=lambda source: _rank(votes[row, source]))
    return np.asarray(votes[np.arange(n), chosen])


def _rank(label: Any) -> tuple[bool, Any]:
    """Return what puts labels in an order that is the same wherever they stand."""
    is_number = isinstance(label, (int, float, np.number))
    return not is_number, label if is_number else repr(label)
