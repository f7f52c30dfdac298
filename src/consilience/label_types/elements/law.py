"""Sets of boxes or spans: what is believed about matched elements, and EM over them.

A real element has a visibility h ~ N(0, visibility^2), and source s marks it with probability ``sigmoid(logit_s + h)``;
only elements that somebody marks are seen, and the number of the others is estimated as in capture-recapture studies. A
false element belongs to one source, and others hardly ever mark the same one. The votes do not show how often false
marks coincide, so this rate is a constant. How far visibility varies shows in how often three sources mark the same
element. The agreement of two votes is their F1, and the label is the set of elements with the largest expected F1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, pairwise
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from consilience.arrays import Axes, Batch, BoolArray, Correlation, FloatArray, IntArray, as_object_array
from consilience.estimation.pair_table import LIMIT, Forward
from consilience.estimation.protocol import Chunk, Hypothesis, Law, Parameters, Posterior, Request, Statistics, Summary
from consilience.label_types.elements.reader import united
from consilience.label_types.pair_costs import SimilarityLaw, vote_pairs
from consilience.label_types.triples import difficulty_nodes, seen_difficulty, unused_share
from consilience.label_types.vote_correlation import discount_correlated

#: Largest standard deviation of the visibility of real elements in log-odds, also used by the plain vote. On crowd
#: workers, 1.5, 2 and 2.5 gave costs of .296, .297 and .301: beyond 1.5, single false marks are taken for real ones.
VISIBILITY = 1.5
#: Points for the integral over the visibility of elements.
NODES = 9
#: Lower bounds of noise and of class errors, so that no source decides alone.
LEAST_NOISE, LEAST_ERROR = 1e-6, 0.02
#: Standard deviation of normal noise in mean distances, sqrt(pi / 2).
DEVIATION = 1.2533
#: Spreads of corners at which overlaps are simulated, relative to the side of the element, and draws for each.
SPREADS, DRAWS = np.linspace(0.0, 0.6, 61), 4000
#: Pseudo-counts that shrink the false rate, the noise and the quality of a source toward those of all sources. With so
#: many items or elements, the estimate of a rate is as uncertain as the rate is large.
FALSE_ITEMS, NOISE_ELEMENTS, QUALITY_ITEMS = 3.0, 8.0, 3.0
#: Noise of corners if no two marks are matched, and the least noise of a source relative to the typical one.
USUAL_NOISE, LEAST_NOISE_SHARE = 0.1, 0.2
#: Standard deviation of the log-odds of single elements, whose places and visibility are only roughly known.
MISFIT = 0.3
#: Precision and recall differ by about a quarter, which is an eighth for the rate at which three sources agree.
RECALL_LEEWAY = 0.12
#: Share of a source's cost that comes from inexact corners, if no marks match.
USUAL_PLACES = 0.3
#: Votes before a source can be called constant.
MIN_VOTES = 10
#: Averaging over the visibility flattens a logistic curve by this much. The factor 1.7^2 = 2.89 makes the curve normal.
STRETCH = float(np.sqrt(1.0 + VISIBILITY**2 / 2.89))
#: Sources whose triples are compared. They form 455 triples.
MOST_SOURCES = 15
#: Largest probability that nobody marks an element. There are then at most 49 unseen elements for each one seen.
MOST_UNSEEN = 0.98


@dataclass(frozen=True)
class ElementParameters(Parameters):
    """What m sources do to elements."""

    logit: Annotated[FloatArray, Axes("m")]  # log-odds of marking a real element of middle visibility
    false_rate: Annotated[FloatArray, Axes("m", 0.0)]  # false elements per item
    # Mean distance of corners from where they belong, as a share of the element's side
    noise: Annotated[FloatArray, Axes("m", 0.0)]
    class_accuracy: Annotated[FloatArray, Axes("m", 0.0, 1.0)]  # how often the class is right
    precision: Annotated[FloatArray, Axes("m", 0.0, 1.0)]  # share of the marks that are real
    recall: Annotated[FloatArray, Axes("m", 0.0, 1.0)]  # share of the real elements that are marked
    cost: Annotated[FloatArray, Axes("m", 0.0)]  # expected cost of a vote to the truth
    correlation: Correlation  # of errors given the truth
    # Standard deviation of the log-odds after the pair table, which limits how far EM moves them
    spread: Annotated[FloatArray, Axes("m", 0.0, infinite=True)]
    real_share: Annotated[float, Axes("", 0.0, 1.0)]  # share of real elements among those that somebody marks
    # Standard deviation of the visibility of real elements, in log-odds
    visibility: Annotated[float, Axes("", 0.0)] = VISIBILITY

    def class_weight(self, n_classes: int) -> FloatArray:
        """Return ``(m,)`` the log-odds that a vote on the class adds."""
        wrong = np.clip(1.0 - self.class_accuracy, LEAST_ERROR, 0.9)
        return np.maximum(np.log((1.0 - wrong) * max(n_classes - 1, 1) / wrong), 0.01)


class Shape(NamedTuple):
    """What is common to all sources."""

    visibility: float  # standard deviation of the visibility of real elements
    places: float  # share of a source's cost that comes from corners drawn inexactly

    def overlap(self, quality: FloatArray) -> FloatArray:
        """Return how far the marks of sources overlap with what is really there: who misses less draws better, too."""
        return 1.0 - self.places * (1.0 - np.clip(quality, 0.0, 1.0))

    def hit(self, quality: FloatArray) -> FloatArray:
        """Return the shares of the real elements that sources mark."""
        return np.clip(quality / self.overlap(quality), 0.005, 0.98)

    def level(self, hit: FloatArray) -> FloatArray:
        """Return the log-odds at middle visibility with which this share of all elements is marked."""
        grid = np.linspace(-12.0, 12.0, 481)
        nodes, log_weight = _visibility_nodes(self.visibility)
        return np.interp(hit, (1.0 / (1.0 + np.exp(-(grid[:, None] + nodes)))) @ np.exp(log_weight), grid)


class Matched(NamedTuple):
    """The elements that sources marked on some items, in groups that are taken to mean the same element.

    Marks are sorted by group, and groups by item. Matching does not depend on the parameters.
    """

    observed: BoolArray  # (n, m)
    silent: BoolArray  # (n, m) votes that nothing is there
    values: FloatArray  # (marks, 2 d) corners
    codes: IntArray  # (marks,) classes
    source: IntArray  # (marks,) the source m is the truth
    group: IntArray  # (marks,)
    starts: IntArray  # (groups + 1,) first mark of each group
    item: IntArray  # (groups,)
    item_starts: IntArray  # (n + 1,) first group of each item
    told: IntArray  # (groups,) 1 for an element known to be real, 0 for a false one, -1 where nothing is known


class Belief(NamedTuple):
    """What is believed about the matched elements of some items."""

    shares: FloatArray  # (n, m) how much each vote counts
    probability: FloatArray  # (groups,) probability of being real
    unseen: FloatArray  # (n,) expected number of real elements that nobody marked
    exposure: FloatArray  # (m, 9) real elements by visibility that each source could have marked
    places: FloatArray  # (groups, 2 d) corners
    kinds: IntArray  # (groups,) classes
    common: FloatArray  # (marks,) overlap of each mark with the place
    judged: BoolArray  # (groups,) whether marks can be judged by the class


def _visibility_nodes(spread: float) -> tuple[FloatArray, FloatArray]:
    """Return the points of visibility ``(9,)``, and the logs of their weights (Gauss and Hermite)."""
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return spread * points, np.log(weights / weights.sum())


@dataclass(frozen=True)
class ElementLaw(SimilarityLaw):
    """Sets of elements, each real or false."""

    dimension: int  # 2 for boxes, 1 for spans, whose lengths count instead of their number
    threshold: float  # overlap (intersection over union) from which marks of two sources may mean the same element
    coincidence: float  # probability that a source marks what is a false element of another source
    n_classes: int = 0  # how many classes elements may have; 0 if they have none
    # What happens to overlapping elements of a label: "keep"; for spans also "merge" (join those of one class) and
    # "forbid" (keep only the more probable one)
    overlap: str = "keep"
    parameter_class = ElementParameters
    has_em: ClassVar[bool] = True
    side_by_side: ClassVar[bool] = True

    @property
    def by_length(self) -> bool:
        """Whether lengths count, as for spans of text, instead of matched elements."""
        return self.dimension == 1

    def content(self, label: FloatArray) -> bytes:
        return label.tobytes()

    def flatten(self, labels: Batch) -> tuple[FloatArray, IntArray, IntArray]:
        """Return the corners of all elements, their classes, and where each set begins."""
        listed, width = labels.tolist(), 2 * self.dimension
        starts = np.cumsum([0, *map(len, listed)])
        flat = np.concatenate(listed) if starts[-1] else np.zeros((0, width))
        codes = flat[:, width] if flat.shape[1] > width else np.zeros(len(flat))
        return np.ascontiguousarray(flat[:, :width], dtype=np.float64), codes.astype(np.int64), starts

    def measures_like(self, other: Law) -> bool:
        return isinstance(other, ElementLaw) and replace(self, unrelated=0.0) == replace(other, unrelated=0.0)

    def pair_costs(self, labels: Batch, pairs: IntArray) -> FloatArray:
        """Return one minus the F1 of pairs of sets."""
        from consilience.label_types.elements.kernels import length_costs, set_costs

        costs = length_costs if self.by_length else set_costs
        return costs(*self.flatten(labels), np.ascontiguousarray(pairs))

    # --- level 0 ------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        """Return agreement, marks, and how marks of two and three sources match.

        ``matches``: ``(2, m, m)`` matched marks of two sources, and their overlaps. ``triples``: ``(3, k, k, k)`` marks
        of the first of three sources on items that all three saw, those that the second has, too, and all three.
        """
        matched = self.prepare(Chunk(chunk.labels, chunk.observed))
        m, few = chunk.observed.shape[1], min(chunk.observed.shape[1], MOST_SOURCES)
        mine, heard = np.zeros((len(matched.item), few)), matched.source < few
        mine[matched.group[heard], matched.source[heard]] = 1.0
        seen = chunk.observed[matched.item, :few].astype(np.float64)
        triples = np.zeros((3, few, few, few))
        for a in range(few):
            own = mine[:, a] > 0.0
            marked, there = mine[own], seen[own]
            triples[:, a] = [there.T @ there, marked.T @ there, marked.T @ marked]
        marks = np.bincount(matched.source, minlength=m)
        parts = {"marks": marks, "triples": triples, "matches": self._matches(matched, m)}
        return Statistics({**super().statistics(chunk), **parts})

    def _matches(self, matched: Matched, m: int) -> FloatArray:
        """Return ``(2, m, m)`` matched marks of two sources, and their overlaps."""
        from consilience.label_types.elements.kernels import overlaps

        left, right = np.ascontiguousarray(vote_pairs(matched.starts).T)
        cell = matched.source[left] * m + matched.source[right]
        common = overlaps(matched.values, left, right)
        if self.by_length:
            common = 2.0 * common / (1.0 + common)
        sums = np.zeros((2, m, m))
        sums[0].flat, sums[1].flat = np.bincount(cell, minlength=m * m), np.bincount(cell, common, minlength=m * m)
        return sums + sums.swapaxes(1, 2)

    def shape(self, statistics: Statistics) -> Shape:
        """Return how far visibility varies, and how much of the cost comes from inexact corners."""
        grid, level = np.linspace(0.05, VISIBILITY, 30), np.linspace(-12.0, 12.0, 161)
        points, weight = difficulty_nodes()
        hit = 1.0 / (1.0 + np.exp(-(level[:, None] + grid[:, None, None] * points)))
        sums = statistics["triples"]
        a, b, c = np.array(list(combinations(range(sums.shape[1]), 3)), dtype=np.int64).reshape(-1, 3).T
        # Precision and recall are about equal overall, so there are about as many real elements as marks.
        total = np.cbrt(sums[0][a, b, c] * sums[0][b, a, c] * sums[0][c, a, b])
        triples = np.stack([total, sums[1][a, b, c], sums[1][a, c, b], sums[1][b, c, a], sums[2][a, b, c]])
        visibility = seen_difficulty(triples, grid, hit**2 @ weight, hit**3 @ weight, RECALL_LEEWAY)
        count, common = statistics["matches"]
        some = count >= MIN_VOTES
        if not some.any():
            return Shape(visibility, USUAL_PLACES)
        # The noise of two sources adds up.
        overlap = float(np.median(common[some] / count[some]))
        alone = self._overlap_of(spread_of_overlap(overlap, self.dimension) / np.sqrt(2.0))
        agreement = float(np.median(self.pair_table(statistics).value[some]))
        quality = alone * float(np.sqrt(np.clip(agreement / overlap, 0.01, 0.9)))
        return Shape(visibility, min((1.0 - alone) / (1.0 - quality), 0.9))

    def _overlap_of(self, spread: FloatArray | float) -> Any:
        return np.interp(spread, SPREADS, _mean_overlaps(self.dimension))

    def forward(self, statistics: Statistics) -> Forward:
        """Return how much independent sources agree: they miss the same elements, those that are hard to see.

        Beyond chance two sources have the F1 ``E sigmoid(l_a + h) sigmoid(l_b + h)`` with each other, the mean over the
        visibility h, times how far their marks overlap; with the truth it is ``E sigmoid(l_a + h)``, times how far a
        mark overlaps with it.
        """
        grid, shape = np.linspace(-LIMIT, LIMIT, 81), self.shape(statistics)
        quality = np.tanh(grid)
        nodes, log_weight = _visibility_nodes(shape.visibility)
        seen = 1.0 / (1.0 + np.exp(-(shape.level(shape.hit(quality))[:, None] + nodes)))
        spread = np.interp(-shape.overlap(quality), -_mean_overlaps(self.dimension), SPREADS)
        between = self._overlap_of(np.hypot(spread[:, None], spread))
        return Forward.of_table(grid, between * ((seen * np.exp(log_weight)) @ seen.T))

    def constant_sources(self, statistics: Statistics) -> BoolArray:
        """Return which sources never mark anything, where others do."""
        votes = np.diag(statistics["both"])
        others_do = bool(statistics["marks"].sum() > votes.sum() / 10)
        return (votes >= MIN_VOTES) & (statistics["marks"] == 0) & others_do

    # --- level 2 ------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> ElementParameters:
        quality, shape = hypothesis.quality, self.shape(statistics)
        marks = statistics["marks"].sum() / max(float(np.trace(statistics["both"])), 1.0)
        if hypothesis.is_plain:
            table = self.pair_table(statistics)
            usable = table.usable
            agreement = float(np.average(table.value[usable], weights=table.both[usable])) if usable.any() else 0.25
            right = self._right(np.full(len(quality), np.sqrt(np.clip(agreement, 0.01, 0.98))))
            return replace(self._of_rights(right), false_rate=marks * (1.0 - right) + 0.01)
        hit, right = shape.hit(quality), self._right(quality)
        return replace(
            self._of_rights(right),
            logit=shape.level(hit),
            false_rate=marks * (1.0 - hit) + 0.01,
            # The visibility describes errors that all sources share. Groups share additional ones.
            correlation=np.where(hypothesis.in_group, hypothesis.correlation, 0.0),
            spread=(1.0 - quality**2) * hypothesis.spread / (hit * (1.0 - hit)),
            visibility=shape.visibility,
        )

    def _right(self, quality: FloatArray) -> FloatArray:
        """Return precision and recall of sources of a given quality."""
        return np.clip(1.0 - self.chance_cost * (1.0 - quality), 0.02, 0.98)

    def prepare(self, chunk: Chunk) -> Matched:
        """Match the elements of votes ``(n, m)``, and those of known labels."""
        from consilience.label_types.elements.kernels import match_elements

        labels, observed, is_known = chunk.labels, chunk.observed, chunk.is_known
        n, m = observed.shape
        there = observed
        if chunk.known is not None and is_known is not None:
            labels = np.column_stack([labels, chunk.known])
            there = np.column_stack([observed, is_known & observed.any(axis=1)])
        rows, columns = np.nonzero(there)
        values, codes, starts = self.flatten(labels[rows, columns])
        sizes = np.diff(starts)
        source = np.repeat(columns, sizes)
        item_starts = starts[np.searchsorted(rows, np.arange(n + 1))]
        group, item = match_elements(values, codes, source, item_starts, self.threshold)
        silent = np.zeros(there.shape, dtype=bool)
        silent[rows, columns] = sizes == 0
        order = np.argsort(group, kind="stable")
        group, source = group[order], source[order]
        told = np.full(len(item), -1)
        if is_known is not None:
            told[is_known[item]] = 0
            told[group[source == m]] = 1
        starts, item_starts = np.searchsorted(group, np.arange(len(item) + 1)), np.searchsorted(item, np.arange(n + 1))
        marks = values[order], codes[order], source, group
        return Matched(observed, silent[:, :m], *marks, starts, item, item_starts, told)

    def _believe(self, parameters: ElementParameters, matched: Matched) -> Belief:
        from consilience.label_types.elements.kernels import place_elements

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
            self.coincidence,
            *_visibility_nodes(parameters.visibility),
        )
        places, kinds, common, judged = place_elements(
            matched.values,
            matched.codes,
            matched.starts,
            matched.source,
            matched.item,
            shares,
            1.0 / np.maximum(parameters.noise, LEAST_NOISE),
            parameters.class_weight(self.n_classes),
            self.n_classes,
        )
        return Belief(shares, probability, unseen, exposure, places, kinds, common, judged)

    def e_step(self, parameters: ElementParameters, prepared: Matched) -> Statistics:
        """Return the expected numbers behind the next estimate of every parameter."""
        from consilience.label_types.elements.kernels import corner_gaps

        belief = self._believe(parameters, prepared)
        observed, probability = prepared.observed, belief.probability
        n, m = observed.shape
        votes = np.flatnonzero(prepared.source < m)  # marks that do not belong to known labels
        source, group = prepared.source[votes], prepared.group[votes]
        real = probability[group]
        marked = np.bincount(group, minlength=len(prepared.item)) > 0
        judged = real * belief.judged[group]
        right = prepared.codes[votes] == belief.kinds[group]
        common, claimed, length = belief.common[votes], np.ones(len(votes)), np.ones(len(prepared.item))
        if self.by_length:
            claimed = prepared.values[votes, 1] - prepared.values[votes, 0]
            length = belief.places[:, 1] - belief.places[:, 0]
            common = common / (1.0 + common) * (claimed + length[group])  # from intersection over union
        unseen = belief.unseen * (float(length.mean()) if len(length) else 0.0)
        truth = np.bincount(prepared.item, probability * length, minlength=n) + unseen

        def by_source(weights: FloatArray) -> FloatArray:
            return np.bincount(source, weights, minlength=m).astype(np.float64)

        gaps = corner_gaps(prepared.values, prepared.starts, prepared.source, probability, belief.places, m)
        return Statistics(
            {
                "votes": observed.sum(axis=0).astype(np.float64),
                "hits": by_source(real),
                "false": by_source(1.0 - real),
                "exposure": belief.exposure,
                "real": np.array(probability[marked].sum()),
                "elements": np.array(float(marked.sum())),
                "gaps": gaps,
                "right_class": by_source(judged * right),
                "judged": by_source(judged),
                # twice what votes have in common with the truth, and the size of both
                "twice_common": by_source(2.0 * real * common * right),
                "both_sizes": by_source(claimed) + truth @ observed,
            }
        )

    def m_step(
        self, parameters: ElementParameters, statistics: Statistics, start: ElementParameters
    ) -> ElementParameters:
        votes, hits, exposure = statistics["votes"], statistics["hits"], statistics["exposure"]
        size = statistics["both_sizes"]
        items = QUALITY_ITEMS * _ratio(size.sum(), votes.sum(), 1.0)
        parameters = replace(
            parameters,
            noise=_noise(statistics["gaps"], parameters.correlation),
            class_accuracy=_shares(statistics["right_class"], statistics["judged"], NOISE_ELEMENTS, 0.9),
            precision=_shares(hits, hits + statistics["false"], QUALITY_ITEMS, 0.5),
            recall=_shares(hits, exposure.sum(axis=1), QUALITY_ITEMS, 0.5),
            cost=_blended(start, 1.0 - _shares(statistics["twice_common"], size, items, 0.5)),
        )
        real = float(np.clip((statistics["real"] + 1.0) / (statistics["elements"] + 2.0), 0.01, 0.99))
        if start.correlation.any():
            # A likelihood of discounted votes counts agreement inside a group as evidence, so the quality of sources
            # that share errors comes from the pair table alone. The table does not show how often they miss an
            # element, so the prior probability that an element is real is at most one half.
            return replace(parameters, real_share=min(real, 0.5))
        nodes, _ = _visibility_nodes(parameters.visibility)
        chance = 1.0 / (1.0 + np.exp(-(parameters.logit[:, None] + nodes)))
        # The pair table has already used most of the information in the votes.
        left, pull = unused_share(start.spread), 1.0 / np.maximum(start.spread, 1e-3) ** 2
        gradient = left * (hits - (exposure * chance).sum(axis=1)) - pull * (parameters.logit - start.logit)
        curvature = left * (exposure * chance * (1.0 - chance)).sum(axis=1) + pull
        false_level = statistics["false"].sum() / max(votes.sum(), 1.0) + 1e-3
        found = (votes @ exposure) / max(votes.sum(), 1.0)
        square = (found @ nodes**2 + QUALITY_ITEMS * start.visibility**2) / (found.sum() + QUALITY_ITEMS)
        return replace(
            parameters,
            logit=np.clip(parameters.logit + np.clip(gradient / curvature, -1.0, 1.0), -6.0, 6.0),
            false_rate=(statistics["false"] + FALSE_ITEMS * false_level) / (votes + FALSE_ITEMS),
            visibility=float(np.clip(np.sqrt(square), 0.05, VISIBILITY)),
            real_share=real,
        )

    # --- level 3 ------------------------------------------------------------------------------------

    def posterior(self, parameters: ElementParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return the sets of largest expected F1.

        The confidence is one minus the expected cost: that F1, where a match counts as much as its place is expected to
        overlap with the true one, by the noise of those who marked it.

        ``details["element_probability"]`` holds how probable it is that each element of the label is real, one array
        per item; ``details["marked_by"]`` how many sources marked it.
        """
        matched = self.prepare(Chunk(labels, observed))
        belief = self._believe(parameters, matched)
        places = belief.places
        size = places[:, 1] - places[:, 0] if self.by_length else np.ones(len(places))
        marks = np.diff(matched.starts)
        elements = np.column_stack([places, belief.kinds]) if self.n_classes else places
        # The empty set is a vote, too. If most sources marked something, but each of them something else, every element
        # is improbable. The label is not empty even then.
        empty = (matched.silent * belief.shares).sum(axis=1) > 0.5 * belief.shares.sum(axis=1)
        real = belief.probability * size
        right = real * self._overlaps(parameters, matched, belief)
        kept, confidence = select(belief.probability, size, matched.item_starts, empty)
        # A real element may have the wrong place or class.
        known, there = (np.bincount(matched.item[kept], each[kept], minlength=len(observed)) for each in (right, real))
        confidence *= np.where(there > 0, known, 1.0) / np.where(there > 0, there, 1.0)
        if self.overlap == "forbid":
            kept[_overlapping(np.flatnonzero(kept), elements, belief.probability, matched.item)] = False
        order = np.flatnonzero(kept)
        order = order[np.lexsort((*elements[order].T[::-1], matched.item[order]))]
        starts = np.searchsorted(matched.item[order], np.arange(len(observed) + 1)).tolist()
        chosen, probability, marked_by = (
            as_object_array(flat[first:last] for first, last in pairwise(starts))
            for flat in (elements[order], belief.probability[order], marks[order])
        )
        if self.overlap == "merge":  # details are those of the most probable part
            for item in np.flatnonzero(np.diff(starts) > 1):
                chosen[item], part = united(chosen[item])
                for values in (probability, marked_by):
                    own = values[item]
                    values[item] = np.array([own[part == at].max() for at in range(len(chosen[item]))], own.dtype)
        details = {"element_probability": probability, "marked_by": marked_by}
        return Posterior(chosen, np.clip(confidence, 0.0, 1.0), None, details)

    def _overlaps(self, parameters: ElementParameters, matched: Matched, belief: Belief) -> FloatArray:
        """Return how far each place should overlap with what is really there; less where its class is in doubt."""
        total, source, group = len(belief.places), matched.source, matched.group
        share = belief.shares[matched.item[group], source]
        noise = np.maximum(parameters.noise[source], LEAST_NOISE)
        weight = np.bincount(group, share / noise, minlength=total)
        variance = DEVIATION**2 * np.bincount(group, share**2, minlength=total) / np.maximum(weight, 1e-300) ** 2
        overlap = np.interp(np.sqrt(variance), SPREADS, _mean_overlaps(self.dimension))
        if not self.n_classes:
            return overlap
        votes = share * parameters.class_weight(self.n_classes)[source]
        cell = group * self.n_classes + matched.codes
        support = np.bincount(cell, votes, minlength=total * self.n_classes).reshape(total, self.n_classes)
        support = support - support.max(axis=1, keepdims=True)
        return overlap * np.exp(support[np.arange(total), belief.kinds]) / np.exp(support).sum(axis=1)

    # --- summaries for all label types ------------------------------------------------------------------

    def summary(self, parameters: ElementParameters) -> Summary:
        cost = parameters.cost
        unknown = np.full(len(cost), np.inf)
        columns = {"precision": parameters.precision, "recall": parameters.recall, "location_noise": parameters.noise}
        if self.n_classes:
            columns["class_accuracy"] = parameters.class_accuracy
        return Summary(cost, self.weight_from_cost(cost), unknown, unknown, parameters.correlation, columns=columns)

    def from_weights(self, weight: FloatArray, request: Request) -> ElementParameters:
        """Return sources whose misses and false marks both explain their cost."""
        return self._of_rights(np.clip(1.0 - self.expected_cost(weight), 0.02, 0.98))

    def _of_rights(self, right: FloatArray) -> ElementParameters:
        """Return sources whose precision and recall are both `right`."""
        m = len(right)
        return ElementParameters(
            logit=STRETCH * _logit(right),
            false_rate=1.0 - right + 0.01,
            noise=np.full(m, USUAL_NOISE),
            class_accuracy=np.full(m, 0.9),
            precision=right,
            recall=right,
            cost=1.0 - right,
            correlation=np.zeros((m, m)),
            spread=np.zeros(m),
            real_share=0.5,
        )

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return ``1 / (1 + weight)``: a weight is the odds of F1 against its complement."""
        return 1.0 / (1.0 + np.maximum(np.asarray(weight, dtype=np.float64), 0.0))

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return ``1 / cost - 1``."""
        return 1.0 / np.clip(np.asarray(cost, dtype=np.float64), 1e-6, 1.0) - 1.0


