"""Known labels calibrate confidence: one temperature for every label type, one variance ratio for intervals.

The stated confidence c of each known item is compared with how right its label turned out to be. The map
``logit c' = b logit c`` (for probabilities ``p' ~ p ** b``) is monotone and has one parameter, found by maximum
quasi-likelihood and shrunk to the identity by a prior ``log b ~ N(0, SHRINKAGE^2)``, so that a few known labels
change little. Intervals are compared with errors in the same way: r is the sum of the squared errors over that of the
stated variances, with `NOMINAL_ITEMS` items of the mean variance v added to both. Errors that are larger than stated
come from what all sources share, so they add ``(r - 1) v`` to the variance of every item; if errors are smaller, the
variances are multiplied by r.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from consilience.arrays import Axes, Batch, BoolArray, FloatArray, as_object_array, softmax
from consilience.estimation.protocol import Chunk, Diagnostic, Law, Posterior, Statistics

if TYPE_CHECKING:
    from consilience.label_types.base import LabelSpace

__all__ = ["UNCALIBRATED", "Calibration", "calibrate", "calibrated", "share_right"]

#: Standard deviation of log b before any known label: confidence is believed to within a factor of two in log odds.
SHRINKAGE = 0.7
#: The nominal width of intervals counts as much as this many known labels.
NOMINAL_ITEMS = 5.0
#: Temperatures to try, from 1/12 to 2, in fractions of an octave.
LOG_TEMPERATURES = np.linspace(-2.5, 0.7, 129)
#: Confidence is kept this far from 0 and 1, as quasi-likelihood would be infinite there.
EDGE = 1e-4


@dataclass(frozen=True)
class Calibration:
    """How stated confidence is turned into one that comes true."""

    # B above; below 1 where labels were less often right than stated
    temperature: Annotated[float, Axes("", 0.0)] = 1.0
    interval_scale: Annotated[float, Axes("", 0.0)] = 1.0  # factor of standard deviations, at most 1
    shared_variance: Annotated[float, Axes("", 0.0)] = 0.0  # added to the variance of every item
    # Mean confidence on the known items, before calibration
    stated: Annotated[float, Axes("", 0.0, 1.0, missing=True)] = float("nan")
    observed: Annotated[float, Axes("", 0.0, 1.0, missing=True)] = float("nan")  # and mean share of right labels there

    def findings(self, n_gold: int) -> tuple[Diagnostic, ...]:
        """Return what was done, in one sentence."""
        if not np.isfinite(self.stated):
            return ()
        message = (
            f"On {n_gold} known label{'s' * (n_gold != 1)}, the mean confidence was {self.stated:.2f}, and a share of "
            f"{self.observed:.2f} was right. Confidence was calibrated accordingly."
        )
        return (Diagnostic("calibrated", "info", (), message),)


UNCALIBRATED = Calibration()


def calibrated(belief: Posterior, calibration: Calibration) -> Posterior:
    """Return a belief whose confidence, probabilities and standard deviations went through the calibration."""
    if (calibration.temperature, calibration.interval_scale, calibration.shared_variance) == (1.0, 1.0, 0.0):
        return belief
    b = calibration.temperature
    probabilities = belief.probabilities
    confidence = _tempered(belief.confidence, b)
    if probabilities is not None:
        powered = np.maximum(probabilities, 1e-300) ** b
        probabilities = powered / powered.sum(axis=1, keepdims=True)
        own = np.abs(belief.probabilities - belief.confidence[:, None]).argmin(axis=1)  # type: ignore[operator]
        confidence = probabilities[np.arange(len(own)), own]
    details = dict(belief.details)
    for name, value in belief.details.items():
        if name.endswith("_probability") and value.dtype != object:
            details[name] = _tempered(value, b)
        elif name.endswith("_probability"):  # of ragged items, where rows of two axes are laws over labels
            pieces = [np.asarray(piece, dtype=np.float64) for piece in value]
            details[name] = as_object_array(
                _tempered(piece, b) if piece.ndim < 2 else softmax(b * np.log(np.maximum(piece, 1e-300)))
                for piece in pieces
            )
        elif name == "standard_deviation":
            details[name] = np.sqrt((calibration.interval_scale * value) ** 2 + calibration.shared_variance)
        elif name == "covariance":
            shared = calibration.shared_variance * np.eye(value.shape[-1])
            details[name] = calibration.interval_scale**2 * value + shared
    return replace(belief, confidence=confidence, probabilities=probabilities, details=details)


def _tempered(confidence: FloatArray, b: float) -> FloatArray:
    with np.errstate(divide="ignore"):
        odds = b * (np.log(confidence) - np.log1p(-confidence))
    tempered: FloatArray = 1.0 / (1.0 + np.exp(-odds))
    return tempered


def calibrate(
    space: LabelSpace,
    law: Law,
    believe: Callable[[Batch, BoolArray], Posterior],
    over: Callable[[Callable[[Chunk], Statistics]], Statistics],
) -> Calibration:
    """Return the calibration that known items ask for.

    `believe` says what the model makes of encoded votes and where they are, and `over` sums a function over chunks.
    """
    edges = np.linspace(EDGE, 1.0 - EDGE, 200)

    def compared(chunk: Chunk) -> Statistics:
        rows = chunk.gold_rows
        rows = rows[chunk.observed[rows].any(axis=1)]
        counts = {"right": np.zeros(len(edges) + 1), "items": np.zeros(len(edges) + 1), "squares": np.zeros(3)}
        if len(rows) and chunk.known is not None:
            belief = believe(chunk.labels[rows], chunk.observed[rows])
            right = share_right(space, law, belief, chunk.known[rows])
            bins = np.searchsorted(edges, belief.confidence)
            counts["right"] = np.bincount(bins, right, minlength=len(edges) + 1).astype(np.float64)
            counts["items"] = np.bincount(bins, minlength=len(edges) + 1).astype(np.float64)
            if "standard_deviation" in belief.details:
                deviation = belief.details["standard_deviation"]
                mean = np.asarray(belief.details.get("mean", belief.labels), dtype=np.float64)
                if mean.shape == deviation.shape:
                    error = mean - np.asarray(chunk.known[rows], dtype=np.float64)
                else:  # points of a manifold, whose deviation is a distance
                    error = space.distance(belief.labels, chunk.known[rows])
                stated = np.isfinite(deviation)
                squares = error[stated] ** 2, deviation[stated] ** 2
                counts["squares"] = np.array([squares[0].sum(), squares[1].sum(), float(stated.sum())])
        return Statistics(counts)

    sums = over(compared)
    items, right = sums["items"], sums["right"]
    total = items.sum()
    if total == 0:
        return UNCALIBRATED
    centers = np.concatenate([[edges[0]], (edges[1:] + edges[:-1]) / 2.0, [edges[-1]]])
    odds = np.log(centers) - np.log1p(-centers)
    stretched = np.exp(LOG_TEMPERATURES)[:, None] * odds
    gain = -(right * np.logaddexp(0.0, -stretched) + (items - right) * np.logaddexp(0.0, stretched)).sum(axis=1)
    best = int(np.argmax(gain - 0.5 * (LOG_TEMPERATURES / SHRINKAGE) ** 2))
    found, expected, count = sums["squares"]
    mean = float(expected) / max(float(count), 1.0)
    ratio = (NOMINAL_ITEMS * mean + float(found)) / (NOMINAL_ITEMS * mean + float(expected)) if expected > 0.0 else 1.0
    return Calibration(
        float(np.exp(LOG_TEMPERATURES[best])),
        float(np.sqrt(min(ratio, 1.0))),
        max(ratio - 1.0, 0.0) * mean,
        float((centers * items).sum() / total),
        float(right.sum() / total),
    )


def share_right(space: LabelSpace, law: Law, belief: Posterior, known: FloatArray) -> FloatArray:
    """Return how right each label is, in the units of its confidence: 1 for a right label of a finite type."""
    if belief.probabilities is not None:
        right: FloatArray = (space.distance(belief.labels, known) == 0).astype(np.float64)
        return right
    chance = law.chance_costs(known)
    if not np.isfinite(chance).all() or not chance.any():
        chance = np.full(len(known), space.cost(known, np.roll(known, 1, axis=0)).mean())
    share: FloatArray = np.clip(1.0 - space.cost(belief.labels, known) / np.maximum(chance, 1e-12), 0.0, 1.0)
    return share
