"""Maximum likelihood for categorical sources: E-step, M-step, and the test whether abstaining is informative.

Sources that vote every class follow Dawid and Skene given a vote. Sources that vote only some classes
(labeling functions) use the event form: a vote is an event with a precision for each class, shrunk
hard to one common anchor, because the textbook likelihood collapses on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, few_votes
from consilience.families.base import Chunk, Sums
from consilience.families.confusion.parameters import ConfusionParameters, one_coin_tables

__all__ = [
    "LikelihoodModel",
    "cofiring_misfit",
    "event_pairs",
    "expected_counts",
    "fit_rounds",
    "hard_pairs",
    "row_agreement",
    "score_products",
]

#: Pseudo-votes of a Dawid-Skene source: 7 right and 3 wrong, spread by its own one-coin accuracy.
COIN_VOTES, COIN_ACCURACY = 10.0, 0.7
MAX_ROUNDS = 200
#: Items whose scores are multiplied at once.
BLOCK = 4096


@dataclass(frozen=True)
class LikelihoodModel:
    """What stays fixed during the rounds.

    Parameters
    ----------
    full
        ``(m,)`` sources that vote every class.
    votes
        ``(m, k)`` how often each source votes each class.
    n_items
        Number of items in the rounds.
    anchor
        Precision towards which the events are shrunk.
    strength
        Pseudo-votes per vote of that shrinkage (besides 4 for every event).
    informative_abstention
        Whether abstaining of partial sources enters the likelihood.
    fixed_prior
        ``(k,)`` class probabilities that are not learned, or None.
    """

    full: BoolArray
    votes: FloatArray
    n_items: int
    anchor: float
    correlation: FloatArray
    strength: float = 5.0
    informative_abstention: bool = False
    fixed_prior: FloatArray | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.votes.shape[1])

    def start(self, accuracy: FloatArray, prior: FloatArray) -> ConfusionParameters:
        """Return the parameters before the first round: one accuracy per source."""
        m, k = self.votes.shape
        table = one_coin_tables(np.where(self.full, accuracy, self.anchor), k)
        return ConfusionParameters(
            table=table,
            full=self.full,
            prior=prior if self.fixed_prior is None else self.fixed_prior,
            shift=np.zeros(k),
            abstention=np.zeros((m, k)),
            correlation=self.correlation,
            accuracy=accuracy,
            cost_standard_error=np.full(m, np.inf),
        )

    def maximise(self, counts: FloatArray, classes: FloatArray) -> ConfusionParameters:
        """Run the M-step.

        Parameters
        ----------
        counts
            ``(m, k, k)`` expected votes as ``[source, vote, class]``.
        classes
            ``(k,)`` expected items per class among those with a vote.
        """
        m, k = self.votes.shape
        diagonal = np.arange(k)
        prior = (classes + 1.0) / (classes.sum() + k) if self.fixed_prior is None else self.fixed_prior
        right = counts[:, diagonal, diagonal].sum(axis=1)
        total = counts.sum(axis=(1, 2))
        coin = (right + COIN_VOTES * COIN_ACCURACY) / (total + COIN_VOTES)
        confusions = counts + COIN_VOTES * one_coin_tables(coin, k)
        confusions /= counts.sum(axis=1)[:, None, :] + COIN_VOTES
        anchor = one_coin_tables(np.array([self.anchor]), k)[0]
        pseudo = (4.0 + self.strength * self.votes)[:, :, None]
        precisions = (counts + pseudo * anchor) / (self.votes[:, :, None] + pseudo)
        abstention = np.zeros((m, k))
        if self.informative_abstention:
            rate = self.votes / max(self.n_items, 1)
            fires = (rate[:, :, None] * precisions / prior).sum(axis=1)
            abstention[~self.full] = np.log(np.clip(1.0 - fires, 0.02, None))[~self.full]
        return ConfusionParameters(
            table=np.where(self.full[:, None, None], confusions, precisions),
            full=self.full,
            prior=prior,
            shift=np.zeros(k),
            abstention=abstention,
            correlation=self.correlation,
            accuracy=np.where(total > 0, right / np.maximum(total, 1e-12), coin),
            cost_standard_error=np.full(m, np.inf),
        )


def expected_counts(parameters: ConfusionParameters, chunk: Chunk) -> Sums:
    """Run the E-step over one chunk and return the expected counts."""
    known = known_codes(chunk)
    if chunk.labels.ndim == 2:
        counts, classes, likelihood = _round(parameters, chunk, known)
        return Sums({"counts": counts, "classes": classes, "log_likelihood": np.array(likelihood)})
    labels = chunk.labels * chunk.observed[:, :, None]
    covered: BoolArray = np.asarray(chunk.observed.any(axis=1))
    scores = parameters.offset + parameters.soft_scores(labels, chunk.observed)
    top = scores.max(axis=1, keepdims=True)
    weight = np.exp(scores - top)
    likelihood = float((np.log(weight.sum(axis=1)) + top[:, 0])[covered].sum())
    posterior = _clamp(weight / weight.sum(axis=1, keepdims=True), known) * covered[:, None]
    evidence = np.maximum(np.einsum("nav,avc->nac", labels, parameters.table), 1e-12)
    # Which class did the source mean? For full sources that depends on the class of the item.
    ratio = np.where(parameters.full[None, :, None], posterior[:, None, :] / evidence, posterior[:, None, :])
    meant = np.einsum("nav,nac->avc", labels, ratio)
    counts = np.where(parameters.full[:, None, None], meant * parameters.table, meant)
    return Sums({"counts": counts, "classes": posterior.sum(axis=0), "log_likelihood": np.array(likelihood)})


def _round(parameters: ConfusionParameters, chunk: Chunk, known: IntArray) -> tuple[FloatArray, FloatArray, float]:
    table, offset = parameters.score_table(), parameters.offset
    if parameters.is_dense(chunk.observed):
        from consilience.kernels.dense_classes import dense_round

        m, events, k = table.shape
        votes, classes, likelihood = dense_round(
            chunk.labels, chunk.observed, table.reshape(m * events, k), offset, known
        )
        return votes.reshape(table.shape)[:, :k], classes, likelihood
    from consilience.kernels.classes import expectation_round

    return expectation_round(chunk.labels, chunk.observed, table, offset, parameters.correlation, known)


def fit_rounds(
    model: LikelihoodModel,
    parameters: ConfusionParameters,
    run: Callable[[Callable[[Chunk], Sums]], Sums],
) -> tuple[ConfusionParameters, bool]:
    """Alternate E- and M-steps until the parameters rest; return them and whether they do."""
    # Below a fiftieth of the sampling error, further digits of the optimum carry no information.
    tolerance = max(1e-5, 0.02 / np.sqrt(max(model.n_items, 1)))
    for _ in range(MAX_ROUNDS):
        current = parameters
        sums = run(lambda chunk, at=current: expected_counts(at, chunk))  # type: ignore[misc]
        parameters = model.maximise(sums["counts"], sums["classes"])
        change = np.abs(parameters.score_table() - current.score_table()).max(initial=0.0)
        change = max(change * 0.1, float(np.abs(parameters.prior - current.prior).max()))
        if change < tolerance:
            return parameters, True
    return parameters, False


def score_products(parameters: ConfusionParameters, chunk: Chunk) -> Sums:
    """Return the sum over items of the outer product of the scores of the sources' accuracies."""
    posterior = _clamp(parameters.probabilities(chunk.labels, chunk.observed), known_codes(chunk))
    accuracy = np.clip(parameters.accuracy, 1e-3, 1 - 1e-3)
    if chunk.labels.ndim == 3:
        right = np.einsum("nac,nc->na", chunk.labels, posterior)
        score = np.where(chunk.observed, (right - accuracy) / (accuracy * (1 - accuracy)), 0.0)
        outer = score.T @ score
    else:
        outer = _score_products(chunk.labels, chunk.observed, posterior, accuracy)
    return Sums({"outer": outer, "score_items": np.array(len(chunk), dtype=np.int64)})


