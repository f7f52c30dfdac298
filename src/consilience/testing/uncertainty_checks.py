"""Checks of what a label model says about its own certainty: intervals of qualities, confidence of labels."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.exceptions import UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.testing.requirements import require
from consilience.testing.simulated import (
    MakeModel,
    Panel,
    costs_of,
    draw_panel,
    fitted,
    loss,
    rank_correlation,
    realised_cost,
)
from consilience.votes import Votes

__all__ = [
    "confidence_is_not_too_high_with_copies",
    "confidence_is_what_happens",
    "disputed_items_are_less_certain",
    "intervals_of_qualities_cover",
    "the_model_agrees_with_the_votes",
]

VARIED = np.linspace(0.15, 0.85, 8)
#: Standard errors to either side of a 90% interval.
NINETY = 1.645


def disputed_items_are_less_certain(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that labels cost the more the less certain they are, third by third (to a standard error)."""
    panel = draw_panel(space, np.full(5, 0.55), 450, rng, coverage=0.7)
    model = fitted(make_model, space, panel.votes)
    if hasattr(model, "confidence"):
        rows = np.flatnonzero(panel.votes.observed.any(axis=1))
        own = loss(space, model.predict(panel.votes), panel.truth, rows)
        order = np.argsort(-model.confidence(panel.votes)[rows], kind="stable")
        thirds = [own[part] for part in np.array_split(order, 3)]
        costs = [float(third.mean()) for third in thirds]
        seen = f"labels cost {costs[0]:.4g}, {costs[1]:.4g} and {costs[2]:.4g} from the most certain third to the least"
        require(costs[0] < costs[2], seen)
        for surer, other in pairwise(thirds):
            error = float(np.hypot(surer.std(), other.std()) / np.sqrt(len(surer)))
            require(surer.mean() <= other.mean() + error, f"{seen} (standard error {error:.2g})")


def the_model_agrees_with_the_votes(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that what was learned shows in the votes (rank correlations above .5).

    Sources of larger estimated cost are further from the labels; pairs of them are further apart; and labels that are
    no points of a continuous space are less certain where votes of alike sources are further from them.
    """
    panel = draw_panel(space, VARIED, 300, rng)
    votes, n_sources = panel.votes, panel.votes.n_sources
    model = fitted(make_model, space, votes)
    cost = costs_of(model)
    if cost is not None:
        reached = rank_correlation(cost, _apart(space, votes, model.predict(votes)).mean(axis=0))
        require(reached > 0.5, f"estimated costs and distances to the labels correlate by {reached:.2f} only")
        pairs = list(combinations(range(n_sources), 2))
        seen = np.array([loss(space, votes.labels[:, one], votes.labels[:, two]).mean() for one, two in pairs])
        reached = rank_correlation(np.array([cost[one] + cost[two] for one, two in pairs]), seen)
        require(reached > 0.5, f"estimated costs and distances between pairs correlate by {reached:.2f} only")
    if hasattr(model, "confidence") and not space.continuous:
        votes = draw_panel(space, np.full(5, 0.5), 300, rng).votes
        model = fitted(make_model, space, votes)
        apart = _apart(space, votes, model.predict(votes)).mean(axis=1)
        reached = rank_correlation(-np.asarray(model.confidence(votes)), apart)
        require(reached > 0.5, f"doubt about labels and distances to them correlate by {reached:.2f} only")


def _apart(space: LabelSpace, votes: Votes, labels: Batch) -> FloatArray:
    """Return the cost of every vote to the label of its item."""
    return np.stack([loss(space, votes.labels[:, one], labels) for one in range(votes.n_sources)], axis=1)


def intervals_of_qualities_cover(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that 90% intervals (1.645 standard errors) hold the true cost of a source in at least 80% of 90 cases.

    If 90% were true, fewer than 80% of 90 would be seen once in a thousand draws; costs of one fit are nearly
    independent.
    """
    true, held = realised_cost(space, np.linspace(0.25, 0.7, 6), rng, 20_000), []
    for _ in range(15):
        panel = draw_panel(space, np.linspace(0.25, 0.7, 6), 300, rng)
        model = fitted(make_model, space, panel.votes)
        cost = costs_of(model)
        if cost is None or "cost_standard_error" not in getattr(getattr(model, "sources_", None), "columns", {}):
            return
        error = np.array(model.sources_.columns["cost_standard_error"])
        held.append(np.abs(cost - true) <= NINETY * error)
    covered = float(np.mean(held))
    require(covered >= 0.8, f"90% intervals for the costs of the sources hold the truth in {covered:.0%} of cases")


def confidence_is_what_happens(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that probabilities of labels, or 90% intervals for them, come true to 5% on 1500 items."""
    panel = draw_panel(space, np.linspace(0.4, 0.8, 6), 1500, rng)
    for stated, observed in _stated_and_observed(fitted(make_model, space, panel.votes), panel, panel.votes):
        require(
            abs(stated - observed) <= 0.05 + 2.0 * np.sqrt(0.25 / 1500),
            f"what is stated with probability {stated:.3f} is true for {observed:.3f} of the items",
        )


def confidence_is_not_too_high_with_copies(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that probabilities and 90% intervals are at most 5% too sure where two of seven sources copy a third."""
    panel = draw_panel(space, np.r_[np.full(3, 0.75), np.linspace(0.4, 0.8, 4)], 1500, rng)
    labels = panel.votes.labels.copy()
    for copy in (1, 2):
        same = rng.random(1500) < 0.9
        labels[same, copy] = labels[same, 0]
    votes = panel.with_labels(labels)
    for stated, observed in _stated_and_observed(fitted(make_model, space, votes), panel, votes):
        require(
            stated - observed <= 0.05 + 2.0 * np.sqrt(0.25 / 1500),
            f"with copies, what is stated with probability {stated:.3f} is true for {observed:.3f} of the items",
        )


def _stated_and_observed(model: Any, panel: Panel, votes: Votes) -> list[tuple[float, float]]:
    """Return stated probabilities and how often they came true: of labels of a finite choice, or of intervals."""
    space = panel.space
    found: list[tuple[float, float]] = []
    if space.continuous:
        if hasattr(model, "predict_distribution") and votes.labels.dtype.kind == "f" and votes.labels.ndim == 2:
            lower, upper = model.predict_distribution(votes).interval(0.9)
            truth: FloatArray = np.asarray(panel.truth, dtype=np.float64)
            found.append((0.9, float(np.mean((truth >= lower) & (truth <= upper)))))
    elif hasattr(model, "predict_proba") and hasattr(model, "confidence"):
        try:
            sure = np.asarray(model.predict_proba(votes)).max(axis=1)
        except UnsupportedError:  # a label that is no choice from a list
            return []
        right = loss(space, model.predict(votes), panel.truth) == 0.0
        for rows in (np.ones(len(sure), dtype=bool), sure >= np.median(sure), sure <= np.median(sure)):
            found.append((float(sure[rows].mean()), float(right[rows].mean())))
    return found
