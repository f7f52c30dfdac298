"""Check the rules of the code base that no linter knows.

A module of ``consilience`` imports strictly lower layers only; numba stays in ``kernels``; the package
neither asserts nor prints; no file is longer than 400 lines. Run without arguments from anywhere: each
violation is printed as ``path:line: message``, and the exit status is 1 if there is one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = "consilience"
MAX_LINES = 400
MEASURED_FOLDERS = ("src", "tests", "experiments", "benchmarks", "examples", "tools")

# From the bottom up; the first number is the row of the table in CONTRIBUTING.md, the second orders the
# names inside a row. A module may import names with a smaller pair only.
LAYERS: dict[str, tuple[int, int]] = {
    name: level
    for level, names in {
        (1, 0): "arrays exceptions",
        (1, 1): "kernels threads",
        (1, 2): "estimation.pair_table",
        (1, 3): "estimation.protocol",
        (1, 4): "estimation.calibration",
        (1, 5): "solvers",
        (2, 0): "label_types.cost_curve label_types.dirichlet label_types.vote_correlation families",
        (2, 1): "label_types spaces",
        (3, 0): "io",
        (3, 1): "votes",
        (3, 2): "encoding",
        (3, 3): "rankings treebanks",
        (4, 0): "moments source_model partitions settings simulation storage",
        (4, 1): "labeling",
        (5, 0): "explanation inference model_files",
        (5, 1): "estimation",
        (5, 2): "suggestion",
        (6, 0): "label_model",
        (7, 0): "files end_models datasets testing",
        (7, 1): "engines report",
        (7, 2): "demo plot",
        (7, 3): "cli",
        (7, 4): "__main__",
    }.items()
    for name in names.split()
}


class Violation(NamedTuple):
    """One broken rule, and where."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def layer_violations(root: Path) -> Iterator[Violation]:
    """Yield each import of the package that does not point to a strictly lower layer."""
    for path, tree in _package_modules(root):
        parts = _module_parts(root, path)
        if len(parts) == 1:  # consilience/__init__.py gathers the public names from everywhere
            continue
        own = parts[1]
        if own not in LAYERS:
            yield Violation(path, 1, f"{own!r} has no layer; add it to the table in tools/check_layers.py")
            continue
        for line, imported in _imports(tree, parts, is_package=path.name == "__init__.py"):
            target = imported.split(".")
            if target[0] != PACKAGE:
                continue
            if len(target) == 1:
                yield Violation(path, line, f"imports {PACKAGE!r} itself; import from the defining module")
            elif target[1] not in LAYERS:
                yield Violation(path, line, f"imports {target[1]!r}, which has no layer")
            elif target[1] != own and LAYERS[target[1]] >= LAYERS[own]:
                yield Violation(path, line, f"{own!r} imports {target[1]!r}, which is not in a lower layer")


def numba_violations(root: Path) -> Iterator[Violation]:
    """Yield each import of numba outside of the kernels."""
    for path, tree in _package_modules(root):
        parts = _module_parts(root, path)
        if parts[1:2] == ["kernels"]:
            continue
        for line, imported in _imports(tree, parts, is_package=path.name == "__init__.py"):
            if imported.split(".")[0] == "numba":
                yield Violation(path, line, "imports numba; compiled code lives in kernels")


def assert_violations(root: Path) -> Iterator[Violation]:
    """Yield each assert statement of the package: ``python -O`` removes them, so they check nothing."""
    for path, tree in _package_modules(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assert):
                yield Violation(path, node.lineno, "uses assert; raise an error of consilience.exceptions")


def print_violations(root: Path) -> Iterator[Violation]:
    """Yield each call of print in the package."""
    for path, tree in _package_modules(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                yield Violation(path, node.lineno, "prints; warn, log, or write through click or rich")


def size_violations(root: Path) -> Iterator[Violation]:
    """Yield each Python file that is longer than 400 lines."""
    for folder in MEASURED_FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            if ".cache" in path.relative_to(root).parts:  # what scripts download is not ours
                continue
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > MAX_LINES:
                yield Violation(path, lines, f"has {lines} lines, more than {MAX_LINES}; split it")


CHECKS: tuple[Callable[[Path], Iterator[Violation]], ...] = (
    layer_violations,
    numba_violations,
    assert_violations,
    print_violations,
    size_violations,
)


def _package_modules(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((root / "src" / PACKAGE).rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def _module_parts(root: Path, path: Path) -> list[str]:
    parts = list(path.relative_to(root / "src").with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" else parts


def _imports(tree: ast.Module, parts: list[str], *, is_package: bool) -> Iterator[tuple[int, str]]:
    """Yield line and absolute name of all imported modules, those in functions and for typing too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            climbed = node.level - 1 if is_package else node.level
            base = parts[: len(parts) - climbed] if node.level else []
            yield node.lineno, ".".join([*base, *filter(None, [node.module])])


if __name__ == "__main__":
    repository = Path(__file__).resolve().parents[1]
    found = [violation for check in CHECKS for violation in check(repository)]
    for violation in found:
        print(violation._replace(path=violation.path.relative_to(repository)))
    sys.exit(1 if found else 0)
