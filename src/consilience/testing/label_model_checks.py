"""Checks of what any model that aggregates votes should do, for any label type.

``check_label_model(make_model, space)`` runs all of them and raises `LabelModelCheckError` with all failures. A model
is any object with ``fit(votes)`` and ``predict(votes)``. Further abilities (``fit(votes, gold=)``, `confidence`,
`expected_cost_`, `cost_standard_error_`, `weight_`) are checked if the model has them.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.exceptions import ConsilienceError, ConsilienceWarning, UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.label_types.metric.space import Metric
from consilience.prediction.simulate import simulate
from consilience.votes import Votes

#: Returns an unfitted model for a label space.
MakeModel = Callable[[LabelSpace], Any]
Check = Callable[[MakeModel, LabelSpace, np.random.Generator], None]

#: Every check, in the order in which they are run.
LABEL_MODEL_CHECKS: list[Check] = []
#: Costs of eight and of six sources of different quality, as shares of the cost of a random label.
EIGHT, SIX = np.linspace(0.15, 0.85, 8), np.linspace(0.15, 0.85, 6)
#: Standard errors to either side of a 90% interval (the normal quantile of 0.95).
NINETY = 1.645
#: Tolerance of confidence: 5%, and two standard errors of a share of 1500 items.
CONFIDENCE_SLACK = 0.05 + 2.0 * np.sqrt(0.25 / 1500)

_REALIZED: dict[tuple[int, tuple[float, ...]], tuple[LabelSpace, FloatArray]] = {}


class LabelModelCheckError(ConsilienceError, AssertionError):
    """A label model does not behave as it should.

    Examples
    --------
    >>> from consilience import Classes
    >>> class Guess:
    ...     def fit(self, votes): return self
    ...     def predict(self, votes): return np.zeros(len(votes), int)
    >>> try:
    ...     check_label_model(Guess, Classes(2))
    ... except LabelModelCheckError:
    ...     print("Guess is not a label model")
    Guess is not a label model
    """


def check_label_model(make_model: MakeModel, space: LabelSpace, *, seed: int = 0) -> None:
    """Check that a label model behaves as an aggregator of votes should.

    The error lists every check that fails, what it demands, and the numbers it saw. To investigate a check, call it
    alone: each of `LABEL_MODEL_CHECKS` takes `make_model`, the space and a random generator.

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
            continue
        except LabelModelCheckError as error:
            seen = str(error)
        except Exception as error:  # any error of the model is a failure of the model
            seen = f"{type(error).__name__} was raised: {error}"
        demand = " ".join((inspect.getdoc(check) or "").split("\n\n")[0].split())
        failures.append(f"{check.__name__}: {seen}\n    {demand}")
    if failures:
        count = f"{len(failures)} of {len(LABEL_MODEL_CHECKS)} checks"
        found = "\n".join(failures)
        raise LabelModelCheckError(f"The model fails {count} on {type(space).__name__}.\n{found}")


