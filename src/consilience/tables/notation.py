"""Label types written as text, as the command line has them: ``classes:cat,dog``, ``scores:1..5``, ``rankings``."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise

import numpy as np

from consilience.arrays import is_null
from consilience.exceptions import UnsupportedError
from consilience.label_types import (
    SO3,
    SPD,
    Boxes,
    Classes,
    DependencyTrees,
    FiniteMetric,
    Hyperbolic,
    Preferences,
    Product,
    Rankings,
    Scores,
    Sequences,
    Spans,
    Sphere,
    Tags,
    Texts,
    Vectors,
)
from consilience.label_types.base import LabelSpace
from consilience.label_types.codes import plain_value
from consilience.label_types.elements.reader import class_of
from consilience.label_types.rankings.labels import order_of_text
from consilience.votes import Votes

__all__ = ["NOTATIONS", "Notation", "space_of_text"]


@dataclass(frozen=True)
class Notation:
    """How one label type is written.

    Parameters
    ----------
    build
        From what stands behind the colon (possibly nothing) and the votes to the space.
    cell
        What a cell of a file looks like.
    """

    name: str
    example: str
    meaning: str
    cell: str
    build: Callable[[str, Votes], LabelSpace]


def space_of_text(text: str, votes: Votes) -> LabelSpace:
    """Return the label type that a text names; what it leaves open is taken from the votes.

    Examples
    --------
    >>> votes = Votes.from_matrix([["cat", "dog"], ["cat", "cat"]])
    >>> space_of_text("classes", votes), space_of_text("scores:1..5", votes).range
    (Classes(['cat', 'dog']), (1.0, 5.0))
    """
    name, _, argument = text.strip().partition(":")
    known = {notation.name: notation for notation in NOTATIONS}
    notation = known.get(name.strip().lower())
    if notation is None:
        close = get_close_matches(name.strip().lower(), known, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else f"Use one of {', '.join(known)}."
        raise UnsupportedError(f"There is no label type {name.strip()!r}. {hint}")
    try:
        return notation.build(argument.strip(), votes)
    except (ValueError, TypeError) as error:
        if isinstance(error, UnsupportedError):
            raise
        raise UnsupportedError(f"{text!r} is no label type: {error} Write it as {notation.example!r}.") from None


def _classes(argument: str, votes: Votes) -> LabelSpace:
    if not argument:
        return Classes.of(votes)
    return Classes(int(argument) if argument.isdigit() else _names(argument))


def _ordinal(argument: str, votes: Votes) -> LabelSpace:
    if ".." in argument:
        low, high = _interval(argument)
        steps = range(int(low), int(high) + 1)
        names: list[str] | list[int] = list(map(str, steps)) if _holds_text(votes) else list(steps)
    else:
        names = _names(argument)
    if len(names) < 2:
        raise UnsupportedError("An ordinal scale needs its steps in order. Write it as 'ordinal:bad,fair,good'.")
    return FiniteMetric(list(pairwise(names)))


def _scores(argument: str, votes: Votes) -> LabelSpace:
    return Scores(range=_interval(argument)) if argument else Scores()


def _rankings(argument: str, votes: Votes) -> LabelSpace:
    if argument:
        return Rankings(int(argument) if argument.isdigit() else _names(argument))
    cells = votes.labels[votes.observed]
    if cells.ndim == 2:
        return Rankings(cells.shape[1])
    names: dict[str, None] = {}
    lengths, longest = set(), 0
    for cell in cells.tolist():
        if isinstance(cell, str):
            listed = [
                name for group in order_of_text(cell) for name in (group if isinstance(group, tuple) else (group,))
            ]
        elif isinstance(cell, list | tuple) and all(isinstance(entry, str) for entry in cell):
            listed = list(cell)
        else:
            lengths.add(len(cell))
            continue
        names.update(dict.fromkeys(listed))
        longest = max(longest, len(listed))
    if names and longest < 2:
        raise UnsupportedError(
            f"No vote orders two things; the first is {cells.tolist()[0]!r}. Write orders as a > b = c, or name "
            "another label type."
        )
    if names:
        return Rankings(list(names))
    return Rankings(lengths.pop() if len(lengths) == 1 else None)


def _preferences(argument: str, votes: Votes) -> LabelSpace:
    return Preferences(by=argument or None)


def _tags(argument: str, votes: Votes) -> LabelSpace:
    if argument:
        return Tags(int(argument) if argument.isdigit() else _names(argument))
    return Tags(_width(votes, "tags"))


def _sequences(argument: str, votes: Votes) -> LabelSpace:
    if argument:
        return Sequences(int(argument) if argument.isdigit() else _names(argument), chain=True)
    tags = {plain_value(tag) for cell in votes.labels[votes.observed].tolist() for tag in cell if not is_null(tag)}
    if tags and all(isinstance(tag, (bool, int, float)) for tag in tags):
        return Sequences(max(2, int(max(tags)) + 1), chain=True)
    return Sequences(sorted(tags, key=str), chain=True)


def _vectors(argument: str, votes: Votes) -> LabelSpace:
    return Vectors(int(argument) if argument else _width(votes, "vectors"))


def _hyperbolic(argument: str, votes: Votes) -> LabelSpace:
    dimension, _, curvature = argument.partition(",")
    size = int(dimension) if dimension else _width(votes, "hyperbolic") - 1
    return Hyperbolic(size, curvature=float(curvature) if curvature else -1.0)


def _sphere(argument: str, votes: Votes) -> LabelSpace:
    return Sphere(int(argument) if argument else _width(votes, "sphere") - 1)


def _spd(argument: str, votes: Votes) -> LabelSpace:
    return SPD(int(argument) if argument else _width(votes, "spd"))


def _records(argument: str, votes: Votes) -> LabelSpace:
    if not argument:
        from consilience.tables.guessing import guess_space

        return guess_space(votes).space
    parts = dict(part.split("=", 1) for part in argument.split(";") if part.strip())
    factors = {name.strip(): space_of_text(text, _field(votes, name.strip())) for name, text in parts.items()}
    return Product(weights=None, **factors)


def _field(votes: Votes, name: str) -> Votes:
    cells = np.empty(votes.observed.shape, dtype=object)
    for row, column in np.argwhere(votes.observed):
        cell = votes.labels[row, column]
        cells[row, column] = cell.get(name) if isinstance(cell, dict) else None
    return Votes.from_array(cells, sources=votes.sources)


def _names(argument: str) -> list[str]:
    return [name.strip() for name in argument.split(",") if name.strip()]


def _interval(argument: str) -> tuple[float, float]:
    low, dots, high = argument.partition("..")
    if not dots:
        raise ValueError(f"{argument!r} has no two ends.")
    return float(low), float(high)


def _holds_text(votes: Votes) -> bool:
    return any(isinstance(cell, str) for cell in votes.labels[votes.observed][:100].tolist())


def _width(votes: Votes, name: str) -> int:
    cells = votes.labels[votes.observed]
    sizes = (
        {cells.shape[1]}
        if cells.ndim > 1
        else {len(c) for c in cells.tolist() if not is_null(c) and not np.isscalar(c)}
    )
    if len(sizes) != 1:
        raise UnsupportedError(f"How long a label is cannot be seen in the votes. Write it as '{name}:3'.")
    return int(sizes.pop())


def _trees(argument: str, votes: Votes) -> LabelSpace:
    return DependencyTrees()


def _rotations(argument: str, votes: Votes) -> LabelSpace:
    return SO3()


def _boxes(argument: str, votes: Votes) -> LabelSpace:
    names, options = _names_and_options(argument, ("size",))
    size = options.get("size")
    sides = None if size is None else tuple(float(side) for side in size.lower().split("x"))
    return Boxes(names or _classes_of_elements(votes, 4), size=sides)  # type: ignore[arg-type]


def _spans(argument: str, votes: Votes) -> LabelSpace:
    names, options = _names_and_options(argument, ("length", "overlap"))
    length = int(options["length"]) if "length" in options else None
    return Spans(names or _classes_of_elements(votes, 2), length=length, overlap=options.get("overlap", "merge"))


def _names_and_options(argument: str, known: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """Return the names of classes and the settings among them, which have an equals sign."""
    names = _names(argument)
    options = {key.strip(): value.strip() for key, sign, value in (name.partition("=") for name in names) if sign}
    unknown = next((key for key in options if key not in known), None)
    if unknown is not None:
        raise UnsupportedError(f"There is no setting {unknown!r}. Use {' or '.join(f'{key}=...' for key in known)}.")
    return [name for name in names if "=" not in name], options


def _texts(argument: str, votes: Votes) -> LabelSpace:
    return Texts(argument or "words")


def _classes_of_elements(votes: Votes, corners: int) -> list[str] | None:
    """Return the classes that elements have behind their corners, or under a name such as "label"."""
    found = set()
    for cell in Boxes().read_text(votes.labels[votes.observed]).tolist():
        for element in cell if isinstance(cell, list | tuple) else ():
            if isinstance(element, dict):
                found.add(class_of(element))
            elif isinstance(element, list | tuple) and (
                len(element) == corners + 1 or (len(element) == 2 and isinstance(element[0], list | tuple))
            ):
                found.add(element[-1])
    return sorted(str(plain_value(name)) for name in found if isinstance(name, Hashable) and not is_null(name)) or None


NOTATIONS = (
    Notation("classes", "classes:ham,spam", "one of several classes", "spam", _classes),
    Notation("ordinal", "ordinal:1..5", "classes in an order, neighbours less wrong than others", "4", _ordinal),
    Notation("scores", "scores:0..100", "a number; every source may use a scale of its own", "71.5", _scores),
    Notation("rankings", "rankings:a,b,c", "an order of things, with ties and gaps", "a > b = c", _rankings),
    Notation(
        "preferences",
        "preferences:prompt",
        "which of two is better, from rows of judge, first, second, winner; one ranking, or one per prompt",
        "a > b = c",
        _preferences,
    ),
    Notation("tags", "tags:news,sport", "any number of several tags", "[1, 0]", _tags),
    Notation("sequences", "sequences:O,B,I", "one tag per position, any length", '["O", "B", "I"]', _sequences),
    Notation("vectors", "vectors:3", "a point of space", "[0.1, 2.5, -1.0]", _vectors),
    Notation("trees", "trees", "a dependency tree: the head of each token, 0 for the root", "[2, 0, 2]", _trees),
    Notation("hyperbolic", "hyperbolic:2", "a point of the hyperboloid", "[1.5, 1.0, 0.5]", _hyperbolic),
    Notation("sphere", "sphere:2", "a direction: a vector of length 1", "[0.6, 0.8, 0.0]", _sphere),
    Notation("spd", "spd:2", "a symmetric positive definite matrix", "[[2, 0], [0, 1]]", _spd),
    Notation("rotations", "rotations", "a rotation of space, as a quaternion", "[1, 0, 0, 0]", _rotations),
    Notation(
        "boxes",
        "boxes:car,bus",
        "any number of boxes, with or without a class; size=640x480 refuses boxes outside of the image",
        '[{"x1": 10, "y1": 5, "x2": 60, "y2": 40, "label": "car"}]',
        _boxes,
    ),
    Notation(
        "spans",
        "spans:who,where",
        "any number of spans of text, with or without a class; length=500, overlap=forbid refuse others",
        '[{"start": 0, "end": 5, "label": "who"}]',
        _spans,
    ),
    Notation("texts", "texts:gleu", "a text, compared by words (or sequences of words)", "the cat sat", _texts),
    Notation(
        "records",
        "records:stars=scores;topic=classes",
        "several labels at once",
        '{"stars": 4, "topic": "art"}',
        _records,
    ),
)
