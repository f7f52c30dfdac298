"""Inputs that once broke the package: each is read right, or refused with an error that names what is wrong."""

import gzip
import json
import multiprocessing
import os
import sys
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.running import run
from tests.refusals import refused

import consilience as cs
from consilience.arrays import as_object_array
from consilience.exceptions import (
    DistanceError,
    FileFormatError,
    InvalidLabelError,
    InvalidVotesError,
    UnsupportedError,
)
from consilience.partitions import InMemoryPartitions, ParquetPartitions, apply_to, predict_to
from fuzzing import targets

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
DEEP = "[" * 3000 + "]" * 3000


def written(path, content: str):
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    return path


@pytest.mark.parametrize("space", ["ordinal:-2..9", "classes"])
def test_labels_that_look_like_abstentions_reach_the_file(space, tmp_path):
    votes = written(tmp_path / "v.csv", "item,a,b,c\nx,-1,-1,-2\ny,-2,-2,-2\nz,,,\n")
    assert run("label", votes, "-o", tmp_path / "out.csv", "--space", space, "-q").exit_code in (0, 1)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines[1:]] == ["-1", "-2", ""]


@pytest.mark.parametrize("size", [1e100, 1e300])
def test_numbers_whose_powers_overflow_are_refused_and_name_their_place(size):
    votes = np.random.default_rng(0).normal(size=(9, 3))
    votes[4, 1] = size
    with refused(InvalidLabelError, "Row 4, source 'source_1'", "beyond", "divide all votes"):
        cs.LabelModel(cs.Scores()).fit(votes)
    vectors = np.stack([votes, votes], axis=2)
    with refused(InvalidLabelError, "Row 4, source 'source_1'", "beyond"):
        cs.LabelModel(cs.Vectors(2)).fit(vectors)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-100, 1e60])
def test_one_source_on_a_scale_of_its_own_makes_no_number_infinite(size):
    votes = np.random.default_rng(0).normal(size=(30, 4))
    votes[:, 2] *= size
    model = cs.LabelModel(cs.Scores()).fit(votes)
    for numbers in (model.predict(votes), model.confidence(votes), model.weight_, model.expected_cost_):
        assert np.isfinite(numbers).all()


def test_counts_and_scores_beyond_any_number_are_refused(tmp_path):
    with refused(InvalidLabelError, "Line 1", "20 digits"):
        cs.Rankings.read_preflib("99999999999999999999: 1,2\n")
    with refused(InvalidLabelError, "Line 1", "5000 digits"):
        cs.Rankings.read_preflib(f"{'9' * 5000}: 1,2\n")
    with refused(InvalidLabelError, "items"):
        cs.Rankings.read_preflib("1: 1,900000000\n")
    replies = [{"item": item, "judge": "m", "score": reply} for item, reply in enumerate(("7", "8", "9" * 400))]
    path = written(tmp_path / "j.jsonl", "\n".join(map(json.dumps, replies)))
    read = cs.tables.read_judges(path)
    assert (read.faults.columns["reason"], read.votes.observed.sum()) == (["no clear number"], 2)


def test_tables_of_trees_and_sequences_of_different_lengths_are_written():
    trees = np.empty((8, 3), dtype=object)
    for row in range(8):
        for source in range(3):
            trees[row, source] = [2, 0] if row % 2 else [2, 0, 2]
    table = cs.tables.label_table(cs.LabelModel(cs.DependencyTrees()).fit(trees), trees)
    assert table.column("label").to_pylist()[:2] == [[2, 0, 2], [2, 0]]
    assert table.column("agreement").to_pylist() == [1.0] * 8


def test_far_points_of_hyperbolic_space_are_refused_in_both_models():
    space, ball = cs.Hyperbolic(2), cs.Hyperbolic(2, coordinates="ball")
    near, far = (np.array([[np.cosh(r), np.sinh(r), 0.0]]) for r in (29.0, 31.0))
    assert space.contains(near[0])
    with refused(InvalidLabelError, "more than 30 curvature radii"):
        space.as_batch(far)
    with refused(InvalidLabelError, "more than 30 curvature radii"):
        ball.as_batch(np.array([[1.0 - 1e-14, 0.0]]))


def test_array_that_is_no_node_is_refused_with_its_own_row():
    space = cs.FiniteMetric(np.array([[0.0, 1.0], [1.0, 0.0]]), names=[(0, 1), (1, 0)])
    votes = np.array([[[0, 1], [0, 1]], [[1, 0], [0, 1]], [[0, 1], [3, 3]]])
    with refused(InvalidLabelError, "Row 2, source 'source_1'", "(3, 3)"):
        cs.LabelModel(space).fit(votes)


