"""Claim: copies among sources are detected from the votes and counted once; independent sources are not accused.

Five repetitions of every setting, with new sources each time. The baseline is the plain vote (`predict_baseline`). It
is compared with the same model under ``dependencies="none"``, which is Dawid and Skene's model with weak priors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.progress import track

import consilience as cs

from .tables import (
    QUICK,
    FloatArray,
    IntArray,
    calibration_error,
    fit_quietly,
    markdown_table,
    read_settings,
    verdict,
    write_results,
)

SIZES = (5000, 1000, 300)
CLEAN, CLEAN_SEEDS = ("hetero", "imbal", "k5"), 20
TARGETS = {"corr": 91.0, "clique of 4 of 9": 85.5, "4 copies of the best": 89.5, "corr, k=5": 84.0}
CONTROLS = ("hetero", "imbal", "k5", "class-specific confusions", "asymmetric", "shared difficulty", "two adversaries")
CONTROLS += ("3 excellent, 7 near random",)
WITHIN = 0.5


@dataclass(frozen=True)
class Simulation:
    """Draws sources that err around one truth."""

    rng: np.random.Generator
    truth: IntArray
    k: int

    @classmethod
    def of(cls, seed: int, n: int, k: int = 2, frequency: Sequence[float] | None = None) -> Simulation:
        rng = np.random.default_rng(seed)
        return cls(rng, rng.choice(k, n, p=frequency), k)

    def source(self, accuracy: float | FloatArray) -> IntArray:
        n = len(self.truth)
        wrong = (self.truth + self.rng.integers(1, self.k, n)) % self.k if self.k > 2 else 1 - self.truth
        return np.where(self.rng.random(n) < accuracy, self.truth, wrong)

    def sources(self, accuracies: Sequence[float] | FloatArray) -> list[IntArray]:
        return [self.source(float(accuracy)) for accuracy in accuracies]

    def copies(self, count: int, share: float, accuracy: float) -> list[IntArray]:
        """Return sources that repeat one vote on a share of the items, and are as accurate on the others."""
        original = self.source(accuracy)
        n = len(original)
        return [np.where(self.rng.random(n) < share, original, self.source(accuracy)) for _ in range(count)]

    def votes(self, columns: list[IntArray], abstains: float = 0.3) -> IntArray:
        matrix = np.stack(columns, axis=1)
        matrix[self.rng.random(matrix.shape) < abstains] = -1
        return matrix


Setting = Callable[[int, int], tuple[Simulation, IntArray]]


def _independent(
    k: int = 2, low: float = 0.52, high: float = 0.95, frequency: Sequence[float] | None = None
) -> Setting:
    def draw(seed: int, n: int) -> tuple[Simulation, IntArray]:
        made = Simulation.of(seed, n, k, frequency)
        return made, made.votes(made.sources(made.rng.uniform(low, high, 10)))

    return draw


def _copied(
    accuracies: Sequence[float] | FloatArray,
    groups: Sequence[tuple[int, float, float]],
    k: int = 2,
    frequency: Sequence[float] | None = None,
    abstains: float = 0.3,
) -> Setting:
    """Return a setting of independent sources and groups of (count, share, accuracy) copies."""

    def draw(seed: int, n: int) -> tuple[Simulation, IntArray]:
        made = Simulation.of(seed, n, k, frequency)
        columns = made.sources(accuracies)
        for group in groups:
            columns += made.copies(*group)
        return made, made.votes(columns, abstains)

    return draw


def _many(seed: int, n: int) -> tuple[Simulation, IntArray]:
    made = Simulation.of(seed, n)
    return made, made.votes([*made.sources(made.rng.uniform(0.6, 0.85, 20)), *made.copies(10, 0.9, 0.6)])


def _pairs(seed: int, n: int) -> tuple[Simulation, IntArray]:
    made = Simulation.of(seed, n)
    columns = made.sources(made.rng.uniform(0.6, 0.9, 9))
    for first in (0, 3, 6):
        columns[first + 1] = np.where(made.rng.random(n) < 0.5, columns[first], columns[first + 1])
    return made, made.votes(columns)


def _thrice(seed: int, n: int) -> tuple[Simulation, IntArray]:
    made = Simulation.of(seed, n)
    columns = made.sources(made.rng.uniform(0.6, 0.85, 7))
    return made, made.votes([*columns, columns[0].copy(), columns[0].copy()])


def _weak(seed: int, n: int) -> tuple[Simulation, IntArray]:
    made = Simulation.of(seed, n)
    columns = made.sources(made.rng.uniform(0.55, 0.65, 10))
    columns[1] = np.where(made.rng.random(n) < 0.7, columns[0], columns[1])
    return made, made.votes(columns)


def _confused(seed: int, n: int) -> tuple[Simulation, IntArray]:
    """Return sources that take each of four classes for others in their own way."""
    made = Simulation.of(seed, n, 4, [0.4, 0.3, 0.2, 0.1])
    rng, columns = made.rng, []
    for _ in range(10):
        law = np.stack([rng.dirichlet(np.eye(4)[label] * rng.uniform(1, 6) + 0.5) for label in range(4)])
        drawn = (rng.random(n)[:, None] > law[made.truth].cumsum(axis=1)).sum(axis=1)
        columns.append(drawn.clip(0, 3))
    return made, made.votes(columns)


def _asymmetric(seed: int, n: int) -> tuple[Simulation, IntArray]:
    made = Simulation.of(seed, n, 2, [0.7, 0.3])
    rng = made.rng
    rates = [(rng.uniform(0.4, 0.95), rng.uniform(0.6, 0.98)) for _ in range(10)]
    return made, made.votes([made.source(np.where(made.truth == 1, one, zero)) for one, zero in rates])


def _difficult(seed: int, n: int) -> tuple[Simulation, IntArray]:
    """Return sources that are all near chance on the same 40% of the items."""
    made = Simulation.of(seed, n)
    hard = made.rng.random(n) < 0.4
    return made, made.votes([made.source(np.where(hard, 0.55, a)) for a in made.rng.uniform(0.7, 0.95, 10)])


def _adversaries(seed: int, n: int) -> tuple[Simulation, IntArray]:
    made = Simulation.of(seed, n)
    return made, made.votes(made.sources([*made.rng.uniform(0.6, 0.9, 8), 0.2, 0.3]))


GOOD = np.linspace(0.72, 0.90, 5)
SETTINGS: dict[str, Setting] = {
    "hetero": _independent(),
    "imbal": _independent(frequency=[0.8, 0.2]),
    "k5": _independent(5, 0.30, 0.85),
    "corr": _copied(GOOD, [(5, 0.9, 0.6)]),
    "corr, 20% positive": _copied(GOOD, [(5, 0.9, 0.6)], frequency=[0.8, 0.2]),
    "corr, 5% positive": _copied(GOOD, [(5, 0.9, 0.6)], frequency=[0.95, 0.05]),
    "corr, 70% copies": _copied(GOOD, [(5, 0.7, 0.6)]),
    "corr, no abstention": _copied(GOOD, [(5, 0.9, 0.6)], abstains=0.0),
    "corr, 80% abstention": _copied(GOOD, [(5, 0.9, 0.6)], abstains=0.8),
    "corr, copies of a random source": _copied(GOOD, [(5, 0.9, 0.5)]),
    "corr, k=5": _copied(np.linspace(0.55, 0.80, 5), [(5, 0.9, 0.35)], k=5),
    "clique of 4 of 9": _copied(np.linspace(0.65, 0.85, 5), [(4, 0.8, 0.6)]),
    "4 copies of the best": _copied(np.linspace(0.65, 0.80, 5), [(4, 0.9, 0.85)]),
    "6 of 10 copies": _copied([0.7, 0.78, 0.84, 0.9], [(6, 0.9, 0.6)]),
    "three groups of 3 copies": _copied([0.85, 0.75], [(3, 0.9, a) for a in (0.6, 0.7, 0.8)]),
    "three pairs, correlation .5": _pairs,
    "30 sources, 10 copies": _many,
    "one source three times": _thrice,
    "class-specific confusions": _confused,
    "asymmetric": _asymmetric,
    "shared difficulty": _difficult,
    "two adversaries": _adversaries,
    "3 excellent, 7 near random": _copied([0.99, 0.97, 0.9, 0.6, 0.55, 0.52, 0.51, 0.5, 0.5, 0.5], []),
    "ten of .55-.65, one copied pair": _weak,
}


def measure(name: str, seed: int, n: int) -> FloatArray:
    """Return accuracies of plain vote, independence and default, error of calibration, and pairs found."""
    made, matrix = SETTINGS[name](seed, n)
    votes = cs.Votes.from_matrix(matrix, abstain=-1)
    covered = (matrix >= 0).any(axis=1)
    space, truth = cs.Classes(made.k), made.truth[covered]
    alone = fit_quietly(cs.LabelModel(space, dependencies="none", random_state=0), votes)
    model = fit_quietly(cs.LabelModel(space, random_state=0), votes)
    labels = (model.predict_baseline(votes), alone.predict(votes), model.predict(votes))
    accuracy = [100.0 * (each[covered] == truth).mean() for each in labels]
    error = 100.0 * calibration_error(truth, model.predict_proba(votes)[covered])
    return np.array([*accuracy, error, len(model.source_model_.dependencies)])


def false_flags(name: str, n: int, seeds: int) -> int:
    """Return in how many fits of independent sources some pair is taken as dependent."""
    flagged = 0
    for seed in range(1000, 1000 + seeds):
        made, matrix = SETTINGS[name](seed, n)
        model = fit_quietly(cs.LabelModel(cs.Classes(made.k)), cs.Votes.from_matrix(matrix, abstain=-1))
        rivals = any(item.code == "competing-groups" for item in model.diagnostics_)
        flagged += rivals or len(model.source_model_.dependencies) > 0
    return flagged


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the tables and write them to ``dependent_classes.md``."""
    settings = read_settings("experiments.dependent_classes", __doc__, 5, 1, arguments)
    sizes, clean_seeds = ((300,), 1) if settings.quick else (SIZES, CLEAN_SEEDS)
    names = list(SETTINGS)[:5] if settings.quick else list(SETTINGS)
    runs = [(name, n) for n in sizes for name in names]
    measured = {
        (name, n): np.array([measure(name, seed, n) for seed in range(settings.seeds)])
        for name, n in track(runs, description="dependent classes")
    }
    clean = [(name, n) for name in CLEAN for n in sizes]
    flags = {
        (name, n): false_flags(name, n, clean_seeds) for name, n in track(clean, description="independent sources")
    }
    blocks = [
        "Accuracy in percent, mean over the seeds, on items that somebody votes on. *plain*: `predict_baseline`. "
        "*alone*: the same model told that sources are independent (`dependencies='none'`). *default*: dependence "
        "learned, with its standard deviation over the seeds where above 1, its expected calibration error (15 "
        "bins), and the pairs found. Two equal classes, ten sources, 30% abstention unless said otherwise. *corr*: "
        "five independent sources (.72 to .90) and five 90% copies of one of accuracy .60. A copy repeats the "
        "original on that share of the items and is as accurate on the others.",
    ]
    for n in sizes:
        blocks += [f"## n = {n}", _table({name: measured[name, n] for name in names})]
    rows = [[name, *(f"{flags[name, n]} of {clean_seeds}" for n in sizes)] for name in CLEAN]
    blocks += ["## Fits of independent sources with any pair flagged"]
    blocks += [markdown_table(["setting", *(f"n = {n}" for n in sizes)], rows), "## Targets"]
    blocks.append(QUICK if settings.quick else _verdicts(measured, flags, clean_seeds))
    described = [f"seeds 0..{settings.seeds - 1}", f"independent sources: seeds 1000..{999 + clean_seeds}"]
    path = settings.results / "dependent_classes.md"
    write_results(path, "Classes, sources that copy each other", settings.command, described, blocks)


