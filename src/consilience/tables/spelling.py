"""Labels as their users write them, cell by cell: names instead of the codes they are stored as."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray, as_object_array
from consilience.exceptions import InvalidVotesError
from consilience.label_types.base import LabelSpace

__all__ = ["spelled_out"]


def spelled_out(labels: Batch, observed: BoolArray, space: LabelSpace | None, spelling: np.dtype[Any] | None) -> Batch:
    """Return the table of labels as they were written; cells that are not observed hold anything.

    Parameters
    ----------
    space
        What a label is; needed where labels of names are stored as codes.
    spelling
        Type of the labels before they became codes, if they did.
    """
    if spelling is None or spelling == labels.dtype or not observed.any():
        return labels
    if space is None:
        if spelling.kind in "biuf" and labels.dtype.kind in "biuf":
            return labels
        raise InvalidVotesError(
            "The labels are stored as codes, and the names behind them are not in the votes. Pass the label type, as "
            "in votes.to_long(space)."
        )
    batch = space.as_labels(space.as_batch(labels[observed]), spelling)
    written = np.empty(observed.shape, dtype=object)
    written[observed] = as_object_array(batch.tolist() if batch.dtype != object else batch)
    return written
