"""A hundred million class votes in Parquet: fit and write labels within a gigabyte, against snorkel in memory.

Both run in a process of their own, in turns on the same votes, and may use all cores: a rate is votes per second by
the clock on the wall, and is judged by that; CPU seconds, which depend less on who else is there, stand beside it.
Memory is the peak of the whole process, imports included; snorkel is given its votes as a NumPy array that is in
memory before its clock starts. The yardstick is pyarrow alone, in turn with ours: it reads the same columns into memory
once and writes the labels that ours wrote.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Before NumPy is imported; its threads would not help here.
os.environ |= {name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}
# The peer may have all cores; ours reads and decodes with Arrow's threads.
os.environ["PEER_THREADS"] = str(os.cpu_count() or 1)

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the script runs by its path

import numpy as np
from benchmarks.bench_classes import RESULTS, Case, random_votes
from benchmarks.bench_peers import RUNNER, SNORKEL, elsewhere
from benchmarks.environments.run_peer import megabytes, seconds
from experiments.tables import markdown_table, verdict, write_results

import consilience as cs

CASE, QUICK_CASE = Case(10**7, 10, 2), Case(20_000, 10, 2)
ROW_GROUP = 1 << 20
MEMORY_LIMIT, RATE_TARGET, PLAIN_LIMIT = 1000.0, 5.0, 2.0
TURNS = 3


def write_votes(case: Case, folder: Path) -> tuple[Path, Path]:
    """Write the same votes as a Parquet file with a column of ids, null where a source abstains, and as an array."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    matrix, _ = random_votes(case)
    np.save(folder / "votes.npy", matrix)
    names = [f"s{column}" for column in range(case.n_sources)]
    kinds = pa.schema([("item", pa.int64()), *((name, pa.int8()) for name in names)])
    with pq.ParquetWriter(folder / "votes.parquet", kinds) as writer:
        for start in range(0, case.n_items, ROW_GROUP):
            block = matrix[start : start + ROW_GROUP]
            cells = {name: pa.array(column, mask=column < 0) for name, column in zip(names, block.T, strict=True)}
            ids = pa.array(np.arange(start, start + len(block)))
            writer.write_table(pa.table({"item": ids, **cells}, schema=kinds), row_group_size=ROW_GROUP)
    return folder / "votes.parquet", folder / "votes.npy"


def ours(path: str) -> dict[str, Any]:
    """Fit on a file and write labels beside it, after a small file that compiles what has to be compiled."""
    warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
    space = cs.Classes(2)
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
        small = write_votes(Case(60_000, 10, 2), Path(folder))[0]
        _label(str(small), space, Path(folder) / "small")
        ready = megabytes()[0]
        votes = cs.partitions.ParquetPartitions(path, space, item="item")
        model = cs.LabelModel(space, random_state=0)
        fit = seconds(lambda: model.fit(votes))
        predict = seconds(lambda: cs.partitions.predict_to(model, votes, Path(folder) / "labels"))
        written = cs.partitions.ParquetPartitions(Path(folder) / "labels", sources=["label"], item="item").n_items
        peak = megabytes()[1]
        read, write = _plain(path, Path(folder))
    return {
        "fit": fit,
        "predict": predict,
        "read": read,
        "write": write,
        "ready": ready,
        "peak": peak,
        "written": written,
    }


def _plain(path: str, folder: Path) -> list[tuple[float, float]]:
    """Return what pyarrow takes to read the votes, and to write the labels in this folder once more."""
    import pyarrow.parquet as pq

    labels = pq.read_table(folder / "labels")
    repeated = ["label", "n_votes", "agreement"]
    stored: dict[str, Any] = {
        "use_dictionary": repeated,
        "column_encoding": {"item": "DELTA_BINARY_PACKED"},
        "compression": {name: "snappy" if name in repeated else "none" for name in labels.column_names},
    }
    works = (lambda: pq.read_table(path), lambda: pq.write_table(labels, folder / "again.parquet", **stored))
    return [seconds(work) for work in works]


