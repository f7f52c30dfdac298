"""Comparisons of two items at a time: as votes of a judge, as users write them, and as arrays.

A ranking is also a vote: all comparisons that it implies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError
from consilience.label_types.codes import first_few, plain_value, refuse_twice
from consilience.label_types.preferences.likelihood import PairVotes

#: Outcomes by name. An unreadable reply is not a tie.
OUTCOMES = {"first": 1, "second": -1, "tie": 0, "both bad": 0}
UNPARSABLE = 2

EXPECTED = (
    "a list of comparisons such as {'first': 'a', 'second': 'b', 'outcome': 'first'}, or a ranking such as "
    "['a', 'b', ('c', 'd')], best first"
)


@dataclass(frozen=True, repr=False)
class Comparisons:
    """The comparisons of one judge, or a ranking, which compares all pairs."""

    first: tuple[Hashable, ...]  # the items shown first
    second: tuple[Hashable, ...]
    outcome: tuple[int, ...]  # 1 if the first won, -1 if the second did, 0 for a tie, 2 if it could not be read
    question: tuple[Hashable, ...] | None = None  # the question, if a judge was asked several times
    run: tuple[Hashable, ...] | None = None  # the number of the answer to it
    ranking: tuple[tuple[Any, ...], ...] | None = None  # groups of tied items, best first, if it is a ranking

    @classmethod
    def of_ranking(cls, groups: Iterable[Iterable[Hashable]]) -> Comparisons:
        """Return all comparisons of a ranking."""
        ranking = tuple(tuple(group) for group in groups)
        pairs = list(combinations([(item, place) for place, group in enumerate(ranking) for item in group], 2))
        return cls(
            tuple(one[0] for one, _ in pairs),
            tuple(two[0] for _, two in pairs),
            tuple(int(one[1] < two[1]) for one, two in pairs),
            ranking=ranking,
        )

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        if self.ranking is not None:
            return " > ".join(" = ".join(map(str, group)) for group in self.ranking)
        signs = {1: ">", -1: "<", 0: "=", UNPARSABLE: "?"}
        shown = [f"{one} {signs[sign]} {two}" for one, two, sign in list(self.entries())[:6]]
        return ", ".join(shown) + (f", ... ({len(self)} comparisons)" if len(self) > 6 else "")

    def entries(self) -> Iterable[tuple[Any, Any, int]]:
        """Return the items shown first and second, and the outcome, of every comparison."""
        return zip(self.first, self.second, self.outcome, strict=True)

    @property
    def items(self) -> tuple[Hashable, ...]:
        """The items in order of first appearance."""
        if self.ranking is not None:
            return tuple(item for group in self.ranking for item in group)
        return tuple(dict.fromkeys(item for one, two, _ in self.entries() for item in (one, two)))


def net_outcomes(said: Comparisons) -> dict[tuple[Any, Any], float]:
    """Return the mean outcome of every pair, between -1 and 1, with its items in order of first appearance."""
    sums: dict[tuple[Any, Any], list[float]] = {}
    for one, two, outcome in said.entries():
        if outcome != UNPARSABLE:
            turned = (two, one) in sums
            sums.setdefault((two, one) if turned else (one, two), []).append(-outcome if turned else outcome)
    return {pair: sum(values) / len(values) for pair, values in sums.items()}


def as_item_names(items: Any) -> tuple[Hashable, ...] | None:
    """Return the names of the items, or raise an error."""
    if items is None:
        return None
    if isinstance(items, (str, bytes, int)) or not isinstance(items, Iterable):
        raise InvalidLabelError(
            f"items={items!r} is not a list of names. Give the names, or None to use those in the votes."
        )
    names = tuple(_name(item) for item in items)
    if len(names) < 2:
        raise InvalidLabelError(f"items={list(names)!r} has fewer than two items. Give at least two items.")
    refuse_twice(names, "Item")
    return names


def read_comparisons(label: Any, items: tuple[Hashable, ...] | None = None) -> Comparisons:
    """Return the comparisons that a user wrote, or raise an error."""
    if isinstance(label, Mapping):
        raise InvalidLabelError(
            f"label {str(dict(label))[:80]} is one record. Put comparisons in a list; turn scores by name into "
            "comparisons with Preferences.from_scores."
        )
    if isinstance(label, Comparisons):
        found = label
    elif isinstance(label, (str, bytes)) or not isinstance(label, Iterable):
        raise InvalidLabelError(f"label {plain_value(label)!r} is not a comparison. Give {EXPECTED}.")
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
        known = first_few(items)
        raise InvalidLabelError(f"item {unknown[0]!r} is unknown; known are {known}. Correct the name, or add it.")
    return found


def comparisons_from_rankings(rankings: Iterable[Sequence[Any]]) -> Batch:
    """Return the comparisons of rankings of names, best first and ties as tuples.

    A ranking of k items counts as k - 1 votes.

    Examples
    --------
    >>> comparisons_from_rankings([["tea", "milk"], None])
    array([tea > milk, None], dtype=object)
    """
    return as_object_array(None if is_null(one) else read_comparisons(list(one)) for one in rankings)


def comparisons_from_scores(scores: Iterable[Mapping[Any, float] | None]) -> Batch:
    """Return the comparisons of scores by name: larger is better, equal is a tie, NaN and None are missing.

    The vote is None if there are fewer than two scores.

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
        said = plain_value(record.get("outcome"))
        number = isinstance(said, (int, float)) and not isinstance(said, bool)
        if is_null(said):
            outcome = UNPARSABLE
        elif said in (one, two):
            outcome = 1 if said == one else -1
        elif (isinstance(said, str) and said in OUTCOMES) or (number and said in (1, -1, 0)):
            outcome = int(OUTCOMES.get(said, said))
        else:
            raise InvalidLabelError(
                f"comparison {place} of {one!r} and {two!r} is won by {said!r}, which is neither of them. Give "
                "'first', 'second', 'tie', the name of the winner, or None for an unreadable reply."
            )
        entries.append((one, two, outcome))
    about = {
        key: tuple(plain_value(record.get(key)) for record in records)
        for key in ("question", "run")
        if any(not is_null(record.get(key)) for record in records)
    }
    columns: list[Any] = list(zip(*entries, strict=True))
    return Comparisons(*columns, **about)


