"""What a product of families needs to know about one field: its family, its passes, its share of the sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.exceptions import ConsilienceError
from consilience.families.base import Chunk, Family, Passes, Sums
from consilience.families.records import part_of

__all__ = ["Factor", "FieldPasses", "of_field", "prefixed", "sums_of", "unrelated_cost"]

#: Pairs of votes on different items that show how far apart unrelated votes are.
MISMATCHES = 2000


@dataclass(frozen=True, eq=False)
class Factor:
    """One field of a product.

    Parameters
    ----------
    cost
        ``(n, ...), (n, ...) -> (n,)``.
    weight
        How much the field counts beside the others.
    takes_prior
        Whether a named prior means something for this field.
    """

    family: Family
    cost: Callable[[Batch, Batch], FloatArray]
    weight: float = 1.0
    takes_prior: bool = False


@dataclass(frozen=True)
class FieldPasses:
    """Passes that show one field of the votes."""

    passes: Passes
    name: str
    readable: Callable[[Chunk], Chunk]

    @property
    def n_items(self) -> int:
        return self.passes.n_items

    @property
    def n_sampled(self) -> int:
        return self.passes.n_sampled

    @property
    def complete(self) -> bool:
        return self.passes.complete

    def over_all(self, function: Callable[[Chunk], Sums]) -> Sums:
        return self.passes.over_all(lambda chunk: function(self._field(chunk)))

    def over_sample(self, function: Callable[[Chunk], Sums]) -> Sums:
        return self.passes.over_sample(lambda chunk: function(self._field(chunk)))

    def _field(self, chunk: Chunk) -> Chunk:
        return part_of(self.readable(chunk), self.name)


@contextmanager
def of_field(name: str) -> Iterator[None]:
    """Say in an error of the library which field it is about."""
    try:
        yield
    except ConsilienceError as error:
        error.args = (f"field {name!r}: {error}",)
        raise


def sums_of(sums: Sums, name: str) -> Sums:
    """Return the sums of one field."""
    start = f"{name}/"
    return Sums({key.removeprefix(start): value for key, value in sums.parts.items() if key.startswith(start)})


def prefixed(name: str, sums: Sums) -> dict[str, Any]:
    """Return the sums of one field under names that tell the field."""
    return {f"{name}/{key}": value for key, value in sums.parts.items()}


def unrelated_cost(adapted: Factor, before: Factor, sample: Chunk, seed: int) -> tuple[float, float]:
    """Return the cost of unrelated labels and its standard error: as the family knows it, else as votes tell it.

    A fit that learns how far the truth spreads tells it better, see `Family.unrelated_truth`.
    """
    known = (before if before.family.knows_scale else adapted).family.unrelated_cost
    if 0.0 < known < np.inf:
        return known, 0.0
    seen, error = _mismatched(adapted, sample, seed)
    if 0.0 < seen < np.inf:
        return seen, error
    assumed = before.family.unrelated_cost
    return (assumed if 0.0 < assumed < np.inf else 1.0), 0.0


def _mismatched(factor: Factor, sample: Chunk, seed: int) -> tuple[float, float]:
    """Return the mean cost of votes on different items, and its jackknife error over groups of items."""
    rows, columns = np.nonzero(sample.observed)
    rng = np.random.default_rng(seed)
    left = rng.permutation(len(rows))[:MISMATCHES]
    right = rng.permutation(len(rows))[:MISMATCHES]
    apart = rows[left] != rows[right]
    left, right = left[apart], right[apart]
    if len(left) == 0:
        return float("nan"), 0.0
    cost = factor.cost(sample.labels[rows[left], columns[left]], sample.labels[rows[right], columns[right]])
    one, two = sample.groups[rows[left]], sample.groups[rows[right]]
    kept = [(one != group) & (two != group) for group in np.unique(np.concatenate([one, two]))]
    without = [cost[pairs].mean() for pairs in kept if pairs.any()]  # a pair goes with either of its items
    error = float(np.sqrt((len(without) - 1) * np.var(without))) if len(without) > 1 else 0.0
    return float(cost.mean()), error
