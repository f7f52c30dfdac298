"""The names at the top level are those of the documentation, and importing them costs little more than numpy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import consilience as cs

CORE = {"LabelModel", "Votes", "LabelSpace"}
LABEL_TYPES = {
    "Boxes",
    "Classes",
    "DependencyTrees",
    "FiniteMetric",
    "Hyperbolic",
    "Manifold",
    "Metric",
    "Preferences",
    "Product",
    "Rankings",
    "SO3",
    "SPD",
    "Scores",
    "Sequences",
    "Spans",
    "Sphere",
    "Tags",
    "Texts",
    "Vectors",
}
FUNCTIONS = {
    "apply",
    "kemeny",
    "labeling_function",
    "read_votes",
    "simulate",
    "summarize",
    "write_labels",
    "write_report",
}
MODULES = {
    "datasets",
    "elements",
    "end_models",
    "exceptions",
    "labeling",
    "partitions",
    "preferences",
    "rankings",
    "tables",
    "testing",
    "trees",
}


def test_the_top_level_has_these_names_and_no_others():
    assert len(cs.__all__) == len(set(cs.__all__))
    assert set(cs.__all__) == CORE | LABEL_TYPES | FUNCTIONS | MODULES


def test_every_public_name_of_a_public_module_exists():
    for name in sorted(MODULES):
        module = getattr(cs, name)
        assert {public for public in module.__all__ if not hasattr(module, public)} == set(), name


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


def test_import_pulls_in_numpy_and_no_other_third_party_package(loaded: dict[str, list[str]]) -> None:
    assert HEAVY.isdisjoint(name.partition(".")[0] for name in loaded["modules"])
    assert set(loaded["third_party"]) - {"consilience"} == {"numpy"}
