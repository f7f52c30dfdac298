"""Classes: a label is one of k categories; the cost is 0 or 1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, FloatArray, as_floats, as_object_array, is_null
from consilience.estimation.protocol import Law
from consilience.exceptions import InvalidLabelError
from consilience.label_types.base import CodedSpace, Unit, as_numbers
from consilience.label_types.classes.law import ClassesLaw
from consilience.label_types.codes import plain_value, read_each, read_names

__all__ = ["Classes"]


@dataclass(frozen=True, init=False)
class Classes(CodedSpace):
    """One of k classes.

    A vote is a class (its name, or its code ``0 .. k-1``), a set of classes ("one of these"), or a row of k
    probabilities. Predictions are names or codes, like the votes.

    Parameters
    ----------
    names_or_k
        The names of the classes, or how many there are.

    Examples
    --------
    >>> space = Classes(["ham", "spam"])
    >>> space.as_batch(["spam", "ham"]).tolist()
    [1, 0]
    >>> Classes(3).k
    3
    """

    right_or_wrong: ClassVar[bool] = True
    noun: ClassVar[str] = "class"
    naming: ClassVar[str] = "Classes([...])"

    names: tuple[Any, ...] | None
    k: int

    def __init__(self, names_or_k: int | Iterable[Any]) -> None:
        names, k = read_names(names_or_k, "class", f"Classes({names_or_k!r})")
        unfit = next((name for name in names or () if isinstance(name, _SOFT)), None)
        if unfit is not None:  # a vote for it would look like a row of probabilities or a set of classes
            raise InvalidLabelError(f"A class cannot be called {unfit!r}. Use text or numbers.")
        if k < 2:
            raise InvalidLabelError(f"Classes needs at least 2 classes, got {k}.")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "k", k)

    def __repr__(self) -> str:
        return f"Classes({self.k if self.names is None else list(self.names)})"

    @classmethod
    def of(cls, labels: Any) -> Classes:
        """Return the space of the classes in votes, a frame or an array, in sorted order.

        Examples
        --------
        >>> Classes.of([["spam", "ham"], [None, "spam"]]).names
        ('ham', 'spam')
        """
        observed = getattr(labels, "observed", None)
        values = np.ravel(np.array(labels, dtype=object)) if observed is None else labels.labels[observed]
        seen = {plain_value(value) for value in values.tolist() if not is_null(value)}
        return cls(sorted(seen, key=lambda value: (str(type(value)), value)))

    @property
    def law(self) -> Law:
        return ClassesLaw(self.k)

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        left, right = np.asarray(left), np.asarray(right)
        if left.ndim == right.ndim == 1:
            return (left != right).astype(np.float64)
        one, two = (side if side.ndim == 2 else np.eye(self.k)[side.astype(np.int64)] for side in (left, right))
        return np.asarray(0.5 * np.abs(one - two).sum(axis=1))  # total variation distance of probabilities

    def embed(self, batch: Batch) -> FloatArray:
        """Return one indicator per class, or the probabilities of soft labels."""
        labels = np.asarray(batch)
        return labels.astype(np.float64) if labels.ndim == 2 else np.eye(self.k)[labels.astype(np.int64)]

    def as_batch(self, labels: Any) -> Batch:
        array = as_numbers(labels)
        if array.ndim == 2:
            return self._soft_rows(array)
        if array.dtype == object and any(isinstance(value, _SOFT) for value in array.tolist()):
            return np.array(read_each(array.tolist(), self._row)).reshape(-1, self.k)
        return super().as_batch(array)

    def excluding(self, *classes: Any) -> frozenset[Any]:
        """Return the vote "none of these classes".

        Examples
        --------
        >>> sorted(Classes(["cat", "dog", "bird"]).excluding("cat"))
        ['bird', 'dog']
        """
        out = set(super().as_batch(as_object_array(classes)).tolist())
        everything = range(self.k) if self.names is None else self.names
        return frozenset(name for code, name in enumerate(everything) if code not in out)

    def unit(self, parameters: Any) -> Unit:
        return Unit("error_rate", "how often a vote is wrong")

    def score(self, predicted: Batch, gold: Batch) -> float:
        """Return the accuracy."""
        return float((predicted == gold).mean()) if len(gold) else float("nan")

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        wrong = rng.random(len(centers)) < ClassesLaw(self.k).expected_cost(np.array([weight]))[0]
        other = (centers + rng.integers(1, self.k, size=len(centers))) % self.k
        return np.where(wrong, other, centers)

    def spec(self) -> dict[str, Any]:
        return {"names_or_k": self.k if self.names is None else list(self.names)}

    def _soft_rows(self, array: Batch) -> Batch:
        if array.shape[1] != self.k:
            raise InvalidLabelError(
                f"a row of {array.shape[1]} numbers is not a soft vote over {self.k} classes. "
                f"Give {self.k} probabilities per vote.",
                0,
            )
        rows = array.astype(np.float64)
        total = rows.sum(axis=1)
        wrong = ~np.isfinite(total) | (rows < 0).any(axis=1) | (np.abs(total - 1.0) > 1e-3)
        if wrong.any():
            expected = f"a row of {self.k} probabilities that add up to 1"
            index = int(np.flatnonzero(wrong)[0])
            raise InvalidLabelError(f"label {rows[index].tolist()} is not {expected}. Normalize the row.", index)
        return np.asarray(rows / total[:, None])

    def _row(self, value: Any) -> FloatArray:
        row = np.zeros(self.k)
        if isinstance(value, (set, frozenset)):
            if not value:
                raise InvalidLabelError("an empty set of classes is not a vote. Use None to abstain.")
            row[super().as_batch(as_object_array(value)).astype(np.int64)] = 1.0 / len(value)
        elif isinstance(value, _SOFT):
            numbers = as_floats(value)
            if numbers is None:
                raise InvalidLabelError(
                    f"label {value!r} is not a row of probabilities. Write 'one of these classes' as a set."
                )
            return self._soft_rows(numbers.reshape(1, -1))[0]
        else:
            row[int(super().as_batch(as_object_array([value]))[0])] = 1.0
        return row


#: Votes for several classes: a set means "one of these", a sequence is a row of probabilities.
_SOFT = (set, frozenset, list, tuple, np.ndarray)
