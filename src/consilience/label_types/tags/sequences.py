"""Sequences: one of k tags at every position, with or without a chain over the positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_object_array
from consilience.estimation.protocol import Chunk, Posterior, Statistics
from consilience.exceptions import InvalidLabelError, ModelFormatError
from consilience.label_types.tags.labels import ABSENT, UNKNOWN
from consilience.label_types.tags.law import AnswerLaw, AnswerParameters, Questions

__all__ = ["SequenceLaw"]

#: Every possible first tag and step counts as seen this often before any vote (Jeffreys' prior). The strength is not
#: left to the evidence, as EM starts from tags that do not depend on each other, and evidence would keep them so.
JEFFREYS = 0.5


@dataclass(frozen=True, eq=False)
class SequenceLaw(AnswerLaw):
    """Votes that give one of `n_tags` tags to every position.

    Parameters
    ----------
    chain
        Whether neighboring tags depend on each other.
    first, steps
        ``(k,)`` and ``(k, k)``: tags that a sequence may begin with, and which may follow which.
    binary
        Whether tags are just 0 and 1, so that one probability per position says all.
    """

    n_tags: int
    chain: bool
    first: BoolArray
    steps: BoolArray
    binary: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        return 1, self.n_tags

    def questions(self, chunk: Chunk) -> Questions:
        """Take sequences apart; an item has no positions if nobody votes on it and it is not known."""
        labels = _padded(chunk.labels, chunk.observed)
        exists = np.asarray((labels != ABSENT).any(axis=1))
        known = np.full(exists.shape, ABSENT, dtype=np.int64)
        if len(chunk.gold_rows):
            known, exists = _known(chunk, exists)
            longer = np.full((*chunk.observed.shape, exists.shape[1] - labels.shape[2]), ABSENT, dtype=labels.dtype)
            labels = np.concatenate([labels, longer], axis=2)
        starts = np.concatenate([[0], np.cumsum(exists.sum(axis=1))]).astype(np.int64)
        codes = np.maximum(labels.transpose(0, 2, 1)[exists], labels.dtype.type(UNKNOWN))
        return Questions(codes, np.zeros(len(codes), dtype=np.int64), starts, np.maximum(known[exists], UNKNOWN))

    def statistics(self, chunk: Chunk) -> Statistics:
        found = super().statistics(chunk)
        return found + Statistics({"votes": found["answers"][:, 0]})

    # --- the chain ----------------------------------------------------------------------------------

    def _chained(self, parameters: AnswerParameters) -> AnswerParameters:
        if not self.chain:
            return parameters
        prior = parameters.prior[0]
        return self._with_chain(parameters, prior, np.tile(prior, (self.n_tags, 1)))

    def _with_chain(self, parameters: AnswerParameters, first: FloatArray, steps: FloatArray) -> AnswerParameters:
        """Return parameters with these laws of the first tag and the next; what is impossible stays so."""
        initial, transition = np.where(self.first, first, 0.0), np.where(self.steps, steps, 0.0)
        transition /= transition.sum(axis=1, keepdims=True)
        return replace(parameters, initial=initial / initial.sum(), transition=transition)

    def _belief(
        self, parameters: AnswerParameters, scores: FloatArray, asked: Questions
    ) -> tuple[FloatArray, dict[str, FloatArray]]:
        if not self.chain:
            return super()._belief(parameters, scores, asked)
        from consilience.label_types.tags.kernels import chain_round

        belief, first, steps = np.zeros_like(scores), np.zeros(self.n_tags), np.zeros(self.steps.shape)
        chain_round(scores, asked.starts, parameters.initial, parameters.transition, belief, first, steps)
        return belief, {"first": first, "steps": steps}

    def m_step(self, parameters: AnswerParameters, statistics: Statistics, start: AnswerParameters) -> AnswerParameters:
        better = super().m_step(parameters, statistics, start)
        if not self.chain:
            return better
        return self._with_chain(better, statistics["first"] + JEFFREYS, statistics["steps"] + JEFFREYS)

    # --- labels -------------------------------------------------------------------------------------

    def posterior(self, parameters: AnswerParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        asked = self.questions(Chunk(labels, observed, np.zeros(len(observed), dtype=np.int64)))
        probability, scores = self._probabilities(parameters, asked)
        path = None
        if self.chain and decode == "map" and not parameters.shares:
            path = _best_paths(scores, asked.starts, parameters.initial, parameters.transition)
        return self._decoded(probability, asked.starts, asked.answered, path)

    def average(self, posteriors: Sequence[tuple[float, Posterior]], decode: str) -> Posterior:
        first = posteriors[0][1]
        told = first.labels != ABSENT
        starts = np.concatenate([[0], np.cumsum(told.sum(axis=1))]).astype(np.int64)
        chosen = first.labels[told].astype(np.int64)
        probability = np.zeros((len(chosen), self.n_tags))
        for share, one in posteriors:
            flat = np.concatenate(
                [np.zeros((0,) if self.binary else (0, self.n_tags)), *one.details["tag_probability"]]
            )
            probability += share * (np.stack([1.0 - flat, flat], axis=1) if self.binary else flat)
        # The most probable sequence is that of the most probable hypothesis.
        return self._decoded(probability, starts, chosen >= 0, chosen if self.chain and decode == "map" else None)

    def _decoded(
        self, probability: FloatArray, starts: IntArray, answered: BoolArray, path: IntArray | None
    ) -> Posterior:
        """Return `path`, or of all possible sequences the one with most positions expected to be right."""
        if path is not None:
            chosen = path
        elif self.chain:
            chosen = _best_paths(probability, starts, self.first.astype(float), self.steps.astype(float))
        else:  # without a chain nothing is known about positions that nobody tags
            chosen = np.where(answered, probability.argmax(axis=1), UNKNOWN)
        sizes = np.diff(starts)
        table = np.full((len(sizes), int(sizes.max(initial=0))), ABSENT, dtype=np.int32)
        table[np.arange(table.shape[1]) < sizes[:, None]] = chosen
        right = np.take_along_axis(probability, np.maximum(chosen, 0)[:, None], axis=1)[:, 0] * (chosen >= 0)
        item = np.repeat(np.arange(len(sizes)), sizes)
        judged = np.bincount(item, chosen >= 0, minlength=len(sizes))
        confidence = np.minimum(np.bincount(item, right, minlength=len(sizes)) / np.maximum(judged, 1.0), 1.0)
        pieces = as_object_array(np.split(probability[:, 1] if self.binary else probability, starts[1:-1]))
        return Posterior(table, confidence, details={"tag_probability": pieces})

    def restore(self, fields: Mapping[str, Any]) -> AnswerParameters:
        parameters = super().restore(fields)
        if (len(parameters.initial) > 0) != self.chain:
            raise ModelFormatError(
                f"The model was fitted {'without' if self.chain else 'with'} a chain over the positions, unlike the "
                "given space. Pass the space that it was fitted with."
            )
        return parameters


def _best_paths(scores: FloatArray, starts: IntArray, initial: FloatArray, transition: FloatArray) -> IntArray:
    from consilience.label_types.tags.kernels import best_paths

    with np.errstate(divide="ignore"):
        return best_paths(scores, starts, np.log(initial), np.log(transition))


def _padded(labels: Batch, observed: BoolArray) -> Batch:
    """Return ``(n, m, length)`` codes from cells of one or of different lengths; absent where there is no vote."""
    if labels.ndim == 3 and labels.dtype != object:
        return np.where(observed[:, :, None], labels, labels.dtype.type(ABSENT))
    rows, columns = np.nonzero(observed)
    cells = [np.asarray(labels[row, column]) for row, column in zip(rows, columns, strict=True)]
    width = max((len(cell) for cell in cells), default=0)
    table = np.full((*observed.shape, width), ABSENT, dtype=cells[0].dtype if cells else np.int8)
    for row, column, cell in zip(rows, columns, cells, strict=True):
        table[row, column, : len(cell)] = cell
    return table


def _known(chunk: Chunk, exists: BoolArray) -> tuple[IntArray, BoolArray]:
    """Return ``(n, width)`` known tags and the positions there are, or say whose length differs from the votes."""
    rows = chunk.gold_rows
    told = _padded(np.asarray(chunk.known)[rows][:, None], np.ones((len(rows), 1), dtype=bool))[:, 0]
    sizes, voted = (told != ABSENT).sum(axis=1), exists[rows].sum(axis=1)
    wrong = np.flatnonzero((sizes != voted) & (voted > 0))
    if len(wrong):
        first = int(wrong[0])
        raise InvalidLabelError(
            f"Row {rows[first]}: the known label has {sizes[first]} tags and the votes have {voted[first]}. "
            "Give both the same positions; None or -1 where a tag is unknown."
        )
    width = max(exists.shape[1], int(sizes.max(initial=0)))
    truth = np.full((len(chunk), width), ABSENT, dtype=np.int64)
    truth[rows[:, None], np.arange(told.shape[1])[:width]] = told[:, :width]
    wider = np.zeros(truth.shape, dtype=bool)
    wider[:, : exists.shape[1]] = exists
    return truth, wider | (truth != ABSENT)
