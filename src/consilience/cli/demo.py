"""The main job on four small tables of votes: fit, look at the sources, read the diagnostics, write the labels.

`solve` computes, `write_labels` writes, `show` draws; only the last one needs a terminal.
"""

from __future__ import annotations

import csv
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array
from consilience.datasets import Example, load_guests, load_products, load_sentences, load_tickets, spell_ranking
from consilience.exceptions import ConsilienceWarning
from consilience.label_model import LabelModel
from consilience.label_types import Rankings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["STORIES", "Outcome", "Score", "Story", "run_demo", "score_of", "show", "solve", "spelled", "write_labels"]

#: How many items to show on which the majority is wrong and the model right.
SHOWN_ITEMS = 2
INTRODUCTION = (
    "Four tables of votes. Expected cost and weight of a source are learned from agreement alone; true cost and "
    "scores come from the truth, which the model never sees."
)
COLOURS = {"error": "bold red", "warning": "yellow", "info": "cyan"}


@dataclass(frozen=True)
class Story:
    """One table of the demo.

    Parameters
    ----------
    name
        Goes into the name of the file of labels.
    items
        What the items are, in the plural.
    told
        Dependencies that a user who reads the diagnostics would pass on; empty if there are none.
    counted
        Whether majority vote counts labels. The label nearest to all votes is the usual stand-in where labels are
        seldom the same, and the same thing for classes; in a tree it drifts to the general nodes.
    measure
        What `Score.distance` is.
    """

    name: str
    title: str
    text: str
    items: str
    load: Callable[[], Example]
    told: tuple[tuple[str, str], ...] = ()
    counted: bool = False
    measure: str = "mean distance"


STORIES = (
    Story(
        name="tickets",
        title="Classes: the topic of support tickets",
        text="Two language-model judges, two crowd workers, keyword rules that mostly abstain, and an old model that "
        "likes to say 'billing'.",
        items="tickets",
        load=load_tickets,
    ),
    Story(
        name="products",
        title="FiniteMetric: products in a taxonomy",
        text="A tree of 12 categories; the cost of a wrong one is the number of steps to the right one. Two of the "
        "shops look suspiciously alike.",
        items="products",
        load=load_products,
        told=(("shop_a", "shop_b"),),
        counted=True,
    ),
    Story(
        name="guests",
        title="Rankings: five jams in the order in which a guest likes them",
        text="The cost is the number of pairs in the wrong order. 'purchases' leaves out jams it never saw; the waiter "
        "names three, so the others come last.",
        items="guests",
        load=load_guests,
        measure="pairs wrong",
    ),
    Story(
        name="sentences",
        title="Metric: sentences with a distance of your own",
        text="Five transcribers wrote down what they heard. All the model knows of a sentence is a Python function: "
        "how many words differ.",
        items="clips",
        load=load_sentences,
    ),
)


@dataclass(frozen=True)
class Score:
    """How good labels are: share that is exactly right, and mean distance to the truth (rankings: share of pairs)."""

    name: str
    right: float
    distance: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came out of one story.

    Parameters
    ----------
    labels, majority, confidence
        Each ``(n_items,)``: the labels of the model, those of majority vote, and how sure the former are.
    true_cost
        ``(n_sources,)`` mean cost of the votes to the truth, which only an example has.
    scores
        Of the model, of majority vote, and of what else is worth comparing.
    """

    story: Story
    example: Example
    model: LabelModel
    labels: Batch
    majority: Batch
    confidence: FloatArray
    true_cost: FloatArray
    scores: tuple[Score, ...]

    @property
    def rescued(self) -> BoolArray:
        """Items on which the majority is wrong and the model right."""
        truth = self.example.truth
        rescued: BoolArray = (self.labels == truth) & (self.majority != truth)
        return rescued

    def score(self, name: str) -> Score:
        """Return the score of this name."""
        return next(score for score in self.scores if score.name == name)


def run_demo(folder: Path, console: Console, seed: int = 0) -> list[Outcome]:
    """Run every story, show it, and write its labels into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    console.print(INTRODUCTION)
    console.print()
    outcomes = []
    for number, story in enumerate(STORIES, start=1):
        with console.status(f"fitting {story.name} ..."):
            outcome = solve(story, seed)
        path = write_labels(outcome, folder)
        show(outcome, console, number)
        console.print(f"Wrote {len(outcome.labels)} labels with their confidence to [bold]{path}[/]", soft_wrap=True)
        console.print()
        outcomes.append(outcome)
    return outcomes


