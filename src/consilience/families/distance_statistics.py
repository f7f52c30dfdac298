"""What `DistanceFamily` takes from votes: a few reference labels first, then sums of pair costs and coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.exceptions import DistanceError
from consilience.families.base import Chunk, Sums, count_sums
from consilience.families.pair_costs import gold_sums, pair_sums

if TYPE_CHECKING:
    from consilience.families.distance import DistanceFamily

__all__ = ["Background", "distance_statistics", "mismatched_costs", "take_background"]

#: Labels that stand for the whole space.
REFERENCES = 48
#: Pairs of votes on different items looked at per pair of sources.
MISMATCHES = 200
#: Votes looked through for labels that the references lack, and how many labels may recur.
LOOKED, MAX_RECURRING = 1000, 64
#: Items whose votes show in which steps costs come.
STEP_ITEMS = 60


@dataclass(frozen=True, eq=False)
class Background:
    """What votes on *different* items look like, from a sample.

    Parameters
    ----------
    references
        Votes on different items, one each.
    chance, chance_error
        ``(m, m)`` mean cost between votes of two sources on different items, and its standard error.
    smallest
        Smallest positive cost between votes on the same item; 0 where costs are continuous.
    recurring
        The different labels, where they are few and recur from item to item; else None.
    """

    references: Batch
    chance: FloatArray
    chance_error: FloatArray
    smallest: float
    recurring: Batch | None = None


def take_background(family: DistanceFamily, sample: Chunk, seed: int) -> Background | None:
    """Return the background of a sample of items, or None if it holds no vote."""
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(sample.observed)
    if len(rows) == 0:
        return None
    # One vote from each of many items: votes on one item are too alike to represent the space.
    order = rng.permutation(len(rows))
    _, first = np.unique(rows[order], return_index=True)
    chosen = order[rng.permutation(first)][:REFERENCES]
    references = sample.labels[rows[chosen], columns[chosen]]
    _check_distance(family, references[:12])
    chance, error = mismatched_costs(family.cost, sample, rng)
    votes = sample.labels[rows[order[:LOOKED]], columns[order[:LOOKED]]]
    return Background(references, chance, error, _smallest_step(family, sample), _recurring(family, references, votes))


def _recurring(family: DistanceFamily, references: Batch, votes: Batch) -> Batch | None:
    """Return the different labels among votes, or None where most references stand alone or labels are too many."""
    same = family.cost_table(references, references) <= 0
    if np.mean(same.sum(axis=1) > 1) < 0.5:
        return None
    different = references[same.argmax(axis=1) == np.arange(len(same))]
    missing = votes[(family.cost_table(votes, different) > 0).all(axis=1)]
    while len(missing) and len(different) <= MAX_RECURRING:
        different = np.concatenate([different, missing[:1]])
        missing = missing[family.cost_table(missing, missing[:1])[:, 0] > 0]
    return different if 1 < len(different) <= MAX_RECURRING else None


def distance_statistics(family: DistanceFamily, chunk: Chunk) -> Sums:
    """Return the sums of one pass."""
    labels, observed = chunk.labels, chunk.observed
    parts = count_sums(chunk)
    parts |= pair_sums(lambda rows, a, b: family.cost(labels[rows, a], labels[rows, b]), observed, chunk.groups)
    if family.has_coordinates:
        parts |= _coordinate_sums(family, chunk)
    known = chunk.gold_rows
    if len(known) and chunk.known is not None:
        costs = family.costs_to(chunk.known[known], labels[known], observed[known])
        parts |= gold_sums(costs, observed[known])
    return Sums(parts)


def _coordinate_sums(family: DistanceFamily, chunk: Chunk) -> dict[str, Any]:
    observed = chunk.observed
    rows, columns = np.nonzero(observed)
    if len(rows) == 0:
        return {}
    points = family.place(chunk.labels[rows, columns])
    placed = np.zeros((*observed.shape, points.shape[1]))
    placed[rows, columns] = points
    seen = observed.astype(np.float64)
    squares = pair_sums(lambda at, a, b: ((placed[at, a] - placed[at, b]) ** 2).sum(axis=1), observed, chunk.groups)
    return {
        "square_cost": squares["pair_cost"],
        "square_cost_square": squares["pair_cost_square"],
        "coordinate": np.einsum("nad,nb->abd", placed, seen),
        "coordinate_square": np.einsum("nad,nb->abd", placed**2, seen),
        "coordinate_product": np.einsum("nad,nbd->abd", placed, placed),
        "coordinate_product_square": np.einsum("nad,nbd->abd", placed**2, placed**2),
    }


def mismatched_costs(
    cost: Callable[[Batch, Batch], FloatArray], sample: Chunk, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return ``(m, m)`` mean costs between votes of two sources on different items, and their standard errors."""
    m = sample.observed.shape[1]
    chance, error = np.full((m, m), np.nan), np.full((m, m), np.inf)
    for a in range(m):
        for b in range(a, m):
            left = rng.permutation(np.flatnonzero(sample.observed[:, a]))
            right = rng.permutation(np.flatnonzero(sample.observed[:, b]))
            count = min(len(left), len(right), MISMATCHES)
            left, right = left[:count], right[:count]
            apart = left != right
            if apart.sum() < 2:
                continue
            costs = cost(sample.labels[left[apart], a], sample.labels[right[apart], b])
            chance[a, b] = chance[b, a] = costs.mean()
            error[a, b] = error[b, a] = costs.std() / np.sqrt(len(costs))
    return chance, error


def _check_distance(family: DistanceFamily, labels: Batch) -> None:
    table = family.cost_table(labels, labels)
    if not np.allclose(np.diag(table), 0.0):
        index = int(np.flatnonzero(~np.isclose(np.diag(table), 0.0))[0])
        raise DistanceError(
            f"The distance from {_shown(labels, index)} to itself is {table[index, index]:.6g}; it must be 0."
        )
    if not np.allclose(table, table.T):
        one, two = np.argwhere(~np.isclose(table, table.T))[0]
        raise DistanceError(
            f"The distance from {_shown(labels, one)} to {_shown(labels, two)} is {table[one, two]:.6g}, but "
            f"{table[two, one]:.6g} back. Make it symmetric, for instance by taking the mean of both."
        )


def _shown(labels: Batch, index: int) -> str:
    return repr(labels[index : index + 1].tolist()[0])


def _smallest_step(family: DistanceFamily, sample: Chunk) -> float:
    found: list[float] = []
    for row in range(min(len(sample), STEP_ITEMS)):
        present: BoolArray = sample.observed[row]
        mine = sample.labels[row, present]
        if len(mine) >= 2:
            table = family.cost_table(mine, mine)
            found += table[np.triu_indices(len(mine), 1)].tolist()
    costs = np.array(found)
    positive = costs[costs > 0]
    if len(positive) == 0 or len(np.unique(positive)) > 0.5 * len(positive):
        return 0.0
    return float(positive.min())
