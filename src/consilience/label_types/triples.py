"""Labels of many parts: how much these differ in difficulty, and what the pair table leaves for EM over them."""

from __future__ import annotations

import numpy as np

from consilience.arrays import FloatArray

#: Prior spread of the difficulty of tokens or elements in log-odds, and its uncertainty. One standard deviation up, a
#: rate of .1 becomes .25.
USUAL, LEEWAY = 1.0, 0.7
#: Prior standard deviation of the log-odds of errors: q = .5, plus or minus .4.
LOG_ODDS_SPREAD = 1.3
#: The quartile of the standard normal distribution.
QUARTILE = 0.6745
#: Points for the integral over the difficulty.
NODES = 7


def difficulty_nodes() -> tuple[FloatArray, FloatArray]:
    """Return the points of a standard normal difficulty ``(7,)`` and their probabilities (Gauss and Hermite)."""
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return points, weights / weights.sum()


def seen_difficulty(triples: FloatArray, grid: FloatArray, two: FloatArray, three: FloatArray, leeway: float) -> float:
    """Return the spread of difficulty with which three sources agree as often as they do, given how often two agree.

    Columns of `triples` ``(5, t)`` are three sources each: cases, agreements of each of the three pairs, and of all.
    For each spread of the grid ``(g,)``, `two` and `three` ``(g, l)`` are how often two and three sources of equal
    quality agree, at rising qualities. The counts of cases may make that of three wrong by the share `leeway`.
    """
    total, *pairs, every = triples[:, triples[0] > 0]
    if not len(total):
        return USUAL
    mean, seen = np.cbrt(np.prod(pairs, axis=0)) / total, every / total
    away = [seen - np.interp(mean, pair, triple) for pair, triple in zip(two, three, strict=True)]
    # The agreement of three is about the power 3/2 of that of pairs, and scatters around it.
    slope = 1.5 * seen / np.maximum(mean, 1e-9)
    variance = seen * (1.0 - slope) ** 2 + (mean - seen) * slope**2 / 3.0 - (seen - slope * mean) ** 2
    single = float(np.median((np.maximum(variance, 0.0) + 1.0 / total) / total))
    # Copies only increase the excess, and may occur in every second triple. A quartile is below the median by chance
    # alone. Triples are nearly independent, and a quartile scatters 1.8 times as much as a mean.
    excess = np.quantile(away, 0.25, axis=1) + QUARTILE * np.sqrt(single) * (1.0 - 1.0 / len(total))
    error = single * 1.8 / (len(total) + 0.8) + (leeway * float(np.median(seen))) ** 2
    return float(grid[(excess**2 / error + ((grid - USUAL) / LEEWAY) ** 2).argmin()])


def unused_share(spread: FloatArray) -> FloatArray:
    """Return which part of what votes tell about log-odds the pair table has not used.

    It is what the table left of the variance before any vote. Counting the votes twice would drive sources apart.
    """
    share: FloatArray = np.minimum((spread / LOG_ODDS_SPREAD) ** 2, 1.0)
    return share
