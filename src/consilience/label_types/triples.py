"""How much the parts of labels differ in difficulty, from how often three sources agree."""

from __future__ import annotations

import numpy as np

from consilience.arrays import FloatArray

__all__ = ["difficulty_nodes", "seen_difficulty"]

#: Spread of the difficulty of tokens or elements on the scale of log-odds before any vote, and how far it may be off: a
#: rate of .1 is .25 one standard deviation up.
USUAL, LEEWAY = 1.0, 0.7
#: Points at which the difficulty is integrated over.
NODES = 7


def difficulty_nodes() -> tuple[FloatArray, FloatArray]:
    """Return the points of a standard normal difficulty ``(7,)`` and their probabilities (Gauss and Hermite)."""
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return points, weights / weights.sum()


def seen_difficulty(triples: FloatArray, grid: FloatArray, two: FloatArray, three: FloatArray) -> float:
    """Return the spread of difficulty with which three sources agree as often as they do, given how often two agree.

    Columns of `triples` ``(5, t)`` are three sources each: cases, agreements of each of the three pairs, and of all.
    For each spread of the grid ``(g,)``, `two` and `three` ``(g, l)`` are how often two and three sources of equal
    quality agree, at rising qualities.
    """
    total, *pairs, all_three = triples[:, triples[0] > 0]
    if not len(total):
        return USUAL
    mean, seen = np.cbrt(np.prod(pairs, axis=0)) / total, all_three / total
    away = np.array([seen - np.interp(mean, pair, triple) for pair, triple in zip(two, three, strict=True)])
    # Copies only add to the excess, and may be in every second triple.
    excess = np.quantile(away, 0.25, axis=1)
    # The agreement of three scatters beyond that of pairs, of which it is about the power 3/2.
    slope = 1.5 * seen / np.maximum(mean, 1e-9)
    variance = seen * (1.0 - slope) ** 2 + (mean - seen) * slope**2 / 3.0 - (seen - slope * mean) ** 2
    # Other triples have hardly anything of that in common; a quartile scatters 1.8 times as much as a mean.
    spread = np.median((np.maximum(variance, 0.0) + 1.0 / total) / total) * 1.8 / (len(total) + 0.8)
    return float(grid[(excess**2 / spread + ((grid - USUAL) / LEEWAY) ** 2).argmin()])
