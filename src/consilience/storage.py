"""Models on disk: one file of arrays (npz) with a JSON header. Reading one never executes code."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

import consilience.label_types as spaces
from consilience.arrays import as_object_array
from consilience.exceptions import ModelFormatError
from consilience.json_text import parse_json
from consilience.label_types.base import LabelSpace
from consilience.prediction.source_model import SourceModel
from consilience.schema import Place, checked
from consilience.tables.files import replace_file

#: Version of the file format; files of another version are refused with a message.
FORMAT = 1
_HEADER = "header.json"
#: Types of arguments that the constructors of spaces do not check.
PLAIN = (bool, str, bool | None, str | None)
#: Spaces that a file may name. Those of users, and manifolds made of functions, are passed to `load`.
SPACES: dict[str, type[LabelSpace]] = {
    name: space
    for name in spaces.__all__
    if isinstance(space := getattr(spaces, name), type)
    and issubclass(space, LabelSpace)
    and space not in (LabelSpace, spaces.Manifold)
}


@dataclass(frozen=True)
class Settings:
    """The settings of a model beside its label type, as `LabelModel` takes them."""

    method: str
    dependencies: Any
    prior: Any
    decode: Literal["auto", "map", "bayes"]
    random_state: int | None


@dataclass(frozen=True)
class Stored:
    """What a file holds."""

    space: str
    space_arguments: Mapping[str, Any]
    n_labels: int | None
    settings: Mapping[str, Any]
    model: Mapping[str, Any]


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

    def write(temporary: str) -> None:
        with open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    replace_file(path, write, force=True)


def read_document(path: str | Path) -> dict[str, Any]:
    """Return what `write_document` wrote."""
    foreign = f"{str(path)!r} is not a consilience model, or it is damaged"
    arrays: dict[str, npt.NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > os.path.getsize(path):
                raise ValueError("it is compressed, which models never are")
            for name in archive.namelist():
                with archive.open(name) as file:
                    arrays[name.removesuffix(".npy")] = np.lib.format.read_array(file, allow_pickle=False)
        header = parse_json(arrays.pop(_HEADER).tobytes().decode())
        document: dict[str, Any] = _merge(header, arrays)
    except FileNotFoundError:
        raise ModelFormatError(f"There is no model at {str(path)!r}. Check the path.") from None
    except ModelFormatError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy raise errors of all kinds for damaged archives
        fault = "it has no header" if isinstance(error, KeyError) else f"{type(error).__name__} while reading it"
        raise ModelFormatError(f"{foreign} ({fault}). Pass a file that LabelModel.save wrote.") from None
    if not isinstance(document, dict) or not isinstance(document.get("document"), dict):
        raise ModelFormatError(f"{foreign} (its header cannot be read). Pass a file that LabelModel.save wrote.")
    if not isinstance(document.get("format"), int) or document["format"] != FORMAT:
        raise ModelFormatError(
            f"{str(path)!r} has format {document.get('format')!r:.60}; this version reads {FORMAT}. Fit and save again."
        )
    return dict(document["document"])


def _split(value: Any, arrays: dict[str, npt.NDArray[Any]], path: str) -> Any:
    """Return a value as JSON. Arrays go to `arrays`, and dicts with one key stand for types that JSON lacks."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        name = f"array{len(arrays)}{path.replace('/', '.')}"
        arrays[name] = value
        return {"__array__": name}
    if isinstance(value, np.ndarray):
        return {"__list__": [_split(item, arrays, path) for item in value.tolist()]}
    if is_dataclass(value):
        value = {item.name: getattr(value, item.name) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _split(item, arrays, f"{path}/{key}") for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        parts = [_split(item, arrays, path) for item in value]
        return {"__tuple__": parts} if isinstance(value, tuple) else parts
    return value.item() if isinstance(value, np.generic) else value


def _merge(value: Any, arrays: dict[str, npt.NDArray[Any]]) -> Any:
    """Return the value that `_split` split."""
    if isinstance(value, list):
        return [_merge(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"__array__": name, **rest} if not rest:
            if not isinstance(name, str) or name not in arrays:
                raise ModelFormatError(
                    f"The model file is damaged: the array {name!r:.60} is missing. Save the model again."
                )
            return arrays[name]
        case {"__list__": items, **rest} if not rest:
            return as_object_array(_merge(items, arrays))
        case {"__tuple__": items, **rest} if not rest:
            return tuple(_merge(items, arrays))
    return {key: _merge(item, arrays) for key, item in value.items()}


def write_model(path: str | Path, space: LabelSpace, model: SourceModel, settings: dict[str, Any]) -> None:
    """Write a fitted model to one file."""
    stored = {key: list(value) if isinstance(value, (set, frozenset)) else value for key, value in settings.items()}
    del stored["space"]
    for key, value in stored.items():  # an estimator object is code, and its results are in the parameters
        if value is not None and not isinstance(value, (str, int, float, list, tuple, np.ndarray, np.generic)):
            stored[key] = "auto"
    write_document(path, {**_described(space), "n_labels": space.n_labels, "settings": stored, "model": model})


def read_model(path: str | Path, space: LabelSpace | None = None) -> tuple[LabelSpace, SourceModel, dict[str, Any]]:
    """Return the space, what was learned, and the settings. Every field is checked before use; see `schema`."""
    document = read_document(path)
    given = checked(Stored, document, Place(str(path)))
    if space is None:
        space = _space(document, given.space, Place(str(path)))
    elif type(space).__name__ != given.space:
        raise ModelFormatError(f"The model's labels are of type {given.space!r}, not {type(space).__name__!r}.")
    if space.n_labels != given.n_labels:
        raise ModelFormatError(
            f"The model has {given.n_labels} labels, and the given space {space.n_labels}. "
            "Pass the space that the model was fitted with."
        )
    sources = given.model.get("sources")
    n_sources = len(sources) if isinstance(sources, tuple) else 0
    place = Place(str(path), "model", space.law, {"m": n_sources})
    model = checked(SourceModel, given.model, place)
    if len(set(sources or ())) < n_sources or not n_sources:
        raise (place / "sources").refused(sources, "different names, at least one")
    return space, model, vars(checked(Settings, given.settings, Place(str(path), "settings")))


def _described(space: LabelSpace) -> dict[str, Any]:
    """Return the type of a space and its arguments, which may be other spaces."""
    name = type(space).__name__
    arguments = space.spec() if name in SPACES else {}
    described = {key: _described(value) if isinstance(value, LabelSpace) else value for key, value in arguments.items()}
    return {"space": name, "space_arguments": described}


def _space(described: Mapping[str, Any], outermost: str, place: Place) -> LabelSpace:
    """Return the space of a description; its constructor checks the arguments."""
    name, given = described["space"], described["space_arguments"]
    if not isinstance(name, str) or name not in SPACES:
        raise ModelFormatError(
            f"The model's labels are of type {name!r:.60}, which is not part of consilience. "
            f"Pass it: LabelModel.load(path, space={outermost}(...))."
        )
    if not isinstance(given, dict):
        raise (place / "space_arguments").refused(given, "a table of names and values")
    arguments = {
        key: _space(value, outermost, place / "space_arguments" / key)
        if isinstance(value, dict) and set(value) == {"space", "space_arguments"}
        else value
        for key, value in given.items()
    }
    for key, hint in get_type_hints(SPACES[name].__init__).items():
        if key in arguments and (hint in PLAIN or get_origin(hint) is Literal):
            checked(hint, arguments[key], place / "space_arguments" / key)
    try:
        return SPACES[name](**arguments)
    except ModelFormatError:
        raise
    except Exception as error:  # constructors may raise any error for the arguments of a changed file
        raise (place / "space_arguments").refused(given, f"what {name}(...) takes: {error}") from None
