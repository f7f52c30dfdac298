"""Coordinates from distances alone: classical scaling on landmarks, and placing others among them.

Algorithm 1 of the paper embeds labels by multidimensional scaling if no embedding is known. Scaling a few landmark
labels and triangulating the rest needs only distances to the landmarks, and is exact for Euclidean data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.label_types.pair_costs import CostFunction, cost_table

__all__ = ["Landmarks"]


@dataclass(frozen=True, eq=False)
class Landmarks:
    """An embedding of labels by their costs, taken for squared distances, to some of them.

    Examples
    --------
    >>> points = np.array([0.0, 1.0, 5.0])
    >>> landmarks = Landmarks.of(lambda left, right: (left - right) ** 2, points)
    >>> np.abs(landmarks(np.array([0.0, 1.0, 5.0, 3.0]))).round(9).tolist()
    [[2.0], [1.0], [3.0], [1.0]]
    """

    cost: CostFunction
    labels: Batch  # (l, ...) the landmarks
    projection: FloatArray  # (d, l) turns centered squared distances to the landmarks into coordinates
    mean_squared: FloatArray  # (l,) mean squared distance of the landmarks to each landmark

    @classmethod
    def of(cls, cost: CostFunction, labels: Batch, max_dimension: int = 10, explained: float = 0.95) -> Landmarks:
        """Return the embedding with as few coordinates, at least one, as explain this share of the flat scatter."""
        squared = cost_table(cost, labels, labels)
        squared = (squared + squared.T) / 2.0
        mean_squared = squared.mean(axis=0)
        centered = -0.5 * (squared - mean_squared - mean_squared[:, None] + mean_squared.mean())
        values, vectors = (part[..., ::-1] for part in np.linalg.eigh(centered))
        # Eigenvalues are accurate to rounding of the largest one; smaller ones would be divided by.
        positive = np.where(values > 1e-12 * len(values) * np.abs(values).max(), values, 0.0)
        if not positive.any():
            return cls(cost, labels, np.zeros((1, len(squared))), mean_squared)
        share = np.cumsum(positive) / positive.sum()
        kept = min(max_dimension, int(np.argmax(share >= min(explained, share[-1]))) + 1)
        # An eigenvector's sign is arbitrary; fixed, the same distances give the same coordinates.
        directions = vectors[:, :kept]
        directions = directions * np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(kept)])
        return cls(cost, labels, (directions / np.sqrt(positive[:kept])).T, mean_squared)

    def __call__(self, batch: Batch) -> FloatArray:
        """Return ``(n, d)`` coordinates."""
        squared = cost_table(self.cost, batch, self.labels)
        return -0.5 * (squared - self.mean_squared) @ self.projection.T
