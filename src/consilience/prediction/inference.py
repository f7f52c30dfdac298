"""From votes and a `SourceModel` to labels, chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array, votes_per_item
from consilience.estimation.calibration import calibrated
from consilience.estimation.protocol import Law, Posterior
from consilience.exceptions import ModelFormatError, UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import InMemoryPartitions, Part, VotePartitions
from consilience.prediction.source_model import SourceModel
from consilience.tables.encoding import encode
from consilience.votes import Votes

DECODERS = ("auto", "map", "bayes")
_IMPOSSIBLE = "The numbers of this model do not fit together, so these votes cannot be labeled"
_AGAIN = "If the model was read from a file, the file was changed: fit and save again."


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distribution of the label of every item: mean and standard deviation, or the probability of each label.

    Parameters
    ----------
    mean, standard_deviation
        ``(n,)`` for scores, ``(n, d)`` for vectors, before any rounding or clipping; None for finite label types. An
        item without votes has the mean NaN and an infinite standard deviation.
    covariance
        ``(n, d, d)`` for vectors, else None; that of the prior for items without votes.
    probabilities
        ``(n, k)`` for finite label types, else None; the prior for items without votes.

    Examples
    --------
    >>> known = Distribution(mean=np.array([2.0, np.nan]), standard_deviation=np.array([0.5, np.inf]))
    >>> [end.round(2).tolist() for end in known.interval(0.95)]
    [[1.02, -inf], [2.98, inf]]
    """

    mean: FloatArray | None = None
    standard_deviation: FloatArray | None = None
    covariance: FloatArray | None = None
    probabilities: FloatArray | None = None

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the central interval that holds the label with this probability.

        These are normal intervals, coordinate by coordinate, even if the noise has heavy tails. They include the noise
        of the votes but not the uncertainty about the sources, which matters with few items. For an item without votes
        they are infinite.
        """
        if self.mean is None or self.standard_deviation is None:
            raise UnsupportedError("Finite label types have probabilities, not intervals. Use the field probabilities.")
        if not 0.0 < level < 1.0:
            raise UnsupportedError(f"level={level!r} is not a probability. Use a number between 0 and 1, such as 0.95.")
        reach = NormalDist().inv_cdf(0.5 + level / 2.0) * self.standard_deviation
        known = np.isfinite(reach)
        center = np.where(known, self.mean, 0.0)
        return center - reach, center + reach


@dataclass(frozen=True)
class Inference:
    """What the model believes about every item, with labels as the user writes them, and which items have votes."""

    posterior: Posterior
    voted: BoolArray

    @property
    def confidence(self) -> FloatArray:
        """Confidence of each label, 0 where nobody voted."""
        return np.where(self.voted, self.posterior.confidence, 0.0)

    def labels(self, space: LabelSpace, *, fill_missing: bool) -> Batch:
        """Return the labels. Where nobody voted they are filled in, or missing: NaN, -1 or None, by type."""
        found = self.posterior.labels
        if fill_missing or self.voted.all():
            return found
        kind: Any = object
        missing: float | None = None
        if found.dtype.kind == "f":
            kind, missing = found.dtype, np.nan
        elif found.dtype.kind in "iu" and not space.contains(-1):
            kind, missing = np.int64, -1
        result = found.astype(kind)
        result[~self.voted] = missing
        return result

    def distribution(self, space: LabelSpace) -> Distribution:
        """Return the distribution of every label, or raise an error for label types without one."""
        belief = self.posterior
        if belief.probabilities is not None:
            return Distribution(probabilities=belief.probabilities)
        deviation, covariance = (belief.details.get(name) for name in ("standard_deviation", "covariance"))
        if deviation is None and covariance is not None:
            deviation = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
        if deviation is None:
            raise UnsupportedError(
                f"{type(space).__name__} has neither a mean and standard deviation nor probabilities for its labels. "
                "Use posterior(votes), which has all details of each item."
            )
        mean = np.asarray(belief.details.get("mean", belief.labels), dtype=np.float64)
        voted = self.voted.reshape(-1, *[1] * (mean.ndim - 1))
        return Distribution(np.where(voted, mean, np.nan), np.where(voted, deviation, np.inf), covariance)


def vote_distances(space: LabelSpace, votes: Votes, labels: Batch) -> FloatArray:
    """Return ``(n, m)`` distances of encoded votes to the label of their item; NaN where there is no vote."""
    distance = np.full(votes.observed.shape, np.nan)
    for source in range(votes.n_sources):
        rows = np.flatnonzero(votes.observed[:, source])
        if len(rows):
            distance[rows, source] = space.distance(votes.labels[rows, source], labels[rows])
    return distance


def infer(model: SourceModel, space: LabelSpace, votes: Any, decode: str, *, labels_only: bool = False) -> Inference:
    """Return what the model believes about every item of a table or of partitions.

    With `labels_only`, chunks of partitions keep labels and confidence only.
    """
    if isinstance(votes, VotePartitions):

        def of_chunk(part: Part) -> Inference:
            found = infer(model, space, part.votes, decode)
            belief = found.posterior
            return replace(found, posterior=Posterior(belief.labels, belief.confidence)) if labels_only else found

        return _join(list(votes.map(of_chunk)))
    table = model.aligned(votes, space)
    encoded = encode(table, space)
    spelled_out = table.labels.ndim > 2 and table.labels.dtype.kind not in "iu"  # such as rows of probabilities
    like = table.spelling or (np.dtype(object) if spelled_out else table.labels.dtype)

    def of_part(part: Part) -> Inference:
        labels, observed = part.votes.labels, part.votes.observed
        belief = believe(model, space.law, labels, observed, decode)
        belief = replace(belief, labels=space.as_labels(belief.labels, like))
        return Inference(belief, votes_per_item(observed) > 0)

    found = _join(list(InMemoryPartitions.suited(encoded, space.law).map(of_part)))
    labels = space.in_words_of(found.posterior.labels, table.labels, table.observed)
    return replace(found, posterior=replace(found.posterior, labels=labels))


def believe(model: SourceModel, law: Law, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
    """Return what the model believes about encoded votes: the average over its hypotheses, calibrated.

    The numbers of a changed model file can each pass the schema and still be impossible together. If they lead to
    impossible results, these are refused here, once for all label types.
    """
    try:
        each = [(share, law.posterior(parameters, labels, observed, decode)) for share, parameters in model.mixture]
        belief = calibrated(each[0][1] if len(each) == 1 else law.average(each, decode), model.calibration)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        raise ModelFormatError(f"{_IMPOSSIBLE} ({error}). {_AGAIN}") from error
    for found, low, high in ((belief.confidence, 0.0, 1.0), (belief.labels, -np.inf, np.inf)):
        if found.dtype.kind == "f" and found.size and not low <= found.min() <= found.max() <= high:
            found = found[votes_per_item(observed) > 0]  # results for items without votes are arbitrary
            if found.size and not low <= found.min() <= found.max() <= high:
                raise ModelFormatError(f"{_IMPOSSIBLE} (a confidence or a label is not a number). {_AGAIN}")
    return belief


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
