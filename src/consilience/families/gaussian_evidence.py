"""Whether the votes support lines and weights of their own for every source, or only the plain mean.

If the noise of a source is independent of the others, its votes correlate with a consensus of the *others* in
proportion to the correlation of that consensus with the truth. So two ways to combine votes can be compared without a
known label: by how well each predicts the votes of every source that was left out. Parameters come from other items than
those they are judged on, as weights always suit the items they were learned from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import GROUPS, Chunk, Diagnostic, Sums
from consilience.families.gaussian_gauge import say
from consilience.families.gaussian_moments import score_moments
from consilience.families.gaussian_posterior import LEARNING_ROUNDS, believe
from consilience.families.gaussian_problem import Problem
from consilience.families.gaussian_rounds import thinned
from consilience.families.part_passes import PartPasses, rows_of

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianParameters

__all__ = ["Support", "drawn", "drawn_note", "support_of"]

#: Shares of the way from equal lines (0) to lines of their own (1) that are compared.
STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Votes of the typical source from which on parameters may be judged on the items they were learned from.
AMPLE = 1000
FOLDS = 5
#: A gain counts less this many standard errors, so that chance alone rarely makes labels worse than plain means.
CAUTION = 1.0
#: Sources that are left out in turn, at most.
MOST = 60


@dataclass(frozen=True)
class Support:
    """How well the consensus of the others predicts each source, at every step from equal lines to own ones.

    `gain` is by which part the correlation with the truth exceeds that of equal lines, `error` its standard error.
    """

    gain: FloatArray
    error: FloatArray

    @property
    def share(self) -> float:
        """The step to take: of those about as good as the best one, allowing for chance, the last."""
        sure = self.gain - CAUTION * self.error
        best = int(sure.argmax())
        good = np.flatnonzero(sure >= sure[best] - 0.25 * self.error[best])
        return STEPS[int(good.max())]


def drawn(standard: GaussianParameters, share: float, votes: FloatArray, shrink: float = 1.0) -> GaussianParameters:
    """Return lines and noise moved to the common ones: all the way for a share of 0, not at all for 1.

    With equal lines labels are the plain means of the votes, drawn to the mean of y by how much they scatter. Standard
    errors grow by how far the numbers were moved.

    Parameters
    ----------
    votes
        ``(m,)`` votes of each source.
    shrink
        How far labels are drawn to the mean of y; 0 for plain means.
    """
    if share >= 1.0:
        return standard
    weight = votes / votes.sum()
    variance = standard.noise_variance
    offset, slope = float(weight @ standard.offset), float(weight @ standard.slope)
    typical = float(weight @ variance)
    noise = np.maximum(variance, 1e-300) ** share * typical ** (1.0 - share)
    size = np.sqrt(noise / np.maximum(variance, 1e-300))
    slopes = share * standard.slope + (1.0 - share) * slope
    before, after = (cost / np.maximum(steep**2, 1e-12 * cost) for cost, steep in ((variance, standard.slope), (noise, slopes)))
    return replace(
        standard,
        offset=share * standard.offset + (1.0 - share) * offset,
        slope=slopes,
        noise=standard.noise * np.outer(size, size),
        slope_error=np.hypot(standard.slope_error, slopes - standard.slope),
        noise_error=np.hypot(standard.noise_error, noise - variance),
        cost_error=np.hypot(standard.cost_error, after - before),
        degrees=standard.degrees / share if share > 0 else float("inf"),
        shrink=shrink,
    )


def support_of(
    problem: Problem, standard: GaussianParameters, fit: Callable[[Problem], GaussianParameters]
) -> Support | None:
    """Return what the votes say about the steps; None where they are not at hand."""
    passes = problem.passes
    if passes is None:
        return None
    votes = np.diag(problem.moments.count)
    targets = np.flatnonzero(problem.active)
    targets = targets[np.argsort(-votes[targets], kind="stable")][:MOST]
    together = standard.dependent | np.eye(len(votes), dtype=bool)

    def judged(found: GaussianParameters, kept: BoolArray) -> Sums:
        steps = [_own_gauge(drawn(found, share, votes), problem) for share in STEPS]

        def look(chunk: Chunk) -> Sums:
            return _left_out(steps, rows_of(chunk, np.asarray(kept[chunk.groups])), targets, together)

        return passes.over_sample(thinned(look, passes.n_sampled))

    if float(np.median(votes[problem.active])) >= AMPLE:
        total = judged(standard, np.ones(GROUPS, dtype=bool))
    else:
        total = Sums.zero()
        for fold in range(FOLDS):
            tested = np.arange(GROUPS) % FOLDS == fold
            part = PartPasses(passes, ~tested)
            sums = part.over_all(problem.family.statistics)
            smaller = replace(problem, sums=sums, moments=score_moments(sums), passes=part)
            total = total + judged(fit(smaller), tested)
    if "left_out" not in total or not total["left_out"].any():
        return None
    return _support(total["left_out"])


def _own_gauge(step: GaussianParameters, problem: Problem) -> GaussianParameters:
    """Return the step on the scale of the sources, so that steps of several folds can be put together."""
    weight = say(step, problem.sums)
    scale = float(weight @ step.slope)
    return step.regauged(float(weight @ step.offset), scale) if scale > 0 else step


def _left_out(steps: list[GaussianParameters], chunk: Chunk, targets: IntArray, together: BoolArray) -> Sums:
    """Return, by group of items, step and source, the sums of 1, c, v, c^2, v^2, c v for its vote v and the others' c."""
    found = np.zeros((GROUPS, len(steps), len(targets), 6))
    for place, target in enumerate(targets):
        others = chunk.observed & ~together[target]
        rows = np.flatnonzero(chunk.observed[:, target] & others.any(axis=1))
        if len(rows) == 0:
            continue
        vote = chunk.labels[rows, target].astype(np.float64)
        for number, step in enumerate(steps):
            consensus = believe(step, chunk.labels[rows], others[rows], LEARNING_ROUNDS).mean
            once = np.stack([np.ones(len(rows)), consensus, vote, consensus**2, vote**2, consensus * vote], axis=1)
            np.add.at(found[:, number, place], chunk.groups[rows], once)
    return Sums({"left_out": found})


