"""The same work in several processes: a few pieces of data at a time, results in order, and a progress bar."""

from __future__ import annotations

import pickle
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Self

from consilience.exceptions import InvalidVotesError, LabelingFunctionError, UnsupportedError
from consilience.labeling.chunks import Task
from consilience.partitions.threads import count_threads

#: Seconds without a bar.
PATIENCE = 2.0


class ProgressBar:
    """Counts votes, of which `total` are to come if that is known.

    It shows itself on a terminal once the work has taken two seconds; with `shown` True from the start and on any kind
    of stderr, with False never.
    """

    def __init__(self, total: int | None, shown: bool | None) -> None:
        self.total, self.done = total, 0
        self.waits = shown is None
        self.wanted = sys.stderr.isatty() if shown is None else shown
        self.start = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, votes: int) -> None:
        """Count votes."""
        self.done += votes
        if not self.wanted or (self.waits and time.monotonic() - self.start < PATIENCE):
            return
        if self._bar is None:  # not before the first votes: workers must not be forked off a drawing thread
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
            self._bar = Progress(*columns, console=Console(file=sys.stderr), transient=self.waits)
            self._bar.add_task("votes", total=self.total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=self.done)


def count_workers(n_jobs: int) -> int:
    """Return the number of processes; -1 means one per processor."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0 or n_jobs < -1:
        raise InvalidVotesError(f"n_jobs={n_jobs!r} is not a number of processes. Use 1, 2, ..., or -1 for all cores.")
    return count_threads(n_jobs)


#: What a worker does: set before it is forked, or sent to it.
_work: Callable[[Task], Any] | None = None


def run_in_processes(work: Callable[[Task], Any], tasks: Iterator[Task], n_jobs: int, *, fork: bool) -> Iterator[Any]:
    """Yield the results in the order of the tasks.

    Forked workers see the functions and the data of this process, whatever they are. To others the work is sent.
    """
    import multiprocessing
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    global _work  # noqa: PLW0603  forked workers find it here
    _work = work
    waiting: deque[Future[Any]] = deque()
    told: dict[str, Any] = {} if fork else {"initializer": _receive, "initargs": (_pickled(work),)}
    pool = ProcessPoolExecutor(n_jobs, mp_context=multiprocessing.get_context("fork" if fork else "spawn"), **told)
    try:
        for task in tasks:
            with warnings.catch_warnings():
                # Threads that only wait, such as those of linear algebra, do no harm to a fork.
                warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
                waiting.append(pool.submit(_run, task))
            if len(waiting) > 2 * n_jobs:  # so that neither rows nor results pile up
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
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
        raise UnsupportedError("A worker process was not told what to do.")
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
