"""A mean over all items from the few whose true value is known, with a 95% interval that assumes nothing of the model.

Prediction-powered estimation: what the model expects of every item is a control variate, whose coefficient is fitted in
closed form, so that a good model makes the interval shorter and a bad one leaves it valid. With relative weights g_i
(Horvitz and Thompson's, divided by their mean, as Hajek has it), values y_i, and expected values c_i less their mean
over all items,

    estimate = mean(g y) - slope mean(g c),    e_i = g_i ((y_i - mean(g y)) - slope (c_i - mean(g c))) / (1 - h_i)

where h_i is the leverage of item i on what was fitted. What is left after the slope may still differ between strata of
items, such as those that got the same label: their means are shrunk by the variance between strata over that of one
mean (a random effect), and the mean over all items is corrected by how far the sample has too many or too few items of
each. The interval holds the means t for which

    (t - estimate)^2 <= z^2 / n (V + S (t - estimate) - Q (t - estimate)^2),   V = mean(e^2), S = mean(e^3) / V

For values of 0 and 1, equal weights and no control (Q = 1) this is Wilson's interval; otherwise (Q = 0, Student's
quantile) the linear term corrects for skewness. A rare loss that the sample missed would be as large as `scale` times
the largest weight, so S is averaged with that over more items than those that differ from the most common loss, or than
the residuals that carry the noise: over `PSEUDO` of them times the share of that loss, as no loss is rare where all
differ.
The slope and the means of strata are shrunk by `PSEUDO`, too, as few losses say little about them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray, IntArray

#: Normal quantile of a 95% interval.
Z = NormalDist().inv_cdf(0.975)
#: Items that Wilson's interval adds to a sample (z squared).
PSEUDO = Z**2
#: Largest leverage of one item on the slope that its residual is corrected for.
MOST_LEVERAGE = 0.9


@dataclass(frozen=True)
class Estimate:
    """A mean over `items` items with its 95% interval, from the `known` ones among them."""

    value: float
    low: float
    high: float
    known: int
    items: int

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    @property
    def margin(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2.0

    def labels_needed(self, margin: float) -> int:
        """Return how many more items to label for an interval of plus or minus `margin`."""
        if not self.known or not np.isfinite(self.margin):
            return self.items
        drawn = 1.0 / self.known - 1.0 / self.items
        if drawn <= 0.0 or self.margin <= margin:
            return 0
        # margin ** 2 is proportional to 1 / known - 1 / items, as in every sample without replacement.
        needed = 1.0 / (margin**2 * drawn / self.margin**2 + 1.0 / self.items)
        return int(np.ceil(needed)) - self.known

    def transformed(self, slope: float, shift: float = 0.0) -> Estimate:
        """Return the estimate of ``slope * mean + shift``."""
        ends = sorted((slope * self.low + shift, slope * self.high + shift))
        return Estimate(slope * self.value + shift, ends[0], ends[1], self.known, self.items)


def estimate_mean(
    values: FloatArray,
    control: FloatArray,
    weights: FloatArray,
    items: int,
    *,
    variance: float = 0.0,
    zero_one: bool = False,
    scale: float = 0.0,
    limits: tuple[float, float] = (-np.inf, np.inf),
    clusters: npt.NDArray[np.int64] | None = None,
    strata: IntArray | None = None,
    sizes: FloatArray | None = None,
) -> Estimate:
    """Return the mean of a value over all items, from those where it is known.

    Parameters
    ----------
    values
        ``(n,)`` known values.
    control
        ``(n,)`` what the model expected of these items, less its mean over all items.
    weights
        ``(n,)`` one over the probability with which each item was drawn; only their ratios matter, and how many items
        they stand for.
    items
        How many items there are.
    variance
        Of what the model expects, over all items. A sample that happens to have less of it does not say more about the
        slope.
    zero_one
        Whether every value is 0 or 1.
    scale
        Size of a value that the sample may have missed; 0 where values have no natural zero.
    limits
        The least and the largest mean that is possible; 0 and 1 where every value is one of them.
    clusters
        ``(n,)`` number of the group of each item, where items of one group are not independent.
    strata, sizes
        ``(n,)`` the stratum of each item, and ``(n, K)`` the share that each stratum has of all items, by the model
        that looked at this item.

    Examples
    --------
    >>> nothing = np.zeros(30)
    >>> right = np.repeat([1.0, 0.0], [27, 3])
    >>> print(estimate_mean(right, nothing, np.ones(30), 10**9, zero_one=True))  # Wilson's interval
    0.900 (0.744 to 0.965)
    """
    n = len(values)
    if zero_one:
        scale, limits = 1.0, (0.0, 1.0)
    if n == 0:
        return Estimate(float("nan"), *limits, 0, items)
    share = weights / weights.sum() if n < items else np.full(n, 1.0 / n)
    heavy = n * share
    drawn = np.minimum(1.0 / (items * share), 1.0) if n < items else np.ones(n)
    mean, shift = float(share @ values), float(share @ control)
    rest, spread = values - mean, control - shift
    # If few items differ from most of the others, they say little about the scatter of the values.
    largest = float(np.abs(values).max()) or 1.0
    common, times = np.unique(np.round(values / largest, 9), return_counts=True)
    usual, seen = largest * float(common[times.argmax()]), float(n - times.max())
    square = max(float(share @ spread**2), variance)
    kept = seen / (seen + PSEUDO) if square > 1e-12 * float(share @ control**2) else 0.0
    slope = max(kept * float(share @ (spread * rest)) / square, 0.0) if kept else 0.0
    value = mean - slope * shift
    leverage = np.minimum(kept * share * spread**2 / square, MOST_LEVERAGE) if slope else np.zeros(n)
    fitted = slope * spread
    if strata is not None and sizes is not None:
        effect, own = _strata_effects(rest - fitted, share, strata, sizes.shape[1], seen / (seen + PSEUDO))
        value -= float(np.bincount(strata, share, minlength=len(effect)) @ effect - share @ sizes @ effect)
        fitted = fitted + effect[strata] - float(share @ effect[strata])
        leverage = np.minimum(leverage + own, MOST_LEVERAGE)
    residual = heavy * (rest - fitted) / (1.0 - leverage)
    missing = 1.0 - drawn
    if clusters is not None:
        _, clusters = np.unique(clusters, return_inverse=True)
        missing = np.bincount(clusters, missing) / np.bincount(clusters)
        residual = np.bincount(clusters, residual) * np.sqrt(clusters.max() + 1.0) / np.sqrt(n)
    count = len(residual)
    second = float((residual**2).mean())
    skew = float((residual**3).mean()) / second if second > 0.0 else 0.0
    # If the model explains most of the variance, few large residuals carry the noise, and only these count as seen.
    pseudo = PSEUDO * (1.0 - seen / n)
    seen = min(seen, float((residual**2).sum() ** 2 / (residual**4).sum())) if second > 0.0 else 0.0
    heaviest = float(heavy.max())
    # If the model explains more than half, residuals are rare in both directions: unexpected losses, and expected
    # losses that did not occur.
    left = float(share @ (rest - fitted) ** 2) / max(float(share @ rest**2), 1e-300)
    explained = max(1.0 - 2.0 * left, 0.0)
    wilson = 2.0 * (1.0 - explained) * min(mean, 1.0 - mean) if zero_one else 0.0
    unseen = max(scale * heaviest - wilson, abs(skew))
    against = explained * max(heaviest * float(np.abs(fitted).max()), abs(skew))
    rare = -1.0 if zero_one and mean > 0.5 else 1.0  # the direction in which losses are rare
    borrowed = {rare: rare * unseen if scale > 0.0 else skew, -rare: (1.0 - explained) * skew - rare * against}
    if (
        usual > 0.0 and scale > 0.0 and not zero_one
    ):  # most items have the same loss; the sample may have missed smaller ones
        borrowed[-1.0] = min(borrowed[-1.0], -usual * heaviest)
    noise = float((residual**2 * missing).mean())
    if zero_one:
        reach, bend = Z**2 / n, 1.0
    elif count < 2:
        return Estimate(min(max(value, limits[0]), limits[1]), *limits, n, items)
    else:
        reach, bend = _student(count - 1) ** 2 / n, 0.0
        noise *= count / (count - 1.0)
    finite = float(missing.mean())
    ends = []
    for sign in (-1.0, 1.0):
        slant = (seen * skew + pseudo * borrowed[sign]) / max(seen + pseudo, 1e-300)
        a, b = 1.0 + reach * bend * finite, reach * slant * finite
        ends.append(value + (b + sign * float(np.sqrt(b * b + 4.0 * a * reach * noise))) / (2.0 * a))
    least, most = limits
    low, middle, high = (min(max(one, least), most) for one in (ends[0], value, ends[1]))
    return Estimate(middle, min(low, middle), max(high, middle), n, items)


def _strata_effects(
    left: FloatArray, share: FloatArray, strata: IntArray, count: int, most: float
) -> tuple[FloatArray, FloatArray]:
    """Return the shrunk mean of what is left in each stratum, and the leverage of each item on that of its own.

    No mean is kept by more than `most`.
    """
    n, known = len(left), np.bincount(strata, minlength=count)
    freedom = int((known > 0).sum()) - 1
    if freedom < 1 or n < freedom + 2:
        return np.zeros(count), np.zeros(n)
    held = np.bincount(strata, share, minlength=count)
    mean = np.bincount(strata, share * left, minlength=count) / np.maximum(held, 1e-300)
    within = n * float(share @ (left - mean[strata]) ** 2) / (n - freedom - 1)
    between = (n * float(held @ mean**2) - freedom * within) / (n - float(known @ known) / n)
    if between <= 0.0:
        return np.zeros(count), np.zeros(n)
    kept = most * known * between / np.maximum(known * between + within, 1e-300)
    return kept * mean, (kept / np.maximum(held, 1e-300))[strata] * share


@cache
def _student(freedom: int) -> float:
    """Return the quantile of Student's t distribution that stands for `Z`."""
    from scipy.stats import t  # loaded by the first audit, not by `import consilience`

    return float(t.ppf(0.975, freedom))
