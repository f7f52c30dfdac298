"""Covariances of sources of vectors, only as far as the votes support them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Passes
from consilience.families.left_out import STEPS, Predict, Support, support_of
from consilience.families.part_passes import PartPasses
from consilience.families.vector_moments import VectorMoments
from consilience.families.vector_posterior import believe

if TYPE_CHECKING:
    from consilience.families.vector import VectorParameters

__all__ = ["drawn", "support_of_sources"]


def drawn(parameters: VectorParameters, share: float, votes: FloatArray) -> VectorParameters:
    """Return noise moved to the common one: all the way for a share of 0, not at all for 1.

    Offsets are kept as far as they are larger than their own errors. With a share of 0 labels are the plain means of
    the votes, less such offsets.
    """
    if share >= 1.0:
        return parameters
    counted = np.where(parameters.used, votes, 0.0)
    weight = counted / counted.sum() if counted.any() else np.full(len(votes), 1.0 / len(votes))
    noise = share * parameters.noise + (1.0 - share) * np.tensordot(weight, parameters.noise, axes=1)
    offset = np.maximum(share, _clear(parameters, votes))[:, None] * parameters.offset
    cost = np.trace(noise - parameters.noise, axis1=1, axis2=2) + (offset**2 - parameters.offset**2).sum(axis=1)
    return replace(
        parameters,
        offset=offset,
        noise=noise,
        coupling=share * parameters.coupling,
        cost_error=np.hypot(parameters.cost_error, cost),
        shrink=share * float(parameters.shrink),
    )


def _clear(parameters: VectorParameters, votes: FloatArray) -> FloatArray:
    """Return the share of each offset that is not chance: their variance beyond that of errors, over both together."""
    error = np.trace(parameters.noise + parameters.variance, axis1=1, axis2=2) / np.maximum(votes, 1.0)
    told = votes > 0
    size = (parameters.offset**2).sum(axis=1)
    true = max(float((size - error)[told].mean()), 0.0) if told.any() else 0.0
    share: FloatArray = true / (true + error)
    return share


def support_of_sources(
    parameters: VectorParameters,
    moments: VectorMoments,
    active: BoolArray,
    dependent: BoolArray,
    passes: Passes | None,
    fit: Callable[[PartPasses], VectorParameters],
) -> Support | None:
    """Return what left-out sources say about the covariances; `fit` learns them from a part of the items."""
    votes = np.diag(moments.count)

    def predict(found: VectorParameters) -> Predict:
        steps = [drawn(found, share, votes) for share in STEPS]

        def labels_of(labels: npt.NDArray[Any], observed: BoolArray) -> list[FloatArray]:
            return [believe(step, labels, observed)[0].mean - step.mean for step in steps]

        return labels_of

    return support_of(
        votes, active, dependent, moments.mean, passes, predict(parameters), lambda part: predict(fit(part))
    )
