"""Conditional rates of binary indicators: Algorithm 3 of the paper, *QuadraticTriplets*.

Sources a, b, c say 1 with means ``l`` and joint rates ``O``; the truth z is 1 with probability p.
With ``C = O - l l'`` and ``alpha = P(x_a = 1 | z = 1)``, independence given z means
``beta = l_b + (1 - p) C_ab / (p (alpha - l_a))``, the same for gamma, and so, put into the
equation of b and c,

    p C_bc (alpha - l_a)^2 - (1 - p) C_ab C_ac = 0,

a quadratic in alpha. (The signs in the paper's display are misprinted.)

The root need not be taken. With ``delta = P(x_a = 1 | z = 1) - P(x_a = 1 | z = 0)`` independence says
``C_ab = p (1 - p) delta_a delta_b``: a matrix of rank one, whose factor is fitted to all pairs at once, and
``P(x_a = 1 | z = 1) = l_a + (1 - p) delta_a``, ``P(x_a = 1 | z = 0) = l_a - p delta_a``. Third moments
``E[centred abc] = p (1 - p) (1 - 2 p) delta_a delta_b delta_c`` then give p itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray
from consilience.exceptions import PriorError
from consilience.solvers.pairs import partner_pairs, strong_pairs, usable_pairs
from consilience.solvers.triplets import equal_loading, recover_signs, triplet_loadings

__all__ = [
    "ConditionalRates",
    "prior_from_skewness",
    "quadratic_roots",
    "quadratic_triplets",
    "rank_one_rates",
    "rates_from_loading",
]


@dataclass(frozen=True, slots=True)
class ConditionalRates:
    """How often each source says 1, by what the truth is.

    Attributes
    ----------
    given_one, given_zero : arrays of shape (m,)
        Probability of a 1 when the truth is 1, and when it is 0.
    identified : array of shape (m,)
        False where the rates are only stand-ins.
    """

    given_one: FloatArray
    given_zero: FloatArray
    identified: BoolArray


def quadratic_roots(
    joint_ab: npt.ArrayLike,
    joint_ac: npt.ArrayLike,
    joint_bc: npt.ArrayLike,
    mean_a: npt.ArrayLike,
    mean_b: npt.ArrayLike,
    mean_c: npt.ArrayLike,
    prior: float,
) -> FloatArray:
    """Return both solutions for ``P(x_a = 1 | z = 1)``.

    Parameters
    ----------
    joint_ab, joint_ac, joint_bc : arrays of one shape
        Probability that both sources of a pair say 1.
    mean_a, mean_b, mean_c : arrays of that shape
        Probability that a source says 1.
    prior : float
        Probability that the truth is 1.

    Returns
    -------
    array of shape (..., 2)
        Smaller root first. Where noise leaves no real root, and where b and c are uncorrelated,
        both are `mean_a`.

    Examples
    --------
    Each source says 1 with probability 0.8 or 0.3 as the truth is 1 or 0, both equally likely:

    >>> joint = (0.8**2 + 0.3**2) / 2
    >>> quadratic_roots(joint, joint, joint, 0.55, 0.55, 0.55, prior=0.5).round(12)
    array([0.3, 0.8])
    """
    _check_prior(prior)
    first, second, third = (np.asarray(mean, dtype=float) for mean in (mean_a, mean_b, mean_c))
    covariance_ab = np.asarray(joint_ab) - first * second
    covariance_ac = np.asarray(joint_ac) - first * third
    covariance_bc = np.asarray(joint_bc) - second * third
    square, product, first = np.broadcast_arrays(
        prior * covariance_bc, (1.0 - prior) * covariance_ab * covariance_ac, first
    )
    half_linear = -square * first
    constant = square * first**2 - product
    # Equals (b / 2)^2 - a c, which as written would subtract nearly equal numbers.
    half_root = np.sqrt(np.maximum(square * product, 0.0))
    larger = -half_linear - np.where(half_linear < 0, -half_root, half_root)
    solvable = (square != 0) & (square * product > 0)
    far = np.divide(larger, square, out=first.copy(), where=solvable)
    near = np.divide(constant, larger, out=first.copy(), where=solvable)
    return np.sort(np.stack([far, near], axis=-1), axis=-1)


def quadratic_triplets(
    joint: FloatArray,
    mean: FloatArray,
    prior: float,
    independent: BoolArray,
    standard_error: FloatArray | None = None,
) -> ConditionalRates:
    """Return how often each source says 1 when the truth is 1 and when it is 0.

    The median over all triplets, with the root chosen by `recover_signs`. A source in no triplet
    is taken to be as informative as the median source.

    Parameters
    ----------
    joint : array of shape (m, m)
        Probability that both sources of a pair say 1; the diagonal and unusable pairs are ignored.
    mean : array of shape (m,)
        Probability that a source says 1; where NaN (it never votes), the median of the others.
    prior : float
        Probability that the truth is 1, strictly between 0 and 1.
    independent : array of shape (m, m)
        Pairs that are independent given the truth and have voted together.
    standard_error : array of shape (m, m), optional
        Of the covariances; triplets that would divide by less than one standard error are skipped.

    Returns
    -------
    ConditionalRates
        Between 0 and 1, and consistent with `mean`: if noise asks for more, both rates give way
        together.

    Examples
    --------
    >>> one, zero = np.array([0.9, 0.8, 0.7]), np.array([0.1, 0.3, 0.4])
    >>> joint = 0.3 * np.outer(one, one) + 0.7 * np.outer(zero, zero)
    >>> rates = quadratic_triplets(joint, 0.3 * one + 0.7 * zero, 0.3, np.ones((3, 3), dtype=bool))
    >>> rates.given_one.round(12), rates.given_zero.round(12)
    (array([0.9, 0.8, 0.7]), array([0.1, 0.3, 0.4]))
    """
    _check_prior(prior)
    linked, mean, covariance = _centred(joint, mean, independent)
    strong = strong_pairs(covariance, linked, standard_error)
    size = np.zeros(len(mean))
    identified = np.zeros(len(mean), dtype=bool)
    for a in range(len(mean)):
        b, c = partner_pairs(a, linked, strong)
        if len(b):
            roots = quadratic_roots(joint[a, b], joint[a, c], joint[b, c], mean[a], mean[b], mean[c], prior)
            size[a] = np.median(roots[:, 1]) - mean[a]
            identified[a] = True
    if identified.any():
        size[~identified] = np.median(size[identified])
    else:
        size[:] = equal_loading(covariance, linked) * np.sqrt((1.0 - prior) / prior)

    rise = size * recover_signs(covariance, linked, size)
    return ConditionalRates(*_consistent(mean, rise, prior), identified)


def _centred(joint: FloatArray, mean: FloatArray, independent: BoolArray) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Return the pairs to use, the means with gaps filled, and the covariances of the pairs."""
    linked = usable_pairs(independent)
    voting = np.isfinite(mean)
    filled = np.where(voting, mean, np.median(mean[voting]) if voting.any() else 0.5)
    return linked, filled, np.where(linked, joint - np.outer(filled, filled), 0.0)


