"""Maximum likelihood for tags: one binary Dawid-Skene model per tag, rates pooled over the tags of a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Chunk, Sums
from consilience.families.confusion.likelihood import expected_counts as counts_of_classes
from consilience.families.confusion.likelihood import known_codes
from consilience.families.tags.parameters import TagParameters, tag_chunk
from consilience.families.tags.pooling import pooled_rates

__all__ = ["TagFit", "clustered_errors", "expected_counts", "fit_tags", "rates_from_counts", "tag_scores"]

MAX_ROUNDS = 300
#: Rounds after which the strength of the pooling is kept, so that the others can come to rest.
LEARN_STRENGTH = 20


@dataclass(frozen=True)
class TagFit:
    """Parameters after some EM rounds, and whether they rest."""

    parameters: TagParameters
    converged: bool

    @property
    def standard_error(self) -> FloatArray:
        """Of the weights."""
        cost = np.clip(self.parameters.cost, 1e-3, 1 - 1e-3)
        error: FloatArray = self.parameters.cost_standard_error / (cost * (1 - cost))
        return error


def expected_counts(parameters: TagParameters, chunk: Chunk) -> Sums:
    """Run the E-step: votes ``(d, m, 2, 2)`` as ``[tag, source, vote, truth]`` and items ``(d, 2)`` by truth."""
    found = [counts_of_classes(parameters.of_tag(tag), tag_chunk(chunk, tag)) for tag in range(parameters.n_tags)]
    return Sums(
        {
            "counts": np.stack([sums["counts"] for sums in found]),
            "classes": np.stack([sums["classes"] for sums in found]),
            "log_likelihood": np.array(sum(float(sums["log_likelihood"]) for sums in found)),
        }
    )


def rates_from_counts(
    counts: FloatArray, classes: FloatArray, like: TagParameters, *, keep_strength: bool = False
) -> TagParameters:
    """Run the M-step: pooled sensitivities and specificities, and how often each tag is present."""
    right_one, right_zero = counts[:, :, 1, 1].T, counts[:, :, 0, 0].T
    seen_one, seen_zero = counts[:, :, :, 1].sum(axis=2).T, counts[:, :, :, 0].sum(axis=2).T
    strength = like.strength if keep_strength else (None, None)
    sensitivity = pooled_rates(right_one, seen_one, strength[0])
    specificity = pooled_rates(right_zero, seen_zero, strength[1])
    total = (seen_one + seen_zero).sum(axis=1)
    right = (right_one + right_zero).sum(axis=1)
    return replace(
        like,
        sensitivity=sensitivity.rate,
        specificity=specificity.rate,
        prior=(classes[:, 1] + 1.0) / (classes.sum(axis=1) + 2.0),
        strength=np.array([sensitivity.strength, specificity.strength]),
        cost=np.where(total > 0, 1.0 - right / np.maximum(total, 1e-12), like.cost),
    )


def fit_tags(start: TagParameters, run: Callable[[Callable[[Chunk], Sums]], Sums], n_items: int) -> TagFit:
    """Alternate E- and M-steps until the parameters rest."""
    # Below a fiftieth of the sampling error, further digits of the optimum carry no information.
    tolerance = max(1e-5, 0.02 / np.sqrt(max(n_items, 1)))
    parameters = start
    for count in range(MAX_ROUNDS):
        current = parameters
        sums = run(lambda chunk, at=current: expected_counts(at, chunk))  # type: ignore[misc]
        keep = count >= LEARN_STRENGTH
        parameters = rates_from_counts(sums["counts"], sums["classes"], current, keep_strength=keep)
        change = max(
            0.1 * _step(parameters.sensitivity, current.sensitivity),
            0.1 * _step(parameters.specificity, current.specificity),
            float(np.abs(parameters.prior - current.prior).max()),
        )
        if change < tolerance:
            return TagFit(parameters, True)
    return TagFit(parameters, False)


def _step(new: FloatArray, old: FloatArray) -> float:
    """Return the largest change of a log-probability."""
    return float(max(np.abs(np.log(new / old)).max(), np.abs(np.log((1.0 - new) / (1.0 - old))).max()))


def tag_scores(parameters: TagParameters, chunk: Chunk) -> Sums:
    """Return the outer products of the scores of the sources' accuracies: vote by vote, and item by item."""
    m = chunk.observed.shape[1]
    accuracy = np.clip(1.0 - parameters.cost, 1e-3, 1 - 1e-3)
    wrong = parameters.error_rates()
    single, by_item = np.zeros((m, m)), np.zeros(chunk.observed.shape)
    for tag in range(parameters.n_tags):
        votes = tag_chunk(chunk, tag)
        posterior = parameters.of_tag(tag).probabilities(votes.labels, votes.observed)[:, 1]
        known = known_codes(votes)
        posterior = np.where(known >= 0, known, posterior)[:, None]
        right = np.where(votes.labels == 1, posterior, 1.0 - posterior)
        score = np.where(votes.observed, (right - (1.0 - wrong[:, tag])) / (accuracy * (1 - accuracy)), 0.0)
        single += score.T @ score
        by_item += score
    return Sums({"single": single, "clustered": by_item.T @ by_item})


def clustered_errors(
    single: FloatArray,
    clustered: FloatArray,
    accuracy: FloatArray,
    votes: FloatArray,
    dependent: BoolArray,
    scale: float = 1.0,
) -> FloatArray:
    """Return standard errors of accuracies when several votes belong to one item (a sandwich).

    Parameters
    ----------
    single, clustered
        ``(m, m)`` outer products of the scores, added up over votes and over items.
    votes
        ``(m,)`` numbers of votes; infinite errors where there are none.
    dependent
        ``(m, m)`` pairs that copy each other: the error of a source is the one that it has without them.
    scale
        How many times more votes there are than those the scores were taken on.
    """
    bounded = np.clip(accuracy, 1e-3, 1 - 1e-3)
    information = single + np.diag(1.0 / (bounded * (1 - bounded)))  # one pseudo-vote keeps it regular
    variance = _sandwich(information, clustered)
    for source in np.flatnonzero(dependent.any(axis=1)):
        kept = np.flatnonzero(~dependent[source] | (np.arange(len(votes)) == source))
        chosen = np.ix_(kept, kept)
        variance[source] = _sandwich(information[chosen], clustered[chosen])[np.searchsorted(kept, source)]
    variance = variance / scale
    return np.where(votes > 0, np.sqrt(np.maximum(variance, 0.0)), np.inf)


def _sandwich(information: FloatArray, clustered: FloatArray) -> FloatArray:
    inverse = np.linalg.pinv(information, hermitian=True)
    # Items can only add to the uncertainty: where tags of an item speak against each other by chance, it is kept.
    variance: FloatArray = np.maximum(np.diag(inverse @ clustered @ inverse), np.diag(inverse))
    return variance
