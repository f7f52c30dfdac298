"""Votes from the JSON export of Label Studio, and labels as predictions that it imports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from consilience.arrays import Batch, is_null
from consilience.exceptions import FileFormatError
from consilience.label_model import LabelModel
from consilience.label_types import Boxes, Classes, FiniteMetric, LabelSpace, Rankings, Scores, Spans, Tags, Texts
from consilience.label_types.codes import plain_value
from consilience.tables.annotations import PATH, Annotations, Answer, gathered, question
from consilience.tables.files import read_json, write_json
from consilience.tables.training import ordered_rows
from consilience.votes import as_votes

_EXPORT = "Export the project as JSON (not JSON-MIN, CSV or one file per annotation)."
_BOX = ("x", "y", "width", "height")
#: Controls whose annotations may have several results. An annotation without results means that there is nothing.
_SEVERAL = ("labels", "rectanglelabels")
#: Supported types of controls.
KINDS = ("choices", "pairwise", "rating", "number", "taxonomy", "ranker", *_SEVERAL, "textarea")
#: The control of each label type, if there is no export.
_KIND_OF: dict[type[LabelSpace], str] = {
    **dict.fromkeys((Classes, FiniteMetric, Tags), "choices"),
    Rankings: "ranker",
    Scores: "number",
    Boxes: "rectanglelabels",
    Spans: "labels",
    Texts: "textarea",
}


def read_label_studio(path: str | Path | Sequence[Mapping[str, Any]], *, field: str | None = None) -> Annotations:
    """Read the JSON export of a Label Studio project.

    Annotators and model versions are the sources. A skipped task (``was_cancelled``) is an abstention, an annotation
    that is marked as ground truth a known label. One choice is
    a class, several are a set of tags; ratings and numbers are scores; a path of a taxonomy is a node of its tree;
    text spans are lists of (start, end, label), boxes of (x1, y1, x2, y2, label) in percent of the image, or of
    (x, y, width, height, rotation, label) if one is turned.

    `path` is that of the file, or the list of tasks; `field` is the name of the control (``from_name``), where
    the project has several.

    Examples
    --------
    >>> def answer(who, choice):
    ...     result = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [choice]}}
    ...     return {"completed_by": who, "result": [result]}
    >>> read_label_studio([{"id": 7, "annotations": [answer(1, "good"), answer(2, "bad")]}])
    Annotations('mood': choices, Votes(1 item, 2 sources, 100% observed), 0 known)
    """
    tasks = _tasks(path)
    answers = [answer for identity, task in tasks.items() for answer in _answers(identity, task)]
    field, kind, to_name = _control(answers, field)
    voiced = {one.source for one in answers if any(result.get("from_name") == field for result in one.said or ())}
    said = [
        answer if answer.said is None else answer._replace(said=_label(answer, field, kind))
        for answer in answers
        if answer.said is None or answer.source in voiced
    ]
    data = {identity: task.get("data") or {} for identity, task in tasks.items()}
    return replace(gathered(kind, said, data, field), to_name=to_name)


def _tasks(path: Any) -> dict[Any, Mapping[str, Any]]:
    """Return the tasks by id."""
    is_path = isinstance(path, (str, Path))
    given, name = (read_json(path), repr(str(path))) if is_path else (path, "The list")
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
        raise FileFormatError(f"{name} is not a list of tasks. {_EXPORT}")
    if not given:
        raise FileFormatError(f"{name} contains no tasks. {_EXPORT}")
    tasks: dict[Any, Mapping[str, Any]] = {}
    for place, task in enumerate(given):
        if not isinstance(task, Mapping) or not {"annotations", "completions", "predictions"} & task.keys():
            raise FileFormatError(f"{name}: task {place} has neither annotations nor predictions. {_EXPORT}")
        identity = task.get("id", task.get("inner_id", place))
        if not isinstance(identity, (int, str)):
            raise FileFormatError(f"{name}: task {place} has the id {identity!r:.60}. Give a number or a text.")
        if identity in tasks:
            raise FileFormatError(f"{name} holds task {identity!r} twice. Give every task its own id.")
        tasks[identity] = task
    return tasks


def _answers(identity: Any, task: Mapping[str, Any]) -> Iterator[Answer]:
    """Yield what each annotation and prediction holds: its results, or None where the task was skipped."""
    for annotation in _objects(task, identity, "annotations" if task.get("annotations") else "completions"):
        who = annotation.get("completed_by")
        if isinstance(who, Mapping):
            who = next((who[key] for key in ("email", "username", "id") if who.get(key) not in (None, "")), None)
        source = who if isinstance(who, str) else "annotator" if who is None else f"annotator {who}"
        results = _objects(annotation, identity, "result")
        skipped, truth = bool(annotation.get("was_cancelled")), bool(annotation.get("ground_truth"))
        yield Answer(identity, source, None if skipped else results, truth)
    for prediction in _objects(task, identity, "predictions"):
        version = prediction.get("model_version")
        source = "model" if version is None else str(version)
        yield Answer(identity, source, _objects(prediction, identity, "result"))


def _objects(owner: Mapping[str, Any], task: Any, key: str) -> Sequence[Mapping[str, Any]]:
    """Return a list of objects that a task holds, or say that it is something else."""
    found = owner.get(key) or ()
    if not isinstance(found, Sequence) or not all(isinstance(one, Mapping) for one in found):
        raise FileFormatError(f"Task {task!r}: {key} is {found!r:.60}, which is not a list of objects. {_EXPORT}")
    return found


def _control(answers: Sequence[Answer], field: str | None) -> tuple[str, str, str]:
    """Return name, kind and object of the control that is read."""
    kinds: dict[str, str] = {}
    places: dict[str, tuple[Any, str]] = {}
    for here, one in [(answer.item, one) for answer in answers for one in answer.said or () if "from_name" in one]:
        name, kind = str(one["from_name"]), str(one.get("type"))
        task, _ = places.setdefault(name, (here, str(one.get("to_name"))))
        first = kinds.setdefault(name, kind)
        if first != kind and name == field:
            raise FileFormatError(
                f"Task {here!r} answers {name!r} with {kind!r}, task {task!r} with {first!r}. Read the "
                "tasks of one labeling interface at a time."
            )
    field = question(kinds, field)
    (task, to_name), kind = places[field], kinds[field]
    if kind not in KINDS:
        raise FileFormatError(
            f"Task {task!r}: results of type {kind!r} are not supported. Use one of {', '.join(KINDS)}."
        )
    return field, kind, to_name


def _label(answer: Answer, field: str, kind: str) -> Any:
    own = [one for one in answer.said if one.get("from_name") == field]
    place = f"Task {answer.item!r}, {answer.source!r}"
    if not own:
        return [] if kind in _SEVERAL else None
    if len(own) > 1 and kind not in _SEVERAL:
        raise FileFormatError(
            f"{place}: {len(own)} answers to {field!r}, as when each region is asked about. Only one answer per task "
            "is read."
        )
    try:
        for one in own:
            if one.get("type") != kind:
                raise ValueError(f"{one['type']!r} among {kind!r}")
        return _read_values(kind, [one["value"] for one in own])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise FileFormatError(
            f"{place}: the answer to {field!r} is not one of type {kind!r} ({what}). {_EXPORT}"
        ) from None


def _read_values(kind: str, values: Sequence[Mapping[str, Any]]) -> Any:
    """Return the label that the values of the results of one control are; None where that is not an answer."""
    first = values[0]
    match kind:
        case "choices":
            return tuple(map(str, first["choices"] or ())) or None
        case "taxonomy":
            return tuple(PATH.join(map(str, path)) for path in first["taxonomy"]) or None
        case "ranker":
            ranked = {name: ids for name, ids in first["ranker"].items() if name != "_"}
            if len(ranked) != 1:
                raise ValueError(f"{len(ranked)} buckets: only orders are read, not things sorted into buckets")
            return list(map(str, next(iter(ranked.values())))) or None
        case "labels" | "rectanglelabels":
            regions: list[tuple[Any, ...]] = []
            for value in values:
                place = [value["start"], value["end"]] if kind == "labels" else [float(value[side]) for side in _BOX]
                if kind == "rectanglelabels":
                    place.append(float(value.get("rotation") or 0.0))
                regions += [(*place, None if name is None else str(name)) for name in value.get(kind) or [None]]
            texts = any(isinstance(region[0], str) for region in regions)  # places in HTML
            return sorted(regions, key=lambda region: str(region) if texts else (*region[:-1], str(region[-1])))
        case "textarea":
            return first["text"] if isinstance(first["text"], str) else "\n".join(map(str, first["text"]))
    return first["selected" if kind == "pairwise" else kind]


def _written_values(kind: str, label: Any, field: str) -> list[dict[str, Any]]:
    """Return a label as the values of the results of one control."""
    names = sorted(map(str, label)) if isinstance(label, (set, frozenset, list, tuple)) else [str(label)]
    match kind:
        case "choices":
            return [{"choices": names}]
        case "taxonomy":
            return [{"taxonomy": [path.split(PATH) for path in names]}]
        case "pairwise":
            return [{"selected": str(label)}]
        case "rating":
            return [{"rating": max(1, round(float(label)))}]
        case "number":
            number = float(np.asarray(label, dtype=np.float64).reshape(()))
            return [{"number": int(number) if number == int(number) else number}]
        case "ranker":
            return [{"ranker": {field: list(label)}}]
        case "textarea":
            return [{"text": [str(label)]}]
    values: list[dict[str, Any]] = []
    for element in label:
        *place, name = element if len(element) in (3, 5, 6) else (*element, None)
        if kind == "labels":
            value = dict(zip(("start", "end"), map(plain_value, place), strict=True))
        elif len(place) == 5:  # a rotated box
            value = dict(zip((*_BOX, "rotation"), place, strict=True))
        else:
            x1, y1, x2, y2 = map(float, place)
            value = {"x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1, "rotation": 0.0}
        values.append(value if name is None else {**value, kind: [name]})
    return values


def write_label_studio(
    path: str | Path,
    model: LabelModel,
    votes: Any,
    like: Annotations | None = None,
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
    run leaves the old file or none; an existing file is replaced only with `force`.

    Names, kind and data of the tasks are those of the export that the votes came from (`like`). Without one pass the
    name of the control (`field`), of what it annotates (`to_name`), the type of the control (`kind`), where the label
    type does not tell it, and what each task shows (`data`).

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from consilience.label_model import LabelModel
    >>> def task(number, choice):
    ...     result = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [choice]}}
    ...     people = [{"completed_by": who, "result": [result]} for who in (1, 2, 3)]
    ...     return {"id": number, "data": {}, "annotations": people}
    >>> export = read_label_studio([task(1, "good"), task(2, "bad")])
    >>> model = LabelModel(export.space, method="majority").fit(export.votes)
    >>> write_label_studio(Path(mkdtemp()) / "predictions.json", model, export.votes, export)
    """
    if like is not None:
        field, to_name, kind = field or like.field, to_name or like.to_name, kind or like.kind
    kind = kind or _KIND_OF.get(type(model.space))
    if not field or not to_name or kind not in KINDS:
        raise FileFormatError(
            "A prediction needs the control it answers. Pass the export (like=), or field=, to_name= and kind=, one of "
            f"{', '.join(KINDS)}."
        )
    table = as_votes(votes, model.space)
    candidates = None
    if like is not None:
        place = {item: row for row, item in enumerate(like.votes.items.tolist())}
        unknown = next((item for item in table.items.tolist() if item not in place), None)
        if unknown is not None:
            raise FileFormatError(f"Item {unknown!r} is not a task of the export. Pass the votes of its tasks.")
        rows = [place[item] for item in table.items.tolist()]
        data = data or [like.data[row] for row in rows]
        candidates = None if like.candidates is None else [like.candidates[row] for row in rows]
    if data is not None and len(data) != len(table):
        raise FileFormatError(f"There are {len(table)} items and data of {len(data)} tasks. Give one dict per item.")
    belief = model.posterior(table)
    labels: Sequence[Any] | Batch = belief.labels
    if kind == "ranker":
        labels = []
        for ranked in ordered_rows(model, table, candidates, None):
            order = [at for at in np.argsort(ranked.positions, kind="stable").tolist() if ranked.positions[at] >= 0]
            labels.append([str(ranked.names[at]) for at in order] or None)
    tasks = []
    for row, item in enumerate(table.items.tolist()):
        task: dict[str, Any] = {"id": item, "data": {} if data is None else dict(data[row]), "predictions": []}
        if table.observed[row].any():
            values = [] if is_null(labels[row]) else _written_values(kind, labels[row], field)
            results = [
                {"id": f"{field}_{number}", "from_name": field, "to_name": to_name, "type": kind, "value": value}
                for number, value in enumerate(values)
            ]
            score = float(belief.confidence[row])
            task["predictions"] = [{"model_version": model_version, "score": score, "result": results}]
        tasks.append(task)
    write_json(path, tasks, force=force)
