"""The contract of a family: how votes scatter around the truth.

A family knows arrays and formulas, nothing of spaces, files or engines. It sees the data only through
passes over chunks that return sums (`Passes`), so the same code runs in memory and on a cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray
from consilience.estimation.protocol import (
    Chunk,
    Diagnostic,
    Parameters,
    Passes,
    Posterior,
    Request,
    Summary,
)
from consilience.estimation.protocol import Statistics as Sums
from consilience.estimation.protocol import count_statistics as count_sums
from consilience.exceptions import UnsupportedError

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
