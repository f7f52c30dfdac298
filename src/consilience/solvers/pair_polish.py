"""Importance sampling over the scores of small groups: sharper than the parabola where a group has few votes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.solvers.bradley_terry import PSEUDO_JUDGES, scores_given_judges
from consilience.solvers.pair_judges import (
    BIAS_VARIANCE,
    JudgeTraits,
    PairTable,
    ScoreBelief,
    log_normaliser,
    outcome_moments,
    totals,
)

__all__ = ["ScoreDraws", "draw_scores", "normal_draws", "polish_judges"]

#: Draws per group, half of them mirrored, and by how much the proposal is wider than the belief.
DRAWS, WIDER = 64, 1.3
ROUNDS, TOLERANCE = 25, 2e-3
#: Steps to the scores before the first draw, and from round to round.
FIRST_STEPS, NEXT_STEPS = 16, 3


@dataclass(frozen=True)
class ScoreDraws:
    """Weighted draws of the scores: ``(groups, draws, width)`` and ``(groups, draws)``, the latter adding up to one."""

    scores: FloatArray
    weight: FloatArray

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean ``(groups, width)`` and covariance ``(groups, width, width)``."""
        mean = np.einsum("gd,gdi->gi", self.weight, self.scores)
        centred = self.scores - mean[:, None, :]
        return mean, np.einsum("gd,gdi,gdj->gij", self.weight, centred, centred)

    def better(self) -> FloatArray:
        """Return ``(groups, width, width)`` probabilities that one item is better than the other; half on the diagonal.

        Normal in the difference beside the draws, which alone would call many orders certain.
        """
        from scipy.special import ndtr

        width = self.scores.shape[2]
        share = np.empty((len(self.scores), width, width))
        for one in range(width):
            over = self.scores[:, :, one : one + 1] > self.scores
            share[:, one] = np.einsum("gd,gdj->gj", self.weight, over)
        mean, covariance = self.moments()
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        spread = variance[:, :, None] + variance[:, None, :] - 2.0 * covariance
        smooth = ndtr((mean[:, :, None] - mean[:, None, :]) / np.sqrt(np.maximum(spread, 1e-12)))
        better: FloatArray = (share + smooth) / 2.0
        better[:, np.arange(width), np.arange(width)] = 0.5
        return better


