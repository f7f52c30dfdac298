"""Speed of the label model for scores, against one product of the votes with themselves.

The yardstick is the Gram matrix of the votes in float64, taken in chunks of 65,536 items: a covariance costs at least
that. CPU time of one process, one BLAS thread; both are timed in turn and the ratio is the median over the turns.
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

# Before NumPy is imported: several threads would hide how much work is done.
os.environ |= {name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}

import numpy as np
import numpy.typing as npt
from rich.progress import track

import consilience as cs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the script runs by its path

from experiments.tables import markdown_table, verdict, write_results

RESULTS = Path(__file__).resolve().parent / "results"
CHUNK = 65_536
REPETITIONS = 9
FIT_LIMIT = 2.5

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A table of random scores, a share of them missing."""

    n_items: int
    n_sources: int
    missing: float = 0.0
    seed: int = 0

    def __str__(self) -> str:
        gaps = f", {self.missing:.0%} missing" if self.missing else ""
        return f"n={self.n_items:.0e}, m={self.n_sources}{gaps}".replace("e+0", "e")


#: The first one carries the target.
CASES = (Case(10**6, 20), Case(10**5, 20), Case(10**6, 20, 0.3), Case(10**5, 20, 0.3))
QUICK_CASES = (Case(2000, 5), Case(2000, 5, 0.3))


@dataclass(frozen=True)
class Measured:
    """Medians: CPU seconds, their ratios to the Gram, and the squared error of the labels."""

    gram: float
    fit: float
    predict: float
    fit_ratio: float
    predict_ratio: float
    error: float


def random_votes(case: Case) -> tuple[FloatArray, FloatArray]:
    """Return votes of sources with lines of their own, NaN where they abstain, and the truth; made in blocks."""
    rng = np.random.default_rng(case.seed)
    offset, slope = rng.normal(size=case.n_sources), rng.uniform(0.4, 1.6, case.n_sources)
    deviation = rng.uniform(0.4, 2.0, case.n_sources)
    truth = rng.normal(size=case.n_items)
    matrix = np.empty((case.n_items, case.n_sources))
    for start in range(0, case.n_items, 8192):
        rows = truth[start : start + 8192, None]
        block = offset + slope * rows + deviation * rng.normal(size=(len(rows), case.n_sources))
        matrix[start : start + 8192] = np.where(rng.random(block.shape) < case.missing, np.nan, block)
    return matrix, truth


def gram(matrix: FloatArray) -> FloatArray:
    """Return the products of all pairs of columns, in chunks."""
    total = np.zeros((matrix.shape[1], matrix.shape[1]))
    for start in range(0, len(matrix), CHUNK):
        chunk = matrix[start : start + CHUNK]
        total += chunk.T @ chunk
    return total


def fit(votes: cs.Votes) -> cs.LabelModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        return cs.LabelModel(cs.Scores(mean=0.0, variance=1.0), random_state=0).fit(votes)


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(case: Case, repetitions: int) -> Measured:
    """Time one case; the first turn, which warms up, is not counted."""
    matrix, truth = random_votes(case)
    votes = cs.Votes.from_array(matrix)
    filled = np.nan_to_num(matrix)
    model = fit(votes)
    error = float(np.nanmean((model.predict(votes) - truth) ** 2))
    turns = []
    for _ in range(repetitions + 1):
        work: tuple[Callable[[], object], ...] = (
            lambda: gram(filled),
            lambda: fit(votes),
            lambda: model.predict(votes),
        )
        turns.append([cpu_seconds(one) for one in work])
    seconds = np.array(turns[1:])
    ratios = seconds / seconds[:, :1]
    middle, relative = np.median(seconds, axis=0), np.median(ratios, axis=0)
    return Measured(*(float(value) for value in (*middle, *relative[1:])), error)


def _table(measured: dict[Case, Measured]) -> str:
    rows = []
    for case, one in measured.items():
        times = [f"{one.gram:.3f}", f"{one.fit:.3f}", f"{one.fit_ratio:.2f}"]
        rows.append([str(case), *times, f"{one.predict:.3f}", f"{one.predict_ratio:.2f}", f"{one.error:.4f}"])
    columns = ["Gram s", "fit s", "fit / Gram", "predict s", "predict / Gram", "squared error"]
    return markdown_table(["votes", *columns], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all cases and write ``scores.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables: shows that it runs, proves nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the table")
    given = parser.parse_args(arguments)
    cases, repetitions = (QUICK_CASES, 1) if given.quick else (CASES, REPETITIONS)
    measured = {case: measure(case, repetitions) for case in track(cases, description="scores")}
    settings = [
        "offsets N(0, 1), slopes U(.4, 1.6), noise deviations U(.4, 2), seed 0",
        f"CPU seconds, one BLAS thread, medians of {repetitions} turns after one to warm up",
    ]
    ratio = measured[cases[0]].fit_ratio
    judged = verdict(f"fit at most {FIT_LIMIT:g} times the Gram", ratio <= FIT_LIMIT, f"{ratio:.2f}")
    blocks = [
        f"*Gram*: product of the votes in float64, {CHUNK:,} items at a time, missing votes as zeros. *fit* is "
        "`LabelModel(Scores(mean=0, variance=1)).fit(votes)`; with missing votes EM runs over a sample of items.",
        _table(measured),
        f"## Targets ({cases[0]})",
        "A quick run on small tables: targets are not judged." if given.quick else judged,
    ]
    command = f"python benchmarks/bench_scores.py{' --quick' * given.quick}"
    write_results(given.results / "scores.md", "Scores: speed", command, settings, blocks)


if __name__ == "__main__":
    main()
