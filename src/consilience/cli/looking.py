"""`inspect`, `explain`, `report` and `spaces`: look at votes, labels and label types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from consilience.cli.commands import Command
from consilience.cli.labelling import MODEL, VOTES
from consilience.cli.options import (
    Reading,
    force_option,
    gold_option,
    output_option,
    printing_options,
    reading_options,
)
from consilience.cli.output import Output, diagnostic_rows
from consilience.cli.scaling import Engine, guessed_space, looking_options, opened

if TYPE_CHECKING:
    from consilience.cli.findings import Pairs
    from consilience.estimation.protocol import Diagnostic
    from consilience.label_types.base import LabelSpace
    from consilience.prediction.source_model import SourceTable
    from consilience.votes import Votes

__all__ = ["explain", "inspect", "report", "spaces"]

#: Up to so many sources the agreement of all pairs is shown; beyond, only pairs that stand out.
MOST_SHOWN = 6
#: Pairs that stand out, at either end.
PAIRS = 5
#: Items from which pairs of sources are compared, where an engine holds the votes.
SAMPLE = 20_000


@click.command(
    cls=Command,
    examples=(
        "consilience inspect votes.csv",
        "consilience inspect votes.csv --gold gold.csv",
        "consilience inspect long.csv --json",
    ),
)
@VOTES
@reading_options()
@gold_option()
@looking_options
@printing_options
def inspect(votes: Path, reading: Reading, gold: str | None, engine: Engine | None, output: Output) -> None:
    """Look at VOTES before any model: who votes how often, and who agrees with whom.

    With --engine, pairs of sources and findings come from a sample of the items.
    """
    from consilience.cli.findings import findings_in_votes, pair_agreement
    from consilience.cli.loading import load, load_without_space
    from consilience.labeling import summarize

    space: LabelSpace | None
    if engine is not None:
        named = guessed_space(votes, reading, gold, output)
        with opened(engine, votes, named, reading, gold) as partitions, output.working("comparing the sources"):
            summary, n_items = summarize(partitions, named, max_items=SAMPLE), partitions.n_items
            table = partitions.sample(SAMPLE, 0).whole.votes
            pairs = pair_agreement(table, named)
        if len(table) < n_items:
            output.note(f"pairs of sources and findings are of a sample of {len(table)} items")
        _show(summary, n_items, table, named, pairs, findings_in_votes(table, pairs), output)
        return
    if gold is None:
        table, space = load_without_space(votes, reading, output)
        known = None
    else:
        loaded = load(votes, reading, output, gold)
        table, space, known = loaded.votes, loaded.space, loaded.gold
    with output.working(f"comparing {table.n_sources} sources"):
        summary = summarize(table, space, known)
        pairs = pair_agreement(table, space)
    _show(summary, table.n_items, table, space, pairs, findings_in_votes(table, pairs), output)


def _show(
    summary: SourceTable,
    n_items: int,
    table: Votes,
    space: LabelSpace | None,
    pairs: Pairs,
    findings: Sequence[Diagnostic],
    output: Output,
) -> None:
    from consilience.cli.loading import describe

    cast = sum(summary.columns["votes"])
    cells = max(n_items * table.n_sources, 1)
    output.text(f"{n_items} items, {table.n_sources} sources, {cast} votes ({cast / cells:.0%} of cells)")
    output.table(summary.columns)
    if table.n_sources <= MOST_SHOWN:
        output.table(pairs.columns(), title="\npairs of sources, most alike first")
    else:
        shown = pairs.extremes(PAIRS)
        output.table(shown.columns(), title=f"\nthe {PAIRS} pairs of sources most alike, and the {PAIRS} least alike")
    output.findings(findings)
    output.document(
        {
            "items": n_items,
            "votes": cast,
            "space": None if space is None else describe(space),
            "sources": summary.to_arrow().to_pylist(),
            "pairs": pairs.rows(),
            "diagnostics": diagnostic_rows(findings),
        }
    )


@click.command(
    cls=Command,
    examples=(
        "consilience label votes.csv -o labels.csv --save model.npz",
        "consilience explain model.npz votes.csv --item t7",
    ),
)
@MODEL
@VOTES
@click.option("--item", "identity", required=True, metavar="ID", help="Which item.")
@click.option("--item-column", metavar="COLUMN", help="Column of item ids, where its name does not say so.")
@reading_options(with_space=False, with_item=False)
@looking_options
@printing_options
def explain(
    model: Path,
    votes: Path,
    identity: str,
    item_column: str | None,
    reading: Reading,
    engine: Engine | None,
    output: Output,
) -> None:
    """Say why an item got its label: what each source said, how loudly it counted, what would flip the label."""
    from consilience.cli.loading import load_for_model, read_model

    fitted, reading = read_model(model), replace(reading, item=item_column)
    if engine is not None:
        with opened(engine, votes, fitted.space, reading) as partitions:
            story = fitted.explain(partitions, identity)
    else:
        story = fitted.explain(load_for_model(votes, fitted, reading, output).votes, identity)
    output.text(str(story))
    output.document(asdict(story))


@click.command(
    cls=Command,
    examples=(
        "consilience label votes.csv -o labels.csv --save model.npz",
        "consilience report model.npz votes.csv -o page.html --gold gold.csv",
    ),
)
@MODEL
@VOTES
@output_option("The page, a file that ends in .html.")
@reading_options(with_space=False)
@gold_option()
@click.option("--title", metavar="TEXT", help="Heading of the page; the name of VOTES by default.")
@force_option
@printing_options
def report(
    model: Path,
    votes: Path,
    target: Path,
    reading: Reading,
    gold: str | None,
    title: str | None,
    force: bool,
    output: Output,
) -> None:
    """Write a page to look at: sources, how they relate, contested items, diagnostics.

    The page is one file that needs no network.
    """
    from consilience.cli.loading import load_for_model, read_model
    from consilience.cli.targets import check_targets, write_all
    from consilience.report import write_report

    check_targets([target], force=force)
    fitted = read_model(model)
    loaded = load_for_model(votes, fitted, reading, output, gold)
    heading = title or votes.name
    with output.working("writing the page"):
        write_all({target: lambda path: write_report(path, fitted, loaded.votes, loaded.gold, title=heading)})
    output.text(f"wrote the report to {target}")
    output.document({"report": str(target), "items": len(loaded.votes)})


@click.command(cls=Command, examples=("consilience spaces",))
@printing_options
def spaces(output: Output) -> None:
    """List the label types: how to name them with --space, and what a cell of a file looks like.

    What stands behind the colon may be left out where the votes show it.
    """
    from consilience.tables.notation import NOTATIONS

    columns = {
        "type": [notation.name for notation in NOTATIONS],
        "--space": [notation.example for notation in NOTATIONS],
        "a cell": [notation.cell for notation in NOTATIONS],
        "a label is": [notation.meaning for notation in NOTATIONS],
    }
    output.table(columns)
    output.document(
        {
            "spaces": [
                {"name": one.name, "space": one.example, "meaning": one.meaning, "cell": one.cell} for one in NOTATIONS
            ]
        }
    )