@pytest.mark.parametrize("method", ["auto", "em"])
def test_item_on_which_nobody_votes_leaves_the_weights_of_rankings_numbers(method):
    model = cs.LabelModel(cs.Rankings(3), method=method).fit(np.empty((1, 3), dtype=object))
    assert np.isfinite(model.weight_).all()
    assert model.confidence(np.empty((1, 3), dtype=object)).tolist() == [0.0]


def test_many_equal_sources_are_sure_of_a_sequence():
    tags = ["O", "B-X", "I-X"]
    cells = as_object_array([tags] * 600).reshape(3, 200)
    votes = cs.Votes.from_array(cells, sources=[f"s{source}" for source in range(200)])
    model = cs.LabelModel(cs.Sequences(tags, chain=True)).fit(votes)
    assert model.confidence(votes) == pytest.approx([1.0] * 3)


def test_words_for_nothing_are_no_votes_unless_they_are_labels_of_the_type(tmp_path):
    votes = written(tmp_path / "v.csv", "item,a,b,c\nx,nan,nan,nan\ny,cat,dog,cat\n")
    for space, label in ((["--space", "classes"], ""), (["--space", "classes:cat,dog,nan"], "nan")):
        assert run("label", votes, "-o", tmp_path / "out.csv", "--force", *space).exit_code in (0, 1)
        assert (tmp_path / "out.csv").read_text().splitlines()[1].split(",")[1] == label


def test_record_without_any_value_is_no_vote():
    votes = as_object_array([{"stars": None}, {"stars": None}, {"stars": 4.0}, {"stars": None}]).reshape(2, 2)
    rows = cs.tables.label_table(cs.LabelModel(cs.Product(stars=cs.Scores())).fit(votes), votes).to_pylist()
    assert [row["n_votes"] for row in rows] == [0, 1]
    assert rows[0]["label"] is None
    assert rows[1]["label"]["stars"] is not None


@pytest.mark.parametrize("command", ["label", "compare"])
def test_number_beyond_any_score_in_the_known_labels_is_refused_by_every_command(command, tmp_path):
    votes = written(tmp_path / "v.csv", "item,a,b,c,gold\n1,4,2.5,3,2\n2,1,1.5,1,1\n3,2,2,2,1e300\n")
    page = ["-o", tmp_path / "o.csv", "--report", tmp_path / "o.html"] if command == "label" else []
    ran = run(command, votes, "--gold", "gold", *page)
    assert ran.exit_code == 2
    assert "item 3: label 1e+300 is beyond 1e+61" in ran.stderr


@pytest.mark.parametrize(("space", "known"), [(cs.Hyperbolic(2), [1.0, 0.0, 0.0]), (cs.SPD(2), np.eye(2))])
def test_known_labels_of_items_that_nobody_votes_on_are_taken(space, known):
    votes = np.empty((4, 3), dtype=object)
    assert cs.LabelModel(space).fit(votes, [known] * 4).confidence(votes).tolist() == [0.0] * 4


@pytest.mark.parametrize("space", [cs.Boxes(["car", "dog"]), cs.Spans(["P", "Q"])], ids=["boxes", "spans"])
def test_items_on_which_everybody_marks_nothing_are_labelled_and_explained(space):
    votes = as_object_array([[] for _ in range(18)]).reshape(6, 3)
    model = cs.LabelModel(space).fit(votes)
    assert model.predict(votes).tolist() == [[]] * 6
    assert str(model.explain(votes, 0)).startswith("item 0: []")


def test_known_labels_may_come_first_and_then_no_more():
    votes = np.random.default_rng(0).integers(2, size=(30, 4))
    model = cs.LabelModel(cs.Classes(2)).partial_fit(votes, gold=votes[:, 0].tolist()).partial_fit(votes)
    assert model.weight_.argmax() == 0


def test_distances_asked_for_grow_with_the_votes_and_not_with_their_pairs():
    asked = []

    def gap(left, right):
        asked.append(1)
        return float(abs(len(left) - len(right)))

    def calls(items: int) -> int:
        rng, start = np.random.default_rng(0), len(asked)
        votes = as_object_array(["x" * int(size) for size in rng.integers(500, 1000, size=3 * items)]).reshape(items, 3)
        cs.LabelModel(cs.Metric(gap)).fit(votes)
        return len(asked) - start

    calls(1000)
    assert calls(2000) < 3 * calls(1000)  # four times as many would be all pairs


