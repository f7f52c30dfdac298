"""Means and covariances of vector-valued votes, pairwise complete, from sums that add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import GROUPS, Chunk, Passes, Sums
from consilience.families.pair_fits import group_influence
from consilience.solvers.pairs import all_vote_together

__all__ = ["LIMIT", "VectorMoments", "gold_sums_of", "pair_influence", "vector_moments", "vector_sums"]

#: Up to this many numbers in one item (sources times coordinates), products of all coordinates are kept;
#: beyond, only those of the same coordinate.
LIMIT = 800
#: Numbers in a block of rows.
BLOCK = 1 << 21
#: A source whose variance is below this part of the square of its votes says a constant.
CONSTANT = 1e-16


@dataclass(frozen=True)
class VectorMoments:
    """What the pairs of sources show; of matrices only the diagonals where no other products were kept.

    Parameters
    ----------
    count
        ``(m, m)`` items on which both vote.
    mean
        ``(m, d)`` of all votes of each source.
    covariance
        ``(m, m, d, d)`` or ``(m, m, d)`` over the items on which both vote.
    difference
        Of the same shape; mean outer product of the difference of two votes over the same items.
    varied
        ``(m,)`` sources with two or more different votes.
    full
        Whether products of different coordinates were kept.
    """

    count: FloatArray
    mean: FloatArray
    covariance: FloatArray
    difference: FloatArray
    varied: BoolArray
    full: bool

    @property
    def complete(self) -> bool:
        """Whether all sources that vote do so on the same items, without exception."""
        return all_vote_together(self.count)

    @property
    def own(self) -> FloatArray:
        """``(m, d, d)`` covariance of each source."""
        chosen = np.arange(len(self.count))
        return self.as_matrices(self.covariance[chosen, chosen])

    def as_matrices(self, entries: FloatArray) -> FloatArray:
        """Return entries ``(..., d, d)``, or diagonals ``(..., d)``, as matrices."""
        return entries if self.full else entries[..., None] * np.eye(entries.shape[-1])

    @property
    def pooled(self) -> FloatArray:
        """``(d, d)`` mean covariance of the sources that vary; the identity where none does."""
        d = self.mean.shape[1]
        mean: FloatArray = self.own[self.varied].mean(axis=0) if self.varied.any() else np.eye(d)
        return mean

    @property
    def shared_trace(self) -> FloatArray:
        """``(m, m)`` traces of the covariances between sources."""
        return self._traces(self.covariance)

    @property
    def squared_difference(self) -> FloatArray:
        """``(m, m)`` mean squared distance between two votes."""
        return np.maximum(self._traces(self.difference), 0.0)

    def _traces(self, entries: FloatArray) -> FloatArray:
        traces: FloatArray = np.trace(entries, axis1=2, axis2=3) if self.full else entries.sum(axis=2)
        return traces


def vector_sums(labels: npt.NDArray[Any], observed: BoolArray, full: bool | None = None) -> dict[str, npt.NDArray[Any]]:
    """Return the sums behind `VectorMoments`: raw moments, in extended precision.

    Blocks of rows are centred before they are multiplied and the centre is put back in extended precision, so that
    votes far from zero lose no digits and sums of any parts still add up. ``total[a, b]`` and ``square[a, b]`` are
    over the items on which both vote, of the votes of a; ``product[a, b]`` of both.
    """
    n, m = observed.shape
    d = labels.shape[2]
    full = m * d <= LIMIT if full is None else full
    tail = (d, d) if full else (d,)
    wide = np.longdouble
    sums: dict[str, npt.NDArray[Any]] = {
        "total": np.zeros((m, m, d), dtype=wide),
        "square": np.zeros((m, m, *tail), dtype=wide),
        "product": np.zeros((m, m, *tail), dtype=wide),
        "both": np.zeros((m, m), dtype=np.int64),
    }
    rows = max(BLOCK // (m * d * (d if full else 1)), 64)
    for start in range(0, n, rows):
        _add_block(sums, labels[start : start + rows], observed[start : start + rows], full)
    return sums


def _add_block(sums: dict[str, npt.NDArray[Any]], labels: npt.NDArray[Any], observed: BoolArray, full: bool) -> None:
    size, m, d = labels.shape
    present = observed.astype(np.float64)
    everybody = bool(observed.all())
    filled = np.asarray(labels, dtype=np.float64) if everybody else np.where(observed[..., None], labels, 0.0)
    centre = filled.sum(axis=0) / np.maximum(present.sum(axis=0), 1.0)[:, None]
    votes = filled - centre if everybody else (filled - centre) * present[..., None]
    flat = votes.reshape(size, m * d)
    both = np.rint(present.T @ present).astype(np.int64)
    total = (present.T @ flat).reshape(m, m, d).swapaxes(0, 1)  # [a, b]: of a, where b votes
    far, often = centre.astype(np.longdouble), both.astype(np.longdouble)
    if full:
        product = (flat.T @ flat).reshape(m, d, m, d).swapaxes(1, 2)
        if everybody:
            square = np.repeat(product[np.arange(m), np.arange(m)][:, None], m, axis=1)
        else:
            outer = np.einsum("nad,nae->nade", votes, votes).reshape(size, m * d * d)
            square = (present.T @ outer).reshape(m, m, d, d).swapaxes(0, 1)
        across = np.einsum("abd,be->abde", total, far)  # sum of the centred vote of a, times the centre of b
        own = np.einsum("abd,ae->abde", total, far)
        centres = np.einsum("ad,be->abde", far, far)
        own_centre = np.einsum("ad,ae->ade", far, far)[:, None]
        often = often[..., None, None]
        sums["product"] += product + across + np.swapaxes(across.swapaxes(0, 1), 2, 3) + often * centres
        sums["square"] += square + own + np.swapaxes(own, 2, 3) + often * own_centre
    else:
        product = np.einsum("nad,nbd->abd", votes, votes, optimize=True)
        square = (present.T @ (votes**2).reshape(size, m * d)).reshape(m, m, d).swapaxes(0, 1)
        across = total * far[None]
        often = often[..., None]
        sums["product"] += product + across + across.swapaxes(0, 1) + often * far[:, None] * far[None]
        sums["square"] += square + 2.0 * total * far[:, None] + often * far[:, None] ** 2
    sums["total"] += total + both[..., None] * far[:, None]
    sums["both"] += both


def vector_moments(sums: Sums) -> VectorMoments:
    """Return the moments held in the sums."""
    m = len(sums["both"])
    full = sums["product"].ndim == 4
    items = np.maximum(sums["both"], 1).astype(np.longdouble)[..., None]
    mean = sums["total"] / items
    if full:
        items = items[..., None]
        covariance = sums["product"] / items - np.einsum("abd,bae->abde", mean, mean)
        spread = sums["square"] / items - np.einsum("abd,abe->abde", mean, mean)
        between = covariance + np.swapaxes(covariance, 2, 3)
        gap = mean - mean.swapaxes(0, 1)
        difference = spread + spread.swapaxes(0, 1) - between + np.einsum("abd,abe->abde", gap, gap)
    else:
        covariance = sums["product"] / items - mean * mean.swapaxes(0, 1)
        spread = sums["square"] / items - mean**2
        difference = spread + spread.swapaxes(0, 1) - 2.0 * covariance + (mean - mean.swapaxes(0, 1)) ** 2
    votes = np.diag(sums["both"])
    chosen = np.arange(m)
    own = covariance[chosen, chosen]
    own = np.diagonal(own, axis1=1, axis2=2) if full else own
    raw = sums["square"][chosen, chosen]
    raw = np.diagonal(raw, axis1=1, axis2=2) if full else raw
    # Rounding leaves a trace of variance where there is none.
    varied = (own > CONSTANT * raw / np.maximum(votes, 1)[:, None]) & (own > 0) & (votes >= 2)[:, None]
    return VectorMoments(
        count=sums["both"].astype(np.float64),
        mean=mean[chosen, chosen].astype(np.float64),
        covariance=covariance.astype(np.float64),
        difference=difference.astype(np.float64),
        varied=np.asarray(varied.any(axis=1), dtype=bool),
        full=full,
    )


def gold_sums_of(labels: npt.NDArray[Any], observed: BoolArray, truth: FloatArray) -> dict[str, npt.NDArray[Any]]:
    """Return the sums of votes beside known labels: the moments of the votes with the truth as one more source."""
    joined = np.concatenate([np.asarray(labels, dtype=np.float64), truth[:, None]], axis=1)
    seen = np.concatenate([observed, np.ones((len(truth), 1), dtype=bool)], axis=1)
    full = labels.shape[1] * labels.shape[2] <= LIMIT  # as for the votes alone
    return {f"gold_{name}": part for name, part in vector_sums(joined, seen, full).items()}


def pair_influence(moments: VectorMoments, error: FloatArray, kind: str, passes: Passes | None) -> FloatArray:
    """Return the influence of each group of items on traces of covariances or differences, ``(groups, m, m)``."""
    return group_influence(lambda chunk: _group_sums(chunk, moments, kind), error, moments.count, passes)


def _group_sums(chunk: Chunk, moments: VectorMoments, kind: str) -> Sums:
    m = chunk.observed.shape[1]
    counts, totals = np.zeros((GROUPS, m, m)), np.zeros((GROUPS, m, m))
    if not chunk.observed.any():
        return Sums({"group_count": counts, "group_total": totals})
    centre = moments.mean if kind == "covariance" else moments.mean[moments.varied].mean(axis=0)
    for group in range(GROUPS):
        rows = np.flatnonzero(chunk.groups == group)
        seen = chunk.observed[rows].astype(np.float64)
        votes = np.where(chunk.observed[rows][..., None], chunk.labels[rows] - centre, 0.0)
        product = np.einsum("nad,nbd->ab", votes, votes, optimize=True)
        if kind != "covariance":
            square = (votes**2).sum(axis=2).T @ seen
            product = square + square.T - 2.0 * product
        counts[group], totals[group] = seen.T @ seen, product
    return Sums({"group_count": counts, "group_total": totals})