def _label(path: str, space: cs.Classes, folder: Path) -> None:
    votes = cs.partitions.ParquetPartitions(path, space, item="item")
    cs.partitions.predict_to(cs.LabelModel(space, random_state=0).fit(votes), votes, folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all turns and write ``parquet.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small table: shows that it runs, proves nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the table")
    parser.add_argument("--turns", type=int, default=TURNS, help="repetitions of everything")
    parser.add_argument("--snorkel", type=Path, default=SNORKEL, help="the Python that has snorkel")
    parser.add_argument("--ours", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.ours:
        print(json.dumps(ours(given.ours)))
        return
    case, turns = (QUICK_CASE, 1) if given.quick else (CASE, given.turns)
    mine, theirs = [], []
    with tempfile.TemporaryDirectory() as name:
        parquet, array = write_votes(case, Path(name))
        size = parquet.stat().st_size / (1 << 20)
        for _ in range(turns):
            mine.append(elsewhere([sys.executable, __file__, "--ours", parquet]))
            if given.snorkel.exists():
                theirs.append(elsewhere([given.snorkel, RUNNER, "snorkel", array, case.k]))
    _write(case, mine, theirs, size, given.quick, given.results)


def _write(
    case: Case, mine: list[dict[str, Any]], theirs: list[dict[str, Any]], size: float, quick: bool, results: Path
) -> None:
    votes = case.n_items * case.n_sources

    def median(turns: list[dict[str, Any]], name: str, clock: int) -> float:
        return float(np.median([turn[name][clock] for turn in turns]))

    def row(title: str, turns: list[dict[str, Any]], memory: str) -> list[str]:
        cpu = [median(turns, name, 0) for name in ("fit", "predict")]
        wall = sum(median(turns, name, 1) for name in ("fit", "predict"))
        rates = [f"{1e-6 * votes / sum(cpu):.1f}", f"{1e-6 * votes / wall:.1f}"]
        return [title, f"{cpu[0]:.2f}", f"{cpu[1]:.2f}", f"{sum(cpu):.2f}", f"{wall:.2f}", *rates, memory]

    peak, ready = (float(np.median([turn[name] for turn in mine])) for name in ("peak", "ready"))
    rows = [row("consilience, Parquet to Parquet", mine, f"{peak:.0f} (of which {ready:.0f} before the votes)")]
    judged = [verdict(f"peak memory at most {MEMORY_LIMIT:g} MB", peak <= MEMORY_LIMIT, f"{peak:.0f} MB")]
    plain = [{"fit": turn["read"], "predict": turn["write"]} for turn in mine]
    rows.append(row("pyarrow, reads the votes (fit) and writes the labels (predict)", plain, "-"))
    times = [
        np.sum([turn["fit"], turn["predict"]], axis=0) / np.sum([turn["read"], turn["write"]], axis=0) for turn in mine
    ]
    by_cpu, by_clock = np.median(times, axis=0).tolist()
    claim = f"fit and labels within {PLAIN_LIMIT:g} times what pyarrow takes to read the votes and write the labels"
    shown = f"{by_clock:.2f} times by the clock on the wall, {by_cpu:.2f} times by CPU seconds"
    judged.append(verdict(claim, by_clock <= PLAIN_LIMIT, shown))
    if theirs:
        extra = float(np.median([turn["extra"] for turn in theirs]))
        rows.append(row(f"{theirs[0]['version']}, array to array", theirs, f"{extra:.0f} beyond the votes"))
        both = [sum(median(turns, name, 0) for name in ("fit", "predict")) for turns in (theirs, mine)]
        walls = [sum(median(turns, name, 1) for name in ("fit", "predict")) for turns in (theirs, mine)]
        factor, elapsed = both[0] / both[1], walls[0] / walls[1]
        claim = f"votes per second at least {RATE_TARGET:g} times snorkel's"
        shown = f"{elapsed:.1f} times by the clock on the wall, {factor:.1f} times by CPU seconds"
        judged.append(verdict(claim, elapsed >= RATE_TARGET, shown))
    columns = ["fit CPU s", "predict CPU s", "both", "both, wall s", "million votes per CPU s", "per wall s"]
    settings = [
        f"{case}, 30% abstention, {size:.0f} MB of Parquet in row groups of {ROW_GROUP:,}",
        f"medians of {len(mine)} turn{'s' * (len(mine) != 1)}; all {os.cpu_count()} cores for both; load at the end "
        f"{os.getloadavg()[0]:.0f}",
    ]
    blocks = [
        "*predict* goes over the votes again (those that were kept in memory are not read twice) and writes Parquet "
        "with item, label, confidence, n_votes and agreement; for "
        "snorkel it is predict_proba, into memory. Ours is timed after a small file that compiles what it needs.",
        markdown_table(["", *columns, "peak MB"], rows),
        "## Targets",
        "A quick run on a small table: targets are not judged." if quick else "\n".join(judged),
    ]
    command = f"python benchmarks/bench_parquet.py{' --quick' * quick}"
    write_results(results / "parquet.md", "A hundred million votes in Parquet", command, settings, blocks)


if __name__ == "__main__":
    main()
