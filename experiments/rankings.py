"""Claim: for rankings the label model does as well as one that knows the source qualities, with valid intervals.

Full rankings of five items drawn from the Mallows law. Settings and seeds are those of an earlier simulation study. Its
numbers are shown next to ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from rich.progress import track

import consilience as cs

from .finite_spaces import KnownWeights
from .tables import (
    QUICK,
    FloatArray,
    IntArray,
    Settings,
    fit_quietly,
    markdown_table,
    read_settings,
    signed,
    verdict,
    write_results,
)

ITEMS = 5
SOURCES = (3, 6, 9, 12, 18)
METHODS = ("majority", "isotropic", "triplets", "em", "auto", "oracle")
DECODERS = ("map", "bayes")
GAP_LIMIT, WEIGHT_LIMIT = 0.002, 0.01

#: Kendall error in the study, by our name for the method and the decoder, for SOURCES.
NOTE_ERROR = {
    ("majority", "map"): ("E0 majority", (0.409, 0.373, 0.312, 0.312, 0.250)),
    ("isotropic", "map"): ("E2 LS, backward map", (0.404, 0.333, 0.295, 0.270, 0.210)),
    ("triplets", "map"): ("E3 rank one", (0.418, 0.319, 0.185, 0.178, 0.112)),
    ("auto", "map"): ("E5 EM", (0.393, 0.288, 0.185, 0.178, 0.112)),
    ("auto", "bayes"): ("E5 EM, MBR", (0.387, 0.284, 0.182, 0.174, 0.110)),
    ("oracle", "map"): ("E6 oracle", (0.322, 0.265, 0.185, 0.178, 0.112)),
    ("oracle", "bayes"): ("E6 oracle, MBR", (0.322, 0.255, 0.182, 0.174, 0.110)),
}
#: Paired gap to the oracle in the study, same decoder.
NOTE_GAP = {
    ("majority", "map"): (0.087, 0.108, 0.127, 0.134, 0.138),
    ("auto", "bayes"): (0.065, 0.029, 0.0001, 0.0002, 0.0001),
}
#: Mean absolute error of the weights in the study.
NOTE_WEIGHT = {
    "isotropic": (0.538, 0.538, 0.506, 0.529, 0.512),
    "triplets": (0.785, 0.246, 0.019, 0.015, 0.017),
    "auto": (0.146, 0.074, 0.009, 0.008, 0.006),
}
RATE_SIZES = (50, 250, 1000, 5000)
RATE_SEEDS, QUICK_RATE_SEEDS = 40, 2
RATE_METHODS = ("isotropic", "triplets", "em", "auto")
#: Root mean square error of the weights in the study: mean and deviation over 8 seeds (5 at n=5000).
NOTE_RATE = {
    "isotropic": ((0.295, 0.040), (0.301, 0.033), (0.289, 0.031), (0.300, 0.021)),
    "triplets": ((0.109, 0.020), (0.065, 0.014), (0.047, 0.007), (0.045, 0.003)),
    "em": ((0.090, 0.025), (0.041, 0.011), (0.023, 0.004), (0.0090, 0.002)),
    "auto": ((0.090, 0.025), (0.041, 0.011), (0.023, 0.004), (0.0090, 0.002)),
}
RATE_TOLERANCE = 0.15
COVERAGE_SIZES = (100, 300, 1000)
COVERAGE_SETS, QUICK_COVERAGE_SETS = 240, 4
NOTE_SETS = 60
#: Coverage in the study.
NOTE_COVERAGE = {"auto": (0.956, 0.964, 0.950)}


@dataclass
class Scores:
    """What was measured for one method in one setting, one entry per seed; errors by decoder."""

    error: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    weight_error: list[float] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def add(self, model: cs.LabelModel, votes: cs.Votes, truth: IntArray, weight: FloatArray) -> None:
        """Measure a fitted model against the truth."""
        for decode in DECODERS:
            labels = model.set_params(decode=decode).predict(votes)
            self.error[decode].append(share_wrong(labels, truth))
        self.weight_error.append(float(np.abs(model.weight_ - weight).mean()))
        self.findings += [finding.code for finding in model.diagnostics_ if finding.severity != "info"]


def share_wrong(predicted: IntArray, truth: IntArray) -> float:
    """Return which share of all pairs of items is in the wrong order; what the prediction leaves open is half wrong."""
    left, right = np.triu_indices(truth.shape[1], 1)
    claimed = np.sign(predicted[:, right] - predicted[:, left])
    claimed[(predicted[:, left] < 0) | (predicted[:, right] < 0)] = 0
    actual = np.sign(truth[:, right] - truth[:, left])
    return float((1 - claimed * actual).mean() / 2)


def random_rankings(rng: np.random.Generator, n: int, items: int) -> IntArray:
    return cs.Rankings(items).random(n, rng).astype(np.int64)


def third_good(rng: np.random.Generator, m: int, good: tuple[float, float] = (0.2, 1.0)) -> FloatArray:
    """Draw weights: a third good, the others close to random, in random order."""
    weight = np.concatenate([rng.uniform(*good, m // 3), rng.uniform(0.001, 0.01, m - m // 3)])
    rng.shuffle(weight)
    return weight


def run_sources(settings: Settings) -> dict[int, dict[str, Scores]]:
    """Measure every method for every number of sources."""
    sources, n = ((3, 9), 300) if settings.quick else (SOURCES, 5000)
    space = cs.Rankings(ITEMS)
    measured: dict[int, dict[str, Scores]] = defaultdict(lambda: defaultdict(Scores))
    runs = [(m, seed) for m in sources for seed in range(settings.seeds)]
    for m, seed in track(runs, description="sources "):
        rng = np.random.default_rng(100 * seed + m)
        weight = third_good(rng, m)
        truth = random_rankings(rng, n, ITEMS)
        votes = cs.simulate(space, truth, weight, rng)
        for name in METHODS:
            method = KnownWeights(weight) if name == "oracle" else name
            model = fit_quietly(cs.LabelModel(space, method=method, random_state=0), votes)
            measured[m][name].add(model, votes, truth, weight)
    return measured


def run_rate(settings: Settings) -> dict[int, dict[str, list[float]]]:
    """Measure how the error of the weights falls with the number of items."""
    sizes = RATE_SIZES[:2] if settings.quick else RATE_SIZES
    space, m = cs.Rankings(ITEMS), 9
    measured: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    runs = [(n, seed) for n in sizes for seed in range(QUICK_RATE_SEEDS if settings.quick else RATE_SEEDS)]
    for n, seed in track(runs, description="rate    "):
        rng = np.random.default_rng(31 * seed + n + ITEMS)
        weight = rng.uniform(0.1, 1.2, m)
        votes = cs.simulate(space, random_rankings(rng, n, ITEMS), weight, rng)
        for method in RATE_METHODS:
            model = fit_quietly(cs.LabelModel(space, method=method, random_state=0), votes)
            measured[n][method].append(float(np.sqrt(((model.weight_ - weight) ** 2).mean())))
    return measured


@dataclass(frozen=True)
class Coverage:
    """Share of nominal 95% intervals that hold the weight, in the study's number of data sets and in all."""

    few: float
    share: float
    root_mean_square: float
    standard_error: float


