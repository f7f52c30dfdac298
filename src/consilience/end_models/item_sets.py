"""Sets of items with the features of each item, and rankings of them: what models that rank learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray, IntArray, as_object_array, is_null
from consilience.exceptions import InvalidInputError

__all__ = ["ItemSets", "read_positions", "read_sets"]


@dataclass(frozen=True, eq=False)
class ItemSets:
    """Features of the items of many sets, one set below the other.

    Attributes
    ----------
    features : array of shape (n_items, k)
    sizes : array of shape (n_sets,)
        Number of items of each set.
    even : bool
        Whether the sets were given as one array, so that results are one array too.
    """

    features: FloatArray
    sizes: IntArray
    even: bool

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def owner(self) -> IntArray:
        """The set that each row belongs to."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def starts(self) -> IntArray:
        """First row of each set."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    def split(self, values: Batch) -> Batch:
        """Return one value per item as ``(n_sets, r)``, or as an object array of one array per set."""
        if self.even:
            return values.reshape(len(self.sizes), -1)
        return as_object_array(np.split(values, self.starts[1:]))


def read_sets(X: Any, n_features: int | None = None) -> ItemSets:
    """Read an array ``(n_sets, r, k)``, or one array ``(r, k)`` per set."""
    even = isinstance(X, np.ndarray) and X.dtype != object
    try:
        parts = [np.asarray(part, dtype=np.float64) for part in X]
    except (TypeError, ValueError):
        raise InvalidInputError(
            "X holds values that are not numbers. Pass an array (n_sets, n_items, n_features), or a list with one "
            "array (n_items, n_features) per set."
        ) from None
    if not parts:
        raise InvalidInputError("X holds no set. Pass at least one.")
    expected = n_features if n_features is not None else (parts[0].shape[1] if parts[0].ndim == 2 else None)
    for index, part in enumerate(parts):
        if part.ndim != 2 or part.shape[0] == 0 or part.shape[1] != expected or expected == 0:
            columns = "n_features" if expected is None else expected
            raise InvalidInputError(
                f"Set {index} of X has shape {part.shape}; expected (n_items, {columns}) with at least one item."
            )
    features = np.concatenate(parts)
    wrong = np.argwhere(~np.isfinite(features))
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    sets = ItemSets(features, sizes, even)
    if len(wrong):
        row, column = (int(index) for index in wrong[0])
        owner = int(sets.owner[row])
        raise InvalidInputError(
            f"X is {features[row, column]} in set {owner}, item {row - int(sets.starts[owner])}, feature {column}. "
            "Fill it in, or leave the set out."
        )
    return sets


def read_positions(y: Any, sets: ItemSets) -> IntArray:
    """Return one position per row of the sets, 0 best, -1 where an item is not ranked.

    A row of `y` may be longer than its set where the rest is negative, and None where nobody ranked the set.
    """
    rows = y.to_numpy() if hasattr(y, "to_numpy") else y
    if len(rows) != len(sets):
        raise InvalidInputError(f"X has {len(sets)} sets and y {len(rows)} rankings. Pass one ranking per set.")
    found = [_row(row, int(size), index) for index, (row, size) in enumerate(zip(rows, sets.sizes, strict=True))]
    positions = np.concatenate(found)
    if not (positions >= 0).any():
        raise InvalidInputError("y ranks no item: all positions are missing. Pass some rankings that are known.")
    return positions


def _row(row: Any, size: int, index: int) -> IntArray:
    if is_null(row):
        return np.full(size, -1, dtype=np.int64)
    try:
        given = np.asarray(row, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    given = np.where(np.isnan(given), -1.0, given)
    if given.ndim != 1 or len(given) < size or (given[size:] >= 0).any() or (given != np.round(given)).any():
        shown: Sequence[Any] | str = row if isinstance(row, str) else list(np.ravel(np.asarray(row, dtype=object)))
        raise InvalidInputError(
            f"Row {index} of y is {shown}; expected {size} positions, one per item of the set: 0 is best, equal "
            "ones are tied, -1 is not ranked."
        )
    return np.maximum(given[:size], -1.0).astype(np.int64)
