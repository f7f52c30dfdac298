"""Our own history: ten typical calls, so that no change makes one of them much slower unnoticed.

``make bench-check`` times each call in turn with a yardstick of plain NumPy and compares their ratio with that of the
stored run; more than half as much again fails. ``make bench-store`` stores a new run, on an idle machine and with a
reason in the commit. CPU seconds, so that whoever else uses the machine matters little.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consilience as cs

STORED = Path(__file__).resolve().parent / "stored.json"
#: How much slower than in the stored run a call may be.
SLOWER = 1.5
ROUNDS = 7


def yardstick() -> None:
    """Do what fits are made of: a large product, and many small calls."""
    rng = np.random.default_rng(0)
    large, small = rng.random((65_536, 30)), rng.random((10, 10)) + 10.0 * np.eye(10)
    large.T @ large
    for _ in range(1000):
        np.linalg.solve(small, small.sum(axis=0))


def class_votes(n: int, m: int = 10, observed: float = 0.7) -> cs.Votes:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(n, 1))
    codes = np.where(rng.random((n, m)) < rng.uniform(0.6, 0.9, m), truth, 1 - truth)
    matrix = np.where(rng.random((n, m)) < observed, codes, -1).astype(np.int8)
    return cs.Votes.from_matrix(matrix, sources=[f"s{column}" for column in range(m)])


def simulated(space: cs.LabelSpace, n: int) -> cs.Votes:
    rng = np.random.default_rng(0)
    return cs.simulate(space, space.random(n, rng), np.linspace(0.3, 3.0, 10), rng)


def labeled(space: cs.LabelSpace, votes: cs.Votes) -> Callable[[Path], object]:
    return lambda _: cs.LabelModel(space, random_state=0).fit(votes).predict(votes)


def of_type(space: cs.LabelSpace, n: int) -> Callable[[Path], object]:
    return labeled(space, simulated(space, n))


def in_parquet(folder: Path) -> None:
    parts = cs.partitions.ParquetPartitions(folder / "votes.parquet", cs.Classes(2), item="item")
    model = cs.LabelModel(cs.Classes(2), random_state=0).fit(parts)
    cs.partitions.predict_to(model, parts, folder / "labels", force=True)


#: Fit and predict, of a size to wait for in a notebook, and of one where throughput counts.
CALLS: dict[str, Callable[[], Callable[[Path], object]]] = {
    "classes, 1,000 items": lambda: of_type(cs.Classes(3), 1000),
    "scores, 1,000 items": lambda: of_type(cs.Scores(), 1000),
    "rankings of 5, 1,000 items": lambda: of_type(cs.Rankings(5), 1000),
    "boxes, 1,000 items": lambda: of_type(cs.Boxes(), 1000),
    "texts, 1,000 items": lambda: of_type(cs.Texts(), 1000),
    "classes, 100,000 items": lambda: labeled(cs.Classes(2), class_votes(100_000)),
    "classes of a crowd of 300, 20,000 items": lambda: labeled(cs.Classes(2), class_votes(20_000, 300, 0.05)),
    "scores, 100,000 items": lambda: of_type(cs.Scores(), 100_000),
    "rankings of 5, 20,000 items": lambda: of_type(cs.Rankings(5), 20_000),
    "classes in Parquet, 100,000 items": lambda: in_parquet,
}


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_no_slower_than_in_the_stored_run(name: str, tmp_path: Path, request: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if "Parquet" in name:
        votes = class_votes(100_000)
        cells = zip(votes.sources, votes.labels.T, votes.observed.T, strict=True)
        columns = {source: pa.array(labels, mask=~observed) for source, labels, observed in cells}
        pq.write_table(pa.table({"item": np.arange(len(votes)), **columns}), tmp_path / "votes.parquet")
    call = CALLS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        call(tmp_path)  # compiles what has to be compiled
        ratios = [cpu_seconds(lambda: call(tmp_path)) / cpu_seconds(yardstick) for _ in range(ROUNDS)]
    ratio = round(float(np.median(ratios)), 3)
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    if request.config.getoption("--store"):
        STORED.write_text(json.dumps(stored | {name: ratio}, indent=2) + "\n", encoding="utf-8")
    else:
        assert ratio <= SLOWER * stored[name], f"{name}: {ratio} yardsticks, {stored[name]} in the stored run"
