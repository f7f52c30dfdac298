"""Attachment scores of dependency trees, and the best tree for given scores of edges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import IntArray, is_null
from consilience.exceptions import InvalidLabelError


def uas(predicted: Iterable[Any], gold: Iterable[Any]) -> float:
    """Return the unlabeled attachment score: the share of all tokens whose head is right.

    Parameters
    ----------
    predicted, gold
        One tree per sentence: heads, or (head, relation) pairs. A missing prediction (None) is wrong for every token;
        a sentence with a missing gold tree is left out.

    Examples
    --------
    >>> uas([[2, 0, 2], [0, 1]], [[2, 0, 1], [0, 1]])
    0.8
    """
    return _score(predicted, gold, with_relations=False)


def las(predicted: Iterable[Any], gold: Iterable[Any]) -> float:
    """Return the labeled attachment score: the share of all tokens whose head and relation are right.

    Parameters
    ----------
    predicted, gold
        One list of (head, relation) pairs per sentence, relations spelled the same way in both.

    Examples
    --------
    >>> las([[(2, "det"), (0, "root")]], [[(2, "amod"), (0, "root")]])
    0.5
    """
    return _score(predicted, gold, with_relations=True)


def _score(predicted: Iterable[Any], gold: Iterable[Any], *, with_relations: bool) -> float:
    found, known = list(predicted), list(gold)
    if len(found) != len(known):
        raise InvalidLabelError(
            f"There are {len(found)} predicted trees and {len(known)} known trees. Give one of each per sentence."
        )
    right = tokens = 0
    for row, (one, two) in enumerate(zip(found, known, strict=True)):
        if is_null(two):
            continue
        truth = _tokens(two, row, with_relations)
        tokens += len(truth)
        if is_null(one):
            continue
        guess = _tokens(one, row, with_relations)
        if len(guess) != len(truth):
            raise InvalidLabelError(
                f"Row {row}: the predicted tree has {len(guess)} tokens, the known one {len(truth)}. Compare trees of "
                "the same tokens.",
                row,
            )
        right += sum(left == right for left, right in zip(guess, truth, strict=True))
    if tokens == 0:
        raise InvalidLabelError("There is no known tree to compare with. Give at least one.")
    return right / tokens


def _tokens(tree: Any, row: int, with_relations: bool) -> list[Any]:
    """Return the heads of a tree, or its pairs of heads and relations."""
    tokens = tree.tolist() if isinstance(tree, np.ndarray) else list(tree)
    if not with_relations:
        return [token[0] if isinstance(token, (list, tuple, np.ndarray)) else token for token in tokens]
    if not all(isinstance(token, (list, tuple, np.ndarray)) for token in tokens):
        raise InvalidLabelError(
            f"Row {row}: the tree has heads without relations. Use uas, or give (head, relation) pairs.", row
        )
    return [tuple(token) for token in tokens]


def maximum_arborescence(score: npt.ArrayLike) -> IntArray:
    """Return the heads ``(n,)`` of the dependency tree whose edges have the largest sum of scores.

    The tree is exact and has exactly one token under the root (Chu-Liu and Edmonds, O(n^2)). Ties go to the nearer
    head, or in cycles by the order of the tokens; the same scores always give the same tree.

    Parameters
    ----------
    score
        Shape ``(n + 1, n + 1)``: ``score[h, d]`` for head h of token d, where 0 is the root and tokens are 1 .. n.
        The diagonal and column 0 are not read.

    Examples
    --------
    Tokens 1 and 2 would each be the head of the other, so one of them gets the root.

    >>> maximum_arborescence([[0, 1, 3], [0, 0, 9], [0, 9, 0]])
    array([2, 0])
    """
    from consilience.label_types.trees import kernels

    try:
        table = np.array(score, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidLabelError(
            "The scores are not a table of numbers. Give an array of shape (n + 1, n + 1)."
        ) from None
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2:
        raise InvalidLabelError(
            f"Scores of shape {table.shape} do not fit a sentence. Give (n + 1, n + 1) for n tokens, n >= 1."
        )
    np.fill_diagonal(table, 0.0)
    table[:, 0] = 0.0
    if not np.isfinite(table).all():
        head, token = np.argwhere(~np.isfinite(table))[0].tolist()
        raise InvalidLabelError(
            f"The score of head {head} for token {token} is {table[head, token]}. Give finite scores; a very small "
            "score excludes an edge."
        )
    return kernels.maximum_arborescence(table)
