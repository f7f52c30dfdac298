"""Names of a package that are imported by whoever uses them first, so that nobody waits for the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def on_first_use(
    package: str, places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package.

    `places` has the names that each of its modules gives, separated by blanks; under "" are modules that are public
    themselves. Other modules are found, too, but not listed. Type checkers read the same names in the
    ``if TYPE_CHECKING:`` block of the package.
    """
    module = sys.modules[package]
    place_of = {name: place for place, names in places.items() for name in names.split()}

    def load(name: str) -> Any:
        place = place_of.get(name)
        if place:
            value = getattr(import_module(f"{package}.{place}"), name)
        elif find_spec(f"{package}.{name}") is not None:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(module, name, value)
        return value

    return load, lambda: [*vars(module), *place_of], sorted(place_of)