def fitted(make_model: MakeModel, space: LabelSpace, votes: Votes, gold: Any = None) -> Any:
    """Return a fitted model, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        model = make_model(space)
        model.fit(votes, **({} if gold is None else {"gold": gold}))
        return model


class _LuckError(LabelModelCheckError):
    """A demand is missed by some standard errors."""


def _require(
    condition: bool | np.bool_, message: str, error: type[LabelModelCheckError] = LabelModelCheckError
) -> None:
    if not condition:
        raise error(message)


def _require_not_worse(own: FloatArray, other: FloatArray, slack: float, situation: str, errors: float = 2.0) -> None:
    """Require that a mean cost is below another one, plus slack and some standard errors of the paired difference."""
    error = float((own - other).std() / np.sqrt(len(own)))
    _require(
        own.mean() <= (1.0 + slack) * other.mean() + errors * error,
        f"{situation}: labels cost {own.mean():.4g}, compared to {other.mean():.4g} without (error {error:.2g})",
        _LuckError,
    )


def _confirm(demand: Callable[[int, float], None], errors: float) -> None:
    """Raise the error of a demand that is missed by some standard errors, and again on fresh votes.

    The second time there are four times as many votes, and three standard errors, one and a half of the first time. If
    nothing is wrong and the first bound is one standard error, both are missed once in 4,700 times: once in 45 runs of
    five seeds for 21 label types. With two standard errors it is once in 32,000 times.
    """
    try:
        demand(1, errors)
    except _LuckError:
        demand(4, 3.0)


@dataclass(frozen=True)
class _Panel:
    """Votes, their truth as the user writes it, and the mean cost of every source."""

    votes: Votes
    truth: Batch
    cost: FloatArray

    def with_labels(self, labels: Batch) -> Votes:
        """Return other votes of the same sources on the same items."""
        return Votes.from_array(labels, observed=self.votes.observed, sources=self.votes.sources)


@dataclass(frozen=True)
class _Case:
    """What to check, and the source of randomness."""

    make_model: MakeModel
    space: LabelSpace
    rng: np.random.Generator

    def draw(self, shares_of_chance: Sequence[float] | FloatArray, n: int, coverage: float = 1.0) -> _Panel:
        """Draw votes of sources whose mean cost is this share of the cost of a random label."""
        space = self.space
        cost = float(space.law.expected_cost(np.zeros(1))[0]) * np.asarray(shares_of_chance, dtype=np.float64)
        truth = space.as_labels(space.random(n, self.rng))
        names = [f"source {index}" for index in range(len(cost))]
        weight = space.law.weight_from_cost(cost)
        return _Panel(simulate(space, truth, weight, self.rng, coverage=coverage, sources=names), truth, cost)

    def realized_cost(self, shares_of_chance: FloatArray) -> FloatArray:
        """Return the mean cost of sources over many votes, which the forward map gives only approximately.

        It is the same for all seeds, so that of the last space is kept.
        """
        key = id(self.space), tuple(shares_of_chance)
        if key not in _REALIZED:
            panel = replace(self, rng=np.random.default_rng(0)).draw(shares_of_chance, 20_000)
            _REALIZED.clear()
            _REALIZED[key] = self.space, self.vote_costs(panel.votes, panel.truth).mean(axis=0)
        return _REALIZED[key][1]

    def fit(self, votes: Votes, gold: Any = None, space: LabelSpace | None = None) -> Any:
        return fitted(self.make_model, space or self.space, votes, gold)

    def labels(self, votes: Votes, space: LabelSpace | None = None) -> Batch:
        return self.fit(votes, space=space).predict(votes)

    def plain_labels(self, votes: Votes) -> Batch:
        """Return the label of least total cost to the votes of each item, all with the same weight."""
        flat = votes.labels.reshape(-1, *votes.labels.shape[2:])
        batch = self.space.as_batch(flat)
        batch = batch.reshape(*votes.shape, *batch.shape[1:])
        return self.space.as_labels(self.space.weighted_mean(batch, votes.observed.astype(np.float64)))

    def loss(self, labels: Batch, truth: Batch, rows: Any = slice(None)) -> FloatArray:
        """Return the cost of each label."""
        return self.space.cost(self.space.as_batch(labels[rows]), self.space.as_batch(truth[rows]))

    def vote_costs(self, votes: Votes, labels: Batch) -> FloatArray:
        """Return the cost of every vote to the label of its item, ``(n, m)``."""
        return np.stack([self.loss(votes.labels[:, one], labels) for one in range(votes.n_sources)], axis=1)

    def followed_alone(self, votes: Votes, labels: Batch, some: BoolArray) -> float:
        """Return the share of the labels that only some of the sources voted for."""
        said = self.vote_costs(votes, labels) == 0.0
        return float(np.mean(said[:, some].any(axis=1) & ~said[:, ~some].any(axis=1)))

    def has_unit(self, labels: Batch) -> bool:
        """Return whether labels are numbers or vectors in a unit: with values seven times as large, all distances are.

        Angles have no unit to choose, as they end where they began.
        """
        large = np.full(labels.shape[2:], 1e3)[()]
        if not (self.space.continuous and labels.dtype.kind == "f" and self.space.contains(large)):
            return False
        apart, further = (self.loss(unit * labels[:, 0], unit * labels[:, 1]) for unit in (1.0, 7.0))
        return np.allclose(further, 7.0**self.space.power * apart)

    def changed_distance(self, change: Callable[[FloatArray], FloatArray]) -> Metric:
        """Return the labels of the space with another distance."""
        space = self.space

        def apart(left: Batch, right: Batch) -> FloatArray:
            return change(np.asarray(space.distance(space.as_batch(left), space.as_batch(right)), dtype=np.float64))

        return Metric(apart, vectorized=True)


def _costs(model: Any) -> FloatArray | None:
    """Return the estimated cost of each source, if the model has it."""
    cost = getattr(model, "expected_cost_", None)
    return None if cost is None else np.asarray(cost, dtype=np.float64)


def _rank_correlation(left: FloatArray, right: FloatArray) -> float:
    """Return Spearman's correlation; 0 if one side is constant."""
    from scipy.stats import rankdata

    one, other = rankdata(left), rankdata(right)
    return float(np.corrcoef(one, other)[0, 1]) if np.ptp(one) > 0.0 and np.ptp(other) > 0.0 else 0.0


