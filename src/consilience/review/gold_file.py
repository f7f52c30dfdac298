"""The file that answers are appended to: one line each, on disk before the page says so, and never rewritten.

The last line of an item counts. An answer that was taken back is a line, too, so nothing that anybody said is lost.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from consilience.exceptions import FileFormatError
from consilience.tables.files import csv_text, why

FIELDS = ("item", "label", "probability", "status", "person", "time", "comment")
ANSWERED, SKIPPED, CANNOT_TELL, UNDONE = "answered", "skipped", "cannot tell", "undone"


def last_answers(records: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the last record of each item, without those that were taken back.

    Examples
    --------
    >>> lines = [{"item": "x", "status": "answered"}, {"item": "y", "status": "answered"}]
    >>> list(last_answers([*lines, {"item": "x", "status": "undone"}]))
    ['y']
    """
    last: dict[str, Mapping[str, Any]] = {}
    for record in records:
        last.pop(str(record["item"]), None)
        if record["status"] != UNDONE:
            last[str(record["item"])] = record
    return last


@dataclass(frozen=True)
class GoldFile:
    """A CSV file of answers that several programs may append to at once."""

    path: Path

    def prepare(self) -> None:
        """Make the file if it is not there, and see that it was written by `review`."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._locked() as file:
                data = file.read()
                if not data:
                    file.write(_line(FIELDS))
                    _to_disk(file)
                    return
                rows = list(csv.reader(io.StringIO(data.decode("utf-8"), newline="")))
                if tuple(rows[0]) != FIELDS:
                    raise FileFormatError(
                        f"{str(self.path)!r} was not written by `consilience review`: its columns are "
                        f"{', '.join(map(repr, rows[0]))}. Give --gold the name of a new file."
                    )
                if not data.endswith(b"\n"):
                    # A truncated line was never acknowledged. It is terminated here and skipped by `records`.
                    file.write(b'"\n' if data.count(b'"') % 2 else b"\n")
                    _to_disk(file)
        except UnicodeDecodeError:
            raise FileFormatError(f"{str(self.path)!r} is not text in UTF-8. Give --gold another file.") from None
        except OSError as error:
            raise FileFormatError(f"Cannot write {str(self.path)!r}: {why(error)}. Choose another file.") from None

    def append(self, **values: Any) -> None:
        """Append one answer; it is on disk when this returns."""
        values["time"] = datetime.now(UTC).isoformat(timespec="seconds")
        with self._locked() as file:
            file.write(_line([values.get(name, "") for name in FIELDS]))
            _to_disk(file)

    def records(self) -> list[dict[str, str]]:
        """Return every line in the order in which they were written."""
        with self.path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            next(rows, None)
            return [dict(zip(FIELDS, row, strict=True)) for row in rows if len(row) == len(FIELDS)]

    @contextmanager
    def _locked(self) -> Iterator[Any]:
        with self.path.open("a+b", buffering=0) as file:
            try:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)  # closing the file releases the lock, even if the process is killed
            except ImportError:  # on Windows appending alone keeps lines whole
                pass
            file.seek(0)
            yield file


def _line(values: Iterable[Any]) -> bytes:
    return csv_text([values]).encode("utf-8", errors="replace")


def _to_disk(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
