"""The parameters of categorical sources, and the scores that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, few_votes, softmax
from consilience.families.base import Parameters
from consilience.label_types.vote_correlation import discount_correlated

__all__ = ["ConfusionParameters", "accuracy_from_weight", "one_coin_tables", "weight_from_accuracy"]

#: With at most so many patterns of votes, and at least so many items, labels are looked up by pattern.
MAX_PATTERNS, MIN_ITEMS = 65_536, 4_096
#: Probabilities are kept this far away from 0 and 1 before a logarithm is taken.
FLOOR = 1e-6


@dataclass(frozen=True)
class ConfusionParameters(Parameters):
    """What is known about categorical sources.

    Parameters
    ----------
    table
        ``(m, k, k)`` as ``[source, vote, class]``. For a source that votes every class (`full`):
        P(vote | class). Otherwise its precisions: P(class | vote).
    full
        ``(m,)``: which of the two readings holds.
    prior
        ``(k,)`` class probabilities inside the model.
    shift
        ``(k,)`` added to the log posterior of every item (a class balance told by the user).
    abstention
        ``(m, k)`` log P(abstains | class) where abstaining is informative, else zero.
    correlation
        ``(m, m)``; zero outside the dependencies.
    accuracy, cost_standard_error
        ``(m,)`` share of right votes, and the standard error of it.
    shares
        Return vote shares instead of a posterior (the plain vote).
    """

    table: FloatArray
    full: BoolArray
    prior: FloatArray
    shift: FloatArray
    abstention: FloatArray
    correlation: FloatArray
    accuracy: FloatArray
    cost_standard_error: FloatArray
    shares: bool = False

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.prior)

    @property
    def offset(self) -> FloatArray:
        """Score of each class before any vote."""
        offset: FloatArray = np.log(np.maximum(self.prior, FLOOR)) + self.shift
        return offset

    def score_table(self) -> FloatArray:
        """Return ``(m, k + 1, k)``: what each vote adds to each class; the last row is abstaining."""
        m, k, _ = self.table.shape
        scores = np.zeros((m, k + 1, k))
        scores[:, :k] = np.log(np.maximum(self.table, FLOOR))
        scores[~self.full, :k] -= np.log(np.maximum(self.prior, FLOOR))
        scores[:, k] = self.abstention
        return scores

    def probabilities(self, labels: Batch, observed: BoolArray) -> FloatArray:
        """Return ``(n, k)`` class probabilities for hard votes ``(n, m)`` or soft votes ``(n, m, k)``."""
        if self.shares:
            return self._vote_shares(labels, observed)
        if labels.ndim == 3:
            return softmax(self.offset + self.soft_scores(labels, observed))
        table = self.score_table()
        if self.is_dense(observed):
            from consilience.kernels.dense_classes import dense_posterior

            return dense_posterior(labels, observed, table.reshape(-1, self.n_classes), self.offset)
        from consilience.kernels.classes import posterior_rows

        return posterior_rows(labels, observed, table, self.offset, self.correlation)

    def is_dense(self, observed: BoolArray) -> bool:
        """Return whether sources are independent and mostly vote, so that all cells are gone through alike."""
        return not self.correlation.any() and not few_votes(observed)

    def looked_up(self, labels: Batch, observed: BoolArray) -> tuple[IntArray, FloatArray, FloatArray] | None:
        """Return the most probable class, its probability and ``(n, k)`` probabilities by the pattern of the votes.

        None where patterns hardly repeat, because there are too many of them or too few items.
        """
        m, k, _ = self.table.shape
        if labels.ndim != 2 or len(labels) < MIN_ITEMS or m * np.log(k + 1) > np.log(MAX_PATTERNS):
            return None
        from consilience.kernels.classes import pattern_numbers

        best, top, probabilities = self._patterns
        number = pattern_numbers(labels, observed, k)
        return best.take(number), top.take(number), probabilities.take(number, axis=0)

    @cached_property
    def _patterns(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """The same for every pattern that there may be."""
        m, k, _ = self.table.shape
        digits = np.indices((k + 1,) * m, dtype=np.int8).reshape(m, -1).T
        probabilities = self.probabilities(np.maximum(digits - 1, 0), digits > 0)
        return probabilities.argmax(axis=1), probabilities.max(axis=1), probabilities

    def soft_scores(self, labels: Batch, observed: BoolArray) -> FloatArray:
        """Return ``(n, k)`` sums of log evidence from soft votes.

        A vote is a distribution over the classes the source may have meant; its evidence is the
        average of the evidence of those classes (of likelihoods, or of precisions).
        """
        evidence = np.einsum("nav,avc->nac", labels, self.table)
        scores = np.log(np.maximum(evidence, FLOOR))
        scores[:, ~self.full] -= np.log(np.maximum(self.prior, FLOOR))
        scores *= discount_correlated(observed, self.correlation)[:, :, None]
        scores += np.where(observed[:, :, None], 0.0, self.abstention)
        total: FloatArray = scores.sum(axis=1)
        return total

    def _vote_shares(self, labels: Batch, observed: BoolArray) -> FloatArray:
        weight = discount_correlated(observed, self.correlation)
        counts = np.zeros((len(observed), self.n_classes))
        for source in range(observed.shape[1]):
            if labels.ndim == 3:
                counts += weight[:, source, None] * labels[:, source]
            else:
                rows = np.flatnonzero(observed[:, source])
                counts[rows, labels[rows, source].astype(np.int64)] += weight[rows, source]
        total = counts.sum(axis=1, keepdims=True)
        empty = total[:, 0] <= 0
        # Ties: judges are followed to the more frequent class; of two labeling functions the one that makes the
        # rarer claim is the more specific.
        leaning = self.prior if self.full.all() else 1.0 - self.prior
        shares = counts / np.where(total > 0, total, 1.0) + 1e-9 * leaning
        shares[empty] = self.prior
        normalised: FloatArray = shares / shares.sum(axis=1, keepdims=True)
        return normalised


def one_coin_tables(accuracy: FloatArray, k: int) -> FloatArray:
    """Return ``(m, k, k)`` confusions of sources that err evenly over the other classes."""
    accuracy = np.clip(accuracy, FLOOR, 1 - FLOOR)
    table = np.empty((len(accuracy), k, k))
    table[:] = ((1 - accuracy) / (k - 1))[:, None, None]
    diagonal: IntArray = np.arange(k)
    table[:, diagonal, diagonal] = accuracy[:, None]
    return table


def weight_from_accuracy(accuracy: FloatArray, k: int) -> FloatArray:
    """Return the log-odds weight of a source (the backward mapping of the 0/1 cost)."""
    accuracy = np.clip(accuracy, 1e-9, 1 - 1e-9)
    weight: FloatArray = np.log(accuracy * (k - 1) / (1 - accuracy))
    return weight


def accuracy_from_weight(weight: FloatArray, k: int) -> FloatArray:
    """Return the share of right votes of a source of this weight (the forward mapping)."""
    accuracy: FloatArray = 1.0 / (1.0 + (k - 1) * np.exp(-np.clip(weight, -700.0, 700.0)))
    return accuracy
