"""Which items to label by hand: those whose true labels teach the model most, and a random sample for an audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray, hash_priority
from consilience.estimation.protocol import Posterior
from consilience.exceptions import UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import VotePartitions
from consilience.prediction.audit import expected_distance
from consilience.prediction.inference import believe, vote_distances
from consilience.prediction.source_model import SourceModel
from consilience.tables.encoding import encode
from consilience.votes import Votes

__all__ = ["PURPOSES", "Suggestion", "audit_sizes", "suggest"]

#: Length of the list from which items are chosen, per item asked for, and its least length.
SHORT_LIST, SHORTEST = 20, 200
#: Share of an audit that is drawn where the model is uncertain. The rest is drawn uniformly. No item has more than
#: 1 / (1 - share) times its weight in a uniform sample. So a loss that the sample missed makes the interval at most
#: a twentieth longer, and misleading uncertainty makes it longer by the square root of that.
UNSURE_SHARE = 1.0 - 1.0 / 1.05
PURPOSES = ("both", "audit", "learn")


@dataclass(frozen=True)
class Suggestion:
    """Items to label by hand, in the order in which to label them.

    Parameters
    ----------
    items
        ``(k,)`` ids of the items.
    probability
        ``(k,)`` probability with which each was drawn; NaN for items that were picked because they teach most.
    """

    items: npt.NDArray[Any]
    probability: FloatArray

    def __len__(self) -> int:
        return len(self.items)

    def weights(self, votes: Votes) -> FloatArray:
        """Return the weights for `LabelModel.audit`: one per item of the votes, NaN for items that were not drawn."""
        drawn = dict(zip(self.items.tolist(), (1.0 / self.probability).tolist(), strict=True))
        return np.array([drawn.get(item, np.nan) for item in votes.items.tolist()])


def suggest(
    model: SourceModel, space: LabelSpace, votes: Any, decode: str, k: int, purpose: str, seed: int
) -> Suggestion:
    """Return `k` items to label by hand. From partitions, only the most promising items of each chunk are collected."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise UnsupportedError(f"k={k!r} is not a number of items. Ask for 1 or more.")
    if purpose not in PURPOSES:
        raise UnsupportedError(f"purpose={purpose!r} is unknown. Use one of {', '.join(PURPOSES)}.")
    in_memory = None if isinstance(votes, VotePartitions) else _judged(model, space, decode, votes)

    def total(measure: Callable[[_Judged], Any]) -> Any:
        if in_memory is not None:
            return measure(in_memory)
        return votes.reduce(lambda part: measure(_judged(model, space, decode, part.votes)))

    peaks: _Peaks = total(lambda part: part.peaks)
    if k > peaks.items:
        raise UnsupportedError(f"k={k} is more than the {peaks.items} items with a vote. Ask for fewer.")
    n_drawn = 0 if purpose == "learn" else int(k) if purpose == "audit" else (int(k) + 1) // 2
    items, probability = np.zeros(0, dtype=object), np.zeros(0)
    if n_drawn:
        largest = -total(lambda part: part.largest(n_drawn)).key
        # Sequential Poisson sampling, in random order, so that the first items are also a random sample.
        items, probability = total(lambda part: part.draw(peaks, largest, n_drawn, seed)).columns
        order = np.argsort(hash_priority(items, seed + 1), kind="stable")
        items, probability = items[order], probability[order]
    if n_drawn == k:
        return Suggestion(items, probability)
    short: _Top = total(lambda part: part.short_list(peaks, max(SHORT_LIST * int(k), SHORTEST)))
    valuable, pattern = short.columns
    picked = valuable[_different(-short.key, pattern, min(int(k), len(valuable)))]
    picked = picked[~np.isin(picked, items)][: int(k) - n_drawn]
    items = np.concatenate([items, picked]) if n_drawn else picked
    probability = np.concatenate([probability, np.full(len(picked), np.nan)])
    # Drawn and picked items alternate.
    turns = np.concatenate([np.arange(n_drawn) * 2.0, np.arange(len(picked)) * 2.0 + 1.0])
    order = np.argsort(turns, kind="stable")
    return Suggestion(items[order], probability[order])


@dataclass(frozen=True)
class _Peaks:
    """The largest doubt about a label, the largest distance between sources, the number of items with a vote, and the
    sum of the standard deviations that the model expects of their losses.
    """

    doubt: float
    apart: float
    items: int
    unsure: float

    def __add__(self, other: _Peaks) -> _Peaks:
        doubt, apart = max(self.doubt, other.doubt), max(self.apart, other.apart)
        return _Peaks(doubt, apart, self.items + other.items, self.unsure + other.unsure)

    def size(self, unsure: FloatArray) -> FloatArray:
        """Return how often items should be drawn, relative to the average: by standard deviation, above a floor."""
        if self.unsure <= 0.0:
            return np.ones(len(unsure))
        return 1.0 - UNSURE_SHARE + UNSURE_SHARE * unsure * self.items / self.unsure


