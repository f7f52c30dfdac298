"""Rates from counts, shrunk to what is expected as strongly as the counts themselves ask for."""

from __future__ import annotations

import numpy as np

from consilience.arrays import FloatArray, softmax

#: Pseudo-counts per cell, in half decades: from "each row on its own" to "the expected rates, full stop".
STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
#: Probability of the last of them before any count: expected rates hold unless counts say otherwise.
AS_EXPECTED = 0.5


def shrink_counts(count: FloatArray, center: FloatArray, strength: float | None = None) -> FloatArray:
    """Return rates ``(..., k)`` from counts, possibly fractional, with a Dirichlet prior around the rates `center`.

    All rows share one strength. Unless it is given, the rates are the mean over `STRENGTHS`, by their
    Dirichlet-multinomial evidence.

    Examples
    --------
    >>> even = np.full((1, 2), 0.5)
    >>> shrink_counts(np.array([[3.0, 1.0]]), even).round(2).tolist()
    [[0.53, 0.47]]
    >>> shrink_counts(np.array([[3000.0, 1000.0]]), even).round(2).tolist()
    [[0.75, 0.25]]
    """
    from scipy.special import gammaln

    cells = tuple(range(1, count.ndim + 1))
    thought_of = np.array(STRENGTHS if strength is None else (strength,))
    alpha = _pseudo_counts(center, count, thought_of.reshape(-1, *[1] * count.ndim))
    after = alpha + count
    total = gammaln(alpha.sum(axis=-1)) - gammaln(after.sum(axis=-1))
    evidence = total.sum(axis=cells[:-1]) + (gammaln(after) - gammaln(alpha)).sum(axis=cells)
    before = np.full(len(thought_of), (1.0 - AS_EXPECTED) / max(len(thought_of) - 1, 1))
    before[-1] = AS_EXPECTED
    weight = softmax(np.log(before) + evidence)
    return np.tensordot(weight, after / after.sum(axis=-1, keepdims=True), axes=1)


def log_surprise(rates: FloatArray, count: FloatArray, center: FloatArray, strength: float) -> float:
    """Return the log posterior density of rates over their prior one: what a likelihood there has to pay for them.

    By Bayes' rule, evidence is likelihood times prior over posterior, at any rates.
    """
    from scipy.special import gammaln

    def density(alpha: FloatArray) -> float:
        row = gammaln(alpha.sum(axis=-1)) - gammaln(alpha).sum(axis=-1)
        return float(row.sum() + ((alpha - 1.0) * np.log(np.maximum(rates, 1e-9))).sum())

    alpha = _pseudo_counts(center, count, strength)
    return density(alpha + count) - density(alpha)


def _pseudo_counts(center: FloatArray, count: FloatArray, strength: float | FloatArray) -> FloatArray:
    pseudo: FloatArray = strength * count.shape[-1] * np.maximum(np.broadcast_to(center, count.shape), 1e-6)
    return pseudo
