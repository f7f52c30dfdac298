"""Names and packages that are imported on first use, so that ``import consilience`` is fast."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

__all__ = ["Later", "feather", "narwhals", "on_first_use", "parquet", "pyarrow"]


def on_first_use(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose public names are listed in its ``__init__.pyi``.

    Type checkers read the same file. Modules that are not listed can be imported as well.
    """
    module = sys.modules[package]
    stub = ast.parse(Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    place_of = {name.name: str(node.module) for node in imports for name in node.names}

    def load(name: str) -> Any:
        place = place_of.get(name, package)
        if place != package:
            value = getattr(import_module(place), name)
        elif find_spec(f"{package}.{name}") is not None:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(module, name, value)
        return value

    return load, lambda: [*vars(module), *place_of], sorted(place_of)


class Later:
    """A package that is imported when one of its attributes is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)

    def __reduce__(self) -> tuple[type[Later], tuple[str]]:
        return Later, (self._name,)


if TYPE_CHECKING:
    import narwhals
    import pyarrow
    from pyarrow import feather, parquet
else:
    narwhals, pyarrow = Later("narwhals"), Later("pyarrow")
    feather, parquet = Later("pyarrow.feather"), Later("pyarrow.parquet")