def run_coverage(settings: Settings) -> dict[int, dict[str, Coverage]]:
    """Count how often the intervals of the weights hold the truth."""
    m, space = 6, cs.Rankings(ITEMS)
    sizes, sets = (COVERAGE_SIZES[:1], QUICK_COVERAGE_SETS) if settings.quick else (COVERAGE_SIZES, COVERAGE_SETS)
    measured: dict[int, dict[str, Coverage]] = defaultdict(dict)
    runs = [(n, method) for n in sizes for method in NOTE_COVERAGE]
    for n, method in track(runs, description="coverage"):
        errors, standard_errors = [], []
        for seed in range(sets):
            rng = np.random.default_rng(5000 + seed)
            weight = rng.uniform(0.2, 1.2, m)
            votes = cs.simulate(space, random_rankings(rng, n, ITEMS), weight, rng)
            model = fit_quietly(cs.LabelModel(space, method=method, random_state=0), votes)
            errors.append(model.weight_ - weight)
            standard_errors.append(model.standard_error_)
        error, standard_error = np.array(errors), np.array(standard_errors)
        held = np.abs(error) <= 1.96 * standard_error
        squares = [float(np.sqrt((values**2).mean())) for values in (error, standard_error)]
        measured[n][method] = Coverage(float(held[:NOTE_SETS].mean()), float(held.mean()), *squares)
    return measured


def spread(values: Sequence[float], digits: int = 3) -> str:
    return f"{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}"


def gaps(scores: dict[str, Scores], name: str, decode: str) -> FloatArray:
    return np.array(scores[name].error[decode]) - np.array(scores["oracle"].error[decode])