def test_forty_rankings_of_three_items_are_weighed():
    rng = np.random.default_rng(0)
    orders = as_object_array([rng.permutation(6) for _ in range(120)]).reshape(3, 40)
    votes = cs.Votes.from_array(orders, sources=[f"s{source}" for source in range(40)])
    assert np.isfinite(cs.LabelModel(cs.Rankings(6)).fit(votes).weight_).all()


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("deep.jsonl", f'{{"item": 1, "a": {DEEP}}}', ["line 1", "nested too deep"]),
        ("deep.csv", f"item,a,b\n1,{DEEP},2\n", ["Pass space=Classes"]),
        ("long.jsonl", '{"item": 1, "a": %s}' % ("9" * 5000), ["line 1", "digits"]),
        ("sign.csv", "\x1e", ["no columns"]),
        ("empty.jsonl", "\n{}\n", ["no columns"]),
    ],
)
def test_odd_text_is_refused(name, content, parts, tmp_path):
    with refused(FileFormatError, *parts):
        cs.tables.guess_space(cs.read_votes(written(tmp_path / name, content)))


def test_numbers_beyond_64_bits_and_half_characters_are_read_as_text(tmp_path):
    large = written(tmp_path / "v.jsonl", '{"item": %s, "a": "x"}\n{"item": 2, "a": "y"}\n' % ("9" * 30))
    assert cs.read_votes(large).items.tolist() == ["9" * 30, "2"]
    half = written(tmp_path / "h.jsonl", '{"item": 1, "\\ud800": "cut off \\ud83d", "b": "\\ud83d\\ude00"}\n')
    votes = cs.read_votes(half)
    assert (votes.sources, votes.labels.tolist()) == (("\ufffd", "b"), [["cut off \ufffd", "\U0001f600"]])


def test_unexpected_values_in_coco_and_label_studio_are_refused():
    good = {"images": [{"id": 1}], "annotations": [{"image_id": 1, "bbox": [1, 2, 3, 4]}], "categories": []}
    for key, value in (("annotations", 35), ("annotations", [3]), ("images", [{"id": []}]), ("categories", 1)):
        with refused(FileFormatError, "'a'", key):
            cs.tables.read_coco({"a": {**good, key: value}})
    for change in ({"image_id": []}, {"bbox": [10**400] * 4}, {"bbox": {}}):
        with refused(FileFormatError, "'a'"):
            cs.tables.read_coco({"a": {**good, "annotations": [{**good["annotations"][0], **change}]}})
    with refused(FileFormatError, "sizes are numbers"):
        cs.tables.read_coco({"a": {**good, "images": [{"id": 1, "width": "x"}]}})
    for change in ({"annotations": {"a": 1}}, {"annotations": [{"result": 3}]}, {"predictions": ["x"]}, {"id": []}):
        with refused(FileFormatError, "ask" if "id" not in change else "id"):
            cs.tables.read_label_studio([{"id": 1, "annotations": [], **change}])


def test_judges_with_one_side_only_and_long_numbers_in_parses_are_refused(tmp_path):
    pairs = written(tmp_path / "p.jsonl", '{"item": 1, "judge": "m", "first": "x", "winner": "x"}\n')
    with refused(FileFormatError, "shown second", "second="):
        cs.tables.read_judges(pairs)
    line = "1\tGo\tgo\tVERB\tVB\t_\t%s\troot\t_\t_\n\n"
    with refused(InvalidVotesError, "line 1", "head"):
        cs.tables.read_conllu(written(tmp_path / "t.conllu", line % ("9" * 5000)))


def test_documents_that_nest_too_deep_are_refused_and_replies_are_faults(tmp_path):
    deep = written(tmp_path / "deep.json", f'{{"images": {DEEP}}}')
    for read in (lambda: cs.tables.read_coco({"a": deep}), lambda: cs.tables.read_label_studio(deep)):
        with refused(FileFormatError, "deep.json", "nested too deep"):
            read()
    replies = [{"item": item, "judge": "m", "reply": reply} for item, reply in enumerate((DEEP, "Score: 3"))]
    assert sum(cs.tables.read_judges(replies).faults.columns["cells"]) == 1


