"""Dependency trees: a source errs on every token with the same probability.

For trees over the same tokens the squared distance of adjacency matrices is twice the number of differing heads, so
the paper's weighted mean *is* the weighted vote on edges followed by a maximum arborescence. Weights are log-odds
plus the log of the number of wrong heads that are plausible: a source that errs at random over all n - 1 wrong heads
would deserve ``log(n - 1)``, but parsers share their errors, and few heads attract most of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
from consilience.families.edge_tokens import TokenTable, cut
from consilience.label_types.vote_correlation import discount_correlated

__all__ = ["EdgeFamily", "EdgeParameters"]

#: Error rates are kept within these.
LEAST_ERROR, MOST_ERROR = 0.005, 0.98
#: A source worse than picking among the plausible heads has this weight: it decides where nobody else speaks.
LEAST_WEIGHT = 0.01


@dataclass(frozen=True)
class EdgeParameters(Parameters):
    """Weights of sources that vote on the heads of tokens.

    Parameters
    ----------
    weight, standard_error
        Each ``(m,)``; negative where a source is worse than picking among the plausible heads.
    correlation
        ``(m, m)``; zero outside the dependencies.
    """

    weight: FloatArray
    standard_error: FloatArray
    correlation: FloatArray


@dataclass(frozen=True)
class EdgeFamily(Family):
    """Trees of which every head is wrong with the same probability.

    Parameters
    ----------
    plausible_heads
        Number K of plausible wrong heads: ``weight = log((1 - error) / error) + log K``.
    n_relations
        How many relations edges may have; 0 if they have none.
    """

    plausible_heads: float = 2.0
    n_relations: int = 0
    rows: ClassVar[int] = 1 << 12
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "isotropic", "triplets", "moments", "em", "labelled")

    @property
    def side_by_side(self) -> bool:
        return True

    def statistics(self, chunk: Chunk) -> Sums:
        """Return counts by token: sentences of one token, which have one tree, are left out."""
        from consilience.kernels.edge_votes import count_pairs

        table = TokenTable.of(chunk.labels, chunk.observed)
        both, differ = count_pairs(table.heads, table.starts, chunk.groups, GROUPS)
        parts = {**count_sums(chunk), "pair_tokens": both, "pair_cost": differ}
        if chunk.known is not None and chunk.is_known is not None and len(chunk.gold_rows):
            parts |= self._gold(table, chunk.known, chunk.is_known)
        return Sums(parts)

    @staticmethod
    def _gold(table: TokenTable, known: Batch, is_known: BoolArray) -> dict[str, Any]:
        """Return tokens with known heads and wrong votes on them, and squares by sentence for standard errors."""
        truth = table.known(known, is_known)
        told = ((truth >= 0) & np.repeat(table.lengths > 1, table.lengths))[:, None] & (table.heads >= 0)
        wrong = told & (table.heads != truth[:, None])
        sentence = np.repeat(np.arange(len(table.lengths)), table.lengths)
        m = table.heads.shape[1]
        tokens_by, wrong_by = (
            np.stack([np.bincount(sentence, values[:, a], minlength=len(table.lengths)) for a in range(m)], axis=1)
            for values in (told, wrong)
        )
        return {
            "gold_sentences": (tokens_by > 0).sum(axis=0).astype(np.int64),
            "gold_tokens": told.sum(axis=0).astype(np.int64),
            "gold_wrong": wrong.sum(axis=0).astype(np.int64),
            "gold_square_wrong": (wrong_by**2).sum(axis=0),
            "gold_square_tokens": (tokens_by**2).sum(axis=0),
            "gold_product": (wrong_by * tokens_by).sum(axis=0),
        }

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        from consilience.families.edge_estimation import estimate_edges

        self.check_method(request.method, passes, needs_votes=("em",))
        return estimate_edges(self, sums, request, passes)

    def round(self, parameters: EdgeParameters, chunk: Chunk) -> Sums:
        """Return the expected numbers of right heads, and the log likelihood, of sentences whose tree is not known."""
        from consilience.kernels.edge_votes import expected_rights

        table = TokenTable.of(chunk.labels, chunk.observed)
        skipped = np.zeros(len(chunk), dtype=bool) if chunk.is_known is None else chunk.is_known
        right = 1.0 - np.clip(self.expected_cost(parameters.weight), LEAST_ERROR, MOST_ERROR)
        shares = discount_correlated(chunk.observed, parameters.correlation)
        rights, tokens, likelihood = expected_rights(
            table.heads, table.starts, chunk.groups, skipped, right, shares, GROUPS
        )
        return Sums({"rights": rights, "tokens": tokens, "log_likelihood": np.array(likelihood)})

    def posterior(self, parameters: EdgeParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return the consensus trees.

        ``details["head_probability"]`` holds the probability of each head, one array per sentence: that of the
        weighted vote among the heads voted for and, up to the number of plausible ones, those that nobody voted for.
        Confidence is its mean, the expected share of right heads.
        """
        shares = discount_correlated(observed, parameters.correlation)
        weights = np.maximum(parameters.weight, LEAST_WEIGHT) * shares
        table = TokenTable.of(labels, observed)
        trees, probability = self.consensus(table, weights, expected=decode == "bayes")
        sentence = np.repeat(np.arange(len(observed)), table.lengths)
        total = np.bincount(sentence, probability, minlength=len(observed))
        confidence = np.clip(total / np.maximum(table.lengths, 1), 0.0, 1.0)
        return Posterior(trees, confidence, None, {"head_probability": cut(probability, table.starts)})

    def consensus(self, table: TokenTable, weights: FloatArray, *, expected: bool = False) -> tuple[Batch, FloatArray]:
        """Return the tree of each sentence ``(n,)``, and the probability of each head ``(t,)``.

        Parameters
        ----------
        weights
            ``(n, m)``.
        expected
            Whether to maximise the expected number of right heads instead of the weighted vote.
        """
        from consilience.kernels.arborescence import consensus_trees
        from consilience.kernels.edge_votes import relation_votes

        heads, probability = consensus_trees(
            table.heads, np.ascontiguousarray(weights), table.starts, self.plausible_heads, expected
        )
        if self.n_relations == 0:
            return cut(heads.astype(np.int64), table.starts), probability
        relations = table.relations if table.relations is not None else np.zeros_like(table.heads)
        chosen = relation_votes(table.heads, relations, weights, table.starts, heads, self.n_relations)
        return cut(np.stack([heads, chosen], axis=1).astype(np.int64), table.starts), probability

    def summary(self, parameters: EdgeParameters) -> Summary:
        cost = self.expected_cost(parameters.weight)
        finite = np.isfinite(parameters.standard_error)
        error = np.where(finite, np.where(finite, parameters.standard_error, 0.0) * cost * (1.0 - cost), np.inf)
        return Summary(cost, parameters.weight, parameters.standard_error, error, parameters.correlation)

    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        m = len(weight)
        return EdgeParameters(np.asarray(weight, dtype=np.float64), np.zeros(m), np.zeros((m, m)))

    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        return EdgeParameters(**fields)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return the share of wrong heads, ``K / (K + exp(weight))``."""
        odds = np.exp(np.clip(np.asarray(weight, dtype=np.float64), -500.0, 500.0))
        cost: FloatArray = self.plausible_heads / (self.plausible_heads + odds)
        return cost

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return ``log((1 - cost) / cost) + log K``."""
        share = np.clip(np.asarray(cost, dtype=np.float64), 1e-9, 1.0 - 1e-9)
        weight: FloatArray = np.log1p(-share) - np.log(share) + np.log(self.plausible_heads)
        return weight

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the share of differing heads of two sources that never make the same error."""
        one, two = self.expected_cost(left), self.expected_cost(right)
        return one + two - one * two
