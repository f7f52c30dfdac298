"""Robust reading of JSON: deep nesting is an error, and broken characters are replaced."""

from __future__ import annotations

import json
import re
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
