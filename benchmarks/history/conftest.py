"""The option that stores a run instead of comparing with the stored one."""

from __future__ import annotations

from typing import Any


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--store", action="store_true", help="store the ratios of this run")
