"""The law of texts: sources are known by how similar their texts are, and a label may be a new text.

The similarity of two texts on an item, one minus their distance, is the product of three factors: one for the item and
one for each source. Averaged over items, the agreement of two sources is therefore a product of their qualities.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, pairwise
from typing import Annotated, ClassVar, Self

import numpy as np

from consilience.arrays import Axes, Batch, BoolArray, Correlation, FloatArray, IntArray, as_object_array
from consilience.estimation.protocol import Hypothesis, Law, Posterior, Request, Statistics, Summary
from consilience.label_types.held_out import HeldOutLaw, HeldOutParameters
from consilience.label_types.pair_costs import SimilarityLaw, vote_pairs
from consilience.label_types.vote_correlation import discount_correlated

#: Bounds of similarities to the truth, so that weights stay finite. A word in common counts at most
#: log(.97 / (.03 * .02)) = 7.4 nats.
LEAST, MOST = 0.02, 0.97
#: Largest number of words changed to bring a label closer to the votes. A budget of time.
MOST_STEPS = 6
KINDS = {"words": 0, "gleu": 1}
#: A word, including parts after apostrophes.
_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
_APOSTROPHE = re.compile(r"['\u2019]")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True)
class TextParameters(HeldOutParameters):
    """How similar the texts of m sources are to the truth."""

    similarity: Annotated[FloatArray, Axes("m", 0.0, 1.0)]
    weight: Annotated[FloatArray, Axes("m")]  # weight of each source
    correlation: Correlation  # of errors given the truth


@dataclass(frozen=True, eq=False)
class TextLaw(SimilarityLaw, HeldOutLaw):
    """Texts known by their distances."""

    kind: str = "words"  # "words", "gleu" or "given"
    given: Callable[[Batch, Batch], FloatArray] | None = None  # texts, texts -> distances for the kind "given"
    exact: bool = False  # whether words are compared without normalization
    write: bool = True  # whether a label may be a new text
    unrelated: float = field(default=0.05, kw_only=True)  # before any vote: the similarity of short sentences
    parameter_class = TextParameters
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "isotropic", "triplets", "labelled")

    def adapt_to_costs(self, apart: FloatArray) -> Self:
        usual = float(apart.mean())
        law = replace(self, scale=usual) if self.given is not None and usual > 0 else self
        return super(TextLaw, law).adapt_to_costs(apart)

    def measures_like(self, other: Law) -> bool:
        return isinstance(other, TextLaw) and all(
            getattr(self, name) == getattr(other, name) for name in ("kind", "exact", "scale", "given")
        )

    def pair_costs(self, labels: Batch, pairs: IntArray, table: WordTable | None = None) -> FloatArray:
        from consilience.label_types.texts.kernels import text_costs

        if len(pairs) == 0:
            return np.zeros(0)
        if self.given is not None:
            return np.asarray(self.given(labels[pairs[:, 0]], labels[pairs[:, 1]]), dtype=np.float64)
        table = table or WordTable.of(labels.tolist(), self.exact)
        return text_costs(table.words, table.starts, np.ascontiguousarray(pairs), KINDS[self.kind])

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

    # --- level 3 ------------------------------------------------------------------------------------

    def posterior(self, parameters: TextParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return the vote of least weighted distance to the others, or a text that is closer still.

        ``details["new_text"]`` says which labels nobody voted for, ``details["expected_distance"]`` how far the
        votes lie from the label on average, by weight.
        """
        n = len(observed)
        rows, sources = np.nonzero(observed)
        said = labels[rows, sources].tolist()
        place = np.array(sorted(range(len(said)), key=said.__getitem__), dtype=np.int64)
        place = place[np.argsort(rows[place], kind="stable")]  # independent of the order of the columns
        rows, sources = rows[place], sources[place]
        weight = np.maximum(parameters.weight, 1e-9) * discount_correlated(observed, parameters.correlation)
        weights, texts = weight[rows, sources], labels[rows, sources]
        starts = np.searchsorted(rows, np.arange(n + 1))
        table = WordTable.of(texts.tolist(), self.exact)
        pairs = vote_pairs(starts)
        left, right = pairs.T
        cost = self.pair_costs(texts, pairs, table)
        total = np.bincount(left, weights[right] * cost, minlength=len(texts))
        total += np.bincount(right, weights[left] * cost, minlength=len(texts))
        order = np.lexsort((-weights.round(12), total.round(12), rows))  # equally close votes by weight
        if self.given is None and self.write:
            chosen, anew, cost = self._written(table, texts, weights, starts, order)
        else:
            chosen, anew = np.full(n, None, dtype=object), np.zeros(n, dtype=bool)
            for item, (first, last) in enumerate(pairwise(starts.tolist())):
                if first < last:
                    best, votes = order[first:last] - first, table.part(first, last)
                    chosen[item], anew[item] = self._label(votes, texts[first:last], weights[first:last], best)
            cost = self.cost(chosen[rows], texts)

        def mean(values: FloatArray) -> FloatArray:
            total = np.bincount(rows, weights, minlength=n)
            return np.bincount(rows, weights * values, minlength=n) / np.maximum(total, 1e-300)

        distance = mean(cost)
        # The similarity of a vote to the label is its similarity to the truth times that of the label to the truth. The
        # label is made of votes, so it cannot be better than the probability that at least one of them is right.
        own = parameters.similarity[sources]
        close = np.minimum(self.similarity(distance) / np.maximum(mean(own), 1e-300), 1.0)
        somebody = 1.0 - np.exp(np.bincount(rows, np.log1p(-own), minlength=n))
        stated = np.clip((close * somebody - self.unrelated) / (1.0 - self.unrelated), 0.0, 1.0)
        confidence = parameters.come_true(stated)
        return Posterior(chosen, confidence, None, {"new_text": anew, "expected_distance": distance})

    def agreement(self, parameters: TextParameters, votes: Batch, labels: Batch) -> FloatArray:
        return (self.similarity(self.cost(votes, labels)) - self.unrelated) / (1.0 - self.unrelated)

    def expected_agreement(self, parameters: TextParameters, share: FloatArray) -> FloatArray:
        return np.outer((parameters.similarity - self.unrelated) / (1.0 - self.unrelated), share)

    def _written(
        self, table: WordTable, texts: Batch, weights: FloatArray, starts: IntArray, order: IntArray
    ) -> tuple[Batch, BoolArray, FloatArray]:
        """Return labels, which of them nobody voted for, and the cost of every vote; `order` has best votes first."""
        from consilience.label_types.texts.kernels import text_costs, write_texts

        kind, n = KINDS[self.kind], len(starts) - 1
        words, ends, same = write_texts(
            table.words, table.starts, starts, order, weights, table.n_words, kind, MOST_STEPS
        )
        labels = np.full(n, None, dtype=object)
        labels[same >= 0] = texts[same[same >= 0]]
        anew = (same < 0) & (starts[:-1] < starts[1:])
        heaviest = np.lexsort((-weights, np.repeat(np.arange(n), np.diff(starts)))).tolist()
        for item in np.flatnonzero(anew).tolist():
            votes = heaviest[starts[item] : starts[item + 1]]
            labels[item] = table.spelled(words[ends[item] : ends[item + 1]], votes)
        flat, places = np.concatenate([table.words, words]), np.concatenate([table.starts, table.starts[-1] + ends[1:]])
        pairs = np.column_stack([np.repeat(len(texts) + np.arange(n), np.diff(starts)), np.arange(len(texts))])
        return labels, anew, text_costs(flat, places, pairs, kind)

    def _label(self, table: WordTable, texts: Batch, weights: FloatArray, best: IntArray) -> tuple[str, bool]:
        """Return the label of one item by a given distance, and whether nobody voted for it; the best vote is first.

        Single words of the best vote are changed while that brings it closer to the votes.
        """
        from consilience.label_types.texts.kernels import neighbors, network

        if not self.write or len(texts) < 3:
            return texts[best[0]], False
        share = weights / weights.sum()

        def costs(options: list[IntArray]) -> FloatArray:
            spelled = [table.spelled(option, range(len(texts))) for option in options]
            repeated = [as_object_array([text] * len(texts)) for text in spelled]
            return np.array([self.cost(one, texts) @ share if one[0] else np.inf for one in repeated])

        text = table.text(int(best[0]))
        least = float(costs([text])[0])
        for _ in range(MOST_STEPS):
            order = np.arange(len(texts))
            flat, ends = neighbors(*network(text, 1e-6, table.words, table.starts, order, share, table.n_words))
            options = [flat[first:last] for first, last in pairwise(ends.tolist())]
            found = costs(options)
            if found.min(initial=np.inf) >= least - 1e-9:
                break
            text, least = options[int(found.argmin())], float(found.min())
        heaviest = [int(best[0]), *np.argsort(-weights, kind="stable").tolist()]
        same = next((vote for vote in heaviest if table.text(vote).tolist() == text.tolist()), None)
        return (table.spelled(text, heaviest[1:]), True) if same is None else (texts[same], False)

    # --- summaries for all label types ------------------------------------------------------------------

    def summary(self, parameters: TextParameters) -> Summary:
        unknown = np.full(len(parameters.weight), np.inf)
        cost = self.scale * (1.0 - parameters.similarity)
        return Summary(cost, parameters.weight, unknown, unknown, parameters.correlation)

    def from_weights(self, weight: FloatArray, request: Request) -> TextParameters:
        similarity = np.clip(1.0 - self.expected_cost(weight) / self.scale, LEAST, MOST)
        return TextParameters(similarity, np.maximum(weight, 1e-9), np.zeros((len(weight), len(weight))))

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return one minus the similarity s that solves ``weight = log(s / ((1 - s) c))``."""
        odds = max(self.unrelated, LEAST) * np.exp(np.clip(np.asarray(weight, dtype=np.float64), -50.0, 50.0))
        return self.scale / (1.0 + odds)

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return ``log(s / ((1 - s) c))`` for the similarity ``s = 1 - cost``: what one word in common is worth.

        A source has the true word with probability s, and another source's wrong word with probability ``(1 - s) c``,
        where c is the share of words that unrelated texts have in common. Rare coincidences make two sources that agree
        worth more than the best one alone.
        """
        similarity = np.clip(1.0 - np.asarray(cost, dtype=np.float64) / self.scale, 1e-6, 1.0 - 1e-6)
        return np.maximum(np.log(similarity / ((1.0 - similarity) * max(self.unrelated, LEAST))), 0.0)


