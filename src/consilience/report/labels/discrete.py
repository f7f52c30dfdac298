"""Classes, nodes, rankings and tags: chips."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from consilience.arrays import IntArray, as_object_array
from consilience.label_types import Classes, FiniteMetric, Preferences, Rankings, Sequences, Tags
from consilience.label_types.preferences.comparisons import UNPARSABLE
from consilience.report.labels.base import MAX_PIECES, chip, encoded, label_html, plain_text
from consilience.report.svg import element, joined

__all__: list[str] = []

#: Letters of a list of comparisons.
MAX_SHOWN = 160


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
def _(space: Rankings, label: Any, other: Any = None) -> Markup:
    positions = encoded(space, label).astype(np.int64)
    before = None if other is None else encoded(space, other).astype(np.int64)
    order = np.argsort(positions, kind="stable")
    shown = order[positions[order] >= 0][:MAX_PIECES]
    places: list[Markup] = []
    for place in np.unique(positions[shown]):
        tied = [
            chip(
                plain_text(f"#{index}" if space.names is None else space.names[index]),
                int(index),
                "differs" if before is not None and _moved(positions, before, int(index)) else "",
            )
            for index in shown[positions[shown] == place]
        ]
        places.append(element("span", *tied, class_="tie") if len(tied) > 1 else joined(tied))
    if len(shown) < int((positions >= 0).sum()):
        places.append(Markup("…"))
    unseen = int((positions == -1).sum())
    rest = element("small", f" {unseen} not seen") if unseen else Markup("")
    return element("span", Markup('<span class="then">\u203a</span>').join(places), rest, class_="ranking")


@label_html.register
def _(space: Preferences, label: Any, other: Any = None) -> Markup:
    said = encoded(space, label)
    if said.ranking is None:
        lost = int((said.outcome == UNPARSABLE).sum())
        return element("span", f"{len(said) - lost} comparisons of {len(said.items)} items: {said!r}"[:MAX_SHOWN])
    groups = [joined(chip(plain_text(name), _colour_of(name)) for name in group) for group in said.ranking[:MAX_PIECES]]
    rest = Markup("…") if len(said.ranking) > MAX_PIECES else Markup("")
    shown = Markup('<span class="then">\u203a</span>').join(groups)
    return element("span", shown, rest, class_="ranking")


def _colour_of(name: Any) -> int:
    """Return a number that belongs to a name, so that it has the same colour everywhere."""
    return sum(map(ord, str(name)))


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
def _(space: Tags, label: Any, other: Any = None) -> Markup:
    codes = encoded(space, label).astype(np.int64)
    beside = None if other is None else encoded(space, other).astype(np.int64)
    return _tag_set(space, codes, beside)


@label_html.register
def _(space: Sequences, label: Any, other: Any = None) -> Markup:
    codes = encoded(space, label).astype(np.int64)
    beside = None if other is None else encoded(space, other).astype(np.int64)
    shown = []
    for place, code in enumerate(codes[: 2 * MAX_PIECES].tolist()):
        differs = beside is not None and place < len(beside) and code >= 0 and beside[place] not in (code, -1)
        name = "?" if code < 0 else _tag(space, code)
        shown.append(chip(name, max(code, 0), f"square{' differs' if differs else ''}", f"position {place + 1}"))
    rest = Markup("…") if len(codes) > 2 * MAX_PIECES else Markup("")
    return element("span", *shown, rest, class_="sequence")


def _tag_set(space: Tags, codes: IntArray, beside: IntArray | None) -> Markup:
    """Return the tags that are there; beside another label also those that are missing."""
    shown = []
    for tag, code in enumerate(codes.tolist()):
        other = code if beside is None else int(beside[tag])
        if code == 1:
            shown.append(chip(_tag(space, tag), tag, "differs" if other == 0 else ""))
        elif code == 0 and other == 1:
            shown.append(chip(_tag(space, tag), None, "absent"))
        elif code < 0 and other == 1:
            shown.append(chip(f"{_tag(space, tag)}?", None, hover="no opinion"))
    if len(shown) > MAX_PIECES:
        shown[MAX_PIECES:] = [Markup("…")]
    return joined(shown) if shown else element("small", "no tag")


def _tag(space: Tags | Sequences, code: int) -> str:
    return plain_text(code if space.names is None else space.names[code])