def solve(story: Story, seed: int = 0) -> Outcome:
    """Fit the model and the baselines of one story."""
    example = story.load()
    space, votes = example.space, example.votes

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)  # shown as diagnostics instead
        model = LabelModel(space, random_state=seed).fit(votes)
        plain = LabelModel(space, method="majority", random_state=seed).fit(votes)
        told = LabelModel(space, dependencies=story.told, random_state=seed).fit(votes) if story.told else None
    labels, nearest = model.predict(votes), plain.predict(votes)
    majority = _most_frequent(example, seed) if story.counted else nearest
    scores = [score_of(example, "consilience", labels)]
    if told is not None:
        scores.append(score_of(example, f"consilience, dependencies=[{story.told[0]}]", told.predict(votes)))
    scores.append(score_of(example, "majority vote", majority))
    if story.counted:
        scores.append(score_of(example, "nearest to all votes (equal weights)", nearest))
    singles = [
        score_of(example, f"best single source ({name}, on its {share:.0%})", column, seen)
        for name, share, column, seen in zip(
            votes.sources, votes.coverage(), votes.labels.T, votes.observed.T, strict=True
        )
    ]
    best = int(np.argmin([score.distance for score in singles]))
    scores.append(singles[best])
    if not votes.observed[:, best].all():
        scores.append(score_of(example, "consilience, on the same items", labels, votes.observed[:, best]))
    return Outcome(
        story,
        example,
        model,
        labels,
        majority,
        model.confidence(votes),
        np.array([_costs(example, column).mean() for column in range(votes.n_sources)]),
        tuple(scores),
    )


def write_labels(outcome: Outcome, folder: Path) -> Path:
    """Write item, label and confidence as CSV; the file is there in full or not at all."""
    target = folder / f"labels-{outcome.story.name}.csv"
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["item", "label", "confidence"])
            for item, label, sure in zip(outcome.example.votes.items, outcome.labels, outcome.confidence, strict=True):
                writer.writerow([item, spelled(label), f"{sure:.4f}"])
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return target


def show(outcome: Outcome, console: Console, number: int = 1) -> None:
    """Draw one story: the sources, the diagnostics, the scores, and a few items."""
    from rich.rule import Rule

    story, votes = outcome.story, outcome.example.votes
    console.print(Rule(f"[bold]{number}  {story.title}[/]", align="left", style="cyan"))
    console.print(f"{story.text} {votes.n_items} {story.items}, {votes.n_sources} sources, no known labels.")
    console.print(_source_table(outcome, "+-" if console.options.ascii_only else "±"))
    console.print(_diagnostic_grid(outcome))
    console.print(_score_table(outcome))
    surest, rest = _halves(outcome)
    console.print(f"Confidence tells them apart: of the surer half {surest:.0%} are right, of the others {rest:.0%}.")
    count = int(outcome.rescued.sum())
    if count:
        console.print(f"On {count} {story.items} majority vote is wrong and consilience right, for instance:")
        console.print(_item_table(outcome))


def _source_table(outcome: Outcome, plus_minus: str) -> Table:
    from rich.table import Column

    columns = outcome.model.sources_.columns
    table = _table(
        "source", *(Column(name, justify="right") for name in ("votes on", "expected cost", "true cost", "weight"))
    )
    order = np.argsort(columns["expected_cost"])
    for row in order:
        cost, error = columns["expected_cost"][row], columns["cost_standard_error"][row]
        table.add_row(
            columns["source"][row],
            f"{columns['coverage'][row]:.0%}",
            f"{cost:.2f} {plus_minus} {error:.2f}",
            f"[dim]{outcome.true_cost[row]:.2f}[/]",
            f"{columns['weight'][row]:.2f}",
        )
    return table


