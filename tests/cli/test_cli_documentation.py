"""Help texts, recipes and pages are true: their commands run on the files of ``consilience demo --tables``."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click import Context
from click.shell_completion import ShellComplete
from tests.cli.running import run
from tests.test_docs import table_rows

from consilience.cli import main
from consilience.tables.notation import NOTATIONS

COMMANDS = {"consilience": main} | {name: main.get_command(Context(main), name) for name in main.places}
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_in_the_help_work_in_order(folder, name, monkeypatch):
    monkeypatch.setattr("consilience.cli.review.serve", lambda session, *_, **__: session.close())  # the page has tests
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


JOBS = sections(ROOT / "docs" / "how_to" / "recipes.md")
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


def test_commands_of_the_readme_run(folder):
    lines = commands(sections(ROOT / "README.md")["Two commands"], "console")
    assert len(lines) == 2
    for _, *arguments in lines:
        ran = run(*arguments)
        assert ran.exit_code == 0, ran.output


def test_commands_of_the_tutorials_run(folder):
    pages = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
    lines = [line for page in pages for line in re.findall(r"`(consilience label [^`]+)`", page.read_text("utf-8"))]
    assert len(lines) >= 5
    crossing = folder / "crossing"
    crossing.mkdir()
    for name in ("ann", "bob", "cleo", "dan"):
        shutil.copy(folder / f"crossing_{name}.json", crossing / f"{name}.json")
    for line in lines:
        ran = run(*shlex.split(line)[1:], "--force")
        assert ran.exit_code == 0, f"{line}\n{ran.output}"


def test_page_of_the_command_line_names_every_command_and_label_type():
    page = ROOT / "docs" / "reference" / "command_line.md"
    assert {row[0].strip("`").split()[1] for row in table_rows(page, "command")} == set(main.places)
    rows = table_rows(page, "`--space`")
    named = {re.split(r"[:`]", name)[1] for row in rows for name in re.findall(r"`[^`]+`", row[0])}
    assert named == {notation.name for notation in NOTATIONS}


def test_the_tab_key_offers_label_types_methods_columns_and_experiments(folder):
    shell = ShellComplete(main, {}, "consilience", "_CONSILIENCE_COMPLETE")

    def offered(*words, begun=""):
        return {item.value for item in shell.get_completions(list(words), begun)}

    assert {"classes", "scores", "preferences"} <= offered("label", "votes.csv", "--space")
    assert offered("label", "votes.csv", "--method", begun="tri") == {"triplets"}
    assert offered("label", "votes.csv", "--drop", begun="ann,b") == {"ann,bob"}
    assert offered("label", "nothing.csv", "--drop") == set()
    _stand_in_for_a_clone(folder)
    assert "rankings_paper" in offered("reproduce")


def test_help_lists_options_by_topic_and_commands_in_full():
    shown = run("label", "--help").output
    places = [
        shown.index(f"{title}:") for title in ("Reading votes", "Known labels and model", "Results", "Large tables")
    ]
    assert places == sorted(places)
    assert "..." not in run("--help").output.partition("Commands:")[2].partition("Examples")[0]
