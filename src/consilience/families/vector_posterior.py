"""What the votes of an item say about a vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.solvers.covariances import inverses, log_determinants, positive_part
from consilience.solvers.pairs import components

if TYPE_CHECKING:
    from consilience.families.vector import VectorParameters

__all__ = ["Belief", "Evidence", "believe", "precisions", "weigh"]

#: Numbers that the covariances of a block of items may take.
BLOCK = 1 << 22


@dataclass(frozen=True)
class Evidence:
    """What votes say about points near which they are taken.

    Parameters
    ----------
    pulled
        ``(n, d)`` sum of the residuals, each times the precision of its source.
    square, spread
        ``(n,)`` sum of the squared residuals in units of the noise, and log determinant of that noise.
    precision
        ``(k, d, d)`` total precision of the votes for each pattern of abstentions.
    pattern
        ``(n,)`` the pattern of each item.
    """

    pulled: FloatArray
    square: FloatArray
    spread: FloatArray
    precision: FloatArray
    pattern: IntArray


@dataclass(frozen=True)
class Belief:
    """The posterior of y.

    Parameters
    ----------
    mean
        ``(n, d)``.
    covariance, pattern
        ``(k, d, d)`` covariance for each pattern of abstentions, and ``(n,)`` the pattern of each item.
    log_density
        ``(n,)`` of the votes, without the constant; zero for items without votes.
    """

    mean: FloatArray
    covariance: FloatArray
    pattern: IntArray
    log_density: FloatArray


def _blocks(n: int, d: int) -> Iterator[slice]:
    """Yield rows that are taken together, so that one covariance per row stays small in memory."""
    rows = max(BLOCK // (d * d), 256)
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


def precisions(parameters: VectorParameters) -> FloatArray:
    """Return the inverse noise covariances ``(m, d, d)``; zero for sources that do not count."""
    return inverses(parameters.noise) * parameters.used[:, None, None]


def weigh(parameters: VectorParameters, residual: FloatArray, observed: BoolArray) -> Evidence:
    """Add up what the votes say, given their residuals ``(n, m, d)``, zero where nobody votes.

    Independent sources add their precisions. Dependent ones are taken together, by generalised least squares
    within each group of theirs and for each pattern of votes in it.
    """
    n, _, d = residual.shape
    counted = observed & parameters.used
    patterns, pattern = _patterns(counted)
    inverse = precisions(parameters)
    size = log_determinants(parameters.noise)
    groups = _groups(parameters)
    alone = parameters.used.copy()
    for group in groups:
        alone[group] = False
    pulled, square = np.zeros((n, d)), np.zeros(n)
    for source in np.flatnonzero(alone):
        turned = residual[:, source] @ inverse[source]
        pulled += turned
        square += np.einsum("nd,nd->n", turned, residual[:, source])
    shown = patterns.astype(np.float64)
    precision = np.tensordot(shown * alone, inverse, axes=1)
    spread = (shown * alone) @ np.where(parameters.used, size, 0.0)
    for group in groups:
        joint = joint_noise(parameters, group)
        kinds, which = _patterns(patterns[:, group])
        for kind, present in enumerate(kinds):
            members = np.flatnonzero(present)
            if len(members) == 0:
                continue
            entries = (members[:, None] * d + np.arange(d)).ravel()
            solved = np.linalg.inv(joint[np.ix_(entries, entries)])
            together = solved.reshape(len(members), d, len(members), d).sum(axis=(0, 2))
            of_kind = which == kind
            precision[of_kind] += together
            spread[of_kind] -= float(np.linalg.slogdet(solved)[1])
            rows = np.flatnonzero(of_kind[pattern])
            flat = residual[np.ix_(rows, group[members])].reshape(len(rows), -1)
            turned = flat @ solved
            pulled[rows] += turned.reshape(len(rows), len(members), d).sum(axis=1)
            square[rows] += np.einsum("nd,nd->n", turned, flat)
    return Evidence(pulled, square, spread[pattern], precision, pattern)


def believe(parameters: VectorParameters, labels: npt.NDArray[Any], observed: BoolArray) -> tuple[Belief, FloatArray]:
    """Return the posterior of y for any pattern of abstentions, and the residuals from the prior mean."""
    d = len(parameters.mean)
    expected = parameters.offset + parameters.mean
    residual = labels - expected
    if not observed.all():
        residual = np.where(observed[..., None], residual, 0.0)
    evidence = weigh(parameters, residual, observed)
    informed = np.trace(evidence.precision, axis1=1, axis2=2) > 0
    law = inverses(parameters.variance)
    prior = float(parameters.shrink) * law
    covariance = inverses(np.where(informed[:, None, None], evidence.precision + prior, law))
    covariance = 0.5 * (covariance + np.swapaxes(covariance, 1, 2))
    if len(covariance) == 1:
        moved = evidence.pulled @ covariance[0]
    else:
        moved = np.empty_like(evidence.pulled)
        for rows in _blocks(len(moved), d):
            moved[rows] = np.einsum("nd,nde->ne", evidence.pulled[rows], covariance[evidence.pattern[rows]])
    gained = np.einsum("nd,nd->n", moved, evidence.pulled)
    size = float(log_determinants(parameters.variance)) - log_determinants(covariance)
    density = -0.5 * (evidence.square - gained + evidence.spread + size[evidence.pattern])
    density = np.where(informed[evidence.pattern], density, 0.0)
    return Belief(parameters.mean + moved, covariance, evidence.pattern, density), residual


def joint_noise(parameters: VectorParameters, group: IntArray) -> FloatArray:
    """Return the noise covariance ``(g d, g d)`` of dependent sources, made definite where it is not."""
    d = parameters.noise.shape[1]
    size = len(group)
    joint = np.zeros((size, size, d, d))
    chosen = np.arange(size)
    joint[chosen, chosen] = parameters.noise[group]
    place = {int(source): index for index, source in enumerate(group)}
    for (left, right), between in zip(parameters.pairs.tolist(), parameters.coupling, strict=True):
        if left in place and right in place:
            joint[place[left], place[right]] = between
            joint[place[right], place[left]] = between.T
    return definite(joint.swapaxes(1, 2).reshape(size * d, size * d))


def definite(joint: FloatArray, least: float = 0.02) -> FloatArray:
    """Return a noise covariance in units of which no direction has less than a small share of the variance."""
    scale = np.sqrt(np.diag(joint))
    unit = joint / np.outer(scale, scale)
    if float(np.linalg.eigvalsh(unit)[0]) >= least:
        return joint
    mended = positive_part(unit, least)
    weight = scale / np.sqrt(np.diag(mended))
    result: FloatArray = mended * np.outer(weight, weight)
    return result


def _groups(parameters: VectorParameters) -> list[IntArray]:
    m = len(parameters.noise)
    linked = np.zeros((m, m), dtype=bool)
    for left, right in parameters.pairs.tolist():
        linked[left, right] = linked[right, left] = bool(parameters.used[left] and parameters.used[right])
    involved = np.flatnonzero(linked.any(axis=1))
    if len(involved) == 0:
        return []
    label = components(linked)
    return [np.flatnonzero(label == one) for one in np.unique(label[involved])]


def _patterns(observed: BoolArray) -> tuple[BoolArray, IntArray]:
    """Return the different rows, and which of them each row is."""
    n, m = observed.shape
    if n == 0 or observed.all():
        return np.ones((1, m), dtype=bool), np.zeros(n, dtype=np.int64)
    packed = np.ascontiguousarray(np.packbits(observed, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return observed[first], which.reshape(-1).astype(np.int64)
