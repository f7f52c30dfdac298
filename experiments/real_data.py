"""Claim: on real votes the default is never worse than the plain vote by more than its standard error.

Labeling functions, LLM judges, crowd workers, translations, rankings of dots and films, from the folder that
CONSILIENCE_DATA names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.progress import track

import consilience as cs

from . import public_data
from .rankings_real import GOOD, POOR, SET_SIZE, deal
from .scores_real import by_item
from .tables import QUICK, FloatArray, data_folder, fit_quietly, markdown_table, read_settings, verdict, write_results

FILMS = 1000
#: Two more columns that say little about how good a film is.
MORE_POOR = ("gross", "runtime")


@dataclass(frozen=True)
class Case:
    """Votes, the truth, the loss of labels item by item, and which items go together in the standard error.

    `ties_at_random` is the loss of a plain vote that draws among tied labels, where there is such a thing.
    """

    space: cs.LabelSpace
    votes: cs.Votes
    truth: Any
    loss: Callable[[Any, Any], FloatArray]
    clusters: npt.NDArray[Any] | None = None
    ties_at_random: Callable[[cs.Votes, Any], FloatArray] | None = None


@dataclass(frozen=True)
class Outcome:
    """Mean losses, the standard error of their paired difference, and how the default came to its labels.

    `plain` is the loss of `predict_baseline`; `at_random` is the same with ties drawn at random where there are such.
    """

    items: int
    plain: float
    at_random: float
    default: float
    error: float
    error_at_random: float
    method: str
    findings: tuple[str, ...]


def by_cost(space: cs.LabelSpace, labels: Any, truth: Any) -> FloatArray:
    cost: FloatArray = space.cost(space.as_batch(labels), space.as_batch(truth))
    return cost


def wrong_with_ties_at_random(votes: cs.Votes, truth: Any) -> FloatArray:
    """Return how often a majority vote that draws among its tied classes is wrong, item by item."""
    labels, observed = np.asarray(votes.labels), votes.observed
    counts = np.stack([((labels == one) & observed).sum(axis=1) for one in range(int(labels.max()) + 1)], axis=1)
    tied = counts == counts.max(axis=1, keepdims=True)
    wrong: FloatArray = 1.0 - tied[np.arange(len(tied)), truth] / tied.sum(axis=1)
    return wrong


def words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[\w']+", text.lower()))


def word_error(left: str, right: str) -> float:
    """Return the word edit distance over the longer length."""
    one, two = words(left), words(right)
    previous = list(range(len(two) + 1))
    for row, word in enumerate(one, 1):
        current = [row]
        for column, other in enumerate(two, 1):
            current.append(min(previous[column] + 1, current[-1] + 1, previous[column - 1] + (word != other)))
        previous = current
    return previous[-1] / max(len(one), len(two), 1)


def share_of_pairs(labels: Any, rating: FloatArray) -> FloatArray:
    """Return which share of the pairs of films that the gold tells apart is in the wrong order."""
    left, right = np.triu_indices(rating.shape[1], 1)
    gold = np.sign(rating[:, left] - rating[:, right])
    said = np.sign(np.asarray(labels)[:, right] - np.asarray(labels)[:, left])
    counted = gold != 0
    wrong = ((1 - gold * said) / 2 * counted).sum(axis=1)
    share: FloatArray = wrong / np.maximum(counted.sum(axis=1), 1)
    return share


def cases(folder: Path, quick: bool) -> Iterator[tuple[str, Callable[[], Case]]]:
    """Yield the name of every data set and how to read it."""
    for name in public_data.WRENCH[:1] if quick else public_data.WRENCH:
        yield name, partial(read_classes, folder, name)
    yield "asset_judges", partial(read_judges, folder)
    yield "crowd_affect, scores", partial(read_affect, folder)
    if quick:
        return
    yield "crowd_affect, vectors", partial(read_affect_vectors, folder)
    for part in ("J1", "T1", "T2"):
        yield f"crowd_translations {part}", partial(read_translations, folder, part)
    yield "preflib_dots", partial(read_all_dots, folder)
    yield "movies, 3 good", partial(read_films, folder, list(GOOD))
    yield "movies, 3 good + 3 poor", partial(read_films, folder, [*GOOD, *POOR])
    yield "movies, IMDb + 3 poor", partial(read_films, folder, ["imdb_rating", *POOR])
    yield "movies, IMDb + 5 poor", partial(read_films, folder, ["imdb_rating", *POOR, *MORE_POOR])


def read_classes(folder: Path, name: str) -> Case:
    data = public_data.load_wrench(name, folder=folder)
    return Case(
        cs.Classes(len(data.classes)),
        data.votes,
        data.truth,
        lambda labels, truth: (labels != truth).astype(float),
        ties_at_random=wrong_with_ties_at_random,
    )


def read_judges(folder: Path) -> Case:
    data = public_data.load_asset_judges(folder)
    votes = cs.Votes.from_array(by_item(data.ratings, data.item), sources=data.judges)
    return Case(cs.Scores(), votes, by_item(data.truth, data.item)[:, 0], partial(by_cost, cs.Scores()))


def read_affect(folder: Path) -> Case:
    """Read the seven emotions below each other, each scaled by its gold spread; a headline is one cluster."""
    table = pd.DataFrame(vars(public_data.load_crowd_affect(folder)))
    table["cell"] = table["emotion"].astype(str) + "/" + table["item"].astype(str)
    votes = cs.Votes.from_long(table, item="cell", source="worker", label="response")
    first = table.drop_duplicates("cell").set_index("cell").loc[votes.items]
    return Case(
        cs.Scores(),
        votes,
        first["gold"].to_numpy(float),
        partial(by_cost, cs.Scores()),
        first["item"].astype(str).to_numpy(),
    )


def read_affect_vectors(folder: Path) -> Case:
    table = pd.DataFrame(vars(public_data.load_crowd_affect(folder)))
    wide = table.pivot_table(index=["item", "worker"], columns="emotion", values="response").dropna()
    gold = table.drop_duplicates(["item", "emotion"]).pivot(index="item", columns="emotion", values="gold")
    space = cs.Vectors(wide.shape[1])
    records = [(item, worker, row) for (item, worker), row in zip(wide.index, wide.to_numpy(float), strict=True)]
    votes = cs.Votes.from_long(records)
    return Case(space, votes, gold.loc[votes.items].to_numpy(float), partial(by_cost, space))


def read_translations(folder: Path, part: str) -> Case:
    answers = pd.read_parquet(folder / "crowd_translations" / "answers.parquet").query("part == @part")
    answers = answers.drop_duplicates(["item", "worker"])  # a few were handed in twice
    gold = pd.read_parquet(folder / "crowd_translations" / "gold.parquet").query("part == @part").set_index("item")
    votes = cs.Votes.from_long(answers, item="item", source="worker", label="answer")
    space = cs.Metric(word_error)
    return Case(space, votes, gold.loc[votes.items, "gold"].to_numpy(object), partial(by_cost, space))


def read_all_dots(folder: Path) -> Case:
    votes, gold = deal(public_data.load_preflib_dots(folder), np.random.default_rng(0))
    space = cs.Rankings(4)
    return Case(space, votes, gold, partial(by_cost, space))


def read_films(folder: Path, sources: list[str]) -> Case:
    films = public_data.load_movies(folder)
    columns = dict(zip(films.feature_names, films.features.T, strict=True))
    scores, rating = {**columns, **films.sources}, films.rating
    rng = np.random.default_rng(0)
    chosen = np.stack([rng.choice(len(rating), SET_SIZE, replace=False) for _ in range(FILMS)])
    table = np.stack([cs.Rankings.positions_from_scores(scores[one][chosen]) for one in sources], axis=1)
    votes = cs.Votes.from_array(table.astype(np.int64), sources=sources)
    return Case(cs.Rankings(SET_SIZE), votes, rating[chosen], share_of_pairs)


def paired_error(difference: FloatArray, clusters: npt.NDArray[Any]) -> float:
    """Return the standard error of a mean difference, of items that go together in clusters."""
    totals = pd.Series(difference - difference.mean()).groupby(clusters).sum().to_numpy()
    return float(np.sqrt((totals**2).sum()) / len(difference))


def measure(case: Case) -> Outcome:
    """Fit without labels and compare to the plain vote on the items somebody votes on."""
    model = fit_quietly(cs.LabelModel(case.space, random_state=0), case.votes)
    rows = np.flatnonzero(case.votes.observed.any(axis=1))
    default, plain = (
        case.loss(labels[rows], case.truth[rows])
        for labels in (model.predict(case.votes), model.predict_baseline(case.votes))
    )
    at_random = plain if case.ties_at_random is None else case.ties_at_random(case.votes, case.truth)[rows]
    clusters = np.arange(len(rows)) if case.clusters is None else case.clusters[rows]
    errors = (paired_error(default - other, clusters) for other in (plain, at_random))
    found = tuple(sorted({item.code for item in model.diagnostics_ if item.severity != "info"}))
    means = (float(losses.mean()) for losses in (plain, at_random, default))
    return Outcome(len(rows), *means, *errors, model.source_model_.method, found)


def bounded(name: str, difference: float, error: float) -> str:
    return verdict(
        f"{name}: worse by at most one standard error",
        difference <= error + 1e-12,
        f"{difference:+.4g}, s.e. {error:.2g}",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all data sets and write ``real_data.md``."""
    settings = read_settings("experiments.real_data", __doc__, 1, 1, arguments)
    todo = list(cases(data_folder("wrench", "movies", "preflib_dots"), settings.quick))
    outcomes = {name: measure(read()) for name, read in track(todo, description="real data")}
    rows = [
        [
            name,
            str(one.items),
            f"{one.plain:.4g}",
            f"{one.at_random:.4g}",
            f"{one.default:.4g}",
            f"{one.default - one.plain:+.4g}",
            f"{one.error:.2g}",
            one.method,
            ", ".join(one.findings),
        ]
        for name, one in outcomes.items()
    ]
    lines = [bounded(name, one.default - one.plain, one.error) for name, one in outcomes.items()]
    stricter = [
        bounded(f"{name}, ties at random", one.default - one.at_random, one.error_at_random)
        for name, one in outcomes.items()
        if one.at_random != one.plain
    ]
    columns = [
        "data",
        "items",
        "plain vote",
        "ties at random",
        "default",
        "difference",
        "s.e.",
        "learned by",
        "findings",
    ]
    blocks = [
        "Mean loss on items with a vote; fitted on the same votes without labels. Classes: share wrong; scores and "
        "vectors: squared error; translations: word edit distance over the longer length; dots: Kendall distance; "
        "films: share of pairs in the wrong order, gold ties skipped. *plain vote*: `predict_baseline`. *ties at "
        "random*: of classes, majority vote that draws among tied ones, in expectation. Differences, standard errors "
        "and targets are against *plain vote*; those against *ties at random* follow below them.",
        markdown_table(columns, rows),
        "## Targets",
        QUICK if settings.quick else "\n".join([*lines, *stricter]),
    ]
    write_results(
        settings.results / "real_data.md",
        "Real data against the plain vote",
        settings.command,
        ["standard errors of paired differences, by headline for crowd_affect", f"{FILMS} sets of {SET_SIZE} films"],
        blocks,
    )


if __name__ == "__main__":
    main()