def _score_products(codes: Batch, observed: BoolArray, posterior: FloatArray, accuracy: FloatArray) -> FloatArray:
    if few_votes(observed):
        from consilience.kernels.sparse_classes import score_products_of_few

        return score_products_of_few(codes, observed, posterior, accuracy)
    from consilience.kernels.classes import accuracy_scores

    n, m = observed.shape
    outer = np.zeros((m, m))
    scores = np.empty((min(n, BLOCK), m))
    for start in range(0, n, BLOCK):
        rows = slice(start, start + BLOCK)
        block = scores[: min(BLOCK, n - start)]
        accuracy_scores(codes[rows], observed[rows], posterior[rows], accuracy, block)
        outer += block.T @ block
    return outer


def cofiring_misfit(
    parameters: ConfusionParameters, counts: FloatArray, classes: FloatArray, pairs: FloatArray, n_items: int
) -> float:
    """Return chi-square per degree of freedom of how often two events fire together.

    Small values mean that firing is independent given the class, so that abstaining is informative.
    Infinite where there are too few pairs to tell.
    """
    m, k, _ = counts.shape
    items = classes + (n_items - classes.sum()) * parameters.prior  # items without a vote follow the prior
    fired = counts.reshape(m * k, k)
    alive = fired.sum(axis=1) > 0
    source = np.repeat(np.arange(m), k)[alive]
    rate = fired[alive] / np.maximum(items, 1e-9)
    expected = (rate * items) @ rate.T
    observed = pairs[np.ix_(alive, alive)]
    upper = np.triu_indices(len(rate), 1)
    testable = (expected[upper] >= 3.0) & (source[upper[0]] != source[upper[1]])
    freedom = int(testable.sum()) - int(alive.sum()) * (k - 1)
    if freedom < 10:
        return float("inf")
    difference = (observed - expected)[upper][testable]
    return float((difference**2 / expected[upper][testable]).sum() / freedom)


