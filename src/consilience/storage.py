"""Models on disk: one file of arrays (npz) with a JSON header. Reading one never executes code."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from consilience.exceptions import ModelFormatError

__all__ = ["FORMAT", "read_document", "write_document"]

#: Version of the file format; files of another version are refused with a message.
FORMAT = 1
_HEADER = "header.json"


def write_document(path: str | Path, document: Mapping[str, Any]) -> None:
    """Write nested dicts of JSON values and arrays to one file, atomically."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    header = {"format": FORMAT, "document": _split(document, arrays, "")}
    try:
        text = json.dumps(header, allow_nan=True)
    except TypeError as error:
        raise ModelFormatError(
            f"The model holds a value that JSON cannot express: {error}. "
            "Candidates and names must be numbers, strings or lists of these."
        ) from None
    arrays[_HEADER] = np.frombuffer(text.encode(), dtype=np.uint8)
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_document(path: str | Path) -> dict[str, Any]:
    """Return what `write_document` wrote."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise ModelFormatError(f"There is no model at {str(path)!r}. Check the path.") from None
    except (ValueError, OSError, BadZipFile, EOFError) as error:
        raise ModelFormatError(f"{str(path)!r} is not a consilience model: {error}.") from None
    if _HEADER not in arrays:
        raise ModelFormatError(f"{str(path)!r} is not a consilience model: it has no header.")
    header = json.loads(arrays.pop(_HEADER).tobytes().decode())
    if header.get("format") != FORMAT:
        raise ModelFormatError(
            f"{str(path)!r} has format {header.get('format')}; this version reads {FORMAT}. Fit and save again."
        )
    document: dict[str, Any] = _merge(header["document"], arrays)
    return document


def _split(value: Any, arrays: dict[str, npt.NDArray[Any]], path: str) -> Any:
    if isinstance(value, np.ndarray) and value.dtype != object:
        name = f"array{len(arrays)}{path.replace('/', '.')}"
        arrays[name] = value
        return {"__array__": name}
    if isinstance(value, np.ndarray):
        return {"__list__": [_split(item, arrays, path) for item in value.tolist()]}
    if isinstance(value, Mapping):
        return {str(key): _split(item, arrays, f"{path}/{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_split(item, arrays, path) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _merge(value: Any, arrays: dict[str, npt.NDArray[Any]]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"__array__"}:
            if value["__array__"] not in arrays:
                raise ModelFormatError(f"The model file lacks the array {value['__array__']!r}; it is damaged.")
            return arrays[value["__array__"]]
        if set(value) == {"__list__"}:
            return value["__list__"]
        return {key: _merge(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_merge(item, arrays) for item in value]
    return value
