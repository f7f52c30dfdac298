"""Checks of what the distance and the scale of votes mean to a label model."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.exceptions import ConsilienceError
from consilience.label_types.base import LabelSpace
from consilience.label_types.metric.space import Metric
from consilience.testing.requirements import not_worse, require
from consilience.testing.simulated import MakeModel, draw_panel, fitted, loss, rank_correlation

__all__ = ["shifted_sources_keep_their_place", "the_own_distance_serves_best", "the_unit_does_not_matter"]

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


def the_unit_does_not_matter(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that labels are the same, on 98% of the items, whatever the unit of the votes or of the distance is.

    Scores and vectors of seven times the size have labels of seven times the size. For labels that are single numbers,
    a model that is made for a distance of one's own gives the same labels for seven times the distance.
    """
    panel = draw_panel(space, VARIED, 200, rng)
    labels, allowed = panel.votes.labels, 1e-3 * float(panel.cost.mean())
    if _is_linear(space, labels):
        large = panel.with_labels(7.0 * labels)
        ones, others = (fitted(make_model, space, votes).predict(votes) for votes in (panel.votes, large))
        moved = float(np.mean(loss(space, ones, others / 7.0) > allowed))
        require(moved <= 0.02, f"{moved:.0%} of the labels change with the unit of the votes")
    if labels.ndim != 2 or labels.dtype.kind not in "if":
        return

    def apart(left: Batch, right: Batch) -> FloatArray:
        return np.asarray(space.distance(space.as_batch(left), space.as_batch(right)), dtype=np.float64)

    spaces = (Metric(apart, vectorized=True), Metric(lambda left, right: 7.0 * apart(left, right), vectorized=True))
    try:
        ones, others = (fitted(make_model, one, panel.votes).predict(panel.votes) for one in spaces)
    except ConsilienceError:  # a model for one label type
        return
    moved = float(np.mean(loss(space, ones, others) > allowed))
    require(moved <= 0.02, f"{moved:.0%} of the labels change with the unit of the distance")


def _is_linear(space: LabelSpace, labels: Batch) -> bool:
    """Return whether labels are numbers of any size, or vectors of them."""
    return bool(space.continuous and labels.dtype.kind == "f" and space.contains(np.full(labels.shape[2:], 1e3)[()]))


def shifted_sources_keep_their_place(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that a constant added to the votes of one source does not reorder the sources (rank correlation .9).

    For scores and vectors: who is off by a constant is no noisier for that. The quality is that of the weights.
    """
    panel = draw_panel(space, VARIED, 400, rng)
    labels = panel.votes.labels
    if not _is_linear(space, labels):
        return
    moved = labels.copy()
    moved[:, 1] += 0.5 * labels.std()
    weights = [
        getattr(fitted(make_model, space, votes), "weight_", None) for votes in (panel.votes, panel.with_labels(moved))
    ]
    if weights[0] is not None and weights[1] is not None:
        reached = rank_correlation(np.asarray(weights[0]), np.asarray(weights[1]))
        require(reached >= 0.9, f"a shift of one source reorders the weights (rank correlation {reached:.2f})")
