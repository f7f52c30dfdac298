"""`--engine`: votes that are read in pieces, and labels that go to a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from consilience.cli.options import Reading
from consilience.cli.output import Output

if TYPE_CHECKING:
    from consilience.label_types.base import LabelSpace
    from consilience.partitions.base import VotePartitions

__all__ = ["Engine", "engine_options", "guessed_space", "looking_options", "opened", "write_to_folder"]

Function = Callable[..., Any]
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


def engine_options(function: Function) -> Function:
    """Add `--engine` and what belongs to it; the command gets them as one `engine`, or None."""
    return _with_engine(function, writes=True)


def looking_options(function: Function) -> Function:
    """Add the same for a command that writes no labels."""
    return _with_engine(function, writes=False)


def _with_engine(function: Function, *, writes: bool) -> Function:
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

    @wraps(function)
    def command(
        engine_name: str | None,
        scheduler: str | None,
        master: str | None,
        on_error: str,
        resume: bool = False,
        **values: Any,
    ) -> Any:
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
        return function(engine=engine, **values)

    for option in reversed(options):
        command = option(command)
    return command


def guessed_space(votes: Path, reading: Reading, gold: str | None, output: Output) -> LabelSpace:
    """Return the label type that was named, or guess it from a sample of the items and say so."""
    from consilience.partitions import ParquetPartitions
    from consilience.tables.notation import guess_space, space_of_text

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
    from consilience.partitions import DaskPartitions, ParquetPartitions, SparkPartitions, spark_session

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


def write_to_folder(
    model: Any, partitions: VotePartitions, target: Path, engine: Engine, ties: float | None, *, force: bool
) -> dict[str, int]:
    """Write the labels, and return how many there are and how many cells were skipped."""
    from consilience.partitions import predict_to

    written = predict_to(model, partitions, target, ties=ties, resume=engine.resume, force=force)
    return {"items": written.n_items, "files": written.n_files, "skipped": written.n_skipped}


@contextmanager
def _dask_client(scheduler: str | None) -> Iterator[Any]:
    from consilience.exceptions import MissingPackageError

    try:
        import distributed
    except ImportError:
        raise MissingPackageError("Dask is not installed. Run: pip install 'consilience[dask]'.") from None
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
