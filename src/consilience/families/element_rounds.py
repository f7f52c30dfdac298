"""One round over matched elements: what the sources did, given what is believed to be real."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.families.base import GROUPS, Chunk, Sums
from consilience.families.element_table import ElementTable, Groups
from consilience.label_types.vote_correlation import discount_correlated

if TYPE_CHECKING:
    from consilience.families.elements import ElementFamily, ElementParameters

__all__ = ["Belief", "element_sums", "visibility_nodes"]

#: Points at which the visibility of elements is integrated over.
NODES = 9
#: Noise and errors of classes are kept above these, so that no source decides alone.
LEAST_NOISE, LEAST_ERROR = 1e-6, 0.02


@cache
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
        family: ElementFamily,
        parameters: ElementParameters,
        labels: Batch,
        observed: BoolArray,
        known: Batch | None = None,
        is_known: BoolArray | None = None,
    ) -> Belief:
        """Match the elements and form a belief about them."""
        from consilience.families.elements import VISIBILITY
        from consilience.kernels.element_model import believe_elements, place_elements

        table = ElementTable.of(labels, observed, family.width, known, is_known)
        groups = table.groups(family.threshold)
        shares = discount_correlated(observed, parameters.correlation)
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
            family.coincidence,
            *visibility_nodes(VISIBILITY),
        )
        wrong = np.clip(1.0 - parameters.class_accuracy, LEAST_ERROR, 0.9)
        class_weight = np.maximum(np.log((1.0 - wrong) * max(family.n_classes - 1, 1) / wrong), 0.01)
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
            family.n_classes,
        )
        return cls(table, groups, probability, unseen, exposure, *placed)


def element_sums(family: ElementFamily, parameters: ElementParameters, chunk: Chunk) -> Sums:
    """Return the expected numbers behind the next estimate of every parameter."""
    from consilience.kernels.element_model import corner_gaps

    belief = Belief.of(family, parameters, chunk.labels, chunk.observed, chunk.known, chunk.is_known)
    groups, sets = belief.groups, belief.table.sets
    m = chunk.observed.shape[1]
    counted = np.flatnonzero(groups.member_source < m)
    source, group = groups.member_source[counted], groups.member_group[counted]
    real = belief.probability[group]
    marked = np.bincount(group, minlength=len(groups.item)) > 0
    seen_as = real * belief.judged[group]
    right = sets.codes[groups.members[counted]] == belief.kinds[group]

    def by_source(weights: FloatArray) -> FloatArray:
        return np.bincount(source, weights, minlength=m).astype(np.float64)

    return Sums(
        {
            "hits": by_source(real),
            "false": by_source(1.0 - real),
            "exposure": belief.exposure,
            "real": np.array(belief.probability[marked].sum()),
            "elements": np.array(float(marked.sum())),
            "gaps": corner_gaps(
                sets.values,
                groups.starts,
                groups.members,
                groups.member_source,
                belief.probability,
                belief.places,
                m,
            ),
            "right_class": by_source(seen_as * right),
            "judged": by_source(seen_as),
            **_shares_in_common(family, belief, chunk, counted),
        }
    )


def _shares_in_common(family: ElementFamily, belief: Belief, chunk: Chunk, counted: IntArray) -> dict[str, FloatArray]:
    """Return, by group of items and source, twice what a vote has in common with the truth, and the size of both."""
    groups, m = belief.groups, chunk.observed.shape[1]
    source, group = groups.member_source[counted], groups.member_group[counted]
    common, n = belief.common[counted], len(chunk)
    if family.by_length:
        values = belief.table.sets.values[groups.members[counted]]
        claimed = values[:, 1] - values[:, 0]
        length = belief.places[:, 1] - belief.places[:, 0]
        matched = common / (1.0 + common) * (claimed + length[group])
        typical = float(length.mean()) if len(length) else 0.0
    else:
        claimed, length, matched, typical = np.ones(len(source)), np.ones(len(groups.item)), common, 1.0
    if family.n_classes:
        matched = matched * (belief.table.sets.codes[groups.members[counted]] == belief.kinds[group])
    cell = chunk.groups[groups.item[group]] * m + source
    common_twice = np.bincount(cell, 2.0 * belief.probability[group] * matched, minlength=GROUPS * m)
    twice: FloatArray = common_twice.astype(np.float64).reshape(GROUPS, m)
    size: FloatArray = np.bincount(cell, claimed, minlength=GROUPS * m).astype(np.float64).reshape(GROUPS, m)
    truth = np.bincount(groups.item, belief.probability * length, minlength=n) + belief.unseen * typical
    np.add.at(size, chunk.groups, truth[:, None] * chunk.observed)
    return {"twice_common": twice, "both_sizes": size}
