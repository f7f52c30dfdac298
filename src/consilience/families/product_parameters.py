"""What is known about sources of records: the parameters of each field, and what they amount to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import Parameters, Summary

__all__ = ["ProductParameters", "combined"]


@dataclass(frozen=True)
class ProductParameters(Parameters):
    """What is known about the sources, field by field.

    Parameters
    ----------
    factors
        The parameters of each field; ``parameters["stars"]`` is short for them.
    scale
        One number per field: the cost of unrelated true labels, by which costs are divided.
    votes
        ``(fields, m)`` how many votes each source cast on each field.
    scale_error
        Standard error of `scale`; zero where the field knows its scale.
    """

    factors: Mapping[str, Parameters]
    scale: FloatArray
    votes: IntArray
    scale_error: FloatArray

    def __getitem__(self, name: str) -> Parameters:
        return self.factors[name]

    def as_dict(self) -> dict[str, Any]:
        factors = {name: parameters.as_dict() for name, parameters in self.factors.items()}
        return {"factors": factors, "scale": self.scale, "votes": self.votes, "scale_error": self.scale_error}


def combined(
    parts: Mapping[str, Summary], weights: FloatArray, scale: FloatArray, scale_error: FloatArray, voted: BoolArray
) -> Summary:
    """Return one summary of several fields, whose errors are taken as independent, and so is that of the scale.

    Parameters
    ----------
    weights, scale, scale_error
        How much each field counts, the cost of unrelated labels in it, and its standard error.
    voted
        ``(fields, m)``: which source votes on which field. A source that votes on none is judged by all of them.
    """
    used = np.where(voted.any(axis=0), voted, True)
    share = np.where(used, weights[:, None], 0.0)
    present = share.sum(axis=0)
    costs = np.stack([part.expected_cost for part in parts.values()]) / scale[:, None]
    unit_error = (scale_error / scale)[:, None]
    cost_errors = np.hypot(
        np.stack([part.cost_standard_error for part in parts.values()]) / scale[:, None], costs * unit_error
    )
    strength = np.stack([part.weight for part in parts.values()]) * scale[:, None]
    errors = np.hypot(
        np.stack([part.standard_error for part in parts.values()]) * scale[:, None], strength * unit_error
    )
    filled = weights.sum() / present
    together = used[:, :, None] & used[:, None, :]
    correlation = np.stack([part.correlation for part in parts.values()])
    return Summary(
        expected_cost=filled * (share * costs).sum(axis=0),
        weight=np.where(used, strength, 0.0).sum(axis=0) / present,
        standard_error=_norm(np.where(used, errors, 0.0)) / present,
        cost_standard_error=filled * _norm(np.where(used, weights[:, None] * cost_errors, 0.0)),
        correlation=np.where(together, correlation, 0.0).sum(axis=0) / np.maximum(together.sum(axis=0), 1),
        parts=dict(parts),
    )


def _norm(errors: FloatArray) -> FloatArray:
    total: FloatArray = np.sqrt((errors**2).sum(axis=0))
    return total
