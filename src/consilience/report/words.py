"""Label types in words: what a label is, and what its cost counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import consilience.label_types as types
from consilience.label_types.base import LabelSpace
from consilience.report.charts import short

#: Names that are listed before "and 12 more".
LISTED = 8
#: By label type: what "each label is", with what `_detail` says about it, and what "a cost is".
_WORDS: dict[type[LabelSpace], tuple[str, str]] = {
    types.Classes: ("one of {0.k} classes{1}", "how often a vote is wrong"),
    types.FiniteMetric: ("one of {0.k} nodes with a distance{1}", "the distance between a vote and the true node"),
    types.Scores: ("a number{1}", "the squared difference to the true number"),
    types.Rankings: ("a ranking{1}", "the number of pairs in the wrong order"),
    types.Preferences: ("a ranking from comparisons of two items{1}", "how often two items are put in the wrong order"),
    types.Tags: ("a set of tags out of {0.size}{1}", "the share of tags that are wrong"),
    types.Sequences: ("a sequence of tags, one of {0.size} per position{1}", "the share of wrong positions"),
    types.DependencyTrees: ("a dependency tree", "the share of tokens with a wrong head"),
    types.Boxes: ("a set of boxes", "one minus the F1 of matched boxes, where a match counts its overlap"),
    types.Spans: ("a set of spans", "one minus the F1 of the marked characters"),
    types.Texts: ("a text", "{2}"),
    types.Vectors: ("a vector of {0.d} numbers", "the squared distance to the true vector"),
    types.Hyperbolic: ("a point of {0.d}-dimensional hyperbolic space", "the squared distance to the true point"),
    types.Sphere: ("a direction", "the squared angle (in radians) to the true direction"),
    types.SPD: ("a covariance matrix of {0.n} rows", "the squared distance to the true matrix"),
    types.SO3: ("a rotation", "the squared angle (in radians) to the true rotation"),
    types.Metric: ("an object with a distance of your own", "the distance{2} between a vote and the true label"),
    types.Product: ("a record ({1})", "the costs of the fields together, each relative to that of unrelated labels"),
}


def wording(space: LabelSpace) -> tuple[str, str]:
    """Return what a label of this type and what its cost is, in words; by default its `repr`."""
    if type(space) not in _WORDS:
        power = "" if space.power == 1.0 else f" to the power {space.power:g}"
        return f"a label of {short(repr(space), 120)}", f"the distance{power} between a vote and the true label"
    label, cost = _WORDS[type(space)]
    return label.format(space, _detail(space)), cost.format(space, "", _kind_of_cost(space))


def _detail(space: LabelSpace) -> str:
    if isinstance(space, types.Scores):
        return "" if space.range is None else f" between {space.range[0]:g} and {space.range[1]:g}"
    if isinstance(space, types.Product):
        return "; ".join(f"{name}: {wording(part)[0]}" for name, part in space.factors.items())
    names: Sequence[Any] | None = getattr(space, "items" if isinstance(space, types.Preferences) else "names", None)
    size = f" of {space.n_items} items" if isinstance(space, types.Rankings) and space.n_items is not None else ""
    if names is None:
        return size
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{size}: {', '.join(short(str(name), 40) for name in names[:LISTED])}{more}"


def _kind_of_cost(space: LabelSpace) -> str:
    if isinstance(space, types.Texts):
        costs = {"words": "the share of words to change", "gleu": "one minus GLEU"}
        return costs.get(space.kind, "the given distance")
    name = getattr(getattr(space, "function", None), "__name__", "<lambda>")
    return "" if name == "<lambda>" else f" ({name})"
