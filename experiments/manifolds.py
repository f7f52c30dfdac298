"""Claim: on curved spaces, where squared distances do not add up, labels are as good as with the true scales.

Six sources, half of them good, half bad, with normal noise in the tangent space at the truth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.progress import track

import consilience as cs

from .tables import QUICK, FloatArray, fit_quietly, markdown_table, read_settings, verdict, write_results

N_SOURCES = 6
ROWS = {
    "unweighted mean": ("majority", "riemannian"),
    "flat triplets, Frechet mean (the paper)": ("isotropic", "riemannian"),
    "true scales, Frechet mean": ("true", "riemannian"),
    "default, Frechet mean": ("auto", "riemannian"),
    "default, wrapped likelihood (ours)": ("auto", "wrapped"),
}
OURS = "default, wrapped likelihood (ours)"
OURS_SPD = "default (ours)"
TARGETS = {"hyperbolic": 1.02, "sphere": 1.03, "spd": 1.02}


@dataclass(frozen=True)
class Column:
    """A space, and how scales of sources are drawn."""

    name: str
    kind: str
    space: cs.LabelSpace
    draw: Callable[[np.random.Generator], FloatArray]
    n_items: int


def two_kinds(good: tuple[float, float], bad: tuple[float, float]) -> Callable[[np.random.Generator], FloatArray]:
    """Return sources of which each is good or bad with probability one half."""

    def draw(rng: np.random.Generator) -> FloatArray:
        chosen = rng.random(N_SOURCES) < 0.5
        return np.where(chosen, rng.uniform(*good, N_SOURCES), rng.uniform(*bad, N_SOURCES))

    return draw


def paper_scales(rng: np.random.Generator) -> FloatArray:
    """Return the paper's draw: U(1.5, 4.5), and 15 more for half of the sources."""
    return rng.uniform(1.5, 4.5, N_SOURCES) + 15.0 * (rng.random(N_SOURCES) < 0.5)


def alternating(good: tuple[float, float], bad: tuple[float, float]) -> Callable[[np.random.Generator], FloatArray]:
    """Return a good source, a bad one, and so on."""

    def draw(rng: np.random.Generator) -> FloatArray:
        return np.where(np.arange(N_SOURCES) % 2, rng.uniform(*bad, N_SOURCES), rng.uniform(*good, N_SOURCES))

    return draw


def columns(quick: bool) -> list[Column]:
    """Return the settings of the tables."""
    large = cs.Hyperbolic(80, curvature=-1 / 50)
    five = cs.Hyperbolic(5)
    found = [
        Column("K=-1, d=5, mild (.1-.8)", "hyperbolic", five, two_kinds((0.1, 0.2), (0.4, 0.8)), 200),
        Column("K=-1, d=5, strong (.5-2.5)", "hyperbolic", five, two_kinds((0.5, 1.0), (1.5, 2.5)), 200),
        Column("K=-1/50, d=80, sd (paper's code)", "hyperbolic", large, paper_scales, 100),
        Column(
            "K=-1/50, d=80, variance (paper's text)", "hyperbolic", large, lambda rng: np.sqrt(paper_scales(rng)), 100
        ),
        Column(
            "K=-50, d=2, variance",
            "hyperbolic",
            cs.Hyperbolic(2, curvature=-50.0),
            lambda rng: np.sqrt(paper_scales(rng)),
            200,
        ),
        Column("S^2 (.05-.8)", "sphere", cs.Sphere(2), two_kinds((0.05, 0.15), (0.4, 0.8)), 200),
        Column("SPD(3), mild", "spd", cs.SPD(3), alternating((0.05, 0.15), (0.3, 0.5)), 200),
        Column("SPD(3), strong", "spd", cs.SPD(3), alternating((0.2, 0.4), (1.0, 1.5)), 200),
    ]
    return [found[0], found[5], found[7]] if quick else found


