"""How long a newcomer waits: commands with and without compiled kernels on disk, what is compiled, and fits.

Every command runs in a process of its own, with a folder for compiled kernels that is empty (cold) or filled (warm),
by the Python of `--python`: that of a fresh installation, because pyarrow loads pandas wherever it finds it.
Small fits are of 1,000 items by ten sources, fit and predict, after one turn to warm up. Wall seconds matter to who
waits and CPU seconds to who compares, so both are given; targets are for wall seconds on an idle machine. Large fits
are compared with a Gram matrix that is timed in the same turn.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

# Before NumPy is imported: several threads would hide how much work is done.
os.environ |= {name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}

import numpy as np
from rich.progress import track

import consilience as cs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the script runs by its path

from benchmarks import bench_classes, bench_scale, bench_scores
from experiments.tables import fit_quietly, markdown_table, verdict, write_results

RESULTS = Path(__file__).resolve().parent / "results"
ITEMS, SOURCES, TURNS = 1000, 10, 5
#: Wall seconds: of a command that finds nothing compiled (None: it compiles nothing), and of one that finds everything.
COMMANDS: dict[str, tuple[float | None, float]] = {
    "--help": (None, 0.2),
    "--version": (None, 0.2),
    "label votes.csv -o labels.csv": (3.0, 0.7),
    "label long.csv -o labels.csv": (3.0, 0.7),
    "label scores.csv -o labels.csv": (3.0, 0.7),
    "label rankings.csv -o labels.csv": (3.0, 0.7),
    "demo -o stories": (6.0, 0.7),
}
QUICK_COMMANDS = ("--help", "label votes.csv -o labels.csv")
#: Label types and the milliseconds that fit and predict may take.
SPACES: dict[str, tuple[cs.LabelSpace, float]] = {
    "classes": (cs.Classes(3), 20.0),
    "scores": (cs.Scores(), 20.0),
    "rankings of 5": (cs.Rankings(5), 50.0),
    "tags": (cs.Tags(6), 50.0),
    "finite metric": (cs.FiniteMetric(np.abs(np.subtract.outer(np.arange(12.0), np.arange(12.0)))), 50.0),
    "sphere": (cs.Sphere(3), 50.0),
    "boxes": (cs.Boxes(), 100.0),
    "texts": (cs.Texts(), 100.0),
    "trees": (cs.DependencyTrees(), 100.0),
}
#: Turns of a large fit and its yardstick, the most that it may cost, and how much more an item of ten times as many.
LARGE_TURNS, CLASSES_LIMIT, SCORES_LIMIT, LINEAR = 5, 1.3, 2.5, 1.2
COMPILE_ALL = "import compileall, consilience; compileall.compile_dir(consilience.__path__[0], quiet=1)"
#: Runs a command and writes which kernels it compiled, and how long that took, to a file.
PROFILE = """
import json, sys, time
from numba.core import event
from consilience.cli import main

class Listener(event.Listener):
    begun, compiled = [], []

    def on_start(self, event):
        self.begun.append(time.process_time())

    def on_end(self, event):
        seconds = time.process_time() - self.begun.pop()
        if not self.begun:
            self.compiled.append((event.data["dispatcher"].py_func.__name__, seconds))

event.register("numba:compile", Listener())
main(sys.argv[2:], standalone_mode=False)
with open(sys.argv[1], "w") as file:
    json.dump(Listener.compiled, file)
"""


@dataclass(frozen=True)
class Seconds:
    """What a command took: wall and CPU seconds."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} ({self.cpu:.2f})"


