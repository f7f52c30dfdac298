"""The program `consilience`, and what its commands share: errors in one or two lines, exit codes, "did you mean"."""

from __future__ import annotations

import errno
import json
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from consilience.exceptions import ConsilienceError, did_you_mean

DEMO_FILES = "on the files that `consilience demo --tables -o .` writes"
#: Keys of a context: whether to show tracebacks, and the user's name of a file.
DEBUG, NAMES = "consilience.debug", "consilience.names"
#: Options by topic. Options without a topic come last.
TOPICS = {
    "Reading votes": (
        "origin", "field", "space", "item", "item_column", "source", "label", "sources", "drop", "layout", "delimiter",
        "encoding",
    ),
    "Cleaning cells": ("abstain", "repeats", "fold", "decimal", "unlisted", "outside", "strict"),
    "Known labels and model": ("gold", "gold_item", "gold_label", "method", "depends", "prior", "ties", "seed"),
    "Results": (
        "target", "layout_out", "to", "safe_csv", "report", "title", "show", "sources_out", "standings", "save",
        "force",
    ),
    "Large tables": ("engine", "scheduler", "master", "on_error", "resume"),
}  # fmt: skip
#: Arguments in messages of the library that are options, some with another name.
_OPTIONS = {"judge": "source", "answer": "label", "dependencies": "depends"} | {
    name: name
    for name in (
        "abstain", "decimal", "delimiter", "drop", "encoding", "field", "fold", "force", "gold", "item", "label",
        "layout", "method", "outside", "prior", "repeats", "resume", "source", "sources", "space", "strict", "ties",
        "unlisted",
    )
}  # fmt: skip
_VALUE = r"'[^']*'|\"[^\"]*\"|True|\.\.\.|-?\d+(?:\.\d+)?|[A-Z]\w+\([^()]*\)"
_ARGUMENT = re.compile(rf"\b({'|'.join(_OPTIONS)})=({_VALUE})?")
#: Other phrases with different words on the command line.
_PHRASES = (
    ("Name the label type", "Name it with --space"),
    ("name the label type", "use --space"),
    ("dependencies names", "--depends names"),
    ("dependencies='none'", "--depends none"),
    ("Use Scores(gauge", "In Python, use Scores(gauge"),
    ("predict_baseline(votes)", "--method majority"),
    ("LabelModel.save wrote", "`consilience label --save` wrote"),
    ("add it to classes=", "add it to --space"),
    ("(Votes.from_matrix(..., abstain=...))", "with --abstain"),
)


#: Module and one-line help of each command, so that listing the commands does not load them.
COMMANDS = {
    "demo": ("consilience.cli.demo", "Label four small example tables"),
    "label": ("consilience.cli.label", "Label every item of a table of votes"),
    "inspect": ("consilience.cli.inspect", "Summarize votes before fitting a model"),
    "predict": ("consilience.cli.label", "Label votes with a previously fitted model"),
    "compare": ("consilience.cli.label", "Compare all methods on known labels"),
    "explain": ("consilience.cli.inspect", "Explain why an item got its label"),
    "audit": ("consilience.cli.inspect", "Measure the labels against a few labeled by hand"),
    "review": ("consilience.cli.review", "Label items by hand on a local page"),
    "report": ("consilience.cli.inspect", "Write an HTML report"),
    "convert": ("consilience.cli.label", "Convert between file formats"),
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

Exit status: 0 on success, 1 if labels were written but a finding is an error, 2 if the input was wrong.

Completion in bash: eval "$(_CONSILIENCE_COMPLETE=bash_source consilience)"; with zsh_source and fish_source likewise.
"""


class BadInputError(click.ClickException):
    """Something is wrong with what the user gave; shown without a traceback."""

    exit_code = 2


class Command(click.Command):
    """A command that knows `--debug`, and whose help ends with lines to paste."""

    def __init__(
        self, *arguments: Any, examples: Sequence[str] = (), examples_in: str = DEMO_FILES, **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self.examples, self.examples_in = tuple(examples), examples_in
        if not isinstance(self, click.Group):
            self.params.append(
                click.Option(
                    ["--debug"],
                    is_flag=True,
                    expose_value=False,
                    callback=lambda ctx, _, value: ctx.meta.update({DEBUG: value}),
                    help="Show the full traceback.",
                )
            )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by topic; those of no topic come last."""
        left = {
            parameter.name: record
            for parameter in self.get_params(ctx)
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx))
        }
        topics = [(title, [left.pop(name) for name in names if name in left]) for title, names in TOPICS.items()]
        several = any(rows for _, rows in topics)
        for title, rows in [*topics, ("Other options" if several else "Options", list(left.values()))]:
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(f"Examples, {self.examples_in}"):
            formatter.write("".join(f"  {line}\n" for line in self.examples))


