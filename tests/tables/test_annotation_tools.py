"""Exports of annotation tools become votes, and labels go back as files that the tools import; spans against texts."""

import json

import pytest
from tests.cli.running import run
from tests.refusals import refused

import consilience as cs
from consilience import tables
from consilience.exceptions import FileFormatError

quietly = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def argilla(tmp_path):
    def record(number, said, spans):
        answers = {
            "mood": [{"value": value, "user_id": f"u{who}", "status": "submitted"} for who, value in enumerate(said)],
            "stars": [{"value": 3 + number % 2, "user_id": "u0"}, {"value": 4, "user_id": "u1", "status": "discarded"}],
            "who": [{"value": spans, "user_id": "u0"}, {"value": spans[:1], "user_id": "u1"}],
            "best": [{"value": [{"value": "a", "rank": 1}, {"value": "b", "rank": 2}], "user_id": "u0"}],
        }
        suggestion = {"mood": {"value": "good", "score": 0.8, "agent": "bert"}}
        fields = {"text": f"Text {number}"}
        return {"id": f"r{number}", "fields": fields, "responses": answers, "suggestions": suggestion}

    person = {"start": 0, "end": 4, "label": "PER"}
    rows = [
        record(number, ["good", "bad" if number else "good"], [person, {**person, "end": 9}]) for number in range(3)
    ]
    (tmp_path / "argilla.json").write_text(json.dumps(rows))
    return tmp_path / "argilla.json"


@quietly
def test_argilla_questions_of_every_kind_and_suggestions_back(tmp_path):
    path = argilla(tmp_path)
    with refused(FileFormatError, "'mood', 'stars', 'who', 'best'", "field='mood'"):
        tables.read_argilla(path)
    mood = tables.read_argilla(path, field="mood")
    assert (mood.votes.sources, mood.space) == (("u0", "u1", "bert"), cs.Classes(["bad", "good"]))
    assert mood.votes.labels[1].tolist() == ["good", "bad", "good"]
    stars = tables.read_argilla(path, field="stars")
    assert (stars.kind, stars.votes.observed.tolist()[0]) == ("number", [True, False])
    assert tables.read_argilla(path, field="who").space == cs.Spans(["PER"])
    assert tables.read_argilla(path, field="best").candidates == (("a", "b"),) * 3
    model = cs.LabelModel(mood.space).fit(mood.votes)
    tables.write_argilla(tmp_path / "out.json", model, mood.votes, mood)
    first = json.loads((tmp_path / "out.json").read_text())[0]
    assert (first["id"], first["fields"]) == ("r0", {"text": "Text 0"})
    assert first["suggestions"][0] | {"score": 1} == {
        "question_name": "mood",
        "value": "good",
        "score": 1,
        "agent": "consilience",
    }
    old = [{"fields": {"text": "x"}, "responses": [{"user_id": "a", "values": {"mood": {"value": "good"}}}]}]
    assert tables.read_argilla(old).votes.labels.tolist() == [["good"]]


def prodigy(tmp_path):
    def task(number, who, **said):
        text = {"text": f"Text {number}", "_input_hash": number, "_task_hash": number * 10}
        return {**text, "_annotator_id": who, "answer": "accept", **said}

    span = {"start": 0, "end": 4, "label": "PER"}
    box = {"x": 10, "y": 5, "width": 20, "height": 10, "label": "CAR"}
    tasks = {
        "spans": [
            task(1, "ann", spans=[span]),
            task(1, "bob", spans=[span, {**span, "end": 6}]),
            task(2, "ann", spans=[]),
        ],
        "choices": [
            task(1, "ann", accept=["A"]),
            task(1, "bob", accept=["B"]),
            task(2, "ann", answer="ignore", accept=[]),
        ],
        "single": [task(1, "ann", label="SPAM"), task(1, "bob", label="SPAM", answer="reject")],
        "boxes": [task(1, "ann", spans=[box]), task(1, "bob", spans=[{**box, "x": 11}])],
    }
    return {name: lines(tmp_path / f"{name}.jsonl", rows) for name, rows in tasks.items()}


@quietly
def test_prodigy_spans_choices_boxes_and_accepted_tasks(tmp_path):
    read = {name: tables.read_prodigy(path) for name, path in prodigy(tmp_path).items()}
    assert read["spans"].space == cs.Spans(["PER"])
    assert read["spans"].votes.labels[0].tolist() == [[(0, 4, "PER")], [(0, 4, "PER"), (0, 6, "PER")]]
    assert read["choices"].votes.labels.tolist() == [["A", "B"], [None, None]]
    assert read["single"].space == cs.Classes(["accept", "reject"])
    assert read["boxes"].votes.labels[0, 1] == [(11.0, 5.0, 31.0, 15.0, "CAR")]
    spans = read["spans"]
    model = cs.LabelModel(spans.space, method="majority").fit(spans.votes)
    tables.write_prodigy(tmp_path / "out.jsonl", model, spans.votes, spans)
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert (first["text"], first["spans"][0]["label"]) == ("Text 1", "PER")


