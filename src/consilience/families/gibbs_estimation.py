"""How the weights of sources over a finite space are learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.exceptions import UnsupportedError
from consilience.families.base import Chunk, Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.findings import (
    EQUAL_WEIGHTS,
    SIGNIFICANCE,
    adversaries,
    dependent_pairs,
    fell_back,
    needs_gold,
    no_signal,
    rival_groups,
    unidentified,
)
from consilience.families.pair_costs import PairCosts, blend, excess_correlation, gold_costs, pair_costs
from consilience.families.pair_fits import additive_fit, product_fit
from consilience.families.polishing import finish
from consilience.solvers.backward import conditional
from consilience.solvers.quadratic import quadratic_triplets
from consilience.solvers.robust import PairMomentFit, fit_pair_moments, sandwich
from consilience.solvers.signal import no_signal_probability

if TYPE_CHECKING:
    from consilience.families.gibbs import GibbsFamily, GibbsParameters

__all__ = ["estimate_gibbs"]

#: The prior over labels is learned from this many items per label on.
ITEMS_PER_LABEL = 10
#: Residuals beyond this many standard errors flag a pair as dependent (from five sources on).
FLAG = 5.0
MAX_WEIGHT = 8.0
MAX_ROUNDS = 300
PRECISE = 0.02
#: Width of the weak pull of each weight towards the mean weight.
SPREAD = 1.0


@dataclass(frozen=True)
class _Problem:
    family: GibbsFamily
    sums: Sums
    pairs: PairCosts
    request: Request
    prior: FloatArray

    @property
    def usable(self) -> BoolArray:
        return self.pairs.usable(self.request.dependent)

    @property
    def active(self) -> BoolArray:
        active: BoolArray = self.sums["votes"].sum(axis=1) > 0
        return active


def estimate_gibbs(family: GibbsFamily, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
    """Learn the weights by the method asked for."""
    size = len(family.matrix)
    prior = np.full(size, 1.0 / size) if isinstance(request.prior, str) else request.prior
    problem = _Problem(family, sums, pair_costs(sums), request, prior)
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
            return _fallback(problem, "nobody votes", ())
        start = _moments(problem)
        return _polish(problem, start.weight, passes, "asked for")
    solvers: dict[str, Callable[[_Problem], tuple[FloatArray, FloatArray]]] = {
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
    return Estimate(_parameters(problem, weight, error), method, "asked for", notes)


def _automatic(problem: _Problem, passes: Passes | None) -> Estimate:
    request, active = problem.request, problem.active
    if int(active.sum()) < 3:
        if "gold_count" in problem.sums:
            return _labelled(problem)
        return _fallback(problem, f"{int(active.sum())} source(s) vote, weights need 3", ())
    left, right = np.nonzero(np.triu(problem.usable))
    centred = _centred(problem)
    signal = centred[left, right] / np.maximum(problem.pairs.cost_error[left, right] / 2.0, 1e-12)
    chance = no_signal_probability(signal)
    if chance > SIGNIFICANCE and not request.n_gold:
        reason = f"the sources are no closer to each other than chance would have them (p = {chance:.2f})"
        return _fallback(problem, reason, (no_signal(request, reason),))
    fit = _moments(problem)
    flagged = (fit.residual_z < -FLAG) & request.learn  # closer than independent sources of these weights would be
    found = adversaries(left, right, fit.residual_z, request)
    rivals = rival_groups(left[flagged], right[flagged], int(active.sum()), request) if flagged.any() else None
    if int(active.sum()) >= 5 and rivals is not None and request.n_gold:
        return replace(_labelled(problem), reason=f"{request.n_gold} known labels decide: {rivals}")
    if int(active.sum()) >= 5 and rivals is not None:
        return _fallback(problem, rivals, (dependent_pairs(left[flagged], right[flagged], request, EQUAL_WEIGHTS),))
    if int(active.sum()) >= 5 and flagged.any():
        note = dependent_pairs(left[flagged], right[flagged], request)
        weight, error = _moment_weights(problem, fit)
        reason = "pair moments under a robust loss, as some pairs look dependent"
        return Estimate(_parameters(problem, weight, error), "moments", reason, (note, *found))
    if passes is None:
        weight, error = _moment_weights(problem, fit)
        return Estimate(_parameters(problem, weight, error), "moments", "only moments are at hand", found)
    polished_fit = _polish(problem, fit.weight, passes, "exact pair moments, then maximum likelihood")
    return replace(polished_fit, diagnostics=(*found, *polished_fit.diagnostics))


def _moments(problem: _Problem) -> PairMomentFit:
    """Fit the exact pair moment: the mean over truths of the cost between two independent votes."""
    matrix, prior = problem.family.matrix, problem.prior[:, None]
    usable = problem.usable
    m = len(usable)
    left, right = np.nonzero(np.triu(usable))
    if len(left) == 0:
        return _no_pairs(m)

    def moment(weight: FloatArray) -> FloatArray:
        law = [conditional(matrix, value)[0] for value in weight]
        reach = [(one * prior) @ matrix for one in law]
        return np.array([(reach[a] * law[b]).sum() for a, b in zip(left, right, strict=True)])

    def jacobian(weight: FloatArray) -> FloatArray:
        law, change = [], []
        for value in weight:
            one, _, mean, _ = conditional(matrix, value)
            law.append(one)
            change.append(one * (mean[:, None] - matrix))
        reach = [(one * prior) @ matrix for one in law]
        slopes = np.zeros((len(left), m))
        for row, (a, b) in enumerate(zip(left, right, strict=True)):
            slopes[row, a] = (reach[b] * change[a]).sum()
            slopes[row, b] = (reach[a] * change[b]).sum()
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


def _moment_weights(problem: _Problem, fit: PairMomentFit) -> tuple[FloatArray, FloatArray]:
    left, right = np.nonzero(np.triu(problem.usable))
    if len(left) == 0:
        return fit.weight, np.full(len(fit.weight), np.inf)
    covariance = sandwich(fit.jacobian, fit.precision, problem.pairs.cost_influence[:, left, right], SPREAD)
    return fit.weight, np.sqrt(np.maximum(np.diag(covariance), 0.0))


def _polish(problem: _Problem, start: FloatArray, passes: Passes, reason: str) -> Estimate:
    """Maximise the likelihood by EM with a weak pull to the mean weight; learn the prior where it differs."""
    request, size = problem.request, len(problem.family.matrix)
    base = _parameters(problem, np.clip(start, 0.02, 5.0), np.full(len(start), np.inf))
    fit = _rounds(problem, base, passes.over_sample, learn_prior=False, limit=MAX_ROUNDS)
    learn_prior = False
    if request.prior_is("auto") and passes.n_items >= ITEMS_PER_LABEL * size:
        other = _rounds(problem, fit.parameters, passes.over_sample, learn_prior=True, limit=MAX_ROUNDS)
        gain = 2.0 * (other.log_likelihood - fit.log_likelihood)
        learn_prior = _chi_square_tail(gain, size - 1) < SIGNIFICANCE
        if learn_prior:
            fit = other
            reason += ", prior over the labels learned"

    def go_on(sampled: _Fit) -> _Fit:
        return _rounds(problem, sampled.parameters, passes.over_all, learn_prior=learn_prior, limit=MAX_ROUNDS)

    fit, notes = finish(passes, fit, go_on, problem.active, PRECISE)
    return Estimate(replace(fit.parameters, standard_error=fit.standard_error), "em", reason, notes)


@dataclass(frozen=True)
class _Fit:
    parameters: GibbsParameters
    standard_error: FloatArray
    log_likelihood: float
    converged: bool


def _rounds(
    problem: _Problem,
    parameters: GibbsParameters,
    run: Callable[[Callable[[Chunk], Sums]], Sums],
    *,
    learn_prior: bool,
    limit: int,
) -> _Fit:
    family, active = problem.family, problem.active
    grid, means = _grid(family.matrix)
    converged = False
    sums, error = Sums.zero(), np.full(len(active), np.inf)
    for _ in range(limit):
        current = parameters
        sums = run(lambda chunk, at=current: family.round(at, chunk))  # type: ignore[misc]
        prior = current.prior
        if learn_prior:
            prior = (sums["labels"] + 0.5) / (sums["labels"].sum() + 0.5 * len(prior))
        centre = current.weight[active].mean()
        weight = np.where(active, current.weight, centre)
        for source in np.flatnonzero(active):
            slope = means @ sums["mass"][source] - sums["spent"][source] - (grid - centre) / SPREAD**2
            weight[source] = np.clip(np.interp(0.0, -slope, grid), 0.0, MAX_WEIGHT)
        parameters = replace(current, weight=weight, prior=prior)
        error = _score_error(sums["outer"], active)
        # Steps far below the sampling error change no label; a flat likelihood can crawl for hundreds more.
        still = np.abs(weight - current.weight)[active] < np.maximum(1e-4, 0.002 * error[active])
        if still.all() and np.abs(prior - current.prior).max() < 1e-4:
            converged = True
            break
    return _Fit(parameters, error, float(sums["log_likelihood"]), converged)


def _chi_square_tail(value: float, freedom: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(freedom, max(value, 0.0)))


def _grid(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return weights and, for each, the mean cost given every truth, ``(grid, K)``."""
    spaced = np.linspace(-1.0, 1.0, 321)
    grid = MAX_WEIGHT * np.sign(spaced) * spaced**2
    return grid, np.stack([conditional(matrix, value)[2] for value in grid])


