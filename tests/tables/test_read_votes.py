"""Votes from files, the label type they seem to hold, and labels into files."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.refusals import refused

import consilience as cs
from consilience.exceptions import FileFormatError, InvalidLabelError, InvalidVotesError, UnsupportedError
from consilience.tables import guess_space, label_frame, label_table, read_votes, write_labels
from consilience.tables.files import read_table
from consilience.tables.notation import NOTATIONS, space_of_text


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_wide_table_has_a_source_per_column_and_ids_by_name(tmp_path):
    votes = read_votes(written(tmp_path, "v.csv", "id,ann,bob\nx1,cat,\nx2,dog,NA\n"))
    assert votes.sources == ("ann", "bob")
    assert votes.items.tolist() == ["x1", "x2"]
    assert votes.observed.tolist() == [[True, False], [True, True]]
    assert votes.labels[1, 1] == "NA"


@pytest.mark.parametrize(
    "header",
    ["item,source,label", "task,worker,label", "id,annotator,answer", "item_id,judge,score", "task,model,rating"],
)
def test_long_table_is_known_by_the_names_other_tools_use(tmp_path, header):
    votes = read_votes(written(tmp_path, "v.csv", f"{header}\nx,ann,1\nx,bob,2\ny,bob,3\n"))
    assert votes.sources == ("ann", "bob")
    assert votes.labels[votes.observed].tolist() == [1, 2, 3]


def test_columns_of_other_names_are_given(tmp_path):
    path = written(tmp_path, "v.csv", "a,b,c\nx,ann,1\ny,bob,2\n")
    assert read_votes(path, item="a", source="b", label="c").shape == (2, 2)
    assert read_votes(path, item="a", sources=["c"]).sources == ("c",)
    assert read_votes(path, item="a", drop=["b"]).sources == ("c",)


def test_long_table_without_a_column_for_the_label_is_refused(tmp_path):
    path = written(tmp_path, "v.csv", "item,worker,colour\nx,ann,red\n")
    with refused(FileFormatError, "no column for label", "'colour'", "label="):
        read_votes(path, layout="long")


def test_value_that_means_abstains_is_named(tmp_path):
    path = written(tmp_path, "v.csv", "id,ann,bob\nx,1,-\ny,-,3\nz,2,2\n")
    votes = read_votes(path, abstain="-")
    assert votes.labels.dtype.kind == "i"
    assert votes.observed.tolist() == [[True, False], [False, True], [True, True]]


def test_numbers_with_a_word_among_them_are_refused_with_the_cell(tmp_path):
    path = written(tmp_path, "v.csv", "id,ann\nx,1.5\ny,2\nz,high\n")
    with refused(FileFormatError, "'ann' mixes numbers and text", "'high'", "'z'", "abstain="):
        read_votes(path)


def test_two_votes_of_one_source_on_one_item_are_refused(tmp_path):
    path = written(tmp_path, "v.csv", "item,source,label\nx,ann,1\nx,ann,2\n")
    with refused(InvalidVotesError, "'ann' votes twice on item 'x'"):
        read_votes(path)


def test_table_without_rows_is_refused(tmp_path):
    with refused(InvalidVotesError, "no rows"):
        read_votes(written(tmp_path, "v.csv", "item,source,label\n"))


def test_orders_are_read_as_the_space_has_them(tmp_path):
    path = written(tmp_path, "v.csv", "id,ann,bob\nq1,tea > milk=juice,milk>tea\nq2,,juice > tea\n")
    space = cs.Rankings(["milk", "juice", "tea"])
    votes = read_votes(path, space)
    with pytest.warns(cs.exceptions.ConsilienceWarning, match="too-few-sources"):
        model = cs.LabelModel(space, method="majority").fit(votes)
    assert model.predict(votes)[1] == ["juice", "tea"]


def test_order_with_a_gap_is_refused_with_item_and_source(tmp_path):
    path = written(tmp_path, "v.csv", "id,ann,bob\nq1,tea > milk,milk>>tea\n")
    with refused(FileFormatError, "'q1'", "'bob'", "has a gap"):
        read_votes(path, cs.Rankings(["milk", "tea"]))


def table_of(cells):
    return cs.Votes.from_array(cells)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([["cat", "dog"], ["cat", None]], cs.Classes),
        ([[0, 1], [1, 1]], cs.Classes),
        ([[True, False], [True, True]], cs.Classes),
        ([[0.5, 1.25], [2.0, None]], cs.Scores),
        ([[value, value + 7] for value in range(30)], cs.Scores),
        ([["a>b", "b>a"], ["a>b", None]], cs.Rankings),
        ([[[0, 1, 2], [2, 1, 0]], [[1, 0, 2], None]], cs.Rankings),
        ([[[0.1, 2.0], [0.2, 2.5]]], cs.Vectors),
        ([[[0, 1, 1], [1, 1, 1]]], cs.Tags),
        ([[[2, 0, 2], [2, 0, 1]], [[0, 1], [2, 0]]], cs.DependencyTrees),
        ([[{"stars": 4.5, "topic": "art"}, {"topic": "food"}]], cs.Product),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_label_type_is_guessed_where_it_is_clear(cells, expected):
    guess = guess_space(table_of(cells))
    assert isinstance(guess.space, expected)
    assert guess.reason


@pytest.mark.parametrize(
    ("cells", "parts"),
    [
        ([[1, 2], [3, 5]], ["1, 2, 3, 5", "'classes' or 'scores'"]),
        ([[f"text {row} {source}" for source in range(3)] for row in range(10)], ["30 different texts", "Metric"]),
        ([[[1, 2, 3], [0, 5, 1]]], ["positions, tags or a vector"]),
        ([["cat", [1, 2]]], ["mix", "list", "str"]),
        ([[None, None]], ["Nobody votes"]),
    ],
)
def test_label_type_that_is_not_clear_is_asked_for(cells, parts):
    with refused(FileFormatError, *parts):
        guess_space(table_of(cells))


@pytest.mark.parametrize("notation", NOTATIONS, ids=lambda notation: notation.name)
def test_cell_of_every_notation_is_a_label_of_its_space(tmp_path, notation):
    path = written(tmp_path, "v.jsonl", "")
    try:
        cell = json.loads(notation.cell)
    except ValueError:
        cell = notation.cell
    other = {"classes": "ham", "records": {"stars": 2.5, "topic": "food"}}.get(notation.name, cell)
    cells = [cell, cell, other]
    path.write_text("".join(json.dumps({"id": row, "ann": cells[row], "bob": cells[row]}) + "\n" for row in range(3)))
    raw = read_votes(path)
    for text in (notation.example, notation.name):
        if notation.name == "ordinal" and text == "ordinal":
            continue
        space = space_of_text(text, raw)
        votes = read_votes(path, space)
        model = cs.LabelModel(space, method="majority")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)  # two sources that always agree
            model.fit(votes)
        assert len(model.predict(votes)) == 3


def test_unknown_label_type_is_refused_with_the_closest_one():
    votes = table_of([["cat", "dog"]])
    with refused(UnsupportedError, "'clases'", "Did you mean 'classes'"):
        space_of_text("clases", votes)
    with refused(UnsupportedError, "'scores:five'", "scores:0..100"):
        space_of_text("scores:five", votes)


@pytest.fixture
def crowd():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=60)
    cells = np.where(rng.random((60, 4)) < 0.8, truth[:, None], rng.integers(3, size=(60, 4)))
    cells[rng.random((60, 4)) < 0.1] = -1
    cells[7] = -1
    votes = cs.Votes.from_matrix(cells, sources=list("abcd"), items=[f"x{row}" for row in range(60)])
    return cs.LabelModel(cs.Classes(3), random_state=0).fit(votes), votes


def test_labels_carry_id_confidence_votes_and_agreement(crowd):
    model, votes = crowd
    table = label_table(model, votes).to_pylist()
    assert list(table[0]) == ["item", "label", "confidence", "n_votes", "agreement"]
    labels = model.predict(votes)
    for row in (0, 5, 59):
        cast = votes.labels[row][votes.observed[row]]
        assert table[row]["item"] == f"x{row}"
        assert table[row]["label"] == labels[row]
        assert table[row]["n_votes"] == len(cast)
        assert table[row]["agreement"] == pytest.approx(np.mean(cast == labels[row]))
    assert table[7] == {"item": "x7", "label": None, "confidence": 0.0, "n_votes": 0, "agreement": None}


@pytest.mark.parametrize("name", ["labels.csv", "labels.jsonl", "labels.parquet", "labels.arrow"])
def test_labels_are_written_in_every_format(tmp_path, crowd, name):
    model, votes = crowd
    write_labels(tmp_path / name, model, votes)
    assert read_table(tmp_path / name).to_pylist() == label_table(model, votes).to_pylist()


@pytest.mark.parametrize("like", [pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), pa.table({"a": [1]})])
def test_labels_come_as_the_frame_that_is_asked_for(crowd, like):
    model, votes = crowd
    assert type(label_frame(model, votes, like)) is type(like)


def test_agreement_of_scores_falls_with_the_distance_to_the_label():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=200)
    scatter = np.where(np.arange(200) < 100, 0.01, 1.0)
    votes = truth[:, None] + rng.normal(size=(200, 4)) * scatter[:, None]
    model = cs.LabelModel(cs.Scores()).fit(votes)
    agreement = np.array(label_table(model, votes).column("agreement").to_pylist())
    assert agreement[:100].mean() > agreement[100:].mean() + 0.2
    assert agreement.min() >= 0.0
    assert agreement.max() <= 1.0


def test_rankings_of_names_are_written_as_they_are_read(tmp_path):
    path = written(
        tmp_path, "v.csv", "id,ann,bob,cleo\nq1,tea > milk,tea > milk,milk>tea\nq2,milk>tea,milk>tea,\nq3,,,\n"
    )
    space = cs.Rankings(["milk", "tea"])
    votes = read_votes(path, space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        model = cs.LabelModel(space, method="majority").fit(votes)
    write_labels(tmp_path / "labels.csv", model, votes)
    assert read_table(tmp_path / "labels.csv")["label"].to_pylist() == ["tea > milk", "milk > tea", None]


def test_votes_of_several_types_are_refused_with_who_cast_them():
    votes = cs.Votes.from_frame({"text_length": [1, 2], "ann": ["x", "y"], "bob": ["y", "y"]})
    with refused(FileFormatError, "int (1 by 'text_length')", "str ('x' by 'ann')", "Leave out a column"):
        cs.tables.guess_space(votes)


def test_infinite_numbers_are_taken_for_scores_and_refused_in_their_place():
    votes = cs.Votes.from_array([[1.0, np.inf, 2.0], [3.0, 3.0, 4.0]])
    space = cs.tables.guess_space(votes).space
    assert isinstance(space, cs.Scores)
    with refused(InvalidLabelError, "Row 0", "'source_1'", "inf"):
        cs.LabelModel(space).fit(votes)


def test_the_label_type_of_a_plain_table_is_guessed_like_that_of_votes():
    assert guess_space([["cat", "dog"], ["cat", None]]).space == cs.Classes(["cat", "dog"])


def test_words_are_no_rankings():
    votes = cs.Votes.from_matrix([["cat", "dog"], ["cat", "cat"]], abstain=None)
    with refused(UnsupportedError, "No vote orders two things", "'cat'", "a > b = c"):
        space_of_text("rankings", votes)


CLASSED = [
    {"image": "i1", "worker": "ann", "boxes": [[1, 2, 31, 42, "car"], [5, 5, 9, 9, "bus"]]},
    {"image": "i1", "worker": "bob", "boxes": [[1, 2, 30, 42, "car"]]},
    {"image": "i2", "worker": "ann", "boxes": []},
    {"image": "i2", "worker": "bob", "boxes": None},
]


def test_lists_that_mix_numbers_and_classes_are_read_from_json_lines_and_csv(tmp_path):
    lines = written(tmp_path, "v.jsonl", "".join(json.dumps(row) + "\n" for row in CLASSED))
    cells = ["" if row["boxes"] is None else json.dumps(row["boxes"]).replace('"', '""') for row in CLASSED]
    rows = [f'{row["image"]},{row["worker"]},"{cell}"\n' for row, cell in zip(CLASSED, cells, strict=True)]
    table = written(tmp_path, "v.csv", "image,worker,boxes\n" + "".join(rows))
    space = cs.Boxes(["bus", "car"])
    for path in (lines, table):
        votes = read_votes(path, space)
        assert votes.observed.tolist() == [[True, True], [True, False]]
        assert [len(label) for label in space.as_batch(votes.labels[votes.observed])] == [2, 1, 0]


def test_a_column_that_mixes_lists_and_words_is_still_refused(tmp_path):
    rows = [CLASSED[0], {**CLASSED[1], "boxes": "nothing"}]
    path = written(tmp_path, "v.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(cs.exceptions.FileFormatError, match=r'mixes types: "nothing" in row 1'):
        read_votes(path, cs.Boxes(["bus", "car"]))


def test_rarer_names_of_columns_count_only_where_no_usual_one_is_there(tmp_path):
    usual = written(tmp_path, "a.csv", "image,task,worker,answer,summary\np.png,t1,ann,cat,x\np.png,t2,ann,dog,y\n")
    assert read_votes(usual).items.tolist() == ["t1", "t2"]
    rarer = written(tmp_path, "b.csv", "document,worker,translation\nd1,ann,the cat\nd1,bob,a cat\n")
    assert read_votes(rarer).labels.tolist() == [["the cat", "a cat"]]


@pytest.mark.parametrize(
    ("text", "space"),
    [
        ("boxes:car,bus,size=640x480", cs.Boxes(["car", "bus"], size=(640, 480))),
        ("boxes", cs.Boxes(["bus", "car"])),
        ("boxes:size=640x480", cs.Boxes(["bus", "car"], size=(640, 480))),
    ],
)
def test_settings_of_boxes_stand_beside_their_classes(tmp_path, text, space):
    path = written(tmp_path, "v.jsonl", "".join(json.dumps(row) + "\n" for row in CLASSED))
    assert space_of_text(text, read_votes(path)) == space


def test_settings_of_spans_stand_beside_their_classes():
    votes = cs.Votes.from_array([[[{"start": 0, "end": 4, "labels": ["PER"]}], []]])
    assert space_of_text("spans:length=80,overlap=forbid", votes) == cs.Spans(["PER"], length=80, overlap="forbid")
    with pytest.raises(cs.exceptions.UnsupportedError, match=r"no setting 'lenght'. Use length=... or overlap=..."):
        space_of_text("spans:lenght=80", votes)


@pytest.mark.parametrize(
    ("element", "space"),
    [
        ({"x1": 1, "y1": 2, "x2": 31, "y2": 42, "label": "car"}, cs.Boxes(["car"])),
        ({"bbox": [1, 2, 30, 40]}, cs.Boxes()),
        ({"start": 3, "end": 8, "label": "PER"}, cs.Spans(["PER"])),
    ],
)
def test_lists_of_records_are_known_as_boxes_or_spans(element, space):
    assert guess_space(cs.Votes.from_array([[[element], []], [[element, element], None]])).space == space


def test_lists_as_text_are_no_classes():
    with pytest.raises(FileFormatError, match="Name the label type: 'boxes', 'spans'"):
        guess_space(cs.Votes.from_array([['[[1, 2, 31, 42, "car"]]', "[]"]]))


@pytest.mark.parametrize(
    "span", [(0, 9), [[0, 9], "PER"], {"start": 0, "end": 9}, {"start_offset": 0, "end_offset": 9}, {"span": [0, 9]}]
)
def test_a_span_beyond_its_text_is_named_however_it_is_written(span):
    votes = cs.Votes.from_array([[[], [span]]], sources=["ann", "bob"])
    cs.elements.check_spans(votes, ["nine char"])
    with pytest.raises(FileFormatError, match=r"Row 0, source 'bob': span \(0, 9\) ends beyond the text of 6"):
        cs.elements.check_spans(votes, ["a text"])


def test_what_is_no_span_is_named_when_texts_are_checked():
    votes = cs.Votes.from_array([[[{"from": 0, "to": 9}]]], sources=["ann"])
    with pytest.raises(FileFormatError, match=r"Row 0, source 'ann': .*is no span"):
        cs.elements.check_spans(votes, ["a text"])
