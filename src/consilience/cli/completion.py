"""What the Tab key offers: label types, methods, columns of the table that was named, experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from consilience.cli.reproduce import ALL, find_experiments
from consilience.estimation.protocol import METHODS
from consilience.tables.files import read_table
from consilience.tables.notation import NOTATIONS


def completes(command: click.Command) -> click.Command:
    """Have the parameters of a command offer what they can be."""
    for parameter in command.params:
        if parameter.name in _OFFERS:
            # The public method of this one parameter; click has no other place for what depends on other parameters.
            setattr(parameter, "shell_complete", _offer(_OFFERS[parameter.name]))  # noqa: B010
    return command


def _offer(names: Callable[[click.Context], Iterable[str]]) -> Callable[[click.Context, str], list[CompletionItem]]:
    def offered(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        before, comma, begun = incomplete.rpartition(",")  # the last name of a list
        return [CompletionItem(f"{before}{comma}{name}") for name in names(ctx) if name.startswith(begun)]

    return offered


def _columns(ctx: click.Context) -> list[str]:
    """Return the columns of the table that was named before; none where it cannot be read."""
    # While an option still lacks its value, click leaves the arguments before it unread.
    named = [ctx.params.get("votes"), ctx.params.get("source_file"), *ctx.args]
    try:
        return list(read_table(Path(next(filter(None, named)))).column_names)
    except Exception:  # completion never complains
        return []


def _experiments(ctx: click.Context) -> list[str]:
    try:
        return [*find_experiments(Path.cwd())[1], ALL]
    except click.ClickException:
        return []


_OFFERS: dict[str, Callable[[click.Context], Iterable[str]]] = {
    "space": lambda ctx: [notation.name for notation in NOTATIONS],
    "method": lambda ctx: [*METHODS, "quadratic"],
    "names": _experiments,
    **dict.fromkeys(("item", "item_column", "source", "label", "sources", "drop", "depends", "show"), _columns),
}
