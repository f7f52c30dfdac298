"""How the weights of sources over a finite space are learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.exceptions import UnsupportedError
from consilience.families.automatic import Steps, evened_costs, follow, plain_vote
from consilience.families.base import Estimate, Passes, Request, Sums
from consilience.families.findings import (
    CANNOT_TELL,
    SHARED_VOTE,
    adversaries,
    competing,
    dependent_pairs,
    fell_back,
    needs_gold,
    unidentified,
)
from consilience.families.gibbs_likelihood import most_likely
from consilience.families.gibbs_problem import MAX_WEIGHT, SPREAD, Problem, parameters_of
from consilience.families.pair_costs import (
    MODEL_ERROR,
    blend,
    gold_costs,
    pair_costs,
    supported_reading,
)
from consilience.families.pair_fits import additive_fit, product_fit
from consilience.solvers.backward import vote_laws
from consilience.solvers.quadratic import quadratic_triplets
from consilience.solvers.readings import PairReading, Readings, Refit
from consilience.solvers.robust import PairMomentFit, fit_pair_moments, sandwich
from consilience.solvers.signal import no_signal_probability
from consilience.solvers.weighed_readings import fear_of_copies, weigh_readings

if TYPE_CHECKING:
    from consilience.families.gibbs import GibbsFamily, GibbsParameters

__all__ = ["estimate_gibbs"]

#: Dependent pairs are looked for from this many sources on.
FLAG_SOURCES = 4
#: Weight of every source where the votes agree no more than by chance, and the prior was told.
WEAK = 0.05


def estimate_gibbs(family: GibbsFamily, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
    """Learn the weights by the method asked for."""
    size = len(family.matrix)
    prior = np.full(size, 1.0 / size) if isinstance(request.prior, str) else request.prior
    problem = Problem(family, sums, pair_costs(sums), request, prior)
    method = request.method
    if method == "auto":
        return _automatic(problem, passes)
    if method == "majority":
        return Estimate(_equal(problem), "majority", "asked for")
    if method == "labelled":
        return _labelled(problem)
    if method == "em":
        if passes is None:
            raise UnsupportedError("method='em' needs votes.")
        if not problem.active.any():
            return plain_vote(_equal(problem), "nobody votes")
        start = _moments(problem)
        return most_likely(problem, start.weight, passes, "asked for")
    solvers: dict[str, Callable[[Problem], tuple[FloatArray, FloatArray]]] = {
        "isotropic": _isotropic,
        "triplets": _triplets,
        "quadratic": _quadratic,
        "moments": lambda at: _moment_weights(at, _moments(at)),
    }
    weight, error = solvers[method](problem)
    notes = unidentified(np.isfinite(error), problem.active, request)
    if not np.isfinite(error[problem.active]).any():
        reason = "no source has two independent partners"
        return Estimate(_equal(problem), method, f"equal weights, as {reason}", (*notes, fell_back(reason)))
    return Estimate(parameters_of(problem, weight, error), method, "asked for", notes)


def _automatic(problem: Problem, passes: Passes | None) -> Estimate:
    count = int(problem.active.sum())
    steps = Steps(
        equal=lambda: _equal(problem),
        labelled=(lambda: _labelled(problem)) if "gold_count" in problem.sums else None,
        chance=lambda: _no_signal_chance(problem),
        unrelated="the sources are no closer to each other than chance would have them",
        read_pairs=(lambda: _read_pairs(problem)) if count >= FLAG_SOURCES else None,
        dependent=lambda readings: _dependent(problem, readings),
        independent=lambda: _independent(problem, passes),
        unheard=lambda: _unheard(problem),
    )
    return follow(steps, count, problem.request)


def _no_signal_chance(problem: Problem) -> float:
    left, right = np.nonzero(np.triu(problem.usable))
    error = np.maximum(problem.pairs.cost_error[left, right] / 2.0, 1e-12)
    return no_signal_probability(_centred(problem)[left, right] / error)


def _independent(problem: Problem, passes: Passes | None) -> Estimate:
    fit = _moments(problem)
    left, right = np.nonzero(np.triu(problem.usable))
    found = adversaries(left, right, fit.residual_z, problem.request)
    if passes is None:
        weight, error = _moment_weights(problem, fit)
        estimate = Estimate(parameters_of(problem, weight, error), "moments", "only moments are at hand", found)
    else:
        estimate = most_likely(problem, fit.weight, passes, "exact pair moments, then maximum likelihood", found)
    return _evened(problem, estimate)


def _evened(problem: Problem, estimate: Estimate) -> Estimate:
    """Draw the weights together as far as chance explains why they differ."""
    parameters: GibbsParameters = estimate.parameters  # type: ignore[assignment]
    curve, finite = problem.family.curve, np.isfinite(parameters.standard_error)
    error = np.where(finite, parameters.standard_error, 0.0) * np.abs(curve.slope(parameters.weight))
    cost = curve.expected_cost(parameters.weight)
    even = evened_costs(cost, np.where(finite, error, np.inf), problem.active, estimate, problem.request)
    weight = np.clip(curve.weight_from_cost(even), 0.0, MAX_WEIGHT)
    return replace(estimate, parameters=replace(parameters, weight=np.where(even == cost, parameters.weight, weight)))


def _read_pairs(problem: Problem) -> Readings:
    """Return which pairs depend on each other, by the exact moments of all of them."""
    usable, pairs, curve = problem.usable, problem.pairs, problem.family.curve
    left, right = np.nonzero(np.triu(usable))
    unrelated = problem.family.unrelated_cost

    def refit(kept: BoolArray) -> Refit:
        fit = _moments(_depending(problem, usable & ~kept))
        too_close = np.zeros(usable.shape)
        gap = _pair_moments(problem, fit.weight, left, right) - pairs.cost[left, right]
        too_close[left, right] = gap / np.maximum(pairs.cost_error[left, right], 1e-6 * unrelated)
        return Refit(1.0 - curve.expected_cost(fit.weight) / unrelated, too_close + too_close.T, fit.inflation)

    return weigh_readings(refit, usable, -pairs.cost, doubt=fear_of_copies(pairs.count, usable))


def _chosen(problem: Problem, readings: Readings) -> PairReading:
    """Return the reading that the known labels support, the best one without any."""
    if "gold_count" not in problem.sums:
        return readings.best
    _, told, told_error = gold_costs(problem.sums)
    return supported_reading(readings, told, told_error, problem.family.unrelated_cost)


def _dependent(problem: Problem, readings: Readings) -> Estimate | None:
    """Learn from sources of which some depend on each other, or say that the votes cannot tell which."""
    request, chosen = problem.request, _chosen(problem, readings)
    if not chosen.dependent.any():
        return None
    rivals = competing(readings, int(problem.active.sum()), request)
    if rivals is not None and not request.n_gold:
        return plain_vote(_equal(problem), CANNOT_TELL, (rivals,))
    left, right = np.nonzero(np.triu(chosen.dependent))
    note = dependent_pairs(left, right, request, SHARED_VOTE)
    problem = _depending(problem, chosen.dependent)
    fit = _moments(problem)
    weight, error = _moment_weights(problem, fit)
    left, right = np.nonzero(np.triu(problem.usable))
    notes = (note, *adversaries(left, right, fit.residual_z, request))
    reason = "exact pair moments under a robust loss, as some sources depend on each other"
    if rivals is not None:
        reason = f"{request.n_gold} known labels decided which of two groups follows the truth, then {reason}"
    if "gold_count" in problem.sums:
        curve = problem.family.curve
        slope, finite = np.abs(curve.slope(weight)), np.isfinite(error)
        own = np.hypot(np.where(finite, error, 1.0) * slope, MODEL_ERROR * problem.family.unrelated_cost)
        weight, error = _weights_with_gold(problem, curve.expected_cost(weight), own)
    estimate = Estimate(parameters_of(problem, weight, error), "moments", reason, notes, problem.request.dependent)
    return _evened(problem, estimate)


def _depending(problem: Problem, dependent: BoolArray) -> Problem:
    return replace(problem, request=replace(problem.request, dependent=problem.request.dependent | dependent))


def _moments(problem: Problem) -> PairMomentFit:
    """Fit the exact pair moment: the mean over truths of the cost between two independent votes."""
    matrix, prior = problem.family.matrix, problem.prior[:, None]
    usable = problem.usable
    m = len(usable)
    left, right = np.nonzero(np.triu(usable))
    if len(left) == 0:
        return _no_pairs(m)

    def moment(weight: FloatArray) -> FloatArray:
        return _pair_moments(problem, weight, left, right)

    def jacobian(weight: FloatArray) -> FloatArray:
        law = vote_laws(matrix, weight)
        change = (law * ((law * matrix).sum(axis=2, keepdims=True) - matrix)).reshape(m, -1)
        by_source = ((law * prior) @ matrix).reshape(m, -1) @ change.T
        slopes, row = np.zeros((len(left), m)), np.arange(len(left))
        slopes[row, left], slopes[row, right] = by_source[right, left], by_source[left, right]
        return slopes

    triplets = np.clip(_triplets(problem)[0], 0.1, 3.0)
    additive = np.clip(_isotropic(problem)[0], 0.1, 3.0)
    return fit_pair_moments(
        moment,
        jacobian,
        problem.pairs.cost[left, right],
        problem.pairs.cost_error[left, right],
        [triplets, additive, np.full(m, 0.7)],
        lower=0.0,
        upper=MAX_WEIGHT,
        prior_spread=SPREAD,
        corrected_scatter=m >= 7,
    )


def _pair_moments(problem: Problem, weight: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    """Return the mean cost between the votes of two independent sources, for each pair."""
    matrix, m = problem.family.matrix, len(weight)
    law = vote_laws(matrix, weight)
    reach = (law * problem.prior[:, None]) @ matrix
    moments: FloatArray = (reach.reshape(m, -1) @ law.reshape(m, -1).T)[left, right]
    return moments


def _moment_weights(problem: Problem, fit: PairMomentFit) -> tuple[FloatArray, FloatArray]:
    left, right = np.nonzero(np.triu(problem.usable))
    if len(left) == 0:
        return fit.weight, np.full(len(fit.weight), np.inf)
    covariance = sandwich(fit.jacobian, fit.precision, problem.pairs.cost_influence[:, left, right], SPREAD)
    return fit.weight, np.sqrt(np.maximum(np.diag(covariance), 0.0))


def _isotropic(problem: Problem) -> tuple[FloatArray, FloatArray]:
    pairs = problem.pairs
    fit = additive_fit(pairs.cost, pairs.count, pairs.cost_influence, problem.usable)
    return _weights_with_gold(problem, np.maximum(fit.value, 1e-3), fit.standard_error)


def _triplets(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Algorithm 2 on the centred products of the hidden embedding, summed over its coordinates."""
    pairs, kernel = problem.pairs, problem.family.kernel
    spread = max(float(problem.prior @ np.diag(kernel) - problem.prior @ kernel @ problem.prior), 1e-12)
    fit = product_fit(
        _centred(problem),
        pairs.product_error,
        pairs.product_influence,
        problem.usable,
        1.0,
        1.05 * np.sqrt(spread),
    )
    share = _shares(problem)
    own = share @ np.diag(kernel) - np.einsum("au,uv,av->a", share, kernel, share)
    offset = share - problem.prior
    shift = np.einsum("au,uv,av->a", offset, kernel, offset)
    cost = own + spread + shift - 2.0 * fit.value * np.sqrt(spread)
    return _weights_with_gold(problem, np.maximum(cost, 1e-4), 2.0 * np.sqrt(spread) * fit.standard_error)