def _isotropic(problem: _Problem) -> tuple[FloatArray, FloatArray]:
    pairs = problem.pairs
    fit = additive_fit(pairs.cost, pairs.count, pairs.cost_influence, problem.usable)
    return _weights_with_gold(problem, np.maximum(fit.value, 1e-3), fit.standard_error)


def _triplets(problem: _Problem) -> tuple[FloatArray, FloatArray]:
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


def _quadratic(problem: _Problem) -> tuple[FloatArray, FloatArray]:
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


def _labelled(problem: _Problem) -> Estimate:
    if "gold_count" not in problem.sums:
        raise needs_gold()
    count, cost, error = gold_costs(problem.sums)
    average = np.average(cost, weights=count) if count.sum() > 0 else problem.family.expected_cost(np.ones(1))[0]
    shrunk = (cost * count + average * 2.0) / (count + 2.0)
    weight, weight_error = _backward(problem, shrunk, error)
    reason = f"{problem.request.n_gold} known labels"
    return Estimate(_parameters(problem, weight, weight_error), "labelled", reason)


def _weights_with_gold(problem: _Problem, cost: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    if "gold_count" in problem.sums:
        _, told, told_error = gold_costs(problem.sums)
        cost, error = blend(cost, error, told, told_error)
    return _backward(problem, cost, error)


def _backward(problem: _Problem, cost: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    curve = problem.family.curve
    weight = np.clip(curve.weight_from_cost(cost), -MAX_WEIGHT, MAX_WEIGHT)
    slope = np.maximum(np.abs(curve.slope(weight)), 1e-9)
    return weight, np.where(np.isfinite(error), np.where(np.isfinite(error), error, 0.0) / slope, np.inf)


def _shares(problem: _Problem) -> FloatArray:
    votes = problem.sums["votes"].astype(np.float64)
    share: FloatArray = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1.0)
    return share


def _centred(problem: _Problem) -> FloatArray:
    """Return the covariances of the hidden embedding: products minus the product of the sources' means."""
    share = _shares(problem)
    centred: FloatArray = problem.pairs.product - share @ problem.family.kernel @ share.T
    return centred


def _score_error(outer: FloatArray, active: BoolArray) -> FloatArray:
    information = outer + np.eye(len(outer)) / SPREAD**2
    variance = np.diag(np.linalg.pinv(information, hermitian=True))
    return np.where(active, np.sqrt(np.maximum(variance, 0.0)), np.inf)


def _parameters(problem: _Problem, weight: FloatArray, error: FloatArray) -> GibbsParameters:
    from consilience.families.gibbs import GibbsParameters

    active = problem.active
    if active.any():
        weight = np.where(active, weight, weight[active].mean())
    family = problem.family
    correlation = excess_correlation(problem.pairs, family.pair_cost, weight, problem.request.dependent)
    return GibbsParameters(
        weight=weight,
        standard_error=np.where(active, error, np.inf),
        prior=problem.prior,
        correlation=correlation,
        normalised=not problem.request.prior_is("gibbs"),
    )


def _equal(problem: _Problem) -> GibbsParameters:
    m = len(problem.active)
    equal = _parameters(problem, np.ones(m), np.full(m, np.inf))
    return replace(equal, normalised=False)


def _fallback(problem: _Problem, reason: str, notes: tuple[Diagnostic, ...]) -> Estimate:
    return Estimate(_equal(problem), "majority", reason, (*notes, fell_back(reason)))


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
