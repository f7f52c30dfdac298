"""Judges who compare two items at a time: Bradley and Terry's law with ties, one set of traits per judge.

The rows of the votes are groups of items: a single arena, or one prompt each. A vote holds all comparisons of a judge
in a row. Scores of items are shared by all votes, so judges are learned with the likelihood of
`consilience.label_types.preferences.judges`, on counts of comparisons. The trust engine compares judges on the pairs of
items that both judged: it gives the prior of the discriminations, and says who repeats whom.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_object_array
from consilience.estimation.pair_table import LIMIT, Forward, PairTable, agreement_table
from consilience.estimation.protocol import (
    Chunk,
    Diagnostic,
    Hypothesis,
    Law,
    Mixture,
    Parameters,
    Passes,
    Posterior,
    Request,
    Statistics,
    Summary,
    Trust,
    count_statistics,
)
from consilience.label_types.preferences import findings
from consilience.label_types.preferences.comparisons import ComparisonCounts, Comparisons, ComparisonTable, tabulate
from consilience.label_types.preferences.judges import (
    BIAS_VARIANCE,
    ROUNDS,
    JudgeTraits,
    PairVotes,
    correlation_of_runs,
    draw_scores,
    fit_judges,
    joint_covariance,
    normal_draws,
    polish_judges,
    scores_given_judges,
    starting_judges,
    totals,
    unexplained,
)

__all__ = ["BradleyTerryLaw", "BradleyTerryParameters", "cost_of_judge", "cost_of_pair", "discrimination_of_cost"]

#: Votes before a judge can be said to answer always the same.
MIN_VOTES = 10
#: Standard errors by which the noise of two judges goes together for sure; by chance once in 30,000 pairs.
SAME_NOISE = 4.0
#: Judges of at most so many comparisons have one set of traits together: no trait can be seen in two answers.
POOLED_VOTES = 2
#: Discriminations beyond this are not told apart.
STEEPEST = 60.0
#: Discrimination of known rankings, which are taken as nearly certain.
CERTAIN = 6.0
#: Differences of scores over which costs are averaged.
NODES = 400
#: Groups of at most this many items are drawn, larger ones are taken as normal.
DRAWN_ITEMS = 8
#: Groups worked on at a time, which bounds the memory of the draws, and comparisons on which judges are polished.
GROUPS_AT_ONCE, POLISHED_VOTES = 2048, 8_000
PROMPT_ROUNDS, SCORE_ROUNDS = 60, 60
#: Hypotheses below this probability are left out of labels, and judges are not polished under them.
NEGLIGIBLE = 0.02
#: An item is better for sure from this probability on, in rank intervals.
SURE = 0.975
#: Scores closer than this are tied.
TIED = 1e-9
STEP = 1e-4


@dataclass(frozen=True)
class BradleyTerryParameters(Parameters):
    """Traits of m judges.

    Parameters
    ----------
    discrimination, position_bias, tie
        ``(m,)`` see `consilience.label_types.preferences.judges`; a judge who contradicts the others has a negative
        discrimination, and is used.
    discrimination_error, position_bias_error
        Their standard errors.
    covariance
        ``(m, 2, 2)`` of discrimination and bias, as the scores take them into account.
    spread
        ``(m,)`` how far discriminations may be from what is expected.
    share
        ``(m,)`` what a vote of each judge counts; below one for copies.
    correlation
        ``(m, m)`` of the errors of two judges given the scores.
    run_correlation
        Between answers of one judge to one question.
    effective_judges
        Least and largest number of independent judges that these may be worth.
    comparisons, unparsable, cycles, order_flips
        ``(m,)`` counts of votes and of replies that could not be read; shares of triples that go round in a circle,
        and of pairs shown in both orders of which the answer went with the order.
    per_prompt
        Whether there were many small groups of items rather than one arena.
    equal
        Whether all judges have one discrimination and no position bias.
    """

    discrimination: FloatArray
    position_bias: FloatArray
    tie: FloatArray
    discrimination_error: FloatArray
    position_bias_error: FloatArray
    covariance: FloatArray
    spread: FloatArray
    share: FloatArray
    correlation: FloatArray
    comparisons: IntArray
    unparsable: IntArray
    cycles: FloatArray
    order_flips: FloatArray
    bias_mean: float = 0.0
    bias_variance: float = BIAS_VARIANCE
    run_correlation: float = 0.0
    effective_judges: tuple[float, float] = (0.0, 0.0)
    per_prompt: bool = True
    equal: bool = False

    @property
    def traits(self) -> JudgeTraits:
        """What the likelihood takes."""
        return JudgeTraits(
            self.discrimination,
            self.position_bias,
            self.tie,
            self.covariance,
            self.discrimination,
            self.spread,
            1.0,
            1.0,
            self.bias_mean,
            self.bias_variance,
        )

    @property
    def tie_rate(self) -> FloatArray:
        """How often each judge calls two equal items a tie."""
        rate: FloatArray = self.tie / (2.0 + self.tie)
        return rate


@dataclass(frozen=True)
class BradleyTerryLaw(Law):
    """Comparisons by judges.

    Parameters
    ----------
    items
        The items of every row, where they are known.
    """

    items: tuple[Hashable, ...] | None = None
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "em", "labelled")

    # --- level 0 ------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        """Return how often every judge gave every answer, see `ComparisonCounts`."""
        n, m = chunk.observed.shape
        rows = list(range(n)) if chunk.items is None else chunk.items.tolist()
        counts = ComparisonCounts.of(chunk.labels, chunk.observed, rows, range(m))
        if chunk.known is not None and chunk.is_known is not None and chunk.is_known.any():
            counts = counts + ComparisonCounts.of(chunk.known[:, None], chunk.is_known[:, None], rows, [-1])
        pairs = tabulate(chunk.labels, chunk.observed, self.items)
        seen = np.zeros((m, int(pairs.unit.max(initial=-1)) + 1), dtype=np.float32)
        seen[pairs.pairs.judge, pairs.unit] = 1.0
        shared = np.rint(seen @ seen.T).astype(np.int64)
        return Statistics({**count_statistics(chunk), "counts": counts.boxed(), "shared": shared})

    def pair_table(self, statistics: Statistics) -> PairTable:
        """Return how far judges agree on the pairs of items that both compared, given how they like places and ties.

        Judges who never compared the same two items about the same question have infinite errors.
        """
        from scipy.sparse import coo_array

        votes = _votes(self, statistics)
        table, m = votes.table, votes.m
        pairs = table.pairs
        total = m + int(votes.known)
        asked = np.bincount(pairs.judge, table.count * pairs.shown, minlength=total)
        liking = np.bincount(pairs.judge, table.count * pairs.shown * pairs.outcome, minlength=total)
        said = pairs.outcome - pairs.shown * (liking / np.maximum(asked, 1.0))[pairs.judge]
        own = np.bincount(pairs.judge, table.count * said**2, minlength=total) / np.maximum(_counted(table, total), 1.0)
        said = said * np.where(pairs.first < pairs.second, 1.0, -1.0) / np.sqrt(np.maximum(own, 0.05))[pairs.judge]
        shape = (total, int(table.unit.max(initial=-1)) + 1)
        often = coo_array((table.count, (pairs.judge, table.unit)), shape=shape).tocsr()
        mean = coo_array((table.count * said, (pairs.judge, table.unit)), shape=shape).tocsr()
        mean.data = mean.data / often.data
        seen, square = often.copy(), mean.copy()
        seen.data, square.data = np.ones_like(often.data), mean.data**2
        sums = [np.asarray((one @ one.T).toarray(), dtype=np.float64) for one in (mean, square, seen)]
        names = ("agreement", "agreement_square", "agreement_count")
        parts = dict(zip(names, [one[:m, :m] for one in sums], strict=True))
        parts["agreement_votes"] = np.diag(parts["agreement_count"]).copy()
        if votes.known:
            parts |= {f"gold_{name}": one[m, :m] for name, one in zip(names, sums, strict=True)}
        found = replace(agreement_table(parts), linked=_same_noise(votes))
        error = _at_least_binomial(found.value, found.error, parts["agreement_count"])
        if found.gold_value is None or found.gold_error is None:
            return replace(found, error=error)
        gold_error = _at_least_binomial(found.gold_value, found.gold_error, parts["gold_agreement_count"])
        return replace(found, error=error, gold_error=gold_error)

    def forward(self, statistics: Statistics) -> Forward:
        return _forward()

    def constant_sources(self, statistics: Statistics) -> BoolArray:
        votes = _votes(self, statistics)
        counts = np.zeros((votes.table.pairs.n_judges, 3))
        np.add.at(counts, (votes.table.pairs.judge, votes.table.pairs.outcome.astype(np.int64) + 1), votes.table.count)
        ranked = np.bincount(votes.table.pairs.judge, 1.0 - votes.table.pairs.shown, minlength=len(counts)) > 0
        total = counts.sum(axis=1)
        constant: BoolArray = (((counts > 0).sum(axis=1) == 1) & (total >= MIN_VOTES) & ~ranked)[: votes.m]
        # Where the order of all is the same, everybody may be right.
        return constant if not constant[total[: votes.m] > 0].all() else np.zeros_like(constant)

    # --- level 2 ------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> BradleyTerryParameters:
        votes = _votes(self, statistics)
        plain = _plain(self, votes)
        if hypothesis.is_plain:
            return plain
        if request.method == "labelled":
            pairs = votes.table.pairs
            told = np.isin(pairs.group, np.unique(pairs.group[pairs.judge == votes.m]))
            votes = replace(votes, table=votes.table.where(told))
        m = votes.m
        # How much of their taste judges of the same noise share cannot be seen, so they have one vote together.
        together = hypothesis.groups[:, None] == hypothesis.groups
        correlation = np.where(_same_noise(votes) & together & request.learn, 1.0, hypothesis.correlation)
        share = 1.0 / (1.0 + correlation.sum(axis=1))
        center = _discrimination(hypothesis.quality)
        finite = np.where(np.isfinite(hypothesis.spread), hypothesis.spread, 0.5)
        low, high = (_discrimination(np.tanh(hypothesis.u + way * finite)) for way in (-1.0, 1.0))
        agreement = np.where(np.eye(m, dtype=bool), 1.0, np.maximum(self.pair_table(statistics).value, 0.0))
        active = votes.table.comparisons[:m] > 0
        return _fitted(
            votes, center, np.maximum((high - low) / 2.0, 0.05), share, plain.run_correlation, correlation,
            _worth(agreement, active, correlation), polished=hypothesis.probability >= NEGLIGIBLE,
        )  # fmt: skip

    def merge(self, mixture: Mixture) -> Mixture:
        """Return the mixture without hypotheses that change hardly any label, as every one takes its time."""
        kept = [(share, one) for share, one in mixture if share >= NEGLIGIBLE] or list(mixture[:1])
        total = sum(share for share, _ in kept)
        return tuple((share / total, one) for share, one in kept)

    # --- level 3 ------------------------------------------------------------------------------------

    def posterior(
        self, parameters: BradleyTerryParameters, labels: Batch, observed: BoolArray, decode: str
    ) -> Posterior:
        """Return rankings, best first, with what is known about their items in the same order.

        ``details`` holds, as one object per row: ``candidates``, their ``score`` with ``standard_error``, the
        ``rank_low`` and ``rank_high`` between which the true place is with about 95% probability, and
        ``pair_probability``, that the item of a row is better than that of a column. The confidence is the share of
        doubt about the order of two items that the votes remove, averaged over pairs.
        """
        table = tabulate(labels, observed, self.items)
        mean, spread, better = _beliefs(parameters, table)
        rows = [
            (names, mean[row, : len(names)], spread[row, : len(names)], better[row, : len(names), : len(names)])
            for row, names in enumerate(table.names)
        ]
        return _ranked(rows, decode)

    def average(self, posteriors: Sequence[tuple[float, Posterior]], decode: str) -> Posterior:
        """Return means of scores, their variances within and between hypotheses, and mean probabilities of pairs."""
        rows = []
        details = [one.details for _, one in posteriors]
        shares = np.array([share for share, _ in posteriors])
        for row, names in enumerate(details[0]["candidates"]):
            order = [[one["candidates"][row].index(name) for name in names] for one in details]
            score, error = (
                np.stack([one[part][row][at] for one, at in zip(details, order, strict=True)])
                for part in ("score", "standard_error")
            )
            better = np.stack(
                [one["pair_probability"][row][np.ix_(at, at)] for one, at in zip(details, order, strict=True)]
            )
            mean = shares @ score
            variance = shares @ (error**2 + (score - mean) ** 2)
            rows.append((names, mean, np.sqrt(variance), np.einsum("h,hij->ij", shares, better)))
        return _ranked(rows, decode)

    # --- in shared words --------------------------------------------------------------------------------

    def summary(self, parameters: BradleyTerryParameters) -> Summary:
        """Return how often judges are wrong about two items, and their discriminations as weights."""
        slope, tie = parameters.discrimination, parameters.tie
        cost_error, error = self.quality_errors(parameters, slope, slope)
        return Summary(
            expected_cost=cost_of_judge(slope, tie),
            weight=slope.copy(),
            standard_error=error,
            cost_standard_error=cost_error,
            correlation=parameters.correlation,
            columns={
                "comparisons": parameters.comparisons,
                "discrimination": slope.copy(),
                "position_bias": parameters.position_bias,
                "tie_rate": parameters.tie_rate,
                "cycles": parameters.cycles,
                "order_flips": parameters.order_flips,
                "unparsable": parameters.unparsable,
                "share": parameters.share,
            },
            effective_range=parameters.effective_judges,
        )

    def quality_errors(self, parameters: Any, quality: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return errors by the information in all comparisons, of which pairs of judges see a part."""
        slope, tie, own = parameters.discrimination, parameters.tie, parameters.discrimination_error
        fall = (cost_of_judge(slope + STEP, tie) - cost_of_judge(slope - STEP, tie)) / (2.0 * STEP)
        finite = np.isfinite(own)
        return np.where(finite, np.abs(fall) * np.where(finite, own, 0.0), np.inf), own.copy()

    def findings(
        self, trust: Trust, mixture: Mixture, statistics: Statistics, request: Request
    ) -> tuple[Diagnostic, ...]:
        votes = _votes(self, statistics)
        first = mixture[0][1]
        if not isinstance(first, BradleyTerryParameters):
            return ()
        own = votes.table.where(votes.table.pairs.judge < votes.m)
        own = replace(own, pairs=replace(own.pairs, n_judges=votes.m))
        scores = [_scores(parameters, own) for parameters in (first, _plain(self, votes))]
        tau = _rank_correlation(scores[0], scores[1], own.pairs.compared)
        about = findings.about_judges(
            first.position_bias, first.position_bias_error, first.run_correlation, tau, own, request
        )
        table = self.pair_table(statistics)
        if votes.m > 1 and not table.usable.any():
            message = (
                "No two judges compared the same two items often enough to see whether they repeat each other, so all "
                "are taken as independent. Let several judges compare the same pairs."
            )
            about = (*about, Diagnostic("judges-not-compared", "info", request.sources, message))
        return (*findings.about_table(own, request, self.items), *about)

    def check_method(self, method: str, passes: Passes | None) -> None:
        super().check_method(method, self if passes is None else passes)  # type: ignore[arg-type]

    def from_weights(self, weight: FloatArray, request: Request) -> BradleyTerryParameters:
        slope = np.asarray(weight, dtype=np.float64)
        m = len(slope)
        zero, none = np.zeros(m), np.zeros(m, dtype=np.int64)
        return BradleyTerryParameters(
            discrimination=slope,
            position_bias=zero,
            tie=np.full(m, 0.1),
            discrimination_error=zero.copy(),
            position_bias_error=zero.copy(),
            covariance=np.zeros((m, 2, 2)),
            spread=np.maximum(np.abs(slope), 0.3),
            share=np.ones(m),
            correlation=np.zeros((m, m)),
            comparisons=none,
            unparsable=none,
            cycles=zero.copy(),
            order_flips=zero.copy(),
            effective_judges=(float(m), float(m)),
            equal=bool(np.ptp(slope) == 0.0) if m else True,
        )

    def restore(self, fields_by_name: Mapping[str, Any]) -> BradleyTerryParameters:
        values: dict[str, Any] = {}
        for item in fields(BradleyTerryParameters):
            value = fields_by_name[item.name]
            if item.type in ("FloatArray", "IntArray"):
                value = np.asarray(value, dtype=np.float64 if item.type == "FloatArray" else np.int64)
            elif item.type in ("float", "bool"):
                value = float(value) if item.type == "float" else bool(value)
            else:
                value = (float(value[0]), float(value[1]))
            values[item.name] = value
        return BradleyTerryParameters(**values)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        return cost_of_judge(weight)

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        return discrimination_of_cost(cost)