@quietly
def test_doccano_files_of_annotators(tmp_path):
    folder = tmp_path / "users"
    folder.mkdir()
    for who, end in (("ann", 4), ("bob", 6)):
        spans = [{"id": 1, "text": "Anna went", "label": [[0, end, "PER"]]}, {"id": 2, "text": "Nobody", "label": []}]
        lines(folder / f"{who}.jsonl", spans)
    read = tables.read_doccano(folder)
    assert (read.votes.sources, read.space) == (("ann", "bob"), cs.Spans(["PER"]))
    assert read.votes.labels[0, 1] == [(0, 6, "PER")]
    old = [{"id": 7, "text": "x", "annotations": [{"user": 1, "label": 3}, {"user": 2, "label": 4}]}]
    assert tables.read_doccano(old).votes.labels.tolist() == [["3", "4"]]
    model = cs.LabelModel(read.space, method="majority").fit(read.votes)
    tables.write_doccano(tmp_path / "out.jsonl", model, read.votes, read)
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert (first["text"], first["label"][0][2]) == ("Anna went", "PER")


CVAT = """<?xml version="1.0"?><annotations><version>1.1</version>
<image id="0" name="a.png" width="640" height="480"><box label="car" xtl="10" ytl="5" xbr="{end}" ybr="25"/></image>
<image id="1" name="b.png" width="640" height="480"><tag label="{tag}"/></image></annotations>"""


def test_cvat_boxes_and_tags(tmp_path):
    for who, end, tag in (("ann", 30, "night"), ("bob", 33.5, "day")):
        (tmp_path / f"{who}.xml").write_text(CVAT.format(end=end, tag=tag))
    boxes = tables.read_cvat(tmp_path)
    assert boxes.votes.labels[0].tolist() == [[(10.0, 5.0, 30.0, 25.0, "car")], [(10.0, 5.0, 33.5, 25.0, "car")]]
    assert boxes.votes.labels[1].tolist() == [[], []]
    assert tables.read_cvat(tmp_path, field="tags").votes.labels[1].tolist() == ["night", "day"]
    (tmp_path / "ann.xml").write_text("<annotations>")
    with refused(FileFormatError, "ann.xml", "not XML"):
        tables.read_cvat(tmp_path)


def test_ground_truth_manifests_and_answers_of_workers(tmp_path):
    def job(name):
        return {"class-name": name, "human-annotated": "yes", "type": "groundtruth/image-classification"}

    rows = [
        {
            "source-ref": f"s3://b/{n}.png",
            "day1": 0,
            "day1-metadata": job("dog"),
            "day2": n,
            "day2-metadata": job("cat"),
        }
        for n in range(2)
    ]
    read = tables.read_ground_truth(lines(tmp_path / "output.manifest", rows))
    assert (read.votes.sources, read.votes.labels[1].tolist()) == (("day1", "day2"), ["dog", "cat"])

    def answer(who, **said):
        return {"workerId": who, "annotationData": {"content": json.dumps({"crowd": said})}}

    box = {"left": 1, "top": 2, "width": 10, "height": 20, "label": "car"}
    for said, label in (({"label": "dog"}, "dog"), ({"boundingBoxes": [box]}, [(1.0, 2.0, 11.0, 22.0, "car")])):
        workers = [
            {"datasetObjectId": "0", "dataObject": {}, "annotations": [answer("w1", **said), answer("w2", **said)]}
        ]
        (tmp_path / "work.json").write_text(json.dumps(workers))
        assert tables.read_ground_truth(tmp_path / "work.json").votes.labels[0, 1] == label


@pytest.mark.parametrize(
    "text",
    [
        "HITId,WorkerId,WorkTimeInSeconds,Input.text,Answer.mood\nh1,w1,9,x,good\nh1,w2,5,x,bad\n",
        "INPUT:text\tOUTPUT:mood\tASSIGNMENT:worker_id\th\nh1\tgood\tw1\t1\nh1\tbad\tw2\t2\n",
    ],
    ids=["mturk", "toloka"],
)
def test_result_tables_of_crowds_are_long_tables(tmp_path, text):
    (tmp_path / "results.csv").write_text(text)
    votes = tables.read_votes(tmp_path / "results.csv")
    assert (votes.sources, votes.labels.tolist()) == (("w1", "w2"), [["good", "bad"]])


