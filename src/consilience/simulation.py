"""Votes drawn from the model, for tests, power checks and experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from consilience.arrays import FloatArray
from consilience.exceptions import UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.votes import Votes

__all__ = ["simulate"]


def simulate(
    space: LabelSpace,
    truth: Any,
    weights: Sequence[float] | FloatArray,
    rng: np.random.Generator,
    *,
    coverage: float | Sequence[float] = 1.0,
    sources: Sequence[str] | None = None,
) -> Votes:
    """Return votes of independent sources around a known truth.

    Parameters
    ----------
    truth
        One label per item.
    weights
        One weight per source: 0 votes at random, a large one is always right.
    coverage
        Probability that a source votes on an item, one for all or one per source.

    Examples
    --------
    >>> from consilience.label_types import Classes
    >>> rng = np.random.default_rng(0)
    >>> simulate(Classes(2), [0, 1, 1], weights=[9.0, 9.0], rng=rng).labels.tolist()
    [[0, 0], [1, 1], [1, 1]]
    """
    if not isinstance(rng, np.random.Generator):
        raise UnsupportedError(f"rng={rng!r} draws no numbers. Pass np.random.default_rng(seed).")
    loudness = _numbers(weights, "weights", "one finite number per source")
    chance = _numbers(coverage, "coverage", "one probability, or one per source")
    if loudness.ndim != 1 or not len(loudness):
        raise UnsupportedError(f"weights={weights!r}: expected one finite number per source, such as [0.5, 1.0, 2.0].")
    if chance.shape not in ((), loudness.shape) or chance.min() < 0 or chance.max() > 1:
        raise UnsupportedError(
            f"coverage={coverage!r}: expected one probability, or one for each of the {len(loudness)} sources."
        )
    like = truth.dtype if isinstance(truth, np.ndarray) else _type_of(truth)
    centers = space.as_batch(truth)
    columns = [space.sample_around(centers, float(weight), rng) for weight in loudness]
    labels = space.as_labels(np.stack(columns, axis=1).reshape(-1, *columns[0].shape[1:]), like)
    labels = labels.reshape(len(centers), len(columns), *labels.shape[1:])
    observed = rng.random((len(centers), len(columns))) < chance
    return Votes.from_array(labels, observed=observed, sources=sources)


def _type_of(labels: Any) -> np.dtype[Any]:
    """Return the type of the array that labels make, which is that of objects where they differ in length."""
    try:
        return np.asarray(labels).dtype
    except ValueError:
        return np.dtype(object)


def _numbers(values: Any, name: str, expected: str) -> FloatArray:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        raise UnsupportedError(f"{name}={values!r}: expected {expected}.")
    return numbers
