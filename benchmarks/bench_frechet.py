"""Speed of the batched Frechet mean in hyperbolic space, beside geomstats' `FrechetMean`.

Six votes per item of which three are precise, on hyperboloids of 2, 10 and 80 dimensions. geomstats runs in an
environment of its own (``benchmarks/environments/geomstats.sh`` makes it), one item after the other, as its interface
has it. CPU time of one process, one thread.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

# Before NumPy is imported: several threads would hide how much work is done.
os.environ |= {name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}

import numpy as np
import numpy.typing as npt

import consilience as cs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the script runs by its path

from experiments.tables import QUICK, markdown_table, verdict, write_results

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PYTHON = HERE / "environments" / ".cache" / "geomstats" / "bin" / "python"
DIMENSIONS = (2, 10, 80)
SCALES = np.array([0.15, 0.15, 0.15, 0.6, 0.6, 0.6])
ITEMS, QUICK_ITEMS, PEER_ITEMS = 50_000, 200, 200
REPETITIONS = 5
MISSING = "geomstats was not run: benchmarks/environments/geomstats.sh makes its environment. Targets are not judged."
FASTER, SAME = 30.0, 1e-6

FloatArray = npt.NDArray[np.float64]


def votes_of(space: cs.Hyperbolic, n: int) -> FloatArray:
    """Return votes ``(n, 6, d + 1)`` around points at a distance of about one radius from the origin."""
    rng = np.random.default_rng(0)
    truth = space.random(n, rng)
    weights = 0.5 / SCALES**2 * space.d  # so that votes lie at distances of .15 and .6 in every dimension
    return np.stack([_around(space, truth, float(one), rng) for one in weights], axis=1)


def _around(space: cs.Hyperbolic, truth: FloatArray, weight: float, rng: np.random.Generator) -> FloatArray:
    return np.asarray(space.sample_around(truth, weight, rng))


def rate(space: cs.Hyperbolic, votes: FloatArray, weights: FloatArray) -> float:
    """Return items per CPU second, the best of some repetitions."""
    space.weighted_mean(votes[:10], weights[:10])  # compiles
    best = np.inf
    for _ in range(REPETITIONS):
        start = time.process_time()
        space.weighted_mean(votes, weights)
        best = min(best, time.process_time() - start)
    return len(votes) / max(best, 1e-9)


def cost(space: cs.Hyperbolic, points: FloatArray, votes: FloatArray) -> FloatArray:
    """Return the weighted squared distances to the votes, which the mean makes smallest."""
    return np.sum([space.distance(points, votes[:, a]) ** 2 / SCALES[a] ** 2 for a in range(len(SCALES))], axis=0)


def remaining_slope(space: cs.Hyperbolic, points: FloatArray, votes: FloatArray) -> float:
    """Return the longest step that Newton's method in extended precision would still take, over items.

    An independent check in 80-bit numbers: the mean of the logarithms of the votes at the point, which is zero at the
    optimum and otherwise bounds how far away it is.
    """
    point, others = points[:, None].astype(np.longdouble), votes.astype(np.longdouble)
    point[..., 0] = np.sqrt(1 + (point[..., 1:] ** 2).sum(axis=-1))
    others[..., 0] = np.sqrt(1 + (others[..., 1:] ** 2).sum(axis=-1))
    cosine = point[..., 0] * others[..., 0] - (point[..., 1:] * others[..., 1:]).sum(axis=-1)
    length = np.arccosh(np.maximum(cosine, 1))
    ratio = np.where(length > 1e-8, length / np.sinh(np.maximum(length, 1e-8)), 1)
    share = (1 / SCALES**2) / (1 / SCALES**2).sum()
    slope = (share[:, None] * ratio[..., None] * (others - cosine[..., None] * point)).sum(axis=1)
    size = (slope[:, 1:] ** 2).sum(axis=-1) - slope[:, 0] ** 2
    return float(np.sqrt(np.maximum(size, 0)).max())


def peer(votes: FloatArray, count: int) -> dict[str, FloatArray] | None:
    """Return what geomstats finds and how long it takes, or None where its environment does not exist."""
    if not PYTHON.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "votes.npz", Path(folder) / "means.npz"
        np.savez(source, votes=votes[:count], weights=1.0 / SCALES**2, max_items=count)
        script = HERE / "environments" / "run_geomstats.py"
        subprocess.run([str(PYTHON), str(script), str(source), str(target)], check=True, capture_output=True)
        with np.load(target) as data:
            return {name: data[name] for name in data.files}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the table and write it to ``frechet.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few items, without geomstats: shows that it runs")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write the table to")
    given = parser.parse_args(arguments)
    n = QUICK_ITEMS if given.quick else ITEMS
    rows, verdicts = [], []
    for d in DIMENSIONS:
        space = cs.Hyperbolic(d)
        votes = votes_of(space, n)
        weights = np.broadcast_to(1.0 / SCALES**2, votes.shape[:2])
        ours = rate(space, votes, weights)
        points = space.weighted_mean(votes, weights)
        slope = remaining_slope(space, points[:2000], votes[:2000])
        found = None if given.quick else peer(votes, PEER_ITEMS)
        cells = [f"{d}", f"{ours:,.0f}", f"{slope:.1e}"]
        if found is None:
            rows.append([*cells, "", "", "", "", ""])
            continue
        count = len(found["default"])
        theirs = count / float(found["default_seconds"])
        gap = float(np.abs(found["default"] - points[:count]).max())
        tight = float(np.abs(found["tight"] - points[:count]).max())
        excess = (cost(space, found["default"], votes[:count]) / cost(space, points[:count], votes[:count]) - 1.0).min()
        rows.append([*cells, f"{theirs:,.0f}", f"{ours / theirs:,.0f}", f"{gap:.1e}", f"{tight:.1e}", f"{excess:.1e}"])
        verdicts.append(
            verdict(f"d={d}: at least {FASTER:.0f} times", ours / theirs >= FASTER, f"{ours / theirs:,.0f}")
        )
        same = f"coordinates of geomstats run to rest differ by {tight:.1e}"
        verdicts.append(verdict(f"d={d}: the same optimum to {SAME}", tight <= SAME, same))
    heads = [
        "d",
        "items/s",
        "slope left",
        "geomstats items/s",
        "ratio",
        "gap, default",
        "gap, run to rest",
        "excess cost",
    ]
    blocks = [
        "Items per CPU second, one thread. *slope left*: length of the weighted mean of the logarithms of the votes at "
        "our mean, largest over 2,000 items, in 80-bit numbers; zero at the optimum. *gap*: largest difference of "
        "coordinates to geomstats with default settings, and with `max_iter=2000, epsilon=1e-20`. *excess cost*: "
        "smallest relative excess of geomstats' default cost over ours (not negative, so ours is nowhere worse).",
        markdown_table(heads, rows),
        "## Targets",
        QUICK if given.quick else "\n".join(verdicts) or MISSING,
    ]
    command = f"python benchmarks/bench_frechet.py{' --quick' * given.quick}"
    settings = [f"{n:,} items of 6 votes", f"geomstats 2.8.0 on {PEER_ITEMS} items", f"best of {REPETITIONS}"]
    write_results(given.results / "frechet.md", "Batched Frechet means", command, settings, blocks)


if __name__ == "__main__":
    main()
