"""Label types as text (``classes:cat,dog``, ``scores:1..5``), and which one a table of votes seems to hold."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import consilience.label_types as types
from consilience.arrays import Batch, as_object_array, is_null
from consilience.exceptions import FileFormatError, UnsupportedError, did_you_mean
from consilience.label_types.base import LabelSpace
from consilience.label_types.codes import plain_value
from consilience.label_types.elements.reader import BOX_FORMS, SPAN_FORMS, class_of, corners_and_class
from consilience.label_types.preferences.comparisons import Comparisons
from consilience.label_types.rankings.labels import names_of, order_of_text
from consilience.tables.files import SHOWN, typed_cells
from consilience.tables.vote_tables import as_group
from consilience.votes import Votes, as_votes

#: More different whole numbers than this are scores. Fewer may also be classes.
MOST_CLASSES = 20
#: If more than this share of the texts occurs only once, they are not classes.
MOST_SINGLE = 0.5
#: The next step for lists of values that are not plain numbers.
_LISTS = "Pass space=Tags(...), space=Rankings(...), space=Boxes() or another label type."


class Notation(NamedTuple):
    """How one label type and one of its labels are written."""

    example: str
    meaning: str
    cell: str
    #: Returns the label type, given the text after the colon and the votes.
    build: Callable[[str, Votes], LabelSpace]

    @property
    def name(self) -> str:
        """What stands before the colon."""
        return self.example.partition(":")[0]


def space_of_text(text: str, votes: Votes) -> LabelSpace:
    """Return the label type that a text names; what it leaves open is taken from the votes."""
    name, _, argument = text.strip().partition(":")
    known = {notation.name: notation for notation in NOTATIONS}
    notation = known.get(name.strip().lower())
    if notation is None:
        hint = did_you_mean(name.strip().lower(), known) or f" Use one of {', '.join(known)}."
        raise UnsupportedError(f"There is no label type {name.strip()!r}.{hint}")
    try:
        return notation.build(argument.strip(), votes)
    except UnsupportedError:
        raise
    except (ValueError, TypeError) as error:
        raise UnsupportedError(f"{text!r} is not a label type: {error} Write it as {notation.example!r}.") from None


@dataclass(frozen=True)
class Declared:
    """What is known about labels before the votes are read: the word for their type, and labels or a scale."""

    kind: str | None = None
    labels: frozenset[str] = frozenset()
    scale: tuple[float, float] | None = None

    @classmethod
    def by(cls, space: LabelSpace | str | None) -> Declared:
        """Return what a label type, or the text that names one, says."""
        if space is None:
            return cls()
        if isinstance(space, str):
            kind, _, argument = space.partition(":")
            kind = kind.strip().lower()
            if kind in ("scores", "ordinal") and ".." in argument:
                with suppress(ValueError):  # `space_of_text` refuses a wrong range
                    return cls(kind, scale=_interval(argument))
            named = _size_or_names(argument) if kind in ("classes", "ordinal") else []
            return cls(kind, frozenset(map(str, range(named) if isinstance(named, int) else named)))
        kind = word_for(space)
        if kind not in ("classes", "ordinal") or space.n_labels is None:
            return cls(kind, scale=getattr(space, "range", None))
        labels = space.as_labels(np.arange(space.n_labels), np.dtype(object)).tolist()
        numbers = [label for label in labels if isinstance(label, (int, float)) and not isinstance(label, bool)]
        ends = (float(min(numbers)), float(max(numbers))) if len(numbers) == len(labels) else None
        return cls(kind, frozenset(map(str, labels)), ends if kind == "ordinal" else None)

    @property
    def numeric(self) -> bool | None:
        """Whether labels are numbers on a scale; None where nothing is known."""
        return None if self.kind is None else self.kind == "scores" or self.scale is not None


def word_for(space: LabelSpace) -> str:
    """Return the word that names a label type in text."""
    words = {"DependencyTrees": "trees", "Product": "records", "FiniteMetric": "ordinal", "SO3": "rotations"}
    name = type(space).__name__
    return words.get(name, name.lower())


def _cells(votes: Votes) -> list[Any]:
    return votes.labels[votes.observed].tolist()


def _scale(votes: Votes) -> tuple[float, float] | None:
    """Return the scale that the cells named, as "8/10" does."""
    return None if votes.receipt is None else votes.receipt.scale


def _names(argument: str) -> list[str]:
    return [name.strip() for name in argument.split(",") if name.strip()]


def _size_or_names(argument: str) -> int | list[str]:
    return int(argument) if argument.isdigit() else _names(argument)


def _interval(argument: str) -> tuple[float, float]:
    low, _, high = argument.partition("..")
    try:
        return float(low), float(high)
    except ValueError:
        raise ValueError(f"{argument!r} is not a range of numbers.") from None


def _size(argument: str, votes: Votes, name: str) -> int:
    """Return the given size, or how long the labels are."""
    if argument:
        return int(argument)
    sizes = {len(cell) for cell in _cells(votes) if not is_null(cell) and not np.isscalar(cell)}
    if len(sizes) != 1:
        raise UnsupportedError(f"The votes do not show how long a label is. Write the label type as '{name}:3'.")
    return sizes.pop()


def _spelled(argument: str, votes: Votes) -> list[Any]:
    """Return names as the votes write them: numbers where they are numbers."""
    names = _names(argument)
    if ".." in argument:
        low, high = _interval(argument)
        names = list(map(str, range(int(low), int(high) + 1)))
    return typed_cells(names) if votes.labels.dtype.kind in "biuf" else names


def _classes(argument: str, votes: Votes) -> LabelSpace:
    if not argument:
        return types.Classes.of(votes)
    return types.Classes(int(argument) if argument.isdigit() else _spelled(argument, votes))


def _ordinal(argument: str, votes: Votes) -> LabelSpace:
    numbers = votes.labels[votes.observed] if votes.labels.dtype.kind in "iuf" and not argument else np.zeros(0)
    if len(numbers) and (numbers == np.round(numbers)).all() and np.ptp(numbers) < MOST_CLASSES:
        argument = f"{numbers.min():.0f}..{numbers.max():.0f}"
    names = _spelled(argument, votes)
    if len(names) < 2:
        raise UnsupportedError("An ordinal scale needs its steps in order. Write it as 'ordinal:bad,fair,good'.")
    return types.FiniteMetric(list(pairwise(names)))


def _rankings(argument: str, votes: Votes) -> LabelSpace:
    if argument:
        return types.Rankings(_size_or_names(argument))
    orders = [order_of_text(cell) if isinstance(cell, str) else cell for cell in _cells(votes)]
    names = list(dict.fromkeys(name for order in orders for name in names_of(order)))
    if names and _own_names(votes):
        return types.Rankings(None)
    if not names:
        lengths = {len(order) for order in orders if len(order)}
        return types.Rankings(lengths.pop() if len(lengths) == 1 else None)
    if all(sum(len(as_group(group)) for group in order) < 2 for order in orders):
        raise UnsupportedError(
            f"No vote orders two things; the first is {_cells(votes)[0]!r}. Write orders as a > b = c, or name "
            "another label type."
        )
    return types.Rankings(names)


def _own_names(votes: Votes) -> bool:
    """Return whether rows have their own names: on average a row holds fewer than half of all names."""
    rows = [set[str]() for _ in range(len(votes))]
    for row, column in np.argwhere(votes.observed):
        cell = votes.labels[row, column]
        rows[row].update(names_of(order_of_text(cell) if isinstance(cell, str) else cell))
    voted = [names for names in rows if names]
    return sum(map(len, voted)) < 0.5 * len(voted) * len(set().union(*voted))


def _tags(argument: str, votes: Votes) -> LabelSpace:
    if argument:
        return types.Tags(_size_or_names(argument))
    cells = types.Tags(1).read_text(votes.labels[votes.observed]).tolist()
    names = {tag for cell in cells if isinstance(cell, Iterable) for tag in cell if isinstance(tag, str)}
    return types.Tags(sorted(names) if names else _size("", votes, "tags"))


def _sequences(argument: str, votes: Votes) -> LabelSpace:
    if argument:
        return types.Sequences(_size_or_names(argument), chain=True)
    tags = {plain_value(tag) for cell in _cells(votes) for tag in cell if not is_null(tag)}
    if tags and all(isinstance(tag, (bool, int, float)) for tag in tags):
        return types.Sequences(max(2, int(max(tags)) + 1), chain=True)
    return types.Sequences(sorted(tags, key=str), chain=True)


def _hyperbolic(argument: str, votes: Votes) -> LabelSpace:
    dimension, _, curvature = argument.partition(",")
    size = int(dimension) if dimension else _size("", votes, "hyperbolic") - 1
    return types.Hyperbolic(size, curvature=float(curvature) if curvature else -1.0)


def _boxes(argument: str, votes: Votes) -> LabelSpace:
    names, options = _names_and_options(argument, ("size",))
    sides = tuple(float(side) for side in options["size"].lower().split("x")) if "size" in options else None
    return types.Boxes(names or _classes_of_elements(votes, 4), size=sides)  # type: ignore[arg-type]


def _spans(argument: str, votes: Votes) -> LabelSpace:
    names, options = _names_and_options(argument, ("length", "overlap"))
    length = int(options["length"]) if "length" in options else None
    return types.Spans(names or _classes_of_elements(votes, 2), length=length, overlap=options.get("overlap", "merge"))


def _names_and_options(argument: str, known: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """Return the names of classes and the settings among them, which have an equals sign."""
    names = _names(argument)
    options = {key.strip(): value.strip() for key, sign, value in (name.partition("=") for name in names) if sign}
    unknown = next((key for key in options if key not in known), None)
    if unknown is not None:
        raise UnsupportedError(f"There is no setting {unknown!r}. Use {' or '.join(f'{key}=...' for key in known)}.")
    return [name for name in names if "=" not in name], options


def _classes_of_elements(votes: Votes, corners: int) -> list[str] | None:
    """Return the classes that elements have behind their corners, or under a name such as "label"."""
    found = set()
    for cell in types.Boxes().read_text(votes.labels[votes.observed]).tolist():
        for element in cell if isinstance(cell, list | tuple) else ():
            if isinstance(element, dict):
                found.add(class_of(element))
            elif isinstance(element, list | tuple) and (
                len(element) == corners + 1 or (len(element) == 2 and isinstance(element[0], list | tuple))
            ):
                found.add(element[-1])
    return sorted(str(plain_value(name)) for name in found if isinstance(name, Hashable) and not is_null(name)) or None


def _records(argument: str, votes: Votes) -> LabelSpace:
    if not argument:
        return guess_space(votes).space
    factors = {}
    for part in filter(str.strip, argument.split(";")):
        name, text = part.split("=", 1)
        field = [[cell.get(name.strip()) if isinstance(cell, dict) else None] for cell in _cells(votes)]
        factors[name.strip()] = space_of_text(text, Votes.from_array(field))
    return types.Product(weights=None, **factors)


NOTATIONS = (
    Notation("classes:ham,spam", "one of several classes", "spam", _classes),
    Notation("ordinal:1..5", "classes in an order, neighbors less wrong than others", "4", _ordinal),
    Notation("scores:0..100", "a number; every source may use its own scale", "71.5",
             lambda text, votes: types.Scores(range=_interval(text) if text else _scale(votes))),
    Notation("rankings:a,b,c", "an order of things, with ties and gaps", "a > b = c", _rankings),
    Notation("preferences:prompt",
             "which of two is better, from rows of judge, first, second, winner; one ranking, or one per prompt",
             "a > b = c", lambda text, _: types.Preferences(by=text or None)),
    Notation("tags:news,sport", "any number of several tags", "[1, 0]", _tags),
    Notation("sequences:O,B,I", "one tag per position, any length", '["O", "B", "I"]', _sequences),
    Notation("vectors:3", "a point of space", "[0.1, 2.5, -1.0]",
             lambda text, votes: types.Vectors(_size(text, votes, "vectors"))),
    Notation("trees", "a dependency tree: the head of each token, 0 for the root", "[2, 0, 2]",
             lambda *_: types.DependencyTrees()),
    Notation("hyperbolic:2", "a point of the hyperboloid", "[1.5, 1.0, 0.5]", _hyperbolic),
    Notation("sphere:2", "a direction: a vector of length 1", "[0.6, 0.8, 0.0]",
             lambda text, votes: types.Sphere(_size(text, votes, "sphere") - (not text))),
    Notation("spd:2", "a symmetric positive definite matrix", "[[2, 0], [0, 1]]",
             lambda text, votes: types.SPD(_size(text, votes, "spd"))),
    Notation("rotations", "a rotation of space, as a quaternion", "[1, 0, 0, 0]", lambda *_: types.SO3()),
    Notation("boxes:car,bus",
             "any number of boxes, with or without a class; size=640x480 refuses boxes outside of the image",
             '[{"x1": 10, "y1": 5, "x2": 60, "y2": 40, "label": "car"}]', _boxes),
    Notation("spans:who,where",
             "any number of spans of text, with or without a class; length=500, overlap=forbid refuse others",
             '[{"start": 0, "end": 5, "label": "who"}]', _spans),
    Notation("texts:gleu", "a text, compared by words (or sequences of words)", "the cat sat",
             lambda text, _: types.Texts(text or "words")),
    Notation("records:stars=scores;topic=classes", "several labels at once", '{"stars": 4, "topic": "art"}', _records),
)  # fmt: skip


@dataclass(frozen=True)
class Guess:
    """A label type, and the evidence for it in the votes.

    Examples
    --------
    >>> from consilience import Votes
    >>> guess_space(Votes.from_matrix([["cat", "dog"], ["cat", "cat"]])).reason
    '2 different words'
    """

    space: LabelSpace
    reason: str


def guess_space(votes: Votes) -> Guess:
    """Return the label type of votes if it is unambiguous; otherwise raise an error that lists the choices.

    Examples
    --------
    >>> guess_space(Votes.from_matrix([["cat", "dog"], ["cat", "cat"]]))
    Guess(space=Classes(['cat', 'dog']), reason='2 different words')
    """
    votes = as_votes(votes)
    cells = votes.labels[votes.observed]
    if len(cells) == 0:
        raise FileFormatError(
            "The table contains no votes, so the label type cannot be guessed. Check which columns hold votes."
        )
    if cells.ndim > 1:
        return _of_lists(list(cells))
    kind = cells.dtype.kind
    if kind == "b":
        return Guess(types.Classes([False, True]), "true and false")
    if kind in "iuf":
        if (scale := _scale(votes)) is not None:
            return Guess(types.Scores(range=scale), f"numbers out of {scale[1]:g}")
        if kind == "f" and not ((cells == np.round(cells)) & np.isfinite(cells)).all():
            return Guess(types.Scores(), "numbers with fractions")
        return _of_whole_numbers(cells.astype(np.int64), votes)
    listed = cells.tolist()
    if all(isinstance(cell, Comparisons) for cell in listed):
        return Guess(types.Preferences(), "comparisons of two items at a time")
    if all(isinstance(cell, str) for cell in listed):
        return _of_text(listed, votes)
    if all(isinstance(cell, dict) for cell in listed):
        return _of_records(listed)
    if all(isinstance(cell, (list, tuple, np.ndarray)) for cell in listed):
        return _of_lists(listed)
    examples: dict[str, str] = {}
    for cell, column in zip(listed, np.nonzero(votes.observed)[1].tolist(), strict=True):
        examples.setdefault(type(cell).__name__, f"{cell!r:.60} by {votes.sources[column]!r}")
    shown = " and ".join(f"{kind} ({example})" for kind, example in sorted(examples.items()))
    raise FileFormatError(
        f"The votes mix {shown}. Leave out columns that do not hold votes with drop='NAME', or write all labels in the "
        "same way."
    )


def _of_whole_numbers(cells: Batch, votes: Votes) -> Guess:
    values = np.unique(cells)
    if len(values) > MOST_CLASSES:
        return Guess(types.Scores(), f"{len(values)} different whole numbers")
    if values.min() >= 0 and values.max() <= 1:
        return Guess(types.Classes(2), "only 0 and 1")
    abstains = votes.receipt is not None and str(votes.receipt.abstain) == "-1"
    if abstains and np.array_equal(values, np.arange(len(values))):
        return Guess(types.Classes(len(values)), f"0 to {len(values) - 1} where -1 abstains")
    shown = ", ".join(map(str, values[:6])) + (", ..." if len(values) > 6 else "")
    step = " If -1 abstains, pass abstain=-1." if values.min() == -1 else ""
    raise FileFormatError(
        f"The votes are whole numbers ({shown}). Are they classes, or scores? Pass space=Classes(...) or "
        f"space=Scores().{step}"
    )


def _of_text(cells: list[str], votes: Votes) -> Guess:
    if all(cell.lstrip().startswith("[") for cell in cells):
        raise FileFormatError(f"The votes are lists such as {cells[0]}. {_LISTS}")
    if all(">" in cell for cell in cells):
        return Guess(_rankings("", votes), f"orders such as {cells[0][:SHOWN]!r}{'...' * (len(cells[0]) > SHOWN)}")
    values, counts = np.unique(np.array(cells, dtype=object).astype(str), return_counts=True)
    if (example := _example_of_tags(values.tolist())) is not None:
        return Guess(_tags("", votes), f"lists of words such as {example!r}")
    single = float((counts == 1).mean())
    if len(values) == 1:
        raise FileFormatError(
            f"All votes are {cells[0]!r}, so there is nothing to decide. Check which columns hold votes, or pass "
            f"space=Classes([...]) with all labels."
        )
    if len(values) > MOST_CLASSES and single > MOST_SINGLE:
        raise FileFormatError(
            f"The votes are {len(values)} different texts, and {single:.0%} of them occur once, so they are hardly "
            "classes. Pass space=Texts() or space=Classes(...), or use a Metric in Python."
        )
    return Guess(types.Classes.of(votes), f"{len(values)} different word{'s' * (len(values) != 1)}")


def _example_of_tags(values: list[str]) -> str | None:
    """Return one of these texts if they are lists that draw on fewer words than there are texts; otherwise None.

    Sentences with commas and names such as "Paris, Texas" have more parts than there are texts.
    """
    lists = types.Tags(1).read_text(as_object_array(values))
    longest = max(range(len(values)), key=lambda place: len(lists[place]))
    words = {word for listed in lists for word in listed}
    return values[longest] if len(lists[longest]) > 1 and len(words) < len(values) else None


def _of_records(cells: list[dict[str, Any]]) -> Guess:
    parts = {}
    for name in dict.fromkeys(key for cell in cells for key in cell):
        try:
            parts[name] = guess_space(Votes.from_array([[cell.get(name)] for cell in cells])).space
        except FileFormatError as error:
            raise FileFormatError(f"Field {name!r} of the records: {error}") from None
    return Guess(types.Product(weights=None, **parts), f"records of {', '.join(parts)}")


def _of_lists(cells: list[Any]) -> Guess:
    elements = [element for cell in cells for element in cell]
    if elements and all(isinstance(element, dict) for element in elements):
        for space, forms, what in ((types.Boxes, BOX_FORMS, "boxes"), (types.Spans, SPAN_FORMS, "spans")):
            if all(corners_and_class(element, forms) is not None for element in elements):
                classes = sorted({str(class_of(element)) for element in elements if class_of(element) is not None})
                return Guess(space(classes or None), f"lists of {what} such as {elements[0]!r}")
    numbers = all(isinstance(element, (int, float, np.number, np.bool_)) for element in elements)
    arrays = [np.asarray(cell) for cell in cells] if numbers else []
    if not numbers or any(array.dtype.kind not in "biuf" for array in arrays):
        raise FileFormatError(f"The votes are lists such as {cells[0]!r}. {_LISTS}")
    lengths = {len(array) for array in arrays}
    length = lengths.pop() if len(lengths) == 1 else None
    if any(array.dtype.kind == "f" for array in arrays):
        if length is None:
            raise FileFormatError(
                "The votes are lists of numbers of different lengths. No label type fits; check the cells."
            )
        return Guess(types.Vectors(length), f"lists of {length} numbers")
    if length is not None and length > 2 and all(np.isin(array, (0, 1)).all() for array in arrays):
        return Guess(types.Tags(length), f"lists of {length} zeros and ones")
    if length is not None and all(sorted(array.tolist()) == list(range(length)) for array in arrays):
        return Guess(types.Rankings(length), f"each list holds the positions 0 to {length - 1}")
    if all(types.DependencyTrees().contains(array) for array in arrays):
        return Guess(types.DependencyTrees(), "each list holds the head of every token, 0 for the root")
    raise FileFormatError(
        f"The votes are lists such as {np.asarray(cells[0]).tolist()!r}. Are they positions, tags or vectors? Pass "
        "space=Rankings(...), space=Tags(...) or space=Vectors(...)."
    )
