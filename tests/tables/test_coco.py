"""Boxes from COCO files and as a COCO file; spans and texts of Label Studio; spans checked against texts."""

from __future__ import annotations

import json

import pytest

import consilience as cs
from consilience.exceptions import FileFormatError
from consilience.tables import read_label_studio

CATEGORIES = [{"id": 3, "name": "car"}, {"id": 8, "name": "person"}]


def document(marks, images=(1, 2, 3), categories=CATEGORIES, **size):
    return {
        "images": [{"id": image, **size} for image in images],
        "annotations": [{"image_id": image, "category_id": kind, "bbox": box} for image, kind, box in marks],
        "categories": categories,
    }


def test_images_without_boxes_are_empty_votes_and_unlisted_ones_abstentions():
    read = cs.tables.read_coco(
        {"ann": document([(1, 3, [10, 20, 30, 40])]), "bob": document([(1, 8, [11, 20, 30, 40])], images=(1, 2))}
    )
    assert read.space.classes == ("car", "person")
    assert read.votes.observed.tolist() == [[True, True], [True, True], [True, False]]
    assert read.votes.labels[0, 0] == [(10.0, 20.0, 40.0, 60.0, "car")]
    assert read.votes.labels[1, 0] == []


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_labels_go_out_as_coco_and_come_back(tmp_path):
    marks = [(image, 3 if image < 3 else 8, [10 * image, 20, 30, 40]) for image in (1, 2, 3)]
    files = {}
    for name in ("ann", "bob", "cleo"):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(document(marks if name != "cleo" else marks[:2])))
        files[name] = path
    read = cs.tables.read_coco(files)
    model = cs.LabelModel(read.space, method="em").fit(read.votes)
    cs.tables.write_coco(tmp_path / "out.json", model, read.votes, read)
    back = cs.tables.read_coco({"consensus": tmp_path / "out.json"})
    assert back.votes.labels[:, 0].tolist() == [
        [(10.0 * i, 20.0, 10.0 * i + 30, 60.0, n)] for i, n in ((1, "car"), (2, "car"), (3, "person"))
    ]
    written = json.loads((tmp_path / "out.json").read_text())
    assert all(0 <= one["score"] <= 1 for one in written["annotations"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "one COCO file per source"),
        ({"ann": []}, "'ann': there is no list of images"),
        ({"ann": document([(9, 3, [0, 0, 1, 1])])}, "'ann': annotation 0 is about image 9"),
        ({"ann": document([(1, 4, [0, 0, 1, 1])])}, "annotation 0 has the category 4"),
        ({"ann": document([(1, 3, [0, 0, 1])])}, "annotation 0 has no bbox of four numbers"),
        ({"ann": document([(1, 3, [0, 0, -5, 1])])}, "is no box"),
        ({"ann": document([(1, 3, [0, 0, float("nan"), 1])])}, "is no box"),
        ({"ann": document([(1, 3, [0, 0, 90, 9])], width=64, height=48)}, "outside of image 1 of 64 x 48"),
        (
            {"ann": document([]), "bob": document([], categories=[{"id": 3, "name": "bus"}])},
            "Category 3 is 'bus' for 'bob' and 'car' for another",
        ),
    ],
)
def test_a_wrong_coco_file_is_refused(given, message):
    with pytest.raises(FileFormatError, match=message):
        cs.tables.read_coco(given)


def studio(kind, values_by_task):
    def answer(who, values):
        results = [{"from_name": "it", "to_name": "x", "type": kind, "value": value} for value in values]
        return {"completed_by": who, "result": results}

    return [
        {"id": task, "data": {}, "annotations": [answer(who, values) for who, values in enumerate(by)]}
        for task, by in enumerate(values_by_task)
    ]


def rectangle(x, name="dog", rotation=0):
    return {"x": x, "y": 2, "width": 3, "height": 4, "rotation": rotation, "rectanglelabels": [name]}


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_rectangles_of_label_studio_are_boxes_and_go_back_as_such(tmp_path):
    export = read_label_studio(studio("rectanglelabels", [[[rectangle(k)], [rectangle(k)], []] for k in range(20)]))
    assert export.space == cs.Boxes(["dog"])
    model = cs.LabelModel(export.space).fit(export.votes)
    cs.tables.write_label_studio(tmp_path / "out.json", model, export.votes, export)
    value = json.loads((tmp_path / "out.json").read_text())[3]["predictions"][0]["result"][0]["value"]
    assert value == rectangle(3)


def test_turned_rectangles_keep_their_form():
    export = read_label_studio(studio("rectanglelabels", [[[rectangle(1, rotation=30)], [rectangle(1)]]]))
    assert export.space is None
    assert export.votes.labels[0, 0] == [(1.0, 2.0, 3.0, 4.0, 30.0, "dog")]


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_spans_and_texts_of_label_studio_have_label_types(tmp_path):
    spans = [{"start": 0, "end": 4, "labels": ["X"]}]
    export = read_label_studio(studio("labels", [[spans, spans, []]] * 12))
    assert export.space == cs.Spans(["X"])
    model = cs.LabelModel(export.space, method="majority").fit(export.votes)
    cs.tables.write_label_studio(tmp_path / "out.json", model, export.votes, export)
    result = json.loads((tmp_path / "out.json").read_text())[0]["predictions"][0]["result"]
    assert [one["value"] for one in result] == spans
    texts = read_label_studio(studio("textarea", [[[{"text": ["a b"]}], [{"text": ["a b"]}], [{"text": ["c"]}]]]))
    assert isinstance(texts.space, cs.Texts)


def test_spans_beyond_their_text_are_named():
    votes = cs.Votes.from_array([[[(0, 3)], [{"start": 2, "end": 4}]]], sources=["ann", "bob"])
    cs.elements.check_spans(votes, ["long enough"])
    with pytest.raises(FileFormatError, match=r"Row 0, source 'bob': span \(2, 4\) ends beyond the text of 3"):
        cs.elements.check_spans(votes, ["abc"])
    with pytest.raises(FileFormatError, match="1 items and 2 texts"):
        cs.elements.check_spans(votes, ["a", "b"])
