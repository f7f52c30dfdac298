"""Bradley-Terry with ties for several judges, each with a signed discrimination, a position bias and a tie rate.

Judge a is shown item i first and item j second, and votes, with ``eta = s_a (score_i - score_j) + b_a``::

    P(first) : P(second) : P(tie)  =  exp(eta / 2) : exp(-eta / 2) : nu_a

Scores are standard normal within each group (the whole arena, or one prompt), so s carries the scale. The logarithm
of the normalizer is bounded by a parabola in eta (Jaakkola and Jordan, extended to Davidson's ties). This makes every
step a weighted ridge regression: scores given judges, judges given scores, and one spread shared by all judges. In
small groups, the bound underestimates the judges. There, EM over weighted draws of the scores starts from its result.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import numpy as np

from consilience.arrays import Axes, BoolArray, FloatArray, IntArray

#: Possible variances of the position biases, all equally likely a priori. At one standard deviation, the preferred
#: position wins 50%, 56%, 62% or 73% of comparisons between equals.
BIAS_VARIANCES = np.array([0.0, 0.0625, 0.25, 1.0])
#: The prior of the spread of discriminations counts as much as this many additional judges.
PSEUDO_JUDGES = 3.0
#: Ties and votes that are added for every judge, so that no rate is 0 or 1.
PSEUDO_TIES, PSEUDO_VOTES = 0.5, 1.5
#: Largest tie parameter, at which 96% of comparisons between equals are ties.
LARGEST_TIE = 50.0
#: Prior precision of the scores of one judge's taste (variance 100). What a taste cannot explain looks like shared
#: noise: with a variance of 4, judges who hardly err were mistaken for copies.
TASTE_RIDGE = 0.01
#: Least variance of an outcome by which a residual is standardized; the largest possible variance is 1.
LEAST_VARIANCE = 0.2
#: Draws per group, half of them mirrored, and the factor by which the covariance of the proposal exceeds the belief's.
DRAWS, WIDER = 64, 1.3
#: Most rounds of the fits (arena, prompts, polish), tolerances, and Newton steps per taste. They affect time only.
ROUNDS, PROMPT_ROUNDS, POLISH_ROUNDS, TOLERANCE, POLISH_TOLERANCE, TASTE_STEPS = 200, 60, 25, 1e-4, 2e-3, 25
#: Steps toward the scores before the first draw and between rounds. They affect time only.
FIRST_STEPS, NEXT_STEPS = 16, 3
#: Prior precision of known quantities.
KNOWN = 1e9


@dataclass(frozen=True, eq=False)
class PairVotes:
    """Comparisons, one entry each. Known rankings are the votes of an additional last judge."""

    judge: IntArray
    group: IntArray  # items are numbered within their group
    first: IntArray  # the item shown first
    second: IntArray
    unit: IntArray  # identifies the question and the two items, in either order
    run: IntArray  # equal for repeated runs of one judge on one question; negative without runs
    outcome: FloatArray  # 1 if the first item won, -1 if the second won, 0 for a tie
    shown: FloatArray  # 1 if the items were shown in this order, 0 if the order has no meaning
    weight: FloatArray  # number of votes that the comparison counts as
    count: FloatArray  # number of times that the comparison was made
    n_judges: int
    width: int  # the largest number of items in a group
    names: tuple[tuple[Hashable, ...], ...]  # the items of each group, in the order of their numbers
    unparsable: tuple[int, ...] = ()  # replies of each judge that could not be read
    known: bool = False  # whether some rankings are known

    def __len__(self) -> int:
        return len(self.judge)

    @property
    def n_groups(self) -> int:
        return len(self.names)

    @property
    def m(self) -> int:
        """Number of judges, without the one of known rankings."""
        return self.n_judges - self.known

    @property
    def per_prompt(self) -> bool:
        """Whether the comparisons belong to several groups of items."""
        return len(np.unique(self.group)) > 1

    @property
    def comparisons(self) -> IntArray:
        """Number of comparisons of each judge, including the one of known rankings."""
        return np.rint(self.by_judge(self.count)).astype(np.int64)

    @property
    def has_ties(self) -> bool:
        return bool((self.outcome == 0).any())

    @property
    def compared(self) -> BoolArray:
        """``(groups, width)``: whether the item was ever compared."""
        result = np.zeros((self.n_groups, self.width), dtype=bool)
        result[self.group, self.first] = result[self.group, self.second] = True
        return result

    def where(self, kept: BoolArray | IntArray) -> PairVotes:
        """Return the chosen comparisons."""
        columns: Any = {name: value[kept] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **columns)

    def without_known(self) -> PairVotes:
        """Return the comparisons of judges, without known rankings."""
        return replace(self.where(self.judge < self.m), n_judges=self.m, known=False)

    def weighted(self, share: FloatArray, run_correlation: float) -> PairVotes:
        """Return the comparisons with weights: copies share a vote, and r runs count as r / (1 + (r - 1) rho)."""
        asked = self.run >= 0
        runs = totals(self.run[asked], self.count[asked], 1)
        weight = self.weight * share[self.judge]
        weight[asked] /= 1.0 + (runs[self.run[asked]] - 1.0) * run_correlation
        return replace(self, weight=weight)

    def by_judge(self, values: FloatArray) -> FloatArray:
        """Return the sums of values by judge ``(m,)``."""
        return totals(self.judge, values, self.n_judges)

    def by_item(self, values: FloatArray, row: IntArray, n: int) -> FloatArray:
        """Return sums ``(n, width)`` by row: values are added for the first item and subtracted for the second."""
        sums = [totals(row * self.width + item, values, n * self.width) for item in (self.first, self.second)]
        return (sums[0] - sums[1]).reshape(n, self.width)

    def laplacians(self, load: FloatArray, row: IntArray, n: int) -> FloatArray:
        """Return the information ``(n, width, width)`` by row about scores whose differences have these precisions."""
        width, place = self.width, np.arange(self.width)
        between = totals((row * width + self.first) * width + self.second, load, n * width**2).reshape(n, width, width)
        between = between + between.transpose(0, 2, 1)
        result = -between
        result[:, place, place] += between.sum(axis=2)
        return result


@dataclass(frozen=True)
class JudgeTraits:
    """Estimated traits of m judges, and the distribution from which they are drawn."""

    slope: Annotated[FloatArray, Axes("m")]  # discrimination s
    bias: Annotated[FloatArray, Axes("m")]  # position bias b
    tie: Annotated[FloatArray, Axes("m", 0.0)]  # tie parameter nu
    covariance: Annotated[FloatArray, Axes("m 2 2", covariance=True)]  # of slope and bias
    bias_variance: Annotated[FloatArray, Axes("m", 0.0)]  # prior variance of each bias around zero
    slope_mean: Annotated[float, Axes()] = 1.0  # mean of all discriminations, and their variance
    slope_variance: Annotated[float, Axes("", 0.0)] = 0.5
    slope_ratio: Annotated[float, Axes("", 0.0)] = 1.0  # expected ratio of their spread to their mean

    @property
    def squares(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean squares ``(m,)`` of slope and bias, and their mean product."""
        slope, bias, own = self.slope, self.bias, self.covariance
        return slope**2 + own[:, 0, 0], bias**2 + own[:, 1, 1], slope * bias + own[:, 0, 1]

    def eta(self, pairs: PairVotes, gap: FloatArray) -> FloatArray:
        """Return eta for differences of scores ``(votes,)``, or ``(votes, draws)``."""
        return np.asarray(self.slope[pairs.judge] * gap.T + self.bias[pairs.judge] * pairs.shown).T

    def with_prior(self, covariance: FloatArray, free: BoolArray, pull: FloatArray, seen: FloatArray) -> JudgeTraits:
        """Return the same judges with the distribution of traits learned from those that are `free`.

        The likelihood of a bias b is ``exp(pull b - seen b^2 / 2)``. The shrinkage of each bias is averaged over the
        possible variances, each weighted by its probability given the biases of all judges.
        """
        count, slope = int(free.sum()), self.slope[free]
        mean = float(slope.mean()) if count else 1.0
        apart = float(((slope - mean) ** 2 + covariance[free, 0, 0]).sum())
        reach = 1.0 + BIAS_VARIANCES[:, None] * seen
        weight = ((BIAS_VARIANCES[:, None] * pull**2 / reach - np.log(reach)) / 2.0)[:, free].sum(axis=1)
        weight = np.exp(weight - weight.max())
        kept = np.clip(1.0 - weight @ (1.0 / reach) / weight.sum(), 1e-6, 1.0 - 1e-6)
        return replace(
            self,
            slope_mean=mean,
            slope_variance=(apart + PSEUDO_JUDGES * (self.slope_ratio * mean) ** 2) / (count + PSEUDO_JUDGES),
            bias_variance=kept / ((1.0 - kept) * np.maximum(seen, 1e-6)),
        )

    def of(self, chosen: IntArray) -> JudgeTraits:
        """Return the chosen judges."""
        traits = {item.name: getattr(self, item.name) for item in fields(JudgeTraits)}
        some: Any = {name: one[chosen] if isinstance(one, np.ndarray) else one for name, one in traits.items()}
        return JudgeTraits(**some)

    def scaled(self, factor: float) -> JudgeTraits:
        """Return the same judges after all scores are divided by a factor."""
        corner = np.array([[factor**2, factor], [factor, 1.0]])
        moved = replace(self, slope=self.slope * factor, covariance=self.covariance * corner)
        return replace(moved, slope_mean=self.slope_mean * factor, slope_variance=self.slope_variance * factor**2)

    def turned(self) -> JudgeTraits:
        """Return the same judges after the sign of all scores is changed."""
        flip = np.array([[1.0, -1.0], [-1.0, 1.0]])
        return replace(self, slope=-self.slope, slope_mean=-self.slope_mean, covariance=self.covariance * flip)

    def with_fixed(self, start: JudgeTraits, held: BoolArray) -> JudgeTraits:
        """Return the same judges, with the traits of `held` ones as in `start`."""
        covariance = np.where(held[:, None, None], 0.0, self.covariance)
        kept = {name: np.where(held, getattr(start, name), getattr(self, name)) for name in ("slope", "bias", "tie")}
        return replace(self, covariance=covariance, **kept)


