"""Labels as HTML, one function per label type, found by its class, so that a new label type is one function here.

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
from consilience.label_types.texts.law import exact_spelling, plain_spelling, plain_words
from consilience.report import charts as draw
from consilience.report.evidence import Item, Vote

#: Letters of a text, and pieces of a label, that are shown before "…".
MAX_TEXT, MAX_PIECES = 300, 30
#: Tokens that are drawn; arcs beyond them are left out.
MAX_TOKENS = 40
NOTHING, MORE = Markup(""), Markup("…")
#: Colors of chips; more classes than that share them.
COLORS = 8
#: Of the picture of boxes, and the height of the line of one vote on spans.
WIDTH, MOST_HEIGHT, BOX_MARGIN, ROW = 360.0, 300.0, 14.0, 16.0
#: Of a picture of points.
SIZE, MARGIN = 280.0, 24.0
MIDDLE, RIM = SIZE / 2, SIZE / 2 - MARGIN
#: Names that are listed before "and 12 more".
LISTED = 8
#: Description of a label of each type, with the text of `_detail`.
_WORDS: dict[type[LabelSpace], str] = {
    types.Classes: "one of {0.k} classes{1}",
    types.FiniteMetric: "one of {0.k} nodes with a distance{1}",
    types.Scores: "a number{1}",
    types.Rankings: "a ranking{1}",
    types.Preferences: "a ranking from comparisons of two items{1}",
    types.Tags: "a set of tags out of {0.size}{1}",
    types.Sequences: "a sequence of tags, one of {0.size} per position{1}",
    types.DependencyTrees: "a dependency tree",
    types.Boxes: "a set of boxes",
    types.Spans: "a set of spans",
    types.Texts: "a text",
    types.Vectors: "a vector of {0.d} numbers",
    types.Hyperbolic: "a point of {0.d}-dimensional hyperbolic space",
    types.Sphere: "a direction",
    types.SPD: "a covariance matrix of {0.n} rows",
    types.SO3: "a rotation",
    types.Metric: "an object with a custom distance",
    types.Product: "a record ({1})",
}


def describe_label(space: LabelSpace) -> str:
    """Return what a label of this type is, in words; by default its `repr`."""
    if type(space) not in _WORDS:
        return f"a label of {draw.short(repr(space), 120)}"
    return _WORDS[type(space)].format(space, _detail(space))


def _detail(space: LabelSpace) -> str:
    if isinstance(space, types.Scores):
        return "" if space.range is None else f" between {space.range[0]:g} and {space.range[1]:g}"
    if isinstance(space, types.Product):
        return "; ".join(f"{name}: {describe_label(part)}" for name, part in space.factors.items())
    names: Sequence[Any] | None = getattr(space, "items" if isinstance(space, types.Preferences) else "names", None)
    size = f" of {space.n_items} items" if isinstance(space, types.Rankings) and space.n_items is not None else ""
    if names is None:
        return size
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{size}: {', '.join(draw.short(str(name), 40) for name in names[:LISTED])}{more}"


@singledispatch
def label_html(space: LabelSpace, label: Any, other: Any = None) -> Markup:
    """Return one label, as the user writes it, as HTML; what differs from `other` is marked.

    The default shows it as text.
    """
    return draw.element("span", plain_text(label), class_="text")


@singledispatch
def item_picture(space: LabelSpace, item: Item) -> Markup:
    """Return a picture of all votes on an item; empty where a list of them says as much."""
    return NOTHING


def plain_text(label: Any) -> str:
    """Return a label as text: short numbers, no quotes around text, and not too long.

    Examples
    --------
    >>> plain_text(0.123456), plain_text("a"), plain_text(np.array([1.0, 2.5])), plain_text({"b", "a"})
    ('0.1235', 'a', '[1, 2.5]', '{a, b}')
    """
    return draw.short(_spelled(label), MAX_TEXT)


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


def chip(label: Any, color: int | None = None, css: str = "", hover: str | None = None) -> Markup:
    """Return a short text in a box; equal numbers have equal colors."""
    kind = "" if color is None else f" c{color % COLORS}"
    return draw.element("span", plain_text(label), class_=f"chip{kind}{' ' if css else ''}{css}", title=hover)


def encoded(space: LabelSpace, label: Any) -> Any:
    """Return one label in the form of the space, whichever way it was written; None stays None."""
    return None if label is None else space.as_batch(as_object_array([label]))[0]


def _name(space: Any, code: int) -> Any:
    return code if space.names is None else space.names[code]


@label_html.register(types.Classes)
@label_html.register(types.FiniteMetric)
def _(space: types.Classes | types.FiniteMetric, label: Any, other: Any = None) -> Markup:
    said = encoded(space, label)
    if np.ndim(said) == 0:
        return chip(_name(space, int(said)), int(said))
    likely = [int(code) for code in np.argsort(-said, kind="stable")[:4] if said[code] >= 0.005]
    return draw.joined(chip(f"{plain_text(_name(space, code))} {said[code]:.0%}", code) for code in likely)


@label_html.register
def _(space: types.Rankings, label: Any, other: Any = None) -> Markup:
    positions, before = encoded(space, label), encoded(space, other)
    names = space.names or getattr(label, "names", None)  # those of the row, where rows have items of their own
    order = np.argsort(positions, kind="stable")
    seen = order[positions[order] >= 0]
    shown = seen[:MAX_PIECES]
    places = []
    for place in np.unique(positions[shown]):
        tied = []
        for index in shown[positions[shown] == place].tolist():
            name = f"#{index}" if names is None else names[index]
            differs = before is not None and _moved(positions, before, index)
            tied.append(chip(name, index, "differs" if differs else ""))
        places.append(tied)
    unseen = int((positions == -1).sum())
    return _in_order(
        places, len(seen) > len(shown), draw.element("small", f" {unseen} not seen") if unseen else NOTHING
    )


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
def _(space: types.Preferences, label: Any, other: Any = None) -> Markup:
    said = encoded(space, label)
    if said.ranking is None:
        lost = said.outcome.count(UNPARSABLE)
        return draw.element("span", f"{len(said) - lost:,} comparisons of {len(said.items)} items")
    # A name has the same color everywhere.
    places = [[chip(name, sum(map(ord, str(name)))) for name in group] for group in said.ranking[:MAX_PIECES]]
    return _in_order(places, len(said.ranking) > MAX_PIECES)


def _in_order(places: list[list[Markup]], more: bool, rest: Markup = NOTHING) -> Markup:
    """Return chips one after the other, those of a tie in one box."""
    shown = [draw.element("span", *tied, class_="tie") if len(tied) > 1 else draw.joined(tied) for tied in places]
    shown += [MORE] if more else []
    return draw.element("span", Markup('<span class="then">\u203a</span>').join(shown), rest, class_="ranking")


@label_html.register
def _(space: types.Tags, label: Any, other: Any = None) -> Markup:
    codes, beside = encoded(space, label), encoded(space, label if other is None else other)
    shown = []
    for tag, (code, also) in enumerate(zip(codes.tolist(), beside.tolist(), strict=True)):
        name = plain_text(_name(space, tag))
        if code == 1:
            shown.append(chip(name, tag, "differs" if also == 0 else ""))
        elif also == 1:
            shown.append(chip(name, css="absent") if code == 0 else chip(f"{name}?", hover="no opinion"))
    if len(shown) > MAX_PIECES:
        shown[MAX_PIECES:] = [MORE]
    return draw.joined(shown) if shown else draw.element("small", "no tag")


@label_html.register
def _(space: types.Sequences, label: Any, other: Any = None) -> Markup:
    codes, beside = encoded(space, label), encoded(space, other)
    shown = []
    for place, code in enumerate(codes[: 2 * MAX_PIECES].tolist()):
        differs = beside is not None and place < len(beside) and code >= 0 and beside[place] not in (code, -1)
        name = "?" if code < 0 else _name(space, code)
        shown.append(chip(name, max(code, 0), f"square{' differs' if differs else ''}", f"position {place + 1}"))
    return draw.element("span", *shown, MORE if len(codes) > 2 * MAX_PIECES else "", class_="sequence")


@label_html.register(types.Boxes)
@label_html.register(types.Spans)
def _(space: types.Boxes | types.Spans, label: Any, other: Any = None) -> Markup:
    own = encoded(space, label).tolist()
    if not own:
        return draw.element("small", "nothing")
    beside = own if other is None else encoded(space, other).tolist()
    shown = []
    for row in own[:MAX_PIECES]:
        color = None if space.classes is None else int(row[-1])
        name = "" if color is None else f"{space.classes[color]} "  # type: ignore[index]
        ends = ", ".join(f"{value:.4g}" for value in row[: len(space.reader.corners)])
        shown.append(chip(f"{name}{ends}", color, f"square {'' if row in beside else 'differs'}"))
    return draw.joined([*shown, MORE] if len(own) > MAX_PIECES else shown)


@item_picture.register
def _(space: types.Boxes, item: Item) -> Markup:
    drawn = [("box vote", f"{vote.number}: {vote.source}", encoded(space, vote.label)) for vote in item.votes]
    drawn.append(("box truth", "label", encoded(space, item.label)))
    everything = np.vstack([boxes[:, :4] for _, _, boxes in drawn])
    if len(everything) == 0:
        return NOTHING
    low, high = everything[:, :2].min(axis=0), everything[:, 2:].max(axis=0)
    size = space.size if item.picture is None else item.picture.size or space.size
    if size is not None:
        low, high = np.zeros(2), np.array(size, dtype=np.float64)
    extent = np.maximum(high - low, 1e-12)
    scale = min((WIDTH - 2 * BOX_MARGIN) / extent[0], (MOST_HEIGHT - 2 * BOX_MARGIN) / extent[1])
    marks = []
    if size is not None:
        place = {"x": BOX_MARGIN, "y": BOX_MARGIN, "width": extent[0] * scale, "height": extent[1] * scale}
        marks.append(draw.element("rect", class_="grid", **place))
        if item.picture is not None and item.picture.size is not None:
            marks.append(draw.element("image", href=item.picture.address, preserveAspectRatio="none", **place))
    for css, hover, boxes in drawn:
        for box in boxes:
            (x, y), (width, height) = BOX_MARGIN + (box[:2] - low) * scale, (box[2:4] - box[:2]) * scale
            marks.append(draw.rect(x, y, width, height, css, hover))
            if css == "box vote":
                marks.append(draw.text(hover.partition(":")[0], x + 2.0, y + 9.0, "faint"))
    around = extent * scale + 2 * BOX_MARGIN
    return draw.picture(around[0], around[1], *marks, label="boxes of all votes, the label as the thick ones")


@item_picture.register
def _(space: types.Spans, item: Item) -> Markup:
    rows = [("label", encoded(space, item.label))]
    rows += [(f"{vote.number}", encoded(space, vote.label)) for vote in item.votes]
    ends = np.vstack([spans[:, :2] for _, spans in rows])
    if len(ends) == 0:
        return NOTHING
    across = draw.Scale.around(ends, 40.0, WIDTH + 60.0)
    marks = []
    for row, (name, spans) in enumerate(rows):
        top = 6.0 + row * ROW
        marks.append(draw.text(name, 34.0, top + 9.0, "tick", text_anchor="end"))
        for first, last in spans[:, :2]:
            css, hover = "box truth" if row == 0 else "box vote", f"{first:.0f} to {last:.0f}"
            marks.append(draw.rect(across(first), top, max(across(last) - across(first), 1.0), ROW - 6.0, css, hover))
    height = 10.0 + ROW * len(rows) + 12.0
    for value, anchor in ((across.low, "start"), (across.high, "end")):
        marks.append(draw.text(f"{value:.0f}", across(value), height - 4.0, "tick", text_anchor=anchor))
    return draw.picture(WIDTH + 70.0, height, *marks, label="spans of all votes, one line each, the label first")


@label_html.register
def _(space: types.Scores, label: Any, other: Any = None) -> Markup:
    return draw.element("span", plain_text(float(label)), class_="value")


@item_picture.register
def _(space: types.Scores, item: Item) -> Markup:
    # Sources have their own scales, so votes are drawn unchanged, and the label with its interval.
    ends = np.array(space.range if space.range is not None else [], dtype=np.float64)
    deviation = float(item.details.get("standard_deviation", np.nan))
    return draw.points_on_line(item.votes, float(item.label), deviation, ends)


@label_html.register(types.Vectors)
@label_html.register(types.Hyperbolic)
@label_html.register(types.Sphere)
def _(space: types.Vectors | types.Hyperbolic | types.Sphere, label: Any, other: Any = None) -> Markup:
    return draw.element("span", _numbers(np.asarray(label, dtype=np.float64)), class_="value")


def _numbers(values: FloatArray, most: int = 12) -> str:
    shown = ", ".join(f"{value:.3g}" for value in values[:most])
    return f"({shown}{f', … {len(values)} numbers' if len(values) > most else ''})"


def _points(space: LabelSpace, item: Item) -> tuple[FloatArray, FloatArray]:
    """Return the votes on an item as points, and its label as one."""
    label = np.asarray(encoded(space, item.label), dtype=np.float64)
    return np.array([encoded(space, vote.label) for vote in item.votes]).reshape(-1, len(label)), label


@item_picture.register
def _(space: types.Vectors, item: Item) -> Markup:
    points, label = _points(space, item)
    everything = np.vstack([points, label])
    if space.d == 1:
        flat = [replace(vote, label=float(point[0])) for vote, point in zip(item.votes, points, strict=True)]
        return draw.points_on_line(flat, float(label[0]), float("nan"), np.zeros(0))
    if space.d > 2:
        return _profiles([*(vote.source for vote in item.votes), "label"], everything)
    # One unit has the same length in both directions.
    middle = (everything.max(axis=0) + everything.min(axis=0)) / 2
    reach = max(float(np.abs(everything - middle).max()), 1e-12)
    low, high = middle - reach, middle + reach
    ends = f"{low[0]:.3g} to {high[0]:.3g} across, {low[1]:.3g} to {high[1]:.3g} upwards"
    marks = [draw.rect(MARGIN / 2, MARGIN / 2, SIZE - MARGIN, SIZE - MARGIN, "rim")]
    marks += _spots(item.votes, (points - middle) / reach, (label - middle) / reach)
    marks.append(draw.text(ends, MIDDLE, SIZE + 4.0, "tick", text_anchor="middle"))
    return draw.picture(SIZE, SIZE + 10.0, *marks, label="votes as points of the plane, with the label")


def _profiles(names: Sequence[str], points: FloatArray) -> Markup:
    """Return vectors as lines, coordinate after coordinate, the last of them thick."""
    points = points[:, :60]
    last, width, height = points.shape[1] - 1, 440.0, 150.0
    across = draw.Scale(0.0, float(last), 40.0, width - 10.0)
    upwards = draw.Scale.around(points, height - 26.0, 10.0)
    marks = []
    for place, (name, point) in enumerate(zip(names, points, strict=True)):
        line_of = draw.corners(np.array([(across(index), upwards(value)) for index, value in enumerate(point)]))
        css = "profile truth" if place == len(names) - 1 else "profile"
        marks.append(draw.element("polyline", hover=name, points=line_of, class_=css))
    marks.append(draw.line(40.0, height - 22.0, width - 10.0, height - 22.0, "axis"))
    for value in (upwards.low, upwards.high):
        marks.append(draw.text(f"{value:.3g}", 34.0, upwards(value) + 4.0, "tick", text_anchor="end"))
    for index in sorted({0, (last + 1) // 2, last}):
        marks.append(draw.text(str(index), across(index), height - 6.0, "tick", text_anchor="middle"))
    return draw.picture(width, height, *marks, label="vectors as lines, the label as the thick one")


def _spots(votes: Sequence[Vote], points: FloatArray, label: FloatArray) -> list[Markup]:
    """Return numbered dots, and the label; coordinates between -1 and 1."""
    marks = [draw.dot(MIDDLE + RIM * label[0], MIDDLE - RIM * label[1], 8.0, "truth", "label")]
    for vote, (x, y) in zip(votes, points.tolist(), strict=True):
        left, top = MIDDLE + RIM * x, MIDDLE - RIM * y
        marks.append(draw.dot(left, top, 4.0, "vote", f"{vote.number}: {vote.source}"))
        marks.append(draw.text(str(vote.number), left + 6.0, top - 4.0, "tick"))
    return marks


def _disk(marks: list[Markup], caption: str) -> Markup:
    words = draw.text(caption, MIDDLE, SIZE - 4.0, "tick", text_anchor="middle")
    return draw.picture(SIZE, SIZE, draw.dot(MIDDLE, MIDDLE, RIM, "rim"), *marks, words, label=caption)


@item_picture.register
def _(space: types.Hyperbolic, item: Item) -> Markup:
    if space.d != 2:
        return NOTHING
    disk = space.to_poincare(np.vstack(_points(space, item))) / space.radius
    return _disk(_spots(item.votes, disk[:-1], disk[-1]), "the Poincaré disk")


@item_picture.register
def _(space: types.Sphere, item: Item) -> Markup:
    points, label = _points(space, item)
    if space.d == 1:
        return _disk(_spots(item.votes, points, label), "directions on the circle")
    if space.d != 2:
        return NOTHING
    # As seen from the label: the distance from the center is the angle, and the rim is the opposite direction.
    flat = points @ np.linalg.svd(label[None])[2][1:].T
    length = np.linalg.norm(flat, axis=1)
    angle = np.arctan2(length, points @ label)
    seen = flat / np.maximum(length, 1e-12)[:, None] * (angle / np.pi)[:, None]
    grid = [draw.dot(MIDDLE, MIDDLE, RIM * share, "grid") for share in (0.25, 0.5, 0.75)]
    return _disk([*grid, *_spots(item.votes, seen, np.zeros(2))], "angles from the label: rings at 45°, 90°, 135°")


@label_html.register
def _(space: types.SPD, label: Any, other: Any = None) -> Markup:
    matrix = np.asarray(label, dtype=np.float64)
    if len(matrix) > 4:
        return draw.element("span", plain_text(matrix), class_="text")
    rows = [draw.element("tr", *(draw.element("td", f"{value:.3g}") for value in row)) for row in matrix]
    drawn = NOTHING
    if len(matrix) == 2:  # the ellipse of a normal law with this covariance, scaled to fit
        values, vectors = np.linalg.eigh(matrix)
        small = max(22.0 * np.sqrt(values[0] / values[1]), 1.0)
        turn = f"translate(26 26) rotate({draw.number(-np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))})"
        ellipse = draw.element("ellipse", rx=22.0, ry=small, transform=turn, class_="spread")
        drawn = draw.picture(52.0, 52.0, ellipse, label="ellipse")
    return draw.element("div", draw.element("table", *rows, class_="matrix"), drawn, class_="beside")


@label_html.register
def _(space: types.SO3, label: Any, other: Any = None) -> Markup:
    turn = np.asarray(encoded(space, label), dtype=np.float64)
    turn = -turn if turn[0] < 0 else turn  # the same rotation, by half a turn at most
    length = float(np.linalg.norm(turn[1:]))
    angle = 2.0 * np.degrees(np.arctan2(length, turn[0]))
    axis = f" about {_numbers(turn[1:] / length)}" if length > 1e-9 else ""
    return draw.element("span", f"{angle:.3g}°{axis}", class_="value", title=f"quaternion {_numbers(turn)}")


@label_html.register
def _(space: types.Product, label: Any, other: Any = None) -> Markup:
    rows = []
    for name, part in space.factors.items():
        value = _field(label, name)
        if value is not None:
            rows.append(draw.element("dt", name) + draw.element("dd", label_html(part, value, _field(other, name))))
    return draw.element("dl", *rows, class_="record")


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
            shown.append(draw.element("figure", drawn, draw.element("figcaption", name)))
    return draw.joined(shown)


def _field(record: Any, name: str) -> Any:
    return record.get(name) if isinstance(record, dict) else None


@label_html.register
def _(space: types.Texts, label: Any, other: Any = None) -> Markup:
    if other is None:
        return draw.element("span", plain_text(label), class_="text")
    split, spell = (str.split, exact_spelling) if space.exact else (plain_words, plain_spelling)
    own, written, beside = split(label), spell(label), split(other)
    pieces: list[Markup] = []
    for change, first, last, _, _ in SequenceMatcher(None, own, beside, autojunk=False).get_opcodes():
        for word in written[first:last]:
            css = None if change == "equal" else "differs"
            pieces.append(draw.element("span", plain_text(word.rstrip()), class_=css) + " " * word.endswith(" "))
    return draw.element("span", draw.joined(pieces), class_="text")


@label_html.register
def _(space: types.DependencyTrees, label: Any, other: Any = None) -> Markup:
    tree, beside = (
        np.asarray(encoded(space, one), dtype=np.int64) for one in (label, label if other is None else other)
    )
    tree, beside = tree.reshape(len(tree), -1), beside.reshape(len(beside), -1)[:, 0]
    heads = tree[:MAX_TOKENS, 0].tolist()
    step = float(np.clip(560 / max(len(heads), 1), 14, 36))
    spans = [abs(head - token) for token, head in enumerate(heads, start=1) if head]
    base = 20.0 + 9.0 * min(max(spans, default=1), 8)
    marks = []
    for token, head in enumerate(heads, start=1):
        relation = "" if space.relations is None else f" ({space.relations[tree[token - 1, 1]]})"
        hover = f"{'root' if head == 0 else head} → {token}{relation}"
        css = "arc differs" if token <= len(beside) and beside[token - 1] != head else "arc"
        if head <= len(heads):
            marks.append(draw.element("path", hover=hover, d=_arc(head, token, step, base), class_=css))
        marks.append(draw.text(str(token), (token - 0.5) * step, base + 14.0, "tick", text_anchor="middle"))
    cut = len(tree) > len(heads)
    if cut:
        marks.append(draw.text(f"… {len(tree)} tokens", len(heads) * step + 4.0, base + 14.0, "tick"))
    return draw.picture(len(heads) * step + (70.0 if cut else 0.0), base + 18.0, *marks, label="tree")


def _arc(head: int, token: int, step: float, base: float) -> str:
    """Return the path from a head to its token, with a tip at the token; the root's comes from above."""
    x, foot = (token - 0.5) * step, base

    def at(across: float, down: float) -> str:
        return f"{draw.number(across)} {draw.number(down)}"

    tip = f"M{at(x - 2.5, foot - 5)}L{at(x, foot)}L{at(x + 2.5, foot - 5)}"
    if head == 0:
        return f"M{at(x, 4)}V{draw.number(foot)}{tip}"
    start = (head - 0.5) * step + (2.0 if token > head else -2.0)
    top = foot - 9.0 - 9.0 * min(abs(head - token), 8)
    return f"M{at(start, foot)}C{at(start, top)} {at(x, top)} {at(x, foot)}{tip}"
