"""Real-valued votes: ``vote = offset + slope * y + noise``, one line per source.

Location and scale of y are a choice of gauge: votes alone identify ``slope * sd(y)`` and the noise. See
`consilience.families.gaussian_gauge` for how the gauge is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

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
from consilience.families.gaussian_moments import gold_sums_of, pair_influence, score_moments, score_sums
from consilience.families.gaussian_posterior import Belief, believe_labels
from consilience.families.normal_scores import QuantileScales, beside, label_scale, quantile_label
from consilience.families.truth_spread import relative_error

__all__ = ["GaussianFamily", "GaussianParameters"]

#: A source that tells nothing costs this many times the variance of y, so that costs stay finite.
MAX_COST = 1e4
#: Votes before a source can be called constant.
MIN_VOTES = 10


@dataclass(frozen=True)
class GaussianParameters(Parameters):
    """Lines of m sources, and the law of y.

    Parameters
    ----------
    offset, slope
        ``(m,)``; ``vote = offset + slope * y + noise``. A negative slope is a reversed scale, and is used.
    noise
        ``(m, m)`` covariance of the noise; off the diagonal zero but for `dependent` pairs.
    mean, variance
        Of y before any vote.
    dependent
        ``(m, m)`` pairs with correlated noise.
    slope_error, noise_error, cost_error
        ``(m,)`` standard errors of the slope, of the noise variance and of ``noise variance / slope^2``.
    degrees
        Degrees of freedom of the noise: infinite for Gaussian, 4 for heavy tails.
    shrink
        How far labels are drawn to `mean` where votes are uncertain; 0 for plain weighted means.
    knots, say
        ``(m, k)`` quantile functions of the sources and ``(m,)`` their weights, where the lines are those of normal
        scores; empty where they are those of the votes.
    """

    offset: FloatArray
    slope: FloatArray
    noise: FloatArray
    mean: float
    variance: float
    dependent: BoolArray
    slope_error: FloatArray
    noise_error: FloatArray
    cost_error: FloatArray
    degrees: float = float("inf")
    shrink: float = 1.0
    knots: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    say: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def bent(self) -> bool:
        """Whether the lines are those of normal scores."""
        return self.knots.size > 0

    @property
    def noise_variance(self) -> FloatArray:
        """The diagonal of `noise`."""
        return np.diag(self.noise)

    def regauged(self, mean: float, scale: float) -> GaussianParameters:
        """Return the same law of the votes for ``y' = mean + scale * (y - self.mean)``."""
        slope = self.slope / scale
        return replace(
            self,
            offset=self.offset + self.slope * self.mean - slope * mean,
            slope=slope,
            mean=mean,
            variance=self.variance * scale**2,
            slope_error=self.slope_error / abs(scale),
            cost_error=self.cost_error * scale**2,
        )


