"""Votes from the JSON export of Label Studio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Batch, BoolArray, as_object_array, is_null
from consilience.exceptions import FileFormatError
from consilience.label_types import Boxes, Classes, FiniteMetric, Scores, Spans, Tags, Texts
from consilience.label_types.base import LabelSpace
from consilience.tables.files import read_json
from consilience.tables.label_studio_values import KINDS, PATH, as_boxes, without_single_names
from consilience.tables.orders import shared_orders
from consilience.votes import Votes

__all__ = ["LabelStudioExport", "read_label_studio"]

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