def simulate_votes(column: Column, scale: FloatArray, rng: np.random.Generator) -> tuple[cs.Votes, FloatArray]:
    """Return votes around true points of the space, and these."""
    space = column.space
    if isinstance(space, cs.SPD):
        roots = rng.normal(size=(column.n_items, space.n, space.n))
        truth = roots @ np.swapaxes(roots, 1, 2) / space.n + 0.2 * np.eye(space.n)
    else:
        truth = space.random(column.n_items, rng)
    votes = [_noisy(space, truth, one, rng) for one in scale]
    return cs.Votes.from_array(np.stack(votes, axis=1)), truth


def _noisy(space: cs.LabelSpace, truth: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    """Return the truth moved by a normal tangent vector."""
    if isinstance(space, cs.SPD):
        noise = rng.normal(size=truth.shape)
        upper = np.triu(noise, 1) / np.sqrt(2.0)
        tangent = scale * (upper + np.swapaxes(upper, 1, 2) + np.eye(space.n) * noise)
        root, moved = _power(truth, np.sqrt), _power(tangent, np.exp)
        result: FloatArray = root @ moved @ root
        return (result + np.swapaxes(result, 1, 2)) / 2.0
    flat = scale * rng.normal(size=(len(truth), truth.shape[1] - 1))
    length = np.linalg.norm(flat, axis=1, keepdims=True)
    if isinstance(space, cs.Hyperbolic):
        unit = space.radius
        reach = np.minimum(length / unit, 26.0)  # labels lie within 30 curvature radii
        around = unit * np.hstack([np.cosh(reach), np.sinh(reach) * flat / length])
        return space.project(_reflected(around, unit * np.eye(truth.shape[1])[0], truth, -1.0))
    around = np.hstack([np.cos(length), np.sin(length) * flat / length])
    return space.project(_reflected(around, np.eye(truth.shape[1])[0], truth, 1.0))


def _reflected(points: FloatArray, start: FloatArray, end: FloatArray, sign: float) -> FloatArray:
    """Return points mirrored so that `start` comes to `end`, by the product in which the first axis has this sign."""
    across = start - end
    signed = across * np.where(np.arange(len(start)) == 0, sign, 1.0)
    part = (points * signed).sum(axis=1) / np.maximum((across * signed).sum(axis=1), 1e-300)
    return points - 2.0 * part[:, None] * across


def _power(matrices: FloatArray, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
    values, vectors = np.linalg.eigh(matrices)
    result: FloatArray = (vectors * function(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return result


def with_noise(space: cs.LabelSpace, noise: str) -> cs.LabelSpace:
    """Return the same space with labels of another kind of mean."""
    if isinstance(space, cs.Hyperbolic):
        return cs.Hyperbolic(space.d, space.curvature, noise=noise)
    return cs.Sphere(space.d, noise=noise) if isinstance(space, cs.Sphere) else space


@dataclass(frozen=True)
class Known:
    """An estimator that knows the scales."""

    scale: FloatArray

    def estimate(self, moments: cs.partitions.Moments, space: cs.LabelSpace, dependencies: object) -> FloatArray:
        """Return the weights of these scales."""
        return 0.5 / self.scale**2


def measure(column: Column, seed: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return the mean squared error of every row, and the root mean square error of the log variances."""
    rng = np.random.default_rng(seed)
    scale = column.draw(np.random.default_rng(1000 + seed))
    votes, truth = simulate_votes(column, scale, rng)
    error, deviation = {}, {}
    rows = {**ROWS, "true scales, wrapped likelihood": ("true", "wrapped")}
    if column.kind == "spd":
        rows = {"unweighted mean": ROWS["unweighted mean"], "flat triplets": ("isotropic", "")}
        rows |= {"true scales": ("true", ""), OURS_SPD: ("auto", ""), "log-Euclidean throughout": ("auto", "log")}
    for name, (method, noise) in rows.items():
        # Scales are those of the wrapped law, which the votes follow, whichever mean they are then used for.
        source = cs.SPD(3, metric="log-euclidean") if noise == "log" else column.space
        learner = Known(scale) if method == "true" else method
        model = fit_quietly(cs.LabelModel(source, method=learner, random_state=0), votes)
        weight = np.asarray(model.weight_)
        target = source if noise in ("", "log") else with_noise(source, noise)
        labels = fit_quietly(cs.LabelModel(target, method=_Given(weight)), votes).predict(votes)
        error[name] = float(np.mean(column.space.distance(labels, truth) ** 2))
        if method not in ("majority", "true"):
            deviation[name] = float(np.sqrt(np.mean(np.log(0.5 / weight / scale**2) ** 2)))
    return error, deviation


@dataclass(frozen=True)
class _Given:
    weight: FloatArray

    def estimate(self, moments: cs.partitions.Moments, space: cs.LabelSpace, dependencies: object) -> FloatArray:
        return self.weight


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the tables and write them to ``manifolds.md``."""
    settings = read_settings("experiments.manifolds", __doc__, 5, 1, arguments)
    chosen = columns(settings.quick)
    ratios: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    deviations: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    runs = [(column, seed) for column in chosen for seed in range(settings.seeds)]
    for column, seed in track(runs, description="manifolds"):
        error, deviation = measure(column, seed)
        # The sphere is judged by the Frechet mean of the true scales, SPD by the Karcher mean of the true scales.
        oracle = {
            "hyperbolic": "true scales, wrapped likelihood",
            "sphere": "true scales, Frechet mean",
            "spd": "true scales",
        }[column.kind]
        for name, value in error.items():
            ratios[column.name][name].append(value / error[oracle])
        for name, value in deviation.items():
            deviations[column.name][name].append(value)
    hyperbolic = [column for column in chosen if column.kind == "hyperbolic"]
    groups = [[column for column in chosen if column.kind == kind] for kind in ("sphere", "spd")]
    blocks = [
        f"Mean squared distance of the labels to the truth, divided by that of labels made with the true scales and "
        f"the likelihood of the wrapped normal; mean and standard deviation over the seeds. {N_SOURCES} sources. "
        "Sources err by normal noise in the tangent space at the truth. The truth is uniform on the sphere, and within "
        "about one curvature radius of the origin of hyperbolic space. For K=-50 votes lie many curvature radii apart.",
        _table(hyperbolic, ratios),
        "On the sphere relative to the Frechet mean with the true scales, for matrices to the Karcher mean with them.",
        *(_table(group, ratios) for group in groups),
        "## Error of the log variances",
        "Root mean square over the sources, mean over the seeds; a negative variance is lifted to a small one.",
        _table(hyperbolic, deviations),
        *(_table(group, deviations) for group in groups),
        "## Targets",
        QUICK if settings.quick else _verdicts(chosen, ratios),
    ]
    described = [f"m={N_SOURCES}", "n=200, or 100 for d=80", f"seeds 0..{settings.seeds - 1}"]
    write_results(settings.results / "manifolds.md", "Points on manifolds", settings.command, described, blocks)


def _table(chosen: list[Column], values: dict[str, dict[str, list[float]]]) -> str:
    names = list(values[chosen[0].name])
    rows = []
    for name in names:
        cells = [values[column.name][name] for column in chosen]
        shown = [f"{np.mean(cell):.3f} ± {np.std(cell):.3f}" for cell in cells]
        rows.append([f"**{name}**" if name in (OURS, OURS_SPD) else name, *shown])
    return markdown_table(["labels by", *(column.name for column in chosen)], rows)


def _verdicts(chosen: list[Column], ratios: dict[str, dict[str, list[float]]]) -> str:
    lines = []
    for column in chosen:
        ours = OURS_SPD if column.kind == "spd" else OURS
        target, reached = TARGETS[column.kind], float(np.mean(ratios[column.name][ours]))
        claim = f"{column.name}: at most {target} times the oracle's error"
        lines.append(verdict(claim, reached <= target, f"{reached:.3f}"))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
