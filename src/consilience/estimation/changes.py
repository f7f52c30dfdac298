"""How many labels are others than those of the plain vote."""

from __future__ import annotations

import numpy as np

from consilience.estimation.passes import VotePasses
from consilience.families.base import Chunk, Parameters
from consilience.label_types.base import LabelSpace

__all__ = ["changed_labels"]

#: Items that are labelled in both ways.
ITEMS = 200
#: Labels on a continuous scale differ if they are this share of the middle distance between two votes apart.
SHARE = 0.1


def changed_labels(space: LabelSpace, learned: Parameters, plain: Parameters, passes: VotePasses) -> float:
    """Return the share of the items whose label is not that of the plain vote; NaN without a vote."""
    chunk = passes.small_sample(ITEMS)
    rows = np.flatnonzero(chunk.observed.any(axis=1))
    if len(rows) == 0:
        return float("nan")
    labels, observed = chunk.labels[rows], chunk.observed[rows]
    own, other = (space.law.posterior(parameters, labels, observed, "auto").labels for parameters in (learned, plain))
    apart = np.asarray(space.distance(own, other), dtype=np.float64)
    least = SHARE * _between_votes(space, chunk) if space.continuous else 0.0
    return float(np.mean(apart > least))


def _between_votes(space: LabelSpace, chunk: Chunk) -> float:
    """Return the middle distance between the first and the last vote on an item."""
    observed = chunk.observed
    rows = np.flatnonzero(observed.sum(axis=1) >= 2)
    if len(rows) == 0:
        return 0.0
    first = observed[rows].argmax(axis=1)
    last = observed.shape[1] - 1 - observed[rows, ::-1].argmax(axis=1)
    return float(np.median(space.distance(chunk.labels[rows, first], chunk.labels[rows, last])))
