"""Claim: sources with shared errors are detected and do not count twice; undecidable cases are reported.

Nine sources of scores, in which none, two pairs, three near copies or a clique of four have correlated noise; two
groups of equal size that each agree among themselves; and crowds of workers with few votes each.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from rich.progress import track

import consilience as cs

from .tables import QUICK, FloatArray, Settings, fit_quietly, markdown_table, read_settings, verdict, write_results

SOURCES = 9
GROUPS = {
    "none": ((), 0.0),
    "two pairs, .5": (((1, 2), (4, 5)), 0.5),
    "three copies, .95": (((1, 2, 4),), 0.95),
    "clique of four, .8": (((1, 2, 4, 5),), 0.8),
}
#: Items, and the largest ratio of the default, by setting.
DESIGNS: dict[tuple[str, int], float | None] = {
    ("none", 300): 1.12,
    ("two pairs, .5", 1000): None,
    ("three copies, .95", 300): 1.10,
    ("three copies, .95", 1000): 1.06,
    ("clique of four, .8", 300): None,
    ("clique of four, .8", 1000): 1.06,
    ("clique of four, .8", 5000): None,
}
CROWDS = ("lines", "alike", "spammers", "zeros")
RIVALS = 6


def dependent_scene(kind: str, n: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray, set[tuple[int, int]]]:
    """Return votes, truth, the labels of one who knows all parameters, and the pairs that err together."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    good = np.arange(SOURCES) % 3 == 0
    variance = np.where(good, rng.uniform(0.2, 0.5, SOURCES), rng.uniform(0.8, 2.0, SOURCES))
    slope = rng.uniform(0.7, 1.3, SOURCES)
    groups, correlation = GROUPS[kind]
    shared, pairs = np.eye(SOURCES), set()
    for group in groups:
        for left, right in combinations(group, 2):
            shared[left, right] = shared[right, left] = correlation
            pairs.add((left, right))
        if "copies" in kind:
            slope[list(group)], variance[list(group)] = slope[group[0]], variance[group[0]]
    noise = shared * np.sqrt(np.outer(variance, variance))
    votes = np.outer(truth, slope) + rng.multivariate_normal(np.zeros(SOURCES), noise, n)
    gain = np.linalg.solve(noise, slope)
    return votes, truth, votes @ gain / (1.0 + slope @ gain), pairs


