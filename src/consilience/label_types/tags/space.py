"""Tags: several yes-or-no labels per item; and sequences: one tag per position."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError, did_you_mean
from consilience.label_types.base import LabelSpace, Unit
from consilience.label_types.codes import ABSENT, first_few, plain_value, read_each, read_names, read_rows
from consilience.label_types.tags.bio import follows_bio, may_follow
from consilience.label_types.tags.law import UNKNOWN, TagLaw
from consilience.lazy import pyarrow as pa

#: Lengths of random sequences.
SHORTEST, LONGEST = 3, 7


class _TagSpace(LabelSpace):
    """The common part of tags and sequences: names, codes, and the share of differences as the cost.

    A batch has one small integer per tag or position, `UNKNOWN` for no opinion; sequences are padded with `ABSENT`.
    """

    names: tuple[str, ...] | None
    size: int

    def _set_tags(self, tags: Any, least: int) -> None:
        space = type(self).__name__
        names, size = read_names(tags, "tag", f"{space}({tags!r})", text=True)
        if size < least:
            raise InvalidLabelError(f"{space} needs at least {least} tag(s), got {size}.")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "size", size)

    @property
    @abstractmethod
    def law(self) -> TagLaw: ...

    @property
    @abstractmethod
    def _expected(self) -> str:
        """What a label should have been, for messages."""

    @abstractmethod
    def _read(self, value: Any) -> list[int]:
        """Return the codes of one label, or raise an error."""

    @abstractmethod
    def _complaint(self, place: int) -> str:
        """Return the message about a code out of range at this position."""

    @property
    def _dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int8 if self.law.n_answers <= 127 else np.int32)

    @property
    def _codes(self) -> range:
        """Valid codes; only sequences are padded."""
        return range(ABSENT if self.law.n_tags is None else UNKNOWN, self.law.n_answers)

    def as_batch(self, labels: Any) -> Batch:
        array, width = labels if isinstance(labels, np.ndarray) else as_object_array(labels), self.law.n_tags
        if array.dtype.kind in "biuf" and array.ndim == 2 and array.shape[1] == (width or array.shape[1]):
            values = np.where(np.isnan(array), UNKNOWN, array) if array.dtype.kind == "f" else array.astype(np.int64)
            wrong = (values < self._codes[0]) | (values > self._codes[-1]) | (values != np.round(values))
            wrong[:, :-1] |= (values[:, :-1] == ABSENT) & (values[:, 1:] != ABSENT)  # padding is only at the end
            if wrong.any():
                row, place = (int(index) for index in np.argwhere(wrong)[0])
                raise InvalidLabelError(self._wrong(array[row].tolist(), place), row)
            return values.astype(self._dtype)
        rows = read_each(array, self._read)
        table = np.full((len(rows), width or max(map(len, rows), default=0)), ABSENT, dtype=self._dtype)
        for row, codes in zip(table, rows, strict=True):
            row[: len(codes)] = codes
        return table

    def _cells(self, value: Any, step: str) -> list[Any]:
        """Return the entries of a list, tuple or one-dimensional array, or raise an error."""
        if isinstance(value, np.ndarray) and value.ndim == 1:
            return list(value.tolist())
        if isinstance(value, (list, tuple)):
            return list(value)
        kind = "a single number" if np.isscalar(value) else f"a {type(value).__name__}"
        kind = "text" if isinstance(value, (str, bytes)) else kind
        raise InvalidLabelError(f"label {plain_value(value)!r} is {kind}, not {self._expected}. Write {step}.")

    def _from_numbers(self, cells: list[Any]) -> list[int]:
        """Return the codes of one label that is given by numbers."""
        whole, allowed = all(type(cell) is int for cell in cells), self._codes
        codes = cells if whole else [UNKNOWN if is_null(cell) else plain_value(cell) for cell in cells]
        for place, code in enumerate(codes):
            if not isinstance(code, (bool, int, float)) or code not in allowed:
                raise InvalidLabelError(self._wrong(cells, place))
        return [int(code) for code in codes if code != ABSENT]

    def _wrong(self, cells: list[Any], place: int) -> str:
        held = f"label {_shown(cells)} holds {plain_value(cells[place])!r} at position {place}"
        return f"{held}{self._complaint(place)}"

    def _code(self, name: Any, given: list[Any]) -> int:
        names = self.names or ()
        if name in names:
            return names.index(name)
        hint = f"{did_you_mean(name, names)} Tags: {first_few(names, 8)}."
        raise InvalidLabelError(f"label {_shown(given)} holds {name!r}, which is not a tag.{hint}")

    def has_opinion(self, batch: Batch) -> BoolArray:
        return np.asarray((batch >= 0).any(axis=1))

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        both = (left >= 0) & (right >= 0)
        return np.asarray(((left != right) & both).sum(axis=1) / np.maximum(both.sum(axis=1), 1))

    def embed(self, batch: Batch) -> FloatArray:
        """Return one sign per place, or for more than two tags one indicator per place and tag; 0 means no opinion."""
        codes = np.stack(batch.tolist()) if batch.dtype == object else batch
        if self.law.n_answers == 2:
            return np.where(codes < 0, 0.0, 2.0 * codes - 1.0)
        placed = (codes[..., None] == np.arange(self.law.n_answers)).astype(np.float64)
        return placed.reshape(len(codes), -1)

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        wrong = rng.random(centers.shape) < self.law.expected_cost(np.array([weight]))[0]
        other = (centers + rng.integers(1, self.law.n_answers, size=centers.shape)) % self.law.n_answers
        return np.where(wrong & (centers >= 0), other, centers).astype(centers.dtype)

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the tag of largest weight at every place, in a tie that of the lower code."""
        counts = [((votes == code) * weights[:, :, None]).sum(axis=1) for code in range(self.law.n_answers)]
        told = np.max(counts, axis=0) > 0
        there = ((votes != ABSENT) & (weights > 0)[:, :, None]).any(axis=1)
        chosen = np.where(told, np.argmax(counts, axis=0), np.where(there, UNKNOWN, ABSENT))
        return chosen.astype(votes.dtype)

    def to_arrow(self, batch: Batch) -> pa.Array:
        """Return lists of codes or names, with nulls for missing labels."""
        rows: list[list[Any] | None] = []
        for label in batch:
            missing = is_null(label)
            if isinstance(label, np.ndarray):
                missing = len(label) > 0 and label.dtype.kind in "if" and bool((label == UNKNOWN).all())
            codes = sorted(label) if isinstance(label, (set, frozenset)) else label
            rows.append(None if missing else [plain_value(value) for value in codes])
        named = any(isinstance(label, (set, frozenset)) for label in batch)
        named = named or any(isinstance(value, str) for row in rows if row is not None for value in row)
        return pa.array(rows, type=pa.list_(pa.string() if named else pa.int32()))

    def spec(self) -> dict[str, Any]:
        return {"tags": self.size if self.names is None else list(self.names)}


