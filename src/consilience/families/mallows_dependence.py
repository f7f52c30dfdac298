"""Sources of rankings that agree for a reason other than the truth: found, told apart by known labels, and outweighed.

As signs of pairs of items, rankings are vectors, and the best linear prediction of the truth from dependent votes needs
only two things: how much each two sources agree, which the votes show whatever the dependence, and how much each
agrees with the truth.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.mallows_moments import moment_fit, predicted_agreement
from consilience.families.mallows_problem import Problem, expected_agreement, quality_of
from consilience.families.pair_costs import blend
from consilience.families.pair_fits import MANY_SOURCES
from consilience.solvers.mallows import DistanceCurve
from consilience.solvers.readings import FLAG, PairReading, Readings, Refit, read_dependence
from consilience.solvers.weighed_readings import weigh_readings

if TYPE_CHECKING:
    from consilience.families.mallows import MallowsParameters

__all__ = ["chosen_reading", "feared_copies", "gold_shares", "read_pairs", "with_dependence", "with_gold"]

#: Once sources are known to depend on each other, the pair moments determine a quality up to this error.
MODEL_ERROR = 0.1
#: Most of that error is common: sources that share an error look better than they are, all by about the same factor,
#: which is one up to this. What is left for each of them is half of the error.
COMMON_ERROR = 0.2
#: Known items on which sources are worse than elsewhere by a smaller factor say next to nothing about them.
LEAST_FACTOR = 0.1
#: A weight that a solver leaves at its lower bound, zero, up to its tolerance.
SILENT = 0.01
#: Standard errors of incomplete votes are multiplied by no more than this.
MOST_INFLATION = 1.5
#: Distances between the rankings of independent sources scatter as those of one source with the same mean distance, or
#: less; those of sources of which one repeats the other on some items, by this much more, or further.
REPEATING = 1.25
#: Sources whose qualities, each times the best of the others, add up to less than this say next to nothing.
CONFIRMED = 0.09


def read_pairs(problem: Problem) -> Readings:
    """Return which pairs depend on each other, by the exact moments of all of them."""
    usable, pairs = problem.usable, problem.pairs
    left, right = np.nonzero(np.triu(usable))
    exact = not problem.many_incomplete
    error = pairs.standard_error[left, right]
    if len(usable) >= MANY_SOURCES:
        # Of so many pairs, with a handful of items each, some agree by luck on all of them, and then hardly scatter.
        items = np.maximum(problem.sums["both"][left, right], 1)
        error = np.maximum(error, np.sqrt(np.median(error**2 * items) / items)) if len(left) else error
    first = moment_fit(problem)
    # Independent votes with ties or without some items scatter little more than their errors say. What scatters much
    # more depends on each other, and must not hide behind its own misfit.
    unit = 1.0 if exact else min(first.inflation, MOST_INFLATION)

    def refit(kept: BoolArray) -> Refit:
        left_out = usable & ~kept
        fit = moment_fit(_depending(problem, left_out), first.weight) if left_out.any() else first
        too_close = np.zeros(usable.shape)
        residual = pairs.value[left, right] - predicted_agreement(problem, usable, fit.weight)
        too_close[left, right] = residual / (error * unit)
        return Refit(quality_of(problem.family, fit.weight), too_close + too_close.T, fit.inflation)

    # Of votes with ties or without some items the moments miss a little, all pairs together a lot: single pairs have
    # to stand out.
    read = weigh_readings if exact else read_dependence
    return read(refit, usable, pairs.value, 2.0 * FLAG if problem.is_tied else FLAG)


def feared_copies(problem: Problem, readings: Readings) -> PairReading | None:
    """Return the reading with copies that the votes do not rule out, where that without any fits about as well.

    It is ruled out if the sources outside the group know nothing that another one of them confirms, so that there is
    nothing to lose, and if distances within the group scatter as those of independent sources do: who copies is at no
    distance at all on some items, and far away on the others.
    """
    reading = readings.doubtful
    if reading is None or problem.is_partial or problem.is_tied or problem.family.ragged:
        return reading
    others = problem.active & ~reading.dependent.any(axis=1)
    quality = np.sort(np.maximum(reading.quality[others], 0.0))[::-1]
    confirmed = len(quality) > 1 and quality[0] * quality[1:].sum() + quality[1] * quality[0] > CONFIRMED
    return reading if confirmed or (_scatter(problem)[reading.dependent] > REPEATING).any() else None


def _scatter(problem: Problem) -> FloatArray:
    """Return the variance of the distance of two sources, ``(m, m)``, over that of one source at this mean distance."""
    family, pairs = problem.family, problem.pairs
    curve, most = family.typical_curve, family.typical * (family.typical - 1) / 2.0
    mean = most * (1.0 - pairs.value) / 2.0
    variance = pairs.standard_error**2 * (pairs.both / most) * (most / 2.0) ** 2
    alone = curve.variance(curve.weight_from_mean(mean, limit=family.bounds[1]))
    scatter: FloatArray = variance / np.maximum(alone, 1e-12)
    # Who never differs is a copy as far as anyone can see.
    return np.where(mean > 0, scatter, np.inf)


def chosen_reading(problem: Problem, readings: Readings) -> PairReading:
    """Return the reading that the known labels support."""
    if readings.rival is None or "gold_discordant" not in problem.sums:
        return readings.best
    share, error = gold_shares(problem)
    told, spread = 1.0 - 2.0 * share, np.hypot(2.0 * error, MODEL_ERROR)
    known = np.isfinite(spread)

    def misfit(reading: PairReading) -> float:
        return float((((reading.quality - told) / spread)[known] ** 2).sum())

    return min((readings.best, readings.rival), key=misfit)


def gold_shares(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Return the share of pairs that each source has in the wrong order where the truth is known, and its error."""
    total = np.array([DistanceCurve.of(row).total_pairs for row in problem.sums["gold_buckets"]])
    share = (problem.sums["gold_discordant"] + 0.5) / (total + 1.0)
    # Pairs of one ranking are not independent; as many as there are items carry the information.
    items = np.maximum(total / max((problem.family.typical - 1) / 2.0, 1.0), 1.0)
    error = np.sqrt(share * (1 - share) / items)
    return share, np.where(total > 0, error, np.inf)


