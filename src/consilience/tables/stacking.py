"""Several tables of labels become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, as_object_array
from consilience.exceptions import InvalidVotesError
from consilience.tables.cells import blank
from consilience.tables.names import check_unique_ids

__all__ = ["common_dtype", "stack_ids", "stack_labels"]


def common_dtype(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """Return a dtype that holds labels of all these dtypes as they are.

    Numbers meet in a number; text and numbers stay themselves, as objects.

    Examples
    --------
    >>> common_dtype([np.dtype("int8"), np.dtype("float32")])
    dtype('float32')
    >>> common_dtype([np.dtype("int8"), np.dtype("<U4")])
    dtype('O')
    """
    kinds = {dtype.kind for dtype in dtypes}
    if not kinds or (len(kinds) > 1 and not kinds <= set("biuf")):
        return np.dtype(object)
    together = np.result_type(*dtypes)
    if kinds <= set("biu") and together.kind == "f":
        return np.dtype(np.int64)  # unsigned and signed; a float would round them
    return together


def stack_labels(
    parts: Sequence[tuple[Batch, BoolArray, npt.NDArray[np.intp]]], n_sources: int
) -> tuple[Batch, BoolArray]:
    """Return several tables below each other.

    Parameters
    ----------
    parts
        Labels, observed mask, and the column each of its sources goes to.
    n_sources
        Number of columns of the result; those a part lacks are not observed.
    """
    observed = np.zeros((sum(len(seen) for _, seen, _ in parts), n_sources), dtype=bool)
    voting = [labels for labels, seen, _ in parts if seen.any()] or [part[0] for part in parts]
    labels = _blank_for(voting, observed.shape)
    start = 0
    for part, seen, places in parts:
        stop = start + len(seen)
        observed[start:stop, places] = seen
        rows, columns = np.nonzero(seen)
        votes = part[rows, columns]
        cells = votes if votes.ndim == labels.ndim - 1 else as_object_array(votes)
        labels[start + rows, places[columns]] = cells
        start = stop
    return labels, observed


def stack_ids(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the item ids of several tables; counted ids (0, 1, ...) are counted on."""
    if all(ids.dtype.kind in "iu" and np.array_equal(ids, np.arange(len(ids))) for ids in parts):
        return np.arange(sum(map(len, parts)))
    dtype = common_dtype([ids.dtype for ids in parts])
    ids = np.concatenate([part.astype(dtype, copy=False) for part in parts])
    check_unique_ids(ids)
    return ids


def _blank_for(tables: Sequence[Batch], shape: tuple[int, ...]) -> Batch:
    """Return blank labels that can take the labels of all these tables."""
    label_shapes = {labels.shape[2:] for labels in tables}
    if len(label_shapes) == 1:
        return blank(shape + label_shapes.pop(), common_dtype([part.dtype for part in tables]))
    if any(labels.ndim == 2 and labels.dtype != object for labels in tables):
        raise InvalidVotesError(
            f"The parts have labels of different shapes: "
            f"{' and '.join(map(str, sorted(label_shapes)))}. "
            f"Concatenate votes of one label type only."
        )
    return blank(shape, object)
