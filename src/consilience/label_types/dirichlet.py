"""Rates from counts, shrunk to what is expected as strongly as the counts themselves ask for."""

from __future__ import annotations

import numpy as np

from consilience.arrays import FloatArray

__all__ = ["shrink_counts"]

#: Pseudo-counts per cell that are tried, in decades: from "each row on its own" to "the expected rates, full stop".
STRENGTHS = (1.0, 10.0, 100.0, 1000.0)


def shrink_counts(count: FloatArray, center: FloatArray) -> FloatArray:
    """Return rates ``(..., k)`` from counts, with a Dirichlet prior around `center`.

    All rows share one strength, the one of largest Dirichlet-multinomial evidence.

    Parameters
    ----------
    count
        ``(..., k)`` counts, possibly fractional.
    center
        ``(..., k)`` expected rates; each row adds up to one.

    Examples
    --------
    >>> even = np.full((1, 2), 0.5)
    >>> shrink_counts(np.array([[3.0, 1.0]]), even).round(2).tolist()
    [[0.5, 0.5]]
    >>> shrink_counts(np.array([[3000.0, 1000.0]]), even).round(2).tolist()
    [[0.75, 0.25]]
    """
    from scipy.special import gammaln

    center = np.maximum(np.broadcast_to(center, count.shape), 1e-6)
    size = count.shape[-1]

    def evidence(strength: float) -> float:
        alpha = strength * size * center
        total = alpha.sum(axis=-1)
        rows = gammaln(total) - gammaln(total + count.sum(axis=-1))
        return float(rows.sum() + (gammaln(alpha + count) - gammaln(alpha)).sum())

    # Of equal evidence the stronger prior: no counts, no change.
    best = max(reversed(STRENGTHS), key=evidence) * size
    rates: FloatArray = (count + best * center) / (
        count.sum(axis=-1, keepdims=True) + best * center.sum(-1, keepdims=True)
    )
    return rates
