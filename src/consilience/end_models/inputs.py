"""Covariates, labels and weights of an end model, checked and without the items that have no label."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array, is_null
from consilience.exceptions import InvalidInputError, InvalidLabelError
from consilience.label_types.base import LabelSpace

__all__ = ["read_covariates", "read_labels", "read_weights"]


def read_covariates(X: Any, n_expected: int | None = None) -> FloatArray:
    """Return ``(n, k)`` finite numbers; one number per item is one covariate."""
    try:
        table = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            "X holds values that are not numbers. Pass one row of numbers per item; encode categories first."
        ) from None
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidInputError(f"X has shape {table.shape}; expected (n_items, n_covariates), or one number per item.")
    if n_expected is not None and table.shape[1] != n_expected:
        raise InvalidInputError(
            f"X has {_count(table.shape[1])}, and this model was fitted on {n_expected}. Pass the same columns."
        )
    wrong = np.argwhere(~np.isfinite(table))
    if len(wrong):
        row, column = (int(index) for index in wrong[0])
        raise InvalidInputError(
            f"X is {table[row, column]} in row {row}, column {column}. Fill it in, or leave the item out."
        )
    return table


def read_labels(y: Any, space: LabelSpace, n_items: int) -> tuple[Batch, BoolArray]:
    """Return the labels that are there as points, and which items they belong to; NaN and None are not there."""
    table = y if isinstance(y, np.ndarray) else _as_array(y)
    if table.ndim == 0 or len(table) != n_items:
        found = "no list" if table.ndim == 0 else f"{len(table)} labels"
        raise InvalidInputError(f"X has {n_items} items and y {found}. Pass one label per item, None where unknown.")
    present: BoolArray = np.ones(n_items, dtype=bool)
    if table.dtype.kind == "f":
        present = np.asarray(~np.isnan(table).reshape(n_items, -1).all(axis=1))
    elif table.dtype.kind == "O":
        present = np.array([not _missing(value) for value in table], dtype=bool)
    rows = np.flatnonzero(present)
    if len(rows) == 0:
        raise InvalidInputError("y holds no label: all of them are missing. Pass some that are known.")
    try:
        return space.as_batch(table[rows]), present
    except InvalidLabelError as error:
        if error.index is None:
            raise
        row = int(rows[error.index])
        raise InvalidLabelError(f"row {row}: {error}", row) from None


def read_weights(sample_weight: Any, n_items: int) -> FloatArray:
    """Return one weight per item, ones where none are given."""
    if sample_weight is None:
        return np.ones(n_items)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError("sample_weight holds values that are not numbers. Pass one number per item.") from None
    if weights.shape != (n_items,):
        raise InvalidInputError(f"sample_weight has shape {weights.shape}; expected one number per item, ({n_items},).")
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InvalidInputError(
            f"sample_weight of row {row} is {weights[row]:g}. Weights are finite and not negative; 0 leaves it out."
        )
    return weights


def _as_array(y: Any) -> Batch:
    if hasattr(y, "to_numpy"):
        return np.asarray(y.to_numpy())
    try:
        return as_object_array(y)
    except TypeError:
        return np.asarray(y, dtype=object)


def _missing(label: object) -> bool:
    if is_null(label):
        return True
    try:
        numbers = np.asarray(label, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return numbers.size > 0 and bool(np.isnan(numbers).all())


def _count(n_covariates: int) -> str:
    return "1 covariate" if n_covariates == 1 else f"{n_covariates} covariates"