def rank_one_rates(
    joint: FloatArray,
    mean: FloatArray,
    prior: float,
    independent: BoolArray,
    standard_error: FloatArray | None = None,
) -> ConditionalRates:
    """Return what `quadratic_triplets` returns, from the rank-one form of the covariance instead of roots.

    All pairs are fitted together by least squares, which is more precise than a median of triplets; on exact moments
    the two agree. Parameters as there.

    Examples
    --------
    >>> one, zero = np.array([0.9, 0.8, 0.7]), np.array([0.1, 0.3, 0.4])
    >>> joint = 0.3 * np.outer(one, one) + 0.7 * np.outer(zero, zero)
    >>> rates = rank_one_rates(joint, 0.3 * one + 0.7 * zero, 0.3, np.ones((3, 3), dtype=bool))
    >>> rates.given_one.round(12), rates.given_zero.round(12)
    (array([0.9, 0.8, 0.7]), array([0.1, 0.3, 0.4]))
    """
    _check_prior(prior)
    linked, mean, covariance = _centred(joint, mean, independent)
    loadings = triplet_loadings(covariance, linked, standard_error, combine="least_squares")
    given_one, given_zero = rates_from_loading(mean, loadings.value, prior)
    return ConditionalRates(given_one, given_zero, loadings.identified)


def rates_from_loading(mean: FloatArray, loading: FloatArray, prior: float) -> tuple[FloatArray, FloatArray]:
    """Return P(1 | truth 1) and P(1 | truth 0) from the means and the factor of the covariance.

    Parameters
    ----------
    mean : array of shape (m,)
        Probability that a source says 1.
    loading : array of shape (m,)
        ``sqrt(p (1 - p)) delta``; two independent sources have the product of theirs as covariance.
    prior : float
        Probability p that the truth is 1.
    """
    _check_prior(prior)
    return _consistent(mean, loading * np.sqrt((1.0 - prior) / prior), prior)


def prior_from_skewness(skewness: npt.ArrayLike) -> FloatArray:
    """Return the probability of a 1 of which the standardised truth has this skewness.

    A truth that is 1 with probability p has skewness ``(1 - 2 p) / sqrt(p (1 - p))``; third moments of three
    sources divided by the product of their loadings estimate it.

    Examples
    --------
    >>> p = 0.2
    >>> round(float(prior_from_skewness((1 - 2 * p) / np.sqrt(p * (1 - p)))), 12)
    0.2
    """
    skew = np.asarray(skewness, dtype=float)
    prior: FloatArray = np.asarray(0.5 * (1.0 - skew / np.sqrt(4.0 + skew**2)))
    return prior


def _consistent(mean: FloatArray, rise: FloatArray, prior: float) -> tuple[FloatArray, FloatArray]:
    """Return both rates, given by how much the one for a truth of 1 exceeds the mean, kept between 0 and 1."""
    odds = prior / (1.0 - prior)
    rise = np.clip(
        rise,
        np.maximum(-mean, (mean - 1.0) / odds),
        np.minimum(1.0 - mean, mean / odds),
    )
    return np.clip(mean + rise, 0.0, 1.0), np.clip(mean - odds * rise, 0.0, 1.0)


def _check_prior(prior: float) -> None:
    if not 0.0 < prior < 1.0:
        raise PriorError(
            f"The probability of a 1 is {prior}; the quadratic needs it strictly between 0 and 1. "
            "Drop an indicator that is always or never 1."
        )
