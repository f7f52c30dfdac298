"""How good dependency trees are: unlabelled and labelled attachment scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from consilience.arrays import is_null
from consilience.exceptions import InvalidLabelError

__all__ = ["las", "uas"]


def uas(predicted: Iterable[Any], gold: Iterable[Any]) -> float:
    """Return the unlabelled attachment score: the share of all tokens whose head is right.

    Parameters
    ----------
    predicted, gold
        One tree per sentence: heads, or (head, relation) pairs, of which the heads count. A prediction that is
        missing (None) counts as wrong on every token; a sentence whose gold tree is missing is left out.

    Examples
    --------
    >>> uas([[2, 0, 2], [0, 1]], [[2, 0, 1], [0, 1]])
    0.8
    """
    return _score(predicted, gold, with_relations=False)


def las(predicted: Iterable[Any], gold: Iterable[Any]) -> float:
    """Return the labelled attachment score: the share of all tokens whose head and relation are right.

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
            f"There are {len(found)} predicted trees and {len(known)} known ones. Give one of each per sentence."
        )
    right = tokens = 0
    for row, (one, two) in enumerate(zip(found, known, strict=True)):
        if is_null(two):
            continue
        truth = _column(two, row, with_relations)
        tokens += len(truth)
        if is_null(one):
            continue
        guess = _column(one, row, with_relations)
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


def _column(tree: Any, row: int, with_relations: bool) -> list[Any]:
    tokens = np.asarray(tree).tolist() if isinstance(tree, np.ndarray) else list(tree)
    pairs = [isinstance(token, (list, tuple, np.ndarray)) for token in tokens]
    if with_relations and not all(pairs):
        raise InvalidLabelError(
            f"Row {row}: the tree has heads without relations, so no labelled score. Use uas, or give pairs.", row
        )
    if with_relations:
        return [tuple(token) for token in tokens]
    return [token[0] if pair else token for token, pair in zip(tokens, pairs, strict=True)]
