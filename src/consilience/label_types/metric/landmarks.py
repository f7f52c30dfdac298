"""Coordinates from distances alone: classical scaling on landmarks, and placing others among them.

Algorithm 1 of the paper embeds labels by multidimensional scaling if no embedding is known.
Scaling a few hundred landmark labels and triangulating the rest needs only distances to the
landmarks, and is exact for Euclidean data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consilience.arrays import FloatArray

__all__ = ["Landmarks", "fit_landmarks"]


@dataclass(frozen=True, slots=True)
class Landmarks:
    """Landmarks in a flat space, and what is needed to place more points among them.

    Attributes
    ----------
    coordinates : array of shape (l, d)
        Of the landmarks, centred.
    projection : array of shape (d, l)
        Turns centred squared distances to the landmarks into coordinates.
    mean_squared : array of shape (l,)
        Mean squared distance of the landmarks to each landmark.
    explained : float
        Part of the landmarks' scatter that the coordinates reproduce; below 1 if dimensions were
        cut off or the distances are not Euclidean.
    """

    coordinates: FloatArray
    projection: FloatArray
    mean_squared: FloatArray
    explained: float

    def place(self, squared: FloatArray) -> FloatArray:
        """Return coordinates from squared distances to the landmarks.

        Parameters
        ----------
        squared : array of shape (n, l)

        Returns
        -------
        array of shape (n, d)

        Examples
        --------
        >>> points = np.array([0.0, 1.0, 5.0])
        >>> landmarks = fit_landmarks((points[:, None] - points) ** 2)
        >>> np.abs(landmarks.place((np.array([[3.0]]) - points) ** 2)).round(9)
        array([[1.]])
        """
        placed: FloatArray = -0.5 * (squared - self.mean_squared) @ self.projection.T
        return placed


def fit_landmarks(squared_distance: FloatArray, max_dimension: int = 10, explained: float = 0.95) -> Landmarks:
    """Return landmarks placed in a flat space of as few dimensions as needed.

    Parameters
    ----------
    squared_distance : array of shape (l, l)
        Between landmarks; symmetric, zero on the diagonal.
    max_dimension : int
        Upper limit on the number of coordinates.
    explained : float
        Stop adding coordinates when they hold this part of the scatter that a flat space can hold.

    Returns
    -------
    Landmarks
        With at least one coordinate, which is zero if all distances are.

    Examples
    --------
    >>> points = np.array([0.0, 1.0, 5.0])
    >>> landmarks = fit_landmarks((points[:, None] - points) ** 2)
    >>> np.abs(landmarks.coordinates[:, 0]).round(9)
    array([2., 1., 3.])
    """
    squared = (squared_distance + squared_distance.T) / 2
    mean_squared: FloatArray = squared.mean(axis=0)
    centred = -0.5 * (squared - mean_squared - mean_squared[:, None] + mean_squared.mean())
    ascending, vectors = np.linalg.eigh(centred)
    values, vectors = ascending[::-1], vectors[:, ::-1]
    positive = np.maximum(values, 0.0)
    # Eigenvalues are accurate to rounding of the largest one; smaller ones would be divided by.
    positive = np.where(positive > 1e-12 * len(values) * np.abs(values).max(), positive, 0.0)
    if not positive.any():
        return Landmarks(np.zeros((len(squared), 1)), np.zeros((1, len(squared))), mean_squared, 1.0)

    share = np.cumsum(positive) / positive.sum()
    enough = int(np.argmax(share >= min(explained, share[-1]))) + 1
    kept = slice(0, max(1, min(max_dimension, enough)))
    root = np.sqrt(positive[kept])
    # An eigenvector's sign is arbitrary; fixed, the same distances give the same coordinates.
    largest = np.abs(vectors[:, kept]).argmax(axis=0)
    directions = vectors[:, kept] * np.sign(vectors[largest, np.arange(len(largest))])
    return Landmarks(
        coordinates=directions * root,
        projection=(directions / root).T,
        mean_squared=mean_squared,
        explained=float(positive[kept].sum() / np.abs(values).sum()),
    )
