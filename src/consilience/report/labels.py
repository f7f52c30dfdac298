"""Labels as HTML. One function per label type, found by its class, so that a new label type is one function here.

`label_html` shows one label; where a second one is given, it marks what differs. `item_picture` shows all votes on an
item at once, for label types in which that says more than a list. A label type without either is shown as text.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from markupsafe import Markup

from consilience.arrays import as_object_array
from consilience.report.charts import points_on_line
from consilience.report.items import Item
from consilience.report.svg import element, joined
from consilience.spaces import Classes, FiniteMetric, LabelSpace, Product, Rankings, Scores

__all__ = ["chip", "item_picture", "label_html", "parts_of", "plain_text"]

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
        return f"{label:.4g}"
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


@label_html.register
def _(space: Classes, label: Any, other: Any = None) -> Markup:
    batch = space.as_batch(as_object_array([label]))
    if batch.ndim == 1:
        return chip(_name(space, int(batch[0])), int(batch[0]))
    likely = [int(code) for code in np.argsort(-batch[0], kind="stable")[:4] if batch[0, code] >= 0.005]
    return joined(chip(f"{_name(space, code)} {batch[0, code]:.0%}", code) for code in likely)


@label_html.register
def _(space: FiniteMetric, label: Any, other: Any = None) -> Markup:
    code = int(space.as_batch(as_object_array([label]))[0])
    return chip(_name(space, code), code)


def _name(space: Classes | FiniteMetric, code: int) -> str:
    return plain_text(code if space.names is None else space.names[code])


@label_html.register
def _(space: Scores, label: Any, other: Any = None) -> Markup:
    return element("span", plain_text(float(label)), class_="value")


@item_picture.register
def _(space: Scores, item: Item) -> Markup:
    # Sources speak on scales of their own, so what they said is drawn as it is, and the label with its interval.
    ends = np.array(space.range if space.range is not None else [], dtype=np.float64)
    deviation = float(item.details.get("standard_deviation", np.nan))
    return points_on_line(item.votes, float(item.label), deviation, ends)


@label_html.register
def _(space: Rankings, label: Any, other: Any = None) -> Markup:
    positions = space.as_batch(as_object_array([label]))[0].astype(int)
    before = None if other is None else space.as_batch(as_object_array([other]))[0].astype(int)
    places: list[Markup] = []
    for place in range(int(positions.max(initial=-1)) + 1):
        tied = [
            chip(
                plain_text(f"#{index}" if space.names is None else space.names[index]),
                index,
                "differs" if before is not None and _moved(positions, before, int(index)) else "",
            )
            for index in np.flatnonzero(positions == place)
        ]
        places.append(element("span", *tied, class_="tie") if len(tied) > 1 else joined(tied))
        if len(places) == MAX_PIECES:
            places.append(Markup("…"))
            break
    unseen = int((positions == -1).sum())
    rest = element("small", f" {unseen} not seen") if unseen else Markup("")
    return element("span", Markup('<span class="then">›</span>').join(places), rest, class_="ranking")


def _moved(positions: Any, before: Any, index: int) -> bool:
    """Return whether an item stands on the wrong side of most items that both rankings order."""
    size = min(len(positions), len(before))
    both = (positions[:size] >= 0) & (before[:size] >= 0)
    if index >= size or not both[index]:
        return False
    here, there = np.sign(positions[:size] - positions[index]), np.sign(before[:size] - before[index])
    opposite = int((both & (here * there < 0)).sum())
    return opposite * 2 >= max(int(both.sum()) - 1, 1)


@label_html.register
def _(space: Product, label: Any, other: Any = None) -> Markup:
    rows = []
    for name, part in space.factors.items():
        value = label.get(name) if isinstance(label, dict) else None
        if value is not None:
            beside = other.get(name) if isinstance(other, dict) else None
            rows.append(element("dt", name) + element("dd", label_html(part, value, beside)))
    return element("dl", *rows, class_="record")


@item_picture.register
def _(space: Product, item: Item) -> Markup:
    shown = []
    for name in space.factors:
        inner = parts_of(item, name)
        drawn = item_picture(space.factors[name], inner) if inner is not None else Markup("")
        if drawn:
            shown.append(element("figure", drawn, element("figcaption", name)))
    return joined(shown)


def parts_of(item: Item, name: str) -> Item | None:
    """Return an item whose labels are records as one whose labels are those of a field; None where it has none."""
    from dataclasses import replace

    def field_of(label: Any) -> Any:
        return label.get(name) if isinstance(label, dict) else None

    if field_of(item.label) is None:
        return None
    votes = [replace(vote, label=field_of(vote.label)) for vote in item.votes if field_of(vote.label) is not None]
    details = {key.removeprefix(f"{name}/"): value for key, value in item.details.items() if key.startswith(f"{name}/")}
    return replace(item, label=field_of(item.label), votes=tuple(votes), details=details)
