"""The command line."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["main"]


HELP = """Turn many noisy opinions about the same items into one good label per item.

Start with `consilience demo`. In Python:

\b
    import consilience as cs
    labels = cs.LabelModel(cs.Classes(2)).fit(votes).predict(votes)

Exit status: 0 if all went well, 2 if the input was wrong.
"""


@click.group(help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="consilience", message="%(prog)s %(version)s")
def main() -> None:
    """Run a command of the program."""


@main.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("consilience-demo"),
    show_default=True,
    help="Folder for the files of labels; made if it is missing.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same bits.")
def demo(output: Path, seed: int) -> None:
    """Label four small example tables and show what was learned.

    Support tickets (classes), products in a taxonomy (a finite metric space) and sentences (any distance): who can be
    trusted, what the diagnostics say, how the labels compare with majority vote and with the truth. The tables are
    simulated, so the truth is known; the model does not see it. Writes one CSV of item, label and confidence for each.
    """
    from rich.console import Console

    from consilience.demo import run_demo

    console = Console(highlight=False)
    try:
        run_demo(output, console, seed)
    except OSError as error:
        reason = error.strerror or str(error)
        raise click.BadParameter(f"cannot write to {str(output)!r}: {reason}. Choose another folder.") from None
    console.print("Next: [bold]README.md[/] starts with your own table of votes in three lines.")
