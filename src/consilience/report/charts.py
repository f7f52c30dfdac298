"""Pictures as inline SVG: votes on a line, a histogram, intervals, the heat map and the map of sources.

A mark is made by `element`, which escapes all that it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape

from consilience.arrays import FloatArray
from consilience.report.evidence import Relations, Vote


def element(name: str, *content: str, **attributes: object) -> Markup:
    """Return an element of HTML or SVG; content that is no markup yet is escaped, underscores become hyphens.

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
    return Markup("<{0}{1}>{2}</{0}>").format(name, Markup(shown), joined(content))


def joined(parts: Iterable[str]) -> Markup:
    """Return pieces one after the other, escaped where they are no markup."""
    return Markup("").join(parts)


def picture(width: float, height: float, *content: str, label: str, css: str = "") -> Markup:
    """Return an SVG picture of this size, with a description for those who cannot see it."""
    return element(
        "svg",
        *content,
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=label,
        class_=css or None,
    )


def text(content: str, x: float, y: float, css: str = "", **attributes: object) -> Markup:
    """Return a text."""
    return element("text", content, x=float(x), y=float(y), class_=css or None, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> Markup:
    """Return a straight line."""
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=css)


def dot(x: float, y: float, radius: float, css: str, hover: str = "") -> Markup:
    """Return a dot that tells its name when pointed at."""
    title = [element("title", hover)] if hover else []
    return element("circle", *title, cx=float(x), cy=float(y), r=float(radius), class_=css)


def rect(x: float, y: float, width: float, height: float, css: str, hover: str = "", **attributes: object) -> Markup:
    """Return a rectangle that tells what it is when pointed at."""
    title = [element("title", hover)] if hover else []
    place = {"x": float(x), "y": float(y), "width": float(width), "height": float(height)}
    return element("rect", *title, **place, **attributes, class_=css)


