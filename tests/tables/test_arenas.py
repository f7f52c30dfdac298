"""Comparisons as arenas publish them: without a judge, with one column per winner, with thousands of judges."""

import numpy as np
import pytest
from tests.refusals import refused

import consilience as cs
from consilience.exceptions import FileFormatError
from consilience.tables import read_judges, read_preferences, read_votes

SHOWN = [("x", "y", "model_a"), ("y", "z", "model_b"), ("x", "z", "tie"), ("z", "x", "tie (bothbad)")]


def battles(**more):
    columns = dict(zip(("model_a", "model_b", "winner"), map(list, zip(*SHOWN, strict=True)), strict=True))
    return {"question_id": list(range(len(SHOWN))), **columns, **more}


def test_table_without_judges_is_one_judge_and_winners_may_be_marked_in_columns(tmp_path):
    votes = read_preferences(battles())
    assert votes.sources == ("judge",)
    assert repr(votes.labels[0, 0]) == "x > y, y < z, x = z, z = x"
    assert "No column names a judge" in str(votes.receipt)
    marks = {"winner_model_a": [1, 0, 0, 0], "winner_model_b": [0, 1, 0, 0], "winner_tie": [0, 0, 1, 1]}
    table = {name: column for name, column in battles(**marks).items() if name != "winner"}
    lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    (tmp_path / "v.csv").write_text("\n".join(lines))
    assert read_votes(tmp_path / "v.csv", cs.Preferences()).labels[0, 0] == votes.labels[0, 0]


def test_ties_and_both_bad_are_told_apart():
    assert "1 comparisons end with both bad, which counts as a tie, in addition to 1 ties" in str(
        read_preferences(battles()).receipt
    )
    table = read_judges(battles(judge=["ann", "bob", "ann", "bob"]))
    assert table.space == cs.Classes(["first", "second", "tie", "both bad"])


def test_judges_of_a_few_comparisons_are_pooled_where_judges_are_many():
    rng = np.random.default_rng(0)
    judges = [f"user {number}" for number in range(150)] + ["expert"] * 20
    pairs = [rng.permutation(["x", "y", "z"])[:2].tolist() for _ in judges]
    table = {"judge": judges, "model_a": [one for one, _ in pairs], "model_b": [two for _, two in pairs]}
    table["winner"] = [min(pair) for pair in pairs]
    votes = read_preferences(table)
    assert votes.sources == ("other judges", "expert")
    assert [len(vote) for vote in votes.labels[0]] == [150, 20]
    assert "150 judges with fewer than 5 comparisons are pooled" in str(votes.receipt)
    few = {name: column[100:] for name, column in table.items()}
    assert read_preferences(few).n_sources == pytest.approx(51)


def test_lines_of_a_file_are_named_as_an_editor_counts_them(tmp_path):
    (tmp_path / "v.csv").write_text("judge,model_a,model_b,winner\n\nann,x,y,x\nann,x,y,z\nann,z,x,z\n")
    with refused(FileFormatError, "Line 4, judge 'ann'", "the winner 'z' is neither"):
        read_preferences(tmp_path / "v.csv")
    (tmp_path / "s.csv").write_text("prompt,judge,score\np,ann,3\n,ann,4\n")
    with refused(FileFormatError, "Line 3 has no item"):
        read_judges(tmp_path / "s.csv")
