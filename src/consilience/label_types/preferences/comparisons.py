"""Comparisons of two items at a time: the votes of a judge, and rankings as all comparisons they imply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.label_types.preferences.judges import PairVotes

__all__ = [
    "OUTCOMES",
    "UNPARSABLE",
    "ComparisonCounts",
    "ComparisonTable",
    "Comparisons",
    "net_outcomes",
    "tabulate",
]

#: Outcomes by name; what says neither is a reply that could not be read, which is no tie.
OUTCOMES = {"first": 1, "second": -1, "tie": 0}
UNPARSABLE = 2

Ranking = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons:
    """What one judge said about pairs of items; or a ranking, which says it about all of them.

    Parameters
    ----------
    first, second
        The items shown first and second.
    outcome
        1 if the first one won, -1 if the second did, 0 for a tie, 2 for a reply that could not be read.
    question, run
        Where a judge was asked several times: about what, and which time it is. None where it was not.
    ranking
        Groups of tied items, best first, where the comparisons are those of a ranking.
    """

    first: tuple[Hashable, ...]
    second: tuple[Hashable, ...]
    outcome: npt.NDArray[np.int8]
    question: tuple[Hashable, ...] | None = None
    run: tuple[Hashable, ...] | None = None
    ranking: Ranking | None = None

    @classmethod
    def of_ranking(cls, groups: Iterable[Iterable[Hashable]]) -> Comparisons:
        """Return all comparisons of a ranking."""
        ranking = tuple(tuple(group) for group in groups)
        placed = [(item, place) for place, group in enumerate(ranking) for item in group]
        pairs = [(one, two) for at, one in enumerate(placed) for two in placed[at + 1 :]]
        return cls(
            tuple(one[0] for one, _ in pairs),
            tuple(two[0] for _, two in pairs),
            np.array([int(one[1] < two[1]) for one, two in pairs], dtype=np.int8),
            ranking=ranking,
        )

    def __len__(self) -> int:
        return len(self.first)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comparisons) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        if self.ranking is not None:
            return " > ".join(" = ".join(map(str, group)) for group in self.ranking)
        signs = {1: ">", -1: "<", 0: "=", UNPARSABLE: "?"}
        shown = [
            f"{one} {signs[int(sign)]} {two}"
            for one, sign, two in zip(self.first[:6], self.outcome[:6], self.second[:6], strict=True)
        ]
        return ", ".join(shown) + (f", ... ({len(self)} comparisons)" if len(self) > 6 else "")

    @property
    def items(self) -> tuple[Hashable, ...]:
        """The items in the order in which they come."""
        if self.ranking is not None:
            return tuple(item for group in self.ranking for item in group)
        return tuple(dict.fromkeys(item for pair in zip(self.first, self.second, strict=True) for item in pair))

    @property
    def weight(self) -> float:
        """What each comparison counts: a ranking of k items as k - 1 votes, not as one per pair."""
        return 1.0 if self.ranking is None else 2.0 / max(len(self.items), 2)

    def _key(self) -> tuple[Any, ...]:
        if self.ranking is not None:
            return ("ranking", self.ranking)
        return (self.first, self.second, self.outcome.tobytes(), self.question, self.run)


def net_outcomes(said: Comparisons) -> dict[tuple[Any, Any], float]:
    """Return the mean outcome of every pair, in the order in which its items come first; between -1 and 1."""
    sums: dict[tuple[Any, Any], list[float]] = {}
    for one, two, outcome in zip(said.first, said.second, said.outcome.tolist(), strict=True):
        if outcome == UNPARSABLE:
            continue
        if (two, one) in sums:
            sums[two, one].append(-outcome)
        else:
            sums.setdefault((one, two), []).append(outcome)
    return {pair: sum(values) / len(values) for pair, values in sums.items()}


@dataclass(frozen=True)
class ComparisonTable:
    """The comparisons of several rows as arrays.

    Parameters
    ----------
    pairs
        All that could be read, row by row.
    names
        The items of each row; their place is their number.
    unit
        Number of what was asked: the same two items of the same row about the same question, in either order.
    question
        The same number for runs of one judge on one question; below zero where there are no runs.
    unparsable
        ``(m,)`` replies of each judge that could not be read.
    count
        How often each comparison was made.
    """

    pairs: PairVotes
    names: tuple[tuple[Hashable, ...], ...]
    unit: IntArray
    question: IntArray
    unparsable: IntArray
    count: FloatArray

    def where(self, kept: BoolArray) -> ComparisonTable:
        """Return some of the comparisons."""
        return ComparisonTable(
            self.pairs.where(kept), self.names, self.unit[kept], self.question[kept], self.unparsable, self.count[kept]
        )

    @property
    def comparisons(self) -> IntArray:
        """``(m,)`` how many comparisons each judge made."""
        return np.rint(np.bincount(self.pairs.judge, self.count, minlength=self.pairs.n_judges)).astype(np.int64)

    def run_weights(self, correlation: float) -> FloatArray:
        """Return ``1 / (1 + (r - 1) rho)`` for each of r runs, and one where there are none."""
        weight = np.ones(len(self.question))
        asked = self.question >= 0
        if asked.any():
            cell = self.question[asked] * self.pairs.n_judges + self.pairs.judge[asked]
            _, place = np.unique(cell, return_inverse=True)
            runs = np.bincount(place, self.count[asked])
            weight[asked] = 1.0 / (1.0 + (runs[place] - 1.0) * correlation)
        return weight


Key = tuple[Any, ...]


class ComparisonCounts:
    """How often each judge gave each answer: sums that add, and all that is learned from.

    A key is the row, the judge (-1 for known rankings), the items shown first and second, the outcome, the question,
    whether it is one of several runs, and the number of items of the ranking that it comes from (0 if it was asked).
    Where few pairs of items are compared again and again, as in an arena, the counts are a few kilobytes; where every
    prompt has items of its own, there are as many as comparisons.
    """

    def __init__(self, counts: Mapping[Key, int]) -> None:
        self.counts = counts

    @classmethod
    def of(cls, labels: Batch, observed: BoolArray, rows: Sequence[Any], judges: Sequence[int]) -> ComparisonCounts:
        """Return the counts of ``(n, m)`` votes; `judges` are the numbers of the columns."""
        counts: Counter[Key] = Counter()
        for row, column in np.argwhere(observed).tolist():
            said: Comparisons = labels[row, column]
            size = 0 if said.ranking is None else len(said.items)
            about = said.question or (None,) * len(said)
            for key in zip(said.first, said.second, said.outcome.tolist(), about, strict=True):
                counts[rows[row], judges[column], *key, said.run is not None, size] += 1
        return cls(counts)

    def __add__(self, other: ComparisonCounts) -> ComparisonCounts:
        total = Counter(self.counts)
        total.update(other.counts)
        return ComparisonCounts(total)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComparisonCounts) and self.counts == other.counts

    def __hash__(self) -> int:
        return id(self)

    def boxed(self) -> npt.NDArray[Any]:
        """Return the counts as an array of one object, which adds like any other sum."""
        box = np.empty(1, dtype=object)
        box[0] = self
        return box

    def table(self, m: int, items: Sequence[Hashable] | None = None) -> ComparisonTable:
        """Return the counts as arrays, in an order that does not depend on how they were added."""
        return _tabulate(sorted(self.counts.items(), key=_order), m, items)


def tabulate(labels: Batch, observed: BoolArray, items: Sequence[Hashable] | None = None) -> ComparisonTable:
    """Return the votes of several rows as arrays; `items` are those of every row, where they are known."""
    n, m = observed.shape
    counts = ComparisonCounts.of(labels, observed, range(n), range(m)).counts
    return _tabulate(list(counts.items()), m, items, list(range(n)))


def _order(entry: tuple[Key, int]) -> str:
    return repr(entry[0])


def _tabulate(
    entries: list[tuple[Key, int]], m: int, items: Sequence[Hashable] | None, rows: list[Any] | None = None
) -> ComparisonTable:
    """Return counted comparisons as arrays; known rankings become the judge m, whose word counts in full."""
    known = any(key[1] < 0 for key, _ in entries)
    groups = {row: at for at, row in enumerate(dict.fromkeys(key[0] for key, _ in entries) if rows is None else rows)}
    start = {} if items is None else {item: place for place, item in enumerate(items)}
    names: list[dict[Hashable, int]] = [dict(start) for _ in groups]
    unparsable = np.zeros(m + known, dtype=np.int64)
    units: dict[Any, int] = {}
    questions: dict[Any, int] = {}
    whole, numbers = [], []
    for (row, judge, one, two, outcome, about, again, size), count in entries:
        at, who = groups[row], judge if judge >= 0 else m
        own = names[at]
        first, second = own.setdefault(one, len(own)), own.setdefault(two, len(own))
        if outcome == UNPARSABLE:
            unparsable[who] += count
            continue
        low, high = min(first, second), max(first, second)
        unit = units.setdefault((at, low, high, about), len(units))
        question = questions.setdefault((at, low, high, about), len(questions)) if again else -1
        whole.append((who, at, first, second, unit, question))
        numbers.append((outcome, 0.0 if size else 1.0, 2.0 / size if size and judge >= 0 else 1.0, count))
    codes = np.array(whole, dtype=np.int64).reshape(-1, 6).T
    said, shown, weight, often = np.array(numbers, dtype=np.float64).reshape(-1, 4).T
    pairs = PairVotes(
        codes[0], codes[1], codes[2], codes[3], said, shown, weight * often,
        n_judges=m + known, n_groups=len(groups), width=max((len(own) for own in names), default=0) or 1,
    )  # fmt: skip
    return ComparisonTable(pairs, tuple(tuple(own) for own in names), codes[4], codes[5], unparsable, often)
