"""Questions with few answers: every tag of an item, or every position of a sequence, is one question of k answers.

All questions of an item count as one observation of how two sources agree, as questions of one item are not
independent. A source has a table P(answer | true answer) for every kind of question (every tag is a kind; the
positions of sequences are one): around its table for all kinds, and that around the coin of the quality that the
trust engine gave it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from consilience.arrays import Axes, Batch, BoolArray, Correlation, FloatArray, IntArray, as_object_array, softmax
from consilience.estimation.pair_table import PairTable, Statistics, agreement_table
from consilience.estimation.protocol import METHODS, Chunk, Hypothesis, Law, Parameters, Posterior, Request, Summary
from consilience.exceptions import InvalidLabelError, UnsupportedError
from consilience.label_types.codes import ABSENT, fill_up
from consilience.label_types.dirichlet import shrink_counts
from consilience.label_types.tags.counts import (
    add_evidence,
    best_paths,
    chain_round,
    count_answers,
    count_pairs,
    joint_answers,
)
from consilience.label_types.vote_correlation import discount_correlated

#: A source has no opinion on this tag or position.
UNKNOWN = -1
#: Largest table of joint answers in memory. Beyond it, the scatter of agreements is that of a coin.
MAX_JOINT = 20_000_000
#: Rates stay this far from 0 and 1.
LEAST_RATE = 1e-4
#: Ways of guessing to average over: uniformly (0), as often as the answers are given (1), and halfway.
GUESSES = (0.0, 0.5, 1.0)
#: Share of a vote that follows the overall frequencies of the answers. It only breaks ties.
FAVORED = 1e-6
#: Prior count of every possible first tag and step (Jeffreys' prior). The strength is not estimated, because EM starts
#: from independent tags, and the estimate would keep them independent.
JEFFREYS = 0.5


class Questions(NamedTuple):
    """The questions that some items consist of, item by item."""

    codes: Batch  # (questions, m) answers; -1 where there is none
    kind: IntArray  # (questions,) such as which tag is asked for
    starts: IntArray  # (n + 1,) first question of each item, and the end of the last
    known: IntArray  # (questions,) true answers, -1 where unknown

    @property
    def answered(self) -> BoolArray:
        """``(questions,)`` whether some source has an opinion."""
        return np.asarray((self.codes >= 0).any(axis=1))


@dataclass(frozen=True)
class AnswerParameters(Parameters):
    """What is known about sources that answer questions."""

    # P(answer | true answer) by source, kind, true answer and answer given
    table: Annotated[FloatArray, Axes("m kinds k k", 1e-12, 1.0)]
    prior: Annotated[FloatArray, Axes("kinds k", 0.0, 1.0)]  # how frequent the true answers are
    correlation: Correlation  # of the errors of two sources
    # Distribution of the first tag of a chain
    initial: Annotated[FloatArray, Axes("chain", 0.0, 1.0)] = field(default_factory=lambda: np.zeros(0))
    # Rows are the previous tag
    transition: Annotated[FloatArray, Axes("chain chain", 0.0, 1.0)] = field(default_factory=lambda: np.zeros((0, 0)))
    shares: bool = False  # probabilities are shares of votes: the plain vote


@dataclass(frozen=True, eq=False)
class TagLaw(Law):
    """Votes that give one of k codes to every tag of an item, or to every position of a sequence.

    Items have `n_tags` tags, each a kind of question; or are sequences of any length if it is None. With a `chain`,
    neighboring tags of a sequence depend on each other; `first` ``(k,)`` and `steps` ``(k, k)`` are the tags that it
    may begin with, and which may follow which. Where answers are `binary`, one probability per question says all.
    """

    n_answers: int
    n_tags: int | None
    binary: bool
    chain: bool
    first: BoolArray
    steps: BoolArray
    methods: ClassVar[tuple[str, ...]] = (*METHODS[:4], "quadratic", *METHODS[4:])
    has_em: ClassVar[bool] = True
    side_by_side: ClassVar[bool] = True
    parameter_class = AnswerParameters

    @property
    def sizes(self) -> Mapping[str, int]:
        kinds, answers = self.shape
        return {"kinds": kinds, "k": answers, "chain": answers if self.chain else 0}

    @property
    def shape(self) -> tuple[int, int]:
        """Number of kinds of questions, and of answers to each."""
        return self.n_tags or 1, self.n_answers

    def measures_like(self, other: Law) -> bool:
        return isinstance(other, TagLaw) and (other.n_tags, other.n_answers) == (self.n_tags, self.n_answers)

    def prepare(self, chunk: Chunk) -> Questions:
        """Take labels apart; a sequence has no positions if nobody votes on the item and it is not known."""
        (n, m), votes = chunk.observed.shape, fill_up(chunk.labels, chunk.observed)
        known = np.zeros((n, 1, 0), dtype=np.int64)
        if chunk.known is not None and chunk.is_known is not None:
            known = fill_up(chunk.known[:, None], chunk.is_known[:, None])
        # Known tags are an additional column.
        width = self.n_tags or max(votes.shape[2], known.shape[2])
        table = np.full((n, m + 1, width), ABSENT, dtype=votes.dtype)
        table[:, :m, : votes.shape[2]] = votes
        table[:, m:, : known.shape[2]] = known
        exists = np.ones((n, width), dtype=bool)
        if self.n_tags is None:
            exists = (table != ABSENT).any(axis=1)
            told, voted = ((part != ABSENT).any(axis=1).sum(axis=1) for part in (known, votes))
            wrong = np.flatnonzero((told != voted) & (told > 0) & (voted > 0))
            if len(wrong):
                row = int(wrong[0])
                raise InvalidLabelError(
                    f"Row {row}: the known label has {told[row]} tags and the votes have {voted[row]}. "
                    "Give both the same positions; None or -1 where a tag is unknown."
                )
        starts = np.concatenate([[0], np.cumsum(exists.sum(axis=1))]).astype(np.int64)
        answers = table.transpose(0, 2, 1)
        answers = answers.reshape(n * width, m + 1) if exists.all() else answers[exists]
        codes = np.maximum(answers, table.dtype.type(UNKNOWN))
        kind = np.zeros(len(codes), dtype=np.int64) if self.n_tags is None else np.tile(np.arange(width), n)
        return Questions(np.ascontiguousarray(codes[:, :m]), kind, starts, codes[:, m].astype(np.int64))

    # --- level 0 ------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        codes, kind, starts, known = self.prepare(chunk)
        (d, k), m = self.shape, chunk.observed.shape[1]
        joint = np.zeros((0, m, k, m, k), dtype=np.int64)
        if d * (m * k) ** 2 <= MAX_JOINT:
            joint = joint_answers(codes, kind, d, k)
        answers = count_answers(codes, kind, np.ones((len(kind), 1)), d, k)[:, :, 0]
        parts = chunk.counts() | {"pairs": count_pairs(codes, starts), "joint": joint, "answers": answers}
        told = known >= 0
        if told.any():
            gold = count_answers(codes[told], kind[told], np.eye(k)[known[told]], d, k)
            seen = np.zeros((len(chunk), m), dtype=bool)
            item = np.repeat(np.arange(len(chunk)), np.diff(starts))
            np.logical_or.at(seen, item[told], codes[told] >= 0)
            parts |= {"gold": gold, "gold_counts": seen.sum(axis=0)}
        return Statistics(parts)

    def pair_table(self, statistics: Statistics) -> PairTable:
        items, asked, alike, asked_square, asked_alike, alike_square = statistics["pairs"]
        own, pooled = _shares(statistics["answers"]), _pooled_shares(statistics)
        variance = 1.0 - (pooled**2).sum(axis=1)
        m, off = len(items), ~np.eye(len(items), dtype=bool)
        total, scatter, scale, expected = np.zeros((4, m, m))
        for kind, joint in enumerate(statistics["joint"]):
            found, apart = _agreement(joint, own[:, kind], own[:, kind])
            both, agreed = joint.sum(axis=(1, 3)), np.einsum("acbc->ab", joint)
            total += found
            scatter += apart
            scale += both * variance[kind]
            expected += agreed * (1.0 - agreed / np.maximum(both, 1))
        rate = alike / np.maximum(asked, 1.0)
        if not len(statistics["joint"]):
            total = alike - asked * np.einsum("atc,btc->ab", own, own) / len(pooled)
            scale, expected = asked * float(variance.mean()), alike * (1.0 - rate)
            scatter = np.maximum(scale**2 - total**2, 0.0) / np.maximum(asked, 1.0)
        # Questions of one item are not independent, so agreements scatter more between items than between questions.
        found = alike_square - 2.0 * rate * asked_alike + rate**2 * asked_square
        excess = max(1.0, float(found[off].sum()) / max(float(expected[off].sum()), 1e-12))
        scale = np.maximum(scale, 1e-3 * np.maximum(asked, 1.0))
        # The next question could have been answered either way, so no agreement is certain.
        variance_of_mean = excess * (scatter / scale**2 + 1.0 / np.maximum(asked, 1.0) ** 2)
        sums = _item_sums("", total / scale, variance_of_mean, np.where(off, items, 0.0))
        sums["agreement_votes"] = np.diag(items)
        if "gold" in statistics:
            gold = statistics["gold"]
            value, error = _gold_agreement(gold, own, pooled)
            sums |= _item_sums("gold_", value, excess * error, statistics["gold_counts"].astype(np.float64))
        # Agreement on an item is the share of equal answers, in units of the share beyond chance.
        unit = np.maximum(asked_square, 1.0) * (scale / np.maximum(asked, 1.0)) ** 2
        return replace(agreement_table(sums), cost=1.0 - rate, scatter=np.maximum(found, 0.0) / unit)

    def constant_sources(self, statistics: Statistics) -> BoolArray:
        answers = statistics["answers"]
        return np.asarray(((answers > 0).sum(axis=2) <= 1).all(axis=1) & (answers.sum(axis=(1, 2)) >= 10))

    def label_indicators(self, statistics: Statistics, request: Request) -> tuple[FloatArray, FloatArray, FloatArray]:
        if not len(statistics["joint"]):
            raise UnsupportedError("method='quadratic' needs a table per answer, too large here. Use 'auto' or 'em'.")
        joint = np.einsum("tacbc->cab", statistics["joint"]) / np.maximum(statistics["pairs"][1], 1.0)
        votes = statistics["answers"].sum(axis=1)
        return joint * statistics["both"], votes, votes.sum(axis=0) / max(float(votes.sum()), 1.0)

    def weight_from_accuracy(self, accuracy: FloatArray) -> FloatArray:
        return self.weight_from_cost(1.0 - accuracy)

    # --- level 2 ------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> AnswerParameters:
        prior = _pooled_shares(statistics)
        if hypothesis.is_plain:
            table = _coins(hypothesis.quality, np.full_like(prior, 1.0 / self.n_answers))
        else:
            table, prior = _tables(hypothesis, statistics, prior)
        return self._with_chain(AnswerParameters(table, prior, hypothesis.correlation, shares=hypothesis.is_plain))

    def _with_chain(
        self, parameters: AnswerParameters, first: FloatArray | None = None, steps: FloatArray | None = None
    ) -> AnswerParameters:
        """Return parameters with these laws of the first tag and the next; what is impossible stays so.

        Without any, no tag depends on the one before.
        """
        if not self.chain:
            return parameters
        prior = parameters.prior[0]
        initial = np.where(self.first, prior if first is None else first, 0.0)
        transition = np.where(self.steps, prior if steps is None else steps, 0.0)
        transition /= transition.sum(axis=1, keepdims=True)
        return replace(parameters, initial=initial / initial.sum(), transition=transition)

    def e_step(self, parameters: AnswerParameters, prepared: Questions) -> Statistics:
        d, k = self.shape
        told = prepared.known >= 0
        scores = self._scores(parameters, prepared)
        scores[told] = np.where(np.arange(k) == prepared.known[told, None], 0.0, -1e9)
        belief, steps = self._belief(parameters, scores, prepared)
        # A question counts by how certain its answer is, from 0 for a uniform belief to 1.
        counted = prepared.answered | told
        sure = ((belief[counted] ** 2).sum(axis=1) - 1.0 / k) / (1.0 - 1.0 / k)
        belief[~counted] = 0.0
        counts = count_answers(prepared.codes, prepared.kind, belief, d, k)
        labels = np.stack([np.bincount(prepared.kind, belief[:, c], minlength=d) for c in range(k)], axis=1)
        sums = {"counts": counts, "labels": labels, "known": np.array([sure.sum(), counted.sum()])}
        return Statistics(sums | steps)

    def m_step(self, parameters: AnswerParameters, statistics: Statistics, start: AnswerParameters) -> AnswerParameters:
        sure, counted = statistics["known"]
        known = sure / max(counted, 1.0)
        counts = known * statistics["counts"]
        source = shrink_counts(counts.sum(axis=1), start.table.mean(axis=1))
        table = source[:, None] if self.shape[0] == 1 else shrink_counts(counts, source[:, None])
        prior = shrink_counts(known * statistics["labels"], np.full(self.shape, 1.0 / self.n_answers))
        better = replace(parameters, table=np.clip(table, LEAST_RATE, 1.0), prior=prior)
        if not self.chain:
            return better
        return self._with_chain(better, statistics["first"] + JEFFREYS, statistics["steps"] + JEFFREYS)

    def _scores(self, parameters: AnswerParameters, asked: Questions) -> FloatArray:
        """Return ``(questions, k)`` log probabilities of the answers given, under every true answer."""
        share = discount_correlated(asked.codes >= 0, parameters.correlation)
        return add_evidence(asked.codes, asked.kind, share, np.log(parameters.table))

    def _belief(
        self, parameters: AnswerParameters, scores: FloatArray, asked: Questions
    ) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return the probabilities of true answers, and the expected first tags and steps of a chain."""
        if not self.chain:
            return softmax(scores + np.log(np.maximum(parameters.prior, 1e-300))[asked.kind]), {}
        belief, first, steps = chain_round(scores, asked.starts, parameters.initial, parameters.transition)
        return belief, {"first": first, "steps": steps}

    # --- level 3 ------------------------------------------------------------------------------------

    def posterior(self, parameters: AnswerParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        asked, path = self.prepare(Chunk(labels, observed)), None
        if parameters.shares:
            votes = FAVORED * parameters.prior[asked.kind]
            for answer in range(self.n_answers):
                votes[:, answer] += (asked.codes == answer).sum(axis=1)
            probability = votes / votes.sum(axis=1, keepdims=True)
        else:
            scores = self._scores(parameters, asked)
            probability = self._belief(parameters, scores, asked)[0]
            if self.chain and decode == "map":
                path = best_paths(scores, asked.starts, parameters.initial, parameters.transition)
        return self._decoded(probability, asked.starts, asked.answered, path)

    def average(self, posteriors: Sequence[tuple[float, Posterior]], decode: str) -> Posterior:
        labels = posteriors[0][1].labels
        told = labels != ABSENT
        starts = np.concatenate([[0], np.cumsum(told.sum(axis=1))]).astype(np.int64)
        chosen = labels[told].astype(np.int64)
        probability = np.zeros((len(chosen), self.n_answers))
        for share, one in posteriors:
            if len(chosen):
                flat = np.concatenate(list(one.details["tag_probability"]))
                probability += share * (np.stack([1.0 - flat, flat], axis=1) if self.binary else flat)
        # The most probable sequence is that of the most probable hypothesis.
        return self._decoded(probability, starts, chosen >= 0, chosen if self.chain and decode == "map" else None)

    def _decoded(
        self, probability: FloatArray, starts: IntArray, answered: BoolArray, path: IntArray | None
    ) -> Posterior:
        """Return `path`, or of all possible labels the one with most answers expected to be right."""
        if path is not None:
            chosen = path
        elif self.chain:
            chosen = best_paths(probability, starts, self.first.astype(float), self.steps.astype(float))
        else:  # without a chain, positions without tags are unknown
            chosen = np.where(answered, probability.argmax(axis=1), UNKNOWN)
        sizes = np.diff(starts)
        table = np.full((len(sizes), int(sizes.max(initial=self.n_tags or 0))), ABSENT, dtype=np.int32)
        table[np.arange(table.shape[1]) < sizes[:, None]] = chosen
        right = np.take_along_axis(probability, np.maximum(chosen, 0)[:, None], axis=1)[:, 0] * (chosen >= 0)
        item = np.repeat(np.arange(len(sizes)), sizes)
        judged = np.bincount(item, chosen >= 0, minlength=len(sizes))
        confidence = np.minimum(np.bincount(item, right, minlength=len(sizes)) / np.maximum(judged, 1.0), 1.0)
        told = probability[:, 1] if self.binary else probability
        pieces: Batch = told.reshape(-1, self.n_tags or 1)
        if self.n_tags is None:
            pieces = as_object_array(np.split(told, starts[1:-1]))
        return Posterior(table, confidence, details={"tag_probability": pieces})

    def chance_costs(self, labels: Batch) -> FloatArray:
        return np.ones(len(labels))  # confidence is the expected share of right tags

    # --- summaries for all label types --------------------------------------------------------------

    def summary(self, parameters: AnswerParameters) -> Summary:
        right = np.einsum("atcc,tc->a", parameters.table, parameters.prior) / len(parameters.prior)
        unknown = np.full(len(right), np.inf)
        return Summary(1.0 - right, self.weight_from_cost(1.0 - right), unknown, unknown, parameters.correlation)

    def quality_errors(
        self, parameters: AnswerParameters, quality: FloatArray, error: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        # A source of quality zero is wrong as often as two true answers differ.
        cost = self.summary(parameters).expected_cost
        cost_error = error * float((1.0 - (parameters.prior**2).sum(axis=1)).mean())
        return cost_error, cost_error / np.maximum(cost * (1.0 - cost), LEAST_RATE)

    def from_weights(self, weight: FloatArray, request: Request) -> AnswerParameters:
        quality = 1.0 - self.expected_cost(weight) / self.chance_cost
        even = np.full(self.shape, 1.0 / self.n_answers)
        return self._with_chain(AnswerParameters(_coins(quality, even), even, np.zeros((len(weight), len(weight)))))

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        others = self.n_answers - 1.0
        return np.asarray(others / (others + np.exp(np.asarray(weight, dtype=float))))

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        wrong = np.clip(np.asarray(cost, dtype=float), LEAST_RATE, 1.0 - LEAST_RATE)
        return np.asarray(np.log((1.0 - wrong) * (self.n_answers - 1.0) / wrong))


def _shares(answers: FloatArray) -> FloatArray:
    return np.asarray(answers / np.maximum(answers.sum(axis=-1, keepdims=True), 1.0))


def _pooled_shares(statistics: Statistics) -> FloatArray:
    """Return ``(kinds, k)`` how often the sources give each answer, all together; even where nobody does."""
    counts = statistics["answers"].sum(axis=0)
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, counts / np.maximum(total, 1.0), 1.0 / counts.shape[1]))


