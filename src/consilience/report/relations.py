"""How sources relate: the mean cost between any two, groups that depend on each other, and a map."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, hash_priority
from consilience.label_types.base import LabelSpace
from consilience.prediction.source_model import SourceModel
from consilience.votes import Votes

__all__ = ["Relations", "classical_scaling", "dependent_groups", "relate"]

#: Items on which sources are compared with each other.
MAX_ITEMS = 20_000
#: Sources that are compared with each other: those of most votes.
MAX_SOURCES = 30
#: More sources than that are numbered on the map.
MAX_NAMES = 14
#: Findings that name sources which may depend on each other.
_DEPENDENCE = ("dependent-pair", "copied-source")


@dataclass(frozen=True, eq=False)
class Relations:
    """The sources that were compared, those of a group next to each other.

    Parameters
    ----------
    sources
        Their names; m of them.
    cost
        ``(m, m)`` mean cost between the votes of two sources on the same item; NaN where they never meet.
    to_label
        ``(m,)`` mean cost between its votes and the labels.
    groups
        Which of them, by position, depend on each other.
    places
        ``(m + 1, 2)`` places on a map in which near means similar; the last is that of the labels.
    """

    sources: tuple[str, ...]
    cost: FloatArray
    to_label: FloatArray
    groups: tuple[tuple[int, ...], ...]
    places: FloatArray

    @property
    def crowded(self) -> bool:
        """Whether there are too many of them for names on a map."""
        return len(self.sources) > MAX_NAMES


def relate(space: LabelSpace, model: SourceModel, encoded: Votes, best: Batch, voted: BoolArray) -> Relations:
    """Return how the sources with the most votes relate.

    Parameters
    ----------
    encoded
        Votes in the form of the space, of the sources of the model.
    best, voted
        Labels of the items that have a vote, and which items these are.
    """
    rows = np.flatnonzero(voted)
    if len(rows) > MAX_ITEMS:
        rows = np.sort(rows[np.argpartition(hash_priority(encoded.items[rows]), MAX_ITEMS)[:MAX_ITEMS]])
    labels, observed = encoded.labels[rows], encoded.observed[rows]
    best = best[(np.cumsum(voted) - 1)[rows]]
    most = np.argsort(-observed.sum(axis=0), kind="stable")[:MAX_SOURCES]
    chosen = np.sort(most[observed[:, most].any(axis=0)])
    m = len(chosen)
    cost = np.full((m + 1, m + 1), np.nan)
    for a in range(m):
        for b in range(a + 1, m + 1):
            left = observed[:, chosen[a]]
            both = np.flatnonzero(left & observed[:, chosen[b]] if b < m else left)
            if len(both):
                other = labels[both, chosen[b]] if b < m else best[both]
                cost[a, b] = cost[b, a] = float(space.cost(labels[both, chosen[a]], other).mean())
    places = classical_scaling(cost)
    names = [encoded.sources[source] for source in chosen]
    order, groups = _arranged(names, dependent_groups(model), places[:m])
    shown = np.append(order, m)
    return Relations(
        tuple(names[source] for source in order),
        cost[np.ix_(order, order)],
        cost[order, m],
        groups,
        places[shown],
    )


def dependent_groups(model: SourceModel) -> list[list[str]]:
    """Return groups of sources linked by given dependencies, or by a finding about two sources."""
    found = [item.sources for item in model.diagnostics if item.code in _DEPENDENCE and len(item.sources) == 2]
    return _connected([*model.dependencies, *found])


def classical_scaling(squares: FloatArray) -> FloatArray:
    """Return points of the plane whose squared distances are near the given ones (classical scaling).

    Unknown squares (NaN) are taken as the mean of the known ones. Mean costs add up over independent sources as
    squared distances do, so they are taken for those.

    Examples
    --------
    >>> corners = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    >>> squares = ((corners[:, None] - corners) ** 2).sum(axis=2)
    >>> places = classical_scaling(squares)
    >>> ((places[:, None] - places) ** 2).sum(axis=2).round(6).tolist()
    [[0.0, 9.0, 16.0], [9.0, 0.0, 25.0], [16.0, 25.0, 0.0]]
    """
    n = len(squares)
    known = np.isfinite(squares) & ~np.eye(n, dtype=bool)
    filled = np.where(known, squares, squares[known].mean() if known.any() else 0.0)
    np.fill_diagonal(filled, 0.0)
    centre = np.eye(n) - 1.0 / max(n, 1)
    values, vectors = np.linalg.eigh(-0.5 * centre @ filled @ centre)
    places = np.zeros((n, 2))
    for axis in range(min(2, n)):
        vector = vectors[:, -1 - axis]
        # The sign of an eigenvector is arbitrary; the largest entry is put on the positive side.
        sign = np.sign(vector[np.argmax(np.abs(vector))]) or 1.0
        places[:, axis] = sign * np.sqrt(max(float(values[-1 - axis]), 0.0)) * vector
    return places


def _arranged(
    names: list[str], groups: list[list[str]], places: FloatArray
) -> tuple[IntArray, tuple[tuple[int, ...], ...]]:
    """Return an order in which groups stay together and neighbours are similar, and the groups in that order."""
    index = {name: position for position, name in enumerate(names)}
    members = [[index[name] for name in group if name in index] for group in groups]
    members = [group for group in members if len(group) > 1]
    grouped = {position for group in members for position in group}
    blocks = [*members, *([position] for position in range(len(names)) if position not in grouped)]
    blocks.sort(key=lambda block: float(places[block, 0].mean()))
    order = np.array([position for block in blocks for position in block], dtype=np.int64)
    rank = {int(position): place for place, position in enumerate(order)}
    return order, tuple(tuple(rank[position] for position in block) for block in blocks if len(block) > 1)


def _connected(pairs: Iterable[tuple[str, ...]]) -> list[list[str]]:
    groups: list[list[str]] = []
    for pair in pairs:
        touched = [group for group in groups if any(name in group for name in pair)]
        joined = list(dict.fromkeys([name for group in touched for name in group] + list(pair)))
        groups = [group for group in groups if group not in touched] + [joined]
    return groups
