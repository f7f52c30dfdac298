"""Messy tables in: what is missing, numbers inside text, repeats, spellings, ids; and one receipt for every format."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.refusals import refused

import consilience as cs
from consilience.exceptions import FileFormatError, InvalidVotesError
from consilience.tables import guess_space, read_votes
from consilience.tables.files import read_table

MESSY = [
    {"answer_id": "a1", "question": "Why is the sky blue?", "strict": "7", "kind": "8/10", "odd": 6},
    {"answer_id": "a2", "question": "How do tides work?", "strict": "N/A", "kind": "Score: 9", "odd": 11},
    {"answer_id": "a3", "question": "What is rust?", "strict": "4", "kind": "I cannot rate this.", "odd": None},
    {"answer_id": "a4", "question": "Who was Ada?", "strict": "-", "kind": "3/10", "odd": 2},
    {"answer_id": "a1", "question": "Why is the sky blue?", "strict": "7", "kind": "8/10", "odd": 6},
]


def csv_of(path, rows):
    pd.DataFrame(rows).to_csv(path, index=False)


def excel_of(path, rows):
    pytest.importorskip("openpyxl")
    pd.DataFrame(rows).to_excel(path, index=False)


WRITERS = {
    "v.csv": csv_of,
    "v.tsv": lambda path, rows: pd.DataFrame(rows).to_csv(path, index=False, sep="\t"),
    "v.jsonl": lambda path, rows: path.write_text("".join(json.dumps(row) + "\n" for row in rows)),
    "v.json": lambda path, rows: path.write_text(json.dumps(rows)),
    "v.parquet": lambda path, rows: pd.DataFrame(rows).to_parquet(path),
    "v.xlsx": excel_of,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_votes_and_the_same_receipt(tmp_path, name):
    WRITERS[name](tmp_path / name, MESSY)
    votes = read_votes(tmp_path / name, cs.Scores(range=(1, 10)), drop=["question"])
    assert (votes.sources, votes.items.tolist()) == (("strict", "kind", "odd"), ["a1", "a2", "a3", "a4"])
    assert votes.observed.tolist() == [[1, 1, 1], [0, 1, 0], [1, 0, 0], [0, 1, 1]]
    assert votes.labels[votes.observed].tolist() == [7, 8, 6, 9, 4, 3, 2]
    receipt = votes.receipt
    assert (receipt.cells, receipt.used, receipt.empty, receipt.merged) == (12, 7, 1, 1)
    assert receipt.reasons == {"'N/A'": 1, "'-'": 1, "refused": 1, "outside 1-10": 1}
    assert str(receipt).startswith("Used 7 of 12 cells: 1 empty, 1 ")
    assert str(receipt).endswith("1 duplicate row merged; ids from column 'answer_id'.")
    assert receipt.faults.to_arrow().to_pylist()[0] == {
        "source": "kind",
        "reason": "refused",
        "cells": 1,
        "first_item": "a3",
        "example": "I cannot rate this.",
    }


def test_scale_is_the_one_that_cells_name_and_texts_that_were_voted_on_are_left_out(tmp_path):
    rows = [
        {**row, "answer_id": f"a{number}", "question": f"Question {number}?"} for number, row in enumerate(MESSY * 4)
    ]
    csv_of(tmp_path / "v.csv", rows)
    votes = read_votes(tmp_path / "v.csv")
    assert (votes.receipt.left_out, votes.receipt.reasons["outside 1-10"]) == (("question",), 4)
    assert cs.tables.guess_space(votes).space == cs.Scores(range=(1, 10))
    with refused(FileFormatError, "'strict' mixes numbers and text", "'N/A'"):
        read_votes(tmp_path / "v.csv", sources=["strict", "kind"], abstain="I cannot rate this.", strict=True)


def test_missing_words_are_labels_where_they_are_declared(tmp_path):
    (tmp_path / "v.csv").write_text("id,ann,bob\nx,yes,none\ny,none,no\nz,NULL,?\n")
    plain = read_votes(tmp_path / "v.csv")
    assert plain.receipt.reasons == {"'none'": 2, "'NULL'": 1, "'?'": 1}
    assert "'none' was read as missing" in str(plain.receipt)
    declared = read_votes(tmp_path / "v.csv", cs.Classes(["yes", "no", "none"]))
    assert declared.receipt.used == 4
    assert read_votes(tmp_path / "v.csv", strict=True).observed.all()


COMMA = "with a decimal comma; pass decimal='.'"
THOUSANDS = "with commas between thousands; pass decimal=','"


@pytest.mark.parametrize(
    ("cells", "numbers", "note"),
    [
        (
            "0,5;1,25 2;3,5 1.000,5;2",
            [[0.5, 1.25], [2.0, 3.5], [1000.5, 2.0]],
            COMMA,
        ),
        ("7,5/10;Score:8 9/10;6,25 1;N/A", [[7.5, 8.0], [9.0, 6.25], [1.0, None]], "'7,5/10' were read"),
        ("1,234;2,500 1,000;3,125", [[1234, 2500], [1000, 3125]], THOUSANDS),
        ("1,234;2.5 1,000.5;3", [[1234, 2.5], [1000.5, 3]], THOUSANDS),
        ("0,512;3,250 1;12,125", [[0.512, 3.25], [1, 12.125]], COMMA),
        ("0.5;1.25 3.5;1", [[0.5, 1.25], [3.5, 1]], ""),
    ],
)
def test_decimal_sign_is_the_one_that_makes_numbers_of_most_cells(tmp_path, cells, numbers, note):
    rows = "".join(
        f"{name};{row}\n" for name, row in zip("xyz", cells.replace("Score: ", "Score:").split(), strict=False)
    )
    (tmp_path / "v.csv").write_text(f"id;ann;bob\n{rows}")
    votes = read_votes(tmp_path / "v.csv")
    assert np.where(votes.observed, votes.labels, None).tolist() == numbers
    assert note in str(votes.receipt)
    assert ("decimal=" in str(votes.receipt)) == bool(note)
    if note:
        with refused(FileFormatError, "Pass decimal=',' or decimal='.'"):
            read_votes(tmp_path / "v.csv", strict=True)


def test_decimal_sign_that_is_named_is_not_guessed(tmp_path):
    (tmp_path / "v.csv").write_text("id;ann;bob\nx;1,234;1,5\ny;2;3,5\nz;3;4\n")
    votes = read_votes(tmp_path / "v.csv", cs.Scores(), decimal=",", strict=True)
    assert (votes.labels.tolist(), votes.receipt.notes) == ([[1.234, 1.5], [2.0, 3.5], [3.0, 4.0]], ())
    points = read_votes(tmp_path / "v.csv", cs.Scores(), decimal=".")
    assert points.receipt.reasons == {"not a number": 2}
    assert points.labels[points.observed].tolist() == [1234, 2, 3, 4]


@pytest.mark.parametrize(
    ("rows", "space", "abstains"),
    [
        (["-1,0,1", "0,-1,1"], None, True),
        (["-1,0,1", "2,-1,1", "N/A,0,1"], None, True),
        (["-1,0,1", "0,-1,1"], cs.Classes(2), True),
        (["-1,1,1", "1,-1,1"], cs.Classes(2), True),  # the label type knows class 0
        (["-1,0,1", "0,-1,1"], cs.Classes([-1, 0, 1]), False),
        (["-1,0,1", "0,-1,1"], cs.Scores(), False),
        (["-1,1,1", "1,-1,1"], None, False),  # two classes called -1 and 1
        (["-1,0,-2", "0,-1,1"], None, False),
        (["-1,0,3", "0,-1,1"], None, False),
        (["-1,0,0.5", "0,-1,1"], None, False),
    ],
)
def test_minus_one_beside_codes_of_classes_abstains_as_in_a_matrix_of_labeling_functions(
    tmp_path, rows, space, abstains
):
    lines = "".join(f"x{place},{cells}\n" for place, cells in enumerate(rows))
    (tmp_path / "v.csv").write_text(f"id,a,b,c\n{lines}")
    votes = read_votes(tmp_path / "v.csv", space)
    assert (votes.receipt.reasons.get("'-1'", 0) > 0) == abstains
    assert ("pass space=Classes([-1, 0, 1, ...])" in str(votes.receipt)) == abstains
    if abstains:
        size = 3 if "2" in rows[1] else 2
        assert guess_space(votes).space == cs.Classes(size)
        assert read_votes(tmp_path / "v.csv", strict=True, abstain="-1").receipt.notes == ()


def test_spellings_are_named_and_joined_on_request(tmp_path):
    (tmp_path / "v.csv").write_text("id,ann,bob\nx,Cat,cat\ny,cat , cat\nz,dog,dog\n")
    apart = read_votes(tmp_path / "v.csv")
    assert "'Cat'" in str(apart.receipt)
    assert "fold=True joins them" in str(apart.receipt)
    joined = read_votes(tmp_path / "v.csv", fold=True)
    assert set(joined.labels.ravel()) == {"cat", "dog"} or set(joined.labels.ravel()) == {"Cat", "dog"}
    declared = read_votes(tmp_path / "v.csv", cs.Classes(["CAT", "dog"]), fold=True)
    assert set(declared.labels.ravel()) == {"CAT", "dog"}


ROWS = "q1,ann,cat\nq1,ann,dog\nq1,ann,dog\nq1,bob,cat\n\nq2,bob,dog\nq2,bob,dog\n"
WIDE = "task,ann,bob\nq1,cat,cat\nq1,dog,\nq2,,dog\nq1,dog,\nq2,,dog\n"


@pytest.mark.parametrize("text", ["task,worker,answer\n" + ROWS, WIDE], ids=["long", "wide"])
def test_repeats_are_merged_chosen_or_refused_in_wide_and_long_tables_alike(tmp_path, text):
    path = tmp_path / "v.csv"
    path.write_text(text)
    chosen = {how: read_votes(path, repeats=how).labels[0, 0] for how in ("first", "last", "majority")}
    assert chosen == {"first": "cat", "last": "dog", "majority": "dog"}
    assert read_votes(path, repeats="majority").labels[1, 1] == "dog"
    lines = ("line 2", "line 3")
    with refused(InvalidVotesError, "'ann' votes twice on item 'q1'", *lines, "'majority'"):
        read_votes(path)
    runs = read_votes(path, repeats="separate")
    assert {"ann #1", "ann #2", "ann #3"} <= set(runs.sources)
    numbers = tmp_path / "n.csv"
    numbers.write_text(text.replace("cat", "1").replace("dog", "2"))
    assert read_votes(numbers, repeats="average").labels[0, 0] == pytest.approx(5 / 3)


def test_identical_rows_are_merged_unless_strict_and_lines_are_those_of_an_editor(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text('item,source,label\n\n"q\n1",ann,cat\n\n"q\n1",ann,cat\n')
    assert read_votes(path).receipt.merged == 1
    with refused(InvalidVotesError, "in line 3 and 'cat' in line 6"):
        read_votes(path, strict=True)
    path.write_text("item,ann\nx,1\ny,2\nx,3\n")
    with refused(InvalidVotesError, "'x' occurs twice, in line 2 and line 4"):
        read_votes(path, strict=True)
    (tmp_path / "v.jsonl").write_text('\n{"item": 1, "source": "a", "label": 1}\n{"item": null, "source": "a"}\n')
    with refused(InvalidVotesError, "Line 3 has no item"):
        read_votes(tmp_path / "v.jsonl")


@pytest.mark.parametrize(
    ("columns", "options", "ids"),
    [
        ("question,answer_id,ann,bob", {}, "answer_id"),
        ("question,answer_id,ann,bob", {"drop": ["answer_id"]}, "question"),
        ("question,ann,bob", {"drop": ["question"]}, None),
        ("query_id,worker_id,score,x", {}, "query_id"),
        ("item,other_id,ann,bob", {}, "item"),
        ("x,y,ann,bob", {"item": "y"}, "y"),
    ],
)
def test_column_of_ids_is_the_likeliest_and_is_named(tmp_path, columns, options, ids):
    width = columns.count(",")
    (tmp_path / "v.csv").write_text(
        columns + "\n" + "".join(f"q{row},w{row}{',1' * (width - 1)}\n" for row in range(3))
    )
    receipt = read_votes(tmp_path / "v.csv", **options).receipt
    assert receipt.ids == ids
    assert (f"ids from column {ids!r}" if ids else "rows are numbered") in str(receipt)


def test_first_column_of_names_beside_orders_is_that_of_the_ids(tmp_path):
    (tmp_path / "v.csv").write_text("q,ann,bob\nq1,a > b,b > a\nq2,c > d,d > c\n")
    votes = read_votes(tmp_path / "v.csv")
    assert (votes.sources, votes.items.tolist()) == (("ann", "bob"), ["q1", "q2"])


def test_labels_that_are_mostly_unknown_are_refused_as_the_wrong_label_type(tmp_path):
    (tmp_path / "v.csv").write_text("id,ann,bob\nx,cat,cat\ny,bird,dog\nz,cat,cat\n")
    assert read_votes(tmp_path / "v.csv", cs.Classes(["cat", "dog"])).receipt.reasons == {"not a label": 1}
    with refused(cs.exceptions.InvalidLabelError, "'cat'"):
        read_votes(tmp_path / "v.csv", cs.Classes(["bird", "dog"]))
    with refused(FileFormatError, "6 of 6 cells are not numbers", "'cat'"):
        read_votes(tmp_path / "v.csv", cs.Scores())


def test_mixed_columns_of_json_are_text_as_in_a_csv_file(tmp_path):
    (tmp_path / "v.json").write_text('[{"id": 1, "ann": 3, "bob": "x"}, {"id": 2, "ann": "4/5"}]')
    assert read_table(tmp_path / "v.json").to_pydict() == {"id": [1, 2], "ann": ["3", "4/5"], "bob": ["x", None]}


def test_repeated_votes_are_merged_after_their_cells_are_read(tmp_path):
    wide = "id,ann,bob\nx,8/10,N/A\nx,6/10,4\ny,2,3\ny,2,\nz,9/10,9\n"
    rows = [
        "x,ann,8/10",
        "x,ann,6/10",
        "x,bob,N/A",
        "x,bob,4",
        "y,ann,2",
        "y,ann,2",
        "y,bob,3",
        "z,ann,9/10",
        "z,bob,9",
    ]
    long = "\n".join(["item,source,label", *rows])
    for text in (wide, long):
        (tmp_path / "v.csv").write_text(text)
        for repeats, first in (("average", 7), ("first", 8), ("last", 6)):
            votes = read_votes(tmp_path / "v.csv", repeats=repeats)
            assert votes.labels.tolist() == [[first, 4], [2, 3], [9, 9]]
            assert (votes.receipt.used, votes.receipt.reasons) == (6, {"'N/A'": 1})
        apart = read_votes(tmp_path / "v.csv", repeats="separate")
        assert apart.sources[:2] == ("ann #1", "ann #2")
        assert (apart.receipt.used, apart.receipt.merged) == (8, 0)
        with refused(InvalidVotesError, "'ann' votes twice on item 'x': 8 in line 2 and 6 in line 3"):
            read_votes(tmp_path / "v.csv")
