"""The errors of the library: one class per kind of problem, all of them `ConsilienceError`.

They are also `ValueError`, `TypeError` or `ImportError`, so that generic handlers work. A message states the fact,
names the culprit and offers the next step.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

__all__ = [
    "ConsilienceError",
    "ConsilienceWarning",
    "DistanceError",
    "FileFormatError",
    "InvalidInputError",
    "InvalidLabelError",
    "InvalidVotesError",
    "LabelingFunctionError",
    "MissingPackageError",
    "ModelFormatError",
    "NotFittedError",
    "PriorError",
    "SourceMismatchError",
    "TransposedVotesError",
    "UnknownColumnError",
    "UnknownSourceError",
    "UnsupportedError",
]


class ConsilienceError(Exception):
    """Base class of all errors raised by consilience.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> try:
    ...     LabelModel(Classes(2)).fit([[0, 7]])
    ... except ConsilienceError as error:
    ...     print(error)
    Row 0, source 'source_1': label 7 is not a class 0 .. 1 ...
    """


class ConsilienceWarning(UserWarning):
    """Category of all warnings issued by consilience.

    Examples
    --------
    >>> import warnings
    >>> from consilience import Classes, LabelModel
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ConsilienceWarning)  # the findings are in diagnostics_ as well
    ...     model = LabelModel(Classes(2)).fit([[0, 1], [1, 1]] * 5)
    >>> model.diagnostics_[0].code
    'too-few-sources'
    """


class InvalidLabelError(ConsilienceError, ValueError):
    """A label does not belong to its label space.

    Parameters
    ----------
    message
        What is wrong and what was expected, without the place.
    index
        Position of the wrong label in the batch, from which callers find its row and source.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> LabelModel(Classes(2)).fit([[0, 7]])
    Traceback (most recent call last):
    consilience.exceptions.InvalidLabelError: Row 0, source 'source_1': label 7 ...
    """

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index


class InvalidVotesError(ConsilienceError, ValueError):
    """A table of votes has the wrong shape, names or contents.

    Examples
    --------
    >>> from consilience import Votes
    >>> Votes.from_matrix([[0, 1], [1]])
    Traceback (most recent call last):
    consilience.exceptions.InvalidVotesError: Row 1 has 1 votes, but row 0 has 2. ...
    """


class TransposedVotesError(InvalidVotesError):
    """A table of votes looks as if items and sources were swapped.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> LabelModel(Classes(2)).fit([[0] * 40, [1] * 40])
    Traceback (most recent call last):
    consilience.exceptions.TransposedVotesError: 2 items by 40 unnamed sources looks transposed: ...
    """


class InvalidInputError(ConsilienceError, ValueError):
    """Covariates, labels or weights of an end model have the wrong shape or contents.

    Examples
    --------
    >>> from consilience import Sphere, end_models
    >>> end_models.GeodesicRegression(Sphere(2)).fit([1.0], [[1.0, 0.0, 0.0]])
    Traceback (most recent call last):
    consilience.exceptions.InvalidInputError: 1 items with a label and a weight are too few ...
    """


class LabelingFunctionError(ConsilienceError, ValueError):
    """A labeling function failed, or returned something that is not one label per row.

    Examples
    --------
    >>> from consilience import apply
    >>> apply([lambda number: 1 // number], [1, 0])
    Traceback (most recent call last):
    consilience.exceptions.LabelingFunctionError: Labeling function '<lambda>' failed on row 1: ...
    """


class UnknownColumnError(ConsilienceError, ValueError, AttributeError, KeyError):
    """A column does not occur in the data; the message says which one may be meant.

    Examples
    --------
    >>> from consilience import apply, labeling
    >>> apply([labeling.keywords("txt", ["free"], "spam")], {"text": ["free car"]})
    Traceback (most recent call last):
    consilience.exceptions.UnknownColumnError: ... There is no column 'txt'. Did you mean 'text'? ...
    """

    __str__ = Exception.__str__  # KeyError would put the message in quotes


class SourceMismatchError(ConsilienceError, ValueError):
    """The sources at prediction time are not those the model was fitted on.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> model = LabelModel(Classes(2)).fit({"ann": [0, 1], "bob": [0, 1], "cleo": [0, 0]})
    >>> model.predict({"ann": [0], "bob": [1], "zoe": [0]})
    Traceback (most recent call last):
    consilience.exceptions.SourceMismatchError: ... 'cleo' is missing; 'zoe' is unknown. ...
    """


class UnknownSourceError(ConsilienceError, ValueError):
    """A source name does not occur in the votes.

    Examples
    --------
    >>> from consilience import Votes
    >>> Votes.from_matrix([[0, 1]], sources=["ann", "bob"]).select(["zoe"])
    Traceback (most recent call last):
    consilience.exceptions.UnknownSourceError: There is no source 'zoe'. Choose from 'ann', 'bob'.
    """


class PriorError(ConsilienceError, ValueError):
    """A prior over labels is not a probability distribution.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> LabelModel(Classes(2), prior=[0.9, 0.3]).fit([[0, 1, 1]])
    Traceback (most recent call last):
    consilience.exceptions.PriorError: prior adds up to 1.2, not 1. Divide it by its sum.
    """


class DistanceError(ConsilienceError, ValueError):
    """A distance function returned something that is not a distance.

    Examples
    --------
    >>> from consilience import LabelModel, Metric
    >>> LabelModel(Metric(lambda left, right: -1.0)).fit([[1, 2, 3]] * 4)
    Traceback (most recent call last):
    consilience.exceptions.DistanceError: The distance function returned -1.0 between ...
    """


class UnsupportedError(ConsilienceError, TypeError):
    """An operation is not defined for this label type; the message says what to use instead.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> LabelModel(Classes(2), method="magic").fit([[0, 1, 1]])
    Traceback (most recent call last):
    consilience.exceptions.UnsupportedError: method='magic' is not available for this label type. ...
    """


class NotFittedError(ConsilienceError, ValueError, AttributeError):
    """A model was used before `fit`.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> LabelModel(Classes(2)).predict([[0, 1]])
    Traceback (most recent call last):
    consilience.exceptions.NotFittedError: This LabelModel has not been fitted. Call fit(votes) first.
    """


class FileFormatError(ConsilienceError, ValueError):
    """A file of votes or labels cannot be read or written.

    Examples
    --------
    >>> from consilience import read_votes
    >>> read_votes("no_such_file.csv")
    Traceback (most recent call last):
    consilience.exceptions.FileFormatError: There is no file 'no_such_file.csv'....
    """


class ModelFormatError(ConsilienceError, ValueError):
    """A saved model cannot be read back.

    Examples
    --------
    >>> from consilience import LabelModel
    >>> LabelModel.load(__file__)
    Traceback (most recent call last):
    consilience.exceptions.ModelFormatError: ...
    """


class MissingPackageError(ConsilienceError, ImportError):
    """An optional package is needed; the message gives the install line.

    Examples
    --------
    >>> needed("no_such_package", "This example")
    Traceback (most recent call last):
    consilience.exceptions.MissingPackageError: This example needs no_such_package, which is not installed. ...
    """


def needed(module: str, use: str, extra: str | None = None) -> Any:
    """Return a module of an optional package, or raise an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        root = module.partition(".")[0]
        package = {"sklearn": "scikit-learn", "ufal": "ufal.udpipe"}.get(root, root)
        line = package if extra is None else f"'consilience[{extra}]'"
        raise MissingPackageError(f"{use} needs {package}, which is not installed. Run: pip install {line}.") from None


def unknown_column(name: object, columns: Iterable[object], where: str = "") -> UnknownColumnError:
    """Return the error for a missing column, with the columns that may be meant."""
    names = [str(one) for one in columns]
    fault = f"{where} has no column {name!r}" if where else f"There is no column {name!r}"
    shown = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
    return UnknownColumnError(f"{fault}.{did_you_mean(name, names, most=3)} The columns are {shown}.")


def did_you_mean(name: object, known: Iterable[object], most: int = 1) -> str:
    """Return " Did you mean ...?" with the most similar of the known names, to follow a sentence; or nothing."""
    close = get_close_matches(str(name), [str(one) for one in known], n=most)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
