"""Finite metric spaces: P(vote | truth) proportional to exp(-weight * cost), with its normaliser Z(truth)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, softmax
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
from consilience.families.pair_costs import gold_sums, pair_sums
from consilience.solvers.backward import CostCurve, conditional
from consilience.solvers.sharing import shared_weights

__all__ = ["GibbsFamily", "GibbsParameters"]

#: Largest m * m * K for which joint votes per node are counted (they serve `quadratic` alone).
MAX_JOINT = 4_000_000


@dataclass(frozen=True)
class GibbsParameters(Parameters):
    """Weights of sources over a finite space.

    Parameters
    ----------
    weight, standard_error
        Each ``(m,)``.
    prior
        ``(K,)`` over the labels.
    correlation
        ``(m, m)``; zero outside the dependencies.
    normalised
        Whether the posterior contains Z(truth); without it the rule is the paper's weighted Frechet
        mean, which is right only if the truth follows the joint Gibbs law.
    """

    weight: FloatArray
    standard_error: FloatArray
    prior: FloatArray
    correlation: FloatArray
    normalised: bool = True


@dataclass(frozen=True, eq=False)
class GibbsFamily(Family):
    """Votes over the K labels of a finite space.

    Parameters
    ----------
    matrix
        ``(K, K)`` costs.
    """

    matrix: FloatArray
    methods: ClassVar[tuple[str, ...]] = (
        "auto",
        "majority",
        "isotropic",
        "triplets",
        "quadratic",
        "moments",
        "em",
        "labelled",
    )

    @cached_property
    def curve(self) -> CostCurve:
        """Mean cost against weight, for a uniform truth."""
        return CostCurve.of(self.matrix)

    @cached_property
    def kernel(self) -> FloatArray:
        """Products of the labels in the Euclidean space whose squared distances are the costs.

        For independent sources the covariance of these products is rank one, whereas the costs add up only
        for isotropic noise.
        """
        matrix = self.matrix
        kernel: FloatArray = -(matrix - matrix.mean(axis=0) - matrix.mean(axis=1)[:, None] + matrix.mean()) / 2.0
        return kernel

    def measures_like(self, other: Family) -> bool:
        return isinstance(other, GibbsFamily) and np.array_equal(other.matrix, self.matrix)

    def statistics(self, chunk: Chunk) -> Sums:
        labels, observed = chunk.labels, chunk.observed
        size, m = len(self.matrix), observed.shape[1]
        codes = np.where(observed, labels, 0).astype(np.int64)
        parts = count_sums(chunk)
        parts["votes"] = np.stack([np.bincount(codes[observed[:, a], a], minlength=size) for a in range(m)])
        parts |= pair_sums(
            lambda rows, a, b: self.matrix[codes[rows, a], codes[rows, b]],
            observed,
            chunk.groups,
            lambda rows, a, b: self.kernel[codes[rows, a], codes[rows, b]],
        )
        if m * m * size <= MAX_JOINT:
            joint = np.zeros((size, m, m), dtype=np.int64)
            for node in range(size):
                voted = (observed & (codes == node)).astype(np.float32)
                joint[node] = np.rint(voted.T @ voted)
            parts["joint"] = joint
        rows = chunk.gold_rows
        if len(rows) and chunk.known is not None:
            truth = chunk.known[rows].astype(np.int64)
            parts |= gold_sums(self.matrix[codes[rows], truth[:, None]], observed[rows])
            parts["gold_labels"] = np.bincount(truth, minlength=size)
        return Sums(parts)

    def constant_sources(self, sums: Sums) -> BoolArray:
        constant: BoolArray = ((sums["votes"] > 0).sum(axis=1) == 1) & (sums["votes"].sum(axis=1) >= 10)
        return constant

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        from consilience.families.gibbs_estimation import estimate_gibbs

        self.check_method(request.method, passes, needs_votes=("em",))
        return estimate_gibbs(self, sums, request, passes)

    def log_scores(self, parameters: GibbsParameters, labels: Batch, observed: BoolArray) -> FloatArray:
        """Return ``(n, K)`` unnormalised log posterior."""
        scores = np.tile(np.log(np.maximum(parameters.prior, 1e-300)), (len(observed), 1))
        shares = shared_weights(observed, parameters.correlation)
        for source, weight in enumerate(parameters.weight):
            rows = np.flatnonzero(observed[:, source])
            evidence = -weight * self.matrix
            if parameters.normalised:
                evidence = evidence - conditional(self.matrix, weight)[1][:, None]
            # column l: what a vote for l says about every truth
            scores[rows] += evidence.T[labels[rows, source].astype(np.int64)] * shares[rows, source, None]
        return scores

    def round(self, parameters: GibbsParameters, chunk: Chunk) -> Sums:
        scores = self.log_scores(parameters, chunk.labels, chunk.observed)
        covered = chunk.observed.any(axis=1)
        top = scores.max(axis=1, keepdims=True)
        weight = np.exp(scores - top)
        total = weight.sum(axis=1, keepdims=True)
        posterior = weight / total
        likelihood = (np.log(total) + top)[covered].sum()
        rows = chunk.gold_rows
        if len(rows) and chunk.known is not None:
            posterior[rows] = 0.0
            posterior[rows, chunk.known[rows].astype(np.int64)] = 1.0
        posterior[~covered] = 0.0
        m = len(parameters.weight)
        mass, spent = np.empty((m, len(self.matrix))), np.zeros((len(chunk), m))
        expected = np.zeros((len(chunk), m))
        for source in range(m):
            voted = np.flatnonzero(chunk.observed[:, source])
            mine = posterior[voted]
            spent[voted, source] = (mine * self.matrix[chunk.labels[voted, source].astype(np.int64)]).sum(axis=1)
            expected[voted, source] = mine @ conditional(self.matrix, parameters.weight[source])[2]
            mass[source] = mine.sum(axis=0)
        score = expected - spent
        return Sums(
            {
                "spent": spent.sum(axis=0),
                "mass": mass,
                "labels": posterior.sum(axis=0),
                "log_likelihood": np.array(likelihood),
                "outer": score.T @ score,
            }
        )

    def posterior(self, parameters: GibbsParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        probabilities = softmax(self.log_scores(parameters, labels, observed))
        # Without Z(truth) the most probable label is the weighted Frechet mean: the plain vote, and the paper's rule.
        # A single source, of which nothing can be learned, is simply believed.
        learned = parameters.normalised and len(parameters.weight) > 1
        cheapest = decode == "bayes" or (decode == "auto" and learned)
        best = (probabilities @ self.matrix).argmin(axis=1) if cheapest else probabilities.argmax(axis=1)
        return Posterior(best, probabilities[np.arange(len(best)), best], probabilities)

    def summary(self, parameters: GibbsParameters) -> Summary:
        slope = np.abs(self.curve.slope(parameters.weight))
        error = np.where(np.isfinite(parameters.standard_error), parameters.standard_error, 0.0) * slope
        return Summary(
            expected_cost=self.curve.expected_cost(parameters.weight),
            weight=parameters.weight,
            standard_error=parameters.standard_error,
            cost_standard_error=np.where(np.isfinite(parameters.standard_error), error, np.inf),
            correlation=parameters.correlation,
        )

    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        m, size = len(weight), len(self.matrix)
        prior = np.full(size, 1.0 / size) if isinstance(request.prior, str) else request.prior
        return GibbsParameters(weight, np.zeros(m), prior, np.zeros((m, m)), normalised=not request.prior_is("gibbs"))

    def alike(self, parameters: GibbsParameters) -> Parameters | None:
        # Not the plain vote: that leaves Z(truth) out, and so prefers labels in the middle of the space.
        return replace(parameters, weight=np.full(len(parameters.weight), parameters.weight.mean()))

    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        return GibbsParameters(**fields)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        return self.curve.expected_cost(np.asarray(weight, dtype=float))

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        return self.curve.weight_from_cost(np.asarray(cost, dtype=float))

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        pairs = zip(np.atleast_1d(left), np.atleast_1d(right), strict=True)
        return np.array([self._pair(one, two) for one, two in pairs])

    def _pair(self, left: float, right: float) -> float:
        one, two = conditional(self.matrix, left)[0], conditional(self.matrix, right)[0]
        return float(np.einsum("yu,uv,yv->", one, self.matrix, two) / len(self.matrix))
