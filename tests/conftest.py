"""Fixtures and settings that all tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# One process of tests per processor: threads of linear algebra would only wait for each other. Read as NumPy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """Return the folder of public data sets, or skip the test and say which variable names it."""
    name = os.environ.get("CONSILIENCE_DATA")
    if not name:
        pytest.skip("CONSILIENCE_DATA is not set; let it name the folder of data sets to run this test")
    folder = Path(name)
    if not folder.is_dir():
        pytest.fail(f"CONSILIENCE_DATA names {name!r}, which is not a folder; correct it or unset it")
    return folder


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files that ``consilience demo --tables`` writes."""
    from consilience.cli.demo import write_tables

    return {path.name: path.read_bytes() for path in write_tables(tmp_path_factory.mktemp("tables"))}


@pytest.fixture
def folder(tmp_path: Path, tables: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a fresh folder with these tables, which is the current one."""
    for name, content in tables.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path
