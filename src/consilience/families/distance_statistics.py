"""The sums behind `DistanceFamily`: pair costs, products around references, coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.families.base import Chunk, Sums, count_sums
from consilience.families.pair_costs import gold_sums, pair_sums

if TYPE_CHECKING:
    from consilience.families.distance import DistanceFamily

__all__ = ["distance_statistics"]


def distance_statistics(family: DistanceFamily, chunk: Chunk) -> Sums:
    """Return the sums of one pass.

    Products around the references cost many evaluations, so they are taken on the first
    `reference_groups` groups of items only; pair costs are taken on all.
    """
    parts = count_sums(chunk)
    if family.has_coordinates:
        parts |= _with_coordinates(family, chunk)
    elif family.references is not None:
        near = chunk.groups < family.reference_groups
        parts |= _with_references(family, _part(chunk, near), family.references)
        far = _pair_costs(family, _part(chunk, ~near))
        for name in ("pair_count", "pair_cost", "pair_cost_square"):
            parts[name] = parts[name] + far[name]
    else:
        parts |= _pair_costs(family, chunk)
    known = chunk.gold_rows
    if len(known) and chunk.known is not None:
        observed = chunk.observed[known]
        parts |= gold_sums(family.costs_to(chunk.known[known], chunk.labels[known], observed), observed)
    return Sums(parts)


def _pair_costs(family: DistanceFamily, chunk: Chunk) -> dict[str, Any]:
    labels = chunk.labels
    nowhere = np.zeros(chunk.observed.shape)
    sums = pair_sums(
        lambda rows, a, b: family.cost(labels[rows, a], labels[rows, b]),
        nowhere,
        0.0,
        chunk.observed,
        chunk.groups,
    )
    return {name: part for name, part in sums.items() if "product" not in name}


def _with_references(family: DistanceFamily, chunk: Chunk, references: Batch) -> dict[str, Any]:
    labels, observed = chunk.labels, chunk.observed
    rows, columns = np.nonzero(observed)
    reach = np.zeros((*observed.shape, len(references)))
    if len(rows):
        reach[rows, columns] = family.cost_table(labels[rows, columns], references)
    parts = pair_sums(
        lambda at, a, b: family.cost(labels[at, a], labels[at, b]),
        reach.mean(axis=2),
        float(family.reference_costs.mean()),
        observed,
        chunk.groups,
    )
    parts["product_count"] = parts["pair_count"].copy()
    parts["reach"] = reach.sum(axis=0)
    parts["reach_square"] = (reach.mean(axis=2) ** 2).sum(axis=0)
    parts["reach_count"] = observed.sum(axis=0).astype(np.int64)
    return parts


def _with_coordinates(family: DistanceFamily, chunk: Chunk) -> dict[str, Any]:
    observed = chunk.observed
    placed = _placed(family, chunk.labels, observed)
    seen = observed.astype(np.float64)
    parts = _pair_costs(family, chunk)
    products = pair_sums(
        lambda at, a, b: ((placed[at, a] - placed[at, b]) ** 2).sum(axis=1),
        (placed**2).sum(axis=2),
        0.0,
        observed,
        chunk.groups,
    )
    parts["product_count"] = products["pair_count"]
    parts["pair_product"] = products["pair_product"]
    parts["pair_product_square"] = products["pair_product_square"]
    parts["coordinate"] = np.einsum("nad,nb->abd", placed, seen)
    parts["coordinate_square"] = np.einsum("nad,nb->abd", placed**2, seen)
    parts["coordinate_product"] = np.einsum("nad,nbd->abd", placed, placed)
    parts["coordinate_product_square"] = np.einsum("nad,nbd->abd", placed**2, placed**2)
    return parts


def _placed(family: DistanceFamily, labels: Batch, observed: BoolArray) -> FloatArray:
    rows, columns = np.nonzero(observed)
    points = family.place(labels[rows, columns]) if len(rows) else family.place(labels[:1, 0])
    placed = np.zeros((*observed.shape, points.shape[1]))
    if len(rows):
        placed[rows, columns] = points
    return placed


def _part(chunk: Chunk, rows: BoolArray) -> Chunk:
    return Chunk(chunk.labels[rows], chunk.observed[rows], chunk.groups[rows])
