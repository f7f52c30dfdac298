"""From votes and a `SourceModel` to labels, chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array
from consilience.encoding import align_sources, encode
from consilience.families.base import Posterior
from consilience.partitions import InMemoryPartitions, Part, VotePartitions
from consilience.source_model import SourceModel
from consilience.spaces.base import LabelSpace, with_missing

__all__ = ["DECODERS", "Inference", "infer"]

DECODERS = ("auto", "map", "bayes")


@dataclass(frozen=True)
class Inference:
    """What the model believes about every item, with labels as the user writes them.

    `voted` says which items have a vote.
    """

    posterior: Posterior
    voted: BoolArray

    @property
    def confidence(self) -> FloatArray:
        """Confidence of each label, 0 where nobody voted."""
        return np.where(self.voted, self.posterior.confidence, 0.0)

    def labels(self, space: LabelSpace, *, fill_missing: bool) -> Batch:
        """Return the labels; missing where nobody voted, unless filled."""
        found = self.posterior.labels
        return found if fill_missing else with_missing(found, ~self.voted, not space.contains(-1))


def infer(model: SourceModel, space: LabelSpace, votes: Any, decode: str) -> Inference:
    """Return what the model believes about every item of a table or of partitions."""
    if isinstance(votes, VotePartitions):
        return _join(list(votes.map(lambda part: _of_table(model, space, part.votes, decode))))
    return _of_table(model, space, votes, decode)


def _of_table(model: SourceModel, space: LabelSpace, votes: Any, decode: str) -> Inference:
    table = align_sources(votes, space, model.sources, model.names_given)
    encoded = encode(table, space)
    spelled_out = table.labels.ndim > 2 and table.labels.dtype.kind not in "iu"  # such as rows of probabilities
    like = table.spelling or (np.dtype(object) if spelled_out else table.labels.dtype)

    def of_part(part: Part) -> Inference:
        labels, observed = part.votes.labels, part.votes.observed
        belief = space.family.posterior(model.parameters, labels, observed, decode)
        belief = replace(belief, labels=space.as_labels(belief.labels, like))
        return Inference(belief, np.asarray(observed.any(axis=1)))

    return _join(list(InMemoryPartitions.of(encoded).map(of_part)))


def _join(parts: list[Inference]) -> Inference:
    if len(parts) == 1:
        return parts[0]
    beliefs = [part.posterior for part in parts]
    probabilities = [belief.probabilities for belief in beliefs if belief.probabilities is not None]
    joined = Posterior(
        _stack([belief.labels for belief in beliefs]),
        np.concatenate([belief.confidence for belief in beliefs]),
        np.concatenate(probabilities) if probabilities else None,
        {name: _stack([belief.details[name] for belief in beliefs]) for name in beliefs[0].details},
    )
    return Inference(joined, np.concatenate([part.voted for part in parts]))


def _stack(arrays: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Put arrays of items together; rows of different shape become objects."""
    if len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)
    return as_object_array(row for array in arrays for row in array)
