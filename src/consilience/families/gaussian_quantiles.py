"""Which gauge scores are learned in: votes as they are, or their normal scores where scales are bent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.exceptions import UnsupportedError
from consilience.families.base import Diagnostic, Estimate, Passes, Request, Sums
from consilience.families.gaussian_estimation import estimate_gaussian
from consilience.families.normal_scores import NormalScorePasses, QuantileScales, normal_sums

if TYPE_CHECKING:
    from consilience.families.gaussian import GaussianFamily, GaussianParameters

__all__ = ["estimate_scores"]

#: Methods that learn lines, and so can learn them for normal scores.
LINES = ("auto", "moments", "em", "triplets")


def estimate_scores(family: GaussianFamily, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
    """Learn lines of votes, or of their normal scores where that is asked for or the scales are bent."""
    asked = family.gauge == "quantile"
    if asked and passes is None:
        raise UnsupportedError(
            "gauge='quantile' needs the votes, moments alone do not suffice. Call fit(votes), or use gauge='linear'."
        )
    told = family.mean is not None or family.variance is not None or request.n_gold > 0
    fits = request.method in LINES and (asked or (request.method == "auto" and not told))
    if family.scales is None or passes is None or not fits:
        estimate = estimate_gaussian(family, sums, request, passes)
        return replace(estimate, diagnostics=(*estimate.diagnostics, _not_taken(request))) if asked else estimate
    found = _of_normal_scores(family, family.scales, sums, request, passes)
    if found.method == "majority":  # no lines to follow: the plain mean of the votes as they are
        return estimate_gaussian(family, sums, request, passes)
    return found


def _of_normal_scores(
    family: GaussianFamily, scales: QuantileScales, sums: Sums, request: Request, passes: Passes
) -> Estimate:
    standard = replace(family, mean=0.0, variance=1.0, range=None, clip=False, integer=False, scales=None)
    own = replace(request, n_gold=0)
    estimate = estimate_gaussian(standard, normal_sums(sums), own, NormalScorePasses(passes, scales))
    lines: GaussianParameters = estimate.parameters  # type: ignore[assignment]
    information = np.where(lines.slope > 0, lines.slope**2 / np.maximum(lines.noise_variance, 1e-12), 0.0)
    if family.range is not None and information.any():
        low, high = family.range
        within = (scales.knots[:, 0] >= low) & (scales.knots[:, -1] <= high)
        information = np.where(within, information, 0.0) if (information * within).any() else information
    if not information.any():
        return estimate_gaussian(family, sums, request, passes)
    bent = replace(lines, knots=scales.knots, say=information / information.sum())
    message = (
        "The scales of the sources are bent (skewed, with a ceiling, or unlike each other): votes were replaced by the "
        "normal quantiles of their ranks, and labels go back through the quantiles of the sources. Say "
        "Scores(gauge='linear') to take votes as they are."
    )
    notes = () if family.gauge == "quantile" else (Diagnostic("bent-scales", "info", (), message),)
    reason = f"{estimate.reason}, on normal scores of the votes"
    return replace(estimate, parameters=bent, reason=reason, diagnostics=(*estimate.diagnostics, *notes))


def _not_taken(request: Request) -> Diagnostic:
    message = (
        f"Labels are on the scale of the votes as they are: normal scores need three sources with 20 votes each and a "
        f"method that learns lines, not {request.method!r}. Use method='auto', or gauge='linear'."
    )
    return Diagnostic("bent-scales", "warning", (), message)
