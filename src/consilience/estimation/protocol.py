"""The contract between the pipeline and a label type: what goes in and out of each level.

A `Law` says how votes scatter around the truth. It knows arrays and formulas, nothing of spaces, files or engines,
and sees the data only through passes over chunks that return sums, so the same code runs in memory and on a cluster.
It never decides whom to trust: that is the trust engine's work (`consilience.estimation.trust`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from consilience.arrays import Axes, Batch, BoolArray, Correlation, FloatArray, IntArray, votes_per_item
from consilience.estimation.pair_table import Forward, PairTable, Statistics
from consilience.exceptions import UnsupportedError, did_you_mean

__all__ = [
    "MEAN",
    "METHODS",
    "SAMPLE_ITEMS",
    "Chunk",
    "CompositeLaw",
    "Diagnostic",
    "Hypothesis",
    "Law",
    "Mixture",
    "Parameters",
    "Posterior",
    "SPREAD",
    "Request",
    "Statistics",
    "Summary",
    "Trust",
]

#: Prior of the mean quality: q = .5, which is 75% accuracy on two classes. Chance is one standard deviation below.
MEAN, SPREAD = 0.55, 0.5
#: Prior error correlation of any two sources.
SHARED_ERROR = 0.007
#: Items of the sample for EM and for standard errors. Sums over more items are already precise.
SAMPLE_ITEMS = 50_000
#: The methods that every label type has. "quadratic" is offered by types with a finite list of labels.
METHODS = ("auto", "majority", "isotropic", "triplets", "em", "labelled")

Severity = Literal["info", "warning", "error"]
#: What to do about the sources that a finding names.
Advice = Literal["", "fix", "drop"]


@dataclass(frozen=True)
class Diagnostic:
    """One finding about a fit: a code to act on, and at most two sentences to read.

    `part` is the field of a record that it is about (``"stars"``, ``"quality/stars"``), or empty. `advice` says what to
    do about the sources: "fix" the way they vote, or "drop" them.
    """

    code: str
    severity: Severity
    sources: tuple[str, ...]
    message: str
    part: str = ""
    advice: Advice = ""

    def __str__(self) -> str:
        return f"[{self.severity}] {self.code}: {self.message}"

    def of_part(self, name: str) -> Diagnostic:
        """Return the same finding about one field of a record."""
        inside = f"{name}/{self.part}" if self.part else name
        message = self.message.removeprefix(f"{self.part}: ") if self.part else self.message
        return replace(self, message=f"{inside}: {message}", part=inside)


@dataclass(frozen=True)
class Chunk:
    """Some items, encoded by their space: what a pass hands to a law."""

    labels: Batch  # (n, m, *label_shape); meaningful where observed
    observed: BoolArray
    known: Batch | None = None  # gold labels (n, *label_shape), meaningful where is_known
    is_known: BoolArray | None = None
    items: npt.NDArray[Any] | None = None  # (n,) ids, None if all differ; rows with the same id are about the same item
    by_name: IntArray | None = None  # (m,) sources in the order of their names, shorter ones first

    def __len__(self) -> int:
        return len(self.observed)

    def rows(self, chosen: IntArray) -> Chunk:
        """Return some of the items."""
        known, is_known, items = (
            None if part is None else part[chosen] for part in (self.known, self.is_known, self.items)
        )
        return Chunk(self.labels[chosen], self.observed[chosen], known, is_known, items, self.by_name)

    @property
    def sources(self) -> IntArray:
        """The sources in an order that does not depend on their columns, for whoever looks at some votes only."""
        return np.arange(self.observed.shape[1]) if self.by_name is None else self.by_name

    def places(self) -> tuple[IntArray, IntArray]:
        """Return the item and the source of every vote, item by item, in the order of `sources`."""
        rows, columns = np.nonzero(self.observed[:, self.sources])
        return rows, self.sources[columns]

    @property
    def gold_rows(self) -> IntArray:
        """Positions of the items whose true label is known."""
        return np.zeros(0, dtype=np.int64) if self.is_known is None else np.flatnonzero(self.is_known)

    def counts(self, both: IntArray | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return the counts that every law keeps: items, and how often two sources vote on the same one.

        `both` is passed where the law has counted that already.
        """
        if both is None:
            seen = self.observed.astype(np.float32)
            both = np.rint(seen.T @ seen).astype(np.int64)  # exact: chunks stay far below 2 ** 24 items
        return {
            "items": np.array(len(self), dtype=np.int64),
            "voted_items": np.array(int((votes_per_item(self.observed) > 0).sum()), dtype=np.int64),
            "both": both,
            "gold_items": np.array(len(self.gold_rows), dtype=np.int64),
        }


