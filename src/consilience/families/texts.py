"""Texts: sources are known by how similar their texts are to those of others, and labels may be written anew.

The similarity of two sources on an item, one minus their distance, is taken as the product of three factors: one for
the item and one for each source. A source's own factor is its similarity to the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.exceptions import UnsupportedError
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
from consilience.families.pair_costs import gold_sums
from consilience.families.similarity import vote_pairs
from consilience.families.text_table import WordTable, exact_words, plain_words

__all__ = ["TextFamily", "TextParameters"]

#: Pairs of votes on different items that show how close unrelated texts are.
UNRELATED_PAIRS = 400
#: Pseudo-pairs of average similarity that an item starts with.
PSEUDO_PAIRS = 3.0
#: Similarities to the truth are kept within these.
LEAST, MOST = 0.02, 0.97
KINDS = {"words": 0, "gleu": 1}

PairFunction = Callable[[Batch, Batch], FloatArray]


@dataclass(frozen=True)
class TextParameters(Parameters):
    """How similar the texts of m sources are to the truth.

    Parameters
    ----------
    similarity, similarity_error
        ``(m,)``, and the standard error.
    weight
        ``(m,)`` how much each source counts.
    correlation
        ``(m, m)`` how far dependent sources repeat each other; zero elsewhere.
    """

    similarity: FloatArray
    similarity_error: FloatArray
    weight: FloatArray
    correlation: FloatArray


@dataclass(frozen=True, eq=False)
class TextFamily(Family):
    """Texts known by their distances.

    Parameters
    ----------
    kind
        "words", "gleu" or "given".
    given
        ``texts, texts -> distances`` for the kind "given".
    exact
        Whether words are compared as they are written.
    write
        Whether labels may be written anew.
    scale
        Distance that counts as 1; that between unrelated texts for a given distance, once votes are seen.
    unrelated
        Mean similarity of texts on different items, taken from the votes, and its standard error.
    """

    kind: str = "words"
    given: PairFunction | None = None
    exact: bool = False
    write: bool = True
    scale: float = 1.0
    unrelated: tuple[float, float] | None = None
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "moments", "labelled")
    adapts_to_votes: ClassVar[bool] = True

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> TextFamily:
        """Look at how far votes on different items are apart."""
        if sample is None:
            return self
        rows, columns = np.nonzero(sample.observed)
        if len(np.unique(rows)) < 2:
            return self
        rng = np.random.default_rng(seed)
        pairs = rng.integers(0, len(rows), (2 * UNRELATED_PAIRS, 2))
        pairs = pairs[rows[pairs[:, 0]] != rows[pairs[:, 1]]]
        texts = sample.labels[rows, columns]
        apart = self.cost(texts[pairs[:, 0]], texts[pairs[:, 1]])
        family = self
        if self.kind == "given" and float(apart.mean()) > 0:
            family = replace(self, scale=float(apart.mean()))
        close = 1.0 - np.minimum(apart / family.scale, 1.0)
        return replace(family, unrelated=(float(close.mean()), float(close.std() / np.sqrt(len(close)))))

    def measures_like(self, other: Family) -> bool:
        return (
            isinstance(other, TextFamily)
            and (self.kind, self.exact, self.scale) == (other.kind, other.exact, other.scale)
            and self.given is other.given
        )

    def table(self, texts: Batch) -> WordTable:
        """Return texts as words."""
        return WordTable.of(texts, exact_words if self.exact else plain_words)

    def cost(self, left: Batch, right: Batch) -> FloatArray:
        """Return the distances, pair by pair."""
        n = len(left)
        both = np.empty(2 * n, dtype=object)
        both[:n], both[n:] = left, right
        pairs = np.stack([np.arange(n), np.arange(n) + n], axis=1)
        return self.pair_distances(both, self.table(both) if self.kind in KINDS else None, pairs)

    def pair_distances(self, texts: Batch, table: WordTable | None, pairs: IntArray) -> FloatArray:
        """Return the distances between pairs of texts ``(p, 2)``."""
        from consilience.kernels.texts import text_costs

        if len(pairs) == 0:
            return np.zeros(0)
        if table is not None:
            return text_costs(table.words, table.starts, pairs, KINDS[self.kind])
        if self.given is None:
            raise UnsupportedError("A family of texts with a given distance needs the function.")
        return np.asarray(self.given(texts[pairs[:, 0]], texts[pairs[:, 1]]), dtype=np.float64)

    def statistics(self, chunk: Chunk) -> Sums:
        from consilience.kernels.element_matching import pair_share_sums

        rows, sources = np.nonzero(chunk.observed)
        n, m = chunk.observed.shape
        item_start = np.searchsorted(rows, np.arange(n + 1)).astype(np.int64)
        pairs = vote_pairs(item_start)
        texts = chunk.labels[rows, sources]
        table = self.table(texts) if self.kind in KINDS else None
        cost = self.pair_distances(texts, table, pairs) / self.scale
        count, total, square, shares = pair_share_sums(cost, item_start, sources, chunk.groups, m, GROUPS)
        parts = {
            **count_sums(chunk),
            "pair_count": count,
            "pair_cost": total,
            "pair_cost_square": square,
            "pair_shares": shares,
            **_product_sums(np.maximum(1.0 - cost, 0.0), rows, sources, pairs, n, m),
        }
        known = chunk.gold_rows
        if len(known) and chunk.known is not None:
            costs = np.zeros((len(known), m))
            for source in range(m):
                seen = chunk.observed[known, source]
                costs[seen, source] = self.cost(chunk.labels[known[seen], source], chunk.known[known[seen]])
            parts |= gold_sums(np.minimum(costs / self.scale, 1.0), chunk.observed[known])
        return Sums(parts)

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        from consilience.families.text_estimation import estimate_texts

        self.check_method(request.method, passes)
        return estimate_texts(self, sums, request)

    def round(self, parameters: TextParameters, chunk: Chunk) -> Sums:
        raise UnsupportedError("Texts have no likelihood, so there is no method='em'. Use method='moments'.")

    def posterior(self, parameters: TextParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return the vote of least weighted distance to the others, or a text that is closer still.

        ``details["written_anew"]`` says which labels nobody voted for, ``details["expected_distance"]`` how far the
        votes lie from the label on average, by weight.
        """
        from consilience.families.text_labels import best_texts

        return best_texts(self, parameters, labels, observed)

    def summary(self, parameters: TextParameters) -> Summary:
        similarity, error = parameters.similarity, parameters.similarity_error
        finite = np.isfinite(error)
        slope = (1.0 + similarity**2) / (1.0 - similarity**2) ** 2
        spread = np.where(finite, np.where(finite, error, 0.0) * slope, np.inf)
        cost = self.scale * (1.0 - similarity)
        columns = {"similarity": similarity}
        return Summary(cost, parameters.weight, spread, self.scale * error, parameters.correlation, columns=columns)

    def from_weights(self, weight: FloatArray, request: Request) -> TextParameters:
        m = len(weight)
        similarity = np.clip(1.0 - self.expected_cost(weight) / self.scale, LEAST, MOST)
        return TextParameters(similarity, np.zeros(m), np.maximum(weight, 1e-9), np.zeros((m, m)))

    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        return TextParameters(**fields)

    @property
    def unrelated_cost(self) -> float:
        return self.scale if self.unrelated is None else self.scale * (1.0 - self.unrelated[0])

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return one minus the similarity s that solves ``weight = s / (1 - s^2)``."""
        loud = np.maximum(np.asarray(weight, dtype=np.float64), 0.0)
        similarity = 2.0 * loud / (1.0 + np.sqrt(1.0 + 4.0 * loud**2))
        cost: FloatArray = self.scale * (1.0 - similarity)
        return cost

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return ``s / (1 - s^2)`` for the similarity ``s = 1 - cost``."""
        share = np.asarray(cost, dtype=np.float64) / self.scale
        similarity = np.clip(1.0 - share, 0.0, 1.0 - 1e-9)
        weight: FloatArray = similarity / (1.0 - similarity**2)
        return weight

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        one, two = (1.0 - self.expected_cost(weight) / self.scale for weight in (left, right))
        pair: FloatArray = self.scale * (1.0 - one * two)
        return pair


