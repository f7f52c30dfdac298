"""Tags as users write them (vectors, sets of names, sequences), read into arrays of small integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from consilience.arrays import Batch, IntArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError
from consilience.label_types.codes import plain_value

__all__ = ["ABSENT", "UNKNOWN", "TagReader"]

#: A source has no opinion on this tag or position.
UNKNOWN = -1
#: The sequence has ended.
ABSENT = -2


@dataclass(frozen=True)
class TagReader:
    """Reads labels of one `Tags` space.

    Parameters
    ----------
    names
        One name per tag, or None.
    size
        Number of tags.
    sequence
        Whether a label holds one tag per position, rather than a 0 or 1 per tag.
    """

    names: tuple[str, ...] | None
    size: int
    sequence: bool

    def read(self, labels: Any) -> Batch:
        """Return ``(n, d)`` codes; sequences are padded to the longest one."""
        array = labels if isinstance(labels, np.ndarray) else as_object_array(labels)
        if array.dtype.kind in "biuf" and array.ndim == 2 and (self.sequence or array.shape[1] == self.size):
            return self._numbers(array)
        rows = []
        for index, value in enumerate(array):
            try:
                rows.append(self._sequence(value) if self.sequence else self._vector(value))
            except InvalidLabelError as error:
                raise InvalidLabelError(str(error), index) from None
        if not self.sequence:
            return np.array(rows, dtype=np.int8).reshape(len(rows), self.size)
        sizes = np.array([len(row) for row in rows], dtype=np.int64)
        table = np.full((len(rows), int(sizes.max(initial=0))), ABSENT, dtype=self.dtype)
        table[np.arange(table.shape[1]) < sizes[:, None]] = np.concatenate([np.zeros(0, np.int64), *rows])
        return table

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest type that holds the codes."""
        return np.dtype(np.int8 if not self.sequence or self.size <= 127 else np.int32)

    def _numbers(self, array: Batch) -> Batch:
        """Return a rectangle of numbers, or name the first row that holds something else."""
        values = np.where(np.isnan(array), UNKNOWN, array) if array.dtype.kind == "f" else array.astype(np.int64)
        least = ABSENT if self.sequence else UNKNOWN
        wrong = (values < least) | (values > self._largest) | (values != np.round(values))
        wrong[:, :-1] |= (values[:, :-1] == ABSENT) & (values[:, 1:] != ABSENT)  # padding is at the end only
        if wrong.any():
            row = int(np.flatnonzero(wrong.any(axis=1))[0])
            place = int(np.flatnonzero(wrong[row])[0])
            raise InvalidLabelError(self._complaint(array[row], place), row)
        return values.astype(self.dtype)

    @property
    def _largest(self) -> int:
        return self.size - 1 if self.sequence else 1

    def _complaint(self, values: Sequence[Any] | Batch, place: int) -> str:
        shown = f"label {_shown(values)} holds {plain_value(values[place])!r} at position {place}"
        if self.sequence:
            tags = "0 or 1" if self.names is None and self.size == 2 else f"a tag 0 .. {self.size - 1}"
            return f"{shown}, which is not {tags}. Correct it; None or -1 is 'no opinion' on this position."
        name = "" if self.names is None else f" (tag {self.names[place]!r})"
        return f"{shown}{name}, which is neither 0 nor 1. Correct it; None or -1 is 'no opinion' on this tag."

    def _vector(self, value: Any) -> IntArray:
        """Return 0, 1 or -1 per tag for one label."""
        if isinstance(value, (set, frozenset)):
            return self._from_names(list(value))
        cells = _cells(value)
        if cells is None:
            hint = f"{{{value!r}}}" if isinstance(value, str) else f"a vector such as {[0] * self.size}"
            raise InvalidLabelError(
                f"label {plain_value(value)!r} is {_kind(value)}, not {self._expected}. Write {hint}."
            )
        if (
            self.names is not None
            and all(isinstance(cell, str) for cell in cells)
            and (cells or not isinstance(value, np.ndarray))
        ):
            return self._from_names(cells)
        if len(cells) != self.size:
            raise InvalidLabelError(
                f"label {_shown(cells)} has {len(cells)} entries, not {self.size}. Give {self._expected}."
            )
        return self._codes(cells)

    def _sequence(self, value: Any) -> IntArray:
        """Return one code per position for one label."""
        cells = _cells(value)
        if cells is None:
            raise InvalidLabelError(
                f"label {plain_value(value)!r} is {_kind(value)}, not a sequence with one tag per position. "
                "Write a list of tags."
            )
        if self.names is not None and any(isinstance(cell, str) for cell in cells):
            return np.array([UNKNOWN if is_null(cell) else self._code(cell, cells) for cell in cells], dtype=np.int64)
        return self._codes(cells)

    def _codes(self, cells: list[Any]) -> IntArray:
        codes = np.empty(len(cells), dtype=np.int64)
        least = ABSENT if self.sequence else UNKNOWN
        for place, cell in enumerate(cells):
            number = plain_value(cell)
            if is_null(number):
                codes[place] = UNKNOWN
            elif isinstance(number, (bool, int, float)) and number == int(number) and least <= number <= self._largest:
                codes[place] = int(number)
            else:
                raise InvalidLabelError(self._complaint(cells, place))
        kept: IntArray = codes[codes != ABSENT]
        return kept

    def _from_names(self, given: list[Any]) -> IntArray:
        if self.names is None:
            raise InvalidLabelError(
                f"label {_shown(given)} is a set of names, but the tags have none. Give {self._expected}, or name "
                'the tags: Tags(["news", "sport", ...]).'
            )
        codes = np.zeros(self.size, dtype=np.int64)
        for name in given:
            codes[self._code(name, given)] = 1
        return codes

    def _code(self, name: Any, given: list[Any]) -> int:
        names = self.names or ()
        if name in names:
            return names.index(name)
        close = get_close_matches(str(name), names, n=1)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        known = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise InvalidLabelError(f"label {_shown(given)} holds {name!r}, which is no tag. {hint}Tags: {known}.")

    @property
    def _expected(self) -> str:
        vector = f"a vector of {self.size} zeros and ones"
        return vector if self.names is None else f"{vector} or a set of tag names"


def _cells(value: Any) -> list[Any] | None:
    """Return the entries of a list, tuple or one-dimensional array; None for anything else."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return list(value.tolist())
    return list(value) if isinstance(value, (list, tuple)) else None


def _shown(values: Sequence[Any] | Batch) -> str:
    cells = [plain_value(value) for value in values]
    return repr(cells) if len(cells) <= 12 else f"{cells[:12]!r} ...".replace("] ...", ", ...]")


def _kind(value: Any) -> str:
    if isinstance(value, (str, bytes)):
        return "text"
    return "a single number" if np.isscalar(value) else f"a {type(value).__name__}"
