"""The best tree for given scores of edges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from consilience.arrays import IntArray
from consilience.exceptions import InvalidLabelError

__all__ = ["maximum_arborescence"]


def maximum_arborescence(score: npt.ArrayLike) -> IntArray:
    """Return the heads ``(n,)`` of the dependency tree whose edges have the largest sum of scores.

    Exactly one token hangs on the root. Exact, in O(n^2) (Chu-Liu, Edmonds). Equal scores are decided for the nearer
    head, and where a cycle has to be broken, by the order of the tokens; the same scores always give the same tree.

    Parameters
    ----------
    score
        Shape ``(n + 1, n + 1)``: ``score[h, d]`` for head h of token d, where 0 is the root and tokens are 1 .. n.
        The diagonal and column 0 are not read.

    Examples
    --------
    Token 1 and 2 would each take the other for its head; one of them must take the root.

    >>> maximum_arborescence([[0, 1, 3], [0, 0, 9], [0, 9, 0]])
    array([2, 0])
    """
    from consilience.label_types.trees import kernels

    try:
        table = np.ascontiguousarray(score, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidLabelError("The scores are no table of numbers. Give an array of shape (n + 1, n + 1).") from None
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2:
        raise InvalidLabelError(
            f"Scores of shape {table.shape} are not those of a sentence. Give (n + 1, n + 1) for n tokens, n >= 1."
        )
    tokens = np.arange(1, len(table))
    read = table[:, 1:].copy()
    read[tokens, tokens - 1] = 0.0
    if not np.isfinite(read).all():
        head, column = np.argwhere(~np.isfinite(read))[0].tolist()
        raise InvalidLabelError(
            f"The score of head {head} for token {column + 1} is {read[head, column]}. Give finite scores; a very "
            "small one rules an edge out."
        )
    return kernels.maximum_arborescence(table)
