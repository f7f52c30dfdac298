"""The law of texts: sources are known by how similar their texts are, and labels may be written anew.

The similarity of two texts on an item, one minus their distance, is the product of three factors: one for the item and
one for each source. Averaged over items, the agreement of two sources is therefore a product of their qualities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_object_array
from consilience.estimation.pair_table import PairTable, agreement_table
from consilience.estimation.protocol import (
    Chunk,
    Hypothesis,
    Law,
    Mixture,
    Parameters,
    Posterior,
    Request,
    Statistics,
    Summary,
    count_statistics,
)
from consilience.exceptions import UnsupportedError
from consilience.label_types.texts.words import WordTable, exact_words, plain_words
from consilience.label_types.vote_correlation import discount_correlated
from consilience.label_types.vote_pairs import pair_sums, vote_pairs

__all__ = ["KINDS", "TextLaw", "TextParameters"]

#: Pairs of votes on different items that show how close unrelated texts are.
UNRELATED_PAIRS = 400
#: Similarities to the truth are kept within these, so that weights stay finite.
LEAST, MOST = 0.02, 0.97
#: Steps of the search for a better text.
MOST_STEPS = 6
KINDS = {"words": 0, "gleu": 1}

PairFunction = Callable[[Batch, Batch], FloatArray]


@dataclass(frozen=True)
class TextParameters(Parameters):
    """How similar the texts of m sources are to the truth.

    Parameters
    ----------
    similarity
        ``(m,)``.
    weight
        ``(m,)`` how much each source counts.
    correlation
        ``(m, m)`` of errors given the truth.
    """

    similarity: FloatArray
    weight: FloatArray
    correlation: FloatArray


@dataclass(frozen=True, eq=False)
class TextLaw(Law):
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
        Mean similarity of texts on different items, taken from the votes; before any vote, that of short sentences.
    """

    kind: str = "words"
    given: PairFunction | None = None
    exact: bool = False
    write: bool = True
    scale: float = 1.0
    unrelated: float = 0.05
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "isotropic", "triplets", "labelled")
    adapts_to_votes: ClassVar[bool] = True
    rows: ClassVar[int] = 1 << 12

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> TextLaw:
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
        scale = float(apart.mean()) if self.kind == "given" and float(apart.mean()) > 0 else self.scale
        close = 1.0 - np.minimum(apart / scale, 1.0)
        return replace(self, scale=scale, unrelated=min(float(close.mean()), 0.95))

    def measures_like(self, other: Law) -> bool:
        return (
            isinstance(other, TextLaw)
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
        from consilience.label_types.texts.kernels import text_costs

        if len(pairs) == 0:
            return np.zeros(0)
        if table is not None:
            return text_costs(table.words, table.starts, pairs, KINDS[self.kind])
        if self.given is None:
            raise UnsupportedError("Texts with a distance of their own need the function. Pass it as distance=.")
        return np.asarray(self.given(texts[pairs[:, 0]], texts[pairs[:, 1]]), dtype=np.float64)

    # --- level 0 ------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        rows, sources = np.nonzero(chunk.observed)
        n, m = chunk.observed.shape
        pairs = vote_pairs(np.searchsorted(rows, np.arange(n + 1)).astype(np.int64))
        texts = chunk.labels[rows, sources]
        table = self.table(texts) if self.kind in KINDS else None
        close = self._similarity(self.pair_distances(texts, table, pairs))
        parts = {
            **count_statistics(chunk),
            **pair_sums(close, sources[pairs[:, 0]], sources[pairs[:, 1]], m),
            "agreement_votes": chunk.observed.sum(axis=0).astype(np.float64),
        }
        known = chunk.gold_rows
        if len(known) and chunk.known is not None:
            sums = np.zeros((3, m))
            for source in range(m):
                some = known[chunk.observed[known, source]]
                if len(some):
                    right = self._similarity(self.cost(chunk.labels[some, source], chunk.known[some]))
                    sums[:, source] = right.sum(), right @ right, len(some)
            names = ("gold_agreement", "gold_agreement_square", "gold_agreement_count")
            parts |= dict(zip(names, sums, strict=True))
        return Statistics(parts)

    def _similarity(self, distance: FloatArray) -> FloatArray:
        return 1.0 - np.minimum(distance / self.scale, 1.0)

    def pair_table(self, statistics: Statistics) -> PairTable:
        by_chance = self.unrelated
        table = agreement_table(
            statistics, lambda mean, error: ((mean - by_chance) / (1.0 - by_chance), error / (1.0 - by_chance))
        )
        return replace(table, cost=self.chance_cost * (1.0 - table.value))

    # --- level 2 ------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> TextParameters:
        m = len(hypothesis.u)
        if hypothesis.is_plain:
            count = max(float(statistics["agreement_count"].sum()), 1.0)
            level = float(statistics["agreement"].sum()) / count  # mean similarity of two votes on an item
            usual = float(np.clip(np.sqrt(max(level, 0.0)), LEAST, MOST))
            return TextParameters(np.full(m, usual), np.ones(m), np.zeros((m, m)))
        similarity = np.clip(self.unrelated + (1.0 - self.unrelated) * hypothesis.quality, LEAST, MOST)
        weight = self.weight_from_cost(self.scale * (1.0 - similarity))
        return TextParameters(similarity, weight, hypothesis.correlation)

    def merge(self, mixture: Mixture) -> Mixture:
        """Return the mean weights: a label is one text, which cannot be averaged over hypotheses."""
        names = ("similarity", "weight", "correlation")
        mean = {name: sum(share * getattr(one, name) for share, one in mixture) for name in names}
        return ((1.0, TextParameters(**mean)),)

    # --- level 3 ------------------------------------------------------------------------------------

    def posterior(self, parameters: TextParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return the vote of least weighted distance to the others, or a text that is closer still.

        ``details["written_anew"]`` says which labels nobody voted for, ``details["expected_distance"]`` how far the
        votes lie from the label on average, by weight.
        """
        return _best_texts(self, parameters, labels, observed)

    def average(self, posteriors: Sequence[tuple[float, Posterior]], decode: str) -> Posterior:
        return posteriors[0][1]  # hypotheses were merged before

    # --- in shared words --------------------------------------------------------------------------------

    def summary(self, parameters: TextParameters) -> Summary:
        unknown = np.full(len(parameters.weight), np.inf)
        cost = self.scale * (1.0 - parameters.similarity)
        columns = {"similarity": parameters.similarity}
        return Summary(cost, parameters.weight, unknown, unknown, parameters.correlation, columns=columns)

    def from_weights(self, weight: FloatArray, request: Request) -> TextParameters:
        m = len(weight)
        similarity = np.clip(1.0 - self.expected_cost(weight) / self.scale, LEAST, MOST)
        return TextParameters(similarity, np.maximum(weight, 1e-9), np.zeros((m, m)))

    def restore(self, fields: Mapping[str, Any]) -> TextParameters:
        return TextParameters(**fields)

    @property
    def chance_cost(self) -> float:
        return self.scale * (1.0 - self.unrelated)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return one minus the similarity s that solves ``weight = log(s / ((1 - s) c))``."""
        odds = self._coincidence * np.exp(np.clip(np.asarray(weight, dtype=np.float64), -50.0, 50.0))
        cost: FloatArray = self.scale / (1.0 + odds)
        return cost

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return ``log(s / ((1 - s) c))`` for the similarity ``s = 1 - cost``: what one word in common is worth.

        A source has the true word with probability s, and another source's wrong word with probability ``(1 - s) c``,
        where c is the share of words that unrelated texts have in common. Rare coincidences make two sources that agree
        worth more than the best one alone.
        """
        similarity = np.clip(1.0 - np.asarray(cost, dtype=np.float64) / self.scale, 1e-6, 1.0 - 1e-6)
        weight: FloatArray = np.maximum(np.log(similarity / ((1.0 - similarity) * self._coincidence)), 0.0)
        return weight

    @property
    def _coincidence(self) -> float:
        return max(self.unrelated, LEAST)


def _best_texts(law: TextLaw, parameters: TextParameters, labels: Batch, observed: BoolArray) -> Posterior:
    """Return labels, confidence, and whether each label was written anew."""
    from consilience.label_types.texts.kernels import write_texts

    n = len(observed)
    rows, sources = np.nonzero(observed)
    weights = (np.maximum(parameters.weight, 1e-9) * discount_correlated(observed, parameters.correlation))[
        rows, sources
    ]
    item_start = np.searchsorted(rows, np.arange(n + 1)).astype(np.int64)
    texts, pairs = labels[rows, sources], vote_pairs(item_start)
    table = law.table(texts)
    known = table if law.kind in KINDS else None
    cost = law.pair_distances(texts, known, pairs)
    write = law.write and known is not None
    flat, ends, picked = write_texts(
        table.words, table.starts, item_start, weights, cost, KINDS.get(law.kind, 0), write
    )
    found: list[str | None] = []
    anew = np.zeros(n, dtype=bool)
    for item in range(n):
        first, last = int(item_start[item]), int(item_start[item + 1])
        if first == last:
            found.append(None)
            continue
        text, own = flat[ends[item] : ends[item + 1]], np.arange(first, last)
        if known is None:
            best = texts[picked[item]]
            label = _searched(law, table, texts[own], own, weights[own], best) if law.write else best
            anew[item] = label not in texts[own].tolist()
        else:
            label, anew[item] = _spelled(table, text, texts, own, weights, int(picked[item]))
        found.append(label)
    chosen = as_object_array(found)
    distance = _distances(law, chosen, texts, rows, weights, n)
    confidence = _closeness(law, parameters, distance, rows, sources, weights, n)
    details = {"written_anew": anew, "expected_distance": distance}
    return Posterior(chosen, np.clip(confidence, 0.0, 1.0), None, details)


def _closeness(
    law: TextLaw,
    parameters: TextParameters,
    distance: FloatArray,
    rows: IntArray,
    sources: IntArray,
    weights: FloatArray,
    n: int,
) -> FloatArray:
    """Return the share of chance-level distance that the label is expected to remove.

    Votes are as similar to the truth as their sources are, and to the label by that times how similar label and truth
    are. A label that is made of the votes also cannot be better than at least one of them being right.
    """
    own = parameters.similarity[sources]
    expected = np.bincount(rows, weights * own, minlength=n) / np.maximum(
        np.bincount(rows, weights, minlength=n), 1e-300
    )
    close = np.minimum((1.0 - np.minimum(distance / law.scale, 1.0)) / np.maximum(expected, 1e-300), 1.0)
    nobody = np.exp(np.bincount(rows, np.log1p(-own), minlength=n))
    by_chance = law.unrelated
    share: FloatArray = (close * (1.0 - nobody) - by_chance) / (1.0 - by_chance)
    return share


def _spelled(
    table: WordTable, text: IntArray, texts: Batch, own: IntArray, weights: FloatArray, picked: int
) -> tuple[str, bool]:
    """Return words as a text: that of the heaviest vote with the same words, or one that is written anew."""
    order = own[np.argsort(-weights[own], kind="stable")].tolist()
    for vote in (picked, *order):
        if np.array_equal(table.words[table.starts[vote] : table.starts[vote + 1]], text):
            return texts[vote], False
    return table.spelled(text, order), True


def _distances(law: TextLaw, chosen: Batch, texts: Batch, rows: IntArray, weights: FloatArray, n: int) -> FloatArray:
    if len(rows) == 0:
        return np.zeros(n)
    spent = np.bincount(rows, weights * law.cost(chosen[rows], texts), minlength=n)
    mean: FloatArray = spent / np.maximum(np.bincount(rows, weights, minlength=n), 1e-300)
    return mean


def _searched(law: TextLaw, table: WordTable, texts: Batch, own: IntArray, weights: FloatArray, start: str) -> str:
    """Change single words of a text while that brings it closer to the votes, by a distance that is given."""
    from consilience.label_types.texts.kernels import neighbours

    if len(texts) < 3:
        return start
    first, last = table.starts[own[0]], table.starts[own[-1] + 1]
    numbers, words = np.unique(table.words[first:last], return_inverse=True)
    starts = table.starts[own[0] : own[-1] + 2] - first
    share = weights / weights.sum()

    def spent(text: str) -> float:
        return float(law.cost(as_object_array([text] * len(texts)), texts) @ share)

    best, least = start, spent(start)
    place = int(np.flatnonzero(np.array(texts.tolist(), dtype=object) == start)[0])
    current = words[starts[place] : starts[place + 1]].astype(np.int64)
    for _ in range(MOST_STEPS):
        flat, ends = neighbours(current, words.astype(np.int64), starts, share, len(numbers))
        options = [flat[ends[k] : ends[k + 1]] for k in range(len(ends) - 1)]
        spelled = [table.spelled(numbers[option], own.tolist()) for option in options]
        costs = [spent(text) if text else np.inf for text in spelled]
        if not costs or min(costs) >= least - 1e-9:
            break
        chosen = int(np.argmin(costs))
        best, least, current = spelled[chosen], costs[chosen], options[chosen]
    return best