def _are_numbers(labels: Batch) -> bool:
    return labels.ndim == 2 and labels.dtype.kind in "if"


def _check(function: Callable[[_Case], None]) -> Check:
    """Add a check to the list."""

    @wraps(function)
    def check(make_model: MakeModel, space: LabelSpace, rng: np.random.Generator) -> None:
        function(_Case(make_model, space, rng))

    LABEL_MODEL_CHECKS.append(check)
    return check


@_check
def source_qualities_are_recovered(case: _Case) -> None:
    """Check that estimated costs rank eight sources as the true ones do (400 items; rank correlation .95)."""
    panel = case.draw(EIGHT, 400)
    cost = _costs(case.fit(panel.votes))
    if cost is not None:
        reached = _rank_correlation(cost, panel.cost)
        _require(reached >= 0.95, f"estimated and true costs have a rank correlation of {reached:.2f}, below .95")


@_check
def labels_beat_chance_and_the_plain_vote(case: _Case) -> None:
    """Check that labels are better than a random vote and, within a standard error, than the plain vote."""
    panel = case.draw(EIGHT, 400)
    own, plain = (case.loss(given(panel.votes), panel.truth) for given in (case.labels, case.plain_labels))
    _require(own.mean() < panel.cost.mean(), f"labels cost {own.mean():.4g}, a random vote {panel.cost.mean():.4g}")
    _require_not_worse(own, plain, 0.0, "sources of different quality", errors=1.0)


@_check
def an_expert_outweighs_the_others(case: _Case) -> None:
    """Check that the only near-perfect voter among five decides 95% of its items (20 sources, 8 of them experts)."""
    expert, space = np.arange(20) < 8, case.space
    panel = case.draw(np.where(expert, 0.005, 0.75), 600)
    observed = np.zeros((600, 20), dtype=bool)
    for row in observed:
        row[case.rng.choice(20, 5, replace=False)] = True
    votes = replace(panel.votes, observed=observed)
    rows = np.flatnonzero(observed[:, expert].sum(axis=1) == 1)
    said = space.as_batch(panel.votes.labels[rows, (observed[rows] & expert).argmax(axis=1)])
    own, plain = (
        space.distance(space.as_batch(given(votes)[rows]), said) for given in (case.labels, case.plain_labels)
    )
    apart = plain[plain > 0]  # none, if the plain vote follows the expert, too
    followed = float(np.mean(own <= (max(0.5 * float(np.median(apart)), 1e-9) if len(apart) else 1e-9)))
    _require(followed >= 0.95, f"the only expert on an item is followed on {followed:.1%} of such items, below 95%")


@_check
def alike_sources_are_not_told_apart(case: _Case) -> None:
    """Check that sources of one quality give labels as good as the plain vote, to 2%, and similar errors, to 50%.

    Labels may be worse by two standard errors; where they are, not on four times as many items either, by three.
    """
    _confirm(
        lambda times, errors: _require_alike(
            case, case.draw(np.full(5, 0.5), 300 * times), None, "sources of one quality", errors
        ),
        2.0,
    )


