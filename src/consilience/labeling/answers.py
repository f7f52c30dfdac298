"""What labeling functions return becomes labels, a mask, and an account of what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, as_object_array
from consilience.exceptions import InvalidLabelError, LabelingFunctionError
from consilience.label_types.base import LabelSpace
from consilience.labeling.functions import LabelingFunction
from consilience.tables.cells import blank, common_dtype, differs_from, null_mask, read_cells, tighten
from consilience.tables.frames import Column, column_of_series

__all__ = ["Answers", "Fault", "encode_answers", "join_answers", "read_answers", "read_batch"]

_CELLS = (list, tuple, np.ndarray)


@dataclass(frozen=True)
class Fault:
    """How often a function failed, and how it did so first.

    Parameters
    ----------
    rows
        How many rows have no vote because of it.
    first_row, first_error
        The first of them, and the text of the error.
    """

    function: str
    rows: int
    first_row: int
    first_error: str

    def __add__(self, later: Fault) -> Fault:
        first = self if self.first_row <= later.first_row else later
        return replace(first, rows=self.rows + later.rows)


@dataclass(frozen=True, eq=False)
class Answers:
    """The votes of one function on some rows.

    Parameters
    ----------
    labels
        ``(n, *label_shape)``, or ``(n,)`` objects; codes where the space has them.
    observed
        ``(n,)`` False where the function abstains or failed.
    spelling
        Type of the labels before they became codes.
    fault
        What went wrong, if anything did.
    """

    labels: Batch
    observed: BoolArray
    spelling: np.dtype[Any]
    fault: Fault | None = None


def read_answers(returned: list[Any]) -> tuple[Batch, BoolArray]:
    """Return labels and mask from one Python object per row."""
    objects = np.fromiter(returned, dtype=object, count=len(returned))
    null = null_mask(objects)
    labels = tighten(objects, null)
    if labels.dtype == object and any(isinstance(value, _CELLS) for value in objects[~null][:1].tolist()):
        table, observed = read_cells([[value] for value in returned], allow_partial=True)
        return table[:, 0], observed[:, 0]
    return labels, ~null


def read_batch(returned: Any, function: LabelingFunction, n: int, first_row: int) -> tuple[Batch, BoolArray]:
    """Return labels and mask from what a vectorised function returned: an array, a series or a list."""
    labels, observed = _labels_and_mask(returned)
    if len(labels) != n:
        place = f"rows {first_row} to {first_row + n - 1}"
        what = f"{len(labels)} labels" if len(labels) else f"{type(returned).__name__}, not labels,"
        raise LabelingFunctionError(
            f"Labeling function {function.name!r} returned {what} for {n} rows ({place}). A vectorised function "
            "returns one label per row, None or NaN where it abstains; leave vectorized=True out if it takes one row."
        )
    return labels, observed


def _labels_and_mask(returned: Any) -> tuple[Batch, BoolArray]:
    if isinstance(returned, Column):
        return returned.values, ~returned.null
    if isinstance(returned, (list, tuple)):
        return read_answers(list(returned))
    if isinstance(returned, np.ma.MaskedArray):
        labels, observed = _labels_and_mask(np.asarray(returned.data))
        return labels, observed & ~np.ma.getmaskarray(returned).reshape(len(labels), -1).any(axis=1)
    if not isinstance(returned, np.ndarray):
        import narwhals as nw

        wrapped = nw.from_native(returned, pass_through=True, allow_series=True)
        if isinstance(wrapped, nw.Series):
            column = column_of_series(wrapped)
            return column.values, ~column.null
        if hasattr(returned, "to_pylist"):  # an Arrow array that is in one piece
            return read_answers(returned.to_pylist())
    if returned is None or isinstance(returned, (str, bytes, dict)) or not hasattr(returned, "__len__"):
        return np.zeros(0), np.zeros(0, dtype=bool)
    array = np.asarray(returned)
    if array.ndim == 0:
        return np.zeros(0), np.zeros(0, dtype=bool)
    if array.dtype.kind not in "biuf":
        return read_answers(list(array.astype(object)))
    if array.dtype.kind == "f":
        return array, ~np.isnan(array).reshape(len(array), -1).all(axis=1)
    return array, np.ones(len(array), dtype=bool)


def encode_answers(
    answer: tuple[Batch, BoolArray], function: LabelingFunction, space: LabelSpace | None, first_row: int, lenient: bool
) -> Answers:
    """Return labels checked by the space and stored small: as its codes where it has a finite number of them.

    With `lenient` a label that is none of the space's counts as a fault; otherwise the error names its row.
    """
    labels, observed = _without_sentinel(*answer, function, space)
    spelling, fault = labels.dtype, None
    if space is None or not observed.any():
        return Answers(_shrink(labels, observed), observed, spelling)
    try:
        batch = space.as_batch(labels[observed])
    except InvalidLabelError as error:
        if not lenient:
            row = "" if error.index is None else f", row {first_row + int(np.flatnonzero(observed)[error.index])}"
            raise InvalidLabelError(f"Labeling function {function.name!r}{row}: {error}", error.index) from None
        fault, observed = _leave_out(labels, observed, function, space, first_row)
        if not observed.any():
            return Answers(_shrink(labels, observed), observed, spelling, fault)
        batch = space.as_batch(labels[observed])
    if not _has_codes(space):
        return Answers(_shrink(labels, observed), observed, spelling, fault)
    codes = np.zeros((len(labels), *batch.shape[1:]), dtype=batch.dtype)
    codes[observed] = batch
    return Answers(codes, observed, spelling, fault)


def join_answers(chunks: Sequence[Sequence[Answers]], space: LabelSpace | None) -> tuple[Batch, BoolArray, Any]:
    """Return labels ``(n, m, ...)``, mask ``(n, m)`` and spelling of the answers of m functions to several chunks."""
    starts = np.cumsum([0, *(len(chunk[0].observed) for chunk in chunks)])
    observed = np.zeros((int(starts[-1]), len(chunks[0])), dtype=bool)
    voting = [one for chunk in chunks for one in chunk if one.observed.any()]
    shapes = {one.labels.shape[1:] for one in voting}
    soft = max(shapes, key=len, default=())
    coded = space is not None and _has_codes(space)
    same_shape = len(shapes) <= 1 or coded  # classes beside rows of probabilities become such rows, too
    dtype = common_dtype([one.labels.dtype for one in voting]) if voting else np.dtype(np.int8 if coded else object)
    labels = blank((*observed.shape, *soft), dtype) if same_shape else blank(observed.shape, object)
    for start, chunk in zip(starts, chunks, strict=False):
        for source, one in enumerate(chunk):
            rows = start + np.flatnonzero(one.observed)
            observed[rows, source] = True
            values = one.labels[one.observed]
            if coded and values.ndim < labels.ndim - 1:
                values = np.eye(soft[0])[values.astype(np.int64)]
            elif not same_shape:
                values = as_object_array(values)
            labels[rows, source] = values
    named = coded and any(one.spelling.kind == "O" for one in voting)
    return labels, observed, np.dtype(object) if named else None


def _without_sentinel(
    labels: Batch, observed: BoolArray, function: LabelingFunction, space: LabelSpace | None
) -> tuple[Batch, BoolArray]:
    if function.abstain is not None and labels.ndim == 1:
        observed = observed & differs_from(labels, function.abstain)
    # The rule of `fit`: among whole numbers -1 is no vote, unless it is a label.
    if labels.dtype.kind in "iu" and labels.ndim == 1 and space is not None and not space.contains(-1):
        observed = observed & (labels != -1)
    return labels, observed


def _leave_out(
    labels: Batch, observed: BoolArray, function: LabelingFunction, space: LabelSpace, first_row: int
) -> tuple[Fault, BoolArray]:
    """Return the mask without the labels that the space refuses, and the account of them."""
    kept = observed.copy()
    wrong: list[int] = []
    first_error = ""
    for row in np.flatnonzero(observed).tolist():
        try:
            space.as_batch(labels[row : row + 1])
        except InvalidLabelError as error:
            first_error = first_error or str(error)
            kept[row] = False
            wrong.append(row)
    return Fault(function.name, len(wrong), first_row + wrong[0], first_error), kept


def _has_codes(space: LabelSpace) -> bool:
    """Return whether ``0 .. k-1`` stand for the labels: not where the labels are numbers themselves."""
    if space.n_labels is None:
        return False
    codes = np.arange(min(space.n_labels, 1024))
    try:
        return np.array_equal(space.as_batch(codes), codes)
    except InvalidLabelError:
        return False


def _shrink(labels: Batch, observed: BoolArray) -> npt.NDArray[Any]:
    """Return whole numbers in the smallest type that holds them."""
    if labels.dtype.kind not in "iu" or not observed.any():
        return labels
    present = labels[observed]
    low, high = int(present.min()), int(present.max())
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        limits = np.iinfo(dtype)
        if limits.min <= low and high <= limits.max:
            return np.where(observed.reshape(-1, *[1] * (labels.ndim - 1)), labels, 0).astype(dtype)
    return labels
