"""Claim: scores on unknown scales are combined about as well as if every line and noise were known.

Three simulation studies: lines and noise of several kinds, outliers, and abstentions. Numbers are mean squared errors
divided by that of the posterior mean under the true parameters, so that 1 is the best possible.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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

METHODS = ("majority", "isotropic", "triplets", "em", "auto")
#: Largest ratio of "auto", by study and setting.
LINE_SETTINGS = {
    ("paper", 1000, 10): 1.20,
    ("hetero", 100, 3): 1.20,
    ("hetero", 100, 10): None,
    ("hetero", 1000, 10): 1.05,
    ("hetero", 10_000, 10): None,
    ("affine", 100, 10): None,
    ("affine", 1000, 10): 1.06,
}
TAIL_SETTINGS = {"Gaussian": 1.05, "t(2.5)": 1.10, "10% of cells N(0, 10²)": 1.45, "best source 5% N(0, 20²)": None}
GAP_SETTINGS = {
    "unit, 30% missing": 1.06,
    "unit, 80% missing": 1.06,
    "affine, 30% missing": 1.06,
    "affine, 80% missing": 1.06,
    "affine, uneven": 1.06,
    "affine, depends on y": 1.65,
}
GRID = 601


@dataclass(frozen=True)
class Scene:
    """Votes, the truth, and the squared error of one who knows how the votes were made."""

    votes: FloatArray
    truth: FloatArray
    variance: float
    oracle: float


@dataclass
class Measured:
    """Ratios to the oracle by method, and findings of the default, one entry per seed."""

    ratio: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    findings: Counter[str] = field(default_factory=Counter)

    def add(self, scene: Scene, random_state: int) -> None:
        """Fit all methods to one scene."""
        space = cs.Scores(mean=0.0, variance=scene.variance)
        for method in METHODS:
            votes = cs.Votes.from_array(scene.votes)
            model = fit_quietly(cs.LabelModel(space, method=method, random_state=random_state), votes)
            error = float(np.mean((model.predict(votes) - scene.truth) ** 2))
            self.ratio[method].append(error / scene.oracle)
        self.findings.update({item.code for item in model.diagnostics_} - {"method"})
        self.ratio["median"].append(_squared(np.nanmedian(scene.votes, axis=1), scene.truth) / scene.oracle)


def _squared(found: FloatArray, truth: FloatArray) -> float:
    return float(np.mean((found - truth) ** 2))


def posterior_mean(
    votes: FloatArray, offset: FloatArray, slope: FloatArray, noise: FloatArray, variance: float
) -> FloatArray:
    """Return the mean of y given the votes and the truth about the sources; y has mean zero."""
    seen = ~np.isnan(votes)
    evidence = np.where(seen, votes - offset, 0.0) @ (slope / noise)
    mean: FloatArray = evidence / (1.0 / variance + seen @ (slope**2 / noise))
    return mean


def grid_mean(
    votes: FloatArray, offset: FloatArray, slope: FloatArray, density: Callable[[int, FloatArray], FloatArray]
) -> FloatArray:
    """Return the mean of y, standard normal before, for noise of any log density, by sums over a grid."""
    grid = np.linspace(-6.0, 6.0, GRID)
    score = np.tile(-0.5 * grid**2, (len(votes), 1))
    for source in range(votes.shape[1]):
        score += density(source, votes[:, source][:, None] - offset[source] - slope[source] * grid)
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    mean: FloatArray = (weight @ grid) / weight.sum(axis=1)
    return mean


def line_scene(design: str, n: int, m: int, seed: int) -> Scene:
    """Draw sources with lines: the authors' own, unit slopes of mixed quality, or free slopes and offsets."""
    rng = np.random.default_rng(seed)
    variance, truth = 1.0, rng.normal(0, 1, n)
    good = rng.permutation(np.arange(m) < max(1, m // 3))
    offset, slope = np.zeros(m), np.ones(m)
    if design == "paper":
        variance, truth, slope, noise = 5.0, truth * np.sqrt(5.0), np.full(m, 0.6), np.full(m, 0.2)
    elif design == "hetero":
        noise = np.where(good, rng.uniform(0.1, 0.4, m), rng.uniform(1, 4, m))
    else:
        slope, offset = rng.uniform(0.4, 1.6, m), rng.normal(0, 1, m)
        noise = np.where(good, rng.uniform(0.1, 0.4, m), rng.uniform(1, 4, m)) * slope**2
    votes = offset + np.outer(truth, slope) + rng.normal(size=(n, m)) * np.sqrt(noise)
    oracle = _squared(posterior_mean(votes, offset, slope, noise, variance), truth)
    return Scene(votes, truth, variance, oracle)


def _sources(rng: np.random.Generator, m: int, affine: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return offsets, slopes and noise variances, a third of the sources good."""
    good = rng.permutation(np.arange(m) < max(1, m // 3))
    noise = np.where(good, rng.uniform(0.1, 0.4, m), rng.uniform(1, 4, m))
    slope = rng.uniform(0.4, 1.6, m) if affine else np.ones(m)
    offset = rng.normal(size=m) if affine else np.zeros(m)
    return offset, slope, noise * slope**2


def _normal(residual: FloatArray, deviation: float) -> FloatArray:
    density: FloatArray = -0.5 * (residual / deviation) ** 2 - np.log(deviation)
    return density


def _mixture(residual: FloatArray, deviation: float, share: float, wide: float) -> FloatArray:
    density: FloatArray = np.logaddexp(
        np.log(1.0 - share) + _normal(residual, deviation), np.log(share) + _normal(residual, wide)
    )
    return density


def tail_scene(kind: str, n: int, m: int, seed: int) -> Scene:
    """Draw affine sources whose noise has outliers of some kind."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    offset, slope, noise = _sources(rng, m, affine=True)
    deviation = np.sqrt(noise)
    if kind == "t(2.5)":
        errors = rng.standard_t(2.5, (n, m)) * deviation * 0.6

        def density(source: int, left: FloatArray) -> FloatArray:
            return -1.75 * np.log1p((left / (0.6 * deviation[source])) ** 2 / 2.5)

    elif kind.startswith("10%"):
        errors = rng.normal(size=(n, m)) * deviation
        wrong = rng.random((n, m)) < 0.1
        errors = np.where(wrong, rng.normal(size=(n, m)) * 10, errors)

        def density(source: int, left: FloatArray) -> FloatArray:
            return _mixture(left, deviation[source], 0.1, 10.0)

    elif kind.startswith("best"):
        errors = rng.normal(size=(n, m)) * deviation
        best = int(np.argmin(noise))
        wrong = np.zeros((n, m), dtype=bool)
        wrong[:, best] = rng.random(n) < 0.05
        errors = np.where(wrong, rng.normal(size=(n, m)) * 20, errors)

        def density(source: int, left: FloatArray) -> FloatArray:
            if source == best:
                return _mixture(left, deviation[source], 0.05, 20.0)
            return _normal(left, deviation[source])

    else:
        errors = rng.normal(size=(n, m)) * deviation

        def density(source: int, left: FloatArray) -> FloatArray:
            return _normal(left, deviation[source])

    votes = offset + np.outer(truth, slope) + errors
    return Scene(votes, truth, 1.0, _squared(grid_mean(votes, offset, slope, density), truth))


def gap_scene(kind: str, n: int, m: int, seed: int) -> Scene:
    """Draw sources that abstain: at random, unevenly, or depending on the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    offset, slope, noise = _sources(rng, m, affine=kind.startswith("affine"))
    votes = offset + np.outer(truth, slope) + rng.normal(size=(n, m)) * np.sqrt(noise)
    if kind.endswith("y"):
        direction = np.where(rng.random(m) < 0.5, 1, -1)
        present = rng.random((n, m)) <= 1.0 / (1.0 + np.exp(-2.0 * truth[:, None] * direction))
    else:
        coverage = rng.uniform(0.1, 0.9, m) if kind.endswith("uneven") else np.full(m, 0.7 if "30%" in kind else 0.2)
        present = rng.random((n, m)) <= coverage
    votes[~present] = np.nan
    votes, truth = votes[present.any(axis=1)], truth[present.any(axis=1)]
    return Scene(votes, truth, 1.0, _squared(posterior_mean(votes, offset, slope, noise, 1.0), truth))


def run(scenes: dict[str, Callable[[int], Scene]], seeds: dict[str, int], title: str) -> dict[str, Measured]:
    """Measure every setting for its number of seeds."""
    measured: dict[str, Measured] = {name: Measured() for name in scenes}
    runs = [(name, seed) for name in scenes for seed in range(seeds[name])]
    for name, seed in track(runs, description=title):
        measured[name].add(scenes[name](seed), seed)
    return measured


def ratio_table(measured: dict[str, Measured]) -> str:
    rows = []
    for method in ("majority", "median", *METHODS[1:]):
        cells = [one.ratio[method] for one in measured.values()]
        rows.append([method, *(f"{np.mean(ratios):.3f} ± {np.std(ratios):.3f}" for ratios in cells)])
    codes = sorted({code for one in measured.values() for code in one.findings})
    for code in codes:
        shares = [one.findings[code] / len(one.ratio["auto"]) for one in measured.values()]
        rows.append([f"auto reports `{code}`", *(f"{share:.0%}" for share in shares)])
    return markdown_table(["ratio to the oracle", *measured], rows)


def verdicts(measured: dict[str, Measured], limits: dict[str, float | None]) -> list[str]:
    lines = []
    for name, limit in limits.items():
        if limit is not None and name in measured:
            reached = float(np.mean(measured[name].ratio["auto"]))
            claim = f"{name}: at most {limit:.2f} times the oracle's error"
            lines.append(verdict(claim, reached <= limit, f"{reached:.3f}"))
    return lines


def _line_names() -> dict[str, tuple[str, int, int]]:
    return {f"{design} {n}/{m}": (design, n, m) for design, n, m in LINE_SETTINGS}


def run_lines(settings: Settings) -> dict[str, Measured]:
    """Measure the study of lines."""
    names = _line_names()
    chosen = list(names)[1:3] if settings.quick else list(names)
    scenes = {name: (lambda seed, of=names[name]: line_scene(*of, seed)) for name in chosen}
    seeds = {name: min(settings.seeds, 8) if names[name][1] > 1000 else settings.seeds for name in chosen}
    return run(scenes, seeds, "lines   ")


def run_study(
    settings: Settings, make: Callable[[str, int, int, int], Scene], kinds: Sequence[str], m: int, title: str
) -> dict[str, Measured]:
    """Measure the study of outliers or of abstentions."""
    n = 150 if settings.quick else 1000
    chosen = list(kinds)[:2] if settings.quick else list(kinds)
    scenes = {kind: (lambda seed, kind=kind: make(kind, n, m, seed)) for kind in chosen}
    return run(scenes, dict.fromkeys(chosen, settings.seeds), title)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the three studies and write ``scores.md``."""
    settings = read_settings("experiments.scores", __doc__, 20, 1, arguments)
    lines = run_lines(settings)
    tails = run_study(settings, tail_scene, list(TAIL_SETTINGS), 6, "outliers")
    gaps = run_study(settings, gap_scene, list(GAP_SETTINGS), 8, "missing ")
    limits = {f"{design} {n}/{m}": limit for (design, n, m), limit in LINE_SETTINGS.items()}
    judged = [*verdicts(lines, limits), *verdicts(tails, TAIL_SETTINGS), *verdicts(gaps, GAP_SETTINGS)]
    blocks = [
        "Columns are items/sources. *paper*: slope .6 and noise .2 for all, Var(y) = 5; *hetero*: unit slopes, a third "
        "of the sources good; *affine*: slopes U(.4, 1.6), offsets N(0, 1). Mean and variance of y are told. Mean ± "
        "standard deviation over seeds; sources are drawn anew for every seed.",
        "## Lines",
        ratio_table(lines),
        "## Outliers (affine sources)",
        ratio_table(tails),
        "## Abstentions",
        ratio_table(gaps),
        "## Targets",
        QUICK if settings.quick else "\n".join(judged),
    ]
    described = [
        f"{settings.seeds} seeds, at most 8 at 10,000 items",
        "outliers and abstentions with 1000 items and 6 and 8 sources" if not settings.quick else "small settings",
    ]
    write_results(settings.results / "scores.md", "Scores: ratio to the oracle", settings.command, described, blocks)


if __name__ == "__main__":
    main()