# --- the comparisons at hand ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Votes:
    """All comparisons, and where rankings are known the judge that tells them, who comes last."""

    table: ComparisonTable
    m: int

    @property
    def known(self) -> bool:
        return self.table.pairs.n_judges > self.m

    @property
    def per_prompt(self) -> bool:
        """Whether there are several groups of items."""
        return len(np.unique(self.table.pairs.group)) > 1

    def pooled(self) -> tuple[PairVotes, IntArray]:
        """Return the comparisons with one judge for all that made hardly any, and who each judge is there."""
        return _pooled(self.table.pairs, self.table.comparisons, self.m)


def _votes(law: BradleyTerryLaw, statistics: Statistics) -> _Votes:
    return _tabulated(law, statistics["counts"][0], len(statistics["both"]))


@lru_cache(maxsize=8)
def _tabulated(law: BradleyTerryLaw, counts: ComparisonCounts, m: int) -> _Votes:
    return _Votes(counts.table(m, law.items), m)


def _counted(table: ComparisonTable, size: int) -> FloatArray:
    return totals(table.pairs.judge, table.count, size)


def _at_least_binomial(value: FloatArray, error: FloatArray, count: FloatArray) -> FloatArray:
    """Return errors that are not below those of so many outcomes and one of the other kind: a few may agree by luck."""
    mean = np.clip(value, -1.0, 1.0) * count / (count + 1.0)
    return np.maximum(error, np.sqrt((1.0 - mean**2) / np.maximum(count, 1.0)))


