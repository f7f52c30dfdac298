"""Sets of boxes or spans as users write them: checked, and made into arrays of corners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError
from consilience.label_types.codes import plain_value

__all__ = ["BOX_FORMS", "SPAN_FORMS", "ElementReader", "class_names", "class_of", "corners_and_class", "united"]

#: What other tools call the class of an element; where it is a list, there is one name in it.
CLASS_KEYS = (
    *("label", "class", "category", "category_name", "class_name", "type", "entity", "entity_group", "tag"),
    *("labels", "rectanglelabels"),
)

#: Keys of a record, and how to make corners of their values.
Form = tuple[tuple[str, ...], Callable[..., list[Any]]]


def _as_they_are(*values: Any) -> list[Any]:
    return list(values)


def _from_sides(x: Any, y: Any, width: Any, height: Any) -> list[Any]:
    numbers = (int, float, np.integer, np.floating)
    if any(isinstance(value, bool) or not isinstance(value, numbers) for value in (x, y, width, height)):
        return [x, y, width, height]  # whatever is no number is found further on
    return [x, y, x + width, y + height]


def _of_list(values: Any, turn: Callable[..., list[Any]], size: int) -> list[Any]:
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    if not isinstance(listed, Sequence) or isinstance(listed, (str, bytes)):
        return [listed]
    return turn(*listed) if len(listed) == size else list(listed)


#: Corners by name (also as Pascal VOC has them), as a list, or COCO's and Label Studio's corner with two sides.
BOX_FORMS: tuple[Form, ...] = (
    (("x1", "y1", "x2", "y2"), _as_they_are),
    (("xmin", "ymin", "xmax", "ymax"), _as_they_are),
    (("left", "top", "right", "bottom"), _as_they_are),
    (("box",), lambda box: _of_list(box, _as_they_are, 4)),
    (("bbox",), lambda box: _of_list(box, _from_sides, 4)),
    (("x", "y", "width", "height"), _from_sides),
)
SPAN_FORMS: tuple[Form, ...] = (
    (("start", "end"), _as_they_are),
    (("start_offset", "end_offset"), _as_they_are),
    (("span",), lambda span: _of_list(span, _as_they_are, 2)),
)


STEP = "Correct it, or leave the cell empty (None) where the source abstains; [] says that there is nothing."


@dataclass(frozen=True)
class ElementReader:
    """Reads sets of elements.

    Parameters
    ----------
    noun
        "box" or "span", for messages.
    corners
        Names of the coordinates, lower ones first: ``("x1", "y1", "x2", "y2")``.
    classes
        Names of the classes, or None where elements have none.
    limits
        Largest value of each lower or upper coordinate, or None where there is no limit.
    whole
        Whether coordinates are whole numbers.
    filled
        Whether an element needs an extent.
    """

    noun: str
    corners: tuple[str, ...]
    classes: Sequence[str] | None = None
    limits: tuple[float, ...] | None = None
    whole: bool = False
    filled: bool = False

    @property
    def width(self) -> int:
        """Number of columns of an encoded label."""
        return len(self.corners) + (self.classes is not None)

    @property
    def nouns(self) -> str:
        """Several of them, for messages."""
        return "boxes" if self.noun == "box" else f"{self.noun}s"

    @property
    def expected(self) -> str:
        """What a label should have been, for messages."""
        names = (*self.corners, "class") if self.classes else self.corners
        return f"a list of ({', '.join(names)})"

    def read(self, labels: Any) -> Batch:
        """Return an object array of float arrays ``(elements, corners)``, with the code of the class beside."""
        return as_object_array(self._set(label, index) for index, label in enumerate(labels))

    def _set(self, label: Any, index: int) -> FloatArray:
        if isinstance(label, (str, bytes, Mapping)) or np.ndim(_sized(label)) == 0:
            raise InvalidLabelError(f"label {plain_value(label)!r} is not {self.expected}. {STEP}", index)
        if isinstance(label, np.ndarray) and label.dtype.kind in "iuf" and label.ndim == 2:
            numbers = label.astype(np.float64, copy=False)
            if len(numbers) and numbers.shape[1] != self.width:
                raise self._wrong_width(label[0].tolist(), 0, index)
            numbers = numbers if len(numbers) else np.zeros((0, self.width))
        else:
            elements = label.tolist() if isinstance(label, np.ndarray) else list(label)
            rows = [self._element(element, place, index) for place, element in enumerate(elements)]
            numbers = np.array(rows, dtype=np.float64) if rows else np.zeros((0, self.width))
        self._check(numbers, index)
        return numbers

    def _element(self, element: Any, place: int, index: int) -> list[float]:
        if isinstance(element, Mapping):
            return self._record(dict(element), place, index)
        if isinstance(element, (str, bytes)) or np.ndim(_sized(element)) == 0:
            hint = f" A label is a list of {self.nouns}: put one alone into a list, [[...]]."
            raise InvalidLabelError(
                f"{self.noun} {place} is {plain_value(element)!r}, and the label not {self.expected}.{hint}", index
            )
        values = list(element)
        if len(values) == 2 and isinstance(values[0], (list, tuple)):  # the corners, then the class
            values = [*values[0], values[1]]
        if len(values) != self.width:
            raise self._wrong_width(values, place, index)
        corners = [self._number(value, place, index) for value in values[: len(self.corners)]]
        return corners if self.classes is None else [*corners, self._code(values[-1], place, index)]

    def _record(self, record: dict[str, Any], place: int, index: int) -> list[float]:
        forms = BOX_FORMS if self.noun == "box" else SPAN_FORMS
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
        if len(corners) != len(self.corners):
            raise self._wrong_width(corners, place, index)
        numbers = [self._number(value, place, index) for value in corners]
        if self.classes is None:
            if kind is not None:
                raise self._wrong_width([*corners, kind], place, index)
            return numbers
        if kind is None:
            raise InvalidLabelError(f"{self.noun} {place} has no class ('label'): {record!r}. {STEP}", index)
        return [*numbers, self._code(kind, place, index)]

    def _number(self, value: Any, place: int, index: int) -> float:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise InvalidLabelError(f"{self.noun} {place} holds {value!r}, which is no number. {STEP}", index)
        return float(value)

    def _code(self, value: Any, place: int, index: int) -> float:
        names = self.classes or ()
        if isinstance(value, str) and value in names:
            return float(names.index(value))
        if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and value in range(len(names)):
            return float(value)
        shown = ", ".join(map(repr, names[:6])) + (", ..." if len(names) > 6 else "")
        raise InvalidLabelError(
            f"{self.noun} {place} has the class {plain_value(value)!r}, which is none of {shown}. Correct the "
            "spelling, or add it to classes=.",
            index,
        )

    def _wrong_width(self, values: list[Any], place: int, index: int) -> InvalidLabelError:
        hint = ""
        if self.classes is None and len(values) == self.width + 1:
            hint = f" For {self.nouns} with classes name these: classes=[...]."
        elif self.classes is not None and len(values) == self.width - 1:
            hint = f" Other {self.nouns} have a class: give all of them one, or none."
        return InvalidLabelError(
            f"{self.noun} {place} has {len(values)} values, {values!r}; expected {self.width}: {self.expected}.{hint}",
            index,
        )

    def _check(self, numbers: FloatArray, index: int) -> None:
        if len(numbers) == 0:
            return
        half = len(self.corners) // 2
        low, high = numbers[:, :half], numbers[:, half : 2 * half]
        if not np.isfinite(numbers).all():
            place, axis = np.argwhere(~np.isfinite(numbers))[0]
            name = self.corners[axis] if axis < len(self.corners) else "class"
            raise self._wrong(numbers, int(place), f"{name} is {numbers[place, axis]}", index)
        turned = low >= high if self.filled else low > high
        if turned.any():
            place, axis = np.argwhere(turned)[0]
            sign = "not below" if self.filled else "above"
            raise self._wrong(numbers, int(place), f"{self.corners[axis]} is {sign} {self.corners[half + axis]}", index)
        if self.whole and (numbers != np.round(numbers)).any():
            place, axis = np.argwhere(numbers != np.round(numbers))[0]
            raise self._wrong(numbers, int(place), f"{self.corners[axis]} is no whole number", index)
        if self.limits is not None:
            beyond = np.hstack([low < 0, high > np.array(self.limits)])
            if beyond.any():
                place, axis = np.argwhere(beyond)[0]
                bound = "below 0" if axis < half else f"beyond {self.limits[axis - half]:g}"
                raise self._wrong(numbers, int(place), f"{self.corners[axis]} is {bound}", index)
        if self.classes is not None:
            wrong = (numbers[:, -1] < 0) | (numbers[:, -1] >= len(self.classes))
            if wrong.any():
                place = int(np.flatnonzero(wrong)[0])
                raise self._wrong(numbers, place, f"the class has no code {numbers[place, -1]:g}", index)

    def _wrong(self, numbers: FloatArray, place: int, what: str, index: int) -> InvalidLabelError:
        shown = ", ".join(f"{value:g}" for value in numbers[place, : len(self.corners)])
        return InvalidLabelError(f"{self.noun} {place} is ({shown}): {what}. {STEP}", index)


def united(spans: FloatArray) -> FloatArray:
    """Return sorted spans of which those of one class that overlap or touch are put together."""
    if len(spans) < 2:
        return spans
    merged: list[FloatArray] = []
    last: dict[float, int] = {}
    for span in spans[np.lexsort((spans[:, 1], spans[:, 0]))]:
        kind = float(span[2]) if len(span) > 2 else 0.0
        at = last.get(kind)
        if at is not None and span[0] <= merged[at][1]:
            merged[at][1] = max(merged[at][1], span[1])
        else:
            last[kind] = len(merged)
            merged.append(span.copy())
    return np.array(merged)


def class_names(classes: Any) -> tuple[str, ...] | None:
    """Return the names of classes as a tuple, or say what is wrong with them."""
    if classes is None:
        return None
    if isinstance(classes, (str, bytes)) or np.ndim(_sized(classes)) == 0:
        raise InvalidLabelError(f"classes={classes!r} is not a list of names. Give one such as ['car', 'person'].")
    names = tuple(str(name) if isinstance(name, np.str_) else name for name in classes)
    unfit = next((name for name in names if not isinstance(name, str) or not name), None)
    if not names or unfit is not None:
        raise InvalidLabelError(f"classes holds {unfit!r}. Give at least one name, each a text that is not empty.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidLabelError(f"Class {twice!r} is named twice. Name each one once.")
    return names


def _sized(value: Any) -> Any:
    """Return something whose `ndim` says whether the value has a length."""
    return [0] if isinstance(value, (list, tuple)) else value


def corners_and_class(record: Mapping[str, Any], forms: tuple[Form, ...]) -> tuple[list[Any], Any] | None:
    """Return the corners of a record, and its class or None; nothing where it is written in no known way."""
    for keys, turn in forms:
        if all(key in record for key in keys):
            return turn(*(record[key] for key in keys)), class_of(record)
    return None


def class_of(record: Mapping[str, Any]) -> Any:
    """Return the class of a record, or None."""
    for key in CLASS_KEYS:
        value = record.get(key)
        if isinstance(value, (list, tuple)):
            value = value[0] if len(value) == 1 else (value or None)
        if not is_null(value):
            return value
    return None
