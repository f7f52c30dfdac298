"""Label types in words: what a label is, and what its cost counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import consilience.label_types as types
from consilience.label_types.base import LabelSpace

__all__ = ["Wording", "listed", "wording"]

#: Names that are listed before "and 12 more".
LISTED = 8


class Wording(NamedTuple):
    """What "each label is" and what "a cost is"."""

    label: str
    cost: str


def wording(space: LabelSpace) -> Wording:
    """Return a label type in words; by default its `repr`."""
    known = _WORDS.get(type(space))
    if known is not None:
        return Wording(*known(space))
    power = "" if space.power == 1.0 else f" to the power {space.power:g}"
    return Wording(f"a label of {_short(repr(space))}", f"the distance{power} between a vote and the true label")


def _scores(space: types.Scores) -> tuple[str, str]:
    ends = "" if space.range is None else f" between {space.range[0]:g} and {space.range[1]:g}"
    return f"a number{ends}", "the squared difference to the true number"


def _rankings(space: types.Rankings) -> tuple[str, str]:
    size = "" if space.n_items is None else f" of {space.n_items} items{_named(space.names)}"
    return f"a ranking{size}", "the number of pairs in the wrong order"


def _texts(space: types.Texts) -> tuple[str, str]:
    costs = {"words": "the share of words to change", "gleu": "one minus GLEU"}
    return "a text", costs.get(space.kind, "the given distance")


def _metric(space: types.Metric) -> tuple[str, str]:
    name = getattr(space.function, "__name__", "")
    named = "" if name in ("", "<lambda>") else f" ({name})"
    return "an object with a distance of your own", f"the distance{named} between a vote and the true label"


def _product(space: types.Product) -> tuple[str, str]:
    fields = "; ".join(f"{name}: {wording(part).label}" for name, part in space.factors.items())
    return f"a record ({fields})", "the costs of the fields together, each relative to that of unrelated labels"


_WORDS: dict[type[LabelSpace], Callable[[Any], tuple[str, str]]] = {
    types.Classes: lambda space: (f"one of {space.k} classes{_named(space.names)}", "how often a vote is wrong"),
    types.FiniteMetric: lambda space: (
        f"one of {space.k} nodes with a distance{_named(space.names)}",
        "the distance between a vote and the true node",
    ),
    types.Scores: _scores,
    types.Rankings: _rankings,
    types.Preferences: lambda space: (
        f"a ranking from comparisons of two items{_named(space.items)}",
        "how often two items are put in the wrong order",
    ),
    types.Tags: lambda space: (
        f"a set of tags out of {space.size}{_named(space.names)}",
        "the share of tags that are wrong",
    ),
    types.Sequences: lambda space: (
        f"a sequence of tags, one of {space.size} per position{_named(space.names)}",
        "the share of wrong positions",
    ),
    types.DependencyTrees: lambda _: ("a dependency tree", "the share of tokens with a wrong head"),
    types.Boxes: lambda _: ("a set of boxes", "one minus the F1 of matched boxes, where a match counts its overlap"),
    types.Spans: lambda _: ("a set of spans", "one minus the F1 of the marked characters"),
    types.Texts: _texts,
    types.Vectors: lambda space: (f"a vector of {space.d} numbers", "the squared distance to the true vector"),
    types.Hyperbolic: lambda space: (
        f"a point of {space.d}-dimensional hyperbolic space",
        "the squared distance to the true point",
    ),
    types.Sphere: lambda _: ("a direction", "the squared angle (in radians) to the true direction"),
    types.SPD: lambda space: (f"a covariance matrix of {space.n} rows", "the squared distance to the true matrix"),
    types.SO3: lambda _: ("a rotation", "the squared angle (in radians) to the true rotation"),
    types.Metric: _metric,
    types.Product: _product,
}


def _named(names: Sequence[Any] | None) -> str:
    return "" if names is None else f": {listed(names)}"


def listed(names: Sequence[Any]) -> str:
    """Return the first names, and how many there are more."""
    shown = ", ".join(_short(str(name), 40) for name in names[:LISTED])
    return shown + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def _short(text: str, size: int = 120) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
