"""Votes: who said what about which item. Abstentions are in the `observed` mask, never inside a label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.exceptions import InvalidVotesError
from consilience.label_types.base import LabelSpace
from consilience.lazy import pyarrow as pa
from consilience.tables.cells import (
    common_dtype,
    default_names,
    differs_from,
    read_cells,
    same_labels,
    spelled_out,
    stack_labels,
)
from consilience.tables.display import Cell, table_fragment
from consilience.tables.frames import is_frame
from consilience.tables.receipt import Receipt
from consilience.tables.vote_tables import (
    LabelTable,
    as_names,
    check_known,
    check_names,
    check_unique_ids,
    item_ids,
    long_arrow,
    read_long,
    read_wide,
)

_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False, repr=False)
class Votes:
    """The votes of several sources on several items.

    Usually made by `from_matrix`, `from_array`, `from_long` or `from_frame`.

    Parameters
    ----------
    labels
        Shape ``(n_items, n_sources, *label_shape)``, or ``(n_items, n_sources)`` objects. The values of cells that are
        not observed have no meaning.
    observed
        Shape ``(n_items, n_sources)``: False where a source abstains.
    sources
        One name per source.
    items
        One id per row. Rows with the same id are about the same item: they stay together in samples, and standard
        errors do not count them as independent.
    abstain
        The value that stood for an abstention in the input, if the caller named one.
    names_given
        False if the source names were generated.
    spelling
        Type of the labels before they were stored as codes of a label space. Predictions have this type.
    repeated_pairs
        Pairs of sources that are runs of one source, see `from_long`. Pass them to ``LabelModel(dependencies=)``.
    receipt
        How the cells of the table were read.

    Examples
    --------
    >>> votes = Votes.from_matrix([[0, 1, -1], [1, 1, 1]], sources=["ann", "bob", "cleo"])
    >>> votes, votes.select(["cleo"]).coverage()
    (Votes(2 items, 3 sources, 83% observed), array([0.5]))
    """

    labels: Batch
    observed: BoolArray = None  # type: ignore[assignment]  # refused, with a hint at the constructors
    sources: tuple[str, ...] = ()
    items: npt.NDArray[Any] = None  # type: ignore[assignment]
    abstain: Any = None
    names_given: bool = True
    spelling: np.dtype[Any] | None = None
    repeated_pairs: tuple[tuple[str, str], ...] = ()
    receipt: Receipt | None = None

    # An item is a row of votes, so NumPy and for loops must not iterate over single votes.
    __iter__: ClassVar[None] = None

    def __post_init__(self) -> None:
        if self.observed is None or self.items is None:
            raise InvalidVotesError(
                "Votes(...) needs arrays for labels, observed and items. To read a table, use Votes.from_matrix, "
                "from_array, from_frame or from_long."
            )
        object.__setattr__(self, "sources", tuple(self.sources))
        shape = self.observed.shape
        if len(shape) != 2 or self.observed.dtype != bool:
            raise InvalidVotesError(
                f"observed must be a boolean array of shape (items, sources), not {self.observed.dtype} "
                f"of shape {shape}. Pass for example labels != -1."
            )
        if self.labels.shape[:2] != shape:
            raise InvalidVotesError(
                f"labels have shape {self.labels.shape}, but observed has {shape}. "
                f"Their first two axes, items and sources, must be the same."
            )
        if self.items.shape != shape[:1]:
            raise InvalidVotesError(
                f"There are {shape[0]} items, but the item ids have shape {self.items.shape}. "
                "Pass one id per row of votes."
            )
        check_names(self.sources, *shape)

    @classmethod
    def from_matrix(
        cls, matrix: Any, abstain: Any = -1, sources: Sequence[str] | None = None, items: Any = None
    ) -> Self:
        """Make votes from a table of scalars in which one value stands for "abstains".

        Parameters
        ----------
        matrix
            Shape ``(n_items, n_sources)``: numbers or text; array, nested lists or frame.
            NaN and None are also abstentions. An array of numbers or text is not copied.
        abstain
            The value that stands for an abstention; None if there is no such value.
        sources, items
            Names of the columns and ids of the rows; numbered if not given. For a frame, `sources` picks columns.

        Examples
        --------
        >>> Votes.from_matrix([["spam", "ham"], ["?", "ham"]], abstain="?").observed
        array([[ True,  True],
               [False,  True]])
        """
        if is_frame(matrix):
            votes = cls.from_frame(matrix, sources)
            seen = votes.observed & differs_from(votes.labels, abstain)
            return replace(votes, observed=seen, abstain=abstain, items=item_ids(items, len(votes)))
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
        cls, array: Any, observed: Any = None, sources: Sequence[str] | None = None, items: Any = None
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
        """
        labels, seen = read_cells(array, sources, allow_partial=observed is not None)
        if observed is not None:
            mask = np.asarray(observed)
            if mask.shape != seen.shape or not np.isin(mask, (0, 1)).all():
                raise InvalidVotesError(
                    f"observed must be True or False for each item and source, shape {seen.shape}, "
                    f"but it is {mask.dtype} of shape {mask.shape}. "
                    f"Leave it out to take None and NaN as abstentions."
                )
            seen = mask.astype(bool)
        return cls._numbered(labels, seen, sources, items)

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
            What to do if a source votes on an item more than once: "refuse"; "identical" merges equal votes and refuses
            others; "first", "last" and "majority" choose; "average" takes the mean of numbers; "separate" makes the
            k-th vote of "judge" one of "judge #k" and lists the `repeated_pairs`.

        Examples
        --------
        >>> runs = Votes.from_long([("x1", "ann", 3), ("x1", "ann", 5), ("x1", "bob", 4)], repeats="separate")
        >>> runs.sources, runs.repeated_pairs
        (('ann #1', 'ann #2', 'bob'), (('ann #1', 'ann #2'),))
        """
        table, pairs, receipt = read_long(frame, item, source, label, repeats)
        return cls(*table, repeated_pairs=pairs, receipt=receipt)

    @classmethod
    def from_frame(
        cls, frame: Any, sources: Iterable[str] | None = None, item: str | None = None, *, repeats: str = "refuse"
    ) -> Self:
        """Make votes from a table with one column per source; null means abstains.

        Parameters
        ----------
        frame
            Any dataframe, or a dict of columns. NaN is null; the text ``"NA"`` is a label.
        sources, item
            The columns that hold votes, by default all but `item`; and the one that holds the item ids, if any.
        repeats
            What to do with several rows of one item; see `from_long`.

        Examples
        --------
        >>> table = {"id": ["x1", "x2"], "ann": [1, None], "bob": [0, 1]}
        >>> Votes.from_frame(table, item="id").labels
        array([[1, 0],
               [0, 1]])
        """
        table, pairs, receipt = read_wide(frame, sources, item, repeats)
        # pandas numbers the columns of an array without names. These numbers are not names.
        counted = tuple(map(str, range(len(table.sources))))
        return cls(
            *table, names_given=sources is not None or table.sources != counted, repeated_pairs=pairs, receipt=receipt
        )

    @classmethod
    def concatenate(cls, parts: Iterable[Votes]) -> Self:
        """Return the items of several votes, one below the other, with sources matched by name.

        A source that is missing in a part abstains there. Item ids 0, 1, ... are renumbered; other ids must differ
        between the parts.

        Examples
        --------
        >>> first = Votes.from_matrix([[0, 1]], sources=["ann", "bob"])
        >>> second = Votes.from_matrix([[1, 1]], sources=["bob", "cleo"])
        >>> Votes.concatenate([first, second]).observed
        array([[ True,  True, False],
               [False,  True,  True]])
        """
        votes = list(parts)
        if not votes:
            raise InvalidVotesError("There is nothing to concatenate. Pass at least one Votes.")
        if len({(part.names_given, part.n_sources) for part in votes}) > 1 and not all(p.names_given for p in votes):
            listed = ", ".join(f"{part.n_sources} {'named' if part.names_given else 'unnamed'}" for part in votes)
            raise InvalidVotesError(
                f"The parts have {listed} sources, so they cannot be matched. Name the sources with sources=."
            )
        names = tuple(dict.fromkeys(name for part in votes for name in part.sources))
        place = {name: column for column, name in enumerate(names)}
        tables = [(part.labels, part.observed, np.array([place[name] for name in part.sources])) for part in votes]
        labels, observed = stack_labels(tables, len(names))
        ids = [part.items for part in votes]
        if all(own.dtype.kind in "iu" and np.array_equal(own, np.arange(len(own))) for own in ids):
            items = np.arange(len(labels))
        else:
            items = np.concatenate(ids, dtype=common_dtype([own.dtype for own in ids]))
            check_unique_ids(items)
        return cls(
            labels,
            observed,
            names,
            items,
            abstain=votes[0].abstain if len({repr(part.abstain) for part in votes}) == 1 else None,
            names_given=votes[0].names_given,
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
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], (slice, EllipsisType)):
            key = key[0] if key[1] in (..., slice(None)) else key  # scikit-learn writes votes[rows, ...]
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            position = int(key) + self.n_items * int(key < 0)
            if not 0 <= position < self.n_items:
                raise IndexError(f"There is no item {key}; there are {self.n_items} items.")
            key = slice(position, position + 1)
        elif not isinstance(key, slice):
            positions = np.zeros(()) if isinstance(key, tuple) else np.asarray(key)
            if positions.shape != (0,) and (positions.ndim != 1 or positions.dtype.kind not in "biu"):
                raise InvalidVotesError(
                    f"Votes are indexed by item: a slice, positions or a mask, not {key!r}. "
                    f"Use votes.select(names) to choose sources."
                )
            key = positions if len(positions) else positions.astype(np.intp)  # an empty list would become floats
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
        return self.observed.sum(axis=0) / max(1, self.n_items)

    def overlap(self) -> FloatArray:
        """Return the fraction of items on which each two sources vote; the diagonal is the coverage.

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

        An item without votes and a source that never votes have one row with a null label. Pass `space` if names of
        labels are stored as codes, as they are by ``consilience.apply(functions, data, space)``.
        """
        labels = spelled_out(self.labels, self.observed, space, self.spelling)
        return long_arrow(LabelTable(labels, self.observed, self.sources, self.items))

    def to_matrix(self, abstain: Any = -1) -> Batch:
        """Return the labels ``(n_items, n_sources)`` with one value wherever a source abstains, as snorkel takes them.

        Labels that are stored as codes stay codes.

        Examples
        --------
        >>> Votes.from_matrix([[0, 1], [None, 1]]).to_matrix(abstain=-1)
        array([[ 0,  1],
               [-1,  1]])
        """
        if self.labels.ndim > 2:
            raise InvalidVotesError(
                f"Labels of shape {self.labels.shape[2:]} are not a matrix. Use votes.labels and votes.observed."
            )
        fits = self.labels.dtype.kind in "iuf" and isinstance(abstain, (int, float))
        dtype = np.result_type(self.labels.dtype, np.int64 if isinstance(abstain, int) else np.float64)
        matrix = self.labels.astype(dtype if fits else object)
        matrix[~self.observed] = abstain
        return matrix

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
        votes = int(np.count_nonzero(self.observed))
        share = f"{votes / max(1, self.observed.size):.0%}"
        # Rounding must not hide a few abstentions, nor a few votes.
        if share == "100%" and votes < self.observed.size:
            share = "over 99%"
        elif share == "0%" and votes:
            share = "under 1%"
        return f"Votes({items}, {sources}, {share} observed)"

    def _repr_html_(self) -> str:
        part = self[:5]
        columns = [("item", list(map(str, part.items.tolist())))]
        for source, labels, seen in zip(self.sources[:8], part.labels.swapaxes(0, 1), part.observed.T, strict=False):
            texts = (str(label.tolist() if hasattr(label, "tolist") else label) for label in labels)
            short = (text if len(text) <= 40 else text[:39] + "…" for text in texts)
            columns.append((source, [text if voted else "" for text, voted in zip(short, seen, strict=True)]))
        if self.n_sources > 8:
            columns.append(("…", ["…"] * len(part)))
        table = table_fragment((name, [Cell.text(text) for text in texts]) for name, texts in columns)
        return f"<p><code>{self!r}</code></p>{table}"

    @classmethod
    def _numbered(
        cls, labels: Batch, observed: BoolArray, sources: Sequence[str] | None, items: Any, abstain: Any = None
    ) -> Self:
        """Return votes, with numbered source names and item ids where the caller gave none."""
        names = default_names(labels.shape[1]) if sources is None else as_names(sources)
        return cls(labels, observed, names, item_ids(items, len(labels)), abstain, names_given=sources is not None)


def as_votes(data: Any, space: LabelSpace | None = None) -> Votes:
    """Return votes from whatever `fit` and `predict` accept.

    Votes stay as they are. A frame, or a dict of columns, has one column per source and nulls for abstentions. In a
    table of integers -1 abstains, unless it is a label of the space; in any other array, or nested lists, NaN and None
    do.

    Examples
    --------
    >>> as_votes(np.array([[0, -1], [1, 1]])).observed
    array([[ True, False],
           [ True,  True]])
    """
    if isinstance(data, Votes):
        return data
    if isinstance(data, dict) or is_frame(data):
        return Votes.from_frame(data)
    votes = Votes.from_array(data)
    integers = votes.labels.ndim == 2 and votes.labels.dtype.kind in "iu"
    if integers and not (space is not None and space.contains(-1)):
        return replace(votes, observed=votes.observed & (votes.labels != -1), abstain=-1)
    return votes
