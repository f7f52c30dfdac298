"""What votes ``offset + slope * y + noise`` say about y: the posterior mean and variance of every item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.solvers.pairs import components

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianParameters

__all__ = ["Belief", "believe"]

#: Rounds of cell weights for heavy tails: while learning, and when labels are asked for.
LEARNING_ROUNDS, LABEL_ROUNDS = 12, 60


@dataclass(frozen=True)
class Belief:
    """Posterior of every item.

    Parameters
    ----------
    mean, variance
        ``(n,)``.
    residual
        ``(n, m)`` votes minus what the prior mean of y lets expect; zero where there is no vote.
    cell_weight
        ``(n, m)`` how much each vote counts: one for Gaussian noise, less for outliers, zero without a vote.
    """

    mean: FloatArray
    variance: FloatArray
    residual: FloatArray
    cell_weight: FloatArray


def believe(
    parameters: GaussianParameters, labels: npt.NDArray[Any], observed: BoolArray, rounds: int = LABEL_ROUNDS
) -> Belief:
    """Return the posterior of y for any pattern of abstentions.

    Independent sources add ``slope^2 / noise`` to the precision. Dependent ones are taken together, by
    generalised least squares within each group of theirs and for each pattern of votes in it. Under
    Student-t noise every vote counts ``(nu + 1) / (nu + r^2 / noise)``, found by alternation.
    """
    slope, noise = parameters.slope, parameters.noise_variance
    expected = parameters.offset + slope * parameters.mean
    if observed.all():
        residual = labels - expected
    else:
        residual = np.where(observed, labels - expected, 0.0)
    gain = slope / noise
    prior = 1.0 / parameters.variance if parameters.shrink else 0.0
    weight = observed.astype(np.float64)
    if np.isfinite(parameters.degrees):
        return _reweighted(parameters, residual, weight, prior, rounds)
    alone = ~parameters.dependent.any(axis=1)
    precision = weight @ np.where(alone, slope * gain, 0.0)
    evidence = residual @ np.where(alone, gain, 0.0)
    for group in _groups(parameters.dependent):
        added, told = _joint(parameters, residual, observed, group)
        precision += added
        evidence += told
    return _finished(parameters, evidence, precision, prior, residual, weight)


def _finished(
    parameters: GaussianParameters,
    evidence: FloatArray,
    precision: FloatArray,
    prior: float,
    residual: FloatArray,
    weight: FloatArray,
) -> Belief:
    informed = precision > 0
    total = np.where(informed, precision + prior, 1.0)
    mean = parameters.mean + np.where(informed, evidence / total, 0.0)
    variance = np.where(informed, 1.0 / total, parameters.variance)
    return Belief(mean, variance, residual, weight)


def _reweighted(
    parameters: GaussianParameters, residual: FloatArray, seen: FloatArray, prior: float, rounds: int
) -> Belief:
    slope, noise, degrees = parameters.slope, parameters.noise_variance, parameters.degrees
    gain = slope / noise
    weight = seen
    belief = _finished(parameters, residual @ gain, weight @ (slope * gain), prior, residual, weight)
    for _ in range(rounds):
        centred = belief.mean - parameters.mean
        misfit = (residual - centred[:, None] * slope) ** 2 + belief.variance[:, None] * slope**2
        weight = seen * (degrees + 1.0) / (degrees + misfit / noise)
        evidence, precision = (weight * residual) @ gain, weight @ (slope * gain)
        updated = _finished(parameters, evidence, precision, prior, residual, weight)
        step = np.abs(updated.mean - belief.mean).max(initial=0.0)
        belief = updated
        if step < 1e-6 * np.sqrt(parameters.variance):
            break
    return belief


def _groups(dependent: BoolArray) -> list[IntArray]:
    involved = np.flatnonzero(dependent.any(axis=1))
    if len(involved) == 0:
        return []
    label = components(dependent)
    return [np.flatnonzero(label == one) for one in np.unique(label[involved])]


def _joint(
    parameters: GaussianParameters, residual: FloatArray, observed: BoolArray, group: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return precision and evidence of a group of dependent sources, pattern by pattern."""
    patterns, which = np.unique(observed[:, group], axis=0, return_inverse=True)
    gains, added = np.zeros(patterns.shape), np.zeros(len(patterns))
    for row, pattern in enumerate(patterns):
        members = group[pattern]
        if len(members):
            told = parameters.slope[members]
            solved = np.linalg.solve(parameters.noise[np.ix_(members, members)], told)
            gains[row, pattern] = solved
            added[row] = max(float(told @ solved), 0.0)
    which = which.reshape(-1)
    return added[which], np.einsum("ng,ng->n", residual[:, group], gains[which])
