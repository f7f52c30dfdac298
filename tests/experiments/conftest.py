"""What the tests of experiments and benchmarks share: they are imported from the repository and run in a small size."""

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import consilience as cs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def root_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def check_table(path: Path, command: str) -> str:
    """Return the text of a results file after a look at its command, its version and the shape of its tables."""
    text = path.read_text(encoding="utf-8")
    assert f"`{command}` · consilience {cs.__version__}" in text
    assert not re.search(r"\bnan", text)
    assert "experiments" not in command or "targets are not judged" in text
    widths = {line.count("|") for line in text.splitlines() if line.startswith("| ---")}
    assert widths
    assert {line.count("|") for line in text.splitlines() if line.startswith("|")} == widths
    return text


@pytest.fixture
def run_experiment(tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs an experiment in its small size and returns what it wrote."""

    def run(name: str, *arguments: str, seeds: int = 1) -> str:
        importlib.import_module(f"experiments.{name}").main(["--quick", "--results", str(tmp_path), *arguments])
        return check_table(tmp_path / f"{name}.md", f"python -m experiments.{name} --seeds {seeds} --quick")

    return run


@pytest.fixture
def run_benchmark(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that runs a benchmark in its small size and returns what it wrote."""

    def run(name: str) -> str:
        script = str(ROOT / "benchmarks" / f"bench_{name}.py")
        subprocess.run([sys.executable, script, "--quick", "--results", str(tmp_path)], check=True, capture_output=True)
        return check_table(tmp_path / f"{name}.md", f"python benchmarks/bench_{name}.py --quick")

    return run
