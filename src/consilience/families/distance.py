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
from consilience.families.distance_statistics import Background, distance_statistics, take_background
from consilience.label_types.vote_correlation import discount_correlated
from consilience.solvers.landmarks import Landmarks, fit_landmarks
from consilience.solvers.listed import ListedPairs
from consilience.solvers.pooled import PooledCurve

__all__ = ["DistanceFamily", "DistanceParameters"]

#: Random labels that stand for the space before any vote is seen.
POOL = 128
#: Up to this many candidates count as the whole space.
MAX_LISTED = 256


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
    background
        What votes on different items look like, taken from the votes by `adapt`.
    """

    cost: Callable[[Batch, Batch], FloatArray]
    coordinates: Callable[[Batch], FloatArray] | str | None = None
    mean: Callable[[Batch, FloatArray], Batch] | None = None
    candidates: Batch | None = None
    pool: Callable[[int, int], Batch | None] | None = None
    background: Background | None = None
    landmarks: Landmarks | None = None
    landmark_labels: Batch | None = None
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "isotropic", "triplets", "moments", "labelled")
    adapts_to_votes: ClassVar[bool] = True

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> DistanceFamily:
        """Look at votes on different items, and learn coordinates where asked for."""
        if sample is None and self.pool_labels is None:
            return self
        background = None if sample is None else take_background(self, sample, seed)
        family = replace(self, background=background)
        if self.coordinates != "mds":
            return family
        labels = self.pool_labels if background is None else background.references
        if labels is None or len(labels) < 2:
            return family
        return replace(family, landmarks=fit_landmarks(self.cost_table(labels, labels)), landmark_labels=labels)

    @cached_property
    def pool_labels(self) -> Batch | None:
        """Random labels that stand for the space before any vote is seen, where it can make some."""
        return None if self.pool is None else self.pool(POOL, 0)

    def measures_like(self, other: Family) -> bool:
        if not isinstance(other, DistanceFamily) or (self.landmarks is None) != (other.landmarks is None):
            return False
        if self.landmarks is None or other.landmarks is None:
            return True
        return np.array_equal(self.landmarks.coordinates, other.landmarks.coordinates)

    def constant_sources(self, sums: Sums) -> BoolArray:
        if self.background is None:
            return np.zeros(len(sums["both"]), dtype=bool)
        own = np.diag(self.background.chance)
        constant: BoolArray = (np.diag(sums["both"]) >= 10) & (own <= 1e-9 * self.chance)
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
        labels = self.pool_labels if self.background is None else self.background.references
        if labels is None or len(labels) < 2:
            return np.array([[0.0, 1.0], [1.0, 0.0]])
        costs = self.cost_table(labels, labels)
        return costs if costs.max() > 0 else np.array([[0.0, 1.0], [1.0, 0.0]])

    @property
    def chance(self) -> float:
        """Mean cost between two unrelated labels."""
        costs = self.reference_costs
        return float(costs.sum() / (len(costs) * (len(costs) - 1)))

    @property
    def looks_bounded(self) -> bool:
        """Whether unrelated labels are all about equally far apart, as where a cost has a maximum."""
        return float(self.reference_costs.max()) <= 3.0 * self.chance

    @cached_property
    def chance_in_coordinates(self) -> float:
        """Mean squared distance between two unrelated labels in the coordinates."""
        labels = self.landmark_labels if self.background is None else self.background.references
        if labels is None:
            return 1.0
        points = self.place(labels)
        return max(2.0 * float(points.var(axis=0).sum()) * len(points) / max(len(points) - 1, 1), 1e-12)

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
        smallest = None if self.background is None or self.background.smallest <= 0 else self.background.smallest
        return PooledCurve.of(self.reference_costs, quantum=smallest)

    @cached_property
    def listed_pairs(self) -> ListedPairs | None:
        """What the votes of two sources cost each other where all labels are known: candidates, or votes that recur."""
        labels = self.candidates
        if labels is None and self.background is not None:
            labels = self.background.recurring
        if labels is None or not 1 < len(labels) <= MAX_LISTED:
            return None
        costs = self.cost_table(labels, labels)
        return ListedPairs.of(costs) if costs.max() > 0 else None

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
        weights = np.maximum(parameters.weight, 0.0) * discount_correlated(observed, parameters.correlation)
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
