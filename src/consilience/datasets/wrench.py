"""Five sets of the WRENCH benchmark: votes of labeling functions, with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from consilience.arrays import IntArray
from consilience.datasets.folders import Origin
from consilience.exceptions import FileFormatError, UnsupportedError
from consilience.votes import Votes

__all__ = ["WRENCH", "WrenchSet", "load_wrench"]

ORIGIN = Origin(
    "wrench",
    "votes of labeling functions of the WRENCH benchmark",
    "github.com/JieyuZ2/wrench, one <name>.npz with L_<split>, y_<split> and label_names",
)
#: Items in train, valid and test, by name.
SIZES = {
    "youtube": (1586, 120, 250),
    "sms": (4571, 500, 500),
    "trec": (4965, 500, 500),
    "semeval": (1749, 178, 600),
    "hausa": (2045, 290, 582),
}
#: The names of the sets.
WRENCH = tuple(SIZES)
SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, eq=False)
class WrenchSet:
    """Votes of labeling functions, -1 where they abstain, and the true class.

    Attributes
    ----------
    matrix : array of shape (n, m)
    truth : array of shape (n,)
    classes : tuple of str
    """

    matrix: IntArray
    truth: IntArray
    classes: tuple[str, ...]

    @property
    def votes(self) -> Votes:
        """The matrix, with sources lf0, lf1, ..."""
        names = [f"lf{column}" for column in range(self.matrix.shape[1])]
        return Votes.from_matrix(self.matrix, abstain=-1, sources=names)


def load_wrench(name: str, split: str = "train", folder: str | Path | None = None) -> WrenchSet:
    """Return one split of one set of ``wrench/<name>.npz``.

    Parameters
    ----------
    name
        "youtube", "sms", "trec", "semeval" or "hausa".
    split
        "train", "valid" or "test".
    """
    if name not in SIZES:
        raise UnsupportedError(f"There is no set {name!r}. Use one of {', '.join(map(repr, WRENCH))}.")
    if split not in SPLITS:
        raise UnsupportedError(f"There is no split {split!r}. Use one of {', '.join(map(repr, SPLITS))}.")
    path = ORIGIN.path(folder, f"{name}.npz")
    with np.load(path, allow_pickle=False) as arrays:
        needed = [f"L_{split}", f"y_{split}", "label_names"]
        missing = [key for key in needed if key not in arrays]
        if missing:
            raise FileFormatError(f"{path} has no array {missing[0]!r}. Expected are {', '.join(needed)}.")
        matrix, truth = arrays[needed[0]].astype(np.int64), arrays[needed[1]].astype(np.int64)
        classes = tuple(str(label) for label in arrays["label_names"])
    expected = SIZES[name][SPLITS.index(split)]
    if len(matrix) != expected or len(truth) != expected:
        raise FileFormatError(f"{path}: {split} has {len(matrix)} rows, not {expected}. Is it complete? Get it again.")
    return WrenchSet(matrix, truth, classes)
