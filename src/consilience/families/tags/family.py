"""The family of multi-label votes: every tag is a binary question of its own, qualities are pooled over the tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.exceptions import ModelFormatError
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
from consilience.families.confusion.parameters import accuracy_from_weight, weight_from_accuracy
from consilience.families.tags.codes import UNKNOWN
from consilience.families.tags.estimation import estimate_tags
from consilience.families.tags.likelihood import expected_counts
from consilience.families.tags.parameters import TagParameters, tag_chunk

__all__ = ["TagFamily"]

#: Largest number of cells of the table of joint votes that is kept for every group of items.
MAX_GROUPED_CELLS = 20_000_000


@dataclass(frozen=True)
class TagFamily(Family):
    """Votes on `n_tags` tags, each present (1) or not (0); -1 where a source has no opinion on a tag."""

    n_tags: int
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

    def statistics(self, chunk: Chunk) -> Sums:
        from consilience.kernels.classes import count_pairs

        m, d = chunk.observed.shape[1], self.n_tags
        n_groups = GROUPS if GROUPS * d * (2 * m) ** 2 <= MAX_GROUPED_CELLS else 1
        groups = chunk.groups if n_groups > 1 else np.zeros(len(chunk), dtype=np.int64)
        pairs = np.empty((n_groups, d, 2 * m, 2 * m), dtype=np.int64)
        gold, classes = np.zeros((d, m, 2, 2)), np.zeros((d, 2))
        told = np.zeros(len(chunk), dtype=bool)
        for tag in range(d):
            votes = tag_chunk(chunk, tag)
            pairs[:, tag] = count_pairs(votes.labels, votes.observed, groups, n_groups, 2)
            rows = votes.gold_rows
            if len(rows) and votes.known is not None:
                told[rows] = True
                truth = np.eye(2)[votes.known[rows].astype(np.int64)]
                said = np.eye(2)[votes.labels[rows]] * votes.observed[rows, :, None]
                gold[tag] = np.einsum("nav,nc->avc", said, truth)
                classes[tag] = truth.sum(axis=0)
        parts = count_sums(chunk)
        parts["gold_items"] = np.array(int(told.sum()), dtype=np.int64)
        parts["tag_pairs"] = pairs
        by_pair = pairs.sum(axis=(0, 1)).reshape(m, 2, m, 2)
        parts["pair_cost"] = (by_pair[:, 0, :, 1] + by_pair[:, 1, :, 0])[None]
        if told.any():
            parts["tag_gold"], parts["tag_gold_classes"] = gold, classes
        return Sums(parts)

    def constant_sources(self, sums: Sums) -> BoolArray:
        votes = np.einsum("tcc->tc", sums["tag_pairs"].sum(axis=0)).reshape(self.n_tags, -1, 2)
        constant: BoolArray = ((votes > 0).sum(axis=2) <= 1).all(axis=0) & (votes.sum(axis=(0, 2)) >= 10)
        return constant

    def measures_like(self, other: Family) -> bool:
        return isinstance(other, TagFamily) and other.n_tags == self.n_tags

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        self.check_method(request.method, passes, needs_votes=("em",))
        return estimate_tags(sums, request, passes)

    def round(self, parameters: TagParameters, chunk: Chunk) -> Sums:
        return expected_counts(parameters, chunk)

    def posterior(self, parameters: TagParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        # Tags are independent given the votes, so the most probable label is also the one of least expected cost.
        probability = parameters.probabilities(labels, observed)
        told = np.zeros(probability.shape, dtype=bool)
        if labels.ndim == 3:
            told = np.asarray(((labels >= 0) & observed[:, :, None]).any(axis=1))
        chosen = np.where(told, probability > 0.5, UNKNOWN).astype(np.int8)
        sure = np.where(told, np.maximum(probability, 1.0 - probability), 0.0)
        confidence = sure.sum(axis=1) / np.maximum(told.sum(axis=1), 1)
        return Posterior(chosen, confidence, details={"tag_probability": probability})

    def summary(self, parameters: TagParameters) -> Summary:
        accuracy = np.clip(1.0 - parameters.cost, 1e-9, 1 - 1e-9)
        return Summary(
            expected_cost=parameters.cost,
            weight=weight_from_accuracy(accuracy, 2),
            standard_error=parameters.cost_standard_error / (accuracy * (1 - accuracy)),
            cost_standard_error=parameters.cost_standard_error,
            correlation=parameters.correlation,
        )

    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        m = len(weight)
        accuracy = accuracy_from_weight(weight, 2)
        rates = np.repeat(accuracy[:, None], self.n_tags, axis=1)
        return TagParameters(
            sensitivity=rates,
            specificity=rates,
            prior=np.full(self.n_tags, 0.5),
            correlation=np.zeros((m, m)),
            cost=1.0 - accuracy,
            cost_standard_error=np.zeros(m),
            strength=np.zeros(2),
        )

    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        parameters = TagParameters(**fields)
        if parameters.n_tags != self.n_tags:
            raise ModelFormatError(
                f"The model was fitted on {parameters.n_tags} tags and the given space has {self.n_tags}. "
                "Pass the space that it was fitted with."
            )
        return parameters

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        return 1.0 - accuracy_from_weight(np.asarray(weight, dtype=float), 2)

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        return weight_from_accuracy(1.0 - np.asarray(cost, dtype=float), 2)

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        wrong_left, wrong_right = self.expected_cost(left), self.expected_cost(right)
        differ: FloatArray = wrong_left * (1 - wrong_right) + wrong_right * (1 - wrong_left)
        return differ