# --- words ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=2**14)  # a fit reads its votes a dozen times; this many sentences take about twenty megabytes
def plain_words(text: str) -> tuple[str, ...]:
    """Return the words of a text as they are compared: in small letters and without punctuation.

    Examples
    --------
    >>> plain_words("Don't stop, Ann!")
    ('dont', 'stop', 'ann')
    """
    if text.isascii() and "'" not in text:  # lowercasing may change the words in other alphabets
        return tuple(_WORD.findall(text.lower()))
    return tuple(_APOSTROPHE.sub("", word.lower()) for word in _WORD.findall(text))


@lru_cache(maxsize=2**14)
def plain_spelling(text: str) -> tuple[str, ...]:
    """Return the words of a text as written, as many as `plain_words` returns.

    A written word holds the punctuation around it, and ends with a blank unless the next one is attached to it.

    Examples
    --------
    >>> plain_spelling("a well-known end.Then")
    ('a ', 'well-', 'known ', 'end.', 'Then ')
    """
    found = list(_WORD.finditer(text))
    gaps = [text[one.end() : two.start()] for one, two in pairwise(found)]
    gaps = [text[: found[0].start()], *gaps, text[found[-1].end() :] + " "] if found else []
    around = [
        ("", "") if gap == " " else _BLANKS.split(gap) for gap in gaps
    ]  # parts of the previous word, and of the next one
    written = []
    for place, word in enumerate(found):
        before, behind = around[place], around[place + 1]
        lead = before[-1] if len(before) > 1 or place == 0 else ""
        written.append(f"{lead}{word.group()}{behind[0]}{' ' if len(behind) > 1 else ''}")
    return tuple(written)


