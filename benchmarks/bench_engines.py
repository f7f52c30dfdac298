"""Dask and Spark against memory: the same votes in Parquet files, the same labels, and what the engine costs on top.

Every way reads the files, fits and writes the labels to Parquet. Wall seconds, since the work is done in other
processes; all ways are timed in turn, in one run, once their cluster is up.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Before NumPy is imported, here and in the processes that are started: two workers have two cores to share.
os.environ |= {name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import consilience as cs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the script runs by its path

from experiments.tables import fit_quietly, markdown_table, verdict, write_results

RESULTS = Path(__file__).resolve().parent / "results"
SPACE = cs.Classes(3)
FILES = 8
ROW_GROUP = 65_536
REPETITIONS = 3
WORKERS = 2
#: The most that an engine may take, in times of memory, and what one of its processes may hold, in MB.
LIMITS = {"Dask, 2 processes": 1.3, "Spark, local[2]": 3.0}
MOST_MEMORY = 1000


@dataclass(frozen=True)
class Case:
    """How many votes there are."""

    n_items: int
    n_sources: int = 10

    def __str__(self) -> str:
        return f"n={self.n_items:.0e}, m={self.n_sources}, k=3".replace("e+0", "e")


#: One way to label the files: returns the votes, given their folder.
Opening = Callable[[Path], Any]


@dataclass
class Measured:
    """Seconds of every turn, and what came out."""

    fit: list[float] = field(default_factory=list)
    label: list[float] = field(default_factory=list)
    labels: Any = None
    weights: Any = None
    memory: float = 0.0


def write_votes(folder: Path, case: Case, *, text: bool = False) -> None:
    """Write random votes, a fifth of them missing, to several files."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    quality = np.linspace(0.45, 0.85, case.n_sources)
    for index, ids in enumerate(np.array_split(np.arange(case.n_items), FILES)):
        truth = rng.integers(0, 3, len(ids))
        columns: dict[str, Any] = {"item": [f"item {one:09d}" for one in ids.tolist()] if text else ids}
        for source in range(case.n_sources):
            vote = np.where(rng.random(len(ids)) < quality[source], truth, rng.integers(0, 3, len(ids)))
            columns[f"source_{source}"] = pa.array(vote.astype(np.int8), mask=rng.random(len(ids)) < 0.2)
        pq.write_table(pa.table(columns), folder / f"{index:02d}.parquet", row_group_size=ROW_GROUP)


def memory_below(process: int) -> list[float]:
    """Return how many MB the Python processes that this one started hold now, each."""
    held = []
    started = (task.read_text().split() for task in Path(f"/proc/{process}/task").glob("*/children"))
    for child in [child for children in started for child in children]:
        try:
            status = dict(line.split(":", 1) for line in Path(f"/proc/{child}/status").read_text().splitlines())
            held += memory_below(int(child))
        except (OSError, ValueError):  # it ended meanwhile
            continue
        if "python" in status["Name"] and "VmRSS" in status:
            held.append(int(status["VmRSS"].split()[0]) / 1000)
    return held


