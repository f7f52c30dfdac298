"""From votes and a `SourceModel` to labels, chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.encoding import align_sources, encode
from consilience.families.base import Posterior
from consilience.partitions import InMemoryPartitions, Part, VotePartitions
from consilience.source_model import SourceModel
from consilience.spaces.base import LabelSpace, with_missing

__all__ = ["DECODERS", "Inference", "infer"]

DECODERS = ("auto", "map", "bayes")


@dataclass(frozen=True)
class Inference:
    """Labels (in the form of the space), confidence, and probabilities of finite spaces.

    `voted` says which items have a vote, `like` which type the votes came in.
    """

    labels: Batch
    confidence: FloatArray
    probabilities: FloatArray | None
    voted: BoolArray
    like: npt.DTypeLike

    def as_labels(self, space: LabelSpace, *, fill_missing: bool) -> Batch:
        """Return the labels as the user writes them; missing where nobody voted, unless filled."""
        labels = space.as_labels(self.labels, self.like)
        return labels if fill_missing else with_missing(labels, ~self.voted, not space.contains(-1))


def infer(model: SourceModel, space: LabelSpace, votes: Any, decode: str) -> Inference:
    """Return what the model believes about every item of a table or of partitions."""
    if not isinstance(votes, VotePartitions):
        table = align_sources(votes, model.sources, model.names_given)
        if len(table) == 0:
            return _of_part(model, space, Part(table), decode)
        votes = InMemoryPartitions.of(table)
    parts = list(votes.map(lambda part: _of_part(model, space, part, decode)))
    return parts[0] if len(parts) == 1 else _join(parts)


def _of_part(model: SourceModel, space: LabelSpace, part: Part, decode: str) -> Inference:
    table = align_sources(part.votes, model.sources, model.names_given)
    encoded = encode(table, space)
    observed = encoded.observed
    posterior: Posterior = space.family.posterior(model.parameters, encoded.labels, observed, decode)
    voted: BoolArray = np.asarray(observed.any(axis=1))
    return Inference(
        posterior.labels,
        np.where(voted, posterior.confidence, 0.0),
        posterior.probabilities,
        voted,
        table.labels.dtype if table.labels.ndim == 2 else np.dtype(object),
    )


def _join(parts: list[Inference]) -> Inference:
    probabilities = [part.probabilities for part in parts if part.probabilities is not None]
    return Inference(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.confidence for part in parts]),
        np.concatenate(probabilities) if probabilities else None,
        np.concatenate([part.voted for part in parts]),
        parts[0].like,
    )
