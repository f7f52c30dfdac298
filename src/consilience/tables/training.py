"""Labels as training data for other libraries: weighted examples, preference pairs, groups for learning to rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, FloatArray, IntArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError, InvalidVotesError, UnsupportedError
from consilience.label_model import LabelModel
from consilience.label_types.preferences.space import Preferences
from consilience.label_types.rankings.labels import names_of
from consilience.label_types.rankings.space import Rankings
from consilience.lazy import pyarrow as pa
from consilience.tables.frames import n_rows, take_rows
from consilience.tables.vote_tables import as_group
from consilience.votes import as_votes

#: LightGBM's table of gains ends at relevance 30.
LEVELS = 31
PAIRS = ("all", "adjacent", "best")


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Labeled items as scikit-learn takes them: ``model.fit(data.X, data.y, sample_weight=data.sample_weight)``.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10
    >>> data = training_set(LabelModel(Classes(2)).fit(votes), votes, [[1.0]] * 40)
    >>> data.y[:4].tolist(), data.sample_weight.shape
    ([0, 1, 0, 1], (40,))
    """

    #: Rows of the data in their own type, or None.
    X: Any
    y: Batch
    #: Confidence of the labels.
    sample_weight: FloatArray
    items: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class RankingGroups:
    """Rankings as LightGBM takes them: ``Dataset(X[groups.rows], groups.relevance, group=groups.sizes)``.

    Examples
    --------
    >>> from consilience import LabelModel, Rankings
    >>> votes = [[[0, 1, 2], [0, 2, 1], [0, 1, 2]]] * 10
    >>> groups = ranking_groups(LabelModel(Rankings(3)).fit(votes), votes)
    >>> groups.relevance[:3].tolist(), groups.sizes[:2].tolist()
    ([2, 1, 0], [3, 3])
    """

    #: One per document: 0 for the last of a group, larger for better ones; equal where tied.
    relevance: IntArray
    #: Number of documents of each group.
    sizes: IntArray
    #: Which documents are kept, counted over all documents of all items in turn.
    rows: IntArray
    #: Ids of the groups.
    items: npt.NDArray[Any]