@dataclass(frozen=True)
class GaussianFamily(Family):
    """Scores around a line of the truth.

    Parameters
    ----------
    mean, variance
        Of y, where they are known.
    range
        Ends of the scale of y; a source that votes outside of it has no say in location and scale.
    clip, integer
        Whether labels are moved into `range`, and rounded.
    scale
        Variance that stands for "unrelated" in the maps between weight and cost: two unrelated labels cost
        ``2 scale``. Infinite once votes are seen, where ``cost = 1 / (2 weight)``.
    gauge
        "linear" takes votes as they are, "quantile" their normal scores; "auto" decides by the shape of the votes.
    scales
        Quantile functions of the sources, where normal scores are looked at.
    """

    mean: float | None = None
    variance: float | None = None
    range: tuple[float, float] | None = None
    clip: bool = False
    integer: bool = False
    scale: float = 1.0
    gauge: str = "auto"
    scales: QuantileScales | None = None
    adapts_to_votes: ClassVar[bool] = True
    uses_groups: ClassVar[bool] = False
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "isotropic", "triplets", "moments", "em", "labelled")

    @property
    def side_by_side(self) -> bool:
        return True

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> Family:
        scales = None
        if sample is not None and self.gauge != "linear" and sample.observed.any():
            scales = QuantileScales.of(sample.labels, sample.observed, only_bent=self.gauge == "auto")
        return replace(self, scale=float("inf"), scales=scales)

    def measures_like(self, other: Family) -> bool:
        return isinstance(other, GaussianFamily) and self.scales is other.scales

    @property
    def knows_scale(self) -> bool:
        return self.variance is not None

    def statistics(self, chunk: Chunk) -> Sums:
        labels = chunk.labels if chunk.observed.any() else np.zeros(chunk.observed.shape)  # or cells of any type
        sums = score_sums(labels, chunk.observed)
        parts = {**_counts(chunk, sums["both"]), **sums}
        if self.range is not None:
            low, high = self.range
            outside = ((labels < low) | (labels > high)) & chunk.observed
            parts["outside"] = outside.sum(axis=0).astype(np.int64)
        rows = chunk.gold_rows
        if len(rows) and chunk.known is not None:
            truth = chunk.known[rows].astype(np.float64)
            parts |= gold_sums_of(labels[rows], chunk.observed[rows], truth)
        if self.scales is not None:
            normal = self.scales.chunk(chunk)
            own = score_sums(normal.labels, normal.observed)
            parts = beside(parts, {**_counts(normal, own["both"]), **own})
        return Sums(parts)

    def constant_sources(self, sums: Sums) -> BoolArray:
        votes = np.diag(sums["both"])
        constant: BoolArray = (votes >= MIN_VOTES) & ~score_moments(sums).varied
        return constant

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        from consilience.families.gaussian_quantiles import estimate_scores

        self.check_method(request.method, passes)
        return estimate_scores(self, sums, request, passes)

    def round(self, parameters: GaussianParameters, chunk: Chunk) -> Sums:
        from consilience.families.gaussian_rounds import round_sums

        return round_sums(parameters, QuantileScales(parameters.knots).chunk(chunk) if parameters.bent else chunk)

    def posterior(self, parameters: GaussianParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return posterior means, with ``details["standard_deviation"]``.

        Where labels are clipped or rounded, ``details["mean"]`` holds what they were before.

        Confidence is the share of the variance of y that the votes of the item remove: 0 if they say nothing,
        1 if y is certain.
        """
        if not observed.any():
            labels = np.zeros(observed.shape)
        if parameters.bent:
            labels = QuantileScales(parameters.knots).normal(labels, observed)
        belief = believe_labels(parameters, labels, observed)
        confidence = np.clip(1.0 - belief.variance / parameters.variance, 0.0, 1.0)
        if parameters.bent:
            belief = _on_the_scale_of_votes(parameters, belief)
        found = belief.mean
        if self.clip and self.range is not None:
            found = np.clip(found, *self.range)
        if self.integer:
            found = np.round(found)
        details = {"standard_deviation": np.sqrt(belief.variance)}
        if self.clip or self.integer:
            details["mean"] = belief.mean
        return Posterior(found, confidence, None, details)

    def summary(self, parameters: GaussianParameters) -> Summary:
        """Return costs and weights of the votes once offset and slope are undone.

        The expected cost is the noise variance on the scale of y, ``noise / slope^2``, and the weight
        ``slope^2 / (2 noise)``, so that votes have the density ``exp(-weight * cost)``.
        """
        noise = parameters.noise_variance
        scale = label_scale(parameters) if parameters.bent else 1.0
        largest = MAX_COST * parameters.variance
        # A constant source has no noise either, and yet tells nothing.
        cost = np.where(parameters.slope == 0.0, largest, noise / np.maximum(parameters.slope**2, noise / largest))
        cost = cost * scale
        weight = np.where(parameters.slope == 0.0, 0.0, 1.0 / (2.0 * cost))
        finite = np.isfinite(parameters.cost_error)
        cost_error = np.where(finite, np.where(finite, parameters.cost_error, 0.0) * scale, np.inf)
        error = np.where(finite, np.where(finite, cost_error, 0.0) / (2.0 * cost**2), np.inf)
        size = np.sqrt(noise)
        correlation = np.where(parameters.dependent, parameters.noise / np.outer(size, size), 0.0)
        return Summary(cost, weight, error, cost_error, correlation)

    def unrelated_truth(
        self, parameters: GaussianParameters, sums: Sums, passes: Passes | None
    ) -> tuple[float, float] | None:
        cost = 2.0 * parameters.variance * (label_scale(parameters) if parameters.bent else 1.0)
        moments = score_moments(sums)
        if self.knows_scale or not moments.varied.any():
            return cost, 0.0
        loading = 1.0 / np.sqrt(moments.variance) if parameters.bent else parameters.slope / parameters.noise_variance
        influence = None if passes is None else pair_influence(moments, moments.covariance, "covariance", passes)
        items = float(sums["voted_items"])
        loading = np.where(moments.varied, loading, 0.0)
        return cost, cost * relative_error(moments.covariance, loading, ~parameters.dependent, influence, items)

    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        """Return unbiased sources of these weights; y has the law that the space names, or a flat one."""
        m = len(weight)
        cost = self.expected_cost(np.maximum(weight, 0.0))
        noise = np.where(np.isfinite(cost), cost, MAX_COST)
        return GaussianParameters(
            offset=np.zeros(m),
            slope=np.where(np.asarray(weight) > 0, 1.0, 0.0),
            noise=np.diag(noise),
            mean=0.0 if self.mean is None else self.mean,
            variance=float(2.0 * noise.max()) if self.variance is None else self.variance,
            dependent=np.zeros((m, m), dtype=bool),
            slope_error=np.zeros(m),
            noise_error=np.zeros(m),
            cost_error=np.zeros(m),
            shrink=float(self.mean is not None and self.variance is not None),
        )

    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        return GaussianParameters(**fields)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return the variance of votes around the truth, ``1 / (2 weight + 1 / chance)``."""
        total = 2.0 * np.asarray(weight, dtype=np.float64) + 0.5 / self.scale
        with np.errstate(divide="ignore"):
            cost: FloatArray = 1.0 / total
        return cost

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        smallest = 1e-12 * (self.scale if np.isfinite(self.scale) else 1.0)
        weight: FloatArray = 0.5 / np.maximum(np.asarray(cost, dtype=np.float64), smallest) - 0.25 / self.scale
        return weight

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.expected_cost(left) + self.expected_cost(right)


def _on_the_scale_of_votes(parameters: GaussianParameters, belief: Belief) -> Belief:
    """Return beliefs about labels from those about a normal factor; the deviation follows the slope between both."""
    deviation = np.sqrt(belief.variance)
    label, low, high = (quantile_label(parameters, belief.mean + step * deviation) for step in (0.0, -1.0, 1.0))
    return replace(belief, mean=label, variance=((high - low) / 2.0) ** 2)


def _counts(chunk: Chunk, both: IntArray) -> dict[str, npt.NDArray[Any]]:
    """Return `count_sums`, without a look at every item where everybody votes on all of them."""
    if not (both == len(chunk)).all():
        return count_sums(chunk, both)
    items = np.array(len(chunk), dtype=np.int64)
    return {"items": items, "voted_items": items, "both": both, "gold_items": np.array(len(chunk.gold_rows))}