@dataclass(frozen=True)
class ScoreBelief:
    """Normal beliefs about the scores: mean ``(groups, width)`` and covariance ``(groups, width, width)``."""

    mean: FloatArray
    covariance: FloatArray

    def differences(self, pairs: PairVotes) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the score difference of each comparison."""
        at, one, two = pairs.group, pairs.first, pairs.second
        variance = self.covariance[at, one, one] + self.covariance[at, two, two] - 2.0 * self.covariance[at, one, two]
        return self.mean[at, one] - self.mean[at, two], np.maximum(variance, 0.0)


def curvature(reach: FloatArray, tie: FloatArray) -> FloatArray:
    """Return the weight of the parabola that touches the log likelihood at ``|eta| = reach``.

    It is ``sinh(c/2) / (c (2 cosh(c/2) + nu))``, and ``1 / (2 (2 + nu))`` at zero.
    """
    at = np.clip(reach, 1e-4, 40.0)
    return outcome_moments(at, tie)[0] / (2.0 * at)


def outcome_moments(eta: FloatArray, tie: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the outcome."""
    size = np.minimum(np.abs(eta), 80.0)
    falling = np.exp(-size)
    total = 1.0 + falling + tie * np.exp(-size / 2.0)
    mean = np.sign(eta) * (1.0 - falling) / total
    return mean, (1.0 + falling) / total - mean**2


