"""Votes: who said what about which item. The first object of the straight line (paper, section 2).

An abstention lives in the `observed` mask, never inside a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.exceptions import InvalidVotesError
from consilience.label_types.base import LabelSpace
from consilience.tables.cells import differs_from, read_cells, same_labels, spelled_out, stack_ids, stack_labels
from consilience.tables.display import votes_fragment
from consilience.tables.frames import is_frame
from consilience.tables.names import (
    as_mask,
    as_names,
    check_alignable,
    check_known,
    check_names,
    check_shapes,
    default_names,
    item_positions,
)
from consilience.tables.vote_tables import LabelTable, item_ids, long_arrow, read_long, read_wide

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

__all__ = ["Votes", "as_votes"]

_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False, repr=False)
class Votes:
    """The votes of several sources on several items.

    Usually made by `from_matrix`, `from_array`, `from_long` or `from_frame`.

    Parameters
    ----------
    labels
        Shape ``(n_items, n_sources, *label_shape)``, or ``(n_items, n_sources)`` objects.
        What stands in a cell that is not observed has no meaning.
    observed
        Shape ``(n_items, n_sources)``: False where a source abstains.
    sources
        One name per source.
    items
        One id per row, shape ``(n_items,)``. Rows of one id are about the same item: they stay together in samples,
        and standard errors do not take them for independent.
    abstain
        The value that stood for an abstention where the votes came from, if the caller named one.
    names_given
        False if the source names were made up.
    spelling
        Type of the labels before they were stored as codes of a label space; predictions come back in it.
    repeated_pairs
        Pairs of sources that are runs of one source, see `from_long`; ``LabelModel(dependencies=)`` takes them.

    Examples
    --------
    >>> votes = Votes.from_matrix([[0, 1, -1], [1, 1, 1]], sources=["ann", "bob", "cleo"])
    >>> votes
    Votes(2 items, 3 sources, 83% observed)
    >>> votes.select(["cleo"]).coverage()
    array([0.5])
    """

    labels: Batch
    observed: BoolArray
    sources: tuple[str, ...]
    items: npt.NDArray[Any]
    abstain: Any = None
    names_given: bool = True
    spelling: np.dtype[Any] | None = None
    repeated_pairs: tuple[tuple[str, str], ...] = ()

    # One item is not a vote but a row of them: neither NumPy nor a for loop should guess.
    __iter__: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(self.sources))
        check_shapes(self.labels, self.observed, self.items)
        check_names(self.sources, *self.observed.shape)

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        abstain: Any = -1,
        sources: Sequence[str] | None = None,
        items: Any = None,
    ) -> Self:
        """Make votes from a table of scalars in which one value stands for "abstains".

        Parameters
        ----------
        matrix
            Shape ``(n_items, n_sources)``: numbers or text; array, nested lists or frame.
            NaN and None are abstentions, too. An array of numbers or text is not copied.
        abstain
            The value that stands for an abstention; None if there is no such value.
        sources, items
            Names of the columns and ids of the rows; numbered if not given. The columns of a
            frame have names already: there `sources` picks some of them.

        Examples
        --------
        >>> Votes.from_matrix([["spam", "ham"], ["?", "ham"]], abstain="?").observed
        array([[ True,  True],
               [False,  True]])
        """
        if is_frame(matrix):
            votes = cls.from_frame(matrix, sources)
            seen = votes.observed & differs_from(votes.labels, abstain)
            ids = item_ids(items, len(votes))
            return replace(votes, observed=seen, abstain=abstain, items=ids)
        labels, observed = read_cells(matrix, sources)
        if labels.ndim > 2:
            raise InvalidVotesError(
                f"The votes have shape {labels.shape}, but a matrix has one number or text per "
                f"item and source. For labels that are arrays use Votes.from_array."
            )
        observed &= differs_from(labels, abstain)
        return cls._numbered(labels, observed, sources, items, abstain)

    @classmethod
    def from_array(
        cls,
        array: Any,
        observed: Any = None,
        sources: Sequence[str] | None = None,
        items: Any = None,
    ) -> Self:
        """Make votes from an array of labels of any type.

        Parameters
        ----------
        array
            Shape ``(n_items, n_sources, *label_shape)``, or ``(n_items, n_sources)`` objects for
            ragged labels, or nested lists. A cell that is None, or all NaN, is an abstention.
        observed
            Shape ``(n_items, n_sources)``: what counts as a vote, whatever the cell holds.
        sources, items
            Names of the columns and ids of the rows; numbered if not given.

        Examples
        --------
        >>> Votes.from_array([[[0, 1, 2], None], [[2, 1, 0], [0, 2, 1]]]).labels.shape
        (2, 2, 3)
        >>> Votes.from_array([[[2, 0], None], [[2, 0, 2], [0, 1, 2]]]).labels.shape
        (2, 2)
        """
        if observed is None:
            labels, seen = read_cells(array, sources)
            return cls._numbered(labels, seen, sources, items)
        labels, _ = read_cells(array, sources, allow_partial=True)
        return cls._numbered(labels, as_mask(observed, labels), sources, items)

    @classmethod
    def from_long(
        cls, frame: Any, item: str = "item", source: str = "source", label: str = "label", *, repeats: str = "refuse"
    ) -> Self:
        """Make votes from a table with one row per vote.

        Parameters
        ----------
        frame
            Any dataframe, a dict of columns, a list of dicts, or a list of (item, source, label).
            A null label is an abstention; items and sources come in order of first appearance.
        item, source, label
            Names of the columns.
        repeats
            What to do if a source votes on an item more than once: "refuse"; "average" takes the mean of numbers;
            "separate" makes the k-th vote of "judge" one of "judge #k" and lists the `repeated_pairs`.

        Examples
        --------
        >>> records = [("x1", "ann", "cat"), ("x1", "bob", "dog"), ("x2", "bob", None)]
        >>> Votes.from_long(records).labels
        array([['cat', 'dog'],
               [None, None]], dtype=object)
        >>> runs = Votes.from_long([("x1", "ann", 3), ("x1", "ann", 5), ("x1", "bob", 4)], repeats="separate")
        >>> runs.sources, runs.repeated_pairs
        (('ann #1', 'ann #2', 'bob'), (('ann #1', 'ann #2'),))
        """
        table, pairs = read_long(frame, item, source, label, repeats)
        return cls(*table, repeated_pairs=pairs)

    @classmethod
    def from_frame(cls, frame: Any, sources: Iterable[str] | None = None, item: str | None = None) -> Self:
        """Make votes from a table with one column per source; null means abstains.

        Parameters
        ----------
        frame
            Any dataframe, or a dict of columns. NaN is null; the text ``"NA"`` is a label.
        sources
            The columns that hold votes; all but `item` if not given.
        item
            The column that holds the item ids; rows are counted if not given.

        Examples
        --------
        >>> table = {"id": ["x1", "x2"], "ann": [1, None], "bob": [0, 1]}
        >>> Votes.from_frame(table, item="id").labels
        array([[1, 0],
               [0, 1]])
        """
        table = read_wide(frame, sources, item)
        # pandas numbers the columns of a bare array: no names that anybody chose.
        counted = tuple(map(str, range(len(table.sources))))
        return cls(*table, names_given=sources is not None or table.sources != counted)

    @classmethod
    def concatenate(cls, parts: Iterable[Votes]) -> Self:
        """Return the items of several votes below each other, sources matched by name.

        A source that a part does not have abstains there. Counted item ids (0, 1, ...) are
        counted on; any others must differ between the parts.

        Examples
        --------
        >>> first = Votes.from_matrix([[0, 1]], sources=["ann", "bob"])
        >>> second = Votes.from_matrix([[1, 1]], sources=["bob", "cleo"])
        >>> Votes.concatenate([first, second]).observed
        array([[ True,  True, False],
               [False,  True,  True]])
        """
        votes = list(parts)
        named = check_alignable([(part.names_given, part.n_sources) for part in votes])
        names = tuple(dict.fromkeys(name for part in votes for name in part.sources))
        place = {name: column for column, name in enumerate(names)}
        columns = [np.array([place[name] for name in part.sources]) for part in votes]
        labels, observed = stack_labels(
            [(part.labels, part.observed, at) for part, at in zip(votes, columns, strict=True)],
            len(names),
        )
        sentinels = {repr(part.abstain) for part in votes}
        return cls(
            labels,
            observed,
            names,
            stack_ids([part.items for part in votes]),
            abstain=votes[0].abstain if len(sentinels) == 1 else None,
            names_given=named,
            spelling=votes[0].spelling if len({part.spelling for part in votes}) == 1 else None,
            repeated_pairs=tuple(dict.fromkeys(pair for part in votes for pair in part.repeated_pairs)),
        )

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.observed.shape[0])

    @property
    def n_sources(self) -> int:
        """Number of sources."""
        return int(self.observed.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of items and number of sources."""
        return self.n_items, self.n_sources

    def __len__(self) -> int:
        return self.n_items

    def __getitem__(self, key: Any) -> Self:
        """Return some of the items: a slice, positions, a boolean mask, or one position."""
        key = item_positions(key, self.n_items)
        return replace(self, labels=self.labels[key], observed=self.observed[key], items=self.items[key])

    def select(self, sources: str | Iterable[str]) -> Self:
        """Return the votes of the named sources, in the order asked for."""
        names = as_names(sources)
        place = {name: column for column, name in enumerate(self.sources)}
        check_known(names, place)
        columns = [place[name] for name in names]
        return replace(
            self,
            labels=self.labels[:, columns],
            observed=self.observed[:, columns],
            sources=names,
            names_given=True,
            repeated_pairs=tuple(pair for pair in self.repeated_pairs if set(pair) <= set(names)),
        )

    def coverage(self) -> FloatArray:
        """Return the fraction of items each source votes on, shape (n_sources,)."""
        coverage: FloatArray = self.observed.sum(axis=0) / max(1, self.n_items)
        return coverage

    def overlap(self) -> FloatArray:
        """Return how often each two sources vote on the same item.

        Returns
        -------
        array of shape (n_sources, n_sources)
            Fraction of items, between 0 and 1; the diagonal is the coverage.

        Examples
        --------
        >>> Votes.from_matrix([[0, 1], [-1, 1]]).overlap()
        array([[0.5, 0.5],
               [0.5, 1. ]])
        """
        together = np.zeros((self.n_sources, self.n_sources))
        # In blocks, as the mask is eight times larger as floats; counts of a block are exact.
        for start in range(0, self.n_items, _ROWS_AT_ONCE):
            seen = self.observed[start : start + _ROWS_AT_ONCE].astype(np.float32)
            together += seen.T @ seen
        return together / max(1, self.n_items)

    def to_long(self, space: LabelSpace | None = None) -> pa.Table:
        """Return an Arrow table with one row (item, source, label) per vote.

        An item nobody votes on and a source that never votes keep one row, with a null label. `space` is needed
        where labels are names but stored as codes, as `consilience.apply` does if it is told the space.
        """
        labels = spelled_out(self.labels, self.observed, space, self.spelling)
        return long_arrow(LabelTable(labels, self.observed, self.sources, self.items))

    def equals(self, other: Votes) -> bool:
        """Return whether both hold the same votes of the same sources on the same items."""
        return (
            self.sources == other.sources
            and self.labels.shape == other.labels.shape
            and np.array_equal(self.observed, other.observed)
            and self.items.tolist() == other.items.tolist()
            and same_labels(self.labels[self.observed], other.labels[other.observed])
        )

    def __repr__(self) -> str:
        items = f"{self.n_items} item{'s' * (self.n_items != 1)}"
        sources = f"{self.n_sources} source{'s' * (self.n_sources != 1)}"
        return f"Votes({items}, {sources}, {self._share_observed()} observed)"

    def _repr_html_(self) -> str:
        corner = LabelTable(self.labels[:5, :8], self.observed[:5, :8], self.sources[:8], self.items[:5])
        return f"<p><code>{self!r}</code></p>{votes_fragment(*corner, more=self.n_sources > 8)}"

    def _share_observed(self) -> str:
        votes = int(np.count_nonzero(self.observed))
        shown = f"{votes / max(1, self.observed.size):.0%}"
        # Rounding must not hide a few abstentions, nor a few votes.
        if shown == "100%" and votes < self.observed.size:
            return "over 99%"
        return "under 1%" if shown == "0%" and votes else shown

    @classmethod
    def _numbered(
        cls,
        labels: Batch,
        observed: BoolArray,
        sources: Sequence[str] | None,
        items: Any,
        abstain: Any = None,
    ) -> Self:
        """Return votes, with source names and item ids counted where the caller gave none."""
        names = default_names(labels.shape[1]) if sources is None else as_names(sources)
        ids = item_ids(items, len(labels))
        return cls(labels, observed, names, ids, abstain, names_given=sources is not None)


def as_votes(data: Any, sources: Sequence[str] | None = None, *, minus_one_abstains: bool = True) -> Votes:
    """Return votes from whatever `fit` and `predict` accept.

    Votes stay as they are. A frame has one column per source and nulls for abstentions.
    In a table of integers -1 abstains; in any other array, or nested lists, NaN and None do.

    Parameters
    ----------
    data
        Votes, a frame (pandas, polars, Arrow, a dict of columns), an array or nested lists.
    sources
        Names for the columns of an array; the columns to take from a frame.
    minus_one_abstains
        Whether -1 abstains in a table of integers; not where it is a label.

    Examples
    --------
    >>> as_votes(np.array([[0, -1], [1, 1]])).observed
    array([[ True, False],
           [ True,  True]])
    """
    if isinstance(data, Votes):
        return data
    if isinstance(data, dict) or is_frame(data):
        return Votes.from_frame(data, sources)
    votes = Votes.from_array(data, sources=sources)
    if minus_one_abstains and votes.labels.ndim == 2 and votes.labels.dtype.kind in "iu":
        observed = votes.observed & differs_from(votes.labels, -1)
        return replace(votes, observed=observed, abstain=-1)
    return votes
