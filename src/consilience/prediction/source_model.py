"""What was learned about the sources, in the same terms for every label type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Axes, FloatArray, IntArray
from consilience.estimation.calibration import UNCALIBRATED, Calibration
from consilience.estimation.protocol import SHARED_ERROR, Diagnostic, Mixture, Parameters, Summary
from consilience.label_types.base import LabelSpace, Unit
from consilience.tables.display import SourceTable
from consilience.tables.encoding import align_sources
from consilience.votes import Votes

#: At this potential, two sources differ in one of 20,000 votes.
LARGEST_POTENTIAL = 10.0


@dataclass(frozen=True, eq=False)
class SourceModel:
    """Sources, the law's parameters under each hypothesis with its probability, and their summary.

    Parameters
    ----------
    votes
        ``(m,)`` number of votes of each source.
    method, reason
        How the parameters were learned, and why this method was chosen.
    dependencies
        Pairs of dependent sources.
    baseline
        The parameters of the plain vote.
    calibration
        How known labels calibrated the confidence.
    quality
        ``(m,)`` correlation of each source's votes with the truth; None for methods without the trust engine.
    changed
        Share of the labels that differ from the plain vote, in a sample of the items; on a continuous scale by more
        than a tenth of the distance between two votes. NaN if the model was learned from moments alone.
    known_items
        Hashed ids of the items with known labels that the model learned from, so that an audit can hold them out.
    """

    sources: tuple[str, ...]
    mixture: Mixture
    summary: Summary
    n_items: Annotated[int, Axes("", 0)]
    votes: Annotated[IntArray, Axes("m", 0)]
    method: str
    reason: str
    dependencies: tuple[tuple[str, str], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    names_given: bool = True
    baseline: Parameters | None = None
    calibration: Calibration = UNCALIBRATED
    quality: Annotated[FloatArray, Axes("m", -1.0, 1.0)] | None = None
    changed: Annotated[float, Axes("", 0.0, 1.0, missing=True)] = float("nan")
    known_items: Annotated[npt.NDArray[np.uint64], Axes("known")] = field(
        default_factory=lambda: np.zeros(0, dtype=np.uint64)
    )

    @property
    def parameters(self) -> Parameters:
        """The parameters of the most probable hypothesis."""
        return self.mixture[0][1]

    @property
    def correlation(self) -> FloatArray:
        """``(m, m)`` correlation given the truth; zero outside the dependencies."""
        return self.summary.correlation

    @property
    def correlation_potential(self) -> FloatArray:
        """``(m, m)`` potentials theta_ab of the paper's equation 1, for a cost of 0 or 1 between labels.

        They follow from the learned qualities and error correlations: exactly for classes, and for other label types
        as those of a two-class model with the same correlations. What any two sources are believed to share before
        anything is known about them is no potential.
        """
        if self.quality is None:
            return np.zeros_like(self.correlation)
        beyond = np.maximum(self.correlation - SHARED_ERROR, 0.0) / (1.0 - SHARED_ERROR)
        return correlation_potential(self.quality, beyond, self.mixture[0][1].n_choices)

    @property
    def effective_sources(self) -> float:
        """How many equally good, independent sources would be worth as much as these (Kish's effective number).

        ``(sum w)**2 / sum w_a w_b rho_ab`` with the nonnegative weights w and the correlations rho given the truth.
        """
        voting = self.votes > 0
        return effective_number(self.summary.weight[voting], self.correlation[np.ix_(voting, voting)])

    def aligned(self, votes: Any, space: LabelSpace) -> Votes:
        """Return votes whose columns are these sources in order, or say what differs."""
        return align_sources(votes, space, self.sources, self.names_given)

    def as_baseline(self) -> SourceModel:
        """Return the model of the plain vote."""
        if self.baseline is None:
            return self
        return replace(self, mixture=((1.0, self.baseline),), calibration=UNCALIBRATED)

    def table(self, space: LabelSpace) -> SourceTable:
        """Return one row per source, best first, in the unit of the label type; for records, also of each field."""
        unit = space.unit(self.parameters)
        ends = self.summary.effective_range or (self.effective_sources,)
        effective = " to ".join(dict.fromkeys(f"{end:.1f}" for end in ends))
        note = f"effective number of sources: {effective} of {int((self.votes > 0).sum())}"
        if self.changed >= 0 and not space.continuous:  # of which hardly any are equal
            note += f"; {self.changed:.0%} of the labels differ from the plain vote"
        columns = {
            "source": list(self.sources),
            "votes": self.votes.tolist(),
            "coverage": (self.votes / max(self.n_items, 1)).tolist(),
            **_columns(self.summary, unit),
            "advice": [self.advice.get(name, "keep") for name in self.sources],
        }
        order = self.best_first()
        explained = f"{unit.name}: {unit.meaning}; weight: how much a vote counts, within this table"
        if "share" in self.summary.columns:
            explained += "; share: what is left of the weight once shared errors count once"
        return SourceTable(
            {name: [values[place] for place in order] for name, values in columns.items()},
            note=f"{explained}\n{note}",
            shares=frozenset(_share_names(unit)),
            optional=frozenset(["votes", "coverage", "advice", *self.summary.columns]),
        )

    def best_first(self) -> list[int]:
        """Return the sources from the smallest expected cost to the largest; those that never vote last."""
        return np.lexsort([-self.votes, self.summary.expected_cost, self.votes == 0]).tolist()

    @cached_property
    def advice(self) -> dict[str, str]:
        """What to do about the sources that findings name: "fix" or "drop". Keep all others."""
        return {
            name: advice
            for advice in ("fix", "drop")  # "drop" has precedence over "fix"
            for item in self.diagnostics
            if item.advice == advice
            for name in item.sources
        }


def correlation_potential(quality: FloatArray, correlation: FloatArray, n_choices: int = 2) -> FloatArray:
    """Return theta_ab from the qualities of the sources and the correlations of their errors, for k classes.

    Two sources agree with probability ``1 / k + (1 - 1 / k) (q_a q_b + rho sqrt((1 - q_a^2) (1 - q_b^2)))``. With
    ``x = exp(theta_ab)`` the table of right and wrong has the odds ratio ``(x^2 + (k - 2) x) / (k - 1)``, and two wrong
    votes coincide with probability ``x / (x + k - 2)``; theta is the one at which the sources agree as often as that.

    Examples
    --------
    >>> rho = np.array([[0.0, 0.5], [0.5, 0.0]])
    >>> correlation_potential(np.array([0.0, 0.0]), rho).round(3)[0, 1]  # .375 * .375 / (.125 * .125) is 9
    np.float64(1.099)
    """
    k = n_choices
    right = np.clip(1.0 - (1.0 - quality) * (k - 1) / k, 1e-3, 1.0 - 1e-3)
    left, other = right[:, None], right[None, :]
    noise = np.sqrt(np.maximum(1.0 - quality**2, 0.0))
    agree = 1.0 / k + (1.0 - 1.0 / k) * (np.outer(quality, quality) + correlation * np.outer(noise, noise))
    low, high = np.full(agree.shape, -LARGEST_POTENTIAL), np.full(agree.shape, LARGEST_POTENTIAL)
    for _ in range(50):  # halves the interval each time; agreement grows with theta
        middle = (low + high) / 2.0
        x = np.exp(middle)
        odds = (x**2 + (k - 2) * x) / (k - 1)
        total = 1.0 + (left + other) * (odds - 1.0)
        root = np.sqrt(np.maximum(total**2 - 4.0 * odds * (odds - 1.0) * left * other, 0.0))
        both = 2.0 * odds * left * other / (total + root)
        more = both + (1.0 - left - other + both) * x / (x + k - 2) < agree
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.where((correlation != 0) & ~np.eye(len(right), dtype=bool), (low + high) / 2.0, 0.0)


def connected(pairs: Iterable[Iterable[str]]) -> list[list[str]]:
    """Return the groups of names that are linked by pairs, directly or through others.

    Examples
    --------
    >>> connected([("a", "b"), ("c", "d"), ("b", "e")])
    [['c', 'd'], ['a', 'b', 'e']]
    """
    groups: list[list[str]] = []
    for pair in map(list, pairs):
        touched = [group for group in groups if not set(group).isdisjoint(pair)]
        joined = list(dict.fromkeys([name for group in touched for name in group] + pair))
        groups = [group for group in groups if group not in touched] + [joined]
    return groups


def effective_number(weight: FloatArray, correlation: FloatArray) -> float:
    """Return Kish's effective number of sources of these weights and correlations.

    Examples
    --------
    >>> pair = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # two copies and another source
    >>> round(effective_number(np.ones(3), pair), 2)
    1.8
    """
    positive = np.maximum(weight, 0.0)
    shared = np.clip(correlation, 0.0, 1.0)
    np.fill_diagonal(shared, 1.0)
    if not positive.any():
        return 0.0
    positive = positive / positive.max()
    return float(positive.sum() ** 2 / (positive @ shared @ positive))


def _columns(summary: Summary, unit: Unit, path: str = "") -> dict[str, list[Any]]:
    """Return the qualities of the sources, then those of each field where labels are records."""
    low, high = unit.interval(summary.expected_cost, summary.cost_standard_error)
    found: dict[str, Any] = {unit.name: unit.figure(summary.expected_cost), f"{unit.name}_low": low}
    found |= {f"{unit.name}_high": high, **summary.columns}
    found |= {"weight": summary.weight, "weight_standard_error": summary.standard_error}
    columns = {f"{path} {name}" if path else name: values.tolist() for name, values in found.items()}
    for name, part in summary.parts.items():
        columns |= _columns(part, unit.parts[name], f"{path}/{name}" if path else name)
    return columns


def _share_names(unit: Unit, path: str = "") -> list[str]:
    """Return the columns that are shown in percent."""
    before = f"{path} " if path else ""
    names = [f"{before}{unit.name}{end}" for end in ("", "_low", "_high")] if unit.is_share else []
    for name, part in unit.parts.items():
        names += _share_names(part, f"{path}/{name}" if path else name)
    return names
