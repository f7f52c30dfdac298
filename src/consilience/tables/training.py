"""Labels as training data for other libraries: weighted examples, preference pairs, groups for learning to rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, FloatArray, IntArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError, InvalidVotesError, UnsupportedError
from consilience.label_types.preferences.space import Preferences
from consilience.label_types.rankings.space import Rankings
from consilience.tables.encoding import votes_for
from consilience.tables.frames import is_frame
from consilience.tables.vote_tables import as_group

if TYPE_CHECKING:
    import pyarrow as pa

    from consilience.label_model import LabelModel


#: LightGBM's table of gains ends at relevance 30.
LEVELS = 31
PAIRS = ("all", "adjacent", "best")


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Labelled items as scikit-learn takes them: ``model.fit(data.X, data.y, sample_weight=data.sample_weight)``.

    Attributes
    ----------
    X : rows of the data in their own type, or None
    y : array of labels
    sample_weight : array of confidences
    items : array of ids
    """

    X: Any
    y: Batch
    sample_weight: FloatArray
    items: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class RankingGroups:
    """Rankings as LightGBM's lambdarank takes them: ``Dataset(X[groups.rows], groups.relevance, group=groups.sizes)``.

    Attributes
    ----------
    relevance : array of shape (n_documents,)
        0 for the last of a group, larger for better ones; equal where tied.
    sizes : array of shape (n_groups,)
        Number of documents of each group.
    rows : array of shape (n_documents,)
        Which documents are kept, counted over all documents of all items in turn.
    items : array of ids, one per group
    """

    relevance: IntArray
    sizes: IntArray
    rows: IntArray
    items: npt.NDArray[Any]


def training_set(model: LabelModel, votes: Any, X: Any = None, *, min_confidence: float = 0.0) -> TrainingSet:
    """Return the labelled items with their confidence as weight; items nobody voted on are left out.

    Parameters
    ----------
    X
        One row per item: an array, a sparse matrix, a pandas, polars or Arrow frame, or a list.
    min_confidence
        Items whose label is less sure are left out.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> votes = [[0, 0, 1], [1, 1, 1], [-1, -1, -1], [0, 0, 0]] * 10
    >>> data = training_set(LabelModel(Classes(2)).fit(votes), votes, X=np.arange(40)[:, None])
    >>> data.X[:3].tolist(), data.y[:3].tolist(), len(data)
    ([[0], [1], [3]], [0, 1, 0], 30)
    """
    table = votes_for(votes, model.space)
    belief = model.posterior(table)
    keep = np.flatnonzero(table.observed.any(axis=1) & (belief.confidence >= min_confidence))
    if X is not None and (n := _length(X)) != len(table):
        raise InvalidVotesError(f"X has {n} rows for {len(table)} items. Give one row per item, in the same order.")
    rows = None if X is None else _rows(X, keep)
    return TrainingSet(rows, belief.labels[keep], belief.confidence[keep], table.items[keep])


def preference_pairs(
    rankings: Any,
    votes: Any = None,
    *,
    candidates: Sequence[Sequence[Any]] | None = None,
    items: Sequence[Any] | None = None,
    pairs: str = "all",
    min_margin: float = 0.0,
) -> pa.Table:
    """Return pairs (item, chosen, rejected, margin) from rankings, as preference learning takes them.

    Ties and items that a ranking does not see make no pair.

    Parameters
    ----------
    rankings
        A fitted model of `Rankings` or `Preferences` with its `votes`, or rankings: positions, or lists of names,
        best first.
    candidates
        What is ranked, for each item a list in the order of its positions; by default the names of the label
        type, or numbers from 0.
    items
        Ids of the rows where there is no model; counted by default.
    pairs
        "all"; "adjacent" ones only; or the "best" against each of the others.
    min_margin
        Pairs of a smaller margin are left out. With a model the margin is the probability that the chosen one is
        better, minus that of the opposite, between -1 and 1; else how many places lie between them.

    Examples
    --------
    >>> preference_pairs([["tea", "milk", "juice"]], pairs="adjacent").to_pylist()[0]
    {'item': 0, 'chosen': 'tea', 'rejected': 'milk', 'margin': 1.0}
    """
    import pyarrow as pa

    if pairs not in PAIRS:
        raise UnsupportedError(f"pairs={pairs!r} is unknown. Use one of {', '.join(map(repr, PAIRS))}.")
    found = ordered_rows(rankings, votes, candidates, items)
    records = [
        (found.items[row], found.names(row)[better], found.names(row)[worse], found.margin(row, better, worse))
        for row, positions in enumerate(found.positions)
        for better, worse in _chosen_pairs(positions, pairs)
    ]
    kept = [record for record in records if record[3] >= min_margin]
    columns = zip(*kept, strict=True) if kept else [()] * 4
    names = ("item", "chosen", "rejected", "margin")
    table = {name: pa.array(list(column)) for name, column in zip(names, columns, strict=True)}
    return pa.table({**table, "margin": table["margin"].cast(pa.float64())})


