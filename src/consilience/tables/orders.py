"""Rankings row by row: the positions, what stands at them, and how sure the order of two is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.arrays import Batch, FloatArray, IntArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError, UnsupportedError
from consilience.label_types.preferences.space import Preferences
from consilience.label_types.rankings.space import Rankings
from consilience.tables.encoding import read_votes

if TYPE_CHECKING:
    from consilience.label_model import LabelModel

__all__ = ["Orders", "SharedOrders", "ordered_rows", "shared_orders"]


@dataclass(frozen=True, eq=False)
class Orders:
    """Rankings as positions per item, with the names of what is ranked.

    Parameters
    ----------
    positions
        One array per row; empty where there is no ranking, -1 for what it does not see.
    probability
        For each row the probabilities that the first is better, of pairs (0, 1), (0, 2), ...; or None.
    """

    positions: list[IntArray]
    items: list[Any]
    candidates: Sequence[Sequence[Any]] | None = None
    probability: Sequence[FloatArray] | Batch | None = None

    def names(self, row: int) -> Sequence[Any]:
        """Return what is ranked in a row."""
        size = len(self.positions[row])
        if self.candidates is None:
            return range(size)
        own = self.candidates[row]
        if len(own) < size:
            raise InvalidLabelError(f"Row {row} ranks {size} items, but candidates names {len(own)}. Name all of them.")
        return own

    def margin(self, row: int, better: int, worse: int) -> float:
        """Return how much speaks for `better` before `worse`."""
        if self.probability is None:
            return float(self.positions[row][worse] - self.positions[row][better])
        own = self.probability[row]
        width = int((1 + np.sqrt(1 + 8 * len(own))) / 2)
        low, high = min(better, worse), max(better, worse)
        first = float(own[low * width - low * (low + 1) // 2 + high - low - 1])
        return 2.0 * first - 1.0 if better == low else 1.0 - 2.0 * first


def ordered_rows(
    rankings: Any, votes: Any, candidates: Sequence[Sequence[Any]] | None, items: Sequence[Any] | None
) -> Orders:
    """Return the rankings that a model predicts, or those given, row by row."""
    from consilience.label_model import LabelModel

    if isinstance(rankings, LabelModel):
        space = rankings.space
        if isinstance(space, Preferences):
            return _preferred(rankings, votes)
        if not isinstance(space, Rankings):
            raise UnsupportedError(f"The model labels with {type(space).__name__}, not with rankings.")
        if votes is None:
            raise UnsupportedError("A model needs the votes to rank. Pass them as the second argument.")
        table = read_votes(votes, space)
        belief = rankings.posterior(table)
        labels: Batch = belief.labels
        ids, probability = table.items.tolist(), belief.details["pair_probability"]
    else:
        labels = rankings if isinstance(rankings, np.ndarray) else as_object_array(rankings)
        space = Rankings(_names(labels))
        ids, probability = list(range(len(labels)) if items is None else items), None
    if len(ids) != len(labels):
        raise InvalidLabelError(f"There are {len(labels)} rankings and {len(ids)} item ids. Give one per ranking.")
    if candidates is None and space.names is not None:
        candidates = [space.names] * len(labels)
    if candidates is not None and len(candidates) != len(labels):
        raise InvalidLabelError(f"There are {len(labels)} rankings and {len(candidates)} lists of candidates.")
    return Orders([_positions(label, space) for label in labels], ids, candidates, probability)


def _preferred(model: LabelModel, votes: Any) -> Orders:
    """Return the rankings that a model of `Preferences` predicts, candidates best first."""
    if votes is None:
        raise UnsupportedError("A model needs the votes to rank. Pass them as the second argument.")
    table = read_votes(votes, model.space)
    belief = model.posterior(table)
    rows = np.flatnonzero(table.observed.any(axis=1)).tolist()
    candidates = [belief.details["candidates"][row] for row in rows]
    positions = []
    for row, names in zip(rows, candidates, strict=True):
        place = {
            name: at
            for at, group in enumerate(belief.labels[row])
            for name in (group if isinstance(group, tuple) else (group,))
        }
        positions.append(np.array([place[name] for name in names], dtype=np.int64))
    probability = [belief.details["pair_probability"][row] for row in rows]
    upper = [chance[np.triu_indices(len(chance), 1)] for chance in probability]
    return Orders(positions, [table.items.tolist()[row] for row in rows], candidates, upper)


def _names(labels: Batch) -> list[str] | None:
    """Return the names that occur in orders of names; None where labels are positions."""
    names: dict[str, None] = {}
    for label in labels.tolist():
        for group in label if isinstance(label, (list, tuple, dict)) else ():
            entries = group if isinstance(group, (tuple, set, frozenset)) else (group,)
            names.update(dict.fromkeys(entry for entry in entries if isinstance(entry, str)))
    return list(names) or None


def _positions(label: Any, space: Rankings) -> IntArray:
    if is_null(label):
        return np.zeros(0, dtype=np.int64)
    if isinstance(label, np.ndarray) and label.dtype.kind in "iu" and (label < 0).all():
        return label.astype(np.int64)
    row = space.as_batch(as_object_array([label]))[0].astype(np.int64)
    return np.asarray(row[row > -2])


@dataclass(frozen=True, eq=False)
class SharedOrders:
    """Orders of names, best first, as labels of one label type.

    Where all items rank the same things, labels are the orders themselves; else positions in `candidates`.
    """

    labels: list[Any]
    space: Rankings
    candidates: tuple[tuple[str, ...], ...]


def shared_orders(orders: Sequence[tuple[int, list[str] | None]], n_items: int) -> SharedOrders:
    """Return labels from (item, order) pairs; an order may leave out what its source did not see.

    Examples
    --------
    >>> shared_orders([(0, ["b", "a"]), (0, ["a", "b"]), (1, ["a", "b"])], 2).space
    Rankings(['a', 'b'])
    >>> found = shared_orders([(0, ["b", "a"]), (1, ["d", "c"]), (1, ["c"])], 2)
    >>> found.space, found.labels, found.candidates
    (Rankings(None), [[1, 0], [1, 0], [0, -1]], (('a', 'b'), ('c', 'd')))
    """
    ranked: list[set[str]] = [set() for _ in range(n_items)]
    for item, order in orders:
        for entry in order or ():
            ranked[item].update(entry if isinstance(entry, tuple) else (entry,))
    candidates = tuple(tuple(sorted(names)) for names in ranked)
    distinct = {names for names in candidates if names}
    if len(distinct) == 1:
        return SharedOrders([order for _, order in orders], Rankings(list(distinct.pop())), candidates)
    labels = [None if order is None else _in(order, candidates[item]) for item, order in orders]
    return SharedOrders(labels, Rankings(None), candidates)


def _in(order: list[Any], names: tuple[str, ...]) -> list[int]:
    place = {
        name: position
        for position, entry in enumerate(order)
        for name in (entry if isinstance(entry, tuple) else (entry,))
    }
    return [place.get(name, -1) for name in names]
