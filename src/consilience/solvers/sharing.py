"""One vote shared by sources that copy each other."""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray

__all__ = ["shared_weights"]


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
