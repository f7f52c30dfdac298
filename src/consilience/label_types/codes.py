"""Names and codes of the labels of a finite space: accepted as they come, computed with as integers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError

__all__ = ["Codebook", "checked_names", "is_listed", "locate", "plain_value"]

#: Whole numbers from here on are not codes, and floats cannot tell them apart.
BEYOND = 2**53


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
        _refuse_twice(plain, noun.capitalize())
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
        kind, numeric_names = array.dtype.kind, self.numeric_names
        if kind in "biu" and not numeric_names:
            return self.check(array)
        if kind == "f" and not numeric_names:
            wrong = ~(np.abs(array) < BEYOND) | (array != np.round(array))
            if wrong.any():
                step = "Round it if it is one; real-valued labels need a space of their own, such as Metric."
                raise locate(array, wrong, self.expected, step)
            return self.check(array.astype(np.int64))
        known = {name: code for code, name in enumerate(self.names or ())}
        below = BEYOND if self.names is None else 0 if numeric_names else self.k  # numbers that are taken for codes
        codes = np.empty(len(array), dtype=np.int64)
        for position, value in enumerate(array.tolist()):
            try:
                code = known.get(value)
            except TypeError:
                raise InvalidLabelError(
                    f"label {value!r} is a {type(value).__name__}, which cannot name one label.", position
                ) from None
            if code is None:
                number = plain_value(value)  # numbers from NumPy count like any others
                is_code = isinstance(number, (int, float)) and 0 <= number < below and number == int(number)
                code = known[value] = int(number) if is_code else -1
            codes[position] = code
        if (codes < 0).any():
            step = f"Correct the spelling, add it to {self.builder}, or leave the cell empty to abstain."
            step = f"To use names, say {self.builder}." if self.names is None else step
            raise locate(array, codes < 0, self.expected, step)
        return self.check(codes)

    def decode(self, codes: Batch, like: npt.DTypeLike | None) -> Batch:
        """Return names, or the codes where the votes came as codes."""
        if self.names is None or (like is not None and np.dtype(like).kind in "biuf" and not self.numeric_names):
            return codes.astype(np.int64)
        names: Batch = np.array(self.names)
        if names.dtype.kind not in "biuf" or self.names != tuple(names.tolist()):
            names = as_object_array(self.names)
        return np.asarray(names[codes.astype(np.int64)])

    def check(self, codes: Batch, observed: BoolArray | None = None) -> Batch:
        """Return integer codes in the smallest type, or name the first that is out of range."""
        wrong = (codes < 0) | (codes >= self.k)
        if observed is not None:
            wrong &= observed
        if wrong.any():
            step = "Correct it, or name the value that means 'abstains' (Votes.from_matrix(..., abstain=...))."
            raise locate(codes.ravel(), wrong.ravel(), self.expected, step)
        return codes.astype(np.int8 if self.k <= 127 else np.int32, copy=False)

    def check_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        """Return a table of integer codes as it is, or name its first wrong cell; None for other types."""
        if labels.ndim != 2 or labels.dtype.kind not in "iu" or self.numeric_names:
            return None
        return self.check(labels, observed)


def locate(labels: Sequence[Any] | Batch, wrong: npt.NDArray[np.bool_], expected: str, step: str) -> InvalidLabelError:
    """Return the error for the first wrong label of a batch."""
    index = int(np.flatnonzero(wrong)[0])
    return InvalidLabelError(f"label {plain_value(labels[index])!r} is not {expected}. {step}", index)


def plain_value(value: Any) -> Any:
    """Return a Python number instead of a NumPy one."""
    return value.item() if isinstance(value, np.generic) else value


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
    _refuse_twice(found, noun)
    return found


def _refuse_twice(names: tuple[Any, ...], noun: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidLabelError(f"{noun} {twice!r} is named twice. Name each one once.")
