"""EM by passes over the votes: for abstentions, and for Student-t noise. The factor has variance one here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, few_votes, hash_priority
from consilience.families.base import GROUPS, Chunk, Sums
from consilience.families.gaussian_posterior import LEARNING_ROUNDS, Belief, arguments_of_few, believe
from consilience.solvers.factor import NOISE_FLOOR, positive_definite

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianParameters

__all__ = ["RoundsFit", "count_tails", "maximise", "round_sums", "score_outer", "tail_share", "thinned"]

#: Rounds of EM: so many, and as many more as this number of votes in all rounds together allows.
FEWEST_ROUNDS, MOST_ROUNDS, MOST_VOTES = 500, 4000, 2e7
#: Below this share of a source's variance its noise is as good as none, and may move without end.
TINY_NOISE = 0.02
#: Votes of a source below which its line is drawn to the mean line, as by this many more votes: enough to keep a line
#: through two or three votes defined, and hardly felt from 20 on.
FEW_VOTES, PULL = 100, 2.0
#: Correlations of noise keep their eigenvalues above this: close to zero, EM over the items hardly moves, and small
#: errors of slopes pass for information in the difference of two copies.
LEAST_EIGENVALUE = 0.02
#: Items on which tails and standard errors are judged.
ENOUGH = 5_000
#: Edges of the histogram of standardised residuals, by which their median is found.
BINS = 400
TOP = 8.0

Run = Callable[[Callable[[Chunk], Sums]], Sums]


@dataclass(frozen=True)
class RoundsFit:
    """Parameters of greatest likelihood with a factor of variance one."""

    parameters: GaussianParameters
    log_likelihood: float
    converged: bool


def round_sums(parameters: GaussianParameters, chunk: Chunk) -> Sums:
    """Return the sums of one EM pass: weighted moments of votes and of the expected factor."""
    if not parameters.dependent.any() and few_votes(chunk.observed):
        return _sums_of_few(parameters, chunk)
    belief = believe(parameters, chunk.labels, chunk.observed, LEARNING_ROUNDS)
    covered = chunk.observed.any(axis=1)
    centred = np.where(covered, belief.mean - parameters.mean, 0.0)
    variance = np.where(covered, belief.variance, 0.0)
    weight, residual = belief.cell_weight, belief.residual
    second = centred**2 + variance
    weighted = weight * residual
    slope, noise = parameters.slope, parameters.noise_variance
    precision = weight @ (slope**2 / noise)
    evidence = weighted @ (slope / noise)
    fit = (weighted * residual) @ (1.0 / noise) - evidence * centred
    spread = chunk.observed.astype(np.float64) @ np.log(noise) + np.log1p(precision)
    parts = {} if not parameters.dependent.any() else _cross_sums(parameters, chunk, belief, centred, variance)
    return Sums(
        parts
        | {
            "weight": weight.sum(axis=0),
            "count": chunk.observed.sum(axis=0).astype(np.int64),
            "truth": centred @ weight,
            "truth_square": second @ weight,
            "vote": weighted.sum(axis=0),
            "vote_square": np.einsum("na,na->a", weighted, residual),
            "both_product": centred @ weighted,
            "first": np.array(centred.sum()),
            "second": np.array(second.sum()),
            "covered": np.array(int(covered.sum()), dtype=np.int64),
            "log_likelihood": np.array(-0.5 * (fit + spread)[covered].sum()),
        }
    )


def _sums_of_few(parameters: GaussianParameters, chunk: Chunk) -> Sums:
    from consilience.kernels.sparse_scores import round_of_few

    arguments = arguments_of_few(parameters, LEARNING_ROUNDS)
    by_source, overall, likelihood = round_of_few(chunk.labels, chunk.observed, *arguments)
    names = ("weight", "truth", "truth_square", "vote", "vote_square", "both_product")
    return Sums(
        dict(zip(names, by_source, strict=False))
        | {
            "count": by_source[6].astype(np.int64),
            "first": overall[0],
            "second": overall[1],
            "covered": np.array(int(overall[2]), dtype=np.int64),
            "log_likelihood": np.array(likelihood),
        }
    )


def _cross_sums(
    parameters: GaussianParameters, chunk: Chunk, belief: Belief, centred: FloatArray, variance: FloatArray
) -> dict[str, npt.NDArray[Any]]:
    """Return the sums behind the correlations of the noise: products of weighted residuals, and of votes."""
    root = np.sqrt(np.minimum(belief.cell_weight, 1.0))
    left = (belief.residual - centred[:, None] * parameters.slope) * root
    steep = root * parameters.slope
    seen = chunk.observed.astype(np.float64)
    return {"cross": left.T @ left + (steep * variance[:, None]).T @ steep, "pairs": seen.T @ seen}


def maximise(
    start: GaussianParameters,
    variance: FloatArray,
    active: BoolArray,
    run: Run,
    *,
    equal: bool = False,
    apart: BoolArray | None = None,
) -> RoundsFit:
    """Run EM from a start with mean 0 and variance 1 until the steps are far below the sampling error.

    A parameter-expansion step keeps the factor at variance one, and every second step is extrapolated
    (SQUAREM, Varadhan and Roland 2008) unless that lowers the likelihood or, where the noise is not independent
    and Gaussian, lengthens the steps.

    Parameters
    ----------
    variance
        ``(m,)`` of the votes; the noise stays above a small share of it.
    active
        ``(m,)`` the sources to learn; the others keep their start.
    equal
        Whether all sources have the same slope.
    apart
        ``(m,)`` sources that share nothing with the others, neither an equal slope nor a mean line.
    """
    floor = NOISE_FLOOR * variance
    exact = not np.isfinite(start.degrees) and not start.dependent.any()
    shares = active if apart is None else active & ~apart

    def step(parameters: GaussianParameters) -> tuple[GaussianParameters, Sums]:
        sums = run(lambda chunk: round_sums(parameters, chunk))
        return _updated(parameters, sums, floor, active, shares, equal), sums

    current, sums = step(start)
    limit = max(1e-6, 0.003 / np.sqrt(max(float(sums["covered"]), 1.0)))
    best, shortest, safe = -np.inf, np.inf, current
    converged = False
    rounds = int(np.clip(MOST_VOTES / max(int(sums["count"].sum()), 1), FEWEST_ROUNDS, MOST_ROUNDS))
    for _ in range(rounds // 2):
        first, sums = step(current)
        reached, length = float(sums["log_likelihood"]), _change(current, first, active)
        if reached < best - 1e-9 * abs(best) if exact else length > 2.0 * shortest:
            current, best, shortest = safe, -np.inf, np.inf  # the extrapolation went too far
            continue
        best, shortest = reached, length
        second, sums = step(first)
        if _change(first, second, active) < limit:
            current, converged = second, True
            break
        safe = second
        current = _extrapolated(current, first, second, floor, active)
    return RoundsFit(current, float(sums["log_likelihood"]), converged)


def _updated(
    current: GaussianParameters, sums: Sums, floor: FloatArray, active: BoolArray, shares: BoolArray, equal: bool
) -> GaussianParameters:
    weight = np.maximum(sums["weight"], 1e-300)
    count = np.maximum(sums["count"].astype(np.float64), 1.0)
    truth, votes, product = sums["truth"], sums["vote"], sums["both_product"]
    spread = np.maximum(sums["truth_square"] - truth**2 / weight, 1e-300)
    shared = product - truth * votes / weight
    # Residuals are taken from the current line through the prior mean; what they move by is added to it.
    noise = current.noise_variance
    few = shares & (sums["count"] < FEW_VOTES)
    if equal:
        inverse = np.where(shares, 1.0 / noise, 0.0)
        slope = np.where(shares, (shared @ inverse) / max(float(spread @ inverse), 1e-300), shared / spread)
    elif few.any():
        centre = float(current.slope[shares].mean())
        slope = (shared + PULL * few * centre) / (spread + PULL * few)
    else:
        slope = shared / spread
    shift = (votes - slope * truth) / weight
    second = sums["truth_square"]
    left = (
        sums["vote_square"]
        - 2.0 * shift * votes
        + shift**2 * weight
        - 2.0 * slope * (product - shift * truth)
        + slope**2 * second
    )
    if few.any():
        level = float(np.median(noise[shares]))
        left, count = left + PULL * few * level, count + PULL * few
    updated = np.maximum(left / count, floor)
    items = max(int(sums["covered"]), 1)
    mean = float(sums["first"]) / items
    scale = float(np.sqrt(max(float(sums["second"]) / items - mean**2, 1e-12)))
    shift, slope = shift + slope * mean, slope * scale
    return replace(
        current,
        offset=np.where(active, current.offset + shift, current.offset),
        slope=np.where(active, slope, current.slope),
        noise=_noise(current, np.where(active, updated, noise), sums),
    )


def _noise(current: GaussianParameters, variance: FloatArray, sums: Sums) -> FloatArray:
    """Return the noise covariance of these variances, correlated as residuals of dependent sources are."""
    if "cross" not in sums:
        return np.diag(variance)
    pairs = np.maximum(sums["pairs"], 1.0)
    own = np.maximum(np.diag(sums["cross"]) / np.diag(pairs), 1e-300)
    correlation = sums["cross"] / pairs / np.outer(np.sqrt(own), np.sqrt(own))
    between = np.where(current.dependent, correlation, 0.0) * np.sqrt(np.outer(variance, variance))
    return positive_definite(between, variance, LEAST_EIGENVALUE)


def _extrapolated(
    start: GaussianParameters,
    first: GaussianParameters,
    second: GaussianParameters,
    floor: FloatArray,
    active: BoolArray,
) -> GaussianParameters:
    one = _vector(first) - _vector(start)
    two = _vector(second) - _vector(first) - one
    unit = np.concatenate([np.sqrt(second.noise_variance)] * 2 + [np.ones(len(floor))])
    curvature = float(np.linalg.norm(two / unit))
    if curvature < 1e-14:
        return second
    length = min(max(float(np.linalg.norm(one / unit)) / curvature, 1.0), 16.0)
    reached = _vector(start) + 2.0 * length * one + length**2 * two
    offset, slope, spread = np.split(reached, 3)
    noise = np.where(active, np.maximum(np.exp(np.clip(spread, -700.0, 700.0)), floor), second.noise_variance)
    rescale = np.sqrt(noise / second.noise_variance)
    return replace(
        second,
        offset=np.where(active, offset, second.offset),
        slope=np.where(active, slope, second.slope),
        noise=second.noise * np.outer(rescale, rescale) if second.dependent.any() else np.diag(noise),
    )


def _vector(parameters: GaussianParameters) -> FloatArray:
    return np.concatenate([parameters.offset, parameters.slope, np.log(np.maximum(parameters.noise_variance, 1e-300))])


def _change(before: GaussianParameters, after: GaussianParameters, active: BoolArray) -> float:
    unit = np.sqrt(after.noise_variance + after.slope**2)
    moved = np.abs(after.slope - before.slope) / unit + np.abs(after.offset - before.offset) / unit
    moved = moved + np.abs(after.noise_variance - before.noise_variance) / np.maximum(
        before.noise_variance, TINY_NOISE * unit**2
    )
    return float(moved[active].max(initial=0.0))


def thinned(function: Callable[[Chunk], Sums], n_items: int) -> Callable[[Chunk], Sums]:
    """Return a pass that looks at about `ENOUGH` of the items, whole groups of them."""
    groups = max(int(np.ceil(GROUPS * ENOUGH / max(n_items, 1))), 1)
    if groups >= GROUPS:
        return function

    def look(chunk: Chunk) -> Sums:
        rows = np.flatnonzero(chunk.groups < groups)
        items = None if chunk.items is None else chunk.items[rows]
        return function(Chunk(chunk.labels[rows], chunk.observed[rows], chunk.groups[rows], items=items))

    return look


def score_outer(parameters: GaussianParameters, chunk: Chunk) -> Sums:
    """Return the sum of outer products of the scores for loadings and noise variances, by row and by item.

    Loadings are in units of the noise deviation of each source, and noise variances in units of themselves. Rows of
    one item are added up before they are multiplied, as they are not independent.
    """
    belief = believe(parameters, chunk.labels, chunk.observed)
    unit = np.sqrt(parameters.noise_variance)
    slope = parameters.slope / unit
    centred = (belief.mean - parameters.mean)[:, None]
    left = belief.residual / unit - centred * slope
    weighted = left * belief.cell_weight
    variance = belief.variance[:, None] * belief.cell_weight
    by_slope = weighted * centred - slope * variance
    by_noise = 0.5 * np.where(chunk.observed, weighted * left + slope**2 * variance - 1.0, 0.0)
    scores = np.concatenate([by_slope, by_noise], axis=1)
    together = _by_item(scores, chunk.items)
    outer = scores.T @ scores
    return Sums(
        {
            "outer": outer,
            "clustered": outer if together is scores else together.T @ together,
            "items": np.array(int(chunk.observed.any(axis=1).sum())),
        }
    )


def _by_item(scores: FloatArray, items: npt.NDArray[Any] | None) -> FloatArray:
    """Return the sums of the scores over the rows of each item; the scores themselves where all ids differ."""
    if items is None or (items.dtype.kind in "iu" and bool((np.diff(items) > 0).all())):
        return scores
    keys = hash_priority(items)
    if len(np.unique(keys)) == len(keys):
        return scores
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0))
    return np.add.reduceat(scores[order], starts, axis=0)


def count_tails(parameters: GaussianParameters, chunk: Chunk) -> Sums:
    """Return a histogram per source of the sizes of residuals, in expected standard deviations."""
    belief = believe(parameters, chunk.labels, chunk.observed)
    slope, noise = parameters.slope, parameters.noise_variance
    left = belief.residual - (belief.mean - parameters.mean)[:, None] * slope
    unit = np.sqrt(np.maximum(noise - slope**2 * belief.variance[:, None], 0.02 * noise))
    place = np.minimum(np.abs(left) / unit * (BINS / TOP), BINS - 1).astype(np.int64)
    m = len(slope)
    place += BINS * np.arange(m)
    histogram = np.bincount(place[chunk.observed], minlength=BINS * m).reshape(m, BINS)
    return Sums({"tails": histogram})


def tail_share(histogram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return per source the share of residuals beyond 3 robust standard deviations, and their number.

    0.0027 for Gaussian noise and many residuals, less for few.
    """
    count = histogram.sum(axis=1).astype(np.float64)
    reached = np.cumsum(histogram, axis=1) / np.maximum(count, 1.0)[:, None]
    edges = TOP / BINS * (1.0 + np.arange(BINS))
    share = np.zeros(len(histogram))
    for source in np.flatnonzero(count):
        median = float(np.interp(0.5, reached[source], edges))
        # The median of few residuals is itself uncertain, by about 1.2 / sqrt(count) of its size; the limit is set 1.7
        # such errors higher, so that a median that came out low is not taken for heavy tails.
        limit = 3.0 * 1.4826 * median * (1.0 + 2.0 / np.sqrt(count[source]))
        share[source] = 1.0 - float(np.interp(limit, edges, reached[source]))
    return share, count
