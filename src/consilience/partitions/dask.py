"""Votes on a Dask cluster: parts stay on the workers, which return sums of a few kilobytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial, reduce
from operator import add
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import consilience.partitions.duplicate_ids as duplicate_ids
from consilience.exceptions import InvalidVotesError, UnsupportedError, needed
from consilience.label_types.base import LabelSpace
from consilience.lazy import narwhals as nw
from consilience.partitions.base import A, Part
from consilience.partitions.label_folder import Labeler
from consilience.partitions.parquet import part_of
from consilience.partitions.reading import PartReader, ReadOptions, ReadPartitions, part_reader
from consilience.partitions.threads import in_order
from consilience.tables.files import find_row_groups

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

#: Sums that one task adds up.
FAN_IN = 8
#: Results on their way to the driver at any time, per worker thread.
AHEAD = 2


class DaskPartitions(ReadPartitions):
    """Votes on a Dask cluster, one row per item and one column per source.

    Votes are read once and stay in the memory of the workers as long as this object exists. If a worker is lost, its
    parts are computed again.

    Parameters
    ----------
    data
        The path of a Parquet or Arrow file or folder, which the workers read themselves; a Dask dataframe; or a list
        of frames, futures of frames or delayed frames.
    client
        A `distributed.Client`, the address of a scheduler, or None for the current client.
    space, item, sources, drop, gold, abstain, on_error, check_ids
        As for `ParquetPartitions`. Ids are compared on the workers.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> client = Client()  # doctest: +SKIP
    >>> votes = DaskPartitions("votes", Classes(2))  # doctest: +SKIP
    >>> model = LabelModel(Classes(2)).fit(votes)  # doctest: +SKIP
    """

    remote = True

    def __init__(
        self,
        data: Any,
        space: LabelSpace | None = None,
        *,
        client: Any = None,
        check_ids: bool = True,
        **options: Unpack[ReadOptions],
    ) -> None:
        self.client = _client(client)
        if isinstance(data, (str, Path)):
            pieces, names = find_row_groups(Path(data).resolve())
            self.reader = part_reader(names, space, **options, where=repr(str(data)))
            self.places, self.sizes = [piece.place for piece in pieces], [piece.n_rows for piece in pieces]
            self.parts = [self._submit(part_of, piece, self.reader) for piece in pieces]
        else:
            is_frame = hasattr(data, "to_delayed") and hasattr(data, "columns")
            frames, names = ([], list(map(str, data.columns))) if is_frame else self._frames(data)
            self.reader = part_reader(names, space, **options, where="the frame")
            if is_frame:
                columns = [name for name in data.columns if str(name) in self.reader.columns]
                frames = list(self.client.compute(data[columns].to_delayed()))
            sizes = self.client.gather([self._submit(len, frame) for frame in frames])
            filled = [index for index, size in enumerate(sizes) if size]
            self.places, self.sizes = [f"partition {index}" for index in filled], [sizes[index] for index in filled]
            self.parts = [
                self._submit(self.reader.part, frames[index], place, 0, sum(sizes[:index]))
                for index, place in zip(filled, self.places, strict=True)
            ]
        self.shared = SimpleNamespace(ids_differ=not check_ids or self.reader.item is None)

    @property
    def n_items(self) -> int:
        return sum(self.sizes)

    def _compare_ids(self) -> None:
        slices = duplicate_ids.n_slices(self.n_items)
        for index in range(slices):
            keys = self._each(partial(_keys, index, slices))
            suspects = self._submit(duplicate_ids.repeated, keys).result()
            if len(suspects):
                places = self.client.gather(self._each(partial(_places, suspects)))
                duplicate_ids.refuse_same_ids(itertools.chain.from_iterable(places))

    def map(self, function: Callable[[Part], T]) -> Iterator[T]:
        self.check_ids()
        ahead = AHEAD * max(sum(self.client.nthreads().values()), 1)
        parts = zip(self.parts, self.places, strict=True)
        yield from in_order(lambda one: self._submit(self.reader.run, function, *one), parts, ahead)

    def reduce(self, function: Callable[[Part], A]) -> A:
        """Apply a function to every chunk and add up what it returns, on the workers, as a tree."""
        if not self.parts:
            raise InvalidVotesError("There are no votes: all partitions are empty.")
        self.check_ids()
        level = self._each(partial(self.reader.run, function))
        while len(level) > 1:
            groups = [level[start : start + FAN_IN] for start in range(0, len(level), FAN_IN)]
            level = [self._submit(reduce, add, group) for group in groups]
        return level[0].result()

    def transform(self, function: Callable[[Part], Part]) -> DaskPartitions:
        """Return partitions whose chunks went through `function` and stay on the workers."""
        return self._with(parts=self._each(partial(self.reader.run, function)))

    def label_frame(self, labeler: Labeler) -> Any:
        """Return a Dask dataframe of labels, one partition for each of these."""
        import dask

        dataframes = needed("dask.dataframe", "A frame of labels", "dask")
        table = dask.delayed(_label_frame, pure=False)
        schema: Any = labeler.schema
        return dataframes.from_delayed(
            [table(part, labeler, self.reader, place) for place, part in zip(self.places, self.parts, strict=True)],
            meta=pandas_frame(schema.empty_table()),
        )

    def pieces(self) -> list[Any]:
        return list(zip(self.places, self.sizes, strict=True))

    def write_labels(self, labeler: Labeler, targets: dict[int, Path]) -> Iterator[tuple[int, dict[str, int]]]:
        """Let the workers write files for some of the parts to a shared file system, and yield the counts."""
        from distributed import as_completed

        futures = {
            self._submit(_write, self.parts[index], labeler, target.resolve(), self.reader, self.places[index]): index
            for index, target in targets.items()
        }
        for future, counts in as_completed(list(futures), with_results=True):
            yield futures[future], counts

    def __repr__(self) -> str:
        return f"DaskPartitions({self.n_items} items, {len(self.sources)} sources, {len(self.parts)} partitions)"

    def _each(self, function: Callable[[Part, str], Any]) -> list[Any]:
        """Return a future for each part, of a function of the part and its place."""
        return [self._submit(function, part, place) for place, part in zip(self.places, self.parts, strict=True)]

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(function, *arguments, pure=False)

    def _frames(self, data: Any) -> tuple[list[Any], list[str]]:
        """Return futures of frames, and the names of their columns."""
        from distributed import Future

        frames = list(data) if isinstance(data, (list, tuple)) else []
        if not frames:
            raise UnsupportedError(
                f"{type(data).__name__} is not data for Dask. Pass a path, a Dask dataframe, or a list of frames."
            )
        futures = []
        for frame in frames:
            if isinstance(frame, Future):
                futures.append(frame)
            elif hasattr(frame, "dask"):
                futures.append(self.client.compute(frame))
            else:
                futures.append(self._submit(lambda frame: frame, frame))  # in a task, which can be recomputed
        columns = self._submit(lambda frame: list(nw.from_native(frame).columns), futures[0]).result()
        return futures, list(map(str, columns))


def _client(client: Any) -> Any:
    distributed = needed("distributed", "DaskPartitions", "dask")
    if isinstance(client, distributed.Client):
        return client
    if isinstance(client, str):
        return distributed.Client(client)
    if client is not None:
        raise UnsupportedError(f"client={client!r} is neither a distributed.Client nor the address of a scheduler.")
    try:
        return distributed.get_client()
    except ValueError:
        raise UnsupportedError(
            "No Dask client is open. Open one (distributed.Client()), or pass client='tcp://HOST:PORT'."
        ) from None


# Runs on the workers.


def _keys(index: int, slices: int, part: Part, place: str) -> duplicate_ids.Keys:
    return duplicate_ids.slice_of(duplicate_ids.keys_of(part.votes.items), index, slices)


def _places(suspects: duplicate_ids.Keys, part: Part, place: str) -> list[duplicate_ids.Place]:
    return duplicate_ids.places_of(suspects, part.votes.items, place)


def _write(part: Part, labeler: Labeler, target: Path, reader: PartReader, place: str) -> dict[str, int]:
    return reader.run(lambda whole: labeler.write([whole], target), part, place)


def _label_frame(part: Part, labeler: Labeler, reader: PartReader, place: str) -> pd.DataFrame:
    return pandas_frame(reader.run(labeler.table, part, place))


def pandas_frame(table: Any) -> pd.DataFrame:
    """Return an Arrow table as a pandas frame with the same types."""
    import pandas as pd

    return table.to_pandas(types_mapper=pd.ArrowDtype)
