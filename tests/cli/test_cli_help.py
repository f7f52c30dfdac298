"""Examples in the help texts work when pasted, on the files that ``consilience demo --tables`` writes."""

from __future__ import annotations

import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.cli.running import run

from consilience.cli import main
from consilience.cli.commands import Command

COMMANDS = {"consilience": main, **main.commands}
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_in_the_help_work_in_order(folder, name):
    command = COMMANDS[name]
    assert command.examples
    if command.examples_in == "in a clone of the repository":
        _stand_in_for_a_clone(folder)
    if name == "consilience":
        examples = command.examples[1:]  # the demo has tests of its own
    elif name == "demo":
        examples = command.examples[1:]
    else:
        examples = command.examples
    for example in examples:
        program, *arguments = shlex.split(example)
        assert program == "consilience"
        if find_spec("consilience.report") is None and ("--report" in arguments or arguments[0] == "report"):
            continue
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
def test_help_shows_its_examples_unbroken(name):
    arguments = [] if name == "consilience" else [name]
    shown = run(*arguments, "--help").output
    for example in COMMANDS[name].examples:
        assert f"  {example}\n" in shown


def test_every_command_knows_debug_and_has_a_short_description():
    for command in main.commands.values():
        assert isinstance(command, Command)
        assert command.get_short_help_str(100).rstrip(".")
        assert any("--debug" in parameter.opts for parameter in command.params)


def test_demo_tables_are_the_same_each_time(folder, tmp_path, tables):
    assert run("demo", "--tables", "-o", tmp_path / "again").exit_code == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == tables
    assert run("demo", "--tables", "-o", tmp_path / "again").exit_code == 2
