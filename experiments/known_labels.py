"""Claim: a few known labels do not make other labels worse, and suggested ones help more than random ones.

Scored on fresh items, because the suggested items are the contested ones, and without them nothing would be left to
decide.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.progress import track

import consilience as cs

from .tables import QUICK, FloatArray, fit_quietly, markdown_table, read_settings, verdict, write_results

ITEMS, FRESH = 300, 3000
COUNTS = (5, 20, 50)
SPACES: dict[str, cs.LabelSpace] = {
    "classes": cs.Classes(3),
    "steps": cs.FiniteMetric(np.abs(np.subtract.outer(np.arange(6), np.arange(6)))),
    "rankings": cs.Rankings(4),
    "scores": cs.Scores(),
    "vectors": cs.Vectors(2),
    "tags": cs.Tags(4),
}
SKEWED = "skewed scores"
CASES = {**SPACES, SKEWED: cs.Scores()}
#: Share of the cost of chance of each source; in the second panel the first three are copies.
PANELS = {"independent": np.linspace(0.25, 0.85, 6), "three copies": np.array([0.7, 0.7, 0.7, 0.4, 0.45, 0.5, 0.8])}


def draw(space: cs.LabelSpace, panel: str, n: int, rng: np.random.Generator) -> tuple[cs.Votes, FloatArray]:
    chance = float(space.law.expected_cost(np.zeros(1))[0])
    truth = space.as_labels(space.random(n, rng))
    labels = cs.simulate(space, truth, space.law.weight_from_cost(chance * PANELS[panel]), rng).labels.copy()
    if panel == "three copies":
        labels[:, 1:3] = labels[:, :1]
    return cs.Votes.from_array(labels, sources=[f"s{one}" for one in range(labels.shape[1])]), truth


def draw_case(name: str, panel: str, n: int, rng: np.random.Generator) -> tuple[cs.Votes, FloatArray]:
    votes, truth = draw(CASES[name], panel, n, rng)
    if name != SKEWED:
        return votes, truth
    return cs.Votes.from_array(np.exp(votes.labels.astype(float)), sources=votes.sources), np.exp(truth)


def run(name: str, panel: str, seed: int) -> dict[tuple[str, int], float]:
    """Return mean costs on fresh items: without known labels, with suggested and with random ones."""
    space, rng = CASES[name], np.random.default_rng(7000 + seed)
    votes, truth = draw_case(name, panel, ITEMS, rng)
    fresh, fresh_truth = draw_case(name, panel, FRESH, rng)

    def cost(model: cs.LabelModel) -> float:
        return float(space.cost(space.as_batch(model.predict(fresh)), space.as_batch(fresh_truth)).mean())

    plain = fit_quietly(cs.LabelModel(space, random_state=0), votes)
    found = {("none", 0): cost(plain)}
    for count in COUNTS:
        chosen = {
            "suggested": plain.suggest(votes, count, "learn").items,
            "random": rng.choice(ITEMS, count, replace=False),
        }
        for way, items in chosen.items():
            known = np.isin(np.arange(ITEMS), items)
            model = fit_quietly(cs.LabelModel(space, random_state=0), votes, gold=(truth, known))
            found[way, count] = cost(model)
    return found


def change(runs: Sequence[dict[tuple[str, int], float]], one: tuple[str, int], other: tuple[str, int]) -> FloatArray:
    """Return mean and standard error of the difference in cost, relative to the mean cost without known labels."""
    difference = np.array([run[one] - run[other] for run in runs])
    base = np.mean([run["none", 0] for run in runs])
    error = difference.std(ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else 0.0
    return np.array([difference.mean(), error]) / base


def shown(value: FloatArray) -> str:
    return f"{100 * value[0]:+.1f} ± {100 * value[1]:.1f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all panels and write ``known_labels.md``."""
    settings = read_settings("experiments.known_labels", __doc__, 24, 1, arguments)
    rows, harmed, helped = [], [], []
    cells = [(name, panel) for name in CASES for panel in PANELS]
    for name, panel in track(cells[:2] if settings.quick else cells, description="known labels"):
        runs = [run(name, panel, seed) for seed in range(settings.seeds)]
        for count in COUNTS:
            suggested = change(runs, ("suggested", count), ("none", 0))
            random = change(runs, ("random", count), ("none", 0))
            between = change(runs, ("suggested", count), ("random", count))
            rows.append([f"{name}, {panel}", str(count), shown(suggested), shown(random), shown(between)])
            harmed += [f"{name}, {panel}, {count}"] if random[0] > 2.0 * random[1] and random[0] > 0.005 else []
            helped += [f"{name}, {panel}, {count}"] if between[0] > 2.0 * between[1] and between[0] > 0.005 else []
    lines = [
        verdict("random known labels never make fresh labels worse", not harmed, "; ".join(harmed) or "none"),
        verdict("suggested items are never worse than random ones", not helped, "; ".join(helped) or "none"),
    ]
    blocks = [
        f"Change of the mean cost on {FRESH:,} fresh items in percent, mean ± standard error over seeds; negative is "
        "better. Worse means by more than two standard errors and half a percent. *skewed scores*: votes and truth are "
        "exponentials of those of *scores*.",
        markdown_table(
            ["panel", "known", "suggested - none", "random - none", "suggested - random"],
            rows,
        ),
        "## Targets",
        QUICK if settings.quick else "\n".join(lines),
    ]
    described = [f"{ITEMS} items", f"seeds 7000 + s for s in 0..{settings.seeds - 1}"]
    write_results(settings.results / "known_labels.md", "A few known labels", settings.command, described, blocks)


if __name__ == "__main__":
    main()
