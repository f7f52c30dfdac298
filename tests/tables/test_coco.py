"""Boxes from COCO files and as a COCO file; spans checked against texts."""

import json

import pytest

import consilience as cs
from consilience.exceptions import FileFormatError

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
    assert (read.votes.labels[0, 0], read.votes.labels[1, 0]) == ([(10.0, 20.0, 40.0, 60.0, "car")], [])


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
        ({"ann": document([(1, 3, [0, 0, -5, 1])])}, "is not a box"),
        ({"ann": document([(1, 3, [0, 0, float("nan"), 1])])}, "is not a box"),
        ({"ann": document([(1, 3, [0, 0, 90, 9])], width=64, height=48)}, "beyond image 1 of 64 x 48"),
        (
            {"ann": document([]), "bob": document([], categories=[{"id": 3, "name": "bus"}])},
            "Category 3 is 'bus' for 'bob' and 'car' for another",
        ),
    ],
)
def test_a_wrong_coco_file_is_refused(given, message):
    with pytest.raises(FileFormatError, match=message):
        cs.tables.read_coco(given)


@pytest.mark.parametrize(
    "span", [(0, 9), [[0, 9], "PER"], {"start": 0, "end": 9}, {"start_offset": 0, "end_offset": 9}, {"span": [0, 9]}]
)
def test_a_span_beyond_its_text_is_named_however_it_is_written(span):
    votes = cs.Votes.from_array([[[], [span]]], sources=["ann", "bob"])
    cs.elements.check_spans(votes, ["nine char"])
    with pytest.raises(FileFormatError, match=r"Row 0, source 'bob': span \(0, 9\) ends beyond the text of 6"):
        cs.elements.check_spans(votes, ["a text"])


def test_texts_of_another_number_and_what_is_no_span_are_named():
    votes = cs.Votes.from_array([[[{"from": 0, "to": 9}]]], sources=["ann"])
    with pytest.raises(FileFormatError, match=r"Row 0, source 'ann': .*is not a span"):
        cs.elements.check_spans(votes, ["a text"])
    with pytest.raises(FileFormatError, match="1 items and 2 texts"):
        cs.elements.check_spans(votes, ["a", "b"])
