"""One common factor behind votes, on some items beside a known label: maximum likelihood from moments alone.

A known label is one more measurement of the factor, ``offset + slope * factor + noise``, present on the labelled items
only. So it sharpens the lines of the sources, as far as labels and votes measure the same; if labels are exact, their
noise comes out near zero and the factor is known there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.solvers.factor import NOISE_FLOOR, positive_definite

__all__ = ["Block", "LabelledFit", "slopes_with_labels"]

#: A round may change slopes and noise by this, or by this share of the sampling error, and be the last one.
_TOLERANCE, _SHARE = 1e-7, 1e-4
_ROUNDS = 3000


@dataclass(frozen=True, slots=True)
class Block:
    """Sums over some items: their number, of the votes ``(k,)``, and of their products ``(k, k)``."""

    count: float
    total: FloatArray
    product: FloatArray

    def scaled(self, centre: FloatArray, unit: FloatArray) -> Block:
        """Return the sums of ``(vote - centre) / unit``."""
        moved = self.total - self.count * centre
        product = self.product - np.outer(self.total, centre) - np.outer(centre, moved)
        scaled = (moved / unit, product / np.outer(unit, unit))
        return Block(self.count, *(part.astype(np.float64) for part in scaled))  # sums may come in extended precision


@dataclass(frozen=True, slots=True)
class LabelledFit:
    """Slopes of m sources on a factor of mean 0 and variance 1, and their ``(m, m)`` noise."""

    loading: FloatArray
    noise: FloatArray
    converged: bool


@dataclass(frozen=True, slots=True)
class _Expected:
    """Sums over a block of the factor, its square, and its products with what was measured."""

    first: float
    second: float
    product: FloatArray


def slopes_with_labels(
    plain: Block,
    labelled: Block,
    loading: FloatArray,
    noise: FloatArray,
    dependent: BoolArray | None = None,
    *,
    equal: bool = False,
) -> LabelledFit:
    """Return the fit of greatest likelihood to items without and with a known label.

    Parameters
    ----------
    plain
        Sums of the votes over the items without a label.
    labelled
        Sums over the items with one, the label after the m votes.
    loading, noise
        ``(m,)`` and ``(m, m)`` to start from, with offsets at the means.
    dependent
        ``(m, m)`` pairs whose noise may be correlated.
    equal
        Whether all sources have the same slope.

    Examples
    --------
    Labels that are exact reveal the lines, whatever the votes of the three sources have in common.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=20_000)
    >>> votes = 1.0 + np.outer(truth, [1.0, 2.0, 0.5]) + rng.normal(size=(20_000, 3))
    >>> both = np.column_stack([votes, truth])
    >>> empty = Block(0.0, np.zeros(3), np.zeros((3, 3)))
    >>> full = Block(20_000.0, both.sum(axis=0), both.T @ both)
    >>> slopes_with_labels(empty, full, np.ones(3), np.eye(3)).loading.round(1)
    array([1. , 2. , 0.5])
    """
    m = len(loading)
    count = plain.count + labelled.count
    centre, unit = _units(plain, labelled, equal)
    plain, labelled = plain.scaled(centre[:m], unit[:m]), labelled.scaled(centre, unit)
    unit = unit.astype(np.float64)  # sums may come in extended precision
    size = np.outer(unit[:m], unit[:m])
    allowed = np.eye(m, dtype=bool) if dependent is None else dependent | np.eye(m, dtype=bool)
    correlated = bool(allowed.sum() > m)
    covariance = (plain.product + labelled.product[:m, :m]) / count
    slope, full = loading / unit[:m], noise / size
    spread = np.maximum(np.diag(full), NOISE_FLOOR * np.diag(covariance))
    label = np.array([0.0, 0.7, 0.5])  # offset, slope and noise of the label
    here = np.zeros(m)  # the factor has mean 0 over all items, so the offsets are the means of the votes
    converged, limit = False, max(_TOLERANCE, _SHARE / np.sqrt(count))
    for _ in range(_ROUNDS):
        evidence = np.asarray(
            np.linalg.solve(full.astype(np.float64), slope.astype(np.float64)) if correlated else slope / spread,
            dtype=np.float64,
        )
        precision = float(1.0 + slope @ evidence)
        one = _expected(plain, here, evidence, precision)
        told = label[1] / label[2]
        two = _expected(labelled, np.append(here, label[0]), np.append(evidence, told), precision + told * label[1])
        first = (one.first + two.first) / count
        variance = max((one.second + two.second) / count - first**2, 1e-12)
        shared = (one.product + two.product[:m]) / count
        updated = shared / variance
        if equal:
            updated = np.full(m, (shared / spread).sum() / (variance * (1.0 / spread).sum()))
        left = covariance - np.outer(updated, shared) - np.outer(shared, updated)
        left += variance * np.outer(updated, updated)
        remaining = np.maximum(np.diag(left), NOISE_FLOOR * np.diag(covariance))
        if correlated:
            full = positive_definite(np.where(allowed, left, 0.0), remaining)
        label = _label_line(labelled, two)
        label = np.array([label[0] + label[1] * first, label[1] * np.sqrt(variance), label[2]])
        updated = updated * np.sqrt(variance)  # so that the factor keeps variance 1
        change = np.abs(updated - slope).max() + np.abs(remaining / spread - 1.0).max()
        slope, spread = updated, remaining
        if change < limit:
            converged = True
            break
    return LabelledFit(slope * unit[:m], (full if correlated else np.diag(spread)) * size, converged)


def _units(plain: Block, labelled: Block, equal: bool) -> tuple[FloatArray, FloatArray]:
    m = len(plain.total)
    count = plain.count + labelled.count
    mean = (plain.total + labelled.total[:m]) / count
    square = (np.diag(plain.product) + np.diag(labelled.product)[:m]) / count
    centre = np.append(mean, labelled.total[m] / labelled.count)
    square = np.append(square, labelled.product[m, m] / labelled.count)
    unit = np.sqrt(np.maximum(square - centre**2, 1e-300))
    if equal:  # one unit for all votes, so that equal slopes stay equal
        unit[:m] = np.sqrt(np.mean(unit[:m] ** 2))
    return centre, unit


def _expected(block: Block, offset: FloatArray, evidence: FloatArray, precision: float) -> _Expected:
    gain = evidence / precision
    shift = float(gain @ offset)
    first = float(gain @ block.total) - block.count * shift
    product = block.product @ gain - block.total * shift
    square = float(gain @ product) - shift * first
    return _Expected(first, square + block.count / precision, product)


def _label_line(block: Block, expected: _Expected) -> FloatArray:
    """Return offset, slope and noise of the label around the factor."""
    n = block.count
    first, mean = expected.first / n, block.total[-1] / n
    variance = max(expected.second / n - first**2, 1e-12)
    shared = expected.product[-1] / n - first * mean
    own = block.product[-1, -1] / n - mean**2
    slope = shared / variance
    return np.array([mean - slope * first, slope, max(own - slope * shared, NOISE_FLOOR * own)])
