"""Points on a manifold: a vote is the truth plus isotropic noise, with one scale per source.

The squared distances of two independent votes add up in a flat space, so that ``exp(-sharpness * cost)`` of a pair is
the product of those of its sources. In an open curved space the pair costs more or less than the sum, by a factor that
the geometry simulates once. On spheres and for rotations mean cosines and characters are products exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from consilience.arrays import Axes, Batch, BoolArray, Correlation, FloatArray, IntArray
from consilience.estimation.pair_table import LIMIT, Forward, PairTable, agreement_table
from consilience.estimation.protocol import Chunk, Hypothesis, Mixture, Posterior, Request, Statistics, Summary
from consilience.label_types.held_out import HeldOutLaw, HeldOutParameters
from consilience.label_types.manifolds.geometry import Geometry
from consilience.label_types.pair_costs import MismatchLaw, mismatched_costs
from consilience.label_types.vote_correlation import discount_correlated

#: Identical votes on continuous labels that make two sources copies.
MIN_IDENTICAL = 3
#: The median pair agrees by at most exp(-2) = .14, where the engine can distinguish good sources from bad ones. Votes
#: on different items agree by at most exp(-4) = .02, which is then subtracted.
PAIR_NATS, CHANCE_NATS = 2.0, 4.0
#: Lower bound of one minus the chance agreement, by which agreement is divided. Without a signal, it would vanish.
LEAST_SIGNAL = 0.3
#: A source whose votes scatter by less than this share of the typical one is nearly constant. Two such sources agree
#: without a signal.
STILL = 0.05
#: Smallest quality that differs from zero: a cost of 4.6 / sharpness, above that of unrelated votes.
LEAST_QUALITY = 0.01


@dataclass(frozen=True)
class ManifoldParameters(HeldOutParameters):
    """Scales of m sources."""

    scale: Annotated[FloatArray, Axes("m", 1e-75)]  # standard deviation of the noise in each direction
    correlation: Correlation  # of the errors of two sources given the truth
    # Mean squared distance of true labels to their center, the reference of confidence
    dispersion: Annotated[float, Axes("", 0.0, infinite=True)]
    sharpness: Annotated[float, Axes("", 0.0, infinite=True)]  # the quality of a source is exp(-sharpness * cost)


@dataclass(frozen=True, eq=False)
class ManifoldLaw(MismatchLaw, HeldOutLaw):
    """Noise of one scale per source around points of a manifold."""

    geometry: Geometry  # distances, geodesics and means
    # Mean squared distance of a random vote, for simulations; infinite once votes are seen
    chance: float = float("inf")
    distinct: bool = False  # whether votes on different items are never the same
    parameter_class = ManifoldParameters
    rows: ClassVar[int] = 1 << 12

    @property
    def side_by_side(self) -> bool:
        return not self.geometry.is_given

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> ManifoldLaw:
        if sample is None:
            return self
        law = replace(self, chance=float("inf"))
        if not sample.observed.any():
            return law
        mismatch, distinct = mismatched_costs(self.measure, sample, np.random.default_rng(seed))
        if self.geometry.is_closed:
            mismatch = 1.0 - self._unrelated_closeness(sample)
        return replace(law, mismatch=mismatch, distinct=distinct)

    def _unrelated_closeness(self, sample: Chunk) -> FloatArray:
        """Return the mean closeness ``(m, m)`` of all votes of two sources on different items of a sample."""
        seen = sample.observed.astype(np.float64)
        filled = np.where(self.geometry.widen(seen) > 0, sample.labels, self.geometry.origin)
        features = self.geometry.features(filled) * seen[:, :, None]
        total, count = features.sum(axis=0), seen.sum(axis=0)
        same = np.einsum("nad,nbd->ab", features, features)
        pairs = np.outer(count, count) - seen.T @ seen
        return np.asarray((total @ total.T - same) / np.maximum(pairs, 1.0))

    def measure(self, left: Batch, right: Batch) -> FloatArray:
        return self._apart(self.geometry.distance(left, right))

    def _apart(self, distance: FloatArray) -> FloatArray:
        """Return squared distances, or one minus closeness in closed spaces."""
        return 1.0 - self.geometry.closeness(distance) if self.geometry.is_closed else distance**2

    # --- level 0 ----------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        m = chunk.observed.shape[1]
        same, cost = np.zeros((m, m), dtype=np.int64), np.zeros((m, m))

        def between(rows: IntArray, a: int, b: int) -> FloatArray:
            one, two = chunk.labels[rows, a], chunk.labels[rows, b]
            distance = self.geometry.distance(one, two)
            same[a, b] = same[b, a] = int((one == two).reshape(len(rows), -1).all(axis=1).sum())
            cost[a, b] = cost[b, a] = float((distance**2).sum())
            return self._apart(distance)

        return Statistics({**self.pair_sums(chunk, between), "same": same, "pair_cost": cost})

    def pair_table(self, statistics: Statistics) -> PairTable:
        sharpness, chance = self._sharpness(statistics), self._chance(statistics)

        def agreement(apart: FloatArray, deviation: FloatArray) -> tuple[FloatArray, FloatArray]:
            near, slope = self._quality_of(apart, sharpness)
            return near, slope * deviation

        table = agreement_table(statistics, agreement)
        near, error = table.value, table.error + 1e-6
        far, _ = self._quality_of(chance, sharpness)
        if self.geometry.is_closed or self.geometry.is_flat:
            # Errors enter both alike, so votes on different items agree by a fixed share of the agreement on one item.
            met = table.usable & (near > LEAST_QUALITY**2)
            share = float(np.median(far[met] / near[met])) if met.any() else 0.0
            signal = max(1.0 - share, LEAST_SIGNAL)
            near, error = (near - far) / signal, error / signal
        else:  # not exact in a curved space, where it is enough that chance agreement is small
            still = np.diag(chance) <= STILL * float(np.median(np.diag(chance)))
            near = np.where(np.outer(still, still), 0.0, near)
        linked = None
        if self.distinct:
            linked = (statistics["same"] >= MIN_IDENTICAL) & ~np.eye(len(near), dtype=bool)
        # Copies show in identical votes here, because agreement is a nonlinear function of what scatters.
        found = replace(table, value=near, error=error, linked=linked, scatter=None)
        return self.finished(found, statistics)

    def _quality_of(self, apart: FloatArray, sharpness: float) -> tuple[FloatArray, FloatArray]:
        """Return the agreement of votes so far apart, and the size of its slope."""
        if not self.geometry.is_closed:
            near = np.exp(-sharpness * apart)
            return near, sharpness * near
        close = 1.0 - apart
        size = np.abs(close)
        return np.sign(close) * size**sharpness, sharpness * np.maximum(size, 1e-3) ** (sharpness - 1.0)

    def _scale_of_quality(self, quality: FloatArray, sharpness: float) -> FloatArray:
        """Return the scale of sources that agree with the truth to this degree."""
        nats = -np.log(np.clip(quality, LEAST_QUALITY, np.tanh(LIMIT))) / sharpness
        if self.geometry.is_closed:
            return self.geometry.scale_of_closeness(np.exp(-nats))
        return self.geometry.scale_of_cost(nats)

    def _chance(self, statistics: Statistics) -> FloatArray:
        """Return how far votes on different items are apart ``(m, m)``."""
        if self.mismatch is not None:
            return self.mismatch
        usual = 1.0 if self.geometry.is_closed else 4.0 * self._typical(statistics)
        return np.full(statistics["both"].shape, usual)

    def _typical(self, statistics: Statistics) -> float:
        """Return how far the middle pair of sources is apart."""
        count = statistics["agreement_count"]
        met = np.triu(count > 0, 1)
        found = statistics["agreement"][met] / count[met]
        found = found[found > 0]
        if len(found):
            return float(np.median(found))
        usual = 0.0 if self.mismatch is None else float(np.median(self.mismatch))
        return usual if usual > 0 else 1.0

    def _nats(self, apart: float) -> float:
        """Return the distance that adds up over independent sources, at a sharpness of one."""
        if not self.geometry.is_closed:
            return apart
        return -float(np.log(np.clip(1.0 - apart, np.exp(-CHANCE_NATS), 1.0 - 1e-12)))

    def _sharpness(self, statistics: Statistics) -> float:
        """Return the sharpness that puts the middle pair, and votes on different items, where the constants say."""
        typical = self._nats(self._typical(statistics))
        unrelated = self._nats(float(np.median(np.diag(self._chance(statistics)))))
        return max(PAIR_NATS / typical, CHANCE_NATS / unrelated if unrelated > 0 else 0.0)

    def forward(self, statistics: Statistics) -> Forward:
        if self.geometry.is_closed or self.geometry.is_flat:
            return Forward()
        sharpness = self._sharpness(statistics)
        grid = np.linspace(-LIMIT, LIMIT, 161)
        quality = np.tanh(grid)
        cost = -np.log(np.maximum(np.abs(quality), LEAST_QUALITY)) / sharpness
        scale = self.geometry.scale_of_cost(cost)
        between = np.add.outer(cost, cost) * self.geometry.stretch(scale, scale)
        sign = quality / np.maximum(np.abs(quality), LEAST_QUALITY)
        return Forward.of_table(grid, np.outer(sign, sign) * np.exp(-sharpness * between))

    # --- level 2 ----------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> ManifoldParameters:
        sharpness, quality = self._sharpness(statistics), hypothesis.quality
        if hypothesis.is_plain:
            quality = np.full(len(quality), np.exp(-sharpness * self._nats(self._typical(statistics)) / 2.0))
        quality = np.clip(quality, LEAST_QUALITY, np.tanh(LIMIT))
        scale = self._scale_of_quality(quality, sharpness)
        # With noise of correlation r the cost of a pair is c_a + c_b - 2 r sqrt(c_a c_b), and agreement its
        # exponential. In the engine, it is q_a q_b + shared sqrt((1 - q_a^2) (1 - q_b^2)).
        rest, root = np.sqrt(1.0 - quality**2), np.sqrt(-np.log(quality))
        gain = np.log1p(hypothesis.correlation * np.outer(rest, rest) / np.outer(quality, quality))
        seen = np.clip(gain / (2.0 * np.outer(root, root)), 0.0, 1.0)
        # The correlation of any two sources is a prior about noise, not an observed agreement.
        correlation = np.where(hypothesis.in_group, seen, hypothesis.correlation)
        return ManifoldParameters(scale, correlation, self._dispersion(scale), sharpness)

    def _dispersion(self, scale: FloatArray) -> float:
        """Return half the mean squared distance between true labels, from that between votes on different items.

        Labels scatter around their center by noise of some scale and votes around the labels, so that the distance is
        that of two votes with both. Where space bends noise adds more than its cost, or less.
        """
        cost = self.geometry.cost_of_scale(scale)
        if self.mismatch is None:
            return 4.0 * float(np.median(cost)) if len(cost) else 1.0
        own = np.diag(self.mismatch)
        if self.geometry.is_closed:
            near = self.geometry.closeness(np.sqrt(cost))
            truth = np.median(np.clip((1.0 - own) / np.maximum(near, 0.1) ** 2, 0.0, 1.0 - 1e-6))
            return 0.5 * float(self.geometry.cost_of_closeness(truth))
        tried = float(np.median(own)) * np.geomspace(1e-3, 1e3, 121) + 1e-300
        scales = self.geometry.scale_of_cost(tried)
        tried = self.geometry.cost_of_scale(scales)  # which may have a limit
        apart = 2.0 * tried * np.diag(self.geometry.stretch(scales, scales))
        votes = np.add.outer(tried, cost) * self.geometry.stretch(scales, scale)
        short = np.median(np.interp(votes, tried, apart) - own, axis=1)
        found = float(apart[min(int(np.searchsorted(np.maximum.accumulate(short), 0.0)), len(tried) - 1)])
        # A source without information costs the squared distance between items, so errors are at most two thirds of it.
        return max(found / 2.0, float(np.median(own)) / 6.0, 1e-300)

    def merge(self, mixture: Any) -> Any:
        """Average precisions and correlations over the hypotheses."""
        if len(mixture) == 1:
            return mixture
        precise = tuple((share, replace(one, scale=one.scale**-2.0)) for share, one in mixture)
        merged: Any = super().merge(precise)[0][1]
        return ((1.0, replace(merged, scale=merged.scale**-0.5)),)

    # --- level 3 ----------------------------------------------------------------------------------------

    def posterior(self, parameters: ManifoldParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return the points of largest likelihood, with ``details["standard_deviation"]``.

        The standard deviation is the root of the mean squared distance to the truth that the curvature of the
        likelihood implies (Laplace), for known scales. Confidence is the share of the squared distance between
        unrelated labels that the votes of the item remove.
        """
        geometry = self.geometry
        if not observed.any():
            labels = np.broadcast_to(geometry.origin, (*observed.shape, *geometry.point_shape))
        counted = discount_correlated(observed, parameters.correlation)
        weights = counted / (2.0 * parameters.scale**2)
        volume = counted if geometry.noise == "wrapped" else None
        found = geometry.means(labels, weights, volume)
        information = np.maximum(geometry.information(found.points, labels, weights, volume), 1e-300)
        voted = observed.any(axis=1)
        variance = np.where(voted, geometry.dimension / information, 0.0)
        chance = 2.0 * parameters.dispersion
        lost = geometry.expected_cost(found.points, labels, counted, parameters.scale, variance)
        confidence = parameters.come_true(np.where(voted, np.maximum(1.0 - lost / chance, 0.0), 0.0))
        deviation = np.sqrt(np.where(voted, lost, parameters.dispersion))
        details = {"standard_deviation": deviation, "converged": found.converged, "unique": found.unique}
        return Posterior(found.points, confidence, None, details)

    def foresee(self, mixture: Mixture, together: FloatArray, sample: Chunk) -> Mixture:
        # In closed spaces possible truths are sampled from the posterior, so confidence needs no calibration.
        return mixture if self.geometry.is_closed else super().foresee(mixture, together, sample)

    def agreement(self, parameters: ManifoldParameters, votes: Batch, labels: Batch) -> FloatArray:
        return -(self.geometry.distance(votes, labels) ** 2)

    def expected_agreement(self, parameters: ManifoldParameters, share: FloatArray) -> FloatArray:
        geometry = self.geometry
        left = np.maximum((1.0 - share) * 2.0 * parameters.dispersion, 1e-300)
        stretch = geometry.stretch(parameters.scale, geometry.scale_of_cost(left))
        return -np.add.outer(geometry.cost_of_scale(parameters.scale), left) * stretch

    # --- summaries for all label types --------------------------------------------------------------------

    def summary(self, parameters: ManifoldParameters) -> Summary:
        """Return mean squared distances to the truth, and weights ``1 / (2 scale^2)``."""
        scale = parameters.scale
        unknown = np.full(len(scale), np.inf)
        return Summary(self.geometry.cost_of_scale(scale), 0.5 / scale**2, unknown, unknown, parameters.correlation)

    def quality_errors(
        self, parameters: ManifoldParameters, quality: FloatArray, error: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        quality = np.clip(quality, 2.0 * LEAST_QUALITY, 0.999)
        step = 1e-2 * np.minimum(quality, 1.0 - quality)
        low, high = (self._scale_of_quality(quality + side * step, parameters.sharpness) for side in (-1.0, 1.0))
        slope = np.abs(self.geometry.cost_of_scale(low) - self.geometry.cost_of_scale(high)) / (2.0 * step)
        weight_slope = np.abs(0.5 / low**2 - 0.5 / high**2) / (2.0 * step)
        return slope * error, weight_slope * error

    def from_weights(self, weight: FloatArray, request: Request) -> ManifoldParameters:
        cost = self.expected_cost(weight)
        known = np.isfinite(cost)
        largest = float(cost[known].max()) if known.any() else 1.0
        scale = self.geometry.scale_of_cost(np.where(known, cost, 1e4 * largest))
        dispersion = 4.0 * largest if self.mismatch is None else self._dispersion(scale)
        return ManifoldParameters(scale, np.zeros((len(cost), len(cost))), dispersion, 1.0 / largest)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        precision = 2.0 * np.maximum(np.asarray(weight, dtype=np.float64), 0.0) + self._chance_precision
        known = precision > 0
        return np.where(known, self.geometry.cost_of_scale(np.where(known, precision, 1.0) ** -0.5), np.inf)

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        scale = self.geometry.scale_of_cost(np.maximum(np.asarray(cost, dtype=np.float64), 1e-12))
        return 0.5 * (scale**-2.0 - self._chance_precision)

    @property
    def _chance_precision(self) -> float:
        if not np.isfinite(self.chance):
            return 0.0
        return float(self.geometry.scale_of_cost(np.array([self.chance]))[0] ** -2.0)
