"""Labels as predictions that Label Studio imports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.arrays import as_object_array
from consilience.exceptions import FileFormatError
from consilience.label_types import Boxes, Classes, FiniteMetric, Rankings, Scores, Spans, Tags, Texts
from consilience.label_types.base import LabelSpace
from consilience.tables.encoding import read_votes
from consilience.tables.files import replace_file
from consilience.tables.label_studio import LabelStudioExport
from consilience.tables.label_studio_values import KINDS, as_results
from consilience.tables.orders import ordered_rows
from consilience.votes import Votes

if TYPE_CHECKING:
    from consilience.label_model import LabelModel

__all__ = ["write_label_studio"]

_KIND_OF: dict[type[LabelSpace], str] = {
    Classes: "choices",
    FiniteMetric: "choices",
    Rankings: "ranker",
    Scores: "number",
    Tags: "choices",
    Boxes: "rectanglelabels",
    Spans: "labels",
    Texts: "textarea",
}


def write_label_studio(
    path: str | Path,
    model: LabelModel,
    votes: Any,
    like: LabelStudioExport | None = None,
    *,
    field: str | None = None,
    to_name: str | None = None,
    kind: str | None = None,
    data: Sequence[Mapping[str, Any]] | None = None,
    model_version: str = "consilience",
    force: bool = False,
) -> None:
    """Write labels as predictions, which Label Studio imports to start annotating from.

    The score of a prediction is the confidence of the label; a task nobody voted on has no prediction. An interrupted
    run leaves the old file or none; a file that is there is replaced only with `force`.

    Parameters
    ----------
    like
        The export that the votes came from: names, kind and data of the tasks are taken from it.
    field, to_name, kind
        Names of the control and of what it annotates, and the type of the control, where there is no export.
    data
        One dict per item with what the tasks show, where there is no export.
    """
    if like is not None:
        field, to_name, kind = field or like.field, to_name or like.to_name, kind or like.kind
    kind = kind or _KIND_OF.get(type(model.space))
    if field is None or to_name is None or kind not in KINDS:
        raise FileFormatError(
            "A prediction needs the control it answers. Pass the export (like=), or field=, to_name= and kind=, one of "
            f"{', '.join(KINDS)}."
        )
    table = read_votes(votes, model.space)
    candidates = None
    if like is not None:
        rows = _rows_of(table, like)
        data = data or [like.tasks[row].get("data", {}) for row in rows]
        candidates = None if like.candidates is None else [like.candidates[row] for row in rows]
    if data is not None and len(data) != len(table):
        raise FileFormatError(f"There are {len(table)} items and data of {len(data)} tasks. Give one dict per item.")
    belief = model.posterior(table)
    labels = belief.labels
    if kind == "ranker":
        labels = as_object_array(_orders(model, table, candidates))
    tasks = []
    for row, item in enumerate(table.items.tolist()):
        task: dict[str, Any] = {"id": item, "data": {} if data is None else dict(data[row]), "predictions": []}
        if table.observed[row].any():
            results = as_results(kind, labels[row], field, to_name)
            score = float(belief.confidence[row])
            task["predictions"] = [{"model_version": model_version, "score": score, "result": results}]
        tasks.append(task)
    text = json.dumps(tasks, ensure_ascii=False, indent=1, default=str)
    replace_file(path, lambda name: _write(name, text), force=force)


def _write(name: str, text: str) -> None:
    Path(name).write_text(text + "\n", encoding="utf-8")


def _rows_of(votes: Votes, like: LabelStudioExport) -> list[int]:
    """Return where in the export the items are."""
    place = {item: row for row, item in enumerate(like.items)}
    unknown = next((item for item in votes.items.tolist() if item not in place), None)
    if unknown is not None:
        raise FileFormatError(f"Item {unknown!r} is no task of the export. Pass the votes of its tasks.")
    return [place[item] for item in votes.items.tolist()]


def _orders(model: LabelModel, votes: Votes, candidates: Sequence[Sequence[str]] | None) -> Iterator[list[str] | None]:
    found = ordered_rows(model, votes, candidates, None)
    for row, positions in enumerate(found.positions):
        seen = [place for place in np.argsort(positions, kind="stable").tolist() if positions[place] >= 0]
        yield [str(found.names(row)[place]) for place in seen] or None
