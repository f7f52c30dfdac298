"""The content of a model file, checked before use. The declarations of the classes are the schema.

A field has a type, and a stored array or number also has `Axes`: its shape and the range of its numbers.
"""

from __future__ import annotations

import collections.abc
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from consilience.arrays import Axes
from consilience.estimation.protocol import CompositeLaw, Law, Mixture, Parameters
from consilience.exceptions import ModelFormatError

#: Tolerance for numbers outside their range, and for negative eigenvalues, relative to the largest.
ROUNDING = 1e-9
#: Kinds of arrays for labels and columns: booleans, integers, floats, texts, objects.
PLAIN = "biufUO"


@dataclass(frozen=True)
class Place:
    """The place of a value in a file, the law of the labels there, and the sizes that are known so far."""

    file: str
    name: str = ""
    law: Law | None = None
    sizes: dict[str, int] = field(default_factory=dict)

    def __truediv__(self, name: object) -> Place:
        return replace(self, name=f"{self.name}.{name}" if self.name else str(name))

    def refused(self, value: Any, expected: str) -> ModelFormatError:
        """Return the error about a value that is not as expected."""
        shown = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else f"{value!r:.60}"
        return ModelFormatError(
            f"{self.file!r}: field {self.name!r} is {shown}; expected {expected}. Pass the space that the model was "
            "fitted with; if you did, the file is damaged or was changed, so fit and save again."
        )


def checked(hint: Any, value: Any, place: Place) -> Any:
    """Return a value of a file as the declared type, or raise an error that names the field."""
    if hint is Any:
        return value
    if hint is Parameters and place.law is not None:
        sizes = {"m": place.sizes["m"], **place.law.sizes}
        return checked(place.law.parameter_class, value, replace(place, sizes=sizes))
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _numbers(arguments[0], arguments[1], value, place)
    if origin in (Union, UnionType):
        return None if value is None else checked(arguments[0], value, place)
    if origin is Literal:
        if not isinstance(value, str) or value not in arguments:
            raise place.refused(value, f"one of {', '.join(map(repr, arguments))}")
        return value
    if origin is tuple:
        return _tuple(hint, value, place)
    if origin is collections.abc.Mapping:
        return _mapping(arguments[1], value, place)
    if is_dataclass(hint):
        return _record(hint, value, place)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise place.refused(value, f"a value of type {hint.__name__}")
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _record(kind: Any, value: Any, place: Place) -> Any:
    names = [item.name for item in fields(kind)]
    if not isinstance(value, dict):
        raise place.refused(value, f"a table of the fields {', '.join(names)}")
    for odd in sorted(set(value) ^ set(names)):
        raise (place / odd).refused(
            value.get(odd), "no such field" if odd in value else "a value, and the file lacks it"
        )
    made = {name: checked(_hints(kind)[name], value[name], place / name) for name in names}
    for name in names:
        needs = next((one.needs for one in get_args(_hints(kind)[name]) if isinstance(one, Axes)), "")
        if needs and made[name].size and not made[needs].size:
            raise (place / needs).refused(made[needs], f"numbers, as there are some in {name!r}")
    return kind(**made)


def _tuple(hint: Any, value: Any, place: Place) -> tuple[Any, ...]:
    kinds = get_args(hint)
    any_number = kinds[1:] == (...,)
    if not isinstance(value, tuple) or (not any_number and len(value) != len(kinds)):
        raise place.refused(value, "a tuple" if any_number else f"a tuple of {len(kinds)}")
    each = kinds[:1] * len(value) if any_number else kinds
    made = tuple(checked(one, value[index], place / index) for index, one in enumerate(each))
    if hint == Mixture and not np.isclose(sum(share for share, _ in made), 1.0):
        raise place.refused([share for share, _ in made], "probabilities that add up to 1")
    return made


def _mapping(kind: Any, value: Any, place: Place) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.refused(value, "a table of names and values")
    if kind != Mixture or not isinstance(place.law, CompositeLaw):
        return {name: checked(kind, one, place / name) for name, one in value.items()}
    laws = place.law.fields
    if list(value) != list(laws):
        raise place.refused(", ".join(value), f"the fields {', '.join(laws)}")
    return {name: checked(kind, one, replace(place / name, law=laws[name])) for name, one in value.items()}


def _numbers(kind: Any, axes: Axes, value: Any, place: Place) -> Any:
    """Return an array, or a single number, after a look at its type, its shape and its range."""
    if not get_args(kind):
        right = isinstance(value, (int, float) if kind is float else int) and not isinstance(value, bool)
        if not right or (isinstance(value, int) and abs(value) >= 1 << 63):
            raise place.refused(value, f"a value of type {kind.__name__}")
        _check_range(np.array([value]), axes, place)
        return value
    *_, wanted = get_args(kind)  # of NDArray[type], a name of its own from NumPy 2.5 on, or ndarray[shape, dtype[type]]
    wanted = get_args(wanted)[0] if get_origin(wanted) is np.dtype else wanted
    right = isinstance(value, np.ndarray) and (value.dtype.kind in PLAIN if wanted is Any else value.dtype == wanted)
    if not right:
        raise place.refused(value, f"an array of {'numbers or names' if wanted is Any else wanted.__name__}")
    if axes.optional and value.size == 0:
        return value
    names = axes.shape.split()
    shape = value.shape
    if names[-1:] == ["..."]:  # whatever the shape of a label is
        names, shape = names[:-1], shape[: len(names) - 1]
    sizes = [int(name) if name.isdigit() else place.sizes.get(name) for name in names]
    if len(names) != len(shape) or any(size not in (None, own) for size, own in zip(sizes, shape, strict=True)):
        known = ", ".join(name if size is None else str(size) for name, size in zip(names, sizes, strict=True))
        raise place.refused(value, f"an array of shape ({known})")
    for name, own in zip(names, shape, strict=True):  # a name that occurs twice is one size
        if not name.isdigit() and place.sizes.setdefault(name, own) != own:
            raise place.refused(value, f"an array of shape ({', '.join(names)})")
    if value.dtype.kind in "fiu":
        _check_range(value, axes, place)
    return np.ascontiguousarray(value)  # kernels are compiled for one layout


def _check_range(array: npt.NDArray[Any], axes: Axes, place: Place) -> None:
    low, high = axes.low - ROUNDING * abs(axes.low), axes.high + ROUNDING * abs(axes.high)
    wrong = ((array < low) | (array > high)) & np.isfinite(array)
    wrong |= np.isinf(array) & ~(axes.infinite & (array > axes.low))
    if not axes.missing:
        wrong |= np.isnan(array)
    if wrong.any():
        span = f"a number from {axes.low:g} to {axes.high:g}" if np.isfinite(array[wrong][0]) else "a finite number"
        raise place.refused(array[wrong][0].item(), span)
    if not array.size or not (axes.symmetric or axes.covariance):
        return
    if (np.abs(array - np.swapaxes(array, -1, -2)) > ROUNDING * np.abs(array).max()).any():
        raise place.refused(array, "a symmetric matrix")
    if axes.covariance:
        values = np.linalg.eigvalsh(0.5 * (array + np.swapaxes(array, -1, -2)))
        least = values[..., 0] <= 0.0 if axes.definite else values[..., 0] < -ROUNDING * values[..., -1]
        if least.any():
            raise place.refused(array, "a covariance matrix")
