"""Votes to put into files, onto clusters and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import consilience as cs

SPACES = {
    "classes": cs.Classes(["ham", "spam", "egg"]),
    "codes": cs.Classes(3),
    "scores": cs.Scores(),
    "rankings": cs.Rankings(["a", "b", "c", "d"]),
    "vectors": cs.Vectors(2),
}


def votes_of(name: str, n: int = 240, m: int = 5, seed: int = 0) -> cs.Votes:
    """Return votes of sources of different quality with named items and some abstentions."""
    space = SPACES[name]
    rng = np.random.default_rng(seed)
    chance = float(space.law.expected_cost(np.zeros(1))[0])
    if not np.isfinite(chance):
        chance = 2.0
    weights = space.law.weight_from_cost(chance * np.linspace(0.1, 0.6, m))
    drawn = cs.simulate(space, space.random(n, rng), weights, rng, coverage=0.8)
    items = np.array([f"item {row:04d}" for row in range(n)], dtype=object)
    names = tuple(f"source {letter}" for letter in "abcdefgh"[:m])
    return cs.Votes(drawn.labels, drawn.observed, names, items, spelling=np.dtype(object))


def write_folder(folder: Path, votes: cs.Votes, name: str, cuts: list[int], row_group_size: int) -> Path:
    """Write votes to files that end at the given rows, each in row groups of at most so many rows."""
    folder.mkdir(parents=True, exist_ok=True)
    table = cs.tables.wide_table(votes, SPACES[name])
    ends = [*sorted(cuts), len(votes)]
    start = 0
    for index, end in enumerate(ends):
        if end > start:
            pq.write_table(table.slice(start, end - start), folder / f"{index:03d}.parquet", row_group_size)
        start = max(start, end)
    return folder
