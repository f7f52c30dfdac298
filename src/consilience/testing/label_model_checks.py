"""Checks of how a label model behaves: what any aggregator of votes should do, whatever the label type.

``check_label_model(make_model, space)`` runs all of them and raises `LabelModelCheckError` with everything it found. A
model is any object with ``fit(votes)`` and ``predict(votes)``; what a check needs beyond that (``fit(votes, gold=)``,
`confidence`, `expected_cost_`, `sources_`) is looked at only where the model has it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.exceptions import ConsilienceError, UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.label_types.metric.space import Metric
from consilience.testing.simulated import (
    LabelModelCheckError,
    MakeModel,
    Panel,
    costs_of,
    demand_of,
    draw_panel,
    fitted,
    followed_alone,
    loss,
    not_worse,
    plain_labels,
    rank_correlation,
    realized_cost,
    require,
    vote_costs,
)
from consilience.votes import Votes

__all__ = ["LABEL_MODEL_CHECKS", "LabelModelCheckError", "check_label_model"]

#: Costs of eight and of six sources of different quality, as shares of the cost of a random label.
EIGHT, SIX = np.linspace(0.15, 0.85, 8), np.linspace(0.15, 0.85, 6)
#: Standard errors to either side of a 90% interval (the normal quantile of 0.95).
NINETY = 1.645
#: How far confidence may be off: 5%, and two standard errors of a share of 1500 items.
CONFIDENCE_SLACK = 0.05 + 2.0 * np.sqrt(0.25 / 1500)


def check_label_model(make_model: MakeModel, space: LabelSpace, *, seed: int = 0) -> None:
    """Check that a label model behaves as an aggregator of votes should.

    The error names every check that fails with what it demands and the numbers it saw. To look into one, call it alone:
    each of `LABEL_MODEL_CHECKS` takes `make_model`, the space and a random generator.

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
        except LabelModelCheckError as error:
            failures.append((check, str(error)))
        except Exception as error:  # whatever a model of somebody else raises is a finding about it
            failures.append((check, f"{type(error).__name__} was raised: {error}"))
    if failures:
        count = f"{len(failures)} of {len(LABEL_MODEL_CHECKS)} checks"
        found = "\n".join(f"{check.__name__}: {seen}\n    {demand_of(check)}" for check, seen in failures)
        raise LabelModelCheckError(f"The model misbehaves on {type(space).__name__}: {count} fail.\n{found}")


