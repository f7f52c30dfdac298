"""Named arrays that add up: what a pass over the votes brings back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Sums"]


@dataclass(frozen=True)
class Sums:
    """Named arrays that add up: integers exactly, floats to rounding.

    Examples
    --------
    >>> total = Sums({"votes": np.array([1, 2])}) + Sums({"votes": np.array([3, 4])})
    >>> total["votes"].tolist()
    [4, 6]
    >>> (total + Sums.zero())["votes"].tolist()
    [4, 6]
    """

    parts: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def zero(cls) -> Sums:
        """Return the neutral element of addition."""
        return cls({})

    def __add__(self, other: Sums) -> Sums:
        names = [*self.parts, *(name for name in other.parts if name not in self.parts)]
        return Sums({name: _add(self.parts.get(name), other.parts.get(name)) for name in names})

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.parts[name]

    def __contains__(self, name: str) -> bool:
        return name in self.parts


def _add(left: npt.NDArray[Any] | None, right: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    if left is None or right is None:
        return np.asarray(right if left is None else left)
    total: npt.NDArray[Any] = left + right
    return total
