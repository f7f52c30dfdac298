"""Boxes and spans as other tools write them: records with corners, sides or offsets, and a class under several names.

>>> corners_and_class({"bbox": [10, 5, 50, 35], "category": "car"}, BOX_FORMS)
([10, 5, 60, 40], 'car')
>>> corners_and_class({"start_offset": 0, "end_offset": 4, "label": "PER"}, SPAN_FORMS)
([0, 4], 'PER')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from consilience.arrays import is_null

__all__ = ["BOX_FORMS", "CLASS_KEYS", "SPAN_FORMS", "Form", "class_of", "corners_and_class"]

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
