"""Exports of Label Studio become votes, and labels become predictions that it imports."""

import json

import numpy as np
import pytest
from tests.refusals import refused

import consilience as cs
from consilience.exceptions import FileFormatError

BOX = {"x": 1, "y": 2, "width": 3, "height": 4, "rotation": 0, "rectanglelabels": ["dog"]}
# Kind of the control, what an annotator says, the label it is, and what another one says.
ANSWERS = {
    "choices": ({"choices": ["cat"]}, "cat", {"choices": ["dog"]}),
    "tags": ({"choices": ["a", "b"]}, frozenset("ab"), {"choices": ["b"]}),
    "rating": ({"rating": 4}, 4, {"rating": 5}),
    "number": ({"number": 2.5}, 2.5, {"number": 3}),
    "taxonomy": ({"taxonomy": [["animal", "cat"]]}, "animal / cat", {"taxonomy": [["animal", "dog"]]}),
    "ranker": ({"ranker": {"control": ["b", "a"]}}, ["b", "a"], {"ranker": {"control": ["a", "b"]}}),
    "labels": (
        {"start": 3, "end": 7, "labels": ["PLACE"]},
        [(3, 7, "PLACE")],
        {"start": 9, "end": 12, "labels": ["PLACE"]},
    ),
    "rectanglelabels": (BOX, [(1.0, 2.0, 4.0, 6.0, "dog")], {**BOX, "x": 50}),
    "textarea": ({"text": ["one", "two"]}, "one\ntwo", {"text": ["one"]}),
    "pairwise": ({"selected": "left"}, "left", {"selected": "right"}),
}
quietly = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def result(kind, value, control="control"):
    return {"from_name": control, "to_name": "text", "type": kind, "id": "r1", "value": value}


def annotation(who, *results, **more):
    return {"completed_by": who, "result": list(results), **more}


def choice(who, *names, **more):
    return annotation(who, result("choices", {"choices": list(names)}), **more)


def ranked(who, *names):
    return annotation(who, result("ranker", {"ranker": {"control": list(names), "_": []}}))


def task(identity, *annotations, predictions=()):
    shown = {"text": f"text {identity}"}
    return {"id": identity, "data": shown, "annotations": list(annotations), "predictions": list(predictions)}


def project(kind, value, other):
    """Return 12 tasks with three annotators each; the third differs."""
    results = [result(kind, value), result(kind, value), result(kind, other)]
    return [task(number, *(annotation(who, one) for who, one in enumerate(results))) for number in range(12)]


@pytest.mark.parametrize("name", ANSWERS)
@quietly
def test_answer_of_every_control_is_read_and_written_as_it_was(name, tmp_path):
    kind = "choices" if name == "tags" else name
    value, label, other = ANSWERS[name]
    export = cs.tables.read_label_studio(project(kind, value, other))
    assert export.kind == kind
    assert export.votes.sources == ("annotator 0", "annotator 1", "annotator 2")
    assert export.votes.labels[0, 0] == label
    assert export.space.contains(label)
    model = cs.LabelModel(export.space, method="majority").fit(export.votes)
    path = tmp_path / "predictions.json"
    cs.tables.write_label_studio(path, model, export.votes, export, model_version="v1")
    tasks = json.loads(path.read_text())
    assert [one["id"] for one in tasks] == list(range(12))
    assert tasks[3]["data"] == {"text": "text 3"}
    prediction = tasks[3]["predictions"][0]
    assert prediction["model_version"] == "v1"
    assert prediction["score"] == pytest.approx(model.confidence(export.votes)[3])
    answer = prediction["result"][0]
    assert (answer["from_name"], answer["to_name"], answer["type"]) == ("control", "text", kind)
    if name not in ("number", "textarea"):  # whose label is between the answers, or one line
        assert answer["value"] == value


def test_annotators_and_model_versions_are_the_sources():
    predictions = [{"model_version": "m-2", "result": [result("choices", {"choices": ["bad"]})]}]
    tasks = [
        task(7, choice(1, "good"), choice({"id": 2, "email": "bob@example.org"}, "bad")),
        task(9, choice(1, "bad"), predictions=predictions),
    ]
    export = cs.tables.read_label_studio(tasks)
    assert export.votes.sources == ("annotator 1", "bob@example.org", "m-2")
    assert export.votes.items.tolist() == [7, 9]
    assert export.votes.observed.tolist() == [[True, True, False], [True, False, True]]
    assert export.space.names == ("bad", "good")
    assert (export.field, export.to_name) == ("control", "text")
    assert cs.tables.read_label_studio(tasks[1:]).space is None  # there is only one choice


