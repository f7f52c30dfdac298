"""How sure scores and judges of one arena are: the joint information of both."""

from __future__ import annotations

import numpy as np

from consilience.arrays import FloatArray
from consilience.solvers.pair_judges import JudgeTraits, PairTable, outcome_moments, totals

__all__ = ["joint_covariance"]


def joint_covariance(
    pairs: PairTable, judges: JudgeTraits, mean: FloatArray, *, equal: bool = False, position: bool = True
) -> FloatArray:
    """Return the covariance of scores, discriminations and biases, ``(width + 2 m)`` in this order.

    The inverse of Fisher's information of all of them together and of their priors. The covariance of the scores
    alone is too small where votes are many, as the judges are uncertain, too.

    Parameters
    ----------
    mean
        ``(width,)`` scores; the comparisons are those of one group.
    equal
        Whether all judges are known to be alike, which leaves the scores.
    """
    who, m, width = pairs.judge, pairs.n_judges, pairs.width
    gap = mean[pairs.first] - mean[pairs.second]
    slope = judges.slope[who]
    variance = outcome_moments(slope * gap + judges.bias[who] * pairs.shown, judges.tie[who])[1]
    load = pairs.weight * variance / 4.0
    size = width + 2 * m
    information = np.zeros((size, size))
    between = totals(pairs.first * width + pairs.second, load * slope**2, width * width).reshape(width, width)
    between = between + between.T
    information[:width, :width] = np.diag(between.sum(axis=1)) - between
    for start, column in ((width, gap), (width + m, pairs.shown * position)):
        pull = load * slope * column
        block = totals(pairs.first * m + who, pull, width * m) - totals(pairs.second * m + who, pull, width * m)
        information[:width, start : start + m] = block.reshape(width, m)
        information[start : start + m, :width] = block.reshape(width, m).T
    at = width + np.arange(m)
    information[at, at] = totals(who, load * gap**2, m)
    information[at, at + m] = information[at + m, at] = totals(who, load * gap * pairs.shown * position, m)
    information[at + m, at + m] = totals(who, load * pairs.shown * position, m)
    held = 1e9 if equal else 0.0
    prior = np.r_[
        np.ones(width),
        np.full(m, 1.0 / max(judges.slope_variance, 1e-6) + held),
        np.full(m, 1.0 / max(judges.bias_variance, 1e-6) if position else 1e9),
    ]
    return np.asarray(np.linalg.inv(information + np.diag(prior)))
