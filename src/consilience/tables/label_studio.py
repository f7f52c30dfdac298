"""Votes from the JSON export of Label Studio, and labels as predictions that it imports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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


@dataclass(frozen=True, eq=False)
class LabelStudioExport:
    """Votes on the tasks of a Label Studio project.

    Attributes
    ----------
    votes : Votes
        Annotators and model versions are the sources, tasks the items. Several answers of one source to one task
        become runs, listed in ``votes.repeated_pairs``.
    kind : str
        Type of the control: "choices", "rating", ...
    space : LabelSpace or None
        The label type. None for turned boxes and spans of HTML, whose labels are Python objects: use `Metric` with a
        distance of yours. None as well where all chose one and the same thing.
    gold : (labels, known)
        What annotations marked as ground truth say, as ``fit(votes, gold=export.gold)`` takes it. They do not vote.
    tasks : tuple of dict
        The tasks as they are in the file.
    field, to_name : str
        Names of the control and of what it annotates.
    candidates : tuple of tuples of names, or None
        What is ranked in each task, where the control is a ranker.
    """

    votes: Votes
    kind: str
    space: LabelSpace | None
    gold: tuple[Batch, BoolArray]
    tasks: tuple[Mapping[str, Any], ...]
    field: str
    to_name: str
    candidates: tuple[tuple[str, ...], ...] | None = None

    @property
    def items(self) -> tuple[Any, ...]:
        """Ids of the tasks."""
        return tuple(self.votes.items.tolist())

    def __repr__(self) -> str:
        return f"LabelStudioExport({self.field!r}: {self.kind}, {self.votes!r}, {int(self.gold[1].sum())} known)"


class _Answer(NamedTuple):
    """What one annotation or prediction says."""

    task: int
    source: str
    truth: bool
    results: list[dict[str, Any]]
    skipped: bool


def read_label_studio(
    source: str | Path | Sequence[Mapping[str, Any]], *, field: str | None = None
) -> LabelStudioExport:
    """Read the JSON export of a Label Studio project.

    A skipped task (``was_cancelled``) is an abstention; predictions of models vote like annotators do. One choice is
    a class, several are a set of tags; ratings and numbers are scores; a path of a taxonomy is a node of its tree;
    text spans are lists of (start, end, label), boxes of (x1, y1, x2, y2, label) in percent of the image, or of
    (x, y, width, height, rotation, label) if one is turned.

    Parameters
    ----------
    source
        Path of the file, or the list of tasks.
    field
        Name of the control (``from_name``), where the project has several.

    Examples
    --------
    >>> def answer(who, choice):
    ...     result = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [choice]}}
    ...     return {"completed_by": who, "result": [result]}
    >>> read_label_studio([{"id": 7, "annotations": [answer(1, "good"), answer(2, "bad")]}])
    LabelStudioExport('mood': choices, Votes(1 item, 2 sources, 100% observed), 0 known)
    """
    tasks = _tasks(source)
    answers = [answer for row, task in enumerate(tasks) for answer in _answers(row, task)]
    field, kind, to_name = _control(answers, field, tasks)
    voiced = {answer.source for answer in answers if any(one.get("from_name") == field for one in answer.results)}
    answers = [answer for answer in answers if answer.source in voiced or answer.skipped]
    labels = [None if answer.skipped else _label(answer, field, kind, tasks) for answer in answers]
    rows = [answer.task for answer in answers]
    labels, space, candidates = _as_labels(kind, labels, rows, len(tasks))
    return LabelStudioExport(
        _votes(answers, labels, tasks),
        kind,
        space,
        _gold(answers, labels, len(tasks)),
        tuple(tasks),
        field,
        to_name,
        candidates,
    )


def _tasks(source: Any) -> list[Mapping[str, Any]]:
    given = read_json(source) if isinstance(source, (str, Path)) else source
    name = repr(str(source)) if isinstance(source, (str, Path)) else "The list"
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
        raise FileFormatError(f"{name} is no list of tasks. {_EXPORT}")
    for place, task in enumerate(given):
        if not isinstance(task, Mapping) or not any(
            key in task for key in ("annotations", "completions", "predictions")
        ):
            raise FileFormatError(f"{name}: task {place} has neither annotations nor predictions. {_EXPORT}")
    if not given:
        raise FileFormatError(f"{name} holds no tasks. {_EXPORT}")
    ids = [_identity(task, place) for place, task in enumerate(given)]
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise FileFormatError(f"{name} holds task {twice!r} twice. Give every task an id of its own.")
    return list(given)


def _identity(task: Mapping[str, Any], place: int) -> Any:
    return task.get("id", task.get("inner_id", place))


def _answers(row: int, task: Mapping[str, Any]) -> Iterator[_Answer]:
    for annotation in task.get("annotations") or task.get("completions") or ():
        yield _Answer(
            row,
            _annotator(annotation.get("completed_by")),
            bool(annotation.get("ground_truth")),
            list(annotation.get("result") or ()),
            bool(annotation.get("was_cancelled")),
        )
    for prediction in task.get("predictions") or ():
        version = prediction.get("model_version")
        yield _Answer(
            row, "model" if version is None else str(version), False, list(prediction.get("result") or ()), False
        )


def _annotator(completed_by: Any) -> str:
    if isinstance(completed_by, Mapping):
        known = (completed_by.get(key) for key in ("email", "username", "id"))
        completed_by = next((value for value in known if value not in (None, "")), None)
    if completed_by is None:
        return "annotator"
    return completed_by if isinstance(completed_by, str) else f"annotator {completed_by}"


def _control(answers: Sequence[_Answer], field: str | None, tasks: Sequence[Mapping[str, Any]]) -> tuple[str, str, str]:
    """Return name, kind and object of the control that is read."""
    found: dict[str, tuple[str, str, int]] = {}
    for answer in answers:
        for one in answer.results:
            if "from_name" not in one:  # relations between regions
                continue
            name, kind = str(one["from_name"]), str(one.get("type"))
            first = found.setdefault(name, (kind, str(one.get("to_name")), answer.task))
            if first[0] != kind and name == field:
                here, there = (_identity(tasks[row], row) for row in (answer.task, first[2]))
                raise FileFormatError(
                    f"Task {here!r} answers {name!r} with {kind!r}, task {there!r} with {first[0]!r}. Read the "
                    "tasks of one labeling interface at a time."
                )
    if not found:
        raise FileFormatError("No task has been annotated: all results are empty. Export annotated tasks.")
    listed = ", ".join(f"{name!r} ({kind})" for name, (kind, _, _) in found.items())
    if field is None and len(found) > 1:
        raise FileFormatError(
            f"The tasks ask for several things: {listed}. Say which to read, such as field={next(iter(found))!r}."
        )
    chosen = next(iter(found)) if field is None else field
    if chosen not in found:
        raise FileFormatError(f"No result comes from {chosen!r}; there are {listed}. Use one of these as field=.")
    kind, to_name, row = found[chosen]
    if kind not in KINDS:
        raise FileFormatError(
            f"Task {_identity(tasks[row], row)!r}: results of type {kind!r} are not read. Read are {', '.join(KINDS)}."
        )
    return chosen, kind, to_name


def _label(answer: _Answer, field: str, kind: str, tasks: Sequence[Mapping[str, Any]]) -> Any:
    how = KINDS[kind]
    own = [one for one in answer.results if one.get("from_name") == field]
    place = f"Task {_identity(tasks[answer.task], answer.task)!r}, {answer.source!r}"
    if not own:
        return how.empty
    if len(own) > 1 and not how.several:
        raise FileFormatError(
            f"{place}: {len(own)} answers to {field!r}, as when each region is asked about. Only one answer per task "
            "is read."
        )
    wrong = next((one["type"] for one in own if one.get("type") != kind), None)
    try:
        if wrong is not None:
            raise ValueError(f"{wrong!r} among {kind!r}")
        return how.read([one["value"] for one in own])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise FileFormatError(
            f"{place}: the answer to {field!r} is not one of type {kind!r} ({what}). {_EXPORT}"
        ) from None


def _as_labels(
    kind: str, labels: list[Any], rows: list[int], n_tasks: int
) -> tuple[list[Any], LabelSpace | None, tuple[tuple[str, ...], ...] | None]:
    if kind in ("choices", "taxonomy"):
        names = sorted({name for label in labels for name in label or ()})
        if any(label is not None and len(label) > 1 for label in labels):
            return [None if label is None else frozenset(label) for label in labels], Tags(names), None
        single = [None if label is None else label[0] for label in labels]
        if kind == "taxonomy":
            return single, _tree(names), None
        return single, Classes(names) if len(names) > 1 else None, None
    if kind == "pairwise":
        return labels, Classes(["left", "right"]), None
    if kind in ("rating", "number"):
        return labels, Scores(), None
    if kind == "ranker":
        shared = shared_orders(list(zip(rows, labels, strict=True)), n_tasks)
        return shared.labels, shared.space, shared.candidates
    if kind == "textarea":
        return labels, Texts(), None
    if kind == "rectanglelabels":
        boxes = as_boxes(labels)
        return (labels, None, None) if boxes is None else (*without_single_names(boxes, Boxes), None)
    if kind == "labels" and all(isinstance(span[0], int) for label in labels for span in label or ()):
        return *without_single_names(labels, Spans), None
    return labels, None, None


def _tree(paths: Sequence[str]) -> LabelSpace:
    """Return the taxonomy whose nodes are all steps of the paths."""
    steps = [path.split(PATH) for path in paths]
    edges = {(PATH.join(path[:depth]), PATH.join(path[: depth + 1])) for path in steps for depth in range(1, len(path))}
    tops = sorted({path[0] for path in steps})
    if len(tops) > 1 or not edges:
        edges |= {("(root)", top) for top in tops}
    return FiniteMetric(sorted(edges))


def _votes(answers: Sequence[_Answer], labels: Sequence[Any], tasks: Sequence[Mapping[str, Any]]) -> Votes:
    said: dict[tuple[int, str], list[Any]] = {}
    for answer, label in zip(answers, labels, strict=True):
        if not answer.truth:
            cell = said.setdefault((answer.task, answer.source), [])
            if not is_null(label):  # a task that was skipped and done later is one vote
                cell.append(label)
    sources = list(dict.fromkeys(source for _, source in said))
    if not sources:
        raise FileFormatError(
            "Nobody votes: all annotations are ground truth. Export the annotations of others as well."
        )
    silent = set(range(len(tasks))) - {row for row, _ in said}
    cells = {**said, **{(row, sources[0]): [] for row in silent}}
    records = [
        (_identity(tasks[row], row), source, label)
        for (row, source), own in sorted(cells.items(), key=lambda cell: (cell[0][0], sources.index(cell[0][1])))
        for label in own or [None]
    ]
    return Votes.from_long(records, repeats="separate")


def _gold(answers: Sequence[_Answer], labels: Sequence[Any], n_tasks: int) -> tuple[Batch, BoolArray]:
    gold: list[Any] = [None] * n_tasks
    for answer, label in zip(answers, labels, strict=True):
        if answer.truth and not is_null(label):
            gold[answer.task] = label
    return as_object_array(gold), np.array([label is not None for label in gold], dtype=bool)


#: Between the steps of a path of a taxonomy.
PATH = " / "

#: The parts of `result` that belong to one control.
Regions = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Kind:
    """How one type of control stores an answer.

    Parameters
    ----------
    read
        From the value of each result to the label of the annotation.
    write
        From a label to the value of each result.
    empty
        Label of an annotation without a result; None where that is no answer.
    several
        Whether an annotation may hold several results.
    """

    read: Callable[[Regions], Any]
    write: Callable[[Any], list[dict[str, Any]]]
    empty: Any = None
    several: bool = False


def as_results(kind: str, label: Any, field: str, to_name: str) -> list[dict[str, Any]]:
    """Return a label as the `result` of a prediction; nothing where there is no label."""
    if is_null(label):
        return []
    values = KINDS[kind].write(label) if kind != "ranker" else [{"ranker": {field: list(label)}}]
    return [
        {"id": f"{field}_{number}", "from_name": field, "to_name": to_name, "type": kind, "value": value}
        for number, value in enumerate(values)
    ]


def as_boxes(labels: Sequence[Any]) -> list[Any] | None:
    """Return rectangles as (x1, y1, x2, y2, label); None if one of them is turned."""
    if any(box[4] for label in labels for box in label or ()):
        return None
    return [
        None if label is None else [(x, y, x + width, y + height, name) for x, y, width, height, _, name in label]
        for label in labels
    ]


def without_single_names(labels: Sequence[Any], space: type[Boxes] | type[Spans]) -> tuple[list[Any], LabelSpace]:
    """Return labels and their type: with classes where elements have names, else without."""
    names = {element[-1] for label in labels for element in label or ()}
    if None not in names and names:
        return list(labels), space(sorted(map(str, names)))
    if names == {None} or not names:
        return [None if label is None else [element[:-1] for element in label] for label in labels], space()
    named = [
        None
        if label is None
        else [(*element[:-1], "(none)" if element[-1] is None else element[-1]) for element in label]
        for label in labels
    ]
    return named, space(sorted("(none)" if name is None else str(name) for name in names))


def _rectangle(box: Sequence[Any]) -> dict[str, Any]:
    """Return the value of one box: corners and perhaps a name, or the six values that turned boxes have."""
    if len(box) == 6:
        return {**dict(zip(_BOX, box, strict=False)), "rotation": box[4], "rectanglelabels": [box[5]]}
    x1, y1, x2, y2 = (float(value) for value in box[:4])
    value = {"x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1, "rotation": 0.0}
    return value | ({"rectanglelabels": [box[4]]} if len(box) > 4 else {})


def _span(span: Sequence[Any]) -> dict[str, Any]:
    start, end, *name = span
    return {"start": plain_value(start), "end": plain_value(end), **({"labels": name} if name else {})}


def _names(label: Any) -> list[str]:
    if isinstance(label, (set, frozenset, list, tuple)):
        return sorted(map(str, label))
    return [str(label)]


def _one(name: str) -> Callable[[Regions], Any]:
    return lambda regions: regions[0][name]


def _choices(regions: Regions) -> Any:
    chosen = regions[0]["choices"]
    return tuple(map(str, chosen)) if chosen else None


def _taxonomy(regions: Regions) -> Any:
    paths = tuple(PATH.join(map(str, path)) for path in regions[0]["taxonomy"])
    return paths or None


def _ranker(regions: Regions) -> Any:
    ranked = {name: ids for name, ids in regions[0]["ranker"].items() if name != "_"}
    if len(ranked) != 1:
        raise ValueError(f"{len(ranked)} buckets: only orders are read, not things sorted into buckets")
    return list(map(str, next(iter(ranked.values())))) or None


def _spans(regions: Regions) -> Any:
    spans = [(value["start"], value["end"], label) for value in regions for label in value.get("labels") or [None]]
    return sorted(spans, key=str) if any(isinstance(span[0], str) for span in spans) else sorted(spans, key=_place)


def _place(region: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*region[:-1], str(region[-1]))


_BOX = ("x", "y", "width", "height")


def _boxes(regions: Regions) -> Any:
    boxes = [
        (*(float(value[side]) for side in _BOX), float(value.get("rotation") or 0.0), label)
        for value in regions
        for label in value.get("rectanglelabels") or [None]
    ]
    return sorted(boxes, key=_place)


def _text(regions: Regions) -> Any:
    parts = regions[0]["text"]
    return parts if isinstance(parts, str) else "\n".join(map(str, parts))


def _number(label: Any) -> Any:
    number = plain_value(np.asarray(label, dtype=np.float64).reshape(())[()])
    return int(number) if number == int(number) else number


KINDS: dict[str, Kind] = {
    "choices": Kind(_choices, lambda label: [{"choices": _names(label)}]),
    "pairwise": Kind(_one("selected"), lambda label: [{"selected": str(label)}]),
    "rating": Kind(_one("rating"), lambda label: [{"rating": max(1, round(float(label)))}]),
    "number": Kind(_one("number"), lambda label: [{"number": _number(label)}]),
    "taxonomy": Kind(_taxonomy, lambda label: [{"taxonomy": [path.split(PATH) for path in _names(label)]}]),
    "ranker": Kind(_ranker, lambda label: [{"ranker": {"rank": list(label)}}]),  # the name of the control, if known
    "labels": Kind(
        _spans,
        lambda spans: [_span(span) for span in spans],
        empty=[],
        several=True,
    ),
    "rectanglelabels": Kind(
        _boxes,
        lambda boxes: [_rectangle(box) for box in boxes],
        empty=[],
        several=True,
    ),
    "textarea": Kind(_text, lambda label: [{"text": [str(label)]}]),
}


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
    table = votes_for(votes, model.space)
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
    write_text(path, text + "\n", force=force)


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
