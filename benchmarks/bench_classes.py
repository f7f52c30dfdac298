"""Speed and memory of the label model for classes, against the one pass over the data that nobody can avoid.

The yardstick is the Gram matrix of the one-hot votes, taken in chunks of 65,536 items: every method of moments
needs at least that. CPU time of one process, one BLAS thread; times and ratios come from the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
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
REPETITIONS = 3
ABSTAINS = 0.3
MEGABYTE = 1 << 20
FIT_LIMIT, PREDICT_LIMIT, MEMORY_LIMIT = 1.3, 3.0, 300.0

VoteMatrix = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Case:
    """A table of random votes."""

    n_items: int
    n_sources: int
    k: int
    seed: int = 0

    def __str__(self) -> str:
        return f"n={self.n_items:.0e}, m={self.n_sources}, k={self.k}".replace("e+0", "e")


#: The first one carries the targets.
CASES = (Case(10**6, 50, 2), Case(10**6, 50, 5), Case(10**5, 50, 2), Case(10**5, 50, 5))
QUICK_CASES = (Case(2000, 10, 2), Case(2000, 10, 3))


@dataclass(frozen=True)
class Measured:
    """CPU seconds (medians), accuracy, and megabytes beyond the votes."""

    gram: float
    fit: float
    predict: float
    accuracy: float
    fit_memory: float
    predict_memory: float


def random_votes(case: Case) -> tuple[VoteMatrix, VoteMatrix]:
    """Return votes of independent sources, -1 where they abstain, and the truth; made in small blocks."""
    rng = np.random.default_rng(case.seed)
    accuracy = rng.uniform(*((0.55, 0.90) if case.k == 2 else (0.35, 0.85)), case.n_sources)
    truth = rng.integers(case.k, size=case.n_items, dtype=np.int8)
    matrix = np.empty((case.n_items, case.n_sources), dtype=np.int8)
    for start in range(0, case.n_items, 8192):
        rows = truth[start : start + 8192, None]
        shape = (len(rows), case.n_sources)
        wrong = (rows + rng.integers(1, case.k, size=shape, dtype=np.int8)) % case.k
        block = np.where(rng.random(shape) < accuracy, rows, wrong)
        matrix[start : start + 8192] = np.where(rng.random(shape) < ABSTAINS, -1, block)
    return matrix, truth


def one_hot_gram(matrix: VoteMatrix, k: int) -> npt.NDArray[np.float64]:
    """Return how often source a votes v while source b votes w, by a product of one-hot float32 chunks."""
    size = k * matrix.shape[1]
    total = np.zeros((size, size))
    for start in range(0, len(matrix), CHUNK):
        chunk = matrix[start : start + CHUNK]
        hot = np.concatenate([chunk == label for label in range(k)], axis=1).astype(np.float32)
        total += hot.T @ hot
    return total


def as_votes(matrix: VoteMatrix) -> cs.Votes:
    return cs.Votes.from_matrix(matrix, abstain=-1, sources=[f"s{column}" for column in range(matrix.shape[1])])


def fit(votes: cs.Votes, k: int) -> cs.LabelModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        return cs.LabelModel(cs.Classes(k), random_state=0).fit(votes)


def warm_up(k: int) -> None:
    """Compile and import whatever the first call needs; enough items for the path of large tables."""
    matrix, _ = random_votes(Case(60_000, 4, k, seed=1))
    votes = as_votes(matrix)
    fit(votes, k).predict_proba(votes)
    one_hot_gram(matrix, k)


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(case: Case, repetitions: int) -> Measured:
    """Time one case, and measure its memory in a process of its own."""
    warm_up(case.k)
    matrix, truth = random_votes(case)
    votes = as_votes(matrix)
    model = fit(votes, case.k)
    accuracy = float((model.predict(votes) == truth).mean())
    seconds = np.array(
        [
            [
                cpu_seconds(lambda: one_hot_gram(matrix, case.k)),
                cpu_seconds(lambda: fit(votes, case.k)),
                cpu_seconds(lambda: model.predict_proba(votes)),
            ]
            for _ in range(repetitions)
        ]
    )
    gram, fitting, predicting = np.median(seconds, axis=0)
    return Measured(gram, fitting, predicting, accuracy, *_memory_elsewhere(case))


def memory_of(case: Case) -> tuple[float, float]:
    """Return the peak beyond the votes after fit, and after fit and predict_proba, in megabytes."""
    warm_up(case.k)
    matrix, _ = random_votes(case)
    votes = as_votes(matrix)
    before, _ = _resident_and_peak()
    model = fit(votes, case.k)
    after_fit = _resident_and_peak()[1]
    model.predict_proba(votes)
    return after_fit - before, _resident_and_peak()[1] - before


def _resident_and_peak() -> tuple[float, float]:
    status = Path("/proc/self/status")
    if status.is_file():
        # Not ru_maxrss: a new process inherits that of the one that started it.
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return int(lines["VmRSS"].split()[0]) * 1024 / MEGABYTE, int(lines["VmHWM"].split()[0]) * 1024 / MEGABYTE
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE
    return peak, peak


def _memory_elsewhere(case: Case) -> tuple[float, float]:
    command = [sys.executable, __file__, "--memory-of", json.dumps(asdict(case))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    fit_memory, predict_memory = json.loads(done.stdout)
    return fit_memory, predict_memory


def _table(measured: dict[Case, Measured]) -> str:
    rows = []
    for case, one in measured.items():
        times = [f"{one.gram:.3f}", f"{one.fit:.3f}", f"{one.fit / one.gram:.2f}"]
        times += [f"{one.predict:.3f}", f"{one.predict / one.gram:.2f}"]
        memory = [f"{one.fit_memory:.0f}", f"{one.predict_memory:.0f}"]
        rows.append([str(case), *times, *memory, f"{one.accuracy:.4f}"])
    columns = ["Gram s", "fit s", "fit / Gram", "predict_proba s", "predict_proba / Gram"]
    return markdown_table(["votes", *columns, "fit MB", "fit + predict_proba MB", "accuracy"], rows)


def _verdicts(one: Measured) -> str:
    fit_ratio, predict_ratio = one.fit / one.gram, one.predict / one.gram
    extra = max(one.fit_memory, one.predict_memory)
    return "\n".join(
        [
            verdict(f"fit at most {FIT_LIMIT:g} times the Gram", fit_ratio <= FIT_LIMIT, f"{fit_ratio:.2f}"),
            verdict(
                f"predict_proba at most {PREDICT_LIMIT:g} times the Gram",
                predict_ratio <= PREDICT_LIMIT,
                f"{predict_ratio:.2f}",
            ),
            verdict(f"extra memory at most {MEMORY_LIMIT:g} MB", extra <= MEMORY_LIMIT, f"{extra:.0f} MB"),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all cases and write ``classes.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables: shows that it runs, proves nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the table")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.memory_of:
        print(json.dumps(memory_of(Case(**json.loads(given.memory_of)))))
        return
    cases, repetitions = (QUICK_CASES, 1) if given.quick else (CASES, REPETITIONS)
    measured = {case: measure(case, repetitions) for case in track(cases, description="classes")}
    settings = [
        f"{ABSTAINS:.0%} abstention, int8, seed 0, accuracies U(.55, .9) for k=2 and U(.35, .85) for more classes",
        f"CPU seconds, one BLAS thread, median of {repetitions} after a warm-up on a small table",
    ]
    blocks = [
        f"*Gram*: product of the one-hot votes in float32, {CHUNK:,} items at a time. *fit* is "
        "`LabelModel(Classes(k)).fit(votes)`. MB: peak resident memory of a process of its own, beyond what was "
        "resident with packages loaded, kernels compiled and the votes made.",
        _table(measured),
        f"## Targets ({cases[0]})",
        "A quick run on small tables: targets are not judged." if given.quick else _verdicts(measured[cases[0]]),
    ]
    command = f"python benchmarks/bench_classes.py{' --quick' * given.quick}"
    write_results(given.results / "classes.md", "Classes: speed and memory", command, settings, blocks)


if __name__ == "__main__":
    main()
