"""Speed of exact rank aggregation, and of learning from rankings, beside an integer program and the paper's code.

Weighted Kemeny from the votes of 18 sources. *easy*: eight of the sources are nearly always right, majorities hardly
ever form a cycle; *hard*: all of them are close to random. CPU time of one process, one thread.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
import tempfile
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

from experiments.kemeny_exactness import by_program, pair_weights
from experiments.tables import markdown_table, verdict, write_results

RESULTS = Path(__file__).resolve().parent / "results"
SOURCES = 18
REPETITIONS = 3
#: Rows by number of items.
ROWS = {5: 20_000, 8: 10_000, 10: 5000, 12: 4000, 15: 2000, 20: 1000, 50: 400}
QUICK_ROWS = {5: 50, 8: 20}
#: Rows solved by the integer program, by number of items, and the seconds it may take for each.
PROGRAM_ROWS = {5: 40, 8: 40, 10: 40, 12: 40, 15: 40, 20: 20, 50: 2}
PROGRAM_LIMIT = 60.0
#: Condensation and recursion over subsets in the study, rows per CPU second from ready margins (14 items for our 15).
NOTE = {
    "easy": {5: 1.7e6, 8: 1.1e6, 10: 649e3, 12: 710e3, 15: 597e3, 20: 309e3, 50: 62e3},
    "hard": {5: 1.4e6, 8: 383e3, 10: 93e3, 12: 25e3, 15: 5.6e3, 20: 3.9e3, 50: 4.5e3},
}
NOTE_PROVEN = {"easy": dict.fromkeys(ROWS, 1.0), "hard": {**dict.fromkeys(ROWS, 1.0), 20: 0.29, 50: 0.0}}
#: Fit and predict of the reference implementation, 5000 rankings of 5 items by 18 sources, in CPU seconds.
REFERENCE_SECONDS, SPEEDUP = 14.2, 50.0

Positions = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """Rows per CPU second, the share proven optimal, and the integer program on some of the rows."""

    kemeny: float
    search: float
    proven: float
    program: float | None
    program_rows: int
    solved: float | None
    agreed: str


def instance(kind: str, items: int, n: int) -> tuple[Positions, FloatArray]:
    """Return votes ``(n, m, r)`` and weights."""
    rng = np.random.default_rng(1)
    if kind == "easy":
        weight = np.concatenate([rng.uniform(0.1, 0.2, 10), rng.uniform(2.0, 5.0, 8)])
    else:
        weight = rng.uniform(0.05, 0.15, SOURCES) * min(1.0, 15.0 / items)
    space = cs.Rankings(items)
    return cs.simulate(space, space.random(n, rng), weight, rng).labels, weight


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return max(time.process_time() - start, 1e-6)


def search_seconds(votes: Positions, weight: FloatArray) -> float:
    """Return the part of `kemeny` that is spent on the search, from ready margins to a proven ranking."""
    profile = cProfile.Profile(time.process_time)
    profile.runcall(cs.kemeny, votes, weight)
    spent = {name: cumulative for (_, _, name), (_, _, _, cumulative, _) in pstats.Stats(profile).stats.items()}  # type: ignore[attr-defined]
    return max(float(spent["minimize_disagreement"]), 1e-6)


def linear_ordering(votes: Positions, weight: FloatArray, limit: float) -> float | None:
    """Return the least weighted distance to the votes ``(m, r)`` by integer programming, or None in want of time."""
    return by_program(*pair_weights(votes, weight), votes.shape[1], limit)


def measure(kind: str, items: int, n: int, program_rows: int, repetitions: int) -> Measured:
    votes, weight = instance(kind, items, n)
    cs.kemeny(votes[:20], weight)
    found = cs.kemeny(votes, weight)
    seconds = float(np.median([cpu_seconds(lambda: cs.kemeny(votes, weight)) for _ in range(repetitions)]))
    searching = float(np.median([search_seconds(votes, weight) for _ in range(repetitions)]))
    costs: list[float | None] = []
    spent = cpu_seconds(
        lambda: costs.extend(linear_ordering(row, weight, PROGRAM_LIMIT) for row in votes[:program_rows])
    )
    done = [index for index, cost in enumerate(costs) if cost is not None]
    exact = cs.kemeny(votes[:program_rows], weight, exact="milp", time_limit=PROGRAM_LIMIT * program_rows)
    solved = cpu_seconds(
        lambda: cs.kemeny(votes[:program_rows], weight, exact="milp", time_limit=PROGRAM_LIMIT * program_rows)
    )
    known = np.array([costs[index] for index in done], dtype=float)
    proven = exact.optimal[done]
    same = np.isclose(exact.cost[done][proven], known[proven], rtol=1e-7)
    return Measured(
        kemeny=n / seconds,
        search=n / searching,
        proven=float(found.optimal.mean()),
        program=program_rows / spent if len(done) == program_rows else None,
        program_rows=program_rows,
        solved=program_rows / solved if exact.optimal.all() else None,
        agreed=f"{int(same.sum())} of {len(same)}",
    )


def learning() -> tuple[float, float, float]:
    """Return CPU seconds of fit and predict: the first call, and medians of both afterwards."""
    rng = np.random.default_rng(18)
    weight = np.concatenate([rng.uniform(0.2, 1.0, 6), rng.uniform(0.001, 0.01, 12)])
    space = cs.Rankings(5)
    votes = cs.simulate(space, space.random(5000, rng), weight, rng)
    model = cs.LabelModel(space, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        once = cpu_seconds(lambda: model.fit(votes).predict(votes))
        fitting = [cpu_seconds(lambda: model.fit(votes)) for _ in range(5)]
        predicting = [cpu_seconds(lambda: model.predict(votes)) for _ in range(5)]
    return once, float(np.median(fitting)), float(np.median(predicting))


def learning_elsewhere() -> dict[str, tuple[float, float, float]]:
    """Measure `learning` in new processes, without and with compiled kernels on disk."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        measured = {}
        for name in ("nothing compiled", "kernels on disk"):
            command = [sys.executable, __file__, "--learning"]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            once, fitting, predicting = json.loads(done.stdout)
            measured[name] = (once, fitting, predicting)
    return measured


