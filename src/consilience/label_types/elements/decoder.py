"""Which of the matched elements make the label: the set of largest expected F1, and how right it is."""

from __future__ import annotations

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_object_array
from consilience.estimation.protocol import Posterior
from consilience.label_types.elements.model import (
    LEAST_ERROR,
    LEAST_NOISE,
    Belief,
    ElementModel,
    ElementParameters,
    Matched,
)
from consilience.label_types.elements.overlaps import expected_overlap
from consilience.label_types.vote_correlation import discount_correlated

__all__ = ["believe", "select"]

#: Standard deviation of normal noise, in mean distances.
DEVIATION = 1.2533


def select(probability: FloatArray, size: FloatArray, may_be_empty: bool = True) -> tuple[IntArray, float]:
    """Return the elements of the set of largest expected F1, most probable first, and that F1.

    Elements are independent given the votes, and F1 is taken as the ratio of expectations: keeping the k most probable
    ones gives ``2 sum_k(q s) / (sum_k s + sum(q s))``. The empty set, where it `may_be_empty`, is right if
    nothing is real.

    Examples
    --------
    >>> kept, expected = select(np.array([0.9, 0.2, 0.6]), np.ones(3))
    >>> kept.tolist(), round(expected, 4)
    ([0, 2], 0.8108)
    >>> select(np.array([0.1]), np.ones(1))
    (array([], dtype=int64), 0.9)
    """
    if len(probability) == 0:
        return np.zeros(0, dtype=np.int64), 1.0
    order = np.argsort(-probability, kind="stable")
    gain = (probability * size)[order]
    expected = 2.0 * np.cumsum(gain) / np.maximum(np.cumsum(size[order]) + gain.sum(), 1e-300)
    best = int(expected.argmax())
    nothing = float(np.prod(1.0 - probability))
    if may_be_empty and nothing > expected[best]:
        return np.zeros(0, dtype=np.int64), nothing
    return order[: best + 1], float(min(expected[best], 1.0))


def believe(model: ElementModel, parameters: ElementParameters, labels: Batch, observed: BoolArray) -> Posterior:
    """Return the sets of largest expected F1."""
    belief = Belief.of(model, parameters, Matched.of(model, labels, observed))
    groups, n = belief.groups, len(observed)
    size = belief.places[:, 1] - belief.places[:, 0] if model.by_length else np.ones(len(groups.item))
    marks = np.diff(groups.starts)
    elements = belief.places
    if model.n_classes:
        elements = np.column_stack([elements, belief.kinds])
    empty = _said_nothing(belief, parameters, observed)
    overlap = _overlaps(model, parameters, belief, observed)
    right = belief.probability * overlap * size
    chosen, probability, marked_by, confidence = [], [], [], np.ones(n)
    for item in range(n):
        first, last = groups.item_starts[item], groups.item_starts[item + 1]
        kept, confidence[item] = select(belief.probability[first:last], size[first:last], bool(empty[item]))
        kept = kept + first
        if len(kept):  # what is real is not yet in its right place, and of its right class
            confidence[item] *= _ratio(right[kept].sum(), (belief.probability * size)[kept].sum())
        if model.apart:
            kept = _without_overlaps(kept, elements)
        kept = kept[np.lexsort(elements[kept].T[::-1])]
        label, own = elements[kept], belief.probability[kept]
        seen_by = marks[kept]
        if model.united and len(kept) > 1:
            label, own, seen_by = _united(label, own, seen_by)
        chosen.append(label)
        probability.append(own)
        marked_by.append(seen_by)
    details = {"element_probability": as_object_array(probability), "marked_by": as_object_array(marked_by)}
    return Posterior(as_object_array(chosen), np.clip(confidence, 0.0, 1.0), None, details)


def _overlaps(model: ElementModel, parameters: ElementParameters, belief: Belief, observed: BoolArray) -> FloatArray:
    """Return how far each place is expected to overlap with what is really there; less where its class is in doubt."""
    groups, m = belief.groups, observed.shape[1]
    counted = groups.member_source < m
    source, group = groups.member_source[counted], groups.member_group[counted]
    total = len(groups.item)
    share = discount_correlated(observed, parameters.correlation)[groups.item[group], source]
    noise = np.maximum(parameters.noise[source], LEAST_NOISE)
    weight = np.bincount(group, share / noise, minlength=total)
    variance = DEVIATION**2 * np.bincount(group, share**2, minlength=total) / np.maximum(weight, 1e-300) ** 2
    overlap = expected_overlap(np.sqrt(variance), model.dimension)
    if not model.n_classes:
        return overlap
    wrong = np.clip(1.0 - parameters.class_accuracy, LEAST_ERROR, 0.9)
    odds = np.maximum(np.log((1.0 - wrong) * max(model.n_classes - 1, 1) / wrong), 0.01)
    codes = belief.table.sets.codes[groups.members[counted]]
    cell = group * model.n_classes + codes
    support = np.bincount(cell, share * odds[source], minlength=total * model.n_classes).reshape(total, -1)
    support = support - support.max(axis=1, keepdims=True)
    chance = np.exp(support[np.arange(total), belief.kinds]) / np.exp(support).sum(axis=1)
    return np.asarray(overlap * chance)


def _ratio(above: float, below: float) -> float:
    return float(above / below) if below > 0 else 0.0


def _said_nothing(belief: Belief, parameters: ElementParameters, observed: BoolArray) -> BoolArray:
    """Return on which items most of the votes are empty.

    That nothing is there is a vote of its own. Where most sources saw something, each something else, elements that are
    improbable one by one are no reason to return none of them.
    """
    table = belief.table
    silent = np.zeros(observed.shape)
    silent[table.rows, table.columns] = np.diff(table.sets.starts) == 0
    shares = discount_correlated(observed, parameters.correlation)
    most: BoolArray = (silent * shares).sum(axis=1) > 0.5 * shares.sum(axis=1)
    return most


def _without_overlaps(kept: IntArray, elements: FloatArray) -> IntArray:
    """Leave out spans that overlap a more probable one; `kept` has the most probable first."""
    left: list[int] = []
    for element in kept.tolist():
        start, end = elements[element, 0], elements[element, 1]
        if all(end <= elements[other, 0] or elements[other, 1] <= start for other in left):
            left.append(element)
    return np.array(left, dtype=np.int64)


def _united(label: FloatArray, probability: FloatArray, marked_by: IntArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Put sorted spans of one class that overlap or touch together; the most probable part speaks for the whole."""
    merged: list[FloatArray] = []
    sure: list[float] = []
    marks: list[int] = []
    last: dict[float, int] = {}
    for span, own, count in zip(label, probability.tolist(), marked_by.tolist(), strict=True):
        kind = float(span[2]) if len(span) > 2 else 0.0
        at = last.get(kind)
        if at is not None and span[0] <= merged[at][1]:
            merged[at][1] = max(merged[at][1], span[1])
            sure[at], marks[at] = max(sure[at], own), max(marks[at], count)
        else:
            last[kind] = len(merged)
            merged.append(span.copy())
            sure.append(own)
            marks.append(count)
    return np.array(merged), np.array(sure), np.array(marks, dtype=np.int64)
