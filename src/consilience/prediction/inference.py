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
from consilience.label_types.base import LabelSpace, with_missing
from consilience.partitions.base import InMemoryPartitions, Part, VotePartitions
from consilience.prediction.source_model import SourceModel
from consilience.tables.encoding import align_sources, encode
from consilience.votes import Votes

DECODERS = ("auto", "map", "bayes")
_IMPOSSIBLE = "The numbers of this model do not fit together, so these votes cannot be labeled"
_AGAIN = "If it was read from a file, that was changed: fit and save again."


@dataclass(frozen=True, eq=False)
class Distribution:
    """What is known about the label of every item: around which value, how far, or how probable each label is.

    Parameters
    ----------
    mean, standard_deviation
        ``(n,)`` for scores, ``(n, d)`` for vectors, before any rounding or clipping; None for finite label types.
        An item nobody voted on has the mean NaN and an infinite standard deviation.
    covariance
        ``(n, d, d)`` for vectors, else None; that of the prior where nobody voted.
    probabilities
        ``(n, k)`` for finite label types, else None; the prior where nobody voted.

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

        Normal intervals, coordinate by coordinate, also where the noise has heavy tails. They count the noise
        of the votes but not the uncertainty about the sources, which matters with few items. Without a vote
        they are the whole line.
        """
        if self.mean is None or self.standard_deviation is None:
            raise UnsupportedError(
                "Labels of a finite list have probabilities, not intervals. Use the field probabilities."
            )
        if not 0.0 < level < 1.0:
            raise UnsupportedError(f"level={level!r} is not a probability. Use a number between 0 and 1, such as 0.95.")
        reach = NormalDist().inv_cdf(0.5 + level / 2.0) * self.standard_deviation
        known = np.isfinite(reach)
        center = np.where(known, self.mean, 0.0)
        return center - reach, center + reach


@dataclass(frozen=True)
class Inference:
    """What the model believes about every item, with labels as the user writes them, and which items have a vote."""

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

    def distribution(self, space: LabelSpace) -> Distribution:
        """Return the law of every label, or say what to use for label types without one."""
        belief = self.posterior
        if belief.probabilities is not None:
            return Distribution(probabilities=belief.probabilities)
        deviation, covariance = (belief.details.get(name) for name in ("standard_deviation", "covariance"))
        if deviation is None and covariance is not None:
            deviation = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
        if deviation is None:
            raise UnsupportedError(
                f"{type(space).__name__} has no mean and standard deviation, nor a probability for each label. "
                "Use posterior(votes), which holds all that is known about each item."
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

    With `labels_only` each chunk of partitions keeps labels and confidence and lets go of the rest.
    """
    if isinstance(votes, VotePartitions):

        def of_chunk(part: Part) -> Inference:
            found = infer(model, space, part.votes, decode)
            belief = found.posterior
            return replace(found, posterior=Posterior(belief.labels, belief.confidence)) if labels_only else found

        return _join(list(votes.map(of_chunk)))
    table = align_sources(votes, space, model.sources, model.names_given)
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

    The schema of model files checks numbers one by one and in known relations. Those of a changed file can each be in
    range and still be impossible together; whatever comes of them is refused here, once for all label types.
    """
    try:
        each = [(share, law.posterior(parameters, labels, observed, decode)) for share, parameters in model.mixture]
        belief = calibrated(each[0][1] if len(each) == 1 else law.average(each, decode), model.calibration)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        raise ModelFormatError(f"{_IMPOSSIBLE} ({error}). {_AGAIN}") from error
    for found, low, high in ((belief.confidence, 0.0, 1.0), (belief.labels, -np.inf, np.inf)):
        if found.dtype.kind == "f" and found.size and not low <= found.min() <= found.max() <= high:
            found = found[votes_per_item(observed) > 0]  # the rest is arbitrary
            if found.size and not low <= found.min() <= found.max() <= high:
                raise ModelFormatError(f"{_IMPOSSIBLE} (a confidence or a label is no number). {_AGAIN}")
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
