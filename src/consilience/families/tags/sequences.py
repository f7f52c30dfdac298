"""The family of sequences: one of k tags at every position, with or without a chain over the positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_object_array
from consilience.exceptions import ModelFormatError
from consilience.families.base import (
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
from consilience.families.confusion import ConfusionFamily, ConfusionParameters
from consilience.families.tags.codes import ABSENT, UNKNOWN
from consilience.families.tags.parameters import SequenceParameters
from consilience.families.tags.sequence_estimation import estimate_sequences
from consilience.families.tags.sequence_likelihood import expected_counts, marginals
from consilience.families.tags.tokens import tokens_of

__all__ = ["SequenceFamily"]


@dataclass(frozen=True, eq=False)
class SequenceFamily(Family):
    """Votes that give one of `n_tags` tags to every position.

    Parameters
    ----------
    chain
        Whether neighbouring tags depend on each other.
    starts, steps
        ``(k,)`` and ``(k, k)``: tags a sequence may begin with, and which may follow which; None if all may.
    binary
        Whether tags are just 0 and 1, so that one probability per position says all.
    """

    n_tags: int
    chain: bool = False
    starts: BoolArray | None = None
    steps: BoolArray | None = None
    binary: bool = False
    methods: ClassVar[tuple[str, ...]] = ConfusionFamily.methods

    def statistics(self, chunk: Chunk) -> Sums:
        tokens = tokens_of(chunk).chunk
        positions = ConfusionFamily(self.n_tags).statistics(tokens)
        m, k = chunk.observed.shape[1], self.n_tags
        agree = positions["agree"] if "agree" in positions else _agreeing(positions["pairs"], m, k)
        parts = count_sums(chunk)
        parts["pair_cost"] = (positions["both"] - agree)[None]
        parts["votes"] = positions["votes"]
        parts |= {f"position_{name}": values for name, values in positions.parts.items()}
        return Sums(parts)

    def constant_sources(self, sums: Sums) -> BoolArray:
        return self._classes.constant_sources(sums)

    def measures_like(self, other: Family) -> bool:
        return isinstance(other, SequenceFamily) and other.n_tags == self.n_tags

    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        self.check_method(request.method, passes, needs_votes=("em",))
        return estimate_sequences(self._classes, self.masks if self.chain else None, sums, request, passes)

    def round(self, parameters: SequenceParameters, chunk: Chunk) -> Sums:
        return expected_counts(parameters, chunk)

    def posterior(self, parameters: SequenceParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        tokens = tokens_of(Chunk(labels, observed, np.zeros(len(observed), dtype=np.int64)))
        probability, scores = marginals(parameters, tokens)
        chosen = self._decoded(parameters, probability, scores, tokens.starts, decode)
        if not parameters.chained:  # without a chain nothing is known about positions nobody tags
            chosen = np.where(tokens.chunk.observed.any(axis=1), chosen, UNKNOWN)
        right = np.take_along_axis(probability, np.maximum(chosen, 0)[:, None], axis=1)[:, 0] * (chosen >= 0)
        sizes = np.diff(tokens.starts)
        table = np.full((len(sizes), int(sizes.max(initial=0))), ABSENT, dtype=np.int32)
        table[np.arange(table.shape[1]) < sizes[:, None]] = chosen
        of_item = tokens.sequence
        judged = np.bincount(of_item, chosen >= 0, minlength=len(sizes))
        confidence = np.bincount(of_item, right, minlength=len(sizes)) / np.maximum(judged, 1.0)
        shown = probability[:, 1] if self.binary else probability
        pieces = as_object_array(np.split(shown, tokens.starts[1:-1]))
        return Posterior(table, confidence, details={"tag_probability": pieces})

    def _decoded(
        self, parameters: SequenceParameters, probability: FloatArray, scores: FloatArray, starts: IntArray, decode: str
    ) -> IntArray:
        """Return the most probable sequence, or the possible one with most expected right positions."""
        if not parameters.chained:
            return np.asarray(probability.argmax(axis=1))
        from consilience.kernels.chains import best_paths

        with np.errstate(divide="ignore"):
            if decode == "map":
                return best_paths(scores, starts, np.log(parameters.initial), np.log(parameters.transition))
            first, steps = self.masks
            return best_paths(probability, starts, np.log(first.astype(float)), np.log(steps.astype(float)))

    @property
    def masks(self) -> tuple[BoolArray, BoolArray]:
        """Which tags may come first, and which may follow which."""
        k = self.n_tags
        first = np.ones(k, dtype=bool) if self.starts is None else self.starts
        return first, np.ones((k, k), dtype=bool) if self.steps is None else self.steps

    def random_walks(self, n: int, length: int, rng: np.random.Generator) -> IntArray:
        """Return ``(n, length)`` random sequences of steps that are possible."""
        first, steps = self.masks
        walks = np.empty((n, length), dtype=np.int64)
        for place in range(length):
            possible = np.repeat(first[None], n, axis=0) if place == 0 else steps[walks[:, place - 1]]
            walks[:, place] = np.argmax(np.where(possible, rng.random((n, self.n_tags)), -1.0), axis=1)
        return walks

    @property
    def _classes(self) -> ConfusionFamily:
        return ConfusionFamily(self.n_tags)

    def summary(self, parameters: SequenceParameters) -> Summary:
        return self._classes.summary(parameters.of_positions())

    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        found = self._classes.from_weights(weight, request)
        if not isinstance(found, ConfusionParameters):
            raise TypeError("classes have other parameters")
        if not self.chain:
            return SequenceParameters.of(found)
        first, steps = (mask.astype(float) for mask in self.masks)
        return SequenceParameters.of(found, first / first.sum(), steps / steps.sum(axis=1, keepdims=True))

    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        parameters = SequenceParameters(**fields)
        if len(parameters.prior) != self.n_tags or parameters.chained != self.chain:
            raise ModelFormatError(
                f"The model was fitted on sequences of {len(parameters.prior)} tags, "
                f"{'with' if parameters.chained else 'without'} a chain, unlike the given space. "
                "Pass the space that it was fitted with."
            )
        return parameters

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        return self._classes.expected_cost(weight)

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        return self._classes.weight_from_cost(cost)

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self._classes.pair_cost(left, right)


def _agreeing(pairs: IntArray, m: int, k: int) -> IntArray:
    agree: IntArray = np.einsum("acbc->ab", pairs.sum(axis=0).reshape(m, k, m, k))
    return agree
