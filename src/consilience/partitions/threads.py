"""Work spread over threads, each of which has its linear algebra to itself."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock, local
from typing import Any, TypeVar

import numpy as np

from consilience.exceptions import UnsupportedError

__all__ = ["count_threads", "map_in_threads", "one_thread_each", "usual_threads"]

T = TypeVar("T")
R = TypeVar("R")

#: Chunks on their way, per thread: results come in order, so a slow chunk holds up those after it.
AHEAD = 2
#: Says how many threads to use where nothing else does.
VARIABLE = "CONSILIENCE_THREADS"
_lock = Lock()
_own = local()
_inside = 0
_before: list[int] = []


def count_threads(workers: int) -> int:
    """Return the number of threads; -1 means one per processor.

    Examples
    --------
    >>> count_threads(3)
    3
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers == 0 or workers < -1:
        raise UnsupportedError(f"workers={workers!r} is not a number of threads. Use 1, 2, ..., or -1 for all cores.")
    if workers > 0:
        return workers
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usual_threads() -> int:
    """Return how many threads go over votes in memory: one per processor, unless the environment asks for fewer.

    ``CONSILIENCE_THREADS`` decides, or else ``OMP_NUM_THREADS``, by which clusters share out their processors. Inside
    a thread of ours it is one.
    """
    if getattr(_own, "inside", False):
        return 1
    asked = os.environ.get(VARIABLE, "")
    if asked:
        if not asked.isdigit() or int(asked) == 0:
            raise UnsupportedError(
                f"{VARIABLE}={asked!r} is not a number of threads. Set it to 1, 2, ..., or unset it."
            )
        return int(asked)
    shared = os.environ.get("OMP_NUM_THREADS", "")
    processors = count_threads(-1)
    return min(int(shared), processors) if shared.isdigit() and int(shared) > 0 else processors


def _enter() -> None:
    _own.inside = True


def map_in_threads(function: Callable[[T], R], values: Iterable[T], workers: int) -> Iterator[R]:
    """Yield what a function returns for each value, in order; compiled code and NumPy run side by side.

    Examples
    --------
    >>> list(map_in_threads(abs, [-1, 2, -3], 2))
    [1, 2, 3]
    """
    waiting: deque[Future[R]] = deque()
    with one_thread_each(), ThreadPoolExecutor(workers, initializer=_enter) as pool:
        try:
            for value in values:
                waiting.append(pool.submit(function, value))
                if len(waiting) >= AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let every call of NumPy's and SciPy's own OpenBLAS take one thread, as long as any such block is open."""
    global _inside, _before  # noqa: PLW0603  the setting is one of the whole process
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = [get() for get, _ in _libraries()]
            for _, put in _libraries():
                put(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                for (_, put), count in zip(_libraries(), _before, strict=True):
                    put(count)


@cache
def _libraries() -> tuple[tuple[Callable[[], int], Callable[[int], Any]], ...]:
    """Return how to read and set the number of threads of each OpenBLAS that came with NumPy or SciPy."""
    beside = Path(np.__file__).resolve().parents[1]
    found = []
    for file in sorted([*beside.glob("numpy.libs/*openblas*"), *beside.glob("scipy.libs/*openblas*")]):
        try:
            library = ctypes.CDLL(str(file))
        except OSError:
            continue
        for ending in ("64_", ""):
            get = getattr(library, f"scipy_openblas_get_num_threads{ending}", None)
            put = getattr(library, f"scipy_openblas_set_num_threads{ending}", None)
            if get is not None and put is not None:
                found.append((get, put))
                break
    return tuple(found)
