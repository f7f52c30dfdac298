"""Cost against the number of items and of sources, for classes, scores and rankings, as a table and a picture.

CPU seconds of one process, one BLAS thread, after a warm-up that compiles what has to be compiled.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Before NumPy is imported: several threads would hide how much work is done.
os.environ |= {name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the script runs by its path

import numpy as np
from benchmarks.bench_classes import RESULTS, cpu_seconds
from benchmarks.bench_scores import gram
from experiments.tables import markdown_table, verdict, write_results

import consilience as cs

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
#: Where sources are many, about so many of them vote on an item.
VOTERS = 20
ITEMS = 5
LINEAR, RANKING_LIMIT, GRAM_LIMIT, CROWD_LIMIT = 1.3, 20.0, 3.0, 20.0
COLORS = {"classes": "#1f77b4", "scores": "#d95f02", "rankings": "#4d9221"}


@dataclass(frozen=True)
class Cell:
    """Votes of one kind: so many items, sources, and voters on an item."""

    kind: str
    n: int
    m: int

    @property
    def coverage(self) -> float:
        return min(1.0, VOTERS / self.m)


@dataclass(frozen=True)
class Cost:
    fit: float
    predict: float
    gram: float | None = None


def cells(quick: bool) -> list[Cell]:
    if quick:
        return [Cell(kind, n, 5) for kind in COLORS for n in (300, 600)]
    largest = {"classes": 7, "scores": 7, "rankings": 6}
    return [
        *(Cell(kind, 10**power, 10) for kind, top in largest.items() for power in range(4, top + 1)),
        *(Cell(kind, 10**5, m) for kind in COLORS for m in (5, 20, 50, 200, 1000)),
    ]


def make(cell: Cell) -> tuple[cs.Votes, Any]:
    """Return votes of independent sources of different quality, made in blocks, and what a label is."""
    rng = np.random.default_rng(0)
    names = tuple(f"s{column}" for column in range(cell.m))
    quality = rng.uniform(0.55, 0.9, cell.m)
    shape = (cell.n, cell.m, ITEMS) if cell.kind == "rankings" else (cell.n, cell.m)
    labels = np.zeros(shape, dtype=np.float64 if cell.kind == "scores" else np.int8)
    observed = np.ones(shape[:2], dtype=bool)
    for start in range(0, cell.n, 8192):
        block = labels[start : start + 8192]
        size = block.shape[:2]
        if cell.coverage < 1.0:
            observed[start : start + 8192] = rng.random(size, dtype=np.float32) < cell.coverage
        if cell.kind == "classes":
            truth = rng.integers(2, size=(size[0], 1), dtype=np.int8)
            block[:] = truth ^ (rng.random(size, dtype=np.float32) >= quality)
        elif cell.kind == "scores":
            block[:] = rng.normal(size=(size[0], 1)) + 2.0 * (1.2 - quality) * rng.normal(size=size)
        else:
            truth = rng.normal(size=(size[0], 1, ITEMS))
            noise = 3.0 * (1.0 - quality)[:, None] * rng.normal(size=block.shape)
            block[:] = np.argsort(np.argsort(truth + noise, axis=2), axis=2)
    votes = cs.Votes(labels, observed, names, np.arange(cell.n))
    spaces = {"classes": cs.Classes(2), "scores": cs.Scores(mean=0.0, variance=1.0), "rankings": cs.Rankings(ITEMS)}
    return votes, spaces[cell.kind]


def measure(cell: Cell) -> Cost:
    """Time one cell: the quicker of two where that is cheap."""
    votes, space = make(cell)
    model = cs.LabelModel(space, random_state=0)
    repetitions = 1 if cell.n * cell.m > 2 * 10**7 or cell.kind == "rankings" else 2
    fit = min(cpu_seconds(lambda: model.fit(votes)) for _ in range(repetitions))
    predict = min(cpu_seconds(lambda: model.predict(votes)) for _ in range(repetitions))
    dense = cell.kind == "scores" and cell.coverage == 1.0
    return Cost(fit, predict, min(cpu_seconds(lambda: gram(votes.labels)) for _ in range(3)) if dense else None)


def draw(measured: dict[Cell, Cost], path: Path) -> None:
    """Draw fit and predict against the number of items, and of sources."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, (by_items, by_sources) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for kind, color in COLORS.items():
        of_kind = {cell: cost for cell, cost in measured.items() if cell.kind == kind}
        grown = [(cell.n, cost) for cell, cost in of_kind.items() if cell.m == 10]
        fewest = min(cell.n for cell in of_kind if cell.m != 10) if any(cell.m != 10 for cell in of_kind) else 0
        widened = sorted((cell.m, cost) for cell, cost in of_kind.items() if cell.m != 10 and cell.n == fewest)
        for axes, line, note in ((by_items, grown, "10 sources"), (by_sources, widened, f"{fewest:,} items")):
            if not line:
                continue
            sizes = [size for size, _ in line]
            axes.plot(sizes, [cost.fit for _, cost in line], "o-", color=color, label=f"{kind}, fit ({note})")
            axes.plot(sizes, [cost.predict for _, cost in line], "s--", color=color, label=f"{kind}, predict")
    for axes, name in ((by_items, "items"), (by_sources, f"sources, at most about {VOTERS} votes on an item")):
        axes.set(xscale="log", yscale="log", xlabel=name, ylabel="CPU seconds")
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _verdicts(measured: dict[Cell, Cost]) -> str:
    lines = []
    for kind in COLORS:
        sizes = sorted(cell.n for cell in measured if cell.kind == kind and cell.m == 10)
        small, large = (measured[Cell(kind, n, 10)] for n in sizes[-2:])
        growth = (large.fit + large.predict) / (small.fit + small.predict) / (sizes[-1] / sizes[-2])
        claim = f"{kind}: {sizes[-1]:.0e} items cost at most {LINEAR:g} times as much an item as {sizes[-2]:.0e}"
        lines.append(verdict(claim.replace("e+0", "e"), growth <= LINEAR, f"{growth:.2f} times"))
    for n, m, limit in ((10**6, 10, RANKING_LIMIT),):
        one = measured[Cell("rankings", n, m)]
        shown = f"{one.fit:.1f} s and {one.predict:.1f} s"
        claim = f"a million items by ten rankings of {ITEMS}: fit and exact predict under {limit:g} CPU seconds each"
        lines.append(verdict(claim, max(one.fit, one.predict) < limit, shown))
    one = measured[Cell("scores", 10**7, 10)]
    if one.gram is not None:
        claim = f"ten million items by ten scores: fit under {GRAM_LIMIT:g} times the Gram"
        lines.append(
            verdict(claim, one.fit < GRAM_LIMIT * one.gram, f"{one.fit:.2f} s, {one.fit / one.gram:.2f} times")
        )
    for kind in COLORS:
        one = measured[Cell(kind, 10**5, 1000)]
        votes = f"{kind}: a thousand sources on 100,000 items, 2% of the cells"
        claim = f"{votes}, fit and predict in under {CROWD_LIMIT:g} CPU seconds"
        lines.append(verdict(claim, one.fit + one.predict < CROWD_LIMIT, f"{one.fit:.1f} s and {one.predict:.2f} s"))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all cells, write ``scale.md`` and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables: shows that it runs, proves nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the table")
    parser.add_argument(
        "--images", type=Path, help="folder of the picture; docs/images, or with --quick that of the table"
    )
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
    if not given.quick:
        for kind in COLORS:  # enough items for the paths of large tables
            measure(Cell(kind, 60_000, 4))
            measure(Cell(kind, 3_000, 70))
    measured = {}
    for cell in cells(given.quick):
        measured[cell] = measure(cell)
        print(cell, measured[cell], flush=True)
    rows = [
        [
            *(
                cell.kind,
                f"{cell.n:,}",
                f"{cell.m:,}",
                f"{cell.coverage:.0%}",
                f"{cost.fit:.3f}",
                f"{cost.predict:.3f}",
            ),
            f"{1e6 * (cost.fit + cost.predict) / (cell.n * cell.m * cell.coverage):.2f}",
            "-" if cost.gram is None else f"{cost.fit / cost.gram:.2f}",
        ]
        for cell, cost in measured.items()
    ]
    columns = ["items", "sources", "observed", "fit s", "predict s", "microseconds per vote", "fit / Gram"]
    draw(measured, (given.images or (given.results if given.quick else IMAGES)) / "scale.png")
    blocks = [
        f"Two classes; scores; rankings of {ITEMS} items, labelled exactly. Of many sources about {VOTERS} vote "
        "on an item. *Gram*: product of the scores with themselves, 65,536 items at a time.",
        markdown_table(["", *columns], rows),
        "## Targets",
        "A quick run on small tables: targets are not judged." if given.quick else _verdicts(measured),
    ]
    settings = [
        "CPU seconds, one process, one BLAS thread, after a warm-up; the quicker of two runs where that is cheap"
    ]
    command = f"python benchmarks/bench_scale.py{' --quick' * given.quick}"
    write_results(given.results / "scale.md", "Cost against items and sources", command, settings, blocks)


if __name__ == "__main__":
    main()
