"""Labeling functions from what is at hand: columns, words, models, other people's annotations. All are vectorized.

Where the data is a list, a column that is None stands for its elements. What each needs is passed as resources to a
function of this module, so that it can be sent to other processes.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
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
from consilience.tables.frames import Column, as_frame, columns_of, is_frame, missing_column


def from_column(
    column: str, name: str | None = None, *, abstain: Any = None, ranks: str | None = None
) -> LabelingFunction:
    """Return a source whose vote is the value of a column, such as a class or a score; null and `abstain` abstain.

    With `ranks` "largest first" or "smallest first", a cell holds one number per thing to be ranked, and the vote is
    the ranking by these numbers.

    Examples
    --------
    >>> from consilience import apply
    >>> prices = from_column("prices", ranks="smallest first")
    >>> apply(prices, {"prices": [[3.5, 1.0, 2.0], [1.0, 2.0, 0.5]]}).labels[:, 0].tolist()
    [[2, 0, 1], [1, 2, 0]]
    """
    if ranks not in (None, "largest first", "smallest first"):
        raise UnsupportedError(f"ranks={ranks!r} is unknown. Use 'largest first' or 'smallest first'.")
    resources = {"column": column, "ranks": ranks}
    return LabelingFunction(_cells, name or str(column), resources, vectorized=True, abstain=abstain)


def _cells(chunk: Any, column: str, ranks: str | None) -> Any:
    cells = column_of(chunk, column)
    if ranks is None:
        return cells
    return [
        None if null else positions_from_scores([numbers], larger_is_better=ranks == "largest first")[0]
        for numbers, null in zip(cells.values.tolist(), cells.null.tolist(), strict=True)
    ]


def keywords(
    column: str | None,
    words: Iterable[str],
    label: Any,
    *,
    name: str | None = None,
    whole_words: bool = True,
    ignore_case: bool = True,
) -> LabelingFunction:
    """Return a source that votes `label` where the text has one of the words or phrases, and abstains elsewhere.

    With `whole_words`, "art" is not found in "party".

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
    # Not \b, which finds no boundary at words that begin or end with a symbol, such as "c++".
    pattern = rf"(?<!\w)(?:{choice})(?!\w)" if whole_words else choice
    return regex(column, pattern, label, name=name or f"keywords_{label}", flags=re.IGNORECASE if ignore_case else 0)


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
    resources = {"column": column, "pattern": compiled, "label": label}
    return LabelingFunction(_search, name or f"regex_{label}", resources, vectorized=True)


def _search(chunk: Any, column: str | None, pattern: re.Pattern[str], label: Any) -> Column:
    texts = column_of(chunk, column)
    found = (
        not null and pattern.search(text if isinstance(text, str) else str(text)) is not None
        for text, null in zip(texts.values.tolist(), texts.null.tolist(), strict=True)
    )
    return _where(np.fromiter(found, dtype=bool, count=len(texts.null)), label)


