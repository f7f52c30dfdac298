"""Means and covariances of real-valued votes, pairwise complete, from sums that add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, few_votes
from consilience.families.base import GROUPS, Chunk, Passes, Sums
from consilience.families.pair_fits import group_influence
from consilience.solvers.pairs import all_vote_together

__all__ = [
    "ScoreMoments",
    "chunk_with_labels",
    "gold_moments",
    "gold_sums_of",
    "pair_influence",
    "score_moments",
    "score_sums",
]

#: Rows at a time, so that the centred copy stays in the cache.
ROWS = 16384
#: A source whose variance is below this part of the square of its votes says a constant.
CONSTANT = 1e-16


@dataclass(frozen=True)
class ScoreMoments:
    """What the pairs of sources show.

    Parameters
    ----------
    count
        ``(m, m)`` items on which both vote.
    mean, variance
        ``(m,)`` of all votes of each source.
    covariance
        ``(m, m)`` over the items on which both vote.
    squared_difference
        ``(m, m)`` mean squared difference over the same items.
    varied
        ``(m,)`` sources with two or more different votes.
    """

    count: FloatArray
    mean: FloatArray
    variance: FloatArray
    covariance: FloatArray
    squared_difference: FloatArray
    varied: BoolArray

    @property
    def complete(self) -> bool:
        """Whether all sources that vote do so on the same items, without exception."""
        return all_vote_together(self.count)

    @property
    def pooled_variance(self) -> float:
        """Mean variance of the sources that vary; one where none does."""
        return float(self.variance[self.varied].mean()) if self.varied.any() else 1.0


def score_sums(labels: npt.NDArray[Any], observed: BoolArray) -> dict[str, npt.NDArray[Any]]:
    """Return the sums behind `ScoreMoments`: raw moments, in extended precision.

    Each block of rows is centred before it is multiplied and the centre is put back in extended precision,
    so that votes far from zero lose no digits and sums of any parts still add up.
    """
    n, m = observed.shape
    wide = np.longdouble
    totals = {name: np.zeros((m, m), dtype=wide) for name in ("product", "total", "square")}
    counts = np.zeros((m, m), dtype=np.int64)
    everybody = bool(observed.all())
    centre = _far_centre(labels[:32]) if everybody and n else np.zeros(m)
    few = not everybody and few_votes(observed)
    step = max(n, 1) if few or (everybody and not centre.any()) else ROWS  # without a copy there is nothing to cut for
    for start in range(0, n, step):
        rows = slice(start, start + step)
        block, seen = labels[rows], observed[rows]
        size = len(block)
        if everybody:
            votes = block - centre if centre.any() else block
            product = votes.T @ votes
            total = np.repeat((np.ones(size) @ votes)[:, None], m, axis=1)
            square = np.repeat(np.diag(product)[:, None], m, axis=1)
            both = np.full((m, m), size, dtype=np.int64)
        elif few:
            from consilience.kernels.sparse_scores import score_sums_of_few

            centre = np.array([block[seen[:, a], a].mean() if seen[:, a].any() else 0.0 for a in range(m)])
            product, total, square, both = score_sums_of_few(block, seen, centre)
        else:
            present = seen.astype(np.float64)
            filled = np.where(seen, block, 0.0)
            centre = filled.sum(axis=0) / np.maximum(present.sum(axis=0), 1.0)
            votes = (filled - centre) * present
            product, total, square = votes.T @ votes, votes.T @ present, (votes**2).T @ present
            both = np.rint(present.T @ present).astype(np.int64)
        far, often = centre.astype(wide)[:, None], both.astype(wide)
        totals["product"] += product + total * far.T + (total * far.T).T + often * far * far.T
        totals["square"] += square + 2.0 * far * total + often * far**2
        totals["total"] += total + far * often
        counts += both
    return {**totals, "both": counts}


def _far_centre(rows: npt.NDArray[Any]) -> FloatArray:
    """Return the means of a few rows where votes are so far from zero that squares would lose digits, else zeros."""
    centre: FloatArray = rows.mean(axis=0, dtype=np.float64)
    near = centre**2 <= 1e4 * rows.var(axis=0, dtype=np.float64)
    return np.zeros_like(centre) if near.all() else centre


def score_moments(sums: Sums) -> ScoreMoments:
    """Return the moments held in the sums."""
    count = sums["both"].astype(np.longdouble)
    items = np.maximum(count, 1.0)
    mean = sums["total"] / items
    covariance = sums["product"] / items - mean * mean.T
    spread = sums["square"] / items - mean**2
    own, level = np.maximum(np.diag(spread), 0.0), np.diag(mean)
    difference = spread + spread.T - 2.0 * covariance + (mean - mean.T) ** 2
    # Rounding leaves a trace of variance where there is none.
    varied = (np.diag(count) >= 2) & (own > CONSTANT * np.diag(sums["square"]) / np.diag(items)) & (own > 0)
    return ScoreMoments(
        count=count.astype(np.float64),
        mean=level.astype(np.float64),
        variance=own.astype(np.float64),
        covariance=covariance.astype(np.float64),
        squared_difference=np.maximum(difference, 0.0).astype(np.float64),
        varied=np.asarray(varied, dtype=bool),
    )


def gold_sums_of(labels: npt.NDArray[Any], observed: BoolArray, truth: FloatArray) -> dict[str, npt.NDArray[Any]]:
    """Return the sums of votes beside known labels: the moments of the votes with the truth as one more source."""
    joined = np.concatenate([labels, truth[:, None]], axis=1).astype(np.float64)
    seen = np.concatenate([observed, np.ones((len(truth), 1), dtype=bool)], axis=1)
    return {f"gold_{name}": part for name, part in score_sums(joined, seen).items()}


def chunk_with_labels(chunk: Chunk) -> Chunk:
    """Return a chunk in which the known labels are the votes of one more source, the last one."""
    known = np.zeros(len(chunk)) if chunk.known is None else chunk.known.astype(np.float64)
    seen = np.zeros(len(chunk), dtype=bool) if chunk.is_known is None else chunk.is_known
    labels = np.concatenate([chunk.labels.astype(np.float64), np.where(seen, known, 0.0)[:, None]], axis=1)
    return Chunk(labels, np.concatenate([chunk.observed, seen[:, None]], axis=1), chunk.groups)


def gold_moments(sums: Sums) -> ScoreMoments:
    """Return the moments of the votes on items of known label; the truth is the last source."""
    return score_moments(Sums({name: sums[f"gold_{name}"] for name in ("both", "product", "total", "square")}))


def pair_influence(moments: ScoreMoments, error: FloatArray, kind: str, passes: Passes | None) -> FloatArray:
    """Return the influence of each group of items on covariances or squared differences, ``(groups, m, m)``."""
    return group_influence(lambda chunk: _group_sums(chunk, moments, kind), error, moments.count, passes)


def _group_sums(chunk: Chunk, moments: ScoreMoments, kind: str) -> Sums:
    m = chunk.observed.shape[1]
    counts, totals = np.zeros((GROUPS, m, m)), np.zeros((GROUPS, m, m))
    centre = moments.mean if kind == "covariance" else np.full(m, moments.mean[moments.varied].mean())
    for group in range(GROUPS):
        rows = np.flatnonzero(chunk.groups == group)
        seen = chunk.observed[rows].astype(np.float64)
        votes = np.where(chunk.observed[rows], chunk.labels[rows] - centre, 0.0)
        product = votes.T @ votes
        if kind != "covariance":
            square = (votes**2).T @ seen
            product = square + square.T - 2.0 * product
        counts[group], totals[group] = seen.T @ seen, product
    return Sums({"group_count": counts, "group_total": totals})
