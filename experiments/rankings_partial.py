"""Claim: sources that see or name only some of the items are used fully, and "not seen" is not "ranked below".

Settings and seeds are those of an earlier study. Its numbers are shown next to ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from rich.progress import track

import consilience as cs

from .finite_spaces import KnownWeights
from .rankings import Scores, random_rankings, spread
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

#: The shares of the paper; the study left out .7.
SHARES, STUDY_SHARES = (0.9, 0.7, 0.5, 0.2), (0.9, 0.5, 0.2)
METHODS = ("majority", "isotropic", "triplets", "auto", "oracle")
#: Kendall error in the study by share of items seen: map and bayes.
STUDY_ERROR = {
    "majority": ((0.0051, 0.0881, 0.330), None),
    "isotropic": ((0.0000, 0.0214, 0.289), None),
    "triplets": ((0.0000, 0.0210, 0.293), None),
    "auto": ((0.0000, 0.0207, 0.288), (0.0000, 0.0185, 0.219)),
    "oracle": ((0.0000, 0.0208, 0.285), (0.0000, 0.0183, 0.216)),
}
#: Mean absolute error of the weights in the study.
STUDY_WEIGHT = {
    "isotropic": (0.75, 1.11, 1.31),
    "triplets": (0.064, 0.162, 1.76),
    "auto": (0.061, 0.110, 0.32),
}
TOLERANCE = {0.9: 0.005, 0.7: 0.005, 0.5: 0.005, 0.2: 0.01}
TOP, TOP_ITEMS, TOP_SOURCES = 3, 7, 6
#: Top 3 of 7 in the study: mean absolute error of the weights and Kendall error ("bayes").
STUDY_TOP = {"tied last": (0.020, 0.114), "passed as not seen": (0.090, 0.403), "oracle": (0.0, 0.114)}
TOP_TOLERANCE = 0.005


def ten_weak_eight_strong(rng: np.random.Generator) -> FloatArray:
    weight = np.concatenate([rng.uniform(0.1, 0.2, 10), rng.uniform(2.0, 5.0, 8)])
    rng.shuffle(weight)
    return weight


def seeing_some(
    space: cs.Rankings, truth: IntArray, weight: FloatArray, share: float, rng: np.random.Generator
) -> cs.Votes:
    """Draw votes of sources that are shown each item with this probability, and rank what they are shown."""
    columns = []
    for value in weight:
        shown = np.where(rng.random(truth.shape) < share, truth, -1).astype(np.int16)
        columns.append(space.sample_around(shown, float(value), rng))
    return as_votes(np.stack(columns, axis=1).astype(np.int64))


def as_votes(positions: IntArray) -> cs.Votes:
    """Return votes; whoever sees no item of a row abstains."""
    return cs.Votes.from_array(positions, observed=(positions >= 0).any(axis=-1))


def run_partial(settings: Settings) -> dict[float, dict[str, Scores]]:
    """Measure every method for every share of items that a source sees."""
    shares, n = (SHARES[2:3], 60) if settings.quick else (SHARES, 250)
    items, space = 10, cs.Rankings(10)
    measured: dict[float, dict[str, Scores]] = defaultdict(lambda: defaultdict(Scores))
    runs = [(share, seed) for share in shares for seed in range(settings.seeds)]
    for share, seed in track(runs, description="partial"):
        rng = np.random.default_rng(77 * seed + int(100 * share))
        weight = ten_weak_eight_strong(rng)
        truth = random_rankings(rng, n, items)
        votes = seeing_some(space, truth, weight, share, rng)
        for name in METHODS:
            method = KnownWeights(weight) if name == "oracle" else name
            model = fit_quietly(cs.LabelModel(space, method=method, random_state=0), votes)
            measured[share][name].add(model, votes, truth, weight)
    return measured


def run_top(settings: Settings) -> dict[str, Scores]:
    """Measure what it costs to mistake "ranked below" for "not seen"."""
    n, space = 100 if settings.quick else 500, cs.Rankings(TOP_ITEMS)
    measured: dict[str, Scores] = defaultdict(Scores)
    for seed in track(range(settings.seeds), description="top-k  "):
        rng = np.random.default_rng(seed)
        weight = rng.uniform(0.2, 1.2, TOP_SOURCES)
        truth = random_rankings(rng, n, TOP_ITEMS)
        full = cs.simulate(space, truth, weight, rng).labels
        named = full < TOP
        tied, unseen = (as_votes(np.where(named, full, rest)) for rest in (TOP, -1))
        models = {
            "tied last": (cs.LabelModel(space, random_state=0), tied),
            "tied last, majority": (cs.LabelModel(space, method="majority"), tied),
            "passed as not seen": (cs.LabelModel(space, random_state=0), unseen),
            "oracle": (cs.LabelModel(space, method=KnownWeights(weight)), tied),
        }
        for name, (model, votes) in models.items():
            measured[name].add(fit_quietly(model, votes), votes, truth, weight)
    return measured


def study_cells(values: Sequence[float], shares: Iterable[float], digits: int) -> list[str]:
    known = dict(zip(STUDY_SHARES, values, strict=True))
    return [f"{known[share]:.{digits}f}" if share in known else "" for share in shares]


def error_table(measured: dict[float, dict[str, Scores]]) -> str:
    rows = []
    for name in METHODS:
        for decode, study in zip(("map", "bayes"), STUDY_ERROR[name], strict=True):
            rows.append([f"{name}, {decode}", *(spread(scores[name].error[decode], 4) for scores in measured.values())])
            if study is not None:
                rows.append(["*study*", *study_cells(study, measured, 4)])
    return markdown_table(["method, decoder", *(f"p={share}" for share in measured)], rows)


def weight_table(measured: dict[float, dict[str, Scores]]) -> str:
    rows = []
    for name, study in STUDY_WEIGHT.items():
        rows.append([name, *(spread(scores[name].weight_error) for scores in measured.values())])
        rows.append(["*study*", *study_cells(study, measured, 3)])
    return markdown_table(["MAE of the weights", *(f"p={share}" for share in measured)], rows)


def top_table(measured: dict[str, Scores]) -> str:
    rows = []
    for name, scores in measured.items():
        study = STUDY_TOP.get(name)
        rows.append(
            [
                name,
                spread(scores.error["bayes"], 4),
                "" if study is None else f"{study[1]:.3f}",
                spread(scores.weight_error),
                "" if study is None else f"{study[0]:.3f}",
            ]
        )
    return markdown_table(["items not named", "Kendall error", "study", "MAE of the weights", "study"], rows)


def verdicts(measured: dict[float, dict[str, Scores]], top: dict[str, Scores]) -> str:
    lines = []
    study = dict(zip(STUDY_SHARES, STUDY_ERROR["auto"][1] or (), strict=True))
    for share, scores in measured.items():
        error = float(np.mean(scores["auto"].error["bayes"]))
        gap = error - float(np.mean(scores["oracle"].error["bayes"]))
        if share not in study:
            claim = f"p={share}: at most {TOLERANCE[share]} above the oracle on the same votes"
            lines.append(verdict(claim, gap <= TOLERANCE[share], f"{error:.4f}, {signed(gap, 4)}"))
            continue
        evidence = f"{error:.4f}, study {study[share]:.4f}; {signed(gap, 4)} to the oracle on the same votes"
        claim = f"p={share}: at most {TOLERANCE[share]} above the study"
        lines.append(verdict(claim, error <= study[share] + TOLERANCE[share], evidence))
    error = float(np.mean(top["tied last"].error["bayes"]))
    confused = float(np.mean(top["passed as not seen"].error["bayes"]))
    target = STUDY_TOP["tied last"][1]
    claim = f"Top {TOP} of {TOP_ITEMS}: at most {TOP_TOLERANCE} above {target}"
    lines.append(verdict(claim, error <= target + TOP_TOLERANCE, f"{error:.4f}; {confused:.4f} if passed as not seen"))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run both tables and write them to ``rankings_partial.md``."""
    settings = read_settings("experiments.rankings_partial", __doc__, 25, 1, arguments)
    measured, top = run_partial(settings), run_top(settings)
    blocks = [
        "Share of pairs of items in the wrong order, mean ± standard deviation over the seeds; a pair that the result "
        "leaves open, as no source saw one of its items, is half wrong. Each source is shown each of 10 items with "
        "probability p and ranks what it is shown (the text of the paper; its code masks what was ranked, see "
        "`rankings_paper.md`); ten weights U(.1, .2), eight U(2, 5). *auto* is "
        "`LabelModel(Rankings(10))`; *bayes* is its decoder; *oracle* knows the weights.",
        error_table(measured),
        "## Targets",
        QUICK if settings.quick else verdicts(measured, top),
        "## Weights",
        weight_table(measured),
        f"## Top {TOP} of {TOP_ITEMS}",
        f"Sources name their first {TOP} of {TOP_ITEMS} items; weights U(.2, 1.2), m={TOP_SOURCES}. *tied last*: the "
        "other items are tied behind them, as `Rankings.positions_from_top_k` has it. *passed as not seen*: they are "
        "-1, which says something else: that the source was not shown them. Whether it is shown an item would then "
        "depend on how good the item is, which no model of this library expects.",
        top_table(top),
    ]
    described = [
        "n=60, m=18" if settings.quick else "n=250, m=18, 10 items; top-k: n=500",
        f"seeds 77 s + 100 p for s in 0..{settings.seeds - 1}; top-k: s",
    ]
    path = settings.results / "rankings_partial.md"
    write_results(path, "Partial rankings and top-k lists", settings.command, described, blocks)


if __name__ == "__main__":
    main()
