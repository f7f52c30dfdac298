"""Speed of `apply`: ten trivial labeling functions on a pandas table, against snorkel's appliers.

The functions compare two columns of numbers with a limit; snorkel runs in an environment of its own, started from
here, on the same numbers. CPU time of one process, one BLAS thread; times and ratios come from the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Before NumPy is imported: several threads would hide how much work is done.
os.environ |= {name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}

import numpy as np
import numpy.typing as npt
import pandas as pd

import consilience as cs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the script runs by its path

from experiments.tables import QUICK, markdown_table, verdict, write_results

HERE = Path(__file__).resolve().parent
ROWS, QUICK_ROWS = 100_000, 2_000
FUNCTIONS = 10
REPETITIONS = 3
VECTORISED_TARGET, ROW_TARGET = 20.0, 4.0
SNORKEL = HERE.parent / ".venv-snorkel" / "bin" / "python"
PANDAS_APPLIER = "PandasLFApplier"


@dataclass(frozen=True)
class Snorkel:
    """What snorkel needed, in CPU seconds per applier, and what it voted."""

    seconds: dict[str, float]
    versions: dict[str, str]
    bytes_per_vote: int
    votes: npt.NDArray[Any]


def row_function(limit: float) -> cs.labeling.LabelingFunction:
    @cs.labeling_function(name=f"above_{limit:.1f}")
    def vote(row: Any) -> int | None:
        return 1 if row.a > limit else (0 if row.b > limit else None)

    return vote


def batch_function(limit: float) -> cs.labeling.LabelingFunction:
    @cs.labeling_function(name=f"above_{limit:.1f}", vectorized=True)
    def vote(batch: Any) -> npt.NDArray[np.int64]:
        return np.where(batch["a"] > limit, 1, np.where(batch["b"] > limit, 0, -1))

    return vote


def make_data(rows: int) -> tuple[pd.DataFrame, npt.NDArray[np.float64]]:
    """Return a table of two columns, and one limit per function."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=rows), "b": rng.normal(size=rows)})
    return frame, np.linspace(-1.0, 1.0, FUNCTIONS)


def median_seconds(work: Callable[[], object], repetitions: int) -> float:
    seconds = []
    for _ in range(repetitions):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return float(np.median(seconds))


def run_snorkel(python: Path, frame: pd.DataFrame, limits: npt.NDArray[np.float64]) -> Snorkel:
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "data.npz", a=frame["a"], b=frame["b"], limits=limits)
        command = [str(python), str(HERE / "snorkel_applier.py"), folder]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        told = json.loads(done.stdout.splitlines()[-1])
        return Snorkel(told["seconds"], told["versions"], told["bytes"], np.load(Path(folder) / "votes.npz")["votes"])


def as_matrix(votes: cs.Votes) -> npt.NDArray[Any]:
    return np.where(votes.observed, votes.labels, -1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Time everything and write ``labeling.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small table: shows that it runs, proves nothing")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder of the table")
    parser.add_argument("--snorkel", type=Path, default=SNORKEL, help="the Python that has snorkel")
    given = parser.parse_args(arguments)
    frame, limits = make_data(QUICK_ROWS if given.quick else ROWS)
    repetitions = 1 if given.quick else REPETITIONS
    space = cs.Classes(2)
    kinds = {
        "consilience, vectorised": [batch_function(limit) for limit in limits.tolist()],
        "consilience, functions of a row": [row_function(limit) for limit in limits.tolist()],
    }
    seconds = {}
    matrices = []
    for name, functions in kinds.items():
        cs.apply(functions, frame[:1000], space)  # imports what the first call needs
        seconds[name] = median_seconds(lambda functions=functions: cs.apply(functions, frame, space), repetitions)
        votes = cs.apply(functions, frame, space)
        matrices.append(as_matrix(votes))
    if not np.array_equal(*matrices):
        raise SystemExit("Functions of a row and vectorised functions voted differently.")
    snorkel = run_snorkel(given.snorkel, frame, limits) if given.snorkel.exists() else None
    blocks = [_explanation(snorkel, matrices[0], votes), _table(seconds, snorkel, len(frame)), "## Targets"]
    blocks.append(QUICK if given.quick or snorkel is None else _verdicts(seconds, snorkel, votes))
    settings = [
        f"{FUNCTIONS} functions, {len(frame):,} rows of a pandas table, seed 0",
        f"CPU seconds, one process, one BLAS thread, median of {repetitions} (snorkel: once)",
    ]
    command = f"python benchmarks/bench_labeling.py{' --quick' * given.quick}"
    write_results(given.results / "labeling.md", "Labeling functions: speed", command, settings, blocks)


def _explanation(snorkel: Snorkel | None, matrix: npt.NDArray[Any], votes: cs.Votes) -> str:
    text = (
        "A function votes 1 where column a is above its limit, else 0 where column b is, and abstains elsewhere. "
        f"Labels are stored in {votes.labels.itemsize} byte per vote."
    )
    if snorkel is None:
        return f"{text} snorkel was not found: run benchmarks/snorkel_environment.sh first."
    same = "the same" if np.array_equal(snorkel.votes, matrix) else "other"
    versions = ", ".join(f"{name} {version}" for name, version in snorkel.versions.items())
    return f"{text} {versions} gave {same} votes, in {snorkel.bytes_per_vote} bytes each."


def _table(seconds: dict[str, float], snorkel: Snorkel | None, rows: int) -> str:
    every = seconds | ({} if snorkel is None else {f"snorkel, {name}": s for name, s in snorkel.seconds.items()})
    slowest = None if snorkel is None else snorkel.seconds[PANDAS_APPLIER]
    cells = [
        [
            name,
            f"{one:.3f}",
            f"{1e6 * one / (rows * FUNCTIONS):.3f}",
            "-" if slowest is None else f"{slowest / one:.1f}",
        ]
        for name, one in every.items()
    ]
    return markdown_table(["", "CPU s", "microseconds per vote", f"times as fast as {PANDAS_APPLIER}"], cells)


def _verdicts(seconds: dict[str, float], snorkel: Snorkel, votes: cs.Votes) -> str:
    slow = snorkel.seconds[PANDAS_APPLIER]
    vectorised, rows = (slow / one for one in seconds.values())
    small = votes.labels.dtype == np.int8
    return "\n".join(
        [
            verdict(
                f"vectorised functions at least {VECTORISED_TARGET:g} times as fast",
                vectorised >= VECTORISED_TARGET,
                f"{vectorised:.0f}",
            ),
            verdict(f"functions of a row at least {ROW_TARGET:g} times as fast", rows >= ROW_TARGET, f"{rows:.0f}"),
            verdict("one byte per class vote", small, str(votes.labels.dtype)),
        ]
    )


if __name__ == "__main__":
    main()
