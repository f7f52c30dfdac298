"""Pair moments from distances: what two sources cost each other, and the product behind it where there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import GROUPS, Sums
from consilience.solvers.readings import PairReading, Readings

__all__ = [
    "MODEL_ERROR",
    "PairCosts",
    "blend",
    "excess_correlation",
    "gold_costs",
    "gold_sums",
    "kept_share",
    "pair_costs",
    "pair_sums",
    "shrunk_costs",
    "supported_reading",
]

#: A pair needs this many items on which both vote.
MIN_CO_VOTES = 5

#: Once sources are known to depend on each other, pair costs determine that of a source up to this share of chance.
MODEL_ERROR = 0.05

#: cost(rows, a, b) -> (len(rows),)
PairCost = Callable[[IntArray, int, int], FloatArray]


@dataclass(frozen=True)
class PairCosts:
    """Pair quantities ``(m, m)``, with the influence ``(groups, m, m)`` of each group of items on them.

    `product` is the mean product of two votes, for spaces that define one; `count` says on how many items a pair
    rests.
    """

    count: FloatArray
    cost: FloatArray
    cost_error: FloatArray
    cost_influence: FloatArray
    product: FloatArray
    product_error: FloatArray
    product_influence: FloatArray

    def usable(self, dependent: BoolArray) -> BoolArray:
        """Return the pairs that may be used as independent."""
        usable: BoolArray = (self.count >= MIN_CO_VOTES) & ~dependent
        np.fill_diagonal(usable, False)
        return usable


def pair_sums(
    cost: PairCost, observed: BoolArray, groups: IntArray, product: PairCost | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Return the additive sums behind `PairCosts`, with those of a product of the two votes where one is given."""
    m = observed.shape[1]
    count = np.zeros((GROUPS, m, m), dtype=np.int64)
    totals = {name: np.zeros((GROUPS, m, m)) for name in ("pair_cost", "pair_product")}
    squares = {f"{name}_square": np.zeros((m, m)) for name in totals}
    functions = {"pair_cost": cost} if product is None else {"pair_cost": cost, "pair_product": product}
    for a in range(m):
        for b in range(a + 1, m):
            rows = np.flatnonzero(observed[:, a] & observed[:, b])
            if len(rows) == 0:
                continue
            where = groups[rows]
            count[:, a, b] = np.bincount(where, minlength=GROUPS)
            for name, function in functions.items():
                value = function(rows, a, b)
                totals[name][:, a, b] = np.bincount(where, value, minlength=GROUPS)
                squares[f"{name}_square"][a, b] = value @ value
    parts: dict[str, npt.NDArray[Any]] = {"pair_count": count}
    for name in functions:
        parts |= {name: totals[name], f"{name}_square": squares[f"{name}_square"]}
    return {name: part + np.swapaxes(part, -1, -2) for name, part in parts.items()}


def pair_costs(sums: Sums, kind: str = "pair") -> PairCosts:
    """Return the pair moments held in the sums; `kind` names the sums to read."""
    by_group = sums["pair_count"].astype(np.float64)
    cost = _moment(sums[f"{kind}_cost"], sums[f"{kind}_cost_square"], by_group)
    product = (np.zeros_like(cost[0]), np.zeros_like(cost[1]), np.zeros_like(cost[2]))
    if kind == "pair" and "pair_product" in sums:
        product = _moment(sums["pair_product"], sums["pair_product_square"], by_group)
    return PairCosts(by_group.sum(axis=0), *cost, *product)


def excess_correlation(
    pairs: PairCosts,
    pair_cost: Callable[[FloatArray, FloatArray], FloatArray],
    weight: FloatArray,
    dependent: BoolArray,
) -> FloatArray:
    """Return how far dependent sources repeat each other: 0 if as close as independent ones, 1 for copies."""
    correlation = np.zeros_like(pairs.cost)
    left, right = np.nonzero(np.triu(dependent & (pairs.count > 0)))
    if len(left):
        independent = np.maximum(pair_cost(weight[left], weight[right]), 1e-12)
        excess = np.clip(1.0 - pairs.cost[left, right] / independent, 0.0, 1.0)
        correlation[left, right] = correlation[right, left] = excess
    return correlation


def gold_sums(cost: FloatArray, observed: BoolArray) -> dict[str, npt.NDArray[Any]]:
    """Return the sums of the cost of each source's votes to known labels, both ``(n, m)``."""
    cost = np.where(observed, cost, 0.0)
    return {
        "gold_count": observed.sum(axis=0).astype(np.int64),
        "gold_cost": cost.sum(axis=0),
        "gold_cost_square": (cost**2).sum(axis=0),
    }


