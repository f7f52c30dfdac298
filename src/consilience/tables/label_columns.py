"""Labels as people write them in files: rankings of named things as ``a > b = c``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.arrays import FloatArray, is_null
from consilience.estimation.protocol import Posterior
from consilience.exceptions import UnsupportedError
from consilience.label_types import Preferences, Rankings
from consilience.label_types.base import LabelSpace
from consilience.tables.vote_tables import order_as_text

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["label_column"]


def label_column(space: LabelSpace, belief: Posterior, ties: float | None = None) -> pa.Array:
    """Return the labels of a posterior as an Arrow column; rankings of named things as text.

    Parameters
    ----------
    ties
        Neighbours of a ranking whose order is less probable than this are tied.
    """
    import pyarrow as pa

    if ties is not None and not 0.5 <= ties <= 1.0:
        raise UnsupportedError(f"ties={ties!r} is no probability from 0.5 to 1. Try 0.6.")
    if isinstance(space, Preferences):
        return _of_preferences(belief, ties)
    named = isinstance(space, Rankings) and belief.labels.dtype == object  # who votes positions gets positions
    names = space.names if named and isinstance(space, Rankings) else None
    if names is None:
        if ties is not None:
            raise UnsupportedError(f"ties= is for rankings of named things, not for {type(space).__name__}.")
        return space.to_arrow(belief.labels)
    orders = belief.labels
    if ties is None:
        return pa.array([None if is_null(order) else order_as_text(order) for order in orders], pa.string())
    pairs = belief.details["pair_probability"]
    place = {name: index for index, name in enumerate(names)}
    return pa.array(
        [
            None if is_null(order) else order_as_text(_tied(order, row, place, ties))
            for order, row in zip(orders, pairs, strict=True)
        ],
        pa.string(),
    )


def _of_preferences(belief: Posterior, ties: float | None) -> pa.Array:
    """Return rankings as text; neighbours whose order is less probable than `ties` are tied."""
    import pyarrow as pa

    written = []
    for order, names, chance in zip(
        belief.labels, belief.details["candidates"], belief.details["pair_probability"], strict=True
    ):
        groups = order
        if ties is not None and not is_null(order):
            groups = []
            for place, name in enumerate(names):
                if place and chance[place - 1, place] < ties:
                    groups[-1] += (name,)
                else:
                    groups.append((name,))
        text = [" = ".join(map(str, group if isinstance(group, tuple) else (group,))) for group in groups or ()]
        written.append(None if is_null(order) else " > ".join(text))
    return pa.array(written, pa.string())


def _tied(order: list[Any], pairs: FloatArray, place: dict[str, int], ties: float) -> list[tuple[str, ...]]:
    """Return the order with uncertain neighbours joined; `pairs` is P(i before j) for (0, 1), (0, 2), ..."""
    size = len(place)
    before = np.full((size, size), 0.5)
    before[np.triu_indices(size, 1)] = pairs
    names = [name for group in order for name in (group if isinstance(group, tuple) else (group,))]
    groups: list[tuple[str, ...]] = []
    for name in names:
        if groups:
            left, right = place[groups[-1][-1]], place[name]
            sure = before[left, right] if left < right else 1.0 - before[right, left]
            if sure < ties:
                groups[-1] += (name,)
                continue
        groups.append((name,))
    return groups
