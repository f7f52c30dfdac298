"""Claim: 95% intervals for slopes, noise variances and scores hold the truth about 95 times in 100."""

from __future__ import annotations

from collections.abc import Sequence

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

#: Items, sources, and whether the noise is Student-t with 5 degrees of freedom.
SCENES = ((200, 3, False), (200, 6, False), (1000, 6, False), (1000, 6, True))
COLUMNS = ("isotropic noise", "slope", "noise variance", "y")
LOW, HIGH = 0.91, 0.98
NORMAL = 1.96


def scene_name(n: int, m: int, heavy: bool) -> str:
    return f"n={n}, m={m}{', t(5) noise' * heavy}"


def votes_of(n: int, m: int, heavy: bool, seed: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return votes with unit slopes, votes with other slopes, the truth and the slopes."""
    rng = np.random.default_rng(seed)
    noise = noise_of(m)
    truth, slope = rng.normal(size=n), np.linspace(0.7, 1.3, m)
    errors = rng.standard_t(5, (n, m)) / np.sqrt(5 / 3) if heavy else rng.normal(size=(n, m))
    errors = errors * np.sqrt(noise)
    return truth[:, None] + errors, np.outer(truth, slope) + errors, truth, slope


def noise_of(m: int) -> FloatArray:
    return np.where(np.arange(m) < 2, 0.5, 1.5)


def coverage(n: int, m: int, heavy: bool, sets: int) -> list[float]:
    """Return the share of intervals that hold the truth, for the four columns."""
    space = cs.Scores(mean=0.0, variance=1.0)
    noise, held = noise_of(m), np.zeros(4)
    for seed in range(sets):
        plain, sloped, truth, slope = votes_of(n, m, heavy, seed)
        model = fit_quietly(cs.LabelModel(space, method="isotropic"), cs.Votes.from_array(plain))
        error = model.source_model_.summary.cost_standard_error
        held[0] += (np.abs(model.expected_cost_ - noise) < NORMAL * error).mean()
        votes = cs.Votes.from_array(sloped)
        model = fit_quietly(cs.LabelModel(space, method="em"), votes)
        found = model.source_model_.parameters
        held[1] += (np.abs(found.slope - slope) < NORMAL * found.slope_error).mean()
        held[2] += (np.abs(found.noise_variance - noise) < NORMAL * found.noise_error).mean()
        lower, upper = model.predict_distribution(votes).interval(0.95)
        held[3] += ((lower <= truth) & (truth <= upper)).mean()
    return [float(share) for share in held / sets]


def measure(settings: Settings) -> dict[str, list[float]]:
    scenes = SCENES[:1] if settings.quick else SCENES
    return {scene_name(*scene): coverage(*scene, settings.seeds) for scene in track(scenes, description="coverage")}


def main(arguments: Sequence[str] | None = None) -> None:
    """Count and write ``scores_coverage.md``."""
    settings = read_settings("experiments.scores_coverage", __doc__, 150, 4, arguments)
    measured = measure(settings)
    rows = [[name, *(f"{share:.3f}" for share in shares)] for name, shares in measured.items()]
    lines = []
    for name, shares in measured.items():
        inside = all(LOW <= share <= HIGH for share in shares[1:])
        shown = ", ".join(f"{share:.3f}" for share in shares[1:])
        lines.append(verdict(f"{name}: slopes, noise variances and y between {LOW:.0%} and {HIGH:.0%}", inside, shown))
    blocks = [
        "Slopes from .7 to 1.3, noise .5 for the first two sources and 1.5 for the others. *isotropic noise* is "
        '`method="isotropic"` on votes with unit slopes, the other columns `method="em"`; y by '
        "`predict_distribution(votes).interval(0.95)`.",
        markdown_table(["share of intervals that hold the truth", *COLUMNS], rows),
        "## Targets",
        QUICK if settings.quick else "\n".join(lines),
    ]
    described = [f"{settings.seeds} data sets for each row", "nominal 95%"]
    path = settings.results / "scores_coverage.md"
    write_results(path, "Scores: coverage of intervals", settings.command, described, blocks)


if __name__ == "__main__":
    main()
