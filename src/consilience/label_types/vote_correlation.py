"""How much the votes of sources count that copy each other, or agree for a reason other than the truth."""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray

#: Added to the diagonal of pair moments before they are inverted, because copies make them singular. The joint weight
#: of two perfect copies is then accurate to one percent.
RIDGE = 0.02
#: Patterns of abstention solved together.
BATCH = 4096


def discount_correlated(observed: BoolArray, correlation: FloatArray) -> FloatArray:
    """Return by how much each vote ``(n, m)`` counts, given who else voted on the item; 0 where there is no vote.

    A vote counts ``1 / (1 + sum_b correlation[a, b] observed[i, b])``. For a group with one common correlation this is
    the weight of generalized least squares: k perfect copies count 1/k each, independent sources 1. Correlations
    ``(m, m)`` of errors are between 0 and 1, and their diagonal is ignored.

    Examples
    --------
    >>> copies = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> discount_correlated(np.array([[True, True, True], [True, False, True]]), copies)
    array([[0.5, 0.5, 1. ],
           [1. , 0. , 1. ]])
    """
    seen = np.asarray(observed, dtype=float)
    between = np.array(correlation, dtype=float)
    np.fill_diagonal(between, 0.0)
    return np.asarray(seen / (1.0 + seen @ between.T))


def gls_weights(
    observed: BoolArray, moments: FloatArray, quality: FloatArray, who: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the weights of the best linear prediction of the truth from the votes on each item.

    With votes and truth embedded as vectors of one length, ``E`` the mean products of the votes of two sources and
    ``d`` those of each source with the truth, these are the weights ``E^-1 d`` of generalized least squares, for the
    sources that voted, 0 for others. Weights below zero are left out. `who` ``(n, cells)`` names the sources of the
    cells, where `observed` holds few cells of many sources; ``(1, m)`` says nothing new. Also returned is the
    correlation ``(n,)`` of the prediction with the truth, at most 1.

    Examples
    --------
    A source and its copy count half each; a third source is independent of both given the truth:

    >>> moments = np.array([[1.0, 1.0, 0.25], [1.0, 1.0, 0.25], [0.25, 0.25, 1.0]])
    >>> weights, _ = gls_weights(np.ones((1, 3), dtype=bool), moments, np.full(3, 0.5))
    >>> weights.round(1)
    array([[0.2, 0.2, 0.4]])
    """
    if who is not None and len(who) > 1:  # with this many sources, hardly any pattern of votes occurs twice
        patterns, own, kind = observed.copy(), quality[who], np.arange(len(observed))
    else:
        first, kind = distinct_rows(observed)
        patterns, own, who = observed[first], np.broadcast_to(quality, (len(first), len(quality))), None
    weights: FloatArray = np.zeros(patterns.shape)
    identity, rows = np.eye(patterns.shape[1]), np.arange(len(patterns))
    while len(rows):
        for start in range(0, len(rows), BATCH):
            some = rows[start : start + BATCH]
            between = moments if who is None else moments[who[some, :, None], who[some, None, :]]
            # For absent sources, the system is the identity and the solution 0.
            seen = patterns[some].astype(np.float64)
            matrices = seen[:, :, None] * seen[:, None, :] * between * (1.0 - identity) + identity * (1.0 + RIDGE)
            weights[some] = np.linalg.solve(matrices, (seen * own[some])[:, :, None])[:, :, 0]
        # Votes with negative weight are left out, and the others are weighted again.
        negative = patterns & (weights < 0) & (own > 0)
        patterns &= ~negative
        rows = np.flatnonzero(negative.any(axis=1))
    together: FloatArray = np.sqrt(np.clip((weights * own).sum(axis=1), 0.0, 1.0))
    return weights[kind], together[kind]


def distinct_rows(observed: BoolArray) -> tuple[IntArray, IntArray]:
    """Return the first of each kind of row, and which kind every row is.

    Examples
    --------
    >>> first, kind = distinct_rows(np.array([[True, True], [False, True], [True, True]]))
    >>> first[kind].tolist()
    [0, 1, 0]
    """
    if observed.all() or observed.shape[1] == 0:
        return np.zeros(min(len(observed), 1), dtype=np.int64), np.zeros(len(observed), dtype=np.int64)
    packed = np.ascontiguousarray(np.packbits(observed, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    return first, kind.reshape(-1)
