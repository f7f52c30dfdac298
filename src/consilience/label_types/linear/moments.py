"""Level 0 of linear votes: means, covariances and correlations of each two sources, from sums that add up."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray, few_votes
from consilience.estimation.pair_table import BORROWED_ITEMS, MIN_COMMON_ITEMS, PairTable
from consilience.estimation.protocol import Statistics

__all__ = ["LinearMoments", "identical_votes", "linear_sums", "repeated_share"]

Wide = npt.NDArray[np.longdouble]

#: Rows per block, so that the centered copy and its squares stay in the cache.
ROWS = 4096
#: Cells times sources compared for identical votes in one chunk: enough to see copies, and faster than a sum.
COMPARED = 1 << 20
#: A source whose variance is below this share of the square of its votes is constant.
CONSTANT = 1e-16
#: Votes with a smaller variance count as constant, because fourth powers of their deviations underflow.
LEAST_VARIANCE = 1e-150
#: Names of the sums of powers of the votes over the items on which two sources vote. The last two only determine how
#: precise the others are, for which a sample of the items is enough; and the prefix of the sums over that sample.
POWERS = ("total", "square", "product", "skew", "fourth")
SAMPLED = "sampled "


# --- one pass ---------------------------------------------------------------------------------------------


def linear_sums(
    labels: npt.NDArray[Any], observed: BoolArray, sampled: IntArray | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Return the sums of one chunk of votes ``(n, m, d)``: raw moments, in extended precision.

    Each block of rows is centered before it is multiplied and the center is put back in extended precision, so that
    votes far from zero lose no digits and the sums of any parts still add up. ``both`` ``(m, m)`` are the items on
    which both vote. Over these, for each coordinate ``(m, m, d)``: ``total`` of the first source's votes, ``square`` of
    them, ``product`` of both; over the `sampled` rows also ``skew``, the square of the first times the second, and
    ``fourth``, the product of the squares.
    Where d > 1, ``own`` ``(m, d, d)`` holds the products of the coordinates of one vote and ``pair_product`` ``(d, d)``
    those of two votes on one item, over all pairs.
    """
    m, d = labels.shape[1:]
    everyone = sampled is not None and len(sampled) == len(labels)
    found = _powers(labels, observed, 5 if everyone else 3)
    if sampled is not None:
        some = found if everyone else _powers(labels[sampled], observed[sampled], 5)
        found = {SAMPLED + name: value for name, value in some.items()} | {
            name: found[name] for name in ("both", *POWERS[:3])
        }
    if d > 1:
        own, every = np.zeros((m, d, d), dtype=np.longdouble), np.zeros((d, d), dtype=np.longdouble)
        for start in range(0, len(labels), ROWS):
            seen = observed[start : start + ROWS]
            votes = np.where(seen[:, :, None], labels[start : start + ROWS], 0.0)
            every += _raw_products(votes.sum(axis=1))
            for a in range(m):
                own[a] += _raw_products(votes[seen[:, a], a])
        found |= {"own": own, "pair_product": every - own.sum(axis=0)}
    return found


def _powers(labels: npt.NDArray[Any], observed: BoolArray, count: int) -> dict[str, npt.NDArray[Any]]:
    """Return ``both`` and the first sums of `POWERS`, three or all."""
    sums = np.stack([_sums_of_coordinate(labels[:, :, k], observed, count) for k in range(labels.shape[2])], axis=3)
    found: dict[str, npt.NDArray[Any]] = dict(zip(POWERS, sums[1:], strict=False))
    return {"both": np.rint(sums[0, :, :, 0]).astype(np.int64), **found}


