"""Distances by name, so that a saved model can be loaded without executing code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from consilience.exceptions import DistanceError, ModelFormatError

_DISTANCES: dict[str, Callable[..., Any]] = {}


def register_distance(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a distance function under a name, so that models that use it can be saved and loaded.

    Examples
    --------
    >>> def gap(left, right):
    ...     return abs(left - right)
    >>> register_distance("gap", gap) is gap
    True
    """
    if not isinstance(name, str) or not callable(function):
        raise DistanceError(f"register_distance({name!r}, {function!r}): expected a name and a function of two labels.")
    known = _DISTANCES.setdefault(name, function)
    if known is not function and known.__qualname__ != function.__qualname__:
        raise ModelFormatError(f"A different distance is already registered as {name!r}. Choose another name.")
    _DISTANCES[name] = function
    return function


def distance_by_name(name: str) -> Callable[..., Any]:
    """Return a registered distance."""
    if name in _DISTANCES:
        return _DISTANCES[name]
    raise ModelFormatError(
        f"No distance is registered as {name!r}. Call label_types.register_distance({name!r}, function) first."
    )


def name_of_distance(function: Callable[..., Any]) -> str:
    """Return the name under which a distance is registered."""
    for name, known in _DISTANCES.items():
        if known is function:
            return name
    raise ModelFormatError(
        f"The distance {getattr(function, '__name__', function)!r} has no registered name, and code is never saved. "
        "Call consilience.label_types.register_distance('a-name', function) before save, and again before load."
    )