@lru_cache(maxsize=8)
def _same_noise(votes: _Votes) -> BoolArray:
    """Return pairs of judges of an arena who certainly share errors: what their own tastes leave goes together.

    Agreement cannot tell copies of a judge with a taste of its own from good judges; the same noise can.
    """
    m = votes.m
    linked = np.zeros((m, m), dtype=bool)
    own = np.flatnonzero(votes.table.comparisons[:m] > votes.table.pairs.width)
    if votes.per_prompt or len(own) < 2:
        return linked
    place = np.full(votes.table.pairs.n_judges, -1)
    place[own] = np.arange(len(own))
    table = votes.table.where(place[votes.table.pairs.judge] >= 0)
    pairs = replace(table.pairs, judge=place[table.pairs.judge], n_judges=len(own))
    tie = starting_judges(pairs, np.ones(len(own)), ties=bool((pairs.outcome == 0).any())).tie
    left, variance, room = unexplained(pairs, tie)
    unit = 2 * table.unit + (pairs.first < pairs.second)  # what was shown, in this order
    shape = (len(own), int(unit.max(initial=-1)) + 1)
    cell = pairs.judge * shape[1] + unit
    often, noise, expected = (
        totals(cell, pairs.weight * part, shape[0] * shape[1]).reshape(shape)
        for part in (np.ones(len(cell)), left, variance)
    )
    noise, expected = noise / np.maximum(often, 1.0), expected / np.maximum(often, 1.0) ** 2
    both = (often > 0).astype(np.float64)
    chance = np.sqrt(np.maximum(expected @ expected.T, 1e-12)) / np.maximum(np.minimum.outer(room, room), 0.05)
    certain = (noise @ noise.T > SAME_NOISE * chance) & (both @ both.T >= MIN_VOTES)
    linked[np.ix_(own, own)] = certain & ~np.eye(len(own), dtype=bool)
    return linked


