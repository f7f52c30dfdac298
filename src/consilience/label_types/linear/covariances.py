"""Covariance matrices of sources: from the differences between votes, kept positive, simplified, drawn together."""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray

__all__ = [
    "STRUCTURES",
    "drawn_together",
    "free_numbers",
    "inverses",
    "log_determinants",
    "matrix_costs",
    "positive_part",
    "structured",
]

#: Shapes that the covariances of sources may have: equal in all directions, one variance per coordinate, any shape but
#: the same for all sources, any shape.
STRUCTURES = ("isotropic", "diagonal", "common", "full")


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


def log_determinants(matrices: FloatArray) -> FloatArray:
    """Return the log determinants of positive definite matrices ``(..., d, d)``.

    Examples
    --------
    >>> float(log_determinants(np.diag([1.0, np.e])))
    1.0
    """
    own = _diagonals(matrices)
    if own is not None:
        return np.asarray(np.log(own).sum(axis=-1))
    return np.asarray(np.linalg.slogdet(matrices)[1], dtype=np.float64)


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


def matrix_costs(difference: FloatArray, usable: BoolArray, weights: FloatArray) -> FloatArray:
    """Return one matrix per source such that those of two sources add up to that of their differences.

    If noise is independent, ``E (a - b)(a - b)' = S_a + S_b``: least squares over all usable pairs, the closed form
    of `isotropic_costs` for every entry at once. Equivariant to any linear map of the votes.

    Parameters
    ----------
    difference : array of shape (m, m, p)
        Entries of the matrices of pairs, flattened.
    usable : array of shape (m, m)
    weights : array of shape (m, m)
        How much each pair counts.

    Returns
    -------
    array of shape (m, p)
        Of least norm where the pairs leave it open.

    Examples
    --------
    >>> own = np.array([[1.0, 0.5], [2.0, 0.0], [5.0, -1.0]])
    >>> matrix_costs(own[:, None] + own, ~np.eye(3, dtype=bool), np.ones((3, 3))).round(12).tolist()
    [[1.0, 0.5], [2.0, 0.0], [5.0, -1.0]]
    """
    weight = np.where(usable, weights, 0.0)
    total = np.einsum("ab,abp->ap", weight, np.where(usable[..., None], difference, 0.0))
    system = weight + np.diag(weight.sum(axis=1))
    solved: FloatArray = np.linalg.lstsq(system, total)[0]
    return solved


def structured(matrices: FloatArray, structure: str) -> FloatArray:
    """Return matrices ``(..., d, d)`` with only the entries that a structure has: the M-step of its likelihood.

    Examples
    --------
    >>> structured(np.array([[1.0, 0.5], [0.5, 3.0]]), "isotropic").tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    if structure in ("common", "full"):
        return matrices
    own = np.diagonal(matrices, axis1=-2, axis2=-1)
    if structure == "isotropic":
        own = np.repeat(own.mean(axis=-1, keepdims=True), own.shape[-1], axis=-1)
    kept: FloatArray = own[..., None] * np.eye(own.shape[-1])
    return kept


def free_numbers(structure: str, d: int) -> tuple[int, int]:
    """Return how many numbers of a structure all sources have in common, and how many each one has of its own.

    Examples
    --------
    >>> [free_numbers(structure, 3) for structure in STRUCTURES]
    [(1, 1), (3, 3), (6, 1), (6, 6)]
    """
    matrix = d * (d + 1) // 2
    return {"isotropic": (1, 1), "diagonal": (d, d), "common": (matrix, 1), "full": (matrix, matrix)}[structure]


def drawn_together(matrices: FloatArray, count: FloatArray, pull: float, scale_pull: float) -> FloatArray:
    """Return covariances drawn to one common shape, as by `pull` more items, and to one scale as by `scale_pull`.

    The common shape is the mean of all, each divided by its size in units of that shape: the mode under an inverse
    Wishart law around it. An infinite pull leaves one shape for all. Equivariant to any linear map.

    Parameters
    ----------
    matrices : array of shape (m, d, d)
        Positive definite.
    count : array of shape (m,)
        Items behind each of them.

    Examples
    --------
    >>> drawn_together(np.array([[[1.0]], [[3.0]]]), np.array([2.0, 2.0]), 0.0, 2.0).ravel().tolist()
    [1.5, 2.5]
    """
    d = matrices.shape[-1]
    share = count / max(float(count.sum()), 1e-300)
    shape = np.tensordot(share, matrices, axes=1)
    for _ in range(3):
        scale = np.einsum("de,aed->a", inverses(shape), matrices) / d
        shape = np.tensordot(share, matrices / scale[:, None, None], axes=1)
    own = (count * scale + scale_pull * float(share @ scale)) / (count + scale_pull)
    part = (pull / (count + pull) if np.isfinite(pull) else np.ones_like(count))[:, None, None]
    alone = (1.0 - part) * matrices * (own / scale)[:, None, None]
    drawn: FloatArray = alone + part * own[:, None, None] * shape
    return drawn
