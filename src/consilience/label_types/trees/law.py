"""Dependency trees: sources err on tokens, more often on hard ones, and wrong heads attract each other.

Given the difficulty z ~ N(0, 1) of a token, a source errs with the log-odds ``l_a + difficulty * z``, independently of
the others. Wrong votes on a token coincide as in Ewens' law: two of them with probability 1 / K, where K is the number
of plausible wrong heads, and a wrong head with many votes attracts more. Both numbers are common to all sources and
learned from the votes. They matter, as agreement on easy tokens and on common errors makes sources look better than
they are. Of the heads that are named for a token, near ones are right more often than far ones; how much more, the
votes tell as well.

The votes on a token matter only by who agrees with whom, which is a short list of patterns, however many tokens there
are. Labels are the trees with the largest expected number of right heads (maximum arborescences).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_object_array
from consilience.estimation.pair_table import LIMIT, Forward, PairTable, agreement_table
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
from consilience.exceptions import InvalidVotesError
from consilience.label_types.vote_correlation import discount_correlated

__all__ = ["TokenTable", "TreeLaw", "TreeParameters", "cut"]

Heads = npt.NDArray[np.int16]

#: Plausible wrong heads before any vote: two wrong votes coincide once in four times.
PLAUSIBLE_HEADS = 4.0
#: Spread of the difficulty of tokens, on the scale of log-odds, before any vote.
DIFFICULTY = 1.0
#: Standard deviation of the logarithms of (K - 1) and of the difficulty before any vote: a factor of two either way.
LOG_SPREAD = 0.7
#: Log-odds by which error rates after the pair table may be off beyond its standard errors, for one source and for all
#: together: K and difficulty are estimates, and agreement cannot tell the level of errors from difficulty.
SOURCE_MISFIT, LEVEL_MISFIT = 0.3, 1.0
#: Error rates are kept within these, so that no single vote decides for sure.
LEAST_ERROR, MOST_ERROR = 0.005, 0.98
#: What the vote of a source counts at least where votes are only weighted: it decides where nobody else speaks.
LEAST_WEIGHT = 0.01
#: Step of log(K - 1) in which the curvature of its likelihood is measured.
STEP = 0.1


def _difficulty_levels() -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    return nodes, np.log(weights / weights.sum())


#: Gauss-Hermite nodes of the difficulty of a token and their log probabilities.
NODES, LOG_NODE_PROBABILITY = _difficulty_levels()


@dataclass(frozen=True)
class TreeParameters(Parameters):
    """Error rates of sources that vote on the heads of tokens, under each of h hypotheses.

    Parameters
    ----------
    probability
        ``(h,)`` of the hypotheses.
    log_odds
        ``(h, m)`` log-odds of a wrong head on a token of middle difficulty.
    spread
        ``(h, m)`` how far EM may move the log-odds apart: their standard deviation after the pair table.
    plausible, difficulty
        ``(h,)`` number of plausible wrong heads, and standard deviation of the difficulty of tokens.
    nearness, middle
        ``(h,)`` by how much the log-odds of a named head fall with the logarithm of its distance, and the mean of that
        logarithm.
    correlation
        ``(h, m, m)`` of errors given the truth.
    weighted
        Whether votes on edges are simply weighted: the plain vote, and weights that the user gives.
    """

    probability: FloatArray
    log_odds: FloatArray
    spread: FloatArray
    plausible: FloatArray
    difficulty: FloatArray
    nearness: FloatArray
    middle: FloatArray
    correlation: FloatArray
    weighted: bool = False

    @property
    def error(self) -> FloatArray:
        """``(h, m)`` shares of wrong heads, over tokens of any difficulty."""
        return _mean_error(self.log_odds, self.difficulty)

    def log_rates(self, index: int) -> tuple[FloatArray, FloatArray]:
        """Return ``(nodes, m)`` log probabilities of right and wrong heads by difficulty."""
        odds = self.log_odds[index] + self.difficulty[index] * NODES[:, None]
        return -np.logaddexp(0.0, odds), -np.logaddexp(0.0, -odds)


@dataclass(frozen=True, eq=False)
class _Patterns:
    """The tokens of a chunk by who agrees with whom.

    Parameters
    ----------
    blocks
        ``(patterns, m + 1)`` as of `vote_blocks`.
    count
        ``(patterns,)`` tokens of each.
    distance
        ``(2, patterns, m)`` sums of the log distance of the head of each number, and of its square.
    """

    blocks: Heads
    count: FloatArray
    distance: FloatArray


@dataclass(frozen=True)
class TreeLaw(Law):
    """Trees of which every head is a vote.

    Parameters
    ----------
    plausible_heads
        Number K of plausible wrong heads, or None to learn it from the votes.
    n_relations
        How many relations edges may have; 0 if they have none.
    """

    plausible_heads: float | None = None
    n_relations: int = 0
    rows: ClassVar[int] = 1 << 12
    has_em: ClassVar[bool] = True

    @property
    def side_by_side(self) -> bool:
        return True

    @property
    def heads(self) -> float:
        """Plausible wrong heads before any vote; more than one."""
        return PLAUSIBLE_HEADS if self.plausible_heads is None else max(self.plausible_heads, 1.05)

    @property
    def _chance(self) -> float:
        """How often two unrelated votes agree: one of K + 1 heads with equal chances is hit by luck."""
        return 1.0 / (self.heads + 1.0)

    @property
    def chance_cost(self) -> float:
        """Unrelated trees have hardly a head in common."""
        return 1.0

    # --- level 0 ------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        """Return agreement by sentence; those of one token, which have one tree, are left out."""
        from consilience.label_types.trees.kernels import sentence_agreement

        table = TokenTable.of(chunk.labels, chunk.observed)
        known = table.known(chunk.known, chunk.is_known)
        sums = sentence_agreement(np.column_stack([table.heads, known]), table.starts)
        m = chunk.observed.shape[1]
        parts = {**count_statistics(chunk), "sentence_sums": sums[:, :m, :m]}
        parts["shared"] = np.rint(sums[1, :m, :m]).astype(np.int64)
        if (known >= 0).any():
            parts["gold_sentence_sums"] = sums[:, m, :m]
        return Statistics(parts)

    def pair_table(self, statistics: Statistics) -> PairTable:
        """Return shares of equal heads, corrected for chance: of K + 1 heads with equal chances one is hit by luck."""
        chance = self._chance

        def corrected(mean: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
            return (mean - chance) / (1.0 - chance), error / (1.0 - chance)

        count, total, square = _as_items(statistics["sentence_sums"])
        sums = {
            "agreement": total,
            "agreement_square": square,
            "agreement_count": count,
            "agreement_votes": np.diag(count).copy(),
        }
        if "gold_sentence_sums" in statistics:
            names = ("gold_agreement_count", "gold_agreement", "gold_agreement_square")
            sums |= dict(zip(names, _as_items(statistics["gold_sentence_sums"]), strict=True))
        table = agreement_table(sums, corrected)
        cost = 1.0 - total / np.maximum(count, 1e-12)
        return replace(table, value=np.where(np.eye(len(count), dtype=bool), 1.0, table.value), cost=cost)

    def forward(self, statistics: Statistics) -> Forward:
        """Return the expected agreement of two sources that err independently on tokens of the same difficulty."""
        return self._forward

    @cached_property
    def _forward(self) -> Forward:
        grid, chance = np.linspace(-LIMIT, LIMIT, 161), self._chance
        log_odds = _log_odds(_error(np.tanh(grid), chance), DIFFICULTY)
        wrong = 1.0 / (1.0 + np.exp(-(log_odds[:, None] + DIFFICULTY * NODES)))
        share = np.exp(LOG_NODE_PROBABILITY)
        agree = ((1.0 - wrong) * share) @ (1.0 - wrong).T + (wrong * share) @ wrong.T / self.heads
        return Forward.of_table(grid, (agree - chance) / (1.0 - chance))

    # --- level 2 ------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> TreeParameters:
        m = len(hypothesis.u)
        if hypothesis.is_plain:
            return self.from_weights(np.ones(m), request)
        chance, quality, one = self._chance, hypothesis.quality, np.ones(1)
        error = _error(quality, chance)
        step = np.where(np.isfinite(hypothesis.spread), hypothesis.spread, 0.0) * (1.0 - quality**2)
        slope = (1.0 - chance) / (error * (1.0 - error))
        # Errors that all sources share come from hard tokens, which this law knows itself.
        correlation = np.where(hypothesis.in_group, hypothesis.correlation, 0.0)
        return TreeParameters(
            probability=one,
            log_odds=_log_odds(error, DIFFICULTY)[None],
            spread=(step * slope)[None],
            plausible=self.heads * one,
            difficulty=DIFFICULTY * one,
            nearness=0.0 * one,
            middle=0.0 * one,
            correlation=correlation[None],
        )

    def prepare(self, chunk: Chunk) -> _Patterns:
        from consilience.label_types.trees.kernels import block_distances

        table = TokenTable.of(chunk.labels, chunk.observed)
        counted = np.repeat(table.lengths > 1, table.lengths)
        votes, known = table.heads[counted], table.known(chunk.known, chunk.is_known)[counted]
        blocks, position, count = _patterns(votes, known)
        return _Patterns(blocks, count, block_distances(table.log_distance[counted], position, blocks))

    def e_step(self, parameters: TreeParameters, prepared: _Patterns) -> Statistics:
        from consilience.label_types.trees.kernels import expected_heads

        shares = discount_correlated(prepared.blocks[:, :-1] >= 0, parameters.correlation[0])
        alphas = (parameters.plausible[0] - 1.0) * np.exp(STEP * np.array([-1.0, 0.0, 1.0]))
        # Votes of one group coincide for another reason than that wrong heads attract.
        once = discount_correlated(prepared.blocks[:, :-1] >= 0, parameters.correlation[0] > 0.0)
        right, wrong, mass, coincidence, belief = expected_heads(
            prepared.blocks, prepared.count, shares, once, *parameters.log_rates(0), LOG_NODE_PROBABILITY, alphas
        )
        named = _named(prepared.blocks)
        contested = named & (prepared.blocks[:, :-1].max(axis=1, initial=-1) > 0)[:, None]
        correct, other = np.where(contested, belief[:, :-1], 0.0), np.where(contested, 1.0 - belief[:, :-1], 0.0)
        first, second = prepared.distance
        each = [
            [(share * prepared.count[:, None]).sum(), (share * first).sum(), (share * second).sum()]
            for share in (correct, other)
        ]
        return Statistics(
            {"right": right, "wrong": wrong, "mass": mass, "coincidence": coincidence, "distance": np.array(each)}
        )

    def m_step(self, parameters: TreeParameters, statistics: Statistics, start: TreeParameters) -> TreeParameters:
        right, wrong, mass = statistics["right"], statistics["wrong"], statistics["mass"]
        log_odds, difficulty = parameters.log_odds[0], float(parameters.difficulty[0])
        pull = 1.0 / (start.spread[0] ** 2 + SOURCE_MISFIT**2)
        level = (pull * (log_odds - start.log_odds[0])).sum() / (pull.sum() + LEVEL_MISFIT**-2)
        votes, at = right + wrong, NODES[:, None]
        for _ in range(3):
            rate = 1.0 / (1.0 + np.exp(-(log_odds + difficulty * at)))
            residual, bend = wrong - votes * rate, votes * rate * (1.0 - rate)
            slope = (residual * at).sum() * difficulty - np.log(difficulty / DIFFICULTY) / LOG_SPREAD**2
            curve = (bend * at**2).sum() * difficulty**2 + LOG_SPREAD**-2
            gain = residual.sum(axis=0) - pull * (log_odds - start.log_odds[0] - level)
            log_odds = log_odds + np.clip(gain / np.maximum(bend.sum(axis=0) + pull, 1e-9), -1.0, 1.0)
            difficulty = difficulty * float(np.exp(np.clip(slope / curve, -0.5, 0.5)))
        if mass.sum() > 0:
            # The difficulties of these tokens need not have mean 0 and variance 1: what they have instead goes into
            # the parameters, which takes EM to the same place in fewer rounds.
            mean = float(mass @ NODES / mass.sum())
            log_odds = log_odds + difficulty * mean
            difficulty *= float(np.sqrt(mass @ (NODES - mean) ** 2 / mass.sum()))
        nearness, middle = _nearness(statistics["distance"])
        return replace(
            parameters,
            log_odds=np.clip(log_odds, *_log_odds(np.array([LEAST_ERROR, MOST_ERROR]), difficulty))[None],
            difficulty=np.array([max(difficulty, 0.05)]),
            plausible=self._plausible(parameters.plausible[0], statistics["coincidence"]),
            nearness=np.array([nearness]),
            middle=np.array([middle]),
        )

    def _plausible(self, now: float, log_probability: FloatArray) -> FloatArray:
        """Return the number of plausible heads one Newton step of log(K - 1) on."""
        if self.plausible_heads is not None:
            return np.array([now])
        low, middle, high = log_probability
        away = np.log((now - 1.0) / (PLAUSIBLE_HEADS - 1.0))
        slope = (high - low) / (2.0 * STEP) - away / LOG_SPREAD**2
        curve = max((2.0 * middle - low - high) / STEP**2, 0.0) + LOG_SPREAD**-2
        return np.array([1.0 + (now - 1.0) * np.exp(np.clip(slope / curve, -0.5, 0.5))])

    def merge(self, mixture: Mixture) -> Mixture:
        """Return one set of parameters with all hypotheses, so that heads are averaged and trees decoded once."""
        each = [(share, one) for share, one in mixture if isinstance(one, TreeParameters)]
        first = each[0][1]
        if len(each) < 2 or first.weighted:
            return mixture
        names = ("log_odds", "spread", "plausible", "difficulty", "nearness", "middle", "correlation")
        stacked: dict[str, Any] = {name: np.concatenate([getattr(one, name) for _, one in each]) for name in names}
        probability = np.concatenate([share * one.probability for share, one in each])
        return ((1.0, replace(first, probability=probability, **stacked)),)

    # --- level 3 ------------------------------------------------------------------------------------

    def posterior(self, parameters: TreeParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return the consensus trees.

        ``details["head_probability"]`` holds the probability of each head, one array per sentence. Confidence is its
        mean, the expected share of right heads.
        """
        table = TokenTable.of(labels, observed)
        weights = self._vote_weights(parameters, observed)
        chance, unseen = self._head_chances(parameters, table, weights)
        score = chance
        if parameters.weighted and decode != "bayes":
            score = _support(table, weights)
        trees, heads = self.consensus(table, score, weights)
        return _believed(table, trees, _chosen_chance(table, heads, chance, unseen))

    def average(self, posteriors: Sequence[tuple[float, Posterior]], decode: str) -> Posterior:
        """Return the trees of the hypotheses, put together edge by edge with the probabilities of their heads."""
        cells = np.stack([one.labels for _, one in posteriors], axis=1)
        table = TokenTable.of(cells, np.vectorize(len, otypes=[np.int64])(cells) > 0)
        each = np.stack(
            [share * np.concatenate(list(one.details["head_probability"])) for share, one in posteriors], axis=1
        )
        same = table.heads[:, :, None] == table.heads[:, None, :]
        score = (same * each[:, None, :]).sum(axis=2)
        trees, heads = self.consensus(table, score, np.tile([share for share, _ in posteriors], (len(cells), 1)))
        return _believed(table, trees, _chosen_chance(table, heads, score, np.zeros(len(heads))))

    def consensus(self, table: TokenTable, score: FloatArray, weights: FloatArray) -> tuple[Batch, Heads]:
        """Return the tree of each sentence ``(n,)``, and all heads ``(t,)``.

        Parameters
        ----------
        score
            ``(t, m)`` of the head that each source voted for.
        weights
            ``(n, m)`` of the votes on relations.
        """
        from consilience.label_types.trees.kernels import best_trees, relation_votes

        heads = best_trees(table.heads, score, table.starts)
        if self.n_relations == 0:
            return cut(heads.astype(np.int64), table.starts), heads
        relations = table.relations if table.relations is not None else np.zeros_like(table.heads)
        chosen = relation_votes(table.heads, relations, weights, table.starts, heads, self.n_relations)
        return cut(np.stack([heads, chosen], axis=1).astype(np.int64), table.starts), heads

    def weighted_trees(self, labels: Batch, weights: FloatArray) -> Batch:
        """Return the trees whose edges have the most weighted votes, ``(n, m)`` weights, none below zero."""
        table = TokenTable.of(labels, weights > 0)
        return self.consensus(table, _support(table, weights), weights)[0]

    def _vote_weights(self, parameters: TreeParameters, observed: BoolArray) -> FloatArray:
        """Return ``(n, m)`` by how much votes count that are only weighted."""
        total = np.zeros(observed.shape)
        for index, share in enumerate(parameters.probability):
            weight = np.log(parameters.plausible[index]) - parameters.log_odds[index]
            shared = discount_correlated(observed, parameters.correlation[index])
            total += share * np.maximum(weight, LEAST_WEIGHT) * shared
        return total

    @staticmethod
    def _head_chances(
        parameters: TreeParameters, table: TokenTable, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return ``(t, m)`` the probability of the head of each vote, and ``(t,)`` of some head that nobody named."""
        from consilience.label_types.trees.kernels import block_beliefs

        blocks, position, _ = _patterns(table.heads, np.full(len(table.heads), -1, dtype=np.int16))
        voted = blocks[:, :-1] >= 0
        if parameters.weighted:
            return _weighted_chances(_support(table, weights), table, float(parameters.plausible[0]))
        chance, unseen = np.zeros(table.heads.shape), np.zeros(len(table.heads))
        number = np.maximum(blocks[:, :-1], 0).astype(np.int64)
        once = _named_once(blocks)[position]
        for index, share in enumerate(parameters.probability):
            shares = discount_correlated(voted, parameters.correlation[index])
            rates, alpha = parameters.log_rates(index), float(parameters.plausible[index]) - 1.0
            belief = block_beliefs(blocks, shares, *rates, LOG_NODE_PROBABILITY, alpha)
            near = np.exp(-parameters.nearness[index] * (table.log_distance - parameters.middle[index]))
            own = np.where(voted, np.take_along_axis(belief, number, 1), 0.0)[position] * near
            norm = share / np.maximum((own * once).sum(axis=1) + belief[position, -1], 1e-300)
            chance += own * norm[:, None]
            unseen += belief[position, -1] * norm
        return chance, unseen

    # --- in shared words --------------------------------------------------------------------------------

    def summary(self, parameters: TreeParameters) -> Summary:
        share = parameters.probability
        cost = share @ parameters.error
        weight = self.weight_from_cost(cost)
        unknown = np.full(len(cost), np.inf)
        return Summary(cost, weight, unknown, unknown, np.einsum("h,hab->ab", share, parameters.correlation))

    def quality_errors(self, parameters: Any, quality: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
        cost = self.summary(parameters).expected_cost
        cost_error = error * (1.0 - self._chance)
        return cost_error, cost_error / np.maximum(cost * (1.0 - cost), 1e-6)

    def from_weights(self, weight: FloatArray, request: Request) -> TreeParameters:
        m = len(weight)
        return TreeParameters(
            probability=np.ones(1),
            log_odds=(np.log(self.heads) - np.asarray(weight, dtype=np.float64))[None],
            spread=np.zeros((1, m)),
            plausible=np.full(1, self.heads),
            difficulty=np.zeros(1),
            nearness=np.zeros(1),
            middle=np.zeros(1),
            correlation=np.zeros((1, m, m)),
            weighted=True,
        )

    def restore(self, fields: Mapping[str, Any]) -> TreeParameters:
        return TreeParameters(**{**fields, "weighted": bool(fields["weighted"])})

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return the share of wrong heads, ``K / (K + exp(weight))``."""
        odds = np.exp(np.clip(np.asarray(weight, dtype=np.float64), -500.0, 500.0))
        cost: FloatArray = self.heads / (self.heads + odds)
        return cost

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return ``log((1 - cost) / cost) + log K``."""
        share = np.clip(np.asarray(cost, dtype=np.float64), 1e-9, 1.0 - 1e-9)
        weight: FloatArray = np.log1p(-share) - np.log(share) + np.log(self.heads)
        return weight


# --- error rates ----------------------------------------------------------------------------------------


def _error(quality: FloatArray, chance: float) -> FloatArray:
    """Return shares of wrong heads; those of sources below chance approach one, with the same slope at chance."""
    low = chance * np.exp(np.minimum(quality, 0.0) * (1.0 - chance) / chance)
    right = np.where(quality > 0.0, chance + (1.0 - chance) * quality, low)
    return np.clip(1.0 - right, LEAST_ERROR, MOST_ERROR)


def _mean_error(log_odds: FloatArray, difficulty: FloatArray) -> FloatArray:
    odds = log_odds[..., None] + difficulty[..., None, None] * NODES
    mean: FloatArray = (1.0 / (1.0 + np.exp(-odds))) @ np.exp(LOG_NODE_PROBABILITY)
    return mean


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


def _as_items(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return count, sum and sum of squares of as many equal items as the sentences are worth, weighted by tokens."""
    same, tokens, same_square, product, token_square = sums
    count = tokens**2 / np.maximum(token_square, 1.0)
    mean = same / np.maximum(tokens, 1.0)
    scatter = same_square - 2.0 * mean * product + mean**2 * token_square
    # A few sentences may agree by luck: tokens scatter at least as if they were independent.
    smooth = (same + 1.0) / (tokens + 2.0)
    scatter = np.maximum(scatter, tokens * smooth * (1.0 - smooth))
    return count, count * mean, count * (mean**2 + scatter / np.maximum(token_square, 1.0))


def _patterns(votes: Heads, known: Heads) -> tuple[Heads, IntArray, FloatArray]:
    """Return the different patterns of agreement, which one each token has, and how many tokens have each."""
    from consilience.label_types.trees.kernels import vote_blocks

    blocks = vote_blocks(votes, known)
    rows = np.ascontiguousarray(blocks).view(np.dtype((np.void, blocks.dtype.itemsize * blocks.shape[1]))).reshape(-1)
    _, first, position, count = np.unique(rows, return_index=True, return_inverse=True, return_counts=True)
    return blocks[first], position.reshape(-1), count.astype(np.float64)


def _named(blocks: Heads) -> BoolArray:
    """Return ``(patterns, m)`` whether there is a head of this number."""
    named: BoolArray = np.arange(blocks.shape[1] - 1) <= blocks[:, :-1].max(axis=1, initial=-1)[:, None]
    return named


def _named_once(blocks: Heads) -> FloatArray:
    """Return ``(patterns, m)`` one over the number of votes for the same head, so that heads count once; else 0."""
    votes = blocks[:, :-1]
    same = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
    return np.where(votes >= 0, 1.0 / same, 0.0)


# --- tokens -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TokenTable:
    """Votes on the tokens of n sentences, one after the other.

    Parameters
    ----------
    heads
        ``(t, m)``, -1 where a source abstains.
    relations
        ``(t, m)`` codes, or None where votes have none.
    starts
        ``(n + 1,)`` first token of each sentence; nobody votes on an empty one.
    """

    heads: Heads
    relations: Heads | None
    starts: IntArray

    @classmethod
    def of(cls, labels: Batch, observed: BoolArray) -> TokenTable:
        """Return the tokens of ``(n, m)`` trees: heads ``(length,)``, or heads and relations ``(length, 2)``."""
        from consilience.label_types.trees.kernels import spread_cells

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
        flat = np.concatenate(cells)
        if flat.ndim == 1:
            return cls(spread_cells(flat, rows, columns, starts, m), None, starts)
        heads, relations = np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1])
        return cls(
            spread_cells(heads, rows, columns, starts, m), spread_cells(relations, rows, columns, starts, m), starts
        )

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

    def known(self, truth: Batch | None, is_known: BoolArray | None) -> Heads:
        """Return ``(t,)`` the true heads, -1 where they are not known or nobody votes."""
        heads = np.full(len(self.heads), -1, dtype=np.int16)
        if truth is None or is_known is None:
            return heads
        for row in np.flatnonzero(is_known & (self.lengths > 0)):
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
    ends = starts.tolist()
    return as_object_array(flat[first:last] for first, last in pairwise(ends))


