"""What commands print and write: tables on stdout, notes on stderr, files all together or not at all."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from consilience.cli.commands import NAMES, in_options
from consilience.estimation.protocol import Diagnostic
from consilience.exceptions import FileFormatError
from consilience.json_text import plain
from consilience.progress import working
from consilience.tables.display import SourceTable, aligned, figure, is_numeric
from consilience.tables.files import check_target, replace_files
from consilience.tables.receipt import Receipt

Writer = Callable[[Path], object]
#: Name of the standard output, to which tables are written as CSV.
STDOUT = Path("-")
#: Sources and reasons listed below a receipt.
MOST_FAULTS = 8
#: Cells are cut after this many characters, because labels may be long texts.
WIDEST = 100
_COLORS = {"error": "red", "warning": "yellow", "info": "cyan"}


def check_targets(paths: Iterable[Path], *, force: bool) -> None:
    """Refuse, before any work, files that could not be written in the end."""
    seen: set[Path] = set()
    for path in paths:
        if path == STDOUT:
            continue
        check_target(path, force=force)
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise FileFormatError(f"Cannot write to {str(path.parent)!r}: permission denied. Choose another folder.")
        if path.resolve() in seen:
            raise FileFormatError(f"Two outputs have the same name, {str(path)!r}. Give each its own file.")
        seen.add(path.resolve())


def write_all(writers: Mapping[Path, Writer]) -> None:
    """Write several files, all of them or none; what goes to the standard output is printed in the end."""
    context = click.get_current_context(silent=True)
    shown = {} if context is None else context.meta.setdefault(NAMES, {})

    def known_as(target: Path, write: Writer) -> Writer:
        def written(temporary: Path) -> None:
            shown[str(temporary)] = str(target)
            write(temporary)

        return written

    named = {target: known_as(target, write) for target, write in writers.items()}
    if STDOUT not in named:
        replace_files(named)
        return
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder) / "labels.csv"
        named[printed] = named.pop(STDOUT)
        replace_files(named)
        click.echo(printed.read_bytes(), nl=False)


@dataclass(frozen=True)
class Output:
    """Where a command writes to.

    With `as_json`, one JSON document on stdout and no tables; with `quiet`, errors only. `aside` has what would go to
    stdout on stderr, as labels go to stdout.
    """

    as_json: bool = False
    quiet: bool = False
    aside: bool = False

    def beside(self, target: Path) -> Output:
        """Return the output that leaves stdout to the labels, where they go there."""
        if target == STDOUT and self.as_json:
            raise click.UsageError(
                "-o - and --json would both write to the standard output. Write the labels to a file."
            )
        return replace(self, aside=target == STDOUT)

    @property
    def silent(self) -> bool:
        """Whether text and tables are left out."""
        return self.quiet or self.as_json

    def note(self, text: str) -> None:
        """Say something beside the result, on stderr."""
        if not self.quiet:
            click.echo(text, err=True)

    def receipt(self, receipt: Receipt | None) -> None:
        """Say what became of the cells of a table, and whose cells were not votes."""
        if receipt is None:
            return
        self.note(in_options(str(receipt)))
        columns = receipt.faults.columns
        # Words that mean "no answer" need no examples.
        shown = [place for place, reason in enumerate(columns["reason"]) if not reason.startswith("'")]
        lines = repr(
            SourceTable({name: [cells[place] for place in shown] for name, cells in columns.items()})
        ).splitlines()
        if shown:
            more = [f"... {len(lines) - 1 - MOST_FAULTS} more"] * (len(lines) > MOST_FAULTS + 1)
            self.note("\n".join(f"  {line}" for line in [*lines[: MOST_FAULTS + 1], *more]))

    def text(self, text: str) -> None:
        """Print a line of the result."""
        if not self.silent:
            click.echo(text, err=self.aside)

    def table(self, columns: Mapping[str, list[Any]], title: str = "", needed: Iterable[str] | None = None) -> None:
        """Print a table: with lines and colors on a terminal, as aligned text elsewhere.

        Where a terminal is too narrow, the last columns are hidden that are not `needed`; by default all are.
        """
        if self.silent:
            return
        texts = {name: [figure(name, value) for value in values] for name, values in columns.items()}
        shown = {name: list(map(shortened, own)) for name, own in texts.items()}
        if not (sys.stderr if self.aside else sys.stdout).isatty():
            for line in [*filter(None, [title]), *aligned(shown)]:
                click.echo(line, err=self.aside)
            return
        from rich import box
        from rich.console import Console
        from rich.table import Column, Table
        from rich.text import Text

        console = Console(highlight=False, stderr=self.aside)
        hidden: list[str] = []
        spare = [] if needed is None else [name for name in shown if name not in set(needed)]
        while spare and sum(max(map(len, [name, *texts])) + 3 for name, texts in shown.items()) > console.width:
            hidden.insert(0, spare.pop())
            del shown[hidden[0]]
        heads = [
            Column(Text(name), justify="right" if is_numeric(name, texts) else "left") for name, texts in shown.items()
        ]
        drawn = Table(*heads, box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", title=title or None)
        for row in zip(*shown.values(), strict=True):
            drawn.add_row(*map(Text, row))
        console.print(drawn)
        if hidden:
            click.echo(f"hidden in this narrow terminal: {', '.join(hidden)}", err=self.aside)

    def findings(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Print diagnostics: on stdout with the result, or the serious ones on stderr where stdout is not for them."""
        for finding in diagnostics:
            if not self.silent or finding.severity == "error":
                head, _, rest = in_options(str(finding)).partition(": ")
                shown = f"{click.style(f'{head}:', fg=_COLORS[finding.severity])} {rest}"
                click.echo(shown, err=self.aside or self.silent)

    def document(self, content: Mapping[str, Any]) -> None:
        """Print the result as JSON, where that was asked for."""
        if self.as_json:
            click.echo(json.dumps(plain(content), ensure_ascii=False, indent=2, allow_nan=False))

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show what takes a while, see `consilience.progress`."""
        with working(what, shown=False if self.quiet else None):
            yield


def shortened(text: str) -> str:
    """Return a text of no more than `WIDEST` signs."""
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def counted(number: int, thing: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "label"), counted(1200, "label")
    ('1 label', '1,200 labels')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def columns_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return rows of the same entries as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