def log_normalizer(reach: FloatArray, tie: FloatArray) -> FloatArray:
    """Return ``log(2 cosh(c/2) + nu)`` for ``c = reach >= 0``."""
    return np.asarray(reach / 2.0 + np.log1p(np.exp(-reach) + tie * np.exp(-reach / 2.0)))


def starting_judges(pairs: PairVotes, slope: FloatArray, ratio: float = 1.0) -> JudgeTraits:
    """Return judges with these discriminations and no bias, from which every fit starts."""
    m = pairs.n_judges
    tied = pairs.by_judge(pairs.weight * (pairs.outcome == 0))
    share = (tied + PSEUDO_TIES) / (pairs.by_judge(pairs.weight) + PSEUDO_VOTES)
    tie = np.minimum(2.0 * share / np.maximum(1.0 - share, 0.05), 4.0) if pairs.has_ties else np.zeros(m)
    place = np.full(m, float(BIAS_VARIANCES.mean()))
    return JudgeTraits(slope.copy(), np.zeros(m), tie, np.zeros((m, 2, 2)), place, slope_ratio=ratio)


def totals(index: IntArray, values: FloatArray | None, size: int) -> FloatArray:
    """Return the sum of values, or the count, of each index."""
    return np.bincount(index, values, minlength=size).astype(np.float64, copy=False)