def _table(measured: dict[str, FloatArray]) -> str:
    rows = []
    for name, runs in measured.items():
        plain, alone, default, error, pairs = runs.mean(axis=0)
        spread = f" ± {runs[:, 2].std():.0f}" if runs[:, 2].std() >= 1.0 else ""
        cells = [f"{plain:.1f}", f"{alone:.1f}", f"**{default:.1f}**{spread}", f"{error:.1f}", f"{pairs:.1f}"]
        rows.append([name, *cells])
    return markdown_table(["setting", "plain", "alone", "default", "calibration", "pairs"], rows)


def _verdicts(measured: dict[tuple[str, int], FloatArray], flags: dict[tuple[str, int], int], seeds: int) -> str:
    n = SIZES[0]
    lines = []
    for name, target in TARGETS.items():
        reached = float(measured[name, n][:, 2].mean())
        lines.append(verdict(f"{name}, n={n}, at least {target}", reached >= target, f"{reached:.2f}"))
    lost = {name: float((measured[name, n][:, 1] - measured[name, n][:, 2]).mean()) for name in CONTROLS}
    worst = max(lost, key=lambda name: lost[name])
    claim = f"controls within {WITHIN} of the model of independent sources, n={n}"
    lines.append(verdict(claim, lost[worst] <= WITHIN, f"largest loss {lost[worst]:.2f}, {worst}"))
    for size in SIZES:
        below = {
            name: float((runs[:, 0] - runs[:, 2]).mean())
            for (name, count), runs in measured.items()
            if count == size and (runs[:, 0] - runs[:, 2]).mean() > 0
        }
        shown = "; ".join(f"{name} {loss:.1f} below" for name, loss in below.items()) or "never below"
        lines.append(verdict(f"not below the plain vote in any setting, n={size}", not below, shown))
    total = sum(flags.values())
    lines.append(verdict("no false flag", total == 0, f"{total} in {seeds * len(flags)} fits of independent sources"))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
