"""The names at the top level are those of the documentation, and importing them costs little more than numpy."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import consilience as cs

ROOT = Path(__file__).resolve().parents[1]
CORE = {"LabelModel", "Votes", "LabelSpace"}
NAMES_OF_TYPES = (
    "Boxes Classes DependencyTrees FiniteMetric Hyperbolic Manifold Metric Preferences Product Rankings SO3 SPD Scores "
    "Sequences Spans Sphere Tags Texts Vectors"
)
LABEL_TYPES = set(NAMES_OF_TYPES.split())
FUNCTIONS = {"apply", "kemeny", "labeling_function", "read_votes", "simulate", "summarize", "write_labels"}
FUNCTIONS |= {"write_report"}
MODULES = {"datasets", "elements", "end_models", "exceptions", "labeling", "partitions", "plot", "preferences"}
MODULES |= {"rankings", "tables", "testing", "trees"}


def test_the_top_level_has_these_names_and_no_others():
    assert len(cs.__all__) == len(set(cs.__all__))
    assert set(cs.__all__) == CORE | LABEL_TYPES | FUNCTIONS | MODULES


def test_every_public_name_of_a_public_module_exists():
    for name in sorted(MODULES):
        module = getattr(cs, name)
        assert {public for public in module.__all__ if not hasattr(module, public)} == set(), name


def test_readers_and_writers_take_the_path_first_and_writers_then_a_model_and_votes():
    for name, function in public_objects().items():
        short = name.rpartition(".")[2]
        if short.startswith(("read_", "write_")):
            path, *others = inspect.signature(function).parameters
            assert path == "path", name
            # CoNLL-U is written from sentences, which hold what a file has beside the trees.
            assert not short.startswith("write_") or others[:2] in (["model", "votes"], ["sentences", "heads"]), name


def test_dependencies_are_looked_for_by_default():
    assert inspect.signature(cs.LabelModel).parameters["dependencies"].default is None


HEAVY = {"click", "dask", "jinja2", "matplotlib", "narwhals", "networkx", "numba", "pandas", "polars", "pyarrow"}
HEAVY |= {"pyspark", "rich", "scipy", "sklearn", "torch"}

# The difference of two snapshots leaves out what the interpreter's start-up files had already loaded.
# A module counts as third-party by the folder its file lies in; ours and the standard library are not.
PROGRAM = """
import json, sys, sysconfig
before = set(sys.modules)
import consilience
at_first = sorted(set(sys.modules) - before)
for name in consilience.__all__:
    getattr(consilience, name)
folders = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
loaded = {
    name.partition(".")[0]
    for name in set(sys.modules) - before
    if (getattr(sys.modules[name], "__file__", None) or "").startswith(folders)
}
print(json.dumps({"at_first": at_first, "third_party": sorted(loaded), "modules": sorted(set(sys.modules) - before)}))
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    """Return what a fresh interpreter loads for ``import consilience``, and for all of its names."""
    command = [sys.executable, "-c", PROGRAM]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    answer: dict[str, list[str]] = json.loads(completed.stdout)
    return answer


def test_names_pull_in_numpy_and_no_other_third_party_package(loaded):
    assert {name for name in loaded["at_first"] if "numpy" in name or "label_types" in name} == set()
    assert HEAVY.isdisjoint(name.partition(".")[0] for name in loaded["modules"])
    assert set(loaded["third_party"]) - {"consilience"} == {"numpy"}


def public_objects() -> dict[str, Any]:
    """Return every public class and function by its full name."""
    found = {name: getattr(cs, name) for name in CORE | LABEL_TYPES | FUNCTIONS}
    for module in MODULES:
        found |= {f"{module}.{name}": getattr(getattr(cs, module), name) for name in getattr(cs, module).__all__}
    families = cs.end_models.parser_families
    found |= {name: getattr(families, name) for name in families.__all__}
    return {name: one for name, one in found.items() if callable(one)}


def test_every_public_class_and_function_has_an_example():
    assert [name for name, one in public_objects().items() if ">>>" not in (inspect.getdoc(one) or "")] == []


def test_every_public_name_has_a_page_of_the_reference():
    # The pages of a module list its names by themselves.
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^   (\w+)$", page, flags=re.MULTILINE)
    assert sorted(listed) == sorted(cs.__all__)
