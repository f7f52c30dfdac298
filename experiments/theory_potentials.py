"""Claim: the correlation potentials theta_ab of equation 1 are recovered, for given and for detected dependencies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.progress import track

import consilience as cs

from .tables import QUICK, fit_quietly, markdown_table, mean_spread, read_settings, verdict, write_results

WEIGHTS = (0.8, 1.0, 1.2, 1.4, 1.0, 1.2)
PAIR = ("source_4", "source_5")
CLASSES = (2, 4)
POTENTIALS, SIZES = (0.0, 0.5, 1.0, 2.0), (1_000, 8_000)
TOLERANCE = 0.1


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw votes with known potentials, learn them, and write ``theory_potentials.md``."""
    settings = read_settings("experiments.theory_potentials", __doc__, 10, 1, arguments)
    found: dict[tuple[int, float, int, str], list[float]] = {}
    sizes = SIZES[:1] if settings.quick else SIZES
    for k, theta in track([(k, theta) for k in CLASSES for theta in POTENTIALS], description="potentials"):
        space = cs.Classes(k)
        for n in sizes:
            for seed in range(settings.seeds):
                rng = np.random.default_rng([seed, n])
                votes = cs.simulate(space, space.random(n, rng), WEIGHTS, rng, dependencies={(4, 5): theta})
                for how, dependencies in (("given", [PAIR]), ("found", None)):
                    model = fit_quietly(cs.LabelModel(space, dependencies=dependencies, random_state=0), votes)
                    learned = model.source_model_
                    found.setdefault((k, theta, n, how), []).append(float(learned.correlation_potential[4, 5]))
                found.setdefault((k, theta, n, "share"), []).append(float(PAIR in learned.dependencies))
    mean = {cell: float(np.mean(values)) for cell, values in found.items()}
    rows = [
        [f"{k} classes, {theta:g}, n = {n:,}", *(mean_spread(found[k, theta, n, how], 2) for how in ("given", "found")),
         f"{mean[k, theta, n, 'share']:.0%}"]
        for k in CLASSES for theta in POTENTIALS for n in sizes
    ]  # fmt: skip
    last = sizes[-1]
    there = [(k, theta) for k in CLASSES for theta in POTENTIALS if theta]
    off = {
        how: max(abs(mean[k, theta, last, how] - theta) for k in CLASSES for theta in POTENTIALS)
        for how in ("found", "given")
    }
    falsely = max(mean[k, 0.0, n, "share"] for k in CLASSES for n in sizes)
    missed = min(mean[k, theta, last, "share"] for k, theta in there)
    blocks = [
        "Six sources of two and of four classes, drawn by `simulate` from equation 1; the last two are bound by "
        "theta_ab. *given*: the pair is named by `dependencies=`; *found*: nothing is said, and *pair found* says how "
        "often the pair was reported. `source_model_.correlation_potential` holds the estimates.",
        markdown_table(["true theta_ab", "given", "found", "pair found"], rows),
        "A pair that is given is believed to share something, so that a potential of 0, where the user is wrong, is "
        "estimated a little above it.",
        "## Targets",
        QUICK
        if settings.quick
        else "\n".join(
            [
                *(
                    verdict(
                        f"theta_ab, {how}: within {TOLERANCE} at {last:,} items",
                        value <= TOLERANCE,
                        f"off by {value:.2f}",
                    )
                    for how, value in off.items()
                ),
                verdict(
                    f"the pair is found at {last:,} items whenever it is there", missed == 1.0, f"{missed:.0%} at least"
                ),
                verdict("and never where it is not", falsely == 0.0, f"{falsely:.0%}"),
            ]
        ),
    ]
    described = [f"weights {', '.join(map(str, WEIGHTS))}; seeds 0..{settings.seeds - 1}"]
    write_results(
        settings.results / "theory_potentials.md", "Correlation potentials", settings.command, described, blocks
    )


if __name__ == "__main__":
    main()
