"""Claim: sources that copy each other are detected, named and counted once; independent sources are not accused.

Rankings, a finite space, and points known through a distance alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.progress import track

import consilience as cs

from .tables import QUICK, FloatArray, IntArray, fit_quietly, markdown_table, read_settings, verdict, write_results

SOURCES, NODES = 9, 30
RANKING_ERROR, FINITE_ACCURACY = 0.125, 0.63
CLEAN_PER_SEED = 20
QUICK_CLEAN = 3
COPIES, COPIED_NOISE, OTHER_NOISE, MARGIN = 4, 1.2, 0.7, 0.05


@dataclass(frozen=True)
class Panel:
    """Votes of sources of known weights on items of known truth."""

    space: cs.LabelSpace
    votes: cs.Votes
    truth: IntArray
    weight: FloatArray

    def loss(self, labels: IntArray) -> float:
        """Return the Kendall error of rankings, and the share of wrong labels otherwise."""
        if isinstance(self.space, cs.Rankings):
            return self.space.kendall_error(labels, self.truth)
        return float((labels != self.truth).mean())


@dataclass(frozen=True)
class Known:
    """Weights that are known."""

    weight: FloatArray

    def estimate(self, moments: object, space: object, dependencies: object) -> FloatArray:
        return self.weight


def copied(votes: cs.Votes, sources: int, share: float, rng: np.random.Generator) -> cs.Votes:
    """Return votes of which the first sources copy the very first one, on a share of the items each."""
    labels = votes.labels.copy()
    for source in range(1, sources):
        rows = rng.random(len(labels)) < share
        labels[rows, source] = labels[rows, 0]
    return cs.Votes.from_array(labels, observed=votes.observed)


def ranking_panel(seed: int, n: int, *, copies: int, share: float = 0.9, best: bool = False) -> Panel:
    """Return rankings of five items; the copied sources are nearly random, or the best."""
    rng = np.random.default_rng(300 + seed)
    weight = rng.uniform(0.3, 1.0, SOURCES)
    if best:
        weight = np.sort(weight)[::-1].copy()
    else:
        weight[:copies] = rng.uniform(0.05, 0.15, copies)
    space = cs.Rankings(5)
    truth = space.random(n, rng)
    return Panel(space, copied(cs.simulate(space, truth, weight, rng), copies, share, rng), truth, weight)


def random_graph(rng: np.random.Generator, nodes: int) -> FloatArray:
    """Return the hop distances of a connected random graph."""
    while True:
        edge = np.triu(rng.random((nodes, nodes)) < 0.12, 1)
        hops = np.where(edge | edge.T, 1.0, np.inf)
        np.fill_diagonal(hops, 0.0)
        for middle in range(nodes):
            hops = np.minimum(hops, hops[:, [middle]] + hops[[middle]])
        if np.isfinite(hops).all():
            return hops


def finite_panel(seed: int, n: int) -> Panel:
    """Return votes for the nodes of a graph, three of them copies of a nearly random source."""
    rng = np.random.default_rng(seed)
    space = cs.FiniteMetric(random_graph(rng, NODES))
    weight = rng.uniform(0.6, 1.6, SOURCES)
    weight[:3] = rng.uniform(0.05, 0.2, 3)
    truth = space.random(n, rng)
    return Panel(space, copied(cs.simulate(space, truth, weight, rng), 3, 0.9, rng), truth, weight)


PANELS: dict[str, Callable[[int, int], Panel]] = {
    "rankings, 3 of 9 copy a bad source": lambda seed, n: ranking_panel(seed, n, copies=3),
    "rankings, 3 of 9 copy it half the time": lambda seed, n: ranking_panel(seed, n, copies=3, share=0.5),
    "rankings, 4 of 9 copy a bad source": lambda seed, n: ranking_panel(seed, n, copies=4),
    "rankings, 3 of 9 copy the best source": lambda seed, n: ranking_panel(seed, n, copies=3, best=True),
    "finite space, 3 of 9 copy a bad source": finite_panel,
}


def run_cliques(seeds: int, n: int) -> dict[str, dict[str, list[float]]]:
    measured: dict[str, dict[str, list[float]]] = {}
    for name, draw in PANELS.items():
        scores = measured[name] = defaultdict(list)
        for seed in track(range(seeds), description=name):
            panel = draw(seed, n)
            copies = 4 if "4 of 9" in name else 3
            models = {
                "majority": cs.LabelModel(panel.space, method="majority"),
                "independent": cs.LabelModel(panel.space, dependencies="none", method="em"),
                "auto": cs.LabelModel(panel.space),
                "true weights": cs.LabelModel(panel.space, method=Known(panel.weight)),
            }
            for label, model in models.items():
                if isinstance(panel.space, cs.FiniteMetric):  # the share of wrong labels is what counts
                    model.set_params(decode="map")
                fit_quietly(model, panel.votes)
                scores[label].append(panel.loss(model.predict(panel.votes)))
            found = {frozenset(pair) for pair in models["auto"].source_model_.dependencies}
            names = panel.votes.sources[:copies]
            right = {frozenset((one, two)) for one in names for two in names if one < two}
            scores["found"].append(len(found & right) / len(right))
            scores["wrong"].append(len(found - right))
    return measured


def run_clean(fits: int, n: int) -> dict[str, list[int]]:
    """Count the fits in which independent sources were called dependent."""
    flags: dict[str, list[int]] = defaultdict(list)
    for seed in track(range(fits), description="independent"):
        rng = np.random.default_rng(7000 + seed)
        m = int(rng.integers(5, 11))
        spaces = {
            "rankings": (cs.Rankings(5), 0.1, 1.2),
            "finite space": (cs.FiniteMetric(random_graph(rng, 15)), 0.3, 1.5),
        }
        for name, (space, low, high) in spaces.items():
            votes = cs.simulate(space, space.random(n, rng), rng.uniform(low, high, m), rng)
            model = fit_quietly(cs.LabelModel(space), votes)
            flags[name].append(int(bool(model.source_model_.dependencies) or "competing-groups" in codes(model)))
    return flags


def codes(model: cs.LabelModel) -> set[str]:
    return {finding.code for finding in model.diagnostics_}


def straight(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return Euclidean distances."""
    distance: FloatArray = np.sqrt(((left - right) ** 2).sum(axis=-1))
    return distance


