"""`inspect`, `explain`, `audit`, `report` and `spaces`: look at votes, labels and label types."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import numpy as np

import consilience.cli.loading as loading
from consilience.arrays import BoolArray, FloatArray
from consilience.cli import options
from consilience.cli.commands import Command, in_options
from consilience.cli.loading import Loaded, describe, opened
from consilience.cli.output import Output, check_targets, columns_of, counted, write_all
from consilience.estimation.diagnostics import MIN_OVERLAP, overlap_findings, voter_findings
from consilience.estimation.protocol import Diagnostic, Request
from consilience.exceptions import ConsilienceWarning, FileFormatError
from consilience.label_model import LabelModel
from consilience.label_types import Preferences, Product, Rankings, Scores, Vectors
from consilience.label_types.base import LabelSpace, Unit
from consilience.labeling import summarize
from consilience.labeling.summary import EQUAL, costs_between
from consilience.preferences import pair_wins
from consilience.tables.display import figure
from consilience.tables.encoding import encode
from consilience.tables.files import write_text
from consilience.tables.notation import NOTATIONS
from consilience.votes import Votes

#: With at most this many sources, the agreement of all pairs is shown, otherwise only the extreme pairs.
MOST_SHOWN = 6
#: Columns of the table of wins.
MOST_CANDIDATES = 10
#: Number of pairs shown at each extreme.
PAIRS = 5
#: Items on which pairs of sources are compared.
SAMPLE = 20_000
#: Two sources that always agree on this many items are probably copies.
COPIED = 30
#: Names listed in a finding.
LISTED = 8
#: Column of the sampling probability in a file of known labels.
PROBABILITY = "probability"
#: What the difference between two votes is called and means, by the unit of the quality of a source.
_APART = {
    "error_rate": ("disagreement", "the share in which two votes differ"),
    "error": ("difference", "the typical difference between two votes (root mean square)"),
    "pairs_wrong": ("pairs_apart", "the share of pairs that two votes put in another order"),
    "word_error_rate": ("words_apart", "the share of words in which two votes differ"),
    "mean_distance": ("distance", "the mean distance between two votes"),
    "typical_distance": ("distance", "the typical distance between two votes (root mean square)"),
}


@click.command(
    cls=Command,
    examples=(
        "consilience inspect votes.csv",
        "consilience inspect votes.csv --gold gold.csv",
        "consilience inspect long.csv --json",
    ),
)
@options.VOTES
@options.reading(engine="numbers")
@options.gold()
@options.printing
def inspect(votes: Path, reading: options.Reading, gold: str | None, output: Output) -> None:
    """Summarize VOTES before fitting a model: who votes how often, and who agrees with whom.

    With --engine, pairs of sources and findings come from a sample of the items.
    """
    with opened(votes, reading, output, gold=gold, to_look=gold is None) as loaded:
        space, table = loaded.space, loaded.votes
        with output.working("comparing the sources"):
            summary, n_items = summarize(table, space, loaded.gold, max_items=SAMPLE), table.n_items
            unit = _unit(space)
            if reading.engine is not None:
                table = table.sample(SAMPLE, 0).whole.votes
            pairs = _pair_agreement(table, space)
    if len(table) < n_items:
        output.note(f"pairs of sources and findings are of a sample of {len(table)} items")
    cast = sum(summary.columns["votes"])
    cells = max(n_items * table.n_sources, 1)
    wins = _wins(table) if isinstance(space, Preferences) and n_items == 1 and reading.engine is None else None
    if wins is None:
        sizes = ", ".join(counted(*one) for one in ((n_items, "item"), (table.n_sources, "source"), (cast, "vote")))
        output.text(f"{sizes} ({cast / cells:.0%} of cells)")
    else:
        compared = sum(len(said) for said in table.labels[table.observed])
        counts = ((len(wins["candidate"]), "candidate"), (compared, "comparison"), (table.n_sources, "judge"))
        output.text(", ".join(counted(*one) for one in counts))
    output.table(_with_habits(_in_units(summary.columns, unit), table, space))
    if wins is not None:
        output.table(wins, title="\nhow often the row beats the column, best first; a tie is half a win")
    left_out = () if wins is None else ("both", "agreement")
    met = [
        {name: cell for name, cell in row.items() if name not in left_out}
        for row in pairs
        if row["agreement"] is not None
    ]
    if table.n_sources <= MOST_SHOWN:
        shown, title = met, "\npairs of sources, most alike first"
    else:
        often = [row for row in met if row.get("both", MIN_OVERLAP) >= MIN_OVERLAP] or met
        shown = [*often[:PAIRS], *often[PAIRS:][-PAIRS:]]
        title = f"\nthe {PAIRS} pairs of sources most alike, and the {PAIRS} least alike"
    if shown:
        output.table(_in_units(columns_of(shown), unit), title=title)
    output.text(": ".join(_APART.get(unit.name, (unit.name, unit.meaning))))
    findings = _findings(table, pairs, space is None or space.law.needs_overlap)
    output.findings(findings)
    output.document(
        {
            "items": n_items,
            "votes": cast,
            "receipt": loaded.receipt and loaded.receipt.to_json(in_options),
            "space": None if space is None else describe(space),
            "sources": summary.to_arrow().to_pylist(),
            "pairs": pairs,
            "diagnostics": findings,
        }
    )


def _unit(space: LabelSpace | None) -> Unit:
    """Return the unit of a source's quality, as far as it is known before any model."""
    if space is None:
        return Unit("error_rate", "")
    if isinstance(space, Scores | Vectors):
        return Unit("error", "", np.sqrt, is_share=False)
    if isinstance(space, Rankings) and space.n_items is not None:
        pairs = max(space.n_items * (space.n_items - 1) / 2, 1.0)
        return Unit("pairs_wrong", "", lambda cost: cost / pairs)
    known = not isinstance(space, Rankings | Product)
    return space.unit(None) if known else Unit("mean_distance", "", is_share=False)


