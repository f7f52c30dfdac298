"""Claim: in R^d, one covariance per source makes labels nearly as good as those of a model that knows everything.

Points around a Gaussian truth, with noise that is larger in some directions than in others. Settings, seeds and
generator are those of an earlier simulation study, whose numbers are shown next to ours. With CONSILIENCE_DATA, also
the seven emotions of real headlines, rated by a crowd.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.progress import track

import consilience as cs

from .tables import (
    QUICK,
    FloatArray,
    Settings,
    fit_quietly,
    markdown_table,
    read_settings,
    verdict,
    write_results,
)

#: Items, sources, coordinates, and how far variances of directions spread (log scale).
SETTINGS = (
    (100, 3, 3, 1.0),
    (100, 6, 10, 1.0),
    (1000, 6, 3, 1.0),
    (1000, 6, 10, 1.0),
    (1000, 6, 10, 0.0),
    (5000, 6, 30, 1.0),
)
QUICK_SETTINGS = SETTINGS[:1]
METHODS = ("majority", "isotropic", "triplets", "em", "auto")
#: Ratio to the oracle in the study: our name, its row, and one number per setting.
NOTE = {
    "majority": ("mean", (2.71, 2.37, 2.38, 2.47, 1.91, 2.42)),
    "isotropic": ("isotropic triplets", (1.52, 1.38, 1.33, 1.37, 1.11, 1.38)),
    "triplets": ("full matrix triplets", (1.61, 1.57, 1.15, 1.15, 1.13, 1.13)),
    "em": ("EM, full covariances, prior", (1.14, 1.23, 1.01, 1.02, 1.02, 1.01)),
}
TARGETS = {SETTINGS[0]: 1.25, SETTINGS[2]: 1.05, SETTINGS[3]: 1.05}
COVERAGE = ((200, 4, 2, 0.0), (200, 4, 2, 0.4), (1000, 6, 3, 0.0), (1000, 6, 3, 0.4))
COVERAGE_SETS, QUICK_COVERAGE_SETS = 60, 2
EMOTIONS = ("anger", "disgust", "fear", "joy", "sadness", "surprise", "valence")
GOLD, GOLD_DRAWS = 30, 20

Setting = tuple[int, int, int, float]


def draw(setting: Setting, seed: int, missing: float = 0.0) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return votes, truth, the noise covariances and the covariance of the truth."""
    n, m, d, spread = setting
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    law = (turn * rng.uniform(0.3, 2.0, d)) @ turn.T
    truth = rng.multivariate_normal(np.zeros(d), law, n)
    noise = np.zeros((m, d, d))
    for source in range(m):
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        size = np.exp(rng.uniform(-spread, spread, d)) * (0.3 if source % 3 == 0 else 1.5)
        noise[source] = (turn * size) @ turn.T
    votes = np.stack([truth + rng.multivariate_normal(np.zeros(d), noise[a], n) for a in range(m)], axis=1)
    if missing:
        votes[rng.random((n, m)) < missing] = np.nan
    return votes, truth, noise, law


def oracle_labels(votes: FloatArray, noise: FloatArray, law: FloatArray) -> FloatArray:
    """Return the posterior means of a model that knows all covariances, with the mean vote as the mean of y."""
    precision = np.linalg.inv(noise)
    middle = votes.mean(axis=(0, 1))
    pulled = np.einsum("nad,ade->ne", votes - middle, precision)
    labels: FloatArray = middle + np.linalg.solve(precision.sum(axis=0) + np.linalg.inv(law), pulled.T).T
    return labels


def squared_error(labels: FloatArray, truth: FloatArray) -> float:
    return float(((labels - truth) ** 2).sum(axis=1).mean())


