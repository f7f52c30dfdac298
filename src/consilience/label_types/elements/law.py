"""The law of sets of boxes or spans: agreement is the F1 of two votes, and EM goes over matched elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray
from consilience.estimation.pair_table import LIMIT, Forward, PairTable, agreement_table
from consilience.estimation.protocol import (
    METHODS,
    Chunk,
    Hypothesis,
    Law,
    Mixture,
    Posterior,
    Request,
    Statistics,
    Summary,
    count_statistics,
)
from consilience.label_types.elements.decoder import believe
from consilience.label_types.elements.matching import ElementTable, flat_sets
from consilience.label_types.elements.model import (
    VISIBILITY,
    Belief,
    ElementModel,
    ElementParameters,
    Matched,
    visibility_nodes,
)
from consilience.label_types.vote_pairs import pair_sums, vote_pairs

__all__ = ["ElementLaw"]

#: Pairs of votes on different items that show how close unrelated sets are.
UNRELATED_PAIRS = 400
#: Pseudo-items or -elements that draw the false rate and the noise of a source to those of all: as many as make the
#: estimate of a rate as uncertain as the rate itself.
FALSE_ITEMS, NOISE_ELEMENTS, QUALITY_ITEMS = 3.0, 8.0, 3.0
#: Noise of corners where no two marks are matched, and the least that a source has, as a share of the usual.
USUAL_NOISE, LEAST_NOISE_SHARE = 0.1, 0.2
#: Votes before a source can be called constant.
MIN_VOTES = 10


@dataclass(frozen=True)
class ElementLaw(ElementModel, Law):
    """Sets of elements, each real or false.

    Parameters
    ----------
    unrelated
        Mean similarity of sets on different items, taken from the votes.
    """

    unrelated: float = 0.0
    methods: ClassVar[tuple[str, ...]] = METHODS
    adapts_to_votes: ClassVar[bool] = True
    has_em: ClassVar[bool] = True
    rows: ClassVar[int] = 1 << 12

    @property
    def side_by_side(self) -> bool:
        return True

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> ElementLaw:
        """Look at how close votes on different items are."""
        if sample is None:
            return self
        rows, columns = np.nonzero(sample.observed)
        if len(np.unique(rows)) < 2:
            return self
        rng = np.random.default_rng(seed)
        pairs = rng.integers(0, len(rows), (2 * UNRELATED_PAIRS, 2))
        pairs = pairs[rows[pairs[:, 0]] != rows[pairs[:, 1]]]
        close = 1.0 - flat_sets(sample.labels[rows, columns], self.width).costs(pairs, self.by_length)
        return replace(self, unrelated=min(float(close.mean()), 0.95))

    def measures_like(self, other: Law) -> bool:
        return isinstance(other, ElementLaw) and replace(self, unrelated=0.0) == replace(other, unrelated=0.0)

    def cost(self, left: Batch, right: Batch) -> FloatArray:
        """Return one minus the F1 of two sets, pair by pair."""
        n = len(left)
        both = np.empty(2 * n, dtype=object)
        both[:n], both[n:] = left, right
        pairs = np.stack([np.arange(n), np.arange(n) + n], axis=1)
        return flat_sets(both, self.width).costs(pairs, self.by_length)

    # --- level 0 ------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        table = ElementTable.of(chunk.labels, chunk.observed, self.width)
        item_start, sources = table.voters
        pairs = vote_pairs(item_start)
        close = 1.0 - table.sets.costs(pairs, self.by_length)
        m = chunk.observed.shape[1]
        parts = {
            **count_statistics(chunk),
            **pair_sums(close, sources[pairs[:, 0]], sources[pairs[:, 1]], m),
            "agreement_votes": chunk.observed.sum(axis=0).astype(np.float64),
            "marks": np.bincount(sources, np.diff(table.sets.starts), minlength=m).astype(np.int64),
        }
        known = chunk.gold_rows
        if len(known) and chunk.known is not None:
            sums = np.zeros((3, m))
            for source in range(m):
                rows = known[chunk.observed[known, source]]
                if len(rows):
                    right = 1.0 - self.cost(chunk.labels[rows, source], chunk.known[rows])
                    sums[:, source] = right.sum(), right @ right, len(rows)
            names = ("gold_agreement", "gold_agreement_square", "gold_agreement_count")
            parts |= dict(zip(names, sums, strict=True))
        return Statistics(parts)

    def pair_table(self, statistics: Statistics) -> PairTable:
        by_chance = self.unrelated
        table = agreement_table(
            statistics, lambda mean, error: ((mean - by_chance) / (1.0 - by_chance), error / (1.0 - by_chance))
        )
        return replace(table, cost=(1.0 - by_chance) * (1.0 - table.value))

    def forward(self, statistics: Statistics) -> Forward:
        """Return how much independent sources agree: they miss the same elements, those that are hard to see.

        Two sources of precision and recall ``r`` have the F1 ``E sigmoid(l_a + h) sigmoid(l_b + h)`` with each other,
        the mean over the visibility h; with the truth it is ``r``.
        """
        grid = np.linspace(-LIMIT, LIMIT, 81)
        right = np.clip(1.0 - self.chance_cost * (1.0 - np.tanh(grid)), 0.005, 0.995)
        nodes, log_weight = visibility_nodes(VISIBILITY)
        level = _stretch() * (np.log(right) - np.log1p(-right))
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
        silent: BoolArray = (votes >= MIN_VOTES) & (statistics["marks"] == 0) & others_do
        return silent

    # --- level 2 ------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> ElementParameters:
        quality, spread = hypothesis.quality, hypothesis.spread
        if hypothesis.is_plain:
            quality, spread = np.full(len(quality), self._common_quality(statistics)), np.zeros(len(quality))
        right = np.clip(1.0 - self.chance_cost * (1.0 - quality), 0.02, 0.98)
        # Of what a source marks, the share that is wrong for F1 is false.
        marks = statistics["marks"].sum() / max(float(np.trace(statistics["both"])), 1.0)
        start = replace(
            self._of_rights(right),
            # What all sources share, elements that are hard to see, is in the visibility; groups share more.
            correlation=np.where(hypothesis.in_group, hypothesis.correlation, 0.0),
            spread=_slope(right) * self.chance_cost * (1.0 - quality**2) * spread,
        )
        return replace(start, false_rate=marks * (1.0 - right) + 0.01)

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
        groups, sets = belief.groups, belief.table.sets
        observed = belief.table.observed
        m = observed.shape[1]
        counted = np.flatnonzero(groups.member_source < m)
        source, group = groups.member_source[counted], groups.member_group[counted]
        real = belief.probability[group]
        marked = np.bincount(group, minlength=len(groups.item)) > 0
        seen_as = real * belief.judged[group]
        right = sets.codes[groups.members[counted]] == belief.kinds[group]

        def by_source(weights: FloatArray) -> FloatArray:
            return np.bincount(source, weights, minlength=m).astype(np.float64)

        gaps = corner_gaps(
            sets.values, groups.starts, groups.members, groups.member_source, belief.probability, belief.places, m
        )
        return Statistics(
            {
                "votes": observed.sum(axis=0).astype(np.float64),
                "hits": by_source(real),
                "false": by_source(1.0 - real),
                "exposure": belief.exposure,
                "real": np.array(belief.probability[marked].sum()),
                "elements": np.array(float(marked.sum())),
                "gaps": gaps,
                "right_class": by_source(seen_as * right),
                "judged": by_source(seen_as),
                **self._in_common(belief, counted),
            }
        )

    def _in_common(self, belief: Belief, counted: IntArray) -> dict[str, FloatArray]:
        """Return, by source, twice what its votes have in common with the truth, and the size of both."""
        groups, observed = belief.groups, belief.table.observed
        m, n = observed.shape[1], len(observed)
        source, group = groups.member_source[counted], groups.member_group[counted]
        common = belief.common[counted]
        if self.by_length:
            values = belief.table.sets.values[groups.members[counted]]
            claimed = values[:, 1] - values[:, 0]
            length = belief.places[:, 1] - belief.places[:, 0]
            matched = common / (1.0 + common) * (claimed + length[group])
            typical = float(length.mean()) if len(length) else 0.0
        else:
            claimed, length, matched, typical = np.ones(len(source)), np.ones(len(groups.item)), common, 1.0
        if self.n_classes:
            matched = matched * (belief.table.sets.codes[groups.members[counted]] == belief.kinds[group])
        truth = np.bincount(groups.item, belief.probability * length, minlength=n) + belief.unseen * typical
        twice = np.bincount(source, 2.0 * belief.probability[group] * matched, minlength=m)
        return {
            "twice_common": twice.astype(np.float64),
            "both_sizes": np.bincount(source, claimed, minlength=m) + truth @ observed,
        }

    def m_step(
        self, parameters: ElementParameters, statistics: Statistics, start: ElementParameters
    ) -> ElementParameters:
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
        class_level = _ratio(statistics["right_class"].sum(), statistics["judged"].sum(), 0.9)
        accuracy = (statistics["right_class"] + NOISE_ELEMENTS * class_level) / (statistics["judged"] + NOISE_ELEMENTS)
        precision, recall = _rates(statistics)
        return replace(
            parameters,
            logit=logit,
            false_rate=(statistics["false"] + FALSE_ITEMS * false_level) / (votes + FALSE_ITEMS),
            noise=_noise(statistics["gaps"], parameters.correlation),
            class_accuracy=np.clip(accuracy, 0.0, 1.0),
            precision=precision,
            recall=recall,
            cost=_costs(statistics),
            visibility=_visibility(statistics["exposure"], votes, visibility),
            real_share=float(np.clip((statistics["real"] + 1.0) / (statistics["elements"] + 2.0), 0.01, 0.99)),
        )

    def merge(self, mixture: Mixture) -> Mixture:
        """Return one set of rates: matched elements are the same under every hypothesis."""
        if len(mixture) == 1:
            return mixture
        first: Any = mixture[0][1]
        mean = {name: sum(share * getattr(one, name) for share, one in mixture) for name in first.as_dict()}
        return ((1.0, ElementParameters(**mean)),)

    # --- level 3 ------------------------------------------------------------------------------------

    def posterior(self, parameters: ElementParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return the sets of largest expected F1.

        The confidence is one minus the expected cost: that F1, where a match counts as much as its place is expected to
        overlap with the true one, by the noise of those who marked it.

        ``details["element_probability"]`` holds how probable it is that each element of the label is real, one array
        per item; ``details["marked_by"]`` how many sources marked it.
        """
        return believe(self, parameters, labels, observed)

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
            logit=_stretch() * (np.log(right) - np.log1p(-right)),
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

    @property
    def chance_cost(self) -> float:
        return 1.0 - self.unrelated

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return ``1 / (1 + weight)``: a weight is the odds of F1 against its complement."""
        cost: FloatArray = 1.0 / (1.0 + np.maximum(np.asarray(weight, dtype=np.float64), 0.0))
        return cost

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return ``1 / cost - 1``."""
        weight: FloatArray = 1.0 / np.clip(np.asarray(cost, dtype=np.float64), 1e-6, 1.0) - 1.0
        return weight


def _stretch() -> float:
    """Return by how much averaging over the visibility flattens a logistic curve (1.7^2 = 2.89 makes it normal)."""
    return float(np.sqrt(1.0 + VISIBILITY**2 / 2.89))


def _slope(right: FloatArray) -> FloatArray:
    """Return how fast the log-odds of marking rise with the share that is right."""
    slope: FloatArray = _stretch() / (right * (1.0 - right))
    return slope


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
    noise: FloatArray = np.sqrt(np.maximum(variance, LEAST_NOISE_SHARE**2 * level))
    return np.maximum(noise, 1e-6)


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


def _ratio(above: float, below: float, otherwise: float) -> float:
    return float(above / below) if below > 0 else otherwise