def test_skipped_tasks_abstain_until_they_are_done_and_tasks_without_annotations_stay():
    skipped = annotation(2, was_cancelled=True)
    tasks = [task(1, choice(1, "a"), skipped), task(2), task(3, skipped, choice(2, "b"))]
    votes = cs.tables.read_label_studio(tasks).votes
    assert votes.items.tolist() == [1, 2, 3]
    assert votes.observed.tolist() == [[True, False], [False, False], [False, True]]
    assert votes.repeated_pairs == ()
    votes = cs.tables.read_label_studio([task(1, choice(1, "a"), choice(1, "b")), task(2, choice(1, "a"))]).votes
    assert votes.sources == ("annotator 1 #1", "annotator 1 #2")
    assert votes.repeated_pairs == (("annotator 1 #1", "annotator 1 #2"),)


def test_ground_truth_is_gold_and_does_not_vote():
    tasks = [task(1, choice(1, "a"), choice(9, "b", ground_truth=True)), task(2, choice(1, "b"))]
    export = cs.tables.read_label_studio(tasks)
    assert (export.votes.sources, export.gold[0].tolist()) == (("annotator 1",), ["b", None])
    assert export.gold[1].tolist() == [True, False]
    model = cs.LabelModel(export.space, method="majority")
    with pytest.warns(cs.exceptions.ConsilienceWarning):
        model.fit(export.votes, gold=export.gold)
    assert model.predict(export.votes).tolist() == ["a", "b"]


def test_taxonomy_is_a_tree_in_which_siblings_are_two_steps_apart():
    paths = [["animal", "cat"], ["animal", "dog"], ["plant"]]
    tasks = [task(1, *(annotation(who, result("taxonomy", {"taxonomy": [path]})) for who, path in enumerate(paths)))]
    space = cs.tables.read_label_studio(tasks).space
    others = space.as_batch(["animal / dog", "animal", "plant"])
    assert space.distance(space.as_batch(["animal / cat"] * 3), others).tolist() == [2.0, 1.0, 3.0]


def test_annotation_without_a_region_says_that_there_is_none():
    span = result("labels", {"start": 0, "end": 2, "labels": ["X"]})
    tasks = [task(1, annotation(1, span), annotation(2)), task(2, annotation(1), annotation(2, span))]
    votes = cs.tables.read_label_studio(tasks).votes
    assert votes.observed.all()
    assert votes.labels.tolist() == [[[(0, 2, "X")], []], [[], [(0, 2, "X")]]]


def test_one_of_several_controls_is_chosen_by_name():
    both = annotation(1, result("choices", {"choices": ["a"]}, "mood"), result("rating", {"rating": 3}, "stars"))
    with refused(FileFormatError, "'mood' (choices)", "'stars' (rating)", "field='mood'"):
        cs.tables.read_label_studio([task(1, both)])
    assert cs.tables.read_label_studio([task(1, both)], field="stars").votes.labels.tolist() == [[3]]
    with refused(FileFormatError, "'star'", "'stars' (rating)"):
        cs.tables.read_label_studio([task(1, both)], field="star")


@pytest.mark.parametrize(
    ("tasks", "parts"),
    [
        ({"id": 1}, ["not a list of tasks", "JSON"]),
        ([], ["no tasks"]),
        ([{"id": 1, "mood": "good"}], ["task 0", "neither annotations nor predictions", "JSON-MIN"]),
        ([task(1), task(1)], ["task 1 twice"]),
        ([task(1)], ["contains no answers"]),
        ([task(1, choice(1, "a", ground_truth=True))], ["There are no votes", "ground truth"]),
        ([task(8, annotation(1, result("brushlabels", {})))], ["Task 8", "'brushlabels'", "choices, pairwise"]),
        ([task(8, annotation(1, result("choices", {"choice": ["a"]})))], ["Task 8", "'annotator 1'", "no 'choices'"]),
        ([task(8, annotation(1, *[result("rating", {"rating": 1})] * 2))], ["Task 8", "2 answers to 'control'"]),
        ([task(8, annotation(1, result("ranker", {"ranker": {"a": ["x"], "b": ["y"]}})))], ["Task 8", "buckets"]),
    ],
    ids=["object", "empty", "json-min", "twice", "blank", "gold", "brush", "value", "regions", "buckets"],
)
def test_what_is_no_export_is_refused(tasks, parts):
    with refused(FileFormatError, *parts):
        cs.tables.read_label_studio(tasks)


