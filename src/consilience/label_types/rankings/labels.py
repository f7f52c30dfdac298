"""Rankings as users write them, and as positions: items by number or name, orders of names, positions without gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, as_object_array
from consilience.exceptions import InvalidLabelError
from consilience.label_types.codes import plain_value

__all__ = [
    "ABSENT",
    "MOST_ITEMS",
    "UNSEEN",
    "ItemCodes",
    "Positions",
    "RankingReader",
    "dense_positions",
    "of_width",
    "order_of_text",
    "pair_order",
    "rank_items",
    "read_each",
    "read_orders",
]

Positions = npt.NDArray[np.int16]

#: Position of an item that the source did not see.
UNSEEN = -1
#: Position of an item that the row does not have, where rows differ in their number of items.
ABSENT = -2
#: The most items whose positions fit the type.
MOST_ITEMS = 32767

_GROUPS = (tuple, set, frozenset)


@dataclass(frozen=True)
class ItemCodes:
    """The numbers of items that are given by number or by name; None where their number or names are not known."""

    number: int | None
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, items: int | Iterable[str] | None) -> ItemCodes:
        """Return the codes of this many items, or of items with these names, or say what is wrong with them."""
        if items is None:
            return cls(None, None)
        if isinstance(items, (int, np.integer)) and not isinstance(items, bool):
            if not 2 <= items <= MOST_ITEMS:
                raise InvalidLabelError(f"items={items}: a ranking has 2 to {MOST_ITEMS} items.")
            return cls(int(items), None)
        if isinstance(items, (bool, str, bytes)) or not isinstance(items, Iterable):
            raise InvalidLabelError(
                f"items={items!r} says neither how many items there are nor how they are called. "
                "Give a whole number or a list of names."
            )
        names = tuple(plain_value(name) for name in items)
        for place, name in enumerate(names):
            if not isinstance(name, str):
                raise InvalidLabelError(f"An item cannot be called {name!r}. Names are text.")
            if name in names[:place]:
                raise InvalidLabelError(f"Item {name!r} is named twice. Name each one once.")
        return cls(cls.of(len(names)).number, names)

    @cached_property
    def by_name(self) -> dict[str, int]:
        """Numbers of the items that have names."""
        return {name: code for code, name in enumerate(self.names or ())}

    def find(self, item: Any) -> int:
        """Return the number of an item."""
        if self.names is not None and isinstance(item, str):
            if item not in self.by_name:
                shown = ", ".join(map(repr, self.names[:6])) + (", ..." if len(self.names) > 6 else "")
                raise InvalidLabelError(f"item {item!r} is unknown; known are {shown}. Correct the name, or add it.")
            return self.by_name[item]
        whole = isinstance(item, (int, np.integer)) and not isinstance(item, bool)
        if not whole or item < 0 or item >= (self.number or MOST_ITEMS):
            known = "0, 1, ..." if self.number is None else f"0 .. {self.number - 1}"
            hint = "To use names, pass items=[...]." if isinstance(item, str) else "Correct it, or declare more items."
            raise InvalidLabelError(f"item {plain_value(item)!r} is not one of the items {known}. {hint}")
        return int(item)

    def name(self, code: int) -> str | int:
        """Return what an item is called: its name, or its number where it has none."""
        return code if self.names is None else self.names[code]

    def groups(self, order: Any) -> list[list[int]]:
        """Return the numbers of the items of an order, best first, one list per group of ties; none for None."""
        if order is None:
            return []
        if not isinstance(order, (list, tuple, np.ndarray)):
            raise InvalidLabelError(f"{order!r} is not an order. Give a list of items, best first.")
        entries = [entry if isinstance(entry, _GROUPS) else (entry,) for entry in order]
        groups = [[self.find(item) for item in entry] for entry in entries if len(entry)]
        listed = [item for group in groups for item in group]
        if not listed:
            raise InvalidLabelError("the order is empty. Use None where a source does not rank anything.")
        if len(set(listed)) < len(listed):
            twice = next(item for item in listed if listed.count(item) > 1)
            raise InvalidLabelError(f"item {self.name(twice)!r} is listed twice. List each item once; ties are tuples.")
        return groups


def order_of_text(text: str) -> list[Any]:
    """Return an order written as text, best first; names that are tied as a tuple.

    Examples
    --------
    >>> order_of_text("tea > milk = juice > water")
    ['tea', ('milk', 'juice'), 'water']
    """
    groups = [[name.strip() for name in group.split("=")] for group in text.split(">")]
    if not all(name for group in groups for name in group):
        raise InvalidLabelError(f"the order {text!r} has a gap. Write it as 'a > b = c': best first, = for ties.")
    return [tuple(group) if len(group) > 1 else group[0] for group in groups]


def read_each(cells: Iterable[Any], read: Callable[[Any], Any]) -> list[Any]:
    """Return what `read` makes of every cell; an error carries the position of the cell."""
    result = []
    for index, cell in enumerate(cells):
        try:
            result.append(read(cell))
        except InvalidLabelError as error:
            raise InvalidLabelError(str(error), index) from None
    return result


def read_orders(cells: Batch) -> Batch:
    """Return cells in which orders such as ``a > b = c`` are lists of names; whatever is not text stays as it is."""
    return as_object_array(read_each(cells, lambda cell: order_of_text(cell) if isinstance(cell, str) else cell))


def rank_items(keys: npt.NDArray[Any], kept: BoolArray, other: int | npt.NDArray[Any]) -> Positions:
    """Return the place of each key among the kept ones of its row, smallest first; `other` elsewhere.

    Examples
    --------
    >>> rank_items(np.array([[0.7, 0.2, 0.5]]), np.array([[True, False, True]]), -1)
    array([[ 1, -1,  0]], dtype=int16)
    """
    order = np.lexsort((keys, ~kept), axis=-1)
    return np.where(kept, np.argsort(order, axis=-1), other).astype(np.int16)


def pair_order(positions: Batch) -> npt.NDArray[np.int8]:
    """Return 1 for each pair of items i < j of which i comes first, -1 if j does, 0 if they are not in an order."""
    left, right = np.triu_indices(positions.shape[1], 1)
    one, two = positions[:, left], positions[:, right]
    return np.where((one >= 0) & (two >= 0), np.sign(two - one), 0).astype(np.int8)


def of_width(table: Batch, width: int) -> Positions:
    """Return rankings padded, or cut, to a number of items."""
    result = np.full((len(table), width), ABSENT, dtype=np.int16)
    result[:, : table.shape[1]] = table[:, :width]
    return result


# --- positions without gaps -------------------------------------------------------------------------------


def dense_positions(table: Batch, *, allow_ties: bool) -> Positions:
    """Return positions without gaps, in an array of their own, or name the first row that is not a ranking.

    Parameters
    ----------
    table
        ``(n, r)`` whole numbers; -1 is unseen, -2 is not an item of this row. Two ways of counting are understood: the
        group behind a tie follows at once (0, 1, 1, 2), or skips one place per tied item (0, 1, 1, 3).
    """
    quick = _dense_already(table, allow_ties)
    if quick is not None:
        return quick
    below = np.asarray((table < ABSENT).any(axis=1))
    _refuse(table, below, "holds a position below -1", "Positions count from 0; -1 is not seen")
    seen = table >= 0
    count = seen.sum(axis=1)
    step = "Use None where a source abstains, or observed=(positions >= 0).any(axis=-1) in Votes.from_array"
    _refuse(table, count == 0, "ranks no item", step)
    _refuse_gaps(table, (table >= count[:, None]).any(axis=1))
    small: Positions = table.astype(np.int16)
    order = np.argsort(np.where(seen, small, np.int16(MOST_ITEMS)), axis=1, kind="stable")
    ordered = np.take_along_axis(small, order, axis=1)
    place = np.arange(1, table.shape[1])
    step_up = np.where(place < count[:, None], np.diff(ordered, axis=1), 1)
    tied = step_up == 0
    if not allow_ties:
        step = "Make its positions different, or allow ties: Rankings(..., allow_ties=True)"
        _refuse(table, tied.any(axis=1), "repeats a position", step)
    dense = (step_up <= 1).all(axis=1)
    skipping = (tied | (ordered[:, 1:] == place) | (place >= count[:, None])).all(axis=1)
    _refuse_gaps(table, (ordered[:, 0] != 0) | ~(dense | skipping))
    rank = np.zeros_like(small)
    np.put_along_axis(rank, order[:, 1:], np.cumsum(step_up > 0, axis=1).astype(np.int16), axis=1)
    return np.where(seen, rank, small)


def _dense_already(table: Batch, allow_ties: bool) -> Positions | None:
    """Return the positions if all rows are dense, found without sorting; None if one may not be, or for many items."""
    r = table.shape[1]
    if not 0 < r < 64 or len(table) == 0 or table.min() < ABSENT or table.max() >= r:
        return None
    small: Positions = table.astype(np.int16)
    bit = np.zeros(r + 2, dtype=np.uint64)  # its last two are those of the positions -1 and -2
    bit[:r] = np.uint64(1) << np.arange(r, dtype=np.uint64)
    taken = np.zeros(len(table), dtype=np.uint64)
    for column in small.T:
        taken |= bit[column]
    if np.any((taken & (taken + np.uint64(1))) != 0) or not taken.all():
        return None
    if not allow_ties and np.any(np.bitwise_count(taken) < (small >= 0).sum(axis=1)):
        return None
    return small


def _refuse_gaps(table: Batch, wrong: BoolArray) -> None:
    if not wrong.any():
        return
    row = table[int(np.flatnonzero(wrong)[0])]
    used = np.unique(row[row >= 0]).tolist()
    closes = "positions_from_scores(..., larger_is_better=False) closes them"
    if used[0] == 0:
        after = next(one for one, two in zip(used, [*used[1:], None], strict=True) if two != one + 1)
        _refuse(table, wrong, f"has a gap in its positions after {after}", f"Count without gaps; {closes}")
    step = f"Positions count from 0: subtract {used[0]}"
    if used[-1] - used[0] >= len(used):
        step = f"Positions count from 0 without gaps: {closes}"
    _refuse(table, wrong, f"has nothing at position 0, its best is {used[0]}", step)


def _refuse(table: Batch, wrong: BoolArray, fact: str, step: str) -> None:
    """Raise an error about the first wrong ranking, if there is one."""
    if not wrong.any():
        return
    index = int(np.flatnonzero(wrong)[0])
    shown = table[index][table[index] != ABSENT].tolist()
    text = str(shown) if len(shown) <= 24 else f"{str(shown[:24])[:-1]}, ...]"
    raise InvalidLabelError(f"ranking {text} {fact}. {step}.", index)


# --- labels as users write them ---------------------------------------------------------------------------


@dataclass(frozen=True)
class RankingReader:
    """Turns labels into a table of whole numbers, one column per item, or says which label is wrong.

    Rows may have fewer items than `codes` where they are ragged.
    """

    codes: ItemCodes
    ragged: bool

    def read(self, labels: Any) -> Batch:
        """Return ``(n, r)`` whole numbers: positions, -1 for unseen, -2 for no item of this row."""
        array = labels if isinstance(labels, np.ndarray) else as_object_array(labels)
        if array.ndim == 2 and array.dtype.kind in "iuf":
            table = array
        elif array.ndim in (1, 2):
            table = self._from_cells(array.tolist())
        else:
            raise InvalidLabelError(f"labels of shape {array.shape[1:]} are not rankings. Give {self._expected}.", 0)
        if table.dtype.kind == "f":
            wrong = (~(np.abs(table) <= MOST_ITEMS) | (table != np.round(table))).any(axis=1)
            step = (
                "Positions are 0, 1, ...; write -1 for an item that is not seen. Rankings.positions_from_scores ranks "
                "by score"
            )
            _refuse(table, wrong, "holds a number that is not a position", step)
            table = table.astype(np.int64)
        return self._sized(table)

    @property
    def _expected(self) -> str:
        if self.ragged:
            return "a list with the position of each item"
        names = ", or a list of their names, best first" if self.codes.names is not None else ""
        return f"the positions of {self.codes.number} items{names}"

    def _from_cells(self, cells: list[Any]) -> Batch:
        """Return ``(n, longest)`` positions of labels that may be lists, arrays, orders of names, or dicts."""
        flat = _flat_numbers(cells)
        if flat is None:
            cells = read_each(cells, self._positions_of)
            flat = np.array([float(value) for row in cells for value in row])
        sizes = np.array([len(cell) for cell in cells], dtype=np.int64)
        if not sizes.all():
            index = int(np.flatnonzero(sizes == 0)[0])
            raise InvalidLabelError("the ranking is empty. Use None where a source abstains.", index)
        if not self.ragged:
            self._refuse_sizes(sizes, sizes != self.codes.number)
        width = int(sizes.max(initial=0))
        table = np.full((len(cells), width), ABSENT, dtype=flat.dtype if flat.dtype.kind == "f" else np.int64)
        table[np.arange(width) < sizes[:, None]] = flat
        return table

    def _positions_of(self, cell: Any) -> Sequence[Any]:
        if _is_compared(cell):
            raise InvalidLabelError(
                f"label {str(cell)[:80]} holds comparisons of two items at a time, which may go round in circles and "
                "depend on the order shown. Use Preferences, with tables.read_preferences(table, by=...) for one "
                "ranking per row."
            )
        if isinstance(cell, dict):
            return self._by_name(cell)
        if not isinstance(cell, (list, tuple, np.ndarray)):
            raise InvalidLabelError(
                f"label {plain_value(cell)!r} is not a ranking. Give {self._expected}, for each row and source."
            )
        entries = [plain_value(entry) for entry in cell]
        if any(isinstance(entry, (str, *_GROUPS)) for entry in entries):
            return self._by_order(entries)
        wrong = [entry for entry in entries if not _is_number(entry)]
        if wrong:
            raise InvalidLabelError(f"label {str(entries)[:80]} holds {wrong[0]!r}, which is not a position.")
        return entries

    def _by_order(self, entries: list[Any]) -> list[int]:
        if self.codes.names is None:
            raise InvalidLabelError(
                f"label {str(entries)[:80]} is an order, not a list of positions. To use names, say Rankings([...]); "
                "Rankings.positions_from_orders turns orders into positions."
            )
        place_of = {item: place for place, group in enumerate(self.codes.groups(entries)) for item in group}
        return [place_of.get(item, UNSEEN) for item in range(len(self.codes.names))]

    def _by_name(self, cell: dict[Any, Any]) -> list[Any]:
        if self.codes.names is None:
            raise InvalidLabelError(
                f"label {str(cell)[:80]} is a dict, but the items have no names. Say Rankings([...])."
            )
        positions: list[Any] = [UNSEEN] * len(self.codes.names)
        for name, position in cell.items():
            position = plain_value(position)
            if not _is_number(position):
                raise InvalidLabelError(f"item {name!r} is at {position!r}, which is not a position.")
            positions[self.codes.find(name)] = position
        return positions

    def _sized(self, table: Batch) -> Batch:
        """Return positions with as many columns as there are items, or say which row has too few or too many."""
        n, width = table.shape
        number = self.codes.number
        if not n:
            return np.zeros((0, number or max(width, 1)), dtype=table.dtype)
        exists = table != ABSENT
        if not self.ragged:
            self._refuse_sizes(np.full(n, width), np.full(n, width != number))
            if not exists.all():
                step = "-1 is not seen; -2 says that a row has no such item, which is possible with ragged=True only"
                _refuse(table, ~exists.all(axis=1), "holds a position below -1", step)
            return table
        sizes = exists.sum(axis=1)
        inner = (exists != (np.arange(width) < sizes[:, None])).any(axis=1)
        if inner.any():
            index = int(np.flatnonzero(inner)[0])
            raise InvalidLabelError(
                f"ranking {table[index].tolist()} has -2 before its end. Write -1 for an item that is not seen.", index
            )
        if number is None:
            return table  # with its padding: the parts of a large table keep one width
        self._refuse_sizes(sizes, sizes > number)
        grown = np.full((n, number), ABSENT, dtype=np.int64)
        grown[:, :width] = table[:, :number]
        return grown

    def _refuse_sizes(self, sizes: npt.NDArray[np.int64], wrong: BoolArray) -> None:
        if not wrong.any():
            return
        index = int(np.flatnonzero(wrong)[0])
        size, declared = int(sizes[index]), self.codes.number or 0
        at_most = "at most " if self.ragged else ""
        if size > declared:
            step = f"Declare them: Rankings({size}{', ragged=True' if self.ragged else ''})."
        else:
            step = "Write -1 for items that are not seen, or say ragged=True where rows differ in their items."
        raise InvalidLabelError(f"the ranking has {size} items; expected {at_most}{declared}. {step}", index)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_compared(cell: Any) -> bool:
    """Return whether a label holds comparisons: a table of them, or records with a first and a second item."""
    if getattr(cell, "outcome", None) is not None:
        return True
    return isinstance(cell, (list, tuple)) and any(isinstance(one, dict) and "first" in one for one in cell)


def _flat_numbers(cells: list[Any]) -> Batch | None:
    """Return the numbers of all cells in one array, or None where a cell is anything but a list of numbers."""
    kinds = set(map(type, cells))
    if not kinds <= {list, tuple, np.ndarray}:
        return None
    try:
        arrays = kinds == {np.ndarray}
        flat = np.concatenate(cells) if arrays else np.array(list(chain.from_iterable(cells)))
    except (ValueError, TypeError, OverflowError):
        return None
    return flat if flat.ndim == 1 and flat.dtype.kind in "iuf" else None
