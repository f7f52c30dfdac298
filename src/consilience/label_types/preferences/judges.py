"""Bradley-Terry with ties for several judges: signed discrimination, position bias and tie rate each.

A vote of judge a on two items, the first shown and the second, with ``eta = s_a (score_i - score_j) + b_a``::

    P(first) : P(second) : P(tie)  =  exp(eta / 2) : exp(-eta / 2) : nu_a

Scores are standard normal within each group (the whole arena, or one prompt), so the scale sits in s. The logarithm
of the normaliser is bounded by a parabola in eta (Jaakkola and Jordan, extended to Davidson's ties), which makes
every step a weighted ridge regression: scores given judges, judges given scores, one spread shared by all judges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = [
    "JudgeTraits",
    "PairVotes",
    "ScoreBelief",
    "VariationalFit",
    "correlation_of_runs",
    "draw_scores",
    "fit_judges",
    "joint_covariance",
    "normal_draws",
    "polish_judges",
    "scores_given_judges",
    "starting_judges",
    "totals",
    "unexplained",
]

#: Variance of the position biases before any vote.
BIAS_VARIANCE = 0.25
#: How far judges are from what is expected of them counts as if seen in this many judges already.
PSEUDO_JUDGES = 3.0
#: Newton steps to the taste of a single judge, and the precision by which its scores are held.
TASTE_STEPS, TASTE_RIDGE = 8, 0.25
#: Residuals are never taken as surer than by this variance of the outcome; the largest one is 1.
LEAST_VARIANCE = 0.2


@dataclass(frozen=True)
class PairVotes:
    """Comparisons, one entry each.

    Parameters
    ----------
    judge, group
        Who compared, and in which group; items are numbered within their group.
    first, second
        The item shown first and the one shown second.
    outcome
        1 if the first one won, -1 if the second did, 0 for a tie.
    shown
        1 where the items were shown in this order, 0 where the order means nothing.
    weight
        How many votes it counts as.
    """

    judge: IntArray
    group: IntArray
    first: IntArray
    second: IntArray
    outcome: FloatArray
    shown: FloatArray
    weight: FloatArray
    n_judges: int
    n_groups: int
    width: int

    def __len__(self) -> int:
        return len(self.judge)

    def where(self, kept: BoolArray | IntArray) -> PairVotes:
        """Return some of the comparisons."""
        parts = {
            name: getattr(self, name)[kept]
            for name in ("judge", "group", "first", "second", "outcome", "shown", "weight")
        }
        return replace(self, **parts)

    @property
    def compared(self) -> BoolArray:
        """``(groups, width)``: whether the item was ever compared."""
        count = totals(self.group * self.width + self.first, None, self.n_groups * self.width)
        count += totals(self.group * self.width + self.second, None, self.n_groups * self.width)
        return (count > 0).reshape(self.n_groups, self.width)

    def votes_of_judges(self) -> FloatArray:
        """Return the weight of all votes of each judge."""
        return totals(self.judge, self.weight, self.n_judges)


@dataclass(frozen=True)
class JudgeTraits:
    """What is believed about the judges.

    Parameters
    ----------
    slope, bias, tie
        ``(m,)`` discrimination s, position bias b and tie parameter nu.
    covariance
        ``(m, 2, 2)`` of slope and bias of each judge.
    center, spread
        ``(m,)`` discriminations that are expected before these votes, and how far judges may be from them.
    scale, factor
        Learned: expected discriminations are ``scale * center``, with the variance ``factor * (scale * spread) ** 2``.
    bias_mean, bias_variance
        Of the law that the biases of all judges are drawn from.
    """

    slope: FloatArray
    bias: FloatArray
    tie: FloatArray
    covariance: FloatArray
    center: FloatArray
    spread: FloatArray
    scale: float = 1.0
    factor: float = 0.5
    bias_mean: float = 0.0
    bias_variance: float = BIAS_VARIANCE

    @property
    def slope_mean(self) -> FloatArray:
        """``(m,)`` mean of the discriminations before these votes."""
        return self.scale * self.center

    @property
    def slope_variance(self) -> FloatArray:
        """``(m,)`` their variance."""
        return self.factor * (self.scale * self.spread) ** 2

    def with_prior(self, slope: FloatArray, variance: FloatArray, free: BoolArray) -> JudgeTraits:
        """Return the same judges with scale and factor learned from discriminations and their variances.

        The factor starts from `PSEUDO_JUDGES` judges that are as far from the center as expected.
        """
        weight = np.where(free, 1.0 / self.spread**2, 0.0)
        scale = max(float((weight * slope * self.center).sum() / max((weight * self.center**2).sum(), 1e-12)), 0.05)
        apart = ((slope - scale * self.center) ** 2 + variance) / (scale * self.spread) ** 2
        count = int(free.sum())
        factor = (float(apart[free].sum()) + PSEUDO_JUDGES) / (count + PSEUDO_JUDGES)
        return replace(self, scale=scale, factor=factor)

    def scaled(self, factor: float) -> JudgeTraits:
        """Return the same judges where scores are divided by a factor."""
        corner = np.array([[factor**2, factor], [factor, 1.0]])
        return replace(
            self,
            slope=self.slope * factor,
            covariance=self.covariance * corner,
            scale=self.scale * factor,
        )

    def with_fixed(self, start: JudgeTraits, held: BoolArray) -> JudgeTraits:
        """Return the same judges, but for those that are held as they started."""
        if not held.any():
            return self
        corner = np.where(held[:, None, None], 0.0, self.covariance)
        kept = {name: np.where(held, getattr(start, name), getattr(self, name)) for name in ("slope", "bias", "tie")}
        return replace(self, covariance=corner, **kept)


@dataclass(frozen=True)
class ScoreBelief:
    """Normal beliefs about the scores: mean ``(groups, width)`` and covariance ``(groups, width, width)``."""

    mean: FloatArray
    covariance: FloatArray

    def differences(self, pairs: PairVotes) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the difference of each comparison."""
        at, one, two = pairs.group, pairs.first, pairs.second
        variance = self.covariance[at, one, one] + self.covariance[at, two, two] - 2.0 * self.covariance[at, one, two]
        return self.mean[at, one] - self.mean[at, two], np.maximum(variance, 0.0)


