"""A progress bar for long work, shown after two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer, local
from typing import Any

#: Seconds before a bar is shown.
PATIENCE = 2.0
_own = local()


class Bar:
    """The progress bar of one thread. If `shown` is True it is drawn at once and anywhere, if False never."""

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
        """Start a task with a total, if that is known."""
        with self._lock:
            self.what, self.total, self.done = what, total, 0.0
            if self._drawn is not None:
                self._drawn.remove_task(self._drawn.task_ids[0])
                self._drawn.add_task(what, total=total)

    def advance(self, amount: float) -> None:
        """Add to what is done."""
        self.done += amount
        self.show()

    def show(self) -> None:
        """Draw the bar if it is wanted and due."""
        if not self.wanted or (self.waits and time.monotonic() - self.start < PATIENCE):
            return
        with self._lock:
            if self._drawn is None:
                self._drawn = self._new()
            self._drawn.update(self._drawn.task_ids[0], completed=self.done)

    def close(self) -> None:
        """Remove the bar."""
        with self._lock:
            self.wanted = False
            if self._drawn is not None:
                self._drawn.stop()

    def _new(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        # A notebook shows one line like a terminal; more would need further packages.
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
    """Show the progress of some work; nested work uses the same bar.

    By default the bar appears after two seconds, on a terminal or in a notebook only. Work that `forks` processes draws
    nothing before its first progress, because a process must not be forked while a thread draws.
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
