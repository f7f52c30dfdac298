"""One thread against two on votes in memory: exact Kemeny rankings, trees, Frechet means, classes and scores.

Wall and CPU seconds of fit and predict, in turns, so that whoever else uses the machine disturbs both alike. The labels
have to be the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Before NumPy is imported: linear algebra in threads of its own would blur the comparison.
os.environ |= {name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the script runs by its path

import numpy as np
from benchmarks.bench_classes import RESULTS
from experiments.tables import markdown_table, verdict, write_results

import consilience as cs

THREADS = 2
TURNS = 5
#: With two processors and nothing else running, fit and predict take at most this part of the time of one thread.
LIMIT = 0.65
SOURCES = 6
#: A quick run has this part of the items.
QUICK = 1 / 2000


@dataclass(frozen=True)
class Case:
    """A label type with how true labels are drawn, and how many items are fitted and labeled.

    A fit reads some thousand items first and the others only where those leave something open, so that a part of its
    time does not depend on the number of items. There are as many items as let both take about a second or more.
    """

    space: Any
    draw: Callable[[np.random.Generator, int], Any]
    fitted: int
    labeled: int


def on_hyperboloid(rng: np.random.Generator, size: int) -> np.ndarray:
    points = rng.normal(size=(size, 3))
    return np.column_stack([np.sqrt(1.0 + (points**2).sum(axis=1)), points])


CASES = {
    "rankings of 12 items, exact": Case(
        cs.Rankings(12), lambda rng, size: np.argsort(rng.random((size, 12)), axis=1), 600_000, 60_000
    ),
    "trees of 20 tokens": Case(cs.DependencyTrees(), lambda _, size: [np.arange(20)] * size, 60_000, 60_000),
    "points of hyperbolic space": Case(cs.Hyperbolic(3), on_hyperboloid, 600_000, 60_000),
    "classes": Case(cs.Classes(5), lambda rng, size: rng.integers(5, size=size), 12_000_000, 12_000_000),
    "scores": Case(cs.Scores(mean=0.0, variance=1.0), lambda rng, size: rng.normal(size=size), 12_000_000, 12_000_000),
}


def seconds(work: Callable[[], Any], threads: int) -> tuple[float, float, Any]:
    os.environ["CONSILIENCE_THREADS"] = str(threads)
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def measure(case: Case, share: float, turns: int) -> dict[str, Any]:
    """Return medians of wall and CPU seconds by what is done and threads, and whether labels are the same."""
    fitted, labeled = (max(1, round(size * share)) for size in (case.fitted, case.labeled))
    rng = np.random.default_rng(0)
    truth = case.draw(rng, max(fitted, labeled))
    votes = cs.simulate(case.space, truth, np.linspace(0.3, 1.2, SOURCES), rng)
    to_fit, to_label = votes[:fitted], votes[:labeled]
    model = cs.LabelModel(case.space, random_state=0)
    jobs: dict[str, Callable[[], Any]] = {"fit": lambda: model.fit(to_fit), "predict": lambda: model.predict(to_label)}
    taken: dict[tuple[str, int], list[tuple[float, float]]] = {}
    labels = []
    for turn in range(turns + 1):  # the first one compiles what has to be compiled
        for threads in (1, THREADS):
            for job, work in jobs.items():
                wall, cpu, result = seconds(work, threads)
                if turn:
                    taken.setdefault((job, threads), []).append((wall, cpu))
                if job == "predict":
                    labels.append(result)
    found = {key: np.median(values, axis=0) for key, values in taken.items()}
    same = all(np.array_equal(labels[0], other) for other in labels[1:])
    return {"items": {"fit": fitted, "predict": labeled}, "times": found, "same": same}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all label types and write ``threads.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables: shows that it runs, proves nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the table")
    parser.add_argument("--turns", type=int, default=TURNS, help="repetitions of everything")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
    turns = 1 if given.quick else given.turns
    rows, lines = [], []
    for name, case in CASES.items():
        found = measure(case, QUICK if given.quick else 1.0, turns)
        times = found["times"]
        cells = [name]
        for job in ("fit", "predict"):
            (wall, cpu), (shared, both) = times[job, 1], times[job, THREADS]
            cells.append(f"{found['items'][job]:,}")
            cells += [f"{wall:.2f} ({cpu:.2f})", f"{shared:.2f} ({both:.2f})", f"{shared / wall:.2f}"]
        rows.append([*cells, "yes" if found["same"] else "no"])
        print(rows[-1], flush=True)
        for job in ("fit", "predict"):
            part = times[job, THREADS][0] / times[job, 1][0]
            claim = f"{name}: {job} by two threads takes at most {LIMIT:g} of the time of one, with the same labels"
            lines.append(verdict(claim, bool(part <= LIMIT and found["same"]), f"{part:.2f}"))
    timed = [heading for job in ("fit", "predict") for heading in (f"items, {job}", "1 thread", "2 threads", "part")]
    columns = [*timed, "same labels"]
    blocks = [
        f"{SOURCES} sources. Wall seconds, CPU seconds in brackets; *part*: wall time of two threads over that of one.",
        markdown_table(["", *columns], rows),
        "## Targets",
        "A quick run on small tables: targets are not judged." if given.quick else "\n".join(lines),
    ]
    processors = f"{os.cpu_count()} processors"
    settings = [f"medians of {turns} turn{'s' * (turns != 1)}, one and two threads in alternation, on {processors}"]
    asked = "" if given.quick or turns == TURNS else f" --turns {turns}"
    command = f"python benchmarks/bench_threads.py{' --quick' * given.quick}{asked}"
    write_results(given.results / "threads.md", "Threads on votes in memory", command, settings, blocks)


if __name__ == "__main__":
    main()
