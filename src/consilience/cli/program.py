"""The program `consilience` and its commands."""

from __future__ import annotations

import click

from consilience.cli.commands import Group

#: Where each command is, and what it does in one line: a command is loaded when it is called, not to list the others.
COMMANDS = {
    "demo": ("consilience.cli.demo", "Label four small example tables"),
    "label": ("consilience.cli.label", "Label every item of a table of votes"),
    "inspect": ("consilience.cli.inspect", "Summarize votes before fitting a model"),
    "predict": ("consilience.cli.label", "Label votes with a previously fitted model"),
    "compare": ("consilience.cli.label", "Compare all methods on known labels"),
    "explain": ("consilience.cli.inspect", "Explain why an item got its label"),
    "audit": ("consilience.cli.audit", "Measure the labels against a few labeled by hand"),
    "review": ("consilience.cli.review", "Label items by hand on a local page"),
    "report": ("consilience.cli.inspect", "Write an HTML report"),
    "convert": ("consilience.cli.convert", "Convert between file formats"),
    "spaces": ("consilience.cli.inspect", "List the label types"),
    "reproduce": ("consilience.cli.reproduce", "Run the experiments of the repository"),
}
EXAMPLES = (
    "consilience demo",
    "consilience inspect votes.csv",
    "consilience label votes.csv -o labels.csv",
    "consilience spaces",
)
HELP = """Combine noisy votes from many sources into one reliable label per item.

Exit status: 0 if all went well, 1 if labels were written but a diagnostic is an error, 2 if the input was wrong.

Completion in bash: eval "$(_CONSILIENCE_COMPLETE=bash_source consilience)"; with zsh_source and fish_source likewise.
"""


@click.group(
    cls=Group,
    help=HELP,
    examples=EXAMPLES,
    places=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="consilience", message="%(prog)s %(version)s")
def main() -> None:
    """Run a command of the program."""
