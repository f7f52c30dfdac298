"""EM for vectors, by passes over the votes or over a small table with the same means and covariances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import Chunk, Sums
from consilience.families.vector_posterior import believe, weigh
from consilience.solvers.covariances import drawn_together, inverses, log_determinants, positive_part, structured

if TYPE_CHECKING:
    from consilience.families.vector import VectorParameters

__all__ = ["Plan", "RoundsFit", "Run", "maximise", "pull_of", "round_sums"]

MAX_ROUNDS = 600
#: No direction of the noise of a source has less than this share of its mean variance.
FLOOR = 2e-3
#: Covariances are drawn to a common shape as by this many further items per coordinate, and to a common scale as by
#: `SCALE_PULL` further numbers, of which an item has one per coordinate.
PULL, SCALE_PULL = 3.0, 2.0

Run = Callable[[Callable[[Chunk], Sums]], Sums]


@dataclass(frozen=True)
class Plan:
    """What EM may change.

    Parameters
    ----------
    structure
        Of the noise: one of `consilience.solvers.covariances.STRUCTURES`.
    offsets
        Whether every source has an offset of its own.
    active
        ``(m,)`` sources to learn; the others keep their start.
    floor
        ``(m,)`` least variance of the noise of each source, in the mean over the coordinates.
    law
        Structure of the covariance of y.
    mean, variance
        Whether the mean and the covariance of y are learned.
    """

    structure: str
    offsets: bool
    active: BoolArray
    floor: FloatArray
    law: str = "full"
    mean: bool = True
    variance: bool = True


@dataclass(frozen=True)
class RoundsFit:
    """Parameters of greatest penalised likelihood."""

    parameters: VectorParameters
    log_likelihood: float
    converged: bool


def round_sums(parameters: VectorParameters, chunk: Chunk) -> Sums:
    """Return the sums of one EM pass; items of known label count with it, and without uncertainty."""
    m = len(parameters.offset)
    total = _no_sums(parameters)
    known = np.zeros(len(chunk), dtype=bool) if chunk.is_known is None else chunk.is_known
    open_rows = np.flatnonzero(~known & (chunk.observed & parameters.used).any(axis=1))
    if len(open_rows):
        whole = len(open_rows) == len(chunk)
        labels = chunk.labels if whole else chunk.labels[open_rows]
        observed = chunk.observed if whole else chunk.observed[open_rows]
        belief, residual = believe(parameters, labels, observed)
        moved = belief.mean - parameters.mean
        left = residual - moved[:, None, :]
        if not observed.all():
            left = np.where(observed[..., None], left, 0.0)
        kinds = len(belief.covariance)
        blur = np.tensordot(_often(belief.pattern, kinds), belief.covariance, axes=1)
        # A source that does not count is not part of the pattern, so votes are counted afresh.
        voted = [_often(belief.pattern, kinds, observed[:, a]) for a in range(m)]
        together = [_often(belief.pattern, kinds, observed[:, a] & observed[:, b]) for a, b in parameters.pairs]
        spread = np.tensordot(np.array(voted), belief.covariance, axes=1)
        pair_blur = np.tensordot(np.array(together).reshape(-1, kinds), belief.covariance, axes=1)
        total = total + _sums(parameters, left, observed, moved, spread, pair_blur, blur)
        total = total + Sums({"log_likelihood": np.array(float(belief.log_density.sum()))})
    rows = np.flatnonzero(known)
    if len(rows) and chunk.known is not None:
        total = total + _known_sums(parameters, chunk, rows)
    return total


def _often(pattern: IntArray, kinds: int, chosen: BoolArray | None = None) -> FloatArray:
    """Return how many of the chosen items have each pattern."""
    counted = np.bincount(pattern if chosen is None else pattern[chosen], minlength=kinds)
    return counted.astype(np.float64)


def _no_sums(parameters: VectorParameters) -> Sums:
    m, d = parameters.offset.shape
    shapes = {
        "count": (m,), "first": (m, d), "second": (m, d, d), "pair_count": (len(parameters.pairs),),
        "pair_second": (len(parameters.pairs), d, d), "truth": (d,), "truth_second": (d, d), "items": (),
        "log_likelihood": (),
    }  # fmt: skip
    return Sums({name: np.zeros(shape) for name, shape in shapes.items()})


def _known_sums(parameters: VectorParameters, chunk: Chunk, rows: IntArray) -> Sums:
    m, d = parameters.offset.shape
    truth = np.asarray(chunk.known)[rows].astype(np.float64)
    observed = chunk.observed[rows]
    labels = chunk.labels[rows] if chunk.observed.any() else np.zeros((len(rows), m, d))
    left = np.where(observed[..., None], labels - parameters.offset - truth[:, None, :], 0.0)
    moved = truth - parameters.mean
    evidence = weigh(parameters, left, observed)
    inverse = inverses(parameters.variance)
    far = np.einsum("nd,de,ne->n", moved, inverse, moved) + float(log_determinants(parameters.variance))
    density = -0.5 * float((evidence.square + evidence.spread + far).sum())
    nothing = np.zeros((d, d))
    sums = _sums(
        parameters, left, observed, moved, np.zeros((m, d, d)), np.zeros((len(parameters.pairs), d, d)), nothing
    )
    return sums + Sums({"log_likelihood": np.array(density)})


def _sums(
    parameters: VectorParameters,
    left: FloatArray,
    observed: BoolArray,
    moved: FloatArray,
    spread: FloatArray,
    pair_spread: FloatArray,
    blur: FloatArray,
) -> Sums:
    """Return moments of the residuals `left` and of the truth, with the uncertainty of the truth added."""
    m = observed.shape[1]
    pairs = parameters.pairs
    second = np.stack([left[:, a].T @ left[:, a] for a in range(m)]) + spread
    between = np.array([left[:, a].T @ left[:, b] for a, b in pairs.tolist()]).reshape(pair_spread.shape)
    both = np.array([float((observed[:, a] & observed[:, b]).sum()) for a, b in pairs.tolist()])
    if len(pairs):
        # Residuals are zero where a source abstains, and so are these products.
        between = between + pair_spread
    return Sums(
        {
            "count": observed.sum(axis=0).astype(np.float64),
            "first": left.sum(axis=0),
            "second": second,
            "pair_count": both.reshape(len(pairs)),
            "pair_second": between,
            "truth": moved.sum(axis=0),
            "truth_second": moved.T @ moved + blur,
            "items": np.array(float(len(moved))),
        }
    )


def maximise(start: VectorParameters, plan: Plan, run: Run) -> RoundsFit:
    """Run EM until the steps are far below the sampling error.

    Every second step is extrapolated (SQUAREM, Varadhan and Roland 2008) unless that leaves the positive definite
    matrices or lowers the likelihood.
    """

    def step(parameters: VectorParameters) -> tuple[VectorParameters, Sums]:
        sums = run(lambda chunk: round_sums(parameters, chunk))
        return _updated(parameters, sums, plan), sums

    current, sums = step(start)
    limit = max(1e-6, 0.003 / np.sqrt(max(float(sums["items"]), 1.0)))
    best, safe = -np.inf, current
    converged = False
    for _ in range(MAX_ROUNDS // 2):
        first, sums = step(current)
        if float(sums["log_likelihood"]) < best - 0.01 - 1e-9 * abs(best):
            current, best = safe, -np.inf  # the extrapolation went too far
            continue
        best = float(sums["log_likelihood"])
        second, sums = step(first)
        if _change(first, second, plan.active) < limit:
            current, converged = second, True
            break
        safe = second
        current = _extrapolated(current, first, second)
    return RoundsFit(current, float(sums["log_likelihood"]), converged)


def _updated(current: VectorParameters, sums: Sums, plan: Plan) -> VectorParameters:
    d = len(current.mean)
    count = np.maximum(sums["count"], 1e-300)
    items = max(float(sums["items"]), 1.0)
    shift = sums["first"] / count[:, None] if plan.offsets else np.zeros_like(current.offset)
    shift = shift * plan.active[:, None]
    raw = sums["second"] / count[:, None, None] - np.einsum("ad,ae->ade", shift, shift)
    learned = plan.active & (sums["count"] > 0)
    noise = current.noise.copy()
    if learned.any():
        kept = positive_part(structured(raw[learned], plan.structure), FLOOR)
        drawn = drawn_together(kept, sums["count"][learned], pull_of(plan.structure, d), SCALE_PULL / d)
        lacking = plan.floor[learned] - np.trace(drawn, axis1=1, axis2=2) / d
        noise[learned] = drawn + np.maximum(lacking, 0.0)[:, None, None] * np.eye(d)
    coupling = current.coupling
    if len(coupling):
        pair_count = np.maximum(sums["pair_count"], 1.0)[:, None, None]
        left, right = current.pairs.T
        coupling = sums["pair_second"] / pair_count - np.einsum("pd,pe->pde", shift[left], shift[right])
    mean, moved = current.mean, np.zeros(d)
    if plan.mean:
        moved = sums["truth"] / items
        mean = mean + moved
    variance = current.variance
    if plan.variance:
        around = structured(sums["truth_second"] / items - np.outer(moved, moved), plan.law)
        part = d / (items + d)
        variance = positive_part((1.0 - part) * around + part * np.diag(np.diag(around)), FLOOR)
    return replace(current, offset=current.offset + shift, noise=noise, coupling=coupling, mean=mean, variance=variance)


def pull_of(structure: str, d: int) -> float:
    """Return as by how many further items the covariances of a structure are drawn to the common shape."""
    return {"full": PULL * d, "common": float("inf")}.get(structure, PULL)


def _extrapolated(start: VectorParameters, first: VectorParameters, second: VectorParameters) -> VectorParameters:
    unit = np.sqrt(np.trace(second.variance) / len(second.mean))
    names = ("offset", "noise", "coupling", "mean", "variance")
    size = {name: unit if name in ("offset", "mean") else unit**2 for name in names}
    one = {name: getattr(first, name) - getattr(start, name) for name in names}
    two = {name: getattr(second, name) - getattr(first, name) - one[name] for name in names}
    curvature = np.sqrt(sum(float((two[name] ** 2).sum()) / size[name] ** 2 for name in names))
    if curvature < 1e-14:
        return second
    slope = np.sqrt(sum(float((one[name] ** 2).sum()) / size[name] ** 2 for name in names))
    length = min(max(float(slope / curvature), 1.0), 16.0)
    reached = {name: getattr(start, name) + 2.0 * length * one[name] + length**2 * two[name] for name in names}
    for name in ("noise", "variance"):
        least = 0.5 * FLOOR * np.trace(reached[name], axis1=-2, axis2=-1) / len(second.mean)
        if not ((least > 0).all() and _definite(reached[name] - least[..., None, None] * np.eye(len(second.mean)))):
            return second
    return replace(second, **reached)


def _definite(matrices: FloatArray) -> bool:
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return False
    return True


def _change(before: VectorParameters, after: VectorParameters, active: BoolArray) -> float:
    """Return the largest step of a parameter, in units of the standard deviation of votes."""
    d = len(after.mean)
    unit = np.sqrt(np.trace(after.noise + after.variance, axis1=1, axis2=2) / d)
    own = np.trace(after.noise, axis1=1, axis2=2) / d
    moved = np.abs(after.offset - before.offset).max(axis=1) / unit
    moved = moved + np.abs(after.noise - before.noise).max(axis=(1, 2)) / own
    whole = np.trace(after.variance) / d
    shared = np.abs(after.variance - before.variance).max() / whole + np.abs(after.mean - before.mean).max() / np.sqrt(
        whole
    )
    return float(max(moved[active].max(initial=0.0), shared))
