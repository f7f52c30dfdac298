"""Bad input: exit code 2, one or two lines on stderr, no traceback, and the folder as it was."""

import errno
import gzip
import os
import shlex
from pathlib import Path

import pytest
from tests.cli.running import files_in, refused_by_program, run

from consilience.cli.commands import in_options
from consilience.label_model import LabelModel
from consilience.tables import files

LONG = "item,source,label\n"
FILES = {
    "pets.csv": "item,ann,bob\nx,cat,dog\ny,cat,cat\n",
    "latin.csv": "item,ann,bob\nx,cat,caf\u00e9\ny,cat,cat\n".encode("latin-1"),
    "twice.csv": LONG + "x,ann,cat\nx,bob,cat\nx,ann,dog\n",
    "empty.csv": "",
    "heads.csv": "item,ann,bob\n",
    "long_heads.csv": LONG,
    "mixed.csv": "item,ann,bob\n" + "".join(f"i{n},{n}.5,{n}.5\n" for n in range(9)) + "z,1.5,high\n",
    "stars.csv": "item,ann,bob\n" + "".join(f"i{n},{n % 5},{n % 4}\n" for n in range(20)),
    "texts.csv": "item,text,ann,bob,cleo\n"
    + "".join(f"i{n},message number {n},{'cat' if n % 2 else 'dog'},cat,dog\n" for n in range(40)),
    "cut.csv.gz": gzip.compress(b"item,ann,bob\n" + b"x,cat,dog\n" * 400)[:40],
    "elsewhere.csv": "item,label\nx1,cat\nx2,dog\nx3,owl\nx4,cat\n",
    "two_labels.csv": "item,label\nt1,cat\nt1,dog\n",
    "no_label.csv": "item,label\nt1,\n",
    "odd_label.csv": "item,label\nt1,cta\n",
    "no_columns.csv": "name,colour,size\nt1,cat,3\n",
    "broken.jsonl": '{"item": "x", "ann": "cat"\n',
    "ragged.csv": "item,ann,bob\nx,cat,dog\ny,cat,cat,cat\n",
    "fake.parquet": "item,ann\n",
    "same.csv": "item,ann,bob\nx,cat,cat\ny,cat,cat\n",
    "wide_twice.csv": "item,ann,bob\nx,cat,dog\ny,cat,cat\nx,dog,dog\n",
    "no_item.csv": "item,source,label\nx,ann,cat\n,bob,dog\n",
    "beyond.csv": "item,ann,bob\n" + "".join(f"i{n},{n}.5,{n}.5\n" for n in range(9)) + "z,1.5,40\n",
    "title.csv": "item,label\nt1,Cat\n",
    "battles.csv": "model_a,model_b,winner\nm1,m1,model_a\n",
    "third.csv": "model_a,model_b,winner\nm1,m2,m3\nm3,m1,m3\n",
    "replies.csv": "answer_id,note\nx,fine\n",
    "two_rows.csv": "item,ann,ann\nx,cat,dog\n",
    "project.json": '[{"id": 1, "annotations": [{"result": [{"from_name": "mood"}]}]}]',
}
LABEL = "label votes.csv -o out.csv"
SCORES = "label scores.csv -o out.csv --space scores"
CASES = [
    # files
    ("label vote.csv -o out.csv", "no file 'vote.csv'", "mean 'votes.csv'?"),
    ("inspect none.csv", "none."),
    ("predict none.npz votes.csv -o out.csv", "none."),
    ("compare none.csv --gold gold.csv", "none."),
    ("explain none.npz votes.csv --item t1", "none."),
    ("report none.npz votes.csv -o page.html", "none."),
    ("convert none.csv out.csv", "none."),
    ("predict votes.csv votes.csv -o out.csv", "not a consilience model"),
    ("inspect cut.csv.gz", "'cut.csv.gz' cannot be unpacked", "cut short"),
    ("convert votes.csv votes.parquet.gz", "already compressed", "remove .gz"),
    ("label broken.jsonl -o out.csv", "'broken.jsonl', line 1 is not JSON", "one object per line"),
    ("label fake.parquet -o out.csv", "'fake.parquet' is not a Parquet file", ".csv"),
    ("report none.npz votes.csv -o page.txt", "'page.txt' does not end in .html", "page.html"),
    (f"{LABEL} --report page.txt", "'page.txt' does not end in .html", "--report page.html"),
    (f"{LABEL} --show text", "--show is for the report", "--report page.html"),
    (f"{LABEL} --gold-label answer", "--gold-label name columns of a file", "with --gold"),
    (f"{LABEL} --gold ann --gold-item id", "--gold-label name columns of a file", "with --gold"),
    (f"{LABEL} --field mood", "--field cannot be combined with --from table", "Leave it out"),
    (f"{LABEL} --outside clip", "--outside cannot be combined with --from table", "Leave it out"),
    (f"{LABEL} --unlisted below", "--unlisted 'below' is for rankings, not for Classes", "Leave it out"),
    (f"{LABEL} --method em --depends ann,bob", "--method em assumes independent sources", "Leave --depends out"),
    (f"{SCORES}:low..high", "'low..high' is not a range of numbers", "scores:0..100"),
    ("label votes.csv -o nowhere/out.csv", "no folder 'nowhere'", "Create it first"),
    ("label votes.csv -o out", "'out' has no file extension", ".csv"),
    # votes
    ("label ragged.csv -o out.csv", "'ragged.csv', line 3: 4 cells", "delimiter"),
    ("label same.csv -o out.csv", "All votes are 'cat'", "--space"),
    ("label wide_twice.csv -o out.csv", "'ann' votes twice on item 'x'", "line 2", "line 4", "--repeats"),
    ("label wide_twice.csv -o out.csv --strict", "'x' occurs twice, in line 2 and line 4", "--repeats 'first'"),
    ("label wide_twice.csv -o out.csv --repeats average", "needs labels that are numbers", "--repeats"),
    ("label no_item.csv -o out.csv", "Line 3 has no item", "drop the row"),
    (
        "label beyond.csv -o out.csv --space scores:0..10 --strict",
        "item 'z', source 'bob': 40 is outside 0-10",
        "range",
    ),
    ("label battles.csv -o out.csv", "'m1' is compared with itself", "Drop the row"),
    ("label third.csv -o out.csv", "the winner 'm3' is neither 'm1' nor 'm2'", "Correct the row"),
    ("label replies.csv -o out.csv --from judges", "judge and answer", "--source", "--label"),
    ("label two_rows.csv -o out.csv", "two columns have the name 'ann'", "its own name"),
    ("label votes.csv -o out.csv --from coco", "'votes.csv' is not JSON", "Export it again"),
    ("label pets.csv -o out.csv --delimiter ';'", "one column", "--delimiter ','"),
    ("label pets.csv -o out.csv --delimiter ';;'", "';;' is not a single character"),
    ("label latin.csv -o out.csv", "line 2", "0xe9", "--encoding 'latin-1'"),
    ("label pets.csv -o out.csv --encoding klingon", "'klingon' is unknown"),
    ("label twice.csv -o out.csv", "'ann' votes twice on item 'x'", "line 2", "line 4", "--repeats 'separate'"),
    ("label empty.csv -o out.csv", "empty"),
    ("label heads.csv -o out.csv", "no rows"),
    ("label long_heads.csv -o out.csv", "no rows"),
    ("label mixed.csv -o out.csv --strict", "'bob' mixes numbers and text", "'high'", "'z'", "--abstain 'high'"),
    ("label stars.csv -o out.csv", "classes, or scores", "--space classes or --space scores"),
    ("label texts.csv -o out.csv --strict", "'text' does not look like votes", "--drop text"),
    # known labels
    (
        f"{LABEL} --gold elsewhere.csv",
        *("None of the 4 items", "200 items", "'x1', 'x2', 'x3', ...", "'t0', 't1', 't2'"),
    ),
    (f"{LABEL} --gold two_labels.csv", "two labels for item 't1'", "'cat' and 'dog'"),
    (f"{LABEL} --gold no_label.csv", "does not contain any label"),
    (f"{LABEL} --gold odd_label.csv", "odd_label.csv", "'t1'", "cta"),
    (f"{LABEL} --gold no_columns.csv", "no column for the items", "'colour'"),
    (f"{SCORES} --gold human_ratng", "neither a file nor a column", "'human_rating'"),
    (f"{LABEL} --gold title.csv", "'Cat' is not a known class", "Did you mean 'cat'?"),
    (f"{LABEL} --gold no_columns.csv --gold-item nme", "no column 'nme'", "Did you mean 'name'?"),
    # options
    ("lable votes.csv", "no command 'lable'", "Did you mean 'label'?"),
    ("label votes.csv", "Missing option '-o'"),
    (f"{LABEL} --metod em", "--metod", "--method"),
    (f"{LABEL} --method triplet", "'triplet'", "Did you mean 'triplets'?"),
    (f"{LABEL} --space clases", "'clases'", "Did you mean 'classes'?"),
    (f"{LABEL} --item itm", "no column 'itm'", "Did you mean 'item'?"),
    (f"{LABEL} --sources ann,bobb", "'bobb'", "Did you mean 'bob'?"),
    (f"{LABEL} --drop evee", "'evee'", "Did you mean 'eve'?"),
    ("label long.csv -o out.csv --sources ann,bobb", "no source 'bobb'", "mean 'bob'?"),
    ("label long.csv -o out.csv --label answr", "no column 'answr'", "mean 'answer'?"),
    (f"{LABEL} --depends ann,bobb", "--depends", "Did you mean 'bob'?"),
    (f"{LABEL} --depends ann", "one source"),
    (f"{LABEL} --ties 0.6", "--ties is for rankings", "Classes"),
    ("convert votes.csv out.csv --to widee", "'widee'", "wide"),
    ("convert replies.jsonl w.csv --from judges --layout long", "--layout cannot be combined with --from judges"),
    ("label votes.csv -o - --engine local", "labels go to a folder"),
    # priors
    (f"{SCORES} --drop human_rating --prior a=1", "Scores has no list of labels"),
    (
        f"{LABEL} --prior cat=1,dgo=1,owl=2",
        *("'dgo' is not a label", "Did you mean 'dog'?", "--prior cat=0.33,dog=0.33,owl=0.33"),
    ),
    (f"{LABEL} --prior cat=1,dog=many,owl=2", "'many' is not a number"),
    (f"{LABEL} --prior cat=1,dog=1", "'owl' is missing"),
    (f"{LABEL} --prior cat=0.5,dog=0.2,owl=0.1", "add up to 0.8, not to 1", "--prior cat=0.33"),
    (f"{LABEL} --prior cat=-1,dog=1,owl=1", "prior[0] is -1.0", "between 0 and 1"),
    (f"{LABEL} --prior 0.5", "'0.5' is not a label"),
]


