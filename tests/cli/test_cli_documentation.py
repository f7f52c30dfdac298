"""Help texts, recipes and pages are true: their commands run on the files of ``consilience demo --tables``."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import run
from tests.test_docs import table_rows

import consilience as cs
from consilience.cli import main
from consilience.tables.notation import NOTATIONS

COMMANDS = {"consilience": main, **main.commands}
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_in_the_help_work_in_order(folder, name):
    command = COMMANDS[name]
    assert command.examples
    if command.examples_in == "in a clone of the repository":
        _stand_in_for_a_clone(folder)
    skipped = name in ("consilience", "demo")  # the demo, their first example, has tests of its own
    for example in command.examples[skipped:]:
        program, *arguments = shlex.split(example)
        assert program == "consilience"
        ran = run(*arguments, *(["--force"] if _writes_again(arguments, folder) else []))
        assert ran.exit_code == 0, f"{example}\n{ran.output}"


def _stand_in_for_a_clone(folder):
    """Make experiments with the names of ours that do nothing; ours have tests of their own."""
    experiments = folder / "experiments"
    experiments.mkdir()
    for path in (ROOT / "experiments").glob("*.py"):
        (experiments / path.name).touch()
    shutil.copy(ROOT / "experiments" / "catalogue.toml", experiments)


def _writes_again(arguments, folder):
    return "-o" in arguments and arguments[0] != "demo" and (folder / arguments[arguments.index("-o") + 1]).exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_its_examples_unbroken_and_every_command_knows_debug(name):
    command = COMMANDS[name]
    shown = run(*([] if command is main else [name]), "--help").output
    for example in command.examples:
        assert f"  {example}\n" in shown
    assert command.get_short_help_str(100).rstrip(".")
    assert command is main or any("--debug" in parameter.opts for parameter in command.params)


def test_demo_tables_are_the_same_each_time(folder, tmp_path, tables):
    assert run("demo", "--tables", "-o", tmp_path / "again").exit_code == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == tables
    assert run("demo", "--tables", "-o", tmp_path / "again").exit_code == 2


def sections(page: Path) -> dict[str, str]:
    """Return the sections of a page by heading."""
    parts = re.split(r"^## (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def commands(text: str, language: str = "sh") -> list[list[str]]:
    """Return the commands in the blocks of a text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [shlex.split(line, comments=True) for block in blocks for line in block.splitlines() if line.strip()]


JOBS = sections(ROOT / "docs" / "recipes.md")
assert len(JOBS) == 5
assert "Find the consensus of three parsers" in JOBS


@pytest.mark.parametrize("job", JOBS)
def test_recipe_runs_and_is_short(job, folder):
    lines = commands(JOBS[job])
    blocks = re.findall(r"^```python\n(.*?)^```$", JOBS[job], flags=re.MULTILINE | re.DOTALL)
    assert len(lines) <= 5
    assert all(sum(bool(line.strip()) for line in block.splitlines()) <= 10 for block in blocks)
    assert lines or blocks
    for program, *arguments in lines:
        assert program == "consilience"
        ran = run(*arguments)
        assert ran.exit_code == 0, ran.output
    for block in blocks:
        exec(block, {"cs": cs})
    if job == "Find the consensus of three parsers":
        # The simulated trees are stars: every word hangs on the root. The consensus is better than the worst parser.
        wrong = {}
        for name in ("consensus", "parser_c"):
            trees = cs.tables.read_conllu(f"{name}.conllu").votes.labels[:, 0]
            wrong[name] = np.mean([set(tree) != {0, int(np.flatnonzero(tree == 0)[0]) + 1} for tree in trees])
        assert wrong["consensus"] < wrong["parser_c"]


def test_commands_of_the_readme_run(folder):
    text = sections(ROOT / "README.md")["Command line"]
    lines = commands(text, "console")
    assert len(lines) == 4
    for number, (_, *arguments) in enumerate(lines):
        ran = run(*arguments)
        assert ran.exit_code == (2 if number == 0 else 0), ran.output  # the tables are there already


def test_page_of_the_command_line_names_every_command_and_label_type():
    page = ROOT / "docs" / "command_line.md"
    assert {row[0].strip("`").split()[1] for row in table_rows(page, "command")} == set(main.commands)
    rows = table_rows(page, "`--space`")
    named = {re.split(r"[:`]", name)[1] for row in rows for name in re.findall(r"`[^`]+`", row[0])}
    assert named == {notation.name for notation in NOTATIONS}
