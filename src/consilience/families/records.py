"""Records: labels made of several parts, as structured arrays that also say which parts are there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray
from consilience.families.base import Chunk

__all__ = ["any_part", "is_packed", "layout", "pack", "part_labels", "part_observed", "part_of"]

LABELS, OBSERVED = "labels", "observed"


def layout(parts: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]) -> np.dtype[Any]:
    """Return the type of records whose parts have these types and label shapes."""
    labels = np.dtype([(name, dtype, shape) for name, (dtype, shape) in parts.items()])
    return np.dtype([(LABELS, labels), (OBSERVED, np.dtype([(name, np.bool_) for name in parts]))])


def pack(labels: Mapping[str, Batch], observed: Mapping[str, BoolArray]) -> Batch:
    """Return records from one array of labels per part, and from where the part is there."""
    shape = next(iter(observed.values())).shape
    dtype = layout({name: (array.dtype, array.shape[len(shape) :]) for name, array in labels.items()})
    packed = np.zeros(shape, dtype=dtype)
    for name, array in labels.items():
        packed[LABELS][name] = array
        packed[OBSERVED][name] = observed[name]
    return packed


def is_packed(array: Batch, names: tuple[str, ...]) -> bool:
    """Return whether an array holds records with these parts."""
    return array.dtype.names == (LABELS, OBSERVED) and array.dtype[LABELS].names == names


def part_labels(records: Batch, name: str) -> Batch:
    """Return the labels of one part, in an array of their own."""
    return np.ascontiguousarray(records[LABELS][name])


def part_observed(records: Batch, name: str) -> BoolArray:
    """Return where one part is there."""
    return np.ascontiguousarray(records[OBSERVED][name])


def any_part(records: Batch) -> BoolArray:
    """Return which labels hold anything at all; all of them where they are no records."""
    if records.dtype.names != (LABELS, OBSERVED):
        return np.ones(records.shape[:1], dtype=bool)
    found = np.zeros(records.shape, dtype=bool)
    for name in records.dtype[LABELS].names or ():
        found |= records[OBSERVED][name]
    return found


def part_of(chunk: Chunk, name: str) -> Chunk:
    """Return the votes on one part: a source that leaves it out abstains there."""
    observed = chunk.observed & part_observed(chunk.labels, name)
    if chunk.known is None or chunk.is_known is None:
        return Chunk(part_labels(chunk.labels, name), observed, chunk.groups)
    is_known = chunk.is_known & part_observed(chunk.known, name)
    return Chunk(part_labels(chunk.labels, name), observed, chunk.groups, part_labels(chunk.known, name), is_known)
