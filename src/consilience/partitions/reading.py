"""Pieces of a wide table become parts in the same way on every engine; wrong cells are named or skipped."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Self, TypedDict, TypeVar, Unpack

import numpy as np

from consilience.arrays import Batch
from consilience.exceptions import InvalidLabelError, InvalidVotesError, UnsupportedError, unknown_column
from consilience.label_types.base import LabelSpace
from consilience.lazy import pyarrow as pa
from consilience.partitions.base import Part, VotePartitions
from consilience.tables.cleaning import labels_from_text
from consilience.tables.encoding import encode, read_gold, wrong_labels
from consilience.tables.reading import Reading
from consilience.tables.vote_tables import check_unique_ids
from consilience.votes import Votes

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
    """How pieces of one table become parts, see `ReadOptions`; it is sent to the workers."""

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

    def part(self, table: Any, place: str, first_row: int = 0, first_id: int = 0) -> Part:
        """Return the votes and known labels in a piece of a table.

        Parameters
        ----------
        place
            Name of the piece in errors: a file and a row group, or a partition.
        first_row
            Number of the piece's first row in that place, for errors.
        first_id
            Id of the first row if the table has no column of ids.
        """
        try:
            raw = self._codes(table)
            if raw is None:
                raw = Reading("wide", self.item, sources=self.sources, abstain=self.abstain, strict=True).votes(
                    table, place
                )
        except InvalidVotesError as error:  # such as an id that occurs twice
            raise InvalidVotesError(f"{_counted(place, first_row)}: {error}") from None
        if self.item is None:
            raw = replace(raw, items=np.arange(len(raw)) + first_id)
        votes, skipped = self._read(raw, place, first_row)
        space = self.space
        if self.gold is None or space is None:
            return Part(votes, skipped=skipped)
        cells = Reading("wide", sources=(self.gold,), abstain=self.abstain, strict=True).votes(table, place)
        known_votes, wrong = self._read(replace(cells, items=raw.items), place, first_row)
        known = self.run(lambda part: _known(part.votes, space), Part(known_votes), place, first_row)
        return Part(votes, known, skipped + wrong)

    def _codes(self, table: Any) -> Votes | None:
        """Return the votes of an Arrow table whose columns are all of one type of integers; None for other tables.

        The result is the same as for a frame, nine times as fast.
        """
        if not isinstance(table, pa.Table) or self.abstain is not None or not len(table) or not self.sources:
            return None
        columns = [table.column(name).combine_chunks() for name in self.sources]
        ids = columns[0] if self.item is None else table.column(self.item).combine_chunks()
        kind = columns[0].type
        if any(column.type != kind for column in columns) or (self.item is not None and ids.null_count):
            return None
        if not pa.types.is_signed_integer(kind) or not pa.types.is_signed_integer(ids.type):
            return None
        labels = np.empty((len(table), len(columns)), dtype=kind.to_pandas_dtype())
        observed = np.ones(labels.shape, dtype=bool)
        for place, column in enumerate(columns):
            rows, (valid, numbers) = slice(column.offset, column.offset + len(column)), column.buffers()
            labels[:, place] = np.frombuffer(numbers, dtype=labels.dtype)[rows]
            if column.null_count:
                observed[:, place] = np.unpackbits(np.frombuffer(valid, dtype=np.uint8), bitorder="little")[rows]
        labels *= observed  # a null cell may hold anything
        items = np.arange(len(table)) if self.item is None else ids.to_numpy().copy()
        check_unique_ids(items)
        return Votes(labels, observed, self.sources, items)

    def _read(self, raw: Votes, place: str, first_row: int) -> tuple[Votes, int]:
        """Return the votes as the space reads them, and the number of wrong cells that count as abstentions."""
        space = self.space
        if space is None:
            return raw, 0
        try:
            votes = labels_from_text(raw, space, place)
            if self.on_error == "abstain":
                encode(votes, space)  # only to see whether every cell is a label
            return votes, 0
        except (InvalidLabelError, InvalidVotesError, ValueError) as error:
            wrong = _wrong_cells(raw, space)
            if not wrong:
                raise
            if self.on_error == "raise":
                raise self._placed(raw, error, place, first_row) from None
            observed = raw.observed.copy()
            for row, column, _ in wrong:
                observed[row, column] = False
            return labels_from_text(replace(raw, observed=observed), space, place), len(wrong)

    def run(self, function: Callable[[Part], T], part: Part, place: str, first_row: int = 0) -> T:
        """Return the result of a function of a part; an error about a label names its place."""
        try:
            return function(part)
        except InvalidLabelError as error:
            raise self._placed(part.votes, error, place, first_row) from None

    def _placed(self, votes: Votes, error: Exception, place: str, first_row: int) -> InvalidLabelError:
        """Return an error about a label with its place."""
        for row, column, why in [] if self.space is None else _wrong_cells(votes, self.space)[:1]:
            item = votes.items[row : row + 1].tolist()[0]
            return InvalidLabelError(
                f"{place}, row {first_row + row} (item {item!r}), source {votes.sources[column]!r}: {why} "
                "Correct the cell, or pass on_error='abstain' to skip such cells and count them."
            )
        return InvalidLabelError(f"{_counted(place, first_row)}: {error}", getattr(error, "index", None))


class ReadPartitions(VotePartitions):
    """Votes that a `PartReader` reads, here or on a cluster."""

    reader: PartReader
    #: Shared with the results of `transform`: whether ids are known to be unique, and what an engine keeps.
    shared: SimpleNamespace

    @property
    def sources(self) -> tuple[str, ...]:
        return self.reader.sources

    def check_ids(self) -> None:
        """Raise an error if two items have the same id, unless ids were compared before."""
        if not self.shared.ids_differ:
            self._compare_ids()
            self.shared.ids_differ = True

    @abstractmethod
    def _compare_ids(self) -> None:
        """Raise an error if two items have the same id."""

    def _with(self, **changes: Any) -> Self:
        changed = object.__new__(type(self))
        changed.__dict__.update(self.__dict__ | changes)
        return changed

    def __getstate__(self) -> Any:
        if self.remote:
            raise UnsupportedError("Partitions cannot be sent to the workers. Use map, reduce or transform.")
        return self.__dict__


def _counted(place: str, first_row: int) -> str:
    return f"{place}, counted from row {first_row}" if first_row else place


def part_reader(
    names: Iterable[str], space: LabelSpace | None = None, *, where: str = "the table", **options: Unpack[ReadOptions]
) -> PartReader:
    """Return the reader of a table with these columns, or raise an error for options that do not fit."""
    item, gold, drop = options.get("item"), options.get("gold"), tuple(options.get("drop", ()))
    chosen, on_error = options.get("sources"), options.get("on_error", "raise")
    if on_error not in ON_ERROR:
        raise UnsupportedError(f"on_error={on_error!r} is unknown. Use one of {', '.join(ON_ERROR)}.")
    if space is not None and not isinstance(space, LabelSpace):
        raise UnsupportedError(f"space={space!r} is not a label type. Pass Classes(k), Scores(), ...")
    if space is None and (gold is not None or on_error == "abstain"):
        wanted = "gold=" if gold is not None else "on_error='abstain'"
        raise UnsupportedError(f"{wanted} needs the label space, to know what a label is. Pass space=.")
    columns = list(map(str, names))
    chosen = None if chosen is None else tuple(chosen)
    layout, found = Reading(item=item, sources=chosen).roles(columns)
    if layout == "long":
        raise UnsupportedError(
            f"{where} has one row per vote ({', '.join(str(name) for name in found.values())}). Convert it to one row "
            "per item first (with convert_votes(path, out, to='wide') if it fits into memory), or name the columns of "
            "votes with sources=."
        )
    for name in (item, gold, *(chosen or ()), *drop):
        if name is not None and name not in columns:
            raise unknown_column(name, columns, where)
    ids = found["item"] if item is not None or chosen is None or found["item"] not in chosen else None
    kept = chosen or tuple(name for name in columns if name not in {ids, gold, *drop})
    if not kept:
        raise InvalidVotesError(f"{where} has no column of votes. Its columns are {', '.join(map(repr, columns))}.")
    return PartReader(kept, space, ids, gold, options.get("abstain"), on_error)


def _known(cells: Votes, space: LabelSpace) -> Votes:
    """Return known labels, perhaps none, as the encoded votes of one source."""
    known = read_gold((cells.labels[:, 0], cells.observed[:, 0]), space, len(cells))
    if known is not None:
        return replace(known, items=cells.items)
    any_label: Batch = space.as_batch(space.random(1, np.random.default_rng(0)))
    labels = np.repeat(any_label[:, None], len(cells), axis=0)
    return replace(cells, labels=labels, observed=np.zeros((len(cells), 1), dtype=bool), sources=("gold",))


def _wrong_cells(votes: Votes, space: LabelSpace) -> list[tuple[int, int, str]]:
    """Return row and column of the cells that are not labels, and why."""
    rows, columns = np.nonzero(votes.observed)
    wrong = wrong_labels(votes.labels[rows, columns], space)
    return [(int(rows[place]), int(columns[place]), why) for place, why in wrong.items()]