def test_file_that_is_missing_or_no_json_is_refused(tmp_path):
    path = tmp_path / "export.json"
    with refused(FileFormatError, "There is no file", "export.json"):
        cs.tables.read_label_studio(path)
    path.write_text('[{"id": 1, "annotations": [')
    with refused(FileFormatError, "not JSON, or cut short"):
        cs.tables.read_label_studio(path)


@quietly
def test_turned_boxes_keep_their_form_and_go_out_as_they_came_in(tmp_path):
    turned = {**BOX, "rotation": 30}
    export = cs.tables.read_label_studio(project("rectanglelabels", turned, {**BOX, "x": 50}))
    assert export.space is None
    assert export.votes.labels[0, 0] == [(1.0, 2.0, 3.0, 4.0, 30.0, "dog")]
    space = cs.Metric(lambda left, right: abs(left[0][0] - right[0][0]))
    model = cs.LabelModel(space, method="majority").fit(export.votes)
    cs.tables.write_label_studio(tmp_path / "boxes.json", model, export.votes, export)
    value = json.loads((tmp_path / "boxes.json").read_text())[0]["predictions"][0]["result"][0]["value"]
    assert value == turned


@quietly
def test_predictions_without_an_export_need_the_names_of_the_control(tmp_path):
    votes = cs.Votes.from_matrix(np.array([[0, 0, 1], [-1, -1, -1], [1, 1, 1]] * 5))
    model = cs.LabelModel(cs.Classes(["ham", "spam"])).fit(votes)
    path = tmp_path / "out.json"
    with refused(FileFormatError, "like=", "field=", "to_name="):
        cs.tables.write_label_studio(path, model, votes)
    with refused(FileFormatError, "15 items", "1 tasks"):
        cs.tables.write_label_studio(path, model, votes, field="mood", to_name="text", data=[{}])
    cs.tables.write_label_studio(path, model, votes, field="mood", to_name="text")
    tasks = json.loads(path.read_text())
    assert tasks[1]["predictions"] == []
    assert cs.tables.read_label_studio([one for one in tasks if one["predictions"]]).votes.sources == ("consilience",)
    with refused(FileFormatError, "already exists", "force"):
        cs.tables.write_label_studio(path, model, votes, field="mood", to_name="text")
    cs.tables.write_label_studio(path, model, votes, field="mood", to_name="text", force=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.json"]


@quietly
def test_rankings_of_other_things_in_every_task_go_in_and_out_by_name(tmp_path):
    orders = [["z", "x", "y"], ["b", "a"]] * 6
    export = cs.tables.read_label_studio(
        [task(number, *(ranked(who, *order) for who in range(3))) for number, order in enumerate(orders)]
    )
    assert export.space == cs.Rankings(None)
    assert export.candidates[:2] == (("x", "y", "z"), ("a", "b"))
    assert [list(label) for label in export.votes.labels[:2, 0]] == [["z", "x", "y"], ["b", "a"]]
    model = cs.LabelModel(export.space, method="majority").fit(export.votes)
    cs.tables.write_label_studio(tmp_path / "some.json", model, export.votes[[4, 7]], export)
    written = json.loads((tmp_path / "some.json").read_text())
    assert [one["data"]["text"] for one in written] == ["text 4", "text 7"]
    assert [one["predictions"][0]["result"][0]["value"]["ranker"]["control"] for one in written] == orders[:2]
    other = cs.Votes.from_array(export.votes.labels, sources=export.votes.sources, items=range(100, 112))
    with refused(FileFormatError, "Item 100", "not a task of the export"):
        cs.tables.write_label_studio(tmp_path / "other.json", model, other, export)
    assert not (tmp_path / "other.json").exists()
