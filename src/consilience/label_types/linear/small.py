"""The beliefs of `consilience.label_types.linear.kernels` for small tables, which are not worth a compilation."""

from __future__ import annotations

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray

__all__ = ["CELLS", "believe_scores"]

#: Up to this many votes, NumPy is fast enough, so that compiled loops need not be loaded.
CELLS = 6_000


def believe_scores(
    labels: Batch,
    observed: BoolArray,
    share: FloatArray,
    expected: FloatArray,
    slope: FloatArray,
    noise: FloatArray,
    prior: float,
    width: float,
    degrees: float,
    rounds: int,
    sums: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the score of every item, and add to `sums`, as the compiled loop does."""
    residual = np.where(observed, labels - expected, 0.0)
    gain = np.where(observed, share * (slope / noise), 0.0)
    weight = observed.astype(np.float64)
    mean, variance = np.zeros(len(labels)), np.full(len(labels), width)
    least = 1e-6 * np.sqrt(width)
    rows = np.arange(len(labels))  # those whose weights still change
    for step in range(rounds + 1 if np.isfinite(degrees) else 1):
        left = residual[rows]
        if step > 0:
            misfit = (left - mean[rows, None] * slope) ** 2 + variance[rows, None] * slope**2
            weight[rows] = observed[rows] * (degrees + 1.0) / (degrees + misfit / noise)
        counted = gain[rows] * weight[rows]
        precision, evidence = counted @ slope, np.vecdot(counted, left)
        informed = precision > 0.0
        rows, precision, evidence = rows[informed], precision[informed] + prior, evidence[informed]
        before = mean[rows]
        mean[rows], variance[rows] = evidence / precision, 1.0 / precision
        if step > 0:
            rows = rows[np.abs(mean[rows] - before) >= least]
        if not len(rows):
            break
    if sums.shape[1]:
        weighted = weight * residual
        sums += [
            observed.sum(axis=0),
            weight.sum(axis=0),
            mean @ weight,
            (mean**2 + variance) @ weight,
            weighted.sum(axis=0),
            np.einsum("na,na->a", weighted, residual),
            mean @ weighted,
        ]
    return mean, variance
