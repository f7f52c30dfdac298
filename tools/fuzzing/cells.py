"""Tables of votes as JSON, so that an input that fails is the votes themselves and stays what it is."""

import json
from typing import Any

import numpy as np

from consilience.label_types.preferences.comparisons import UNPARSABLE, Comparisons

#: What comes of reading something that nobody wrote.
_MALFORMED = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError)
_OUTCOMES = {1: "first", -1: "second", 0: "tie", UNPARSABLE: None}


def written(value: Any) -> Any:
    """Return a vote as JSON has it; an object with one key stands for what JSON lacks."""
    if isinstance(value, np.ndarray):
        values = value.reshape(-1).astype(str if value.dtype.kind == "c" else value.dtype).tolist()
        return {"array": [value.dtype.str, list(value.shape), list(map(written, values))]}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Comparisons):
        each = [{"first": one, "second": two, "outcome": _OUTCOMES[sign]} for one, two, sign in value.entries()]
        return written(each)
    if isinstance(value, dict):
        return {"record": {key: written(entry) for key, entry in value.items()}}
    if isinstance(value, (tuple, frozenset)):
        listed = sorted(map(written, value), key=repr) if isinstance(value, frozenset) else list(map(written, value))
        return {type(value).__name__: listed}
    return list(map(written, value)) if isinstance(value, list) else value


def read(value: Any) -> Any:
    """Return what `written` was given."""
    if isinstance(value, list):
        return list(map(read, value))
    match value:
        case {"array": [name, shape, values]}:
            return np.array(list(map(read, values)), dtype=str if "c" in name else name).astype(name).reshape(shape)
        case {"record": entries}:
            return {key: read(entry) for key, entry in entries.items()}
        case {"tuple": entries}:
            return tuple(map(read, entries))
        case {"frozenset": entries}:
            return frozenset(map(read, entries))
        case dict():
            raise ValueError(f"{value} stands for nothing")
    return value


def reread(value: Any) -> Any:
    """Return a vote from JSON that was changed; None where that is no vote any more."""
    try:
        return read(value)
    except _MALFORMED:
        return None


def table(rows: Any) -> np.ndarray:
    """Return rows of votes as an array of objects."""
    out = np.empty((len(rows), len(rows[0])), dtype=object)
    for row, cells in enumerate(rows):
        for column, cell in enumerate(cells):
            out[row, column] = cell
    return out


def dumped(kind: str, method: str, rows: Any, gold: Any) -> bytes:
    """Return a table of votes as an input; `gold` is None, or a label or None per row."""
    document = {
        "kind": kind,
        "method": method,
        "cells": [[written(cell) for cell in row] for row in rows],
        "gold": None if gold is None else list(map(written, gold)),
    }
    return json.dumps(document).encode()


def loaded(data: bytes) -> tuple[str, str, np.ndarray, Any] | None:
    """Return what `dumped` was given; None if it is nothing of the kind, as half an input is not."""
    try:
        document = json.loads(data)
        rows = table([[read(cell) for cell in row] for row in document["cells"]])
        gold = document["gold"]
        return str(document["kind"]), str(document["method"]), rows, gold and list(map(read, gold))
    except _MALFORMED:
        return None
