"""The law of sets of boxes or spans: agreement is the F1 of two votes, and EM goes over matched elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.estimation.pair_table import LIMIT, Forward
from consilience.estimation.protocol import (
    Chunk,
    Hypothesis,
    Law,
    Mixture,
    Posterior,
    Request,
    Statistics,
    Summary,
)
from consilience.label_types.elements.belief import (
    VISIBILITY,
    Belief,
    ElementModel,
    ElementParameters,
    Matched,
    decode_sets,
    visibility_nodes,
)
from consilience.label_types.pair_costs import merged_weights
from consilience.label_types.vote_pairs import SimilarityLaw

__all__ = ["ElementLaw"]

#: Pseudo-items or -elements that draw the false rate, the noise and the quality of a source to those of all: as many as
#: make the estimate of a rate as uncertain as the rate itself.
FALSE_ITEMS, NOISE_ELEMENTS, QUALITY_ITEMS = 3.0, 8.0, 3.0
#: Noise of corners where no two marks are matched, and the least that a source has, as a share of the usual.
USUAL_NOISE, LEAST_NOISE_SHARE = 0.1, 0.2
#: Votes before a source can be called constant.
MIN_VOTES = 10
#: By how much averaging over the visibility flattens a logistic curve; 1.7^2 = 2.89 makes it normal.
STRETCH = float(np.sqrt(1.0 + VISIBILITY**2 / 2.89))


@dataclass(frozen=True)
class ElementLaw(ElementModel, SimilarityLaw):
    """Sets of elements, each real or false."""

    has_em: ClassVar[bool] = True

    @property
    def side_by_side(self) -> bool:
        return True

    def measures_like(self, other: Law) -> bool:
        return isinstance(other, ElementLaw) and replace(self, unrelated=0.0) == replace(other, unrelated=0.0)

    def pair_costs(self, labels: Batch, pairs: IntArray) -> FloatArray:
        """Return one minus the F1 of pairs of sets."""
        from consilience.label_types.elements.kernels import set_costs

        return set_costs(*self.flatten(labels), pairs, self.by_length)

    # --- level 0 ------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        rows, sources = np.nonzero(chunk.observed)
        sizes = np.fromiter(map(len, chunk.labels[rows, sources]), dtype=np.int64, count=len(rows))
        marks = np.bincount(sources, sizes, minlength=chunk.observed.shape[1]).astype(np.int64)
        return Statistics({**super().statistics(chunk).parts, "marks": marks})

    def forward(self, statistics: Statistics) -> Forward:
        """Return how much independent sources agree: they miss the same elements, those that are hard to see.

        Two sources of precision and recall ``r`` have the F1 ``E sigmoid(l_a + h) sigmoid(l_b + h)`` with each other,
        the mean over the visibility h; with the truth it is ``r``.
        """
        grid = np.linspace(-LIMIT, LIMIT, 81)
        right = np.clip(1.0 - self.chance_cost * (1.0 - np.tanh(grid)), 0.005, 0.995)
        nodes, log_weight = visibility_nodes(VISIBILITY)
        level = STRETCH * _logit(right)
        seen = 1.0 / (1.0 + np.exp(-(level[:, None] + nodes)))
        common = (seen * np.exp(log_weight)) @ seen.T
        # The logistic curve is flattened by averaging, to first order: F1 with the truth stays as it was.
        scale = right / (seen @ np.exp(log_weight))
        common *= scale[:, None] * scale
        return Forward.of_table(grid, (common - self.unrelated) / self.chance_cost)

    def constant_sources(self, statistics: Statistics) -> BoolArray:
        """Return which sources never mark anything, where others do."""
        votes = np.diag(statistics["both"])
        others_do = bool(statistics["marks"].sum() > votes.sum() / 10)
        return (votes >= MIN_VOTES) & (statistics["marks"] == 0) & others_do

    # --- level 2 ------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> ElementParameters:
        quality, spread = hypothesis.quality, hypothesis.spread
        common = self._right(np.full(len(quality), self._common_quality(statistics)))
        right = common
        if not hypothesis.is_plain:
            # The pair table says by how much sources differ; its level depends on how far visibility varies.
            right = self._right(quality)
            level = np.average(_logit(common) - _logit(right), weights=np.diag(statistics["both"]) + 1e-9)
            right = 1.0 / (1.0 + np.exp(-(_logit(right) + level)))
        # Of what a source marks, the share that is wrong for F1 is false.
        marks = statistics["marks"].sum() / max(float(np.trace(statistics["both"])), 1.0)
        start = replace(
            self._of_rights(right),
            # What all sources share, elements that are hard to see, is in the visibility; groups share more.
            correlation=np.where(hypothesis.in_group, hypothesis.correlation, 0.0),
            spread=STRETCH / (right * (1.0 - right)) * self.chance_cost * (1.0 - quality**2) * spread,
        )
        return replace(start, false_rate=marks * (1.0 - right) + 0.01)

    def _right(self, quality: FloatArray) -> FloatArray:
        """Return precision and recall of sources of a given quality."""
        return np.clip(1.0 - self.chance_cost * (1.0 - quality), 0.02, 0.98)

    def _common_quality(self, statistics: Statistics) -> float:
        """Return the quality that all sources have on average, by how much they agree."""
        table = self.pair_table(statistics)
        usable = table.usable
        mean = float(np.average(table.value[usable], weights=table.both[usable])) if usable.any() else 0.25
        return float(np.sqrt(np.clip(mean, 0.01, 0.98)))

    def prepare(self, chunk: Chunk) -> Matched:
        return Matched.of(self, chunk.labels, chunk.observed, chunk.known, chunk.is_known)

    def e_step(self, parameters: ElementParameters, prepared: Matched) -> Statistics:
        """Return the expected numbers behind the next estimate of every parameter."""
        from consilience.label_types.elements.kernels import corner_gaps

        belief = Belief.of(self, parameters, prepared)
        votes, observed, probability = prepared.votes, prepared.observed, belief.probability
        n, m = observed.shape
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
        class_level = _ratio(statistics["right_class"].sum(), statistics["judged"].sum(), 0.9)
        accuracy = (statistics["right_class"] + NOISE_ELEMENTS * class_level) / (statistics["judged"] + NOISE_ELEMENTS)
        precision, recall = _rates(statistics)
        parameters = replace(
            parameters,
            noise=_noise(statistics["gaps"], parameters.correlation),
            class_accuracy=np.clip(accuracy, 0.0, 1.0),
            precision=precision,
            recall=recall,
            cost=_costs(statistics),
        )
        real = float(np.clip((statistics["real"] + 1.0) / (statistics["elements"] + 2.0), 0.01, 0.99))
        if start.correlation.any():
            # To a likelihood of discounted votes, agreement inside a group is evidence: only the pair table can say how
            # good sources are that share errors. As it cannot say how rarely they miss, a mark is not believed before
            # anybody else was heard.
            return replace(parameters, real_share=min(real, 0.5))
        votes = statistics["votes"]
        share = votes / max(votes.sum(), 1.0)
        visibility, _ = visibility_nodes(parameters.visibility)
        chance = 1.0 / (1.0 + np.exp(-(parameters.logit[:, None] + visibility)))
        gradient = statistics["hits"] - (statistics["exposure"] * chance).sum(axis=1)
        curvature = (statistics["exposure"] * chance * (1.0 - chance)).sum(axis=1)
        # The pair table says by how much sources differ; its level mixes misses with inexact places.
        level = share @ (parameters.logit - start.logit)
        pull = 1.0 / np.maximum(start.spread, 1e-3) ** 2
        gradient = gradient - pull * (parameters.logit - start.logit - level)
        logit = np.clip(parameters.logit + np.clip(gradient / (curvature + pull + 1e-9), -1.0, 1.0), -6.0, 6.0)
        false_level = statistics["false"].sum() / max(votes.sum(), 1.0) + 1e-3
        return replace(
            parameters,
            logit=logit,
            false_rate=(statistics["false"] + FALSE_ITEMS * false_level) / (votes + FALSE_ITEMS),
            visibility=_visibility(statistics["exposure"], votes, visibility),
            real_share=real,
        )

    def merge(self, mixture: Mixture) -> Mixture:
        return merged_weights(mixture)  # matched elements are the same under every hypothesis

    # --- level 3 ------------------------------------------------------------------------------------

    def posterior(self, parameters: ElementParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return the sets of largest expected F1.

        The confidence is one minus the expected cost: that F1, where a match counts as much as its place is expected to
        overlap with the true one, by the noise of those who marked it.

        ``details["element_probability"]`` holds how probable it is that each element of the label is real, one array
        per item; ``details["marked_by"]`` how many sources marked it.
        """
        return decode_sets(self, parameters, labels, observed)

    def average(self, posteriors: Sequence[tuple[float, Posterior]], decode: str) -> Posterior:
        return posteriors[0][1]  # hypotheses were merged before

    # --- in shared words --------------------------------------------------------------------------------

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

    def restore(self, fields: Mapping[str, Any]) -> ElementParameters:
        return ElementParameters(**fields)

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
    known = gaps[0, :m, m]  # the truth has no noise of its own
    known_square = np.where(known > 0, gaps[1, :m, m] / np.maximum(known, 1e-300), 0.0) ** 2
    seen = met.sum() + known.sum()
    if seen <= 0.0:
        return np.full(m, USUAL_NOISE)
    level = float((0.5 * met * square).sum() + (known * known_square).sum()) / seen
    matrix = np.diag(met.sum(axis=1) + known + NOISE_ELEMENTS) + met
    right = (met * square).sum(axis=1) + known * known_square + NOISE_ELEMENTS * level
    variance = np.linalg.solve(matrix, right)
    return np.maximum(np.sqrt(np.maximum(variance, LEAST_NOISE_SHARE**2 * level)), 1e-6)