@dataclass(frozen=True)
class Parameters:
    """Base of the parameter sets: frozen dataclasses of arrays, numbers and strings."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @property
    def n_choices(self) -> int:
        """Number of labels that a vote chooses from, where wrong ones are all alike; 2 elsewhere."""
        return 2


#: Parameters under each hypothesis and its probability, most probable first. The probabilities add up to one.
Mixture = tuple[tuple[Annotated[float, Axes("", 0.0, 1.0)], Parameters], ...]


@dataclass(frozen=True)
class Summary:
    """The parameters in the words shared by all label types, one entry per source."""

    expected_cost: Annotated[FloatArray, Axes("m", 0.0)]
    weight: Annotated[FloatArray, Axes("m")]
    # Of the weight; infinite for a source that never votes
    standard_error: Annotated[FloatArray, Axes("m", 0.0, infinite=True)]
    cost_standard_error: Annotated[FloatArray, Axes("m", 0.0, infinite=True)]  # of the expected cost; infinite likewise
    correlation: Correlation  # of the errors of two sources given the truth
    parts: Mapping[str, Summary] = field(default_factory=dict)  # the same for each field, where labels are records
    # What else the law knows, by name
    columns: Mapping[str, Annotated[npt.NDArray[Any], Axes("m", infinite=True, missing=True)]] = field(
        default_factory=dict
    )
    # Bounds on the effective number of sources, where no estimate exists
    effective_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Posterior:
    """What the model believes about some items."""

    labels: Batch  # (n, *label_shape); arbitrary where no source voted
    confidence: FloatArray  # (n,) in [0, 1]
    probabilities: FloatArray | None = None  # (n, k) for finite spaces
    details: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)  # further results for each item, by name


@dataclass(frozen=True)
class Request:
    """What the user asked of an estimation, resolved to arrays."""

    sources: tuple[str, ...]
    method: str
    dependent: BoolArray  # (m, m) pairs that the user says are not independent given the truth (the paper's E)
    prior: str | FloatArray = "auto"  # or "uniform", "gibbs", probabilities over the labels of a finite space
    n_gold: int = 0  # items with a known label
    seed: int = 0
    learn: bool = True  # whether to search for groups beyond `dependent`

    def prior_is(self, name: str) -> bool:
        """Return whether the prior was asked for by this name."""
        return isinstance(self.prior, str) and self.prior == name

    def named(self, which: BoolArray | IntArray) -> tuple[str, ...]:
        """Return the names of the chosen sources."""
        chosen = np.flatnonzero(which) if which.dtype == bool else which
        return tuple(self.sources[int(index)] for index in chosen)


@dataclass(frozen=True)
class Hypothesis:
    """One explanation of the pair table."""

    probability: float  # among the hypotheses of one fit
    groups: IntArray  # (m,) number of the group of each source; a source alone in its group shares no errors
    u: FloatArray  # (m,) qualities; tanh(u) is the correlation of a source's votes with the truth
    correlation: FloatArray  # (m, m) of the errors of two sources given the truth, zero on the diagonal
    spread: FloatArray  # (m,) posterior standard deviation of u, which limits EM; infinite without an estimate

    @property
    def quality(self) -> FloatArray:
        """``(m,)`` correlation of each source's votes with the truth."""
        return np.tanh(self.u)

    @property
    def in_group(self) -> BoolArray:
        """``(m, m)`` pairs of different sources in one group; `correlation` is a little above zero for others, too."""
        together: BoolArray = self.groups[:, None] == self.groups
        return together & ~np.eye(len(self.groups), dtype=bool)

    @property
    def unused_spread(self) -> FloatArray:
        """``(m,)`` how far EM may move u if it goes over votes that the pair table has used.

        Of what votes tell, the part counts that the table left of the variance before any vote. Counting votes twice
        would drive the qualities apart.
        """
        return np.asarray(self.spread * np.minimum(self.spread / SPREAD, 1.0))

    @property
    def is_plain(self) -> bool:
        """Whether this is the plain vote: all sources alike by decree, nobody shares errors."""
        return bool(np.isinf(self.spread).all() and (self.u == self.u[:1]).all()) and not self.correlation.any()

    @classmethod
    def plain(cls, m: int, u: float = MEAN) -> Hypothesis:
        """Return the plain vote; at the prior mean of quality unless told."""
        return cls.independent(np.full(m, u))

    @classmethod
    def independent(cls, u: FloatArray, spread: FloatArray | None = None) -> Hypothesis:
        """Return independent sources of given qualities."""
        m = len(u)
        return cls(1.0, np.arange(m), u, np.zeros((m, m)), np.full(m, np.inf) if spread is None else spread)


