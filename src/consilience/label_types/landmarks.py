"""Coordinates from distances alone: multidimensional scaling of landmarks, and triangulation of other labels.

Algorithm 1 of the paper embeds labels by multidimensional scaling if no embedding is known. To scale a few landmarks
and triangulate the rest needs only distances to the landmarks, and is exact for Euclidean data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray, IntArray
from consilience.label_types.pair_costs import CostFunction, cost_table

#: Each additional coordinate must lower the relative error of the costs by this much.
KEPT = 0.01


@dataclass(frozen=True, eq=False)
class Landmarks:
    """An embedding of labels by their costs to landmarks, which are treated as squared distances.

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
    #: The paper's eps: up to scale, squared distances of the judging labels are 1 - eps to 1 times their costs.
    distortion: float = 0.0

    @classmethod
    def of(cls, cost: CostFunction, labels: Batch, judging: Batch | None = None) -> Landmarks:
        """Return the embedding with the fewest coordinates, at least one, that preserve the costs about as well as all.

        The `judging` labels, by default the landmarks, show how well costs are preserved.
        """
        squared = cost_table(cost, labels, labels)
        squared = (squared + squared.T) / 2.0
        mean_squared = squared.mean(axis=0)
        centered = -0.5 * (squared - mean_squared - mean_squared[:, None] + mean_squared.mean())
        values, vectors = (part[..., ::-1] for part in np.linalg.eigh(centered))
        # Eigenvalues are only accurate to rounding errors of the largest one, and the code below divides by them.
        values = values[values > 1e-12 * len(values) * np.abs(values).max()]
        if not len(values):
            return cls(cost, labels, np.zeros((1, len(squared))), mean_squared)
        # The sign of an eigenvector is arbitrary. It is fixed, so that equal distances give equal coordinates.
        directions = vectors[:, : len(values)]
        directions = directions * np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(len(values))])
        every = cls(cost, labels, (directions / np.sqrt(values)).T, mean_squared)
        judging = labels if judging is None else judging
        costs = cost_table(cost, judging, judging)
        apart = costs > 0
        kept, missed, ratios = np.zeros_like(costs), [], []
        for column in every(judging).T:
            kept += np.subtract.outer(column, column) ** 2
            scale = (kept * costs).sum() / max((kept**2).sum(), 1e-300)
            missed.append(np.sqrt(((scale * kept - costs) ** 2).sum() / max((costs**2).sum(), 1e-300)))
            ratios.append(kept[apart] / costs[apart])
        count = int(np.argmax(np.array(missed) <= min(missed) + KEPT)) + 1
        ratio = ratios[count - 1]
        distortion = float(1.0 - ratio.min() / max(ratio.max(), 1e-300)) if len(ratio) else 0.0
        return replace(every, projection=every.projection[:count], distortion=distortion)

    def __call__(self, batch: Batch) -> FloatArray:
        """Return ``(n, d)`` coordinates."""
        first, same = first_of_each(batch)
        squared = cost_table(self.cost, batch[first], self.labels)[same]
        return -0.5 * (squared - self.mean_squared) @ self.projection.T


def first_of_each(batch: Batch) -> tuple[IntArray, IntArray]:
    """Return the first place of each distinct label, and the number of each label among these.

    Distances are slow, and labels recur.
    """
    try:
        keys = batch.tolist() if batch.dtype == object or batch.ndim == 1 else [row.tobytes() for row in batch]
        seen: dict[Any, int] = {}
        same = np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)
    except TypeError:  # labels that are not hashable
        return np.arange(len(batch)), np.arange(len(batch))
    return np.unique(same, return_index=True)[1], same
