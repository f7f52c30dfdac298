"""``import consilience`` costs little more than ``import numpy``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    "click",
    "dask",
    "jinja2",
    "matplotlib",
    "narwhals",
    "networkx",
    "numba",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "rich",
    "scipy",
    "sklearn",
    "torch",
}

# The difference of two snapshots leaves out what the interpreter's start-up files had already loaded.
# A module counts as third-party by the folder its file lies in; ours and the standard library are not.
PROGRAM = """
import json, sys, sysconfig
before = set(sys.modules)
import consilience
folders = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
loaded = {
    name.partition(".")[0]
    for name in set(sys.modules) - before
    if (getattr(sys.modules[name], "__file__", None) or "").startswith(folders)
}
print(json.dumps({"third_party": sorted(loaded), "modules": sorted(set(sys.modules) - before)}))
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    """Return what a fresh interpreter loads for ``import consilience``."""
    command = [sys.executable, "-c", PROGRAM]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    answer: dict[str, list[str]] = json.loads(completed.stdout)
    return answer


def test_import_pulls_in_no_heavy_package(loaded: dict[str, list[str]]) -> None:
    assert HEAVY.isdisjoint(name.partition(".")[0] for name in loaded["modules"])


def test_numpy_is_the_only_third_party_package_imported(loaded: dict[str, list[str]]) -> None:
    assert set(loaded["third_party"]) - {"consilience"} == {"numpy"}
