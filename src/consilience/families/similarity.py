"""What families share that know sources by how much their votes have in common."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from consilience.arrays import IntArray
from consilience.families.base import Diagnostic, Request, Sums
from consilience.families.findings import SIGNIFICANCE, no_signal

__all__ = ["nothing_in_common", "vote_pairs"]


def vote_pairs(item_start: IntArray) -> IntArray:
    """Return all pairs of votes within items ``(p, 2)``, item by item."""
    sizes = np.diff(item_start)
    found = []
    for size in np.unique(sizes):
        if size < 2:
            continue
        one, two = np.triu_indices(int(size), 1)
        rows = np.flatnonzero(sizes == size)
        first = item_start[rows][:, None]
        found.append((np.repeat(rows, len(one)), (first + one).ravel(), (first + two).ravel()))
    if not found:
        return np.zeros((0, 2), dtype=np.int64)
    item, left, right = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(item, kind="stable")
    return np.stack([left[order], right[order]], axis=1)


def nothing_in_common(
    sums: Sums, unrelated: tuple[float, float] | None, request: Request
) -> tuple[str, tuple[Diagnostic, ...]]:
    """Return why the votes cannot tell sources apart, or an empty text, with the findings.

    `unrelated` is the mean similarity (one minus cost) of votes on different items, and its standard error.
    """
    count = int((np.diag(sums["both"]) > 0).sum())
    if count < 3:
        return f"{count} source(s) vote, qualities need 3", ()
    pairs = sums["pair_count"].sum() / 2.0
    if pairs == 0:
        return "no two sources vote on the same item", ()
    close = 1.0 - sums["pair_cost"].sum() / 2.0 / pairs
    variance = max(sums["pair_cost_square"].sum() / 2.0 / pairs - (1.0 - close) ** 2, 1e-4)
    chance, error = (0.0, 0.0) if unrelated is None else unrelated
    # Votes on one item hang together, so that an item counts once however many pairs it has.
    deviation = np.sqrt(variance / max(float(sums["voted_items"]), 1.0) + error**2)
    if (close - chance) / deviation > NormalDist().inv_cdf(1.0 - SIGNIFICANCE):
        return "", ()
    reason = f"votes on the same item have no more in common than votes on different ones ({close:.3f}, {chance:.3f})"
    return reason, (no_signal(request, reason),)
