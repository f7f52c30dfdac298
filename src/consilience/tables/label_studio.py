"""Votes from the JSON export of Label Studio, and labels as predictions that it imports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from consilience.arrays import Batch, BoolArray, as_object_array, is_null
from consilience.exceptions import FileFormatError
from consilience.label_types import Boxes, Classes, FiniteMetric, LabelSpace, Rankings, Scores, Spans, Tags, Texts
from consilience.label_types.codes import plain_value
from consilience.tables.encoding import votes_for
from consilience.tables.files import read_json, write_text
from consilience.tables.training import ordered_rows, shared_orders
from consilience.votes import Votes

if TYPE_CHECKING:
    from consilience.label_model import LabelModel


_EXPORT = "Export the project as JSON (not JSON-MIN, CSV or one file per annotation)."
#: Between the steps of a path of a taxonomy.
PATH = " / "
_BOX = ("x", "y", "width", "height")
#: Controls whose annotations may hold several results; one without any says that there is nothing.
_SEVERAL = ("labels", "rectanglelabels")
#: Types of controls that are read.
KINDS = ("choices", "pairwise", "rating", "number", "taxonomy", "ranker", *_SEVERAL, "textarea")
#: The control of each label type, where there is no export.
_KIND_OF: dict[type[LabelSpace], str] = {
    **dict.fromkeys((Classes, FiniteMetric, Tags), "choices"),
    Rankings: "ranker",
    Scores: "number",
    Boxes: "rectanglelabels",
    Spans: "labels",
    Texts: "textarea",
}


@dataclass(frozen=True, eq=False)
class LabelStudioExport:
    """Votes on the tasks of a Label Studio project."""

    #: Annotators and model versions are the sources, tasks the items. Several answers of one source to one task become
    #: runs, listed in ``votes.repeated_pairs``.
    votes: Votes
    #: Type of the control: "choices", "rating", ...
    kind: str
    #: None for turned boxes and spans of HTML, whose labels are Python objects: use `Metric` with a distance of yours.
    #: None as well where all chose one and the same thing.
    space: LabelSpace | None
    #: What annotations marked as ground truth say, as ``fit(votes, gold=export.gold)`` takes it. They do not vote.
    gold: tuple[Batch, BoolArray]
    #: The tasks as they are in the file.
    tasks: tuple[Mapping[str, Any], ...]
    #: Names of the control and of what it annotates.
    field: str
    to_name: str
    #: What is ranked in each task, where the control is a ranker.
    candidates: tuple[tuple[str, ...], ...] | None = None

    @property
    def items(self) -> tuple[Any, ...]:
        """Ids of the tasks."""
        return tuple(self.votes.items.tolist())

    def __repr__(self) -> str:
        return f"LabelStudioExport({self.field!r}: {self.kind}, {self.votes!r}, {int(self.gold[1].sum())} known)"


class _Answer(NamedTuple):
    """What one annotation or prediction says, as the file has it."""

    row: int
    task: Any
    source: str
    results: Sequence[Mapping[str, Any]]
    truth: bool = False
    skipped: bool = False


def read_label_studio(
    source: str | Path | Sequence[Mapping[str, Any]], *, field: str | None = None
) -> LabelStudioExport:
    """Read the JSON export of a Label Studio project.

    A skipped task (``was_cancelled``) is an abstention; predictions of models vote like annotators do. One choice is
    a class, several are a set of tags; ratings and numbers are scores; a path of a taxonomy is a node of its tree;
    text spans are lists of (start, end, label), boxes of (x1, y1, x2, y2, label) in percent of the image, or of
    (x, y, width, height, rotation, label) if one is turned.

    `source` is the path of the file, or the list of tasks; `field` is the name of the control (``from_name``), where
    the project has several.

    Examples
    --------
    >>> def answer(who, choice):
    ...     result = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [choice]}}
    ...     return {"completed_by": who, "result": [result]}
    >>> read_label_studio([{"id": 7, "annotations": [answer(1, "good"), answer(2, "bad")]}])
    LabelStudioExport('mood': choices, Votes(1 item, 2 sources, 100% observed), 0 known)
    """
    tasks = _tasks(source)
    answers = [answer for row, (identity, task) in enumerate(tasks.items()) for answer in _answers(row, identity, task)]
    field, kind, to_name = _control(answers, field)
    voiced = {answer.source for answer in answers if any(one.get("from_name") == field for one in answer.results)}
    answers = [answer for answer in answers if answer.source in voiced or answer.skipped]
    said = [None if answer.skipped else _label(answer, field, kind) for answer in answers]
    labels, space, candidates = _as_labels(kind, said, [answer.row for answer in answers], len(tasks))
    gold: list[Any] = [None] * len(tasks)
    cells: dict[tuple[int, str], list[Any]] = {}
    for answer, label in zip(answers, labels, strict=True):
        if not answer.truth:  # a task that was skipped and done later is one vote
            cells.setdefault((answer.row, answer.source), []).extend([] if is_null(label) else [label])
        elif not is_null(label):
            gold[answer.row] = label
    sources = list(dict.fromkeys(source for _, source in cells))
    if not sources:
        raise FileFormatError(
            "Nobody votes: all annotations are ground truth. Export the annotations of others as well."
        )
    for row in set(range(len(tasks))) - {row for row, _ in cells}:
        cells[row, sources[0]] = []
    ids = list(tasks)
    order = sorted(cells, key=lambda cell: (cell[0], sources.index(cell[1])))
    records = [(ids[row], source, label) for row, source in order for label in cells[row, source] or [None]]
    known = np.array([label is not None for label in gold], dtype=bool)
    return LabelStudioExport(
        votes=Votes.from_long(records, repeats="separate"),
        kind=kind,
        space=space,
        gold=(as_object_array(gold), known),
        tasks=tuple(tasks.values()),
        field=field,
        to_name=to_name,
        candidates=candidates,
    )


def _tasks(source: Any) -> dict[Any, Mapping[str, Any]]:
    """Return the tasks by id."""
    is_path = isinstance(source, (str, Path))
    given, name = (read_json(source), repr(str(source))) if is_path else (source, "The list")
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
        raise FileFormatError(f"{name} is no list of tasks. {_EXPORT}")
    if not given:
        raise FileFormatError(f"{name} holds no tasks. {_EXPORT}")
    tasks: dict[Any, Mapping[str, Any]] = {}
    for place, task in enumerate(given):
        if not isinstance(task, Mapping) or not {"annotations", "completions", "predictions"} & task.keys():
            raise FileFormatError(f"{name}: task {place} has neither annotations nor predictions. {_EXPORT}")
        identity = task.get("id", task.get("inner_id", place))
        if identity in tasks:
            raise FileFormatError(f"{name} holds task {identity!r} twice. Give every task an id of its own.")
        tasks[identity] = task
    return tasks


def _answers(row: int, identity: Any, task: Mapping[str, Any]) -> Iterator[_Answer]:
    for annotation in task.get("annotations") or task.get("completions") or ():
        who = annotation.get("completed_by")
        if isinstance(who, Mapping):
            who = next((who[key] for key in ("email", "username", "id") if who.get(key) not in (None, "")), None)
        source = who if isinstance(who, str) else "annotator" if who is None else f"annotator {who}"
        truth, skipped = bool(annotation.get("ground_truth")), bool(annotation.get("was_cancelled"))
        yield _Answer(row, identity, source, annotation.get("result") or (), truth, skipped)
    for prediction in task.get("predictions") or ():
        version = prediction.get("model_version")
        yield _Answer(row, identity, "model" if version is None else str(version), prediction.get("result") or ())


def _control(answers: Sequence[_Answer], field: str | None) -> tuple[str, str, str]:
    """Return name, kind and object of the control that is read."""
    found: dict[str, tuple[str, str, Any]] = {}
    for here, one in [(answer.task, one) for answer in answers for one in answer.results if "from_name" in one]:
        name, kind = str(one["from_name"]), str(one.get("type"))
        first, _, task = found.setdefault(name, (kind, str(one.get("to_name")), here))
        if first != kind and name == field:
            raise FileFormatError(
                f"Task {here!r} answers {name!r} with {kind!r}, task {task!r} with {first!r}. Read the "
                "tasks of one labeling interface at a time."
            )
    if not found:
        raise FileFormatError("No task has been annotated: all results are empty. Export annotated tasks.")
    listed = ", ".join(f"{name!r} ({kind})" for name, (kind, _, _) in found.items())
    only = next(iter(found))
    if field is None and len(found) > 1:
        raise FileFormatError(f"The tasks ask for several things: {listed}. Say which to read, such as field={only!r}.")
    field = field or only
    if field not in found:
        raise FileFormatError(f"No result comes from {field!r}; there are {listed}. Use one of these as field=.")
    kind, to_name, task = found[field]
    if kind not in KINDS:
        raise FileFormatError(f"Task {task!r}: results of type {kind!r} are not read. Read are {', '.join(KINDS)}.")
    return field, kind, to_name


def _label(answer: _Answer, field: str, kind: str) -> Any:
    own = [one for one in answer.results if one.get("from_name") == field]
    place = f"Task {answer.task!r}, {answer.source!r}"
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
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise FileFormatError(
            f"{place}: the answer to {field!r} is not one of type {kind!r} ({what}). {_EXPORT}"
        ) from None


def _as_labels(
    kind: str, labels: list[Any], rows: list[int], n_tasks: int
) -> tuple[list[Any], LabelSpace | None, tuple[tuple[str, ...], ...] | None]:
    """Return what was said as labels of one type, the type, and what is ranked in each task."""
    if kind in ("choices", "taxonomy"):
        names = sorted({name for label in labels for name in label or ()})
        if any(len(label or ()) > 1 for label in labels):
            return [label and frozenset(label) for label in labels], Tags(names), None
        single = [label and label[0] for label in labels]
        if kind == "taxonomy":
            return single, _tree(names), None
        return single, Classes(names) if len(names) > 1 else None, None
    if kind == "ranker":
        return shared_orders(list(zip(rows, labels, strict=True)), n_tasks)
    elements = [element for label in labels if isinstance(label, list) for element in label]
    if kind == "rectanglelabels" and not any(box[4] for box in elements):
        corners = [label and [(x, y, x + w, y + h, name) for x, y, w, h, _, name in label] for label in labels]
        return *_named_elements(corners, Boxes), None
    if kind == "labels" and all(isinstance(span[0], int) for span in elements):
        return *_named_elements(labels, Spans), None
    spaces = {"pairwise": Classes(["left", "right"]), "rating": Scores(), "number": Scores(), "textarea": Texts()}
    return labels, spaces.get(kind), None


def _named_elements(labels: Sequence[Any], space: type[Boxes] | type[Spans]) -> tuple[list[Any], LabelSpace]:
    """Return labels and their type: with classes where elements have names, else without."""
    names = {element[-1] for label in labels for element in label or ()}
    if names <= {None}:
        return [label and [element[:-1] for element in label] for label in labels], space()
    shown = {name: "(none)" if name is None else name for name in names}
    named = [label and [(*element[:-1], shown[element[-1]]) for element in label] for label in labels]
    return named, space(sorted(map(str, shown.values())))


def _tree(paths: Sequence[str]) -> LabelSpace:
    """Return the taxonomy whose nodes are all steps of the paths."""
    steps = [path.split(PATH) for path in paths]
    edges = {(PATH.join(path[:depth]), PATH.join(path[: depth + 1])) for path in steps for depth in range(1, len(path))}
    tops = sorted({path[0] for path in steps})
    if len(tops) > 1 or not edges:
        edges |= {("(root)", top) for top in tops}
    return FiniteMetric(sorted(edges))


def _read_values(kind: str, values: Sequence[Mapping[str, Any]]) -> Any:
    """Return the label that the values of the results of one control are; None where that is no answer."""
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
                regions += [(*place, name) for name in value.get(kind) or [None]]
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
        elif len(place) == 5:  # a turned box
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

    Names, kind and data of the tasks are those of the export that the votes came from (`like`). Without one pass the
    name of the control (`field`), of what it annotates (`to_name`), the type of the control (`kind`), where the label
    type does not tell it, and what each task shows (`data`).
    """
    if like is not None:
        field, to_name, kind = field or like.field, to_name or like.to_name, kind or like.kind
    kind = kind or _KIND_OF.get(type(model.space))
    if field is None or to_name is None or kind not in KINDS:
        raise FileFormatError(
            "A prediction needs the control it answers. Pass the export (like=), or field=, to_name= and kind=, one of "
            f"{', '.join(KINDS)}."
        )
    table = votes_for(votes, model.space)
    candidates = None
    if like is not None:
        place = {item: row for row, item in enumerate(like.items)}
        unknown = next((item for item in table.items.tolist() if item not in place), None)
        if unknown is not None:
            raise FileFormatError(f"Item {unknown!r} is no task of the export. Pass the votes of its tasks.")
        rows = [place[item] for item in table.items.tolist()]
        data = data or [like.tasks[row].get("data", {}) for row in rows]
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
    write_text(path, json.dumps(tasks, ensure_ascii=False, indent=1, default=str) + "\n", force=force)