def with_gold(
    problem: Problem, weight: FloatArray, error: FloatArray, level_told: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return weights of dependent sources, pulled to what the known labels say as far as these are precise.

    How good all sources are together is up to the votes, since known items need not be like the others: those that were
    suggested are hard ones. Where the votes leave that open, `level_told`, the known labels decide.
    """
    if "gold_discordant" not in problem.sums:
        return weight, error
    family = problem.family
    curve, pairs = family.typical_curve, family.typical * (family.typical - 1) / 2.0
    share = curve.mean(weight) / pairs
    slope = np.maximum(curve.variance(weight) / pairs, 1e-9)
    own = np.hypot(np.where(np.isfinite(error), error, 1.0) * slope, MODEL_ERROR / 4.0)
    told, told_error = gold_shares(problem)
    quality, precision = 1.0 - 2.0 * share, 1.0 / (4.0 * (own**2 + told_error**2))
    certainty = COMMON_ERROR**-2 if level_told else 1.0
    factor = ((precision * quality * (1.0 - 2.0 * told)).sum() + certainty) / (
        (precision * quality**2).sum() + certainty
    )
    if level_told:
        share = (1.0 - np.clip(factor * quality, -1.0, 1.0)) / 2.0
    else:
        factor = max(float(factor), LEAST_FACTOR)
        told, told_error = (1.0 - np.clip((1.0 - 2.0 * told) / factor, -1.0, 1.0)) / 2.0, told_error / factor
    share, mixed = blend(share, own, told, told_error)
    low, high = family.bounds
    weight = np.clip(curve.weight_from_mean(share * pairs, limit=high), low, high)
    return weight, mixed / np.maximum(curve.variance(weight) / pairs, 1e-9)


def with_dependence(problem: Problem, parameters: MallowsParameters) -> MallowsParameters:
    """Return the parameters with the agreement of all pairs, from which dependent votes are weighed together."""
    dependent, pairs = problem.request.dependent, problem.pairs
    if not (dependent & (pairs.both > 0)).any():
        return parameters
    model = expected_agreement(problem.family, parameters.weight)
    residual = np.where(pairs.both > 0, pairs.value - model, 0.0)
    # A residual within its noise is no sign of dependence; one far beyond it counts in full.
    signal = (residual / pairs.standard_error) ** 2
    counted = np.where(dependent, 1.0, signal / (signal + 4.0))
    # Who misleads has no weight, rather than one below zero; what others have against it says nothing about them.
    silent = (parameters.weight <= SILENT) & (problem.family.bounds[0] >= 0.0)
    counted = np.where(silent[:, None] | silent[None, :], 0.0, counted)
    agreement = model + residual * counted
    np.fill_diagonal(agreement, 1.0)
    return replace(parameters, agreement=_positive(agreement))


def _positive(matrix: FloatArray) -> FloatArray:
    """Return the matrix without negative eigenvalues, ones on the diagonal."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    size = np.sqrt(np.maximum(np.diag(positive), 1e-12))
    result: FloatArray = positive / np.outer(size, size)
    return result


def _depending(problem: Problem, dependent: BoolArray) -> Problem:
    return replace(problem, request=replace(problem.request, dependent=problem.request.dependent | dependent))