def training_set(
    model: LabelModel, votes: Any, X: Any = None, *, min_confidence: float = 0.0, soft: bool = False
) -> TrainingSet:
    """Return the labeled items with their confidence as weight.

    Items nobody voted on are left out, and those whose label is less sure than `min_confidence`. `X` has one row per
    item: an array, a sparse matrix, a pandas, polars or Arrow frame, or a list. With `soft`, `y` holds the probability
    of each label, for models that learn from distributions.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> votes = [[0, 0, 1], [1, 1, 1], [-1, -1, -1], [0, 0, 0]] * 10
    >>> data = training_set(LabelModel(Classes(2)).fit(votes), votes, X=np.arange(40)[:, None])
    >>> data.X[:3].tolist(), data.y[:3].tolist(), len(data)
    ([[0], [1], [3]], [0, 1, 0], 30)
    """
    table = as_votes(votes, model.space)
    belief = model.posterior(table)
    keep = np.flatnonzero(table.observed.any(axis=1) & (belief.confidence >= min_confidence))
    if X is not None:
        if n_rows(X) != len(table):
            raise InvalidVotesError(
                f"X has {n_rows(X)} rows for {len(table)} items. Give one row per item, in the same order."
            )
        X = take_rows(X, keep)
    if soft and belief.probabilities is None:
        raise UnsupportedError(
            f"{type(model.space).__name__} has no list of labels, so labels have no probabilities. Leave soft=True out."
        )
    y = belief.probabilities if soft and belief.probabilities is not None else belief.labels
    return TrainingSet(X, y[keep], belief.confidence[keep], table.items[keep])


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

    `rankings` are positions, or lists of names, best first; or a fitted model of `Rankings` or `Preferences` with its
    `votes`. Ties and items that a ranking does not see make no pair. `candidates` are what is ranked, for each item in
    the order of its positions (by default the names of the label type, or numbers from 0); `items` are ids of the rows.
    `pairs` are "all", the "adjacent" ones, or the "best" against each of the others.

    Pairs of a margin below `min_margin` are left out. With a model the margin is the probability that the chosen one
    is better, minus that of the opposite, between -1 and 1; else how many places lie between them.

    Examples
    --------
    >>> preference_pairs([["tea", "milk", "juice"]], pairs="adjacent").to_pylist()[0]
    {'item': 0, 'chosen': 'tea', 'rejected': 'milk', 'margin': 1.0}
    """
    if pairs not in PAIRS:
        raise UnsupportedError(f"pairs={pairs!r} is unknown. Use one of {', '.join(map(repr, PAIRS))}.")
    records = []
    for ranked in ordered_rows(rankings, votes, candidates, items):
        for better, worse in _chosen_pairs(ranked.positions, pairs):
            margin = float(ranked.positions[worse] - ranked.positions[better])
            if ranked.before is not None:
                margin = 2.0 * float(ranked.before[better, worse]) - 1.0
            if margin >= min_margin:
                records.append((ranked.item, ranked.names[better], ranked.names[worse], margin))
    items_of, chosen, rejected, margins = ([record[place] for record in records] for place in range(4))
    columns = {"item": pa.array(items_of), "chosen": pa.array(chosen), "rejected": pa.array(rejected)}
    return pa.table({**columns, "margin": pa.array(margins, pa.float64())})


def _chosen_pairs(positions: IntArray, pairs: str) -> list[tuple[int, int]]:
    seen = [int(place) for place in np.argsort(positions, kind="stable") if positions[place] >= 0]
    every = [(one, two) for at, one in enumerate(seen) for two in seen[at + 1 :] if positions[one] < positions[two]]
    if pairs == "adjacent":
        after = dict(pairwise(sorted({int(positions[place]) for place in seen})))
        return [(one, two) for one, two in every if after[int(positions[one])] == positions[two]]
    return [(one, two) for one, two in every if pairs == "all" or positions[one] == positions[seen[0]]]


def ranking_groups(rankings: Any, votes: Any = None, *, levels: int = LEVELS) -> RankingGroups:
    """Return relevance and group sizes from rankings, for learning to rank.

    `rankings` are what `preference_pairs` takes. Documents that nobody saw, and items without a ranking, are left out;
    `rows` says which are kept. Relevance runs from 0 to ``levels - 1`` at most; in longer rankings all behind are 0.

    Examples
    --------
    >>> groups = ranking_groups([[0, 2, 1], [1, 0, -1]])
    >>> groups.relevance.tolist(), groups.sizes.tolist(), groups.rows.tolist()
    ([2, 0, 1, 0, 1], [3, 2], [0, 1, 2, 3, 4])
    """
    if levels < 2:
        raise UnsupportedError(f"levels={levels} does not leave an order. Use 2 or more.")
    relevance: list[int] = []
    rows: list[int] = []
    sizes: list[int] = []
    items: list[Any] = []
    start = 0
    for ranked in ordered_rows(rankings, votes, None, None):
        seen = np.flatnonzero(ranked.positions >= 0)
        if len(seen):
            places = ranked.positions[seen]
            relevance += np.maximum(min(int(places.max()), levels - 1) - places, 0).tolist()
            rows += (start + seen).tolist()
            sizes.append(len(seen))
            items.append(ranked.item)
        start += len(ranked.positions)
    relevances, counts, kept = (np.array(numbers, dtype=np.int64) for numbers in (relevance, sizes, rows))
    return RankingGroups(relevances, counts, kept, np.array(items))


class Ranked(NamedTuple):
    """The ranking of one item."""

    item: Any
    #: The names of the ranked candidates.
    names: Sequence[Any]
    #: One per name, -1 if the ranking does not see it; empty without a ranking.
    positions: IntArray
    #: The probability that one is better than the other, for each two names; None if unknown.
    before: FloatArray | None = None


def ordered_rows(
    rankings: Any, votes: Any, candidates: Sequence[Sequence[Any]] | None, items: Sequence[Any] | None
) -> list[Ranked]:
    """Return the rankings that a model predicts, or those given, row by row."""
    pairs: Any = None
    if isinstance(rankings, LabelModel):
        space = rankings.space
        if not isinstance(space, (Preferences, Rankings)):
            raise UnsupportedError(f"The model labels with {type(space).__name__}, not with rankings.")
        if votes is None:
            raise UnsupportedError("A model needs the votes to rank. Pass them as the second argument.")
        table = as_votes(votes, space)
        belief = rankings.posterior(table)
        labels, ids, pairs = belief.labels, table.items.tolist(), belief.details["pair_probability"]
        if isinstance(space, Preferences):
            found = []
            for row in np.flatnonzero(table.observed.any(axis=1)).tolist():
                names = belief.details["candidates"][row]
                found.append(Ranked(ids[row], names, np.array(places_of(labels[row], names)), pairs[row]))
            return found
    else:
        labels = rankings if isinstance(rankings, np.ndarray) else as_object_array(rankings)
        space = Rankings(list(dict.fromkeys(name for order in labels for name in names_of(order))) or None)
        ids = list(range(len(labels)) if items is None else items)
    if len(ids) != len(labels):
        raise InvalidLabelError(f"There are {len(labels)} rankings and {len(ids)} item ids. Give one per ranking.")
    if candidates is None and space.names is not None:
        candidates = [space.names] * len(labels)
    if candidates is not None and len(candidates) != len(labels):
        raise InvalidLabelError(f"There are {len(labels)} rankings and {len(candidates)} lists of candidates.")
    found = []
    for row, label in enumerate(labels):
        positions = _positions(label, space)
        names = getattr(label, "names", None)
        if names is None:
            names = range(len(positions)) if candidates is None else candidates[row]
        if len(names) < len(positions):
            raise InvalidLabelError(
                f"Row {row} ranks {len(positions)} items, but candidates names {len(names)}. Name all of them."
            )
        before = None if pairs is None or not len(positions) else pair_matrix(pairs[row])
        found.append(Ranked(ids[row], names, positions, before))
    return found


def pair_matrix(pairs: FloatArray) -> FloatArray:
    """Return P(i before j) for all pairs as a matrix; they may come for (0, 1), (0, 2), ... only."""
    if pairs.ndim == 2:
        return pairs
    size = int((1 + np.sqrt(1 + 8 * len(pairs))) / 2)
    before = np.full((size, size), 0.5)
    upper = np.triu_indices(size, 1)
    before[upper] = pairs
    before.T[upper] = 1.0 - pairs
    return before


def places_of(order: Sequence[Any], names: Sequence[Any]) -> list[int]:
    """Return where in an order each name stands, -1 where it does not; tied names stand in the same place."""
    place = {name: position for position, entry in enumerate(order) for name in as_group(entry)}
    return [place.get(name, -1) for name in names]


def _positions(label: Any, space: Rankings) -> IntArray:
    if is_null(label):
        return np.zeros(0, dtype=np.int64)
    if isinstance(label, np.ndarray) and label.dtype.kind in "iu" and (label < 0).all():
        return label.astype(np.int64)
    row = space.as_batch(as_object_array([label]))[0].astype(np.int64)
    return np.asarray(row[row > -2])