def run_points(seeds: int, n: int) -> dict[str, dict[str, list[float]]]:
    """Measure a panel of nine on points known through their distance: four copies of a bad source, or four bad ones."""
    measured: dict[str, dict[str, list[float]]] = {}
    for name, jitter in (("no copies", None), ("exact copies", 0.0), ("near copies", 0.1)):
        scores = measured[name] = defaultdict(list)
        for seed in track(range(seeds), description=name):
            rng = np.random.default_rng(seed)
            truth = 2.0 * rng.normal(size=(n, 4))
            bad = truth + COPIED_NOISE * rng.normal(size=(n, 4))
            first = [
                truth + COPIED_NOISE * rng.normal(size=(n, 4))
                if jitter is None
                else bad + jitter * rng.normal(size=(n, 4))
                for _ in range(COPIES)
            ]
            others = [truth + OTHER_NOISE * rng.normal(size=(n, 4)) for _ in range(SOURCES - COPIES)]
            table = np.stack([*first, *others], axis=1)
            votes = cs.Votes.from_array(table)
            for method in ("majority", "auto"):
                model = cs.LabelModel(cs.Metric(straight, vectorized=True), method=method)
                labels = np.asarray(fit_quietly(model, votes).predict(votes))
                taken = (np.abs(table - labels[:, None]).sum(axis=2) < 1e-12)[:, :COPIES].any(axis=1)
                scores[f"{method}, picked"].append(float(taken.mean()))
                scores[f"{method}, error"].append(float(straight(labels, truth).mean()))
            cost = model.expected_cost_
            scores["cost ratio"].append(float(cost[:COPIES].min() / cost[COPIES:].max()))
    return measured


