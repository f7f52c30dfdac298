"""`convert`: tables between file formats, and between wide and long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from consilience.cli.commands import Command
from consilience.cli.options import Reading, force_option, printing_options, reading_options
from consilience.cli.output import Output

if TYPE_CHECKING:
    import pyarrow as pa

    from consilience.votes import Votes

__all__ = ["TARGETS", "convert"]


def _long(votes: Votes) -> pa.Table:
    return votes.to_long()


def _wide(votes: Votes) -> pa.Table:
    import pyarrow as pa

    from consilience.exceptions import FileFormatError

    if "item" in votes.sources:
        raise FileFormatError("A source is called 'item', as is the column of ids. Rename the source.")
    columns: dict[str, Any] = {"item": pa.array(votes.items.tolist())}
    for place, name in enumerate(votes.sources):
        cells = zip(votes.labels[:, place].tolist(), votes.observed[:, place].tolist(), strict=True)
        columns[name] = pa.array([label if seen else None for label, seen in cells], from_pandas=False)
    return pa.table(columns)


#: What votes can be turned into; each makes a table.
TARGETS: dict[str, Callable[[Votes], pa.Table]] = {"wide": _wide, "long": _long}


@click.command(
    cls=Command,
    examples=(
        "consilience convert votes.csv votes.parquet",
        "consilience convert votes.csv votes-long.csv --to long",
        "consilience convert long.csv wide.jsonl --to wide",
    ),
)
@click.argument("source_file", type=click.Path(path_type=Path), metavar="IN")
@click.argument("target", type=click.Path(path_type=Path), metavar="OUT")
@click.option("--to", "kind", type=click.Choice(list(TARGETS)), help="Layout of OUT; that of IN by default.")
@reading_options(with_space=False)
@force_option
@printing_options
def convert(source_file: Path, target: Path, kind: str | None, reading: Reading, force: bool, output: Output) -> None:
    """Turn a table of votes or labels into another file format or layout.

    The endings of IN and OUT say what they are: .csv, .tsv, .jsonl, .parquet, .arrow. Without --to the table stays
    as it is.
    """
    from consilience.cli.loading import read_raw
    from consilience.cli.targets import check_targets, write_all
    from consilience.io.files import file_format, read_table, write_table

    file_format(target)
    check_targets([target], force=force)
    if kind is None:
        table = read_table(source_file, delimiter=reading.delimiter, encoding=reading.encoding)
    else:
        table = TARGETS[kind](read_raw(source_file, reading))
    write_all({target: lambda path: write_table(path, table)})
    output.text(f"wrote {table.num_rows} rows, {table.num_columns} columns to {target}")
    output.document({"output": str(target), "rows": table.num_rows, "columns": table.column_names})
