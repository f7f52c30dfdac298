"""Sets of boxes, drawn on the plane, and of spans, drawn on the line."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from consilience.arrays import FloatArray
from consilience.label_types import Boxes, Spans
from consilience.report.items import Item
from consilience.report.labels.base import MAX_PIECES, chip, encoded, item_picture, label_html
from consilience.report.svg import Scale, element, joined, picture, text

__all__: list[str] = []

WIDTH, MOST_HEIGHT, MARGIN = 360.0, 300.0, 14.0
#: Height of the line of one vote on spans.
ROW = 16.0


@label_html.register(Boxes)
@label_html.register(Spans)
def _(space: Boxes | Spans, label: Any, other: Any = None) -> Markup:
    own = encoded(space, label)
    if len(own) == 0:
        return element("small", "nothing")
    beside = None if other is None else {tuple(row) for row in encoded(space, other).tolist()}
    shown = []
    for row in own[:MAX_PIECES].tolist():
        corners = row[: len(space.reader.corners)]
        name = "" if space.classes is None else f"{space.classes[int(row[-1])]} "
        differs = "differs" if beside is not None and tuple(row) not in beside else ""
        colour = None if space.classes is None else int(row[-1])
        shown.append(chip(f"{name}{', '.join(f'{value:.4g}' for value in corners)}", colour, f"square {differs}"))
    return joined([*shown, Markup("…")] if len(own) > MAX_PIECES else shown)


@item_picture.register
def _(space: Boxes, item: Item) -> Markup:
    label = encoded(space, item.label)[:, :4]
    votes = [encoded(space, vote.label)[:, :4] for vote in item.votes]
    everything = np.vstack([label, *votes])
    if len(everything) == 0:
        return Markup("")
    low, high = everything[:, :2].min(axis=0), everything[:, 2:].max(axis=0)
    if space.size is not None:
        low, high = np.zeros(2), np.array(space.size)
    extent = np.maximum(high - low, 1e-12)
    scale = min((WIDTH - 2 * MARGIN) / extent[0], (MOST_HEIGHT - 2 * MARGIN) / extent[1])

    def drawn(box: FloatArray, css: str, hover: str) -> Markup:
        corner, sides = MARGIN + (box[:2] - low) * scale, (box[2:] - box[:2]) * scale
        place = {"x": float(corner[0]), "y": float(corner[1]), "width": float(sides[0]), "height": float(sides[1])}
        return element("rect", element("title", hover), **place, class_=css)

    marks = [
        drawn(box, "box vote", f"{vote.number}: {vote.source}")
        for vote, boxes in zip(item.votes, votes, strict=True)
        for box in boxes
    ]
    marks += [drawn(box, "box truth", "label") for box in label]
    size = extent * scale + 2 * MARGIN
    return picture(float(size[0]), float(size[1]), *marks, label="boxes of all votes, the label as the thick ones")


@item_picture.register
def _(space: Spans, item: Item) -> Markup:
    rows = [("label", encoded(space, item.label))]
    rows += [(f"{vote.number}", encoded(space, vote.label)) for vote in item.votes]
    ends = np.vstack([spans[:, :2] for _, spans in rows])
    if len(ends) == 0:
        return Markup("")
    across = Scale.around(ends.ravel(), 40.0, WIDTH + 60.0)
    marks = []
    for number, (name, spans) in enumerate(rows):
        top = 6.0 + number * ROW
        marks.append(text(name, 34.0, top + 9.0, "tick", text_anchor="end"))
        for span in spans:
            start, end = across(float(span[0])), across(float(span[1]))
            hover = element("title", f"{span[0]:.0f} to {span[1]:.0f}")
            css = "box truth" if number == 0 else "box vote"
            width = max(end - start, 1.0)
            marks.append(element("rect", hover, x=start, y=top, width=width, height=ROW - 6.0, class_=css))
    height = 10.0 + ROW * len(rows) + 12.0
    for value, anchor in ((across.low, "start"), (across.high, "end")):
        marks.append(text(f"{value:.0f}", across(value), height - 4.0, "tick", text_anchor=anchor))
    return picture(WIDTH + 70.0, height, *marks, label="spans of all votes, one line each, the label first")
