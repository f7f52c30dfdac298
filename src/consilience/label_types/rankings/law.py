"""Rankings: P(vote | truth) proportional to exp(-weight * discordant pairs), the Mallows law.

Two votes agree by the mean product of their pair signs (Kendall's tau), over the pairs of items that both order. A
weight becomes a quality, the mean sign of agreement with the truth, by the exact moments of the Mallows law: a pair of
items ``k`` places apart in the truth keeps its order with a probability that depends on the weight and ``k`` only, and
``s`` ranked items have ``s - k`` pairs at gap ``k``, so that means over votes are sums over gaps.

Ties are covered as well. A bucket order over ``s`` items with buckets of sizes ``b_1, b_2, ...`` has
``log Z = log Z_s - sum_j log Z_{b_j}`` when discordances are counted across buckets (the q-multinomial), so it acts
like one ranking of ``s`` items minus one ranking per bucket.

Pairs of items i < j are numbered as in ``numpy.triu_indices(r, 1)``. A margin is the weight of "i before j" minus that
of "j before i".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import factorial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from consilience.arrays import Axes, Batch, BoolArray, FloatArray, IntArray, few_votes
from consilience.estimation.pair_table import Forward, PairTable, Statistics, agreement_table, ratio_sums
from consilience.estimation.protocol import Chunk, Hypothesis, Law, Mixture, Parameters, Posterior, Request, Summary
from consilience.exceptions import InvalidLabelError
from consilience.label_types.codes import ABSENT, fill_up
from consilience.label_types.cost_curve import find_root
from consilience.label_types.rankings.kemeny import margins_of, minimize_disagreement, sum_by_item
from consilience.label_types.rankings.labels import UNSEEN, Positions, of_width, pair_order, rank_items
from consilience.label_types.rankings.orders import pair_posterior
from consilience.label_types.vote_correlation import gls_weights

#: Largest weight, at which neighbors are swapped once in 3,000 votes.
MAX_WEIGHT = 8.0
#: Weight of a source at or below chance, which still decides if no other source votes.
LEAST_WEIGHT = 1e-6
#: If no number of items is declared, rankings have at least this many. A sample of the votes may show more.
MAX_RAGGED = 128
#: Number of items to which `expected_cost` refers before any vote is seen, if no number is declared.
USUAL_ITEMS = 5
#: Sweeps of the sampler in a round of learning, and in a prediction. The first quarter is left out.
LEARNING_SWEEPS, PREDICTION_SWEEPS = 60, 240
#: Up to this many items the posterior is computed exactly, by the recursion over subsets.
EXACT_ITEMS = 12
#: Least number of sweeps. Longer lists have fewer, because the time of a sweep grows with the square of the length.
USUAL_LENGTH, LEAST_SWEEPS = 50, 20
#: Pair margins in memory at a time.
MAX_MARGINS = 1 << 24
#: Pair probabilities are returned for rankings of up to this many items. Every row has r (r - 1) / 2 of them.
KEPT_ITEMS = 128
#: The number of signs whose sum fits into one byte.
SIGNS_IN_A_BYTE = 127
#: The number of signs in memory at a time.
MAX_SIGNS = 1 << 25
#: Bernoulli numbers of even order.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
#: (x / 2) coth(x / 2) = 1 + sum_n _COTH[n] x^(2 n + 2); ten terms reach full precision for |x| < 1.
_COTH = tuple(value / factorial(2 * index + 2) for index, value in enumerate(_BERNOULLI))
#: Below this value of |theta| (k + 1) the closed form loses digits and the series is used.
_SERIES_BELOW = 1.0


def pair_retention(theta: npt.ArrayLike, gaps: int, *, slope: bool = False) -> FloatArray:
    """Return how well a source keeps the order of two items that are 1, 2, ... places apart in the truth.

    ``c_k = E[g_ij(vote) g_ij(truth)]`` with ``g = +1`` or ``-1`` for the order of a pair: 1 for a perfect source,
    0 for a random one, negative for one that reverses. In closed form
    ``c_k = (k + 1) coth(theta (k + 1) / 2) - k coth(theta k / 2)``, an odd function of theta.
    Neighbors follow ``tanh(theta / 2)``; items further apart are harder to confuse.

    Weights may have any shape and either sign; the result is ``(*theta.shape, gaps)``. `slope` asks for the derivative
    by theta.
    """
    signed, gap = np.asarray(theta, dtype=float)[..., None], np.arange(1.0, gaps + 1)
    size, steps = np.abs(signed), (gap, gap + 1.0)
    small = size * steps[1] < _SERIES_BELOW
    # Sum 2 B_2n / (2n)! theta^(2n - 1) ((k + 1)^2n - k^2n), or its derivative, where it converges:
    # theta^(2n - 2) ((k + 1)^2n - k^2n) by a recursion that never divides by theta.
    bounded = np.where(small, size, 0.0)
    near, far = ((bounded * step) ** 2 for step in steps)
    difference, power = 2.0 * gap + 1.0 + 0.0 * bounded, gap**2 + 0.0 * bounded
    series = np.zeros(small.shape)
    for index, coefficient in enumerate(_COTH):
        series += 2.0 * coefficient * (2 * index + 1 if slope else 1) * difference
        difference = difference * far + power * (far - near)
        power = power * near
    safe = np.where(small, 1.0, size)
    if slope:
        near, far = (step**2 * np.exp(-safe * step) / np.expm1(-safe * step) ** 2 for step in steps)
        return np.where(small, series, 2.0 * (near - far))
    near, far = (step * np.exp(-safe * step) / -np.expm1(-safe * step) for step in steps)
    return np.asarray(np.sign(signed) * np.where(small, series * bounded, 1.0 - 2.0 * (near - far)))


def pairs_at_gaps(histogram: npt.ArrayLike) -> FloatArray:
    """Return how many pairs of items are at gap 1, 2, ... ``(..., r - 1)`` in votes over s items ``(..., r + 1)``."""
    counts = np.asarray(histogram, dtype=float)
    size = np.arange(counts.shape[-1])
    gap = np.arange(1, max(counts.shape[-1] - 1, 1))
    return np.asarray(counts @ np.maximum(size[:, None] - gap, 0).astype(float))


@dataclass(frozen=True, eq=False)
class RetentionCurve:
    """Mean sign of agreement with the truth (the quality) against the weight, for votes of given sizes."""

    share: FloatArray  # (gaps,) of the pairs of items at gap 1, 2, ...; adds up to one

    @classmethod
    def of_items(cls, items: int) -> RetentionCurve:
        """Return the curve of complete rankings of this many items."""
        return cls.of_pairs(np.arange(items - 1.0, 0.0, -1.0))

    @classmethod
    def of_pairs(cls, pairs: FloatArray) -> RetentionCurve:
        """Return the curve of votes with these numbers of pairs at each gap; neighbors alone where there are none."""
        total = float(pairs.sum())
        return cls(pairs / total) if total > 0 else cls(np.eye(1, max(len(pairs), 1))[0])

    def quality(self, weight: npt.ArrayLike) -> FloatArray:
        """Return the mean sign of agreement with the truth, for any shape of weights."""
        return np.asarray(pair_retention(weight, len(self.share)) @ self.share)

    def slope(self, weight: npt.ArrayLike) -> FloatArray:
        """Return the derivative of `quality`."""
        return np.asarray(pair_retention(weight, len(self.share), slope=True) @ self.share)

    def agreement(self, weight: FloatArray) -> FloatArray:
        """Return the mean sign of agreement ``(m, m)`` of independent sources of these weights."""
        kept = pair_retention(weight, len(self.share))
        return np.asarray((kept * self.share) @ kept.T)

    def weight(self, quality: npt.ArrayLike, limit: float = 12.0) -> FloatArray:
        """Return the weight of this quality, between ``-limit`` and ``limit``."""
        target = np.asarray(quality, dtype=float)
        start = np.arctanh(np.clip(target, -0.999, 0.999)) / float(self.slope(0.0))
        return find_root(lambda weight: (target - self.quality(weight), self.slope(weight)), start, -limit, limit)


#: Votes, who votes, numbers of items ``(n,)``, pairs that each source orders by their gap ``(m, gaps)``; and the rows
#: whose truth is known with the order of their pairs, see `pair_order`.
Prepared = tuple[Positions, BoolArray, IntArray, FloatArray, IntArray, npt.NDArray[np.int8]]


@dataclass(frozen=True)
class RankingParameters(Parameters):
    """Weights of sources of rankings, under each of h hypotheses."""

    probability: Annotated[FloatArray, Axes("h", 0.0, 1.0)]  # of the hypotheses
    weight: Annotated[FloatArray, Axes("h m")]
    correlation: Annotated[FloatArray, Axes("h m m", 0.0, 1.0, symmetric=True)]  # of errors given the truth
    #: ``(h, m, m)`` mean sign of agreement of each two sources, used to weight the votes of dependent sources. Zero
    #: under a hypothesis of independent sources.
    agreement: Annotated[FloatArray, Axes("h m m", -1.0, 1.0)]
    # Mean number of pairs of items 1, 2, ... places apart in a vote of each source
    pairs: Annotated[FloatArray, Axes("m gaps", 0.0)]
    # How far EM may move the weights; zero if the pair table has already used all information
    spread: Annotated[FloatArray, Axes("m", 0.0, infinite=True)]
    # Share of the pairs of items at each gap, in all votes together
    share: Annotated[FloatArray, Axes("gaps", 0.0, 1.0)]
    plain: bool = False  # whether labels are those of the plain vote, unweighted Kemeny

    @property
    def curve(self) -> RetentionCurve:
        return RetentionCurve(self.share)


@dataclass(frozen=True)
class RankingLaw(Law):
    """Votes on rankings under Kendall's tau."""

    max_items: int | None  # number of items of a ranking, or the largest one; None if it is not declared
    signed: bool = False  # whether a source may be worse than random (a negative weight)
    ragged: bool = False  # whether the number of items differs from row to row
    exact: Literal["dp", "milp"] = "dp"  # see `consilience.label_types.rankings.kemeny`
    time_limit: float | None = None
    typical: int = USUAL_ITEMS  # the number of items to which `expected_cost` refers
    widest: int = MAX_RAGGED  # the largest possible number of items, if none is declared
    parameter_class = RankingParameters
    rows: ClassVar[int] = 1 << 12
    has_em: ClassVar[bool] = True
    side_by_side: ClassVar[bool] = True

    @property
    def adapts_to_votes(self) -> bool:  # type: ignore[override]
        return self.ragged

    @property
    def largest(self) -> int:
        """The largest number of items there can be."""
        return self.widest if self.max_items is None else self.max_items

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest weight."""
        return (-MAX_WEIGHT if self.signed else LEAST_WEIGHT, MAX_WEIGHT)

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> RankingLaw:
        if sample is None or not self.ragged:
            return self
        sizes = self._row_sizes(votes_of(sample.labels, sample.observed)).astype(np.float64)
        pairs = float((sizes * (sizes - 1.0)).mean()) if len(sizes) else 0.0
        # Other rows may be up to twice as long.
        widest = max(MAX_RAGGED, 2 * int(sizes.max(initial=0)))
        return replace(self, typical=max(round(0.5 + np.sqrt(0.25 + pairs)), 2), widest=widest)

    def measures_like(self, other: Law) -> bool:
        return isinstance(other, RankingLaw) and other.max_items == self.max_items

    # --- level 0 ------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        votes = votes_of(chunk.labels, chunk.observed)
        width = votes.shape[2]
        if width > self.largest:
            raise InvalidLabelError(
                f"rankings of {width} items, but at most {self.largest} are expected. "
                "Declare the largest number: Rankings(n, ragged=True)."
            )
        parts = chunk.counts()
        parts |= {"buckets": bucket_counts(votes, self.largest), "sums": pair_sums(votes, chunk.observed)}
        if len(chunk.gold_rows) and chunk.known is not None:
            told = pair_order(of_width(chunk.known[chunk.gold_rows], width)).astype(np.float64)
            sign, common = (part.astype(np.int64) for part in compare_votes(votes[chunk.gold_rows], told))
            products = [sign, common, sign * sign, sign * common, common * common]
            parts["gold_sums"] = np.stack([product.sum(axis=0) for product in products])
        return Statistics(parts)

    def pair_table(self, statistics: Statistics) -> PairTable:
        sums = {"agreement_votes": np.diag(statistics["both"]).astype(np.float64)}
        for prefix in ("", "gold_"):
            if f"{prefix}sums" in statistics:
                # If one pair of items changes its order, a sum of signs changes by 2.
                sums |= ratio_sums(statistics[f"{prefix}sums"].astype(np.float64), 4.0, prefix)
        table = agreement_table(sums)
        return replace(table, cost=self.chance_cost * (1.0 - table.value))

    def forward(self, statistics: Statistics) -> Forward:
        curve = RetentionCurve.of_pairs(pairs_at_gaps(statistics["buckets"].sum(axis=0)))
        grid = Forward.USUAL_GRID
        return Forward.of_table(grid, curve.agreement(curve.weight(np.tanh(grid))))

    # --- level 2 ------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> RankingParameters:
        pairs = pairs_at_gaps(statistics["buckets"])
        curve = RetentionCurve.of_pairs(pairs.sum(axis=0))
        quality = hypothesis.quality
        weight = np.clip(curve.weight(quality), *self.bounds)
        agreement = np.zeros_like(hypothesis.correlation)
        if hypothesis.correlation.any():
            table = self.pair_table(statistics)
            alone = np.sqrt(1.0 - quality**2)
            agreement = curve.agreement(weight) + hypothesis.correlation * np.outer(alone, alone)
            measured = hypothesis.in_group & table.usable
            agreement = np.where(measured, table.value, agreement)
            np.fill_diagonal(agreement, 1.0)
        spread = np.zeros_like(weight)
        if request.method == "em":
            spread = (1.0 - quality**2) / curve.slope(weight) * hypothesis.spread
        votes = np.diag(statistics["both"])[:, None]
        mean = np.where(votes > 0, pairs / np.maximum(votes, 1), pairs.sum(axis=0) / max(votes.sum(), 1))
        shared = (mean, spread, curve.share, hypothesis.is_plain)
        return RankingParameters(np.ones(1), weight[None], hypothesis.correlation[None], agreement[None], *shared)

    def refines(self, mixture: Mixture) -> bool:
        # Weights from pairs of sources are as good as those from the likelihood, even with few common pairs of items.
        return any(bool(one.spread.any()) for _, one in mixture)  # type: ignore[attr-defined]

    def prepare(self, chunk: Chunk) -> Prepared:
        votes = votes_of(chunk.labels, chunk.observed)
        pairs = pairs_at_gaps(bucket_counts(votes, self.largest))
        known = np.zeros((0, votes.shape[2])) if chunk.known is None else chunk.known[chunk.gold_rows]
        told = chunk.gold_rows[: len(known)], pair_order(of_width(known, votes.shape[2]))
        return votes, chunk.observed, self._row_sizes(votes), pairs, *told

    def e_step(self, parameters: RankingParameters, prepared: Prepared) -> Statistics:
        votes, observed, sizes, pairs, gold_rows, gold_order = prepared
        n, m, width = votes.shape
        agreed = np.zeros(m)
        for rows in _blocks(n, width):
            margins = margins_of(votes[rows], _loads(parameters, observed[rows], 0))
            probability = pair_probabilities(margins, width, sizes[rows], LEARNING_SWEEPS)
            here = (gold_rows >= rows.start) & (gold_rows < rows.stop)
            order, places = gold_order[here], gold_rows[here] - rows.start
            probability[places] = np.where(order != 0, order > 0, probability[places])
            agreed += compare_votes(votes[rows], 2.0 * probability - 1.0)[0].sum(axis=0)
        return Statistics({"agreed": agreed, "pairs": pairs})

    def m_step(
        self, parameters: RankingParameters, statistics: Statistics, start: RankingParameters
    ) -> RankingParameters:
        free = start.spread > 0
        precision = np.where(free, 1.0 / np.maximum(start.spread, 1e-12) ** 2, 0.0)
        agreed, pairs = statistics["agreed"], statistics["pairs"]

        def excess(weight: FloatArray) -> tuple[FloatArray, FloatArray]:
            """Return by how much agreement exceeds what is expected, pulled to the start, and minus the slope."""
            expected, slope = (
                (pair_retention(weight, pairs.shape[1], slope=slope) * pairs).sum(axis=1) for slope in (False, True)
            )
            return (agreed - expected) / 2.0 - (weight - start.weight[0]) * precision, slope / 2.0 + precision

        solved = find_root(excess, parameters.weight[0], *self.bounds)
        return replace(parameters, weight=np.where(free, solved, parameters.weight[0])[None])

    def merge(self, mixture: Mixture) -> Mixture:
        """Put all hypotheses into one parameter set, so that the votes are compared and decoded once."""
        each: list[RankingParameters] = [one for _, one in mixture]  # type: ignore[misc]
        names = ("weight", "correlation", "agreement")
        joined: Any = {name: np.concatenate([getattr(one, name) for one in each]) for name in names}
        return ((1.0, replace(each[0], probability=np.array([share for share, _ in mixture]), **joined)),)

    # --- level 3 ------------------------------------------------------------------------------------

    def posterior(self, parameters: RankingParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        votes = votes_of(labels, observed)
        n, _, width = votes.shape
        sizes = self._row_sizes(votes)
        parts = []
        for rows in _blocks(n, width):
            some, size = votes[rows], sizes[rows]
            probability: Any = 0.0
            for number, share in enumerate(parameters.probability):
                margins = margins_of(some, _loads(parameters, observed[rows], number))
                sweeps = max(round(share * PREDICTION_SWEEPS), LEARNING_SWEEPS)
                probability = probability + share * pair_probabilities(margins, width, size, sweeps)
            decided = 2.0 * probability - 1.0  # the orders with the smallest expected error
            if parameters.plain or decode == "map":
                decided = margins
                if len(parameters.probability) > 1:  # the margins that give these probabilities, pair by pair
                    inside = np.clip(probability, 1e-12, 1.0 - 1e-12)
                    decided = np.log(inside) - np.log1p(-inside)
            parts.append(self._decode(probability, decided, some.max(axis=1) >= 0, size))
        if len(parts) == 1:
            return parts[0]
        details = {name: np.concatenate([part.details[name] for part in parts]) for name in parts[0].details}
        labels, confidence = np.concatenate([part.labels for part in parts]), [part.confidence for part in parts]
        return Posterior(labels, np.concatenate(confidence), None, details)

    def _decode(self, probability: FloatArray, margins: FloatArray, ranked: BoolArray, sizes: IntArray) -> Posterior:
        """Return the Kemeny orders of margins; `ranked` ``(n, width)`` says which items some source ranks."""
        width = ranked.shape[1]
        found = minimize_disagreement(
            margins, width, sizes, keys=_keys(probability), exact=self.exact, time_limit=self.time_limit
        )
        exists = np.arange(width) < sizes[:, None]
        positions = found.positions.astype(np.int16)
        if not (exists & ranked).all():
            positions = rank_items(found.positions, exists & ranked, np.where(exists, UNSEEN, ABSENT))
        order = pair_order(positions)
        # The expected share of pairs in the wrong order; zero without pairs.
        wrong = np.where(order > 0, 1.0 - probability, np.where(order < 0, probability, 0.0)).sum(axis=1)
        wrong = np.clip(wrong / np.maximum((order != 0).sum(axis=1), 1), 0.0, 1.0)
        error = np.where(ranked.any(axis=1), wrong, np.nan)
        details = {"expected_error": error, "optimal": found.optimal, "gap": found.gap}
        if width <= KEPT_ITEMS:
            details["pair_probability"] = probability
        return Posterior(positions, np.clip(1.0 - 2.0 * wrong, 0.0, 1.0), None, details)

    def _row_sizes(self, votes: Positions) -> IntArray:
        """Return how many items each row has."""
        if not self.ragged:
            return np.full(len(votes), votes.shape[2], dtype=np.int64)
        return np.asarray((votes > ABSENT).any(axis=1).sum(axis=1))

    # --- summaries for all label types ------------------------------------------------------------------

    def summary(self, parameters: RankingParameters) -> Summary:
        weight = parameters.probability @ parameters.weight
        lost = (1.0 - pair_retention(parameters.weight, parameters.pairs.shape[1])) / 2.0
        cost = parameters.probability @ (lost * parameters.pairs).sum(axis=2)
        unknown = np.full(len(weight), np.inf)
        return Summary(cost, weight, unknown, unknown, np.tensordot(parameters.probability, parameters.correlation, 1))

    def quality_errors(
        self, parameters: RankingParameters, quality: FloatArray, error: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        slope = parameters.curve.slope(np.clip(parameters.curve.weight(quality), *self.bounds))
        return parameters.pairs.sum(axis=1) / 2.0 * error, error / np.maximum(slope, 1e-9)

    def from_weights(self, weight: FloatArray, request: Request) -> RankingParameters:
        m = len(weight)
        nobody, pairs = np.zeros((1, m, m)), np.arange(self.typical - 1.0, 0.0, -1.0)
        alike = (np.tile(pairs, (m, 1)), np.zeros(m), pairs / pairs.sum())
        return RankingParameters(np.ones(1), np.clip(weight, *self.bounds)[None], nobody, nobody, *alike)

    @cached_property
    def typical_curve(self) -> RetentionCurve:
        """Quality against weight of complete rankings of the typical number of items."""
        return RetentionCurve.of_items(self.typical)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        return self._typical_pairs / 2.0 * (1.0 - self.typical_curve.quality(weight))

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        return self.typical_curve.weight(1.0 - 2.0 * np.asarray(cost, dtype=float) / self._typical_pairs)

    def chance_costs(self, labels: Batch) -> FloatArray:
        return np.asarray((pair_order(labels) != 0).sum(axis=1) / 2.0)

    @property
    def _typical_pairs(self) -> float:
        return self.typical * (self.typical - 1) / 2.0


# --- votes ----------------------------------------------------------------------------------------------------


def votes_of(labels: Batch, observed: BoolArray) -> Positions:
    """Return votes ``(n, m, r)``; where there is none, no item exists."""
    return np.ascontiguousarray(fill_up(labels, observed, least=2), dtype=np.int16)


def pair_sums(votes: Positions, observed: BoolArray) -> IntArray:
    """Return what each two sources have in common, summed over the rows of votes ``(n, m, r)``.

    Let S be the number of pairs that two votes order alike minus those they order differently, and C the number that
    both order: ``(5, m, m)`` sums of S, C, S * S, S * C and C * C.
    """
    n, m, r = votes.shape
    sums = np.zeros((5, m, m))
    votes = votes if observed.all() else np.where(observed[:, :, None], votes, np.int16(UNSEEN))
    step = max(MAX_SIGNS // max(m * r * r // 2, 1), 1)
    for first in range(0, n, step):
        signs = np.ascontiguousarray(pair_order(votes[first : first + step]).transpose(2, 1, 0))
        for a in range(m - 1):
            sign, common = np.zeros((2, m - 1 - a, signs.shape[2]))
            for start in range(0, len(signs), SIGNS_IN_A_BYTE):
                some = signs[start : start + SIGNS_IN_A_BYTE]
                product = some[:, a : a + 1] * some[:, a + 1 :]
                sign += product.sum(axis=0, dtype=np.int8)
                common += np.abs(product, out=product).sum(axis=0, dtype=np.int8)
            products = [np.einsum("bn,bn->b", *both) for both in ((sign, sign), (sign, common), (common, common))]
            sums[:, a, a + 1 :] += sign.sum(axis=1), common.sum(axis=1), *products
    return (sums + sums.transpose(0, 2, 1)).astype(np.int64)


def compare_votes(votes: Positions, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compare votes ``(n, m, r)`` with one value per row and pair of items, positive where i comes before j.

    Return ``(n, m)`` sums of the values, negative for pairs in opposite order, and of their sizes.
    """
    sums, sizes = np.empty((2, *votes.shape[:2]))
    for a in range(votes.shape[1]):
        product = values * pair_order(votes[:, a])
        sums[:, a], sizes[:, a] = product.sum(axis=1), np.abs(product).sum(axis=1)
    return sums, sizes


