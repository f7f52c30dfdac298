"""Claim: quadratic triplets recover the weights of ranking sources, and the number of sources needed grows with log(r).

Corollary 1 of the paper and its lemma on g_k; and its remark that Theta(log(r / eps)) sources are enough to find a
ranking of r items with probability 1 - eps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.progress import track

import consilience as cs

from .plots import fitted_slope
from .tables import QUICK, FloatArray, fit_quietly, markdown_table, read_settings, verdict, write_results

RANKED, PRIOR = 5, 0.4
SIZES = (1_000, 4_000, 16_000, 64_000)
STRENGTHS = {"weights .5, .8, 1.1": (0.5, 0.8, 1.1), "weights above 4 ln 2": (2.8, 2.9, 3.0)}
ITEMS = (4, 6, 9, 13, 20)
MOST, STEP, DRAWS = 40, 2, 400
SHARES = (0.3, 0.1, 0.03)


def slope_of_cost(theta: FloatArray, k: int) -> FloatArray:
    """Return g_k of the paper: how fast the mean distance of k items falls with theta, minus its variance."""
    j = np.arange(1, k + 1)[:, None]
    each = j**2 * np.exp(-theta * j) / (1.0 - np.exp(-theta * j)) ** 2
    return each.sum(axis=0) - k * np.exp(-theta) / (1.0 - np.exp(-theta)) ** 2


def weight_errors(weights: Sequence[float], n: int, rng: np.random.Generator) -> FloatArray:
    """Return errors of theta: the truth is a ranking or its reverse, every pair of items a quadratic triplet."""
    space = cs.Rankings(RANKED)
    forward = rng.random(n) < PRIOR
    order = np.arange(RANKED)
    truth = np.where(forward[:, None], order, order[::-1])
    placed = cs.simulate(space, truth, weights, rng).labels
    cost = np.zeros(len(weights))
    for left in range(RANKED):
        for right in range(left + 1, RANKED):
            signs = (placed[:, :, left] < placed[:, :, right]).astype(np.int64)
            model = cs.LabelModel(cs.Classes(2), method="quadratic", prior=[1.0 - PRIOR, PRIOR])
            cost += np.asarray(fit_quietly(model, signs).expected_cost_)
    return np.asarray(space.law.weight_from_cost(cost)) - np.array(weights)


def failures(r: int, rng: np.random.Generator) -> tuple[list[int], list[float]]:
    """Return numbers of sources, and how often the weighted Kemeny ranking of so many is not the true one."""
    space = cs.Rankings(r)
    truth = space.random(DRAWS, rng)
    weights = rng.permutation(np.linspace(0.5, 1.5, MOST))
    votes = cs.simulate(space, truth, weights, rng)
    counts, missed = [], []
    for m in range(3, MOST, STEP):
        few = votes.select(votes.sources[:m])
        labels = fit_quietly(cs.LabelModel(space, random_state=0), few).predict(few)
        counts.append(m)
        missed.append(float(np.mean((labels != truth).any(axis=1))))
        if missed[-1] < SHARES[-1] / 3:
            break
    return counts, missed


def needed(counts: Sequence[int], missed: Sequence[float], eps: float) -> float:
    """Return the number of sources at which failures fall below eps, between two counts by the logarithm."""
    for index in range(1, len(counts)):
        if missed[index] < eps:
            high, low = (np.log(max(missed[at], 0.2 / DRAWS)) for at in (index - 1, index))
            return counts[index - 1] + STEP * float((high - np.log(eps)) / max(high - low, 1e-9))
    return float("nan")


def main(arguments: Sequence[str] | None = None) -> None:
    """Check lemma, corollary and the number of sources, and write ``theory_rankings.md``."""
    settings = read_settings("experiments.theory_rankings", __doc__, 20, 1, arguments)
    sizes, items = (SIZES[:2], ITEMS[:1]) if settings.quick else (SIZES, ITEMS)
    theta = np.linspace(0.05, 10.0, 400)
    curves = np.array([slope_of_cost(theta, k) for k in range(2, 31)])
    lemma = bool((curves <= 1e-12).all() and (np.diff(curves, axis=1) >= -1e-9).all())
    in_items = bool((np.diff(curves, axis=0) <= 1e-12).all())
    found = {
        name: [
            float(
                np.sqrt(
                    np.mean([weight_errors(w, n, np.random.default_rng([n, s])) ** 2 for s in range(settings.seeds)])
                )
            )
            for n in track(sizes, description=name)
        ]
        for name, w in STRENGTHS.items()
    }
    slopes = {name: fitted_slope(sizes, errors) for name, errors in found.items()}
    measured = {r: failures(r, np.random.default_rng([3, r])) for r in track(items, description="sources")}
    table = {r: [needed(*measured[r], eps) for eps in SHARES] for r in items}
    points = np.array([(np.log(r / eps), table[r][at]) for r in items for at, eps in enumerate(SHARES)])
    points = points[np.isfinite(points[:, 1])]
    fit = np.polyfit(*points.T, 1)
    explained = 1.0 - float(np.var(points[:, 1] - np.polyval(fit, points[:, 0])) / np.var(points[:, 1]))
    verdicts = [
        verdict("Lemma: g_k is not positive, increases with theta and decreases with k", lemma and in_items,
                "theta from .05 to 10, k from 2 to 30, so below 4 ln 2 as well"),
        *(verdict(f"Corollary 1, {name}: error falls at least as n^-1/4", slope <= -0.25, f"n^{slope:.2f}")
          for name, slope in slopes.items()),
        verdict("Number of sources: linear in log(r / eps)", explained >= 0.9,
                f"{explained:.0%} of the variance explained"),
    ]  # fmt: skip
    blocks = [
        "## Corollary 1",
        f"Rankings of {RANKED} items whose truth is one order (probability {PRIOR}, known) or its reverse, three "
        "sources. Every pair of items is a vote of 0 or 1 for quadratic triplets; the sum of their error rates is the "
        "mean distance, which the backward map turns into theta. Root mean squared error of theta.",
        markdown_table(
            ["", *(f"n={n:,}" for n in sizes), "slope"],
            [[name, *(f"{e:.4f}" for e in errors), f"{slopes[name]:.3f}"] for name, errors in found.items()],
        ),
        "## Number of sources",
        f"Sources of weights spread over .5 to 1.5, unknown to the model, {DRAWS} rankings: how many are needed until "
        "the ranking is exactly right but for a share eps.",
        markdown_table(
            ["items", *(f"eps {eps:g}" for eps in SHARES)],
            [[f"{r}", *(f"{value:.1f}" if np.isfinite(value) else "" for value in table[r])] for r in items],
        ),
        f"Fitted: {fit[0]:.1f} log(r / eps) {fit[1]:+.1f}.",
        "## Targets",
        QUICK if settings.quick else "\n".join(verdicts),
    ]
    described = [f"seeds [n, s] for s in 0..{settings.seeds - 1}"]
    write_results(
        settings.results / "theory_rankings.md",
        "Weights and numbers of ranking sources",
        settings.command,
        described,
        blocks,
    )


if __name__ == "__main__":
    main()
