"""Which items to label by hand: those whose true label would teach the model most."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.encoding import align_sources, encode
from consilience.exceptions import UnsupportedError
from consilience.source_model import SourceModel
from consilience.spaces.base import LabelSpace
from consilience.votes import Votes

__all__ = ["suggest_items"]

#: Items among which the choice is made, most promising first; beyond that, likeness costs more than it helps.
SHORT_LIST = 20


def suggest_items(model: SourceModel, space: LabelSpace, votes: Any, decode: str, k: int) -> npt.NDArray[Any]:
    """Return the ids of the `k` items whose true label would help most, best first."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise UnsupportedError(f"k={k!r} is not a number of items. Ask for 1 or more.")
    table = align_sources(votes, space, model.sources, model.names_given)
    encoded = encode(table, space)
    rows = np.flatnonzero(encoded.observed.any(axis=1))
    if k > len(rows):
        raise UnsupportedError(f"k={k} items are asked for, and {len(rows)} have a vote. Ask for at most {len(rows)}.")
    encoded = encoded[rows]
    belief = space.family.posterior(model.parameters, encoded.labels, encoded.observed, decode)
    distance = _distances(space, belief.labels, encoded)
    value = _value(model, space, encoded, distance, np.clip(1.0 - belief.confidence, 0.0, 1.0))
    chosen = _different(value, distance * encoded.observed, int(k))
    return table.items[rows[chosen]]


def _distances(space: LabelSpace, labels: Any, votes: Votes) -> FloatArray:
    """Return ``(n, m)`` distances of the votes from the label of their item; 0 where there is no vote."""
    distance = np.zeros(votes.observed.shape)
    for source in range(votes.n_sources):
        rows = np.flatnonzero(votes.observed[:, source])
        if len(rows):
            distance[rows, source] = space.distance(labels[rows], votes.labels[rows, source])
    return distance


def _value(model: SourceModel, space: LabelSpace, votes: Votes, distance: FloatArray, doubt: FloatArray) -> FloatArray:
    """Return uncertainty times influence, item by item: doubt about the label, and how far the sources are apart."""
    groups = _rival_groups(model)
    if groups is not None:
        apart = _between(space, votes, *groups)
    else:
        voters = np.maximum(votes.observed.sum(axis=1), 1)
        apart = distance.sum(axis=1) / voters
    # More votes on an item mean more sources to learn about.
    influence = _relative(apart) * np.sqrt(votes.observed.sum(axis=1) / votes.n_sources)
    value: FloatArray = (_relative(doubt) + 1e-3) * (influence + 1e-3)
    return value


def _relative(values: FloatArray) -> FloatArray:
    largest = float(values.max(initial=0.0))
    return values / largest if largest > 0.0 else values


def _rival_groups(model: SourceModel) -> tuple[IntArray, IntArray] | None:
    """Return the sources of the two groups that contradict each other, if the fit found such."""
    for finding in model.diagnostics:
        if finding.code == "competing-groups":
            named = [model.sources.index(name) for name in finding.sources]
            first = [named[0], *(index for index in named[1:] if _connected(model, named[0], index))]
            second = [index for index in named if index not in first]
            if second:
                return np.array(first), np.array(second)
    return None


def _connected(model: SourceModel, left: int, right: int) -> bool:
    pair = {model.sources[left], model.sources[right]}
    return any(set(other) == pair for other in model.dependencies)


def _between(space: LabelSpace, votes: Votes, first: IntArray, second: IntArray) -> FloatArray:
    """Return the mean distance between votes of two groups, less the mean distance within them."""
    across = _mean_distance(space, votes, [(int(a), int(b)) for a in first for b in second])
    within = _mean_distance(space, votes, [*combinations(first.tolist(), 2), *combinations(second.tolist(), 2)])
    return np.maximum(across - within, 0.0)


def _mean_distance(space: LabelSpace, votes: Votes, pairs: list[tuple[int, int]]) -> FloatArray:
    total, count = np.zeros(len(votes)), np.zeros(len(votes))
    for left, right in pairs:
        rows = np.flatnonzero(votes.observed[:, left] & votes.observed[:, right])
        if len(rows):
            total[rows] += space.distance(votes.labels[rows, left], votes.labels[rows, right])
            count[rows] += 1
    mean: FloatArray = total / np.maximum(count, 1)
    return mean


def _different(value: FloatArray, pattern: FloatArray, k: int) -> IntArray:
    """Choose greedily: of the most valuable items, the one least like those chosen so far, by who deviates how far."""
    order = np.argsort(-value, kind="stable")[: max(SHORT_LIST * k, 200)]
    size = np.sqrt((pattern[order] ** 2).sum(axis=1, keepdims=True))
    shape = pattern[order] / np.where(size > 0, size, 1.0)
    worth = value[order].copy()
    likeness = np.zeros(len(order))
    free: BoolArray = np.ones(len(order), dtype=bool)
    chosen = []
    for _ in range(k):
        best = int(np.argmax(np.where(free, worth * (1.0 - 0.5 * likeness), -1.0)))
        chosen.append(int(order[best]))
        free[best] = False
        likeness = np.maximum(likeness, shape @ shape[best])
    return np.array(chosen)
