"""Print how much of the package one ``fit`` and ``predict`` of each label type passes through.

Files in which a function runs, jumps from one file to another, and the lines of these files. Compiled kernels run as
plain Python here, so that they count. The table in CONTRIBUTING.md comes from ``python tools/count_files_per_fit.py``.
"""

from __future__ import annotations

import os

os.environ["NUMBA_DISABLE_JIT"] = "1"

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import consilience as cs

PACKAGE = Path(cs.__file__).parent
ITEMS, SOURCES = 40, 5
SPACES = {
    "Classes": cs.Classes(3),
    "Tags": cs.Tags(3),
    "Sequences": cs.Sequences(["a", "b"]),
    "FiniteMetric": cs.FiniteMetric(np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))),
    "Scores": cs.Scores(),
    "Vectors": cs.Vectors(2),
    "Rankings": cs.Rankings(5),
    "DependencyTrees": cs.DependencyTrees(),
    "Boxes": cs.Boxes(),
    "Spans": cs.Spans(),
    "Texts": cs.Texts(),
    "Hyperbolic": cs.Hyperbolic(2),
    "Sphere": cs.Sphere(2),
    "SO3": cs.SO3(),
    "SPD": cs.SPD(2),
}


def walk(run: Callable[[], Any]) -> tuple[set[Path], int]:
    """Return the files of the package in which functions run, and how often the next one is in another file."""
    files: set[Path] = set()
    last: list[str] = [""]
    jumps = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal jumps
        name = frame.f_code.co_filename
        # Functions of other packages in between do not count.
        if event != "call" or not name.startswith(str(PACKAGE)):
            return
        files.add(Path(name))
        jumps += name != last[0]
        last[0] = name

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return files, jumps


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print("| label type | files | jumps | lines of these files |")
    print("|---|---:|---:|---:|")
    for name, space in SPACES.items():
        rng = np.random.default_rng(0)
        truth = space.random(ITEMS, rng)
        votes = cs.simulate(space, truth, np.linspace(0.5, 2.0, SOURCES), rng)
        model = cs.LabelModel(space, random_state=0)
        model.fit(votes).predict(votes)  # the first call imports and caches, which does not count
        files, jumps = walk(lambda model=model, votes=votes: model.fit(votes).predict(votes))  # type: ignore[misc]
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
        print(f"| {name} | {len(files)} | {jumps:,} | {lines:,} |", flush=True)


if __name__ == "__main__":
    main()