def crowd_scene(kind: str, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return votes and truth of 100 items in five blocks of 20, with six workers of the block's own and two others."""
    rng = np.random.default_rng(seed)
    blocks, per, own, others = 5, 20, 6, 4
    n, m = blocks * per, blocks * own + others
    seen = np.zeros((n, m), dtype=bool)
    for block in range(blocks):
        members = [*rng.choice(others, 2, replace=False), *range(others + block * own, others + (block + 1) * own)]
        seen[block * per : (block + 1) * per, members] = True
    truth = rng.normal(50.0, 20.0, n)
    if kind == "lines":
        slope = rng.uniform(0.3, 1.3, m)
        offset = rng.normal(0.0, 10.0, m) + 30.0 * (1.0 - slope)
        votes = offset + np.outer(truth, slope) + rng.normal(size=(n, m)) * rng.uniform(8.0, 40.0, m)
    elif kind == "alike":
        votes = truth[:, None] + 25.0 * rng.normal(size=(n, m))
    elif kind == "spammers":
        votes = truth[:, None] + 12.0 * rng.normal(size=(n, m))
        votes = np.where(rng.random(m) < 0.3, rng.uniform(0.0, 100.0, (n, m)), votes)
    else:
        truth = np.clip(rng.gamma(0.6, 35.0, n), 0.0, 100.0)
        slope, silent = np.exp(rng.normal(-0.3, 0.3, m)), rng.uniform(0.1, 0.6, m)
        felt = truth[:, None] + rng.normal(size=(n, m)) * (5.0 + 0.7 * truth[:, None])
        quiet = (felt < 10.0) | (rng.random((n, m)) < silent)
        votes = np.round(np.where(quiet, 0.0, np.clip(felt * slope, 0.0, 100.0)))
    return np.where(seen, votes, np.nan), truth


def found_pairs(model: cs.LabelModel) -> set[tuple[int, int]]:
    """Return the pairs that were taken as dependent, by position."""
    names = list(model.source_model_.sources)
    pairs = [sorted((names.index(left), names.index(right))) for left, right in model.source_model_.dependencies]
    return {(left, right) for left, right in pairs}


def run_dependence(settings: Settings) -> tuple[str, list[str]]:
    """Measure ratios to the oracle with and without learning, and how well pairs are found."""
    chosen = [("none", 300), ("three copies, .95", 300)] if settings.quick else list(DESIGNS)
    ratio: dict[str, list[str]] = defaultdict(list)
    lines = []
    for kind, n in track(chosen, description="dependence"):
        measured: dict[str, list[float]] = defaultdict(list)
        for seed in range(settings.seeds):
            votes, truth, oracle, pairs = dependent_scene(kind, n, seed)
            best = float(np.mean((oracle - truth) ** 2))
            space = cs.Scores(mean=0.0, variance=1.0)
            options = {"independent": (), "told": sorted(pairs), "learn": None}
            for name, dependencies in options.items():
                model = fit_quietly(cs.LabelModel(space, dependencies=dependencies, random_state=0), votes)
                measured[name].append(float(np.mean((model.predict(votes) - truth) ** 2)) / best)
            found = found_pairs(model)
            right = len(found & pairs)
            measured["F1"].append(2.0 * right / (len(found) + len(pairs)) if found or pairs else 1.0)
        for name, values in measured.items():
            spread = f" ± {np.std(values):.2f}" if name != "F1" else ""
            ratio[name].append(f"{np.mean(values):.3f}{spread}")
        limit, reached = DESIGNS[kind, n], float(np.mean(measured["learn"]))
        if limit is not None:
            lines.append(verdict(f"{kind}, {n} items: at most {limit:.2f}", reached <= limit, f"{reached:.3f}"))
    names = {
        "independent": "no dependencies",
        "told": "dependencies told",
        "learn": "learned (the default)",
        "F1": "F1 of the pairs",
    }
    rows = [[title, *ratio[name]] for name, title in names.items()]
    return markdown_table(["ratio to the oracle", *(f"{kind}, n={n}" for kind, n in chosen)], rows), lines


def run_rivals(settings: Settings) -> str:
    """Measure two groups of three, one of which shares something that is not the truth."""
    rows = []
    for known in (0, 3, 5, 10, 30):
        correlation, codes = defaultdict(list), Counter[str]()
        for seed in range(settings.seeds):
            rng = np.random.default_rng(seed)
            truth, fad = rng.normal(size=(2, 1000))
            votes = truth[:, None] + rng.normal(size=(1000, RIVALS))
            votes[:, RIVALS // 2 :] += fad[:, None]
            gold = np.full(1000, np.nan)
            gold[:known] = truth[:known]
            model = fit_quietly(cs.LabelModel(cs.Scores(), random_state=0), votes, gold if known else None)
            codes.update({item.code for item in model.diagnostics_})
            correlation["default"].append(np.corrcoef(model.predict(votes), truth)[0, 1])
            correlation["mean"].append(np.corrcoef(votes.mean(axis=1), truth)[0, 1])
        reported = codes["competing-groups"] / settings.seeds
        rows.append(
            [str(known), *(f"{np.mean(correlation[name]):.3f}" for name in ("mean", "default")), f"{reported:.0%}"]
        )
    return markdown_table(["known labels", "r of the mean", "r of the default", "`competing-groups`"], rows)


def run_crowds(settings: Settings) -> str:
    """Measure crowds against the plain mean."""
    rows = []
    for kind in CROWDS[:2] if settings.quick else CROWDS:
        ratios, correlation, plain = [], [], []
        for seed in range(settings.seeds):
            votes, truth = crowd_scene(kind, 100 + seed)
            mean = np.nanmean(votes, axis=1)
            found = fit_quietly(cs.LabelModel(cs.Scores(), random_state=0), votes).predict(votes)
            ratios.append(float(np.mean((found - truth) ** 2) / np.mean((mean - truth) ** 2)))
            correlation.append(float(np.corrcoef(found, truth)[0, 1]))
            plain.append(float(np.corrcoef(mean, truth)[0, 1]))
        rows.append(
            [
                kind,
                f"{np.mean(ratios):.3f}",
                f"{max(ratios):.3f}",
                f"{np.mean(correlation):.3f}",
                f"{np.mean(plain):.3f}",
            ]
        )
    return markdown_table(["crowd", "MSE / that of the mean", "worst", "r", "r of the mean"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the three studies and write ``dependent_scores.md``."""
    settings = read_settings("experiments.dependent_scores", __doc__, 8, 1, arguments)
    table, lines = run_dependence(settings)
    blocks = [
        "Squared error over that of one who knows every line and the covariance of the noise, mean ± standard "
        "deviation over seeds. Mean and variance of y are told.",
        table,
        "## Two groups of three that compete",
        "1000 items. Three sources are the truth plus noise, three are the truth plus something else that they share, "
        "plus noise. Both explanations fit the votes alike.",
        run_rivals(settings),
        "## Sparse crowds",
        "100 items, 34 workers, 20 votes of most; nothing is told. *lines*: offsets, slopes and noise of their own, "
        "slopes below one on average; *alike*: all the same; *spammers*: a third votes at random; *zeros*: skewed "
        "truth, timid scales, most votes zero.",
        run_crowds(settings),
        "## Targets",
        QUICK if settings.quick else "\n".join(lines),
    ]
    described = [f"{settings.seeds} seeds", f"{SOURCES} sources"]
    name = settings.results / "dependent_scores.md"
    write_results(name, "Scores: sources that err together", settings.command, described, blocks)


if __name__ == "__main__":
    main()
