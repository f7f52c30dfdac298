"""What the end models share: their inputs, checked, sample weights, and packages that are imported where needed."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_object_array, is_null
from consilience.exceptions import (
    InvalidInputError,
    InvalidLabelError,
    MissingPackageError,
    NotFittedError,
    UnsupportedError,
)
from consilience.label_model import Configurable
from consilience.label_types.base import LabelSpace


class EndModel(Configurable):
    """A model with settings that `fit` makes ready to predict."""

    #: The attribute that a fitted model has.
    learned: ClassVar[str]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self.learned)

    def _require_fitted(self) -> None:
        if not hasattr(self, self.learned):
            raise NotFittedError(f"This {type(self).__name__} has not been fitted. Call fit(X, y) first.")


def check_count(name: str, value: Any) -> None:
    """Refuse a setting that is not a whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise UnsupportedError(f"{name}={value!r} is not a whole number from 1 on.")


def as_numbers(values: Any, name: str, remedy: str) -> FloatArray:
    """Return an array of floats, or say what to pass instead."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name} holds values that are not numbers. {remedy}") from None


def read_covariates(X: Any, n_expected: int | None = None) -> FloatArray:
    """Return ``(n, k)`` finite numbers; one number per item is one covariate."""
    table = as_numbers(X, "X", "Pass one row of numbers per item; encode categories first.")
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidInputError(f"X has shape {table.shape}; expected (n_items, n_covariates), or one number per item.")
    if n_expected is not None and table.shape[1] != n_expected:
        found = "1 covariate" if table.shape[1] == 1 else f"{table.shape[1]} covariates"
        raise InvalidInputError(f"X has {found}, and this model was fitted on {n_expected}. Pass the same columns.")
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
    weights = as_numbers(sample_weight, "sample_weight", "Pass one number per item.")
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


def needed(module: str, extra: str, use: str) -> Any:
    """Return a module of an optional package, or say how to install it."""
    try:
        return import_module(module)
    except ImportError:
        package = {"sklearn": "scikit-learn"}.get(module.partition(".")[0], module)
        raise MissingPackageError(
            f"{use} needs {package}, which is not installed. Run: pip install 'consilience[{extra}]'."
        ) from None


def length(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix, a frame or a list."""
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape is not None else len(X)


def take_rows(X: Any, rows: IntArray) -> Any:
    """Return rows of an array, a sparse matrix, a pandas, polars or Arrow frame, or a list, in the same type."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "take") and hasattr(X, "schema"):  # Arrow
        return X.take(rows)
    if hasattr(X, "shape"):
        return X[rows]
    return [X[row] for row in np.asarray(rows).tolist()]


def takes_weights(model: Any) -> bool:
    """Return whether ``fit`` takes ``sample_weight``; that of a pipeline if its last step does."""
    steps = getattr(model, "steps", None)
    if steps:
        return takes_weights(steps[-1][1])
    return "sample_weight" in inspect.signature(model.fit).parameters


def fit_weighted(model: Any, X: Any, y: Any, weights: FloatArray | None) -> Any:
    """Fit, with weights if there are any; those of a pipeline go to its last step."""
    if weights is None:
        return model.fit(X, y)
    name, last = "sample_weight", model
    while steps := getattr(last, "steps", None):
        step, last = steps[-1]
        name = name.replace("sample_weight", f"{step}__sample_weight")
    return model.fit(X, y, **{name: weights})
