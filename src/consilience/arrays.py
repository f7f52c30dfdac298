"""Array types and the few array operations that every layer needs."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
#: First axis is the item: ``(n, *label_shape)``, or ``(n,)`` objects for ragged labels.
Batch = npt.NDArray[Any]


@dataclass(frozen=True)
class Axes:
    """The shape of a stored array or number, in names of sizes, and the range of its numbers.

    It annotates the type of a field, and model files are checked against it. A name is the same size throughout a
    model: ``m`` is the number of sources.
    """

    shape: str = ""
    low: float = -1e130  # squares of labels, which go up to 1e61, and sums with them
    high: float = 1e130
    infinite: bool = False  # whether infinity is a value
    missing: bool = False  # whether NaN is one
    optional: bool = False  # whether the array may be empty instead
    needs: str = ""  # another field, not empty where this one is not
    # Whether the last two axes are symmetric, positive semidefinite or positive definite matrices
    symmetric: bool = False
    covariance: bool = False
    definite: bool = False


#: Correlation of the errors of two sources given the truth: one for copies, zero on the diagonal.
Correlation = Annotated[FloatArray, Axes("m m", 0.0, 1.0, symmetric=True)]

#: Number of ids that are hashed at once, so that they stay in the cache.
HASHED_AT_ONCE = 8192
#: Votes of fewer sources are never sparse; number of items from which sparsity is estimated.
MANY_SOURCES, LOOKED_AT = 64, 1000


def as_object_array(labels: Iterable[Any]) -> npt.NDArray[np.object_]:
    """Return a one-dimensional object array; lists stay lists."""
    return np.fromiter(labels, dtype=object)


def is_null(value: object) -> bool:
    """Return whether a single value stands for "no label": None, NaN, NaT or a pandas NA.

    Examples
    --------
    >>> is_null(None), is_null(float("nan")), is_null("NA"), is_null(0)
    (True, True, False, False)
    """
    if value is None:
        return True
    if isinstance(value, (str, bytes, list, tuple, dict, set, frozenset, np.ndarray)):
        return False
    try:
        return bool(value != value)  # noqa: PLR0124  NaN and NaT differ from themselves
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:
        return False


def as_floats(values: Any) -> FloatArray | None:
    """Return an array of floats, or None if the values are not numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def softmax(scores: FloatArray) -> FloatArray:
    """Return probabilities proportional to ``exp(scores)`` over the last axis."""
    weights: FloatArray = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def hash_priority(ids: npt.NDArray[Any], seed: int = 0) -> npt.NDArray[np.uint64]:
    """Return one well-mixed 64-bit number per item id.

    Items are sampled by this number rather than by position, so that a sample does not depend on their order or on
    partitions.
    """
    if ids.dtype.kind in "iu":
        keys = ids.astype(np.int64 if ids.dtype.kind == "i" else np.uint64, copy=False).view(np.uint64)
    else:
        texts = [repr(value).encode() for value in ids.tolist()]
        keys = np.array([zlib.crc32(text) | (zlib.adler32(text) << 32) for text in texts], dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed = keys + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        shifted = np.empty(min(len(mixed), HASHED_AT_ONCE), dtype=np.uint64)
        for start in range(0, len(mixed), HASHED_AT_ONCE):
            block = mixed[start : start + HASHED_AT_ONCE]
            moved = shifted[: len(block)]
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
                np.right_shift(block, np.uint64(shift), out=moved)
                block ^= moved
                if factor > 1:
                    block *= np.uint64(factor)
        return mixed


def sampled_rows(ids: npt.NDArray[Any], share: float, seed: int) -> IntArray:
    """Return the positions of a share of the items: the same ones however they are ordered or cut into chunks."""
    if share >= 1.0:
        return np.arange(len(ids))
    return np.flatnonzero(hash_priority(ids, seed) < np.uint64(min(int(share * 2**64), 2**64 - 1)))


def votes_per_item(observed: BoolArray) -> IntArray:
    """Return how many sources vote on each item of an ``(n, m)`` mask."""
    m = observed.shape[1]
    if not 0 < m <= 32:
        return observed.sum(axis=1)
    cells = observed.view(np.uint8)  # column by column, because short rows are slow to add up
    total = cells[:, 0].copy()
    for column in range(1, m):
        total += cells[:, column]
    return total.astype(np.int64)


def few_votes(observed: BoolArray) -> bool:
    """Return whether votes are so sparse that a loop over votes is faster than operations on all cells."""
    m = observed.shape[1]
    if m < MANY_SOURCES or not len(observed):
        return False
    looked_at = observed[:: max(len(observed) // LOOKED_AT, 1)]
    return bool((looked_at.sum(axis=1) ** 2).mean() < 0.02 * m**2)
