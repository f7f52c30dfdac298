"""The parameters of sources that vote tags."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.families.base import Chunk, Parameters
from consilience.families.confusion.parameters import ConfusionParameters

__all__ = ["SequenceParameters", "TagParameters", "tag_chunk", "tag_votes"]


@dataclass(frozen=True)
class TagParameters(Parameters):
    """What is known about sources that say of d tags whether they are present.

    Parameters
    ----------
    sensitivity, specificity
        ``(m, d)``: how often a source says 1 where the truth is 1, and 0 where it is 0.
    prior
        ``(d,)`` how often each tag is present.
    correlation
        ``(m, m)``; zero outside the dependencies.
    cost, cost_standard_error
        ``(m,)`` expected share of wrong tags.
    strength
        ``(2,)`` pseudo-votes by which sensitivities and specificities are pulled to those of the source over all tags.
    shares
        Return vote shares instead of a posterior (the plain vote).
    """

    sensitivity: FloatArray
    specificity: FloatArray
    prior: FloatArray
    correlation: FloatArray
    cost: FloatArray
    cost_standard_error: FloatArray
    strength: FloatArray
    shares: bool = False

    @property
    def n_tags(self) -> int:
        """Number of tags."""
        return len(self.prior)

    def of_tag(self, tag: int) -> ConfusionParameters:
        """Return what is known about one tag, as two classes."""
        m = len(self.cost)
        table = np.empty((m, 2, 2))
        table[:, 1, 1], table[:, 0, 1] = self.sensitivity[:, tag], 1.0 - self.sensitivity[:, tag]
        table[:, 0, 0], table[:, 1, 0] = self.specificity[:, tag], 1.0 - self.specificity[:, tag]
        return ConfusionParameters(
            table=table,
            full=np.ones(m, dtype=bool),
            prior=np.array([1.0 - self.prior[tag], self.prior[tag]]),
            shift=np.zeros(2),
            abstention=np.zeros((m, 2)),
            correlation=self.correlation,
            accuracy=1.0 - self.cost,
            cost_standard_error=self.cost_standard_error,
            shares=self.shares,
        )

    def probabilities(self, labels: Batch, observed: BoolArray) -> FloatArray:
        """Return ``(n, d)`` probabilities that a tag is present."""
        chosen = [self.of_tag(tag).probabilities(*tag_votes(labels, observed, tag))[:, 1] for tag in range(self.n_tags)]
        return np.stack(chosen, axis=1)

    def error_rates(self) -> FloatArray:
        """Return ``(m, d)`` expected shares of wrong votes."""
        wrong: FloatArray = self.prior * (1.0 - self.sensitivity) + (1.0 - self.prior) * (1.0 - self.specificity)
        return wrong


@dataclass(frozen=True)
class SequenceParameters(Parameters):
    """What is known about sources that give one of k tags to every position.

    Parameters
    ----------
    table
        ``(m, k, k)`` P(vote | tag) as ``[source, vote, tag]``.
    prior
        ``(k,)`` how frequent the tags are.
    initial, transition
        ``(k,)`` and ``(k, k)`` (rows: the tag before) laws of the chain; empty where positions are independent.
    correlation, accuracy, cost_standard_error, shares
        As in `ConfusionParameters`.
    """

    table: FloatArray
    prior: FloatArray
    initial: FloatArray
    transition: FloatArray
    correlation: FloatArray
    accuracy: FloatArray
    cost_standard_error: FloatArray
    shares: bool = False

    @classmethod
    def of(
        cls, found: ConfusionParameters, initial: FloatArray | None = None, transition: FloatArray | None = None
    ) -> SequenceParameters:
        """Return the parameters of positions, with the law of a chain where there is one."""
        return cls(
            table=found.table,
            prior=found.prior,
            initial=np.zeros(0) if initial is None else initial,
            transition=np.zeros((0, 0)) if transition is None else transition,
            correlation=found.correlation,
            accuracy=found.accuracy,
            cost_standard_error=found.cost_standard_error,
            shares=found.shares,
        )

    @property
    def chained(self) -> bool:
        """Whether neighbouring tags depend on each other."""
        return len(self.initial) > 0

    def of_positions(self) -> ConfusionParameters:
        """Return what is known about single positions, as classes."""
        m, k, _ = self.table.shape
        return ConfusionParameters(
            table=self.table,
            full=np.ones(m, dtype=bool),
            prior=self.prior,
            shift=np.zeros(k),
            abstention=np.zeros((m, k)),
            correlation=self.correlation,
            accuracy=self.accuracy,
            cost_standard_error=self.cost_standard_error,
            shares=self.shares,
        )


def tag_votes(labels: Batch, observed: BoolArray, tag: int) -> tuple[Batch, BoolArray]:
    """Return the ``(n, m)`` votes on one tag, and where there is one."""
    if labels.ndim != 3:  # nobody votes, so the labels are as they came
        return np.zeros(observed.shape, dtype=np.int8), np.zeros_like(observed)
    codes = np.ascontiguousarray(labels[:, :, tag])
    seen = observed & (codes >= 0)
    return np.where(seen, codes, np.int8(0)), seen


def tag_chunk(chunk: Chunk, tag: int) -> Chunk:
    """Return the votes on one tag as a chunk of two classes."""
    codes, seen = tag_votes(chunk.labels, chunk.observed, tag)
    if chunk.known is None or chunk.is_known is None or chunk.known.ndim != 2:
        return Chunk(codes, seen, chunk.groups)
    known = chunk.known[:, tag]
    return Chunk(codes, seen, chunk.groups, np.maximum(known, 0), chunk.is_known & (known >= 0))
