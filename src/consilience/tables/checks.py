"""Checks of what a table of votes is made of, and of what it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray
from consilience.exceptions import InvalidVotesError

__all__ = ["as_mask", "check_alignable", "check_shapes", "item_positions"]


def check_shapes(labels: Batch, observed: BoolArray, items: npt.NDArray[Any]) -> None:
    """Raise unless labels, observed mask and item ids agree on how many there are."""
    shape = observed.shape
    if len(shape) != 2 or observed.dtype != bool:
        raise InvalidVotesError(
            f"observed must be a boolean array of shape (items, sources), not {observed.dtype} "
            f"of shape {shape}. Pass for example labels != -1."
        )
    if labels.shape[:2] != shape:
        raise InvalidVotesError(
            f"labels have shape {labels.shape}, but observed has {shape}. "
            f"Their first two axes, items and sources, must be the same."
        )
    if items.shape != shape[:1]:
        raise InvalidVotesError(
            f"There are {shape[0]} items, but the item ids have shape {items.shape}. Pass one id per row of votes."
        )


def as_mask(observed: Any, labels: Batch) -> BoolArray:
    """Return what the caller says counts as a vote, as booleans."""
    mask = np.asarray(observed)
    if mask.shape != labels.shape[:2] or not np.isin(mask, (0, 1)).all():
        raise InvalidVotesError(
            f"observed must be True or False for each item and source, shape {labels.shape[:2]}, "
            f"but it is {mask.dtype} of shape {mask.shape}. "
            f"Leave it out to take None and NaN as abstentions."
        )
    return mask.astype(bool)


def item_positions(key: Any, n_items: int) -> slice | npt.NDArray[Any]:
    """Return what to index the first axis with; one position becomes a slice of one row."""
    if isinstance(key, tuple) and len(key) == 2 and _is_everything(key[1]):
        key = key[0]  # scikit-learn writes votes[rows, ...]
    if isinstance(key, slice):
        return key
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        position = int(key) + n_items * int(key < 0)
        if not 0 <= position < n_items:
            raise IndexError(f"There is no item {key}; there are {n_items} items.")
        return slice(position, position + 1)
    positions = None if isinstance(key, tuple) else np.asarray(key)
    if positions is not None and positions.shape == (0,) and positions.dtype.kind == "f":
        return positions.astype(np.intp)  # what an empty list becomes
    if positions is None or positions.ndim != 1 or positions.dtype.kind not in "biu":
        raise InvalidVotesError(
            f"Votes are indexed by item: a slice, positions or a mask, not {key!r}. "
            f"Use votes.select(names) to choose sources."
        )
    return positions


def check_alignable(parts: Sequence[tuple[bool, int]]) -> bool:
    """Raise unless the sources of several votes can be matched; return whether they have names.

    Parameters
    ----------
    parts
        For each, whether its sources have names somebody chose, and how many they are.
    """
    if not parts:
        raise InvalidVotesError("There is nothing to concatenate. Pass at least one Votes.")
    if len(set(parts)) > 1 and not all(named for named, _ in parts):
        listed = ", ".join(f"{count} {'named' if named else 'unnamed'}" for named, count in parts)
        raise InvalidVotesError(
            f"The parts have {listed} sources, so it is not known which belong together. "
            f"Name them with sources= when making the votes."
        )
    return parts[0][0]


def _is_everything(key: Any) -> bool:
    return key is Ellipsis or (isinstance(key, slice) and key == slice(None))
