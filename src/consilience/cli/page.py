"""The report as commands write it: what the items look like, and messages in the words of the command line."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from consilience.cli.commands import in_options
from consilience.cli.loading import Loaded, cells_by_item, table_of
from consilience.cli.options import Reading
from consilience.exceptions import did_you_mean
from consilience.label_model import LabelModel
from consilience.tables.files import write_text
from consilience.votes import Votes


def write_page(path: Path, model: LabelModel, loaded: Loaded, title: str, content: Any) -> None:
    """Write the report, which ends with the command that made it."""
    from consilience.report.page import page_of  # with its templates; most commands write no page

    command = shlex.join(["consilience", *sys.argv[1:]])
    page = page_of(model, loaded.votes, loaded.gold, title, show=content, command=command, words=in_options)
    write_text(path, page)


def shown_file(show: str | None, votes: Path) -> tuple[Path, list[str]]:
    """Return the table that `--show` is about, and the columns of it; none for all of them."""
    if show is not None and "," not in show and Path(show).is_file():
        return Path(show), []
    return votes, [name.strip() for name in (show or "").split(",") if name.strip()]


def without_shown(votes: Path, reading: Reading, show: str | None) -> Reading:
    """Return how to read the votes where some columns are only shown."""
    file, columns = shown_file(show, votes)
    if file != votes or not columns:
        return reading
    names = table_of(votes, reading).column_names
    for name in columns:
        if name not in names:
            hint = did_you_mean(name, names) or f" Columns: {', '.join(names)}."
            raise click.BadParameter(
                f"{name!r} is neither a file nor a column of {str(votes)!r}.{hint}", param_hint="--show"
            )
    is_long = reading.roles(names)[0] == "long"  # there, columns without a role are no sources
    return reading if is_long else replace(reading, drop=(*reading.drop, *columns))


def shown_content(show: str | None, path: Path, reading: Reading, votes: Votes) -> dict[str, list[Any]] | None:
    """Return the columns to show with the items of the votes, found by item id."""
    return None if show is None else cells_by_item(*shown_file(show, path), reading, votes)
