"""Where the truth lies once every source has an offset of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Diagnostic, Request, Sums
from consilience.families.vector_moments import VectorMoments
from consilience.families.vector_posterior import precisions

if TYPE_CHECKING:
    from consilience.families.vector import VectorFamily, VectorParameters

__all__ = ["in_gauge", "start_offsets"]


def start_offsets(
    moments: VectorMoments, sums: Sums, parameters: VectorParameters, active: BoolArray
) -> VectorParameters:
    """Return parameters with offsets to start from: what known labels show, else means of votes less the mean of y."""
    offset = np.where(active[:, None], moments.mean - parameters.mean, 0.0)
    mean = parameters.mean
    if "gold_both" in sums:
        m = len(offset)
        count = sums["gold_both"][:m, m].astype(np.float64)
        total = (sums["gold_total"][:m, m] - sums["gold_total"][m, :m]).astype(np.float64)
        told = active & (count > 0)
        if told.any():
            # All offsets move by what the known labels show of them on the whole.
            weight = precisions(parameters) * (count * told)[:, None, None]
            seen = np.where(told[:, None], total / np.maximum(count, 1.0)[:, None], 0.0)
            shift = np.linalg.solve(weight.sum(axis=0), np.einsum("ade,ae->d", weight, seen - offset * told[:, None]))
            offset = np.where(active[:, None], offset + shift, offset)
            mean = mean - shift
    return replace(parameters, offset=offset, mean=mean)


def in_gauge(
    family: VectorFamily, parameters: VectorParameters, active: BoolArray, votes: FloatArray, request: Request
) -> tuple[VectorParameters, list[Diagnostic]]:
    """Return parameters whose offsets are located: by the known law of y, by known labels, or by the sources.

    Votes alone do not tell a shift of all offsets from a shift of y. Without anything else the offsets, weighted by
    precision, add up to zero; a source far off from the others loses its say by Cauchy weights.
    """
    notes: list[Diagnostic] = []
    located = family.mean is not None or request.n_gold > 0
    if not located:
        weight = precisions(parameters) * (active & (votes > 0))[:, None, None]
        offset, shift = parameters.offset, np.zeros(len(parameters.mean))
        trust = np.ones(len(offset))
        for _ in range(50):
            scaled = weight * trust[:, None, None]
            shift = np.linalg.solve(scaled.sum(axis=0), np.einsum("ade,ae->d", scaled, offset))
            far = ((offset - shift) ** 2).sum(axis=1)
            typical = float(np.median(far[active]))
            trust = 1.0 / (1.0 + far / max(typical, 1e-300))
        moved = np.where(active[:, None], offset - shift, offset)
        parameters = replace(parameters, offset=moved, mean=parameters.mean + shift)
    size = np.sqrt((parameters.offset**2).sum(axis=1) / np.trace(parameters.noise, axis1=1, axis2=2))
    biased = active & (size > 0.5)
    if biased.any() and not located:
        names = request.named(biased)
        message = (
            f"{', '.join(names)}: votes lie off those of the others by more than half of their scatter. The offset is "
            "taken off, but which level is right is not in the votes; pass gold= or mean= to settle it."
        )
        notes.append(Diagnostic("scale-not-identified", "warning", names, message))
    return parameters, notes
