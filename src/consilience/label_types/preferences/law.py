"""Judges who compare two items at a time: Bradley and Terry's law with ties, one set of traits per judge.

The rows of the votes are groups of items: a single arena, or one prompt each. A vote holds all comparisons of a judge
in a row. Scores of items are shared by all votes, so judges are learned with the `likelihood` of counts of comparisons.
The trust engine compares judges on the pairs of items that both judged: it gives the prior of the discriminations, and
says who repeats whom.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import lgamma
from typing import Annotated, Any, ClassVar

import numpy as np

from consilience.arrays import Axes, Batch, BoolArray, Correlation, FloatArray, IntArray, as_object_array
from consilience.estimation.pair_table import Forward, PairTable, Statistics, agreement_table
from consilience.estimation.protocol import (
    Chunk,
    Diagnostic,
    Hypothesis,
    Law,
    Mixture,
    Parameters,
    Posterior,
    Request,
    Summary,
    Trust,
)
from consilience.label_types.base import NORMAL_95
from consilience.label_types.cost_curve import find_root
from consilience.label_types.preferences import findings, likelihood
from consilience.label_types.preferences.comparisons import ComparisonCounts, Comparisons, tabulate
from consilience.label_types.preferences.likelihood import JudgeTraits, PairVotes, ScoreBelief, outcome_moments, totals

#: Least number of votes before a judge counts as constant. With two outcomes, chance does this to one judge in 500.
MIN_VOTES = 10
#: Log-evidence for shared noise in a group of judges, in nats: odds of a thousand to one.
SAME_NOISE = 7.0
#: Judges with at most this many comparisons share one set of traits, because two answers show no trait.
POOLED_VOTES = 2
#: Larger discriminations are not distinguished. Such a judge swaps one pair in a hundred.
STEEPEST = 60.0
#: A judge with a larger share of pairs in the wrong order is hardly better than a coin: a quality of .15.
NEARLY_HALF = 0.425
#: A discrimination this many standard errors below zero is negative. Reported biases have the same limit.
REVERSED = 3.0
#: Discrimination and tie parameter of known rankings, which are nearly certain.
CERTAIN, NO_TIES = 6.0, 1e-4
#: Least mean of discriminations, and largest expected ratio of their spread to it. Of 1, 1.5 and 2, the second loses
#: hardly more on equal judges than the first, and finds a contrary judge as often as the third.
LEAST_SLOPE, LARGEST_RATIO = 0.05, 1.5
#: Least variance of a judge's outcomes, which are never certain.
LEAST_VARIANCE = 0.05
#: Differences of scores over which costs are averaged, and discriminations in the table.
NODES, CURVE_POINTS = 400, 2001
#: Groups with at most this many items are sampled. Larger ones are approximated as normal.
DRAWN_ITEMS = 8
#: Groups per block, comparisons used to polish judges, and rounds of the scores. They affect memory and time only.
GROUPS_AT_ONCE, POLISHED_VOTES, SCORE_ROUNDS = 2048, 8_000, 60
#: Less probable hypotheses are left out of labels, and judges are not polished under them.
NEGLIGIBLE = 0.02
#: In 95% rank intervals, an item is above another if the probability of that is at least this.
SURE = 0.975
#: Scores closer than this are tied.
TIED = 1e-9
#: Step of numerical derivatives.
STEP = 1e-4


@dataclass(frozen=True, kw_only=True)
class BradleyTerryParameters(JudgeTraits, Parameters):
    """Traits of m judges; one who contradicts the others has a negative discrimination, and is used."""

    slope_error: Annotated[FloatArray, Axes("m", 0.0, infinite=True)]  # standard errors, as the next line
    bias_error: Annotated[FloatArray, Axes("m", 0.0, infinite=True)]
    share: Annotated[FloatArray, Axes("m", 0.0, 1.0)]  # how much a vote of each judge counts; below one for copies
    correlation: Correlation  # of the errors of two judges given the scores
    # Numbers of votes, and of replies that could not be read
    comparisons: Annotated[IntArray, Axes("m", 0)]
    unparsable: Annotated[IntArray, Axes("m", 0)]
    cycles: Annotated[FloatArray, Axes("m", 0.0, 1.0, missing=True)]  # share of triples that form a cycle
    # Share of pairs shown in both orders whose answer changed with the order
    order_flips: Annotated[FloatArray, Axes("m", 0.0, 1.0, missing=True)]
    run_correlation: Annotated[float, Axes("", 0.0, 1.0)] = 0.0  # between answers of one judge to one question
    effective_judges: tuple[float, float] = (0.0, 0.0)  # bounds on the effective number of independent judges
    per_prompt: bool = True  # whether there were many small groups of items rather than one arena
    equal: bool = False  # whether all judges have one discrimination and no position bias


@dataclass(frozen=True)
class BradleyTerryLaw(Law):
    """Comparisons by judges."""

    items: tuple[Hashable, ...] | None = None  # rankings of every row, if known
    parameter_class = BradleyTerryParameters
    methods: ClassVar[tuple[str, ...]] = ("auto", "majority", "em", "labelled")
    needs_overlap: ClassVar[bool] = False  # a judge is compared with the ranking, not with others on the same pairs

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
        seen[pairs.judge, pairs.unit] = 1.0
        shared = np.rint(seen @ seen.T).astype(np.int64)
        return Statistics({**chunk.counts(), "counts": as_object_array([counts]), "shared": shared})

    def pair_table(self, statistics: Statistics) -> PairTable:
        """Return how far judges agree on the pairs of items that both compared, given how they like places and ties.

        Judges who never compared the same two items about the same question have infinite errors.
        """
        from scipy.sparse import coo_array

        pairs = _table(self, statistics)
        m, often = pairs.m, np.maximum(pairs.by_judge(pairs.count), 1.0)
        asked, liking = (pairs.by_judge(pairs.count * pairs.shown * part) for part in (pairs.outcome**0, pairs.outcome))
        said = pairs.outcome - pairs.shown * (liking / np.maximum(asked, 1.0))[pairs.judge]
        own = np.sqrt(np.maximum(pairs.by_judge(pairs.count * said**2) / often, LEAST_VARIANCE))
        said = said * np.where(pairs.first < pairs.second, 1.0, -1.0) / own[pairs.judge]
        shape = (pairs.n_judges, int(pairs.unit.max(initial=-1)) + 1)
        seen, mean = (
            coo_array((values, (pairs.judge, pairs.unit)), shape=shape).tocsr()
            for values in (pairs.count, pairs.count * said)
        )
        mean.data = mean.data / seen.data
        seen.data = np.ones_like(seen.data)
        sums = {
            f"agreement{name}": np.asarray((one @ one.T).toarray(), dtype=np.float64)
            for name, one in (("", mean), ("_square", mean.power(2)), ("_count", seen))
        }
        parts = {name: one[:m, :m] for name, one in sums.items()}
        parts["agreement_votes"] = np.diag(parts["agreement_count"]).copy()
        if pairs.known:
            parts |= {f"gold_{name}": one[m, :m] for name, one in sums.items()}
        found = replace(agreement_table(parts), linked=_same_noise(pairs), scatter=None)
        error = _at_least_binomial(found.value, found.error, parts["agreement_count"])
        if found.gold_value is None or found.gold_error is None:
            return replace(found, error=error)
        gold_error = _at_least_binomial(found.gold_value, found.gold_error, parts["gold_agreement_count"])
        return replace(found, error=error, gold_error=gold_error)

    def forward(self, statistics: Statistics) -> Forward:
        grid = Forward.USUAL_GRID
        mean = np.tanh(np.outer(_discrimination(np.tanh(grid)), _differences()) / 2.0)
        return Forward.of_table(grid, mean @ mean.T / NODES)

    def constant_sources(self, statistics: Statistics) -> BoolArray:
        pairs = _table(self, statistics)
        counts = np.stack([pairs.by_judge(pairs.count * (pairs.outcome == outcome)) for outcome in (-1, 0, 1)])
        total, ranked = counts.sum(axis=0), pairs.by_judge(1.0 - pairs.shown) > 0
        constant: BoolArray = (((counts > 0).sum(axis=0) == 1) & (total >= MIN_VOTES) & ~ranked)[: pairs.m]
        # If every judge is constant, each of them may be right.
        return constant if not constant[total[: pairs.m] > 0].all() else np.zeros_like(constant)

    # --- level 2 ------------------------------------------------------------------------------------

    def group_evidence(self, groups: IntArray, statistics: Statistics) -> float:
        table = _table(self, statistics)
        return sum(_shared_noise(table, np.flatnonzero(groups == group).tolist()) for group in np.unique(groups))

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> BradleyTerryParameters:
        pairs = _table(self, statistics)
        plain = _plain(pairs)
        if hypothesis.is_plain:
            return plain
        # The votes do not show how much taste judges with the same noise share, so together they have one vote.
        together = hypothesis.groups[:, None] == hypothesis.groups
        correlation = np.where(_same_noise(pairs) & together & request.learn, 1.0, hypothesis.correlation)
        # At worst, all agreement between judges is a shared error. At best, only that between copies is.
        active = np.ix_(plain.comparisons > 0, plain.comparisons > 0)
        alone = np.eye(pairs.m, dtype=bool)
        agreement = np.where(alone, 1.0, np.maximum(self.pair_table(statistics).value, 0.0))[active]
        most = len(agreement) ** 2 / max(float((alone + correlation)[active].sum()), 1.0)
        least = len(agreement) ** 2 / max(float(agreement.sum()), 1.0)
        shared = {
            "share": 1.0 / (1.0 + correlation.sum(axis=1)),
            "run_correlation": plain.run_correlation,
            "correlation": correlation,
            "effective_judges": (min(least, most), most),
        }
        if request.method == "labelled":
            pairs = pairs.where(np.isin(pairs.group, np.unique(pairs.group[pairs.judge == pairs.m])))
        u, spread = hypothesis.u, hypothesis.spread
        low, start, high = (_discrimination(np.tanh(one)) for one in (u - spread, u, u + spread))
        # The engine's spread includes that of the common level, so judges differ by less.
        apart = np.sqrt(np.var(start) + np.mean((high - low) ** 2) / 4.0)
        ratio = min(float(apart / max(abs(start.mean()), LEAST_SLOPE)), LARGEST_RATIO)
        return _fitted(pairs, start, ratio, shared, polished=hypothesis.probability >= NEGLIGIBLE)

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
        shares, found = np.array([share for share, _ in posteriors]), [one.details for _, one in posteriors]
        for row, names in enumerate(found[0]["candidates"]):
            order = [[own["candidates"][row].index(name) for name in names] for own in found]
            each = list(zip(found, order, strict=True))
            score, error = (np.stack([own[key][row][at] for own, at in each]) for key in ("score", "standard_error"))
            chance = np.stack([own["pair_probability"][row][np.ix_(at, at)] for own, at in each])
            mean = shares @ score
            variance = shares @ (error**2 + (score - mean) ** 2)
            rows.append((names, mean, np.sqrt(variance), np.tensordot(shares, chance, axes=1)))
        return _ranked(rows, decode)

    # --- summaries for all label types ------------------------------------------------------------------

    def summary(self, parameters: BradleyTerryParameters) -> Summary:
        """Return how often judges are wrong about two items, and their discriminations as weights."""
        slope, tie = parameters.slope, parameters.tie
        cost_error, error = self.quality_errors(parameters, slope, slope)
        names = ("cycles", "order_flips", "unparsable", "share")
        columns = {
            "comparisons": parameters.comparisons,
            "picks_first": 1.0 / (1.0 + np.exp(-parameters.bias)),  # for two equal items, without ties
            "tie_rate": tie / (2.0 + tie),
        }
        return Summary(
            expected_cost=cost_of_judge(slope, tie),
            weight=slope.copy(),
            standard_error=error,
            cost_standard_error=cost_error,
            correlation=parameters.correlation,
            columns=columns | {name: getattr(parameters, name) for name in names},
            effective_range=parameters.effective_judges,
        )

    def quality_errors(self, parameters: Any, quality: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return errors by the information in all comparisons, of which pairs of judges see a part."""
        own = parameters.slope_error
        finite = np.isfinite(own)
        fall = np.abs(_fall(parameters.slope, parameters.tie))
        return np.where(finite, fall * np.where(finite, own, 0.0), np.inf), own.copy()

    def guessing_sources(self, parameters: Any) -> BoolArray | None:
        """Return who may have no discrimination, and is wrong about nearly half of the pairs; not if all are."""
        wrong = cost_of_judge(parameters.slope, parameters.tie)
        slope, error = parameters.slope, parameters.slope_error
        # A judge significantly below zero does not guess, but reverses the order.
        guessing: BoolArray = (slope <= NORMAL_95 * error) & (slope >= -REVERSED * error) & (wrong > NEARLY_HALF)
        return guessing & ~guessing.all()

    def findings(
        self, trust: Trust, mixture: Mixture, statistics: Statistics, request: Request
    ) -> tuple[Diagnostic, ...]:
        first = mixture[0][1]
        if not isinstance(first, BradleyTerryParameters):
            return ()
        table = _table(self, statistics)
        own = table.without_known()
        scores = []
        for judges in (first, _plain(table)):
            pairs = own.weighted(judges.share, judges.run_correlation)
            scores.append(likelihood.scores_given_judges(pairs, judges, rounds=SCORE_ROUNDS).mean)
        tau = _rank_correlation(scores[0], scores[1], own.compared)
        found = findings.about(own, self.items, first.bias, first.bias_error, first.run_correlation, tau, request)
        if table.m > 1 and not self.pair_table(statistics).usable.any():
            message = (
                "No two judges compared the same pairs often enough to show whether they copy each other, so all are "
                "treated as independent. Have several judges compare the same pairs."
            )
            found.append(Diagnostic("judges-not-compared", "info", request.sources, message))
        return tuple(found)

    def check_method(self, method: str, *, has_votes: bool) -> None:
        super().check_method(method, has_votes=True)  # the sums hold all comparisons

    def from_weights(self, weight: FloatArray, request: Request) -> BradleyTerryParameters:
        slope = np.asarray(weight, dtype=np.float64)
        m = len(slope)
        zero = np.zeros(m)
        rest = _independent(m) | dict.fromkeys(("slope_error", "bias_error", "cycles", "order_flips"), zero)
        rest |= dict.fromkeys(("comparisons", "unparsable"), np.zeros(m, dtype=np.int64))
        return BradleyTerryParameters(
            *(slope, zero, np.full(m, 0.1), np.zeros((m, 2, 2)), np.ones(m)),
            equal=bool(np.ptp(slope) == 0.0) if m else True,
            **rest,
        )

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        return cost_of_judge(weight)

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        wanted = np.asarray(cost, dtype=np.float64)
        start = _discrimination(1.0 - 2.0 * wanted)
        return find_root(lambda slope: (cost_of_judge(slope) - wanted, _fall(slope)), start, -STEEPEST, STEEPEST)


