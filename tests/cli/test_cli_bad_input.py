"""Bad input: exit code 2, one or two lines on stderr, no traceback, and the folder as it was."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.running import files_in, refused_by_program, run

import consilience
from consilience.label_model import LabelModel
from consilience.tables import files


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["label", "vote.csv", "-o", "out.csv"], ("no file 'vote.csv'", "mean 'votes.csv'?")),
        (["inspect", "none.csv"], ("none.",)),
        (["predict", "none.npz", "votes.csv", "-o", "out.csv"], ("none.",)),
        (["compare", "none.csv", "--gold", "gold.csv"], ("none.",)),
        (["explain", "none.npz", "votes.csv", "--item", "t1"], ("none.",)),
        (["report", "none.npz", "votes.csv", "-o", "page.html"], ("none.",)),
        (["convert", "none.csv", "out.csv"], ("none.",)),
        (["predict", "votes.csv", "votes.csv", "-o", "out.csv"], ("not a consilience model",)),
    ],
)
def test_file_that_is_missing_or_no_model_is_named(folder, arguments, words):
    refused_by_program(folder, *arguments, words=words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "out.xlsx"), ("'.xlsx'", ".csv")),
        (("-o", "votes.csv/out.csv"), ("is no folder",)),
        (("-o", "gold.csv"), ("is there already", "--force")),
        (("-o", "out.csv", "--save", "./out.csv"), ("Two results", "'out.csv'")),
    ],
)
def test_results_that_cannot_be_written_are_refused_before_any_work(folder, monkeypatch, options, words):
    monkeypatch.setattr(LabelModel, "fit", None)
    refused_by_program(folder, "label", "votes.csv", *options, words=words)


PETS = "item,ann,bob\nx,cat,dog\ny,cat,cat\n"
SCORES = "item,ann,bob\n" + "".join(f"i{number},{number}.5,{number}.5\n" for number in range(9))
STARS = "item,ann,bob\n" + "".join(f"i{number},{number % 5},{number % 4}\n" for number in range(20))
TEXTS = "item,text,ann,bob,cleo\n" + "".join(
    f"i{number},message number {number},{'cat' if number % 2 else 'dog'},cat,dog\n" for number in range(40)
)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (PETS, ("--delimiter", ";"), ("one column", "--delimiter ','")),
        (PETS, ("--delimiter", ";;"), ("';;' is not one sign",)),
        (PETS.replace("dog", "caf\u00e9").encode("latin-1"), (), ("line 2", "0xe9", "--encoding 'latin-1'")),
        (PETS, ("--encoding", "klingon"), ("'klingon' is unknown",)),
        (
            "item,source,label\nx,ann,cat\nx,bob,cat\nx,ann,dog\n",
            (),
            ("'ann' votes twice on item 'x'", "row 0", "row 2", '--repeats "separate"'),
        ),
        ("", (), ("empty",)),
        ("item,ann,bob\n", (), ("no rows",)),
        ("item,source,label\n", (), ("no rows",)),
        (SCORES + "z,1.5,high\n", (), ("'bob' mixes numbers and text", "'high'", "'z'", "--abstain 'high'")),
        (STARS, (), ("classes, or scores", "--space classes or --space scores")),
        (TEXTS, (), ("'text' does not look like votes", "--drop text")),
    ],
)
def test_votes_that_cannot_be_read_are_refused_with_the_option_that_helps(folder, text, options, words):
    (folder / "bad.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused_by_program(folder, "label", "bad.csv", "-o", "out.csv", *options, words=words)


def test_gold_file_with_some_other_items_is_used_and_said(folder):
    (folder / "other.csv").write_text("item,label\nx1,cat\nt2,dog\n")
    ran = run("label", "votes.csv", "-o", "out.csv", "--gold", "other.csv")
    assert ran.exit_code == 0
    assert "1 of 2 items of 'other.csv' are not among the votes: 'x1'" in ran.stderr
    assert "1 of them known" in ran.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "item,label\nx1,cat\nx2,dog\nx3,owl\nx4,cat\n",
            ("None of the 4 items", "200 items", "'x1', 'x2', 'x3', ...", "'t0', 't1', 't2'"),
        ),
        ("item,label\nt1,cat\nt1,dog\n", ("two labels of item 't1'", "'cat' and 'dog'")),
        ("item,label\nt1,\n", ("holds no label",)),
        ("item,label\nt1,cta\n", ("gold2.csv", "'t1'", "cta")),
        ("name,colour,size\nt1,cat,3\n", ("no column for the items", "'colour'")),
    ],
)
def test_bad_gold_file_is_refused(folder, text, words):
    (folder / "gold2.csv").write_text(text)
    refused_by_program(folder, "label", "votes.csv", "-o", "out.csv", "--gold", "gold2.csv", words=words)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no /proc, where nobody may write")
def test_folder_that_nobody_may_write_to_is_named(folder):
    refused_by_program(folder, "label", "votes.csv", "-o", "/proc/out.csv", words=("Cannot write", "/proc"))


def test_file_that_is_there_is_replaced_by_force(folder):
    (folder / "out.csv").write_text("old")
    assert run("label", "votes.csv", "-o", "out.csv", "--force").exit_code == 0
    assert (folder / "out.csv").read_text().startswith("item,label")


@pytest.mark.parametrize(
    ("holder", "function", "words"),
    [
        (files.os, "replace", ("Cannot write 'out.csv'", "No space left")),
        (LabelModel, "save", ("Cannot write 'm.npz'", "No space left", "Nothing was changed")),
    ],
    ids=["first file", "second file"],
)
def test_full_disk_leaves_the_folder_as_it_was(folder, monkeypatch, holder, function, words):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (folder / "out.csv").write_text("old")
    monkeypatch.setattr(holder, function, full)
    refused_by_program(folder, "label", "votes.csv", "-o", "out.csv", "--save", "m.npz", "--force", words=words)


PROGRAM = [sys.executable, "-m", "consilience"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(consilience.__file__).parents[1])}


def test_file_larger_than_allowed_leaves_nothing_half_written(folder):
    # A limit on the size of files is what a full disk looks like to a real process.
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    before = files_in(folder)
    command = [*PROGRAM, "convert", "votes.csv", "out.jsonl", "--to", "long"]
    done = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, preexec_fn=limit, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("Error: Cannot write 'out.jsonl': File too large")
    assert "Traceback" not in done.stderr
    assert files_in(folder) == before


def test_ctrl_c_in_the_middle_is_one_line_and_leaves_nothing(folder):
    rows = "".join(f"i{number},{'cat' if number % 3 else 'dog'},cat,dog,cat\n" for number in range(100_000))
    (folder / "large.csv").write_text("item,ann,bob,cleo,dan\n" + rows)
    before = files_in(folder)
    command = [*PROGRAM, "label", "large.csv", "-o", "out.csv"]
    process = subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("labels look like classes")  # the table is read; seconds of work follow
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert stdout == ""
    assert stderr.strip().splitlines()[-1] == "Interrupted. No file is half written."
    assert "Traceback" not in stderr
    assert files_in(folder) == before


def test_ctrl_c_while_writing_leaves_the_old_file(folder, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    (folder / "out.csv").write_text("old")
    before = files_in(folder)
    monkeypatch.setattr(LabelModel, "save", interrupted)
    ran = run("label", "votes.csv", "-o", "out.csv", "--save", "m.npz", "--force")
    assert ran.exit_code == 130
    assert "Interrupted" in ran.stderr
    assert files_in(folder) == before


def test_debug_shows_where_an_error_comes_from(folder):
    ran = run("label", "vote.csv", "-o", "out.csv", "--debug")
    assert ran.exit_code == 2
    assert "Traceback" in ran.stderr
    assert "Error: There is no file" in ran.stderr


def test_bug_is_called_one_without_a_traceback(folder, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(LabelModel, "fit", broken)
    refused_by_program(folder, "label", "votes.csv", "-o", "out.csv", words=("ZeroDivisionError", "bug", "--debug"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lable", "votes.csv"], ("no command 'lable'", "Did you mean 'label'?")),
        (["label", "votes.csv", "-o", "out.csv", "--metod", "em"], ("--metod", "--method")),
        (["label", "votes.csv", "-o", "out.csv", "--method", "triplet"], ("'triplet'", "Did you mean 'triplets'?")),
        (["label", "votes.csv", "-o", "out.csv", "--space", "clases"], ("'clases'", "Did you mean 'classes'?")),
        (["label", "votes.csv", "-o", "out.csv", "--item", "itm"], ("no column 'itm'", "Did you mean 'item'?")),
        (["label", "votes.csv", "-o", "out.csv", "--sources", "ann,bobb"], ("'bobb'", "Did you mean 'bob'?")),
        (["label", "votes.csv", "-o", "out.csv", "--drop", "evee"], ("'evee'", "Did you mean 'eve'?")),
        (["label", "long.csv", "-o", "out.csv", "--sources", "ann,bobb"], ("no source 'bobb'", "mean 'bob'?")),
        (["label", "long.csv", "-o", "out.csv", "--label", "answr"], ("no column 'answr'", "mean 'answer'?")),
        (["label", "votes.csv", "-o", "out.csv", "--depends", "ann,bobb"], ("--depends", "Did you mean 'bob'?")),
        (["label", "votes.csv", "-o", "out.csv", "--depends", "ann"], ("one source",)),
        (["label", "votes.csv"], ("Missing option '-o'",)),
        (
            ["label", "scores.csv", "-o", "out.csv", "--space", "scores", "--gold", "human_ratng"],
            ("neither a file nor a column", "'human_rating'"),
        ),
        (
            ["label", "scores.csv", "-o", "out.csv", "--space", "scores", "--drop", "human_rating", "--prior", "a=1"],
            ("Scores has no list of labels",),
        ),
        (["label", "votes.csv", "-o", "out.csv", "--ties", "0.6"], ("rankings", "Classes")),
        (["convert", "votes.csv", "out.csv", "--to", "widee"], ("'widee'", "wide")),
    ],
)
def test_typo_gets_a_hint(folder, arguments, words):
    refused_by_program(folder, *arguments, words=words)