def prefer(mean: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the probabilities ``(groups, width, width)`` that one item is better than another, for normal scores."""
    from scipy.special import ndtr

    variance = np.diagonal(covariance, axis1=1, axis2=2)
    spread = variance[:, :, None] + variance[:, None, :] - 2.0 * covariance
    return np.asarray(ndtr((mean[:, :, None] - mean[:, None, :]) / np.sqrt(np.maximum(spread, 1e-12))))


# --- variational fit ----------------------------------------------------------------------------------------


def scores_given_judges(
    pairs: PairVotes, judges: JudgeTraits, start: ScoreBelief | None = None, rounds: int = FIRST_STEPS
) -> ScoreBelief:
    """Return the scores given the traits of the judges; groups do not affect each other."""
    mean = np.zeros((pairs.n_groups, pairs.width))
    scores = ScoreBelief(mean, np.zeros((*mean.shape, pairs.width))) if start is None else start
    for _ in range(rounds):
        scores = _score_step(pairs, judges, scores)
    return scores


def fit_judges(
    pairs: PairVotes, start: JudgeTraits, *, equal: bool = False, fixed: BoolArray | None = None
) -> tuple[JudgeTraits, ScoreBelief]:
    """Learn judges and scores together, in steps that never lower the bound.

    If `equal`, all judges share one discrimination and have no position bias. Judges that are `fixed` ``(m,)``, such as
    the one of known rankings, keep their traits.
    """
    held = np.zeros(pairs.n_judges, dtype=bool) if fixed is None else fixed
    judges, scores = start, scores_given_judges(pairs, start, rounds=0)
    compared = pairs.compared
    before = None
    for _ in range(PROMPT_ROUNDS if pairs.per_prompt else ROUNDS):
        scores = _score_step(pairs, judges, scores)
        if not held.any():
            squares = scores.mean**2 + np.diagonal(scores.covariance, axis1=1, axis2=2)
            factor = float(np.clip(_root_mean(squares, compared), 0.5, 2.0))
            scores = ScoreBelief(scores.mean / factor, scores.covariance / factor**2)
            judges = judges.scaled(factor)
        judges = _judge_step(pairs, judges, scores, equal=equal, free=~held).with_fixed(start, held)
        if judges.slope @ start.slope < 0 and not held.any():
            judges, scores = judges.turned(), replace(scores, mean=-scores.mean)
        if pairs.has_ties:
            reach = _reach(pairs, judges, scores)[:, None]
            for _ in range(2):
                judges = _tie_step(pairs, judges, reach, pairs.weight[:, None]).with_fixed(start, held)
        now = np.concatenate([scores.mean.ravel(), judges.slope, judges.bias])
        if before is not None and float(np.abs(now - before).max()) < TOLERANCE:
            break
        before = now
    return judges, scores


def _reach(pairs: PairVotes, judges: JudgeTraits, scores: ScoreBelief) -> FloatArray:
    """Return the root mean square of eta."""
    mean, variance = scores.differences(pairs)
    square, offset, cross = (part[pairs.judge] for part in judges.squares)
    eta = square * (mean**2 + variance) + (2.0 * cross * mean + offset) * pairs.shown
    return np.sqrt(np.maximum(eta, 1e-10))


def _score_step(pairs: PairVotes, judges: JudgeTraits, scores: ScoreBelief) -> ScoreBelief:
    load = pairs.weight * curvature(_reach(pairs, judges, scores), judges.tie[pairs.judge])
    square, _, cross = (part[pairs.judge] for part in judges.squares)
    precision = pairs.laplacians(load * square, pairs.group, pairs.n_groups) + np.eye(pairs.width)
    covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    pull = pairs.weight * pairs.outcome / 2.0 * judges.slope[pairs.judge] - load * cross * pairs.shown
    target = pairs.by_item(pull, pairs.group, pairs.n_groups)
    return ScoreBelief(np.einsum("gij,gj->gi", covariance, target), covariance)


def _judge_step(
    pairs: PairVotes, judges: JudgeTraits, scores: ScoreBelief, *, equal: bool, free: BoolArray
) -> JudgeTraits:
    mean, variance = scores.differences(pairs)
    load = pairs.weight * curvature(_reach(pairs, judges, scores), judges.tie[pairs.judge])
    gain = pairs.weight * pairs.outcome / 2.0
    pull, precision = pairs.by_judge(gain * mean), pairs.by_judge(load * (mean**2 + variance))
    if equal:
        common = float(pull[free].sum() / (precision[free].sum() + 1e-9))
        return replace(judges, slope=np.full(len(pull), common))
    both, seen = (pairs.by_judge(load * part * pairs.shown) for part in (mean, np.ones(len(pairs))))
    place = pairs.by_judge(gain * pairs.shown)
    covariance = _inverse(precision + 1.0 / judges.slope_variance, both, seen + 1.0 / judges.bias_variance)
    target = np.stack([pull + judges.slope_mean / judges.slope_variance, place], axis=1)
    slope, bias = np.einsum("mij,mj->im", covariance, target)
    moved = replace(judges, slope=slope, bias=bias, covariance=covariance)
    return moved.with_prior(covariance, free, place - both * slope, seen)


def _tie_step(pairs: PairVotes, judges: JudgeTraits, eta: FloatArray, load: FloatArray) -> JudgeTraits:
    """Move the tie parameters so that expected ties match observed ones; eta and load are ``(votes, draws)``."""
    tie = judges.tie[pairs.judge][:, None]
    share = tie / (2.0 * np.cosh(np.minimum(np.abs(eta), 80.0) / 2.0) + tie)
    seen = pairs.by_judge(pairs.weight * (pairs.outcome == 0)) + PSEUDO_TIES
    expected = pairs.by_judge((load * share).sum(axis=1)) + PSEUDO_VOTES * judges.tie / (2.0 + judges.tie)
    spread = pairs.by_judge((load * share * (1.0 - share)).sum(axis=1)) + 0.3
    step = np.clip((seen - expected) / spread, -1.0, 1.0)
    return replace(judges, tie=np.clip(judges.tie * np.exp(step), 1e-4, LARGEST_TIE))


def _root_mean(squares: FloatArray, compared: BoolArray) -> float:
    return float(np.sqrt(max(squares[compared].mean() if compared.any() else 1.0, 1e-8)))


def _inverse(one: FloatArray, both: FloatArray, two: FloatArray) -> FloatArray:
    """Return the inverses ``(m, 2, 2)`` of symmetric matrices with these entries."""
    return np.linalg.inv(np.moveaxis(np.array([[one, both], [both, two]]), 2, 0))


# --- draws of small groups ----------------------------------------------------------------------------------


def summarize_draws(scores: FloatArray, weight: FloatArray) -> tuple[ScoreBelief, FloatArray]:
    """Return the moments of draws, and the probabilities ``(groups, width, width)`` that one item beats another.

    A probability is the mean of the share of draws and of its value under a normal distribution with their moments.
    The share alone would make many orders look certain.
    """
    mean = np.einsum("gd,gdi->gi", weight, scores)
    centered = scores - mean[:, None, :]
    belief = ScoreBelief(mean, np.einsum("gd,gdi,gdj->gij", weight, centered, centered))
    share = np.einsum("gd,gdij->gij", weight, scores[:, :, :, None] > scores[:, :, None, :])
    better = (share + prefer(belief.mean, belief.covariance)) / 2.0
    return belief, np.where(np.eye(scores.shape[2], dtype=bool), 0.5, better)


def normal_draws(width: int) -> FloatArray:
    """Return ``(draws, width)`` quasi-random normal numbers and their mirror images.

    The lattice is built from powers of the root of ``x ** (width + 1) = x + 1``, and fills a cube of any size evenly.
    """
    from scipy.special import ndtri

    root = 2.0
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (width + 1.0))
    steps = root ** -np.arange(1.0, width + 1.0)
    one = ndtri((0.5 + np.arange(1, DRAWS // 2 + 1)[:, None] * steps) % 1.0)
    return np.concatenate([one, -one])


def draw_scores(
    pairs: PairVotes, judges: JudgeTraits, around: ScoreBelief, normals: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Draw scores ``(groups, draws, width)`` around a belief, and weight them by how well they explain the votes.

    Comparisons are sorted by group. The weights ``(groups, draws)`` of a group add up to one.
    """
    root = np.linalg.cholesky(around.covariance * WIDER)
    scores = around.mean[:, None, :] + np.einsum("gij,dj->gdi", root, normals)
    weight = 0.5 * (normals**2).sum(axis=1) - 0.5 * (scores**2).sum(axis=2)
    if len(pairs):
        eta = judges.eta(pairs, _differences(pairs, scores))
        explained = pairs.outcome[:, None] * eta / 2.0 - log_normalizer(np.abs(eta), judges.tie[pairs.judge][:, None])
        there, start = np.unique(pairs.group, return_index=True)
        weight[there] += np.add.reduceat(pairs.weight[:, None] * explained, start, axis=0)
    weight = np.exp(weight - weight.max(axis=1, keepdims=True))
    return scores, weight / weight.sum(axis=1, keepdims=True)


def polish_judges(pairs: PairVotes, judges: JudgeTraits, *, fixed: BoolArray | None = None) -> JudgeTraits:
    """Improve the judges of the variational fit by EM over weighted draws of the scores.

    The covariance of a judge is the inverse of the sum of squared derivatives over the groups, including the prior.
    """
    pairs = pairs.where(np.argsort(pairs.group, kind="stable"))
    held = np.zeros(pairs.n_judges, dtype=bool) if fixed is None else fixed
    compared = pairs.compared
    normals = normal_draws(pairs.width)
    least = 1e-6 * pairs.has_ties
    plain = replace(judges, covariance=np.zeros_like(judges.covariance), tie=np.maximum(judges.tie, least))
    around = scores_given_judges(pairs, plain)
    for _ in range(POLISH_ROUNDS):
        before = plain
        around = scores_given_judges(pairs, plain, around, NEXT_STEPS)
        scores, weight = draw_scores(pairs, plain, around, normals)
        gap, load = _differences(pairs, scores), pairs.weight[:, None] * weight[pairs.group]
        if not held.any():
            factor = _root_mean(np.einsum("gd,gdi->gi", weight, scores**2), compared)
            plain, gap = plain.scaled(factor), gap / factor
        plain = _newton(pairs, plain, gap, load, ~held).with_fixed(judges, held)
        if plain.slope @ judges.slope < 0 and not held.any():
            plain, around = plain.turned(), replace(around, mean=-around.mean)
        moved = np.abs(plain.slope - before.slope).max() / max(1.0, abs(plain.slope_mean))
        if max(float(moved), float(np.abs(plain.bias - before.bias).max())) < POLISH_TOLERANCE:
            break
    return replace(plain, covariance=_score_covariance(pairs, plain, gap, load, held))


def _newton(pairs: PairVotes, judges: JudgeTraits, gap: FloatArray, load: FloatArray, free: BoolArray) -> JudgeTraits:
    """Return the judges after one Newton step, with the distribution of their traits."""
    eta = judges.eta(pairs, gap)
    mean, variance = outcome_moments(eta, judges.tie[pairs.judge][:, None])
    residual, bend = load * (pairs.outcome[:, None] - mean) / 2.0, load * variance / 4.0
    place, seen = (pairs.by_judge(part.sum(axis=1) * pairs.shown) for part in (residual, bend))
    slope = pairs.by_judge((residual * gap).sum(axis=1)) - (judges.slope - judges.slope_mean) / judges.slope_variance
    inverse = _inverse(
        pairs.by_judge((bend * gap**2).sum(axis=1)) + 1.0 / judges.slope_variance,
        pairs.by_judge((bend * gap).sum(axis=1) * pairs.shown),
        seen + 1.0 / judges.bias_variance,
    )
    target = np.stack([slope, place - judges.bias / judges.bias_variance], axis=1)
    step = np.clip(np.einsum("mij,mj->im", inverse, target), -1.0, 1.0)
    moved = _tie_step(pairs, judges, eta, load) if pairs.has_ties else judges
    moved = replace(moved, slope=judges.slope + step[0], bias=judges.bias + step[1])
    return moved.with_prior(inverse, free, place + seen * judges.bias, seen)


def _score_covariance(
    pairs: PairVotes, judges: JudgeTraits, gap: FloatArray, load: FloatArray, held: BoolArray
) -> FloatArray:
    """Return covariances ``(m, 2, 2)`` from the spread of the derivatives over the groups."""
    m = pairs.n_judges
    mean, _ = outcome_moments(judges.eta(pairs, gap), judges.tie[pairs.judge][:, None])
    residual = load * (pairs.outcome[:, None] - mean) / 2.0
    place = pairs.group * m + pairs.judge
    values = ((residual * gap).sum(axis=1), residual.sum(axis=1) * pairs.shown)
    both = np.concatenate([totals(place, part, pairs.n_groups * m).reshape(-1, m) for part in values], axis=1)
    prior = 1.0 / np.r_[np.full(m, judges.slope_variance), judges.bias_variance]
    prior[np.r_[held, held]] = KNOWN
    inverse = np.linalg.inv(both.T @ both + np.diag(prior)).reshape(2, m, 2, m)
    return np.moveaxis(np.diagonal(inverse, axis1=1, axis2=3), 2, 0)


def _differences(pairs: PairVotes, scores: FloatArray) -> FloatArray:
    return np.asarray(scores[pairs.group, :, pairs.first] - scores[pairs.group, :, pairs.second])


# --- errors -------------------------------------------------------------------------------------------------


def joint_covariance(pairs: PairVotes, judges: JudgeTraits, mean: FloatArray, *, equal: bool = False) -> FloatArray:
    """Return the covariance of scores, discriminations and biases of one group, ``(width + 2 m)`` in this order.

    It is the inverse of their joint Fisher information plus that of the priors. Unless the judges are known to be
    equal, the covariance of the scores alone would be too small if votes are many, because the judges are uncertain.
    """
    from scipy.sparse import coo_array

    n, m, width = len(pairs), pairs.n_judges, pairs.width
    gap, slope = mean[pairs.first] - mean[pairs.second], judges.slope[pairs.judge]
    load = pairs.weight * outcome_moments(judges.eta(pairs, gap), judges.tie[pairs.judge])[1] / 4.0
    derivatives = np.concatenate([slope, -slope, gap, pairs.shown])
    place = np.concatenate([pairs.first, pairs.second, width + pairs.judge, width + m + pairs.judge])
    design = coo_array((derivatives, (np.tile(np.arange(n), 4), place)), shape=(n, width + 2 * m)).tocsr()
    information = (design.T @ (design * load[:, None])).toarray()
    of_judges = np.r_[np.full(m, judges.slope_variance), judges.bias_variance]
    prior = np.r_[np.ones(width), 1.0 / np.maximum(of_judges, 1e-6) + KNOWN * equal]
    return np.asarray(np.linalg.inv(information + np.diag(prior)))


def better_whatever_the_unit(
    pairs: PairVotes, judges: JudgeTraits, mean: FloatArray, covariance: FloatArray
) -> FloatArray:
    """Return ``(1, width, width)`` probabilities that one item is better than the other, from the joint covariance.

    Votes show the product of scores and discriminations. How much of it is scores, their unit, is hardly known if the
    judges are few, but does not change the order. So scores are taken in units of the judges, whose discriminations
    have a mean square of one there.
    """
    m, width = pairs.n_judges, pairs.width
    often = pairs.by_judge(pairs.weight)
    square = float(often @ judges.slope**2 / max(float(often.sum()), 1e-12))
    if square <= 0.0:
        return prefer(mean[None], covariance[None, :width, :width])
    unit = np.sqrt(square)
    of_slopes = often * judges.slope / (often.sum() * unit)
    change = np.concatenate([unit * np.eye(width), np.outer(mean, of_slopes), np.zeros((width, m))], axis=1)
    return prefer(unit * mean[None], (change @ covariance @ change.T)[None])


def correlation_of_runs(pairs: PairVotes, judges: JudgeTraits, gap: FloatArray) -> float:
    """Return the correlation of answers of one judge to one question that score differences do not explain."""
    asked = pairs.run >= 0
    mean, variance = outcome_moments(judges.eta(pairs, gap), judges.tie[pairs.judge])
    forward = np.where(pairs.first < pairs.second, 1.0, -1.0)
    residual = (forward * (pairs.outcome - mean) / np.sqrt(np.maximum(variance, 0.05)))[asked]
    run, often = pairs.run[asked], pairs.count[asked]
    runs, sums, squares = (totals(run, often * part, 1) for part in (residual**0, residual, residual**2))
    again = runs > 1
    room = float(((runs - 1.0) * squares)[again].sum())
    return float(np.clip((sums**2 - squares)[again].sum() / room, 0.0, 1.0)) if room > 0 else 0.0


def unexplained(pairs: PairVotes, tie: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return standardized residuals of one group that no taste or bias of a single judge can explain.

    Each judge gets its own scores, fitted to its comparisons. Then everything that other scores could explain is
    projected out. Independent judges then have nothing in common, however much they agree. Also returned are the
    variances of the residuals, which are below one if the outcome is nearly certain, and the share ``(m,)`` of each
    judge's residuals that is left, because scores explain much of a few comparisons by chance.
    """
    who, m, width = pairs.judge, pairs.n_judges, pairs.width

    def explained(taste: FloatArray) -> FloatArray:
        return np.asarray(taste[who, pairs.first] - taste[who, pairs.second] + taste[who, width] * pairs.shown)

    def regress(residual: FloatArray, precision: FloatArray, ridge: float, taste: FloatArray) -> list[FloatArray]:
        """Return the Newton step ``(m, width + 1)`` of scores and bias, and the mean leverage ``(m,)``."""
        load, pull = pairs.weight * precision, pairs.weight * residual
        information = np.zeros((m, width + 1, width + 1))
        information[:, :width, :width] = pairs.laplacians(load, who, m)
        information[:, :width, width] = information[:, width, :width] = pairs.by_item(load * pairs.shown, who, m)
        information[:, width, width] = pairs.by_judge(load * pairs.shown)
        target = np.column_stack([pairs.by_item(pull, who, m), pairs.by_judge(pull * pairs.shown)]) - ridge * taste
        inverse = np.linalg.inv(information + ridge * np.eye(width + 1))
        used = np.einsum("mij,mji->m", inverse, information) / np.maximum(pairs.by_judge(pairs.weight), 1.0)
        return [np.einsum("mij,mj->mi", inverse, target), used]

    taste = np.zeros((m, width + 1))
    mean, variance = outcome_moments(np.zeros(len(who)), tie[who])
    for _ in range(TASTE_STEPS):
        step, _ = regress((pairs.outcome - mean) / 2.0, variance / 4.0, TASTE_RIDGE, taste)
        taste = taste + np.clip(step, -2.0, 2.0)
        mean, variance = outcome_moments(explained(taste), tie[who])
    size = np.maximum(variance, LEAST_VARIANCE)
    step, used = regress(pairs.outcome - mean, size, 1e-6, np.zeros_like(taste))
    residual = (pairs.outcome - mean - size * explained(step)) / np.sqrt(size)
    return residual, variance / size, np.clip(1.0 - used, 0.0, 1.0)
