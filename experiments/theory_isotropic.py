"""Claim: the paper's isotropic shortcut is inconsistent on rankings: its error does not fall with n, and ours does.

It solves E d(a, b) = E d(a, y) + E d(b, y), which holds for squared distances of independent errors. It does not hold
for Kendall's distance: two sources that are wrong about the same pair of items agree on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.progress import track

import consilience as cs

from .plots import fitted_slope, image_block, save_figure
from .rankings import random_rankings
from .tables import QUICK, FloatArray, fit_quietly, markdown_table, read_settings, verdict, write_results

SIZES = (250, 1_000, 4_000, 16_000, 64_000)
QUICK_SIZES = (100, 400)
ITEMS, SOURCES = 5, 9
METHODS = {"isotropic": "isotropic (the paper)", "auto": "default (ours)"}
KINDS = {"weight": "weights", "cost": "mean distances to the truth"}
#: The default looks at 50,000 items at most.
LARGEST = {"auto": 16_000}
RATE, FLAT, TOLERANCE = -0.5, 0.05, 0.1

Errors = dict[tuple[str, str, int], float]


def weights() -> FloatArray:
    """Return the same nine weights in every run, from hardly anything to good."""
    return np.linspace(0.1, 1.2, SOURCES)


def run(sizes: Sequence[int], seeds: int) -> Errors:
    """Return the root mean squared error by kind of parameter, method and number of items."""
    space, weight = cs.Rankings(ITEMS), weights()
    cost = np.array([space.law.expected_cost(float(value)) for value in weight])
    squares: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for n, seed in track([(n, seed) for n in sizes for seed in range(seeds)], description="isotropic"):
        rng = np.random.default_rng([n, seed])
        votes = cs.simulate(space, random_rankings(rng, n, ITEMS), weight, rng)
        for method in METHODS:
            if n > LARGEST.get(method, n):
                continue
            model = cs.LabelModel(space, method=method, dependencies="none", random_state=0)
            fitted = fit_quietly(model, votes)
            squares["weight", method, n].append(float(np.mean((fitted.weight_ - weight) ** 2)))
            squares["cost", method, n].append(float(np.mean((fitted.expected_cost_ - cost) ** 2)))
    return {key: float(np.sqrt(np.mean(values))) for key, values in squares.items()}


def line(errors: Errors, kind: str, method: str, sizes: Sequence[int]) -> tuple[list[int], list[float]]:
    """Return the sizes a method was run with, and its errors."""
    used = [n for n in sizes if (kind, method, n) in errors]
    return used, [errors[kind, method, n] for n in used]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every method and write ``theory_isotropic.md`` and ``.png``."""
    settings = read_settings("experiments.theory_isotropic", __doc__, 20, 1, arguments)
    sizes = QUICK_SIZES if settings.quick else SIZES
    errors = run(sizes, settings.seeds)
    slope = {(kind, method): fitted_slope(*line(errors, kind, method, sizes)) for kind in KINDS for method in METHODS}

    def draw(axes: Sequence[Any]) -> None:
        for axis, (kind, words) in zip(axes, KINDS.items(), strict=True):
            for method, name in METHODS.items():
                axis.loglog(*line(errors, kind, method, sizes), "o-", label=f"{name}: {slope[kind, method]:.2f}")
            axis.set_title(f"error of the {words}", fontsize=9)
            axis.set_xlabel("items")
            axis.legend(fontsize=7)

    drawn = save_figure(settings.results / "theory_isotropic.png", len(KINDS), draw)
    tables = []
    for kind, words in KINDS.items():
        rows = []
        for method, name in METHODS.items():
            cells = [f"{errors[kind, method, n]:.4f}" if (kind, method, n) in errors else "" for n in sizes]
            rows.append([name, *cells, f"{slope[kind, method]:.3f}"])
        tables += [f"## Error of the {words}", markdown_table(["method", *(f"n={n:,}" for n in sizes), "slope"], rows)]
    blocks = [
        f"Root mean squared error over {SOURCES} sources with weights from 0.1 to 1.2 that rank {ITEMS} items by "
        "Mallows' law; the truth is uniform. *Slope*: the power of n with which the error falls. The default looks "
        "at 50,000 items at most, and is run below that.",
        *tables,
        *image_block(drawn, "theory_isotropic.png", "error against the number of items"),
        "## Targets",
        QUICK if settings.quick else _verdicts(errors, slope, sizes),
    ]
    described = [f"n = {', '.join(f'{n:,}' for n in sizes)}", f"seeds [n, s] for s in 0..{settings.seeds - 1}"]
    path = settings.results / "theory_isotropic.md"
    write_results(path, "Bias of the isotropic shortcut on rankings", settings.command, described, blocks)


def _verdicts(errors: Errors, slope: dict[tuple[str, str], float], sizes: Sequence[int]) -> str:
    lines = []
    for kind, words in KINDS.items():
        flat, first, last = slope[kind, "isotropic"], *(errors[kind, "isotropic", n] for n in (sizes[0], sizes[-1]))
        lines.append(
            verdict(
                f"Isotropic, {words}: slope within {FLAT} of 0",
                abs(flat) <= FLAT,
                f"{flat:.3f}; error {first:.3f} with {sizes[0]:,} items, {last:.3f} with {sizes[-1]:,}",
            )
        )
        for method in ("auto",):
            found = slope[kind, method]
            claim = f"{METHODS[method]}, {words}: slope within {TOLERANCE} of {RATE}"
            lines.append(verdict(claim, abs(found - RATE) <= TOLERANCE, f"{found:.3f}"))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