def _pooled(pairs: PairVotes, comparisons: IntArray, m: int) -> tuple[PairVotes, IntArray]:
    small = np.arange(len(comparisons)) < m
    small &= comparisons <= POOLED_VOTES
    if small.sum() < 2:
        return pairs, np.arange(pairs.n_judges)
    place = np.cumsum(~small) - 1
    kept = int((~small).sum())
    place = np.where(small, kept, place)
    if len(comparisons) > m:  # the judge that knows stays the last
        place = np.where(np.arange(len(comparisons)) == m, kept, np.where(small, kept - 1, place))
    return replace(pairs, judge=place[pairs.judge], n_judges=kept + 1), place


def _worth(agreement: FloatArray, active: BoolArray, correlation: FloatArray) -> tuple[float, float]:
    """Return between which numbers of independent judges these may be worth.

    At worst whatever judges agree on is an error they share; at best only what copies share is one.
    """
    m = int(active.sum())
    if m == 0:
        return 0.0, 0.0
    at = np.ix_(active, active)
    best = m**2 / float((np.eye(m) + correlation[at]).sum())
    return min(m**2 / float(agreement[at].sum()), best), best


# --- fits ---------------------------------------------------------------------------------------------------


def _fitted(
    votes: _Votes, center: FloatArray, spread: FloatArray, share: FloatArray, run_correlation: float,
    correlation: FloatArray, worth: tuple[float, float], *, polished: bool,
) -> BradleyTerryParameters:  # fmt: skip
    """Return judges that explain the comparisons best, from where the trust engine sees them."""
    ties = bool((votes.table.pairs.outcome == 0).any())
    weighted = _weighted(votes.table, np.r_[share, np.ones(int(votes.known))], run_correlation)
    pairs, place = _pooled(weighted, votes.table.comparisons, votes.m)
    fixed = np.zeros(pairs.n_judges, dtype=bool)
    fixed[place[votes.m :]] = True
    first = np.array([np.flatnonzero(place == at)[0] for at in range(pairs.n_judges)])
    start = starting_judges(pairs, np.r_[center, CERTAIN][first], np.r_[spread, 1.0][first], ties=ties)
    start = replace(start, tie=np.where(fixed, 1e-4, start.tie))
    rounds = PROMPT_ROUNDS if votes.per_prompt else ROUNDS
    fit = fit_judges(pairs, start, ties=ties, fixed=fixed, rounds=rounds)
    traits = fit.judges
    if polished and votes.per_prompt and pairs.width <= DRAWN_ITEMS:
        traits = polish_judges(_some_prompts(pairs), traits, ties=ties, fixed=fixed)
    if votes.per_prompt:
        errors = np.sqrt(np.maximum(np.diagonal(traits.covariance, axis1=1, axis2=2), 0.0))
        slope_error, bias_error = errors[:, 0], errors[:, 1]
    else:
        joint = np.sqrt(np.maximum(np.diag(joint_covariance(pairs, traits, fit.scores.mean[0])), 0.0))
        slope_error = joint[pairs.width : pairs.width + pairs.n_judges]
        bias_error = joint[pairs.width + pairs.n_judges :]
    return _described(
        votes, traits, place[: votes.m], slope_error, bias_error, share, run_correlation, correlation, worth
    )


