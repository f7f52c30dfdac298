"""Run the program in a folder, and look at what it left there."""

import json
from inspect import signature
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from consilience.cli import main

#: click mixed what goes to the two streams until 8.2, which does not know the word any more.
_APART: dict[str, Any] = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


def run(*arguments: object) -> Result:
    """Run the program with these arguments."""
    return CliRunner(**_APART).invoke(main, [str(argument) for argument in arguments])


def result_of(*arguments: object) -> dict[str, Any]:
    """Run the program with ``--json``, and return what it printed."""
    ran = run(*arguments, "--json")
    assert ran.exit_code == 0, ran.output
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def files_in(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, hidden ones too, with its contents."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()} | {
        f"{path.relative_to(folder)}/": b"" for path in folder.rglob("*") if path.is_dir()
    }


def refused_by_program(folder: Path, *arguments: object, words: tuple[str, ...]) -> Result:
    """Run the program on bad input: exit code 2, a short message with these words, and the folder as it was."""
    before = files_in(folder)
    ran = run(*arguments)
    assert ran.exit_code == 2, ran.output
    lines = [
        line
        for line in ran.stderr.strip().splitlines()
        if not line.startswith(("Detected ", "Label type ", "Used ", "  "))
    ]
    assert 1 <= len(lines) <= 2, ran.stderr
    assert lines[0].startswith("Error: ")
    for word in words:
        assert word in ran.stderr, ran.stderr
    assert "Traceback" not in ran.output
    assert ran.stdout == ""
    assert files_in(folder) == before
    return ran