def _noise(gaps: FloatArray, correlation: FloatArray) -> FloatArray:
    """Return the mean distance of corners from where they belong: squares add up between two sources.

    Nothing is measured against a consensus, in which the best source would find mostly itself; sources that share
    errors are not measured against each other.
    """
    m = len(correlation)
    apart = np.clip(1.0 - correlation, 0.0, 1.0)
    met, total = gaps[0, :m, :m] * apart, gaps[1, :m, :m] * apart
    square = np.where(met > 0, total / np.maximum(met, 1e-300), 0.0) ** 2
    known = gaps[0, :m, m]  # the truth has no noise
    known_square = np.where(known > 0, gaps[1, :m, m] / np.maximum(known, 1e-300), 0.0) ** 2
    seen = met.sum() + known.sum()
    if seen <= 0.0:
        return np.full(m, USUAL_NOISE)
    level = float((0.5 * met * square).sum() + (known * known_square).sum()) / seen
    matrix = np.diag(met.sum(axis=1) + known + NOISE_ELEMENTS) + met
    right = (met * square).sum(axis=1) + known * known_square + NOISE_ELEMENTS * level
    variance = np.linalg.solve(matrix, right)
    return np.maximum(np.sqrt(np.maximum(variance, LEAST_NOISE_SHARE**2 * level)), 1e-6)


