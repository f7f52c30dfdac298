"""Rows of features, whatever holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.arrays import IntArray

__all__ = ["length", "take_rows"]


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
