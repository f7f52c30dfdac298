"""`convert`: tables between file formats, between wide and long, and from the files of other tools."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import click

from consilience.cli import options
from consilience.cli.commands import BadInputError, Command
from consilience.cli.label import check_outputs
from consilience.cli.loading import read_raw
from consilience.cli.output import Output, write_all
from consilience.label_types.base import LabelSpace
from consilience.tables.files import read_table, write_table
from consilience.tables.judges import read_judges
from consilience.tables.label_studio import read_label_studio
from consilience.tables.reading import wide_table
from consilience.votes import Votes

#: What votes can be read from, and the options that say how.
ORIGINS = {
    "table": tuple(field.name for field in fields(options.Reading)),
    "judges": ("item", "source", "label", "repeats"),
    "label-studio": ("label",),
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
@click.argument("source_file", type=options.FILE, callback=options.table_file, metavar="IN")
@click.argument("target", type=options.FILE, metavar="OUT")
@click.option(
    "--from",
    "origin",
    type=click.Choice(tuple(ORIGINS)),
    help="What IN is: a table, replies of LLM judges, an export of Label Studio. By default .json is the last, "
    "all else a table.",
)
@click.option("--to", "layout_out", type=click.Choice(("wide", "long")), help="Layout of OUT; that of IN by default.")
@options.reading(space=False)
@options.FORCE
@options.printing
def convert(
    source_file: Path,
    target: Path,
    origin: str | None,
    layout_out: str | None,
    reading: options.Reading,
    force: bool,
    output: Output,
) -> None:
    """Turn votes or labels into another file format or layout.

    The endings of IN and OUT say what they are: .csv, .tsv, .jsonl, .parquet, .arrow; text may end in .gz, too. - is
    the standard input or output. Without --to a table stays as it is; what comes from other tools becomes long.
    """
    output = check_outputs(target, reading, output, force=force)
    origin = origin or ("label-studio" if source_file.suffix.lower() == ".json" else "table")
    if origin == "table" and layout_out is None:
        table = read_table(source_file, delimiter=reading.delimiter, encoding=reading.encoding)
    else:
        for field in fields(options.Reading):
            if field.name not in ORIGINS[origin] and getattr(reading, field.name) != field.default:
                raise BadInputError(f"--{field.name} says nothing about --from {origin}. Leave it out.")
        votes, space, note = _read(origin, source_file, reading)
        if note:
            output.note(note)
        table = wide_table(votes, space) if layout_out == "wide" else votes.to_long(space)
    write_all({target: lambda path: write_table(path, table)})
    output.text(f"wrote {table.num_rows} rows, {table.num_columns} columns to {target}")
    output.document({"output": str(target), "rows": table.num_rows, "columns": table.column_names})


def _read(origin: str, path: Path, reading: options.Reading) -> tuple[Votes, LabelSpace | None, str]:
    """Return votes, their label type where the file says what it is, and what should be said about them."""
    if origin == "table":
        return read_raw(path, reading), None, ""
    if origin == "label-studio":
        export = read_label_studio(path, field=reading.label)
        return export.votes, export.space, f"control {export.field!r} ({export.kind})"
    repeats = "separate" if reading.repeats == "refuse" else reading.repeats
    table = read_judges(path, item=reading.item, judge=reading.source, answer=reading.label, repeats=repeats)
    lost = (table.faults.columns[name] for name in ("source", "reason", "replies"))
    counts = [f"{who} {count} ({why})" for who, why, count in zip(*lost, strict=True)]
    return table.votes, table.space, f"replies that are no vote: {', '.join(counts)}" if counts else ""
