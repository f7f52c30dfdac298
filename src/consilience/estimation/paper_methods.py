"""The paper's estimators, once each: on the pair table (Algorithms 2 and 4) or on label indicators (Algorithm 3).

For sources that are independent given the truth the covariance of two of them is a product of loadings, so three of
them determine each: ``|u_a| = sqrt(|e_ab e_ac / e_bc|)``. `triplets` takes the median over all triplets, `quadratic`
solves the same equations for the two error rates of a binary indicator, and `isotropic` solves
``D_ab = c_a + c_b`` for costs that add up.
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.estimation.pair_table import LIMIT, PairTable
from consilience.exceptions import UnsupportedError

__all__ = ["isotropic", "isotropic_costs", "quadratic", "quadratic_rates", "triplet_loadings", "triplets"]

#: A source forms triplets with at most this many others. The median of thousands of triplets hardly changes.
MAX_PARTNERS = 128


def triplets(table: PairTable, dependent: BoolArray) -> tuple[FloatArray, BoolArray]:
    """Return qualities u by Algorithm 2, and for which sources the table determines them."""
    usable = table.usable & ~dependent
    value, identified = triplet_loadings(np.where(usable, table.value, 0.0), usable, table.error)
    top = float(np.tanh(LIMIT))
    return np.arctanh(np.clip(value, -top, top)), identified


def isotropic(table: PairTable, dependent: BoolArray) -> tuple[FloatArray, BoolArray]:
    """Return expected costs by Algorithm 4, and for which sources the table determines them."""
    if table.cost is None:
        raise UnsupportedError("This label type has no cost that adds up. Use method='triplets' or 'auto'.")
    usable = table.usable & ~dependent
    value, identified = isotropic_costs(table.cost, np.where(usable, table.both, 0.0))
    return np.maximum(value, 0.0), identified


def quadratic(
    joint: FloatArray, votes: FloatArray, both: FloatArray, prior: FloatArray, dependent: BoolArray
) -> FloatArray:
    """Return the accuracy of each source by Algorithm 3, run on one indicator per label.

    `joint` ``(k, m, m)`` counts how often both sources vote for a label, `votes` ``(m, k)`` how often each one does,
    and `both` ``(m, m)`` the items in common; `prior` ``(k,)`` are the probabilities of the labels.
    """
    usable = (both >= 3) & ~dependent & ~np.eye(len(both), dtype=bool)
    total, common = np.maximum(votes.sum(axis=1), 1.0), np.maximum(both, 1.0)
    accuracy = np.zeros(len(votes))
    for label, chance in enumerate(prior):
        share = joint[label] / common
        error = np.sqrt(np.maximum(share * (1.0 - share), 1e-9) / common)
        known = float(np.clip(chance, 1e-3, 0.999))
        accuracy += chance * quadratic_rates(share, votes[:, label] / total, known, usable, error)[0]
    votes_at_all = votes.sum(axis=1) > 0
    usual = float(accuracy[votes_at_all].mean()) if votes_at_all.any() else 0.5
    return np.where(votes_at_all, accuracy, usual)


def triplet_loadings(
    covariance: FloatArray, usable: BoolArray, error: FloatArray | None = None
) -> tuple[FloatArray, BoolArray]:
    """Return the loading of each source, positive on average, and whether some triplet determines it.

    Usable pairs are independent given the truth and voted together. Triplets that would divide by less than one
    standard error are skipped.

    Examples
    --------
    >>> loading = np.array([0.9, 0.5, -0.2])
    >>> triplet_loadings(np.outer(loading, loading), ~np.eye(3, dtype=bool))[0].round(12)
    array([ 0.9,  0.5, -0.2])
    """
    clean = np.where(usable, covariance, 0.0)
    absolute = np.abs(clean)
    smallest = np.full(clean.shape, 1e-12 * absolute.max(initial=0.0))
    if error is not None:
        smallest = np.maximum(smallest, np.where(np.isfinite(error), error, np.inf))
    strong = usable & (absolute > smallest)
    size, identified = np.zeros(len(clean)), np.zeros(len(clean), dtype=bool)
    for source, own in enumerate(absolute):
        partners = np.flatnonzero(usable[source])
        if len(partners) > MAX_PARTNERS and error is not None:  # the pairs with the smallest errors
            partners = partners[np.argsort(error[source, partners], kind="stable")[:MAX_PARTNERS]]
        rows, columns = np.nonzero(np.triu(strong[np.ix_(partners, partners)], 1))
        second, third = partners[rows], partners[columns]
        if len(second):
            size[source] = np.median(np.sqrt(own[second] * own[third] / absolute[second, third]))
            identified[source] = True
    pairs = np.abs(clean[usable])
    alike = float(np.sqrt(np.median(pairs))) if len(pairs) else 0.0  # one loading for all that fits the pairs
    size[~identified] = float(np.median(size[identified])) if identified.any() else alike
    return size * recover_signs(clean, size), identified


def isotropic_costs(pair_cost: FloatArray, weight: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the expected cost of each source, and whether the pairs determine it.

    Minimizes ``sum_ab W_ab (D_ab - c_a - c_b)^2``, that is, solves ``(W + diag(W 1)) c = (W * D) 1``. Without an odd
    cycle of pairs (two sources only, say) the split is open, and the costs of least norm are returned. Unusable pairs
    have the weight 0.

    Examples
    --------
    >>> costs = np.array([1.0, 2.0, 5.0])
    >>> isotropic_costs(costs[:, None] + costs, 1.0 - np.eye(3))[0].round(12)
    array([1., 2., 5.])
    """
    linked = weight > 0
    total = (weight * np.where(linked, pair_cost, 0.0)).sum(axis=1)
    system = weight + np.diag(weight.sum(axis=1))
    # An odd cycle of pairs: in the double cover a step always changes sides, so a source meets its own mirror image
    # exactly if some closed walk through it has odd length.
    m, nothing = len(linked), np.zeros_like(linked)
    from scipy.sparse.csgraph import connected_components

    component = connected_components(np.block([[nothing, linked], [linked, nothing]]), directed=False)[1]
    identified = component[:m] == component[m:]
    value = np.zeros(len(weight))
    # Components do not interact, but the cutoff for a singular one must not affect a regular one.
    for group in (identified, ~identified & linked.any(axis=1)):
        if group.any():
            value[group] = np.linalg.lstsq(system[np.ix_(group, group)], total[group])[0]
    alone = ~linked.any(axis=1)
    known = identified if identified.any() else ~alone
    if known.any():
        value[alone] = np.median(value[known])
    return value, identified


