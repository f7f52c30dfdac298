"""Optional packages, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from consilience.exceptions import MissingPackageError

__all__ = ["needed"]


def needed(module: str, extra: str, use: str) -> Any:
    """Return a module of an optional package, or say how to install it."""
    try:
        return import_module(module)
    except ImportError:
        package = {"sklearn": "scikit-learn"}.get(module.partition(".")[0], module)
        raise MissingPackageError(
            f"{use} needs {package}, which is not installed. Run: pip install 'consilience[{extra}]'."
        ) from None
