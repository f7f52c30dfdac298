"""The main job on four small tables of votes: fit, look at the sources, read the diagnostics, write the labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import numpy as np

from consilience.arrays import Batch, BoolArray
from consilience.cli import options
from consilience.cli.commands import Command
from consilience.cli.label import fit_votes
from consilience.cli.output import Output, check_targets, columns_of, write_all
from consilience.datasets import Example, load_guests, load_products, load_sentences, load_tickets
from consilience.label_model import LabelModel
from consilience.label_types import Rankings
from consilience.labeling import summarize
from consilience.tables.files import why
from consilience.tables.writing import label_table, write_labels

INTRODUCTION = (
    "Four tables of votes. Expected cost and weight of a source are learned from agreement alone; true cost and "
    "scores come from the truth, which the model never sees."
)


@dataclass(frozen=True)
class Story:
    """One table of the demo; `dependent` are sources that share errors, as its diagnostics say."""

    name: str
    title: str
    text: str
    load: Callable[[], Example]
    dependent: tuple[tuple[str, str], ...] = ()


STORIES = (
    Story(
        "tickets",
        "Classes: the topic of support tickets",
        "Two language-model judges, two crowd workers, keyword rules that mostly abstain, and an old model that "
        "likes to say 'billing'.",
        load_tickets,
    ),
    Story(
        "products",
        "FiniteMetric: products in a taxonomy",
        "A tree of 12 categories; the cost of a wrong one is the number of steps to the right one. Two of the "
        "shops look suspiciously alike.",
        load_products,
        dependent=(("shop_a", "shop_b"),),
    ),
    Story(
        "guests",
        "Rankings: five jams in the order in which a guest likes them",
        "The cost is the number of pairs in the wrong order. 'purchases' leaves out jams it never saw; the waiter "
        "names three, so the others come last.",
        load_guests,
    ),
    Story(
        "sentences",
        "Metric: sentences with a custom distance",
        "Five transcribers wrote down what they heard. All the model knows of a sentence is a Python function: "
        "how many words differ.",
        load_sentences,
    ),
)


@click.command(cls=Command, examples=("consilience demo", "consilience demo --tables -o tables"))
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("consilience-demo"),
    show_default=True,
    help="Folder for the files; made if it is missing.",
)
@click.option("--tables", is_flag=True, help="Only write the sample files used in the examples: votes.csv, ...")
@options.SEED
def demo(folder: Path, tables: bool, seed: int) -> None:
    """Label four small example tables and show what was learned.

    Support tickets (classes), products in a taxonomy (a finite metric space), jams (rankings) and sentences (any
    distance): who can be trusted, what the diagnostics say, how the labels compare with the plain vote and with the
    truth. The tables are simulated, so the truth is known; the model does not see it. Writes the labels of each as CSV.

    With --tables, write the files that the other commands and the tutorials name in their examples instead.
    """
    output = Output()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if tables:
            output.text(f"wrote {', '.join(path.name for path in write_tables(folder))} to {folder}")
            return
        output.text(INTRODUCTION)
        for number, story in enumerate(STORIES, start=1):
            _tell(number, story, folder / f"labels-{story.name}.csv", output, seed)
    except OSError as error:
        raise click.BadParameter(f"cannot write to {str(folder)!r}: {why(error)}. Choose another folder.") from None
    output.text("Next: label your own table with `consilience label votes.csv -o labels.csv`.")


def write_tables(folder: Path) -> list[Path]:
    """Write the files that the help texts, the recipes and the tutorials name into a folder; return their paths."""
    shipped = [*(files("consilience.cli") / "tables").iterdir(), *(files("consilience.datasets") / "files").iterdir()]
    contents = {folder / file.name: file.read_bytes() for file in sorted(shipped, key=lambda file: file.name)}
    check_targets(contents, force=False)
    write_all({path: partial(Path.write_bytes, data=content) for path, content in contents.items()})
    return list(contents)


def _tell(number: int, story: Story, target: Path, output: Output, seed: int) -> None:
    """Fit and show a story, and write its labels."""
    example = story.load()
    votes = example.votes
    with output.working(f"fitting {story.name}"):
        model = fit_votes(example.space, votes, seed=seed)
        belief, plain = model.posterior(votes), model.predict_baseline(votes)
        labels, sure = belief.labels, belief.confidence
        rows = scores(story, example, labels, plain, seed)
    output.text(f"\n--- {number}  {story.title} ---")
    output.text(f"{story.text} {votes.n_items} items, {votes.n_sources} sources, no known labels.\n")
    output.table(source_columns(example, model))
    output.findings(model.diagnostics_)
    output.table(columns_of(rows))
    right = labels == example.truth
    surer, others = np.array_split(np.argsort(-sure, kind="stable"), 2)
    output.text(
        f"Confidence is informative: {right[surer].mean():.0%} of the more confident half are correct, "
        f"{right[others].mean():.0%} of the rest."
    )
    rescued = np.flatnonzero(right & (plain != example.truth))
    if len(rescued):
        row = int(rescued[np.argmax(sure[rescued])])
        shown = label_table(model, votes[row : row + 1]).to_pylist()[0]
        count = "1 item" if len(rescued) == 1 else f"{len(rescued)} items"
        output.text(
            f"On {count} the plain vote is wrong and consilience right, for instance on {shown['item']}: "
            f"{shown['label']!r} (confidence {sure[row]:.2f})."
        )
    write_labels(target, model, votes, force=True)
    output.text(f"wrote {votes.n_items} labels with their confidence to {target}")


def scores(story: Story, example: Example, labels: Batch, plain: Batch, seed: int = 0) -> list[dict[str, Any]]:
    """Return how good the labels of the model, of the plain vote and of the best single source are."""
    space, votes = example.space, example.votes
    rows = [score(example, "consilience", labels)]
    if story.dependent:
        informed = fit_votes(space, votes, pairs=story.dependent, seed=seed)
        rows.append(score(example, f"consilience --depends {','.join(story.dependent[0])}", informed.predict(votes)))
    rows.append(score(example, "plain vote", plain))
    singles = [
        score(example, f"best single source ({name}, on its {seen.mean():.0%})", column, seen)
        for name, column, seen in zip(votes.sources, votes.labels.T, votes.observed.T, strict=True)
    ]
    best = int(np.argmin([row["distance"] for row in singles]))
    rows.append(singles[best])
    if not votes.observed[:, best].all():
        rows.append(score(example, "consilience, on the same items", labels, votes.observed[:, best]))
    return rows


def score(example: Example, name: str, labels: Batch, seen: BoolArray | None = None) -> dict[str, Any]:
    """Return the share of labels that are right, and their mean distance to the truth (rankings: share of pairs).

    `seen` says which labels there are, where some are missing.
    """
    space, rows = example.space, np.arange(len(labels)) if seen is None else np.flatnonzero(seen)
    labels, truth = labels[rows], example.truth[rows]
    if isinstance(space, Rankings):  # a pair that the ranking leaves open is half wrong
        distance = float(space.kendall_error(labels, truth))
    else:
        distance = float(space.distance(space.as_batch(labels), space.as_batch(truth)).mean())
    return {"labels by": name, "right": float((labels == truth).mean()), "distance": distance}


def source_columns(example: Example, model: LabelModel) -> dict[str, list[Any]]:
    """Return the table of sources, best first, beside what each of them really costs."""
    true_cost = summarize(example.votes, example.space, example.truth).columns["true_cost"]
    learned, order = model.sources_.columns, model.source_model_.best_first()
    return {
        "source": learned["source"],
        "coverage": learned["coverage"],
        "expected cost": model.expected_cost_[order].tolist(),
        "std. error": model.cost_standard_error_[order].tolist(),
        "true cost": [true_cost[place] for place in order],
        "weight": learned["weight"],
    }
