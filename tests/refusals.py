"""What the tests of bad input share: expected refusals, and votes with something wrong in them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import ConsilienceError

NAMES = ["alpha", "beta", "gamma", "delta", "epsilon"]


@contextmanager
def refused(error: type[ConsilienceError], *parts: str) -> Iterator[None]:
    """Expect this error, with each of these parts in its message."""
    with pytest.raises(error) as caught:
        yield
    missing = [part for part in parts if part not in str(caught.value)]
    assert not missing, f"{missing} not in {caught.value}"


def table(dtype: Any = int) -> np.ndarray:
    """Return votes of 5 sources of accuracy .8 on 200 items of 2 classes."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(200, 1))
    return np.where(rng.random((200, 5)) < 0.8, truth, 1 - truth).astype(dtype)


def with_cell(value: Any, dtype: Any = int) -> np.ndarray:
    changed = table(dtype)
    changed[17, 3] = value
    return changed


def names(codes: np.ndarray) -> np.ndarray:
    return np.array(["ham", "spam"], dtype=object)[codes]


def named() -> cs.Votes:
    return cs.Votes.from_matrix(table(), sources=NAMES)


def model(**settings: Any) -> cs.LabelModel:
    return cs.LabelModel(cs.Classes(2), **settings)


def gap(left: float, right: float) -> float:
    return abs(left - right)