def _in_units(columns: Mapping[str, list[Any]], unit: Unit) -> dict[str, list[Any]]:
    """Return columns in which costs are figures that people read; those that are shares, in percent."""
    apart = _APART.get(unit.name, (unit.name, ""))[0]
    names = {"cost_to_others": apart, "mean cost": apart, "true_cost": unit.name}
    shares = frozenset(names.values()) if unit.is_share else frozenset[str]()
    found: dict[str, list[Any]] = {}
    for name, cells in columns.items():
        if name not in names:
            found[name] = cells
            continue
        figures = [None if cell is None else float(unit.figure(np.array([cell]))[0]) for cell in cells]
        found[names[name]] = [figure(names[name], one, shares) for one in figures]
    return found


def _with_habits(columns: dict[str, list[Any]], votes: Votes, space: LabelSpace | None) -> dict[str, list[Any]]:
    """Return the table of sources with what tells them apart where labels are numbers, or comparisons."""
    if isinstance(space, Scores):
        said = [votes.labels[seen, place].astype(np.float64) for place, seen in enumerate(votes.observed.T)]
        habits = {
            "mean": [float(own.mean()) if len(own) else None for own in said],
            "sd": [float(own.std()) if len(own) else None for own in said],
            "min": [float(own.min()) if len(own) else None for own in said],
            "max": [float(own.max()) if len(own) else None for own in said],
        }
        # Two sources hardly ever give the same number, so these columns would be the same for all.
        return {name: cells for name, cells in columns.items() if name not in ("conflicts", "labels")} | habits
    if isinstance(space, Preferences):
        counts = [sum(map(len, votes.labels[seen, place])) for place, seen in enumerate(votes.observed.T)]
        return {"source": columns["source"], "comparisons": counts} | {
            name: cells for name, cells in columns.items() if name.startswith("pairs_") or name == "known"
        }
    return columns


def _wins(votes: Votes) -> dict[str, list[Any]]:
    """Return how often each candidate beat each other one, those that win most first."""
    wins = pair_wins(votes.labels[votes.observed])

    def rate(one: Any, others: Iterable[Any]) -> float | None:
        pairs = [(wins[one, two], wins[one, two] + wins[two, one]) for two in others if (one, two) in wins]
        return sum(won for won, _ in pairs) / sum(total for _, total in pairs) if pairs else None

    found = list(dict.fromkeys(name for pair in wins for name in pair))
    names = sorted(found, key=lambda name: -(rate(name, found) or 0.0))
    shown = names[:MOST_CANDIDATES]
    rates = {str(two): [rate(one, [two]) for one in names] for two in shown}
    columns = {name: ["" if one is None else f"{one:.0%}" for one in own] for name, own in rates.items()}
    return {"candidate": list(map(str, names)), **columns}


