"""Pairwise judgments: which of two items is better, by judges who differ in skill and position bias."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, FloatArray, as_object_array, is_null
from consilience.estimation.protocol import Law
from consilience.exceptions import InvalidLabelError
from consilience.label_types.base import LabelSpace, Unit
from consilience.label_types.codes import read_each
from consilience.label_types.preferences import comparisons
from consilience.label_types.preferences.comparisons import OUTCOMES, Comparisons, net_outcomes
from consilience.label_types.preferences.law import BradleyTerryLaw
from consilience.label_types.rankings.kemeny import minimize_disagreement
from consilience.label_types.rankings.labels import read_orders
from consilience.lazy import pyarrow as pa

__all__ = ["Preferences"]

#: Items of random rankings where none are declared.
RANDOM_ITEMS = ("a", "b", "c", "d")


@dataclass(frozen=True, repr=False)
class Preferences(LabelSpace):
    """Rankings of items from comparisons of two at a time.

    A vote has all comparisons of a judge in a row: a list of records with the item shown ``first``, the one shown
    ``second`` and the ``outcome`` ("first", "second", "tie", the name of the winner; None for an unreadable reply). A
    ranking, best first and ties as tuples, is also a vote. The label of a row is a ranking.
    `consilience.tables.read_preferences` makes such votes from a table with one row per comparison: one row of votes
    for all comparisons (an arena), or one per prompt.

    The distance is the share of pairs in opposite order, among those that both compare; a tie is half wrong.

    Parameters
    ----------
    items
        The names of the items, or None for all that occur in the votes.
    by
        The column of a table with one row per value, such as "prompt"; None for one ranking of all items.

    Examples
    --------
    >>> from consilience import LabelModel, Votes
    >>> said = [{"first": "tea", "second": "milk", "outcome": "first"}] * 3
    >>> also = [{"first": "milk", "second": "juice", "outcome": "milk"}]
    >>> votes = Votes.from_array([[said + also, also, said]], sources=["ann", "bob", "cleo"], items=["drinks"])
    >>> model = LabelModel(Preferences(), method="majority").fit(votes)
    >>> model.predict(votes)[0]
    ['tea', 'milk', 'juice']
    """

    votes_are_labels: ClassVar[bool] = False
    items: Sequence[Hashable] | None = None
    by: str | None = None

    from_rankings = staticmethod(comparisons.comparisons_from_rankings)
    from_scores = staticmethod(comparisons.comparisons_from_scores)

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", comparisons.as_item_names(self.items))
        if self.by is not None and not isinstance(self.by, str):
            raise InvalidLabelError(f"by={self.by!r} is not a column. Give its name, such as 'prompt', or None.")

    @cached_property
    def law(self) -> Law:
        return BradleyTerryLaw(None if self.items is None else tuple(self.items))

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        return np.array([_apart(one, two) for one, two in zip(left, right, strict=True)], dtype=np.float64)

    def unit(self, parameters: Any) -> Unit:
        return Unit("pairs_wrong", "how often a judge prefers the worse of two items")

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        names = RANDOM_ITEMS if self.items is None else tuple(self.items)
        orders = [rng.permutation(len(names)) for _ in range(n)]
        return as_object_array(Comparisons.of_ranking([(names[at],) for at in order]) for order in orders)

    def as_batch(self, labels: Any) -> Batch:
        cells = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
        known = None if self.items is None else tuple(self.items)
        return as_object_array(read_each(cells, lambda cell: comparisons.read_comparisons(cell, known)))

    def read_text(self, cells: Batch) -> Batch:
        return read_orders(cells)

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        return as_object_array(
            cell if cell.ranking is None else [group if len(group) > 1 else group[0] for group in cell.ranking]
            for cell in batch
        )

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the ranking that contradicts the least weight of the comparisons (Kemeny)."""
        rows = []
        for row, weight in zip(votes, weights, strict=True):
            there = [(said, float(own)) for said, own in zip(row, weight, strict=True) if own > 0]
            names = list(dict.fromkeys(item for said, _ in there for item in said.items))
            margins = np.zeros((len(names), len(names)))
            for said, own in there:
                net = net_outcomes(said)
                for (one, two), outcome in net.items():
                    margins[names.index(one), names.index(two)] += outcome * own / len(net)
            pairs = (margins - margins.T)[np.triu_indices(len(names), 1)]
            positions = minimize_disagreement(pairs[None], len(names)).positions[0]
            rows.append(Comparisons.of_ranking([(names[at],) for at in np.argsort(positions)]))
        return as_object_array(rows)

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        """Return the comparisons of all pairs, in random order, by one judge whose discrimination is the weight.

        Scores are normal and in the order of the ranking. They depend only on the center and its place, so that all
        judges see the same scores, and the same pairs are hard for all of them.
        """
        drawn = []
        for place, center in enumerate(centers):
            wins = dict.fromkeys(center.items, 0.0)
            for (better, worse), outcome in net_outcomes(center).items():
                wins[better] += outcome
                wins[worse] -= outcome
            order = center.items if center.ranking is not None else sorted(wins, key=lambda item: -wins[item])
            own = np.random.default_rng([place, crc32(repr(tuple(order)).encode())])
            score = -np.sort(-own.normal(size=len(order)))
            one, two = np.triu_indices(len(order), 1)
            swap = rng.random(len(one)) < 0.5
            one, two = np.where(swap, two, one), np.where(swap, one, two)
            won = rng.random(len(one)) < 1.0 / (1.0 + np.exp(-np.clip(weight * (score[one] - score[two]), -80, 80)))
            first, second = (tuple(order[at] for at in place) for place in (one, two))
            drawn.append(Comparisons(first, second, tuple(np.where(won, 1, -1).tolist())))
        return as_object_array(drawn)

    def to_arrow(self, batch: Batch) -> pa.Array:
        """Return rankings as lists of groups of tied items, best first; other comparisons as lists of records."""
        read = [None if is_null(label) else comparisons.read_comparisons(label) for label in batch]
        if all(cell is None or cell.ranking is not None for cell in read):
            return pa.array([None if cell is None else [list(group) for group in cell.ranking or ()] for cell in read])
        words = {code: word for word, code in OUTCOMES.items()}
        names = ("first", "second", "outcome", "question", "run")

        def records(cell: Comparisons) -> list[dict[str, Any]]:
            nothing = (None,) * len(cell)
            said = [words.get(outcome) for outcome in cell.outcome]
            columns = (cell.first, cell.second, said, cell.question or nothing, cell.run or nothing)
            return [dict(zip(names, entry, strict=True)) for entry in zip(*columns, strict=True)]

        return pa.array([None if cell is None else records(cell) for cell in read])

    def from_arrow(self, column: pa.Array) -> Batch:
        rows = []
        for row in column.to_pylist():
            is_ranking = row and isinstance(row[0], list)
            rows.append([group[0] if len(group) == 1 else tuple(group) for group in row] if is_ranking else row)
        return as_object_array(rows)


def _apart(left: Comparisons, right: Comparisons) -> float:
    one, two = net_outcomes(left), net_outcomes(right)
    two |= {(second, first): -outcome for (first, second), outcome in two.items()}
    gaps = [abs(outcome - two[pair]) / 2.0 for pair, outcome in one.items() if pair in two]
    return float(np.mean(gaps)) if gaps else 0.0
