"""Rankings from orders, scores, top-k lists, pairwise preferences and PrefLib text.

All functions return positions (int16; 0 = first, equal = tied, -1 = not seen), ready for `Votes.from_array`. An item
that a source did not see (-1) differs from one that it ranked below the others (tied last).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from consilience.arrays import as_floats
from consilience.exceptions import InvalidLabelError, UnsupportedError
from consilience.label_types.codes import read_each
from consilience.label_types.rankings.labels import MOST_ITEMS, UNSEEN, ItemCodes, Positions

_ORDERS = (list, tuple, np.ndarray)
#: Numbers of a PrefLib file fit into 64 bits.
MOST_DIGITS = 18


def positions_from_orders(orders: Any, items: int | Sequence[str] | None = None) -> Positions:
    """Return positions ``(n, r)`` from orders, best first: lists of item numbers or names, in which tuples are ties.

    Lists of lists of orders, or an object array of shape (n, m), have one order per row and source, and give
    ``(n, m, r)``. None gives positions of -1; pass ``observed=(positions >= 0).any(axis=-1)`` to `Votes.from_array`
    then.

    Parameters
    ----------
    items
        Number or names of all items; by default given by the largest item number. Items that an order leaves out are
        not seen; if they are ranked last, use `positions_from_top_k`.

    Examples
    --------
    >>> positions_from_orders([[2, 0, 1], [1, (0, 2)]])
    array([[1, 2, 0],
           [1, 0, 1]], dtype=int16)
    >>> positions_from_orders([["tea", "milk"]], items=["milk", "juice", "tea"])
    array([[ 1, -1,  0]], dtype=int16)
    """
    codes = ItemCodes.of(items)
    number = codes.number
    if isinstance(orders, np.ndarray) and orders.dtype.kind in "iu" and orders.ndim > 1:
        r = orders.shape[-1]
        if number in (None, r) and r <= MOST_ITEMS and (np.sort(orders, axis=-1) == np.arange(r)).all():
            return np.argsort(orders, axis=-1).astype(np.int16)
    cells, shape = _cells(orders)
    groups = _read_each(cells, shape, codes.groups)
    if number is None:
        number = 1 + max((item for order in groups for group in order for item in group), default=-1)
    table = np.full((len(cells), number), UNSEEN, dtype=np.int16)
    for row, order in zip(table, groups, strict=True):
        for position, group in enumerate(order):
            row[group] = position
    return table.reshape(*shape, number)


def positions_from_top_k(lists: Any, items: int | Sequence[str]) -> Positions:
    """Return positions from lists of the best items, given as in `positions_from_orders`; all others are tied last.

    A source that names its three favorites of seven has seen the other four. For items that it was not shown, set the
    positions to -1 afterwards.

    Examples
    --------
    >>> positions_from_top_k([[3, 1], [0]], 4)
    array([[2, 1, 2, 0],
           [0, 1, 1, 1]], dtype=int16)
    """
    table = positions_from_orders(lists, items)
    listed = table >= 0
    last = table.max(axis=-1, keepdims=True, initial=-1) + 1
    return np.where(listed | ~listed.any(axis=-1, keepdims=True), table, last).astype(np.int16)


def positions_from_scores(
    scores: npt.ArrayLike,
    *,
    larger_is_better: bool = True,
    tie_tolerance: float = 0.0,
    seen: npt.ArrayLike | None = None,
) -> Positions:
    """Return positions by score, from shape (n, r), or (n, m, r) for m sources.

    Parameters
    ----------
    tie_tolerance
        Items within this distance of the best one of their group are tied with it.
    seen
        Of the shape of the scores: False where a source did not see the item, whatever the score.

    Examples
    --------
    >>> positions_from_scores([[0.2, 0.9, 0.85]], tie_tolerance=0.1)
    array([[1, 0, 0]], dtype=int16)
    """
    table = as_floats(scores)
    if table is None:
        raise InvalidLabelError("The scores are not an array of numbers. Give one row of r scores per ranking.")
    if table.ndim == 0 or table.shape[-1] == 0:
        raise InvalidLabelError(f"The scores have shape {table.shape}; the last axis must hold one score per item.")
    if not tie_tolerance >= 0:
        raise UnsupportedError(f"tie_tolerance={tie_tolerance!r} is not a tolerance. Use a number from 0 on.")
    shown = np.ones(table.shape, dtype=bool) if seen is None else np.asarray(seen, dtype=bool)
    if shown.shape != table.shape:
        raise InvalidLabelError(f"seen has shape {shown.shape}, the scores {table.shape}. Give one per score.")
    missing = np.isnan(table) & shown
    if missing.any():
        *place, item = np.argwhere(missing)[0].tolist()
        raise InvalidLabelError(
            f"{_place(place)}item {item}: the score is NaN. Give a number, or say seen=False where a source did not "
            "see the item."
        )
    cost = np.where(shown, -table if larger_is_better else table, np.inf)
    order = np.argsort(cost, axis=-1, kind="stable")
    ordered = np.take_along_axis(cost, order, axis=-1)
    group = np.zeros(table.shape, dtype=np.int16)
    best = ordered[..., 0]
    for place_in_order in range(1, table.shape[-1]):
        here = ordered[..., place_in_order]
        with np.errstate(invalid="ignore"):  # infinity minus itself
            worse = (here != best) & ~(here - best <= tie_tolerance)
        best = np.where(worse, here, best)
        group[..., place_in_order] = group[..., place_in_order - 1] + worse
    positions = np.take_along_axis(group, np.argsort(order, axis=-1), axis=-1)
    return np.where(shown, positions, np.int16(UNSEEN))


def positions_from_pairs(preferences: Any, items: int | Sequence[str], *, ties: Any = None) -> Positions:
    """Return positions from pairwise preferences that determine a ranking: lists of pairs (better, worse).

    There is one list per row, or an object array (n, m) of lists, with None if a source abstains. The pairs, and the
    pairs of equally good items in `ties`, must determine the order of all their items. Other items are not seen.

    Examples
    --------
    >>> positions_from_pairs([[(0, 2), (2, 1)]], 4, ties=[[(1, 3)]])
    array([[0, 2, 1, 2]], dtype=int16)
    """
    codes = ItemCodes.of(items)
    cells, shape = _cells(preferences, nested=False)
    equal = [None] * len(cells) if ties is None else _cells(ties, nested=False)[0]
    if len(equal) != len(cells):
        raise InvalidLabelError(f"There are ties for {len(equal)} rankings and preferences for {len(cells)}.")
    both = list(zip(cells, equal, strict=True))
    table = _read_each(both, shape, lambda cell: _ranking_of_pairs(cell[0], cell[1], codes))
    return np.array(table, dtype=np.int16).reshape(*shape, codes.number or 0)


def _cells(data: Any, *, nested: bool = True) -> tuple[list[Any], tuple[int, ...]]:
    """Return one order per row, or per row and source, and the shape they have."""
    if isinstance(data, np.ndarray):
        if data.dtype == object and all(value is None or isinstance(value, _ORDERS) for value in data.flat):
            return list(data.flat), data.shape
        return list(data.reshape(-1, data.shape[-1])), data.shape[:-1]
    rows = list(data)
    per_source = nested and rows and all(isinstance(row, list) and row for row in rows)
    if per_source and all(cell is None or isinstance(cell, (list, np.ndarray)) for row in rows for cell in row):
        if len({len(row) for row in rows}) > 1:
            raise InvalidLabelError("The rows have different numbers of orders. Give one per source, None for none.")
        return [cell for row in rows for cell in row], (len(rows), len(rows[0]))
    return rows, (len(rows),)


def _read_each(cells: list[Any], shape: tuple[int, ...], read: Callable[[Any], Any]) -> list[Any]:
    """Return the results of `read` for all cells; an error names the row and the source."""
    try:
        return read_each(cells, read)
    except InvalidLabelError as error:
        place = np.unravel_index(error.index or 0, shape)
        raise InvalidLabelError(f"{_place(place)}{error}", error.index) from None


def _place(place: Sequence[Any]) -> str:
    """Return "Row 3, source 1: " for the indices of a cell."""
    named = [f"{name} {number}" for name, number in zip(("Row", "source"), place, strict=False)]
    return f"{', '.join(named)}: " if named else ""


def _ranking_of_pairs(pairs: Any, tied: Any, codes: ItemCodes) -> Positions:
    """Return the positions of one ranking: the only possible order of the groups of ties."""
    strict: list[tuple[int, int]] = []
    equal: list[tuple[int, int]] = []
    for given, kept in ((pairs, strict), (tied, equal)):
        for pair in () if given is None else given:
            if isinstance(pair, (str, bytes)) or np.shape(pair) != (2,):
                raise InvalidLabelError(f"{pair!r} is not a pair of items (better, worse).")
            kept.append((codes.find(pair[0]), codes.find(pair[1])))
    if not (strict or equal) and not (pairs is None and tied is None):
        raise InvalidLabelError("there is no pair. Use None if a source does not rank anything.")
    leader = list(range(codes.number or 0))  # of the group of ties
    for left, right in equal:
        old, new = leader[left], leader[right]
        leader = [new if value == old else value for value in leader]
    ahead: dict[int, set[int]] = {leader[item]: set() for pair in strict + equal for item in pair}
    for better, worse in strict:
        ahead[leader[worse]].add(leader[better])
    sorter = TopologicalSorter(ahead)
    try:
        sorter.prepare()
    except CycleError as error:
        groups = error.args[1]
        start = groups.index(min(groups))  # begin with the first item
        circle = " > ".join(repr(codes.name(group)) for group in groups[start:-1] + groups[: start + 1])
        raise InvalidLabelError(
            f"the preferences form a cycle: {circle}"
            f"{' (tied items count as one)' if equal else ''}. Drop one of them, or use Preferences (Bradley-Terry) "
            "for judgments that contradict each other."
        ) from None
    place: dict[int, int] = {}
    while sorter.is_active():
        free = sorted(sorter.get_ready())
        if len(free) > 1:
            one, two = (codes.name(group) for group in free[:2])
            raise InvalidLabelError(
                f"the pairs do not say how {one!r} and {two!r} compare. Add a preference or a tie, or use Preferences "
                "(Bradley-Terry) for judgments that are not a whole ranking."
            )
        place[free[0]] = len(place)
        sorter.done(*free)
    return np.array([place.get(group, UNSEEN) for group in leader], dtype=np.int16)


@dataclass(frozen=True, eq=False)
class PrefLibProfile:
    """The distinct rankings of a PrefLib file, and how many voters gave each of them."""

    positions: Positions
    counts: npt.NDArray[np.int64]
    names: tuple[str, ...]  # of the items; their numbers where the file gives none


def read_preflib(text: str, *, unlisted: Literal["unseen", "below"] = "unseen") -> PrefLibProfile:
    r"""Return the rankings of PrefLib text (soc, soi, toc or toi): comment lines, then ``count: 1,2,{3,4}``.

    Items that incomplete orders (soi, toi) leave out are not seen, or with ``unlisted="below"`` ranked below the listed
    ones, as in elections where voters list their favorites.

    Examples
    --------
    >>> profile = read_preflib("# ALTERNATIVE NAME 1: tea\n# ALTERNATIVE NAME 2: milk\n2: 1,2\n1: {1,2}\n")
    >>> profile.positions.tolist(), profile.counts.tolist(), profile.names
    ([[0, 1], [0, 0]], [2, 1], ('tea', 'milk'))
    """
    if not isinstance(text, str):
        raise InvalidLabelError(f"read_preflib takes the text of a file, not {type(text).__name__}.")
    if unlisted not in ("unseen", "below"):
        raise UnsupportedError(f"unlisted={unlisted!r} is unknown. Use 'unseen' or 'below'.")
    names: dict[int, str] = {}
    declared, orders, counts = 0, [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if named := re.match(r"#\s*ALTERNATIVE NAME\s+(\d{1,9})\s*:\s*(.*?)\s*$", line):
            names[int(named[1])] = named[2]
        elif total := re.match(r"#\s*NUMBER ALTERNATIVES\s*:\s*(\d{1,9})\b", line):
            declared = int(total[1])
        if not line.strip() or line.startswith("#"):
            continue
        matched = re.fullmatch(r"\s*(\d+)\s*:\s*(\S.*?)\s*", line)
        entries = re.findall(r"\{[\s,]*\d[\d\s,]*\}|\d+", matched[2]) if matched else []
        if not matched or re.sub(r"\s", "", matched[2]) != re.sub(r"\s", "", ",".join(entries)):
            raise InvalidLabelError(
                f"Line {number} is {line.strip()[:60]!r}; expected 'count: 1,3,{{2,4}}'. Files in the format that "
                "PrefLib used before 2022 have to be downloaded again."
            )
        digits = max(map(len, re.findall(r"\d+", line)))
        if digits > MOST_DIGITS:
            raise InvalidLabelError(f"Line {number} holds a number of {digits} digits; numbers have {MOST_DIGITS}.")
        order = [tuple(int(item) - 1 for item in re.findall(r"\d+", entry)) for entry in entries]
        items = [item + 1 for group in order for item in group]
        wrong = next((item for item in items if item < 1 or item > (declared or item)), None)
        if wrong is not None:
            raise InvalidLabelError(f"Line {number} ranks item {wrong}; the items are 1 .. {declared or 'n'}.")
        if len(set(items)) < len(items):
            raise InvalidLabelError(f"Line {number} ranks an item twice: {line.strip()[:60]!r}. Correct the line.")
        counts.append(int(matched[1]))
        orders.append(order)
    if not orders:
        raise InvalidLabelError("The text has no ranking. PrefLib lines look like '12: 1,3,{2,4}'.")
    listed = 1 + max(item for order in orders for group in order for item in group)
    size = declared or max(listed, *names, 0)
    if size > MOST_ITEMS:
        raise InvalidLabelError(f"The text ranks {size} items; rankings have at most {MOST_ITEMS}.")
    build = positions_from_orders if unlisted == "unseen" else positions_from_top_k
    called = tuple(names.get(item, str(item)) for item in range(1, size + 1))
    return PrefLibProfile(build(orders, size), np.array(counts), called)
