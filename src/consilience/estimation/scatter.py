"""How the scatter of agreement from item to item shows which sources repeat others word for word.

Sources that agree because both are good agree about as much on every item. Sources of which one repeats the other on
some items agree there in full, and elsewhere as they otherwise would, so that their agreement scatters more at the same
mean. With y the mean agreement of two sources and v its variance from item to item,

    independent:   v = V(y) = A (1 - y^2) + B y (1 - y) + (1 - A) (h_a s_a q_b^2 + h_b s_b q_a^2),   s = q (1 - q)
    word for word: v = (1 - c) V(y0) + c (1 - c) (1 - y0)^2,   y = y0 + c (1 - y0)

A is the variance at chance and B how far sources are right in full or not at all, as on items that are easy or hard
for everybody; h_a is the same for one source that knows or guesses. They are learned from the table, with normal
priors of mean 0. For classes B = 1 - A, the two lines are one, and scatter says nothing.

The evidence is that of a linear regression. It is averaged over whether sources differ in h, and over whether the
groups of the explanation repeat word for word or share errors in another way, which leaves V(y).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.estimation.pair_table import BORROWED_ITEMS

__all__ = ["Scatter"]

#: Probability that sources that copy each other repeat votes exactly.
VERBATIM = 0.5
#: Standard deviation of B. That of A is 1, its largest value.
EASE = 0.6
#: Standard deviation of h between sources, if sources differ.
NATURE = 0.5
#: Relative misfit of a pair to the curve.
MISFIT = 0.1
#: Variances and relative pivots below this are rounding errors.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Scatter:
    """The variances of agreement as the regression needs them, in units of their smoothed values."""

    value: FloatArray  # (m, m) mean agreement
    ratio: FloatArray  # (m, m) variance over the smoothed one
    smooth: FloatArray  # (m, m) variance, including a few items of average variance
    error: FloatArray  # (m, m) squared relative error of the variance; infinite where a pair does not count
    level: float  # about A
    power: float  # of the likelihood

    @classmethod
    def of(
        cls, variance: FloatArray, value: FloatArray, both: FloatArray, usable: BoolArray, power: float
    ) -> Scatter | None:
        """Return the scatter of the pairs; nothing where no agreement varies."""
        value = np.clip(value, -1.0, 1.0)
        # A variance below the square of rounding errors is zero.
        variance = np.where(usable & np.isfinite(variance) & (variance > ROUNDING), variance, 0.0)
        # Votes that have always agreed so far may disagree on the next item.
        apart = np.maximum(1.0 - value, 1.0 / (both + 1.0))
        average = float(variance.sum() / max(apart[usable].sum(), 1e-300))
        if average <= 0.0:
            return None
        smooth = (both * variance + BORROWED_ITEMS * average * apart) / (both + BORROWED_ITEMS)
        # As for a normal variable, 2 / n, over the items that differ, because these determine the variance.
        error = np.where(usable, 2.0 / (both * np.minimum(apart, 1.0)), np.inf)
        level = min(float(np.median((variance / (apart * (1.0 + np.abs(value))))[usable])), 1.0)
        return cls(value, variance / smooth, smooth, error, level, power)

    def evidence(
        self, quality: FloatArray, base: FloatArray, inside: BoolArray, copies: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the log evidence of explanations if their groups do not repeat word for word, and if they do.

        Explanations have qualities ``(B, m)``, the agreement of independent sources ``(B, m, m)``, pairs inside a group
        ``(B, m, m)``, and are of copies or not ``(B,)``. Both include the probability of the case.
        """
        y, size = self.value, np.abs(quality)
        by = (1.0 - self.level) * (size * (1.0 - size))[:, :, None] * (size**2)[:, None, :] / self.smooth
        null = np.stack([1.0 - y**2, y * (1.0 - y), self.smooth * self.ratio]) / self.smooth
        plain = self._regressions(null[:, None], by)
        if not copies.any():
            return plain, np.full(len(size), -np.inf)
        base = np.clip(base, 0.0, 0.98)
        own = np.where(inside, np.minimum((1.0 - y) / (1.0 - base), 1.0), 1.0)
        rest = 1.0 - np.where(own < 1.0, base, y)
        left = self.smooth * self.ratio - own * (1.0 - own) * rest**2
        columns = np.stack([own * rest * (2.0 - rest), own * rest * (1.0 - rest), left]) / self.smooth
        told = self._regressions(columns, own * by) + math.log(VERBATIM)
        return plain + np.where(copies, math.log(1.0 - VERBATIM), 0.0), np.where(copies, told, -np.inf)

    def _regressions(self, columns: FloatArray, by: FloatArray) -> FloatArray:
        """Return the log evidence ``(B,)``; columns, of each or of all, are those of A and B, and what they explain."""
        m = by.shape[1]
        weight = self.power / (self.error + MISFIT**2)
        weighted, steep = weight * columns, weight * by
        # A, B and the rest. A trace of the rest is kept for stability.
        curve = 0.5 * np.einsum("kbij,lbij->bkl", weighted, columns) + np.diag([1.0, EASE**-2, 1e-6])
        whole = np.empty((len(by), m + 3, m + 3))
        whole[:, m:, m:] = curve
        whole[:, :m, m:] = np.einsum("bij,kbij->bik", by, weighted)
        whole[:, m:, :m] = whole[:, :m, m:].transpose(0, 2, 1)
        whole[:, :m, :m] = steep * by.transpose(0, 2, 1)
        np.einsum("bii->bi", whole)[:, :m] = np.einsum("bij,bij->bi", steep, by) + NATURE**-2
        alike, unlike = _pivots(curve), _pivots(whole)
        logs = [-np.log(root[:, :-1]).sum(axis=1) - 0.5 * root[:, -1] ** 2 for root in (alike, unlike)]
        return np.asarray(np.logaddexp(logs[0], logs[1] - m * math.log(NATURE)))


def _pivots(matrices: FloatArray) -> FloatArray:
    """Return the diagonals of the Cholesky factors, however different the scales of the columns are."""
    scale = np.sqrt(np.einsum("bii->bi", matrices))
    unit = matrices / (scale[:, :, None] * scale[:, None, :]) + ROUNDING * np.eye(matrices.shape[1])
    return np.asarray(np.einsum("bii->bi", np.linalg.cholesky(unit)) * scale)