def source_qualities_are_recovered(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that estimated costs rank eight sources as the true ones do (400 items; rank correlation .95)."""
    panel = draw_panel(space, EIGHT, 400, rng)
    cost = costs_of(fitted(make_model, space, panel.votes))
    if cost is not None:
        reached = rank_correlation(cost, panel.cost)
        require(reached >= 0.95, f"estimated and true costs have a rank correlation of {reached:.2f}, below .95")


def labels_beat_chance_and_the_plain_vote(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that labels are better than a random vote and, within a standard error, than the plain vote."""
    panel = draw_panel(space, EIGHT, 400, rng)
    own, plain = _own_and_plain(make_model, panel)
    require(own.mean() < panel.cost.mean(), f"labels cost {own.mean():.4g}, a random vote {panel.cost.mean():.4g}")
    not_worse(own, plain, 0.0, "sources of different quality", errors=1.0)


def an_expert_outweighs_the_others(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that one near-perfect voter among five decides (20 sources, 8 of them experts), on 95% of such items."""
    expert = np.arange(20) < 8
    panel = draw_panel(space, np.where(expert, 0.005, 0.75), 600, rng)
    observed = np.zeros((600, 20), dtype=bool)
    for row in observed:
        row[rng.choice(20, 5, replace=False)] = True
    votes = replace(panel.votes, observed=observed)
    labels = fitted(make_model, space, votes).predict(votes)
    rows = np.flatnonzero(observed[:, expert].sum(axis=1) == 1)
    said = panel.votes.labels[rows, (observed[rows] & expert).argmax(axis=1)]
    own = space.distance(space.as_batch(labels[rows]), space.as_batch(said))
    plain = space.distance(space.as_batch(plain_labels(space, votes)[rows]), space.as_batch(said))
    apart = plain[plain > 0]  # none where the plain vote follows the expert, too
    followed = float(np.mean(own <= (max(0.5 * float(np.median(apart)), 1e-9) if len(apart) else 1e-9)))
    require(followed >= 0.95, f"the only expert on an item is followed on {followed:.1%} of such items, below 95%")


def alike_sources_are_not_told_apart(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that sources of one quality give labels as good as the plain vote, to 2%, and costs that differ by half."""
    panel = draw_panel(space, np.full(5, 0.5), 300, rng)
    own, plain = _own_and_plain(make_model, panel)
    not_worse(own, plain, 0.02, "sources of one quality")
    cost = costs_of(fitted(make_model, space, panel.votes))
    if cost is not None:
        require(cost.max() <= 1.5 * cost.min(), f"sources of one quality have estimated costs {np.round(cost, 3)}")


def spam_is_ignored(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that three of ten sources that answer for other items spoil nothing, and come out as the worst.

    At most 3% of the labels may be what only spammers said.
    """
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
    found = model.predict(votes)
    plain = loss(space, plain_labels(space, votes), panel.truth)
    not_worse(loss(space, found, panel.truth), plain, 0.0, "three spammers among ten sources")
    followed = followed_alone(space, votes, found, np.arange(10) < 3)
    require(followed <= 0.03, f"{followed:.1%} of the labels are what only spammers said, more than 3%")
    cost = costs_of(model)
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
    """Check that 40 known labels of 300 make the others no worse, to .5% and a standard error (three tables)."""
    if "gold" not in inspect.signature(make_model(space).fit).parameters:
        return
    known, own, without = np.arange(300) < 40, [], []
    rest = np.flatnonzero(~known)
    for _ in range(3):
        panel = draw_panel(space, np.linspace(0.2, 0.8, 6), 300, rng)
        told = fitted(make_model, space, panel.votes, gold=(panel.truth, known))
        own.append(loss(space, told.predict(panel.votes), panel.truth, rest))
        untold = fitted(make_model, space, panel.votes)
        without.append(loss(space, untold.predict(panel.votes), panel.truth, rest))
    not_worse(np.concatenate(own), np.concatenate(without), 0.005, "40 known labels", errors=1.0)


def quality_that_does_not_persist_is_not_used(
    make_model: MakeModel, space: LabelSpace, rng: np.random.Generator
) -> None:
    """Check that sources that are good on some items and bad on others, at random, are not weighed to harm."""
    good = draw_panel(space, np.full(6, 0.15), 300, rng)
    weight = float(space.law.weight_from_cost(0.85 * space.law.expected_cost(np.zeros(1)))[0])
    centers = space.as_batch(good.truth)
    labels = good.votes.labels.copy()
    for source in range(6):
        rows = np.flatnonzero(rng.random(300) < 0.5)
        drawn = space.sample_around(centers[rows], weight, rng)
        labels[rows, source] = space.as_labels(drawn, labels.dtype)
    votes = good.with_labels(labels)
    model = fitted(make_model, space, votes)
    own = loss(space, model.predict(votes), good.truth)
    not_worse(own, loss(space, plain_labels(space, votes), good.truth), 0.02, "qualities that change by item")
    cost = costs_of(model)
    if cost is not None:
        require(cost.max() <= 1.5 * cost.min(), f"qualities that change by item give costs {np.round(cost, 3)}")


def good_votes_are_told_from_bad_ones(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that distances to the label rank votes by their distance to the truth no worse than the plain vote does."""
    panel = draw_panel(space, EIGHT, 300, rng)
    label = fitted(make_model, space, panel.votes).predict(panel.votes)
    reached = []
    for center in (label, plain_labels(space, panel.votes)):
        near, true = (vote_costs(space, panel.votes, labels) for labels in (center, panel.truth))
        reached.append(rank_correlation(near.ravel(), true.ravel()))
    require(reached[0] >= reached[1], f"votes are ranked by {reached[0]:.3f}, by the plain vote {reached[1]:.3f}")


def degenerate_votes_have_labels(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that odd tables give one label per item and no NaN where somebody voted."""
    panel = draw_panel(space, np.full(4, 0.4), 40, rng)
    same, one = panel.votes.labels.copy(), panel.votes.labels.copy()
    same[:, 1:] = same[:, :1]
    one[:, :] = one[0, 0] if one.dtype != object else one[:, :1]  # labels of other items may not fit
    alone = np.zeros((40, 4), dtype=bool)
    alone[np.arange(40), rng.integers(4, size=40)] = True
    silent, rare = np.ones((40, 4), dtype=bool), np.ones((40, 4), dtype=bool)
    silent[7] = False
    rare[1:, 3] = False
    tables = {
        "one vote per item": replace(panel.votes, observed=alone),
        "identical sources": panel.with_labels(same),
        "one label for everything": panel.with_labels(one),
        "nobody votes": replace(panel.votes, observed=np.zeros((40, 4), dtype=bool)),
        "two sources": panel.votes.select(panel.votes.sources[:2]),
        "one source": panel.votes.select(panel.votes.sources[:1]),
        "one item": panel.votes[:1],
        "an item without votes": replace(panel.votes, observed=silent),
        "a source with one vote": replace(panel.votes, observed=rare),
    }
    for name, votes in tables.items():
        try:
            labels = fitted(make_model, space, votes).predict(votes)
        except Exception as error:
            raise LabelModelCheckError(f"{name}: {type(error).__name__}: {error}") from error
        require(len(labels) == len(votes), f"{name}: {len(labels)} labels for {len(votes)} items")
        voted = np.flatnonzero(votes.observed.any(axis=1))
        itself = loss(space, labels, labels, voted)
        require(bool(np.isfinite(itself).all()), f"{name}: a label is no label of the space")


def order_and_names_do_not_matter(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that labels are as good, and the same on nearly all items, however items and sources are ordered."""
    panel = draw_panel(space, EIGHT[::2], 200, rng)
    first = fitted(make_model, space, panel.votes).predict(panel.votes)
    items, sources = rng.permutation(200), np.array([2, 3, 1, 0])  # nobody stays first
    shuffled = Votes.from_array(panel.votes.labels[items][:, sources], sources=[f"other {one}" for one in range(4)])
    second = fitted(make_model, space, shuffled).predict(shuffled)
    gap = loss(space, first[items], second)
    allowed = 1e-3 * float(panel.cost.mean())
    require(float(np.mean(gap > allowed)) <= 0.02, f"{np.mean(gap > allowed):.0%} of the labels depend on the order")


def copies_gain_no_weight(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that four copies of a bad source among nine do not take over the labels.

    300 items, cost 80% of chance against 45%. Compared to four independent bad sources, labels must not cost more nor
    be closer to the copied source by more than 5% of chance, nor be what only copies said on 5% more of the items.
    """
    share = np.r_[np.full(4, 0.8), np.full(5, 0.45)]
    panel = draw_panel(space, share, 300, rng)
    copied = panel.votes.labels.copy()
    copied[:, 1:4] = copied[:, :1]
    votes = panel.with_labels(copied)
    chance, bad = float(panel.cost[0] / 0.8), np.arange(9) < 4
    (spent, near, alone), (spent_apart, near_apart, alone_apart) = (
        (
            float(loss(space, label, panel.truth).mean()),
            float(loss(space, label, table.labels[:, 0]).mean()),
            followed_alone(space, table, label, bad),
        )
        for table in (votes, panel.votes)
        for label in (fitted(make_model, space, table).predict(table),)
    )
    require(
        spent <= spent_apart + 0.05 * chance,
        f"labels cost {spent:.4g} where a bad source has three copies, {spent_apart:.4g} where all are independent",
    )
    require(
        near >= near_apart - 0.05 * chance,
        f"labels are {near:.4g} from a bad source that has three copies, {near_apart:.4g} if it has none",
    )
    require(
        alone <= alone_apart + 0.05,
        f"{alone:.1%} of the labels are what only copies of a bad source said, {alone_apart:.1%} without copies",
    )
    cost = costs_of(fitted(make_model, space, votes))
    if cost is not None:
        require(
            cost[:4].mean() >= cost[4:].mean(),
            f"copies of a bad source seem to cost {cost[:4].mean():.4g}, better ones {cost[4:].mean():.4g}",
        )


def more_items_give_better_qualities(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that the error of the costs falls like one over the root of the number of items.

    From 100 items to 1600, the median over five draws of the power with which it falls is .35 at least, to two standard
    errors of it.
    """
    share = np.linspace(0.2, 0.7, 6)
    true, errors = realized_cost(space, share, rng, 20_000), np.zeros((5, 2))
    for draw in range(5):
        for column, n in enumerate((100, 1600)):
            cost = costs_of(fitted(make_model, space, draw_panel(space, share, n, rng).votes))
            if cost is None:
                return
            errors[draw, column] = np.sqrt(np.mean((cost - true) ** 2))
    powers = np.log(errors[:, 0] / np.maximum(errors[:, 1], 1e-12)) / np.log(16.0)
    power, unsure = float(np.median(powers)), float(powers.std() / np.sqrt(len(powers)))
    few, many = np.median(errors, axis=0)
    require(
        power >= 0.35 - 2.0 * unsure,
        f"errors of the costs are {few:.4g} with 100 items and {many:.4g} with 1600, a fall by the power {power:.2f}",
    )


def more_sources_give_better_labels(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that twelve independent sources give better labels than four of them."""
    panel = draw_panel(space, np.full(12, 0.55), 300, rng)
    few = panel.votes.select(panel.votes.sources[:4])
    own = [
        loss(space, fitted(make_model, space, votes).predict(votes), panel.truth).mean() for votes in (few, panel.votes)
    ]
    require(own[1] < own[0], f"labels of 4 sources cost {own[0]:.4g}, of 12 sources {own[1]:.4g}")


def _own_and_plain(make_model: MakeModel, panel: Panel) -> tuple[FloatArray, FloatArray]:
    label = fitted(make_model, panel.space, panel.votes).predict(panel.votes)
    plain = plain_labels(panel.space, panel.votes)
    return loss(panel.space, label, panel.truth), loss(panel.space, plain, panel.truth)


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
    panel = draw_panel(space, EIGHT, 300, rng)
    votes, n_sources = panel.votes, panel.votes.n_sources
    model = fitted(make_model, space, votes)
    cost = costs_of(model)
    if cost is not None:
        reached = rank_correlation(cost, vote_costs(space, votes, model.predict(votes)).mean(axis=0))
        require(reached > 0.5, f"estimated costs and distances to the labels correlate by {reached:.2f} only")
        pairs = list(combinations(range(n_sources), 2))
        seen = np.array([loss(space, votes.labels[:, one], votes.labels[:, two]).mean() for one, two in pairs])
        reached = rank_correlation(np.array([cost[one] + cost[two] for one, two in pairs]), seen)
        require(reached > 0.5, f"estimated costs and distances between pairs correlate by {reached:.2f} only")
    if hasattr(model, "confidence") and not space.continuous:
        votes = draw_panel(space, np.full(5, 0.5), 300, rng).votes
        model = fitted(make_model, space, votes)
        apart = vote_costs(space, votes, model.predict(votes)).mean(axis=1)
        reached = rank_correlation(-np.asarray(model.confidence(votes)), apart)
        require(reached > 0.5, f"doubt about labels and distances to them correlate by {reached:.2f} only")


def intervals_of_qualities_cover(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that 90% intervals (1.645 standard errors) hold the true cost of a source in at least 80% of 90 cases.

    If 90% were true, fewer than 80% of 90 would be seen once in a thousand draws; costs of one fit are nearly
    independent.
    """
    true, held = realized_cost(space, np.linspace(0.25, 0.7, 6), rng, 20_000), []
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
        seen = f"what is stated with probability {stated:.3f} is true for {observed:.3f} of the items"
        require(abs(stated - observed) <= CONFIDENCE_SLACK, seen)


def confidence_is_not_too_high_with_copies(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that probabilities and 90% intervals are at most 5% too sure where two of seven sources copy a third."""
    panel = draw_panel(space, np.r_[np.full(3, 0.75), np.linspace(0.4, 0.8, 4)], 1500, rng)
    labels = panel.votes.labels.copy()
    for copy in (1, 2):
        same = rng.random(1500) < 0.9
        labels[same, copy] = labels[same, 0]
    votes = panel.with_labels(labels)
    for stated, observed in _stated_and_observed(fitted(make_model, space, votes), panel, votes):
        seen = f"with copies, what is stated with probability {stated:.3f} is true for {observed:.3f} of the items"
        require(stated - observed <= CONFIDENCE_SLACK, seen)


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


def the_own_distance_serves_best(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that labels are as good, to 2%, as those of the same model told of another distance.

    The other ones are whether two labels differ at all, and the square of their distance. For labels that are single
    numbers, and models that are made for a distance of one's own, too.
    """
    panel = draw_panel(space, SIX, 300, rng)
    if not _are_numbers(panel.votes.labels):
        return
    own = loss(space, fitted(make_model, space, panel.votes).predict(panel.votes), panel.truth)
    others = {
        "same or not": _changed_distance(space, lambda distance: (distance > 0).astype(np.float64)),
        "the squared distance": _changed_distance(space, np.square),
    }
    for name, other in others.items():
        try:
            labels = fitted(make_model, other, panel.votes).predict(panel.votes)
        except ConsilienceError:  # a model for one label type
            continue
        not_worse(own, loss(space, labels, panel.truth), 0.02, f"told of {name} instead of the distance")


def the_unit_does_not_matter(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that labels are the same, on 98% of the items, whatever the unit of the votes or of the distance is.

    Scores and vectors of seven times the size have labels of seven times the size. For labels that are single numbers,
    a model that is made for a distance of one's own gives the same labels for seven times the distance.
    """
    panel = draw_panel(space, SIX, 200, rng)
    labels, allowed = panel.votes.labels, 1e-3 * float(panel.cost.mean())
    if _is_linear(space, labels):
        large = panel.with_labels(7.0 * labels)
        ones, others = (fitted(make_model, space, votes).predict(votes) for votes in (panel.votes, large))
        moved = float(np.mean(loss(space, ones, others / 7.0) > allowed))
        require(moved <= 0.02, f"{moved:.0%} of the labels change with the unit of the votes")
    if not _are_numbers(labels):
        return
    spaces = [_changed_distance(space, partial(np.multiply, factor)) for factor in (1.0, 7.0)]
    try:
        ones, others = (fitted(make_model, one, panel.votes).predict(panel.votes) for one in spaces)
    except ConsilienceError:  # a model for one label type
        return
    moved = float(np.mean(loss(space, ones, others) > allowed))
    require(moved <= 0.02, f"{moved:.0%} of the labels change with the unit of the distance")


def _changed_distance(space: LabelSpace, change: Callable[[FloatArray], FloatArray]) -> Metric:
    """Return the labels of a space with another distance."""

    def apart(left: Batch, right: Batch) -> FloatArray:
        return change(np.asarray(space.distance(space.as_batch(left), space.as_batch(right)), dtype=np.float64))

    return Metric(apart, vectorized=True)


def _are_numbers(labels: Batch) -> bool:
    return labels.ndim == 2 and labels.dtype.kind in "if"


def _is_linear(space: LabelSpace, labels: Batch) -> bool:
    """Return whether labels are numbers of any size, or vectors of them."""
    return bool(space.continuous and labels.dtype.kind == "f" and space.contains(np.full(labels.shape[2:], 1e3)[()]))


def shifted_sources_keep_their_place(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that a constant added to the votes of one source does not reorder the sources (rank correlation .9).

    For scores and vectors: who is off by a constant is no noisier for that. The quality is that of the weights.
    """
    panel = draw_panel(space, SIX, 400, rng)
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
    the_model_agrees_with_the_votes,
    good_votes_are_told_from_bad_ones,
    degenerate_votes_have_labels,
    order_and_names_do_not_matter,
    copies_gain_no_weight,
    more_items_give_better_qualities,
    more_sources_give_better_labels,
    intervals_of_qualities_cover,
    confidence_is_what_happens,
    confidence_is_not_too_high_with_copies,
    the_own_distance_serves_best,
    the_unit_does_not_matter,
    shifted_sources_keep_their_place,
)