def _blended(start: ElementParameters, cost: FloatArray) -> FloatArray:
    """Return costs between those of the pair table and these, which the belief about single elements gives."""
    share = start.spread**2 / (start.spread**2 + MISFIT**2)
    away = _logit(np.clip(cost, 1e-4, 1.0 - 1e-4)) - _logit(start.cost)
    return 1.0 / (1.0 + np.exp(-(_logit(start.cost) + share * away)))


def _shares(part: FloatArray, whole: FloatArray, pseudo: float, otherwise: float) -> FloatArray:
    """Return the share of each source, drawn to that of all by so many cases."""
    level = _ratio(part.sum(), whole.sum(), otherwise)
    return np.clip((part + pseudo * level) / np.maximum(whole + pseudo, 1e-300), 0.0, 1.0)


def _logit(share: FloatArray) -> FloatArray:
    return np.log(share) - np.log1p(-share)


def _ratio(above: float, below: float, otherwise: float) -> float:
    return float(above / below) if below > 0 else otherwise


def believe_elements(
    starts: IntArray,
    source: IntArray,
    item_groups: IntArray,
    shares: FloatArray,
    told: IntArray,
    logit: FloatArray,
    false_rate: FloatArray,
    real_share: float,
    coincidence: float,
    visibility: FloatArray,
    log_weight: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how probable it is that each group of marks is a real element, and what each source did about them.

    A real element has a visibility h, and source s marks it with the probability ``sigmoid(logit_s + h)``; only those
    that somebody marks are seen. A false element belongs to one source, drawn by the false rates, and every other
    source happens to mark it with the probability `coincidence`. Returned are `probability`, `unseen` and `exposure` of
    `Belief`; `shares` are 0 where a source did not see the item.
    """
    (n, m), groups = shares.shape, len(starts) - 1
    item = np.repeat(np.arange(n), np.diff(item_groups))
    group = np.repeat(np.arange(groups), np.diff(starts))
    group, who = group[source < m], source[source < m]
    share = shares[item[group], who]
    marks, own_rate, level = (np.bincount(group, share * each[who], groups) for each in (np.ones(m), false_rate, logit))
    # Probabilities by visibility that nobody marks an element, and that exactly these sources do.
    silent = log_weight - shares @ np.logaddexp(0.0, logit[:, None] + visibility)
    nobody = np.minimum(np.exp(silent).sum(axis=1), MOST_UNSEEN)
    terms = silent[item] + level[:, None] + marks[:, None] * visibility
    top = terms.max(axis=1, initial=-np.inf)
    terms = np.exp(terms - top[:, None])
    total = terms.sum(axis=1)
    present, rate = shares.sum(axis=1)[item], (shares @ false_rate)[item]
    by_truth = top + np.log(total) - np.log1p(-nobody[item])
    by_chance = np.log(np.maximum(own_rate, 1e-12) / np.maximum(rate, 1e-12))
    by_chance += np.maximum(marks - 1.0, 0.0) * np.log(coincidence)
    by_chance += (present - np.maximum(marks, 1.0)) * np.log1p(-coincidence)
    odds = np.clip(np.log(real_share) - np.log1p(-real_share) + by_truth - by_chance, -30.0, 30.0)
    probability = np.where(told >= 0, told, 1.0 / (1.0 + np.exp(-odds)))
    # If the truth of an item is known, no real element is unseen.
    known = np.bincount(item, told >= 0, n) > 0
    real = np.where(known, 0.0, np.bincount(item, probability, n) / (1.0 - nobody))
    seen = [np.bincount(item, each, n) for each in ((probability / total)[:, None] * terms).T]
    exposure = (shares != 0.0).T.astype(np.float64) @ (np.stack(seen, axis=1) + real[:, None] * np.exp(silent))
    return probability, real * nobody, exposure


# --- the label ------------------------------------------------------------------------------------------


def select(
    probability: FloatArray, size: FloatArray, starts: IntArray, may_be_empty: BoolArray
) -> tuple[BoolArray, FloatArray]:
    """Return which elements belong to the set of largest expected F1 of their item, and that F1 ``(n,)``.

    Elements are independent given the votes, and F1 is taken as the ratio of expectations: keeping the k most probable
    ones gives ``2 sum_k(q s) / (sum_k s + sum(q s))``. The empty set, where it `may_be_empty`, is right if
    nothing is real. Those of item i are from ``starts[i]`` to ``starts[i + 1]``.

    Examples
    --------
    >>> kept, expected = select(np.array([0.9, 0.2, 0.6, 0.1]), np.ones(4), np.array([0, 3, 4]), np.ones(2, dtype=bool))
    >>> kept.tolist(), expected.round(4).tolist()
    ([True, False, True, False], [0.8108, 0.9])
    """
    count = np.diff(starts)
    place = np.arange(int(count.max(initial=0)) + 1)
    there = place < count[:, None]
    chance, weight, kept = np.zeros(there.shape), np.zeros(there.shape), np.zeros(there.shape, dtype=bool)
    chance[there], weight[there] = probability, size
    order = np.argsort(np.where(there, -chance, 1.0), axis=1, kind="stable")
    chance, weight = (np.take_along_axis(part, order, axis=1) for part in (chance, weight))
    gain = chance * weight
    expected = 2.0 * gain.cumsum(axis=1) / np.maximum(weight.cumsum(axis=1) + gain.sum(axis=1, keepdims=True), 1e-300)
    expected[~there] = -1.0
    best = expected.argmax(axis=1)
    found, nothing = expected.max(axis=1), np.prod(1.0 - chance, axis=1)
    empty = (count == 0) | (may_be_empty & (nothing > found))
    np.put_along_axis(kept, order, (place <= best[:, None]) & ~empty[:, None], axis=1)
    return kept[there], np.minimum(np.where(empty, nothing, found), 1.0)


def _overlapping(kept: IntArray, spans: FloatArray, probability: FloatArray, item: IntArray) -> list[int]:
    """Return the spans that overlap a more probable one of their item."""
    left: list[int] = []
    out: list[int] = []
    for span in kept[np.lexsort((-probability[kept], item[kept]))].tolist():
        if left and item[left[-1]] != item[span]:
            left = []
        start, end = spans[span, :2]
        free = all(end <= spans[other, 0] or spans[other, 1] <= start for other in left)
        (left if free else out).append(span)
    return out


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
