"""`convert`: tables between file formats, between wide and long, and from the files of other tools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from consilience.cli import options
from consilience.cli.commands import Command
from consilience.cli.label import check_outputs
from consilience.cli.loading import read_raw, table_of
from consilience.cli.origins import origin_of
from consilience.cli.output import Output, counted, write_all
from consilience.tables.files import write_table
from consilience.tables.reading import wide_table


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
@click.option("--to", "layout_out", type=click.Choice(("wide", "long")), help="Layout of OUT; that of IN by default.")
@options.reading(space=False)
@options.FORCE
@options.printing
def convert(
    source_file: Path,
    target: Path,
    layout_out: str | None,
    reading: options.Reading,
    force: bool,
    output: Output,
) -> None:
    """Turn votes or labels into another file format or layout.

    The endings of IN and OUT say what they are: .csv, .tsv, .jsonl, .parquet, .arrow; text may end in .gz, too. - is
    the standard input or output. Without --to a table keeps its layout; what comes from other tools becomes long.
    """
    output = check_outputs(target, reading, output, force=force)
    as_it_is = replace(options.Reading(), delimiter=reading.delimiter, encoding=reading.encoding)
    if (
        layout_out is None
        and origin_of(source_file, reading) == "table"
        and reading in (as_it_is, replace(as_it_is, origin="table"))
    ):
        table = table_of(source_file, reading)
    else:
        votes, space, is_long = read_raw(source_file, reading)
        output.receipt(votes.receipt)
        wide = layout_out == "wide" or (layout_out is None and not is_long)
        table = wide_table(votes, space) if wide else votes.to_long(space)
    write_all({target: lambda path: write_table(path, table)})
    output.text(f"Wrote {counted(table.num_rows, 'row')}, {counted(table.num_columns, 'column')} to {target}")
    output.document({"output": str(target), "rows": table.num_rows, "columns": table.column_names})
