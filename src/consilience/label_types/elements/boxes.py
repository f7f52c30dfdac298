"""Sets of boxes, as drawn on images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from consilience.arrays import FloatArray
from consilience.exceptions import InvalidLabelError
from consilience.label_types.elements.law import ElementLaw
from consilience.label_types.elements.reader import ElementReader, class_names
from consilience.label_types.elements.space import ElementSpace

__all__ = ["Boxes"]

#: Overlap from which boxes of two sources may mean the same object, and how often false ones coincide.
THRESHOLD, COINCIDENCE = 0.4, 0.01
#: Side of images in simulations.
USUAL_SIDE = 1000.0


@dataclass(frozen=True)
class Boxes(ElementSpace):
    """Sets of boxes; the cost is one minus the F1 of boxes matched one to one, where a match counts its overlap.

    A label is a list of ``(x1, y1, x2, y2)``, or of ``(x1, y1, x2, y2, class)``: two opposite corners with
    ``x1 <= x2`` and ``y1 <= y2``. The empty list says that there is nothing; None abstains.

    Boxes are matched across sources. Each match is real or false, by who drew it and who did not; those that make the
    largest expected F1 are kept, at the weighted medians of their corners, with the class of most weight.

    Parameters
    ----------
    classes
        Names of the classes, where boxes have some.
    size
        Width and height of the images, where all have the same: boxes beyond it are refused.

    Examples
    --------
    >>> from consilience import LabelModel
    >>> votes = [[[(i, 0, i + 9, 9)], [(i, 0, i + 9, 9)], [(i, 0, i + 8, 9), (90, 0, 95, 7)]] for i in range(40)]
    >>> labels = LabelModel(Boxes()).fit(votes).predict([*votes, [[], [], [(3, 3, 9, 9)]]])
    >>> labels[7], labels[40]
    (array([[ 7.,  0., 16.,  9.]]), array([], shape=(0, 4), dtype=float64))
    """

    classes: Sequence[str] | None = None
    size: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", class_names(self.classes))
        object.__setattr__(self, "size", _size(self.size))

    @cached_property
    def reader(self) -> ElementReader:
        """How boxes are written."""
        return ElementReader("box", ("x1", "y1", "x2", "y2"), self.classes, self.size)

    @cached_property
    def elements(self) -> ElementLaw:
        """How boxes scatter."""
        return ElementLaw(2, THRESHOLD, COINCIDENCE, len(self.classes or ()))

    def random_elements(self, count: int, rng: np.random.Generator) -> FloatArray:
        width, height = self.size or (USUAL_SIDE, USUAL_SIDE)
        middle = rng.uniform(0.0, 1.0, (count, 2)) * (width, height)
        sides = np.exp(rng.normal(-2.4, 0.4, (count, 2))) * (width, height)
        return self.in_order(np.hstack([middle - sides / 2, middle + sides / 2]))

    def spec(self) -> dict[str, Any]:
        return {"classes": None if self.classes is None else list(self.classes), "size": self.size}


def _size(size: Any) -> tuple[float, float] | None:
    if size is None:
        return None
    try:
        width, height = (float(side) for side in size)
    except (TypeError, ValueError):
        raise InvalidLabelError(
            f"size={size!r} is not (width, height). Give two numbers, such as (640, 480)."
        ) from None
    if not (0.0 < width < np.inf and 0.0 < height < np.inf):
        raise InvalidLabelError(f"size={size!r} is not (width, height). Give two positive numbers, such as (640, 480).")
    return width, height
