"""Options that several commands share, and what they say together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from consilience.cli.output import Output

__all__ = ["Reading", "force_option", "gold_option", "output_option", "printing_options", "reading_options"]

Function = Callable[..., Any]
LAYOUTS = ("auto", "wide", "long")
REPEATS = ("refuse", "average", "separate")
SPACE_HELP = (
    "What a label is: classes, ordinal:1..5, scores, rankings, tags, trees, ... (`consilience spaces` lists all). "
    "Guessed from the votes where they leave no choice."
)


@dataclass(frozen=True)
class Reading:
    """How to read a file of votes."""

    space: str | None = None
    layout: str = "auto"
    item: str | None = None
    source: str | None = None
    label: str | None = None
    sources: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    abstain: str | None = None
    repeats: str = "refuse"
    delimiter: str | None = None
    encoding: str = "utf-8"


def reading_options(*, with_space: bool = True, with_item: bool = True) -> Callable[[Function], Function]:
    """Add the options that say how to read votes; the command gets them as one `reading`."""
    options = [
        click.option("--item", metavar="COLUMN", help="Column of item ids; found by its name (item, id, task, ...)."),
        click.option("--source", metavar="COLUMN", help="Long tables: column of voters (source, worker, judge, ...)."),
        click.option("--label", metavar="COLUMN", help="Long tables: column of votes (label, answer, score, ...)."),
        click.option("--sources", metavar="A,B,...", callback=_names, help="Only these sources."),
        click.option("--drop", metavar="A,B,...", callback=_names, help="Columns or sources to leave out."),
        click.option("--layout", type=click.Choice(LAYOUTS), default="auto", show_default=True,
                     help="Wide: a row per item, a column per source. Long: a row per vote."),
        click.option("--abstain", metavar="VALUE", help="What stands for an abstention, beside empty cells."),
        click.option("--repeats", type=click.Choice(REPEATS), default="refuse", show_default=True,
                     help="Long tables: several votes of one source on one item."),
        click.option("--delimiter", metavar="SIGN", callback=_sign, help="Of a CSV file; found out by default."),
        click.option("--encoding", default="utf-8", show_default=True, help="Of a text file."),
    ]  # fmt: skip
    if not with_item:
        options.pop(0)
    if with_space:
        options.insert(0, click.option("--space", metavar="TYPE", help=SPACE_HELP))

    def decorate(function: Function) -> Function:
        @wraps(function)
        def command(**values: Any) -> Any:
            names = [name for name in Reading.__dataclass_fields__ if name in values]
            given = {name: values.pop(name) for name in names}
            given["drop"] = given["drop"] or ()
            return function(reading=Reading(**given), **values)

        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def printing_options(function: Function) -> Function:
    """Add `--json` and `--quiet`; the command gets them as one `output`."""

    @wraps(function)
    def command(as_json: bool, quiet: bool, **values: Any) -> Any:
        return function(output=Output(as_json, quiet), **values)

    command = click.option("-q", "--quiet", is_flag=True, help="Print errors only.")(command)
    return click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")(command)


def output_option(what: str) -> Callable[[Function], Function]:
    """Add a required `-o`."""
    path = click.Path(path_type=Path)
    return click.option("-o", "--output", "target", type=path, required=True, metavar="FILE", help=what)


def gold_option(required: bool = False) -> Callable[[Function], Function]:
    """Add `--gold`."""
    text = "Known labels of some items: a file with item and label columns, or a column of VOTES."
    return click.option("--gold", metavar="FILE_OR_COLUMN", required=required, help=text)


def force_option(function: Function) -> Function:
    """Add `--force`."""
    return click.option("--force", is_flag=True, help="Replace files that are there already.")(function)


def _names(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    if not names:
        raise click.BadParameter("name at least one, separated by commas.")
    return names


def _sign(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    sign = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";"}.get(value or "", value)
    if sign is not None and len(sign) != 1:
        raise click.BadParameter(f"{value!r} is not one sign. Write ',' or ';' or '\\t'.")
    return sign
