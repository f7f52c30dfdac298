"""Dependency trees: sources err on tokens, more often on hard ones, and wrong heads attract each other.

Given the difficulty z ~ N(0, 1) of a token, a source errs with the log-odds ``l_a + difficulty * z``, independently of
the others. Wrong votes on a token coincide as in Ewens' law: two of them with probability 1 / K, where K is the number
of plausible wrong heads, and a wrong head with many votes attracts more. Both numbers are common to all sources and
learned from the votes. They matter, because agreement on easy tokens and on common errors makes sources look better
than they are. Of the heads that are named for a token, near ones are right more often than far ones. The votes also
show how much more often.

The votes on a token matter only by who agrees with whom, which is a short list of patterns, however many tokens there
are. Labels are the trees with the largest expected number of right heads (maximum arborescences).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from consilience.arrays import Axes, Batch, BoolArray, FloatArray, IntArray, as_object_array
from consilience.estimation.pair_table import Forward, PairTable, Statistics, agreement_table, ratio_sums
from consilience.estimation.protocol import Chunk, Hypothesis, Law, Mixture, Parameters, Posterior, Request, Summary
from consilience.exceptions import InvalidVotesError
from consilience.label_types.dirichlet import log_gamma
from consilience.label_types.pair_costs import above_chance
from consilience.label_types.triples import difficulty_nodes, seen_difficulty, unused_share
from consilience.label_types.vote_correlation import discount_correlated

Heads = npt.NDArray[np.int16]

#: Prior number of plausible wrong heads: one in four pairs of wrong votes coincides.
PLAUSIBLE_HEADS = 4.0
#: Prior number of common errors of two sources, which coincide at the same rate.
BORROWED_ERRORS = 20.0
#: Bounds of error rates, so that no single vote is decisive.
LEAST_ERROR, MOST_ERROR = 0.005, 0.98
#: Least weight of a vote where votes are only weighted. It decides if nobody else votes.
LEAST_WEIGHT = 0.01
#: With at least this agreement, two sources count as one when coincidences are counted.
HARDLY_DIFFERENT = 0.9
#: Sources whose triples are compared. They form 455 triples.
MOST_SOURCES = 15
#: Relative uncertainty of K, because wrong heads do not follow Ewens' law exactly.
HEADS_ERROR = 0.1
#: Rounds that alternate between K and the difficulty.
ROUNDS = 3
#: Numbers of plausible wrong heads to try.
HEADS = np.geomspace(1.05, 30.0, 60)
#: Points of the difficulty of a token and their probabilities.
NODES, PROBABILITY = difficulty_nodes()


@dataclass(frozen=True)
class TreeParameters(Parameters):
    """Error rates of sources that vote on the heads of tokens, under each of h hypotheses."""

    probability: Annotated[FloatArray, Axes("h", 0.0, 1.0)]  # of the hypotheses
    log_odds: Annotated[FloatArray, Axes("h m")]  # log-odds of a wrong head on a token of middle difficulty
    # Standard deviation of the log-odds after the pair table, which limits how far EM moves them; 0 where it does not
    spread: Annotated[FloatArray, Axes("h m", 0.0, infinite=True)]
    plausible: Annotated[FloatArray, Axes("h", 1.0 + 1e-6)]  # number of plausible wrong heads, above one
    difficulty: Annotated[FloatArray, Axes("h", 0.0)]  # standard deviation of the difficulty of tokens
    # Decrease of the log-odds of a head with the logarithm of its distance
    nearness: Annotated[FloatArray, Axes("h")]
    middle: Annotated[FloatArray, Axes("h")]  # mean of that logarithm
    correlation: Annotated[FloatArray, Axes("h m m", 0.0, 1.0, symmetric=True)]  # of errors given the truth
    weighted: bool = False  # whether votes on edges are only weighted (the plain vote, and weights given by the user)

    @property
    def error(self) -> FloatArray:
        """``(h, m)`` shares of wrong heads, over tokens of any difficulty."""
        return _mean_error(self.log_odds, self.difficulty)


@dataclass(frozen=True, eq=False)
class Patterns:
    """Tokens by who agrees with whom."""

    blocks: Heads  # (patterns, m + 1) as of `vote_blocks`
    position: IntArray  # (t,) pattern of each token

    @classmethod
    def of(cls, votes: Heads, known: Heads | None = None) -> Patterns:
        """Return the patterns of ``(t, m)`` votes and ``(t,)`` known heads."""
        blocks = vote_blocks(votes, np.full(len(votes), -1, dtype=np.int16) if known is None else known)
        row = np.dtype((np.void, blocks.dtype.itemsize * blocks.shape[1]))
        _, first, position = np.unique(blocks.view(row).reshape(-1), return_index=True, return_inverse=True)
        return cls(blocks[first], position.reshape(-1))

    @cached_property
    def count(self) -> FloatArray:
        """Tokens of each pattern."""
        return np.bincount(self.position, minlength=len(self.blocks)).astype(np.float64)

    @property
    def votes(self) -> Heads:
        """``(patterns, m)`` number of the head that each source names, -1 where it abstains."""
        return self.blocks[:, :-1]

    @cached_property
    def is_first(self) -> BoolArray:
        """``(patterns, m)`` whether a source is the first to name its head."""
        # numbers come in the order of the sources, so that a new head has the largest number so far
        seen = np.maximum.accumulate(np.pad(self.votes, ((0, 0), (1, 0)), constant_values=-1), axis=1)
        return self.votes > seen[:, :-1]

    def head_sums(self, values: FloatArray) -> FloatArray:
        """Return ``(patterns, m)`` sums over tokens, by number of the head, of what is given for each vote."""
        token, source = np.nonzero(self.is_first[self.position])
        pattern = self.position[token]
        cell = pattern * self.votes.shape[1] + self.votes[pattern, source]
        sums = np.bincount(cell, values[token, source], minlength=self.votes.size).astype(np.float64)
        return sums.reshape(self.votes.shape)


def vote_blocks(votes: Heads, known: Heads) -> Heads:
    """Return ``(t, m + 1)`` which votes are for the same head: equal heads of a token have equal numbers.

    Heads are numbered in the order of the sources; -1 where a source abstains. The last column is the number of the
    known head, -1 where it is not known, -2 where nobody voted for it.
    """
    tokens, m = np.arange(len(votes)), votes.shape[1]
    blocks, found = np.full((len(votes), m + 1), -1, dtype=np.int16), np.zeros(len(votes), dtype=np.int16)
    blocks[known >= 0, m] = -2
    for a, own in enumerate(votes.T):
        first = (votes[:, : a + 1] == own[:, None]).argmax(axis=1)  # source with this head
        blocks[:, a] = np.where(own < 0, -1, np.where(first < a, blocks[tokens, first], found))
        found += (first == a) & (own >= 0)
        blocks[:, m] = np.where((own == known) & (own >= 0), blocks[:, a], blocks[:, m])
    return blocks


@dataclass(frozen=True)
class TreeLaw(Law):
    """Trees of which every head is a vote."""

    plausible_heads: float | None = None  # number K of plausible wrong heads, or None to learn it from the votes
    n_relations: int = 0  # how many relations edges may have; 0 if they have none
    # Sources that are nearly identical to another one in a few votes. One of them counts when coincidences are counted
    twins: tuple[int, ...] = ()
    parameter_class = TreeParameters
    rows: ClassVar[int] = 1 << 12
    has_em: ClassVar[bool] = True
    adapts_to_votes: ClassVar[bool] = True
    side_by_side: ClassVar[bool] = True

    @property
    def heads(self) -> float:
        """Plausible wrong heads of a token before any vote; more than one."""
        return PLAUSIBLE_HEADS if self.plausible_heads is None else max(self.plausible_heads, 1.05)

    def shape(self, statistics: Statistics) -> tuple[float, float, float]:
        """Return the plausible wrong heads K, how often unrelated votes agree (one of K + 1), and the difficulty."""
        heads = self.heads
        difficulty = _seen_difficulty(statistics["triples"], heads)
        for _ in range(ROUNDS if self.plausible_heads is None else 0):
            heads = _coincident_heads(statistics["contradictions"], statistics["sentence_sums"], difficulty)
            difficulty = _seen_difficulty(statistics["triples"], heads)
        return heads, 1.0 / (heads + 1.0), difficulty

    @property
    def chance_cost(self) -> float:
        return 1.0  # unrelated trees have hardly any head in common

    # --- level 0 ------------------------------------------------------------------------------------

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> Law:
        """Look for sources that hardly differ: which they are must not depend on how the votes come in pieces."""
        if sample is None:
            return self
        votes = self.prepare(sample)[0]
        seen = (votes.votes >= 0).astype(np.float64)
        weight = seen * votes.count[:, None]
        same = [weight[:, a] @ (seen * (votes.votes == votes.votes[:, [a]])) for a in range(seen.shape[1])]
        alike = np.array(same) > HARDLY_DIFFERENT * np.maximum(weight.T @ seen, 1.0)
        return replace(self, twins=tuple(np.flatnonzero(np.tril(alike, -1).any(axis=1)).tolist()))

    def statistics(self, chunk: Chunk) -> Statistics:
        """Return agreement by sentence; those of one token, which have one tree, are left out."""
        table = TokenTable.of(chunk.labels, chunk.observed)
        known = table.known(chunk)
        sums = sentence_agreement(np.column_stack([table.heads, known]), table.starts)
        m = chunk.observed.shape[1]
        parts = {**chunk.counts(), "sentence_sums": sums[:, :m, :m]}
        parts["shared"] = np.rint(sums[1, :m, :m]).astype(np.int64)
        twins = np.isin(np.arange(m), self.twins)
        parts |= _coincidences(Patterns.of(table.heads[np.repeat(table.lengths > 1, table.lengths)]), twins)
        if (known >= 0).any():
            parts["gold_sentence_sums"] = sums[:, m, :m]
        return Statistics(parts)

    def pair_table(self, statistics: Statistics) -> PairTable:
        """Return shares of equal heads, corrected for chance: of K + 1 heads with equal chances one is hit by luck."""
        sums: dict[str, FloatArray] = {}
        for prefix in ("", "gold_"):
            if f"{prefix}sentence_sums" in statistics:
                same, tokens = statistics[f"{prefix}sentence_sums"][:2]
                # A few sentences may agree by luck, so tokens scatter at least as much as independent ones.
                smooth = (same + 1.0) / (tokens + 2.0)
                sums |= ratio_sums(statistics[f"{prefix}sentence_sums"], tokens * smooth * (1.0 - smooth), prefix)
        sums["agreement_votes"] = np.diag(sums["agreement_count"]).copy()
        cost = 1.0 - sums["agreement"] / np.maximum(sums["agreement_count"], 1e-12)
        return replace(agreement_table(sums, above_chance(self.shape(statistics)[1])), cost=cost)

    def forward(self, statistics: Statistics) -> Forward:
        """Return the expected agreement of two sources that err independently on tokens of the same difficulty."""
        heads, chance, difficulty = self.shape(statistics)
        log_odds = _log_odds(_error(np.tanh(Forward.USUAL_GRID), chance), difficulty)
        wrong = 1.0 / (1.0 + np.exp(-(log_odds[:, None] + difficulty * NODES)))
        agree = ((1.0 - wrong) * PROBABILITY) @ (1.0 - wrong).T + (wrong * PROBABILITY) @ wrong.T / heads
        return Forward.of_table(Forward.USUAL_GRID, (agree - chance) / (1.0 - chance))

    # --- level 2 ------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> TreeParameters:
        quality = hypothesis.quality
        if hypothesis.is_plain:
            return self.from_weights(np.ones(len(quality)), request)
        heads, chance, difficulty = self.shape(statistics)
        error = _error(quality, chance)
        # By default error rates stay those of the pair table. On single tokens, errors that parsers share look like
        # knowledge, and EM would drive one parser after the other towards perfection.
        free = np.isfinite(hypothesis.spread) & (request.method == "em")
        step = np.where(free, hypothesis.spread, 0.0) * (1.0 - quality**2)
        return replace(
            self._of_log_odds(_log_odds(error, difficulty)),
            plausible=np.full(1, heads),
            spread=(step * (1.0 - chance) / (error * (1.0 - error)))[None],
            difficulty=np.full(1, difficulty),
            # Errors that all sources share come from hard tokens, which this law models itself.
            correlation=np.where(hypothesis.in_group, hypothesis.correlation, 0.0)[None],
        )

    def _of_log_odds(self, log_odds: FloatArray) -> TreeParameters:
        m, none, heads = len(log_odds), np.zeros(1), np.full(1, self.heads)
        alone = np.zeros((1, m, m))
        return TreeParameters(np.ones(1), log_odds[None], np.zeros((1, m)), heads, none, none, none, alone)

    def prepare(self, chunk: Chunk) -> tuple[Patterns, FloatArray]:
        """Return the patterns of the votes, and sums of the log distances of heads and of their squares."""
        table = TokenTable.of(chunk.labels, chunk.observed)
        counted = np.repeat(table.lengths > 1, table.lengths)
        patterns = Patterns.of(table.heads[counted], table.known(chunk)[counted])
        distance = table.log_distance[counted]
        return patterns, np.stack([patterns.head_sums(distance), patterns.head_sums(distance**2)])

    def e_step(self, parameters: TreeParameters, prepared: tuple[Patterns, FloatArray]) -> Statistics:
        patterns, distance = prepared
        voted, correlation = patterns.votes >= 0, parameters.correlation[0]
        # A group counts as one source, because agreement inside it is not evidence.
        together = discount_correlated(voted, correlation > 0.0)
        right, wrong, belief = _believe(parameters, 0, patterns, together)
        most = patterns.votes.max(axis=1, initial=-1)[:, None]
        contested = (np.arange(voted.shape[1]) <= most) & (most > 0)
        counts = np.stack([np.broadcast_to(patterns.count[:, None], voted.shape), *distance])
        each = [
            (np.where(contested, chance, 0.0) * counts).sum(axis=(1, 2))
            for chance in (belief[:, :-1], 1.0 - belief[:, :-1])
        ]
        return Statistics({"right": right, "wrong": wrong, "distance": np.array(each)})

    def m_step(self, parameters: TreeParameters, statistics: Statistics, start: TreeParameters) -> TreeParameters:
        nearness, middle = _nearness(statistics["distance"])
        log_odds, votes = parameters.log_odds[0], statistics["right"] + statistics["wrong"]
        spread = np.maximum(start.spread[0], 1e-3)
        # The pair table has already used most of the information in the votes.
        left, pull = unused_share(spread), 1.0 / spread**2
        for _ in range(3):
            rate = 1.0 / (1.0 + np.exp(-(log_odds + float(parameters.difficulty[0]) * NODES[:, None])))
            gain = left * (statistics["wrong"] - votes * rate).sum(axis=0) - pull * (log_odds - start.log_odds[0])
            curve = left * (votes * rate * (1.0 - rate)).sum(axis=0) + pull
            log_odds = log_odds + np.clip(gain / curve, -1.0, 1.0)
        limits = _log_odds(np.array([LEAST_ERROR, MOST_ERROR]), float(parameters.difficulty[0]))
        log_odds = np.clip(log_odds, *limits)[None]
        return replace(parameters, log_odds=log_odds, nearness=np.array([nearness]), middle=np.array([middle]))

    def merge(self, mixture: Mixture) -> Mixture:
        """Return one set of parameters with all hypotheses, so that heads are averaged and trees decoded once."""
        shares, each = zip(*mixture, strict=True)
        fields = [name for name in each[0].as_dict() if name not in ("probability", "weighted")]
        stacked = {name: np.concatenate([getattr(one, name) for one in each]) for name in fields}
        stacked["probability"] = np.concatenate([s * one.probability for s, one in zip(shares, each, strict=True)])
        return ((1.0, replace(each[0], **stacked)),)

    # --- level 3 ------------------------------------------------------------------------------------

    def posterior(self, parameters: TreeParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return the consensus trees.

        ``details["head_probability"]`` holds the probability of each head, one array per sentence. Confidence is its
        mean, the expected share of right heads.
        """
        table = TokenTable.of(labels, observed)
        weights = self._vote_weights(parameters, observed)
        support = table.support(weights)
        if parameters.weighted:
            chance, unseen = _weighted_chances(support, table, float(parameters.plausible[0]))
        else:
            chance, unseen = _head_chances(parameters, table)
        score = support if parameters.weighted and decode != "bayes" else chance
        trees, heads = self._consensus(table, score, weights)
        named = table.heads == heads[:, None]
        length = np.repeat(table.lengths, table.lengths)
        # Heads without votes share the remaining probability.
        likely = np.where(named, chance, 0.0).max(axis=1, initial=0.0)
        likely = np.where(named.any(axis=1), likely, unseen / np.maximum(length - 1, 1))
        probability = np.where(length == 1, 1.0, np.clip(likely, 0.0, 1.0))
        n = len(observed)
        total = np.bincount(np.repeat(np.arange(n), table.lengths), probability, minlength=n)
        confidence = np.clip(total / np.maximum(table.lengths, 1), 0.0, 1.0)
        return Posterior(trees, confidence, None, {"head_probability": cut(probability, table.starts)})

    def _consensus(self, table: TokenTable, score: FloatArray, weights: FloatArray) -> tuple[Batch, IntArray]:
        """Return the trees of largest score ``(n,)``, and all heads ``(t,)``.

        Votes on relations have these weights ``(n, m)``: those of the sources that have the edge count, or else all.
        """
        from consilience.label_types.trees.kernels import best_trees

        heads = best_trees(table.heads, score.round(12), table.starts)  # sums depend on the order of the sources
        if self.n_relations == 0:
            return cut(heads, table.starts), heads
        counted = np.where(table.heads >= 0, np.repeat(weights, table.lengths, axis=0), 0.0)
        shared = np.where(table.heads == heads[:, None], counted, 0.0)
        counted = np.where(shared.any(axis=1, keepdims=True), shared, counted)
        votes = np.zeros((len(heads), self.n_relations))
        if table.relations is not None:
            token, source = np.nonzero(counted)
            np.add.at(votes, (token, table.relations[token, source]), counted[token, source])
        return cut(np.column_stack([heads, votes.argmax(axis=1)]), table.starts), heads

    def weighted_trees(self, labels: Batch, weights: FloatArray) -> Batch:
        """Return the trees whose edges have the most weighted votes, ``(n, m)`` weights, none below zero."""
        table = TokenTable.of(labels, weights > 0)
        return self._consensus(table, table.support(weights), weights)[0]

    def _vote_weights(self, parameters: TreeParameters, observed: BoolArray) -> FloatArray:
        """Return ``(n, m)`` by how much votes count that are only weighted."""
        total = np.zeros(observed.shape)
        for index, share in enumerate(parameters.probability):
            weight = np.log(parameters.plausible[index]) - parameters.log_odds[index]
            shared = discount_correlated(observed, parameters.correlation[index])
            total += share * np.maximum(weight, LEAST_WEIGHT) * shared
        return total

    # --- summaries for all label types ------------------------------------------------------------------

    def summary(self, parameters: TreeParameters) -> Summary:
        share = parameters.probability
        cost = share @ parameters.error
        weight = self.weight_from_cost(cost)
        unknown = np.full(len(cost), np.inf)
        return Summary(cost, weight, unknown, unknown, np.einsum("h,hab->ab", share, parameters.correlation))

    def quality_errors(self, parameters: Any, quality: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
        cost, heads = self.summary(parameters).expected_cost, float(parameters.plausible[0])
        # Two equal sources agree with probability (1 - cost)^2 + cost^2 / K, so the cost depends on K.
        by_heads = cost**2 / heads / np.maximum(2.0 * (1.0 - cost) - 2.0 * cost / heads, 0.3)
        cost_error = np.hypot(error * heads / (heads + 1.0), HEADS_ERROR * by_heads)
        return cost_error, cost_error / np.maximum(cost * (1.0 - cost), 1e-6)

    def from_weights(self, weight: FloatArray, request: Request) -> TreeParameters:
        log_odds = np.log(self.heads) - np.asarray(weight, dtype=np.float64)
        return replace(self._of_log_odds(log_odds), weighted=True)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return the share of wrong heads, ``K / (K + exp(weight))``."""
        odds = np.exp(np.clip(np.asarray(weight, dtype=np.float64), -500.0, 500.0))
        return self.heads / (self.heads + odds)

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return ``log((1 - cost) / cost) + log K``."""
        share = np.clip(np.asarray(cost, dtype=np.float64), 1e-9, 1.0 - 1e-9)
        return np.log1p(-share) - np.log(share) + np.log(self.heads)


# --- error rates ----------------------------------------------------------------------------------------


def _error(quality: FloatArray, chance: float) -> FloatArray:
    """Return shares of wrong heads; those of sources below chance approach one, with the same slope at chance."""
    low = chance * np.exp(np.minimum(quality, 0.0) * (1.0 - chance) / chance)
    right = np.where(quality > 0.0, chance + (1.0 - chance) * quality, low)
    return np.clip(1.0 - right, LEAST_ERROR, MOST_ERROR)


def _mean_error(log_odds: FloatArray, difficulty: FloatArray) -> FloatArray:
    odds = log_odds[..., None] + difficulty[..., None, None] * NODES
    return (1.0 / (1.0 + np.exp(-odds))) @ PROBABILITY


def _log_odds(error: FloatArray, difficulty: float) -> FloatArray:
    """Return the log-odds at middle difficulty with which tokens of all difficulties have this share of errors."""
    grid = np.linspace(-20.0, 20.0, 1601)
    return np.interp(error, _mean_error(grid, np.asarray(difficulty)), grid)


def _nearness(sums: FloatArray) -> tuple[float, float]:
    """Return how fast the odds of a head fall with its log distance (linear discriminant), and the mean log distance.

    The prior of the slope is standard normal.
    """
    (right, first_right, second_right), (wrong, first_wrong, second_wrong) = sums
    if right <= 0 or wrong <= 0:
        return 0.0, 0.0
    near, far = first_right / right, first_wrong / wrong
    scatter = max(second_right + second_wrong - right * near**2 - wrong * far**2, 0.0)
    variance = scatter / (right + wrong)
    pairs = right * wrong / (right + wrong)
    return float(pairs * (far - near) / (pairs * variance + 1.0)), float((first_right + first_wrong) / (right + wrong))


# --- sums -----------------------------------------------------------------------------------------------


def _coincidences(patterns: Patterns, twins: BoolArray) -> dict[str, FloatArray]:
    """Return the sums that tell how wrong heads coincide and how much tokens differ.

    ``contradictions``: ``(2, m, m)`` tokens on which two sources contradict most of the others, and on which they do so
    by the same head. ``triples``: ``(3, k, k, k)`` tokens on which three of the first k sources vote, on which the
    first two of them agree, and all three. Copies agree for another reason; the `twins` of others do not count.
    """
    votes, count = patterns.votes, patterns.count
    m = votes.shape[1]
    seen = (votes >= 0).astype(np.float64)
    weight = seen * count[:, None]
    same = [seen * (votes == votes[:, [a]]) for a in range(m)]
    few = min(m, MOST_SOURCES)
    triples = np.zeros((3, few, few, few))
    for a in np.flatnonzero(~twins[:few]):
        own, heard = same[a][:, :few] * weight[:, [a]], seen[:, :few] * ~twins[:few]
        triples[:, a] = [(heard * weight[:, [a]]).T @ heard, own.T @ heard, own.T @ (same[a][:, :few] * heard)]
    contradictions = np.zeros((2, m, m))
    voted = (votes >= 0) & ~twins
    for head in range(int(votes.max(initial=-1)) + 1):
        named = (votes == head) & voted
        size = named.sum(axis=1)
        most = (size > 1) & (2 * size > voted.sum(axis=1) - 2)
        apart = (voted & ~named)[most]
        tokens = apart * count[most, None]
        contradictions[0] += tokens.T @ apart
        contradictions[1] += [tokens[:, a] @ (same[a][most] * apart) for a in range(m)]
    return {"contradictions": contradictions, "triples": triples}


def _coincident_heads(contradictions: FloatArray, sentence_sums: FloatArray, difficulty: float) -> float:
    """Return K: two sources that contradict most of the others agree about once in K times.

    Where most of the others are wrong, these two may be right. That happens as often as the law has it for sources of
    one quality, with which two of them agree as often as they do here.
    """
    pairs = np.tril_indices(len(contradictions[0]), -1)
    both, same = contradictions[0][pairs], contradictions[1][pairs]
    agree, tokens = sentence_sums[0][pairs], sentence_sums[1][pairs]
    enough = both >= BORROWED_ERRORS / 2.0
    total = both[enough].sum()
    coincident = total * float(np.median(same[enough] / both[enough])) if total else 0.0
    # The mean number of other votes on a token with two votes.
    others = max(round(float(sentence_sums[1].sum() / max(np.trace(sentence_sums[1]), 1.0))) - 2, 0)
    rate = float(np.median(agree[enough] / tokens[enough])) if total else 0.5
    ratio = _contradicting_agreement(HEADS, others, rate, difficulty)
    seen = (coincident + BORROWED_ERRORS * np.interp(PLAUSIBLE_HEADS, HEADS, ratio)) / (total + BORROWED_ERRORS)
    heads = HEADS[np.abs(ratio - seen).argmin()] if total else PLAUSIBLE_HEADS
    # Agreement is at least that of a random choice among K + 1 heads, up to two standard errors.
    rates = (agree + 1.0) / (tokens + 2.0)
    chance = float((rates + 2.0 * np.sqrt(rates / (tokens + 2.0))).min(initial=1.0))
    return float(max(heads, 1.0 / chance - 1.0))


def _contradicting_agreement(heads: FloatArray, others: int, rate: float, difficulty: float) -> FloatArray:
    """Return how often two sources agree if they contradict most of the others, and any two agree at this rate."""
    two, _, wrong = _agreements(heads[:, None], np.array([difficulty]))
    place = np.array([np.interp(rate, own, np.arange(len(own))) for own in two])[:, None]
    low = np.minimum(place.astype(np.int64), two.shape[1] - 2)
    error = wrong[0][low] + (place - low)[..., None] * (wrong[0][low + 1] - wrong[0][low])  # (heads, 1, nodes)
    size, heads = np.arange(max(2, others // 2 + 1), max(others, 2) + 1)[:, None], heads[:, None, None]
    ways = np.exp(log_gamma(others + 1) - log_gamma(size + 1) - log_gamma(np.maximum(others - size, 0) + 1))
    right = ways * (1.0 - error) ** size * error ** (others - size)
    # A wrong head with many votes attracts more (Ewens' law).
    joins = size / (heads - 1.0 + size)
    alike = np.exp(log_gamma(size) + log_gamma(heads) - log_gamma(heads + size - 1.0))
    misled = ways * error**size * alike * (1.0 - error * joins) ** (others - size)
    apart = right * error**2 + misled * (1.0 - error * joins) ** 2
    again = error**2 * (1.0 - joins) / (heads + size)
    same = right * error**2 / heads + misled * ((1.0 - error) ** 2 + again)
    return (same @ PROBABILITY).sum(axis=1) / np.maximum((apart @ PROBABILITY).sum(axis=1), 1e-300)


def _agreements(heads: FloatArray | float, difficulty: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how often two and three equal sources agree, for each K ``(k, 1)`` or difficulty, and their errors.

    Qualities rise up to where agreement does: sources that err always agree on errors.
    """
    log_odds = np.linspace(8.0, -8.0, 161)
    wrong = 1.0 / (1.0 + np.exp(-(log_odds[:, None] + difficulty[:, None, None] * NODES)))
    two = (1.0 - wrong) ** 2 @ PROBABILITY + wrong**2 @ PROBABILITY / heads
    three = (1.0 - wrong) ** 3 @ PROBABILITY + wrong**3 @ PROBABILITY * 2.0 / (heads * (heads + 1.0))
    for pair, triple in zip(two, three, strict=True):
        least = int(pair.argmin())
        pair[:least], triple[:least] = pair[least], triple[least]
    return two, three, wrong


def _seen_difficulty(sums: FloatArray, heads: float) -> float:
    """Return how much tokens differ."""
    a, b, c = np.array(list(combinations(range(sums.shape[1]), 3)), dtype=np.int64).reshape(-1, 3).T
    triples = np.stack([sums[0][a, b, c], sums[1][a, b, c], sums[1][a, c, b], sums[1][b, c, a], sums[2][a, b, c]])
    grid = np.linspace(0.05, 3.0, 31)
    return seen_difficulty(triples, grid, *_agreements(heads, grid)[:2], 0.0)


def sentence_agreement(votes: Heads, starts: IntArray) -> FloatArray:
    """Return ``(5, m, m)`` sums over sentences of two tokens or more on which two sources vote.

    With S heads in common of T tokens: the sums of S, T, S^2, S T and T^2.
    """
    m = votes.shape[1]
    sums = np.zeros((5, m, m))
    rows = np.flatnonzero(np.diff(starts) > 1)
    sizes, voted = np.diff(starts)[rows, None], votes[starts[rows]] >= 0
    inside = np.repeat(np.diff(starts) > 1, np.diff(starts))
    begin = np.cumsum(sizes) - sizes[:, 0]
    for source in range(m if len(rows) else 0):
        both = voted & voted[:, [source]]
        same = np.add.reduceat(votes[inside] == votes[inside][:, [source]], begin, dtype=np.float64) * both
        tokens = sizes * both
        products = (same, tokens, same**2, same * tokens, tokens**2)
        sums[:, source] = [one.sum(axis=0) for one in products]
    return sums


# --- tokens -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TokenTable:
    """Votes on the tokens of n sentences, one after the other."""

    heads: Heads  # (t, m), -1 where a source abstains
    relations: Heads | None  # (t, m) codes, or None where votes have none
    starts: IntArray  # (n + 1,) first token of each sentence; nobody votes on an empty one

    @classmethod
    def of(cls, labels: Batch, observed: BoolArray) -> TokenTable:
        """Return the tokens of ``(n, m)`` trees: heads ``(length,)``, or heads and relations ``(length, 2)``."""
        n, m = observed.shape
        rows, columns = np.nonzero(observed)
        if len(rows) == 0:
            return cls(np.zeros((0, m), dtype=np.int16), None, np.zeros(n + 1, dtype=np.int64))
        cells = labels[rows, columns].tolist()
        sizes = np.fromiter(map(len, cells), dtype=np.int64, count=len(cells))
        lengths = np.zeros(n, dtype=np.int64)
        lengths[rows] = sizes
        if (lengths[rows] != sizes).any():
            cell = int(np.flatnonzero(lengths[rows] != sizes)[0])
            raise InvalidVotesError(
                f"Row {rows[cell]}: one tree has {sizes[cell]} tokens, another {lengths[rows[cell]]}. All sources must "
                "parse the same tokens."
            )
        starts = np.concatenate([[0], np.cumsum(lengths)])
        flat = np.concatenate(cells).astype(np.int16)
        token = np.arange(len(flat)) + np.repeat(starts[rows] - (np.cumsum(sizes) - sizes), sizes)
        source = np.repeat(columns, sizes)
        heads = np.full((starts[-1], m), -1, dtype=np.int16)
        heads[token, source] = flat if flat.ndim == 1 else flat[:, 0]
        if flat.ndim == 1:
            return cls(heads, None, starts)
        relations = np.full_like(heads, -1)
        relations[token, source] = flat[:, 1]
        return cls(heads, relations, starts)

    @cached_property
    def lengths(self) -> IntArray:
        """Tokens of each sentence."""
        return np.diff(self.starts)

    @cached_property
    def log_distance(self) -> FloatArray:
        """``(t, m)`` logarithm of how far away the head of each vote is; the root is as far as the sentence is long."""
        length = np.repeat(self.lengths, self.lengths)[:, None]
        place = np.arange(len(length))[:, None] - np.repeat(self.starts[:-1], self.lengths)[:, None] + 1
        return np.log(np.maximum(np.where(self.heads > 0, np.abs(self.heads - place), length), 1))

    def support(self, weights: FloatArray) -> FloatArray:
        """Return ``(t, m)`` the weighted votes, ``(n, m)`` by sentence, for the head that each source voted for."""
        wide = np.repeat(weights, self.lengths, axis=0)
        support = np.zeros(self.heads.shape)
        for source in range(weights.shape[1]):
            support[:, source] = np.where(self.heads == self.heads[:, [source]], wide, 0.0).sum(axis=1)
        return np.where(self.heads >= 0, support, 0.0)

    def known(self, chunk: Chunk) -> Heads:
        """Return ``(t,)`` the true heads, -1 where they are not known or nobody votes."""
        heads, truth = np.full(len(self.heads), -1, dtype=np.int16), np.asarray(chunk.known)
        for row in chunk.gold_rows[self.lengths[chunk.gold_rows] > 0]:
            tree = np.asarray(truth[row])
            length = int(self.lengths[row])
            if len(tree) != length:
                raise InvalidVotesError(
                    f"Row {row}: the known tree has {len(tree)} tokens, the votes have {length}. Give known trees of "
                    "the same tokens."
                )
            heads[self.starts[row] : self.starts[row + 1]] = tree if tree.ndim == 1 else tree[:, 0]
        return heads


def cut(flat: npt.NDArray[np.generic], starts: IntArray) -> Batch:
    """Return one array per sentence."""
    return as_object_array(flat[first:last] for first, last in pairwise(starts.tolist()))


def _believe(
    parameters: TreeParameters, index: int, patterns: Patterns, shares: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the expected sums of `expected_heads` under one hypothesis, where votes count by their shares."""
    from consilience.label_types.trees.kernels import expected_heads

    odds = parameters.log_odds[index] + parameters.difficulty[index] * NODES[:, None]
    return expected_heads(
        patterns.blocks,
        patterns.count,
        shares,
        -np.logaddexp(0.0, odds),
        -np.logaddexp(0.0, -odds),
        np.log(PROBABILITY),
        float(parameters.plausible[index]) - 1.0,
    )


def _head_chances(parameters: TreeParameters, table: TokenTable) -> tuple[FloatArray, FloatArray]:
    """Return ``(t, m)`` the probability of the head of each vote, and ``(t,)`` of some head that nobody named."""
    patterns = Patterns.of(table.heads)
    position, number = patterns.position, np.maximum(patterns.votes, 0).astype(np.int64)
    chance, unseen = np.zeros(table.heads.shape), np.zeros(len(table.heads))
    for index, share in enumerate(parameters.probability):
        shares = discount_correlated(patterns.votes >= 0, parameters.correlation[index])
        belief = _believe(parameters, index, patterns, shares)[-1]
        near = -parameters.nearness[index] * (table.log_distance - parameters.middle[index])
        top = np.where(table.heads >= 0, near, 0.0).max(axis=1, initial=0.0)
        own = np.where(patterns.votes >= 0, np.take_along_axis(belief, number, 1), 0.0)[position]
        own *= np.exp(np.minimum(near - top[:, None], 0.0))
        other = belief[position, -1] * np.exp(-top)
        norm = share / np.maximum((own * patterns.is_first[position]).sum(axis=1) + other, 1e-300)
        chance += own * norm[:, None]
        unseen += other * norm
    return chance, unseen


def _weighted_chances(support: FloatArray, table: TokenTable, plausible: float) -> tuple[FloatArray, FloatArray]:
    """Return probabilities proportional to exp(weighted votes), for the plain vote and given weights."""
    voted = table.heads >= 0
    top = support.max(axis=1, initial=0.0)
    odds = np.where(voted, np.exp(support - top[:, None]), 0.0)
    patterns = Patterns.of(table.heads)
    once = patterns.is_first[patterns.position]
    length = np.repeat(table.lengths, table.lengths)
    unseen = np.maximum(np.minimum(plausible + 1.0, length) - once.sum(axis=1), 0.0) * np.exp(-top)
    norm = np.maximum((odds * once).sum(axis=1) + unseen, 1e-300)
    return odds / norm[:, None], unseen / norm