def _described(
    votes: _Votes, traits: JudgeTraits, place: IntArray, slope_error: FloatArray, bias_error: FloatArray,
    share: FloatArray, run_correlation: float, correlation: FloatArray, worth: tuple[float, float],
) -> BradleyTerryParameters:  # fmt: skip
    m = votes.m
    silent = votes.table.comparisons[:m] == 0
    return BradleyTerryParameters(
        discrimination=np.where(silent, traits.slope_mean[place], traits.slope[place]),
        position_bias=np.where(silent, 0.0, traits.bias[place]),
        tie=traits.tie[place],
        discrimination_error=np.where(silent, np.inf, slope_error[place]),
        position_bias_error=np.where(silent, np.inf, bias_error[place]),
        covariance=traits.covariance[place],
        spread=np.sqrt(traits.slope_variance)[place],
        share=share,
        correlation=correlation,
        comparisons=votes.table.comparisons[:m],
        unparsable=votes.table.unparsable[:m],
        cycles=findings.cycles(votes.table)[:m],
        order_flips=findings.order_flips(votes.table)[:m],
        bias_mean=float(traits.bias_mean),
        bias_variance=float(traits.bias_variance),
        run_correlation=float(run_correlation),
        effective_judges=worth,
        per_prompt=votes.per_prompt,
    )


