"""What checks of label models demand, and the error they raise."""

from __future__ import annotations

import numpy as np

from consilience.arrays import FloatArray
from consilience.exceptions import ConsilienceError

__all__ = ["LabelModelCheckError", "not_worse", "require"]


class LabelModelCheckError(ConsilienceError, AssertionError):
    """A label model does not behave as it should."""


def require(condition: bool | np.bool_, message: str) -> None:
    """Raise the message unless the condition holds."""
    if not condition:
        raise LabelModelCheckError(message)


def not_worse(own: FloatArray, other: FloatArray, slack: float, situation: str) -> None:
    """Require a mean cost below the other one plus slack and two standard errors of the paired difference."""
    error = float((own - other).std() / np.sqrt(len(own)))
    require(
        own.mean() <= (1.0 + slack) * other.mean() + 2.0 * error,
        f"{situation}: labels cost {own.mean():.4g}, compared to {other.mean():.4g} without (error {error:.2g})",
    )
