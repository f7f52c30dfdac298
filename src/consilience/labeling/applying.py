"""Labeling functions and data become votes: what a function returns is read, checked and stored small."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, as_object_array
from consilience.exceptions import (
    ConsilienceWarning,
    InvalidLabelError,
    InvalidVotesError,
    LabelingFunctionError,
    UnknownColumnError,
    UnsupportedError,
)
from consilience.label_types.base import LabelSpace
from consilience.labeling.chunks import Chunks, Task, as_chunks, column_of, in_memory, length, pieces, rows_of
from consilience.labeling.functions import LabelingFunction, as_functions
from consilience.lazy import narwhals as nw
from consilience.partitions.threads import count_threads, in_order
from consilience.progress import Bar, working
from consilience.tables.cells import blank, common_dtype, differs_from, null_mask, read_cells, tighten
from consilience.tables.display import SourceTable
from consilience.tables.frames import Column, column_of_series
from consilience.tables.vote_tables import check_unique_ids
from consilience.votes import Votes

#: Rows passed to a vectorized function at a time.
CHUNK_ROWS = 1 << 15
#: Rows between two checks of the clock.
BLOCK = 256
#: The task of a worker, set before it is forked or sent to it.
_work: Callable[[Task], Any] | None = None


@dataclass(frozen=True, eq=False)
class Applied:
    """Votes, and a table with one row per function that failed: rows, first_row, first_error.

    Examples
    --------
    >>> result = apply_with_faults([lambda number: 10 // number], [1, 0])
    >>> result.votes, result.faults.columns["rows"]
    (Votes(2 items, 1 source, 50% observed), [1])
    """

    votes: Votes
    faults: SourceTable


@dataclass(frozen=True)
class Fault:
    """The number of rows without a vote because the function failed, and the first of them with its error.

    Examples
    --------
    >>> Fault(rows=3, first_row=7, first_error="KeyError: 'text'").first_row
    7
    """

    rows: int
    first_row: int
    first_error: str


@dataclass(frozen=True, eq=False)
class Answers:
    """The votes of one function on some rows, and its faults.

    Labels are codes if the space has codes, and `spelling` is their original type. `observed` is False where the
    function abstains or failed.

    Examples
    --------
    >>> from consilience.labeling import labeling_function
    >>> [answers] = apply_to_chunk([labeling_function(abs)], [1, -2])
    >>> answers.labels.tolist(), answers.observed.tolist()
    ([1, 2], [True, True])
    """

    labels: Batch
    observed: BoolArray
    spelling: np.dtype[Any]
    fault: Fault | None = None


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

    For a Dask or Spark dataframe, use `consilience.partitions.apply_frame`. `apply_to` reads files and writes the votes
    to files.

    Parameters
    ----------
    functions
        One or several functions: made by `labeling_function` or another function of `consilience.labeling`,
        plain functions of a row, or labeling functions of snorkel.
    data
        A pandas, polars or Arrow table, a dict of columns, an array, a list, a generator, or the path of a
        Parquet file or of a folder of them. Files and generators are read in pieces.
    space
        The label type. Labels are checked as they are returned, and classes take one byte per vote. Among
        whole numbers, -1 abstains unless it is a label of the space; None and NaN always do.
    item
        The column of item ids; by default rows are numbered.
    on_error
        "raise" stops at the first row on which a function fails. With "abstain", the function abstains there (a
        vectorized one on the whole chunk), and a warning counts such rows. `apply_with_faults` returns the counts.
    n_jobs
        Number of processes; -1 for one per processor.
    progress
        Whether to show a bar on stderr; by default on a terminal, if it takes more than two seconds.
    chunk_rows
        Rows passed to a vectorized function at a time, and rows in memory at a time if the data are read in
        pieces.

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
    settings: dict[str, Any] = {"item": item, "n_jobs": n_jobs, "progress": progress, "chunk_rows": chunk_rows}
    result = apply_with_faults(functions, data, space, on_error=on_error, **settings)
    if len(result.faults):
        counts = "; ".join(
            f"{source!r} on {rows} row(s), first on row {first_row} ({error})"
            for source, rows, first_row, error in zip(*result.faults.columns.values(), strict=True)
        )
        warnings.warn(
            f"Labeling functions failed and abstain there: {counts}. "
            "consilience.labeling.apply_with_faults returns these counts as a table.",
            ConsilienceWarning,
            stacklevel=2,
        )
    return result.votes


def apply_with_faults(
    functions: Any,
    data: Any,
    space: LabelSpace | None = None,
    *,
    item: str | None = None,
    on_error: str = "abstain",
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
    found = chosen_functions(functions, space, on_error, chunk_rows)
    jobs = count_threads(n_jobs, "n_jobs", "processes")
    chunks = as_chunks(data, chunk_rows)
    total = chunks.n_rows
    if total is not None and jobs > 1 and chunks.whole is not None and not any(one.vectorized for one in found):
        # Enough pieces for all processes. Vectorized functions get the same batches for any number of processes, and
        # functions of a row do not depend on the batch.
        is_polars = type(chunks.whole).__module__.startswith("polars")
        whole = chunks.whole.to_arrow() if is_polars else chunks.whole
        chunks = in_memory(whole, max(1, min(chunk_rows, -(-total // (4 * jobs)))))
    work = Work(found, chunks, space, item, on_error, chunk_rows)
    with working("votes", None if total is None else total * len(found), shown=progress, forks=True) as bar:
        results = [part for result in _results(work, chunks, jobs, bar) for part in result]
    if not any(len(answers[0].observed) for answers, _ in results):
        raise InvalidVotesError("There are no items: the data has no rows. Pass at least one row.")
    labels, observed, spelling = join_answers([answers for answers, _ in results], space)
    items = join_ids([ids for _, ids in results if ids is not None], item)
    if items is not None:
        check_unique_ids(items)
    names = tuple(one.name for one in found)
    faults: dict[str, list[Any]] = {"source": [], "rows": [], "first_row": [], "first_error": []}
    for name, answers in zip(names, zip(*(answers for answers, _ in results), strict=True), strict=True):
        failed = [one.fault for one in answers if one.fault is not None]
        if failed:
            row = (name, sum(fault.rows for fault in failed), failed[0].first_row, failed[0].first_error)
            for column, value in zip(faults.values(), row, strict=True):
                column.append(value)
    ids = np.arange(len(observed)) if items is None else items
    return Applied(Votes(labels, observed, names, ids, spelling=spelling), SourceTable(faults))


def is_cluster_frame(data: Any) -> bool:
    """Return whether something is a dataframe of Dask or Spark."""
    package = type(data).__module__.split(".")[0]
    return package in ("dask", "dask_expr", "pyspark") and hasattr(data, "columns")


def chosen_functions(
    functions: Any, space: LabelSpace | None, on_error: str, chunk_rows: int
) -> tuple[LabelingFunction, ...]:
    """Check the settings, and return the labeling functions."""
    if on_error not in ("raise", "abstain"):
        raise UnsupportedError(f"on_error={on_error!r} is unknown. Use 'raise' or 'abstain'.")
    found = as_functions(functions)
    if space is not None and not isinstance(space, LabelSpace):
        raise UnsupportedError(f"space={space!r} is not a label type. Pass Classes(k), Scores(), ..., or None.")
    if isinstance(chunk_rows, bool) or not isinstance(chunk_rows, int) or chunk_rows < 1:
        raise InvalidVotesError(f"chunk_rows={chunk_rows!r} is not a number of rows. Use a whole number from 1 on.")
    return found


@dataclass(frozen=True, eq=False)
class Work:
    """What is done with a piece of the data, here or in another process; without `chunks` a task carries its rows."""

    functions: tuple[LabelingFunction, ...]
    chunks: Chunks | None
    space: LabelSpace | None
    item: str | None
    on_error: str
    rows: int
    advance: Callable[[int], None] | None = None

    def __call__(self, task: Task) -> list[tuple[list[Answers], Column | None]]:
        chunk = task.key if self.chunks is None else self.chunks.load(task)
        results = []
        for start, piece in pieces(chunk, self.rows):
            first = task.first_row + start
            answers = apply_to_chunk(
                self.functions, piece, self.space, on_error=self.on_error, first_row=first, advance=self.advance
            )
            results.append((answers, None if self.item is None else column_of(piece, self.item)))
        return results


def _results(work: Work, chunks: Chunks, jobs: int, bar: Bar) -> Iterator[Any]:
    if jobs == 1:
        yield from map(replace(work, advance=bar.advance), chunks.tasks())
        return
    # On macOS, linear algebra and system libraries crash in a forked process.
    fork = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
    if type(chunks.whole).__module__.startswith("polars"):
        fork = False  # the threads of polars do not survive a fork
    work = replace(work, chunks=chunks if fork else None)
    tasks = chunks.tasks() if fork else (Task(one.first_row, chunks.load(one)) for one in chunks.tasks())
    for result in run_in_processes(work, tasks, jobs, fork=fork):
        bar.advance(sum(len(answers[0].observed) for answers, _ in result) * len(work.functions))
        yield result


# --- several processes: a few pieces of data at a time, and results in order ---------------------------------


def run_in_processes(work: Callable[[Task], Any], tasks: Iterator[Task], n_jobs: int, *, fork: bool) -> Iterator[Any]:
    """Yield the results in the order of the tasks.

    Forked workers see the functions and the data of this process, whatever they are. To others the work is sent.
    """
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    global _work  # noqa: PLW0603  forked workers find it here
    _work = work
    told: dict[str, Any] = {} if fork else {"initializer": _receive, "initargs": (_pickled(work),)}
    pool = ProcessPoolExecutor(n_jobs, mp_context=multiprocessing.get_context("fork" if fork else "spawn"), **told)

    def submit(task: Task) -> Any:
        with warnings.catch_warnings():
            # Threads that only wait, such as those of linear algebra, do no harm to a fork.
            warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
            return pool.submit(_run, task)

    try:
        yield from in_order(submit, tasks, 2 * n_jobs)  # so that neither rows nor results accumulate
    except BrokenProcessPool:
        raise LabelingFunctionError(
            "A worker process ended without an answer: it ran out of memory, a function ended it, or a script calls "
            "apply outside of `if __name__ == '__main__':`. Try n_jobs=1, or a smaller chunk_rows."
        ) from None
    finally:
        _work = None
        pool.shutdown(wait=True, cancel_futures=True)


def _run(task: Task) -> Any:
    if _work is None:
        raise UnsupportedError("A worker process was not initialized.")
    return _work(task)


def _receive(sent: bytes) -> None:
    global _work  # noqa: PLW0603
    _work = pickle.loads(sent)


def _pickled(work: Callable[[Task], Any]) -> bytes:
    try:
        return pickle.dumps(work)
    except Exception as error:
        try:
            import cloudpickle  # type: ignore[import-not-found,import-untyped,unused-ignore]

            return bytes(cloudpickle.dumps(work))
        except Exception:
            raise UnsupportedError(
                f"A labeling function cannot be sent to another process ({error}). Define it at the top of a module "
                "that can be imported, install cloudpickle, or use n_jobs=1."
            ) from error


# --- the answers of one function -------------------------------------------------------------------------------


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

    The chunk is a table, a dict of arrays or a list. `first_row` is the number of its first row, for messages;
    `advance` is called with the number of answers given since its last call.

    Examples
    --------
    >>> from consilience.labeling import labeling_function
    >>> short = labeling_function(lambda text: "ham" if len(text) < 5 else None)
    >>> [answers] = apply_to_chunk([short], ["hi", "win a car"])
    >>> answers.observed.tolist()
    [True, False]
    """
    lenient = on_error == "abstain"
    count = advance or (lambda answers: None)
    rows: dict[bool, list[Any]] = {}
    answers = []
    for function in functions:
        if function.vectorized:
            labels, observed, failed = _of_batch(function, chunk, lenient, first_row)
            count(len(observed))
        else:
            # Preprocessors set attributes, and so do those of snorkel.
            changeable = bool(function.pre or getattr(function.function, "_pre", None))
            if changeable not in rows:
                rows[changeable] = rows_of(chunk, changeable=changeable)
            labels, observed, failed = _of_rows(function, rows[changeable], lenient, first_row, count)
        answers.append(_encoded(function, labels, observed, failed, space, lenient, first_row))
    return answers


def _of_rows(
    function: LabelingFunction, rows: list[Any], lenient: bool, first_row: int, count: Callable[[int], None]
) -> tuple[Batch, BoolArray, dict[int, str]]:
    """Return labels, mask, and the errors by row."""
    call = function.bound()
    returned: list[Any] = [None] * len(rows)
    failed: dict[int, str] = {}
    for start in range(0, len(rows), BLOCK):
        stop = min(start + BLOCK, len(rows))
        for row in range(start, stop):
            try:
                returned[row] = call(rows[row])
            except Exception as error:
                failed[row] = _failure(function, error, f"row {first_row + row}", lenient)
        count(stop - start)
    return *_read_answers(returned), failed


def _of_batch(
    function: LabelingFunction, chunk: Any, lenient: bool, first_row: int
) -> tuple[Batch, BoolArray, dict[int, str]]:
    n = length(chunk)
    place = f"rows {first_row} to {first_row + n - 1}"
    try:
        returned = function.bound()(chunk)
    except Exception as error:
        text = _failure(function, error, place, lenient)
        return np.zeros(n, dtype=np.int8), np.zeros(n, dtype=bool), dict.fromkeys(range(n), text)
    labels, observed = _read_answers(returned)
    if len(labels) != n:
        what = f"{len(labels)} labels" if len(labels) else f"{type(returned).__name__}, not labels,"
        raise LabelingFunctionError(
            f"Labeling function {function.name!r} returned {what} for {n} rows ({place}). A vectorized "
            "function returns one label per row, None or NaN where it abstains; leave vectorized=True out if it takes "
            "one row."
        )
    return labels, observed, {}


def _failure(function: LabelingFunction, error: Exception, place: str, lenient: bool) -> str:
    """Return the text of an error; raise it where it is not to be passed over."""
    if isinstance(error, UnknownColumnError):
        raise UnknownColumnError(f"Labeling function {function.name!r}: {error}") from error
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if lenient:
        return text
    raise LabelingFunctionError(
        f"Labeling function {function.name!r} failed on {place}: {text}. "
        "Correct the function, or pass on_error='abstain' to go on without its vote there."
    ) from error


def _read_answers(returned: Any) -> tuple[Batch, BoolArray]:
    """Return labels and mask from one object per row or any kind of array; no labels from anything else."""
    if isinstance(returned, np.ma.MaskedArray):
        labels, observed = _read_answers(np.asarray(returned.data))
        return labels, observed & ~np.ma.getmaskarray(returned).reshape(len(labels), -1).any(axis=1)
    if not isinstance(returned, (Column, np.ndarray, list, tuple)):
        wrapped = nw.from_native(returned, pass_through=True, allow_series=True)
        if isinstance(wrapped, nw.Series):
            returned = column_of_series(wrapped)
        elif hasattr(returned, "to_pylist"):  # an Arrow array that is in one piece
            returned = returned.to_pylist()
        else:
            some = hasattr(returned, "__len__") and not isinstance(returned, (str, bytes, dict))
            returned = np.asarray(returned if some else [])
    if isinstance(returned, Column):
        return returned.values, ~returned.null
    if isinstance(returned, np.ndarray):
        if returned.ndim == 0 or len(returned) == 0:
            return np.zeros(0), np.zeros(0, dtype=bool)
        if returned.dtype.kind == "f":
            return returned, ~np.asarray(np.isnan(returned).reshape(len(returned), -1).all(axis=1))
        if returned.dtype.kind in "biu":
            return returned, np.ones(len(returned), dtype=bool)
        returned = returned.astype(object)
    objects = np.fromiter(returned, dtype=object, count=len(returned))
    null = null_mask(objects)
    labels = tighten(objects, null)
    if labels.dtype == object and any(isinstance(one, (list, tuple, np.ndarray)) for one in objects[~null][:1]):
        table, seen = read_cells([[value] for value in objects], allow_partial=True)
        return table[:, 0], seen[:, 0]
    return labels, ~null


def _encoded(
    function: LabelingFunction,
    labels: Batch,
    observed: BoolArray,
    failed: dict[int, str],
    space: LabelSpace | None,
    lenient: bool,
    first_row: int,
) -> Answers:
    """Return labels checked by the space and stored small: as its codes where it has a finite number of them.

    With `lenient` a label that is none of the space's counts as a failure; otherwise the error names its row.
    """
    if function.abstain is not None and labels.ndim == 1:
        observed = observed & differs_from(labels, function.abstain)
    # The rule of `fit`: among whole numbers, -1 abstains, unless it is a label.
    if labels.dtype.kind in "iu" and labels.ndim == 1 and (space is None or not space.contains(-1)):
        observed = observed & (labels != -1)
    batch = None
    if space is not None and observed.any():
        try:
            batch = space.as_batch(labels[observed])
        except InvalidLabelError as error:
            if not lenient:
                row = "" if error.index is None else f", row {first_row + int(np.flatnonzero(observed)[error.index])}"
                raise InvalidLabelError(f"Labeling function {function.name!r}{row}: {error}", error.index) from None
            observed = observed.copy()
            for place in np.flatnonzero(observed).tolist():
                try:
                    space.as_batch(labels[place : place + 1])
                except InvalidLabelError as refusal:
                    failed[place], observed[place] = str(refusal), False
            batch = space.as_batch(labels[observed]) if observed.any() else None
    first = min(failed, default=0)
    fault = Fault(len(failed), first_row + first, failed[first]) if failed else None
    if space is None or batch is None or not _has_codes(space):
        return Answers(_shrink(labels, observed), observed, labels.dtype, fault)
    codes = np.zeros((len(labels), *batch.shape[1:]), dtype=batch.dtype)
    codes[observed] = batch
    return Answers(codes, observed, labels.dtype, fault)


def join_ids(columns: Sequence[Column], item: str | None, first_row: int = 0) -> npt.NDArray[Any] | None:
    """Return the ids in the column `item` of several chunks, the first of which begins with `first_row`, if any."""
    if not columns:
        return None
    null = np.concatenate([column.null for column in columns])
    if null.any():
        row = first_row + int(np.argmax(null))
        raise InvalidVotesError(f"Row {row} has no item id in column {item!r}. Fill it in.")
    dtype = common_dtype([column.values.dtype for column in columns])
    return np.concatenate([column.values.astype(dtype, copy=False) for column in columns])


def join_answers(chunks: Sequence[Sequence[Answers]], space: LabelSpace | None) -> tuple[Batch, BoolArray, Any]:
    """Return labels ``(n, m, ...)``, mask ``(n, m)`` and spelling of the answers of m functions to several chunks."""
    starts = np.cumsum([0, *(len(chunk[0].observed) for chunk in chunks)])
    observed = np.zeros((int(starts[-1]), len(chunks[0])), dtype=bool)
    voting = [one for chunk in chunks for one in chunk if one.observed.any()]
    shapes = {one.labels.shape[1:] for one in voting}
    soft = max(shapes, key=len, default=())
    coded = space is not None and _has_codes(space)
    same_shape = len(shapes) <= 1 or coded  # with rows of probabilities present, classes become such rows, too
    dtype = common_dtype([one.labels.dtype for one in voting]) if voting else np.dtype(np.int8 if coded else object)
    labels = blank((*observed.shape, *soft), dtype) if same_shape else blank(observed.shape, object)
    for start, chunk in zip(starts, chunks, strict=False):
        for source, one in enumerate(chunk):
            rows = start + np.flatnonzero(one.observed)
            observed[rows, source] = True
            values = one.labels[one.observed]
            if coded and values.ndim < labels.ndim - 1:
                values = np.eye(soft[0])[values.astype(np.int64)]
            elif not same_shape:
                values = as_object_array(values)
            labels[rows, source] = values
    named = coded and any(one.spelling.kind == "O" for one in voting)
    return labels, observed, np.dtype(object) if named else None


def _has_codes(space: LabelSpace) -> bool:
    """Return whether ``0 .. k-1`` stand for the labels: not where the labels are numbers themselves."""
    if space.n_labels is None:
        return False
    codes = np.arange(min(space.n_labels, 1024))
    try:
        return np.array_equal(space.as_batch(codes), codes)
    except InvalidLabelError:
        return False


def _shrink(labels: Batch, observed: BoolArray) -> npt.NDArray[Any]:
    """Return whole numbers in the smallest type that holds them."""
    if labels.dtype.kind not in "iu" or not observed.any():
        return labels
    present = labels[observed]
    dtype = np.min_scalar_type(min(int(present.min()), -int(present.max()) - 1))
    if dtype.kind != "i":  # beyond 64 bits
        return labels
    return np.where(observed.reshape(-1, *[1] * (labels.ndim - 1)), labels, 0).astype(dtype)
