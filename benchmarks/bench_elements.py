"""CPU seconds of the label model for boxes and for texts: fit and predict, one process, one thread.

The first fit, which loads or compiles the inner loops, is not counted.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

# Before NumPy is imported: several threads would hide how much work is done.
os.environ |= {name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}

import numpy as np
from rich.progress import track

import consilience as cs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the script runs by its path

from experiments.tables import markdown_table, verdict, write_results

RESULTS = Path(__file__).resolve().parent / "results"
#: CPU seconds for fit and predict together.
LIMIT = 60.0
Case = tuple[str, cs.LabelSpace, Callable[[int], cs.Votes]]


def box_votes(n: int) -> cs.Votes:
    """Draw boxes of 9 sources on images with 4 objects on average."""
    rng = np.random.default_rng(0)
    marking, false, noise = rng.uniform(0.45, 0.95, 9), rng.uniform(0.05, 1.2, 9), rng.uniform(0.02, 0.1, 9)
    labels = np.empty((n, 9), dtype=object)

    def boxes(count: int) -> np.ndarray:
        low = rng.uniform(0, 900, (count, 2))
        return np.hstack([low, low + rng.uniform(40, 100, (count, 2))])

    for item in range(n):
        real = boxes(rng.poisson(4))
        for source in range(9):
            seen = real[rng.random(len(real)) < marking[source]]
            moved = seen + noise[source] * 70 * np.clip(rng.normal(size=seen.shape), -2.5, 2.5)
            labels[item, source] = np.vstack([moved, boxes(rng.poisson(false[source]))])
    return cs.Votes.from_array(labels)


def text_votes(n: int) -> cs.Votes:
    """Draw texts of 10 words by 7 sources that replace, leave out or double words."""
    rng = np.random.default_rng(0)
    errors = rng.uniform(0.1, 0.5, 7)
    words = [f"w{number}" for number in range(3000)]
    labels = np.empty((n, 7), dtype=object)
    for item in range(n):
        truth = rng.integers(0, 3000, 10)
        for source in range(7):
            kind = np.where(rng.random(10) < errors[source], rng.integers(1, 4, 10), 0)
            said = [
                words[word] if what == 0 else (words[rng.integers(0, 3000)] if what == 1 else f"{words[word]} again")
                for word, what in zip(truth, kind, strict=True)
                if what != 2
            ]
            labels[item, source] = " ".join(said) or "nothing"
    return cs.Votes.from_array(labels)


CASES: tuple[Case, ...] = (
    ("boxes, 9 sources", cs.Boxes(), box_votes),
    ("texts of 10 words, 7 sources", cs.Texts(), text_votes),
    ("texts of 10 words, 7 sources, GLEU", cs.Texts("gleu"), text_votes),
)


def measure(space: cs.LabelSpace, votes: cs.Votes) -> tuple[float, float]:
    """Return the CPU seconds of fit and of predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        few = votes[:20]
        cs.LabelModel(space).fit(few).predict(few)
        start = time.process_time()
        model = cs.LabelModel(space, random_state=0).fit(votes)
        fitted = time.process_time()
        model.predict(votes)
        return fitted - start, time.process_time() - fitted


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all cases and write ``elements.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables: shows that it runs, proves nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the table")
    given = parser.parse_args(arguments)
    n = 50 if given.quick else 10_000
    rows, verdicts = [], []
    for name, space, draw in track(CASES, description="boxes and texts"):
        fit, predict = measure(space, draw(n))
        rows.append([f"{name}, {n:,} items", f"{fit:.1f}", f"{predict:.1f}", f"{fit + predict:.1f}"])
        claim = f"{name}: fit and predict in at most {LIMIT:g} CPU seconds"
        verdicts.append(verdict(claim, fit + predict <= LIMIT, f"{fit + predict:.1f}"))
    blocks = [
        markdown_table(["votes", "fit s", "predict s", "together s"], rows),
        "## Targets",
        "A quick run on small tables: targets are not judged." if given.quick else "\n".join(verdicts),
    ]
    command = f"python benchmarks/bench_elements.py{' --quick' * given.quick}"
    settings = ["CPU seconds of one process, one thread", "seed 0"]
    write_results(given.results / "elements.md", "Boxes and texts: speed", command, settings, blocks)


if __name__ == "__main__":
    main()
