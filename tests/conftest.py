"""Fixtures and settings that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

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
