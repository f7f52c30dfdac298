"""Long work shows a bar with what it does: on a terminal and in a notebook, after two seconds, and nowhere else."""

import os
import subprocess
import sys

import numpy as np
import pytest
from tests.cli.running import run

import consilience as cs

VOTES = np.tile([[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0], [1, 0, 1, 1], [0, 1, 0, 0], [1, 1, 1, 0]], (40, 1))


@pytest.mark.parametrize(
    ("where", "patience", "shown"),
    [("terminal", 0.0, True), ("notebook", 0.0, True), ("file", 0.0, False), ("terminal", 60.0, False)],
)
def test_a_long_fit_shows_what_it_does_where_somebody_can_see_it(where, patience, shown, capsys, monkeypatch):
    monkeypatch.setattr("consilience.progress.PATIENCE", patience)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: where == "terminal", raising=False)
    if where == "notebook":
        monkeypatch.setitem(sys.modules, "ipykernel", sys)
    votes = cs.partitions.InMemoryPartitions.of(cs.Votes.from_matrix(VOTES), rows=20)
    cs.LabelModel(cs.Classes(2)).fit(votes)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert ("counting agreements" in printed.err and "%" in printed.err) == shown
    assert shown or printed.err == ""


def test_a_quiet_command_shows_no_bar(tmp_path, monkeypatch):
    monkeypatch.setattr("consilience.progress.PATIENCE", 0.0)
    path = tmp_path / "votes.csv"
    path.write_text("item,a,b,c\n" + "".join(f"{row},{row % 2},{row % 2},{row % 3 % 2}\n" for row in range(30)))
    monkeypatch.setattr("consilience.progress.Bar._new", lambda bar: pytest.fail("a bar was drawn"))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert run("label", str(path), "-o", str(tmp_path / "labels.csv"), "--quiet").exit_code == 0


@pytest.mark.parametrize(
    ("seen", "options", "shown"), [(True, [], True), (False, [], False), (True, ["--quiet"], False)]
)
def test_a_long_command_shows_a_bar_on_a_terminal_unless_it_is_quiet(seen, options, shown, tmp_path):
    pty = pytest.importorskip("pty")  # there is none on Windows
    (tmp_path / "votes.csv").write_text("item,a,b,c\n" + "".join(f"{row},{row % 2},{row % 2},0\n" for row in range(30)))
    program = (
        "import sys, consilience.progress; consilience.progress.PATIENCE = 0.0; "
        "from consilience.cli import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", program, "label", "votes.csv", "-o", "labels.csv", *options]
    ours, theirs = pty.openpty() if seen else os.pipe()
    with subprocess.Popen(
        command, cwd=tmp_path, env=os.environ | {"TERM": "xterm"}, stdout=subprocess.DEVNULL, stderr=theirs
    ) as running:
        os.close(theirs)
        printed = b""
        try:
            while part := os.read(ours, 4096):
                printed += part
        except OSError:  # a terminal ends with an error where a pipe ends
            pass
        os.close(ours)
    assert running.returncode == 0
    stages = b"reading the votes", b"learning", b"counting agreements", b"labeling"
    assert any(stage in printed for stage in stages) == shown
