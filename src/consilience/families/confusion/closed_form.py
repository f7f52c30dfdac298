"""Closed-form estimates for categorical sources: the paper's algorithms and the robust pair-moment fit.

Each function returns the skill d = (k accuracy - 1) / (k - 1) of every source, 0 at random and 1 when
always right, with its standard error.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.confusion.pair_moments import PairMoments
from consilience.families.pair_fits import PairFit, additive_fit, product_fit, robust_product_fit
from consilience.solvers.quadratic import quadratic_triplets

__all__ = [
    "accuracy_from_skill",
    "isotropic_skill",
    "moment_skill",
    "prior_from_shares",
    "quadratic_tables",
    "skill_under_prior",
    "triplet_skill",
]


def accuracy_from_skill(skill: FloatArray, k: int) -> FloatArray:
    """Return the share of right votes of sources of this skill."""
    accuracy: FloatArray = (1.0 + (k - 1) * skill) / k
    return np.clip(accuracy, 1e-3, 1.0 - 1e-3)


def isotropic_skill(moments: PairMoments, dependent: BoolArray) -> PairFit:
    """Algorithm 4: disagreements add up. Biased for classes, where errors may cancel."""
    k = moments.n_classes
    fit = additive_fit(1.0 - moments.agreement, moments.both, moments.agreement_influence, moments.usable(dependent))
    value = np.clip(1.0 - fit.value * k / (k - 1), -1.0, 1.0)
    return replace(fit, value=value, standard_error=fit.standard_error * k / (k - 1))


def triplet_skill(moments: PairMoments, dependent: BoolArray) -> PairFit:
    """Algorithm 2 on the centred covariance, all triplets, median then least squares."""
    usable = moments.usable(dependent)
    return product_fit(moments.covariance, moments.standard_error, moments.influence, usable, moments.scale, limit=1.0)


def moment_skill(moments: PairMoments, dependent: BoolArray) -> PairFit:
    """Fit the exact pair moment g d d' under a Cauchy loss, from several starts."""
    usable = moments.usable(dependent)
    return robust_product_fit(
        moments.covariance, moments.standard_error, moments.influence, usable, moments.scale, limit=1.0
    )


def quadratic_tables(
    moments: PairMoments, pairs: FloatArray, votes: FloatArray, prior: FloatArray, dependent: BoolArray
) -> tuple[FloatArray, BoolArray]:
    """Algorithm 3, one class against the rest: confusions ``(m, k, k)`` as ``[source, vote, class]``."""
    m, k = votes.shape
    usable = moments.usable(dependent)
    counts = pairs.reshape(m, k, m, k)
    given_class, given_rest = np.empty((m, k)), np.empty((m, k))
    identified = np.ones(m, dtype=bool)
    both = np.maximum(moments.both, 1.0)
    for c in range(k):
        joint = counts[:, c, :, c] / both
        mean = votes[:, c] / np.maximum(votes.sum(axis=1), 1.0)
        error = moments.standard_error / np.sqrt(k)  # what is within its noise must not be divided by
        rates = quadratic_triplets(joint, mean, float(np.clip(prior[c], 1e-3, 1 - 1e-3)), usable, error)
        given_class[:, c], given_rest[:, c] = rates.given_one, rates.given_zero
        identified &= rates.identified
    table = np.empty((m, k, k))
    for c in range(k):
        wrong = np.maximum(given_rest, 1e-3)
        wrong[:, c] = 0.0
        right = np.clip(given_class[:, c], 1e-3, 1 - 1e-3)
        table[:, :, c] = wrong / wrong.sum(axis=1, keepdims=True) * (1 - right)[:, None]
        table[:, c, c] = right
    return table, identified


def skill_under_prior(
    skill: FloatArray, votes: FloatArray, scale: float, prior: FloatArray | None
) -> tuple[FloatArray, FloatArray, float]:
    """Correct skills for uneven classes, whose votes covary less.

    The covariance is ``(1 - sum p^2) d d'``; `skill` was solved with `scale` in place of the bracket, so that it is
    r d with ``r^2 = (1 - sum p^2) / scale``. Without a given prior: a source that errs evenly votes class c with
    probability ``1/k + d (p_c - 1/k)``, a line through `skill` of slope ``(p_c - 1/k) / r``, and the slopes tell r.

    Returns
    -------
    skill, prior, and the factor between the two skills.
    """
    k = votes.shape[1]
    if prior is not None:
        stretch = float(np.sqrt(scale / max(1.0 - (prior**2).sum(), 1e-3)))
        return np.clip(skill * stretch, -1.0, 1.0), prior, stretch
    cast = votes.sum(axis=1)
    excess = votes / np.maximum(cast, 1.0)[:, None] - 1.0 / k
    slope = (cast * skill) @ excess / max(float(cast @ skill**2), 1e-9)
    ratio = np.sqrt(scale / (1.0 - 1.0 / k + (slope**2).sum()))
    solved = np.clip(1.0 / k + ratio * slope, 1e-3 + 0.5 / k / np.sqrt(max(votes.sum(), 1.0)), None)
    solved /= solved.sum()
    stretch = float(np.sqrt(scale / max(1.0 - (solved**2).sum(), 1e-3)))
    return np.clip(skill * stretch, -1.0, 1.0), solved, stretch


def prior_from_shares(votes: FloatArray, accuracy: FloatArray) -> FloatArray:
    """Return the class frequencies that explain the vote shares of sources that err evenly."""
    k = votes.shape[1]
    total = np.maximum(votes.sum(axis=1, keepdims=True), 1.0)
    error = (1.0 - accuracy)[:, None] / (k - 1)
    skill = np.maximum(accuracy[:, None] - error, 0.05)
    solved = (votes / total - error) / skill
    weight = votes.sum(axis=1) * skill[:, 0] ** 2
    prior = np.average(solved, axis=0, weights=weight) if weight.sum() > 0 else np.full(k, 1.0 / k)
    prior = np.clip(prior, 0.5 / k / np.sqrt(max(votes.sum(), 1.0)) + 1e-3, None)
    normalised: FloatArray = prior / prior.sum()
    return normalised
