"""Points on a manifold: a vote is the truth moved by noise of one scale per source, in every direction alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from consilience.families.distance_statistics import mismatched_costs
from consilience.families.pair_costs import gold_sums, pair_sums
from consilience.label_types.vote_correlation import discount_correlated
from consilience.solvers.manifolds.base import Geometry
from consilience.solvers.manifolds.given import GivenGeometry

__all__ = ["WrappedNormalFamily", "WrappedParameters"]

#: Votes before a source can be called constant.
MIN_VOTES = 10


@dataclass(frozen=True)
class WrappedParameters(Parameters):
    """Scales of m sources.

    Parameters
    ----------
    scale, scale_error
        ``(m,)``: standard deviation of the noise in each direction, and its standard error.
    correlation
        ``(m, m)``: how far dependent sources repeat each other; zero elsewhere.
    dispersion
        Mean squared distance of true labels to their centre; what confidence is measured against.
    """

    scale: FloatArray
    scale_error: FloatArray
    correlation: FloatArray
    dispersion: float


@dataclass(frozen=True, eq=False)
class WrappedNormalFamily(Family):
    """Noise of one scale per source around points of a manifold.

    Parameters
    ----------
    geometry
        Distances, geodesics and means.
    wrapped
        Whether labels maximise the likelihood of the wrapped normal, whose density falls faster than that of the
        Gaussian ``exp(-d^2 / (2 scale^2))`` where space is wide; else labels are plain weighted means.
    chance
        Mean squared distance of a vote that tells nothing; infinite once votes are seen.
    mismatch, mismatch_error
        ``(m, m)`` mean squared distance between votes of two sources on different items, taken from the votes.
    """

    geometry: Geometry
    wrapped: bool = False
    chance: float = float("inf")
    mismatch: FloatArray | None = None
    mismatch_error: FloatArray | None = None
    rows: ClassVar[int] = 1 << 12
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "isotropic", "moments", "labelled")
    adapts_to_votes: ClassVar[bool] = True

    @property
    def side_by_side(self) -> bool:
        return not isinstance(self.geometry, GivenGeometry)

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> WrappedNormalFamily:
        family = replace(self, chance=float("inf"))
        if sample is None or not sample.observed.any():
            return family
        mismatch, error = mismatched_costs(self.cost, sample, np.random.default_rng(seed))
        return replace(family, mismatch=mismatch, mismatch_error=error)

    def cost(self, left: Batch, right: Batch) -> FloatArray:
        """Return squared distances."""
        cost: FloatArray = self.geometry.distance(left, right) ** 2
        return cost

    def statistics(self, chunk: Chunk) -> Sums:
        labels, observed = chunk.labels, chunk.observed
        parts = count_sums(chunk)
        parts |= pair_sums(lambda rows, a, b: self.cost(labels[rows, a], labels[rows, b]), observed, chunk.groups)
        rows = chunk.gold_rows
        if len(rows) and chunk.known is not None:
            costs = np.zeros((len(rows), observed.shape[1]))
            for source in range(observed.shape[1]):
                seen = observed[rows, source]
                costs[seen, source] = self.cost(labels[rows[seen], source], chunk.known[rows[seen]])
            parts |= gold_sums(costs, observed[rows])
        return Sums(parts)

    def constant_sources(self, sums: Sums) -> BoolArray:
        votes = np.diag(sums["both"])
        if self.mismatch is None:
            return np.zeros(len(votes), dtype=bool)
        known = np.isfinite(self.mismatch)
        level = float(self.mismatch[known].max(initial=0.0))
        own = np.where(np.diag(known), np.diag(self.mismatch), np.inf)
        constant: BoolArray = (votes >= MIN_VOTES) & (own <= 1e-12 * max(level, 1e-300))
        return constant

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        from consilience.families.wrapped_estimation import estimate_wrapped

        self.check_method(request.method, passes)
        return estimate_wrapped(self, sums, request, passes)

    def round(self, parameters: WrappedParameters, chunk: Chunk) -> Sums:
        """Return pair sums of squared differences between votes seen from the current label of their item."""
        geometry, observed = self.geometry, chunk.observed
        if not observed.any():
            return Sums.zero()
        weights = self._weights(parameters, observed)
        centers = geometry.means(chunk.labels, weights).points
        tangents = np.zeros((*observed.shape, *geometry.point_shape))
        for source in range(observed.shape[1]):
            rows = np.flatnonzero(observed[:, source])
            tangents[rows, source] = geometry.log(centers[rows], chunk.labels[rows, source])

        def apart(rows: Any, a: int, b: int) -> FloatArray:
            between = tangents[rows, a] - tangents[rows, b]
            return geometry.inner(centers[rows], between, between)

        return Sums(pair_sums(apart, observed, chunk.groups))

    def _weights(self, parameters: WrappedParameters, observed: BoolArray) -> FloatArray:
        weights: FloatArray = discount_correlated(observed, parameters.correlation) / (2.0 * parameters.scale**2)
        return weights

    def posterior(self, parameters: WrappedParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return the points of largest likelihood, with ``details["standard_deviation"]``.

        The standard deviation is the root of the mean squared distance to the truth that the curvature of the
        likelihood implies (Laplace), for known scales. Confidence is ``dispersion / (dispersion + variance)``: the
        share of the scatter of labels that the votes of the item explain.
        """
        geometry = self.geometry
        if not observed.any():
            labels = np.broadcast_to(geometry.origin, (*observed.shape, *geometry.point_shape))
        weights = self._weights(parameters, observed)
        volume = discount_correlated(observed, parameters.correlation) if self.wrapped else None
        found = geometry.means(labels, weights, volume)
        information = np.maximum(geometry.information(found.points, labels, weights, volume), 1e-300)
        variance = np.where(observed.any(axis=1), geometry.dimension / information, np.inf)
        confidence = parameters.dispersion / (parameters.dispersion + variance)
        voted = np.isfinite(variance)
        deviation = np.sqrt(np.where(voted, variance, parameters.dispersion))
        details = {"standard_deviation": deviation, "converged": found.converged, "unique": found.unique}
        return Posterior(found.points, np.where(voted, confidence, 0.0), None, details)

    def summary(self, parameters: WrappedParameters) -> Summary:
        """Return mean squared distances to the truth, and weights ``1 / (2 scale^2)``."""
        scale, error = parameters.scale, parameters.scale_error
        finite = np.isfinite(error)
        relative = np.where(finite, np.where(finite, error, 0.0) / scale, np.inf)
        weight = 0.5 / scale**2
        cost = self.cost_of_scale(scale)
        return Summary(
            expected_cost=cost,
            weight=weight,
            standard_error=2.0 * weight * relative,
            cost_standard_error=self.cost_slope(scale) * np.where(finite, relative * scale, np.inf),
            correlation=parameters.correlation,
        )

    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        m = len(weight)
        cost = self.expected_cost(np.asarray(weight, dtype=np.float64))
        known = np.isfinite(cost)
        largest = float(cost[known].max()) if known.any() else 1.0
        scale = self.scale_of_cost(np.where(known, cost, 1e4 * largest))
        dispersion = self.chance if np.isfinite(self.chance) else 4.0 * largest
        return WrappedParameters(scale, np.zeros(m), np.zeros((m, m)), dispersion)

    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        return WrappedParameters(**fields)

    def cost_of_scale(self, scale: FloatArray) -> FloatArray:
        """Return the mean squared distance to the truth of votes of this scale."""
        geometry = self.geometry
        unit = 1.0 if geometry.law is None else _unit(geometry)
        if geometry.law is None:
            cost: FloatArray = geometry.dimension * np.asarray(scale) ** 2
            return cost
        return unit**2 * geometry.law.vote_cost(np.asarray(scale) / unit)

    def scale_of_cost(self, cost: FloatArray) -> FloatArray:
        """Return the scale of votes of this mean squared distance; the inverse of `cost_of_scale`."""
        geometry = self.geometry
        if geometry.law is None:
            return np.sqrt(np.asarray(cost) / geometry.dimension)
        unit = _unit(geometry)
        return unit * geometry.law.scale_from_cost(np.asarray(cost) / unit**2)

    def cost_slope(self, scale: FloatArray) -> FloatArray:
        """Return the derivative of `cost_of_scale`."""
        step = 1e-3
        return (self.cost_of_scale(scale * (1 + step)) - self.cost_of_scale(scale * (1 - step))) / (2 * step * scale)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        precision = 2.0 * np.maximum(np.asarray(weight, dtype=np.float64), 0.0)
        if np.isfinite(self.chance):
            precision = precision + self.scale_of_cost(np.array([self.chance])) ** -2.0
        known = precision > 0
        cost = self.cost_of_scale(np.where(known, precision, 1.0) ** -0.5)
        return np.where(known, cost, np.inf)

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        cost = np.maximum(np.asarray(cost, dtype=np.float64), 1e-12)
        weight: FloatArray = 0.5 * self.scale_of_cost(cost) ** -2.0
        if np.isfinite(self.chance):
            weight = weight - 0.5 * self.scale_of_cost(np.array([self.chance])) ** -2.0
        return weight

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        if self.geometry.law is None:
            return self.expected_cost(left) + self.expected_cost(right)
        unit = _unit(self.geometry)
        one, two = (self.scale_of_cost(self.expected_cost(weight)) / unit for weight in (left, right))
        return unit**2 * self.geometry.law.pair_cost(one, two)


def _unit(geometry: Geometry) -> float:
    """Return the length that the two-point law is measured in."""
    return geometry.radius if np.isfinite(geometry.radius) else 1.0
