"""What the parts of a ranking are: items by number or name, and positions that leave no gap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray
from consilience.exceptions import InvalidLabelError
from consilience.label_types.codes import plain_value

__all__ = ["ABSENT", "MOST_ITEMS", "UNSEEN", "ItemCodes", "Positions", "dense_positions"]

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
    """The numbers of items that are given by number or by name.

    Parameters
    ----------
    number
        How many items there are; None if that is not known.
    names
        Their names; None if they have none.
    """

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
        names = [plain_value(name) for name in items]
        known: set[str] = set()
        for name in names:
            if not isinstance(name, str):
                raise InvalidLabelError(f"An item cannot be called {name!r}. Names are text.")
            if name in known:
                raise InvalidLabelError(f"Item {name!r} is named twice. Name each one once.")
            known.add(name)
        return cls(cls.of(len(names)).number, tuple(names))

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


def dense_positions(table: Batch, *, allow_ties: bool) -> Positions:
    """Return positions without gaps, in an array of their own, or name the first row that is no ranking.

    Parameters
    ----------
    table
        ``(n, r)`` whole numbers; -1 is unseen, -2 is no item of this row. Two ways of counting are understood: the
        group behind a tie follows at once (0, 1, 1, 2), or skips one place per tied item (0, 1, 1, 3).
    """
    quick = _dense_already(table, allow_ties)
    if quick is not None:
        return quick
    negative: BoolArray = np.asarray((table < ABSENT).any(axis=1))
    if negative.any():
        raise _error(table, negative, "holds a position below -1", "Positions count from 0; -1 is not seen")
    seen = table >= 0
    count = seen.sum(axis=1)
    if not count.all():
        step = "Use None where a source abstains, or observed=(positions >= 0).any(axis=-1) in Votes.from_array"
        raise _error(table, count == 0, "ranks no item", step)
    far = (table >= count[:, None]).any(axis=1)
    if far.any():
        raise _gap(table, far)
    r = table.shape[1]
    small: Positions = table.astype(np.int16)
    ordered = np.sort(np.where(seen, small, np.int16(MOST_ITEMS)), axis=1)
    inside = np.arange(1, r) < count[:, None]
    step_up = np.diff(ordered, axis=1)
    tied = (step_up == 0) & inside
    if not allow_ties and tied.any():
        step = "Make its positions different, or allow ties: Rankings(..., allow_ties=True)"
        raise _error(table, tied.any(axis=1), "repeats a position", step)
    dense = ((step_up <= 1) | ~inside).all(axis=1)
    skipping = (tied | (ordered[:, 1:] == np.arange(1, r)) | ~inside).all(axis=1)
    wrong = (ordered[:, 0] != 0) | ~(dense | skipping)
    if wrong.any():
        raise _gap(table, wrong)
    rows = np.flatnonzero(~dense)
    if len(rows):
        small[rows] = _closed_up(small[rows], ordered[rows])
    return small


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


def _closed_up(positions: Positions, ordered: Positions) -> Positions:
    """Number the distinct positions of each row."""
    rank = np.concatenate([np.zeros((len(ordered), 1)), np.cumsum(np.diff(ordered, axis=1) > 0, axis=1)], axis=1)
    result = positions.copy()
    np.put_along_axis(result, _stable_order(positions), rank.astype(np.int16), axis=1)
    return np.where(positions >= 0, result, positions)


def _stable_order(positions: Positions) -> npt.NDArray[np.int64]:
    order: npt.NDArray[np.int64] = np.argsort(
        np.where(positions >= 0, positions, np.int16(MOST_ITEMS)), axis=1, kind="stable"
    )
    return order


def _gap(table: Batch, wrong: BoolArray) -> InvalidLabelError:
    row = table[int(np.flatnonzero(wrong)[0])]
    used = np.unique(row[row >= 0]).tolist()
    if used[0] > 0:
        fact, step = f"has nothing at position 0, its best is {used[0]}", f"Positions count from 0: subtract {used[0]}"
        if len(used) > 1 and used != list(range(used[0], used[0] + len(used))):
            step = "Positions count from 0 without gaps: positions_from_scores(..., larger_is_better=False) closes them"
    else:
        after = next(one for one, two in zip(used, [*used[1:], None], strict=True) if two != one + 1)
        fact = f"has a gap in its positions after {after}"
        step = "Count without gaps; positions_from_scores(..., larger_is_better=False) closes them"
    return _error(table, wrong, fact, step)


def _error(table: Batch, wrong: BoolArray, fact: str, step: str) -> InvalidLabelError:
    index = int(np.flatnonzero(wrong)[0])
    row = table[index]
    shown: Sequence[int] = row[row != ABSENT].tolist()
    text = str(shown) if len(shown) <= 24 else f"{str(shown[:24])[:-1]}, ...]"
    return InvalidLabelError(f"ranking {text} {fact}. {step}.", index)
