"""Tags: several yes-or-no labels per item, or one tag per position of a sequence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError
from consilience.families.base import Family
from consilience.families.tags import ABSENT, UNKNOWN, SequenceFamily, TagFamily
from consilience.label_types.base import LabelSpace
from consilience.label_types.codes import Codebook, plain_value
from consilience.spaces.bio import follows_bio, legal_starts, legal_steps
from consilience.spaces.tag_labels import TagReader

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Tags"]

#: Lengths of random sequences.
SHORTEST, LONGEST = 3, 7


@dataclass(frozen=True, init=False)
class Tags(LabelSpace):
    """Several tags per item, each present or not; or a sequence with one tag per position.

    The cost is the share of tags (positions) that differ, between 0 and 1. Where one of two labels has no opinion
    (None, NaN or -1 inside a label) the other is not compared.

    Parameters
    ----------
    tags
        How many tags there are, or their names. A label is then a vector of zeros and ones, or a set of names.
    sequence
        Whether a label is a sequence of any length with one tag per position: 0 or 1 if `tags` is not given, else
        one of `tags`. All sources see the same positions of an item.
    chain
        For sequences: whether neighbouring tags depend on each other (a first-order Markov chain). With tags named
        O, B-X, I-X, an I-X then follows B-X or I-X only, in every label that is predicted.

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
    sequence: bool
    chain: bool

    def __init__(self, tags: int | Iterable[str] | None = None, *, sequence: bool = False, chain: bool = False) -> None:
        names, size = _read_tags(tags, sequence)
        if chain and not sequence:
            raise InvalidLabelError("chain=True is for sequences of tags. Add sequence=True, or leave it out.")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "sequence", bool(sequence))
        object.__setattr__(self, "chain", bool(chain))

    def __repr__(self) -> str:
        shown = [] if self._binary_sequence else [str(self.size if self.names is None else list(self.names))]
        shown += [f"{name}=True" for name in ("sequence", "chain") if getattr(self, name)]
        return f"Tags({', '.join(shown)})"

    @cached_property
    def law(self) -> Family:
        if not self.sequence:
            return TagFamily(self.size)
        starts, steps = None, None
        if self.chain and self.names is not None and follows_bio(self.names):
            starts, steps = legal_starts(self.names), legal_steps(self.names)
        return SequenceFamily(self.size, self.chain, starts, steps, binary=self._binary_sequence)

    @property
    def _binary_sequence(self) -> bool:
        return self.sequence and self.names is None and self.size == 2

    @property
    def _reader(self) -> TagReader:
        return TagReader(self.names, self.size, self.sequence)

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        """Return the share of tags that differ, of those on which both have an opinion; sequences match in length."""
        if self.sequence:
            left, right = _same_length(left, right)
        both = (left >= 0) & (right >= 0)
        differ = ((left != right) & both).sum(axis=1)
        share: FloatArray = differ / np.maximum(both.sum(axis=1), 1)
        return share

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        """Return `n` random labels; row t of every call has the same length where labels are sequences."""
        if not self.sequence:
            return rng.integers(2, size=(n, self.size)).astype(np.int8)
        codes = rng.integers(self.size, size=(n, LONGEST))
        if isinstance(self.law, SequenceFamily) and self.law.steps is not None:
            codes = self.law.random_walks(n, LONGEST, rng)
        sizes = SHORTEST + np.arange(n) % (LONGEST - SHORTEST + 1)
        return np.where(np.arange(LONGEST) < sizes[:, None], codes, ABSENT).astype(self._reader.dtype)

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        k = self.size if self.sequence else 2
        wrong = rng.random(centers.shape) < self.law.expected_cost(np.array([weight]))[0]
        other = (centers + rng.integers(1, k, size=centers.shape)) % k
        return np.where(wrong & (centers >= 0), other, centers).astype(centers.dtype)

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the tag of most weight at every place; that of the lower code in a tie."""
        k = self.size if self.sequence else 2
        counts = [((votes == code) * weights[:, :, None]).sum(axis=1) for code in range(k)]
        told = np.max(counts, axis=0) > 0
        there = ((votes != ABSENT) & (weights > 0)[:, :, None]).any(axis=1)
        chosen = np.where(told, np.argmax(counts, axis=0), np.where(there, UNKNOWN, ABSENT))
        return chosen.astype(votes.dtype)

    def as_batch(self, labels: Any) -> Batch:
        return self._reader.read(labels)

    def as_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        if self.sequence:
            return self._sequence_cells(labels, observed)
        if labels.ndim != 3 or labels.dtype.kind not in "biu" or labels.shape[2] != self.size:
            return None
        if labels.dtype.kind == "b":
            return labels.view(np.int8)
        wrong = ((labels < UNKNOWN) | (labels > 1)).any(axis=2) & observed
        if wrong.any():
            return None  # the way by single cells names it
        return labels.astype(np.int8, copy=False)

    def _sequence_cells(self, labels: Batch, observed: BoolArray) -> Batch:
        """Return a table of sequences, padded to the longest, or say which differs in length from its row."""
        n, m = observed.shape
        rows, columns = np.nonzero(observed)
        try:
            batch = self.as_batch(labels[rows, columns])
        except InvalidLabelError as error:
            if error.index is None:
                raise
            raise InvalidLabelError(str(error), int(rows[error.index] * m + columns[error.index])) from None
        sizes = (batch != ABSENT).sum(axis=1)
        first = np.searchsorted(rows, rows)  # the first vote on the same item
        wrong = np.flatnonzero(sizes != sizes[first])
        if len(wrong):
            cell = int(wrong[0])
            raise InvalidLabelError(
                f"this sequence has {sizes[cell]} tags, but that of the first source that votes on the item has "
                f"{sizes[first[cell]]}. Give every source the same positions; None where it has no opinion.",
                int(rows[cell] * m + columns[cell]),
            )
        table = np.full((n, m, batch.shape[1]), ABSENT, dtype=batch.dtype)
        table[rows, columns] = batch
        return table

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        coded = self.names is None or (like is not None and np.dtype(like).kind in "biuf")
        if self.sequence:
            sizes = (batch != ABSENT).sum(axis=1)
            rows = [row[:size] for row, size in zip(batch.astype(np.int64), sizes, strict=True)]
            return as_object_array(rows if coded else map(self._named, rows))
        if coded:
            return batch.astype(np.int64)
        names = self.names or ()
        return as_object_array(
            frozenset(name for name, code in zip(names, row, strict=True) if code == 1) for row in batch.tolist()
        )

    def _named(self, codes: Batch) -> list[str | None]:
        names = (*(self.names or ()), None)  # -1 is the last one
        return [names[code] for code in codes.tolist()]

    def to_arrow(self, batch: Batch) -> pa.Array:
        """Return list<int8> of codes or list<string> of names; null where there is no label."""
        import pyarrow as pa

        rows = [None if _is_missing(label) else _plain(label) for label in batch]
        texts = any(isinstance(value, str) for row in rows if row is not None for value in row)
        return pa.array(rows, type=pa.list_(pa.string() if texts or self._sets(batch) else pa.int32()))

    def _sets(self, batch: Batch) -> bool:
        return any(isinstance(label, (set, frozenset)) for label in batch)

    def from_arrow(self, column: pa.Array) -> Batch:
        rows = column.to_pylist()
        if self.sequence or any(row is None or len(row) != self.size or isinstance(row[0], str) for row in rows):
            return as_object_array(rows)
        return np.array(rows, dtype=np.int64).reshape(len(rows), self.size)

    def spec(self) -> dict[str, Any]:
        tags: Any = self.size if self.names is None else list(self.names)
        return {"tags": tags, "sequence": self.sequence, "chain": self.chain}


def _read_tags(tags: Any, sequence: bool) -> tuple[tuple[str, ...] | None, int]:
    if tags is None:
        if not sequence:
            raise InvalidLabelError(
                "Tags() says neither how many tags there are nor how they are called. "
                'Give a number or names, such as Tags(["news", "sport"]); for sequences of zeros '
                "and ones say Tags(sequence=True)."
            )
        return None, 2
    if isinstance(tags, (int, np.integer)) and not isinstance(tags, bool):
        names, size = None, int(tags)
    elif isinstance(tags, (str, bytes)) or not isinstance(tags, Iterable):
        raise InvalidLabelError(f"Tags({tags!r}) is neither a number of tags nor a list of names. Give one of them.")
    else:
        given = list(tags)
        unfit = next((name for name in given if not isinstance(name, str)), None)
        if unfit is not None:
            raise InvalidLabelError(
                f"A tag cannot be called {plain_value(unfit)!r}: names are text. Give Tags(d) for numbered tags."
            )
        names, size = Codebook.of_names(given, "tag", "Tags([...])").names, len(given)
    least = 2 if sequence else 1
    if size < least:
        raise InvalidLabelError(f"Tags needs at least {least} tag(s){' per position' * sequence}, got {size}.")
    return names, size


def _same_length(left: Batch, right: Batch) -> tuple[Batch, Batch]:
    """Pad two batches of sequences to one width, or name the first pair that differs in length."""
    # Votes that were encoded at different times may be padded to different widths, each in an array of its own.
    left, right = (np.stack(batch.tolist()) if batch.dtype == object else batch for batch in (left, right))
    sizes = [(batch != ABSENT).sum(axis=1) for batch in (left, right)]
    wrong = np.flatnonzero(sizes[0] != sizes[1])
    if len(wrong):
        pair = int(wrong[0])
        raise InvalidLabelError(
            f"Two sequences of {sizes[0][pair]} and {sizes[1][pair]} tags cannot be compared (pair {pair}). "
            "Give both the same positions."
        )
    width = int(max(sizes[0].max(initial=0), 1))
    padded = [np.full((len(batch), width), ABSENT, dtype=np.int64) for batch in (left, right)]
    for table, batch in zip(padded, (left, right), strict=True):
        table[:, : min(batch.shape[1], width)] = batch[:, :width]
    return padded[0], padded[1]


def _is_missing(label: Any) -> bool:
    if isinstance(label, np.ndarray):
        return len(label) > 0 and label.dtype.kind in "if" and bool((label == UNKNOWN).all())
    return is_null(label)


def _plain(label: Any) -> list[Any]:
    if isinstance(label, (set, frozenset)):
        return sorted(label)
    return [plain_value(value) for value in label]
