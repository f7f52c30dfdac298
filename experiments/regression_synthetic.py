"""Claim: with more items and sources, the estimated parameters of simulated sources and their scores improve.

The paper's synthetic regression: parameter and label error by the number of items, and of sources. Every source votes
0.6 y plus noise of variance 0.2, so the only thing to learn is their common scale. Sources of unequal noise are shown
next to them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from rich.progress import track

import consilience as cs

from .plots import Panel, draw
from .tables import (
    QUICK,
    FloatArray,
    Settings,
    fit_quietly,
    markdown_table,
    mean_spread,
    read_settings,
    verdict,
    write_results,
)

SLOPE, NOISE, FEATURES = 0.6, 0.2, 5
ITEMS, SOURCES = (100, 1_000, 10_000, 100_000), (4, 8, 16, 32, 64)
FIXED_SOURCES, FIXED_ITEMS = 8, 10_000
#: Label error of the reference implementation run again, by items and by sources: theirs, plain mean, oracle.
REFERENCE_ITEMS = {
    100: (0.1178, 0.4549, 0.0716),
    1_000: (0.0720, 0.4659, 0.0685),
    10_000: (0.0675, 0.4018, 0.0671),
    100_000: (0.0672, 0.3762, 0.0672),
    1_000_000: (0.0673, 0.4054, 0.0673),
}
REFERENCE_SOURCES = {
    4: (0.1303, 0.4279, 0.1300),
    8: (0.0673, 0.3875, 0.0670),
    16: (0.0350, 0.4516, 0.0342),
    32: (0.0185, 0.3981, 0.0172),
    64: (0.0114, 0.3795, 0.0087),
}
#: Errors of slopes of the reference implementation, by items.
REFERENCE_SLOPES = {100: 0.0459, 1_000: 0.0160, 10_000: 0.0048, 100_000: 0.00116, 1_000_000: 0.00043}

Cells = dict[tuple[str, int], list[float]]


def draw_scores(n: int, rng: np.random.Generator) -> FloatArray:
    """Return y = sum of five independent normal features with variances U(0, 1)."""
    return rng.normal(size=(n, FEATURES)) @ np.sqrt(rng.uniform(0.0, 1.0, FEATURES))


def draw_votes(truth: FloatArray, noise: FloatArray, rng: np.random.Generator) -> FloatArray:
    return SLOPE * truth[:, None] + rng.normal(size=(len(truth), len(noise))) * np.sqrt(noise)


def oracle(votes: FloatArray, noise: FloatArray, truth: FloatArray) -> FloatArray:
    """Return the posterior mean with the true slopes, noises, mean and variance of the scores."""
    mean, variance = truth.mean(), truth.var()
    precision = 1.0 / variance + (SLOPE**2 / noise).sum()
    return (mean / variance + (votes * (SLOPE / noise)).sum(axis=1)) / precision


def measure(n: int, m: int, unequal: bool, rng: np.random.Generator) -> dict[str, float]:
    truth = draw_scores(n, rng)
    noise = rng.uniform(0.02, 1.0, m) if unequal else np.full(m, NOISE)
    matrix = draw_votes(truth, noise, rng)
    space = cs.Scores(mean=float(truth.mean()), variance=float(truth.var()))
    votes = cs.Votes.from_array(matrix)
    model = fit_quietly(cs.LabelModel(space, dependencies="none", random_state=0), votes)
    found = {
        "ours": model.predict(votes),
        "mean": matrix.mean(axis=1),
        "mean / 0.6": matrix.mean(axis=1) / SLOPE,
        "oracle": oracle(matrix, noise, truth),
    }
    learned = model.source_model_.parameters
    errors = {name: float(np.mean((labels - truth) ** 2)) for name, labels in found.items()}
    errors["slope error"] = float(np.abs(learned.slope - SLOPE).mean())
    errors["noise error"] = float(np.abs(learned.noise_variance - noise).mean())
    return errors


def run(settings: Settings, unequal: bool) -> tuple[Cells, Cells]:
    """Return errors by items at 8 sources, and by sources at 10,000 items."""
    items = (100, 1_000) if settings.quick else (*ITEMS, *((1_000_000,) if settings.full else ()))
    sources = (4, 8) if settings.quick else SOURCES
    fixed = 1_000 if settings.quick else FIXED_ITEMS
    by_items: Cells = defaultdict(list)
    by_sources: Cells = defaultdict(list)
    cells = [(by_items, n, n, FIXED_SOURCES) for n in items] + [(by_sources, m, fixed, m) for m in sources]
    runs = [(*cell, seed) for cell in cells for seed in range(settings.seeds)]
    for table, key, n, m, seed in track(runs, description="unequal" if unequal else "equal  "):
        for name, value in measure(n, m, unequal, np.random.default_rng([2021, seed, n, m, unequal])).items():
            table[name, key].append(value)
    return by_items, by_sources


def table_of(cells: Cells, what: str, reference: dict[int, tuple[float, float, float]] | None) -> str:
    names = ["slope error", "noise error", "ours", "mean", "mean / 0.6", "oracle"]
    keys = list(dict.fromkeys(key for _, key in cells))
    rows = []
    for key in keys:
        theirs = [f"{value:.4f}" for value in reference[key]] if reference else []
        rows.append([f"{key:,}", *(mean_spread(cells[name, key]) for name in names), *theirs])
    columns = ["slope error", "noise error", "ours", "mean", "mean / 0.6", "oracle"]
    columns += ["reference", "its mean", "its oracle"] if reference else []
    return markdown_table([what, *columns], rows)


def panels(title: str, cells: Cells, what: str) -> list[Panel]:
    keys = list(dict.fromkeys(key for _, key in cells))

    def curve(name: str) -> tuple[list[int], list[float]]:
        return keys, [float(np.mean(cells[name, key])) for key in keys]

    return [
        Panel(f"{title}: parameters", what, "mean absolute error", {n: curve(n) for n in PARAMETERS}, {}, LOGARITHMIC),
        Panel(f"{title}: scores", what, "mean squared error", {n: curve(n) for n in LABELS}, {}, LOGARITHMIC),
    ]


PARAMETERS, LABELS = ("slope error", "noise error"), ("ours", "mean", "mean / 0.6", "oracle")
LOGARITHMIC = ("log", "log")


def verdicts(equal: tuple[Cells, Cells], unequal: tuple[Cells, Cells]) -> str:
    by_items, by_sources = equal
    lines = []
    keys = sorted(key for name, key in by_items if name == "slope error")
    errors = [float(np.mean(by_items["slope error", key])) for key in keys]
    rate = float(np.polyfit(np.log(keys), np.log(errors), 1)[0])
    for claim, holds in (
        ("like n^-1/2 (within .1)", abs(rate + 0.5) <= 0.1),
        ("at least like n^-1/2 (to .1)", rate <= -0.4),
    ):
        lines.append(verdict(f"error of slopes falls with items {claim}", holds, f"n^{rate:.2f}"))
    for cells, reference, what in ((by_items, REFERENCE_ITEMS, "items"), (by_sources, REFERENCE_SOURCES, "sources")):
        excess = {
            key: float(np.mean(cells["ours", key]) / np.mean(cells["oracle", key]))
            - reference[key][0] / reference[key][2]
            for name, key in cells
            if name == "ours"
        }
        worst = max(excess, key=lambda key: excess[key])
        lines.append(
            verdict(
                f"by {what}: as close to the oracle as the reference to its own, everywhere (to .01)",
                excess[worst] <= 0.01,
                f"at worst {excess[worst]:+.3f} of the oracle's error, at {worst:,} {what}",
            )
        )
    both = [
        np.mean(cells["ours", key]) < np.mean(cells["mean / 0.6", key])
        for cells in unequal
        for name, key in cells
        if name == "ours"
    ]
    lines.append(
        verdict("unequal sources: below the rescaled mean everywhere", all(both), f"{sum(both)} of {len(both)}")
    )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run both settings and write ``regression_synthetic.md`` with its picture."""
    settings = read_settings("experiments.regression_synthetic", __doc__, 10, 1, arguments, full_seeds=10)
    equal, unequal = run(settings, False), run(settings, True)
    pictures = [*panels("equal sources", equal[0], "items"), *panels("equal sources", equal[1], "sources")]
    pictures += [*panels("unequal sources", unequal[0], "items"), *panels("unequal sources", unequal[1], "sources")]
    blocks = [
        "Scores y are sums of five normal features; every source says 0.6 y plus normal noise of variance 0.2, in the "
        "paper's text and code alike, so that sources are all the same and the plain mean errs by its scale alone: "
        "*mean / 0.6* puts that right. *unequal*: noise variances U(.02, 1). Mean and variance of y are known, as in "
        "the paper. *slope error* and *noise error* are mean absolute errors of 0.6 and of the noise variances; the "
        "other columns are mean squared errors of the scores. *reference*: the paper's implementation run again on "
        "draws of its own (its mean errs by another amount, as the variance of y is drawn too). "
        "Mean ± standard deviation over the repetitions.",
        "## Targets",
        QUICK if settings.quick else verdicts(equal, unequal),
        *draw(settings.results / "regression_synthetic.png", pictures, columns=4),
        f"## {FIXED_SOURCES} equal sources, by the number of items",
        table_of(equal[0], "items", REFERENCE_ITEMS),
        f"## {FIXED_ITEMS:,} items, by the number of equal sources",
        table_of(equal[1], "sources", REFERENCE_SOURCES),
        f"## {FIXED_SOURCES} unequal sources, by the number of items",
        table_of(unequal[0], "items", None),
        f"## {FIXED_ITEMS:,} items, by the number of unequal sources",
        table_of(unequal[1], "sources", None),
    ]
    described = [f"{settings.seeds} repetitions, seeds [2021, s, items, sources, unequal]"]
    path = settings.results / "regression_synthetic.md"
    write_results(path, "Synthetic regression: parameters and scores", settings.command, described, blocks)


if __name__ == "__main__":
    main()
