"""Expected costs from the costs between sources: Algorithm 4 of the paper (isotropic errors).

If errors are independent and add like squared lengths, the expected cost between two sources is
the sum of their expected costs to the truth, ``D[a, b] = mu[a] + mu[b]``. The paper solves three
such equations at a time; solving all of them by least squares uses every pair, and equals the
average over all triplets when no pair is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.solvers.pairs import has_odd_cycle, usable_pairs

__all__ = ["Estimate", "isotropic_costs"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number per source, and whether the data determine it.

    Attributes
    ----------
    value : array of shape (m,)
    identified : array of shape (m,)
        False where `value` is only a stand-in.
    """

    value: FloatArray
    identified: BoolArray


def isotropic_costs(pair_cost: FloatArray, independent: BoolArray, weights: FloatArray | None = None) -> Estimate:
    """Return the expected cost of each source to the unseen truth.

    Minimises ``sum_ab W_ab (D_ab - mu_a - mu_b)^2`` over the usable pairs, that is, solves
    ``(W + diag(W 1)) mu = (W * D) 1``. Noise can make a very good source's cost slightly negative.

    Parameters
    ----------
    pair_cost : array of shape (m, m)
        Average cost between the votes of two sources; entries of unusable pairs are ignored.
    independent : array of shape (m, m)
        Pairs that are independent given the truth and have voted together.
    weights : array of shape (m, m), optional
        How much each pair counts, such as the number of items both voted on; 1 if not given.

    Returns
    -------
    Estimate
        Costs of shape (m,). Without an odd cycle of pairs (two sources only, say) the split is
        open: the costs of least norm are returned. A source without any pair gets the median of
        the others.

    Examples
    --------
    >>> costs = np.array([1.0, 2.0, 5.0])
    >>> isotropic_costs(costs[:, None] + costs, np.ones((3, 3), dtype=bool)).value.round(12)
    array([1., 2., 5.])
    >>> two = isotropic_costs(np.full((2, 2), 3.0), np.ones((2, 2), dtype=bool))
    >>> two.value.round(12), two.identified
    (array([1.5, 1.5]), array([False, False]))
    """
    linked = usable_pairs(independent)
    weight = linked.astype(float) if weights is None else np.where(linked, weights, 0.0)
    linked = weight > 0
    total = (weight * np.where(linked, pair_cost, 0.0)).sum(axis=1)
    system = weight + np.diag(weight.sum(axis=1))

    identified = has_odd_cycle(linked)
    value = np.zeros(len(weight))
    # Components do not interact, but the cut-off of a singular one must not touch a regular one.
    for group in (identified, ~identified & linked.any(axis=1)):
        if group.any():
            value[group] = np.linalg.lstsq(system[np.ix_(group, group)], total[group])[0]

    alone = ~linked.any(axis=1)
    known = identified if identified.any() else ~alone
    if known.any():
        value[alone] = np.median(value[known])
    return Estimate(value, identified)
