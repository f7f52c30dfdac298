"""A folder with small tables of votes, in which the program runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from consilience.cli.tables import write_tables


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files that ``consilience demo --tables`` writes."""
    folder = tmp_path_factory.mktemp("tables")
    return {path.name: path.read_bytes() for path in write_tables(folder)}


@pytest.fixture
def folder(tmp_path: Path, tables: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a fresh folder with the tables, which is the current one."""
    for name, content in tables.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path
