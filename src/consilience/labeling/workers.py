"""The same work in several processes: a few pieces of data at a time, and results in order."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from consilience.exceptions import InvalidVotesError, LabelingFunctionError, UnsupportedError
from consilience.labeling.chunks import Task
from consilience.partitions.threads import count_threads, in_order


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
        yield from in_order(submit, tasks, 2 * n_jobs)  # so that neither rows nor results pile up
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
