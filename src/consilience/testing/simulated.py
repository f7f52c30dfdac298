"""What the checks of label models share: votes of sources of known quality, measures of labels, and demands."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.exceptions import ConsilienceError, ConsilienceWarning
from consilience.label_types.base import LabelSpace
from consilience.prediction.simulate import simulate
from consilience.votes import Votes


class LabelModelCheckError(ConsilienceError, AssertionError):
    """A label model does not behave as it should."""


def require(condition: bool | np.bool_, message: str, error: type[ConsilienceError] = LabelModelCheckError) -> None:
    """Raise the message unless the condition holds."""
    if not condition:
        raise error(message)


def not_worse(own: FloatArray, other: FloatArray, slack: float, situation: str, errors: float = 2.0) -> None:
    """Require a mean cost below the other one plus slack and some standard errors of the paired difference."""
    error = float((own - other).std() / np.sqrt(len(own)))
    require(
        own.mean() <= (1.0 + slack) * other.mean() + errors * error,
        f"{situation}: labels cost {own.mean():.4g}, compared to {other.mean():.4g} without (error {error:.2g})",
    )


def demand_of(check: Callable[..., Any]) -> str:
    """Return what a check demands, in one line: the beginning of its docstring.

    Examples
    --------
    >>> demand_of(require)
    'Raise the message unless the condition holds.'
    """
    return " ".join((inspect.getdoc(check) or "").split("\n\n")[0].split())


#: Makes an unfitted model, an object with ``fit(votes, gold=None)`` and ``predict(votes)``, for a label space.
MakeModel = Callable[[LabelSpace], Any]


@dataclass(frozen=True)
class Panel:
    """Votes, the truth as the user writes it, and the mean cost of every source."""

    space: LabelSpace
    votes: Votes
    truth: Batch
    cost: FloatArray

    def with_labels(self, labels: Batch) -> Votes:
        """Return votes of the same sources on the same items that say something else."""
        return Votes.from_array(labels, observed=self.votes.observed, sources=self.votes.sources)


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


def realized_cost(
    space: LabelSpace, share_of_chance: Sequence[float] | FloatArray, rng: np.random.Generator, n: int = 4000
) -> FloatArray:
    """Return the mean cost of sources over many votes, where the forward map is only nearly right."""
    panel = draw_panel(space, share_of_chance, n, rng)
    return vote_costs(space, panel.votes, panel.truth).mean(axis=0)


def fitted(make_model: MakeModel, space: LabelSpace, votes: Votes, gold: Any = None) -> Any:
    """Return a fitted model; its warnings are ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        model = make_model(space)
        model.fit(votes, **({} if gold is None else {"gold": gold}))
        return model


def loss(space: LabelSpace, labels: Batch, truth: Batch, rows: Any = slice(None)) -> FloatArray:
    """Return the cost of each label."""
    return space.cost(space.as_batch(labels[rows]), space.as_batch(truth[rows]))


def vote_costs(space: LabelSpace, votes: Votes, labels: Batch) -> FloatArray:
    """Return the cost of every vote to the label of its item, ``(n, m)``."""
    return np.stack([loss(space, votes.labels[:, one], labels) for one in range(votes.n_sources)], axis=1)


def costs_of(model: Any) -> FloatArray | None:
    """Return the estimated cost of each source, where the model has one."""
    cost = getattr(model, "expected_cost_", None)
    return None if cost is None else np.asarray(cost, dtype=np.float64)


def followed_alone(space: LabelSpace, votes: Votes, labels: Batch, some: BoolArray) -> float:
    """Return the share of the labels that some of the sources said and nobody else."""
    said = vote_costs(space, votes, labels) == 0.0
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
    from scipy.stats import rankdata

    one, other = rankdata(left), rankdata(right)
    return float(np.corrcoef(one, other)[0, 1]) if np.ptp(one) > 0.0 and np.ptp(other) > 0.0 else 0.0