def _quadratic(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Algorithm 3 on one indicator per label: P(vote = truth), then the weight that yields it."""
    if "joint" not in problem.sums:
        raise UnsupportedError("method='quadratic' needs a table per label, too large here. Use 'moments' or 'em'.")
    votes = problem.sums["votes"].astype(np.float64)
    total = np.maximum(votes.sum(axis=1), 1.0)
    both = np.maximum(problem.pairs.count, 1.0)
    accuracy = np.zeros(len(votes))
    for node, chance in enumerate(problem.prior):
        joint = problem.sums["joint"][node] / both
        error = np.sqrt(np.maximum(joint * (1 - joint), 1e-9) / both)  # within its noise: not to be divided by
        prior = float(np.clip(chance, 1e-3, 0.999))
        rates = quadratic_triplets(joint, votes[:, node] / total, prior, problem.usable, error)
        accuracy += chance * rates.given_one
    weight = np.clip(problem.family.curve.weight_from_accuracy(accuracy), -MAX_WEIGHT, MAX_WEIGHT)
    _, error = _triplets(problem)  # the same covariances, so the same precision to first order
    cost_error = error * np.abs(problem.family.curve.slope(weight))
    return _weights_with_gold(problem, problem.family.expected_cost(weight), cost_error)


def _labelled(problem: Problem) -> Estimate:
    if "gold_count" not in problem.sums:
        raise needs_gold()
    count, cost, error = gold_costs(problem.sums)
    average = np.average(cost, weights=count) if count.sum() > 0 else problem.family.expected_cost(np.ones(1))[0]
    shrunk = (cost * count + average * 2.0) / (count + 2.0)
    weight, weight_error = _backward(problem, shrunk, error)
    reason = f"{problem.request.n_gold} known labels"
    return Estimate(parameters_of(problem, weight, weight_error), "labelled", reason)


def _weights_with_gold(problem: Problem, cost: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    if "gold_count" in problem.sums:
        _, told, told_error = gold_costs(problem.sums)
        cost, error = blend(cost, error, told, told_error)
    return _backward(problem, cost, error)


def _backward(problem: Problem, cost: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    curve = problem.family.curve
    weight = np.clip(curve.weight_from_cost(cost), -MAX_WEIGHT, MAX_WEIGHT)
    slope = np.maximum(np.abs(curve.slope(weight)), 1e-9)
    return weight, np.where(np.isfinite(error), np.where(np.isfinite(error), error, 0.0) / slope, np.inf)


def _shares(problem: Problem) -> FloatArray:
    votes = problem.sums["votes"].astype(np.float64)
    share: FloatArray = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1.0)
    return share


def _centred(problem: Problem) -> FloatArray:
    """Return the covariances of the hidden embedding: products minus the product of the sources' means."""
    share = _shares(problem)
    centred: FloatArray = problem.pairs.product - share @ problem.family.kernel @ share.T
    return centred


def _equal(problem: Problem) -> GibbsParameters:
    m = len(problem.active)
    equal = parameters_of(problem, np.ones(m), np.full(m, np.inf))
    return replace(equal, normalised=False)


def _unheard(problem: Problem) -> GibbsParameters:
    """Return what to go by where votes say next to nothing: the plain vote, which stays near the middle of the space.

    Where the prior was told, the most probable label is asked for, whatever its distance to the others: that of sources
    all alike and all weak. For small weights the labels do not depend on how small they are.
    """
    equal, request = _equal(problem), problem.request
    if request.prior_is("auto") or request.prior_is("gibbs"):
        return equal
    return replace(equal, weight=np.full(len(problem.active), WEAK), normalised=True)


def _no_pairs(m: int) -> PairMomentFit:
    return PairMomentFit(
        weight=np.full(m, 0.7),
        residual_z=np.zeros(0),
        inflation=1.0,
        cost=0.0,
        jacobian=np.zeros((0, m)),
        precision=np.zeros(0),
        converged=True,
    )
