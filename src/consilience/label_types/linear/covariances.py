"""Covariance matrices of sources: inverted, kept positive, drawn together."""

from __future__ import annotations

import numpy as np

from consilience.arrays import FloatArray

__all__ = ["drawn_together", "inverses", "positive_part"]

#: Items per coordinate that the common shape is worth, in decades: from "each on its own" to "one shape for all".
SHAPE_STRENGTHS = (3.0, 30.0, 300.0, 3000.0)


def _diagonals(matrices: FloatArray) -> FloatArray | None:
    """Return the diagonals ``(..., d)`` if there is nothing beside them: long vectors are quick then."""
    own = np.diagonal(matrices, axis1=-2, axis2=-1)
    return own if np.count_nonzero(matrices) == np.count_nonzero(own) else None


def inverses(matrices: FloatArray) -> FloatArray:
    """Return the inverses of positive definite matrices ``(..., d, d)``.

    Examples
    --------
    >>> inverses(np.array([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    own = _diagonals(matrices)
    if own is not None:
        return np.asarray((1.0 / own)[..., None] * np.eye(own.shape[-1]))
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def positive_part(matrices: FloatArray, least: float = 1e-3) -> FloatArray:
    """Return the nearest matrices whose eigenvalues are at least a share of the largest one.

    Parameters
    ----------
    matrices : array of shape (..., d, d)
        Symmetric up to rounding.
    least : float
        Smallest share of the mean absolute eigenvalue that an eigenvalue may have.

    Examples
    --------
    >>> positive_part(np.array([[1.0, 0.0], [0.0, -3.0]]), least=0.1)
    array([[1. , 0. ],
           [0. , 0.2]])
    """
    own = _diagonals(matrices)
    if own is not None:
        least_own = least * np.maximum(np.abs(own).mean(axis=-1, keepdims=True), 1e-300)
        return np.asarray(np.maximum(own, least_own)[..., None] * np.eye(own.shape[-1]))
    even = 0.5 * (matrices + np.swapaxes(matrices, -1, -2))
    values, vectors = np.linalg.eigh(even)
    floor = least * np.maximum(np.abs(values).mean(axis=-1, keepdims=True), 1e-300)
    if (values >= floor).all():
        return np.asarray(even, dtype=np.float64)
    mended: FloatArray = (vectors * np.maximum(values, floor)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return mended


def drawn_together(matrices: FloatArray, count: FloatArray) -> FloatArray:
    """Return covariances drawn to one common shape, each with the size it has, as strongly as they themselves ask for.

    The common shape is the mean of all, each divided by its size in units of that shape: the mode under an inverse
    Wishart law around it. Its strength is that of `SHAPE_STRENGTHS` with the largest evidence. Equivariant to any
    linear map.

    Parameters
    ----------
    matrices : array of shape (m, d, d)
        Positive definite.
    count : array of shape (m,)
        Items behind each of them.

    Examples
    --------
    Two sources of the same shape, seen in ten items each, are taken to have it in common:

    >>> seen = np.array([[[1.0, 0.1], [0.1, 1.0]], [[2.0, -0.2], [-0.2, 2.0]]])
    >>> drawn_together(seen, np.array([10.0, 10.0])).round(2).tolist()
    [[[1.0, 0.0], [0.0, 1.0]], [[2.0, -0.0], [-0.0, 2.0]]]
    """
    d = matrices.shape[-1]
    share = count / max(float(count.sum()), 1e-300)
    shape = np.tensordot(share, matrices, axes=1)
    for _ in range(3):
        scale = np.einsum("de,aed->a", inverses(shape), matrices) / d
        shape = np.tensordot(share, matrices / scale[:, None, None], axes=1)
    unit = matrices / scale[:, None, None]
    best = max(reversed(SHAPE_STRENGTHS), key=lambda strength: _evidence(unit, shape, count, strength * d)) * d
    part = (best / (count + best))[:, None, None]
    drawn: FloatArray = scale[:, None, None] * ((1.0 - part) * unit + part * shape)
    return drawn


def _evidence(matrices: FloatArray, shape: FloatArray, count: FloatArray, strength: float) -> float:
    """Return the log probability of covariances of so many items under an inverse Wishart law, but for a constant."""
    from scipy.special import multigammaln

    d = len(shape)
    freedom = strength + d + 1.0
    total = strength * shape + count[:, None, None] * matrices
    sizes = freedom * np.linalg.slogdet(strength * shape)[1] - (freedom + count) * np.linalg.slogdet(total)[1]
    return float((multigammaln((freedom + count) / 2.0, d) - multigammaln(freedom / 2.0, d) + sizes / 2.0).sum())
