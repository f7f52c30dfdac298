"""A few made-up items that stand for all: the same means and covariances, and so the same likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray
from consilience.families.base import Chunk, Passes, Sums
from consilience.families.vector_moments import VectorMoments, vector_moments
from consilience.families.vector_rounds import Run

__all__ = ["run_over"]

NAMES = ("both", "total", "square", "product")


def run_over(moments: VectorMoments, sums: Sums, passes: Passes | None) -> Run | None:
    """Return how EM reaches the votes: through a table that stands for them, or by passes over (a sample of) them.

    Where nobody abstains the Gaussian likelihood depends on means and covariances alone, so items made up to have
    the same ones do. None where neither is possible.
    """
    rows = 2 * int((np.diag(moments.count) > 0).sum()) * moments.mean.shape[1]
    if moments.full and moments.complete and (passes is None or rows < passes.n_sampled):
        return _over_table(moments, sums)
    return None if passes is None else passes.over_sample


def _over_table(moments: VectorMoments, sums: Sums) -> Run:
    m = len(moments.mean)
    parts: list[tuple[Chunk, float]] = []
    left: dict[str, npt.NDArray[Any]] = {name: sums[name] for name in NAMES}
    if "gold_both" in sums:
        gold = {name: sums[f"gold_{name}"] for name in NAMES}
        items, weight = _stand_ins(vector_moments(Sums(gold)))
        known = np.ones(len(items), dtype=bool)
        parts.append((_chunk(items[:, :m], np.diag(gold["both"])[:m] > 0, items[:, m], known), weight))
        left = {name: left[name] - gold[name][:m, :m] for name in NAMES}
    items, weight = _stand_ins(vector_moments(Sums(left)))
    if weight > 0:
        parts.append((_chunk(items, np.diag(left["both"]) > 0), weight))

    def run(function: Callable[[Chunk], Sums]) -> Sums:
        total = Sums.zero()
        for chunk, weight in parts:
            total = total + Sums({name: weight * part for name, part in function(chunk).parts.items()})
        return total

    return run


def _chunk(labels: FloatArray, votes: Any, known: Any = None, is_known: Any = None) -> Chunk:
    observed = np.repeat(np.asarray(votes)[None], len(labels), axis=0)
    return Chunk(labels, observed, np.zeros(len(labels), dtype=np.int64), known, is_known)


def _stand_ins(moments: VectorMoments) -> tuple[FloatArray, float]:
    """Return items ``(k, m, d)`` with the given means and covariances, and how many true items each stands for."""
    m, d = moments.mean.shape
    count = float(np.diag(moments.count).max(initial=0.0))
    flat = moments.covariance.swapaxes(1, 2).reshape(m * d, m * d)
    values, vectors = np.linalg.eigh(0.5 * (flat + flat.T))
    kept = np.flatnonzero(values > 1e-14 * max(float(values[-1]), 1e-300))
    kept = kept if len(kept) else np.array([len(values) - 1])
    steps = (vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0) * len(kept))).T
    items = np.concatenate([moments.mean.ravel() + steps, moments.mean.ravel() - steps])
    return items.reshape(-1, m, d), count / len(items)
