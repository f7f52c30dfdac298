"""Linear votes in d dimensions, ``vote = offset + slope * y + noise``: one line per source.

Location and scale of y are a choice of gauge: votes alone identify ``slope * sd(y)`` and the noise. See
`consilience.label_types.linear.lines` for how the gauge is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, sampled_rows
from consilience.estimation.pair_table import PairTable
from consilience.estimation.protocol import (
    SAMPLE_ITEMS,
    Chunk,
    Diagnostic,
    Hypothesis,
    Law,
    Mixture,
    Posterior,
    Request,
    Statistics,
    Summary,
    Trust,
)
from consilience.exceptions import InvalidVotesError, UnsupportedError
from consilience.label_types.linear.belief import LinearParameters, Prepared, believe, condense, round_sums
from consilience.label_types.linear.lines import Told, in_gauge, known_from_sums, lines_of, plain_lines, source_say
from consilience.label_types.linear.lines import updated as updated_lines
from consilience.label_types.linear.moments import LinearMoments, identical_votes, linear_sums, repeated_share
from consilience.label_types.linear.quantiles import normal_truth, normal_votes, quantile_knots

__all__ = ["LinearLaw"]

#: Prefixes of the sums of normal scores, and of the sums over known labels, which are one more source.
NORMAL, GOLD = "normal ", "gold_"
#: Cost of a source without information, in units of the variance of y, so that costs stay finite.
MAX_COST = 1e4
#: With more coordinates, the covariances of single items would fill the memory.
MOST_COORDINATES = 64
#: Votes before a source can be called constant.
MIN_VOTES = 10
#: If votes on different items coincide more often, the scale is too coarse for tails, as with ten even steps.
COARSE = 0.1
#: If a larger share of the votes of a source is outside the range of y, the source uses another scale.
SLIPS = 0.01
#: If votes on different items never coincide, this many identical votes make two sources copies, provided that they
#: are also this share of the common items. Rounded votes of precise sources may coincide less often.
IDENTICAL, IDENTICAL_SHARE = 3, 1e-3
HEAVY_TAILS = (
    "Some votes are much farther from the truth than normal noise would explain. The noise is modeled as Student-t, so "
    "outliers count little; look at them."
)
BENT_SCALES = (
    "The scales of the sources are skewed, have a ceiling, or differ in shape, so votes were replaced by normal "
    "quantiles of their ranks. Use Scores(gauge='linear') to leave them unchanged."
)
NOT_BENT = "gauge='quantile' needs three sources with 20 votes each, so the votes were used unchanged. Collect more."


@dataclass(frozen=True, eq=False)
class LinearLaw(Law):
    """Scores (d = 1) and vectors around a line of the truth."""

    d: int
    flat: bool = False  # labels are single numbers, without an axis for the coordinate
    told: Told = field(default_factory=Told)
    clip: bool = False  # labels are clipped to the range of y
    integer: bool = False  # labels are rounded
    #: Variance of a coordinate that stands for "unrelated" in the maps between weight and cost: two unrelated labels
    #: cost ``2 d scale``. Infinite once votes are seen, where ``cost = d / (2 weight)``.
    scale: float = 1.0
    gauge: str = "linear"  # unchanged votes; "quantile": their normal scores; "auto": decided by the shape of the votes
    knots: FloatArray | None = None  # (m, knots) quantiles of the sources, if normal scores are used
    repeated: float = 1.0  # share of equal votes on different items, in a sample
    sampled: float = 1.0  # share of the items used for fourth moments, and the seed that draws them
    seed: int = 0
    parameter_class = LinearParameters
    adapts_to_votes: ClassVar[bool] = True
    has_em: ClassVar[bool] = True
    scale_from_known: ClassVar[bool] = True
    side_by_side: ClassVar[bool] = True

    @property
    def sizes(self) -> Mapping[str, int]:
        return {"d": self.d}

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> Law:
        if sample is None or not sample.observed.any():
            return replace(self, scale=float("inf"))
        knots = None
        told = self.told.mean is not None or self.told.covariance is not None
        if self.gauge == "quantile" or (self.gauge == "auto" and not told):
            knots = quantile_knots(sample.labels, sample.observed, only_bent=self.gauge == "auto")
        repeated = repeated_share(self._votes(sample.labels, sample.observed), sample.observed)
        share = SAMPLE_ITEMS / max(n_items, SAMPLE_ITEMS)
        return replace(self, scale=float("inf"), knots=knots, repeated=repeated, sampled=share, seed=seed)

    def measures_like(self, other: Law) -> bool:
        return isinstance(other, LinearLaw) and self.d == other.d and self.knots is other.knots

    def check_method(self, method: str, *, has_votes: bool) -> None:
        super().check_method(method, has_votes=has_votes)
        if self.gauge == "quantile" and not has_votes:
            raise UnsupportedError(
                "gauge='quantile' needs the votes; moments alone are not enough. "
                "Call fit(votes), or use gauge='linear'."
            )

    # --- level 0 ------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        labels, observed = self._votes(chunk.labels, chunk.observed), chunk.observed
        ids = np.arange(len(chunk)) if chunk.items is None else chunk.items
        sampled = sampled_rows(ids, self.sampled, self.seed)
        sums = linear_sums(labels, observed, sampled)
        parts = {**chunk.counts(sums["both"]), **sums, "same": identical_votes(labels, observed)}
        if self.told.range is not None:
            low, high = self.told.range
            outside = ((labels < low) | (labels > high)).any(axis=2) & observed
            parts["outside"] = outside.sum(axis=0).astype(np.int64)
        if self.knots is not None:
            labels = normal_votes(self.knots, labels, observed)
            parts |= {NORMAL + name: value for name, value in linear_sums(labels, observed, sampled).items()}
        rows = chunk.gold_rows
        if len(rows) and chunk.known is not None:
            truths = {GOLD: chunk.known[rows].astype(np.float64).reshape(len(rows), 1, self.d)}
            if self.knots is not None:
                truths[GOLD + NORMAL] = normal_truth(self.knots, truths[GOLD])
            seen = np.concatenate([observed[rows], np.ones((len(rows), 1), dtype=bool)], axis=1)
            for prefix, truth in truths.items():
                gold = linear_sums(np.concatenate([labels[rows], truth], axis=1), seen)
                parts |= {prefix + name: value for name, value in gold.items()}
        return Statistics(parts)

    def pair_table(self, statistics: Statistics) -> PairTable:
        table = LinearMoments(statistics).pair_table(_gold_moments(statistics, GOLD))
        if self.repeated == 0.0 and "same" in statistics:
            copies = statistics["same"] >= np.maximum(IDENTICAL, IDENTICAL_SHARE * statistics["both"])
            np.fill_diagonal(copies, False)
            table = replace(table, linked=copies)
        if self.knots is not None:
            own = LinearMoments(statistics, NORMAL).pair_table(_gold_moments(statistics, GOLD + NORMAL))
            table = replace(own, linked=table.linked, cost=table.cost)
        return table

    def constant_sources(self, statistics: Statistics) -> BoolArray:
        moments = LinearMoments(statistics)
        return (moments.votes >= MIN_VOTES) & ~moments.varied

    # --- level 2 ------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> LinearParameters:
        moments, told = LinearMoments(statistics), self.told
        if hypothesis.is_plain and request.method != "triplets":
            return plain_lines(moments, told)
        gold = _gold_moments(statistics, GOLD)
        if gold is not None:
            _check_size(gold, moments)
        if self.knots is not None:
            lines = lines_of(hypothesis, LinearMoments(statistics, NORMAL), request.method, coarse=True)
            say = np.where(lines.slope > 0, lines.slope**2 / lines.noise_variance, 0.0)
            if told.range is not None:
                within = (self.knots[:, 0] >= told.range[0]) & (self.knots[:, -1] <= told.range[1])
                say = np.where(within, say, 0.0) if (say * within).any() else say
            say = say if say.any() else np.ones(len(say))
            lines = replace(lines, knots=self.knots, say=say / say.sum())
            return in_gauge(lines if gold is None else replace(lines, known=known_from_sums(lines, gold)), told)
        standard = lines_of(hypothesis, moments, request.method, coarse=self.repeated > COARSE)
        if moments.varied.sum() < 3 and not request.n_gold:
            # The precision of two sources is unknown, and so is the shrinkage of their labels to a mean.
            standard = replace(standard, shrink=0.0, learns=False)
        allowed = np.ones(len(moments.votes), dtype=bool)
        if "outside" in statistics:
            allowed = statistics["outside"] <= SLIPS * moments.votes
        standard = replace(standard, say=source_say(standard, allowed))
        if gold is not None:
            standard = replace(standard, known=known_from_sums(standard, gold))
        return in_gauge(standard, told)

    def prepare(self, chunk: Chunk) -> Any:
        labels = self._votes(chunk.labels, chunk.observed)
        own = Prepared.of(labels, chunk)
        if self.knots is None:
            return own, condense(own), own
        normal = normal_votes(self.knots, labels, chunk.observed)
        return own, own, Prepared.of(normal, chunk)

    def e_step(self, parameters: LinearParameters, prepared: Any) -> Statistics:
        own, condensed, normal = prepared
        if parameters.bent:
            return round_sums(parameters, normal)
        return round_sums(parameters, own if np.isfinite(parameters.degrees) else condensed)

    def m_step(self, parameters: LinearParameters, statistics: Statistics, start: LinearParameters) -> LinearParameters:
        if not start.learns:
            return parameters
        return in_gauge(updated_lines(parameters, statistics, start).standard(), self.told)

    # --- level 3 ------------------------------------------------------------------------------------

    def posterior(self, parameters: LinearParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return posterior means, with ``details["standard_deviation"]``, for vectors also ``details["covariance"]``.

        The latter is left out beyond `MOST_COORDINATES`. Where labels are clipped or rounded, ``details["mean"]``
        holds what they were before. Confidence is the share of the variance of y that the votes of the item remove:
        0 if they say nothing, 1 if y is certain.
        """
        votes = self._votes(labels, observed)
        if parameters.bent:
            votes = normal_votes(parameters.knots, votes, observed)
        belief = believe(parameters, votes, observed)
        left = np.trace(belief.covariance, axis1=1, axis2=2) / np.trace(parameters.variance)
        confidence = np.clip(1.0 - left, 0.0, 1.0)[belief.pattern]
        mean = belief.mean
        deviation = np.sqrt(np.diagonal(belief.covariance, axis1=1, axis2=2))[belief.pattern]
        if parameters.bent:
            mean, low, high = (parameters.label_at(mean + step * deviation) for step in (0.0, -1.0, 1.0))
            deviation = (high - low) / 2.0
        covariance = belief.covariance[belief.pattern] if not self.flat and self.d <= MOST_COORDINATES else None
        return self._decoded(mean, deviation, covariance, confidence)

    def average(self, posteriors: Sequence[tuple[float, Posterior]], decode: str) -> Posterior:
        """Return the mean of the means; the variance is that within hypotheses and that between them."""
        n = len(posteriors[0][1].labels)
        shares = np.array([share for share, _ in posteriors])
        means = np.stack([np.reshape(one.details.get("mean", one.labels), (n, self.d)) for _, one in posteriors])
        within = np.stack([one.details["standard_deviation"].reshape(n, self.d) ** 2 for _, one in posteriors])
        mean = np.tensordot(shares, means, axes=1)
        away = means - mean
        variance = np.tensordot(shares, within + away**2, axes=1)
        # Each confidence is 1 - variance / prior variance, which determines the prior variance.
        doubt = 1.0 - np.tensordot(shares, np.stack([one.confidence for _, one in posteriors]), axes=1)
        known = np.tensordot(shares, within.sum(axis=2), axes=1)
        confidence = np.clip(1.0 - doubt * variance.sum(axis=1) / np.maximum(known, 1e-300), 0.0, 1.0)
        covariance = None
        if "covariance" in posteriors[0][1].details:
            covariance = np.einsum("h,hnd,hne->nde", shares, away, away)
            for share, one in posteriors:
                covariance += share * one.details["covariance"]
        return self._decoded(mean, np.sqrt(variance), covariance, confidence)

    def _decoded(
        self, mean: FloatArray, deviation: FloatArray, covariance: FloatArray | None, confidence: FloatArray
    ) -> Posterior:
        labels = np.clip(mean, *self.told.range) if self.clip and self.told.range is not None else mean
        details = {"standard_deviation": deviation}
        if self.clip or self.integer:
            details["mean"] = mean
        if self.flat:
            labels, details = labels[:, 0], {name: values[:, 0] for name, values in details.items()}
        if covariance is not None:
            details["covariance"] = covariance
        return Posterior(np.round(labels) if self.integer else labels, confidence, None, details)

    def _votes(self, labels: Batch, observed: BoolArray) -> npt.NDArray[Any]:
        """Return votes ``(n, m, d)``; zeros where nobody votes and the cells may be of any type."""
        if not observed.any():
            return np.zeros((*observed.shape, self.d))
        return np.asarray(labels, dtype=np.float64).reshape(*observed.shape, self.d)

    # --- summaries for all label types ------------------------------------------------------------------

    def summary(self, parameters: LinearParameters) -> Summary:
        """Return costs and weights of the votes once offset and slope are undone.

        The expected cost is the noise variance on the scale of y, ``trace(noise) / slope^2``, and the weight
        ``d / (2 cost)``, so that votes with the same noise in all directions have the density ``exp(-weight * cost)``.
        """
        noise, spread = self.d * parameters.noise_variance, float(np.trace(parameters.variance))
        # A constant source has no noise, but also no information.
        square = np.maximum(parameters.slope**2, noise / (MAX_COST * spread))
        cost = np.where(parameters.slope == 0.0, MAX_COST, noise / square / spread)
        cost = np.maximum(cost * self.label_variance(parameters), 1e-300)
        weight = np.where(parameters.slope == 0.0, 0.0, self.d / (2.0 * cost))
        unknown = np.full(len(cost), np.inf)
        return Summary(
            cost, weight, unknown, unknown, parameters.correlation, columns=self._traits(parameters, cost, weight)
        )

    def _traits(self, parameters: LinearParameters, cost: FloatArray, weight: FloatArray) -> dict[str, FloatArray]:
        """Return slope and reliability of each source (correlation of its votes with y), and of scores the bias."""
        variance = self.label_variance(parameters)
        reliability = np.where(weight > 0.0, np.sqrt(variance / (variance + cost)), 0.0) * np.sign(parameters.slope)
        if not parameters.bent:
            bias = parameters.offset[:, 0] + (parameters.slope - 1.0) * parameters.mean[0]
            traits = {"bias": bias, "slope": parameters.slope.copy(), "reliability": reliability}
        else:
            labels = parameters.usual_labels
            spread = parameters.knots.std(axis=1) / max(float(labels.std()), 1e-12)
            bias = parameters.knots.mean(axis=1) - labels.mean()
            traits = {"bias": bias, "slope": spread * np.abs(reliability), "reliability": reliability}
        return traits if self.flat else {name: traits[name] for name in ("slope", "reliability")}

    def label_variance(self, parameters: LinearParameters) -> float:
        """Return the variance of y on the scale of the labels, added up over the coordinates."""
        scale = max(float(np.var(parameters.usual_labels)), 1e-12) if parameters.bent else 1.0
        return float(np.trace(parameters.variance)) * scale

    def unrelated_cost(self, parameters: LinearParameters) -> float:
        learned = parameters.votes.any()  # with given weights, y has no known variance
        return 2.0 * self.label_variance(parameters) if learned else self.chance_cost

    def spared(self, belief: Posterior) -> FloatArray:
        return (1.0 + belief.confidence) / 2.0  # unrelated labels cost two variances, and confidence refers to one

    def quality_errors(
        self, parameters: LinearParameters, quality: FloatArray, error: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the standard errors of cost and weight.

        The cost is known twice: ``variance * (1 / quality^2 - 1)``, and by the variance of the votes that the slope
        leaves over, which is the better one where the scales of the sources are alike. Each counts by its precision.
        Errors of slopes and qualities are the same errors.
        """
        cost = self.summary(parameters).expected_cost
        size = np.maximum(np.abs(quality), 1e-3)
        relative = 2.0 * error / (size * np.maximum(1.0 - size**2, 1e-9))
        if parameters.slope_hold.size:
            grown = 1.0 + (parameters.slope * parameters.spread) ** 2 / np.maximum(parameters.noise_variance, 1e-300)
            common = 2.0 * grown / np.sqrt(np.maximum(parameters.slope**2 * parameters.slope_hold, 1e-12))
            own = grown * np.sqrt(2.0 / np.maximum(parameters.votes * self.d, 2.0))
            share = relative**2 / (relative**2 + common**2 + own**2)
            relative = np.hypot((1.0 - share) * relative + share * common, share * own)
        relative = np.where(parameters.slope == 0.0, np.inf, relative)
        return cost * relative, self.d / (2.0 * cost) * relative

    def from_weights(self, weight: FloatArray, request: Request) -> LinearParameters:
        """Return unbiased sources of these weights; y has the law that is told, or a flat one."""
        m, d, told = len(weight), self.d, self.told
        weight = np.asarray(weight, dtype=np.float64)
        cost = self.expected_cost(np.maximum(weight, 0.0)) / d
        noise = np.where(np.isfinite(cost), cost, MAX_COST)
        return LinearParameters(
            offset=np.zeros((m, d)),
            slope=np.where(weight > 0, 1.0, 0.0),
            noise=noise[:, None, None] * np.eye(d),
            correlation=np.zeros((m, m)),
            mean=np.zeros(d) if told.mean is None else told.mean,
            variance=2.0 * float(noise.max()) * np.eye(d) if told.covariance is None else told.covariance,
            shrink=float(told.mean is not None and told.covariance is not None),
        )

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return the mean squared distance of votes from the truth, ``d / (2 weight + 1 / (2 scale))``."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.d / (2.0 * np.asarray(weight, dtype=np.float64) + 0.5 / self.scale))

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        smallest = 1e-12 * (self.scale if np.isfinite(self.scale) else 1.0)
        apart = np.maximum(np.asarray(cost, dtype=np.float64) / self.d, smallest)
        return np.asarray(0.5 / apart - 0.25 / self.scale)

    def findings(
        self, trust: Trust, mixture: Mixture, statistics: Statistics, request: Request
    ) -> tuple[Diagnostic, ...]:
        lines: Any = mixture[0][1]
        found = []
        if np.isfinite(lines.degrees):
            found.append(Diagnostic("heavy-tails", "info", (), HEAVY_TAILS))
        if lines.bent and self.gauge == "auto":
            found.append(Diagnostic("bent-scales", "info", (), BENT_SCALES))
        if self.gauge == "quantile" and not lines.bent:
            found.append(Diagnostic("bent-scales", "warning", (), NOT_BENT))
        moments = LinearMoments(statistics)
        means, spread = moments.mean[moments.varied], float(np.sqrt(moments.typical_variance))
        apart = float(np.ptp(means, axis=0).max()) if len(means) > 1 else 0.0
        if apart > spread and self.told.mean is None and not int(statistics["gold_items"]):
            message = (
                f"Sources use different score levels: their means are up to {apart:.3g} apart, more than the typical "
                f"spread of their votes ({spread:.3g}). The votes do not show which level is right; pass gold=."
            )
            found.append(Diagnostic("scale-not-identified", "warning", (), message))
        return tuple(found)


def _gold_moments(statistics: Statistics, prefix: str) -> LinearMoments | None:
    return LinearMoments(statistics, prefix) if prefix + "both" in statistics else None


def _check_size(gold: LinearMoments, moments: LinearMoments) -> None:
    """Refuse known labels of another magnitude than the votes: sums of the squares of both would lose the votes."""
    known = float(np.abs(gold.mean[-1]).max() + np.sqrt(gold.variance[-1]))
    votes = float(np.abs(moments.mean).max() + np.sqrt(moments.typical_variance))
    if known > votes / np.sqrt(np.finfo(np.float64).eps) > 0.0:
        raise InvalidVotesError(
            f"Known labels are as large as {known:.3g}, while the votes are about {votes:.3g}. Correct the labels in "
            "gold=, or bring both to one unit."
        )
