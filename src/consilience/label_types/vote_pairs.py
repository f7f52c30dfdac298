"""What laws share whose labels are compared in pairs by one function: texts, and sets of boxes or spans."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, FloatArray, IntArray
from consilience.estimation.pair_table import PairTable, agreement_table
from consilience.estimation.protocol import Chunk, Law, Statistics, count_statistics

__all__ = ["SimilarityLaw", "above_chance", "vote_pairs"]

#: Pairs of votes on different items that show how close unrelated labels are: a mean similarity to about .01.
UNRELATED_PAIRS = 800
#: Largest chance similarity; beyond it labels hardly differ and agreement could not be told from chance.
MOST_UNRELATED = 0.95


@dataclass(frozen=True, kw_only=True, eq=False)
class SimilarityLaw(Law):
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
        pairs = np.random.default_rng(seed).integers(0, len(rows), (UNRELATED_PAIRS, 2))
        pairs = pairs[rows[pairs[:, 0]] != rows[pairs[:, 1]]]
        return self.adapt_to_costs(self.pair_costs(sample.labels[rows, columns], pairs))

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
        parts: dict[str, npt.NDArray[Any]] = count_statistics(chunk)
        parts["agreement_votes"] = chunk.observed.sum(axis=0).astype(np.float64)
        for name, weights in {"agreement": close, "agreement_square": close**2, "agreement_count": None}.items():
            sums = np.bincount(cell, weights, minlength=size**2).reshape(size, size).astype(np.float64)
            sums = sums + sums.T
            parts[name] = sums[:m, :m]
            if has_gold:
                parts[f"gold_{name}"] = sums[m, :m]
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
