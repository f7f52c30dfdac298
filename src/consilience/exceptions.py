"""Every error the library raises on purpose: one class per kind of trouble.

All of them are `ConsilienceError`, and also `ValueError` or `TypeError`, so that generic handlers work.
A message states the fact, names the culprit and offers the next step.
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
    "MissingDataError",
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
    """Base class of all errors raised by consilience."""


class ConsilienceWarning(UserWarning):
    """Category of all warnings issued by consilience."""


class InvalidLabelError(ConsilienceError, ValueError):
    """A label does not belong to its label space.

    Parameters
    ----------
    message
        What is wrong and what was expected, without the place.
    index
        Position of the offending label in the batch that was checked; callers that know
        the row and the source turn it into a place.
    """

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index


class InvalidVotesError(ConsilienceError, ValueError):
    """A table of votes has the wrong shape, names or contents."""


class TransposedVotesError(InvalidVotesError):
    """A table of votes looks as if items and sources were swapped."""


class InvalidInputError(ConsilienceError, ValueError):
    """Covariates, labels or weights of an end model have the wrong shape or contents."""


class LabelingFunctionError(ConsilienceError, ValueError):
    """A labeling function failed, or returned something that is not one label per row."""


class UnknownColumnError(ConsilienceError, ValueError, AttributeError, KeyError):
    """A column does not occur in the data; the message says which one may be meant."""

    __str__ = Exception.__str__  # KeyError would put the message in quotes


class SourceMismatchError(ConsilienceError, ValueError):
    """The sources at prediction time are not those the model was fitted on."""


class UnknownSourceError(ConsilienceError, ValueError):
    """A source name does not occur in the votes."""


class PriorError(ConsilienceError, ValueError):
    """A prior over labels is not a probability distribution."""


class DistanceError(ConsilienceError, ValueError):
    """A distance function returned something that is not a distance."""


class UnsupportedError(ConsilienceError, TypeError):
    """An operation is not defined for this label type; the message says what to use instead."""


class NotFittedError(ConsilienceError, ValueError, AttributeError):
    """A model was used before `fit`."""


class FileFormatError(ConsilienceError, ValueError):
    """A file of votes or labels cannot be read or written."""


class ModelFormatError(ConsilienceError, ValueError):
    """A saved model cannot be read back."""


class MissingPackageError(ConsilienceError, ImportError):
    """An optional package is needed; the message gives the install line."""


class MissingDataError(ConsilienceError, FileNotFoundError):
    """A public data set is not where it was looked for; the message says where it comes from."""


def needed(module: str, use: str, extra: str | None = None) -> Any:
    """Return a module of an optional package, or say what needs it and how to install it, alone or by an extra."""
    try:
        return import_module(module)
    except ImportError:
        root = module.partition(".")[0]
        package = {"sklearn": "scikit-learn", "ufal": "ufal.udpipe"}.get(root, root)
        line = package if extra is None else f"'consilience[{extra}]'"
        raise MissingPackageError(f"{use} needs {package}, which is not installed. Run: pip install {line}.") from None


def did_you_mean(name: object, known: Iterable[object], most: int = 1) -> str:
    """Return " Did you mean ...?" with the most similar of the known names, to follow a sentence; or nothing."""
    close = get_close_matches(str(name), [str(one) for one in known], n=most)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
