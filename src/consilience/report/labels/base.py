"""The two functions that show labels, found by the class of the label type, and what the renderers share."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from markupsafe import Markup

from consilience.arrays import as_object_array
from consilience.label_types import LabelSpace
from consilience.report.items import Item
from consilience.report.svg import element

__all__ = ["MAX_PIECES", "chip", "encoded", "item_picture", "label_html", "plain_text"]

#: Letters of a text, and pieces of a label, that are shown before "…".
MAX_TEXT, MAX_PIECES = 300, 30
#: Colours of chips; more classes than that share them.
COLOURS = 8


@singledispatch
def label_html(space: LabelSpace, label: Any, other: Any = None) -> Markup:
    """Return one label, as the user writes it, as HTML; what differs from `other` is marked.

    The default shows it as text.
    """
    return element("span", plain_text(label), class_="text")


@singledispatch
def item_picture(space: LabelSpace, item: Item) -> Markup:
    """Return a picture of all votes on an item; empty where a list of them says as much."""
    return Markup("")


def plain_text(label: Any) -> str:
    """Return a label as text: short numbers, no quotes around text, and not too long.

    Examples
    --------
    >>> plain_text(0.123456), plain_text("a"), plain_text(np.array([1.0, 2.5])), plain_text({"b", "a"})
    ('0.1235', 'a', '[1, 2.5]', '{a, b}')
    """
    shown = _spelled(label)
    return shown if len(shown) <= MAX_TEXT else shown[: MAX_TEXT - 1] + "…"


def _spelled(label: Any) -> str:
    if isinstance(label, np.ndarray):
        label = label.tolist()
    if isinstance(label, (float, np.floating)):
        return f"{label + 0.0:.4g}"  # no minus zero
    if isinstance(label, (set, frozenset)):
        return "{" + ", ".join(sorted(_spelled(part) for part in label)) + "}"
    if isinstance(label, (list, tuple)):
        inside = ", ".join(_spelled(part) for part in label[: MAX_TEXT // 3])
        return f"[{inside}]" if isinstance(label, list) else f"({inside})"
    if isinstance(label, dict):
        return ", ".join(f"{key}: {_spelled(part)}" for key, part in label.items())
    return str(label)


def chip(text: str, colour: int | None = None, css: str = "", hover: str | None = None) -> Markup:
    """Return a short text in a box; equal numbers have equal colours."""
    kind = "" if colour is None else f" c{colour % COLOURS}"
    return element("span", plain_text(text), class_=f"chip{kind}{' ' if css else ''}{css}", title=hover)


def encoded(space: LabelSpace, label: Any) -> Any:
    """Return one label in the form of the space, whichever way it was written."""
    return space.as_batch(as_object_array([label]))[0]
