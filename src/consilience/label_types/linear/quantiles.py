"""Scores on scales that are bent: skewed, with a ceiling, or of another shape for every source.

A straight line from y to the votes cannot follow such scales. Each source's votes are replaced by normal scores, the
normal quantiles of their mid-ranks among its own votes; the lines are learned there, and labels go back to the scale
of the votes through the quantile functions of the sources, each weighted by what it tells about y.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray

__all__ = ["normal_truth", "normal_votes", "quantile_average", "quantile_knots", "standard_labels", "straightness"]

#: Points of the quantile function of each source.
KNOTS = 200
#: Votes of a source needed for its quantiles (each accurate to about a tenth), and to decide whether its scale is bent.
MIN_VOTES, MIN_JUDGED = 20, 200
#: A scale with less straightness is visibly bent. Normal votes are above .99, and those with heavy tails above .97.
STRAIGHT = 0.97
#: The ranks of two sources are comparable if both saw at least this share of the items.
MOST_ITEMS = 0.5
#: If at least this share of the sources has bent scales, all scales are treated as bent.
BENT_SHARE = 1.0 / 3.0
#: Quantiles between which straightness is judged, so that outliers do not count.
MIDDLE = np.linspace(0.05, 0.95, 91)


def quantile_knots(labels: Batch, observed: BoolArray, *, only_bent: bool) -> FloatArray | None:
    """Return the quantile function of each source at ``(j - 1/2) / KNOTS``, ``(m, KNOTS)``, from a sample of votes.

    None where a source has too few of them, and with `only_bent` also where no scale is bent.
    """
    counts = observed.sum(axis=0)
    active = counts > 0
    if active.sum() < 3 or counts[active].min() < MIN_VOTES:
        return None
    columns = [np.asarray(labels[observed[:, a], a], dtype=np.float64) for a in range(observed.shape[1])]
    if only_bent:
        if np.median(counts[active]) < MOST_ITEMS * observed.any(axis=1).sum():
            return None
        judged = [straightness(column) for column in columns if len(column) >= MIN_JUDGED]
        known = [value for value in judged if np.isfinite(value)]
        if len(known) < 3 or sum(value < STRAIGHT for value in known) < max(2.0, BENT_SHARE * len(known)):
            return None
    levels = (np.arange(KNOTS) + 0.5) / KNOTS
    return np.array([np.quantile(column, levels) if len(column) else np.zeros(KNOTS) for column in columns])


def normal_votes(knots: FloatArray, labels: Batch, observed: BoolArray) -> FloatArray:
    """Return the normal scores of votes ``(n, m, 1)``; zero where there is none."""
    scores = np.zeros(labels.shape)
    for a, own in enumerate(knots):
        seen = observed[:, a]
        scores[seen, a] = _normal_scores(labels[seen, a], own)
    return scores


def normal_truth(knots: FloatArray, truth: FloatArray) -> FloatArray:
    """Return the normal scores of known labels among the votes of all sources.

    Their ranks among themselves would need all of them at once. Any scale that rises with y serves here, as only
    correlations are taken.
    """
    return _normal_scores(truth, knots[np.ptp(knots, axis=1) > 0.0].ravel())


def straightness(votes: FloatArray) -> float:
    """Return the correlation of votes with their normal scores, the outer tenth left out; NaN if these are all equal.

    >>> straightness(np.linspace(0, 1, 500) ** 4) < 0.97 < straightness(np.linspace(-1, 1, 500))
    True
    """
    ordered = np.sort(votes)
    value = np.quantile(ordered, MIDDLE)
    if np.ptp(value) == 0.0:
        return float("nan")
    # Every fit evaluates this for a few numbers, so loading SciPy is avoided.
    normal = [NormalDist().inv_cdf(level) for level in _levels(value, ordered).tolist()]
    return float(np.corrcoef(value, normal)[0, 1])


def _normal_scores(votes: FloatArray, knots: FloatArray) -> FloatArray:
    """Return the normal quantiles of `_levels`."""
    from scipy.special import ndtri

    return np.asarray(ndtri(_levels(votes, knots)))


def _levels(votes: FloatArray, knots: FloatArray) -> FloatArray:
    """Return mid-ranks among the knots, as shares of them; between two of them, of the place in between."""
    values, counts = np.unique(knots, return_counts=True)
    rank = np.interp(votes, values, np.cumsum(counts) - counts / 2.0)
    return np.asarray(rank / len(knots))


def quantile_average(say: FloatArray, knots: FloatArray, factor: FloatArray) -> FloatArray:
    """Return labels on the scale of the votes from a factor of mean 0 and variance 1: the quantiles, weighted."""
    from scipy.special import ndtr

    places = np.arange(knots.shape[1], dtype=np.float64)
    place = ndtr(factor) * len(places) - 0.5
    return np.asarray(sum(one * np.interp(place, places, own) for one, own in zip(say, knots, strict=True) if one > 0))


def standard_labels(say: FloatArray, knots: FloatArray, factor: FloatArray) -> FloatArray:
    """Return the same labels in units of their mean and standard deviation."""
    usual = say @ knots
    scale = float(usual.std())
    return (quantile_average(say, knots, factor) - usual.mean()) / (scale if scale > 0.0 else 1.0)
