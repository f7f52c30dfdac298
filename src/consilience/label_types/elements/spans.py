"""Sets of spans, as marked in texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.exceptions import InvalidLabelError
from consilience.label_types.elements.law import ElementLaw
from consilience.label_types.elements.reader import ElementReader, class_names, united
from consilience.label_types.elements.space import ElementSpace

__all__ = ["Spans"]

#: Overlap from which spans of two sources may mean the same thing, and how often false ones coincide.
THRESHOLD, COINCIDENCE = 0.2, 0.03
#: Length of texts in simulations.
USUAL_LENGTH = 1500
OVERLAPS = ("merge", "keep", "forbid")


@dataclass(frozen=True)
class Spans(ElementSpace):
    """Sets of spans of text; the cost is one minus the F1 of the characters that are marked.

    A label is a list of ``(start, end)``, or of ``(start, end, class)``; positions are counted from 0 on and the end
    is the first one behind the span. The empty list says that there is nothing; None abstains. Labels are found as
    for `Boxes`, and kept where they make the largest expected F1 of characters.

    Parameters
    ----------
    classes
        Names of the classes, where spans have some.
    length
        Length of the longest text: spans beyond it are refused.
    overlap
        What is done about spans of one label that overlap: "merge" puts those of the same class together that overlap
        or touch, "keep" leaves all as they are, "forbid" refuses overlapping ones and never returns any.

    Examples
    --------
    >>> from consilience import LabelModel
    >>> votes = [[[(i, i + 5)], [(i, i + 6)], [(i, i + 5), (90, 94)]] for i in range(40)] + [[[], [], [(3, 9)]]]
    >>> labels = LabelModel(Spans()).fit(votes).predict(votes)
    >>> labels[7], labels[40]
    (array([[ 7, 12]]), array([], shape=(0, 2), dtype=int64))
    """

    classes: Sequence[str] | None = None
    length: int | None = None
    overlap: str = "merge"

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", class_names(self.classes))
        if self.overlap not in OVERLAPS:
            raise InvalidLabelError(f"overlap={self.overlap!r} is unknown. Use one of {', '.join(OVERLAPS)}.")
        length = self.length
        if length is not None and (isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 1):
            raise InvalidLabelError(
                f"length={length!r} is no length of a text. Give a whole number from 1 on, or None."
            )

    @cached_property
    def reader(self) -> ElementReader:
        """How spans are written."""
        limits = (float(self.length),) if self.length is not None else (np.inf,)
        return ElementReader("span", ("start", "end"), self.classes, limits, whole=True, filled=True)

    @cached_property
    def elements(self) -> ElementLaw:
        """How spans scatter."""
        return ElementLaw(
            1,
            THRESHOLD,
            COINCIDENCE,
            len(self.classes or ()),
            by_length=True,
            united=self.overlap == "merge",
            apart=self.overlap == "forbid",
        )

    def tidy(self, elements: FloatArray) -> FloatArray:
        """Put spans together that overlap, unless they are to be kept; leave out later ones where none may."""
        if self.overlap == "merge":
            return united(elements)
        return elements if self.overlap == "keep" else _first_of_overlapping(elements)

    def as_batch(self, labels: Any) -> Batch:
        batch = self.reader.read(labels)
        if self.overlap == "forbid":
            for index, spans in enumerate(batch):
                _refuse_overlaps(spans, index)
            return batch
        for index, spans in enumerate(batch):
            batch[index] = self.tidy(spans)
        return batch

    def random_elements(self, count: int, rng: np.random.Generator) -> FloatArray:
        length = self.length or USUAL_LENGTH
        start = np.floor(rng.uniform(0.0, length, count))
        size = np.ceil(np.exp(rng.normal(-3.4, 0.5, count)) * length)
        return self.in_order(np.stack([start, start + size], axis=1))

    def in_order(self, corners: FloatArray) -> FloatArray:
        """Return spans of whole positions, none empty."""
        inside = np.rint(super().in_order(corners))
        limit = np.inf if self.length is None else float(self.length)
        start = np.minimum(inside[:, 0], limit - 1.0)
        return np.stack([start, np.maximum(inside[:, 1], start + 1.0)], axis=1)

    def spec(self) -> dict[str, Any]:
        classes = None if self.classes is None else list(self.classes)
        return {"classes": classes, "length": self.length, "overlap": self.overlap}


def _first_of_overlapping(spans: FloatArray) -> FloatArray:
    kept, end = [], 0.0
    for place in np.argsort(spans[:, 0], kind="stable").tolist():
        if spans[place, 0] >= end:
            kept.append(place)
            end = spans[place, 1]
    return spans[np.array(kept, dtype=np.int64)]


def _refuse_overlaps(spans: FloatArray, index: int) -> None:
    order = np.argsort(spans[:, 0], kind="stable") if len(spans) else np.zeros(0, dtype=np.int64)
    for one, two in zip(order[:-1].tolist(), order[1:].tolist(), strict=True):
        if spans[two, 0] < spans[one, 1]:
            shown = [f"({spans[place, 0]:g}, {spans[place, 1]:g})" for place in (one, two)]
            raise InvalidLabelError(
                f"spans {shown[0]} and {shown[1]} overlap, which overlap='forbid' rules out. Correct them, or use "
                "Spans(overlap='keep').",
                index,
            )