def _diagnostic_grid(outcome: Outcome) -> Table:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 1))
    for finding in outcome.model.diagnostics_:
        colour = COLOURS[finding.severity]
        grid.add_row(Text(finding.severity, style=colour), Text.assemble((finding.code, colour), "  ", finding.message))
    return grid


def _score_table(outcome: Outcome) -> Table:
    from rich.table import Column
    from rich.text import Text

    table = _table("labels by", Column("right", justify="right"), Column(outcome.story.measure, justify="right"))
    for score in outcome.scores:
        style = "bold green" if score.name.startswith("consilience") else ""
        distance = f"{score.distance:.1%}" if isinstance(outcome.example.space, Rankings) else f"{score.distance:.2f}"
        table.add_row(Text(score.name), f"{score.right:.1%}", distance, style=style)
    return table


def _item_table(outcome: Outcome) -> Table:
    from rich.table import Column
    from rich.text import Text

    votes, finite = outcome.example.votes, outcome.example.space.n_labels is not None
    votes_column: list[Any] = ["the votes"] if finite else []
    table = _table(
        "item", *votes_column, "majority vote", "consilience and truth", Column("confidence", justify="right")
    )
    rows = np.flatnonzero(outcome.rescued)
    outvoted = _count(outcome, outcome.labels)[rows] < _count(outcome, outcome.majority)[rows]
    for row in rows[np.lexsort((-outcome.confidence[rows], ~outvoted))][:SHOWN_ITEMS]:
        counts = Counter(map(spelled, votes.labels[row][votes.observed[row]])).most_common()
        said = [", ".join(f"{count} {label}" for label, count in counts)] if finite else []
        table.add_row(
            str(votes.items[row]),
            *said,
            Text(spelled(outcome.majority[row]), style="red"),
            Text(spelled(outcome.labels[row]), style="green"),
            f"{outcome.confidence[row]:.2f}",
        )
    return table


def _table(*columns: Any) -> Table:
    from rich import box
    from rich.table import Table

    return Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")


def _halves(outcome: Outcome) -> tuple[float, float]:
    """Return the share of right labels among the surer half of them, and among the rest."""
    right = outcome.labels == outcome.example.truth
    order = np.argsort(-outcome.confidence, kind="stable")
    half = len(order) // 2
    return float(right[order[:half]].mean()), float(right[order[half:]].mean())


def _count(outcome: Outcome, labels: Batch) -> FloatArray:
    """Return how many sources vote for the given label of each item."""
    votes = outcome.example.votes
    count: FloatArray = ((votes.labels == labels[:, None]) & votes.observed).sum(axis=1)
    return count


def score_of(example: Example, name: str, labels: Batch, seen: BoolArray | None = None) -> Score:
    """Return how good labels are; `seen` says which there are, where some are missing."""
    space, rows = example.space, np.flatnonzero(np.ones(len(labels), dtype=bool) if seen is None else seen)
    labels, truth = labels[rows], example.truth[rows]
    if isinstance(space, Rankings):  # what a ranking leaves open is half wrong
        distance = space.kendall_error(labels, truth)
    else:
        distance = float(space.distance(space.as_batch(labels), space.as_batch(truth)).mean())
    return Score(name, float((labels == truth).mean()), distance)


def spelled(label: Any) -> str:
    """Return a label as text; rankings best first."""
    return spell_ranking(label) if isinstance(label, list) else str(label)


def _costs(example: Example, column: int) -> FloatArray:
    """Return the cost of each vote of one source to the truth."""
    space, votes = example.space, example.votes
    rows = np.flatnonzero(votes.observed[:, column])
    return space.cost(space.as_batch(votes.labels[rows, column]), space.as_batch(example.truth[rows]))


def _most_frequent(example: Example, seed: int) -> Batch:
    """Return the label most sources name, whatever the distances; ties are broken at random."""
    votes, rng = example.votes, np.random.default_rng(seed)
    chosen = []
    for labels, seen in zip(votes.labels, votes.observed, strict=True):
        counts = Counter(labels[seen].tolist())
        top = max(counts.values())
        tied = [label for label, count in counts.items() if count == top]
        chosen.append(tied[rng.integers(len(tied))])
    return as_object_array(chosen)
