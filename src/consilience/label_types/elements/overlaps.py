"""How far an element overlaps with itself after its corners moved by chance."""

from __future__ import annotations

from functools import cache

import numpy as np

from consilience.arrays import FloatArray

__all__ = ["expected_overlap", "spread_of_overlap"]

#: Normal draws per spread, and spreads of corners in sides of the element.
DRAWS, SPREADS = 4000, np.linspace(0.0, 0.6, 61)


def expected_overlap(spread: FloatArray, dimension: int) -> FloatArray:
    """Return the mean overlap of an element with one whose corners are off by this standard deviation, in sides.

    For boxes that is intersection over union; for spans, in one dimension, the F1 of characters.

    Examples
    --------
    >>> expected_overlap(np.array([0.0, 0.1]), 2).round(2).tolist()
    [1.0, 0.74]
    """
    return np.asarray(np.interp(spread, SPREADS, _means(dimension)))


def spread_of_overlap(overlap: float, dimension: int) -> float:
    """Return the standard deviation of corners at which elements overlap that much on average."""
    return float(np.interp(-overlap, -_means(dimension), SPREADS))


@cache
def _means(dimension: int) -> FloatArray:
    noise = np.random.default_rng(0).normal(size=(DRAWS, 2 * dimension))
    low, high = np.zeros(dimension), np.ones(dimension)
    means = []
    for spread in SPREADS:
        ends = np.stack([low + spread * noise[:, :dimension], high + spread * noise[:, dimension:]])
        one, two = ends.min(axis=0), ends.max(axis=0)
        inside = np.clip(np.minimum(two, 1.0) - np.maximum(one, 0.0), 0.0, None).prod(axis=1)
        share = inside / ((two - one).prod(axis=1) + 1.0 - inside)
        means.append(float((2.0 * share / (1.0 + share)).mean() if dimension == 1 else share.mean()))
    return np.array(means)
