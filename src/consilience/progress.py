"""What long work is doing, how far it is and how long is left: a bar, after two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer, local
from typing import Any

#: Seconds without a bar.
PATIENCE = 2.0
_own = local()


class Bar:
    """The bar of all work of one thread; `shown` True draws it at once and anywhere, False never."""

    def __init__(self, shown: bool | None) -> None:
        self.in_notebook = "ipykernel" in sys.modules
        self.waits = shown is None
        self.wanted = sys.stderr.isatty() or self.in_notebook if shown is None else shown
        self.start = time.monotonic()
        self.what, self.done = "", 0.0
        self.total: float | None = None
        self._lock = Lock()
        self._drawn: Any = None

    def begin(self, what: str, total: float | None) -> None:
        """Begin to count up to a total, if that is known."""
        with self._lock:
            self.what, self.total, self.done = what, total, 0.0
            if self._drawn is not None:
                self._drawn.remove_task(self._drawn.task_ids[0])
                self._drawn.add_task(what, total=total)

    def advance(self, amount: float) -> None:
        """Count what is done."""
        self.done += amount
        self.show()

    def show(self) -> None:
        """Draw the bar, unless nobody wants to see it yet."""
        if not self.wanted or (self.waits and time.monotonic() - self.start < PATIENCE):
            return
        with self._lock:
            if self._drawn is None:
                self._drawn = self._new()
            self._drawn.update(self._drawn.task_ids[0], completed=self.done)

    def close(self) -> None:
        """Take the bar away."""
        with self._lock:
            self.wanted = False
            if self._drawn is not None:
                self._drawn.stop()

    def _new(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        # A notebook shows what a terminal does, as long as it is one line; anything more needs packages.
        line = self.in_notebook or None
        drawn = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(file=sys.stderr, force_terminal=line, force_jupyter=False),
            transient=self.waits,
        )
        drawn.add_task(self.what, total=self.total)
        drawn.start()
        return drawn


@contextmanager
def working(
    what: str = "", total: float | None = None, *, shown: bool | None = None, forks: bool = False
) -> Iterator[Bar]:
    """Show what takes a while, and how far it is; work inside of other work has the same bar.

    Nothing is drawn for two seconds, nor where stderr is neither a terminal nor a notebook, unless `shown` says so.
    Work that `forks` draws nothing before the first count: processes must not be forked off a drawing thread.
    """
    outer: Bar | None = getattr(_own, "bar", None)
    if outer is not None:
        before = outer.what, outer.total
        outer.begin(what or outer.what, total)
        yield outer
        outer.begin(*before)
        return
    bar = _own.bar = Bar(shown)
    bar.begin(what, total)
    timer = Timer(PATIENCE, bar.show) if bar.wanted and bar.waits and not forks else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield bar
    finally:
        _own.bar = None
        if timer is not None:
            timer.cancel()
        bar.close()
