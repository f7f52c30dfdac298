"""A progress bar on stderr, for work that takes long enough to wonder."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

__all__ = ["ProgressBar"]

#: Seconds without a bar.
PATIENCE = 2.0


class ProgressBar:
    """Counts votes; shows itself on a terminal once the work has taken two seconds.

    Parameters
    ----------
    total
        Votes to come, None if unknown.
    shown
        True from the start and on any kind of stderr, False never, None as described.
    """

    def __init__(self, total: int | None, shown: bool | None) -> None:
        self.total = total
        self.done = 0
        self.waits = shown is None
        self.wanted = sys.stderr.isatty() if shown is None else shown
        self.start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, votes: int) -> None:
        """Count votes."""
        self.done += votes
        if not self.wanted:
            return
        if self._bar is None:
            # Not before the first votes: worker processes must not be forked off a drawing thread.
            if self.waits and time.monotonic() - self.start < PATIENCE:
                return
            self._open()
        self._bar.update(self._task, completed=self.done)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
        self._bar = Progress(*columns, console=Console(file=sys.stderr), transient=self.waits)
        self._task = self._bar.add_task("votes", total=self.total)
        self._bar.start()