def error_table(measured: dict[int, dict[str, Scores]]) -> str:
    rows = []
    for name in METHODS:
        for decode in DECODERS:
            rows.append([f"{name}, {decode}", *(spread(scores[name].error[decode]) for scores in measured.values())])
            if (name, decode) in NOTE_ERROR:
                label, values = NOTE_ERROR[name, decode]
                cells = dict(zip(SOURCES, values, strict=True))
                rows.append([f"*study: {label}*", *(f"{cells[m]:.3f}" for m in measured)])
    return markdown_table(["method, decoder", *(f"m={m}" for m in measured)], rows)


def gap_table(measured: dict[int, dict[str, Scores]]) -> str:
    rows = []
    for name in METHODS[:-1]:
        for decode in DECODERS:
            cells = []
            for scores in measured.values():
                gap = gaps(scores, name, decode)
                cells.append(f"{signed(float(gap.mean()), 4)} ± {np.std(gap) / np.sqrt(max(len(gap) - 1, 1)):.4f}")
            rows.append([f"{name}, {decode}", *cells])
            if (name, decode) in NOTE_GAP:
                values = dict(zip(SOURCES, NOTE_GAP[name, decode], strict=True))
                rows.append(["*study*", *(signed(values[m], 4) for m in measured)])
    return markdown_table(["gap to the oracle", *(f"m={m}" for m in measured)], rows)


def weight_table(measured: dict[int, dict[str, Scores]]) -> str:
    rows = []
    for name in METHODS[1:-1]:
        rows.append([name, *(spread(scores[name].weight_error) for scores in measured.values())])
        if name in NOTE_WEIGHT:
            values = dict(zip(SOURCES, NOTE_WEIGHT[name], strict=True))
            rows.append(["*study*", *(f"{values[m]:.3f}" for m in measured)])
    findings = []
    for scores in measured.values():
        codes = scores["auto"].findings
        findings.append(", ".join(f"{code} x{codes.count(code)}" for code in sorted(set(codes))))
    rows.append(["findings of auto", *findings])
    return markdown_table(["MAE of the weights", *(f"m={m}" for m in measured)], rows)


def slope_of(measured: dict[int, dict[str, list[float]]], method: str) -> float:
    """Return the slope of log error over log n, by least squares."""
    sizes = np.log([float(n) for n in measured])
    errors = np.log([float(np.mean(scores[method])) for scores in measured.values()])
    return float(np.polyfit(sizes, errors, 1)[0])


def note_seeds(n: int) -> int:
    return 5 if n == 5000 else 8


def rate_table(measured: dict[int, dict[str, list[float]]]) -> str:
    rows = []
    for method in RATE_METHODS:
        cells = [f"{np.mean(scores[method][: note_seeds(n)]):.4f}" for n, scores in measured.items()]
        rows.append([f"{method}, the study's seeds", *cells, ""])
        cells = [spread(scores[method], 4) for scores in measured.values()]
        rows.append([f"**{method}, all seeds**", *cells, f"{slope_of(measured, method):.3f}"])
        note = dict(zip(RATE_SIZES, NOTE_RATE[method], strict=True))
        slope = float(np.polyfit(np.log(RATE_SIZES), np.log([mean for mean, _ in NOTE_RATE[method]]), 1)[0])
        rows.append(["*study*", *(f"{note[n][0]:.4f} ± {note[n][1]:.4f}" for n in measured), f"{slope:.3f}"])
    return markdown_table(["RMSE of the weights", *(f"n={n}" for n in measured), "slope"], rows)


def coverage_table(measured: dict[int, dict[str, Coverage]]) -> str:
    rows = []
    for n, by_method in measured.items():
        for method, one in by_method.items():
            note = dict(zip(COVERAGE_SIZES, NOTE_COVERAGE[method], strict=True))[n]
            cells = [f"{one.few:.3f}", f"{one.share:.3f}", f"{note:.3f}"]
            rows.append([f"{method}, n={n}", *cells, f"{one.root_mean_square:.4f} / {one.standard_error:.4f}"])
    columns = [f"first {NOTE_SETS} sets", "all sets", "study", "RMSE / standard error"]
    return markdown_table(["coverage", *columns], rows)