def _require_alike(case: _Case, panel: _Panel, labels: Batch | None, situation: str, errors: float) -> None:
    votes = panel.votes if labels is None else panel.with_labels(labels)
    model = case.fit(votes)
    own, plain = (case.loss(found, panel.truth) for found in (model.predict(votes), case.plain_labels(votes)))
    _require_not_worse(own, plain, 0.02, situation, errors)
    cost = _costs(model)
    if cost is not None:  # a power of an error
        spread = (cost.max() / max(float(cost.min()), 1e-300)) ** (1.0 / case.space.power)
        _require(spread <= 1.5, f"{situation} have estimated costs {np.round(cost, 3)}, errors up to {spread:.2f} to 1")


@_check
def spam_is_ignored(case: _Case) -> None:
    """Check that three of ten sources that answer for other items do no harm, and are found to be the worst.

    At most 3% of the labels may be those that only spammers voted for.
    """
    panel, space = case.draw(np.full(10, 0.45), 300), case.space
    labels = panel.votes.labels.copy()
    for source in range(3):
        if labels.dtype == object:  # labels of other items may be invalid, such as trees of other sentences
            drawn = space.sample_around(space.as_batch(panel.truth), 0.0, case.rng)
            labels[:, source] = space.as_labels(drawn, labels.dtype)
        else:
            labels[:, source] = labels[case.rng.permutation(300), source]
    votes = panel.with_labels(labels)
    model = case.fit(votes)
    found = model.predict(votes)
    plain = case.loss(case.plain_labels(votes), panel.truth)
    _require_not_worse(case.loss(found, panel.truth), plain, 0.0, "three spammers among ten sources")
    followed = case.followed_alone(votes, found, np.arange(10) < 3)
    _require(followed <= 0.03, f"{followed:.1%} of the labels are what only spammers said, more than 3%")
    cost = _costs(model)
    if cost is not None:
        _require(cost[:3].min() > cost[3:].max(), f"spammers have estimated costs {cost[:3]}, the others {cost[3:]}")


@_check
def fewer_votes_cost_gradually_more(case: _Case) -> None:
    """Check that labels get worse as votes are dropped, and never as bad as a random vote."""
    panel = case.draw(np.linspace(0.2, 0.7, 8), 400)
    keep, losses = case.rng.random(panel.votes.shape), []
    for share in (1.0, 0.6, 0.3):
        votes = replace(panel.votes, observed=keep < share)
        rows = np.flatnonzero(votes.observed.sum(axis=1) >= 2)
        own = case.loss(case.labels(votes), panel.truth, rows)
        losses.append((float(own.mean()), float(own.std() / np.sqrt(len(rows)))))
    for (more, error), (fewer, other) in pairwise(losses):
        _require(fewer >= more - 2.0 * np.hypot(error, other), f"with fewer votes labels got better: {losses}")
    _require(losses[-1][0] < panel.cost.mean(), f"with a third of the votes labels are as bad as a vote: {losses}")


@_check
def known_labels_do_not_hurt(case: _Case) -> None:
    """Check that 40 known labels of 300 do not make the others worse, to .5% and a standard error (three tables).

    Where they do, they must not on twelve fresh tables either, to .5% and three standard errors.
    """
    if "gold" not in inspect.signature(case.make_model(case.space).fit).parameters:
        return
    known = np.arange(300) < 40
    rest = np.flatnonzero(~known)

    def require_no_harm(times: int, errors: float) -> None:
        own, without = [], []
        for _ in range(3 * times):
            panel = case.draw(np.linspace(0.2, 0.8, 6), 300)
            told = case.fit(panel.votes, gold=(panel.truth, known))
            own.append(case.loss(told.predict(panel.votes), panel.truth, rest))
            without.append(case.loss(case.labels(panel.votes), panel.truth, rest))
        _require_not_worse(np.concatenate(own), np.concatenate(without), 0.005, "40 known labels", errors)

    _confirm(require_no_harm, 1.0)


