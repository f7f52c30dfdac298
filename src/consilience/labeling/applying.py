"""Labeling functions and data become votes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.exceptions import (
    ConsilienceWarning,
    InvalidVotesError,
    LabelingFunctionError,
    UnknownColumnError,
    UnsupportedError,
)
from consilience.label_types.base import LabelSpace
from consilience.labeling.answers import Answers, Fault, encode_answers, join_answers, read_answers, read_batch
from consilience.labeling.chunks import InMemory, ParquetFiles, Stream, Task, as_chunks, length, pieces
from consilience.labeling.functions import LabelingFunction, as_functions
from consilience.labeling.progress import ProgressBar
from consilience.labeling.rows import column_of, records_of, rows_of
from consilience.labeling.workers import count_workers, run_in_processes
from consilience.tables.cells import common_dtype
from consilience.tables.display import SourceTable
from consilience.tables.frames import Column
from consilience.tables.names import check_unique_ids
from consilience.votes import Votes

__all__ = ["Applied", "Work", "apply", "apply_to_chunk", "apply_with_faults", "chosen_functions", "is_cluster_frame"]

#: Rows handed to a vectorised function at once.
CHUNK_ROWS = 1 << 15
#: Rows between two looks at the clock.
BLOCK = 256


@dataclass(frozen=True, eq=False)
class Applied:
    """Votes, and a table with one row per function that failed: rows, first_row, first_error."""

    votes: Votes
    faults: SourceTable


def apply(
    functions: Any,
    data: Any,
    space: LabelSpace | None = None,
    *,
    item: str | None = None,
    on_error: str = "raise",
    n_jobs: int = 1,
    progress: bool | None = None,
    chunk_rows: int = CHUNK_ROWS,
) -> Votes:
    """Return the votes of labeling functions on every row of the data.

    `consilience.partitions.apply_frame` does so on a Dask or Spark dataframe, and `apply_to` writes the votes on data
    in files to files.

    Parameters
    ----------
    functions
        One or several: made by `labeling_function` or one of `consilience.labeling`, plain functions of a
        row, or labeling functions of snorkel.
    data
        A pandas, polars or Arrow table, a dict of columns, an array, a list, a generator, or the path of a
        Parquet file or of a folder of them. Files and generators are read in pieces.
    space
        What a label is. Labels are checked against it as they come, and classes take one byte per vote.
        Among whole numbers -1 then abstains, unless it is a label; None and NaN always do.
    item
        The column that holds the item ids; rows are counted if not given.
    on_error
        "raise" stops at the first row on which a function fails; with "abstain" it has no vote there, and a
        warning counts such rows. A vectorised function then abstains on the whole chunk. `apply_with_faults` returns
        the counts.
    n_jobs
        Number of processes; -1 for one per processor.
    progress
        Whether to show a bar on stderr; by default on a terminal, if it takes more than two seconds.
    chunk_rows
        Rows handed to a vectorised function at once; also how many are in memory at once, where the data
        is not.

    Examples
    --------
    >>> def long(text):
    ...     return 1 if len(text) > 10 else 0
    >>> def has_digit(text):
    ...     return 1 if any(map(str.isdigit, text)) else None
    >>> votes = apply([long, has_digit], ["call 555", "good morning"])
    >>> votes.sources, votes.labels[votes.observed].tolist()
    (('long', 'has_digit'), [0, 1, 1])
    """
    if is_cluster_frame(data):
        raise UnsupportedError(
            f"The rows of a {type(data).__module__.split('.')[0]} dataframe stay on its cluster. Use "
            "consilience.partitions.apply_frame, which returns the votes as such a frame."
        )
    votes, faults = _run(functions, data, space, item, on_error, n_jobs, progress, chunk_rows)
    if faults:
        counts = "; ".join(
            f"{one.function!r} on {one.rows} row(s), first on row {one.first_row} ({one.first_error})" for one in faults
        )
        warnings.warn(
            f"Labeling functions failed and abstain there: {counts}. "
            "consilience.labeling.apply_with_faults returns these counts as a table.",
            ConsilienceWarning,
            stacklevel=2,
        )
    return votes


def apply_with_faults(
    functions: Any,
    data: Any,
    space: LabelSpace | None = None,
    *,
    item: str | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
    chunk_rows: int = CHUNK_ROWS,
) -> Applied:
    """Return the votes as `apply` does with ``on_error="abstain"``, and what failed as a table instead of a warning.

    Examples
    --------
    >>> def parity(number):
    ...     return number % 2
    >>> result = apply_with_faults([parity], [1, "two", 3])
    >>> result.votes.observed[:, 0].tolist()
    [True, False, True]
    >>> result.faults.columns["rows"], result.faults.columns["first_row"]
    ([1], [1])
    """
    votes, faults = _run(functions, data, space, item, "abstain", n_jobs, progress, chunk_rows)
    columns: dict[str, list[Any]] = {
        "source": [one.function for one in faults],
        "rows": [one.rows for one in faults],
        "first_row": [one.first_row for one in faults],
        "first_error": [one.first_error for one in faults],
    }
    return Applied(votes, SourceTable(columns))


def apply_to_chunk(
    functions: Sequence[LabelingFunction],
    chunk: Any,
    space: LabelSpace | None = None,
    *,
    on_error: str = "raise",
    first_row: int = 0,
    advance: Callable[[int], None] | None = None,
) -> list[Answers]:
    """Return the answers of each function to some rows; what runs in each partition of the data.

    Parameters
    ----------
    chunk
        A table, a dict of arrays or a list.
    first_row
        The number of its first row, for messages.
    advance
        Called with the number of answers given since the last call.
    """
    lenient = on_error == "abstain"
    n = length(chunk)
    count = advance or _ignore
    rows: dict[bool, list[Any]] = {}
    answers = []
    for function in functions:
        if function.vectorized:
            answers.append(_of_batch(function, chunk, n, space, lenient, first_row))
            count(n)
            continue
        changeable = bool(getattr(function.function, "_pre", None))  # snorkel's preprocessors set attributes
        if changeable not in rows:
            rows[changeable] = records_of(chunk) if changeable else rows_of(chunk)
        answers.append(_of_rows(function, rows[changeable], space, lenient, first_row, count))
    return answers


def _of_rows(
    function: LabelingFunction,
    rows: list[Any],
    space: LabelSpace | None,
    lenient: bool,
    first_row: int,
    count: Callable[[int], None],
) -> Answers:
    call = function.bound()
    returned: list[Any] = [None] * len(rows)
    fault: Fault | None = None
    for start in range(0, len(rows), BLOCK):
        stop = min(start + BLOCK, len(rows))
        for row in range(start, stop):
            try:
                returned[row] = call(rows[row])
            except UnknownColumnError as error:
                raise _misnamed(function, error) from error
            except Exception as error:
                if not lenient:
                    raise _failed(function, f"row {first_row + row}", error) from error
                here = Fault(function.name, 1, first_row + row, _text(error))
                fault = here if fault is None else fault + here
        count(stop - start)
    answer = encode_answers(read_answers(returned), function, space, first_row, lenient)
    return replace(answer, fault=_both(fault, answer.fault))


def _of_batch(
    function: LabelingFunction, chunk: Any, n: int, space: LabelSpace | None, lenient: bool, first_row: int
) -> Answers:
    try:
        returned = function.bound()(chunk)
    except UnknownColumnError as error:
        raise _misnamed(function, error) from error
    except Exception as error:
        if not lenient:
            raise _failed(function, f"rows {first_row} to {first_row + n - 1}", error) from error
        nothing = np.zeros(n, dtype=bool)
        fault = Fault(function.name, n, first_row, _text(error))
        return Answers(np.zeros(n, dtype=np.int8), nothing, np.dtype(np.int8), fault)
    return encode_answers(read_batch(returned, function, n, first_row), function, space, first_row, lenient)


@dataclass(frozen=True, eq=False)
class Work:
    """What is done with a piece of the data, here or in another process."""

    functions: tuple[LabelingFunction, ...]
    chunks: InMemory | ParquetFiles | Stream | None
    space: LabelSpace | None
    item: str | None
    on_error: str
    rows: int
    advance: Callable[[int], None] | None = None

    def __call__(self, task: Task) -> list[tuple[list[Answers], Column | None]]:
        chunk = task.key if self.chunks is None else self.chunks.load(task)
        results = []
        for start, piece in pieces(chunk, self.rows):
            answers = apply_to_chunk(
                self.functions,
                piece,
                self.space,
                on_error=self.on_error,
                first_row=task.first_row + start,
                advance=self.advance,
            )
            results.append((answers, None if self.item is None else column_of(piece, self.item)))
        return results


def _run(
    functions: Any,
    data: Any,
    space: LabelSpace | None,
    item: str | None,
    on_error: str,
    n_jobs: int,
    progress: bool | None,
    chunk_rows: int,
) -> tuple[Votes, list[Fault]]:
    found = chosen_functions(functions, space, on_error, chunk_rows)
    jobs = count_workers(n_jobs)
    chunks = as_chunks(data, chunk_rows)
    total = chunks.n_rows
    if total is not None and jobs > 1 and isinstance(chunks, InMemory) and not any(one.vectorized for one in found):
        # Enough pieces for everybody. Vectorised functions see the same batches however many processes there are.
        chunks = replace(chunks, rows=max(1, min(chunk_rows, -(-total // (4 * jobs)))))
    with ProgressBar(None if total is None else total * len(found), progress) as bar:
        work = Work(found, chunks, space, item, on_error, chunk_rows)
        results: list[tuple[list[Answers], Column | None]] = []
        for result in _results(work, chunks, jobs, bar):
            results.extend(result)
    if not results or not any(len(one[0][0].observed) for one in results):
        raise InvalidVotesError("There are no items: the data has no rows. Pass at least one row.")
    labels, observed, spelling = join_answers([answers for answers, _ in results], space)
    items = _items([ids for _, ids in results], len(observed), item)
    votes = Votes(labels, observed, tuple(one.name for one in found), items, spelling=spelling)
    return votes, _faults(found, [answers for answers, _ in results])


def is_cluster_frame(data: Any) -> bool:
    """Return whether something is a dataframe of Dask or Spark."""
    package = type(data).__module__.split(".")[0]
    return package in ("dask", "dask_expr", "pyspark") and hasattr(data, "columns")


def chosen_functions(
    functions: Any, space: LabelSpace | None, on_error: str, chunk_rows: int
) -> tuple[LabelingFunction, ...]:
    """Return the labeling functions, once the other settings are known to be sound."""
    if on_error not in ("raise", "abstain"):
        raise UnsupportedError(f"on_error={on_error!r} is unknown. Use 'raise' or 'abstain'.")
    found = as_functions(functions)
    if space is not None and not isinstance(space, LabelSpace):
        raise UnsupportedError(f"space={space!r} is not a label space. Pass Classes(k), Scores(), ..., or None.")
    if isinstance(chunk_rows, bool) or not isinstance(chunk_rows, int) or chunk_rows < 1:
        raise InvalidVotesError(f"chunk_rows={chunk_rows!r} is not a number of rows. Use a whole number from 1 on.")
    return found


def _results(work: Work, chunks: InMemory | ParquetFiles | Stream, jobs: int, bar: ProgressBar) -> Iterator[Any]:
    if jobs == 1:
        yield from map(replace(work, advance=bar.advance), chunks.tasks())
        return
    may_fork = True
    if isinstance(chunks, InMemory) and type(chunks.data).__module__.startswith("polars"):
        # The threads of polars do not survive a fork. Functions of a row never see what holds their cells.
        may_fork = not any(one.vectorized for one in work.functions)
        if may_fork:
            chunks = replace(chunks, data=chunks.data.to_arrow())
            work = replace(work, chunks=chunks)
    if isinstance(chunks, Stream) or not may_fork:
        work = replace(work, chunks=None)  # tasks carry their rows
    for result in run_in_processes(work, chunks.tasks(), chunks.load, jobs, may_fork):
        bar.advance(sum(len(answers[0].observed) for answers, _ in result) * len(work.functions))
        yield result


def _items(ids: list[Column | None], n: int, item: str | None) -> npt.NDArray[Any]:
    columns = [column for column in ids if column is not None]
    if not columns:
        return np.arange(n)
    null = np.concatenate([column.null for column in columns])
    if null.any():
        raise InvalidVotesError(f"Row {int(np.argmax(null))} has no item id in column {item!r}. Fill it in.")
    dtype = common_dtype([column.values.dtype for column in columns])
    items = np.concatenate([column.values.astype(dtype, copy=False) for column in columns])
    check_unique_ids(items)
    return items


def _faults(functions: Sequence[LabelingFunction], chunks: list[list[Answers]]) -> list[Fault]:
    found = []
    for place in range(len(functions)):
        whole: Fault | None = None
        for answers in chunks:
            whole = _both(whole, answers[place].fault)
        if whole is not None:
            found.append(whole)
    return found


def _both(left: Fault | None, right: Fault | None) -> Fault | None:
    return left + right if left is not None and right is not None else left or right


def _failed(function: LabelingFunction, place: str, error: Exception) -> LabelingFunctionError:
    return LabelingFunctionError(
        f"Labeling function {function.name!r} failed on {place}: {_text(error)}. "
        "Correct the function, or pass on_error='abstain' to go on without its vote there."
    )


def _misnamed(function: LabelingFunction, error: UnknownColumnError) -> UnknownColumnError:
    return UnknownColumnError(f"Labeling function {function.name!r}: {error}")


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _ignore(answers: int) -> None:
    pass
