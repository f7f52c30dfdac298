"""Several votes of one source on one item: refused, averaged, or taken apart into runs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from consilience.exceptions import InvalidVotesError
from consilience.tables.frames import Column

__all__ = ["REPEATS", "average_repeats", "check_single_votes", "separate_repeats"]

REPEATS = ("refuse", "average", "separate")

Codes = npt.NDArray[np.intp]


def check_single_votes(cells: Codes, item: Column, source: Column, label: Column) -> None:
    """Raise if a source votes twice on an item; `cells` numbers item and source of every row together."""
    order = np.argsort(cells, kind="stable")
    again = np.flatnonzero(np.diff(cells[order]) == 0)
    if not len(again):
        return
    earliest = again[np.argmin(order[again + 1])]
    first, second = int(order[earliest]), int(order[earliest + 1])
    votes = ["null" if label.null[row] else repr(label.values[row : row + 1].tolist()[0]) for row in (first, second)]
    who, what = (column.values[first : first + 1].tolist()[0] for column in (source, item))
    raise InvalidVotesError(
        f"Source {who!r} votes twice on item {what!r}: {votes[0]} in row {first} and {votes[1]} "
        f"in row {second}. Aggregate repeated votes first, or give them different source names; "
        f'repeats="average" takes means of numbers, repeats="separate" makes every run a source of its own.'
    )


def average_repeats(cells: Codes, label: Column) -> tuple[Codes, Column]:
    """Return every cell once, with the mean of its labels that are not null."""
    if label.values.dtype.kind not in "biuf":
        kind = next((type(value).__name__ for value in label.values[~label.null].tolist()), "nothing")
        raise InvalidVotesError(
            f'repeats="average" needs labels that are numbers, not {kind}. Use repeats="separate", or aggregate '
            "repeated votes first."
        )
    unique, place = np.unique(cells, return_inverse=True)
    seen = np.bincount(place, weights=~label.null, minlength=len(unique))
    numbers = np.where(label.null, 0.0, label.values.astype(np.float64))
    total = np.bincount(place, weights=numbers, minlength=len(unique))
    return unique, Column(total / np.maximum(seen, 1.0), seen == 0)


def separate_repeats(
    cells: Codes, source: Codes, names: tuple[str, ...]
) -> tuple[Codes, tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Return the source of every row, the names of sources, and the pairs of runs of one source.

    The k-th vote of "judge" on an item comes from "judge #k", if "judge" repeats any vote.

    Parameters
    ----------
    source
        Code of the source of every row.
    names
        Names by code.
    """
    order = np.argsort(cells, kind="stable")
    begins = np.append(True, np.diff(cells[order]) != 0)
    start = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    run = np.empty(len(cells), dtype=np.intp)
    run[order] = np.arange(len(cells)) - start
    runs = np.zeros(len(names), dtype=np.intp)
    np.maximum.at(runs, source, run + 1)
    apart: list[str] = []
    pairs: list[tuple[str, str]] = []
    for name, count in zip(names, runs.tolist(), strict=True):
        own = [name] if count == 1 else [f"{name} #{number}" for number in range(1, count + 1)]
        taken = next((one for one in own if count > 1 and one in names), None)
        if taken is not None:
            raise InvalidVotesError(
                f"Source {name!r} repeats votes and {taken!r} is the name of another source. Rename one of them."
            )
        apart += own
        pairs += combinations(own, 2)
    first = np.cumsum(runs) - runs
    return first[source] + run, tuple(apart), tuple(pairs)