class Group(Command, click.Group):
    """A group whose errors are one or two lines and whose exit codes are 0, 1 and 2."""

    command_class = Command
    places = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.places:
            return None
        command: click.Command = getattr(import_module(self.places[cmd_name][0]), cmd_name)
        if ctx.resilient_parsing:  # the Tab key
            _offer_values(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.places[name][1]) for name in self.list_commands(ctx)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            hint = did_you_mean(name, self.list_commands(ctx)) or f" Use one of {', '.join(self.list_commands(ctx))}."
            raise click.UsageError(f"There is no command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader closed the pipe; click ends quietly
            if ctx.meta.get(DEBUG):
                traceback.print_exc()
            message = _message(error)
            for name, known_as in ctx.meta.get(NAMES, {}).items():
                message = message.replace(name, known_as)
            raise BadInputError(message) from None

    def main(self, args: Sequence[str] | None = None, *rest: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        run: Any = super().main
        if not standalone_mode:
            return run(args, *rest, standalone_mode=False, **extra)
        message = ""
        try:
            code = run(args, *rest, standalone_mode=False, **extra)
        except click.ClickException as error:
            code = error.exit_code
            if type(error).__name__ == "NoArgsIsHelpError":
                error.show()
            else:
                message = error.format_message()
                click.echo(f"Error: {message}", err=True)
            if message and isinstance(error, click.UsageError) and error.ctx is not None:
                click.echo(f"Try '{error.ctx.command_path} --help'.", err=True)
        except (click.Abort, KeyboardInterrupt):
            code, message = 130, "Interrupted. No partial files were left behind."
            click.echo(message, err=True)
        if message and "--json" in (sys.argv[1:] if args is None else args):
            click.echo(json.dumps({"error": message, "exit_status": code}, ensure_ascii=False, indent=2))
        sys.exit(code if isinstance(code, int) else 0)


def _message(error: Exception) -> str:
    if isinstance(error, ConsilienceError):
        return in_options(str(error))
    if isinstance(error, OSError):
        named = f"{error.filename!r}: " if error.filename else ""
        return f"{named}{error.strerror or error}."
    if isinstance(error, MemoryError):
        return "There is not enough memory for this table. Label it in parts, or on a larger machine."
    first = str(error).split("\n", 1)[0]
    return f"{type(error).__name__}: {first} This is a bug; --debug shows where."


def in_options(message: str) -> str:
    """Return a message of the library in the words of the command line.

    >>> in_options("pass abstain=-1, space=Classes([0, 1]) or force=True")
    'pass --abstain=-1, --space classes:0,1 or --force'
    """
    for said, meant in _PHRASES:
        message = message.replace(said, meant)
    message = re.sub(r"add it to [A-Z]\w+\([^)]*\)", "add it to --space", message)
    # Row numbers are not those of the file.
    message = re.sub(r"\bRow \d+ \(item (.*?)\), source", r"Item \1, source", message)
    return _ARGUMENT.sub(lambda found: _option(found[1], found[2] or ""), message)


def _option(name: str, value: str) -> str:
    """Return an argument of the library as an option."""
    option = f"--{_OPTIONS[name]}"
    kind, is_type, labels = value.partition("(")
    if is_type:
        value = f"{kind.lower()}:{re.sub(r'[^-0-9A-Za-z_,.]', '', labels)}".removesuffix(":...").rstrip(":")
    return option if value in ("", "True") else f"{option}={value}" if value.startswith("-") else f"{option} {value}"


def _offer_values(command: click.Command) -> None:
    """Have the parameters of a command offer what they can be: label types, methods, columns, experiments."""
    from consilience.cli.reproduce import ALL, find_experiments
    from consilience.estimation.protocol import METHODS
    from consilience.tables.files import read_table
    from consilience.tables.notation import NOTATIONS

    def columns(ctx: click.Context) -> list[str]:
        # While an option has no value yet, click has not parsed the arguments before it.
        named = [ctx.params.get("votes"), ctx.params.get("source_file"), *ctx.args]
        return list(read_table(Path(next(filter(None, named)))).column_names)

    values: dict[str, Callable[[click.Context], Iterable[str]]] = {
        "space": lambda ctx: [notation.name for notation in NOTATIONS],
        "method": lambda ctx: [*METHODS, "quadratic"],
        "names": lambda ctx: [*find_experiments(Path.cwd())[1], ALL],
        **dict.fromkeys(("item", "item_column", "source", "label", "sources", "drop", "depends", "show"), columns),
    }

    def offer(names: Callable[[click.Context], Iterable[str]]) -> Callable[[click.Context, str], list[CompletionItem]]:
        def offered(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
            before, comma, begun = incomplete.rpartition(",")  # the last name of a list
            try:
                return [CompletionItem(f"{before}{comma}{name}") for name in names(ctx) if name.startswith(begun)]
            except Exception:  # completion never fails
                return []

        return offered

    for parameter in command.params:
        if parameter.name in values:
            # Set on this one parameter, because click has no other place for values that depend on other parameters.
            setattr(parameter, "shell_complete", offer(values[parameter.name]))  # noqa: B010


@click.group(cls=Group, help=HELP, examples=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="consilience", message="%(prog)s %(version)s")
def main() -> None:
    """Run a command of the program."""
