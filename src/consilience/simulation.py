"""Votes drawn from the model, for tests, power checks and experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from consilience.arrays import FloatArray
from consilience.spaces.base import LabelSpace
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
    >>> from consilience.spaces import Classes
    >>> rng = np.random.default_rng(0)
    >>> simulate(Classes(2), [0, 1, 1], weights=[9.0, 9.0], rng=rng).labels.tolist()
    [[0, 0], [1, 1], [1, 1]]
    """
    like = np.asarray(truth).dtype if not isinstance(truth, np.ndarray) else truth.dtype
    centers = space.as_batch(truth)
    columns = [space.sample_around(centers, float(weight), rng) for weight in weights]
    labels = space.as_labels(np.stack(columns, axis=1).reshape(-1, *columns[0].shape[1:]), like)
    labels = labels.reshape(len(centers), len(columns), *labels.shape[1:])
    chance = np.broadcast_to(np.asarray(coverage, dtype=float), len(columns))
    observed = rng.random((len(centers), len(columns))) < chance
    return Votes.from_array(labels, observed=observed, sources=sources)
