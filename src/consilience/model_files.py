"""A fitted model as a document of arrays and JSON, and back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from consilience.exceptions import ModelFormatError
from consilience.families.base import Diagnostic
from consilience.source_model import SourceModel
from consilience.spaces import SO3, SPD, Classes, FiniteMetric, Hyperbolic, Metric, Rankings, Scores, Sphere
from consilience.spaces.base import LabelSpace
from consilience.storage import read_document, write_document

__all__ = ["read_model", "write_model"]

#: Spaces that a file may name; those of users are passed to `load`.
SPACES: dict[str, type[LabelSpace]] = {
    space.__name__: space for space in (Classes, FiniteMetric, Hyperbolic, Metric, Rankings, Scores, SO3, SPD, Sphere)
}


def write_model(path: str | Path, space: LabelSpace, model: SourceModel, settings: dict[str, Any]) -> None:
    """Write a fitted model to one file."""
    name = type(space).__name__
    document = {
        "space": name,
        "n_labels": space.n_labels,
        "space_arguments": space.spec() if name in SPACES else {},
        "settings": {key: _storable(value) for key, value in settings.items() if key != "space"},
        "sources": list(model.sources),
        "names_given": model.names_given,
        "n_items": model.n_items,
        "votes": model.votes,
        "method": model.method,
        "reason": model.reason,
        "dependencies": [list(pair) for pair in model.dependencies],
        "diagnostics": [asdict(item) for item in model.diagnostics],
        "parameters": model.parameters.as_dict(),
    }
    write_document(path, document)


def read_model(path: str | Path, space: LabelSpace | None = None) -> tuple[LabelSpace, SourceModel, dict[str, Any]]:
    """Return the space, what was learned, and the settings."""
    document = read_document(path)
    try:
        return _restored(document, space)
    except KeyError as error:
        raise ModelFormatError(f"{str(path)!r} lacks {error}; it is damaged. Fit and save again.") from None


def _restored(document: dict[str, Any], space: LabelSpace | None) -> tuple[LabelSpace, SourceModel, dict[str, Any]]:
    name = document["space"]
    if space is None:
        if name not in SPACES:
            raise ModelFormatError(
                f"The model's labels are of type {name!r}, which is made of code or not part of consilience, so that "
                f"a file cannot hold it. Pass it: LabelModel.load(path, space={name}(...))."
            )
        space = SPACES[name](**document["space_arguments"])
    elif type(space).__name__ != name:
        raise ModelFormatError(f"The model's labels are of type {name!r}, not {type(space).__name__!r}.")
    elif space.n_labels != document["n_labels"]:
        raise ModelFormatError(
            f"The model has {document['n_labels']} labels, and the given space {space.n_labels}. "
            "Pass the space that the model was fitted with."
        )
    parameters = space.family.restore(document["parameters"])
    model = SourceModel(
        sources=tuple(document["sources"]),
        parameters=parameters,
        summary=space.family.summary(parameters),
        n_items=int(document["n_items"]),
        votes=np.asarray(document["votes"]),
        method=document["method"],
        reason=document["reason"],
        dependencies=tuple((pair[0], pair[1]) for pair in document["dependencies"]),
        diagnostics=tuple(
            Diagnostic(item["code"], item["severity"], tuple(item["sources"]), item["message"])
            for item in document["diagnostics"]
        ),
        names_given=bool(document["names_given"]),
    )
    return space, model, document["settings"]


def _storable(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, (str, int, float, list, tuple, np.ndarray, np.generic)) or value is None:
        return value
    return "auto"  # an estimator object is code; what it learned is in the parameters
