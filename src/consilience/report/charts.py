"""Pictures as inline SVG: votes on a line, a histogram, intervals, the heat map and the map of sources.

A mark is made by `element`, which escapes all that it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from consilience.arrays import FloatArray
from consilience.label_types.base import NORMAL_95
from consilience.report.evidence import Relations, Vote


def element(name: str, *content: str, hover: str = "", **attributes: object) -> Markup:
    """Return an element of HTML or SVG; content that is not markup yet is escaped, underscores become hyphens.

    It tells `hover`, if there is any, when pointed at.

    Examples
    --------
    >>> element("text", "a < b", x=1.50, text_anchor="end")
    Markup('<text x="1.5" text-anchor="end">a &lt; b</text>')
    """
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(number(value) if isinstance(value, float) else str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = joined([element("title", hover), *content] if hover else content)
    return Markup("<{0}{1}>{2}</{0}>").format(name, Markup(shown), inside)


def joined(parts: Iterable[str]) -> Markup:
    """Return pieces one after the other, escaped where they are not markup."""
    return Markup("").join(parts)


def picture(width: float, height: float, *content: str, label: str, css: str | None = None) -> Markup:
    """Return an SVG picture of this size, with a description for those who cannot see it."""
    box = f"0 0 {number(width)} {number(height)}"
    return element("svg", *content, viewBox=box, width=width, height=height, role="img", aria_label=label, class_=css)


def text(content: str, x: float, y: float, css: str | None = None, **attributes: Any) -> Markup:
    """Return a text."""
    return element("text", content, x=x, y=y, class_=css, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> Markup:
    """Return a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=css)


def dot(x: float, y: float, radius: float, css: str, hover: str = "") -> Markup:
    """Return a dot that tells its name when pointed at."""
    return element("circle", hover=hover, cx=x, cy=y, r=radius, class_=css)


def rect(x: float, y: float, width: float, height: float, css: str, hover: str = "", **attributes: Any) -> Markup:
    """Return a rectangle that tells what it is when pointed at."""
    return element("rect", hover=hover, x=x, y=y, width=width, height=height, **attributes, class_=css)


def number(value: float) -> str:
    """Return a coordinate, rounded to what a screen can show."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def short(name: str, size: int) -> str:
    """Return a text cut after so many letters."""
    return name if len(name) <= size else name[: size - 1] + "…"


@dataclass(frozen=True)
class Scale:
    """A linear map from values to the pixels between two ends."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def around(cls, values: FloatArray, start: float, end: float) -> Scale:
        """Return the scale on which all the finite values have a place."""
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        return cls(low, high, start, end) if high > low else cls(low - 0.5, high + 0.5, start, end)

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * min(max(share, 0.0), 1.0)


def points_on_line(votes: Sequence[Vote], label: float, deviation: float, ends: FloatArray) -> Markup:
    """Return votes as numbered dots on a line, with the label and its 95% interval; `ends` are on the line, too."""
    width, margin, step = 440.0, 24.0, 17.0
    spread = NORMAL_95 * deviation if np.isfinite(deviation) else 0.0
    values = np.array([float(vote.label) for vote in votes])
    place = Scale.around(np.concatenate([values, [label - spread, label + spread], ends]), margin, width - margin)
    levels = np.zeros(len(votes), dtype=int)  # above the line, so that no dot hides another
    taken: list[float] = []  # the end of the last dot on each level
    for index in np.argsort([place(value) for value in values], kind="stable"):
        x = place(values[index])
        levels[index] = next((level for level, end in enumerate(taken) if x - end >= step), len(taken))
        taken[levels[index] : levels[index] + 1] = [x]
    axis = 30.0 + step * int(levels.max(initial=0))
    marks = [line(margin, axis, width - margin, axis, "axis")]
    if spread:
        left, right = place(label - spread), place(label + spread)
        marks.append(rect(left, axis - 5.0, max(right - left, 1.0), 10.0, "spread", rx=5.0))
    for vote, value, level in zip(votes, values, levels, strict=True):
        x, y = place(value), axis - step * int(level)
        marks.append(dot(x, y, 8.0, "vote", f"{vote.source}: {value + 0.0:.4g}"))
        marks.append(text(str(vote.number), x, y + 3.5, "inside"))
    marks.append(line(place(label), axis - 13.0, place(label), axis + 13.0, "label"))
    for value, anchor, x in ((place.low, "start", margin), (place.high, "end", width - margin)):
        marks.append(text(f"{value + 0.0:.4g}", x, axis + 26.0, "tick", text_anchor=anchor))
    return picture(width, axis + 32.0, *marks, label="votes on a line, with the label")


