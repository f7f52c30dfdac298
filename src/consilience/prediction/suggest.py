"""Which items to label by hand: those whose true label would teach the model most."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.exceptions import UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import VotePartitions
from consilience.prediction.inference import believe, vote_distances
from consilience.prediction.source_model import SourceModel
from consilience.tables.encoding import align_sources, encode
from consilience.votes import Votes

__all__ = ["suggest_items"]

#: Items among which the choice is made, most promising first; beyond that, likeness costs more than it helps.
SHORT_LIST = 20
#: The shortest such list, however few items are asked for.
SHORTEST = 200


def suggest_items(model: SourceModel, space: LabelSpace, votes: Any, decode: str, k: int) -> npt.NDArray[Any]:
    """Return the ids of the `k` items whose true label would help most, best first.

    Of partitions the most promising items of every chunk are compared; no others leave it.
    """
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise UnsupportedError(f"k={k!r} is not a number of items. Ask for 1 or more.")
    in_memory = None if isinstance(votes, VotePartitions) else _judged(model, space, decode, votes)

    def total(measure: Callable[[_Judged], Any]) -> Any:
        if in_memory is not None:
            return measure(in_memory)
        return votes.reduce(lambda part: measure(_judged(model, space, decode, part.votes)))

    peaks: _Peaks = total(lambda part: part.peaks)
    if k > peaks.items:
        raise UnsupportedError(
            f"k={k} items are asked for, and {peaks.items} have a vote. Ask for at most {peaks.items}."
        )
    size = max(SHORT_LIST * int(k), SHORTEST)
    short: _ShortList = total(lambda part: part.short_list(peaks, size))
    return short.items[_different(short.value, short.pattern, int(k))]


@dataclass(frozen=True)
class _Peaks:
    """The most doubt there is about a label, how far apart sources are at most, and how many items have a vote."""

    doubt: float
    apart: float
    items: int

    def __add__(self, other: _Peaks) -> _Peaks:
        return _Peaks(max(self.doubt, other.doubt), max(self.apart, other.apart), self.items + other.items)


@dataclass(frozen=True)
class _ShortList:
    """The most valuable items, best first: their ids, values, and who deviates how far from the label."""

    items: npt.NDArray[Any]
    value: FloatArray
    pattern: FloatArray
    size: int

    def __add__(self, other: _ShortList) -> _ShortList:
        items = np.concatenate([self.items, other.items])
        value, pattern = np.concatenate([self.value, other.value]), np.concatenate([self.pattern, other.pattern])
        order = np.argsort(-value, kind="stable")[: self.size]
        return _ShortList(items[order], value[order], pattern[order], self.size)


@dataclass(frozen=True)
class _Judged:
    """Items with a vote: doubt about the label, how far sources are apart, and who deviates how far, ``(n, m)``."""

    items: npt.NDArray[Any]
    doubt: FloatArray
    apart: FloatArray
    voted: FloatArray
    pattern: FloatArray

    @property
    def peaks(self) -> _Peaks:
        return _Peaks(float(self.doubt.max(initial=0.0)), float(self.apart.max(initial=0.0)), len(self.items))

    def short_list(self, peaks: _Peaks, size: int) -> _ShortList:
        """Return the items of largest value: uncertainty times influence, each relative to the largest of all items."""
        # More votes on an item mean more sources to learn about.
        influence = self.apart / (peaks.apart or 1.0) * np.sqrt(self.voted)
        value = (self.doubt / (peaks.doubt or 1.0) + 1e-3) * (influence + 1e-3)
        order = np.argsort(-value, kind="stable")[:size]
        return _ShortList(self.items[order], value[order], self.pattern[order], size)


def _judged(model: SourceModel, space: LabelSpace, decode: str, votes: Any) -> _Judged:
    table = align_sources(votes, space, model.sources, model.names_given)
    encoded = encode(table, space)
    rows = np.flatnonzero(encoded.observed.any(axis=1))
    encoded = encoded[rows]
    belief = believe(model, space.law, encoded.labels, encoded.observed, decode)
    distance = np.nan_to_num(vote_distances(space, encoded, belief.labels))
    voters = encoded.observed.sum(axis=1)
    apart = distance.sum(axis=1) / np.maximum(voters, 1)
    for first, second in _rival_groups(model)[:1]:  # what lies between them, less what lies within them
        across = _mean_distance(space, encoded, product(first, second))
        within = _mean_distance(space, encoded, [*combinations(first, 2), *combinations(second, 2)])
        apart = np.maximum(across - within, 0.0)
    doubt = np.clip(1.0 - belief.confidence, 0.0, 1.0)
    return _Judged(table.items[rows], doubt, apart, voters / encoded.n_sources, distance)


def _rival_groups(model: SourceModel) -> list[tuple[list[int], list[int]]]:
    """Return the sources of two groups that contradict each other, for each such finding of the fit."""
    linked, found = {frozenset(pair) for pair in model.dependencies}, []
    for finding in model.diagnostics:
        if finding.code == "competing-groups":
            leader = finding.sources[0]
            sides: tuple[list[int], list[int]] = ([], [])
            for name in finding.sources:
                with_leader = name == leader or frozenset((leader, name)) in linked
                sides[0 if with_leader else 1].append(model.sources.index(name))
            found += [sides] if sides[1] else []
    return found


def _mean_distance(space: LabelSpace, votes: Votes, pairs: Iterable[tuple[int, int]]) -> FloatArray:
    total, count = np.zeros(len(votes)), np.zeros(len(votes))
    for left, right in pairs:
        rows = np.flatnonzero(votes.observed[:, left] & votes.observed[:, right])
        if len(rows):
            total[rows] += space.distance(votes.labels[rows, left], votes.labels[rows, right])
            count[rows] += 1
    return np.asarray(total / np.maximum(count, 1))


def _different(value: FloatArray, pattern: FloatArray, k: int) -> IntArray:
    """Choose greedily: of the listed items, the one least like those chosen so far, by who deviates how far."""
    size = np.sqrt((pattern**2).sum(axis=1, keepdims=True))
    shape = pattern / np.where(size > 0, size, 1.0)
    likeness = np.zeros(len(value))
    free: BoolArray = np.ones(len(value), dtype=bool)
    chosen = []
    for _ in range(k):
        best = int(np.argmax(np.where(free, value * (1.0 - 0.5 * likeness), -1.0)))
        chosen.append(best)
        free[best] = False
        likeness = np.maximum(likeness, shape @ shape[best])
    return np.array(chosen)
