"""Vector-valued votes: ``vote = y + offset + noise``, with one covariance of the noise per source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
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
from consilience.families.truth_spread import relative_error
from consilience.families.vector_moments import gold_sums_of, pair_influence, vector_moments, vector_sums
from consilience.families.vector_posterior import believe

__all__ = ["VectorFamily", "VectorParameters"]

#: A source that does not count costs this many times the variance of y, so that costs stay finite.
MAX_COST = 1e4
#: Beyond this many coordinates the covariances of single items would fill the memory.
MOST = 64
#: Votes before a source can be called constant.
MIN_VOTES = 10


@dataclass(frozen=True)
class VectorParameters(Parameters):
    """Errors of m sources in R^d, and the law of y.

    Parameters
    ----------
    offset
        ``(m, d)``; ``vote = y + offset + noise``.
    noise
        ``(m, d, d)`` covariance of the noise of each source.
    mean, variance
        ``(d,)`` and ``(d, d)``, of y before any vote.
    used
        ``(m,)`` False for sources whose votes do not count.
    pairs, coupling
        ``(p, 2)`` pairs of dependent sources and ``(p, d, d)`` the covariance of their noise.
    cost_error
        ``(m,)`` standard errors of ``trace(noise) + |offset|^2``.
    shrink
        How far labels are drawn to `mean` where votes are uncertain; 0 for plain weighted means.
    """

    offset: FloatArray
    noise: FloatArray
    mean: FloatArray
    variance: FloatArray
    used: BoolArray
    pairs: IntArray
    coupling: FloatArray
    cost_error: FloatArray
    shrink: float = 1.0

    @property
    def cost(self) -> FloatArray:
        """``(m,)`` mean squared distance of the votes from y."""
        traces: FloatArray = np.trace(self.noise, axis1=1, axis2=2) + (self.offset**2).sum(axis=1)
        return traces


@dataclass(frozen=True)
class VectorFamily(Family):
    """Vectors around the truth.

    Parameters
    ----------
    d
        Number of coordinates.
    mean, covariance
        Of y, where they are known.
    scale
        Variance of a coordinate that stands for "unrelated" in the maps between weight and cost: two unrelated
        labels cost ``2 d scale``. Infinite once votes are seen, where ``cost = d / (2 weight)``.
    """

    d: int
    mean: FloatArray | None = None
    covariance: FloatArray | None = None
    scale: float = 1.0
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "isotropic", "triplets", "moments", "em", "labelled")

    @property
    def side_by_side(self) -> bool:
        return True

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> Family:
        return replace(self, scale=float("inf"))

    def measures_like(self, other: Family) -> bool:
        return isinstance(other, VectorFamily) and other.d == self.d

    def statistics(self, chunk: Chunk) -> Sums:
        labels = self._labels(chunk.labels, chunk.observed)
        sums = vector_sums(labels, chunk.observed)
        parts = {**count_sums(chunk, sums["both"]), **sums}
        rows = chunk.gold_rows
        if len(rows) and chunk.known is not None:
            truth = chunk.known[rows].astype(np.float64)
            parts |= gold_sums_of(labels[rows], chunk.observed[rows], truth)
        return Sums(parts)

    def _labels(self, labels: Batch, observed: BoolArray) -> Batch:
        """Return the votes, or zeros where nobody votes and the cells may be of any type."""
        return labels if observed.any() else np.zeros((*observed.shape, self.d))

    def constant_sources(self, sums: Sums) -> BoolArray:
        votes = np.diag(sums["both"])
        constant: BoolArray = (votes >= MIN_VOTES) & ~vector_moments(sums).varied
        return constant

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        from consilience.families.vector_estimation import estimate_vectors

        self.check_method(request.method, passes)
        return estimate_vectors(self, sums, request, passes)

    def round(self, parameters: VectorParameters, chunk: Chunk) -> Sums:
        from consilience.families.vector_rounds import round_sums

        return round_sums(parameters, chunk)

    def posterior(self, parameters: VectorParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return posterior means, with ``details["covariance"]`` and ``details["standard_deviation"]``.

        The former is left out beyond `MOST` coordinates. Confidence is the share of the total variance of y (the trace
        of its covariance) that the votes of the item remove: 0 if they say nothing, 1 if y is certain.
        """
        belief, _ = believe(parameters, self._labels(labels, observed), observed)
        left = np.trace(belief.covariance, axis1=1, axis2=2) / np.trace(parameters.variance)
        confidence = np.clip(1.0 - left, 0.0, 1.0)[belief.pattern]
        details = {}
        if self.d <= MOST:
            details["covariance"] = belief.covariance[belief.pattern]
        deviation = np.sqrt(np.diagonal(belief.covariance, axis1=1, axis2=2))[belief.pattern]
        return Posterior(belief.mean, confidence, None, {**details, "standard_deviation": deviation})

    def summary(self, parameters: VectorParameters) -> Summary:
        """Return costs and weights of the sources.

        The expected cost is ``trace(noise) + |offset|^2``, the mean squared distance from the truth, and the weight
        ``d / (2 cost)``: votes with equal noise in every direction have the density ``exp(-weight * cost)``, and for
        d = 1 the weight is that of a score.
        """
        d = len(parameters.mean)
        largest = MAX_COST * float(np.trace(parameters.variance))
        cost = np.where(parameters.used, np.clip(parameters.cost, 1e-300, largest), largest)
        weight = np.where(parameters.used, 0.5 * d / cost, 0.0)
        finite = np.isfinite(parameters.cost_error)
        error = np.where(finite, np.where(finite, parameters.cost_error, 0.0) * 0.5 * d / cost**2, np.inf)
        m = len(cost)
        correlation = np.zeros((m, m))
        size = np.sqrt(np.trace(parameters.noise, axis1=1, axis2=2))
        for (left, right), between in zip(parameters.pairs.tolist(), parameters.coupling, strict=True):
            correlation[left, right] = correlation[right, left] = np.trace(between) / (size[left] * size[right])
        return Summary(cost, weight, error, parameters.cost_error, correlation)

    def unrelated_truth(
        self, parameters: VectorParameters, sums: Sums, passes: Passes | None
    ) -> tuple[float, float] | None:
        cost = 2.0 * float(np.trace(parameters.variance))
        moments = vector_moments(sums)
        if self.covariance is not None or not moments.varied.any():
            return cost, 0.0
        independent = np.ones(moments.count.shape, dtype=bool)
        independent[tuple(parameters.pairs.T)] = independent[tuple(parameters.pairs.T[::-1])] = False
        loading = np.where(moments.varied & parameters.used, 1.0 / np.maximum(parameters.cost, 1e-300), 0.0)
        shared = moments.shared_trace
        influence = None if passes is None else pair_influence(moments, shared, "covariance", passes)
        return cost, cost * relative_error(shared, loading, independent, influence, float(sums["voted_items"]))

    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        """Return unbiased sources of these weights, alike in all directions; y has the law that the space names."""
        m, d = len(weight), self.d
        cost = self.expected_cost(np.maximum(weight, 0.0))
        noise = np.where(np.isfinite(cost), cost / d, MAX_COST)
        largest = 2.0 * float(noise.max()) * np.eye(d)
        return VectorParameters(
            offset=np.zeros((m, d)),
            noise=noise[:, None, None] * np.eye(d),
            mean=np.zeros(d) if self.mean is None else self.mean,
            variance=largest if self.covariance is None else self.covariance,
            used=np.asarray(weight) > 0,
            pairs=np.zeros((0, 2), dtype=np.int64),
            coupling=np.zeros((0, d, d)),
            cost_error=np.zeros(m),
            shrink=float(self.mean is not None and self.covariance is not None),
        )

    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        return VectorParameters(**fields)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return the mean squared distance of votes from the truth, ``d / (2 weight + 1 / (2 scale))``."""
        total = 2.0 * np.asarray(weight, dtype=np.float64) + 0.5 / self.scale
        with np.errstate(divide="ignore"):
            cost: FloatArray = self.d / total
        return cost

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        smallest = 1e-12 * (self.scale if np.isfinite(self.scale) else 1.0)
        apart = np.maximum(np.asarray(cost, dtype=np.float64) / self.d, smallest)
        weight: FloatArray = 0.5 / apart - 0.25 / self.scale
        return weight

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.expected_cost(left) + self.expected_cost(right)
