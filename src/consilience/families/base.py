"""The contract of a family: how votes scatter around the truth.

A family knows arrays and formulas, nothing of spaces, files or engines. It sees the data only through
passes over chunks that return sums (`Passes`), so the same code runs in memory and on a cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, votes_per_item
from consilience.exceptions import UnsupportedError
from consilience.families.sums import Sums

__all__ = [
    "GROUPS",
    "Chunk",
    "Diagnostic",
    "Estimate",
    "Family",
    "Parameters",
    "Passes",
    "Posterior",
    "Request",
    "Sums",
    "Summary",
    "count_sums",
]

#: Items fall into this many groups, a power of two, by their hashed id; sums kept per group give standard errors.
GROUPS = 32

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Diagnostic:
    """One finding about a fit: a code to act on and one sentence to read."""

    code: str
    severity: Severity
    sources: tuple[str, ...]
    message: str
    #: The field of a record it is about (``"stars"``, ``"quality/stars"``), or empty.
    part: str = ""

    def __str__(self) -> str:
        return f"[{self.severity}] {self.code}: {self.message}"

    def of_part(self, name: str) -> Diagnostic:
        """Return the same finding about one field of a record."""
        inside = f"{name}/{self.part}" if self.part else name
        message = self.message.removeprefix(f"{self.part}: ") if self.part else self.message
        return replace(self, message=f"{inside}: {message}", part=inside)


@dataclass(frozen=True)
class Chunk:
    """Some items, encoded by their space: what a pass hands to a family.

    Parameters
    ----------
    labels
        ``(n, m, *label_shape)``; meaningful where `observed`.
    groups
        ``(n,)`` in ``range(GROUPS)``.
    known, is_known
        Gold labels ``(n, *label_shape)`` and where they are known, or None.
    items
        ``(n,)`` ids, or None where all are taken to differ. Rows of one id are about the same item.
    """

    labels: Batch
    observed: BoolArray
    groups: IntArray
    known: Batch | None = None
    is_known: BoolArray | None = None
    items: npt.NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.observed)

    @property
    def gold_rows(self) -> IntArray:
        """Positions of the items whose true label is known."""
        if self.is_known is None:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.is_known)


@dataclass(frozen=True)
class Parameters:
    """Base of the parameter sets: frozen dataclasses of arrays, numbers and strings."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, ready for storage."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


