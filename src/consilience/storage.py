"""Models on disk: one file of arrays (npz) with a JSON header. Reading one never executes code."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import consilience.label_types as spaces
from consilience.arrays import as_object_array
from consilience.estimation.calibration import Calibration
from consilience.estimation.protocol import Diagnostic, Summary
from consilience.exceptions import ModelFormatError
from consilience.label_types.base import LabelSpace
from consilience.prediction.source_model import SourceModel
from consilience.tables.files import replace_file

#: Version of the file format; files of another version are refused with a message.
FORMAT = 1
_HEADER = "header.json"
#: What a file holds of a model as it is.
_AS_IT_IS = ("sources", "names_given", "n_items", "votes", "method", "reason", "dependencies", "quality", "changed")
#: Spaces that a file may name; those of users, and manifolds made of functions, are passed to `load`.
SPACES: dict[str, type[LabelSpace]] = {
    name: space
    for name in spaces.__all__
    if isinstance(space := getattr(spaces, name), type)
    and issubclass(space, LabelSpace)
    and space not in (LabelSpace, spaces.Manifold)
}


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
            for name in archive.namelist():
                with archive.open(name) as file:
                    arrays[name.removesuffix(".npy")] = np.lib.format.read_array(file, allow_pickle=False)
        header = json.loads(arrays.pop(_HEADER).tobytes().decode())
    except FileNotFoundError:
        raise ModelFormatError(f"There is no model at {str(path)!r}. Check the path.") from None
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        fault = "it has no header" if isinstance(error, KeyError) else f"{type(error).__name__} while reading it"
        raise ModelFormatError(f"{foreign} ({fault}). Pass a file that LabelModel.save wrote.") from None
    if not isinstance(header, dict) or not isinstance(header.get("document", {}), dict):
        raise ModelFormatError(f"{foreign} (its header cannot be read). Pass a file that LabelModel.save wrote.")
    if header.get("format") != FORMAT:
        raise ModelFormatError(
            f"{str(path)!r} has format {header.get('format')}; this version reads {FORMAT}. Fit and save again."
        )
    document: dict[str, Any] = _merge(header.get("document", {}), arrays)
    return document


def _split(value: Any, arrays: dict[str, npt.NDArray[Any]], path: str) -> Any:
    """Return a value as JSON; arrays go to `arrays`, and a dict with one key stands for what JSON lacks."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        name = f"array{len(arrays)}{path.replace('/', '.')}"
        arrays[name] = value
        return {"__array__": name}
    if isinstance(value, np.ndarray):
        return {"__list__": [_split(item, arrays, path) for item in value.tolist()]}
    if isinstance(value, Mapping):
        return {str(key): _split(item, arrays, f"{path}/{key}") for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        parts = [_split(item, arrays, path) for item in value]
        return {"__tuple__": parts} if isinstance(value, tuple) else parts
    return value.item() if isinstance(value, np.generic) else value


def _merge(value: Any, arrays: dict[str, npt.NDArray[Any]]) -> Any:
    """Return what `_split` took apart."""
    if isinstance(value, list):
        return [_merge(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"__array__": name, **rest} if not rest:
            if name not in arrays:
                raise ModelFormatError(f"The model file lacks the array {name!r}; it is damaged.")
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
    for key, value in stored.items():  # an estimator object is code; what it learned is in the parameters
        if value is not None and not isinstance(value, (str, int, float, list, tuple, np.ndarray, np.generic)):
            stored[key] = "auto"
    document = {
        **_described(space),
        "n_labels": space.n_labels,
        "settings": stored,
        **{name: getattr(model, name) for name in _AS_IT_IS},
        "diagnostics": [asdict(item) for item in model.diagnostics],
        "hypotheses": [{"probability": one, "parameters": parameters.as_dict()} for one, parameters in model.mixture],
        "summary": _described_summary(model.summary),
        "calibration": asdict(model.calibration),
        "baseline": None if model.baseline is None else model.baseline.as_dict(),
    }
    write_document(path, document)


def read_model(path: str | Path, space: LabelSpace | None = None) -> tuple[LabelSpace, SourceModel, dict[str, Any]]:
    """Return the space, what was learned, and the settings."""
    document = read_document(path)
    try:
        if space is None:
            space = _space(document, document["space"])
        elif type(space).__name__ != document["space"]:
            raise ModelFormatError(
                f"The model's labels are of type {document['space']!r}, not {type(space).__name__!r}."
            )
        elif space.n_labels != document["n_labels"]:
            raise ModelFormatError(
                f"The model has {document['n_labels']} labels, and the given space {space.n_labels}. "
                "Pass the space that the model was fitted with."
            )
        restore = space.law.restore
        model = SourceModel(
            **{name: document[name] for name in _AS_IT_IS},
            mixture=tuple((one["probability"], restore(one["parameters"])) for one in document["hypotheses"]),
            summary=_restored_summary(document["summary"]),
            calibration=Calibration(**document["calibration"]),
            diagnostics=tuple(Diagnostic(**one) for one in document["diagnostics"]),
            baseline=None if document["baseline"] is None else restore(document["baseline"]),
        )
        return space, model, document["settings"]
    except KeyError as error:
        raise ModelFormatError(f"{str(path)!r} lacks {error}; it is damaged. Fit and save again.") from None


def _described_summary(summary: Summary) -> dict[str, Any]:
    return {**vars(summary), "parts": {name: _described_summary(part) for name, part in summary.parts.items()}}


def _restored_summary(document: dict[str, Any]) -> Summary:
    return Summary(**{**document, "parts": {name: _restored_summary(part) for name, part in document["parts"].items()}})


def _described(space: LabelSpace) -> dict[str, Any]:
    """Return the type of a space and its arguments, among them other spaces."""
    name = type(space).__name__
    arguments = space.spec() if name in SPACES else {}
    described = {key: _described(value) if isinstance(value, LabelSpace) else value for key, value in arguments.items()}
    return {"space": name, "space_arguments": described}


def _space(described: dict[str, Any], outermost: str) -> LabelSpace:
    """Return the space that `_described` described."""
    name = described["space"]
    if name not in SPACES:
        raise ModelFormatError(
            f"The model's labels are of type {name!r}, which is not part of consilience. "
            f"Pass it: LabelModel.load(path, space={outermost}(...))."
        )
    arguments = {
        key: _space(value, outermost) if isinstance(value, dict) and "space_arguments" in value else value
        for key, value in described["space_arguments"].items()
    }
    return SPACES[name](**arguments)
