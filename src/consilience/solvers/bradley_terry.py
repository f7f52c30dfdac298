"""Variational fit of Bradley-Terry judges: see `consilience.solvers.pair_judges` for the model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.solvers.pair_judges import (
    BIAS_VARIANCE,
    JudgeTraits,
    PairTable,
    ScoreBelief,
    curvature,
    log_normaliser,
    totals,
)

__all__ = ["VariationalFit", "fit_judges", "scores_given_judges"]

#: Prior of the discriminations: this many judges of a coefficient of variation of one.
PSEUDO_JUDGES = 3.0
ROUNDS, TOLERANCE = 200, 1e-4
LARGEST_TIE = 50.0


@dataclass(frozen=True)
class VariationalFit:
    """Judges and scores that fit each other best, with the bound of their likelihood."""

    judges: JudgeTraits
    scores: ScoreBelief
    bound: float
    converged: bool


def scores_given_judges(
    pairs: PairTable, judges: JudgeTraits, start: ScoreBelief | None = None, rounds: int = 16
) -> ScoreBelief:
    """Return the scores that judges of these traits point to; groups of one call do not touch each other."""
    scores = start if start is not None else _no_scores(pairs)
    for _ in range(rounds):
        reach, _ = _reach(pairs, judges, scores)
        scores = _score_step(pairs, judges, pairs.weight * curvature(reach, judges.tie[pairs.judge]))
    return scores


def fit_judges(
    pairs: PairTable,
    start: JudgeTraits,
    *,
    equal: bool = False,
    position: bool = True,
    ties: bool = True,
    fixed: BoolArray | None = None,
    rounds: int = ROUNDS,
    tolerance: float = TOLERANCE,
) -> VariationalFit:
    """Learn judges and scores together, by steps that never lower the bound.

    Parameters
    ----------
    equal
        Whether all judges have one discrimination.
    position, ties
        Whether there are a position bias and a tie rate per judge.
    fixed
        ``(m,)`` judges that stay as they start, such as one who tells known rankings.
    """
    held = np.zeros(pairs.n_judges, dtype=bool) if fixed is None else fixed
    known = held.any()
    judges, scores = start, _no_scores(pairs)
    compared = pairs.compared
    reach, (mean, variance) = _reach(pairs, judges, scores)
    before, converged = np.zeros(0), False
    for _ in range(rounds):
        scores = _score_step(pairs, judges, pairs.weight * curvature(reach, judges.tie[pairs.judge]))
        if not known:
            scores, judges = _rescaled(scores, judges, compared)
        reach, (mean, variance) = _reach(pairs, judges, scores)
        new = _judge_step(
            pairs,
            judges,
            pairs.weight * curvature(reach, judges.tie[pairs.judge]),
            mean,
            variance,
            equal=equal,
            position=position,
            free=~held,
        )
        judges = new.with_fixed(start, held)
        if judges.slope[~held].sum() < 0 and not known:
            flip = np.array([[1.0, -1.0], [-1.0, 1.0]])
            judges = replace(judges, slope=-judges.slope, covariance=judges.covariance * flip)
            judges = replace(judges, slope_mean=max(float(judges.slope.mean()), 0.05))
            scores = replace(scores, mean=-scores.mean)
        reach, (mean, variance) = _reach(pairs, judges, scores)
        if ties:
            judges = replace(judges, tie=_tie_step(pairs, judges.tie, reach)).with_fixed(start, held)
        now = np.concatenate([scores.mean.ravel(), judges.slope, judges.bias])
        if len(before) and float(np.abs(now - before).max()) < tolerance:
            converged = True
            break
        before = now
    return VariationalFit(judges, scores, _bound(pairs, judges, scores, equal=equal), converged)


def _no_scores(pairs: PairTable) -> ScoreBelief:
    shape = (pairs.n_groups, pairs.width)
    return ScoreBelief(np.zeros(shape), np.zeros((*shape, pairs.width)))


def _reach(
    pairs: PairTable, judges: JudgeTraits, scores: ScoreBelief
) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """Return the root of the mean of eta squared, and mean and variance of the differences."""
    mean, variance = scores.differences(pairs)
    square = judges.slope**2 + judges.covariance[:, 0, 0]
    cross = judges.slope * judges.bias + judges.covariance[:, 0, 1]
    offset = judges.bias**2 + judges.covariance[:, 1, 1]
    who = pairs.judge
    eta = square[who] * (mean**2 + variance) + (2.0 * cross[who] * mean + offset[who]) * pairs.shown
    return np.sqrt(np.maximum(eta, 1e-10)), (mean, variance)


def _score_step(pairs: PairTable, judges: JudgeTraits, weight: FloatArray) -> ScoreBelief:
    who, width, groups = pairs.judge, pairs.width, pairs.n_groups
    square = judges.slope**2 + judges.covariance[:, 0, 0]
    cross = judges.slope * judges.bias + judges.covariance[:, 0, 1]
    load = weight * square[who]
    row = (pairs.group * width + pairs.first) * width
    other = (pairs.group * width + pairs.second) * width
    between = totals(row + pairs.second, load, groups * width * width).reshape(groups, width, width)
    precision = -between - between.transpose(0, 2, 1)
    diagonal = totals(row // width, load, groups * width) + totals(other // width, load, groups * width)
    precision[:, np.arange(width), np.arange(width)] += 1.0 + diagonal.reshape(groups, width)
    pull = pairs.weight * pairs.outcome / 2.0 * judges.slope[who] - weight * cross[who] * pairs.shown
    target = totals(row // width, pull, groups * width) - totals(other // width, pull, groups * width)
    covariance = np.linalg.inv(precision).astype(np.float64)
    return ScoreBelief(np.einsum("gij,gj->gi", covariance, target.reshape(groups, width)), covariance)


def _rescaled(scores: ScoreBelief, judges: JudgeTraits, compared: BoolArray) -> tuple[ScoreBelief, JudgeTraits]:
    """Give the scores a mean square of one and move the factor into the judges, which speeds up the fit."""
    square = scores.mean**2 + np.diagonal(scores.covariance, axis1=1, axis2=2)
    factor = float(np.clip(np.sqrt(max(square[compared].mean() if compared.any() else 1.0, 1e-8)), 0.5, 2.0))
    return ScoreBelief(scores.mean / factor, scores.covariance / factor**2), judges.scaled(factor)


def _judge_step(
    pairs: PairTable,
    judges: JudgeTraits,
    weight: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    *,
    equal: bool,
    position: bool,
    free: BoolArray,
) -> JudgeTraits:
    who, m = pairs.judge, pairs.n_judges
    information = np.zeros((m, 2, 2))
    target = np.zeros((m, 2))
    gain = pairs.weight * pairs.outcome / 2.0
    information[:, 0, 0] = totals(who, weight * (mean**2 + variance), m)
    target[:, 0] = totals(who, gain * mean, m)
    if position:
        information[:, 0, 1] = information[:, 1, 0] = totals(who, weight * mean * pairs.shown, m)
        information[:, 1, 1] = totals(who, weight * pairs.shown, m) + 1.0 / judges.bias_variance
        target[:, 1] = totals(who, gain * pairs.shown, m) + judges.bias_mean / judges.bias_variance
    else:
        information[:, 1, 1] = 1e9
    count = int(free.sum())
    if equal:
        pull = (target[:, 0] - information[:, 0, 1] * judges.bias)[free].sum()
        common = float(pull / (information[free, 0, 0].sum() + 1e-9))
        slope = np.full(m, common)
        bias = (target[:, 1] - information[:, 0, 1] * slope) / information[:, 1, 1]
        covariance = np.zeros((m, 2, 2))
        covariance[:, 1, 1] = 1.0 / information[:, 1, 1]
        new = replace(judges, slope=slope, bias=bias, covariance=covariance, slope_mean=common)
        spread = covariance[:, 1, 1]
    else:
        information[:, 0, 0] += 1.0 / judges.slope_variance
        target[:, 0] += judges.slope_mean / judges.slope_variance
        covariance = np.linalg.inv(information).astype(np.float64)
        found = np.einsum("mij,mj->mi", covariance, target)
        slope, bias = found[:, 0], found[:, 1]
        centre = max(float(slope[free].mean()), 0.05)
        scatter = float(((slope - centre) ** 2 + covariance[:, 0, 0])[free].sum())
        new = replace(
            judges,
            slope=slope,
            bias=bias,
            covariance=covariance,
            slope_mean=centre,
            slope_variance=(scatter + PSEUDO_JUDGES * centre**2) / (count + PSEUDO_JUDGES),
        )
        spread = covariance[:, 1, 1]
    if not position:
        return replace(new, bias=np.zeros(m))
    centre = float(new.bias[free].sum()) / (count + 1.0)
    scatter = float(((new.bias - centre) ** 2 + spread)[free].sum())
    return replace(new, bias_mean=centre, bias_variance=(scatter + BIAS_VARIANCE) / (count + 1.0))


def _tie_step(pairs: PairTable, tie: FloatArray, reach: FloatArray) -> FloatArray:
    """Return tie parameters at which expected and seen ties meet; half a tie in one and a half votes come on top."""
    who, m = pairs.judge, pairs.n_judges
    seen = totals(who, pairs.weight * (pairs.outcome == 0), m) + 0.5
    base = 1.0 / (np.exp(reach / 2.0) + np.exp(-reach / 2.0))
    for _ in range(2):
        share = tie[who] * base / (1.0 + tie[who] * base)
        expected = totals(who, pairs.weight * share, m) + 1.5 * tie / (2.0 + tie)
        spread = totals(who, pairs.weight * share * (1.0 - share), m) + 0.3
        tie = np.clip(tie * np.exp(np.clip((seen - expected) / spread, -1.0, 1.0)), 1e-4, LARGEST_TIE)
    return tie


def _bound(pairs: PairTable, judges: JudgeTraits, scores: ScoreBelief, *, equal: bool) -> float:
    """Return the lower bound of the log-likelihood, up to a constant: by it the better of two fits is told."""
    reach, (mean, _) = _reach(pairs, judges, scores)
    who = pairs.judge
    eta = judges.slope[who] * mean + judges.bias[who] * pairs.shown
    total = float((pairs.weight * (pairs.outcome / 2.0 * eta - log_normaliser(reach, judges.tie[who]))).sum())
    tied = pairs.outcome == 0
    total += float((pairs.weight * np.log(np.maximum(judges.tie[who], 1e-300)))[tied].sum())
    size = np.linalg.slogdet(scores.covariance)[1]
    square = float(np.einsum("gii->", scores.covariance) + (scores.mean**2).sum())
    total += 0.5 * float(size.sum()) - 0.5 * square
    if equal:
        return total
    variance = np.maximum(judges.covariance[:, 0, 0], 1e-12)
    spread = ((judges.slope - judges.slope_mean) ** 2 + variance) / judges.slope_variance
    return total + 0.5 * float(np.log(variance / judges.slope_variance).sum() - spread.sum())