def _pair_agreement(votes: Votes, space: LabelSpace | None) -> list[dict[str, Any]]:
    """Return one row per pair of sources, most alike first.

    Each holds the number of items that both voted on, the share of them with the same label (None where they never
    meet) and, where there is a label type, the mean cost between their labels.
    """
    table = votes if len(votes) <= SAMPLE else votes[np.linspace(0, len(votes) - 1, SAMPLE).astype(np.int64)]
    met: dict[tuple[int, int], dict[str, Any]] = {}
    for a, b, rows, cost in costs_between(table if space is None else encode(table, space), space):
        met[a, b] = {"agreement": float((cost <= EQUAL).mean()), "mean cost": float(cost.mean())}
        if isinstance(space, Scores):
            left, right = (table.labels[rows, one].astype(np.float64) for one in (a, b))
            varies = left.std() > 0.0 and right.std() > 0.0
            met[a, b]["correlation"] = float(np.corrcoef(left, right)[0, 1]) if varies else None
    seen = votes.observed.astype(np.float64)
    both = (seen.T @ seen).astype(int)
    measures = ["agreement"] + ["mean cost"] * (space is not None) + ["correlation"] * isinstance(space, Scores)
    found: list[dict[str, Any]] = []
    for a, b in combinations(range(votes.n_sources), 2):
        row = {"source": votes.sources[a], "and": votes.sources[b], "both": int(both[a, b])}
        found.append(row | {name: met.get((a, b), {}).get(name) for name in measures})
    # On a continuous scale, votes are only equal by chance.
    exact = space is None or not space.continuous
    found.sort(key=lambda row: (-(row["agreement"] or 0.0) if exact else 0.0, row.get("mean cost") or 0.0))
    return sorted(found, key=lambda row: row["agreement"] is None)


def _findings(votes: Votes, pairs: list[dict[str, Any]], needs_overlap: bool) -> list[Diagnostic]:
    """Return what will be trouble whatever the model, worst first."""
    request = Request(votes.sources, "auto", np.zeros((votes.n_sources, votes.n_sources), dtype=bool))
    found = voter_findings(np.asarray(votes.observed.any(axis=0)), request)
    for row in [row for row in pairs if row["agreement"] == 1.0 and row["both"] >= COPIED][:LISTED]:
        pair = (row["source"], row["and"])
        copies = f"If one copies the other, label with --depends {','.join(pair)}."
        message = f"{', '.join(pair)}: the same vote on every item they share. {copies}"
        found.append(Diagnostic("copied-source", "warning", pair, message))
    if needs_overlap:
        seen = votes.observed.astype(np.float64)
        found += overlap_findings((seen.T @ seen).astype(np.int64), request)
    voters = votes.observed.sum(axis=1)
    if (voters == 0).any():
        message = f"{_items(votes, voters == 0)} have no vote, so their label will be missing."
        found.append(Diagnostic("items-without-votes", "info", (), message))
    if (voters == 1).any():
        message = f"{_items(votes, voters == 1)} have only one vote, so no other source can correct it."
        found.append(Diagnostic("items-with-one-vote", "info", (), message))
    return found


def _items(votes: Votes, chosen: BoolArray) -> str:
    ids = [str(item) for item in votes.items[chosen][:3].tolist()]
    more = ", ..." if chosen.sum() > len(ids) else ""
    return f"{int(chosen.sum())} of {len(votes)} items ({', '.join(ids)}{more})"


@click.command(
    cls=Command,
    examples=(
        "consilience label votes.csv -o labels.csv --save model.npz",
        "consilience explain model.npz votes.csv --item t7",
    ),
)
@options.MODEL
@options.VOTES
@click.option("--item", "identity", required=True, metavar="ID", help="Which item.")
@click.option("--item-column", metavar="COLUMN", help="Column of item ids, if it cannot be found by its name.")
@options.reading(space=False, item=False, engine="numbers")
@options.printing
def explain(
    model: Path, votes: Path, identity: str, item_column: str | None, reading: options.Reading, output: Output
) -> None:
    """Explain an item's label: each source's vote, its influence, and what would change the outcome."""
    fitted = LabelModel.load(model)
    with opened(votes, replace(reading, item=item_column), output, model=fitted, count=False) as loaded:
        story = fitted.explain(loaded.votes, identity)
    output.text(str(story))
    output.document(vars(story))


