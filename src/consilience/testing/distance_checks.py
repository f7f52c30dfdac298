"""Checks of what the distance and the scale of votes mean to a label model."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.exceptions import ConsilienceError
from consilience.spaces.base import LabelSpace
from consilience.spaces.metric import Metric
from consilience.testing.requirements import not_worse, require
from consilience.testing.simulated import MakeModel, draw_panel, fitted, loss, rank_correlation

__all__ = ["shifted_sources_keep_their_place", "the_own_distance_serves_best"]

VARIED = np.linspace(0.15, 0.85, 6)


def the_own_distance_serves_best(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that labels are as good, to 2%, as those of the same model told of another distance.

    The other ones are whether two labels differ at all, and the square of their distance. For labels that are single
    numbers, and models that are made for a distance of one's own, too.
    """
    panel = draw_panel(space, VARIED, 300, rng)
    if panel.votes.labels.ndim != 2 or panel.votes.labels.dtype.kind not in "if":
        return
    own = loss(space, fitted(make_model, space, panel.votes).predict(panel.votes), panel.truth)

    def apart(left: Batch, right: Batch) -> FloatArray:
        return np.asarray(space.distance(space.as_batch(left), space.as_batch(right)), dtype=np.float64)

    others: dict[str, Any] = {
        "same or not": lambda left, right: (apart(left, right) > 0).astype(np.float64),
        "the squared distance": lambda left, right: apart(left, right) ** 2,
    }
    for name, distance in others.items():
        try:
            labels = fitted(make_model, Metric(distance, vectorized=True), panel.votes).predict(panel.votes)
        except ConsilienceError:  # a model for one label type
            continue
        not_worse(own, loss(space, labels, panel.truth), 0.02, f"told of {name} instead of the distance")


def shifted_sources_keep_their_place(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that a constant added to the votes of one source does not reorder the sources (rank correlation .9).

    For scores and vectors: who is off by a constant is no noisier for that. The quality is that of the weights.
    """
    panel = draw_panel(space, VARIED, 400, rng)
    labels = panel.votes.labels
    if not space.continuous or labels.dtype.kind != "f" or not space.contains(np.full(labels.shape[2:], 1e3)[()]):
        return
    moved = labels.copy()
    moved[:, 1] += 0.5 * labels.std()
    weights = [
        getattr(fitted(make_model, space, votes), "weight_", None) for votes in (panel.votes, panel.with_labels(moved))
    ]
    if weights[0] is not None and weights[1] is not None:
        reached = rank_correlation(np.asarray(weights[0]), np.asarray(weights[1]))
        require(reached >= 0.9, f"a shift of one source reorders the weights (rank correlation {reached:.2f})")