@dataclass(frozen=True, init=False, repr=False)
class Tags(_TagSpace):
    """Several tags per item, each present or not.

    The cost is the share of tags that differ, between 0 and 1. Tags without an opinion in one of the two labels (None,
    NaN or -1 inside a label) are not compared.

    Parameters
    ----------
    tags
        The number of tags, or their names. A label is a vector of zeros and ones, or a set of names.

    Examples
    --------
    >>> from consilience import LabelModel
    >>> votes = [
    ...     [{"news"}, {"news"}, {"news", "sport"}],
    ...     [{"sport"}, {"sport"}, set()],
    ...     [{"news", "sport"}, {"news", "sport"}, {"sport"}],
    ...     [set(), {"news"}, set()],
    ... ] * 25
    >>> model = LabelModel(Tags(["news", "sport"])).fit(votes)
    >>> [sorted(label) for label in model.predict(votes)[:3]]
    [['news'], ['sport'], ['news', 'sport']]
    >>> Tags(3).distance(np.array([[0, 1, 1]]), np.array([[1, 1, 1]])).round(2)
    array([0.33])
    """

    names: tuple[str, ...] | None
    size: int

    def __init__(self, tags: int | Iterable[str]) -> None:
        self._set_tags(tags, least=1)

    @cached_property
    def law(self) -> TagLaw:
        free = np.ones((2, 2), dtype=bool)
        return TagLaw(2, self.size, binary=True, chain=False, first=free[0], steps=free)

    def unit(self, parameters: Any) -> Unit:
        return Unit("error_rate", "the share of tags that are wrong")

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        return rng.integers(2, size=(n, self.size)).astype(np.int8)

    @property
    def _expected(self) -> str:
        return f"a vector of {self.size} zeros and ones" + ("" if self.names is None else " or a set of tag names")

    def _read(self, value: Any) -> list[int]:
        is_set = isinstance(value, (set, frozenset))
        step = f"{{{value!r}}}" if isinstance(value, str) else f"a vector such as {[0] * self.size}"
        cells = list(value) if is_set else self._cells(value, step)
        if is_set and self.names is None:
            raise InvalidLabelError(
                f"label {_shown(cells)} is a set of names, but the tags have none. Give {self._expected}, or name "
                'the tags: Tags(["news", "sport", ...]).'
            )
        named = self.names is not None and all(isinstance(cell, str) for cell in cells)
        if is_set or (named and (cells or not isinstance(value, np.ndarray))):
            chosen = {self._code(name, cells) for name in cells}
            return [int(code in chosen) for code in range(self.size)]
        if len(cells) != self.size:
            raise InvalidLabelError(
                f"label {_shown(cells)} has {len(cells)} entries, not {self.size}. Give {self._expected}."
            )
        return self._from_numbers(cells)

    def read_text(self, cells: Batch) -> Batch:
        """Return text such as "news, sport" as a list of its tags; other cells stay."""
        names = self.names or ()
        return as_object_array(
            [tag.strip() for tag in re.split(r"[,;|]", cell) if tag.strip()]
            if isinstance(cell, str) and cell not in names
            else [cell]
            if isinstance(cell, str)
            else cell
            for cell in cells
        )

    def _complaint(self, place: int) -> str:
        name = "" if self.names is None else f" (tag {self.names[place]!r})"
        return f"{name}, which is neither 0 nor 1. Correct it; None or -1 is 'no opinion' on this tag."

    def as_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        if labels.ndim != 3 or labels.dtype.kind not in "biu" or labels.shape[2] != self.size:
            return None
        if labels.dtype.kind == "b":
            return labels.view(np.int8)
        wrong = ((labels < UNKNOWN) | (labels > 1)).any(axis=2) & observed
        return None if wrong.any() else labels.astype(np.int8, copy=False)  # as_batch raises the error

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        if self.names is None or (like is not None and np.dtype(like).kind in "biuf"):
            return batch.astype(np.int64)
        names = self.names
        return as_object_array(
            frozenset(name for name, code in zip(names, row, strict=True) if code == 1) for row in batch.tolist()
        )

    def from_arrow(self, column: pa.Array) -> Batch:
        rows = column.to_pylist()
        if any(row is None or len(row) != self.size or isinstance(row[0], str) for row in rows):
            return as_object_array(rows)
        return np.array(rows, dtype=np.int64).reshape(len(rows), self.size)


