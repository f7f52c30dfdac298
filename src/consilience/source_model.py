"""What was learned about the sources, in the same words for every label type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from consilience.arrays import FloatArray, IntArray
from consilience.families.base import Diagnostic, Parameters, Summary
from consilience.io.display import SourceTable

__all__ = ["SourceModel", "SourceTable"]


@dataclass(frozen=True, eq=False)
class SourceModel:
    """Sources, the family's parameters, and their summary.

    Parameters
    ----------
    sources
        Names, in the order of the columns.
    votes
        ``(m,)`` how many votes each source cast.
    method, reason
        How the parameters were learned, and why in that way.
    dependencies
        Pairs of sources that were not taken as independent.
    """

    sources: tuple[str, ...]
    parameters: Parameters
    summary: Summary
    n_items: int
    votes: IntArray
    method: str
    reason: str
    dependencies: tuple[tuple[str, str], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    names_given: bool = True

    @property
    def expected_cost(self) -> FloatArray:
        """Mean cost of each source to the truth."""
        return self.summary.expected_cost

    @property
    def weight(self) -> FloatArray:
        """How loudly each source counts."""
        return self.summary.weight

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of `weight`."""
        return self.summary.standard_error

    @property
    def correlation(self) -> FloatArray:
        """``(m, m)`` correlation given the truth; zero outside the dependencies."""
        return self.summary.correlation

    def table(self) -> SourceTable:
        """Return one row per source; where labels are records, with the qualities in each field beside."""
        return SourceTable(
            {
                "source": list(self.sources),
                "votes": self.votes.tolist(),
                "coverage": (self.votes / max(self.n_items, 1)).tolist(),
                "expected_cost": self.summary.expected_cost.tolist(),
                "cost_standard_error": self.summary.cost_standard_error.tolist(),
                "weight": self.summary.weight.tolist(),
                "standard_error": self.summary.standard_error.tolist(),
                **_columns_of_parts(self.summary, ""),
            }
        )


def _columns_of_parts(summary: Summary, prefix: str) -> dict[str, list[Any]]:
    """Return the qualities field by field, where labels are records."""
    columns: dict[str, list[Any]] = {}
    for name, part in summary.parts.items():
        columns[f"{prefix}{name} expected_cost"] = part.expected_cost.tolist()
        columns[f"{prefix}{name} weight"] = part.weight.tolist()
        columns |= _columns_of_parts(part, f"{prefix}{name}/")
    return columns