def test_tables_of_one_letter_without_rows_and_damaged_archives_are_refused(tmp_path):
    with refused(InvalidVotesError, "no rows"):
        cs.read_votes(written(tmp_path / "v.csv", "H"))
    with refused(FileFormatError, "no columns"):
        cs.tables.read_preferences(written(tmp_path / "e.jsonl", "\n"))
    packed = gzip.compress(b"item,a\n1,x\n" * 50)
    (tmp_path / "v.csv.gz").write_bytes(packed[:20] + b"\xff\xff\xff" + packed[23:])
    with refused(FileFormatError, "v.csv.gz", "cannot be unpacked"):
        cs.read_votes(tmp_path / "v.csv.gz")


def test_records_without_a_value_are_refused_also_in_pieces(tmp_path):
    empty = pa.array([{"stars": None}] * 3, pa.struct([("stars", pa.float64())]))
    pq.write_table(pa.table({"item": [1, 2, 3], "a": empty, "b": empty}), tmp_path / "v.parquet")
    ran = run("label", tmp_path / "v.parquet", "-o", tmp_path / "out", "--engine", "local")
    assert ran.exit_code == 2
    assert "Field 'stars' of the records: The table contains no votes" in ran.stderr


@pytest.mark.parametrize("role", ["item", "judge"])
@pytest.mark.parametrize("value", [{"a": 1}, [1]], ids=["object", "list"])
def test_replies_about_something_without_a_name_are_refused(role, value):
    rows = [{"item": "q", "judge": "m", "score": "3", role: value}] * 2
    with refused(FileFormatError, role, str(value), "not a name"):
        cs.tables.read_judges(rows)


def test_names_of_files_nobody_can_have_are_refused(tmp_path):
    model = cs.LabelModel(cs.Classes(2)).fit([[0, 1, 1]] * 5)
    for call in (
        lambda: cs.read_votes("x" * 1000 + ".csv"),
        lambda: cs.LabelModel.load("x" * 1000),
        lambda: model.save(tmp_path / ("x" * 300)),
        lambda: ParquetPartitions("x" * 1000 + ".parquet"),
    ):
        with pytest.raises((FileFormatError, cs.exceptions.ModelFormatError)):
            call()
    votes = written(tmp_path / "v.csv", "item,a\n1,x\n")
    ran = run("label", votes, "-o", tmp_path / "l.csv", "--report", tmp_path / "page.txt")
    assert ran.exit_code == 2
    assert ".html" in ran.stderr


def test_distances_beyond_any_number_and_weights_whose_sum_is_are_refused():
    with refused(DistanceError, "expected one number"):
        cs.LabelModel(cs.Metric(lambda left, right: 10**400 * (left != right))).fit([["a", "b", "a"]] * 5)
    with refused(InvalidVotesError, "add up to more"):
        cs.kemeny([[0, 1, 2], [1, 0, 2]], weights=[1e308, 1e308])
    assert cs.kemeny([[0, 1, 2], [1, 0, 2]], weights=[1e-320, 1e-320]).optimal.all()
    with refused(InvalidVotesError, "not an array of rankings"):
        cs.rankings.copeland(None)
    with refused(InvalidLabelError, "not a list of BIO tags"):
        cs.label_types.tags.bio.bio_to_spans(None)


@pytest.mark.parametrize("name", ["l.csv", "l.jsonl", "l.parquet"])
@pytest.mark.parametrize("space", ["classes", "texts"])
def test_cells_of_several_types_are_labelled_or_refused_with_a_next_step(space, name, tmp_path):
    cells = [[1], {}, {"a": None}, float("inf"), 1.5, "a"]
    lines = [{"item": row, "ann": one, "bob": "a", "cleo": one} for row, one in enumerate(cells)]
    votes = written(tmp_path / "v.jsonl", "\n".join(map(json.dumps, lines)))
    ran = run("label", votes, "-o", tmp_path / name, "--space", space)
    assert ran.exit_code in (0, 1, 2), ran.output
    assert "This is a bug" not in ran.output
    if ran.exit_code == 2:
        assert not (tmp_path / name).exists()
    else:
        assert len(cs.tables.files.read_table(tmp_path / name)) == len(cells)


def test_files_are_synced_by_a_handle_that_can_be_written_to(tmp_path, monkeypatch):
    """Windows refuses to sync what was opened for reading."""
    fcntl, modes = pytest.importorskip("fcntl"), []
    monkeypatch.setattr(os, "fsync", lambda file: modes.append(fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE))
    parts = votes_in_parquet(tmp_path / "v.parquet")
    predict_to(cs.LabelModel(cs.Classes(2)).fit(parts), parts, tmp_path / "labels")
    assert modes
    assert os.O_RDONLY not in modes


