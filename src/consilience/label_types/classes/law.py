"""Categorical votes: confusion tables of judges, events of labeling functions.

Sources that vote for every class follow Dawid and Skene given a vote: P(vote | class), one table per source, around
the one number per source that the trust engine knows. Sources that vote only for some classes are scored by events
(`labeling_functions`). Which form applies is decided per table by which classes the sources vote for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from consilience.arrays import (
    Axes,
    Batch,
    BoolArray,
    Correlation,
    FloatArray,
    IntArray,
    few_votes,
    softmax,
    votes_per_item,
)
from consilience.estimation.pair_table import PairTable, Statistics, agreement_table
from consilience.estimation.protocol import (
    METHODS,
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
from consilience.exceptions import UnsupportedError
from consilience.label_types.classes import labeling_functions
from consilience.label_types.dirichlet import log_evidence, log_surprise, shrink_counts
from consilience.label_types.vote_correlation import discount_correlated

#: Largest number of (source, class) events for which the joint votes of all pairs are kept.
MAX_EVENTS = 2048
#: With at most so many patterns of votes, and at least so many items, labels are looked up by pattern.
MAX_PATTERNS, MIN_ITEMS = 65_536, 4_096
#: Probabilities are kept this far away from 0 before a logarithm is taken.
FLOOR = 1e-6
#: Largest angle of a tetrachoric correlation, sin(1.5) = .997.
MAX_ANGLE = 1.5
#: Rounds of proportional fitting; the rows are exact after any of them.
FITTING_ROUNDS = 30
#: Step of the numerical slope of a likelihood by u.
STEP = 0.05
#: Votes times classes up to which NumPy is as quick as `kernels`; beyond, its products of matrices start threads.
CELLS = 12_000


@dataclass(frozen=True)
class ClassParameters(Parameters):
    """What is known about m categorical sources and k classes."""

    # [source, vote, class]: P(vote | class) of judges, P(class | vote) of functions
    table: Annotated[FloatArray, Axes("m k k", 0.0, 1.0)]
    prior: Annotated[FloatArray, Axes("k", 0.0, 1.0)]  # class shares of the items with a vote
    # (k,) class shares of the items with a vote that follow from a balance of all items, or zeros where labeling
    # functions were told none. They replace `prior` in labels; what a vote says is still measured against `prior`.
    told: Annotated[FloatArray, Axes("k", 0.0, 1.0)]
    uncovered: Annotated[FloatArray, Axes("k", 0.0, 1.0)]  # class probabilities of an item without a vote
    correlation: Correlation  # of errors given the truth
    grouped: Correlation  # the same inside groups alone, zero elsewhere
    accuracy: Annotated[FloatArray, Axes("m", 0.0, 1.0)]  # share of right votes
    sure: Annotated[FloatArray, Axes("m", 0.0, 1.0)]  # share of votes for which a source that confuses classes knew
    u: Annotated[FloatArray, Axes("m")]  # qualities
    spread: Annotated[FloatArray, Axes("m", 0.0, infinite=True)]  # how far EM may move them
    habit: Annotated[FloatArray, Axes("m k", 0.0, 1.0)]  # how often each source votes for each class, whatever the item
    gold: Annotated[FloatArray, Axes("m k k", 0.0)]  # votes on known items as [source, vote, class]
    gold_classes: Annotated[FloatArray, Axes("k", 0.0)]  # known items of each class
    are_functions: bool = False  # whether sources are labeling functions
    precise: bool = False  # whether the precision of their votes is the same for all classes; else the rate of errors
    plain: bool = False  # whether all votes count the same and their shares are the probabilities
    learns_prior: bool = False  # whether EM learns how frequent the classes are
    own: bool = False  # whether each source confuses classes in a way of its own

    @classmethod
    def of(cls, u: FloatArray, prior: FloatArray, habit: FloatArray, **others: Any) -> ClassParameters:
        """Return independent sources of these qualities; what is not given is empty."""
        m, k = habit.shape
        start: dict[str, Any] = {"table": np.zeros((m, k, k)), "accuracy": np.zeros(m), "correlation": np.zeros((m, m))}
        start |= {"grouped": np.zeros((m, m)), "sure": np.zeros(m)}
        start |= {"told": np.zeros(k), "uncovered": prior, "gold": np.zeros((m, k, k)), "gold_classes": np.zeros(k)}
        return cls(u=u, prior=prior, habit=habit, **(start | others))

    def probabilities(self, labels: Batch, observed: BoolArray) -> FloatArray:
        """Return ``(n, k)`` class probabilities for hard votes ``(n, m)`` or soft votes ``(n, m, k)``."""
        if self.plain:
            return self._vote_shares(labels, observed)
        found = self.beliefs(labels, observed)
        if self.are_functions:
            found[votes_per_item(observed) == 0] = self.uncovered
        return found

    def beliefs(self, labels: Batch, observed: BoolArray) -> FloatArray:
        """Return the same, whoever voted."""
        offset = np.log(np.maximum(self.told if self.told.any() else self.prior, FLOOR))
        own = np.log(np.maximum(self.prior, FLOOR)) if self.precise else 0.0
        if labels.ndim == 3:
            # A soft vote is a distribution over the classes the source may have meant; its evidence is the average of
            # the evidence of those classes (of likelihoods, or of precisions).
            scores = np.log(np.maximum(np.einsum("nav,avc->nac", labels, self.table), FLOOR)) - own
            shares = discount_correlated(observed, self.correlation)
            return softmax(offset + np.einsum("nac,na->nc", scores, shares))
        m, k, _ = self.table.shape
        table = np.zeros((m, k + 1, k))  # what each vote adds to each class; the last row, abstaining, adds nothing
        table[:, :k] = np.log(np.maximum(self.table, FLOOR)) - own
        table = table.reshape(-1, k)
        small = is_small(labels, k)
        if not small and few_votes(observed):
            from consilience.label_types.classes.kernels import beliefs_from_few

            return beliefs_from_few(labels, observed, table, offset, self.correlation)
        shares = discount_correlated(observed, self.correlation) if self.correlation.any() else np.empty((0, 0))
        if small:
            return small_beliefs(labels, observed, table, offset, shares)
        from consilience.label_types.classes.kernels import beliefs

        return beliefs(labels, observed, table, offset, shares)

    def _vote_shares(self, labels: Batch, observed: BoolArray) -> FloatArray:
        counts = np.zeros((len(observed), len(self.prior)))
        if labels.ndim == 3:
            counts += (labels * observed[:, :, None]).sum(axis=1)
        else:
            for source in range(observed.shape[1]):
                rows = np.flatnonzero(observed[:, source])
                counts[rows, labels[rows, source].astype(np.int64)] += 1.0
        # Ties go to the class that gets more votes overall; so do items without a vote.
        counts += np.where(counts.any(axis=1, keepdims=True), 1e-9, 1.0) * self.prior
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    @cached_property
    def by_pattern(self) -> FloatArray:
        """The class probabilities of every pattern of hard votes."""
        m, k, _ = self.table.shape
        return self.probabilities(*all_patterns(m, k))

    @property
    def n_choices(self) -> int:
        return len(self.prior)


# --- sums of small tables, which are not worth a compilation, as in `kernels` ---------------------------------------


def is_small(labels: Batch, k: int) -> bool:
    """Return whether a table of class codes is small."""
    return labels.ndim == 2 and labels.size * k <= CELLS


def _one_hot(codes: Batch, observed: BoolArray, k: int) -> FloatArray:
    """Return 1 where a source votes a class, ``(n, m * k)``."""
    votes = (codes[:, :, None] == np.arange(k)) & observed[:, :, None]
    return votes.reshape(len(codes), codes.shape[1] * k).astype(np.float64)


def count_small_pairs(codes: Batch, observed: BoolArray, k: int) -> IntArray:
    """Return how often source a votes v while source b votes w, ``(m * k, m * k)``."""
    votes = _one_hot(codes, observed, k)
    return np.rint(votes.T @ votes).astype(np.int64)


def small_beliefs(
    codes: Batch, observed: BoolArray, table: FloatArray, offset: FloatArray, shares: FloatArray
) -> FloatArray:
    """Return ``(n, k)`` posterior class probabilities from what each event adds to each class, ``(m * (k + 1), k)``."""
    m, k = codes.shape[1], len(offset)
    added = table[np.arange(m) * (k + 1) + np.where(observed, codes, k)]
    if len(shares):
        added = added * np.where(observed, shares, 1.0)[:, :, None]
    scores = offset + added.sum(axis=1)
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: FloatArray = scores / scores.sum(axis=1, keepdims=True)
    return found


def small_expected_votes(codes: Batch, observed: BoolArray, belief: FloatArray) -> FloatArray:
    """Return how often each source votes v on items of class c, ``(m, k, k)`` as ``[source, vote, class]``."""
    k = belief.shape[1]
    counts: FloatArray = (_one_hot(codes, observed, k).T @ belief).reshape(codes.shape[1], k, k)
    return counts


# --- patterns of votes ------------------------------------------------------------------------------


def patterns_of(labels: Batch, observed: BoolArray, k: int) -> IntArray | None:
    """Return the number of each row's pattern of votes; None for too many patterns, few items or soft votes."""
    if labels.ndim != 2 or len(labels) < MIN_ITEMS or not few_patterns(labels.shape[1], k):
        return None
    from consilience.label_types.classes.kernels import pattern_numbers

    return pattern_numbers(labels, observed, k)


