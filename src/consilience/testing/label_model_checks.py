"""Checks of how a label model behaves: what any aggregator of votes should do, whatever the label type.

``check_label_model(make_model, space)`` runs all of them and raises `LabelModelCheckError` with everything it
found. A model is any object with ``fit(votes)`` and ``predict(votes)``; what a check needs beyond that
(``fit(votes, gold=)``, `confidence`, `expected_cost_`, `sources_`) is looked at only where the model has it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from consilience.arrays import FloatArray
from consilience.exceptions import ConsilienceError
from consilience.spaces.base import LabelSpace
from consilience.testing.distance_checks import shifted_sources_keep_their_place, the_own_distance_serves_best
from consilience.testing.requirements import LabelModelCheckError, not_worse, require
from consilience.testing.simulated import (
    MakeModel,
    Panel,
    draw_panel,
    fitted,
    loss,
    plain_labels,
    rank_correlation,
    realised_cost,
)
from consilience.votes import Votes

__all__ = ["LABEL_MODEL_CHECKS", "LabelModelCheckError", "check_label_model"]

VARIED = np.linspace(0.15, 0.85, 8)
ALIKE = np.full(5, 0.5)


def check_label_model(make_model: MakeModel, space: LabelSpace, *, seed: int = 0) -> None:
    """Check that a label model behaves as an aggregator of votes should.

    Parameters
    ----------
    make_model
        Called with the space; returns an unfitted model with ``fit(votes)`` and ``predict(votes)``.

    Examples
    --------
    >>> from consilience import LabelModel, Vectors
    >>> check_label_model(LabelModel, Vectors(2))  # doctest: +SKIP
    """
    failures = []
    for check in LABEL_MODEL_CHECKS:
        try:
            check(make_model, space, np.random.default_rng(seed))
        except ConsilienceError as error:
            failures.append(f"{check.__name__}: {error}")
    if failures:
        raise LabelModelCheckError(f"The model misbehaves on {type(space).__name__}.\n" + "\n".join(failures))


def source_qualities_are_recovered(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that estimated costs rank eight sources as the true ones do (400 items; rank correlation .9)."""
    panel = draw_panel(space, VARIED, 400, rng)
    cost = _costs(fitted(make_model, space, panel.votes))
    if cost is not None:
        reached = rank_correlation(cost, panel.cost)
        require(reached >= 0.9, f"estimated and true costs have a rank correlation of {reached:.2f}, below .9")


