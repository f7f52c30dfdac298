"""Labels as HTML: one function per label type, found by its class, so that a new label type is one function here.

`label_html` shows one label; where a second one is given, it marks what differs. `item_picture` shows all votes on an
item at once, for label types in which that says more than a list. A label type without either is shown as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import singledispatch
from typing import Any

import numpy as np
from markupsafe import Markup

import consilience.label_types as types
from consilience.arrays import FloatArray, IntArray, as_object_array
from consilience.label_types.base import LabelSpace
from consilience.label_types.preferences.comparisons import UNPARSABLE
from consilience.label_types.texts.words import exact_words, plain_words
from consilience.report.charts import Scale, dot, element, joined, line, number, picture, points_on_line, rect, text
from consilience.report.evidence import Item, Vote

__all__ = ["chip", "item_picture", "label_html", "plain_text"]


#: Letters of a text and of a list of comparisons, and pieces of a label, that are shown before "…".
MAX_TEXT, MAX_SHOWN, MAX_PIECES = 300, 160, 30
MORE = Markup("…")
#: Colors of chips; more classes than that share them.
COLORS = 8


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


def chip(text: str, color: int | None = None, css: str = "", hover: str | None = None) -> Markup:
    """Return a short text in a box; equal numbers have equal colors."""
    kind = "" if color is None else f" c{color % COLORS}"
    return element("span", plain_text(text), class_=f"chip{kind}{' ' if css else ''}{css}", title=hover)


def encoded(space: LabelSpace, label: Any) -> Any:
    """Return one label in the form of the space, whichever way it was written; None stays None."""
    return None if label is None else space.as_batch(as_object_array([label]))[0]


@label_html.register(types.Classes)
@label_html.register(types.FiniteMetric)
def _(space: types.Classes | types.FiniteMetric, label: Any, other: Any = None) -> Markup:
    said = encoded(space, label)
    if np.ndim(said) == 0:
        return chip(_name(space, int(said)), int(said))
    likely = [int(code) for code in np.argsort(-said, kind="stable")[:4] if said[code] >= 0.005]
    return joined(chip(f"{_name(space, code)} {said[code]:.0%}", code) for code in likely)


def _name(space: types.Classes | types.FiniteMetric | types.Tags | types.Sequences, code: int) -> str:
    return plain_text(code if space.names is None else space.names[code])


@label_html.register
def _(space: types.Rankings, label: Any, other: Any = None) -> Markup:
    positions, before = encoded(space, label), encoded(space, other)
    order = np.argsort(positions, kind="stable")
    shown = order[positions[order] >= 0][:MAX_PIECES]
    places: list[Markup] = []
    for place in np.unique(positions[shown]):
        tied = []
        for index in shown[positions[shown] == place].tolist():
            name = f"#{index}" if space.names is None else space.names[index]
            differs = before is not None and _moved(positions, before, index)
            tied.append(chip(plain_text(name), index, "differs" if differs else ""))
        places.append(element("span", *tied, class_="tie") if len(tied) > 1 else joined(tied))
    if len(shown) < int((positions >= 0).sum()):
        places.append(MORE)
    unseen = int((positions == -1).sum())
    return _one_after_another(places, element("small", f" {unseen} not seen") if unseen else Markup(""))


@label_html.register
def _(space: types.Preferences, label: Any, other: Any = None) -> Markup:
    said = encoded(space, label)
    if said.ranking is None:
        lost = said.outcome.count(UNPARSABLE)
        return element("span", f"{len(said) - lost} comparisons of {len(said.items)} items: {said!r}"[:MAX_SHOWN])
    # A name has the same color everywhere.
    groups = [
        joined(chip(plain_text(name), sum(map(ord, str(name)))) for name in group)
        for group in said.ranking[:MAX_PIECES]
    ]
    return _one_after_another(groups, MORE if len(said.ranking) > MAX_PIECES else Markup(""))


def _one_after_another(places: list[Markup], rest: Markup) -> Markup:
    return element("span", Markup('<span class="then">\u203a</span>').join(places), rest, class_="ranking")


def _moved(positions: IntArray, before: IntArray, index: int) -> bool:
    """Return whether an item stands on the wrong side of most items that both rankings order."""
    size = min(len(positions), len(before))
    both = (positions[:size] >= 0) & (before[:size] >= 0)
    if index >= size or not both[index]:
        return False
    here, there = np.sign(positions[:size] - positions[index]), np.sign(before[:size] - before[index])
    opposite = int((both & (here * there < 0)).sum())
    return opposite * 2 >= max(int(both.sum()) - 1, 1)


@label_html.register
def _(space: types.Tags, label: Any, other: Any = None) -> Markup:
    codes, beside = encoded(space, label), encoded(space, label if other is None else other)
    shown = []
    for tag, (code, also) in enumerate(zip(codes.tolist(), beside.tolist(), strict=True)):
        if code == 1:
            shown.append(chip(_name(space, tag), tag, "differs" if also == 0 else ""))
        elif code == 0 and also == 1:
            shown.append(chip(_name(space, tag), None, "absent"))
        elif code < 0 and also == 1:
            shown.append(chip(f"{_name(space, tag)}?", None, hover="no opinion"))
    if len(shown) > MAX_PIECES:
        shown[MAX_PIECES:] = [MORE]
    return joined(shown) if shown else element("small", "no tag")


@label_html.register
def _(space: types.Sequences, label: Any, other: Any = None) -> Markup:
    codes, beside = encoded(space, label), encoded(space, other)
    shown = []
    for place, code in enumerate(codes[: 2 * MAX_PIECES].tolist()):
        differs = beside is not None and place < len(beside) and code >= 0 and beside[place] not in (code, -1)
        name = "?" if code < 0 else _name(space, code)
        shown.append(chip(name, max(code, 0), f"square{' differs' if differs else ''}", f"position {place + 1}"))
    return element("span", *shown, MORE if len(codes) > 2 * MAX_PIECES else "", class_="sequence")


WIDTH, MOST_HEIGHT, BOX_MARGIN = 360.0, 300.0, 14.0
#: Height of the line of one vote on spans.
ROW = 16.0


@label_html.register(types.Boxes)
@label_html.register(types.Spans)
def _(space: types.Boxes | types.Spans, label: Any, other: Any = None) -> Markup:
    own = encoded(space, label)
    if len(own) == 0:
        return element("small", "nothing")
    beside = None if other is None else {tuple(row) for row in encoded(space, other).tolist()}
    shown = []
    for row in own[:MAX_PIECES].tolist():
        corners = row[: len(space.reader.corners)]
        name = "" if space.classes is None else f"{space.classes[int(row[-1])]} "
        differs = "differs" if beside is not None and tuple(row) not in beside else ""
        color = None if space.classes is None else int(row[-1])
        shown.append(chip(f"{name}{', '.join(f'{value:.4g}' for value in corners)}", color, f"square {differs}"))
    return joined([*shown, MORE] if len(own) > MAX_PIECES else shown)


@item_picture.register
def _(space: types.Boxes, item: Item) -> Markup:
    label = encoded(space, item.label)[:, :4]
    votes = [encoded(space, vote.label)[:, :4] for vote in item.votes]
    everything = np.vstack([label, *votes])
    if len(everything) == 0:
        return Markup("")
    low, high = everything[:, :2].min(axis=0), everything[:, 2:].max(axis=0)
    if space.size is not None:
        low, high = np.zeros(2), np.array(space.size)
    extent = np.maximum(high - low, 1e-12)
    scale = min((WIDTH - 2 * BOX_MARGIN) / extent[0], (MOST_HEIGHT - 2 * BOX_MARGIN) / extent[1])

    def drawn(box: FloatArray, css: str, hover: str) -> Markup:
        (x, y), (width, height) = BOX_MARGIN + (box[:2] - low) * scale, (box[2:] - box[:2]) * scale
        return rect(x, y, width, height, css, hover)

    marks = [
        drawn(box, "box vote", f"{vote.number}: {vote.source}")
        for vote, boxes in zip(item.votes, votes, strict=True)
        for box in boxes
    ]
    marks += [drawn(box, "box truth", "label") for box in label]
    size = extent * scale + 2 * BOX_MARGIN
    return picture(float(size[0]), float(size[1]), *marks, label="boxes of all votes, the label as the thick ones")


@item_picture.register
def _(space: types.Spans, item: Item) -> Markup:
    rows = [("label", encoded(space, item.label))]
    rows += [(f"{vote.number}", encoded(space, vote.label)) for vote in item.votes]
    ends = np.vstack([spans[:, :2] for _, spans in rows])
    if len(ends) == 0:
        return Markup("")
    across = Scale.around(ends.ravel(), 40.0, WIDTH + 60.0)
    marks = []
    for row, (name, spans) in enumerate(rows):
        top = 6.0 + row * ROW
        marks.append(text(name, 34.0, top + 9.0, "tick", text_anchor="end"))
        for span in spans:
            start, end = across(float(span[0])), across(float(span[1]))
            css, hover = "box truth" if row == 0 else "box vote", f"{span[0]:.0f} to {span[1]:.0f}"
            marks.append(rect(start, top, max(end - start, 1.0), ROW - 6.0, css, hover))
    height = 10.0 + ROW * len(rows) + 12.0
    for value, anchor in ((across.low, "start"), (across.high, "end")):
        marks.append(text(f"{value:.0f}", across(value), height - 4.0, "tick", text_anchor=anchor))
    return picture(WIDTH + 70.0, height, *marks, label="spans of all votes, one line each, the label first")


SIZE, MARGIN = 280.0, 24.0
MIDDLE = SIZE / 2
RIM = SIZE / 2 - MARGIN


@label_html.register
def _(space: types.Scores, label: Any, other: Any = None) -> Markup:
    return element("span", plain_text(float(label)), class_="value")


@item_picture.register
def _(space: types.Scores, item: Item) -> Markup:
    # Sources speak on scales of their own, so what they said is drawn as it is, and the label with its interval.
    ends = np.array(space.range if space.range is not None else [], dtype=np.float64)
    deviation = float(item.details.get("standard_deviation", np.nan))
    return points_on_line(item.votes, float(item.label), deviation, ends)


@label_html.register(types.Vectors)
@label_html.register(types.Hyperbolic)
@label_html.register(types.Sphere)
def _(space: types.Vectors | types.Hyperbolic | types.Sphere, label: Any, other: Any = None) -> Markup:
    return element("span", _numbers(np.asarray(label, dtype=np.float64)), class_="value")


def _numbers(values: FloatArray, most: int = 12) -> str:
    shown = ", ".join(f"{value:.3g}" for value in values[:most])
    return f"({shown}{f', … {len(values)} numbers' if len(values) > most else ''})"


@item_picture.register
def _(space: types.Vectors, item: Item) -> Markup:
    votes = np.array([encoded(space, vote.label) for vote in item.votes]).reshape(-1, space.d)
    label = np.asarray(encoded(space, item.label))
    if space.d == 1:
        flat = [replace(vote, label=float(point[0])) for vote, point in zip(item.votes, votes, strict=True)]
        return points_on_line(flat, float(label[0]), float("nan"), np.zeros(0))
    return _plane(item.votes, votes, label) if space.d == 2 else _profiles(item.votes, votes, label)


def _plane(votes: Sequence[Vote], points: FloatArray, label: FloatArray) -> Markup:
    """Return points of the plane, one unit as long across as upwards."""
    everything = np.vstack([points, label])
    middle = (everything.max(axis=0) + everything.min(axis=0)) / 2
    reach = max(float(np.abs(everything - middle).max()), 1e-12)
    marks = [rect(MARGIN / 2, MARGIN / 2, SIZE - MARGIN, SIZE - MARGIN, "rim")]
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
def _(space: types.Hyperbolic, item: Item) -> Markup:
    if space.d != 2:
        return Markup("")
    points = np.array([encoded(space, vote.label) for vote in item.votes]).reshape(-1, 3)
    disk = space.to_poincare(np.vstack([points, encoded(space, item.label)])) / space.radius
    return _disk(_spots(item.votes, disk[:-1], disk[-1]), "the Poincaré disk")


@item_picture.register
def _(space: types.Sphere, item: Item) -> Markup:
    label = np.asarray(encoded(space, item.label), dtype=np.float64)
    points = np.array([encoded(space, vote.label) for vote in item.votes]).reshape(-1, space.d + 1)
    if space.d == 1:
        return _disk(_spots(item.votes, points, label), "directions on the circle")
    if space.d != 2:
        return Markup("")
    # As seen from the label: the distance from the center is the angle, and the rim is the opposite direction.
    axes = np.linalg.svd(label[None])[2][1:]
    flat = points @ axes.T
    angle = np.arctan2(np.linalg.norm(flat, axis=1), points @ label)
    length = np.maximum(np.linalg.norm(flat, axis=1), 1e-12)
    seen = flat / length[:, None] * (angle / np.pi)[:, None]
    grid = [element("circle", cx=MIDDLE, cy=MIDDLE, r=RIM * share, class_="grid") for share in (0.25, 0.5, 0.75)]
    return _disk([*grid, *_spots(item.votes, seen, np.zeros(2))], "angles from the label: rings at 45°, 90°, 135°")


@label_html.register
def _(space: types.SPD, label: Any, other: Any = None) -> Markup:
    matrix = np.asarray(label, dtype=np.float64)
    if len(matrix) > 4:
        return element("span", plain_text(matrix), class_="text")
    rows = [element("tr", *(element("td", f"{value:.3g}") for value in row)) for row in matrix]
    drawn = _ellipse(matrix) if len(matrix) == 2 else Markup("")
    return element("div", element("table", *rows, class_="matrix"), drawn, class_="beside")


@label_html.register
def _(space: types.SO3, label: Any, other: Any = None) -> Markup:
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
    turned = f"translate(26 26) rotate({number(float(turn))})"
    axes = {"rx": float(radii[1]), "ry": float(max(radii[0], 1.0))}
    return picture(52.0, 52.0, element("ellipse", **axes, transform=turned, class_="spread"), label="ellipse")


@label_html.register
def _(space: types.Product, label: Any, other: Any = None) -> Markup:
    rows = []
    for name, part in space.factors.items():
        value = _field(label, name)
        if value is not None:
            rows.append(element("dt", name) + element("dd", label_html(part, value, _field(other, name))))
    return element("dl", *rows, class_="record")


@item_picture.register
def _(space: types.Product, item: Item) -> Markup:
    shown = []
    for name, part in space.factors.items():
        label = _field(item.label, name)
        if label is None:
            continue
        votes = [replace(vote, label=said) for vote in item.votes if (said := _field(vote.label, name)) is not None]
        start = f"{name}/"
        details = {key.removeprefix(start): value for key, value in item.details.items() if key.startswith(start)}
        drawn = item_picture(part, replace(item, label=label, votes=tuple(votes), details=details))
        if drawn:
            shown.append(element("figure", drawn, element("figcaption", name)))
    return joined(shown)


def _field(record: Any, name: str) -> Any:
    return record.get(name) if isinstance(record, dict) else None


@label_html.register
def _(space: types.Texts, label: Any, other: Any = None) -> Markup:
    if other is None:
        return element("span", plain_text(label), class_="text")
    split = exact_words if space.exact else plain_words
    (own, written), (beside, _) = split(label), split(other)
    pieces: list[Markup] = []
    for change, first, last, _, _ in SequenceMatcher(None, own, beside, autojunk=False).get_opcodes():
        for word in written[first:last]:
            css = None if change == "equal" else "differs"
            pieces.append(element("span", plain_text(word.rstrip()), class_=css) + " " * word.endswith(" "))
    return element("span", joined(pieces), class_="text")


#: Tokens that are drawn; arcs beyond them are left out.
MAX_TOKENS = 40


@label_html.register
def _(space: types.DependencyTrees, label: Any, other: Any = None) -> Markup:
    edges = _edges(space, label)
    beside = None if other is None else _edges(space, other)
    shown = edges[:MAX_TOKENS]
    step = float(np.clip(560 / max(len(shown), 1), 14, 36))
    spans = [abs(head - token) for token, (head, _) in enumerate(shown, start=1) if head]
    base = 20.0 + 9.0 * min(max(spans, default=1), 8)
    marks = []
    for token, (head, code) in enumerate(shown, start=1):
        differs = beside is not None and token <= len(beside) and beside[token - 1][0] != head
        relation = "" if space.relations is None else f" ({space.relations[code]})"
        hover = element("title", f"{'root' if head == 0 else head} → {token}{relation}")
        css = "arc differs" if differs else "arc"
        if head <= len(shown):
            marks.append(element("path", hover, d=_arc(head, token, step, base), class_=css))
        marks.append(text(str(token), (token - 0.5) * step, base + 14.0, "tick", text_anchor="middle"))
    if len(edges) > len(shown):
        marks.append(text(f"… {len(edges)} tokens", len(shown) * step + 4.0, base + 14.0, "tick"))
    return picture(len(shown) * step + (70.0 if len(edges) > len(shown) else 0.0), base + 18.0, *marks, label="tree")


def _edges(space: types.DependencyTrees, label: Any) -> list[tuple[int, int]]:
    """Return head and relation of every token."""
    tree = np.asarray(encoded(space, label), dtype=np.int64)
    table = tree if tree.ndim == 2 else np.stack([tree, np.zeros_like(tree)], axis=1)
    return [(int(head), int(code)) for head, code in table]


def _arc(head: int, token: int, step: float, base: float) -> str:
    """Return the path from a head to its token, with a tip at the token; the root's comes from above."""
    x, foot = (token - 0.5) * step, base
    tip = f"M{number(x - 2.5)} {number(foot - 5)}L{number(x)} {number(foot)}L{number(x + 2.5)} {number(foot - 5)}"
    if head == 0:
        return f"M{number(x)} 4V{number(foot)}{tip}"
    start = (head - 0.5) * step + (2.0 if token > head else -2.0)
    top = foot - 9.0 - 9.0 * min(abs(head - token), 8)
    first, *others = (f"{number(a)} {number(b)}" for a, b in ((start, foot), (start, top), (x, top), (x, foot)))
    return f"M{first}C{' '.join(others)}{tip}"