def _agreement(counts: FloatArray, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``(a, b)`` sums and scatter of the agreements of answers counted ``(a, k, b, k)``.

    Two answers agree by the inner product of their one-hot vectors, less the shares ``(a, k)`` and ``(b, k)`` with
    which each source gives them.
    """
    product = np.eye(left.shape[1])[None, :, None, :] - left[:, None, None, :] - right.T[None, :, :, None]
    product = product + (left @ right.T)[:, None, :, None]
    total = (counts * product).sum(axis=(1, 3))
    return total, (counts * product**2).sum(axis=(1, 3)) - total**2 / np.maximum(counts.sum(axis=(1, 3)), 1)


def _gold_agreement(gold: FloatArray, own: FloatArray, pooled: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``(m,)`` agreements with known answers and their variances, from ``(m, kinds, known, given)`` counts."""
    total, scatter, scale, floor = np.zeros((4, len(gold)))
    for kind, share in enumerate(pooled):
        counts = gold[:, kind]
        found, apart = _agreement(counts.transpose(0, 2, 1)[:, :, None], own[:, kind], share[None])
        total += found[:, 0]
        scatter += apart[:, 0]
        # The spread of the known answers differs from that of all answers, so it is the unit.
        scale += counts.sum(axis=2) @ (1.0 - 2.0 * share + share @ share)
        floor += 0.1 * counts.sum(axis=(1, 2)) * (1.0 - share @ share)
    scale = np.maximum(np.maximum(scale, floor), 1e-3)
    return total / scale, scatter / scale**2 + 1.0 / np.maximum(gold.sum(axis=(1, 2, 3)), 1.0) ** 2


def _item_sums(prefix: str, mean: FloatArray, variance: FloatArray, items: FloatArray) -> dict[str, FloatArray]:
    """Return the sums behind a pair table of one number per item whose mean has this value and this variance."""
    sums = {"agreement": mean * items, "agreement_square": variance * items**2 + items * mean**2}
    sums["agreement_count"] = items
    return {prefix + name: value for name, value in sums.items()}


# --- from qualities to tables ---------------------------------------------------------------------------


def _coins(quality: FloatArray, guess: FloatArray) -> FloatArray:
    """Return the tables of sources that know the answer with probability q, and else guess by ``(kinds, k)`` rates."""
    q = quality[:, None, None, None]
    table = np.maximum(q * np.eye(guess.shape[1]) + (1.0 - q) * guess[:, None, :], LEAST_RATE)
    return np.asarray(table / table.sum(axis=3, keepdims=True))


def _tables(hypothesis: Hypothesis, statistics: Statistics, pooled: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return tables of answers and frequencies of true answers that agree with the qualities and with the votes.

    Who does not know the answer may guess evenly, or each answer as often as it is given. The shares of the answers
    do not tell: in the first case rare answers are rarer than their shares. How much sources agree on each answer
    does tell, as its covariance is q_a q_b f (1 - f) for a true answer of frequency f. The ways to guess are averaged
    by how well they explain it.
    """
    k, joint, own = pooled.shape[1], statistics["joint"], _shares(statistics["answers"])
    ways = [share * pooled + (1.0 - share) / k for share in GUESSES]
    fits = [(guess, *_frequencies(hypothesis.quality, pooled, guess)) for guess in ways]
    misfit = np.zeros(len(fits))
    if len(joint):
        alone = np.triu(~hypothesis.in_group, 1)
        both = joint.sum(axis=(2, 4)) * alone
        total, pairs = np.maximum(both.sum(axis=(1, 2)), 1.0), max(int((both.sum(axis=0) > 0).sum()), 1)
        alike = np.einsum("tacbc,ab->tc", joint, alone) - np.einsum("tab,atc,btc->tc", both, own, own)
        spread = pooled * (1.0 - pooled)
        for way, (_, quality, prior) in enumerate(fits):
            square = float(quality @ both.sum(axis=0) @ quality / total.sum())
            # For one item: the noise of independent pairs, and the part common to all: the spread of (truth - f)^2.
            variance = spread**2 / pairs + square**2 * spread * np.maximum(1.0 - 4.0 * spread, 0.0) + 1e-6
            gap = alike / total[:, None] - square * prior * (1.0 - prior)
            misfit[way] = (gap**2 / variance * (total / pairs)[:, None]).sum() * (k - 1) / k
    weight = softmax(-0.5 * misfit)
    tables = np.stack([_coins(quality, guess) for guess, quality, _ in fits])
    priors = np.stack([prior for _, _, prior in fits])
    return np.tensordot(weight, tables, axes=1), np.tensordot(weight, priors, axes=1)


def _frequencies(quality: FloatArray, pooled: FloatArray, guess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the chance that each source knows the answer, and the frequencies of true answers, ``(kinds, k)``.

    Qualities are in units of the spread of the answers given, ``1 - sum(share ** 2)``. True answers that are more
    uneven spread less, so that as much agreement takes more knowledge: by the factor that makes both hold.
    """
    given = float((1.0 - (pooled**2).sum(axis=1)).sum())

    def at(factor: float) -> tuple[FloatArray, FloatArray, float]:
        known = np.clip(factor * quality, -1.0, 1.0)
        mean = max(float(known.mean()), 0.01)
        prior = np.maximum((pooled - (1.0 - mean) * guess) / mean, LEAST_RATE)
        prior /= prior.sum(axis=1, keepdims=True)
        return known, prior, factor**2 * float((1.0 - (prior**2).sum(axis=1)).sum())

    low, high = 1.0, 1.0 / max(float(np.abs(quality).max(initial=0.0)), 0.01)
    for _ in range(20):
        middle = (low + high) / 2.0
        low, high = (middle, high) if at(middle)[2] < given else (low, middle)
    return at(low)[:2]
