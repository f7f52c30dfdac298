"""Maximum likelihood for sequences: confusions as for classes, and first and next tags where there is a chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Chunk, Sums
from consilience.families.confusion.likelihood import LikelihoodModel, known_codes
from consilience.families.confusion.likelihood import expected_counts as counts_of_classes
from consilience.families.tags.parameters import SequenceParameters
from consilience.families.tags.tokens import Tokens, tokens_of
from consilience.label_types.vote_correlation import discount_correlated

__all__ = ["SequenceFit", "chain_law", "expected_counts", "fit_sequences", "marginals", "sequence_scores"]

MAX_ROUNDS = 200
#: Every possible first tag and step counts as seen this often before any vote.
PSEUDO_STEPS = 0.5


@dataclass(frozen=True)
class SequenceFit:
    """Parameters after some EM rounds, and whether they rest."""

    parameters: SequenceParameters
    converged: bool

    @property
    def standard_error(self) -> FloatArray:
        """Of the weights."""
        accuracy = np.clip(self.parameters.accuracy, 1e-3, 1 - 1e-3)
        error: FloatArray = self.parameters.cost_standard_error / (accuracy * (1 - accuracy))
        return error


def marginals(parameters: SequenceParameters, tokens: Tokens) -> tuple[FloatArray, FloatArray]:
    """Return ``(positions, k)`` probabilities, and the log-likelihoods of the votes of each position alone."""
    if not parameters.chained:
        probability = parameters.of_positions().probabilities(tokens.chunk.labels, tokens.chunk.observed)
        return probability, np.log(np.maximum(probability, 1e-300))
    from consilience.kernels.chains import chain_marginals

    scores = _scores(parameters, tokens)
    return chain_marginals(scores, tokens.starts, parameters.initial, parameters.transition), scores


def _scores(parameters: SequenceParameters, tokens: Tokens) -> FloatArray:
    """Return the log-likelihood of the votes of every position under every tag."""
    chunk = tokens.chunk
    if parameters.shares:  # the plain vote: a share counts like a likelihood
        shares = parameters.of_positions().probabilities(chunk.labels, chunk.observed)
        told = chunk.observed.any(axis=1, keepdims=True)
        return np.log(np.where(told, np.maximum(shares, 1e-6), 1.0))
    table = np.log(np.maximum(parameters.table, 1e-6))
    weight = discount_correlated(chunk.observed, parameters.correlation)
    scores = np.zeros((len(chunk), len(parameters.prior)))
    for source in range(chunk.observed.shape[1]):
        scores += weight[:, source, None] * table[source][chunk.labels[:, source]]
    return scores


def expected_counts(parameters: SequenceParameters, chunk: Chunk) -> Sums:
    """Run the E-step over the sequences of a chunk."""
    tokens = tokens_of(chunk)
    if not parameters.chained:
        return counts_of_classes(parameters.of_positions(), tokens.chunk)
    from consilience.kernels.chains import chain_round

    k = len(parameters.prior)
    scores = _clamped(_scores(parameters, tokens), known_codes(tokens.chunk))
    posterior = np.zeros_like(scores)
    first, steps = np.zeros(k), np.zeros((k, k))
    likelihood = chain_round(scores, tokens.starts, parameters.initial, parameters.transition, posterior, first, steps)
    votes = tokens.chunk
    counts = np.zeros((votes.observed.shape[1], k, k))
    for source in range(len(counts)):
        seen = votes.observed[:, source]
        for code in range(k):
            counts[source, code] = posterior[seen & (votes.labels[:, source] == code)].sum(axis=0)
    return Sums(
        {
            "counts": counts,
            "classes": posterior.sum(axis=0),
            "first": first,
            "steps": steps,
            "log_likelihood": np.array(likelihood),
        }
    )


def _clamped(scores: FloatArray, known: np.ndarray[tuple[int], np.dtype[np.int64]]) -> FloatArray:
    """Leave only the known tag possible where there is one."""
    rows = np.flatnonzero(known >= 0)
    if len(rows):
        kept = scores[rows, known[rows]]
        scores[rows] = -1e9
        scores[rows, known[rows]] = np.maximum(kept, -1e6)
    return scores


def chain_law(
    first: FloatArray, steps: FloatArray, masks: tuple[BoolArray, BoolArray]
) -> tuple[FloatArray, FloatArray]:
    """Return the laws of the first tag and of the next one from expected numbers; what is impossible stays so."""
    start = np.where(masks[0], first + PSEUDO_STEPS, 0.0)
    following = np.where(masks[1], steps + PSEUDO_STEPS, 0.0)
    return start / start.sum(), following / following.sum(axis=1, keepdims=True)


def fit_sequences(
    model: LikelihoodModel,
    masks: tuple[BoolArray, BoolArray] | None,
    start: SequenceParameters,
    run: Callable[[Callable[[Chunk], Sums]], Sums],
    *,
    chain_only: bool = False,
) -> SequenceFit:
    """Alternate E- and M-steps until the parameters rest.

    `chain_only` keeps the confusions, and learns the laws of the chain alone.
    """
    tolerance = max(1e-5, 0.02 / np.sqrt(max(model.n_items, 1)))
    parameters = start
    for _ in range(MAX_ROUNDS):
        current = parameters
        sums = run(lambda chunk, at=current: expected_counts(at, chunk))  # type: ignore[misc]
        laws = (None, None) if masks is None else chain_law(sums["first"], sums["steps"], masks)
        if chain_only and laws[0] is not None:
            parameters = replace(current, initial=laws[0], transition=laws[1])
        else:
            parameters = SequenceParameters.of(model.maximise(sums["counts"], sums["classes"]), *laws)
        step = np.abs(np.log(np.maximum(parameters.table, 1e-6)) - np.log(np.maximum(current.table, 1e-6)))
        change = max(
            0.1 * float(step.max(initial=0.0)),
            float(np.abs(parameters.prior - current.prior).max()),
            float(np.abs(parameters.transition - current.transition).max(initial=0.0)),
        )
        if change < tolerance:
            return SequenceFit(parameters, True)
    return SequenceFit(parameters, False)


def sequence_scores(parameters: SequenceParameters, chunk: Chunk) -> Sums:
    """Return the outer products of the scores of the sources' accuracies: position by position, and item by item."""
    tokens = tokens_of(chunk)
    votes = tokens.chunk
    posterior = marginals(parameters, tokens)[0]
    known = known_codes(votes)
    rows = np.flatnonzero(known >= 0)
    posterior[rows] = np.eye(posterior.shape[1])[known[rows]]
    right = np.take_along_axis(posterior, votes.labels.astype(np.int64), axis=1)
    accuracy = np.clip(parameters.accuracy, 1e-3, 1 - 1e-3)
    score = np.where(votes.observed, (right - accuracy) / (accuracy * (1 - accuracy)), 0.0)
    by_item = np.zeros((len(tokens.starts) - 1, score.shape[1]))
    np.add.at(by_item, tokens.sequence, score)
    return Sums({"single": score.T @ score, "clustered": by_item.T @ by_item})
