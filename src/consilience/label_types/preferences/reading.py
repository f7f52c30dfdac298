"""Comparisons as users write them: lists of records, rankings of names, scores by name."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from consilience.arrays import Batch, as_object_array, is_null
from consilience.exceptions import InvalidLabelError
from consilience.label_types.codes import plain_value
from consilience.label_types.preferences.comparisons import OUTCOMES, UNPARSABLE, Comparisons

__all__ = ["as_item_names", "comparisons_from_rankings", "comparisons_from_scores", "read_comparisons"]

EXPECTED = (
    "a list of comparisons such as {'first': 'a', 'second': 'b', 'outcome': 'first'}, or a ranking such as "
    "['a', 'b', ('c', 'd')], best first"
)


def as_item_names(items: Any) -> tuple[Hashable, ...] | None:
    """Return the names of the items, or say what is wrong with them."""
    if items is None:
        return None
    if isinstance(items, (str, bytes, int)) or not isinstance(items, Iterable):
        raise InvalidLabelError(f"items={items!r} is no list of names. Give the names, or None to take those compared.")
    names = tuple(_name(item) for item in items)
    if len(names) < 2:
        raise InvalidLabelError(f"items={list(names)!r}: two items are needed to compare any.")
    if (twice := _repeated(names)) is not None:
        raise InvalidLabelError(f"Item {twice!r} is named twice. Name each one once.")
    return names


def read_comparisons(label: Any, items: tuple[Hashable, ...] | None = None) -> Comparisons:
    """Return what a user wrote as comparisons, or say what is wrong.

    Examples
    --------
    >>> read_comparisons([{"first": "a", "second": "b", "outcome": "second"}])
    a < b
    >>> read_comparisons(["tea", ("milk", "juice")])
    tea > milk = juice
    """
    if isinstance(label, Mapping):
        raise InvalidLabelError(
            f"label {str(dict(label))[:80]} is one record. Put comparisons in a list; turn scores by name into "
            "comparisons with Preferences.from_scores."
        )
    if isinstance(label, Comparisons):
        found = label
    elif isinstance(label, (str, bytes)) or not isinstance(label, Iterable):
        raise InvalidLabelError(f"label {plain_value(label)!r} is no comparison. Give {EXPECTED}.")
    else:
        entries = list(label)
        records = [isinstance(entry, Mapping) for entry in entries]
        if not entries:
            raise InvalidLabelError("the list of comparisons is empty. Use None where a judge abstains.")
        if any(records) and not all(records):
            raise InvalidLabelError(f"label {str(entries)[:80]} mixes comparisons and names. Give {EXPECTED}.")
        found = _of_records(entries) if all(records) else _of_order(entries)
    unknown = [] if items is None else [item for item in found.items if item not in items]
    if items is not None and unknown:
        shown = ", ".join(map(repr, items[:6])) + (", ..." if len(items) > 6 else "")
        raise InvalidLabelError(f"item {unknown[0]!r} is unknown; known are {shown}. Correct the name, or add it.")
    return found


def comparisons_from_rankings(rankings: Iterable[Sequence[Any]]) -> Batch:
    """Return rankings of names, best first and ties as tuples, as comparisons; a ranking of k counts as k - 1 votes.

    Examples
    --------
    >>> comparisons_from_rankings([["tea", "milk"], None])
    array([tea > milk, None], dtype=object)
    """
    return as_object_array(None if is_null(one) else read_comparisons(list(one)) for one in rankings)


def comparisons_from_scores(scores: Iterable[Mapping[Any, float] | None]) -> Batch:
    """Return what scores by name say about pairs, larger is better and equal a tie; NaN and None are not there.

    Fewer than two scores compare nothing, and the vote is None.

    Examples
    --------
    >>> comparisons_from_scores([{"a": 7, "b": 9, "c": 7}, {"a": 3, "b": None}])
    array([b > a = c, None], dtype=object)
    """
    read = []
    for one in scores:
        known = {} if one is None else {name: float(score) for name, score in one.items() if not is_null(score)}
        levels = sorted(set(known.values()), reverse=True)
        groups = [tuple(_name(name) for name, score in known.items() if score == level) for level in levels]
        read.append(Comparisons.of_ranking(groups) if len(known) > 1 else None)
    return as_object_array(read)


def _of_records(records: list[Mapping[str, Any]]) -> Comparisons:
    entries = []
    for place, record in enumerate(records):
        missing = [key for key in ("first", "second") if is_null(record.get(key))]
        if missing:
            raise InvalidLabelError(
                f"comparison {place} ({str(dict(record))[:80]}) has no {missing[0]!r}. Give first, second and outcome."
            )
        one, two = _name(record["first"]), _name(record["second"])
        if one == two:
            raise InvalidLabelError(f"comparison {place} is of {one!r} with itself. Leave it out, or correct a name.")
        entries.append((one, two, _outcome(record.get("outcome"), one, two, place)))
    about = {
        key: tuple(plain_value(record.get(key)) for record in records)
        for key in ("question", "run")
        if any(not is_null(record.get(key)) for record in records)
    }
    first, second, outcome = zip(*entries, strict=True)
    return Comparisons(first, second, np.array(outcome, dtype=np.int8), **about)


def _outcome(said: Any, first: Any, second: Any, place: int) -> int:
    """Return 1, -1, 0, or 2 where there is no reply."""
    value = plain_value(said)
    if is_null(value):
        return UNPARSABLE
    if value in (first, second):
        return 1 if value == first else -1
    if isinstance(value, str) and value in OUTCOMES:
        return OUTCOMES[value]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value in (1, -1, 0):
        return int(value)
    raise InvalidLabelError(
        f"comparison {place} of {first!r} and {second!r} is won by {value!r}, which is neither of them. Give 'first', "
        "'second', 'tie', the name of the winner, or None for a reply that could not be read."
    )


def _of_order(entries: list[Any]) -> Comparisons:
    groups = []
    for entry in entries:
        tied = tuple(sorted(entry, key=str)) if isinstance(entry, (set, frozenset)) else entry
        groups.append([_name(item) for item in (tied if isinstance(tied, tuple) else (tied,))])
    names = [name for group in groups for name in group]
    if not all(groups) or len(names) < 2:
        raise InvalidLabelError(f"label {str(entries)[:80]} ranks fewer than two items. Use None to abstain.")
    if (twice := _repeated(names)) is not None:
        raise InvalidLabelError(f"label {str(entries)[:80]} ranks {twice!r} twice. Name each item once.")
    return Comparisons.of_ranking(groups)


def _repeated(names: Sequence[Hashable]) -> Hashable | None:
    return next((name for at, name in enumerate(names) if name in names[:at]), None)


def _name(item: Any) -> Hashable:
    name = plain_value(item)
    if is_null(name) or isinstance(name, bool) or not isinstance(name, (str, int)):
        raise InvalidLabelError(f"an item cannot be called {name!r}. Names are text or whole numbers.")
    return name