def exact_spelling(text: str) -> tuple[str, ...]:
    """Return the words of a text as they are, with a blank behind each."""
    return tuple(f"{word} " for word in text.split())


def _numbered(words: Sequence[Hashable]) -> tuple[IntArray, int]:
    """Return the number of every word, from 0 on in the order in which they come, and how many there are."""
    numbers: defaultdict[Hashable, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return np.fromiter(map(numbers.__getitem__, words), np.int64, len(words)), len(numbers)


@dataclass(frozen=True, eq=False)
class WordTable:
    """Texts, one after the other, as numbers of words."""

    words: IntArray  # (k,) numbers
    starts: IntArray  # (texts + 1,) first word of each text
    n_words: int  # number of distinct words
    texts: Sequence[str]
    exact: bool

    @classmethod
    def of(cls, texts: Sequence[str], exact: bool) -> WordTable:
        """Split texts into words, as they are compared, and number these."""
        split = list(map(str.split if exact else plain_words, texts))
        words, n_words = _numbered(list(chain.from_iterable(split)))
        starts = np.cumsum([0, *map(len, split)], dtype=np.int64)
        return cls(words, starts, n_words, texts, exact)

    def text(self, vote: int) -> IntArray:
        """Return the words of one text."""
        return self.words[self.starts[vote] : self.starts[vote + 1]]

    def part(self, first: int, last: int) -> WordTable:
        """Return some of the texts, their words numbered from 0 on in the order in which they come."""
        begin, end = self.starts[first], self.starts[last]
        words, n_words = _numbered(self.words[begin:end].tolist())
        return WordTable(words, self.starts[first : last + 1] - begin, n_words, self.texts[first:last], self.exact)

    def spelled(self, text: IntArray, votes: Sequence[int]) -> str:
        """Return words as a text: every word as the first of these votes has it that uses it."""
        known: dict[int, str] = {}
        needed = set(text.tolist())
        spell = exact_spelling if self.exact else plain_spelling
        for vote in votes:
            own = self.text(vote).tolist()
            if not needed.isdisjoint(own):
                for word, written in zip(own, spell(self.texts[vote]), strict=True):
                    known.setdefault(word, written)
                needed.difference_update(own)
                if not needed:
                    break
        return "".join(known[word] for word in text.tolist()).rstrip()