def few_patterns(m: int, k: int) -> bool:
    """Return whether there are so few patterns of votes that each is labeled once."""
    return bool(m * np.log(k + 1) <= np.log(MAX_PATTERNS))


def all_patterns(m: int, k: int) -> tuple[Batch, BoolArray]:
    """Return every pattern of the votes of m sources, as class codes and who voted; in the order of their numbers."""
    digits = np.indices((k + 1,) * m, dtype=np.int8).reshape(m, -1).T
    return np.maximum(digits - 1, 0), digits > 0


@dataclass(frozen=True)
class ClassesLaw(Law):
    """Categorical votes over `n_classes` classes."""

    n_classes: int
    parameter_class = ClassParameters
    methods: ClassVar[tuple[str, ...]] = (*METHODS[:4], "quadratic", *METHODS[4:])
    has_em: ClassVar[bool] = True
    side_by_side: ClassVar[bool] = True

    @property
    def sizes(self) -> Mapping[str, int]:
        return {"k": self.n_classes}

    def measures_like(self, other: Law) -> bool:
        return isinstance(other, ClassesLaw) and other.n_classes == self.n_classes

    # --- level 0 ------------------------------------------------------------------------------------

    def statistics(self, chunk: Chunk) -> Statistics:
        labels, observed = chunk.labels, chunk.observed
        k, m = self.n_classes, observed.shape[1]
        if labels.ndim == 3 or m * k <= MAX_EVENTS:
            if labels.ndim == 3:
                flat = (labels * observed[:, :, None]).reshape(len(chunk), m * k)
                votes, pairs, both = flat.sum(axis=0).reshape(m, k), flat.T @ flat, None
            else:
                if is_small(labels, k):
                    pairs = count_small_pairs(labels, observed, k)
                else:
                    from consilience.label_types.classes.kernels import count_few_pairs, count_pairs

                    pairs = (count_few_pairs if few_votes(observed) else count_pairs)(labels, observed, k)
                votes, both = np.diag(pairs).reshape(m, k), pairs.reshape(m, k, m, k).sum(axis=(1, 3))
            joint = pairs.reshape(m, k, m, k)
            parts = {"pairs": pairs, "agree": np.einsum("acbc->ab", joint)}
            parts["class_pairs"] = np.einsum("acbd->cd", joint) - np.einsum("acad->cd", joint)
        else:
            votes, agree, both = _agreements(labels, observed, k)
            rows, sources = np.nonzero(observed)
            cells = rows * k + labels[rows, sources].astype(np.int64)
            count = np.bincount(cells, minlength=len(chunk) * k).reshape(len(chunk), k).astype(np.float64)
            parts = {"agree": agree, "class_pairs": count.T @ count - np.diag(count.sum(axis=0))}
        parts |= chunk.counts(both) | {"votes": votes}
        rows = chunk.gold_rows
        rows = rows[votes_per_item(observed[rows]) > 0]
        if len(rows) and chunk.known is not None:
            truth = np.eye(k)[chunk.known[rows].astype(np.int64)]
            hard = np.eye(k)[np.where(observed[rows], labels[rows], 0)] if labels.ndim == 2 else labels[rows]
            parts["gold"] = np.einsum("nav,nc->avc", hard * observed[rows][:, :, None], truth)
            parts["gold_classes"] = truth.sum(axis=0)
        return Statistics(parts)

    def pair_table(self, statistics: Statistics) -> PairTable:
        votes = statistics["votes"].astype(np.float64)
        m, k = votes.shape
        agree, both = (statistics[name].astype(np.float64) for name in ("agree", "both"))
        share = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1.0)
        base = votes.sum(axis=0) / max(float(votes.sum()), 1.0)
        sums = _agreement_sums(statistics, share, agree, both)
        gold_spread = 1.0
        if "gold" in statistics:
            gold, gold_spread = _gold_sums(statistics, share, base)
            sums |= gold
            known, right = statistics["gold"].sum(axis=(1, 2)), np.einsum("acc->a", statistics["gold"])
        table = agreement_table(sums)
        # Votes that always agree are not known to agree for ever: Laplace's rule of succession.
        error = np.maximum(table.error, 1.0 / (both + 2.0))
        # The scatter of agreement is a function of its mean.
        table = replace(table, error=error, cost=1.0 - agree / np.maximum(both, 1.0), scatter=None)
        if "gold" in statistics and table.gold_error is not None:
            table = replace(table, gold_error=np.maximum(table.gold_error, 1.0 / (known + 2.0)))
        if labeling_functions.vote_only_some_classes(votes):
            # Two functions that vote for one class each agree always or never, however good they are.
            repeats = labeling_functions.repeated_votes(agree, both)[1]
            table = replace(table, value=np.eye(m), error=np.full((m, m), np.inf), linked=repeats)
            if "gold" in statistics:  # the share of right votes on known items, between chance and always right
                right = (right + 1.0) / (known + 2.0)
                error = np.where(known > 0, np.sqrt(right * (1.0 - right) / np.maximum(known, 1.0)), np.inf)
                table = replace(table, gold_value=(k * right - 1.0) / (k - 1), gold_error=error * k / (k - 1))
            return table
        if k == 2:
            return _without_strictness(table, votes, gold_spread)
        spread = max(1.0 - float((base**2).sum()), 0.05)
        value = np.where(np.eye(m, dtype=bool), 1.0, table.value / spread)
        if table.gold_value is not None and table.gold_error is not None:
            table = replace(table, gold_value=table.gold_value / gold_spread, gold_error=table.gold_error / gold_spread)
        uneven = _uneven_agreement(statistics["pairs"].reshape(m, k, m, k), value) if "pairs" in statistics else 0.0
        return replace(table, value=value, error=np.sqrt(table.error**2 + uneven) / spread)

    def label_indicators(self, statistics: Statistics, request: Request) -> tuple[FloatArray, FloatArray, FloatArray]:
        votes = statistics["votes"].astype(np.float64)
        m, k = votes.shape
        if "pairs" not in statistics:
            raise UnsupportedError(
                f"method='quadratic' keeps a table of {m} x {k} events squared, too large here. Use 'auto' or 'em'."
            )
        pairs = statistics["pairs"].reshape(m, k, m, k).astype(np.float64)
        return np.einsum("acbc->cab", pairs), votes, self._prior(np.full(m, 0.55), statistics, request)

    def weight_from_accuracy(self, accuracy: FloatArray) -> FloatArray:
        accuracy = np.clip(accuracy, 1e-9, 1 - 1e-9)
        return np.asarray(np.log(accuracy * (self.n_classes - 1) / (1 - accuracy)))

    def constant_sources(self, statistics: Statistics) -> BoolArray:
        votes = statistics["votes"]
        return np.asarray(((votes > 0).sum(axis=1) == 1) & (votes.sum(axis=1) >= 10))

    # --- level 2 ------------------------------------------------------------------------------------

    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> ClassParameters:
        votes = statistics["votes"].astype(np.float64)
        m, k = votes.shape
        base = votes.sum(axis=0) + 1.0
        prior = self._prior(hypothesis.u, statistics, request)
        start = ClassParameters.of(
            hypothesis.u,
            prior,
            shrink_counts(votes, _unbiased(hypothesis.u, prior)),
            correlation=hypothesis.correlation,
            grouped=np.where(hypothesis.in_group, hypothesis.correlation, 0.0),
            spread=hypothesis.spread if request.method == "em" else np.zeros(m),
            learns_prior=request.prior_is("auto"),
            **{name: statistics[name] for name in ("gold", "gold_classes") if name in statistics},
        )
        if hypothesis.is_plain or m == 1:  # a single source is believed, because nothing can be learned about it
            told = base / base.sum() if isinstance(request.prior, str) else prior
            table = _coin_tables(hypothesis.u, prior, start.habit)
            start = replace(start, table=table, prior=told, uncovered=told, plain=True, learns_prior=False)
            return replace(start, accuracy=_accuracy(start))
        if labeling_functions.vote_only_some_classes(votes):
            return _functions(start, hypothesis, statistics, request)
        return _confusions(start, start, np.zeros((m, k, k)), np.zeros(k), 0.0)

    def prepare(self, chunk: Chunk) -> tuple[Chunk, IntArray]:
        votes = votes_per_item(chunk.observed)
        # Known labels are counted once, at full weight, in `gold`.
        return chunk, votes if chunk.is_known is None else np.where(chunk.is_known, 0, votes)

    def e_step(self, parameters: ClassParameters, prepared: tuple[Chunk, IntArray]) -> Statistics:
        chunk, votes = prepared
        labels, observed = chunk.labels, chunk.observed
        belief = parameters.beliefs(labels, observed)
        # A single vote on an item shows nothing about confusions beyond the prior.
        belief[votes < (1 if parameters.are_functions else 2)] = 0.0
        if labels.ndim == 2:
            if is_small(labels, belief.shape[1]):
                counts = small_expected_votes(labels, observed, belief)
            else:
                from consilience.label_types.classes.kernels import expected_votes

                counts = expected_votes(labels, observed, belief, few_votes(observed))
        elif parameters.are_functions:
            counts = np.einsum("nav,nc->avc", labels * observed[:, :, None], belief)
        else:  # which class a judge meant depends on the truth
            cast = labels * observed[:, :, None]
            evidence = np.maximum(np.einsum("nav,avc->nac", cast, parameters.table), 1e-12)
            counts = np.einsum("nav,nac->avc", cast, belief[:, None, :] / evidence) * parameters.table
        entropy = -(belief * np.log(np.maximum(belief, 1e-300))).sum()
        sums = {"counts": counts, "classes": belief.sum(axis=0)}
        return Statistics(sums | {"square": np.array((belief**2).sum()), "entropy": np.array(entropy)})

    def m_step(self, parameters: ClassParameters, statistics: Statistics, start: ClassParameters) -> ClassParameters:
        counts, classes = statistics["counts"], statistics["classes"]
        if parameters.plain:
            return parameters
        known = _information(parameters, statistics)
        if parameters.are_functions:
            prior = parameters.prior
            if parameters.told.any() and parameters.precise:
                # Beliefs have the told balance on average: votes are measured against shares that make it so. Shares
                # count once in every vote, so that the step is divided by the votes per item.
                items = classes + start.gold_classes
                missing = (items + 1.0) / (parameters.told * items.sum() + 1.0)
                prior = prior * missing ** (items.sum() / max(float((counts + start.gold).sum()), 1.0))
                prior = prior / prior.sum()
            elif parameters.learns_prior:
                items = known * classes + (1.0 - known) * classes.mean() + start.gold_classes + 1.0
                prior = items / items.sum()
            uncovered = parameters.uncovered if parameters.told.any() else prior
            return replace(parameters, prior=prior, uncovered=uncovered, accuracy=_right_share(counts + start.gold))
        return _confusions(parameters, start, counts, classes, known)

    def starts(self, parameters: ClassParameters) -> tuple[ClassParameters, ...]:
        """Begin also with sources that confuse classes: where all seem to err evenly, beliefs show nothing else."""
        if parameters.plain or parameters.are_functions:
            return (parameters,)
        # What qualities do not explain is shared error if sources err evenly. Otherwise, the tables explain it.
        right = np.einsum("acc->ac", parameters.table).mean(axis=1)
        sure = np.clip((self.n_classes * right - 1.0) / (self.n_classes - 1), 0.0, 1.0 - FLOOR)
        return parameters, replace(parameters, correlation=parameters.grouped, own=True, sure=sure)

    def evidence(self, parameters: ClassParameters, statistics: Statistics, start: ClassParameters) -> float:
        if parameters.plain or parameters.are_functions:
            return 0.0
        return _evidence(parameters, start, statistics, _information(parameters, statistics))

    def merge(self, mixture: Mixture) -> Mixture:
        first = mixture[0][1]
        # Labeling functions do not depend on the qualities in which hypotheses differ.
        same = isinstance(first, ClassParameters) and (first.are_functions or first.plain)
        return ((1.0, first),) if same else mixture

    # --- level 3 ------------------------------------------------------------------------------------

    def posterior(self, parameters: ClassParameters, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        numbers = patterns_of(labels, observed, self.n_classes)
        if numbers is None:
            return _decoded(parameters.probabilities(labels, observed))
        return _decoded(parameters.by_pattern.take(numbers, axis=0))

    def average(self, posteriors: Sequence[tuple[float, Posterior]], decode: str) -> Posterior:
        return _decoded(np.asarray(sum(share * np.asarray(one.probabilities) for share, one in posteriors)))

    # --- in shared words --------------------------------------------------------------------------------

    def summary(self, parameters: ClassParameters) -> Summary:
        unknown = np.full(len(parameters.accuracy), np.inf)
        weight = self.weight_from_accuracy(parameters.accuracy)
        return Summary(1.0 - parameters.accuracy, weight, unknown, unknown, parameters.correlation)

    def from_weights(self, weight: FloatArray, request: Request) -> ClassParameters:
        m, k = len(weight), self.n_classes
        prior = np.full(k, 1.0 / k) if isinstance(request.prior, str) else request.prior
        accuracy = 1.0 - self.expected_cost(weight)
        even = np.clip((1.0 - accuracy) / (k - 1), FLOOR, 1 - FLOOR)[:, None, None]
        table = np.where(np.eye(k, dtype=bool), np.clip(accuracy, FLOOR, 1 - FLOOR)[:, None, None], even)
        u, habit = np.arctanh(np.clip((k * accuracy - 1) / (k - 1), -0.999, 0.999)), np.full((m, k), 1.0 / k)
        return ClassParameters.of(u, prior, habit, table=table, accuracy=accuracy, spread=np.full(m, np.inf))

    def spared(self, belief: Posterior) -> FloatArray:
        return np.maximum(1.0 - (1.0 - belief.confidence) / self.chance_cost, 0.0)

    def expected_cost(self, weight: FloatArray) -> FloatArray:
        return np.asarray(1.0 - 1.0 / (1.0 + (self.n_classes - 1) * np.exp(-np.clip(weight, -700.0, 700.0))))

    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        return self.weight_from_accuracy(1.0 - np.asarray(cost, dtype=float))

    def findings(
        self, trust: Trust, mixture: Mixture, statistics: Statistics, request: Request
    ) -> tuple[Diagnostic, ...]:
        if not labeling_functions.vote_only_some_classes(statistics["votes"].astype(np.float64)):
            return ()
        kind = "Sources vote for some classes only, as labeling functions do, so "
        if request.n_gold:
            known = f"{request.n_gold} known label{'s' * (request.n_gold != 1)}"
            message = f"{kind}only the {known} can show which are better. About 30 are enough to learn most of it."
        else:
            limit = "" if isinstance(request.prior, str) else " as far as the class balance allows"
            message = (
                f"{kind}agreement does not show which are better. Labels treat all votes but those of copies as "
                f"equally reliable{limit}, whatever their weight; pass gold= with 30 known labels to learn more."
            )
        return (Diagnostic("labeling-functions", "info", (), message),)

    def _prior(self, u: FloatArray, statistics: Statistics, request: Request) -> FloatArray:
        """Return the class shares that were told, or those that the votes suggest beyond chance."""
        k = self.n_classes
        even = np.full(k, 1.0 / k)
        if not isinstance(request.prior, str):
            return request.prior
        if not request.prior_is("auto"):
            return even  # with a 0/1 cost the normalizer is the same for every class, so "gibbs" is "uniform"
        votes = statistics["votes"].astype(np.float64)
        # The votes on an item tell its class as well as their weighted mean is correlated with it.
        signal = float((votes.sum(axis=1) * np.sinh(u) ** 2).sum()) / max(float(statistics["voted_items"]), 1.0)
        known = float(statistics["voted_items"]) * signal / (1.0 + signal)
        return np.asarray(shrink_counts(known * _class_shares(u, votes)[None], even[None])[0])


# --- level 0: agreement --------------------------------------------------------------------------------------


def _agreements(labels: Batch, observed: BoolArray, k: int) -> tuple[IntArray, IntArray, IntArray | None]:
    """Votes per class, agreements and common votes, for so many sources or classes that no joint table fits."""
    if few_votes(observed):
        from consilience.label_types.classes.kernels import count_agreements

        return count_agreements(labels, observed, k)
    m = observed.shape[1]
    votes, agree = np.zeros((m, k), dtype=np.int64), np.zeros((m, m), dtype=np.int64)
    for c in range(k):
        voted = (observed & (labels == c)).astype(np.float32)
        votes[:, c] = voted.sum(axis=0)
        agree += np.rint(voted.T @ voted).astype(np.int64)
    return votes, agree, None


def _agreement_sums(
    statistics: Statistics, share: FloatArray, agree: FloatArray, both: FloatArray
) -> dict[str, FloatArray]:
    """Return sums of the inner products of votes as one-hot vectors minus what the source votes whatever the item."""
    m, k = share.shape
    total, square = np.zeros((m, m)), np.zeros((m, m))
    if "pairs" in statistics:
        pairs = statistics["pairs"].reshape(m, k, m, k)
        for a in range(m):
            joint = pairs[a].transpose(1, 0, 2).astype(np.float64)  # other source, vote of a, vote of the other
            inner = np.eye(k) - share[:, :, None] - share[a][None, None, :] + (share @ share[a])[:, None, None]
            total[a], square[a] = (joint * inner).sum(axis=(1, 2)), (joint * inner**2).sum(axis=(1, 2))
    else:
        total = agree - both * (share @ share.T)
        agreement = agree / np.maximum(both, 1.0)
        square = both * (agreement * (1.0 - agreement) + (total / np.maximum(both, 1.0)) ** 2)
    return {"agreement": total, "agreement_square": square, "agreement_count": both, "agreement_votes": np.diag(both)}


def _uneven_agreement(pairs: FloatArray, agreement: FloatArray) -> FloatArray:
    """Return the variance ``(m, m)`` that confusions of their own bring into the agreement of two sources.

    With votes in units of their chance scatter, the covariance of two sources that err evenly is a multiple of the
    identity. Let each add noise of variance ``w_a = w (1 - q_a)^2`` to what it makes of the truth. Then all of the
    ``(k - 1)^2 - 1`` directions other than that of agreement have the variance ``q_a^2 w_b + q_b^2 w_a + (k - 1) w_a
    w_b`` beyond chance, which tells w. In agreements the first two terms are part of the qualities; the last is not.
    """
    m, k = pairs.shape[:2]
    excess, length, weight = np.zeros((3, m, m))
    for a in range(m):
        joint = pairs[a].transpose(1, 0, 2).astype(np.float64)  # other source, vote of a, vote of the other
        count = np.maximum(joint.sum(axis=(1, 2)), 1.0)
        left, right = joint.sum(axis=2) / count[:, None], joint.sum(axis=1) / count[:, None]
        chance = left[:, :, None] * right[:, None, :]
        # Half a vote is the least that scatters, so that a single vote for a rare class is not surprising.
        found = joint / count[:, None, None] - chance
        found = found / np.sqrt(np.maximum(chance, 0.5 / count[:, None, None]))
        both = np.sqrt(left * right)
        straight = np.trace(found, axis1=1, axis2=2) ** 2 / (k - 2 + both.sum(axis=1) ** 2)
        excess[a] = ((found**2).sum(axis=(1, 2)) - straight) / ((k - 1) ** 2 - 1) - 1.0 / count
        length[a] = (both**2 * (1.0 - left - right)).sum(axis=1) + (both**2).sum(axis=1) ** 2
        weight[a] = count
    np.fill_diagonal(weight, 0.0)
    quality = _leading_factor(agreement)
    blur = (1.0 - quality) ** 2
    first = 2.0 * float(quality**2 @ weight @ blur)
    second = (k - 1) * float(blur @ weight @ blur)
    total = max(float((weight * excess).sum()), 0.0)
    noise = 2.0 * total / max(first + np.sqrt(first**2 + 4.0 * second * total), 1e-12)
    return (k - 1) * noise**2 * np.outer(blur, blur) * length


def _leading_factor(agreement: FloatArray) -> FloatArray:
    """Return the qualities ``(m,)`` whose products are closest to the agreements of different sources."""
    filled = agreement.copy()
    quality: FloatArray = np.zeros(len(filled))
    for _ in range(FITTING_ROUNDS):
        np.fill_diagonal(filled, quality**2)
        values, vectors = np.linalg.eigh(filled)
        quality = np.clip(np.abs(vectors[:, -1]) * np.sqrt(max(float(values[-1]), 0.0)), 0.0, 0.99)
    return quality


def _gold_sums(statistics: Statistics, share: FloatArray, base: FloatArray) -> tuple[dict[str, FloatArray], float]:
    """Return the same with known labels, and the mean square of these as centered vectors."""
    gold, classes = statistics["gold"], statistics["gold_classes"]
    k = len(base)
    inner = np.eye(k)[None] - base[None, :, None] - share[:, None, :] + (share @ base)[:, None, None]
    length = 1.0 - 2.0 * base + (base**2).sum()
    sums = {
        "gold_agreement": (gold * inner).sum(axis=(1, 2)),
        "gold_agreement_square": (gold * inner**2).sum(axis=(1, 2)),
        "gold_agreement_count": gold.sum(axis=(1, 2)),
    }
    # A few known labels spread more or less than all items do.
    return sums, max(float(classes @ length) / max(float(classes.sum()), 1.0), 0.1)


def _without_strictness(table: PairTable, votes: FloatArray, gold_spread: float) -> PairTable:
    """Return the agreement of two classes as it would be if every source voted for both equally often.

    Judges who only differ in strictness put different thresholds on the same score. The correlation of normal scores
    behind two thresholded votes (tetrachoric), turned into the agreement of votes with the thresholds at the median,
    is a product of qualities whether errors are independent given the class or given the score.
    """
    from scipy.special import ndtri

    level = ndtri((votes[:, 1] + 0.5) / (votes.sum(axis=1) + 1.0))
    m = len(votes)
    left, right = np.triu_indices(m, 1)
    value, error = np.eye(m), np.full((m, m), np.inf)
    upper = _median_agreement(table.value[left, right] / 2.0, table.error[left, right] / 2.0, level[left], level[right])
    value[left, right], error[left, right] = upper
    value[right, left], error[right, left] = upper
    if table.gold_value is None or table.gold_error is None:
        return replace(table, value=value, error=error)
    pooled = ndtri((votes[:, 1].sum() + 0.5) / (votes.sum() + 1.0))
    base = votes.sum(axis=0) / max(float(votes.sum()), 1.0)
    scale = max(1.0 - float((base**2).sum()), 0.05) / gold_spread
    told = np.isfinite(table.gold_error)
    gold_error = np.where(told, np.where(told, table.gold_error, 0.0) * scale / 2.0, np.inf)
    gold = _median_agreement(table.gold_value * scale / 2.0, gold_error, level, np.array(pooled))
    return replace(table, value=value, error=error, gold_value=gold[0], gold_error=gold[1])


def _median_agreement(
    covariance: FloatArray, error: FloatArray, first: FloatArray, second: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return ``(2 / pi) angle`` and its error, where sin(angle) is the tetrachoric correlation."""
    from consilience.label_types.classes.kernels import threshold_angles

    usable = np.isfinite(error)
    h, k = (np.broadcast_to(one, error.shape)[usable] for one in (first, second))
    angle, slope = threshold_angles(covariance[usable], h, k, MAX_ANGLE)
    value, spread = np.zeros(error.shape), np.full(error.shape, np.inf)
    value[usable] = 2.0 / np.pi * angle
    # Where thresholds are so far apart that votes hardly show the correlation, the agreement may be anything.
    spread[usable] = np.minimum(2.0 / np.pi * error[usable] / np.maximum(slope, 1e-9), 1.0)
    return value, spread


# --- level 2: confusion tables ---------------------------------------------------------------------------------


def _class_shares(u: FloatArray, votes: FloatArray) -> FloatArray:
    """Return the class shares at which sources are neither strict nor lenient on the average.

    A source of quality q votes for class c with probability ``1/k + q (p_c - 1/k)``, give or take its strictness. This
    is a line through the origin, fitted with as much shrinkage as the scatter of the sources around it asks for.
    """
    k = votes.shape[1]
    cast = votes.sum(axis=1)
    active = cast > 0
    if not active.any():
        return np.full(k, 1.0 / k)
    excess = votes[active] / cast[active, None] - 1.0 / k
    base = votes.sum(axis=0) / votes.sum()
    q = np.tanh(u[active])
    prior: FloatArray = base
    before = (k - 1) / (k**2 * (k + 1.0))  # variance of class shares of which nothing is known
    ridge = 0.0
    for _ in range(5):
        skill = np.clip(q * _stretch(prior, base), -1.0, 1.0)
        slope = skill @ excess / max(float(skill @ skill) + ridge, 1e-6)
        prior = np.maximum(1.0 / k + slope, 0.2 / k)
        prior = prior / prior.sum()
        scatter = ((excess - skill[:, None] * (prior - 1.0 / k)) ** 2).sum() / (k - 1) / max(len(q) - 1, 1)
        ridge = float(scatter) / before
    return prior


def _unbiased(u: FloatArray, prior: FloatArray) -> FloatArray:
    """Return how often sources that are neither strict nor lenient vote for each class, ``(m, k)``."""
    k = len(prior)
    return np.asarray(1.0 / k + np.clip(np.tanh(u), 0.0, 1.0)[:, None] * (prior - 1.0 / k))


def _stretch(prior: FloatArray, base: FloatArray) -> float:
    """Return by how much a source that errs evenly is better than its correlation with uneven classes says."""
    return float(np.sqrt((1.0 - (base**2).sum()) / max(1.0 - float((prior**2).sum()), 1e-3)))


def _coin_tables(u: FloatArray, prior: FloatArray, habit: FloatArray) -> FloatArray:
    """Return P(vote | class) of sources of one quality each, ``(m, k, k)`` as ``[source, vote, class]``.

    Both margins are kept: the class shares, and how often the source votes for each class. So strict sources are
    strict, and one that always votes for the same class says nothing. Of two classes, votes are normal scores above
    the source's threshold, as in the pair table; of more, the right vote has odds of ``(1 + (k - 1) q) / (1 - q)``
    to any other, and proportional fitting does the rest.
    """
    m, k = habit.shape
    if k == 2:
        from scipy.special import ndtri

        from consilience.label_types.classes.kernels import threshold_covariances

        angle = np.clip(np.pi / 2.0 * np.tanh(u), -MAX_ANGLE, MAX_ANGLE)
        covariance = threshold_covariances(angle, ndtri(habit[:, 1]), np.full(m, ndtri(prior[1])))
        above = habit[:, 1] * prior[1] + covariance
        joint = np.empty((m, 2, 2))
        joint[:, 1, 1] = above
        joint[:, 0, 1] = prior[1] - above
        joint[:, 1, 0] = habit[:, 1] - above
        joint[:, 0, 0] = prior[0] - joint[:, 1, 0]
    else:
        q = np.clip(np.tanh(u) * _stretch(prior, habit.mean(axis=0)), -0.9 / (k - 1), 0.999)
        joint = np.where(np.eye(k, dtype=bool), ((1.0 + (k - 1) * q) / (1.0 - q))[:, None, None], 1.0)
        for _ in range(FITTING_ROUNDS):
            joint = joint * (habit / joint.sum(axis=2))[:, :, None]
            joint = joint * (prior / joint.sum(axis=1))[:, None, :]
    table = np.clip(joint / prior, 1e-4, 1.0)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _confusions(
    parameters: ClassParameters, start: ClassParameters, counts: FloatArray, classes: FloatArray, known: float
) -> ClassParameters:
    """Return the tables that expected votes and items ask for, of which a share is `known`, and known labels.

    They lie around those of one quality per source.
    """
    prior = parameters.prior
    if parameters.own:
        # Shares of classes that votes hide are as free as the tables: every balance is as probable as another.
        if parameters.learns_prior:
            prior = (classes + start.gold_classes + 1.0) / (classes + start.gold_classes + 1.0).sum()
        counts = counts + start.gold
        knew, guessed = _known_and_guessed(parameters, counts)
        sure = (knew + 1.0) / (counts.sum(axis=(1, 2)) + 2.0)
        guess = (guessed + 1.0) / (guessed + 1.0).sum(axis=1, keepdims=True)
        table = (1.0 - sure)[:, None, None] * guess + sure[:, None, None] * np.eye(len(prior))
        found = replace(parameters, table=table, prior=prior, uncovered=prior, sure=sure)
        return replace(found, accuracy=_accuracy(found))
    if parameters.learns_prior:
        prior = shrink_counts((known * classes + start.gold_classes)[None], start.prior[None])[0]
    u = _moved(parameters, start, prior, known * counts + start.gold)
    # Known labels overrule beliefs as far as they contradict them.
    table = _shrink_votes(start.gold, _coin_tables(u, prior, start.habit))
    found = replace(parameters, table=table, prior=prior, uncovered=prior, u=u)
    return replace(found, accuracy=_accuracy(found))


def _information(parameters: ClassParameters, statistics: Statistics) -> float:
    """Return what an item tells on the average: doubtful ones carry less than one item of information."""
    classes = statistics["classes"]
    by_chance = 1.0 / len(classes) if parameters.are_functions else float((parameters.prior**2).sum())
    known = (float(statistics["square"]) / max(float(classes.sum()), 1e-9) - by_chance) / (1.0 - by_chance)
    return max(known, 1e-3)


def _known_and_guessed(parameters: ClassParameters, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how many votes ``(m,)`` knew the class, and the others as ``[source, vote, class]``.

    A source knows the class with probability s, or guesses it from a table G of its own: P(vote | class) =
    s [vote = class] + (1 - s) G[vote, class]. Right votes are divided in these proportions.
    """
    right = np.maximum(np.einsum("acc->ac", parameters.table), FLOOR)
    knew = np.einsum("acc->ac", counts) * np.minimum(parameters.sure[:, None] / right, 1.0)
    return knew.sum(axis=1), counts - knew[:, None, :] * np.eye(counts.shape[1])


def _evidence(parameters: ClassParameters, start: ClassParameters, statistics: Statistics, known: float) -> float:
    """Return the log evidence of confusions: the likelihood of the votes less what each source's own numbers cost.

    One quality per source is learned either way and costs the same. Sources that err evenly pay for how often they
    vote for each class, the others for their tables of guesses.
    """
    # Copies share one vote.
    counts = statistics["counts"] / (1.0 + parameters.grouped.sum(axis=1))[:, None, None]
    prior = np.log(np.maximum(parameters.prior, FLOOR))
    fit = ((counts + start.gold) * np.log(parameters.table)).sum() + float(statistics["entropy"])
    fit = float(fit + (statistics["classes"] + start.gold_classes) @ prior)
    if not parameters.own:
        cast = counts.sum(axis=2)
        habits = float((cast * np.log(start.habit)).sum())
        return fit - habits + log_evidence(cast, _unbiased(parameters.u, parameters.prior))
    _, guessed = _known_and_guessed(parameters, known * counts + start.gold)
    sure = parameters.sure[:, None, None]
    guess = (parameters.table - sure * np.eye(len(prior))) / (1.0 - sure)
    return fit - log_surprise(guess.transpose(0, 2, 1), guessed.transpose(0, 2, 1))


def _moved(parameters: ClassParameters, start: ClassParameters, prior: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the qualities after one Newton step of their likelihood, drawn to those of the start."""
    free = np.isfinite(start.spread) & (start.spread > 0)
    if not counts.any() or not free.any():
        return parameters.u
    spread = np.where(free, start.spread, 1.0)

    def objective(u: FloatArray) -> FloatArray:
        fit = (counts * np.log(_coin_tables(u, prior, start.habit))).sum(axis=(1, 2))
        return np.asarray(fit - 0.5 * ((u - start.u) / spread) ** 2)

    below, here, above = (objective(parameters.u + step) for step in (-STEP, 0.0, STEP))
    slope, bend = (above - below) / (2.0 * STEP), (above - 2.0 * here + below) / STEP**2
    step = np.clip(slope / np.maximum(-bend, 1.0 / spread**2), -0.5, 0.5)
    return np.where(free, np.clip(parameters.u + step, -4.0, 4.0), parameters.u)


def _shrink_votes(counts: FloatArray, table: FloatArray) -> FloatArray:
    """Return tables from counts, both as ``[source, vote, class]``, drawn to `table` as far as evidence asks for it."""
    if not counts.any():
        return table
    return shrink_counts(counts.transpose(0, 2, 1), table.transpose(0, 2, 1)).transpose(0, 2, 1)


def _accuracy(parameters: ClassParameters) -> FloatArray:
    return np.clip(np.einsum("acc,c->a", parameters.table, parameters.prior), FLOOR, 1.0 - FLOOR)


# --- level 2: labeling functions ---------------------------------------------------------------------------------


def _functions(
    start: ClassParameters, hypothesis: Hypothesis, statistics: Statistics, request: Request
) -> ClassParameters:
    """Return the events of labeling functions: one precision, no class more frequent than another before EM."""
    votes = statistics["votes"].astype(np.float64)
    m, k = votes.shape
    agree, both = (statistics[name].astype(np.float64) for name in ("agree", "both"))
    items = max(float(statistics["items"]), 1.0)
    repeats, _ = labeling_functions.repeated_votes(agree, both)
    together = request.dependent
    if request.learn:
        together = together | (hypothesis.groups[:, None] == hypothesis.groups[None, :])
    # Copies agree however often they are right.
    apart = ~(together | np.eye(m, dtype=bool))
    precision = labeling_functions.common_precision(agree, both, votes, apart)
    class_pairs = statistics["class_pairs"]
    if "pairs" in statistics:
        class_pairs = np.einsum("acbd,ab->cd", statistics["pairs"].reshape(m, k, m, k), apart)
    precise = labeling_functions.precision_is_common(class_pairs)
    # One rate of errors is one precision of classes that are equally frequent.
    known = start.gold if precise else start.gold / (k * (start.gold_classes + 1.0) / (start.gold_classes + 1.0).sum())
    table = labeling_functions.event_tables(precision, known)
    told, uncovered, shares = np.zeros(k), np.full(k, 1.0 / k), np.full(k, 1.0 / k)
    if not isinstance(request.prior, str):
        table = labeling_functions.within_balance(table, votes / items, request.prior)
        coverage = float(statistics["voted_items"]) / items
        told, uncovered = labeling_functions.covered_balance(request.prior, votes / items, table, coverage)
        shares = told
    return replace(
        start,
        table=table,
        prior=shares,
        told=told,
        uncovered=uncovered,
        accuracy=_right_share(votes[:, :, None] * table),
        correlation=np.where(together & ~np.eye(m, dtype=bool), repeats, 0.0),
        are_functions=True,
        precise=precise,
        learns_prior=not (request.prior_is("uniform") or request.prior_is("gibbs")),
    )


def _right_share(counts: FloatArray) -> FloatArray:
    right, total = np.einsum("acc->a", counts), counts.sum(axis=(1, 2))
    active = total > 0
    usual = right[active].sum() / max(float(total[active].sum()), 1e-12) if active.any() else 0.5
    return np.clip(np.where(active, right / np.maximum(total, 1e-12), usual), FLOOR, 1.0 - FLOOR)


def _decoded(probabilities: FloatArray) -> Posterior:
    # Under the 0/1 cost the most probable class is also the one of least expected cost.
    best = probabilities.argmax(axis=1)
    return Posterior(best, probabilities[np.arange(len(best)), best], probabilities)
