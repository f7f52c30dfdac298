"""Reads result files: tables by heading, row and column, and the targets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_NUMBER = re.compile(r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?")
_TARGET = re.compile(r"^- (?P<claim>.+?): \*\*(?P<outcome>holds|missed)\*\* \((?P<evidence>.*)\)$", re.MULTILINE)


@dataclass(frozen=True)
class Table:
    """One table of a file of results: the heading above it, and its cells by row and column."""

    heading: str
    cells: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class ResultsFile:
    """What an experiment wrote."""

    name: str
    text: str

    @classmethod
    def read(cls, folder: Path, name: str) -> ResultsFile | None:
        path = folder / f"{name}.md"
        return cls(name, path.read_text(encoding="utf-8")) if path.is_file() else None

    @property
    def targets(self) -> list[tuple[str, bool, str]]:
        """What was to be reached, whether it was, and the evidence."""
        return [(one["claim"], one["outcome"] == "holds", one["evidence"]) for one in _TARGET.finditer(self.text)]

    @property
    def tables(self) -> list[Table]:
        found, heading, lines = [], "", self.text.splitlines()
        for index, line in enumerate(lines):
            if line.startswith("#"):
                heading = line.lstrip("# ")
            if line.startswith("| ---"):
                columns = split_row(lines[index - 1])
                rows = {}
                for below in lines[index + 1 :]:
                    if not below.startswith("|"):
                        break
                    row = split_row(below)
                    rows[plain(row[0])] = dict(zip(map(plain, columns[1:]), row[1:], strict=True))
                found.append(Table(heading, rows))
        return found

    def cell(self, heading: str, row: str, column: str) -> str:
        """Return a cell of the first table below a heading that has such a row and column."""
        for table in self.tables:
            if table.heading.startswith(heading) and column in table.cells.get(row, {}):
                return table.cells[row][column]
        raise SystemExit(f"{self.name}.md has no cell {row!r}, {column!r} below {heading!r}. Correct claims.py.")

    def beside(self, heading: str, ours: str, other: str, settings: str = ".") -> list[tuple[str, str, str]]:
        """Return (setting, our cell, the other one) for rows or columns whose names differ in `ours` and `other` alone.

        They are those of all tables below headings that begin so; cells without a number in both are left out. Where
        several headings do, the setting begins with the heading.
        """
        tables = [table for table in self.tables if table.heading.startswith(heading)]
        found = []
        for table in tables:
            turned: dict[str, dict[str, str]] = {}
            for row, cells in table.cells.items():
                for column, cell in cells.items():
                    turned.setdefault(column, {})[row] = cell
            for lines in (table.cells, turned):
                for name in [name for name in lines if ours in name and name.replace(ours, other) in lines]:
                    theirs = lines[name.replace(ours, other)]
                    for setting, cell in lines[name].items():
                        if not (
                            re.search(settings, setting) and _NUMBER.search(cell) and _NUMBER.search(theirs[setting])
                        ):
                            continue
                        words = [table.heading] * (len({each.heading for each in tables}) > 1)
                        words += [name] * (name != ours)
                        found.append((", ".join([*words, setting]), cell, theirs[setting]))
        return found


def split_row(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")] if line.strip("| ") else []


def plain(cell: str) -> str:
    return cell.replace("*", "").strip()


def number(cell: str) -> float:
    """Return the first number of a cell."""
    found = _NUMBER.search(cell)
    if found is None:
        raise SystemExit(f"{cell!r} holds no number. Correct claims.py.")
    return float(found[0])
