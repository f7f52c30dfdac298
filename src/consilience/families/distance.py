"""The universal family: votes of any kind, known only through a cost (and perhaps coordinates)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array
from consilience.exceptions import UnsupportedError
from consilience.families.base import (
    GROUPS,
    Chunk,
    Estimate,
    Family,
    Parameters,
    Passes,
    Posterior,
    Request,
    Summary,
    Sums,
)
from consilience.families.distance_estimation import estimate_distances
from consilience.families.distance_parameters import DistanceParameters
from consilience.families.distance_statistics import distance_statistics
from consilience.solvers.landmarks import Landmarks, fit_landmarks
from consilience.solvers.pooled import PooledCurve
from consilience.solvers.sharing import shared_weights

__all__ = ["DistanceFamily", "DistanceParameters"]

#: Labels that stand for the whole space: the zero point of products, and the pool of the backward map.
REFERENCES = 32
#: Costs to references are evaluated for about this many votes at most.
REFERENCE_BUDGET = 500_000
#: Random labels that stand for the space before any vote is seen.
POOL = 128
#: Up to this many candidates count as the whole space.
MAX_LISTED = 256
#: How many landmarks the multidimensional scaling rests on.
LANDMARKS = 100


@dataclass(frozen=True, eq=False)
class DistanceFamily(Family):
    """Votes known through their pairwise cost.

    Parameters
    ----------
    cost
        ``(n, ...), (n, ...) -> (n,)``.
    coordinates
        ``(n, ...) -> (n, d)`` embedding, None, or "mds" to learn one from a sample.
    mean
        ``votes (n, m, ...), weights (n, m) -> (n, ...)``; None picks the best vote.
    candidates
        Labels to choose from instead of the votes, or None.
    pool
        ``size, seed -> labels`` that represent the space before any vote is seen, or None.
    references
        Labels that represent the space, taken from the votes by `adapt`.
    """

    cost: Callable[[Batch, Batch], FloatArray]
    coordinates: Callable[[Batch], FloatArray] | str | None = None
    mean: Callable[[Batch, FloatArray], Batch] | None = None
    candidates: Batch | None = None
    pool: Callable[[int, int], Batch | None] | None = None
    references: Batch | None = None
    landmarks: Landmarks | None = None
    landmark_labels: Batch | None = None
    reference_groups: int = GROUPS
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "isotropic", "triplets", "moments", "labelled")

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> DistanceFamily:
        """Take references (and landmarks) from the votes of a sample of items, or from the pool."""
        if sample is None:
            return self._adapt_to_pool()
        rng = np.random.default_rng(seed)
        rows, columns = np.nonzero(sample.observed)
        if len(rows) == 0:
            return self
        # One vote from each of many items: votes on one item are too alike to represent the space.
        order = rng.permutation(len(rows))
        _, first = np.unique(rows[order], return_index=True)
        chosen = order[rng.permutation(first)]
        wanted = LANDMARKS if self.coordinates == "mds" else REFERENCES
        chosen = chosen[:wanted]
        labels = sample.labels[rows[chosen], columns[chosen]]
        m = sample.observed.shape[1]
        share = REFERENCE_BUDGET / (REFERENCES * m * max(n_items, len(sample), 1))
        groups = int(np.clip(np.ceil(GROUPS * share), 2, GROUPS))
        family = replace(self, references=labels[:REFERENCES], reference_groups=groups)
        if self.coordinates == "mds":
            fitted = fit_landmarks(self.cost_table(labels, labels))
            family = replace(family, landmarks=fitted, landmark_labels=labels)
        return family

    def _adapt_to_pool(self) -> DistanceFamily:
        labels = None if self.pool is None else self.pool(LANDMARKS, 0)
        if labels is None:
            return self
        family = replace(self, references=labels[:REFERENCES])
        if self.coordinates != "mds":
            return family
        return replace(family, landmarks=fit_landmarks(self.cost_table(labels, labels)), landmark_labels=labels)

    def constant_sources(self, sums: Sums) -> BoolArray:
        if "reach_square" not in sums:
            return np.zeros(len(sums["both"]), dtype=bool)
        count = np.maximum(sums["reach_count"], 1)
        level = sums["reach"].mean(axis=1) / count
        spread = sums["reach_square"] / count - level**2
        constant: BoolArray = (sums["reach_count"] >= 10) & (spread <= 1e-9 * np.maximum(level**2, 1e-12))
        return constant

    def cost_table(self, left: Batch, right: Batch) -> FloatArray:
        """Return ``(len(left), len(right))`` costs."""
        repeated = np.repeat(np.arange(len(left)), len(right))
        tiled = np.tile(np.arange(len(right)), len(left))
        table: FloatArray = self.cost(left[repeated], right[tiled]).reshape(len(left), len(right))
        return table

    def place(self, batch: Batch) -> FloatArray:
        """Return ``(n, d)`` coordinates of labels."""
        if self.landmarks is not None and self.landmark_labels is not None:
            return self.landmarks.place(self.cost_table(batch, self.landmark_labels))
        if not callable(self.coordinates):
            raise UnsupportedError("This label type has no coordinates. Pass embed='mds' or an embedding function.")
        return self.coordinates(batch)

    @property
    def has_coordinates(self) -> bool:
        """Whether votes can be placed in a Euclidean space."""
        return self.landmarks is not None or callable(self.coordinates)

    @cached_property
    def reference_costs(self) -> FloatArray:
        """``(L, L)`` costs among the references."""
        labels = self.references
        if labels is None and self.pool is not None:
            labels = self.pool(POOL, 0)
        if labels is None or len(labels) < 2:
            return np.array([[0.0, 1.0], [1.0, 0.0]])
        costs = self.cost_table(labels, labels)
        return costs if costs.max() > 0 else np.array([[0.0, 1.0], [1.0, 0.0]])

    @property
    def chance(self) -> float:
        """Mean cost between two unrelated labels."""
        costs = self.reference_costs
        return float(costs.sum() / (len(costs) * (len(costs) - 1)))

    def doubt(self, chance: float) -> float:
        """Return the weight of a source a quarter better than chance."""
        return max(float(self.weight_from_cost(np.array([0.75 * chance]))[0]), 1e-9)

    @cached_property
    def curve(self) -> PooledCurve:
        """Mean cost against weight, if votes were drawn from the candidates or the references."""
        if self.candidates is not None and len(self.candidates) <= MAX_LISTED:
            costs = self.cost_table(self.candidates, self.candidates)
            if costs.max() > 0:
                return PooledCurve.of(costs, complete=True)
        return PooledCurve.of(self.reference_costs)

    def statistics(self, chunk: Chunk) -> Sums:
        return distance_statistics(self, chunk)

    def costs_to(self, truth: Batch, labels: Batch, observed: BoolArray) -> FloatArray:
        """Return ``(n, m)`` costs between each vote and the truth of its item; zero where unobserved."""
        costs = np.zeros(observed.shape)
        for source in range(observed.shape[1]):
            rows = np.flatnonzero(observed[:, source])
            if len(rows):
                costs[rows, source] = self.cost(labels[rows, source], truth[rows])
        return costs

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        self.check_method(request.method, passes)
        return estimate_distances(self, sums, request)

    def round(self, parameters: DistanceParameters, chunk: Chunk) -> Sums:
        raise UnsupportedError("A distance alone has no likelihood. Use FiniteMetric for method='em'.")

    def posterior(self, parameters: DistanceParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        weights = np.maximum(parameters.weight, 0.0) * shared_weights(observed, parameters.correlation)
        # Sources without any weight still vote where nobody else does.
        silent = observed.any(axis=1) & ~(weights > 0).any(axis=1)
        weights[silent] = observed[silent] * 1e-6
        if decode == "bayes":
            best = self._least_expected_cost(labels, weights)
        elif self.candidates is not None:
            best = self.best_candidate(labels, weights)
        else:
            best = self.best_vote(labels, weights) if self.mean is None else self.mean(labels, weights)
        spent = (self.costs_to(best, labels, weights > 0) * weights).sum(axis=1)
        # An imaginary vote at chance distance, as heavy as a source of little skill, stands for doubt.
        total = weights.sum(axis=1) + parameters.doubt
        share = (spent + parameters.doubt * parameters.chance) / (total * parameters.chance)
        return Posterior(best, np.clip(1.0 - share, 0.0, 1.0))

    def best_vote(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the vote of least weighted cost to all votes; the vote's own weight counts."""
        n, m = weights.shape
        totals = np.zeros((n, m))
        for a in range(m):
            for b in range(a + 1, m):
                rows = np.flatnonzero((weights[:, a] > 0) & (weights[:, b] > 0))
                if len(rows):
                    between = self.cost(votes[rows, a], votes[rows, b])
                    totals[rows, a] += weights[rows, b] * between
                    totals[rows, b] += weights[rows, a] * between
        totals[weights <= 0] = np.inf
        lowest = totals.min(axis=1, keepdims=True)
        tied = totals <= lowest + 1e-9 * np.maximum(np.abs(lowest), 1e-300)
        choice = np.where(tied, weights, -1.0).argmax(axis=1)
        best: Batch = votes[np.arange(n), choice]
        return best

    def best_candidate(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the candidate of least weighted cost to the votes."""
        best: Batch = self._candidates()[self._candidate_costs(votes, weights).argmin(axis=1)]
        return best

    def _candidates(self) -> Batch:
        if self.candidates is None:
            raise UnsupportedError("No candidates were given.")
        return self.candidates

    def _candidate_costs(self, votes: Batch, weights: FloatArray) -> FloatArray:
        candidates = self._candidates()
        totals = np.zeros((len(weights), len(candidates)))
        for source in range(weights.shape[1]):
            rows = np.flatnonzero(weights[:, source] > 0)
            if len(rows):
                costs = self.cost_table(votes[rows, source], candidates)
                totals[rows] += weights[rows, source, None] * costs
        return totals

    def _least_expected_cost(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the candidate (or vote) of least posterior expected cost."""
        best = []
        for index in range(len(weights)):
            present = np.flatnonzero(weights[index] > 0)
            if len(present) == 0:
                best.append(votes[index, 0])
                continue
            mine = votes[index, present]
            options = mine if self.candidates is None else self.candidates
            energy = self.cost_table(options, mine) @ weights[index, present]
            belief = np.exp(-(energy - energy.min()))
            expected = self.cost_table(options, options) @ (belief / belief.sum())
            best.append(options[int(expected.argmin())])
        return as_object_array(best) if votes.dtype == object else np.array(best)

    def summary(self, parameters: DistanceParameters) -> Summary:
        return Summary(
            parameters.expected_cost,
            parameters.weight,
            parameters.standard_error,
            parameters.cost_standard_error,
            parameters.correlation,
        )

    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        m = len(weight)
        zero = np.zeros(m)
        chance = self.chance
        doubt = self.doubt(chance)
        return DistanceParameters(self.expected_cost(weight), weight, zero, zero, np.zeros((m, m)), chance, doubt)

    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        return DistanceParameters(**fields)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        return self.curve.expected_cost(np.asarray(weight, dtype=float))

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        return self.curve.weight_from_cost(np.asarray(cost, dtype=float))

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        # Votes shrunk to the centre by 1 - cost / chance: exact for classes, first order elsewhere.
        chance = self.chance
        one = 1.0 - np.minimum(self.expected_cost(left) / chance, 1.0)
        two = 1.0 - np.minimum(self.expected_cost(right) / chance, 1.0)
        pair: FloatArray = chance * (1.0 - one * two)
        return pair
