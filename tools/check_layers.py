"""Check the rules of the code base that no linter knows.

A module of ``consilience`` imports lower layers only; label types do not import each other; no two files import each
other in a circle; numba stays in files called ``kernels.py``; the package neither asserts nor prints. Run without
arguments from anywhere: each violation is printed as ``path:line: message``, and the exit status is 1 if there is one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = "consilience"

# From the bottom up; the first number is the row of the table in CONTRIBUTING.md, the second orders the names inside a
# row. A module may import names with a smaller pair, and modules of its own folder with the same pair. Of two names
# that fit a module the longer one counts: `tables` and `partitions` have modules below the model, and others above it.
LAYERS: dict[str, tuple[int, int]] = {
    name: level
    for level, names in {
        (1, 0): "arrays exceptions json_text kernel_cache lazy progress",
        (1, 1): "partitions.threads",
        (1, 2): "estimation.pair_table",
        (1, 3): "estimation.protocol",
        (1, 4): "schema",
        (2, 0): "label_types",
        (3, 0): "tables.cells tables.display tables.files tables.frames tables.receipt tables.vote_tables",
        (3, 1): "votes",
        (3, 2): "tables.encoding",
        (3, 3): "elements rankings trees",
        (4, 0): "partitions.base estimation.calibration",
        (4, 1): "prediction.inference prediction.simulate prediction.source_model",
        (4, 2): "labeling",
        (5, 0): "estimation storage",
        (5, 1): "prediction",
        (6, 0): "label_model",
        (7, 0): "tables",
        (7, 1): "partitions preferences",
        (7, 2): "end_models datasets testing",
        (7, 3): "report",
        (7, 4): "review",
        (7, 5): "cli plot",
        (7, 6): "__main__",
    }.items()
    for name in names.split()
}

# Label types that stand on another one; all others know only what they share: label_types/*.py.
STANDS_ON = {"product": (), "texts": ("metric",), "preferences": ("rankings",)}


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
        own = _layer_name(parts[1:])
        if own is None:
            yield Violation(path, 1, f"{parts[1]!r} has no layer; add it to the table in tools/check_layers.py")
            continue
        for line, imported in _imports(tree, parts, is_package=path.name == "__init__.py"):
            target = imported.split(".")
            if target[0] != PACKAGE:
                continue
            if len(target) == 1:
                yield Violation(path, line, f"imports {PACKAGE!r} itself; import from the defining module")
                continue
            name = _layer_name(target[1:])
            if name is None:
                yield Violation(path, line, f"imports {target[1]!r}, which has no layer")
            elif not _may_import(own, name):
                yield Violation(path, line, f"{own!r} imports {name!r}, which is not in a lower layer")


def _may_import(own: str, other: str) -> bool:
    same_folder = own.split(".", maxsplit=1)[0] == other.split(".", maxsplit=1)[0]
    return own == other or LAYERS[other] < LAYERS[own] or (same_folder and LAYERS[other] == LAYERS[own])


def _layer_name(parts: list[str]) -> str | None:
    """Return the longest name of the table that fits a module."""
    fitting = (".".join(parts[:size]) for size in range(len(parts), 0, -1))
    return next((name for name in fitting if name in LAYERS), None)


def label_type_violations(root: Path) -> Iterator[Violation]:
    """Yield each import of one label type by another that does not stand on it."""
    for path, tree in _package_modules(root):
        parts = _module_parts(root, path)
        if parts[1:2] != ["label_types"] or len(parts) < 4:
            continue
        own = parts[2]
        for line, imported in _imports(tree, parts, is_package=path.name == "__init__.py"):
            target = imported.split(".")
            folder = root / "src" / Path(*target[:3])
            other = target[2] if target[:2] == [PACKAGE, "label_types"] and len(target) > 2 else own
            if other != own and folder.is_dir() and other not in STANDS_ON.get(own, ()):
                yield Violation(path, line, f"{own!r} imports the label type {other!r}; share through label_types/*.py")


def cycle_violations(root: Path) -> Iterator[Violation]:
    """Yield each file that imports itself through others; imports for typing count, those in functions do not."""
    files = {".".join(_module_parts(root, path)): (path, tree) for path, tree in _package_modules(root)}
    imports: dict[str, dict[str, int]] = {}
    for name, (path, tree) in files.items():
        found = {}
        for line, target in _top_imports(tree, _module_parts(root, path), is_package=path.name == "__init__.py"):
            if target in files and target != name and files[target][0].name != "__init__.py":
                found[target] = line
        imports[name] = found
    for name, targets in imports.items():
        for target, line in targets.items():
            if _reaches(imports, target, name):
                yield Violation(files[name][0], line, f"imports {target}, which imports it back")


def _reaches(imports: dict[str, dict[str, int]], start: str, goal: str) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        if here == goal:
            return True
        fresh = [name for name in imports.get(here, {}) if name not in seen]
        seen.update(fresh)
        waiting += fresh
    return False


def numba_violations(root: Path) -> Iterator[Violation]:
    """Yield each import of numba outside of files called ``kernels.py``."""
    for path, tree in _package_modules(root):
        if path.name == "kernels.py":
            continue
        for line, imported in _imports(tree, _module_parts(root, path), is_package=path.name == "__init__.py"):
            if imported.split(".")[0] == "numba":
                yield Violation(path, line, "imports numba; compiled code lives in files called kernels.py")


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


CHECKS: tuple[Callable[[Path], Iterator[Violation]], ...] = (
    layer_violations,
    label_type_violations,
    cycle_violations,
    numba_violations,
    assert_violations,
    print_violations,
)


def _package_modules(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((root / "src" / PACKAGE).rglob("*.py")):
        yield path, _parsed(path.read_text(encoding="utf-8"), str(path))


_parsed = cache(ast.parse)  # every rule reads every file


def _module_parts(root: Path, path: Path) -> list[str]:
    parts = list(path.relative_to(root / "src").with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" else parts


def _top_imports(tree: ast.Module, parts: list[str], *, is_package: bool) -> Iterator[tuple[int, str]]:
    """Yield the imports that run when the module is loaded, and those for typing."""
    for node in tree.body:
        blocks = [node, *node.body] if isinstance(node, ast.If) else [node]
        for block in blocks:
            yield from (
                _imports(ast.Module([block], []), parts, is_package=is_package)
                if isinstance(block, (ast.Import, ast.ImportFrom))
                else ()
            )


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
