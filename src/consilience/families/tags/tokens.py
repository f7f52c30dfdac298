"""Sequences as the positions they consist of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from consilience.arrays import Batch, BoolArray, IntArray
from consilience.exceptions import InvalidLabelError
from consilience.families.base import Chunk, Passes, Sums
from consilience.families.tags.codes import ABSENT

__all__ = ["TokenPasses", "Tokens", "tokens_of"]


@dataclass(frozen=True)
class Tokens:
    """The positions of some sequences, one after the other.

    Parameters
    ----------
    chunk
        Positions as items: ``(positions, m)`` codes.
    starts
        ``(n + 1,)`` first position of each sequence, and the end of the last.
    """

    chunk: Chunk
    starts: IntArray

    @property
    def sequence(self) -> IntArray:
        """The sequence of each position."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def tokens_of(chunk: Chunk) -> Tokens:
    """Take sequences ``(n, m, length)`` apart; an item has no positions if nobody votes on it and it is not known."""
    labels = _padded(chunk.labels, chunk.observed)
    exists = np.asarray(((labels != ABSENT) & chunk.observed[:, :, None]).any(axis=1))
    truth = None
    if chunk.known is not None and chunk.is_known is not None:
        truth, exists = _known(chunk, exists)
        longer = np.full((*chunk.observed.shape, exists.shape[1] - labels.shape[2]), ABSENT, dtype=labels.dtype)
        labels = np.concatenate([labels, longer], axis=2)
    starts = np.concatenate([[0], np.cumsum(exists.sum(axis=1))]).astype(np.int64)
    codes = np.ascontiguousarray(labels.transpose(0, 2, 1)[exists])
    seen = np.repeat(chunk.observed, np.diff(starts), axis=0) & (codes >= 0)
    codes = np.where(seen, codes, codes.dtype.type(0))
    groups = np.repeat(chunk.groups, np.diff(starts))
    if truth is None:
        return Tokens(Chunk(codes, seen, groups), starts)
    told = truth[exists]
    return Tokens(Chunk(codes, seen, groups, np.maximum(told, 0), told >= 0), starts)


def _padded(labels: Batch, observed: BoolArray) -> Batch:
    """Return ``(n, m, length)`` from cells of different lengths."""
    if labels.ndim == 3 and labels.dtype != object:
        return labels
    n, m = observed.shape
    rows, columns = np.nonzero(observed)
    cells = [np.asarray(labels[row, column]) for row, column in zip(rows, columns, strict=True)]
    width = max((len(cell) for cell in cells), default=0)
    table = np.full((n, m, width), ABSENT, dtype=cells[0].dtype if cells else np.int8)
    for row, column, cell in zip(rows, columns, cells, strict=True):
        table[row, column, : len(cell)] = cell
    return table


def _known(chunk: Chunk, exists: BoolArray) -> tuple[Batch, BoolArray]:
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


@dataclass(frozen=True)
class TokenPasses:
    """Passes that see positions instead of sequences."""

    passes: Passes
    n_items: int

    @property
    def n_sampled(self) -> int:
        return round(self.n_items * self.passes.n_sampled / max(self.passes.n_items, 1))

    @property
    def complete(self) -> bool:
        return self.passes.complete

    def over_all(self, function: Callable[[Chunk], Sums]) -> Sums:
        return self.passes.over_all(lambda chunk: function(tokens_of(chunk).chunk))

    def over_sample(self, function: Callable[[Chunk], Sums]) -> Sums:
        return self.passes.over_sample(lambda chunk: function(tokens_of(chunk).chunk))
