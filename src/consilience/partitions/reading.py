"""From a piece of a wide table to a `Part`, the same on every engine; a cell that is no label is named or skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import numpy as np

from consilience.arrays import Batch, BoolArray, IntArray
from consilience.exceptions import InvalidLabelError, InvalidVotesError, UnknownColumnError, UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import Part
from consilience.tables.encoding import encode, read_gold
from consilience.tables.reading import Reading, as_the_space_reads
from consilience.tables.vote_tables import check_unique_ids
from consilience.votes import Votes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PartReader", "ReadOptions", "part_reader"]

T = TypeVar("T")

ON_ERROR = ("raise", "abstain")


class ReadOptions(TypedDict, total=False):
    """How a wide table is read, the same on every engine; see `ParquetPartitions`."""

    item: str | None
    sources: Iterable[str] | None
    drop: Iterable[str]
    gold: str | None
    abstain: Any
    on_error: str


@dataclass(frozen=True)
class PartReader:
    """How pieces of one table become parts; it travels to the workers, so it holds settings only.

    Parameters
    ----------
    sources
        The columns that hold votes.
    item, gold
        The columns of ids and of known labels, if there are any.
    abstain
        A value that stands for an abstention, beside null.
    on_error
        "raise" stops at a cell that is no label; "abstain" takes it for an abstention and counts it.
    """

    sources: tuple[str, ...]
    space: LabelSpace | None = None
    item: str | None = None
    gold: str | None = None
    abstain: Any = None
    on_error: str = "raise"

    @property
    def columns(self) -> list[str]:
        """The columns that have to be read."""
        extra = [name for name in (self.item, self.gold) if name is not None]
        return list(dict.fromkeys([*extra, *self.sources]))

    def part(self, table: Any, place: str, first_row: int = 0, first_id: int | None = None) -> Part:
        """Return the votes and known labels in a piece of a table.

        Parameters
        ----------
        place
            What an error calls the piece: a file and a row group, a partition.
        first_row
            Number of the piece's first row in that place, for errors.
        first_id
            Id of the first row where the table has no column of ids; others are counted on from it.
        """
        try:
            raw = self._codes(table)
            if raw is None:
                raw = Reading("wide", self.item, sources=self.sources, abstain=self.abstain).votes(table, place)
        except InvalidVotesError as error:  # such as an id that occurs twice
            start = f", counted from row {first_row}" if first_row else ""
            raise InvalidVotesError(f"{place}{start}: {error}") from None
        if self.item is None:
            raw = replace(raw, items=np.arange(len(raw)) + (0 if first_id is None else first_id))
        votes, skipped = self._read(raw, place, first_row)
        if self.gold is None:
            return Part(votes, skipped=skipped)
        known, wrong = self._known(table, raw, place, first_row)
        return Part(votes, known, skipped + wrong)

    def _codes(self, table: Any) -> Votes | None:
        """Return the votes of an Arrow table whose columns are all of one type of integers, None for others.

        The same as going through a frame, without a copy of every column on the way.
        """
        import pyarrow as pa

        if not isinstance(table, pa.Table) or self.abstain is not None or not len(table) or not self.sources:
            return None
        columns = [table.column(name) for name in self.sources]
        kind = columns[0].type
        wanted = [*columns, *([] if self.item is None else [table.column(self.item)])]
        if not pa.types.is_signed_integer(kind) or any(column.type != kind for column in columns):
            return None
        if any(column.num_chunks != 1 for column in wanted) or not pa.types.is_signed_integer(wanted[-1].type):
            return None
        if self.item is not None and wanted[-1].null_count:
            return None
        labels = np.empty((len(table), len(columns)), dtype=kind.to_pandas_dtype())
        observed = np.empty(labels.shape, dtype=bool)
        for place, column in enumerate(columns):
            labels[:, place] = _numbers(column.chunk(0))
            observed[:, place] = _is_there(column.chunk(0)) if column.null_count else True
        labels *= observed  # a null cell may hold anything
        items = np.arange(len(table)) if self.item is None else _numbers(wanted[-1].chunk(0)).copy()
        check_unique_ids(items)
        return Votes(labels, observed, self.sources, items)

    def _read(self, raw: Votes, place: str, first_row: int) -> tuple[Votes, int]:
        space = self.space
        if space is None:
            return raw, 0
        try:
            votes = as_the_space_reads(raw, space, place)
            if self.on_error == "abstain":
                encode(votes, space)  # only to see whether every cell is a label
            return votes, 0
        except (InvalidLabelError, InvalidVotesError, ValueError) as error:
            wrong = _wrong_cells(raw, space)
            if not len(wrong):
                raise
            if self.on_error == "raise":
                raise self._named(raw, wrong[0], place, first_row, error) from None
            observed = raw.observed.copy()
            observed[wrong[:, 0], wrong[:, 1]] = False
            return as_the_space_reads(replace(raw, observed=observed), space, place), len(wrong)

    def run(self, function: Callable[[Part], T], part: Part, place: str, first_row: int = 0) -> T:
        """Return what a function makes of a part; an error about a label names its place."""
        try:
            return function(part)
        except InvalidLabelError as error:
            raise self.named(part, error, place, first_row) from None

    def named(self, part: Part, error: InvalidLabelError, place: str, first_row: int) -> InvalidLabelError:
        """Return an error that came up later, when a part was computed with, with its place."""
        wrong = None if self.space is None else _wrong_cells(part.votes, self.space)
        if wrong is not None and len(wrong):
            return self._named(part.votes, wrong[0], place, first_row, error)
        start = f", counted from row {first_row}" if first_row else ""
        return InvalidLabelError(f"{place}{start}: {error}", error.index)

    def _named(
        self, votes: Votes, cell: IntArray, place: str, first_row: int, error: Exception | None = None
    ) -> InvalidLabelError:
        row, column = (int(index) for index in cell)
        why = str(error)
        if self.space is not None:
            try:
                _check(votes.labels[row : row + 1, column], self.space)
            except ValueError as found:
                why = str(found)
        item = votes.items[row : row + 1].tolist()[0]
        return InvalidLabelError(
            f"{place}, row {first_row + row} (item {item!r}), source {votes.sources[column]!r}: {why} "
            "Correct the cell, or pass on_error='abstain' to skip such cells and count them."
        )

    def _known(self, table: Any, raw: Votes, place: str, first_row: int) -> tuple[Votes, int]:
        """Return known labels as the votes of one source, in the form of the space, also where none is known."""
        space, gold = self.space, str(self.gold)
        if space is None:
            raise UnsupportedError(f"gold={gold!r} needs the label space to read it. Pass space=.")
        cells = Reading("wide", sources=(gold,), abstain=self.abstain).votes(table, place)
        cells = replace(cells, items=raw.items)
        read, skipped = self._read(cells, place, first_row)
        try:
            known = read_gold((read.labels[:, 0], read.observed[:, 0]), space, len(read))
        except InvalidLabelError as error:
            raise self.named(Part(read), error, place, first_row) from None
        if known is None:
            return _nothing_known(space, read), skipped
        return replace(known, items=raw.items), skipped


def _numbers(column: pa.Array) -> IntArray:
    """Return the memory of a column of integers; anything where it is null."""
    memory: IntArray = np.frombuffer(column.buffers()[1], dtype=column.type.to_pandas_dtype())
    return memory[column.offset : column.offset + len(column)]


def _is_there(column: pa.Array) -> BoolArray:
    bits = np.unpackbits(np.frombuffer(column.buffers()[0], dtype=np.uint8), bitorder="little")
    return bits[column.offset : column.offset + len(column)].view(bool)


def part_reader(
    names: Iterable[str], space: LabelSpace | None = None, *, where: str = "the table", **options: Unpack[ReadOptions]
) -> PartReader:
    """Return how the columns of these names are to be read, or say what does not fit."""
    item, gold, drop = options.get("item"), options.get("gold"), tuple(options.get("drop", ()))
    sources, on_error = options.get("sources"), options.get("on_error", "raise")
    if on_error not in ON_ERROR:
        raise UnsupportedError(f"on_error={on_error!r} is unknown. Use one of {', '.join(ON_ERROR)}.")
    if space is not None and not isinstance(space, LabelSpace):
        raise UnsupportedError(f"space={space!r} is not a label space. Pass Classes(k), Scores(), ...")
    if space is None and (gold is not None or on_error == "abstain"):
        wanted = "gold=" if gold is not None else "on_error='abstain'"
        raise UnsupportedError(f"{wanted} needs the label space, to know what a label is. Pass space=.")
    columns = list(map(str, names))
    chosen = None if sources is None else tuple(sources)
    layout, found = Reading(item=item, sources=chosen).roles(columns)
    if layout == "long":
        raise UnsupportedError(
            f"{where} has one row per vote ({', '.join(str(name) for name in found.values())}), so the votes on one "
            "item may lie anywhere in it. Turn it into one row per item first (a pivot; convert_votes(path, out, "
            "to='wide') where it fits into memory), or name the columns of votes with sources=."
        )
    for name in (item, gold, *(chosen or ()), *drop):
        if name is not None and name not in columns:
            shown = ", ".join(map(repr, columns[:12])) + (", ..." if len(columns) > 12 else "")
            raise UnknownColumnError(f"{where} has no column {name!r}. Its columns are {shown}.")
    ids = found["item"] if item is not None or chosen is None or found["item"] not in chosen else None
    kept = chosen or tuple(name for name in columns if name not in {ids, gold, *drop})
    if not kept:
        raise InvalidVotesError(f"{where} has no column of votes. Its columns are {', '.join(map(repr, columns))}.")
    return PartReader(kept, space, ids, gold, options.get("abstain"), on_error)


def _nothing_known(space: LabelSpace, cells: Votes) -> Votes:
    """Return known labels of which none is known: any label of the space stands in the cells."""
    any_label: Batch = space.as_batch(space.random(1, np.random.default_rng(0)))
    shape = (len(cells), 1, *any_label.shape[1:])
    labels = np.broadcast_to(any_label[:, None], shape).copy()
    return replace(cells, labels=labels, observed=np.zeros((len(cells), 1), dtype=bool), sources=("gold",))


def _wrong_cells(votes: Votes, space: LabelSpace) -> IntArray:
    """Return ``(row, column)`` of the cells that are no labels, by halving: few checks where few are wrong."""
    rows, columns = np.nonzero(votes.observed)
    cells = votes.labels[rows, columns]
    bad: BoolArray = np.zeros(len(cells), dtype=bool)
    bad[list(_wrong_between(cells, space, 0, len(cells)))] = True
    return np.stack([rows[bad], columns[bad]], axis=1)


def _wrong_between(cells: Batch, space: LabelSpace, start: int, stop: int) -> Iterator[int]:
    if start == stop:
        return
    try:
        _check(cells[start:stop], space)
    except ValueError:
        if stop - start == 1:
            yield start
            return
        middle = (start + stop) // 2
        yield from _wrong_between(cells, space, start, middle)
        yield from _wrong_between(cells, space, middle, stop)


def _check(cells: Batch, space: LabelSpace) -> None:
    """Raise unless all cells are labels, as text or as the space takes them."""
    if cells.dtype == object and any(isinstance(cell, str) for cell in cells.tolist()):
        read = np.empty(len(cells), dtype=object)
        for index, cell in enumerate(space.read_text(cells)):
            read[index] = cell
        cells = read
    column = Votes.from_array(cells.reshape(len(cells), 1, *cells.shape[1:]), sources=["cell"])
    try:
        encode(column, space)
    except InvalidLabelError as error:
        text = str(error)  # the place within this column of cells means nothing to anybody
        raise InvalidLabelError(text.split("source 'cell': ", 1)[-1], error.index) from None
