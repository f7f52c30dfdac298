"""Bad input: exit code 2, one or two lines on stderr, no traceback, and the folder as it was."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.cli.running import files_in, refused_by_program, run

import consilience
from consilience.label_model import LabelModel


def label(folder, text, *options, words, name="bad.csv"):
    """Refuse to label a file of this content."""
    path = folder / name
    path.write_bytes(text) if isinstance(text, bytes) else path.write_text(text)
    return refused_by_program(folder, "label", name, "-o", "out.csv", *options, words=words)


def test_missing_file_is_named_with_a_similar_one(folder):
    refused_by_program(folder, "label", "vote.csv", "-o", "out.csv", words=("no file 'vote.csv'", "mean 'votes.csv'?"))


@pytest.mark.parametrize("command", ["inspect", "predict", "compare", "explain", "report", "convert"])
def test_every_command_says_which_file_is_missing(folder, command):
    (folder / "model.npz").write_bytes(b"")
    arguments = {
        "inspect": ["none.csv"],
        "predict": ["none.npz", "votes.csv", "-o", "out.csv"],
        "compare": ["none.csv", "--gold", "gold.csv"],
        "explain": ["none.npz", "votes.csv", "--item", "t1"],
        "report": ["none.npz", "votes.csv", "-o", "page.html"],
        "convert": ["none.csv", "out.csv"],
    }[command]
    if command == "report":
        pytest.importorskip("consilience.report")
    refused_by_program(folder, command, *arguments, words=("none.",))


def test_file_that_is_no_model_is_refused(folder):
    refused_by_program(folder, "predict", "votes.csv", "votes.csv", "-o", "out.csv", words=("not a consilience model",))


def test_wrong_extension_of_votes_lists_the_known_ones(folder):
    label(folder, b"PK", words=("'.xlsx'", ".csv", ".parquet"), name="bad.xlsx")


def test_wrong_extension_of_labels_is_refused_before_any_work(folder, monkeypatch):
    monkeypatch.setattr(LabelModel, "fit", None)
    refused_by_program(folder, "label", "votes.csv", "-o", "out.xlsx", words=("'.xlsx'", ".csv"))


def test_truncated_parquet_is_refused(folder):
    pa.parquet.write_table(pa.table({"ann": ["cat"] * 50}), folder / "votes.parquet")
    content = (folder / "votes.parquet").read_bytes()
    label(folder, content[:-30], words=("cannot be read as Parquet", "cut short"), name="bad.parquet")


def test_ragged_row_is_named_by_its_line(folder):
    label(folder, "item,ann,bob\nx,cat,dog\ny,cat\n", words=("line 3", "2 cells where the first line has 3"))


def test_wrong_delimiter_is_refused_with_the_right_one(folder):
    text = "item,ann,bob\nx,cat,dog\ny,cat,cat\n"
    label(folder, text, "--delimiter", ";", words=("one column", "--delimiter ','"))
    label(folder, text, "--delimiter", ";;", words=("';;' is not one sign",))


def test_wrong_encoding_names_the_line_and_the_option(folder):
    words = ("line 2", "0xe9", "--encoding 'latin-1'")
    label(folder, "item,ann,bob\nx,caf\u00e9,bar\n".encode("latin-1"), words=words)
    label(folder, "item,ann\nx,y\n", "--encoding", "klingon", words=("'klingon' is unknown",))


def test_two_votes_of_one_source_on_one_item_are_named(folder):
    text = "item,source,label\nx,ann,cat\nx,bob,cat\nx,ann,dog\n"
    label(folder, text, words=("'ann' votes twice on item 'x'", "row 0", "row 2", '--repeats "separate"'))


@pytest.mark.parametrize("text", ["", "item,ann,bob\n", "item,source,label\n"])
def test_empty_table_is_refused(folder, text):
    label(folder, text, words=("empty" if not text else "no rows",))


def test_column_that_mixes_types_is_named_with_the_cell(folder):
    rows = "".join(f"i{number},{number}.5,{number}.5\n" for number in range(9))
    words = ("'bob' mixes numbers and text", "'high'", "'z'", "--abstain 'high'")
    label(folder, f"item,ann,bob\n{rows}z,1.5,high\n", words=words)


def test_json_lines_that_mix_types_name_both_rows(folder):
    label(folder, '{"ann": 1}\n{"ann": "cat"}\n', words=("'ann' mixes types", "row 1"), name="bad.jsonl")


def test_gold_file_with_other_items_gives_counts_and_ids(folder):
    (folder / "other.csv").write_text("item,label\nx1,cat\nx2,dog\nx3,owl\nx4,cat\n")
    words = ("None of the 4 items", "200 items", "'x1', 'x2', 'x3', ...", "'t0', 't1', 't2'")
    refused_by_program(folder, "label", "votes.csv", "-o", "out.csv", "--gold", "other.csv", words=words)


def test_gold_file_with_some_other_items_is_used_and_said(folder):
    (folder / "other.csv").write_text("item,label\nx1,cat\nt2,dog\n")
    ran = run("label", "votes.csv", "-o", "out.csv", "--gold", "other.csv")
    assert ran.exit_code == 0
    assert "1 of 2 items of 'other.csv' are not among the votes: 'x1'" in ran.stderr
    assert "1 of them known" in ran.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("item,label\nt1,cat\nt1,dog\n", ("two labels of item 't1'", "'cat' and 'dog'")),
        ("item,label\nt1,\n", ("holds no label",)),
        ("item,label\nt1,cta\n", ("gold2.csv", "'t1'", "cta")),
        ("name,colour,size\nt1,cat,3\n", ("no column for the items", "'colour'")),
    ],
)
def test_bad_gold_file_is_refused(folder, text, words):
    (folder / "gold2.csv").write_text(text)
    refused_by_program(folder, "label", "votes.csv", "-o", "out.csv", "--gold", "gold2.csv", words=words)


def test_gold_that_is_neither_file_nor_column_is_refused(folder):
    words = ("neither a file nor a column", "'human_rating'")
    arguments = ("label", "scores.csv", "-o", "out.csv", "--space", "scores", "--gold", "human_ratng")
    refused_by_program(folder, *arguments, words=words)


def test_folder_below_a_file_cannot_be_written_to(folder, monkeypatch):
    monkeypatch.setattr(LabelModel, "fit", None)  # it is seen before any work
    refused_by_program(folder, "label", "votes.csv", "-o", "votes.csv/out.csv", words=("is no folder",))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no /proc, where nobody may write")
def test_folder_that_nobody_may_write_to_is_named(folder):
    refused_by_program(folder, "label", "votes.csv", "-o", "/proc/out.csv", words=("Cannot write", "/proc"))


def test_file_that_is_there_is_kept_unless_forced(folder, monkeypatch):
    (folder / "out.csv").write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(LabelModel, "fit", None)
        refused_by_program(folder, "label", "votes.csv", "-o", "out.csv", words=("is there already", "--force"))
    assert run("label", "votes.csv", "-o", "out.csv", "--force").exit_code == 0
    assert (folder / "out.csv").read_text().startswith("item,label")


def test_two_results_for_one_file_are_refused(folder):
    words = ("Two results", "'out.csv'")
    refused_by_program(folder, "label", "votes.csv", "-o", "out.csv", "--save", "./out.csv", words=words)


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet", "out.arrow"])
def test_full_disk_leaves_the_folder_as_it_was(folder, monkeypatch, name):
    import consilience.tables.files as files

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (folder / name).write_text("old")
    monkeypatch.setattr(files.os, "replace", full)
    words = (f"Cannot write '{name}'", "No space left")
    refused_by_program(folder, "label", "votes.csv", "-o", name, "--save", "m.npz", "--force", words=words)


def test_full_disk_at_the_second_file_leaves_the_first_one_alone(folder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(LabelModel, "save", full)
    words = ("Cannot write 'm.npz'", "No space left", "Nothing was changed")
    refused_by_program(folder, "label", "votes.csv", "-o", "out.csv", "--save", "m.npz", words=words)


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
        (["label", "votes.csv", "-o", "out.csv", "--ties", "0.6"], ("rankings", "Classes")),
        (["convert", "votes.csv", "out.csv", "--to", "widee"], ("'widee'", "wide")),
    ],
)
def test_typo_gets_a_hint(folder, arguments, words):
    refused_by_program(folder, *arguments, words=words)


def test_item_that_is_misspelled_gets_a_hint(folder):
    assert run("label", "votes.csv", "-o", "out.csv", "--save", "m.npz").exit_code == 0
    refused_by_program(folder, "explain", "m.npz", "votes.csv", "--item", "t_7", words=("'t_7'", "Did you mean 't"))


def test_whole_numbers_are_not_guessed_to_be_classes_or_scores(folder):
    text = "item,ann,bob\n" + "".join(f"i{n},{n % 5},{n % 4}\n" for n in range(20))
    label(folder, text, words=("classes, or scores", "--space classes or --space scores"))


def test_column_of_texts_is_not_taken_for_a_source(folder):
    rows = "".join(f"i{n},message number {n},{'cat' if n % 2 else 'dog'},cat,dog\n" for n in range(40))
    label(folder, f"item,text,ann,bob,cleo\n{rows}", words=("'text' does not look like votes", "--drop text"))
