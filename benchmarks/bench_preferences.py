"""Speed of learning from pairwise comparisons: what weighing the judges costs beside judges that all count the same.

An arena of 100 items compared by 10 judges, and 1000 prompts with four candidates by 5 judges. In one arena each judge
has pairs of its own, in the other all judges see the same ones, so that copies are looked for, too. CPU time of one
process, one thread; the best of several repetitions, after one that warms up.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Before NumPy is imported: several threads would hide how much work is done.
os.environ |= {name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}

import numpy as np

import consilience as cs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the script runs by its path

from experiments.preference_draws import Comparisons, draw_arena, draw_prompts
from experiments.tables import markdown_table, verdict, write_results

RESULTS = Path(__file__).resolve().parent / "results"
REPETITIONS = 3
#: The default may take this many times as long as equal judges, for ARENAS.
LIMIT = 10.0
ARENAS = ("6,000 votes, 100 items, 10 judges", "6,000 votes, 100 items, 10 judges, the same pairs")


@dataclass(frozen=True)
class Measured:
    """CPU seconds."""

    name: str
    votes: int
    equal: float
    default: float
    predict: float


def best_time(model: cs.LabelModel, votes: cs.Votes, repetitions: int) -> float:
    """Return the CPU time of the quickest fit."""
    times = []
    for _ in range(repetitions + 1):
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
            model.fit(votes)
        times.append(time.process_time() - start)
    return min(times[1:])


def measure(name: str, drawn: Comparisons, repetitions: int) -> Measured:
    """Return the time of a fit by equal judges and by default, and of the labels."""
    votes = cs.tables.read_preferences(drawn.table, by=drawn.by)
    space = cs.Preferences(by=drawn.by)
    equal = best_time(cs.LabelModel(space, method="majority"), votes, repetitions)
    model = cs.LabelModel(space)
    default = best_time(model, votes, repetitions)
    start = time.process_time()
    model.predict(votes)
    return Measured(name, len(drawn.table["judge"]), equal, default, time.process_time() - start)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, proves nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write the table to")
    given = parser.parse_args(arguments)
    repetitions = 1 if given.quick else REPETITIONS
    if given.quick:
        settings = {"100 votes": draw_arena(0, "het", 5, 5, 20)}
    else:
        settings = {
            ARENAS[0]: draw_arena(0, "het-tie", 60, 10, 100),
            ARENAS[1]: draw_arena(0, "het-tie", 60, 10, 100, same=True),
            "1000 prompts x 4, 5 judges": draw_prompts(0, "het", 1000, 4, 5, 0.5),
        }
    found = [measure(name, drawn, repetitions) for name, drawn in settings.items()]
    rows = [
        [
            one.name,
            f"{one.votes}",
            f"{one.equal:.3f}",
            f"{one.default:.3f}",
            f"{one.default / one.equal:.1f}",
            f"{one.predict:.3f}",
        ]
        for one in found
    ]
    claims = [
        verdict(
            f"{one.name}: at most {LIMIT:g} times as long as equal judges",
            one.default <= LIMIT * one.equal,
            f"{one.default / one.equal:.1f} times, {one.default:.2f} s",
        )
        for one in found
        if one.name in ARENAS
    ]
    columns = ["setting", "votes", "fit, equal judges (s)", "fit, default (s)", "ratio", "predict (s)"]
    write_results(
        given.results / "preferences.md",
        "Speed of preferences",
        f"python benchmarks/bench_preferences.py{' --quick' * given.quick}",
        [f"CPU seconds, best of {repetitions}", f"numpy {np.__version__}"],
        ["\n".join(claims) or "A quick run on small settings: targets are not judged.", markdown_table(columns, rows)],
    )


if __name__ == "__main__":
    main()