# --- the comparisons at hand ----------------------------------------------------------------------------


def _table(law: BradleyTerryLaw, statistics: Statistics) -> PairVotes:
    return _tabulated(statistics["counts"][0], len(statistics["both"]), law.items)


@lru_cache(maxsize=8)
def _tabulated(counts: ComparisonCounts, m: int, items: tuple[Hashable, ...] | None) -> PairVotes:
    return counts.table(m, items)


def _at_least_binomial(value: FloatArray, error: FloatArray, count: FloatArray) -> FloatArray:
    """Return errors that are not below those of so many outcomes and one of the other kind: a few may agree by luck."""
    mean = np.clip(value, -1.0, 1.0) * count / (count + 1.0)
    return np.maximum(error, np.sqrt((1.0 - mean**2) / np.maximum(count, 1.0)))


@lru_cache(maxsize=8)
def _same_noise(table: PairVotes) -> BoolArray:
    """Return pairs of judges who share errors for sure: their noise goes together.

    Agreement cannot tell copies of a judge with a taste of its own from good judges; the same noise can. Groups grow as
    long as that explains more; then who does not belong there for sure is left out.
    """

    def worth(group: tuple[int, ...]) -> float:
        ways = lgamma(table.m + 1) - lgamma(len(group) + 1) - lgamma(table.m - len(group) + 1)
        return _shared_noise(table, group) - ways if len(group) > 1 else 0.0

    linked = np.zeros((table.m, table.m), dtype=bool)
    groups: list[tuple[int, ...]] = [(int(judge),) for judge in np.flatnonzero(_noise(table)[1].any(axis=1))]
    while len(groups) > 1:
        joined = [(worth(one + two) - worth(one) - worth(two), one, two) for one, two in combinations(groups, 2)]
        gain, one, two = max(joined)
        if gain <= 0.0:
            break
        groups = [group for group in groups if group not in (one, two)] + [one + two]
    for group in groups:
        while len(group) > 1:
            rest = max((group[:at] + group[at + 1 :] for at in range(len(group))), key=worth)
            if worth(group) - worth(rest) > SAME_NOISE:
                linked[np.ix_(group, group)] = True
                break
            group = rest
    return linked & ~np.eye(table.m, dtype=bool)