@dataclass(frozen=True)
class Trust:
    """What the engine found out about the sources."""

    hypotheses: tuple[Hypothesis, ...]  # at most six, most probable first
    u: FloatArray  # (m,) posterior mean of the qualities, over all hypotheses
    spread: FloatArray  # (m,) and their standard deviation
    draws: FloatArray  # (draws, m) posterior draws of u, for intervals
    together: FloatArray  # (m, m) posterior probability that two sources share errors
    independent: float  # probability that no two sources do
    alike: float  # probability that all sources are equally good, given the table
    no_signal: float  # probability that the sources are on average no better than chance
    misfit: float  # posterior mean of omega: how far the best explanation is from the pairs, in units of agreement

    def reweighed(self, nats: Sequence[float]) -> Trust:
        """Return the same with every hypothesis more probable by so much; draws stay as they are."""
        if not any(nats):
            return self
        odds = np.array([one.probability for one in self.hypotheses]) * np.exp(np.array(nats) - max(nats))
        odds /= odds.sum()
        by_odds = np.argsort(-odds, kind="stable")
        hypotheses = tuple(replace(self.hypotheses[at], probability=float(odds[at])) for at in by_odds)
        together = sum(one.probability * one.in_group for one in hypotheses)
        alone = sum(one.probability for one in hypotheses if not one.in_group.any())
        mean = sum(one.probability * one.u for one in hypotheses)
        square = sum(one.probability * (one.spread**2 + one.u**2) for one in hypotheses)
        spread = np.sqrt(np.maximum(square - mean**2, 1e-12))
        return replace(self, hypotheses=hypotheses, u=mean, spread=spread, together=together, independent=float(alone))


