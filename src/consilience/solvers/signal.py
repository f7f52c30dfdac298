"""Whether sources agree at all, and how far beyond chance."""

from __future__ import annotations

import numpy as np

from consilience.arrays import FloatArray

__all__ = ["no_signal_probability", "signal_strength"]


def no_signal_probability(z: FloatArray) -> float:
    """Return how likely agreement this strong is if no two sources have anything in common.

    The chi-square test of "all pair moments are zero", with one degree of freedom per pair.

    Parameters
    ----------
    z : array of shape (p,)
        Pair moments divided by their standard errors; NaN for pairs without data.

    Returns
    -------
    float
        Between 0 and 1; 1.0 without any pair.

    Examples
    --------
    >>> round(no_signal_probability(np.array([1.96])), 3)
    0.05
    >>> no_signal_probability(np.array([]))
    1.0
    """
    from scipy.special import chdtrc  # scipy.stats takes a second to import

    measured = z[~np.isnan(z)]
    if not len(measured):
        return 1.0
    return float(chdtrc(len(measured), float(measured @ measured)))


def signal_strength(z: FloatArray, significance: float) -> float:
    """Return how far weights may differ: 0 up to the agreement that chance produces, 1 far beyond it.

    ``1 - (critical / found)^2`` for the chi-square statistic of `no_signal_probability`, so that weights move
    smoothly between those of a plain vote and those that the pair moments suggest.

    Parameters
    ----------
    z : array of shape (p,)
        Pair moments divided by their standard errors; NaN for pairs without data.
    significance : float
        Chance of agreement this strong that still counts as none.

    Examples
    --------
    The critical value of one degree of freedom at 5% is 3.84, the square of 1.96:

    >>> round(signal_strength(np.array([1.96]), 0.05), 3), round(signal_strength(np.array([3.92]), 0.05), 3)
    (0.0, 0.938)
    """
    from scipy.special import chdtri

    measured = z[~np.isnan(z)]
    found = float(measured @ measured)
    if found <= 0.0:
        return 0.0
    critical = float(chdtri(len(measured), significance))
    return max(0.0, 1.0 - (critical / found) ** 2)