assert len(CASES) > 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_bad_input_is_refused_with_the_culprit_and_the_option_that_helps(folder, case):
    for name, content in FILES.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    command, *words = case
    refused_by_program(folder, *shlex.split(command), words=words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "out.xlsx"), ("'.xlsx'", ".csv")),
        (("-o", "votes.csv/out.csv"), ("no folder",)),
        (("-o", "gold.csv"), ("already exists", "--force")),
        (("-o", "out.csv", "--save", "./out.csv"), ("Two outputs", "'out.csv'")),
    ],
)
def test_results_that_cannot_be_written_are_refused_before_any_work(folder, monkeypatch, options, words):
    monkeypatch.setattr(LabelModel, "fit", None)
    refused_by_program(folder, "label", "votes.csv", *options, words=words)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no /proc, where nobody may write")
def test_folder_that_nobody_may_write_to_is_named(folder):
    refused_by_program(folder, "label", "votes.csv", "-o", "/proc/out.csv", words=("Cannot write", "/proc"))


def test_gold_file_with_some_other_items_is_used_and_said_and_a_file_is_replaced_by_force(folder):
    (folder / "other.csv").write_text("item,label\nx1,cat\nt2,dog\n")
    (folder / "out.csv").write_text("old")
    ran = run("label", "votes.csv", "-o", "out.csv", "--gold", "other.csv", "--force")
    assert ran.exit_code == 0
    assert "1 of 2 items of 'other.csv' are not among the votes: 'x1'" in ran.stderr
    assert "Wrote 200 labels (1 known)" in ran.stdout
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


def test_debug_shows_where_an_error_comes_from_and_a_bug_is_called_one_without_a_traceback(folder, monkeypatch):
    ran = run("label", "vote.csv", "-o", "out.csv", "--debug")
    assert ran.exit_code == 2
    assert "Traceback" in ran.stderr
    assert "Error: There is no file" in ran.stderr

    def broken(*_, **__):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(LabelModel, "fit", broken)
    refused_by_program(folder, "label", "votes.csv", "-o", "out.csv", words=("ZeroDivisionError", "bug", "--debug"))


def test_messages_name_options_and_not_arguments(folder):
    assert in_options("Pass dependencies='none', gold= or ties=.") == "Pass --depends none, --gold or --ties."
    (folder / "fake.npz").write_text("nothing")
    assert "`consilience label --save` wrote" in run("predict", "fake.npz", "votes.csv", "-o", "out.csv").stderr
    assert run("label", "votes.csv", "-o", "out.csv", "--depends", "none").exit_code == 0
