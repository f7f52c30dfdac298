"""Votes of sources of known quality, and measures of labels, for the checks of label models."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.exceptions import ConsilienceWarning
from consilience.label_types.base import LabelSpace
from consilience.prediction.simulate import simulate
from consilience.votes import Votes

__all__ = [
    "MakeModel",
    "Panel",
    "costs_of",
    "draw_panel",
    "fitted",
    "followed_alone",
    "loss",
    "plain_labels",
    "rank_correlation",
    "realised_cost",
]

#: Makes an unfitted model, an object with ``fit(votes, gold=None)`` and ``predict(votes)``, for a label space.
MakeModel = Callable[[LabelSpace], Any]


@dataclass(frozen=True)
class Panel:
    """Votes, the truth as the user writes it, and the mean cost of every source."""

    space: LabelSpace
    votes: Votes
    truth: Batch
    cost: FloatArray

    def with_labels(self, labels: Batch, observed: BoolArray | None = None) -> Votes:
        """Return votes of the same sources on the same items that say something else."""
        seen = self.votes.observed if observed is None else observed
        return Votes.from_array(labels, observed=seen, sources=self.votes.sources)


def draw_panel(
    space: LabelSpace,
    share_of_chance: Sequence[float] | FloatArray,
    n: int,
    rng: np.random.Generator,
    coverage: float = 1.0,
) -> Panel:
    """Draw votes of sources whose mean cost is this share of the cost of a random label."""
    chance = float(space.law.expected_cost(np.zeros(1))[0])
    cost = chance * np.asarray(share_of_chance, dtype=np.float64)
    truth = space.as_labels(space.random(n, rng))
    names = [f"source {index}" for index in range(len(cost))]
    votes = simulate(space, truth, space.law.weight_from_cost(cost), rng, coverage=coverage, sources=names)
    return Panel(space, votes, truth, cost)


def realised_cost(
    space: LabelSpace, share_of_chance: Sequence[float] | FloatArray, rng: np.random.Generator, n: int = 4000
) -> FloatArray:
    """Return the mean cost of sources over many votes, where the forward map is only nearly right."""
    panel = draw_panel(space, share_of_chance, n, rng)
    columns = range(panel.votes.n_sources)
    return np.array([loss(space, panel.votes.labels[:, one], panel.truth).mean() for one in columns])


def fitted(make_model: MakeModel, space: LabelSpace, votes: Votes, gold: Any = None) -> Any:
    """Return a fitted model, its findings unheard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        model = make_model(space)
        if gold is None:
            model.fit(votes)
        else:
            model.fit(votes, gold=gold)
        return model


def loss(space: LabelSpace, labels: Batch, truth: Batch, rows: Any = slice(None)) -> FloatArray:
    """Return the cost of each label."""
    return space.cost(space.as_batch(labels[rows]), space.as_batch(truth[rows]))


def costs_of(model: Any) -> FloatArray | None:
    """Return the estimated cost of each source, where the model has one."""
    cost = getattr(model, "expected_cost_", None)
    return None if cost is None else np.asarray(cost, dtype=np.float64)


def followed_alone(space: LabelSpace, votes: Votes, labels: Batch, some: BoolArray) -> float:
    """Return the share of the labels that some of the sources said and nobody else."""
    said = np.stack([loss(space, labels, votes.labels[:, one]) == 0.0 for one in range(votes.n_sources)], axis=1)
    return float(np.mean(said[:, some].any(axis=1) & ~said[:, ~some].any(axis=1)))


def plain_labels(space: LabelSpace, votes: Votes) -> Batch:
    """Return the label of least total cost to the votes of each item, all of them counted alike."""
    n, m = votes.shape
    flat = votes.labels.reshape(n * m, *votes.labels.shape[2:])
    batch = space.as_batch(flat)
    batch = batch.reshape(n, m, *batch.shape[1:])
    return space.as_labels(space.weighted_mean(batch, votes.observed.astype(np.float64)))


def rank_correlation(left: FloatArray, right: FloatArray) -> float:
    """Return Spearman's correlation; 0 where one side does not vary."""
    ranks = [np.unique(values, return_inverse=True)[1].astype(float) for values in (left, right)]
    if min(float(np.ptp(values)) for values in ranks) == 0.0:
        return 0.0
    return float(np.corrcoef(_mean_ranks(left), _mean_ranks(right))[0, 1])


def _mean_ranks(values: FloatArray) -> FloatArray:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    mean: FloatArray = ((ends - count + ends - 1) / 2.0)[place]
    return mean