def histogram(values: FloatArray, bins: int = 20) -> Markup:
    """Return how many values between 0 and 1 fall into each of some equal bins."""
    counts, _ = np.histogram(np.clip(values, 0.0, 1.0), bins=bins, range=(0.0, 1.0))
    width, height, margin = 640.0, 180.0, 40.0
    step = (width - 2 * margin) / bins
    marks = [line(margin, height - 30.0, width - margin, height - 30.0, "axis")]
    top = max(int(counts.max(initial=0)), 1)
    for index, count in enumerate(counts.tolist()):
        tall = (height - 60.0) * count / top
        hover = f"{index / bins:.2f} to {(index + 1) / bins:.2f}: {count:,}"
        marks.append(rect(margin + index * step + 1.0, height - 30.0 - tall, step - 2.0, tall, "bar", hover))
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = margin + tick * (width - 2 * margin)
        marks.append(text(f"{tick:g}", x, height - 14.0, "tick", text_anchor="middle"))
    marks.append(text(f"{top:,} item{'' if top == 1 else 's'}", margin, 18.0, "tick"))
    marks.append(text("confidence", width / 2, height - 1.0, "tick", text_anchor="middle"))
    return picture(width, height, *marks, label="histogram of confidence")


def interval(value: float, low: float, high: float, scale: Scale) -> Markup:
    """Return an estimate with its interval as a small picture for a cell."""
    marks = [line(scale.start, 8.0, scale.end, 8.0, "axis")]
    if np.isfinite(low):
        marks.append(line(scale(low), 8.0, scale(high), 8.0, "range"))
    marks.append(dot(scale(value), 8.0, 4.0, "vote" if np.isfinite(low) else "open"))
    return picture(scale.end + scale.start, 16.0, *marks, label="95% interval")


def scatter(name: str, across: FloatArray, upwards: FloatArray, ends: tuple[float, float]) -> Markup:
    """Return votes of one source against the labels, with the line on which both are equal."""
    size, margin = 170.0, 26.0
    x, y = Scale(*ends, margin, size - 6.0), Scale(*ends, size - margin, 16.0)
    marks = [rect(margin, 16.0, size - margin - 6.0, size - margin - 16.0, "rim")]
    marks.append(line(x(ends[0]), y(ends[0]), x(ends[1]), y(ends[1]), "axis"))
    marks += [element("circle", cx=x(a), cy=y(b), r=2.2, class_="point") for a, b in zip(across, upwards, strict=True)]
    marks.append(text(short(name, 24), margin, 11.0, "name"))
    for end, anchor in zip(ends, ("start", "end"), strict=True):
        marks.append(text(f"{end:.3g}", x(end), size - 12.0, "tick", text_anchor=anchor))
    marks.append(text("label", (margin + size) / 2, size - 12.0, "tick", text_anchor="middle"))
    return picture(size, size - 8.0, *marks, label=f"votes of {name} against the labels")


def confusion(name: str, names: Sequence[str], shares: FloatArray) -> Markup:
    """Return how often one source gave each label (columns) to items of each label (rows), a share of the row."""
    k, size, side = len(names), 26.0, 8.0 + 6.4 * min(max(map(len, names)), 12)
    marks = [text(short(name, 30), 0.0, 11.0, "name")]
    for row, label in enumerate(names):
        y = 30.0 + row * size
        marks.append(text(short(label, 12), side - 4.0, y + 17.0, "tick", text_anchor="end"))
        marks.append(text(short(label, 3), side + (row + 0.5) * size, 26.0, "tick", text_anchor="middle"))
        for column in range(k):
            share, x = float(shares[row, column]), side + column * size
            hover = f"{label}: said {names[column]} {share:.0%}"
            css = "heat" if row == column else "heat wrong"
            marks.append(rect(x + 1, y + 1, size - 2, size - 2, css, hover, fill_opacity=f"{max(share, 0.04):.2f}"))
            if share >= 0.005:
                inside = "strong" if share > 0.6 else "faint"
                marks.append(text(f"{100 * share:.0f}", x + size / 2, y + 17.0, inside, text_anchor="middle"))
    return picture(side + k * size + 4.0, 34.0 + k * size, *marks, label=f"confusion matrix of {name}, in percent")


def bar(share: float, css: str = "bar") -> Markup:
    """Return a share of 1 as a bar for a cell."""
    inside = element("span", style=f"width:{100 * min(max(share, 0.0), 1.0):.0f}%", class_=css)
    return element("span", inside, class_="meter")


