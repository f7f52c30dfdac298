"""Votes from files and as tables, the label type they seem to hold, and labels into files."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.cli.running import run
from tests.refusals import refused

import consilience as cs
from consilience.exceptions import FileFormatError, InvalidLabelError, InvalidVotesError, UnsupportedError
from consilience.tables import guess_space, label_frame, label_table, read_votes, write_labels
from consilience.tables.files import read_table
from consilience.tables.notation import NOTATIONS, space_of_text

quietly = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_wide_table_has_a_source_per_column_and_ids_by_name(tmp_path):
    votes = read_votes(written(tmp_path, "v.csv", "id,ann,bob\nx1,cat,\nx2,dog,NA\n"), strict=True)
    assert (votes.sources, votes.items.tolist()) == (("ann", "bob"), ["x1", "x2"])
    assert (votes.observed.tolist(), votes.labels[1, 1]) == ([[True, False], [True, True]], "NA")


@pytest.mark.parametrize(
    "header",
    ["item,source,label", "task,worker,label", "id,annotator,answer", "item_id,judge,score", "task,model,rating"],
)
def test_long_table_is_known_by_the_names_other_tools_use(tmp_path, header):
    votes = read_votes(written(tmp_path, "v.csv", f"{header}\nx,ann,1\nx,bob,2\ny,bob,3\n"))
    assert (votes.sources, votes.labels[votes.observed].tolist()) == (("ann", "bob"), [1, 2, 3])


def test_columns_of_other_names_and_the_value_that_abstains_are_given(tmp_path):
    path = written(tmp_path, "v.csv", "a,b,c\nx,ann,1\ny,bob,2\n")
    assert read_votes(path, item="a", source="b", label="c").shape == (2, 2)
    assert read_votes(path, item="a", sources=["c"]).sources == ("c",)
    assert read_votes(path, item="a", drop=["b"]).sources == ("c",)
    votes = read_votes(written(tmp_path, "v.csv", "id,ann,bob\nx,1,-\ny,-,3\nz,2,2\n"), abstain="-")
    assert votes.labels.dtype.kind == "i"
    assert votes.observed.tolist() == [[True, False], [False, True], [True, True]]
    usual = written(tmp_path, "a.csv", "image,task,worker,answer,summary\np.png,t1,ann,cat,x\np.png,t2,ann,dog,y\n")
    assert read_votes(usual).items.tolist() == ["t1", "t2"]
    rarer = written(tmp_path, "b.csv", "document,worker,translation\nd1,ann,the cat\nd1,bob,a cat\n")
    assert read_votes(rarer).labels.tolist() == [["the cat", "a cat"]]


@pytest.mark.parametrize(
    ("text", "options", "error", "parts"),
    [
        ("item,worker,x\na,b,c\n", {"layout": "long"}, FileFormatError, ["no column for label", "'x'", "label="]),
        (
            "id,ann\nx,1.5\ny,2\nz,high\n",
            {"strict": True},
            FileFormatError,
            ["'ann' mixes", "'high'", "'z'", "abstain="],
        ),
        ("item,source,label\nx,ann,1\nx,ann,2\n", {}, InvalidVotesError, ["'ann' votes twice on item 'x'"]),
        ("item,source,label\n", {}, InvalidVotesError, ["no rows"]),
        (
            "id,ann,bob\nq1,tea > milk,milk>>tea\n",
            {"space": cs.Rankings(["milk", "tea"]), "strict": True},
            FileFormatError,
            ["'q1'", "'bob'", "has a gap"],
        ),
    ],
)
def test_tables_that_hold_no_votes_are_refused_with_the_cell(tmp_path, text, options, error, parts):
    path = written(tmp_path, "v.csv", text)
    with refused(error, *parts):
        read_votes(path, **options)


def table_of(cells):
    return cs.Votes.from_array(cells)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([["cat", "dog"], ["cat", None]], cs.Classes(["cat", "dog"])),
        ([[0, 1], [1, 1]], cs.Classes(2)),
        ([[True, False], [True, True]], cs.Classes([False, True])),
        ([[0.5, 1.25], [2.0, None]], cs.Scores()),
        ([[value, value + 7] for value in range(30)], cs.Scores()),
        ([["a>b", "b>a"], ["a>b", None]], cs.Rankings(["a", "b"])),
        ([["red; blue", "red"], ["blue", None]], cs.Tags(["blue", "red"])),
        (
            [["Paris, Texas", "Paris, France"], ["Rome, Italy", None]],
            cs.Classes(["Paris, France", "Paris, Texas", "Rome, Italy"]),
        ),
        ([[[0, 1, 2], [2, 1, 0]], [[1, 0, 2], None]], cs.Rankings(3)),
        ([[[0.1, 2.0], [0.2, 2.5]]], cs.Vectors(2)),
        ([[[0, 1, 1], [1, 1, 1]]], cs.Tags(3)),
        ([[[2, 0, 2], [2, 0, 1]], [[0, 1], [2, 0]]], cs.DependencyTrees()),
        (
            [[{"stars": 4.5, "topic": "art"}, {"topic": "food"}]],
            cs.Product(weights=None, stars=cs.Scores(), topic=cs.Classes(["art", "food"])),
        ),
        ([[[{"x1": 1, "y1": 2, "x2": 31, "y2": 42, "label": "car"}], []]], cs.Boxes(["car"])),
        ([[[{"bbox": [1, 2, 30, 40]}], []]], cs.Boxes()),
        ([[[{"start": 3, "end": 8, "label": "PER"}], []]], cs.Spans(["PER"])),
    ],
    ids=repr,
)
def test_label_type_is_guessed_where_it_is_clear(cells, expected):
    guess = guess_space(table_of(cells))
    assert repr(guess.space) == repr(expected)
    assert guess.reason


@pytest.mark.parametrize(
    ("cells", "parts"),
    [
        ([[1, 2], [3, 5]], ["1, 2, 3, 5", "space=Classes(...) or space=Scores()"]),
        ([[f"text {row} {source}" for source in range(3)] for row in range(10)], ["30 different texts", "Metric"]),
        ([[[1, 2, 3], [0, 5, 1]]], ["positions, tags or vectors", "space=Vectors(...)"]),
        ([["cat", [1, 2]]], ["mix", "list", "str"]),
        ([[None, None]], ["contains no votes"]),
        ([[1, "x", "y"], [2, "y", "y"]], ["int (1 by 'source_0')", "str ('x' by 'source_1')", "drop='NAME'"]),
        ([['[[1, 2, 31, 42, "car"]]', "[]"]], ["space=Boxes()"]),
    ],
)
def test_label_type_that_is_not_clear_is_asked_for(cells, parts):
    with refused(FileFormatError, *parts):
        guess_space(table_of(cells))


@quietly  # two sources that always agree
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
        assert len(cs.LabelModel(space, method="majority").fit(votes).predict(votes)) == 3


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("clases", ["'clases'", "Did you mean 'classes'"]),
        ("scores:five", ["'scores:five'", "scores:0..100"]),
        ("rankings", ["No vote orders two things", "'cat'", "a > b = c"]),
        ("spans:lenght=80", ["no setting 'lenght'. Use length=... or overlap=..."]),
    ],
)
def test_label_type_that_does_not_fit_is_refused_with_the_closest_one(text, parts):
    with refused(UnsupportedError, *parts):
        space_of_text(text, table_of([["cat", "dog"], ["cat", "cat"]]))


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


def test_labels_come_as_the_file_and_the_frame_that_are_asked_for(tmp_path, crowd):
    model, votes = crowd
    write_labels(tmp_path / "labels.jsonl", model, votes)
    expected = label_table(model, votes).to_pylist()
    written = read_table(tmp_path / "labels.jsonl").to_pylist()
    assert [row["label"] for row in written] == [row["label"] for row in expected]
    for name in ("confidence", "agreement"):
        assert [row[name] or 0.0 for row in written] == pytest.approx([row[name] or 0.0 for row in expected], rel=1e-5)
    write_labels(tmp_path / "labels.parquet", model, votes)
    assert read_table(tmp_path / "labels.parquet").to_pylist() == expected
    for like in (pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), pa.table({"a": [1]})):
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


@quietly
def test_rankings_of_names_are_written_as_they_are_read(tmp_path):
    rows = "id,ann,bob,cleo\nq1,tea > milk=juice,tea > milk>juice,milk>tea\nq2,,juice > tea,juice>tea\nq3,,,\n"
    path = written(tmp_path, "v.csv", rows)
    space = cs.Rankings(["milk", "juice", "tea"])
    votes = read_votes(path, space)
    model = cs.LabelModel(space, method="majority").fit(votes)
    assert model.predict(votes)[1] == ["juice", "tea"]
    write_labels(tmp_path / "labels.csv", model, votes)
    labels = read_table(tmp_path / "labels.csv")["label"].to_pylist()
    assert labels == ["tea > milk > juice", "juice > tea", None]


def test_guess_of_scores_holds_although_one_of_them_is_none():
    votes = table_of([[1.0, np.inf, 2.0], [3.0, 3.0, 4.0]])  # scores, but for one
    space = guess_space(votes).space
    assert isinstance(space, cs.Scores)
    with refused(InvalidLabelError, "Row 0", "'source_1'", "inf"):
        cs.LabelModel(space).fit(votes)


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
    mixed = [CLASSED[0], {**CLASSED[1], "boxes": "nothing"}, CLASSED[2]]
    path = written(tmp_path, "v.jsonl", "".join(json.dumps(row) + "\n" for row in mixed))
    assert read_votes(path, space).receipt.reasons == {"not a label": 1}
    with refused(InvalidLabelError, "source 'bob'", "nothing"):
        read_votes(path, space, strict=True)


@pytest.mark.parametrize(
    ("text", "space"),
    [
        ("boxes:car,bus,size=640x480", cs.Boxes(["car", "bus"], size=(640, 480))),
        ("boxes", cs.Boxes(["bus", "car"])),
        ("boxes:size=640x480", cs.Boxes(["bus", "car"], size=(640, 480))),
        ("spans:length=80,overlap=forbid", cs.Spans(["PER"], length=80, overlap="forbid")),
    ],
)
def test_settings_of_boxes_and_spans_stand_beside_their_classes(tmp_path, text, space):
    votes = read_votes(written(tmp_path, "v.jsonl", "".join(json.dumps(row) + "\n" for row in CLASSED)))
    if text.startswith("spans"):
        votes = cs.Votes.from_array([[[{"start": 0, "end": 4, "labels": ["PER"]}], []]])
    assert space_of_text(text, votes) == space


@quietly
def test_data_sets_of_hugging_face_go_in_and_out():
    datasets = pytest.importorskip("datasets.arrow_dataset")  # `datasets` alone may be the folder of that name here
    rows = datasets.Dataset.from_dict({"id": ["x", "y"] * 5, "ann": ["a", "b"] * 5, "bob": ["a", None] * 5})
    rows = rows.map(lambda row, at: {"id": f"{row['id']}{at}"}, with_indices=True)
    votes = read_votes(rows)
    assert votes.equals(cs.Votes.from_frame(rows, item="id"))
    assert votes.receipt.empty == 5
    labels = label_frame(cs.LabelModel(cs.Classes(["a", "b"]), method="majority").fit(votes), votes, rows)
    assert isinstance(labels, datasets.Dataset)
    assert labels["label"][:2] == ["a", "b"]
    with refused(InvalidVotesError, "'train'", "Choose one"):
        read_votes(pytest.importorskip("datasets.dataset_dict").DatasetDict({"train": rows}))


def test_a_first_column_of_different_texts_holds_the_ids_unless_all_columns_are_such():
    wide = {"night": ["a", "b", "c"], "watch": [23, 0, 23], "phone": [22, 0, 1]}
    assert read_votes(pa.table(wide)).items.tolist() == ["a", "b", "c"]
    texts = {"ann": ["one", "two", "six"], "bob": ["won", "too", "sex"], "cleo": ["on", "to", "si"]}
    assert read_votes(pa.table(texts)).sources == ("ann", "bob", "cleo")


def applied(space, *columns):
    functions = [cs.labeling.from_column(name) for name in "ab"[: len(columns)]]
    return cs.apply(functions, pd.DataFrame(dict(zip("ab", columns, strict=False))), space)


def test_names_stored_as_codes_come_out_as_names_and_never_as_codes():
    space = cs.Classes(["ham", "spam"])
    votes = applied(space, ["spam", None], ["ham", "ham"])
    assert votes.labels.dtype == np.int8
    assert votes.to_long(space)["label"].to_pylist() == ["spam", "ham", "ham"]
    assert cs.tables.wide_table(votes, space).to_pylist() == [
        {"item": 0, "a": "spam", "b": "ham"},
        {"item": 1, "a": None, "b": "ham"},
    ]
    for table in (votes.to_long, lambda: cs.tables.wide_table(votes)):
        with refused(InvalidVotesError, "stored as codes", "as space"):
            table()
    numbers = applied(cs.Classes(3), [2, 0], [1, 1])
    for given in (None, cs.Classes(3)):
        assert numbers.to_long(given)["label"].to_pylist() == [2, 1, 0, 1]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([[[0, 1], None]], [[0, 1], None]),
        ([[frozenset({"b", "a"}), frozenset()]], [["a", "b"], []]),
        ([[["a", "b"], ["b", "a"]]], [["a", "b"], ["b", "a"]]),
        ([[["a", "b"], [("a", "b"), "c"]]], ["a > b", "a = b > c"]),
        ([[{"stars": 4.5}, None]], [{"stars": 4.5}, None]),
    ],
    ids=["positions", "sets", "orders", "ties", "records"],
)
def test_labels_of_any_type_come_out_as_files_hold_them(cells, expected):
    votes = cs.Votes.from_array(cells, sources=["x", "y"])
    row = cs.tables.wide_table(votes).to_pylist()[0]
    assert [row["x"], row["y"]] == expected
    assert votes.to_long()["label"].to_pylist()[:2] == expected


def test_source_that_is_called_as_the_ids_is_refused():
    votes = cs.Votes.from_matrix([[1, 2]], sources=["item", "b"])
    with refused(InvalidVotesError, "'item'", "differently"):
        cs.tables.wide_table(votes)
    assert cs.tables.wide_table(votes, item="id").column_names == ["id", "item", "b"]


def test_conversion_says_what_it_cannot_do(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("id,a,b\nx,1,2\n")
    with refused(FileFormatError, "to='tall'", "'wide'"):
        cs.tables.convert_votes(path, tmp_path / "out.csv", to="tall")
    with refused(FileFormatError, "already exists"):
        cs.tables.convert_votes(path, path, to="long")
    assert path.read_text() == "id,a,b\nx,1,2\n"


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("source", ["worker", "performer"])
def test_frames_of_crowd_kit_are_read_as_they_are(make, source):
    frame = make({"task": ["t1", "t1", "t2"], source: ["w1", "w2", "w2"], "label": ["cat", "dog", "cat"]})
    votes = cs.read_votes(frame)
    assert (votes.sources, votes.items.tolist()) == (("w1", "w2"), ["t1", "t2"])
    assert votes.labels[votes.observed].tolist() == ["cat", "dog", "cat"]
    wide = cs.read_votes(make({"id": ["x", "y"], "ann": [1, None], "bob": [0, 1]}))
    assert (wide.labels.dtype.kind, wide.observed.tolist()) == ("i", [[True, True], [False, True]])


@pytest.mark.parametrize(
    ("name", "reader"),
    [("parses.conllu", "read_conllu"), ("votes.soi", "Rankings.read_preflib")],
)
def test_files_that_are_no_tables_name_their_reader(tmp_path, name, reader):
    path = tmp_path / name
    path.write_text("anything")
    with refused(FileFormatError, name, reader):
        cs.read_votes(path)


def test_convert_cleans_and_merges_where_options_say_so_and_keeps_the_layout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("id,ann,bob\nx,Cat,cat\nx,dog,cat\ny,N/A,dog\n")
    assert run("convert", "v.csv", "same.csv").exit_code == 0
    assert (tmp_path / "same.csv").read_text() == (tmp_path / "v.csv").read_text()
    ran = run("convert", "v.csv", "clean.csv", "--repeats", "first", "--fold")
    assert "Used 3 of 4 cells: 1 'N/A'; 1 duplicate row merged" in ran.stderr
    assert (tmp_path / "clean.csv").read_text() == "item,ann,bob\nx,cat,cat\ny,,dog\n"
    (tmp_path / "mixed.csv").write_text("id,ann,bob\nx,7,8/10\ny,3,N/A\n")
    assert run("convert", "mixed.csv", "long.csv", "--to", "long", "--strict").exit_code == 0
    assert (tmp_path / "long.csv").read_text() == "item,source,label\nx,ann,7\nx,bob,8/10\ny,ann,3\ny,bob,N/A\n"
