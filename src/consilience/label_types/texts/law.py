"""Texts: sources are known by how similar their texts are to those of others, and labels may be written anew.

Two sources that each replace words on their own have in common the product of what either has in common with the
truth, one minus their distance. Items differ in how hard they are, which enters all pairs alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_object_array
from consilience.estimation.pair_table import LIMIT, PairTable, agreement_table
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
from consilience.label_types.pair_costs import merged_weights, mismatched_costs, removed_share, with_least_error
from consilience.label_types.texts.words import WordTable, exact_words, plain_words
from consilience.label_types.vote_correlation import discount_correlated

__all__ = ["KINDS", "TextLaw", "TextParameters"]

#: Pairs of votes on different items that show how close unrelated texts are.
UNRELATED_PAIRS = 2_000
#: Pairs of middling similarity that an item starts with, so that a single pair does not say how hard it is.
PSEUDO_PAIRS = 3.0
#: Two wrong words are the same once in a thousand at least, however little unrelated texts have in common.
LEAST_UNRELATED = 1e-3
#: Steps of the search for a better text by a distance that is given.
MOST_STEPS = 6
#: Kinds of distance, and their numbers in the kernels.
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
    scale, unrelated
        Distance that counts as no similarity, and the mean distance between unrelated texts.
    """

    similarity: FloatArray
    weight: FloatArray
    correlation: FloatArray
    scale: float
    unrelated: float


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
    chance
        ``(m, m)`` similarity of texts of two sources on different items, taken from the votes.
    """

    kind: str = "words"
    given: PairFunction | None = None
    exact: bool = False
    write: bool = True
    scale: float = 1.0
    chance: FloatArray | None = None
    rows: ClassVar[int] = 1 << 12
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "isotropic", "triplets", "labelled")
    adapts_to_votes: ClassVar[bool] = True

    @property
    def side_by_side(self) -> bool:
        return self.kind in KINDS

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> TextLaw:
        """Look at how far votes on different items are apart."""
        if sample is None or not sample.observed.any():
            return self
        apart, _ = mismatched_costs(self.cost, sample, np.random.default_rng(seed), UNRELATED_PAIRS)
        usual = float(np.median(np.diag(apart)))
        scale = usual if self.kind == "given" and usual > 0 else self.scale
        return replace(self, scale=scale, chance=np.clip(1.0 - apart / scale, 0.0, 1.0))

    def measures_like(self, other: Law) -> bool:
        return (
            isinstance(other, TextLaw)
            and (self.kind, self.exact, self.scale) == (other.kind, other.exact, other.scale)
            and self.given is other.given
        )

    # --- texts and distances ------------------------------------------------------------------------------

    def table(self, texts: Batch) -> WordTable:
        """Return texts as words."""
        return WordTable.of(texts, exact_words if self.exact else plain_words)

    def cost(self, left: Batch, right: Batch) -> FloatArray:
        """Return the distances, pair by pair."""
        n = len(left)
        both = np.empty(2 * n, dtype=object)
        both[:n], both[n:] = left, right
        return self._between(both, np.stack([np.arange(n), np.arange(n) + n], axis=1))

    def _between(self, texts: Batch, pairs: IntArray, table: WordTable | None = None) -> FloatArray:
        """Return the distances between pairs of texts ``(p, 2)``."""
        from consilience.label_types.texts.kernels import text_costs

        if len(pairs) == 0:
            return np.zeros(0)
        if self.kind in KINDS:
            table = self.table(texts) if table is None else table
            return text_costs(table.words, table.starts, pairs, KINDS[self.kind])
        if self.given is None:
            raise UnsupportedError("A law of texts with a given distance needs the function.")
        return np.asarray(self.given(texts[pairs[:, 0]], texts[pairs[:, 1]]), dtype=np.float64)

    # --- level 0 ----------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        observed = chunk.observed
        n, m = observed.shape
        rows, sources = np.nonzero(observed)
        pairs = _vote_pairs(np.searchsorted(rows, np.arange(n + 1)).astype(np.int64))
        close = 1.0 - np.minimum(self._between(chunk.labels[rows, sources], pairs) / self.scale, 1.0)
        item = rows[pairs[:, 0]]
        met = np.bincount(item, minlength=n)
        # How much votes on an item have in common, drawn to one half.
        level = (np.bincount(item, close, minlength=n) + 0.5 * PSEUDO_PAIRS) / (met + PSEUDO_PAIRS)
        left, right = sources[pairs[:, 0]], sources[pairs[:, 1]]

        def summed(values: FloatArray) -> FloatArray:
            table = np.bincount(left * m + right, values, minlength=m * m).astype(np.float64).reshape(m, m)
            return table + table.T

        parts = {
            **count_statistics(chunk),
            "agreement": summed(close),
            "agreement_square": summed(close**2),
            "agreement_count": summed(np.ones(len(close))),
            "agreement_votes": observed.sum(axis=0).astype(np.float64),
            "pair_level": summed(level[item]),
            "level": np.array([level[met > 0].sum(), float((met > 0).sum())]),
        }
        gold = chunk.gold_rows
        if len(gold) and chunk.known is not None:
            known = np.zeros((3, m))
            for source in range(m):
                seen = gold[observed[gold, source]]
                if len(seen):
                    value = 1.0 - np.minimum(self.cost(chunk.labels[seen, source], chunk.known[seen]) / self.scale, 1.0)
                    known[:, source] = value.sum(), value @ value, len(seen)
            names = ("gold_agreement", "gold_agreement_square", "gold_agreement_count")
            parts |= dict(zip(names, known, strict=True))
        return Statistics(parts)

    def pair_table(self, statistics: Statistics) -> PairTable:
        table = agreement_table(statistics)
        m = len(table.value)
        total, items = statistics["level"]
        # Two sources that met on hard items have less in common than on all: the level of their items says how much.
        usual = float(total / max(items, 1.0))
        met = statistics["agreement_count"]
        level = np.where(met > 0, statistics["pair_level"] / np.maximum(met, 1.0), usual)
        factor = usual / np.maximum(level, 1e-12) if usual > 0 else np.ones((m, m))
        chance = np.zeros((m, m)) if self.chance is None else self.chance
        unit = max(1.0 - self._unrelated, 1e-3)
        own = np.diag(chance)
        diagonal = np.eye(m, dtype=bool)
        gold_value, gold_error = table.gold_value, table.gold_error
        if gold_value is not None and gold_error is not None:
            gold_value, gold_error = (gold_value - own) / unit, gold_error / unit
        found = replace(
            table,
            value=np.where(diagonal, 1.0, (factor * table.value - chance) / unit),
            error=factor * table.error / unit,
            gold_value=gold_value,
            gold_error=gold_error,
            cost=np.where(diagonal, 0.0, self.scale * (1.0 - table.value)),
        )
        return with_least_error(found)

    @property
    def _unrelated(self) -> float:
        """Similarity of unrelated texts; below one also where all texts are the same."""
        return 0.0 if self.chance is None or not len(self.chance) else min(float(np.median(self.chance)), 0.9)

    def constant_sources(self, statistics: Statistics) -> BoolArray:
        votes = np.diag(statistics["both"])
        if self.chance is None:
            return np.zeros(len(votes), dtype=bool)
        constant: BoolArray = (votes >= 10) & (np.diag(self.chance) >= 1.0 - 1e-9)
        return constant

    # --- level 2 ----------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> TextParameters:
        m = len(hypothesis.u)
        unrelated = self.scale * (1.0 - self._unrelated)
        if hypothesis.is_plain:
            similarity = np.full(m, 0.5)
            return TextParameters(similarity, np.ones(m), hypothesis.correlation, self.scale, unrelated)
        quality = np.clip(hypothesis.quality, 0.0, np.tanh(LIMIT))
        similarity = self._unrelated + (1.0 - self._unrelated) * quality
        weight = np.maximum(self.weight_from_cost(self.scale * (1.0 - similarity)), 0.0)
        return TextParameters(similarity, weight, hypothesis.correlation, self.scale, unrelated)

    def merge(self, mixture: Mixture) -> Mixture:
        return merged_weights(mixture)

    # --- level 3 ----------------------------------------------------------------------------------------

    def posterior(self, parameters: TextParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return the vote of least weighted distance to the others, or a text that is closer still.

        ``details["written_anew"]`` says which labels nobody voted for, ``details["expected_distance"]`` how far the
        votes lie from the label on average, by weight.
        """
        from consilience.label_types.texts.kernels import write_texts

        n = len(observed)
        counted = discount_correlated(observed, parameters.correlation)
        all_weights = np.maximum(parameters.weight, 1e-9) * counted
        rows, sources = np.nonzero(observed)
        weights, texts = all_weights[rows, sources], labels[rows, sources]
        item_start = np.searchsorted(rows, np.arange(n + 1)).astype(np.int64)
        pairs, table = _vote_pairs(item_start), self.table(texts)
        known = self.kind in KINDS
        cost = self._between(texts, pairs, table)
        flat, ends, picked = write_texts(
            table.words, table.starts, item_start, weights, cost, KINDS.get(self.kind, 0), self.write and known
        )
        found: list[str | None] = [None] * n
        anew = np.zeros(n, dtype=bool)
        for item in np.flatnonzero(np.diff(item_start)).tolist():
            own = np.arange(item_start[item], item_start[item + 1])
            if known:
                text = flat[ends[item] : ends[item + 1]]
                found[item], anew[item] = _spelled(table, text, texts, own, weights, int(picked[item]))
            else:
                best = texts[picked[item]]
                found[item] = self._searched(table, texts[own], own, weights[own], best) if self.write else best
                anew[item] = found[item] not in texts[own].tolist()
        chosen = as_object_array(found)
        spent = np.zeros(n)
        if len(rows):
            np.add.at(spent, rows, weights * self.cost(chosen[rows], texts))
        distance = spent / np.maximum(all_weights.sum(axis=1), 1e-300)
        expected = parameters.scale * (1.0 - parameters.similarity)
        confidence = removed_share(spent, all_weights, counted, expected, max(parameters.unrelated, 1e-12))
        return Posterior(chosen, confidence, None, {"written_anew": anew, "expected_distance": distance})

    def average(self, posteriors: Sequence[tuple[float, Posterior]], decode: str) -> Posterior:
        return posteriors[0][1]  # weights are averaged instead, by `merge`

    def _searched(self, table: WordTable, texts: Batch, own: IntArray, weights: FloatArray, start: str) -> str:
        """Change single words of a text while that brings it closer to the votes, by a distance that is given."""
        from consilience.label_types.texts.kernels import neighbours

        if len(texts) < 3:
            return start
        first, last = table.starts[own[0]], table.starts[own[-1] + 1]
        numbers, words = np.unique(table.words[first:last], return_inverse=True)
        starts = table.starts[own[0] : own[-1] + 2] - first
        share = weights / weights.sum()

        def spent(text: str) -> float:
            return float(self.cost(as_object_array([text] * len(texts)), texts) @ share)

        best, least = start, spent(start)
        place = texts.tolist().index(start)
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

    # --- in shared words ----------------------------------------------------------------------------------

    def summary(self, parameters: TextParameters) -> Summary:
        similarity = parameters.similarity
        unknown = np.full(len(similarity), np.inf)
        cost = parameters.scale * (1.0 - similarity)
        columns = {"similarity": similarity}
        return Summary(cost, parameters.weight, unknown, unknown, parameters.correlation, columns=columns)

    def quality_errors(
        self, parameters: TextParameters, quality: FloatArray, error: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        similarity = np.clip(self._unrelated + (1.0 - self._unrelated) * quality, 0.01, 0.99)
        return parameters.unrelated * error, (1.0 - self._unrelated) * error / (similarity * (1.0 - similarity))

    def from_weights(self, weight: FloatArray, request: Request) -> TextParameters:
        m = len(weight)
        similarity = np.clip(1.0 - self.expected_cost(weight) / self.scale, 0.0, 1.0)
        unrelated = self.scale * (1.0 - self._unrelated)
        return TextParameters(similarity, np.maximum(weight, 1e-9), np.zeros((m, m)), self.scale, unrelated)

    def restore(self, fields: Mapping[str, Any]) -> TextParameters:
        return TextParameters(**fields)

    @property
    def _log_words(self) -> float:
        """Logarithm of the number of wrong words for each right one: two wrong votes meet as unrelated texts do."""
        return float(np.log(1.0 / np.clip(self._unrelated, LEAST_UNRELATED, 0.5) - 1.0))

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return one minus the similarity s that solves ``weight = log(wrong words) + logit(s)``."""
        cost: FloatArray = self.scale / (1.0 + np.exp(np.asarray(weight, dtype=np.float64) - self._log_words))
        return cost

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return the log likelihood ratio of a word that a source of this mean distance votes for."""
        wrong = np.clip(np.asarray(cost, dtype=np.float64) / self.scale, 1e-9, 1.0 - 1e-9)
        weight: FloatArray = self._log_words + np.log(1.0 - wrong) - np.log(wrong)
        return weight


def _vote_pairs(item_start: IntArray) -> IntArray:
    """Return all pairs of votes within items ``(p, 2)``, item by item."""
    sizes = np.diff(item_start)
    found = []
    for size in np.unique(sizes[sizes > 1]):
        one, two = np.triu_indices(int(size), 1)
        rows = np.flatnonzero(sizes == size)
        first = item_start[rows][:, None]
        found.append((np.repeat(rows, len(one)), (first + one).ravel(), (first + two).ravel()))
    if not found:
        return np.zeros((0, 2), dtype=np.int64)
    item, left, right = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(item, kind="stable")
    return np.stack([left[order], right[order]], axis=1)


def _spelled(
    table: WordTable, text: IntArray, texts: Batch, own: IntArray, weights: FloatArray, picked: int
) -> tuple[str, bool]:
    """Return words as a text: that of the heaviest vote with the same words, or one that is written anew."""
    order = own[np.argsort(-weights[own], kind="stable")].tolist()
    for vote in (picked, *order):
        if np.array_equal(table.words[table.starts[vote] : table.starts[vote + 1]], text):
            return texts[vote], False
    return table.spelled(text, order), True
