"""Our own history: the same few operations timed at every commit, with the peak of what they allocate.

Run ``python -m pytest benchmarks/history -n 0 --benchmark-autosave --benchmark-compare``: it needs the extra ``bench``.
Results go to ``.benchmarks``, one file per run, and are compared with the last one.
"""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consilience as cs

N_ITEMS, N_SOURCES = 100_000, 10


def class_votes(n: int = N_ITEMS, m: int = N_SOURCES, observed: float = 0.7) -> cs.Votes:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(n, 1))
    codes = np.where(rng.random((n, m)) < rng.uniform(0.6, 0.9, m), truth, 1 - truth)
    matrix = np.where(rng.random((n, m)) < observed, codes, -1).astype(np.int8)
    return cs.Votes.from_matrix(matrix, sources=[f"s{column}" for column in range(m)])


def score_votes() -> cs.Votes:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(N_ITEMS, 1))
    return cs.Votes.from_array(truth + rng.uniform(0.4, 2.0, N_SOURCES) * rng.normal(size=(N_ITEMS, N_SOURCES)))


def ranking_votes() -> cs.Votes:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(N_ITEMS // 5, 1, 5))
    noise = rng.uniform(0.3, 1.5, (N_SOURCES, 1)) * rng.normal(size=(N_ITEMS // 5, N_SOURCES, 5))
    return cs.Votes.from_array(np.argsort(np.argsort(truth + noise, axis=2), axis=2).astype(np.int8))


KINDS: dict[str, tuple[Callable[[], cs.Votes], Any]] = {
    "classes": (class_votes, cs.Classes(2)),
    "crowd": (lambda: class_votes(20_000, 300, 0.05), cs.Classes(2)),
    "scores": (score_votes, cs.Scores(mean=0.0, variance=1.0)),
    "rankings": (ranking_votes, cs.Rankings(5)),
}


@pytest.fixture(autouse=True)
def _without_findings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        yield


def timed(benchmark: Any, work: Callable[[], object]) -> None:
    """Time an operation, and keep the peak of what it allocates beside the times."""
    work()  # compiles what has to be compiled
    tracemalloc.start()
    work()
    benchmark.extra_info["peak_megabytes"] = round(tracemalloc.get_traced_memory()[1] / 2**20, 1)
    tracemalloc.stop()
    benchmark.pedantic(work, rounds=5)


@pytest.mark.parametrize("kind", KINDS)
def test_fit(kind: str, benchmark: Any) -> None:
    make, space = KINDS[kind]
    votes = make()
    timed(benchmark, lambda: cs.LabelModel(space, random_state=0).fit(votes))


@pytest.mark.parametrize("kind", KINDS)
def test_predict(kind: str, benchmark: Any) -> None:
    make, space = KINDS[kind]
    votes = make()
    model = cs.LabelModel(space, random_state=0).fit(votes)
    timed(benchmark, lambda: model.predict(votes))


def test_votes_in_parquet(benchmark: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    votes = class_votes()
    columns = {
        name: pa.array(votes.labels[:, place], mask=~votes.observed[:, place])
        for place, name in enumerate(votes.sources)
    }
    pq.write_table(pa.table({"item": np.arange(len(votes)), **columns}), tmp_path / "votes.parquet")

    def label() -> None:
        parts = cs.partitions.ParquetPartitions(tmp_path / "votes.parquet", cs.Classes(2), item="item")
        model = cs.LabelModel(cs.Classes(2), random_state=0).fit(parts)
        cs.partitions.predict_to(model, parts, tmp_path / "labels", force=True)

    timed(benchmark, label)