def _support(sums: FloatArray) -> Support:
    whole = _gain(sums.sum(axis=0))
    used = np.flatnonzero(sums[..., 0].any(axis=(1, 2)))
    without = np.array([_gain(sums.sum(axis=0) - sums[one]) for one in used])
    spread = (len(used) - 1) * without.var(axis=0) if len(used) > 1 else np.full(len(whole), np.inf)
    return Support(whole, np.sqrt(spread))


def _gain(sums: FloatArray) -> FloatArray:
    """Return by which part the correlation with the truth exceeds that of equal lines, for every step."""
    count = np.maximum(sums[..., 0], 1.0)
    mean, level = sums[..., 1] / count, sums[..., 2] / count
    own = np.maximum(sums[..., 3] / count - mean**2, 0.0)
    wide = np.maximum(sums[..., 4] / count - level**2, 0.0)
    both = sums[..., 5] / count - mean * level
    scale = np.sqrt(own * wide)
    correlation = np.where(scale > 0, both / np.where(scale > 0, scale, 1.0), 0.0)
    # Sources that follow nobody would only add noise, and one on a reversed scale says the same to every step.
    weight = count[0] * np.maximum(correlation.mean(axis=0), 0.0)
    total = correlation @ weight
    return total / max(float(total[0]), 1e-12) - 1.0


def drawn_note(support: Support) -> Diagnostic:
    """The votes do not fully support a line and a weight of its own for every source."""
    message = (
        f"Lines and weights were moved {1.0 - support.share:.0%} of the way to equal ones: learned on some items and "
        f"tried on others, a consensus with lines of their own predicts the source left out by {support.gain[-1]:+.1%} "
        f"(standard error {support.error[-1]:.1%}) against the plain mean. More items per source, or gold=, would help."
    )
    return Diagnostic("drawn-together", "info", (), message)
