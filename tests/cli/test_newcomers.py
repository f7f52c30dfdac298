"""Five first jobs, each with one command, on the messy data that people have; the receipt says what became of it."""

import numpy as np
import pytest
from tests.cli.running import run

import newcomer_tables as newcomers

#: Options, the receipt, a finding, the first cells of the best source, how many rows are written, and their columns.
CASES = {
    "scores.csv": (
        (),
        "Used 1,440 of 1,500 cells: 20 empty, 10 'N/A', 10 'null', 10 outside 1-10, 10 refused; 10 duplicate rows "
        "merged; left out 'question', 'response' (not votes); ids from column 'answer_id'.",
        "Trust gpt-4o and claude-3.5 (error ",
        "source error bias slope reliability weight",
        300,
        "item,label,standard_error,low,high,confidence,n_votes,agreement",
    ),
    "functions.csv": (
        (),
        "Used 1,712 of 4,400 cells: 2,688 '-1'; ids from column 'id'. -1 was read as 'abstains'; pass --space "
        "classes:-1,0,1,... if it is a class.",
        "Trust lf_10, lf_9",
        "source votes coverage error_rate weight",
        400,
        "item,label,confidence,n_votes,agreement",
    ),
    "crowd.csv": (
        ("--fold",),
        "Used all 2,000 cells; 12 duplicate rows merged; ids from column 'task_id'. Joined spellings: 'mixed' and "
        "'Mixed'; 'positive' and 'Positive'; 'negative' and 'Negative'.",
        "Always voted for the same label: A001XZ, A002XZ, A003XZ, A004XZ, A000XZ.",
        "source votes coverage error_rate weight advice",
        500,
        "item,label,confidence,n_votes,agreement",
    ),
    "arena.jsonl": (
        (),
        "Used all 1,500 comparisons. 758 judges with fewer than 5 comparisons are pooled as 'other judges'. 58 "
        "comparisons end with both bad, which counts as a tie, in addition to 125 ties.",
        "gpt-4o leads.",
        "rank candidate score win rate comparisons",
        8,  # a leaderboard
        "item,rank,candidate,score,standard_error,score_low,score_high,rank_low,rank_high,baseline_rank,wins,comparisons",
    ),
    "searches.run": (
        (),
        "Used all 160 answers. In run files, what a list leaves out is ranked below its end; pass --unlisted 'unseen' "
        "if it was never seen.",
        "Trust colbert and splade (pairs wrong ",
        "source pairs_wrong weight",
        40,
        "item,label,confidence,n_votes,agreement",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_first_job_is_one_command_with_a_receipt_a_finding_and_a_table(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    newcomers.JOBS[name](tmp_path / name)
    options, receipt, finding, heading, labels, columns = CASES[name]
    ran = run("label", name, "-o", "labels.csv", *options)
    assert ran.exit_code == 0, ran.output
    assert receipt in ran.stderr.splitlines()
    assert finding in ran.stdout
    assert heading.split() in [line.split() for line in ran.stdout.splitlines()]
    written = (tmp_path / "labels.csv").read_text().splitlines()
    assert written[0].startswith(columns)
    assert len(written) == labels + 1


@pytest.mark.parametrize(
    ("cells", "space", "labels", "label"),
    [
        ("news;sport|sport|sport", "tags", "news,sport", '["sport"]'),
        ("['news', 'sport']|['sport']|['sport']", "tags", "news,sport", '["sport"]'),
        ("2|2|5", "ordinal", "2,3,4,5", "2"),
        ("2|2|5", "classes", "2,5", "2"),
    ],
)
def test_labels_that_are_not_listed_are_those_of_the_table(tmp_path, monkeypatch, cells, space, labels, label):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "votes.csv").write_text("id|a|b|c\n" + "".join(f"x{row}|{cells}\n" for row in range(5)))
    ran = run("label", "votes.csv", "-o", "labels.jsonl", "--space", space, "--method", "majority")
    assert ran.exit_code == 0, ran.output
    assert f'"label": {label}' in (tmp_path / "labels.jsonl").read_text()
    assert f"Label type of the votes: {space}:{labels}\n" in ran.stderr


def test_of_many_workers_the_best_and_the_worst_are_printed_and_all_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    newcomers.crowd(tmp_path / "crowd.csv")
    ran = run("label", "crowd.csv", "-o", "labels.csv", "--fold", "--sources-out", "workers.csv")
    assert "... 30 more sources; --sources-out FILE writes all of them." in ran.stdout.splitlines()
    assert sum("XZ" in line and "%" in line and ":" not in line for line in ran.stdout.splitlines()[1:]) == 30
    assert len((tmp_path / "workers.csv").read_text().splitlines()) == 61


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


def test_arena_is_inspected_and_explained_as_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    newcomers.arena(tmp_path / "arena.jsonl", comparisons=400, users=4)
    looked = run("inspect", "arena.jsonl").stdout
    assert looked.startswith("8 candidates, 400 comparisons, 4 judges\n")
    wins = looked[looked.index("how often the row beats the column") :].splitlines()
    assert wins[1].split()[:2] == ["candidate", "gpt-4o"]
    assert "agreement" not in looked
    assert run("label", "arena.jsonl", "-o", "board.csv", "--save", "model.npz", "--report", "page.html").exit_code == 0
    told = run("explain", "model.npz", "arena.jsonl", "--item", "all").stdout.splitlines()
    assert told[0].startswith("item all: gpt-4o > ")
    voices = [line for line in told if "weight" in line]
    assert len(voices) == 4
    assert all("comparisons, " in line and "contributes" not in line for line in voices)
    page = (tmp_path / "page.html").read_text()
    assert page.index("gpt-4o ") < page.index('id="leaderboard"') < page.index('id="sources"')
    assert 'id="contested"' not in page
    assert 'download="leaderboard.csv"' in page
    assert "<b>400</b> comparisons" in page


def test_harsh_and_lenient_judges_are_named_first_and_shown_with_mean_and_correlation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # 200 answers, offsets of three and minus two against a noise below one: named in all but one of 1,000 draws.
    rng = np.random.default_rng(6)
    quality = rng.normal(50, 15, 200)
    judges = {"fair": 0.0, "fine": 0.0, "kind": 30.0, "cold": -20.0}
    said = {name: quality + offset + rng.normal(0, 5, 200) for name, offset in judges.items()}
    rows = [",".join(f"{cells[row]:.1f}" for cells in said.values()) for row in range(200)]
    text = "\n".join(f"a{row},{cells}" for row, cells in enumerate(rows))
    (tmp_path / "scores.csv").write_text(f"id,{','.join(judges)}\n{text}\n")
    first = run("label", "scores.csv", "-o", "labels.csv").stdout.splitlines()[0]
    assert "kind is lenient by " in first
    assert "cold is harsh by " in first
    looked = run("inspect", "scores.csv").stdout
    assert looked.splitlines()[1].split()[-4:] == ["mean", "sd", "min", "max"]
    assert "correlation" in looked
