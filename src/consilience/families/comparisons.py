"""Comparisons of two items at a time: the votes of a judge, and rankings as all comparisons they imply."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.solvers.pair_judges import PairTable

__all__ = ["OUTCOMES", "UNPARSABLE", "Comparisons", "ComparisonTable", "net_outcomes", "tabulate"]

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
        Number of what was shown: the same two items of the same row, in the same order, about the same question.
    question
        The same number for runs of one judge on one question; below zero where there are no runs.
    unparsable
        ``(m,)`` replies of each judge that could not be read.
    """

    pairs: PairTable
    names: tuple[tuple[Hashable, ...], ...]
    unit: IntArray
    question: IntArray
    unparsable: IntArray

    def where(self, kept: BoolArray) -> ComparisonTable:
        """Return some of the comparisons."""
        return ComparisonTable(
            self.pairs.where(kept), self.names, self.unit[kept], self.question[kept], self.unparsable
        )

    def run_weights(self, correlation: float) -> FloatArray:
        """Return ``1 / (1 + (r - 1) rho)`` for each of r runs, and one where there are none."""
        weight = np.ones(len(self.question))
        asked = self.question >= 0
        if asked.any():
            cell = self.question[asked] * self.pairs.n_judges + self.pairs.judge[asked]
            _, place, runs = np.unique(cell, return_inverse=True, return_counts=True)
            weight[asked] = 1.0 / (1.0 + (runs[place] - 1.0) * correlation)
        return weight


def tabulate(labels: Batch, observed: BoolArray, items: Sequence[Hashable] | None = None) -> ComparisonTable:
    """Return the votes of several rows as arrays; `items` are those of every row, where they are known."""
    n, m = observed.shape
    names: list[tuple[Hashable, ...]] = []
    columns: dict[str, list[Any]] = {name: [] for name in ("judge", "group", "first", "second", "outcome", "shown")}
    weight, unit, question = [], [], []
    units: dict[Any, int] = {}
    questions: dict[Any, int] = {}
    unparsable = np.zeros(m, dtype=np.int64)
    for row in range(n):
        known = {} if items is None else {item: place for place, item in enumerate(items)}
        for judge in np.flatnonzero(observed[row]).tolist():
            said: Comparisons = labels[row, judge]
            for item in said.items:
                known.setdefault(item, len(known))
            kept = np.flatnonzero(said.outcome != UNPARSABLE).tolist()
            unparsable[judge] += len(said) - len(kept)
            one = [known[said.first[at]] for at in kept]
            two = [known[said.second[at]] for at in kept]
            columns["judge"] += [judge] * len(kept)
            columns["group"] += [row] * len(kept)
            columns["first"] += one
            columns["second"] += two
            columns["outcome"] += said.outcome[kept].tolist()
            columns["shown"] += [0.0 if said.ranking is not None else 1.0] * len(kept)
            weight += [said.weight] * len(kept)
            about = [None] * len(kept) if said.question is None else [said.question[at] for at in kept]
            unit += [units.setdefault((row, *shown), len(units)) for shown in zip(one, two, about, strict=True)]
            if said.run is None:
                question += [-1] * len(kept)
            else:
                question += [
                    questions.setdefault((row, min(a, b), max(a, b), topic), len(questions))
                    for a, b, topic in zip(one, two, about, strict=True)
                ]
        names.append(tuple(known))
    whole = {name: np.array(columns[name], dtype=np.int64) for name in ("judge", "group", "first", "second")}
    pairs = PairTable(
        **whole,
        outcome=np.array(columns["outcome"], dtype=np.float64),
        shown=np.array(columns["shown"], dtype=np.float64),
        weight=np.array(weight, dtype=np.float64),
        n_judges=m,
        n_groups=n,
        width=max((len(row) for row in names), default=0) or 1,
    )
    coded = [np.array(codes, dtype=np.int64) for codes in (unit, question)]
    return ComparisonTable(pairs, tuple(names), coded[0], coded[1], unparsable)
