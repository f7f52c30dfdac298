"""`audit`: how good the labels are, by the items that were labeled by hand."""

from __future__ import annotations

import warnings
from pathlib import Path

import click
import numpy as np

from consilience.arrays import FloatArray
from consilience.cli import options
from consilience.cli.commands import Command
from consilience.cli.loading import cells_by_item, item_column, item_key, load_for_model, table_of
from consilience.cli.output import Output
from consilience.exceptions import ConsilienceWarning, FileFormatError
from consilience.label_model import LabelModel
from consilience.votes import Votes

#: Column of a file of known labels that says with which probability an item was drawn.
PROBABILITY = "probability"


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
@click.option("--by", metavar="COLUMN", help="The same numbers for each value of this column of VOTES.")
@click.option(
    "--within", type=click.FloatRange(min=0.0, min_open=True), default=0.02, show_default=True, metavar="X",
    help="Say how many more labels would make the interval plus or minus X.",
)  # fmt: skip
@options.printing
def audit(
    model: Path, votes: Path, reading: options.Reading, gold: str, by: str | None, within: float, output: Output
) -> None:
    """Say how good the labels of all items are, by those whose true label is known, with 95% intervals.

    The known items have to be a random sample. Where they were drawn with different probabilities, the file of known
    labels says so in a column `probability`; items with an empty cell there were not drawn at random and are left out.
    Known labels that MODEL learned from are compared with labels of models that did not see them.
    """
    fitted = LabelModel.load(model)
    loaded = load_for_model(votes, fitted, reading, output, gold)
    slices = None if by is None else cells_by_item(votes, [by], reading, loaded.votes, alike=True)[by]
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
    if not path.is_file():
        return None
    table = table_of(path, reading)
    if PROBABILITY not in table.column_names:
        return None
    item = reading.gold_item or item_column(table.column_names, reading)
    weights: dict[str, float] = {}
    for name, value in zip(table.column(item).to_pylist(), table.column(PROBABILITY).to_pylist(), strict=True):
        if value is None or value == "":
            continue
        if not isinstance(value, (int, float)) or not 0.0 < value <= 1.0:
            raise FileFormatError(
                f"{gold!r}, item {name!r}: {value!r} is not a probability. Leave the cell empty if there is none."
            )
        weights[item_key(name)] = 1.0 / value
    return np.array([weights.get(item_key(one), np.nan) for one in votes.items.tolist()])
