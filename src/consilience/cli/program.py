"""The program `consilience` and its commands."""

from __future__ import annotations

from pathlib import Path

import click

from consilience.cli.commands import Group
from consilience.cli.convert import convert
from consilience.cli.inspect import explain, inspect, report, spaces
from consilience.cli.label import compare, label, predict
from consilience.cli.output import Output
from consilience.cli.reproduce import reproduce

__all__ = ["main"]

EXAMPLES = (
    "consilience demo",
    "consilience inspect votes.csv",
    "consilience label votes.csv -o labels.csv",
    "consilience spaces",
)
HELP = """Turn many noisy opinions about the same items into one good label per item.

Exit status: 0 if all went well, 1 if labels were written but a diagnostic is an error, 2 if the input was wrong.

Completion in bash: eval "$(_CONSILIENCE_COMPLETE=bash_source consilience)"; with zsh_source and fish_source likewise.
"""


@click.group(cls=Group, help=HELP, examples=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="consilience", message="%(prog)s %(version)s")
def main() -> None:
    """Run a command of the program."""


@main.command(examples=("consilience demo", "consilience demo --tables -o tables"))
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("consilience-demo"),
    show_default=True,
    help="Folder for the files; made if it is missing.",
)
@click.option("--tables", is_flag=True, help="Only write small tables to try the other commands on: votes.csv, ...")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same bits.")
def demo(output: Path, tables: bool, seed: int) -> None:
    """Label four small example tables and show what was learned.

    Support tickets (classes), products in a taxonomy (a finite metric space), jams (rankings) and sentences (any
    distance): who can be trusted, what the diagnostics say, how the labels compare with the plain vote and with the
    truth. The tables are simulated, so the truth is known; the model does not see it. Writes the labels of each as CSV.

    With --tables, write the files that the examples of the other commands name instead.
    """
    from consilience.cli.demo import run_demo
    from consilience.cli.demo_tables import write_tables

    try:
        if tables:
            output.mkdir(parents=True, exist_ok=True)
            click.echo(f"wrote {', '.join(path.name for path in write_tables(output))} to {output}")
            return
        run_demo(output, Output(), seed)
    except OSError as error:
        reason = error.strerror or str(error)
        raise click.BadParameter(f"cannot write to {str(output)!r}: {reason}. Choose another folder.") from None
    click.echo("Next: README.md starts with your own table of votes in three lines.")


for command in (label, inspect, predict, compare, explain, report, convert, spaces, reproduce):
    main.add_command(command)
