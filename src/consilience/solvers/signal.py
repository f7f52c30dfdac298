"""Whether sources agree at all."""

from __future__ import annotations

import numpy as np

from consilience.arrays import FloatArray

__all__ = ["no_signal_probability"]

#: Moments further from zero than this many standard errors are no chance, however many there are.
FAR = 1e6


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
    bounded = np.clip(measured, -FAR, FAR)  # the square of a larger one may overflow
    return float(chdtrc(len(measured), float(bounded @ bounded)))
