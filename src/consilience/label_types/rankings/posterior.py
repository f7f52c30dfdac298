"""Posterior over rankings: pair probabilities, exact up to twelve items and by Gibbs sampling above, and decoding."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.estimation.protocol import Posterior
from consilience.label_types.rankings.kemeny import minimize_disagreement, sum_by_item
from consilience.label_types.rankings.labels import ABSENT, UNSEEN, rank_items

__all__ = ["KEPT_ITEMS", "blocks", "decode_rankings", "joined", "log_odds", "pair_probabilities"]

#: Up to this many items the posterior is computed exactly, by the recursion over subsets.
EXACT_ITEMS = 12
#: Longer lists have fewer sweeps of the sampler, down to so many, as a sweep takes the square of their length.
USUAL_LENGTH, LEAST_SWEEPS = 50, 20
#: Pair margins that are in memory at a time.
MAX_MARGINS = 1 << 24
#: Pair probabilities are returned for rankings of up to this many items; there are r (r - 1) / 2 for every row.
KEPT_ITEMS = 128


def decode_rankings(
    probability: FloatArray,
    margins: FloatArray | None,
    ranked: BoolArray,
    sizes: IntArray,
    exact: Literal["dp", "milp"] = "dp",
    time_limit: float | None = None,
) -> Posterior:
    """Return Kemeny orders of pair probabilities, the orders of least expected error; or of margins if given.

    Parameters
    ----------
    probability, margins
        ``(n, pairs)`` P(i before j), and by how much weight i is favored over j.
    ranked
        ``(n, width)`` whether some source ranks the item.
    sizes
        ``(n,)`` how many items the row has.
    """
    width = ranked.shape[1]
    found = minimize_disagreement(
        2.0 * probability - 1.0 if margins is None else margins,
        width,
        sizes,
        keys=_keys(probability),
        exact=exact,
        time_limit=time_limit,
    )
    exists = np.arange(width) < sizes[:, None]
    positions = found.positions.astype(np.int16)
    if not (exists & ranked).all():
        positions = rank_items(found.positions, exists & ranked, np.where(exists, UNSEEN, ABSENT))
    right = _share_right(positions, probability)
    details = {
        "expected_error": np.where(ranked.any(axis=1), 1.0 - right, np.nan),
        "optimal": found.optimal,
        "gap": np.where(found.optimal, 0.0, found.cost - found.lower_bound),
    }
    if width <= KEPT_ITEMS:
        details["pair_probability"] = probability
    return Posterior(positions, np.clip(2.0 * right - 1.0, 0.0, 1.0), None, details)


def pair_probabilities(margins: FloatArray, width: int, sizes: IntArray, sweeps: int) -> FloatArray:
    """Return P(i before j) ``(n, pairs)``: exact for few items, by Gibbs sampling above; 1/2 without items."""
    from consilience.label_types.rankings.kernels import pair_posterior, pair_posterior_gibbs

    if width <= EXACT_ITEMS and (sizes == width).all():
        return pair_posterior(margins, width)
    probability = np.full(margins.shape, 0.5)
    second = np.triu_indices(width, 1)[1]
    for size in np.unique(sizes[sizes > 1]).tolist():
        place = np.ix_(sizes == size, second < size)
        some = margins[place]
        if size <= EXACT_ITEMS:
            probability[place] = pair_posterior(some, size)
            continue
        # A sweep moves every item, so that pairs of long lists are seen more often.
        fewer = max(sweeps * USUAL_LENGTH // max(width, USUAL_LENGTH), LEAST_SWEEPS)
        order = np.argsort(-sum_by_item(some, size), axis=1, kind="stable")
        probability[place] = pair_posterior_gibbs(some, size, order, fewer, fewer // 4, _keys(some))
    return probability


def blocks(n: int, width: int) -> list[slice]:
    """Return the rows that are looked at together, so that their pair margins fit into memory."""
    step = max(MAX_MARGINS // max(width * (width - 1) // 2, 1), 1)
    return [slice(start, min(start + step, n)) for start in range(0, max(n, 1), step)]


def joined(parts: list[Posterior]) -> Posterior:
    """Return the beliefs about consecutive rows as one."""
    if len(parts) == 1:
        return parts[0]
    return Posterior(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.confidence for part in parts]),
        None,
        {name: np.concatenate([part.details[name] for part in parts]) for name in parts[0].details},
    )


def _keys(pairs: FloatArray) -> IntArray:
    """Return a number per row that follows from its votes, not from its place in the table."""
    keys: IntArray = np.round(np.abs(pairs) * 1e6).astype(np.int64) @ np.arange(1, pairs.shape[1] + 1)
    return keys


def log_odds(probability: FloatArray) -> FloatArray:
    """Return the margins that would make these probabilities, pair by pair."""
    inside = np.clip(probability, 1e-12, 1.0 - 1e-12)
    odds: FloatArray = np.log(inside) - np.log1p(-inside)
    return odds


def _share_right(positions: npt.NDArray[np.int16], probability: FloatArray) -> FloatArray:
    left, right = np.triu_indices(positions.shape[1], 1)
    one, two = positions[:, left], positions[:, right]
    ordered = (one >= 0) & (two >= 0)
    right_way = np.where(one < two, probability, 1.0 - probability)
    count = ordered.sum(axis=1)
    share: FloatArray = np.where(ordered, right_way, 0.0).sum(axis=1) / np.maximum(count, 1)
    return np.where(count > 0, np.clip(share, 0.0, 1.0), 1.0)