@lru_cache(maxsize=8)
def _plain(law: BradleyTerryLaw, votes: _Votes) -> BradleyTerryParameters:
    """Return judges that all count the same, and have no position bias."""
    m = votes.m
    table = votes.table.where(votes.table.pairs.judge < m)
    table = replace(table, pairs=replace(table.pairs, n_judges=m))
    ties = bool((table.pairs.outcome == 0).any())
    rounds = PROMPT_ROUNDS if votes.per_prompt else ROUNDS
    pairs = _weighted(table, np.ones(m), 1.0)
    start = starting_judges(pairs, np.ones(m), ties=ties)
    fit = fit_judges(pairs, start, equal=True, position=False, ties=ties, rounds=rounds)
    gap = fit.scores.differences(table.pairs)[0]
    runs = correlation_of_runs(table.pairs, fit.judges, gap, table.question, table.count)
    if (table.question >= 0).any():
        pairs = _weighted(table, np.ones(m), runs)
        fit = fit_judges(pairs, fit.judges, equal=True, position=False, ties=ties, rounds=rounds)
    slope = max(float(fit.judges.slope[0]), 0.05) if m else 1.0
    zero = np.zeros(m)
    described = _described(
        votes, fit.judges, np.arange(m), zero, zero, np.ones(m), runs, np.zeros((m, m)), (float(m), float(m))
    )
    return replace(
        described,
        discrimination=np.full(m, slope),
        discrimination_error=zero,
        position_bias_error=zero,
        covariance=np.zeros((m, 2, 2)),
        equal=True,
    )


def _weighted(table: ComparisonTable, share: FloatArray, run_correlation: float) -> PairVotes:
    """Return the comparisons with what they count: copies share a vote, and so do runs of one judge in part."""
    weight = table.pairs.weight * share[table.pairs.judge] * table.run_weights(run_correlation)
    return replace(table.pairs, weight=weight)


