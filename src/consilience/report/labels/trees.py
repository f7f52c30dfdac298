"""Dependency trees: arcs above the tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from consilience.label_types import DependencyTrees
from consilience.report.labels.base import encoded, label_html
from consilience.report.svg import element, number, picture, text

__all__: list[str] = []

#: Tokens that are drawn; arcs beyond them are left out.
MAX_TOKENS = 40


@label_html.register
def _(space: DependencyTrees, label: Any, other: Any = None) -> Markup:
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


def _edges(space: DependencyTrees, label: Any) -> list[tuple[int, int]]:
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
    corners = [(start, foot), (start, top), (x, top), (x, foot)]
    first, *others = (f"{number(across)} {number(down)}" for across, down in corners)
    return f"M{first}C{' '.join(others)}{tip}"
