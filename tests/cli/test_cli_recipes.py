"""The pages about the command line are true: their commands run, and the recipes are as short as they claim."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import run
from tests.test_docs import python_blocks, table_rows

import consilience as cs
from consilience.cli import main
from consilience.tables.notation import NOTATIONS

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "docs" / "recipes.md"


def sections(page: Path) -> dict[str, str]:
    """Return the sections of a page by heading."""
    parts = re.split(r"^## (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def commands(text: str, language: str = "sh") -> list[list[str]]:
    """Return the commands in the blocks of a text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [shlex.split(line, comments=True) for block in blocks for line in block.splitlines() if line.strip()]


JOBS = sections(RECIPES)


def test_there_is_a_recipe_for_each_of_the_five_jobs():
    assert len(JOBS) == 5


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


def test_consensus_parse_is_better_than_the_worst_parser(folder):
    for block in re.findall(r"^```python\n(.*?)^```$", JOBS["Find the consensus of three parsers"], re.M | re.S):
        exec(block, {"cs": cs})
    trees = {name: cs.tables.read_conllu(f"{name}.conllu").votes.labels[:, 0] for name in ("consensus", "parser_c")}
    # The simulated trees are stars: every word hangs on the root.
    wrong = {name: np.mean([np.any(_off(tree)) for tree in found]) for name, found in trees.items()}
    assert wrong["consensus"] < wrong["parser_c"]


def _off(tree):
    root = int(np.flatnonzero(tree == 0)[0]) + 1
    return (tree != root) & (tree != 0)


def test_commands_of_the_readme_run(folder):
    text = sections(ROOT / "README.md")["Command line"]
    lines = commands(text, "console")
    assert len(lines) == 4
    for number, (_, *arguments) in enumerate(lines):
        if find_spec("consilience.report") is None and "--report" in arguments:
            arguments = arguments[: arguments.index("--report")]
        ran = run(*arguments)
        assert ran.exit_code == (2 if number == 0 else 0), ran.output  # the tables are there already


def test_page_of_the_command_line_names_every_command():
    rows = table_rows(ROOT / "docs" / "command_line.md", "command")
    assert {row[0].strip("`").split()[1] for row in rows} == set(main.commands)


def test_page_of_the_command_line_names_every_label_type():
    rows = table_rows(ROOT / "docs" / "command_line.md", "`--space`")
    named = {re.split(r"[:`]", name)[1] for row in rows for name in re.findall(r"`[^`]+`", row[0])}
    assert named == {notation.name for notation in NOTATIONS}


def test_python_of_the_recipes_is_short():
    assert len(python_blocks(RECIPES)) == 3
