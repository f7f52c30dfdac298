"""Rates from counts, shrunk to what is expected as strongly as the counts themselves ask for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray, softmax

#: Pseudo-counts per cell, in half decades, from "each row on its own" to "the expected rates only".
STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
#: Prior probability of the last one: the expected rates hold unless the counts contradict them.
AS_EXPECTED = 0.5


def shrink_counts(count: FloatArray, center: FloatArray) -> FloatArray:
    """Return rates ``(..., k)`` from counts, possibly fractional, with a Dirichlet prior around the rates `center`.

    All rows share one strength. The rates are the mean over `STRENGTHS`, by their Dirichlet-multinomial evidence.

    Examples
    --------
    >>> even = np.full((1, 2), 0.5)
    >>> shrink_counts(np.array([[3.0, 1.0]]), even).round(2).tolist()
    [[0.53, 0.47]]
    >>> shrink_counts(np.array([[3000.0, 1000.0]]), even).round(2).tolist()
    [[0.75, 0.25]]
    """
    evidence, after = _by_strength(count, center)
    return np.tensordot(softmax(evidence), after / after.sum(axis=-1, keepdims=True), axes=1)


def log_evidence(count: FloatArray, center: FloatArray) -> float:
    """Return the log probability of counts, one after the other, under this prior.

    Examples
    --------
    Two votes of two kinds, one of each, have a probability of 1/6 if all rates are alike, and a little less than 1/4
    if they are expected to be even:

    >>> round(float(np.exp(log_evidence(np.array([[1.0, 1.0]]), np.full((1, 2), 0.5)))), 2)
    0.24
    """
    return float(np.logaddexp.reduce(_by_strength(count, center)[0]))


def log_surprise(rates: FloatArray, count: FloatArray) -> float:
    """Return the log posterior density of rates over their prior one: what a likelihood there has to pay for them.

    By Bayes' rule, evidence is likelihood times prior over posterior, at any rates. Before the counts, all rates are
    alike.

    Examples
    --------
    One vote, for the first of two kinds, makes a rate of 3/4 one and a half times as probable:

    >>> round(float(np.exp(log_surprise(np.array([0.75, 0.25]), np.array([1.0, 0.0])))), 3)
    1.5
    """
    k = count.shape[-1]
    row = log_gamma(count.sum(axis=-1) + k) - log_gamma(count + 1.0).sum(axis=-1) - log_gamma(k)
    return float(row.sum() + (count * np.log(np.maximum(rates, 1e-9))).sum())


def log_gamma(x: npt.ArrayLike) -> FloatArray:
    """Return the logarithm of the gamma function of positive numbers, by Stirling's series from eight on.

    Loading the one in SciPy takes longer than most fits.

    Examples
    --------
    >>> np.exp(log_gamma([1.0, 5.0, 0.5])).round(6).tolist()
    [1.0, 24.0, 1.772454]
    """
    x = np.asarray(x, dtype=np.float64)
    below = np.where(x < 8.0, x, 1.0)
    z = np.where(x < 8.0, x + 8.0, x)
    skipped = below.copy()
    for step in range(1, 8):
        skipped *= below + step
    tail, square = np.zeros_like(z), 1.0 / z**2
    for factor in (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        tail = tail * square + factor
    whole = (z - 0.5) * np.log(z) - z + 0.5 * np.log(2.0 * np.pi) + tail / z
    return np.asarray(whole - np.where(x < 8.0, np.log(skipped), 0.0))


def _by_strength(count: FloatArray, center: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the log probability of each strength and the counts, and the counts with its pseudo-counts."""
    cells = tuple(range(1, count.ndim + 1))
    strength = np.array(STRENGTHS).reshape(-1, *[1] * count.ndim)
    alpha = strength * count.shape[-1] * np.maximum(np.broadcast_to(center, count.shape), 1e-6)
    after = alpha + count
    total = log_gamma(alpha.sum(axis=-1)) - log_gamma(after.sum(axis=-1))
    evidence = total.sum(axis=cells[:-1]) + (log_gamma(after) - log_gamma(alpha)).sum(axis=cells)
    before = np.full(len(STRENGTHS), (1.0 - AS_EXPECTED) / (len(STRENGTHS) - 1))
    before[-1] = AS_EXPECTED
    return np.log(before) + evidence, after