@contextmanager
def watched(measured: Measured) -> Iterator[None]:
    """Keep the most memory that one of the processes started by this one holds at any moment."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            measured.memory = max([measured.memory, *memory_below(os.getpid())])

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def in_memory(folder: Path) -> cs.Votes:
    return cs.read_votes(folder, SPACE)


def in_threads(folder: Path) -> cs.partitions.InMemoryPartitions:
    return cs.partitions.InMemoryPartitions.of(cs.read_votes(folder, SPACE), workers=WORKERS)


def in_files(folder: Path) -> Any:
    return cs.partitions.ParquetPartitions(folder, SPACE)


@contextmanager
def on_dask() -> Iterator[Opening]:
    """Start a cluster of two processes."""
    import distributed

    options: dict[str, Any] = {"processes": True, "dashboard_address": None, "memory_limit": 0}
    with (
        distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield lambda folder: cs.partitions.DaskPartitions(folder, SPACE, client=client)


@contextmanager
def on_spark() -> Iterator[Opening]:
    """Start a Spark of two threads, with a Python process for each."""
    session = cs.partitions.spark_session(f"local[{WORKERS}]", spark_ui_enabled="false", spark_driver_memory="1g")
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield lambda folder: cs.partitions.SparkPartitions(session.read.parquet(str(folder)), SPACE, item="item")
    finally:
        session.stop()


def take_a_turn(opened: Opening, votes: Path, target: Path, measured: Measured) -> None:
    """Fit and label once, and add the seconds."""
    start = time.perf_counter()
    data = opened(votes)
    model = fit_quietly(cs.LabelModel(SPACE, random_state=0), data)
    fitted = time.perf_counter()
    if isinstance(data, cs.Votes):
        cs.write_labels(target.with_suffix(".parquet"), model, data)
    else:
        cs.partitions.predict_to(model, data, target)
    measured.label.append(time.perf_counter() - fitted)
    measured.fit.append(fitted - start)
    written = target.with_suffix(".parquet") if isinstance(data, cs.Votes) else target
    measured.labels = pq.read_table(written, columns=["item", "label"]).sort_by("item")
    measured.weights = model.weight_
    if hasattr(data, "close"):
        data.close()


def seconds_of_ids(folder: Path, repetitions: int) -> float:
    """Return the median time to compare all ids, in a pass over them alone."""
    seconds = []
    for _ in range(repetitions + 1):
        start = time.perf_counter()
        cs.partitions.ParquetPartitions(folder, SPACE).check_ids()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds[1:]))


def installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def differing(one: Any, two: Any) -> int:
    """Return how many items have another label, or are in one of the tables only."""
    if one.column("item").combine_chunks() != two.column("item").combine_chunks():
        return max(len(one), len(two))
    left, right = (table.column("label").fill_null(-1).to_numpy() for table in (one, two))
    return int((left != right).sum())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all ways and write ``engines.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small table: shows that it runs, proves nothing")
    parser.add_argument("--turns", type=int, default=REPETITIONS, help="how often every way is timed")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the table")
    given = parser.parse_args(arguments)
    case, repetitions = (Case(3000, 5), 1) if given.quick else (Case(10**7), given.turns)
    ways: dict[str, Opening] = {"memory": in_memory, "memory, 2 threads": in_threads, "files": in_files}
    versions = {name: installed(name) for name in ("distributed", "pyspark", "pyarrow", "numpy")}
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write_votes(folder / "votes", case)
        if versions["distributed"]:
            ways["Dask, 2 processes"] = stack.enter_context(on_dask())
        if versions["pyspark"]:
            ways["Spark, local[2]"] = stack.enter_context(on_spark())
        measured = {name: Measured() for name in ways}
        for turn in range(repetitions + 1):
            for place, (name, opened) in enumerate(ways.items()):
                with watched(measured[name]):
                    take_a_turn(opened, folder / "votes", folder / f"labels-{turn}-{place}", measured[name])
        write_votes(folder / "text", case, text=True)
        ids = {"numbers": folder / "votes", "text": folder / "text"}
        compared = {name: seconds_of_ids(votes, repetitions) for name, votes in ids.items()}
    rows, judged = _rows(measured)
    blocks = [
        f"{case}, a fifth missing, in {FILES} Parquet files. Each way reads them, fits by the default method and "
        "writes the labels to Parquet. *Overhead* is the time of both relative to memory, in the same turn; *MB* is "
        "the most that one Python process of the engine held. The virtual machine of Spark has a heap of 1 GB. A load "
        "average above the number of cores says that other work ran beside: then all times are longer, and the "
        "overhead is rough.",
        markdown_table(["votes", "fit s", "label s", "overhead", "MB", "other labels", "weights differ by"], rows),
        "\n".join(judged),
        "Ids are compared once, in the first pass; alone, the comparison takes:",
        markdown_table(["ids", "seconds", "share of fit + label from files"], _id_rows(compared, measured["files"])),
    ]
    if given.quick:
        blocks.append("A quick run on a small table: times say nothing.")
    missing = [name for name in ("distributed", "pyspark") if versions[name] is None]
    if missing:
        blocks.append(f"Not installed, so not measured: {', '.join(missing)}.")
    settings = [
        ", ".join(f"{name} {version}" for name, version in versions.items() if version),
        f"wall seconds on {len(os.sched_getaffinity(0))} cores, load average {os.getloadavg()[0]:.0f}",
        f"medians of {repetitions} turn{'s' * (repetitions != 1)} after one to warm up",
    ]
    turns = f" --turns {given.turns}" if given.turns != REPETITIONS else ""
    command = f"python benchmarks/bench_engines.py{' --quick' * given.quick}{turns}"
    write_results(
        given.results / "engines.md", "Engines: the same labels, and what they cost", command, settings, blocks
    )


def _rows(measured: dict[str, Measured]) -> tuple[list[list[str]], list[str]]:
    plain = measured["memory"]
    whole = np.add(plain.fit, plain.label)[1:]
    rows, judged = [], []
    for name, one in measured.items():
        ratio = float(np.median(np.add(one.fit, one.label)[1:] / whole))
        other = differing(plain.labels, one.labels)
        apart = float(np.abs(one.weights - plain.weights).max())
        seconds = [f"{np.median(part[1:]):.2f}" for part in (one.fit, one.label)]
        held = f"{one.memory:.0f}" if name in LIMITS else "-"
        rows.append([name, *seconds, f"{ratio:.2f}", held, str(other), f"{apart:.0e}"])
        if name in LIMITS:
            judged += [
                verdict(f"{name}: the labels of memory", other == 0, f"{other} differ"),
                verdict(f"{name}: at most {LIMITS[name]:g} times memory", ratio <= LIMITS[name], f"{ratio:.2f}"),
                verdict(f"{name}: within {MOST_MEMORY} MB per worker", one.memory <= MOST_MEMORY, f"{held} MB"),
            ]
    return rows, judged or ["Neither Dask nor Spark is installed: nothing to judge."]


def _id_rows(compared: dict[str, float], files: Measured) -> list[list[str]]:
    whole = float(np.median(np.add(files.fit, files.label)[1:]))
    return [[name, f"{seconds:.2f}", f"{seconds / whole:.0%}"] for name, seconds in compared.items()]


if __name__ == "__main__":
    main()
