"""Sets of boxes or spans: sources miss real elements, and mark false ones of their own.

Elements are matched across sources. A real one is marked by a source with a probability that depends on the source and
on how visible the element is; a false one belongs to one source, and hardly ever do others mark the same. What nobody
marked is counted as in capture-recapture studies. How often false marks coincide, and how far visibility varies, is not
identified by the votes: both are constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray
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
from consilience.families.element_table import ElementTable, flat_sets
from consilience.families.pair_costs import gold_sums
from consilience.families.similarity import vote_pairs

__all__ = ["ElementFamily", "ElementParameters"]

#: Standard deviation of the visibility of real elements, on the scale of log-odds.
VISIBILITY = 1.5
#: Votes before a source can be called constant.
MIN_VOTES = 10
#: Pairs of votes on different items that show how close unrelated sets are.
UNRELATED_PAIRS = 400


@dataclass(frozen=True)
class ElementParameters(Parameters):
    """What m sources do to elements.

    Parameters
    ----------
    logit
        ``(m,)`` log-odds of marking a real element of middle visibility.
    false_rate
        ``(m,)`` false elements per item.
    noise
        ``(m,)`` mean distance of corners from where they belong, as a share of the element's side.
    class_accuracy
        ``(m,)`` how often the class is right.
    precision, recall
        ``(m,)`` share of the marks that are real, share of the real elements that are marked.
    cost, cost_error
        ``(m,)`` expected cost of a vote to the truth, and its standard error.
    correlation
        ``(m, m)`` how far dependent sources repeat each other; zero elsewhere.
    real_share
        Share of real ones among the elements that somebody marks.
    """

    logit: FloatArray
    false_rate: FloatArray
    noise: FloatArray
    class_accuracy: FloatArray
    precision: FloatArray
    recall: FloatArray
    cost: FloatArray
    cost_error: FloatArray
    correlation: FloatArray
    real_share: float


@dataclass(frozen=True)
class ElementFamily(Family):
    """Sets of elements, each real or false.

    Parameters
    ----------
    dimension
        2 for boxes, 1 for spans.
    threshold
        Overlap (intersection over union) from which marks of two sources may mean the same element.
    coincidence
        Probability that a source marks what is a false element of another source.
    n_classes
        How many classes elements may have; 0 if they have none.
    by_length
        Whether lengths count, as for spans of text, instead of matched elements.
    united
        Whether kept elements of one class that overlap are put together; only for spans.
    apart
        Whether of kept elements that overlap only the more probable one is left; only for spans.
    unrelated
        Mean similarity of sets on different items, taken from the votes, and its standard error.
    """

    dimension: int
    threshold: float
    coincidence: float
    n_classes: int = 0
    by_length: bool = False
    united: bool = False
    apart: bool = False
    unrelated: tuple[float, float] | None = None
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "moments", "em", "labelled")
    adapts_to_votes: ClassVar[bool] = True

    @property
    def width(self) -> int:
        """Number of corners."""
        return 2 * self.dimension

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> ElementFamily:
        """Look at how close votes on different items are."""
        if sample is None:
            return self
        rows, columns = np.nonzero(sample.observed)
        if len(np.unique(rows)) < 2:
            return self
        rng = np.random.default_rng(seed)
        pairs = rng.integers(0, len(rows), (2 * UNRELATED_PAIRS, 2))
        pairs = pairs[rows[pairs[:, 0]] != rows[pairs[:, 1]]]
        close = 1.0 - flat_sets(sample.labels[rows, columns], self.width).costs(pairs, self.by_length)
        return replace(self, unrelated=(float(close.mean()), float(close.std() / np.sqrt(len(close)))))

    def measures_like(self, other: Family) -> bool:
        return isinstance(other, ElementFamily) and replace(self, unrelated=None) == replace(other, unrelated=None)

    def cost(self, left: Batch, right: Batch) -> FloatArray:
        """Return one minus the F1 of two sets, pair by pair."""
        n = len(left)
        both = np.empty(2 * n, dtype=object)
        both[:n], both[n:] = left, right
        pairs = np.stack([np.arange(n), np.arange(n) + n], axis=1)
        return flat_sets(both, self.width).costs(pairs, self.by_length)

    def statistics(self, chunk: Chunk) -> Sums:
        from consilience.kernels.element_matching import pair_share_sums

        table = ElementTable.of(chunk.labels, chunk.observed, self.width)
        item_start, sources = table.voters
        cost = table.sets.costs(vote_pairs(item_start), self.by_length)
        m = chunk.observed.shape[1]
        count, total, square, shares = pair_share_sums(cost, item_start, sources, chunk.groups, m, GROUPS)
        sizes = np.diff(table.sets.starts)
        parts = {
            **count_sums(chunk),
            "pair_count": count,
            "pair_cost": total,
            "pair_cost_square": square,
            "pair_shares": shares,
            "marks": np.bincount(sources, sizes, minlength=m).astype(np.int64),
        }
        known = chunk.gold_rows
        if len(known) and chunk.known is not None:
            costs = np.zeros((len(known), m))
            for source in range(m):
                seen = chunk.observed[known, source]
                costs[seen, source] = self.cost(chunk.labels[known[seen], source], chunk.known[known[seen]])
            parts |= gold_sums(costs, chunk.observed[known])
        return Sums(parts)

    def constant_sources(self, sums: Sums) -> BoolArray:
        """Return which sources never mark anything, where others do."""
        votes = np.diag(sums["both"])
        others_do = bool(sums["marks"].sum() > votes.sum() / 10)
        silent: BoolArray = (votes >= MIN_VOTES) & (sums["marks"] == 0) & others_do
        return silent

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        from consilience.families.element_estimation import estimate_elements

        self.check_method(request.method, passes, needs_votes=("em", "labelled"))
        return estimate_elements(self, sums, request, passes)

    def round(self, parameters: ElementParameters, chunk: Chunk) -> Sums:
        from consilience.families.element_rounds import element_sums

        return element_sums(self, parameters, chunk)

    def posterior(self, parameters: ElementParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return the sets of largest expected F1.

        The confidence is one minus the expected cost: that F1, where a match counts as much as its place is expected to
        overlap with the true one, by the noise of those who marked it.

        ``details["element_probability"]`` holds how probable it is that each element of the label is real, one array
        per item; ``details["marked_by"]`` how many sources marked it.
        """
        from consilience.families.element_posterior import believe

        return believe(self, parameters, labels, observed)

    def summary(self, parameters: ElementParameters) -> Summary:
        cost, error = parameters.cost, parameters.cost_error
        finite = np.isfinite(error)
        slope = np.where(finite, np.where(finite, error, 0.0) / np.maximum(cost, 1e-6) ** 2, np.inf)
        columns = {"precision": parameters.precision, "recall": parameters.recall, "location_noise": parameters.noise}
        if self.n_classes:
            columns["class_accuracy"] = parameters.class_accuracy
        return Summary(cost, self.weight_from_cost(cost), slope, error, parameters.correlation, columns=columns)

    def from_weights(self, weight: FloatArray, request: Request) -> ElementParameters:
        """Return sources whose misses and false marks both explain their cost."""
        m = len(weight)
        right = np.clip(1.0 - self.expected_cost(weight), 0.02, 0.98)
        stretch = np.sqrt(1.0 + VISIBILITY**2 / 2.89)  # averaging over the visibility flattens a logistic curve
        return ElementParameters(
            logit=stretch * (np.log(right) - np.log1p(-right)),
            false_rate=1.0 - right + 0.01,
            noise=np.full(m, 0.1),
            class_accuracy=np.full(m, 0.9),
            precision=right,
            recall=right,
            cost=self.expected_cost(weight),
            cost_error=np.zeros(m),
            correlation=np.zeros((m, m)),
            real_share=0.5,
        )

    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        return ElementParameters(**fields)

    @property
    def unrelated_cost(self) -> float:
        return 1.0 if self.unrelated is None else 1.0 - self.unrelated[0]

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return ``1 / (1 + weight)``: a weight is the odds of F1 against its complement."""
        cost: FloatArray = 1.0 / (1.0 + np.maximum(np.asarray(weight, dtype=np.float64), 0.0))
        return cost

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return ``1 / cost - 1``."""
        weight: FloatArray = 1.0 / np.clip(np.asarray(cost, dtype=np.float64), 1e-6, 1.0) - 1.0
        return weight

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the cost between two sources that have nothing in common but what is real."""
        pair: FloatArray = 1.0 - (1.0 - self.expected_cost(left)) * (1.0 - self.expected_cost(right))
        return pair
