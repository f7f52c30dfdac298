"""Checks of the contract of a label space. ``check_space(MySpace())`` runs all of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.exceptions import ConsilienceError
from consilience.label_model import LabelModel
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import Moments
from consilience.prediction.simulate import simulate
from consilience.storage import SPACES
from consilience.testing.label_model_checks import fitted
from consilience.votes import Votes

#: Items and sources of the simulated tables.
ITEMS, SOURCES = 60, 4

Check = Callable[[LabelSpace, np.random.Generator], None]

#: Every check, in the order in which they are run.
SPACE_CHECKS: list[Check] = []


class SpaceCheckError(ConsilienceError, AssertionError):
    """A label space breaks its contract.

    Examples
    --------
    >>> from consilience import Metric
    >>> try:
    ...     check_space(Metric(lambda left, right: left - right))
    ... except SpaceCheckError:
    ...     print("not a distance")
    not a distance
    """


def check_space(space: LabelSpace, *, seed: int = 0) -> None:
    """Check that a label space keeps its contract; the `SpaceCheckError` lists every check that fails.

    Examples
    --------
    >>> from consilience import Classes
    >>> check_space(Classes(3))
    """
    failures = []
    try:
        drawn = space.random(2, np.random.default_rng(seed))
    except ConsilienceError as error:
        raise SpaceCheckError(f"{type(space).__name__}.random(2, rng) failed. {error}") from None
    if not isinstance(drawn, np.ndarray) or len(drawn) != 2:
        raise SpaceCheckError(
            f"{type(space).__name__}.random(2, rng) returned {type(drawn).__name__}, not an array of 2 labels. Return "
            "np.array([...]), or an array of objects with one label each."
        )
    for check in SPACE_CHECKS:
        try:
            check(space, np.random.default_rng(seed))
        except ConsilienceError as error:
            failures.append(f"{check.__name__}: {error}")
    if failures:
        raise SpaceCheckError(f"{type(space).__name__} breaks its contract.\n" + "\n".join(failures))


def _check(check: Check) -> Check:
    SPACE_CHECKS.append(check)
    return check


def _require(condition: bool | np.bool_, message: str) -> None:
    if not condition:
        raise SpaceCheckError(message)


@_check
def distance_is_symmetric(space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that the distance is the same both ways, and never negative."""
    left, right = space.random(ITEMS, rng), space.random(ITEMS, rng)
    forth, back = space.distance(left, right), space.distance(right, left)
    _require(np.shape(forth) == (ITEMS,), f"distance returned shape {np.shape(forth)}, expected ({ITEMS},)")
    _require((forth >= 0).all(), "a distance is negative or NaN")
    _require(np.allclose(forth, back), "distance(a, b) differs from distance(b, a)")