def _visibility(exposure: FloatArray, votes: FloatArray, nodes: FloatArray) -> float:
    """Return the root mean square of the visibility of real elements, drawn to the usual one."""
    found = (votes @ exposure) / max(votes.sum(), 1.0)
    square = (found @ nodes**2 + QUALITY_ITEMS * VISIBILITY**2) / (found.sum() + QUALITY_ITEMS)
    return float(np.clip(np.sqrt(square), 0.1, VISIBILITY))


def _rates(statistics: Statistics) -> tuple[FloatArray, FloatArray]:
    """Return precision and recall of every source, drawn to those of all."""
    hits, real = statistics["hits"], statistics["exposure"].sum(axis=1)
    marks = hits + statistics["false"]
    precision, recall = _ratio(hits.sum(), marks.sum(), 0.5), _ratio(hits.sum(), real.sum(), 0.5)
    return (
        np.clip((hits + QUALITY_ITEMS * precision) / (marks + QUALITY_ITEMS), 0.0, 1.0),
        np.clip((hits + QUALITY_ITEMS * recall) / (real + QUALITY_ITEMS), 0.0, 1.0),
    )


def _costs(statistics: Statistics) -> FloatArray:
    """Return one minus the F1 between the votes of each source and the truth, drawn to that of all."""
    twice, size, votes = statistics["twice_common"], statistics["both_sizes"], statistics["votes"]
    level = _ratio(twice.sum(), size.sum(), 0.5)
    pseudo = QUALITY_ITEMS * _ratio(size.sum(), votes.sum(), 1.0)
    right = (twice + pseudo * level) / np.maximum(size + pseudo, 1e-300)
    return np.clip(1.0 - right, 1e-4, 1.0)


def _logit(share: FloatArray) -> FloatArray:
    return np.log(share) - np.log1p(-share)


def _ratio(above: float, below: float, otherwise: float) -> float:
    return float(above / below) if below > 0 else otherwise