def run_methods(settings: Settings) -> dict[Setting, dict[str, list[float]]]:
    """Measure every method in every setting: squared error over that of the oracle."""
    chosen = QUICK_SETTINGS if settings.quick else SETTINGS
    measured: dict[Setting, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for setting, seed in track(
        [(one, seed) for one in chosen for seed in range(settings.seeds)], description="methods"
    ):
        votes, truth, noise, law = draw(setting, seed)
        best = squared_error(oracle_labels(votes, noise, law), truth)
        for name in METHODS:
            model = cs.LabelModel(cs.Vectors(setting[2]), method=name, random_state=0)
            labels = fit_quietly(model, cs.Votes.from_array(votes)).predict(votes)
            measured[setting][name].append(squared_error(labels, truth) / best)
    return measured


def run_coverage(settings: Settings) -> dict[tuple[int, int, int, float], tuple[float, float, float]]:
    """Measure how often 95% intervals for costs, 95% intervals of coordinates and 95% ellipsoids of labels cover."""
    sets = QUICK_COVERAGE_SETS if settings.quick else COVERAGE_SETS
    found = {}
    for n, m, d, missing in COVERAGE[:1] if settings.quick else COVERAGE:
        limit = {2: 5.991, 3: 7.815}[d]  # 95% of chi-square with d degrees of freedom
        cost, coordinate, ellipsoid = [], [], []
        for seed in track(range(sets), description="coverage"):
            votes, truth, noise, _ = draw((n, m, d, 1.0), 9000 + seed, missing)
            model = fit_quietly(cs.LabelModel(cs.Vectors(d), random_state=0), cs.Votes.from_array(votes))
            weight = 0.5 * d / np.trace(noise, axis1=1, axis2=2)
            cost.append(np.abs(model.weight_ - weight) < 1.96 * model.standard_error_)
            belief = model.posterior(votes)
            voted = ~np.isnan(votes[:, :, 0]).all(axis=1)
            gap = (belief.labels - truth)[voted]
            coordinate.append((np.abs(gap) < 1.96 * belief.details["standard_deviation"][voted]).mean())
            solved = np.linalg.solve(belief.details["covariance"][voted], gap[..., None])[..., 0]
            ellipsoid.append((np.einsum("nd,nd->n", gap, solved) < limit).mean())
        found[n, m, d, missing] = (float(np.mean(cost)), float(np.mean(coordinate)), float(np.mean(ellipsoid)))
    return found


def run_affect(folder: Path) -> tuple[list[list[str]], str]:
    """Measure labels of 100 headlines, seven emotions each, rated by 38 workers of whom 10 saw each headline.

    Also return how the costs that were learned go with the slopes of the workers.
    """
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "crowd_affect" / "affect.parquet").to_pydict()
    items, workers = (sorted(set(table[name])) for name in ("item", "worker"))
    votes = np.full((len(items), len(workers), len(EMOTIONS)), np.nan)
    truth = np.zeros((len(items), len(EMOTIONS)))
    for emotion, item, worker, response, gold in zip(
        *(table[name] for name in ("emotion", "item", "worker", "response", "gold")), strict=True
    ):
        place = (items.index(item), workers.index(worker), EMOTIONS.index(emotion))
        votes[place] = response
        truth[place[0], place[2]] = gold
    rows = [affect_row("mean of the votes", np.nanmean(votes, axis=1), truth)]
    table_of_votes = cs.Votes.from_array(votes, sources=list(workers))
    space = cs.Vectors(len(EMOTIONS))
    for name in ("isotropic", "triplets", "em", "auto"):
        model = fit_quietly(cs.LabelModel(space, method=name, random_state=0), table_of_votes)
        rows.append(affect_row(name, model.predict(table_of_votes), truth))
    slope = worker_slopes(votes, truth)
    together = np.corrcoef(slope.argsort().argsort(), model.expected_cost_.argsort().argsort())[0, 1]
    known = []
    rng = np.random.default_rng(0)
    for _ in track(range(GOLD_DRAWS), description="affect"):
        chosen = rng.permutation(len(items))[:GOLD]
        gold = np.full_like(truth, np.nan)
        gold[chosen] = truth[chosen]
        left = np.setdiff1d(np.arange(len(items)), chosen)
        model = fit_quietly(cs.LabelModel(space, random_state=0), table_of_votes, gold)
        known.append(affect_numbers(model.predict(table_of_votes)[left], truth[left]))
    name = f"auto, {GOLD} known labels ({GOLD_DRAWS} draws, the other items)"
    rows.append([name, *affect_cells(np.mean(known, axis=0))])
    return rows, (
        "No method beats the mean vote clearly here. One reason: the slope of a worker's ratings on the gold ones lies "
        f"between {slope.min():.2f} and {slope.max():.2f} (median {np.median(slope):.2f}), and the rank correlation of "
        f"that slope with the expected cost that *auto* learned is {together:.2f}: a model without slopes takes timid "
        "workers for precise ones."
    )