@_check
def quality_that_does_not_persist_is_not_used(case: _Case) -> None:
    """Check that sources that are good on random items and bad on others do not get harmful weights.

    Labels must be as good as the plain vote to 2% and two standard errors; where they are not, on four times as many
    items to three. Estimated errors must be similar, to 50%.
    """
    space = case.space
    weight = float(space.law.weight_from_cost(0.85 * space.law.expected_cost(np.zeros(1)))[0])

    def require_alike(times: int, errors: float) -> None:
        good = case.draw(np.full(6, 0.15), 300 * times)
        centers, labels = space.as_batch(good.truth), good.votes.labels.copy()
        for source in range(6):
            rows = np.flatnonzero(case.rng.random(len(labels)) < 0.5)
            labels[rows, source] = space.as_labels(space.sample_around(centers[rows], weight, case.rng), labels.dtype)
        _require_alike(case, good, labels, "qualities that change by item", errors)

    _confirm(require_alike, 2.0)


@_check
def disputed_items_are_less_certain(case: _Case) -> None:
    """Check that labels cost more the less certain they are, third by third.

    They may cost less by a standard error; where they do, not on four times as many items either, by three.
    """

    def require_ordered(times: int, errors: float) -> None:
        panel = case.draw(np.full(5, 0.55), 450 * times, coverage=0.7)
        model = case.fit(panel.votes)
        if not hasattr(model, "confidence"):
            return
        rows = np.flatnonzero(panel.votes.observed.any(axis=1))
        own = case.loss(model.predict(panel.votes), panel.truth, rows)
        order = np.argsort(-model.confidence(panel.votes)[rows], kind="stable")
        thirds = [own[part] for part in np.array_split(order, 3)]
        costs = [float(third.mean()) for third in thirds]
        seen = f"labels cost {costs[0]:.4g}, {costs[1]:.4g} and {costs[2]:.4g} from the most certain third to the least"
        _require(costs[0] < costs[2], seen)
        for surer, other in pairwise(thirds):
            error = float(np.hypot(surer.std(), other.std()) / np.sqrt(len(surer)))
            _require(surer.mean() <= other.mean() + errors * error, f"{seen} (standard error {error:.2g})", _LuckError)

    _confirm(require_ordered, 1.0)


@_check
def the_model_agrees_with_the_votes(case: _Case) -> None:
    """Check that what was learned shows in the votes (rank correlations above .5).

    Sources of larger estimated cost are further from the labels, and pairs of them are further apart. Labels are less
    certain if the votes are further from them, unless they are points of a continuous space.
    """

    def require_related(left: FloatArray, right: FloatArray, what: str) -> None:
        reached = _rank_correlation(left, right)
        _require(reached > 0.5, f"{what} correlate by {reached:.2f} only")

    votes = case.draw(EIGHT, 300).votes
    model = case.fit(votes)
    cost = _costs(model)
    if cost is not None:
        near = case.vote_costs(votes, model.predict(votes)).mean(axis=0)
        require_related(cost, near, "estimated costs and distances to the labels")
        pairs = list(combinations(range(votes.n_sources), 2))
        seen = np.array([case.loss(votes.labels[:, one], votes.labels[:, two]).mean() for one, two in pairs])
        sums = np.array([cost[one] + cost[two] for one, two in pairs])
        require_related(sums, seen, "estimated costs and distances between pairs")
    if hasattr(model, "confidence") and not case.space.continuous:
        votes = case.draw(np.full(5, 0.5), 300).votes
        model = case.fit(votes)
        apart = case.vote_costs(votes, model.predict(votes)).mean(axis=1)
        require_related(-np.asarray(model.confidence(votes)), apart, "doubt about labels and distances to them")


