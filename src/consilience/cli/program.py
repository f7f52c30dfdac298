"""The program `consilience` and its commands."""

from __future__ import annotations

import click

from consilience.cli.commands import Group
from consilience.cli.convert import convert
from consilience.cli.demo import demo
from consilience.cli.inspect import explain, inspect, report, spaces
from consilience.cli.label import compare, label, predict
from consilience.cli.reproduce import reproduce

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


for command in (demo, label, inspect, predict, compare, explain, report, convert, spaces, reproduce):
    main.add_command(command)