def worker_slopes(votes: FloatArray, truth: FloatArray) -> FloatArray:
    """Return by how much the votes of each source grow with the truth, all coordinates together."""
    slopes = []
    for source in range(votes.shape[1]):
        seen = ~np.isnan(votes[:, source, 0])
        vote, gold = (part[seen] - part[seen].mean(axis=0) for part in (votes[:, source], truth))
        slopes.append(float((vote * gold).sum() / (gold**2).sum()))
    return np.array(slopes)


def affect_numbers(labels: FloatArray, truth: FloatArray) -> FloatArray:
    """Return root mean square error per headline in units of 100, its inverse, squared error, and correlation."""
    root = np.sqrt(((labels - truth) ** 2).mean(axis=1)) / 100.0
    together = [np.corrcoef(labels[:, k], truth[:, k])[0, 1] for k in range(truth.shape[1])]
    return np.array([root.mean(), (1.0 / root).mean(), ((labels - truth) ** 2).mean(), np.mean(together)])


def affect_cells(numbers: FloatArray) -> list[str]:
    return [f"{numbers[0]:.3f}", f"{numbers[1]:.2f}", f"{numbers[2]:.1f}", f"{numbers[3]:.3f}"]


def affect_row(name: str, labels: FloatArray, truth: FloatArray) -> list[str]:
    return [name, *affect_cells(affect_numbers(labels, truth))]


def describe(setting: Setting) -> str:
    n, m, d, spread = setting
    return f"n{n} m{m} d{d}{'' if spread else ', isotropic'}"


def ratio_table(measured: dict[Setting, dict[str, list[float]]]) -> str:
    rows = []
    for name in METHODS:
        cells = [f"{np.mean(scores[name]):.3f} ± {np.std(scores[name], ddof=1 if len(scores[name]) > 1 else 0):.3f}"
                 for scores in measured.values()]  # fmt: skip
        rows.append([name, *cells])
        if name in NOTE:
            row, numbers = NOTE[name]
            rows.append([f"*study: {row}*", *(f"{numbers[SETTINGS.index(setting)]:.2f}" for setting in measured)])
    return markdown_table(["ratio to the oracle", *(describe(setting) for setting in measured)], rows)


def coverage_table(found: dict[tuple[int, int, int, float], tuple[float, float, float]]) -> str:
    rows = [
        [f"n{n} m{m} d{d}, {missing:.0%} missing", *(f"{100 * value:.1f}" for value in values)]
        for (n, m, d, missing), values in found.items()
    ]
    return markdown_table(["% of 95% intervals that cover", "weight", "coordinate of y", "ellipsoid of y"], rows)


def verdicts(measured: dict[Setting, dict[str, list[float]]]) -> str:
    lines = []
    for setting, limit in TARGETS.items():
        value = float(np.mean(measured[setting]["auto"]))
        claim = f"{describe(setting)}: at most {limit:.2f} times the oracle's error"
        lines.append(verdict(claim, value <= limit, f"{value:.3f}"))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    settings = read_settings("experiments.vectors", __doc__, seeds=8, quick_seeds=1, arguments=arguments)
    measured, covered = run_methods(settings), run_coverage(settings)
    blocks = [
        "Squared error of the labels over that of an oracle that knows every covariance, mean ± standard deviation "
        "over the seeds. A third of the sources have noise of size 0.3, the others 1.5; directions vary by a factor e "
        'to either side. *auto* is `LabelModel(Vectors(d))`; *majority* the mean vote.',
        ratio_table(measured),
        "Coverage with `method=\"auto\"`; the uncertainty of the parameters is not part of the intervals of y.",
        coverage_table(covered),
    ]  # fmt: skip
    folder = os.environ.get("CONSILIENCE_DATA")
    if folder and not settings.quick:
        rows, remark = run_affect(Path(folder))
        blocks += [
            "Crowd ratings of headlines, labels are seven emotions: 100 items, 38 workers, ten votes each. RMSE is per "
            "headline, over 100.",
            markdown_table(["method", "RMSE", "1/RMSE", "MSE", "mean r"], rows),
            remark,
        ]
    blocks.append(QUICK if settings.quick else verdicts(measured))
    described = [f"seeds 0..{settings.seeds - 1}; coverage: seeds 9000 + s"]
    write_results(settings.results / "vectors.md", "Vectors", settings.command, described, blocks)


if __name__ == "__main__":
    main()
