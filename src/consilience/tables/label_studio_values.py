"""The answers of Label Studio's controls as labels, and labels as such answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import is_null
from consilience.label_types import Boxes, LabelSpace, Spans
from consilience.label_types.codes import plain_value

__all__ = ["KINDS", "PATH", "Kind", "Regions", "as_boxes", "as_results", "without_single_names"]

#: Between the steps of a path of a taxonomy.
PATH = " / "

#: The parts of `result` that belong to one control.
Regions = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Kind:
    """How one type of control stores an answer.

    Parameters
    ----------
    read
        From the value of each result to the label of the annotation.
    write
        From a label to the value of each result.
    empty
        Label of an annotation without a result; None where that is no answer.
    several
        Whether an annotation may hold several results.
    """

    read: Callable[[Regions], Any]
    write: Callable[[Any], list[dict[str, Any]]]
    empty: Any = None
    several: bool = False


def as_results(kind: str, label: Any, field: str, to_name: str) -> list[dict[str, Any]]:
    """Return a label as the `result` of a prediction; nothing where there is no label."""
    if is_null(label):
        return []
    values = KINDS[kind].write(label) if kind != "ranker" else [{"ranker": {field: list(label)}}]
    return [
        {"id": f"{field}_{number}", "from_name": field, "to_name": to_name, "type": kind, "value": value}
        for number, value in enumerate(values)
    ]


def as_boxes(labels: Sequence[Any]) -> list[Any] | None:
    """Return rectangles as (x1, y1, x2, y2, label); None if one of them is turned."""
    if any(box[4] for label in labels for box in label or ()):
        return None
    return [
        None if label is None else [(x, y, x + width, y + height, name) for x, y, width, height, _, name in label]
        for label in labels
    ]


def without_single_names(labels: Sequence[Any], space: type[Boxes] | type[Spans]) -> tuple[list[Any], LabelSpace]:
    """Return labels and their type: with classes where elements have names, else without."""
    names = {element[-1] for label in labels for element in label or ()}
    if None not in names and names:
        return list(labels), space(sorted(map(str, names)))
    if names == {None} or not names:
        return [None if label is None else [element[:-1] for element in label] for label in labels], space()
    named = [
        None
        if label is None
        else [(*element[:-1], "(none)" if element[-1] is None else element[-1]) for element in label]
        for label in labels
    ]
    return named, space(sorted("(none)" if name is None else str(name) for name in names))


def _rectangle(box: Sequence[Any]) -> dict[str, Any]:
    """Return the value of one box: corners and perhaps a name, or the six values that turned boxes have."""
    if len(box) == 6:
        return {**dict(zip(_BOX, box, strict=False)), "rotation": box[4], "rectanglelabels": [box[5]]}
    x1, y1, x2, y2 = (float(value) for value in box[:4])
    value = {"x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1, "rotation": 0.0}
    return value | ({"rectanglelabels": [box[4]]} if len(box) > 4 else {})


def _span(span: Sequence[Any]) -> dict[str, Any]:
    start, end, *name = span
    return {"start": plain_value(start), "end": plain_value(end), **({"labels": name} if name else {})}


def _names(label: Any) -> list[str]:
    if isinstance(label, (set, frozenset, list, tuple)):
        return sorted(map(str, label))
    return [str(label)]


def _one(name: str) -> Callable[[Regions], Any]:
    return lambda regions: regions[0][name]


def _choices(regions: Regions) -> Any:
    chosen = regions[0]["choices"]
    return tuple(map(str, chosen)) if chosen else None


def _taxonomy(regions: Regions) -> Any:
    paths = tuple(PATH.join(map(str, path)) for path in regions[0]["taxonomy"])
    return paths or None


def _ranker(regions: Regions) -> Any:
    ranked = {name: ids for name, ids in regions[0]["ranker"].items() if name != "_"}
    if len(ranked) != 1:
        raise ValueError(f"{len(ranked)} buckets: only orders are read, not things sorted into buckets")
    return list(map(str, next(iter(ranked.values())))) or None


def _spans(regions: Regions) -> Any:
    spans = [(value["start"], value["end"], label) for value in regions for label in value.get("labels") or [None]]
    return sorted(spans, key=str) if any(isinstance(span[0], str) for span in spans) else sorted(spans, key=_place)


def _place(region: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*region[:-1], str(region[-1]))


_BOX = ("x", "y", "width", "height")


def _boxes(regions: Regions) -> Any:
    boxes = [
        (*(float(value[side]) for side in _BOX), float(value.get("rotation") or 0.0), label)
        for value in regions
        for label in value.get("rectanglelabels") or [None]
    ]
    return sorted(boxes, key=_place)


def _text(regions: Regions) -> Any:
    parts = regions[0]["text"]
    return parts if isinstance(parts, str) else "\n".join(map(str, parts))


def _number(label: Any) -> Any:
    number = plain_value(np.asarray(label, dtype=np.float64).reshape(())[()])
    return int(number) if number == int(number) else number


KINDS: dict[str, Kind] = {
    "choices": Kind(_choices, lambda label: [{"choices": _names(label)}]),
    "pairwise": Kind(_one("selected"), lambda label: [{"selected": str(label)}]),
    "rating": Kind(_one("rating"), lambda label: [{"rating": max(1, round(float(label)))}]),
    "number": Kind(_one("number"), lambda label: [{"number": _number(label)}]),
    "taxonomy": Kind(_taxonomy, lambda label: [{"taxonomy": [path.split(PATH) for path in _names(label)]}]),
    "ranker": Kind(_ranker, lambda label: [{"ranker": {"rank": list(label)}}]),  # the name of the control, if known
    "labels": Kind(
        _spans,
        lambda spans: [_span(span) for span in spans],
        empty=[],
        several=True,
    ),
    "rectanglelabels": Kind(
        _boxes,
        lambda boxes: [_rectangle(box) for box in boxes],
        empty=[],
        several=True,
    ),
    "textarea": Kind(_text, lambda label: [{"text": [str(label)]}]),
}
