"""Which pairs of sources can be used, and which sources they determine.

Every solver reads the same mask: ``independent[a, b]`` is True where two sources are independent
given the truth *and* have voted together. Seen as a graph, a source's quality is determined by
sums or products over its pairs exactly if its component contains an odd cycle, the smallest of
which is the paper's triplet.
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = ["all_vote_together", "components", "has_odd_cycle", "partner_pairs", "strong_pairs", "usable_pairs"]


def all_vote_together(count: FloatArray) -> bool:
    """Return whether all sources that vote do so on the same items, by how many items each two share."""
    votes = np.diag(count)
    active = votes > 0
    return bool((count[np.ix_(active, active)] == votes.max(initial=0.0)).all())


def usable_pairs(independent: BoolArray) -> BoolArray:
    """Return the mask of usable pairs, made symmetric and False on the diagonal.

    Parameters
    ----------
    independent : array of shape (m, m)

    Examples
    --------
    >>> usable_pairs(np.array([[True, True], [False, True]]))
    array([[False, False],
           [False, False]])
    """
    linked: BoolArray = np.asarray(independent, dtype=bool)
    linked = linked & linked.T
    np.fill_diagonal(linked, False)
    return linked


def strong_pairs(covariance: FloatArray, linked: BoolArray, standard_error: FloatArray | None = None) -> BoolArray:
    """Return the usable pairs whose covariance is large enough to divide by.

    Parameters
    ----------
    covariance : array of shape (m, m)
    linked : array of shape (m, m)
        Mask of usable pairs, from `usable_pairs`.
    standard_error : array of shape (m, m), optional
        A covariance below its standard error is not strong; without it, only one that vanishes
        beside the largest is not.

    Examples
    --------
    >>> covariance = np.array([[0.0, 0.5], [0.5, 0.0]])
    >>> linked = usable_pairs(np.ones((2, 2), dtype=bool))
    >>> bool(strong_pairs(covariance, linked)[0, 1])
    True
    >>> bool(strong_pairs(covariance, linked, standard_error=np.ones((2, 2)))[0, 1])
    False
    """
    size = np.where(linked, np.abs(covariance), 0.0)
    smallest = np.full(size.shape, 1e-12 * size.max(initial=0.0))
    if standard_error is not None:
        smallest = np.maximum(smallest, standard_error)
    strong: BoolArray = linked & (size > smallest)
    return strong


def partner_pairs(source: int, linked: BoolArray, strong: BoolArray) -> tuple[IntArray, IntArray]:
    """Return the partners that form a triplet with one source.

    Parameters
    ----------
    source : int
        Position of source a.
    linked, strong : arrays of shape (m, m)
        Usable pairs, for a's own two; and those that may also be divided by, for the third.

    Returns
    -------
    arrays of shape (t,) and (t,)
        Positions b < c of the other two sources of each triplet.

    Examples
    --------
    >>> linked = usable_pairs(np.ones((4, 4), dtype=bool))
    >>> partner_pairs(0, linked, linked)
    (array([1, 1, 2]), array([2, 3, 3]))
    """
    partners = np.flatnonzero(linked[source])
    rows, columns = np.nonzero(np.triu(strong[np.ix_(partners, partners)], 1))
    return partners[rows], partners[columns]


def components(linked: BoolArray) -> IntArray:
    """Return a number per source, equal for two sources joined by a chain of usable pairs.

    Parameters
    ----------
    linked : array of shape (m, m)

    Returns
    -------
    array of shape (m,)
        Component numbers 0, 1, ... in order of their first source.

    Examples
    --------
    >>> linked = np.zeros((4, 4), dtype=bool)
    >>> linked[0, 2] = linked[2, 0] = True
    >>> components(linked)
    array([0, 1, 0, 2])
    """
    label = np.full(len(linked), -1, dtype=np.int64)
    number = 0
    for first in range(len(linked)):
        if label[first] >= 0:
            continue
        frontier = np.array([first])
        while frontier.size:
            label[frontier] = number
            frontier = np.flatnonzero(linked[frontier].any(axis=0) & (label < 0))
        number += 1
    return label


def has_odd_cycle(linked: BoolArray) -> BoolArray:
    """Return, per source, whether its component contains an odd cycle of usable pairs.

    Parameters
    ----------
    linked : array of shape (m, m)

    Returns
    -------
    array of shape (m,)

    Examples
    --------
    >>> has_odd_cycle(usable_pairs(np.ones((2, 2), dtype=bool)))
    array([False, False])
    >>> has_odd_cycle(usable_pairs(np.ones((3, 3), dtype=bool)))
    array([ True,  True,  True])
    """
    # In the double cover a step always changes sides, so a source meets its own mirror image
    # exactly if some closed walk through it has odd length.
    nothing = np.zeros_like(linked)
    label = components(np.block([[nothing, linked], [linked, nothing]]))
    odd: BoolArray = label[: len(linked)] == label[len(linked) :]
    return odd
