"""Small pictures as inline SVG: a mark is made by `element`, which escapes all that it is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape

from consilience.arrays import FloatArray

__all__ = ["Scale", "dot", "element", "joined", "line", "number", "picture", "text"]


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
