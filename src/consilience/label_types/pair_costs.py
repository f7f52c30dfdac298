"""What laws share that know votes by how far they are apart: chance costs, medoids, merged weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.estimation.pair_table import PairTable
from consilience.estimation.protocol import Chunk, Mixture

__all__ = [
    "CostFunction",
    "best_vote",
    "cost_table",
    "merged_weights",
    "mismatched_costs",
    "removed_share",
    "with_least_error",
]

#: Costs between votes on different items that are looked at. A chance cost is then known to about a hundredth.
MISMATCHES = 20_000

CostFunction = Callable[[Batch, Batch], FloatArray]


def mismatched_costs(
    measure: CostFunction, sample: Chunk, rng: np.random.Generator, budget: int = MISMATCHES
) -> tuple[FloatArray, bool]:
    """Return ``(m, m)`` mean costs between votes of two sources on different items, and whether all are above 0.

    They are close to a sum of one number per source, which many pairs show together; what a pair has beyond that
    counts as far as it exceeds the noise of its own mean.
    """
    observed = sample.observed
    m = observed.shape[1]
    left, right = np.triu_indices(m)
    each = max(budget // max(len(left), 1), 8)
    total, square, count = np.zeros((m, m)), np.zeros((m, m)), np.zeros((m, m))
    distinct = True
    voted = [np.flatnonzero(observed[:, source]) for source in range(m)]
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        if len(voted[a]) == 0 or len(voted[b]) == 0:
            continue
        rounds = -(-each // max(len(voted[a]), 1))
        one = np.concatenate([rng.permutation(voted[a]) for _ in range(rounds)])[:each]
        two = rng.choice(voted[b], len(one))
        one, two = one[one != two], two[one != two]
        if len(one) == 0:
            continue
        costs = measure(sample.labels[one, a], sample.labels[two, b])
        distinct = distinct and bool((costs > 1e-12 * costs.mean()).all())
        total[a, b], square[a, b], count[a, b] = costs.sum(), costs @ costs, len(costs)
    if not count.any():
        return np.full((m, m), 1.0), False
    total, square, count = (part + np.triu(part, 1).T for part in (total, square, count))
    mean = total / np.maximum(count, 1.0)
    usual = float(total.sum() / count.sum())
    level = np.full(m, usual / 2.0)
    for _ in range(50):  # alternating least squares of mean[a, b] = level[a] + level[b]
        gap = (count * (mean - level[:, None] - level[None, :])).sum(axis=1)
        level = level + 0.5 * gap / np.maximum(count.sum(axis=1), 1.0)
    additive = level[:, None] + level[None, :]
    beyond = np.where(count > 0, mean - additive, 0.0)
    noise = np.maximum(square / np.maximum(count, 1.0) - mean**2, 0.0) / np.maximum(count, 1.0)
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
    repeated = np.repeat(np.arange(len(left)), len(right))
    tiled = np.tile(np.arange(len(right)), len(left))
    return np.asarray(cost(left[repeated], right[tiled]).reshape(len(left), len(right)))


def best_vote(cost: CostFunction, votes: Batch, weights: FloatArray) -> Batch:
    """Return the vote of least weighted cost to all votes; the vote's own weight counts.

    Ties go to the vote of the larger weight, then to the first source.
    """
    n, m = weights.shape
    totals = np.zeros((n, m))
    for a in range(m):
        for b in range(a + 1, m):
            rows = np.flatnonzero((weights[:, a] > 0) & (weights[:, b] > 0))
            if len(rows):
                between = cost(votes[rows, a], votes[rows, b])
                totals[rows, a] += weights[rows, b] * between
                totals[rows, b] += weights[rows, a] * between
    totals[weights <= 0] = np.inf
    lowest = totals.min(axis=1, keepdims=True)
    tied = totals <= lowest + 1e-9 * np.maximum(np.abs(lowest), 1e-300)
    choice = np.where(tied, weights, -1.0).argmax(axis=1)
    return np.asarray(votes[np.arange(n), choice])


def with_least_error(table: PairTable) -> PairTable:
    """Return a table whose errors are at least half an item's worth: votes that never differ may differ on the next."""
    return replace(table, error=np.maximum(table.error, 0.5 / (table.both + 1.0)))


def removed_share(
    spent: FloatArray, weights: FloatArray, counted: FloatArray, cost: FloatArray, chance: float
) -> FloatArray:
    """Return the share of chance cost that labels are expected to remove, ``(n,)``: their confidence.

    A mean of the votes has the precision ``1 / cost`` of all together, a medoid at least that of the best one; the
    geometric mean of the two is taken. It is better or worse as the votes on this item lie closer to the label or
    further off than usual, one more vote of the usual cost counted in.

    Parameters
    ----------
    spent
        ``(n,)`` weighted cost between the label and the votes.
    weights, counted
        ``(n, m)`` weights of the votes, and how much of a vote each counts beside others that repeat it.
    cost
        ``(m,)`` expected costs of the sources.
    chance
        Mean cost between unrelated labels.
    """
    chance = max(chance, 1e-100)  # zero where all labels are one
    told = np.maximum(1.0 / np.maximum(cost, 1e-6 * chance) - 1.0 / chance, 0.0)
    told = np.where(weights > 0, told * counted, 0.0)
    together, best = told.sum(axis=1) + 1.0 / chance, told.max(axis=1, initial=0.0) + 1.0 / chance
    usual = weights @ cost
    one = usual / np.maximum((weights > 0).sum(axis=1), 1)
    ratio = (spent + one) / np.maximum(usual + one, 1e-300)
    return np.asarray(np.clip(1.0 - np.minimum(ratio, 3.0) / (chance * np.sqrt(together * best)), 0.0, 1.0))
