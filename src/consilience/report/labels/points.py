"""Numbers, vectors and points of manifolds: all votes in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from consilience.arrays import FloatArray
from consilience.label_types import SO3, SPD, Hyperbolic, Scores, Sphere, Vectors
from consilience.report.charts import points_on_line
from consilience.report.items import Item, Vote
from consilience.report.labels.base import encoded, item_picture, label_html, plain_text
from consilience.report.svg import Scale, dot, element, line, number, picture, text

__all__: list[str] = []

SIZE, MARGIN = 280.0, 24.0
MIDDLE = SIZE / 2
RIM = SIZE / 2 - MARGIN


@label_html.register
def _(space: Scores, label: Any, other: Any = None) -> Markup:
    return element("span", plain_text(float(label)), class_="value")


@item_picture.register
def _(space: Scores, item: Item) -> Markup:
    # Sources speak on scales of their own, so what they said is drawn as it is, and the label with its interval.
    ends = np.array(space.range if space.range is not None else [], dtype=np.float64)
    deviation = float(item.details.get("standard_deviation", np.nan))
    return points_on_line(item.votes, float(item.label), deviation, ends)


@label_html.register(Vectors)
@label_html.register(Hyperbolic)
@label_html.register(Sphere)
def _(space: Vectors | Hyperbolic | Sphere, label: Any, other: Any = None) -> Markup:
    return element("span", _numbers(np.asarray(label, dtype=np.float64)), class_="value")


def _numbers(values: FloatArray, most: int = 12) -> str:
    shown = ", ".join(f"{value:.3g}" for value in values[:most])
    return f"({shown}{f', … {len(values)} numbers' if len(values) > most else ''})"


@item_picture.register
def _(space: Vectors, item: Item) -> Markup:
    votes = np.array([encoded(space, vote.label) for vote in item.votes]).reshape(-1, space.d)
    label = np.asarray(encoded(space, item.label))
    if space.d == 1:
        flat = [_with_label(vote, float(point[0])) for vote, point in zip(item.votes, votes, strict=True)]
        return points_on_line(flat, float(label[0]), float("nan"), np.zeros(0))
    return _plane(item.votes, votes, label) if space.d == 2 else _profiles(item.votes, votes, label)


def _with_label(vote: Vote, label: float) -> Vote:
    from dataclasses import replace

    return replace(vote, label=label)


def _plane(votes: Sequence[Vote], points: FloatArray, label: FloatArray) -> Markup:
    """Return points of the plane, one unit as long across as upwards."""
    everything = np.vstack([points, label])
    middle = (everything.max(axis=0) + everything.min(axis=0)) / 2
    reach = max(float(np.abs(everything - middle).max()), 1e-12)
    marks = [element("rect", x=MARGIN / 2, y=MARGIN / 2, width=SIZE - MARGIN, height=SIZE - MARGIN, class_="rim")]
    marks += _spots(votes, (points - middle) / reach, (label - middle) / reach)
    low, high = middle - reach, middle + reach
    ends = f"{low[0]:.3g} to {high[0]:.3g} across, {low[1]:.3g} to {high[1]:.3g} upwards"
    marks.append(text(ends, MIDDLE, SIZE + 4.0, "tick", text_anchor="middle"))
    return picture(SIZE, SIZE + 10.0, *marks, label="votes as points of the plane, with the label")


def _profiles(votes: Sequence[Vote], points: FloatArray, label: FloatArray) -> Markup:
    """Return vectors of more coordinates as lines, coordinate after coordinate."""
    most = min(points.shape[1], 60)
    width, height = 440.0, 150.0
    across = Scale(0.0, float(most - 1), 40.0, width - 10.0)
    upwards = Scale.around(np.vstack([points, label])[:, :most].ravel(), height - 26.0, 10.0)
    marks = []
    for vote, point in [*zip(votes, points, strict=True), (None, label)]:
        corners = " ".join(f"{number(across(i))},{number(upwards(value))}" for i, value in enumerate(point[:most]))
        hover = element("title", "label" if vote is None else vote.source)
        marks.append(element("polyline", hover, points=corners, class_=f"profile{' truth' if vote is None else ''}"))
    marks.append(line(40.0, height - 22.0, width - 10.0, height - 22.0, "axis"))
    for value in (upwards.low, upwards.high):
        marks.append(text(f"{value:.3g}", 34.0, upwards(value) + 4.0, "tick", text_anchor="end"))
    for place in sorted({0, most // 2, most - 1}):
        marks.append(text(str(place), across(float(place)), height - 6.0, "tick", text_anchor="middle"))
    return picture(width, height, *marks, label="vectors as lines, the label as the thick one")


def _spots(votes: Sequence[Vote], points: FloatArray, label: FloatArray) -> list[Markup]:
    """Return numbered dots, and the label; coordinates between -1 and 1."""
    marks = [dot(MIDDLE + RIM * label[0], MIDDLE - RIM * label[1], 8.0, "truth", "label")]
    for vote, (x, y) in zip(votes, points.tolist(), strict=True):
        left, top = MIDDLE + RIM * x, MIDDLE - RIM * y
        marks.append(dot(left, top, 4.0, "vote", f"{vote.number}: {vote.source}"))
        marks.append(text(str(vote.number), left + 6.0, top - 4.0, "tick"))
    return marks


def _disk(marks: list[Markup], caption: str) -> Markup:
    rim = element("circle", cx=MIDDLE, cy=MIDDLE, r=RIM, class_="rim")
    words = text(caption, MIDDLE, SIZE - 4.0, "tick", text_anchor="middle")
    return picture(SIZE, SIZE, rim, *marks, words, label=caption)


@item_picture.register
def _(space: Hyperbolic, item: Item) -> Markup:
    if space.d != 2:
        return Markup("")
    points = np.array([encoded(space, vote.label) for vote in item.votes]).reshape(-1, 3)
    disk = space.to_poincare(np.vstack([points, encoded(space, item.label)])) / space.radius
    return _disk(_spots(item.votes, disk[:-1], disk[-1]), "the Poincaré disk")


@item_picture.register
def _(space: Sphere, item: Item) -> Markup:
    label = np.asarray(encoded(space, item.label), dtype=np.float64)
    points = np.array([encoded(space, vote.label) for vote in item.votes]).reshape(-1, space.d + 1)
    if space.d == 1:
        return _disk(_spots(item.votes, points, label), "directions on the circle")
    if space.d != 2:
        return Markup("")
    # As seen from the label: the distance from the centre is the angle, and the rim is the opposite direction.
    axes = np.linalg.svd(label[None])[2][1:]
    flat = points @ axes.T
    angle = np.arctan2(np.linalg.norm(flat, axis=1), points @ label)
    length = np.maximum(np.linalg.norm(flat, axis=1), 1e-12)
    seen = flat / length[:, None] * (angle / np.pi)[:, None]
    grid = [element("circle", cx=MIDDLE, cy=MIDDLE, r=RIM * share, class_="grid") for share in (0.25, 0.5, 0.75)]
    return _disk([*grid, *_spots(item.votes, seen, np.zeros(2))], "angles from the label: rings at 45°, 90°, 135°")


@label_html.register
def _(space: SPD, label: Any, other: Any = None) -> Markup:
    matrix = np.asarray(label, dtype=np.float64)
    if len(matrix) > 4:
        return element("span", plain_text(matrix), class_="text")
    rows = [element("tr", *(element("td", f"{value:.3g}") for value in row)) for row in matrix]
    drawn = _ellipse(matrix) if len(matrix) == 2 else Markup("")
    return element("div", element("table", *rows, class_="matrix"), drawn, class_="beside")


@label_html.register
def _(space: SO3, label: Any, other: Any = None) -> Markup:
    turn = np.asarray(encoded(space, label), dtype=np.float64)
    turn = -turn if turn[0] < 0 else turn  # the same rotation, by half a turn at most
    length = float(np.linalg.norm(turn[1:]))
    angle = 2.0 * np.degrees(np.arctan2(length, turn[0]))
    axis = f" about {_numbers(turn[1:] / length)}" if length > 1e-9 else ""
    return element("span", f"{angle:.3g}°{axis}", class_="value", title=f"quaternion {_numbers(turn)}")


def _ellipse(matrix: FloatArray) -> Markup:
    """Return a 2 x 2 matrix as the ellipse of a normal law with this covariance, scaled to fit."""
    values, vectors = np.linalg.eigh(matrix)
    radii = 22.0 * np.sqrt(values / values[-1])
    turn = -np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    shape = element(
        "ellipse",
        rx=float(radii[1]),
        ry=float(max(radii[0], 1.0)),
        transform=f"translate(26 26) rotate({number(float(turn))})",
        class_="spread",
    )
    return picture(52.0, 52.0, shape, label="ellipse")
