"""Confidence that comes true on votes that were left out, for laws without exact probabilities.

A label that is made without the votes of a source, and without those of its group, is one more source to it: the two
agree by as much as their qualities tell. How close votes are to such labels therefore shows how good labels of each
stated confidence c are, and ``logit c' = level + slope logit c`` is fitted to it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from consilience.arrays import Axes, Batch, BoolArray, FloatArray, IntArray
from consilience.estimation.protocol import Chunk, Law, Mixture, Parameters

#: Number of held-out votes. For sources that remove a third of the chance cost, confidence is then known to about .03.
HELD_OUT = 1000
#: Sources that share errors with at least this probability are held out together. A missing vote costs little, but a
#: remaining copy would make the label look right.
SHARING = 0.05
#: Prior standard deviation of the level and of the log slope: log-odds are believed to within a factor of two.
SHRINKAGE = 0.7
#: Confidence is kept this far from 0 and 1, where log odds are infinite.
EDGE = 1e-3
#: The fit of the line ends when a step changes log-odds or the log slope by less than this, or after so many steps.
STILL, MAX_STEPS = 1e-4, 50
#: Shares of the chance cost at which agreement is tabulated.
SHARES = np.linspace(0.0, 1.0, 51)


@dataclass(frozen=True, kw_only=True)
class HeldOutParameters(Parameters):
    """Parameters with the line that makes confidence come true."""

    confidence_level: Annotated[float, Axes("")] = 0.0
    confidence_slope: Annotated[float, Axes("", 0.0)] = 1.0

    def come_true(self, confidence: FloatArray) -> FloatArray:
        """Return the confidence that labels of this stated one deserve."""
        if self.confidence_level == 0.0 and self.confidence_slope == 1.0:
            return confidence
        line = self.confidence_level + self.confidence_slope * _log_odds(confidence)
        return np.where(confidence > 0.0, 1.0 / (1.0 + np.exp(-line)), 0.0)


class HeldOutLaw(Law):
    """A law whose confidence is compared with votes that were left out."""

    @abstractmethod
    def agreement(self, parameters: Any, votes: Batch, labels: Batch) -> FloatArray:
        """Return how much votes agree with labels, pair by pair."""

    @abstractmethod
    def expected_agreement(self, parameters: Any, share: FloatArray) -> FloatArray:
        """Return ``(m, len(share))`` mean agreements of each source with labels that remove this share of chance."""

    def foresee(self, mixture: Mixture, together: FloatArray, sample: Chunk) -> Mixture:
        if len(mixture) != 1 or not isinstance(mixture[0][1], HeldOutParameters):
            return mixture
        parameters: Any = mixture[0][1]
        expected = self.expected_agreement(parameters, SHARES)
        others = (together < SHARING) & ~np.eye(len(together), dtype=bool)
        found = _left_out(sample, others, expected[:, -1] - expected[:, 0])
        if found is None:
            return mixture
        rows, sources = found
        labels = sample.labels[rows]
        belief = self.posterior(parameters, labels, sample.observed[rows] & others[sources], "auto")
        agreement = self.agreement(parameters, labels[np.arange(len(rows)), sources], belief.labels)
        level, slope = _line(belief.confidence, agreement, sources, expected)
        return ((1.0, replace(parameters, confidence_level=level, confidence_slope=slope)),)


def _left_out(sample: Chunk, others: BoolArray, told: FloatArray) -> tuple[IntArray, IntArray] | None:
    """Return items and sources whose votes are left out, more often where a source tells more; None without any."""
    possible = sample.observed & (sample.observed @ others.T)
    chance = np.where(possible, np.maximum(told, 0.0), 0.0)
    count = min(HELD_OUT, int((chance > 0).sum()))
    if count < 3:
        return None
    order = sample.sources  # so that the draw does not depend on the order of the sources
    flat = chance[:, order].ravel()
    drawn = np.random.default_rng(0).choice(flat.size, count, replace=False, p=flat / flat.sum())
    rows, places = np.divmod(drawn, len(order))
    return rows, order[places]


def _line(stated: FloatArray, agreement: FloatArray, sources: IntArray, expected: FloatArray) -> tuple[float, float]:
    """Return level and slope of least squared difference between agreements and their expectation."""
    odds = _log_odds(stated)
    middle = float(odds.mean())
    count = np.bincount(sources, minlength=len(expected))
    mean = np.bincount(sources, agreement, minlength=len(expected)) / np.maximum(count, 1)
    scatter = max(float(((agreement - mean[sources]) ** 2).mean()), 1e-12 * float((agreement**2).mean()), 1e-300)
    place = sources * len(SHARES)
    flat = expected.ravel()

    def look(line: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return what is to be least, half of its downhill slope and half of its curvature."""
        turned = np.exp(line[1]) * (odds - middle)
        part = 0.5 + 0.5 * np.tanh(0.5 * (middle + line[0] + turned))  # the logistic function, without overflow
        share = (len(SHARES) - 1) * part
        low = np.minimum(share.astype(np.int64), len(SHARES) - 2)
        left, right = flat[place + low], flat[place + low + 1]
        missed = agreement - left - (share - low) * (right - left)
        by = (right - left) * share * (1.0 - part) * np.stack([np.ones_like(turned), turned])
        spent = float(missed @ missed / scatter + ((line / SHRINKAGE) ** 2).sum())
        return spent, by @ missed / scatter - line / SHRINKAGE**2, by @ by.T / scatter + np.eye(2) / SHRINKAGE**2

    line, damp = np.zeros(2), 1e-3
    spent, downhill, curvature = look(line)
    for _ in range(MAX_STEPS):
        step = np.clip(np.linalg.solve(curvature + damp * np.diag(np.diag(curvature)), downhill), -1.0, 1.0)
        found = look(line + step)
        if found[0] <= spent:
            line, damp = line + step, damp / 10.0
            spent, downhill, curvature = found
        else:
            damp *= 10.0
        if np.abs(step).max() < STILL:
            break
    slope = float(np.exp(line[1]))
    return float(line[0] + middle * (1.0 - slope)), slope


def _log_odds(confidence: FloatArray) -> FloatArray:
    inside = np.clip(confidence, EDGE, 1.0 - EDGE)
    return np.asarray(np.log(inside) - np.log1p(-inside))
