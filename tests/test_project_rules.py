"""The rules of ``tools/check_layers.py`` hold, and each of them can fail."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import check_layers
from check_layers import Violation

ROOT = Path(__file__).resolve().parents[1]

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
