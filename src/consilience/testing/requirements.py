"""What checks of label models demand, and the error they raise."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from consilience.arrays import FloatArray
from consilience.exceptions import ConsilienceError

__all__ = ["LabelModelCheckError", "demand_of", "not_worse", "require"]


class LabelModelCheckError(ConsilienceError, AssertionError):
    """A label model does not behave as it should."""


def require(condition: bool | np.bool_, message: str) -> None:
    """Raise the message unless the condition holds."""
    if not condition:
        raise LabelModelCheckError(message)


def not_worse(own: FloatArray, other: FloatArray, slack: float, situation: str, errors: float = 2.0) -> None:
    """Require a mean cost below the other one plus slack and some standard errors of the paired difference."""
    error = float((own - other).std() / np.sqrt(len(own)))
    require(
        own.mean() <= (1.0 + slack) * other.mean() + errors * error,
        f"{situation}: labels cost {own.mean():.4g}, compared to {other.mean():.4g} without (error {error:.2g})",
    )


def demand_of(check: Callable[..., Any]) -> str:
    """Return what a check demands, in one line: the beginning of its docstring.

    Examples
    --------
    >>> demand_of(require)
    'Raise the message unless the condition holds.'
    """
    return " ".join((inspect.getdoc(check) or "").split("\n\n")[0].split())
