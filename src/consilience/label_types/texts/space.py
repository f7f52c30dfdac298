"""Texts: translations, transcripts, summaries, captions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray, as_object_array, is_null
from consilience.exceptions import DistanceError, InvalidLabelError
from consilience.label_types.base import LabelSpace, Unit
from consilience.label_types.codes import arrow_column, read_each
from consilience.label_types.metric.space import Metric
from consilience.label_types.registry import distance_by_name, name_of_distance
from consilience.label_types.texts.law import KINDS, TextLaw
from consilience.lazy import pyarrow as pa

#: Vocabulary size of random texts, and how many words a text has.
VOCABULARY, FEWEST, MOST = 2000, 6, 12
STEP = "Correct it, or leave the cell empty (None) where the source abstains."


@dataclass(frozen=True, init=False, eq=False)
class Texts(LabelSpace):
    """Texts, compared word by word; None abstains.

    The label is the vote of least weighted distance to all votes, or a text that is closer to them: words on which
    enough sources agree replace others as long as that lowers the distance.

    Parameters
    ----------
    distance
        "words": words to insert, delete or replace, as a share of the longer text. "gleu": one minus GLEU, the share of
        sequences of one to four words that are in both texts. Or a function of two texts, or the name of a registered
        one.
    exact
        Whether words are compared exactly; otherwise punctuation and case are ignored.
    write
        Whether a label may be a new text; otherwise it is one of the votes.

    Examples
    --------
    >>> space = Texts()
    >>> space.distance(space.as_batch(["The cat sat."]), space.as_batch(["the black cat sat"])).tolist()
    [0.25]
    """

    kind: str
    function: Callable[..., Any] | None
    exact: bool
    write: bool

    def __init__(
        self, distance: str | Callable[..., Any] = "words", *, exact: bool = False, write: bool = True
    ) -> None:
        function = None if isinstance(distance, str) and distance in KINDS else distance
        if isinstance(function, str):
            function = distance_by_name(function)
        if distance is None or (function is not None and not callable(function)):
            raise DistanceError(f"distance={distance!r} is neither 'words' nor 'gleu' nor a function of two texts.")
        object.__setattr__(self, "kind", "given" if function is not None else distance)
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "exact", bool(exact))
        object.__setattr__(self, "write", bool(write))

    def __repr__(self) -> str:
        shown = repr(self.kind) if self.function is None else getattr(self.function, "__name__", "function")
        return f"Texts({shown}{', exact=True' * self.exact}{', write=False' * (not self.write)})"

    @cached_property
    def law(self) -> TextLaw:
        given = None if self.function is None else Metric(self.function).distance
        return TextLaw(self.kind, given, self.exact, self.write)

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        return self.law.cost(left, right)

    def unit(self, parameters: Any) -> Unit:
        if self.kind == "gleu":
            return Unit("GLEU", "the GLEU of a vote against the true text", lambda cost: 1.0 - cost)
        if self.kind == "words":
            return Unit("word_error_rate", "the share of words to change")
        return super().unit(parameters)

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        sizes = rng.integers(FEWEST, MOST + 1, n)
        return as_object_array(" ".join(_words(rng.integers(0, VOCABULARY, size))) for size in sizes)

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        """Return one vote per center with some words replaced; for your own distance, one of many random texts."""
        if self.function is not None:
            return super().sample_around(centers, weight, rng)
        cost = float(self.law.expected_cost(np.array([weight]))[0])
        votes = []
        for center in centers:
            words = center.split()
            share = cost if self.kind == "words" else _replaced_share(len(words), cost)
            new = _words(rng.integers(0, VOCABULARY, len(words)))
            swapped = rng.random(len(words)) < share
            votes.append(" ".join(np.where(swapped, new, words).tolist()))
        return as_object_array(votes)

    def as_batch(self, labels: Any) -> Batch:
        return as_object_array(read_each(labels, _text))

    def spec(self) -> dict[str, Any]:
        distance = self.kind if self.function is None else name_of_distance(self.function)
        return {"distance": distance, "exact": self.exact, "write": self.write}

    def to_arrow(self, batch: Batch) -> pa.Array:
        return arrow_column([None if is_null(text) else str(text) for text in batch]).cast("string")

    def from_arrow(self, column: pa.Array) -> Batch:
        return as_object_array(column.to_pylist())


def _text(label: Any) -> str:
    if isinstance(label, (bytes, bytearray)):
        raise InvalidLabelError(
            f"label {bytes(label[:40])!r} is bytes, not text. Decode it first: label.decode('utf-8')."
        )
    if not isinstance(label, str):
        raise InvalidLabelError(f"label {label!r} is a {type(label).__name__}, not a text. {STEP}")
    if not label.strip():
        raise InvalidLabelError(f"label {label!r} is an empty text. {STEP}")
    return str(label)


def _words(numbers: Any) -> list[str]:
    """Return a made-up word for every number."""
    return [f"{'bcdfghklmnprstvz'[k % 16]}{'aeiou'[k // 16 % 5]}{'lmnrst'[k // 80 % 6]}{k // 480}" for k in numbers]


def _replaced_share(length: int, cost: float) -> float:
    """Return the share of words to replace for this expected distance in sequences of one to four words."""
    sizes = np.arange(1, min(length, 4) + 1)
    share = np.linspace(0.0, 1.0, 201)
    common = ((length - sizes + 1) * (1.0 - share[:, None]) ** sizes).sum(axis=1) / (length - sizes + 1).sum()
    return float(np.interp(cost, 1.0 - common, share))
