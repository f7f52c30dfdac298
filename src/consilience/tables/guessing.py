"""Which label type a table of votes seems to hold: said where it is clear, asked where it is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Batch
from consilience.exceptions import FileFormatError
from consilience.label_types import (
    Boxes,
    Classes,
    DependencyTrees,
    Preferences,
    Product,
    Rankings,
    Scores,
    Spans,
    Tags,
    Vectors,
)
from consilience.label_types.base import LabelSpace
from consilience.label_types.elements.reader import BOX_FORMS, SPAN_FORMS, class_of, corners_and_class
from consilience.label_types.preferences.comparisons import Comparisons
from consilience.votes import Votes, as_votes

__all__ = ["Guess", "guess_space"]

#: More different whole numbers than this are scores; at most that many could be classes just as well.
MOST_CLASSES = 20
#: Text of which more than this share is used only once is no list of classes.
MOST_SINGLE = 0.5
#: Label types that are lists of things which are no plain numbers.
_LISTS = "'boxes', 'spans', 'tags', 'rankings' or another one"


@dataclass(frozen=True)
class Guess:
    """A label type, and what in the votes speaks for it."""

    space: LabelSpace
    reason: str


def guess_space(votes: Votes) -> Guess:
    """Return the label type of votes where it is unambiguous; otherwise say what the choice is.

    Examples
    --------
    >>> guess_space(Votes.from_matrix([["cat", "dog"], ["cat", "cat"]]))
    Guess(space=Classes(['cat', 'dog']), reason='2 different words')
    """
    votes = as_votes(votes)
    cells = votes.labels[votes.observed]
    if len(cells) == 0:
        raise FileFormatError("Nobody votes on anything, so the label type cannot be seen. Name it.")
    if cells.ndim > 1:
        return _of_lists(list(cells))
    kind = cells.dtype.kind
    if kind == "b":
        return Guess(Classes([False, True]), "true and false")
    if kind in "iu":
        return _of_whole_numbers(cells)
    if kind == "f":
        whole = bool(((cells == np.round(cells)) & np.isfinite(cells)).all())
        return _of_whole_numbers(cells.astype(np.int64)) if whole else Guess(Scores(), "numbers with fractions")
    listed = cells.tolist()
    if all(isinstance(cell, Comparisons) for cell in listed):
        return Guess(Preferences(), "comparisons of two items at a time")
    if all(isinstance(cell, str) for cell in listed):
        return _of_text(listed, votes)
    if all(isinstance(cell, dict) for cell in listed):
        return _of_records(listed, votes)
    if all(isinstance(cell, (list, tuple, np.ndarray)) for cell in listed):
        return _of_lists(listed)
    raise _mixture(listed, votes)


def _mixture(listed: list[Any], votes: Votes) -> FileFormatError:
    """Return the error for votes of several types, with one example of each and who cast it."""
    columns = np.nonzero(votes.observed)[1]
    examples: dict[str, str] = {}
    for cell, column in zip(listed, columns.tolist(), strict=True):
        examples.setdefault(type(cell).__name__, f"{cell!r} by {votes.sources[column]!r}")
    shown = ", ".join(f"{kind} ({example})" for kind, example in sorted(examples.items()))
    return FileFormatError(
        f"The votes mix {shown}. Leave out a column that holds no votes, write all labels in the same way, or name the "
        "label type."
    )


def _of_whole_numbers(cells: Batch) -> Guess:
    values = np.unique(cells)
    if len(values) > MOST_CLASSES:
        return Guess(Scores(), f"{len(values)} different whole numbers")
    if values.min() >= 0 and values.max() <= 1:
        return Guess(Classes(2), "only 0 and 1")
    shown = ", ".join(map(str, values[:6])) + (", ..." if len(values) > 6 else "")
    raise FileFormatError(
        f"The votes are the numbers {shown}: classes, or scores on a scale? Say which: space 'classes' or 'scores'."
    )


def _of_text(cells: list[str], votes: Votes) -> Guess:
    if all(cell.lstrip().startswith("[") for cell in cells):
        raise FileFormatError(f"The votes are lists such as {cells[0]}. Name the label type: {_LISTS}.")
    if all(">" in cell for cell in cells):
        names = dict.fromkeys(name for cell in cells for name in _ranked_names(cell))
        return Guess(Rankings(list(names)), f"orders such as {cells[0]!r}")
    values, counts = np.unique(np.array(cells, dtype=object).astype(str), return_counts=True)
    single = float((counts == 1).mean())
    if len(values) > MOST_CLASSES and single > MOST_SINGLE:
        raise FileFormatError(
            f"The votes are {len(values)} different texts, {single:.0%} of them said once: no list of classes. "
            "Name the label type: space 'texts', 'classes', or a Metric of your own in Python."
        )
    return Guess(Classes.of(votes), f"{len(values)} different word{'s' * (len(values) != 1)}")


def _ranked_names(order: str) -> list[str]:
    return [name.strip() for group in order.split(">") for name in group.split("=")]


def _of_records(cells: list[dict[str, Any]], votes: Votes) -> Guess:
    names = dict.fromkeys(key for cell in cells for key in cell)
    parts = {}
    for name in names:
        column = [[cell.get(name)] for cell in cells]
        try:
            parts[name] = guess_space(Votes.from_array(column)).space
        except FileFormatError as error:
            raise FileFormatError(f"Field {name!r} of the records: {error}") from None
    return Guess(Product(weights=None, **parts), f"records of {', '.join(names)}")


def _of_elements(cells: list[Any]) -> Guess | None:
    """Return boxes or spans where every element is a record of one; their classes are those that occur."""
    elements = [element for cell in cells for element in cell]
    if not elements or not all(isinstance(element, dict) for element in elements):
        return None
    for space, forms, what in ((Boxes, BOX_FORMS, "boxes"), (Spans, SPAN_FORMS, "spans")):
        if all(corners_and_class(element, forms) is not None for element in elements):
            classes = sorted({str(class_of(element)) for element in elements if class_of(element) is not None})
            return Guess(space(classes or None), f"lists of {what} such as {elements[0]!r}")
    return None


def _of_lists(cells: list[Any]) -> Guess:
    found = _of_elements(cells)
    if found is not None:
        return found
    arrays = [np.asarray(cell) for cell in cells]
    if any(array.dtype.kind not in "biuf" or array.ndim != 1 for array in arrays):
        raise FileFormatError(f"The votes are lists such as {cells[0]!r}. Name the label type: {_LISTS}.")
    lengths = {len(array) for array in arrays}
    whole = all(array.dtype.kind in "biu" for array in arrays)
    length = lengths.pop() if len(lengths) == 1 else None
    if not whole:
        if length is None:
            raise FileFormatError("The votes are lists of numbers of different lengths, which no label type has.")
        return Guess(Vectors(length), f"lists of {length} numbers")
    if length is not None and all(((array == 0) | (array == 1)).all() for array in arrays) and length > 2:
        return Guess(Tags(length), f"lists of {length} zeros and ones")
    if length is not None and all(sorted(array.tolist()) == list(range(length)) for array in arrays):
        return Guess(Rankings(length), f"each list holds the positions 0 to {length - 1}")
    if all(_is_tree(array.tolist()) for array in arrays):
        return Guess(DependencyTrees(), "each list holds the head of every token, 0 for the root")
    raise FileFormatError(
        f"The votes are lists such as {list(cells[0])!r}: positions, tags or a vector? Name the label type: "
        "'rankings', 'tags' or 'vectors'."
    )


def _is_tree(heads: list[int]) -> bool:
    if heads.count(0) != 1 or not all(0 <= head <= len(heads) for head in heads):
        return False
    for token in range(1, len(heads) + 1):
        steps, at = 0, token
        while at and steps <= len(heads):
            at, steps = heads[at - 1], steps + 1
        if at:
            return False
    return True
