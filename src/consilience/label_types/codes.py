"""Names and codes of the labels of a finite space: accepted as they come, computed with as integers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError
from consilience.lazy import pyarrow as pa

#: Whole numbers from here on are not codes, and floats cannot tell them apart.
BEYOND = 2**53


@dataclass(frozen=True)
class Codebook:
    """The k labels of a finite space, with one name per code or None where labels are just ``0 .. k-1``.

    For messages, `noun` is what to call a label ("class" or "node"), and `builder` how the user would name the labels.
    """

    names: tuple[Any, ...] | None
    k: int
    noun: str
    builder: str

    @property
    def numeric_names(self) -> bool:
        """Whether numbers among the votes are names rather than codes."""
        return self.names is not None and any(isinstance(name, (int, float)) for name in self.names)

    @property
    def expected(self) -> str:
        """What a label should have been, for messages."""
        if self.names is None:
            return f"a {self.noun} 0 .. {self.k - 1} of the {self.k} there are"
        return f"a known {self.noun} ({first_few(self.names)})"

    def encode(self, array: Batch) -> Batch:
        """Return the codes of labels given as codes, whole floats or names."""
        if array.ndim > 1:  # names that are tuples
            array = as_object_array(map(tuple, array.tolist()))
        kind, numeric_names = array.dtype.kind, self.numeric_names
        if kind in "biu" and not numeric_names:
            return self.check(array)
        if kind == "f" and not numeric_names:
            wrong = ~(np.abs(array) < BEYOND) | (array != np.round(array))
            if wrong.any():
                step = "Round it if it is one; real-valued labels need a space of their own, such as Metric."
                raise locate(array, wrong, self.expected, step)
            return self.check(array.astype(np.int64))
        known = {name: code for code, name in enumerate(self.names or ())}
        below = BEYOND if self.names is None else 0 if numeric_names else self.k  # numbers that are taken for codes
        codes = np.empty(len(array), dtype=np.int64)
        for position, value in enumerate(array.tolist()):
            try:
                code = known.get(value)
            except TypeError:
                raise InvalidLabelError(
                    f"label {value!r} is a {type(value).__name__}, which cannot name one label.", position
                ) from None
            if code is None:
                number = plain_value(value)  # numbers from NumPy count like any others
                is_code = isinstance(number, (int, float)) and 0 <= number < below and number == int(number)
                code = known[value] = int(number) if is_code else -1
            codes[position] = code
        if (codes < 0).any():
            step = f"Correct the spelling, add it to {self.builder}, or leave the cell empty to abstain."
            step = f"To use names, say {self.builder}." if self.names is None else step
            raise locate(array, codes < 0, self.expected, step)
        return self.check(codes)

    def decode(self, codes: Batch, like: npt.DTypeLike | None) -> Batch:
        """Return names, or the codes where the votes came as codes."""
        if self.names is None or (like is not None and np.dtype(like).kind in "biuf" and not self.numeric_names):
            return codes.astype(np.int64)
        names: Batch = np.array(self.names)
        if names.dtype.kind not in "biuf" or self.names != tuple(names.tolist()):
            names = as_object_array(self.names)
        return np.asarray(names[codes.astype(np.int64)])

    def to_arrow(self, labels: Batch) -> pa.Array:
        """Return labels as an Arrow column; nulls where there is none. Names of several types become text."""
        if labels.dtype.kind in "iu":
            if self.numeric_names:  # -1 means "no label" unless a label is called so
                return pa.array(labels, type=pa.int64(), mask=(labels == -1) & (-1 not in (self.names or ())))
            return pa.array(labels, type=pa.int32(), mask=labels < 0)
        return arrow_column([None if is_null(label) else label for label in labels.tolist()])

    def check(self, codes: Batch, observed: BoolArray | None = None) -> Batch:
        """Return integer codes in the smallest type, or name the first that is out of range."""
        wrong = (codes < 0) | (codes >= self.k)
        if observed is not None:
            wrong &= observed
        if wrong.any():
            step = "Correct it, or name the value that means 'abstains' (Votes.from_matrix(..., abstain=...))."
            raise locate(codes.ravel(), wrong.ravel(), self.expected, step)
        return codes.astype(np.int8 if self.k <= 127 else np.int32, copy=False)

    def check_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        """Return a table of integer codes as it is, or name its first wrong cell; None for other types."""
        if labels.ndim != 2 or labels.dtype.kind not in "iu" or self.numeric_names:
            return None
        return self.check(labels, observed)


def read_names(given: Any, noun: str, said: str, *, text: bool = False) -> tuple[tuple[Any, ...] | None, int]:
    """Return the names of labels or items, or None where only their number is given; and that number.

    `said` is what the user wrote, for messages. Names may have to be `text`.
    """
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return None, int(given)
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InvalidLabelError(
            f"{said} says neither how many there are nor how they are called. Give a whole number or a list of names."
        )
    names = tuple(plain_value(name) for name in given)
    fact = f"{'An' if noun == 'item' else 'A'} {noun} cannot be called"
    for name in names:
        if is_null(name):
            raise InvalidLabelError(f"{fact} None or NaN: these mean that a source abstains.")
        if text and not isinstance(name, str):
            raise InvalidLabelError(f"{fact} {name!r}. Names are text.")
        if not isinstance(name, Hashable):
            raise InvalidLabelError(f"{fact} {name!r}. Use text or numbers.")
    refuse_twice(names, noun.capitalize())
    return names, len(names)


def read_each(cells: Iterable[Any], read: Callable[[Any], Any]) -> list[Any]:
    """Return what `read` makes of every cell; an error carries the position of the cell."""
    result = []
    for index, cell in enumerate(cells):
        try:
            result.append(read(cell))
        except InvalidLabelError as error:
            raise InvalidLabelError(str(error), index) from None
    return result


def read_rows(
    as_batch: Callable[[Any], Batch],
    labels: Batch,
    observed: BoolArray,
    sizes: Callable[[Batch], npt.ArrayLike],
    uneven: str,
) -> Batch:
    """Return the votes of an ``(n, m)`` table in one batch, of one size per row; errors carry a place in the table.

    `uneven` is the message with room for the size of a vote, that of the first of its row, and where they part.
    """
    place = np.flatnonzero(observed)
    try:
        batch = as_batch(labels[observed])
        size, row = np.asarray(sizes(batch)), place // observed.shape[1]
        first = size[np.searchsorted(row, row)]
        if (size != first).any():
            cell = int(np.argmax(size != first))
            raise InvalidLabelError(uneven.format(size[cell], first[cell], min(size[cell], first[cell]) + 1), cell)
    except InvalidLabelError as error:
        raise InvalidLabelError(str(error), None if error.index is None else int(place[error.index])) from None
    return batch


def first_few(names: Sequence[Any], most: int = 6) -> str:
    """Return the first names, for messages."""
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def arrow_column(values: list[Any]) -> pa.Array:
    """Return values as an Arrow column; as text where they are of several types, or numbers beyond 64 bits.

    Half a surrogate pair in somebody's text cannot be encoded; it must not cost the whole table.
    """
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeEncodeError):
        texts = (None if value is None else str(value) for value in values)
        return pa.array([None if text is None else text.encode(errors="replace").decode() for text in texts])


def locate(labels: Sequence[Any] | Batch, wrong: BoolArray, expected: str, step: str) -> InvalidLabelError:
    """Return the error for the first wrong label of a batch."""
    index = int(np.flatnonzero(wrong)[0])
    return InvalidLabelError(f"label {plain_value(labels[index])!r} is not {expected}. {step}", index)


def plain_value(value: Any) -> Any:
    """Return a Python number instead of a NumPy one."""
    return value.item() if isinstance(value, np.generic) else value


def is_listed(value: Any) -> bool:
    """Return whether a value is a list, a tuple or an array: not text, a record or a number."""
    return isinstance(value, (list, tuple)) or np.ndim(value) > 0


def checked_names(setting: str, names: Any, noun: str, example: str) -> tuple[str, ...] | None:
    """Return names of a setting such as ``classes=`` as a tuple, or say what is wrong with them; None stays None."""
    if names is None:
        return None
    if not is_listed(names):
        raise InvalidLabelError(f"{setting}={names!r} is not a list of names. Give one such as {example}.")
    found = tuple(str(name) if isinstance(name, np.str_) else name for name in names)
    unfit = next((name for name in found if not isinstance(name, str) or not name), None)
    if not found or unfit is not None:
        raise InvalidLabelError(f"{setting} holds {unfit!r}. Give at least one name, each a text that is not empty.")
    refuse_twice(found, noun)
    return found


def refuse_twice(names: Sequence[Any], noun: str) -> None:
    """Refuse names of which one comes again."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidLabelError(f"{noun} {twice!r} is named twice. Name each one once.")