def row_agreement(chunk: Chunk) -> Sums:
    """Return the sum over items of the share of agreeing pairs of votes, and the number of items with a pair."""
    if chunk.labels.ndim == 2:
        from consilience.kernels.classes import agreement_of_rows

        return Sums({"rows": np.array(agreement_of_rows(chunk.labels, chunk.observed))})
    votes = chunk.labels * chunk.observed[:, :, None]
    cast = chunk.observed.sum(axis=1)
    paired = cast >= 2
    same = (votes.sum(axis=1) ** 2).sum(axis=1) - (votes**2).sum(axis=(1, 2))
    share = same / np.maximum(cast * (cast - 1), 1)
    return Sums({"rows": np.array([share[paired].sum(), paired.sum()])})


def event_pairs(chunk: Chunk, k: int) -> FloatArray:
    """Return how often two events (a source votes a class) fire together, ``(m * k, m * k)``."""
    if chunk.labels.ndim == 3:
        flat = (chunk.labels * chunk.observed[:, :, None]).reshape(len(chunk), -1)
        together: FloatArray = flat.T @ flat
        return together
    alone = np.zeros(len(chunk), dtype=np.int64)
    counted: FloatArray = hard_pairs(chunk.labels, chunk.observed, alone, 1, k)[0].astype(np.float64)
    return counted


def hard_pairs(codes: Batch, observed: BoolArray, groups: IntArray, n_groups: int, k: int) -> IntArray:
    """Return how often two events fire together in each group of items, ``(n_groups, m * k, m * k)``."""
    if few_votes(observed):
        from consilience.kernels.sparse_classes import count_few_pairs

        return count_few_pairs(codes, observed, groups, n_groups, k)
    from consilience.kernels.classes import count_pairs

    return count_pairs(codes, observed, groups, n_groups, k)


def known_codes(chunk: Chunk) -> IntArray:
    """Return the known class per item, -1 where unknown."""
    codes = np.full(len(chunk), -1, dtype=np.int64)
    if chunk.known is not None and chunk.is_known is not None:
        codes[chunk.is_known] = chunk.known[chunk.is_known].astype(np.int64)
    return codes


def _clamp(posterior: FloatArray, known: IntArray) -> FloatArray:
    rows = np.flatnonzero(known >= 0)
    if len(rows):
        posterior = posterior.copy()
        posterior[rows] = 0.0
        posterior[rows, known[rows]] = 1.0
    return posterior


def with_errors(
    parameters: ConfusionParameters, outer: FloatArray, votes: FloatArray, scale: float = 1.0
) -> ConfusionParameters:
    """Attach the standard errors of the accuracies: the inverse outer product of the scores.

    Copies have the same scores, which says that only their sum is known. Yet each has votes of its own on every item:
    its error is the one that it has without those whom it depends on.
    """
    accuracy = np.clip(parameters.accuracy, 1e-3, 1 - 1e-3)
    information = outer * scale + np.diag(1.0 / (accuracy * (1 - accuracy)))  # one pseudo-vote keeps it regular
    covariance = np.linalg.pinv(information, hermitian=True)
    variance = np.diag(covariance).copy()
    dependent = (parameters.correlation > 0) & ~np.eye(len(variance), dtype=bool)
    for source in np.flatnonzero(dependent.any(axis=1)):
        others = np.flatnonzero(dependent[source])
        shared = covariance[source, others]
        variance[source] -= shared @ np.linalg.lstsq(covariance[np.ix_(others, others)], shared, rcond=None)[0]
    error = np.sqrt(np.maximum(variance, 0.0))
    return replace(parameters, cost_standard_error=np.where(votes.sum(axis=1) > 0, error, np.inf))