@_check
def distance_is_zero_on_itself(space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that a label has no distance to itself."""
    labels = space.random(ITEMS, rng)
    _require(np.allclose(space.distance(labels, labels), 0.0), "distance(a, a) is not 0")


@_check
def batch_equals_one_by_one(space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that a batch gives the same results as its labels one by one."""
    left, right = space.random(ITEMS, rng), space.random(ITEMS, rng)
    whole = space.distance(left, right)
    single = [float(space.distance(left[i : i + 1], right[i : i + 1])[0]) for i in range(ITEMS)]
    _require(np.allclose(whole, single), "distances of a batch differ from those of its labels one by one")
    placed = space.embed(left)
    if placed is not None:
        for row in range(ITEMS):
            alone = np.asarray(space.embed(left[row : row + 1]))[0]
            padded = np.concatenate([alone, np.zeros(placed.shape[1] - len(alone))])
            _require(np.allclose(placed[row], padded), "embed of a batch differs from embed one by one")


@_check
def mean_beats_every_vote(space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that the weighted mean never costs more than the best vote."""
    votes, weights = _ballot(space, rng)
    best = np.min([_spent(space, votes[:, a], votes, weights) for a in range(SOURCES)], axis=0)
    mean = _spent(space, space.weighted_mean(votes, weights), votes, weights)
    _require((mean <= best + 1e-9 * (1 + best)).all(), "weighted_mean costs more than the best vote")


@_check
def mean_ignores_zero_weights(space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that votes of weight zero have no effect."""
    votes, weights = _ballot(space, rng)
    weights[:, 1] = 0.0
    other = votes.copy()
    other[:, 1] = space.random(ITEMS, rng)
    kept = [0, 2, 3]
    one = _spent(space, space.weighted_mean(votes, weights), votes[:, kept], weights[:, kept])
    two = _spent(space, space.weighted_mean(other, weights), votes[:, kept], weights[:, kept])
    _require(np.allclose(one, two), "a vote of weight 0 changes the weighted mean")


@_check
def mean_ignores_scale_and_order(space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that neither the scale of the weights nor the order of the sources matters."""
    votes, weights = _ballot(space, rng)
    order = rng.permutation(SOURCES)
    plain = _spent(space, space.weighted_mean(votes, weights), votes, weights)
    scaled = _spent(space, space.weighted_mean(votes, 7.0 * weights), votes, weights)
    shuffled = _spent(space, space.weighted_mean(votes[:, order], weights[:, order]), votes, weights)
    _require(np.allclose(plain, scaled), "the weighted mean changes when all weights are multiplied")
    _require(np.allclose(plain, shuffled), "the weighted mean depends on the order of the sources")


@_check
def backward_undoes_forward(space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that `weight_from_cost` is the inverse of `expected_cost`."""
    law = space.law
    weights = _moderate_weights(space)
    costs = law.expected_cost(weights)
    _require((np.diff(costs) < 0).all(), "a larger weight does not have a smaller expected cost")
    back = law.weight_from_cost(costs)
    _require(np.allclose(back, weights, rtol=1e-6), f"weight_from_cost(expected_cost(w)) = {back}, not {weights}")
    ends = law.weight_from_cost(np.array([0.0, 1e12]))
    _require(np.isfinite(ends).all(), "weight_from_cost is not finite at the ends")


@_check
def expected_cost_matches_samples(space: LabelSpace, rng: np.random.Generator) -> None:
    """Check the forward map against simulated votes.

    For 2000 votes the tolerance of 12% is about 5 standard errors, so a false alarm is practically excluded.
    """
    weight = float(_moderate_weights(space)[1])
    truth = space.random(2000, rng)
    costs = space.cost(truth, space.sample_around(truth, weight, rng))
    expected = float(space.law.expected_cost(np.array([weight]))[0])
    seen = f"votes of weight {weight:.3g} cost {costs.mean():.4g} on average, expected_cost says {expected:.4g}"
    advice = "The default law is exact for few labels only: let random draw fewer different ones, or override law"
    _require(abs(costs.mean() - expected) <= 0.12 * expected, f"{seen}. {advice}")


@_check
def moments_add_up(space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that the moments of parts add up to those of the whole, and that adding zero changes nothing."""
    votes = _votes(space, rng, coverage=0.8)
    whole = Moments.of(votes, space)
    cut = int(rng.integers(1, ITEMS - 1))
    parts = Moments.of(votes[:cut], space) + Moments.zero() + Moments.of(votes[cut:], space)
    for name, total in whole.sums.items():
        other = parts.sums[name]
        same = np.array_equal(total, other) if total.dtype.kind in "iuO" else np.allclose(total, other, rtol=1e-10)
        _require(same, f"the sums {name!r} of two parts do not add up to those of the whole")


@_check
def fit_recovers_the_order_of_sources(space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that a fit ranks simulated sources by their quality.

    There are 800 items, and qualities differ by about a factor of two, so a false alarm is practically excluded.
    """
    chance = float(space.law.expected_cost(np.zeros(1))[0])
    weights = space.law.weight_from_cost(chance * np.array([0.85, 0.6, 0.35, 0.15]))
    truth = space.random(800, rng)
    votes = simulate(space, space.as_labels(truth), weights, rng)
    model = fitted(LabelModel, space, votes)
    seen = f"sources simulated from bad to good have estimated costs {np.round(model.expected_cost_, 3)}"
    _require(np.argsort(model.expected_cost_).tolist() == [3, 2, 1, 0], seen)
    agreement = space.cost(space.as_batch(model.predict(votes)), truth).mean()
    worst = space.cost(space.as_batch(votes.labels[:, 0]), truth).mean()
    _require(agreement < worst, "the labels are worse than the worst source")


@_check
def labels_come_back_in_kind(space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that predictions have the type of the votes."""
    votes = _votes(space, rng)
    predicted = fitted(LabelModel, space, votes).predict(votes)
    _require(len(predicted) == ITEMS, f"{len(predicted)} labels for {ITEMS} items")
    _require(
        predicted.dtype.kind == votes.labels.dtype.kind or {predicted.dtype.kind, votes.labels.dtype.kind} <= set("iu"),
        f"votes of type {votes.labels.dtype} came back as {predicted.dtype}",
    )
    again = space.as_batch(predicted)
    _require(np.allclose(space.distance(again, again), 0.0), "predictions are not labels of the space")


@_check
def labels_survive_storage(space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that labels come back unchanged from an Arrow column."""
    labels = space.as_labels(space.random(ITEMS, rng))
    back = space.as_batch(space.from_arrow(space.to_arrow(labels)))
    gap = space.distance(space.as_batch(labels), back)
    _require(np.allclose(gap, 0.0), "labels written to Arrow come back different")


@_check
def model_survives_storage(space: LabelSpace, rng: np.random.Generator) -> None:
    """Check that a saved model predicts the same."""
    votes = _votes(space, rng)
    model = fitted(LabelModel, space, votes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        model.save(path)
        loaded = LabelModel.load(path, space=None if type(space) in SPACES.values() else space)
    gap = space.distance(space.as_batch(model.predict(votes)), space.as_batch(loaded.predict(votes)))
    _require(np.allclose(gap, 0.0), "a model that was saved and loaded predicts other labels")
    _require(np.allclose(model.weight_, loaded.weight_), "a model that was saved and loaded has other weights")


def _moderate_weights(space: LabelSpace) -> FloatArray:
    """Return the weights of sources at 80, 50 and 25% of the chance cost."""
    chance = float(space.law.expected_cost(np.zeros(1))[0])
    return space.law.weight_from_cost(chance * np.array([0.8, 0.5, 0.25]))


def _ballot(space: LabelSpace, rng: np.random.Generator) -> tuple[Batch, FloatArray]:
    columns = [space.random(ITEMS, rng) for _ in range(SOURCES)]
    return np.stack(columns, axis=1), rng.uniform(0.1, 1.0, (ITEMS, SOURCES))


def _spent(space: LabelSpace, labels: Batch, votes: Batch, weights: FloatArray) -> FloatArray:
    costs = [weights[:, a] * space.cost(votes[:, a], labels) for a in range(votes.shape[1])]
    return np.asarray(np.sum(costs, axis=0))


def _votes(space: LabelSpace, rng: np.random.Generator, coverage: float = 1.0) -> Votes:
    truth = space.as_labels(space.random(ITEMS, rng))
    weights = np.repeat(_moderate_weights(space)[1], SOURCES)
    return simulate(space, truth, weights, rng, coverage=coverage)
