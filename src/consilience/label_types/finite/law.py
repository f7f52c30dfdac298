"""Finite metric spaces: P(vote | truth) proportional to exp(-weight * cost), with its normalizer Z(truth)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from consilience.arrays import Axes, Batch, BoolArray, Correlation, FloatArray, IntArray, softmax
from consilience.estimation.pair_table import Forward, PairTable, Statistics, agreement_sums, agreement_table
from consilience.estimation.protocol import METHODS, Chunk, Hypothesis, Law, Parameters, Posterior, Request, Summary
from consilience.exceptions import UnsupportedError
from consilience.label_types.cost_curve import CostCurve, conditional, pair_agreement
from consilience.label_types.dirichlet import shrink_counts
from consilience.label_types.vote_correlation import discount_correlated

#: Largest m * m * K for which joint votes per node are counted. Only `quadratic` uses them.
MAX_JOINT = 4_000_000
#: Weights are kept between minus and plus this: with exp(-8), one vote in three thousand is off by a unit cost.
MAX_WEIGHT = 8.0


@dataclass(frozen=True)
class FiniteParameters(Parameters):
    """Weights of sources over a finite space."""

    weight: Annotated[FloatArray, Axes("m")]
    prior: Annotated[FloatArray, Axes("k", 0.0, 1.0)]  # over the labels
    correlation: Correlation  # of errors given the truth
    # Standard deviation of the weights after the pair table, which limits how far EM moves them
    spread: Annotated[FloatArray, Axes("m", 0.0, infinite=True)]
    # Whether the posterior contains Z(truth); without it the rule is the paper's weighted Frechet mean, which is right
    # only if the truth follows the joint Gibbs law.
    normalized: bool = True
    learns_prior: bool = False  # whether EM learns how frequent the labels are


@dataclass(frozen=True, eq=False)
class FiniteLaw(Law):
    """Votes over the K labels of a finite space with ``(K, K)`` costs."""

    matrix: FloatArray
    parameter_class = FiniteParameters
    methods: ClassVar[tuple[str, ...]] = (*METHODS[:4], "quadratic", *METHODS[4:])
    has_em: ClassVar[bool] = True

    @property
    def sizes(self) -> Mapping[str, int]:
        return {"k": len(self.matrix)}

    @cached_property
    def curve(self) -> CostCurve:
        """Mean cost against weight, for a uniform truth."""
        return CostCurve.of(self.matrix)

    @cached_property
    def kernel(self) -> FloatArray:
        """Products of the labels in the Euclidean space whose squared distances are the costs.

        Their covariances are products of qualities for independent sources, however frequent the labels are.
        """
        matrix = self.matrix
        return np.asarray(-(matrix - matrix.mean(axis=0) - matrix.mean(axis=1)[:, None] + matrix.mean()) / 2.0)

    @cached_property
    def _forward(self) -> Forward:
        grid = Forward.USUAL_GRID
        weight = self.weight_from_cost(self.chance_cost * (1.0 - np.tanh(grid)))
        return Forward.of_table(grid, pair_agreement(self.matrix, weight))

    @cached_property
    def _grid(self) -> tuple[FloatArray, FloatArray]:
        """Weights and, for each, the mean cost given every truth, ``(grid, K)``."""
        spaced = np.linspace(-1.0, 1.0, 321)
        grid = MAX_WEIGHT * np.sign(spaced) * spaced**2
        return grid, np.stack([conditional(self.matrix, float(value)).mean_cost for value in grid])

    def measures_like(self, other: Law) -> bool:
        return isinstance(other, FiniteLaw) and np.array_equal(other.matrix, self.matrix)

    # --- level 0 ------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        observed = chunk.observed
        size, m = len(self.matrix), observed.shape[1]
        codes = np.where(observed, chunk.labels, 0).astype(np.int64)
        truth = np.zeros(len(chunk), dtype=np.int64)
        if chunk.known is not None:
            truth[chunk.gold_rows] = chunk.known[chunk.gold_rows]
        parts = chunk.counts()
        parts["votes"] = np.stack([np.bincount(codes[observed[:, a], a], minlength=size) for a in range(m)])
        costs = np.zeros((2, m, m))  # sums and squares

        def between(rows: IntArray, a: int, b: int) -> FloatArray:
            cost = self.matrix[codes[rows, a], codes[rows, b]]
            costs[:, a, b] = costs[:, b, a] = cost.sum(), cost @ cost
            return self.kernel[codes[rows, a], codes[rows, b]]

        parts |= agreement_sums(
            between,
            observed,
            lambda rows, a: self.kernel[codes[rows, a], truth[rows]],
            chunk.gold_rows,
        )
        parts["pair_costs"] = costs
        if m * m * size <= MAX_JOINT:
            voted = [(observed & (codes == node)).astype(np.float32) for node in range(size)]
            parts["joint"] = np.stack([np.rint(one.T @ one) for one in voted]).astype(np.int64)
        return Statistics(parts)

    def pair_table(self, statistics: Statistics) -> PairTable:
        votes, table = statistics["votes"], agreement_table(statistics)
        share = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1.0)
        pooled = votes.sum(axis=0) / max(int(votes.sum()), 1)
        # The agreement that two sources reach by chance, from how often they vote for each label.
        by_chance = share @ self.kernel @ share.T
        spread, own = (
            np.maximum(one @ np.diag(self.kernel) - ((one @ self.kernel) * one).sum(axis=-1), 1e-3 * self.chance_cost)
            for one in (pooled, share)
        )
        unit = np.sqrt(np.outer(own, own))
        # Identical votes for some labels agree more than for others, but cost nothing.
        mean, square = statistics["pair_costs"] / np.maximum(statistics["agreement_count"], 1.0)
        apart = np.maximum(share @ self.matrix @ share.T, 1e-3 * self.chance_cost)
        scatter = np.maximum(square - mean**2, 0.0) / apart**2
        gold_value, gold_error = table.gold_value, table.gold_error
        if gold_value is not None and gold_error is not None:
            gold_value, gold_error = (gold_value - by_chance.mean(axis=1)) / spread, gold_error / spread
        return replace(
            table,
            value=np.where(np.eye(len(share), dtype=bool), 1.0, (table.value - by_chance) / unit),
            error=table.error / unit,
            gold_value=gold_value,
            gold_error=gold_error,
            cost=self.chance_cost - 2.0 * table.value,
            widened=None,  # EM uses all votes, and widened 90% intervals cover 98% on a graph
            scatter=scatter,
        )

    def forward(self, statistics: Statistics) -> Forward:
        return self._forward

    def label_indicators(self, statistics: Statistics, request: Request) -> tuple[FloatArray, FloatArray, FloatArray]:
        if "joint" not in statistics:
            raise UnsupportedError("method='quadratic' needs a table per label, too large here. Use 'auto' or 'em'.")
        return statistics["joint"].astype(np.float64), statistics["votes"].astype(np.float64), self._prior(request)

    def weight_from_accuracy(self, accuracy: FloatArray) -> FloatArray:
        return np.clip(self.curve.weight_from_accuracy(accuracy), -MAX_WEIGHT, MAX_WEIGHT)

    def constant_sources(self, statistics: Statistics) -> BoolArray:
        votes = statistics["votes"]
        return np.asarray(((votes > 0).sum(axis=1) == 1) & (votes.sum(axis=1) >= 10))

    # --- level 2 ------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> FiniteParameters:
        m, prior = len(hypothesis.u), self._prior(request)
        if hypothesis.is_plain:
            return FiniteParameters(np.ones(m), prior, hypothesis.correlation, np.zeros(m), normalized=False)
        quality = hypothesis.quality
        weight = np.clip(self.weight_from_cost(self.chance_cost * (1.0 - quality)), -MAX_WEIGHT, MAX_WEIGHT)
        _, spread = self.quality_errors(None, quality, (1.0 - quality**2) * hypothesis.unused_spread)
        normalized, learns_prior = not request.prior_is("gibbs"), request.prior_is("auto")
        return FiniteParameters(weight, prior, hypothesis.correlation, spread, normalized, learns_prior)

    def e_step(self, parameters: FiniteParameters, prepared: Chunk) -> Statistics:
        belief = softmax(self._log_scores(parameters, prepared.labels, prepared.observed))
        rows = prepared.gold_rows
        if len(rows) and prepared.known is not None:
            belief[rows] = 0.0
            belief[rows, prepared.known[rows].astype(np.int64)] = 1.0
        covered = prepared.observed.any(axis=1)
        size = belief.shape[1]
        # An uncertain item counts less than one item toward the label frequencies.
        known = ((belief[covered] ** 2).sum(axis=1) - 1.0 / size) / (1.0 - 1.0 / size)
        belief[~covered] = 0.0
        spent = np.zeros(len(parameters.weight))
        for source, voted in enumerate(prepared.observed.T):
            codes = prepared.labels[voted, source].astype(np.int64)
            spent[source] = (belief[voted] * self.matrix[codes]).sum()
        mass, known_share = prepared.observed.T @ belief, np.array([known.sum(), covered.sum()])
        return Statistics({"labels": belief.sum(axis=0), "known": known_share, "mass": mass, "spent": spent})

    def m_step(self, parameters: FiniteParameters, statistics: Statistics, start: FiniteParameters) -> FiniteParameters:
        grid, means = self._grid
        weight = parameters.weight.copy()
        for source in np.flatnonzero(start.spread > 0):
            pull = (grid - start.weight[source]) / start.spread[source] ** 2
            slope = means @ statistics["mass"][source] - statistics["spent"][source] - pull
            weight[source] = np.interp(0.0, -slope, grid)
        prior = parameters.prior
        if parameters.learns_prior:
            known, covered = statistics["known"]
            prior = shrink_counts(known / max(covered, 1.0) * statistics["labels"][None], start.prior[None])[0]
        return replace(parameters, weight=weight, prior=prior)

    # --- level 3 ------------------------------------------------------------------------------------

    def posterior(self, parameters: FiniteParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        probabilities = softmax(self._log_scores(parameters, labels, observed))
        # Without Z(truth), the most probable label is the weighted Frechet mean (the plain vote, the paper's rule).
        # Nothing can be learned about a single source, so its votes are the labels.
        learned = parameters.normalized and len(parameters.weight) > 1
        return self._decoded(probabilities, cheapest=decode == "bayes" or (decode == "auto" and learned))

    def average(self, posteriors: Sequence[tuple[float, Posterior]], decode: str) -> Posterior:
        probabilities = sum(share * one.probabilities for share, one in posteriors if one.probabilities is not None)
        return self._decoded(np.asarray(probabilities), cheapest=decode != "map")

    def _decoded(self, probabilities: FloatArray, *, cheapest: bool) -> Posterior:
        best = (probabilities @ self.matrix).argmin(axis=1) if cheapest else probabilities.argmax(axis=1)
        return Posterior(best, probabilities[np.arange(len(best)), best], probabilities)

    def _log_scores(self, parameters: FiniteParameters, labels: Batch, observed: BoolArray) -> FloatArray:
        """Return ``(n, K)`` unnormalized log posterior."""
        scores = np.tile(np.log(np.maximum(parameters.prior, 1e-300)), (len(observed), 1))
        shares = discount_correlated(observed, parameters.correlation)
        for source, weight in enumerate(parameters.weight):
            rows = np.flatnonzero(observed[:, source])
            evidence = -weight * self.matrix
            if parameters.normalized:
                evidence = evidence - conditional(self.matrix, weight).log_normalizer[:, None]
            # column l: log-likelihood of each truth, given a vote for l
            scores[rows] += evidence.T[labels[rows, source].astype(np.int64)] * shares[rows, source, None]
        return scores

    # --- summaries for all label types ------------------------------------------------------------------

    def summary(self, parameters: FiniteParameters) -> Summary:
        unknown = np.full(len(parameters.weight), np.inf)
        cost = self.curve.expected_cost(parameters.weight)
        return Summary(cost, parameters.weight, unknown, unknown, parameters.correlation)

    def from_weights(self, weight: FloatArray, request: Request) -> FiniteParameters:
        m, normalized = len(weight), not request.prior_is("gibbs")
        weight = np.clip(weight, -MAX_WEIGHT, MAX_WEIGHT)
        return FiniteParameters(weight, self._prior(request), np.zeros((m, m)), np.zeros(m), normalized)

    def spared(self, belief: Posterior) -> FloatArray:
        if belief.probabilities is None:
            return belief.confidence
        expected = (belief.probabilities * self.matrix[np.asarray(belief.labels)]).sum(axis=1)
        return np.maximum(1.0 - expected / self.chance_cost, 0.0)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        return self.curve.expected_cost(weight)

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        return self.curve.weight_from_cost(cost)

    def _prior(self, request: Request) -> FloatArray:
        size = len(self.matrix)
        return np.full(size, 1.0 / size) if isinstance(request.prior, str) else request.prior
