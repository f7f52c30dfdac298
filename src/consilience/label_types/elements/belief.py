"""What is believed about matched elements, given how often sources miss real ones and mark false ones.

A real element has a visibility h ~ N(0, visibility^2), and source s marks it with probability ``sigmoid(logit_s + h)``;
only those that somebody marks are seen, and what nobody marked is counted as in capture-recapture studies. A false
element belongs to one source, and hardly ever do others mark the same. How often false marks coincide is not identified
by the votes, so it is a constant; how far visibility varies is then learned. The label is the set of elements with the
largest expected F1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.estimation.protocol import Parameters, Posterior
from consilience.label_types.elements.reader import united
from consilience.label_types.vote_correlation import discount_correlated

__all__ = [
    "VISIBILITY",
    "Belief",
    "ElementModel",
    "ElementParameters",
    "Matched",
    "decode_sets",
    "select",
    "spread_of_overlap",
    "visibility_nodes",
]

#: Largest standard deviation of the visibility of real elements in log-odds, and where learning starts: among crowd
#: workers 1.5, 2 and 2.5 gave costs of .296, .297 and .301, as beyond 1.5 single false marks are taken for real.
VISIBILITY = 1.5
#: Points at which the visibility of elements is integrated over.
NODES = 9
#: Noise and errors of classes are kept above these, so that no source decides alone.
LEAST_NOISE, LEAST_ERROR = 1e-6, 0.02
#: Standard deviation of normal noise in mean distances, sqrt(pi / 2).
DEVIATION = 1.2533
#: Spreads of corners, in sides of the element, at which overlaps are simulated, and draws for each.
SPREADS, DRAWS = np.linspace(0.0, 0.6, 61), 4000


@dataclass(frozen=True)
class ElementParameters(Parameters):
    """What m sources do to elements."""

    logit: FloatArray  # (m,) log-odds of marking a real element of middle visibility
    false_rate: FloatArray  # (m,) false elements per item
    noise: FloatArray  # (m,) mean distance of corners from where they belong, as a share of the element's side
    class_accuracy: FloatArray  # (m,) how often the class is right
    # precision and recall: (m,) share of the marks that are real, share of the real elements that are marked
    precision: FloatArray
    recall: FloatArray
    cost: FloatArray  # (m,) expected cost of a vote to the truth
    correlation: FloatArray  # (m, m) of errors given the truth
    spread: FloatArray  # (m,) how far EM may move the log-odds from those that the pair table gives
    real_share: float  # share of real ones among the elements that somebody marks
    visibility: float = VISIBILITY  # standard deviation of the visibility of real elements, in log-odds

    def class_weight(self, n_classes: int) -> FloatArray:
        """Return ``(m,)`` the log-odds that a vote on the class adds."""
        wrong = np.clip(1.0 - self.class_accuracy, LEAST_ERROR, 0.9)
        return np.maximum(np.log((1.0 - wrong) * max(n_classes - 1, 1) / wrong), 0.01)


@dataclass(frozen=True)
class ElementModel:
    """Sets of elements, each real or false."""

    dimension: int  # 2 for boxes, 1 for spans, whose lengths count instead of their number
    threshold: float  # overlap (intersection over union) from which marks of two sources may mean the same element
    coincidence: float  # probability that a source marks what is a false element of another source
    n_classes: int = 0  # how many classes elements may have; 0 if they have none
    # What is done about elements of a label that overlap: "keep"; and for spans also "merge" (those of one class are
    # put together) and "forbid" (only the more probable one is left)
    overlap: str = "keep"

    @property
    def by_length(self) -> bool:
        """Whether lengths count, as for spans of text, instead of matched elements."""
        return self.dimension == 1

    def flatten(self, labels: Batch) -> tuple[FloatArray, IntArray, IntArray]:
        """Return the corners of all elements, their classes, and where each set begins."""
        listed, width = labels.tolist(), 2 * self.dimension
        starts = np.cumsum([0, *map(len, listed)])
        flat = np.concatenate(listed) if starts[-1] else np.zeros((0, width))
        codes = flat[:, width] if flat.shape[1] > width else np.zeros(len(flat))
        return np.ascontiguousarray(flat[:, :width], dtype=np.float64), codes.astype(np.int64), starts


@dataclass(frozen=True, eq=False)
class Matched:
    """The elements that sources marked on some items, in groups that are taken to mean the same element.

    Marks are sorted by group, and groups by item. Matching does not depend on the parameters.
    """

    observed: BoolArray  # (n, m)
    silent: BoolArray  # (n, m) votes that nothing is there
    # values and codes: (marks, 2 d) corners and (marks,) class of each mark
    values: FloatArray
    codes: IntArray
    # source and group: (marks,); the source m is the truth
    source: IntArray
    group: IntArray
    starts: IntArray  # (groups + 1,) first mark of each group
    item: IntArray  # (groups,)
    item_starts: IntArray  # (n + 1,) first group of each item
    # (groups,) 1 for an element known to be real, 0 for one known to be false, -1 where nothing is known
    told: IntArray

    @classmethod
    def of(
        cls,
        model: ElementModel,
        labels: Batch,
        observed: BoolArray,
        known: Batch | None = None,
        is_known: BoolArray | None = None,
    ) -> Matched:
        """Match the elements of votes ``(n, m)``, and those of known labels."""
        from consilience.label_types.elements.kernels import match_elements

        n, m = observed.shape
        there = observed
        if known is not None and is_known is not None:
            labels = np.column_stack([labels, known])
            there = np.column_stack([observed, is_known & observed.any(axis=1)])
        rows, columns = np.nonzero(there)
        values, codes, starts = model.flatten(labels[rows, columns])
        sizes = np.diff(starts)
        source = np.repeat(columns, sizes)
        item_starts = starts[np.searchsorted(rows, np.arange(n + 1))]
        group, item = match_elements(values, codes, source, item_starts, model.threshold)
        silent = np.zeros(there.shape, dtype=bool)
        silent[rows, columns] = sizes == 0
        order = np.argsort(group, kind="stable")
        group, source = group[order], source[order]
        told = np.full(len(item), -1)
        if is_known is not None:
            told[is_known[item]] = 0
            told[group[source == m]] = 1
        group_starts, item_groups = (
            np.searchsorted(where, np.arange(count + 1)) for where, count in ((group, len(item)), (item, n))
        )
        return cls(
            observed, silent[:, :m], values[order], codes[order], source, group, group_starts, item, item_groups, told
        )

    @cached_property
    def votes(self) -> IntArray:
        """Marks that are not those of known labels."""
        return np.flatnonzero(self.source < self.observed.shape[1])


@dataclass(frozen=True, eq=False)
class Belief:
    """What is believed about the matched elements of some items."""

    matched: Matched
    shares: FloatArray  # (n, m) how much each vote counts
    probability: FloatArray  # (groups,) of being real
    unseen: FloatArray  # (n,) expected number of real elements that nobody marked
    exposure: FloatArray  # (m, 9) real elements by visibility that each source could have marked
    # places and kinds: (groups, 2 d) and (groups,): corners and class
    places: FloatArray
    kinds: IntArray
    common: FloatArray  # (marks,) overlap of each mark with the place
    judged: BoolArray  # (groups,) whether marks can be judged by the class

    @classmethod
    def of(cls, model: ElementModel, parameters: ElementParameters, matched: Matched) -> Belief:
        """Form a belief about matched elements."""
        from consilience.label_types.elements.kernels import believe_elements, place_elements

        shares = discount_correlated(matched.observed, parameters.correlation)
        probability, unseen, exposure = believe_elements(
            matched.starts,
            matched.source,
            matched.item_starts,
            shares,
            matched.told,
            parameters.logit,
            parameters.false_rate,
            float(parameters.real_share),
            model.coincidence,
            *visibility_nodes(parameters.visibility),
        )
        places, kinds, common, judged = place_elements(
            matched.values,
            matched.codes,
            matched.starts,
            matched.source,
            matched.item,
            shares,
            1.0 / np.maximum(parameters.noise, LEAST_NOISE),
            parameters.class_weight(model.n_classes),
            model.n_classes,
        )
        return cls(matched, shares, probability, unseen, exposure, places, kinds, common, judged)


def visibility_nodes(spread: float) -> tuple[FloatArray, FloatArray]:
    """Return the points of visibility ``(9,)``, and the logs of their weights (Gauss and Hermite)."""
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return spread * points, np.log(weights / weights.sum())


# --- the label ------------------------------------------------------------------------------------------


def select(probability: FloatArray, size: FloatArray, may_be_empty: bool = True) -> tuple[IntArray, float]:
    """Return the elements of the set of largest expected F1, most probable first, and that F1.

    Elements are independent given the votes, and F1 is taken as the ratio of expectations: keeping the k most probable
    ones gives ``2 sum_k(q s) / (sum_k s + sum(q s))``. The empty set, where it `may_be_empty`, is right if
    nothing is real.

    Examples
    --------
    >>> kept, expected = select(np.array([0.9, 0.2, 0.6]), np.ones(3))
    >>> kept.tolist(), round(expected, 4)
    ([0, 2], 0.8108)
    >>> select(np.array([0.1]), np.ones(1))
    (array([], dtype=int64), 0.9)
    """
    if len(probability) == 0:
        return np.zeros(0, dtype=np.int64), 1.0
    order = np.argsort(-probability, kind="stable")
    gain = (probability * size)[order]
    expected = 2.0 * np.cumsum(gain) / np.maximum(np.cumsum(size[order]) + gain.sum(), 1e-300)
    best = int(expected.argmax())
    nothing = float(np.prod(1.0 - probability))
    if may_be_empty and nothing > expected[best]:
        return np.zeros(0, dtype=np.int64), nothing
    return order[: best + 1], float(min(expected[best], 1.0))


def decode_sets(model: ElementModel, parameters: ElementParameters, labels: Batch, observed: BoolArray) -> Posterior:
    """Return the sets of largest expected F1."""
    belief = Belief.of(model, parameters, Matched.of(model, labels, observed))
    matched, places = belief.matched, belief.places
    size = places[:, 1] - places[:, 0] if model.by_length else np.ones(len(places))
    marks = np.diff(matched.starts)
    elements = np.column_stack([places, belief.kinds]) if model.n_classes else places
    # That nothing is there is a vote of its own. Where most sources saw something, each something else, elements that
    # are improbable one by one are no reason to return none of them.
    empty = (matched.silent * belief.shares).sum(axis=1) > 0.5 * belief.shares.sum(axis=1)
    real = belief.probability * size
    right = real * _overlaps(model, parameters, belief)
    n = len(observed)
    chosen, probability, marked_by = (np.empty(n, dtype=object) for _ in range(3))
    confidence = np.ones(n)
    for item in range(n):
        first, last = matched.item_starts[item], matched.item_starts[item + 1]
        kept, confidence[item] = select(belief.probability[first:last], size[first:last], bool(empty[item]))
        kept = kept + first
        if len(kept):  # what is real is not yet in its right place, and of its right class
            confidence[item] *= right[kept].sum() / real[kept].sum() if real[kept].sum() > 0 else 0.0
        if model.overlap == "forbid":
            kept = _without_overlaps(kept, elements)
        kept = kept[np.lexsort(elements[kept].T[::-1])]
        label, own, seen_by = elements[kept], belief.probability[kept], marks[kept]
        if model.overlap == "merge":  # the most probable part speaks for the whole
            label, part = united(label)
            own, seen_by = (_largest(values, part, len(label)) for values in (own, seen_by))
        chosen[item], probability[item], marked_by[item] = label, own, seen_by
    details = {"element_probability": probability, "marked_by": marked_by}
    return Posterior(chosen, np.clip(confidence, 0.0, 1.0), None, details)


def _largest(values: Batch, part: IntArray, count: int) -> Batch:
    largest = np.zeros(count, dtype=values.dtype)
    np.maximum.at(largest, part, values)
    return largest


def _without_overlaps(kept: IntArray, elements: FloatArray) -> IntArray:
    """Leave out spans that overlap a more probable one; `kept` has the most probable first."""
    left: list[int] = []
    for element in kept.tolist():
        start, end = elements[element, :2]
        if all(end <= elements[other, 0] or elements[other, 1] <= start for other in left):
            left.append(element)
    return np.array(left, dtype=np.int64)


def _overlaps(model: ElementModel, parameters: ElementParameters, belief: Belief) -> FloatArray:
    """Return how far each place is expected to overlap with what is really there; less where its class is in doubt."""
    matched, total = belief.matched, len(belief.places)
    source, group = matched.source, matched.group
    share = belief.shares[matched.item[group], source]
    noise = np.maximum(parameters.noise[source], LEAST_NOISE)
    weight = np.bincount(group, share / noise, minlength=total)
    variance = DEVIATION**2 * np.bincount(group, share**2, minlength=total) / np.maximum(weight, 1e-300) ** 2
    overlap = np.interp(np.sqrt(variance), SPREADS, _mean_overlaps(model.dimension))
    if not model.n_classes:
        return overlap
    votes = share * parameters.class_weight(model.n_classes)[source]
    cell = group * model.n_classes + matched.codes
    support = np.bincount(cell, votes, minlength=total * model.n_classes).reshape(total, -1)
    support = support - support.max(axis=1, keepdims=True)
    return overlap * np.exp(support[np.arange(total), belief.kinds]) / np.exp(support).sum(axis=1)


# --- how far an element overlaps with itself after its corners moved by chance ----------------------------------


def spread_of_overlap(overlap: float, dimension: int) -> float:
    """Return the standard deviation of corners, in sides, at which elements overlap that much on average."""
    return float(np.interp(-overlap, -_mean_overlaps(dimension), SPREADS))


@cache
def _mean_overlaps(dimension: int) -> FloatArray:
    """Return the mean overlaps at `SPREADS`: intersection over union for boxes, the F1 of characters for spans."""
    noise = np.random.default_rng(0).normal(size=(DRAWS, 2 * dimension))
    means = []
    for spread in SPREADS:
        ends = np.stack([spread * noise[:, :dimension], 1.0 + spread * noise[:, dimension:]])
        one, two = ends.min(axis=0), ends.max(axis=0)
        inside = np.clip(np.minimum(two, 1.0) - np.maximum(one, 0.0), 0.0, None).prod(axis=1)
        share = inside / ((two - one).prod(axis=1) + 1.0 - inside)
        means.append(float((2.0 * share / (1.0 + share)).mean() if dimension == 1 else share.mean()))
    return np.array(means)
