"""How much the votes of sources count that copy each other, or agree for a reason other than the truth."""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray

__all__ = ["best_linear", "shared_weights"]

#: Added to the diagonal of pair moments before they are inverted, as copies make them singular.
RIDGE = 0.02
#: Patterns of abstention solved at once.
BATCH = 4096


def shared_weights(observed: BoolArray, correlation: FloatArray) -> FloatArray:
    """Return by how much each vote counts, given who else voted on the item.

    A vote counts ``1 / (1 + sum_b correlation[a, b] observed[i, b])``. For a group with one
    common correlation this is the weight of generalised least squares: k perfect copies count 1/k
    each, independent sources 1.

    Parameters
    ----------
    observed : array of shape (n, m)
        Who voted on what.
    correlation : array of shape (m, m)
        Correlation of the errors of two sources, between 0 and 1; the diagonal is ignored.

    Returns
    -------
    array of shape (n, m)
        Between 0 and 1; 0 where there is no vote.

    Examples
    --------
    >>> copies = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> shared_weights(np.array([[True, True, True], [True, False, True]]), copies)
    array([[0.5, 0.5, 1. ],
           [1. , 0. , 1. ]])
    """
    seen = np.asarray(observed, dtype=float)
    between = np.array(correlation, dtype=float)
    np.fill_diagonal(between, 0.0)
    weights: FloatArray = seen / (1.0 + seen @ between.T)
    return weights


def best_linear(observed: BoolArray, moments: FloatArray, quality: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weights of the best linear prediction of the truth from the votes on each item.

    With votes and truth embedded as vectors of one length, ``E`` the mean products of the votes of two sources and
    ``d`` those of each source with the truth, these are the weights ``E^-1 d`` of generalised least squares, for the
    sources that voted. Weights below zero are left out.

    Parameters
    ----------
    observed : array of shape (n, m)
        Who voted on what.
    moments : array of shape (m, m)
        ``E``, with ones on the diagonal.
    quality : array of shape (m,)
        ``d``.

    Returns
    -------
    weights : array of shape (n, m)
        0 where there is no vote.
    together : array of shape (n,)
        The correlation of the prediction with the truth, at most 1.

    Examples
    --------
    A source and its copy count half each; a third source is independent of both given the truth:

    >>> moments = np.array([[1.0, 1.0, 0.25], [1.0, 1.0, 0.25], [0.25, 0.25, 1.0]])
    >>> weights, _ = best_linear(np.ones((1, 3), dtype=bool), moments, np.full(3, 0.5))
    >>> weights.round(1)
    array([[0.2, 0.2, 0.4]])
    """
    patterns, position = np.unique(observed, axis=0, return_inverse=True)
    weights: FloatArray = np.zeros(patterns.shape)
    for start in range(0, len(patterns), BATCH):
        seen = patterns[start : start + BATCH].astype(np.float64)
        weights[start : start + BATCH] = _solve_seen(seen, moments, quality)
    negative = patterns & (weights < 0) & (quality > 0)
    for _ in range(patterns.shape[1]):
        rows = np.flatnonzero(negative.any(axis=1))
        if len(rows) == 0:
            break
        patterns[rows] &= ~negative[rows]
        weights[rows] = _solve_seen(patterns[rows].astype(np.float64), moments, quality)
        negative = patterns & (weights < 0) & (quality > 0)
    together: FloatArray = np.sqrt(np.clip(weights @ quality, 0.0, 1.0))
    position = position.reshape(-1)
    return weights[position], together[position]


def _solve_seen(seen: FloatArray, moments: FloatArray, quality: FloatArray) -> FloatArray:
    """Solve for the sources that are seen; for the others the system is that of the identity, and the answer 0."""
    identity = np.eye(len(quality))
    matrices = seen[:, :, None] * seen[:, None, :] * moments
    matrices = matrices * (1.0 - identity) + identity * (1.0 + RIDGE)
    solution = np.linalg.solve(matrices, (seen * quality)[:, :, None])[:, :, 0]
    return np.asarray(solution, dtype=np.float64)
