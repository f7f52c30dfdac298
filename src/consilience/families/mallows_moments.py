"""Pair moments of rankings: how often two sources order two items the same way, exactly as the weights predict it.

A pair of items k places apart in the truth keeps its order with mean sign c_k(theta), so two independent sources agree
with mean sign ``sum_k w_k c_k(theta_a) c_k(theta_b)``; w_k is the share of pairs at gap k. This holds whatever the law
of the truth. Of partial rankings the gaps inside the two subsets are hypergeometric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import Sums
from consilience.solvers.mallows import hypergeometric_retention, pair_retention, pair_retention_slope
from consilience.solvers.robust import PairMomentFit, fit_pair_moments
from consilience.solvers.triplets import rank_one, triplet_loadings

if TYPE_CHECKING:
    from consilience.families.mallows_problem import Problem

__all__ = ["PairAgreement", "agreement_of", "moment_fit", "predicted_agreement"]

#: A pair of sources needs this many pairs of items that both order.
MIN_CO_ORDERED = 10
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
    error = np.sqrt(np.maximum(scatter, 0.0)) / count
    used = (both > 0) & ~np.eye(len(both), dtype=bool)
    typical = float(np.median(error[used])) if used.any() else 1.0
    influence = (sums["pair_agree"] - both_by_group * value) / count
    return PairAgreement(both, value, np.maximum(error, max(0.03 * typical, 1e-9)), influence)


def moment_fit(problem: Problem) -> PairMomentFit:
    """Fit the exact pair moments under a Cauchy loss, from several starts."""
    usable, pairs = problem.usable, problem.pairs
    m = len(usable)
    left, right = np.nonzero(np.triu(usable))
    if len(left) == 0:
        return PairMomentFit(np.full(m, 0.5), np.zeros(0), 1.0, 0.0, np.zeros((0, m)), np.zeros(0), True)
    low, high = problem.family.bounds
    model = _Model.of(problem, usable)
    median = triplet_loadings(pairs.value, usable, pairs.standard_error, combine="median").value
    precision = np.where(usable, 1.0 / pairs.standard_error**2, 0.0)
    completed = rank_one(pairs.value, usable, precision, median).value
    starts = [_from_retention(problem, np.clip(one, -0.99, 0.99)) for one in (median, completed)]
    return fit_pair_moments(
        model.moment,
        model.jacobian,
        pairs.value[left, right],
        pairs.standard_error[left, right],
        [np.clip(start, low + 0.01, high - 0.01) for start in (*starts, np.full(m, 0.5))],
        lower=low,
        upper=high,
        corrected_scatter=m >= 7,
    )


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
            table = np.stack([np.bincount(larger.ravel(), part.ravel(), minlength=items + 1) for part in table])
        size, gap = np.arange(items + 1)[:, None], np.arange(1, items)
        share = np.maximum(size - gap, 0) / np.maximum(size * (size - 1) / 2.0, 1.0)
        return cls(rows[chosen], columns[chosen], items, table @ share, None)

    def moment(self, weight: FloatArray) -> FloatArray:
        retention = pair_retention(weight, self.items - 1)
        return self._combine(self._spread(retention), self._spread(retention))

    def jacobian(self, weight: FloatArray) -> FloatArray:
        value = self._spread(pair_retention(weight, self.items - 1))
        slope = self._spread(pair_retention_slope(weight, self.items - 1))
        result = np.zeros((len(self.left), len(weight)))
        rows = np.arange(len(self.left))
        result[rows, self.left] = self._combine(slope, value)
        result[rows, self.right] = self._combine(value, slope)
        return result

    def _spread(self, retention: FloatArray) -> FloatArray:
        return retention if self.sizes is None else hypergeometric_retention(retention, self.items)

    def _combine(self, one: FloatArray, two: FloatArray) -> FloatArray:
        if self.gaps is not None or self.sizes is None:
            agreement: FloatArray = (one[self.left] * two[self.right] * np.asarray(self.gaps)).sum(axis=1)
            return agreement
        gap = np.arange(1, self.items)
        share = (self.items - gap) / (self.items * (self.items - 1) / 2.0)
        mixed: FloatArray = np.einsum(
            "psu,psk,puk,k->p", self.sizes, one[self.left], two[self.right], share, optimize=True
        )
        return mixed
