"""Loadings from covariances between sources: Algorithm 2 of the paper, *ContinuousTriplets*.

Off the diagonal, the covariance of sources that are independent given the truth has rank one,
``e[a, b] = u[a] * u[b]``, where the loading ``u[a]`` says how strongly source a follows the
truth. Three sources give ``|u[a]| = sqrt(|e[a, b] e[a, c] / e[b, c]|)``; we take the median over
all triplets, recover the signs, and may refine by least squares over all pairs (`rank_one`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.solvers.pairs import (
    components,
    has_odd_cycle,
    partner_pairs,
    strong_pairs,
    usable_pairs,
)

__all__ = ["Loadings", "equal_loading", "rank_one", "recover_signs", "triplet_loadings"]


#: Triplets of one source are formed with so many others at most; the median of thousands changes no more.
MAX_PARTNERS = 128


@dataclass(frozen=True, slots=True)
class Loadings:
    """How strongly each source follows the truth; negative for a source that contradicts it.

    Attributes
    ----------
    value : array of shape (m,)
    identified : array of shape (m,)
        False where `value` is only a stand-in.
    """

    value: FloatArray
    identified: BoolArray


def triplet_loadings(
    covariance: FloatArray,
    independent: BoolArray,
    standard_error: FloatArray | None = None,
    *,
    combine: Literal["median", "least_squares"] = "median",
    spread: float | None = None,
    fallback: float | None = None,
) -> Loadings:
    """Return the loading of each source from the covariances between sources.

    Parameters
    ----------
    covariance : array of shape (m, m)
        Covariances of centred votes; the diagonal and unusable pairs are ignored.
    independent : array of shape (m, m)
        Pairs that are independent given the truth and have voted together.
    standard_error : array of shape (m, m), optional
        Of the covariances. Triplets that would divide by less than one standard error are skipped,
        and ``"least_squares"`` weighs pairs by it.
    combine : {"median", "least_squares"}
        Stop at the median over triplets, or refine it with `rank_one`.
    spread : float, optional
        Passed on to `rank_one`.
    fallback : float, optional
        Size of the loading of a source in no triplet; by default the median of the others, or
        the equal loading that fits the pairs if there is no triplet at all.

    Returns
    -------
    Loadings
        Of shape (m,), signed so that sources are better than random on average.

    Examples
    --------
    >>> loading = np.array([0.9, 0.5, -0.2])
    >>> triplet_loadings(np.outer(loading, loading), np.ones((3, 3), dtype=bool)).value.round(12)
    array([ 0.9,  0.5, -0.2])
    """
    linked = usable_pairs(independent)
    clean = np.where(linked, covariance, 0.0)
    strong = strong_pairs(clean, linked, standard_error)
    size = np.zeros(len(clean))
    identified = np.zeros(len(clean), dtype=bool)
    near = _best_known(linked, standard_error)
    for source, own in enumerate(np.abs(clean)):
        second, third = partner_pairs(source, near, strong)
        if len(second):
            ratio = own[second] * own[third] / np.abs(clean[second, third])
            size[source] = np.median(np.sqrt(ratio))
            identified[source] = True
    if fallback is None:
        known = identified.any()
        fallback = float(np.median(size[identified])) if known else equal_loading(clean, linked)
    size[~identified] = fallback

    value = size * recover_signs(clean, linked, size)
    if combine == "median":
        return Loadings(value, identified)
    weights = None if standard_error is None else _precision(standard_error, linked)
    refined = rank_one(clean, linked, weights, value, spread=spread)
    return Loadings(refined.value, _determined(linked, strong))


def _best_known(linked: BoolArray, standard_error: FloatArray | None) -> BoolArray:
    """Return the partners with whom each source forms triplets: with very many sources, those known best."""
    if len(linked) <= MAX_PARTNERS:
        return linked
    error = np.ones(linked.shape) if standard_error is None else standard_error
    order = np.argsort(np.where(linked, error, np.inf), axis=1, kind="stable")[:, :MAX_PARTNERS]
    near = np.zeros_like(linked)
    np.put_along_axis(near, order, True, axis=1)
    return near & linked


def rank_one(
    covariance: FloatArray,
    independent: BoolArray,
    weights: FloatArray | None = None,
    start: FloatArray | None = None,
    *,
    spread: float | None = None,
    tolerance: float = 1e-10,
    max_rounds: int = 500,
) -> Loadings:
    """Return the loadings whose products fit the covariances best.

    Minimises ``sum_(a<b) W_ab (e_ab - u_a u_b)^2 + |u - mean(u)|^2 / spread^2`` one loading at a
    time, which never increases it.

    Parameters
    ----------
    covariance, independent : arrays of shape (m, m)
    weights : array of shape (m, m), optional
        How much each pair counts, such as one over its variance; 1 if not given.
    start : array of shape (m,), optional
        Loadings to start from; by default all of one size.
    spread : float, optional
        How far loadings are expected to scatter around their mean, in units set by `weights`.
    tolerance : float
        Stop when no loading changes by more than this part of the largest.
    max_rounds : int

    Returns
    -------
    Loadings
        Of shape (m,). A source without pairs keeps its start.

    Examples
    --------
    >>> loading = np.array([0.9, 0.5, 0.2, 0.4])
    >>> rank_one(np.outer(loading, loading), np.ones((4, 4), dtype=bool)).value.round(9)
    array([0.9, 0.5, 0.2, 0.4])
    """
    linked = usable_pairs(independent)
    weight = linked.astype(float) if weights is None else np.where(linked, weights, 0.0)
    linked = weight > 0
    clean = np.where(linked, covariance, 0.0)
    if start is None:
        size = np.full(len(clean), equal_loading(clean, linked))
        start = size * recover_signs(clean, linked, size)
    pull = 0.0 if spread is None else 1.0 / spread**2
    count = len(clean)
    weighted = weight * clean
    value = np.array(start, dtype=float)
    for _ in range(max_rounds):
        before = value.copy()
        for source in range(count):
            others = value.sum() - value[source]
            top = weighted[source] @ value + pull * others / count
            bottom = weight[source] @ value**2 + pull * (1.0 - 1.0 / count)
            if bottom > 0:
                value[source] = top / bottom
        if np.abs(value - before).max(initial=0.0) <= tolerance * np.abs(value).max(initial=0.0):
            break
    identified = _determined(linked, strong_pairs(clean, linked))
    return Loadings(value * _orientation(linked, value), identified)


def recover_signs(covariance: FloatArray, independent: BoolArray, magnitude: FloatArray) -> FloatArray:
    """Return which sources follow the truth (+1) and which contradict it (-1).

    Two sources have equal signs where their covariance is positive; where covariances contradict
    each other the larger ones win, by maximising ``sum_ab e_ab s_a s_b``: the leading
    eigenvectors, rounded, then single flips while any helps. The sign of the whole is chosen so
    that ``sum(magnitude * s)`` is positive in each component: sources are better than random on
    average.

    Parameters
    ----------
    covariance, independent : arrays of shape (m, m)
    magnitude : array of shape (m,)
        Size of the loadings, which decides the sign of the whole.

    Returns
    -------
    array of shape (m,)
        Entries -1.0 and 1.0.

    Examples
    --------
    >>> loading = np.array([0.9, -0.5, 0.2])
    >>> recover_signs(np.outer(loading, loading), np.ones((3, 3), dtype=bool), np.abs(loading))
    array([ 1., -1.,  1.])
    """
    linked = usable_pairs(independent)
    clean = np.where(linked, covariance, 0.0)
    if not clean.any():
        return np.ones(len(clean))
    leading = np.linalg.eigh(clean)[1][:, ::-1][:, :8]
    candidates = [np.ones(len(clean)), *np.where(leading.T < 0, -1.0, 1.0)]
    improved = [_flip_while_better(clean, signs) for signs in candidates]
    best = max(improved, key=lambda signs: float(signs @ clean @ signs))
    return best * _orientation(clean != 0, best * np.abs(magnitude))


def equal_loading(covariance: FloatArray, linked: BoolArray) -> float:
    """Return the one size of all loadings that fits the usable pairs: the root of their median.

    Examples
    --------
    >>> equal_loading(np.full((2, 2), 0.25), np.array([[False, True], [True, False]]))
    0.5
    """
    sizes = np.abs(covariance[linked])
    return float(np.sqrt(np.median(sizes))) if len(sizes) else 0.0


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


def _orientation(linked: BoolArray, value: FloatArray) -> FloatArray:
    """Return the sign per source that makes the sum of each component positive."""
    label = components(linked)
    total = np.bincount(label, weights=value, minlength=len(value))
    first = value[np.unique(label, return_index=True)[1]]
    total = np.where(total[: len(first)] == 0, first, total[: len(first)])
    orientation: FloatArray = np.where(total < 0, -1.0, 1.0)[label]
    return orientation


def _determined(linked: BoolArray, strong: BoolArray) -> BoolArray:
    """Return whether least squares determines each loading.

    An odd cycle of non-zero products fixes all loadings in it, and any pair with one of those
    another.
    """
    odd = has_odd_cycle(strong)
    determined: BoolArray = odd | linked[:, odd].any(axis=1)
    return determined


def _precision(standard_error: FloatArray, linked: BoolArray) -> FloatArray:
    variance = np.where(linked, standard_error, np.inf) ** 2
    finite = variance[np.isfinite(variance)]
    if not len(finite) or not np.median(finite) > 0:
        return linked.astype(float)
    # A pair that happens to show no variance must not rule the fit.
    floored = np.maximum(variance, 1e-3 * np.median(finite))
    precision: FloatArray = np.where(np.isfinite(floored), 1.0 / floored, 0.0)
    return precision
