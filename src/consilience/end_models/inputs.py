"""What the end models share: a base class, and checks of their inputs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from consilience.arrays import FloatArray, as_floats
from consilience.exceptions import InvalidInputError, NotFittedError, UnsupportedError
from consilience.label_model import Configurable


class EndModel(Configurable):
    """A model with settings and a fitted state."""

    #: An attribute that only a fitted model has.
    learned: ClassVar[str]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self.learned)

    def _require_fitted(self) -> None:
        if not hasattr(self, self.learned):
            raise NotFittedError(f"This {type(self).__name__} has not been fitted. Call fit(X, y) first.")


def check_count(name: str, value: Any) -> None:
    """Refuse a setting that is not a positive integer."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise UnsupportedError(f"{name}={value!r} is not a positive integer.")


def as_numbers(values: Any, name: str, remedy: str) -> FloatArray:
    """Return an array of floats, or raise an error with a remedy."""
    numbers = as_floats(values)
    if numbers is None:
        raise InvalidInputError(f"{name} holds values that are not numbers. {remedy}")
    return numbers


def read_weights(sample_weight: Any, n_items: int) -> FloatArray:
    """Return one weight per item, ones where none are given."""
    if sample_weight is None:
        return np.ones(n_items)
    weights = as_numbers(sample_weight, "sample_weight", "Pass one number per item.")
    if weights.shape != (n_items,):
        raise InvalidInputError(f"sample_weight has shape {weights.shape}; expected one number per item, ({n_items},).")
    for row in np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[:1].tolist():
        raise InvalidInputError(
            f"sample_weight of row {row} is {weights[row]:g}. Weights are finite and not negative; 0 leaves it out."
        )
    return weights
