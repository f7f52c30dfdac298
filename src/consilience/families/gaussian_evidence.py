"""Lines and weights of sources of scores, only as far as the votes support them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray
from consilience.families.gaussian_gauge import say
from consilience.families.gaussian_moments import score_moments
from consilience.families.gaussian_posterior import LEARNING_ROUNDS, believe_labels
from consilience.families.gaussian_problem import Problem
from consilience.families.left_out import STEPS, Predict, Support, support_of
from consilience.families.part_passes import PartPasses

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianParameters

__all__ = ["drawn", "support_of_lines"]

#: A source whose votes spread this many times more than those of the median source is on a scale of its own.
OTHER_SCALE = 5.0


def drawn(standard: GaussianParameters, share: float, votes: FloatArray, shrink: float = 1.0) -> GaussianParameters:
    """Return lines and noise moved to the common ones: all the way for a share of 0, not at all for 1.

    Offsets are kept as far as they are larger than their own errors. With equal lines labels are the plain means of the
    votes, less such offsets, drawn to the mean of y by how much they scatter. Standard
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
    before, after = (
        cost / np.maximum(steep**2, 1e-12 * cost) for cost, steep in ((variance, standard.slope), (noise, slopes))
    )
    return replace(
        standard,
        offset=offset + np.maximum(share, _clear(standard, offset, votes)) * (standard.offset - offset),
        slope=slopes,
        noise=standard.noise * np.outer(size, size),
        slope_error=np.hypot(standard.slope_error, slopes - standard.slope),
        noise_error=np.hypot(standard.noise_error, noise - variance),
        cost_error=np.hypot(standard.cost_error, after - before),
        degrees=standard.degrees / share if share > 0 else float("inf"),
        shrink=shrink,
    )


def _clear(standard: GaussianParameters, centre: float, votes: FloatArray) -> FloatArray:
    """Return the share of each offset that is not chance: their variance beyond that of errors, over both together."""
    error = (standard.noise_variance + standard.slope**2) / np.maximum(votes, 1.0)
    told = votes > 0
    scatter = float(((standard.offset - centre)[told] ** 2).mean()) if told.any() else 0.0
    true = max(scatter - float(error[told].mean()), 0.0) if told.any() else 0.0
    share: FloatArray = true / (true + error)
    return share


def support_of_lines(
    problem: Problem, standard: GaussianParameters, fit: Callable[[Problem], GaussianParameters]
) -> Support | None:
    """Return what left-out sources say about the lines; `fit` learns them from a part of the items."""
    moments = problem.moments
    votes = np.diag(moments.count)
    spread = np.sqrt(moments.variance[problem.active])
    if spread.max() > OTHER_SCALE * np.median(spread):  # then there is no plain mean to move to
        return None

    def predict(found: GaussianParameters) -> Predict:
        steps = [_own_gauge(drawn(found, share, votes), problem) for share in STEPS]

        def labels_of(labels: npt.NDArray[Any], observed: BoolArray) -> list[FloatArray]:
            return [believe_labels(step, labels, observed, LEARNING_ROUNDS).mean - step.mean for step in steps]

        return labels_of

    def again(part: PartPasses) -> Predict:
        sums = part.over_all(problem.family.statistics)
        return predict(fit(replace(problem, sums=sums, moments=score_moments(sums), passes=part)))

    return support_of(votes, problem.active, standard.dependent, moments.mean, problem.passes, predict(standard), again)


def _own_gauge(step: GaussianParameters, problem: Problem) -> GaussianParameters:
    """Return the step on the scale of the sources, so that steps of several folds can be put together."""
    weight = say(step, problem.sums)
    scale = float(weight @ step.slope)
    return step.regauged(float(weight @ step.offset), scale) if scale > 0 else step