@_check
def good_votes_are_told_from_bad_ones(case: _Case) -> None:
    """Check that distances to the labels rank the votes by quality at least as well as distances to the plain vote."""
    panel = case.draw(EIGHT, 300)
    true = case.vote_costs(panel.votes, panel.truth).ravel()
    own, plain = (
        _rank_correlation(case.vote_costs(panel.votes, given(panel.votes)).ravel(), true)
        for given in (case.labels, case.plain_labels)
    )
    _require(own >= plain, f"votes are ranked by {own:.3f}, by the plain vote {plain:.3f}")


@_check
def degenerate_votes_have_labels(case: _Case) -> None:
    """Check that degenerate tables give one label per item, and no NaN for items with votes."""
    panel = case.draw(np.full(4, 0.4), 40)
    votes, one = panel.votes, panel.votes.labels.copy()
    one[:, :] = one[0, 0] if one.dtype != object else one[:, :1]  # labels of other items may be invalid
    alone, silent, rare = (np.full((40, 4), start) for start in (False, True, True))
    alone[np.arange(40), case.rng.integers(4, size=40)] = True
    silent[7] = False
    rare[1:, 3] = False
    tables = {
        "one vote per item": replace(votes, observed=alone),
        "identical sources": panel.with_labels(votes.labels[:, [0, 0, 0, 0]]),
        "one label for everything": panel.with_labels(one),
        "nobody votes": replace(votes, observed=np.zeros((40, 4), dtype=bool)),
        "two sources": votes.select(votes.sources[:2]),
        "one source": votes.select(votes.sources[:1]),
        "one item": votes[:1],
        "an item without votes": replace(votes, observed=silent),
        "a source with one vote": replace(votes, observed=rare),
    }
    for name, table in tables.items():
        try:
            labels = case.labels(table)
        except Exception as error:
            raise LabelModelCheckError(f"{name}: {type(error).__name__}: {error}") from error
        _require(len(labels) == len(table), f"{name}: {len(labels)} labels for {len(table)} items")
        itself = case.loss(labels, labels, np.flatnonzero(table.observed.any(axis=1)))
        _require(bool(np.isfinite(itself).all()), f"{name}: a label is not one of the space")


@_check
def order_and_names_do_not_matter(case: _Case) -> None:
    """Check that labels are as good, and the same on nearly all items, however items and sources are ordered."""
    panel = case.draw(EIGHT[::2], 200)
    first = case.labels(panel.votes)
    items, sources = case.rng.permutation(200), np.array([2, 3, 1, 0])  # nobody stays first
    shuffled = Votes.from_array(panel.votes.labels[items][:, sources], sources=[f"other {one}" for one in range(4)])
    moved = float(np.mean(case.loss(first[items], case.labels(shuffled)) > 1e-3 * float(panel.cost.mean())))
    _require(moved <= 0.02, f"{moved:.0%} of the labels depend on the order")


@_check
def copies_gain_no_weight(case: _Case) -> None:
    """Check that four copies of a bad source among nine do not take over the labels.

    300 items; copies cost 80% of chance, the others 45%. Compared to four independent bad sources, labels must not cost
    more by 5% of chance, or follow only copies on 5% more items. They must not be closer to the copied source by 5% of
    chance than where it has no copies: means of six voices are closer to each of them than means of nine, whoever
    repeats whom.
    """
    panel = case.draw(np.r_[np.full(4, 0.8), np.full(5, 0.45)], 300)
    copied = panel.votes.labels.copy()
    copied[:, 1:4] = copied[:, :1]
    votes, slack, bad = panel.with_labels(copied), 0.05 * float(panel.cost[0] / 0.8), np.arange(9) < 4
    alone = panel.votes.select([panel.votes.sources[at] for at in (0, *range(4, 9))])
    label, label_apart, label_alone = map(case.labels, (votes, panel.votes, alone))
    spent, spent_apart = (float(case.loss(each, panel.truth).mean()) for each in (label, label_apart))
    near, near_alone = (float(case.loss(each, copied[:, 0]).mean()) for each in (label, label_alone))
    followed = case.followed_alone(votes, label, bad)
    followed_apart = case.followed_alone(panel.votes, label_apart, bad)
    _require(
        spent <= spent_apart + slack,
        f"labels cost {spent:.4g} where a bad source has three copies, {spent_apart:.4g} where all are independent",
    )
    _require(
        near >= near_alone - slack,
        f"labels are {near:.4g} from a bad source that has three copies, {near_alone:.4g} if it has none",
    )
    _require(
        followed <= followed_apart + 0.05,
        f"{followed:.1%} of the labels are what only copies of a bad source said, {followed_apart:.1%} without copies",
    )
    cost = _costs(case.fit(votes))
    if cost is not None:
        said = f"copies of a bad source seem to cost {cost[:4].mean():.4g}, better ones {cost[4:].mean():.4g}"
        _require(cost[:4].mean() >= cost[4:].mean(), said)


