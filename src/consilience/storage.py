"""Models on disk: one file of arrays (npz) with a JSON header. Reading one never executes code."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import as_object_array
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
    if target.is_dir() or not target.parent.is_dir():
        fault = "is a folder" if target.is_dir() else f"lies in {str(target.parent)!r}, which is no folder"
        raise ModelFormatError(f"{str(target)!r} {fault}. Give the path of a file in a folder that exists.")
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
    foreign = f"{str(path)!r} is not a consilience model, or it is damaged"
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {name.removesuffix(".npy"): _read_array(archive, name) for name in archive.namelist()}
        header = json.loads(arrays.pop(_HEADER).tobytes().decode())
    except FileNotFoundError:
        raise ModelFormatError(f"There is no model at {str(path)!r}. Check the path.") from None
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        fault = "it has no header" if isinstance(error, KeyError) else f"{type(error).__name__} while reading it"
        raise ModelFormatError(f"{foreign} ({fault}). Pass a file that LabelModel.save wrote.") from None
    if not isinstance(header, dict) or not isinstance(header.get("document", {}), dict):
        raise ModelFormatError(f"{foreign} (its header is none). Pass a file that LabelModel.save wrote.")
    if header.get("format") != FORMAT:
        raise ModelFormatError(
            f"{str(path)!r} has format {header.get('format')}; this version reads {FORMAT}. Fit and save again."
        )
    document: dict[str, Any] = _merge(header.get("document", {}), arrays)
    return document


def _read_array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    with archive.open(name) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _split(value: Any, arrays: dict[str, npt.NDArray[Any]], path: str) -> Any:
    if isinstance(value, np.ndarray) and value.dtype != object:
        name = f"array{len(arrays)}{path.replace('/', '.')}"
        arrays[name] = value
        return {"__array__": name}
    if isinstance(value, np.ndarray):
        return {"__list__": [_split(item, arrays, path) for item in value.tolist()]}
    if isinstance(value, Mapping):
        return {str(key): _split(item, arrays, f"{path}/{key}") for key, item in value.items()}
    if isinstance(value, tuple):
        return {"__tuple__": [_split(item, arrays, path) for item in value]}
    if isinstance(value, list):
        return [_split(item, arrays, path) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _merge(value: Any, arrays: dict[str, npt.NDArray[Any]]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"__array__"}:
            if value["__array__"] not in arrays:
                raise ModelFormatError(f"The model file lacks the array {value['__array__']!r}; it is damaged.")
            return arrays[value["__array__"]]
        if set(value) == {"__list__"}:
            return as_object_array(_merge(item, arrays) for item in value["__list__"])
        if set(value) == {"__tuple__"}:
            return tuple(_merge(item, arrays) for item in value["__tuple__"])
        return {key: _merge(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_merge(item, arrays) for item in value]
    return value
