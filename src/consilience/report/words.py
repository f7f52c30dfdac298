"""Label types in words: what a label is, and what its cost counts. One function per label type, found by its class."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

from consilience.label_types import (
    SO3,
    SPD,
    Boxes,
    Classes,
    DependencyTrees,
    FiniteMetric,
    Hyperbolic,
    LabelSpace,
    Metric,
    Preferences,
    Product,
    Rankings,
    Scores,
    Sequences,
    Spans,
    Sphere,
    Tags,
    Texts,
    Vectors,
)

__all__ = ["Wording", "listed", "wording"]

#: Names that are listed before "and 12 more".
LISTED = 8


class Wording(NamedTuple):
    """What "each label is" and what "a cost is"."""

    label: str
    cost: str


@singledispatch
def wording(space: LabelSpace) -> Wording:
    """Return a label type in words; by default its `repr`."""
    power = "" if space.power == 1.0 else f" to the power {space.power:g}"
    return Wording(f"a label of {_short(repr(space))}", f"the distance{power} between a vote and the true label")


@wording.register
def _(space: Classes) -> Wording:
    names = "" if space.names is None else f": {listed(space.names)}"
    return Wording(f"one of {space.k} classes{names}", "how often a vote is wrong")


@wording.register
def _(space: FiniteMetric) -> Wording:
    names = "" if space.names is None else f": {listed(space.names)}"
    return Wording(f"one of {space.k} nodes with a distance{names}", "the distance between a vote and the true node")


@wording.register
def _(space: Scores) -> Wording:
    ends = "" if space.range is None else f" between {space.range[0]:g} and {space.range[1]:g}"
    return Wording(f"a number{ends}", "the squared difference to the true number")


@wording.register
def _(space: Rankings) -> Wording:
    if space.n_items is None:
        return Wording("a ranking", "the number of pairs in the wrong order")
    names = "" if space.names is None else f": {listed(space.names)}"
    return Wording(f"a ranking of {space.n_items} items{names}", "the number of pairs in the wrong order")


@wording.register
def _(space: Preferences) -> Wording:
    names = "" if space.items is None else f": {listed(space.items)}"
    return Wording(f"a ranking from comparisons of two items{names}", "how often two items are put in the wrong order")


@wording.register
def _(space: Tags) -> Wording:
    names = "" if space.names is None else f": {listed(space.names)}"
    return Wording(f"a set of tags out of {space.size}{names}", "the share of tags that are wrong")


@wording.register
def _(space: Sequences) -> Wording:
    names = "" if space.names is None else f": {listed(space.names)}"
    return Wording(f"a sequence of tags, one of {space.size} per position{names}", "the share of wrong positions")


@wording.register
def _(space: DependencyTrees) -> Wording:
    return Wording("a dependency tree", "the share of tokens with a wrong head")


@wording.register
def _(space: Boxes) -> Wording:
    return Wording("a set of boxes", "one minus the F1 of matched boxes, where a match counts its overlap")


@wording.register
def _(space: Spans) -> Wording:
    return Wording("a set of spans", "one minus the F1 of the marked characters")


@wording.register
def _(space: Texts) -> Wording:
    meaning = {"words": "the share of words to change", "gleu": "one minus GLEU"}.get(space.kind, "the given distance")
    return Wording("a text", meaning)


@wording.register
def _(space: Vectors) -> Wording:
    return Wording(f"a vector of {space.d} numbers", "the squared distance to the true vector")


@wording.register
def _(space: Hyperbolic) -> Wording:
    return Wording(f"a point of {space.d}-dimensional hyperbolic space", "the squared distance to the true point")


@wording.register
def _(space: Sphere) -> Wording:
    return Wording("a direction", "the squared angle (in radians) to the true direction")


@wording.register
def _(space: SPD) -> Wording:
    return Wording(f"a covariance matrix of {space.n} rows", "the squared distance to the true matrix")


@wording.register
def _(space: SO3) -> Wording:
    return Wording("a rotation", "the squared angle (in radians) to the true rotation")


@wording.register
def _(space: Metric) -> Wording:
    name = getattr(space.function, "__name__", "")
    named = "" if name in ("", "<lambda>") else f" ({name})"
    return Wording("an object with a distance of your own", f"the distance{named} between a vote and the true label")


@wording.register
def _(space: Product) -> Wording:
    fields = "; ".join(f"{name}: {wording(part).label}" for name, part in space.factors.items())
    return Wording(
        f"a record ({fields})", "the costs of the fields together, each relative to that of unrelated labels"
    )


def listed(names: Sequence[Any]) -> str:
    """Return the first names, and how many there are more."""
    shown = ", ".join(_short(str(name), 40) for name in names[:LISTED])
    return shown + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def _short(text: str, size: int = 120) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