def bucket_counts(votes: Positions, sizes: int) -> IntArray:
    """Return ``(m, sizes + 1)``: votes over s items, minus one per bucket of s tied items, per source.

    A bucket order acts like one ranking of all its items minus one ranking per bucket.
    """
    n, m, r = votes.shape
    seen = votes >= 0
    tied = np.bincount((np.arange(n * m).reshape(n, m, 1) * r + votes)[seen], minlength=n * m * r).reshape(n, m, r)
    own = np.arange(m)[:, None] * (sizes + 1)
    whole, buckets = (
        np.bincount((count + own).ravel(), minlength=m * (sizes + 1)).reshape(m, sizes + 1)
        for count in (seen.sum(axis=2, keepdims=True), tied)
    )
    result = whole - buckets
    result[:, 0] = 0
    return result


def _loads(parameters: RankingParameters, observed: BoolArray, number: int) -> FloatArray:
    """Return ``(n, m)`` how loudly each vote counts under one of the hypotheses; zero where there is none."""
    weight = parameters.weight[number]
    loads = np.where(observed, weight, 0.0)
    if not parameters.correlation[number].any():
        return loads
    curve = parameters.curve
    quality = curve.quality(weight)
    seen, who = observed, None
    if len(observed) > 1 and few_votes(observed):  # only the voters: systems of all sources would be large
        who = np.argsort(~observed, axis=1, kind="stable")[:, : int(observed.sum(axis=1).max())]
        seen = np.take_along_axis(observed, who, axis=1)
    # Ratio of the weight of a vote in the best linear prediction to its weight if all sources were independent. The
    # prediction weights are divided by the unexplained share of the truth, because log-odds add up in that form.
    shared, known = gls_weights(seen, parameters.agreement[number], quality, who)
    alone, known_alone = gls_weights(seen, curve.agreement(weight), quality, who)
    left_open = (1.0 - known_alone**2) / np.maximum(1.0 - known**2, 1e-3)
    louder = shared / np.where(alone > 0, alone, 1.0) * left_open[:, None]
    if who is not None:
        moved, louder = louder, np.zeros(observed.shape)
        np.put_along_axis(louder, who, moved, axis=1)
    return loads * louder