def curvature(reach: FloatArray, tie: FloatArray) -> FloatArray:
    """Return the weight of the parabola that touches the log-likelihood at ``|eta| = reach``.

    ``sinh(c/2) / (c (2 cosh(c/2) + nu))``; at zero it is ``1 / (2 (2 + nu))``.

    Examples
    --------
    >>> curvature(np.array([1e-9, 2.0]), np.array([2.0, 0.0])).round(4).tolist()
    [0.125, 0.1904]
    """
    at = np.clip(reach, 1e-4, 40.0)
    falling = np.exp(-at)
    return np.asarray(0.5 * (1.0 - falling) / (at * (1.0 + falling + tie * np.exp(-at / 2.0))))


def outcome_moments(eta: FloatArray, tie: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the outcome.

    Examples
    --------
    >>> mean, variance = outcome_moments(np.array([0.0]), np.array([2.0]))
    >>> mean.tolist(), variance.tolist()
    ([0.0], [0.5])
    """
    size = np.minimum(np.abs(eta), 80.0)
    falling = np.exp(-size)
    total = 1.0 + falling + tie * np.exp(-size / 2.0)
    mean = np.sign(eta) * (1.0 - falling) / total
    return mean, (1.0 + falling) / total - mean**2


def log_normaliser(reach: FloatArray, tie: FloatArray) -> FloatArray:
    """Return ``log(2 cosh(c/2) + nu)`` for ``c = reach >= 0``."""
    return np.asarray(reach / 2.0 + np.log1p(np.exp(-reach) + tie * np.exp(-reach / 2.0)))


def starting_judges(
    pairs: PairVotes, slope: FloatArray, spread: FloatArray | None = None, *, ties: bool = True
) -> JudgeTraits:
    """Return judges of expected discriminations without bias; the start of every fit."""
    tied = totals(pairs.judge, pairs.weight * (pairs.outcome == 0), pairs.n_judges)
    share = (tied + 0.5) / (pairs.votes_of_judges() + 1.5)
    tie = np.minimum(2.0 * share / np.maximum(1.0 - share, 0.05), 4.0) if ties else np.zeros(pairs.n_judges)
    far = np.maximum(np.abs(slope), 0.3) if spread is None else spread
    m = pairs.n_judges
    return JudgeTraits(slope.copy(), np.zeros(m), tie, np.zeros((m, 2, 2)), slope, far)


def totals(index: IntArray, values: FloatArray | None, size: int) -> FloatArray:
    """Return the sums of values (or counts) by index."""
    return np.bincount(index, values, minlength=size).astype(np.float64, copy=False)


# --- variational fit ---


ROUNDS, TOLERANCE = 200, 1e-4
LARGEST_TIE = 50.0


@dataclass(frozen=True)
class VariationalFit:
    """Judges and scores that fit each other best."""

    judges: JudgeTraits
    scores: ScoreBelief
    converged: bool


def scores_given_judges(
    pairs: PairVotes, judges: JudgeTraits, start: ScoreBelief | None = None, rounds: int = 16
) -> ScoreBelief:
    """Return the scores that judges of these traits point to; groups of one call do not touch each other."""
    scores = start if start is not None else _no_scores(pairs)
    for _ in range(rounds):
        reach, _ = _reach(pairs, judges, scores)
        scores = _score_step(pairs, judges, pairs.weight * curvature(reach, judges.tie[pairs.judge]))
    return scores


def fit_judges(
    pairs: PairVotes,
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
        if (judges.slope * judges.center)[~held].sum() < 0 and not known:
            flip = np.array([[1.0, -1.0], [-1.0, 1.0]])
            judges = replace(judges, slope=-judges.slope, covariance=judges.covariance * flip)
            scores = replace(scores, mean=-scores.mean)
        reach, (mean, variance) = _reach(pairs, judges, scores)
        if ties:
            judges = replace(judges, tie=_tie_step(pairs, judges.tie, reach)).with_fixed(start, held)
        now = np.concatenate([scores.mean.ravel(), judges.slope, judges.bias])
        if len(before) and float(np.abs(now - before).max()) < tolerance:
            converged = True
            break
        before = now
    return VariationalFit(judges, scores, converged)


def _no_scores(pairs: PairVotes) -> ScoreBelief:
    shape = (pairs.n_groups, pairs.width)
    return ScoreBelief(np.zeros(shape), np.zeros((*shape, pairs.width)))


def _reach(
    pairs: PairVotes, judges: JudgeTraits, scores: ScoreBelief
) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """Return the root of the mean of eta squared, and mean and variance of the differences."""
    mean, variance = scores.differences(pairs)
    square = judges.slope**2 + judges.covariance[:, 0, 0]
    cross = judges.slope * judges.bias + judges.covariance[:, 0, 1]
    offset = judges.bias**2 + judges.covariance[:, 1, 1]
    who = pairs.judge
    eta = square[who] * (mean**2 + variance) + (2.0 * cross[who] * mean + offset[who]) * pairs.shown
    return np.sqrt(np.maximum(eta, 1e-10)), (mean, variance)


def _score_step(pairs: PairVotes, judges: JudgeTraits, weight: FloatArray) -> ScoreBelief:
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
    pairs: PairVotes,
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
        new = replace(judges, slope=slope, bias=bias, covariance=covariance, scale=max(common, 0.05))
        spread = covariance[:, 1, 1]
    else:
        information[:, 0, 0] += 1.0 / judges.slope_variance
        target[:, 0] += judges.slope_mean / judges.slope_variance
        covariance = np.linalg.inv(information).astype(np.float64)
        found = np.einsum("mij,mj->mi", covariance, target)
        slope, bias = found[:, 0], found[:, 1]
        new = replace(judges, slope=slope, bias=bias, covariance=covariance)
        new = new.with_prior(slope, covariance[:, 0, 0], free)
        spread = covariance[:, 1, 1]
    if not position:
        return replace(new, bias=np.zeros(m))
    centre = float(new.bias[free].sum()) / (count + 1.0)
    scatter = float(((new.bias - centre) ** 2 + spread)[free].sum())
    return replace(new, bias_mean=centre, bias_variance=(scatter + BIAS_VARIANCE) / (count + 1.0))


def _tie_step(pairs: PairVotes, tie: FloatArray, reach: FloatArray) -> FloatArray:
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


# --- draws of small groups ---


#: Draws per group, half of them mirrored, and by how much the proposal is wider than the belief.
DRAWS, WIDER = 64, 1.3
POLISH_ROUNDS, POLISH_TOLERANCE = 25, 2e-3
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


def draw_scores(pairs: PairVotes, judges: JudgeTraits, around: ScoreBelief, normals: FloatArray) -> ScoreDraws:
    """Draw scores around a belief, weighed by how well they explain the votes; comparisons come group by group."""
    root = np.linalg.cholesky(around.covariance * WIDER)
    scores = around.mean[:, None, :] + np.einsum("gij,dj->gdi", root, normals)
    weight = 0.5 * (normals**2).sum(axis=1) - 0.5 * (scores**2).sum(axis=2)
    explained = _log_likelihood(pairs, judges, _differences(pairs, scores))
    weight += _by_group(pairs, explained)
    weight = np.exp(weight - weight.max(axis=1, keepdims=True))
    return ScoreDraws(scores, weight / weight.sum(axis=1, keepdims=True))


def polish_judges(
    pairs: PairVotes,
    judges: JudgeTraits,
    *,
    position: bool = True,
    ties: bool = True,
    fixed: BoolArray | None = None,
    rounds: int = POLISH_ROUNDS,
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
        if (plain.slope * plain.center)[free].sum() < 0 and not held.any():
            plain = replace(plain, slope=-plain.slope)
            around = replace(around, mean=-around.mean)
        plain = _with_spread(plain, spread, free, position=position)
        moved = np.abs(plain.slope - before.slope).max() / max(1.0, plain.scale)
        if max(float(moved), float(np.abs(plain.bias - before.bias).max())) < POLISH_TOLERANCE:
            break
    return replace(plain, covariance=_score_covariance(pairs, plain, gap, weight, free, position=position))


def _newton(
    pairs: PairVotes, judges: JudgeTraits, gap: FloatArray, weight: FloatArray, *, position: bool, ties: bool
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
    judges = judges.with_prior(judges.slope, covariance[:, 0, 0], free)
    if not position:
        return judges
    middle = float(judges.bias[free].sum()) / (count + 1.0)
    scatter = float(((judges.bias - middle) ** 2 + covariance[:, 1, 1])[free].sum())
    return replace(judges, bias_mean=middle, bias_variance=(scatter + BIAS_VARIANCE) / (count + 1.0))


def _score_covariance(
    pairs: PairVotes, judges: JudgeTraits, gap: FloatArray, weight: FloatArray, free: BoolArray, *, position: bool
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
    prior = np.r_[1.0 / judges.slope_variance, np.full(m, 1.0 / judges.bias_variance)]
    prior[np.r_[~free, ~free]] = 1e9
    inverse = np.linalg.inv(information + np.diag(prior))
    at = np.arange(m)
    corner = np.stack([[inverse[at, at], inverse[at, m + at]], [inverse[m + at, at], inverse[m + at, m + at]]])
    return np.ascontiguousarray(corner.transpose(2, 0, 1))


def _differences(pairs: PairVotes, scores: FloatArray) -> FloatArray:
    return np.asarray(scores[pairs.group, :, pairs.first] - scores[pairs.group, :, pairs.second])


def _log_likelihood(pairs: PairVotes, judges: JudgeTraits, gap: FloatArray) -> FloatArray:
    who = pairs.judge
    eta = judges.slope[who][:, None] * gap + (judges.bias[who] * pairs.shown)[:, None]
    said = pairs.outcome[:, None] * eta / 2.0 - log_normaliser(np.abs(eta), judges.tie[who][:, None])
    return np.asarray(pairs.weight[:, None] * said)


def _by_group(pairs: PairVotes, values: FloatArray) -> FloatArray:
    """Return the sums of rows by group; rows come group by group."""
    total = np.zeros((pairs.n_groups, values.shape[1]))
    if len(values):
        there, start = np.unique(pairs.group, return_index=True)
        total[there] = np.add.reduceat(values, start, axis=0)
    return total


# --- errors ---


def joint_covariance(
    pairs: PairVotes, judges: JudgeTraits, mean: FloatArray, *, equal: bool = False, position: bool = True
) -> FloatArray:
    """Return the covariance of scores, discriminations and biases, ``(width + 2 m)`` in this order.

    The inverse of Fisher's information of all of them together and of their priors. The covariance of the scores
    alone is too small where votes are many, as the judges are uncertain, too.

    Parameters
    ----------
    mean
        ``(width,)`` scores; the comparisons are those of one group.
    equal
        Whether all judges are known to be alike, which leaves the scores.
    """
    who, m, width = pairs.judge, pairs.n_judges, pairs.width
    gap = mean[pairs.first] - mean[pairs.second]
    slope = judges.slope[who]
    variance = outcome_moments(slope * gap + judges.bias[who] * pairs.shown, judges.tie[who])[1]
    load = pairs.weight * variance / 4.0
    size = width + 2 * m
    information = np.zeros((size, size))
    between = totals(pairs.first * width + pairs.second, load * slope**2, width * width).reshape(width, width)
    between = between + between.T
    information[:width, :width] = np.diag(between.sum(axis=1)) - between
    for start, column in ((width, gap), (width + m, pairs.shown * position)):
        pull = load * slope * column
        block = totals(pairs.first * m + who, pull, width * m) - totals(pairs.second * m + who, pull, width * m)
        information[:width, start : start + m] = block.reshape(width, m)
        information[start : start + m, :width] = block.reshape(width, m).T
    at = width + np.arange(m)
    information[at, at] = totals(who, load * gap**2, m)
    information[at, at + m] = information[at + m, at] = totals(who, load * gap * pairs.shown * position, m)
    information[at + m, at + m] = totals(who, load * pairs.shown * position, m)
    held = 1e9 if equal else 0.0
    prior = np.r_[
        np.ones(width),
        1.0 / np.maximum(judges.slope_variance, 1e-6) + held,
        np.full(m, 1.0 / max(judges.bias_variance, 1e-6) if position else 1e9),
    ]
    return np.asarray(np.linalg.inv(information + np.diag(prior)))


def residuals(pairs: PairVotes, judges: JudgeTraits, mean: FloatArray) -> FloatArray:
    """Return standardised residuals of the outcomes, where differences of scores are known."""
    who = pairs.judge
    expected, variance = outcome_moments(judges.slope[who] * mean + judges.bias[who] * pairs.shown, judges.tie[who])
    return np.asarray((pairs.outcome - expected) / np.sqrt(np.maximum(variance, 0.05)))


def correlation_of_runs(
    pairs: PairVotes, judges: JudgeTraits, mean: FloatArray, question: IntArray, count: FloatArray
) -> float:
    """Return how far answers of one judge to one question go together beyond what scores explain.

    Parameters
    ----------
    question
        Number of the question of each comparison, the same for all runs of it; below zero where there are no runs.
    count
        How often each comparison was made.
    """
    asked = question >= 0
    if not asked.any():
        return 0.0
    forward = np.where(pairs.first < pairs.second, 1.0, -1.0)
    own = (residuals(pairs, judges, mean) * forward)[asked]
    _, cell = np.unique(question[asked] * pairs.n_judges + pairs.judge[asked], return_inverse=True)
    size = int(cell.max()) + 1
    often = count[asked]
    runs, sums, squares = (totals(cell, often * part, size) for part in (np.ones_like(own), own, own**2))
    again = runs > 1
    room = float(((runs - 1.0) * squares)[again].sum())
    return float(np.clip((sums**2 - squares)[again].sum() / room, 0.0, 1.0)) if room > 0 else 0.0


# --- noise of single judges -------------------------------------------------------------------------------


def unexplained(pairs: PairVotes, tie: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return standardized residuals of one group that no taste or bias of the judge alone could explain.

    Every judge has scores of its own here, fitted to its comparisons; then all that other scores could explain is
    projected out. Of independent judges nothing in common is left, however much they agree.

    Parameters
    ----------
    tie
        ``(m,)`` tie parameters.

    Returns
    -------
    arrays of shape (comparisons,), (comparisons,) and (m,)
        The residuals; their variances, below one where the outcome is nearly certain; the share of each judge's
        residuals that is left, as of few comparisons scores explain much by chance.
    """
    who, at = pairs.judge, pairs.width
    taste = np.zeros((pairs.n_judges, at + 1))
    mean, variance = outcome_moments(np.zeros(len(who)), tie[who])
    for _ in range(TASTE_STEPS):
        step, _ = _regressed(pairs, (pairs.outcome - mean) / 2.0, variance / 4.0, TASTE_RIDGE, taste)
        taste = taste + np.clip(step, -2.0, 2.0)
        eta = taste[who, pairs.first] - taste[who, pairs.second] + taste[who, at] * pairs.shown
        mean, variance = outcome_moments(eta, tie[who])
    size = np.maximum(variance, LEAST_VARIANCE)
    step, used = _regressed(pairs, pairs.outcome - mean, size, 1e-6, np.zeros_like(taste))
    explained = step[who, pairs.first] - step[who, pairs.second] + step[who, at] * pairs.shown
    return (pairs.outcome - mean - size * explained) / np.sqrt(size), variance / size, np.clip(1.0 - used, 0.0, 1.0)


def _regressed(
    pairs: PairVotes, residual: FloatArray, weight: FloatArray, ridge: float, at: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the Newton step ``(m, width + 1)`` of scores and bias of each judge, and the mean leverage ``(m,)``."""
    who, m, width, shown, often = pairs.judge, pairs.n_judges, pairs.width, pairs.shown, pairs.weight
    first, second = who * width + pairs.first, who * width + pairs.second
    between = totals(first * width + pairs.second, often * weight, m * width * width).reshape(m, width, width)
    between = between + between.transpose(0, 2, 1)
    normal = np.zeros((m, width + 1, width + 1))
    normal[:, :width, :width] = -between
    place = np.arange(width)
    normal[:, place, place] += between.sum(axis=2)

    def pulled(values: FloatArray) -> FloatArray:
        return np.asarray((totals(first, values, m * width) - totals(second, values, m * width)).reshape(m, width))

    normal[:, :width, width] = normal[:, width, :width] = pulled(often * weight * shown)
    normal[:, width, width] = totals(who, often * weight * shown**2, m)
    target = np.column_stack([pulled(often * residual), totals(who, often * residual * shown, m)]) - ridge * at
    inverse = np.linalg.inv(normal + ridge * np.eye(width + 1))
    used = np.einsum("mij,mji->m", inverse, normal) / np.maximum(totals(who, often, m), 1.0)
    return np.einsum("mij,mj->mi", inverse, target), used