def _sums_of_coordinate(votes: npt.NDArray[Any], observed: BoolArray, count: int) -> Wide:
    """Return ``(1 + count, m, m)`` the number of common items and the raw sums, for one coordinate."""
    n, m = votes.shape
    few = not (complete := bool(observed.all())) and few_votes(observed)
    centered = np.zeros((1 + (len(POWERS) if few else count), m, m))
    # The approximate level of the votes of a source. Any value is valid, because the sums are shifted back by it.
    looked_at = slice(None, None, max(n // ROWS, 1) if complete else 1)
    seen = observed[looked_at]
    center = np.where(seen, votes[looked_at], 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    if few:
        from consilience.label_types.linear.kernels import sums_of_few

        sums_of_few(votes, observed, center, centered)
    else:
        _add_blocks(votes, None if complete else observed, center, centered)
    both, total, square, product, *higher = centered.astype(np.longdouble)
    a, b = center.astype(np.longdouble)[:, None], center.astype(np.longdouble)[None, :]
    raw_square = square + 2.0 * a * total + both * a**2
    raw = [both, total + a * both, raw_square, product + total * b + (total * b).T + both * a * b]
    if count > 3:
        skew, fourth = higher
        mixed = skew.T + 2.0 * b * product + b**2 * total
        far = square.T + 2.0 * b * total.T + b**2 * both
        raw.append(skew + 2.0 * a * product + a**2 * total.T + b * raw_square)
        raw.append(fourth + 2.0 * b * skew + b**2 * square + 2.0 * a * mixed + a**2 * far)
    return np.stack(raw)


def _add_blocks(votes: npt.NDArray[Any], observed: BoolArray | None, center: FloatArray, sums: FloatArray) -> None:
    """Add the centered sums, block by block; without a mask everybody votes."""
    n, m = votes.shape
    fourth = len(sums) > 4
    # As large as the block, because NumPy is slow at broadcasting a short row.
    centers = np.tile(center, (min(n, ROWS), 1))
    all_left, all_squares = np.empty_like(centers), np.empty_like(centers)
    totals = np.zeros(m)
    for start in range(0, n, ROWS):
        block = votes[start : start + ROWS]
        size = len(block)
        left, squares = all_left[:size], all_squares[:size]
        np.subtract(block, centers[:size], out=left)
        if observed is None:
            totals += np.ones(size) @ left
        else:
            seen = observed[start : start + ROWS]
            left[~seen] = 0.0
        if fourth or observed is not None:
            np.multiply(left, left, out=squares)
        if observed is not None:
            present = seen.astype(np.float64)
            sums[:3] += present.T @ present, left.T @ present, squares.T @ present
        sums[3] += left.T @ left
        if fourth:
            sums[4] += squares.T @ left
            sums[5] += squares.T @ squares
    if observed is None:
        sums[0], sums[1], sums[2] = n, totals[:, None], np.diag(sums[3])[:, None]


def _raw_products(points: FloatArray) -> Wide:
    """Return the sum of ``x x'`` over points ``(n, d)``, centered before they are multiplied."""
    mean = points.mean(axis=0) if len(points) else np.zeros(points.shape[1])
    left, far = points - mean, mean.astype(np.longdouble)
    drift = np.outer(left.sum(axis=0), far)
    return np.asarray(left.T @ left + drift + drift.T + len(points) * np.outer(far, far), dtype=np.longdouble)


def identical_votes(labels: npt.NDArray[Any], observed: BoolArray) -> npt.NDArray[np.int64]:
    """Return how often each two sources cast the same vote on an item, ``(m, m)``; in large chunks on some items."""
    n, m = observed.shape
    step = max(1, -(-n * m * m // COMPARED))
    votes, seen = np.ascontiguousarray(labels[::step].T), np.ascontiguousarray(observed[::step].T)
    same = np.zeros((m, m), dtype=np.int64)
    for a in range(m):
        equal = seen[a:] & seen[a]
        for coordinate in votes:
            equal &= coordinate[a:] == coordinate[a]
        # Bits are faster to add up than booleans.
        same[a, a:] = np.bitwise_count(np.packbits(equal, axis=1)).sum(axis=1)
    return np.maximum(same, same.T)


def repeated_share(labels: npt.NDArray[Any], observed: BoolArray) -> float:
    """Return the share of pairs of votes on different items that are the same: 0 on a continuous scale.

    >>> repeated_share(np.array([[[1.0], [2.0]], [[1.0], [3.0]]]), np.ones((2, 2), dtype=bool))
    0.25
    """
    item, source = np.nonzero(observed)
    if len(item) == 0:
        return 1.0
    votes = labels[item, source]
    votes = votes[:, 0] if votes.shape[1] == 1 else votes  # numbers are faster to sort than rows with one number
    code = np.unique(votes, axis=0, return_inverse=True)[1].reshape(-1)
    own = np.unique(code * len(observed) + item, return_counts=True)[1]
    often, voters = np.bincount(code), np.bincount(item)
    pairs = len(item) ** 2 - int((voters**2).sum())
    return (int((often**2).sum()) - int((own**2).sum())) / pairs if pairs else 1.0


# --- what the sums hold -----------------------------------------------------------------------------------


class LinearMoments:
    """What the pairs of sources show.

    Over the items that two sources share, means and variances are drawn to those of all votes of a source as by
    `BORROWED_ITEMS` items, so that a handful of common items gives no wild correlation. `count` ``(m, m)`` are the
    items on which both vote; `votes` ``(m,)``, `mean` ``(m, d)`` and `variance` ``(m,)`` describe each source, and
    `varied` ``(m,)`` those with two or more different votes. `covariance` and `correlation` ``(m, m)`` are those of a
    coordinate, on the average and pooled, and `squared_difference` is the mean squared distance of two votes.
    """

    def __init__(self, statistics: Statistics, prefix: str = "") -> None:
        """Take the sums of `linear_sums` whose names start like this."""
        self._sums = {name.removeprefix(prefix): part for name, part in statistics.items() if name.startswith(prefix)}
        self.count = self._sums["both"].astype(np.float64)
        self.votes = np.diag(self.count)
        at = np.arange(len(self.count))
        mean, square, product = (self._per_item(name) for name in POWERS[:3])
        self._own_mean: Wide = mean[at, at]
        self._spread: Wide = square - mean**2
        self.mean = _narrow(self._own_mean)
        own = np.maximum(self._spread[at, at], 0.0)
        self.variance = _narrow(own.mean(axis=1))
        # Rounding errors leave a small variance if there is none.
        least = CONSTANT * _narrow(square[at, at].mean(axis=1))
        self.varied: BoolArray = (self.votes >= 2) & (self.variance > np.maximum(least, LEAST_VARIANCE))
        drawn = BORROWED_ITEMS / (self.count[:, :, None] + BORROWED_ITEMS)
        off = (mean - self._own_mean[:, None]) * drawn
        between = product - mean * np.swapaxes(mean, 0, 1) + off * np.swapaxes(off, 0, 1)
        self.covariance = _narrow(between.mean(axis=2))
        spread = (1.0 - drawn) * (self._spread + off**2) + drawn * own[:, None]
        size = np.sqrt(np.maximum(_narrow(spread.mean(axis=2)), 1e-300))
        value = np.where(np.outer(self.varied, self.varied), self.covariance / (size * size.T), 0.0)
        self.correlation: FloatArray = np.clip(value, -1.0, 1.0)
        apart = (square + np.swapaxes(square, 0, 1) - 2.0 * product).sum(axis=2)
        self.squared_difference = _narrow(np.maximum(apart, 0.0))

    def _per_item(self, name: str) -> Wide:
        return self._sums[name] / np.maximum(self.count, 1.0).astype(np.longdouble)[:, :, None]

    @property
    def typical_variance(self) -> float:
        """Mean variance of the sources that vary; one where none does."""
        return float(self.variance[self.varied].mean()) if self.varied.any() else 1.0

    @property
    def deviation(self) -> FloatArray:
        """``(m,)`` standard deviation of a coordinate; a typical one for sources that do not vary."""
        return np.sqrt(np.where(self.varied, self.variance, self.typical_variance))

    @cached_property
    def own_covariance(self) -> FloatArray:
        """``(m, d, d)`` covariance of the coordinates of each source."""
        if "own" not in self._sums:
            return self.variance[:, None, None]
        mean = self._own_mean
        second = self._sums["own"] / np.maximum(self.votes, 1.0)[:, None, None]
        return _narrow(second - mean[:, :, None] * mean[:, None, :])

    @cached_property
    def shared_covariance(self) -> FloatArray:
        """``(d, d)`` covariance of the coordinates between sources, averaged over all pairs; for d > 1."""
        pairs = self.count - np.diag(self.votes)
        mean, total = self._own_mean, self._sums["total"].copy()
        total[np.arange(len(mean)), np.arange(len(mean))] = 0.0
        drift = np.einsum("abd,be->de", total, mean)
        level = np.einsum("ab,ad,be->de", pairs, mean, mean)
        shared = (self._sums["pair_product"] - drift - drift.T + level) / max(pairs.sum(), 1.0)
        return _narrow(0.5 * (shared + shared.T))

    @cached_property
    def sampled(self) -> LinearMoments:
        """The same of the sampled items."""
        return LinearMoments(Statistics(self._sums), SAMPLED)

    @cached_property
    def joint_fourth(self) -> FloatArray:
        """``(m, m)`` mean product of the squares of both votes, in units of their variances: 1 + 2 r^2 if normal."""
        own = self.sampled
        mean, square, product, skew, fourth = (own._per_item(name) for name in POWERS)
        a, b = mean, np.swapaxes(mean, 0, 1)
        total = fourth - 2.0 * b * skew - 2.0 * a * np.swapaxes(skew, 0, 1)
        total = total + b**2 * square + a**2 * np.swapaxes(square, 0, 1) + 4.0 * a * b * product - 3.0 * a**2 * b**2
        spread = (own._spread * np.swapaxes(own._spread, 0, 1)).sum(axis=2)
        # If votes are so far from zero that fourth powers lose their digits, a normal law is assumed.
        usable = np.outer(own.varied, own.varied) & ((a**2 * b**2).sum(axis=2) < 1e15 * spread)
        found = total.sum(axis=2) / np.where(usable, spread, 1.0)
        return _narrow(np.where(usable, np.maximum(found, 0.0), 1.0 + 2.0 * self.correlation**2))

    @cached_property
    def unit(self) -> FloatArray:
        """``(m, m)`` variance of the agreement on one item: 1 for normal scores, less for vectors, more in long tails.

        Where votes are normal the product of two of them has the variance ``(1 + r^2) tr(C_a C_b) / tr C_a tr C_b``.
        """
        size = np.trace(self.own_covariance, axis1=1, axis2=2)
        own = self.own_covariance / np.where(self.varied, size, 1.0)[:, None, None]
        alike = np.einsum("ade,bed->ab", own, own)
        tails, count = np.clip(self.joint_fourth / (1.0 + 2.0 * self.correlation**2), 0.1, 100.0), self.sampled.count
        usable = np.outer(self.varied, self.varied) & (count >= MIN_COMMON_ITEMS)
        np.fill_diagonal(usable, False)
        typical = float(np.average(tails[usable], weights=count[usable])) if usable.any() else 1.0
        tails = (count * tails + BORROWED_ITEMS * typical) / (count + BORROWED_ITEMS)
        return _narrow(np.clip(alike, 1e-3, 1.0) * tails)

    def pair_table(self, gold: LinearMoments | None = None) -> PairTable:
        """Return the pair table: correlations, which are products of qualities for independent sources.

        `gold` are moments of the items of known label, with the truth as the last source.
        """
        value, count = self.correlation.copy(), self.count
        usable = (count >= MIN_COMMON_ITEMS) & np.outer(self.varied, self.varied)
        error = np.where(usable, _error(value, count, self.unit), np.inf)
        np.fill_diagonal(value, 1.0)
        gold_value = gold_error = None
        if gold is not None:
            labeled = gold.count[:-1, -1]
            usable = (labeled > MIN_COMMON_ITEMS) & self.varied & gold.varied[-1]
            gold_value = np.where(usable, gold.correlation[:-1, -1], 0.0)
            # Mean and spread of the known labels come from few labels, hence Student's t.
            wide = np.sqrt(np.maximum(labeled - 1.0, 0.0) / np.maximum(labeled - 3.0, 1.0))
            gold_error = np.where(usable, wide * _error(gold_value, labeled, np.median(self.unit)), np.inf)
        return PairTable(value, error, count, gold_value, gold_error, None, self.squared_difference)


def _narrow(values: npt.NDArray[Any]) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def _error(value: FloatArray, count: FloatArray, unit: Any) -> FloatArray:
    """Return standard errors; few items that happen to agree perfectly do not prove that all would."""
    left = 1.0 - value**2 * count / (count + BORROWED_ITEMS)
    return np.sqrt(unit * left / np.maximum(count, 1.0))
