"""Rankings: a label is a position per item; the distance counts the pairs of items in opposite order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError
from consilience.label_types.base import LabelSpace, Unit
from consilience.label_types.codes import ABSENT
from consilience.label_types.rankings import builders
from consilience.label_types.rankings.kemeny import add_up, among_seen, minimize_disagreement
from consilience.label_types.rankings.labels import (
    UNSEEN,
    ItemCodes,
    names_of,
    of_width,
    order_of,
    pair_order,
    rank_items,
    read_orders,
    read_rankings,
    with_names_of_rows,
)
from consilience.label_types.rankings.law import USUAL_ITEMS, RankingLaw, sample_mallows
from consilience.lazy import pyarrow as pa

#: Numbers of items of random rankings if no number is declared.
FEWEST, MOST = 3, 7


@dataclass(frozen=True, repr=False)
class Rankings(LabelSpace):
    """Rankings of items: full, partial, tied, top-k.

    A label is a position per item: 0 = first, equal positions = tied, -1 = not seen by this source. An item that a
    source ranked below the others (a top-k list) is tied last, not unseen; the difference matters. Positions after a
    tie may follow at once (0, 1, 1, 2) or skip a place (0, 1, 1, 3).

    If the items have names, a label may also be a list of names, best first, with ties as tuples, or a dict
    ``{name: position}``; items that it leaves out are not seen. Predictions are lists of names, or positions if the
    votes are numbers.

    If each row has its own items (the documents of a query), ``Rankings(None)`` also takes orders of names and returns
    them: the names of a row are those that some source lists there. As positions, labels are lists or arrays of
    different lengths. All sources must rank the same items of a row in the same sequence, with -1 for those they did
    not see; -2 pads the rows of a rectangular array.

    Parameters
    ----------
    items
        The number of items, their names, or None if the number differs from row to row.
    allow_ties
        Whether a vote may have ties.
    ragged
        Whether rows differ in their number of items, with `items` as the largest; always if that is None.
    signed
        Whether a source may be worse than random.
    exact
        Predictions of up to 15 items, and longer ones without large cycles of majorities, are always optimal. The
        others come from a local search with a lower bound ("dp") or from integer programming ("milp").
    time_limit
        Seconds for all integer programs of a call together.

    Examples
    --------
    >>> space = Rankings(["milk", "juice", "tea"])
    >>> space.as_batch([["tea", "milk"], {"milk": 0, "juice": 1, "tea": 1}, [2, 0, 1]])
    array([[ 1, -1,  0],
           [ 0,  1,  1],
           [ 2,  0,  1]], dtype=int16)
    >>> Rankings(3).distance(np.array([[0, 1, 2]]), np.array([[2, 0, 1]]))
    array([2.])
    """

    items: int | Sequence[str] | None
    allow_ties: bool = field(default=True, kw_only=True)
    ragged: bool = field(default=False, kw_only=True)
    signed: bool = field(default=False, kw_only=True)
    exact: Literal["dp", "milp"] = field(default="dp", kw_only=True)
    time_limit: float | None = field(default=None, kw_only=True)

    positions_from_orders = staticmethod(builders.positions_from_orders)
    positions_from_scores = staticmethod(builders.positions_from_scores)
    positions_from_top_k = staticmethod(builders.positions_from_top_k)
    positions_from_pairs = staticmethod(builders.positions_from_pairs)
    read_preflib = staticmethod(builders.read_preflib)

    def __post_init__(self) -> None:
        codes = ItemCodes.of(self.items)
        if codes.names is not None and self.ragged:
            raise InvalidLabelError(
                "Named items are the same in every row, so ragged=True contradicts them. Leave it out; items that a "
                "source did not see are left out of its ranking."
            )
        if self.exact not in ("dp", "milp"):
            raise InvalidLabelError(f"exact={self.exact!r} is unknown. Use 'dp' or 'milp'.")
        object.__setattr__(self, "items", codes.number if codes.names is None else codes.names)
        object.__setattr__(self, "ragged", bool(self.ragged or codes.number is None))

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the items, if they have names."""
        return None if self.items is None or isinstance(self.items, int) else tuple(self.items)

    @property
    def n_items(self) -> int | None:
        """Number of items, or the largest number; None if none is declared."""
        return self.items if self.items is None or isinstance(self.items, int) else len(self.items)

    @property
    def law(self) -> RankingLaw:
        typical = USUAL_ITEMS if self.n_items is None else self.n_items
        return RankingLaw(self.n_items, self.signed, self.ragged, self.exact, self.time_limit, typical)

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        """Return the number of pairs in opposite order, among those that both order."""
        return np.asarray((_agreed(left, right) < 0).sum(axis=1), dtype=np.float64)

    def embed(self, batch: Batch) -> FloatArray:
        """Return one sign per pair of items i < j: 1 if i is ranked above j, -1 if below, 0 if neither."""
        earlier, later = np.triu_indices(batch.shape[1], 1)
        return pair_order(batch)[:, np.lexsort((earlier, later))].astype(np.float64)  # more items add coordinates

    def kendall_error(self, predicted: Any, gold: Any) -> float:
        """Return the mean fraction of wrong pairs, among those that the gold rankings order.

        A pair that the prediction leaves open (a tie, an unseen item) is half wrong. Rows without a prediction, or
        without an ordered pair in gold, are left out.

        Parameters
        ----------
        predicted, gold
            n labels each; None, or -1 throughout, means no label.

        Examples
        --------
        >>> Rankings(3).kendall_error([[0, 1, 2], [0, 1, 2]], [[0, 1, 2], [1, 0, 2]])
        0.16666666666666666
        """
        columns = [
            labels if isinstance(labels, np.ndarray) else as_object_array(labels) for labels in (predicted, gold)
        ]
        if len(columns[0]) != len(columns[1]):
            raise InvalidLabelError(f"{len(columns[0])} predictions for {len(columns[1])} gold labels. Give as many.")
        both = _present(columns[0]) & _present(columns[1])
        if not both.any():
            return float("nan")
        found, told = (column[both] for column in columns)
        if told.ndim == 1:  # perhaps the names of each row
            found = self.in_words_of(found, told[:, None], np.ones((len(told), 1), dtype=bool))
        guess, truth = self.as_batch(found), self.as_batch(told)
        agreed, ordered = _agreed(guess, truth).sum(axis=1, dtype=int), (pair_order(truth) != 0).sum(axis=1)
        counted = ordered > 0
        return float(((ordered - agreed)[counted] / (2.0 * ordered[counted])).mean()) if counted.any() else float("nan")

    def unit(self, parameters: Any) -> Unit:
        pairs = np.maximum(parameters.pairs.sum(axis=1), 1e-12)
        return Unit("pairs_wrong", "the share of pairs that a vote puts in the wrong order", lambda cost: cost / pairs)

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        """Return `n` random rankings without ties.

        If no number of items is declared, they have 3 to 7 items, and row t of every call has the same number.
        """
        width = MOST if self.n_items is None else self.n_items
        sizes = np.full(n, width) if self.n_items is not None else FEWEST + np.arange(n) % (MOST - FEWEST + 1)
        exists = np.arange(width) < sizes[:, None]
        return rank_items(rng.random((n, width)), exists, ABSENT)

    def read_text(self, cells: Batch) -> Batch:
        return read_orders(cells)

    def as_batch(self, labels: Any) -> Batch:
        return read_rankings(labels, ItemCodes.of(self.items), ragged=self.ragged, allow_ties=self.allow_ties)

    def in_rows(self, labels: Batch, observed: BoolArray) -> Batch:
        names = self._row_names(labels, observed)
        if names is None:
            return labels
        return np.stack([with_names_of_rows(column, names) for column in labels.T], axis=1)

    def in_words_of(self, labels: Batch, votes: Batch, observed: BoolArray) -> Batch:
        names = self._row_names(votes, observed)
        return labels if names is None else with_names_of_rows(labels, names)

    def _row_names(self, votes: Batch, observed: BoolArray) -> list[tuple[str, ...]] | None:
        """Return the names in each row of votes; None if votes are positions or all rows share names."""
        if self.items is not None or votes.dtype != object or votes.ndim != 2:
            return None
        names = [
            tuple(sorted({name for cell in row[seen] for name in names_of(cell)}))
            for row, seen in zip(votes, observed, strict=True)
        ]
        return names if any(names) else None

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        if self.ragged:
            sizes = (batch != ABSENT).sum(axis=1)
            rows = batch.astype(np.int64)
            return as_object_array(row[:size] for row, size in zip(rows, sizes, strict=True))
        if self.n_items is not None and batch.shape[1] != self.n_items:  # nobody ranks anything
            batch = np.full((len(batch), self.n_items), UNSEEN, dtype=np.int16)
        if self.names is None or (like is not None and np.dtype(like).kind in "iuf"):
            return batch.astype(np.int64)
        return as_object_array(order_of(row, self.names) for row in batch.tolist())

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the weighted Kemeny ranking, which has the least weighted distance to the votes and no ties.

        An item that no source sees is unseen in it.
        """
        margins, sizes, seen = add_up(votes, weights)
        positions = among_seen(minimize_disagreement(margins, votes.shape[2], sizes).positions, seen)
        if self.ragged:
            positions[np.arange(votes.shape[2]) >= sizes[:, None]] = ABSENT
        return positions.astype(np.int16)

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        """Return one draw per center from the Mallows law, without ties and with the same unseen items.

        Ties of a center are broken at random first.
        """
        seen = centers >= 0
        strict = centers
        if np.any(centers.max(axis=1, initial=-1) + 1 != seen.sum(axis=1)):
            strict = rank_items(centers + rng.random(centers.shape), seen, UNSEEN)
        votes = sample_mallows(strict, seen, float(weight), rng.random(centers.shape))
        return np.where(seen, votes, centers).astype(np.int16)

    def to_arrow(self, batch: Batch) -> pa.Array:
        """Return positions as list<int16>, with nulls for missing rankings. Names become positions."""
        column = batch if isinstance(batch, np.ndarray) else as_object_array(batch)
        present = _present(column)
        table = self.as_batch(column[present]) if present.any() else np.zeros((0, 0), dtype=np.int16)
        sizes = np.zeros(len(column), dtype=np.int64)
        sizes[present] = (table != ABSENT).sum(axis=1)
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
        values = pa.array(table[table != ABSENT], type=pa.int16())
        return pa.ListArray.from_arrays(offsets, values, mask=pa.array(~present))

    def from_arrow(self, column: pa.Array) -> Batch:
        """Return positions ``(n, r)``, with -1 throughout for missing rankings; or objects if ragged."""
        rows = column.to_pylist()
        if self.ragged or any(row is not None and len(row) != self.n_items for row in rows):
            return as_object_array(None if row is None else np.array(row, dtype=np.int64) for row in rows)
        missing = [UNSEEN] * (self.n_items or 0)
        return np.array([missing if row is None else row for row in rows], dtype=np.int64).reshape(len(rows), -1)


def _agreed(left: Batch, right: Batch) -> npt.NDArray[np.int8]:
    """Return 1 for each pair of items that both rankings of a row order alike, -1 if differently, 0 otherwise."""
    width = max(left.shape[1], right.shape[1])
    return pair_order(of_width(left, width)) * pair_order(of_width(right, width))


def _present(column: Batch) -> BoolArray:
    """Return which labels are present: not None, and not -1 throughout."""
    if column.ndim == 2 and column.dtype.kind in "iu":
        return np.asarray((column >= 0).any(axis=1))

    def is_unseen(label: Any) -> bool:
        return isinstance(label, (np.ndarray, list)) and len(label) > 0 and all(one == UNSEEN for one in label)

    return np.array([not is_null(label) and not is_unseen(label) for label in column], dtype=bool)
