"""The paper's estimators, once each: on the pair table (Algorithms 2 and 4) or on label indicators (Algorithm 3)."""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.estimation.pair_table import LIMIT, PairTable
from consilience.exceptions import UnsupportedError
from consilience.solvers.isotropic import isotropic_costs
from consilience.solvers.quadratic import quadratic_triplets
from consilience.solvers.triplets import triplet_loadings

__all__ = ["isotropic", "quadratic", "triplets"]


def triplets(table: PairTable, dependent: BoolArray) -> tuple[FloatArray, BoolArray]:
    """Return qualities u by Algorithm 2, and for which sources the table determines them.

    Independent sources agree by the product of their qualities, so three of them give
    ``|q_a| = sqrt(|y_ab y_ac / y_bc|)``; the median over all triplets is taken.
    """
    usable = table.usable & ~dependent
    error = np.where(usable, np.where(np.isfinite(table.error), table.error, 1.0), 1.0)
    found = triplet_loadings(np.where(usable, table.value, 0.0), usable, error)
    top = float(np.tanh(LIMIT))
    return np.arctanh(np.clip(found.value, -top, top)), found.identified


def isotropic(table: PairTable, dependent: BoolArray) -> tuple[FloatArray, BoolArray]:
    """Return expected costs by Algorithm 4, ``D_ab = c_a + c_b`` solved over all pairs, and which are determined."""
    if table.cost is None:
        raise UnsupportedError("This label type has no cost that adds up. Use method='triplets' or 'auto'.")
    usable = table.usable & ~dependent
    found = isotropic_costs(table.cost, usable, np.where(usable, table.both, 0.0))
    return np.maximum(found.value, 0.0), found.identified


def quadratic(
    joint: FloatArray, votes: FloatArray, both: FloatArray, prior: FloatArray, dependent: BoolArray
) -> FloatArray:
    """Return the accuracy of each source by Algorithm 3, run on one indicator per label.

    Parameters
    ----------
    joint
        ``(k, m, m)`` how often both sources vote for the label.
    votes
        ``(m, k)`` votes of each source for each label.
    both
        ``(m, m)`` items in common.
    prior
        ``(k,)`` probabilities of the labels.
    """
    usable = (both >= 3) & ~dependent & ~np.eye(len(both), dtype=bool)
    total = np.maximum(votes.sum(axis=1), 1.0)
    common = np.maximum(both, 1.0)
    accuracy = np.zeros(len(votes))
    for label, chance in enumerate(prior):
        share = joint[label] / common
        error = np.sqrt(np.maximum(share * (1 - share), 1e-9) / common)  # within its noise: not to be divided by
        known = float(np.clip(chance, 1e-3, 0.999))
        accuracy += chance * quadratic_triplets(share, votes[:, label] / total, known, usable, error).given_one
    return accuracy