def ranking_groups(rankings: Any, votes: Any = None, *, levels: int = LEVELS) -> RankingGroups:
    """Return relevance and group sizes from rankings, for learning to rank.

    Documents that nobody saw, and items without a ranking, are left out; `rows` says which are kept.

    Parameters
    ----------
    rankings
        A fitted model of `Rankings` with its `votes`, or rankings: positions, or lists of names, best first.
    levels
        Relevance runs from 0 to ``levels - 1`` at most; in longer rankings all behind are 0.

    Examples
    --------
    >>> groups = ranking_groups([[0, 2, 1], [1, 0, -1]])
    >>> groups.relevance.tolist(), groups.sizes.tolist(), groups.rows.tolist()
    ([2, 0, 1, 0, 1], [3, 2], [0, 1, 2, 3, 4])
    """
    if levels < 2:
        raise UnsupportedError(f"levels={levels} leaves no order. Use 2 or more.")
    found = ordered_rows(rankings, votes, None, None)
    relevance: list[int] = []
    rows: list[int] = []
    sizes: list[int] = []
    items: list[Any] = []
    start = 0
    for row, positions in enumerate(found.positions):
        seen = np.flatnonzero(positions >= 0)
        if len(seen):
            top = min(int(positions[seen].max()), levels - 1)
            relevance += np.maximum(top - positions[seen], 0).tolist()
            rows += (start + seen).tolist()
            sizes.append(len(seen))
            items.append(found.items[row])
        start += len(positions)
    counted = [np.array(numbers, dtype=np.int64) for numbers in (relevance, sizes, rows)]
    return RankingGroups(counted[0], counted[1], counted[2], np.array(items))


def _chosen_pairs(positions: IntArray, pairs: str) -> list[tuple[int, int]]:
    seen = [int(place) for place in np.argsort(positions, kind="stable") if positions[place] >= 0]
    every = [(one, two) for at, one in enumerate(seen) for two in seen[at + 1 :] if positions[one] < positions[two]]
    levels = sorted({int(positions[place]) for place in seen})
    after = dict(pairwise(levels))
    if pairs == "adjacent":
        return [(one, two) for one, two in every if after[int(positions[one])] == positions[two]]
    return [(one, two) for one, two in every if pairs == "all" or positions[one] == levels[0]]


def _length(data: Any) -> int:
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def _rows(data: Any, keep: npt.NDArray[np.intp]) -> Any:
    if is_frame(data):
        import narwhals as nw

        return nw.from_native(data, eager_only=True)[keep.tolist()].to_native()
    return data[keep] if hasattr(data, "shape") else [data[row] for row in keep.tolist()]


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
        table = votes_for(votes, space)
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
    table = votes_for(votes, model.space)
    belief = model.posterior(table)
    rows = np.flatnonzero(table.observed.any(axis=1)).tolist()
    candidates = [belief.details["candidates"][row] for row in rows]
    positions = []
    for row, names in zip(rows, candidates, strict=True):
        place = {name: at for at, group in enumerate(belief.labels[row]) for name in as_group(group)}
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
            ranked[item].update(as_group(entry))
    candidates = tuple(tuple(sorted(names)) for names in ranked)
    distinct = {names for names in candidates if names}
    if len(distinct) == 1:
        return SharedOrders([order for _, order in orders], Rankings(list(distinct.pop())), candidates)
    labels = [None if order is None else _in(order, candidates[item]) for item, order in orders]
    return SharedOrders(labels, Rankings(None), candidates)


def _in(order: list[Any], names: tuple[str, ...]) -> list[int]:
    place = {name: position for position, entry in enumerate(order) for name in as_group(entry)}
    return [place.get(name, -1) for name in names]