def threshold(
    column: str | None, *, above: float | None = None, below: float | None = None, label: Any, name: str | None = None
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
    resources = {"column": column, "above": above, "below": below, "label": label}
    return LabelingFunction(_between, name or "_".join([str(column or "value"), *ends]), resources, vectorized=True)


def _between(chunk: Any, column: str | None, above: float | None, below: float | None, label: Any) -> Column:
    numbers = column_of(chunk, column)
    inside = ~numbers.null
    if numbers.values.dtype.kind not in "biuf":
        for example in numbers.values[inside][:1]:
            raise InvalidVotesError(
                f"Column {column!r} holds {example!r}, not numbers. Convert it, or use from_column."
            )
        return _where(inside, label)
    if above is not None:
        inside &= numbers.values > above
    if below is not None:
        inside &= numbers.values < below
    return _where(inside, label)


def _where(mask: BoolArray, label: Any) -> Column:
    """Return one label where the mask is set."""
    if isinstance(label, (bool, int, float, np.number)):
        values: npt.NDArray[Any] = np.full(len(mask), label)
    else:
        values = as_object_array([label]).repeat(len(mask))
        values[~mask] = None
    return Column(values, ~mask)


def from_annotations(
    annotations: Any, item: str | None = None, name: str = "annotations", *, label: str = "label"
) -> LabelingFunction:
    """Return a source that votes for existing annotations, and abstains on items without one.

    Annotations are a mapping from item id to label, or a frame with one row per item. `item` names the column of ids,
    of the data and of the frame; `label` names the column of the frame that holds the labels.

    Examples
    --------
    >>> from consilience import apply
    >>> known = from_annotations({"x2": "cat"}, "id")
    >>> apply(known, {"id": ["x1", "x2"]}).labels.tolist()
    [[None], ['cat']]
    """
    if isinstance(annotations, Mapping):
        known = dict(annotations)
    elif not is_frame(annotations) or item is None:
        raise UnsupportedError(
            "Annotations are a mapping from item to label, or a frame together with item= and label=, its two columns."
        )
    else:
        columns = columns_of(annotations)
        for wanted, role in ((item, "item"), (label, "label")):
            if wanted not in columns:
                raise missing_column(wanted, role, columns, annotations)
        known = {}
        present = ~columns[label].null & ~columns[item].null
        ids, labels = (columns[column].values[present].tolist() for column in (item, label))
        for one, said in zip(ids, labels, strict=True):
            if one in known:
                raise InvalidVotesError(
                    f"Item {one!r} has two annotations. Keep one per item, or make one function per annotator."
                )
            known[one] = said
    return LabelingFunction(_look_up, name, {"known": known, "item": item}, vectorized=True)


def _look_up(chunk: Any, known: dict[Any, Any], item: str | None) -> list[Any]:
    ids = column_of(chunk, item).values.tolist()
    return [known.get(one) if isinstance(one, Hashable) else None for one in ids]


def from_model(
    model: Any,
    columns: str | Sequence[str] | None,
    *,
    name: str | None = None,
    at_least: float | None = None,
    soft: bool = False,
    classes: Sequence[Any] | None = None,
) -> LabelingFunction:
    """Return a source that votes for the predictions of a fitted model with `predict` or `predict_proba`.

    One column is passed as a one-dimensional array, such as an array of texts, and several as a table. The source
    abstains on rows in which a column is null. With `predict_proba` and `classes_`, as in scikit-learn, it abstains
    where the largest probability is below `at_least`, or with `soft` it votes rows of probabilities (for ``Classes``).
    `classes` gives their order if it is not that of the model.

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
    order: list[int] | None = None
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
        order = [own.index(label) if label in own else -1 for label in space_order]
    several = columns if columns is None or isinstance(columns, str) else tuple(columns)
    resources = {"model": model, "columns": several, "at_least": at_least, "order": order}
    return LabelingFunction(_predict, name or type(model).__name__, resources, vectorized=True)


def _predict(
    chunk: Any, model: Any, columns: str | tuple[str, ...] | None, at_least: float | None, order: list[int] | None
) -> Column:
    """Return the votes of a model; `order` has the places of its classes in a row of probabilities."""
    inputs, shown = _model_inputs(chunk, model, columns)
    if not shown.any():
        return Column(np.zeros(len(shown), dtype=np.int8), ~shown)
    if at_least is None and order is None:
        votes: Batch = np.asarray(model.predict(inputs))
    else:
        probabilities = np.asarray(model.predict_proba(inputs), dtype=np.float64)
        if order is None:
            votes = np.asarray(model.classes_)[probabilities.argmax(axis=1)]
        else:
            votes = np.pad(probabilities, ((0, 0), (0, 1)))[:, order]  # -1: never predicted
        sure = probabilities.max(axis=1) >= (at_least or 0.0)
        shown[shown] = sure
        votes = votes[sure]
    votes = votes.astype(object) if votes.dtype.kind not in "biuf" else votes
    values = blank((len(shown), *votes.shape[1:]), votes.dtype)
    values[shown] = votes
    return Column(values, ~shown)


def _model_inputs(chunk: Any, model: Any, columns: str | tuple[str, ...] | None) -> tuple[Any, BoolArray]:
    """Return what the model is shown of a chunk, and of which rows."""
    if columns is None or isinstance(columns, str):
        column = column_of(chunk, columns)
        return column.values[~column.null], ~column.null
    table = [column_of(chunk, name) for name in columns]
    shown = ~np.any([column.null for column in table], axis=0)
    values = [column.values[shown] for column in table]
    if hasattr(model, "feature_names_in_"):  # was fitted on a frame, and expects one
        if is_frame(chunk) and not hasattr(chunk, "to_batches"):
            frame = as_frame(chunk).select(list(columns)).filter(shown.tolist())
            return frame.to_native(), shown
        if find_spec("pandas"):
            import pandas as pd

            return pd.DataFrame(dict(zip(columns, values, strict=True))), shown
    numeric = all(array.dtype.kind in "biuf" for array in values)
    return np.column_stack(values if numeric else [array.astype(object) for array in values]), shown