def test_files_of_another_form_are_refused_with_the_reader(tmp_path):
    bad = {
        tables.read_argilla: [{"responses": {"mood": 5}}],
        tables.read_prodigy: [{"spans": [{"start": 1}]}],
        tables.read_doccano: [{"annotations": [3]}],
        tables.read_ground_truth: [{"datasetObjectId": 1, "annotations": [{"annotationData": 7}]}],
    }
    for reader, records in bad.items():
        (tmp_path / "bad.json").write_text(json.dumps(records))
        with refused(FileFormatError, "bad.json", reader.__name__):
            reader(tmp_path / "bad.json")


@quietly
def test_every_tool_goes_through_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    argilla(tmp_path)
    prodigy(tmp_path)
    lines(tmp_path / "doc.jsonl", [{"id": n, "text": "x", "label": ["a" if n else "b"]} for n in range(3)])
    (tmp_path / "c.xml").write_text(CVAT.format(end=30, tag="x"))
    (tmp_path / "q.run").write_text("q1 Q0 d1 1 3 a\nq1 Q0 d2 2 2 a\nq1 Q0 d2 1 3 b\nq1 Q0 d1 2 2 b\n")
    shown = {"images": [{"id": 1, "width": 50, "height": 50}], "categories": [{"id": 1, "name": "car"}]}
    marks = [{"image_id": 1, "category_id": 1, "bbox": [5, 5, 50, 10], "annotator": who} for who in ("ann", "bob")]
    (tmp_path / "coco.json").write_text(json.dumps({**shown, "annotations": marks}))
    for arguments in (
        ("argilla.json", "--field", "mood"),
        ("spans.jsonl",),
        ("doc.jsonl", "--from", "doccano"),
        ("c.xml",),
        ("q.run",),
        ("coco.json", "--outside", "clip"),
    ):
        ran = run("convert", arguments[0], "long.csv", *arguments[1:], "--force")
        assert ran.exit_code == 0, ran.output
        looked = run("inspect", *arguments)
        assert looked.exit_code == 0, looked.output
        assert "Used all" in looked.stderr
    told = [{"user": 1, "label": 3}, {"user": 2, "label": 4}]
    lines(tmp_path / "users.jsonl", [{"id": 7, "text": "x", "annotations": told}])
    assert "Used all 2 answers." in run("inspect", "users.jsonl").stderr
    assert "--outside 'clip'" in run("inspect", "coco.json").stderr
    assert "--field 'mood'" in run("inspect", "argilla.json").stderr


@quietly
def test_labels_go_back_to_the_tool_through_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    argilla(tmp_path)
    prodigy(tmp_path)
    (tmp_path / "users").mkdir()
    for who in ("ann", "bob", "cleo"):
        lines(tmp_path / "users" / f"{who}.jsonl", [{"id": 1, "text": "Anna went", "label": [[0, 4, "PER"]]}])
    shown = {"images": [{"id": 1, "width": 50, "height": 50}], "categories": [{"id": 1, "name": "car"}]}
    marks = [{"image_id": 1, "category_id": 1, "bbox": [5, 5, 20, 10], "annotator": who} for who in "abc"]
    (tmp_path / "coco.json").write_text(json.dumps({**shown, "annotations": marks}))
    ran = run("label", "argilla.json", "-o", "back.json", "--field", "mood", "--to", "argilla")
    assert ran.exit_code in (0, 1), ran.output
    assert json.loads((tmp_path / "back.json").read_text())[0]["suggestions"][0]["value"] == "good"
    wrong = run("label", "argilla.json", "-o", "x.json", "--field", "mood", "--to", "coco")
    assert "--to coco needs an export of that tool" in wrong.stderr
    box = {"x": 10.0, "y": 10.0, "width": 20.0, "height": 20.0, "rectanglelabels": ["Car"]}
    region = {"from_name": "box", "to_name": "image", "type": "rectanglelabels", "value": box}
    both = [{"completed_by": who, "result": [region]} for who in (1, 2, 3)]
    tasks = [{"id": number, "data": {"image": f"{number}.png"}, "annotations": both} for number in range(4)]
    (tmp_path / "boxes.json").write_text(json.dumps(tasks))
    assert run("label", "boxes.json", "-o", "back2.json", "--to", "label-studio").exit_code in (0, 1)
    written = json.loads((tmp_path / "back2.json").read_text())[0]["predictions"][0]["result"][0]["value"]
    assert (written["rectanglelabels"], round(written["width"])) == (["Car"], 20)
    for name, tool in (("spans.jsonl", "prodigy"), ("users", "doccano"), ("coco.json", "coco")):
        ran = run("label", name, "-o", f"to-{tool}.json", "--from", tool, "--to", tool)
        assert ran.exit_code in (0, 1), ran.output
        assert ('"car"' if tool == "coco" else '"PER"') in (tmp_path / f"to-{tool}.json").read_text()
    assert run("convert", "boxes.json", "boxes.csv").exit_code == 0
    assert run("inspect", "boxes.csv", "--space", "boxes").exit_code == 0


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
