"""What a model says about votes on a cluster, as a frame of the engine, with the ids."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.estimation.protocol import Posterior
from consilience.exceptions import UnsupportedError
from consilience.partitions.base import Part, VotePartitions
from consilience.tables.writing import label_column
from consilience.votes import Votes

if TYPE_CHECKING:
    import pyarrow as pa

    from consilience.label_model import LabelModel

__all__ = ["Answering", "answering", "first_votes", "without_sums"]

#: Items whose labels show the type of a label.
SHOWN = 50


@dataclass(frozen=True)
class Answering:
    """From parts to tables of answers that all have the same columns; it travels to the workers.

    Parameters
    ----------
    question
        The method of the model that is asked: predict, predict_baseline, confidence or predict_proba.
    schema
        Of the tables; None to leave their types as they come.
    """

    model: LabelModel
    question: str
    options: dict[str, Any]
    schema: pa.Schema | None = None

    def table(self, part: Part) -> pa.Table:
        """Return ids and answers of a part."""
        import pyarrow as pa

        found = getattr(self.model, self.question)(part.votes, **self.options)
        if self.question == "confidence":
            name, column = "confidence", pa.array(found)
        elif self.question == "predict_proba":
            name, column = "probabilities", pa.array(list(found), pa.list_(pa.float64()))
        else:
            name, column = "label", self._labels(found, part)
        table = pa.table({"item": pa.array(part.votes.items.tolist()), name: column})
        return table if self.schema is None else table.cast(self.schema)

    def _labels(self, labels: Any, part: Part) -> pa.Array:
        import pyarrow as pa

        silent = not part.votes.observed.any() and self.options.get("fill") is None
        if silent and self.schema is not None:  # nobody says anything that could show the type of a label
            return pa.nulls(len(labels), self.schema.field("label").type)
        return label_column(self.model.space, Posterior(labels, np.zeros(len(labels))))


def answering(model: LabelModel, partitions: VotePartitions, question: str, options: dict[str, Any]) -> Answering:
    """Return what answers each part of the partitions, after a look at the type of the answers."""
    asked = Answering(without_sums(model), question, options)
    return replace(asked, schema=asked.table(Part(first_votes(partitions))).schema)


def without_sums(model: LabelModel) -> LabelModel:
    """Return the model with what it learned but without what it learned from, which need not travel."""
    light = type(model)(**model.get_params())
    light.source_model_ = model.source_model_
    return light


def first_votes(partitions: VotePartitions) -> Votes:
    """Return the first few items with a vote; an item without one where there are none."""
    few: Votes | None = None
    for votes in partitions.map(_shown):
        few = votes
        if votes.observed.any():
            break
    if few is None:
        raise UnsupportedError("There are no items to label. Pass at least one row of votes.")
    return few


def _shown(part: Part) -> Votes:
    voted = np.flatnonzero(part.votes.observed.any(axis=1))[:SHOWN]
    return part.votes[voted] if len(voted) else part.votes[:1]