def _product_sums(
    close: FloatArray, rows: IntArray, sources: IntArray, pairs: IntArray, n: int, m: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the sums behind the least squares fit of ``similarity = item x source x source``.

    The factor of an item is its mean similarity, drawn to that of all items by pseudo-pairs. As the latter is known at
    the end only, the sums are kept by powers of it. A pair weighs one over the number of partners of a vote.
    """
    item = rows[pairs[:, 0]]
    left, right = sources[pairs[:, 0]], sources[pairs[:, 1]]
    n_pairs = np.bincount(item, minlength=n)
    mean = np.bincount(item, close, minlength=n) / np.maximum(n_pairs, 1)
    votes = np.bincount(rows, minlength=n)
    weight = 1.0 / np.maximum(votes[item] - 1, 1)
    # Each pair counts in both directions, as each of its two votes has the other for a partner.
    twice = 2.0 * n_pairs[item]
    own, lent = twice * mean[item] / (twice + PSEUDO_PAIRS), PSEUDO_PAIRS / (twice + PSEUDO_PAIRS)

    def summed(values: FloatArray) -> FloatArray:
        table: FloatArray = np.bincount(left * m + right, values, minlength=m * m).astype(np.float64).reshape(m, m)
        return table + table.T

    return {
        "product": np.stack([summed(weight * close * own), summed(weight * close * lent)]),
        "square": np.stack([summed(weight * own**2), summed(2.0 * weight * own * lent), summed(weight * lent**2)]),
        "partners": summed(weight),
        "mean_similarity": np.array([mean[n_pairs > 0].sum(), float((n_pairs > 0).sum())]),
    }
