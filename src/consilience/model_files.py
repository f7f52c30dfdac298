"""A fitted model as a document of arrays and JSON, and back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import consilience.label_types as spaces
from consilience.estimation.calibration import Calibration
from consilience.estimation.protocol import Diagnostic, Summary
from consilience.exceptions import ModelFormatError
from consilience.label_types.base import LabelSpace
from consilience.source_model import SourceModel
from consilience.storage import read_document, write_document

__all__ = ["read_model", "write_model"]

#: Spaces that a file may name; those of users, and manifolds made of functions, are passed to `load`.
SPACES: dict[str, type[LabelSpace]] = {
    name: space
    for name in spaces.__all__
    if isinstance(space := getattr(spaces, name), type)
    and issubclass(space, LabelSpace)
    and space not in (LabelSpace, spaces.Manifold)
}


#: Arrays of a summary, one entry per source each.
SUMMARY_ARRAYS = ("expected_cost", "weight", "standard_error", "cost_standard_error", "correlation")


def write_model(path: str | Path, space: LabelSpace, model: SourceModel, settings: dict[str, Any]) -> None:
    """Write a fitted model to one file."""
    document = {
        **_described(space),
        "n_labels": space.n_labels,
        "settings": {key: _storable(value) for key, value in settings.items() if key != "space"},
        "sources": list(model.sources),
        "names_given": model.names_given,
        "n_items": model.n_items,
        "votes": model.votes,
        "method": model.method,
        "reason": model.reason,
        "dependencies": [list(pair) for pair in model.dependencies],
        "diagnostics": [asdict(item) for item in model.diagnostics],
        "hypotheses": [
            {"probability": probability, "parameters": parameters.as_dict()}
            for probability, parameters in model.mixture
        ],
        "summary": _described_summary(model.summary),
        "calibration": asdict(model.calibration),
        "quality": model.quality,
        "baseline": None if model.baseline is None else model.baseline.as_dict(),
        "changed": model.changed,
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
        space = _space(document, name)
    elif type(space).__name__ != name:
        raise ModelFormatError(f"The model's labels are of type {name!r}, not {type(space).__name__!r}.")
    elif space.n_labels != document["n_labels"]:
        raise ModelFormatError(
            f"The model has {document['n_labels']} labels, and the given space {space.n_labels}. "
            "Pass the space that the model was fitted with."
        )
    model = SourceModel(
        sources=tuple(document["sources"]),
        mixture=tuple(
            (float(one["probability"]), space.law.restore(one["parameters"])) for one in document["hypotheses"]
        ),
        summary=_restored_summary(document["summary"]),
        calibration=Calibration(**document["calibration"]),
        quality=None if document["quality"] is None else np.asarray(document["quality"]),
        n_items=int(document["n_items"]),
        votes=np.asarray(document["votes"]),
        method=document["method"],
        reason=document["reason"],
        dependencies=tuple((pair[0], pair[1]) for pair in document["dependencies"]),
        diagnostics=tuple(
            Diagnostic(item["code"], item["severity"], tuple(item["sources"]), item["message"], item.get("part", ""))
            for item in document["diagnostics"]
        ),
        names_given=bool(document["names_given"]),
        baseline=None if document["baseline"] is None else space.law.restore(document["baseline"]),
        changed=float(document.get("changed", "nan")),
    )
    return space, model, document["settings"]


def _described_summary(summary: Summary) -> dict[str, Any]:
    return {
        **{name: getattr(summary, name) for name in SUMMARY_ARRAYS},
        "parts": {name: _described_summary(part) for name, part in summary.parts.items()},
        "columns": dict(summary.columns),
        "effective_range": None if summary.effective_range is None else list(summary.effective_range),
    }


def _restored_summary(document: dict[str, Any]) -> Summary:
    bounds = document["effective_range"]
    return Summary(
        **{name: document[name] for name in SUMMARY_ARRAYS},
        parts={name: _restored_summary(part) for name, part in document["parts"].items()},
        columns=document["columns"],
        effective_range=None if bounds is None else (float(bounds[0]), float(bounds[1])),
    )


def _described(space: LabelSpace) -> dict[str, Any]:
    """Return the type of a space and its arguments, among them other spaces."""
    name = type(space).__name__
    arguments = space.spec() if name in SPACES else {}
    return {
        "space": name,
        "space_arguments": {
            key: _described(value) if isinstance(value, LabelSpace) else value for key, value in arguments.items()
        },
    }


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


def _storable(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, (str, int, float, list, tuple, np.ndarray, np.generic)) or value is None:
        return value
    return "auto"  # an estimator object is code; what it learned is in the parameters
