"""Claim: this measures whether end models gain from confidence as weights and from soft labels on real data.

Every real set with features: films, board games and documents. Reads ``movies``, ``bgg`` and ``letor_mq2008`` from the
folder that CONSILIENCE_DATA names; needs ``consilience[models]``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.progress import track

import consilience as cs

from . import public_data
from .film_sets import SET_SIZE, draw_sets
from .letor import any_documents
from .tables import FloatArray, data_folder, markdown_table, mean_spread, read_settings, verdict, write_results

SETS, TEST_SETS, SHARE = 2000, 1000, 0.75
KEPT, WEIGHTED, SOFT = "labels alone", "confidence as weight", "probabilities"
#: A difference in means over the splits that is larger than this many standard errors counts.
SURE = 2.0

Errors = dict[str, float]


def errors_of(
    make: Callable[[], Any], X: Any, votes: Any, space: cs.LabelSpace, error: Callable[[Any], float]
) -> Errors:
    """Return the error of a model that was trained in each way; probabilities for classes alone."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        model = cs.LabelModel(space, random_state=0).fit(votes)
        for name, unsure in ((KEPT, "keep"), (WEIGHTED, "weight")):
            fitted = cs.end_models.fit_end_model(make(), X, votes, label_model=model, unsure=unsure)
            found[name] = error(fitted.end_model)
        if isinstance(space, cs.Classes):
            soft = cs.end_models.SoftLabelClassifier(make())
            found[SOFT] = error(cs.end_models.fit_end_model(soft, X, votes, label_model=model).end_model)
    return found


def rated(features: FloatArray, rating: FloatArray, sources: FloatArray, seed: int) -> dict[str, Errors]:
    """Return errors of ratings, and of the question whether a rating is above the middle one."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    order = np.random.default_rng(seed).permutation(len(rating))
    train, test = np.split(order, [int(SHARE * len(order))])
    scores = cs.Scores(mean=float(rating[train].mean()), variance=float(rating[train].var()))
    above = (rating > np.median(rating)).astype(np.int64)
    votes = (sources[train] > np.median(sources[train], axis=0)).astype(np.int64)
    makers = {
        "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "boosted trees": lambda: HistGradientBoostingClassifier(random_state=seed),
    }
    found = {
        "ratings, boosted trees": errors_of(
            lambda: HistGradientBoostingRegressor(random_state=seed), features[train],
            cs.Votes.from_array(sources[train]), scores,
            lambda model: float(np.mean((model.predict(features[test]) - rating[test]) ** 2)),
        )
    }  # fmt: skip
    for name, make in makers.items():
        found[f"above the middle, {name}"] = errors_of(
            make,
            features[train],
            votes,
            cs.Classes(2),
            lambda model: float(np.mean(model.predict(features[test]) != above[test])),
        )
    return found


def ranked(train: Any, test: Any, votes: cs.Votes, seed: int) -> Errors:
    """Return the share of pairs in the wrong order."""
    space = cs.Rankings(train.rows.shape[1])
    return errors_of(
        lambda: cs.end_models.LambdaRanker(n_estimators=50, num_leaves=7, random_state=seed),
        train.X, votes, space,
        lambda model: space.kendall_error(model.predict(test.X), test.gold),
    )  # fmt: skip


def run(seed: int, quick: bool) -> dict[str, Errors]:
    """Return errors by data set, and by how the end model was trained."""
    found = {}
    films, games, letor = public_data.load_movies(), public_data.load_board_games(), public_data.load_letor_mq2008()
    counts = {name: np.log1p(np.maximum(values, 0.0)) for name, values in games.sources.items()}
    sizes = (100, 50) if quick else (SETS, TEST_SETS)
    for name, data, score, sources, own in (
        ("films", films, films.rating, films.good | films.poor, films.good),
        ("board games", games, -games.rank, games.sources, counts),
    ):
        train, test = draw_sets(data.features, score, *sizes, np.random.default_rng(seed))
        found[f"{name}: sets of {SET_SIZE}, boosted trees"] = ranked(train, test, train.votes_by(dict(sources)), seed)
        matrix = np.column_stack(list(own.values()))
        if name == "board games":  # counts on the scale of ratings
            matrix = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0) * data.rating.std() + data.rating.mean()
        for what, errors in rated(data.features, data.rating, matrix, seed).items():
            found[f"{name}: {what}"] = errors
    rng = np.random.default_rng(seed)
    fold = seed % 5 + 1
    parts = [[rows for rows in letor.rows if (letor.fold[rows[0]] == fold) == tested] for tested in (False, True)]
    train, test = (any_documents(letor, rows[:60] if quick else rows, rng) for rows in parts)
    found["documents: sets of 5, boosted trees"] = ranked(train, test, train.votes(), seed)
    return found


def compare(cells: dict[str, list[float]], name: str) -> tuple[float, float]:
    """Return the mean relative change of the error against labels alone, and its standard error."""
    change = np.array(cells[name]) / np.array(cells[KEPT]) - 1.0
    return float(change.mean()), float(change.std() / np.sqrt(max(len(change) - 1, 1)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Train every model in every way and write ``end_models_real.md``."""
    settings = read_settings("experiments.end_models_real", __doc__, 6, 2, arguments)
    data_folder("movies", "letor_mq2008")
    found: dict[str, dict[str, list[float]]] = {}
    for seed in track(range(settings.seeds), description="splits"):
        for task, errors in run(seed, settings.quick).items():
            for name, value in errors.items():
                found.setdefault(task, {}).setdefault(name, []).append(value)
    rows, verdicts = [], []
    tally: dict[str, list[str]] = {WEIGHTED: [], SOFT: []}
    for task, cells in found.items():
        row = [task, mean_spread(cells[KEPT], 3)]
        for name in (WEIGHTED, SOFT):
            if name not in cells:
                row.append("")
                continue
            change, error = compare(cells, name)
            row.append(f"{mean_spread(cells[name], 3)} ({change:+.1%})")
            worse, better = change > SURE * error, change < -SURE * error
            tally[name].append("worse" if worse else "better" if better else "level")
        rows.append(row)
    for name, outcomes in tally.items():
        counted = ", ".join(f"{outcomes.count(word)} {word}" for word in ("better", "level", "worse"))
        verdicts.append(verdict(f"{name}: not worse than labels alone on any set", "worse" not in outcomes, counted))
    blocks = [
        "End models of all real sets that have features, trained on labels of the default model in three ways. "
        "Films: three good and three poor sources for sets, the three good ones for ratings. Board games: five counts. "
        "Documents: ten features. *above the middle* asks whether a rating is above the middle one; each source votes "
        "by its own middle. Ratings: mean squared error; classes: share of wrong ones; sets: share of pairs in the "
        "wrong order. In brackets the mean change against labels alone.",
        markdown_table(["", KEPT, WEIGHTED, SOFT], rows),
        "## Targets",
        "\n".join(verdicts),
    ]
    described = [f"splits 0..{settings.seeds - 1}"]
    write_results(
        settings.results / "end_models_real.md",
        "Soft labels and confidence in end models",
        settings.command,
        described,
        blocks,
    )


if __name__ == "__main__":
    main()