def _of_order(entries: list[Any]) -> Comparisons:
    groups = []
    for entry in entries:
        tied = tuple(sorted(entry, key=str)) if isinstance(entry, (set, frozenset)) else entry
        groups.append([_name(item) for item in (tied if isinstance(tied, tuple) else (tied,))])
    names = [name for group in groups for name in group]
    if not all(groups) or len(names) < 2:
        raise InvalidLabelError(f"label {str(entries)[:80]} ranks fewer than two items. Use None to abstain.")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidLabelError(f"label {str(entries)[:80]} ranks {twice[0]!r} twice. Name each item once.")
    return Comparisons.of_ranking(groups)


def _name(item: Any) -> Hashable:
    name = plain_value(item)
    if is_null(name) or isinstance(name, bool) or not isinstance(name, (str, int)):
        raise InvalidLabelError(f"an item cannot be called {name!r}. Names are text or whole numbers.")
    return name


class ComparisonCounts(Counter[tuple[Any, ...]]):
    """How often each judge gave each answer: sums that add, from which everything is learned.

    A key is the row, the judge (-1 for known rankings), the items shown first and second, the outcome, the question,
    whether it is one of several runs, and the number of items of its ranking (0 for a single comparison). In an arena,
    where few pairs are compared many times, the counts are a few kilobytes; if every prompt has its own items, there
    are as many counts as comparisons.
    """

    @classmethod
    def of(cls, labels: Batch, observed: BoolArray, rows: Sequence[Any], judges: Sequence[int]) -> ComparisonCounts:
        """Return the counts of ``(n, m)`` votes; `judges` are the numbers of the columns."""
        counts = cls()
        for row, column in np.argwhere(observed).tolist():
            said: Comparisons = labels[row, column]
            size = 0 if said.ranking is None else len(said.items)
            about = said.question or (None,) * len(said)
            for entry, question in zip(said.entries(), about, strict=True):
                counts[rows[row], judges[column], *entry, question, said.run is not None, size] += 1
        return counts

    def __add__(self, other: Counter[Any]) -> ComparisonCounts:  # type: ignore[override]
        total = ComparisonCounts(self)
        total.update(other)
        return total

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def table(self, m: int, items: Sequence[Hashable] | None, rows: Iterable[Any] | None = None) -> PairVotes:
        """Return the counts as arrays: those of these rows, or all of them in a fixed order.

        A ranking of k items counts as k - 1 votes, not as one per pair; a known ranking counts in full.
        """
        entries = list(self.items()) if rows is not None else sorted(self.items(), key=lambda entry: repr(entry[0]))
        known = any(key[1] < 0 for key in self)
        row_number = {row: at for at, row in enumerate(dict.fromkeys(rows or (key[0] for key, _ in entries)))}
        names: list[dict[Hashable, int]] = [{item: at for at, item in enumerate(items or ())} for _ in row_number]
        unparsable = [0] * (m + known)
        units: dict[Any, int] = {}
        runs: dict[Any, int] = {}
        codes, numbers = [], []
        for (row, judge, one, two, outcome, about, again, size), count in entries:
            at, who = row_number[row], judge if judge >= 0 else m
            first, second = (names[at].setdefault(item, len(names[at])) for item in (one, two))
            if outcome == UNPARSABLE:
                unparsable[who] += count
                continue
            key = (at, min(first, second), max(first, second), about)
            run = runs.setdefault((*key, who), len(runs)) if again else -1
            codes.append((who, at, first, second, units.setdefault(key, len(units)), run))
            weight = 2.0 / size if size and judge >= 0 else 1.0
            numbers.append((outcome, 0.0 if size else 1.0, weight * count, count))
        columns: list[Any] = [*np.array(codes, dtype=np.int64).reshape(-1, 6).T]
        columns += [*np.array(numbers, dtype=np.float64).reshape(-1, 4).T]
        width = max((len(own) for own in names), default=0) or 1
        columns += [m + known, width, tuple(tuple(own) for own in names), tuple(unparsable), known]
        return PairVotes(*columns)


def tabulate(labels: Batch, observed: BoolArray, items: Sequence[Hashable] | None = None) -> PairVotes:
    """Return the votes of several rows as arrays; `items` are those of every row, if they are declared."""
    n, m = observed.shape
    return ComparisonCounts.of(labels, observed, range(n), range(m)).table(m, items, range(n))