@_check
def more_items_give_better_qualities(case: _Case) -> None:
    """Check that the error of the costs falls like one over the square root of the number of items.

    From 100 to 1600 items, the median exponent over five draws must be at least .35, to two standard errors.
    """
    share = np.linspace(0.2, 0.7, 6)
    true, errors = case.realized_cost(share), np.zeros((5, 2))
    for draw in range(5):
        for column, n in enumerate((100, 1600)):
            cost = _costs(case.fit(case.draw(share, n).votes))
            if cost is None:
                return
            errors[draw, column] = np.sqrt(np.mean((cost - true) ** 2))
    powers = np.log(errors[:, 0] / np.maximum(errors[:, 1], 1e-12)) / np.log(16.0)
    power, unsure = float(np.median(powers)), float(powers.std() / np.sqrt(len(powers)))
    few, many = np.median(errors, axis=0)
    _require(
        power >= 0.35 - 2.0 * unsure,
        f"errors of the costs are {few:.4g} with 100 items and {many:.4g} with 1600, a fall by the power {power:.2f}",
    )


@_check
def more_sources_give_better_labels(case: _Case) -> None:
    """Check that twelve independent sources give better labels than four of them."""
    panel = case.draw(np.full(12, 0.55), 300)
    tables = (panel.votes.select(panel.votes.sources[:4]), panel.votes)
    few, many = (case.loss(case.labels(votes), panel.truth).mean() for votes in tables)
    _require(many < few, f"labels of 4 sources cost {few:.4g}, of 12 sources {many:.4g}")


@_check
def intervals_of_qualities_cover(case: _Case) -> None:
    """Check that 90% intervals (1.645 standard errors) cover the true cost of a source in at least 80% of 90 cases.

    If 90% is true, fewer than 80% of 90 occur once in a thousand draws; costs of one fit are nearly independent.
    """
    share = np.linspace(0.25, 0.7, 6)
    true, held = case.realized_cost(share), []
    for _ in range(15):
        model = case.fit(case.draw(share, 300).votes)
        cost = _costs(model)
        error = getattr(model, "cost_standard_error_", None)
        if cost is None or error is None:
            return
        held.append(np.abs(cost - true) <= NINETY * error)
    covered = float(np.mean(held))
    _require(covered >= 0.8, f"90% intervals for the costs of the sources hold the truth in {covered:.0%} of cases")


@_check
def confidence_is_what_happens(case: _Case) -> None:
    """Check that probabilities of labels, or 90% intervals for them, are calibrated to 5% on 1500 items."""
    panel = case.draw(np.linspace(0.4, 0.8, 6), 1500)
    for stated, observed in _stated_and_observed(case, panel.votes, panel.truth):
        seen = f"what is stated with probability {stated:.3f} is true for {observed:.3f} of the items"
        _require(abs(stated - observed) <= CONFIDENCE_SLACK, seen)


@_check
def confidence_is_not_too_high_with_copies(case: _Case) -> None:
    """Check that probabilities and 90% intervals are at most 5% too confident if two of seven sources copy a third."""
    panel = case.draw(np.r_[np.full(3, 0.75), np.linspace(0.4, 0.8, 4)], 1500)
    labels = panel.votes.labels.copy()
    for copy in (1, 2):
        same = case.rng.random(1500) < 0.9
        labels[same, copy] = labels[same, 0]
    for stated, observed in _stated_and_observed(case, panel.with_labels(labels), panel.truth):
        seen = f"with copies, what is stated with probability {stated:.3f} is true for {observed:.3f} of the items"
        _require(stated - observed <= CONFIDENCE_SLACK, seen)


