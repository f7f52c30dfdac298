"""Claim: real scores are combined better than by their mean if sources use different scales.

Film ratings, LLM judges and crowd workers, from the folders ``movies``, ``asset_judges`` and ``crowd_affect`` in the
folder that CONSILIENCE_DATA names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.progress import track
from scipy.stats import kendalltau

import consilience as cs

from . import public_data
from .tables import (
    QUICK,
    FloatArray,
    IntArray,
    data_folder,
    fit_quietly,
    markdown_table,
    read_settings,
    verdict,
    write_results,
)

FOLDERS = ("movies", "asset_judges", "crowd_affect")
RATINGS = ("imdb_rating", "mv_lens_avg_rating", "tomato_user_rating")
#: MovieLens and Rotten Tomatoes are on 0-5, the others on 0-10.
TO_TEN = np.array([1.0, 2.0, 2.0])
GOLD = 30
MOVIE_LIMITS = {"mean and variance told": 0.080, f"{GOLD} known labels": 0.090, "nothing told": 0.140}
ASSET_LIMITS = {"MAE": 28.9, "tau": 0.395, "MAE with labels": 27.6, "r": 0.72}
MEAN_OF_WORKERS = 318.1


def labels_of(votes: cs.Votes, space: cs.Scores, gold: FloatArray | None = None, method: str = "auto") -> FloatArray:
    """Fit and predict."""
    found: FloatArray = fit_quietly(cs.LabelModel(space, method=method, random_state=0), votes, gold).predict(votes)
    return found


def some_known(truth: FloatArray, chosen: IntArray) -> FloatArray:
    gold = np.full(len(truth), np.nan)
    gold[chosen] = truth[chosen]
    return gold


def movie_errors(matrix: FloatArray, truth: FloatArray, draws: int) -> dict[str, FloatArray]:
    """Return squared errors: one number, or one for each draw of known labels."""
    votes = cs.Votes.from_array(matrix, sources=list(RATINGS))
    rng = np.random.default_rng(0)
    with_labels = []
    for _ in range(draws):
        gold = some_known(truth, rng.permutation(len(truth))[:GOLD])
        found = labels_of(votes, cs.Scores(), gold)
        with_labels.append(np.mean((found - truth)[np.isnan(gold)] ** 2))
    told = cs.Scores(mean=float(truth.mean()), variance=float(truth.var()))
    single = {
        "mean of the sources": matrix.mean(axis=1),
        'method="isotropic"': labels_of(votes, cs.Scores(), method="isotropic"),
        "nothing told": labels_of(votes, cs.Scores()),
        "mean and variance told": labels_of(votes, told),
    }
    errors = {name: np.array([np.mean((found - truth) ** 2)]) for name, found in single.items()}
    return {**errors, f"{GOLD} known labels": np.array(with_labels)}


def run_movies(folder: Path, draws: int) -> tuple[str, list[str]]:
    """Return the table of films and its targets."""
    films = public_data.load_movies(folder, duplicates=True)
    truth, matrix = films.rating, np.column_stack([films.good[name] for name in RATINGS])
    doubled, raw = movie_errors(matrix, truth, draws), movie_errors(matrix / TO_TEN, truth, draws)
    rows = [[name, _spread(doubled[name], 4), _spread(raw[name], 4)] for name in doubled]
    lines = []
    for name, limit in MOVIE_LIMITS.items():
        reached = float(doubled[name].mean())
        lines.append(verdict(f"films, {name}: at most {limit:.3f}", reached <= limit, f"{reached:.4f}"))
    return markdown_table(["mean squared error", "all on 0-10", "as they are"], rows), lines


def by_item(values: FloatArray, item: npt.NDArray[np.str_]) -> FloatArray:
    """Return means over the rows of each item."""
    return pd.DataFrame(values).groupby(item).mean().to_numpy()


def clustered_error(losses: FloatArray, item: npt.NDArray[np.str_]) -> float:
    """Return the standard error of a mean over rows when the rows of one item go together."""
    totals = pd.Series(losses - losses.mean()).groupby(item).sum().to_numpy()
    groups = len(totals)
    return float(np.sqrt((totals**2).sum() * groups / (groups - 1)) / len(losses))


def run_judges(folder: Path, draws: int) -> tuple[list[str], list[str]]:
    """Return two tables of judges and their targets."""
    data = public_data.load_asset_judges(folder)
    votes, space = data.votes, cs.Scores()
    told = cs.Scores(mean=float(data.truth.mean()), variance=float(data.truth.var()))
    found = {
        "mean of the judges": np.nanmean(data.ratings, axis=1),
        'method="isotropic"': labels_of(votes, space, method="isotropic"),
        "auto": labels_of(votes, space),
        "auto, mean and variance told": labels_of(votes, told),
    }
    rows, reached = [], {}
    for name, labels in found.items():
        losses = np.abs(labels - data.truth)
        tau = float(kendalltau(labels, data.truth).statistic)
        reached[name] = (float(losses.mean()), tau)
        rows.append([name, f"{losses.mean():.2f}", f"{clustered_error(losses, data.item):.2f}", f"{tau:.3f}"])
    rng, with_labels = np.random.default_rng(0), []
    for _ in track(range(draws), description="judges  "):
        gold = some_known(data.truth, rng.permutation(len(data.truth))[:GOLD])
        labels = labels_of(votes, space, gold)
        unknown = np.isnan(gold)
        losses = np.abs(labels - data.truth)[unknown]
        with_labels.append(
            [losses.mean(), clustered_error(losses, data.item[unknown]), kendalltau(labels, data.truth).statistic]
        )
    summed = np.array(with_labels)
    shown = f"{summed[:, 0].mean():.2f} ± {summed[:, 0].std():.2f}"
    rows.append([f"auto, {GOLD} known labels", shown, f"{summed[:, 1].mean():.2f}", f"{summed[:, 2].mean():.3f}"])
    correlation, items = item_level(data)
    first = markdown_table(["single human ratings", "MAE", "s.e. by item", "Kendall tau"], rows)
    absolute, tau = reached["auto"]
    labelled = float(summed[:, 0].mean())
    limits = ASSET_LIMITS
    lines = [
        verdict(f"judges, MAE at most {limits['MAE']}", absolute <= limits["MAE"], f"{absolute:.2f}"),
        verdict(f"judges, tau at least {limits['tau']}", tau >= limits["tau"], f"{tau:.3f}"),
        verdict(
            f"judges, {GOLD} labels: MAE at most {limits['MAE with labels']}",
            labelled <= limits["MAE with labels"],
            f"{labelled:.2f}",
        ),
        verdict(f"judges, r by item at least {limits['r']}", correlation >= limits["r"], f"{correlation:.3f}"),
    ]
    return [first, items], lines


def item_level(data: public_data.JudgeRatings) -> tuple[float, str]:
    """Return the correlation of "auto" with mean human ratings, and the table of it."""
    matrix, truth = by_item(data.ratings, data.item), by_item(data.truth, data.item)[:, 0]
    votes = cs.Votes.from_array(matrix, sources=data.judges)
    found = {"mean of the judges": np.nanmean(matrix, axis=1), "auto": labels_of(votes, cs.Scores())}
    rows, correlation = [], {}
    for name, labels in found.items():
        correlation[name] = float(np.corrcoef(labels, truth)[0, 1])
        rows.append([name, f"{correlation[name]:.3f}", f"{np.mean((labels - truth) ** 2):.0f}"])
    return correlation["auto"], markdown_table(["mean human ratings of 300 items", "r", "MSE"], rows)


def run_workers(folder: Path) -> tuple[str, list[str]]:
    """Return the table of crowd workers by emotion, and whether the mean of the workers is beaten."""
    table = pd.read_parquet(folder / "crowd_affect" / "affect.parquet")
    rows, errors = [], []
    for emotion, part in table.groupby("emotion", sort=True):
        votes = cs.Votes.from_long(part, item="item", source="worker", label="response")
        truth = part.drop_duplicates("item").set_index("item")["gold"].loc[votes.items].to_numpy(dtype=float)
        plain = np.nanmean(np.where(votes.observed, votes.labels, np.nan), axis=1)
        found = [plain, *(labels_of(votes, cs.Scores(), method=method) for method in ("isotropic", "em", "auto"))]
        measured = [(float(np.mean((one - truth) ** 2)), float(np.corrcoef(one, truth)[0, 1])) for one in found]
        errors.append(measured)
        rows.append([str(emotion), *(f"{error:.1f} ({r:.3f})" for error, r in measured)])
    average = np.array(errors).mean(axis=0)
    rows.append(["all", *(f"{error:.1f} ({r:.3f})" for error, r in average)])
    columns = ["MSE (r)", "mean of the workers", 'method="isotropic"', 'method="em"', "auto"]
    reached = float(average[-1, 0])
    claim = f"workers, MSE at most that of their mean, {MEAN_OF_WORKERS}"
    line = verdict(claim, reached <= MEAN_OF_WORKERS, f"{reached:.1f}")
    return markdown_table(columns, rows), [line]


def _spread(values: FloatArray, digits: int) -> str:
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{values.mean():.{digits}f} ± {values.std():.{digits}f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the three data sets and write ``scores_real.md``."""
    settings = read_settings("experiments.scores_real", __doc__, 20, 2, arguments)
    folder = data_folder(*FOLDERS)
    films, film_lines = run_movies(folder, settings.seeds)
    judges, judge_lines = run_judges(folder, settings.seeds)
    workers, worker_lines = run_workers(folder)
    blocks = [
        "## Films: three ratings, gold TMDb, 3252 items",
        films,
        "## 11 LLM judges of text simplifications, scale 0-100",
        *judges,
        "## 38 crowd workers, emotions in 100 headlines",
        "Most workers rate 20 to 60 of the headlines, and 57 to 74% of the votes for an emotion (41% for valence) are "
        "zero: few votes per line, and far from normal noise. The mean of the workers is the bar.",
        workers,
        "## Targets",
        QUICK if settings.quick else "\n".join([*film_lines, *judge_lines, *worker_lines]),
    ]
    described = [f"{settings.seeds} draws of {GOLD} known labels, errors on the other items", "random_state 0"]
    write_results(settings.results / "scores_real.md", "Scores: real sources", settings.command, described, blocks)


if __name__ == "__main__":
    main()
