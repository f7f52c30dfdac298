"""Rankings as users write them: arrays and lists of positions, orders of names, dicts of positions by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from consilience.arrays import Batch, as_object_array
from consilience.exceptions import InvalidLabelError
from consilience.label_types.preferences.comparisons import Comparisons
from consilience.label_types.codes import plain_value
from consilience.spaces.ranking_items import ABSENT, MOST_ITEMS, UNSEEN, ItemCodes

__all__ = ["RankingReader", "order_of_text"]


@dataclass(frozen=True)
class RankingReader:
    """Turns labels into a table of whole numbers, one column per item, or says which label is wrong.

    Parameters
    ----------
    codes
        Number and names of the items.
    ragged
        Whether rows may have fewer items than that.
    """

    codes: ItemCodes
    ragged: bool

    def read(self, labels: Any) -> Batch:
        """Return ``(n, r)`` whole numbers: positions, -1 for unseen, -2 for no item of this row."""
        array = labels if isinstance(labels, np.ndarray) else as_object_array(labels)
        if array.ndim == 2 and array.dtype.kind in "iuf":
            table = array
        elif array.ndim == 2:
            table = self._from_cells(as_object_array(array.tolist()))
        elif array.ndim == 1:
            table = self._from_cells(array)
        else:
            raise InvalidLabelError(f"labels of shape {array.shape[1:]} are no rankings. Give {self._expected}.", 0)
        return self._sized(_whole(table))

    @property
    def _expected(self) -> str:
        if self.ragged:
            return "a list with the position of each item"
        names = ", or a list of their names, best first" if self.codes.names is not None else ""
        return f"the positions of {self.codes.number} items{names}"

    def _from_cells(self, cells: Batch) -> Batch:
        """Return ``(n, longest)`` positions of labels that may be lists, arrays, orders of names, or dicts."""
        listed = cells.tolist()
        flat = _flat_numbers(listed)
        if flat is None:
            listed = [self._positions_of(cell, index) for index, cell in enumerate(listed)]
            flat = np.array([float(value) for row in listed for value in row])
        sizes = np.array([len(cell) for cell in listed], dtype=np.int64)
        if not sizes.all():
            raise InvalidLabelError(
                "the ranking is empty. Use None where a source abstains.", int(np.flatnonzero(sizes == 0)[0])
            )
        if not self.ragged and np.any(sizes != self.codes.number):
            index = int(np.flatnonzero(sizes != self.codes.number)[0])
            raise self._wrong_size(int(sizes[index]), index)
        width = int(sizes.max(initial=0))
        table = np.full((len(cells), width), ABSENT, dtype=flat.dtype if flat.dtype.kind == "f" else np.int64)
        table[np.arange(width) < sizes[:, None]] = flat
        return table

    def _positions_of(self, cell: Any, index: int) -> Sequence[Any]:
        try:
            if isinstance(cell, Comparisons) or _is_compared(cell):
                raise InvalidLabelError(
                    f"label {str(cell)[:80]} holds comparisons of two items at a time, which may go round in circles "
                    "and depend on the order shown. Use Preferences, with cs.read_preferences(table, by=...) for one "
                    "ranking per row."
                )
            if isinstance(cell, dict):
                return self._by_name(cell)
            if not isinstance(cell, (list, tuple, np.ndarray)):
                raise InvalidLabelError(
                    f"label {plain_value(cell)!r} is no ranking. Give {self._expected}, for each row and source."
                )
            entries = [plain_value(entry) for entry in cell]
            if any(isinstance(entry, (str, tuple, set, frozenset)) for entry in entries):
                return self._by_order(entries)
        except InvalidLabelError as error:
            raise InvalidLabelError(str(error), index) from None
        wrong = [entry for entry in entries if isinstance(entry, bool) or not isinstance(entry, (int, float))]
        if wrong:
            raise InvalidLabelError(f"label {str(entries)[:80]} holds {wrong[0]!r}, which is no position.", index)
        return entries

    def _by_order(self, entries: list[Any]) -> list[int]:
        if self.codes.names is None:
            raise InvalidLabelError(
                f"label {str(entries)[:80]} is an order, not a list of positions. To use names, say Rankings([...]); "
                "Rankings.positions_from_orders turns orders into positions."
            )
        positions = [UNSEEN] * len(self.codes.names)
        for place, group in enumerate(self.codes.groups(entries)):
            for item in group:
                positions[item] = place
        return positions

    def _by_name(self, cell: dict[Any, Any]) -> list[Any]:
        if self.codes.names is None:
            raise InvalidLabelError(
                f"label {str(cell)[:80]} is a dict, but the items have no names. Say Rankings([...])."
            )
        positions: list[Any] = [UNSEEN] * len(self.codes.names)
        for name, position in cell.items():
            position = plain_value(position)
            if isinstance(position, bool) or not isinstance(position, (int, float)):
                raise InvalidLabelError(f"item {name!r} is at {position!r}, which is no position.")
            positions[self.codes.find(name)] = position
        return positions

    def _sized(self, table: Batch) -> Batch:
        """Return positions with as many columns as there are items, or say which row has too few or too many."""
        width = table.shape[1]
        if not len(table):
            return np.zeros((0, self.codes.number or max(width, 1)), dtype=table.dtype)
        if not self.ragged:
            if width != self.codes.number:
                raise self._wrong_size(width, 0)
            padded = table == ABSENT
            if padded.any():
                index = int(np.argwhere(padded)[0, 0])
                raise InvalidLabelError(
                    f"ranking {table[index].tolist()} holds a position below -1. -1 is not seen; -2 says that a row "
                    "has no such item, which is possible with ragged=True only.",
                    index,
                )
            return table
        exists = table != ABSENT
        sizes = exists.sum(axis=1)
        inner = (exists != (np.arange(width) < sizes[:, None])).any(axis=1)
        if inner.any():
            index = int(np.flatnonzero(inner)[0])
            raise InvalidLabelError(
                f"ranking {table[index].tolist()} has -2 before its end. Write -1 for an item that is not seen.", index
            )
        if self.codes.number is None:
            return table  # with its padding: the parts of a large table keep one width
        if np.any(sizes > self.codes.number):
            index = int(np.flatnonzero(sizes > self.codes.number)[0])
            raise self._wrong_size(int(sizes[index]), index)
        grown = np.full((len(table), self.codes.number), ABSENT, dtype=np.int64)
        shared = min(width, self.codes.number)
        grown[:, :shared] = table[:, :shared]
        return grown

    def _wrong_size(self, size: int, index: int) -> InvalidLabelError:
        declared = self.codes.number or 0
        at_most = "at most " if self.ragged else ""
        if size > declared:
            step = f"Declare them: Rankings({size}{', ragged=True' if self.ragged else ''})."
        else:
            step = "Write -1 for items that are not seen, or say ragged=True where rows differ in their items."
        return InvalidLabelError(f"the ranking has {size} items; expected {at_most}{declared}. {step}", index)


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


def _is_compared(cell: Any) -> bool:
    """Return whether a label is a list of records with a first and a second item."""
    return isinstance(cell, (list, tuple)) and any(isinstance(one, dict) and "first" in one for one in cell)


def _whole(table: Batch) -> Batch:
    if table.dtype.kind != "f":
        return table
    wrong = (~(np.abs(table) <= MOST_ITEMS) | (table != np.round(table))).any(axis=1)
    if wrong.any():
        index = int(np.flatnonzero(wrong)[0])
        raise InvalidLabelError(
            f"ranking {table[index].tolist()} holds a number that is no position. Positions are 0, 1, ...; write -1 "
            "for an item that is not seen. Rankings.positions_from_scores ranks by score.",
            index,
        )
    return table.astype(np.int64)


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
