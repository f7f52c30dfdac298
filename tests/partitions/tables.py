"""Votes to put into files, onto clusters and back."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
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


def in_memory(name: str, votes: cs.Votes | None = None, **settings: Any) -> cs.LabelModel:
    """Return the model of these votes as one table in memory."""
    table = cs.tables.wide_table(votes_of(name) if votes is None else votes, SPACES[name])
    return cs.LabelModel(SPACES[name], **settings).fit(cs.read_votes(table, SPACES[name]))


def assert_same_fit(expected: cs.LabelModel, model: cs.LabelModel) -> None:
    """Assert that two models counted the same votes and found the same qualities."""
    assert np.array_equal(expected._moments.both, model._moments.both)
    assert np.allclose(expected.weight_, model.weight_, rtol=1e-10, atol=1e-10)


def assert_same_labels(left: pa.Table, right: pa.Table) -> None:
    """Assert that two tables of labels hold the same; numbers up to rounding."""
    assert left.column_names == right.column_names
    for name in left.column_names:
        one, two = left.column(name).to_pylist(), right.column(name).to_pylist()
        if isinstance(one[0], float):
            assert np.allclose(np.array(one, float), np.array(two, float), rtol=1e-10, equal_nan=True)
        else:
            assert one == two


def poisoned(folder: Path, *cells: tuple[str, int, str | None], row_group_size: int = 50) -> Path:
    """Write votes of three classes to a file, with these cells (source, row, text) put in."""
    table = cs.tables.wide_table(votes_of("classes"), SPACES["classes"]).to_pydict()
    for source, row, text in cells:
        table[source][row] = text
    pq.write_table(pa.table(table), folder / "votes.parquet", row_group_size)
    return folder / "votes.parquet"
