"""Level 0 of linear votes: means, covariances and correlations of each two sources, from sums that add up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, few_votes
from consilience.estimation.pair_table import BORROWED_ITEMS, MIN_COMMON_ITEMS, PairTable
from consilience.estimation.protocol import Statistics

__all__ = [
    "LinearMoments",
    "correlation_table",
    "gold_moments",
    "gold_sums",
    "identical_votes",
    "linear_sums",
    "repeated_share",
]

#: Rows at a time, so that the centered copy stays in the cache.
ROWS = 16384
#: Cells times sources that are compared for identical votes in one chunk: enough to see copies, and quicker than a sum.
COMPARED = 1 << 20
#: A source whose variance is below this part of the square of its votes says a constant.
CONSTANT = 1e-16
#: Identical votes that make two sources copies where votes on different items never coincide.
IDENTICAL = 3
#: Share of their common items that has to be identical, too: rounded votes of precise sources may meet this often.
IDENTICAL_SHARE = 1e-3
#: Names of the sums over the items on which two sources vote, of the powers of their votes.
POWERS = ("total", "square", "product", "skew", "fourth")


# --- one pass ---------------------------------------------------------------------------------------------


def linear_sums(labels: npt.NDArray[Any], observed: BoolArray, fourth: bool = True) -> dict[str, npt.NDArray[Any]]:
    """Return the sums of one chunk: raw moments, in extended precision.

    Each block of rows is centered before it is multiplied and the center is put back in extended precision, so that
    votes far from zero lose no digits and the sums of any parts still add up.

    Parameters
    ----------
    labels
        ``(n, m, d)``.
    fourth
        Whether the third and fourth powers are wanted, too.

    Returns
    -------
    dict
        ``both`` ``(m, m)`` items on which both vote. Over these, for each coordinate ``(m, m, d)``: ``total`` of the
        first source's votes, ``square`` of them, ``product`` of both, ``skew`` the square of the first times the
        second, ``fourth`` the product of the squares. Where d > 1, ``own`` ``(m, d, d)`` holds the products of the
        coordinates of one vote and ``pair_product`` ``(d, d)`` those of two votes on one item, over all pairs.
    """
    n, m, d = labels.shape
    wide = np.longdouble
    names = POWERS if fourth else POWERS[:3]
    sums: dict[str, npt.NDArray[Any]] = {name: np.zeros((m, m, d), dtype=wide) for name in names}
    sums["both"] = np.zeros((m, m), dtype=np.int64)
    everybody = bool(observed.all())
    sparse = not everybody and few_votes(observed)
    step = max(n, 1) if sparse else ROWS
    for start in range(0, n, step):
        rows = slice(start, start + step)
        seen = observed[rows]
        present = None if everybody else seen.astype(np.float64)
        for k in range(d):
            _add_block(sums, k, labels[rows, :, k], seen, present, sparse)
    if d > 1:
        sums |= _cross_sums(labels, observed)
    return sums


def _add_block(
    sums: dict[str, npt.NDArray[Any]],
    k: int,
    block: npt.NDArray[Any],
    seen: BoolArray,
    present: FloatArray | None,
    sparse: bool,
) -> None:
    """Add the sums of some rows of one coordinate."""
    size, m = block.shape
    fourth = "fourth" in sums
    skew = power = np.zeros((m, m))
    if sparse:
        from consilience.label_types.linear.kernels import sums_of_few

        center = np.array([block[seen[:, a], a].mean() if seen[:, a].any() else 0.0 for a in range(m)])
        product, total, square, skew, power, both = sums_of_few(block, seen, center)
    else:
        if present is None:
            center = np.ones(size) @ block / size
            votes = block - center
            both = np.full((m, m), size, dtype=np.int64)
        else:
            filled = np.where(seen, block, 0.0)
            center = filled.sum(axis=0) / np.maximum(present.sum(axis=0), 1.0)
            votes = (filled - center) * present
            both = np.rint(present.T @ present).astype(np.int64)
        product = votes.T @ votes
        total = np.zeros((m, m)) if present is None else votes.T @ present
        squares = votes**2 if fourth or present is not None else votes
        square = np.repeat(np.diag(product)[:, None], m, axis=1) if present is None else squares.T @ present
        if fourth:
            skew, power = squares.T @ votes, squares.T @ squares
    c, often = center.astype(np.longdouble)[:, None], both.astype(np.longdouble)
    raw_square = square + 2.0 * c * total + often * c**2
    sums["total"][:, :, k] += total + c * often
    sums["square"][:, :, k] += raw_square
    sums["product"][:, :, k] += product + total * c.T + (total * c.T).T + often * c * c.T
    if fourth:
        sums["skew"][:, :, k] += skew + 2.0 * c * product + c**2 * total.T + c.T * raw_square
        mixed = skew.T + 2.0 * c.T * product + c.T**2 * total
        far = square.T + 2.0 * c.T * total.T + c.T**2 * often
        sums["fourth"][:, :, k] += power + 2.0 * c.T * skew + c.T**2 * square + 2.0 * c * mixed + c**2 * far
    if k == 0:
        sums["both"] += both


def _cross_sums(labels: npt.NDArray[Any], observed: BoolArray) -> dict[str, npt.NDArray[Any]]:
    """Return products of different coordinates: of one vote, and of two votes on one item over all pairs."""
    m, d = labels.shape[1:]
    own, every = np.zeros((m, d, d), dtype=np.longdouble), np.zeros((d, d), dtype=np.longdouble)
    for start in range(0, len(labels), ROWS):
        rows = slice(start, start + ROWS)
        votes = np.where(observed[rows, :, None], labels[rows], 0.0)
        count = observed[rows].sum(axis=0)
        center = votes.sum(axis=0) / np.maximum(count, 1)[:, None]
        left = np.where(observed[rows, :, None], votes - center, 0.0)
        # The votes of one source are centered; of an item with several, their sum is not, and stays in raw form.
        far = center.astype(np.longdouble)
        own += np.stack([left[:, a].T @ left[:, a] for a in range(m)])
        own += count[:, None, None] * far[:, :, None] * far[:, None, :]
        together = votes.sum(axis=1)
        middle = together.mean(axis=0) if len(together) else np.zeros(d)
        apart = together - middle
        long = middle.astype(np.longdouble)
        drift = np.outer(apart.sum(axis=0), long)
        every += apart.T @ apart + drift + drift.T + len(together) * np.outer(long, long)
    return {"own": own, "pair_product": every - own.sum(axis=0)}


def identical_votes(labels: npt.NDArray[Any], observed: BoolArray) -> npt.NDArray[np.int64]:
    """Return how often each two sources cast the same vote on an item, ``(m, m)``; in large chunks on some items."""
    from consilience.label_types.linear.kernels import count_identical

    n, m = observed.shape
    step = max(1, -(-n * m * m // COMPARED))
    return count_identical(labels[::step], observed[::step])


def repeated_share(labels: npt.NDArray[Any], observed: BoolArray) -> float:
    """Return the share of pairs of votes on different items that are the same: 0 on a continuous scale.

    Examples
    --------
    >>> repeated_share(np.array([[[1.0], [2.0]], [[1.0], [3.0]]]), np.ones((2, 2), dtype=bool))
    0.25
    """
    item, source = np.nonzero(observed)
    if len(item) == 0:
        return 1.0
    code = np.unique(labels[item, source], axis=0, return_inverse=True)[1].reshape(-1)
    own = np.unique(np.stack([code, item]), axis=1, return_counts=True)[1]
    often, voters = np.bincount(code), np.bincount(item)
    pairs = len(item) ** 2 - int((voters**2).sum())
    return (int((often**2).sum()) - int((own**2).sum())) / pairs if pairs else 1.0


def gold_sums(labels: npt.NDArray[Any], observed: BoolArray, truth: FloatArray) -> dict[str, npt.NDArray[Any]]:
    """Return the sums of votes beside known labels: the truth is one more source, the last one."""
    joined = np.concatenate([np.where(observed[..., None], labels, 0.0), truth[:, None]], axis=1)
    seen = np.concatenate([observed, np.ones((len(truth), 1), dtype=bool)], axis=1)
    sums = linear_sums(joined, seen, fourth=False)
    return {f"gold_{name}": sums[name] for name in ("both", *POWERS[:3])}


# --- what the sums hold -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LinearMoments:
    """What the pairs of sources show.

    Over the items that two sources share, means and variances are drawn to those of all votes of a source as by
    `BORROWED_ITEMS` items, so that a handful of common items gives no wild correlation.
    """

    sums: Statistics

    @cached_property
    def count(self) -> FloatArray:
        """``(m, m)`` items on which both vote."""
        return self.sums["both"].astype(np.float64)

    @property
    def votes(self) -> FloatArray:
        """``(m,)`` votes of each source."""
        return np.diag(self.count)

    @cached_property
    def mean(self) -> FloatArray:
        """``(m, d)`` of all votes of each source."""
        return _narrow(self._wide_mean)

    @cached_property
    def coordinate_variance(self) -> FloatArray:
        """``(m, d)`` of all votes of each source."""
        at = np.arange(len(self.count))
        return _narrow(np.maximum(self._own_spread[at, at], 0.0))

    @cached_property
    def variance(self) -> FloatArray:
        """``(m,)`` mean variance of a coordinate of each source."""
        return _narrow(self.coordinate_variance.mean(axis=1))

    @cached_property
    def varied(self) -> BoolArray:
        """``(m,)`` sources with two or more different votes."""
        at = np.arange(len(self.count))
        size = (self.sums["square"][at, at] / np.maximum(self.votes, 1.0)[:, None]).mean(axis=1)
        # Rounding leaves a trace of variance where there is none.
        varied = (self.votes >= 2) & (self.variance > CONSTANT * size) & (self.variance > 0)
        return np.asarray(varied, dtype=bool)

    @property
    def typical_variance(self) -> float:
        """Mean variance of the sources that vary; one where none does."""
        return float(self.variance[self.varied].mean()) if self.varied.any() else 1.0

    @cached_property
    def covariance(self) -> FloatArray:
        """``(m, m)`` mean covariance of a coordinate, over the items on which both vote."""
        return _narrow(self._covariances.mean(axis=2))

    @cached_property
    def correlation(self) -> FloatArray:
        """``(m, m)`` correlation of the votes, pooled over the coordinates; zero where a source does not vary."""
        items = self.count[:, :, None]
        spread = (items * self._spread + BORROWED_ITEMS * self.coordinate_variance[:, None]) / (items + BORROWED_ITEMS)
        size = np.sqrt(np.maximum(spread.mean(axis=2), 1e-300))
        value = np.where(np.outer(self.varied, self.varied), self.covariance / (size * size.T), 0.0)
        return _narrow(np.clip(value, -1.0, 1.0))

    @property
    def plain_correlation(self) -> FloatArray:
        """``(m, m)`` correlation over the items on which both vote, and nothing else."""
        mean = self._pair_mean
        between = (self.sums["product"] / self._items - mean * np.swapaxes(mean, 0, 1)).mean(axis=2)
        size = np.sqrt(np.maximum(self._own_spread.mean(axis=2), 1e-300))
        return _narrow(np.clip(between / (size * size.T), -1.0, 1.0))

    @cached_property
    def squared_difference(self) -> FloatArray:
        """``(m, m)`` mean squared distance of two votes on one item."""
        product = self.sums["product"] / self._items
        square = self.sums["square"] / self._items
        apart = (square + np.swapaxes(square, 0, 1) - 2.0 * product).sum(axis=2)
        return _narrow(np.maximum(apart, 0.0))

    @cached_property
    def own_covariance(self) -> FloatArray:
        """``(m, d, d)`` covariance of the coordinates of each source."""
        if "own" not in self.sums:
            return self.coordinate_variance[:, :, None]
        mean = self._wide_mean
        second = self.sums["own"] / np.maximum(self.votes, 1.0)[:, None, None]
        return _narrow(second - mean[:, :, None] * mean[:, None, :])

    @cached_property
    def shared_covariance(self) -> FloatArray:
        """``(d, d)`` covariance of the coordinates between sources, in the mean over all pairs."""
        d = self.mean.shape[1]
        pairs = self.count - np.diag(self.votes)
        if "pair_product" not in self.sums or not pairs.any():
            return np.array([[max(float((pairs * self.covariance).sum()), 0.0) / max(pairs.sum(), 1.0)]]) * np.eye(d)
        mean, total = self._wide_mean, self.sums["total"].copy()
        total[np.arange(len(mean)), np.arange(len(mean))] = 0.0
        drift = np.einsum("abd,be->de", total, mean)
        level = np.einsum("ab,ad,be->de", pairs, mean, mean)
        shared = (self.sums["pair_product"] - drift - drift.T + level) / pairs.sum()
        return _narrow(0.5 * (shared + shared.T))

    @cached_property
    def joint_fourth(self) -> FloatArray:
        """``(m, m)`` mean product of the squares of both votes, in units of their variances: 1 + 2 r^2 if normal."""
        a, b = self._pair_mean, np.swapaxes(self._pair_mean, 0, 1)
        skew, square = self.sums["skew"] / self._items, self.sums["square"] / self._items
        total = self.sums["fourth"] / self._items - 2.0 * b * skew - 2.0 * a * np.swapaxes(skew, 0, 1)
        total = total + b**2 * square + a**2 * np.swapaxes(square, 0, 1)
        total = total + 4.0 * a * b * self.sums["product"] / self._items - 3.0 * a**2 * b**2
        spread = self._own_spread * np.swapaxes(self._own_spread, 0, 1)
        usable = np.outer(self.varied, self.varied)
        # Where votes are so far from zero that fourth powers lose their digits, the normal law has to do.
        usable &= np.asarray((a**2 * b**2).sum(axis=2) < 1e15 * spread.sum(axis=2), dtype=bool)
        found = total.sum(axis=2) / np.where(usable, spread.sum(axis=2), 1.0)
        return _narrow(np.where(usable, np.maximum(found, 0.0), 1.0 + 2.0 * self.correlation**2))

    @cached_property
    def unit(self) -> FloatArray:
        """``(m, m)`` variance of the agreement on one item: 1 for normal scores, less for vectors, more in long tails.

        Where votes are normal the product of two of them has the variance ``(1 + r^2) tr(C_a C_b) / tr C_a tr C_b``.
        """
        own = self.own_covariance
        size = np.trace(own, axis1=1, axis2=2)
        own = own / np.where(self.varied, size, 1.0)[:, None, None]
        alike = np.einsum("ade,bed->ab", own, own)
        tails = np.clip(self.joint_fourth / (1.0 + 2.0 * self.correlation**2), 0.1, 100.0)
        usable = np.outer(self.varied, self.varied) & (self.count >= MIN_COMMON_ITEMS)
        np.fill_diagonal(usable, False)
        typical = float(np.average(tails[usable], weights=self.count[usable])) if usable.any() else 1.0
        tails = (self.count * tails + BORROWED_ITEMS * typical) / (self.count + BORROWED_ITEMS)
        return _narrow(np.clip(alike, 1e-3, 1.0) * tails)

    @property
    def _items(self) -> npt.NDArray[np.longdouble]:
        items: npt.NDArray[np.longdouble] = np.maximum(self.sums["both"], 1).astype(np.longdouble)[:, :, None]
        return items

    @cached_property
    def _pair_mean(self) -> npt.NDArray[np.longdouble]:
        """``(m, m, d)`` of the votes of the first source, where both vote."""
        mean: npt.NDArray[np.longdouble] = self.sums["total"] / self._items
        return mean

    @property
    def _wide_mean(self) -> npt.NDArray[np.longdouble]:
        at = np.arange(len(self._pair_mean))
        return self._pair_mean[at, at]

    @cached_property
    def _own_spread(self) -> npt.NDArray[np.longdouble]:
        """``(m, m, d)`` variance of the votes of the first source, where both vote."""
        spread: npt.NDArray[np.longdouble] = self.sums["square"] / self._items - self._pair_mean**2
        return spread

    @property
    def _off(self) -> npt.NDArray[np.longdouble]:
        """``(m, m, d)`` distance of the mean where both vote from the point around which moments are taken."""
        gap = self._pair_mean - self._wide_mean[:, None]
        return np.asarray(gap * BORROWED_ITEMS / (self.count[:, :, None] + BORROWED_ITEMS), dtype=np.longdouble)

    @cached_property
    def _spread(self) -> npt.NDArray[np.longdouble]:
        spread: npt.NDArray[np.longdouble] = self._own_spread + self._off**2
        return spread

    @cached_property
    def _covariances(self) -> npt.NDArray[np.longdouble]:
        mean = self._pair_mean
        between: npt.NDArray[np.longdouble] = self.sums["product"] / self._items - mean * np.swapaxes(mean, 0, 1)
        return between + self._off * np.swapaxes(self._off, 0, 1)


def _narrow(values: npt.NDArray[Any]) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def gold_moments(sums: Statistics) -> LinearMoments | None:
    """Return the moments of the votes on items of known label, with the truth as the last source; None without any."""
    if "gold_both" not in sums:
        return None
    return LinearMoments(Statistics({name: sums[f"gold_{name}"] for name in ("both", *POWERS[:3])}))


def correlation_table(sums: Statistics, repeated: float) -> PairTable:
    """Return the pair table: correlations, which are products of qualities for independent sources.

    Parameters
    ----------
    repeated
        Share of pairs of votes on different items that are the same.
    """
    moments = LinearMoments(sums)
    value, count = moments.correlation, moments.count
    error = np.where(count >= MIN_COMMON_ITEMS, _error(value, count, moments.unit), np.inf)
    error = np.where(np.outer(moments.varied, moments.varied), error, np.inf)
    np.fill_diagonal(value := value.copy(), 1.0)
    gold_value = gold_error = gold_cost = None
    known = gold_moments(sums)
    if known is not None:
        labeled = known.count[:-1, -1]
        usable = (labeled >= MIN_COMMON_ITEMS) & moments.varied & known.varied[-1]
        gold_value = np.where(usable, known.plain_correlation[:-1, -1], 0.0)
        typical = float(np.median(moments.unit))
        gold_error = np.where(usable, _error(gold_value, labeled, np.full(len(labeled), typical)), np.inf)
        gold_cost = known.squared_difference[:-1, -1]
    return PairTable(
        value,
        error,
        count,
        gold_value,
        gold_error,
        None if repeated > 0 else _copies(sums),
        moments.squared_difference,
        gold_cost,
    )


def _error(value: FloatArray, count: FloatArray, unit: FloatArray) -> FloatArray:
    """Return standard errors; few items that happen to agree perfectly do not prove that all would."""
    left = 1.0 - value**2 * count / (count + BORROWED_ITEMS)
    error: FloatArray = np.sqrt(unit * left / np.maximum(count, 1.0))
    return error


def _copies(sums: Statistics) -> BoolArray | None:
    """Return the pairs that cast identical votes, beyond what rounding would do among very many items."""
    if "same" not in sums:
        return None
    copies: BoolArray = sums["same"] >= np.maximum(IDENTICAL, IDENTICAL_SHARE * sums["both"])
    np.fill_diagonal(copies, False)
    return copies if copies.any() else None
