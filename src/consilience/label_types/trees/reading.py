"""Dependency trees as users write them: checked, and made into arrays of heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, IntArray, as_object_array
from consilience.exceptions import InvalidLabelError
from consilience.label_types.codes import is_listed, plain_value

__all__ = ["TreeReader", "flatten"]

STEP = "Correct it, or leave the cell empty (None) where the source abstains."
MOST_TOKENS = 32_767


@dataclass(frozen=True)
class TreeReader:
    """Reads trees with or without relations."""

    relations: tuple[str, ...] | None  # names of the relations, or None where trees have none

    @property
    def _expected(self) -> str:
        if self.relations is None:
            return "a list of heads such as [2, 0, 2], one per token, 0 for the root"
        return f"a list of (head, relation) pairs such as [(2, {self.relations[0]!r}), (0, 0)], one per token"

    def read(self, labels: Sequence[Any] | Batch) -> Batch:
        """Return an object array of integer arrays: ``(length,)``, or ``(length, 2)`` with relations."""
        from consilience.label_types.trees.kernels import tree_faults

        cells = [self._cell(cell, index) for index, cell in enumerate(labels)]
        flat, starts = flatten(cells)
        sizes = np.diff(starts)
        if sizes.max(initial=0) > MOST_TOKENS:
            longest = int(sizes.argmax())
            raise InvalidLabelError(f"the tree has {sizes[longest]} tokens, more than {MOST_TOKENS}. {STEP}", longest)
        tree, fault, token = tree_faults(flat, starts).tolist()
        if tree >= 0:
            raise InvalidLabelError(f"{_fault(flat[starts[tree] : starts[tree + 1]], fault, token)} {STEP}", tree)
        return as_object_array(cells)

    def _cell(self, cell: Any, index: int) -> IntArray:
        width = 1 if self.relations is None else 2
        if isinstance(cell, np.ndarray) and cell.dtype == np.int64 and cell.ndim == width:
            return cell if self.relations is None else self._with_known_relations(cell, index)
        if not is_listed(cell):
            raise InvalidLabelError(f"label {plain_value(cell)!r} is not {self._expected}. {STEP}", index)
        if self.relations is None:
            return self._heads(cell, index)
        pairs = cell.tolist() if isinstance(cell, np.ndarray) else list(cell)
        for token, pair in enumerate(pairs, start=1):
            if not is_listed(pair) or len(pair) != 2:
                raise InvalidLabelError(f"token {token} is {pair!r}; the label is not {self._expected}. {STEP}", index)
        heads = self._heads([pair[0] for pair in pairs], index)
        codes = [self._code(pair[1], token, index) for token, pair in enumerate(pairs, start=1)]
        return self._with_known_relations(np.column_stack([heads, np.array(codes, dtype=np.int64)]), index)

    def _heads(self, cell: Any, index: int) -> IntArray:
        array = cell if isinstance(cell, np.ndarray) else as_object_array(cell)
        if array.ndim != 1:
            raise InvalidLabelError(
                f"a label of shape {array.shape} is not {self._expected}. "
                "For heads with relations name them: DependencyTrees(relations=[...]).",
                index,
            )
        if array.dtype.kind in "iu":
            return array.astype(np.int64)
        for token, value in enumerate(array.tolist(), start=1):
            number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
            if not number or not float(value).is_integer() or abs(value) > MOST_TOKENS:
                raise InvalidLabelError(f"token {token} has head {value!r}, not the number of a token. {STEP}", index)
        return array.astype(np.int64)

    def _code(self, value: Any, token: int, index: int) -> int:
        names = self.relations or ()
        if isinstance(value, str):
            if value not in names:
                shown = ", ".join(repr(name) for name in names[:6]) + (", ..." if len(names) > 6 else "")
                raise InvalidLabelError(
                    f"token {token} has relation {value!r}, which is none of {shown}. "
                    "Name it in DependencyTrees(relations=[...]).",
                    index,
                )
            return names.index(value)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise InvalidLabelError(f"token {token} has relation {value!r}, neither a name nor a code. {STEP}", index)
        return int(value)

    def _with_known_relations(self, cell: IntArray, index: int) -> IntArray:
        count = len(self.relations or ())
        if cell.shape[1] != 2:
            raise InvalidLabelError(f"a label of shape {cell.shape} is not {self._expected}. {STEP}", index)
        wrong = np.flatnonzero((cell[:, 1] < 0) | (cell[:, 1] >= count))
        if len(wrong):
            token = int(wrong[0])
            raise InvalidLabelError(
                f"token {token + 1} has relation {cell[token, 1]}; codes are 0 .. {count - 1}. {STEP}", index
            )
        return cell


def flatten(cells: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Return the heads of all trees one after the other, and where each begins."""
    sizes = np.fromiter(map(len, cells), dtype=np.int64, count=len(cells))
    flat: npt.NDArray[Any] = np.concatenate(list(cells)) if len(cells) else np.zeros(0, dtype=np.int64)
    heads = flat if flat.ndim == 1 else np.ascontiguousarray(flat[:, 0])
    return heads, np.concatenate([[0], np.cumsum(sizes)])


def _fault(heads: IntArray, fault: int, token: int) -> str:
    if fault == 1:
        hint = " Sentences of different lengths go into an object array, without padding." if heads[-1] < 0 else ""
        return (
            f"token {token} has head {heads[token - 1]}; with {len(heads)} tokens a head is 0 (the root) to "
            f"{len(heads)}.{hint}"
        )
    if fault == 2:
        return f"token {token} is its own head."
    if fault == 3:
        return f"none of the {len(heads)} tokens has head 0, so there is no root; one of them must."
    if fault == 4:
        first = int(np.flatnonzero(heads == 0)[0]) + 1
        return f"tokens {first} and {token} both have head 0; a tree has one root."
    if fault == 5:
        cycle = [token]
        while len(cycle) < 2 or cycle[-1] != token:
            cycle.append(int(heads[cycle[-1] - 1]))
        shown = " -> ".join(map(str, cycle[:8])) + (" ..." if len(cycle) > 8 else "")
        return f"token {token} lies on a cycle ({shown}), so this is no tree."
    return "there are no tokens in it."