class Law(ABC):
    """How votes of one label type scatter around the truth.

    A label type appears at three places only: how two votes agree (`statistics`, `pair_table`, `forward`), how a
    quality becomes parameters (`parameters`, `e_step`, `m_step`), how parameters become labels (`posterior`,
    `average`).
    """

    #: What `parameters` returns.
    parameter_class: ClassVar[type[Parameters]] = Parameters
    #: Names accepted by `LabelModel(method=)`.
    methods: ClassVar[tuple[str, ...]] = METHODS
    #: Whether `adapt` uses the sample. If not, no sample is drawn.
    adapts_to_votes: ClassVar[bool] = False
    #: Items labeled at a time: fewer if an item takes long, so that several threads have work.
    rows: ClassVar[int] = 1 << 16
    #: Whether known labels set the level and unit of the labels, which votes alone do not determine.
    scale_from_known: ClassVar[bool] = False
    #: Whether `e_step` and `m_step` refine the parameters beyond what qualities determine.
    has_em: ClassVar[bool] = False
    #: Whether quality is learned from shared items. The findings then name sources that share few items.
    needs_overlap: ClassVar[bool] = True

    # --- before any statistics ----------------------------------------------------------------------

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> Law:
        """Return the law fitted to a few of the `n_items` items, before any statistics are taken.

        Without a sample it may only use what it knows before any vote.
        """
        return self

    def adapt_in_parts(self, sample: Chunk, n_items: int, seed: int) -> Law:
        """Return the law fitted for one of several parts of the votes, so that their statistics add up.

        Only what cannot be known before any vote is taken from the sample.
        """
        before = self.adapt(None, 0, 0)
        return self.adapt(sample, n_items, seed) if before is self else before

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of stored parameters that the label type knows, by the names that `Axes` has for them."""
        return {}

    @property
    def side_by_side(self) -> bool:
        """Whether several threads may go over chunks side by side: not where functions of the user are called."""
        return False

    def measures_like(self, other: Law) -> bool:
        """Return whether statistics of the two laws mean the same and may be added."""
        return type(self) is type(other)

    # --- level 0: how two votes agree -----------------------------------------------------------------

    @abstractmethod
    def statistics(self, chunk: Chunk) -> Statistics:
        """Return the sums of one pass; always with those of `Chunk.counts`."""

    @abstractmethod
    def pair_table(self, statistics: Statistics) -> PairTable:
        """Return the agreement of each two sources, with known labels as one more column."""

    def forward(self, statistics: Statistics) -> Forward:
        """Return the expected agreement of independent sources; the product form by default."""
        return Forward()

    # --- level 2: from qualities to parameters ----------------------------------------------------------

    @abstractmethod
    def parameters(self, hypothesis: Hypothesis, statistics: Statistics, request: Request) -> Parameters:
        """Return the parameters of sources of these qualities, groups and correlations.

        ``hypothesis.is_plain`` is the plain vote: all sources count the same.
        """

    def refines(self, mixture: Mixture) -> bool:
        """Return whether EM improves these parameters; where it does not, its passes are saved."""
        return self.has_em

    def prepare(self, chunk: Chunk) -> Any:
        """Return what `e_step` needs of a chunk and does not depend on the parameters; made once, not every round."""
        return chunk

    def e_step(self, parameters: Any, prepared: Any) -> Statistics:
        """Return the expected sums of one EM pass; known labels are clamped."""
        raise NotImplementedError

    def m_step(self, parameters: Any, statistics: Statistics, start: Any) -> Parameters:
        """Return better parameters from the expected sums, drawn towards those that the engine gave (`start`)."""
        raise NotImplementedError

    def starts(self, parameters: Any) -> tuple[Any, ...]:
        """Return where EM begins under one hypothesis; its ends are averaged by their `evidence`."""
        return (parameters,)

    def evidence(self, parameters: Any, statistics: Statistics, start: Any) -> float:
        """Return the log evidence of what EM began its last round with and found in it, comparable between `starts`."""
        return 0.0

    def group_evidence(self, groups: IntArray, statistics: Statistics) -> float:
        """Return the nats by which votes say, beyond the pair table, that these groups of sources share errors."""
        return 0.0

    def merge(self, mixture: Mixture) -> Mixture:
        """Return a shorter mixture where parameters themselves can be averaged, as for weighted means."""
        return mixture

    def foresee(self, mixture: Mixture, together: FloatArray, sample: Chunk) -> Mixture:
        """Return parameters whose confidence comes true on votes left out, for laws without exact probabilities.

        `together` ``(m, m)`` are the probabilities that two sources share errors.
        """
        return mixture

    # --- level 3: from parameters to labels -------------------------------------------------------------

    @abstractmethod
    def posterior(self, parameters: Any, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return labels, probabilities where the space is finite, and confidence."""

    def average(self, posteriors: Sequence[tuple[float, Posterior]], decode: str) -> Posterior:
        """Return the belief averaged over hypotheses, whose probabilities add up to one; that of the first by default.

        The default suits laws that leave only one hypothesis in `merge`.
        """
        return posteriors[0][1]

    # --- summaries for all label types --------------------------------------------------------------------

    @abstractmethod
    def summary(self, parameters: Any) -> Summary:
        """Return the parameters in the words shared by all label types; errors may be left infinite."""

    def quality_errors(self, parameters: Any, quality: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the standard errors of expected cost and weight from those of the qualities, each ``(m,)``."""
        chance = self.chance_cost
        step = np.minimum(1e-3, 0.5 * (1.0 - np.abs(quality)))
        high = self.weight_from_cost(chance * (1.0 - (quality + step)))
        low = self.weight_from_cost(chance * (1.0 - (quality - step)))
        slope = np.abs(high - low) / (2.0 * np.maximum(step, 1e-12))
        return chance * error, slope * error

    @abstractmethod
    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        """Return the parameters of sources whose weights are known."""

    @abstractmethod
    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return the mean cost of a source of this weight (the forward map)."""

    @abstractmethod
    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return the weight of a source of this mean cost (the paper's backward mapping)."""

    @property
    def chance_cost(self) -> float:
        """Mean cost between unrelated votes; infinite where only votes can tell."""
        return float(self.expected_cost(np.zeros(1))[0])

    def unrelated_cost(self, parameters: Any) -> float:
        """Return the mean cost between two unrelated true labels; infinite where the parameters do not tell."""
        return self.chance_cost

    def chance_costs(self, labels: Batch) -> FloatArray:
        """Return ``(n,)`` the costs at which confidence is 0: those of unrelated votes to each of these labels."""
        return np.full(len(labels), self.chance_cost)

    def spared(self, belief: Posterior) -> FloatArray:
        """Return the share of the cost of unrelated labels that each label is expected to spare.

        It is the confidence, unless that is a probability or a share of another cost.
        """
        return belief.confidence

    def label_indicators(self, statistics: Statistics, request: Request) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what Algorithm 3 needs, for types that offer "quadratic".

        ``(k, m, m)`` joint votes for each label, ``(m, k)`` votes, and the ``(k,)`` prior.
        """
        raise NotImplementedError

    def weight_from_accuracy(self, accuracy: FloatArray) -> FloatArray:
        """Return the weight of a source that is right this often, for types that offer "quadratic"."""
        raise NotImplementedError

    def constant_sources(self, statistics: Statistics) -> BoolArray:
        """Return which sources give the same label whatever the item; none where the sums cannot tell."""
        return np.zeros(len(statistics["both"]), dtype=bool)

    def guessing_sources(self, parameters: Any) -> BoolArray | None:
        """Return which sources are no better than guessing, where the law knows more than the pairs of sources tell."""
        return None

    def findings(
        self, trust: Trust, mixture: Mixture, statistics: Statistics, request: Request
    ) -> tuple[Diagnostic, ...]:
        """Return what only this label type can find, such as heavy tails or judges on different scales."""
        return ()

    def notes(self) -> tuple[Diagnostic, ...]:
        """Return what is to be said about the law itself, whatever the method, such as how it represents labels."""
        return ()

    def check_method(self, method: str, *, has_votes: bool) -> None:
        """Refuse a method that this label type does not have, or not without votes."""
        if method not in self.methods:
            raise UnsupportedError(
                f"method={method!r} is not available for this label type.{did_you_mean(method, self.methods)} "
                f"Use one of {', '.join(self.methods)}."
            )
        if method == "em" and not has_votes:
            raise UnsupportedError(
                "method='em' needs several passes over the votes, so moments alone are not enough. "
                "Call fit(votes), or use method='auto'."
            )


class CompositeLaw(Law):
    """A law of records: each field is learned by a law of its own, and what was learned is joined."""

    @property
    @abstractmethod
    def fields(self) -> Mapping[str, Law]:
        """The laws of the fields by name."""

    @abstractmethod
    def field_statistics(self, statistics: Statistics, name: str) -> Statistics:
        """Return the sums of one field."""

    @abstractmethod
    def field_chunk(self, chunk: Chunk, name: str) -> Chunk:
        """Return the votes on one field."""

    @abstractmethod
    def field_request(self, request: Request, name: str) -> Request:
        """Return what is asked of one field."""

    @abstractmethod
    def join(self, parts: Mapping[str, Mixture], statistics: Statistics) -> Parameters:
        """Return the parameters of records from those of the fields."""

    @abstractmethod
    def join_summaries(self, parts: Mapping[str, Summary], parameters: Any) -> Summary:
        """Return one summary of records from those of the fields."""