def gold_costs(sums: Sums) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return count, mean cost and its standard error from known labels, each ``(m,)``."""
    count = sums["gold_count"].astype(np.float64)
    mean = sums["gold_cost"] / np.maximum(count, 1.0)
    spread = np.maximum(sums["gold_cost_square"] / np.maximum(count, 1.0) - mean**2, 0.0)
    pooled = np.average(spread, weights=count) if count.sum() > 0 else 1.0
    # A handful of known labels can agree by luck: their variance is pooled over the sources.
    variance = (spread * count + pooled * 2.0) / (count + 2.0)
    error = np.where(count > 0, np.sqrt(variance / np.maximum(count, 1.0)), np.inf)
    return count, mean, error


def supported_reading(readings: Readings, told: FloatArray, error: FloatArray, chance: float) -> PairReading:
    """Return the reading of the dependence that known labels support.

    Parameters
    ----------
    told, error
        ``(m,)`` mean costs to known labels, and their standard errors.
    chance
        Mean cost between unrelated labels: a reading puts the cost of a source of no quality there.
    """
    if readings.rival is None or not readings.rival.dependent.any():
        return readings.best
    spread = np.hypot(error, 2.0 * MODEL_ERROR * chance)
    known = np.isfinite(spread)

    def misfit(reading: PairReading) -> float:
        return float(((((1.0 - reading.quality) * chance - told) / spread)[known] ** 2).sum())

    return min((readings.best, readings.rival), key=misfit)


def blend(
    value: FloatArray, error: FloatArray, told: FloatArray, told_error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Combine two estimates by their precisions; infinite errors carry no weight."""
    own = np.where(np.isfinite(error), 1.0 / np.maximum(error, 1e-9) ** 2, 0.0)
    other = np.where(np.isfinite(told_error), 1.0 / np.maximum(told_error, 1e-9) ** 2, 0.0)
    total = own + other
    known = total > 0
    safe = np.where(known, total, 1.0)
    mixed = np.where(known, (value * own + told * other) / safe, value)
    return mixed, np.where(known, 1.0 / np.sqrt(safe), np.inf)


def shrunk_costs(cost: FloatArray, error: FloatArray, used: BoolArray) -> FloatArray:
    """Pull costs towards their mean as far as their errors explain why they differ.

    Empirical Bayes with the between-source variance of Paule and Mandel: sources that are all alike come out alike,
    however few votes there are. Costs of good sources are known more exactly than those of bad ones, and a variance
    that counts sources by their exactness would take all others for such good ones.

    Examples
    --------
    >>> cost, error = np.array([0.01, 0.01, 0.01, 1.4, 1.5, 1.6]), np.array([0.001, 0.001, 0.001, 0.1, 0.1, 0.1])
    >>> shrunk_costs(cost, error, np.ones(6, dtype=bool)).round(1).tolist()
    [0.0, 0.0, 0.0, 1.4, 1.5, 1.6]
    """
    known = used & np.isfinite(error)
    if known.sum() < 3:
        return cost
    level, spread = cost[known], np.maximum(error[known], 1e-6 * cost[known].mean()) ** 2
    weight = 1.0 / spread
    mean = np.average(level, weights=weight)
    freedom = int(known.sum()) - 1
    heterogeneity = (weight * (level - mean) ** 2).sum()
    between = _between_variance(level, spread, freedom) * kept_share(heterogeneity, freedom)
    centre = np.average(level, weights=1.0 / (spread + between))
    shrunk = cost.copy()
    shrunk[known] = centre + (level - centre) * between / (between + spread)
    return shrunk


def _between_variance(level: FloatArray, spread: FloatArray, freedom: int) -> float:
    """Return the variance that, added to that of the errors, makes the weighted sum of squares what it should be."""
    low, high = 0.0, float(((level - level.mean()) ** 2).sum())
    for _ in range(60):
        middle = (low + high) / 2.0
        weight = 1.0 / (spread + middle)
        squares = (weight * (level - np.average(level, weights=weight)) ** 2).sum()
        low, high = (middle, high) if squares > freedom else (low, middle)
    return low


def kept_share(heterogeneity: float, freedom: int) -> float:
    """Return how far differences count whose chi-square is `heterogeneity`.

    Within the scatter that equal ones show one time in a hundred, not at all; beyond it, more and more.
    """
    critical = freedom + 2.6 * np.sqrt(2.0 * freedom)
    return max(0.0, 1.0 - float(critical / max(heterogeneity, critical)) ** 2)


def _moment(total: FloatArray, square: FloatArray, by_group: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    items = by_group.sum(axis=0)
    count = np.maximum(items, 1.0)
    mean = total.sum(axis=0) / count
    variance = np.maximum(square / count - mean**2, 0.0)
    # A pair that meets on few items may agree by luck, and its own variance would make it count too much:
    # it borrows from what its two sources show elsewhere.
    level = np.sqrt((items * mean**2).sum(axis=0) / np.maximum(items.sum(axis=0), 1.0))
    scatter = (items * variance).sum() / max(float((items * mean**2).sum()), 1e-300)
    variance = (count * variance + 10.0 * scatter * np.outer(level, level)) / (count + 10.0)
    influence = (total - by_group * mean) / count
    return mean, np.sqrt(variance / count), influence
