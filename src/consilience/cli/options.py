"""Options that several commands share: how to read votes, what to print, and which engine computes."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from consilience.cli.commands import rename_in_messages
from consilience.cli.output import Output
from consilience.exceptions import needed
from consilience.label_types.base import LabelSpace
from consilience.partitions import DaskPartitions, ParquetPartitions, SparkPartitions, VotePartitions, spark_session
from consilience.tables import reading, vote_tables
from consilience.tables.notation import guess_space, space_of_text

Function = Callable[..., Any]
SPACE_HELP = (
    "What a label is: classes, ordinal:1..5, scores, rankings, tags, trees, ... (`consilience spaces` lists all). "
    "Guessed from the votes where they leave no choice."
)


@dataclass(frozen=True)
class Reading(reading.Reading):
    """How to read a file of votes: which columns hold what, and what the labels and the file are."""

    space: str | None = None
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
        click.option("--layout", type=click.Choice(reading.LAYOUTS), default="auto", show_default=True,
                     help="Wide: a row per item, a column per source. Long: a row per vote."),
        click.option("--abstain", metavar="VALUE", help="What stands for an abstention, beside empty cells."),
        click.option("--repeats", type=click.Choice(vote_tables.REPEATS), default="refuse", show_default=True,
                     help="Long tables: several votes of one source on one item."),
        click.option("--delimiter", metavar="SIGN", callback=_sign, help="Of a CSV file; found out by default."),
        click.option("--encoding", default="utf-8", show_default=True, help="Of a text file."),
    ]  # fmt: skip
    if not with_item:
        options.pop(0)
    if with_space:
        options.insert(0, click.option("--space", metavar="TYPE", help=SPACE_HELP))

    def joined(**given: Any) -> dict[str, Any]:
        return {"reading": Reading(**{**given, "drop": given["drop"] or ()})}

    return _grouped(options, tuple(Reading.__dataclass_fields__), joined)


def _grouped(
    options: Sequence[Callable[[Function], Function]], names: tuple[str, ...], join: Callable[..., dict[str, Any]]
) -> Callable[[Function], Function]:
    """Return a decorator that adds options, and hands over what `join` makes of those with these names."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def command(**values: Any) -> Any:
            given = {name: values.pop(name) for name in names if name in values}
            return function(**join(**given), **values)

        decorated: Function = command
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def printing_options(function: Function) -> Function:
    """Add `--json` and `--quiet`; the command gets them as one `output`."""
    options = [
        click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document."),
        click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
    ]
    return _grouped(options, ("as_json", "quiet"), lambda **given: {"output": Output(**given)})(function)


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


ENGINES = ("local", "dask", "spark")
#: Items that show the label type, where none was named.
SHOWN = 50_000


@dataclass(frozen=True)
class Engine:
    """Where to compute."""

    name: str
    scheduler: str | None = None
    master: str | None = None
    on_error: str = "raise"
    resume: bool = False


def engine_options(*, writes: bool = True) -> Callable[[Function], Function]:
    """Add `--engine` and what belongs to it; the command gets them as one `engine`, or None.

    `writes` says whether the command writes labels, so that a run may be continued.
    """
    purpose = "labels go to a folder" if writes else "only numbers and a few items come here"
    options = [
        click.option("--engine", "engine_name", type=click.Choice(ENGINES),
                     help=f"Read Parquet or Arrow VOTES in pieces, here or on a cluster; {purpose}."),
        click.option("--scheduler", metavar="ADDRESS", help="Of Dask; by default a cluster of this machine's cores."),
        click.option("--master", metavar="URL", help="Of Spark, such as local[4] or spark://host:7077."),
        click.option("--on-error", type=click.Choice(("raise", "abstain")), default="raise", show_default=True,
                     help="With --engine: whether a cell that is no label stops, or abstains and is counted."),
    ]  # fmt: skip
    if writes:
        resuming = "With --engine local or dask: continue a run that was stopped."
        options.append(click.option("--resume", is_flag=True, help=resuming))

    def engine_of(
        engine_name: str | None, scheduler: str | None, master: str | None, on_error: str, resume: bool = False
    ) -> dict[str, Any]:
        given = {"--scheduler": scheduler, "--master": master, "--resume": resume, "--on-error": on_error != "raise"}
        allowed = {None: (), "local": ("--resume", "--on-error"), "dask": ("--scheduler", "--resume", "--on-error")}
        allowed["spark"] = ("--master", "--on-error")
        for option, value in given.items():
            if option == "--resume" and value and engine_name == "spark":
                raise click.UsageError(
                    "--resume: Spark commits its files by its own rules and does not continue a run. Label again with "
                    "--force, or use --engine local or dask, which write file by file."
                )
            if value and option not in allowed[engine_name]:
                fitting = [name for name, options in allowed.items() if name is not None and option in options]
                raise click.UsageError(f"{option} goes with --engine {' or '.join(fitting)}.")
        engine = None if engine_name is None else Engine(engine_name, scheduler, master, on_error, resume)
        return {"engine": engine}

    names = ("engine_name", "scheduler", "master", "on_error", "resume")
    return _grouped(options, names, engine_of)


def guessed_space(votes: Path, reading: Reading, gold: str | None, output: Output) -> LabelSpace:
    """Return the label type that was named, or guess it from a sample of the items and say so."""
    drop = reading.drop if gold is None else (*reading.drop, gold)
    parts = ParquetPartitions(votes, item=reading.item, sources=reading.sources, drop=drop, abstain=reading.abstain)
    sample = parts.sample(SHOWN, 0).whole.votes
    if reading.space is not None:
        return space_of_text(reading.space, sample)
    guess = guess_space(sample)
    output.note(f"labels look like {guess.space!r}: {guess.reason}; override with --space")
    return guess.space


@contextmanager
def opened(
    engine: Engine, votes: Path, space: LabelSpace, reading: Reading, gold: str | None = None
) -> Iterator[VotePartitions]:
    """Give the votes to an engine, which ends with the block if it was started here."""
    _check_reading(reading)
    options: dict[str, Any] = {"item": reading.item, "sources": reading.sources, "drop": reading.drop, "gold": gold}
    options |= {"abstain": reading.abstain, "on_error": engine.on_error}
    if engine.name == "local":
        yield ParquetPartitions(votes, space, **options)
    elif engine.name == "dask":
        with _dask_client(engine.scheduler) as client:
            yield DaskPartitions(votes, space, client=client, **options)
    else:
        session = spark_session(engine.master)
        try:
            yield SparkPartitions(session.read.parquet(str(votes.resolve())), space, **options)
        finally:
            session.stop()


@contextmanager
def _dask_client(scheduler: str | None) -> Iterator[Any]:
    distributed = needed("distributed", "The Dask engine", "dask")
    with distributed.Client(scheduler) as client:
        yield client


def _check_reading(reading: Reading) -> None:
    plain = Reading()
    for name in ("source", "label", "repeats", "delimiter"):
        if getattr(reading, name) != getattr(plain, name):
            raise click.UsageError(f"--{name} is for tables that are read whole, without --engine.")
    if reading.layout == "long":
        raise click.UsageError(
            "--engine needs one row per item. Turn the table into one first: consilience convert IN OUT --to wide."
        )