def source_verdicts(measured: dict[int, dict[str, Scores]]) -> list[str]:
    lines = []
    for m in (9, 12, 18):
        gap = {decode: float(gaps(measured[m], "auto", decode).mean()) for decode in DECODERS}
        evidence = ", ".join(f"{decode} {signed(value, 4)}" for decode, value in gap.items())
        lines.append(
            verdict(f"Gap to the oracle at m={m} at most {GAP_LIMIT}", max(gap.values()) <= GAP_LIMIT, evidence)
        )
    error = {name: float(np.mean(measured[18][name].weight_error)) for name in ("auto", "em")}
    evidence = ", ".join(f"{name} {value:.4f}" for name, value in error.items())
    lines.append(
        verdict(
            f"Mean absolute error of the weights at m=18 at most {WEIGHT_LIMIT}",
            max(error.values()) <= WEIGHT_LIMIT,
            evidence,
        )
    )
    return lines


def rate_verdicts(measured: dict[int, dict[str, list[float]]]) -> list[str]:
    lines = []
    for method in ("em", "auto"):
        slope = slope_of(measured, method)
        lines.append(verdict(f"Slope of {method} between -0.6 and -0.4", -0.6 <= slope <= -0.4, f"{slope:.3f}"))
        note = dict(zip(RATE_SIZES, NOTE_RATE[method], strict=True))
        excess = {n: float(np.mean(scores[method])) / note[n][0] - 1.0 for n, scores in measured.items()}
        worst = max(excess, key=lambda n: excess[n])
        lines.append(
            verdict(
                f"Error of {method} at most {RATE_TOLERANCE:.0%} above the study's",
                excess[worst] <= RATE_TOLERANCE,
                ", ".join(f"n={n} {value:+.0%}" for n, value in excess.items()),
            )
        )
    return lines


def coverage_verdict(measured: dict[int, dict[str, Coverage]]) -> str:
    shares = [one.share for by_method in measured.values() for one in by_method.values()]
    few = [one.few for by_method in measured.values() for one in by_method.values()]
    holds = all(0.92 <= share <= 0.98 for share in (*shares, *few))
    evidence = f"{min(shares):.3f} to {max(shares):.3f}; in the first {NOTE_SETS} sets {min(few):.3f} to {max(few):.3f}"
    return verdict("95% intervals cover between 92% and 98%", holds, evidence)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the three tables and write them to ``rankings.md``."""
    settings = read_settings("experiments.rankings", __doc__, 10, 1, arguments)
    measured, rate, coverage = run_sources(settings), run_rate(settings), run_coverage(settings)
    verdicts = [] if settings.quick else [*source_verdicts(measured), *rate_verdicts(rate), coverage_verdict(coverage)]
    sets = QUICK_COVERAGE_SETS if settings.quick else COVERAGE_SETS
    blocks = [
        "Share of pairs of items in the wrong order, mean ± standard deviation over the seeds (weights, truth and "
        "votes are drawn anew; weights as in the study, votes by our own sampler). A third of the weights U(.2, 1), "
        "the others U(.001, .01): nobody can learn the weights at m=3, and at m=6 only the product of two. *auto* is "
        "`LabelModel(Rankings(5))`; *map* is weighted Kemeny, *bayes* (the default) Kemeny on posterior pair "
        "probabilities; *oracle* knows the weights. *isotropic* is biased whatever n, as two sources may err on the "
        "same pair; *triplets* ignores that neighboring items are swapped more often.",
        error_table(measured),
        "## Targets",
        "\n".join(verdicts) or QUICK,
        "## Gap to the oracle",
        "Same decoder, same votes; mean ± standard error.",
        gap_table(measured),
        "## Weights",
        "Mean absolute error, mean ± standard deviation. Findings: diagnostics above the level of information.",
        weight_table(measured),
        "## Error of the weights by number of items",
        f"m=9, weights U(.1, 1.2). The study has 8 seeds, and 5 at n=5000; its means are known to about 9%, so we add "
        f"seeds up to {RATE_SEEDS}. Mean ± standard deviation of the root mean square error of one data set.",
        rate_table(rate),
        "## Coverage of the 95% intervals",
        f"m=6, weights U(.2, 1.2), {sets} data sets of 6 intervals.",
        coverage_table(coverage),
    ]
    described = [
        f"n={300 if settings.quick else 5000}, 5 items",
        f"seeds 100 s + m for s in 0..{settings.seeds - 1}; by number of items: 31 s + n + 5; coverage: 5000 + s",
    ]
    write_results(settings.results / "rankings.md", "Rankings", settings.command, described, blocks)


if __name__ == "__main__":
    main()