@click.command(
    cls=Command,
    examples=(
        "consilience label votes.csv -o labels.csv --save model.npz",
        "consilience audit model.npz votes.csv --gold gold.csv",
        "consilience audit model.npz votes.csv --gold gold.csv --within 0.05 --json",
    ),
)
@options.MODEL
@options.VOTES
@options.reading(space=False)
@options.gold(required=True)
@click.option("--by", metavar="COLUMN", help="Repeat the numbers for each value of this column of VOTES.")
@click.option(
    "--within", type=click.FloatRange(min=0.0, min_open=True), default=0.02, show_default=True, metavar="X",
    help="Target half-width of the interval: how many more labels it needs.",
)  # fmt: skip
@options.printing
def audit(
    model: Path, votes: Path, reading: options.Reading, gold: str, by: str | None, within: float, output: Output
) -> None:
    """Estimate how good all labels are from the items whose true label is known, with 95% intervals.

    The known items have to be a random sample. Where they were drawn with different probabilities, the file of known
    labels says so in a column `probability`; items with an empty cell there were not drawn at random and are left out.
    Known labels that MODEL learned from are compared with labels of models that did not see them.
    """
    fitted = LabelModel.load(model)
    loaded = loading.load_for_model(votes, fitted, reading, output, gold)
    slices = None if by is None else loading.cells_by_item(votes, [by], reading, loaded.votes, alike=True)[by]
    weights = weights_of(gold, reading, loaded.votes)
    with output.working("auditing"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        found = fitted.audit(loaded.votes, loaded.gold, weights, slices)
    output.table(found.columns())
    more = found.labels_needed(within)
    output.text(f"{more} more labels would make the first interval about ± {within:g}" if more else "")
    if found.cross_fitted:
        output.note(f"{found.cross_fitted} known labels had been learned from and were held out in turn")
    output.findings(found.diagnostics)
    rows = [{"about": about, "measure": measure, **vars(one)} for about, measure, one in found.rows()]
    output.document(
        {
            "rows": rows,
            "stated_confidence": found.stated,
            "labels_needed": {"within": within, "more": more},
            "cross_fitted": found.cross_fitted,
            "diagnostics": found.diagnostics,
        }
    )


def weights_of(gold: str, reading: options.Reading, votes: Votes) -> FloatArray | None:
    """Return one over the probability of each item, where the file of known labels has such a column."""
    path = Path(gold)
    if not path.is_file() or PROBABILITY not in loading.table_of(path, reading).column_names:
        return None
    reading = replace(reading, item=reading.gold_item or reading.item)
    drawn = loading.cells_by_item(path, [PROBABILITY], reading, votes)[PROBABILITY]
    for item, value in zip(votes.items.tolist(), drawn, strict=True):
        if value is not None and not (isinstance(value, (int, float)) and 0.0 < value <= 1.0):
            raise FileFormatError(
                f"{gold!r}, item {item!r}: {value!r} is not a probability. Leave the cell empty if there is none."
            )
    return np.array([np.nan if value is None else 1.0 / value for value in drawn])


@click.command(
    cls=Command,
    examples=(
        "consilience label votes.csv -o labels.csv --save model.npz",
        "consilience report model.npz votes.csv -o page.html --gold gold.csv",
    ),
)
@options.MODEL
@options.VOTES
@options.target("Output file (.html).", options.page_file)
@options.reading(space=False)
@options.gold()
@options.SHOW
@click.option("--title", metavar="TEXT", help="Heading of the page; the name of VOTES by default.")
@options.FORCE
@options.printing
def report(
    model: Path,
    votes: Path,
    target: Path,
    reading: options.Reading,
    gold: str | None,
    show: str | None,
    title: str | None,
    force: bool,
    output: Output,
) -> None:
    """Write an HTML report: verdict, findings, sources, contested items.

    The report is one file that needs no network.
    """
    check_targets([target], force=force)
    fitted = LabelModel.load(model)
    reading = loading.without_shown(votes, reading, show)
    loaded = loading.load_for_model(votes, fitted, reading, output, gold)
    content = loading.shown_content(show, votes, reading, loaded.votes)
    with output.working("writing the report"):
        write_all({target: lambda path: write_page(path, fitted, loaded, title or votes.name, content)})
    output.text(f"Wrote the report to {target}")
    output.document({"report": str(target), "items": len(loaded.votes)})


def write_page(path: Path, model: LabelModel, loaded: Loaded, title: str, content: Any) -> None:
    """Write the report, which ends with the command that made it."""
    from consilience.report.page import page_of  # imported here with its templates, because most commands write no page

    command = shlex.join(["consilience", *sys.argv[1:]])
    page = page_of(model, loaded.votes, loaded.gold, title, show=content, command=command, words=in_options)
    write_text(path, page)


@click.command(cls=Command, examples=("consilience spaces",))
@options.printing
def spaces(output: Output) -> None:
    """List the label types: how to name them with --space, and what a cell of a file looks like.

    The part after the colon is optional when it can be inferred from the votes.
    """
    shown = {"type": "name", "--space": "example", "a cell": "cell", "a label is": "meaning"}
    output.table({title: [getattr(one, name) for one in NOTATIONS] for title, name in shown.items()})
    keys = {"name": "name", "space": "example", "meaning": "meaning", "cell": "cell"}
    output.document({"spaces": [{key: getattr(one, name) for key, name in keys.items()} for one in NOTATIONS]})
