"""The names at the top level are those of the documentation, importing them costs little, and no rule is broken."""

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import check_layers
import consilience as cs
from check_layers import Violation

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


Check = Callable[[Path], Iterator[Violation]]


@pytest.fixture
def broken(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes one file of a made-up code base and returns its root."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return tmp_path

    return write


@pytest.mark.parametrize("check", check_layers.CHECKS, ids=lambda check: check.__name__)
def test_the_code_base_keeps_the_rule(check):
    assert [str(violation) for violation in check(ROOT)] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("label_types/base.py", "from consilience.votes import Votes\n"),
        ("label_types/base.py", "from ..votes import Votes\n"),
        ("label_types/__init__.py", "from ..votes import Votes\n"),
        (
            "label_types/base.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import consilience.votes\n",
        ),
        ("estimation/protocol.py", "from consilience.estimation.trust import trust\n"),
        ("label_types/base.py", "def late():\n    from consilience.label_model import LabelModel\n"),
        ("partitions/base.py", "from consilience.prediction.source_model import SourceModel\n"),
        ("tables/cells.py", "from ..votes import Votes\n"),
        ("arrays.py", "from consilience.exceptions import ConsilienceError\n"),
        ("votes.py", "from consilience import LabelSpace\n"),
        ("votes.py", "from . import arrays\n"),
        ("votes.py", "import consilience as cs\n"),
        ("votes.py", "from consilience.elsewhere import thing\n"),
        ("elsewhere.py", "import numpy\n"),
    ],
)
def test_an_import_that_points_upwards_is_reported(broken, name, text):
    root = broken(f"src/consilience/{name}", text)
    assert len(list(check_layers.layer_violations(root))) == 1


@pytest.mark.parametrize("text", ["import numba\n", "def late():\n    from numba.core import types\n"])
def test_numba_outside_of_the_kernels_is_reported(broken, text):
    root = broken("src/consilience/label_types/tags/kernels.py", text)
    assert list(check_layers.numba_violations(root)) == []
    root = broken("src/consilience/label_types/tags/law.py", text)
    assert len(list(check_layers.numba_violations(root))) == 1


def test_a_label_type_that_imports_another_one_is_reported(broken):
    root = broken("src/consilience/label_types/tags/law.py", "from consilience.label_types.classes.law import X\n")
    broken("src/consilience/label_types/classes/law.py", "from consilience.label_types.dirichlet import Y\n")
    [violation] = check_layers.label_type_violations(root)
    assert violation.path.parent.name == "tags"


def test_two_files_that_import_each_other_are_reported(broken):
    root = broken("src/consilience/label_types/tags/law.py", "from consilience.label_types.tags.chains import step\n")
    broken("src/consilience/label_types/tags/chains.py", "from .law import rate\n")
    assert len(list(check_layers.cycle_violations(root))) == 2


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (check_layers.assert_violations, "labels = []\nassert labels\n"),
        (check_layers.print_violations, "def main():\n    print('hello')\n"),
    ],
)
def test_an_assert_or_a_print_in_the_package_is_reported_with_its_line(broken, check, text):
    [violation] = check(broken("src/consilience/votes.py", text))
    assert (violation.path.name, violation.line) == ("votes.py", 2)


@pytest.mark.parametrize(("text", "status"), [("import numpy\n", 0), ("assert True\n", 1)])
def test_the_exit_status_tells_whether_a_rule_is_broken(broken, text, status):
    program = Path(check_layers.__file__).read_text(encoding="utf-8")
    root = broken("tools/check_layers.py", program)
    broken("src/consilience/arrays.py", text)
    command = [sys.executable, str(root / "tools" / "check_layers.py")]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == status
    assert completed.stdout.startswith("src/consilience/arrays.py:1: uses assert" if status else "")