def quadratic_rates(
    joint: FloatArray, mean: FloatArray, prior: float, usable: BoolArray, error: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return how often each source says 1 when the truth is 1, and when it is 0.

    With ``e_ab = P(a, b both 1) - P(a) P(b)`` and prior p, ``P(a | truth 1) - P(a)`` solves a quadratic whose roots are
    ``+- sqrt((1 - p) e_ab e_ac / (p e_bc))``; the median over triplets is taken, and signs as for `triplets`. The
    prior lies strictly between 0 and 1.

    Examples
    --------
    >>> one, zero = np.array([0.9, 0.8, 0.7]), np.array([0.1, 0.3, 0.4])
    >>> joint = 0.3 * np.outer(one, one) + 0.7 * np.outer(zero, zero)
    >>> given_one, given_zero = quadratic_rates(joint, 0.3 * one + 0.7 * zero, 0.3, ~np.eye(3, dtype=bool))
    >>> given_one.round(12), given_zero.round(12)
    (array([0.9, 0.8, 0.7]), array([0.1, 0.3, 0.4]))
    """
    covariance = np.where(usable, joint - np.outer(mean, mean), 0.0)
    rise = triplet_loadings(covariance, usable, error)[0] * np.sqrt((1.0 - prior) / prior)
    odds = prior / (1.0 - prior)
    # Both rates must stay in [0, 1] and consistent with the mean. If noise pushes one out, both are moved.
    rise = np.clip(rise, np.maximum(-mean, (mean - 1.0) / odds), np.minimum(1.0 - mean, mean / odds))
    return np.clip(mean + rise, 0.0, 1.0), np.clip(mean - odds * rise, 0.0, 1.0)


def recover_signs(covariance: FloatArray, magnitude: FloatArray) -> FloatArray:
    """Return which sources follow the truth (+1) and which contradict it (-1).

    Where covariances contradict each other the larger ones win, by maximizing ``sum_ab e_ab s_a s_b``: the leading
    eigenvectors, rounded, then single flips while any helps. In each connected component the sum of ``magnitude * s``
    is positive: sources are better than random on average.

    Examples
    --------
    >>> loading = np.array([0.9, -0.5, 0.2])
    >>> recover_signs(np.outer(loading, loading) * (1 - np.eye(3)), np.abs(loading))
    array([ 1., -1.,  1.])
    """
    if not covariance.any():
        return np.ones(len(covariance))
    leading = np.linalg.eigh(covariance)[1][:, ::-1][:, :8]
    candidates = [np.ones(len(covariance)), *np.where(leading.T < 0, -1.0, 1.0)]
    improved = [_flip_while_better(covariance, signs) for signs in candidates]
    best = max(improved, key=lambda signs: float(signs @ covariance @ signs))
    from scipy.sparse.csgraph import connected_components

    component = connected_components(covariance != 0, directed=False)[1]
    total = np.bincount(component, best * magnitude)[component]
    return np.where(total < 0, -best, best)


def _flip_while_better(covariance: FloatArray, start: FloatArray) -> FloatArray:
    """Return signs that no single flip improves; each flip raises the sum, so this ends."""
    signs = start.copy()
    pull = covariance @ signs
    slack = 1e-12 * np.abs(covariance).sum()
    while True:
        support = signs * pull
        worst = int(support.argmin())
        if support[worst] >= -slack:
            return signs
        signs[worst] *= -1
        pull += 2.0 * signs[worst] * covariance[worst]