def _support(table: TokenTable, weights: FloatArray) -> FloatArray:
    from consilience.label_types.trees.kernels import vote_support

    return vote_support(table.heads, np.ascontiguousarray(weights), table.starts)


def _weighted_chances(support: FloatArray, table: TokenTable, plausible: float) -> tuple[FloatArray, FloatArray]:
    """Return probabilities proportional to exp(weighted votes), for the plain vote and given weights."""
    voted = table.heads >= 0
    same = table.heads[:, :, None] == table.heads[:, None, :]
    top = support.max(axis=1, initial=0.0)
    odds = np.where(voted, np.exp(support - top[:, None]), 0.0)
    distinct = np.where(voted, 1.0 / np.maximum((same & voted[:, None, :]).sum(axis=2), 1), 0.0)
    length = np.repeat(table.lengths, table.lengths)
    unseen = np.maximum(np.minimum(plausible + 1.0, length) - distinct.sum(axis=1), 0.0) * np.exp(-top)
    norm = np.maximum((odds * distinct).sum(axis=1) + unseen, 1e-300)
    return odds / norm[:, None], unseen / norm


def _chosen_chance(table: TokenTable, heads: Heads, chance: FloatArray, unseen: FloatArray) -> FloatArray:
    """Return ``(t,)`` the probability of each chosen head; heads that nobody named share theirs."""
    named = table.heads == heads[:, None]
    length = np.repeat(table.lengths, table.lengths)
    probability = np.where(
        named.any(axis=1), np.where(named, chance, 0.0).max(axis=1, initial=0.0), unseen / np.maximum(length - 1, 1)
    )
    return np.where(length == 1, 1.0, np.clip(probability, 0.0, 1.0))


def _believed(table: TokenTable, trees: Batch, probability: FloatArray) -> Posterior:
    n = len(table.lengths)
    total = np.bincount(np.repeat(np.arange(n), table.lengths), probability, minlength=n)
    confidence = np.clip(total / np.maximum(table.lengths, 1), 0.0, 1.0)
    return Posterior(trees, confidence, None, {"head_probability": cut(probability, table.starts)})
