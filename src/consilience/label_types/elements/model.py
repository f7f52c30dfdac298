"""What is believed about matched elements, given how often sources miss real ones and mark false ones.

A real element has a visibility h ~ N(0, visibility^2), and source s marks it with probability ``sigmoid(logit_s + h)``;
only those that somebody marks are seen, and what nobody marked is counted as in capture-recapture studies. A false
element belongs to one source, and hardly ever do others mark the same. How often false marks coincide is not identified
by the votes, so it is a constant; how far visibility varies is then learned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.estimation.protocol import Parameters
from consilience.label_types.elements.matching import ElementTable, Groups
from consilience.label_types.vote_correlation import discount_correlated

__all__ = ["VISIBILITY", "Belief", "ElementModel", "ElementParameters", "Matched", "visibility_nodes"]

#: Largest standard deviation of the visibility of real elements in log-odds, and where learning starts: among crowd
#: workers 1.5, 2 and 2.5 gave costs of .296, .297 and .301, as beyond 1.5 single false marks are taken for real.
VISIBILITY = 1.5
#: Points at which the visibility of elements is integrated over.
NODES = 9
#: Noise and errors of classes are kept above these, so that no source decides alone.
LEAST_NOISE, LEAST_ERROR = 1e-6, 0.02


@dataclass(frozen=True)
class ElementParameters(Parameters):
    """What m sources do to elements.

    Parameters
    ----------
    logit
        ``(m,)`` log-odds of marking a real element of middle visibility.
    false_rate
        ``(m,)`` false elements per item.
    noise
        ``(m,)`` mean distance of corners from where they belong, as a share of the element's side.
    class_accuracy
        ``(m,)`` how often the class is right.
    precision, recall
        ``(m,)`` share of the marks that are real, share of the real elements that are marked.
    cost
        ``(m,)`` expected cost of a vote to the truth.
    correlation
        ``(m, m)`` of errors given the truth.
    spread
        ``(m,)`` how far EM may move the log-odds from those that the pair table gives.
    real_share
        Share of real ones among the elements that somebody marks.
    visibility
        Standard deviation of the visibility of real elements, in log-odds.
    """

    logit: FloatArray
    false_rate: FloatArray
    noise: FloatArray
    class_accuracy: FloatArray
    precision: FloatArray
    recall: FloatArray
    cost: FloatArray
    correlation: FloatArray
    spread: FloatArray
    real_share: float
    visibility: float = VISIBILITY


@dataclass(frozen=True)
class ElementModel:
    """Sets of elements, each real or false.

    Parameters
    ----------
    dimension
        2 for boxes, 1 for spans.
    threshold
        Overlap (intersection over union) from which marks of two sources may mean the same element.
    coincidence
        Probability that a source marks what is a false element of another source.
    n_classes
        How many classes elements may have; 0 if they have none.
    by_length
        Whether lengths count, as for spans of text, instead of matched elements.
    united
        Whether kept elements of one class that overlap are put together; only for spans.
    apart
        Whether of kept elements that overlap only the more probable one is left; only for spans.
    """

    dimension: int
    threshold: float
    coincidence: float
    n_classes: int = 0
    by_length: bool = False
    united: bool = False
    apart: bool = False

    @property
    def width(self) -> int:
        """Number of corners."""
        return 2 * self.dimension


@dataclass(frozen=True, eq=False)
class Matched:
    """Elements of some items, matched across sources once; matching does not depend on the parameters."""

    table: ElementTable
    groups: Groups
    is_known: BoolArray | None = None

    @classmethod
    def of(
        cls,
        model: ElementModel,
        labels: Batch,
        observed: BoolArray,
        known: Batch | None = None,
        is_known: BoolArray | None = None,
    ) -> Matched:
        """Match the elements that sources marked, and those of known labels."""
        table = ElementTable.of(labels, observed, model.width, known, is_known)
        return cls(table, table.groups(model.threshold), is_known)


def visibility_nodes(spread: float) -> tuple[FloatArray, FloatArray]:
    """Return the points of visibility ``(9,)``, and the logs of their weights (Gauss and Hermite)."""
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return spread * points, np.log(weights / weights.sum())


@dataclass(frozen=True, eq=False)
class Belief:
    """What is believed about the matched elements of some items.

    Parameters
    ----------
    probability
        ``(groups,)`` of being real.
    unseen
        ``(n,)`` expected number of real elements that nobody marked.
    exposure
        ``(m, 9)`` real elements by visibility that each source could have marked.
    places, kinds
        ``(groups, 2 d)`` and ``(groups,)``: corners and class.
    common
        ``(marks,)`` overlap of each mark with the place.
    judged
        ``(groups,)`` whether marks can be judged by the class.
    """

    table: ElementTable
    groups: Groups
    probability: FloatArray
    unseen: FloatArray
    exposure: FloatArray
    places: FloatArray
    kinds: IntArray
    common: FloatArray
    judged: BoolArray

    @classmethod
    def of(
        cls,
        model: ElementModel,
        parameters: ElementParameters,
        matched: Matched,
    ) -> Belief:
        """Form a belief about matched elements."""
        from consilience.label_types.elements.kernels import believe_elements, place_elements

        table, groups, is_known = matched.table, matched.groups, matched.is_known
        shares = discount_correlated(table.observed, parameters.correlation)
        voter_start, voters = table.voters
        probability, unseen, exposure = believe_elements(
            groups.starts,
            groups.member_source,
            groups.item_starts,
            voter_start,
            voters,
            shares,
            table.told(groups, is_known),
            parameters.logit,
            parameters.false_rate,
            float(parameters.real_share),
            model.coincidence,
            *visibility_nodes(parameters.visibility),
        )
        wrong = np.clip(1.0 - parameters.class_accuracy, LEAST_ERROR, 0.9)
        class_weight = np.maximum(np.log((1.0 - wrong) * max(model.n_classes - 1, 1) / wrong), 0.01)
        placed = place_elements(
            table.sets.values,
            table.sets.codes,
            groups.starts,
            groups.members,
            groups.member_source,
            groups.item,
            shares,
            1.0 / np.maximum(parameters.noise, LEAST_NOISE),
            class_weight,
            model.n_classes,
        )
        return cls(table, groups, probability, unseen, exposure, *placed)
