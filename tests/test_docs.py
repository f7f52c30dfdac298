"""The documentation is true: every Python block runs, every name exists, every code and method is described."""

import ast
import dataclasses
import doctest
import inspect
import re
import runpy
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from spaces import EXPORTED, ONE_OF_EACH

import consilience as cs
from consilience.cli.demo import write_tables

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """Return the Python blocks of a page, each with the line it starts on."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, block.start(1)) + 1, block.group(1)) for block in found]


def table_rows(page: Path, heading: str) -> list[list[str]]:
    """Return the cells of the table whose first column has this heading."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
def test_python_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.name == "recipes.md":
        write_tables(tmp_path)
    namespace: dict[str, Any] = {"__name__": "docs"}
    for line, block in python_blocks(page):
        place = f"{page.name}, line {line}"
        if ">>>" in block:
            runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
            case = doctest.DocTestParser().get_doctest(block, namespace, place, str(page), line)
            report: list[str] = []
            runner.run(case, out=report.append, clear_globs=False)
            assert not runner.failures, "".join(report)
            namespace = case.globs
        else:
            exec(compile(block, place, "exec"), namespace)


def test_pages_that_promise_examples_have_some():
    with_code = {"CONTRIBUTING.md", "README.md", "files.md", "label_types.md", "labeling.md", "methods.md", "report.md"}
    assert with_code <= {page.name for page in PAGES if python_blocks(page)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_to_files(page):
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert missing == []


def test_names_of_the_paper_table_exist_and_made_up_ones_do_not():
    rows = table_rows(ROOT / "docs" / "reference" / "names.md", "paper")
    assert len(rows) >= 13
    for paper, ours, *_ in rows:
        names = re.findall(r"`([^`]+)`", ours)
        assert names, f"{paper} has no name"
        assert [name for name in names if not exists(name)] == [], paper
    for name in ("Votes.nothing", "nothing", "LabelModel(nothing=)", "space.law.nothing"):
        assert not exists(name)


def exists(name: str) -> bool:
    """Return whether a name of the table is a public object, a member of one, a field, or a parameter."""
    call = re.fullmatch(r"(\w+)\((\w+)=\)", name)
    if call:
        owner = getattr(cs, call.group(1), None)
        return owner is not None and call.group(2) in inspect.signature(owner).parameters
    first, *rest = name.split(".")
    if first == "space":
        here: Any = cs.Classes(2)
    elif first in cs.__all__:
        here = getattr(cs, first)
    else:
        return False
    for part in rest:
        fields = {field.name for field in dataclasses.fields(here)} if dataclasses.is_dataclass(here) else set()
        if not hasattr(here, part) and part not in fields:
            return False
        here = getattr(here, part, None)
    return True


def codes_in_source() -> Iterator[str]:
    """Yield the first argument of every `Diagnostic(...)` in the package, or of a local shorthand for it."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("Diagnostic", "tell")
            )
            if called and node.args and isinstance(node.args[0], ast.Constant):
                yield node.args[0].value


def test_every_diagnostic_code_and_method_is_described():
    described = {row[0].strip("`") for row in table_rows(ROOT / "docs" / "reference" / "findings.md", "code")}
    assert described == set(codes_in_source()) | {"copied-source"}  # of `consilience inspect`
    methods = {row[0].strip("`") for row in table_rows(ROOT / "docs" / "explanation" / "methods.md", "method")}
    assert methods | {"auto"} == set(cs.Classes(2).law.methods)


def test_label_types_page_has_a_row_for_every_label_type_with_the_methods_it_lacks():
    rows = {row[0].strip("`"): row for row in table_rows(ROOT / "docs" / "reference" / "label_types.md", "label type")}
    assert set(rows) == {one.__name__ for one in EXPORTED} == set(ONE_OF_EACH)
    every = set(cs.Classes(2).law.methods)
    for name, space in (ONE_OF_EACH | {"Product": cs.Product(topic=cs.Classes(2))}).items():
        assert set(re.findall(r"`(\w+)`", rows[name][-1])) == every - set(space.law.methods), name


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_ends_with_a_table(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 3
    assert len({len(line) for line in lines}) <= 2, "columns are not aligned"


def imported_by(path: Path) -> set[str]:
    """Return the modules that a file imports."""
    return {
        alias.name if isinstance(node, ast.Import) else node.module or ""
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_uses_public_names_only(path):
    imported = imported_by(path)
    assert {name for name in imported if name.startswith("consilience")} <= {"consilience", "consilience.datasets"}
    assert {name.partition(".")[0] for name in imported} <= {"consilience", "numpy", *sys.stdlib_module_names}


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == cs.__version__
    assert f"\nversion: {cs.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert newest is not None
    assert newest.group(1) == cs.__version__
