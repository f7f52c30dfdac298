"""Posterior over rankings: pair probabilities, exact up to twelve items and by Gibbs sampling above, and decoding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import Posterior
from consilience.solvers.kemeny import minimise_disagreement

__all__ = ["EXACT_ITEMS", "Tally", "decode_rankings", "pair_probabilities", "tally"]

#: Up to this many items the posterior is computed exactly, by the recursion over subsets.
EXACT_ITEMS = 12
#: Sweeps of the sampler in a round of learning, and for a prediction; the first quarter is left out.
LEARNING_SWEEPS, PREDICTION_SWEEPS = 60, 240


@dataclass(frozen=True)
class Tally:
    """Pair margins ``(n, P)`` of rows of up to `width` items, of which the first ``sizes[t]`` exist."""

    margins: FloatArray
    width: int
    sizes: IntArray

    @cached_property
    def keys(self) -> IntArray:
        """Numbers that follow from the votes of a row, not from its place in the table."""
        mixed = np.round(np.abs(self.margins) * 1e6).astype(np.int64) * np.arange(1, self.margins.shape[1] + 1)
        keys: IntArray = mixed.sum(axis=1)
        return keys


def tally(votes: npt.NDArray[np.int16], sizes: IntArray, weights: FloatArray) -> Tally:
    """Return by how much weight the sources favour one item over another.

    Parameters
    ----------
    votes
        ``(n, m, r)``; negative is unseen.
    weights
        ``(n, m)``.
    """
    from consilience.kernels.mallows import margins_of

    return Tally(margins_of(votes, weights), votes.shape[2], sizes)


def pair_probabilities(counted: Tally, seed: int = 0, sweeps: int = LEARNING_SWEEPS) -> tuple[FloatArray, float]:
    """Return P(i before j) ``(n, P)`` and the log likelihood up to a constant (0 where it was sampled)."""
    from consilience.kernels.ranking_posterior import pair_posterior, pair_posterior_gibbs

    small = counted.sizes <= EXACT_ITEMS
    if small.all():
        probability, log_normaliser = pair_posterior(counted.margins, counted.width, counted.sizes)
        return probability, float(log_normaliser.sum())
    probability = np.empty_like(counted.margins)
    rows = np.flatnonzero(small)
    if len(rows):
        probability[rows] = pair_posterior(counted.margins[rows], counted.width, counted.sizes[rows])[0]
    rows = np.flatnonzero(~small)
    order = _borda_order(counted.margins[rows], counted.width, counted.sizes[rows])
    probability[rows] = pair_posterior_gibbs(
        counted.margins[rows],
        counted.width,
        counted.sizes[rows],
        order,
        sweeps,
        sweeps // 4,
        seed,
        counted.keys[rows],
    )
    return probability, 0.0


def decode_rankings(
    counted: Tally,
    votes: npt.NDArray[np.int16],
    decode: str,
    *,
    exact: Literal["dp", "milp"] = "dp",
    time_limit: float | None = None,
) -> Posterior:
    """Return the ranking of each row: Kemeny on pair probabilities ("bayes", the default) or on the margins ("map")."""
    probability, _ = pair_probabilities(counted, sweeps=PREDICTION_SWEEPS)
    margins = counted.margins if decode == "map" else 2.0 * probability - 1.0
    favour = _standing(probability, counted.width, counted.sizes)
    found = minimise_disagreement(
        margins, counted.width, counted.sizes, tie_break=favour, keys=counted.keys, exact=exact, time_limit=time_limit
    )
    ranked = np.asarray((votes >= 0).any(axis=1))
    positions = _visible_positions(found.positions, ranked, counted.sizes)
    right = _share_right(positions, probability)
    details = {
        "pair_probability": probability,
        "expected_error": np.where(ranked.any(axis=1), 1.0 - right, np.nan),
        "optimal": found.optimal,
        "gap": np.where(found.optimal, 0.0, found.cost - found.lower_bound),
    }
    return Posterior(positions, right, None, details)


def _borda_order(margins: FloatArray, width: int, sizes: IntArray) -> IntArray:
    score = _sum_by_item(margins, width)
    score[np.arange(width) >= sizes[:, None]] = -np.inf
    order: IntArray = np.argsort(-score, axis=1, kind="stable").astype(np.int64)
    return order


def _standing(probability: FloatArray, width: int, sizes: IntArray) -> FloatArray:
    """Return the expected number of items that each item precedes, rounded so that noise breaks no tie."""
    standing = np.round(_sum_by_item(probability - 0.5, width), 9)
    standing[np.arange(width) >= sizes[:, None]] = 0.0
    return standing


def _sum_by_item(pairs: FloatArray, width: int) -> FloatArray:
    left, right = np.triu_indices(width, 1)
    incidence = np.zeros((len(left), width))
    rows = np.arange(len(left))
    incidence[rows, left], incidence[rows, right] = 1.0, -1.0
    total: FloatArray = pairs @ incidence
    return total


def _visible_positions(positions: IntArray, ranked: BoolArray, sizes: IntArray) -> npt.NDArray[np.int16]:
    """Return dense positions; -1 for items no source saw, -2 for items that do not exist in the row."""
    n, width = positions.shape
    exists = np.arange(width) < sizes[:, None]
    kept = exists & ranked
    place = np.where(kept, positions, np.iinfo(np.int64).max)
    order = np.argsort(place, axis=1, kind="stable")
    dense = np.empty((n, width), dtype=np.int16)
    np.put_along_axis(dense, order, np.broadcast_to(np.arange(width, dtype=np.int16), (n, width)), axis=1)
    result: npt.NDArray[np.int16] = np.where(kept, dense, np.where(exists, -1, -2)).astype(np.int16)
    return result


def _share_right(positions: npt.NDArray[np.int16], probability: FloatArray) -> FloatArray:
    left, right = np.triu_indices(positions.shape[1], 1)
    one, two = positions[:, left], positions[:, right]
    ordered = (one >= 0) & (two >= 0)
    right_way = np.where(one < two, probability, 1.0 - probability)
    count = ordered.sum(axis=1)
    share: FloatArray = np.where(ordered, right_way, 0.0).sum(axis=1) / np.maximum(count, 1)
    return np.where(count > 0, np.clip(share, 0.0, 1.0), 1.0)