def normal_draws(width: int) -> FloatArray:
    """Return ``(draws, width)`` quasi-random normal numbers and their mirror images.

    A lattice by powers of the root of ``x ** (width + 1) = x + 1``, which fills the cube evenly for any size.
    """
    from scipy.special import ndtri

    root = 2.0
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (width + 1.0))
    steps = root ** -np.arange(1.0, width + 1.0)
    one = ndtri((0.5 + np.arange(1, DRAWS // 2 + 1)[:, None] * steps) % 1.0)
    return np.concatenate([one, -one])


def draw_scores(pairs: PairTable, judges: JudgeTraits, around: ScoreBelief, normals: FloatArray) -> ScoreDraws:
    """Draw scores around a belief, weighed by how well they explain the votes; comparisons come group by group."""
    root = np.linalg.cholesky(around.covariance * WIDER)
    scores = around.mean[:, None, :] + np.einsum("gij,dj->gdi", root, normals)
    weight = 0.5 * (normals**2).sum(axis=1) - 0.5 * (scores**2).sum(axis=2)
    explained = _log_likelihood(pairs, judges, _differences(pairs, scores))
    weight += _by_group(pairs, explained)
    weight = np.exp(weight - weight.max(axis=1, keepdims=True))
    return ScoreDraws(scores, weight / weight.sum(axis=1, keepdims=True))


def polish_judges(
    pairs: PairTable,
    judges: JudgeTraits,
    *,
    position: bool = True,
    ties: bool = True,
    fixed: BoolArray | None = None,
    rounds: int = ROUNDS,
) -> JudgeTraits:
    """Return judges by EM over weighted draws of the scores, from where the variational fit ends.

    The covariance of a judge is that of the maximum: the inverse of the squared scores of the groups, prior included.
    """
    pairs = pairs.where(np.argsort(pairs.group, kind="stable"))
    held = np.zeros(pairs.n_judges, dtype=bool) if fixed is None else fixed
    free = ~held
    compared = pairs.compared
    normals = normal_draws(pairs.width)
    plain = replace(judges, covariance=np.zeros_like(judges.covariance), tie=np.maximum(judges.tie, 1e-6 * ties))
    around = scores_given_judges(pairs, plain, rounds=FIRST_STEPS)
    for _ in range(rounds):
        before = plain
        around = scores_given_judges(pairs, plain, around, NEXT_STEPS)
        drawn = draw_scores(pairs, plain, around, normals)
        gap, weight = _differences(pairs, drawn.scores), drawn.weight[pairs.group]
        if not held.any():
            square = np.einsum("gd,gdi->gi", drawn.weight, drawn.scores**2)
            factor = float(np.sqrt(max(square[compared].mean() if compared.any() else 1.0, 1e-8)))
            plain, gap = plain.scaled(factor), gap / factor
        plain, spread = _newton(pairs, plain, gap, weight, position=position, ties=ties)
        plain = plain.with_fixed(judges, held)
        if plain.slope[free].sum() < 0 and not held.any():
            plain = replace(plain, slope=-plain.slope)
            around = replace(around, mean=-around.mean)
        plain = _with_spread(plain, spread, free, position=position)
        moved = np.abs(plain.slope - before.slope).max() / max(1.0, plain.slope_mean)
        if max(float(moved), float(np.abs(plain.bias - before.bias).max())) < TOLERANCE:
            break
    return replace(plain, covariance=_score_covariance(pairs, plain, gap, weight, free, position=position))


def _newton(
    pairs: PairTable, judges: JudgeTraits, gap: FloatArray, weight: FloatArray, *, position: bool, ties: bool
) -> tuple[JudgeTraits, FloatArray]:
    """Return the judges one Newton step on, and the inverse of minus the second derivatives."""
    who, m, shown = pairs.judge, pairs.n_judges, pairs.shown
    eta = judges.slope[who][:, None] * gap + (judges.bias[who] * shown)[:, None]
    tie = judges.tie[who][:, None]
    mean, variance = outcome_moments(eta, tie)
    load = pairs.weight[:, None] * weight
    residual = load * (pairs.outcome[:, None] - mean) / 2.0
    bend = load * variance / 4.0
    slope = totals(who, (residual * gap).sum(axis=1), m) - (judges.slope - judges.slope_mean) / judges.slope_variance
    second = np.zeros((m, 2, 2))
    second[:, 0, 0] = totals(who, (bend * gap**2).sum(axis=1), m) + 1.0 / judges.slope_variance
    second[:, 1, 1] = 1.0
    first = np.stack([slope, np.zeros(m)], axis=1)
    if position:
        pull = totals(who, residual.sum(axis=1) * shown, m)
        first[:, 1] = pull - (judges.bias - judges.bias_mean) / judges.bias_variance
        second[:, 1, 1] = totals(who, bend.sum(axis=1) * shown, m) + 1.0 / judges.bias_variance
        second[:, 0, 1] = second[:, 1, 0] = totals(who, (bend * gap).sum(axis=1) * shown, m)
    inverse: FloatArray = np.linalg.inv(second).astype(np.float64)
    step = np.clip(np.einsum("mij,mj->mi", inverse, first), -1.0, 1.0)
    new = replace(judges, slope=judges.slope + step[:, 0], bias=judges.bias + step[:, 1])
    if not ties:
        return new, inverse
    share = tie / (np.exp(np.clip(eta, -80, 80) / 2.0) + np.exp(-np.clip(eta, -80, 80) / 2.0) + tie)
    seen = totals(who, pairs.weight * (pairs.outcome == 0), m) + 0.5
    expected = totals(who, (load * share).sum(axis=1), m) + 1.5 * judges.tie / (2.0 + judges.tie)
    spread = totals(who, (load * share * (1.0 - share)).sum(axis=1), m) + 0.3
    step_of_tie = np.clip((seen - expected) / spread, -1.0, 1.0)
    return replace(new, tie=np.clip(judges.tie * np.exp(step_of_tie), 1e-4, 50.0)), inverse


def _with_spread(judges: JudgeTraits, covariance: FloatArray, free: BoolArray, *, position: bool) -> JudgeTraits:
    count = int(free.sum())
    centre = max(float(judges.slope[free].mean()), 0.05)
    scatter = float(((judges.slope - centre) ** 2 + covariance[:, 0, 0])[free].sum())
    judges = replace(
        judges,
        slope_mean=centre,
        slope_variance=(scatter + PSEUDO_JUDGES * centre**2) / (count + PSEUDO_JUDGES),
    )
    if not position:
        return judges
    middle = float(judges.bias[free].sum()) / (count + 1.0)
    scatter = float(((judges.bias - middle) ** 2 + covariance[:, 1, 1])[free].sum())
    return replace(judges, bias_mean=middle, bias_variance=(scatter + BIAS_VARIANCE) / (count + 1.0))


def _score_covariance(
    pairs: PairTable, judges: JudgeTraits, gap: FloatArray, weight: FloatArray, free: BoolArray, *, position: bool
) -> FloatArray:
    """Return ``(m, 2, 2)`` covariances from the spread of the derivatives over the groups."""
    who, m = pairs.judge, pairs.n_judges
    eta = judges.slope[who][:, None] * gap + (judges.bias[who] * pairs.shown)[:, None]
    mean, _ = outcome_moments(eta, judges.tie[who][:, None])
    residual = pairs.weight[:, None] * weight * (pairs.outcome[:, None] - mean) / 2.0
    place = pairs.group * m + who
    slopes = totals(place, (residual * gap).sum(axis=1), pairs.n_groups * m).reshape(-1, m)
    biases = totals(place, residual.sum(axis=1) * pairs.shown, pairs.n_groups * m).reshape(-1, m)
    derivatives = np.concatenate([slopes, biases if position else 0.0 * biases], axis=1)
    information = derivatives.T @ derivatives
    prior = np.r_[np.full(m, 1.0 / judges.slope_variance), np.full(m, 1.0 / judges.bias_variance)]
    prior[np.r_[~free, ~free]] = 1e9
    inverse = np.linalg.inv(information + np.diag(prior))
    at = np.arange(m)
    corner = np.stack([[inverse[at, at], inverse[at, m + at]], [inverse[m + at, at], inverse[m + at, m + at]]])
    return np.ascontiguousarray(corner.transpose(2, 0, 1))


def _differences(pairs: PairTable, scores: FloatArray) -> FloatArray:
    return np.asarray(scores[pairs.group, :, pairs.first] - scores[pairs.group, :, pairs.second])


def _log_likelihood(pairs: PairTable, judges: JudgeTraits, gap: FloatArray) -> FloatArray:
    who = pairs.judge
    eta = judges.slope[who][:, None] * gap + (judges.bias[who] * pairs.shown)[:, None]
    said = pairs.outcome[:, None] * eta / 2.0 - log_normaliser(np.abs(eta), judges.tie[who][:, None])
    return np.asarray(pairs.weight[:, None] * said)


def _by_group(pairs: PairTable, values: FloatArray) -> FloatArray:
    """Return the sums of rows by group; rows come group by group."""
    total = np.zeros((pairs.n_groups, values.shape[1]))
    if len(values):
        there, start = np.unique(pairs.group, return_index=True)
        total[there] = np.add.reduceat(values, start, axis=0)
    return total
