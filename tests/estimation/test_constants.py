"""Every statistical constant of the shared estimation is in docs/explanation/constants.md, with its value."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "src" / "consilience" / "estimation"
#: Sizes of samples and lists that decide nothing statistical, and names of settings.
NOT_STATISTICAL = {
    "ADAPT_ITEMS",
    "COMPARED_ITEMS",
    "LOG_TEMPERATURES",
    "METHODS",
    "NAMED_PRIORS",
    "PAIRS",
    "ROUNDING",
    "STAY",
    "DIRECT",
}
NOT_STATISTICAL |= {"SAMPLE_ROWS", "SHOWN", "SHOWN_ITEMS", "UNCALIBRATED", "COPIES", "SCHOOLS", "KINDS"}


def constants() -> dict[str, set[float]]:
    """Return the module-level constants of the folder, each with its values, as one name may stand in two files."""
    found: dict[str, set[float]] = {}
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                continue
            target = node.targets[0]
            names = [target] if isinstance(target, ast.Name) else getattr(target, "elts", [])
            values = [node.value] if isinstance(target, ast.Name) else getattr(node.value, "elts", [])
            for name, value in zip(names, values, strict=False):
                if isinstance(name, ast.Name) and re.fullmatch(r"[A-Z][A-Z_]+", name.id):
                    numbers = value.elts if isinstance(value, ast.Tuple) else [value]
                    plain = {one.value for one in numbers if isinstance(one, ast.Constant) and one.value is not None}
                    found.setdefault(name.id, set()).update(plain)
    return {name: values for name, values in found.items() if name not in NOT_STATISTICAL}


def rows() -> dict[str, set[float]]:
    """Return the names of the table, each with the numbers in its cell."""
    listed: dict[str, set[float]] = {}
    text = (ROOT / "docs" / "explanation" / "constants.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        names = re.findall(r"`([A-Z][A-Z_]+)`", cells[0]) if cells else []
        numbers = re.findall(r"\d*\.?\d+", cells[1]) if names else []
        each = [[number] for number in numbers] if len(names) == len(numbers) and len(names) > 1 else [numbers]
        for name, own in zip(names, each if len(each) == len(names) else [numbers] * len(names), strict=True):
            listed.setdefault(name, set()).update(float(number) for number in own)
    return listed


def test_every_constant_has_a_row_and_every_row_a_constant() -> None:
    assert set(rows()) == set(constants())


def test_the_table_has_the_values_of_the_code() -> None:
    table = rows()
    for name, values in constants().items():
        if name != "COARSE":  # four settings, described in words
            assert {float(value) for value in values} == table[name], name


def test_there_are_at_most_forty_rows() -> None:
    text = (ROOT / "docs" / "explanation" / "constants.md").read_text(encoding="utf-8")
    assert sum(line.startswith("| `") for line in text.splitlines()) <= 40
