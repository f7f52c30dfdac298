"""What laws share that know votes by how far they are apart: chance costs, medoids, merged weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.estimation.protocol import Chunk, Mixture

__all__ = [
    "CostFunction",
    "best_vote",
    "cost_table",
    "drawn_from",
    "merged_weights",
    "mismatched_costs",
]

#: Costs between votes on different items that are looked at. A chance cost is then known to about a hundredth.
MISMATCHES = 20_000

CostFunction = Callable[[Batch, Batch], FloatArray]


def mismatched_costs(measure: CostFunction, sample: Chunk, rng: np.random.Generator) -> tuple[FloatArray, bool]:
    """Return ``(m, m)`` mean costs between votes of two sources on different items, and whether all are above 0.

    They are close to a sum of one number per source, which many pairs show together; what a pair has beyond that
    counts as far as it exceeds the noise of its own mean.
    """
    m = sample.observed.shape[1]
    left, right = np.triu_indices(m)
    each = max(MISMATCHES // max(len(left), 1), 8)
    sums = np.zeros((3, m, m))  # of costs, of their squares, and how many
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


def merged_weights(mixture: Mixture) -> Mixture:
    """Return one set of parameters, each the mean over the hypotheses."""
    if len(mixture) == 1:
        return mixture
    total = sum(share for share, _ in mixture)
    first = mixture[0][1]
    fields = {name: sum(share / total * getattr(one, name) for share, one in mixture) for name in first.as_dict()}
    return ((1.0, replace(first, **fields)),)


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

    Ties go to the vote of the larger weight, then to the first source.
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
    return np.asarray(votes[np.arange(n), np.where(tied, weights, -1.0).argmax(axis=1)])
