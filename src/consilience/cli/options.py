"""Options that several commands share: how to read votes, what to print, and which engine computes."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from consilience.cli.commands import NAMES
from consilience.cli.output import Output
from consilience.tables.cleaning import UNLISTED
from consilience.tables.files import check_exists
from consilience.tables.reading import LAYOUTS
from consilience.tables.reading import Reading as TableReading
from consilience.tables.vote_tables import REPEATS

Function = Callable[..., Any]
SPACE_HELP = (
    "What a label is: classes, ordinal:1..5, scores, rankings, tags, trees, ... (`consilience spaces` lists all). "
    "Guessed from the votes if they are unambiguous."
)
FILE = click.Path(path_type=Path)
ENGINES = ("local", "dask", "spark")
#: Tools that import labels.
TOOLS = ("label-studio", "coco", "argilla", "prodigy", "doccano")
#: What a file of votes can be.
ORIGINS = ("table", "judges", "label-studio", "coco", "argilla", "prodigy", "doccano", "cvat", "ground-truth", "trec")
#: First bytes of tables that are not CSV, and the file extension.
_STARTS = ((b"PAR1", ".parquet"), (b"ARROW1", ".arrow"), (b"FEA1", ".arrow"), (b"{", ".jsonl"))


def table_file(ctx: click.Context, parameter: click.Parameter, value: Path) -> Path:
    """Return the name of a table; ``-`` is the standard input, whose format is seen from how it starts."""
    if str(value) != "-":
        check_exists(value)  # before any message about other files
        return value
    data = sys.stdin.buffer.read()
    if not data:
        raise click.BadParameter("standard input was empty. Pipe a table into it, or name a file.")
    start = data.lstrip()
    ending = next((ending for sign, ending in _STARTS if start.startswith(sign)), ".csv")
    folder = Path(tempfile.mkdtemp())
    ctx.call_on_close(lambda: shutil.rmtree(folder, ignore_errors=True))
    file = folder / f"standard-input{ending}"
    file.write_bytes(data)
    ctx.meta.setdefault(NAMES, {})[str(file)] = "-"
    return file


VOTES = click.argument("votes", type=FILE, callback=table_file, metavar="VOTES")
MODEL = click.argument("model", type=FILE, metavar="MODEL")
SHOW = click.option(
    "--show",
    metavar="COLUMNS",
    help="Report: columns of VOTES to show with the items (question,answer), or a table of items with their ids.",
)
FORCE = click.option("--force", is_flag=True, help="Overwrite existing files.")
SEED = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Random seed; results are reproducible for a given seed.",
)


def page_file(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """Return the name of a page, which has to end in .html, so that a browser opens it."""
    if value is not None and value.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter(f"{str(value)!r} does not end in .html. Write {parameter.opts[-1]} page.html.")
    return value


def target(what: str, callback: Any = None) -> Callable[[Function], Function]:
    """Add a required `-o`."""
    return click.option(
        "-o", "--output", "target", type=FILE, required=True, metavar="FILE", callback=callback, help=what
    )


def gold(required: bool = False) -> Callable[[Function], Function]:
    """Add `--gold`, and the options that name the columns of its file; these go to the `reading`."""
    text = "Known labels of some items: a file with item and label columns, or a column of VOTES."
    options = [
        click.option("--gold", metavar="FILE_OR_COLUMN", required=required, help=text),
        click.option("--gold-item", metavar="COLUMN", help="Column of item ids in the file of known labels."),
        click.option("--gold-label", metavar="COLUMN", help="Column of labels in the file of known labels."),
    ]

    return lambda function: _with(options, function)


def _with(options: Sequence[Callable[[Function], Function]], function: Function) -> Function:
    """Return a command with some options, in this order."""
    for option in reversed(options):
        function = option(function)
    return function


def _grouped(
    options: Sequence[Callable[[Function], Function]], names: Sequence[str], join: Callable[..., dict[str, Any]]
) -> Callable[[Function], Function]:
    """Return a decorator that adds options, and hands over what `join` makes of those with these names."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def command(**values: Any) -> Any:
            given = {name: values.pop(name) for name in names if name in values}
            return function(**join(**given), **values)

        return _with(options, command)

    return decorate


def printing(function: Function) -> Function:
    """Add `--json` and `--quiet`; the command gets them as one `output`."""
    options = [
        click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document."),
        click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
    ]
    return _grouped(options, ("as_json", "quiet"), lambda **given: {"output": Output(**given)})(function)


@dataclass(frozen=True)
class Writing:
    """Where labels go, and how."""

    target: Path
    ties: float | None = None
    safe_csv: bool = False
    force: bool = False


def writing(function: Function) -> Function:
    """Add the options that say where labels go; the command gets them as one `writing`."""
    options = [
        target("Output file: .csv, .tsv, .jsonl, .parquet or .arrow; - prints them as CSV."),
        click.option("--ties", type=click.FloatRange(0.5, 1.0), metavar="P",
                     help="Rankings: tie neighbors whose order has a probability below P."),
        click.option("--safe-csv", is_flag=True,
                     help="CSV: put ' before cells that a spreadsheet would take for a formula."),
        FORCE,
    ]  # fmt: skip
    names = tuple(Writing.__dataclass_fields__)
    return _grouped(options, names, lambda **given: {"writing": Writing(**given)})(function)


