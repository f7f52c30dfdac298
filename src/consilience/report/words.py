"""Label types in words: what a label is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import consilience.label_types as types
from consilience.label_types.base import LabelSpace
from consilience.report.charts import short

#: Names that are listed before "and 12 more".
LISTED = 8
#: By label type: what "each label is", with what `_detail` says about it.
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
        return f"a label of {short(repr(space), 120)}"
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
    return f"{size}: {', '.join(short(str(name), 40) for name in names[:LISTED])}{more}"
