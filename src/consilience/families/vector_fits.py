"""Parameters of sources of vectors put together: equal sources, matrices from moments, errors at known labels."""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import Estimate, Request, Sums
from consilience.families.findings import needs_gold
from consilience.families.vector import VectorFamily, VectorParameters
from consilience.families.vector_moments import VectorMoments, vector_moments
from consilience.solvers.covariances import drawn_together, matrix_costs, positive_part, structured

__all__ = ["dependent_pairs_of", "equal_sources", "from_matrices", "labelled_sources", "moment_matrices", "truth_law"]

#: Errors learned from known labels are drawn together as by this many more labels.
PULL = 3.0
#: Least share of the variance of votes that is taken for variance of y.
LEAST = 0.05


def dependent_pairs_of(dependent: BoolArray, active: BoolArray) -> IntArray:
    """Return the dependent pairs ``(p, 2)`` among the active sources."""
    return np.argwhere(np.triu(dependent & np.outer(active, active), 1)).astype(np.int64)


def truth_law(family: VectorFamily, moments: VectorMoments, usable: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and covariance of y: as known, or the mean vote and the mean covariance between sources."""
    votes = np.diag(moments.count)
    d = moments.mean.shape[1]
    mean = np.average(moments.mean, axis=0, weights=votes) if votes.sum() > 0 else np.zeros(d)
    pooled = moments.pooled
    variance = 0.5 * pooled
    if usable.any():
        between = moments.as_matrices(np.average(moments.covariance[usable], axis=0, weights=moments.count[usable]))
        variance = 0.5 * (between + between.T)
    least = LEAST * float(np.trace(pooled))
    if float(np.trace(variance)) < least:
        variance = LEAST * pooled
    variance = positive_part(variance, 0.02)
    tiny = 1e-12 * max(float((mean**2).mean()), 1e-12)
    variance = variance + tiny * np.eye(d)
    return (
        mean if family.mean is None else family.mean,
        variance if family.covariance is None else family.covariance,
    )


def from_matrices(
    family: VectorFamily,
    moments: VectorMoments,
    noise: FloatArray,
    active: BoolArray,
    usable: BoolArray,
    dependent: BoolArray,
    shrink: float = 1.0,
) -> VectorParameters:
    """Return unbiased sources with these noise covariances; those of dependent pairs follow from the moments.

    A source that never votes gets the mean noise of the others, one that says a constant does not count.
    """
    m, d = moments.mean.shape
    silent = np.diag(moments.count) == 0
    mean, variance = truth_law(family, moments, usable)
    matrices = noise.copy()
    common = matrices[active].mean(axis=0) if active.any() else 0.5 * moments.pooled
    matrices[~active] = common
    matrices = matrices + 1e-12 * float(np.trace(variance)) / d * np.eye(d)
    pairs = dependent_pairs_of(dependent, active)
    coupling = np.zeros((len(pairs), d, d))
    for row, (left, right) in enumerate(pairs.tolist()):
        if moments.count[left, right] >= 2:
            coupling[row] = moments.as_matrices(moments.covariance[left, right]) - variance
    return VectorParameters(
        offset=np.zeros((m, d)),
        noise=matrices,
        mean=mean,
        variance=variance,
        used=active | silent,
        pairs=pairs,
        coupling=coupling,
        cost_error=np.full(m, np.inf),
        shrink=shrink,
    )


def equal_sources(
    family: VectorFamily, moments: VectorMoments, usable: BoolArray, cost: FloatArray | None = None
) -> VectorParameters:
    """Return sources alike in every direction, without a prior: labels are weighted means of the votes.

    Parameters
    ----------
    cost
        ``(m,)`` expected costs; by default one for all, from the mean squared distance of pairs.
    """
    m, d = moments.mean.shape
    votes = np.diag(moments.count)
    if cost is None:
        pairs = np.triu(moments.count, 1)
        average = 0.0
        if pairs.sum() > 0:
            average = float((pairs * moments.squared_difference).sum() / pairs.sum()) / 2.0
        cost = np.full(m, average if average > 0 else 0.5 * float(np.trace(moments.pooled)))
    noise = (cost / d)[:, None, None] * np.eye(d)
    return from_matrices(family, moments, noise, votes > 0, usable, np.zeros((m, m), dtype=bool), shrink=0.0)


def moment_matrices(moments: VectorMoments, usable: BoolArray, kind: str, variance: FloatArray) -> FloatArray:
    """Return noise covariances ``(m, d, d)`` from differences of pairs ("triplets") or as own less shared ("moments").

    Neither is positive by itself; the nearest positive one is returned.
    """
    m, d = moments.mean.shape
    if kind == "moments":
        found = moments.own - variance
    else:
        entries = moments.difference.reshape(m, m, -1)
        solved = matrix_costs(entries, usable, moments.count).reshape(m, *moments.difference.shape[2:])
        found = moments.as_matrices(solved)
        alone = ~usable.any(axis=1)
        if alone.any() and not alone.all():
            found[alone] = np.median(found[~alone], axis=0)
    typical = float(np.trace(moments.pooled)) / d
    own = np.maximum(np.trace(found, axis1=1, axis2=2) / d, 0.01 * typical)
    raised: FloatArray = positive_part(found, 0.02) + (0.02 * own)[:, None, None] * np.eye(d)
    return raised


def labelled_sources(
    family: VectorFamily, moments: VectorMoments, sums: Sums, request: Request, active: BoolArray
) -> Estimate:
    """Learn offsets and noise from known labels alone, drawn to each other where labels are few."""
    if "gold_both" not in sums:
        raise needs_gold()
    table = vector_moments(Sums({name: sums[f"gold_{name}"] for name in ("both", "total", "square", "product")}))
    m, d = moments.mean.shape
    count = table.count[:m, m]
    items = float(table.count[m, m])
    away = table.as_matrices(table.difference[:m, m])  # E (vote - y)(vote - y)'
    told = count > 0
    # The mean of the votes less that of y over the items on which the source votes.
    level = np.maximum(np.rint(count), 1.0)[:, None]
    bias = np.where(
        told[:, None], (sums["gold_total"][:m, m] - sums["gold_total"][m, :m]).astype(np.float64) / level, 0.0
    )
    noise_level = np.trace(away, axis1=1, axis2=2) / d
    offset = bias * (count / (count + PULL))[:, None]
    # An offset that is no larger than its own error tells nothing.
    clear = (offset**2).sum(axis=1) > 2.0 * d * noise_level / np.maximum(count, 1.0)
    offset = np.where((told & clear)[:, None], offset, 0.0)
    left = away - np.einsum("ad,ae->ade", bias, offset) - np.einsum("ad,ae->ade", offset, bias)
    left = left + np.einsum("ad,ae->ade", offset, offset)
    structure = "full" if np.median(count[told]) >= 10 * d and moments.full else "diagonal"
    noise = np.zeros((m, d, d))
    typical = max(float(noise_level[told].mean()), 1e-6 * float(np.trace(moments.pooled)) / d)
    kept = positive_part(structured(left[told], structure), 0.02) + 1e-3 * typical * np.eye(d)
    noise[told] = drawn_together(kept, count[told], PULL + d, PULL)
    noise[~told] = noise[told].mean(axis=0)
    silent = np.diag(moments.count) == 0
    mean, variance = table.mean[m], positive_part(table.as_matrices(table.covariance[m, m]), 0.02)
    if items < 2 * d + 2 or float(np.trace(variance)) <= 0:
        variance = 0.5 * variance + 0.5 * truth_law(family, moments, moments.count > 0)[1]
    pairs = dependent_pairs_of(request.dependent, active & told)
    coupling = np.zeros((len(pairs), d, d))
    for row, (a, b) in enumerate(pairs.tolist()):
        if table.count[a, b] >= 2:
            # Cov(a, b) = Var(y) + Cov(noise), with y and noise uncorrelated.
            coupling[row] = table.as_matrices(
                0.5 * (table.difference[a, m] + table.difference[b, m] - table.difference[a, b])
            ) - np.outer(offset[a], offset[b])
    own = np.einsum("ade,aed->a", noise, noise)
    shift = 4.0 * np.einsum("ad,ade,ae->a", offset, noise, offset)
    error = np.where(told, np.sqrt((2.0 * own + shift) / np.maximum(count, 1.0)), np.inf)
    parameters = VectorParameters(
        offset=offset,
        noise=noise,
        mean=mean if family.mean is None else family.mean,
        variance=variance if family.covariance is None else family.covariance,
        used=active | silent,
        pairs=pairs,
        coupling=coupling,
        cost_error=error,
    )
    return Estimate(parameters, "labelled", f"{int(items)} known labels")