@dataclass(frozen=True)
class _Top:
    """The `count` items of smallest key, in order, with their columns. Those of several parts add up."""

    key: FloatArray
    count: int
    columns: tuple[npt.NDArray[Any], ...]

    @classmethod
    def of(cls, key: FloatArray, count: int, *columns: npt.NDArray[Any]) -> _Top:
        order = np.argsort(key, kind="stable")[:count]
        return cls(key[order], count, tuple(column[order] for column in columns))

    def __add__(self, other: _Top) -> _Top:
        columns = (np.concatenate(pair) for pair in zip(self.columns, other.columns, strict=True))
        return _Top.of(np.concatenate([self.key, other.key]), self.count, *columns)


def _probability(peaks: _Peaks, largest: FloatArray, count: int, unsure: FloatArray) -> FloatArray:
    """Return probabilities, none above one, that are proportional to sizes and add up to the size of the sample.

    `largest` are the `count` largest standard deviations of all items.
    """
    left, rest = float(peaks.items), count
    for one in peaks.size(largest).tolist():
        if rest * one < left:
            break
        left, rest = left - one, rest - 1
    factor = rest / left if left > 1e-9 and rest else np.inf
    return np.minimum(peaks.size(unsure) * factor, 1.0)


@dataclass(frozen=True)
class _Judged:
    """Items with a vote: doubt about the label, distance between sources, share of sources that voted, distance of
    each vote to the label ``(n, m)``, and the standard deviation that the model expects of the loss.
    """

    items: npt.NDArray[Any]
    doubt: FloatArray
    apart: FloatArray
    voted: FloatArray
    pattern: FloatArray
    unsure: FloatArray

    @property
    def peaks(self) -> _Peaks:
        doubt, apart = (float(one.max(initial=0.0)) for one in (self.doubt, self.apart))
        return _Peaks(doubt, apart, len(self.items), float(self.unsure.sum()))

    def largest(self, count: int) -> _Top:
        return _Top.of(-self.unsure, count)

    def draw(self, peaks: _Peaks, largest: FloatArray, count: int, seed: int) -> _Top:
        """Return the items with the smallest keys: a random number over the probability, zero where that is one."""
        probability = _probability(peaks, largest, count, self.unsure)
        random = hash_priority(self.items, seed).astype(np.float64) / 2.0**64
        return _Top.of(np.where(probability < 1.0, random / probability, 0.0), count, self.items, probability)

    def short_list(self, peaks: _Peaks, size: int) -> _Top:
        """Return the items of largest value: uncertainty times influence, each relative to the largest of all items."""
        # An item with more votes teaches about more sources.
        influence = self.apart / (peaks.apart or 1.0) * np.sqrt(self.voted)
        value = (self.doubt / (peaks.doubt or 1.0) + 1e-3) * (influence + 1e-3)
        return _Top.of(-value, size, self.items, self.pattern)


def _judged(model: SourceModel, space: LabelSpace, decode: str, votes: Any) -> _Judged:
    table = model.aligned(votes, space)
    encoded = encode(table, space)
    rows = np.flatnonzero(encoded.observed.any(axis=1))
    encoded = encoded[rows]
    belief = believe(model, space.law, encoded.labels, encoded.observed, decode)
    distance = np.nan_to_num(vote_distances(space, encoded, belief.labels))
    voters = encoded.observed.sum(axis=1)
    apart = distance.sum(axis=1) / np.maximum(voters, 1)
    for first, second in _rival_groups(model)[:1]:  # distances between the groups, less those within them
        across = _mean_distance(space, encoded, product(first, second))
        within = _mean_distance(space, encoded, [*combinations(first, 2), *combinations(second, 2)])
        apart = np.maximum(across - within, 0.0)
    doubt = np.clip(1.0 - belief.confidence, 0.0, 1.0)
    unsure = _expected_deviation(space, belief)
    return _Judged(table.items[rows], doubt, apart, voters / encoded.n_sources, distance, unsure)


def _expected_deviation(space: LabelSpace, belief: Posterior) -> FloatArray:
    """Return the standard deviation that the model expects of each loss, up to a factor."""
    expected = expected_distance(space, belief, belief.labels)
    return np.sqrt(np.maximum(expected * (1.0 - expected), 0.0)) if space.right_or_wrong else expected


def audit_sizes(space: LabelSpace, belief: Posterior, k: int) -> FloatArray:
    """Return the probability with which each item is among the `k` that are drawn for an audit."""
    unsure = _expected_deviation(space, belief)
    peaks = _Peaks(0.0, 0.0, len(unsure), float(unsure.sum()))
    return _probability(peaks, -np.sort(-unsure)[:k], k, unsure)


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
    """Choose valuable items greedily, each least like those chosen before in how far each source deviates."""
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
