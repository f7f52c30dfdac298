"""Anything with a distance: the universal label space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.exceptions import DistanceError, InvalidLabelError, ModelFormatError, UnsupportedError
from consilience.label_types.base import LabelSpace, as_numbers, check_distances
from consilience.label_types.codes import plain_value
from consilience.label_types.metric.law import MetricLaw
from consilience.label_types.pair_costs import cost_table, drawn_from
from consilience.label_types.registry import distance_by_name, name_of_distance


@dataclass(frozen=True, init=False, eq=False)
class Metric(LabelSpace):
    """Labels of any kind, with your own distance function.

    Parameters
    ----------
    distance
        A function of two labels that returns a number, or of two batches that returns one number per pair (see
        `vectorized`), or the name of a registered distance.
    candidates
        Labels to choose from. Without them the best vote is chosen.
    embed
        A function from a batch of labels to ``(n, d)`` coordinates, or "mds", which learns coordinates from the
        distances by landmark multidimensional scaling. By default only the distances are used.
    vectorized
        Whether `distance` takes batches. None detects it with one call.

    Examples
    --------
    >>> space = Metric(lambda left, right: abs(len(left) - len(right)), candidates=["a", "bb", "cccc"])
    >>> space.distance(space.as_batch(["a", "bb"]), space.as_batch(["cccc", "bb"])).tolist()
    [3.0, 0.0]
    """

    function: Callable[..., Any]
    candidates: Batch | None
    embedding: Callable[[Batch], FloatArray] | str | None
    vectorized: bool | None

    def __init__(
        self,
        distance: Callable[..., Any] | str,
        candidates: Sequence[Any] | Batch | None = None,
        embed: Callable[[Batch], FloatArray] | str | None = None,
        vectorized: bool | None = None,
    ) -> None:
        function = distance_by_name(distance) if isinstance(distance, str) else distance
        if not callable(function):
            raise DistanceError(f"Metric needs a function of two labels, got {type(distance).__name__}.")
        if isinstance(embed, str) and embed != "mds":
            try:
                embed = distance_by_name(embed)
            except ModelFormatError:
                raise UnsupportedError(
                    f"embed={embed!r} is unknown. Use 'mds', a function, a registered name, or None."
                ) from None
        chosen = None if candidates is None else as_numbers(candidates)
        if chosen is not None and len(chosen) == 0:
            raise InvalidLabelError(
                "candidates is empty. Give at least one label, or leave it out to choose among votes."
            )
        if vectorized is not None and not isinstance(vectorized, bool):
            raise UnsupportedError(f"vectorized={vectorized!r:.60} is unknown. Use True, False, or None to detect it.")
        fields = {"function": function, "candidates": chosen, "embedding": embed, "vectorized": vectorized}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        parts = [getattr(self.function, "__name__", type(self.function).__name__)]
        if self.candidates is not None:
            parts.append(f"{len(self.candidates)} candidates")
        if self.embedding is not None:
            parts.append(f"embed={getattr(self.embedding, '__name__', self.embedding)!r}")
        return f"Metric({', '.join(parts)})"

    @property
    def law(self) -> MetricLaw:
        coordinates = self._coordinates if callable(self.embedding) else self.embedding
        pool = None if self.candidates is None else self.random
        return MetricLaw(self.cost, self.weighted_mean, coordinates, self.candidates, pool)

    def embed(self, batch: Batch) -> FloatArray | None:
        if not callable(self.embedding):
            return None
        points = np.asarray(self.embedding(batch), dtype=np.float64)
        if points.ndim != 2 or len(points) != len(batch) or not np.isfinite(points).all():
            raise DistanceError(
                f"embed returned shape {points.shape} for {len(batch)} labels; expected ({len(batch)}, d) "
                "finite numbers."
            )
        return points

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        if len(left) == 0:
            return np.zeros(0)
        if self.vectorized or (self.vectorized is None and not self._takes_two_labels(left, right)):
            return check_distances(self._call(left, right), left, right)
        numbers = np.empty(len(left))
        for index, (one, two) in enumerate(zip(left, right, strict=True)):
            value = self._call(one, two, index)
            try:
                if not isinstance(value, (int, float)) and np.ndim(value) != 0:
                    raise TypeError
                numbers[index] = float(value)
            except (TypeError, ValueError, OverflowError):
                raise DistanceError(
                    f"The distance function returned {value!r:.60} between {_pair(one, two, index)}; "
                    "expected one number. If it takes whole batches, pass vectorized=True."
                ) from None
        return check_distances(numbers, left, right)

    def _takes_two_labels(self, left: Batch, right: Batch) -> bool:
        try:
            first = self.function(left[0], right[0])
            return bool(np.ndim(first) == 0) and not isinstance(first, (str, bytes))
        except Exception:  # a function for batches may raise any error when it is called with two labels
            try:
                return bool(np.shape(self.function(left, right)) != (len(left),))
            except Exception:  # if both calls fail, the error for two labels is clearer
                return True

    def _call(self, left: Any, right: Any, index: int | None = None) -> Any:
        try:
            return self.function(left, right)
        except Exception as error:
            what = "two batches of labels" if index is None else _pair(left, right, index)
            raise DistanceError(
                f"The distance function raised {type(error).__name__}: {error}, called with {what}. "
                "Correct it, or leave out the labels it cannot compare."
            ) from error

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        if self.candidates is None:
            raise UnsupportedError(
                "Metric cannot draw random labels from a distance alone. Pass candidates=, or subclass LabelSpace and "
                "write `random`."
            )
        return self.candidates[rng.integers(len(self.candidates), size=n)]

    def as_batch(self, labels: Any) -> Batch:
        return as_numbers(labels)

    def contains(self, label: object) -> bool:
        return False  # any object may be a label, so no object can mean "abstains"

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        if self.candidates is None:
            return super().weighted_mean(votes, weights)
        totals = np.zeros((len(weights), len(self.candidates)))
        for source in range(weights.shape[1]):
            rows = np.flatnonzero(weights[:, source] > 0)
            if len(rows):
                costs = cost_table(self.cost, votes[rows, source], self.candidates)
                totals[rows] += weights[rows, source, None] * costs
        return self.candidates[totals.argmin(axis=1)]

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        if self.candidates is None:
            return super().sample_around(centers, weight, rng)
        return drawn_from(self.cost, self.candidates, centers, weight, rng)

    def spec(self) -> dict[str, Any]:
        return {
            "distance": name_of_distance(self.function),
            "candidates": self.candidates,
            "embed": name_of_distance(self.embedding) if callable(self.embedding) else self.embedding,
            "vectorized": self.vectorized,
        }


def _pair(left: Any, right: Any, index: int) -> str:
    return f"{plain_value(left)!r} and {plain_value(right)!r} (pair {index})"
