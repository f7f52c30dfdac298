"""Five first jobs, each with one command, on the messy data that people have; the receipt says what became of it."""

import pytest
from tests.cli.running import run

import newcomer_tables as newcomers

CASES = {
    "scores.csv": (
        (),
        "Used 1,440 of 1,500 cells: 20 empty, 10 'N/A', 10 'null', 10 outside 1-10, 10 refused; 10 duplicate rows "
        "merged; left out 'question', 'response' (not votes); ids from 'answer_id'.",
        300,
    ),
    "functions.csv": (("--abstain=-1",), "Used 1,712 of 4,400 cells: 2,688 '-1'; ids from 'id'.", 400),
    "crowd.csv": (
        ("--fold",),
        "Used all 2,000 cells; 12 duplicate rows merged; ids from 'task_id'. Joined spellings: 'mixed' and 'Mixed'; "
        "'positive' and 'Positive'; 'negative' and 'Negative'.",
        500,
    ),
    "arena.jsonl": (
        (),
        "Used all 1,500 comparisons. 758 judges with fewer than 5 comparisons are pooled as 'other judges'. 58 "
        "comparisons end with both bad, which counts as a tie, in addition to 125 ties.",
        8,  # a leaderboard
    ),
    "searches.run": ((), "Used all 160 answers.", 40),
}


@pytest.mark.parametrize("name", CASES)
def test_first_job_is_one_command_with_a_receipt(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    newcomers.JOBS[name](tmp_path / name)
    options, receipt, labels = CASES[name]
    ran = run("label", name, "-o", "labels.csv", *options)
    assert ran.exit_code == 0, ran.output
    assert receipt in ran.stderr.splitlines()
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == labels + 1


def test_refused_replies_are_shown_and_strict_refuses_the_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    newcomers.scores(tmp_path / "scores.csv")
    looked = run("inspect", "scores.csv")
    assert any(line.split()[:2] == ["gpt-4o", "refused"] for line in looked.stderr.splitlines())
    strict = run("label", "scores.csv", "-o", "labels.csv", "--strict", "--space", "scores:1..10")
    assert strict.exit_code == 2
    assert "'ans_005' occurs twice, in line 7 and line 302" in strict.stderr
    judged = run("label", "scores.csv", "-o", "labels.csv", "--from", "judges", "--space", "scores:1..10")
    assert judged.exit_code == 0
    assert "; 10 duplicate rows merged" in judged.stderr
    assert run("inspect", "scores.csv", "--drop", "question,answer_id").stderr.count("rows are numbered") == 1
