"""Rows of a table of labels by the pattern of the votes: with few sources and classes the same rows come again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from consilience.label_types.classes.law import ClassesLaw, all_patterns, few_patterns, patterns_of
from consilience.tables.encoding import align_sources, encode
from consilience.tables.writing import label_table
from consilience.votes import Votes

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from consilience.label_model import LabelModel

__all__ = ["LabelsByPattern", "labels_by_pattern"]


@dataclass(frozen=True, eq=False)
class LabelsByPattern:
    """The table of labels of every pattern of votes that there may be.

    Parameters
    ----------
    rows
        What `label_table` returns for the patterns, without the ids.
    dtype
        Of the votes whose labels these are: codes may be written otherwise than names.
    """

    model: LabelModel
    rows: pa.Table
    dtype: npt.DTypeLike

    def table(self, votes: Votes) -> pa.Table | None:
        """Return what `label_table` returns, or None for votes of another type or for few items."""
        import pyarrow as pa

        if votes.labels.dtype != self.dtype or votes.items.dtype.kind != "i":
            return None
        space, learned = self.model.space, self.model.source_model_
        table = align_sources(votes, space, learned.sources, learned.names_given)
        encoded = encode(table, space)
        numbers = patterns_of(encoded.labels, encoded.observed, int(space.n_labels or 0))
        if numbers is None:
            return None
        found = self.rows.take(pa.array(numbers))
        return found.add_column(0, "item", pa.array(table.items))


def labels_by_pattern(model: LabelModel, like: Votes) -> LabelsByPattern | None:
    """Return the labels of all patterns of votes, None where there are too many, or votes are no integers.

    Parameters
    ----------
    like
        Some of the votes that will be labelled.
    """
    space, sources = model.space, model.source_model_.sources
    k, m = space.n_labels, len(sources)
    if not isinstance(space.law, ClassesLaw) or k is None or not few_patterns(m, k):
        return None
    if like.labels.ndim != 2 or like.labels.dtype.kind not in "iu" or like.spelling is not None:
        return None
    codes, observed = all_patterns(m, k)
    labels = space.as_labels(codes, like.labels.dtype).astype(like.labels.dtype)
    patterns = Votes(labels, observed, sources, np.arange(len(codes)), names_given=like.names_given)
    return LabelsByPattern(model, label_table(model, patterns).drop_columns("item"), like.labels.dtype)
