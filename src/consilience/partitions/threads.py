"""Work in several threads, each with single-threaded linear algebra."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock, local
from typing import Any, TypeVar

from consilience.exceptions import UnsupportedError

T = TypeVar("T")
R = TypeVar("R")

#: Chunks submitted ahead, per thread: results come in order, so a slow chunk delays those after it.
AHEAD = 2
#: The environment variable with the number of threads.
VARIABLE = "CONSILIENCE_THREADS"
_own = local()
_lock = Lock()
#: The limits on linear algebra, one for each open block; the first one restores the original limits.
_limits: list[Any] = []


def count_threads(workers: int, name: str = "workers", what: str = "threads") -> int:
    """Return the number of threads, or of something else; -1 means one per processor."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers == 0 or workers < -1:
        raise UnsupportedError(f"{name}={workers!r} is not a number of {what}. Use 1, 2, ..., or -1 for all cores.")
    if workers > 0:
        return workers
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usual_threads() -> int:
    """Return the number of threads for votes in memory: one per processor, unless the environment asks for fewer.

    ``CONSILIENCE_THREADS`` decides, or else ``OMP_NUM_THREADS``, which clusters set to share processors. Inside a
    thread of this library it is one.
    """
    if getattr(_own, "inside", False):
        return 1
    asked, shared = os.environ.get(VARIABLE, ""), os.environ.get("OMP_NUM_THREADS", "")
    if asked and not (asked.isdigit() and int(asked) > 0):
        raise UnsupportedError(f"{VARIABLE}={asked!r} is not a number of threads. Set it to 1, 2, ..., or unset it.")
    if asked:
        return int(asked)
    processors = count_threads(-1)
    return min(int(shared), processors) if shared.isdigit() and int(shared) > 0 else processors


def map_in_threads(function: Callable[[T], R], values: Iterable[T], workers: int) -> Iterator[R]:
    """Yield the results of a function for each value, in order, computed in several threads.

    Examples
    --------
    >>> list(map_in_threads(abs, [-1, 2, -3], 2))
    [1, 2, 3]
    """
    with one_thread_each(), ThreadPoolExecutor(workers, initializer=setattr, initargs=(_own, "inside", True)) as pool:
        yield from in_order(lambda value: pool.submit(function, value), values, AHEAD * workers)


def in_order(submit: Callable[[T], Any], values: Iterable[T], ahead: int) -> Iterator[Any]:
    """Yield the results of futures in the order of the values, with at most `ahead` futures at a time."""
    waiting: deque[Any] = deque()
    try:
        for value in values:
            waiting.append(submit(value))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for left in waiting:
            left.cancel()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Limit linear algebra to one thread as long as any such block is open."""
    with _lock:
        _limits.append(_libraries().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            found = _limits.pop()
            if not _limits:  # blocks of several threads end in any order
                found.restore_original_limits()


@cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401  its library is looked for, too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
