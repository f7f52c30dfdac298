"""Rankings as users write them, and as positions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, IntArray, as_object_array
from consilience.exceptions import InvalidLabelError
from consilience.label_types.codes import ABSENT, first_few, plain_value, read_each, read_names

Positions = npt.NDArray[np.int16]

#: Position of an item that the source did not see.
UNSEEN = -1
#: The largest number of items whose positions fit the type.
MOST_ITEMS = 32767

_GROUPS = (tuple, set, frozenset)
_IN_ORDERS = (str, *_GROUPS)


@dataclass(frozen=True)
class ItemCodes:
    """The number and names of items, each None if unknown."""

    number: int | None
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, items: int | Iterable[str] | None) -> ItemCodes:
        """Return the codes of so many items, or of items with these names, or raise an error."""
        if items is None:
            return cls(None, None)
        names, number = read_names(items, "item", f"items={items!r}", text=True)
        if not 2 <= number <= MOST_ITEMS:
            raise InvalidLabelError(f"items={number}: a ranking has 2 to {MOST_ITEMS} items.")
        return cls(number, names)

    @cached_property
    def by_name(self) -> dict[str, int]:
        """Numbers of the items that have names."""
        return {name: code for code, name in enumerate(self.names or ())}

    def find(self, item: Any) -> int:
        """Return the number of an item."""
        if self.names is not None and isinstance(item, str):
            if item not in self.by_name:
                known = first_few(self.names)
                raise InvalidLabelError(f"item {item!r} is unknown; known are {known}. Correct the name, or add it.")
            return self.by_name[item]
        whole = isinstance(item, (int, np.integer)) and not isinstance(item, bool)
        if not whole or item < 0 or item >= (self.number or MOST_ITEMS):
            known = "0, 1, ..." if self.number is None else f"0 .. {self.number - 1}"
            hint = "To use names, pass items=[...]." if isinstance(item, str) else "Correct it, or declare more items."
            raise InvalidLabelError(f"item {plain_value(item)!r} is not one of the items {known}. {hint}")
        return int(item)

    def name(self, code: int) -> str | int:
        """Return the name of an item, or else its number."""
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
            raise InvalidLabelError("the order is empty. Use None if a source does not rank anything.")
        if len(set(listed)) < len(listed):
            twice = next(item for item in listed if listed.count(item) > 1)
            raise InvalidLabelError(f"item {self.name(twice)!r} is listed twice. List each item once; ties are tuples.")
        return groups

    def positions(self, order: Any) -> list[int]:
        """Return one position per item; items that the order leaves out are not seen."""
        place_of = {item: place for place, group in enumerate(self.groups(order)) for item in group}
        return [place_of.get(item, UNSEEN) for item in range(self.number or 0)]


class NamedOrder(list[Any]):
    """An order of names, best first, with all names of its row; names that it leaves out are not seen."""

    def __init__(self, order: Iterable[Any], names: tuple[str, ...]) -> None:
        super().__init__(order)
        self.names = names


def order_of(positions: Iterable[int], names: tuple[str, ...]) -> list[Any]:
    """Return the order of names at these positions; tied ones as a tuple."""
    groups: dict[int, list[str]] = {}
    for name, place in zip(names, positions, strict=False):
        if place >= 0:
            groups.setdefault(int(place), []).append(name)
    return [tuple(own) if len(own) > 1 else own[0] for _, own in sorted(groups.items())]


def names_of(cell: Any) -> list[str]:
    """Return the names in an order, or in a dict of positions."""
    if isinstance(cell, NamedOrder):
        return list(cell.names)
    entries = cell if isinstance(cell, (list, tuple, dict)) else ()
    listed = [one for entry in entries for one in (entry if isinstance(entry, _GROUPS) else (entry,))]
    return [one for one in listed if isinstance(one, str)]


def with_names_of_rows(labels: Batch, names: Iterable[tuple[str, ...]]) -> Batch:
    """Return labels as orders of names that know the names of their row; positions become orders.

    Entries that are not names of the row are dropped.
    """

    def of_row(label: Any, own: tuple[str, ...]) -> Any:
        if not own or label is None:
            return label
        if isinstance(label, dict):
            label = order_of((plain_value(label.get(name, UNSEEN)) for name in own), own)
        elif not names_of(label):
            return NamedOrder(order_of(label, own), own)
        known = [tuple(one for one in (e if isinstance(e, _GROUPS) else (e,)) if one in own) for e in label]
        return NamedOrder((group if len(group) > 1 else group[0] for group in known if group), own)

    return as_object_array(of_row(label, own) for label, own in zip(labels, names, strict=True))


def order_of_text(text: str) -> list[Any]:
    """Return an order written as text (``tea > milk = juice``), best first, with ties as tuples."""
    groups = [[name.strip() for name in group.split("=")] for group in text.split(">")]
    if not all(name for group in groups for name in group):
        raise InvalidLabelError(f"the order {text!r} has a gap. Write it as 'a > b = c': best first, = for ties.")
    return [tuple(group) if len(group) > 1 else group[0] for group in groups]


def read_orders(cells: Batch) -> Batch:
    """Return cells with orders such as ``a > b = c`` as lists of names; other cells stay as they are."""
    return as_object_array(read_each(cells, lambda cell: order_of_text(cell) if isinstance(cell, str) else cell))


def rank_items(keys: npt.NDArray[Any], kept: BoolArray, other: int | npt.NDArray[Any]) -> Positions:
    """Return the rank of each key among the kept ones of its row, smallest first; `other` for the rest."""
    order = np.lexsort((keys, ~kept), axis=-1)
    return np.where(kept, np.argsort(order, axis=-1), other).astype(np.int16)


def pair_order(positions: Batch) -> npt.NDArray[np.int8]:
    """Return 1 for each pair of items i < j with i first, -1 with j first, 0 if they are not ordered."""
    left, right = np.triu_indices(positions.shape[-1], 1)
    one, two = positions[..., left], positions[..., right]
    return ((one >= 0) & (one < two)).view(np.int8) - ((two >= 0) & (two < one)).view(np.int8)


def of_width(table: Batch, width: int) -> Batch:
    """Return rankings padded, or cut, to a number of items."""
    result = np.full((len(table), width), ABSENT, dtype=table.dtype)
    result[:, : table.shape[1]] = table[:, :width]
    return result


def read_rankings(labels: Any, codes: ItemCodes, *, ragged: bool, allow_ties: bool) -> Positions:
    """Return positions without gaps ``(n, r)``, or raise an error about the first wrong label.

    If `ragged`, rows may have fewer items than `codes`, padded with -2. The position after a tie may follow at once
    (0, 1, 1, 2), or skip one place per tied item (0, 1, 1, 3).
    """
    expected = "a list with the position of each item"
    if not ragged:
        names = ", or a list of their names, best first" if codes.names is not None else ""
        expected = f"the positions of {codes.number} items{names}"
    array = labels if isinstance(labels, np.ndarray) else as_object_array(labels)
    if array.ndim == 2 and array.dtype.kind in "iuf":
        table, sizes = array, np.full(len(array), array.shape[1])
    elif array.ndim in (1, 2):
        table, sizes = _read_cells(array.tolist(), codes, expected)
    else:
        raise InvalidLabelError(f"labels of shape {array.shape[1:]} are not rankings. Give {expected}.", 0)
    if not len(table):
        return np.zeros((0, codes.number or max(table.shape[1], 1)), dtype=np.int16)
    if table.dtype.kind == "f":
        wrong = (~(np.abs(table) <= MOST_ITEMS) | (table != np.round(table))).any(axis=1)
        step = "Positions are 0, 1, ...; write -1 for an item that is not seen. Rankings.positions_from_scores ranks "
        _refuse(table, wrong, "holds a number that is not a position", step + "by score")
        table = table.astype(np.int64)
    exists = table != ABSENT
    if ragged:
        sizes = exists.sum(axis=1)
        inner = (exists != (np.arange(table.shape[1]) < sizes[:, None])).any(axis=1)
        _refuse(table, inner, "has -2 before its end", "Write -1 for an item that is not seen")
    if codes.number is not None:
        odd = sizes > codes.number if ragged else sizes != codes.number
        if odd.any():
            index = int(np.argmax(odd))
            step = "Write -1 for items that are not seen, or say ragged=True where rows differ in their items."
            if sizes[index] > codes.number:
                step = f"Declare them: Rankings({sizes[index]}{', ragged=True' if ragged else ''})."
            at_most = "at most " if ragged else ""
            fact = f"the ranking has {sizes[index]} items; expected {at_most}{codes.number}"
            raise InvalidLabelError(f"{fact}. {step}", index)
        table = of_width(table, codes.number) if ragged else table
    if not ragged and not exists.all():
        step = "-1 is not seen; -2 means that a row lacks the item, which is possible with ragged=True only"
        _refuse(table, ~exists.all(axis=1), "holds a position below -1", step)
    return _without_gaps(table, allow_ties)


def _read_cells(cells: list[Any], codes: ItemCodes, expected: str) -> tuple[Batch, IntArray]:
    """Return ``(n, longest)`` positions of labels given as lists, arrays, orders of names or dicts, and their sizes."""
    flat = _flat_numbers(cells)
    if flat is None:
        cells = read_each(cells, lambda cell: _read_cell(cell, codes, expected))
        flat = np.array([float(value) for row in cells for value in row])
    sizes = np.array([len(cell) for cell in cells], dtype=np.int64)
    if not sizes.all():
        raise InvalidLabelError("the ranking is empty. Use None if a source abstains.", int(np.argmin(sizes)))
    width = int(sizes.max(initial=0))
    table = np.full((len(cells), width), ABSENT, dtype=flat.dtype if flat.dtype.kind == "f" else np.int64)
    table[np.arange(width) < sizes[:, None]] = flat
    return table, sizes


def _flat_numbers(cells: list[Any]) -> Batch | None:
    """Return the numbers of all cells in one array, or None if a cell is not a list of numbers."""
    kinds = set(map(type, cells))
    if not kinds <= {list, tuple, np.ndarray}:
        return None
    try:
        flat = np.concatenate(cells) if kinds == {np.ndarray} else np.array(list(chain.from_iterable(cells)))
    except (ValueError, TypeError, OverflowError):
        return None
    return flat if flat.ndim == 1 and flat.dtype.kind in "iuf" else None


def _read_cell(cell: Any, codes: ItemCodes, expected: str) -> list[Any]:
    """Return one position per item from a list of positions, an order of names, or a dict."""
    records = isinstance(cell, (list, tuple)) and any(isinstance(one, dict) and "first" in one for one in cell)
    if records or getattr(cell, "outcome", None) is not None:
        raise InvalidLabelError(
            f"label {str(cell)[:80]} has comparisons of two items at a time, not a ranking. Use Preferences, with "
            "tables.read_preferences(table, by=...) for one ranking per row."
        )
    if isinstance(cell, dict):
        if codes.names is None:
            raise InvalidLabelError(
                f"label {str(cell)[:80]} is a dict, but the items have no names. Name them: Rankings([...])."
            )
        positions: list[Any] = [UNSEEN] * len(codes.names)
        for name, value in cell.items():
            position = plain_value(value)
            if not _is_number(position):
                raise InvalidLabelError(f"item {name!r} is at {position!r}, which is not a position.")
            positions[codes.find(name)] = position
        return positions
    if not isinstance(cell, (list, tuple, np.ndarray)):
        raise InvalidLabelError(
            f"label {plain_value(cell)!r} is not a ranking. Give {expected}, for each row and source."
        )
    entries = [plain_value(entry) for entry in cell]
    if codes.number is None:
        names = tuple(sorted(set(names_of(cell) or names_of(entries))))
        codes = ItemCodes(len(names), names) if names else codes
    if isinstance(cell, NamedOrder) or any(isinstance(entry, _IN_ORDERS) for entry in entries):
        if codes.names is None:
            raise InvalidLabelError(
                f"label {str(entries)[:80]} is an order, not a list of positions. Name the items: Rankings([...]), or "
                "convert orders with Rankings.positions_from_orders."
            )
        return codes.positions(entries)
    wrong = [entry for entry in entries if not _is_number(entry)]
    if wrong:
        raise InvalidLabelError(f"label {str(entries)[:80]} holds {wrong[0]!r}, which is not a position.")
    return entries


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _without_gaps(table: Batch, allow_ties: bool) -> Positions:
    """Return a copy of the positions in which each counts the better groups; gaps are refused."""
    n, r = table.shape
    if 0 < r < 64 and table.min() >= ABSENT and table.max() < r:
        # The fastest check: as a bit set, positions have no gaps if it is one less than a power of two.
        bit = np.append(np.uint64(1) << np.arange(r, dtype=np.uint64), np.zeros(2, dtype=np.uint64))
        small: Positions = table.astype(np.int16)
        used = np.zeros(n, dtype=np.uint64)
        for column in small.T:
            used |= bit[column]
        strict = allow_ties or bool((np.bitwise_count(used) == (table >= 0).sum(axis=1)).all())
        if strict and used.all() and not np.any(used & (used + np.uint64(1))):
            return small
    step = "Positions count from 0; -1 is not seen"
    _refuse(table, np.any(table < ABSENT, axis=1), "holds a position below -1", step)
    seen = table >= 0
    count = seen.sum(axis=1)
    step = "Use None if a source abstains, or observed=(positions >= 0).any(axis=-1) in Votes.from_array"
    _refuse(table, count == 0, "ranks no item", step)
    _refuse_gaps(table, (table >= count[:, None]).any(axis=1))
    whole = table.astype(np.int64)
    # The number of items at each position. Two more columns count items that are unseen or do not exist.
    cells = (r + 2) * np.arange(n)[:, None] + np.where(seen, whole, whole + r + 2)
    items_at = np.bincount(cells.ravel(), minlength=n * (r + 2)).reshape(n, r + 2)[:, :r]
    if not allow_ties:
        step = "Make its positions different, or allow ties: Rankings(..., allow_ties=True)"
        _refuse(table, np.any(items_at > 1, axis=1), "repeats a position", step)
    taken = items_at > 0
    rank, before = np.cumsum(taken, axis=1) - 1, np.cumsum(items_at, axis=1) - items_at
    off = [(taken & (counted != np.arange(r))).any(axis=1) for counted in (rank, before)]
    _refuse_gaps(table, off[0] & off[1])
    return np.where(seen, np.take_along_axis(rank, np.maximum(whole, 0), axis=1), whole).astype(np.int16)


def _refuse_gaps(table: Batch, wrong: BoolArray) -> None:
    if not wrong.any():
        return
    row = table[int(np.argmax(wrong))]
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
    index = int(np.argmax(wrong))
    shown = table[index].tolist()
    while shown and shown[-1] == ABSENT:
        shown.pop()
    text = str(shown) if len(shown) <= 24 else f"{str(shown[:24])[:-1]}, ...]"
    raise InvalidLabelError(f"ranking {text} {fact}. {step}.", index)
