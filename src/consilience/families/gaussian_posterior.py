"""What votes ``offset + slope * y + noise`` say about y: the posterior mean and variance of every item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray, few_votes
from consilience.solvers.pairs import components

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianParameters

__all__ = ["Belief", "arguments_of_few", "believe", "believe_labels"]

#: Rounds of cell weights for heavy tails: while learning, and when labels are asked for.
LEARNING_ROUNDS, LABEL_ROUNDS = 12, 60
#: Items at a time where each has a covariance of its own, and the weight that stands for no vote there.
ROWS, LEAST = 4096, 1e-9


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
    Student-t noise every vote counts ``(nu + 1) / (nu + r^2 / noise)``, found by alternation; that of a dependent
    source counts less by noise of its own, so that an outlier loses its say and its correlation alike.
    """
    slope, noise = parameters.slope, parameters.noise_variance
    expected = parameters.offset + slope * parameters.mean
    if observed.all():
        residual = labels - expected
    else:
        residual = np.where(observed, labels - expected, 0.0)
    gain = slope / noise
    prior = float(parameters.shrink) / parameters.variance
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


def believe_labels(
    parameters: GaussianParameters, labels: npt.NDArray[Any], observed: BoolArray, rounds: int = LABEL_ROUNDS
) -> Belief:
    """Return the same where only mean and variance are asked for: from vote to vote, if few of many sources vote."""
    if parameters.dependent.any() or not few_votes(observed):
        return believe(parameters, labels, observed, rounds)
    from consilience.kernels.sparse_scores import beliefs_of_few

    centred, variance = beliefs_of_few(labels, observed, *arguments_of_few(parameters, rounds))
    nothing = np.zeros((len(labels), 0))
    return Belief(parameters.mean + centred, variance, nothing, nothing)


def arguments_of_few(parameters: GaussianParameters, rounds: int) -> tuple[Any, ...]:
    """Return what the kernels that go from vote to vote need besides the votes, in their order."""
    return (
        parameters.offset + parameters.slope * parameters.mean,
        parameters.slope,
        parameters.noise_variance,
        float(parameters.shrink) / float(parameters.variance),
        float(parameters.variance),
        float(parameters.degrees),
        rounds,
        1e-6 * float(np.sqrt(parameters.variance)),
    )


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
    groups = _groups(parameters.dependent)
    gain = np.where(parameters.dependent.any(axis=1), 0.0, slope / noise)

    def weighed(weight: FloatArray) -> Belief:
        evidence, precision = (weight * residual) @ gain, weight @ (slope * gain)
        for group in groups:
            added, told = _joint_weighted(parameters, residual, weight, group)
            evidence, precision = evidence + told, precision + added
        return _finished(parameters, evidence, precision, prior, residual, weight)

    belief = weighed(seen)
    for _ in range(rounds):
        centred = belief.mean - parameters.mean
        misfit = (residual - centred[:, None] * slope) ** 2 + belief.variance[:, None] * slope**2
        updated = weighed(seen * (degrees + 1.0) / (degrees + misfit / noise))
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


def _joint_weighted(
    parameters: GaussianParameters, residual: FloatArray, weight: FloatArray, group: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return precision and evidence of dependent sources whose votes count by weights; zero weight is no vote."""
    noise = parameters.noise[np.ix_(group, group)]
    slope, own = parameters.slope[group], np.diag(noise)
    added, told = np.zeros(len(residual)), np.zeros(len(residual))
    for start in range(0, len(residual), ROWS):
        rows = slice(start, start + ROWS)
        extra = (1.0 / np.clip(weight[rows][:, group], LEAST, 1.0) - 1.0) * own
        matrices = noise + extra[:, :, None] * np.eye(len(group))
        solved = np.linalg.solve(matrices, np.broadcast_to(slope[:, None], (len(extra), len(group), 1)))[:, :, 0]
        added[rows] = np.maximum(solved @ slope, 0.0)
        told[rows] = np.einsum("ng,ng->n", residual[rows][:, group], solved)
    none = weight[:, group].max(axis=1) == 0.0
    return np.where(none, 0.0, added), np.where(none, 0.0, told)
