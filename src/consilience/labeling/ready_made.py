"""Labeling functions from what is at hand: columns, words, models, other people's annotations. All are vectorized."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, as_object_array
from consilience.exceptions import InvalidVotesError, UnsupportedError
from consilience.label_types.rankings.builders import positions_from_scores
from consilience.labeling.chunks import column_of
from consilience.labeling.functions import LabelingFunction
from consilience.tables.cells import blank
from consilience.tables.frames import Column, columns_of, is_frame, missing_column

__all__ = ["from_annotations", "from_column", "from_model", "keywords", "regex", "threshold"]


def from_column(
    column: str, name: str | None = None, *, abstain: Any = None, ranks: str | None = None
) -> LabelingFunction:
    """Return a source whose vote stands in a column: a class, a score, anything; null abstains.

    Parameters
    ----------
    column
        Name of the column.
    name
        Name of the source; that of the column if not given.
    abstain
        A value that means "abstains", besides null.
    ranks
        "largest first" or "smallest first" where a cell holds one number per thing to be ranked: the vote
        is the ranking by these numbers.

    Examples
    --------
    >>> from consilience import apply
    >>> prices = from_column("prices", ranks="smallest first")
    >>> apply(prices, {"prices": [[3.5, 1.0, 2.0], [1.0, 2.0, 0.5]]}).labels[:, 0].tolist()
    [[2, 0, 1], [1, 2, 0]]
    """
    if ranks not in (None, "largest first", "smallest first"):
        raise UnsupportedError(f"ranks={ranks!r} is unknown. Use 'largest first' or 'smallest first'.")
    return _make(_Cells(column, ranks), name or str(column), abstain)


def keywords(
    column: str | None,
    words: Iterable[str],
    label: Any,
    *,
    name: str | None = None,
    whole_words: bool = True,
    ignore_case: bool = True,
) -> LabelingFunction:
    """Return a source that votes `label` where the text has one of the words, and abstains elsewhere.

    Parameters
    ----------
    column
        Name of the column of texts; None where the data is a list of texts.
    words
        Words or phrases.
    whole_words
        Whether "art" is not found in "party".

    Examples
    --------
    >>> from consilience import apply
    >>> votes = apply(keywords(None, ["free", "win"], "spam"), ["Win a car", "winter is coming"])
    >>> votes.observed[:, 0].tolist()
    [True, False]
    """
    several = [words] if isinstance(words, str) else list(words)
    if not several or not all(isinstance(word, str) and word for word in several):
        raise InvalidVotesError(f"words={several!r} is not a list of words. Give at least one, none of them empty.")
    choice = "|".join(re.escape(word) for word in sorted(several, key=len, reverse=True))
    # Not \b: it finds no border beside a word that begins or ends with a sign, such as "c++".
    pattern = rf"(?<!\w)(?:{choice})(?!\w)" if whole_words else choice
    compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    return _make(_Search(column, compiled, label), name or f"keywords_{label}")


def regex(
    column: str | None, pattern: str | re.Pattern[str], label: Any, *, name: str | None = None, flags: int = 0
) -> LabelingFunction:
    """Return a source that votes `label` where the pattern of `re` is found in the text, and abstains elsewhere.

    Examples
    --------
    >>> from consilience import apply
    >>> apply(regex(None, r"https?://", 1), ["see http://a.example", "see you"]).observed[:, 0].tolist()
    [True, False]
    """
    try:
        compiled = re.compile(pattern, flags)
    except re.error as error:
        raise InvalidVotesError(f"pattern={pattern!r} is not a regular expression: {error}. Correct it.") from None
    return _make(_Search(column, compiled, label), name or f"regex_{label}")


def threshold(
    column: str | None,
    *,
    above: float | None = None,
    below: float | None = None,
    label: Any,
    name: str | None = None,
) -> LabelingFunction:
    """Return a source that votes `label` where a number is above a value, below one, or between the two.

    Examples
    --------
    >>> from consilience import apply
    >>> apply(threshold(None, above=100, label="warm"), [20.5, 104.0, None]).observed[:, 0].tolist()
    [False, True, False]
    """
    if above is None and below is None:
        raise InvalidVotesError("threshold needs a value. Give above=, below= or both.")
    if above is not None and below is not None and not above < below:
        raise InvalidVotesError(
            f"Nothing is above {above} and below {below}. Give above < below, or write two functions."
        )
    ends = [f"{word}_{end:g}" for word, end in (("above", above), ("below", below)) if end is not None]
    return _make(_Between(column, above, below, label), name or "_".join([str(column or "value"), *ends]))


def from_annotations(
    annotations: Any, item: str | None = None, name: str = "annotations", *, label: str = "label"
) -> LabelingFunction:
    """Return a source that says of an item what was said of it before, and abstains on others.

    Parameters
    ----------
    annotations
        A mapping from item id to label, or a frame with one row per item.
    item
        The column that holds the id: of the data, and of the frame. None where the data is a list of ids.
    label
        The column of the frame that holds the label.

    Examples
    --------
    >>> from consilience import apply
    >>> known = from_annotations({"x2": "cat"}, "id")
    >>> apply(known, {"id": ["x1", "x2"]}).labels.tolist()
    [[None], ['cat']]
    """
    if isinstance(annotations, Mapping):
        return _make(_Lookup(dict(annotations), item), name)
    if not is_frame(annotations) or item is None:
        raise UnsupportedError(
            "Annotations are a mapping from item to label, or a frame together with item= and label=, its two columns."
        )
    columns = columns_of(annotations)
    for wanted, role in ((item, "item"), (label, "label")):
        if wanted not in columns:
            raise missing_column(wanted, role, columns, annotations)
    known: dict[Any, Any] = {}
    present = ~columns[label].null & ~columns[item].null
    for one, said in zip(columns[item].values[present].tolist(), columns[label].values[present].tolist(), strict=True):
        if one in known:
            raise InvalidVotesError(
                f"Item {one!r} has two annotations. Keep one per item, or make one function per annotator."
            )
        known[one] = said
    return _make(_Lookup(known, item), name)


def from_model(
    model: Any,
    columns: str | Sequence[str] | None,
    *,
    name: str | None = None,
    at_least: float | None = None,
    soft: bool = False,
    classes: Sequence[Any] | None = None,
) -> LabelingFunction:
    """Return a source that votes what a model predicts: anything with `predict` or `predict_proba`.

    Rows in which a column is null are not shown to the model; it abstains there.

    Parameters
    ----------
    model
        Fitted. With `predict_proba` and `classes_`, as in scikit-learn, it may abstain or vote probabilities.
    columns
        Columns the model takes. One name hands over a one-dimensional array (of texts, say), a list of names
        a table with these columns. None hands over the elements of a list as they are.
    at_least
        Abstain where the largest probability is smaller.
    soft
        Vote rows of probabilities, for ``Classes``.
    classes
        With `soft`, the classes in the order of the label space.

    Examples
    --------
    >>> class Length:
    ...     def predict(self, texts):
    ...         return np.array([len(text) for text in texts])
    >>> from consilience import apply
    >>> apply(from_model(Length(), "text"), {"text": ["tea", None]}).observed[:, 0].tolist()
    [True, False]
    """
    needs_proba = soft or at_least is not None
    if not hasattr(model, "predict_proba" if needs_proba else "predict"):
        wanted = "predict_proba, which soft= and at_least= need" if needs_proba else "predict"
        raise UnsupportedError(f"{type(model).__name__} has no {wanted}.")
    if at_least is not None and not 0.0 <= at_least <= 1.0:
        raise InvalidVotesError(f"at_least={at_least!r} is not a probability. Use a number between 0 and 1.")
    order: tuple[int, ...] | None = None
    if soft:
        own = np.asarray(model.classes_).tolist()
        if classes is None and own != list(range(len(own))):
            raise UnsupportedError(
                f"Rows of probabilities are in the order of the label space, the model's are in the order {own}. "
                "Pass classes= with the classes in the order of the space."
            )
        space_order = own if classes is None else list(classes)
        missing = [label for label in own if label not in space_order]
        if missing:
            raise InvalidVotesError(f"classes={space_order} lacks {missing}, which the model may predict.")
        order = tuple(own.index(label) if label in own else -1 for label in space_order)
    wanted_columns = columns if columns is None or isinstance(columns, str) else tuple(columns)
    return _make(_Predict(model, wanted_columns, at_least, order), name or type(model).__name__)


def _make(function: Callable[..., Any], name: str, abstain: Any = None) -> LabelingFunction:
    return LabelingFunction(function, name, vectorized=True, abstain=abstain)


# Classes rather than nested functions, so that they can be sent to other processes.


@dataclass(frozen=True, eq=False)
class _Cells:
    column: str
    ranks: str | None

    def __call__(self, chunk: Any) -> Any:
        cells = column_of(chunk, self.column)
        if self.ranks is None:
            return cells
        largest = self.ranks == "largest first"
        return [
            None if null else positions_from_scores([numbers], larger_is_better=largest)[0]
            for numbers, null in zip(cells.values.tolist(), cells.null.tolist(), strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Search:
    column: str | None
    pattern: re.Pattern[str]
    label: Any

    def __call__(self, chunk: Any) -> Column:
        texts = column_of(chunk, self.column)
        search = self.pattern.search
        found = (
            not null and search(text if isinstance(text, str) else str(text)) is not None
            for text, null in zip(texts.values.tolist(), texts.null.tolist(), strict=True)
        )
        return _where(np.fromiter(found, dtype=bool, count=len(texts.null)), self.label)


@dataclass(frozen=True, eq=False)
class _Between:
    column: str | None
    above: float | None
    below: float | None
    label: Any

    def __call__(self, chunk: Any) -> Column:
        numbers = column_of(chunk, self.column)
        inside = ~numbers.null
        if numbers.values.dtype.kind not in "biuf":
            for example in numbers.values[inside][:1]:
                raise InvalidVotesError(
                    f"Column {self.column!r} holds {example!r}, not numbers. Convert it, or use from_column."
                )
            return _where(inside, self.label)
        if self.above is not None:
            inside &= numbers.values > self.above
        if self.below is not None:
            inside &= numbers.values < self.below
        return _where(inside, self.label)


@dataclass(frozen=True, eq=False)
class _Lookup:
    known: dict[Any, Any]
    item: str | None

    def __call__(self, chunk: Any) -> list[Any]:
        ids = column_of(chunk, self.item).values.tolist()
        return [self.known.get(one) if isinstance(one, Hashable) else None for one in ids]


@dataclass(frozen=True, eq=False)
class _Predict:
    model: Any
    columns: str | tuple[str, ...] | None
    at_least: float | None
    order: tuple[int, ...] | None

    def __call__(self, chunk: Any) -> Column:
        inputs, shown = self._inputs(chunk)
        n = len(shown)
        if not shown.any():
            return Column(np.zeros(n, dtype=np.int8), ~shown)
        if self.at_least is None and self.order is None:
            return _spread(np.asarray(self.model.predict(inputs)), shown)
        probabilities = np.asarray(self.model.predict_proba(inputs), dtype=np.float64)
        if self.order is None:
            votes = np.asarray(self.model.classes_)[probabilities.argmax(axis=1)]
        else:
            votes = np.pad(probabilities, ((0, 0), (0, 1)))[:, list(self.order)]  # -1: never predicted
        kept = probabilities.max(axis=1) >= (self.at_least or 0.0)
        shown[shown] = kept
        return _spread(votes[kept], shown)

    def _inputs(self, chunk: Any) -> tuple[Any, BoolArray]:
        if self.columns is None or isinstance(self.columns, str):
            column = column_of(chunk, self.columns)
            return column.values[~column.null], ~column.null
        table = [column_of(chunk, name) for name in self.columns]
        shown = ~np.any([column.null for column in table], axis=0)
        values = [column.values[shown] for column in table]
        if hasattr(self.model, "feature_names_in_"):  # was fitted on a frame, and asks for one
            if is_frame(chunk) and not hasattr(chunk, "to_batches"):
                import narwhals as nw

                frame = nw.from_native(chunk, eager_only=True).select(list(self.columns)).filter(shown.tolist())
                return frame.to_native(), shown
            if find_spec("pandas"):
                import pandas as pd

                return pd.DataFrame(dict(zip(self.columns, values, strict=True))), shown
        numeric = all(array.dtype.kind in "biuf" for array in values)
        return np.column_stack(values if numeric else [array.astype(object) for array in values]), shown


def _where(mask: BoolArray, label: Any) -> Column:
    """Return one label where the mask is set."""
    if isinstance(label, (bool, int, float, np.number)):
        values: npt.NDArray[Any] = np.full(len(mask), label)
    else:
        values = as_object_array([label]).repeat(len(mask))
        values[~mask] = None
    return Column(values, ~mask)


def _spread(votes: Batch, shown: BoolArray) -> Column:
    """Return votes on some rows as a column of all."""
    votes = votes.astype(object) if votes.dtype.kind not in "biuf" else votes
    values = blank((len(shown), *votes.shape[1:]), votes.dtype)
    values[shown] = votes
    return Column(values, ~shown)