def heat_map(relations: Relations) -> Markup:
    """Return the mean distance between any two sources, strong where they are near, with groups framed."""
    m = len(relations.sources)
    scale = Scale.around(relations.cost, 1.0, 0.06)
    size = float(np.clip(560 / max(m, 1), 16, 44))
    names, top = 26.0 + 7.0 * min(max((len(name) for name in relations.sources), default=0), 18), 24.0
    marks: list[Markup] = []
    for a, name in enumerate(relations.sources):
        y = top + a * size
        marks.append(text(f"{short(name, 18)} {a + 1}", names - 6.0, y + size / 2 + 4.0, "name", text_anchor="end"))
        marks.append(text(str(a + 1), names + (a + 0.5) * size, top - 8.0, "tick", text_anchor="middle"))
        for b, other in enumerate(relations.sources):
            x, cost = names + b * size, float(relations.cost[a, b])
            place, pair = (x + 1, y + 1, size - 2, size - 2), f"{name} and {other}"
            if a == b:
                continue
            if not np.isfinite(cost):
                marks.append(rect(*place, "empty", f"{pair}: never vote on the same item"))
                continue
            shown = 1.0 - cost if relations.is_correlation else cost
            marks.append(rect(*place, "heat", f"{pair}: {shown:.3g}", fill_opacity=f"{scale(cost):.2f}"))
            if size >= 34:
                css = "strong" if scale(cost) > 0.75 else "faint"
                marks.append(text(f"{shown:.2g}", x + size / 2, y + size / 2 + 4.0, css, text_anchor="middle"))
    for group in relations.groups:
        first, span = min(group) * size, (max(group) - min(group) + 1) * size
        marks.append(rect(names + first, top + first, span, span, "group", rx=3.0))
    label = f"{'correlation' if relations.is_correlation else 'mean distance'} between sources"
    return picture(names + m * size + 10.0, top + m * size + 8.0, *marks, label=label, css="wide")


def source_map(relations: Relations) -> Markup:
    """Return the sources as points of the plane, near where they say the same, with the labels as a star."""
    size, margin = 460.0, 60.0
    places = relations.places
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    reach = max(float(np.abs(places - middle).max()), 1e-12)
    spots = size / 2 + (size / 2 - margin) * (places - middle) / reach * np.array([1.0, -1.0])
    height = float(np.ptp(spots[:, 1])) + 2 * 36.0
    spots[:, 1] -= spots[:, 1].min() - 36.0
    grouped = {index for group in relations.groups for index in group}
    marks = []
    for group in relations.groups:
        marks.append(element("polyline", points=corners(spots[list(group)]), class_="link"))
    taken = [(x - 7.0, y - 7.0, x + 7.0, y + 7.0) for x, y in spots.tolist()]
    for index, (name, (x, y)) in enumerate(zip(relations.sources, spots.tolist(), strict=False)):
        to_label = relations.to_label[index]
        kind = "correlation with" if relations.is_correlation else "mean distance to"
        hover = f"{name}: {kind} the labels {1.0 - to_label if relations.is_correlation else to_label:.3g}"
        marks.append(dot(x, y, 6.0, "vote grouped" if index in grouped else "vote", hover))
        marks.append(_beside(str(index + 1) if relations.crowded else short(name, 18), x, y, size, taken))
    x, y = spots[-1].tolist()
    angles, radii = np.pi / 2 + np.arange(10) * np.pi / 5, np.where(np.arange(10) % 2, 4.5, 10.0)
    star = corners(np.column_stack([x + radii * np.cos(angles), y - radii * np.sin(angles)]))
    marks.append(element("path", hover="the labels", d=f"M{star.replace(' ', ' L')}Z", class_="star"))
    marks.append(_beside("labels", x, y, size, taken))
    return picture(size, height, *marks, label="map of sources", css="wide")


def corners(points: FloatArray) -> str:
    """Return points as SVG lists them."""
    return " ".join(f"{number(x)},{number(y)}" for x, y in points)


def _beside(name: str, x: float, y: float, width: float, taken: list[tuple[float, float, float, float]]) -> Markup:
    """Return a name next to a point, where it covers nothing else; none where there is no such place."""
    long = 6.6 * len(name)
    for shift in (4.0, 17.0, -9.0, 30.0, -22.0, 43.0):
        for anchor, left, beside in (("start", x + 9.0, x + 9.0), ("end", x - 9.0 - long, x - 9.0)):
            box = (left, y + shift - 10.0, left + long, y + shift + 2.0)
            covers = any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken)
            if left >= 0.0 and box[2] <= width and not covers:
                taken.append(box)
                return text(name, beside, y + shift, "name", text_anchor=anchor)
    return Markup("")
