"""Claim: stated confidence is calibrated in each tenth of its range, and is not too high if sources copy each other.

Classes, finite spaces and tags: how often the label is right. Rankings: how often a pair of items is in the stated
order. Scores: how often central intervals contain the truth. For sources: how often an interval of 1.96 standard errors
contains the true cost, including copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from rich.progress import track

import consilience as cs

from .tables import QUICK, FloatArray, fit_quietly, markdown_table, read_settings, verdict, write_results

ITEMS, FEW = 2000, 300
LIMIT, ENOUGH = 0.05, 500
#: Least share of nominal 95% intervals of source qualities that should hold the truth.
COVERED = 0.9
LEVELS = np.linspace(0.1, 0.9, 9)
STEPS = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
Pairs = tuple[FloatArray, FloatArray]


def by_probability(model: cs.LabelModel, votes: cs.Votes, truth: FloatArray) -> Pairs:
    probabilities = model.predict_proba(votes)
    label = probabilities.argmax(axis=1)
    return probabilities.max(axis=1), (label == np.asarray(truth)).astype(float)


def by_pair_of_items(model: cs.LabelModel, votes: cs.Votes, truth: FloatArray) -> Pairs:
    before = model.posterior(votes).details["pair_probability"]
    left, right = np.triu_indices(truth.shape[1], 1)
    stated = before  # one column per pair, in this order
    holds = truth[:, left] < truth[:, right]
    return np.maximum(stated, 1 - stated).ravel(), np.where(stated >= 0.5, holds, ~holds).astype(float).ravel()


def by_interval(model: cs.LabelModel, votes: cs.Votes, truth: FloatArray) -> Pairs:
    known = model.predict_distribution(votes)
    stated, held = [], []
    for level in LEVELS:
        lower, upper = known.interval(float(level))
        stated.append(np.full(len(truth), level))
        held.append(((truth >= lower) & (truth <= upper)).astype(float))
    return np.concatenate(stated), np.concatenate(held)


CASES: dict[str, tuple[cs.LabelSpace, Callable[[cs.LabelModel, cs.Votes, FloatArray], Pairs]]] = {
    "2 classes": (cs.Classes(2), by_probability),
    "4 classes": (cs.Classes(4), by_probability),
    "steps": (cs.FiniteMetric(STEPS), by_probability),
    "rankings": (cs.Rankings(5), by_pair_of_items),
    "scores": (cs.Scores(), by_interval),
}


def measure(name: str, copies: int, seed: int, n: int) -> tuple[Pairs, FloatArray]:
    """Return stated and observed shares of one simulation, and which intervals hold the true cost of their source."""
    space, compare = CASES[name]
    rng = np.random.default_rng([seed, copies])
    chance = float(space.law.expected_cost(np.zeros(1))[0])
    cost = chance * rng.uniform(0.4, 0.9, 7)
    weight = space.law.weight_from_cost(cost)
    truth = space.as_labels(space.random(n, rng))
    labels = cs.simulate(space, truth, weight, rng).labels.copy()
    for copy in range(1, copies + 1):
        same = rng.random(n) < 0.9
        labels[same, copy] = labels[same, 0]
        cost[copy] = 0.9 * cost[0] + 0.1 * cost[copy]
    votes = cs.Votes.from_array(labels, sources=[f"s{one}" for one in range(7)])
    model = fit_quietly(cs.LabelModel(space, random_state=0), votes)
    error = model.cost_standard_error_
    return compare(model, votes, truth), (np.abs(model.expected_cost_ - cost) <= 1.96 * error).astype(float)


def reliability(stated: FloatArray, observed: FloatArray) -> list[tuple[float, float, int] | None]:
    """Return stated and observed means in each tenth of confidence; None where there are too few."""
    tenth = np.minimum((stated * 10 + 1e-9).astype(int), 9)
    found: list[tuple[float, float, int] | None] = []
    for one in range(10):
        rows = tenth == one
        found.append((stated[rows].mean(), observed[rows].mean(), int(rows.sum())) if rows.sum() >= ENOUGH else None)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all cases and write ``calibration.md``."""
    settings = read_settings("experiments.calibration", __doc__, 12, 1, arguments)
    blocks, lines, shares = [], [], []
    covered: dict[str, list[str]] = {name: [name] for name in CASES}
    settings_of = (
        (0, ITEMS, "independent sources"),
        (2, ITEMS, "a source and two copies of it among seven"),
        (2, FEW, f"the same copies, {FEW} items only"),  # where copies are hardest to notice
    )
    for copies, n, title in settings_of:
        rows = []
        for name in track(CASES, description=title[:12]):
            parts, held = zip(*(measure(name, copies, seed, n) for seed in range(settings.seeds)), strict=True)
            share = float(np.mean(held))
            covered[name].append(f"{share:.3f}")
            shares.append(
                verdict(
                    f"{title}: {name}, intervals of qualities cover {COVERED:.0%}", share >= COVERED, f"{share:.3f}"
                )
            )
            bins = reliability(*(np.concatenate(values) for values in zip(*parts, strict=True)))
            rows.append([name, *("-" if one is None else f"{one[0]:.2f} / {one[1]:.2f}" for one in bins)])
            gaps = [one[0] - one[1] for one in bins if one is not None] or [0.0]
            if copies:
                largest = max(gaps)
                claim = f"{title}: {name} over-confident by at most {LIMIT}"
                lines.append(verdict(claim, largest <= LIMIT, f"{largest:+.3f}"))
            else:
                largest = max(abs(gap) for gap in gaps)
                lines.append(verdict(f"{title}: {name} off by at most {LIMIT}", largest <= LIMIT, f"{largest:.3f}"))
        columns = ["stated / observed", *(f"{one / 10:.1f}-{(one + 1) / 10:.1f}" for one in range(10))]
        blocks += [f"## {title.capitalize()}", markdown_table(columns, rows)]
    blocks += [
        "## Intervals of source qualities",
        "Share of the sources whose true expected cost lies within 1.96 standard errors of the estimated one "
        f"(nominal 95%; {7 * settings.seeds} intervals in each cell).",
        markdown_table(
            ["share of intervals that hold the truth", *(one[2] for one in settings_of)], list(covered.values())
        ),
    ]
    intro = (
        "Confidence and how often it was right, by tenths of confidence with at least "
        f"{ENOUGH} cases. Classes and steps: the label. Rankings: the order of a pair of items. Scores: central "
        "intervals of 10 to 90%."
    )
    write_results(
        settings.results / "calibration.md",
        "Calibration",
        settings.command,
        [f"{ITEMS} items, 7 sources at 40-90% of the cost of chance", f"seeds 0..{settings.seeds - 1}"],
        [intro, *blocks, "## Targets", QUICK if settings.quick else "\n".join([*lines, *shares])],
    )


if __name__ == "__main__":
    main()
