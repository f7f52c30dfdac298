"""Rates from counts, shrunk to what is expected as strongly as the counts themselves ask for."""

from __future__ import annotations

import numpy as np

from consilience.arrays import FloatArray

__all__ = ["shrink_counts"]

#: Pseudo-counts per cell, in half decades: from "each row on its own" to "the expected rates, full stop".
STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
#: Probability of the last of them before any count: expected rates hold unless counts say otherwise.
AS_EXPECTED = 0.5


def shrink_counts(count: FloatArray, center: FloatArray) -> FloatArray:
    """Return rates ``(..., k)`` from counts, with a Dirichlet prior around `center`.

    All rows share one strength. The rates are the mean over strengths, by their Dirichlet-multinomial evidence.

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
    [[0.53, 0.47]]
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

    before = np.full(len(STRENGTHS), (1.0 - AS_EXPECTED) / (len(STRENGTHS) - 1))
    before[-1] = AS_EXPECTED
    weight = np.log(before) + np.array([evidence(strength) for strength in STRENGTHS])
    weight = np.exp(weight - weight.max())
    rates = np.zeros(count.shape)
    for strength, share in zip(STRENGTHS, weight / weight.sum(), strict=True):
        alpha = strength * size * center
        rates += share * (count + alpha) / (count + alpha).sum(axis=-1, keepdims=True)
    return rates
