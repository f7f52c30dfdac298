"""Robust JSON: deep nesting is an error, broken characters are replaced, and any value has a plain form."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

#: Half of a surrogate pair.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str) -> Any:
    r"""Return a JSON value, or raise `ValueError`; half of a surrogate pair becomes U+FFFD.

    Examples
    --------
    >>> parse_json('{"reply": "cut off \\ud83d"}')
    {'reply': 'cut off �'}
    """
    try:
        value = json.loads(text)
        return _whole_characters(value) if _HALF.search(text) else value
    except RecursionError:
        raise ValueError("lists and objects are nested too deep") from None


def _whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return list(map(_whole_characters, value))
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(entry) for key, entry in value.items()}
    return value


def plain(value: Any) -> Any:
    """Return a value as JSON has it: arrays as lists, sets as sorted lists, NaN and infinity as null.

    Examples
    --------
    >>> plain({"tags": {"b", "a"}, "score": float("nan")})
    {'tags': ['a', 'b'], 'score': None}
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=str)
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # NumPy arrays and numbers
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)
