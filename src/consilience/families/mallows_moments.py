"""Pair moments of rankings: how often two sources order two items the same way, exactly as the weights predict it.

A pair of items k places apart in the truth keeps its order with mean sign c_k(theta), so two independent sources agree
with mean sign ``sum_k w_k c_k(theta_a) c_k(theta_b)``; w_k is the share of pairs at gap k. This holds whatever the law
of the truth. Of partial rankings the gaps inside the two subsets are hypergeometric.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import Sums
from consilience.families.pair_fits import MANY_SOURCES, pair_slopes, uncorrelated_influence
from consilience.solvers.mallows import hypergeometric_retention, pair_retention, pair_retention_slope
from consilience.solvers.robust import PairMomentFit, fit_pair_moments
from consilience.solvers.triplets import rank_one, triplet_loadings

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from consilience.families.mallows_problem import Problem

__all__ = ["PairAgreement", "agreement_of", "moment_fit", "predicted_agreement"]

#: A pair of sources needs this many pairs of items that both order.
MIN_CO_ORDERED = 10
#: Items of average scatter that every pair of many sources borrows.
BORROWED = 10.0
#: From so many pairs on, those with equal shares of gaps are looked for.
MANY_PAIRS = 2000
#: Fits start from weights read off so many points, closer together near zero, up to this size.
START_POINTS, START_LIMIT = 81, 12.0


@dataclass(frozen=True)
class PairAgreement:
    """Mean sign of agreement of two sources ``(m, m)``, its standard error, and the influence of groups of items."""

    both: FloatArray
    value: FloatArray
    standard_error: FloatArray
    influence: FloatArray

    def usable(self, dependent: BoolArray) -> BoolArray:
        """Return the pairs that may be used as independent."""
        usable: BoolArray = (self.both >= MIN_CO_ORDERED) & ~dependent
        np.fill_diagonal(usable, False)
        return usable


def agreement_of(sums: Sums) -> PairAgreement:
    """Return the agreement held in the sums."""
    both_by_group = sums["pair_both"].astype(np.float64)
    both = both_by_group.sum(axis=0)
    count = np.maximum(both, 1.0)
    value = sums["pair_agree"].sum(axis=0) / count
    scatter = sums["agree_agree"] - 2 * value * sums["agree_both"] + value**2 * sums["both_both"]
    if len(both) >= MANY_SOURCES:
        scatter = _pooled(scatter, sums["both"].astype(np.float64))
    error = np.sqrt(np.maximum(scatter, 0.0)) / count
    used = (both > 0) & ~np.eye(len(both), dtype=bool)
    typical = float(np.median(error[used])) if used.any() else 1.0
    error = np.maximum(error, max(0.03 * typical, 1e-9))
    if len(both_by_group) == 1:  # groups were not kept, of so many sources
        return PairAgreement(both, value, error, uncorrelated_influence(error))
    return PairAgreement(both, value, error, (sums["pair_agree"] - both_by_group * value) / count)


def _pooled(scatter: FloatArray, items: FloatArray) -> FloatArray:
    """Return sums of squares as if every pair of sources had some items more, of average scatter.

    Of hundreds of sources a pair shares a handful of items, which may agree by luck.
    """
    pairs = ~np.eye(len(items), dtype=bool)
    average = float(scatter[pairs].sum()) / max(float(items[pairs].sum()), 1.0)
    return (scatter + BORROWED * average) * items / (items + BORROWED)


def moment_fit(problem: Problem, start: FloatArray | None = None) -> PairMomentFit:
    """Fit the exact pair moments under a Cauchy loss, from several starts or, of many sources, from one given."""
    usable, pairs = problem.usable, problem.pairs
    m = len(usable)
    left, right = np.nonzero(np.triu(usable))
    if len(left) == 0:
        return PairMomentFit(np.full(m, 0.5), np.zeros(0), 1.0, 0.0, np.zeros((0, m)), np.zeros(0), True)
    low, high = problem.family.bounds
    model = _Model.of(problem, usable)
    starts = [start] if start is not None and m >= MANY_SOURCES else _starts(problem)
    return fit_pair_moments(
        model.moment,
        model.jacobian,
        pairs.value[left, right],
        pairs.standard_error[left, right],
        [np.clip(one, low + 0.01, high - 0.01) for one in starts],
        lower=low,
        upper=high,
        corrected_scatter=m >= 7,
    )


def _starts(problem: Problem) -> list[FloatArray]:
    usable, pairs = problem.usable, problem.pairs
    median = triplet_loadings(pairs.value, usable, pairs.standard_error, combine="median").value
    precision = np.where(usable, 1.0 / pairs.standard_error**2, 0.0)
    completed = rank_one(pairs.value, usable, precision, median).value
    if len(usable) >= MANY_SOURCES:  # all pairs together say where to start
        return [_from_retention(problem, np.clip(completed, -0.99, 0.99))]
    starts = [_from_retention(problem, np.clip(one, -0.99, 0.99)) for one in (median, completed)]
    return [*starts, np.full(len(usable), 0.5)]


def predicted_agreement(problem: Problem, usable: BoolArray, weight: FloatArray) -> FloatArray:
    """Return the mean sign of agreement of each usable pair, if independent, ``(pairs,)``."""
    return _Model.of(problem, usable).moment(weight)


def _from_retention(problem: Problem, retention: FloatArray) -> FloatArray:
    """Return weights to start from, read off a grid."""
    weight = np.zeros(len(retention))
    grid = np.linspace(-1.0, 1.0, START_POINTS) ** 3 * START_LIMIT
    kept = pair_retention(grid, problem.family.largest - 1)
    for source in np.flatnonzero(problem.active):
        pairs = problem.curve(int(source)).pairs
        weight[source] = np.interp(retention[source], kept[:, : len(pairs)] @ pairs / pairs.sum(), grid)
    return weight


@dataclass(frozen=True)
class _Model:
    """The predicted agreement of each usable pair, with its derivatives.

    Either `gaps` ``(pairs, r - 1)``, the share of pairs of items at each gap (every source ranks all items of a row),
    or `sizes` ``(pairs, r + 1, r + 1)``, their share by how many items the two sources rank.
    """

    left: IntArray
    right: IntArray
    items: int
    gaps: FloatArray | None
    sizes: FloatArray | None

    @classmethod
    def of(cls, problem: Problem, usable: BoolArray) -> _Model:
        m = len(usable)
        rows, columns = np.triu_indices(m, 1)
        chosen = usable[rows, columns]
        table = problem.sums["sizes"][chosen].astype(np.float64)
        table /= np.maximum(table.sum(axis=tuple(range(1, table.ndim)), keepdims=True), 1.0)
        items = problem.family.largest
        if problem.is_partial and table.ndim == 3 and not problem.family.ragged:
            return cls(rows[chosen], columns[chosen], items, None, table)
        if table.ndim == 3:  # by the larger of the two sizes
            larger = np.maximum.outer(np.arange(items + 1), np.arange(items + 1))
            table = table.reshape(len(table), -1) @ (larger.reshape(-1, 1) == np.arange(items + 1)).astype(np.float64)
        size, gap = np.arange(items + 1)[:, None], np.arange(1, items)
        share = np.maximum(size - gap, 0) / np.maximum(size * (size - 1) / 2.0, 1.0)
        return cls(rows[chosen], columns[chosen], items, table @ share, None)

    @cached_property
    def alike(self) -> FloatArray | None:
        """The shares of the gaps, if they are the same for all of many pairs."""
        gaps = self.gaps
        if gaps is None or len(gaps) < MANY_PAIRS or bool((gaps != gaps[0]).any()):
            return None
        return np.asarray(gaps[0])

    def moment(self, weight: FloatArray) -> FloatArray:
        retention = pair_retention(weight, self.items - 1)
        return self._combine(self._spread(retention), self._spread(retention))

    def jacobian(self, weight: FloatArray) -> FloatArray | csr_array:
        value = self._spread(pair_retention(weight, self.items - 1))
        slope = self._spread(pair_retention_slope(weight, self.items - 1))
        return pair_slopes(self._combine(slope, value), self._combine(value, slope), self.left, self.right, len(weight))

    def _spread(self, retention: FloatArray) -> FloatArray:
        return retention if self.sizes is None else hypergeometric_retention(retention, self.items)

    def _combine(self, one: FloatArray, two: FloatArray) -> FloatArray:
        if self.alike is not None:  # as a product of matrices, which is quicker than pair by pair
            product: FloatArray = ((one * self.alike) @ two.T)[self.left, self.right]
            return product
        if self.gaps is not None or self.sizes is None:
            agreement: FloatArray = (one[self.left] * two[self.right] * np.asarray(self.gaps)).sum(axis=1)
            return agreement
        gap = np.arange(1, self.items)
        share = (self.items - gap) / (self.items * (self.items - 1) / 2.0)
        mixed: FloatArray = np.einsum(
            "psu,psk,puk,k->p", self.sizes, one[self.left], two[self.right], share, optimize=True
        )
        return mixed