def rate(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def kemeny_table(measured: dict[tuple[str, int], Measured]) -> str:
    rows = []
    for (kind, items), one in measured.items():
        cells = [rate(one.search), rate(NOTE[kind][items]), rate(one.kemeny)]
        cells += [f"{one.proven:.2f}", f"{NOTE_PROVEN[kind][items]:.2f}", rate(one.solved), rate(one.program)]
        ours = one.kemeny if one.proven == 1.0 else one.solved
        ratio = "-" if one.program is None or ours is None else f"{ours / one.program:,.0f}"
        rows.append([f"{kind}, {items} items", *cells, ratio, one.agreed])
    columns = ["search", "study", "kemeny", "proven", "study", "with milp", "scipy milp"]
    return markdown_table(["rows per CPU second", *columns, "ratio", "same cost"], rows)


def learning_table(measured: dict[str, tuple[float, float, float]]) -> str:
    rows = [[name, *(f"{value:.3f}" for value in values)] for name, values in measured.items()]
    return markdown_table(["new process", "first fit + predict s", "later fit s", "later predict s"], rows)


def verdicts(kemenys: dict[tuple[str, int], Measured], learned: dict[str, tuple[float, float, float]]) -> str:
    _, fitting, predicting = learned["kernels on disk"]
    seconds, limit = fitting + predicting, REFERENCE_SECONDS / SPEEDUP
    exact = min(one.proven for (_, items), one in kemenys.items() if items <= 15)
    slower = [f"{kind} {items}" for (kind, items), one in kemenys.items() if one.search < NOTE[kind][items]]
    return "\n".join(
        [
            verdict(
                f"fit + predict at most 1/{SPEEDUP:g} of {REFERENCE_SECONDS} s, which is {limit:.3f} s",
                seconds <= limit,
                f"{seconds:.3f} s, 1/{REFERENCE_SECONDS / seconds:.0f}",
            ),
            verdict("Every ranking of up to 15 items proven optimal", exact == 1.0, f"share {exact:.2f}"),
            verdict("The search at least as fast as in the study", not slower, ", ".join(slower) or "at every size"),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run both tables and write ``rankings.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables: shows that it runs, proves nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the table")
    parser.add_argument("--learning", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.learning:
        print(json.dumps(learning()))
        return
    rows, repetitions = (QUICK_ROWS, 1) if given.quick else (ROWS, REPETITIONS)
    cases = [(kind, items) for kind in NOTE for items in rows]
    kemenys = {
        (kind, items): measure(kind, items, rows[items], 3 if given.quick else PROGRAM_ROWS[items], repetitions)
        for kind, items in track(cases, description="kemeny")
    }
    learned = {"this process": learning()} if given.quick else learning_elsewhere()
    blocks = [
        "*search* is the time from ready pair margins to rankings with their certificate, as the profiler sees it "
        "inside `consilience.kemeny(votes, weights)`; *study* measures the same for the prototype (14 items for our "
        "15). *kemeny* is the whole call, from an array of positions: checks, encoding, margins of 18 sources, "
        "search, and the distance to every source. *proven*: share of rankings known to be optimal. *scipy milp* is "
        "the full integer program of linear ordering on the first rows "
        f"({', '.join(f'{PROGRAM_ROWS[items]} of {items} items' for items in (5, 20, 50))}), at most "
        f"{PROGRAM_LIMIT:g} s each; *with milp* is ours with exact='milp' on the same rows, which turns to an integer "
        "program only for what it cannot prove otherwise; *ratio*: ours to scipy, where ours is *kemeny* if that "
        "proves all. *same cost*: rows that both prove, with equal cost.",
        kemeny_table(kemenys),
        "## Learning from 5000 rankings of 5 items by 18 sources",
        "`LabelModel(Rankings(5))`, a third of the weights U(.2, 1), the others U(.001, .01). The reference "
        f"implementation takes {REFERENCE_SECONDS} CPU seconds (7.19 to fit, 7.04 to predict, without building its "
        "objects).",
        learning_table(learned),
        "## Targets",
        "A quick run on small tables: targets are not judged." if given.quick else verdicts(kemenys, learned),
    ]
    settings = [
        "seed 1; weights as in an earlier study",
        f"CPU seconds, one thread, median of {repetitions} after a warm-up",
    ]
    command = f"python benchmarks/bench_rankings.py{' --quick' * given.quick}"
    write_results(given.results / "rankings.md", "Rankings: speed", command, settings, blocks)


if __name__ == "__main__":
    main()
