"""Snorkel with permutations as classes, run in an environment of its own where there is one.

``benchmarks/snorkel_environment.sh`` makes one; CONSILIENCE_SNORKEL names the interpreter of another.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from itertools import permutations
from pathlib import Path

import numpy as np

from .tables import IntArray

ROOT = Path(__file__).resolve().parents[1]
EPOCHS = 500
PROGRAM = """
import sys
import numpy as np
from snorkel.labeling.model import LabelModel
given = np.load(sys.argv[1])
model = LabelModel(cardinality=int(given["k"]), verbose=False)
model.fit(given["L"], n_epochs=int(given["epochs"]), seed=int(given["seed"]), progress_bar=False, log_freq=10**9)
np.save(sys.argv[2], model.predict(given["L"], tie_break_policy="random"))
"""


def snorkel_python() -> Path | None:
    """Return the interpreter of Snorkel's environment, if it was made; one that is named has to be there."""
    named = os.environ.get("CONSILIENCE_SNORKEL")
    path = Path(named) if named else ROOT / ".venv-snorkel" / "bin" / "python"
    if named and not path.exists():
        raise SystemExit(f"CONSILIENCE_SNORKEL names {named!r}, which is not there. Correct it, or leave it out.")
    return path if path.exists() else None


def as_classes(positions: IntArray) -> tuple[IntArray, IntArray]:
    """Return votes ``(n, m, r)`` as numbers of permutations, and the list of permutations."""
    orders = np.array(list(permutations(range(positions.shape[2]))))
    place = positions.shape[2] ** np.arange(positions.shape[2])
    codes = np.argsort(orders @ place)
    return codes[np.searchsorted((orders @ place)[codes], positions @ place)], orders


def snorkel_labels(positions: IntArray, seed: int) -> IntArray | None:
    """Return the rankings that Snorkel finds for votes ``(n, m, r)``, or None where it is not installed."""
    python = snorkel_python()
    if python is None:
        return None
    classes, orders = as_classes(positions)
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npy"
        np.savez(given, L=classes, k=len(orders), epochs=EPOCHS, seed=seed)
        subprocess.run([str(python), "-c", PROGRAM, str(given), str(found)], check=True, capture_output=True)
        return orders[np.load(found)]