def _shared_noise(table: PairVotes, group: Sequence[int]) -> float:
    """Return the nats by which one correlation r of the noise in a group explains more than none.

    The likelihood of r is ``exp(A r - B r^2 / 2)``, averaged over r from 0 to 1.
    """
    from scipy.special import ndtr

    together, sure = (float(part[np.ix_(group, group)].sum()) / 2.0 for part in _noise(table))
    if sure <= 0.0:
        return 0.0
    root, peak = np.sqrt(sure), together / np.sqrt(sure)
    inside = ndtr(root - peak) - ndtr(-peak) if peak < root else ndtr(peak) - ndtr(peak - root)
    return float(peak**2 / 2.0 + np.log(np.sqrt(2.0 * np.pi) / root * max(float(inside), 1e-300)))


@lru_cache(maxsize=8)
def _noise(table: PairVotes) -> tuple[FloatArray, FloatArray]:
    """Return A and B ``(m, m)`` of each two judges of an arena, from what their own tastes leave; see `_shared_noise`.

    Zero for judges with too few comparisons for a taste, or in common. Over many prompts no taste can be seen.
    """
    own = np.flatnonzero(table.comparisons[: table.m] > table.width)
    result = np.zeros((2, table.m, table.m))
    if table.per_prompt or len(own) < 2:
        return result[0], result[1]
    place = np.full(table.n_judges, -1)
    place[own] = np.arange(len(own))
    pairs = table.where(place[table.judge] >= 0)
    pairs = replace(pairs, judge=place[pairs.judge], n_judges=len(own), known=False)
    left, variance, room = likelihood.unexplained(pairs, likelihood.starting_judges(pairs, np.ones(len(own))).tie)
    unit = 2 * pairs.unit + (pairs.first < pairs.second)  # what was shown, in this order
    shape = (len(own), int(unit.max(initial=-1)) + 1)
    often, noise, expected = (
        totals(pairs.judge * shape[1] + unit, pairs.weight * part, shape[0] * shape[1]).reshape(shape)
        for part in (np.ones(len(unit)), left, variance)
    )
    noise, expected = noise / np.maximum(often, 1.0), expected / np.maximum(often, 1.0) ** 2
    expected *= ((noise**2).sum(axis=1) / np.maximum(expected.sum(axis=1), 1e-12))[:, None]
    there = (often > 0).astype(np.float64)
    # Tastes use up degrees of freedom, so fewer than n of the residuals are independent.
    chance = expected @ expected.T / np.maximum(np.minimum.outer(room, room), 0.05)
    square = (expected @ there.T) * (there @ expected.T)
    usable = (there @ there.T >= MIN_VOTES) & ~np.eye(len(own), dtype=bool)
    weight = np.where(usable, 1.0 / np.maximum(chance, 1e-12), 0.0)
    result[:, own[:, None], own] = noise @ noise.T * np.sqrt(square) * weight, square * weight
    return result[0], result[1]


