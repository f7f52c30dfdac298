"""Records: every field as its own label type shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from markupsafe import Markup

from consilience.label_types import Product
from consilience.report.items import Item
from consilience.report.labels.base import item_picture, label_html
from consilience.report.svg import element, joined

__all__ = ["part_of"]


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
        inner = part_of(item, name)
        drawn = item_picture(space.factors[name], inner) if inner is not None else Markup("")
        if drawn:
            shown.append(element("figure", drawn, element("figcaption", name)))
    return joined(shown)


def part_of(item: Item, name: str) -> Item | None:
    """Return an item whose labels are records as one whose labels are those of a field; None where it has none."""

    def field_of(label: Any) -> Any:
        return label.get(name) if isinstance(label, dict) else None

    if field_of(item.label) is None:
        return None
    votes = [replace(vote, label=field_of(vote.label)) for vote in item.votes if field_of(vote.label) is not None]
    details = {key.removeprefix(f"{name}/"): value for key, value in item.details.items() if key.startswith(f"{name}/")}
    return replace(item, label=field_of(item.label), votes=tuple(votes), details=details)