def clique_table(measured: dict[str, dict[str, list[float]]]) -> str:
    columns = ("majority", "independent", "auto", "true weights", "found", "wrong")
    rows = [[name, *(f"{np.mean(scores[column]):.4f}" for column in columns)] for name, scores in measured.items()]
    heads = [*columns[:4], "copied pairs found", "other pairs flagged"]
    return markdown_table(["error", *heads], rows)


def points_table(measured: dict[str, dict[str, list[float]]]) -> str:
    columns = ("majority, picked", "auto, picked", "majority, error", "auto, error", "cost ratio")
    rows = [[name, *(f"{np.mean(scores[column]):.3f}" for column in columns)] for name, scores in measured.items()]
    heads = ["majority: bad four picked", "auto: bad four picked", "majority: distance", "auto: distance", "cost ratio"]
    return markdown_table(["panel", *heads], rows)


def verdicts(
    cliques: dict[str, dict[str, list[float]]], clean: dict[str, list[int]], points: dict[str, dict[str, list[float]]]
) -> str:
    ranking = float(np.mean(cliques["rankings, 3 of 9 copy a bad source"]["auto"]))
    finite = 1.0 - float(np.mean(cliques["finite space, 3 of 9 copy a bad source"]["auto"]))
    lines = [
        verdict(f"rankings, 3 of 9 copy: error at most {RANKING_ERROR}", ranking <= RANKING_ERROR, f"{ranking:.4f}"),
        verdict(f"finite space: accuracy at least {FINITE_ACCURACY}", finite >= FINITE_ACCURACY, f"{finite:.4f}"),
    ]
    for name, flags in clean.items():
        claim = f"no flag in {len(flags)} fits of independent sources, {name}"
        lines.append(verdict(claim, not any(flags), f"{sum(flags)} flagged"))
    usual = float(np.mean(points["no copies"]["auto, picked"]))
    for name in ("exact copies", "near copies"):
        picked, ratio = float(np.mean(points[name]["auto, picked"])), min(points[name]["cost ratio"])
        claim = f"points, {name}: picked at most {MARGIN} more often than without copying"
        lines.append(verdict(claim, picked <= usual + MARGIN, f"{picked:.3f} against {usual:.3f}"))
        claim = f"points, {name}: no copy looks better than the others"
        lines.append(verdict(claim, ratio >= 1.0, f"smallest ratio of costs {ratio:.2f}"))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all panels and write them to ``dependent_rankings.md``."""
    settings = read_settings("experiments.dependent_rankings", __doc__, 10, 1, arguments)
    n = 300 if settings.quick else 1000
    cliques = run_cliques(settings.seeds, n)
    clean = run_clean(QUICK_CLEAN if settings.quick else CLEAN_PER_SEED * settings.seeds, n)
    points = run_points(settings.seeds, 100 if settings.quick else 300)
    blocks = [
        "*auto* is `LabelModel(space)`; *independent* is the likelihood under `dependencies='none'`; *true weights* "
        "knows the weights, and counts copies as if they were independent. Mean over the seeds of the share of "
        "pairs in the wrong order (rankings) or of wrong labels (finite space); of the copied pairs, how many were "
        "found; and how many other pairs were flagged.",
        "## Targets",
        QUICK if settings.quick else verdicts(cliques, clean, points),
        "## Copies among nine sources",
        clique_table(cliques),
        "## Points known through their distance",
        "Four bad sources (noise 1.2) and five better ones (0.7) on points in four dimensions; the bad four are "
        "independent, exact copies, or copies with noise 0.1. How often one of the four is picked as the label, how "
        "far the label is from the truth, and the estimated cost of the best of the four beside that of the worst "
        "other.",
        points_table(points),
    ]
    notes = [f"n={n}, {SOURCES} sources", "independent sources: 5 to 10, rankings and a graph of 15 nodes"]
    write_results(settings.results / "dependent_rankings.md", "Copied sources", settings.command, notes, blocks)


if __name__ == "__main__":
    main()
