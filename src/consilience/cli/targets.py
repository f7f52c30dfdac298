"""Files that a command writes: all of them or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from consilience.exceptions import ConsilienceError, FileFormatError
from consilience.tables.files import file_format

__all__ = ["STDOUT", "Writer", "check_table_name", "check_targets", "write_all"]

Writer = Callable[[Path], None]
#: Where a table goes that another program reads: as CSV to the standard output.
STDOUT = Path("-")


def check_table_name(target: Path) -> None:
    """Refuse a name that says nothing about the format of a table."""
    if target != STDOUT:
        file_format(target)


def check_targets(paths: Iterable[Path], *, force: bool) -> None:
    """Refuse, before any work, files that could not be written in the end."""
    seen: set[Path] = set()
    for path in paths:
        if path == STDOUT:
            continue
        if path.is_dir():
            raise FileFormatError(f"{str(path)!r} is a folder. Give the name of a file in it.")
        if path.exists() and not force:
            raise FileFormatError(f"{str(path)!r} is there already. Choose another name, or overwrite it with force.")
        if not path.parent.is_dir():
            raise FileFormatError(f"{str(path.parent)!r}, where {path.name!r} should go, is no folder. Make it first.")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise FileFormatError(f"Cannot write to {str(path.parent)!r}: permission denied. Choose another folder.")
        if path.resolve() in seen:
            raise FileFormatError(f"Two results should go to {str(path)!r}. Give each a file of its own.")
        seen.add(path.resolve())


def write_all(writers: dict[Path, Writer]) -> None:
    """Write several files beside their places, then put all of them there.

    If anything goes wrong before the last file is complete, no place has changed and nothing is left behind.
    """
    staged: dict[Path, Path] = {}
    folders: list[Path] = []
    try:
        for target, write in writers.items():
            folder = _hidden_folder(target)
            folders.append(folder)
            temporary = folder / ("labels.csv" if target == STDOUT else target.name)
            try:
                write(temporary)
            except OSError as error:
                reason = error.strerror or str(error)
                raise FileFormatError(f"Cannot write {str(target)!r}: {reason}. Nothing was changed.") from None
            except ConsilienceError as error:
                raise FileFormatError(str(error).replace(str(temporary), str(target))) from None
            os.chmod(temporary, 0o666 & ~_umask())
            staged[target] = temporary
        for target, temporary in staged.items():
            if target == STDOUT:
                click.echo(temporary.read_bytes(), nl=False)
                continue
            try:
                os.replace(temporary, target)
            except OSError as error:
                reason = error.strerror or str(error)
                raise FileFormatError(f"Cannot write {str(target)!r}: {reason}.") from None
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def _hidden_folder(target: Path) -> Path:
    if target == STDOUT:
        return Path(tempfile.mkdtemp())
    try:
        return Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileFormatError(f"Cannot write to {str(target.parent)!r}: {reason}. Choose another folder.") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