@dataclass(frozen=True)
class Summary:
    """The parameters in the words shared by all label types, one entry per source.

    Parameters
    ----------
    expected_cost, weight
        Each ``(m,)``.
    standard_error, cost_standard_error
        Of `weight` and of `expected_cost`; infinite for a source that never votes.
    correlation
        ``(m, m)``; zero outside the dependencies.
    parts
        The same for each field, where labels are records.
    columns
        What else the family knows about each source, by name; each ``(m,)``.
    effective_range
        Least and largest effective number of sources, where it can only be bounded.
    """

    expected_cost: FloatArray
    weight: FloatArray
    standard_error: FloatArray
    cost_standard_error: FloatArray
    correlation: FloatArray
    parts: Mapping[str, Summary] = field(default_factory=dict)
    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    effective_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Posterior:
    """What the model believes about some items.

    Parameters
    ----------
    labels
        ``(n, *label_shape)``; arbitrary where no source voted.
    confidence
        ``(n,)`` in [0, 1].
    probabilities
        ``(n, k)`` for finite spaces, else None.
    details
        What else a family knows about each item, by name; first axis is the item.
    """

    labels: Batch
    confidence: FloatArray
    probabilities: FloatArray | None = None
    details: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What the user asked of an estimation, resolved to arrays.

    Parameters
    ----------
    dependent
        ``(m, m)`` pairs that are not independent given the truth (the paper's E).
    prior
        "auto", "uniform", "gibbs" or probabilities over the labels of a finite space.
    n_gold
        How many items have a known label.
    learn
        Whether dependent pairs are to be looked for beyond `dependent`, where the method can.
    """

    sources: tuple[str, ...]
    method: str
    dependent: BoolArray
    prior: str | FloatArray = "auto"
    n_gold: int = 0
    seed: int = 0
    learn: bool = True

    def prior_is(self, name: str) -> bool:
        """Return whether the prior was asked for by this name."""
        return isinstance(self.prior, str) and self.prior == name

    def named(self, which: BoolArray | IntArray) -> tuple[str, ...]:
        """Return the names of the chosen sources."""
        chosen = np.flatnonzero(which) if which.dtype == bool else which
        return tuple(self.sources[int(index)] for index in chosen)


@dataclass(frozen=True)
class Estimate:
    """The outcome of an estimation.

    `dependent` holds the ``(m, m)`` pairs that were not taken as independent, where more than the given ones; `parts`
    the estimates of the fields, where labels are records. `decided` says whether known labels chose between two
    explanations that the votes alone cannot tell apart.
    """

    parameters: Parameters
    method: str
    reason: str
    diagnostics: tuple[Diagnostic, ...] = ()
    dependent: BoolArray | None = None
    parts: Mapping[str, Estimate] = field(default_factory=dict)
    decided: bool = False


class Passes(Protocol):
    """How a family reaches the votes: every call is one pass that returns sums."""

    @property
    def n_items(self) -> int: ...

    @property
    def n_sampled(self) -> int: ...

    @property
    def complete(self) -> bool:
        """Whether `over_all` is possible: the votes are still at hand, not only a sample."""
        ...

    def over_all(self, function: Callable[[Chunk], Sums]) -> Sums:
        """Sum `function` over every chunk of the votes."""
        ...

    def over_sample(self, function: Callable[[Chunk], Sums]) -> Sums:
        """Sum `function` over the seeded sample of items (all of them when there are few)."""
        ...


class Family(ABC):
    """How votes scatter around the truth, and what can be learned from them."""

    #: Names accepted by `estimate`.
    methods: ClassVar[tuple[str, ...]]
    #: Whether `adapt` looks at the sample; where it does not, none has to be drawn for it.
    adapts_to_votes: ClassVar[bool] = False
    #: Whether `statistics` asks for the groups of the items; where it does not, ids need not be hashed for them.
    uses_groups: ClassVar[bool] = True
    #: Items that are labelled at a time: fewer where one takes long, so that there is work for several threads.
    rows: ClassVar[int] = 1 << 16
    #: Whether weights are drawn together where votes do not support them, so that no further check is needed.
    draws_together: ClassVar[bool] = False

    def adapt(self, sample: Chunk | None, n_items: int, seed: int) -> Family:
        """Return the family fitted to a few of the `n_items` items, before any statistics are taken.

        Without a sample it may only use what it knows before any vote.
        """
        return self

    def adapt_in_parts(self, sample: Chunk, n_items: int, seed: int) -> Family:
        """Return the family fitted for one of several parts of the votes, so that their statistics add up.

        Only what cannot be known before any vote is taken from the sample.
        """
        before = self.adapt(None, 0, 0)
        return self.adapt(sample, n_items, seed) if before is self else before

    @property
    def side_by_side(self) -> bool:
        """Whether several threads may go over chunks side by side: not where functions of the user are called."""
        return False

    @abstractmethod
    def statistics(self, chunk: Chunk) -> Sums:
        """Return the sums of one pass; always with the ``both`` counts of `count_sums`."""

    @abstractmethod
    def estimate(self, sums: Sums, request: Request, passes: Passes | None) -> Estimate:
        """Learn the parameters from the sums, and from further passes where the method needs them.

        `passes` is None when only the sums are at hand; a method that needs votes then says so.
        """

    @abstractmethod
    def round(self, parameters: Any, chunk: Chunk) -> Sums:
        """Return the sums of one EM pass."""

    @abstractmethod
    def posterior(self, parameters: Any, labels: Batch, observed: BoolArray, decode: str) -> Posterior:
        """Return labels, probabilities where the space is finite, and confidence."""

    @abstractmethod
    def summary(self, parameters: Any) -> Summary:
        """Return the parameters in the words shared by all label types."""

    @abstractmethod
    def from_weights(self, weight: FloatArray, request: Request) -> Parameters:
        """Return the parameters of sources whose weights are known."""

    def alike(self, parameters: Any) -> Parameters | None:
        """Return the parameters with every source as good as their mean, or None where that is the plain vote."""
        return None

    @abstractmethod
    def restore(self, fields: Mapping[str, Any]) -> Parameters:
        """Return the parameters that `Parameters.as_dict` described."""

    @abstractmethod
    def expected_cost(self, weight: FloatArray) -> FloatArray:
        """Return the mean cost of a source of this weight (the forward map)."""

    @abstractmethod
    def weight_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return the weight of a source of this mean cost (the paper's backward mapping)."""

    @abstractmethod
    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the mean cost between two independent sources of these weights."""

    def measures_like(self, other: Family) -> bool:
        """Return whether statistics of the two families mean the same and may be added."""
        return type(self) is type(other)

    @property
    def unrelated_cost(self) -> float:
        """Mean cost between unrelated votes; infinite where only votes can tell."""
        return float(self.expected_cost(np.zeros(1))[0])

    def unrelated_truth(self, parameters: Any, sums: Sums, passes: Passes | None) -> tuple[float, float] | None:
        """Return the mean cost between unrelated true labels and its error, as far as a fit tells what votes do not."""
        return None

    @property
    def knows_scale(self) -> bool:
        """Whether it was told how far the truth spreads, so that equal sources still have a scale to be put on."""
        return False

    def parts(self, sums: Sums, summary: Summary) -> dict[str, tuple[Family, Sums, Summary]]:
        """Return the families of which this one is made, by field, with their shares of the sums and summary."""
        return {}

    def constant_sources(self, sums: Sums) -> BoolArray:
        """Return which sources give the same label whatever the item; none where the sums cannot tell."""
        return np.zeros(len(sums["both"]), dtype=bool)

    def check_method(self, method: str, passes: Passes | None, needs_votes: tuple[str, ...] = ()) -> None:
        """Refuse a method that this family does not have, or not without votes."""
        if method not in self.methods:
            raise UnsupportedError(
                f"method={method!r} is not available for this label type. Use one of {', '.join(self.methods)}."
            )
        if passes is None and method in needs_votes:
            closed = ", ".join(name for name in self.methods if name not in needs_votes)
            raise UnsupportedError(
                f"method={method!r} goes through the votes again and moments alone do not suffice. "
                f"Call fit(votes), or use one of {closed}."
            )


def count_sums(chunk: Chunk, both: IntArray | None = None) -> dict[str, npt.NDArray[Any]]:
    """Return the counts that every family keeps: items, and how often two sources vote on the same one.

    `both` is passed where the family has counted that already.
    """
    if both is None:
        seen = chunk.observed.astype(np.float32)
        both = np.rint(seen.T @ seen).astype(np.int64)  # exact: chunks stay far below 2 ** 24 items
    return {
        "items": np.array(len(chunk), dtype=np.int64),
        "voted_items": np.array(int((votes_per_item(chunk.observed) > 0).sum()), dtype=np.int64),
        "both": both,
        "gold_items": np.array(len(chunk.gold_rows), dtype=np.int64),
    }
