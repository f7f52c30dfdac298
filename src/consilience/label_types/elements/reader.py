"""Sets of boxes or spans as users write them, checked and converted to arrays of corners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray, IntArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError
from consilience.label_types.base import FARTHEST
from consilience.label_types.codes import is_listed, plain_value

#: Keys of the class of an element in other tools. A list must have exactly one entry.
CLASS_KEYS = (
    *("label", "class", "category", "category_name", "class_name", "type", "entity", "entity_group", "tag"),
    *("labels", "rectanglelabels"),
)

#: Keys of the corners in a record, or the key of a list of corners, and whether the last two numbers are side lengths.
Form = tuple[tuple[str, ...], bool]

#: Corners by name (also those of Pascal VOC), as a list, or as a corner with two sides (COCO, Label Studio).
BOX_FORMS: tuple[Form, ...] = (
    (("x1", "y1", "x2", "y2"), False),
    (("xmin", "ymin", "xmax", "ymax"), False),
    (("left", "top", "right", "bottom"), False),
    (("box",), False),
    (("bbox",), True),
    (("x", "y", "width", "height"), True),
)
SPAN_FORMS: tuple[Form, ...] = (
    (("start", "end"), False),
    (("start_offset", "end_offset"), False),
    (("span",), False),
)

STEP = "Correct it, or leave the cell empty (None) if the source abstains; [] means that there is nothing."


@dataclass(frozen=True)
class ElementReader:
    """Reads sets of elements."""

    noun: str  # "box" or "span"; spans have integer coordinates and are not empty
    corners: tuple[str, ...]  # names of the coordinates, lower ones first: ("x1", "y1", "x2", "y2")
    classes: Sequence[str] | None = None  # names of the classes, or None where elements have none
    # Largest value of each upper coordinate; lower ones are at least 0. None if there are no limits
    limits: tuple[float, ...] | None = None

    @property
    def whole(self) -> bool:
        """Whether coordinates are whole numbers."""
        return self.noun == "span"

    @cached_property
    def width(self) -> int:
        """Number of columns of an encoded label."""
        return len(self.corners) + (self.classes is not None)

    @property
    def _nouns(self) -> str:
        return "spans" if self.whole else "boxes"

    @property
    def _expected(self) -> str:
        names = (*self.corners, "class") if self.classes else self.corners
        return f"a list of ({', '.join(names)})"

    def read(self, labels: Any) -> Batch:
        """Return an object array of float arrays ``(elements, corners)``, and codes of classes last."""
        sets = list(labels)
        if not all(map(self._is_ready, sets)):
            sets = [self._set(label, index) for index, label in enumerate(sets)]
        try:
            self._check(np.concatenate([np.zeros((0, self.width)), *sets]), 0)
        except InvalidLabelError:
            for index, numbers in enumerate(sets):  # finds the wrong set
                self._check(numbers, index)
        return as_object_array(sets)

    def _is_ready(self, label: Any) -> bool:
        return (
            isinstance(label, np.ndarray)
            and label.dtype == np.float64
            and label.ndim == 2
            and label.shape[1] == self.width
        )

    def _set(self, label: Any, index: int) -> FloatArray:
        if isinstance(label, np.ndarray) and label.dtype.kind in "iuf" and label.ndim == 2 and len(label):
            if label.shape[1] != self.width:
                raise self._wrong_width(label[0].tolist(), 0, index)
            return label.astype(np.float64, copy=False)
        if not is_listed(label):
            raise InvalidLabelError(f"label {plain_value(label)!r} is not {self._expected}. {STEP}", index)
        if len(label) == 0:
            return np.zeros((0, self.width))
        elements = label.tolist() if isinstance(label, np.ndarray) else label
        read = [self._element(element, place, index) for place, element in enumerate(elements)]
        return np.array(read, dtype=np.float64)

    def _element(self, element: Any, place: int, index: int) -> list[float]:
        if isinstance(element, Mapping):
            values = self._record(element, place, index)
        elif not is_listed(element):
            raise InvalidLabelError(
                f"{self.noun} {place} is {plain_value(element)!r}, and the label is not {self._expected}. "
                f"A label is a list of {self._nouns}; put a single one into a list, [[...]].",
                index,
            )
        else:
            values = list(element)
            if len(values) == 2 and isinstance(values[0], (list, tuple)):  # the corners, then the class
                values = [*values[0], values[1]]
        if len(values) != self.width:
            raise self._wrong_width(values, place, index)
        for value in values[: len(self.corners)]:
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
                raise InvalidLabelError(f"{self.noun} {place} holds {value!r}, which is not a number. {STEP}", index)
            if isinstance(value, int) and abs(value) > FARTHEST:
                raise InvalidLabelError(f"{self.noun} {place} holds {value!r:.60}, which is too large. {STEP}", index)
        return values if self.classes is None else [*values[:-1], self._code(values[-1], place, index)]

    def _record(self, record: Mapping[str, Any], place: int, index: int) -> list[Any]:
        forms = SPAN_FORMS if self.whole else BOX_FORMS
        found = corners_and_class(record, forms)
        if found is None:
            missing = next(name for name in self.corners if name not in record)
            others = ", ".join("/".join(keys) for keys, _ in forms[1:])
            raise InvalidLabelError(
                f"{self.noun} {place} has no {missing!r}: {record!r}. Give {', '.join(self.corners)} (or {others}). "
                f"{STEP}",
                index,
            )
        corners, kind = found
        if kind is None and self.classes is not None and len(corners) == len(self.corners):
            raise InvalidLabelError(f"{self.noun} {place} has no class ('label'): {record!r}. {STEP}", index)
        return corners if kind is None or len(corners) != len(self.corners) else [*corners, kind]

    def _code(self, value: Any, place: int, index: int) -> float:
        names = self.classes or ()
        if isinstance(value, str) and value in names:
            return float(names.index(value))
        if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and value in range(len(names)):
            return float(value)
        shown = ", ".join(map(repr, names[:6])) + (", ..." if len(names) > 6 else "")
        raise InvalidLabelError(
            f"{self.noun} {place} has the class {plain_value(value)!r}, which is not one of {shown}. Correct the "
            "spelling, or add it to classes=.",
            index,
        )

    def _wrong_width(self, values: list[Any], place: int, index: int) -> InvalidLabelError:
        hint = ""
        if self.classes is None and len(values) == self.width + 1:
            hint = f" If {self._nouns} have classes, name them: classes=[...]."
        elif self.classes is not None and len(values) == self.width - 1:
            hint = f" Other {self._nouns} have a class: give all of them one, or none."
        return InvalidLabelError(
            f"{self.noun} {place} has {len(values)} values, {values!r}; expected {self.width}: {self._expected}.{hint}",
            index,
        )

    def _check(self, numbers: FloatArray, index: int) -> None:
        names, half = (*self.corners, "class"), len(self.corners) // 2
        low, high, kinds = numbers[:, :half], numbers[:, half : 2 * half], numbers[:, 2 * half :]
        limits = self.limits or (np.inf,) * half
        order, least = ("not below", 0.0) if self.whole else ("above", -np.inf if self.limits is None else 0.0)
        faults: tuple[tuple[Any, Callable[[int, int], str]], ...] = (
            (~(np.abs(numbers) <= FARTHEST), lambda place, axis: f"{names[axis]} is {numbers[place, axis]}"),
            (
                low >= high if self.whole else low > high,
                lambda _, axis: f"{names[axis]} is {order} {names[half + axis]}",
            ),
            ((numbers != np.round(numbers)) & self.whole, lambda _, axis: f"{names[axis]} is not a whole number"),
            (
                np.hstack([low < least, high > np.array(limits)]),
                lambda _, axis: f"{names[axis]} is {'below 0' if axis < half else f'beyond {limits[axis - half]:g}'}",
            ),
            (
                (kinds < 0) | (kinds >= len(self.classes or ())),
                lambda place, _: f"the class has no code {kinds[place, 0]:g}",
            ),
        )
        for wrong, what in faults:
            if wrong.any():
                place, axis = np.argwhere(wrong)[0].tolist()
                shown = ", ".join(f"{value:g}" for value in numbers[place, : 2 * half])
                raise InvalidLabelError(f"{self.noun} {place} is ({shown}): {what(place, axis)}. {STEP}", index)


def united(spans: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return sorted spans, with those of one class that overlap or touch merged, and the new place of each span."""
    merged: list[FloatArray] = []
    last: dict[float, int] = {}
    part = np.zeros(len(spans), dtype=np.int64)
    for place in np.lexsort((spans[:, 1], spans[:, 0])):
        span = spans[place]
        kind = float(span[2]) if len(span) > 2 else 0.0
        at = last.get(kind)
        if at is not None and span[0] <= merged[at][1]:
            merged[at][1] = max(merged[at][1], span[1])
        else:
            at = last[kind] = len(merged)
            merged.append(span.copy())
        part[place] = at
    return np.array(merged).reshape(-1, spans.shape[1]), part


def corners_and_class(record: Mapping[str, Any], forms: tuple[Form, ...]) -> tuple[list[Any], Any] | None:
    """Return the corners of a record and its class or None; None for an unknown form."""
    for keys, has_sides in forms:
        if all(key in record for key in keys):
            values = [record[key] for key in keys] if len(keys) > 1 else _as_list(record[keys[0]])
            return (_from_sides(values) if has_sides else values), class_of(record)
    return None


def _as_list(values: Any) -> list[Any]:
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    return list(listed) if isinstance(listed, Sequence) and not isinstance(listed, (str, bytes)) else [listed]


def _from_sides(values: list[Any]) -> list[Any]:
    numbers = (int, float, np.integer, np.floating)
    if len(values) != 4 or any(isinstance(value, bool) or not isinstance(value, numbers) for value in values):
        return values  # values that are not numbers are reported later
    x, y, width, height = values
    return [x, y, x + width, y + height]


def class_of(record: Mapping[str, Any]) -> Any:
    """Return the class of a record, or None."""
    for key in CLASS_KEYS:
        value = record.get(key)
        if isinstance(value, (list, tuple)):
            value = value[0] if len(value) == 1 else (value or None)
        if not is_null(value):
            return value
    return None
