"""Which sources repeat each other's votes on a continuous scale, where two that vote on their own never meet.

A vote that is the same to the last digit as that of another source, and is cast on no other item, was copied. Few
items suffice to see it, where correlations would say nothing yet. Precise sources that round may meet by themselves;
but then they are close on the other items, too.
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.families.base import Chunk, Passes, Sums

__all__ = ["coinciding_pairs", "coincidences"]

#: Votes have to be the same so often, and on this share of the items that two sources share.
LEAST, SHARE = 3, 0.1
#: Good sources may meet by themselves so many times as often as the middle pair, on a scale that is coarse.
TIMES = 10.0
#: Where their votes are not the same, copies are at least this share of the typical squared distance apart.
APART = 0.04
#: With fewer votes of this kind the scale is too coarse to tell anything.
ON_ONE_ITEM = 0.5
#: Probability of a pair of independent sources to be taken for copies, over all pairs, and the rate it is meant for.
LEVEL, RATE = 1e-3, 1e-3
#: Sources and items that are looked at.
MOST, ITEMS = 200, 5_000


def coinciding_pairs(passes: Passes | None) -> BoolArray | None:
    """Return the pairs ``(m, m)`` that repeat each other's votes; None where the votes are not at hand or too coarse.

    Tested against ten times the rate at which the middle pair coincides: in 1,000 tables of independent sources one
    has such a pair.
    """
    if passes is None:
        return None
    kept = min(1.0, ITEMS / max(passes.n_sampled, 1))

    def count(chunk: Chunk) -> Sums:
        if chunk.observed.shape[1] > MOST:
            return Sums.zero()
        part = slice(0, int(np.ceil(kept * len(chunk))))
        return coincidences(chunk.labels[part], chunk.observed[part])

    sums = passes.over_sample(count)
    if "same" not in sums or int(sums["rare"]) < ON_ONE_ITEM * int(sums["cast"]):
        return None
    found = _beyond_chance(sums["same"], sums["met"])
    return found & _apart_elsewhere(sums) if found.any() else found


def coincidences(labels: Batch, observed: BoolArray) -> Sums:
    """Count, per pair, items on which both vote and those with the same vote, cast on no other item of these.

    `squares` adds up the squared distances of the two votes, for coordinates as they are.
    """
    n, m = observed.shape
    item, source = np.nonzero(observed)
    zero = np.zeros((m, m), dtype=np.int64)
    if len(item) == 0:
        nothing = {"rare": np.array(0), "cast": np.array(0)}
        return Sums({"same": zero, "met": zero, "squares": np.zeros((m, m)), **nothing})
    values = np.ascontiguousarray(labels[item, source], dtype=np.float64).reshape(len(item), -1) + 0.0
    code = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
    size = int(code.max()) + 1
    first, last = np.full(size, n), np.full(size, -1)
    np.minimum.at(first, code, item)
    np.maximum.at(last, code, item)
    rare = (first == last)[code]
    same = zero.copy()
    # A vote cast on one item only names the item, so that votes of the same code belong together.
    order = np.argsort(code[rare], kind="stable")
    group, who = code[rare][order], source[rare][order]
    for lag in range(1, m):
        equal = group[lag:] == group[:-lag]
        if not equal.any():
            break
        np.add.at(same, (who[:-lag][equal], who[lag:][equal]), 1)
    seen = observed.astype(np.float64)
    met = np.rint(seen.T @ seen).astype(np.int64)
    counts = {"rare": np.array(int(rare.sum())), "cast": np.array(len(item))}
    return Sums({"same": same + same.T, "met": met, "squares": _squares(values, item, source, seen), **counts})


def _squares(values: FloatArray, item: IntArray, source: IntArray, seen: FloatArray) -> FloatArray:
    """Return the sums of squared distances between the votes of every pair."""
    total = np.zeros((seen.shape[1], seen.shape[1]))
    for coordinate in (values - values.mean(axis=0)).T:
        table = np.zeros(seen.shape)
        table[item, source] = coordinate
        own = (table**2).T @ seen
        total += own + own.T - 2.0 * table.T @ table
    return np.maximum(total, 0.0)


def _beyond_chance(same: IntArray, met: IntArray) -> BoolArray:
    from scipy.stats import binom

    left, right = np.nonzero(np.triu(met >= LEAST, 1))
    found = np.zeros(same.shape, dtype=bool)
    if len(left) == 0:
        return found
    share: FloatArray = same[left, right] / met[left, right]
    rate = max(TIMES * float(np.median(share)), RATE)
    if rate >= 1.0:
        return found
    chance = binom.sf(same[left, right] - 1, met[left, right], rate)
    copied = (same[left, right] >= LEAST) & (share >= SHARE) & (chance < LEVEL / len(left))
    found[left[copied], right[copied]] = found[right[copied], left[copied]] = True
    return found


def _apart_elsewhere(sums: Sums) -> BoolArray:
    """Return the pairs whose votes are as far apart as those of others, where they are not the same."""
    other = sums["met"] - sums["same"]
    mean = sums["squares"] / np.maximum(other, 1)
    known = np.triu(other > 0, 1)
    typical = float(np.median(mean[known])) if known.any() else 0.0
    apart: BoolArray = (other == 0) | (mean >= APART * typical)
    return apart