def labels_beat_chance_and_the_plain_vote(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that labels are better than a random vote and, within a standard error, than the plain vote."""
    panel = draw_panel(space, VARIED, 400, rng)
    own, plain = _own_and_plain(make_model, panel)
    require(own.mean() < panel.cost.mean(), f"labels cost {own.mean():.4g}, a random vote {panel.cost.mean():.4g}")
    not_worse(own, plain, 0.0, "sources of different quality")


def an_expert_outweighs_the_others(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that one near-perfect voter among five decides (20 sources, a third of them experts)."""
    share = np.where(np.arange(20) < 7, 0.02, 0.75)
    panel = draw_panel(space, share, 600, rng)
    expert = np.arange(20) < 7
    observed = np.zeros((600, 20), dtype=bool)
    for row in observed:
        row[rng.choice(20, 5, replace=False)] = True
    votes = replace(panel.votes, observed=observed)
    labels = fitted(make_model, space, votes).predict(votes)
    rows = np.flatnonzero(observed[:, expert].sum(axis=1) == 1)
    said = panel.votes.labels[rows, (observed[rows] & expert).argmax(axis=1)]
    own = space.distance(space.as_batch(labels[rows]), space.as_batch(said))
    plain = space.distance(space.as_batch(plain_labels(space, votes)[rows]), space.as_batch(said))
    followed = float(np.mean(own <= np.maximum(0.5 * np.median(plain[plain > 0]), 1e-9)))
    require(followed >= 0.9, f"the only expert on an item is followed on {followed:.0%} of such items, below 90%")


def alike_sources_are_not_told_apart(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that for sources of one quality labels are as good as the plain vote, to 2%."""
    panel = draw_panel(space, ALIKE, 300, rng)
    own, plain = _own_and_plain(make_model, panel)
    not_worse(own, plain, 0.02, "sources of one quality")


def spam_is_ignored(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that three of ten sources that answer for other items spoil nothing, and come out as the worst."""
    panel = draw_panel(space, np.full(10, 0.45), 300, rng)
    labels = panel.votes.labels.copy()
    for source in range(3):
        if labels.dtype == object:  # labels of other items may not fit, such as trees of other sentences
            labels[:, source] = space.as_labels(
                space.sample_around(space.as_batch(panel.truth), 0.0, rng), labels.dtype
            )
        else:
            labels[:, source] = labels[rng.permutation(300), source]
    votes = panel.with_labels(labels)
    model = fitted(make_model, space, votes)
    own = loss(space, model.predict(votes), panel.truth)
    not_worse(own, loss(space, plain_labels(space, votes), panel.truth), 0.0, "three spammers among ten sources")
    cost = _costs(model)
    if cost is not None:
        require(cost[:3].min() > cost[3:].max(), f"spammers have estimated costs {cost[:3]}, the others {cost[3:]}")


def fewer_votes_cost_gradually_more(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that labels get worse as votes are dropped, and never as bad as a random vote."""
    panel = draw_panel(space, np.linspace(0.2, 0.7, 8), 400, rng)
    keep = rng.random(panel.votes.shape)
    losses = []
    for share in (1.0, 0.6, 0.3):
        votes = replace(panel.votes, observed=keep < share)
        rows = np.flatnonzero(votes.observed.sum(axis=1) >= 2)
        own = loss(space, fitted(make_model, space, votes).predict(votes), panel.truth, rows)
        losses.append((float(own.mean()), float(own.std() / np.sqrt(len(rows)))))
    for (more, error), (fewer, other) in pairwise(losses):
        require(fewer >= more - 2.0 * np.hypot(error, other), f"with fewer votes labels got better: {losses}")
    require(losses[-1][0] < panel.cost.mean(), f"with a third of the votes labels are as bad as a vote: {losses}")


def known_labels_do_not_hurt(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that 40 known labels of 300 do not make the other labels worse."""
    panel = draw_panel(space, np.linspace(0.2, 0.8, 6), 300, rng)
    if "gold" not in inspect.signature(make_model(space).fit).parameters:
        return
    known = np.arange(300) < 40
    without = fitted(make_model, space, panel.votes)
    told = fitted(make_model, space, panel.votes, gold=(panel.truth, known))
    rest = np.flatnonzero(~known)
    own = loss(space, told.predict(panel.votes), panel.truth, rest)
    not_worse(own, loss(space, without.predict(panel.votes), panel.truth, rest), 0.0, "40 known labels")


def quality_that_does_not_persist_is_not_used(
    make_model: MakeModel, space: LabelSpace, rng: np.random.Generator
) -> None:
    """Check that sources that are good on some items and bad on others, at random, are not weighed to harm."""
    good, bad = draw_panel(space, np.full(6, 0.15), 300, rng), np.full(6, 0.85)
    chance = float(space.family.expected_cost(np.zeros(1))[0])
    weight = space.family.weight_from_cost(chance * bad)
    centres = space.as_batch(good.truth)
    labels = good.votes.labels.copy()
    for source in range(6):
        rows = np.flatnonzero(rng.random(300) < 0.5)
        drawn = space.sample_around(centres[rows], float(weight[source]), rng)
        labels[rows, source] = space.as_labels(drawn, labels.dtype)
    votes = good.with_labels(labels)
    own = loss(space, fitted(make_model, space, votes).predict(votes), good.truth)
    not_worse(own, loss(space, plain_labels(space, votes), good.truth), 0.02, "qualities that change by item")


def disputed_items_are_less_certain(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that the least certain third of the labels is worse than the most certain third."""
    panel = draw_panel(space, np.full(5, 0.55), 450, rng, coverage=0.7)
    model = fitted(make_model, space, panel.votes)
    if hasattr(model, "confidence"):
        rows = np.flatnonzero(panel.votes.observed.any(axis=1))
        own = loss(space, model.predict(panel.votes), panel.truth, rows)
        order = np.argsort(model.confidence(panel.votes)[rows], kind="stable")
        low, high = own[order[: len(rows) // 3]].mean(), own[order[-(len(rows) // 3) :]].mean()
        require(low > high, f"the least certain third costs {low:.4g}, the most certain {high:.4g}")


def costs_agree_with_the_labels(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that sources of larger estimated cost are further from the labels (rank correlation above .5)."""
    panel = draw_panel(space, VARIED, 300, rng)
    model = fitted(make_model, space, panel.votes)
    cost = _costs(model)
    if cost is not None:
        label = model.predict(panel.votes)
        seen = np.array([loss(space, panel.votes.labels[:, one], label).mean() for one in range(len(cost))])
        reached = rank_correlation(cost, seen)
        require(reached > 0.5, f"estimated costs and distances to the labels correlate by {reached:.2f} only")


def good_votes_are_told_from_bad_ones(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that distance to the label ranks single votes as the distance to the truth does, like the plain vote."""
    panel = draw_panel(space, VARIED, 300, rng)
    label = fitted(make_model, space, panel.votes).predict(panel.votes)
    reached = []
    for centre in (label, plain_labels(space, panel.votes)):
        near = [loss(space, panel.votes.labels[:, one], centre) for one in range(len(panel.cost))]
        true = [loss(space, panel.votes.labels[:, one], panel.truth) for one in range(len(panel.cost))]
        reached.append(rank_correlation(np.concatenate(near), np.concatenate(true)))
    require(
        reached[0] >= reached[1] - 0.02, f"votes are ranked by {reached[0]:.3f}, by the plain vote {reached[1]:.3f}"
    )


def degenerate_votes_have_labels(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that odd tables give one label per item and no NaN where somebody voted."""
    panel = draw_panel(space, np.full(4, 0.4), 40, rng)
    same = panel.votes.labels.copy()
    same[:, 1:] = same[:, :1]
    alone = np.zeros((40, 4), dtype=bool)
    alone[np.arange(40), rng.integers(4, size=40)] = True
    silent, rare = np.ones((40, 4), dtype=bool), np.ones((40, 4), dtype=bool)
    silent[7] = False
    rare[1:, 3] = False
    tables = {
        "one vote per item": replace(panel.votes, observed=alone),
        "identical sources": panel.with_labels(same),
        "two sources": panel.votes.select(panel.votes.sources[:2]),
        "one source": panel.votes.select(panel.votes.sources[:1]),
        "one item": panel.votes[:1],
        "an item without votes": replace(panel.votes, observed=silent),
        "a source with one vote": replace(panel.votes, observed=rare),
    }
    for name, votes in tables.items():
        try:
            labels = fitted(make_model, space, votes).predict(votes)
        except ConsilienceError as error:
            raise LabelModelCheckError(f"{name}: {error}") from error
        require(len(labels) == len(votes), f"{name}: {len(labels)} labels for {len(votes)} items")
        voted = np.flatnonzero(votes.observed.any(axis=1))
        itself = loss(space, labels, labels, voted)
        require(bool(np.isfinite(itself).all()), f"{name}: a label is no label of the space")


def order_and_names_do_not_matter(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that labels are as good, and the same on nearly all items, however items and sources are ordered."""
    panel = draw_panel(space, VARIED[::2], 200, rng)
    first = fitted(make_model, space, panel.votes).predict(panel.votes)
    items, sources = rng.permutation(200), np.array([2, 3, 1, 0])  # nobody stays first
    shuffled = Votes.from_array(panel.votes.labels[items][:, sources], sources=[f"other {one}" for one in range(4)])
    second = fitted(make_model, space, shuffled).predict(shuffled)
    gap = loss(space, first[items], second)
    allowed = 1e-3 * float(panel.cost.mean())
    require(float(np.mean(gap > allowed)) <= 0.02, f"{np.mean(gap > allowed):.0%} of the labels depend on the order")


def copies_gain_no_weight(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that four copies of a bad source among nine do not take over the labels.

    300 items, cost 80% of chance against 45%. Labels must not be closer to the copied source than with four
    independent bad sources by more than 5% of chance.
    """
    share = np.r_[np.full(4, 0.8), np.full(5, 0.45)]
    panel = draw_panel(space, share, 300, rng)
    copied = panel.votes.labels.copy()
    copied[:, 1:4] = copied[:, :1]
    votes = panel.with_labels(copied)
    near = []
    for table in (votes, panel.votes):
        label = fitted(make_model, space, table).predict(table)
        near.append(float(loss(space, label, panel.truth).mean()))
    chance = float(panel.cost[0] / 0.8)
    require(
        near[0] <= near[1] + 0.05 * chance,
        f"labels cost {near[0]:.4g} where a bad source has three copies, {near[1]:.4g} where all are independent",
    )
    cost = _costs(fitted(make_model, space, votes))
    if cost is not None:
        require(
            cost[:4].mean() >= cost[4:].mean(),
            f"copies of a bad source seem to cost {cost[:4].mean():.4g}, better ones {cost[4:].mean():.4g}",
        )


def more_items_give_better_qualities(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that the error of the costs falls like one over the root of the number of items.

    Sixteen times the items should divide it by four; on average over three draws by at least 1.8.
    """
    true = realised_cost(space, np.linspace(0.2, 0.7, 6), rng)
    errors = np.zeros((3, 2))
    for draw in range(3):
        for column, n in enumerate((100, 1600)):
            panel = draw_panel(space, np.linspace(0.2, 0.7, 6), n, rng)
            cost = _costs(fitted(make_model, space, panel.votes))
            if cost is None:
                return
            errors[draw, column] = np.sqrt(np.mean((cost - true) ** 2))
    few, many = errors.mean(axis=0)
    require(few >= 1.8 * many, f"errors of the costs are {few:.4g} with 100 items and {many:.4g} with 1600")


def more_sources_give_better_labels(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that twelve independent sources give better labels than four of them."""
    panel = draw_panel(space, np.full(12, 0.55), 300, rng)
    few = panel.votes.select(panel.votes.sources[:4])
    own = [
        loss(space, fitted(make_model, space, votes).predict(votes), panel.truth).mean() for votes in (few, panel.votes)
    ]
    require(own[1] < own[0], f"labels of 4 sources cost {own[0]:.4g}, of 12 sources {own[1]:.4g}")


def intervals_of_qualities_cover(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that intervals of 1.96 standard errors hold the true cost in at least 80% of 60 cases.

    If 95% were true, fewer than 80% of 60 would be seen once in ten thousand; costs of one fit are nearly independent.
    """
    true, held = realised_cost(space, np.linspace(0.25, 0.7, 6), rng), []
    for _ in range(10):
        panel = draw_panel(space, np.linspace(0.25, 0.7, 6), 300, rng)
        model = fitted(make_model, space, panel.votes)
        cost = _costs(model)
        if cost is None or "cost_standard_error" not in getattr(getattr(model, "sources_", None), "columns", {}):
            return
        error = np.array(model.sources_.columns["cost_standard_error"])
        held.append(np.abs(cost - true) <= 1.96 * error)
    covered = float(np.mean(held))
    require(covered >= 0.8, f"95% intervals for the costs of the sources hold the truth in {covered:.0%} of cases")


#: Every check, in the order in which they are run.
LABEL_MODEL_CHECKS: tuple[Callable[[MakeModel, LabelSpace, np.random.Generator], None], ...] = (
    source_qualities_are_recovered,
    labels_beat_chance_and_the_plain_vote,
    an_expert_outweighs_the_others,
    alike_sources_are_not_told_apart,
    spam_is_ignored,
    fewer_votes_cost_gradually_more,
    known_labels_do_not_hurt,
    quality_that_does_not_persist_is_not_used,
    disputed_items_are_less_certain,
    costs_agree_with_the_labels,
    good_votes_are_told_from_bad_ones,
    degenerate_votes_have_labels,
    order_and_names_do_not_matter,
    copies_gain_no_weight,
    more_items_give_better_qualities,
    more_sources_give_better_labels,
    intervals_of_qualities_cover,
    the_own_distance_serves_best,
    shifted_sources_keep_their_place,
)


def _costs(model: Any) -> FloatArray | None:
    cost = getattr(model, "expected_cost_", None)
    return None if cost is None else np.asarray(cost, dtype=np.float64)


def _own_and_plain(make_model: MakeModel, panel: Panel) -> tuple[FloatArray, FloatArray]:
    label = fitted(make_model, panel.space, panel.votes).predict(panel.votes)
    plain = plain_labels(panel.space, panel.votes)
    return loss(panel.space, label, panel.truth), loss(panel.space, plain, panel.truth)