@dataclass(frozen=True)
class Reading(TableReading):
    """How to read a file of votes: which columns hold what, what the labels and the file are, and who computes."""

    space: str | None = None
    gold_item: str | None = None
    gold_label: str | None = None
    origin: str | None = None
    to: str | None = None
    field: str | None = None
    outside: str = "refuse"
    unlisted: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    engine: str | None = None
    scheduler: str | None = None
    master: str | None = None
    on_error: str = "raise"
    resume: bool = False


def reading(*, space: bool = True, item: bool = True, engine: str | None = None) -> Callable[[Function], Function]:
    """Add the options that say how to read votes; the command gets them as one `reading`.

    With `engine`, those that say where to compute, too; it is "labels" for a command that writes a folder of them, so
    that a run may be continued, and "numbers" for others.
    """
    purpose = "labels go to a folder" if engine == "labels" else "only summary statistics are transferred"
    options = [
        click.option("--from", "origin", type=click.Choice(ORIGINS),
                     help="What VOTES is: a table, replies of LLM judges, or the export of another tool. Detected "
                          "by default, except for judges and doccano files without users."),
        click.option("--field", metavar="NAME", help="Exports of tools: the question or control to read."),
        click.option("--outside", type=click.Choice(("refuse", "clip")), default="refuse", show_default=True,
                     help="COCO: boxes that extend beyond their image."),
        *[click.option("--space", metavar="TYPE", help=SPACE_HELP)] * space,
        *[click.option("--item", metavar="COLUMN",
                       help="Column of item ids; found by its name (item, id, task, ...).")] * item,
        click.option("--source", metavar="COLUMN", help="Long tables: column of voters (source, worker, judge, ...)."),
        click.option("--label", metavar="COLUMN", help="Long tables: column of votes (label, answer, score, ...)."),
        click.option("--sources", metavar="A,B,...", callback=_names, help="Only these sources."),
        click.option("--drop", metavar="A,B,...", callback=_names, help="Columns or sources to leave out."),
        click.option("--layout", type=click.Choice(LAYOUTS), default="auto", show_default=True,
                     help="Wide: a row per item, a column per source. Long: a row per vote."),
        click.option("--abstain", metavar="VALUE",
                     help="Value that means \"abstain\", in addition to empty cells; -1 is detected."),
        click.option("--repeats", type=click.Choice(REPEATS), default="identical", show_default=True,
                     help="Several votes of one source on one item: merge identical ones only, or choose how."),
        click.option("--strict", is_flag=True,
                     help="Refuse invalid cells, repeated rows and columns of texts; guess nothing; N/A is a label."),
        click.option("--fold", is_flag=True, help="Join labels that differ only in case or blanks."),
        click.option("--unlisted", type=click.Choice(UNLISTED),
                     help="Rankings: items missing from a list are ranked below it, or were never seen."),
        click.option("--decimal", type=click.Choice((".", ",")),
                     help="Decimal sign of numbers in text (detected by default)."),
        click.option("--delimiter", metavar="SIGN", callback=_sign, help="CSV delimiter (detected by default)."),
        click.option("--encoding", default="utf-8", show_default=True, help="Text encoding."),
    ]  # fmt: skip
    if engine is not None:
        options += [
            click.option("--engine", type=click.Choice(ENGINES),
                         help=f"Read Parquet or Arrow VOTES in pieces, here or on a cluster; {purpose}."),
            click.option("--scheduler", metavar="ADDRESS",
                         help="Address of the Dask scheduler; by default a cluster of this machine's cores."),
            click.option("--master", metavar="URL", help="Spark master URL, e.g. local[4] or spark://host:7077."),
            click.option("--on-error", type=click.Choice(("raise", "abstain")), default="raise", show_default=True,
                         help="With --engine: stop at a cell that is not a label, or let it abstain and count it."),
        ]  # fmt: skip
    if engine == "labels":
        back = "Write labels for this tool to import; VOTES is its export."
        options.insert(0, click.option("--to", type=click.Choice(TOOLS), help=back))
        resuming = "With --engine local or dask: continue a run that was stopped."
        options.append(click.option("--resume", is_flag=True, help=resuming))
    return _grouped(options, tuple(Reading.__dataclass_fields__), _reading)


def _reading(**given: Any) -> dict[str, Any]:
    found = Reading(**{**given, "drop": given["drop"] or ()})
    for option, value, engines in (
        ("--scheduler", found.scheduler, ("dask",)),
        ("--master", found.master, ("spark",)),
        ("--resume", found.resume, ("local", "dask")),
        ("--on-error", found.on_error != "raise", ENGINES),
    ):
        if value and option == "--resume" and found.engine == "spark":
            raise click.UsageError(
                "--resume does not work with Spark, which cannot continue a stopped run. Label again with "
                "--force, or use --engine local or dask, which write file by file."
            )
        if value and found.engine not in engines:
            raise click.UsageError(f"{option} requires --engine ({' or '.join(engines)}).")
    return {"reading": found}


def _names(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    names = None if value is None else tuple(name.strip() for name in value.split(",") if name.strip())
    if names == ():
        raise click.BadParameter("name at least one, separated by commas.")
    return names


def _sign(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    sign = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";"}.get(value or "", value)
    if sign is not None and len(sign) != 1:
        raise click.BadParameter(f"{value!r} is not a single character. Write ',' or ';' or '\\t'.")
    return sign
