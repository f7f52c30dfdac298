"""A table from the standard input: kept in a file of its own until the command has ended."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import click

from consilience.cli.commands import rename_in_messages

__all__ = ["table_file"]

#: How a table starts that is not CSV, and the ending of such files.
_STARTS = ((b"PAR1", ".parquet"), (b"ARROW1", ".arrow"), (b"FEA1", ".arrow"), (b"{", ".jsonl"))


def table_file(ctx: click.Context, parameter: click.Parameter, value: Path) -> Path:
    """Return the name of a table; ``-`` is the standard input, whose format is seen from how it starts."""
    if str(value) != "-":
        return value
    data = sys.stdin.buffer.read()
    if not data:
        raise click.BadParameter("nothing came from the standard input. Pipe a table into it, or name a file.")
    start = data.lstrip()
    ending = next((ending for sign, ending in _STARTS if start.startswith(sign)), ".csv")
    folder = Path(tempfile.mkdtemp())
    ctx.call_on_close(lambda: shutil.rmtree(folder, ignore_errors=True))
    file = folder / f"standard-input{ending}"
    file.write_bytes(data)
    rename_in_messages(ctx, str(file), "-")
    return file
