"""Exports of Argilla, Prodigy, doccano, CVAT and SageMaker Ground Truth as votes, and labels as files they import."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from consilience.arrays import is_null
from consilience.exceptions import ConsilienceError, FileFormatError
from consilience.json_text import parse_json, plain
from consilience.label_model import LabelModel
from consilience.tables.annotations import Annotations, Answer, by_annotator, gathered, question
from consilience.tables.files import read_text, write_json, write_json_lines
from consilience.votes import as_votes

Files = str | Path | Sequence[Mapping[str, Any]] | Mapping[str, str | Path]
Record = Mapping[str, Any]
#: Longer texts, and texts that mostly occur once, are free answers, not choices.
LONGEST_CHOICE = 60


def _reader(read: Callable[..., Annotations]) -> Callable[..., Annotations]:
    """Return a reader that refuses a file of another format, and says so."""

    @wraps(read)
    def checked(path: Any, **options: Any) -> Annotations:
        try:
            return read(path, **options)
        except ConsilienceError:
            raise
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            shown = str(path) if isinstance(path, (str, Path)) else "The export"
            what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
            raise FileFormatError(
                f"{shown!r} is not in the format that {read.__name__} reads ({what}). Export it again."
            ) from None

    return checked


@_reader
def read_argilla(path: Files, *, field: str | None = None) -> Annotations:
    """Read records of Argilla (``dataset.records.to_json``): users and agents of suggestions are the sources.

    `field` is the name of the question, where there are several. Discarded responses abstain.

    Examples
    --------
    >>> said = {"mood": [{"value": "good", "user_id": "ann"}, {"value": "bad", "user_id": "bob"}]}
    >>> read_argilla([{"id": "r1", "fields": {"text": "Well."}, "responses": said}])
    Annotations('mood': choices, Votes(1 item, 2 sources, 100% observed), 0 known)
    """
    found: dict[str, list[Answer]] = {}
    data: dict[Any, Record] = {}
    for _, place, record in _records(path):
        item = record.get("id", place)
        data[item] = _mapping(record.get("fields"), place)
        for name, who, value in _argilla_answers(record, place):
            found.setdefault(name, []).append(Answer(item, who, value))
    name = question(found, field)
    kind = _kind_of([answer.said for answer in found[name] if answer.said is not None])
    return gathered(kind, [one._replace(said=_said(kind, one.said)) for one in found[name]], data, name)


def _argilla_answers(record: Record, place: str) -> Iterator[tuple[str, str, Any]]:
    responses = record.get("responses") or {}
    if isinstance(responses, Mapping):  # by question; in older exports by user
        each = [(name, one, one.get("value")) for name, own in responses.items() for one in own]
    else:
        values = [(one, _mapping(one.get("values"), place)) for one in responses]
        each = [(name, one, _mapping(said, place).get("value")) for one, own in values for name, said in own.items()]
    for name, one, value in each:
        if one.get("status") != "draft":
            yield name, str(one.get("user_id", "user")), None if one.get("status") == "discarded" else value
    suggestions = record.get("suggestions") or {}
    if not isinstance(suggestions, Mapping):
        suggestions = {str(one.get("question_name")): one for one in suggestions}
    for name, one in suggestions.items():
        if one.get("value") is not None:
            yield name, str(one.get("agent") or "suggestion"), one["value"]


@_reader
def read_prodigy(path: Files) -> Annotations:
    """Read tasks of Prodigy (``prodigy db-out``): annotators are the sources, "ignore" abstains.

    Choices, spans and boxes are read as such. A task with one label is accepted or rejected: the classes are these.

    Examples
    --------
    >>> task = {"text": "Well.", "_input_hash": 7, "_annotator_id": "ann", "accept": ["good"], "answer": "accept"}
    >>> read_prodigy([task, {**task, "_annotator_id": "bob", "accept": ["bad"]}]).votes.labels.tolist()
    [['good', 'bad']]
    """

    def said(record: Record, kind: str) -> Any:
        if kind == "choices":
            return tuple(map(str, record.get("accept", [record.get("answer", "accept")]))) or None
        sides = ("start", "end") if kind == "labels" else ("x", "y", "width", "height")
        straight = () if kind == "labels" else (0.0,)  # boxes are not rotated
        return [(*(span[side] for side in sides), *straight, span.get("label")) for span in record.get("spans") or ()]

    tasks = [
        (who, _having(record, place, "answer", "accept", "spans"), record) for who, place, record in _records(path)
    ]
    kind = "choices"
    if any("spans" in record for _, _, record in tasks):
        boxes = any("width" in span for _, _, record in tasks for span in record.get("spans") or ())
        kind = "rectanglelabels" if boxes else "labels"
    key = "_task_hash" if kind == "choices" and not any("accept" in one for _, _, one in tasks) else "_input_hash"
    data: dict[Any, Record] = {}
    answers = []
    for who, place, record in tasks:
        item = record.get(key, record.get("text", record.get("image", place)))
        data.setdefault(item, {name: record[name] for name in ("text", "image", "html") if name in record})
        source_name = who or str(record.get("_annotator_id") or record.get("_session_id") or "annotator")
        answers.append(Answer(item, source_name, None if record.get("answer") == "ignore" else said(record, kind)))
    return gathered(kind, answers, data)


@_reader
def read_doccano(path: Files) -> Annotations:
    """Read exports of doccano: one JSON Lines file per annotator (a folder or a dict), or an old export of all.

    Examples
    --------
    >>> read_doccano([{"id": 1, "text": "Ann left.", "label": [[0, 3, "PER"]]}]).votes.labels.tolist()
    [[[(0, 3, 'PER')]]]
    """
    data: dict[Any, Record] = {}
    rows = []
    for who, place, record in _records(path):
        item = record.get("id", _having(record, place, "annotations", "entities", "label", "labels", "cats"))
        data.setdefault(item, {name: record[name] for name in ("text", "filename") if name in record})
        by_user: dict[str, list[Any]] = {}
        if "annotations" in record:  # an old export: every entry has its user
            for one in record["annotations"]:
                said = one.get("label") if "start_offset" not in one else one
                by_user.setdefault(f"user {one.get('user')}", []).append(said)
        else:
            said = record.get("entities") or record.get("label") or record.get("labels") or record.get("cats") or []
            by_user[who or "annotator"] = said if isinstance(said, list) else [said]
        rows += [(item, user, said) for user, said in by_user.items()]
    spans = any(isinstance(one, (list, dict)) for _, _, said in rows for one in said)
    texts = not spans and _kind_of([said[0] for _, _, said in rows if said]) == "textarea"
    kind = "labels" if spans else "textarea" if texts else "choices"

    def label(said: list[Any]) -> Any:
        if spans:
            return [_span(one) for one in said]
        return (str(said[0]) if texts else tuple(map(str, said))) if said else None

    return gathered(kind, [Answer(item, user, label(said)) for item, user, said in rows], data)


def _span(one: Any) -> tuple[int, int, str | None]:
    if isinstance(one, Mapping):
        one = [one["start_offset"], one["end_offset"], one.get("label")]
    start, end, name = [*one, None][:3]
    return start, end, None if name is None else str(name)  # old exports number the classes


@_reader
def read_cvat(path: str | Path | Mapping[str, str | Path], *, field: str | None = None) -> Annotations:
    """Read "CVAT for images" files, one per annotator: a folder of them, or a dict of a path per name.

    Boxes are read where there are any, else tags of images; `field` says which: "boxes" or "tags".

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "ann.xml"
    >>> _ = file.write_text('<annotations><image name="a.png"><tag label="night"/></image></annotations>')
    >>> read_cvat({"ann": file}).votes.labels.tolist()
    [['night']]
    """
    from xml.etree import ElementTree

    data: dict[Any, Record] = {}
    drawn, tagged = [], []
    for who, file in by_annotator(path).items():
        try:
            root = ElementTree.fromstring(read_text(file))
        except ElementTree.ParseError as error:
            raise FileFormatError(f"{str(file)!r} is not XML: {error}. Export as 'CVAT for images'.") from None
        for number, image in enumerate(root.iter("image")):
            item = image.get("name", str(number))
            data.setdefault(item, {"image": item, "width": image.get("width"), "height": image.get("height")})
            name = who or "annotator"
            boxes = []
            for box in image.iter("box"):
                x1, y1, x2, y2 = (float(str(box.get(side))) for side in ("xtl", "ytl", "xbr", "ybr"))
                boxes.append((x1, y1, x2 - x1, y2 - y1, 0.0, box.get("label")))
            drawn.append(Answer(item, name, boxes))
            tagged.append(Answer(item, name, tuple(str(tag.get("label")) for tag in image.iter("tag")) or None))
    if not data:
        raise FileFormatError(f"{str(path)!r} contains no images. Export as 'CVAT for images'.")
    kinds = {"boxes": ("rectanglelabels", drawn), "tags": ("choices", tagged)}
    kind, answers = kinds[question(kinds, field or ("boxes" if any(one.said for one in drawn) else "tags"))]
    return gathered(kind, answers, data, field or "")


@_reader
def read_ground_truth(path: str | Path, *, field: str | None = None) -> Annotations:
    """Read SageMaker Ground Truth: a manifest, whose jobs are the sources, or the answers of the workers of one job.

    The latter is the JSON of the annotation consolidation: a list of objects with ``datasetObjectId`` and
    ``annotations``. `field` is the only labeling job of a manifest to read.

    Examples
    --------
    >>> line = {"source-ref": "s3://b/1.png", "pets": 0, "pets-metadata": {"class-name": "dog"}}
    >>> read_ground_truth([line]).votes.labels.tolist()
    [['dog']]
    """
    data: dict[Any, Record] = {}
    answers = []
    for _, place, record in _records(path):
        if "annotations" in record and "datasetObjectId" in record:
            item = record["datasetObjectId"]
            data[item] = _mapping(record.get("dataObject"), place)
            for one in record["annotations"]:
                content = _json(one.get("annotationData", {}).get("content"), place)
                answers.append(Answer(item, str(one.get("workerId")), _worker_answer(content)))
            continue
        item = record.get("source-ref", record.get("source", place))
        data[item] = {name: record[name] for name in ("source-ref", "source") if name in record}
        for name in record:
            about = record.get(f"{name}-metadata")
            if isinstance(about, Mapping) and field in (None, name):
                answers.append(Answer(item, name, _job_answer(record[name], about)))
    boxes = any(isinstance(answer.said, list) for answer in answers)
    if not answers:
        raise FileFormatError(
            f"{str(path)!r} contains no labels. Give an output manifest, whose lines have ...-metadata."
        )
    return gathered("rectanglelabels" if boxes else "choices", answers, data, field or "")


def _job_answer(said: Any, about: Mapping[str, Any]) -> Any:
    names = about.get("class-map") or {}
    if isinstance(said, Mapping) and "annotations" in said:
        return [_pixels(one, names.get(str(one.get("class_id")))) for one in said["annotations"]]
    if "class-name" in about:
        return (str(about["class-name"]),)
    several = said if isinstance(said, list) else [said]
    return tuple(str(names.get(str(one), one)) for one in several) or None


def _worker_answer(content: Any) -> Any:
    """Return what a crowd element holds: ``{"crowd-image-classifier": {"label": "dog"}}`` or its boxes."""
    value = next(iter(content.values()), None) if isinstance(content, Mapping) else content
    if isinstance(value, Mapping) and "boundingBoxes" in value:
        return [_pixels(one, one.get("label")) for one in value["boundingBoxes"]]
    labels = value.get("labels", value.get("label")) if isinstance(value, Mapping) else value
    several = labels if isinstance(labels, list) else [labels]
    return tuple(str(one) for one in several if one is not None) or None


def _pixels(box: Record, name: Any) -> tuple[Any, ...]:
    return (*(float(box[side]) for side in ("left", "top", "width", "height")), 0.0, name)


# --- labels for the tools ------------------------------------------------------------------------------------


def write_argilla(path: str | Path, model: LabelModel, votes: Any, like: Annotations, *, force: bool = False) -> None:
    """Write labels as suggestions: a JSON list of records that ``rg.Record(**record)`` takes.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> said = {"mood": [{"value": "good", "user_id": who} for who in ("ann", "bob", "cleo")]}
    >>> read = read_argilla([{"id": n, "fields": {"text": "Well."}, "responses": said} for n in range(9)])
    >>> model = LabelModel(Classes(["bad", "good"]), method="majority").fit(read.votes)
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "suggestions.json"
    >>> write_argilla(file, model, read.votes, read)
    >>> parse_json(file.read_text())[0]["suggestions"][0]["value"]
    'good'
    """

    def record(item: Any, shown: Record, label: Any, confidence: float) -> Record:
        value: Any = plain(label)
        if like.kind == "labels":
            value = [dict(zip(("start", "end", "label"), span, strict=False)) for span in value]
        suggestion = {"question_name": like.field, "value": value, "score": confidence, "agent": "consilience"}
        return {"id": str(item), "fields": dict(shown), "suggestions": [suggestion]}

    write_json(path, _written(model, votes, like, record), force=force)


def write_prodigy(path: str | Path, model: LabelModel, votes: Any, like: Annotations, *, force: bool = False) -> None:
    """Write labels as tasks in JSON Lines, to be reviewed with Prodigy.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> task = {"text": "Well.", "answer": "accept", "accept": ["good"]}
    >>> read = read_prodigy([{**task, "_input_hash": n, "_annotator_id": who} for n in range(9) for who in "abc"])
    >>> model = LabelModel(Classes(["bad", "good"]), method="majority").fit(read.votes)
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tasks.jsonl"
    >>> write_prodigy(file, model, read.votes, read)
    >>> parse_json(file.read_text().splitlines()[0])["accept"]
    ['good']
    """

    def record(item: Any, shown: Record, label: Any, confidence: float) -> Record:
        value: Any = plain(label)
        if like.kind == "labels":
            said = {"spans": [dict(zip(("start", "end", "label"), span, strict=False)) for span in value]}
        elif like.kind == "rectanglelabels":
            sides = [(x1, y1, x2 - x1, y2 - y1, *name) for x1, y1, x2, y2, *name in value]
            said = {"spans": [dict(zip(("x", "y", "width", "height", "label"), box, strict=False)) for box in sides]}
        else:
            said = {"accept": value if isinstance(value, list) else [value]}
        return {**shown, **said, "meta": {"confidence": confidence, "item": item}}

    write_json_lines(path, _written(model, votes, like, record), force=force)


def write_doccano(path: str | Path, model: LabelModel, votes: Any, like: Annotations, *, force: bool = False) -> None:
    """Write labels in the JSON Lines that doccano imports.

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> said = [{"user": user, "label": "good"} for user in (1, 2, 3)]
    >>> read = read_doccano([{"id": n, "text": "Well.", "annotations": said} for n in range(9)])
    >>> model = LabelModel(Classes(["bad", "good"]), method="majority").fit(read.votes)
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "labels.jsonl"
    >>> write_doccano(file, model, read.votes, read)
    >>> parse_json(file.read_text().splitlines()[0])["label"]
    ['good']
    """

    def record(item: Any, shown: Record, label: Any, confidence: float) -> Record:
        value: Any = plain(label)
        return {**shown, "label": value if isinstance(value, list) else [value], "confidence": confidence}

    write_json_lines(path, _written(model, votes, like, record), force=force)


def _written(
    model: LabelModel, votes: Any, like: Annotations, record: Callable[[Any, Record, Any, float], Record]
) -> list[Record]:
    """Return one record per item that somebody voted on."""
    table = as_votes(votes, model.space)
    belief = model.posterior(table)
    shown = dict(zip(like.votes.items.tolist(), like.data, strict=True))
    items = table.items.tolist()
    voted = np.flatnonzero(table.observed.any(axis=1)).tolist()
    return [
        record(items[row], shown.get(items[row], {}), belief.labels[row], round(float(belief.confidence[row]), 6))
        for row in voted
        if not is_null(belief.labels[row])
    ]


# --- files ---------------------------------------------------------------------------------------------------


def _records(path: Any) -> Iterator[tuple[str | None, str, Record]]:
    """Yield who, where and what for each JSON object, in a list, or one per line."""
    for who, given in by_annotator(path).items():
        if not isinstance(given, (str, Path)):
            listed, name = list(given), "the list"
        else:
            text, name = read_text(given), str(given)
            if text.lstrip().startswith("["):
                listed = _json(text, name)
            else:
                numbered = enumerate(text.split("\n"), start=1)
                listed = [_json(line, f"{name}, line {number}") for number, line in numbered if line.strip()]
        for number, record in enumerate(listed):
            yield who, f"{name}, record {number}", _mapping(record, f"{name}, record {number}")


def _json(text: Any, place: str) -> Any:
    try:
        return parse_json(text) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{place} is not JSON: {error}. Export it again.") from None


def _mapping(value: Any, place: str) -> Record:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise FileFormatError(f"{place}: {str(value)[:LONGEST_CHOICE]!r} is not an object. Export it again.")
    return value


def _having(record: Record, place: str, *keys: str) -> str:
    """Return the place of a record, or refuse one that has none of the keys of its tool."""
    if not set(keys) & record.keys():
        raise FileFormatError(f"{place} has none of {', '.join(map(repr, keys))}. Export annotated records.")
    return place


def _kind_of(values: Sequence[Any]) -> str:
    """Return the kind of question that answers of these values have."""
    first = next((value for value in values if value not in (None, [])), None)
    if isinstance(first, (int, float)) and not isinstance(first, bool):
        return "number"
    if isinstance(first, list) and isinstance(first[0], Mapping):
        return "ranker" if "rank" in first[0] else "labels"
    texts = [value for value in values if isinstance(value, str)]
    long = any(len(text) > LONGEST_CHOICE for text in texts)
    return "textarea" if long or (len(texts) > 10 and len(set(texts)) > 0.5 * len(texts)) else "choices"


def _said(kind: str, value: Any) -> Any:
    """Return the value of a response as answers of the kind have it."""
    if value is None:
        return None
    if kind == "choices":
        return tuple(map(str, value if isinstance(value, list) else [value])) or None
    if kind == "labels":
        return [(span["start"], span["end"], span.get("label")) for span in value]
    if kind == "ranker":
        groups: dict[Any, list[str]] = {}
        for one in value:
            groups.setdefault(one["rank"], []).append(str(one["value"]))
        return [own[0] if len(own) == 1 else tuple(own) for _, own in sorted(groups.items())] or None
    return value
