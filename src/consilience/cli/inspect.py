"""`inspect`, `explain`, `report` and `spaces`: look at votes, labels and label types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import numpy as np

from consilience.arrays import BoolArray
from consilience.cli.commands import Command
from consilience.cli.label import MODEL, VOTES
from consilience.cli.loading import describe, load, load_for_model, load_without_space
from consilience.cli.options import (
    Engine,
    Reading,
    engine_options,
    force_option,
    gold_option,
    guessed_space,
    opened,
    output_option,
    printing_options,
    reading_options,
)
from consilience.cli.output import Output, check_targets, diagnostic_rows, write_all
from consilience.estimation.protocol import Diagnostic
from consilience.label_model import LabelModel
from consilience.label_types.base import LabelSpace
from consilience.labeling import summarize
from consilience.report import write_report
from consilience.tables.display import SourceTable
from consilience.tables.encoding import encode
from consilience.tables.notation import NOTATIONS
from consilience.votes import Votes

__all__ = ["explain", "findings_in_votes", "inspect", "pair_agreement", "report", "spaces"]


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
@engine_options(writes=False)
@printing_options
def inspect(votes: Path, reading: Reading, gold: str | None, engine: Engine | None, output: Output) -> None:
    """Look at VOTES before any model: who votes how often, and who agrees with whom.

    With --engine, pairs of sources and findings come from a sample of the items.
    """
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
    pairs: list[dict[str, Any]],
    findings: Sequence[Diagnostic],
    output: Output,
) -> None:
    cast = sum(summary.columns["votes"])
    cells = max(n_items * table.n_sources, 1)
    output.text(f"{n_items} items, {table.n_sources} sources, {cast} votes ({cast / cells:.0%} of cells)")
    output.table(summary.columns)
    if table.n_sources <= MOST_SHOWN:
        output.table(_columns(pairs), title="\npairs of sources, most alike first")
    else:
        title = f"\nthe {PAIRS} pairs of sources most alike, and the {PAIRS} least alike"
        output.table(_columns([*pairs[:PAIRS], *pairs[-PAIRS:]]), title=title)
    output.findings(findings)
    output.document(
        {
            "items": n_items,
            "votes": cast,
            "space": None if space is None else describe(space),
            "sources": summary.to_arrow().to_pylist(),
            "pairs": pairs,
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
@engine_options(writes=False)
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
    fitted, reading = LabelModel.load(model), replace(reading, item=item_column)
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
    check_targets([target], force=force)
    fitted = LabelModel.load(model)
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


#: Items on which sources are compared, evenly spread over the table.
COMPARED = 20_000
#: Two sources that always say the same on so many items are probably one.
COPIED = 30
#: Two sources should meet on this many items before their agreement means much.
FEW = 10
#: Names listed in a finding.
LISTED = 8


def pair_agreement(votes: Votes, space: LabelSpace | None) -> list[dict[str, Any]]:
    """Return one row per pair of sources, most alike first.

    Each holds the number of items that both voted on, the share of them with the same label (None where they never
    meet) and, where there is a label type, the mean cost between their labels.
    """
    table = votes if len(votes) <= COMPARED else votes[np.linspace(0, len(votes) - 1, COMPARED).astype(np.int64)]
    coded = table if space is None else encode(table, space)
    found: list[dict[str, Any]] = []
    for a, b in combinations(range(votes.n_sources), 2):
        rows = np.flatnonzero(coded.observed[:, a] & coded.observed[:, b])
        both = int((votes.observed[:, a] & votes.observed[:, b]).sum())
        agreement = cost = None
        if len(rows):
            left, right = coded.labels[rows, a], coded.labels[rows, b]
            if space is None:
                agreement = float(np.mean([np.array_equal(one, two) for one, two in zip(left, right, strict=True)]))
            else:
                between = space.cost(left, right)
                agreement, cost = float((between <= 1e-12).mean()), float(between.mean())
        row = {"source": votes.sources[a], "and": votes.sources[b], "both": both, "agreement": agreement}
        found.append(row if space is None else {**row, "mean cost": cost})
    found.sort(key=lambda row: (row["agreement"] is None, -(row["agreement"] or 0.0), row.get("mean cost") or 0.0))
    return found


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def findings_in_votes(votes: Votes, pairs: list[dict[str, Any]]) -> list[Diagnostic]:
    """Return what will be trouble whatever the model, worst first."""
    found = []
    count = votes.observed.sum(axis=0)
    active = int((count > 0).sum())
    if active < 3:
        found.append(
            _finding(
                "too-few-sources", "warning", (),
                f"{active} source(s) vote; agreement tells their qualities apart from 3 on. Add sources, or known "
                "labels with --gold.",
            )
        )  # fmt: skip
    silent = tuple(name for name, votes_cast in zip(votes.sources, count, strict=True) if votes_cast == 0)
    if silent:
        found.append(_finding("never-votes", "warning", silent, "no vote at all. Leave out with --drop."))
    copied = [(row["source"], row["and"]) for row in pairs if row["agreement"] == 1.0 and row["both"] >= COPIED]
    for left, right in copied[:LISTED]:
        message = (
            f"the same vote on every item they share. If one copies the other, label with --depends {left},{right}."
        )
        found.append(_finding("copied-source", "warning", (left, right), message))
    met = Counter(name for row in pairs if row["both"] >= FEW for name in (row["source"], row["and"]))
    lonely = tuple(name for name in votes.sources if met[name] < 2 and name not in silent)
    if lonely and active >= 3:
        message = f"fewer than two other sources vote on {FEW} or more of the same items, so little can be learned."
        found.append(_finding("low-overlap", "warning", lonely, message))
    voters = votes.observed.sum(axis=1)
    if (voters == 0).any():
        message = f"{_items(votes, voters == 0)} have no vote; their label will be missing."
        found.append(Diagnostic("items-without-votes", "info", (), message))
    if (voters == 1).any():
        message = f"{_items(votes, voters == 1)} have one vote only, which nobody can correct."
        found.append(Diagnostic("items-with-one-vote", "info", (), message))
    return found


def _finding(code: str, severity: Any, sources: tuple[str, ...], message: str) -> Diagnostic:
    named = ", ".join(sources[:LISTED]) + (", ..." if len(sources) > LISTED else "")
    return Diagnostic(code, severity, sources, f"{named}: {message}" if sources else message)


def _items(votes: Votes, chosen: BoolArray) -> str:
    ids = [str(item) for item in votes.items[chosen][:3].tolist()]
    more = ", ..." if chosen.sum() > len(ids) else ""
    return f"{int(chosen.sum())} of {len(votes)} items ({', '.join(ids)}{more})"