@dataclass(frozen=True, init=False, repr=False)
class Sequences(_TagSpace):
    """A sequence of any length with one tag per position.

    All sources label the same positions of an item. The cost is the share of positions that differ, between 0 and 1.
    Positions without an opinion in one of the two labels (None, NaN or -1) are not compared.

    Parameters
    ----------
    tags
        The names of the tags, or their number; zeros and ones by default.
    chain
        Whether neighboring tags depend on each other (a first-order Markov chain). If tags are named O, B-X, I-X, then
        I-X follows only B-X or I-X in predicted labels.

    Examples
    --------
    >>> from consilience import LabelModel
    >>> votes = [[["noun", "verb"], ["noun", "verb"], ["noun", "noun"]], [["verb"], ["verb"], ["verb"]]] * 20
    >>> LabelModel(Sequences(["noun", "verb"])).fit(votes).predict(votes)[0]
    ['noun', 'verb']
    """

    names: tuple[str, ...] | None
    size: int
    chain: bool

    def __init__(self, tags: int | Iterable[str] = 2, *, chain: bool = False) -> None:
        self._set_tags(tags, least=2)
        object.__setattr__(self, "chain", bool(chain))

    @property
    def _binary(self) -> bool:
        return self.names is None and self.size == 2

    @cached_property
    def law(self) -> TagLaw:
        first, steps = np.ones(self.size, dtype=bool), np.ones((self.size, self.size), dtype=bool)
        if self.chain and self.names is not None and follows_bio(self.names):
            first = np.array([may_follow("O", name) for name in self.names])
            steps = np.array([[may_follow(before, name) for name in self.names] for before in self.names])
        return TagLaw(self.size, None, self._binary, self.chain, first, steps)

    @property
    def _expected(self) -> str:
        return "a sequence with one tag per position"

    def _read(self, value: Any) -> list[int]:
        cells = self._cells(value, "a list of tags")
        if self.names is not None and any(isinstance(cell, str) for cell in cells):
            return [UNKNOWN if is_null(cell) else self._code(cell, cells) for cell in cells]
        return self._from_numbers(cells)

    def _complaint(self, place: int) -> str:
        tags = "0 or 1" if self._binary else f"a tag 0 .. {self.size - 1}"
        return f", which is not {tags}. Correct it; None or -1 is 'no opinion' on this position."

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        # Batches that were encoded separately may be padded to different widths.
        left, right = (np.stack(batch.tolist()) if batch.dtype == object else batch for batch in (left, right))
        sizes = [(batch != ABSENT).sum(axis=1) for batch in (left, right)]
        wrong = np.flatnonzero(sizes[0] != sizes[1])
        if len(wrong):
            pair = int(wrong[0])
            raise InvalidLabelError(
                f"Two sequences of {sizes[0][pair]} and {sizes[1][pair]} tags cannot be compared (pair {pair}). "
                "Give both the same positions."
            )
        width = int(sizes[0].max(initial=0))
        return super().distance(left[:, :width], right[:, :width])

    def unit(self, parameters: Any) -> Unit:
        return Unit("error_rate", "the share of positions with a wrong tag")

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        """Return `n` random valid sequences; row t of every call has the same length."""
        law, codes = self.law, np.empty((n, LONGEST), dtype=np.int64)
        for place in range(LONGEST):
            possible = law.steps[codes[:, place - 1]] if place else np.tile(law.first, (n, 1))
            codes[:, place] = np.where(possible, rng.random((n, self.size)), -1.0).argmax(axis=1)
        sizes = SHORTEST + np.arange(n) % (LONGEST - SHORTEST + 1)
        return np.where(np.arange(LONGEST) < sizes[:, None], codes, ABSENT).astype(self._dtype)

    def as_cells(self, labels: Batch, observed: BoolArray) -> Batch:
        """Return a padded table of sequences, or raise an error about one whose length differs from its row."""
        batch = read_rows(
            self.as_batch,
            labels,
            observed,
            lambda rows: (rows != ABSENT).sum(axis=1),
            "this sequence has {} tags, but that of the first source that votes on the item has {}. Give every source "
            "the same positions, with None for no opinion.",
        )
        table = np.full((*observed.shape, batch.shape[1]), ABSENT, dtype=batch.dtype)
        table[observed] = batch
        return table

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        sizes = (batch != ABSENT).sum(axis=1)
        rows = [row[:size] for row, size in zip(batch.astype(np.int64), sizes, strict=True)]
        if self.names is None or (like is not None and np.dtype(like).kind in "biuf"):
            return as_object_array(rows)
        names = (*self.names, None)  # -1 is the last one
        return as_object_array([names[code] for code in row.tolist()] for row in rows)

    def from_arrow(self, column: pa.Array) -> Batch:
        return as_object_array(column.to_pylist())

    def spec(self) -> dict[str, Any]:
        return super().spec() | {"chain": self.chain}


def _shown(cells: list[Any]) -> str:
    shown = [plain_value(cell) for cell in cells]
    return repr(shown) if len(shown) <= 12 else f"{shown[:12]!r} ...".replace("] ...", ", ...]")
