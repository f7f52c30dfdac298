"""Labels as training data for other libraries: weighted examples, preference pairs, groups for learning to rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, FloatArray, IntArray
from consilience.exceptions import InvalidVotesError, UnsupportedError
from consilience.tables.encoding import read_votes
from consilience.tables.frames import is_frame
from consilience.tables.orders import ordered_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from consilience.label_model import LabelModel

__all__ = ["RankingGroups", "TrainingSet", "preference_pairs", "ranking_groups", "training_set"]

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
    table = read_votes(votes, model.space)
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
