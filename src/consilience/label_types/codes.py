"""Names and codes of the labels of a finite space: accepted as they come, computed with as integers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, IntArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError

__all__ = ["Codebook", "checked_names", "is_listed", "locate", "plain_value"]

#: Whole numbers from here on are not codes, and floats cannot tell them apart.
BEYOND = 2**53
ABSTAIN_STEP = "Correct it, or name the value that means 'abstains' (Votes.from_matrix(..., abstain=...))."


@dataclass(frozen=True)
class Codebook:
    """The k labels of a finite space, with one name per code or None where labels are just ``0 .. k-1``.

    For messages, `noun` is what to call a label ("class" or "node"), and `builder` how the user would name the labels.
    """

    names: tuple[Any, ...] | None
    k: int
    noun: str
    builder: str

    @classmethod
    def of_names(cls, names: Sequence[Any], noun: str, builder: str) -> Codebook:
        """Return the codebook of these names, or say which one is unfit."""
        plain = tuple(plain_value(name) for name in names)
        if any(is_null(name) for name in plain):
            raise InvalidLabelError(f"A {noun} cannot be called None or NaN: these mean that a source abstains.")
        unfit = next((name for name in plain if not isinstance(name, Hashable)), None)
        if unfit is not None:
            raise InvalidLabelError(f"A {noun} cannot be called {unfit!r}. Use text or numbers.")
        if len(set(plain)) < len(plain):
            twice = next(name for name in plain if plain.count(name) > 1)
            raise InvalidLabelError(f"{noun.capitalize()} {twice!r} is named twice. Name each one once.")
        return cls(plain, len(plain), noun, builder)

    @property
    def numeric_names(self) -> bool:
        """Whether numbers among the votes are names rather than codes."""
        return self.names is not None and any(isinstance(name, (int, float)) for name in self.names)

    @property
    def expected(self) -> str:
        """What a label should have been, for messages."""
        if self.names is None:
            return f"a {self.noun} 0 .. {self.k - 1} of the {self.k} there are"
        shown = ", ".join(repr(name) for name in self.names[:6])
        return f"a known {self.noun} ({shown}{', ...' if self.k > 6 else ''})"

    def encode(self, array: Batch) -> Batch:
        """Return the codes of labels given as codes, whole floats or names."""
        if array.dtype.kind in "biu" and not self.numeric_names:
            return self.check(array)
        if array.dtype.kind == "f" and not self.numeric_names:
            return self.check(self._whole(array))
        return self._from_objects(array)

    def decode(self, codes: Batch, like: npt.DTypeLike | None) -> Batch:
        """Return names, or the codes where the votes came as codes."""
        if self.names is None or (like is not None and np.dtype(like).kind in "biuf" and not self.numeric_names):
            return codes.astype(np.int64)
        names: Batch = np.array(self.names)
        if names.dtype.kind not in "biuf" or self.names != tuple(names.tolist()):
            names = as_object_array(self.names)
        return np.asarray(names[codes.astype(np.int64)])

    def check(self, codes: Batch) -> Batch:
        """Return integer codes in the smallest type, or name the first that is out of range."""
        wrong = (codes < 0) | (codes >= self.k)
        if wrong.any():
            raise locate(codes, wrong, self.expected, ABSTAIN_STEP)
        return codes if codes.dtype == self._small else codes.astype(self._small)

    def check_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        """Return a table of integer codes as it is, or name its first wrong cell; None for other types."""
        if labels.ndim != 2 or labels.dtype.kind not in "iu" or self.numeric_names:
            return None
        unsigned = labels.view(labels.dtype.str.replace("i", "u"))  # a negative code becomes a huge one
        wrong = (unsigned >= self.k) & observed
        if wrong.any():
            raise locate(labels.ravel(), wrong.ravel(), self.expected, ABSTAIN_STEP)
        return labels if labels.dtype == self._small else labels.astype(self._small)

    @property
    def _small(self) -> np.dtype[Any]:
        return np.dtype(np.int8 if self.k <= 127 else np.int32)

    def _whole(self, array: Batch) -> Batch:
        wrong = ~(np.abs(array) < BEYOND) | (array != np.round(array))
        if wrong.any():
            step = "Round it if it is one; real-valued labels need a space of their own, such as Metric."
            raise locate(array, wrong, self.expected, step)
        return array.astype(np.int64)

    def _from_objects(self, array: Batch) -> Batch:
        values, inverse = factorise(array)
        if self.names is None:
            wrong = np.array([not _is_code(value) for value in values], dtype=bool)
            if wrong.any():
                raise locate(array, wrong[inverse], self.expected, f"To use names, say {self.builder}.")
            return self.check(np.array([int(value) for value in values], dtype=np.int64)[inverse])
        known = {name: code for code, name in enumerate(self.names)}
        codes = np.array([self._code(value, known) for value in values], dtype=np.int64)
        if (codes < 0).any():
            step = f"Correct the spelling, add it to {self.builder}, or leave the cell empty to abstain."
            raise locate(array, (codes < 0)[inverse], self.expected, step)
        return self.check(codes[inverse])

    def _code(self, value: Any, known: dict[Any, int]) -> int:
        try:
            code = known.get(value, -1)
        except TypeError:  # unhashable: certainly not a name
            return -1
        if code < 0 and not self.numeric_names and _is_code(value) and value < self.k:
            return int(value)
        return code


def factorise(array: Batch) -> tuple[list[Any], IntArray]:
    """Return the distinct values of any types, and which of them each cell holds."""
    index: dict[Any, int] = {}
    inverse = np.empty(len(array), dtype=np.int64)
    for position, value in enumerate(array.tolist()):
        try:
            inverse[position] = index.setdefault(value, len(index))
        except TypeError:
            raise InvalidLabelError(
                f"label {value!r} is a {type(value).__name__}, which cannot name one label.", position
            ) from None
    return list(index), inverse


def locate(labels: Sequence[Any] | Batch, wrong: npt.NDArray[np.bool_], expected: str, step: str) -> InvalidLabelError:
    """Return the error for the first wrong label of a batch."""
    index = int(np.flatnonzero(wrong)[0])
    return InvalidLabelError(f"label {plain_value(labels[index])!r} is not {expected}. {step}", index)


def plain_value(value: Any) -> Any:
    """Return a Python number instead of a NumPy one."""
    return value.item() if isinstance(value, np.generic) else value


def _is_code(value: Any) -> bool:
    number = plain_value(value)  # numbers from NumPy count like any others
    return isinstance(number, (bool, int, float)) and 0 <= number < BEYOND and number == int(number)


def is_listed(value: Any) -> bool:
    """Return whether a value is a list, a tuple or an array: not text, a record or a number."""
    return isinstance(value, (list, tuple)) or np.ndim(value) > 0


def checked_names(setting: str, names: Any, noun: str, example: str) -> tuple[str, ...] | None:
    """Return names of a setting such as ``classes=`` as a tuple, or say what is wrong with them; None stays None."""
    if names is None:
        return None
    if not is_listed(names):
        raise InvalidLabelError(f"{setting}={names!r} is not a list of names. Give one such as {example}.")
    found = tuple(str(name) if isinstance(name, np.str_) else name for name in names)
    unfit = next((name for name in found if not isinstance(name, str) or not name), None)
    if not found or unfit is not None:
        raise InvalidLabelError(f"{setting} holds {unfit!r}. Give at least one name, each a text that is not empty.")
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise InvalidLabelError(f"{noun} {twice!r} is named twice. Name each one once.")
    return found
