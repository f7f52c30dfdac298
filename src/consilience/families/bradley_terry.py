"""Judges who compare two items at a time: Bradley and Terry's law with ties, one set of traits per judge.

The rows of the votes are groups of items: a single arena, or one prompt each. A vote holds all comparisons of a judge
in a row. See `consilience.solvers.pair_judges` for the law.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.families.base import (
    Chunk,
    Estimate,
    Family,
    Parameters,
    Passes,
    Posterior,
    Request,
    Summary,
    Sums,
    count_sums,
)
from consilience.families.bradley_terry_parameters import (
    BradleyTerryParameters,
    cost_of_judge,
    cost_of_pair,
    discrimination_of_cost,
)
from consilience.families.comparisons import ComparisonTable, tabulate

__all__ = ["BradleyTerryFamily"]

#: Votes before a judge can be said to answer always the same.
MIN_VOTES = 10
#: Discrimination of judges of whom nothing is known.
USUAL = 1.5
STEP = 1e-4


@dataclass(frozen=True)
class BradleyTerryFamily(Family):
    """Comparisons by judges.

    Parameters
    ----------
    items
        The items of every row, where they are known.
    """

    items: tuple[Hashable, ...] | None = None
    draws_together: ClassVar[bool] = True
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "em", "labelled")

    def statistics(self, chunk: Chunk) -> Sums:
        m = chunk.observed.shape[1]
        table = self.tabulate(chunk.labels, chunk.observed)
        pairs = table.pairs
        counted = pairs.shown > 0
        outcomes = np.zeros((m, 3), dtype=np.int64)
        np.add.at(outcomes, (pairs.judge[counted], pairs.outcome[counted].astype(np.int64) + 1), 1)
        units = int(table.unit.max(initial=-1)) + 1
        seen = np.zeros((m, units), dtype=np.float32)
        seen[pairs.judge, table.unit] = 1.0
        return Sums(
            {
                **count_sums(chunk),
                "outcomes": outcomes,
                "comparisons": np.bincount(pairs.judge, minlength=m).astype(np.int64),
                "unparsable": table.unparsable,
                "shared": np.rint(seen @ seen.T).astype(np.int64),
            }
        )

    def constant_sources(self, sums: Sums) -> BoolArray:
        counts = sums["outcomes"]
        alone = (counts > 0).sum(axis=1) == 1
        total = counts.sum(axis=1)
        constant: BoolArray = alone & (total >= MIN_VOTES) & (total == sums["comparisons"])
        # Where the order of all is the same, everybody may be right.
        return constant if not constant[total > 0].all() else np.zeros_like(constant)

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        from consilience.families.bradley_terry_estimation import estimate_judges

        self.check_method(request.method, passes, ("em", "labelled"))
        if passes is None:
            known = self.from_weights(np.full(len(request.sources), USUAL), request)
            return Estimate(known, "majority", "comparisons cannot be weighed from moments alone, only from the votes")
        return estimate_judges(self, request, passes)

    def round(self, parameters: BradleyTerryParameters, chunk: Chunk) -> Sums:
        """Return, per judge, the sums of the regression of outcomes on differences of scores."""
        from consilience.solvers.bradley_terry import scores_given_judges
        from consilience.solvers.pair_judges import totals

        table = self.tabulate(chunk.labels, chunk.observed)
        pairs, m = table.pairs, table.pairs.n_judges
        mean, variance = scores_given_judges(pairs, parameters.traits()).differences(pairs)
        return Sums(
            {
                "square": totals(pairs.judge, pairs.weight * (mean**2 + variance), m),
                "product": totals(pairs.judge, pairs.weight * pairs.outcome * mean, m),
                "comparisons": totals(pairs.judge, pairs.weight, m),
            }
        )

    def posterior(
        self, parameters: BradleyTerryParameters, labels: Batch, observed: BoolArray, decode: str
    ) -> Posterior:
        """Return rankings, best first, with what is known about their items in the same order.

        ``details`` holds, as one object per row: ``candidates``, their ``score`` with ``standard_error``, the
        ``rank_low`` and ``rank_high`` between which the true place is with about 95% probability, and
        ``pair_probability``, that the item of a row is better than that of a column. The confidence is the share of
        doubt about the order of two items that the votes remove, averaged over pairs.
        """
        from consilience.families.bradley_terry_posterior import rank_items

        return rank_items(parameters, self.tabulate(labels, observed), decode)

    def tabulate(self, labels: Batch, observed: BoolArray) -> ComparisonTable:
        """Return votes as arrays."""
        return tabulate(labels, observed, self.items)

    def summary(self, parameters: BradleyTerryParameters) -> Summary:
        """Return how often judges are wrong about two items, and their discriminations as weights."""
        slope, tie = parameters.discrimination, parameters.tie
        error = parameters.discrimination_error
        finite = np.where(np.isfinite(error), error, 0.0)
        fall = (cost_of_judge(slope + STEP, tie) - cost_of_judge(slope - STEP, tie)) / (2.0 * STEP)
        correlation = parameters.noise.copy()
        np.fill_diagonal(correlation, 0.0)
        return Summary(
            expected_cost=cost_of_judge(slope, tie),
            weight=slope.copy(),
            standard_error=error.copy(),
            cost_standard_error=np.where(np.isfinite(error), np.abs(fall) * finite, np.inf),
            correlation=correlation,
            columns={
                "comparisons": parameters.comparisons,
                "discrimination": slope.copy(),
                "position_bias": parameters.position_bias,
                "tie_rate": parameters.tie_rate,
                "cycles": parameters.cycles,
                "order_flips": parameters.order_flips,
                "unparsable": parameters.unparsable,
                "share": parameters.share,
            },
            effective_range=parameters.effective_judges,
        )

    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        slope = np.asarray(weight, dtype=np.float64)
        m = len(slope)
        zero = np.zeros(m)
        centre = max(float(slope.mean()), 0.05)
        return BradleyTerryParameters(
            discrimination=slope,
            position_bias=zero,
            tie=np.full(m, 0.1),
            discrimination_error=zero.copy(),
            position_bias_error=zero.copy(),
            covariance=np.zeros((m, 2, 2)),
            share=np.ones(m),
            noise=np.eye(m),
            comparisons=np.zeros(m, dtype=np.int64),
            unparsable=np.zeros(m, dtype=np.int64),
            cycles=zero.copy(),
            order_flips=zero.copy(),
            slope_mean=centre,
            slope_variance=centre**2,
            effective_judges=(float(m), float(m)),
            equal=bool(np.ptp(slope) == 0.0) if m else True,
            position=False,
        )

    def restore(self, fields_by_name: Mapping[str, Any]) -> Parameters:
        kinds = {item.name: item.type for item in fields(BradleyTerryParameters)}
        values: dict[str, Any] = {}
        for name, kind in kinds.items():
            value = fields_by_name[name]
            if kind in ("FloatArray", "IntArray"):
                value = np.asarray(value, dtype=np.float64 if kind == "FloatArray" else np.int64)
            elif kind == "float":
                value = float(value)
            elif kind == "bool":
                value = bool(value)
            else:
                value = (float(value[0]), float(value[1]))
            values[name] = value
        return BradleyTerryParameters(**values)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        return cost_of_judge(weight)

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        return discrimination_of_cost(cost)

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return cost_of_pair(left, right)
