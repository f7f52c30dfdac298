"""The answers of Label Studio's controls as labels, and labels as such answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import is_null
from consilience.spaces.codes import plain_value

__all__ = ["KINDS", "PATH", "Kind", "Regions", "as_results"]

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
        lambda spans: [{"start": start, "end": end, "labels": [label]} for start, end, label in spans],
        empty=[],
        several=True,
    ),
    "rectanglelabels": Kind(
        _boxes,
        lambda boxes: [
            {**dict(zip(_BOX, box, strict=False)), "rotation": box[4], "rectanglelabels": [box[5]]} for box in boxes
        ],
        empty=[],
        several=True,
    ),
    "textarea": Kind(_text, lambda label: [{"text": [str(label)]}]),
}