# --- from margins to labels -------------------------------------------------------------------------------------


def pair_probabilities(margins: FloatArray, width: int, sizes: IntArray, sweeps: int) -> FloatArray:
    """Return P(i before j) ``(n, pairs)``: exact for few items, by Gibbs sampling above; 1/2 without items."""
    probability = np.full(margins.shape, 0.5)
    second = np.triu_indices(width, 1)[1]
    for size in np.unique(sizes[sizes > 1]).tolist():
        place = np.ix_(sizes == size, second < size)
        some = margins[place]
        if size <= EXACT_ITEMS:
            found = pair_posterior(some, size)
        else:
            from consilience.label_types.rankings.kernels import pair_posterior_gibbs

            # A sweep moves every item, so it visits the pairs of long lists more often.
            fewer = max(sweeps * USUAL_LENGTH // max(width, USUAL_LENGTH), LEAST_SWEEPS)
            order = np.argsort(-sum_by_item(some, size), axis=1, kind="stable")
            found = pair_posterior_gibbs(some, size, order, fewer, fewer // 4, _keys(some))
        probability[place] = found
    return probability


def _blocks(n: int, width: int) -> list[slice]:
    """Return the rows that are looked at together, so that their pair margins fit into memory."""
    step = max(MAX_MARGINS // max(width * (width - 1) // 2, 1), 1)
    return [slice(start, min(start + step, n)) for start in range(0, max(n, 1), step)]


def _keys(pairs: FloatArray) -> IntArray:
    """Return a number per row that follows from its votes, not from its place in the table."""
    return np.asarray(np.round(np.abs(pairs) * 1e6).astype(np.int64) @ np.arange(1, pairs.shape[1] + 1))


# --- draws --------------------------------------------------------------------------------------------------


def sample_mallows(truth: npt.NDArray[Any], seen: BoolArray, weight: float, uniforms: FloatArray) -> IntArray:
    """Return one Mallows vote per row over the items a source sees.

    Repeated insertion: the seen items come in their true order, and each is put v places before the end of the list so
    far with probability proportional to ``exp(-weight * v)``, which is the number of discordances it causes.

    Truth, votes and uniform numbers from [0, 1), the only randomness there is, are ``(n, r)``; -1 is an item that does
    not exist or is not seen. A weight of 0 is a random order; negative weights prefer the reversed truth.
    """
    ranked = seen & (truth >= 0)
    place = np.zeros(truth.shape, dtype=np.int64)  # of the seen items, in their true order
    size = abs(weight)
    for count in range(1, truth.shape[1]):
        uniform = uniforms[:, count]
        if size == 0.0:
            back = uniform * (count + 1)
        else:  # the inverse of the truncated geometric distribution function
            back = -np.log1p(uniform * np.expm1(-size * (count + 1))) / size
        back = np.minimum(back, count).astype(np.int64)
        target = back if weight < 0.0 else count - back
        place[:, :count] += place[:, :count] >= target[:, None]
        place[:, count] = target
    if ranked.all():
        return np.take_along_axis(place, truth.astype(np.int64), axis=1)
    rank = rank_items(truth, ranked, 0)
    # Items that nobody sees were inserted among the others, so close the gaps.
    votes = np.take_along_axis(place, rank.astype(np.int64), axis=1)
    return rank_items(votes, ranked, UNSEEN).astype(np.int64)
