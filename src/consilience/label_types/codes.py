"""Labels as users write them: their names, their cells one by one, and messages about them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, is_null
from consilience.exceptions import InvalidLabelError
from consilience.lazy import pyarrow as pa

#: Pads labels of different lengths, such as rankings of fewer items and shorter sequences.
ABSENT = -2


def read_names(given: Any, noun: str, said: str, *, text: bool = False) -> tuple[tuple[Any, ...] | None, int]:
    """Return the names of labels or items (None if only their number is given) and their number.

    `said` is the text of the user, for messages. If `text`, names must be text.
    """
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return None, int(given)
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InvalidLabelError(
            f"{said} says neither how many there are nor what they are called. Give a whole number or a list of names."
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
    """Return the results of `read` for all cells; an error carries the position of the cell."""
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
    """Return the votes of an ``(n, m)`` table, all of one size within a row, as one batch.

    Errors carry a position in the table. `uneven` is the message for different sizes, with placeholders for the size of
    the vote, that of the first vote of the row, and the first place that only one of them has.
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


def fill_up(labels: Batch, observed: BoolArray, least: int = 0) -> Batch:
    """Return votes ``(n, m, length)`` of integers, `ABSENT` where there is none.

    Tables of different lengths that were put together hold one array per cell; a table without a vote holds anything.
    """
    if labels.ndim == 3 and labels.dtype != object:
        return labels if observed.all() else np.where(observed[:, :, None], labels, labels.dtype.type(ABSENT))
    cells = [np.asarray(cell) for cell in labels[observed]]
    width = max(map(len, cells), default=least)
    table = np.full((*observed.shape, width), ABSENT, dtype=cells[0].dtype if cells else np.int8)
    for row, column, cell in zip(*np.nonzero(observed), cells, strict=True):
        table[row, column, : len(cell)] = cell
    return table


def first_few(names: Sequence[Any], most: int = 6) -> str:
    """Return the first names, for messages."""
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def arrow_column(values: list[Any]) -> pa.Array:
    """Return values as an Arrow column; as text if they have several types, or are numbers beyond 64 bits.

    Half of a surrogate pair cannot be encoded and is replaced.
    """
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeEncodeError):
        texts = (None if value is None else str(value) for value in values)
        return pa.array([None if text is None else text.encode(errors="replace").decode() for text in texts])


def plain_value(value: Any) -> Any:
    """Return a Python number instead of a NumPy one."""
    return value.item() if isinstance(value, np.generic) else value


def is_listed(value: Any) -> bool:
    """Return whether a value is a list, a tuple or an array."""
    return isinstance(value, (list, tuple)) or np.ndim(value) > 0


def checked_names(setting: str, names: Any, noun: str, example: str) -> tuple[str, ...] | None:
    """Return the names of a setting such as ``classes=`` as a tuple, or raise an error; None stays None."""
    if names is None:
        return None
    if not is_listed(names):
        raise InvalidLabelError(f"{setting}={names!r} is not a list of names. Give one such as {example}.")
    found = tuple(str(name) if isinstance(name, np.str_) else name for name in names)
    unfit = next((name for name in found if not isinstance(name, str) or not name), None)
    if not found or unfit is not None:
        raise InvalidLabelError(f"{setting} holds {unfit!r}. Give at least one name; names are text and not empty.")
    refuse_twice(found, noun)
    return found


def refuse_twice(names: Sequence[Any], noun: str) -> None:
    """Refuse a list that has a name twice."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidLabelError(f"{noun} {twice!r} is named twice. Name each one once.")
