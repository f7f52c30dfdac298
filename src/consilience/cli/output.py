"""What commands print: tables on stdout, notes on stderr, one JSON document where that was asked for."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from consilience.cli.commands import in_options
from consilience.cli.targets import STDOUT

if TYPE_CHECKING:
    from consilience.estimation.protocol import Diagnostic

__all__ = ["SHARES", "Output", "diagnostic_rows", "plain"]

#: Columns that are shown in percent.
SHARES = frozenset({"coverage", "overlaps", "conflicts", "accuracy", "agreement", "right"})
#: Cells are cut after this many signs; labels may be whole texts.
WIDEST = 80
_COLOURS = {"error": "bold red", "warning": "yellow", "info": "cyan"}


@dataclass(frozen=True)
class Output:
    """Where a command writes to.

    Parameters
    ----------
    as_json
        Print one JSON document on stdout and no tables.
    quiet
        Print errors only.
    aside
        Print on stderr what would go to stdout, as labels go there.
    """

    as_json: bool = False
    quiet: bool = False
    aside: bool = False

    def beside(self, target: Path) -> Output:
        """Return the output that leaves stdout to the labels, where they go there."""
        if target != STDOUT:
            return self
        if self.as_json:
            raise click.UsageError("-o - and --json would both write to the standard output. Give the labels a file.")
        return replace(self, aside=True)

    @property
    def is_terminal(self) -> bool:
        """Whether somebody reads along, so that colours make sense."""
        return (sys.stderr if self.aside else sys.stdout).isatty()

    def note(self, text: str) -> None:
        """Say something beside the result, on stderr."""
        if not self.quiet:
            click.echo(text, err=True)

    def text(self, text: str) -> None:
        """Print a line of the result."""
        if not (self.quiet or self.as_json):
            click.echo(text, err=self.aside)

    def table(self, columns: Mapping[str, list[Any]], title: str = "") -> None:
        """Print a table: with lines and colours on a terminal, as aligned text elsewhere."""
        if self.quiet or self.as_json:
            return
        shown = {name: [_cell(name, value) for value in values] for name, values in columns.items()}
        is_text = {name: all(isinstance(value, str) for value in values) for name, values in columns.items()}
        if self.is_terminal:
            _rich_table(shown, is_text, title, self.aside)
            return
        if title:
            click.echo(title, err=self.aside)
        rows = [list(shown), *map(list, zip(*shown.values(), strict=True))]
        width = [max(len(row[place]) for row in rows) for place in range(len(shown))]
        for row in rows:
            cells = zip(row, width, is_text.values(), strict=True)
            line = "  ".join(cell.ljust(size) if left else cell.rjust(size) for cell, size, left in cells)
            click.echo(line.rstrip(), err=self.aside)

    def findings(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Print diagnostics: on stdout with the result, or the serious ones on stderr where stdout is not for them."""
        for finding in diagnostics:
            if self.quiet or self.as_json:
                if finding.severity == "error":
                    click.echo(in_options(str(finding)), err=True)
            elif self.is_terminal:
                from rich.console import Console
                from rich.text import Text

                colour = _COLOURS[finding.severity]
                text = Text.assemble((f"{finding.severity} {finding.code}: ", colour), in_options(finding.message))
                Console(highlight=False, stderr=self.aside).print(text)
            else:
                click.echo(in_options(str(finding)), err=self.aside)

    def document(self, content: Mapping[str, Any]) -> None:
        """Print the result as JSON, where that was asked for."""
        if self.as_json:
            click.echo(json.dumps(plain(content), ensure_ascii=False, indent=2, allow_nan=False))

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show that something takes a while, on a terminal."""
        if self.quiet or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console

        with Console(stderr=True).status(f"{what} ..."):
            yield


def plain(value: Any) -> Any:
    """Return a value as JSON has it: arrays as lists, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # NumPy arrays and numbers
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)


def diagnostic_rows(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Return diagnostics as JSON has them."""
    from dataclasses import asdict

    return [asdict(finding) for finding in diagnostics]


def _cell(name: str, value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if name in SHARES:
        return f"{value:.1%}" if name in ("accuracy", "right") else f"{value:.0%}"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.2g}" if 0 < abs(value) < 0.01 else f"{value:.3f}"
    text = str(value)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _rich_table(shown: Mapping[str, list[str]], is_text: Mapping[str, bool], title: str, aside: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    heads = [Column(Text(name), justify="left" if is_text[name] else "right") for name in shown]
    table = Table(*heads, box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", title=title or None)
    for row in zip(*shown.values(), strict=True):
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False, stderr=aside).print(table)