def test_nothing_is_forked_on_macos(monkeypatch):
    used = []

    def run_here(work, tasks, n_jobs, *, fork):
        used.append(fork)
        return map(work, tasks)

    monkeypatch.setattr("consilience.labeling.applying.run_in_processes", run_here)
    for platform in ("linux", "darwin"):
        monkeypatch.setattr(sys, "platform", platform)
        cs.apply(cs.labeling_function(name="f")(lambda row: row["size"]), {"size": [0, 1, 1]}, n_jobs=2)
    assert used == ["fork" in multiprocessing.get_all_start_methods(), False]


def test_classes_and_ids_of_several_types_are_written_as_text(tmp_path):
    votes = cs.Votes.from_matrix([["a", 1, 1], ["a", "a", 2.5]] * 4, items=[1, "x", 2, "y", 3, "z", 4, "w"])
    model = cs.LabelModel(cs.Classes(["a", 1, 2.5])).fit(votes)
    cs.write_labels(tmp_path / "l.parquet", model, votes)
    table = pq.read_table(tmp_path / "l.parquet")
    assert table.column("item").to_pylist() == ["1", "x", "2", "y", "3", "z", "4", "w"]
    assert set(table.column("label").to_pylist()) <= {"a", "1", "2.5"}


def test_folder_with_a_damaged_file_names_it(tmp_path):
    pq.write_table(pa.table({"item": [1], "a": ["x"]}), tmp_path / "1.parquet")
    whole = (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "2.parquet").write_bytes(whole[:20] + b"\xff" * 30 + whole[50:])
    with refused(FileFormatError, "2.parquet", "damaged"):
        cs.read_votes(tmp_path)
    with refused(FileFormatError, "damaged"):
        list(ParquetPartitions(tmp_path, cs.Classes(["x", "y"])).map(len))


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_arrow_and_parquet_with_changed_bytes_are_read_or_refused(suffix, tmp_path):
    """Each byte of the metadata in turn: lengths, offsets and types that are none."""
    (whole,) = (seed for seed in targets.TARGETS[suffix].seeds() if b"cat" in seed)
    end = int.from_bytes(whole[-10:-6] if suffix == "arrow" else whole[-8:-4], "little") + 10
    path = tmp_path / f"v.{suffix}"
    for place in range(len(whole) - end, len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with suppress(cs.exceptions.ConsilienceError):
            assert cs.read_votes(path).n_sources


def votes_in_parquet(path):
    rng = np.random.default_rng(0)
    pq.write_table(pa.table({name: rng.integers(2, size=40) for name in "abc"}), path, row_group_size=10)
    return ParquetPartitions(path, cs.Classes(2))


def test_labels_of_transformed_files_are_those_of_the_transformed_votes(tmp_path):
    def flipped(part):
        return type(part)(
            cs.Votes.from_array(1 - part.votes.labels, sources=part.votes.sources, items=part.votes.items)
        )

    parts = votes_in_parquet(tmp_path / "v.parquet")
    model = cs.LabelModel(cs.Classes(2)).fit(parts)
    predict_to(model, parts.transform(flipped), tmp_path / "labels")
    found = pq.read_table(tmp_path / "labels").column("label").to_pylist()
    assert found == model.predict(parts.transform(flipped)).tolist()
    assert found != model.predict(parts).tolist()
    with refused(FileFormatError, "votes differ"):
        predict_to(model, parts, tmp_path / "labels", resume=True)


def test_votes_of_changed_functions_are_not_continued(tmp_path):
    pq.write_table(pa.table({"text": ["win now", "hello", "free"]}), tmp_path / "d.parquet")
    first, second = (cs.labeling.keywords("text", words, "spam") for words in (["win"], ["win", "free"]))
    apply_to([first], tmp_path / "d.parquet", tmp_path / "votes")
    assert apply_to([first], tmp_path / "d.parquet", tmp_path / "votes", resume=True).n_resumed == 1
    with refused(FileFormatError, "functions differ"):
        apply_to([second], tmp_path / "d.parquet", tmp_path / "votes", resume=True)


def test_ties_are_refused_where_labels_are_no_rankings_also_in_files(tmp_path):
    votes = cs.Votes.from_array(np.random.default_rng(0).integers(2, size=(20, 3)))
    model = cs.LabelModel(cs.Classes(2)).fit(votes)
    with refused(UnsupportedError, "ties="):
        predict_to(model, InMemoryPartitions.of(votes), tmp_path / "labels", ties=0.6)