@dataclass(frozen=True)
class Runner:
    """Runs a Python in a folder that holds the demo tables."""

    python: str
    folder: Path

    def run(self, arguments: Sequence[str], kernels: Path, stderr: int | None = None) -> Seconds:
        """Run it with these arguments, its compiled kernels in a folder of their own."""
        environment = os.environ | {"NUMBA_CACHE_DIR": str(kernels)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        command = [self.python, *arguments]
        out = subprocess.DEVNULL
        subprocess.run(command, cwd=self.folder, env=environment, check=True, stdout=out, stderr=stderr)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        return Seconds(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def median(turns: Sequence[Seconds]) -> Seconds:
    return Seconds(*(float(np.median([getattr(turn, name) for turn in turns])) for name in ("wall", "cpu")))


def time_command(command: str, runner: Runner, turns: int) -> tuple[Seconds, Seconds, list[tuple[str, float]]]:
    """Return what a command takes without and with compiled kernels, and which ones it compiles, in seconds each."""
    arguments = [*command.split(), *(["--force"] if command.startswith("label") else [])]
    with tempfile.TemporaryDirectory() as kernels:
        cold = runner.run(["-m", "consilience", *arguments], Path(kernels))
        warm = [runner.run(["-m", "consilience", *arguments], Path(kernels)) for _ in range(turns)]
    if COMMANDS[command][0] is None:
        return cold, median(warm), []
    with tempfile.TemporaryDirectory() as kernels:
        runner.run(["-c", PROFILE, "compiled.json", *arguments], Path(kernels))
    return cold, median(warm), json.loads((runner.folder / "compiled.json").read_text(encoding="utf-8"))


def time_fit(space: cs.LabelSpace, turns: int, items: int) -> tuple[float, float]:
    """Return wall and CPU milliseconds of one fit and predict, medians."""
    rng = np.random.default_rng(0)
    votes = cs.simulate(space, space.random(items, rng), np.linspace(0.3, 3.0, SOURCES), rng)
    taken = []
    for _ in range(turns + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        fit_quietly(cs.LabelModel(space, random_state=0), votes).predict(votes)
        taken.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = np.median(taken[1:], axis=0) * 1000.0
    return float(wall), float(cpu)


def time_large(quick: bool) -> tuple[list[list[str]], list[str]]:
    """Return rows and verdicts of large fits: CPU seconds, beside those of a Gram matrix, and per item of ever more."""
    scale = 1000 if quick else 10**6
    classes = bench_classes.Case(scale, 50, 2)
    matrix, _ = bench_classes.random_votes(classes)
    votes = bench_classes.as_votes(matrix)
    rows, judged = [], []

    def compare(what: str, fit: Callable[[], object], yardstick: Callable[[], object], most: float) -> None:
        turns = [[bench_classes.cpu_seconds(work) for work in (yardstick, fit)] for _ in range(LARGE_TURNS + 1)][1:]
        ratio = float(np.median([own / gram for gram, own in turns]))
        gram, own = np.median(turns, axis=0)
        rows.append([what, f"{own:.3f}", f"{gram:.3f}", f"{ratio:.2f}", f"{most:g}"])
        judged.append(verdict(f"fit of {what} at most {most:g} times the Gram", ratio <= most, f"{ratio:.2f}"))

    compare(
        f"{scale:,} x 50 classes",
        lambda: bench_classes.fit(votes, 2),
        lambda: bench_classes.one_hot_gram(matrix, 2),
        CLASSES_LIMIT,
    )
    scores, _ = bench_scores.random_votes(bench_scores.Case(scale, 20))
    of_scores = cs.Votes.from_array(scores)
    compare(
        f"{scale:,} x 20 scores",
        lambda: bench_scores.fit(of_scores),
        lambda: bench_scores.gram(scores),
        SCORES_LIMIT,
    )
    for kind in ("classes", "scores"):
        costs = [bench_scale.measure(bench_scale.Cell(kind, n, 10)).fit for n in (scale, 10 * scale)]
        growth = costs[1] / costs[0] / 10.0
        rows.append(
            [f"{10 * scale:,} x 10 {kind}", f"{costs[1]:.3f}", f"{10.0 * costs[0]:.3f}", f"{growth:.2f}", "1.2"]
        )
        claim = f"fit of {10 * scale:,} x 10 {kind} at most {LINEAR:g} times the cost per item of {scale:,}"
        judged.append(verdict(claim, growth <= LINEAR, f"{growth:.2f}"))
    return rows, judged


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all commands and fits and write ``latency.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few small runs: shows that it runs, proves nothing")
    parser.add_argument("--python", default=sys.executable, help="Python of the installation whose commands are timed")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the table")
    given = parser.parse_args(arguments)
    turns, items = (1, 50) if given.quick else (TURNS, ITEMS)
    commands = QUICK_COMMANDS if given.quick else tuple(COMMANDS)
    spaces = ("classes",) if given.quick else tuple(SPACES)
    rows, kernels, judged = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runner = Runner(given.python, folder)
        # An installation from a wheel has its bytecode; one from a checkout has it after the first run.
        runner.run(["-c", COMPILE_ALL], folder)
        runner.run(["-m", "consilience", "demo", "--tables", "-o", "."], folder)
        for command in track(commands, description="commands"):
            cold, warm, compiled = time_command(command, runner, turns)
            limit, limit_warm = COMMANDS[command]
            rows.append([f"`{command}`", "-" if limit is None else str(cold), str(warm)])
            shown = ", ".join(f"{kernel} {seconds:.1f}" for kernel, seconds in compiled)
            if compiled:
                total = sum(seconds for _, seconds in compiled)
                kernels.append([f"`{command}`", str(len(compiled)), f"{total:.1f}", shown])
            if limit is not None:
                judged.append(verdict(f"`{command}`, cold, within {limit:g} s", cold.wall <= limit, f"{cold.wall:.2f}"))
            judged.append(
                verdict(f"`{command}`, warm, within {limit_warm:g} s", warm.wall <= limit_warm, f"{warm.wall:.2f}")
            )
    fits = []
    for kind in track(spaces, description="fits"):
        space, most = SPACES[kind]
        wall, cpu = time_fit(space, turns, items)
        fits.append([kind, f"{wall:.0f}", f"{cpu:.0f}", f"{most:g}"])
        judged.append(verdict(f"fit and predict of {kind} within {most:g} ms", wall <= most, f"{wall:.0f}"))
    large, more = time_large(given.quick)
    judged += more
    blocks = [
        "## Commands\n\nWall (CPU) seconds of a whole process, from `python` to its end.",
        markdown_table(["`consilience ...`", "nothing compiled", "all compiled"], rows),
        "## What is compiled\n\nCPU seconds of each kernel with the ones that it calls.",
        markdown_table(["`consilience ...`", "kernels", "seconds", "each"], kernels),
        f"## Small fits\n\nMilliseconds of fit and predict, {items:,} items, {SOURCES} sources.",
        markdown_table(["label type", "wall", "CPU", "target"], fits),
        "## Large fits\n\nCPU seconds of a fit and of its yardstick: the Gram matrix of the votes (one-hot classes), "
        "or ten times the fit of a tenth of the items.",
        markdown_table(["votes", "fit", "yardstick", "ratio", "target"], large),
        "## Targets",
        "A quick run on small tables: targets are not judged." if given.quick else "\n".join(judged),
    ]
    settings = [f"medians of {turns} turns after one to warm up; a cold command runs once", "one BLAS thread"]
    command = f"python benchmarks/bench_latency.py{' --quick' * given.quick}"
    write_results(given.results / "latency.md", "Latency", command, settings, blocks)


if __name__ == "__main__":
    main()