def number(value: float) -> str:
    """Return a coordinate, rounded to what a screen can show."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


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
        if not high > low:
            low, high = low - 0.5, high + 0.5
        return cls(low, high, start, end)

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * min(max(share, 0.0), 1.0)


#: Half the width of an interval that holds 95% of a normal law, in standard deviations.
NORMAL_95 = 1.96


def points_on_line(votes: Sequence[Vote], label: float, deviation: float, ends: FloatArray) -> Markup:
    """Return votes as numbered dots on a line, with the label and its 95% interval; `ends` are on the line, too."""
    width, margin, step = 440.0, 24.0, 17.0
    spread = NORMAL_95 * deviation if np.isfinite(deviation) else 0.0
    values = np.array([float(vote.label) for vote in votes])
    place = Scale.around(np.concatenate([values, [label - spread, label + spread], ends]), margin, width - margin)
    levels = _levels([place(value) for value in values], step)
    axis = 30.0 + step * max(levels, default=0)
    marks = [line(margin, axis, width - margin, axis, "axis")]
    if spread:
        left, right = place(label - spread), place(label + spread)
        marks.append(rect(left, axis - 5.0, max(right - left, 1.0), 10.0, "spread", rx=5.0))
    for vote, value, level in zip(votes, values, levels, strict=True):
        x, y = place(value), axis - step * level
        marks.append(dot(x, y, 8.0, "vote", f"{vote.source}: {value + 0.0:.4g}"))
        marks.append(text(str(vote.number), x, y + 3.5, "inside"))
    marks.append(line(place(label), axis - 13.0, place(label), axis + 13.0, "label"))
    for value, anchor, x in ((place.low, "start", margin), (place.high, "end", width - margin)):
        marks.append(text(f"{value + 0.0:.4g}", x, axis + 26.0, "tick", text_anchor=anchor))
    return picture(width, axis + 32.0, *marks, label="votes on a line, with the label")


def _levels(places: Sequence[float], step: float) -> list[int]:
    """Return on which level above the line each dot goes, so that none hides another."""
    levels = [0] * len(places)
    taken: list[float] = []  # the end of the last dot on each level
    for index in sorted(range(len(places)), key=lambda index: places[index]):
        level = next((level for level, end in enumerate(taken) if places[index] - end >= step), len(taken))
        taken[level : level + 1] = [places[index]]
        levels[index] = level
    return levels


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
    marks.append(text(f"{top:,} items", margin, 18.0, "tick"))
    marks.append(text("confidence", width / 2, height - 1.0, "tick", text_anchor="middle"))
    return picture(width, height, *marks, label="histogram of confidence")


def interval(value: float, error: float, scale: Scale) -> Markup:
    """Return an estimate with its 95% interval as a small picture for a cell."""
    marks = [line(scale.start, 8.0, scale.end, 8.0, "axis")]
    if np.isfinite(error):
        low, high = max(value - NORMAL_95 * error, scale.low), value + NORMAL_95 * error
        marks.append(line(scale(low), 8.0, scale(high), 8.0, "range"))
    marks.append(dot(scale(value), 8.0, 4.0, "vote" if np.isfinite(error) else "open"))
    return picture(scale.end + scale.start, 16.0, *marks, label="95% interval")


def bar(share: float, css: str = "bar") -> Markup:
    """Return a share of 1 as a bar for a cell."""
    inside = element("span", style=f"width:{100 * min(max(share, 0.0), 1.0):.0f}%", class_=css)
    return element("span", inside, class_="meter")


def heat_map(relations: Relations) -> Markup:
    """Return the mean cost between any two sources, strong where they are near, with groups framed."""
    m = len(relations.sources)
    known = relations.cost[np.isfinite(relations.cost)]
    scale = Scale.around(known, 1.0, 0.06)
    size = float(np.clip(560 / max(m, 1), 16, 44))
    names = 26.0 + 7.0 * min(max((len(name) for name in relations.sources), default=0), 18)
    width, top = names + m * size + 10.0, 24.0
    marks: list[Markup] = []
    for a, name in enumerate(relations.sources):
        y = top + (a + 0.5) * size
        marks.append(text(f"{_short(name, 18)} {a + 1}", names - 6.0, y + 4.0, "name", text_anchor="end"))
        marks.append(text(str(a + 1), names + (a + 0.5) * size, top - 8.0, "tick", text_anchor="middle"))
        cells = (_heat_cell(relations, a, b, names + b * size, top + a * size, size, scale) for b in range(m) if b != a)
        marks.extend(cells)
    for group in relations.groups:
        x, span = names + min(group) * size, (max(group) - min(group) + 1) * size
        marks.append(rect(x, top + min(group) * size, span, span, "group", rx=3.0))
    return picture(width, top + m * size + 8.0, *marks, label="mean cost between sources", css="wide")


def _heat_cell(relations: Relations, a: int, b: int, x: float, y: float, size: float, scale: Scale) -> Markup:
    cost = float(relations.cost[a, b])
    pair = f"{relations.sources[a]} and {relations.sources[b]}"
    place = (x + 1, y + 1, size - 2, size - 2)
    if not np.isfinite(cost):
        return rect(*place, "empty", f"{pair}: never vote on the same item")
    marks = [rect(*place, "heat", f"{pair}: {cost:.3g}", fill_opacity=f"{scale(cost):.2f}")]
    if size >= 34:
        css = "strong" if scale(cost) > 0.75 else "faint"
        marks.append(text(f"{cost:.2g}", x + size / 2, y + size / 2 + 4.0, css, text_anchor="middle"))
    return joined(marks)


def source_map(relations: Relations) -> Markup:
    """Return the sources as points of the plane, near where they say the same, with the labels as a star."""
    size, margin = 460.0, 60.0
    places = relations.places
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    reach = max(float(np.abs(places - middle).max()), 1e-12)
    spots = size / 2 + (size / 2 - margin) * (places - middle) / reach * np.array([1.0, -1.0])
    height = float(spots[:, 1].max() - spots[:, 1].min()) + 2 * 36.0
    spots[:, 1] -= spots[:, 1].min() - 36.0
    grouped = {index for group in relations.groups for index in group}
    marks = []
    for group in relations.groups:
        corners = " ".join(f"{number(x)},{number(y)}" for x, y in spots[list(group)])
        marks.append(element("polyline", points=corners, class_="link"))
    taken = [(x - 7.0, y - 7.0, x + 7.0, y + 7.0) for x, y in spots.tolist()]
    for index, name in enumerate(relations.sources):
        x, y = map(float, spots[index])
        hover = f"{name}: mean cost to the labels {relations.to_label[index]:.3g}"
        marks.append(dot(x, y, 6.0, "vote grouped" if index in grouped else "vote", hover))
        marks.append(_beside(str(index + 1) if relations.crowded else _short(name, 18), x, y, size, taken))
    x, y = map(float, spots[-1])
    marks.append(element("path", element("title", "the labels"), d=_star(x, y, 10.0), class_="star"))
    marks.append(_beside("labels", x, y, size, taken))
    return picture(size, height, *marks, label="map of sources", css="wide")


def _beside(name: str, x: float, y: float, width: float, taken: list[tuple[float, float, float, float]]) -> Markup:
    """Return a name next to a point, where it covers nothing else; none where there is no such place."""
    long = 6.6 * len(name)
    for shift in (4.0, 17.0, -9.0, 30.0, -22.0, 43.0):
        for anchor, left in (("start", x + 9.0), ("end", x - 9.0 - long)):
            box = (left, y + shift - 10.0, left + long, y + shift + 2.0)
            covers = any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken)
            if left >= 0.0 and box[2] <= width and not covers:
                taken.append(box)
                return text(name, x + 9.0 if anchor == "start" else x - 9.0, y + shift, "name", text_anchor=anchor)
    return Markup("")


def _star(x: float, y: float, radius: float) -> str:
    angles = np.pi / 2 + np.arange(10) * np.pi / 5
    radii = np.where(np.arange(10) % 2 == 0, radius, 0.45 * radius)
    corners = [f"{number(x + r * np.cos(a))},{number(y - r * np.sin(a))}" for a, r in zip(angles, radii, strict=True)]
    return f"M{' L'.join(corners)}Z"


def _short(name: str, size: int) -> str:
    return name if len(name) <= size else name[: size - 1] + "…"