def _some_prompts(pairs: PairVotes) -> PairVotes:
    """Return the comparisons of as many prompts as the polish needs; they come in no order that means anything."""
    step = max(round(len(pairs) / POLISHED_VOTES), 1)
    if step == 1:
        return pairs
    kept = pairs.where(pairs.group % step == 0)
    return replace(kept, group=kept.group // step, n_groups=(pairs.n_groups + step - 1) // step)


# --- from judges to rankings --------------------------------------------------------------------------------


def _beliefs(parameters: BradleyTerryParameters, table: ComparisonTable) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, standard error and pairwise probabilities of the scores of each group."""
    weighted = _weighted(table, parameters.share, parameters.run_correlation)
    pairs, place = _pooled(weighted, parameters.comparisons, len(parameters.share))
    judges = _some_judges(parameters.traits, place, pairs.n_judges)
    shape = (pairs.n_groups, pairs.width)
    mean, spread, better = np.zeros(shape), np.ones(shape), np.full((*shape, pairs.width), 0.5)
    step = GROUPS_AT_ONCE if parameters.per_prompt else 1
    pairs = pairs.where(np.argsort(pairs.group, kind="stable"))
    for start in range(0, pairs.n_groups, step):
        stop = min(start + step, pairs.n_groups)
        low, high = np.searchsorted(pairs.group, [start, stop])
        own = pairs.where(np.arange(low, high))
        own = replace(own, group=own.group - start, n_groups=stop - start)
        rows = slice(start, stop)
        if parameters.per_prompt:
            mean[rows], spread[rows], better[rows] = _prompts(judges, own)
        else:
            mean[start], spread[start], better[start] = _arena(judges, own, parameters.equal)
    return mean, spread, better


def _some_judges(judges: JudgeTraits, place: IntArray, size: int) -> JudgeTraits:
    first = np.array([np.flatnonzero(place == at)[0] for at in range(size)], dtype=np.int64)
    names = ("slope", "bias", "tie", "covariance", "center", "spread")
    return replace(judges, **{name: getattr(judges, name)[first] for name in names})


def _prompts(judges: JudgeTraits, pairs: PairVotes) -> tuple[FloatArray, FloatArray, FloatArray]:
    judges = replace(judges, covariance=np.zeros_like(judges.covariance))
    around = scores_given_judges(pairs, judges)
    if pairs.width > DRAWN_ITEMS:
        return around.mean, _root(around.covariance), _better(around.mean, around.covariance)
    drawn = draw_scores(pairs, judges, around, normal_draws(pairs.width))
    mean, covariance = drawn.moments()
    return mean, _root(covariance), drawn.better()


def _arena(judges: JudgeTraits, pairs: PairVotes, equal: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    mean = scores_given_judges(pairs, judges, rounds=SCORE_ROUNDS).mean[0]
    joint = joint_covariance(pairs, judges, mean, equal=equal, position=not equal)
    width = pairs.width
    # Only differences are in the votes: the uncertainty of the common level would be that of the prior.
    centring = np.eye(width) - 1.0 / width if width > 1 else np.eye(width)
    covariance = centring @ joint[:width, :width] @ centring.T
    centred = mean - mean.mean()
    return centred, _root(covariance[None])[0], _better(centred[None], covariance[None])[0]


def _scores(parameters: BradleyTerryParameters, table: ComparisonTable) -> FloatArray:
    return scores_given_judges(
        _weighted(table, parameters.share, parameters.run_correlation), parameters.traits, rounds=SCORE_ROUNDS
    ).mean


def _root(covariance: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 0.0)))


def _better(mean: FloatArray, covariance: FloatArray) -> FloatArray:
    from scipy.special import ndtr

    variance = np.diagonal(covariance, axis1=1, axis2=2)
    spread = variance[:, :, None] + variance[:, None, :] - 2.0 * covariance
    better: FloatArray = ndtr((mean[:, :, None] - mean[:, None, :]) / np.sqrt(np.maximum(spread, 1e-12)))
    return better


def _ranked(rows: list[tuple[tuple[Hashable, ...], FloatArray, FloatArray, FloatArray]], decode: str) -> Posterior:
    """Return one ranking per row from the names, scores, errors and pair probabilities of its items."""
    columns: dict[str, list[object]] = {
        name: []
        for name in ("candidates", "score", "standard_error", "rank_low", "rank_high", "pair_probability", "label")
    }
    confidence = np.zeros(len(rows))
    for row, (names, mean, spread, better) in enumerate(rows):
        size = len(names)
        key = better.sum(axis=1) if decode == "bayes" else mean
        order = np.argsort(-key, kind="stable")
        chance = better[np.ix_(order, order)]
        off = ~np.eye(size, dtype=bool)
        confidence[row] = float(np.abs(2.0 * chance[off] - 1.0).mean()) if size > 1 else 0.0
        ordered = [names[at] for at in order]
        columns["candidates"].append(tuple(ordered))
        columns["score"].append(mean[order])
        columns["standard_error"].append(spread[order])
        columns["rank_low"].append(1 + ((chance >= SURE) & off).sum(axis=0))
        columns["rank_high"].append(size - ((chance >= SURE) & off).sum(axis=1))
        columns["pair_probability"].append(chance)
        columns["label"].append(_ranking(ordered, key[order]))
    labels = as_object_array(columns.pop("label"))
    return Posterior(labels, confidence, None, {name: as_object_array(values) for name, values in columns.items()})


def _ranking(names: list[Hashable], keys: FloatArray) -> Comparisons:
    groups: list[list[Hashable]] = []
    for place, name in enumerate(names):
        if place and keys[place - 1] - keys[place] < TIED:
            groups[-1].append(name)
        else:
            groups.append([name])
    return Comparisons.of_ranking(groups)


def _rank_correlation(left: FloatArray, right: FloatArray, compared: BoolArray) -> float:
    """Return Kendall's correlation over all pairs of items that were compared in one group."""
    one, two = np.triu_indices(left.shape[1], 1)
    together = (compared[:, one] & compared[:, two]).astype(np.float64)
    signs = [np.sign(np.round(scores[:, one] - scores[:, two], 9)) for scores in (left, right)]
    size = [float((sign**2 * together).sum()) for sign in signs]
    if min(size) <= 0:
        return 1.0
    return float((signs[0] * signs[1] * together).sum()) / float(np.sqrt(size[0] * size[1]))


# --- how good a judge is ------------------------------------------------------------------------------------


def cost_of_judge(discrimination: FloatArray, tie: FloatArray | float = 0.0) -> FloatArray:
    """Return how often a judge puts two items in the wrong order, averaged over items; ties count half.

    Scores are standard normal, so the difference of two is normal of variance 2.

    Examples
    --------
    >>> cost_of_judge(np.array([-60.0, 0.0, 60.0])).round(2).tolist()
    [0.99, 0.5, 0.01]
    """
    eta = np.clip(np.asarray(discrimination, dtype=np.float64), -STEEPEST, STEEPEST)[..., None] * _differences()
    nu = np.asarray(tie, dtype=np.float64)[..., None]
    size = np.exp(-np.abs(eta) / 2.0)
    wrong = np.where(eta > 0, size**2, 1.0)
    cost: FloatArray = ((wrong + nu * size / 2.0) / (1.0 + size**2 + nu * size)).mean(axis=-1)
    return cost


def cost_of_pair(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return how often two independent judges of these discriminations contradict each other."""
    gap = _differences()
    one, two = (1.0 / (1.0 + np.exp(-np.clip(np.asarray(s)[..., None] * gap, -80, 80))) for s in (left, right))
    cost: FloatArray = (one * (1.0 - two) + two * (1.0 - one)).mean(axis=-1)
    return cost


def discrimination_of_cost(cost: FloatArray) -> FloatArray:
    """Return the discrimination of a judge of this cost; the inverse of `cost_of_judge` without ties."""
    wanted = np.atleast_1d(np.asarray(cost, dtype=np.float64))
    low, high = np.full(wanted.shape, -STEEPEST), np.full(wanted.shape, STEEPEST)
    for _ in range(80):
        middle = (low + high) / 2.0
        too_steep = cost_of_judge(middle) < wanted
        low, high = np.where(too_steep, low, middle), np.where(too_steep, middle, high)
    return np.asarray((low + high) / 2.0).reshape(np.shape(cost))


@lru_cache(maxsize=1)
def _differences() -> FloatArray:
    """Return sizes of the difference of two scores, equally probable."""
    law = NormalDist(0.0, np.sqrt(2.0))
    return np.array([law.inv_cdf(0.5 + (node + 0.5) / (2.0 * NODES)) for node in range(NODES)])


@lru_cache(maxsize=1)
def _forward() -> Forward:
    """Return the expected agreement of independent judges, whose scores are normal."""
    grid = np.linspace(-LIMIT, LIMIT, 161)
    mean = np.tanh(np.outer(_discrimination(np.tanh(grid)), _differences()) / 2.0)
    return Forward.of_table(grid, mean @ mean.T / NODES)


@lru_cache(maxsize=1)
def _discrimination_curve() -> tuple[FloatArray, FloatArray]:
    slope = STEEPEST * np.linspace(-1.0, 1.0, 2001) ** 3
    return 1.0 - 2.0 * cost_of_judge(slope), slope


def _discrimination(quality: FloatArray) -> FloatArray:
    """Return the discriminations of judges whose outcomes correlate with the true order in this way."""
    return np.interp(quality, *_discrimination_curve())
