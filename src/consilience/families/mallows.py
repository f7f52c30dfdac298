"""Rankings: P(vote | truth) proportional to exp(-weight * discordant pairs), the Mallows law."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.exceptions import InvalidLabelError
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
    count_sums,
)
from consilience.families.mallows_posterior import decode_rankings, pair_probabilities, tally
from consilience.families.pair_fits import VERY_MANY_SOURCES
from consilience.families.ranking_ballots import Ballots, ballots
from consilience.label_types.vote_correlation import discount_correlated, gls_weights
from consilience.solvers.mallows import DistanceCurve, mean_distance, pair_retention

__all__ = ["MallowsFamily", "MallowsParameters"]

#: Rankings of more items than this need the number of items declared.
MAX_RAGGED = 128
#: Largest table of vote sizes per pair of sources (it serves the moments of partial rankings).
MAX_SIZE_TABLE = 4_000_000
LIMIT = 8.0


@dataclass(frozen=True)
class MallowsParameters(Parameters):
    """Weights of sources of rankings.

    Parameters
    ----------
    weight, standard_error
        Each ``(m,)``.
    correlation
        ``(m, m)``; zero outside the dependencies.
    expected_cost
        ``(m,)`` mean number of discordant pairs of a vote, for the sizes of votes this source casts.
    cost_slope
        ``(m,)`` derivative of it by the weight.
    agreement
        ``(m, m)`` mean sign of agreement of each two sources, from which the votes of dependent ones are weighed
        together; empty where all are independent.
    """

    weight: FloatArray
    standard_error: FloatArray
    correlation: FloatArray
    expected_cost: FloatArray
    cost_slope: FloatArray
    agreement: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True)
class MallowsFamily(Family):
    """Votes on rankings under Kendall's tau.

    Parameters
    ----------
    max_items
        Number of items of a ranking, or the largest one; None where it is not declared.
    signed
        Whether a source may be worse than random (a negative weight).
    ragged
        Whether the number of items differs from row to row.
    exact, time_limit
        How rankings of more than 15 items are decoded: by local search with a bound ("dp"), or by integer
        programming ("milp") within so many seconds.
    """

    max_items: int | None
    signed: bool = False
    ragged: bool = False
    exact: Literal["dp", "milp"] = "dp"
    time_limit: float | None = None
    rows: ClassVar[int] = 1 << 12
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

    @property
    def side_by_side(self) -> bool:
        return True

    @property
    def largest(self) -> int:
        """The largest number of items there can be."""
        return MAX_RAGGED if self.max_items is None else self.max_items

    @property
    def typical(self) -> int:
        """The number of items to which `expected_cost` refers."""
        return 5 if self.max_items is None else self.max_items

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest weight."""
        return (-LIMIT if self.signed else 0.0, LIMIT)

    def measures_like(self, other: Family) -> bool:
        return isinstance(other, MallowsFamily) and other.max_items == self.max_items

    def statistics(self, chunk: Chunk) -> Sums:
        from consilience.kernels.mallows import pair_sums
        from consilience.kernels.ranking_votes import bucket_counts

        votes = ballots(chunk.labels, chunk.observed)
        self._check_size(votes.positions)
        m = votes.m
        width = self.largest + 1
        by_both = m * (m - 1) // 2 * width**2 <= MAX_SIZE_TABLE
        # Influences of groups of items on every pair of very many sources would fill the memory.
        groups = chunk.groups if m <= VERY_MANY_SOURCES else np.zeros_like(chunk.groups)
        kept = GROUPS if m <= VERY_MANY_SOURCES else 1
        agree, both, squares, sizes = pair_sums(
            votes.positions, votes.observed, votes.who, m, groups, kept, width, by_both
        )
        together = np.rint(votes.products(votes.observed.astype(np.float64))).astype(np.int64) if votes.moved else None
        parts = count_sums(chunk, together)
        parts |= {
            "pair_agree": agree,
            "pair_both": both,
            "agree_agree": squares[0].astype(np.float64),
            "agree_both": squares[1].astype(np.float64),
            "both_both": squares[2].astype(np.float64),
            "buckets": bucket_counts(votes.positions, votes.observed, votes.who, m, self.largest),
            # Co-ordered pairs by how many items the two sources rank (by the larger number if that is too much).
            "sizes": sizes.reshape(-1, width, width) if by_both else sizes,
        }
        seen = (votes.positions >= 0).sum(axis=2)
        row = self._row_sizes(votes, chunk.labels)
        short = votes.observed & (seen < row[:, None])
        highest = votes.positions.max(axis=2)
        tied = votes.observed & (seen > 0) & (highest + 1 < seen)
        parts["partial_votes"] = np.array(int(short.sum()), dtype=np.int64)
        parts["tied_votes"] = np.array(int(tied.sum()), dtype=np.int64)
        parts["row_sizes"] = np.bincount(row, minlength=self.largest + 1)
        parts |= self._gold(chunk, votes)
        return Sums(parts)

    def _gold(self, chunk: Chunk, votes: Ballots) -> dict[str, npt.NDArray[Any]]:
        from consilience.kernels.ranking_votes import bucket_counts, expected_discordance

        rows = chunk.gold_rows
        if len(rows) == 0 or chunk.known is None:
            return {}
        told = votes[rows]
        truth = _of_width(chunk.known[rows], told.positions.shape[2])
        left, right = np.triu_indices(truth.shape[1], 1)
        ahead = truth[:, left] < truth[:, right]
        level = (truth[:, left] == truth[:, right]) | (truth[:, left] < 0) | (truth[:, right] < 0)
        certain = np.where(level, 0.5, ahead.astype(np.float64))
        return {
            "gold_discordant": told.by_source(expected_discordance(told.positions, certain)),
            "gold_buckets": bucket_counts(told.positions, told.observed, told.who, told.m, self.largest),
        }

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        from consilience.families.mallows_estimation import estimate_mallows

        self.check_method(request.method, passes, needs_votes=("em",))
        return estimate_mallows(self, sums, request, passes)

    def round(self, parameters: MallowsParameters, chunk: Chunk, seed: int = 0) -> Sums:
        from consilience.kernels.ranking_votes import bucket_counts, expected_discordance, expected_under_weight

        votes = ballots(chunk.labels, chunk.observed)
        sizes = self._row_sizes(votes, chunk.labels)
        counted = tally(votes.positions, sizes, self._loads(parameters, votes))
        probability, likelihood = pair_probabilities(counted, seed)
        probability = _with_known(probability, chunk)
        spent = expected_discordance(votes.positions, probability)
        table = mean_distance(parameters.weight[:, None], np.arange(votes.positions.shape[2] + 1))
        score = expected_under_weight(votes.positions, votes.observed, votes.who, table) - spent
        return Sums(
            {
                "spent": votes.by_source(spent),
                "round_buckets": bucket_counts(votes.positions, votes.observed, votes.who, votes.m, self.largest),
                "outer": votes.products(score),
                "log_likelihood": np.array(likelihood),
            }
        )

    def posterior(self, parameters: MallowsParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        votes = ballots(labels, observed)
        sizes = self._row_sizes(votes, labels)
        counted = tally(votes.positions, sizes, self._loads(parameters, votes))
        return decode_rankings(counted, votes.positions, decode, exact=self.exact, time_limit=self.time_limit)

    def _loads(self, parameters: MallowsParameters, votes: Ballots) -> FloatArray:
        if parameters.agreement.size == 0:
            loads = votes.of_sources(parameters.weight)
            if parameters.correlation.any():
                loads = loads * discount_correlated(votes.observed, parameters.correlation, votes.who)
            return loads
        pairs = self.typical * (self.typical - 1) / 2.0
        quality = 1.0 - 2.0 * self.expected_cost(parameters.weight) / pairs
        linear, together = gls_weights(votes.observed, parameters.agreement, quality, votes.who)
        # All votes on an item together are as good as one source that agrees with the truth as often as they do.
        weight = np.clip(self.weight_from_cost((1.0 - together) / 2.0 * pairs), *self.bounds)
        loads = linear * (weight / np.maximum(together, 1e-9))[:, None]
        return loads

    def _row_sizes(self, votes: Ballots, labels: Batch) -> IntArray:
        """Return how many items each row has."""
        if labels.ndim == 2:
            return np.zeros(len(labels), dtype=np.int64)
        if not self.ragged:
            return np.full(len(labels), labels.shape[2], dtype=np.int64)
        exists = (votes.positions > -2) & votes.observed[:, :, None]
        sizes: IntArray = exists.any(axis=1).sum(axis=1).astype(np.int64)
        return sizes

    def _check_size(self, votes: npt.NDArray[np.int16]) -> None:
        if votes.shape[2] > self.largest:
            raise InvalidLabelError(
                f"rankings of {votes.shape[2]} items, but at most {self.largest} are expected. "
                "Declare the largest number: Rankings(n, ragged=True)."
            )

    def summary(self, parameters: MallowsParameters) -> Summary:
        finite = np.isfinite(parameters.standard_error)
        error = np.where(finite, parameters.standard_error, 0.0) * np.abs(parameters.cost_slope)
        return Summary(
            parameters.expected_cost,
            parameters.weight,
            parameters.standard_error,
            np.where(finite, error, np.inf),
            parameters.correlation,
        )

    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        m = len(weight)
        curve = self.typical_curve
        return MallowsParameters(weight, np.zeros(m), np.zeros((m, m)), curve.mean(weight), -curve.variance(weight))

    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        return MallowsParameters(**fields)

    @property
    def typical_curve(self) -> DistanceCurve:
        """Expected discordances of one complete ranking, by weight."""
        histogram = np.zeros(self.typical + 1)
        histogram[self.typical] = 1.0
        return DistanceCurve.of(histogram)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        return self.typical_curve.mean(np.asarray(weight, dtype=float))

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        return self.typical_curve.weight_from_mean(np.asarray(cost, dtype=float))

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        items = self.typical
        gap = np.arange(1, items)
        pairs = items * (items - 1) / 2
        one, two = (pair_retention(np.atleast_1d(np.asarray(w, dtype=float)), items - 1) for w in (left, right))
        cost: FloatArray = pairs * (1.0 - (one * two) @ ((items - gap) / pairs)) / 2.0
        return cost


def _of_width(truth: Batch, width: int) -> npt.NDArray[np.int16]:
    """Return known rankings padded, or cut, to the width of the votes."""
    result = np.full((len(truth), width), -2, dtype=np.int16)
    kept = min(width, truth.shape[1])
    result[:, :kept] = truth[:, :kept]
    return result


def _with_known(probability: FloatArray, chunk: Chunk) -> FloatArray:
    rows = chunk.gold_rows
    if len(rows) == 0 or chunk.known is None:
        return probability
    truth = _of_width(chunk.known[rows], chunk.labels.shape[2])
    left, right = np.triu_indices(truth.shape[1], 1)
    ordered = (truth[:, left] >= 0) & (truth[:, right] >= 0) & (truth[:, left] != truth[:, right])
    probability = probability.copy()
    probability[rows] = np.where(ordered, (truth[:, left] < truth[:, right]).astype(float), probability[rows])
    return probability