def _stated_and_observed(case: _Case, votes: Votes, truth: Batch) -> list[tuple[float, float]]:
    """Return stated probabilities of labels or intervals, and how often they were right."""
    model = case.fit(votes)
    if case.space.continuous:
        if not hasattr(model, "predict_distribution") or votes.labels.dtype.kind != "f" or votes.labels.ndim != 2:
            return []
        lower, upper = model.predict_distribution(votes).interval(0.9)
        return [(0.9, float(np.mean((truth >= lower) & (truth <= upper))))]
    if not hasattr(model, "predict_proba") or not hasattr(model, "confidence"):
        return []
    try:
        sure = np.asarray(model.predict_proba(votes)).max(axis=1)
    except UnsupportedError:  # not a finite label type
        return []
    right = case.loss(model.predict(votes), truth) == 0.0
    chosen = (sure >= 0.0, sure >= np.median(sure), sure <= np.median(sure))
    return [(float(sure[rows].mean()), float(right[rows].mean())) for rows in chosen]


@_check
def the_own_distance_serves_best(case: _Case) -> None:
    """Check that labels are as good, to 2%, as those of the same model with another distance.

    The other distances are whether two labels differ, and the squared distance. This applies to labels that are single
    numbers, and to models that accept any distance.
    """
    panel = case.draw(SIX, 300)
    if not _are_numbers(panel.votes.labels):
        return
    own = case.loss(case.labels(panel.votes), panel.truth)
    others = {
        "same or not": case.changed_distance(lambda distance: (distance > 0).astype(np.float64)),
        "the squared distance": case.changed_distance(np.square),
    }
    for name, other in others.items():
        try:
            labels = case.labels(panel.votes, space=other)
        except ConsilienceError:  # a model for one label type
            continue
        _require_not_worse(own, case.loss(labels, panel.truth), 0.02, f"told of {name} instead of the distance")


@_check
def the_unit_does_not_matter(case: _Case) -> None:
    """Check that labels do not depend on the unit of the votes or of the distance, on 98% of the items.

    Scores and vectors seven times as large have labels seven times as large. For labels that are single numbers, a
    model that accepts any distance gives the same labels for seven times the distance.
    """
    panel = case.draw(SIX, 200)
    votes, allowed = panel.votes, 1e-3 * float(panel.cost.mean())

    def require_same(ones: Batch, others: Batch, what: str) -> None:
        moved = float(np.mean(case.loss(ones, others) > allowed))
        _require(moved <= 0.02, f"{moved:.0%} of the labels change with the unit of the {what}")

    if case.has_unit(votes.labels):
        large = case.labels(panel.with_labels(7.0 * votes.labels))
        require_same(case.labels(votes), large / 7.0, "votes")
    if _are_numbers(votes.labels):
        spaces = [case.changed_distance(partial(np.multiply, factor)) for factor in (1.0, 7.0)]
        try:
            ones, others = (case.labels(votes, space=space) for space in spaces)
        except ConsilienceError:  # a model for one label type
            return
        require_same(ones, others, "distance")


@_check
def shifted_sources_keep_their_place(case: _Case) -> None:
    """Check that a constant added to the votes of one source does not reorder the weights (rank correlation .9).

    This applies to scores and vectors: a source with a constant bias is not noisier than without.
    """
    panel = case.draw(SIX, 400)
    labels = panel.votes.labels
    if not case.has_unit(labels):
        return
    moved = labels.copy()
    moved[:, 1] += 0.5 * labels.std()
    one, other = (getattr(case.fit(votes), "weight_", None) for votes in (panel.votes, panel.with_labels(moved)))
    if one is not None and other is not None:
        reached = _rank_correlation(np.asarray(one), np.asarray(other))
        _require(reached >= 0.9, f"a shift of one source reorders the weights (rank correlation {reached:.2f})")
