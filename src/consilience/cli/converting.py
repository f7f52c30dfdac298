"""`convert`: tables between file formats, between wide and long, and from the files of other tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from consilience.cli.commands import BadInputError, Command
from consilience.cli.options import Reading, force_option, printing_options, reading_options
from consilience.cli.output import Output
from consilience.cli.streams import table_file

if TYPE_CHECKING:
    from consilience.label_types.base import LabelSpace
    from consilience.votes import Votes

__all__ = ["SOURCES", "TARGETS", "convert"]

TARGETS = ("wide", "long")


@dataclass(frozen=True)
class Found:
    """Votes in a file, their label type where the file says what it is, and what should be said about them."""

    votes: Votes
    space: LabelSpace | None = None
    note: str = ""


def _table(path: Path, reading: Reading) -> Found:
    from consilience.cli.loading import read_raw

    return Found(read_raw(path, reading))


def _judges(path: Path, reading: Reading) -> Found:
    from consilience.tables.judges import read_judges

    _only(reading, "judges", "item", "source", "label", "repeats")
    repeats = "separate" if reading.repeats == "refuse" else reading.repeats
    table = read_judges(path, item=reading.item, judge=reading.source, answer=reading.label, repeats=repeats)
    lost = table.faults.columns
    counts = [f"{who} {count} ({why})" for who, why, count in zip(*(lost[name] for name in _FAULTS), strict=True)]
    return Found(table.votes, table.space, f"replies that are no vote: {', '.join(counts)}" if counts else "")


def _label_studio(path: Path, reading: Reading) -> Found:
    from consilience.tables.label_studio import read_label_studio

    _only(reading, "label-studio", "label")
    export = read_label_studio(path, field=reading.label)
    return Found(export.votes, export.space, f"control {export.field!r} ({export.kind})")


_FAULTS = ("source", "reason", "replies")
#: What votes can be read from.
SOURCES: dict[str, Callable[[Path, Reading], Found]] = {
    "table": _table,
    "judges": _judges,
    "label-studio": _label_studio,
}


@click.command(
    cls=Command,
    examples=(
        "consilience convert votes.csv votes.parquet",
        "consilience convert votes.csv votes-long.csv --to long",
        "consilience convert long.csv wide.jsonl --to wide",
        "consilience convert replies.jsonl judged.csv --from judges --to wide",
    ),
)
@click.argument("source_file", type=click.Path(path_type=Path), callback=table_file, metavar="IN")
@click.argument("target", type=click.Path(path_type=Path), metavar="OUT")
@click.option(
    "--from",
    "origin",
    type=click.Choice(list(SOURCES)),
    help="What IN is: a table, replies of LLM judges, an export of Label Studio. By default .json is the last, "
    "all else a table.",
)
@click.option("--to", "layout_out", type=click.Choice(TARGETS), help="Layout of OUT; that of IN by default.")
@reading_options(with_space=False)
@force_option
@printing_options
def convert(
    source_file: Path,
    target: Path,
    origin: str | None,
    layout_out: str | None,
    reading: Reading,
    force: bool,
    output: Output,
) -> None:
    """Turn votes or labels into another file format or layout.

    The endings of IN and OUT say what they are: .csv, .tsv, .jsonl, .parquet, .arrow; text may end in .gz, too. - is
    the standard input or output. Without --to a table stays as it is; what comes from other tools becomes long.
    """
    from consilience.cli.targets import check_table_name, check_targets, write_all
    from consilience.tables.files import read_table, write_table
    from consilience.tables.reading import long_table, wide_table

    check_table_name(target)
    output = output.beside(target)
    check_targets([target], force=force)
    origin = origin or ("label-studio" if source_file.suffix.lower() == ".json" else "table")
    if origin == "table" and layout_out is None:
        table = read_table(source_file, delimiter=reading.delimiter, encoding=reading.encoding)
    else:
        found = SOURCES[origin](source_file, reading)
        if found.note:
            output.note(found.note)
        table = (wide_table if layout_out == "wide" else long_table)(found.votes, found.space)
    write_all({target: lambda path: write_table(path, table)})
    output.text(f"wrote {table.num_rows} rows, {table.num_columns} columns to {target}")
    output.document({"output": str(target), "rows": table.num_rows, "columns": table.column_names})


def _only(reading: Reading, origin: str, *used: str) -> None:
    """Refuse options that say nothing about such a file."""
    for field in fields(Reading):
        if field.name not in used and getattr(reading, field.name) != field.default:
            raise BadInputError(f"--{field.name} says nothing about --from {origin}. Leave it out.")
