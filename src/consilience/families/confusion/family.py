"""The family of categorical votes (design: `Classes`, later `Tags`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, few_votes
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
from consilience.families.confusion.estimation import estimate_confusions
from consilience.families.confusion.likelihood import expected_counts, hard_pairs, known_codes
from consilience.families.confusion.parameters import (
    ConfusionParameters,
    accuracy_from_weight,
    one_coin_tables,
    weight_from_accuracy,
)

__all__ = ["ConfusionFamily"]

#: Largest number of (source, class) events for which the full contingency table is kept (per group).
MAX_EVENTS, MAX_GROUPED_EVENTS = 2048, 512


@dataclass(frozen=True)
class ConfusionFamily(Family):
    """Categorical votes over `n_classes` classes."""

    n_classes: int
    methods: ClassVar[tuple[str, ...]] = (
        "auto",
        "majority",
        "isotropic",
        "triplets",
        "quadratic",
        "moments",
        "em",
        "labelled",
    )

    @property
    def side_by_side(self) -> bool:
        return True

    def measures_like(self, other: Family) -> bool:
        return isinstance(other, ConfusionFamily) and other.n_classes == self.n_classes

    def statistics(self, chunk: Chunk) -> Sums:
        k, m = self.n_classes, chunk.observed.shape[1]
        n_groups = GROUPS if m * k <= MAX_GROUPED_EVENTS else 1
        groups = chunk.groups if n_groups > 1 else np.zeros(len(chunk), dtype=np.int64)
        if chunk.labels.ndim == 3:
            flat = (chunk.labels * chunk.observed[:, :, None]).reshape(len(chunk), m * k)
            parts = count_sums(chunk)
            parts["votes"] = flat.sum(axis=0).reshape(m, k)
            parts["pairs"] = _soft_pairs(flat, groups, n_groups)
        elif m * k <= MAX_EVENTS:
            pairs = hard_pairs(chunk.labels, chunk.observed, groups, n_groups, k)
            together = pairs.sum(axis=0)
            parts = count_sums(chunk, both=together.reshape(m, k, m, k).sum(axis=(1, 3)))
            parts["votes"] = np.diag(together).reshape(m, k)
            parts["pairs"] = pairs
        else:
            votes, agree, both = _agreements(chunk, k)
            parts = count_sums(chunk, both=both)
            parts["votes"], parts["agree"] = votes, agree
        rows_known = chunk.gold_rows
        if len(rows_known):
            parts["gold"] = _gold_counts(chunk, rows_known, k)
            parts["gold_classes"] = np.bincount(known_codes(chunk)[rows_known], minlength=k)
        return Sums(parts)

    def constant_sources(self, sums: Sums) -> BoolArray:
        constant: BoolArray = ((sums["votes"] > 0).sum(axis=1) == 1) & (sums["votes"].sum(axis=1) >= 10)
        return constant

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        self.check_method(request.method, passes, needs_votes=("em",))
        return estimate_confusions(self, sums, request, passes)

    def round(self, parameters: ConfusionParameters, chunk: Chunk) -> Sums:
        return expected_counts(parameters, chunk)

    def posterior(self, parameters: ConfusionParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        # Under the 0/1 cost the most probable class is also the one of least expected cost.
        if (found := parameters.looked_up(labels, observed)) is not None:
            return Posterior(*found)
        probabilities = parameters.probabilities(labels, observed)
        best = probabilities.argmax(axis=1)
        return Posterior(best, probabilities.max(axis=1), probabilities)

    def summary(self, parameters: ConfusionParameters) -> Summary:
        accuracy = np.clip(parameters.accuracy, 1e-9, 1 - 1e-9)
        return Summary(
            expected_cost=1.0 - parameters.accuracy,
            weight=weight_from_accuracy(accuracy, self.n_classes),
            standard_error=parameters.cost_standard_error / (accuracy * (1 - accuracy)),
            cost_standard_error=parameters.cost_standard_error,
            correlation=parameters.correlation,
        )

    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        m, k = len(weight), self.n_classes
        accuracy = accuracy_from_weight(weight, k)
        prior = np.full(k, 1.0 / k) if isinstance(request.prior, str) else request.prior
        return ConfusionParameters(
            table=one_coin_tables(accuracy, k),
            full=np.ones(m, dtype=bool),
            prior=prior,
            shift=np.zeros(k),
            abstention=np.zeros((m, k)),
            correlation=np.zeros((m, m)),
            accuracy=accuracy,
            cost_standard_error=np.zeros(m),
        )

    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        return ConfusionParameters(**fields)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        return 1.0 - accuracy_from_weight(np.asarray(weight, dtype=float), self.n_classes)

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        return weight_from_accuracy(1.0 - np.asarray(cost, dtype=float), self.n_classes)

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        k = self.n_classes
        wrong_left, wrong_right = self.expected_cost(left), self.expected_cost(right)
        same: FloatArray = (1 - wrong_left) * (1 - wrong_right) + wrong_left * wrong_right / (k - 1)
        return 1.0 - same


def _soft_pairs(flat: FloatArray, groups: IntArray, n_groups: int) -> FloatArray:
    size = flat.shape[1]
    total = np.zeros((n_groups, size, size))
    if n_groups == 1:
        total[0] = flat.T @ flat
        return total
    for group in range(n_groups):
        rows = flat[groups == group]
        total[group] = rows.T @ rows
    return total


def _agreements(chunk: Chunk, k: int) -> tuple[IntArray, IntArray, IntArray | None]:
    """Votes per class, agreements and common votes, for so many sources or classes that no contingency table fits."""
    if few_votes(chunk.observed):
        from consilience.kernels.sparse_classes import count_agreements

        return count_agreements(chunk.labels, chunk.observed, k)
    m = chunk.observed.shape[1]
    votes = np.zeros((m, k), dtype=np.int64)
    agree = np.zeros((m, m), dtype=np.int64)
    for c in range(k):
        voted = (chunk.observed & (chunk.labels == c)).astype(np.float32)
        votes[:, c] = voted.sum(axis=0)
        agree += np.rint(voted.T @ voted).astype(np.int64)
    return votes, agree, None


def _gold_counts(chunk: Chunk, rows: IntArray, k: int) -> FloatArray:
    """Votes of each source on the items whose class is known, ``(m, k, k)`` as ``[source, vote, class]``."""
    truth = np.eye(k)[known_codes(chunk)[rows]]
    observed = chunk.observed[rows]
    labels = chunk.labels[rows]
    hard = np.eye(k)[np.where(observed, labels, 0)] if labels.ndim == 2 else labels
    counts: FloatArray = np.einsum("nav,nc->avc", hard * observed[:, :, None], truth)
    return counts
