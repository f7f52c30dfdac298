"""What the report is about: the votes, what the model believes, and what a plain vote would say. Gathered once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.estimation.protocol import Posterior
from consilience.exceptions import ConsilienceWarning, NotFittedError, UnsupportedError
from consilience.label_model import LabelModel
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import VotePartitions
from consilience.prediction.inference import Inference, infer
from consilience.prediction.source_model import SourceModel
from consilience.tables.encoding import align_sources, encode, read_gold
from consilience.votes import Votes

__all__ = ["Evidence", "gather"]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Votes and beliefs about the same items.

    Parameters
    ----------
    votes, encoded
        As they came, and in the form of the space.
    belief
        With labels as users write them; arbitrary where nobody voted.
    rows
        The items that have a vote; `best` and `plain` are about these.
    best, plain
        Their labels in the form of the space: those of the model, and those of a plain vote.
    apart
        ``(n, m)`` distance of every vote to the label of its item; NaN where there is none.
    known
        Known labels as the votes of one source, or None.
    """

    space: LabelSpace
    model: SourceModel
    votes: Votes
    encoded: Votes
    belief: Posterior
    rows: IntArray
    best: Batch
    plain: Batch
    apart: FloatArray
    known: Votes | None

    @property
    def voted(self) -> BoolArray:
        """Which items have a vote."""
        mask = np.zeros(len(self.votes), dtype=bool)
        mask[self.rows] = True
        return mask

    @property
    def confidence(self) -> FloatArray:
        """Confidence in the label of each item that has a vote."""
        return self.belief.confidence[self.rows]

    @property
    def position(self) -> IntArray:
        """Where an item stands among those that have a vote; meaningless for the others."""
        return np.cumsum(self.voted) - 1


def gather(model: LabelModel, votes: Any, gold: Any = None) -> Evidence:
    """Return what there is to report about these votes."""
    if not isinstance(model, LabelModel):
        raise NotFittedError(
            f"A report is about a fitted LabelModel, not {type(model).__name__}. Pass the model first."
        )
    learned, space = _learned(model), model.space
    table = align_sources(_whole(votes), space, learned.sources, learned.names_given)
    encoded = encode(table, space)
    found = infer(learned, space, table, model.decode)
    rows = np.flatnonzero(found.voted)
    best = _encoded(space, found, rows)
    return Evidence(
        space=space,
        model=learned,
        votes=table,
        encoded=encoded,
        belief=found.posterior,
        rows=rows,
        best=best,
        plain=_plain_vote(model, table, rows) if len(rows) else best,
        apart=_apart(space, encoded, best, found.voted),
        known=read_gold(gold, space, len(table)),
    )


def _learned(model: LabelModel) -> SourceModel:
    if not model.__sklearn_is_fitted__():
        raise NotFittedError(
            "This LabelModel has not been fitted, so there is nothing to report. Call fit(votes) first."
        )
    return model.source_model_


def _whole(votes: Any) -> Any:
    """Return partitions as one table: the pictures need single items."""
    if isinstance(votes, VotePartitions):
        if votes.remote:
            raise UnsupportedError(
                f"A report shows single items, and the votes of {type(votes).__name__} stay where they are. Pass a "
                "sample of them: votes.sample(50_000, seed=0)."
            )
        return Votes.concatenate(list(votes.map(lambda part: part.votes)))
    return votes


def _encoded(space: LabelSpace, found: Inference, rows: IntArray) -> Batch:
    labels = found.posterior.labels[rows]
    return space.as_batch(labels) if len(rows) else labels


def _plain_vote(model: LabelModel, votes: Votes, rows: IntArray) -> Batch:
    plain = LabelModel(model.space, method="majority", dependencies="none", random_state=model.random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)  # what there is to say was said about the model itself
        plain.fit(replace(votes, names_given=True))
    return _encoded(model.space, infer(plain.source_model_, model.space, votes, model.decode), rows)


def _apart(space: LabelSpace, encoded: Votes, best: Batch, voted: BoolArray) -> FloatArray:
    apart = np.full(encoded.observed.shape, np.nan)
    position = np.cumsum(voted) - 1
    for source in range(encoded.n_sources):
        rows = np.flatnonzero(encoded.observed[:, source])
        if len(rows):
            apart[rows, source] = space.distance(encoded.labels[rows, source], best[position[rows]])
    return apart