# --- fits ---------------------------------------------------------------------------------------------------


def _pooled(pairs: PairVotes, comparisons: IntArray) -> tuple[PairVotes, IntArray, IntArray]:
    """Return the comparisons with one judge for all who made hardly any.

    Also who each judge is there, and the first judge behind each of them.
    """
    small = (np.arange(len(comparisons)) < pairs.m) & (comparisons > 0) & (comparisons <= POOLED_VOTES)
    first = np.flatnonzero(~small | (np.cumsum(small) == 1) & small)  # the known labels stay the last judge
    place = np.searchsorted(first, np.where(small, np.argmax(small), np.arange(len(small))))
    return replace(pairs, judge=place[pairs.judge], n_judges=len(first)), place, first


def _fitted(
    table: PairVotes, slope: FloatArray, ratio: float, shared: dict[str, Any], *, polished: bool
) -> BradleyTerryParameters:
    """Return judges that explain the comparisons best, from where the trust engine sees them.

    The engine saw the same comparisons, so its discriminations are a start, not a prior.
    """
    m = table.m
    weighted = table.weighted(np.r_[shared["share"], 1.0], shared["run_correlation"])
    pairs, place, first = _pooled(weighted, table.comparisons)
    fixed = first >= m
    start = likelihood.starting_judges(pairs, np.r_[slope, CERTAIN][first], ratio)
    start = replace(start, tie=np.where(fixed, NO_TIES, start.tie))
    traits, scores = likelihood.fit_judges(pairs, start, fixed=fixed)
    if table.per_prompt and polished and pairs.width <= DRAWN_ITEMS:
        # Every few prompts are enough, because their order has no meaning.
        step = max(round(len(pairs) / POLISHED_VOTES), 1)
        some = pairs.where(pairs.group % step == 0)
        some = replace(some, group=some.group // step, names=pairs.names[::step])
        traits = likelihood.polish_judges(some, traits, fixed=fixed)
    if table.per_prompt or len(scores.mean) == 0:  # nobody compares anything
        errors = _root(traits.covariance).T
    else:
        mean = scores.mean[int(pairs.group[:1].sum())]
        errors = _root(likelihood.joint_covariance(pairs, traits, mean))[pairs.width :].reshape(2, -1)
    return _described(table, traits.of(place[:m]), errors[:, place[:m]], shared)


def _described(
    table: PairVotes, traits: JudgeTraits, errors: FloatArray, shared: dict[str, Any]
) -> BradleyTerryParameters:
    """Return the parameters of m judges with these traits; who made no comparison is as expected."""
    m = table.m
    silent = table.comparisons[:m] == 0
    return BradleyTerryParameters(
        np.where(silent, traits.slope_mean, traits.slope),
        np.where(silent, 0.0, traits.bias),
        *(traits.tie, traits.covariance, traits.bias_variance, traits.slope_mean, traits.slope_variance),
        slope_error=np.where(silent, np.inf, errors[0]),
        bias_error=np.where(silent, np.inf, errors[1]),
        comparisons=table.comparisons[:m],
        unparsable=np.array(table.unparsable[:m], dtype=np.int64),
        cycles=findings.cycles(table)[:m],
        order_flips=findings.order_flips(table)[:m],
        per_prompt=table.per_prompt,
        **shared,
    )


def _independent(m: int) -> dict[str, Any]:
    return {"share": np.ones(m), "correlation": np.zeros((m, m)), "effective_judges": (float(m), float(m))}


@lru_cache(maxsize=8)
def _plain(table: PairVotes) -> BradleyTerryParameters:
    """Return judges that all count the same, and have no position bias."""
    m, own = table.m, table.without_known()
    pairs = own.weighted(np.ones(m), 1.0)
    traits, scores = likelihood.fit_judges(pairs, likelihood.starting_judges(pairs, np.ones(m)), equal=True)
    runs = likelihood.correlation_of_runs(own, traits, scores.differences(own)[0])
    if (own.run >= 0).any():
        traits, _ = likelihood.fit_judges(own.weighted(np.ones(m), runs), traits, equal=True)
    found = _described(table, traits, np.zeros((2, m)), {**_independent(m), "run_correlation": runs})
    slope = np.full(m, max(float(traits.slope[0]), 0.05) if m else 1.0)
    return replace(found, slope=slope, slope_error=np.zeros(m), bias_error=np.zeros(m), equal=True)


# --- from judges to rankings --------------------------------------------------------------------------------


def _beliefs(parameters: BradleyTerryParameters, table: PairVotes) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, standard error and pairwise probabilities of the scores of each group."""
    weighted = table.weighted(parameters.share, parameters.run_correlation)
    pairs, _, first = _pooled(weighted, parameters.comparisons)
    judges, width, per_prompt = parameters.of(first), pairs.width, parameters.per_prompt
    if per_prompt:
        judges = replace(judges, covariance=np.zeros_like(judges.covariance))
    shape = (pairs.n_groups, width)
    mean, spread, better = np.zeros(shape), np.ones(shape), np.full((*shape, width), 0.5)
    step = GROUPS_AT_ONCE if per_prompt else 1
    pairs = pairs.where(np.argsort(pairs.group, kind="stable"))
    for start in range(0, pairs.n_groups, step):
        rows = slice(start, min(start + step, pairs.n_groups))
        own = pairs.where(np.arange(*np.searchsorted(pairs.group, [rows.start, rows.stop])))
        own = replace(own, group=own.group - start, names=pairs.names[rows])
        rounds = likelihood.FIRST_STEPS if per_prompt else SCORE_ROUNDS
        scores = likelihood.scores_given_judges(own, judges, rounds=rounds)
        if not per_prompt:
            joint = likelihood.joint_covariance(own, judges, scores.mean[0], equal=parameters.equal)
            better[rows] = likelihood.better_whatever_the_unit(own, judges, scores.mean[0], joint)
            # Votes only show differences. The uncertainty of the common level would be that of the prior.
            centering = np.eye(width) - 1.0 / width if width > 1 else np.eye(width)
            covariance = centering @ joint[:width, :width] @ centering.T
            scores = ScoreBelief(scores.mean - scores.mean.mean(), covariance[None])
        elif width <= DRAWN_ITEMS:
            drawn = likelihood.draw_scores(own, judges, scores, likelihood.normal_draws(width))
            scores, better[rows] = likelihood.summarize_draws(*drawn)
        else:
            better[rows] = likelihood.prefer(scores.mean, scores.covariance)
        mean[rows], spread[rows] = scores.mean, _root(scores.covariance)
    return mean, spread, better


def _root(covariance: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 0.0)))


def _ranked(rows: list[tuple[tuple[Hashable, ...], FloatArray, FloatArray, FloatArray]], decode: str) -> Posterior:
    """Return one ranking per row from the names, scores, errors and pair probabilities of its items."""
    labels, details = [], []
    confidence = np.zeros(len(rows))
    for row, (names, mean, spread, better) in enumerate(rows):
        size = len(names)
        key = better.sum(axis=1) if decode == "bayes" else mean
        order = np.argsort(-key, kind="stable")
        chance = better[np.ix_(order, order)]
        off = ~np.eye(size, dtype=bool)
        sure = (chance >= SURE) & off
        confidence[row] = float(np.abs(2.0 * chance[off] - 1.0).mean()) if size > 1 else 0.0
        ordered = tuple(names[at] for at in order)
        details.append((ordered, mean[order], spread[order], 1 + sure.sum(axis=0), size - sure.sum(axis=1), chance))
        groups: list[list[Hashable]] = []
        for place, at in enumerate(order):
            if place and key[order[place - 1]] - key[at] < TIED:
                groups[-1].append(names[at])
            else:
                groups.append([names[at]])
        labels.append(Comparisons.of_ranking(groups))
    fields = ("candidates", "score", "standard_error", "rank_low", "rank_high", "pair_probability")
    columns = {name: as_object_array(one[at] for one in details) for at, name in enumerate(fields)}
    return Posterior(as_object_array(labels), confidence, None, columns)


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
    """
    eta = np.clip(np.asarray(discrimination, dtype=np.float64), -STEEPEST, STEEPEST)[..., None] * _differences()
    agreement = outcome_moments(eta, np.asarray(tie, dtype=np.float64)[..., None])[0]
    return np.asarray((1.0 - agreement.mean(axis=-1)) / 2.0)


def _fall(discrimination: FloatArray, tie: FloatArray | float = 0.0) -> FloatArray:
    """Return minus the slope of `cost_of_judge`."""
    costs = [cost_of_judge(discrimination + way * STEP, tie) for way in (-1.0, 1.0)]
    return (costs[0] - costs[1]) / (2.0 * STEP)


def _differences() -> FloatArray:
    """Return sizes of the difference of two scores, equally probable."""
    from scipy.special import ndtri

    return np.asarray(np.sqrt(2.0) * ndtri(0.5 + (np.arange(NODES) + 0.5) / (2.0 * NODES)))


@lru_cache(maxsize=1)
def _discrimination_curve() -> tuple[FloatArray, FloatArray]:
    slope = STEEPEST * np.linspace(-1.0, 1.0, CURVE_POINTS) ** 3
    return 1.0 - 2.0 * cost_of_judge(slope), slope


def _discrimination(quality: FloatArray) -> FloatArray:
    """Return the discriminations of judges whose outcomes correlate with the true order in this way."""
    return np.interp(quality, *_discrimination_curve())
